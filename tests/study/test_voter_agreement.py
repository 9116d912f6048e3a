"""Agreement of voters: α by hand, by published tables and by enumeration; tests of voters by enumeration and luck."""

import doctest
import io
import itertools
import sys
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import duels
from duels.errors import InvalidInput, UnknownName
from duels.study.voters import agreement, voter_tests
from duels.study.voters.agreement import Alpha, Answers, compare_judges, krippendorff
from duels.study.voters.voter_tests import LEVEL, compare, holm, side_p_values


def literal_alpha(units):
    """Krippendorff (2011), nominal data: from the values of each unit; units with one value are left out."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    n = len(values)
    observed = sum(
        sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / n  # fmt: skip
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (n * (n - 1))
    return observed, expected


def alpha_of(observed, expected):
    return 1 - observed / expected


# K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), examples A and C; a dot is a missing value.
BINARY = ["0100000010", "1110010000"]
MISSING = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def units_of(rows):
    return [[value for value in unit if value != "."] for unit in zip(*rows)]


def test_the_transcription_has_the_published_values():
    assert alpha_of(*literal_alpha(units_of(BINARY))) == pytest.approx(0.095, abs=5e-4)
    assert alpha_of(*literal_alpha(units_of(MISSING))) == pytest.approx(0.743, abs=5e-4)


def test_alpha_of_a_published_table():
    """Two values that no coin moves: tie and both bad. 1 − 19 · 4 / (14 · 6) = 0.095."""
    table = np.array([[0, 0, unit.count("0"), unit.count("1")] for unit in units_of(BINARY)])
    assert krippendorff(table).alpha == pytest.approx(1 - 76 / 84)


def test_kappa_of_a_published_table():
    """The usual example of 50 proposals: 20 and 15 alike, 5 and 10 not. κ = (0.7 − 0.5) / 0.5."""
    rows = [("tie", "tie")] * 20 + [("tie", "both_bad")] * 5 + [("both_bad", "tie")] * 10 + [("both_bad",) * 2] * 15
    answers = [(k, judge, word) for k, row in enumerate(rows) for judge, word in zip("ab", row)]
    assert compare_judges(answers)[0][3:] == pytest.approx((0.7, 0.5, 0.4))


@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_krippendorffs_with_the_mean_over_all_orders(seed):
    """Expected disagreement: answers as if to questions of their own, of which each has either order."""
    rng = np.random.default_rng(seed)
    units = [rng.integers(4, size=rng.integers(2, 4)).tolist() for _ in range(3)]
    observed, _ = literal_alpha(units)
    values = [value for unit in units for value in unit]
    means = [
        literal_alpha([[value if value > 1 else value ^ turned for value, turned in zip(values, coins)]])[1]
        for coins in itertools.product([0, 1], repeat=len(values))
    ]
    found = krippendorff(np.array([np.bincount(unit, minlength=4) for unit in units]))
    assert 1 - found.raw == pytest.approx(observed)
    assert 1 - found.base == pytest.approx(np.mean(means))
    assert found.alpha == pytest.approx(alpha_of(observed, np.mean(means)))


def test_alpha_is_undefined_if_nothing_was_ever_decided():
    assert krippendorff(np.array([[0, 0, 2, 0], [0, 0, 3, 0]])) == Alpha(1.0, 1.0, None)
    assert krippendorff(np.array([[3, 0, 0, 0]])) == Alpha(1.0, 0.5, 1.0)


def test_alpha_of_coins_is_zero_on_average():
    """Raw agreement minus base, over 1,500 logs of 6 questions: within 5 standard errors, missed once in 10⁶ times."""
    rng = np.random.default_rng(1)
    tables = rng.multinomial(3, [0.35, 0.35, 0.2, 0.1], (1500, 6))
    found = [krippendorff(table) for table in tables]
    errors = [one.raw - one.base for one in found]
    assert abs(np.mean(errors)) < 5 * np.std(errors) / np.sqrt(1500)


def test_sides_by_enumeration():
    for n in range(9):
        for left in range(n + 1):
            far = sum(comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(2 * left - n))
            assert side_p_values([left], [n - left])[0] == pytest.approx(far / 2**n)


def enumerated(same, other):
    """The two p-values of `compare`, as exact fractions, with shares in sixtieths."""
    part = [round(60 * s / (s + o)) for s, o in zip(same, other)]
    coin, alike = [], []
    for s, o in zip(same, other):
        n, m = s + o, s + o + 1
        coin.append([(round(60 * s / n), Fraction(1, 2)), (round(60 * o / n), Fraction(1, 2))])
        alike.append([(round(60 * s / n), Fraction(s + 1, m)), (round(60 * max(o - 1, 0) / n), Fraction(o, m))])

    def probability(cases, counts):
        every = itertools.product(*cases)
        return sum(np.prod([p for _, p in case]) for case in every if counts(sum(x for x, _ in case)))

    return probability(alike, lambda x: x <= sum(part)), probability(coin, lambda x: x >= sum(part))


@pytest.mark.parametrize("most", [3, 7, 30])
def test_p_values_by_enumeration(most):
    rng = np.random.default_rng(most)
    for _ in range(12):
        others = rng.integers(1, most, size=rng.integers(1, 8))
        same = rng.integers(0, others + 1)
        found = compare(same, others - same)
        assert found[2:] == pytest.approx([float(p) for p in enumerated(same.tolist(), (others - same).tolist())])


def test_many_questions_are_like_the_binomial_distribution():
    """One other voter: a coin agrees as often as heads come; and of two voters nobody can tell who is which."""
    from scipy.stats import binom

    same = np.arange(2000) < 1080
    found = compare(same.astype(np.int64), (~same).astype(np.int64))
    assert found.p_chance == pytest.approx(binom.sf(1079, 2000, 0.5), rel=1e-6)
    assert (found.share, found.expected, found.p_low) == pytest.approx((0.54, 0.54, 1.0))


def test_only_where_the_sum_can_be_is_computed():
    """A sum of 2,000 variables, as by adding one after another; fewer places are computed than there are."""
    rng = np.random.default_rng(5)
    size, chance = rng.choice([20, 30], 2000), rng.choice([0.3, 0.5], 2000)
    begin, width = voter_tests._window(*np.unique(np.stack([size, chance]), axis=1), np.full(4, 500))
    ways = np.ones(1)
    for step, p in zip(size // 10, chance):
        ways = np.append(ways * (1 - p), np.zeros(step)) + np.append(np.zeros(step), ways * p)
    for place in (1900, 1950, 1990, 2000, 2010, 2050):
        assert voter_tests._at_most(size, chance, 10 * place) == pytest.approx(
            ways[: place + 1].sum(), rel=1e-6, abs=1e-12
        )
    assert voter_tests._at_most(size, chance, 5000) == 1e-12
    assert 0 < begin < begin + width < size.sum()


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.02, 0.5: times 4, 3, 2, 1 is 0.04, 0.06, 0.04 → 0.06, 0.5.
    assert holm(np.array([0.02, 0.5, 0.01, 0.02])) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm(np.array([])).tolist() == []


def log(rng, skills, questions=60, each=5, left=()):
    """Rows of voters who see the better arm with the probability of their skill; those in `left` answer left."""
    rows = []
    for question in range(questions):
        arms = rng.permutation(["a", "b", "c"])[:2]  # the first is the better one
        sides = rng.permutation(arms)
        for voter in rng.choice(len(skills), each, replace=False):
            chosen = sides[0] if voter in left else arms[0] if rng.random() < skills[voter] else arms[1]
            rows.append((*sides, chosen, f"v{voter}", question))
    return [dict(zip(("left", "right", "winner", "voter", "item"), row)) for row in rows]


def test_false_alarms_about_sides():
    """Ten voters without a preference: an alarm in 1 % of 2,000 logs at most, more than 42 of them once in 10⁵ times.

    Without Holm's method there are several times as many.
    """
    left = np.random.default_rng(10).binomial(200, 0.5, (2000, 10))
    p = side_p_values(left, 200 - left)
    assert sum((holm(row) <= LEVEL).any() for row in p) <= 42
    assert sum((row <= LEVEL).any() for row in p) > 100


def at_random(rng, skills, questions=60, each=5):
    """Who is listed, among voters who see the better arm with the probability of their skill."""
    voter = np.array([rng.choice(len(skills), each, replace=False) for _ in range(questions)]).ravel()
    choice = (rng.random(len(voter)) > np.array(skills)[voter]).astype(np.int64)
    question = np.repeat(np.arange(questions), each)
    answers = Answers(tuple(map(str, range(len(skills)))), voter, question, choice, choice, np.ones_like(voter))
    return {one.voter for one in agreement._voters(answers, answers, answers, True) if one.at_random}


def test_false_alarms_about_answers_at_random(monkeypatch):
    """Ten voters alike: an alarm in 1 % of 200 logs at most, more than 10 once in 10⁵ times.

    Without Holm's method there are several times as many.
    """
    rng = np.random.default_rng(11)
    alarms = sum(bool(at_random(rng, [0.7] * 10)) for _ in range(200))
    assert alarms <= 10
    monkeypatch.setattr(voter_tests, "holm", lambda p: p)
    assert sum(bool(at_random(rng, [0.7] * 10)) for _ in range(200)) > 10


def test_a_coin_and_an_always_left_are_found():
    """One side in all of 20 logs; the coin in 19 of 20 on average, in fewer than 15 once in 5,000 times.

    Others are listed in 1 % of logs at most: in more than 3 once in 10⁴ times.
    """
    rng = np.random.default_rng(12)
    found = []
    for _ in range(20):
        rows = log(rng, [0.85] * 8 + [0.5, 0.5], questions=250, left=(9,))
        voters = duels.measure_agreement(rows).voters
        found.append([{v.voter for v in voters if getattr(v, kind)} for kind in ("one_sided", "at_random")])
    assert sum("v9" in sides for sides, _ in found) == 20
    assert sum("v8" in random for _, random in found) >= 15
    assert sum(bool(sides - {"v9"}) for sides, _ in found) <= 3
    assert sum(bool(random - {"v8", "v9"}) for _, random in found) <= 3


def test_a_weak_voter_is_not_called_random():
    """Agrees less than the others, for certain, but more than a coin too."""
    rng = np.random.default_rng(13)
    voters = {v.voter: v for v in duels.measure_agreement(log(rng, [0.98] * 9 + [0.7], questions=400)).voters}
    assert voters["v9"].p_low < 1e-6
    assert voters["v9"].p_chance < 1e-6
    assert not voters["v9"].at_random


def test_nothing_depends_on_the_order_of_sides_or_names():
    rng = np.random.default_rng(14)
    rows = log(rng, [0.8] * 6)
    turned = [row | {"left": row["right"], "right": row["left"]} if rng.random() < 0.5 else row for row in rows]
    renamed = [
        row | {key: {"a": "z", "b": "y", "c": "x"}[row[key]] for key in ("left", "right", "winner")} for row in turned
    ]
    here, there = duels.measure_agreement(rows), duels.measure_agreement(renamed)
    assert here[:7] == there[:7]
    for one, other in zip(here.voters, there.voters):
        assert (one.voter, *one[5:10]) == (other.voter, *other[5:10])


VOTES = [
    {"left": "a", "right": "b", "winner": "left", "voter": "ann"},
    {"left": "b", "right": "a", "winner": "right", "voter": "bob"},
    {"left": "a", "right": "b", "winner": "tie", "voter": "cem"},
]


def test_by_hand():
    # Ann and Bob chose a, Cem a tie: of three pairs one agrees. By chance: 2 · 1 / 2 of 3 · 2 ordered pairs.
    found = duels.measure_agreement(VOTES)
    assert found[:6] == ("a pair of arms", 1, 3, pytest.approx(1 / 3), pytest.approx(1 / 6), pytest.approx(0.2))
    assert [(one.first, one.second, one.raw) for one in found.pairs] == [
        ("ann", "bob", 1.0),
        ("ann", "cem", 0.0),
        ("bob", "cem", 0.0),
    ]
    ann = found.voters[0]
    assert (ann.voter, ann.answers, ann.left, ann.right, ann.compared, ann.share) == ("ann", 1, 1, 0, 1, 1.0)
    assert found.voters[2].share is None
    assert str(found).splitlines()[:2] == [
        "3 voters, 1 question with several answers, 3 in all. A question is a pair of arms.",
        "Two answers to the same question agree in 33% of cases (17% by chance, Krippendorff's α = 0.20).",
    ]
    assert str(found).splitlines()[-3:] == [
        "Voters who prefer a side: none.",
        "Voters who agree with the others no more than a coin does: none.",
        "Voters who favor an arm: none.",
    ]


def with_columns(**columns):
    return [row | {name: cells[k] for name, cells in columns.items()} for k, row in enumerate(VOTES)]


@pytest.mark.parametrize(
    ("columns", "question", "questions"),
    [
        ({}, "a pair of arms", 1),
        ({"question_id": [1, 1, 2]}, "a pair of arms and question_id", 1),
        ({"prompt": ["x", "x", "x"], "turn": [1, 2, 2]}, "a pair of arms and prompt and turn", 1),
        ({"question_id": [1, 2, 3], "turn": [1, 1, 1]}, "a pair of arms and question_id and turn", 0),
        ({"item": [["x"], ["y"], ["x"]], "prompt": [1, 2, 3]}, "a pair of arms and item", 1),
    ],
)
def test_what_a_question_is(columns, question, questions):
    rows = with_columns(**columns)
    for source in (rows, iter(rows), duels.read_votes(rows, extra=columns)):
        found = duels.measure_agreement(source)
        assert (found.question, found.questions) == (question, questions)
    assert duels.measure_agreement(rows, question=[]).questions == 1


def test_one_column_by_its_name():
    rows = with_columns(task=[1, 1, 2])
    assert duels.measure_agreement(rows, question="task").answers == 2
    with pytest.raises(UnknownName, match=r"unknown column of the list 'tusk'\. Did you mean 'task'"):
        duels.measure_agreement(rows, question="tusk")


def test_standard_input(monkeypatch):
    text = b"left,right,winner,voter,prompt\na,b,left,ann,1\na,b,left,bob,1\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert duels.measure_agreement("-").raw == 1.0


def test_no_question_with_two_voters_is_said():
    found = duels.measure_agreement(with_columns(item=[1, 2, 3]))
    assert (found.raw, found.base, found.alpha, found.pairs) == (None, None, None, [])
    assert str(found).startswith("No question was answered by two voters, so there is no agreement to measure. A que")
    assert "a coin" not in str(found)


def test_votes_without_voters_are_refused():
    with pytest.raises(InvalidInput, match="the list does not say who voted"):
        duels.measure_agreement([("a", "b", "left")])


def test_some_votes_without_a_voter_or_a_question_are_left_out():
    rows = [*with_columns(item=[1, 1, None]), VOTES[0] | {"voter": None, "item": 1}]
    found = duels.measure_agreement(rows)
    assert (found.answers, found.left_out) == (2, 2)
    assert str(found).endswith("2 votes left out: no voter, or no question.")


def test_winners_and_losers_have_no_sides():
    rows = [{"winner": "a", "loser": "b", "voter": voter, "item": k} for k in range(30) for voter in ("ann", "bob")]
    found = duels.measure_agreement(rows)
    assert not any(one.one_sided or one.left or one.right for one in found.voters)
    assert "No test of sides" in str(found)
    orders = [("a", "b"), ("b", "a")] * 15
    sided = [{"left": a, "right": b, "winner": "left", "voter": "ann", "item": k} for k, (a, b) in enumerate(orders)]
    assert duels.measure_agreement(sided).voters[0].one_sided


def test_the_first_answer_of_a_voter_counts():
    rows = [*with_columns(item=[1, 1, 1]), VOTES[0] | {"winner": "right", "item": 1}]
    found = duels.measure_agreement(rows)
    assert found[3:5] == duels.measure_agreement(rows[:3])[3:5]
    assert (found.voters[0].answers, found.voters[0].left, found.voters[0].right) == (2, 1, 0)
    assert duels.measure_agreement(rows, question=[]).voters[0].right == 1  # a coin for each vote


def test_rows_that_stand_for_several_votes():
    """One answer to a question, and as many votes with coins of their own if a question is a pair of arms."""
    rows = [{"left": "a", "right": "b", "winner": "left", "voter": v, "count": n} for v, n in (("ann", 30), ("bob", 1))]
    found = duels.measure_agreement(rows)
    assert [(one.voter, one.answers, one.left) for one in found.voters] == [("ann", 30, 30), ("bob", 1, 1)]
    assert (found.answers, found.left_out) == (2, 0)
    assert duels.measure_agreement([row | {"item": 1} for row in rows]).voters[0].left == 1


def test_many_voters_of_one_question_take_no_time():
    rows = [("a", "b", "left", f"v{k}") for k in range(3000)]
    found = duels.measure_agreement(rows)
    assert (found.answers, found.raw, len(found.pairs)) == (3000, 1.0, 190)
    assert "185 more pairs of voters" in str(found)


def answered(study, voter, winner):
    study.tell(study.ask(voter=voter, allow_self=False), winner, voter=voter)


def test_a_study_without_items(url):
    """Imported votes count for agreement. Nothing is known about how their sides were decided."""
    study = duels.create_study(["a", "b"], "s", url)
    for voter in ("ann", "bob"):
        answered(study, voter, "a")
    study.import_votes([("a", "b", "right", "eve")] * 40)
    found = duels.measure_agreement(study)
    assert found[:3] == ("a pair of arms", 1, 3)
    assert found.raw == pytest.approx(1 / 3)
    assert [(one.voter, one.answers, one.left + one.right) for one in found.voters] == [
        ("eve", 40, 0),
        ("ann", 1, 1),
        ("bob", 1, 1),
    ]


def test_a_study_with_items(url):
    study = duels.create_study(["a", "b"], "s", url)
    duels.study.add_items(study, [{"prompt": word, "outputs": {"a": "1", "b": "2"}} for word in "xy"])
    for voter in ("ann", "ann", "bob", "bob"):
        answered(study, voter, "a")
    found = duels.measure_agreement(study)
    assert found[:4] == ("a pair of arms and item", 2, 4, 1.0)


def test_questions_that_a_second_judge_answered_count(url):
    """As `JudgeResult.agreements` has them, with what is missing there: questions that both were asked by chance."""
    prompts = [f"prompt {k}" for k in range(60)]
    judges = {"x": lambda prompt, left, right: "left", "y": lambda prompt, left, right: "right"}
    result = duels.find_best(
        {"a": prompts, "b": prompts[::-1]}, judges, prompts=prompts, storage=url, max_calls=100, orders="one"
    )
    found = duels.measure_agreement(result.study)
    (pair,) = found.pairs
    assert pair.questions >= result.agreements[0].questions > 0
    repeats = sum(entry.kind == "repeat" for entry in result.study.events())
    assert sum(one.answers for one in found.voters) == len(result.study.votes()) + repeats
    assert all(one.one_sided for one in found.voters)


def test_the_crowd(shared_data):
    """Real votes: three of 124 voters prefer a side, and four agree with the others no more than a coin does."""
    found = duels.measure_agreement(shared_data("votes/llmfao-crowd.csv.gz"))
    assert (found.question, found.questions, round(found.alpha, 2)) == ("a pair of arms and prompt", 2124, 0.29)
    assert [one.voter for one in found.voters if one.one_sided] == ["20", "37", "32"]
    assert [one.voter for one in found.voters if one.at_random] == ["15", "20", "11", "70"]


def test_the_examples():
    found = [doctest.testmod(module, extraglobs={"duels": duels}) for module in MODULES]
    assert [one.failed for one in found] == [0, 0]
    assert all(one.attempted for one in found)


MODULES = (voter_tests, agreement)


def test_sides_that_no_coin_decided_are_not_tested():
    """In such a log the first arm is always the same one of two, such as the baseline: it says nothing about sides."""
    rows = [{"left": "base", "right": f"arm {k % 3}", "winner": "right", "voter": "ann", "item": k} for k in range(60)]
    found = duels.measure_agreement(rows)
    assert not found.shuffled
    assert [(row.p_side, row.one_sided) for row in found.voters] == [(1.0, False)]
    assert "No test of sides: no two arms were shown in both orders, so no coin decided them." in str(found)
    turned = [row | {"left": row["right"], "right": "base"} if k % 2 else row for k, row in enumerate(rows)]
    assert [row.one_sided for row in duels.measure_agreement(turned).voters] == [True]
