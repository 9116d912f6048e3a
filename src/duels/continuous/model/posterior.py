"""Expectation propagation for duels: a Gaussian approximation whose means and variances are nearly exact.

Rasmussen & Williams, Gaussian Processes for Machine Learning, section 3.6, with all sites updated at once. Laplace's
method matches the posterior at its mode, which is far from its mean where the scale is large and answers are few; this
matches moments. Averages of the likelihood under a normal distribution have closed forms, since the logistic function
is nearly a mixture of normal distribution functions (Monahan & Stefanski 1992), and the likelihood of a tie, the root
of σ(g) σ(−g), nearly one of normal densities.

What people read: the posterior over hypotheses, of which one is that settings do not matter, the others models.

The hyperparameters are not known, and a model with the likeliest ones is too sure. Here a few models with different
hyperparameters have weights, by importance sampling: some have hyperparameters from the prior, the others from a normal
distribution around the likeliest ones, the same standard points each time. The evidence of each is that of expectation
propagation. The flat hypothesis says that all differences are 0, so that answers are coin tosses; before any answer it
has the probability `FLAT`.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from ...engine.compiling import compile_with
from .laplace import Mode, factor, solve, solve_half
from .model import Answers, Hyperparameters, Model, Objective

# σ(x) ≈ Σ WEIGHTS Φ(STEEPNESS x), with a relative error of 1e-5 for x > −10 and 1e-3 for x > −20
STEEPNESS = (
    *(0.20569495, 0.25506347, 0.31322346, 0.38660827),
    *(0.48406843, 0.61912204, 0.81202798, 1.10052783),
)
WEIGHTS = (
    *(8.03761102e-05, 2.91929557e-03, 2.57259252e-02, 1.01993360e-01),
    *(2.35442233e-01, 3.36368438e-01, 2.46888122e-01, 5.05822507e-02),
)
# (σ(x) σ(−x))^½ ≈ Σ TIE_WEIGHTS exp(−(TIE_STEEPNESS x)²/2), with a relative error of 7e-5 for |x| < 20
TIE_STEEPNESS = (
    *(0.12895167, 0.1697837, 0.22107696, 0.28904693),
    *(0.38260154, 0.51516357, 0.70657225, 0.9948545),
)
TIE_WEIGHTS = (
    *(0.00049209, 0.00816789, 0.03697921, 0.08441998),
    *(0.12769438, 0.13791814, 0.08711424, 0.01720831),
)
TINY = 1e-250
ROUNDS, ENOUGH = 60, 1e-4  # updates of all sites; they end when no precision or shift changes by more
ROOT_2, ROOT_2_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)


def average_win(mean: float, variance: float) -> tuple[float, float, float]:
    """Kernel: ln E σ(g) for a normal g, its derivative by the mean, and minus the second one."""
    value = slope = bend = 0.0
    for k in range(len(STEEPNESS)):
        a = STEEPNESS[k] / math.sqrt(1.0 + STEEPNESS[k] * STEEPNESS[k] * variance)
        z = a * mean
        density = WEIGHTS[k] * a * math.exp(-0.5 * z * z) / ROOT_2_PI
        value += WEIGHTS[k] * 0.5 * math.erfc(-z / ROOT_2)
        slope += density
        bend += density * a * z
    if value < TINY:
        return mean + 0.5 * variance, 1.0, 0.0
    slope /= value
    return math.log(value), slope, slope * slope + bend / value


def average_tie(mean: float, variance: float) -> tuple[float, float, float]:
    """Kernel: as `average_win` for (σ(g) σ(−g))^½, which is half a win for each."""
    value = slope = bend = 0.0
    for k in range(len(TIE_STEEPNESS)):
        square = TIE_STEEPNESS[k] * TIE_STEEPNESS[k]
        a = square / (1.0 + square * variance)
        part = TIE_WEIGHTS[k] * math.sqrt(a / square) * math.exp(-0.5 * a * mean * mean)
        value += part
        slope -= part * a * mean
        bend += part * a * (1.0 - a * mean * mean)
    if value < TINY:
        return 0.5 * (variance / 4.0 - abs(mean)), -math.copysign(0.5, mean), 0.0
    slope /= value
    return math.log(value), slope, slope * slope + bend / value


def average_answer(outcome: float, mean: float, variance: float) -> tuple[float, float, float]:
    """Kernel: as `average_win`, for the likelihood of an outcome: 1 if left won, 0 if right won, ½ for a tie."""
    if outcome == 0.5:
        return average_tie(mean, variance)
    if outcome == 1.0:
        return average_win(mean, variance)
    value, slope, bend = average_win(-mean, variance)
    return value, -slope, bend


def update_sites(
    outcome: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    precision: np.ndarray,
    shift: np.ndarray,
    part: float,
    found: np.ndarray,
) -> float:
    """Kernel: fit all sites exp(shift g − ½ precision g²) to their likelihoods, given the marginals.

    Args:
        outcome: (n,) of each duel.
        mean: (n,) the posterior mean of each duel's latent difference.
        variance: (n,) its posterior variance.
        precision: (n,) of the sites; changed.
        shift: (n,) of the sites; changed.
        part: How much of each step is made.
        found: (1,) gets Σ ln of each likelihood's average over that of its site, both under the cavity.

    Returns:
        The largest change.
    """
    most, total = 0.0, 0.0
    for i in range(len(outcome)):
        rest = max(1.0 / max(variance[i], 1e-12) - precision[i], 1e-9)
        cavity = 1.0 / rest
        center = cavity * (mean[i] / max(variance[i], 1e-12) - shift[i])
        value, slope, bend = average_answer(outcome[i], center, cavity)
        added = 1.0 + precision[i] * cavity
        both = center * rest + shift[i]
        total += value + 0.5 * math.log(added) - 0.5 * (both * both * cavity / added - center * center * rest)
        bend = min(max(bend, 1e-12), 0.999999 * rest)
        new = bend / (1.0 - bend * cavity)
        moved = (slope + center * bend) / (1.0 - bend * cavity)
        change = max(abs(new - precision[i]), abs(moved - shift[i]) / (1.0 + abs(moved)))
        most = max(most, change)
        precision[i] += part * (new - precision[i])
        shift[i] += part * (moved - shift[i])
    found[0] = total
    return most


def find_sites(covariance: np.ndarray, outcome: np.ndarray) -> Mode:
    """Approximate the posterior of the latent differences by a normal distribution.

    Args:
        covariance: (n, n) their prior covariance.
        outcome: (n,) 1, ½ or 0.

    Returns:
        What predictions need: `difference` is the posterior mean, and W in `root` and `lower` the sites' precisions.
    """
    precision, shift = np.full(len(outcome), 0.1), outcome - 0.5
    update, found = compile_with(update_sites), np.empty(1)
    change, part = math.inf, 1.0
    for _ in range(ROUNDS):
        root = np.sqrt(precision)
        lower = factor(covariance, root)
        pull = shift - root * solve(lower, root * (covariance @ shift))
        mean = covariance @ pull
        explained = solve_half(lower, root[:, None] * covariance)
        variance = np.diagonal(covariance) - np.einsum("ij,ij->j", explained, explained)
        used = shift.copy()
        before, change = change, update(outcome, mean, variance, precision, shift, part, found)
        if change < ENOUGH:
            break
        if change > before:
            part = max(0.5 * part, 0.1)
    evidence = float(found[0]) - float(np.log(np.diagonal(lower)).sum()) + 0.5 * float(used @ mean)
    return Mode(pull, mean, pull, root, lower, evidence)


FLAT = 0.2  # prior probability that settings do not matter
MODELS = 24  # hyperparameters that have a weight …
FEWER = ((120, 12), (250, 6))  # … and from so many answers on
FROM_PRIOR = 3  # every such model has hyperparameters from the prior
WIDER = 1.3  # the normal distribution is wider than the curvature says
STEP = 0.5  # of the finite differences that give the curvature, in standard deviations of the prior
LEAST = 1e-3  # models of a smaller weight are left out
HALVINGS = 40  # of the search for a quantile


class Posterior:
    """Models with their weights, and the weight of the flat hypothesis; they add to 1.

    Args:
        models: The models.
        weights: (m,) of the models.
        flat: Of the flat hypothesis.
    """

    def __init__(self, models: list[Model], weights: np.ndarray, flat: float) -> None:
        self.models, self.weights, self.flat = models, weights, flat

    def mean(self, points: np.ndarray) -> np.ndarray:
        """(q,) posterior mean of f."""
        total = np.zeros(len(points))
        for model, weight in zip(self.models, self.weights):
            total += weight * model.mean(points)
        return total

    def differences_to(self, points: np.ndarray, other: np.ndarray) -> "Differences":
        """Return what is known of f(point) − f(other)."""
        moments = [model.differences_to(points, other) for model in self.models]
        return Differences(
            np.array([mean for mean, _ in moments]),
            np.array([spread for _, spread in moments]),
            self.weights,
            self.flat,
        )


class Differences(NamedTuple):
    """Differences of utilities: mixtures of normal distributions, and of 0."""

    means: np.ndarray  # (m, q) by each model
    spreads: np.ndarray  # (m, q)
    weights: np.ndarray  # (m,)
    flat: float

    @property
    def mean(self) -> np.ndarray:
        """(q,) their means."""
        mean: np.ndarray = self.weights @ self.means
        return mean

    @property
    def positive(self) -> np.ndarray:
        """(q,) the probability that each is above 0."""
        from scipy.special import ndtr

        chance: np.ndarray = self.weights @ ndtr(self.means / np.maximum(self.spreads, 1e-12))
        return chance

    @property
    def share(self) -> np.ndarray:
        """(q,) the means of σ(difference): by MacKay's approximation for each model."""
        shares = 0.5 + 0.5 * np.tanh(0.5 * self.means / np.sqrt(1.0 + math.pi / 8.0 * self.spreads**2))
        share: np.ndarray = self.weights @ shares + 0.5 * self.flat
        return share

    def quantile(self, level: float) -> np.ndarray:
        """(q,) the level's quantile of each."""
        from scipy.special import ndtr

        safe = np.maximum(self.spreads, 1e-12)
        low = np.minimum((self.means - 8.0 * safe).min(axis=0), 0.0)
        high: np.ndarray = np.maximum((self.means + 8.0 * safe).max(axis=0), 0.0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self.weights @ ndtr((middle - self.means) / safe) + self.flat * (middle >= 0.0)
            low, high = np.where(below < level, middle, low), np.where(below < level, high, middle)
        return high


class Proposal(NamedTuple):
    """Where hyperparameters are taken from: half a normal distribution around the most likely ones, half the prior."""

    logs: np.ndarray  # (m, d + 1) logarithms of lengthscales and scale
    surprise: np.ndarray  # (m,) ln of prior density over that of the proposal


def propose(answers: Answers, category: np.ndarray, likely: Hyperparameters) -> Proposal:
    """Choose hyperparameters.

    Args:
        answers: The duels to which the likely ones were fitted.
        category: (d,) 1 for categories.
        likely: The most likely hyperparameters.
    """
    objective = Objective(answers, category)
    at = (np.log([*likely.lengthscales, likely.scale]) - objective.center) / objective.spread
    size = len(at)
    curvature = np.empty((size, size))
    for k in range(size):
        slopes = []
        for step in (-STEP, STEP):
            there = at.copy()
            there[k] += step
            slopes.append(objective(objective.center + objective.spread * there)[1] * objective.spread)
        curvature[k] = (slopes[1] - slopes[0]) / (2.0 * STEP)
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    widths = WIDER / np.sqrt(np.clip(values, 0.5, 400.0))
    root = vectors * widths
    count = min([MODELS, *(models for least, models in FEWER if len(answers.outcome) >= least)])
    normal = standard_points(size)[:count]
    from_prior = np.arange(count) % FROM_PRIOR == FROM_PRIOR - 1
    points = np.where(from_prior[:, None], normal, at + normal @ root.T)
    inside = (points - at) @ (vectors / widths)
    log_prior = -0.5 * (points**2).sum(1)
    log_normal = -0.5 * (inside**2).sum(1) - np.log(widths).sum()
    part = from_prior.mean()
    log_proposal = np.logaddexp(math.log(part) + log_prior, math.log(1.0 - part) + log_normal)
    return Proposal(objective.center + objective.spread * points, log_prior - log_proposal)


@cache
def standard_points(size: int) -> np.ndarray:
    """(m, size) points that are spread like a standard normal distribution."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points: np.ndarray = ndtri(qmc.Sobol(size, scramble=False).random_base2(10)[1 : MODELS + 1])
    return points


def posterior(answers: Answers, category: np.ndarray, proposal: Proposal) -> Posterior:
    """Weigh the hypotheses by the answers.

    Args:
        answers: The duels.
        category: (d,) 1 for categories.
        proposal: The hyperparameters of the models.
    """
    models = [
        Model(answers, category, Hyperparameters(np.exp(logs[:-1]), float(np.exp(logs[-1]))), find_sites)
        for logs in proposal.logs
    ]
    by_coin = -math.log(2.0) * len(answers.outcome)
    logs = np.array([model.mode.evidence for model in models]) + proposal.surprise - by_coin
    weights = (1.0 - FLAT) * np.exp(logs - logs.max()) / len(models)
    flat = FLAT * math.exp(-min(logs.max(), 700.0))
    total = weights.sum() + flat
    kept = np.flatnonzero(weights >= LEAST * weights.sum())
    share = weights[kept] / weights[kept].sum() * (weights.sum() / total)
    return Posterior([models[k] for k in kept], share, flat / total)
