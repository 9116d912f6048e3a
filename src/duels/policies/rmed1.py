"""RMED1: Komiyama, Honda, Kashima & Nakagawa, COLT 2015, Algorithms 1 and 2 (line numbers of Algorithm 1 on the right).

I_i = Σ n_ij kl(μ_ij, ½) over the arms that i does not beat measures how unlikely it is that i beats all. Every arm with
I_i − min I ≤ ln t + f(K) has its turn in a loop, against the arm with the most evidence against it. One duel changes
two of the I; self-duels of the only arm in the loop are skipped. RMED2 and RMED2FH build on this file.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .divergences import evidence
from .kernels import FOREVER, choose, record

NAME = "RMED1"
PAPER = "Komiyama, Honda, Kashima, Nakagawa: Regret Lower Bound and Optimal Algorithm in Dueling Bandits (COLT 2015)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"


class Params(NamedTuple):
    scale: float = 0.3  # f(K) = scale · K^power
    power: float = 1.01


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    terms: np.ndarray  # (K, K) float64: n_ij kl(μ_ij, ½) where i is behind j, else 0
    divergence: np.ndarray  # (K,) float64: I_i, the sum of row i of the terms
    order: np.ndarray  # (K,) int64: the arms in the fixed order, drawn at the first step; −1 before
    cursor: np.ndarray  # (2,) int64: the places in the order of the pair that exploration looks at next
    met: np.ndarray  # (1,) float64: every pair has met at least this often
    turn: np.ndarray  # (1,) int64: the place in the order of the current arm; K between two loops
    open: np.ndarray  # (1,) bool: whether that arm was drawn and lines 13 and 14 are still to be executed
    now: np.ndarray  # (K,) bool: L_C, the arms of this loop
    waiting: np.ndarray  # (K,) bool: L_R, those that have not had their turn
    later: np.ndarray  # (K,) bool: L_N, the arms of the next loop
    target: np.ndarray  # (K,) int64: b*(i) as RMED2FH fixes it, −1 for none; target[0] is −2 before that
    tolerance: float  # f(K)
    patience: float  # ln ln T of RMED2FH


def check(params):
    check_tolerance("rmed1", params)


def check_tolerance(name, params):
    for parameter in ("scale", "power"):
        value = getattr(params, parameter)
        if not 0 <= value < math.inf:
            raise InvalidInput(f"{parameter} of {name} is {value}: expected 0 or a positive number")


def init(arms, horizon, params):
    return State(
        wins=np.zeros((arms, arms)),
        terms=np.zeros((arms, arms)),
        divergence=np.zeros(arms),
        order=np.full(arms, -1),
        cursor=np.array([0, 1]),
        met=np.zeros(1),
        turn=np.full(1, arms),
        open=np.zeros(1, np.bool_),
        now=np.zeros(arms, np.bool_),
        waiting=np.zeros(arms, np.bool_),
        later=np.ones(arms, np.bool_),  # 5: the first loop has all arms
        target=np.full(arms, -2),
        tolerance=params.scale * arms**params.power,
        patience=math.log(max(math.log(max(horizon, 2)), 1.0)),
    )


def select(state, params, t, rng):
    prepare(state, t, rng)
    if state.turn[0] == len(state.order):
        i, j = pair_short_of(state, 1.0)  # 3
        if i >= 0:
            return i, j
        begin_loop(state)
    arm = begin_turn(state)
    return arm, opponent(state, arm, least(state.divergence, rng), rng)  # 11


def prepare(state, t, rng):
    """Draw the order at the first step; end the turn of the step before."""
    if state.order[0] < 0:
        shuffle(state.order, rng)
    if state.open[0]:
        end_turn(state, t - 1)


def shuffle(order, rng):
    """Fill an array with 0 … K − 1 in random order."""
    for k in range(len(order)):
        other = choose(k + 1, rng)
        order[k] = order[other]
        order[other] = k


def end_turn(state, t):
    """Lines 13 and 14 for the arm drawn at step t, then on to the next of the loop."""
    state.open[0] = False
    state.waiting[state.order[state.turn[0]]] = False  # 13
    lowest = smallest(state.divergence)
    allowed = math.log(t) + state.tolerance
    for j in range(len(state.divergence)):
        state.later[j] |= (not state.waiting[j]) and state.divergence[j] - lowest <= allowed  # 14
    state.turn[0] = next_place(state, state.turn[0] + 1)


def next_place(state, place):
    while place < len(state.order) and not state.now[state.order[place]]:
        place += 1
    return place


def begin_loop(state):
    """Line 17: the arms gathered during the last loop are those of this one."""
    for j in range(len(state.now)):
        state.now[j] = state.waiting[j] = state.later[j]
        state.later[j] = False
    state.turn[0] = next_place(state, 0)


def begin_turn(state):
    state.open[0] = True
    return state.order[state.turn[0]]  # 10


def pair_short_of(state, needed):
    """The next pair in the fixed order that met fewer times than needed; (−1, −1) if there is none."""
    wins, order = state.wins, state.order
    while state.met[0] < needed:
        a, b = state.cursor[0], state.cursor[1]
        while a < len(order) - 1:
            while b < len(order):
                i, j = order[a], order[b]
                if wins[i, j] + wins[j, i] < needed:
                    state.cursor[0], state.cursor[1] = a, b
                    return i, j
                b += 1
            a += 1
            b = a + 1
        state.cursor[0], state.cursor[1] = 0, 1
        state.met[0] = fewest_meetings(wins)
    return -1, -1


def fewest_meetings(wins):
    fewest = math.inf
    for i in range(len(wins)):
        for j in range(i):
            fewest = min(fewest, wins[i, j] + wins[j, i])
    return fewest


def opponent(state, arm, best, rng):
    """Algorithm 2: the least divergent arm if it is not behind, or nobody is ahead; else the one that wins the most."""
    wins = state.wins
    if best != arm and wins[arm, best] <= wins[best, arm]:
        return best
    ahead, ties = 1.0, 0
    for j in range(len(wins)):
        if j != arm:
            share = wins[arm, j] / (wins[arm, j] + wins[j, arm])
            if share < ahead:
                ahead, ties = share, 0
            ties += share == ahead
    if ahead > 0.5:
        return best
    n = choose(ties, rng)
    for j in range(len(wins)):
        if j != arm and wins[arm, j] / (wins[arm, j] + wins[j, arm]) == ahead:
            if n == 0:
                break
            n -= 1
    return j


def least(values, rng):
    """The place of the smallest value, ties at random."""
    lowest, ties = smallest(values), 0
    for i in range(len(values)):
        ties += values[i] == lowest
    n = choose(ties, rng)
    for i in range(len(values)):
        if values[i] == lowest:
            if n == 0:
                break
            n -= 1
    return i


def smallest(values):
    lowest = values[0]
    for k in range(len(values)):
        lowest = min(lowest, values[k])
    return lowest


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record(state.wins, i, j, outcome)  # 12
    won, lost = state.wins[i, j], state.wins[j, i]
    told = evidence(won, lost)
    state.terms[i, j] = told if won < lost else 0.0
    state.terms[j, i] = told if lost < won else 0.0
    # Summed again instead of updated by a difference: rounding errors cannot accumulate, and a row is cheap.
    state.divergence[i], state.divergence[j] = total(state.terms[i]), total(state.terms[j])


def total(row):
    # Four independent sums: each addition of a single sum would wait for the previous one.
    a = b = c = d = 0.0
    whole = len(row) // 4 * 4
    for j in range(0, whole, 4):
        a += row[j]
        b += row[j + 1]
        c += row[j + 2]
        d += row[j + 3]
    for j in range(whole, len(row)):
        a += row[j]
    return (a + b) + (c + d)


def skip(state, params, t):
    return end_of_solitude(state, t)


def end_of_solitude(state, t):
    """While an arm that duels itself is alone in the loop: the step after another arm first fulfils line 14."""
    alone = state.order[state.turn[0]]
    gap = math.inf
    for j in range(len(state.divergence)):
        if j != alone:
            if state.now[j]:
                return t + 1
            gap = min(gap, state.divergence[j] - state.divergence[alone])
    return max(first_allowed(gap, state.tolerance), t) + 1


def first_allowed(gap, tolerance):
    """The first t with gap ≤ ln t + f(K), by the very predicate of line 14."""
    if gap - tolerance > 36.0:  # past 4·10¹⁵, and before exp or int64 overflows
        return FOREVER
    t = max(math.ceil(math.exp(gap - tolerance)), 1)
    while gap > math.log(t) + tolerance:
        t += 1
    while t > 1 and gap <= math.log(t - 1) + tolerance:
        t -= 1
    return t


def recommend(state, rng):
    return least(state.divergence, rng)
