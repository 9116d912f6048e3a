"""REX3: Gajane, Urvoy & Clérot, ICML 2015, Algorithm 1: exponential weights for utility-based dueling bandits.

Both arms are drawn from the same distribution p, the normalized weights mixed with the uniform distribution. The winner
gains the weight that the loser loses, each divided by its own probability.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import choose_largest

NAME = "REX3"
PAPER = "Gajane, Urvoy, Clérot: A Relative Exponential Weighing Algorithm for Adversarial Utility-based Dueling Bandits"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
HIGHEST = 300.0  # weights stay between e⁻³⁰⁰ and e³⁰⁰ or so: far from overflow, near enough to 0 to be 0


class Params(NamedTuple):
    gamma: float = 0.0  # 0 means min(½, √(K ln K / t))


class State(NamedTuple):
    log: np.ndarray  # (K,) float64: ln w_i
    weight: np.ndarray  # (K,) float64: exp(log − shift)
    total: np.ndarray  # (1,) float64: the sum of the weights
    shift: np.ndarray  # (1,) float64: what is taken off the logarithms so that nothing overflows


def check(params):
    if not 0 <= params.gamma <= 0.5:
        raise InvalidInput(f"gamma of rex3 is {params.gamma}: expected at most 1/2, or 0 to let it fall with t")


def init(arms, horizon, params):
    return State(log=np.zeros(arms), weight=np.ones(arms), total=np.full(1, float(arms)), shift=np.zeros(1))


def select(state, params, t, rng):
    gamma = exploration(state, params, t)
    first = draw_mixed(state, gamma, rng)
    return first, draw_mixed(state, gamma, rng)


def exploration(state, params, t):
    if params.gamma > 0.0:
        return params.gamma
    arms = len(state.log)
    return min(0.5, math.sqrt(arms * math.log(arms) / t))


def draw_mixed(state, gamma, rng):
    """An arm by p_i = (1 − γ) w_i / Σ w + γ / K, in one draw."""
    u = rng.random()
    if u < gamma:
        return min(int(u / gamma * len(state.log)), len(state.log) - 1)
    return draw_weighted(state.weight, (u - gamma) / (1.0 - gamma) * state.total[0])


def draw_weighted(weights, target):
    """The first place at which the running sum of the weights exceeds the target."""
    k, left = 0, target - weights[0]
    while left >= 0.0 and k < len(weights) - 1:
        k += 1
        left -= weights[k]
    while weights[k] == 0.0:  # the target was rounded up to the whole sum
        k -= 1
    return k


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    gamma = exploration(state, params, t)
    arms = len(state.log)
    gain = 0.5 * (2.0 * outcome - 1.0) * gamma / arms
    scale = (1.0 - gamma) / state.total[0]
    up = gain / (scale * state.weight[i] + gamma / arms)
    down = gain / (scale * state.weight[j] + gamma / arms)
    add(state, i, up)
    add(state, j, -down)
    state.total[0] = sum_of(state.weight)
    if state.total[0] < math.exp(-HIGHEST):
        rescale(state)


def add(state, i, gain):
    state.log[i] += gain
    if state.log[i] - state.shift[0] > HIGHEST:
        rescale(state)
    state.weight[i] = math.exp(state.log[i] - state.shift[0])


def rescale(state):
    """Make the largest weight 1."""
    shift = state.log[0]
    for k in range(len(state.log)):
        shift = max(shift, state.log[k])
    state.shift[0] = shift
    for k in range(len(state.log)):
        state.weight[k] = math.exp(state.log[k] - shift)
    state.total[0] = sum_of(state.weight)


def sum_of(values):
    # Four independent sums: each addition of a single sum would wait for the previous one.
    a = b = c = d = 0.0
    whole = len(values) // 4 * 4
    for k in range(0, whole, 4):
        a += values[k]
        b += values[k + 1]
        c += values[k + 2]
        d += values[k + 3]
    total = (a + b) + (c + d)
    for k in range(whole, len(values)):
        total += values[k]
    return total


def recommend(state, rng):
    """The arm with the largest weight, ties at random."""
    return choose_largest(state.log, rng)
