"""Self-Sparring: a step worked by hand, and what it counts."""

import numpy as np
import sampling
from histories import state_after

import duels
from duels.policies import self_sparring

SELF_SPARRING = duels.policies.load_policy(self_sparring)


def test_by_hand():
    # 0 beat 1 once: densities 2x, 2(1 − x), 1. 0 is largest with ∫ 2x(2x − x²)x dx = 1 − 2/5 = 3/5, 2 with
    # ∫ x²(2x − x²) dx = 1/2 − 1/5 = 3/10, 1 with the rest. The two arms are chosen independently.
    state = state_after(SELF_SPARRING, 3, [(0, 1, 1.0)])
    chance = [0.6, 0.1, 0.3]
    expected = {(i, j): chance[i] * chance[j] for i in range(3) for j in range(3)}
    sampling.assert_distributed(sampling.chosen_pairs(SELF_SPARRING, state, 2, 20_000, seed=1), expected)


def test_a_tie_and_a_self_duel_are_half_won():
    state = state_after(SELF_SPARRING, 2, [(0, 1, 0.5), (0, 0, 1.0), (0, 0, 0.0)])
    assert (state.won.tolist(), state.lost.tolist()) == ([3.5, 1.5], [3.5, 1.5])


def test_the_arm_played_most_is_recommended():
    state = state_after(SELF_SPARRING, 3, [(0, 1, 0.0), (1, 2, 0.0), (1, 2, 0.0), (1, 0, 0.0)])
    assert {self_sparring.recommend(state, np.random.default_rng(s)) for s in range(9)} == {1}
    state = state_after(SELF_SPARRING, 3, [(0, 1, 0.0)])
    assert {self_sparring.recommend(state, np.random.default_rng(s)) for s in range(30)} == {0, 1}
