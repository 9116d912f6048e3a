"""A small table of votes, and the ratings that two other libraries give it."""

import numpy as np

from duels.rating.counts import cells_of_pairs

NAMES = ("a", "b", "c", "d", "e")
# Left, right, and how often left won, lost and tied.
TABLE = (
    ("a", "b", 5, 2, 1),
    ("a", "c", 3, 3, 2),
    ("b", "c", 4, 1, 0),
    ("b", "d", 2, 3, 1),
    ("c", "d", 6, 2, 3),
    ("a", "e", 1, 2, 0),
    ("d", "e", 2, 2, 2),
)
VOTES = [
    (left, right, winner)
    for left, right, *counts in TABLE
    for winner, count in zip(("left", "right", "tie"), counts)
    for _ in range(count)
]
# choix 0.4.1: ilsr_pairwise(5, data, alpha=0, tol=1e-13), each win twice, a tie once each way.
# evalica 0.4.2: log of bradley_terry(..., tolerance=1e-14, limit=100_000). Both minus their mean, equal to 1e-12.
THETA = np.array([0.198476675763, -0.095882884359, 0.017075622946, -0.246535777679, 0.126866363329])


def tables(arms, *counts):
    """Wins and ties as (K, K), from (i, j, won, lost, tied)."""
    wins, ties = np.zeros((2, arms, arms), dtype=np.int64)
    for i, j, won, lost, tied in counts:
        wins[i, j] += won
        wins[j, i] += lost
        ties[i, j] += tied
        ties[j, i] += tied
    return wins, ties


def cells(arms, *counts):
    return cells_of_pairs(*tables(arms, *counts))


def five():
    return cells(5, *((NAMES.index(left), NAMES.index(right), *counts) for left, right, *counts in TABLE))
