"""Doubling: rounds that are fresh runs of the inner policy, its parameters, its compiled code, and live play."""

import importlib
import math
import pickle
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from oracles.draws import duel

import duels
from duels.engine import loop
from duels.errors import InvalidInput, UnknownName
from duels.policies import savage
from duels.study.state.policy_state import PolicyState

doubling = importlib.import_module("duels.policies.doubling")
INNER = ("savage", "btm", "interleaved_filter")
STAR = np.full((4, 4), 0.5)
STAR[2, :], STAR[:, 2] = 0.9, 0.1
STAR[2, 2] = 0.5


@pytest.mark.parametrize("inner", INNER)
def test_a_restart_equals_a_fresh_start(inner):
    chosen = duels.policies.load_policy(inner)
    state, rng = chosen.start(4, 500), np.random.default_rng(0)
    before = deepcopy(state)
    for t in range(1, 501):
        i, j = chosen.module.select(state, chosen.params, t, rng)
        chosen.module.update(state, chosen.params, t, i, j, duel(STAR, i, j, rng))
    with pytest.raises(AssertionError):
        np.testing.assert_equal(state, before)
    for horizon in (500, 7):
        chosen.module.restart(state, chosen.params, horizon)
        np.testing.assert_equal(state, chosen.start(4, horizon))
        assert [one.dtype for one in state[:8]] == [one.dtype for one in chosen.start(4, horizon)[:8]]


def trick(P, inner, horizon, coin, luck):
    """The doubling trick, literally: fresh runs of the inner policy with horizons 1, 2, 4, …"""
    history, t, length = [], 1, 1
    while True:
        state = inner.start(len(P), length)
        for s in range(1, length + 1):
            if t > horizon:
                return history
            i, j = map(int, inner.module.select(state, inner.params, s, coin))
            if i != j or inner.module.skip(state, inner.params, s) <= s:
                inner.module.update(state, inner.params, s, i, j, duel(P, i, j, luck))
            history.append((i, j))
            t += 1
        inner.module.recommend(state, coin)  # the round's answer breaks its ties with the same coin
        length *= 2


@pytest.mark.parametrize("spec", ["savage", "savage:sampling=least,delta=0.2", "btm:gamma=0.3", "interleaved_filter"])
def test_same_duels_as_fresh_runs(spec):
    inner = duels.policies.load_policy(spec)
    chosen = duels.policies.load_policy(doubling, policy=inner.name, **inner.params._asdict())
    for seed in range(2):
        coin, luck = loop.streams(seed, 0)
        expected = trick(STAR, inner, 3000, coin, luck)
        ours, luck_of_ours = loop.streams(seed, 0)
        state, history = chosen.start(4), []
        for t in range(1, 3001):
            i, j = map(int, chosen.module.select(state, chosen.params, t, ours))
            if i != j or chosen.module.skip(state, chosen.params, t) <= t:
                chosen.module.update(state, chosen.params, t, i, j, duel(STAR, i, j, luck_of_ours))
            history.append((i, j))
        assert history == expected
        assert ours.bit_generator.state == coin.bit_generator.state


def test_rounds_by_hand():
    # SAVAGE on 3 arms, δ = 1/T: ln(3·2·T²). Rounds begin at t = 1, 2, 4, 8 with T = 1, 2, 4, 8.
    chosen = duels.policies.load_policy(doubling)
    state, rng = chosen.start(3), np.random.default_rng(0)
    for t, (start, horizon) in {1: (1, 1), 2: (2, 2), 3: (2, 2), 4: (4, 4), 7: (4, 4), 8: (8, 8)}.items():
        chosen.module.select(state, chosen.params, t, rng)
        assert (state.start[0], state.end[0]) == (start, 2 * start)
        assert state.log_term[0] == pytest.approx(math.log(6 * horizon**2))
    # A time far ahead goes through all the rounds in between.
    chosen.module.select(state, chosen.params, 1000, rng)
    assert (state.start[0], state.end[0]) == (512, 1024)


def test_the_round_before_is_recommended_until_this_one_is_certain():
    chosen = duels.policies.load_policy(doubling)
    state, rng = chosen.start(2), np.random.default_rng(0)
    chosen.module.select(state, chosen.params, 64, rng)
    for t in range(64, 128):
        chosen.module.update(state, chosen.params, t, 1, 0, 1.0)
    chosen.module.select(state, chosen.params, 128, rng)
    assert state.last[0] == 1
    chosen.module.update(state, chosen.params, 128, 0, 1, 1.0)  # one duel of this round says otherwise
    assert int(chosen.module.recommend(state, rng)) == 1
    for t in range(129, 180):  # ln(2·128²) = 10.4: certain after 21 duels
        chosen.module.update(state, chosen.params, t, 0, 1, 1.0)
    assert int(chosen.module.recommend(state, rng)) == 0
    # The arm that is left duels itself, but only to the end of the round.
    assert tuple(map(int, chosen.module.select(state, chosen.params, 180, rng))) == (0, 0)
    assert chosen.module.skip(state, chosen.params, 180) == 256


def test_names_and_parameters():
    assert str(duels.policies.load_policy(doubling)) == "doubling"
    chosen = duels.policies.load_policy(doubling, policy="btm", gamma=0.3)
    assert str(chosen) == "doubling:policy=btm,gamma=0.3"
    assert not chosen.needs_horizon
    assert duels.policies.load_policy(chosen, gamma=2).params == ("btm", 2.0)
    back = pickle.loads(pickle.dumps(chosen))
    assert (str(back), back.module) == (str(chosen), chosen.module)
    with pytest.raises(
        InvalidInput, match="policy of doubling is 'rucb': expected one that can be restarted: savage, btm"
    ):
        duels.policies.load_policy(doubling, policy="rucb")
    with pytest.raises(InvalidInput, match="policy of doubling is 'doubling'"):
        duels.policies.load_policy(doubling, policy="doubling")
    with pytest.raises(UnknownName, match="unknown parameter of doubling 'gamma'"):
        duels.policies.load_policy(doubling, gamma=0.3)  # savage has none
    with pytest.raises(InvalidInput, match=r"gamma of btm is 0\.0"):
        duels.policies.load_policy(doubling, policy="btm", gamma=0)


def test_intervals_are_the_inner_policys():
    chosen = duels.policies.load_policy(doubling, delta=0.1)
    state = chosen.start(3)
    chosen.module.select(state, chosen.params, 1024, np.random.default_rng(0))
    for t in range(1024, 1046):
        chosen.module.update(state, chosen.params, t, 0, 1, 1.0)
    _, upper = chosen.module.bounds(state, chosen.params, 1046)
    assert upper[1, 0] == pytest.approx(math.sqrt(math.log(6 * 1024 / 0.1) / 44))
    assert chosen.kernel("explored") is None


def test_the_fingerprint_sees_the_inner_kernels(monkeypatch):
    before = loop.code_of(duels.policies.load_policy(doubling))
    assert loop.code_of(duels.policies.load_policy(doubling)) == before
    assert loop.code_of(duels.policies.load_policy(doubling, policy="btm")) != before
    monkeypatch.setattr(savage, "leave", lambda state, t, loser: None)  # a helper of a kernel in another file
    assert loop.code_of(duels.policies.load_policy(doubling)) != before
    monkeypatch.undo()
    monkeypatch.setattr(savage, "FOREVER", 1 << 61)
    assert loop.code_of(duels.policies.load_policy(doubling)) != before


PROBE = """
import numpy as np, duels, importlib
from duels.engine import loop
chosen = duels.policies.load_policy(importlib.import_module("duels.policies.doubling"))
matrix = duels.load_problem("cyclic-4").array
play = loop.ready(chosen, 4, 3000, matrix)
tally = loop.new_tally(4)
coin, luck = loop.streams(0, 0)
play(chosen.start(4), chosen.params, matrix, tally, 1, 3000, loop.FOREVER, 9000, coin, luck, coin)
print(duels.__file__, sum(play.stats.cache_hits.values()), tally.wins.tolist())
"""


@pytest.mark.deep
def test_compiled_code_is_kept_on_disk_and_never_stale(tmp_path):
    source = Path(duels.__file__).parent
    shutil.copytree(source, tmp_path / "duels", ignore=shutil.ignore_patterns("__pycache__"))

    def probe():
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        found = subprocess.run(
            [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True
        )
        file, hits, result = found.stdout.split(" ", 2)
        assert file == str(tmp_path / "duels" / "__init__.py")
        return int(hits), result

    _, before = probe()
    assert probe() == (1, before)
    inner = tmp_path / "duels" / "policies" / "savage.py"
    text = inner.read_text()
    assert text.count("2.0 * n * state.log_term[0]") == 1
    inner.write_text(text.replace("2.0 * n * state.log_term[0]", "0.5 * n * state.log_term[0]"))
    hits, edited = probe()
    assert (hits, edited != before) == (0, True)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_live_play_goes_through_the_same_states(compiled):
    chosen = duels.policies.load_policy(doubling, policy="btm", gamma=0.3)
    coin, luck = loop.streams(5, 0)
    state, answers = chosen.start(3), []
    player, restored = PolicyState(chosen, 3, None, 5), PolicyState(chosen, 3, None, 6)
    for t in range(1, 400):
        i, j = map(int, chosen.module.select(state, chosen.params, t, coin))
        won = duel(STAR, i, j, luck)
        if i != j or chosen.module.skip(state, chosen.params, t) <= t:
            chosen.module.update(state, chosen.params, t, i, j, won)
        answers.append((i, j, won))
    first, second, outcomes = (np.array(column) for column in zip(*answers))
    player.enter(first[:200], second[:200], outcomes[:200])
    saved = player.save()
    assert {f"state_{name}" for name in ("log_term", "start", "end", "last")} <= set(saved.arrays)
    restored.restore(deepcopy(saved))
    if compiled:
        restored.compile()
    for one in (player, restored):
        one.enter(first[200:], second[200:], outcomes[200:])
        np.testing.assert_equal(one.state, state)
        assert one.coin.bit_generator.state == coin.bit_generator.state


def test_regret_falls_and_is_more_than_the_inner_policys():
    # Ten seeded runs of each. Every round costs nearly what SAVAGE, told the horizon, spends once: log² T, not log T.
    results = duels.simulate(STAR, duels.policies.load_policy(doubling), horizon=20_000, runs=10, checkpoints=[10_000])
    half, whole = results.summarize()["regret"]
    assert whole - half < 0.5 * half
    assert results.final()["accuracy"].item() == 1.0
    known = duels.simulate(STAR, "savage", horizon=20_000, runs=10).final()["regret"].item()
    assert whole > 2 * known
