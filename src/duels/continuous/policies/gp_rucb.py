"""RUCB on a Gaussian process: Zoghi, Whiteson, Munos & de Rijke, ICML 2014, Algorithm 1, for continuous arms.

The paper ends with the wish for this extension. Confidence bounds on P(i beats j) become bounds on the difference of
utility, u_ij = Δ_ij + β s_ij, which the model has for every pair of points; ½ becomes 0. (The listing's lines are at
the right.)
"""

from typing import NamedTuple

import numpy as np

from .context import Situation, check_beta, make_bound, plausible

NAME = "GP-RUCB"
PAPER = "Zoghi, Whiteson, Munos, de Rijke: Relative Upper Confidence Bound (ICML 2014), on a Gaussian process"
STARTS = 3  # rivals that are refined


class Params(NamedTuple):
    beta: float = 2.0
    initial: int = 0


def check(params: Params) -> None:
    check_beta("gp_rucb", params.beta)


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    champions = plausible(situation, situation.candidates, params.beta).points  # line 5
    champion = champions[situation.rng.integers(len(champions))]  # line 5: any of them
    return champion, _rival(situation, champion, params.beta)


def _rival(situation: Situation, champion: np.ndarray, beta: float) -> np.ndarray:
    """The point with the largest upper bound against the champion (line 6)."""
    difference, spread = situation.model.differences_to(situation.candidates, champion)
    likely = np.argsort(-(difference + beta * spread), kind="stable")[:STARTS]
    return situation.refine_points(make_bound(situation, champion, beta), situation.candidates[likely])
