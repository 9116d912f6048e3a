"""Strengths of arms in logits, with limits, and which arms are above which."""

from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..votes.votes import Votes
from .counts import Bools, Cells, Floats, sigmoid
from .elo import FIRST, POINTS, elo, elo_rounds
from .fitting import Fit, Model, bootstrap, fit, sandwich


class Estimates(NamedTuple):
    """What a model says about K arms.

    Attributes:
        strength: (K,) float64: In logits, relative to the reference.
        lower: (K,) float64: The lower limits; −∞ if the votes give none.
        upper: (K,) float64: The upper limits; +∞ if the votes give none.
        above: (K, K) bool: Whether i is above j, so that all statements about one arm hold together.
        fitted: The fit; None for Elo.
    """

    strength: Floats
    lower: Floats
    upper: Floats
    above: Bools
    fitted: Fit | None = None

    def chance(self, strength: Floats) -> Floats:
        """The probability that an arm with this strength beats one with strength 0, a tie being half a win."""
        if self.fitted is None:
            return sigmoid(strength)
        return self.fitted.model.chance(strength, self.fitted.solution, self.fitted.cells.arms)


class Intervals(NamedTuple):
    """How intervals are computed.

    Attributes:
        kind: sandwich or bootstrap.
        confidence: Of each interval.
        rounds: Of the bootstrap.
        seed: Of the bootstrap.
    """

    kind: str
    confidence: float
    rounds: int
    seed: int

    def limits(self, draws: Floats) -> Floats:
        """(2, K): quantiles of (K, rounds) draws."""
        tail = (1 - self.confidence) / 2
        return np.asarray(np.quantile(draws, [tail, 1 - tail], axis=1))


def estimate(model: Model, cells: Cells, anchor: int | None, intervals: Intervals) -> Estimates:
    """Fit a model to votes.

    Args:
        model: The model.
        cells: The votes.
        anchor: The arm with strength 0; by default the mean strength is 0, see `fit`.
        intervals: How intervals are computed.
    """
    fitted = fit(model, cells, anchor)
    strength = fitted.x[: fitted.arms]
    try:
        lower, upper, spread = _limits(fitted, intervals)
    except np.linalg.LinAlgError:
        raise InvalidInput(
            f"the {fitted.arms} ratings have no intervals: the counts of their pairs are so uneven that rounding hides "
            "the small ones; leave out pairs with few votes, or arms that nearly always win or lose"
        ) from None
    lower = np.where(fitted.reach[:, fitted.reference].all(axis=1), lower, -np.inf)
    upper = np.where(fitted.reach[fitted.reference].all(axis=0), upper, np.inf)
    above = _above(strength, spread, intervals.confidence) & fitted.reach
    return Estimates(strength, lower, upper, above, fitted)


def _limits(fitted: Fit, intervals: Intervals) -> tuple[Floats, Floats, Floats]:
    """(K,) lower and upper limits of the strengths, and their (K, K) covariance."""
    arms, strength = fitted.arms, fitted.x[: fitted.arms]
    if intervals.kind == "bootstrap":
        draws = bootstrap(fitted, intervals.rounds, np.random.default_rng(intervals.seed))[:arms]
        lower, upper = intervals.limits(draws)
        return lower, upper, np.cov(draws)
    spread = sandwich(fitted)[:arms, :arms]
    half = normal_quantile(intervals.confidence) * np.sqrt(np.diag(spread).clip(0))
    return strength - half, strength + half, spread


def estimate_elo(votes: Votes, anchor: int | None, intervals: Intervals) -> Estimates:
    """Compute Elo ratings, as strengths in logits; the intervals are those of the bootstrap."""
    arms, rng = len(votes.names), np.random.default_rng(intervals.seed)
    strength = (elo(arms, votes.left, votes.right, votes.winner) - FIRST) / POINTS
    draws = (elo_rounds(arms, votes.left, votes.right, votes.winner, intervals.rounds, rng) - FIRST) / POINTS
    if anchor is not None:
        strength, draws = strength - strength[anchor], draws - draws[anchor]
    lower, upper = intervals.limits(draws)
    return Estimates(strength, lower, upper, _above(strength, np.cov(draws), intervals.confidence))


def normal_quantile(confidence: float, statements: int = 1) -> float:
    """Return how many standard errors an interval reaches to each side, if several intervals must hold together."""
    from scipy.special import ndtri

    return float(-ndtri((1 - confidence) / 2 / max(statements, 1)))


def _above(strength: Floats, spread: Floats, confidence: float) -> Bools:
    """(K, K): whether the interval of a difference is above 0. Bonferroni: an arm's K − 1 intervals hold together."""
    own = np.diag(spread)
    error = np.sqrt((own[:, None] + own - 2 * spread).clip(0))
    difference = strength[:, None] - strength
    certain: Bools = difference > normal_quantile(confidence, len(strength) - 1) * error
    return certain & (difference > 1e-9)
