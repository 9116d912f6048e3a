"""The loop: compiled as interpreted, resumable anywhere, exact at late times."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from histories import frozen

import duels
from duels import testing
from duels.engine import loop
from duels.errors import InvalidInput
from duels.policies import load_policy, random
from duels.policies.kernels import FOREVER

SPECS = ["rucb", "rucb:alpha=0.8,variant=icml", "savage", "btm:gamma=0.3", "interleaved_filter", "random"]


def trace(play, chosen, matrix, horizon, seed, stride=FOREVER, pieces=None):
    """All that a run leaves behind, played in one go or in pieces of time or of budget."""
    state, tally = chosen.start(len(matrix), horizon), loop.new_tally(len(matrix))
    coin, luck = loop.streams(seed, 0)
    t = 1
    while t <= horizon:
        until = min(horizon, t + int(pieces.integers(1, 50))) if pieces else horizon
        budget = int(pieces.integers(1, 50)) if pieces else FOREVER
        t, _ = play(state, chosen.params, matrix, tally, t, until, stride, budget, coin, luck, np.random.default_rng(0))
    return state, tally, coin.bit_generator.state, luck.bit_generator.state


def problems():
    yield duels.load_problem("arxiv-6").array
    yield duels.load_problem("cyclic-4").array
    yield duels.load_problem("random-condorcet:arms=9,seed=1").array
    yield duels.load_problem("bradley-terry:arms=2,spread=3").array
    yield frozen([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]])  # no winner at all


@pytest.mark.parametrize("spec", SPECS)
def test_compiled_is_interpreted_draw_for_draw(spec):
    chosen = load_policy(spec)
    for k, matrix in enumerate(problems()):
        compiled = loop.ready(chosen, len(matrix), 700, matrix)
        interpreted = loop.bind(chosen, compiled=False)
        for seed in range(k, k + 3):
            a, b = (trace(play, chosen, matrix, 700, seed) for play in (compiled, interpreted))
            np.testing.assert_equal(a, b)


@pytest.mark.parametrize("spec", SPECS)
def test_skipping_is_stepping(spec):
    chosen = load_policy(spec)
    for k, matrix in enumerate(problems()):
        play = loop.ready(chosen, len(matrix), 20_000, matrix)
        for seed in range(k, k + 5):
            a, b = (trace(play, chosen, matrix, 20_000, seed, stride) for stride in (FOREVER, 1))
            np.testing.assert_equal(a, b)


@pytest.mark.deep
@pytest.mark.parametrize("spec", ["rucb", "rucb:alpha=0.8,variant=icml", "rucb:alpha=1.5", "rucb:alpha=0.3"])
@pytest.mark.filterwarnings("ignore:rucb with alpha")
def test_skipping_is_stepping_at_length(spec):
    chosen = load_policy(spec)
    for arms in (2, 3, 5, 16):
        for seed in range(5):
            matrix = duels.load_problem(f"random-condorcet:arms={arms},seed={seed},gap=0.1").array
            play = loop.ready(chosen, arms, 3_000_000, matrix)
            a, b = (trace(play, chosen, matrix, 3_000_000, seed, stride) for stride in (FOREVER, 1))
            np.testing.assert_equal(a, b)


@pytest.mark.parametrize("spec", SPECS)
def test_a_run_can_be_interrupted_anywhere(spec):
    chosen, matrix = load_policy(spec), duels.load_problem("arxiv-6").array
    play = loop.ready(chosen, 6, 5000, matrix)
    whole = trace(play, chosen, matrix, 5000, 3)
    np.testing.assert_equal(whole, trace(play, chosen, matrix, 5000, 3, pieces=np.random.default_rng(1)))


def test_self_duels_that_teach_are_drawn():
    """Beat the Mean's self-duels are decided by a fair coin of the world; the others' are not drawn at all."""
    matrix = frozen(np.full((3, 3), 0.5))
    for spec, drawn in (("btm", True), ("rucb", False)):
        chosen = load_policy(spec)
        play = loop.ready(chosen, 3, 1000, matrix)
        _, tally, _, luck_state = trace(play, chosen, matrix, 1000, 0)
        _, luck = loop.streams(0, 0)
        luck.random(1000 if drawn else round(tally.wins.sum() - tally.wins.trace()))
        assert luck_state == luck.bit_generator.state


def test_tally_counts_every_step():
    chosen, matrix = load_policy("rucb"), duels.load_problem("cyclic-4").array
    play = loop.ready(chosen, 4, 10**15, matrix)
    _, tally, _, _ = trace(play, chosen, matrix, 10**15, 0)
    assert tally.wins.sum() == 10**15


@pytest.mark.parametrize("late", [10**6, 10**9, 10**12, 10**15])
def test_late_jumps_land_where_the_choice_changes(late):
    """One step before the time that `skip` names the choice is still the self-duel, at that time it is not."""
    chosen = load_policy("rucb")
    rng = np.random.default_rng(late)
    for _ in range(200):
        state = chosen.start(2)
        # z = n/4 when one arm won all n duels; put it near α ln t by hand, with all its roundings.
        z = 0.51 * math.log(late) * rng.uniform(0.98, 1.0)
        chosen.module.update(state, chosen.params, 1, 0, 1, 1.0)
        state.z[1, 0], state.worst[1] = z, z
        state.share[0, 1], state.width[0, 1] = 0.0, 0.0  # u_10 far below ½: only z decides
        state.limits[:] = 0.0
        assert chosen.module.select(state, chosen.params, 3, rng) == (0, 0)
        t = chosen.module.skip(state, chosen.params, 3)
        for before in (t - 1, t - 2, t - 1000):
            assert chosen.module.select(state, chosen.params, before, rng) == (0, 0)
        assert sorted(chosen.module.select(state, chosen.params, t, rng)) == [0, 1]


def test_kernels_may_make_arrays():
    """A policy that makes arrays needs reference counts; it gets them, and stays right."""

    def select(state, params, t, rng):
        scores = state.wins[0] + np.ones(len(state.wins)) * rng.random()
        return 0, int(scores[1:].argmax()) + 1

    mine = SimpleNamespace(
        **{name: getattr(random, name) for name in ("Params", "init", "update", "recommend")}, select=select
    )
    chosen, matrix = load_policy(mine), duels.load_problem("arxiv-6").array
    a, b = (
        trace(play, chosen, matrix, 500, 0)
        for play in (loop.ready(chosen, 6, 500, matrix), loop.bind(chosen, compiled=False))
    )
    np.testing.assert_equal(a, b)


def test_a_policy_that_numba_refuses_says_so():
    def select(state, params, t, rng):
        return open("no file")

    mine = SimpleNamespace(
        **{name: getattr(random, name) for name in ("Params", "init", "update", "recommend")}, select=select
    )
    with pytest.raises(InvalidInput, match=r"cannot be compiled by numba: .*open.*compiled=False"):
        loop.ready(load_policy(mine), 3, 10, np.full((3, 3), 0.5))


def test_streams_are_separate_and_fixed():
    coin, luck = loop.streams(5, 7)
    again, _ = loop.streams(5, 7)
    assert coin.random() == again.random()
    values = {
        loop.streams(5, 8)[0].random(),
        loop.streams(6, 7)[0].random(),
        luck.random(),
        loop.tie_break_rng(5, 7, 1).random(),
        loop.tie_break_rng(5, 7, 2).random(),
        coin.random(),
    }
    assert len(values) == 6


def test_conformance_games_agree_with_the_loop():
    """The checks' step-by-step game is the loop's play, so what it finds is true of the loop."""
    chosen, matrix = load_policy("btm:gamma=0.3"), testing._ladder(5)
    game = testing._Game(chosen, matrix, seed=2)
    for _ in range(testing.HORIZON):
        game.step()
    play = loop.bind(chosen, compiled=False)
    state, _, _, _ = trace(play, chosen, matrix, testing.HORIZON, 2)
    np.testing.assert_equal(game.state, state)


def test_play_keeps_to_its_stride_and_budget():
    chosen, matrix = load_policy("rucb"), np.array([[0.5, 1.0], [0.0, 0.5]])
    play = loop.bind(chosen, compiled=False)

    def go(t, until, stride, budget):
        return play(state, chosen.params, matrix, tally, t, until, stride, budget, coin, luck, np.random.default_rng(0))

    state, tally = chosen.start(2), loop.new_tally(2)
    coin, luck = loop.streams(0, 0)
    assert go(1, 1000, 1, 7) == (8, -1)
    assert tally.wins.sum() == 7
    for n in range(9, 40):  # won all, so that self-duels have begun
        chosen.module.update(state, chosen.params, n, 0, 1, 1.0)
    assert go(40, 1000, 5, 3) == (55, -1)  # three jumps of five
    assert go(55, 60, 5, 1) == (60, -1)  # not over: nothing is recommended
    assert go(60, 60, 5, 1) == (61, 0)


def test_streams_are_pinned():
    coin, luck = loop.streams(5, 7)
    a, b = np.random.SeedSequence([5, 7]).spawn(2)
    assert coin.random() == np.random.default_rng(a).random()
    assert luck.random() == np.random.default_rng(b).random()
    third = np.random.SeedSequence([5, 7], spawn_key=(2, 9))
    assert loop.tie_break_rng(5, 7, 9).random() == np.random.default_rng(third).random()
