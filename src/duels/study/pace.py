"""How fast answers come, and whether anybody still answers."""

from bisect import bisect_right
from typing import NamedTuple

from .record import Record

LATELY = 100  # answers that tell how fast they come
QUIET, PAUSES = 600.0, 10  # nobody answers any more: after so many seconds, and so many usual pauses between answers


class Pace(NamedTuple):
    """How fast answers come.

    Attributes:
        answers_an_hour: How fast those came lately; None before two of them, and where nobody answers any more.
        last: When the last one came; None before the first.
        quiet: After how many seconds without an answer nobody answers any more; None where a rate is not known.
    """

    answers_an_hour: float | None
    last: float | None
    quiet: float | None


def measure_pace(record: Record, now: float) -> Pace:
    """Return how fast the last answered duels were asked, without past votes."""
    lately = [record.asked[duel] for duel in record.answered[-LATELY:] if not _is_imported(record, duel)]
    seconds = max(lately) - min(lately) if len(lately) > 1 else 0.0
    if seconds <= 0 or record.last_told is None:
        return Pace(None, record.last_told, None)
    pause = seconds / (len(lately) - 1)
    quiet = max(QUIET, PAUSES * pause)
    return Pace(3600 / pause if now - record.last_told < quiet else None, record.last_told, quiet)


def _is_imported(record: Record, duel: int) -> bool:
    place = bisect_right(record.imports, (duel, len(record.left)))
    return place > 0 and duel < record.imports[place - 1][1]
