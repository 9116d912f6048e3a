"""RMED2 by hand."""

import importlib
import math

import numpy as np
import pytest
from histories import state_after

import duels
from duels.policies import rmed2
from duels.policies.kernels import FOREVER

RMED2 = duels.policies.load_policy(importlib.import_module("duels.policies.rmed2"))


# 0 beat 1 in 3 of 4 and 2 in 2 of 4 … and 2 beat 1 in 4 of 4.
BY_HAND = [(0, 1, 1.0)] * 3 + [(0, 1, 0.0)] + [(0, 2, 1.0), (0, 2, 0.0)] * 2 + [(2, 1, 1.0)] * 4


def test_target_by_hand():
    # b*(1) with 0 as the best arm: Δ_01 = ¼, Δ_00 = 0, Δ_02 = 0.
    # Against 0: (¼ + 0) / kl(¼, ½) = 0.25 / 0.13081 = 1.911. Against 2: (¼ + 0) / kl(0, ½) = 0.25 / 0.69315 = 0.3607.
    state, rng = state_after(RMED2, 3, BY_HAND), np.random.default_rng(0)
    assert rmed2.cost(state, 1, 0, 0) == pytest.approx(1.9112, abs=1e-4)
    assert rmed2.cost(state, 1, 0, 2) == pytest.approx(0.3607, abs=1e-4)
    assert int(rmed2.cheapest(state, 1, 0, rng)) == 2
    assert int(rmed2.cheapest(state, 0, 0, rng)) == -1  # level with 2, ahead of 1


def test_pace_by_hand():
    # N_10 = 4 and N_12 = 4: 4 · ln ln t ≥ 4 from t = e^e = 15.15 on; before, arm 1 duels the best arm.
    state, rng = state_after(RMED2, 3, BY_HAND), np.random.default_rng(0)
    assert int(rmed2.choose_paced(state, 1, 0, 2, rmed2.log_log(15), rng)) == 0
    assert int(rmed2.choose_paced(state, 1, 0, 2, rmed2.log_log(16), rng)) == 2
    assert int(rmed2.choose_paced(state, 1, 0, -1, 9.0, rng)) == 0


def test_the_most_likely_winner_meets_its_own_target():
    # 0 lost to 1 in 3 of 4 and to 2 in 9 of 10: Algorithm 2 names 2. Were 0 the most likely winner, (Δ_00 + Δ_0j)/kl is
    # −¼/0.1308 = −1.91 against 1 and −0.4/0.3681 = −1.09 against 2: b*(0) = 1, and there is nobody to keep pace with.
    state = state_after(RMED2, 3, [(1, 0, 1.0)] * 3 + [(1, 0, 0.0)] + [(2, 0, 1.0)] * 9 + [(2, 0, 0.0)] + [(1, 2, 1.0)])
    rng = np.random.default_rng(0)
    assert int(rmed2.opponent(state, 0, 0, rng)) == 2
    assert int(rmed2.cheapest(state, 0, 0, rng)) == 1
    assert int(rmed2.choose_paced(state, 0, 0, 1, rmed2.log_log(20), rng)) == 1


def test_log_log():
    assert [rmed2.log_log(t) for t in (1, 2)] == [0, 0]
    assert rmed2.log_log(100) == pytest.approx(math.log(math.log(100)))


def test_exploration_by_hand():
    # Every pair met 4 times: 3 ln ln t > 4 from t = e^(e^(4/3)) = 44.4 on.
    assert rmed2.first_needed(4.0, 3.0) == 45
    assert rmed2.first_needed(4.0, 1e-3) == FOREVER
    state, rng = state_after(RMED2, 3, BY_HAND), np.random.default_rng(0)
    assert tuple(map(int, rmed2.select(state, RMED2.params, 44, rng)))[1] in (0, 2)
    assert state.met[0] == 4
    state = state_after(RMED2, 3, [*BY_HAND, *[(0, 1, 1.0)] * 60, *[(0, 2, 1.0)] * 60])
    pairs = [tuple(map(int, rmed2.select(state, RMED2.params, t, rng))) for t in (41, 42, 43, 44)]
    assert sorted(pairs)[0] == (0, 0)
    assert pairs[3] == (0, 0)  # alone in the loop, frozen but for the exploration to come
    assert rmed2.skip(state, RMED2.params, 44) == 45
    assert set(map(int, rmed2.select(state, RMED2.params, 45, rng))) == {1, 2}


def test_first_needed_is_exact():
    for met in range(1, 30):
        for alpha in (0.5, 1.0, 3.0, 10.0):
            t = rmed2.first_needed(float(met), alpha)
            if t < FOREVER:
                assert alpha * math.log(math.log(t)) > met >= alpha * rmed2.log_log(t - 1)
