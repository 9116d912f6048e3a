"""Studies that are looked at after every answer: worlds, and samplers that hunt for false verdicts."""

import math
from typing import NamedTuple

import numpy as np
from tallies import square


class Chase(NamedTuple):
    """What the hunters know."""

    wins: np.ndarray  # (K, K) float64, without ties
    present: np.ndarray  # (K,) int64: the time from which on an arm takes part


def new_chase(arms, started_with=None, every=0):
    """What the hunters know at the start; later arms come one by one, every so many duels."""
    return Chase(np.zeros((arms, arms)), np.maximum(np.arange(arms) - (started_with or arms) + 1, 0) * every)


def chase(state, params, t, rng):
    """Mostly the pair that is the furthest from even without being far: what a hunter of false alarms would look at."""
    arms = len(state.wins)
    while state.present[arms - 1] > t:
        arms -= 1
    best, first, second = -1.0, 0, 1
    if rng.random() < params:
        first = int(rng.random() * arms)
        second = int(rng.random() * (arms - 1))
        return first, second + (second >= first)
    for i in range(arms):
        for j in range(i):
            n = state.wins[i, j] + state.wins[j, i]
            z = abs(state.wins[i, j] - state.wins[j, i]) / math.sqrt(n) if n > 0.0 else 9.0
            if best < z < 6.0:
                best, first, second = z, i, j
    return first, second


def crown(state, params, t, rng):
    """Mostly the arm that is nearest to being named, and the arm that it leads by least: a hunter of false winners.

    An arm is as near as its leads in standard errors, up to 3.2 each, make it; about so much is certain.
    """
    arms = len(state.wins)
    if rng.random() < params:
        first = int(rng.random() * arms)
        second = int(rng.random() * (arms - 1))
        return first, second + (second >= first)
    nearest, first, second = -math.inf, 0, 1
    for i in range(arms):
        total, least, rival = 0.0, math.inf, 0
        for j in range(arms):
            if j != i:
                n = state.wins[i, j] + state.wins[j, i]
                z = min((state.wins[i, j] - state.wins[j, i]) / math.sqrt(n + 5.0), 3.2)
                total += z
                if z < least:
                    least, rival = z, j
        if total > nearest:
            nearest, first, second = total, i, rival
    return first, second


def answer(p, tie, i, j, luck):
    """The outcome of a duel, a tie with that chance; p is the share of decided duels."""
    if luck.random() < tie:
        return 0.5
    return 1.0 if luck.random() < p[i, j] else 0.0


def chase_on(state, params, t, i, j, outcome):
    if outcome != 0.5:
        state.wins[i, j] += outcome
        state.wins[j, i] += 1.0 - outcome


EVEN = square([0.5] * 6)
TOP_TWO_EVEN = square([0.5, 0.9, 0.9, 0.9, 0.9, 0.5])
BY_A_HAIR = square([0.52, 0.52, 0.6, 0.45, 0.6, 0.6])
CYCLE = square([0.7, 0.3, 0.9, 0.7, 0.9, 0.9])
