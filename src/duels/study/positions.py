"""Position bias: does a judge prefer a side, whatever is shown there?

A fair coin decides which arm is on the left. If a judge looks at the arms only, nothing before its answer depends on
that duel's coin, so given the past a decisive answer says left with probability ½. Then M of l lefts and r rights,
B(l+5, r+5) / B(5, 5) · 2^(l+r), is a martingale that starts at 1, and by Ville's inequality it ever reaches 1/α with
probability α at most. The k-th judge of a study gets α = 0.01 / (k (k+1)), and these add up to 0.01 however many judges
come. `docs/study/positions.md` has the proof and the power.

`side_p_values` is for finished votes, which are looked at once.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..checks import check_int
from ..errors import InvalidInput
from ..policies.evidence import is_certain

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
