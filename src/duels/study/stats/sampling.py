"""How the questions of a study are drawn, and what its answers are evidence of, see `policies.evidence`.

With replacement, every answer is an independent draw. On these answers, each pair is asked about each of N items once,
which is sampling without replacement.
"""

import math

import numpy as np
import numpy.typing as npt

from ...policies import evidence as kernels
from ...policies.evidence import LOG_2
from .evidence import closeness_on_items, evidence, evidence_on_items, log_closeness
from .levels import began_as_pair
from .tally import Floats, Ints, Tally, log_evidence


class Sampling:
    """With replacement.

    Attributes:
        items: How many questions about a pair there are.
        least: The evidence of an arm that does not lead, where a number is needed.
    """

    items: float = math.inf
    least = -math.inf

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike = 0) -> Floats:
        """Return the evidence that the first arms of pairs with these counts beat the second ones, as a logarithm."""
        return evidence(won, lost)

    def weigh_closeness(self, won: Ints, lost: Ints, tied: Ints, margin: float) -> Floats:
        """Return the evidence that they are close to them, as a logarithm."""
        return log_closeness(won, lost, tied, margin)

    def weigh_pair(self, won: int, lost: int, tied: int) -> float:
        """As `weigh`, of one pair and quicker; minus infinity if the first does not lead."""
        return kernels.evidence(won, lost) if won > lost else -math.inf

    def weigh_closeness_of_pair(self, won: int, lost: int, tied: int, margin: float) -> float:
        """As `weigh_closeness`, of one pair and quicker."""
        return kernels.log_closeness(won, lost, tied, margin)


class ByTables(Sampling):
    """With replacement, by the evidence of the tables."""

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike = 0) -> Floats:
        return log_evidence(won, lost)

    def weigh_pair(self, won: int, lost: int, tied: int) -> float:
        return float(log_evidence(won, lost)) if won > lost else -math.inf


class WithoutReplacement(Sampling):
    """Each pair is asked about each item once."""

    least = -LOG_2

    def __init__(self, items: int) -> None:
        self.items = self._items = items

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike = 0) -> Floats:
        return evidence_on_items(won, lost, tied, self._items)

    def weigh_closeness(self, won: Ints, lost: Ints, tied: Ints, margin: float) -> Floats:
        """Without a margin, an arm that is not certain to win is close only when all items were asked."""
        if margin == 0:
            level = (won >= lost) & (won + lost + tied >= self._items)
            return np.where(level, np.inf, self.weigh(won, lost, tied))
        counts = zip(won.tolist(), lost.tolist(), tied.tolist())
        return np.array([self.weigh_closeness_of_pair(*three, margin) for three in counts])

    def weigh_pair(self, won: int, lost: int, tied: int) -> float:
        return kernels.evidence_on_items(won, lost, tied, self._items)

    def weigh_closeness_of_pair(self, won: int, lost: int, tied: int, margin: float) -> float:
        return closeness_on_items(won, lost, tied, self._items, margin)


def sampling_of(tally: Tally) -> Sampling:
    """Return how the answers of a study were drawn."""
    if tally.is_finite:
        return WithoutReplacement(tally.items or 0)
    # Where people come back, every pair counts alone, as in the tables; but two arms are a single pair.
    return ByTables() if tally.returning and not began_as_pair(tally) else Sampling()
