"""ECW-RMED: Komiyama, Honda & Nakagawa, ICML 2016, the efficient variant of Copeland Winners RMED.

L_i is the number of arms that beat i by observed majority; the arms with the fewest are the empirical Copeland winners.
It is certain that i is one when (a) for every arm that i beats, the evidence n·kl(μ, ½) is at least ln t, and (b) for
every other arm j, the L_j − L_i + 1 majorities against it with the least evidence add up to ln t: that many must be
wrong for j to be better. Pairs that need more duels for the cheapest way to this certainty take turns in a loop.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .divergences import evidence
from .kernels import FOREVER, choose, record
from .rmed1 import pair_short_of, shuffle, smallest
from .rmed2 import log_log

NAME = "ECW-RMED"
PAPER = "Komiyama, Honda, Nakagawa: Copeland Dueling Bandit Problem (ICML 2016), ECW-RMED"
NEEDS_HORIZON = False
ASSUMES = "nothing"


class Params(NamedTuple):
    alpha: float = 3.0
    beta: float = 0.01


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    told: np.ndarray  # (K, K) float64: n·kl(μ_ij, ½), the same for ij and ji
    margin: np.ndarray  # (K, K) float64: |μ_ij − ½|; 1 before the first duel and on the diagonal
    nearest: np.ndarray  # (K,) float64: the smallest margin of row i
    losses: np.ndarray  # (K,) int64: L_i
    order: np.ndarray  # (K,) int64: the arms in the fixed order, drawn at the first step; −1 before
    cursor: np.ndarray  # (2,) int64: the places in the order of the pair that exploration looks at next
    met: np.ndarray  # (1,) float64: every pair has met at least this often
    now: np.ndarray  # (K(K+1)/2, 2) int64: L_C, the pairs of this loop, …
    later: np.ndarray  # (K(K+1)/2, 2) int64: L_N, those of the next, …
    counts: np.ndarray  # (2,) int64: … and their number
    waiting: np.ndarray  # (K, K) bool: L_R, pairs of this loop that have not had their turn; i ≤ j
    listed: np.ndarray  # (K, K) bool: whether a pair is in L_N; i ≤ j
    turn: np.ndarray  # (1,) int64: the place in L_C of the current pair
    open: np.ndarray  # (1,) bool: whether that pair was drawn and its consequences are still to be computed
    stale: np.ndarray  # (K,) bool: whether the fields below must be recomputed for j
    depth: np.ndarray  # (K, K) float64: the least information in (a) and (b) of arm i as the winner, against j
    price: np.ndarray  # (K, K) float64: the least regret, over ln t, that this information costs
    planned: np.ndarray  # (K, K) int64: planned[j]: the arms that are to duel j, which they beat, for the champion, …
    rate: np.ndarray  # (K, K) float64: … how often, over ln t, …
    plans: np.ndarray  # (K,) int64: … and their number
    champion: np.ndarray  # (1,) int64: the winner that is cheapest to make certain; −1 before that
    sure: np.ndarray  # (1,) int64: the winner that is most certain …
    strength: np.ndarray  # (1,) float64: … and the evidence for it
    key: np.ndarray  # (K,) float64: scratch space for sorting
    rank: np.ndarray  # (K,) int64: scratch space for sorting


def check(params):
    for name in ("alpha", "beta"):
        value = getattr(params, name)
        if not 0 <= value < math.inf:
            raise InvalidInput(f"{name} of ecw_rmed is {value}: expected 0 or a positive number")


def init(arms, horizon, params):
    square, pairs = (arms, arms), arms * (arms + 1) // 2
    return State(
        wins=np.zeros(square),
        told=np.zeros(square),
        margin=np.ones(square),
        nearest=np.ones(arms),
        losses=np.zeros(arms, np.int64),
        order=np.full(arms, -1),
        cursor=np.array([0, 1]),
        met=np.zeros(1),
        now=np.zeros((pairs, 2), np.int64),
        later=np.zeros((pairs, 2), np.int64),
        counts=np.zeros(2, np.int64),
        waiting=np.zeros(square, np.bool_),
        listed=np.zeros(square, np.bool_),
        turn=np.zeros(1, np.int64),
        open=np.zeros(1, np.bool_),
        stale=np.ones(arms, np.bool_),
        depth=np.full(square, np.inf),
        price=np.zeros(square),
        planned=np.zeros(square, np.int64),
        rate=np.zeros(square),
        plans=np.zeros(arms, np.int64),
        champion=np.full(1, -1),
        sure=np.full(1, -1),
        strength=np.zeros(1),
        key=np.zeros(arms),
        rank=np.zeros(arms, np.int64),
    )


def select(state, params, t, rng):
    if state.order[0] < 0:
        shuffle(state.order, rng)
        list_all_pairs(state)
    if state.open[0]:
        end_turn(state, t - 1)
    if state.turn[0] == state.counts[0]:
        i, j = pair_to_explore(state, params, t)
        if i >= 0:
            return i, j
        begin_loop(state)
    state.open[0] = True
    return state.now[state.turn[0], 0], state.now[state.turn[0], 1]


def list_all_pairs(state):
    for a in range(len(state.order)):
        for b in range(a + 1, len(state.order)):
            enlist(state, state.order[a], state.order[b])


def enlist(state, i, j):
    """Add a pair to the next loop, unless it is there or has its turn still to come in this one."""
    i, j = min(i, j), max(i, j)
    if not (state.listed[i, j] or state.waiting[i, j]):
        state.listed[i, j] = True
        k = state.counts[1]
        state.later[k, 0], state.later[k, 1] = i, j
        state.counts[1] += 1


def begin_loop(state):
    for k in range(state.counts[1]):
        i, j = state.later[k, 0], state.later[k, 1]
        state.now[k, 0], state.now[k, 1] = i, j
        state.waiting[i, j], state.listed[i, j] = True, False
    state.counts[0], state.counts[1] = state.counts[1], 0
    state.turn[0] = 0


def pair_to_explore(state, params, t):
    """A pair that met fewer than α √ln t times or, failing that, is within β / ln ln t of ½; (−1, −1) if none is."""
    i, j = pair_short_of(state, max(params.alpha * math.sqrt(math.log(t)), 1.0))
    near = params.beta / max(log_log(t), 1.0)
    if i >= 0 or smallest(state.nearest) >= near:
        return i, j
    for a in range(len(state.order)):
        i = state.order[a]
        if state.nearest[i] < near:
            break
    for b in range(len(state.order)):
        j = state.order[b]
        if state.margin[i, j] < near:
            break
    return i, j


def end_turn(state, t):
    """What follows the duel of step t: the pairs that lack duels go on the list, and always the winner's self-duel."""
    state.open[0] = False
    state.waiting[state.now[state.turn[0], 0], state.now[state.turn[0], 1]] = False
    state.turn[0] += 1
    refresh(state)
    log_t = math.log(t)
    if state.strength[0] >= log_t:
        enlist(state, state.sure[0], state.sure[0])
        return
    for a in range(len(state.order)):
        j = state.order[a]
        for k in range(state.plans[j]):
            i = state.planned[j, k]
            if state.rate[j, k] * log_t > meetings(state, i, j):
                enlist(state, i, j)
    enlist(state, state.champion[0], state.champion[0])


def refresh(state):
    """Compute anew what the last duels changed: who is certain, who is cheapest to make certain, and how."""
    lowest, changed = min_losses(state.losses), False
    for j in range(len(state.stale)):
        changed |= state.stale[j]
        if state.stale[j]:
            for i in range(len(state.losses)):
                if state.losses[i] == lowest:
                    solve(state, i, j, lowest, False)
    if not changed:
        return
    before = state.champion[0]
    choose_winners(state, lowest)
    for j in range(len(state.stale)):
        if state.stale[j] or state.champion[0] != before:
            solve(state, state.champion[0], j, lowest, True)
        state.stale[j] = False


def min_losses(losses):
    lowest = losses[0]
    for i in range(len(losses)):
        lowest = min(lowest, losses[i])
    return lowest


def choose_winners(state, lowest):
    """The surest and the cheapest of the empirical Copeland winners; the first in the fixed order among equals."""
    state.strength[0], cheapest = -1.0, math.inf
    for a in range(len(state.order)):
        i = state.order[a]
        if state.losses[i] == lowest:
            depth, price = math.inf, 0.0
            for j in range(len(state.order)):
                depth = min(depth, state.depth[i, j])
                price += state.price[i, j]
            if depth > state.strength[0]:
                state.sure[0], state.strength[0] = i, depth
            if price < cheapest:
                state.champion[0], cheapest = i, price


def solve(state, i, j, lowest, write):
    """Conditions (a) and (b) for i as the winner, against j; written into the plan if i is the champion."""
    depth, price = math.inf, 0.0
    if write:
        state.plans[j] = 0
    if state.wins[i, j] > state.wins[j, i]:
        depth, price = state.told[i, j], cost(state, i, j, lowest)
        if write:
            plan(state, i, j, 1.0)
    size = superiors(state, i, j) if i != j else 0
    needed = state.losses[j] - lowest + 1
    if size >= needed:
        sort_by_told(state, j, size)
        least = 0.0
        for k in range(needed):
            least += state.key[k]
        depth = min(depth, least)
        price += spread(state, j, size, needed, lowest, write)
    state.depth[i, j], state.price[i, j] = depth, price


def superiors(state, i, j):
    """The arms other than i that beat j, into `rank` in the fixed order; how many they are."""
    size = 0
    for a in range(len(state.order)):
        k = state.order[a]
        state.rank[size] = k
        size += k != i and state.wins[k, j] > state.wins[j, k]
    return size


def spread(state, j, size, needed, lowest, write):
    """The cheapest information on the superiors of j whose `needed` smallest parts add up to 1, as an amount of regret.

    An optimum shares equally among the h cheapest: with size − needed of them left out, each part is 1/(h − left out).
    """
    sort_by_cost(state, j, size, lowest)
    out = size - needed
    total, best, h_best = 0.0, math.inf, size
    for h in range(1, size + 1):
        total += state.key[h - 1]
        if h > out and total / (h - out) < best:
            best, h_best = total / (h - out), h
    if write:
        for k in range(h_best):
            plan(state, state.rank[k], j, 1.0 / (h_best - out))
    return best


def plan(state, i, j, part):
    """Let i duel j until that part of ln t is told: q = part / kl(μ_ij, ½)."""
    k = state.plans[j]
    state.planned[j, k], state.rate[j, k] = i, part * meetings(state, i, j) / state.told[i, j]
    state.plans[j] += 1


def sort_by_told(state, j, size):
    for k in range(size):
        insert(state, k, state.told[state.rank[k], j])


def sort_by_cost(state, j, size, lowest):
    for k in range(size):
        insert(state, k, cost(state, state.rank[k], j, lowest))


def insert(state, k, value):
    """Put the k-th of `rank` among those before it, which are sorted; equals keep their order."""
    arm = state.rank[k]
    while k > 0 and state.key[k - 1] > value:
        state.key[k], state.rank[k] = state.key[k - 1], state.rank[k - 1]
        k -= 1
    state.key[k], state.rank[k] = value, arm


def cost(state, i, j, lowest):
    """The Copeland regret of the duels of i and j that tell 1, r_ij / kl(μ_ij, ½)."""
    regret = (state.losses[i] + state.losses[j] - 2 * lowest) / (2.0 * (len(state.losses) - 1))
    return regret * meetings(state, i, j) / state.told[i, j]


def meetings(state, i, j):
    return state.wins[i, j] + state.wins[j, i]


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    before = sign(state.wins[i, j] - state.wins[j, i])
    record(state.wins, i, j, outcome)
    won, lost = state.wins[i, j], state.wins[j, i]
    n = won + lost
    state.told[i, j] = state.told[j, i] = evidence(won, lost)
    state.margin[i, j] = state.margin[j, i] = abs(won - lost) / (2.0 * n)
    state.nearest[i], state.nearest[j] = smallest(state.margin[i]), smallest(state.margin[j])
    after = sign(won - lost)
    if after == before:
        state.stale[i if after < 0 else j] = True
    else:
        state.losses[i] += int(after < 0) - int(before < 0)
        state.losses[j] += int(after > 0) - int(before > 0)
        state.stale[:] = True


def sign(x):
    return 1 if x > 0.0 else -1 if x < 0.0 else 0


def skip(state, params, t):
    """While the surest winner's self-duel is alone in the loop: until it is sure no more, or pairs need exploring."""
    arm = state.now[state.turn[0], 0]
    for j in range(len(state.stale)):
        if state.stale[j]:
            return t + 1
    if state.counts[0] > 1 or arm != state.sure[0] or state.strength[0] < math.log(t):
        return t + 1
    explores = first_short(state.met[0], params.alpha)
    return min(first_beyond(state.strength[0]) + 1, max(explores, t + 1))


def first_beyond(strength):
    """The first t with strength < ln t."""
    if strength > 36.0:  # past 4·10¹⁵, and before exp or int64 overflows
        return FOREVER
    t = max(math.ceil(math.exp(strength)), 1)
    while strength >= math.log(t):
        t += 1
    while t > 1 and strength < math.log(t - 1):
        t -= 1
    return t


def first_short(met, alpha):
    """The first t with met < α √ln t."""
    if met >= 6.0 * alpha:  # past 4·10¹⁵
        return FOREVER
    t = max(math.ceil(math.exp((met / alpha) * (met / alpha))), 1)
    while met >= alpha * math.sqrt(math.log(t)):
        t += 1
    while t > 1 and met < alpha * math.sqrt(math.log(t - 1)):
        t -= 1
    return t


def recommend(state, rng):
    """The surest winner while it is one that the fewest beat by observed majority, else any of these at random."""
    lowest, ties = min_losses(state.losses), 0
    if state.sure[0] >= 0 and state.losses[state.sure[0]] == lowest:
        return state.sure[0]
    for i in range(len(state.losses)):
        ties += state.losses[i] == lowest
    n = choose(ties, rng)
    for i in range(len(state.losses)):
        if state.losses[i] == lowest:
            if n == 0:
                break
            n -= 1
    return i
