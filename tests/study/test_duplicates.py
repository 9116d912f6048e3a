"""Votes that a study already has, counted by columns."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duels.study.answers.past_votes import find_known_votes, without
from duels.votes import read_votes

NAMES = ["a", "b", "c"]
rows = st.lists(
    st.fixed_dictionaries(
        {
            "pair": st.permutations(NAMES),
            "winner": st.sampled_from(["left", "right", "tie", "both_bad"]),
            "voter": st.sampled_from([None, "ann", "Voter 7", "Voter 7 (imported)"]),
            "time": st.sampled_from([None, 0, 1, 2]),
            "count": st.integers(1, 3),
        }
    ).map(lambda row: {"left": row["pair"][0], "right": row["pair"][1], **{k: row[k] for k in row if k != "pair"}}),
    max_size=12,
)


def literal(votes):
    """One entry per vote, without sides, of those that have a time."""
    found = Counter()
    for vote in votes:
        if vote.time is not None:
            answer = {"left": vote.left, "right": vote.right}.get(vote.winner, vote.winner)
            voter = "Voter 7 (imported)" if vote.voter == "Voter 7" else vote.voter
            found[frozenset((vote.left, vote.right)), answer, voter, vote.time] += vote.count
    return found


@given(rows, rows)
def test_it_is_the_common_part_of_two_multisets(one, other):
    given, there = read_votes(one), read_votes(other)
    assert find_known_votes(given, there).sum() == (literal(given) & literal(there)).total()
    assert find_known_votes(given, given).sum() == literal(given).total()
    left = without(given, find_known_votes(given, there))
    assert literal(left) == literal(given) - literal(there)
    assert left.total == given.total - find_known_votes(given, there).sum()


@pytest.mark.deep
def test_a_million_votes_take_seconds():
    dice = np.random.default_rng(0)
    many = {"left": ["a"] * 10**6, "right": ["b"] * 10**6, "winner": ["tie"] * 10**6, "time": dice.random(10**6)}
    votes = read_votes(pl.DataFrame(many))
    assert find_known_votes(votes, votes).sum() == 10**6
