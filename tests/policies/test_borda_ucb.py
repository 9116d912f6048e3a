"""UCB on the Borda scores by hand, and where the Condorcet winner is another arm."""

import importlib
from copy import deepcopy

import numpy as np
from histories import frozen

import duels
from duels.engine import loop

borda_ucb = duels.policies.load_policy(importlib.import_module("duels.policies.borda_ucb"))


def test_the_index_by_hand():
    # 0 won one of its two duels, 1 lost its only one, 2 won its only one; that 2 lost when 0 chose it does not count.
    state = borda_ucb.start(3)
    for t, (i, j, won) in enumerate([(0, 2, 1.0), (0, 1, 0.0), (1, 2, 0.0), (2, 0, 1.0), (1, 1, 1.0)], 1):
        borda_ucb.module.update(state, borda_ucb.params, t, i, j, won)
    assert state.score.tolist() == [0.5, 0.0, 1.0]  # the self-duel of 1 teaches nothing
    # t = 6: √(2 ln 6) = 1.893. ½ + 1.893/√2 = 1.839, 0 + 1.893, 1 + 1.893 = 2.893: arm 2, with 0 or 1.
    rng = np.random.default_rng(0)
    assert {tuple(map(int, borda_ucb.module.select(deepcopy(state), borda_ucb.params, 6, rng))) for _ in range(60)} == {
        (2, 0),
        (2, 1),
    }
    assert int(borda_ucb.module.recommend(state, rng)) == 2


def test_finds_the_borda_winner_where_another_arm_is_the_condorcet_winner():
    # Arm 0, the Condorcet winner, beats both others with 0.55: its Borda score. Arm 1 loses to it, but beats arm 2 with
    # 0.95: Borda score 0.70. In theory UCB1 pulls arm 0 some 8 ln(20,000)/0.15² = 3,521 times, arm 2 (0.25) 391 times.
    P = frozen([[0.5, 0.55, 0.55], [0.45, 0.5, 0.95], [0.45, 0.05, 0.5]])
    play = loop.ready(borda_ucb, 3, 20_000, P)
    others = np.zeros(2)
    for run in range(10):
        state, tally = borda_ucb.start(3), loop.new_tally(3)
        coin, luck = loop.streams(0, run)
        pulled = []
        for begin, end in ((1, 10_000), (10_001, 20_000)):
            adviser = loop.tie_break_rng(0, run, end)
            _, arm = play(
                state, borda_ucb.params, P, tally, begin, end, loop.FOREVER, loop.FOREVER, coin, luck, adviser
            )
            pulled.append(state.plays.sum() - state.plays[1])
        assert arm == 1
        others += [pulled[0], pulled[1] - pulled[0]]
    assert others[1] < 0.5 * others[0]
