"""Leaderboards and tables of pairs: by hand, and each against the others."""

import numpy as np
import pytest
from hypothesis import given, settings
from tallies import table, tallies, verdict_of

from duels.study.stats.leaderboard import leaderboard as ranked_leaderboard
from duels.study.stats.leaderboard import preferences
from duels.study.stats.levels import share
from duels.study.stats.tally import as_tally, interval
from duels.study.stats.verdict import verdict


def leaderboard(*arguments, **settings):
    return ranked_leaderboard(*arguments, **settings).rows


@settings(deadline=None)
@given(tallies())
def test_the_tables_agree_with_the_verdict(tally):
    found = verdict(tally, confidence=0.7)
    rows, pairs = leaderboard(tally, 0.7, found.named), preferences(tally, 0.7)
    assert found.named in (None, rows[0].arm)
    found = verdict_of(tally, confidence=0.7, strength="comparisons made")
    if found.winner and tally.started_with == len(tally.names):
        assert leaderboard(tally, 0.7, found.winner)[0].certain_wins >= found.arms - 1 or found.arms == 2
    arms = len(tally.names)
    assert len(pairs) == arms * (arms - 1) // 2
    on = dict(zip(tally.names, tally.active))
    for row in rows:
        mine = [pair for pair in pairs if row.arm in (pair.first, pair.second)]
        assert row.answers == sum(pair.duels for pair in mine) == row.wins + row.losses + row.ties
        won = lost = 0
        for pair in mine:
            first = pair.first == row.arm
            if not on[pair.second if first else pair.first]:
                continue
            won += pair.certain == ("first" if first else "second")
            lost += pair.certain == ("second" if first else "first")
        assert (row.certain_wins, row.certain_losses) == (won, lost)
        assert row.share is None or row.lower <= row.share <= row.upper
    for pair in pairs:
        i, j = tally.names.index(pair.first), tally.names.index(pair.second)
        halves = tally.wins[i, j] + tally.ties[i, j] / 2, tally.wins[j, i] + tally.ties[i, j] / 2
        delta = share_of(tally, 0.3, i, j)
        assert (pair.lower, pair.upper) == pytest.approx(interval(*halves, delta), abs=1e-12)
        if pair.certain is None:
            assert pair.lower <= 0.5 <= pair.upper  # ties only widen: what is shown never claims more


def share_of(tally, delta, i, j):
    return share(delta, tally)[i, j]


def test_a_leaderboard_by_hand():
    """Two active arms: a won 9 and tied once of 10, so that its share is 0.95. c, retired, met only b."""
    tally = table("abc", {"ab": (9, 0), "cb": (1, 1)}, {"ab": 1, "bc": 2}, active=[True, True, False])
    rows = leaderboard(tally)
    assert [(row.rank, row.arm, row.answers, row.wins, row.losses, row.ties) for row in rows] == [
        (1, "a", 10, 9, 0, 1),
        (2, "b", 14, 1, 10, 3),
        (None, "c", 4, 1, 1, 2),
    ]
    assert [(row.share, row.certain_wins, row.certain_losses, row.active) for row in rows] == [
        (pytest.approx(0.95, abs=1e-6), 1, 0, True),
        (pytest.approx(0.05, abs=1e-6), 0, 1, True),
        (pytest.approx(0.275, abs=1e-6), 0, 0, False),  # odds of 1 to 19 against a, and of 1 to 1 against b
    ]
    points = 400 * np.log10(19)
    assert rows[0].rating - rows[1].rating == pytest.approx(points, abs=0.11)
    assert rows[2].rating == pytest.approx(rows[1].rating, abs=0.11)
    assert (rows[1].lower, rows[1].upper) == pytest.approx((1 - rows[0].upper, 1 - rows[0].lower))


def test_the_share_of_a_winner_does_not_go_below_a_half():
    """It was certain at an earlier moment. A page cannot say beside it that it may win less than half."""
    tally = as_tally(["x", "y"], [[0, 41], [19, 0]])
    found = verdict(tally, named="x")
    assert found.winner == "x"
    plain, rows = leaderboard(tally), leaderboard(tally, named="x", winner="x")
    assert (plain[0].lower < 0.5, plain[1].upper > 0.5) == (True, True)
    assert (rows[0].lower, rows[1].upper) == (0.5, 0.5)
    assert (rows[0].upper, rows[1].lower) == (plain[0].upper, plain[1].lower)
    assert found.effect.lower == 0.5
    assert "x wins 68 % of its comparisons with the other arm (50 to " in str(found)
    certain = as_tally(["x", "y"], [[0, 90], [10, 0]])
    assert leaderboard(certain, named="x", winner="x") == leaderboard(certain)


def test_preferences_by_hand():
    tally = table("abc", {"ab": (0, 9)}, {"ac": 3})
    ab, ac, bc = preferences(tally)
    assert ab[:7] == ("a", "b", 0, 9, 0, 9, 0.0)
    assert (ab.certain, ab.lower) == ("second", 0.0)
    assert ac[:7] == ("a", "c", 0, 0, 3, 3, 0.5)
    assert ac.certain is None
    assert bc == ("b", "c", 0, 0, 0, 0, None, 0.0, 1.0, None)
    assert all(type(value) in (int, float, str, type(None), bool) for row in (ab, *leaderboard(tally)) for value in row)
