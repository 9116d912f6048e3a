"""Versatile-DB: Saha & Gaillard, ICML 2022: two Tsallis-INF players (Zimmert & Seldin, 2021), one per side.

A player draws arm i with probability p_i = 4 / (η_t (L̂_i − x))², where L̂_i is the estimated loss of arm i so far and
x < min L̂ is such that the p_i sum to 1. Nothing is assumed about the opponent, so the preferences may be random or
chosen by an adversary.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import choose_largest
from .rex3 import draw_weighted

NAME = "Versatile-DB"
PAPER = "Saha, Gaillard: Versatile Dueling Bandits (ICML 2022)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
LIVE = "it may stop asking what a verdict needs, unless arms never meet themselves (allow_self=False)"


class Params(NamedTuple):
    rate: float = 2.0


class State(NamedTuple):
    loss: np.ndarray  # (2, K) float64: L̂ of the left (0) and of the right (1) player
    p: np.ndarray  # (2, K) float64: the probabilities of the choice made last
    x: np.ndarray  # (2,) float64: the x that made them sum to 1
    drawn: np.ndarray  # (2,) int64: the choice made last, −1 before the first
    merit: np.ndarray  # (K,) float64: −L̂ of both players together


def check(params):
    if not (params.rate > 0 and math.isfinite(params.rate)):
        raise InvalidInput(f"rate of versatile_db is {params.rate}: expected a positive number")


def init(arms, horizon, params):
    return State(
        loss=np.zeros((2, arms)),
        p=np.full((2, arms), 1.0 / arms),
        x=np.full(2, -2.0 * math.sqrt(arms) / params.rate),
        drawn=np.full(2, -1),
        merit=np.zeros(arms),
    )


def select(state, params, t, rng):
    eta = params.rate / math.sqrt(t)
    state.drawn[0] = draw(state, 0, eta, rng)
    state.drawn[1] = draw(state, 1, eta, rng)
    return state.drawn[0], state.drawn[1]


def draw(state, player, eta, rng):
    p = state.p[player]
    state.x[player], total = normalize(state.loss[player], p, state.x[player], eta)
    return draw_weighted(p, rng.random() * total)


def normalize(loss, p, x, eta):
    """Newton's method for x, from the x before; fills p. The sum is convex and grows with x, so that a step from below
    the solution leads above it, and steps from above lead down to it."""
    least = loss[0]
    for k in range(len(loss)):
        least = min(least, loss[k])
    ceiling = least - 2.0 / eta  # here the best arm alone has p = 1
    x = min(x, ceiling)
    for _ in range(100):
        total, slope = fill(loss, p, x, eta)
        if abs(total - 1.0) < 1e-9:
            break
        x = min(x - (total - 1.0) / slope, ceiling)
    return x, total


def fill(loss, p, x, eta):
    total = slope = 0.0
    for k in range(len(loss)):
        root = 2.0 / (eta * (loss[k] - x))
        p[k] = root * root
        total += p[k]
        slope += p[k] * root
    return total, slope * eta


def update(state, params, t, i, j, outcome):
    # The estimates are unbiased for arms drawn with these probabilities; others must not overwhelm them.
    least = 0.0 if i == state.drawn[0] and j == state.drawn[1] else 1.0 / t
    suffer(state, 0, i, 1.0 - outcome, least)
    suffer(state, 1, j, outcome, least)


def suffer(state, player, arm, loss, least):
    estimate = loss / max(state.p[player, arm], least)
    state.loss[player, arm] += estimate
    state.merit[arm] -= estimate


def skip(state, params, t):
    """A duel of an arm with itself counts: its players do not know."""
    return t


def recommend(state, rng):
    """The arm with the smallest estimated loss on both sides together, ties at random."""
    return choose_largest(state.merit, rng)
