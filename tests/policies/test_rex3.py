"""REX3: its weights against the listing, its draws against their distribution."""

import importlib
import math

import numpy as np
import pytest

import duels

rex3 = duels.policies.load_policy(importlib.import_module("duels.policies.rex3"))


class Listing:
    """The paper's listing, with plain weights: p from w, and the update of the two arms' weights."""

    def __init__(self, arms, gamma):
        self.w, self.gamma = np.ones(arms), gamma

    def p(self, t):
        K = len(self.w)
        gamma = self.gamma or min(0.5, math.sqrt(K * math.log(K) / t))
        return (1 - gamma) * self.w / self.w.sum() + gamma / K, gamma

    def update(self, t, a, b, won):
        p, gamma = self.p(t)
        relative = 2 * won - 1
        if a != b:
            self.w[a] *= math.exp(gamma / len(p) * relative / (2 * p[a]))
            self.w[b] *= math.exp(-gamma / len(p) * relative / (2 * p[b]))


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_same_weights_as_the_listing(gamma):
    chosen = duels.policies.load_policy(rex3, gamma=gamma)
    rng = np.random.default_rng(0)
    state, listing = chosen.start(5), Listing(5, gamma)
    for t in range(1, 2000):
        i, j = map(int, chosen.module.select(state, chosen.params, t, rng))
        won = float(rng.random() < 0.5 + 0.1 * (j - i) / 5)
        chosen.module.update(state, chosen.params, t, i, j, won)
        listing.update(t, i, j, won)
        ours = state.weight / state.total
        np.testing.assert_allclose(ours, listing.w / listing.w.sum(), rtol=1e-9)
    assert listing.w.argmax() == int(chosen.module.recommend(state, rng))


def test_one_step_by_hand():
    # K = 3, γ = 0.3, all weights 1: p = ⅓ each. Arm 0 beats arm 2: the exponent is 0.3/3 · 1/(2·⅓) = 0.15.
    chosen = duels.policies.load_policy(rex3, gamma=0.3)
    state = chosen.start(3)
    chosen.module.update(state, chosen.params, 1, 0, 2, 1.0)
    assert state.log.tolist() == pytest.approx([0.15, 0.0, -0.15])
    # w = 1.16183, 1, 0.86071, sum 3.02254: p_1 = 0.7 · 1/3.02254 + 0.1 = 0.33159. A tie teaches nothing.
    assert 0.7 * state.weight[1] / state.total[0] + 0.1 == pytest.approx(0.33159, abs=1e-5)
    chosen.module.update(state, chosen.params, 2, 0, 1, 0.5)
    assert state.log.tolist() == pytest.approx([0.15, 0.0, -0.15])


def chi_square(state, chosen, t, expected, draws=40_000):
    rng = np.random.default_rng(1)
    K = len(expected)
    counts = np.zeros((K, K))
    for _ in range(draws):
        counts[chosen.module.select(state, chosen.params, t, rng)] += 1
    mean = draws * np.outer(expected, expected)
    return ((counts - mean) ** 2 / mean).sum()


def test_both_arms_are_drawn_from_p():
    # 9 cells, 8 degrees of freedom: chi-square exceeds 43 once in 10⁶.
    chosen = duels.policies.load_policy(rex3, gamma=0.3)
    state = chosen.start(3)
    for t, (i, j) in enumerate([(0, 1), (0, 2), (1, 2), (0, 1)], 1):
        chosen.module.update(state, chosen.params, t, i, j, 1.0)
    p = 0.7 * state.weight / state.weight.sum() + 0.1
    assert chi_square(state, chosen, 5, p) < 43
    assert (
        chi_square(state, chosen, 5, state.weight / state.weight.sum()) > 43
    )  # without the uniform part it is noticed
    # By default γ = min(½, √(3 ln 3 / t)) is 0.181 at t = 100.
    gamma = math.sqrt(3 * math.log(3) / 100)
    assert chi_square(state, rex3, 100, (1 - gamma) * state.weight / state.weight.sum() + gamma / 3) < 43


def test_weights_neither_overflow_nor_vanish_for_good():
    chosen = duels.policies.load_policy(rex3, gamma=0.5)
    state = chosen.start(2)
    for t in range(1, 6000):
        chosen.module.update(state, chosen.params, t, 0, 1, 1.0)
    assert state.log[0] - state.log[1] > 1500  # far beyond what a float's exponent holds
    assert np.isfinite(state.weight).all()
    assert state.total[0] > 0
    for t in range(6000, 14_000):
        chosen.module.update(state, chosen.params, t, 1, 0, 1.0)
    assert int(chosen.module.recommend(state, np.random.default_rng(0))) == 1
    assert state.weight.argmax() == 1
