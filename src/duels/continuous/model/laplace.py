"""Laplace's approximation for duels: the mode, the evidence and its gradient.

Rasmussen & Williams, Gaussian Processes for Machine Learning, algorithms 3.1 and 5.1, with the latent difference
g_i = f(left_i) − f(right_i) of each duel in place of the function's values. The outcome y_i is 1 if left won, 0 if
right won and ½ for a tie: the log likelihood is y ln σ(g) + (1 − y) ln σ(−g), so a tie is half a win for each.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

STEPS, HALVINGS, ENOUGH = 100, 40, 1e-10  # of Newton's method; it ends when a step gains less


class Mode(NamedTuple):
    """The mode of the posterior of n duels, and what predictions need."""

    dual: np.ndarray  # (n,) a = K⁻¹ g
    difference: np.ndarray  # (n,) g = K a, the latent differences
    pull: np.ndarray  # (n,) y − σ(g), the gradient of the log likelihood; equals `dual` at the mode
    root: np.ndarray  # (n,) W^½, where W = σ(g)(1 − σ(g))
    lower: np.ndarray  # (n, n) Cholesky factor of B = I + W^½ K W^½
    evidence: float  # log marginal likelihood, approximately


def log_likelihood(difference: np.ndarray, outcome: np.ndarray) -> float:
    """Σ y ln σ(g) + (1 − y) ln σ(−g), without overflow."""
    return float(np.sum((outcome - 1.0) * difference - np.logaddexp(0.0, -difference)))


def find_mode(covariance: np.ndarray, outcome: np.ndarray, start: np.ndarray | None = None) -> Mode:
    """Find the mode of the posterior by Newton's method, each step shortened until it gains.

    The objective is concave in `dual`, and B's eigenvalues are at least 1, so this converges for every covariance
    matrix, singular ones included.

    Args:
        covariance: (n, n) the prior covariance of the latent differences.
        outcome: (n,) 1, ½ or 0.
        start: (n,) where `dual` begins; by default at 0.
    """
    dual = np.zeros(len(outcome)) if start is None else start
    difference = covariance @ dual
    value = log_likelihood(difference, outcome) - 0.5 * float(dual @ difference)
    if start is not None and not value >= -len(outcome) * np.log(2.0):  # worse than no start
        return find_mode(covariance, outcome)
    for _ in range(STEPS):
        chance = _sigmoid(difference)
        weight = chance * (1.0 - chance)
        root = np.sqrt(weight)
        lower = factor(covariance, root)
        target = weight * difference + (outcome - chance)
        newton = target - root * solve(lower, root * (covariance @ target))
        step = newton - dual
        move = covariance @ step
        gained, length = -np.inf, 1.0
        for _ in range(HALVINGS):
            there = difference + length * move
            reached = log_likelihood(there, outcome) - 0.5 * float((dual + length * step) @ there)
            gained = reached - value
            if gained >= 0.0:
                break
            length *= 0.5
        if not gained >= 0.0:
            break  # no step gains: rounding is all that is left
        dual, difference, value = dual + length * step, there, reached
        if gained < ENOUGH:
            break
    chance = _sigmoid(difference)
    root = np.sqrt(chance * (1.0 - chance))
    lower = factor(covariance, root)
    evidence = value - float(np.sum(np.log(np.diagonal(lower))))
    return Mode(dual, difference, outcome - chance, root, lower, evidence)


def reduction(mode: Mode) -> np.ndarray:
    """W^½ B⁻¹ W^½, by which duels reduce the covariance."""
    inverse = lapack().dpotri(mode.lower, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    return np.ascontiguousarray(mode.root[:, None] * inverse * mode.root)


def evidence_weights(covariance: np.ndarray, mode: Mode) -> np.ndarray:
    """(n, n) weights G with d evidence = Σ_ij G_ij dK_ij, for any change dK of the covariance.

    The mode moves with the covariance, which changes ln |B| through W: that is the last term.
    """
    reduced = reduction(mode)
    chance = _sigmoid(mode.difference)
    third = mode.root**2 * (2.0 * chance - 1.0)  # d³ ln p / d g³
    variance = np.diagonal(covariance) - np.einsum("ij,ji->i", covariance, reduced @ covariance)
    moved = 0.5 * variance * third  # d evidence / d mode
    moved = moved - reduced @ (covariance @ moved)
    a = mode.pull
    weights: np.ndarray = 0.5 * (np.outer(a, a) - reduced + np.outer(moved, a) + np.outer(a, moved))
    return weights


@cache
def lapack() -> Any:
    """Return scipy's LAPACK. It takes a third of a second to import, so it is loaded when it is first needed."""
    from scipy.linalg import lapack

    return lapack


def _sigmoid(difference: np.ndarray) -> np.ndarray:
    chance: np.ndarray = 0.5 + 0.5 * np.tanh(0.5 * difference)
    return chance


def factor(covariance: np.ndarray, root: np.ndarray) -> np.ndarray:
    """L, the Cholesky factor of B = I + W^½ K W^½."""
    matrix = root[:, None] * covariance * root
    matrix[np.diag_indices_from(matrix)] += 1.0
    lower: np.ndarray = lapack().dpotrf(matrix.T, lower=1, overwrite_a=1)[0]
    return lower


def solve(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """B⁻¹ R."""
    solved: np.ndarray = lapack().dpotrs(lower, right, lower=1)[0]
    return solved


def solve_half(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """L⁻¹ R."""
    solved: np.ndarray = lapack().dtrtrs(lower, right, lower=1)[0]
    return solved
