"""Dueling bandit gradient descent: Yue & Joachims, ICML 2009, Algorithm 1 (its line numbers at the right).

The method that the paper of RUCB refers to for continuous arms. It assumes a convex problem: it follows the answers
uphill from one point, and has no model.
"""

import math
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput
from ..spaces import Category
from .context import Situation

NAME = "DBGD"
PAPER = "Yue, Joachims: Interactively Optimizing Information Retrieval Systems as a Dueling Bandits Problem (ICML 2009)"
MODEL = False  # it needs none, so no duels are spent on one


class Params(NamedTuple):
    delta: float = 0.3
    gamma: float = 0.1
    initial: int = 0


def check(params: Params) -> None:
    for name in ("delta", "gamma"):
        value = getattr(params, name)
        if not (value > 0 and math.isfinite(value)):
            raise InvalidInput(f"{name} of dbgd is {value:g}: expected a positive length, in sides of the cube")


def choose(situation: Situation, params: Params) -> tuple[np.ndarray, np.ndarray]:
    for name, one in situation.space.parameters.items():
        if isinstance(one, Category):
            raise InvalidInput(f"dbgd follows directions, and the choices of {name} have none: choose another policy")
    now = recommend(situation, params) if len(situation.history.left) else situation.rng.random(len(situation.space))
    direction = situation.rng.standard_normal(len(now))  # line 3
    direction /= np.linalg.norm(direction)
    there = np.clip(now + params.delta * direction, 0.0, 1.0)  # line 4
    left, right = situation.space.snap(np.stack([now, there]))
    return left, right


def recommend(situation: Situation, params: Params) -> np.ndarray:
    """The point that the answers so far lead to, from the left of the first duel."""
    now: np.ndarray = situation.history.left[0]
    for left, right, outcome in zip(*situation.history):  # lines 5–9
        if outcome == 0.0:
            now = np.clip(now + params.gamma / params.delta * (right - left), 0.0, 1.0)
    return now
