"""RCS: Zoghi, Whiteson, de Rijke & Munos, WSDM 2014, Algorithm 1: Relative Confidence Sampling.

A tournament sampled from the posteriors Beta(w_ij + 1, w_ji + 1) chooses the champion, upper confidence bounds choose
its challenger as in RUCB (with its z and its `x/0 := 1`). Only whether a sampled θ_ij exceeds ½ matters, and an arm
that beats all others is found by one pass that keeps the winner of each match: at most two coin tosses per arm.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import learn
from .kernels import choose, choose_largest, record_lead
from .rucb import bounds as bounds
from .rucb import challenger, champion, check_unplayed, highest, refill, set_z, smallest_against

NAME = "RCS"
PAPER = "Zoghi, Whiteson, de Rijke, Munos: Relative Confidence Sampling (WSDM 2014)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
LIVE_TIES = "skipped"  # in a live study; it takes fewer answers


class Params(NamedTuple):
    alpha: float = 0.51
    fallback: str = "crowned"
    unplayed: float = 2.0  # u_ij of a pair that never met


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    chance: np.ndarray  # (K, K) float64: P(θ_ij > ½); 1 on the diagonal
    mass: np.ndarray  # (K, K) float64: how much a duel changes that probability, see `betas.learn`
    share: np.ndarray  # (K, K) float64: share[c, j] = w_jc / n; `unplayed` before the first duel, −1 on the diagonal
    width: np.ndarray  # (K, K) float64: 1 / √n; 0 before the first duel and on the diagonal
    z: np.ndarray  # (K, K) float64: u_ij < ½ exactly when z_ij > α ln t, see `rucb`
    worst: np.ndarray  # (K,) float64: max_j z_ij …
    pool: np.ndarray  # (K,) int64: … RUCB's potential champions …
    size: np.ndarray  # (1,) int64: … their number …
    limits: np.ndarray  # (2,) float64: … and the range of α ln t for which the pool is valid
    crowned: np.ndarray  # (K,) int64: how often an arm has been champion
    last: np.ndarray  # (1,) int64: the last arm that won a sampled tournament, with which the next search starts
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority
    pooled: bool


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of rcs is {params.alpha}: expected a positive number (the paper has alpha > 0.5)")
    if params.fallback not in ("crowned", "pool"):
        raise InvalidInput(
            f"fallback of rcs is {params.fallback!r}: expected 'crowned' (the arm that was champion least often) or "
            "'pool' (one of RUCB's potential champions)"
        )
    check_unplayed("rcs", params.unplayed)


def init(arms, horizon, params):
    share = np.full((arms, arms), params.unplayed)  # x/0 := 1 makes u = 1 + √1 = 2
    np.fill_diagonal(share, -1.0)
    chance = np.full((arms, arms), 0.5)
    np.fill_diagonal(chance, 1.0)
    return State(
        wins=np.zeros((arms, arms)),
        chance=chance,
        mass=np.full((arms, arms), 0.25),
        share=share,
        width=np.zeros((arms, arms)),
        z=np.full((arms, arms), -1.0),
        worst=np.full(arms, -1.0),
        pool=np.arange(arms),
        size=np.full(1, arms),
        limits=np.zeros(2),
        crowned=np.zeros(arms, np.int64),
        last=np.zeros(1, np.int64),
        ahead=np.zeros(arms, np.int64),
        pooled=params.fallback == "pool",
    )


def select(state, params, t, rng):
    c = condorcet_winner(state.chance, state.last[0], rng)
    limit = params.alpha * math.log(t)
    if c >= 0:
        state.last[0] = c
    else:
        c = potential_champion(state, limit, rng) if state.pooled else least_crowned(state.crowned, rng)
    state.crowned[c] += 1
    bonus = math.sqrt(limit)
    share, width = state.share[c], state.width[c]
    top = highest(share, width, bonus)
    if top < 0.500001 and smallest_against(state.z, c) > limit:  # as in RUCB: z alone decides a self-duel
        return c, c
    return c, challenger(share, width, bonus, top, rng)


def condorcet_winner(chance, first, rng):
    """The arm that beats all others in a tournament drawn pair by pair, −1 if there is none; `first` plays first.

    Whoever wins a match stays on. Only the arm left at the end can have won all, and it then meets those it has not
    met: the ones before it but for the one it replaced. So no match is drawn twice.
    """
    stays, replaced, since = first, first, -1
    for j in range(len(chance)):
        if j != first and rng.random() >= chance[stays, j]:
            replaced, stays, since = stays, j, j
    if since < 0:
        return stays
    if replaced != first and rng.random() >= chance[stays, first]:
        return -1
    for j in range(since):
        if j != first and j != replaced and rng.random() >= chance[stays, j]:
            return -1
    return stays


def potential_champion(state, limit, rng):
    """RUCB's champion: a random arm of those with no u_ij < ½, of all if there are none."""
    if limit >= state.limits[1] or limit < state.limits[0]:
        refill(state, limit)
    return champion(state, rng)


def least_crowned(crowned, rng):
    least, ties = crowned[0], 0
    for i in range(len(crowned)):
        if crowned[i] < least:
            least, ties = crowned[i], 0
        ties += crowned[i] == least
    n = choose(ties, rng)
    for i in range(len(crowned)):
        if crowned[i] == least:
            if n == 0:
                break
            n -= 1
    return i


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record_lead(state.wins, state.ahead, i, j, outcome)
    learn(state.wins, state.chance, state.mass, i, j, outcome)
    won, lost = state.wins[i, j], state.wins[j, i]
    n = won + lost
    state.share[i, j] = lost / n
    state.share[j, i] = won / n
    state.width[i, j] = state.width[j, i] = 1.0 / math.sqrt(n)
    z = (won - lost) * (won - lost) / (4.0 * n)
    set_z(state, i, j, z if won < lost else -1.0)
    set_z(state, j, i, z if won > lost else -1.0)


def recommend(state, rng):
    return choose_largest(state.ahead, rng)
