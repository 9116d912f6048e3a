"""A question, and the entries of a study's log, as people and programs see them."""

import operator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..errors import InvalidInput, cut


class Duel(NamedTuple):
    """A question: which of two arms is better?"""

    id: int
    left: str
    right: str
    study: str
    time: str  # when it was asked

    @property
    def is_self(self) -> bool:
        """Whether the arm duels itself: the policy is content with it, and learns nothing from the answer."""
        return self.left == self.right


class LogEntry(NamedTuple):
    """One event of a study, for people and programs."""

    seq: int
    kind: str  # create, ask, tell, import, undo, forget, add_arm, retire_arm, retire, resume
    duel: int | None
    left: str | None
    right: str | None
    answer: str | None
    voter: str | None
    time: str
    note: dict[str, Any]


def duel_number(duel: Any) -> int:
    number = duel.id if isinstance(duel, Duel) else duel
    if isinstance(number, str) and number.isdecimal() and len(number) < 20:
        return int(number)
    try:
        if not isinstance(number, bool):
            return operator.index(number)
    except TypeError:
        pass
    raise InvalidInput(f"duel is {cut(duel)}: expected what ask gave, or its id")


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
