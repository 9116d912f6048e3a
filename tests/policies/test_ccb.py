"""CCB against its listing duel for duel, by hand, and on a cycle, where there is no Condorcet winner."""

import importlib
import math
from copy import deepcopy

import numpy as np
import oracles
import pytest
from histories import frozen

import duels
from duels import testing
from duels.engine import loop
from duels.errors import InvalidInput

ccb = duels.policy(importlib.import_module("duels.policies.ccb"))

# Arm 0 loses to arm 4 but beats the other three; everybody else beats two at most.
BEATS = {0: (1, 2, 3), 1: (2, 4), 2: (3, 4), 3: (1,), 4: (0, 3)}
CYCLE = np.full((5, 5), 0.5)
for winner, losers in BEATS.items():
    for loser in losers:
        CYCLE[winner, loser], CYCLE[loser, winner] = 0.8, 0.2
CYCLE = frozen(CYCLE)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(ccb)


def listing(P, horizon, coin, luck, alpha, seen, unplayed=2.0):
    """Algorithm 1, all of it anew at every step. `seen` counts the corners that it came to."""
    K = len(P)
    arms = range(K)
    W = np.zeros((K, K))  # line 1
    history = []

    def start():
        return set(arms), {i: set() for i in arms}, K  # lines 2 to 4

    best, beat, most = start()
    for t in range(1, horizon + 1):
        L = alpha * math.log(t)
        n, D = W + W.T, W.T - W
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(D > 0, D * D / (4 * n), -1.0)
            u = np.where(n > 0, W / n + math.sqrt(L) * (1 / np.sqrt(n)), unplayed)  # line 6
        below = z > L  # u_ij < ½, which is l_ji > ½
        upper = [sum(not below[i, k] for k in arms if k != i) for i in arms]  # line 7
        lower = [sum(bool(below[k, i]) for k in arms if k != i) for i in arms]
        top = {i for i in arms if upper[i] == max(upper)}  # line 8
        if any(below[j, i] for i in arms for j in beat[i]):  # line 9A
            best, beat, most = start()
            seen["disproven"] += 1
        for i in sorted(best):  # line 9B
            if any(upper[i] < lower[j] for j in arms):
                best.discard(i)
                seen["removed"] += 1
                if len(beat[i]) != most + 1:
                    beat[i] = {k for k in arms if below[i, k]}
        if not best:
            best, beat, most = start()
        for i in sorted(top):  # line 9C
            if upper[i] == lower[i]:
                best.add(i)
                beat[i] = set()
                most = K - 1 - upper[i]
                for j in arms:
                    if j != i and len(beat[j]) < most + 1:
                        beat[j] = set()
                    while j != i and len(beat[j]) > most + 1:
                        beat[j].discard(oracles.pick(beat[j], coin))
                        seen["thinned"] += 1
        unsure = [(i, j) for i in arms for j in sorted(beat[i]) if not below[i, j] and not below[j, i]]
        if unsure and coin.random() < 0.25:  # line 10
            c, d = oracles.pick(unsure, coin)
            seen["unsure"] += 1
        else:
            if best & top and not top <= best and coin.random() < 2 / 3:  # line 11
                top = best & top
                seen["narrowed"] += 1
            c = oracles.pick(top, coin)  # line 12
            among = {j for j in beat[c] if not below[c, j]}
            if among and coin.random() < 0.5:  # line 13
                seen["among B^c"] += 1
            else:
                among = {j for j in arms if not below[c, j]} - {c}
            among = {j for j in among if not below[j, c]}  # the others' u_jc are below u_cc = ½
            highest = max((u[j, c] for j in among), default=None)
            d = oracles.pick([j for j in among if u[j, c] == highest], coin) if among else c
        won = oracles.duel(P, c, d, luck) if c != d else None
        if won is None:
            seen["self-duel"] += 1
        else:
            W[c, d] += won  # line 14
            W[d, c] += 1 - won
        history.append((c, d, won))
    return history


def random_matrix(arms, seed, spread=0.4):
    rng = np.random.default_rng(seed)
    upper = np.triu(0.5 + spread * (2 * rng.random((arms, arms)) - 1), 1)
    return upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2


def test_same_duels_as_the_listing():
    corners = ("disproven", "removed", "thinned", "unsure", "narrowed", "among B^c", "self-duel")
    seen = dict.fromkeys(corners, 0)
    cases = [(CYCLE, 0.51), (random_matrix(2, 0), 0.51), (random_matrix(3, 1), 0.51), (random_matrix(4, 2), 0.2)]
    cases += [(random_matrix(6, seed), 0.2) for seed in range(3, 6)]
    cases += [(random_matrix(5, seed, 0.05), 0.05) for seed in range(6, 9)]  # close and rash: certainties prove wrong
    for P, alpha in cases:
        for seed, unplayed in enumerate((2.0, 1.0)):
            chosen = duels.policy(ccb, alpha=alpha, unplayed=unplayed)
            coin, luck = loop.streams(seed, 0)
            expected = listing(P, 1500, coin, luck, alpha, seen, unplayed)
            ours, luck_of_ours = loop.streams(seed, 0)
            state, history = chosen.start(len(P)), []
            for t in range(1, 1501):
                i, j = map(int, chosen.module.select(state, chosen.params, t, ours))
                won = oracles.duel(P, i, j, luck_of_ours) if i != j else None
                if won is not None:
                    chosen.module.update(state, chosen.params, t, i, j, won)
                history.append((i, j, won))
            assert history == expected
            assert ours.bit_generator.state == coin.bit_generator.state
    assert all(seen.values()), seen  # else the comparison would prove little


def told(arms, answers):
    state = ccb.start(arms)
    for t, (i, j, won) in enumerate(answers, 1):
        ccb.module.update(state, ccb.params, t, i, j, won)
    return state


def choices(state, t, draws=300):
    rng = np.random.default_rng(0)
    return {tuple(map(int, ccb.module.select(deepcopy(state), ccb.params, t, rng))) for _ in range(draws)}


def test_scores_by_hand():
    # 0 beat 1 ten times, 1 beat 2 ten times: z_10 = z_21 = 100/40 = 2.5 > L = 0.51·ln 21 = 1.553. So 1 is certain to
    # lose to 0, and 2 to 1. Upper scores: 0 has 2, 1 and 2 have 1; lower scores 1, 1, 0: nobody is out.
    state = told(3, [(0, 1, 1.0)] * 10 + [(1, 2, 1.0)] * 10)
    # C = {0}. Against 0: u_10 < ½, u_20 = 2: arm 2.
    assert choices(state, 21) == {(0, 2)}
    ccb.module.select(state, ccb.params, 21, np.random.default_rng(0))
    assert state.losses.tolist() == [0, 1, 1]
    assert state.sure.tolist() == [1, 1, 0]
    assert state.best.tolist() == [True] * 3
    # 0 beats 2 ten times as well: upper 2, 1, 0 and lower 2, 1, 0. Arms 1 and 2 are out; B^1 = {0}, B^2 = {0, 1}. Arm 0
    # is a Copeland winner: L_C = 0, so one victor is enough: B^2 keeps one of its two. Nothing is open: 0 duels itself.
    for t in range(21, 31):
        ccb.module.update(state, ccb.params, t, 2, 0, 0.0)
    assert choices(state, 31) == {(0, 0)}
    ccb.module.select(state, ccb.params, 31, np.random.default_rng(0))
    assert state.best.tolist() == [True, False, False]
    assert state.victors[1].tolist() == [True, False, False]
    assert (state.size.tolist(), state.victors[2].sum(), state.most[0]) == ([0, 1, 1], 1, 0)
    # All three z are 2.5, which L = 0.51·ln t reaches at t = 135 (ln 135 = 4.9053 gives 2.5017, ln 134 2.4979).
    assert ccb.module.skip(state, ccb.params, 31) == 135
    # Then nothing is certain: one time in four an open pair (1, 0) or (2, its victor); else C is everybody.
    assert {(1, 0)} < choices(state, 135)
    assert len({c for c, _ in choices(state, 135)}) == 3


def test_a_disproven_hypothesis_starts_all_over():
    state = told(3, [(0, 1, 1.0)] * 10 + [(1, 2, 1.0)] * 10 + [(0, 2, 1.0)] * 10)
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
    state = told(3, [(1, 0, 1.0)] * 10 + [(1, 2, 1.0)] * 10)
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
    state = told(3, [(0, 1, 1.0)] * 10 + [(1, 2, 1.0)] * 10)
    ccb.module.select(state, ccb.params, 10**6, np.random.default_rng(0))
    assert state.losses.tolist() == [0, 0, 0]
    ccb.module.select(state, ccb.params, 21, np.random.default_rng(0))
    assert state.losses.tolist() == [0, 1, 1]


def test_finds_the_copeland_winner_on_a_cycle():
    # Ten seeded runs: plays of other arms in the second half are 0.07 of those in the first, with a spread over runs of
    # 0.02; the bar of 0.3 is more than ten standard deviations away.
    play, arms = loop.ready(ccb, 5, 20_000, CYCLE), np.zeros(2)
    for run in range(10):
        state, tally = ccb.start(5), loop.new_tally(5)
        coin, luck = loop.streams(0, run)
        others = []
        for begin, end in ((1, 10_000), (10_001, 20_000)):
            adviser = loop.tie_break_rng(0, run, end)
            _, arm = play(state, ccb.params, CYCLE, tally, begin, end, loop.FOREVER, loop.FOREVER, coin, luck, adviser)
            others.append(tally.played[1:].sum())
        assert arm == 0
        arms += [others[0], others[1] - others[0]]
    assert arms[1] < 0.3 * arms[0]


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
def test_bad_parameters(alpha):
    with pytest.raises(InvalidInput, match=r"alpha of ccb is .* expected a positive number"):
        duels.policy(ccb, alpha=alpha)
