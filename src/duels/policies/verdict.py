"""Verdict: ask what brings the verdict of a study soonest; regret does not matter.

Self-Sparring proposes a pair. A question that cannot help, an arm against itself or a pair that is certain already, is
replaced: an arm without a certain loss meets the arm whose defeat is furthest from certain.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import argmax_beta
from .evidence import LOG_630, is_certain, log_closeness, margin_level, winner_level
from .kernels import choose

PAPER = "the asking rule of Duels; pairs proposed as by Sui, Zhuang, Burdick, Yue (UAI 2017)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
GOAL = ("confidence", "margin")  # a study sets these to its own

DOUBT = 0.1  # how often a pair that is certain is asked nevertheless: certainty may be wrong
PRIOR = 10.0  # duels that a pair is taken to have had, when leads are compared
WAITING = 0.2  # how much of a win an unanswered duel is taken for


class Params(NamedTuple):
    confidence: float = 0.95
    margin: float = 0.0


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j
    ties: np.ndarray  # (K, K) float64: ties of i and j
    open: np.ndarray  # (K, K) float64: unanswered duels of i and j
    sure: np.ndarray  # (K, K) bool: whether i beats j for certain
    done: np.ndarray  # (K, K) bool: whether i need not meet j again: `sure`, or close enough for the margin
    losses: np.ndarray  # (K,) int64: how many arms beat i for certain
    won: np.ndarray  # (K,) float64: 1 and the duels that i won …
    lost: np.ndarray  # (K,) float64: … or lost
    levels: np.ndarray  # (2,) float64: the evidence that `sure` and `done` need


def check(params):
    if not 0 < params.confidence < 1:
        raise InvalidInput(f"confidence of verdict is {params.confidence}: expected a number above 0 and below 1")
    if not 0 <= params.margin < 0.5:
        raise InvalidInput(f"margin of verdict is {params.margin}: expected a number of at least 0 and below 0.5")


def init(arms, horizon, params):
    none, delta = np.zeros((arms, arms)), 1 - params.confidence
    return State(
        wins=none,
        ties=none.copy(),
        open=none.copy(),
        sure=np.zeros((arms, arms), dtype=np.bool_),
        done=np.zeros((arms, arms), dtype=np.bool_),
        losses=np.zeros(arms, np.int64),
        won=np.ones(arms),
        lost=np.ones(arms),
        levels=np.array([winner_level(delta, arms), margin_level(delta, max(arms, 2))]),
    )


def select(state, params, t, rng):
    i, j = argmax_beta(state.won, state.lost, rng), argmax_beta(state.won, state.lost, rng)
    if i == j or ((state.done[i, j] or state.done[j, i]) and rng.random() >= DOUBT):
        c = undefeated(state.losses, i, j, rng)
        d = weakest_lead(state.wins, state.open, state.done, c)
        if d >= 0:
            return c, d
    return i, j


def undefeated(losses: np.ndarray, i: int, j: int, rng: np.random.Generator) -> int:
    """The first of i, j and a random arm that has no certain loss; any arm if all have one."""
    if losses[i] == 0:
        return i
    if losses[j] == 0:
        return j
    number = 0
    for k in range(len(losses)):
        number += losses[k] == 0
    n = choose(max(number, 1), rng)
    for k in range(len(losses)):
        if losses[k] == 0:
            if n == 0:
                return k
            n -= 1
    return i


def weakest_lead(wins: np.ndarray, open: np.ndarray, done: np.ndarray, c: int) -> int:
    """The arm whose defeat by c is furthest from certain; −1 if all are done."""
    best, least = -1, math.inf
    for k in range(len(wins)):
        if k != c and not done[c, k]:
            n = wins[c, k] + wins[k, c] + open[c, k]
            lead = (wins[c, k] - wins[k, c] + WAITING * open[c, k]) / math.sqrt(n + PRIOR)
            if lead < least:
                best, least = k, lead
    return best


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    if outcome == 0.5:
        state.ties[i, j] += 1.0
        state.ties[j, i] += 1.0
    else:
        state.wins[i, j] += outcome
        state.wins[j, i] += 1.0 - outcome
        state.won[i] += outcome
        state.lost[i] += 1.0 - outcome
        state.won[j] += 1.0 - outcome
        state.lost[j] += outcome
    judge(state, params, i, j)
    judge(state, params, j, i)


def judge(state, params, i, j):
    """Find out again whether i beats j for certain."""
    wins, losses = state.wins[i, j], state.wins[j, i]
    sure = is_certain(wins, losses, state.levels[0])
    state.losses[j] += int(sure) - int(state.sure[i, j])
    state.sure[i, j] = state.done[i, j] = sure
    if params.margin > 0.0:
        state.done[i, j] = log_closeness(wins, losses, state.ties[i, j], params.margin) >= state.levels[1]


def wait(state, params, i, j):
    """Note that a duel was asked and has no answer yet."""
    if i != j:
        state.open[i, j] += 1.0
        state.open[j, i] += 1.0


def bounds(state, params, t):
    """Return the (K, K) lower and upper limits of each win probability: where the evidence against it is too small.

    ½ is outside exactly if the pair is certain.
    """
    upper = _upper(state.wins, state.levels[0])
    lower = 1.0 - upper.T
    np.fill_diagonal(upper, 0.5)
    np.fill_diagonal(lower, 0.5)
    return lower, upper


def _upper(wins, level):
    """The p above w/n at which B(w+5, l+5) / B(5, 5) / (p^w (1−p)^l) reaches the level, by bisection; 1 if none."""
    from scipy import special

    losses = wins.T
    target = special.betaln(wins + 5.0, losses + 5.0) + LOG_630 - level
    low, high = wins / np.maximum(wins + losses, 1.0), np.ones(wins.shape)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = special.xlogy(wins, middle) + special.xlog1py(losses, -middle) <= target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def champions(state, params, t):
    """Return the arms that may still be the winner as a (K,) bool array: those without a certain loss."""
    return state.losses == 0


def recommend(state, rng):
    """The arm that was asked about most often, ties at random."""
    most, ties = 0.0, 0
    for i in range(len(state.won)):
        plays = state.won[i] + state.lost[i]
        if plays > most:
            most, ties = plays, 0
        ties += plays == most
    n = choose(ties, rng)
    for i in range(len(state.won)):
        if state.won[i] + state.lost[i] == most:
            if n == 0:
                break
            n -= 1
    return i
