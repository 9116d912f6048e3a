"""MergeRUCB: Zoghi, Whiteson & de Rijke, WSDM 2015, Algorithm 1.

Arms are compared only within small batches. An arm leaves its batch once it is certain to lose to a member of it; when
half of the arms are gone, small batches are merged with large ones. u_ij < ½ holds exactly when z_ij > α ln(t + C), as
in `rucb`; only the pair that has just duelled can have become certain, so a step costs only the size of a batch.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import FOREVER, choose, record_lead, remove
from .rmed1 import shuffle

NAME = "MergeRUCB"
PAPER = "Zoghi, Whiteson, de Rijke: MergeRUCB: A Method for Large-Scale Online Ranker Evaluation (WSDM 2015)"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
LIVE = "it may stop asking what a verdict needs, unless arms never meet themselves (allow_self=False)"


class Params(NamedTuple):
    alpha: float = 1.01
    delta: float = 0.01
    batch: int = 4  # p, the initial number of arms in a batch


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    batches: np.ndarray  # (⌈K/p⌉, 3p/2) int64: the arms of each batch in ascending order …
    sizes: np.ndarray  # (⌈K/p⌉,) int64: … and their number
    number: np.ndarray  # (1,) int64: how many batches there are, 0 before the first step
    place: np.ndarray  # (K,) int64: the batch an arm is in, −1 once it left
    turn: np.ndarray  # (1,) int64: the batch whose turn is next
    left: np.ndarray  # (1,) int64: how many arms remain
    stage: np.ndarray  # (1,) int64: S, counted from 1
    due: np.ndarray  # (1,) bool: whether batches are merged at the next step, where they can be ordered at random
    explored: np.ndarray  # (1,) int64: the time at which one arm was left; 0 before that
    order: np.ndarray  # (K,) int64: scratch space for an order of arms or batches
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority
    log_c: float  # ln C(δ) …
    c: float  # … and C(δ), infinite if a float cannot hold it


def check(params):
    if not 0.5 < params.alpha < math.inf:
        raise InvalidInput(f"alpha of merge_rucb is {params.alpha}: expected a number above 0.5")
    if not 0 < params.delta < 1:
        raise InvalidInput(f"delta of merge_rucb is {params.delta}: expected a chance between 0 and 1")
    if params.batch < 2:
        raise InvalidInput(f"batch of merge_rucb is {params.batch}: expected 2 arms or more (its theory needs 4)")


def init(arms, horizon, params):
    batches = -(-arms // params.batch)
    log_c = math.log((4 * params.alpha - 1) * arms**2 / ((2 * params.alpha - 1) * params.delta)) / (
        2 * params.alpha - 1
    )
    return State(
        wins=np.zeros((arms, arms)),
        batches=np.full((batches, params.batch * 3 // 2), -1),
        sizes=np.zeros(batches, np.int64),
        number=np.zeros(1, np.int64),
        place=np.zeros(arms, np.int64),
        turn=np.zeros(1, np.int64),
        left=np.full(1, arms),
        stage=np.ones(1, np.int64),
        due=np.zeros(1, np.bool_),
        explored=np.zeros(1, np.int64),
        order=np.zeros(arms, np.int64),
        ahead=np.zeros(arms, np.int64),
        log_c=log_c,
        c=math.exp(log_c) if log_c < 709.0 else math.inf,
    )


def select(state, params, t, rng):
    if state.number[0] == 0:
        partition(state, params, rng)
    if state.due[0]:
        merge(state, rng)
    if state.left[0] == 1:
        return state.batches[0, 0], state.batches[0, 0]
    m = next_batch(state)
    arms, size = state.batches[m], state.sizes[m]
    c = arms[choose(size, rng)]
    if size == 1:
        return c, c
    return c, challenger(state.wins, arms, size, c, math.sqrt(limit(state, params, t)), rng)


def limit(state, params, t):
    """α ln(t + C); where a float cannot hold C, no t that there is would change its logarithm."""
    return params.alpha * (math.log(t + state.c) if state.c < math.inf else state.log_c)


def partition(state, params, rng):
    shuffle(state.order, rng)
    state.number[0] = len(state.sizes)
    for k in range(len(state.order)):
        put(state, state.order[k], k // params.batch)


def put(state, arm, m):
    """Add an arm to a batch, in ascending order."""
    members, k = state.batches[m], state.sizes[m]
    while k > 0 and members[k - 1] > arm:
        members[k] = members[k - 1]
        k -= 1
    members[k] = arm
    state.sizes[m] += 1
    state.place[arm] = m


def next_batch(state):
    """The batches have their turns one after the other."""
    m = state.turn[0] if state.turn[0] < state.number[0] else 0
    state.turn[0] = m + 1
    return m


def challenger(wins, arms, size, c, bonus, rng):
    """The arm of the batch with the largest u_jc other than c, ties at random."""
    top, ties, first = -1.0, 0, 0
    for k in range(size):
        if arms[k] != c:
            u = upper(wins[arms[k], c], wins[c, arms[k]], bonus)
            if u > top:
                top, ties, first = u, 0, k
            ties += u == top
    if ties == 1:
        return arms[first]
    n = choose(ties, rng)
    for k in range(first, size):
        if arms[k] != c and upper(wins[arms[k], c], wins[c, arms[k]], bonus) == top:
            if n == 0:
                break
            n -= 1
    return arms[k]


def upper(won, lost, bonus):
    n = won + lost
    return won / n + bonus / math.sqrt(n) if n > 0.0 else 2.0  # x/0 := 1 makes u = 1 + √1


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record_lead(state.wins, state.ahead, i, j, outcome)
    if state.place[i] != state.place[j] or state.place[i] < 0 or state.number[0] == 0:
        return
    lead = state.wins[i, j] - state.wins[j, i]
    n = state.wins[i, j] + state.wins[j, i]
    evidence = lead * lead / (4.0 * n)
    # ln(t + C) is at least ln C: most duels are far from deciding anything.
    if evidence > params.alpha * state.log_c and evidence > limit(state, params, t + 1):
        leave(state, t, j if lead > 0.0 else i)


def leave(state, t, loser):
    m = state.place[loser]
    state.sizes[m] = remove(state.batches[m], state.sizes[m], loser)
    state.place[loser] = -1
    state.left[0] -= 1
    if state.left[0] == 1:
        state.explored[0] = t
    few = state.left[0] * 2.0 ** state.stage[0] <= len(state.place)
    state.due[0] = state.number[0] > 1 and (few or state.left[0] == state.number[0])


def merge(state, rng):
    """Join small batches with large ones, at least once, and on until all are larger than half of p."""
    state.due[0] = False
    state.stage[0] += 1
    state.turn[0] = 0
    joined = join(state, rng)
    while joined and state.number[0] > 1 and fewest(state) * 3 <= state.batches.shape[1]:
        joined = join(state, rng)


def fewest(state):
    least = state.sizes[0]
    for m in range(state.number[0]):
        least = min(least, state.sizes[m])
    return least


def join(state, rng):
    """The smallest batch goes into the largest that it fits in, the second smallest into the next; whether any did."""
    rank = state.order[: state.number[0]]
    shuffle(rank, rng)
    sort_by_size(rank, state.sizes)
    small, large = 0, len(rank) - 1
    while small < large:
        if state.sizes[rank[small]] + state.sizes[rank[large]] <= state.batches.shape[1]:
            move(state, rank[small], rank[large])
            small += 1
        large -= 1
    drop_empty(state)
    return small > 0


def sort_by_size(rank, sizes):
    for k in range(1, len(rank)):
        m = rank[k]
        while k > 0 and sizes[rank[k - 1]] > sizes[m]:
            rank[k] = rank[k - 1]
            k -= 1
        rank[k] = m


def move(state, source, goal):
    for k in range(state.sizes[source]):
        put(state, state.batches[source, k], goal)
    state.sizes[source] = 0


def drop_empty(state):
    kept = 0
    for m in range(state.number[0]):
        if state.sizes[m] > 0:
            if kept < m:
                move(state, m, kept)
            kept += 1
    state.number[0] = kept


def skip(state, params, t):
    """For good if one arm is left; a batch of one arm duels itself for one turn."""
    return FOREVER if state.left[0] == 1 else t + 1


def recommend(state, rng):
    """The remaining arm that beats the most arms by observed majority, ties at random."""
    most, ties = -1, 0
    for i in range(len(state.place)):
        beaten = state.ahead[i] if state.place[i] >= 0 else -1
        if beaten > most:
            most, ties = beaten, 0
        ties += beaten == most
    n = choose(ties, rng)
    for i in range(len(state.place)):
        if state.place[i] >= 0 and state.ahead[i] == most:
            if n == 0:
                break
            n -= 1
    return i


def explored(state):
    return state.explored[0]


def bounds(state, params, t):
    """Return the intervals that decide who leaves a batch, as two (K, K) arrays; an unplayed pair's is [−1, 2]."""
    n = state.wins + state.wins.T
    played = np.maximum(n, 1.0)
    upper = np.where(n > 0, state.wins / played + np.sqrt(limit(state, params, t) / played), 2.0)
    np.fill_diagonal(upper, 0.5)
    return 1.0 - upper.T, upper
