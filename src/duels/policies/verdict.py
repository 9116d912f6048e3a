"""Verdict: ask what brings the verdict of a study soonest, however much regret that costs. It has no paper.

     1  i, j ← the arms with the largest of two times K draws of Beta(won + 1, lost + 1), as Self-Sparring
     2  if i ≠ j, neither is certain to beat the other, and one of them has no certain loss: ask i, j
     3  with a chance of 0.1, since certainty may be wrong: if i has a certain loss, ask i and the arm with the largest
        lead(d, i); else, if i ≠ j: ask i, j
     4  if some arm has no certain loss:
     5      c ← i if it has none, else j if it has none, else one of those that have none
     6      d ← of the arms that c is not certain to beat (if there are any, of those without a certain loss), the one
            with the smallest lead(c, d); with a chance of 0.1, of all that c is not certain to beat, the one with the
            smallest draw of Beta(w_cd + 5, w_dc + 5): ask c, d
     7  else, to show that there is no winner:
     8      c ← the arm with the smallest max_d lead(d, c)
     9      d ← the arm with the largest lead(d, c): ask c, d

lead(i, j) = (w_ij − w_ji + o_ij / 5) / √(w_ij + w_ji + o_ij + 10), where o_ij counts unanswered duels. A tie is neither
won nor lost. With a margin, an arm need not meet one that it is certain not to lose to by more than the margin.
"""

import math
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput
from .betas import argmax_beta_pruned
from .evidence import LOG_630, is_certain, log_closeness, margin_level, winner_level
from .kernels import choose

Counts = Any  # numbers, or arrays of them

NAME = "Verdict"
PAPER = "the asking rule of Duels; pairs proposed as by Sui, Zhuang, Burdick, Yue (UAI 2017)"
NEEDS_HORIZON = False
ASSUMES = "nothing"
GOAL = ("confidence", "margin")  # a study sets these to its own

DOUBT = 0.1  # how often what seems certain is asked about nevertheless, and a draw decides which arm is met
PRIOR = 10.0  # duels added to those of a pair when leads are compared
LAST = 1e9  # added to leads over arms with a certain loss, so that these are met last
WAITING = 0.2  # the share of a win that an unanswered duel counts as


class Params(NamedTuple):
    confidence: float = 0.95
    margin: float = 0.0


class State(NamedTuple):
    wins: np.ndarray  # (K, K) float64: wins[i, j] = duels i won over j
    ties: np.ndarray  # (K, K) float64: ties of i and j
    open: np.ndarray  # (K, K) float64: unanswered duels of i and j
    sure: np.ndarray  # (K, K) bool: whether i beats j for certain
    done: np.ndarray  # (K, K) bool: whether i need not meet j again: `sure`, or with a margin close enough to j
    losses: np.ndarray  # (K,) int64: how many arms beat i for certain
    won: np.ndarray  # (K,) float64: 1 and the duels that i won …
    lost: np.ndarray  # (K,) float64: … or lost
    levels: np.ndarray  # (2,) float64: the evidence that `sure` and `done` need


def check(params):
    if not 0 < params.confidence < 1:
        raise InvalidInput(f"confidence of verdict is {params.confidence}: expected a number above 0 and below 1")
    if not 0 <= params.margin < 0.5:
        raise InvalidInput(f"margin of verdict is {params.margin}: expected a number of at least 0 and below 0.5")


def init(arms, horizon, params):
    none, delta = np.zeros((arms, arms)), 1 - params.confidence
    return State(
        wins=none,
        ties=none.copy(),
        open=none.copy(),
        sure=np.zeros((arms, arms), dtype=np.bool_),
        done=np.zeros((arms, arms), dtype=np.bool_),
        losses=np.zeros(arms, np.int64),
        won=np.ones(arms),
        lost=np.ones(arms),
        levels=np.array([winner_level(delta, arms), margin_level(delta, max(arms, 2))]),
    )


def select(state, params, t, rng):
    i = j = 0
    for _ in range(2):  # not two calls, which take twice as long to compile
        i, j = j, argmax_beta_pruned(state.won, state.lost, rng)  # line 1
    return helpful(state.wins, state.open, state.done, state.losses, i, j, rng)


def helpful(
    wins: np.ndarray,
    open: np.ndarray,
    done: np.ndarray,
    losses: np.ndarray,
    i: int,
    j: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """A pair that helps the verdict: (i, j), or another one if that cannot. The arguments are those of `State`."""
    if i != j and not (done[i, j] or done[j, i]) and (losses[i] == 0 or losses[j] == 0):  # line 2
        return i, j
    doubt = (i != j or losses[i] > 0) and rng.random() < DOUBT  # line 3
    if doubt and losses[i] == 0:
        return i, j
    if doubt or unbeaten(losses) == 0:
        c = i if doubt else weakest_loss(wins, open, rng)  # line 8
        return c, strongest(wins, open, c, rng)  # line 9
    c = hopeful(losses, i, j, rng)  # line 5
    if rng.random() < DOUBT:  # line 6
        d = smallest_draw(wins, open, done, c, rng)
    else:
        d = weakest_lead(wins, open, done, losses, c, rng)
    return (c, d) if d >= 0 else (i, j)


def unbeaten(losses: np.ndarray) -> int:
    """How many arms have no certain loss."""
    number = 0
    for k in range(len(losses)):
        number += losses[k] == 0
    return number


def hopeful(losses: np.ndarray, i: int, j: int, rng: np.random.Generator) -> int:
    """The first of i, j and a random arm that has no certain loss."""
    if losses[i] == 0:
        return i
    if losses[j] == 0:
        return j
    n = choose(unbeaten(losses), rng)
    for k in range(len(losses)):
        if losses[k] == 0:
            if n == 0:
                break
            n -= 1
    return k


def lead(wins: np.ndarray, open: np.ndarray, i: int, j: int) -> float:
    """How far i is ahead of j, in standard errors of a level pair."""
    return lead_of(float(wins[i, j]), float(wins[j, i]), float(open[i, j]))


def lead_of(won: float, lost: float, waiting: float) -> float:
    """The same of a pair with these counts."""
    return (won - lost + WAITING * waiting) / sqrt(won + lost + waiting + PRIOR)


def beta_of(won: Counts, lost: Counts, waiting: Counts) -> tuple[Counts, Counts]:
    """The Beta distribution that `smallest_draw` draws from; of numbers or arrays."""
    return won + 0.5 * (1.0 + WAITING) * waiting + 0.5 * PRIOR, lost + 0.5 * (1.0 - WAITING) * waiting + 0.5 * PRIOR


def weakest_lead(
    wins: np.ndarray, open: np.ndarray, done: np.ndarray, losses: np.ndarray, c: int, rng: np.random.Generator
) -> int:
    """The arm whose defeat by c is furthest from certain, first of those without a certain loss; −1 if all are done."""
    least, ties = math.inf, 0
    for k in range(len(wins)):
        if k != c and not done[c, k]:
            here = lead(wins, open, c, k) + (LAST if losses[k] > 0 else 0.0)
            if here < least:
                least, ties = here, 0
            ties += here == least
    if ties == 0:
        return -1
    n = choose(ties, rng)
    for k in range(len(wins)):
        if k != c and not done[c, k] and lead(wins, open, c, k) + (LAST if losses[k] > 0 else 0.0) == least:
            if n == 0:
                break
            n -= 1
    return k


def smallest_draw(wins: np.ndarray, open: np.ndarray, done: np.ndarray, c: int, rng: np.random.Generator) -> int:
    """The arm against which c is the worst in draws of Beta distributions; −1 if all are done."""
    best, least = -1, 2.0
    for k in range(len(wins)):
        if k != c and not done[c, k]:
            a, b = beta_of(wins[c, k], wins[k, c], open[c, k])
            theta = rng.beta(a, b)
            if theta < least:
                best, least = k, theta
    return best


def weakest_loss(wins: np.ndarray, open: np.ndarray, rng: np.random.Generator) -> int:
    """The arm whose clearest loss is the least clear, ties at random."""
    least, ties = math.inf, 0
    for k in range(len(wins)):
        here = largest_lead(wins, open, k)
        if here < least:
            least, ties = here, 0
        ties += here == least
    n = choose(ties, rng)
    for k in range(len(wins)):
        if largest_lead(wins, open, k) == least:
            if n == 0:
                break
            n -= 1
    return k


def largest_lead(wins: np.ndarray, open: np.ndarray, c: int) -> float:
    """The largest lead of another arm over c."""
    most = -math.inf
    for k in range(len(wins)):
        if k != c:
            most = max(most, lead(wins, open, k, c))
    return most


def strongest(wins: np.ndarray, open: np.ndarray, c: int, rng: np.random.Generator) -> int:
    """The arm with the largest lead over c, ties at random."""
    most, ties = largest_lead(wins, open, c), 0
    for k in range(len(wins)):
        ties += k != c and lead(wins, open, k, c) == most
    n = choose(ties, rng)
    for k in range(len(wins)):
        if k != c and lead(wins, open, k, c) == most:
            if n == 0:
                break
            n -= 1
    return k


def update(state, params, t, i, j, outcome):
    if i == j:
        return
    if outcome == 0.5:
        state.ties[i, j] += 1.0
        state.ties[j, i] += 1.0
    else:
        state.wins[i, j] += outcome
        state.wins[j, i] += 1.0 - outcome
        state.won[i] += outcome
        state.lost[i] += 1.0 - outcome
        state.won[j] += 1.0 - outcome
        state.lost[j] += outcome
    for _ in range(2):
        judge(state, params, i, j)
        i, j = j, i


def judge(state, params, i, j):
    """Find out again whether i beats j for certain, and whether it need not meet j again."""
    wins, losses = state.wins[i, j], state.wins[j, i]
    sure = is_certain(wins, losses, state.levels[0])
    state.losses[j] += int(sure) - int(state.sure[i, j])
    state.sure[i, j] = state.done[i, j] = sure
    if params.margin > 0.0:
        state.done[i, j] = log_closeness(wins, losses, state.ties[i, j], params.margin) >= state.levels[1]


def wait(state, params, i, j):
    """Note that a duel was asked and has no answer yet."""
    if i != j:
        state.open[i, j] += 1.0
        state.open[j, i] += 1.0


def bounds(state, params, t):
    """Return the (K, K) lower and upper limits of each win probability: values that the evidence does not exclude.

    ½ is outside exactly if the pair is certain.
    """
    upper = _upper(state.wins, state.levels[0])
    lower = 1.0 - upper.T
    np.fill_diagonal(upper, 0.5)
    np.fill_diagonal(lower, 0.5)
    return lower, upper


def _upper(wins, level):
    """The p above w/n at which B(w+5, l+5) / B(5, 5) / (p^w (1−p)^l) reaches the level, by bisection; 1 if none."""
    from scipy import special

    losses = wins.T
    target = special.betaln(wins + 5.0, losses + 5.0) + LOG_630 - level
    low, high = wins / np.maximum(wins + losses, 1.0), np.ones(wins.shape)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = special.xlogy(wins, middle) + special.xlog1py(losses, -middle) <= target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def recommend(state, rng):
    """Of the arms with the fewest certain losses the one that won or lost the most duels, ties at random."""
    fewest = state.losses[0]
    for i in range(len(state.losses)):
        fewest = min(fewest, state.losses[i])
    most, ties = 0.0, 0
    for i in range(len(state.won)):
        if state.losses[i] == fewest:
            plays = state.won[i] + state.lost[i]
            if plays > most:
                most, ties = plays, 0
            ties += plays == most
    n = choose(ties, rng)
    for i in range(len(state.won)):
        if state.losses[i] == fewest and state.won[i] + state.lost[i] == most:
            if n == 0:
                break
            n -= 1
    return i
