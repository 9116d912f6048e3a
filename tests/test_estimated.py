"""Matrices estimated from counts: entries, standard errors, and who may be the winner within sampling error."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import duels
from duels.errors import InvalidInput
from duels.estimated import EstimatedPreferences


def counts_of(arms, pairs):
    """(K, K, 3) from {(i, j): (wins, losses, ties)}."""
    counts = np.zeros((arms, arms, 3), dtype=np.int64)
    for (i, j), (won, lost, tied) in pairs.items():
        counts[i, j], counts[j, i] = (lost, tied, won), (won, tied, lost)
    return counts


def test_entries_and_errors_of_votes_by_hand():
    """a and b: 6 wins, 2 losses and 2 ties of 10; a and c never met."""
    votes = [("a", "b", "left")] * 6 + [("b", "a", "left")] * 2 + [("a", "b", "tie"), ("b", "a", "both_bad")]
    matrix = duels.read_votes([*votes, ("c", "b", "right")]).matrix("mine")
    assert (matrix.names, matrix.name) == (("a", "b", "c"), "mine")
    assert matrix["a", "b"] == pytest.approx(0.7)
    assert (matrix["a", "c"], matrix["b", "c"]) == (0.5, 1.0)
    outcomes = [1.0] * 6 + [0.0] * 2 + [0.5] * 2
    assert matrix.standard_errors[0, 1] == pytest.approx(np.std(outcomes) / np.sqrt(10))
    assert matrix.standard_errors[0, 2] == np.inf
    assert matrix.comparisons.tolist() == [[0, 10, 0], [10, 0, 1], [0, 1, 0]]
    assert "11 comparisons, at most 10 per pair; 1 pair of 3 never met and is set to ½" in matrix.describe()


def test_possible_winners_by_the_sign_test():
    """Each pair by scipy's exact test, with Bonferroni."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        arms = int(rng.integers(2, 6))
        pairs = {pair: rng.integers(0, 30, 3) for pair in itertools.combinations(range(arms), 2)}
        counts = counts_of(arms, pairs)
        expected = []
        for i in range(arms):
            tests = [
                binomtest(int(counts[i, j, 2]), int(counts[i, j, 2] + counts[i, j, 0]), alternative="less").pvalue
                for j in range(arms)
                if j != i and counts[i, j, 2] + counts[i, j, 0]
            ]
            if all(value > 0.05 / (arms - 1) for value in tests):
                expected.append(i)
        assert EstimatedPreferences(counts, None).possible_winners() == tuple(expected)


def test_a_winner_is_rarely_left_out():
    """Exactly: three equal arms, 12 comparisons each; arm 0 is left out in at most 5 % of all outcomes.

    With a level of 0.05 per pair, without the factor for two pairs, it would be more.
    """
    left_out = too_often = 0.0
    for wins in itertools.product(range(13), repeat=2):
        chance = binom.pmf(wins, 12, 0.5).prod()
        pairs = {(0, k + 1): (won, 12 - won, 3) for k, won in enumerate(wins)}
        matrix = EstimatedPreferences(counts_of(3, pairs), None)
        left_out += chance * (0 not in matrix.possible_winners())
        too_often += chance * (0 not in matrix.possible_winners(0.8))
    assert 0 < left_out <= 0.05 < too_often <= 0.2


def cycle(times):
    return [(a, b, "left") for a, b in (("a", "b"), ("b", "c"), ("c", "a"))] * times + [("b", "a", "left")]


def test_a_missing_winner_is_explained_or_not():
    few, many = (duels.read_votes(cycle(times)).matrix() for times in (3, 30))
    assert few.condorcet_winner is many.condorcet_winner is None
    assert few.describe().splitlines()[-1].split(maxsplit=2)[2] == (
        "may explain that there is no Condorcet winner: a, b, c may be the Condorcet winner"
    )
    assert many.describe().splitlines()[-1].split(maxsplit=2)[2] == (
        "does not explain that there is no Condorcet winner: every arm loses to another one (95% sure)"
    )


def test_a_winner_is_certain_or_not():
    few, many = (duels.read_votes([("a", "b", "left"), ("a", "c", "left"), ("b", "c", "tie")] * n) for n in (2, 9))
    assert few.matrix().describe().endswith("; a, b, c may be the Condorcet winner")
    assert many.matrix().describe().endswith("; every other arm loses to some arm (95% sure)")


def test_a_matrix_of_votes_is_a_problem():
    votes = duels.read_votes([("a", "b", "left")] * 30 + [("b", "c", "left")] * 30 + [("a", "c", "left")] * 30)
    matrix = votes.matrix()
    results = duels.simulate(matrix, "rucb", horizon=200, runs=2, seed=0)
    assert len(results.frame) > 0
    assert matrix.subset(["c", "a"]).names == ("c", "a")
    with pytest.raises(InvalidInput, match="the list has 0 arms, expected 2 to 10,000"):
        duels.read_votes([]).matrix()
