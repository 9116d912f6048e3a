"""What people read: the posterior over hypotheses, of which one is that settings do not matter, the others models.

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

from .model import Answers, Hyperparameters, Model, Objective
from .propagation import find_sites

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
