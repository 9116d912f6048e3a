"""Smaller problems drawn from a larger one, as the paper draws 16 and 32 of its 64 rankers."""

from typing import NamedTuple

import numpy as np

from ..checks import check_int
from ..errors import NoCondorcetWinner
from ..preference import PreferenceMatrix

TRIES = 10_000


class Subset(NamedTuple):
    """A matrix of some of the arms with a Condorcet winner, and the number of draws without one before it."""

    matrix: PreferenceMatrix
    refused: int


def draw_subset(matrix: PreferenceMatrix, arms: int, seed: int = 0) -> Subset:
    """Draw arms at random until one of them beats all others of the draw.

    Args:
        matrix: The matrix to draw from.
        arms: The number of arms.
        seed: The seed.

    Raises:
        NoCondorcetWinner: If none of 10,000 draws has a Condorcet winner.
    """
    arms = check_int("subset", arms, 2, matrix.arms)
    rng = np.random.default_rng([check_int("seed", seed, 0), arms])
    name = f"{matrix.name} ({arms} arms)"
    for refused in range(TRIES if arms < matrix.arms else 1):
        drawn = np.arange(arms) if arms == matrix.arms else rng.permutation(matrix.arms)[:arms]
        some = matrix.subset(drawn.tolist())
        if some.condorcet_winner is not None:
            return Subset(
                PreferenceMatrix(some.array, some.names, name if arms < matrix.arms else matrix.name), refused
            )
    if arms == matrix.arms:
        matrix.gaps  # noqa: B018 — raises an error that says what the matrix has instead of a winner
    raise NoCondorcetWinner(
        f"none of {TRIES:,} random subsets of {arms} arms of {matrix.name} has an arm that beats every other one: "
        f"the share that has is {matrix.condorcet_probability(arms):.2g}; choose another size"
    )
