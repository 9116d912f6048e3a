"""RMED2: Komiyama, Honda, Kashima & Nakagawa, COLT 2015, Algorithms 1 and 3; see `rmed1` for what they share.

In its turn, an arm duels b*(i), the arm that gives the most evidence against it per unit of regret, rather than the
one most likely to be best. To estimate b*(i), every pair must meet α ln ln t times.
"""

import math
from typing import NamedTuple

from ..errors import InvalidInput
from . import rmed1
from .kernels import FOREVER, choose
from .rmed1 import begin_loop, begin_turn, end_of_solitude, least, opponent, pair_short_of, prepare

NAME = "RMED2"
PAPER = rmed1.PAPER
NEEDS_HORIZON = False
ASSUMES = "condorcet"

State = rmed1.State
init = rmed1.init
update = rmed1.update
recommend = rmed1.recommend


class Params(NamedTuple):
    alpha: float = 3.0
    scale: float = 0.3  # f(K) = scale · K^power
    power: float = 1.01


def check(params):
    check_alpha("rmed2", params)


def check_alpha(name, params):
    if not 0 < params.alpha < math.inf:
        raise InvalidInput(f"alpha of {name} is {params.alpha}: expected a positive number")
    rmed1.check_tolerance(name, params)


def select(state, params, t, rng):
    prepare(state, t, rng)
    if state.turn[0] == len(state.order):
        i, j = pair_short_of(state, 1.0)  # 3
        if i < 0:
            i, j = pair_short_of(state, params.alpha * log_log(t))  # 8
        if i >= 0:
            return i, j
        begin_loop(state)
    arm = begin_turn(state)
    best = least(state.divergence, rng)
    target = cheapest(state, arm, best, rng)
    return arm, choose_paced(state, arm, best, target, log_log(t), rng)


def log_log(t):
    """ln ln t, 0 before e."""
    return math.log(max(math.log(t), 1.0))


def cheapest(state, arm, best, rng):
    """b*(i) of equation (6): the arm ahead of i with the least regret per information; −1 if nobody is ahead."""
    least_cost, ties = math.inf, 0
    for j in range(len(state.wins)):
        if state.terms[arm, j] > 0.0:
            c = cost(state, arm, best, j)
            if c < least_cost:
                least_cost, ties = c, 0
            ties += c == least_cost
    if ties == 0:
        return -1
    n = choose(ties, rng)
    for j in range(len(state.wins)):
        if state.terms[arm, j] > 0.0 and cost(state, arm, best, j) == least_cost:
            if n == 0:
                break
            n -= 1
    return j


def cost(state, arm, best, j):
    n = state.wins[arm, j] + state.wins[j, arm]
    return (lead(state.wins, best, arm) + lead(state.wins, best, j)) * n / state.terms[arm, j]


def lead(wins, i, j):
    """μ_ij − ½."""
    return 0.0 if i == j else wins[i, j] / (wins[i, j] + wins[j, i]) - 0.5


def choose_paced(state, arm, best, target, log_log_t, rng):
    """Algorithm 3: b*(i), unless the arm met the best one too rarely for that; then Algorithm 2."""
    wins = state.wins
    if target >= 0 and wins[arm, target] <= wins[target, arm]:
        met_best = wins[arm, best] + wins[best, arm]
        if arm == best or met_best * log_log_t >= wins[arm, target] + wins[target, arm]:
            return target
    return opponent(state, arm, best, rng)


def skip(state, params, t):
    return min(end_of_solitude(state, t), max(first_needed(state.met[0], params.alpha), t + 1))


def first_needed(met, alpha):
    """The first t with met < α ln ln t, by the very predicate of line 8."""
    if met / alpha > 3.58:  # past 4·10¹⁵
        return FOREVER
    t = math.ceil(math.exp(math.exp(met / alpha)))
    while met >= alpha * log_log(t):
        t += 1
    while met < alpha * log_log(t - 1):
        t -= 1
    return t
