"""Does a voter look at what is shown? Exact tests of agreement with the others, on questions that others answered too.

Only answers that chose an arm count. On a question of which a of m voters chose one arm and b the other, a voter's
share is that of the other m − 1 who chose the same arm. Its sum over the questions is compared with two distributions:

- A voter who tosses a coin, independently of the others, has the share of either arm with probability ½.
- A voter like the others: if the answers to a question may be exchanged, then given that a and b chose the arms, the
  voter is one of the a with probability a/m, and one of the b with b/m.

Questions are independent in both cases, so the distribution of the sum is known, and the p-values are exact.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .positions import LEVEL

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
