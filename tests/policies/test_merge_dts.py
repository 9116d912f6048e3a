"""MergeDTS: steps worked by hand."""

import math

import numpy as np
import pytest
import sampling
from histories import state_after

import duels
from duels.policies import merge_dts
from duels.policies.kernels import FOREVER

MERGE_DTS = duels.policies.load_policy(merge_dts)


def test_by_hand():
    # Three arms, one batch; 0 beat 1 four times. The tournament, with 0 > 1 in 31/32 of the samples: 0 wins if it beats
    # 2 too (½); if it does not, 2 wins (¼) or all are level (¼, a third each). So 7/12, 1/12, 1/3 for 0, 1, 2, and with
    # 1 > 0 the same with 0 and 1 exchanged: 218, 38 and 128 of 384.
    # Against 0, the smaller of Beta(1, 5) and a uniform is arm 1's with chance 1 − 1/6; against 1, of Beta(5, 1) and a
    # uniform arm 0's with 1/6; against 2, even.
    state = state_after(MERGE_DTS, 3, [(0, 1, 1.0)] * 4)
    expected = {
        (0, 1): 218 / 384 * 5 / 6,
        (0, 2): 218 / 384 / 6,
        (1, 0): 38 / 384 / 6,
        (1, 2): 38 / 384 * 5 / 6,
        (2, 0): 64 / 384,
        (2, 1): 64 / 384,
    }
    sampling.assert_distributed(sampling.chosen_pairs(MERGE_DTS, state, 5, 20_000, seed=1), expected)


def test_an_arm_leaves_at_the_14th_loss():
    # L = 0.8⁶ ln(4·10⁵ + t) = 0.262144·12.8993 = 3.3815. An arm that lost all n duels has z = n²/4n = n/4: 3.25, 3.5.
    for losses, left in ((13, 3), (14, 2)):
        state = state_after(MERGE_DTS, 3, [(0, 1, 1.0)] * losses)
        merge_dts.select(state, MERGE_DTS.params, losses + 1, np.random.default_rng(0))
        assert state.size[0] == left
    assert state.alive[:2].tolist() == [0, 2]
    lower, upper = merge_dts.bounds(state, MERGE_DTS.params, 15)
    assert upper[1, 0] == pytest.approx(math.sqrt(0.262144 * math.log(4e5 + 15) / 14))
    assert upper[1, 0] < 0.5 < lower[0, 1]


def test_the_last_arm_duels_itself_for_good():
    state = state_after(MERGE_DTS, 2, [(1, 0, 1.0)] * 16)
    assert tuple(merge_dts.select(state, MERGE_DTS.params, 17, np.random.default_rng(0))) == (1, 1)
    assert merge_dts.skip(state, MERGE_DTS.params, 17) == FOREVER
    assert merge_dts.explored(state) == 17


def test_a_cycle_of_certain_losers_leaves_one_arm():
    state = state_after(MERGE_DTS, 3, [(0, 1, 1.0)] * 30 + [(1, 2, 1.0)] * 30 + [(2, 0, 1.0)] * 30)
    seen = set()
    for seed in range(30):
        again = state_after(MERGE_DTS, 3, [(0, 1, 1.0)] * 30 + [(1, 2, 1.0)] * 30 + [(2, 0, 1.0)] * 30)
        seen.add(tuple(map(int, merge_dts.select(again, MERGE_DTS.params, 91, np.random.default_rng(seed)))))
    assert seen == {(0, 0), (1, 1), (2, 2)}
    assert state.size[0] == 3


def test_the_constant_of_the_theory():
    # α = 1, δ = 0.1, K = 10: C = (3·100/(1·0.1))^1 = 3000.
    state = duels.policies.load_policy(merge_dts, alpha=1.0, delta=0.1).start(10)
    assert math.exp(state.log_c) == pytest.approx(3000)
    # α = 0.501 gives an exponent of 500: no float holds C, its logarithm is 500·ln(1.004·100/(0.002·0.1)).
    state = duels.policies.load_policy(merge_dts, alpha=0.501, delta=0.1).start(10)
    assert state.log_c == pytest.approx(500 * math.log(1.004 * 100 / (0.002 * 0.1)))
    assert state.inverse == 0.0
