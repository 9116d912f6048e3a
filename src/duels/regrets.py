"""What a duel costs, and which arms are the right answer: notions of regret by name.

`condorcet` is the paper's: (Δ_i + Δ_j)/2. Where no arm beats every other one it is not defined, and `copeland` takes
its place unless another notion is asked for.
"""

from typing import NamedTuple

import numpy as np

from .errors import UnknownName
from .preference import PreferenceMatrix

NOTIONS = ("condorcet", "copeland", "borda", "weak", "strong")
AUTO = "auto"


class Regret(NamedTuple):
    """A notion of regret on one matrix."""

    name: str
    arm: np.ndarray  # (K,) float64: what an arm costs; 0 for the winners
    pair: np.ndarray | None  # (K, K) float64: what a duel costs, where it is not the mean of its two arms
    winners: tuple[int, ...]

    def of(self, met: np.ndarray) -> float:
        """The regret of duels met[i, j] = met[j, i]; on the diagonal twice the self-duels."""
        if self.pair is None:
            return 0.5 * float((met.sum(axis=1) * self.arm).sum())
        return 0.5 * float((met * self.pair).sum())


def find_regret(matrix: PreferenceMatrix, name: str = AUTO) -> Regret:
    """The notion of that name; `auto` is `condorcet` if the matrix has a Condorcet winner, else `copeland`.

    condorcet: the mean of Δ_i and Δ_j, Δ_i being how far the Condorcet winner is ahead of i. weak: the smaller of
        them. strong: the larger.
    copeland: the mean of ζ* − ζ_i and ζ* − ζ_j, ζ_i being the share of the other arms that i beats.
    borda: the mean of b* − b_i and b* − b_j, b_i being i's chance against a random other arm.
    """
    if name == AUTO:
        name = "copeland" if matrix.condorcet_winner is None else "condorcet"
    if name == "copeland":
        scores = matrix.copeland_scores / max(matrix.arms - 1, 1)
        return Regret(name, scores.max() - scores, None, matrix.copeland_winners)
    if name == "borda":
        scores = (matrix.borda_scores * matrix.arms - 0.5) / max(matrix.arms - 1, 1)
        return Regret(name, scores.max() - scores, None, matrix.borda_winners)
    if name not in NOTIONS:
        raise UnknownName("notion of regret", name, (AUTO, *NOTIONS))
    gaps = matrix.gaps
    winner = matrix.condorcet_winner
    assert winner is not None  # gaps refuses a matrix without one
    pair = {"weak": np.minimum.outer, "strong": np.maximum.outer}.get(name)
    return Regret(name, gaps, None if pair is None else pair(gaps, gaps), (winner,))
