"""UCB1 on the Borda scores, as in Zoghi et al. (ICML 2014), section 2: a baseline, not a dueling policy.

Pulling arm i means a duel with an opponent drawn uniformly at random, so the expected reward is its Borda score: the
average of p_ij over the other arms j. The bandit is UCB1 (Auer et al., 2002).
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import choose, choose_largest
from .sparring import largest_index

NAME = "Borda-UCB"
PAPER = "Auer, Cesa-Bianchi, Fischer: Finite-time Analysis of the Multiarmed Bandit Problem (2002), on Borda scores"
NEEDS_HORIZON = False
ASSUMES = "nothing"
LIVE_TIES = "skipped"  # in a live study; it takes fewer answers


class Params(NamedTuple):
    alpha: float = 2.0


class State(NamedTuple):
    plays: np.ndarray  # (K,) float64: how often each arm was pulled, that is, was the first arm of a duel
    won: np.ndarray  # (K,) float64: how often it then won; a tie adds a half
    share: np.ndarray  # (K,) float64: won / plays, ∞ before the first
    width: np.ndarray  # (K,) float64: 1 / √plays, 0 before the first
    score: np.ndarray  # (K,) float64: won / plays, −1 before the first


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of borda_ucb is {params.alpha}: expected a positive number, 2 for UCB1")


def init(arms, horizon, params):
    return State(
        plays=np.zeros(arms),
        won=np.zeros(arms),
        share=np.full(arms, np.inf),
        width=np.zeros(arms),
        score=np.full(arms, -1.0),
    )


def select(state, params, t, rng):
    bonus = math.sqrt(params.alpha * math.log(t))
    i = largest_index(state.share, state.width, bonus, rng)
    j = choose(len(state.plays) - 1, rng)
    return i, j + (j >= i)


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    state.plays[i] += 1.0
    state.won[i] += outcome
    state.share[i] = state.score[i] = state.won[i] / state.plays[i]
    state.width[i] = 1.0 / math.sqrt(state.plays[i])


def recommend(state, rng):
    """The arm with the highest estimated Borda score, ties at random."""
    return choose_largest(state.score, rng)
