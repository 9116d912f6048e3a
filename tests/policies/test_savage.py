"""Condorcet SAVAGE: eliminations by hand."""

import math

import numpy as np
import pytest
from histories import choices, told


def test_savage_by_hand():
    # K = 3, T = 1000, δ = 0.1: ln(3·2·1000/0.1) = 11.002. An arm that lost all n duels leaves once
    # √(11.002/2n) < ½, n > 22.004: at the 23rd.
    chosen, state = told("savage:delta=0.1", 3, [(0, 1, 1.0)] * 22)
    assert state.left[0] == 3
    chosen.module.update(state, chosen.params, 23, 0, 1, 1.0)
    assert state.alive[: state.left[0]].tolist() == [0, 2]
    assert choices(chosen, state, 24) == {(0, 2)}
    assert chosen.module.explored(state) == 0
    for t in range(24, 47):
        chosen.module.update(state, chosen.params, t, 2, 0, 0.0)
    assert chosen.module.explored(state) == 46
    assert choices(chosen, state, 47) == {(0, 0)}


def test_savage_an_arm_that_left_throws_nobody_out():
    chosen, state = told("savage:delta=0.1", 3, [(0, 1, 1.0)] * 23 + [(1, 2, 1.0)] * 40)
    assert state.alive[: state.left[0]].tolist() == [0, 2]
    assert chosen.module.explored(state) == 0


def test_savage_recommends_among_the_remaining():
    # 1 beat 2 and 3, then lost 24 times to 0 (ln(12·1000/0.1) = 11.70, n > 23.4): gone, and 0's win over it with it.
    chosen, state = told("savage:delta=0.1", 4, [(1, 2, 1.0), (1, 3, 1.0)] + [(0, 1, 1.0)] * 24)
    assert state.alive[: state.left[0]].tolist() == [0, 2, 3]
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(60)} == {0, 2, 3}


def test_savage_bounds_by_hand():
    chosen, state = told("savage:delta=0.1", 3, [(0, 1, 1.0)] * 22)
    lower, upper = chosen.module.bounds(state, chosen.params, 23)
    radius = math.sqrt(math.log(60_000) / 44)  # 0.50005: one duel short of leaving
    assert (upper[1, 0], lower[0, 1]) == pytest.approx((radius, 1 - radius))
    assert (upper[0, 1], lower[0, 2], upper[0, 2], upper[0, 0]) == pytest.approx((1 + radius, -1, 2, 0.5))


def test_least_sampling_takes_answers_the_other_way_round():
    chosen, state = told("savage:sampling=least", 3, [(1, 0, 1.0)])
    assert choices(chosen, state, 2) == {(0, 2), (1, 2)}
