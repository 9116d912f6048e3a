"""Simulated studies on N items, until a verdict or until everything was asked."""

from typing import Any

import numpy as np

from ..policies import State
from .looks import NO_WINNER, NOT_YET, TIED, find_verdict
from .looks_on_items import ItemLooks, draw_answer, take_on_items, useful_on_items
from .tally import Floats, Ints

select: Any = None
update: Any = None


def until_verdict_on_items(
    state: State,
    params: object,
    known: ItemLooks,
    told: bool,
    gaps: np.ndarray,
    limit: int,
    coin: np.random.Generator,
    luck: np.random.Generator,
    doubt: np.random.Generator,
) -> tuple[int, float, int]:
    """Kernel: one study with a look after every answer; returns duels, regret and verdict."""
    regret, t = 0.0, 1
    for duel in range(1, limit + 1):
        i, j = select(state, params, t, coin)
        if i < 0 or j < 0 or i >= len(gaps) or j >= len(gaps):
            raise IndexError("select chose an arm that does not exist")
        i, j = useful_on_items(known, i, j, doubt)
        if i < 0:  # everything was asked
            break
        outcome = draw_answer(known, i, j, luck)
        if told or outcome != 0.5:
            update(state, params, t, i, j, outcome)
            t += 1
        take_on_items(known, i, j, outcome)
        regret += 0.5 * (gaps[i] + gaps[j])
        verdict = find_verdict(known.looks, i, j)
        if verdict != NOT_YET:
            return duel, regret, verdict
    return limit, regret, NOT_YET


def answers_on_items(matrix: Floats, ties: float, items: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return how many of the items each arm wins over each other one, and how many are ties: both (K, K) int64.

    They are the shares of the problem. What is not a whole number is rounded up or down at random, right on average.

    Args:
        matrix: (K, K): Probabilities of the answers that are not ties.
        ties: The share of ties.
        items: How many items there are.
        rng: What rounds.
    """
    arms = len(matrix)
    upper = np.triu(np.ones((arms, arms), dtype=bool), 1)
    tied = np.where(upper, np.floor(ties * items + rng.random((arms, arms))), 0.0)
    won = np.where(upper, np.floor((items - tied) * matrix + rng.random((arms, arms))), 0.0)
    lost = np.where(upper, items - tied - won, 0.0)
    return (won + lost.T).astype(np.int64), (tied + tied.T).astype(np.int64)


def sample_answers(matrix: Floats, ties: float, items: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """As `answers_on_items`, where the items are a sample: each answer is drawn with the chances of the problem."""
    arms = len(matrix)
    upper = np.triu(np.ones((arms, arms), dtype=bool), 1)
    tied = np.where(upper, rng.binomial(items, ties, (arms, arms)), 0)
    won = np.where(upper, rng.binomial(items - tied, matrix), 0)
    lost = np.where(upper, items - tied - won, 0)
    return (won + lost.T).astype(np.int64), (tied + tied.T).astype(np.int64)


def is_true(verdict: int, wins: Ints, items: int, margin: float) -> bool:
    """Return whether a verdict is true of the items.

    Args:
        verdict: As `looks.found` returns it.
        wins: (K, K) int64: How many of the items each arm wins over each other one.
        items: How many there are.
        margin: Of the verdict.
    """
    lead = wins - wins.T
    best = np.asarray((lead + np.eye(len(wins)) > 0).all(axis=1))
    if verdict >= 0:
        return bool(best[verdict])
    if verdict <= TIED:
        return bool((lead[TIED - verdict] >= -2 * items * margin - 1e-9).all())
    return verdict == NOT_YET or (verdict == NO_WINNER and not best.any())
