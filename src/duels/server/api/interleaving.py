"""Comparing rankers on live traffic: interleaved lists and the clicks on them.

The fast path calls `interleaved` and `clicks` directly.
"""

import json
from functools import partial
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter

from ...errors import InvalidInput, NotFound
from ...ranking.interleaving import Method, find_method, infer, interleave
from ...storage.storage import Write
from ...storage.tables import impressions
from ...study.duels import Duel
from ...study.study import Study
from ...votes.names import voter_name
from ..errors import error_responses
from ..schemas import Clicks, Document, Impression, Interleave, Told
from ..security import FastCaller, ServiceDep
from .studies import StudyPath

router = APIRouter(tags=["interleaving"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))
Shown = dict[str, object]  # the body of a response
OUTCOMES = {1.0: "left", 0.0: "right", 0.5: "tie"}


@router.post("/api/studies/{study}/interleave", response_model=Impression)
async def interleaved(study: StudyPath, body: Interleave, service: ServiceDep, key: FastCaller) -> Shown:
    """Get the list to show, interleaved from the rankings of two arms. A self-duel shows that arm's own list.

    Send one ranking for each arm; or ask for a duel first, and send its id with the rankings of its two arms.
    """
    method = find_method(body.method)

    def write(found: Study) -> Write[Shown]:
        if body.duel is not None:
            return Write(partial(_interleave, study=found, body=body, method=method), found.id)
        voter = voter_name(body.voter)
        return Write(
            partial(_ask_and_interleave, study=found, body=body, method=method, voter=voter), found.id, last=True
        )

    return await service.write_compared(key, study, write)


def _ask_and_interleave(
    connection: sa.Connection, *, study: Study, body: Interleave, method: Method, voter: str | None
) -> Shown:
    """Ask for a duel and store its list."""
    history = study.current(connection)
    for name, active in zip(history.names, history.active):
        if active and name not in body.rankings:
            expected = "expected one for each active arm, or the id of a duel that was asked for before"
            raise InvalidInput(f"arm {name!r} has no ranking: {expected}")
    shown: list[Shown] = []

    def about(connection: sa.Connection, duel: Duel) -> Shown:
        shown.append(_make_list(connection, study, duel, body, method))
        return {}

    study.ask_in(connection, voter=voter, about=about)
    return shown[0]


def _interleave(connection: sa.Connection, *, study: Study, body: Interleave, method: Method) -> Shown:
    """Return the list of a duel that was asked for before. A list that was made before is returned again."""
    duel = study.duel_in(study.current(connection), body.duel)
    record = _record(connection, study, duel.id)
    if record is None:
        return _make_list(connection, study, duel, body, method)
    return _impression(duel, record["documents"])


def _impression(duel: Duel, documents: list[Document]) -> Shown:
    out: Shown = {"impression": duel.id, "documents": documents, "duel": duel.id}
    return out | {"left": duel.left, "right": duel.right, "is_self": duel.is_self}


def _make_list(connection: sa.Connection, study: Study, duel: Duel, body: Interleave, method: Method) -> Shown:
    documents, record = _documents_and_record(body, duel, method)
    connection.execute(sa.insert(impressions).values(study_id=study.id, duel=duel.id, record=json.dumps(record)))
    return _impression(duel, documents)


def _documents_and_record(body: Interleave, duel: Duel, method: Method) -> tuple[list[Document], dict[str, Any]]:
    for arm in (duel.left, duel.right):
        if arm not in body.rankings:
            raise InvalidInput(f"arm {arm!r} has no ranking: duel {duel.id} is {duel.left!r} against {duel.right!r}")
    left, right = body.rankings[duel.left], body.rankings[duel.right]
    if duel.is_self:
        return left[: body.length], {"documents": left[: body.length]}
    return interleave(left, right, method=method, length=body.length, missing=body.missing)


def _record(connection: sa.Connection, study: Study, duel: int) -> dict[str, Any] | None:
    here = (impressions.c.study_id == study.id) & (impressions.c.duel == duel)
    found = connection.execute(sa.select(impressions.c.record).where(here)).scalar()
    return None if found is None else json.loads(found)


@router.post("/api/studies/{study}/clicks", response_model=Told)
async def clicks(study: StudyPath, body: Clicks, service: ServiceDep, key: FastCaller) -> Shown:
    """Send all clicks on a list that was shown. They decide its duel."""

    def write(found: Study) -> Write[str]:
        return Write(partial(_tell_clicks, study=found, body=body), found.id)

    return {"duel": body.impression, "answer": await service.write_compared(key, study, write)}


def _tell_clicks(connection: sa.Connection, *, study: Study, body: Clicks) -> str:
    record = _record(connection, study, body.impression)
    if record is None:
        raise NotFound(f"study {study.name!r} has no impression {body.impression}: interleave first")
    winner = _winner(record, body)
    return study.tell_in(connection, duel=body.impression, winner=winner, voter=voter_name(body.voter))


def _winner(record: dict[str, Any], body: Clicks) -> str:
    """Return the side that the clicks prefer; a self-duel is a tie."""
    if "method" in record:
        return OUTCOMES[infer(record, body.clicks)]
    unknown = [document for document in body.clicks if document not in record["documents"]]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} was clicked but is not on the list of {len(record['documents'])} documents")
    return "tie"
