"""Votes by columns are the votes row by row: Parquet files, data frames and simple CSV."""

import io
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import duels
from duels.errors import InvalidInput
from duels.study.analysis import tally_of
from duels.votes import count_votes, parse_columns, read_votes

WORDS = [
    "left",
    "right",
    "model_a",
    "Model_B",
    "tie",
    "both_bad",
    "tie (bothbad)",
    "skip",
    "a",
    " A ",
    "second",
    "draw",
]
NAMES = ["ada", "bob ", "Čapek", "-1", "x,y", "5"]


def random_table(seed, rows=200):
    """Rows as dicts: odd names, all words for winners, names as winners, missing voters and times."""
    rng = np.random.default_rng(seed)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    found = []
    for k in range(rows):
        left, right = rng.choice(len(NAMES), 2, replace=False)
        winner = WORDS[rng.integers(len(WORDS))] if rng.random() < 0.8 else NAMES[left].strip()
        found.append(
            {
                "model_a": NAMES[left],
                "model_b": NAMES[right],
                "winner": winner,
                "judge": None if rng.random() < 0.3 else f" rater {rng.integers(5)}",
                "tstamp": None if rng.random() < 0.3 else start + timedelta(microseconds=int(rng.integers(10**12))),
                "duel": None if rng.random() < 0.5 else f"d{k}",
                "language": ["en", "fr", None][rng.integers(3)],
                "length": int(rng.integers(100)),
            }
        )
    return found


def same(one, other):
    """Equal votes with equal lines, voters, further columns and so on."""
    assert one == other
    assert one.names == other.names
    assert one.lines.tolist() == other.lines.tolist()
    assert one.skipped == other.skipped
    assert one.said == other.said
    for column in ("voters", "times", "duels"):
        assert getattr(one, column) == getattr(other, column)
    assert one.voters is None or one.voters.names == other.voters.names
    assert list(one.extra) == list(other.extra)
    assert all(column.equals(other.extra[name]) for name, column in one.extra.items())


@pytest.fixture
def only_columns(monkeypatch):
    """Reading a data frame row by row is an error."""

    def refuse(*arguments):
        raise AssertionError("read row by row")

    monkeypatch.setattr(parse_columns, "votes_of_rows", refuse)


@pytest.mark.parametrize("seed", range(20))
def test_a_data_frame_is_read_like_its_rows(only_columns, tmp_path, seed):
    rows = random_table(seed)
    extra = ["language", "length"]
    expected = read_votes(rows, extra=extra)
    frame = pl.DataFrame(rows)
    same(read_votes(frame, extra=extra), expected)
    frame.write_parquet(tmp_path / "votes.parquet", row_group_size=17)
    same(read_votes(tmp_path / "votes.parquet", extra=extra), expected)
    same(read_votes((tmp_path / "votes.parquet").read_bytes(), extra=extra), expected)
    categories = frame.with_columns(pl.col("model_a", "winner").cast(pl.Categorical))
    same(read_votes(categories, extra=extra), expected)


@pytest.mark.parametrize("seed", range(5))
def test_times_as_numbers_and_text(only_columns, seed):
    rows = random_table(seed)
    seconds = [row | {"tstamp": row["tstamp"] and row["tstamp"].timestamp()} for row in rows]
    same(read_votes(pl.DataFrame(seconds)), read_votes(seconds))
    text = [row | {"tstamp": row["tstamp"] and str(row["tstamp"])} for row in rows]
    same(read_votes(pl.DataFrame(text)), read_votes(text))
    local = pl.DataFrame(rows).with_columns(pl.col("tstamp").dt.convert_time_zone("Asia/Tokyo"))
    assert read_votes(local).times == read_votes(rows).times
    days = pl.DataFrame(rows).with_columns(pl.col("tstamp").dt.date())
    same(read_votes(days), read_votes(days.to_dicts()))


@pytest.mark.parametrize("seed", range(5))
def test_counted_votes_are_the_votes_counted(only_columns, seed):
    rows = random_table(seed)
    found = count_votes(pl.DataFrame(rows), extra=["language"])
    single = read_votes(rows, extra=["language"])
    assert found.total == len(single)
    assert found.skipped == single.skipped
    assert found.names == single.names
    assert found.voters is found.times is found.duels is None
    assert len(found) < len(single)
    for one, other in zip(tally_of(found), tally_of(single)):
        np.testing.assert_array_equal(one, other)
    assert duels.rate(found, by="language").equals(duels.rate(single, by="language"))


def test_winner_and_loser(only_columns):
    frame = pl.DataFrame({"winner": ["a", "b", "a"], "loser": ["b", "a", "c"]})
    assert [vote[:3] for vote in read_votes(frame)] == [("a", "b", "left"), ("b", "a", "left"), ("a", "c", "left")]
    assert [vote.count for vote in count_votes(frame)] == [1, 1, 1]


def test_a_column_of_counts(only_columns):
    frame = pl.DataFrame({"left": ["a", "a", "b"], "right": ["b", "b", "a"], "winner": ["left", "left", "tie"]})
    frame = frame.with_columns(pl.Series("count", [3, 4, 5]))
    assert [vote.count for vote in read_votes(frame)] == [3, 4, 5]
    assert [vote.count for vote in count_votes(frame)] == [7, 5]


@pytest.mark.parametrize("count", [[3, -4, 5], [3, None, 5], [1.5, 2.0, 3.0], ["1", "x", "2"]])
def test_bad_counts_are_found(count):
    frame = pl.DataFrame({"left": ["a", "a", "b"], "right": ["b", "b", "a"], "winner": ["left", "left", "tie"]})
    frame = frame.with_columns(pl.Series("count", count))
    for read in (read_votes, count_votes):
        if None in count:
            assert read(frame).total == 8
        else:
            with pytest.raises(InvalidInput, match=r"row \d: the count of count is '(-4|1.5|x)', expected a whole"):
                read(frame)


def test_wide_counts_in_parquet(tmp_path):
    frame = pl.DataFrame({"left": ["a"], "right": ["b"], "wins_left": [10], "wins_right": [7], "ties": [1]})
    frame.write_parquet(tmp_path / "counts.parquet")
    found = read_votes(tmp_path / "counts.parquet")
    assert [(vote.winner, vote.count) for vote in found] == [("left", 10), ("right", 7), ("tie", 1)]


def test_errors_name_the_rows(tmp_path):
    """As from rows, but found by columns."""
    rows = random_table(1, rows=1000)
    for k in (3, 500, 501, 502, 800, 900):
        rows[k] = rows[k] | {"winner": "nobody"}
    rows[7]["model_a"] = None
    rows[9]["model_b"] = rows[9]["model_a"]
    with pytest.raises(InvalidInput) as slow:
        read_votes(rows)
    frame = pl.DataFrame(rows)
    frame.write_parquet(tmp_path / "votes.parquet")
    for read in (read_votes, count_votes):
        with pytest.raises(InvalidInput) as fast:
            read(frame)
        assert str(fast.value).replace("DataFrame", "list") == str(slow.value)
    with pytest.raises(InvalidInput, match=r"(?s)8 of 1,000 rows cannot be read.*row 4: winner is 'nobody'"):
        read_votes(tmp_path / "votes.parquet")


def test_bad_voters_and_times_are_named():
    rows = random_table(2)
    rows[50]["judge"] = "x" * 300
    with pytest.raises(InvalidInput, match="row 51: voter is"):
        read_votes(pl.DataFrame(rows))
    rows = [row | {"tstamp": 1e9} for row in random_table(2)]
    rows[60]["tstamp"] = 1e15
    with pytest.raises(InvalidInput, match="row 61: time is"):
        read_votes(pl.DataFrame(rows))


def test_folders_and_patterns(tmp_path):
    rows = [row | {"tstamp": None} for row in random_table(3, rows=90)]
    for part in range(3):
        path = tmp_path / "year=2024" / f"part-{part}.parquet"
        path.parent.mkdir(exist_ok=True)
        pl.DataFrame(rows[30 * part : 30 * part + 30], infer_schema_length=None).write_parquet(path)
    expected = read_votes(rows)
    for source in (tmp_path, str(tmp_path / "year=2024"), str(tmp_path / "*" / "part-?.parquet")):
        assert read_votes(source) == expected
    with pytest.raises(InvalidInput, match=r"nothing-\*\.parquet: no Parquet files were found there, expected names"):
        read_votes(str(tmp_path / "nothing-*.parquet"))


def test_files_that_are_no_parquet(tmp_path):
    path = tmp_path / "votes.parquet"
    with pytest.raises(InvalidInput, match=r"votes\.parquet cannot be read as Parquet: "):
        read_votes(path)
    path.write_text("left,right,winner\na,b,left\n")
    with pytest.raises(InvalidInput, match=r"votes\.parquet cannot be read as Parquet: "):
        read_votes(path)
    assert len(read_votes(path, format="csv")) == 1
    pl.DataFrame(random_table(4)).write_parquet(path)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[100:400] = bytes(300)
    path.write_bytes(bytes(damaged))
    with pytest.raises(InvalidInput, match=r"votes\.parquet cannot be read"):
        read_votes(path)
    path.write_bytes(whole[:-20])
    with pytest.raises(InvalidInput, match=r"votes\.parquet cannot be read as Parquet: "):
        read_votes(path)


def test_only_needed_columns_are_read():
    """Conversations are most of an arena's file."""
    frame = pl.DataFrame(random_table(5)).with_columns(pl.lit("x" * 1000).alias("conversation"))
    table = parse_columns.frame_table("votes", frame.lazy())
    chosen = parse_columns._select_columns(table, {"left": 0, "right": 1, "winner": 2, "voter": 3}, ["length"])
    assert chosen.collect_schema().names() == ["voter", "left", "right", "winner", "extra 0"]


CSV_LINES = ["left,right,winner,voter", "a,b,left,ann", "b,c,tie,", "a,c, right ,bob"]


def by_rows(text, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("duels.votes.readers.simple_csv", lambda *arguments: None)
        return read_votes(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(CSV_LINES),
        "\n".join(CSV_LINES) + "\n",
        "\r\n".join(CSV_LINES) + "\r\n",
        "\n".join(CSV_LINES).replace(",", ";"),
        "\n".join(CSV_LINES).replace(",", "\t"),
        "\n".join(CSV_LINES).replace("ann", "l'été"),
    ],
)
def test_simple_csv_is_read_by_columns(monkeypatch, text):
    expected = by_rows(text, monkeypatch)
    monkeypatch.setattr("duels.votes.readers.votes_of_rows", None)
    monkeypatch.setattr(parse_columns, "votes_of_rows", None)
    same(read_votes(text.encode()), expected)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(CSV_LINES).replace("ann", '"ann, or so"'),
        "\n".join(CSV_LINES).replace("ann", "'=ann"),
        "\n".join([*CSV_LINES, "", "a,b,left,eve"]),
        "\n\n" + "\n".join(CSV_LINES),
        "a,b\nb,c\na,c",
    ],
)
def test_other_csv_is_read_by_rows(monkeypatch, text):
    same(read_votes(text.encode()), by_rows(text, monkeypatch))


@pytest.mark.parametrize("bad", ["a,b,left", "a,b,left,x,y", "a,b,nobody,x", "a,a,left,x", ",b,left,x"])
def test_bad_rows_of_csv_are_the_same(monkeypatch, bad):
    text = "\n".join([*CSV_LINES, bad])
    with pytest.raises(InvalidInput) as fast:
        read_votes(text.encode())
    with pytest.raises(InvalidInput) as slow:
        by_rows(text, monkeypatch)
    assert str(fast.value) == str(slow.value)
    assert "line 5: " in str(fast.value)


def test_a_short_row_and_a_long_one_are_not_read_as_two_good_ones():
    with pytest.raises(InvalidInput, match=r"(?s)2 of 5 rows.*line 5: 3 fields, expected 4\n  line 6: 5 fields"):
        read_votes("\n".join([*CSV_LINES, "a,b,left", "a,b,left,x,y"]).encode())


def test_random_csv(monkeypatch):
    """Small files of random pieces, simple or not: votes and errors are those of the rows."""
    rng = np.random.default_rng(0)
    pieces = [*"abcx,,,", "left", "right", "tie", "\n", "\n", "\r\n", "'", '"', " "]
    pieces += ["a,b,left\n", "b,c,tie\n"] * 8
    outcomes = [0, 0]
    for _ in range(500):
        text = "left,right,winner\n" + "".join(rng.choice(pieces, rng.integers(1, 9)))
        try:
            expected, error = by_rows(text, monkeypatch), ""
        except InvalidInput as slow:
            expected, error = None, str(slow)
        outcomes[expected is None] += 1
        if expected is None:
            with pytest.raises(InvalidInput) as fast:
                read_votes(text.encode())
            assert str(fast.value) == error, text
        else:
            same(read_votes(text.encode()), expected)
    assert min(outcomes) > 50


def test_parquet_from_standard_input(monkeypatch):
    file = io.BytesIO()
    pl.DataFrame(random_table(6)).write_parquet(file)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.getvalue())))
    assert read_votes("-") == read_votes(random_table(6))


def test_the_damaged_file_of_a_folder_is_named(tmp_path):
    pl.DataFrame(random_table(7)).write_parquet(tmp_path / "good.parquet")
    pl.DataFrame(random_table(7)).with_columns(more=pl.lit(1)).write_parquet(tmp_path / "more.parquet")
    assert len(read_votes(tmp_path)) == 2 * len(read_votes(random_table(7)))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InvalidInput, match=r"bad\.parquet cannot be read as Parquet"):
        read_votes(tmp_path)
