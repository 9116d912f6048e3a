"""Uniformly random pairs of different arms: a baseline that does not adapt its choices."""

from typing import NamedTuple

import numpy as np

from .kernels import choose, choose_largest, nth_pair, record_lead

NAME = "Random"
PAPER = "no paper: every pair of different arms is equally likely"
NEEDS_HORIZON = False
ASSUMES = "nothing"
BASELINE = True


class Params(NamedTuple):
    pass


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority


def check(params):
    pass


def init(arms, horizon, params):
    return State(wins=np.zeros((arms, arms)), ahead=np.zeros(arms, np.int64))


def select(state, params, t, rng):
    arms = len(state.ahead)
    return nth_pair(choose(arms * (arms - 1) // 2, rng), arms)


def update(state, params, t, i, j, outcome):
    if i != j:
        record_lead(state.wins, state.ahead, i, j, outcome)


def recommend(state, rng):
    return choose_largest(state.ahead, rng)
