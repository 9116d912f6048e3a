"""Elo ratings: one pass over the votes, in their order."""

from functools import cache

import numpy as np

from .clusters import Clusters
from .counts import TIED, Floats, Ints

FIRST = 1000.0  # every arm's rating at the start
STEP = 4.0  # of each vote; as in the arenas, and smaller than in chess, since arms do not learn
POINTS = 400 / np.log(10)  # Elo points per logit


def elo(arms: int, left: Ints, right: Ints, winner: Ints) -> Floats:
    """Return (K,) float64: the Elo ratings after all votes.

    Each vote moves both arms by STEP times the difference of outcome and expectation. A tie is half a win each way.

    Args:
        arms: K, the number of arms.
        left: (n,): As in `Votes`.
        right: (n,): As in `Votes`.
        winner: (n,): As in `Votes`.
    """
    found: Floats = _compiled()(arms, left, right, _outcomes(winner))
    return found


def elo_rounds(
    arms: int,
    left: Ints,
    right: Ints,
    winner: Ints,
    rounds: int,
    rng: np.random.Generator,
    clusters: Clusters | None = None,
) -> Floats:
    """Return (K, rounds) float64: the ratings from votes drawn at random, with replacement, in the original order.

    With clusters, these are drawn, each with all of its votes.
    """
    play, outcome, found = _compiled(), _outcomes(winner), np.empty((arms, rounds))
    for k in range(rounds):
        if clusters is None:
            drawn = np.sort(rng.integers(len(left), size=len(left)))
        else:
            times = np.bincount(rng.integers(clusters.size, size=clusters.size), minlength=clusters.size)
            drawn = np.repeat(np.arange(len(left)), times[clusters.cluster])
        found[:, k] = play(arms, left[drawn], right[drawn], outcome[drawn])
    return found


def play_votes(arms, left, right, outcome):  # type: ignore[no-untyped-def]  # compiled
    rating = np.full(arms, FIRST)
    for k in range(len(left)):
        i, j = left[k], right[k]
        expected = 1 / (1 + 10 ** ((rating[j] - rating[i]) / 400))
        rating[i] += STEP * (outcome[k] - expected)
        rating[j] -= STEP * (outcome[k] - expected)
    return rating


def _outcomes(winner: Ints) -> Floats:
    """(n,) float64 in {0, ½, 1}: the outcome for the left arm."""
    return np.array([1.0, 0.0, 0.5])[np.minimum(winner, TIED)]


@cache
def _compiled():  # type: ignore[no-untyped-def]
    import numba

    return numba.njit(nogil=True)(play_votes)
