"""Condorcet SAVAGE: Urvoy, Clérot, Féraud & Naamane, ICML 2013, as described in Zoghi et al. (2014), section 3.

Pairs of the remaining arms duel uniformly at random; an arm is eliminated once it is certain to lose to one.
Only the pair that has just dueled can have become certain, so a step costs O(1).
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import FOREVER, choose, choose_majority, record, remove

NAME = "Condorcet SAVAGE"
PAPER = "Urvoy, Clérot, Féraud, Naamane: Generic Exploration and K-armed Voting Bandits (ICML 2013)"
NEEDS_HORIZON = True
ASSUMES = "condorcet"


class Params(NamedTuple):
    delta: float = 0.0  # the probability of error; 0 means 1/T
    sampling: str = "uniform"


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    alive: np.ndarray  # (K,) int64: the remaining arms in ascending order …
    left: np.ndarray  # (1,) int64: … and their number
    inside: np.ndarray  # (K,) bool: whether an arm is still in play
    explored: np.ndarray  # (1,) int64: the time at which one arm was left; 0 before that
    pairs: np.ndarray  # (K(K−1)/2, 2) int64: the pairs to choose from, ascending: all remaining, or the least sampled …
    size: np.ndarray  # (1,) int64: … and their number
    fewest: np.ndarray  # (1,) float64: how often the least-sampled remaining pairs met
    log_term: np.ndarray  # (1,) float64: ln(K(K−1)T/δ)
    least: bool


def check(params):
    if not 0 <= params.delta < 1:
        raise InvalidInput(f"delta of savage is {params.delta}: expected a chance below 1, or 0 for 1/horizon")
    if params.sampling not in ("uniform", "least"):
        raise InvalidInput(f"sampling of savage is {params.sampling!r}: expected 'uniform' or 'least'")


def init(arms, horizon, params):
    state = State(
        wins=np.zeros((arms, arms)),
        alive=np.zeros(arms, np.int64),
        left=np.zeros(1, np.int64),
        inside=np.zeros(arms, np.bool_),
        explored=np.zeros(1, np.int64),
        pairs=np.zeros((arms * (arms - 1) // 2, 2), np.int64),
        size=np.zeros(1, np.int64),
        fewest=np.zeros(1),
        log_term=np.zeros(1),
        least=params.sampling == "least",
    )
    restart(state, params, horizon)
    return state


def restart(state, params, horizon):
    """Begin anew, with this horizon."""
    arms, size = len(state.alive), 0
    state.wins[:] = 0.0
    state.inside[:] = True
    for i in range(arms):
        state.alive[i] = i
        for j in range(i + 1, arms):
            state.pairs[size, 0], state.pairs[size, 1] = i, j
            size += 1
    state.left[0], state.size[0] = arms, size
    state.explored[0], state.fewest[0] = 0, 0.0
    delta = params.delta if params.delta > 0.0 else 1.0 / horizon
    state.log_term[0] = math.log(arms * (arms - 1) * horizon / delta)


def select(state, params, t, rng):
    if state.left[0] == 1:
        return state.alive[0], state.alive[0]
    if state.size[0] == 0:
        find_least_sampled(state)
    k = choose(state.size[0], rng)
    return state.pairs[k, 0], state.pairs[k, 1]


def find_least_sampled(state):
    wins, alive, size = state.wins, state.alive, 0
    fewest = math.inf
    for a in range(state.left[0]):
        for b in range(a + 1, state.left[0]):
            i, j = alive[a], alive[b]
            n = wins[i, j] + wins[j, i]
            if n < fewest:
                fewest, size = n, 0
            if n == fewest:
                state.pairs[size, 0], state.pairs[size, 1] = i, j
                size += 1
    state.size[0], state.fewest[0] = size, fewest


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record(state.wins, i, j, outcome)
    if not (state.inside[i] and state.inside[j]):
        return
    lead = state.wins[i, j] - state.wins[j, i]
    n = state.wins[i, j] + state.wins[j, i]
    if state.least and n == state.fewest[0] + 1.0:
        drop_pairs(state, min(i, j), max(i, j))
    # w/n + √(log_term/2n) < ½ for the arm behind, multiplied out
    if lead * lead > 2.0 * n * state.log_term[0]:
        leave(state, t, j if lead > 0.0 else i)


def drop_pairs(state, i, j):
    """Take the pair (i, j) out of those to choose from, or every pair with i if j is −1."""
    pairs, size = state.pairs, 0
    for k in range(state.size[0]):
        a, b = pairs[k, 0], pairs[k, 1]
        pairs[size, 0], pairs[size, 1] = a, b
        size += (a != i or b != j) if j >= 0 else (a != i and b != i)
    state.size[0] = size


def leave(state, t, loser):
    state.left[0] = remove(state.alive, state.left[0], loser)
    state.inside[loser] = False
    drop_pairs(state, loser, -1)
    if state.left[0] == 1:
        state.explored[0] = t


def skip(state, params, t):
    return FOREVER


def recommend(state, rng):
    return choose_majority(state.wins, state.alive, state.left[0], rng)


def explored(state):
    return state.explored[0]


def bounds(state, params, t):
    """Return the intervals that decide which arms leave, as two (K, K) arrays; an unplayed pair's is [−1, 2]."""
    n = state.wins + state.wins.T
    played = np.maximum(n, 1.0)
    upper = np.where(n > 0, state.wins / played + np.sqrt(state.log_term[0] / (2.0 * played)), 2.0)
    np.fill_diagonal(upper, 0.5)
    return 1.0 - upper.T, upper
