"""MultiSBM against the literal listing, by hand, and on a problem it is made for."""

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

multisbm = duels.policy(importlib.import_module("duels.policies.multisbm"))


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(multisbm)


class Machine:
    """A singleton bandit machine: UCB with a clock of its own."""

    def __init__(self, arms, alpha):
        self.plays, self.wins, self.alpha, self.t = [0] * arms, [0.0] * arms, alpha, 0

    def advance(self, coin):
        self.t += 1
        radius = math.sqrt(self.alpha * math.log(self.t))
        index = [w / n + radius * (1 / math.sqrt(n)) if n else math.inf for w, n in zip(self.wins, self.plays)]
        return oracles.pick([k for k in range(len(index)) if index[k] == max(index)], coin)

    def feedback(self, arm, reward):
        self.plays[arm] += 1
        self.wins[arm] += reward


def listing(P, horizon, coin, luck, alpha):
    machines = [Machine(len(P), alpha) for _ in P]
    y = oracles.pick(range(len(P)), coin)
    history = []
    for _ in range(horizon):
        x, machine = y, machines[y]
        y = machine.advance(coin)
        machine.feedback(y, 1 - oracles.duel(P, x, y, luck))
        history.append((x, y))
    return history


@pytest.mark.parametrize(("arms", "alpha"), [(2, 2.5), (3, 0.5), (6, 2.5)])
def test_same_duels_as_the_listing(arms, alpha):
    rng = np.random.default_rng(arms)
    for seed in range(3):
        upper = np.triu(rng.random((arms, arms)), 1)
        P = upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2
        coin, luck = loop.streams(seed, 0)
        expected = listing(P, 600, coin, luck, alpha)
        chosen = duels.policy(multisbm, alpha=alpha)
        ours, luck_of_ours = loop.streams(seed, 0)
        state, history = chosen.start(arms), []
        for t in range(1, 601):
            i, j = map(int, chosen.module.select(state, chosen.params, t, ours))
            assert chosen.module.skip(state, chosen.params, t) == t
            chosen.module.update(state, chosen.params, t, i, j, oracles.duel(P, i, j, luck_of_ours))
            history.append((i, j))
        assert history == expected
        assert ours.bit_generator.state == coin.bit_generator.state


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


def test_regret_falls():
    # Arm 2 beats four equal arms with probability 0.8. Ten seeded runs: regret in the second half is 0.12 of that of
    # the first, its spread over runs 0.023; the bar of ½ is more than ten standard deviations away.
    P = np.full((5, 5), 0.5)
    P[2, :], P[:, 2] = 0.8, 0.2
    P[2, 2] = 0.5
    results = duels.simulate(P, multisbm, horizon=20_000, runs=10, checkpoints=[10_000])
    half, whole = results.summarise()["regret"]
    assert whole - half < 0.5 * half
    assert results.final()["accuracy"].item() == 1.0


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
def test_bad_parameters(alpha):
    with pytest.raises(InvalidInput, match=r"alpha of multisbm is .* expected a positive number"):
        duels.policy(multisbm, alpha=alpha)
