"""RCS: a step worked by hand, and whom it crowns."""

import numpy as np
import sampling
from histories import state_after
from scipy import special

import duels
from duels.policies import rcs

RCS = duels.policies.load_policy(rcs)


def test_by_hand():
    # Arm 0 beat arm 1 four times, arm 2 has not played: θ_01 > ½ has chance 1 − (½)⁵ = 31/32, the others ½.
    # All others are beaten by arm 0 with chance 31/32·½ = 31/64, by 1 with 1/32·½ = 1/64, by 2 with ¼, by none with ¼;
    # then 1 or 2, which have been champion least often. At t = 5, u_20 = u_02 = u_12 = u_21 = 2 are the largest:
    # 0 and 1 duel 2, and 2 duels either.
    state = state_after(RCS, 3, [(0, 1, 1.0)] * 4)
    state.crowned[:] = [5, 1, 1]
    counts = sampling.chosen_pairs(RCS, state, 5, 20_000, seed=1)
    sampling.assert_distributed(counts, {(0, 2): 31 / 64, (1, 2): 9 / 64, (2, 0): 12 / 64, (2, 1): 12 / 64})


def test_the_champion_duels_itself_when_all_others_are_certain_to_lose():
    # 0 won all 10 duels with 1: z_10 = 100/40 = 2.5 > 0.51 ln t up to t = 134 (as RUCB). 0 is champion almost surely.
    state = state_after(RCS, 2, [(0, 1, 1.0)] * 10)
    counts = sampling.chosen_pairs(RCS, state, 134, 2000, seed=2)
    assert counts[0, 0] > 1950  # P(θ_01 < ½) = 2⁻¹¹: 50 of 2000 is impossible
    assert set(counts) <= {(0, 0), (1, 0)}
    assert sampling.chosen_pairs(RCS, state, 135, 100, seed=2)[0, 1] > 90


def test_without_a_sampled_winner_one_of_the_pool_is_champion():
    # 0 beat 1 in 40 of 40: z_10 = 10 > 0.51 ln 41 = 1.9, so arm 1 is not a potential champion, though never champion
    # so far. The others' matches are even: with no winner, the default crowns arm 1, `pool` never does.
    for fallback, expected in (("crowned", {0, 1, 2, 3}), ("pool", {0, 2, 3})):
        policy = duels.policies.load_policy(rcs, fallback=fallback)
        state = state_after(policy, 4, [(0, 1, 1.0)] * 40)
        state.crowned[:] = [5, 0, 5, 5]
        assert {i for i, _ in sampling.chosen_pairs(policy, state, 41, 500, seed=1)} == expected


def test_champions_are_counted():
    state, rng = RCS.start(4), np.random.default_rng(0)
    for t in range(1, 201):
        i, j = rcs.select(state, RCS.params, t, rng)
        rcs.update(state, RCS.params, t, i, j, 1.0)
        assert state.crowned.sum() == t
    np.testing.assert_allclose(state.chance + state.chance.T, np.ones((4, 4)) + np.eye(4))
    expected = special.betaincc(state.wins + 1, state.wins.T + 1, 0.5)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(state.chance[off], expected[off], atol=1e-13)
