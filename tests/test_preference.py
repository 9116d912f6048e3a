"""PreferenceMatrix against hand-worked cases, and against brute force over triples and subsets."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duels.cli import app
from duels.errors import InvalidInput, NoCondorcetWinner, UnknownName
from duels.orders import _all_ordered, count_ordered_among_random, count_ordered_subsets, count_ordered_subsets_by_size
from duels.preference import PreferenceMatrix
from duels.problems import load_matrix, load_problem

ROCK_PAPER_SCISSORS = [[0.5, 0.0, 1.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.5]]


@st.composite
def matrices(draw, most=7, values=(0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)):
    """Small matrices in which ties (½), equal gaps and cycles are common."""
    arms = draw(st.integers(2, most))
    p = np.full((arms, arms), 0.5)
    for i, j in itertools.combinations(range(arms), 2):
        p[i, j] = draw(st.sampled_from(values))
        p[j, i] = 1 - p[i, j]
    return PreferenceMatrix(p)


def beats(matrix, i, j):
    return matrix[i, j] > 0.5


def has_winner(matrix, arms):
    return any(all(beats(matrix, i, j) for j in arms if j != i) for i in arms)


def is_ordered(matrix, arms):
    return any(
        all(beats(matrix, i, j) for i, j in itertools.combinations(order, 2)) for order in itertools.permutations(arms)
    )


def test_arxiv_by_hand():
    p = load_problem("arxiv-6")
    assert p.condorcet_winner == 0
    assert p.gaps == pytest.approx([0, 0.05, 0.05, 0.04, 0.11, 0.11])
    # Rows by arms beaten: 5, 4, 3, 1 (arms 3 and 5 tie), 1, 0.
    assert p.copeland_scores.tolist() == [5, 4, 3, 1, 1, 0]
    assert p.copeland_winners == (0,)
    # Row 0 sums to 3.36.
    assert p.borda_scores[0] == pytest.approx(3.36 / 6)
    assert p.borda_winner == 0
    assert p.smith_set == (0,)
    assert p.three_cycles == 0
    assert not p.is_total_order  # 3 and 5 tie
    # Largest ratio: j=1 over k=3 with Δ_j = 0.05, P[1,3] − ½ = 0.05 against Δ_k = 0.04; 0.05/0.04 = 1.25.
    assert p.gamma == pytest.approx(1.25)


def test_cyclic_by_hand():
    p = load_problem("cyclic-4")
    assert (p.condorcet_winner, p.smith_set, p.three_cycles) == (0, (0,), 1)
    assert p.copeland_scores.tolist() == [3, 1, 1, 1]
    assert p.gamma == pytest.approx(0.4 / 0.1)
    # Three-subsets: {1,2,3} is the cycle, the other 3 of 4 are ordered.
    assert p.condorcet_probability(3) == 3 / 4
    assert p.total_order_probability(3) == (3 / 4, 0.0, True)


def test_arithmetic_by_hand():
    p = load_problem("arithmetic-8")
    assert p.order == tuple(range(8))
    assert p.is_strongly_transitive
    assert p.gamma == 1
    assert p.total_order_probability(5) == (1.0, 0.0, True)
    assert p.borda_scores[0] == pytest.approx((0.5 + 0.55 + 0.6 + 0.65 + 0.7 + 0.75 + 0.8 + 0.85) / 8)


def test_no_winner():
    p = PreferenceMatrix(ROCK_PAPER_SCISSORS, ["rock", "paper", "scissors"])
    assert p.condorcet_winner is None
    assert p.copeland_winners == p.smith_set == p.borda_winners == (0, 1, 2)
    assert p.three_cycles == 1
    with pytest.raises(NoCondorcetWinner, match="Copeland winners rock, paper, scissors, a Borda winner 'rock'"):
        _ = p.gaps
    with pytest.raises(NoCondorcetWinner, match="gamma needs an arm that beats every other arm"):
        _ = p.gamma


def test_strong_transitivity_needs_more_than_an_order():
    # 0 over 1 by .3, 1 over 2 by .1, but 0 over 2 only by .2 < .3.
    p = PreferenceMatrix([[0.5, 0.8, 0.7], [0.2, 0.5, 0.6], [0.3, 0.4, 0.5]])
    assert p.is_total_order
    assert not p.is_strongly_transitive
    assert p.gamma == pytest.approx(0.3 / 0.2)


@given(matrices())
def test_winners_and_cycles(matrix):
    arms = range(matrix.arms)
    winners = [i for i in arms if all(beats(matrix, i, j) for j in arms if j != i)]
    assert matrix.condorcet_winner == (winners[0] if winners else None)
    scores = [sum(beats(matrix, i, j) for j in arms) for i in arms]
    assert matrix.copeland_scores.tolist() == scores
    assert matrix.copeland_winners == tuple(i for i in arms if scores[i] == max(scores))
    cycles = sum(
        beats(matrix, a, b) and beats(matrix, b, c) and beats(matrix, c, a)
        for a, b, c in itertools.permutations(arms, 3)
    )
    assert matrix.three_cycles == cycles // 3


@given(matrices())
def test_smith_set(matrix):
    arms = set(range(matrix.arms))
    dominating = [
        subset
        for size in range(1, matrix.arms + 1)
        for subset in itertools.combinations(sorted(arms), size)
        if all(beats(matrix, i, j) for i in subset for j in arms - set(subset))
    ]
    assert matrix.smith_set == dominating[0]


@given(matrices(most=6))
@settings(deadline=None)
def test_order_and_strong_transitivity(matrix):
    arms = range(matrix.arms)
    assert matrix.is_total_order == is_ordered(matrix, arms)
    if matrix.order is None:
        assert not matrix.is_strongly_transitive
        return
    assert all(beats(matrix, i, j) for i, j in itertools.combinations(matrix.order, 2))
    assert matrix.is_strongly_transitive == all(
        matrix[i, k] >= max(matrix[i, j], matrix[j, k]) for i, j, k in itertools.combinations(matrix.order, 3)
    )


@given(matrices(values=(0.6, 0.7, 0.9)), st.integers(0, 10))
def test_strong_transitivity_of_orders(matrix, seed):
    shuffled = matrix.shuffle(seed)
    by_triples = all(
        matrix[i, k] >= max(matrix[i, j], matrix[j, k]) for i, j, k in itertools.combinations(range(matrix.arms), 3)
    )
    assert shuffled.is_strongly_transitive == by_triples


@given(matrices(values=(0.2, 0.5, 0.6, 0.8)))
def test_gamma(matrix):
    winner = matrix.condorcet_winner
    if winner is None:
        return
    others = [i for i in range(matrix.arms) if i != winner]
    needed = [
        max(matrix[winner, j] - 0.5, matrix[j, k] - 0.5) / (matrix[winner, k] - 0.5)
        for j in others
        for k in others
        if matrix[j, k] > 0.5
    ]
    assert matrix.gamma == pytest.approx(max([1.0, *needed]))


@given(matrices())
@settings(deadline=None)
def test_subset_probabilities(matrix):
    for size in range(1, min(matrix.arms, 5) + 1):
        subsets = list(itertools.combinations(range(matrix.arms), size))
        won = sum(has_winner(matrix, subset) for subset in subsets)
        ordered = sum(is_ordered(matrix, subset) for subset in subsets)
        assert matrix.condorcet_probability(size) == won / len(subsets)
        assert matrix.total_order_probability(size) == (ordered / len(subsets), 0.0, True)


@pytest.mark.parametrize(("arms", "size"), [(40, 2), (40, 3), (12, 5), (12, 12)])
def test_ordered_by_pairs_and_by_product(arms, size):
    """Both ways `_all_ordered` counts wins (pairs looked up for small subsets, a matrix product for large ones)."""
    matrix = load_problem("random-condorcet", arms=arms, seed=4)
    rng = np.random.default_rng(1)
    subsets = np.array([rng.permutation(arms)[:size] for _ in range(200)])
    expected = [
        sorted(sum(matrix.beats[i, j] for j in subset) for i in subset) == list(range(size)) for subset in subsets
    ]
    assert _all_ordered(matrix.beats, subsets).tolist() == expected


@pytest.mark.parametrize("size", [3, 4, 6, 9])
def test_sampled_order_probability(size):
    """Sampling against the exact count: 5 standard errors, a false alarm in about 2 million (the seed is fixed)."""
    matrix = load_problem("random-condorcet", arms=14, seed=2)
    exact = matrix.total_order_probability(size)
    assert exact.exact
    samples = 40_000
    sampled = count_ordered_among_random(matrix.beats, size, samples, np.random.default_rng(0)) / samples
    assert sampled == pytest.approx(exact.value, abs=5 * math.sqrt(exact.value * (1 - exact.value) / samples) + 1e-12)


def test_order_probability_is_estimated_where_counting_is_too_much():
    matrix = load_problem("random-condorcet", arms=150, seed=0)
    found = matrix.total_order_probability(6, samples=1_000)
    assert not found.exact
    assert found.standard_error > 0
    assert found == matrix.total_order_probability(6, samples=1_000)
    # Independent fair pairs: 6!/2^15 = 0.022; the winner makes it a little larger.
    assert 0.005 < found.value < 0.06


def test_immutable():
    p = load_problem("arxiv-6")
    for array in (p.array, p.beats, p.gaps, p.copeland_scores, p.borda_scores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for copied in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert copied == p
        assert not copied.array.flags.writeable


def test_input_is_copied():
    array = np.array([[0.5, 0.6], [0.4, 0.5]])
    p = PreferenceMatrix(array)
    array[0, 1] = 0.9
    assert p[0, 1] == 0.6


def test_equality_hash_and_digest():
    a, b = PreferenceMatrix([[0.5, 0.0], [1, 0.5]]), PreferenceMatrix([[0.5, -0.0], [1, 0.5]])
    assert a == b
    assert hash(a) == hash(b)
    assert a != PreferenceMatrix(a.array, ["x", "y"])
    assert a.digest == PreferenceMatrix(a.array, ["x", "y"]).digest
    assert a != "a"


def test_names_and_indices():
    p = PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]], ["bm25", "dense"])
    assert p["bm25", "dense"] == p[0, 1] == p[np.int64(0), 1] == 0.7
    assert (len(p), p.arms, p.names) == (2, 2, ("bm25", "dense"))
    assert repr(p) == "PreferenceMatrix(2 arms, Condorcet winner 'bm25')"
    assert np.asarray(p) is p.array
    with pytest.raises(UnknownName, match=r"unknown arm 'bm52'\. Did you mean 'bm25'\?"):
        p["bm52", "dense"]
    for arm in (2, -1, 0.5, None, math.nan):
        with pytest.raises(InvalidInput, match="does not exist: expected a name or an index from 0 to 1"):
            p.index(arm)


@given(matrices(), st.randoms())
def test_subset_and_shuffle_keep_the_pairs(matrix, random):
    arms = random.sample(range(matrix.arms), random.randint(2, matrix.arms))
    subset = matrix.subset(arms)
    assert subset.names == tuple(matrix.names[k] for k in arms)
    assert all(subset[a, b] == matrix[arms[a], arms[b]] for a in range(len(arms)) for b in range(len(arms)))
    shuffled = matrix.shuffle(3)
    assert sorted(shuffled.names) == sorted(matrix.names)
    assert all(shuffled[a, b] == matrix[a, b] for a in matrix.names for b in matrix.names)
    assert shuffled == matrix.shuffle(3)


def test_nearly_even_pairs_have_no_winner():
    """Where P + Pᵀ is only nearly 1, an arm wins a pair if both entries say so: a winner's gaps are above 0."""
    assert PreferenceMatrix([[0.5, 0.5], [0.5 - 5e-10, 0.5]]).condorcet_winner is None
    assert PreferenceMatrix([[0.5, 0.5 + 4e-10], [0.5 + 4e-10, 0.5]]).condorcet_winner is None
    p = PreferenceMatrix([[0.5 + 1e-10, 0.5 + 1e-12], [0.5 - 1e-12, 0.5]])
    assert p.gaps[0] == 0
    assert p.gaps[1] > 0


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[0.5, 0.6, 0.7], [0.4, 0.5, 0.6]], r"the matrix has shape \(2, 3\), expected square"),
        ([0.5, 0.5], r"the matrix has shape \(2,\), expected square"),
        ([[0.5]], "the matrix has 1 arm, expected at least 2"),
        ([[0.5, math.nan], [0.4, 0.5]], r"P\[0, 1\] = nan, expected a finite probability"),
        ([[0.5, math.inf], [0.4, 0.5]], r"P\[0, 1\] = inf, expected a finite probability"),
        ([[0.5, 0.4], [1.2, 0.5]], r"P\[1, 0\] = 1.2, expected a probability between 0 and 1"),
        ([[0.5, -0.1], [1.0, 0.5]], r"P\[0, 1\] = -0.1, expected a probability between 0 and 1"),
        ([[0.5, 0.6], [0.4, 0.4]], r"P\[1, 1\] = 0.4, expected 0.5: an arm beats itself half the time"),
        ([[0.5, 0.6], [0.42, 0.5]], r"P\[0, 1\] \+ P\[1, 0\] = 0.6 \+ 0.42 = 1.02, expected 1"),
        ([[0.5, 0.6], [0.4]], "a preference matrix must be a square table of numbers"),
        ([["x", 0.6], [0.4, 0.5]], "a preference matrix must be a square table of numbers"),
        (np.array([[0.5, 0.6 + 1j], [0.4, 0.5]]), "its numbers are complex"),
        ("arxiv-6", "a preference matrix must be a square table of numbers"),
    ],
)
def test_bad_arrays(array, message):
    with pytest.raises(InvalidInput, match=message):
        PreferenceMatrix(array)


def test_tolerance():
    PreferenceMatrix([[0.5, 0.6], [0.4 + 9e-10, 0.5]])
    with pytest.raises(InvalidInput, match=r"= 1\.00000001, expected 1"):
        PreferenceMatrix([[0.5, 0.6], [0.4 + 1e-8, 0.5]])


def test_bad_names():
    array = [[0.5, 0.6], [0.4, 0.5]]
    with pytest.raises(InvalidInput, match="3 names were given for 2 arms: expected one name per arm"):
        PreferenceMatrix(array, ["a", "b", "c"])
    with pytest.raises(InvalidInput, match="two arms are called 'a': names must be unique"):
        PreferenceMatrix(array, ["a", "a"])


@pytest.mark.parametrize("size", [0, -1, 7, 2.5])
def test_bad_subset_sizes(size):
    with pytest.raises(InvalidInput, match=f"size is {size}: expected a whole number of arms from 1 to 6"):
        load_problem("arxiv-6").condorcet_probability(size)


def test_bad_samples():
    with pytest.raises(InvalidInput, match="samples = 0, expected at least 1"):
        load_problem("arxiv-6").total_order_probability(3, samples=0)


def test_describe_prints_what_is_known_before_it_computes_more(monkeypatch, capsys):
    """In Python a line is a function; on the command line it is printed before the next one is computed."""
    printed = []
    monkeypatch.setattr(PreferenceMatrix, "_subset_text", lambda self, size: printed.append(capsys.readouterr().out))
    app(["matrix", "describe", "arithmetic-8"], standalone_mode=False)
    assert "relaxed transitivity  gamma = 1" in printed[0]
    assert printed[1].startswith("random subsets of 3")


def test_subsets_of_many_arms_are_sampled(monkeypatch):
    matrix = load_problem("random-condorcet:arms=501")
    monkeypatch.setattr("duels.preference.count_ordered_subsets_by_size", None)
    monkeypatch.setattr("duels.preference.count_ordered_subsets", None)
    found = matrix.total_order_probability(3, samples=10_000)
    expected = 1 - matrix.three_cycles / math.comb(501, 3)
    assert not found.exact
    assert abs(found.value - expected) < 5 * found.standard_error


def test_describe():
    assert load_problem("cyclic-4").describe().splitlines() == [
        "arms                  4",
        "Condorcet winner      0",
        "gaps                  0.1 (to 1), median 0.1, largest 0.1",
        "Borda winner          0",
        "Copeland winners      0 (beat 3 of 3)",
        "Smith set             1 arm: 0",
        "three-cycles          1 of 4 triples",
        "total order           no",
        "strong transitivity   no",
        "relaxed transitivity  gamma = 4",
        "random subsets of 3   0.750 have a Condorcet winner, 0.75 a total order",
    ]
    assert "Condorcet winner     none" in PreferenceMatrix(ROCK_PAPER_SCISSORS).describe()


def test_feature_rankers(shared_data):
    p = load_matrix(shared_data("matrices/feature-rankers-64.csv"))
    assert (p.arms, p.condorcet_winner, p.three_cycles) == (64, 13, 434)
    assert np.delete(p.gaps, 13).min() == pytest.approx(0.0096, abs=5e-5)
    assert np.abs(p.array - 0.5)[~np.eye(64, dtype=bool)].min() == pytest.approx(1.6e-4, abs=5e-6)
    # Erratum 3: with the printed C(N_r, K) this would be 0; the appendix has every P_K above 0.97.
    assert p.condorcet_probability(64) == 1
    assert all(p.condorcet_probability(size) > 0.97 for size in range(1, 65))


@pytest.mark.parametrize(("click", "gap"), [("navigational", 0.0056), ("perfect", 0.0066)])
def test_mslr(shared_data, click, gap):
    p = load_matrix(shared_data(f"matrices/mslr-{click}-136.csv"))
    assert (p.arms, p.condorcet_winner) == (136, 109)
    assert np.delete(p.gaps, 109).min() == pytest.approx(gap, abs=5e-5)


@pytest.mark.deep
def test_two_thousand_arms():
    p = load_problem("random-condorcet", arms=2000, gap=0.01, seed=0)
    assert p.gaps[p.condorcet_winner] == 0
    assert np.delete(p.gaps, p.condorcet_winner).min() == pytest.approx(0.01)
    assert p.smith_set == (p.condorcet_winner,)
    # Independent fair pairs: a quarter of the 2000·1999·1998/6 triples are cycles, give or take 1e-3 of them.
    assert p.three_cycles / math.comb(2000, 3) == pytest.approx(0.25, abs=0.002)
    assert not p.is_strongly_transitive
    assert p.gamma >= 1
    assert 0 < p.condorcet_probability(4) < 1
    assert "2000" in p.describe()


@pytest.mark.parametrize("seed", range(5))
def test_ordered_subsets_are_counted_alike_in_one_pass_and_size_by_size(seed):
    """Against every subset of eight arms in all their cycles."""
    from itertools import combinations

    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((8, 8)) < 0.5, 1)
    beats = upper | np.tril(~upper.T, -1)
    expected = []
    for size in range(9):
        subsets = [list(chosen) for chosen in combinations(range(8), size)]
        scores = [sorted(beats[np.ix_(chosen, chosen)].sum(axis=1).tolist()) for chosen in subsets]
        expected.append(sum(found == list(range(size)) for found in scores))
    assert count_ordered_subsets_by_size(beats) == tuple(expected)
    assert [count_ordered_subsets(beats, size) for size in range(1, 9)] == expected[1:]
    assert count_ordered_subsets_by_size(beats, most_work=10) is None
    matrix = PreferenceMatrix(np.where(beats, 0.7, 0.3) + np.diag(np.full(8, 0.2)))
    assert matrix.total_order_probability(4) == (expected[4] / 70, 0.0, True)


def test_html_for_notebooks():
    shown = PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]], ["<b>new</b>", "old & gray"], name="<i>")._repr_html_()
    assert "&lt;i&gt;: 2 arms, Condorcet winner" in shown
    assert "&lt;b&gt;new&lt;/b&gt;</th>" in shown
    assert "old &amp; gray</th>" in shown
    assert "<b>0.700</b>" in shown
    assert ">0.300<" in shown
    assert "<b>0.300" not in shown
    assert "<b>new" not in shown
    large = load_problem("linear:arms=40")._repr_html_()
    assert large.count("<tr>") == 13
    assert "The first 12 of 40 arms" in large
