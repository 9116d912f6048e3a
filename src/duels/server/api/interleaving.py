"""Rankers in production: one list from two of them, and from its clicks which is better."""

import json
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ...errors import InvalidInput
from ...ranking.interleaving import Method, find_method, infer, interleave
from ...storage.storage import Write
from ...storage.tables import impressions
from ...study.duels import Duel
from ...study.study import Study
from ..errors import Refused, shape
from ..keys import Key
from ..schemas import Clicks, Impression, Interleave, Told
from ..security import Here, QuickCaller
from ..service import Service
from .studies import StudyPath

router = APIRouter(tags=["interleaving"], responses=shape(400, 401, 403, 404, 409, 413, 422, 429, 503))
OUTCOMES = {1.0: "left", 0.0: "right", 0.5: "tie"}


async def shown(service: Service, key: Key | None, study: str, body: Interleave) -> dict[str, Any]:
    method = find_method(body.method)

    def write(found: Study) -> Write:
        return _asked(found, body, method) if body.duel is None else _again(found, body, method)

    return await service.write(key, study, write)


@router.post("/api/studies/{study}/interleave", response_model=Impression)
async def interleaved(study: StudyPath, body: Interleave, service: Here, key: QuickCaller) -> JSONResponse:
    """The list to show, from the rankings of the two arms that duel; for a self-duel the champion's own list.

    Say one ranking for each arm, or ask first and say the asked `duel` with the rankings of its two arms.
    """
    return JSONResponse(await shown(service, key, study, body))


def _asked(study: Study, body: Interleave, method: Method) -> Write:
    """Ask, and keep the list of the duel, in one transaction."""
    shown: list[dict[str, Any]] = []

    def about(connection: sa.Connection, duel: Duel) -> dict[str, Any]:
        shown.append(_listed(connection, study, duel, body, method))
        return {}

    asking = study.asking(voter=body.voter, about=about)

    def operation(connection: sa.Connection) -> dict[str, Any]:
        history = study.current(connection)
        for name, active in zip(history.names, history.active):
            if active and name not in body.rankings:
                raise InvalidInput(
                    f"arm {name!r} has no ranking: expected one for each active arm, or ask first and then say `duel`"
                )
        asking.operation(connection)
        return shown[0]

    return Write(operation, asking.study, asking.last)


def _again(study: Study, body: Interleave, method: Method) -> Write:
    """The list of a duel that was asked before; the same one if it was made before."""

    def operation(connection: sa.Connection) -> dict[str, Any]:
        duel = study.duel_in(study.current(connection), body.duel)
        record = _record(connection, study, duel.id)
        if record is None:
            return _listed(connection, study, duel, body, method)
        return _impression(duel, record["documents"])

    return Write(operation, study.id)


def _impression(duel: Duel, documents: list[Any]) -> dict[str, Any]:
    out = {"impression": duel.id, "documents": documents, "duel": duel.id}
    return out | {"left": duel.left, "right": duel.right, "is_self": duel.is_self}


def _listed(connection: sa.Connection, study: Study, duel: Duel, body: Interleave, method: Method) -> dict[str, Any]:
    documents, record = _arranged(body, duel, method)
    connection.execute(sa.insert(impressions).values(study_id=study.id, duel=duel.id, record=json.dumps(record)))
    return _impression(duel, documents)


def _arranged(body: Interleave, duel: Duel, method: Method) -> tuple[list[Any], dict[str, Any]]:
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


async def clicked(service: Service, key: Key | None, study: str, body: Clicks) -> dict[str, Any]:
    def write(found: Study) -> Write:
        def operation(connection: sa.Connection) -> str:
            record = _record(connection, found, body.impression)
            if record is None:
                raise Refused(404, f"study {found.name!r} has shown no list {body.impression}: interleave first")
            return found.telling(body.impression, _winner(record, body), voter=body.voter).operation(connection)

        return Write(operation, found.id)

    return {"duel": body.impression, "answer": await service.write(key, study, write)}


@router.post("/api/studies/{study}/clicks", response_model=Told)
async def clicks(study: StudyPath, body: Clicks, service: Here, key: QuickCaller) -> JSONResponse:
    """The clicks on a list that was shown, all at once: they are the answer to its duel."""
    return JSONResponse(await clicked(service, key, study, body))


def _winner(record: dict[str, Any], body: Clicks) -> str:
    """Which side the clicks prefer; a self-duel is a tie."""
    if "method" in record:
        return OUTCOMES[infer(record, body.clicks)]
    unknown = [document for document in body.clicks if document not in record["documents"]]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} was clicked but is not on the list of {len(record['documents'])} documents")
    return "tie"
