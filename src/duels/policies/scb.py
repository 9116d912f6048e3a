"""SCB, Scalable Copeland Bandits: Zoghi, Karnin, Whiteson & de Rijke, NIPS 2015, Algorithm 3 (with 2 and 4).

The length T of each round is the square of the previous one. A round searches for a Copeland winner with failure
probability δ = ln T / T, which then duels itself until the round ends. The search is a bandit method in which an arm's
reward is 1 if it beats a random opponent; the pair duels until that is certain.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .divergences import kl, kl_lower, kl_upper
from .kernels import choose, choose_largest, record

NAME = "SCB"
PAPER = "Zoghi, Karnin, Whiteson, de Rijke: Copeland Dueling Bandits (NIPS 2015)"
NEEDS_HORIZON = False
ASSUMES = "no even pair"
LIVE = "it may stop asking what a verdict needs, unless arms never meet themselves (allow_self=False)"
LONGEST = 1 << 55  # steps of a round: beyond every horizon


class Params(NamedTuple):
    factor: float = 0.51  # multiplies both budgets of evidence
    first: int = 1000  # steps of the first round
    test: str = "kl"  # when a pair is certain: "kl" or "hoeffding"


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j in this round; a tie adds a half to both
    beats: np.ndarray  # (K, K) int64: in this round, 1 i beats j for certain, −1 j beats i, 0 not known
    unknown: np.ndarray  # (K,) int64: opponents of i for which this is not known
    verdict: np.ndarray  # (K, K) int64: the same, from this round or the latest that decided it
    lead: np.ndarray  # (K,) int64: the sum of a verdict's row
    round: np.ndarray  # (3,) int64: T, the first step of the next round, and the winner found in this one, −1 before
    log: np.ndarray  # (1,) float64: ln(1/δ)
    alive: np.ndarray  # (K,) int64: the arms that may be Copeland winners, ascending …
    left: np.ndarray  # (1,) int64: … and their number
    opponent: np.ndarray  # (K,) int64: the opponent drawn for the reward that an arm waits for, −1 for none
    pulls: np.ndarray  # (3,) int64: rewards that each had, arms that wait for their next, the place whose turn was last
    reward: np.ndarray  # (K,) int64: the sum of an arm's rewards
    hoeffding: bool


def check(params):
    if not 0 < params.factor < math.inf:
        raise InvalidInput(f"factor of scb is {params.factor}: expected a positive number (the paper has 1)")
    if params.first < 2:
        raise InvalidInput(f"first of scb is {params.first}: expected a round of 2 steps or more")
    if params.test not in ("kl", "hoeffding"):
        raise InvalidInput(f"test of scb is {params.test!r}: expected 'kl' or 'hoeffding'")


def init(arms, horizon, params):
    return State(
        wins=np.zeros((arms, arms)),
        beats=np.zeros((arms, arms), np.int64),
        unknown=np.full(arms, arms - 1),
        verdict=np.zeros((arms, arms), np.int64),
        lead=np.zeros(arms, np.int64),
        round=np.array([0, 1, -1]),
        log=np.zeros(1),
        alive=np.arange(arms),
        left=np.full(1, arms),
        opponent=np.full(arms, -1),
        pulls=np.zeros(3, np.int64),
        reward=np.zeros(arms, np.int64),
        hoeffding=params.test == "hoeffding",
    )


def select(state, params, t, rng):
    while t >= state.round[1]:
        begin(state, params)
    while state.round[2] < 0:
        if state.pulls[1] == 0:
            pull(state, rng)
        i = next_waiting(state)
        j = state.opponent[i]
        if state.beats[i, j] == 0:
            return i, j
        state.reward[i] += state.beats[i, j] > 0
        state.opponent[i] = -1
        state.pulls[1] -= 1
        if state.pulls[1] == 0:
            eliminate(state, params, rng)
    return state.round[2], state.round[2]


def begin(state, params):
    """The next round, which knows nothing of those before."""
    arms, steps = len(state.alive), state.round[0]
    steps = params.first if steps == 0 else LONGEST if steps > 1 << 27 else steps * steps
    state.log[0] = math.log(steps / math.log(steps))
    state.round[0] = steps
    state.round[1] += steps
    state.round[2] = -1
    state.wins[:] = 0.0
    state.beats[:] = 0
    state.unknown[:] = arms - 1
    for i in range(arms):
        state.alive[i] = i
    state.left[0] = arms
    state.pulls[:] = 0
    state.reward[:] = 0


def pull(state, rng):
    """Every remaining arm is to have one more reward, against an opponent drawn for it."""
    for k in range(state.left[0]):
        i = state.alive[k]
        j = choose(len(state.alive) - 1, rng)
        state.opponent[i] = j + (j >= i)
    state.pulls[0] += 1
    state.pulls[1], state.pulls[2] = state.left[0], choose(state.left[0], rng)


def next_waiting(state):
    """Those who wait take turns."""
    k = state.pulls[2]
    while True:
        k = k + 1 if k + 1 < state.left[0] else 0
        if state.opponent[state.alive[k]] >= 0:
            state.pulls[2] = k
            return state.alive[k]


def eliminate(state, params, rng):
    """Arms whose interval lies below another's leave; the winner is found when one is left or all left are level."""
    most, known = 0, True
    for k in range(state.left[0]):
        most = max(most, state.reward[state.alive[k]])
        known = known and state.unknown[state.alive[k]] == 0
    if known:
        keep_best_score(state)
    elif state.pulls[0] > 1:
        n, arms = state.pulls[0], len(state.alive)
        budget = params.factor * (math.log(4.0 * n * arms) + state.log[0] + 2.0 * math.log(math.log(n)))
        lower = kl_lower(most / n, n, budget)
        kept = 0
        for k in range(state.left[0]):
            i = state.alive[k]
            share = state.reward[i] / n
            state.alive[kept] = i
            kept += share >= lower or n * kl(share, lower) <= budget
        state.left[0] = kept
        known = kl_upper(most / n, n, budget) - lower < 1.0 / (arms - 1)
    if known or state.left[0] == 1:
        state.round[2] = choose_rewarded(state, rng)


def keep_best_score(state):
    """Everything is known of those who remain: keep those that beat the most."""
    most = -1
    for k in range(state.left[0]):
        state.reward[state.alive[k]] = score(state, state.alive[k])
        most = max(most, state.reward[state.alive[k]])
    kept = 0
    for k in range(state.left[0]):
        state.alive[kept] = state.alive[k]
        kept += state.reward[state.alive[k]] == most
    state.left[0] = kept


def score(state, i):
    beaten = 0
    for j in range(len(state.alive)):
        beaten += state.beats[i, j] > 0
    return beaten


def choose_rewarded(state, rng):
    """One of the remaining arms with the most rewards."""
    most, ties = -1, 0
    for k in range(state.left[0]):
        if state.reward[state.alive[k]] > most:
            most, ties = state.reward[state.alive[k]], 0
        ties += state.reward[state.alive[k]] == most
    n = choose(ties, rng)
    for k in range(state.left[0]):
        if state.reward[state.alive[k]] == most:
            if n == 0:
                break
            n -= 1
    return state.alive[k]


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record(state.wins, i, j, outcome)
    if state.beats[i, j] != 0:
        return
    lead, n = state.wins[i, j] - state.wins[j, i], state.wins[i, j] + state.wins[j, i]
    if is_certain(state, params, t, lead, n):
        state.unknown[i] -= 1
        state.unknown[j] -= 1
        settle(state, i, j, 1 if lead > 0.0 else -1)
        settle(state, j, i, 1 if lead < 0.0 else -1)


def is_certain(state, params, t, lead, n):
    """Whether the pair that one arm leads by so many of n duels is decided."""
    arms = len(state.alive)
    if state.hoeffding:  # |w/n − ½| > √(ln(2K²n(n+1)/δ) / 2n), multiplied out
        return lead * lead > 2.0 * n * params.factor * (math.log(2.0 * arms * arms * n * (n + 1.0)) + state.log[0])
    step = max(t - state.round[1] + state.round[0] + 1, 1)  # of this round
    budget = math.log(4.0 * step * arms) + 2.0 * log_log(step)
    return n * kl(0.5 + 0.5 * abs(lead) / n, 0.5) > params.factor * budget


def log_log(t):
    """ln ln t, at least 1."""
    return max(math.log(max(math.log(t), 1.0)), 1.0)


def settle(state, i, j, won):
    state.beats[i, j] = won
    state.lead[i] += won - state.verdict[i, j]
    state.verdict[i, j] = won


def skip(state, params, t):
    return state.round[1] if state.round[2] >= 0 else t + 1


def recommend(state, rng):
    """The winner found in this round; before, the arm with the most certain wins less certain losses."""
    if state.round[2] >= 0:
        return state.round[2]
    return choose_largest(state.lead, rng)
