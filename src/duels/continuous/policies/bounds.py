"""What the policies with confidence bounds share: bounds on differences of utility, and who may be the best."""

import math
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput
from ..search import Valued
from ..situation import Situation


class Plausible(NamedTuple):
    """The candidates that may be the best: no other one is better with confidence."""

    points: np.ndarray  # (m, d)
    difference: np.ndarray  # (m, m) posterior mean of f(point_i) − f(point_j)
    spread: np.ndarray  # (m, m) its standard deviation


def plausible(situation: Situation, points: np.ndarray, beta: float) -> Plausible:
    """Return those points i with Δ_ij + β s_ij ≥ 0 for all j. The one with the largest mean always is among them."""
    difference, spread = situation.model.differences(points)
    may = (difference + beta * spread >= 0.0).all(axis=1)
    return Plausible(points[may], difference[np.ix_(may, may)], spread[np.ix_(may, may)])


def make_bound(situation: Situation, other: np.ndarray, beta: float) -> Valued:
    """Return f(x) − f(other)'s upper confidence bound as a function of x, with its gradient; a negative β is lower."""

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        moments = situation.model.pair(x, other)
        spread = max(moments[0, 2], 1e-16) ** 0.5
        slope = moments[1:, 0] + 0.5 * beta / spread * moments[1:, 2]
        return float(moments[0, 0] - moments[0, 1] + beta * spread), slope

    return value


def check_beta(name: str, beta: float) -> None:
    """Raise if β is not a positive number."""
    if not (beta > 0 and math.isfinite(beta)):
        raise InvalidInput(f"beta of {name} is {beta:g}: expected a positive number of standard deviations")
