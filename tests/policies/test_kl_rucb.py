"""KL-RUCB against the literal listing, duel for duel, and by hand."""

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
from duels.policies import kl_rucb
from duels.policies.divergences import kl_upper

KL_RUCB = duels.policy(importlib.import_module("duels.policies.kl_rucb"))


def listing(P, horizon, coin, luck, alpha=0.51):
    """RUCB's Algorithm 1 with other bounds, each computed at every step."""
    K = len(P)
    W = np.zeros((K, K))
    history = []
    for t in range(1, horizon + 1):
        n = W + W.T
        L = 2 * alpha * math.log(t)

        def below_half(i, j, n=n, L=L):
            return W[i, j] < W[j, i] and n[i, j] * theory.kl(W[i, j] / n[i, j], 0.5) > L

        pool = [i for i in range(K) if not any(below_half(i, j) for j in range(K))]
        c = pick(pool or range(K), coin)
        if all(below_half(j, c) for j in range(K) if j != c):
            history.append((c, c, None))
            continue
        u = {j: kl_upper(W[j, c] / n[j, c], n[j, c], L) if n[j, c] else 2.0 for j in range(K) if j != c}
        d = pick([j for j in u if u[j] == max(u.values())], coin)
        won = duel(P, c, d, luck)
        W[c, d] += won
        W[d, c] += 1 - won
        history.append((c, d, won))
    return history


@pytest.mark.parametrize("alpha", [0.51, 1.5])
@pytest.mark.parametrize(
    ("arms", "horizon"),
    [pytest.param(2, 300, marks=pytest.mark.deep), (3, 500), pytest.param(6, 500, marks=pytest.mark.deep)],
)
def test_same_duels_as_the_listing(arms, horizon, alpha):
    chosen = duels.policy(KL_RUCB, alpha=alpha)
    self_duels = 0
    for seed in range(4):
        matrix = random_matrix(arms, seed)
        coin, luck = loop.streams(seed, 0)
        expected = listing(matrix, horizon, coin, luck, alpha)
        history, coin_state, luck_state = compiled_history(chosen, matrix, horizon, seed)
        assert history == winners(expected)
        assert coin_state == coin.bit_generator.state
        assert luck_state == luck.bit_generator.state
        self_duels += sum(i == j for i, j in history)
    assert self_duels > 0 or arms == 6


def told(arms, answers):
    state = KL_RUCB.start(arms, 1000)
    for t, (i, j, won) in enumerate(answers, 1):
        kl_rucb.update(state, KL_RUCB.params, t, i, j, won)
    return state


def choices(state, t, draws=100):
    rng = np.random.default_rng(0)
    return {tuple(map(int, kl_rucb.select(deepcopy(state), KL_RUCB.params, t, rng))) for _ in range(draws)}


def test_steps_by_hand():
    # 0 beat 1 in 4 of 4: z_10 = 4 ln 2 = 2.7726 > 1.02 ln t until t = e^2.7182 = 15.15, so arm 1 is out up to t = 15;
    # RUCB's own bound lets it in from t = e^(1/0.51) = 7.1 on. Arm 2 has not played: u = 2 for it and against it.
    state = told(3, [(0, 1, 1.0)] * 4)
    assert state.z[1, 0] == pytest.approx(2.7726, abs=1e-4)
    assert choices(state, 15) == {(0, 2), (2, 0), (2, 1)}
    assert choices(state, 16) == {(0, 2), (1, 2), (2, 0), (2, 1)}


def test_bounds_by_hand():
    # At t = 10 the budget is 1.02 ln 10 = 2.3486. w = 0 of 4: u = 1 − e^(−2.3486/4) = 0.4441. w = 1 of 2:
    # ½ ln(1/4q(1−q)) = 1.1743, so that 4q(1−q) = e^−2.3486 = 0.09550 and q = ½ + ½√0.9045 = 0.97553.
    state = told(3, [(0, 1, 1.0)] * 4 + [(0, 2, 1.0), (0, 2, 0.0)])
    lower, upper = kl_rucb.bounds(state, KL_RUCB.params, 10)
    assert upper[1, 0] == pytest.approx(0.4441, abs=1e-4)
    assert lower[0, 1] == pytest.approx(0.5559, abs=1e-4)
    assert upper[0, 2] == upper[2, 0] == pytest.approx(0.97553, abs=1e-5)
    assert (upper[0, 1], upper[1, 2], lower[1, 2], upper[0, 0]) == (1, 2, -1, 0.5)


def test_bounds_are_within_rucbs():
    rng = np.random.default_rng(0)
    state = told(5, [(int(i), int(j), float(w)) for i, j, w in rng.integers(0, [5, 5, 2], (400, 3))])
    lower, upper = kl_rucb.bounds(state, KL_RUCB.params, 401)
    wide = theory.interval(state.wins, state.wins.T, 401, 0.51)
    off = ~np.eye(5, dtype=bool)
    assert (upper[off] <= wide.upper[off] + 1e-12).all()
    assert (lower[off] >= wide.lower[off] - 1e-12).all()


def test_tangents_bound_and_the_largest_is_exact():
    """At later and earlier times alike, from whatever time the tangents were drawn at."""
    rng = np.random.default_rng(1)
    state = told(8, [(int(i), int(j), float(w)) for i, j, w in rng.integers(0, [8, 8, 2], (900, 3))])
    for t in (1000, 3, 10**6, 50, 10**12, 2, 1001, 1):
        limit = 1.02 * math.log(t)
        for c in range(8):
            top = kl_rucb.highest(state, c, limit)
            n = state.wins[:, c] + state.wins[c]
            exact = [kl_upper(state.wins[j, c] / n[j], n[j], limit) if j != c else -1.0 for j in range(8)]
            assert top == max(exact)
            assert (state.score >= np.array(exact) - 1e-12).all()
            assert {j for j in range(8) if state.exact[j] and state.score[j] == top} == {
                j for j in range(8) if exact[j] == top
            }


def test_skip_ends_when_the_closest_arm_may_win_again():
    # 0 beat 1 and 2 in 20 of 20: frozen while 1.02 ln t < 20 ln 2 = 13.863, t < e^13.591 = 799,068 or so.
    state = told(3, [(0, 1, 1.0), (0, 2, 1.0)] * 20)
    assert choices(state, 100) == {(0, 0)}
    rng = np.random.default_rng(0)
    kl_rucb.select(state, KL_RUCB.params, 100, rng)
    until = int(kl_rucb.skip(state, KL_RUCB.params, 100))
    assert until == pytest.approx(math.exp(20 * math.log(2) / 1.02), abs=2)
    assert choices(state, until - 1) == {(0, 0)}
    assert (0, 0) not in choices(state, until)


def test_finds_the_winner_with_sublinear_regret():
    """In 100 other runs the mean of ten was 13 standard errors clear of the bound: a false alarm in 10¹⁰ or fewer."""
    results = duels.simulate("arithmetic-8", KL_RUCB, horizon=20_000, runs=10, checkpoints=[10_000], seed=1)
    half, full = results.summarise()["regret"].to_list()
    assert full - half < 0.5 * half
    assert results.final()["accuracy"].item() == 1


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(KL_RUCB)


def test_parameters():
    with pytest.raises(duels.InvalidInput, match="expected a positive number"):
        duels.policy(KL_RUCB, alpha=0)
    with pytest.warns(UserWarning, match="needs alpha > 0.5"):
        duels.policy(KL_RUCB, alpha=0.4)
