"""RUCB: its steps, and the times it looks again, by hand."""

import math

import numpy as np
import pytest
from histories import choices, told

from duels.policies import load_policy, rucb
from duels.policies.kernels import FOREVER
from duels.policies.rucb import first_time


def test_rucb_by_hand():
    # Arm 0 beat arm 1 four times, arm 1 never won; arm 2 has not played. At t = 5: L = 0.51·ln 5 = 0.8208.
    # u_10 = 0/4 + √(0.8208/4) = 0.453 < ½, so arm 1 is out. u_01 = 1 + 0.453; every u with arm 2 is 2.
    chosen, state = told("rucb", 3, [(0, 1, 1.0)] * 4)
    # c is 0 or 2. Against 0: u_20 = 2 is largest. Against 2: u_02 = u_12 = 2 tie.
    assert choices(chosen, state, 5) == {(0, 2), (2, 0), (2, 1)}
    lower, upper = chosen.module.bounds(state, chosen.params, 5)
    assert upper[1, 0] == pytest.approx(math.sqrt(0.51 * math.log(5) / 4))
    assert upper[0, 1] == pytest.approx(1 + math.sqrt(0.51 * math.log(5) / 4))
    assert lower[0, 1] == pytest.approx(1 - upper[1, 0])
    assert (upper[0, 2], lower[0, 2], upper[0, 0], lower[0, 0]) == (2.0, -1.0, 0.5, 0.5)


def test_rucb_prefers_a_once_won_pair_to_an_unplayed_one_from_t_8():
    # u = 1 + √(0.51 ln t) exceeds 2 from t = 8 on: 0.51·ln 7 = 0.992, 0.51·ln 8 = 1.061.
    chosen, state = told("rucb", 3, [(1, 0, 1.0)])
    assert {d for c, d in choices(chosen, state, 7) if c == 0} == {2}
    assert {d for c, d in choices(chosen, state, 8) if c == 0} == {1}


def test_rucb_prefers_a_once_lost_pair_to_an_unplayed_one_from_t_2549():
    # u = √(0.51 ln t) exceeds 2 once ln t > 4/0.51 = 7.8431, at t = 2549. The loser itself has z = ¼ ≤ L: it is in.
    chosen, state = told("rucb", 3, [(1, 0, 0.0)])
    assert {d for c, d in choices(chosen, state, 2548) if c == 0} == {2}
    assert {d for c, d in choices(chosen, state, 2549) if c == 0} == {1}


def test_rucb_unplayed_pairs_by_hand():
    # At t = 4, u_10 = 1/1 + √(0.51 ln 4) = 1.84 for the arm that won once: less than the 2 of arm 2, more than 1.
    for spec, challenger in (("rucb", 2), ("rucb:unplayed=1", 1)):
        chosen, state = told(spec, 3, [(1, 0, 1.0)])
        assert {d for c, d in choices(chosen, state, 4) if c == 0} == {challenger}
    _, upper = rucb.bounds(state, chosen.params, 4)
    assert upper[0, 2] == 1


def test_rucb_exploits_and_knows_when_to_look_again():
    # Two arms, 0 won all 10 duels: z_10 = 100/40 = 2.5, so 0 duels itself while 0.51·ln t < 2.5, up to t = 134:
    # ln 134 = 4.8978 gives 2.4979, ln 135 = 4.9053 gives 2.5017.
    chosen, state = told("rucb", 2, [(0, 1, 1.0)] * 10)
    assert choices(chosen, state, 134) == {(0, 0)}
    chosen.module.select(state, chosen.params, 100, np.random.default_rng(0))
    assert chosen.module.skip(state, chosen.params, 100) == 135
    assert choices(chosen, state, 135) == {(0, 1), (1, 0)}


def test_a_tie_is_half_a_win_for_both():
    chosen, state = told("rucb", 2, [(0, 1, 0.5)] * 4)
    assert state.wins.tolist() == [[0, 2], [2, 0]]
    assert choices(chosen, state, 5) == {(0, 1), (1, 0)}


def test_rucb_an_arm_returns_at_the_very_time_its_z_is_reached():
    chosen, state = told("rucb", 2, [(0, 1, 1.0)])
    state.z[1, 0] = state.worst[1] = 0.51 * math.log(100)  # equal to L at t = 100 to the last digit
    state.share[0, 1] = state.width[0, 1] = state.limits[1] = 0.0
    assert chosen.module.select(state, chosen.params, 99, np.random.default_rng(0)) == (0, 0)
    assert choices(chosen, state, 100) == {(0, 1), (1, 0)}


def test_rucb_may_be_asked_about_an_earlier_time():
    chosen, state = told("rucb", 2, [(0, 1, 1.0)] * 10)
    chosen.module.select(state, chosen.params, 10**6, np.random.default_rng(0))  # both are in the pool
    assert choices(chosen, state, 100) == {(0, 0)}


def test_the_icml_variant_stays_with_its_hypothesis_half_the_time():
    # Arm 0 alone in the pool becomes B; when the others return, c is 0 with probability ½ + 0, else 1 or 2.
    chosen, state = told("rucb:variant=icml", 3, [(0, 1, 1.0)] * 10 + [(0, 2, 1.0)] * 10)
    rng = np.random.default_rng(5)
    chosen.module.select(state, chosen.params, 21, rng)
    assert state.best[0] == 0
    late = 10**6  # 0.51·ln 10⁶ = 7.05 > 2.5: all three are potential champions again
    champions = [chosen.module.select(state, chosen.params, late, rng)[0] for _ in range(4000)]
    shares = np.bincount(champions, minlength=3) / 4000
    # Binomial(4000, ½) and (4000, ¼): ±5 standard deviations, false alarm below 2·10⁻⁶.
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=5 * math.sqrt(0.25 / 4000))


def test_icml_forgets_a_hypothesis_that_left_the_pool():
    chosen, state = told("rucb:variant=icml", 3, [(0, 1, 1.0)] * 10 + [(0, 2, 1.0)] * 10)
    rng = np.random.default_rng(5)
    chosen.module.select(state, chosen.params, 21, rng)
    assert state.best[0] == 0
    for t in range(22, 62):  # z_01 = 30²/200 = 4.5: arm 0 is out while 0.51 ln t < 4.5, t < 6790
        chosen.module.update(state, chosen.params, t, 1, 0, 1.0)
    chosen.module.select(state, chosen.params, 1000, rng)  # pool {1, 2}
    assert state.best[0] == -1
    champions = [chosen.module.select(state, chosen.params, 10**6, rng)[0] for _ in range(4000)]
    shares = np.bincount(champions, minlength=3) / 4000
    assert shares == pytest.approx([1 / 3] * 3, abs=5 * math.sqrt(2 / 9 / 4000))


def test_recommendation_counts_observed_majorities_only():
    # 0 beat 1 (one arm beaten); 2 beat 3 and 1 (two). Unplayed pairs count for nobody.
    chosen, state = told("rucb", 4, [(0, 1, 1.0), (2, 3, 1.0), (2, 1, 1.0)])
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(20)} == {2}
    chosen, state = told("rucb", 3, [(0, 1, 1.0), (1, 0, 1.0)])  # level with each other: all three beat nobody
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(50)} == {0, 1, 2}


def test_first_time_is_exact_up_to_1e15():
    rng = np.random.default_rng(0)
    for alpha in (0.3, 0.51, 1.0, 1.5, 4.0):
        for z in alpha * np.log(10 ** rng.uniform(0.31, 15, 2000)):
            t = first_time(float(z), alpha)
            assert alpha * math.log(t) >= z > alpha * math.log(t - 1)
    assert first_time(1e-300, 0.51) == 2
    assert first_time(0.51 * 40, 0.51) == FOREVER
    assert first_time(1e308, 0.51) == FOREVER


def test_first_time_needs_its_correction():
    """The uncorrected jump is wrong often at late times, so the test above can fail."""
    rng = np.random.default_rng(0)
    z = 0.51 * np.log(10 ** rng.uniform(12, 15, 2000))
    assert np.mean([first_time(float(x), 0.51) != math.ceil(math.exp(x / 0.51)) for x in z]) > 0.1


def test_alpha_up_to_a_half_is_warned_of():
    with pytest.warns(UserWarning, match=r"alpha = 0.5: its regret bounds need alpha > 0\.5"):
        load_policy("rucb:alpha=0.5")
