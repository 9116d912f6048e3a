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

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PARTS = 60  # shares are rounded to sixtieths: exact for up to seven voters
LEAST = 1e-12  # p-values below are not exact


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
    others, m = same + other, same + other + 1
    mine = _parts(same, others)
    low, high = _parts(np.minimum(same, other), others), _parts(np.maximum(same, other), others)
    p_chance = _at_most(high - low, np.full(len(m), 0.5), int((high - mine).sum()))
    # The voter is one of same + 1, who each have `same` others with them, or of `other`, who each have other − 1.
    theirs = np.where(other > 0, _parts(np.maximum(other - 1, 0), others), mine)
    gap = theirs - mine
    p_theirs = np.where(gap >= 0, other, same + 1) / m  # of the larger share
    p_low = _at_most(np.abs(gap), p_theirs, int((mine - np.minimum(mine, theirs)).sum()))
    mean = ((same + 1) * mine + other * theirs) / m
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
    turns = np.arange(width // 2 + 1)
    transform = np.ones(len(turns), complex)
    for step, p, times in zip(size.tolist(), chance, count.tolist()):  # that of a sum is the product of its parts'
        transform *= (1 - p + p * np.exp(-2j * np.pi / width * (turns * step % width))) ** times
    folded = np.fft.irfft(transform, width)  # sums that differ by the width share a place
    found = float(folded[np.arange(begin, total + 1) % width].sum())
    return min(max(found, LEAST), 1.0)


def _window(size: Ints, chance: Floats, count: Ints) -> tuple[int, int]:
    """Where a sum is but for a probability of LEAST / 10, by Hoeffding's inequality: the first place, and how many."""
    every = int(size @ count) + 1
    reach = math.ceil(math.sqrt(math.log(20 / LEAST) / 2 * float(size**2 @ count)))
    if 2 * reach + 1 >= every:
        return 0, every
    return max(0, math.floor(float((size * chance) @ count)) - reach), 2 * reach + 1
