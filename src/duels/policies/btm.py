"""Beat the Mean: Yue & Joachims, ICML 2011, Algorithm 1.

The arm with the fewest comparisons duels a random remaining arm, possibly itself. The arm that does worst against this
mean opponent is eliminated once it is certain to be behind the best, and all comparisons with it are discarded.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import FOREVER, choose, remove

NAME = "Beat the Mean"
PAPER = "Yue, Joachims: Beat the Mean Bandit (ICML 2011)"
NEEDS_HORIZON = True
ASSUMES = "total order"


class Params(NamedTuple):
    gamma: float = 1.0


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[b, o] = duels that b, chosen first, won over o
    plays: np.ndarray  # (K, K) float64: plays[b, o] = duels of b, chosen first, with o
    total: np.ndarray  # (K,) float64: n_b, comparisons of b with arms that remain
    won: np.ndarray  # (K,) float64: w_b, those it won
    mean: np.ndarray  # (K,) float64: P̂_b = w_b / n_b, ½ before the first
    alive: np.ndarray  # (K,) int64: the remaining arms in ascending order …
    left: np.ndarray  # (1,) int64: … and their number
    inside: np.ndarray  # (K,) bool: whether an arm is still in play
    fewest: np.ndarray  # (K,) int64: the remaining arms with n_b = n*, ascending …
    size: np.ndarray  # (1,) int64: … and their number
    least: np.ndarray  # (1,) float64: n*, the fewest comparisons of a remaining arm
    extremes: np.ndarray  # (3,) float64: min P̂, max P̂, and c*
    due: np.ndarray  # (1,) bool: whether the worst arm is eliminated at the next step, where ties can be broken
    explored: np.ndarray  # (1,) int64: the time at which one arm was left; 0 before that
    log_term: np.ndarray  # (1,) float64: ln(1/δ), δ = 1/(2TK)


def check(params):
    if not (params.gamma > 0 and math.isfinite(params.gamma)):
        raise InvalidInput(f"gamma of btm is {params.gamma}: expected a positive number, at least 1 for its theory")


def init(arms, horizon, params):
    state = State(
        wins=np.zeros((arms, arms)),
        plays=np.zeros((arms, arms)),
        total=np.zeros(arms),
        won=np.zeros(arms),
        mean=np.zeros(arms),
        alive=np.zeros(arms, np.int64),
        left=np.zeros(1, np.int64),
        inside=np.zeros(arms, np.bool_),
        fewest=np.zeros(arms, np.int64),
        size=np.zeros(1, np.int64),
        least=np.zeros(1),
        extremes=np.zeros(3),
        due=np.zeros(1, np.bool_),
        explored=np.zeros(1, np.int64),
        log_term=np.zeros(1),
    )
    restart(state, params, horizon)
    return state


def restart(state, params, horizon):
    """Begin anew, with this horizon."""
    arms = len(state.alive)
    state.wins[:] = 0.0
    state.plays[:] = 0.0
    state.total[:] = 0.0
    state.won[:] = 0.0
    state.mean[:] = 0.5
    state.inside[:] = True
    for b in range(arms):
        state.alive[b] = state.fewest[b] = b
    state.left[0] = state.size[0] = arms
    state.least[0] = 0.0
    state.extremes[0] = state.extremes[1] = 0.5
    state.extremes[2] = 1.0
    state.due[0] = False
    state.explored[0] = 0
    state.log_term[0] = math.log(2.0 * horizon * arms)


def select(state, params, t, rng):
    if state.due[0]:
        leave(state, params, rng)
    if state.left[0] == 1:
        return state.alive[0], state.alive[0]
    b = state.fewest[choose(state.size[0], rng)]
    return b, state.alive[choose(state.left[0], rng)]


def leave(state, params, rng):
    """The worst arm goes, ties at random, and with it every comparison against it."""
    loser = choose_by_mean(state, state.extremes[0], rng)
    state.left[0] = remove(state.alive, state.left[0], loser)
    state.inside[loser] = False
    state.due[0] = False
    for k in range(state.left[0]):
        b = state.alive[k]
        state.total[b] -= state.plays[b, loser]
        state.won[b] -= state.wins[b, loser]
        state.mean[b] = state.won[b] / state.total[b] if state.total[b] > 0.0 else 0.5
    find_extremes(state)
    find_fewest(state, params)


def choose_by_mean(state, mean, rng):
    """One of the remaining arms with that P̂."""
    ties = 0
    for k in range(state.left[0]):
        ties += state.mean[state.alive[k]] == mean
    n = choose(ties, rng)
    for k in range(state.left[0]):
        if state.mean[state.alive[k]] == mean:
            if n == 0:
                break
            n -= 1
    return state.alive[k]


def update(state, params, t, i, j, outcome):
    if not (state.inside[i] and state.inside[j]) or state.left[0] == 1:
        return
    state.plays[i, j] += 1.0
    state.wins[i, j] += outcome
    state.total[i] += 1.0
    state.won[i] += outcome
    set_mean(state, i, state.won[i] / state.total[i])
    if state.total[i] == state.least[0] + 1.0:
        state.size[0] = remove(state.fewest, state.size[0], i)
        if state.size[0] == 0:
            find_fewest(state, params)
    lowest, highest, radius = state.extremes[0], state.extremes[1], state.extremes[2]
    state.due[0] = lowest + radius <= highest - radius
    state.explored[0] = t if state.due[0] and state.left[0] == 2 else 0


def set_mean(state, b, mean):
    old = state.mean[b]
    state.mean[b] = mean
    if mean <= state.extremes[0]:
        state.extremes[0] = mean
    elif old == state.extremes[0]:
        find_extremes(state)
    if mean >= state.extremes[1]:
        state.extremes[1] = mean
    elif old == state.extremes[1]:
        find_extremes(state)


def find_extremes(state):
    lowest, highest = 1.0, 0.0
    for k in range(state.left[0]):
        mean = state.mean[state.alive[k]]
        lowest, highest = min(lowest, mean), max(highest, mean)
    state.extremes[0], state.extremes[1] = lowest, highest


def find_fewest(state, params):
    """The remaining arms with the fewest comparisons, and the radius c* that their number gives."""
    least, size = math.inf, 0
    for k in range(state.left[0]):
        b = state.alive[k]
        if state.total[b] < least:
            least, size = state.total[b], 0
        if state.total[b] == least:
            state.fewest[size] = b
            size += 1
    state.size[0], state.least[0] = size, least
    radius = 1.0
    if least > 0.0:
        radius = 3.0 * params.gamma * params.gamma * math.sqrt(state.log_term[0] / least)
    state.extremes[2] = radius


def skip(state, params, t):
    """A duel of an arm with itself counts while several remain (it is decided by a fair coin)."""
    return FOREVER if state.left[0] == 1 else t


def recommend(state, rng):
    """The arm with the highest P̂, ties at random."""
    return choose_by_mean(state, state.extremes[1], rng)


def explored(state):
    return state.explored[0]
