"""What the judges of a study have done, without reading the rest of its log."""

from typing import NamedTuple

import sqlalchemy as sa

from ..storage.storage import Event
from ..storage.tables import EVENT_COLUMNS, events
from .agreement import Agreement
from .ledger import Ledger
from .log import PAGE, Log, log_entry
from .positions import Position
from .repeatability import Repeatability

# In JSON a quote inside of a text has a backslash before it, so this is found in the notes of calls only.
OF_CALLS = events.c.note.contains('"calls": ')


class Judges(NamedTuple):
    """What the judges of a study have done so far.

    Attributes:
        calls: How many calls were made, retries and repeats included; 0 if only people have answered.
        unstored: How many of them have no answer in the log, since the program ended before.
        cost: The cost of all calls that said it.
        bad: How many replies had no usable answer.
        failed: How many questions had no reply, after several attempts.
        repeats: How many of the calls asked a judge the same question again, to see whether it repeats its answer.
        second_opinions: How many questions were asked of a second judge.
        identical: How many questions had identical outputs, and are ties without a call.
        positions: How often each judge chose each side.
        repeatability: How often each judge gave the same answer again.
        agreements: How often the judges agree, if there are several.
    """

    calls: int
    unstored: int
    cost: float
    bad: int
    failed: int
    repeats: int
    second_opinions: int
    identical: int
    positions: list[Position]
    repeatability: list[Repeatability]
    agreements: list[Agreement]


def activity_of(ledger: Ledger) -> Judges:
    """Return what a ledger holds."""
    return Judges(*ledger.total(), ledger.positions(), ledger.repeatability(), ledger.agreements())


def follow(log: Log, ledger: Ledger) -> Ledger:
    """Return a ledger that includes everything up to now. Only what is new since its last event is read.

    Args:
        log: The study.
        ledger: An earlier one, which is extended; an empty one at first. If a voter was forgotten since, whose name it
            may have, it is not used.

    Example:
        >>> activity_of(follow(study, Ledger())).calls
        212
    """
    last = log.history().seq
    if last == ledger.seq:
        return ledger
    if ledger.seq and _rows(log, ledger.seq, last, events.c.kind == "forget"):
        ledger = Ledger()
    rows = _rows(log, ledger.seq, last, OF_CALLS)
    for start in range(0, len(rows), PAGE):  # others may write in between
        page = rows[start : start + PAGE]
        for entry in log.read(lambda _, history: [log_entry(history, row) for row in page]):  # noqa: B023  # called here
            ledger.take(entry)
    ledger.seq = last
    return ledger


def _rows(log: Log, after: int, last: int, which: sa.ColumnElement[bool]) -> list[Event]:
    columns = [events.c[name] for name in EVENT_COLUMNS]
    new = sa.and_(events.c.study_id == log.id, events.c.seq > after, events.c.seq <= last)
    with log.storage.read_connection() as connection:
        return [Event(*row) for row in connection.execute(sa.select(*columns).where(new, which).order_by(events.c.seq))]
