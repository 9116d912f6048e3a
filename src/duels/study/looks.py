"""A look at the verdict after every answer, in kernels: for simulations of studies whose arms do not change."""

from typing import NamedTuple

import numpy as np

from ..policies.evidence import (
    dependent_level,
    is_certain,
    log_closeness,
    margin_level,
    no_winner_level,
    winner_level,
)
from ..policies.verdict import helpful
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
