"""Which pairs of arms are certain, under two promises that hold at every look.

Tables make a promise about *all pairs*: with probability 1 − δ, every interval and every certain pair is right. It is a
union bound over the pairs. The *verdict* promises only that no verdict is ever wrong, and needs far fewer answers for
that: how many depends on which answers may depend on each other, see `certainty_of`. `docs/study/proofs.md` has the
proofs.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ...errors import InvalidInput
from ...policies import evidence as kernels
from ...policies.evidence import LOG_2, dependent_level, margin_level, no_winner_level, winner_level
from .about import A_PERSON, NEW_ITEMS
from .evidence import evidence, log_closeness
from .tally import Bools, Floats, Ints, Tally, count_met, log_evidence

LATER_SHARE, RARE_SHARE = 1 / 8, 1 / 32  # of δ: for arms added later, and for all pairs where arms have changed
# Of δ, where people are known by name: for answers that are independent, and on the comparisons made once people come
# back. One of the two may be used after the other.
INDEPENDENT_SHARE, COMPARISONS_SHARE = 1 / 4, 3 / 4


def share(delta: float, tally: Tally) -> Floats:
    """Return (K, K) float64: the δ′ of each pair, 0 on the diagonal.

    A pair of the K₀ arms at the start gets 2δ/K₀². A pair of a later arm, number m, with an earlier one gets
    δ/(m(m−1)²). However many arms are added, the sum over all pairs is at most δ.
    """
    arm = np.arange(len(tally.names))
    shares = share_of(delta, tally, arm[:, None], arm)
    np.fill_diagonal(shares, 0.0)
    return shares


def share_of(delta: float, tally: Tally, first: Ints | int, second: Ints | int) -> Floats:
    """Return the δ′ of the pairs of two different arms with these indices, see `share`."""
    m = np.maximum(np.maximum(first, second) + 1, 2).astype(np.float64)
    return np.where(m <= tally.started_with, 2 * delta / tally.started_with**2, delta / (m * (m - 1) ** 2))


def log_thresholds(tally: Tally, confidence: float = 0.95) -> Floats:
    """Return (K, K) float64: ln(1/δ′) of each pair, infinite on the diagonal."""
    with np.errstate(divide="ignore"):
        return -np.log(share(1 - check_confidence(confidence), tally))


def certainly_beats(tally: Tally, confidence: float = 0.95) -> Bools:
    """Return (K, K) bool: whether i beats j for certain; ties do not count, and retired arms are included."""
    delta = 1 - check_confidence(confidence)
    first, second = _find_promising(tally, math.log(tally.started_with**2 / (2 * delta)))
    threshold = -np.log(share_of(delta, tally, first, second))
    known = log_evidence(tally.wins[first, second], losses_of(tally, first, second))
    return _pairs_where(len(tally.names), first, second, known >= threshold)


def _find_promising(tally: Tally, log_level: float) -> tuple[Ints, Ints]:
    """The pairs whose first arm leads by enough to reach this level at all; few do, see `is_certain`."""
    lead = tally.wins - (tally.wins.T if tally.open is None else tally.wins.T + tally.open)
    place = np.flatnonzero(lead >= max(log_level / LOG_2, 1.0))  # ln 2 · lead² ≥ level · n, and n ≥ lead
    first, second = np.divmod(place, len(lead))
    ahead, n = lead[first, second], 2 * tally.wins[first, second] - lead[first, second]
    enough = LOG_2 * ahead * ahead >= log_level * n
    return first[enough], second[enough]


class Certainty:
    """Where every answer is an independent draw, naming a winner needs no union over the arms.

    The winner must have beaten the retired arms too. Where it has not, each of its pairs must be in `firm`: certain on
    its own, by a union over all pairs.

    Attributes:
        beats: (K, K) bool: Whether i beats j with the evidence that a winner needs; retired arms included.
        wins: (K, K) bool: The same, where both are active and i has beaten the retired arms; else `firm`.
        losses: (K, K) bool: Whether i beats j with the evidence that "no winner" needs; both are active.
        firm: (K, K) bool: Whether i beats j for certain on its own.
    """

    _least = -math.inf  # the evidence of an arm that does not lead, where `missing` needs a number

    def __init__(self, tally: Tally, confidence: float, part: float = 1.0) -> None:
        self._tally, self._confidence, self._delta = tally, confidence, part * (1 - confidence)
        arms, start = len(tally.names), tally.started_with
        first, second = self._find_leading()
        known = self.evidence(first, second)
        self.firm: Bools = _pairs_where(arms, first, second, known >= self.all_pairs_level(first, second))
        self.beats: Bools = _pairs_where(arms, first, second, known >= self.winner_level(first, second))
        itself = np.eye(arms, dtype=bool)
        self._beats_retired: Bools = np.asarray(_either(self.beats, itself)[:, ~tally.active].all(axis=1))
        both = _both_active(tally)
        self.wins: Bools = np.where(self._beats_retired[:, None], self.beats, self.firm) & both
        self.losses: Bools = _both(self.firm, both)
        if tally.active.all() and arms == start > 1:
            self.losses = _pairs_where(arms, first, second, known >= self.no_winner_level())

    def _find_leading(self) -> tuple[Ints, Ints]:
        """The pairs that may be certain."""
        return _find_promising(self._tally, self._start_level())

    def evidence(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that the first arms of these pairs beat the second ones, as a logarithm."""
        return self.weigh(*self._count_decided(first, second), self._tally.ties[first, second])

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike) -> Floats:
        """Return the evidence of pairs with these counts, as a logarithm."""
        return evidence(won, lost)

    def _count_decided(self, first: Ints, second: Ints) -> tuple[Ints, Ints]:
        """What the first arms won and lost, where questions without an answer count as lost."""
        return self._tally.wins[first, second], losses_of(self._tally, first, second)

    def weigh_pair(self, won: int, lost: int) -> float:
        """As `weigh`, of one pair and quicker."""
        return kernels.evidence(won, lost)

    def certain(self) -> Bools:
        """Return (K, K) bool: whether i beats j for certain by the promise about all pairs; retired arms included."""
        return certainly_beats(self._tally, self._confidence)

    def excess(self) -> Floats:
        """Return (K, K) float64: the evidence above what `certain` needs, as a logarithm."""
        return _excess(self._tally, self._confidence)

    @property
    def only_arm_wins(self) -> bool:
        """Whether the only arm that is left is the winner."""
        tally = self._tally
        return len(tally.names) > 1 and bool(self._beats_retired[tally.active].all())

    def close(self, margin: float, fit: Bools | None = None) -> Bools:
        """Return (K, K) bool: whether i is certain not to lose to j by more than the margin; true on the diagonal.

        Args:
            margin: Of the verdict.
            fit: (K,) bool: Which arms i to check; by default all.
        """
        tally, arms = self._tally, len(self._tally.names)
        first, second = np.nonzero(count_met(tally) if fit is None else count_met(tally) * fit[:, None])
        known = self.closeness(first, second, margin)
        itself = np.eye(arms, dtype=bool)
        to_all = _either(_pairs_where(arms, first, second, known >= self.close_level(first, second)), itself)
        all_pairs = _either(_pairs_where(arms, first, second, known >= self.all_pairs_level(first, second)), itself)
        to_retired = np.asarray(to_all[:, ~tally.active].all(axis=1))
        return np.where(to_retired[:, None], to_all, all_pairs)

    def closeness(self, first: Ints, second: Ints, margin: float) -> Floats:
        """Return the evidence that the first arms of these pairs are close to the second ones, as a logarithm."""
        return self.closeness_of(*self._count_decided(first, second), self._tally.ties[first, second], margin)

    def closeness_of(self, won: Ints, lost: Ints, tied: Ints, margin: float) -> Floats:
        """As `closeness`, of pairs with these counts."""
        return log_closeness(won, lost, tied, margin)

    def missing_evidence(self, arm: int) -> Floats:
        """Return (K,) float64: how much more evidence an arm needs against each other one, as a logarithm."""
        others = np.arange(len(self._tally.names))
        first = np.full(len(others), arm)
        missing: Floats = self.level_to_win(first, others) - np.maximum(self.evidence(first, others), self._least)
        return missing

    def level_to_win(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that the first arms need to win against the second ones, given the retired arms."""
        levels = self.winner_level(first, second), self.all_pairs_level(first, second)
        return np.where(self._beats_retired[first], *levels)

    def level_to_be_close(self, first: Ints, second: Ints, margin: float) -> Floats:
        """Return the evidence that the first arms need to be close to the second ones, given the retired arms."""
        retired, arms = np.flatnonzero(~self._tally.active), np.arange(len(self._tally.names))
        one, other = np.repeat(arms, len(retired)), np.tile(retired, len(arms))
        near = (self.closeness(one, other, margin) >= self.close_level(one, other)) | (one == other)
        near_all = near.reshape(len(arms), len(retired)).all(axis=1)
        return np.where(near_all[first], self.close_level(first, second), self.all_pairs_level(first, second))

    def close_level(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that each pair needs of an arm that is close to all others, as a logarithm."""
        start = self._tally.started_with
        later = self.all_pairs_level(first, second)
        return np.where(np.maximum(first, second) < start, self._margin_level(), later)

    def winner_level(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that each pair of a winner needs, as a logarithm."""
        start = self._tally.started_with
        later = np.maximum(first, second) + 1.0 - start
        return np.where(later > 0, np.log(0.5 + later * (later + 1) / (LATER_SHARE * self._delta)), self._start_level())

    def no_winner_level(self) -> float:
        """Return the evidence that a loss of each arm needs where no arm was added or retired, as a logarithm."""
        return no_winner_level(self._delta, self._tally.started_with)

    def _start_level(self) -> float:
        """The evidence that pairs of the arms at the start need, for a winner."""
        tally = self._tally
        if tally.started_with == 2 and (tally.returning or tally.first == A_PERSON):
            # One test of the pair, before and after people come back: on each side M⁺ has half of ¾δ.
            return math.log(0.5 + 4 / (3 * (1 - self._confidence)))
        return winner_level(self._delta, tally.started_with)

    def _margin_level(self) -> float:
        """The same for an arm that is practically tied."""
        return margin_level(self._delta, self._tally.started_with)

    def all_pairs_level(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that each of these pairs needs on its own, as a logarithm."""
        level: Floats = -np.log(share_of(RARE_SHARE * self._delta, self._tally, first, second))
        return level


class OnSharedItems(Certainty):
    """Where pairs share items, their answers may depend on each other: a union over the arms."""

    def no_winner_level(self) -> float:
        return self._start_level()

    def _start_level(self) -> float:
        start = self._tally.started_with
        return super()._start_level() if start == 2 else dependent_level(self._delta, start)


class OnComparisons(Certainty):
    """Where people come back, nothing is assumed about who answers what.

    i beats j if its chance to win, averaged over the comparisons of the two that were made, is above ½. An adversary
    who chooses what each person is asked may make any pair look certain, so every pair counts alone: the levels are
    those of the tables, and stricter for arms that are added later. Two arms are a single pair, which needs no more
    than for independent answers.
    """

    def no_winner_level(self) -> float:
        return self._start_level()

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike) -> Floats:
        return super().weigh(won, lost, tied) if self._began_as_pair else log_evidence(won, lost)

    def weigh_pair(self, won: int, lost: int) -> float:
        return super().weigh_pair(won, lost) if self._began_as_pair else float(log_evidence(won, lost))

    def winner_level(self, first: Ints, second: Ints) -> Floats:
        is_later = np.maximum(first, second) >= self._tally.started_with
        if self._began_as_pair:  # later arms have `LATER_SHARE`: each pair, on both sides, its part of all pairs
            alone = share_of(2 * LATER_SHARE * self._delta, self._tally, first, second)
            return np.where(is_later, np.log(0.5 + 1 / alone), self._start_level())
        alone = share_of(self._delta, self._tally, first, second)
        part = 2 * self._spare * self._tally.started_with  # of the δ/K₀ that `share` has for later arms
        levels: Floats = -np.log(np.where(is_later, part * alone, alone))
        return levels

    def all_pairs_level(self, first: Ints, second: Ints) -> Floats:
        part = min(RARE_SHARE, self._spare)
        level: Floats = -np.log(share_of(part * self._delta, self._tally, first, second))
        return level

    def _start_level(self) -> float:
        if self._began_as_pair:
            return super()._start_level()
        one = np.zeros(1, np.int64)
        return float(-np.log(share_of(self._delta, self._tally, one, one + 1)[0]))

    def _margin_level(self) -> float:
        arms = self._tally.started_with
        pairs = max(arms * (arms - 1), 1)  # any arm may be close to any other by mistake
        return math.log(pairs / (self._delta * (1 / 16 if self._began_as_pair else self._spare)))

    @property
    def _spare(self) -> float:
        """A quarter of the share of δ that the cells leave, which is at most 1/K₀: two for later arms, two for ties."""
        return 1 / (4 * max(self._tally.started_with + 1, 8))

    @property
    def _began_as_pair(self) -> bool:
        return self._tally.started_with == 2


class Settled:
    """Which pairs need no more answers for the verdict, updated with every answer. Retired arms are included.

    Attributes:
        losses: (K,) int64: How many active arms beat an arm for certain.
    """

    def __init__(self, tally: Tally, confidence: float, margin: float) -> None:
        self._tally, self._margin, test = tally, margin, certainty_of(tally, confidence)
        self._weigh = test.weigh_pair
        # What a pair needs depends only on which of its arms came last, so one number per arm is enough.
        one, last = np.zeros(len(tally.names), np.int64), np.arange(len(tally.names))
        self._sure_level, self._firm_level = test.winner_level(one, last), test.all_pairs_level(one, last)
        self._close_level = test.close_level(one, last)
        self._sure, self._alone = test.beats, test.firm
        self._done, self._firm = self._sure.copy(), self._alone.copy()
        if margin > 0:
            first, second = np.nonzero(count_met(tally))
            known = test.closeness(first, second, margin)
            self._done = _pairs_where(len(last), first, second, known >= test.close_level(first, second))
            self._firm = _pairs_where(len(last), first, second, known >= test.all_pairs_level(first, second))
        self.losses: Ints = np.asarray(self._sure[tally.active].sum(axis=0))

    def update(self, i: int, j: int, wins: np.ndarray, ties: np.ndarray) -> None:
        """Take in an answer to a duel of i and j that `wins` and `ties` already include."""
        self._judge(i, j, wins, ties)
        self._judge(j, i, wins, ties)

    def _judge(self, i: int, j: int, wins: np.ndarray, ties: np.ndarray) -> None:
        won, lost, last = int(wins[i, j]), int(wins[j, i]), max(i, j)
        known = self._weigh(won, lost) if won > lost else -math.inf
        sure = known >= self._sure_level[last]
        self._note(i, j, sure, sure and known >= self._firm_level[last])
        if self._margin > 0:
            known = kernels.log_closeness(won, lost, int(ties[i, j]), self._margin)
            self._done[i, j], self._firm[i, j] = known >= self._close_level[last], known >= self._firm_level[last]

    def _note(self, i: int, j: int, sure: bool, alone: bool) -> None:
        """Set whether i beats j for certain: as one of the pairs of a winner, and on its own."""
        if self._tally.active[i]:
            self.losses[j] += int(sure) - int(self._sure[i, j])
        self._sure[i, j] = self._done[i, j] = sure
        self._alone[i, j] = self._firm[i, j] = alone

    def with_others(self, arm: int) -> Bools:
        """Return (K,) bool: which other arms an arm need not meet again."""
        done: Bools = self._done[arm]
        return done if done[~self._tally.active].all() else self._firm[arm]

    def winner(self, arms: Sequence[int]) -> int | None:
        """Return the winner of these arms, which are the active ones; None if there is none yet."""
        counts = self._sure[np.ix_(arms, arms)].sum(axis=1)
        return next((arm for arm, n in zip(arms, counts) if n == len(arms) - 1 and self._wins(arm, arms)), None)

    def _wins(self, arm: int, arms: Sequence[int]) -> bool:
        alone: Bools = self._alone[arm]
        return bool(self._sure[arm, ~self._tally.active].all()) or all(alone[one] for one in arms if one != arm)

    def __getitem__(self, pair: tuple[int, int]) -> bool:
        return bool(self.with_others(pair[0])[pair[1]])


class Order:
    """Which arms below the winner have a certain rank, updated with every answer.

    Attributes:
        beats: (K, K) bool: Whether i beats j for certain by the promise about all pairs. Retired arms are included.
    """

    def __init__(self, tally: Tally, confidence: float) -> None:
        self._levels, self.beats = log_thresholds(tally, confidence), certainly_beats(tally, confidence)

    def update(self, i: int, j: int, wins: np.ndarray) -> None:
        """Take in an answer to a duel of i and j that `wins` already includes."""
        sure = bool(log_evidence(wins[i, j], wins[j, i]) >= self._levels[i, j])
        self.beats[i, j], self.beats[j, i] = sure and wins[i, j] > wins[j, i], sure and wins[j, i] > wins[i, j]

    def rest(self, arms: Sequence[int]) -> list[int]:
        """Return those of the arms below the winner that have no certain rank yet; fewer than two if all have one."""
        left = np.array(arms)
        while len(left) > 1:
            first = self.beats[np.ix_(left, left)].sum(axis=1) == len(left) - 1
            if not first.any():
                break
            left = left[~first]
        return [int(arm) for arm in left]


def certainty_of(tally: Tally, confidence: float) -> Certainty:
    """Return the test of a verdict: which answers may depend on each other decides how much evidence a pair needs.

    People who are known by name may come back at any time. So two tests share δ in a study whose first answer is from
    such a person: one as long as everybody has answered once, and one from then on.
    """
    if tally.is_finite:
        from .on_items import OnTheseAnswers

        return OnTheseAnswers(tally, confidence)
    if tally.returning:
        return OnComparisons(tally, confidence, COMPARISONS_SHARE if tally.first == A_PERSON else 1.0)
    test = OnSharedItems if tally.about == NEW_ITEMS and tally.items else Certainty
    return test(tally, confidence, INDEPENDENT_SHARE if tally.first == A_PERSON else 1.0)


def losses_of(tally: Tally, first: Ints | slice, second: Ints | slice) -> Ints:
    """Return how often the first arms lost to the second ones, where questions without an answer count as lost."""
    lost = tally.wins[second, first]
    return lost if tally.open is None else lost + tally.open[first, second]


def _excess(tally: Tally, confidence: float) -> Floats:
    lost = tally.wins.T if tally.open is None else tally.wins.T + tally.open
    excess: Floats = log_evidence(tally.wins, lost) - log_thresholds(tally, confidence)
    return excess


def _both(first: Bools, second: Bools) -> Bools:
    return np.asarray(first & second)


def _either(first: Bools, second: Bools) -> Bools:
    return np.asarray(first | second)


def _both_active(tally: Tally) -> Bools:
    return np.outer(tally.active, tally.active)


def _pairs_where(arms: int, first: Ints, second: Ints, values: Bools) -> Bools:
    found = np.zeros((arms, arms), dtype=bool)
    found[first, second] = values
    return found


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
