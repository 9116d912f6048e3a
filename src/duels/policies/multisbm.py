"""MultiSBM: Ailon, Karnin & Joachims, ICML 2014, Algorithm 2, with UCB as the singleton bandit machine (SBM).

Every arm x has its own bandit machine, which chooses the opponents of x. The right arm of one duel is the left arm of
the next, so a machine is only used while its arm is a good choice of another machine.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import choose, choose_largest
from .sparring import largest_index

NAME = "MultiSBM"
PAPER = "Ailon, Karnin, Joachims: Reducing Dueling Bandits to Cardinal Bandits (ICML 2014)"
NEEDS_HORIZON = False
ASSUMES = "total order"


class Params(NamedTuple):
    alpha: float = 2.5


class State(NamedTuple):
    plays: np.ndarray  # (K, K) float64: plays[x, y] = how often the machine of x has chosen y
    won: np.ndarray  # (K, K) float64: won[x, y] = how often y then beat x; a tie adds a half
    share: np.ndarray  # (K, K) float64: won / plays, ∞ before the first
    width: np.ndarray  # (K, K) float64: 1 / √plays, 0 before the first
    turns: np.ndarray  # (K,) float64: how often the machine of x has chosen
    chosen: np.ndarray  # (K,) float64: how often y has been chosen, by any machine
    left: np.ndarray  # (1,) int64: the left arm of the next duel, −1 before the first


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of multisbm is {params.alpha}: expected a positive number (2.5 in the theory)")


def init(arms, horizon, params):
    return State(
        plays=np.zeros((arms, arms)),
        won=np.zeros((arms, arms)),
        share=np.full((arms, arms), np.inf),
        width=np.zeros((arms, arms)),
        turns=np.zeros(arms),
        chosen=np.zeros(arms),
        left=np.full(1, -1),
    )


def select(state, params, t, rng):
    if state.left[0] < 0:
        state.left[0] = choose(len(state.turns), rng)
    x = state.left[0]
    bonus = math.sqrt(params.alpha * math.log(state.turns[x] + 1.0))
    return x, largest_index(state.share[x], state.width[x], bonus, rng)


def update(state, params, t, i, j, outcome):
    state.plays[i, j] += 1.0
    state.won[i, j] += 1.0 - outcome
    state.share[i, j] = state.won[i, j] / state.plays[i, j]
    state.width[i, j] = 1.0 / math.sqrt(state.plays[i, j])
    state.turns[i] += 1.0
    state.chosen[j] += 1.0
    state.left[0] = j


def skip(state, params, t):
    """A duel of an arm with itself counts: the machine does not know."""
    return t


def recommend(state, rng):
    """The arm chosen most, ties at random."""
    return choose_largest(state.chosen, rng)
