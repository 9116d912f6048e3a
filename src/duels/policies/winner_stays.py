"""Winner Stays: Chen & Frazier, ICML 2017, WS-W (Algorithm 1, weak regret) and WS-S (Algorithm 2, strong regret).

The two arms with the largest difference of wins and losses duel, and stay while they are tied for the best. In round ℓ,
every arm but the winner of the round loses once more than it wins. In WS-S, the winner then duels itself ⌊β^ℓ⌋ times.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import FOREVER, choose

NAME = "Winner Stays"
PAPER = "Chen, Frazier: Dueling Bandits with Weak Regret (ICML 2017)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"


class Params(NamedTuple):
    variant: str = "weak"
    beta: float = 1.1


class State(NamedTuple):
    score: np.ndarray  # (K,) float64: C(t, i), duels won minus duels lost
    last: np.ndarray  # (2,) int64: the arms of the last duel, the first one first; −1 before
    round: np.ndarray  # (1,) int64: ℓ, counted from 1
    until: np.ndarray  # (1,) int64: the last step at which the winner of the last round duels itself
    winner: np.ndarray  # (1,) int64: that winner
    strong: bool


def check(params):
    if params.variant not in ("weak", "strong"):
        raise InvalidInput(f"variant of winner_stays is {params.variant!r}: expected 'weak' (WS-W) or 'strong' (WS-S)")
    if not 1 < params.beta < math.inf:
        raise InvalidInput(f"beta of winner_stays is {params.beta}: expected a number above 1")


def init(arms, horizon, params):
    return State(
        score=np.zeros(arms),
        last=np.full(2, -1),
        round=np.ones(1, np.int64),
        until=np.zeros(1, np.int64),
        winner=np.full(1, -1),
        strong=params.variant == "strong",
    )


def select(state, params, t, rng):
    if state.strong:
        if t > state.until[0] and round_is_over(state):
            exploit(state, params, t, rng)
        if t <= state.until[0]:
            return state.winner[0], state.winner[0]
    first = leader(state, -1, rng)
    second = leader(state, first, rng)
    state.last[0], state.last[1] = first, second
    return first, second


def round_is_over(state):
    """Whether every arm but one has lost ℓ times more often than it won."""
    in_play = 0
    for i in range(len(state.score)):
        in_play += state.score[i] > -state.round[0]
    return in_play == 1


def exploit(state, params, t, rng):
    state.winner[0] = leader(state, -1, rng)
    exponent = state.round[0] * math.log(params.beta)
    steps = int(params.beta ** state.round[0]) if exponent < 36.0 else FOREVER // 2  # before int64 overflows
    state.until[0] = t + steps - 1
    state.round[0] += 1


def leader(state, other, rng):
    """The arm with the highest score but `other`; an arm of the last duel before others, which are drawn at random."""
    top, ties = -math.inf, 0
    for i in range(len(state.score)):
        if i != other:
            if state.score[i] > top:
                top, ties = state.score[i], 0
            ties += state.score[i] == top
    for k in range(2):
        if state.last[k] >= 0 and state.last[k] != other and state.score[state.last[k]] == top:
            return state.last[k]
    n = choose(ties, rng)
    for i in range(len(state.score)):
        if i != other and state.score[i] == top:
            if n == 0:
                break
            n -= 1
    return i


def update(state, params, t, i, j, outcome):
    if i != j:
        state.score[i] += 2.0 * outcome - 1.0
        state.score[j] -= 2.0 * outcome - 1.0


def skip(state, params, t):
    return state.until[0] + 1


def recommend(state, rng):
    return leader(state, -1, rng)
