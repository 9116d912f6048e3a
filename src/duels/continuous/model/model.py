"""The preference model: a Gaussian process on a parameter space that learns from duels.

A utility f has a Gaussian process as its prior; left wins a duel with probability σ(f(left) − f(right)). What is known
of f after some duels is approximated by Laplace's method (`laplace`). Only differences of f mean anything.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...engine.compiling import compile_with
from . import kernels
from .laplace import Mode, evidence_weights, find_mode, lapack, reduction
from .search import minimize

LENGTH_MEDIAN, LENGTH_SPREAD = 0.25, 0.6  # of the lognormal prior of a lengthscale; the cube's side is 1
SCALE_MEDIAN, SCALE_SPREAD = 5.0, 1.5  # of the lognormal prior of the variance of f
LENGTHS, SCALES = (0.02, 20.0), (0.05, 5000.0)  # no lengthscale or scale is outside of these
EVALUATIONS = 40  # of the evidence, per fit
JITTERS = (1e-8, 1e-6, 1e-4)  # relative to the largest variance


Approximate = Callable[[np.ndarray, np.ndarray], Mode]  # given prior covariance and outcomes


class Hyperparameters(NamedTuple):
    """What the prior of the utility depends on."""

    lengthscales: np.ndarray  # (d,) in units of the cube's side
    scale: float  # the variance of f at a point


class Answers(NamedTuple):
    """Duels as points of the cube, with their outcomes."""

    left: np.ndarray  # (n, d) in [0, 1]
    right: np.ndarray  # (n, d)
    outcome: np.ndarray  # (n,) 1 if left won, 0 if right won, ½ for a tie


class Model:
    """The posterior of the utility after some duels, with given hyperparameters.

    Args:
        answers: The duels.
        category: (d,) 1 for coordinates that are categories, 0 for numbers.
        hyperparameters: Those of the prior.
        approximate: How the posterior of the differences is approximated.
    """

    def __init__(
        self,
        answers: Answers,
        category: np.ndarray,
        hyperparameters: Hyperparameters,
        approximate: Approximate = find_mode,
    ) -> None:
        self.left, self.right = (np.ascontiguousarray(side, float) for side in answers[:2])
        self.category = np.ascontiguousarray(category, np.int64)
        self.hyperparameters = hyperparameters
        self.inverse, self.scale = 1.0 / hyperparameters.lengthscales, float(hyperparameters.scale)
        covariance = dueling_covariance(self.left, self.right, self.inverse, self.category, self.scale)
        self.mode = approximate(covariance, answers.outcome)
        self._work = np.empty((4 + 2 * len(self.inverse), len(self.left)))
        self._moments = np.empty((1 + len(self.inverse), 4))
        self._pair_moments = compile_with(kernels.pair_moments)

    @cached_property
    def reduction(self) -> np.ndarray:
        """(n, n) W^½ B⁻¹ W^½."""
        return reduction(self.mode)

    @cached_property
    def _whitener(self) -> np.ndarray:
        """(n, n) L⁻¹ W^½, whose product with a cross-covariance is what the duels explain."""
        from scipy.linalg import solve_triangular

        whitener: np.ndarray = solve_triangular(self.mode.lower, np.diag(self.mode.root), lower=True)
        return whitener

    def cross(self, points: np.ndarray) -> np.ndarray:
        """(n, q) prior covariance of the duels' differences with f at the points."""
        out = np.empty((len(self.left), len(points)))
        fill = compile_with(kernels.fill_cross)
        fill(self.left, self.right, points, self.inverse, self.category, self.scale, out)
        return out

    def mean(self, points: np.ndarray) -> np.ndarray:
        """(q,) posterior mean of f."""
        mean: np.ndarray = self.mode.pull @ self.cross(points)
        return mean

    def mean_and_variance(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q,) posterior mean and variance of f."""
        cross = self.cross(points)
        explained = self._whitener @ cross
        return self.mode.pull @ cross, np.maximum(self.scale - np.einsum("iq,iq->q", explained, explained), 0.0)

    def mean_and_covariance(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q,) posterior mean and (q, q) posterior covariance of f."""
        cross = self.cross(points)
        explained = self._whitener @ cross
        prior = np.empty((len(points), len(points)))
        compile_with(kernels.fill_covariance)(points, points, self.inverse, self.category, self.scale, prior)
        return self.mode.pull @ cross, prior - explained.T @ explained

    def differences(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, q) posterior mean and standard deviation of f(point_i) − f(point_j)."""
        mean, covariance = self.mean_and_covariance(points)
        variance = np.diagonal(covariance)
        spread = variance[:, None] + variance - 2.0 * covariance
        return mean[:, None] - mean, np.sqrt(np.maximum(spread, 0.0))

    def differences_to(self, points: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q,) posterior mean and standard deviation of f(point) − f(other)."""
        cross = self.cross(points) - self.cross(other[None, :])
        prior = np.empty((len(points), 1))
        compile_with(kernels.fill_covariance)(points, other[None, :], self.inverse, self.category, self.scale, prior)
        explained = self._whitener @ cross
        variance = 2.0 * (self.scale - prior[:, 0]) - np.einsum("iq,iq->q", explained, explained)
        return self.mode.pull @ cross, np.sqrt(np.maximum(variance, 0.0))

    def pair(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return moments of f(x) and f(y), as `kernels.pair_moments` has them. The next call overwrites them."""
        self._pair_moments(
            *(self.left, self.right, self.mode.pull, self.reduction, x, y, self.inverse, self.category, self.scale),
            *(self._work, self._moments),
        )
        return self._moments

    def win_probability(self, x: np.ndarray, y: np.ndarray) -> float:
        """Probability that x wins against y: the mean of σ(f(x) − f(y)), by MacKay's approximation."""
        moments = self.pair(x, y)
        difference, variance = moments[0, 0] - moments[0, 1], max(moments[0, 2], 0.0)
        return float(0.5 + 0.5 * np.tanh(0.5 * difference / np.sqrt(1.0 + np.pi / 8.0 * variance)))

    def sample(self, points: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, q) independent draws of f at the points from the posterior."""
        mean, covariance = self.mean_and_covariance(points)
        drawn: np.ndarray = mean + rng.standard_normal((count, len(points))) @ square_root(covariance).T
        return drawn


def square_root(covariance: np.ndarray) -> np.ndarray:
    """Return a matrix whose product with its transpose is the covariance: its Cholesky factor, if it has one.

    Points that are equal or very close make it singular. A small number is then added to the diagonal.
    """
    size = max(float(np.diagonal(covariance).max(initial=0.0)), 1e-12)
    for jitter in JITTERS:
        jittered = covariance.copy()
        jittered[np.diag_indices_from(jittered)] += jitter * size
        lower, failed = lapack().dpotrf(jittered.T, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(lower)
    values, vectors = np.linalg.eigh(covariance)
    root: np.ndarray = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def dueling_covariance(
    left: np.ndarray, right: np.ndarray, inverse: np.ndarray, category: np.ndarray, scale: float
) -> np.ndarray:
    """(n, n) prior covariance of f(left) − f(right) of the duels."""
    out = np.empty((len(left), len(left)))
    compile_with(kernels.fill_duels)(left, right, inverse, category, scale, out)
    return out


def prior_hyperparameters(dimensions: int) -> Hyperparameters:
    """The medians of the priors of the hyperparameters."""
    return Hyperparameters(np.full(dimensions, LENGTH_MEDIAN), SCALE_MEDIAN)


def fit_hyperparameters(answers: Answers, category: np.ndarray) -> Hyperparameters:
    """Find the hyperparameters with the largest evidence times prior.

    The search begins at the medians of the priors, so that the result depends on the duels alone.

    Args:
        answers: The duels.
        category: (d,) 1 for coordinates that are categories, 0 for numbers.
    """
    dimensions = answers.left.shape[1]
    begin = _logs(prior_hyperparameters(dimensions))
    if not len(answers.outcome):
        return prior_hyperparameters(dimensions)
    objective = Objective(answers, category)
    bounds = [(np.log(LENGTHS[0]), np.log(LENGTHS[1]))] * dimensions + [(np.log(SCALES[0]), np.log(SCALES[1]))]
    options = {"maxfun": EVALUATIONS, "ftol": 1e-6, "gtol": 1e-3}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return Hyperparameters(np.exp(found.x[:-1]), float(np.exp(found.x[-1])))


class Objective:
    """The negative log posterior of the hyperparameters' logarithms, with its gradient.

    Args:
        answers: The duels.
        category: (d,) 1 for coordinates that are categories, 0 for numbers.
    """

    def __init__(self, answers: Answers, category: np.ndarray) -> None:
        self.left, self.right = (np.ascontiguousarray(side, float) for side in answers[:2])
        self.outcome = answers.outcome
        self.category = np.ascontiguousarray(category, np.int64)
        dimensions = self.left.shape[1]
        self.center = _logs(prior_hyperparameters(dimensions))
        self.spread = np.array([LENGTH_SPREAD] * dimensions + [SCALE_SPREAD])
        self._start: np.ndarray | None = None

    def __call__(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self.evidence(logs)
        away = (logs - self.center) / self.spread
        return float(0.5 * away @ away) - value, away / self.spread - slope

    def evidence(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """The log evidence at the logarithms of lengthscales and scale, and its gradient."""
        inverse, scale = np.exp(-logs[:-1]), float(np.exp(logs[-1]))
        covariance = dueling_covariance(self.left, self.right, inverse, self.category, scale)
        mode = find_mode(covariance, self.outcome, self._start)
        self._start = mode.dual
        slope = np.empty(len(logs))
        weights = evidence_weights(covariance, mode)
        compile_with(kernels.fill_slopes)(self.left, self.right, inverse, self.category, scale, weights, slope)
        return mode.evidence, slope


def _logs(hyperparameters: Hyperparameters) -> np.ndarray:
    logs: np.ndarray = np.log([*hyperparameters.lengthscales, hyperparameters.scale])
    return logs
