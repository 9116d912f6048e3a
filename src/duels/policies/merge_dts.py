"""MergeDTS: Li, Markov, de Rijke & Zoghi, TOIS 2020, Algorithm 1, for many arms.

Arms are dealt into batches that take turns. In its turn, a batch drops the arms that are certain to lose to one of its
members; then a sampled tournament chooses the first arm, and the arm sampled weakest against it is the second. Batches
merge when one has a single arm left, and whenever half of the arms are gone. With L = α ln(t + C), i leaves its batch
when some z_ij > L (z as in RUCB); only the pair that has just duelled can have become certain.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import learn
from .kernels import FOREVER, choose, record_lead, remove

NAME = "MergeDTS"
PAPER = "Li, Markov, de Rijke, Zoghi: MergeDTS (ACM TOIS 2020)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
LIVE = "it may stop asking what a verdict needs, unless arms never meet themselves (allow_self=False)"


class Params(NamedTuple):
    alpha: float = 0.262144
    batch: int = 16
    c: float = 400_000.0  # as in the authors' program; the theory's C at K = 136, α = 1.01, δ = 0.01 is 4·10⁶
    delta: float = 0.0  # the probability of error that determines C; 0 means C = c


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    chance: np.ndarray  # (K, K) float64: P(θ_ij > ½)
    mass: np.ndarray  # (K, K) float64: how much a duel changes that probability, see `betas.learn`
    z: np.ndarray  # (K, K) float64: u_ij < ½ exactly when z_ij > L, see `rucb`
    worst: np.ndarray  # (K,) float64: the largest z_ij with j in i's batch
    home: np.ndarray  # (K,) int64: the row of i's batch, −1 before the arms are dealt and once i is out
    batches: np.ndarray  # (⌈K/M⌉, K) int64: the arms of a batch in each row …
    sizes: np.ndarray  # (⌈K/M⌉,) int64: … and their number
    turns: np.ndarray  # (⌈K/M⌉,) int64: the rows in the order in which they take turns …
    left: np.ndarray  # (1,) int64: … and their number; 0 before the arms are dealt
    alive: np.ndarray  # (K,) int64: the remaining arms in ascending order …
    size: np.ndarray  # (1,) int64: … and their number
    stage: np.ndarray  # (1,) int64: S
    beaten: np.ndarray  # (K,) int64: the sampled score of each member of a batch
    explored: np.ndarray  # (1,) int64: the time at which one arm was left; 0 before that
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority
    log_c: float  # ln C
    inverse: float  # 1/C


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of merge_dts is {params.alpha}: expected a positive number")
    if params.batch < 2:
        raise InvalidInput(f"batch of merge_dts is {params.batch}: expected at least 2 arms a batch")
    if not (params.c > 0 and math.isfinite(params.c)):
        raise InvalidInput(f"c of merge_dts is {params.c}: expected a positive number")
    if not 0 <= params.delta < 1:
        raise InvalidInput(f"delta of merge_dts is {params.delta}: expected a chance below 1, or 0 for C = c")
    if params.delta and params.alpha <= 0.5:
        raise InvalidInput(f"alpha of merge_dts is {params.alpha}: delta needs alpha > 0.5, or set c instead of delta")


def init(arms, horizon, params):
    rows = -(-arms // params.batch)
    log_c = log_constant(arms, params)
    return State(
        wins=np.zeros((arms, arms)),
        chance=np.full((arms, arms), 0.5),
        mass=np.full((arms, arms), 0.25),
        z=np.full((arms, arms), -1.0),
        worst=np.full(arms, -1.0),
        home=np.full(arms, -1),
        batches=np.zeros((rows, arms), np.int64),
        sizes=np.zeros(rows, np.int64),
        turns=np.arange(rows),
        left=np.zeros(1, np.int64),
        alive=np.arange(arms),
        size=np.full(1, arms),
        stage=np.ones(1, np.int64),
        beaten=np.zeros(arms, np.int64),
        explored=np.zeros(1, np.int64),
        ahead=np.zeros(arms, np.int64),
        log_c=log_c,
        inverse=math.exp(-log_c),
    )


def log_constant(arms, params):
    """ln C, with C(δ) = ((4α − 1)K²/((2α − 1)δ))^(1/(2α − 1)) if δ is given."""
    if not params.delta:
        return math.log(params.c)
    return math.log((4 * params.alpha - 1) * arms**2 / ((2 * params.alpha - 1) * params.delta)) / (2 * params.alpha - 1)


def select(state, params, t, rng):
    if state.left[0] == 0:
        deal(state, rng)
    if state.left[0] > 1 and state.size[0] << state.stage[0] <= len(state.worst):
        regroup(state, params.batch)
    limit = params.alpha * (state.log_c + math.log(1.0 + t * state.inverse))
    turn = t % state.left[0]
    prune(state, state.turns[turn], limit, rng)
    if state.left[0] > 1 and state.sizes[state.turns[turn]] == 1:
        turn = join_next(state, turn)
    row = state.turns[turn]
    members, size = state.batches[row], state.sizes[row]
    if size == 1:
        if state.explored[0] == 0:
            state.explored[0] = t
        return members[0], members[0]
    first = sampled_winner(state, members, size, rng)
    return first, sampled_weakest(state.wins, members, size, first, rng)


def deal(state, rng):
    """Shuffle the arms and deal them to the batches one by one."""
    arms, rows = len(state.worst), len(state.turns)
    order = state.beaten
    for k in range(arms):
        at = choose(k + 1, rng)
        order[k] = order[at]
        order[at] = k
    for k in range(arms):
        enter(state, k % rows, order[k])
    for row in range(rows):
        find_worst(state, row)
    state.left[0] = rows


def enter(state, row, arm):
    state.batches[row, state.sizes[row]] = arm
    state.sizes[row] += 1
    state.home[arm] = row


def prune(state, row, limit, rng):
    """Arms with some u_ij < ½ leave the batch one by one, at random if there are several; one always stays."""
    while True:
        losers = 0
        for k in range(state.sizes[row]):
            losers += state.worst[state.batches[row, k]] > limit
        if losers == 0:
            return
        n = choose(losers, rng)
        for k in range(state.sizes[row]):
            loser = state.batches[row, k]
            if state.worst[loser] > limit:
                if n == 0:
                    break
                n -= 1
        state.sizes[row] = remove(state.batches[row], state.sizes[row], loser)
        state.size[0] = remove(state.alive, state.size[0], loser)
        state.home[loser] = -1
        find_worst(state, row)


def find_worst(state, row):
    for k in range(state.sizes[row]):
        i = state.batches[row, k]
        state.worst[i] = largest(state.z[i], state.batches[row], state.sizes[row])


def largest(z, members, size):
    most = -1.0
    for k in range(size):
        most = max(most, z[members[k]])
    return most


def join_next(state, turn):
    """The batch joins the one whose turn is next; the turn of the two."""
    row = state.turns[turn]
    state.left[0] = remove(state.turns, state.left[0], row)
    following = turn if turn < state.left[0] else 0
    pour(state, row, state.turns[following])
    return following


def pour(state, row, into):
    for k in range(state.sizes[row]):
        enter(state, into, state.batches[row, k])
    state.sizes[row] = 0
    find_worst(state, into)


def regroup(state, batch):
    """Half of the arms are gone since the last time: large batches take small ones in, up to 3/2 of the batch size."""
    state.stage[0] += 1
    pair_up(state, batch)
    smallest = state.sizes[state.turns[0]]
    for k in range(state.left[0]):
        smallest = min(smallest, state.sizes[state.turns[k]])
    if 2 * smallest < batch:
        pair_up(state, batch)


def pair_up(state, batch):
    turns, sizes = state.turns, state.sizes
    for k in range(1, state.left[0]):  # largest first
        row, at = turns[k], k
        while at > 0 and sizes[turns[at - 1]] < sizes[row]:
            turns[at] = turns[at - 1]
            at -= 1
        turns[at] = row
    kept, small = 0, state.left[0] - 1
    while kept <= small:
        if kept < small and 2 * (sizes[turns[kept]] + sizes[turns[small]]) <= 3 * batch:
            pour(state, turns[small], turns[kept])
            small -= 1
        kept += 1
    state.left[0] = kept


def sampled_winner(state, members, size, rng):
    """The arm that beats the most of its batch in a tournament drawn from the posteriors, ties at random."""
    beaten = state.beaten
    for a in range(size):
        beaten[a] = 0
    for a in range(size):
        chance, won = state.chance[members[a]], 0
        for b in range(a + 1, size):
            beats = rng.random() < chance[members[b]]
            won += beats
            beaten[b] += 1 - beats
        beaten[a] += won
    most, ties = -1, 0
    for a in range(size):
        if beaten[a] > most:
            most, ties = beaten[a], 0
        ties += beaten[a] == most
    n = choose(ties, rng)
    for a in range(size):
        if beaten[a] == most:
            if n == 0:
                break
            n -= 1
    return members[a]


def sampled_weakest(wins, members, size, first, rng):
    """argmin θ_j over the other arms of the batch, θ_j ~ Beta(w_j,first + 1, w_first,j + 1)."""
    weakest, least = first, 2.0
    for k in range(size):
        j = members[k]
        if j != first:
            theta = rng.beta(wins[j, first] + 1.0, wins[first, j] + 1.0)
            if theta < least:
                weakest, least = j, theta
    return weakest


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record_lead(state.wins, state.ahead, i, j, outcome)
    learn(state.wins, state.chance, state.mass, i, j, outcome)
    lead = state.wins[i, j] - state.wins[j, i]
    z = lead * lead / (4.0 * (state.wins[i, j] + state.wins[j, i]))
    set_z(state, i, j, z if lead < 0.0 else -1.0)
    set_z(state, j, i, z if lead > 0.0 else -1.0)


def set_z(state, i, j, z):
    old, row = state.z[i, j], state.home[i]
    state.z[i, j] = z
    if row < 0 or row != state.home[j]:
        return
    if z >= state.worst[i]:
        state.worst[i] = z
    elif old == state.worst[i]:
        state.worst[i] = largest(state.z[i], state.batches[row], state.sizes[row])


def skip(state, params, t):
    return FOREVER


def recommend(state, rng):
    """The remaining arm that beats the most arms, those that left included, by observed majority, ties at random."""
    most, ties = -1, 0
    for k in range(state.size[0]):
        beaten = state.ahead[state.alive[k]]
        if beaten > most:
            most, ties = beaten, 0
        ties += beaten == most
    n = choose(ties, rng)
    for k in range(state.size[0]):
        if state.ahead[state.alive[k]] == most:
            if n == 0:
                break
            n -= 1
    return state.alive[k]


def explored(state):
    return state.explored[0]


def bounds(state, params, t):
    """Return the intervals that decide which arms leave, as two (K, K) arrays; an unplayed pair's is [−1, 2]."""
    n = state.wins + state.wins.T
    played = np.maximum(n, 1.0)
    limit = params.alpha * (state.log_c + math.log(1.0 + t * state.inverse))
    upper = np.where(n > 0, state.wins / played + np.sqrt(limit / played), 2.0)
    np.fill_diagonal(upper, 0.5)
    return 1.0 - upper.T, upper
