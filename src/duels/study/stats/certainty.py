"""Which pairs of arms are certain, under two promises that hold at every look.

Tables make a promise about *all pairs*: with probability 1 − δ, every interval and every certain pair is right. It is a
union bound over the pairs. The *verdict* promises only that no verdict is ever wrong, and needs far fewer answers for
that. A test has its evidence from `sampling` and the evidence that pairs need from `levels`.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ...errors import InvalidInput
from ...policies.evidence import LOG_2
from .levels import Levels, TableLevels, levels_of, share
from .sampling import ByTables, Sampling, sampling_of
from .tally import Bools, Floats, Ints, Tally, count_met


def log_thresholds(tally: Tally, confidence: float = 0.95) -> Floats:
    """Return (K, K) float64: ln(1/δ′) of each pair, infinite on the diagonal."""
    with np.errstate(divide="ignore"):
        return -np.log(share(1 - check_confidence(confidence), tally))


def certainly_beats(tally: Tally, confidence: float = 0.95) -> Bools:
    """Return (K, K) bool: whether i beats j for certain; ties do not count, and retired arms are included."""
    return CertaintyTest.of_tables(tally, check_confidence(confidence)).beats


class CertaintyTest:
    """Which pairs are certain, of all at once.

    The winner must have beaten the retired arms too. Where it has not, each of its pairs must be in `firm`: certain on
    its own, by a union over all pairs.

    Args:
        tally: The counts.
        confidence: Of the verdict.
        levels: How much evidence pairs need; by default what the verdict of such a study needs.
        sampling: What the evidence is; by default as the questions of such a study are drawn.
    """

    def __init__(
        self, tally: Tally, confidence: float, levels: Levels | None = None, sampling: Sampling | None = None
    ) -> None:
        self.tally, self._confidence = tally, confidence
        self.levels = levels_of(tally, confidence) if levels is None else levels
        self.sampling = sampling_of(tally) if sampling is None else sampling

    @classmethod
    def of_tables(cls, tally: Tally, confidence: float) -> "CertaintyTest":
        """Return the test of the promise about all pairs."""
        return cls(tally, confidence, TableLevels(tally, confidence), ByTables())

    @cached_property
    def _leading(self) -> tuple[Ints, Ints, Floats]:
        """The pairs that may be certain, and their evidence; few lead by enough, see `policies.evidence.is_certain`."""
        tally = self.tally
        if tally.is_finite:
            first, second = np.nonzero(tally.wins > tally.wins.T)
        else:
            lead = tally.wins - (tally.wins.T if tally.open is None else tally.wins.T + tally.open)
            level = self.levels.start()
            place = np.flatnonzero(lead >= max(level / LOG_2, 1.0))  # ln 2 · lead² ≥ level · n, and n ≥ lead
            first, second = np.divmod(place, len(lead))
            ahead, n = lead[first, second], 2 * tally.wins[first, second] - lead[first, second]
            enough = LOG_2 * ahead * ahead >= level * n
            first, second = first[enough], second[enough]
        return first, second, self.evidence(first, second)

    @cached_property
    def firm(self) -> Bools:
        """(K, K) bool: Whether i beats j for certain on its own."""
        first, second, known = self._leading
        return self._pairs_where(first, second, known >= self.levels.all_pairs(first, second))

    @cached_property
    def beats(self) -> Bools:
        """(K, K) bool: Whether i beats j with the evidence that a winner needs; retired arms included."""
        first, second, known = self._leading
        return self._pairs_where(first, second, known >= self.levels.winner(first, second))

    @cached_property
    def wins(self) -> Bools:
        """(K, K) bool: The same, where both are active and i has beaten the retired arms; else `firm`."""
        both = np.outer(self.tally.active, self.tally.active)
        return np.where(self._beats_retired[:, None], self.beats, self.firm) & both

    @cached_property
    def losses(self) -> Bools:
        """(K, K) bool: Whether i beats j with the evidence that "no winner" needs; both are active."""
        tally = self.tally
        if tally.active.all() and len(tally.names) == tally.started_with > 1:
            first, second, known = self._leading
            return self._pairs_where(first, second, known >= self.levels.no_winner())
        return np.asarray(self.firm & np.outer(tally.active, tally.active))

    @cached_property
    def _beats_retired(self) -> Bools:
        """(K,) bool: which arms beat all retired ones."""
        itself = np.eye(len(self.tally.names), dtype=bool)
        return np.asarray((self.beats | itself)[:, ~self.tally.active].all(axis=1))

    def evidence(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that the first arms of these pairs beat the second ones, as a logarithm."""
        return self.sampling.weigh(*self._count(first, second))

    def closeness(self, first: Ints, second: Ints, margin: float) -> Floats:
        """Return the evidence that the first arms of these pairs are close to the second ones, as a logarithm."""
        return self.sampling.weigh_closeness(*self._count(first, second), margin)

    def _count(self, first: Ints, second: Ints) -> tuple[Ints, Ints, Ints]:
        """What the first arms won, lost and tied, where questions without an answer count as lost."""
        return self.tally.wins[first, second], losses_of(self.tally, first, second), self.tally.ties[first, second]

    def certain(self) -> Bools:
        """Return (K, K) bool: whether i beats j for certain by the promise about all pairs; retired arms included."""
        return self.firm if self.tally.is_finite else certainly_beats(self.tally, self._confidence)

    def excess(self) -> Floats:
        """Return (K, K) float64: the evidence above what `certain` needs, as a logarithm."""
        if not self.tally.is_finite:
            lost = self.tally.wins.T if self.tally.open is None else self.tally.wins.T + self.tally.open
            return np.asarray(ByTables().weigh(self.tally.wins, lost) - log_thresholds(self.tally, self._confidence))
        arm = np.arange(len(self.tally.names))
        pairs = np.broadcast_arrays(arm[:, None], arm)
        return np.asarray(self.evidence(*pairs) - self.levels.all_pairs(*pairs))

    @property
    def only_arm_wins(self) -> bool:
        """Whether the only arm that is left is the winner."""
        return len(self.tally.names) > 1 and bool(self._beats_retired[self.tally.active].all())

    def close(self, margin: float, fit: Bools | None = None) -> Bools:
        """Return (K, K) bool: whether i is certain not to lose to j by more than the margin; true on the diagonal.

        Args:
            margin: Of the verdict.
            fit: (K,) bool: Which arms i to check; by default all.
        """
        first, second = np.nonzero(count_met(self.tally) if fit is None else count_met(self.tally) * fit[:, None])
        known, itself = self.closeness(first, second, margin), np.eye(len(self.tally.names), dtype=bool)
        to_all = self._pairs_where(first, second, known >= self.levels.close(first, second)) | itself
        all_pairs = self._pairs_where(first, second, known >= self.levels.all_pairs(first, second)) | itself
        to_retired = np.asarray(to_all[:, ~self.tally.active].all(axis=1))
        return np.where(to_retired[:, None], to_all, all_pairs)

    def missing_evidence(self, arm: int) -> Floats:
        """Return (K,) float64: how much more evidence an arm needs against each other one, as a logarithm."""
        others = np.arange(len(self.tally.names))
        first = np.full(len(others), arm)
        known = np.maximum(self.evidence(first, others), self.sampling.least)
        return np.asarray(self.level_to_win(first, others) - known)

    def level_to_win(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that the first arms need to win against the second ones, given the retired arms."""
        levels = self.levels.winner(first, second), self.levels.all_pairs(first, second)
        return np.where(self._beats_retired[first], *levels)

    def level_to_be_close(self, first: Ints, second: Ints, margin: float) -> Floats:
        """Return the evidence that the first arms need to be close to the second ones, given the retired arms."""
        retired, arms = np.flatnonzero(~self.tally.active), np.arange(len(self.tally.names))
        one, other = np.repeat(arms, len(retired)), np.tile(retired, len(arms))
        near = (self.closeness(one, other, margin) >= self.levels.close(one, other)) | (one == other)
        near_all = near.reshape(len(arms), len(retired)).all(axis=1)
        return np.where(near_all[first], self.levels.close(first, second), self.levels.all_pairs(first, second))

    def _pairs_where(self, first: Ints, second: Ints, values: Bools) -> Bools:
        found = np.zeros(self.tally.wins.shape, dtype=bool)
        found[first, second] = values
        return found


class CertaintyState:
    """Which pairs are certain, and need no more answers, updated pair by pair. Retired arms are included.

    Args:
        test: The test of the counts at the start.
        margin: Of the verdict.

    Attributes:
        beats: (K, K) bool: As `CertaintyTest.beats`.
        losses: (K,) int64: How many active arms beat an arm for certain.
    """

    def __init__(self, test: CertaintyTest, margin: float = 0.0) -> None:
        tally, levels = test.tally, test.levels
        self._active, self._margin, self._sampling = tally.active, margin, test.sampling
        # What a pair needs depends only on which of its arms came last, so one number per arm is enough.
        one, last = np.zeros(len(tally.names), np.int64), np.arange(len(tally.names))
        self._winner_level, self._firm_level = levels.winner(one, last), levels.all_pairs(one, last)
        self._close_level = levels.close(one, last)
        self.beats, self._alone = test.beats.copy(), test.firm.copy()
        # Pairs that need no more answers, by the levels of a verdict and by those of each pair on its own: …
        self._done, self._firm = self.beats.copy(), self._alone.copy()
        # … on items, those that were asked about all of them, those where i has then not won more, and with the latter
        # the pairs in which i is known not to be worse than j.
        self._asked = np.asarray(count_met(tally) >= self._sampling.items)
        self._level = np.asarray(self._asked & (tally.wins <= tally.wins.T))
        self._near = self._asked.copy()
        if margin > 0 or tally.is_finite:
            first, second = np.nonzero(count_met(tally))
            known = test.closeness(first, second, margin)
            near, firm = (np.zeros(tally.wins.shape, bool) for _ in range(2))
            near[first, second] = known >= levels.close(first, second)
            firm[first, second] = known >= levels.all_pairs(first, second)
            self._near |= near
            if margin > 0:
                self._done, self._firm = near, firm
        self._firm |= self._asked
        self.losses: Ints = np.asarray(self.beats[tally.active].sum(axis=0))

    def update(self, i: int, j: int, wins: np.ndarray, ties: np.ndarray) -> None:
        """Take in an answer to a duel of i and j that `wins` and `ties` already include."""
        self._judge(i, j, int(wins[i, j]), int(wins[j, i]), int(ties[i, j]))
        self._judge(j, i, int(wins[j, i]), int(wins[i, j]), int(ties[i, j]))

    def _judge(self, i: int, j: int, won: int, lost: int, tied: int) -> None:
        last, known = max(i, j), self._sampling.weigh_pair(won, lost, tied)
        sure, firm, near = (known >= level[last] for level in (self._winner_level, self._firm_level, self._close_level))
        if self._active[i]:
            self.losses[j] += int(sure) - int(self.beats[i, j])
        self.beats[i, j], self._alone[i, j], done = sure, firm, sure
        if self._margin > 0:
            known = self._sampling.weigh_closeness_of_pair(won, lost, tied, self._margin)
            done, firm = known >= self._close_level[last], known >= self._firm_level[last]
            near = done
        asked = won + lost + tied >= self._sampling.items
        self._asked[i, j], self._level[i, j], self._near[i, j] = asked, asked and won <= lost, asked or near
        self._done[i, j], self._firm[i, j] = done, firm or asked

    def with_others(self, arm: int) -> Bools:
        """Return (K,) bool: which other arms an arm need not meet again."""
        done: Bools = self._near[arm] if self._level[arm].any() else self._done[arm]
        return done if done[~self._active].all() else self._firm[arm]

    def needs_no_more(self, i: int, j: int) -> bool:
        """Return whether i need not meet j again."""
        return bool(self.with_others(i)[j])

    def winner(self, arms: Sequence[int]) -> int | None:
        """Return the winner of these arms, which are the active ones; None if there is none yet."""
        counts = self.beats[np.ix_(arms, arms)].sum(axis=1)
        return next((arm for arm, n in zip(arms, counts) if n == len(arms) - 1 and self._wins(arm, arms)), None)

    def _wins(self, arm: int, arms: Sequence[int]) -> bool:
        alone: Bools = self._alone[arm]
        return bool(self.beats[arm, ~self._active].all()) or all(alone[one] for one in arms if one != arm)

    def find_unranked(self, arms: Sequence[int]) -> list[int]:
        """Return those of the arms that have no certain rank among them yet; fewer than two if all have one."""
        left = np.array(arms)
        while len(left) > 1:
            first = self.beats[np.ix_(left, left)].sum(axis=1) == len(left) - 1
            if not first.any():
                break
            left = left[~first]
        return [int(arm) for arm in left]


def losses_of(tally: Tally, first: Ints | slice, second: Ints | slice) -> Ints:
    """Return how often the first arms lost to the second ones, where questions without an answer count as lost."""
    lost = tally.wins[second, first]
    return lost if tally.open is None else lost + tally.open[first, second]


def check_confidence(value: object) -> float:
    """Return a confidence.

    Raises:
        InvalidInput: If it is not above 0 and below 1.
    """
    return _number("confidence", value, lambda number: 0 < number < 1, "above 0 and below 1, such as 0.95")


def check_margin(value: object) -> float:
    """Return a margin.

    Raises:
        InvalidInput: If it is not at least 0 and below ½.
    """
    return _number("margin", value, lambda number: 0 <= number < 0.5, "at least 0 and below 0.5, such as 0.02")


def _number(what: str, value: object, fits: Callable[[float], bool], expected: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not fits(number):
        raise InvalidInput(f"{what} is {value!r}: expected a number {expected}")
    return number
