"""KernelSelfSparring: Sui, Zhuang, Burdick & Yue, UAI 2017: one bandit plays both sides, on a Gaussian process.

Each point has one number: its chance to win against whatever the policy plays. A duel is two observations of it, 1 for
the winner and 0 for the loser, to which a Gaussian process is fitted by regression. Both settings are the best of
independent samples from it.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...engine.compiling import compile_with
from ...errors import InvalidInput
from ..model import kernels
from ..model.model import Model, square_root
from .context import TIE, History, Situation
from .double_thompson import DRAWS, two_best

NAME = "KernelSelfSparring"
PAPER = "Sui, Zhuang, Burdick, Yue: Multi-dueling Bandits with Dependent Arms (UAI 2017)"


class Params(NamedTuple):
    noise: float = 0.25
    initial: int = 0


def check(params: Params) -> None:
    if not (params.noise > 0 and math.isfinite(params.noise)):
        raise InvalidInput(f"noise of kernel_self_sparring is {params.noise:g}: expected a positive variance")


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    points = situation.candidates
    mean, covariance = regression(situation.model, situation.history, points, params.noise)
    drawn = mean + situation.rng.standard_normal((2 + DRAWS, len(points))) @ square_root(covariance).T
    return two_best(points, drawn)


def regression(model: Model, history: History, points: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """(q,) posterior mean and (q, q) covariance of the chance to win, less ½, at the points.

    Its prior has the lengthscales of the preference model and a standard deviation of ½.
    """
    seen = np.ascontiguousarray(np.vstack([history.left, history.right]))
    outcome = history.with_ties.outcome - TIE
    observed = np.concatenate([outcome, -outcome])

    def covariance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.empty((len(x), len(y)))
        compile_with(kernels.fill_covariance)(x, y, model.inverse, model.category, 0.25, out)
        return out

    factor = cho_factor(covariance(seen, seen) + noise * np.eye(len(seen)), lower=True)
    cross = covariance(seen, points)
    return cross.T @ cho_solve(factor, observed), covariance(points, points) - cross.T @ cho_solve(factor, cross)
