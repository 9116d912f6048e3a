"""Sparring against the literal two players, by hand, and on a problem it is made for."""

import importlib
import math
from copy import deepcopy

import numpy as np
import oracles
import pytest

import duels
from duels import testing
from duels.engine import loop
from duels.errors import InvalidInput

sparring = duels.policy(importlib.import_module("duels.policies.sparring"))


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(sparring)


def listing(P, horizon, coin, luck, alpha):
    """Two UCB1 players that see nothing but their own arms and wins."""
    K = len(P)
    plays, wins = [[0] * K, [0] * K], [[0.0] * K, [0.0] * K]
    history = []
    for t in range(1, horizon + 1):
        chosen = []
        for n, w in zip(plays, wins):
            index = [
                w[k] / n[k] + math.sqrt(alpha * math.log(t)) * (1 / math.sqrt(n[k])) if n[k] else math.inf
                for k in range(K)
            ]
            chosen.append(oracles.pick([k for k in range(K) if index[k] == max(index)], coin))
        won = oracles.duel(P, *chosen, luck)
        for side, reward in ((0, won), (1, 1 - won)):
            plays[side][chosen[side]] += 1
            wins[side][chosen[side]] += reward
        history.append(tuple(chosen))
    return history


@pytest.mark.parametrize(("arms", "alpha"), [(2, 2.0), (3, 0.5), (6, 2.0)])
def test_same_duels_as_the_listing(arms, alpha):
    rng = np.random.default_rng(arms)
    for seed in range(3):
        upper = np.triu(rng.random((arms, arms)), 1)
        P = upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2
        coin, luck = loop.streams(seed, 0)
        expected = listing(P, 600, coin, luck, alpha)
        chosen = duels.policy(sparring, alpha=alpha)
        ours, luck_of_ours = loop.streams(seed, 0)
        state, history = chosen.start(arms), []
        for t in range(1, 601):
            i, j = map(int, chosen.module.select(state, chosen.params, t, ours))
            assert chosen.module.skip(state, chosen.params, t) == t  # a self-duel is played out like any other
            chosen.module.update(state, chosen.params, t, i, j, oracles.duel(P, i, j, luck_of_ours))
            history.append((i, j))
        assert history == expected
        assert ours.bit_generator.state == coin.bit_generator.state
        assert any(i == j for i, j in history)


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


def test_regret_falls():
    # Arm 2 beats four equal arms with probability 0.8. Ten seeded runs: regret in the second half is 0.17 of that of
    # the first, its spread over runs 0.012; the bar of ½ is dozens of standard deviations away.
    P = np.full((5, 5), 0.5)
    P[2, :], P[:, 2] = 0.8, 0.2
    P[2, 2] = 0.5
    results = duels.simulate(P, sparring, horizon=20_000, runs=10, checkpoints=[10_000])
    half, whole = results.summarise()["regret"]
    assert whole - half < 0.5 * half
    assert results.final()["accuracy"].item() == 1.0


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
def test_bad_parameters(alpha):
    with pytest.raises(InvalidInput, match=r"alpha of sparring is .* expected a positive number"):
        duels.policy(sparring, alpha=alpha)
