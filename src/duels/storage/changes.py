"""Who changed what in a study: a note that is written in the same transaction as the change."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from .tables import changes


class Change(NamedTuple):
    """A change that was noted.

    Attributes:
        id: Its number.
        time: When it was made, in seconds since 1970.
        who: The name of the token, or of the person who signed in with it.
        what: A sentence.
    """

    id: int
    time: float
    who: str
    what: str


@dataclass
class Note:
    """What the next write is about; it is written once."""

    study: int
    who: str
    what: str
    is_written: bool = False


_current: ContextVar[Note | None] = ContextVar("note", default=None)


@contextmanager
def noted(study: int, who: str, what: str) -> Iterator[None]:
    """Note the first write that is made meanwhile as a change of a study, if it succeeds.

    Args:
        study: The study's id.
        who: Who makes the change.
        what: What the change is, as a sentence.
    """
    token = _current.set(Note(study, who, what))
    try:
        yield
    finally:
        _current.reset(token)


def note_of_write() -> Note | None:
    """Return the note of a write that begins now; None if it has none."""
    note = _current.get()
    return None if note is None or note.is_written else note


def write_note(connection: sa.Connection, note: Note, time: float) -> None:
    """Write a note inside the transaction of its change."""
    row = {"study_id": note.study, "time": time, "who": note.who, "what": note.what}
    connection.execute(sa.insert(changes).values(row))


def list_changes(connection: sa.Connection, study: int, before: int | None = None, limit: int = 50) -> list[Change]:
    """Return the changes of a study, the newest first.

    Args:
        connection: Where to read.
        study: The study's id.
        before: Start with the change before this number; by default with the newest.
        limit: How many to return.
    """
    chosen = sa.select(changes.c.id, changes.c.time, changes.c.who, changes.c.what).where(changes.c.study_id == study)
    chosen = chosen if before is None else chosen.where(changes.c.id < before)
    return [Change(*row) for row in connection.execute(chosen.order_by(changes.c.id.desc()).limit(limit))]


def rename_in_changes(connection: sa.Connection, study: int, what: str, becomes: str) -> None:
    """Replace what some changes of a study say, inside a transaction, such as to erase a name."""
    chosen = (changes.c.study_id == study) & (changes.c.what == what)
    connection.execute(sa.update(changes).where(chosen).values(what=becomes))
