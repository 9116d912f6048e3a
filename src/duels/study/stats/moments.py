"""Evidence in the order in which questions were asked: was a winner certain at some moment?

Answers that come late, or never, may depend on who wins. So evidence is read in asking order: at each moment it has the
questions up to then, and those still open count as lost by the arm that is to be named. The true answers can only add
to that, and a winner is named if it was certain at any moment. `docs/study/proofs.md` has the proof.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .certainty import CertaintyTest
from .tally import Bools, Floats, Ints, Tally

WON, LOST, TIED, UNANSWERED = range(4)  # of the arm on the left


class Answered(NamedTuple):
    """Questions in asking order, from one that is known to all that were asked.

    Attributes:
        begin: The number of the first.
        closed: How many of them, from the first on, will not change any more.
        left: (n,) int64: The arms on the left.
        right: (n,) int64: The arms on the right.
        outcome: (n,) int64: WON, LOST, TIED or UNANSWERED; −1 where nothing counts, such as a skip.
        votes: (n,) int64: How many votes each stands for.
        moment: (n,) int64: When each is read. The rows of an import share a moment: their order says nothing.
    """

    begin: int
    closed: int
    left: Ints
    right: Ints
    outcome: Ints
    votes: Ints
    moment: Ints


class Moments:
    """Which arm was certain to win at some moment, extended as questions are answered.

    Args:
        tally: The arms, which are active, and what a verdict is about; its counts do not matter.
        confidence: Of the verdict.
    """

    def __init__(self, tally: Tally, confidence: float) -> None:
        self._arms, self._active = len(tally.names), tally.active.copy()
        none = np.zeros((self._arms, self._arms), np.int64)
        self._test = CertaintyTest(tally._replace(wins=none, ties=none, open=None), confidence)
        self._lock = threading.Lock()
        self.read = 0  # questions that were read, and will not change any more
        self.named: int | None = None  # the arm that was certain at the last moment at which one was
        self.wins, self.ties = np.zeros((2, self._arms, self._arms), np.int64)
        self._sure, self._firm = np.zeros((2, self._arms, self._arms), bool)

    def look(self, answered: Answered) -> int | None:
        """Return the arm that was certain to win at some moment; None if there was none.

        Args:
            answered: The questions after those that were read.
        """
        with self._lock:
            skipped = self.read - answered.begin  # another thread may have read some meanwhile
            if skipped < 0:
                return self.named
            closed = _between(answered, skipped, answered.closed)
            if len(closed.left):
                self._take(closed)
            found = self._search(_between(answered, answered.closed, len(answered.left)), keeps=False)
            return self.named if found is None else found

    def counts(self) -> tuple[Ints, Ints]:
        """Return the wins and ties of the questions that were read: no open one was asked before any of them."""
        with self._lock:
            return self.wins.copy(), self.ties.copy()

    def _take(self, closed: Answered) -> None:
        found = self._search(closed, keeps=True)
        self.named = self.named if found is None else found
        self.read += len(closed.left)

    def _search(self, some: Answered, keeps: bool) -> int | None:
        """The arm that was certain at the last moment of these at which one was; with `keeps`, they are counted."""
        counted = (some.outcome >= 0) & (some.left != some.right)
        if not counted.any():
            return None
        left, right, outcome = some.left[counted], some.right[counted], some.outcome[counted]
        votes, moment = some.votes[counted], some.moment[counted]
        low, high = np.minimum(left, right), np.maximum(left, right)
        swapped = left > right
        won = np.where(swapped, outcome == LOST, outcome == WON) * votes
        lost = np.where(swapped, outcome == WON, outcome == LOST) * votes
        tied, waiting = (outcome == TIED) * votes, (outcome == UNANSWERED) * votes
        order = np.argsort(low * self._arms + high, kind="stable")
        low, high, moment = low[order], high[order], moment[order]
        is_first = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))
        won = _running_sums(won[order], is_first, self.wins[low, high])
        lost = _running_sums(lost[order], is_first, self.wins[high, low])
        tied = _running_sums(tied[order], is_first, self.ties[low, high])
        waiting = _running_sums(waiting[order], is_first, np.zeros(len(low), np.int64))
        known = (
            (low, high, self._weigh(won, lost + waiting, tied)),
            (high, low, self._weigh(lost, won + waiting, tied)),
        )
        is_last = np.append(is_first[1:], True)
        found = self._name(known, moment, is_first, is_last, self._sure, self._test.levels.winner, keeps)
        if 1 < self._active.sum() < self._arms:
            others = self._name(known, moment, is_first, is_last, self._firm, self._test.levels.all_pairs, keeps)
            found = max((one for one in (found, others) if one is not None), default=None)
        if keeps:
            last = np.flatnonzero(is_last)
            ends = low[last], high[last]
            self.wins[ends], self.wins[ends[::-1]] = won[last], lost[last]
            self.ties[ends] = self.ties[ends[::-1]] = tied[last]
        return None if found is None else found[1]

    def _weigh(self, won: Ints, lost: Ints, tied: Ints) -> Floats:
        known = np.full(len(won), -np.inf)
        ahead = won > lost
        if ahead.any():
            known[ahead] = self._test.sampling.weigh(won[ahead], lost[ahead], tied[ahead])
        return known

    def _name(
        self,
        known: Sequence[tuple[Ints, Ints, Floats]],
        moment: Ints,
        is_first: Bools,
        is_last: Bools,
        sure: Bools,
        level: Callable[[Ints, Ints], Floats],
        keeps: bool,
    ) -> tuple[int, int] | None:
        """The last moment at which an arm was certain to beat all that it must, and the arm; None if there is none.

        Args:
            known: For both sides of each pair: the arms, and the evidence after each of its questions.
            moment: When each question is read.
            is_first: Which is the first one of a pair.
            is_last: Which is the last one of a pair.
            sure: (K, K) bool: Which pairs were certain before; changed with `keeps`.
            level: The evidence that pairs need.
            keeps: Whether to keep what is certain afterwards.
        """
        must_beat = np.ones(self._arms, bool) if sure is self._sure else self._active
        beaten = (sure & must_beat).sum(axis=1)
        arms, changes, times = [], [], []
        for first, second, evidence in known:
            now = evidence >= level(first, second)
            before = np.where(is_first, sure[first, second], np.append(False, now[:-1]))
            counts = must_beat[second]
            arms.append(first)
            changes.append((now.astype(np.int64) - before) * counts)
            times.append(moment)
            if keeps:
                sure[first[is_last], second[is_last]] = now[is_last]
        arm, change, time = (np.concatenate(parts) for parts in (arms, changes, times))
        order = np.lexsort((time, arm))
        arm, change, time = arm[order], change[order], time[order]
        starts = np.append(True, arm[1:] != arm[:-1])
        beats = _running_sums(change, starts, beaten[arm])
        ends = np.append((arm[1:] != arm[:-1]) | (time[1:] != time[:-1]), True)  # after all that is read at a moment
        needed = must_beat.sum() - must_beat[arm]
        wins = ends & self._active[arm] & (beats == needed)
        if not wins.any():
            return None
        last = int(np.flatnonzero(wins)[time[wins].argmax()])
        return int(time[last]), int(arm[last])


def _between(answered: Answered, begin: int, end: int) -> Answered:
    columns = (column[begin:end] for column in answered[2:])
    return Answered(answered.begin + begin, end - begin, *columns)


def _running_sums(values: Ints, is_first: Bools, base: Ints) -> Ints:
    """Running sums within groups that begin where `is_first`, added to what each group starts with."""
    total = np.cumsum(values)
    start = np.flatnonzero(is_first)
    before = (total - values)[start]
    group = np.cumsum(is_first) - 1
    return np.asarray(total - before[group] + base)
