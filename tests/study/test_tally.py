"""Counts of a study and what they say by themselves, worked by hand."""

import numpy as np
import pytest
from tallies import refused

from duels.study.stats.tally import Tally, as_tally, count_met, estimates

# a beat b 3 to 1 with 2 ties; a never met c; b lost to c 0 to 4; d is retired, beat a 5 to 0 and tied with c once.
NAMES = ("a", "b", "c", "d")
WINS = np.array([[0, 3, 0, 0], [1, 0, 0, 0], [0, 4, 0, 0], [5, 0, 0, 0]])
TIES = np.array([[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
FOUR = as_tally(NAMES, WINS, TIES, active=[True, True, True, False], started_with=2)


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


def test_meetings():
    assert count_met(FOUR).tolist() == [[0, 6, 0, 5], [6, 0, 4, 0], [0, 4, 0, 1], [5, 0, 1, 0]]


def test_estimates_count_a_tie_as_a_half():
    # a–b: (3 + 1)/6; a–c never met: ½; c–d: one tie, ½; a–d: 0/5.
    expected = [[0.5, 4 / 6, 0.5, 0], [2 / 6, 0.5, 0, 0.5], [0.5, 1, 0.5, 0.5], [1, 0.5, 0.5, 0.5]]
    assert estimates(FOUR) == pytest.approx(np.array(expected))
