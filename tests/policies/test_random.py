"""Random pairs against the list of all pairs, duel for duel."""

import numpy as np
import oracles
import pytest
from histories import assert_same_duels, random_matrix, told

from duels import testing
from duels.engine import loop
from duels.policies import policy


@pytest.mark.parametrize(("arms", "horizon"), [(2, 300), (3, 400), (6, 500)])
def test_same_duels_as_the_listing(arms, horizon):
    for seed in range(4):
        assert_same_duels("random", random_matrix(arms, seed), horizon, seed)


@pytest.mark.deep
@pytest.mark.parametrize("arms", [2, 3, 4, 8, 13])
def test_same_duels_as_the_listing_at_length(arms):
    for seed in range(10, 20):
        matrix = random_matrix(arms, seed, spread=0.2 + 0.3 * (seed % 2))
        assert_same_duels("random", matrix, 3000, seed)


def test_the_listing_reaches_every_corner():
    """No arm ever duels itself."""
    histories = [oracles.random(random_matrix(3, seed), 400, *loop.streams(seed, 0)) for seed in range(4)]
    assert all(won is not None for history in histories for _, _, won in history)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(policy("random"))


def test_recommendation_before_the_first_step_favours_nobody():
    chosen, state = told("random", 4, [])
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(100)} == {0, 1, 2, 3}
