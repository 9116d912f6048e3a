"""Questions and answers: the routes that must be quick."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from ...errors import InvalidInput
from ...study.duels import Duel
from ..errors import Refused, shape
from ..keys import Key
from ..schemas import Ask, DuelOut, Duels, Forget, Forgotten, Tell, Told, Undo, Undone
from ..security import Here, QuickCaller
from ..service import Service
from .studies import Found, StudyPath

router = APIRouter(tags=["duels"], responses=shape(400, 401, 403, 404, 409, 413, 422, 429, 503))


def duel_out(duel: Duel) -> dict:
    return {**duel._asdict(), "is_self": duel.is_self}


async def asked(service: Service, key: Key | None, study: str, body: Ask) -> dict[str, Any]:
    duels = await service.write(
        key, study, lambda found: found.asking(body.n, voter=body.voter, allow_self=body.allow_self)
    )
    return {"duels": [duel_out(duel) for duel in duels]}


async def told(service: Service, key: Key | None, study: str, body: Tell) -> dict[str, Any]:
    answer = await service.write(key, study, lambda found: found.telling(body.duel, body.winner, voter=body.voter))
    return {"duel": body.duel, "answer": answer}


@router.post("/api/studies/{study}/ask", response_model=Duels)
async def ask(study: StudyPath, body: Ask, service: Here, key: QuickCaller) -> JSONResponse:
    """The next duels. They are on disk when this answers."""
    return JSONResponse(await asked(service, key, study, body))


@router.post("/api/studies/{study}/tell", response_model=Told)
async def tell(study: StudyPath, body: Tell, service: Here, key: QuickCaller) -> JSONResponse:
    """The answer to a duel. It is on disk when this answers; the same again is harmless, another one a conflict."""
    return JSONResponse(await told(service, key, study, body))


@router.post("/api/studies/{study}/undo", response_model=Undone)
def undo(study: Found, body: Undo):
    """Take back an answer; the duel is open again. It voids the verdict's promise."""
    study.undo(body.duel)
    return {"duel": body.duel}


@router.post("/api/studies/{study}/forget", response_model=Forgotten)
def forget(study: Found, body: Forget):
    """Take back all answers of a voter and erase their name."""
    return {"answers": study.forget(body.voter)}


@router.get("/api/studies/{study}/duels", response_model=Duels)
def open_duels(study: Found, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000):
    """The duels without an answer, oldest first."""
    return {"duels": [duel_out(duel) for duel in study.open_duels()[:limit]]}


@router.get("/api/studies/{study}/duels/{duel}", response_model=DuelOut)
def one_duel(study: Found, duel: Annotated[int, Path(ge=0, le=2**31 - 1)]):
    """A duel by its id."""
    try:
        return duel_out(study.duel(duel))
    except InvalidInput as error:
        raise Refused(404, str(error)) from None
