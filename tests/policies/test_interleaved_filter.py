"""Interleaved Filter against its paper's listing, duel for duel; confidence and succession by hand."""

from copy import deepcopy

import numpy as np
import oracles
import pytest
from histories import assert_same_duels, choices, random_matrix, told

from duels import testing
from duels.engine import loop
from duels.policies import policy


@pytest.mark.parametrize(
    ("arms", "horizon", "seeds"),
    [
        *(pytest.param(*one, range(4), marks=pytest.mark.deep) for one in ((2, 1800), (3, 2400), (6, 3000))),
        (6, 3000, [0]),
    ],
)
def test_same_duels_as_the_listing(arms, horizon, seeds):
    for seed in seeds:
        assert_same_duels("interleaved_filter", random_matrix(arms, seed), horizon, seed)


@pytest.mark.deep
@pytest.mark.parametrize("arms", [2, 3, 4, 8, 13])
def test_same_duels_as_the_listing_at_length(arms):
    for seed in range(10, 20):
        matrix = random_matrix(arms, seed, spread=0.2 + 0.3 * (seed % 2))
        assert_same_duels("interleaved_filter", matrix, 3000, seed)


def test_the_listing_reaches_every_corner():
    """Incumbents are succeeded and duel themselves in the runs above; else they would prove little."""
    histories = [oracles.interleaved_filter(random_matrix(3, seed), 2400, *loop.streams(seed, 0)) for seed in range(4)]
    assert any(won is None for history in histories for _, _, won in history)
    assert any(len({incumbent for incumbent, _, _ in history}) > 1 for history in histories)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(policy("interleaved_filter"))


def test_interleaved_filter_by_hand():
    # K = 2, T = 1000: 4·ln(1000·4) = 33.18. An incumbent that wins all n duels beats the other once
    # ½ > √(33.18/n), n > 132.7: at the 133rd.
    chosen = policy("interleaved_filter")
    state = chosen.start(2, 1000)
    incumbent, other = map(int, chosen.module.select(state, chosen.params, 1, np.random.default_rng(0)))
    for t in range(1, 133):
        chosen.module.update(state, chosen.params, t, incumbent, other, 1.0)
    assert chosen.module.explored(state) == 0
    chosen.module.update(state, chosen.params, 133, other, incumbent, 0.0)  # the other way round is the same answer
    assert chosen.module.explored(state) == 133
    assert choices(chosen, state, 134) == {(incumbent, incumbent)}


def interleaved(wins_over_x, passes=146):
    """K = 3, T = 1000, 4 ln 9000 = 36.4: y, winning all, beats the incumbent once n > 145.7."""
    chosen = policy("interleaved_filter")
    state = chosen.start(3, 1000)
    b = int(chosen.module.select(state, chosen.params, 1, np.random.default_rng(0))[0])
    x, y = (arm for arm in range(3) if arm != b)
    for n in range(passes):
        chosen.module.update(state, chosen.params, 2 * n + 1, b, x, float(n < wins_over_x))
        chosen.module.update(state, chosen.params, 2 * n + 2, b, y, 0.0)
    return chosen, state, b, x, y


@pytest.mark.parametrize(("wins", "stays"), [(72, True), (73, True), (74, False)])
def test_interleaved_filter_prunes_what_is_behind_not_what_is_level(wins, stays):
    chosen, state, b, x, y = interleaved(wins)
    assert state.beaten[0]
    assert chosen.module.explored(state) == (0 if stays else 292)
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(20)} == {y}
    before = deepcopy(state)
    chosen.module.update(state, chosen.params, 293, b, y, 1.0)  # too late: the succession is decided
    np.testing.assert_equal(state, before)
    assert choices(chosen, state, 293) == {(y, x if stays else y)}


def test_interleaved_filter_ignores_duels_without_the_incumbent():
    chosen, state, b, x, y = interleaved(0, passes=0)
    before = deepcopy(state)
    for pair in ((x, y), (y, x), (b, b)):
        chosen.module.update(state, chosen.params, 1, *pair, 1.0)
    np.testing.assert_equal(state, before)


def test_recommendation_before_the_first_step_favours_nobody():
    chosen, state = told("interleaved_filter", 4, [])
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(100)} == {0, 1, 2, 3}
