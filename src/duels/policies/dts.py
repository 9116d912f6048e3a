"""DTS: Wu & Liu, NIPS 2016, Algorithm 1: Double Thompson Sampling.

The first arm is the sampled Copeland winner among those whose upper bound on the Copeland score is largest; the second
is sampled anew among the arms not yet certain to beat the first. With L = α ln t, D = w_ji − w_ij and z_ij = D²/4n
(−1 if D < 0 or n = 0), u_ij > ½ holds exactly when z_ij < L, and l_ji ≤ ½ exactly when z_ij ≤ L. So a row of upper
bounds changes when its arm duels or when L passes the smallest z of its decided pairs, and a step costs O(K) beside
the candidates' matches, which are coin tosses.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import draw_above_half, learn
from .kernels import choose, choose_majority, record
from .rucb import intervals

PAPER = "Wu, Liu: Double Thompson Sampling for Dueling Bandits (NIPS 2016)"
NEEDS_HORIZON = False
ASSUMES = "nothing"


class Params(NamedTuple):
    alpha: float = 0.51


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    chance: np.ndarray  # (K, K) float64: P(θ_ij > ½)
    mass: np.ndarray  # (K, K) float64: by how much a duel moves that chance, see `betas.learn`
    z: np.ndarray  # (K, K) float64: z_ij; ∞ on the diagonal
    score: np.ndarray  # (K,) int64: how many arms i may beat: #{j: u_ij > ½}
    holds: np.ndarray  # (K,) float64: score[i] holds up to this L; −1 if i has duelled since
    limit: np.ndarray  # (1,) float64: L at the last step
    pool: np.ndarray  # (K,) int64: the candidates, ascending; later the arms that may come second
    tied: np.ndarray  # (K,) int64: the candidates that lose the fewest sampled matches
    last: np.ndarray  # (1,) int64: the first arm of the last step
    match: np.ndarray  # (K, K) int64: ± the number of the sampled tournament in which i and j last met, + if i won …
    number: np.ndarray  # (1,) int64: … and the number of this one
    losses: np.ndarray  # (K,) int64: all arms' losses in a sampled tournament, for DTS⁺
    regret: np.ndarray  # (K,) float64: the estimated regret of the tied, −1 for the others, for DTS⁺
    everyone: np.ndarray  # (K,) int64: 0 … K − 1


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of dts is {params.alpha}: expected a positive number (the theory needs alpha > 0.5)")


def init(arms, horizon, params):
    z = np.full((arms, arms), -1.0)
    np.fill_diagonal(z, math.inf)
    return State(
        wins=np.zeros((arms, arms)),
        chance=np.full((arms, arms), 0.5),
        mass=np.full((arms, arms), 0.25),
        z=z,
        score=np.zeros(arms, np.int64),
        holds=np.full(arms, -1.0),
        limit=np.zeros(1),
        pool=np.zeros(arms, np.int64),
        tied=np.zeros(arms, np.int64),
        last=np.zeros(1, np.int64),
        match=np.zeros((arms, arms), np.int64),
        number=np.zeros(1, np.int64),
        losses=np.zeros(arms, np.int64),
        regret=np.zeros(arms),
        everyone=np.arange(arms),
    )


def select(state, params, t, rng):
    limit = params.alpha * math.log(t)
    first = state.tied[choose(sampled_winners(state, candidates(state, limit), rng), rng)]
    state.last[0] = first
    return first, second(state, first, limit, rng)


def candidates(state, limit):
    """Put the arms with the largest upper bound on the Copeland score into the pool; how many they are."""
    earlier = limit < state.limit[0]
    state.limit[0] = limit
    most, size = -1, 0
    for i in range(len(state.score)):
        if earlier or state.holds[i] < limit:
            recount(state, i, limit)
        if state.score[i] > most:
            most, size = state.score[i], 0
        if state.score[i] == most:
            state.pool[size] = i
            size += 1
    return size


def recount(state, i, limit):
    above, holds = 0, math.inf
    z = state.z[i]
    for j in range(len(z)):
        may_win = z[j] < limit
        above += may_win
        holds = min(holds, math.inf if may_win else z[j])
    state.score[i], state.holds[i] = above, holds


def sampled_winners(state, size, rng):
    """Put the candidates that beat the most arms in a sampled tournament into `tied`; how many they are.

    Matches are drawn when they are asked for. The last winner plays first if it is a candidate; another one meets the
    best so far first and gives up once it has lost more often than that one.
    """
    pool, tied = state.pool, state.tied
    tied[0] = pool[0]
    if size == 1:
        return 1
    state.number[0] += 1
    for k in range(size):
        if pool[k] == state.last[0]:
            pool[k], pool[0] = pool[0], pool[k]
    fewest, ties = len(state.score), 0
    for k in range(size):
        losses = count_losses(state, pool[k], tied[0], fewest, rng)
        if losses < fewest:
            fewest, ties = losses, 0
        if losses == fewest:
            tied[ties] = pool[k]
            ties += 1
    return ties


def count_losses(state, i, first, most, rng):
    """How many arms beat i, which meets `first` first; any number above `most` stands for all of them."""
    losses, j, arms = 0, first, len(state.score)
    for _ in range(arms):
        losses += i != j and not beats(state, i, j, rng)
        if losses > most:
            break
        j = j + 1 if j + 1 < arms else 0
    return losses


def beats(state, i, j, rng):
    """Whether i beats j in this step's tournament: drawn when first asked for."""
    now, seen = state.number[0], state.match[i, j]
    if abs(seen) != now:
        seen = now if rng.random() < state.chance[i, j] else -now
        state.match[i, j], state.match[j, i] = seen, -seen
    return seen > 0


def second(state, first, limit, rng):
    """argmax θ_j over the first arm, whose θ is ½, and all j with l_j,first ≤ ½.

    Only those above ½ matter, and their values only if there are several.
    """
    above = 0
    for j in range(len(state.score)):
        if state.z[first, j] <= limit and rng.random() >= state.chance[first, j]:
            state.pool[above] = j
            above += 1
    if above == 0:
        return first
    if above == 1:
        return state.pool[0]
    best, most = first, 0.0
    for k in range(above):
        j = state.pool[k]
        theta = draw_above_half(state.wins[j, first] + 1.0, state.wins[first, j] + 1.0, rng)
        if theta > most:
            best, most = j, theta
    return best


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record(state.wins, i, j, outcome)
    learn(state.wins, state.chance, state.mass, i, j, outcome)
    lead = state.wins[i, j] - state.wins[j, i]
    z = lead * lead / (4.0 * (state.wins[i, j] + state.wins[j, i]))
    state.z[i, j] = z if lead <= 0.0 else -1.0
    state.z[j, i] = z if lead >= 0.0 else -1.0
    state.holds[i] = state.holds[j] = -1.0


def recommend(state, rng):
    return choose_majority(state.wins, state.everyone, len(state.everyone), rng)


def bounds(state, params, t):
    """The intervals [l_ij, u_ij] as two (K, K) arrays; an unplayed pair's is [−1, 2]."""
    return intervals(state.wins, params.alpha * math.log(t), 2.0)
