"""RMED2FH against its paper's listing, duel for duel, and by hand."""

import importlib
import math

import numpy as np
import pytest
from policies.test_rmed1 import compare
from policies.test_rmed2 import BY_HAND

import duels
from duels import testing
from duels.policies import rmed2fh

RMED2FH = duels.policy(importlib.import_module("duels.policies.rmed2fh"))


@pytest.mark.parametrize(
    ("arms", "horizon"), [*(pytest.param(*one, marks=pytest.mark.deep) for one in [(2, 200), (6, 250)]), (3, 400)]
)
def test_same_duels_as_the_listing(arms, horizon):
    assert compare(RMED2FH, "2FH", arms, horizon) > 0


def test_same_duels_with_other_parameters():
    chosen = duels.policy(RMED2FH, alpha=0.4, scale=0.05, power=1.0)
    assert compare(chosen, "2FH", 4, 400, alpha=0.4, scale=0.05, power=1.0) > 0


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


def test_finds_the_winner_with_sublinear_regret():
    """In 100 other runs the mean of ten was 10 standard errors clear of the bound: a false alarm in 10¹⁰ or fewer."""
    results = duels.simulate("arithmetic-8", RMED2FH, horizon=20_000, runs=10, checkpoints=[10_000], seed=1)
    half, full = results.summarise()["regret"].to_list()
    assert full - half < 0.3 * half
    assert results.final()["accuracy"].item() >= 0.9


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(RMED2FH)


@pytest.mark.parametrize("spec", [{"alpha": 0}, {"scale": -1}])
def test_parameters(spec):
    with pytest.raises(duels.InvalidInput, match="of rmed2fh"):
        duels.policy(RMED2FH, **spec)
