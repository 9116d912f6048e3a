"""Counts of a study and what they say by themselves, worked by hand."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duels.errors import InvalidInput
from duels.study.tally import (
    Tally,
    as_tally,
    beaten,
    compared,
    estimates,
    leaders,
    leads,
    met,
    over_others,
    ranking,
    scores,
)

# a beat b 3 to 1 with 2 ties; a never met c; b lost to c 0 to 4; d is retired, beat a 5 to 0 and tied with c once.
NAMES = ("a", "b", "c", "d")
WINS = np.array([[0, 3, 0, 0], [1, 0, 0, 0], [0, 4, 0, 0], [5, 0, 0, 0]])
TIES = np.array([[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
FOUR = as_tally(NAMES, WINS, TIES, active=[True, True, True, False], started_with=2)


def refused(message):
    return pytest.raises(InvalidInput, match=re.escape(message))


def test_a_tally_is_what_was_given():
    assert isinstance(FOUR, Tally)
    assert (FOUR.names, FOUR.started_with) == (NAMES, 2)
    assert FOUR.wins.dtype == FOUR.ties.dtype == np.int64
    assert FOUR.wins.tolist() == WINS.tolist()
    assert FOUR.ties.tolist() == TIES.tolist()
    assert FOUR.active.tolist() == [True, True, True, False]
    plain = as_tally(["x", "y"], [[0, 2], [1, 0]])
    assert (plain.ties.tolist(), plain.active.tolist(), plain.started_with) == ([[0, 0], [0, 0]], [True, True], 2)


def test_a_tally_is_a_copy():
    wins = np.array([[0, 2], [1, 0]])
    tally = as_tally(list("xy"), wins)
    wins[0, 1] = 7
    assert tally.wins[0, 1] == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"names": "xy"}, "names is the text 'xy': expected a list of names"),
        ({"names": []}, "the arms are called []: expected at least one name"),
        ({"names": ["x", "x"]}, "the arms are called ['x', 'x']: expected at least one name, all different"),
        ({"names": ["x", ""]}, "none empty"),
        ({"wins": [[0, 1]]}, "wins has shape (1, 2), expected (2, 2)"),
        ({"wins": [[0, 1], [2]]}, "wins must be a square table of counts"),
        ({"wins": [[0, -1], [2, 0]]}, "wins[0, 1] = -1, expected a count of duels"),
        ({"wins": [[0, 0.5], [2, 0]]}, "wins[0, 1] = 0.5, expected a count of duels"),
        ({"wins": [[0, np.nan], [2, 0]]}, "wins[0, 1] = nan, expected a count of duels"),
        ({"wins": [[0, np.inf], [2, 0]]}, "wins[0, 1] = inf, expected a count of duels"),
        ({"wins": [[0, 1], [2, 3]]}, "wins[1, 1] = 3, expected 0"),
        ({"ties": [[0, 1], [2, 0]]}, "ties[0, 1] = 1 but ties[1, 0] = 2: expected the same"),
        ({"ties": [[1, 1], [1, 0]]}, "ties[0, 0] = 1, expected 0"),
        ({"active": [True]}, "active has shape (1,), expected (2,)"),
        ({"started_with": 0}, "started_with is 0: expected a number of arms from 1 to 2"),
        ({"started_with": 3}, "started_with is 3: expected a number of arms from 1 to 2"),
    ],
)
def test_what_is_refused(given, message):
    with refused(message):
        as_tally(**{"names": ["x", "y"], "wins": [[0, 1], [2, 0]], **given})


def test_meetings_and_leads():
    assert met(FOUR).tolist() == [[0, 6, 0, 5], [6, 0, 4, 0], [0, 4, 0, 1], [5, 0, 1, 0]]
    assert np.argwhere(leads(FOUR)).tolist() == [[0, 1], [2, 1], [3, 0]]


def test_estimates_count_a_tie_as_a_half():
    # a–b: (3 + 1)/6; a–c never met: ½; c–d: one tie, ½; a–d: 0/5.
    expected = [[0.5, 4 / 6, 0.5, 0], [2 / 6, 0.5, 0, 0.5], [0.5, 1, 0.5, 0.5], [1, 0.5, 0.5, 0.5]]
    assert estimates(FOUR) == pytest.approx(np.array(expected))


def test_scores_are_over_the_other_active_arms():
    # a: (4/6 + ½)/2 over b and c; b: (2/6 + 0)/2; c: (½ + 1)/2; d, retired, over a, b and c: (1 + ½ + ½)/3.
    assert scores(FOUR) == pytest.approx([7 / 12, 1 / 6, 3 / 4, 2 / 3])
    assert beaten(FOUR).tolist() == [1, 0, 1, 1]
    assert over_others(FOUR, np.eye(4)).tolist() == [0, 0, 0, 0]  # never itself


def test_an_arm_without_others_has_half():
    alone = as_tally(["x", "y"], [[0, 5], [0, 0]], active=[True, False])
    assert scores(alone).tolist() == [0.5, 0.0]  # y, retired, is measured against x
    assert scores(as_tally(["x"], [[0]])).tolist() == [0.5]


def test_ranking_is_by_leads_then_score_and_retired_arms_come_last():
    # c and a lead one arm each and c scores higher; d leads one but is retired.
    assert ranking(FOUR) == [(1, 2), (2, 0), (3, 1), (4, 3)]


def test_an_arm_that_was_not_compared_ranks_below_its_equals():
    # x met only r, which is retired. y and z tied, so that all three lead nobody and score a half.
    wins, ties = np.zeros((4, 4)), np.zeros((4, 4))
    wins[0, 3], ties[1, 2], ties[2, 1] = 5, 1, 1
    tally = as_tally(list("xyzr"), wins, ties, [True, True, True, False])
    assert compared(met(tally), tally.active).tolist() == [False, True, True, True]
    assert ranking(tally) == [(1, 1), (1, 2), (3, 0), (4, 3)]
    assert leaders(tally) == [1, 2]
    assert leaders(tally._replace(ties=np.zeros((4, 4)))) == []
    # It stays above arms with a lower score: nothing is known against it.
    assert ranking(as_tally(list("xyz"), [[0, 0, 0], [0, 0, 2], [0, 0, 0]])) == [(1, 1), (2, 0), (3, 2)]


def test_leads_rank_before_scores():
    # x beats y and z 6 to 4; y beats z 10 to 0. Scores: x 0.6, y (0.4 + 1)/2 = 0.7; the Condorcet winner is on top.
    tally = as_tally(list("xyz"), [[0, 6, 6], [4, 0, 10], [4, 0, 0]])
    assert scores(tally) == pytest.approx([0.6, 0.7, 0.2])
    assert ranking(tally) == [(1, 0), (2, 1), (3, 2)]


def test_equal_arms_share_a_rank():
    # A cycle of three, and a fourth arm that all beat 3 to 0.
    wins = [[0, 0, 0, 0], [3, 0, 2, 1], [3, 1, 0, 2], [3, 2, 1, 0]]
    assert ranking(as_tally(list("wxyz"), wins)) == [(1, 1), (1, 2), (1, 3), (4, 0)]
    assert ranking(as_tally(list("xyz"), np.zeros((3, 3)))) == [(1, 0), (1, 1), (1, 2)]
    # x and y did the same against p, q and r and never met; their scores differ in the last bit only.
    wins = np.zeros((5, 5))
    wins[:2, 2:], wins[2:, :2] = [8, 6, 5], [[7], [9], [10]]
    tally = as_tally(list("xypqr"), wins)
    assert 0 < abs(scores(tally)[0] - scores(tally)[1]) < 1e-15
    ranks = {tally.names[arm]: rank for rank, arm in ranking(tally)}
    assert ranks["x"] == ranks["y"]
    # Retired arms are level only with retired ones.
    assert ranking(as_tally(list("xyz"), np.zeros((3, 3)), active=[False, True, False])) == [(1, 1), (2, 0), (2, 2)]


@st.composite
def tallies(draw):
    arms = draw(st.integers(2, 6))
    cells = st.lists(st.integers(0, 4), min_size=arms * arms, max_size=arms * arms)
    wins = np.array(draw(cells)).reshape(arms, arms)
    ties = np.array(draw(cells)).reshape(arms, arms)
    off = 1 - np.eye(arms, dtype=int)
    active = draw(st.lists(st.booleans(), min_size=arms, max_size=arms))
    return as_tally([f"arm {k}" for k in range(arms)], wins * off, (ties + ties.T) * off, active)


@given(tallies(), st.randoms(use_true_random=False))
def test_names_do_not_matter(tally, random):
    order = list(range(len(tally.names)))
    random.shuffle(order)
    moved = as_tally(
        [tally.names[k] for k in order],
        tally.wins[np.ix_(order, order)],
        tally.ties[np.ix_(order, order)],
        tally.active[order],
    )
    assert scores(moved) == pytest.approx(scores(tally)[order])
    assert beaten(moved).tolist() == beaten(tally)[order].tolist()
    ranks = {tally.names[arm]: rank for rank, arm in ranking(tally)}
    assert {moved.names[arm]: rank for rank, arm in ranking(moved)} == ranks


@given(tallies())
def test_scores_against_a_loop(tally):
    for i, score in enumerate(scores(tally)):
        chances = []
        for j in np.flatnonzero(tally.active):
            if j != i:
                won, lost, tied = tally.wins[i, j], tally.wins[j, i], tally.ties[i, j]
                n = won + lost + tied
                chances.append((won + tied / 2) / n if n else 0.5)
        assert score == pytest.approx(sum(chances) / len(chances) if chances else 0.5)
