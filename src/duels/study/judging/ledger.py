"""What the judges of a study have done: calls, costs, sides, repeatability and agreement, folded from its log.

A question for a judge is an `ask` event whose note has `calls`: how many calls were begun for it. An `again` event
begins further calls about the same duel. A `tell` or `repeat` event ends them: its note has the calls that were made in
all, retries included, their cost, and the judge's fingerprint. A `repeat` does not count for the verdict. Notes say
more about some of them:

| note | |
| --- | --- |
| `run` | of `ask` and `again`: which run makes the calls, see `running` |
| `failed` | of a skip: the judge gave no reply |
| `bad` | of a skip: its reply had no usable answer |
| `unusable` | how many replies had none, before an answer or in all |
| `identical` | a tie without a call: both outputs are the same text |
| `first` | asked in both orders: the answer to the first one |
| `confirms`, `replies` | asked in the other order after an alarm: the earlier answer, and the replies in both orders |
| `repeats` | of `again` and `repeat`: the same judge is asked the same question once more; its first reply |
| `contradicts` | of such a `repeat`: it has an answer, and another one than the first reply |

How many calls a run may still make, so that its limits are never exceeded.

What the judges of a study have done, without reading the rest of its log.
"""

import math
import threading
from datetime import datetime
from typing import Literal, NamedTuple

import sqlalchemy as sa

from ...checks import check_int
from ...errors import InvalidInput
from ...storage.storage import Event
from ...storage.tables import EVENT_COLUMNS, events
from ..base import PAGE, log_entry
from ..duels import LogEntry
from ..event_study import EventStudy
from ..voters.agreement import Agreement, compare_judges
from ..voters.voter_tests import Position, Repeatability, Sides


class Spent(NamedTuple):
    """What the judges of a study have cost so far.

    Attributes:
        calls: How many calls were made, retries and repeats included.
        unstored: How many of them have no answer in the log, since the program ended before.
        cost: The cost of all calls that said it.
        bad: How many replies had no usable answer.
        failed: How many questions had no reply, after several attempts.
        repeats: How many of the calls asked a judge the same question again, to see whether it repeats its answer.
        second_opinions: How many questions were asked of a second judge.
        identical: How many questions had identical outputs, and are ties without a call.
    """

    calls: int
    unstored: int
    cost: float
    bad: int
    failed: int
    repeats: int
    second_opinions: int
    identical: int


class Ledger:
    """The calls of a study's judges; `take` adds one event of its log after another.

    Attributes:
        seq: The last event that it includes.
        sides: The sides that the judges chose.
        open: The duels that wait for an answer, and which judge was asked.
        failed: The duels that are skipped because the judge failed, and that judge.
        unusable: The duels that are skipped because no reply had a usable answer, and that judge.
        replies: Of each duel that a judge has answered its first reply, and that judge.
        repeated: The duels of which a judge has repeated its answer, or given another one.
        asked: For each judge and pair of arms, the items that it was asked about.
        confirming: The duels that some run asks in the other order now, or asked when it was killed.
        holders: Of each question that is asked now, or was when its run was killed: that run, and when. The key is the
            duel, and whether it is a repeat.
        fingerprints: For each judge that has answered, what it was, see `judges.fingerprints`.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.sides = Sides()
        self.open: dict[int, str | None] = {}
        self.failed: dict[int, str | None] = {}
        self.unusable: dict[int, str | None] = {}
        self.replies: dict[int, tuple[str | None, str]] = {}
        self.repeated: set[int] = set()
        self.asked: dict[tuple[str | None, frozenset[str]], set[int]] = {}
        self.confirming: set[int] = set()
        self.holders: dict[tuple[int, bool], tuple[str, float]] = {}
        self._one_order: dict[str | None, dict[int, None]] = {}  # duels that a judge answered left or right once
        self.fingerprints: dict[str | None, set[str]] = {}
        self.calls = self._stored = self._bad = self._failed = self._repeats = self._second_opinions = 0
        self._identical = 0
        self._same: dict[str | None, list[bool]] = {}  # of each judge's repeats, whether it gave the same answer
        self.cost = 0.0
        self._answers: list[tuple[int, str | None, str]] = []  # duel, judge and chosen arm, of duels asked twice
        self._first: dict[int, tuple[str | None, str]] = {}  # judge and chosen arm of each duel

    def take(self, entry: LogEntry) -> None:
        """Add the next event."""
        self.seq, duel = entry.seq, entry.duel
        if duel is None:
            return
        if entry.kind == "undo" and duel in self._first:
            self._reopen(duel)
            self.open[duel] = self._first[duel][0]
            self._settle(duel)
        elif "calls" not in entry.note:
            if entry.kind == "tell":  # by somebody else
                self.open.pop(duel, None)
                self.holders.pop((duel, False), None)
        elif entry.kind in ("ask", "again"):
            self._begin(entry, duel)
        elif entry.kind in ("tell", "repeat"):
            self._end(entry, duel)

    def _begin(self, entry: LogEntry, duel: int) -> None:
        self.calls += entry.note["calls"]
        if "run" in entry.note and "confirms" not in entry.note:
            asked = datetime.fromisoformat(entry.time).timestamp()
            self.holders[duel, "repeats" in entry.note] = entry.note["run"], asked
        if entry.kind == "ask" or duel in self.open:  # else another judge is asked again
            self.open[duel] = entry.voter
        if "confirms" in entry.note:
            self.confirming.add(duel)
        elif "repeats" in entry.note:
            self._repeats += entry.note["calls"]
        else:
            self._reopen(duel)
        if "item" in entry.note:
            arms = frozenset((entry.left or "", entry.right or ""))
            self.asked.setdefault((entry.voter, arms), set()).add(entry.note["item"])

    def _reopen(self, duel: int) -> None:
        """What was skipped without the judge's wish is asked again."""
        self.failed.pop(duel, None)
        self.unusable.pop(duel, None)

    def _end(self, entry: LogEntry, duel: int) -> None:
        note, answer = entry.note, entry.answer or "skip"
        if "replies" not in note:
            self.holders.pop((duel, "repeats" in note), None)
        if "identical" in note:
            self._identical += 1
            self.open.pop(duel, None)
            return
        begun = 2 if "first" in note else 1
        self.calls += note["calls"] - begun  # retries
        self._stored += note["calls"]
        self.cost += note.get("cost", 0.0)
        self._bad += note.get("unusable", 0)
        self._failed += note.get("failed", False)
        if "judge" in note and answer != "skip":
            self.fingerprints.setdefault(entry.voter, set()).add(note["judge"])
        choice = {"left": entry.left, "right": entry.right}.get(answer) or answer
        if "replies" in note:
            self._settle(duel)
        if "repeats" in note:
            self._take_repeat(entry, duel, answer)
            return
        if entry.kind == "repeat":
            self._take_second_opinion(duel, entry.voter, choice)
            return
        self.open.pop(duel, None)
        self._reopen(duel)
        if "failed" in note:
            self.failed[duel] = entry.voter
        elif "bad" in note:
            self.unusable[duel] = entry.voter
        if answer != "skip" and "replies" not in note:
            self.replies[duel] = entry.voter, note.get("first", answer)
        if self.is_first(duel):
            self.sides.add(entry.voter, note.get("first", answer))
        self._first[duel] = entry.voter, choice
        if answer in ("left", "right") and "first" not in note:
            self._one_order.setdefault(entry.voter, {})[duel] = None

    def _settle(self, duel: int) -> None:
        """Its answer was given in both orders, or taken back."""
        self.confirming.discard(duel)
        for duels in self._one_order.values():
            duels.pop(duel, None)

    def _take_repeat(self, entry: LogEntry, duel: int, answer: str) -> None:
        self._repeats += entry.note["calls"] - 1  # retries
        if answer != "skip":
            self.repeated.add(duel)
            self._same.setdefault(entry.voter, []).append("contradicts" not in entry.note)

    def _take_second_opinion(self, duel: int, judge: str | None, choice: str) -> None:
        first = self._first.get(duel)
        if first is not None and first[0] != judge:
            self._second_opinions += 1
            self._answers += [(duel, *first), (duel, judge, choice)]

    def is_first(self, duel: int) -> bool:
        """Return whether a duel has no answer of a judge yet, so that its coin has not counted for a side."""
        return duel not in self._first

    def find_unconfirmed(self) -> dict[int, str | None]:
        """Return what judges with an alarm answered left or right in one order only: the duel and the judge.

        Those that no run asks in the other order now come first.
        """
        biased = [one.judge for one in self.positions() if one.biased]
        found = {duel: judge for judge in biased for duel in self._one_order.get(judge, ())}
        return dict(sorted(found.items(), key=lambda one: (one[0] in self.confirming, one[0])))

    def total(self) -> Spent:
        """Return the totals."""
        unstored = self.calls - self._stored
        about = self._repeats, self._second_opinions, self._identical
        return Spent(self.calls, unstored, self.cost, self._bad, self._failed, *about)

    def calls_in(self, cost: float) -> float:
        """Return how many calls a cost pays for, at the mean so far; infinite before the first."""
        return cost * self._stored / self.cost if self.cost > 0 else math.inf

    def positions(self) -> list[Position]:
        """Return how often each judge chose each side."""
        return self.sides.positions()

    def repeatability(self) -> list[Repeatability]:
        """Return how often the judges of whom a question was repeated gave the same answer."""
        return [Repeatability(judge, len(same), sum(same)) for judge, same in self._same.items()]

    @property
    def contradictions(self) -> int:
        """How many repeats have another answer than the judge's first reply."""
        return sum(one.repeats - one.same for one in self.repeatability())

    def agreements(self) -> list[Agreement]:
        """Return how often the judges agree on the questions that two of them answered."""
        return compare_judges(self._answers)


class Limits(NamedTuple):
    """How much a study may spend, over all its runs."""

    calls: int | None
    cost: float | None


def check_limits(max_calls: object, max_cost: object) -> Limits:
    """Return the limits of a run.

    Raises:
        InvalidInput: If one of them is not a positive number.
    """
    calls = None if max_calls is None else check_int("max_calls", max_calls, 1)
    if max_cost is not None and (
        isinstance(max_cost, bool) or not isinstance(max_cost, int | float) or not 0 < max_cost < math.inf
    ):
        raise InvalidInput(f"max_cost is {max_cost!r}: expected a positive number")
    return Limits(calls, max_cost)


class Budget:
    """The calls that a run may still make.

    The ledger has the calls that the log says were begun. Two kinds are not there yet: those of questions that are just
    being asked, which the thread of the database reserves, and further calls of questions in flight, which the event
    loop claims when a call has failed, or its reply has no usable answer.

    Args:
        limits: What the study may spend.
        ledger: What it has spent.
    """

    def __init__(self, limits: Limits, ledger: Ledger) -> None:
        self.limits, self._ledger = limits, ledger
        self._lock = threading.Lock()
        self._claimed = self._released = 0  # further calls, counted by the event loop and by the database's thread
        self._reserved = 0

    def limit_of(self, calls: int) -> Literal["max_calls", "max_cost"] | None:
        """Return the limit that so many calls more would exceed; None if there is none."""
        needed = self._count_begun() + calls
        by_calls, by_cost = self._most_calls()
        return "max_calls" if needed > by_calls else "max_cost" if needed > by_cost else None

    def reserve(self, most: int, orders: int) -> int:
        """Reserve the calls of up to so many questions, instead of those before; returns how many may be asked.

        Args:
            most: How many questions are wanted.
            orders: How many calls each takes.
        """
        with self._lock:
            allowed = int(min(most, (min(self._most_calls()) - self._count_begun()) / orders))
            self._reserved = allowed * orders
        return allowed

    def settle(self) -> None:
        """The ledger has what was reserved."""
        self._reserved = 0

    def claim(self) -> bool:
        """Claim a further call for a question in flight; returns whether the limits allow it."""
        with self._lock:
            if self._count_begun() + self._reserved >= min(self._most_calls()):
                return False
            self._claimed += 1
        return True

    def unclaim(self) -> None:
        """A further call that was claimed is not made."""
        with self._lock:
            self._claimed -= 1

    def release(self, calls: int) -> None:
        """The ledger has so many of the calls that were claimed."""
        self._released += calls

    def _count_begun(self) -> int:
        return self._ledger.calls + self._claimed - self._released

    def _most_calls(self) -> tuple[float, float]:
        """How many calls the study may make by either limit; lost calls cost as much as others."""
        calls = math.inf if self.limits.calls is None else self.limits.calls
        return calls, math.inf if self.limits.cost is None else self._ledger.calls_in(self.limits.cost)


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


def follow(log: EventStudy, ledger: Ledger) -> Ledger:
    """Return a ledger that includes everything up to now. Only what is new since its last event is read.

    Args:
        log: The study.
        ledger: An earlier one, which is extended; an empty one at first. If a voter was forgotten since, whose name it
            may have, it is not used.

    Example:
        >>> activity_of(follow(study, Ledger())).calls
        212
    """
    last = log._log.history().seq
    if last == ledger.seq:
        return ledger
    if ledger.seq and _rows(log, ledger.seq, last, events.c.kind == "forget"):
        ledger = Ledger()
    rows = _rows(log, ledger.seq, last, OF_CALLS)
    for start in range(0, len(rows), PAGE):  # others may write in between
        page = rows[start : start + PAGE]
        for entry in log._log.read(lambda _, history: [log_entry(history, row) for row in page]):  # noqa: B023  # called here
            ledger.take(entry)
    ledger.seq = last
    return ledger


def _rows(log: EventStudy, after: int, last: int, which: sa.ColumnElement[bool]) -> list[Event]:
    columns = [events.c[name] for name in EVENT_COLUMNS]
    new = sa.and_(events.c.study_id == log._log.id, events.c.seq > after, events.c.seq <= last)
    with log._log.storage.read_connection() as connection:
        return [Event(*row) for row in connection.execute(sa.select(*columns).where(new, which).order_by(events.c.seq))]
