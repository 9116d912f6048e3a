"""A look at the verdict after every answer, in kernels: for simulations of studies whose arms do not change.

As `looks`, for simulations of studies on N items, each of which a pair is asked about once.

They are about these answers, see `finite`, or about new items, of which these are a sample.
"""

import math
from typing import NamedTuple

import numpy as np

from ...policies.evidence import (
    closeness_on_items,
    dependent_level,
    evidence,
    evidence_on_items,
    is_certain,
    log_closeness,
    margin_level,
    no_winner_level,
    winner_level,
)
from ...policies.verdict import helpful, lead
from .tally import Bools, Floats, Ints

NOT_YET, NO_WINNER, TIED = -1, -2, -3  # what `found` returns besides the winner; TIED − k for arm k


class Looks(NamedTuple):
    """The answers so far, and what is certain of them."""

    wins: Floats  # (K, K): ties are not counted
    ties: Floats  # (K, K)
    open: Floats  # (K, K): zero, since one question is asked at a time
    sure: Bools  # (K, K): whether i beats j with the evidence that a winner needs
    lost: Bools  # (K, K): whether i beats j with the evidence that "no winner" needs
    done: Bools  # (K, K): whether i is close to j; `sure` without a margin
    ahead: Ints  # (K,): how many arms i beats, by `sure`
    near: Ints  # (K,): how many arms i is close to, by `done`; 0 without a margin
    losses: Ints  # (K,): how many arms beat i, by `sure`
    behind: Ints  # (K,): how many arms beat i, by `lost`
    levels: Floats  # (4,): the evidence that `sure`, `lost` and `done` need, and the margin


def new_looks(arms: int, delta: float, margin: float, shares_items: bool = False) -> Looks:
    """Return what is known before the first answer.

    Args:
        arms: How many there are.
        delta: One minus the confidence.
        margin: Of the verdict.
        shares_items: Whether pairs share items, so that their answers may depend on each other.
    """
    wins, ties, waiting = np.zeros((3, arms, arms))
    sure, lost, done = np.zeros((3, arms, arms), dtype=bool)
    ahead, near, losses, behind = np.zeros((4, arms), np.int64)
    winner = dependent_level(delta, arms) if shares_items else winner_level(delta, arms)
    no_winner = winner if shares_items else no_winner_level(delta, arms)
    levels = [winner, no_winner, margin_level(delta, arms), margin]
    return Looks(wins, ties, waiting, sure, lost, done, ahead, near, losses, behind, np.array(levels))


def take(looks: Looks, i: int, j: int, outcome: float) -> None:
    """Kernel: apply an answer to a duel of i and j: 1 if i won, 0 if it lost, ½ for a tie."""
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
    won, lost, margin = looks.wins[i, j], looks.wins[j, i], looks.levels[3]
    sure = is_certain(won, lost, looks.levels[0])
    looks.ahead[i] += int(sure) - int(looks.sure[i, j])
    looks.losses[j] += int(sure) - int(looks.sure[i, j])
    looks.sure[i, j] = sure
    beats = sure and is_certain(won, lost, looks.levels[1])
    looks.behind[j] += int(beats) - int(looks.lost[i, j])
    looks.lost[i, j] = beats
    done = sure
    if margin > 0.0:
        done = log_closeness(won, lost, looks.ties[i, j], margin) >= looks.levels[2]
        looks.near[i] += int(done) - int(looks.done[i, j])
    looks.done[i, j] = done


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


class ItemLooks(NamedTuple):
    """The answers so far, the items that are left, and what is certain of them."""

    looks: Looks  # its `done` has the pairs that need no more answers, given what is known of the first arm
    wins_left: Ints  # (K, K): how many of the items left i will win over j …
    ties_left: Ints  # (K, K): … and how many are ties
    close: Bools  # (K, K): whether i is close to j, for the verdict
    asked: Bools  # (K, K): whether all items were asked
    settled: Bools  # (K, K): which pairs need no more answers, if i may still beat all others …
    near: Bools  # (K, K): … and if it is at most level with some arm
    level: Bools  # (K, K): whether all items were asked, and i has not won more
    levels: Ints  # (K,): how many arms i is `level` with
    items: int
    is_sample: bool  # whether the items are a sample, so that the verdict is about new ones


def new_item_looks(
    wins: Ints, ties: Ints, items: int, delta: float, margin: float, is_sample: bool = False
) -> ItemLooks:
    """Return what is known before the first answer.

    Args:
        wins: (K, K) int64: How many of the items i wins over j.
        ties: (K, K) int64: How many are ties.
        items: How many there are.
        delta: One minus the confidence.
        margin: Of the verdict.
        is_sample: Whether the items are a sample, so that the verdict is about new ones.
    """
    arms = len(wins)
    close, asked, settled, near, level = np.zeros((5, arms, arms), dtype=bool)
    looks, levels = new_looks(arms, delta, margin, shares_items=is_sample), np.zeros(arms, np.int64)
    return ItemLooks(looks, wins.copy(), ties.copy(), close, asked, settled, near, level, levels, items, is_sample)


def draw_answer(known: ItemLooks, i: int, j: int, luck: np.random.Generator) -> float:
    """Kernel: the answer about a random one of the items that i and j were not asked about; it is then used up."""
    won, lost, tied = known.wins_left[i, j], known.wins_left[j, i], known.ties_left[i, j]
    place = int(luck.random() * (won + lost + tied))
    if place < won:
        known.wins_left[i, j] -= 1
        return 1.0
    if place < won + lost:
        known.wins_left[j, i] -= 1
        return 0.0
    known.ties_left[i, j] -= 1
    known.ties_left[j, i] -= 1
    return 0.5


def take_on_items(known: ItemLooks, i: int, j: int, outcome: float) -> None:
    """Kernel: apply an answer about i and j: 1 if i won, 0 if it lost, ½ for a tie."""
    looks = known.looks
    if outcome == 0.5:
        looks.ties[i, j] += 1.0
        looks.ties[j, i] += 1.0
    else:
        looks.wins[i, j] += outcome
        looks.wins[j, i] += 1.0 - outcome
    judge_on_items(known, i, j)
    judge_on_items(known, j, i)


def judge_on_items(on_items: ItemLooks, i: int, j: int) -> None:
    """Kernel: find out again what is certain about i against j."""
    looks, items = on_items.looks, on_items.items
    won, lost, tied, margin = looks.wins[i, j], looks.wins[j, i], looks.ties[i, j], looks.levels[3]
    asked = won + lost + tied >= items
    if on_items.is_sample:
        known = evidence(won, lost) if won > lost else -math.inf
    else:
        known = evidence_on_items(won, lost, tied, items)
    sure, beats, near = known >= looks.levels[0], known >= looks.levels[1], known >= looks.levels[2]
    looks.ahead[i] += int(sure) - int(looks.sure[i, j])
    looks.losses[j] += int(sure) - int(looks.sure[i, j])
    looks.behind[j] += int(beats) - int(looks.lost[i, j])
    looks.sure[i, j], looks.lost[i, j] = sure, beats
    settled, close = sure, (near or (asked and won >= lost)) and not on_items.is_sample
    if margin > 0.0:
        if on_items.is_sample:
            near = log_closeness(won, lost, tied, margin) >= looks.levels[2]
        else:
            near = closeness_on_items(won, lost, tied, items, margin) >= looks.levels[2]
        settled, close = near, near
    looks.near[i] += int(close) - int(on_items.close[i, j])
    level = asked and won <= lost
    on_items.levels[i] += int(level) - int(on_items.level[i, j])
    on_items.close[i, j], on_items.asked[i, j], on_items.level[i, j] = close, asked, level
    on_items.settled[i, j], on_items.near[i, j] = settled or asked, near or asked
    for k in range(len(looks.near)):
        looks.done[i, k] = on_items.near[i, k] if on_items.levels[i] > 0 else on_items.settled[i, k]


def useful_on_items(known: ItemLooks, i: int, j: int, doubt: np.random.Generator) -> tuple[int, int]:
    """Kernel: a pair that helps the verdict and has an item left, as `History.question` finds it."""
    i, j = useful(known.looks, i, j, doubt)
    if i != j and not known.asked[i, j]:
        return i, j
    for rule in range(3):
        i, j = weakest_lead_of_all(known, rule)
        if i >= 0:
            break
    return i, j


def weakest_lead_of_all(known: ItemLooks, rule: int) -> tuple[int, int]:
    """Kernel: of the pairs with an item left, the one with the smallest lead; −1 if there is none.

    Args:
        known: What is known.
        rule: 0 for open pairs of arms without a certain loss, 1 for pairs that are open for both arms, 2 for all.
    """
    looks = known.looks
    first, second, least = -1, -1, math.inf
    for i in range(len(looks.near)):
        for j in range(len(looks.near)):
            fits = rule == 2 or (not looks.done[i, j] and (looks.losses[i] == 0 if rule == 0 else not looks.done[j, i]))
            if i != j and fits and not known.asked[i, j] and lead(looks.wins, looks.open, i, j) < least:
                first, second, least = i, j, lead(looks.wins, looks.open, i, j)
    return first, second
