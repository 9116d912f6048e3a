"""RMED1 by hand."""

import importlib
import math
from copy import deepcopy

import numpy as np
import pytest
from histories import state_after

import duels
from duels.policies import rmed1
from duels.policies.kernels import FOREVER

RMED1 = duels.policies.load_policy(importlib.import_module("duels.policies.rmed1"))


# 0 beat 1 in 2 of 2 and 2 in 3 of 4; 1 and 2 are level at 1 : 1.
BY_HAND = [(0, 1, 1.0)] * 2 + [(0, 2, 1.0)] * 3 + [(0, 2, 0.0), (1, 2, 1.0), (2, 1, 1.0)]


def test_indices_by_hand():
    # I_0 = 0. I_1 = 2 kl(0, ½) + 2 kl(½, ½) = 2 ln 2 = 1.3863. I_2 = 4 kl(¼, ½) = ln ½ + 3 ln 1.5 = 0.5232.
    state = state_after(RMED1, 3, BY_HAND)
    assert state.divergence == pytest.approx([0, 2 * math.log(2), 3 * math.log(1.5) - math.log(2)], abs=1e-10)
    assert state.divergence == pytest.approx([0, 1.3863, 0.5232], abs=1e-4)
    assert {int(rmed1.recommend(state, np.random.default_rng(s))) for s in range(20)} == {0}


def test_opponents_by_hand():
    rng = np.random.default_rng(0)
    state = state_after(RMED1, 3, BY_HAND)
    assert [int(rmed1.opponent(state, arm, 0, rng)) for arm in range(3)] == [0, 0, 0]  # 0 has nobody ahead: itself
    # A cycle 0 > 1 > 2 > 0, 2 to 1 each but 3 to 1 for 2 over 0. If 1 were the best arm, 0, which beats it, would
    # duel the arm with its lowest μ: 2 (¼).
    cycle = [(0, 1, 1.0), (0, 1, 1.0), (0, 1, 0.0), (1, 2, 1.0), (1, 2, 1.0), (1, 2, 0.0), (2, 0, 0.0)]
    state = state_after(RMED1, 3, cycle + [(2, 0, 1.0)] * 3)
    assert int(rmed1.opponent(state, 0, 1, rng)) == 2
    assert int(rmed1.opponent(state, 2, 1, rng)) == 1
    assert int(rmed1.opponent(state, 1, 1, rng)) == 0


def test_the_loop_and_its_end_by_hand():
    # f(3) = 0.3 · 3^1.01 = 0.90994. After the first loop of 0, 1, 2: I_1 − I_0 = 1.3863 ≤ ln t + 0.9099 from
    # t = e^0.4764 = 1.61 on, so all stay. With 40 lost duels more for both, I_1 = 42 ln 2 = 29.11 is allowed
    # from t = e^(29.11 − 0.91) = 1.77·10¹² on, I_2 = 44 kl(1/44, ½) = 25.73 from e^24.82 = 6·10¹⁰ on.
    assert RMED1.start(3, 100).tolerance == pytest.approx(0.90994, abs=1e-5)
    state = state_after(RMED1, 3, [*BY_HAND, *[(0, 1, 1.0)] * 40, *[(0, 2, 1.0)] * 40])
    rng = np.random.default_rng(0)
    first = [tuple(map(int, rmed1.select(state, RMED1.params, t, rng))) for t in (9, 10, 11)]
    assert sorted(first) == [(0, 0), (1, 0), (2, 0)]
    assert tuple(map(int, rmed1.select(state, RMED1.params, 12, rng))) == (0, 0)
    until = int(rmed1.skip(state, RMED1.params, 12))
    gap = float(state.divergence[2])
    assert gap <= math.log(until - 1) + state.tolerance
    assert gap > math.log(until - 2) + state.tolerance
    assert until == pytest.approx(math.exp(gap - state.tolerance), rel=1e-9)
    assert 5e10 < until < 7e10
    before = deepcopy(state)
    assert tuple(map(int, rmed1.select(before, RMED1.params, until - 1, rng))) == (0, 0)
    state_at = deepcopy(state)
    duels_then = {tuple(map(int, rmed1.select(state_at, RMED1.params, until + k, rng))) for k in range(2)}
    assert duels_then == {(0, 0), (2, 0)}


def test_initial_phase_draws_every_pair_once_in_random_order():
    seen = set()
    for seed in range(40):
        state, rng = RMED1.start(4, 100), np.random.default_rng(seed)
        pairs = []
        for t in range(1, 7):
            i, j = map(int, rmed1.select(state, RMED1.params, t, rng))
            rmed1.update(state, RMED1.params, t, i, j, 1.0)
            pairs.append((min(i, j), max(i, j)))
        assert len(set(pairs)) == 6
        seen.add(pairs[0])
    assert len(seen) == 6


def test_first_allowed_is_exact():
    rng = np.random.default_rng(0)
    for tolerance in (0.0, 0.91, 20.0):
        for gap in tolerance + rng.uniform(0.1, 34, 2000):
            t = rmed1.first_allowed(float(gap), tolerance)
            assert gap <= math.log(t) + tolerance
            assert t == 1 or gap > math.log(t - 1) + tolerance
    assert rmed1.first_allowed(0.0, 1.0) == 1
    assert rmed1.first_allowed(1e300, 1.0) == FOREVER
