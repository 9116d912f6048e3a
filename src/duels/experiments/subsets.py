"""Smaller problems drawn from a larger one, as the paper draws 16 and 32 of its 64 rankers."""

from typing import NamedTuple

import numpy as np

from ..checks import check_int
from ..errors import NoCondorcetWinner
from ..preference import PreferenceMatrix

TRIES = 10_000


class Subset(NamedTuple):
    """A matrix of some of the arms, with a Condorcet winner, and how many draws without one came before it."""

    matrix: PreferenceMatrix
    refused: int


def draw_subset(matrix: PreferenceMatrix, arms: int, seed: int = 0) -> Subset:
    """That many arms drawn at random, again and again until one of them beats all others of the draw."""
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
        matrix.gaps  # noqa: B018 — raises, and says what the matrix has instead of a winner
    raise NoCondorcetWinner(
        f"none of {TRIES:,} random subsets of {arms} arms of {matrix.name} has an arm that beats every other one: "
        f"the share that has is {matrix.condorcet_probability(arms):.2g}; choose another size"
    )
