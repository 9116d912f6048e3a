"""RMED2FH by hand."""

import importlib
import math

import numpy as np
import pytest
from policies.test_rmed2 import BY_HAND

import duels
from duels.policies import rmed2fh

RMED2FH = duels.policies.load_policy(importlib.import_module("duels.policies.rmed2fh"))


def test_initial_phase_and_targets_by_hand():
    # T = 40: 3 ln ln 40 = 3.92, so that 4 duels a pair are enough; 45: 3 ln ln 45 = 4.01 asks for a fifth.
    rng = np.random.default_rng(0)
    for horizon, explores in ((40, False), (45, True)):
        state = RMED2FH.start(3, horizon)
        for i, j, won in BY_HAND:
            rmed2fh.update(state, RMED2FH.params, 1, i, j, won)
        rmed2fh.select(state, RMED2FH.params, 13, rng)
        assert (state.target[0] == -2) == explores
        assert bool(state.open[0]) != explores
    # b*(1) = 2, as in RMED2's test; nobody is ahead of 0 or of 2 (level with 0).
    state = RMED2FH.start(3, 40)
    for i, j, won in BY_HAND:
        rmed2fh.update(state, RMED2FH.params, 1, i, j, won)
    rmed2fh.fix_targets(state, rng)
    assert state.target.tolist() == [-1, 2, -1]
    assert state.patience == pytest.approx(math.log(math.log(40)))


def test_needs_a_horizon():
    with pytest.raises(duels.InvalidInput, match="needs a horizon"):
        RMED2FH.start(3)
