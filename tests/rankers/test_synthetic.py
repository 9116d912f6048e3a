"""Synthetic collections: formulas by hand, LETOR's conventions, NP2004's habits, the paper's shape of result."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from duels.errors import InvalidInput
from duels.rankers.collection import load as load_collection
from duels.rankers.collection import save as save_collection
from duels.rankers.estimate import estimate_preferences
from duels.rankers.rankers import feature_rankers
from duels.rankers.synthetic import (
    FEATURES,
    Field,
    Links,
    absolute_discounting,
    bm25,
    dirichlet,
    field_features,
    hits,
    idf,
    jelinek_mercer,
    normalize,
    propagate,
    reverse,
    round_scores,
    sitemap,
    split_scores,
    synthetic_collection,
    synthetic_letor,
)


@pytest.fixture(scope="module")
def collection():
    return synthetic_collection()


def column(collection, name):
    return collection.features[:, collection.feature_names.index(name)].reshape(collection.query_count, -1)


# Two terms, four documents: the first term twice in 10 words; both once in 20; neither in 5; the first once in 1,000.
FIELD = Field(
    counts=np.array([[2.0, 1, 0, 1], [0, 1, 0, 0]]),
    lengths=np.array([10.0, 20, 5, 1000]),
    idf=np.array([1.0, 2.0]),
    rates=np.array([0.01, 0.001]),
    mean_length=10.0,
)


def test_bm25_by_hand():
    # norm = 1.2 (0.25 + 0.75 length/10): 1.2, 2.1, …; a term adds idf · tf · 2.2/(tf + norm).
    # 1 · 2 · 2.2/3.2 = 1.375;  (1 + 2) · 2.2/3.1 = 2.129032;  0;  norm 90.3: 2.2/91.3 = 0.024096
    assert bm25(FIELD) == pytest.approx([1.375, 2.129032, 0, 0.024096], abs=1e-6)


def test_language_models_by_hand():
    def log_product(*factors):
        return math.log(math.prod(factors))

    # Absolute discounting: (tf − 0.7)/L + 0.7 · distinct/L · rate; all words of short texts are distinct, of 1,000
    # words 5 · 1000^0.65 = 445.63. The third has none of the terms: the collection's own rates.
    assert absolute_discounting(FIELD) == pytest.approx(
        [
            log_product(0.13 + 0.007, 0.0007),
            log_product(0.015 + 0.007, 0.015 + 0.0007),
            log_product(0.01, 0.001),
            log_product(0.0003 + 0.7 * 0.44563 * 0.01, 0.7 * 0.44563 * 0.001),
        ],
        abs=1e-4,
    )
    # Dirichlet: (tf + 2000 · rate)/(L + 2000): (2 + 20)/2010 and 2/2010; 21/2020 and 3/2020; …
    assert dirichlet(FIELD) == pytest.approx(
        [
            log_product(22 / 2010, 2 / 2010),
            log_product(21 / 2020, 3 / 2020),
            log_product(0.01, 0.001),
            log_product(21 / 3000, 2 / 3000),
        ]
    )
    # Jelinek-Mercer: 0.9 tf/L + 0.1 rate: 0.18 + 0.001 and 0.0001; 0.045 + 0.001 and 0.045 + 0.0001; …
    assert jelinek_mercer(FIELD) == pytest.approx(
        [
            log_product(0.181, 0.0001),
            log_product(0.046, 0.0451),
            log_product(0.001, 0.0001),
            log_product(0.0019, 0.0001),
        ]
    )


def test_counts_and_idf_by_hand():
    tf, summed_idf, tfidf, length, *_ = field_features(FIELD)
    assert tf.tolist() == [2, 2, 0, 1]
    assert summed_idf.tolist() == [3, 3, 3, 3]
    assert tfidf.tolist() == [2, 3, 0, 1]  # 2 · 1; 1 · 1 + 1 · 2; …
    assert length.tolist() == [10, 20, 5, 1000]
    assert idf(np.array([4.0]), 9) == pytest.approx([math.log(1 + 5.5 / 4.5)])


def test_sitemap_adds_a_tenth_of_the_childrens_mean():
    # Page 0 has children 1 and 2: 1.9 · 1 + 0.1 · (2 + 4)/2 = 2.2; the others 1.9 times their own.
    assert sitemap(np.array([1.0, 2, 4]), np.array([-1, 0, 0])) == pytest.approx([2.2, 3.8, 7.6])


def test_links_by_hand():
    links = Links(np.array([0, 0, 1]), np.array([1, 2, 2]), 3)  # 0 → 1, 0 → 2, 1 → 2
    carried = split_scores(np.array([1.0, 3, 5]), links)
    assert carried.tolist() == [0.25, 0.75, 1]
    # Along the links, half of a score its own: 0 has 4/2; 1 has 2/2 + (2/4)/2; 2 has (2 · 3/4 + 1.25)/2.
    assert propagate(np.array([4.0, 2, 0]), links, carried, 0.5) == pytest.approx([2, 1.25, 1.375])
    # Back along them: 2 has 0; 1 has 2/2 + 0; 0 has 4/2 + (1/4)/2.
    assert propagate(np.array([4.0, 2, 0]), reverse(links), carried, 0.5) == pytest.approx([2.125, 1, 0])
    # Authorities (a1, a2) satisfy λ a1 = a1 + a2, λ a2 = a1 + 2 a2: a2/a1 is the golden ratio; hubs likewise.
    golden = (1 + math.sqrt(5)) / 2
    authorities, hubs = hits(links, np.ones(3))
    assert authorities == pytest.approx([0, 1 / golden, 1])
    assert hubs == pytest.approx([1, 1 / golden, 0])
    assert round_scores(np.array([1.0, 2, 0])).tolist() == [0.3333, 0.6667, 0]


def test_normalization_by_hand():
    table = normalize([np.array([2.0, 5, 3]), np.array([7.0, 7, 7]), np.array([-3.0, 0, -1])])
    assert table.tolist() == [[0, 0, 0], [1, 0, 1], [0.333333, 0, 0.666667]]


def test_the_default_is_as_large_as_the_papers_data_set(collection):
    assert collection.features.shape == (75_000, 64)
    assert collection.sizes.tolist() == [1000] * 75
    assert (collection.queries[0], collection.queries[-1]) == ("S-001", "S-075")
    assert collection.documents is not None
    assert len(set(collection.documents)) == 75_000
    assert collection.feature_ids == tuple(range(1, 65))
    assert collection.feature_names == tuple(feature.name for feature in FEATURES)


def test_features_are_listed_once_with_descriptions():
    assert [feature.number for feature in FEATURES] == list(range(1, 65))
    assert len({feature.name for feature in FEATURES}) == 64
    assert all(feature.description for feature in FEATURES)
    # LETOR 3.0's numbers of some well-known features.
    known = {
        21: "bm25-body",
        25: "bm25-whole",
        32: "lm-dir-anchor",
        49: "hits-authority",
        51: "pagerank",
        58: "url-slashes",
    }
    assert {number: FEATURES[number - 1].name for number in known} == known


def test_every_query_has_one_relevant_document_anywhere(collection):
    grades = collection.grades.reshape(75, 1000)
    assert (grades.sum(axis=1) == 1).all()
    # Uniform over 1,000 places: the mean of 75 is 499.5 ± 33; six standard errors fail once in 10⁹.
    assert 300 < grades.argmax(axis=1).mean() < 700


def test_values_are_normalized_by_query_with_six_decimals(collection):
    by_query = collection.features.reshape(75, 1000, 64)
    low, high = by_query.min(axis=1), by_query.max(axis=1)
    assert (low == 0).all()
    constant = np.char.startswith(collection.feature_names, "idf-")
    assert (high[:, constant] == 0).all()
    assert (high[:, ~constant] == 1).mean() > 0.99  # a small query may have no index pages, no links, …
    assert np.isin(high, (0, 1)).all()
    assert np.array_equal(np.round(collection.features, 6), collection.features)


def test_a_letor_file_gives_it_back_exactly(tmp_path):
    made = synthetic_collection(queries=2, documents=50)
    save_collection(made, tmp_path / "synthetic.txt.gz")
    read = load_collection(tmp_path / "synthetic.txt.gz")
    assert np.array_equal(read.features, made.features)
    assert np.array_equal(read.grades, made.grades)
    assert (read.queries, read.documents) == (made.queries, made.documents)


def test_the_seed_decides_everything():
    one, same, other = (synthetic_collection(queries=3, documents=100, seed=seed) for seed in (7, 7, 8))
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_more_queries_and_fewer_features_leave_the_rest_as_it_is():
    few = synthetic_collection(queries=2, documents=100, features=10)
    many = synthetic_collection(queries=4, documents=100)
    assert np.array_equal(few.features, many.features[:200, :10])
    assert few.feature_ids == tuple(range(1, 11))


def test_the_processor_does_not_matter():
    """numpy's own vector code differs in the last bits between processors; six decimals hide it."""
    script = "from duels.rankers.synthetic import synthetic_collection as s; print(s(queries=10).digest)"
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3 AVX512F AVX2 FMA3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == synthetic_collection(queries=10).digest, done.stderr


def test_the_number_of_relevant_documents():
    def relevant(**options):
        made = synthetic_collection(queries=40, documents=20, **options)
        return made.grades.reshape(40, 20).sum(axis=1).tolist()

    assert relevant(relevant=0) == [0] * 40
    assert relevant(relevant=3) == [3] * 40
    assert relevant(relevant=20) == [20] * 40
    assert relevant(relevant=(0, 1)) == [1] * 40
    mixed = np.bincount(relevant(relevant=(0.25, 0.5, 0.25)), minlength=3)
    # Binomial(40, ¼): outside 1 … 25 less than once in 10⁵; only 0, 1 and 2 occur.
    assert mixed.sum() == 40
    assert len(mixed) == 3
    assert 1 <= mixed[0] <= 25
    assert 1 <= mixed[2] <= 25


def test_tiny_collections_work():
    for seed in range(20):
        made = synthetic_collection(queries=3, documents=2, seed=seed)
        assert np.isin(made.features, (0, 1)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 0}, r"queries is 0: expected at least 1"),
        ({"queries": 2.5}, r"queries is 2\.5: expected a whole number"),
        ({"documents": 1}, r"documents is 1: expected at least 2"),
        ({"features": 65}, r"features is 65: expected from 1 to 64"),
        ({"features": 0}, r"features is 0: expected from 1 to 64"),
        ({"seed": -1}, r"seed is -1: expected at least 0"),
        ({"seed": None}, r"seed is None: expected a whole number"),
        ({"relevant": -1}, r"relevant is -1: expected from 0 to 1000"),
        ({"relevant": 1001}, r"relevant is 1001: expected from 0 to 1000"),
        ({"relevant": "one"}, r"relevant is 'one': expected a whole number"),
        ({"relevant": (0.5, 0.6)}, r"relevant = \(0\.5, 0\.6\): expected .* probabilities of 0, 1, 2, … that sum to 1"),
        ({"relevant": (1.5, -0.5)}, r"expected .* probabilities"),
        ({"relevant": ()}, r"expected .* probabilities"),
        ({"relevant": ("a",)}, r"expected .* probabilities"),
        ({"documents": 2, "relevant": (0, 0, 0, 1)}, r"relevant has 4 probabilities: expected at most 3"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        synthetic_collection(**options)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("tf-anchor", 0.66, 0.86),  # NP2004: 0.76
        ("bm25-title", 0.60, 0.80),  # 0.70
        ("bm25-url", 0.75, 0.95),  # 0.85
        ("bm25-body", 0.0, 0.06),  # 0.01
        ("link-score-out", 0.55, 0.75),  # 0.65
        ("hits-authority", 0.59, 0.79),  # 0.69
        ("topical-pagerank", 0.74, 0.94),  # 0.84
        ("children", 0.88, 0.98),  # 0.93
    ],
)
def test_zeros_are_as_common_as_in_np2004(collection, name, least, most):
    assert least < (column(collection, name) == 0).mean() < most


def test_ties_are_as_common_as_in_np2004(collection):
    ties = dict(zip(collection.feature_names, collection.ties.tolist()))
    assert ties["idf-whole"] == 1
    for name in ("tf-title", "tf-url", "bm25-anchor", "bm25-title", "lm-dir-anchor", "url-slashes", "inlinks"):
        assert ties[name] > 0.93, name  # NP2004: 0.94 … 1.00
    for name in ("bm25-body", "bm25-whole", "lm-abs-whole", "sitemap-term"):
        assert 0.03 < ties[name] < 0.3, name  # NP2004: 0.11 … 0.21


def test_some_documents_are_the_same_in_everything(collection):
    same = []
    for start, end in zip(collection.offsets[:-1], collection.offsets[1:]):
        _, times = np.unique(collection.features[start:end], axis=0, return_counts=True)
        same.append(times[times > 1].sum() / (end - start))
    assert 0.01 < np.mean(same) < 0.06  # NP2004: 0.028
    assert np.max(same) > 2 * np.mean(same)  # a lot in some queries, hardly any in most


def test_features_come_in_correlated_blocks(collection):
    def correlation(one, other):
        pairs = zip(column(collection, one)[:20], column(collection, other)[:20])
        return np.mean([stats.spearmanr(a, b).statistic for a, b in pairs])

    assert correlation("sitemap-term", "sitemap-score") > 0.98  # NP2004: 1.00
    assert correlation("bm25-whole", "sitemap-score") > 0.95  # 0.98
    assert correlation("lm-abs-anchor", "lm-jm-anchor") > 0.95  # 1.00
    assert correlation("bm25-title", "tf-title") > 0.9  # 0.97
    assert correlation("length-body", "length-whole") > 0.95  # 1.00
    assert correlation("link-score-in", "link-score-out") > 0.9  # 0.98
    assert correlation("hits-authority", "topical-hits-authority") > 0.85  # 0.94
    assert 0.5 < correlation("tf-body", "length-body") < 0.9  # 0.73
    assert 0.2 < correlation("bm25-whole", "link-score-out") < 0.6  # 0.40
    assert -0.9 < correlation("hostrank", "url-slashes") < -0.5  # −0.71
    assert abs(correlation("bm25-body", "pagerank")) < 0.1  # 0.05


def test_good_features_are_the_good_ones_of_np2004(collection):
    mrr = dict(zip(collection.feature_names, feature_rankers(collection).mrr().tolist()))
    for name in ("bm25-whole", "sitemap-score", "link-score-out", "link-term-in"):
        assert 0.3 < mrr[name] < 0.65, name  # NP2004: 0.41 … 0.46
    for name in ("bm25-anchor", "lm-dir-anchor", "bm25-title", "lm-abs-title", "bm25-body"):
        assert 0.2 < mrr[name] < 0.5, name  # 0.32 … 0.43
    for name in ("bm25-url", "lm-jm-extracted", "hits-authority"):
        assert 0.05 < mrr[name] < 0.4, name  # 0.10 … 0.27
    for name in ("length-body", "length-title", "outlinks", "url-slashes", "url-characters", "idf-body", "children"):
        assert mrr[name] < 0.04, name  # 0.00 … 0.02


def test_constant_features_are_even_and_good_ones_beat_them(collection):
    rankers = feature_rankers(collection, ["idf-body", "idf-title", "bm25-whole", "pagerank"])
    P = estimate_preferences(collection, rankers, comparisons=4000, seed=1, progress=False)
    # Equal rankers: a standard error is at most ½/√4000 = 0.008, six of them are 0.048.
    assert abs(P["idf-body", "idf-title"] - 0.5) < 0.048
    assert P["bm25-whole", "idf-body"] > 0.65
    assert P["bm25-whole", "pagerank"] > 0.6


def papers_matrix(seed):
    return estimate_preferences(synthetic_collection(seed=seed), comparisons=4000, seed=0, progress=False)


@pytest.mark.deep
def test_the_default_has_the_papers_shape():
    P = papers_matrix(0)
    assert P.condorcet_winner is not None
    assert np.delete(P.gaps, P.condorcet_winner).min() > 0.005
    assert min(P.condorcet_probability(size) for size in range(1, 65)) > 0.97
    assert P.three_cycles > 50
    assert not P.is_total_order
    ordered = [P.total_order_probability(size, samples=20_000).value for size in (4, 8, 16, 32)]
    assert ordered == sorted(ordered, reverse=True)
    assert ordered[0] > 0.9
    assert ordered[-1] < 0.05
    rng = np.random.default_rng(0)
    for size in (16, 32, 64):
        subset = P.subset(rng.choice(64, size, replace=False).tolist())
        assert subset.condorcet_winner is None or subset.gamma > 1


@pytest.mark.deep
def test_other_seeds_have_it_too():
    matrices = [papers_matrix(seed) for seed in range(1, 7)]
    with_winner = [P for P in matrices if P.condorcet_winner is not None]
    assert len(with_winner) >= 5
    assert np.median([min(P.condorcet_probability(k) for k in range(1, 65)) for P in matrices]) > 0.95
    assert all(min(P.condorcet_probability(k) for k in range(1, 17)) > 0.9 for P in matrices)
    assert all(P.three_cycles > 50 and not P.is_total_order for P in matrices)
    assert all(P.total_order_probability(32, samples=20_000).value < 0.1 for P in matrices)
    assert all(P.gamma > 1.1 for P in with_winner)


def test_written_and_read_back(tmp_path):
    made = synthetic_collection(queries=3, documents=40, seed=2)
    read = synthetic_letor(tmp_path / "s.txt.gz", queries=3, documents=40, seed=2)
    assert read.digest == made.digest
    assert read.feature_names == made.feature_names
    assert read.queries == made.queries
    assert (tmp_path / "s.txt.gz").exists()
