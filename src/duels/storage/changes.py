"""Who changed what in a study, or in the server: a note that is written in the same transaction as the change."""

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

    study: int | None  # None for a change of the server
    who: str
    what: str
    of_server: str | None = None  # what else the list of the server says
    is_written: bool = False


COMMAND_LINE = "the command line"  # as who made a change
_current: ContextVar[Note | None] = ContextVar("note", default=None)


@contextmanager
def note_change(study: int | None, who: str, what: str, of_server: str | None = None) -> Iterator[None]:
    """Note the first write that is made meanwhile as a change of a study, if it succeeds.

    Args:
        study: The study's id; None for a change of the server.
        who: Who makes the change.
        what: What the change is, as a sentence.
        of_server: What the list of the server says, if the change belongs there too.
    """
    token = _current.set(Note(study, who, what, of_server))
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
    if note.of_server is not None:
        connection.execute(sa.insert(changes).values(row | {"study_id": None, "what": note.of_server}))


def list_changes(
    connection: sa.Connection, study: int | None, before: int | None = None, limit: int = 50
) -> list[Change]:
    """Return the changes of a study, or of the server, the newest first.

    Args:
        connection: Where to read.
        study: The study's id; None for the server.
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
