"""Position bias: the evidence by hand, exact false-alarm rates and stopping times, and the order of answers."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from duels.errors import InvalidInput
from duels.study.voters import voter_tests as module
from duels.study.voters.voter_tests import LEVEL, Position, Sides, is_biased, positions

PAGE = Path(__file__).parents[2] / "docs" / "study" / "positions.md"


def first_alarms(fires, p, most):
    """The exact chance that the first alarm is after n answers, n = 0 … most, if each is left with probability p.

    Args:
        fires: Called with the number of answers and the array of all numbers of lefts.
        p: The probability of left.
        most: The largest number of answers.
    """
    alive, chance = np.ones(1), np.zeros(most + 1)  # alive[l]: no alarm so far, and l lefts
    for n in range(1, most + 1):
        alive = np.append(0.0, alive) * p + np.append(alive, 0.0) * (1 - p)
        stops = fires(n, np.arange(n + 1))
        chance[n] = alive[stops].sum()
        alive[stops] = 0.0
    return chance


def mixture(rank):
    """The rule as the module's docstring has it, with scipy's beta function."""

    def fires(n, left):
        log_m = special.betaln(left + 5, n - left + 5) - special.betaln(5, 5) + n * math.log(2)
        return log_m >= math.log(rank * (rank + 1) / 0.01)

    return fires


@pytest.mark.parametrize("rank", [1, 2, 7])
def test_the_rule_is_the_mixture_martingale(rank):
    seen = set()
    for n in range(1, 130):
        expected = mixture(rank)(n, np.arange(n + 1))
        assert [is_biased(left, n - left, rank) for left in range(n + 1)] == expected.tolist()
        seen |= set(expected.tolist())
    assert seen == {True, False}


def test_by_hand():
    # After n lefts in a row M is the product of 2(k+5)/(k+10), k = 0 … n − 1. For n = 16 it is 155.4…, for n = 17
    # 2 · 21/26 times as much, 251.1…; the first judge's level is 1 · 2/0.01 = 200.
    streak = [math.prod(2 * (k + 5) / (k + 10) for k in range(n)) for n in (16, 17)]
    assert streak[0] < 200 < streak[1]
    for side in ((1, 0), (0, 1)):
        assert [is_biased(n * side[0], n * side[1], 1) for n in (16, 17)] == [False, True]
    # The second judge's level is 600: 2 · 22/27 · 251.07 = 409.1, and 2 · 23/28 · 409.1 = 672.2, so 19.
    assert [is_biased(n, 0, 2) for n in (18, 19)] == [False, True]


def test_unbiased_judges_raise_no_alarm_in_two_thousand_answers():
    """The exact chance of an alarm at any of 2,000 looks; of all judges together it is below the study's level."""
    total = 0.0
    for rank in range(1, 7):
        chance = first_alarms(mixture(rank), 0.5, 2000).sum()
        assert LEVEL / (rank * (rank + 1)) / 4 < chance <= LEVEL / (rank * (rank + 1))
        total += chance
        if rank == 1:
            assert f"within 2,000 answers with probability {chance:.4f}," in PAGE.read_text()
    assert total + LEVEL / 7 <= LEVEL  # the judges from the seventh on share the sum of 0.01/(k(k+1)), k ≥ 7


def test_the_exact_chance_finds_rules_that_are_wrong():
    """A test at level 0.01 that is made for one look, and the mixture at twice the level, are found out."""
    repeated = first_alarms(lambda n, left: abs(2 * left - n) > 2.576 * math.sqrt(n), 0.5, 2000).sum()
    assert repeated > 0.1
    doubled = first_alarms(lambda n, left: mixture(1)(n, left + (left > n / 2)), 0.5, 2000).sum()
    assert doubled > LEVEL / 2  # one answer too many for the side that leads


TABLE = re.findall(r"^\| (\d+) % \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[pytest.mark.deep] * (row[0] == "55"), id=f"{row[0]} %") for row in TABLE]
)
def test_the_power_is_what_the_page_says(row):
    """When the alarm comes, exactly."""
    p, *expected = (int(number.replace(",", "")) for number in row)
    cumulative = first_alarms(mixture(1), p / 100, expected[-1] + 1).cumsum()
    assert np.searchsorted(cumulative, [0.5, 0.9, 0.99]).tolist() == expected


def test_the_page_has_its_table():
    assert [row[0] for row in TABLE] == ["55", "60", "65", "75", "90", "100"]


def test_both_sides_are_treated_alike():
    assert first_alarms(mixture(1), 0.25, 300) == pytest.approx(first_alarms(mixture(1), 0.75, 300))


def test_an_alarm_is_final():
    sides = Sides()
    assert [sides.add("gpt", "left") for _ in range(17)] == [False] * 16 + [True]
    assert not any(sides.add("gpt", "right") for _ in range(17))
    assert sides.positions() == [Position("gpt", 17, 17, 0.5, True)]
    assert sides.biased("gpt")
    assert not positions([17], [17], ["gpt"])[0].biased  # the totals do not know


def test_judges_share_the_level_in_the_order_of_their_first_choice():
    sides = Sides()
    sides.add("late", "tie")  # not a choice
    assert sides.positions() == []
    for _ in range(18):
        sides.add(None, "left")
        sides.add("late", "right")
    assert sides.positions() == [Position(None, 18, 0, 1.0, True), Position("late", 0, 18, 0.0, False)]
    assert sides.add("late", "right")
    assert (sides.biased(None), sides.biased("late"), sides.biased("absent")) == (True, True, False)


def test_ties_and_skips_do_not_count():
    sides = Sides()
    for answer in ("left", "tie", "both_bad", "skip", "right"):
        assert not sides.add("gpt", answer)
    assert sides.positions() == [Position("gpt", 1, 1, 0.5, False)]


def test_sides_continue_where_they_were():
    """However the answers are cut in two, the result is the same."""
    chance = np.random.default_rng(0)
    answers = [
        (str(chance.integers(3)), "left" if chance.random() < share else "right")
        for share in (0.9, 0.1)
        for _ in range(120)
    ]
    whole = Sides()
    for one in answers:
        whole.add(*one)
    assert any(one.biased for one in whole.positions())
    for cut in range(0, 241, 16):
        first = Sides()
        for one in answers[:cut]:
            first.add(*one)
        second = Sides(Position(*one) for one in first.positions())
        for one in answers[cut:]:
            second.add(*one)
        assert second.positions() == whole.positions()


def test_totals():
    assert positions([45, 15, 0], [15, 16, 0], ["gpt", None, "new"]) == [
        Position("gpt", 45, 15, 0.75, True),
        Position(None, 15, 16, 15 / 31, False),
        Position("new", 0, 0, 0.5, False),
    ]


def test_what_cannot_be_tested():
    with pytest.raises(InvalidInput, match="2 lefts, 1 rights and 1 names: expected one of each per judge"):
        positions([1, 2], [1], ["gpt"])
    for counts, said in (((-1, 0, 1), "left is -1"), ((0, 0.5, 1), "right is 0.5"), ((0, 0, 0), "rank is 0")):
        with pytest.raises(InvalidInput, match=said):
            is_biased(*counts)


def test_the_examples():
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted > 3
