"""Position bias: does a judge prefer a side, whatever is shown there?

A fair coin decides which arm is on the left. If a judge looks at the arms only, nothing before its answer depends on
that duel's coin, so given the past a decisive answer says left with probability ½. Then M of l lefts and r rights,
B(l+5, r+5) / B(5, 5) · 2^(l+r), is a martingale that starts at 1, and by Ville's inequality it ever reaches 1/α with
probability α at most. The k-th judge of a study gets α = 0.01 / (k (k+1)), and these add up to 0.01 however many judges
come. `docs/study/positions.md` has the proof and the power.

`side_p_values` is for finished votes, which are looked at once.

Repeatability: does a judge give the same answer when it is asked the same question again?

One question in ten is repeated. The study's seed and the question's number decide which, before it is answered, so that
neither the answer nor the verdict has a say. The same judge is asked the same question in the same order, and the reply
counts for nothing but this.

Does a voter look at what is shown? Exact tests of agreement with the others, on questions that others answered too.

Only answers that chose an arm count. On a question of which a of m voters chose one arm and b the other, a voter's
share is that of the other m − 1 who chose the same arm. Its sum over the questions is compared with two distributions:

- A voter who tosses a coin, independently of the others, has the share of either arm with probability ½.
- A voter like the others: if the answers to a question may be exchanged, then given that a and b chose the arms, the
  voter is one of the a with probability a/m, and one of the b with b/m.

Questions are independent in both cases, so the distribution of the sum is known, and the p-values are exact.

Does a voter favor an arm more than chance and honest taste allow? Such as a ring that votes for its own model.

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

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...checks import check_int
from ...errors import InvalidInput, format_count
from ...policies.evidence import is_certain

LEVEL = 0.01  # how likely a study with unbiased judges ever has an alarm, at most


class Position(NamedTuple):
    """How often a judge chose each side.

    Attributes:
        judge: The judge's name; None for answers without a voter.
        left: Answers for the left side.
        right: Answers for the right side.
        share: The share of lefts among both; a half if there are none.
        biased: Whether the judge prefers a side for certain.
    """

    judge: str | None
    left: int
    right: int
    share: float
    biased: bool


class Sides:
    """The sides that the judges of a study chose, one answer at a time.

    An alarm is final: the largest evidence so far counts, not that of now. So the answers must come in the order in
    which they were given, each duel's first answer only, and only of duels whose sides a coin of their own decided. An
    answer that was undone later stays.

    Args:
        found: What `positions()` of an earlier `Sides` returned, to continue from there.

    Example:
        >>> sides = Sides()
        >>> [sides.add("gpt", "left") for _ in range(18)].index(True)
        16
        >>> sides.positions()
        [Position(judge='gpt', left=18, right=0, share=1.0, biased=True)]
    """

    def __init__(self, found: Iterable[Position] = ()) -> None:
        self._found = {one.judge: one for one in found}
        self._rank = {judge: rank for rank, judge in enumerate(self._found, 1)}

    def add(self, judge: str | None, answer: str) -> bool:
        """Count an answer; those other than left and right are ignored.

        Args:
            judge: Who answered.
            answer: left, right, tie, both_bad or skip.

        Returns:
            Whether this answer raised the alarm about this judge.
        """
        if answer not in ("left", "right"):
            return False
        rank = self._rank.setdefault(judge, len(self._rank) + 1)
        _, left, right, _, before = self._found.get(judge, _position(judge, 0, 0, False))
        left, right = left + (answer == "left"), right + (answer == "right")
        biased = before or _fires(left, right, rank)
        self._found[judge] = _position(judge, left, right, biased)
        return biased and not before

    def biased(self, judge: str | None) -> bool:
        """Return whether there was an alarm about a judge."""
        return judge in self._found and self._found[judge].biased

    def positions(self) -> list[Position]:
        """Return the judges that chose a side at least once, in the order of their first choice."""
        return list(self._found.values())


def positions(lefts: Sequence[int], rights: Sequence[int], names: Sequence[str | None]) -> list[Position]:
    """Test judges for position bias by what they answered in all.

    The order of answers is unknown here, so only the evidence of now counts: `Sides` also finds a bias that was certain
    before and is not any more.

    Args:
        lefts: How often each judge chose the left side.
        rights: How often each chose the right side.
        names: The judges, in the order in which they first answered.

    Returns:
        One row per judge.

    Raises:
        InvalidInput: If the lists differ in length, or a count is not a whole number of 0 or more.

    Example:
        >>> [one.biased for one in positions([45, 15], [15, 16], ["gpt", "claude"])]
        [True, False]
    """
    if not len(lefts) == len(rights) == len(names):
        raise InvalidInput(
            f"there are {len(lefts)} lefts, {len(rights)} rights and {len(names)} names: expected one of each per judge"
        )
    rows = enumerate(zip(names, lefts, rights), 1)
    return [_position(name, left, right, is_biased(left, right, rank)) for rank, (name, left, right) in rows]


def side_p_values(lefts: npt.ArrayLike, rights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the p-values of exact two-sided binomial tests: how likely a fair coin is as uneven as that, or more.

    They are for votes that are complete, and looked at once. `positions` may be looked at all the time.

    Args:
        lefts: (n,) int: How often each judge chose the left side.
        rights: (n,) int: How often each chose the right side.

    Example:
        >>> side_p_values([9, 5], [1, 5]).round(4).tolist()  # 2 (10 + 1) / 2¹⁰
        [0.0215, 1.0]
    """
    from scipy.special import bdtrc

    left, right = np.asarray(lefts, np.int64), np.asarray(rights, np.int64)
    return np.asarray(np.minimum(1.0, 2 * bdtrc(np.maximum(left, right) - 1.0, left + right, 0.5)))


def is_biased(left: int, right: int, rank: int) -> bool:
    """Return whether so many lefts and rights are certain to be more than luck.

    Args:
        left: Answers for the left side.
        right: Answers for the right side.
        rank: The judge's number in the study, from 1, in the order of first answers.

    Raises:
        InvalidInput: If a count is not a whole number of 0 or more, or the rank not one of 1 or more.
    """
    return _fires(check_int("left", left, 0), check_int("right", right, 0), check_int("rank", rank, 1))


def is_biased_together(left: int, right: int) -> bool:
    """Return whether so many lefts and rights of all judges of a study are certain to be more than luck.

    If no judge prefers a side, it is ever true with a probability of LEVEL at most, besides that of `is_biased`.
    """
    return is_certain(max(left, right), min(left, right), math.log(1 / LEVEL))


def _fires(left: int, right: int, rank: int) -> bool:
    return is_certain(max(left, right), min(left, right), math.log(rank * (rank + 1) / LEVEL))


def _position(judge: str | None, left: int, right: int, biased: bool) -> Position:
    return Position(judge, left, right, left / (left + right) if left + right else 0.5, biased)


EVERY = 10  # one question in so many is repeated


class Repeatability(NamedTuple):
    """How often a judge repeated its answer.

    Attributes:
        judge: The judge's name; None for a single one.
        repeats: How many of its answers it was asked for again; replies without an answer are left out.
        same: How often it gave the same answer again.
    """

    judge: str | None
    repeats: int
    same: int

    def __str__(self) -> str:
        name = "the judge" if self.judge is None else self.judge
        return f"{name} gave the same answer in {self.same} of {format_count(self.repeats, 'repeated question')}"


def is_drawn(seed: int, duel: int) -> bool:
    """Return whether a question is to be repeated.

    Args:
        seed: The study's seed.
        duel: The question's number in the study.

    Example:
        >>> [duel for duel in range(50) if is_drawn(0, duel)]
        [5, 10, 13, 17, 19, 35, 37, 44, 46]
    """
    digest = hashlib.blake2b(f"{seed}/{duel}/repeat".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % EVERY == 0


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PARTS = 60  # shares are rounded to sixtieths: exact for up to seven voters
LEAST = 1e-12  # p-values below are not exact
CHANCE = 0.05  # a voter whose p_chance is at most that looks, though perhaps not well
SUSPECT = 0.02  # where p_low is at most LEVEL, its normal approximation is smaller than that …
WITHIN = 100  # … and in all cases that were tried less than so many times p_low; if not, a voter is not listed
TINY = 37.0  # frequencies at which a transform is below exp(−37), about 10⁻¹⁶, are left out


class Compared(NamedTuple):
    """How a voter's choices compare with those of others on the same questions.

    Attributes:
        share: The share of the others who chose the same arm, on average; a half is that of a coin. None without any
            question.
        expected: What the share is on average for a voter like the others.
        p_low: How likely a voter like the others has that share, or a smaller one.
        p_chance: How likely a coin has that share, or a larger one.
    """

    share: float | None
    expected: float | None
    p_low: float
    p_chance: float


class Shares(NamedTuple):
    """How the choices of V voters compare with those of others; the figures of `Compared` for all of them at once.

    Attributes:
        questions: (V,) int64: In how many questions a voter and others chose an arm.
        share: (V,) float64: As in `Compared`; NaN without any question.
        expected: (V,) float64
        suspects: (V,) bool: Whose `p_low` may be small enough for Holm's method, by its normal approximation. Each
            part of the sum has its larger value with probability ½ or more, so the lower tail is not much lighter.
    """

    questions: Ints
    share: Floats
    expected: Floats
    suspects: npt.NDArray[np.bool_]


def shares_of(voter: Ints, same: Ints, other: Ints, voters: int) -> Shares:
    """Return how the choices of each voter compare with those of others, without exact tests.

    Args:
        voter: (n,): Who chose, from 0.
        same: (n,): How many others chose the same arm.
        other: (n,): How many chose the other arm.
        voters: How many voters there are.
    """
    from scipy.special import ndtr

    # There are far fewer kinds of questions than answers.
    width = int(other.max(initial=0)) + 1
    code = same * width + other
    kinds = np.flatnonzero(np.bincount(code, minlength=1))
    a, b = kinds // width, kinds % width
    kind = np.zeros(int(kinds.max(initial=0)) + 1, np.int64)
    kind[kinds] = np.arange(len(kinds))
    mine, theirs, p_theirs = _alike(a, b) if len(code) else (np.zeros(0),) * 3
    mean, variance = mine + (theirs - mine) * p_theirs, (theirs - mine) ** 2 * p_theirs * (1 - p_theirs)
    number = kind[code] if len(code) else code
    questions = np.bincount(voter, minlength=voters)
    total, expected, spread = (
        np.bincount(voter, one[number], minlength=voters) for one in (mine, mean, variance)
    )  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(spread > 0, ndtr((total - expected) / np.sqrt(spread)), 1.0)
        others = int((questions > 0).sum() - (p <= SUSPECT).sum())  # who are certainly not listed
        suspects = p <= min(SUSPECT, WITHIN * LEVEL / (others + 1))
        return Shares(questions, total / questions / PARTS, expected / questions / PARTS, suspects)


def _alike(same: Ints, other: Ints) -> tuple[Ints, Ints, Floats]:
    """The voter's share, the share of those who chose the other arm, and how likely the voter is one of them."""
    others = same + other
    mine = _parts(same, others)
    # The voter is one of same + 1, who each have `same` others with them, or of `other`, who each have other − 1.
    theirs = np.where(other > 0, _parts(np.maximum(other - 1, 0), others), mine)
    return mine, theirs, other / (others + 1)


def is_at_random(p_low: Floats, p_chance: Floats) -> npt.NDArray[np.bool_]:
    """Return which voters certainly agree less than the others do, and not clearly more than a coin does."""
    return np.asarray((holm(p_low) <= LEVEL) & (p_chance > CHANCE))


def compare(same: Ints, other: Ints) -> Compared:
    """Compare the choices of one voter with the others.

    Args:
        same: (n,): How many others chose the voter's arm, for each question.
        other: (n,): How many chose the other arm. Each question has at least one choice of another voter.

    Example:
        >>> # A coin has shares of 1 or 0. A voter like the others has 1, 1, and then ½ or, in one of three cases, 0.
        >>> [round(value, 3) for value in compare(np.array([2, 2, 0]), np.array([0, 0, 2]))]
        [0.667, 0.778, 0.333, 0.5]
    """
    if not len(same):
        return Compared(None, None, 1.0, 1.0)
    others = same + other
    mine, theirs, p_theirs = _alike(same, other)
    low, high = _parts(np.minimum(same, other), others), _parts(np.maximum(same, other), others)
    p_chance = _at_most(high - low, np.full(len(same), 0.5), int((high - mine).sum()))
    gap = theirs - mine
    p_larger = np.where(gap >= 0, p_theirs, 1 - p_theirs)
    p_low = _at_most(np.abs(gap), p_larger, int((mine - np.minimum(mine, theirs)).sum()))
    mean = mine + gap * p_theirs
    return Compared(float(mine.mean()) / PARTS, float(mean.mean()) / PARTS, p_low, p_chance)


def holm(p: Floats) -> Floats:
    """Return p-values adjusted by Holm's method: those at most α are all right together with probability 1 − α.

    It holds however the tests depend on one another.

    Example:
        >>> holm(np.array([0.03, 0.01, 0.02])).tolist()
        [0.04, 0.03, 0.04]
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _parts(count: Ints, others: Ints) -> Ints:
    return np.rint(PARTS * count / others).astype(np.int64)


def _at_most(sizes: Ints, chances: Floats, total: int) -> float:
    """The probability that independent variables, each 0 or its size, add up to at most a total."""
    kinds, count = np.unique(np.stack([sizes, chances])[:, sizes > 0], axis=1, return_counts=True)
    size, chance = kinds[0].astype(np.int64), kinds[1]
    unit = int(np.gcd.reduce(size)) or 1
    size, total = size // unit, total // unit
    if total >= int(size @ count):
        return 1.0
    begin, width = _window(size, chance, count)
    if not begin <= total < begin + width:
        return LEAST if total < begin else 1.0
    transform = np.zeros(width // 2 + 1, complex)
    turns = _frequencies(size, chance, count, width)
    found = np.ones(len(turns), complex)
    for step, p, times in zip(size.tolist(), chance, count.tolist()):  # that of a sum is the product of its parts'
        found *= (1 - p + p * np.exp(-2j * np.pi / width * (turns * step % width))) ** times
    transform[turns] = found
    folded = np.fft.irfft(transform, width)  # sums that differ by the width share a place
    at_most = float(folded[np.arange(begin, total + 1) % width].sum())
    return min(max(at_most, LEAST), 1.0)


def _frequencies(size: Ints, chance: Floats, count: Ints, width: int) -> Ints:
    """The frequencies at which the transform may be more than TINY says.

    A part's has the square 1 − 4 p (1 − p) sin²(…), which is at most exp(−4 p (1 − p) sin²(…)).
    """
    turns = np.arange(width // 2 + 1)
    weight = np.bincount(size, 4 * chance * (1 - chance) * count)
    steps = np.flatnonzero(weight)
    if len(size) < 2 * len(steps) or width < 200:
        return turns
    sine = np.sin(np.pi / width * np.arange(width)) ** 2
    decay = np.zeros(len(turns))
    for step in steps.tolist():
        decay += weight[step] * sine[turns * step % width]
    return turns[decay <= 2 * TINY]


def _window(size: Ints, chance: Floats, count: Ints) -> tuple[int, int]:
    """Where a sum is but for a probability of LEAST / 10, by Hoeffding's inequality: the first place, and how many."""
    every = int(size @ count) + 1
    reach = math.ceil(math.sqrt(math.log(20 / LEAST) / 2 * float(size**2 @ count)))
    if 2 * reach + 1 >= every:
        return 0, every
    return max(0, math.floor(float((size * chance) @ count)) - reach), 2 * reach + 1


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
