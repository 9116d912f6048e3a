"""MergeRUCB: its constant, eliminations, batches and their merging by hand."""

import importlib
import math

import numpy as np
import pytest
from histories import frozen

import duels
from duels import theory
from duels.engine import loop
from duels.policies import merge_rucb

MERGE_RUCB = duels.policies.load_policy(importlib.import_module("duels.policies.merge_rucb"))


def told(answers, arms=3, **parameters):
    chosen = duels.policies.load_policy(MERGE_RUCB, **parameters)
    state = chosen.start(arms, 1000)
    merge_rucb.select(state, chosen.params, 1, np.random.default_rng(0))
    for t, (i, j, won) in enumerate(answers, 1):
        merge_rucb.update(state, chosen.params, t, i, j, won)
    return chosen, state


def test_c_by_hand():
    # C(0.01) at K = 3, α = 1.01: (3.04 · 9 / (1.02 · 0.01))^(1/1.02) = 2682.4^0.98039 = 2297.7
    state = MERGE_RUCB.start(3, 1000)
    assert state.c == pytest.approx(2297.7, rel=1e-4)
    assert state.log_c == pytest.approx(theory.log_c(0.01, 3, 1.01))
    late = duels.policies.load_policy(MERGE_RUCB, alpha=0.51)
    state = late.start(64, 1000)
    assert state.c == math.inf  # about 10^366
    assert merge_rucb.limit(state, late.params, 10**15) == 0.51 * theory.log_c(0.01, 64, 0.51)


def test_elimination_by_hand():
    # n lost duels of n: z = n/4 > 1.01 ln(t + 1 + 2297.7) = 7.818 to 7.831 for t + 1 = 2 to 33: from n = 32 on.
    chosen, state = told([(0, 1, 1.0)] * 31)
    assert state.left[0] == 3
    chosen, state = told([(0, 1, 1.0)] * 32)
    assert state.place.tolist() == [0, -1, 0]
    assert merge_rucb.explored(state) == 0
    lower, upper = merge_rucb.bounds(state, chosen.params, 33)
    assert upper[1, 0] == pytest.approx(math.sqrt(1.01 * math.log(33 + 2297.7) / 32), rel=1e-5)  # 0.4947
    assert upper[1, 0] < 0.5 < upper[0, 1]
    assert (lower[0, 2], upper[0, 2], upper[1, 1]) == (-1, 2, 0.5)
    chosen, state = told([(0, 1, 1.0)] * 32 + [(2, 0, 1.0)] * 33)
    assert state.left[0] == 1
    assert merge_rucb.explored(state) == 64
    assert tuple(map(int, merge_rucb.select(state, chosen.params, 66, np.random.default_rng(0)))) == (2, 2)
    assert int(merge_rucb.recommend(state, np.random.default_rng(0))) == 2


def test_challenger_by_hand():
    # c = 0 at t = 10, L = 1.01 ln(2307.7) = 7.8216, √L = 2.7967. u_10 = 0/4 + 2.7967/2 = 1.398; u_20 = 4/9 + 2.7967/3
    # = 1.377: arm 1. With another win of 2, u_20 = 5/10 + 0.884 = 1.384: arm 1 still. An unplayed arm has u = 2.
    wins = np.zeros((4, 4))
    wins[0, 1], wins[0, 2], wins[2, 0] = 4, 5, 4
    arms, rng, bonus = np.array([0, 1, 2, 3]), np.random.default_rng(0), math.sqrt(7.8216)
    assert merge_rucb.upper(0.0, 4.0, bonus) == pytest.approx(1.3983, abs=1e-4)
    assert merge_rucb.upper(4.0, 5.0, bonus) == pytest.approx(1.3767, abs=1e-4)
    assert merge_rucb.challenger(wins, arms, 3, 0, bonus, rng) == 1
    assert merge_rucb.challenger(wins, arms, 4, 0, bonus, rng) == 3


def test_answers_about_arms_of_other_batches_throw_nobody_out():
    chosen, state = told([], arms=8)
    a, b = state.batches[0, 0], state.batches[1, 0]
    for t in range(1, 200):
        merge_rucb.update(state, chosen.params, t, a, b, 1.0)
    assert state.left[0] == 8
    assert state.wins[a, b] == 199


LEVEL = np.full((10, 10), 0.5)  # the first arm always wins, all other pairs are level
LEVEL[0, 1:], LEVEL[1:, 0] = 1.0, 0.0


def test_a_batch_of_one_arm_has_its_turn():
    """The winner empties its batch; the arms of the others are level and stay.

    Of the three batches that of the winner has every third turn, in which nothing is lost: regret 6,667 or less and
    some hundred for its first duels, whatever the luck. Random play has 9,000.
    """
    found = duels.simulate(LEVEL, MERGE_RUCB, horizon=20_000, runs=10, checkpoints=[]).final().row(0, named=True)
    assert 6000 < found["regret"] < 7000


def test_a_batch_of_one_arm_duels_itself_for_one_step():
    chosen, state = told([], arms=8)
    rng = np.random.default_rng(1)
    alone, *others = state.batches[0, :4].tolist()
    for other in others:
        for t in range(1, 101):
            merge_rucb.update(state, chosen.params, t, alone, other, 1.0)
    assert state.sizes[:2].tolist() == [1, 4]
    state.turn[0] = 0
    assert tuple(map(int, merge_rucb.select(state, chosen.params, 301, rng))) == (alone, alone)
    assert merge_rucb.skip(state, chosen.params, 301) == 302
    assert alone not in tuple(map(int, merge_rucb.select(state, chosen.params, 302, rng)))


@pytest.mark.parametrize("arms", [5, 9, 16, 33, 100])
def test_batches_stay_a_partition(arms):
    """On P_ij by a ladder with steep steps, to the end: sizes between 1 and 3p/2, every remaining arm in one batch."""
    rank = np.arange(arms)
    matrix = frozen(np.where(rank[:, None] < rank, 0.95, 0.05) + 0.45 * np.eye(arms))
    chosen = duels.policies.load_policy(MERGE_RUCB, alpha=1.5, delta=0.9)
    play = loop.ready(chosen, arms, 10**6, matrix)
    state, tally = chosen.start(arms, 10**6), loop.new_tally(arms)
    coin, luck = loop.streams(0, 0)
    t, sizes = 1, set()
    while state.left[0] > 1 and t < 10**6:
        t, _ = play(state, chosen.params, matrix, tally, t, t + 9, loop.FOREVER, 10, coin, luck, coin)
        count = state.number[0]
        members = np.concatenate([state.batches[m, : state.sizes[m]] for m in range(count)])
        assert sorted(members) == np.flatnonzero(state.place >= 0).tolist()
        assert len(members) == state.left[0]
        assert all((state.place[state.batches[m, : state.sizes[m]]] == m).all() for m in range(count))
        sizes |= set(state.sizes[:count].tolist())
    assert state.left[0] == 1
    assert state.place[0] == 0
    assert max(sizes) <= 6
