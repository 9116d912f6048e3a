"""Interleaved Filter with pruning (IF2): Yue, Broder, Kleinberg & Joachims, J. Comput. Syst. Sci. 78 (2012).

An incumbent duels every remaining arm once per pass, in random order. After each pass, the arms that it beats with
confidence are eliminated. An arm that beats it with confidence replaces it; then the arms that are empirically behind
the old incumbent are eliminated too, and all counts restart.
"""

import math
from typing import NamedTuple

import numpy as np

from .kernels import FOREVER, choose, remove

NAME = "Interleaved Filter"
PAPER = "Yue, Broder, Kleinberg, Joachims: The K-armed Dueling Bandits Problem (JCSS 2012)"
NEEDS_HORIZON = True
ASSUMES = "total order"


class Params(NamedTuple):
    pass


class State(NamedTuple):
    incumbent: np.ndarray  # (1,) int64: b̂, −1 before the first step
    won: np.ndarray  # (K,) float64: duels the incumbent won over each arm since it became the incumbent
    total: np.ndarray  # (K,) float64: duels it had with each arm since then
    alive: np.ndarray  # (K,) int64: W, the remaining arms but the incumbent, ascending …
    left: np.ndarray  # (1,) int64: … and their number
    inside: np.ndarray  # (K,) bool: whether an arm is in W
    passes: np.ndarray  # (2,) float64: complete passes through W so far, and members of W left in this pass
    beaten: np.ndarray  # (1,) bool: whether an arm beats the incumbent with confidence and replaces it at the next step
    explored: np.ndarray  # (1,) int64: the time at which one arm was left; 0 before that
    log_term: np.ndarray  # (1,) float64: 4 ln(1/δ), δ = 1/(TK²)


def check(params):
    pass


def init(arms, horizon, params):
    state = State(
        incumbent=np.zeros(1, np.int64),
        won=np.zeros(arms),
        total=np.zeros(arms),
        alive=np.zeros(arms, np.int64),
        left=np.zeros(1, np.int64),
        inside=np.zeros(arms, np.bool_),
        passes=np.zeros(2),
        beaten=np.zeros(1, np.bool_),
        explored=np.zeros(1, np.int64),
        log_term=np.zeros(1),
    )
    restart(state, params, horizon)
    return state


def restart(state, params, horizon):
    """Begin anew, with this horizon."""
    arms = len(state.alive)
    state.incumbent[0] = -1
    state.won[:] = 0.0
    state.total[:] = 0.0
    for b in range(arms):
        state.alive[b] = b
    state.left[0] = arms
    state.inside[:] = True
    state.passes[:] = 0.0
    state.beaten[0] = False
    state.explored[0] = 0
    state.log_term[0] = 4.0 * math.log(float(horizon) * arms * arms)


def select(state, params, t, rng):
    if state.incumbent[0] < 0:
        enthrone(state, choose(len(state.total), rng))
    if state.beaten[0]:
        succeed(state, rng)
    incumbent = state.incumbent[0]
    if state.left[0] == 0:
        return incumbent, incumbent
    n = choose(int(state.passes[1]), rng)
    for k in range(state.left[0]):
        if state.total[state.alive[k]] == state.passes[0]:
            if n == 0:
                break
            n -= 1
    return incumbent, state.alive[k]


def enthrone(state, b):
    """Make b the incumbent, take it out of W and start counting anew."""
    state.incumbent[0] = b
    drop(state, b)
    state.won[:] = 0.0
    state.total[:] = 0.0
    state.passes[0], state.passes[1] = 0, state.left[0]
    state.beaten[0] = False


def drop(state, b):
    state.left[0] = remove(state.alive, state.left[0], b)
    state.inside[b] = False


def succeed(state, rng):
    """Prune the arms behind the incumbent; one that beats it with confidence follows it."""
    for k in range(state.left[0] - 1, -1, -1):
        if state.won[state.alive[k]] > 0.5 * state.total[state.alive[k]]:
            drop(state, state.alive[k])
    enthrone(state, challenger(state, rng))


def challenger(state, rng):
    """An arm that beats the incumbent with confidence, any of them."""
    m = 0
    for k in range(state.left[0]):
        m += certainty(state, state.alive[k]) < 0
    n = choose(m, rng)
    for k in range(state.left[0]):
        if certainty(state, state.alive[k]) < 0:
            if n == 0:
                break
            n -= 1
    return state.alive[k]


def certainty(state, b):
    """1 if the incumbent beats b with confidence, −1 if b beats it, 0 if ½ is inside the interval."""
    lead = state.won[b] / state.total[b] - 0.5
    radius = math.sqrt(state.log_term[0] / state.total[b])
    if lead > radius:
        return 1
    return -1 if lead < -radius else 0


def update(state, params, t, i, j, outcome):
    b, won = (i, 1.0 - outcome) if j == state.incumbent[0] else (j, outcome)
    of_incumbent = i == state.incumbent[0] or j == state.incumbent[0]
    if not (of_incumbent and state.inside[b]) or state.beaten[0]:
        return
    state.won[b] += won
    state.total[b] += 1.0
    if state.total[b] == state.passes[0] + 1.0:
        state.passes[1] -= 1.0
        if state.passes[1] == 0.0:
            finish_pass(state, t)


def finish_pass(state, t):
    for k in range(state.left[0] - 1, -1, -1):
        if certainty(state, state.alive[k]) > 0:
            drop(state, state.alive[k])
    survivors = 0  # those that pruning would leave
    fewest, waiting = math.inf, 0
    for k in range(state.left[0]):
        b = state.alive[k]
        survivors += state.won[b] <= 0.5 * state.total[b]
        if certainty(state, b) < 0:
            state.beaten[0] = True
        if state.total[b] < fewest:
            fewest, waiting = state.total[b], 0
        waiting += state.total[b] == fewest
    state.passes[0], state.passes[1] = fewest, waiting
    if state.left[0] == 0 or (state.beaten[0] and survivors == 1):
        state.explored[0] = t


def skip(state, params, t):
    return FOREVER


def recommend(state, rng):
    """The incumbent, or an arm that has just beaten it with confidence; any arm before there is an incumbent."""
    if state.incumbent[0] < 0:
        return choose(len(state.total), rng)
    if state.beaten[0]:
        return challenger(state, rng)
    return state.incumbent[0]


def explored(state):
    return state.explored[0]
