"""CCB, Copeland Confidence Bound: Zoghi, Karnin, Whiteson & de Rijke, NIPS 2015, Algorithm 1 (lines on the right).

As in RUCB, u_ij < ½ exactly when z_ij > L = α ln t: then i is certain to lose to j, and l_ji > ½. This changes only
when a pair duels or when L reaches the smallest z among the certain pairs, and so does everything else that the listing
keeps (bounds on the Copeland scores, the sets B_t and B_t^i). A step costs O(K).
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from .kernels import choose, choose_largest, record_lead
from .rucb import bounds as bounds
from .rucb import check_unplayed, first_time

NAME = "CCB"
PAPER = "Zoghi, Karnin, Whiteson, de Rijke: Copeland Dueling Bandits (NIPS 2015)"
NEEDS_HORIZON = False
ASSUMES = "nothing"


class Params(NamedTuple):
    alpha: float = 0.51
    unplayed: float = 2.0  # u_ij of a pair that never met


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j; a tie adds a half to both
    share: np.ndarray  # (K, K) float64: share[c, j] = w_jc / n; `unplayed` before the first duel
    width: np.ndarray  # (K, K) float64: 1 / √n; 0 before the first duel
    z: np.ndarray  # (K, K) float64: z_ij
    loses: np.ndarray  # (K, K) bool: loses[i, j] = z_ij > L, i is certain to lose to j
    nearest: np.ndarray  # (K,) float64: the smallest z_ij of the arms j that i is certain to lose to, ∞ for none
    losses: np.ndarray  # (K,) int64: how many arms i is certain to lose to; the upper Copeland score is K − 1 − losses
    sure: np.ndarray  # (K,) int64: how many arms i is certain to beat: the lower Copeland score
    limits: np.ndarray  # (2,) float64: `loses` holds from the first L up to the second
    told: np.ndarray  # (2,) int64: the pair that duelled since then; −1 for none, −2 for several
    changed: np.ndarray  # (1,) bool: whether the sets below must be updated …
    disproven: np.ndarray  # (1,) bool: … and whether some arm is certain to beat one of its B_t^i
    best: np.ndarray  # (K,) bool: B_t
    victors: np.ndarray  # (K, K) bool: victors[i, j] = j is in B_t^i, the arms believed to beat i
    size: np.ndarray  # (K,) int64: |B_t^i|
    open: np.ndarray  # (K,) int64: how many of B_t^i neither surely beat i nor surely lose to it
    most: np.ndarray  # (1,) int64: L_C, the losses of a Copeland winner as far as known
    ahead: np.ndarray  # (K,) int64: how many arms i beats by observed majority


def check(params):
    if not (params.alpha > 0 and math.isfinite(params.alpha)):
        raise InvalidInput(f"alpha of ccb is {params.alpha}: expected a positive number (the theory needs alpha > 0.5)")
    check_unplayed("ccb", params.unplayed)


def init(arms, horizon, params):
    return State(
        wins=np.zeros((arms, arms)),  # 1
        share=np.full((arms, arms), params.unplayed),
        width=np.zeros((arms, arms)),
        z=np.full((arms, arms), -1.0),
        loses=np.zeros((arms, arms), np.bool_),
        nearest=np.full(arms, np.inf),
        losses=np.zeros(arms, np.int64),
        sure=np.zeros(arms, np.int64),
        limits=np.array([0.0, np.inf]),
        told=np.full(2, -1),
        changed=np.zeros(1, np.bool_),
        disproven=np.zeros(1, np.bool_),
        best=np.ones(arms, np.bool_),  # 2
        victors=np.zeros((arms, arms), np.bool_),  # 3
        size=np.zeros(arms, np.int64),
        open=np.zeros(arms, np.int64),
        most=np.full(1, arms),  # 4
        ahead=np.zeros(arms, np.int64),
    )


def select(state, params, t, rng):
    limit = params.alpha * math.log(t)
    look_again(state, limit)  # 6, 7
    if state.changed[0]:
        state.changed[0] = False
        revise(state, rng)  # 9
    waiting = 0
    for i in range(len(state.open)):
        waiting += state.open[i]
    if waiting > 0 and rng.random() < 0.25:  # 10
        return open_pair(state, choose(waiting, rng))
    c = champion(state, rng)  # 12
    if any_candidate(state, c) and rng.random() < 0.5:  # 13
        return c, challenger(state, c, True, limit, rng)
    return c, challenger(state, c, False, limit, rng)


def look_again(state, limit):
    """Bring `loses`, and what is counted from it, up to this L."""
    i, j = state.told[0], state.told[1]
    if i == -2 or limit < state.limits[0]:
        for a in range(len(state.z)):
            for b in range(len(state.z)):
                set_loses(state, a, b, state.z[a, b] > limit)
            find_nearest(state, a)
    elif i >= 0:
        set_loses(state, i, j, state.z[i, j] > limit)
        set_loses(state, j, i, state.z[j, i] > limit)
        find_nearest(state, i)
        find_nearest(state, j)
    elif limit < state.limits[1]:
        return
    state.told[0] = -1
    state.limits[0], state.limits[1] = limit, math.inf
    for a in range(len(state.z)):
        if state.nearest[a] <= limit:
            for b in range(len(state.z)):
                if state.loses[a, b] and state.z[a, b] <= limit:
                    set_loses(state, a, b, False)
            find_nearest(state, a)
        state.limits[1] = min(state.limits[1], state.nearest[a])


def set_loses(state, i, j, loses):
    if state.loses[i, j] == loses:
        return
    state.loses[i, j] = loses
    step = 1 if loses else -1
    state.losses[i] += step
    state.sure[j] += step
    state.changed[0] = True
    state.disproven[0] = state.disproven[0] or (loses and state.victors[j, i])
    count_open(state, i)
    count_open(state, j)


def find_nearest(state, i):
    nearest = math.inf
    for j in range(len(state.z)):
        if state.loses[i, j]:
            nearest = min(nearest, state.z[i, j])
    state.nearest[i] = nearest


def count_open(state, i):
    state.open[i] = 0
    for j in range(len(state.z)):
        state.open[i] += state.victors[i, j] and not state.loses[i, j] and not state.loses[j, i]


def revise(state, rng):
    """Line 9: what has been disproven, who is out, who is a Copeland winner."""
    arms = len(state.best)
    if state.disproven[0]:  # 9A
        reset(state)
    floor = 0
    for j in range(arms):
        floor = max(floor, state.sure[j])
    left = 0
    for i in range(arms):  # 9B
        if state.best[i] and arms - 1 - state.losses[i] < floor:
            state.best[i] = False
            if state.size[i] != state.most[0] + 1:
                for j in range(arms):
                    state.victors[i, j] = state.loses[i, j]
                state.size[i] = state.losses[i]
                count_open(state, i)
        left += state.best[i]
    if left == 0:
        reset(state)
        state.changed[0] = True
    fewest = least_losses(state)
    for i in range(arms):  # 9C
        if state.losses[i] == fewest and arms - 1 - state.losses[i] == state.sure[i]:
            crown(state, i, rng)


def reset(state):
    state.best[:] = True
    state.victors[:] = False
    state.size[:] = 0
    state.open[:] = 0
    state.most[0] = len(state.best)
    state.disproven[0] = False


def crown(state, i, rng):
    """Arm i is a Copeland winner: nobody needs to be known to lose more often than once more than it."""
    state.best[i] = True
    clear(state, i)
    state.most[0] = state.losses[i]
    for j in range(len(state.best)):
        if j == i:
            continue
        if 0 < state.size[j] < state.most[0] + 1:
            clear(state, j)
        elif state.size[j] > state.most[0] + 1:
            thin(state, j, state.most[0] + 1, rng)


def clear(state, i):
    state.victors[i, :] = False
    state.size[i] = state.open[i] = 0


def thin(state, i, size, rng):
    """Leave `size` of B^i, at random."""
    while state.size[i] > size:
        n = choose(state.size[i], rng)
        for j in range(len(state.best)):
            if state.victors[i, j]:
                if n == 0:
                    state.victors[i, j] = False
                    break
                n -= 1
        state.size[i] -= 1
    count_open(state, i)


def least_losses(state):
    fewest = state.losses[0]
    for i in range(len(state.losses)):
        fewest = min(fewest, state.losses[i])
    return fewest


def open_pair(state, n):
    """The n-th pair (i, j) with j in B^i about which nothing is certain."""
    i = 0
    while n >= state.open[i]:
        n -= state.open[i]
        i += 1
    for j in range(len(state.best)):
        if state.victors[i, j] and not state.loses[i, j] and not state.loses[j, i]:
            if n == 0:
                break
            n -= 1
    return i, j


def champion(state, rng):
    """One of C_t, the arms with the largest upper Copeland score; two times in three one that is in B_t too."""
    fewest = least_losses(state)
    m = both = 0
    for i in range(len(state.losses)):
        top = state.losses[i] == fewest
        m += top
        both += top and state.best[i]
    narrow = 0 < both < m and rng.random() < 2.0 / 3.0  # 11
    n = choose(both if narrow else m, rng)
    for i in range(len(state.losses)):
        if state.losses[i] == fewest and (state.best[i] or not narrow):
            if n == 0:
                break
            n -= 1
    return i


def any_candidate(state, c):
    """Whether somebody in B^c is not certain to beat c."""
    m = 0
    for j in range(len(state.best)):
        m += state.victors[c, j] and not state.loses[c, j]
    return m > 0


def challenger(state, c, narrow, limit, rng):
    """argmax u_jc over the arms of B^c, or over all, that are not certain to beat c; else c itself."""
    share, width, bonus = state.share[c], state.width[c], math.sqrt(limit)
    top, m, d = -1.0, 0, c
    for j in range(len(share)):
        if j == c or state.loses[c, j] or state.loses[j, c] or (narrow and not state.victors[c, j]):
            continue
        score = share[j] + bonus * width[j]
        if score > top:
            top, m, d = score, 0, j
        m += score == top
    if m <= 1:
        return d
    n = choose(m, rng)
    for j in range(len(share)):
        if j == c or state.loses[c, j] or state.loses[j, c] or (narrow and not state.victors[c, j]):
            continue
        if share[j] + bonus * width[j] == top:
            if n == 0:
                break
            n -= 1
    return j


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    record_lead(state.wins, state.ahead, i, j, outcome)  # 14
    won, lost = state.wins[i, j], state.wins[j, i]
    n = won + lost
    state.share[i, j] = lost / n
    state.share[j, i] = won / n
    state.width[i, j] = state.width[j, i] = 1.0 / math.sqrt(n)
    z = (won - lost) * (won - lost) / (4.0 * n)
    state.z[i, j] = z if won < lost else -1.0
    state.z[j, i] = z if won > lost else -1.0
    a, b = min(i, j), max(i, j)
    if state.told[0] != -1 and (state.told[0] != a or state.told[1] != b):
        a = -2
    state.told[0], state.told[1] = a, b


def skip(state, params, t):
    """While one arm alone has the largest upper Copeland score and nothing is open: until a certain pair is no more."""
    fewest = least_losses(state)
    m = waiting = 0
    for i in range(len(state.losses)):
        m += state.losses[i] == fewest
        waiting += state.open[i]
    if m > 1 or waiting > 0 or state.changed[0]:
        return t + 1
    return first_time(state.limits[1], params.alpha)


def recommend(state, rng):
    return choose_largest(state.ahead, rng)
