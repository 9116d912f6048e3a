"""Rankers in production: the lists that users see, and the clicks on them, which answer duels.

A list and the duel that it is for are written in the same commit. A duel has one list, however often it is asked for.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..checks import check_int
from ..errors import InvalidInput, NotFound, shorten
from ..rankers.interleaving import Method, find_live_method, infer, interleave
from ..storage.storage import Write
from ..storage.tables import impressions
from ..votes.names import voter_name
from .answering import write_answer
from .base import EventLog
from .duels import Duel, duel_number

MOST_DOCUMENTS = 1000  # on a list
Document = str | int


class Impression(NamedTuple):
    """A list to show, interleaved from the rankings of two arms; for a self-duel, one arm's own ranking.

    Attributes:
        id: The impression's id.
        documents: The list to show.
        duel: The duel's id.
        left: The duel's arm on the left.
        right: The duel's arm on the right.
    """

    id: int
    documents: list[Document]
    duel: int
    left: str
    right: str

    @property
    def is_self(self) -> bool:
        """Whether the arm duels itself."""
        return self.left == self.right


class ListRequest(NamedTuple):
    """What is to be shown.

    Attributes:
        rankings: The documents of each arm, best first.
        method: How to interleave them.
        length: How many documents to show.
        missing: What to do with a document that only one ranking has, see `interleave`.
    """

    rankings: Mapping[str, list[Document]]
    method: Method
    length: int
    missing: str


def show_list(
    study: EventLog,
    rankings: Mapping[str, Sequence[Document] | np.ndarray],
    duel: int | None,
    *,
    method: str,
    length: int,
    missing: str,
    voter: str | None,
) -> Write[Impression]:
    """Return what `Study.interleave` writes; see there for the arguments."""
    if not isinstance(rankings, Mapping):
        raise InvalidInput(f"rankings is {shorten(rankings)}: expected a dict from arms to their documents, best first")
    documents = {arm: _as_documents(f"the ranking of {arm!r}", ranking) for arm, ranking in rankings.items()}
    length = check_int("length", length, 1, MOST_DOCUMENTS)
    wanted = ListRequest(documents, find_live_method(method), length, missing)
    if duel is not None:
        return study.make_write(partial(_show_list_of, study=study, wanted=wanted, number=duel))
    name = voter_name(voter)
    return study.make_write(partial(_ask_and_show, study=study, wanted=wanted, voter=name), last=True)


def answer_by_clicks(
    study: EventLog, impression: Impression | int, clicks: Iterable[Document], *, voter: str | None
) -> Write[str]:
    """Return what `Study.clicks` writes; see there for the arguments."""
    number, clicked, name = impression_number(impression), _as_documents("clicks", clicks), voter_name(voter)
    return study.make_write(partial(_answer_by_clicks, study=study, number=number, clicks=clicked, voter=name))


def impression_number(impression: Impression | int) -> int:
    """Return the id of an impression, which may be given as an `Impression` or a number.

    Raises:
        InvalidInput: If it is neither.
    """
    return impression.id if isinstance(impression, Impression) else duel_number(impression)


def _as_documents(what: str, documents: Iterable[Any]) -> list[Document]:
    """As a list of what JSON returns unchanged; numpy's texts and numbers become Python's."""
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
        raise InvalidInput(f"{what} is {shorten(documents)}: expected a list of documents")
    plain = [one.tolist() if isinstance(one, np.generic) else one for one in documents]
    for document in plain:
        if isinstance(document, bool) or not isinstance(document, str | int):
            raise InvalidInput(
                f"{shorten(document)} in {what} is not a document: expected a text or a whole number, "
                "such as hit['_id']"
            )
    return plain


def _ask_and_show(connection: sa.Connection, *, study: EventLog, wanted: ListRequest, voter: str | None) -> Impression:
    """Ask for a duel and store its list. If there can be no list, nothing is asked."""
    history = study.current(connection)
    for name, active in zip(history.names, history.active):
        if active and name not in wanted.rankings:
            expected = "expected one for each active arm, or the id of a duel that was asked for before"
            raise InvalidInput(f"arm {name!r} has no ranking: {expected}")
    shown: list[Impression] = []

    def store_list(connection: sa.Connection, duel: Duel) -> Mapping[str, object]:
        shown.append(_store_list(connection, study, duel, wanted))
        return {}

    study.ask(connection, voter=voter, about=store_list)
    return shown[0]


def _show_list_of(connection: sa.Connection, *, study: EventLog, wanted: ListRequest, number: int) -> Impression:
    """Return the list of a duel that was asked for before; it is made once."""
    duel = study.find_duel(study.current(connection), number)
    record = _find_record(connection, study, number)
    if record is None:
        return _store_list(connection, study, duel, wanted)
    return Impression(duel.id, record["documents"], duel.id, duel.left, duel.right)


def _store_list(connection: sa.Connection, study: EventLog, duel: Duel, wanted: ListRequest) -> Impression:
    documents, record = _make_list(duel, wanted)
    connection.execute(sa.insert(impressions).values(study_id=study.id, duel=duel.id, record=json.dumps(record)))
    return Impression(duel.id, documents, duel.id, duel.left, duel.right)


def _make_list(duel: Duel, wanted: ListRequest) -> tuple[list[Document], dict[str, Any]]:
    for arm in (duel.left, duel.right):
        if arm not in wanted.rankings:
            raise InvalidInput(f"arm {arm!r} has no ranking: duel {duel.id} is {duel.left!r} against {duel.right!r}")
    left, right = wanted.rankings[duel.left], wanted.rankings[duel.right]
    if duel.is_self:
        return left[: wanted.length], {"documents": left[: wanted.length]}
    return interleave(left, right, method=wanted.method, length=wanted.length, missing=wanted.missing)


def _find_record(connection: sa.Connection, study: EventLog, number: int) -> dict[str, Any] | None:
    here = (impressions.c.study_id == study.id) & (impressions.c.duel == number)
    found = connection.execute(sa.select(impressions.c.record).where(here)).scalar()
    return None if found is None else json.loads(found)


def _answer_by_clicks(
    connection: sa.Connection, *, study: EventLog, number: int, clicks: list[Document], voter: str | None
) -> str:
    record = _find_record(connection, study, number)
    if record is None:
        raise NotFound(f"study {study.name!r} has no impression {number}: interleave first")
    return write_answer(connection, study, duel=number, winner=_winner_of(record, clicks), voter=voter)


def _winner_of(record: dict[str, Any], clicks: list[Document]) -> str:
    """The side that the clicks prefer; a self-duel is a tie."""
    if "method" in record:
        return infer(record, clicks)
    unknown = [document for document in clicks if document not in record["documents"]]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} was clicked but is not on the list of {len(record['documents'])} documents")
    return "tie"
