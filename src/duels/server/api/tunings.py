"""Studies that tune parameters: which setting do people prefer? Their duels are asked and answered as any other's."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from ...continuous.spaces import parse_space, plain_space
from ...continuous.tuning.create import create_tuning
from ...continuous.tuning.study import TuningStudy
from ...continuous.tuning.templates import check_template, find_unused, has_script
from ...errors import format_count
from ...storage.storage import Write
from ...study.base import clock
from ...study.items import scripts_allowed
from ..auth import Admin, Caller, ServiceDep, record_change
from ..http.errors import Refused, error_responses
from .schemas import BestOut, NewTuning, SlicesOut, StudyOut, Template, TemplateOut
from .studies import StudyPath

router = APIRouter(tags=["tuning"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


def find_tuning(study: StudyPath, service: ServiceDep, key: Caller) -> TuningStudy:
    """Return the study that the path names, if it tunes parameters, for callers with a valid key."""
    return service.load_tuning(study)


FoundTuning = Annotated[TuningStudy, Depends(find_tuning)]


@router.post("/api/tunings", response_model=StudyOut, status_code=201)
def create(body: NewTuning, service: ServiceDep, key: Caller) -> dict[str, object]:
    """Create a study that tunes parameters."""
    before = clock()
    space = parse_space(body.space) if isinstance(body.space, str) else plain_space(body.space)
    template = None if body.template is None else check_template(body.template, space)
    study = create_tuning(
        space,
        body.name,
        service.storage,
        body.policy,
        confidence=body.confidence,
        seed=body.seed,
        lease=body.lease,
        load_if_exists=body.load_if_exists,
    )
    service.background.prepare(study)
    is_new = study._log.row.created >= before
    what = f"Created the study, which tunes {format_count(len(space), 'parameter')}." if is_new else "Set the template."
    if template is not None and study.template is None and not is_new and key.kind == "api":
        raise Refused(403, "this study has no template, and setting one needs an admin's token: leave it out")
    if template is not None and study.template is None:  # new, or created by a request that was cut off here
        with record_change(study, key, what):
            study.set_template(template)
    elif is_new:
        with record_change(study, key, what):
            service.storage.write(Write(lambda connection: None))
    return service.describe(study)


@router.get("/api/studies/{study}/best", response_model=BestOut)
def best(study: FoundTuning) -> dict[str, Any]:
    """Get the best setting so far, its predicted share of wins against the runner-up, and how sure that is."""
    found = study.best
    return found.as_dict() | {"words": str(found)}


@router.get("/api/studies/{study}/slices", response_model=SlicesOut)
def slices(study: FoundTuning) -> dict[str, Any]:
    """Get slices of the model through the best setting.

    For each parameter: its `values`, and of the best setting with each of these values the predicted `share` of wins
    against the best setting, with its interval.
    """
    return study.slices()


@router.get("/api/studies/{study}/template", response_model=TemplateOut)
def template(study: FoundTuning) -> dict[str, Any]:
    """Get the page on which voters see a setting."""
    html, scripts = study.template, scripts_allowed(study)
    if html is None:
        return {"html": None, "unused": [], "has_script": False, "scripts": scripts}
    return {"html": html, "unused": find_unused(html, study.space), "has_script": has_script(html), "scripts": scripts}


@router.put("/api/studies/{study}/template", response_model=TemplateOut)
def set_template(study: FoundTuning, body: Template, key: Admin) -> dict[str, Any]:
    """Set the page on which voters see a setting. It is shown in a frame that can load nothing.

    Scripts in it run only if they are turned on, see the route `scripts`.
    """
    if body.html != study.template:
        with record_change(study, key, "Removed the template." if body.html is None else "Changed the template."):
            study.set_template(body.html)
    return template(study)
