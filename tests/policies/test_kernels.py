"""The pieces that policies share: draws, pairs, the table of wins and majorities."""

import numpy as np
import pytest

from duels.policies.kernels import choose, choose_majority, majorities, nth_pair, record, record_lead, remove


class Draws:
    """A generator whose draws are given."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def random(self):
        return self.draws.pop(0)


def test_choose_takes_one_draw_and_none_if_there_is_nothing_to_choose():
    rng = Draws(0.0, 0.49, 0.5, 1 - 2**-53)
    assert [choose(2, rng) for _ in range(4)] == [0, 0, 1, 1]
    assert choose(1, rng) == 0  # no draw is left
    assert choose(1000, Draws(1 - 2**-53)) == 999


@pytest.mark.parametrize("m", [2, 3, 5, 64, 2000])
def test_nth_pair_enumerates_pairs_in_order(m):
    if m <= 64:
        count = m * (m - 1) // 2
        assert [nth_pair(k, m) for k in range(count)] == [(a, b) for a in range(m) for b in range(a + 1, m)]
    for a in {0, (m - 2) // 2, m - 2}:  # the ends of the rows are where rounding would show
        start = a * (2 * m - a - 1) // 2
        assert nth_pair(start, m) == (a, a + 1)
        assert nth_pair(start + m - 2 - a, m) == (a, m - 1)


def test_record_shares_a_tie():
    wins = np.zeros((3, 3))
    for outcome in (1.0, 0.0, 0.5):
        record(wins, 0, 2, outcome)
    assert wins.tolist() == [[0, 0, 1.5], [0, 0, 0], [1.5, 0, 0]]


@pytest.mark.parametrize(("member", "left"), [(4, [7, 2]), (7, [4, 2]), (2, [4, 7]), (9, [4, 7, 2])])
def test_remove_keeps_the_order_of_the_others(member, left):
    members = np.array([4, 7, 2, 9])  # the last one has left already
    size = remove(members, 3, member)
    assert members[:size].tolist() == left


def test_majorities_count_members_only_and_no_pair_that_is_level():
    wins = np.array([[0, 3, 1, 1], [1, 0, 5, 0], [1, 4, 0, 0], [0, 0, 2, 0]], float)
    everyone = np.arange(4)
    assert [majorities(wins, everyone, 4, i) for i in range(4)] == [2, 1, 0, 1]
    assert [majorities(wins, everyone, 3, i) for i in range(3)] == [1, 1, 0]
    assert choose_majority(wins, everyone, 4, Draws()) == 0
    assert [choose_majority(wins, everyone, 3, Draws(draw)) for draw in (0.4, 0.6)] == [0, 1]


def test_record_lead_keeps_the_number_of_majorities():
    """After each of 400 duels among four arms, ties included, against a count of all pairs."""
    wins, ahead, everyone, rng = np.zeros((4, 4)), np.zeros(4, np.int64), np.arange(4), np.random.default_rng(0)
    for _ in range(400):
        i, j = rng.choice(4, 2, replace=False)
        record_lead(wins, ahead, i, j, rng.choice([0.0, 0.5, 1.0]))
        assert ahead.tolist() == [majorities(wins, everyone, 4, arm) for arm in range(4)]
    assert wins.sum() == 400
