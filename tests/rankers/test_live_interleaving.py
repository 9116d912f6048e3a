"""Live interleaving is fair: clicks that ignore relevance have mean outcome 1/2, by exact enumeration.

Such clicks fall on places whatever is there. So each set of clicked places is looked at by itself: if the mean outcome
over all lists is 1/2 for each, it is for every law of clicks.
"""

from fractions import Fraction
from itertools import chain, combinations, permutations, product

import enumeration
import numpy as np
import pytest

import duels
from duels.errors import InvalidInput
from duels.rankers import infer, interleave, interleaving
from duels.rankers.interleaving import find_live_method, find_method, judge_clicks, merge_rankings

HALF = Fraction(1, 2)
FAIR = ("team-draft", "probabilistic")
HEADS, TAILS = 0.25, 0.75
HEAD_QUERY = (["x", "y", "z"], ["y", "z", "x"])


class Script(np.random.Generator):
    """A random generator whose numbers are given in advance."""

    def __init__(self, numbers):
        super().__init__(np.random.PCG64())
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


def click_sets(length):
    """Every set of places of a list."""
    return list(chain.from_iterable(combinations(range(length), size) for size in range(length + 1)))


def clicked(shown, places):
    return [shown[place] for place in places]


def marginal(a, b, length):
    found = {}
    for (shown, _, worth), chance in enumeration.probabilistic(a, b, length).items():
        found[shown, worth] = found.get((shown, worth), 0) + chance
    return found


def assigned(a, b, length, tau=3):
    found = {}
    for (shown, sides, _), chance in enumeration.probabilistic(a, b, length, tau).items():
        key = shown, tuple(1 - side for side in sides)
        found[key] = found.get(key, 0) + chance
    return found


DEFINITIONS = {"team-draft": enumeration.team_draft, "probabilistic": assigned}


def complete(ranking, documents):
    """Every order of a ranking with the documents that it lacks, which are tied behind it."""
    absent = [document for document in documents if document not in ranking]
    return [(*ranking, *rest) for rest in permutations(absent)]


@pytest.mark.parametrize("method", FAIR)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_fair_by_definition_for_all_permutations(method, size):
    """Every pair of rankings of the same documents: names do not matter, so that one of the two is 0, 1, 2…"""
    a = tuple(range(size))
    for b in permutations(a):
        for length in range(1, size + 1):
            lists = DEFINITIONS[method](a, b, length)
            assert sum(lists.values()) == 1
            assert {enumeration.mean_by_places(lists, places) for places in click_sets(length)} == {HALF}


@pytest.mark.parametrize("method", FAIR)
def test_fair_by_definition_for_different_documents(method):
    """Every pair of rankings of one to three of four documents, with absent ones tied at the end."""
    pairs = [
        (a, b)
        for a in ((0,), (0, 1), (0, 1, 2))
        for size in (1, 2, 3)
        for b in permutations(range(4), size)
        if set(a) != set(b)
    ]
    assert len(pairs) == 3 * 40 - 1 - 2 - 6
    for a, b in pairs:
        documents = sorted({*a, *b})
        ways = list(product(complete(a, documents), complete(b, documents)))
        lists = [DEFINITIONS[method](first, second, len(documents)) for first, second in ways]
        for places in click_sets(len(documents)):
            assert sum(enumeration.mean_by_places(one, places) for one in lists) == HALF * len(ways)


@pytest.mark.parametrize("tau", [0, 1])
def test_fair_by_definition_for_other_softmaxes(tau):
    for b in permutations(range(3)):
        lists = assigned((0, 1, 2), b, 3, tau)
        assert {enumeration.mean_by_places(lists, places) for places in click_sets(3)} == {HALF}


def mean_outcomes(a, b, scripts, **more):
    """The mean outcome of each set of clicked places, over lists that the code makes of these random numbers."""
    answers = {}
    for script in scripts:
        rng = Script(script)
        shown, record = interleave(a, b, rng=rng, **more)
        assert not rng.numbers  # all of them were used
        for places in click_sets(len(shown)):
            answers.setdefault(places, []).append(infer(record, clicked(shown, places)))
    points = {"left": 2, "tie": 1, "right": 0}
    return {Fraction(sum(points[one] for one in found), 2 * len(found)) for found in answers.values()}


def team_draft_scripts(length):
    """One coin for each round of two places."""
    return product((HEADS, TAILS), repeat=(length + 1) // 2)


def probabilistic_scripts(draws):
    """A coin for each place, and what is drawn from the ranking that it chose."""
    for coins in product((HEADS, TAILS), repeat=len(draws)):
        yield list(chain.from_iterable(zip(coins, draws)))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_code_of_team_draft_is_fair(size):
    """`interleave` and `infer` on every sequence of coins, which are all equally likely."""
    for b in permutations(range(size)):
        for length in range(1, size + 1):
            assert mean_outcomes(range(size), b, team_draft_scripts(length), length=length) == {HALF}


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_code_of_probabilistic_is_fair(size):
    """On every sequence of coins, whatever the draws are: the mean is 1/2 for each sequence of draws by itself."""
    grid = (0.02, 0.4, 0.97) if size < 4 else (0.02, 0.97)  # of the first, a middle and the last document
    for b in permutations(range(size)):
        for draws in product(grid, repeat=size):
            scripts = probabilistic_scripts(draws)
            assert mean_outcomes(range(size), b, scripts, method="probabilistic") == {HALF}


def test_the_code_is_fair_for_different_documents():
    """Each ranking lacks one document at most, which then has a place of its own: no draw is about ties."""
    for a, b in product(permutations(range(4), 3), [(0, 1, 2), (1, 2, 3), (3, 0, 1)]):
        length = len({*a, *b})
        more = {"length": length, "missing": "last"}
        assert mean_outcomes(a, b, team_draft_scripts(length), **more) == {HALF}
        scripts = probabilistic_scripts([0.3] * length)
        assert mean_outcomes(a, b, scripts, method="probabilistic", **more) == {HALF}


def test_two_copies_of_a_ranking_are_fair_for_all_users():
    """The list does not tell which coins made it: users who know what is relevant prefer neither copy."""
    same = (0, 1, 2, 3)
    for lists in (enumeration.team_draft(same, same, 4), assigned(same, same, 4)):
        for shown in {shown for shown, _ in lists}:
            here = {key: chance for key, chance in lists.items() if key[0] == shown}
            total = sum(here.values())
            assert {enumeration.mean_by_places(here, places) / total for places in click_sets(4)} == {HALF}


def balanced_means():
    """One coin decides between two lists."""
    lists = [merge_rankings(*HEAD_QUERY, find_method("balanced"), 3, Script([coin])) for coin in (HEADS, TAILS)]
    return [sum(Fraction(judge_clicks(one.record, [one.documents[k]])) for one in lists) / 2 for k in range(3)]


def optimized_means():
    a, b = (0, 1, 2), (1, 2, 0)
    lists, chances = interleaving.distribution(a, b)
    worths = {
        (one, tuple(0.5 + interleaving.inverse_place(a, d) - interleaving.inverse_place(b, d) for d in one)): chance
        for one, chance in zip(lists, map(Fraction, chances.tolist()))
    }
    return [float(enumeration.mean_by_places(worths, [k])) for k in range(3)]


def test_the_other_methods_are_not_fair():
    """One click on place 1, 2 or 3, where A = x y z and B = y z x: the table of docs/rankers/interleave.md."""
    assert balanced_means() == [HALF, HALF, 0]
    assert optimized_means() == pytest.approx([3 / 7, 13 / 35, 1 / 5])
    lists = marginal((0, 1, 2), (1, 2, 0), 3)
    means = [enumeration.mean_by_places(lists, [k]) for k in range(3)]
    assert [round(float(mean), 3) for mean in means] == [0.446, 0.397, 0.5]
    assert float(sum(means) / 3) == pytest.approx(0.4477, abs=1e-4)


def test_the_methods_for_live_traffic():
    assert find_live_method() == find_method("team-draft")
    for name in ("probabilistic", "probabilistic:credit=assigned"):
        assert find_live_method(name) == find_method("probabilistic:credit=assigned")
    assert find_live_method("probabilistic:tau=1") == find_method("probabilistic:tau=1,credit=assigned")
    assert interleave(*HEAD_QUERY, rng=0).record["method"] == "team-draft"
    assert find_method("probabilistic") == find_method("probabilistic:credit=marginal")  # in simulations


@pytest.mark.parametrize("name", ["balanced", "optimized", "probabilistic:credit=marginal", "probabilistic"])
def test_biased_methods_are_refused(name):
    """`probabilistic` as a method of simulations, which has marginalized credit."""
    method = find_method(name) if name == "probabilistic" else name
    with pytest.raises(InvalidInput, match=r"not for live traffic: .* is not 1/2, so a study .*Use 'team-draft'"):
        interleave(*HEAD_QUERY, method=method)
    with pytest.raises(InvalidInput, match="not for live traffic"):
        infer(merge_rankings(*HEAD_QUERY, find_method(name), 3, np.random.default_rng(0)).record, ["x"])


def test_tell_takes_what_infer_returns():
    """By hand: the record says that left put x first and right y second; both clicked, or neither, is a tie."""
    record = {"method": "team-draft", "documents": ["x", "y"], "left": [1, 0], "right": [0, 1]}
    study = duels.create_study(["old", "new"], storage="sqlite://")
    for clicks, answer in ((["x"], "left"), (["y"], "right"), (["x", "y"], "tie"), ([], "tie")):
        duel = study.ask(allow_self=False)
        study.tell(duel, infer(record, clicks))
        assert study.events()[-1].answer == answer
