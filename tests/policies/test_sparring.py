"""Sparring by hand."""

import importlib
from copy import deepcopy

import numpy as np

import duels

sparring = duels.policies.load_policy(importlib.import_module("duels.policies.sparring"))


def test_the_index_by_hand():
    # After 0 beat 1, 1 beat 0, 2 tied with 2, and 0 beat 2: left plays 2, 1, 1 with wins 2, 1, ½; right plays 1, 1, 2
    # with wins 0, 0, ½ + 0 = ½.
    state = sparring.start(3)
    for t, (i, j, won) in enumerate([(0, 1, 1.0), (1, 0, 1.0), (2, 2, 0.5), (0, 2, 1.0)], 1):
        sparring.module.update(state, sparring.params, t, i, j, won)
    assert state.plays.tolist() == [[2, 1, 1], [1, 1, 2]]
    assert state.won.tolist() == [[2, 1, 0.5], [0, 0, 0.5]]
    # t = 5: √(2 ln 5) = 1.794. Left: 1 + 1.794/√2 = 2.269, 1 + 1.794 = 2.794, ½ + 1.794 = 2.294: arm 1.
    # Right: 1.794, 1.794, ¼ + 1.794/√2 = 1.519: arms 0 and 1 tie.
    rng = np.random.default_rng(0)
    pairs = [sparring.module.select(deepcopy(state), sparring.params, 5, rng) for _ in range(100)]
    assert set(pairs) == {(1, 0), (1, 1)}
    # Chosen in all: 3, 2, 3.
    assert {int(sparring.module.recommend(state, np.random.default_rng(s))) for s in range(30)} == {0, 2}
