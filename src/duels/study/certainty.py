"""Which pairs of arms are certain, under two promises that hold at every look.

Tables make a promise about *all pairs*: with probability 1 − δ, every interval and every certain pair is right. It is a
union bound over the pairs, and also the test of studies that version 0.1.0 created. The *verdict* promises only that no
verdict is ever wrong, and needs far fewer answers for that. `docs/study/verdict.md` has the proofs.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from ..policies.evidence import (
    BETS,
    LOG_2,
    LOG_630,
    LOG_BETS,
    is_certain,
    margin_level,
    no_winner_level,
    winner_level,
)
from ..policies.evidence import log_closeness as log_closeness_of
from .intervals import log_evidence, log_martingale
from .tally import Bools, Floats, Ints, Tally, estimates, met

LATER_SHARE, RARE_SHARE = 1 / 8, 1 / 32  # of δ: for arms added later, and for all pairs where arms have changed


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
        return -np.log(share(1 - checked_confidence(confidence), tally))


def certainly_beats(tally: Tally, confidence: float = 0.95) -> Bools:
    """Return (K, K) bool: whether i beats j for certain; ties do not count, and retired arms are included."""
    delta = 1 - checked_confidence(confidence)
    first, second = _promising(tally, math.log(tally.started_with**2 / (2 * delta)))
    threshold = -np.log(share_of(delta, tally, first, second))
    known = log_evidence(tally.wins[first, second], tally.wins[second, first])
    return _pairs_where(len(tally.names), first, second, known >= threshold)


def _promising(tally: Tally, log_level: float) -> tuple[Ints, Ints]:
    """The pairs whose first arm leads by enough to reach this level at all; few do, see `is_certain`."""
    lead = tally.wins - tally.wins.T
    place = np.flatnonzero(lead >= max(log_level / LOG_2, 1.0))  # ln 2 · lead² ≥ level · n, and n ≥ lead
    first, second = np.divmod(place, len(lead))
    ahead, n = lead[first, second], tally.wins[first, second] + tally.wins[second, first]
    enough = LOG_2 * ahead * ahead >= log_level * n
    return first[enough], second[enough]


class AllPairs:
    """The test of version 0.1.0: a verdict follows from pairs that are certain by the promise about all pairs.

    Attributes:
        wins: (K, K) bool: Whether i beats j with the evidence that a winner needs; both are active.
        losses: (K, K) bool: The same, with the evidence that "no winner" needs.
        beats: (K, K) bool: As `wins`, retired arms included.
    """

    def __init__(self, tally: Tally, confidence: float) -> None:
        self._tally, self._confidence = tally, confidence
        self.beats: Bools = certainly_beats(tally, confidence)
        self.wins: Bools = _both(self.beats, _both_active(tally))
        self.losses: Bools = self.wins

    def certain(self) -> Bools:
        """Return (K, K) bool: whether i beats j for certain by the promise about all pairs; retired arms included."""
        return certainly_beats(self._tally, self._confidence)

    def excess(self) -> Floats:
        """Return (K, K) float64: the evidence above what `certain` needs, as a logarithm."""
        return _excess(self._tally, self._confidence)

    @property
    def only_arm_wins(self) -> bool:
        """Whether the only arm that is left is the winner."""
        return True

    def close(self, margin: float, fit: Bools | None = None) -> Bools:
        """Return (K, K) bool: whether i is certain not to lose to j by more than the margin; true on the diagonal.

        Args:
            margin: Of the verdict.
            fit: (K,) bool: Which arms i to check; by default all.
        """
        tally, worst = self._tally, 0.5 - margin
        halves = tally.wins + tally.ties / 2
        outside = log_martingale(halves, halves.T, worst) > log_thresholds(tally, self._confidence)
        near: Bools = self.wins | (outside & (estimates(tally) > worst)) | np.eye(len(halves), dtype=bool)
        return near

    def missing(self, arm: int) -> Floats:
        """Return (K,) float64: how much more evidence an arm needs against each other one, as a logarithm."""
        tally = self._tally
        levels = log_thresholds(tally, self._confidence)[arm]
        missing: Floats = levels - log_evidence(tally.wins[arm], tally.wins[:, arm])
        return missing


class WithoutUnion:
    """The test of new studies: naming a winner needs no union over the arms. Attributes and methods as `AllPairs`.

    The winner must have beaten the retired arms too. Where it has not, each of its pairs must be in `firm`: certain on
    its own, by a union over all pairs.
    """

    _least = -math.inf  # the evidence of an arm that does not lead, where `missing` needs a number

    def __init__(self, tally: Tally, confidence: float) -> None:
        self._tally, self._delta = tally, 1 - confidence
        arms, start = len(tally.names), tally.started_with
        first, second = self._leading()
        known = self.evidence(first, second)
        self.firm: Bools = _pairs_where(arms, first, second, known >= self.all_pairs_level(first, second))
        self.beats: Bools = _pairs_where(arms, first, second, known >= self.winner_level(first, second))
        itself = np.eye(arms, dtype=bool)
        self._beats_retired: Bools = np.asarray(_either(self.beats, itself)[:, ~tally.active].all(axis=1))
        both = _both_active(tally)
        self.wins: Bools = np.where(self._beats_retired[:, None], self.beats, self.firm) & both
        self.losses: Bools = _both(self.firm, both)
        if tally.active.all() and arms == start > 1:
            self.losses = _pairs_where(arms, first, second, known >= no_winner_level(self._delta, arms))

    def _leading(self) -> tuple[Ints, Ints]:
        """The pairs that may be certain."""
        return _promising(self._tally, winner_level(self._delta, self._tally.started_with))

    def evidence(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that the first arms of these pairs beat the second ones, as a logarithm."""
        return log_mixture(self._tally.wins[first, second], self._tally.wins[second, first])

    def certain(self) -> Bools:
        return certainly_beats(self._tally, 1 - self._delta)

    def excess(self) -> Floats:
        return _excess(self._tally, 1 - self._delta)

    @property
    def only_arm_wins(self) -> bool:
        tally = self._tally
        return len(tally.names) > 1 and bool(self._beats_retired[tally.active].all())

    def close(self, margin: float, fit: Bools | None = None) -> Bools:
        tally, arms = self._tally, len(self._tally.names)
        first, second = np.nonzero(met(tally) if fit is None else met(tally) * fit[:, None])
        known = self.closeness(first, second, margin)
        itself = np.eye(arms, dtype=bool)
        to_all = _either(_pairs_where(arms, first, second, known >= self.close_level(first, second)), itself)
        all_pairs = _either(_pairs_where(arms, first, second, known >= self.all_pairs_level(first, second)), itself)
        to_retired = np.asarray(to_all[:, ~tally.active].all(axis=1))
        return np.where(to_retired[:, None], to_all, all_pairs)

    def closeness(self, first: Ints, second: Ints, margin: float) -> Floats:
        """Return the evidence that the first arms of these pairs are close to the second ones, as a logarithm."""
        tally = self._tally
        return log_closeness(tally.wins[first, second], tally.wins[second, first], tally.ties[first, second], margin)

    def missing(self, arm: int) -> Floats:
        others = np.arange(len(self._tally.names))
        level = self.winner_level if self._beats_retired[arm] else self.all_pairs_level
        first = np.full(len(others), arm)
        missing: Floats = level(first, others) - np.maximum(self.evidence(first, others), self._least)
        return missing

    def close_level(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that each pair needs of an arm that is close to all others, as a logarithm."""
        start = self._tally.started_with
        later = self.all_pairs_level(first, second)
        return np.where(np.maximum(first, second) < start, margin_level(self._delta, start), later)

    def winner_level(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that each pair of a winner needs, as a logarithm."""
        start = self._tally.started_with
        later = np.maximum(first, second) + 1.0 - start
        return np.where(
            later > 0, np.log(0.5 + later * (later + 1) / (LATER_SHARE * self._delta)), winner_level(self._delta, start)
        )

    def all_pairs_level(self, first: Ints, second: Ints) -> Floats:
        """Return the evidence that each of these pairs needs on its own, as a logarithm."""
        level: Floats = -np.log(share_of(RARE_SHARE * self._delta, self._tally, first, second))
        return level


class Followed(WithoutUnion):
    """The same test, kept up to date answer by answer: of arms that are all active, and were all there at the start.

    Without retired arms `firm` is not needed, and stays as it was.
    """

    def __init__(self, tally: Tally, confidence: float) -> None:
        super().__init__(tally, confidence)
        self._certain = certainly_beats(tally, confidence)
        one = np.zeros(1, np.int64)
        self._sure_level = winner_level(self._delta, len(tally.names))
        self._none_level = no_winner_level(self._delta, len(tally.names))
        self._certain_level = float(-np.log(share_of(self._delta, tally, one, one + 1)[0]))

    def certain(self) -> Bools:
        return self._certain

    def update(self, i: int, j: int) -> None:
        """Take in an answer to a duel of i and j that the counts already include."""
        for first, second in ((i, j), (j, i)):
            won, lost = int(self._tally.wins[first, second]), int(self._tally.wins[second, first])
            self.beats[first, second] = self.wins[first, second] = is_certain(won, lost, self._sure_level)
            self.losses[first, second] = is_certain(won, lost, self._none_level)
            self._certain[first, second] = won > lost and float(log_evidence(won, lost)) >= self._certain_level


class Settled:
    """Which pairs need no more answers for the verdict, updated with every answer. Retired arms are included.

    Attributes:
        losses: (K,) int64: How many active arms beat an arm for certain.
    """

    def __init__(self, tally: Tally, confidence: float, margin: float) -> None:
        self._tally, self._margin, test = tally, margin, self._test(tally, confidence)
        # What a pair needs depends only on which of its arms came last, so one number per arm is enough.
        one, last = np.zeros(len(tally.names), np.int64), np.arange(len(tally.names))
        self._sure_level, self._firm_level = test.winner_level(one, last), test.all_pairs_level(one, last)
        self._close_level = test.close_level(one, last)
        self._sure, self._alone = test.beats, test.firm
        self._done, self._firm = self._sure.copy(), self._alone.copy()
        if margin > 0:
            first, second = np.nonzero(met(tally))
            known = test.closeness(first, second, margin)
            self._done = _pairs_where(len(last), first, second, known >= test.close_level(first, second))
            self._firm = _pairs_where(len(last), first, second, known >= test.all_pairs_level(first, second))
        self.losses: Ints = np.asarray(self._sure[tally.active].sum(axis=0))

    def _test(self, tally: Tally, confidence: float) -> WithoutUnion:
        return WithoutUnion(tally, confidence)

    def update(self, i: int, j: int, wins: np.ndarray, ties: np.ndarray) -> None:
        """Take in an answer to a duel of i and j that `wins` and `ties` already include."""
        self._judge(i, j, wins, ties)
        self._judge(j, i, wins, ties)

    def _judge(self, i: int, j: int, wins: np.ndarray, ties: np.ndarray) -> None:
        won, lost, last = int(wins[i, j]), int(wins[j, i]), max(i, j)
        sure = is_certain(won, lost, self._sure_level[last])
        self._note(i, j, sure, sure and is_certain(won, lost, self._firm_level[last]))
        if self._margin > 0:
            known = log_closeness_of(won, lost, int(ties[i, j]), self._margin)
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


Test = AllPairs | WithoutUnion
TESTS: dict[str, type[AllPairs] | type[WithoutUnion]] = {"all pairs": AllPairs, "winner": WithoutUnion}


def _excess(tally: Tally, confidence: float) -> Floats:
    excess: Floats = log_evidence(tally.wins, tally.wins.T) - log_thresholds(tally, confidence)
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


def log_mixture(wins: npt.ArrayLike, losses: npt.ArrayLike) -> Floats:
    """As `policies.evidence.evidence`, for arrays."""
    from scipy import special

    wins, losses = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    value: Floats = special.betaln(wins + 5.0, losses + 5.0) + LOG_630 + (wins + losses) * LOG_2
    return value


def log_closeness(wins: npt.ArrayLike, losses: npt.ArrayLike, ties: npt.ArrayLike, margin: float) -> Floats:
    """As `policies.evidence.log_closeness`, for arrays."""
    wins, losses, ties = np.asarray(wins), np.asarray(losses), np.asarray(ties)
    null, stake = 0.5 - margin, BETS.reshape(-1, *[1] * wins.ndim)
    fortunes = wins * np.log1p(stake * (1 - null)) + losses * np.log1p(-stake * null) + ties * np.log1p(stake * margin)
    mean: Floats = np.logaddexp.reduce(fortunes, axis=0) - LOG_BETS
    return mean


def checked_confidence(value: object) -> float:
    """Return a confidence.

    Raises:
        InvalidInput: If it is not above 0 and below 1.
    """
    return _number("confidence", value, lambda number: 0 < number < 1, "above 0 and below 1, such as 0.95")


def checked_margin(value: object) -> float:
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
