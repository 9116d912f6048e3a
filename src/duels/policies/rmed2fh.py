"""RMED2FH: Komiyama, Honda, Kashima & Nakagawa, COLT 2015, Algorithms 1 and 3 with a fixed horizon; see `rmed2`.

Every pair meets ⌈α ln ln T⌉ times first; b*(i) is then fixed for every arm.
"""

import math

from . import rmed1, rmed2
from .rmed1 import begin_loop, begin_turn, end_of_solitude, least, pair_short_of, prepare
from .rmed2 import cheapest, choose_paced

NAME = "RMED2FH"
PAPER = rmed1.PAPER
NEEDS_HORIZON = True
ASSUMES = "condorcet"

Params = rmed2.Params
State = rmed1.State
init = rmed1.init
update = rmed1.update
recommend = rmed1.recommend


def check(params):
    rmed2.check_alpha("rmed2fh", params)


def select(state, params, t, rng):
    prepare(state, t, rng)
    if state.turn[0] == len(state.order):
        i, j = pair_short_of(state, max(math.ceil(params.alpha * state.patience), 1.0))  # 3
        if i >= 0:
            return i, j
        if state.target[0] == -2:
            fix_targets(state, rng)  # 4
        begin_loop(state)
    arm = begin_turn(state)
    best = least(state.divergence, rng)
    return arm, choose_paced(state, arm, best, state.target[arm], state.patience, rng)


def fix_targets(state, rng):
    best = least(state.divergence, rng)
    for i in range(len(state.target)):
        state.target[i] = cheapest(state, i, best, rng)


def skip(state, params, t):
    return end_of_solitude(state, t)
