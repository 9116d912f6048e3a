"""Further columns of votes."""

import polars as pl
import pytest

import duels
from duels.votes import read_votes

CSV = b"""left,right,winner,language,tokens,score
x,y,left,en,12,0.5
x,y,skip,de,13,0.5
y,x,tie,,14,2
x,y,right,fr,,
"""


def test_columns_are_kept_for_the_votes_that_count():
    votes = read_votes(CSV, extra=["tokens", "language", "score"])
    assert list(votes.extra) == ["tokens", "language", "score"]
    assert votes.extra["language"].to_list() == ["en", None, "fr"]
    assert votes.extra["tokens"].to_list() == [12, 14, None]
    assert votes.extra["tokens"].dtype == pl.Int64
    assert votes.extra["score"].to_list() == [0.5, 2.0, None]
    assert read_votes(CSV).extra == {}
    assert read_votes(CSV) == votes


def test_a_column_that_has_a_role_may_be_kept_too():
    assert read_votes(CSV, extra=["winner"]).extra["winner"].to_list() == ["left", "tie", "right"]


def test_fields_of_objects():
    rows = [
        {"left": "x", "right": "y", "winner": "left", "meta": {"a": {"n": 3}}, "meta.b": 1},
        {"left": "x", "right": "y", "winner": "tie", "meta": None, "meta.b": 2},
        {"left": "x", "right": "y", "winner": "tie"},
    ]
    votes = read_votes(rows, extra=["meta.a.n", "meta.b"])
    assert votes.extra["meta.a.n"].to_list() == [3, None, None]
    assert votes.extra["meta.b"].to_list() == [1, 2, None]
    frame = pl.DataFrame(rows[:2])
    assert read_votes(frame, extra=["meta.a.n"]).extra["meta.a.n"].to_list() == [3, None]


def test_numbers_are_not_made_of_mixed_text():
    rows = [{"left": "x", "right": "y", "winner": "left", "v": value} for value in ("1", "2", "three")]
    assert read_votes(rows, extra=["v"]).extra["v"].to_list() == ["1", "2", "three"]


def test_no_votes_have_empty_columns():
    assert len(read_votes(b"left,right,winner,language\n", extra=["language"]).extra["language"]) == 0


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("language", "extra is 'language': expected a list of names of columns"),
        ([3], "extra has 3: expected names of columns"),
        (["langage"], "unknown column of the votes 'langage'. Did you mean 'language'?"),
        (["meta.x"], "unknown column of the votes 'meta.x'"),
    ],
)
def test_what_is_refused(extra, said):
    with pytest.raises(duels.InvalidInput) as caught:
        read_votes(CSV, extra=extra)
    assert said in str(caught.value)


def test_votes_that_were_read_without_a_column():
    votes = read_votes(CSV, extra=["language"])
    assert read_votes(votes, extra=["language"]) is votes
    with pytest.raises(duels.InvalidInput, match="has no column 'tokens': read it with read_votes"):
        read_votes(votes, extra=["language", "tokens"])
