"""A look at the verdict after every answer, in kernels: for simulations of studies whose arms do not change.

They may be studies on N items, each of which a pair is asked about once. A verdict is about these answers, or about new
items, of which these are a sample.
"""

import math
from typing import NamedTuple

import numpy as np

from ...policies.evidence import (
    closeness_on_items,
    dependent_level,
    evidence,
    evidence_on_items,
    log_closeness,
    margin_level,
    may_be_certain,
    no_winner_level,
    winner_level,
)
from ...policies.verdict import helpful, lead
from .tally import Bools, Floats, Ints

NOT_YET, NO_WINNER, TIED = -1, -2, -3  # what `found` returns besides the winner; TIED − k for arm k


class Looks(NamedTuple):
    """The answers so far, and what is certain of them: `CertaintyState` for kernels."""

    wins: Floats  # (K, K): ties are not counted
    ties: Floats  # (K, K)
    open: Floats  # (K, K): zero, since one question is asked at a time
    sure: Bools  # (K, K): whether i beats j with the evidence that a winner needs
    lost: Bools  # (K, K): whether i beats j with the evidence that "no winner" needs
    close: Bools  # (K, K): whether i is close to j, for the verdict; none without a margin, but on these answers
    done: Bools  # (K, K): whether i need not meet j again
    ahead: Ints  # (K,): how many arms i beats, by `sure`
    near: Ints  # (K,): how many arms i is close to, by `close`
    losses: Ints  # (K,): how many arms beat i, by `sure`
    behind: Ints  # (K,): how many arms beat i, by `lost`
    levels: Floats  # (4,): the evidence that `sure`, `lost` and `close` need, and the margin
    items: int  # how many each pair is asked about; 0 if there is no end of them
    is_sample: bool  # whether the items are a sample, so that the verdict is about new ones
    # With items only:
    wins_left: Ints  # (K, K): how many of the items left i will win over j …
    ties_left: Ints  # (K, K): … and how many are ties
    asked: Bools  # (K, K): whether all items were asked
    settled: Bools  # (K, K): which pairs need no more answers, if i may still beat all others …
    level_settled: Bools  # (K, K): … and if it is at most level with some arm
    level: Bools  # (K, K): whether all items were asked, and i has not won more
    level_with: Ints  # (K,): how many arms i is `level` with


def new_looks(arms: int, delta: float, margin: float) -> Looks:
    """Return what is known before the first answer of a study without items.

    Args:
        arms: How many there are.
        delta: One minus the confidence.
        margin: Of the verdict.
    """
    none = np.zeros((0, 0), np.int64)
    return _new(arms, none, none, 0, delta, margin, False)


def new_item_looks(wins: Ints, ties: Ints, items: int, delta: float, margin: float, is_sample: bool = False) -> Looks:
    """Return what is known before the first answer.

    Args:
        wins: (K, K) int64: How many of the items i wins over j.
        ties: (K, K) int64: How many are ties.
        items: How many there are.
        delta: One minus the confidence.
        margin: Of the verdict.
        is_sample: Whether the items are a sample, so that the verdict is about new ones.
    """
    return _new(len(wins), wins.copy(), ties.copy(), items, delta, margin, is_sample)


def _new(arms: int, wins: Ints, ties: Ints, items: int, delta: float, margin: float, is_sample: bool) -> Looks:
    sure, lost, close, done = np.zeros((4, arms, arms), dtype=bool)
    asked, settled, level_settled, level = np.zeros((4, *wins.shape), dtype=bool)
    ahead, near, losses, behind, level_with = np.zeros((5, arms), np.int64)
    # Pairs share the items of a sample, so that their answers may depend on each other.
    winner = dependent_level(delta, arms) if is_sample else winner_level(delta, arms)
    levels = [winner, winner if is_sample else no_winner_level(delta, arms), margin_level(delta, arms), margin]
    counts = np.zeros((3, arms, arms))
    return Looks(
        counts[0],
        counts[1],
        counts[2],
        sure,
        lost,
        close,
        done,
        ahead,
        near,
        losses,
        behind,
        np.array(levels),
        items,
        is_sample,
        wins,
        ties,
        asked,
        settled,
        level_settled,
        level,
        level_with,
    )


def take(looks: Looks, i: int, j: int, outcome: float) -> None:
    """Kernel: take in an answer to a duel of i and j: 1 if i won, 0 if it lost, ½ for a tie."""
    if outcome == 0.5:
        looks.ties[i, j] += 1.0
        looks.ties[j, i] += 1.0
    else:
        looks.wins[i, j] += outcome
        looks.wins[j, i] += 1.0 - outcome
    judge(looks, i, j)
    judge(looks, j, i)


def judge(looks: Looks, i: int, j: int) -> None:
    """Kernel: update what is certain about i against j."""
    won, lost, tied, margin = looks.wins[i, j], looks.wins[j, i], looks.ties[i, j], looks.levels[3]
    is_finite, known = looks.items > 0 and not looks.is_sample, -math.inf
    if is_finite:
        known = evidence_on_items(won, lost, tied, looks.items)
    elif may_be_certain(won, lost, looks.levels[0]):
        known = evidence(won, lost)
    sure = known >= looks.levels[0]
    beats = sure and known >= looks.levels[1]
    looks.ahead[i] += int(sure) - int(looks.sure[i, j])
    looks.losses[j] += int(sure) - int(looks.sure[i, j])
    looks.behind[j] += int(beats) - int(looks.lost[i, j])
    looks.sure[i, j], looks.lost[i, j] = sure, beats
    asked, near, done = won + lost + tied >= looks.items > 0, known >= looks.levels[2], sure
    close = is_finite and (near or (asked and won >= lost))
    if margin > 0.0:
        if is_finite:
            near = closeness_on_items(won, lost, tied, looks.items, margin) >= looks.levels[2]
        else:
            near = log_closeness(won, lost, tied, margin) >= looks.levels[2]
        done = close = near
    looks.near[i] += int(close) - int(looks.close[i, j])
    looks.close[i, j], looks.done[i, j] = close, done
    if looks.items > 0:
        level = asked and won <= lost
        looks.level_with[i] += int(level) - int(looks.level[i, j])
        looks.asked[i, j], looks.level[i, j] = asked, level
        looks.settled[i, j], looks.level_settled[i, j] = done or asked, near or asked
        for k in range(len(looks.near)):
            looks.done[i, k] = looks.level_settled[i, k] if looks.level_with[i] > 0 else looks.settled[i, k]


def find_verdict(looks: Looks, i: int, j: int) -> int:
    """Kernel: the verdict after an answer to a duel of i and j: the winner, NO_WINNER, TIED − k, or NOT_YET."""
    arms = len(looks.ahead)
    for k in (i, j):
        if looks.ahead[k] == arms - 1:
            return k
    if looks.behind[i] > 0 and looks.behind[j] > 0:
        unbeaten = 0
        for k in range(arms):
            unbeaten += looks.behind[k] == 0
        if unbeaten == 0:
            return NO_WINNER
    for k in (i, j):
        if looks.near[k] == arms - 1:
            return TIED - k
    return NOT_YET


def useful(looks: Looks, i: int, j: int, doubt: np.random.Generator) -> tuple[int, int]:
    """Kernel: a pair that helps the verdict, see `policies.verdict.helpful`."""
    return helpful(looks.wins, looks.open, looks.done, looks.losses, i, j, doubt)


def draw_answer(looks: Looks, i: int, j: int, luck: np.random.Generator) -> float:
    """Kernel: the answer about a random one of the items that i and j were not asked about; it is then used up."""
    won, lost, tied = looks.wins_left[i, j], looks.wins_left[j, i], looks.ties_left[i, j]
    place = int(luck.random() * (won + lost + tied))
    if place < won:
        looks.wins_left[i, j] -= 1
        return 1.0
    if place < won + lost:
        looks.wins_left[j, i] -= 1
        return 0.0
    looks.ties_left[i, j] -= 1
    looks.ties_left[j, i] -= 1
    return 0.5


def useful_on_items(looks: Looks, i: int, j: int, doubt: np.random.Generator) -> tuple[int, int]:
    """Kernel: a pair that helps the verdict and has an item left, as `LiveState.question` finds it."""
    i, j = useful(looks, i, j, doubt)
    if i != j and not looks.asked[i, j]:
        return i, j
    for rule in range(3):
        i, j = weakest_lead_of_all(looks, rule)
        if i >= 0:
            break
    return i, j


def weakest_lead_of_all(looks: Looks, rule: int) -> tuple[int, int]:
    """Kernel: of the pairs with an item left, the one with the smallest lead; −1 if there is none.

    Args:
        looks: What is known.
        rule: 0 for open pairs of arms without a certain loss, 1 for pairs that are open for both arms, 2 for all.
    """
    first, second, least = -1, -1, math.inf
    for i in range(len(looks.near)):
        for j in range(len(looks.near)):
            fits = rule == 2 or (not looks.done[i, j] and (looks.losses[i] == 0 if rule == 0 else not looks.done[j, i]))
            if i != j and fits and not looks.asked[i, j] and lead(looks.wins, looks.open, i, j) < least:
                first, second, least = i, j, lead(looks.wins, looks.open, i, j)
    return first, second
