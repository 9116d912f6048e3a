"""MultiSBM by hand."""

import importlib
from copy import deepcopy

import numpy as np

import duels

multisbm = duels.policies.load_policy(importlib.import_module("duels.policies.multisbm"))


def test_the_index_by_hand():
    # The machine of arm 0 chose 1, which won; 2, which lost; and 0 itself, a tie. The last duel's right arm was 0.
    state = multisbm.start(3)
    for t, (i, j, won) in enumerate([(0, 1, 0.0), (0, 2, 1.0), (0, 0, 0.5)], 1):
        multisbm.module.update(state, multisbm.params, t, i, j, won)
    assert state.share[0].tolist() == [0.5, 1.0, 0.0]
    # All have been chosen once, so at its 4th turn the index is the share + √(2.5 ln 4): arm 1 is ahead.
    rng = np.random.default_rng(0)
    assert {tuple(map(int, multisbm.module.select(deepcopy(state), multisbm.params, 4, rng))) for _ in range(50)} == {
        (0, 1)
    }
    # After 1 lost three more times its share is ¼: ¼ + 1.862·½·… with √(2.5 ln 7) = 2.206: ¼ + 1.103 = 1.353; arm 0 has
    # ½ + 2.206 = 2.706 and arm 2 has 2.206: arm 0 is next.
    for t in range(4, 7):
        multisbm.module.update(state, multisbm.params, t, 0, 1, 1.0)
    state.left[0] = 0
    assert {tuple(map(int, multisbm.module.select(deepcopy(state), multisbm.params, 7, rng))) for _ in range(50)} == {
        (0, 0)
    }
    assert state.chosen.tolist() == [1, 4, 1]
    assert int(multisbm.module.recommend(state, rng)) == 1


def test_the_right_arm_is_the_next_left_arm():
    state, rng = multisbm.start(4), np.random.default_rng(1)
    i, j = map(int, multisbm.module.select(state, multisbm.params, 1, rng))
    for t in range(1, 50):
        multisbm.module.update(state, multisbm.params, t, i, j, 1.0)
        before = j
        i, j = map(int, multisbm.module.select(state, multisbm.params, t + 1, rng))
        assert i == before
