"""DTS: Wu & Liu, NIPS 2016, Algorithm 1: Double Thompson Sampling.

The first arm is the sampled Copeland winner among those whose upper bound on the Copeland score is largest; the second
is sampled again among the arms not yet certain to beat the first. With L = α ln t, D = w_ji − w_ij and z_ij = D²/4n
(−1 if D < 0 or n = 0), u_ij > ½ holds exactly when z_ij < L, and l_ji ≤ ½ exactly when z_ij ≤ L. So a row of upper
bounds changes when its arm duels or when L passes the smallest z of its decided pairs, and a step costs O(K) plus
the candidates' matches. These are coin tosses, 53 at a time, each with its own probability.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import draw_above_half, learn
from .kernels import choose, choose_largest, record_lead
from .rucb import intervals

NAME = "D-TS"
PAPER = "Wu, Liu: Double Thompson Sampling for Dueling Bandits (NIPS 2016)"
NEEDS_HORIZON = False
ASSUMES = "nothing"

LANES = 53  # matches per word: the number of random bits in a number from rng.random()
WORD = 1 << LANES
DIGITS = 8  # of a probability that are stored; if they do not decide a toss, the probability itself does
SCALE = 1 << DIGITS


class Params(NamedTuple):
    alpha: float = 0.51


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    chance: np.ndarray  # (K, K) float64: P(θ_ij > ½)
    mass: np.ndarray  # (K, K) float64: how much a duel changes that probability, see `betas.learn`
    z: np.ndarray  # (K, K) float64: z_ij; ∞ on the diagonal
    score: np.ndarray  # (K,) int64: how many arms i may beat: #{j: u_ij > ½}
    holds: np.ndarray  # (K,) float64: score[i] holds up to this L; −1 if i has dueled since
    limit: np.ndarray  # (1,) float64: L at the last step
    pool: np.ndarray  # (K,) int64: the candidates, ascending; later the arms that may come second
    tied: np.ndarray  # (K,) int64: the candidates that lose the fewest sampled matches
    last: np.ndarray  # (1,) int64: the first arm of the last step
    lanes: np.ndarray  # (W,) int64: the bits of a word that stand for an arm: bit l of word w for arm 53 w + l
    digits: np.ndarray  # (K, W, 8) int64: bit l of digits[i, w, b] is binary digit b of i's chance against that arm
    met: np.ndarray  # (K, W) int64: the arms that i has dueled
    drawn: np.ndarray  # (K, W) int64: the arms whose match with i was drawn in i's row of this step's tournament …
    beaten: np.ndarray  # (K, W) int64: … and those of them that i beat
    covers: np.ndarray  # (W, W) int64: bit l of covers[v, w]: arm 53 v + l has all its matches with word w drawn
    lost: np.ndarray  # (W, ⌈log₂ K⌉) int64: bit l of lost[w, p] is binary digit p of that arm's losses in other rows
    losses: np.ndarray  # (K,) int64: all arms' losses in a sampled tournament, for DTS⁺
    regret: np.ndarray  # (K,) float64: the estimated regret of the tied, −1 for the others, for DTS⁺
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of dts is {params.alpha}: expected a positive number (the theory needs alpha > 0.5)")


def init(arms, horizon, params):
    z = np.full((arms, arms), -1.0)
    np.fill_diagonal(z, math.inf)
    words = -(-arms // LANES)
    lanes = np.array([(1 << min(arms - w * LANES, LANES)) - 1 for w in range(words)])
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
        lanes=lanes,
        digits=np.full((arms, words, DIGITS), lanes[:, None] * (np.arange(DIGITS) == 0)),  # ½ is 0.1 in binary
        met=np.zeros((arms, words), np.int64),
        drawn=np.zeros((arms, words), np.int64),
        beaten=np.zeros((arms, words), np.int64),
        covers=np.zeros((words, words), np.int64),
        lost=np.zeros((words, arms.bit_length()), np.int64),
        losses=np.zeros(arms, np.int64),
        regret=np.zeros(arms),
        ahead=np.zeros(arms, np.int64),
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

    Matches are drawn when they are asked for, a word at a time. The last winner plays first if it is a candidate;
    another one gives up once it has lost more often than the best so far.
    """
    pool, tied = state.pool, state.tied
    tied[0] = pool[0]
    if size == 1:
        return 1
    begin_tournament(state)
    for k in range(size):
        if pool[k] == state.last[0]:
            pool[k], pool[0] = pool[0], pool[k]
    fewest, ties = len(state.score), 0
    for k in range(size):
        losses = count_losses(state, pool[k], fewest, rng)
        if losses < fewest:
            fewest, ties = losses, 0
        if losses == fewest:
            tied[ties] = pool[k]
            ties += 1
    return ties


def begin_tournament(state):
    state.covers[:] = 0
    state.drawn[:] = 0
    state.lost[:] = 0


def count_losses(state, i, most, rng):
    """How many arms beat i; any number above `most` stands for all of them."""
    losses, w = losses_in_other_rows(state, i), 0
    while losses <= most and w < len(state.covers):
        losses += draw_row(state, i, w, rng)
        w += 1
    return losses


def losses_in_other_rows(state, i):
    """The matches that i lost when its opponents' rows were drawn."""
    digits, lane, losses = state.lost[i // LANES], i % LANES, 0
    for p in range(len(digits)):
        losses += (digits[p] >> lane & 1) << p
    return losses


def draw_row(state, i, w, rng):
    """Draw the matches of i with the arms of word w that are still to be drawn; how many of them i lost."""
    home, me = i // LANES, 1 << (i % LANES)
    mask = state.lanes[w] & ~state.covers[w, home]
    if w == home:
        mask &= ~me
    state.covers[home, w] |= me
    if mask == 0:
        return 0
    beaten = toss(state, i, w, mask, rng)
    state.drawn[i, w], state.beaten[i, w] = mask, beaten
    carry, p = beaten, 0
    while carry:  # those beaten lose once more: an addition in each lane
        digit = state.lost[w, p]
        state.lost[w, p] = digit ^ carry
        carry &= digit
        p += 1
    return ones(mask & ~beaten)


def toss(state, i, w, mask, rng):
    """One coin in each lane of the mask, that of arm j with the chance that i beats j.

    A uniform number is drawn in all lanes at once, binary digit by digit. It is below the chance if the first digit
    in which they differ is 0. Half of the open lanes are decided by each digit; arms that never met, by the first.
    """
    digits = state.digits[i, w]
    uniform = int(rng.random() * WORD)
    beaten = mask & digits[0] & ~uniform
    undecided = mask & state.met[i, w] & ~(digits[0] ^ uniform)
    for b in range(1, DIGITS):
        if undecided == 0:
            return beaten
        uniform = int(rng.random() * WORD)
        beaten |= undecided & digits[b] & ~uniform
        undecided &= ~(digits[b] ^ uniform)
    lane = 0
    while undecided >> lane:
        if undecided >> lane & 1:
            scaled = state.chance[i, w * LANES + lane] * SCALE
            if rng.random() < scaled - min(int(scaled), SCALE - 1):
                beaten |= 1 << lane
        lane += 1
    return beaten


def ones(word):
    """How many bits of a word are 1."""
    word -= word >> 1 & 0x5555555555555555
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333)
    word = word + (word >> 4) & 0x0F0F0F0F0F0F0F0F
    word += word >> 8
    word += word >> 16
    word += word >> 32
    return word & 0x7F


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
    record_lead(state.wins, state.ahead, i, j, outcome)
    learn(state.wins, state.chance, state.mass, i, j, outcome)
    set_digits(state, i, j)
    set_digits(state, j, i)
    lead = state.wins[i, j] - state.wins[j, i]
    z = lead * lead / (4.0 * (state.wins[i, j] + state.wins[j, i]))
    state.z[i, j] = z if lead <= 0.0 else -1.0
    state.z[j, i] = z if lead >= 0.0 else -1.0
    state.holds[i] = state.holds[j] = -1.0


def set_digits(state, i, j):
    w, lane = j // LANES, j % LANES
    state.met[i, w] |= 1 << lane
    scaled = min(int(state.chance[i, j] * SCALE), SCALE - 1)
    for b in range(DIGITS):
        digit = scaled >> (DIGITS - 1 - b) & 1
        state.digits[i, w, b] = state.digits[i, w, b] & ~(1 << lane) | digit << lane


def recommend(state, rng):
    return choose_largest(state.ahead, rng)


def bounds(state, params, t):
    """Return the intervals [l_ij, u_ij] as two (K, K) arrays; an unplayed pair's is [−1, 2]."""
    return intervals(state.wins, params.alpha * math.log(t), 2.0)
