"""Duels, and the entries of a study's log, as people and programs see them."""

import math
import operator
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..errors import InvalidInput, shorten
from ..votes.items import Output

MOST_NOTE = 10_000  # characters


@runtime_checkable
class Asked(Protocol):
    """A question of a study of any kind."""

    @property
    def id(self) -> int:
        """Its number in the study, from 0."""

    @property
    def study(self) -> str:
        """The study's name."""


class DuelItem(NamedTuple):
    """What a duel is about: a prompt, and the outputs of its two arms.

    Attributes:
        number: The item's number in the study, from 1.
        prompt: The prompt; None if the item was removed since.
        left: The output of the arm on the left.
        right: The output of the arm on the right.
    """

    number: int
    prompt: str | None = None
    left: Output | None = None
    right: Output | None = None


class Duel(NamedTuple):
    """A question: which of two arms is better?

    Attributes:
        id: Its number in the study, from 0.
        left: The arm on the left.
        right: The arm on the right.
        study: The study's name.
        time: When it was asked, in ISO 8601.
        item: What it is about, if the study has items.
    """

    id: int
    left: str
    right: str
    study: str
    time: str
    item: DuelItem | None = None

    @property
    def is_self(self) -> bool:
        """Whether the arm duels itself: the policy is content with it, and learns nothing from the answer."""
        return self.left == self.right


class LogEntry(NamedTuple):
    """One event of a study.

    Attributes:
        seq: Its number in the log, from 1.
        kind: create, ask, tell, import, undo, forget, add_arm, retire_arm, retire, resume or goal; again and repeat for
            calls of a judge that do not count for the verdict.
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
    number = duel.id if isinstance(duel, Asked) else duel
    if isinstance(number, str) and number.isdecimal() and len(number) < 20:
        return int(number)
    try:
        if not isinstance(number, bool):
            return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise InvalidInput(f"duel is {shorten(duel)}: expected a Duel from ask, or its id")


def check_note(note: object, cost: object) -> dict[str, object]:
    """Return what an answer's event keeps of a note and a cost.

    Raises:
        InvalidInput: If the note is not a text of at most 10,000 characters, or the cost not a number of at least 0.
    """
    kept: dict[str, object] = {}
    if note is not None:
        if not isinstance(note, str) or len(note) > MOST_NOTE:
            raise InvalidInput(f"note is {shorten(note)}: expected a text of at most {MOST_NOTE:,} characters")
        kept["note"] = note
    if cost is not None:
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
            raise InvalidInput(f"cost is {shorten(cost)}: expected a number of at least 0")
        kept["cost"] = float(cost)
    return kept


def iso_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
