"""Duels and their answers.

The fast routes call `ask` and `tell` directly.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, TypeVar

import sqlalchemy as sa
from fastapi import APIRouter, Path, Query

from ...continuous.tuning.log import TuningDuel
from ...errors import InvalidInput, NotFound, NothingToAsk
from ...storage.storage import Write
from ...study.answering import write_answer
from ...study.duels import Duel, DuelItem, check_note, duel_number
from ...study.invitations import is_invited
from ...study.items import with_items
from ...study.link_voting import refuse_asked_through_link
from ...votes.names import voter_name
from ..auth import Caller, FastCaller, ServiceDep, record_change
from ..http.errors import Refused, error_responses
from ..keys import Key
from ..state import AnyStudy
from .schemas import AllocationOut, Ask, DuelOut, Duels, Forget, Forgotten, Tell, Told, Undo, Undone
from .studies import Found, FoundAny, StudyPath

T = TypeVar("T")
router = APIRouter(tags=["duels"], responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 503))


def duel_out(duel: Duel | TuningDuel) -> dict[str, object]:
    return {**duel._asdict(), "item": None if duel.item is None else _item_out(duel.item), "is_self": duel.is_self}


def _item_out(item: DuelItem) -> dict[str, object]:
    sides = {"left": item.left, "right": item.right}
    return {**item._asdict(), **{side: None if one is None else one._asdict() for side, one in sides.items()}}


@router.post("/api/studies/{study}/ask", response_model=Duels)
async def ask(study: StudyPath, body: Ask, service: ServiceDep, key: FastCaller) -> dict[str, object]:
    """Ask for the next duels. They are on disk when the response arrives.

    In a tuning study, `left` and `right` are settings: a value for each parameter. At most 100 are asked for at once.
    """
    found, voter, duels = await service.get_study(study), voter_name(body.voter), list[Any]()
    for part in found._log.parts_of(body.n):
        asked = {"n": part, "voter": voter, "allow_self": body.allow_self}
        try:
            duels += await service.write(key, study, partial(_asking, asked=asked))
        except NothingToAsk:
            if not duels:
                raise
            break
    if any(duel.item is not None for duel in duels):
        duels = await asyncio.to_thread(with_items, found, duels)
    return {"duels": [duel_out(duel) for duel in duels]}


def _asking(study: AnyStudy, *, asked: Mapping[str, Any]) -> Write[list[Any]]:
    return study._log.make_write(partial(study._log.ask, **asked), last=True)


@router.get("/api/studies/{study}/allocation", response_model=AllocationOut)
def allocation(study: Found, n: Annotated[int, Query(ge=1, le=10**12)]) -> dict[str, object]:
    """Get how often to ask each pair, for systems that decide by the batch. Nothing is written.

    Bring the answers back as counts, with `import`.
    """
    return {"allocation": [row._asdict() for row in study.allocate(n)]}


def as_program(key: Key | None, study: AnyStudy, duel: int, write: Write[T]) -> Write[T]:
    """Return a write that answers a duel, and with an API token is refused if the duel was asked through a link.

    Else a program could answer before the person whose question it is.
    """
    if key is None or key.kind != "api":
        return write

    def answer(connection: sa.Connection) -> T:
        refuse_asked_through_link(connection, study._log, duel)
        return write.operation(connection)

    return Write(answer, write.study, write.last)


@router.post("/api/studies/{study}/tell", response_model=Told)
async def tell(study: StudyPath, body: Tell, service: ServiceDep, key: FastCaller) -> dict[str, object]:
    """Answer a duel. The answer is on disk when the response arrives.

    Sending the same answer again is harmless; a different one is a conflict.
    """
    more, name = check_note(body.note, body.cost), voter_name(body.voter)

    def answer(found: AnyStudy) -> Write[str]:
        number = duel_number(body.duel)
        told = partial(write_answer, log=found._log, duel=number, winner=body.winner, voter=name, more=more)
        return as_program(key, found, number, found._log.make_write(told))

    return {"duel": body.duel, "answer": await service.write(key, study, answer)}


@router.post("/api/studies/{study}/undo", response_model=Undone)
def undo(study: FoundAny, body: Undo, key: Caller) -> dict[str, object]:
    """Undo an answer; the duel is open again. After an undo the verdict's guarantee no longer holds."""
    with record_change(study, key, f"Took back the answer to duel {body.duel}."):
        study.undo(body.duel)
    return {"duel": body.duel}


@router.post("/api/studies/{study}/forget", response_model=Forgotten)
def forget(study: FoundAny, body: Forget, key: Caller) -> dict[str, object]:
    """Undo all answers of a voter and erase their name.

    Of somebody who was invited, it also revokes the link, so it needs an admin's token.
    """
    if key.kind == "api" and is_invited(study, body.voter):
        raise Refused(403, "this voter was invited: forgetting somebody who was invited needs an admin's token")
    of_server = f"Erased a voter of the study “{study.name}”, with all answers."
    with record_change(study, key, "Erased a voter, with all answers.", of_server):
        return {"answers": study.forget(body.voter)}


@router.get("/api/studies/{study}/duels", response_model=Duels)
def open_duels(study: FoundAny, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> dict[str, object]:
    """List the duels without an answer, oldest first."""
    return {"duels": [duel_out(duel) for duel in study.open_duels()[:limit]]}


@router.get("/api/studies/{study}/duels/{duel}", response_model=DuelOut)
def one_duel(study: FoundAny, duel: Annotated[int, Path(ge=0, le=2**31 - 1)]) -> dict[str, object]:
    """Get a duel by its id."""
    try:
        return duel_out(study.duel(duel))
    except InvalidInput as error:
        raise NotFound(str(error)) from None
