"""KL-RUCB: RUCB (see `rucb`) with the bounds of KL-UCB instead of its own, after the remark in Zoghi et al. (2014).

u_ij is the largest q with n·kl(μ_ij, q) ≤ 2α ln t. By Pinsker's inequality it never exceeds RUCB's own bound, and
u_ij < ½ holds exactly when z_ij > 2α ln t, where z_ij = n·kl(μ_ij, ½) if i is behind j and −1 if not: the pool and the
skipping are RUCB's. u is concave in ln t, so a tangent drawn at any earlier time bounds it from above; at each step
it is computed only for the few arms whose tangent reaches the largest u.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .divergences import kl, kl_upper
from .kernels import choose, choose_largest, record_lead
from .rucb import champion, first_time, refill, set_z, smallest_against

NAME = "KL-RUCB"
PAPER = "Zoghi, Whiteson, Munos, de Rijke: Relative Upper Confidence Bound (ICML 2014), remark on KL-UCB"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
LIVE_TIES = "skipped"  # in a live study; it takes fewer answers

STALE = 3.0  # above every u: marks the tangent of a pair that has dueled since
SLACK = 1e-9  # more than the rounding error of a tangent


class Params(NamedTuple):
    alpha: float = 0.51


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    base: np.ndarray  # (K, K) float64: u_jc ≤ base[c, j] + slope[c, j] · 2α ln t; 2 before the first duel, −1 for c
    slope: np.ndarray  # (K, K) float64
    score: np.ndarray  # (K,) float64: at this step, u_jc where it was computed, else the tangent's bound on it
    exact: np.ndarray  # (K,) bool: whether it was computed
    z: np.ndarray  # (K, K) float64: z_ij
    worst: np.ndarray  # (K,) float64: max_j z_ij; arm i is a potential champion while worst[i] ≤ 2α ln t
    pool: np.ndarray  # (K,) int64: the potential champions in ascending order …
    size: np.ndarray  # (1,) int64: … and their number
    limits: np.ndarray  # (2,) float64: the pool is valid from the first 2α ln t up to the second, when an arm returns
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority


def check(params):
    if not 0 < params.alpha < math.inf:
        raise InvalidInput(
            f"alpha of kl_rucb is {params.alpha}: expected a positive number (the theory needs alpha > 0.5)"
        )
    if params.alpha <= 0.5:
        warnings.warn(f"kl_rucb with alpha = {params.alpha:g}: Lemma 1 needs alpha > 0.5", stacklevel=4)


def init(arms, horizon, params):
    base = np.full((arms, arms), 2.0)
    np.fill_diagonal(base, -1.0)
    return State(
        wins=np.zeros((arms, arms)),
        base=base,
        slope=np.zeros((arms, arms)),
        score=np.zeros(arms),
        exact=np.zeros(arms, np.bool_),
        z=np.full((arms, arms), -1.0),
        worst=np.full(arms, -1.0),
        pool=np.arange(arms),
        size=np.full(1, arms),
        limits=np.zeros(2),
        ahead=np.zeros(arms, np.int64),
    )


def select(state, params, t, rng):
    limit = 2.0 * params.alpha * math.log(t)
    if limit >= state.limits[1] or limit < state.limits[0]:
        refill(state, limit)
    c = champion(state, rng)
    # Only the last potential champion can be certain to beat all others.
    if state.size[0] == 1 and smallest_against(state.z, c) > limit:
        return c, c
    return c, challenger(state, highest(state, c, limit), rng)


def highest(state, c, limit):
    """The largest u_jc, and in `score` every u_jc that is equal to it."""
    base, slope, score, exact = state.base[c], state.slope[c], state.score, state.exact
    for j in range(len(base)):
        score[j] = base[j] + slope[j] * limit
        exact[j] = slope[j] == 0.0 and base[j] != STALE
    top = -1.0
    while True:
        best, at = -1.0, -1
        for j in range(len(score)):
            if exact[j]:
                top = max(top, score[j])
            elif score[j] > best:
                best, at = score[j], j
        if best + SLACK < top or at < 0:
            return top
        compute(state, c, at, limit)


def compute(state, c, j, limit):
    """u_jc at this step, and its tangent for the steps to come."""
    n = state.wins[j, c] + state.wins[c, j]
    mean = state.wins[j, c] / n
    u = kl_upper(mean, n, limit)
    state.score[j], state.exact[j] = u, True
    if mean == 1.0:
        state.base[c, j], state.slope[c, j] = 1.0, 0.0
    elif u - mean > 1e-6 and u < 1.0:
        slope = u * (1.0 - u) / (n * (u - mean))
        state.base[c, j], state.slope[c, j] = u - slope * limit, slope
    else:  # too steep or too flat for a tangent
        state.base[c, j], state.slope[c, j] = STALE, 0.0


def challenger(state, top, rng):
    """The arm with the largest u_jc other than c, ties at random."""
    ties, d = 0, 0
    for j in range(len(state.score)):
        tied = state.score[j] == top and state.exact[j]
        ties += tied
        d += tied * j
    if ties == 1:
        return d
    n = choose(ties, rng)
    for j in range(len(state.score)):
        if state.score[j] == top and state.exact[j]:
            if n == 0:
                break
            n -= 1
    return j


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record_lead(state.wins, state.ahead, i, j, outcome)
    won, lost = state.wins[i, j], state.wins[j, i]
    n = won + lost
    state.base[i, j] = state.base[j, i] = STALE
    state.slope[i, j] = state.slope[j, i] = 0.0
    z = n * kl(min(won, lost) / n, 0.5)
    set_z(state, i, j, z if won < lost else -1.0)
    set_z(state, j, i, z if won > lost else -1.0)


def skip(state, params, t):
    return first_time(smallest_against(state.z, state.pool[0]), 2.0 * params.alpha)


def recommend(state, rng):
    return choose_largest(state.ahead, rng)


def bounds(state, params, t):
    """Return the intervals [l_ij, u_ij] as two (K, K) arrays; an unplayed pair's is [−1, 2]."""
    budget = 2.0 * params.alpha * math.log(t)
    upper = np.full(state.wins.shape, 2.0)
    for i, j in np.argwhere(state.wins + state.wins.T > 0):
        n = state.wins[i, j] + state.wins[j, i]
        upper[i, j] = kl_upper(state.wins[i, j] / n, n, budget)
    np.fill_diagonal(upper, 0.5)
    return 1.0 - upper.T, upper
