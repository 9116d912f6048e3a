"""Duels and their answers.

The fast path calls `ask` and `tell` directly.
"""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query

from ...errors import InvalidInput, NotFound, NothingToAsk
from ...study.duels import Duel, DuelItem, checked_note
from ...study.items import with_items
from ...study.study import Study, parts_of
from ..errors import error_responses
from ..schemas import AllocationOut, Ask, DuelOut, Duels, Forget, Forgotten, Tell, Told, Undo, Undone
from ..security import Caller, FastCaller, ServiceDep, changing
from .studies import Found, StudyPath

router = APIRouter(tags=["duels"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


def duel_out(duel: Duel) -> dict[str, object]:
    return {**duel._asdict(), "item": None if duel.item is None else _item_out(duel.item), "is_self": duel.is_self}


def _item_out(item: DuelItem) -> dict[str, object]:
    sides = {"left": item.left, "right": item.right}
    return {**item._asdict(), **{side: None if one is None else one._asdict() for side, one in sides.items()}}


@router.post("/api/studies/{study}/ask", response_model=Duels)
async def ask(study: StudyPath, body: Ask, service: ServiceDep, key: FastCaller) -> dict[str, object]:
    """Ask for the next duels. They are on disk when the response arrives."""
    duels = list[Duel]()
    for part in parts_of(body.n):
        ask_part = partial(Study.asking, n=part, voter=body.voter, allow_self=body.allow_self)
        try:
            duels += await service.write(key, study, ask_part)
        except NothingToAsk:
            if not duels:
                raise
            break
    if any(duel.item is not None for duel in duels):
        duels = await asyncio.to_thread(with_items, await service.cached_study(study), duels)
    return {"duels": [duel_out(duel) for duel in duels]}


@router.get("/api/studies/{study}/allocation", response_model=AllocationOut)
def allocation(study: Found, n: Annotated[int, Query(ge=1, le=10**12)]) -> dict[str, object]:
    """Get how often to ask each pair, for systems that decide by the batch. Nothing is written.

    Bring the answers back as counts, with `import`.
    """
    return {"allocation": [row._asdict() for row in study.allocate(n)]}


@router.post("/api/studies/{study}/tell", response_model=Told)
async def tell(study: StudyPath, body: Tell, service: ServiceDep, key: FastCaller) -> dict[str, object]:
    """Answer a duel. The answer is on disk when the response arrives.

    Sending the same answer again is harmless; a different one is a conflict.
    """
    more = checked_note(body.note, body.cost)
    answer = await service.write(
        key, study, lambda found: found.telling(body.duel, body.winner, voter=body.voter, more=more)
    )
    return {"duel": body.duel, "answer": answer}


@router.post("/api/studies/{study}/undo", response_model=Undone)
def undo(study: Found, body: Undo, key: Caller) -> dict[str, object]:
    """Undo an answer; the duel is open again. After an undo the verdict's guarantee no longer holds."""
    with changing(study, key, f"Took back the answer to duel {body.duel}."):
        study.undo(body.duel)
    return {"duel": body.duel}


@router.post("/api/studies/{study}/forget", response_model=Forgotten)
def forget(study: Found, body: Forget) -> dict[str, object]:
    """Undo all answers of a voter and erase their name."""
    return {"answers": study.forget(body.voter)}


@router.get("/api/studies/{study}/duels", response_model=Duels)
def open_duels(study: Found, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> dict[str, object]:
    """List the duels without an answer, oldest first."""
    return {"duels": [duel_out(duel) for duel in study.open_duels()[:limit]]}


@router.get("/api/studies/{study}/duels/{duel}", response_model=DuelOut)
def one_duel(study: Found, duel: Annotated[int, Path(ge=0, le=2**31 - 1)]) -> dict[str, object]:
    """Get a duel by its id."""
    try:
        return duel_out(study.duel(duel))
    except InvalidInput as error:
        raise NotFound(str(error)) from None
