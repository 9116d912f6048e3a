"""Policies played duel for duel: their histories, the state after given answers, and the choices made from it."""

from copy import deepcopy

import numpy as np

from duels.engine import loop
from duels.policies import load_policy
from duels.policies.kernels import FOREVER


def frozen(matrix):
    """Read-only, as a PreferenceMatrix's: a policy is compiled once more for an array that can be written."""
    matrix = np.asarray(matrix, float).view()
    matrix.flags.writeable = False
    return matrix


def random_matrix(arms, seed, spread=0.5):
    rng = np.random.default_rng(seed)
    upper = np.triu(0.5 + spread * (rng.random((arms, arms)) - 0.5) * 2 * 0.99, 1)
    matrix = upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2
    if seed % 3:  # most with a Condorcet winner, so that arms are eliminated and self-duels occur
        best = int(rng.integers(arms))
        matrix[best, :], matrix[:, best] = 0.5 + spread * 0.8, 0.5 - spread * 0.8
    np.fill_diagonal(matrix, 0.5)
    return frozen(matrix)


# Arms 0, 1 and 2 beat two each and lose to one; arm 3 loses to all.
CYCLE = frozen([[0.5, 0.8, 0.2, 0.8], [0.2, 0.5, 0.8, 0.8], [0.8, 0.2, 0.5, 0.7], [0.2, 0.2, 0.3, 0.5]])
# Arm 0, the Copeland winner, beats all but 4; everybody else beats two at most.
FIVE = np.full((5, 5), 0.5)
for winner, losers in {0: (1, 2, 3), 1: (2, 4), 2: (3, 4), 3: (1,), 4: (0, 3)}.items():
    for loser in losers:
        FIVE[winner, loser], FIVE[loser, winner] = 0.8, 0.2
FIVE = frozen(FIVE)


def compiled_history(spec, matrix, horizon, seed):
    """The state that a compiled run leaves, its duels read off the tally step by step, and its two generators."""
    chosen, matrix = load_policy(spec), frozen(matrix)
    play = loop.ready(chosen, len(matrix), horizon, matrix)
    state, tally, before = chosen.start(len(matrix), horizon), loop.new_tally(len(matrix)), np.zeros(matrix.shape)
    (coin, luck), adviser = loop.streams(seed, 0), np.random.default_rng(0)
    history = []
    for t in range(1, horizon + 1):
        play(state, chosen.params, matrix, tally, t, t, FOREVER, 1, coin, luck, adviser)
        moved = np.flatnonzero(tally.wins != before)
        assert len(moved) == 1
        history.append(divmod(int(moved[0]), len(matrix)))
        before[...] = tally.wins
    return state, history, coin, luck


def winners(history):
    """Whoever won each duel first, the loser second: the form in which the tally tells it."""
    return [(i, j) if won in (None, 1.0) or i == j else (j, i) for i, j, won in history]


def state_after(chosen, arms, answers, horizon=1000):
    """The state after these (i, j, outcome)s."""
    state = chosen.start(arms, horizon)
    for t, (i, j, won) in enumerate(answers, 1):
        chosen.module.update(state, chosen.params, t, i, j, won)
    return state


def told(spec, arms, answers, horizon=1000):
    chosen = load_policy(spec)
    return chosen, state_after(chosen, arms, answers, horizon)


def choices(chosen, state, t, draws=200):
    rng = np.random.default_rng(0)
    return {tuple(map(int, chosen.module.select(deepcopy(state), chosen.params, t, rng))) for _ in range(draws)}
