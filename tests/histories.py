"""Policies played duel for duel: their histories, the state after given answers, and the choices made from it."""

from copy import deepcopy

import numpy as np
import oracles

from duels.engine import loop
from duels.policies import policy
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


def compiled_history(spec, matrix, horizon, seed):
    """The duels of a compiled run, read off the tally step by step, and what it leaves behind."""
    chosen, matrix = policy(spec), frozen(matrix)
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
    return history, coin.bit_generator.state, luck.bit_generator.state


def winners(history):
    """Whoever won each duel first, the loser second: the form in which the tally tells it."""
    return [(i, j) if won in (None, 1.0) or i == j else (j, i) for i, j, won in history]


def assert_same_duels(spec, matrix, horizon, seed):
    """A compiled run makes the duels of the policy's listing in `oracles`, and leaves both generators alike."""
    chosen = policy(spec)
    coin, luck = loop.streams(seed, 0)
    expected = oracles.ORACLES[chosen.name](matrix, horizon, coin, luck, **chosen.params._asdict())
    history, coin_state, luck_state = compiled_history(spec, matrix, horizon, seed)
    assert history == winners(expected)
    assert luck_state == luck.bit_generator.state
    if chosen.name != "btm":  # the listing breaks the tie of a last elimination one step earlier
        assert coin_state == coin.bit_generator.state


def told(spec, arms, answers, horizon=1000):
    chosen = policy(spec)
    state = chosen.start(arms, horizon)
    for t, (i, j, won) in enumerate(answers, 1):
        chosen.module.update(state, chosen.params, t, i, j, won)
    return chosen, state


def choices(chosen, state, t, draws=200):
    rng = np.random.default_rng(0)
    return {tuple(map(int, chosen.module.select(deepcopy(state), chosen.params, t, rng))) for _ in range(draws)}
