"""The settings of a study that can be changed while it runs, and who changed what."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from ...errors import InvalidInput
from ...storage.changes import list_changes
from ...study.duels import iso_time
from ...study.study import Study
from ...study.voter_settings import change_voter_settings, voter_settings
from ..auth import Admin, ServiceDep, record_change
from ..http.errors import error_responses
from ..keys import Key
from ..state import AnyStudy, Service, check_comparing
from .schemas import Changes, NewSettings, StudySettings
from .studies import FoundAny

router = APIRouter(tags=["settings"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
OF_GOAL = ("about", "after", "margin")
AFTER = {"stop": "stop", "rank": "go on and rank the others"}
WORDS = {
    "question": "The question for voters is now “{}”.",
    "instructions": "Changed the instructions for voters.",
    "ties": "Voters {} answer that both are equally good.",
    "both_bad": "Voters {} answer that both are bad.",
    "comments": "Voters {} write comments.",
    "votes": "Votes each: now {:,}.",
}


@router.get("/api/studies/{study}/settings", response_model=StudySettings)
def settings(study: FoundAny) -> dict[str, Any]:
    """Get the settings that can be changed while a study runs."""
    goal = study._log.history().goal
    return voter_settings(study)._asdict() | {"after": goal.after, "margin": goal.margin, "about": goal.about}


@router.patch("/api/studies/{study}/settings", response_model=StudySettings)
def set_settings(study: FoundAny, body: NewSettings, key: Admin) -> dict[str, Any]:
    """Change settings; what is left out stays as it is. Voters see the change at their next question."""
    known = voter_settings(study)
    wanted = body.model_dump(exclude_none=True)
    goal = study._log.history().goal
    of_goal = {name: wanted.pop(name) for name in OF_GOAL if name in wanted}
    of_goal = {name: value for name, value in of_goal.items() if value != getattr(goal, name)}
    if of_goal and not study._log.has_verdict:
        raise InvalidInput(f"{min(of_goal)} is for studies that compare arms: a tuning study has no verdict")
    changes = {name: value for name, value in wanted.items() if value != getattr(known, name)}
    if changes:
        with record_change(study, key, " ".join(_words(name, value) for name, value in changes.items())):
            change_voter_settings(study, **changes)
    if of_goal:
        _change_goal(check_comparing(study), key, of_goal)
    return settings(study)


def _change_goal(study: Study, key: Key, changes: dict[str, Any]) -> None:
    if "about" in changes:  # first, since it may be refused
        with record_change(study, key, f"The verdict is now about {changes['about']}."):
            study.set_about(changes["about"])
    if "margin" in changes:
        with record_change(study, key, f"The margin is now {100 * changes['margin']:g} %."):
            study.set_margin(changes["margin"])
    if "after" in changes:
        with record_change(study, key, f"When the winner is known, the study will {AFTER[changes['after']]}."):
            study.set_after(changes["after"])


def _words(name: str, value: object) -> str:
    shown = ("may now", "can no longer")[not value] if isinstance(value, bool) else value
    return WORDS[name].format(shown or "Which is better?")


@router.get("/api/studies/{study}/changes", response_model=Changes)
def changes(
    study: FoundAny,
    service: ServiceDep,
    key: Admin,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List who changed what through this server, the newest change first."""
    return changes_of(study, service, before, limit)


def changes_of(study: AnyStudy | None, service: Service, before: int | None, limit: int) -> dict[str, Any]:
    """Return a page of the changes of a study, or of the server. Blocks."""
    number = None if study is None else study._log.id
    with service.storage.lock, service.storage.translate_errors():
        found = list_changes(service.storage.connection(), number, before, limit + 1)
    page = [one._asdict() | {"time": iso_time(one.time)} for one in found[:limit]]
    return {"changes": page, "next": found[limit - 1].id if len(found) > limit else None}
