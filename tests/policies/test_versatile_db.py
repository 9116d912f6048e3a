"""Versatile-DB: its probabilities against an independent solution, its draws, its losses."""

import importlib
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import duels

versatile_db = duels.policies.load_policy(importlib.import_module("duels.policies.versatile_db"))
select, update = versatile_db.module.select, versatile_db.module.update


def tsallis(loss, eta):
    """p_i = 4/(η(L_i − x))² with the x that makes them sum to 1; the best arm has between 1/K and all of it."""
    loss = np.asarray(loss)
    high, low = loss.min() - 2 / eta, loss.min() - 2 * math.sqrt(len(loss)) / eta
    x = brentq(lambda x: (4 / (eta * (loss - x)) ** 2).sum() - 1, low - 1e-9, high + 1e-9, xtol=1e-14, rtol=1e-15)
    return 4 / (eta * (loss - x)) ** 2


def test_same_probabilities_and_losses_as_the_listing():
    rng = np.random.default_rng(0)
    state = versatile_db.start(5)
    for t in range(1, 1500):
        loss = state.loss.copy()
        pair = tuple(map(int, select(state, versatile_db.params, t, rng)))
        won = float(rng.random() < 0.5 + 0.08 * (pair[1] - pair[0]))
        update(state, versatile_db.params, t, *pair, won)
        for player, suffered in ((0, 1 - won), (1, won)):
            p = tsallis(loss[player], 2 / math.sqrt(t))
            np.testing.assert_allclose(state.p[player], p, rtol=1e-7, atol=1e-12)
            loss[player, pair[player]] += suffered / p[pair[player]]
        np.testing.assert_allclose(state.loss, loss, rtol=1e-6)
    assert int(versatile_db.module.recommend(state, rng)) == state.loss.sum(axis=0).argmin() == 0


def test_two_steps_by_hand():
    # K = 4, t = 1, η = 2: no losses yet, so p = 4/(2x)² = ¼ and x = −2. The left arm loses: L̂ = 1/¼ = 4.
    state, rng = versatile_db.start(4), np.random.default_rng(0)
    i, j = map(int, select(state, versatile_db.params, 1, rng))
    assert state.p.tolist() == [[0.25] * 4] * 2
    update(state, versatile_db.params, 1, i, j, 0.0)
    assert state.loss[0, i] == 4.0
    assert state.loss[1].tolist() == [0.0] * 4
    # t = 4, η = 1: the left player's x solves 3·4/x² + 4/(4 − x)² = 1: x = −3.6003 gives 12/12.962 + 4/57.76 = 0.995,
    # x = −3.5916 gives 0.9303 + 0.0694 = 0.9997. So p is 0.0694 for arm i and 0.3101 for the others.
    select(state, versatile_db.params, 4, rng)
    assert state.p[0, i] == pytest.approx(0.0694, abs=1e-4)
    assert np.delete(state.p[0], i) == pytest.approx([0.3101] * 3, abs=2e-4)
    assert state.p[1] == pytest.approx([0.25] * 4)


def test_each_player_draws_from_its_own_p():
    # 9 cells, 8 degrees of freedom: chi-square exceeds 43 once in 10⁶.
    state = versatile_db.start(3)
    state.loss[:] = [[0.0, 2.0, 5.0], [3.0, 0.0, 1.0]]
    rng, counts, draws = np.random.default_rng(1), np.zeros((3, 3)), 40_000
    for _ in range(draws):
        counts[select(state, versatile_db.params, 9, rng)] += 1
    left, right = (tsallis(loss, 2 / 3) for loss in state.loss)
    for expected, fits in ((np.outer(left, right), True), (np.outer(right, left), False)):
        mean = draws * expected
        assert (((counts - mean) ** 2 / mean).sum() < 43) == fits


def test_answers_out_of_turn_do_not_overwhelm():
    state, rng = versatile_db.start(3), np.random.default_rng(0)
    state.loss[0] = [0.0, 0.0, 1e6]  # p of arm 2 is 1e-10 or so
    select(state, versatile_db.params, 100, rng)
    assert state.drawn[0] != 2
    update(state, versatile_db.params, 100, 2, 0, 0.0)
    assert state.loss[0, 2] == pytest.approx(1e6 + 100)  # taken as if drawn with probability 1/t
