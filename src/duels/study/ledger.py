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
"""

import math
from datetime import datetime
from typing import NamedTuple

from .agreement import Agreement, agreements
from .duels import LogEntry
from .positions import Position, Sides
from .repeatability import Repeatability


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
        return agreements(self._answers)
