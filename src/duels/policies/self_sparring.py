"""Self-Sparring: Sui, Zhuang, Burdick & Yue, UAI 2017, with independent Beta posteriors and two arms per step.

One bandit plays both sides: each arm has one posterior Beta(S_i + 1, F_i + 1) of winning against whatever the policy
plays, and both arms of a duel are chosen by Thompson sampling, independently of each other.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import argmax_beta
from .kernels import choose

NAME = "Self-Sparring"
PAPER = "Sui, Zhuang, Burdick, Yue: Multi-dueling Bandits with Dependent Arms (UAI 2017)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"


class Params(NamedTuple):
    eta: float = 1.0


class State(NamedTuple):
    won: np.ndarray  # (K,) float64: S_i + 1; a win adds η, a tie half of it
    lost: np.ndarray  # (K,) float64: F_i + 1


def check(params):
    if not (params.eta > 0 and math.isfinite(params.eta)):
        raise InvalidInput(f"eta of self_sparring is {params.eta}: expected a positive learning rate")


def init(arms, horizon, params):
    return State(won=np.ones(arms), lost=np.ones(arms))


def select(state, params, t, rng):
    return argmax_beta(state.won, state.lost, rng), argmax_beta(state.won, state.lost, rng)


def update(state, params, t, i, j, outcome):
    state.won[i] += params.eta * outcome
    state.lost[i] += params.eta * (1.0 - outcome)
    state.won[j] += params.eta * (1.0 - outcome)
    state.lost[j] += params.eta * outcome


def skip(state, params, t):
    """A duel of an arm with itself counts: it is one of its plays won, and one lost."""
    return t


def recommend(state, rng):
    """The arm played most often, ties at random."""
    most, ties = 0.0, 0
    for i in range(len(state.won)):
        plays = state.won[i] + state.lost[i]
        if plays > most:
            most, ties = plays, 0
        ties += plays == most
    n = choose(ties, rng)
    for i in range(len(state.won)):
        if state.won[i] + state.lost[i] == most:
            if n == 0:
                break
            n -= 1
    return i
