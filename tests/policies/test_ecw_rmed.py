"""ECW-RMED: its plan against a linear program, steps by hand, and a cycle."""

import importlib
import itertools
import math

import numpy as np
import pytest
from histories import CYCLE
from oracles.ecw_rmed import constraints, information, regret
from scipy.optimize import linprog

import duels
from duels.engine import loop
from duels.policies import ecw_rmed
from duels.policies.kernels import FOREVER

ECW_RMED = duels.policies.load_policy(importlib.import_module("duels.policies.ecw_rmed"))


def state_of(W):
    state = ECW_RMED.start(len(W))
    state.order[:] = np.arange(len(W))
    for i, j in itertools.combinations(range(len(W)), 2):
        for _ in range(int(W[i, j])):
            ecw_rmed.update(state, ECW_RMED.params, 1, i, j, 1.0)
        for _ in range(int(W[j, i])):
            ecw_rmed.update(state, ECW_RMED.params, 1, i, j, 0.0)
    ecw_rmed.refresh(state)
    return state


def random_wins(arms, seed):
    rng = np.random.default_rng(seed)
    return np.triu(rng.integers(1, 40, (arms, arms)), 1) + np.tril(rng.integers(1, 40, (arms, arms)), -1).astype(float)


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_the_optimum_of_the_linear_program(seed):
    W = random_wins(6, seed)
    state = state_of(W)
    L, told, n = (W.T > W).sum(axis=1), information(W), W + W.T
    assert state.losses.tolist() == L.tolist()
    prices = {}
    for i in np.flatnonzero(L.min() == L):
        variables = [(a, b) for a in range(6) for b in range(6) if W[a, b] > W[b, a]]
        rows = [[-told[p] / n[p] if p in c else 0.0 for p in variables] for c in map(set, constraints(W, i))]
        cost = [regret(L, *p) for p in variables]
        prices[i] = linprog(cost, A_ub=rows, b_ub=-np.ones(len(rows))).fun if rows else 0.0
        assert state.price[i].sum() == pytest.approx(prices[i], rel=1e-9, abs=1e-12)
        strengths = [sum(told[p] for p in c) for c in constraints(W, i)]
        assert state.depth[i].min() == pytest.approx(min(strengths, default=math.inf))
    assert prices[state.champion[0]] == pytest.approx(min(prices.values()), abs=1e-12)
    # and what is planned is a solution
    q = np.zeros((6, 6))
    for j in range(6):
        for k in range(state.plans[j]):
            q[state.planned[j, k], j] = state.rate[j, k]
    for c in constraints(W, int(state.champion[0])):
        assert sum(q[p] * told[p] / n[p] for p in c) >= 1 - 1e-9
    assert sum(q[i, j] * regret(L, i, j) for i in range(6) for j in range(6)) == pytest.approx(
        prices[state.champion[0]], abs=1e-12
    )


def test_what_is_kept_is_what_would_be_computed_anew():
    rng = np.random.default_rng(0)
    state = state_of(random_wins(5, 1))
    for _ in range(300):
        i, j, won = (int(x) for x in rng.integers(0, [5, 5, 2]))
        ecw_rmed.update(state, ECW_RMED.params, 1, i, j, float(won))
        ecw_rmed.refresh(state)
    anew = state_of(state.wins)
    winners_now = state.losses == state.losses.min()
    for name in ("told", "margin", "nearest", "losses", "champion", "sure", "strength", "plans"):
        np.testing.assert_array_equal(getattr(state, name), getattr(anew, name))
    np.testing.assert_array_equal(state.depth[winners_now], anew.depth[winners_now])
    np.testing.assert_array_equal(state.price[winners_now], anew.price[winners_now])
    for j in range(5):
        np.testing.assert_array_equal(state.planned[j, : state.plans[j]], anew.planned[j, : state.plans[j]])
        np.testing.assert_array_equal(state.rate[j, : state.plans[j]], anew.rate[j, : state.plans[j]])


def test_majorities_against_the_champion_are_not_questioned():
    """Conditions (a) and (b) and the plan are about pairs in which the champion is ahead, and pairs of other arms.

    A Condorcet winner that is behind some arms by bad luck stays behind, and duels are chosen as if these beat it.
    """
    rng, seen = np.random.default_rng(2), 0
    for _ in range(60):
        K, params = 6, ecw_rmed.Params()
        state = ecw_rmed.init(K, 0, params)
        state.order[:] = rng.permutation(K)
        for i, j in itertools.combinations(range(K), 2):
            for outcome in rng.integers(2, size=7).tolist():
                ecw_rmed.update(state, params, 1, i, j, float(outcome))
        ecw_rmed.refresh(state)
        champion = state.champion[0]
        ahead = {k for k in range(K) if state.wins[k, champion] > state.wins[champion, k]}
        planned = {(int(state.planned[j, k]), j) for j in range(K) for k in range(state.plans[j])}
        assert planned
        assert not {(k, champion) for k in ahead} & planned
        assert not {(champion, k) for k in ahead} & planned
        seen += len(ahead) > 0
    assert seen >= 20


def test_a_condorcet_winner_by_hand():
    # 0 beat 1 in 4 of 4 and 2 in 3 of 4; 1 beat 2 in 4 of 4. L = (0, 1, 2). No condition (b): even if all majorities
    # but those of 0 were wrong, nobody would have fewer losses than 0. (a): 4 ln 2 = 2.773 and 4 kl(¼, ½) = 0.523.
    state = state_of(np.array([[0, 4, 3], [0, 0, 4], [1, 0, 0.0]]))
    assert state.losses.tolist() == [0, 1, 2]
    assert state.strength[0] == pytest.approx(0.5232, abs=1e-4)
    assert (state.sure[0], state.champion[0]) == (0, 0)
    # q = 1/kl: against 1 it is 1/ln 2 = 1.4427, against 2 it is 1/0.13081 = 7.6446; against others nothing.
    assert state.plans.tolist() == [0, 1, 1]
    assert state.rate[1, 0] == pytest.approx(1.4427, abs=1e-4)
    assert state.rate[2, 0] == pytest.approx(7.6446, abs=1e-4)
    # Regrets (L_0 + L_j)/(2·2) = ¼ and ½: ¼ · 1.4427 + ½ · 7.6446 = 4.1830.
    assert state.price[0].sum() == pytest.approx(4.1830, abs=1e-4)


def test_a_cycle_by_hand():
    # 0 > 1 > 2 > 0, in 4 of 4, 4 of 4 and 3 of 4. L = (1, 1, 1): all are winners. For 0: (a) its win over 1, 2.773; (b)
    # arm 1's superiors but 0: none. Arm 2's: {1}, needed 1: 2.773. So 0 is certain with 2.773 up to t = 16 = e^2.773.
    # For 1: its win over 2, and arm 0's superior 2: 0.523. For 2: its win over 0, 0.523.
    state = state_of(np.array([[0, 4, 1], [0, 0, 4], [3, 0, 0.0]]))
    assert state.losses.tolist() == [1, 1, 1]
    assert state.depth.min(axis=1) == pytest.approx([2.7726, 0.5232, 0.5232], abs=1e-4)
    assert state.sure[0] == 0
    assert ecw_rmed.first_beyond(state.strength[0]) in (16, 17)
    # Of the three winners it recommends the one whose self-duels it plays …
    assert {ecw_rmed.recommend(state, np.random.default_rng(k)) for k in range(20)} == {0}
    state.losses[0] = 2  # … while it is one of them
    assert {ecw_rmed.recommend(state, np.random.default_rng(k)) for k in range(20)} == {1, 2}


def test_times_are_exact():
    rng = np.random.default_rng(0)
    for strength in rng.uniform(0.1, 34, 2000):
        t = ecw_rmed.first_beyond(float(strength))
        assert math.log(t) > strength >= math.log(t - 1)
    assert ecw_rmed.first_beyond(1e300) == FOREVER
    for met in range(1, 17):
        t = ecw_rmed.first_short(float(met), 3.0)
        assert 3 * math.sqrt(math.log(t)) > met >= 3 * math.sqrt(math.log(t - 1))
    assert ecw_rmed.first_short(5.0, 0.0) == FOREVER


def test_finds_copeland_winners_of_a_cycle():
    """CYCLE's arms 0, 1 and 2 beat two each and lose to one; arm 3 loses to all. No Condorcet winner.

    Hardly any duel of the second half is with arm 3, which has a third of the regret per duel of any pair with it.
    """
    horizon = 20_000
    play = loop.ready(ECW_RMED, 4, horizon, CYCLE)
    first, second = 0.0, 0.0
    for run in range(10):
        state, tally = ECW_RMED.start(4), loop.new_tally(4)
        coin, luck = loop.streams(2, run)
        play(state, ECW_RMED.params, CYCLE, tally, 1, horizon // 2, FOREVER, FOREVER, coin, luck, coin)
        half = tally.played[3]
        _, arm = play(
            state, ECW_RMED.params, CYCLE, tally, horizon // 2 + 1, horizon, FOREVER, FOREVER, coin, luck, coin
        )
        first, second = first + half, second + tally.played[3] - half
        assert arm in (0, 1, 2)
        assert np.trace(tally.wins) > 0.9 * horizon
    assert second < 0.3 * first
