"""Rankers against sorting in plain Python, measures against the enumeration of every order of ties."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duels.errors import InvalidInput, UnknownName
from duels.rankers import rankers as module
from duels.rankers.collection import Collection
from duels.rankers.collection import load as load_collection
from duels.rankers.rankers import Rankings, feature_rankers, linear_rankers, score_rankers


def made(features, grades, offsets=None, **more):
    offsets = [0, len(features)] if offsets is None else offsets
    queries = [str(q) for q in range(len(offsets) - 1)]
    return Collection("made", np.array(features, float), np.array(grades), offsets, queries, **more)


@st.composite
def collections(draw, most=6):
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=3))
    count, width = sum(sizes), draw(st.integers(1, 3))
    values = st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0, -2.0])
    features = draw(st.lists(st.lists(values, min_size=width, max_size=width), min_size=count, max_size=count))
    grades = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return made(features, grades, np.cumsum([0, *sizes]))


def refused(message):
    return pytest.raises(InvalidInput, match=re.escape(message))


@pytest.fixture(scope="module")
def two():
    """Two queries; column 1 has ties in the first."""
    return made([[0.5, 3], [0.9, 1], [0.5, 2], [0, 0], [1, 1]], [0, 1, 2, 0, 1], [0, 3, 5])


def test_rankings_by_hand(two):
    found = feature_rankers(two)
    assert found.names == ("f1", "f2")
    assert found.rankings.order.tolist() == [[1, 0, 2, 1, 0], [0, 2, 1, 1, 0]]
    assert found.rankings.place.tolist() == [[1, 0, 2, 1, 0], [0, 2, 1, 1, 0]]
    assert found.rankings.first.tolist() == [[0, 1, 1, 0, 1], [0, 1, 2, 0, 1]]
    assert found.rankings.last.tolist() == [[1, 3, 3, 1, 2], [1, 2, 3, 1, 2]]
    assert found.rankings.offsets is two.offsets
    assert {array.dtype for array in found.rankings[:4]} == {np.dtype(np.int16)}
    assert not any(array.flags.writeable for array in found.rankings)


@settings(deadline=None)
@given(collections(), st.booleans())
def test_rankings_are_those_of_sorting(collection, descending):
    found = feature_rankers(collection, descending=descending).rankings
    for r, (start, end) in itertools.product(
        range(collection.feature_count), itertools.pairwise(collection.offsets.tolist())
    ):
        scores = [value if descending else -value for value in collection.features[start:end, r].tolist()]
        order = sorted(range(end - start), key=lambda d: (-scores[d], d))
        assert found.order[r, start:end].tolist() == order
        assert found.place[r, start:end].tolist() == [order.index(d) for d in range(end - start)]
        for p, document in enumerate(order):
            tied = [scores[other] == scores[document] for other in order]
            assert found.first[r, start + p] == tied.index(True)
            assert found.last[r, start + p] == end - start - tied[::-1].index(True)


def test_long_lists_take_wider_numbers():
    for count, kind in ((32_767, np.int16), (32_768, np.int32)):
        found = feature_rankers(made(np.zeros((count, 1)), np.zeros(count, int))).rankings
        assert {array.dtype for array in found[:4]} == {np.dtype(kind)}
        assert (found.first[0, -1], found.last[0, 0], found.order[0, -1]) == (0, count, count - 1)


def test_chosen_features_and_directions():
    collection = made([[1, 2, 3], [2, 3, 1]], [0, 1], feature_ids=[3, 5, 9])
    assert feature_rankers(collection, [9, "f3"]).names == ("f9", "f3")
    found = feature_rankers(collection, descending={5: False, "f9": True})
    assert found.names == ("f3", "f5-ascending", "f9")
    assert found.rankings.order.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert feature_rankers(collection, descending=False).names == ("f3-ascending", "f5-ascending", "f9-ascending")
    with refused("feature 1 does not exist: made has 3, 5, 9"):
        feature_rankers(collection, [1])
    with pytest.raises(UnknownName, match=re.escape("unknown feature 'f4'. Known: f3, f5, f9.")):
        feature_rankers(collection, ["f4"])
    with refused("feature 1 does not exist"):
        feature_rankers(collection, descending={1: False})
    with refused("descending is {3}: expected True, False or a mapping such as {3: False}"):
        feature_rankers(collection, descending={3})
    with refused("there are no rankers"):
        feature_rankers(collection, [])
    with refused("two rankers are called 'f3'"):
        feature_rankers(collection, [3, 3])


def test_linear_rankers(two):
    found = linear_rankers(two, {"sum": [1, 1], "difference": (1, -1)})
    # sums 3.5, 1.9, 2.5 | 0, 2; differences -2.5, -0.1, -1.5 | 0, 0
    assert found.names == ("sum", "difference")
    assert found.rankings.order.tolist() == [[0, 2, 1, 1, 0], [1, 2, 0, 0, 1]]
    assert found.rankings.last[1].tolist() == [1, 2, 3, 2, 2]
    assert linear_rankers(two, np.eye(2)).names == ("w1", "w2")
    assert linear_rankers(two, np.eye(2), names=["a", "b"]).names == ("a", "b")


@settings(deadline=None)
@given(collections())
def test_unit_weights_are_feature_rankers(collection):
    units = np.eye(collection.feature_count)
    for weights, descending in ((units, True), (-units, False)):
        one = linear_rankers(collection, weights).rankings
        other = feature_rankers(collection, descending=descending).rankings
        assert all(np.array_equal(a, b) for a, b in zip(one, other))


def test_equal_documents_are_tied_wherever_they_stand():
    rng = np.random.default_rng(1)
    document = rng.random(45)
    found = linear_rankers(made(np.tile(document, (997, 1)), np.zeros(997, int)), rng.normal(size=(13, 45)))
    assert (found.rankings.last == 997).all()


def test_weights_that_are_refused(two):
    with refused("weights have shape (2,): expected a row of 2 per ranker"):
        linear_rankers(two, [1, 2])
    with refused("weights have shape (1, 3)"):
        linear_rankers(two, [[1, 2, 3]])
    with refused("weights are not a table of numbers"):
        linear_rankers(two, [[1], [1, 2]])
    with refused("the weight of f2 for ranker 'x' is nan: expected a finite number"):
        linear_rankers(two, {"x": [0, math.nan]})
    with refused("1 names for 2 rows of weights"):
        linear_rankers(two, np.eye(2), names=["a"])
    with refused("two rankers are called 'a'"):
        linear_rankers(two, np.eye(2), names=["a", "a"])
    with refused("use smaller weights"):
        linear_rankers(two, [[1e308, 1e308]])


def test_subsets_and_sums(two):
    features, sums = feature_rankers(two), linear_rankers(two, {"sum": [1, 1]})
    both = features + sums
    assert both.names == ("f1", "f2", "sum")
    assert len(both) == 3
    assert repr(both) == "Rankers(3 of 'made': f1, f2, sum)"
    chosen = both.subset(["sum", 0])
    assert chosen.names == ("sum", "f1")
    for part, whole in zip(chosen.rankings[:4], both.rankings[:4]):
        assert np.array_equal(part, whole[[2, 0]])
        assert not part.flags.writeable
    with pytest.raises(UnknownName, match="unknown ranker 'f3'"):
        both.subset(["f3"])
    with refused("ranker 3 does not exist: expected a name or an index from 0 to 2"):
        both.subset([3])
    with refused("no ranker was chosen"):
        both.subset([])
    with refused("two rankers are called 'f1'"):
        both + features
    with refused("rankers of 'made' and of 'made' rank different documents"):
        features + feature_rankers(made([[1]], [1]))
    assert (features.subset([0]) + feature_rankers(made(two.features, two.grades, two.offsets), [2])).names == (
        "f1",
        "f2",
    )
    with pytest.raises(TypeError):
        features + 1


def orders(rankings, r, start, end):
    """Every order of a query's documents that random ties may give, all equally likely."""
    groups = itertools.groupby(range(end - start), key=lambda p: rankings.first[r, start + p])
    tied = [[int(rankings.order[r, start + p]) for p in places] for _, places in groups]
    for parts in itertools.product(*(itertools.permutations(group) for group in tied)):
        yield [document for part in parts for document in part]


def dcg(grades, k):
    return sum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:k]))


def reciprocal_rank(grades):
    return 1 / (1 + next(place for place, grade in enumerate(grades) if grade > 0))


def measured(rankers, value):
    """The mean of a measure over queries with a relevant document, by every order of ties."""
    collection, found = rankers.collection, []
    for r in range(len(rankers)):
        means = []
        for start, end in itertools.pairwise(collection.offsets.tolist()):
            grades = collection.grades[start:end].tolist()
            if any(grades):
                values = [value([grades[d] for d in order]) for order in orders(rankers.rankings, r, start, end)]
                means.append(math.fsum(values) / len(values))
        found.append(math.fsum(means) / len(means))
    return found


@settings(deadline=None)
@given(collections(most=5), st.integers(1, 7))
def test_measures_are_means_over_every_order_of_ties(collection, k):
    rankers = feature_rankers(collection)
    if not collection.has_relevant.any():
        for measure in (rankers.ndcg, rankers.mrr):
            with refused("no query of made has a relevant document: nothing can be measured"):
                measure()
        return
    expected = measured(rankers, lambda grades: dcg(grades, k) / dcg(sorted(grades, reverse=True), k))
    assert rankers.ndcg(k).tolist() == pytest.approx(expected, abs=1e-12)
    assert rankers.mrr().tolist() == pytest.approx(measured(rankers, reciprocal_rank), abs=1e-12)


@settings(deadline=None)
@given(collections())
def test_measures_interpreted_and_compiled(collection):
    rankers = feature_rankers(collection)
    if collection.has_relevant.any():
        compiled = rankers.ndcg().tolist(), rankers.mrr().tolist()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "compile_with", lambda kernel: kernel)
            assert (rankers.ndcg().tolist(), rankers.mrr().tolist()) == compiled


def test_measures_by_hand(two):
    rankers = feature_rankers(two)
    # f1 on query 1: grade 1 first, then 0 and 2 (gains 0 and 3, on average 1.5) in any order; on query 2 it is perfect.
    tail = 1 / math.log2(3) + 1 / 2
    best = 3 + 1 / math.log2(3)
    assert rankers.ndcg()[0] == pytest.approx(((1 + 1.5 * tail) / best + 1) / 2)
    assert rankers.ndcg(1).tolist() == pytest.approx([(1 / 3 + 1) / 2, (0 + 1) / 2])
    assert rankers.mrr().tolist() == [1, (1 / 2 + 1) / 2]
    with refused("k is 0: expected at least 1"):
        rankers.ndcg(0)


def test_one_relevant_document_in_a_long_tie():
    # All 1,000 documents tied: the rank is uniform, so MRR is the mean of 1/rank.
    rankers = feature_rankers(made(np.zeros((1000, 1)), [0] * 999 + [1]))
    assert rankers.mrr()[0] == pytest.approx(sum(1 / rank for rank in range(1, 1001)) / 1000, rel=1e-12)


def test_the_table(two):
    # f1: ((1 + 1.5·(0.6309 + 0.5))/3.6309 + 1)/2. f2: grades 0, 2, 1, then perfect: ((3·0.6309 + 0.5)/3.6309 + 1)/2.
    table = feature_rankers(two, [2, 1]).describe()
    assert table == "ranker  nDCG@10     MRR\nf1       0.8713  1.0000\nf2       0.8295  0.7500"


def test_file_order_does_not_count(two):
    """Reversing the documents leaves every measure as it is."""
    back = [2, 1, 0, 4, 3]
    reverse = made(two.features[back], two.grades[back], two.offsets)
    assert feature_rankers(reverse).ndcg().tolist() == pytest.approx(feature_rankers(two).ndcg().tolist(), rel=1e-15)
    assert feature_rankers(reverse).mrr().tolist() == feature_rankers(two).mrr().tolist()


def test_mq2008s_best_ranker(shared_data):
    rankers = feature_rankers(load_collection(shared_data("letor/MQ2008-Fold1"), cache=False))
    assert rankers.names[int(rankers.ndcg().argmax())] == rankers.names[int(rankers.mrr().argmax())] == "f39"


def test_np2004s_rankings(shared_data):
    collection = load_collection(shared_data("letor/NP2004-Fold1"), cache=False)
    rankings = feature_rankers(collection).rankings
    assert isinstance(rankings, Rankings)
    for q in (0, 7, 29):
        here = collection.rows(q)
        for r in (0, 20, 63):
            scores = collection.features[here, r]
            assert (np.diff(scores[rankings.order[r, here]]) <= 0).all()
            assert (scores[rankings.order[r, here]] == scores[rankings.order[r, here]][rankings.first[r, here]]).all()
            assert np.array_equal(rankings.order[r, here][rankings.place[r, here]], np.arange(len(scores)))


@settings(max_examples=50)
@given(collections())
def test_a_function_of_the_features_ranks_like_these_features(collection):
    """A column, and a weighted sum, as functions: the same orders and ties; the function sees one query at a time."""
    seen = []

    def first(documents):
        seen.append(len(documents))
        return documents[:, 0]

    found = score_rankers(collection, {"first": first, "negative": lambda documents: list(-documents[:, -1])})
    assert seen == collection.sizes.tolist()
    assert found.names == ("first", "negative")
    last = collection.feature_ids[-1]
    for r, expected in enumerate(
        (feature_rankers(collection, [1]), feature_rankers(collection, [last], descending=False))
    ):
        for part, wanted in zip(found.rankings[:4], expected.rankings[:4]):
            np.testing.assert_array_equal(part[r], wanted[0])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"mine": lambda documents: 1.0}, "ranker 'mine' returned an array of shape (): expected one finite number"),
        (
            {"mine": lambda documents: documents},
            "returned an array of shape (2, 1): expected one finite number for each",
        ),
        ({"mine": lambda documents: [1.0, math.nan]}, "ranker 'mine' returned the score nan"),
        ({"mine": lambda documents: ["a", "b"]}, "ranker 'mine' failed on a query of 2 documents: could not convert"),
        ({"mine": [1.0, 2.0]}, "ranker 'mine' is [1.0, 2.0]: expected a function from features to scores"),
        (lambda documents: documents[:, 0], "expected a dictionary of functions, such as {'mine': f}"),
        ({}, "there are no rankers"),
    ],
)
def test_what_is_no_function_of_documents_is_refused(scores, message):
    with refused(message):
        score_rankers(made([[1], [2]], [0, 1]), scores)


def test_functions_given_as_features_or_weights_are_told_where_to_go():
    collection = made([[1], [2]], [0, 1])
    with refused("for a function use score_rankers"):
        feature_rankers(collection, [len])
    with refused("use score_rankers(collection, {'name': function})"):
        linear_rankers(collection, {"mine": len})
