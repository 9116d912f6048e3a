"""Does a voter favor an arm more than chance and honest taste allow? Such as a ring that votes for its own model.

Only votes that chose an arm count. Take a voter and an arm. On each pair of that arm and another one, N votes were
decided, W of them for the arm, and the voter gave n of these. If who gave which vote makes no difference, the number of
the voter's votes for the arm is hypergeometric: so many of n votes drawn from N, of which W are for the arm. It needs
no model of who beats whom, and no estimate: what all voters prefer is in W and N.

Honest voters differ, though. So the logit of each voter's vote for an arm may be moved by a taste, which is normal with
mean 0 and the variance τ² that the voters of the log have; the number is then hypergeometric with other odds (Fisher's
noncentral distribution). Opponents are subject to taste too: with V the variance of the voter's count in each pair,
moving the votes of all pairs together by a normal variable with variance τ² (1 + ΣV²/(ΣV)²) has the same effect on the
variance of their sum. The p-value is the probability of as many votes for the arm or more, over all tastes.

τ² is estimated from the squares of the sums, cut at `CAP` times their variance, so that a ring has little influence;
the upper end of an interval is used. Of all voters and arms only those are tested that could be certain at all (Tarone
1990), and Holm's method adjusts their p-values.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .positions import LEVEL
from .voter_tests import LEAST, holm

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CAP = 9.0  # squares of standardized sums count at most so much in the estimate of τ² …
USUAL = 0.99501  # … and this is then the mean of those of a normal distribution
ENOUGH = 0.5  # variance of a sum that the estimate of τ² takes into account: with less, its square is too skewed
UPPER = 2.33 * 2**0.5  # standard errors; each vote counts for two arms
REACH, AGAINST = 8.0, 4.0  # standard deviations of taste that are integrated over, in favor of the arm and against it
MOST_POINTS = 500  # of that integral


class Favorites(NamedTuple):
    """The arm that each of V voters favors most.

    Attributes:
        arm: (V,) int64: The arm with the smallest p-value; −1 for voters without any that was computed.
        chosen: (V,) int64: How many votes of the voter are for that arm …
        of: (V,) int64: … of those on pairs of it that others voted on too, and …
        expected: (V,) float64: … how many would be, on average.
        p: (V,) float64: The p-value, adjusted for the number of voters and arms; 1 where it is certainly large.
        taste: τ, the upper end of its interval.
    """

    arm: Ints
    chosen: Ints
    of: Ints
    expected: Floats
    p: Floats
    taste: float


class _Rows(NamedTuple):
    """How voters voted on pairs, one row for each voter, arm, and other arm."""

    cell: Ints  # the voter and the arm, as numbers of cells
    n: Ints  # votes of the voter
    won: Ints  # of these, for the arm
    all_won: Ints  # votes of all voters on the pair for the arm
    total: Ints  # votes of all voters on the pair
    mean: Floats
    variance: Floats


class _Cells(NamedTuple):
    """The sums over the rows of each voter and arm."""

    voter: Ints
    arm: Ints
    n: Ints
    won: Ints
    excess: Floats  # votes for the arm, beyond the mean
    variance: Floats
    squares: Floats  # the sum of squares of the variances of the rows


def find_favorites(
    voter: Ints, first: Ints, second: Ints, chose_second: npt.ArrayLike, weight: Ints, voters: int | None = None
) -> Favorites:
    """Find out which arm each voter favors most, and how certain that is.

    Args:
        voter: (n,): Who chose an arm, from 0.
        first: (n,): One of the two arms, from 0.
        second: (n,): The other one, with a larger number.
        chose_second: (n,) bool: Which one the voter chose.
        weight: (n,): How many equal votes these are.
        voters: V; by default, up to the last one who voted.
    """
    voters = int(voter.max(initial=-1)) + 1 if voters is None else voters
    arms = int(second.max(initial=0)) + 1
    rows, cells = _cells_of(_rows_of(voter, first * arms + second, np.asarray(chose_second, bool), weight, arms), arms)
    taste = _taste(cells)
    p = _p_values(rows, cells, taste)
    best = np.lexsort((-cells.excess, p, cells.voter))
    best = best[np.flatnonzero(np.diff(cells.voter[best], prepend=-1))] if len(best) else best
    best = best[p[best] <= 1]
    found = Favorites(
        np.full(voters, -1), np.zeros(voters, np.int64), np.zeros(voters, np.int64), np.zeros(voters), np.ones(voters),
        taste**0.5,
    )  # fmt: skip
    who = cells.voter[best]
    found.arm[who], found.chosen[who], found.of[who] = cells.arm[best], cells.won[best], cells.n[best]
    found.expected[who], found.p[who] = (cells.won - cells.excess)[best], p[best]
    return found


def _rows_of(voter: Ints, pair: Ints, chose_second: npt.NDArray[np.bool_], weight: Ints, arms: int) -> _Rows:
    """The rows; `cell` is voter · arms + arm. Pairs on which nobody else voted say nothing, and are left out."""
    pairs, number = np.unique(pair, return_inverse=True)
    total, seconds = (np.bincount(number, one, len(pairs)).astype(np.int64) for one in (weight, weight * chose_second))
    code, place = np.unique(voter * len(pairs) + number, return_inverse=True)
    n, k = (np.bincount(place, one, len(code)).astype(np.int64) for one in (weight, weight * chose_second))
    who, which = code // max(len(pairs), 1), code % max(len(pairs), 1)
    others = n < total[which]
    who, which, n, k = who[others], which[others], n[others], k[others]
    low, high = pairs[which] // arms, pairs[which] % arms
    cell = np.concatenate([who * arms + low, who * arms + high])
    both, won, of = np.tile(n, 2), np.concatenate([n - k, k]), np.tile(total[which], 2)
    all_won = np.concatenate([(total - seconds)[which], seconds[which]])
    share = all_won / np.maximum(of, 1)
    mean, variance = both * share, both * share * (1 - share) * (of - both) / np.maximum(of - 1, 1)
    return _Rows(cell, both, won, all_won, of, mean, variance)


def _cells_of(rows: _Rows, arms: int) -> tuple[_Rows, _Cells]:
    codes, cell = np.unique(rows.cell, return_inverse=True)
    n, won = (_sums(cell, one, len(codes)).astype(np.int64) for one in (rows.n, rows.won))
    mean, variance, squares = (_sums(cell, one, len(codes)) for one in (rows.mean, rows.variance, rows.variance**2))
    return rows._replace(cell=cell), _Cells(codes // arms, codes % arms, n, won, won - mean, variance, squares)


def _sums(cell: Ints, values: npt.ArrayLike, size: int) -> Floats:
    return np.bincount(cell, np.asarray(values, np.float64), size).astype(np.float64)


def _taste(cells: _Cells) -> float:
    """The upper end of an interval for τ²: the largest value at which squares are not certainly too small."""
    kept = cells.variance >= ENOUGH
    square, variance = cells.excess[kept] ** 2, cells.variance[kept]
    by_taste = variance**2 + cells.squares[kept]
    weight = by_taste / (variance + by_taste)  # nearly equal for many votes and for few: a ring has many

    def is_possible(taste: float) -> bool:
        whole = variance + taste * by_taste
        beyond = weight * (np.minimum(square / whole, CAP) - USUAL)
        return bool(beyond.sum() > -UPPER * np.sqrt(float(beyond @ beyond)))

    low, high = 0.0, 100.0
    if not len(square) or not is_possible(low):
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return _undo_attenuation(high)


def _undo_attenuation(taste: float) -> float:
    """Return τ², of which the squares show only a part: shares hardly move any more where they are near 0 or 1.

    On a level pair the logit has the variance 2τ². With σ(x) ≈ Φ(x / √2.89), the share has the variance
    arcsin(r / (1 + r)) / 2π, where r = 2τ² / 2.89, instead of 2τ² / 16.
    """
    share = np.sin(min(np.pi / 4 * taste, 0.45 * np.pi))
    return float(2.89 / 2 * share / (1 - share))


def _p_values(rows: _Rows, cells: _Cells, taste: float) -> Floats:
    """(C,): adjusted p-values; 2 for cells that were not tested, or whose p-value is certainly large."""
    least = _sums(rows.cell, _log_all(rows), len(cells.n))  # of the smallest p-value that a cell can have
    tested = _testable(least)
    adjusted = np.full(len(cells.n), 2.0)
    if not len(tested):
        return adjusted
    # Chernoff's bound. The probability itself may be smaller, by a factor of about √(2n).
    size, mean = cells.n[tested], (cells.won - cells.excess)[tested]
    bound = -size * _divergence(cells.won[tested] / size, mean / size)
    bound[cells.excess[tested] <= 0] = 0.0
    room = len(tested) - int((bound <= np.log(LEVEL)).sum()) + 1
    suspects = np.flatnonzero(bound <= np.log(LEVEL / room * 10 * np.sqrt(2 * size + 1)))
    p = np.ones(len(tested))
    order = np.argsort(rows.cell, kind="stable")
    begins = np.searchsorted(rows.cell[order], np.arange(len(cells.n) + 1))
    for k in suspects.tolist():
        cell = int(tested[k])
        some = order[begins[cell] : begins[cell + 1]]
        spread = taste * (1 + cells.squares[cell] / cells.variance[cell] ** 2)
        n, won, all_won, total = (column[some] for column in (rows.n, rows.won, rows.all_won, rows.total))
        p[k] = _at_least(n, won, all_won, total, spread, float(cells.variance[cell]))
    found = holm(p)
    adjusted[tested[suspects]] = found[suspects]
    return adjusted


def _testable(least: Floats) -> Ints:
    """The cells that can be certain: with the fewest tests m such that at most m of them can have p ≤ LEVEL / m."""
    size = np.sort(least)
    m = np.arange(1, len(size) + 1)
    enough = np.searchsorted(size, np.log(LEVEL / m), side="right") <= m
    if not len(size):
        return np.zeros(0, np.int64)
    tests = int(m[enough][0]) if enough.any() else len(size)
    return np.flatnonzero(least <= np.log(LEVEL / tests))


def _log_all(rows: _Rows) -> Floats:
    """The logarithm of the probability that all of a row's votes are for the arm, or as many as can be."""
    most = np.minimum(rows.n, rows.all_won)
    lost = rows.total - rows.all_won
    return (
        _log_choose(rows.all_won, most) + _log_choose(lost, rows.n - most) - _log_choose(rows.total, rows.n)
    )  # fmt: skip


def _log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> Floats:
    from scipy.special import gammaln

    n, k = np.asarray(n, float), np.asarray(k, float)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _divergence(x: Floats, p: Floats) -> Floats:
    from scipy.special import rel_entr

    return np.asarray(rel_entr(x, p) + rel_entr(1 - x, 1 - p))


def _at_least(n: Ints, won: Ints, all_won: Ints, total: Ints, spread: float, variance: float) -> float:
    """The probability of as many votes for the arm or more, over tastes with a variance.

    Args:
        n: (r,): Votes of the voter on each pair.
        won: (r,): Of these, for the arm.
        all_won: (r,): Votes of all voters for the arm.
        total: (r,): Votes of all voters.
        spread: The variance of taste.
        variance: Of the sum, without taste.

    Example:
        >>> # Both of two votes, where 3 of 4 votes in all are for the arm: 3 · 2 of 4 · 3 ordered choices.
        >>> round(_at_least(*(np.array([k]) for k in (2, 2, 3, 4)), spread=0.0, variance=1.0), 12)
        0.5
    """
    taste, weight = _points(spread**0.5, variance)
    every = int(n.sum())
    width = 1 << (every + 1).bit_length()
    transform = np.ones((len(taste), width // 2 + 1), complex)
    kinds, times = np.unique(np.stack([n, all_won, total]), axis=1, return_counts=True)
    for (size, good, of), often in zip(kinds.T.tolist(), times.tolist()):
        x = np.arange(max(0, size - (of - good)), min(size, good) + 1)
        logs = _log_choose(good, x) + _log_choose(of - good, size - x) + taste[:, None] * x
        chances = np.zeros((len(taste), width))
        chances[:, x] = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        transform *= np.fft.rfft(chances, axis=1) ** often
    found = np.fft.irfft(transform, width, axis=1)[:, int(won.sum()) : every + 1].sum(axis=1)
    return min(max(float(weight @ found), LEAST), 1.0)


def _points(deviation: float, variance: float) -> tuple[Floats, Floats]:
    """Tastes, and how likely each is: closer together than what the votes can tell apart."""
    if deviation == 0:
        return np.zeros(1), np.ones(1)
    step = min(deviation / 4, 0.5 / max(variance, 1e-9) ** 0.5)
    count = min(MOST_POINTS, int((REACH + AGAINST) * deviation / step) + 2)
    taste = np.linspace(-AGAINST * deviation, REACH * deviation, count)
    weight = np.exp(-((taste / deviation) ** 2) / 2)
    return taste, weight / weight.sum()
