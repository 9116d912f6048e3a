"""Beat the Mean: eliminations, and what is forgotten with them, by hand."""

import math
from copy import deepcopy

import numpy as np
import pytest
from histories import choices, told

import duels
from duels.policies import load_policy


def test_btm_by_hand():
    # K = 2, T = 1000, γ = 0.1: ln(1/δ) = ln 4000 = 8.294, c* = 0.03·√(8.294/n*).
    # 0 won its duel with 1: P̂ = 1 and ½ (none yet), n* = 0, c* = 1: nothing happens.
    chosen, state = told("btm:gamma=0.1", 2, [(0, 1, 1.0)])
    assert state.mean.tolist() == [1.0, 0.5]
    assert not state.due[0]
    # 1 lost its duel with 0: P̂ = 1 and 0, n* = 1, c* = 0.0864: 0 + c* ≤ 1 − c*, arm 1 leaves.
    chosen.module.update(state, chosen.params, 2, 1, 0, 0.0)
    assert state.extremes[2] == pytest.approx(0.03 * math.sqrt(math.log(4000)))
    assert chosen.module.explored(state) == 2
    assert choices(chosen, state, 3) == {(0, 0)}


def test_btm_forgets_comparisons_with_the_arm_that_left():
    chosen, state = told("btm:gamma=0.1", 3, [(0, 2, 1.0), (1, 2, 1.0), (0, 1, 0.0), (2, 0, 0.0)])
    # P̂: 0 has 1 of 2, 1 has 1 of 1, 2 has 0 of 1; n* = 1, c* = 0.03·√ln 6000 = 0.088: arm 2 leaves.
    chosen.module.select(state, chosen.params, 5, np.random.default_rng(0))
    assert state.alive[: state.left[0]].tolist() == [0, 1]
    assert state.total.tolist()[:2] == [1.0, 0.0]  # 0 keeps its duel with 1; 1's only one was with 2
    assert state.mean.tolist()[:2] == [0.0, 0.5]


LEFT = [(0, 2, 1.0), (1, 2, 1.0), (0, 1, 0.0), (2, 0, 0.0)]


def test_btm_an_arm_that_left():
    chosen, state = told("btm:gamma=0.1", 3, LEFT)
    assert state.due[0]
    assert chosen.module.explored(state) == 0  # two will be left, not one
    chosen.module.select(state, chosen.params, 5, np.random.default_rng(0))
    assert state.extremes.tolist() == [0.0, 0.5, 1.0]  # n* = 0 again, so c* = 1
    before = deepcopy(state)
    for i, j in ((0, 2), (2, 0), (2, 2)):
        chosen.module.update(state, chosen.params, 5, i, j, 1.0)
    np.testing.assert_equal(state, before)


def test_btm_stays_explored():
    chosen, state = told("btm:gamma=0.1", 2, [(0, 1, 1.0), (1, 0, 0.0)])
    chosen.module.select(state, chosen.params, 3, np.random.default_rng(0))
    chosen.module.update(state, chosen.params, 3, 0, 0, 1.0)
    assert chosen.module.explored(state) == 2


@pytest.mark.parametrize("won", [0.0, 1.0])
def test_btm_extremes_on_one_side_of_a_half(won):
    _, state = told("btm", 2, [(0, 0, won), (1, 1, won)])
    assert state.extremes[:2].tolist() == [won, won]


def test_btm_leaves_at_equality():
    chosen = load_policy("btm")
    state = chosen.start(2, 1000)._replace(log_term=np.array([1 / 36]))  # c* = 3·√(1/36) = ½ at n* = 1
    chosen.module.update(state, chosen.params, 1, 0, 1, 1.0)
    chosen.module.update(state, chosen.params, 2, 1, 0, 0.0)
    assert state.due[0]  # 0 + ½ ≤ 1 − ½


def test_a_small_gamma_misleads_it_and_a_large_one_takes_long():
    """At γ = 0.2 the Borda winner is named in about 64% of runs: at most half of 200 has probability 2·10⁻⁵."""
    slight = np.full((16, 16), 0.5)  # arm 0 wins by a little, arm 1 has the best mean; γ = 0.45/0.15
    slight[0, 1:], slight[0, 1], slight[1, 2:] = 0.65, 0.53, 0.95
    misleading = duels.PreferenceMatrix(np.triu(slight) + np.tril(1 - slight.T, -1), name="misleading")
    assert (misleading.condorcet_winner, misleading.borda_winners) == (0, (1,))
    assert misleading.gamma == pytest.approx(3)
    small, larger, true, large = (
        duels.simulate(misleading, f"btm:gamma={gamma}", horizon=10_000_000, runs=runs, checkpoints=[]).frame
        for gamma, runs in ((0.2, 200), (0.5, 50), (3, 2), (6, 1))
    )
    assert (small["recommended"] == 1).mean() > 0.5 > small["correct"].mean()
    assert larger["correct"].all()
    assert true["correct"].all()
    assert (large["recommended"] == 1).all()  # at the horizon nobody has left; the best mean is the Borda winner's
    costs = [runs["regret"].mean() for runs in (larger, small, true, large)]
    assert costs == sorted(costs)
