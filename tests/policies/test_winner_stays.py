"""Winner Stays by hand, and its weak regret."""

import importlib

import numpy as np

import duels
from duels.engine import loop
from duels.policies import winner_stays
from duels.policies.kernels import FOREVER

WEAK = duels.policies.load_policy(importlib.import_module("duels.policies.winner_stays"))
STRONG = duels.policies.load_policy(WEAK, variant="strong")


def test_a_round_by_hand():
    # K = 3, arm 0 wins all. It beats one arm (1, −1, 0), then the other (2, −1, −1): round 1 is over. It duels itself
    # ⌊1.1⌋ = 1 time, then plays the arm it met last again (3, −1, −2), which falls behind, then the other (4, −2, −2):
    # round 2 is over, ⌊1.21⌋ = 1 self-duel.
    state, rng = STRONG.start(3), np.random.default_rng(0)
    winner, duels_made = None, []
    for t in range(1, 9):
        i, j = map(int, winner_stays.select(state, STRONG.params, t, rng))
        winner = i if winner is None else winner
        if i != j:
            winner_stays.update(state, STRONG.params, t, i, j, 1.0 if i == winner else 0.0)
        duels_made.append((i, j))
        if t == 2:
            assert sorted(state.score) == [-1, -1, 2]
    met = [j for i, j in duels_made]
    assert {i for i, j in duels_made} == {winner}
    assert met[0] != met[1]
    assert met[2] == winner
    assert met[3] == met[1]
    assert met[4] == met[0]
    assert met[5] == winner
    assert sorted(state.score) == [-3, -3, 6]


def test_ties_go_to_the_arms_of_the_last_duel():
    # 0 and 1 are level after a win each: they go on, in the same order, although 2 and 3 are level with them.
    state, rng = WEAK.start(4), np.random.default_rng(0)
    pair = tuple(map(int, winner_stays.select(state, WEAK.params, 1, rng)))
    winner_stays.update(state, WEAK.params, 1, *pair, 1.0)
    winner_stays.update(state, WEAK.params, 2, *pair, 0.0)
    assert state.score.tolist() == [0, 0, 0, 0]
    for seed in range(10):
        assert tuple(map(int, winner_stays.select(state, WEAK.params, 3, np.random.default_rng(seed)))) == pair


def test_a_tie_changes_nothing():
    state = WEAK.start(3)
    winner_stays.update(state, WEAK.params, 1, 0, 1, 0.5)
    winner_stays.update(state, WEAK.params, 1, 2, 2, 1.0)
    assert state.score.tolist() == [0, 0, 0]


def test_exploitation_never_overflows():
    state, rng = STRONG.start(2), np.random.default_rng(0)
    state.round[0] = 10_000
    state.score[:] = 10_000, -10_000
    assert tuple(map(int, winner_stays.select(state, STRONG.params, 5, rng))) == (0, 0)
    assert 10**16 < winner_stays.skip(state, STRONG.params, 5) <= FOREVER


def test_weak_regret_stops_growing():
    """Duels without the winner, arm 0 of arithmetic-8, are in the second half less than a third of those in the first.

    Each of the 20 runs has a few hundred in the first half and, as a rule, none in the second.
    """
    matrix = duels.load_problem("arithmetic-8").array
    horizon = 20_000
    play = loop.ready(WEAK, len(matrix), horizon, matrix)
    first, second = 0.0, 0.0
    for run in range(20):
        state, tally = WEAK.start(len(matrix)), loop.new_tally(len(matrix))
        coin, luck = loop.streams(1, run)
        for start, end in ((1, horizon // 2), (horizon // 2 + 1, horizon)):
            before = tally.wins[1:, 1:].sum()
            play(state, WEAK.params, matrix, tally, start, end, FOREVER, FOREVER, coin, luck, coin)
            without = tally.wins[1:, 1:].sum() - before
            first, second = (first + without, second) if start == 1 else (first, second + without)
    assert second < first / 3
