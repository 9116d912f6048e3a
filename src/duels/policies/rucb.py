"""RUCB: Zoghi, Whiteson, Munos & de Rijke, ICML 2014, Algorithm 1 (its line numbers are on the right).

With L = α ln t and D = w_ji − w_ij, u_ij < ½ holds exactly when z_ij > L, where z_ij = D²/4n if D > 0 and −1 if not.
z_ij changes only when i and j duel, so the pool of potential champions rarely changes and a step costs O(K). While one
arm is certain to be best, its self-duels are skipped until α ln t reaches the smallest z.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import FOREVER, choose, choose_largest, record_lead

NAME = "RUCB"
PAPER = "Zoghi, Whiteson, Munos, de Rijke: Relative Upper Confidence Bound (ICML 2014)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
LIVE_TIES = "skipped"  # in a live study; it takes fewer answers
THEORY_ALPHA = "alpha"  # the parameter that is α in the bounds of duels.theory


class Params(NamedTuple):
    alpha: float = 0.51
    variant: str = "seed"
    unplayed: float = 2.0  # u_ij of a pair that never met


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    share: np.ndarray  # (K, K) float64: share[c, j] = w_jc / n; `unplayed` before the first duel, −1 on the diagonal
    width: np.ndarray  # (K, K) float64: 1 / √n; 0 before the first duel and on the diagonal
    z: np.ndarray  # (K, K) float64: z_ij
    worst: np.ndarray  # (K,) float64: max_j z_ij; arm i is a potential champion while worst[i] ≤ L
    pool: np.ndarray  # (K,) int64: the potential champions in ascending order …
    size: np.ndarray  # (1,) int64: … and their number
    limits: np.ndarray  # (2,) float64: the pool is valid from the first L up to the second, at which an arm returns
    best: np.ndarray  # (1,) int64: the hypothesised best arm of the ICML variant, −1 for none
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority
    icml: bool


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(
            f"alpha of rucb is {params.alpha}: expected a positive number (the theory needs alpha > 0.5)"
        )
    if params.variant not in ("seed", "icml"):
        raise InvalidInput(
            f"variant of rucb is {params.variant!r}: expected 'seed' (Algorithm 1) or 'icml' (proceedings)"
        )
    check_unplayed("rucb", params.unplayed)
    if params.alpha <= 0.5:
        warnings.warn(f"rucb with alpha = {params.alpha:g}: its regret bounds need alpha > 0.5", stacklevel=4)


def check_unplayed(name, unplayed):
    if not 0.5 < unplayed < math.inf:
        raise InvalidInput(
            f"unplayed of {name} is {unplayed}: expected a number above 0.5, the upper bound of a pair that never met"
        )


def init(arms, horizon, params):
    share = np.full((arms, arms), params.unplayed)  # x/0 := 1 makes u = 1 + √1 = 2
    np.fill_diagonal(share, -1.0)
    return State(
        wins=np.zeros((arms, arms)),  # 1
        share=share,
        width=np.zeros((arms, arms)),
        z=np.full((arms, arms), -1.0),
        worst=np.full(arms, -1.0),
        pool=np.arange(arms),
        size=np.full(1, arms),
        limits=np.zeros(2),
        best=np.full(1, -1),
        ahead=np.zeros(arms, np.int64),
        icml=params.variant == "icml",
    )


def select(state, params, t, rng):
    limit = params.alpha * math.log(t)
    if limit >= state.limits[1] or limit < state.limits[0]:
        refill(state, limit)
    c = champion_icml(state, rng) if state.icml else champion(state, rng)  # 5
    bonus = math.sqrt(limit)
    share, width = state.share[c], state.width[c]
    top = highest(share, width, bonus)
    # A score well above ½ rules out a self-duel. Otherwise z decides it.
    if top < 0.500001 and smallest_against(state.z, c) > limit:
        return c, c
    return c, challenger(share, width, bonus, top, rng)  # 6


def refill(state, limit):
    """The pool: every arm with no u_ij < ½; it holds until L reaches the worst of some arm outside."""
    m = 0
    returns = math.inf
    for i in range(len(state.worst)):
        state.pool[m] = i
        if state.worst[i] <= limit:
            m += 1
        else:
            returns = min(returns, state.worst[i])
    state.size[0] = m
    state.limits[0], state.limits[1] = limit, returns


def champion(state, rng):
    m = state.size[0]
    if m == 0:
        return choose(len(state.worst), rng)
    return state.pool[choose(m, rng)]


def champion_icml(state, rng):
    m, pool = state.size[0], state.pool
    best = state.best[0]
    place = -1
    for k in range(m):
        if pool[k] == best:
            place = k
    if place < 0:
        state.best[0] = -1
    if m == 1:
        state.best[0] = pool[0]
        return pool[0]
    if m == 0 or place < 0:
        return champion(state, rng)
    if rng.random() < 0.5:
        return best
    k = choose(m - 1, rng)
    return pool[k + 1] if k >= place else pool[k]


def highest(share, width, bonus):
    # Four independent maxima: each comparison of a single one would wait for the previous one.
    a = b = c = d = 0.0
    whole = len(share) // 4 * 4
    for j in range(0, whole, 4):
        a = max(a, share[j] + bonus * width[j])
        b = max(b, share[j + 1] + bonus * width[j + 1])
        c = max(c, share[j + 2] + bonus * width[j + 2])
        d = max(d, share[j + 3] + bonus * width[j + 3])
    top = max(max(a, b), max(c, d))
    for j in range(whole, len(share)):
        top = max(top, share[j] + bonus * width[j])
    return top


def challenger(share, width, bonus, top, rng):
    """The arm with the largest u_jc other than c, ties at random."""
    m = 0
    d = 0
    for j in range(len(share)):
        tied = share[j] + bonus * width[j] == top
        m += tied
        d += tied * j
    if m == 1:
        return d
    n = choose(m, rng)
    for j in range(len(share)):
        if share[j] + bonus * width[j] == top:
            if n == 0:
                break
            n -= 1
    return j


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record_lead(state.wins, state.ahead, i, j, outcome)  # 7
    won, lost = state.wins[i, j], state.wins[j, i]
    n = won + lost
    state.share[i, j] = lost / n
    state.share[j, i] = won / n
    state.width[i, j] = state.width[j, i] = 1.0 / math.sqrt(n)
    z = (won - lost) * (won - lost) / (4.0 * n)
    set_z(state, i, j, z if won < lost else -1.0)
    set_z(state, j, i, z if won > lost else -1.0)


def set_z(state, i, j, z):
    old, worst = state.z[i, j], state.worst[i]
    state.z[i, j] = z
    new = worst
    if z >= worst:
        new = z
    elif old == worst:
        new = largest(state.z[i])
    if new != worst:
        state.worst[i] = new
        stays_in = max(new, worst) <= state.limits[0]
        stays_out = new >= state.limits[1] and worst > state.limits[1]
        if not (stays_in or stays_out):
            state.limits[1] = 0.0  # the pool is rebuilt at the next step


def largest(values):
    most = values[0]
    for k in range(len(values)):
        most = max(most, values[k])
    return most


def smallest_against(z, c):
    """min_j z_jc: c duels itself while it is above L."""
    least = math.inf
    for j in range(len(z)):
        if j != c:
            least = min(least, z[j, c])
    return least


def skip(state, params, t):
    return first_time(smallest_against(state.z, state.pool[0]), params.alpha)


def first_time(z, alpha):
    """The first t with α ln t ≥ z, by the very predicate that `select` uses."""
    if z / alpha > 36.0:  # past 4·10¹⁵, and before exp or int64 overflows
        return FOREVER
    t = math.ceil(math.exp(z / alpha))
    while alpha * math.log(t) < z:
        t += 1
    while alpha * math.log(t - 1) >= z:
        t -= 1
    return t


def recommend(state, rng):
    return choose_largest(state.ahead, rng)


def bounds(state, params, t):
    """Return the intervals [l_ij, u_ij] of Lemma 1 as two (K, K) arrays; an unplayed pair's is [−1, 2] by default."""
    return intervals(state.wins, params.alpha * math.log(t), params.unplayed)


def intervals(wins, limit, unplayed):
    n = wins + wins.T
    played = np.maximum(n, 1.0)
    upper = np.where(n > 0, wins / played + np.sqrt(limit / played), unplayed)  # 3
    np.fill_diagonal(upper, 0.5)  # 4
    return 1.0 - upper.T, upper
