"""Sparring: Ailon, Karnin & Joachims, ICML 2014, with two UCB1 players: one chooses the left arm, one the right arm.

Each player sees only its own arm and whether it won. Neither knows when both have chosen the same arm, so a self-duel
has a winner like any other duel.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import choose_largest
from .rucb import challenger, highest

NAME = "Sparring"
PAPER = "Ailon, Karnin, Joachims: Reducing Dueling Bandits to Cardinal Bandits (ICML 2014)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"


class Params(NamedTuple):
    alpha: float = 2.0


class State(NamedTuple):
    plays: np.ndarray  # (2, K) float64: how often the left (0) and the right (1) player has chosen each arm
    won: np.ndarray  # (2, K) float64: how often it won with it; a tie adds a half
    share: np.ndarray  # (2, K) float64: won / plays, ∞ before the first
    width: np.ndarray  # (2, K) float64: 1 / √plays, 0 before the first
    chosen: np.ndarray  # (K,) float64: how often both players together have chosen each arm


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of sparring is {params.alpha}: expected a positive number, 2 for UCB1")


def init(arms, horizon, params):
    return State(
        plays=np.zeros((2, arms)),
        won=np.zeros((2, arms)),
        share=np.full((2, arms), np.inf),
        width=np.zeros((2, arms)),
        chosen=np.zeros(arms),
    )


def select(state, params, t, rng):
    bonus = math.sqrt(params.alpha * math.log(t))
    left = largest_index(state.share[0], state.width[0], bonus, rng)
    return left, largest_index(state.share[1], state.width[1], bonus, rng)


def largest_index(share, width, bonus, rng):
    """The arm with the largest share + √(α ln t / n), ties at random."""
    return challenger(share, width, bonus, highest(share, width, bonus), rng)


def update(state, params, t, i, j, outcome):
    reward(state, 0, i, outcome)
    reward(state, 1, j, 1.0 - outcome)


def reward(state, player, arm, won):
    state.plays[player, arm] += 1.0
    state.won[player, arm] += won
    state.chosen[arm] += 1.0
    state.share[player, arm] = state.won[player, arm] / state.plays[player, arm]
    state.width[player, arm] = 1.0 / math.sqrt(state.plays[player, arm])


def skip(state, params, t):
    """A duel of an arm with itself counts: its players do not know."""
    return t


def recommend(state, rng):
    """The arm played most, on either side, ties at random."""
    return choose_largest(state.chosen, rng)
