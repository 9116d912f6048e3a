"""How studies of all kinds are answered: answers, corrections, and voters who are forgotten.

The functions that take a connection are called inside a transaction.
"""

import json
from collections.abc import Mapping
from typing import Literal

import numpy as np
import sqlalchemy as sa

from ..errors import Conflict, InvalidInput
from ..storage.batches import forget_voter, read_stored_voters
from ..storage.changes import rename_in_changes
from ..storage.tables import events, voters
from ..votes.columns import ANSWERS
from ..votes.names import compose, link_voter
from .base import EventLog
from .invitations import forget_invited, refuse_invited
from .state.counts import OPEN, StudyCounts


def write_answer(
    connection: sa.Connection,
    log: EventLog,
    *,
    duel: int,
    winner: str,
    voter: str | None = None,
    more: Mapping[str, object] | None = None,
) -> str:
    """Answer a duel inside a transaction.

    Args:
        connection: The transaction's connection.
        duel: The duel's id.
        winner: As in `tell`.
        voter: Who answered; the name was checked.
        more: What to keep in the event's note.

    Returns:
        The answer as it is stored: left, right, tie, both_bad or skip.

    Raises:
        Conflict: If the duel already has another answer.
        InvalidInput: If there is no such duel, or the winner is unknown.
    """
    history = log.current(connection)
    refuse_invited(connection, log, voter)
    log.check_duel(history, duel)
    answer = log.code_of(history, duel, winner)
    before = history.answer[duel]
    if duel in history.forgotten:
        raise Conflict(f"duel {duel} was closed when its answer was withdrawn: ask for another one")
    if before == answer:
        return ANSWERS[answer]
    if before != OPEN:
        raise Conflict(
            f"duel {duel} was answered {ANSWERS[before]!r} already, not {ANSWERS[answer]!r}: undo that first"
        )
    attempt = history.attempt[duel]
    text = json.dumps(more, ensure_ascii=False) if more else None
    log.append_event(history, "tell", duel=duel, attempt=attempt, answer=ANSWERS[answer], voter=voter, note=text)
    return ANSWERS[answer]


def write_note(
    connection: sa.Connection,
    log: EventLog,
    kind: Literal["again", "repeat"],
    *,
    duel: int,
    voter: str | None,
    note: Mapping[str, object],
    answer: str | None = None,
) -> None:
    """Write an event about a duel that changes no counts, see `ledger`."""
    history = log.current(connection)
    log.storage.flush(connection)
    same = (events.c.study_id == log.id) & (events.c.duel == duel) & (events.c.kind == kind)
    attempt = connection.execute(sa.select(sa.func.count()).where(same)).scalar_one()  # so that they differ
    text = json.dumps(note, ensure_ascii=False)
    log.append_event(history, kind, duel=duel, attempt=attempt, answer=answer, voter=voter, note=text)


def undo_answer(connection: sa.Connection, log: EventLog, *, duel: int, blind: bool = False) -> None:
    """Take back an answer inside a transaction, see `undo`."""
    history = log.current(connection)
    log.check_duel(history, duel)
    if history.answer[duel] == OPEN or duel in history.forgotten:
        raise InvalidInput(f"duel {duel} has no answer to undo")
    votes = int(history.votes_of(np.array([duel]))[0])
    if votes > 1:
        raise InvalidInput(
            f"duel {duel} stands for {votes:,} imported votes, which cannot be asked again one by one: forget "
            "their voter, if they have one, or import the other votes into a new study"
        )
    note = '{"blind": true}' if blind else None
    log.append_event(history, "undo", duel=duel, attempt=history.attempt[duel], note=note)


def forget_answers(connection: sa.Connection, log: EventLog, *, name: str) -> int:
    """Take back all answers of a voter and erase the name; returns how many answers."""
    was_invited = forget_invited(connection, log, {name, compose(name)})
    duels = _find_answers(connection, log, name, was_invited)
    answers = _take_back(connection, log, duels)  # even if there are none: others then forget the name too
    erase_name(connection, log.id, log.current(connection), name)
    return answers


def withdraw_answers(connection: sa.Connection, log: EventLog, *, name: str) -> int:
    """Take back all answers of a voter, and keep the name; returns how many answers."""
    duels = _find_answers(connection, log, name)
    if not len(duels):
        raise InvalidInput(f"voter {name!r} of study {log.name!r} has no answers that count: nothing to withdraw")
    return _take_back(connection, log, duels)


def _find_answers(connection: sa.Connection, log: EventLog, name: str, is_known: bool = False) -> np.ndarray:
    history = log.current(connection)
    log.storage.flush(connection)
    return answers_by(connection, log.id, history, name, is_known)


def _take_back(connection: sa.Connection, log: EventLog, duels: np.ndarray) -> int:
    history = log.current(connection)
    log.append_event(history, "forget", note=json.dumps({"duels": duels.tolist()}))
    return int(history.votes_of(duels).sum())


def set_retired(connection: sa.Connection, log: EventLog, *, retired: bool) -> None:
    """Stop asking, or ask again."""
    history = log.current(connection)
    if history.retired != retired:
        log.append_event(history, "retire" if retired else "resume")


WITHDREW = "Withdrew the answers of “{}”."  # what a change says


def answers_by(
    connection: sa.Connection, study: int, history: StudyCounts, name: str, is_known: bool = False
) -> np.ndarray:
    """Return the duels whose answers count and are by a voter, inside a transaction.

    Args:
        connection: The transaction's connection; everything is written.
        study: The study's id.
        history: The study so far.
        name: The voter's name.
        is_known: Whether the name is a voter's even if it has no answers, as that of somebody who was invited.

    Returns:
        (n,) int64: Numbers of duels, in order.

    Raises:
        InvalidInput: If the study has no such voter.
    """
    chosen = sa.select(events.c.kind, events.c.duel, events.c.attempt).where(_theirs(study, name))
    rows = connection.execute(chosen).all()
    given = [(duel, attempt) for kind, duel, attempt in rows if kind == "tell"]
    has_imported = False
    for event, found in read_stored_voters(connection, study, history.seq):
        numbers = [number for number, one in enumerate(found.names) if one in _forms(name)]
        has_imported |= bool(numbers)
        given += [(event.duel + place, 0) for place in np.flatnonzero(np.isin(found.given, numbers)).tolist()]
    if not rows and not has_imported and not is_known:
        raise InvalidInput(f"study {history.row.name!r} has no voter named {name!r}")
    duels, attempts = np.array(given, np.int64).reshape(-1, 2).T
    return np.unique(duels[history.answers.include(duels, attempts)])


def erase_name(connection: sa.Connection, study: int, history: StudyCounts, name: str) -> None:
    """Erase a voter's name from a study, inside a transaction. Somebody with a voting link is a new voter after it."""
    forget_voter(connection, study, history.seq, _forms(name))
    connection.execute(sa.update(events).where(_theirs(study, name)).values(voter=None))
    for form in _forms(name):
        rename_in_changes(connection, study, WITHDREW.format(form), WITHDREW.format("a voter who was forgotten"))
    number = name.removeprefix("Voter ")
    if number.isdecimal() and name == link_voter(int(number)):
        one = (voters.c.study_id == study) & (voters.c.number == int(number))
        connection.execute(sa.update(voters).where(one).values(digest=None))  # the number is not used again


def _forms(name: str) -> set[str]:
    return {name, compose(name)}


def _theirs(study: int, name: str) -> sa.ColumnElement[bool]:
    return (events.c.study_id == study) & events.c.voter.in_(_forms(name))
