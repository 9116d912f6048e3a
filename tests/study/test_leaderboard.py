"""Leaderboards and tables of pairs: by hand, and each against the others."""

import numpy as np
import pytest
from hypothesis import given, settings
from tallies import table, tallies, verdict_of

from duels.study.certainty import share
from duels.study.intervals import interval
from duels.study.leaderboard import leaderboard, preferences
from duels.study.verdict import verdict


@settings(deadline=None)
@given(tallies())
def test_the_tables_agree_with_the_verdict(tally):
    rows, pairs = leaderboard(tally, 0.7), preferences(tally, 0.7)
    found = verdict(tally, confidence=0.7)
    assert found.winner in (None, rows[0].arm)
    found = verdict_of(tally, confidence=0.7, strength="comparisons made")
    if found.winner:
        assert rows[0].arm == found.winner
        assert rows[0].certain_wins == found.arms - 1
    arms = len(tally.names)
    assert len(pairs) == arms * (arms - 1) // 2
    on = dict(zip(tally.names, tally.active))
    for row in rows:
        mine = [pair for pair in pairs if row.arm in (pair.first, pair.second)]
        assert row.duels == sum(pair.duels for pair in mine) == row.wins + row.losses + row.ties
        chances, lower, upper, won, lost, ahead = [], [], [], 0, 0, 0
        for pair in mine:
            first = pair.first == row.arm
            if not on[pair.second if first else pair.first]:
                continue
            share = 0.5 if pair.estimate is None else pair.estimate
            chances.append(share if first else 1 - share)
            lower.append(pair.lower if first else 1 - pair.upper)
            upper.append(pair.upper if first else 1 - pair.lower)
            won += pair.certain == ("first" if first else "second")
            lost += pair.certain == ("second" if first else "first")
            ahead += pair.wins > pair.losses if first else pair.losses > pair.wins
        assert (row.certain_wins, row.certain_losses, row.beats) == (won, lost, ahead)
        if chances:
            assert (row.score, row.lower, row.upper) == pytest.approx(tuple(map(np.mean, (chances, lower, upper))))
        assert row.lower <= row.score <= row.upper
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
    tally = table("abc", {"ab": (9, 0), "cb": (1, 1)}, {"ab": 1, "bc": 2}, active=[True, True, False])
    rows = leaderboard(tally)
    assert [(row.rank, row.arm, row.duels, row.wins, row.losses, row.ties) for row in rows] == [
        (1, "a", 10, 9, 0, 1),
        (2, "b", 14, 1, 10, 3),
        (3, "c", 4, 1, 1, 2),
    ]
    assert [(row.score, row.beats, row.certain_wins, row.certain_losses, row.active) for row in rows] == [
        (0.95, 1, 1, 0, True),
        (pytest.approx(0.05), 0, 0, 1, True),
        (0.5, 0, 0, 0, False),  # its mean over a, never met, and b
    ]
    # 9.5 to 0.5 at 1/90; b's interval is its mirror image.
    assert (rows[0].lower, rows[0].upper) == pytest.approx(interval(9.5, 0.5, 0.1 / 9))
    assert (rows[1].lower, rows[1].upper) == pytest.approx((1 - rows[0].upper, 1 - rows[0].lower))


def test_preferences_by_hand():
    tally = table("abc", {"ab": (0, 9)}, {"ac": 3})
    ab, ac, bc = preferences(tally)
    assert ab[:7] == ("a", "b", 0, 9, 0, 9, 0.0)
    assert (ab.certain, ab.lower) == ("second", 0.0)
    assert ac[:7] == ("a", "c", 0, 0, 3, 3, 0.5)
    assert ac.certain is None
    assert bc == ("b", "c", 0, 0, 0, 0, None, 0.0, 1.0, None)
    assert all(type(value) in (int, float, str, type(None), bool) for row in (ab, *leaderboard(tally)) for value in row)
