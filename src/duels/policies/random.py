"""Uniformly random pairs of different arms: a baseline that does not adapt its choices."""

from typing import NamedTuple

import numpy as np

from .kernels import choose, choose_majority, nth_pair, record

NAME = "Random"
PAPER = "no paper: every pair of different arms is equally likely"
NEEDS_HORIZON = False
ASSUMES = "nothing"
BASELINE = True


class Params(NamedTuple):
    pass


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    everyone: np.ndarray  # (K,) int64: 0 … K − 1


def check(params):
    pass


def init(arms, horizon, params):
    return State(wins=np.zeros((arms, arms)), everyone=np.arange(arms))


def select(state, params, t, rng):
    arms = len(state.everyone)
    return nth_pair(choose(arms * (arms - 1) // 2, rng), arms)


def update(state, params, t, i, j, outcome):
    if i != j:
        record(state.wins, i, j, outcome)


def recommend(state, rng):
    return choose_majority(state.wins, state.everyone, len(state.everyone), rng)
