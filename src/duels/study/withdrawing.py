"""Which answers a voter gave, to take them back; and how to erase the voter's name."""

import numpy as np
import sqlalchemy as sa

from ..errors import InvalidInput
from ..storage.batches import forget_voter, read_stored_voters
from ..storage.changes import rename_in_changes
from ..storage.tables import events, voters
from ..votes.names import compose, link_voter
from .record import Record

WITHDREW = "Withdrew the answers of “{}”."  # what a change says


def answers_by(connection: sa.Connection, study: int, history: Record, name: str, is_known: bool = False) -> np.ndarray:
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


def erase_name(connection: sa.Connection, study: int, history: Record, name: str) -> None:
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
