"""How fast answers come, and whether anybody still answers.

A look at a study: what its verdict depends on at one moment, copied so that it is computed without holding the lock.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..stats.about import THESE_ITEMS
from ..stats.certainty import CertaintyTest
from ..stats.exhausted import find_exhausted
from ..stats.forecast import Forecast, count_questions_left, make_forecast
from ..stats.goal import Goal
from ..stats.leaderboard import Leaderboard, leaderboard
from ..stats.moments import LOST, TIED, UNANSWERED, WON, Answered, Moments
from ..stats.reach import Reach, find_reach
from ..stats.tally import Bools, Floats, Ints, Tally
from ..stats.verdict import Answerers, Missing, Verdict, with_effect

if TYPE_CHECKING:
    from .counts import StudyCounts


RATE_WINDOW = 100  # most recent answers used to estimate the rate
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


def measure_pace(record: "StudyCounts", now: float) -> Pace:
    """Return how fast the last answered duels were asked, without past votes."""
    lately = [record.asked[duel] for duel in record.answered[-RATE_WINDOW:] if not _is_imported(record, duel)]
    seconds = max(lately) - min(lately) if len(lately) > 1 else 0.0
    if seconds <= 0 or record.last_told is None:
        return Pace(None, record.last_told, None)
    pause = seconds / (len(lately) - 1)
    quiet = max(QUIET, PAUSES * pause)
    return Pace(3600 / pause if now - record.last_told < quiet else None, record.last_told, quiet)


def _is_imported(record: "StudyCounts", duel: int) -> bool:
    place = bisect_right(record.imports, (duel, len(record.left)))
    return place > 0 and duel < record.imports[place - 1][1]


OUTCOMES = np.array([WON, LOST, TIED, TIED])  # by answer: left, right, tie and both bad
FEW_ARMS = 100  # with more, it is not looked for whether any question that is left can help


class Columns(NamedTuple):
    """The answers that count, and the questions that are open, in the order in which they were asked."""

    left: Ints  # (n,): arms
    right: Ints
    answer: Ints  # as in `record`; negative for an open question
    item: Ints  # the item's number; −1 for none
    person: Ints  # who gave it; negative where that is not a person who is known


class Look(NamedTuple):
    """A study at one moment.

    Attributes:
        goal: What it is to find out.
        tally: The answers that count, and the questions that are open.
        moments: Which arm was certain at some moment.
        answered: The questions that it has not read yet.
        void: Why nothing is promised, if so.
        answerers: Who gave the answers.
        skipped: (K, K) int64: Questions that were skipped.
        expired: (K, K) int64: Questions without an answer within the lease.
        left: (K, K) int64: Questions that can still be answered; None if there is no end of them.
        contradictions: How often a judge whose answers were to be final contradicted itself.
        answers: Returns who answered what, which takes a while; None where only the verdict itself is wanted.
        asked: (K,) bool: Which arms can be asked about now; None if all.
    """

    goal: Goal
    tally: Tally
    moments: Moments
    answered: Answered
    void: str | None
    answerers: Answerers
    skipped: Ints
    expired: Ints
    left: Ints | None
    contradictions: int = 0
    answers: Callable[[], Columns] | None = None
    asked: Bools | None = None

    def verdict(self, margin: float | None = None, void: str | None = None) -> Verdict:
        """Return the verdict.

        Args:
            margin: By default the goal's.
            void: A further reason why nothing is promised.
        """
        tally = self.tally
        # The comparisons made change with every answer: what was true of those up to an earlier moment may be false of
        # all of them. So only this moment counts, with all open questions as lost.
        named = None if tally.returning else self.moments.look(self.answered)
        reasons = " and ".join(filter(None, (self.void, void))) or None
        known: dict[str, Any] = {"void": reasons, "answerers": self.answerers, "contradictions": self.contradictions}
        named_arm = None if named is None else tally.names[named]
        found = self.goal.verdict(tally, margin, named=named_arm, left=self.questions_left(), **known)
        if found.kind == "not yet" and not tally.returning and tally.open is not None and tally.open.any():
            # What was certain before the first open question was asked is certain now.
            wins, ties = self.moments.counts()
            before = tally._replace(wins=wins, ties=ties, open=None)
            earlier = self.goal.verdict(before, margin, duels=found.duels, **known)
            found = found if earlier.kind == "not yet" else with_effect(earlier, tally)
        if found.kind == "winner":
            winner = tally.names.index(found.winner or "")
            return _with(found, missing=self._find_missing(winner), **self._reaches(winner))
        if found.kind == "not yet" and self.left is not None:
            margin = self.goal.margin if margin is None else margin
            exhausted = find_exhausted(tally, self.left, self.goal.confidence, margin)
            return found if exhausted is None else _with(found, exhausted=exhausted, _answers_to_go=dict)
        return found

    def leaderboard(self, confidence: float | None = None) -> Leaderboard:
        """Return one row per arm, best first, and by what the arms are ranked; see `Study.leaderboard`."""
        verdict = self.verdict()
        tally = self.tally._replace(open=None)
        return leaderboard(tally, confidence or self.goal.confidence, verdict.named, verdict.winner)

    def forecast(self, answers_an_hour: float | None = None) -> Forecast:
        """Return the estimates before the verdict.

        Args:
            answers_an_hour: How fast answers come.
        """
        verdict = self.verdict()
        return make_forecast(
            self.tally,
            confidence=self.goal.confidence,
            margin=self.goal.margin,
            left=self.questions_left() if verdict.exhausted is None else np.zeros(self.tally.wins.shape),
            known=verdict.kind != "not yet",
            answers_an_hour=answers_an_hour,
        )

    def questions_left(self) -> Floats | None:
        """Return (K, K) float64: how many questions about each pair can be asked, see `make_forecast`."""
        if self.asked is None:
            return None if self.left is None else self.left.astype(np.float64)
        both = np.outer(self.asked, self.asked) & ~np.eye(len(self.asked), dtype=bool)
        return np.where(both, count_questions_left(self.tally) if self.left is None else self.left, 0.0)

    def before_first(self, items: int) -> "Look":
        """Return the same look with so many items to ask each pair of active arms about, before the first question."""
        left = np.where(np.outer(self.tally.active, self.tally.active), items, 0)
        np.fill_diagonal(left, 0)
        return self._replace(tally=self.tally._replace(items=items), left=left)

    def _reaches(self, winner: int) -> dict[str, Reach]:
        """Whether the winner also wins on other items, and with other people, where the verdict does not say so."""
        if self.answers is None or self.tally.is_finite:
            return {}
        asks_again = self.goal.about == THESE_ITEMS and self.tally.items is not None
        comes_back = self.tally.returning and self.answerers.people > 0
        if not (asks_again or comes_back):
            return {}
        given = self.answers()
        settings: dict[str, Any] = {"winner": winner, "active": self.tally.active}
        settings |= {"started_with": self.tally.started_with, "delta": 1 - self.goal.confidence}
        found = {}
        if asks_again:
            found["other_items"] = find_reach(given.left, given.right, given.answer, given.item, **settings)
        if comes_back:
            found["other_people"] = find_reach(given.left, given.right, given.answer, given.person, **settings)
        return found

    def _find_missing(self, winner: int) -> Missing | None:
        """The questions about the winner without an answer that counts, and whether it would win without them."""
        skipped, expired = self.skipped[winner], self.expired[winner]
        if not (skipped.any() or expired.any()):
            return None
        more = np.zeros(self.tally.wins.shape, np.int64)
        more[winner] = skipped + expired
        waiting = more if self.tally.open is None else more + self.tally.open
        test = CertaintyTest(self.tally._replace(open=waiting), self.goal.confidence)
        others = np.arange(len(self.tally.names)) != winner
        return Missing(
            skipped=int(skipped.sum()), expired=int(expired.sum()), stands=bool(test.beats[winner, others].all())
        )


def read_columns(record: "StudyCounts") -> Columns:
    """Return who answered what, and who is asked now, in the order of the questions."""
    doubles = find_doubles(record)
    number = np.sort(np.concatenate([np.array(record.answered, np.int64), np.array(list(record.fresh), np.int64)]))
    number = number[~np.isin(number, list(doubles))]
    item = np.zeros(len(record.left), np.int64) if record.items is None else np.array(record.items.of, np.int64)
    return Columns(
        np.array(record.left, np.int64)[number],
        np.array(record.right, np.int64)[number],
        np.array(record.answer, np.int64)[number],
        np.where(item > 0, item, -1)[number],
        np.array(record.person, np.int64)[number],
    )


def find_expired(record: "StudyCounts", leased: Sequence[int]) -> list[int]:
    """Return the open duels past their lease whose question no other duel asks."""
    known = {*leased, *record.asked_again}
    return [duel for duel in record.open if duel not in known]


def find_doubles(record: "StudyCounts") -> set[int]:
    """Return the duels that stand back, since another that asks the same counts, or may still count.

    At most one of the duels that ask the same counts in the end. While the first is within its lease it is read as
    open, whatever the others have brought.
    """
    found: set[int] = set()
    if record.items is not None and record.items.size:
        for duel in record.fresh:
            later = record.later(duel)
            found.update(later)
            counting = record.items.find_counting(duel, record.left[duel], record.right[duel])
            if counting is not None and counting not in later:
                found.add(duel)
    return found


def without_early(
    record: "StudyCounts", tally: Tally, left: Ints | None, doubles: set[int]
) -> tuple[Tally, Ints | None]:
    """Return a tally without answers that stand back, see `find_doubles`, and with them the questions that are left."""
    early = [duel for duel in doubles if record.counting[duel] and record.left[duel] != record.right[duel]]
    if not early:
        return tally, left
    wins, ties = tally.wins.copy(), tally.ties.copy()
    left = None if left is None else left.copy()
    for duel in early:
        i, j, outcome = record.left[duel], record.right[duel], int(OUTCOMES[record.answer[duel]])
        if outcome == TIED:
            ties[i, j] -= 1
            ties[j, i] -= 1
        else:
            winner, loser = (i, j) if outcome == WON else (j, i)
            wins[winner, loser] -= 1
        if left is not None:
            left[i, j] += 1
            left[j, i] += 1
    return tally._replace(wins=wins, ties=ties), left


def count_questions(record: "StudyCounts", duels: Sequence[int]) -> Ints:
    """Return (K, K) int64: how many of these duels each pair has."""
    found = np.zeros(record.wins.shape, np.int64)
    for duel in duels:
        left, right = record.left[duel], record.right[duel]
        if left != right:
            found[left, right] += 1
            found[right, left] += 1
    return found


def read_questions(record: "StudyCounts", begin: int, first_open: int, doubles: Collection[int]) -> Answered:
    """Return the questions from one on, of which those before the first open one will not change any more."""
    number = np.arange(begin, len(record.left))
    answer = np.array(record.answer[begin:], np.int8)
    counting = np.array(record.counting[begin:], np.int8) == 1
    outcome = np.where(counting, OUTCOMES[np.clip(answer, 0, len(OUTCOMES) - 1)], -1)
    still_open = [duel - begin for duel in record.fresh if duel >= begin]
    outcome[still_open] = UNANSWERED
    outcome[[duel - begin for duel in doubles if duel >= begin]] = -1
    moment = number.copy()
    for first, end in record.imports:
        if end > begin:
            moment[max(first - begin, 0) : end - begin] = end - 1
    return Answered(
        begin,
        max(first_open - begin, 0),
        np.array(record.left[begin:], np.int64),
        np.array(record.right[begin:], np.int64),
        outcome,
        record.votes_of(number) if record.count else np.ones(len(number), np.int64),
        moment,
    )


def find_asked_arms(record: "StudyCounts") -> Bools | None:
    """Return (K,) bool: which arms can be asked about now; None if all. A retired study asks nothing."""
    limited = record.items is not None and record.items.size > 0
    if not record.retired and not limited:
        return None
    found = np.zeros(len(record.names), bool)
    if not record.retired and record.items is not None:
        found[[arm for arm in record.places if arm in record.items.ready]] = True
    return found


def count_left(record: "StudyCounts") -> Ints | None:
    """Return (K, K) int64: how many items each pair of active arms can still get answers about; None without an end."""
    if record.items is None or not record.items.asks_once or len(record.names) > FEW_ARMS:
        return None
    found = np.zeros(record.wins.shape, np.int64)
    ready = [arm for arm in record.places if arm in record.items.ready]
    for place, i in enumerate(ready):
        for j in ready[place + 1 :]:
            found[i, j] = found[j, i] = record.items.count_left(i, j)
    return found


def _with(verdict: Verdict, **more: Any) -> Verdict:
    """The same verdict with further fields; what is computed when it is looked at stays so."""
    verdict.__dict__.update({name: value for name, value in more.items() if value is not None})
    return verdict
