"""Estimated preferences: against exact expectations, the same on any number of threads, right on real data."""

import pickle

import enumeration
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from test_interleave import marginal

import duels
from duels.errors import InvalidInput
from duels.rankers.clicks import cascade, click_model
from duels.rankers.collection import Collection
from duels.rankers.collection import load as load_collection
from duels.rankers.estimate import EstimatedPreferences, InterleavingEnvironment, estimate_preferences
from duels.rankers.rankers import feature_rankers

# Two queries of four documents; three rankers, the last with ties. Scores are 4 for the first place down to 1.
OTHERS = duels.PreferenceMatrix([[0.5, 0.6, 0.6], [0.4, 0.5, 0.6], [0.4, 0.4, 0.5]], ["x", "y", "z"])
SCORES = np.array([[4, 3, 1], [3, 1, 1], [2, 4, 2], [1, 2, 1], [1, 4, 1], [2, 3, 2], [3, 2, 2], [4, 1, 3]], dtype=float)
GRADES = np.array([0, 1, 0, 0, 1, 0, 0, 1])


def small(columns=(0, 1, 2)):
    scores = SCORES[:, list(columns)]
    return Collection(name="small", features=scores, grades=GRADES, offsets=np.array([0, 4, 8]), queries=("a", "b"))


def groups(column, query):
    """The documents of a query in groups of equal scores, best first."""
    scores = SCORES[4 * query : 4 * query + 4, column]
    return [tuple(np.flatnonzero(scores == value).tolist()) for value in sorted(set(scores.tolist()), reverse=True)]


def exact(a, b, method, model, length):
    """The chance that ranker a beats b, ties a half, by enumeration over queries, tie-breaks, lists and clicks."""
    mean = 0.0
    for query in (0, 1):
        ways = [(x, y) for x in enumeration.orders(groups(a, query)) for y in enumeration.orders(groups(b, query))]
        for x, y in ways:
            grades = GRADES[4 * query : 4 * query + 4].tolist()
            mean += enumeration.expected_outcome(method(x, y, length), grades, model.click, model.stop) / len(ways) / 2
    return mean


def team(a, b, length):
    return {(shown, worth): chance for (shown, worth), chance in enumeration.team_draft(a, b, length).items()}


@pytest.mark.parametrize("clicks", ["perfect", "navigational", "informational"])
@pytest.mark.parametrize(("name", "method"), [("probabilistic", marginal), ("team-draft", team)])
def test_estimates_against_exact_expectations(clicks, name, method):
    estimated = estimate_preferences(small(), clicks=clicks, interleave=name, comparisons=100_000, length=3)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        wanted = exact(a, b, method, click_model(clicks, 2), 3)
        # 5 standard errors: a false alarm in 10⁶.
        assert abs(estimated[a, b] - wanted) < 5 * estimated.standard_errors[a, b] + 1e-9


def test_the_exact_test_can_fail():
    estimated = estimate_preferences(small(), clicks="perfect", comparisons=100_000, length=3)
    wanted = exact(0, 1, marginal, cascade((0.05, 0.95), (0.2, 0.9)), 3)
    assert abs(estimated[0, 1] - wanted) > 5 * estimated.standard_errors[0, 1]


def test_names_say_how_it_was_estimated():
    assert estimate_preferences(small(), comparisons=1).name == "small-navigational"
    assert estimate_preferences(small(), comparisons=1, interleave="team-draft").name == "small-navigational-team-draft"
    assert repr(InterleavingEnvironment(small())) == "InterleavingEnvironment(3 rankers, small-navigational)"


def test_counts_and_standard_errors():
    estimated = estimate_preferences(small(), comparisons=1000)
    counts = estimated.counts
    assert (counts.sum(axis=2) + 1000 * np.eye(3, dtype=int) == 1000).all()
    assert (counts == counts.transpose(1, 0, 2)[:, :, ::-1]).all()
    losses, ties, wins = counts[0, 1]
    outcomes = np.repeat([0.0, 0.5, 1.0], [losses, ties, wins])
    assert estimated[0, 1] == pytest.approx(outcomes.mean())
    assert estimated.standard_errors[0, 1] == pytest.approx(outcomes.std() / np.sqrt(1000))
    for array in (counts, estimated.comparisons, estimated.standard_errors):
        assert not array.flags.writeable
    back = pickle.loads(pickle.dumps(estimated))
    assert isinstance(back, EstimatedPreferences)
    assert back == estimated
    assert (back.counts == counts).all()


COMPILED = [
    "probabilistic",
    "team-draft",
    *(pytest.param(name, marks=pytest.mark.deep) for name in ("balanced", "probabilistic:credit=assigned")),
]


@pytest.mark.parametrize("name", [*COMPILED, "optimized"])
def test_the_same_on_any_number_of_threads(name):
    few = 20 if name == "optimized" else 500
    many = small(columns=[0, 1, 2, 0, 1, 2])  # more pairs than parts of the work, which threads share out differently
    one = estimate_preferences(many, interleave=name, comparisons=few, seed=3, jobs=1)
    assert one == estimate_preferences(many, interleave=name, comparisons=few, seed=3, jobs=3)
    assert one != estimate_preferences(many, interleave=name, comparisons=few, seed=4)


@pytest.mark.parametrize("name", COMPILED)
def test_a_ranker_is_level_with_its_copy(name):
    collection = Collection(
        name="copies", features=SCORES[:, [2, 2]], grades=GRADES, offsets=np.array([0, 4, 8]), queries=("a", "b")
    )
    estimated = estimate_preferences(collection, interleave=name, comparisons=50_000)
    assert abs(estimated[0, 1] - 0.5) < 5 * max(estimated.standard_errors[0, 1], 1e-4)


def test_policies_duel_rankers_directly():
    environment = InterleavingEnvironment(small(), clicks="perfect", length=3)
    assert environment.matrix.condorcet_winner is not None
    base = duels.simulate(environment, "rucb", horizon=20_000, runs=4, seed=1)
    assert base.final()["accuracy"].item() == 1
    assert base.provenance["problems"][environment.matrix.name]["environment"]["interleave"] == "probabilistic"
    assert_frame_equal(base.frame, duels.simulate(environment, "rucb", horizon=20_000, runs=4, seed=1, jobs=1).frame)
    interpreted = duels.simulate(environment, "rucb", horizon=200, runs=2, seed=1, compiled=False)
    assert_frame_equal(interpreted.frame, duels.simulate(environment, "rucb", horizon=200, runs=2, seed=1).frame)


def test_direct_duels_have_the_matrix_for_their_odds():
    """Random pairs played directly win as often as the estimate says, within 5 standard errors.

    Interpreted: no other test needs this policy compiled with interleaving.
    """
    environment = InterleavingEnvironment(small(), length=3)
    results = duels.simulate(environment, "random", horizon=10_000, record=["pairs"], checkpoints=[], compiled=False)
    matrix = estimate_preferences(small(), comparisons=60_000, length=3, seed=9)
    for row in results.pairs.filter(pl.col("first") != pl.col("second")).iter_rows(named=True):
        i, j, n = row["first"], row["second"], row["duels"]
        error = matrix.standard_errors[i, j] * np.sqrt(1 + 60_000 / n)
        assert abs(row["wins"] / n - matrix[i, j]) < 5 * error


def test_optimized_duels_need_the_interpreter():
    matrix = duels.PreferenceMatrix([[0.5, 0.6, 0.6], [0.4, 0.5, 0.6], [0.4, 0.4, 0.5]])
    environment = InterleavingEnvironment(small(), interleave="optimized", length=3, matrix=matrix)
    with pytest.raises(InvalidInput, match="cannot be compiled: pass compiled=False"):
        duels.simulate(environment, "rucb", horizon=10)
    assert duels.simulate(environment, "rucb", horizon=50, compiled=False).frame["t"].max() == 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimate_preferences(small(), comparisons=0), "comparisons is 0: expected at least 1"),
        (lambda: estimate_preferences(small(), comparisons=2.5), "comparisons is 2.5: expected a whole number"),
        (lambda: estimate_preferences(small(), seed=-1), "seed is -1: expected at least 0"),
        (lambda: estimate_preferences(small(), clicks=["x"]), "['x'] is not a click model"),
        (lambda: estimate_preferences(small(), interleave=3), "3 is not an interleaving method"),
        (lambda: estimate_preferences(small(), jobs=0), "jobs is 0: expected at least 1"),
        (lambda: estimate_preferences(small(), length=0), "length is 0: expected at least 1"),
        (lambda: estimate_preferences(small(), feature_rankers(small())), "the rankers belong to another collection"),
        (lambda: estimate_preferences(small(), clicks=cascade([0.5], [0.5])), "but the documents have grades up to 1"),
        (lambda: estimate_preferences(small(), clicks="nav"), "unknown click model 'nav'"),
        (
            lambda: InterleavingEnvironment(small(), matrix=duels.load_problem("arxiv-6")),
            "the matrix has 6 arms, but there",
        ),
        (
            lambda: InterleavingEnvironment(small(), matrix=OTHERS),
            "the matrix's arms are called x, y, z, …, the rankers f1",
        ),
        (
            lambda: estimate_preferences("train.txt"),
            "'train.txt' is not a collection: read one with duels.rankers.load",
        ),
        (lambda: estimate_preferences(small(), [1, 2]), "[1, 2] is not Rankers: make them"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)


def test_one_ranker_is_not_enough():
    collection = small()
    with pytest.raises(InvalidInput, match="1 ranker was given: expected at least 2"):
        estimate_preferences(collection, feature_rankers(collection, [1]))


@pytest.mark.parametrize(
    ("clicks", "comparisons"),
    [
        ("perfect", 1000),
        ("navigational", 1000),
        *(
            pytest.param(clicks, 4000, marks=pytest.mark.deep)
            for clicks in ("perfect", "navigational", "informational")
        ),
    ],
)
def test_feature_39_is_the_best_of_mq2008(shared_data, clicks, comparisons):
    collection = load_collection(shared_data("letor/MQ2008-Fold1"))
    estimated = estimate_preferences(collection, clicks=clicks, comparisons=comparisons)
    assert estimated.arms == 46
    assert estimated.names[estimated.condorcet_winner] == "f39"


@pytest.mark.deep
def test_two_seeds_agree_within_their_errors(shared_data):
    """Differences in standard errors are standard normal: mean square 1 ± 5·√(2/1035), none beyond 5.5."""
    collection = load_collection(shared_data("letor/MQ2008-Fold1"))
    one, two = (estimate_preferences(collection, seed=seed, comparisons=1000) for seed in (0, 1))
    pairs = np.triu_indices(46, 1)
    z = (one.array - two.array)[pairs] / np.hypot(one.standard_errors, two.standard_errors)[pairs]
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / len(z))
    assert np.abs(z).max() < 5.5
