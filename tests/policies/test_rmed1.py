"""RMED1 against its paper's listing, duel for duel, and by hand. The listing here serves RMED2 and RMED2FH too."""

import contextlib
import importlib
import math
from copy import deepcopy

import numpy as np
import pytest
from histories import compiled_history, random_matrix, winners
from oracles import duel, pick

import duels
from duels import testing, theory
from duels.engine import loop
from duels.policies import rmed1
from duels.policies.kernels import FOREVER

RMED1 = duels.policy(importlib.import_module("duels.policies.rmed1"))


class Over(Exception):
    """The horizon is reached."""


class Listing:
    """Algorithm 1, with dense arrays; `version` is 1, 2 or "2FH"."""

    def __init__(self, P, horizon, coin, luck, version, alpha=3.0, scale=0.3, power=1.01):
        self.P, self.T, self.coin, self.luck, self.version, self.alpha = P, horizon, coin, luck, version, alpha
        self.K = len(P)
        self.f = scale * self.K**power
        self.W = np.zeros(P.shape)
        self.history = []
        with contextlib.suppress(Over):
            self.play()

    @property
    def t(self):
        return len(self.history) + 1

    def draw(self, i, j):
        won = None if i == j else duel(self.P, i, j, self.luck)
        if i != j:
            self.W[i, j] += won
            self.W[j, i] += 1 - won
        self.history.append((i, j, won))
        if len(self.history) == self.T:
            raise Over

    def mu(self, i, j):
        return 0.5 if i == j else self.W[i, j] / (self.W[i, j] + self.W[j, i])

    def N(self, i, j):
        return 0 if i == j else self.W[i, j] + self.W[j, i]

    def divergences(self):
        terms = np.zeros((self.K, self.K))
        for i in range(self.K):
            for j in range(self.K):
                if i != j and self.mu(i, j) <= 0.5:
                    terms[i, j] = np.floor(self.N(i, j) * theory.kl(self.mu(i, j), 0.5) * 2**36 + 0.5) / 2**36
        return terms.sum(axis=1)

    def best(self):
        divergences = self.divergences()
        return pick(np.flatnonzero(divergences == divergences.min()).tolist(), self.coin)

    def draw_all(self, times):
        while any(self.N(i, j) < times() for i in range(self.K) for j in range(i)):
            for a in range(self.K):
                for b in range(a + 1, self.K):
                    while self.N(self.order[a], self.order[b]) < times():
                        self.draw(self.order[a], self.order[b])

    def play(self):
        self.order = []
        for arm in range(self.K):  # the "arbitrarily fixed order": uniformly random
            place = pick(range(arm + 1), self.coin)
            self.order.append(arm)
            self.order[place], self.order[arm] = arm, self.order[place]
        L = max(math.ceil(self.alpha * math.log(math.log(self.T))), 1) if self.version == "2FH" else 1  # line 2
        self.draw_all(lambda: L)  # line 3
        if self.version == "2FH":  # line 4
            best = self.best()
            self.fixed = [self.b_star(i, best) for i in range(self.K)]
        L_C = L_R = set(range(self.K))  # line 5
        while True:  # line 6
            if self.version == 2:  # lines 7 to 9
                self.draw_all(lambda: self.alpha * math.log(max(math.log(self.t), 1)))
            L_N = set()
            for arm in [i for i in self.order if i in L_C]:  # line 10
                m = self.opponent(arm)  # line 11
                t = self.t
                self.draw(arm, m)  # line 12
                L_R = L_R - {arm}  # line 13
                I = self.divergences()  # noqa: E741
                L_N |= {j for j in range(self.K) if j not in L_R and I[j] - I.min() <= math.log(t) + self.f}  # 14
            L_C = L_R = L_N  # line 17

    def opponent(self, arm):
        best = self.best()
        if self.version == 1:
            return self.algorithm_2(arm, best)
        b = self.b_star(arm, best) if self.version == 2 else self.fixed[arm]
        log_log = math.log(max(math.log(self.t if self.version == 2 else self.T), 1))
        ahead = b is not None and self.mu(arm, b) <= 0.5
        if ahead and (arm == best or self.N(arm, best) * log_log >= self.N(arm, b)):  # Algorithm 3
            return b
        return self.algorithm_2(arm, best)

    def algorithm_2(self, arm, best):
        ahead = [j for j in range(self.K) if j != arm and self.mu(arm, j) <= 0.5]
        if best in ahead or not ahead:
            return best
        lowest = min(self.mu(arm, j) for j in ahead)
        return pick([j for j in ahead if self.mu(arm, j) == lowest], self.coin)

    def b_star(self, i, best):
        """Equation (6) with d⁺: only arms ahead of i have a finite ratio."""
        ratio = {}
        for j in range(self.K):
            if j != i and self.mu(i, j) < 0.5:
                d = np.floor(self.N(i, j) * theory.kl(self.mu(i, j), 0.5) * 2**36 + 0.5) / 2**36
                ratio[j] = (self.mu(best, i) - 0.5 + (self.mu(best, j) - 0.5)) * self.N(i, j) / d
        return pick([j for j in ratio if ratio[j] == min(ratio.values())], self.coin) if ratio else None


def compare(chosen, version, arms, horizon, **parameters):
    self_duels = 0
    for seed in range(4):
        matrix = random_matrix(arms, seed)
        coin, luck = loop.streams(seed, 0)
        listing = Listing(matrix, horizon, coin, luck, version, **parameters)
        history, _, luck_state = compiled_history(chosen, matrix, horizon, seed)
        assert history == winners(listing.history)
        assert luck_state == luck.bit_generator.state
        self_duels += sum(i == j for i, j in history)
    return self_duels


@pytest.mark.parametrize(("arms", "horizon"), [pytest.param(2, 200, marks=pytest.mark.deep), (3, 400), (6, 250)])
def test_same_duels_as_the_listing(arms, horizon):
    assert compare(RMED1, 1, arms, horizon) > 0


def told(chosen, arms, answers, horizon=1000):
    state = chosen.start(arms, horizon)
    for i, j, won in answers:
        chosen.module.update(state, chosen.params, 1, i, j, won)
    return state


# 0 beat 1 in 2 of 2 and 2 in 3 of 4; 1 and 2 are level at 1 : 1.
BY_HAND = [(0, 1, 1.0)] * 2 + [(0, 2, 1.0)] * 3 + [(0, 2, 0.0), (1, 2, 1.0), (2, 1, 1.0)]


def test_indices_by_hand():
    # I_0 = 0. I_1 = 2 kl(0, ½) + 2 kl(½, ½) = 2 ln 2 = 1.3863. I_2 = 4 kl(¼, ½) = ln ½ + 3 ln 1.5 = 0.5232.
    state = told(RMED1, 3, BY_HAND)
    assert state.divergence == pytest.approx([0, 2 * math.log(2), 3 * math.log(1.5) - math.log(2)], abs=1e-10)
    assert state.divergence == pytest.approx([0, 1.3863, 0.5232], abs=1e-4)
    assert {int(rmed1.recommend(state, np.random.default_rng(s))) for s in range(20)} == {0}


def test_opponents_by_hand():
    rng = np.random.default_rng(0)
    state = told(RMED1, 3, BY_HAND)
    assert [int(rmed1.opponent(state, arm, 0, rng)) for arm in range(3)] == [0, 0, 0]  # 0 has nobody ahead: itself
    # A cycle 0 > 1 > 2 > 0, 2 to 1 each but 3 to 1 for 2 over 0. If 1 were the best arm, 0, which beats it, would
    # duel the arm with its lowest μ: 2 (¼).
    cycle = [(0, 1, 1.0), (0, 1, 1.0), (0, 1, 0.0), (1, 2, 1.0), (1, 2, 1.0), (1, 2, 0.0), (2, 0, 0.0)]
    state = told(RMED1, 3, cycle + [(2, 0, 1.0)] * 3)
    assert int(rmed1.opponent(state, 0, 1, rng)) == 2
    assert int(rmed1.opponent(state, 2, 1, rng)) == 1
    assert int(rmed1.opponent(state, 1, 1, rng)) == 0


def test_the_loop_and_its_end_by_hand():
    # f(3) = 0.3 · 3^1.01 = 0.90994. After the first loop of 0, 1, 2: I_1 − I_0 = 1.3863 ≤ ln t + 0.9099 from
    # t = e^0.4764 = 1.61 on, so all stay. With 40 lost duels more for both, I_1 = 42 ln 2 = 29.11 is allowed
    # from t = e^(29.11 − 0.91) = 1.77·10¹² on, I_2 = 44 kl(1/44, ½) = 25.73 from e^24.82 = 6·10¹⁰ on.
    assert RMED1.start(3, 100).tolerance == pytest.approx(0.90994, abs=1e-5)
    state = told(RMED1, 3, [*BY_HAND, *[(0, 1, 1.0)] * 40, *[(0, 2, 1.0)] * 40])
    rng = np.random.default_rng(0)
    first = [tuple(map(int, rmed1.select(state, RMED1.params, t, rng))) for t in (9, 10, 11)]
    assert sorted(first) == [(0, 0), (1, 0), (2, 0)]
    assert tuple(map(int, rmed1.select(state, RMED1.params, 12, rng))) == (0, 0)
    until = int(rmed1.skip(state, RMED1.params, 12))
    gap = float(state.divergence[2])
    assert gap <= math.log(until - 1) + state.tolerance
    assert gap > math.log(until - 2) + state.tolerance
    assert until == pytest.approx(math.exp(gap - state.tolerance), rel=1e-9)
    assert 5e10 < until < 7e10
    before = deepcopy(state)
    assert tuple(map(int, rmed1.select(before, RMED1.params, until - 1, rng))) == (0, 0)
    state_at = deepcopy(state)
    duels_then = {tuple(map(int, rmed1.select(state_at, RMED1.params, until + k, rng))) for k in range(2)}
    assert duels_then == {(0, 0), (2, 0)}


def test_initial_phase_draws_every_pair_once_in_random_order():
    seen = set()
    for seed in range(40):
        state, rng = RMED1.start(4, 100), np.random.default_rng(seed)
        pairs = []
        for t in range(1, 7):
            i, j = map(int, rmed1.select(state, RMED1.params, t, rng))
            rmed1.update(state, RMED1.params, t, i, j, 1.0)
            pairs.append((min(i, j), max(i, j)))
        assert len(set(pairs)) == 6
        seen.add(pairs[0])
    assert len(seen) == 6


def test_first_allowed_is_exact():
    rng = np.random.default_rng(0)
    for tolerance in (0.0, 0.91, 20.0):
        for gap in tolerance + rng.uniform(0.1, 34, 2000):
            t = rmed1.first_allowed(float(gap), tolerance)
            assert gap <= math.log(t) + tolerance
            assert t == 1 or gap > math.log(t - 1) + tolerance
    assert rmed1.first_allowed(0.0, 1.0) == 1
    assert rmed1.first_allowed(1e300, 1.0) == FOREVER


def test_finds_the_winner_with_sublinear_regret():
    """In 100 other runs the mean of ten was 7.5 standard errors clear of the bound: a false alarm in 10¹⁰ or fewer."""
    results = duels.simulate("arithmetic-8", RMED1, horizon=20_000, runs=10, checkpoints=[10_000], seed=1)
    half, full = results.summarise()["regret"].to_list()
    assert full - half < 0.3 * half
    assert results.final()["accuracy"].item() >= 0.9


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(RMED1)


@pytest.mark.parametrize("spec", [{"scale": -1}, {"power": -0.1}])
def test_parameters(spec):
    with pytest.raises(duels.InvalidInput, match="expected 0 or a positive number"):
        duels.policy(RMED1, **spec)
