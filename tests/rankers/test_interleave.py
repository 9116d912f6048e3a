"""Interleaving against exact enumeration: every list's probability, every slot's worth, every verdict."""

import itertools
import json
from collections import defaultdict

import enumeration
import numpy as np
import pytest
from test_clicks import fits

from duels.engine import compiling
from duels.errors import InvalidInput, UnknownName
from duels.rankers import interleaving
from duels.rankers.interleaving import (
    OUTCOMES,
    clear,
    find_method,
    infer,
    interleave,
    judge_clicks,
    make_workspace,
    merge_rankings,
)

LIVE = ("probabilistic:credit=assigned", "team-draft")
METHODS = ["probabilistic", "probabilistic:credit=assigned", "team-draft", "balanced", "optimized"]
A, B = (0, 1, 2, 3), (2, 0, 3, 1)
DRAWS = 30_000


def merge(a, b, *, method="probabilistic", length=10, rng=None, missing="last"):
    """A list by any method, as simulations make it."""
    return merge_rankings(a, b, find_method(method), length, np.random.default_rng(rng), missing)


def desk_of(groups_a, groups_b, length=3, tau=3.0):
    """A workspace with two rankings given as groups of equals, best first."""
    ready = make_workspace(sum(map(len, groups_a)), length, tau)
    for side, groups in enumerate((groups_a, groups_b)):
        place = 0
        for group in groups:
            for document in group:
                ready.documents[side, place], ready.places[side, document] = document, place
                place += 1
            ready.first[side, place - len(group) : place] = place - len(group)
            ready.last[side, place - len(group) : place] = place
    return ready


def drawn(name, groups_a, groups_b, length=3, draws=DRAWS, seed=0):
    """Counts of (list, worth to a) from the compiled kernel."""
    method = find_method(name)
    arrange = compiling.compile_with(method.arrange) if name != "optimized" else method.arrange
    ready, rng = desk_of(groups_a, groups_b, length, method.tau), np.random.default_rng(seed)
    documents = ready.places.shape[1]
    found = defaultdict(int)
    for _ in range(draws):
        shown = arrange(ready, documents, length, rng)
        found[(*ready.shown[:shown].tolist(),), (*map(tuple, ready.worth[:, :shown].tolist()),)] += 1
        clear(ready, shown)
        assert not ready.taken.any()
    counts = defaultdict(int)
    for (shown, worths), count in found.items():
        counts[shown, tuple(np.round(worths[0], 9).tolist())] += count
        assert name in ("balanced", "optimized") or np.allclose(np.sum(worths, axis=0), 1)
    return counts


def singles(ranking):
    return [(document,) for document in ranking]


def mixture(method, groups_a, groups_b, length):
    """What enumeration expects, averaged over every way to break the ties."""
    expected = defaultdict(float)
    ways = list(itertools.product(enumeration.orders(groups_a), enumeration.orders(groups_b)))
    for a, b in ways:
        for key, chance in method(a, b, length).items():
            expected[key] += chance / len(ways)
    return dict(expected)


def marginal(a, b, length):
    found = defaultdict(float)
    for (shown, _, worth), chance in enumeration.probabilistic(a, b, length).items():
        found[shown, worth] += chance
    return found


def assigned(a, b, length):
    found = defaultdict(float)
    for (shown, sides, _), chance in enumeration.probabilistic(a, b, length).items():
        found[shown, tuple(1.0 - side for side in sides)] += chance
    return found


TIED_A, TIED_B = [(0,), (1, 2), (3,)], [(3, 1, 0), (2,)]


@pytest.mark.parametrize(("groups_a", "groups_b"), [(singles(A), singles(B)), (TIED_A, TIED_B)], ids=["plain", "ties"])
@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("probabilistic", marginal),
        ("probabilistic:credit=assigned", assigned),
        ("team-draft", enumeration.team_draft),
    ],
)
def test_lists_and_worths_against_enumeration(name, oracle, groups_a, groups_b):
    counts = drawn(name, groups_a, groups_b)
    assert fits(counts, mixture(oracle, groups_a, groups_b, 3), DRAWS)


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_other_softmaxes(tau):
    counts = drawn(f"probabilistic:tau={tau}", singles(A), singles(B), length=2)
    expected = defaultdict(float)
    for (shown, _, worth), chance in enumeration.probabilistic(A, B, 2, tau).items():
        expected[shown, worth] += chance
    assert fits(counts, expected, DRAWS)


def test_the_enumeration_test_can_fail():
    counts = drawn("probabilistic:tau=2.7", singles(A), singles(B))
    lists = defaultdict(int)
    for (shown, _), count in counts.items():
        lists[shown] += count
    expected = defaultdict(float)
    for (shown, _, _), chance in enumeration.probabilistic(A, B, 3).items():
        expected[shown] += chance
    assert not fits(lists, expected, DRAWS)


def test_balanced_against_enumeration():
    for groups_a, groups_b in ((singles(A), singles(B)), (TIED_A, TIED_B)):
        lists = defaultdict(int)
        for (shown, _), count in drawn("balanced", groups_a, groups_b).items():
            lists[shown] += count
        assert fits(lists, mixture(enumeration.balanced, groups_a, groups_b, 3), DRAWS)


def test_balanced_verdicts_against_the_definition():
    for a, b in itertools.product(itertools.permutations(range(4)), repeat=2):
        for seed in range(2):
            shown, record = merge(a, b, method="balanced", length=3, rng=seed)
            for size in range(4):
                for clicked in itertools.combinations(shown, size):
                    assert judge_clicks(record, clicked) == enumeration.judge_balanced(a, b, shown, clicked)


def test_balanced_by_hand():
    # A = a b c, B = b c a. Whoever begins: a b c (a first: a, b(B), then A's b is there, c) or b a c.
    shown, record = merge([*"abc"], [*"bca"], method="balanced", length=3, rng=1)
    assert shown in (["a", "b", "c"], ["b", "a", "c"])
    # A click on c: places 2 in A and 1 in B, so k = 1: A's top two are a, b (no click), B's are b, c: B wins.
    assert judge_clicks(record, ["c"]) == 0.0
    assert judge_clicks(record, ["a"]) == 1.0
    assert judge_clicks(record, []) == 0.5


def test_probabilistic_by_hand():
    # Two documents, A = x y, B = y x, τ = 3: weights 1 and 1/8, so P_A(x) = 8/9 and P_B(x) = 1/9.
    # A click on x in the first slot is worth 8/9 to A. In the second slot one document is left: ½ each.
    seen = set()
    for seed in range(20):
        (first, second), record = merge([*"xy"], [*"yx"], rng=seed)
        assert record["left"] == pytest.approx([8 / 9 if first == "x" else 1 / 9, 0.5])
        assert judge_clicks(record, ["x"]) == (1.0 if first == "x" else 0.5)
        assert judge_clicks(record, [first, second]) == (1.0 if first == "x" else 0.0)
        seen.add(first)
    assert seen == {"x", "y"}


@pytest.mark.parametrize("name", METHODS)
def test_identical_rankings_tie_or_are_fair(name):
    """The same ranking twice: credits are equal, or who gets which is a fair coin."""
    balance = 0
    for seed in range(600):
        shown, record = merge(range(6), range(6), method=name, length=4, rng=seed)
        balance += judge_clicks(record, shown[:1]) - 0.5
    # A fair coin of ±½ 600 times: 5 standard deviations are 61, a false alarm in 10⁶.
    assert abs(balance) < 61
    if name in ("probabilistic", "balanced", "optimized"):
        assert balance == 0


@pytest.mark.parametrize("name", METHODS)
def test_swapping_rankings_mirrors_the_outcome(name):
    """The distribution of (list, outcome of any clicks) with the rankings swapped is the same with 1 − outcome."""

    def outcomes(a, b, seed):
        counts = defaultdict(int)
        rng = np.random.default_rng(seed)
        for _ in range(1500):
            shown, record = merge(a, b, method=name, length=2, rng=rng)
            counts[tuple(shown), judge_clicks(record, shown[:1]), judge_clicks(record, shown[1:])] += 1
        return counts

    there, back = outcomes((0, 1, 2), (1, 2, 0), 1), outcomes((1, 2, 0), (0, 1, 2), 2)
    draws = sum(there.values())
    for key in set(there) | {(shown, 1 - x, 1 - y) for shown, x, y in back}:
        n, m = there[key], back[key[0], 1 - key[1], 1 - key[2]]
        # Two binomial counts of the same chance: 6 standard deviations of their difference.
        assert abs(n - m) <= 6 * np.sqrt(n + m + 1), (key, n, m, draws)


@pytest.mark.parametrize("name", METHODS)
def test_the_live_face_is_the_kernel(name):
    """On the same randomness `interleave` and the compiled kernel make the same list and the same worths."""
    rng = np.random.default_rng(3)
    method = find_method(name)
    arrange = compiling.compile_with(method.arrange) if name != "optimized" else method.arrange
    for seed in range(50):
        a, b = rng.permutation(12).tolist(), rng.permutation(12).tolist()
        ready = desk_of(singles(a), singles(b), 10, method.tau)
        # Live, documents are numbered in the order in which they first appear.
        numbers = {document: k for k, document in enumerate(dict.fromkeys([*a, *b]))}
        ready = desk_of([(numbers[d],) for d in a], [(numbers[d],) for d in b], 10, method.tau)
        shown = arrange(ready, 12, 10, np.random.default_rng(seed))
        merged = merge(a, b, method=name, rng=seed)
        assert [numbers[d] for d in merged.documents] == ready.shown[:shown].tolist()
        assert merged.record["left"] == ready.worth[0, :shown].tolist()
        assert merged.record["right"] == ready.worth[1, :shown].tolist()
        if name in LIVE:
            assert interleave(a, b, method=name, rng=seed) == merged
            clicks = merged.documents[seed % 3 :: 4]
            assert infer(merged.record, clicks) == OUTCOMES[judge_clicks(merged.record, clicks)]


@pytest.mark.parametrize("name", METHODS)
def test_records_survive_json(name):
    shown, record = merge(["d1", "d2", 3], [3, "d2", "d1"], method=name, rng=0)
    back = json.loads(json.dumps(record))
    for clicked in ([], shown[:1], shown[1:], shown):
        assert judge_clicks(back, clicked) == judge_clicks(record, clicked)
    assert len(json.dumps(record)) < 1000


def test_any_kind_of_id_survives_json():
    for a in (np.array([5, 7, 9]), [("q", 1), ("q", 2)], ["x", 3, None]):
        b = a[::-1]
        shown, record = merge(a, b, rng=0)
        back = json.loads(json.dumps(record))
        assert judge_clicks(back, shown[:1]) == judge_clicks(record, shown[:1])


@pytest.mark.parametrize("tau", [5.0, 20.0, 50.0])
def test_steep_softmaxes_stay_exact(tau):
    """Once the first places are gone almost no weight is left; the worths are still those of the definition."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a, b = rng.permutation(12).tolist(), rng.permutation(12).tolist()
        shown, record = merge(a, b, method=f"probabilistic:tau={tau:g}", length=8, rng=seed)
        left_a, left_b = ({d: (r.index(d) + 1.0) ** -tau for d in r} for r in (a, b))
        for slot, d in enumerate(shown):
            p_a, p_b = left_a[d] / sum(left_a.values()), left_b[d] / sum(left_b.values())
            assert record["left"][slot] == pytest.approx(p_a / (p_a + p_b), rel=1e-9)
            del left_a[d], left_b[d]


def test_short_rankings_and_missing_documents():
    assert len(merge([*"ab"], [*"ba"]).documents) == 2
    shown, record = merge([*"abc"], [*"xyz"], missing="last", length=6, rng=0)
    assert sorted(shown) == list("abcxyz")
    assert judge_clicks(record, [shown[0]]) in (0.0, 1.0)
    team, _ = merge(range(100), range(100, 200), method="team-draft", missing="last", rng=0)
    assert sum(d < 100 for d in team) == 5


@pytest.mark.parametrize("name", METHODS)
def test_rankings_may_be_empty(name):
    for a, b, expected in (([], [], []), (["x"], [], ["x"]), ([], ["x", "y"], ["x", "y"])):
        for seed in range(10):
            shown, record = merge(a, b, method=name, rng=seed)
            assert sorted(shown) == expected
            assert judge_clicks(json.loads(json.dumps(record)), []) == 0.5
            if name in LIVE:
                assert infer(interleave(a, b, method=name, rng=seed).record, []) == "tie"


def test_different_documents_are_interleaved_and_can_be_refused():
    assert set(interleave(["a", "b"], ["b", "c"]).documents) == {"a", "b", "c"}
    with pytest.raises(InvalidInput, match=r"'a' is in only one of them.*leave missing='refuse' out"):
        interleave(["a"], [], missing="refuse")


HITS = [{"_id": "a", "_score": 1.0}, {"_id": "b", "_score": 0.5}]


@pytest.mark.parametrize(
    "wrong", [{"took": 3, "hits": {"hits": HITS}}, "abc", b"abc", {"a", "b"}, HITS, [["a"], ["b"]], None, 7]
)
def test_what_is_not_a_ranking_is_refused_with_what_to_pass(wrong):
    for call, side in ((lambda: interleave(wrong, ["a"]), "left"), (lambda: interleave(["a"], wrong), "right")):
        with pytest.raises(InvalidInput, match=rf"the {side} ranking .*\[hit\['_id'\] for hit in"):
            call()
    assert interleave([hit["_id"] for hit in HITS], ["a"], rng=0).documents


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: interleave([*"ab"], [*"bc"], missing="refuse"),
            "different documents: 'c' is in only one of them",
        ),
        (
            lambda: interleave([*"ab"], [*"b"], missing="refuse"),
            "different documents: 'a' is in only one of them",
        ),
        (lambda: interleave([*"aba"], [*"ab"]), "document 'a' appears twice in one ranking"),
        (lambda: interleave([*"ab"], [*"ba"], length=0), "length is 0: expected a list of at least 1"),
        (lambda: interleave([*"ab"], [*"ba"], missing="ignore"), "missing is 'ignore': expected 'refuse' or 'last'"),
        (lambda: interleave([*"ab"], [*"ba"], method="teamdraft"), "Did you mean 'team-draft'?"),
        (lambda: find_method("probabilistic:tau=-1"), "tau of probabilistic is -1.0"),
        (lambda: find_method("probabilistic:tau=nan"), "tau of probabilistic is nan"),
        (lambda: find_method("probabilistic:credit=all"), "expected 'marginal' or 'assigned'"),
        (lambda: find_method("probabilistic:tau=99"), "tau of probabilistic is 99.0: expected 0 (any order) to 50"),
        (lambda: infer(interleave([*"ab"], [*"ba"]).record, None), "clicks is None: expected a list of documents"),
        (
            lambda: infer(interleave([*"ab"], [*"ba"]).record | {"left": [float("nan")] * 2}, []),
            "its worths are not numbers",
        ),
        (lambda: infer({"method": "team-draft"}, []), "this is not the record of an interleaved list"),
        (
            lambda: infer(interleave([*"ab"], [*"ba"]).record, ["z"]),
            "'z' was clicked but is not on the list of 2 documents",
        ),
        (lambda: merge(range(12), range(12), method="optimized", length=12), "expected lists of at most 10"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)
    assert isinstance(caught.value, UnknownName) == ("Did you mean" in message)


def random_pair(rng, length, pool):
    return tuple(rng.permutation(pool)[:length].tolist()), tuple(rng.permutation(pool)[:length].tolist())


@pytest.mark.parametrize(("length", "pool"), [(1, 3), (2, 3), (3, 3), (4, 6), (5, 5), (6, 9), (10, 14)])
def test_optimized_constraints_hold(length, pool):
    rng = np.random.default_rng(length)
    for _ in range(8):
        a, b = random_pair(rng, length, pool)
        lists, chances = interleaving.distribution(a, b)
        assert chances.min() >= 0
        assert chances.sum() == pytest.approx(1)
        credit = np.array(
            [[interleaving.inverse_place(a, d) - interleaving.inverse_place(b, d) for d in one] for one in lists]
        )
        for k in range(1, length + 1):  # a user who clicks at random in the top k prefers neither
            assert abs(chances @ credit[:, :k].sum(axis=1)) < 1e-7


def test_allowed_lists_are_all_those_with_tops_as_prefixes():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = random_pair(rng, 3, 4)
        allowed = {
            one
            for one in itertools.permutations(set(a) | set(b), 3)
            if all(
                any(set(one[:k]) == set(a[:i]) | set(b[:j]) for i in range(4) for j in range(4)) for k in range(1, 4)
            )
        }
        assert set(interleaving.list_allowed(a, b)) == allowed


def test_optimized_lists_follow_their_distribution():
    counts = defaultdict(int)
    for (shown, _), count in drawn("optimized", singles(A), singles(B), draws=5000).items():
        counts[shown] += count
    lists, chances = interleaving.distribution(A[:3], B[:3])
    expected = {one: float(p) for one, p in zip(lists, chances) if p > 1e-12}
    assert fits(counts, expected, 5000)
