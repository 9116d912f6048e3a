"""Duels, and the entries of a study's log, as people and programs see them."""

import operator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..errors import InvalidInput, cut


class Duel(NamedTuple):
    """A question: which of two arms is better?

    Attributes:
        id: Its number in the study, from 0.
        left: The arm on the left.
        right: The arm on the right.
        study: The study's name.
        time: When it was asked, in ISO 8601.
        item: In a study on these items, the number of the item that it is about.
    """

    id: int
    left: str
    right: str
    study: str
    time: str
    item: int | None = None

    @property
    def is_self(self) -> bool:
        """Whether the arm duels itself: the policy is content with it, and learns nothing from the answer."""
        return self.left == self.right


class LogEntry(NamedTuple):
    """One event of a study.

    Attributes:
        seq: Its number in the log, from 1.
        kind: create, ask, tell, import, undo, forget, add_arm, retire_arm, retire or resume; vote for a single
            imported vote in a log of version 0.1.0.
        duel: The id of its duel; of an import, of the first vote.
        left: The arm on the left.
        right: The arm on the right.
        answer: left, right, tie, both_bad or skip.
        voter: Who was asked, or answered.
        time: When it was written, in ISO 8601.
        note: What only some kinds have.
    """

    seq: int
    kind: str
    duel: int | None
    left: str | None
    right: str | None
    answer: str | None
    voter: str | None
    time: str
    note: dict[str, Any]


def duel_number(duel: object) -> int:
    """Return the id of a duel, which may be given as a `Duel`, a number, or the text of one.

    Raises:
        InvalidInput: If it is none of these.
    """
    number = duel.id if isinstance(duel, Duel) else duel
    if isinstance(number, str) and number.isdecimal() and len(number) < 20:
        return int(number)
    try:
        if not isinstance(number, bool):
            return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise InvalidInput(f"duel is {cut(duel)}: expected a Duel from ask, or its id")


def iso_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
