"""CCB by hand, and on a cycle, where there is no Condorcet winner."""

import importlib

import numpy as np
from histories import FIVE, choices, state_after

import duels
from duels.engine import loop

ccb = duels.policies.load_policy(importlib.import_module("duels.policies.ccb"))


def test_scores_by_hand():
    # 0 beat 1 ten times, 1 beat 2 ten times: z_10 = z_21 = 100/40 = 2.5 > L = 0.51·ln 21 = 1.553. So 1 is certain to
    # lose to 0, and 2 to 1. Upper scores: 0 has 2, 1 and 2 have 1; lower scores 1, 1, 0: nobody is out.
    state = state_after(ccb, 3, [(0, 1, 1.0)] * 10 + [(1, 2, 1.0)] * 10)
    # C = {0}. Against 0: u_10 < ½, u_20 = 2: arm 2.
    assert choices(ccb, state, 21) == {(0, 2)}
    ccb.module.select(state, ccb.params, 21, np.random.default_rng(0))
    assert state.losses.tolist() == [0, 1, 1]
    assert state.sure.tolist() == [1, 1, 0]
    assert state.best.tolist() == [True] * 3
    # 0 beats 2 ten times as well: upper 2, 1, 0 and lower 2, 1, 0. Arms 1 and 2 are out; B^1 = {0}, B^2 = {0, 1}. Arm 0
    # is a Copeland winner: L_C = 0, so one victor is enough: B^2 keeps one of its two. Nothing is open: 0 duels itself.
    for t in range(21, 31):
        ccb.module.update(state, ccb.params, t, 2, 0, 0.0)
    assert choices(ccb, state, 31) == {(0, 0)}
    ccb.module.select(state, ccb.params, 31, np.random.default_rng(0))
    assert state.best.tolist() == [True, False, False]
    assert state.victors[1].tolist() == [True, False, False]
    assert (state.size.tolist(), state.victors[2].sum(), state.most[0]) == ([0, 1, 1], 1, 0)
    # All three z are 2.5, which L = 0.51·ln t reaches at t = 135 (ln 135 = 4.9053 gives 2.5017, ln 134 2.4979).
    assert ccb.module.skip(state, ccb.params, 31) == 135
    # Then nothing is certain: one time in four an open pair (1, 0) or (2, its victor); else C is everybody.
    assert {(1, 0)} < choices(ccb, state, 135)
    assert len({c for c, _ in choices(ccb, state, 135)}) == 3


def test_a_disproven_hypothesis_starts_all_over():
    state = state_after(ccb, 3, [(0, 1, 1.0)] * 10 + [(1, 2, 1.0)] * 10 + [(0, 2, 1.0)] * 10)
    rng = np.random.default_rng(0)
    ccb.module.select(state, ccb.params, 31, rng)
    assert state.victors[1, 0]
    for t in range(31, 91):  # arm 1 catches up: 60 to 10, z_01 = 50²/280 = 8.9
        ccb.module.update(state, ccb.params, t, 1, 0, 1.0)
    ccb.module.select(state, ccb.params, 91, rng)
    assert not state.victors[1].any()
    assert state.best[1]


def test_nobody_left_starts_all_over():
    # Arm 1 is certain to beat both others, but B_t is made to be {0}: 0 leaves it, and all are back in it. At the next
    # step 0 and 2 leave for good: their upper scores of 1 are below arm 1's lower score of 2.
    state = state_after(ccb, 3, [(1, 0, 1.0)] * 10 + [(1, 2, 1.0)] * 10)
    state.best[:] = [True, False, False]
    rng = np.random.default_rng(0)
    ccb.module.select(state, ccb.params, 21, rng)
    assert state.best.tolist() == [True] * 3
    assert state.size.tolist() == [0, 0, 0]
    ccb.module.select(state, ccb.params, 22, rng)
    assert state.best.tolist() == [False, True, False]
    assert state.size.tolist() == [1, 0, 1]


def test_an_earlier_time_and_several_answers_at_once():
    """Live answers may come in bunches, and a look ahead may go back: what is certain is found anew."""
    state = state_after(ccb, 3, [(0, 1, 1.0)] * 10 + [(1, 2, 1.0)] * 10)
    ccb.module.select(state, ccb.params, 10**6, np.random.default_rng(0))
    assert state.losses.tolist() == [0, 0, 0]
    ccb.module.select(state, ccb.params, 21, np.random.default_rng(0))
    assert state.losses.tolist() == [0, 1, 1]


def test_finds_the_copeland_winner_on_a_cycle():
    # Ten seeded runs: plays of other arms in the second half are 0.07 of those in the first, with a spread over runs of
    # 0.02; the bar of 0.3 is more than ten standard deviations away.
    play, arms = loop.ready(ccb, 5, 20_000, FIVE), np.zeros(2)
    for run in range(10):
        state, tally = ccb.start(5), loop.new_tally(5)
        coin, luck = loop.streams(0, run)
        others = []
        for begin, end in ((1, 10_000), (10_001, 20_000)):
            adviser = loop.tie_break_rng(0, run, end)
            _, arm = play(state, ccb.params, FIVE, tally, begin, end, loop.FOREVER, loop.FOREVER, coin, luck, adviser)
            others.append(tally.played[1:].sum())
        assert arm == 0
        arms += [others[0], others[1] - others[0]]
    assert arms[1] < 0.3 * arms[0]
