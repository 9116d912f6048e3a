"""Notions of regret by name: what a duel costs, and which arms are correct recommendations.

`condorcet` is the paper's notion: (Δ_i + Δ_j)/2. It is not defined if no arm beats every other arm; `copeland` is then
the default.
"""

from typing import NamedTuple

import numpy as np

from .errors import InvalidInput, UnknownName
from .preference import PreferenceMatrix

NOTIONS = ("condorcet", "copeland", "borda", "weak", "strong")
AUTO = "auto"


class Regret(NamedTuple):
    """A notion of regret on one matrix."""

    name: str
    arm: np.ndarray  # (K,) float64: the cost of an arm; 0 for the winners
    winners: tuple[int, ...]

    def of(self, played: np.ndarray, cheaper: np.ndarray) -> float:
        """Compute the cumulative regret of a set of duels. A duel costs the mean, the least or the most of its arms.

        Args:
            played: (K,) how often each arm was played; twice for a duel with itself.
            cheaper: (K,) in how many duels each arm was the one that costs less.
        """
        if self.name == "weak":
            return float((cheaper * self.arm).sum())
        if self.name == "strong":
            return float(((played - cheaper) * self.arm).sum())
        return 0.5 * float((played * self.arm).sum())


def find_regret(matrix: PreferenceMatrix, name: str = AUTO) -> Regret:
    """Find a notion of regret by name and apply it to a matrix.

    - `condorcet`: the mean of Δ_i and Δ_j, where Δ_i is the gap between the Condorcet winner and arm i.
    - `weak`: the smaller of Δ_i and Δ_j.
    - `strong`: the larger of Δ_i and Δ_j.
    - `copeland`: the mean of ζ* − ζ_i and ζ* − ζ_j, where ζ_i is the fraction of the other arms that i beats.
    - `borda`: the mean of b* − b_i and b* − b_j, where b_i is the probability that i beats a random other arm.

    Args:
        matrix: The preference matrix.
        name: One of the names above, or `auto`: `condorcet` if the matrix has a Condorcet winner, else `copeland`.

    Raises:
        InvalidInput: If it is not a name.
        UnknownName: If there is no such notion.
        NoCondorcetWinner: If the notion needs a Condorcet winner and the matrix has none.
    """
    if not isinstance(name, str):
        raise InvalidInput(f"regret is of type {type(name).__name__}: expected one of {', '.join((AUTO, *NOTIONS))}")
    if name == AUTO:
        name = "copeland" if matrix.condorcet_winner is None else "condorcet"
    if name == "copeland":
        scores = matrix.copeland_scores / max(matrix.arms - 1, 1)
        return Regret(name, scores.max() - scores, matrix.copeland_winners)
    if name == "borda":
        scores = (matrix.borda_scores * matrix.arms - 0.5) / max(matrix.arms - 1, 1)
        return Regret(name, scores.max() - scores, matrix.borda_winners)
    if name not in NOTIONS:
        raise UnknownName("notion of regret", name, (AUTO, *NOTIONS))
    gaps = matrix.gaps
    winner = matrix.condorcet_winner
    assert winner is not None  # `gaps` raises for a matrix without one
    return Regret(name, gaps, (winner,))
