"""Subsets drawn until there is a winner: every draw alike, refusals counted."""

import numpy as np
import pytest

import duels
from duels.errors import InvalidInput, NoCondorcetWinner


def test_draws_are_those_arms_and_refusals_are_counted():
    """Literally: permutations of the arms from one generator, the first arms of each, until one has a winner."""
    pool = duels.load_problem("cycle-with-winner:arms=9")
    counts = []
    for seed in range(30):
        drawn = duels.experiments.draw_subset(pool, 5, seed)
        rng, refused = np.random.default_rng([seed, 5]), 0
        while (some := pool.subset(rng.permutation(9)[:5].tolist())).condorcet_winner is None:
            refused += 1
        assert drawn.refused == refused
        assert np.array_equal(drawn.matrix.array, some.array)
        assert drawn.matrix.names == some.names
        counts.append(refused)
    assert max(counts) > 0


def test_refusals_are_as_many_as_the_probability_says():
    """The mean of 400 geometric counts is within 4 standard errors of (1 − p)/p: false alarm 6e-5."""
    pool = duels.load_problem("cycle-with-winner:arms=9")
    p = pool.condorcet_probability(5)
    counts = [duels.experiments.draw_subset(pool, 5, seed).refused for seed in range(400)]
    spread = np.sqrt((1 - p) / p**2 / 400)
    assert abs(np.mean(counts) - (1 - p) / p) < 4 * spread


def test_all_arms_are_the_matrix_itself():
    pool = duels.load_problem("arxiv-6")
    drawn = duels.experiments.draw_subset(pool, 6)
    assert (drawn.matrix, drawn.refused, drawn.matrix.name) == (pool, 0, "arxiv-6")
    assert duels.experiments.draw_subset(pool, 3).matrix.name == "arxiv-6 (3 arms)"


def test_what_has_no_winner_is_said():
    cycle = [[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]]
    with pytest.raises(NoCondorcetWinner, match="this matrix has none"):
        duels.experiments.draw_subset(duels.PreferenceMatrix(cycle), 3)
    wheel = np.full((5, 5), 0.5)
    for k in range(5):
        for ahead in (1, 2):
            wheel[k, (k + ahead) % 5], wheel[(k + ahead) % 5, k] = 0.6, 0.4
    with pytest.raises(NoCondorcetWinner, match=r"none of 10,000 random subsets of 4 arms .* the share that has is 0;"):
        duels.experiments.draw_subset(duels.PreferenceMatrix(wheel), 4)


@pytest.mark.parametrize("size", [1, 7, 2.5, "many"])
def test_bad_sizes_are_refused(size):
    with pytest.raises(InvalidInput, match="subset is"):
        duels.experiments.draw_subset(duels.load_problem("arxiv-6"), size)
