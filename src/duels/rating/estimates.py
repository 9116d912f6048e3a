"""Strengths of arms in logits, with limits, and which arms are above which."""

from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .clusters import Clusters, effective_clusters
from .counts import Bools, Cells, Floats
from .fitting import Fit, Model, Spread, bootstrap, fit, sandwich

USUAL = 1.0  # logits: how far arms are apart, roughly; see `half_widths`


class Estimates(NamedTuple):
    """What a model says about K arms.

    Attributes:
        strength: (K,) float64: In logits, relative to the reference.
        lower: (K,) float64: The lower limits; −∞ if the votes give none.
        upper: (K,) float64: The upper limits; +∞ if the votes give none.
        above: (K, K) bool: Whether i is above j, so that all statements about one arm hold together.
        effective: (K,) float64: The effective number of clusters with votes on each arm; ∞ for votes that do not depend
            on one another.
        fitted: The fit.
    """

    strength: Floats
    lower: Floats
    upper: Floats
    above: Bools
    effective: Floats
    fitted: Fit

    def chance(self, strength: Floats) -> Floats:
        """The probability that an arm with this strength beats one with strength 0, a tie being half a win."""
        return self.fitted.model.chance(strength, self.fitted.solution, self.fitted.cells.arms)


class Intervals(NamedTuple):
    """How intervals are computed.

    Attributes:
        kind: sandwich or bootstrap.
        confidence: Of each interval.
        rounds: Of the bootstrap.
        seed: Of the bootstrap.
        always: Whether they hold also for votes on pairs that were chosen by earlier votes, and whose number depends on
            what they show; see `half_widths`.
    """

    kind: str
    confidence: float
    rounds: int
    seed: int
    always: bool = False


def estimate(
    model: Model, cells: Cells, anchor: int | None, intervals: Intervals, clusters: Clusters | None = None
) -> Estimates:
    """Fit a model to votes.

    Args:
        model: The model.
        cells: The votes.
        anchor: The arm with strength 0; by default the mean strength is 0, see `fit`.
        intervals: How intervals are computed.
        clusters: Which votes depend on one another.
    """
    fitted = fit(model, cells, anchor)
    rounds = None
    try:
        if intervals.kind == "bootstrap":
            rng = np.random.default_rng(intervals.seed)
            rounds = bootstrap(fitted, intervals.rounds, rng, clusters)[: fitted.arms]
            spread = _spread_of_rounds(rounds, clusters, cells)
        else:
            spread = sandwich(fitted, clusters)
    except np.linalg.LinAlgError:
        raise InvalidInput(
            f"the {fitted.arms} ratings have no intervals: the counts of their pairs are so uneven that rounding hides "
            "the small ones; leave out pairs with few votes, or arms that nearly always win or lose"
        ) from None
    found = _estimates(fitted, spread, anchor, intervals, rounds)
    return found._replace(
        lower=np.where(fitted.reach[:, fitted.reference].all(axis=1), found.lower, -np.inf),
        upper=np.where(fitted.reach[fitted.reference].all(axis=0), found.upper, np.inf),
        above=found.above & fitted.reach,
    )


def _spread_of_rounds(rounds: Floats, clusters: Clusters | None, cells: Cells) -> Spread:
    """The covariance of (K, rounds) fits to clusters drawn at random, of which few vary less than the clusters do."""
    if clusters is None:
        return Spread(np.cov(rounds), np.full(len(rounds), np.inf))
    effective = effective_clusters(clusters, cells)
    larger = np.sqrt(effective / np.maximum(effective - 1, 1e-9))
    return Spread(np.cov(rounds) * np.outer(larger, larger), effective)


def _estimates(
    fitted: Fit, spread: Spread, anchor: int | None, intervals: Intervals, rounds: Floats | None
) -> Estimates:
    """Limits of K strengths, and which of them differ.

    Quantiles of rounds of the bootstrap are moved away from the strength as far as the half width is more than that of
    a normal distribution with the variance of the rounds (Hesterberg 2015).
    """
    strength = fitted.x[: fitted.arms]
    covariance, effective = spread.covariance[: len(strength), : len(strength)], spread.effective[: len(strength)]
    variance = np.diag(covariance).clip(0)
    clusters = effective if anchor is None else np.minimum(effective, effective[anchor])
    half = half_widths(variance, intervals.confidence, clusters, always=intervals.always)
    lower, upper = strength - half, strength + half
    if rounds is not None:
        tail = (1 - intervals.confidence) / 2
        usual = normal_quantile(intervals.confidence) * rounds.std(axis=1, ddof=1)
        more = np.divide(half, usual, out=np.ones(len(half)), where=usual > 0)
        below, above = np.quantile(rounds, [tail, 1 - tail], axis=1, method="weibull") - strength
        finite = np.isfinite(half)
        lower = np.where(finite, strength + np.where(finite, more, 0) * below, -np.inf)
        upper = np.where(finite, strength + np.where(finite, more, 0) * above, np.inf)
    return Estimates(strength, lower, upper, _find_above(strength, spread, intervals), effective, fitted)


def half_widths(
    variance: Floats, confidence: float, effective: Floats, statements: int = 1, always: bool = False
) -> Floats:
    """Return how far intervals reach to each side of estimates.

    Args:
        variance: (n,): Of the estimates.
        confidence: Of all statements together.
        effective: (n,): The effective number of clusters, from which the variance was estimated; ∞ for independent
            votes.
        statements: How many intervals must hold together (Bonferroni).
        always: Whether the intervals hold at all times at once, while votes come in. They are the values that a mixture
            of normal distributions does not reject (Robbins 1970): with variance v, half of the length is
            √(v (1 + v) (2 log(1/α) + log(1 + 1/v))), which is shortest relative to √v where v is about a tenth.
    """
    from scipy.special import ndtri, stdtrit

    error = (1 - confidence) / max(statements, 1)
    freedom = np.maximum(effective - 1, 0)
    normal = -ndtri(error / 2)
    quantile = np.full(np.shape(variance), normal)
    finite = np.isfinite(freedom)
    with np.errstate(all="ignore"):
        quantile = np.where(finite, -stdtrit(np.where(finite, freedom, 1), error / 2), quantile)
    quantile = np.where(freedom > 0, quantile, np.inf)
    if always:
        relative = np.asarray(variance) / USUAL**2
        with np.errstate(divide="ignore"):
            mixed = np.sqrt((1 + relative) * (2 * np.log(1 / error) + np.log1p(1 / relative)))
        quantile = quantile * mixed / normal
    width: Floats = np.multiply(quantile, np.sqrt(variance), out=np.zeros(np.shape(variance)), where=variance > 0)
    return width


def normal_quantile(confidence: float) -> float:
    """Return how many standard errors an interval reaches to each side."""
    from scipy.special import ndtri

    return float(-ndtri((1 - confidence) / 2))


def _find_above(strength: Floats, spread: Spread, intervals: Intervals) -> Bools:
    """(K, K): whether the interval of a difference is above 0. Bonferroni: an arm's K − 1 intervals hold together."""
    arms = len(strength)
    own = np.diag(spread.covariance)[:arms]
    variance = (own[:, None] + own - 2 * spread.covariance[:arms, :arms]).clip(0)
    effective = np.minimum(spread.effective[:arms, None], spread.effective[:arms])
    difference = strength[:, None] - strength
    half = half_widths(variance, intervals.confidence, effective, arms - 1, intervals.always)
    certain: Bools = difference > half
    return certain & (difference > 1e-9)
