"""Rows that cannot be read, rows that repeat earlier ones, and voters who are left out."""

import io
import json

import numpy as np
import polars as pl
import pytest

import duels
from duels.errors import InvalidInput, UnknownName
from duels.votes import count_votes, parse_columns, read_votes
from duels.votes.votes import RowList

HEAD = "left,right,winner,voter,time"
GOOD = ["ada,bob,left,ann,2024-01-01T00:00:00Z", "bob,cy,right,ben,2024-01-02T00:00:00Z", "ada,cy,tie,ann,2024-01-03"]
BAD = ["ada,ada,left,ann,2024-01-04", "ada,bob,,ben,2024-01-05", ",bob,left,cat,2024-01-06"]
ROWS = [GOOD[0], BAD[0], GOOD[1], BAD[1], GOOD[2], BAD[2]]
FAULTS = RowList(
    3,
    (
        "line 3: 'ada' is compared with itself, expected two different arms",
        "line 5: winner is None, expected left, right, tie, both_bad, skip or one of the two names",
        "line 7: the first arm is empty or not text, expected its name",
    ),
)


def text_of(rows):
    return "\n".join([HEAD, *rows]).encode()


def sources(rows):
    """The same votes by columns and row by row."""
    frame = pl.read_csv(text_of(rows), infer_schema=False)
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    quoted = "\n".join(",".join(f'"{cell}"' for cell in row.split(",")) for row in [HEAD, *rows]).encode()
    lines = "\n".join(json.dumps(row) for row in frame.to_dicts()).encode()
    return {
        "csv": text_of(rows),
        "quoted csv": quoted,
        "json lines": lines,
        "parquet": parquet.getvalue(),
        "frame": frame,
        "dicts": frame.to_dicts(),
    }


@pytest.mark.parametrize("kind", ["csv", "quoted csv", "json lines", "parquet", "frame", "dicts"])
@pytest.mark.parametrize("read", [read_votes, count_votes])
def test_bad_rows_are_left_out_counted_and_listed(kind, read):
    source = sources(ROWS)[kind]
    with pytest.raises(InvalidInput, match="3 of 6 rows cannot be read, so nothing was imported") as error:
        read(source)
    assert error.value.__notes__ == ['to leave such rows out: on_error="skip" (--on-error skip)']
    votes = read(source, on_error="skip")
    assert votes.total == 3
    assert votes.skipped == 0
    assert votes.unread.count == 3
    assert [one.partition(": ")[2] for one in votes.unread.first] == [one.partition(": ")[2] for one in FAULTS.first]
    assert [*votes.names] == ["ada", "bob", "cy"]
    if "csv" in kind:
        assert votes.unread == FAULTS
    assert votes.notes[0].startswith("3 rows cannot be read, and were left out: ")
    good = read(sources(GOOD)[kind])
    assert good.notes == ()
    assert votes == good


def test_skips_are_not_bad_rows():
    rows = [*ROWS, "ada,bob,skip,ann,2024-01-09"]
    for source in sources(rows).values():
        for read in (read_votes, count_votes):
            votes = read(source, on_error="skip")
            assert (votes.total, votes.skipped, votes.unread.count) == (3, 1, 3)


def test_bad_times_and_voters_are_left_out_too():
    rows = [*GOOD, f"ada,bob,left,{'x' * 201},2024-01-01", "ada,bob,left,ann,yesterday"]
    for kind, source in sources(rows).items():
        votes = read_votes(source, on_error="skip")
        assert (kind, votes.total, votes.unread.count) == (kind, 3, 2)
        assert "time is 'yesterday'" in votes.unread.first[1]


def test_a_file_of_which_no_row_can_be_read_is_an_error():
    for kind, source in sources(BAD).items():
        with pytest.raises(InvalidInput, match="3 of 3 rows cannot be read"):
            read_votes(source, on_error="skip")
        assert kind
    with pytest.raises(UnknownName, match="unknown on_error 'ignore'"):
        read_votes(text_of(GOOD), on_error="ignore")


def test_a_file_that_stops_being_a_table_is_an_error():
    """The rows after an open quote are not read, so leaving out one row would leave out all others unsaid."""
    content = text_of([*GOOD, 'ada,"bob,left,ann,2024-01-05', *GOOD])
    with pytest.raises(InvalidInput, match="not a table from here on"):
        read_votes(content, on_error="skip")


def test_more_bad_rows_than_an_error_reads_are_counted():
    rows = [*BAD[:1] * 20_000, GOOD[0]]
    for kind in ("quoted csv", "csv"):
        votes = read_votes(sources(rows)[kind], on_error="skip")
        assert (votes.total, votes.unread.count, len(votes.unread.first)) == (1, 20_000, 5)


def test_rows_in_parquet_are_left_out_by_columns(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("read row by row")

    monkeypatch.setattr(parse_columns, "votes_of_rows", refuse)
    for kind in ("csv", "parquet", "frame"):
        assert read_votes(sources(ROWS)[kind], on_error="skip").unread.count == 3


@pytest.mark.parametrize("kind", ["csv", "quoted csv", "json lines", "parquet", "frame", "dicts"])
@pytest.mark.parametrize("read", [read_votes, count_votes])
def test_equal_rows_are_counted_again_and_said(kind, read):
    rows = [GOOD[0], GOOD[1], GOOD[0], GOOD[2], GOOD[1], GOOD[0]]
    votes = read(sources(rows)[kind])
    assert votes.total == 6
    assert votes.repeats.count == 3
    unit, first = ("line", 2) if "csv" in kind else ("line", 1) if kind == "json lines" else ("row", 1)
    where = [(2, 0), (4, 1), (5, 0)]
    assert votes.repeats.first == tuple(f"{unit} {a + first} as {unit} {b + first}" for a, b in where)
    (note,) = votes.notes
    assert note.startswith("3 rows repeat an earlier one in every cell, and were counted again: ")


@pytest.mark.parametrize("kind", ["csv", "quoted csv", "parquet", "dicts"])
def test_equal_rows_differ_in_any_cell_or_are_no_news(kind):
    """A further column tells them apart; and without a time or a question, equal votes are just equal votes."""
    rows = [*GOOD, GOOD[0].replace("left", "right"), GOOD[0].replace("ann", "ben")]
    assert read_votes(sources(rows)[kind]).repeats == RowList()
    plain = [{"left": "a", "right": "b", "winner": "left", "voter": "ann"}] * 5
    assert read_votes(plain).repeats == read_votes(pl.DataFrame(plain)).repeats == RowList()
    asked = [one | {"question_id": "7"} for one in plain]
    assert read_votes(asked).repeats.count == read_votes(pl.DataFrame(asked)).repeats.count == 4
    told_apart = [one | {"question_id": str(k)} for k, one in enumerate(plain)]
    assert read_votes(told_apart).repeats == read_votes(pl.DataFrame(told_apart)).repeats == RowList()


def test_columns_may_have_any_name_where_repeats_are_looked_for():
    columns = ["left", "right", "winner", "time", "first row", "hash"]
    rows = [("a", "b", "left", 1.0, 1, "x"), ("a", "b", "left", 1.0, 2, "x"), ("a", "b", "left", 1.0, 1, "x")]
    assert read_votes(pl.DataFrame(rows, columns, orient="row")).repeats.first == ("row 3 as row 1",)


@pytest.mark.parametrize("seed", range(4))
def test_repeats_by_columns_are_those_row_by_row(seed):
    """Shuffled times, few of them, a further column and empty cells."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "left": "ab"[side := int(rng.integers(2))],
            "right": "ab"[1 - side],
            "winner": ["left", "tie"][rng.integers(2)],
            "time": None if rng.random() < 0.1 else 1.7e9 + int(rng.integers(12)),
            "tag": [None, "x"][rng.integers(2)],
        }
        for _ in range(90)
    ]
    by_rows, by_columns = read_votes(rows), read_votes(pl.DataFrame(rows))
    timed = [k for k, row in enumerate(rows) if row["time"] is not None]
    seen, again = {}, []
    for k in timed:
        key = tuple(rows[k].values())
        again += [(k, seen[key])] if key in seen else []
        seen.setdefault(key, k)
    assert len(again) > 5
    for votes in (by_rows, by_columns):
        assert votes.repeats.count == len(again)
        assert votes.repeats.first == tuple(f"row {a + 1} as row {b + 1}" for a, b in again[:5])


def test_voters_are_left_out_wherever_votes_are_taken():
    rows = [("a", "b", "left", "bot")] * 9 + [("a", "b", "right", "ann")] * 2 + [("a", "b", "left", "ben")] * 3
    rows += [("a", "b", "left", "ann")] * 2
    rows += [("x", "a", "left", "bot")]
    fewer = [row for row in rows if row[3] != "bot"]
    votes = read_votes(rows).without(["bot"])
    assert votes == read_votes(fewer) == read_votes(rows, without=["bot"])
    assert (votes.names, votes.left_out) == (("a", "b"), 10)
    assert [*votes.voters.names] == ["ann", "ben"]
    assert duels.rate(rows, without=["bot"]).equals(duels.rate(fewer))
    analysis = duels.analyze(rows, without=["bot"])
    assert analysis._replace(left_out=0) == duels.analyze(fewer)
    assert analysis.counts() == "7 votes, 0 of them ties, by 2 voters; 10 votes of excluded voters left out"
    assert duels.measure_agreement(rows, without=["bot"]) == duels.measure_agreement(fewer)
    assert count_votes(pl.DataFrame(rows, ["left", "right", "winner", "voter"], orient="row"), without=["bot"]) == votes
    with pytest.raises(UnknownName, match=r"unknown voter 'bott'\. Did you mean 'bot'"):
        duels.rate(rows, without=["bott"])
    with pytest.raises(InvalidInput, match="does not say who voted"):
        duels.analyze([row[:3] for row in rows], without=["bot"])
    with pytest.raises(InvalidInput, match="expected a list of voters"):
        duels.rate(rows, without="bot")
    study = duels.create_study(["a", "b"], "without", "sqlite://")
    assert study.import_votes(rows, without=["bot"]) == 7
    assert duels.rate(study, without=["ben"])["duels"].to_list() == [4, 4]
    with pytest.raises(InvalidInput, match="without needs single votes, but these are counts"):
        duels.rate(study.tally(), without=["ben"])


def test_nobody_is_left_of_a_log_without_voters_of_some_votes():
    rows = [("a", "b", "left", "bot"), ("a", "b", "right", None), ("b", "a", "tie", "ann")]
    votes = read_votes(rows, without=["bot"])
    assert [*votes.voters] == [None, "ann"]
    assert read_votes(rows, without=["bot", "ann"]).voters is None


def test_columns_are_given_wherever_votes_are_taken():
    frame = pl.DataFrame({"x": ["a", "b"], "y": ["b", "a"], "who": ["x", "x"], "person": ["ann", "ben"]})
    columns = {"left": "x", "right": "y", "winner": "who", "voter": "person"}
    expected = read_votes(frame, columns=columns)
    assert duels.rate(frame, columns=columns).equals(duels.rate(expected))
    assert duels.analyze(frame, columns=columns) == duels.analyze(expected)
    assert duels.measure_agreement(frame, columns=columns) == duels.measure_agreement(expected)
    lengths = frame.with_columns(n=pl.Series([1, -1]))
    assert len(duels.rating.effects(lengths, ["n"], columns=columns)) == 1
    study = duels.create_study(["a", "b"], "columns", "sqlite://")
    assert study.import_votes(frame, columns=columns) == 2
    with pytest.raises(InvalidInput, match="which are read already"):
        duels.rate(expected, columns=columns)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colums'"):
        duels.rate(frame, colums=columns)


def test_what_was_noticed_is_said_by_every_function():
    rows = [*ROWS, GOOD[0]]
    found = duels.analyze(text_of(rows), on_error="skip")
    assert [note.split(",")[0] for note in found.notes] == [
        "3 rows cannot be read",
        "1 row repeats an earlier one in every cell",
    ]
    assert str(found).endswith("\n".join(found.notes))
    with pytest.warns(UserWarning, match="given half a win|average arm|only tied"):
        notes = duels.rate(text_of(rows), on_error="skip").notes
    assert [*found.notes] == [*notes[:2]]
    assert [*found.notes] == duels.measure_agreement(text_of(rows), on_error="skip").as_dict()["notes"]
    study = duels.create_study(["ada", "bob", "cy"], "noticed", "sqlite://")
    with pytest.warns(UserWarning, match="cannot be read") as warned:
        study.import_votes(text_of(rows), on_error="skip")
    assert [str(one.message) for one in warned] == [
        found.notes[0]
    ]  # who imports votes twice is told by `duels study import`
