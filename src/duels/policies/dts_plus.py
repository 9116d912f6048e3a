"""DTS⁺: Wu & Liu, NIPS 2016, section 4: Double Thompson Sampling that breaks ties by estimated regret.

Among the candidates tied for the largest sampled Copeland score, the first arm is the one whose comparisons would cost
least if the sample were true: Σ_j r_ij / KL(θ_ij, ½), with r_ij the regret of a duel of i and j. Everything
else is DTS; values of θ are drawn only for tied candidates, given which of the two arms the sample has ahead.
"""

import math
from typing import NamedTuple

from ..errors import InvalidInput
from .betas import distance_from_half, draw_above_half
from .dts import LANES, candidates, draw_row, losses_in_other_rows, ones, sampled_winners, second
from .dts import State as State
from .dts import bounds as bounds
from .dts import init as init
from .dts import recommend as recommend
from .dts import update as update
from .kernels import choose

NAME = "D-TS⁺"
PAPER = "Wu, Liu: Double Thompson Sampling for Dueling Bandits (NIPS 2016)"
NEEDS_HORIZON = False
ASSUMES = "nothing"


class Params(NamedTuple):
    alpha: float = 0.51


def check(params):
    if not 0 < params.alpha < float("inf"):
        raise InvalidInput(
            f"alpha of dts_plus is {params.alpha}: expected a positive number (the theory needs alpha > 0.5)"
        )


def select(state, params, t, rng):
    limit = params.alpha * math.log(t)
    ties = sampled_winners(state, candidates(state, limit), rng)
    first = state.tied[0] if ties == 1 else least_regret(state, ties, rng)
    state.last[0] = first
    return first, second(state, first, limit, rng)


def least_regret(state, ties, rng):
    """The tied candidate of least estimated regret, ties at random."""
    count_all_losses(state, rng)
    estimate_regret(state, ties, rng)
    tied, m = state.tied, 0
    for k in range(ties):
        if state.regret[tied[k]] < state.regret[tied[0]]:
            m = 0
        if state.regret[tied[k]] <= state.regret[tied[0]]:
            tied[m], tied[k] = tied[k], tied[m]
            m += 1
    return tied[choose(m, rng)]


def count_all_losses(state, rng):
    """Draw what is left of the tournament and count every arm's losses."""
    words = len(state.covers)
    for i in range(len(state.losses)):
        for w in range(words):
            if not state.covers[i // LANES, w] >> i % LANES & 1:
                draw_row(state, i, w, rng)
    for i in range(len(state.losses)):
        lost = losses_in_other_rows(state, i)
        for w in range(words):
            lost += ones(state.drawn[i, w] & ~state.beaten[i, w])
        state.losses[i] = lost


def beats(state, i, j):
    """Whether i beat j in the tournament: in the row of one of the two."""
    if state.drawn[i, j // LANES] >> j % LANES & 1:
        return state.beaten[i, j // LANES] >> j % LANES & 1 > 0
    return state.beaten[j, i // LANES] >> i % LANES & 1 == 0


def estimate_regret(state, ties, rng):
    losses, regret = state.losses, state.regret
    regret[:] = -1.0
    for k in range(ties):
        regret[state.tied[k]] = 0.0
    fewest = min(losses)
    for k in range(ties):
        i = state.tied[k]
        for j in range(len(losses)):
            if j == i or (regret[j] >= 0.0 and j < i):  # a pair of two tied arms has one θ
                continue
            cost = (losses[i] + losses[j] - 2 * fewest) / distance(state, i, j, rng)
            regret[i] += cost
            if regret[j] >= 0.0:
                regret[j] += cost


def distance(state, i, j, rng):
    """KL(θ_ij, ½), with θ_ij above ½ if i won the sampled match and below if not."""
    a, b = state.wins[i, j] + 1.0, state.wins[j, i] + 1.0
    theta = draw_above_half(a, b, rng) if beats(state, i, j) else draw_above_half(b, a, rng)
    return distance_from_half(min(max(2.0 * theta - 1.0, 1e-15), 1.0 - 1e-15))
