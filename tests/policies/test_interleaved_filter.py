"""Interleaved Filter: confidence and succession by hand."""

from copy import deepcopy

import numpy as np
import pytest
from histories import choices

from duels.policies import load_policy


def test_interleaved_filter_by_hand():
    # K = 2, T = 1000: 4·ln(1000·4) = 33.18. An incumbent that wins all n duels beats the other once
    # ½ > √(33.18/n), n > 132.7: at the 133rd.
    chosen = load_policy("interleaved_filter")
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
    chosen = load_policy("interleaved_filter")
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
