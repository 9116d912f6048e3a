"""Bradley–Terry ratings without intervals, for leaderboards."""

import numpy as np

from . import bradley_terry
from .counts import Floats, Ints, cells_of_pairs
from .elo import FIRST, POINTS
from .fitting import fit


def simple_ratings(wins: Ints, ties: Ints) -> Floats:
    """Return (K,) float64: the ratings of `duels.ratings`; nan for arms without duels.

    Args:
        wins: (K, K): As in a `Tally`.
        ties: (K, K): As in a `Tally`.
    """
    met = (wins + wins.T + ties).any(axis=1)
    found = np.full(len(wins), np.nan)
    if met.any():
        those = np.ix_(met, met)
        found[met] = FIRST + POINTS * fit(bradley_terry, cells_of_pairs(wins[those], ties[those])).x
    return found
