"""Agreement of judges: by hand, and against a literal transcription of Cohen's κ with every question in both orders."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duels.study.voters.agreement import Agreement, compare_judges


def cohen(first, second):
    """Cohen (1960): the shares of equal labels, of those expected from the judges' own shares, and κ."""
    n = len(first)
    p_o = sum(a == b for a, b in zip(first, second)) / n
    shares = [Counter(labels) for labels in (first, second)]
    p_e = sum(shares[0][label] * shares[1][label] for label in shares[0]) / n**2
    return p_o, p_e, (p_o - p_e) / (1 - p_e)


def in_both_orders(questions, choices):
    """The answers as first, second, tie or both_bad, once for each order of a question's two arms."""
    orders = [*questions, *((b, a) for a, b in questions)]
    words = [{a: "first", b: "second"}.get(choice, choice) for (a, b), choice in zip(orders, [*choices, *choices])]
    return words


def asked(*rows):
    """Answers of gpt and claude to the questions 0, 1, …"""
    return [(number, judge, choice) for number, row in enumerate(rows) for judge, choice in zip(("gpt", "claude"), row)]


def test_by_hand():
    # Ten questions about a and b. Both choose a five times and b once; twice gpt says a and claude b; once both say
    # tie, once only gpt does. Equal: 5 + 1 + 1 of 10. Ties: gpt 2, claude 1 of 10; so by chance
    # 2/10 · 1/10 + 8/10 · 9/10 / 2 = 0.02 + 0.36 = 0.38, and κ = (0.7 − 0.38)/0.62 = 16/31.
    rows = [*[("a", "a")] * 5, ("b", "b"), *[("a", "b")] * 2, ("tie", "tie"), ("tie", "b")]
    (found,) = compare_judges(asked(*rows))
    assert found[:3] == ("gpt", "claude", 10)
    assert found[3:] == pytest.approx((0.7, 0.38, 16 / 31))


def test_tie_and_both_bad_are_different_answers():
    # Equal: 1 of 2. By chance: tie ½ · 1, both_bad ½ · 0.
    assert compare_judges(asked(("tie", "tie"), ("both_bad", "tie"))) == [Agreement("gpt", "claude", 2, 0.5, 0.5, 0.0)]


def test_always_the_same_arm_is_agreement():
    assert compare_judges(asked(("a", "a"), ("a", "a"))) == [Agreement("gpt", "claude", 2, 1.0, 0.5, 1.0)]
    assert compare_judges(asked(("a", "b"), ("a", "b"))) == [Agreement("gpt", "claude", 2, 0.0, 0.5, -1.0)]


@pytest.mark.parametrize("word", ["tie", "both_bad"])
def test_kappa_is_undefined_if_nothing_was_ever_decided(word):
    (found,) = compare_judges(asked(*[(word, word)] * 7))
    assert found == Agreement("gpt", "claude", 7, 1.0, 1.0, None)
    assert str(found) == (
        "gpt and claude agree on 100% of 7 questions (100% by chance, κ is undefined; few questions, so a rough figure)"
    )


def test_few_questions_are_said():
    assert "rough" in str(compare_judges(asked(*[("a", "a")] * 19))[0])
    assert "rough" not in str(compare_judges(asked(*[("a", "a")] * 20))[0])
    assert "of 1 question (" in str(compare_judges(asked(("a", "a")))[0])
    assert str(compare_judges([(1, None, "a"), (1, "gpt", "a")])[0]).startswith("the unnamed judge and gpt agree")


def test_only_questions_that_both_answered_count():
    answers = [(1, "gpt", "a"), (2, "gpt", "b"), (2, "claude", "skip"), (3, "claude", "a"), (4, "gpt", "skip")]
    assert compare_judges(answers) == compare_judges([]) == []
    answers += [(1, "gpt", "b"), (1, "claude", "a"), (2, "claude", "b")]  # the second answer of gpt does not count
    assert compare_judges(answers) == [Agreement("gpt", "claude", 2, 1.0, 0.5, 1.0)]


def test_every_pair_of_judges_in_the_order_of_their_first_answers():
    rows = [(q, judge, "ab"[(q >> k) & 1]) for q in range(8) for k, judge in ((2, "zoe"), (0, None), (1, "gpt"))]
    found = compare_judges(rows)
    assert [one[:3] for one in found] == [("zoe", None, 8), ("zoe", "gpt", 8), (None, "gpt", 8)]
    assert {one[3:] for one in found} == {(0.5, 0.5, 0.0)}


CHOICES = st.lists(st.tuples(*[st.sampled_from(["i", "j", "tie", "both_bad"])] * 2), min_size=1, max_size=30)


@given(CHOICES, st.randoms(use_true_random=False))
def test_it_is_cohen_s_kappa_with_every_question_in_both_orders(rows, chance):
    """Whatever the arms are, and in whatever order they are named."""
    pairs = [chance.choice(list(combinations("abcd", 2))) for _ in rows]
    pairs = [chance.choice([pair, pair[::-1]]) for pair in pairs]
    rows = [[{"i": a, "j": b}.get(choice, choice) for choice in row] for (a, b), row in zip(pairs, rows)]
    (found,) = compare_judges(asked(*rows))
    labels = [in_both_orders(pairs, choices) for choices in zip(*rows)]
    if found.kappa is None:
        assert {len(set(one)) for one in labels} == {1}
    else:
        assert found[3:] == pytest.approx(cohen(*labels))


def test_judges_who_toss_coins_have_a_kappa_near_zero():
    """Of 4,000 questions; κ has a standard error of 0.0158 or less, and five of them are passed once in 10⁶ runs."""
    chance = np.random.default_rng(5)
    choices = chance.choice(["a", "b", "tie"], (4000, 2), p=[0.4, 0.4, 0.2])
    (found,) = compare_judges(asked(*choices.tolist()))
    assert abs(found.kappa) < 5 * 0.0158
    same = np.where(chance.random(4000)[:, None] < 0.5, choices[:, :1], choices)  # half of the answers copied
    assert compare_judges(asked(*same.tolist()))[0].kappa == pytest.approx(0.5, abs=5 * 0.0158)
