"""Past votes: every form of file, every bad row, round trips, and counts against a few lines of plain Python."""

import csv
import gzip
import io
import json
import re
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duels.errors import InvalidInput, UnknownName
from duels.study import analysis
from duels.study.analysis import analyze, tally_of
from duels.votes import Vote, read_votes, write_votes
from duels.votes import readers as module
from duels.votes import writers as written
from duels.votes.names import voter_name

REAL = "votes/llmfao-crowd.csv.gz"


def file(folder, content, name="votes.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def short(votes):
    """(left, right, winner) of each vote."""
    return [vote[:3] for vote in votes]


def refused(*messages):
    return pytest.raises(InvalidInput, match="(?s)" + ".*".join(map(re.escape, messages)))


def read_text(tmp_path, content, name="votes.csv", **options):
    return read_votes(file(tmp_path, content, name), **options)


def test_arena(tmp_path):
    found = read_text(
        tmp_path,
        "model_a,model_b,winner,judge,tstamp\n"
        "gpt-4,claude,model_a,judge_1,1700000000\n"
        "claude,llama,model_b,judge_2,1700000000.5\n"
        "gpt-4,llama,tie,judge_1,\n"
        "llama,gpt-4,tie (bothbad),,0\n"
        "llama,gpt-4,both_bad,,-1\n",
    )
    # 1,700,000,000 s = 19,675 days and 80,000 s; day 19,675 is 14 November 2023; 80,000 s = 22 h 13 min 20 s.
    assert list(found) == [
        Vote("gpt-4", "claude", "left", "judge_1", "2023-11-14T22:13:20Z", 2),
        Vote("claude", "llama", "right", "judge_2", "2023-11-14T22:13:20.500000Z", 3),
        Vote("gpt-4", "llama", "tie", "judge_1", None, 4),
        Vote("llama", "gpt-4", "both_bad", None, "1970-01-01T00:00:00Z", 5),
        Vote("llama", "gpt-4", "both_bad", None, "1969-12-31T23:59:59Z", 6),
    ]
    assert found.names == ("gpt-4", "claude", "llama")
    assert found.left.tolist() == [0, 1, 0, 2, 2]
    assert found.right.tolist() == [1, 2, 2, 0, 0]
    assert found.winner.tolist() == [0, 1, 2, 3, 3]
    assert (found.left.dtype, found.winner.dtype, found.lines.dtype) == (np.int64, np.int8, np.int64)
    assert found.said == "model_a → left, model_b → right, winner, judge → voter, tstamp → time"
    assert found.source == str(tmp_path / "votes.csv")
    assert len(found) == 5
    assert repr(found) == f"Votes(5 on 3 arms from {found.source})"
    assert found.duels is None


def test_left_and_right(tmp_path):
    found = read_text(
        tmp_path,
        "id,prompt,model_x,model_y,worker,winner,left,right\n"
        "0,8,97,98,58,tie,Airoboros L2 70B,Weaver 12k\n"
        "0,8,97,98,14,right,Airoboros L2 70B,Weaver 12k\n",
    )
    assert short(found) == [("Airoboros L2 70B", "Weaver 12k", "tie"), ("Airoboros L2 70B", "Weaver 12k", "right")]
    assert found.voters == ("58", "14")
    assert found.times is None
    assert found.said == "left, right, winner, worker → voter"


def test_winner_and_loser(tmp_path):
    found = read_text(tmp_path, "Loser,Winner,user\nb,a,u\nleft,right,\n")
    assert short(found) == [("a", "b", "left"), ("right", "left", "left")]
    assert found.voters == ("u", None)
    assert found.said == "Winner → winner, Loser → loser, user → voter"


def test_pairs_without_header(tmp_path):
    found = read_text(tmp_path, "x,y\ny,z\n\nx,z\n")
    assert [(*vote[:3], vote.line) for vote in found] == [
        ("x", "y", "left", 1),
        ("y", "z", "left", 2),
        ("x", "z", "left", 4),
    ]
    assert found.said == "column 0 → winner, column 1 → loser"
    assert short(read_text(tmp_path, "x, y\ny , z\n")) == [("x", "y", "left"), ("y", "z", "left")]
    assert short(read_text(tmp_path, "x,y\n")) == [("x", "y", "left")]


@pytest.mark.parametrize("first", ["a,b", "b,a", "A,B", "first,second", "a,x", "user,b"])
def test_pairs_of_arms_that_are_called_as_columns_are(tmp_path, first):
    """A file of two columns needs winner and loser, so that other known words are names if they come again."""
    one, two = first.split(",")
    found = read_text(tmp_path, f"{first}\n{one},c\n{two} ,c\n")
    assert short(found) == [(one, two, "left"), (one, "c", "left"), (two, "c", "left")]
    for text in (f"{first}\nc,d\n", f"{first}\n"):
        with refused(f"no column is known to be winner. Found {one}, {two};", "--column winner=0 --column loser=1"):
            read_text(tmp_path, text)
    assert len(read_text(tmp_path, f"{first}\nc,d\n", columns={"winner": 0, "loser": 1})) == 2
    # Of winner and loser the names may come again.
    assert short(read_text(tmp_path, "better,worse\nbetter,c\n")) == [("better", "c", "left")]


def test_two_names_that_never_come_again_may_be_a_header(tmp_path):
    text = "good,bad\nx,y\ny,z\n"
    header = "votes.csv, line 1: good, bad may be a header or a vote"
    with refused(header, "{'winner': 'good', 'loser': 'bad'}", "--column winner=… --column loser=…"):
        read_text(tmp_path, text)
    assert short(read_text(tmp_path, text, columns={"winner": "good", "loser": "bad"})) == [
        ("x", "y", "left"),
        ("y", "z", "left"),
    ]
    assert len(read_text(tmp_path, text, columns={"winner": 0, "loser": 1})) == 3


@pytest.mark.parametrize("name", ["votes.csv", "votes", "votes.txt"])
@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv_as_spreadsheets_write_it(tmp_path, name, mark):
    text = 'left;right;winner\na;"b;c";right\n"b;c";d;tie\n'.replace(";", mark)
    assert short(read_text(tmp_path, text, name)) == [("a", f"b{mark}c", "right"), (f"b{mark}c", "d", "tie")]
    # Whatever makes most cells of the first line separates, of equals the comma.
    text = f"left{mark}right{mark}winner{mark}why, if known\na{mark}b{mark}left{mark}x,y\n"
    assert short(read_text(tmp_path, text, name)) == [("a", "b", "left")]
    text = f'left,right,winner,"x{mark}y{mark}z{mark}u{mark}v"\na,b,left,x\n'
    assert short(read_text(tmp_path, text, name)) == [("a", "b", "left")]
    assert short(read_text(tmp_path, f"x{mark}y,z\nz,u\n", name)) == [(f"x{mark}y", "z", "left"), ("z", "u", "left")]
    assert short(read_text(tmp_path, f"left,right,winner\na{mark}x,b,left\n", name)) == [(f"a{mark}x", "b", "left")]


ARRAY = '[{"left": "a", "right": "b", "winner": "left"},\n {"left": "b", "right": "c", "winner": "tie"}]\n'


@pytest.mark.parametrize("name", ["votes.json", "votes", "votes.jsonl"])
def test_an_array_of_votes(tmp_path, name):
    expected = [("a", "b", "left"), ("b", "c", "tie")]
    assert short(read_text(tmp_path, ARRAY, name)) == expected
    pairs = read_text(tmp_path, '\n[\n["a", "b"],\n["b", "c"]\n]', name)
    assert [(*vote[:3], vote.line) for vote in pairs] == [("a", "b", "left", 1), ("b", "c", "left", 2)]
    assert short(read_text(tmp_path, '["a", "b", "left"]\n["b", "c", "tie"]\n', name)) == expected  # one on each line
    assert short(read_text(tmp_path, '["a", "b", "left"]\n', name)) == expected[:1]
    assert len(read_text(tmp_path, "[]", name)) == 0
    with refused(f"{name}: 1 of 2 rows cannot be read", "row 2: found 5, expected a dict or a tuple"):
        read_text(tmp_path, '[["a", "b"], 5]', name)
    # The second object lacks its brace: a blank, 14 + 14 + 15 characters of three entries and the first brace.
    with refused(f"{name} is not JSON: Expecting ',' delimiter: line 2 column 45"):
        read_text(tmp_path, ARRAY.replace("}]", "]"), name)


def test_a_table_may_begin_with_a_bracket(tmp_path):
    assert short(read_text(tmp_path, "[x],y\n[x],z\n")) == [("[x]", "y", "left"), ("[x]", "z", "left")]
    assert len(read_text(tmp_path, "[x],y\n[x],z\n", "votes")) == 2


def test_our_own(tmp_path):
    found = read_text(
        tmp_path,
        "duel,left,right,winner,voter,time\n7,a,b,right,v,2025-01-31T12:00:00Z\n8,b,a,both_bad,,2025-01-31T12:00:01Z\n",
    )
    assert list(found) == [
        Vote("a", "b", "right", "v", "2025-01-31T12:00:00Z", 2, "7"),
        Vote("b", "a", "both_bad", None, "2025-01-31T12:00:01Z", 3, "8"),
    ]


def test_json_lines(tmp_path):
    text = (
        '{"model_a": "x", "model_b": "y", "winner": "model_b", "turn": 1}\n'
        "\n"
        '{"winner": "tie", "model_b": "x", "model_a": "y", "judge": 5, "tstamp": 86400.25}\r\n'
        '{"model_a": "x", "model_b": "ü\\u0021", "winner": "model_a", "judge": null, "tstamp": NaN}'
    )
    for name in ("votes.jsonl", "votes.ndjson", "votes.txt"):
        found = read_text(tmp_path, text, name)
        assert list(found) == [
            Vote("x", "y", "right", None, None, 1),
            Vote("y", "x", "tie", "5", "1970-01-02T00:00:00.250000Z", 3),
            Vote("x", "ü!", "left", None, None, 4),
        ]
    assert read_text(tmp_path, text, "votes.csv", format="jsonl") == found


def test_json_lines_of_arrays_are_tuples(tmp_path):
    assert short(read_text(tmp_path, '["x", "y"]\n["y", "z"]\n', "v.jsonl")) == [("x", "y", "left"), ("y", "z", "left")]


CONTENT = "left,right,winner\na,b,left\nb,a,tie\n"


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("v.tsv", CONTENT.replace(",", "\t"), {}),
        ("v.TSV", CONTENT.replace(",", "\t"), {}),
        ("v.txt", CONTENT.replace(",", "\t"), {}),
        ("v.csv", CONTENT.replace(",", "\t"), {"format": "tsv"}),
        ("v", CONTENT, {}),
        ("v.csv", CONTENT.replace("\n", "\r\n"), {}),
        ("v.csv", CONTENT.replace("\n", "\r"), {}),
        ("v.csv", "\ufeff" + CONTENT, {}),
        ("v.csv", "\n \n" + CONTENT.removesuffix("\n"), {}),
        ("v.csv.gz", gzip.compress(CONTENT.encode(), mtime=0), {}),
        ("v.CSV.GZ", gzip.compress(CONTENT.encode("utf-8-sig"), mtime=0), {}),
        ("v.tsv.gz", gzip.compress(CONTENT.replace(",", "\t").encode(), mtime=0), {}),
        ("v.gz", gzip.compress(CONTENT.encode(), mtime=0), {}),
        ("v.TSV", "left\tright\twinner\tx,y\na\tb\tleft\t\nb\ta\ttie\t\n", {}),
        ("v.TSV.GZ", gzip.compress(b"left\tright\twinner\tx,y\na\tb\tleft\t\nb\ta\ttie\t\n", mtime=0), {}),
        ("v", "\n " + CONTENT.replace(",", "\t"), {}),
        ("v", 'left,right,winner,"x\ty"\na,b,left,\nb,a,tie,\n', {}),
        ("v", '\n\n{"left": "a", "right": "b", "winner": "left"}\n{"left": "b", "right": "a", "winner": "tie"}', {}),
        ("v.csv", '"left" , right,WINNER\n" a ",b,LEFT\n\tb,"a",Tie\n'.replace('" ,', '",'), {}),
    ],
)
def test_dressings(tmp_path, name, content, options):
    assert short(read_text(tmp_path, content, name, **options)) == [("a", "b", "left"), ("b", "a", "tie")]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    assert read_text(tmp_path, "\ufeff" + CONTENT).said == "left, right, winner"
    assert read_text(tmp_path, "\ufeffx,y\ny,z\n").names == ("x", "y", "z")


@pytest.mark.parametrize("content", [CONTENT.encode(), gzip.compress(CONTENT.encode(), mtime=0)])
def test_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    found = read_votes("-")
    assert short(found) == [("a", "b", "left"), ("b", "a", "tie")]
    assert found.source == "standard input"


def test_lines_are_where_rows_begin(tmp_path):
    found = read_text(
        tmp_path,
        'left,right,winner,note\r\n"a",b,left,"one\r\ntwo\nthree"\r\n\r\n"long\nname",a,tie,\r\nb,a,right,"x""\n"\r\na,b,tie,\r\n',
    )
    # Lines: 1 the header; 2–4 the first row; 5 blank; 6–7 "long\nname"; 8–9 b; 10 the last.
    assert found.lines.tolist() == [2, 6, 8, 10]
    assert found.names == ("a", "b", "long\nname")


def test_lines_of_bad_rows_too(tmp_path):
    text = 'left,right,winner\na,b,"le\nft"\na,b,left\na,b,maybe\n'
    with refused("line 2: winner is 'le\\nft'", "line 5: winner is 'maybe'"):
        read_text(tmp_path, text)


def test_names_in_any_script(tmp_path):
    names = ["Ünï", "模型", "😀", "=1+1", "-x", "@y", "+z", 'quo"te', "a,b", "#c", "0"]
    text = io.StringIO()
    csv.writer(text).writerows([["left", "right", "winner"], *([one, "other", one] for one in names)])
    assert short(read_text(tmp_path, text.getvalue())) == [(name, "other", "left") for name in names]


def test_a_header_alone_has_no_votes(tmp_path):
    for found in (read_text(tmp_path, "left,right,winner\n"), read_text(tmp_path, "", "v.jsonl"), read_votes([])):
        assert (len(found), list(found), found.names, found.skipped) == (0, [], (), 0)


EXPECTED = [Vote("a", "b", "right", "v", "1970-01-01T00:00:05Z", 1), Vote("b", "c", "tie", None, None, 2)]
DICTS = [
    {"left": "a", "right": "b", "winner": "right", "voter": "v", "time": 5},
    {"left": "b", "right": "c", "winner": "tie", "voter": None, "time": None},
]


@pytest.mark.parametrize(
    "rows",
    [
        DICTS,
        iter(DICTS),
        (row for row in DICTS),
        [DICTS[0], {"right": "c", "left": "b", "winner": "tie"}],
        [tuple(row.values()) for row in DICTS],
        [list(row.values()) for row in DICTS],
        EXPECTED,
        read_votes(DICTS),
        pl.DataFrame(DICTS),
        pd.DataFrame(DICTS),
        pd.DataFrame(DICTS).astype({"voter": "string", "time": "Int64"}),
        pl.DataFrame(DICTS, schema_overrides={"winner": pl.Categorical}),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows(rows):
    found = read_votes(rows)
    assert list(found) == EXPECTED
    assert read_votes(found) is found


def test_pairs_of_numbers():
    """As choix has them: (winner, loser)."""
    pairs = [(0, 1), (5, 0), (1, 5)]
    expected = [("0", "1", "left"), ("5", "0", "left"), ("1", "5", "left")]
    assert short(read_votes(pairs)) == expected
    assert short(read_votes(np.array(pairs))) == expected
    assert read_votes(pairs).said == "column 0 → winner, column 1 → loser"
    assert read_votes(pairs).source == "the list"


def test_numbers_are_what_they_look_like():
    assert read_votes([(1, "x"), (1.0, "x"), (np.int64(2), "x"), (np.float64(2.5), "x")]).names == (
        "1",
        "x",
        "1.0",
        "2",
        "2.5",
    )


def test_votes_among_rows_keep_all_they_say():
    votes = read_votes([{"left": "a", "right": "b", "winner": "tie", "duel": "d"}])
    assert read_votes(list(votes)) == votes
    assert votes.duels == ("d",)


def test_a_number_that_wins_is_an_arm_not_a_position():
    assert short(read_votes([(5, 0, 0), (1, 7, 1), (0, 1, 1)])) == [
        ("5", "0", "right"),
        ("1", "7", "left"),
        ("0", "1", "right"),
    ]


def test_times_of_frames():
    moment = datetime(2025, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    rows = [{"winner": "a", "loser": "b", "time": moment}, {"winner": "b", "loser": "a", "time": None}]
    expected = ("2025-01-31T10:00:00Z", None)
    assert read_votes(rows).times == expected
    assert read_votes(pl.DataFrame(rows)).times == expected
    assert read_votes(pd.DataFrame(rows)).times == expected
    missing = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "a"], "time": pd.array(["5", None], "string")})
    assert read_votes(missing).times == ("1970-01-01T00:00:05Z", None)
    assert read_votes([{"winner": "a", "loser": "b", "time": date(2025, 1, 31)}]).times == ("2025-01-31T00:00:00Z",)


@pytest.mark.parametrize("source", [5, None, object()])
def test_what_holds_no_votes(source):
    with refused("holds no votes: expected a path, a data frame, or rows"):
        read_votes(source)


@pytest.mark.parametrize(
    ("said", "winner"),
    [
        *(
            (word, "left")
            for word in ("left", "LEFT", " Left ", "model_a", "Model A", "model-a", "a", "A", "first", "x")
        ),
        *((word, "right") for word in ("right", "model_b", "b", "second", "y")),
        *((word, "tie") for word in ("tie", "Tie", "draw", "equal", "same")),
        *(
            (word, "both_bad")
            for word in ("both_bad", "bothbad", "both bad", "tie (bothbad)", "Tie (Bothbad)", "neither")
        ),
    ],
)
def test_words_for_winners(said, winner):
    assert short(read_votes([("x", "y", said)])) == [("x", "y", winner)]


@pytest.mark.parametrize(
    ("row", "winner"),
    [
        (("b", "a", "a"), "right"),  # the arm's name comes before the word a …
        (("draw", "a", "draw"), "left"),  # … and before draw,
        (("right", "left", "left"), "left"),  # but after left and right,
        (("model_b", "model_a", "model_a"), "left"),  # model_a and model_b,
        (("tie", "x", "tie"), "tie"),  # tie,
        (("both_bad", "x", "both_bad"), "both_bad"),
        (("X", "x", "x"), "right"),  # names are as they are written
    ],
)
def test_words_and_names(row, winner):
    assert [vote.winner for vote in read_votes([row])] == [winner]


def test_the_columns_own_names_are_words_for_winners(tmp_path):
    text = "System X,System Y,winner\nsystem-y,b,system_x\na,b,System Y\n"
    found = read_text(tmp_path, text, columns={"left": "System X", "right": "system_y"})
    assert short(found) == [("system-y", "b", "left"), ("a", "b", "right")]
    swapped = read_text(
        tmp_path, "model_a,model_b,winner\np,q,model_a\n", columns={"left": "model_b", "right": "model_a"}
    )
    assert short(swapped) == [("q", "p", "right")]


def test_arrows_are_told_apart(tmp_path):
    found = read_text(tmp_path, "←,→,winner\na,b,→\na,b,←\n", columns={"left": "←", "right": "→"})
    assert short(found) == [("a", "b", "right"), ("a", "b", "left")]


def test_skips_are_left_out_and_counted():
    found = read_votes(
        [("u", "x", "skip"), ("x", "y", "left"), ("x", "z", "Skipped"), ("y", "x", "pass"), ("y", "x", "tie")]
    )
    assert short(found) == [("x", "y", "left"), ("y", "x", "tie")]
    assert (found.skipped, found.lines.tolist(), found.names) == (3, [2, 5], ("x", "y"))


def test_voters_that_are_left_out_with_their_skips():
    found = read_votes([("x", "y", "skip", "me", 7), ("x", "y", "left", " ", None)])
    assert (found.voters, found.times) == (None, None)


@pytest.mark.parametrize(
    ("given_time", "time"),
    [
        ("0", "1970-01-01T00:00:00Z"),
        (1.5, "1970-01-01T00:00:01.500000Z"),
        ("1e3", "1970-01-01T00:16:40Z"),
        (" 86400 ", "1970-01-02T00:00:00Z"),
        ("2025-01-31T12:00:00Z", "2025-01-31T12:00:00Z"),
        ("2025-01-31T12:00:00+05:30", "2025-01-31T06:30:00Z"),
        ("2025-01-31 12:00:00.25", "2025-01-31T12:00:00.250000Z"),
        ("2025-01-31", "2025-01-31T00:00:00Z"),
        (float("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        ("", None),
        (None, None),
    ],
)
def test_times(given_time, time):
    assert [vote.time for vote in read_votes([("x", "y", "left", "v", given_time)])] == [time]


@pytest.mark.parametrize("bad", ["yesterday", "2025-13-01", "1700000000000", "inf", "0001-01-01T00:00:00+10:00", [5]])
def test_bad_times(bad):
    with refused("row 1: time is", "expected seconds since 1970 or such as 2025-01-31T12:00:00Z"):
        read_votes([("x", "y", "left", "v", bad)])


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("LEFT,Right,Winner", "LEFT → left, Right → right, Winner → winner"),
        ("a,b,vote,annotator", "a → left, b → right, vote → winner, annotator → voter"),
        ("Model A,Model-B,preferred,Judge ID", "Model A → left, Model-B → right, preferred → winner, Judge ID → voter"),
        (
            "option_a,option_b,choice,created_at",
            "option_a → left, option_b → right, choice → winner, created_at → time",
        ),
        ("first,second,outcome,duel_id", "first → left, second → right, outcome → winner, duel_id → duel"),
        ("left,right,winner,loser", "left, right, winner"),
        ("first,winner,loser", "winner, loser"),
        ("better,worse,x", "better → winner, worse → loser"),
    ],
)
def test_columns_by_their_usual_names(tmp_path, header, said):
    assert read_text(tmp_path, header + "\n").said == said


@pytest.mark.parametrize(
    ("header", "columns", "said"),
    [
        ("x,y,winner", {"left": "x", "right": "y"}, "x → left, y → right, winner"),
        ("x,y,z", {"left": "Y", "right": "x", "winner": "z"}, "y → left, x → right, z → winner"),
        ("left,right,winner,judge,user", {"voter": "user"}, "left, right, winner, user → voter"),
        ("left,right,winner,judge,user", {"voter": None}, "left, right, winner"),
        ("left,right,a,b,winner", {"left": "a", "right": "b"}, "a → left, b → right, winner"),
        ("x,y,winner,loser", {"left": "x", "right": "y"}, "x → left, y → right, winner"),
        ("left,right,winner,bad", {"loser": "bad"}, "winner, bad → loser"),
        ("left,right,winner,first", {"voter": "first"}, "left, right, winner, first → voter"),
        ("left,right,vote,choice", {"winner": "vote"}, "left, right, vote → winner"),
        (
            "winner,left,right",
            {"winner": "right", "left": "winner", "right": "left"},
            "winner → left, left → right, right → winner",
        ),
        ("p,q,left", {"left": 0, "right": 1, "winner": 2}, "column 0 → left, column 1 → right, column 2 → winner"),
    ],
)
def test_columns_as_asked(tmp_path, header, columns, said):
    assert read_text(tmp_path, header + "\n", columns=columns).said == said


def test_columns_by_position(tmp_path):
    found = read_text(tmp_path, "v,left,b,a\nw,tie,c,b\n", columns={"left": 3, "right": 2, "winner": 1, "voter": 0})
    assert list(found) == [Vote("a", "b", "left", "v", None, 1), Vote("b", "c", "tie", "w", None, 2)]
    assert short(read_votes([("left", "a", "b")], columns={"winner": 0, "left": 1, "right": 2})) == [("a", "b", "left")]


@pytest.mark.parametrize(
    ("header", "columns", "problem"),
    [
        ("foo,bar,baz", None, "no column is known to be left or right or winner. Found foo, bar, baz; expected left,"),
        ("left,right", None, "no column is known to be winner"),
        ("winner,x", None, "no column is known to be left or right"),
        ("loser,x,y", None, "no column is known to be winner"),
        ("left,model_a,right,winner", None, "left may be left or model_a"),
        ("left,right,winner,winner", None, "winner may be winner or winner"),
        ("left,right,winner,judge,user", None, "voter may be judge or user"),
        ("left,right,winner", {"left": "x"}, "no column 'x' for left"),
        ("left,right,winner", {"left": 0, "right": 1, "winner": 3}, "no column 3 for winner"),
        ("left,right,winner", {"left": 0, "right": -1, "winner": 2}, "no column -1 for right"),
        ("left,right,winner", {"winner": None}, "no column is known to be winner"),
    ],
)
def test_unclear_columns(tmp_path, header, columns, problem):
    with refused("votes.csv: ", problem, "Say which is which: columns={'left': '…'", "(--column left=…)"):
        read_text(tmp_path, header + "\na,b,c\n", columns=columns)


def test_unknown_column_and_format(tmp_path):
    with pytest.raises(UnknownName, match=r"unknown column of votes 'lefft'. Did you mean 'left'"):
        read_text(tmp_path, CONTENT, columns={"lefft": "x"})
    with pytest.raises(UnknownName, match=r"unknown format of votes 'cvs'. Did you mean 'csv'"):
        read_text(tmp_path, CONTENT, format="cvs")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a,b,maybe", "winner is 'maybe', expected left, right, tie, both_bad, skip or one of the two names"),
        ("a,b,c", "winner is 'c'"),  # an arm, but of another vote
        ("a,b,", "winner is None"),
        (",b,left", "the first arm is empty or not text, expected its name"),
        ("a,  ,right", "the second arm is empty"),
        (",,", "the first arm is empty"),
        ("a,a,left", "'a' is compared with itself, expected two different arms"),
        ("a, a ,tie", "'a' is compared with itself"),
        ("a,a,skip", "'a' is compared with itself"),
        ("a,b", "2 fields, expected 3"),
        ("a,b,left,x", "4 fields, expected 3"),
        ("a", "1 field, expected 3"),
        ('"a"b,b,left', "not a table from here on: ',' expected after '\"'"),
        ('"a,b,left', "not a table from here on: unexpected end of data"),
    ],
)
def test_bad_rows(tmp_path, row, fault):
    with refused("votes.csv: 1 of 2 rows cannot be read, so nothing was imported:\n  line 3: " + fault):
        read_text(tmp_path, f"left,right,winner\nb,c,left\n{row}\n")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('{"left": "a", "right": "b", "winner": }', "not JSON: Expecting value"),
        ('{"left": "a", "right": "b", "winner": "left"', "not JSON: Expecting ',' delimiter"),
        ("[" * 100_000, "not JSON: "),
        ("5", "found 5, expected a dict or a tuple"),
        ('["a", "b", "left"]', "found ['a', 'b', 'left'], expected a dict or a tuple"),
        ('"text"', "found 'text', expected a dict or a tuple"),
        ('{"left": "a", "right": "b"}', "winner is None"),
        ('{"right": "b", "winner": "left"}', "the first arm is empty"),
        ('{"left": {"name": "a"}, "right": "b", "winner": "left"}', "found a list or an object, expected text"),
        ('{"left": "a", "right": "b", "winner": ["left"]}', "found a list or an object, expected text"),
        ('{"left": "\\ud800", "right": "b", "winner": "left"}', "the first arm is empty or not text"),
        ('{"left": null, "right": "b", "winner": "left"}', "the first arm is empty or not text"),
    ],
)
def test_bad_json_rows(tmp_path, row, fault):
    good = '{"left": "b", "right": "c", "winner": "left"}'
    with refused("votes.jsonl: 1 of 3 rows cannot be read, so nothing was imported:\n  line 2: " + fault):
        read_text(tmp_path, f"{good}\n{row}\n{good}\n", "votes.jsonl")


def test_json_without_any_good_row(tmp_path):
    with refused(
        "2 of 2 rows cannot be read", "line 1: not JSON: Expecting property name", "quotes\n  line 3: found 7"
    ):
        read_text(tmp_path, "{\n\n7\n", "votes.jsonl")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([("a", "b", "left"), ("a", "b")], "row 2: 2 fields, expected 3"),
        ([("a", "b", "left"), "a,b,left"], "row 2: found 'a,b,left', expected a dict or a tuple"),
        ([("a", "b", "left"), None], "row 2: found None"),
        ([DICTS[0], ("a", "b", "left", "v", 5)], "row 2: found ('a', 'b', 'left', 'v', 5)"),
        ([(None, "b", "left")], "row 1: the first arm is empty"),
        ([(float("nan"), "b", "left")], "row 1: the first arm is empty"),
    ],
)
def test_bad_rows_in_memory(rows, fault):
    with refused("the list: 1 of ", fault):
        read_votes(rows)


@pytest.mark.parametrize("voter", ["v" * 201, "v\x00w", "v\ud800", "\udcff"])
def test_voters_that_a_study_would_not_take(tmp_path, voter):
    """What comes in must be a name that can be forgotten again."""
    with pytest.raises(InvalidInput) as rule:
        voter_name(voter)
    rows = [{"left": "a", "right": "b", "winner": "left", "voter": one} for one in ("v" * 200, voter, None)]
    with refused(f"the list: 1 of 3 rows cannot be read, so nothing was imported:\n  row 2: {rule.value}"):
        read_votes(rows)
    with refused("the DataFrame: 1 of 3 rows", f"row 2: {rule.value}"):
        read_votes(pd.DataFrame(rows, dtype=object))
    with refused("the list: 1 of 1 rows", "row 1: voter is "):
        read_votes([("a", "b", "left", voter)])
    with refused("votes.jsonl: 1 of 3 rows", f"line 2: {rule.value}"):
        read_text(tmp_path, "\n".join(json.dumps(row) for row in rows), "votes.jsonl")
    if voter.isascii():
        text = f"left,right,winner,judge\na,b,left,ann\n\n{'a,b,left,' + voter}\n"
        with refused("votes.csv: 1 of 2 rows", f"line 4: {rule.value}"):
            read_text(tmp_path, text)


def test_voters_are_names_or_nobody():
    rows = [("a", "b", "left", voter) for voter in (" ann ", "  ", "", None, 7, float("nan"), "größer", "x\ty")]
    assert read_votes(rows).voters == ("ann", None, None, None, "7", None, "größer", "x\ty")


def test_one_error_lists_the_first_five_and_counts_all(tmp_path):
    rows = ["a,b,left", "a,b,x1", "a,a,left", "a,b,x2", ",b,left", "a,b", "a,b,x6", "a,b,x7", "b,a,tie"]
    with pytest.raises(InvalidInput) as error:
        read_text(tmp_path, "left,right,winner\n" + "\n".join(rows))
    lines = str(error.value).split("\n")
    assert lines[0].endswith("votes.csv: 7 of 9 rows cannot be read, so nothing was imported; the first 5:")
    assert [line.split(":")[0] for line in lines[1:]] == [f"  line {number}" for number in (3, 4, 5, 6, 7)]
    with refused("5 of 6 rows cannot be read, so nothing was imported:\n"):
        read_text(tmp_path, "left,right,winner\na,b,left\n" + "a,b,x\n" * 5)


def test_long_cells_are_cut_in_messages():
    with pytest.raises(InvalidInput) as error:
        read_votes(
            [("a", "b", "x" * 1000), ("y" * 1000, "y" * 1000, "tie"), ("a", "b", "tie", "v", "z" * 999)[:3], "w" * 999]
        )
    assert len(str(error.value)) < 500


def test_files_that_cannot_be_read(tmp_path):
    with refused("nothing.csv cannot be read: No such file or directory"):
        read_votes(tmp_path / "nothing.csv")
    with refused("no Parquet files were found there, expected names that end in .parquet"):
        read_votes(tmp_path)
    with refused("votes.csv is empty: expected a header, such as left,right,winner"):
        read_text(tmp_path, "\n \n")
    with refused("votes.csv is not a table from here on: unexpected end of data"):
        read_text(tmp_path, '"left,right')
    with refused("votes.csv is not text in UTF-8: invalid start byte at byte 18"):
        read_text(tmp_path, b"left,right,winner\n\xff,b,left\n")
    with refused("is not text in UTF-8"):
        read_text(tmp_path, CONTENT.encode("utf-16"))


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(b"left,right,winner\n" + b"".join(b"a%d,b,left\n" % k for k in range(2000)))
    assert len(read_text(tmp_path, whole, "v.csv.gz")) == 2000
    for cut in (3, 12, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        with refused("v.csv.gz cannot be read: "):
            read_text(tmp_path, whole[:cut], "v.csv.gz")
    for place in (2, len(whole) // 2, len(whole) - 8, len(whole) - 1):  # the method, the data, the checksum, the length
        altered = bytearray(whole)
        altered[place] ^= 0x55
        with refused("v.csv.gz cannot be read: "):
            read_text(tmp_path, bytes(altered), "v.csv.gz")


def test_equal_votes():
    one = read_votes([("a", "b", "left", "v", 5), ("c", "a", "tie", None, None)])
    assert one == read_votes([("x", "y", "skip", None, None), ("a", "b", "a", "v", "5.0"), ("c", "a", "draw", " ", "")])
    for other in (
        [("a", "b", "left", "v", 5)],
        [("a", "b", "right", "v", 5), ("c", "a", "tie", None, None)],
        [("a", "d", "left", "v", 5), ("c", "a", "tie", None, None)],
        [("b", "a", "right", "v", 5), ("c", "a", "tie", None, None)],
        [("a", "b", "left", "w", 5), ("c", "a", "tie", None, None)],
        [("a", "b", "left", "v", 6), ("c", "a", "tie", None, None)],
        [("c", "a", "tie", None, None), ("a", "b", "left", "v", 5)],
    ):
        assert one != read_votes(other)
    row = {"left": "a", "right": "b", "winner": "left"}
    assert read_votes([row | {"duel": 1}]) != read_votes([row | {"duel": 2}])
    assert one != "votes"


WRITTEN = [
    {"left": "a,b", "right": "=1+1", "winner": "left", "voter": "v", "time": 0.5, "duel": "d1"},
    {"left": "=1+1", "right": 'c"', "winner": "both_bad"},
]


def test_what_is_written(tmp_path):
    votes = read_votes(WRITTEN)
    write_votes(votes, tmp_path / "v.csv")
    assert (tmp_path / "v.csv").read_bytes().decode() == (
        '"left","right","winner","voter","time","duel"\n'
        '"a,b","\'=1+1","left","v","1970-01-01T00:00:00.500000Z","d1"\n'
        '"\'=1+1","c""","both_bad","","",""\n'
    )
    write_votes(votes, tmp_path / "v.tsv", format="arena")
    assert (tmp_path / "v.tsv").read_text() == (
        '"model_a"\t"model_b"\t"winner"\t"judge"\t"tstamp"\n'
        '"a,b"\t"\'=1+1"\t"model_a"\t"v"\t0.5\n'
        '"\'=1+1"\t"c"""\t"both_bad"\t""\t""\n'
    )
    write_votes(votes, tmp_path / "v.jsonl", format="arena")
    assert [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()] == [
        {"model_a": "a,b", "model_b": "=1+1", "winner": "model_a", "judge": "v", "tstamp": 0.5},
        {"model_a": "=1+1", "model_b": 'c"', "winner": "both_bad", "judge": None, "tstamp": None},
    ]
    write_votes(votes, tmp_path / "v.ndjson.gz")
    assert json.loads(gzip.decompress((tmp_path / "v.ndjson.gz").read_bytes()).splitlines()[0]) == {
        **WRITTEN[0],
        "time": "1970-01-01T00:00:00.500000Z",
    }


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("-O2", "'-O2"),
        ("+x", "'+x"),
        ("@sum", "'@sum"),
        ("'=x", "''=x"),
        ("''-O2", "'''-O2"),
        ("'x", "'x"),
        ("x=1", "x=1"),
        ("-1.5", "-1.5"),
        ("+3e-4", "+3e-4"),
        ("-1.5+2", "'-1.5+2"),
        ("'-1.5", "''-1.5"),
    ],
)
def test_cells_that_a_spreadsheet_would_run(tmp_path, suffix, name, cell):
    votes = read_votes([{"left": name, "right": "b", "winner": "left", "voter": name, "time": None, "duel": name}])
    write_votes(votes, tmp_path / f"v{suffix}")
    with open(tmp_path / f"v{suffix}", newline="") as file:
        _, row = csv.reader(file, delimiter={".csv": ",", ".tsv": "\t"}[suffix])
    assert (row[0], row[3], row[5]) == (cell, cell, cell)
    assert read_votes(tmp_path / f"v{suffix}") == votes
    write_votes(votes, tmp_path / "v.jsonl")
    assert json.loads((tmp_path / "v.jsonl").read_text())["left"] == name


def test_an_apostrophe_before_a_formula_is_taken_off_cells_from_elsewhere():
    assert read_votes(b"left,right,winner\n'=x,'b,'=x\n").names == ("=x", "'b")
    assert read_votes([("'=x", "b", "left")]).names == ("'=x", "b")
    assert read_votes(b'{"left": "\'=x", "right": "b", "winner": "left"}').names == ("'=x", "b")


def test_json_is_written_for_people(tmp_path):
    write_votes([("模型", "é\u2028\x85e", "left")], tmp_path / "v.JSONL")
    assert '"left": "模型"' in (tmp_path / "v.JSONL").read_text(encoding="utf-8")
    assert read_votes(tmp_path / "v.JSONL").names == ("模型", "é\u2028\x85e")


def test_arena_files_have_no_duels(tmp_path):
    write_votes(WRITTEN, tmp_path / "v.csv", format="arena")
    found = read_votes(tmp_path / "v.csv")
    assert found.duels is None
    assert found == read_votes([{**row, "duel": None} for row in WRITTEN])


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).map(str.strip).filter(bool)
names = st.one_of(
    texts,
    st.sampled_from(["left", "right", "tie", "model_a", "skip", "a", "b", "winner", "x\ry", "x\u2028y\x85z", "nan"]),
    st.text("'=+-@\t\r1e.x", min_size=1, max_size=6).map(str.strip).filter(bool),  # formulas, numbers, nearly so
)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC))
rows_of_votes = st.lists(
    st.fixed_dictionaries(
        {
            "left": names,
            "right": names,
            "winner": st.sampled_from(["left", "right", "tie", "both_bad"]),
            "voter": st.none() | texts.filter(lambda text: "\x00" not in text),
            "time": st.none() | moments,
            "duel": st.none() | texts,
        }
    ).filter(lambda row: row["left"] != row["right"]),
    max_size=8,
)


@settings(deadline=None)
@given(
    rows_of_votes,
    st.sampled_from([".csv", ".tsv", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".jsonl.gz"]),
    st.sampled_from(["duels", "arena"]),
)
def test_reading_what_was_written(tmp_path_factory, rows, suffix, form):
    rows = [row | {"duel": row["duel"] if form == "duels" else None} for row in rows]
    votes = read_votes(rows)
    said = [(row["left"], row["right"], row["winner"], row["voter"], row["duel"]) for row in rows]
    assert [(*vote[:4], vote.duel) for vote in votes] == said
    assert [vote.time and datetime.fromisoformat(vote.time) for vote in votes] == [row["time"] for row in rows]
    path = tmp_path_factory.mktemp("votes") / f"v{suffix}"
    write_votes(votes, path, form)
    again = read_votes(path)
    assert again == votes
    assert [vote[:5] for vote in again] == [vote[:5] for vote in votes]
    assert again.names == votes.names
    first = path.read_bytes()
    write_votes(again, path, form)
    assert path.read_bytes() == first


def test_refused_writing(tmp_path):
    votes = read_votes(WRITTEN)
    with refused("v.xlsx: unknown kind of file, expected one of .csv, .tsv, .jsonl, .ndjson"):
        write_votes(votes, tmp_path / "v.xlsx")
    with refused("unknown kind of file"):
        write_votes(votes, tmp_path / "v.gz")
    with pytest.raises(UnknownName, match=r"unknown format of votes 'aren'. Did you mean 'arena'"):
        write_votes(votes, tmp_path / "v.csv", format="aren")
    with refused("cannot be written: No such file or directory"):
        write_votes(votes, tmp_path / "none" / "v.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_kind_of_file_that_is_only_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(module.KINDS, ".beats", ">")
    with refused("v.beats: unknown kind of file, expected one of .csv, .tsv, .jsonl, .ndjson, with"):
        write_votes(WRITTEN, tmp_path / "v.beats")
    assert list(tmp_path.iterdir()) == []


def test_every_format_is_in_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "votes" / "votes.md").read_text()
    names = [*module.KINDS, *(f'"{name}"' for name in written.FORMATS)]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ["v.csv", "v.jsonl.gz"])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch, name):
    write_votes(WRITTEN, tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def fail(vote):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(written, "_arena_row", fail)
    with refused(f"{name} cannot be written: No space left on device"):
        write_votes(WRITTEN, tmp_path / name, format="arena")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == before


def test_tally_by_hand():
    tally = tally_of(
        [
            ("a", "b", "left"),
            ("b", "a", "right"),
            ("b", "a", "left"),
            ("c", "a", "tie"),
            ("a", "c", "both_bad"),
            ("c", "b", "c"),
            ("b", "a", "skip"),
        ]
    )
    assert tally.names == ("a", "b", "c")
    # a won over b twice, b over a once, c over b once; a and c tied twice.
    assert tally.wins.tolist() == [[0, 2, 0], [1, 0, 0], [0, 1, 0]]
    assert tally.ties.tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]
    assert tally.active.tolist() == [True, True, True]
    assert tally.started_with == 3
    assert (tally.wins.dtype, tally.ties.dtype, tally.active.dtype) == (np.int64, np.int64, np.bool_)


@settings(deadline=None)
@given(rows_of_votes.filter(bool))
def test_tally_against_counting_one_by_one(rows):
    tally = tally_of(rows)
    wins = Counter(
        (row[row["winner"]], row[{"left": "right", "right": "left"}[row["winner"]]])
        for row in rows
        if row["winner"] in row
    )
    ties = Counter(frozenset((row["left"], row["right"])) for row in rows if row["winner"] not in row)
    for i, one in enumerate(tally.names):
        for j, other in enumerate(tally.names):
            assert tally.wins[i, j] == wins[one, other]
            assert tally.ties[i, j] == (ties[frozenset((one, other))] if i != j else 0)
    assert set(tally.names) == {row[side] for row in rows for side in ("left", "right")}


def test_no_tally_of_nothing(monkeypatch):
    with refused("the list has 0 arms, expected 2 to 10,000 (columns: left, right, winner)"):
        tally_of([])
    with refused("the list has 0 arms"):
        analyze([("a", "b", "skip")])
    monkeypatch.setattr(analysis, "MOST_ARMS", 3)
    assert len(tally_of([("a", "b"), ("b", "c")]).names) == 3
    with refused("the list has 4 arms, expected 2 to 3 (columns: column 0 → winner, column 1 → loser)"):
        tally_of([("a", "b"), ("c", "d")])


def test_analysis_of_a_clear_case():
    found = analyze([("a", "b", "left")] * 40 + [("b", "a", "tie")] * 2, confidence=0.9)
    assert (found.votes, found.ties, found.said) == (42, 2, "column 0 → left, column 1 → right, column 2 → winner")
    assert (found.verdict.kind, found.verdict.winner, found.verdict.confidence) == ("winner", "a", 0.9)
    assert [(row.arm, row.wins, row.losses, row.ties) for row in found.leaderboard] == [
        ("a", 40, 0, 2),
        ("b", 0, 40, 2),
    ]
    assert [(pair.first, pair.second, pair.certain) for pair in found.preferences] == [("a", "b", "first")]
    lines = str(found).split("\n")
    assert lines == [
        "42 votes, 2 of them ties (column 0 → left, column 1 → right, column 2 → winner)",
        "",
        "rank  arm           wins  rating  won–lost–tied",
        "   1  a    98 % (85–100)   1,323         40–0–2",  # (40 + 2/2) / 42; 1000 + 200 · log10(41)
        "   2  b       2 % (0–15)     677         0–40–2",
        "ranked by Bradley–Terry rating",
        "",
        str(found.verdict),
    ]


def test_an_analysis_shows_what_it_ranks_by():
    """x beats y and z 6 to 4, and y beats z 10 to 0: y has the highest rating, and ranks first."""
    wins = {("x", "y"): (6, 4), ("x", "z"): (6, 4), ("y", "z"): (10, 0)}
    votes = [(a, b, side) for (a, b), won in wins.items() for side, n in zip(("left", "right"), won) for _ in range(n)]
    found = analyze(votes)
    assert [row.arm for row in found.leaderboard] == ["y", "x", "z"]
    head, *rows = [re.split(r"\s{2,}", line.strip()) for line in str(found).splitlines()[2:6]]
    table = [dict(zip(head, row)) for row in rows]
    assert [(row["rank"], row["arm"], row["won–lost–tied"]) for row in table] == [
        ("1", "y", "14–6–0"),
        ("2", "x", "12–8–0"),
        ("3", "z", "4–16–0"),
    ]
    ratings = [float(row["rating"].replace(",", "")) for row in table]
    assert ratings == sorted(ratings, reverse=True)
    assert str(found).splitlines()[6] == "ranked by Bradley–Terry rating"


def test_analysis_uses_confidence_and_margin():
    votes = [("a", "b", "left")] * 9 + [("a", "b", "right")]
    assert analyze(votes, confidence=0.5).verdict.kind == "winner"
    sure = analyze(votes, confidence=0.999999)
    assert sure.verdict.kind == "not yet"
    assert sure.preferences[0].certain is None
    assert analyze(votes, confidence=0.5).preferences[0].certain == "first"
    assert analyze(votes, confidence=0.5).leaderboard[0].certain_wins == 1
    assert sure.leaderboard[0].certain_wins == 0
    close = [("a", "b", "left"), ("a", "b", "right")] * 500
    assert analyze(close).verdict.kind == "not yet"
    assert analyze(close, margin=0.1).verdict.kind == "practically tied"


def test_public_votes(shared_data, tmp_path):
    path = shared_data(REAL)
    votes = read_votes(path)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    assert [(*vote[:4], vote.line) for vote in votes] == [
        (row["left"], row["right"], row["winner"], row["worker"], number) for number, row in enumerate(rows, 2)
    ]
    found = analyze(path)
    assert (found.votes, found.ties, len(found.leaderboard), len(found.preferences)) == (8931, 3471, 59, 59 * 58 // 2)
    assert sum(row.duels > 0 for row in found.preferences) == 927
    assert found.verdict.kind == "not yet"
    assert all(row.certain is None for row in found.preferences)
    assert found.voters == len({row["worker"] for row in rows}) == 124
    assert str(found).startswith(
        "8,931 votes, 3,471 of them ties, by 124 voters (left, right, winner, worker → voter)\n"
    )
    for form in ("duels", "arena"):
        write_votes(votes, tmp_path / "v.csv.gz", form)
        assert read_votes(tmp_path / "v.csv.gz") == votes


def test_paths_may_be_text(tmp_path):
    write_votes([("a", "b")], str(tmp_path / "v.csv"))
    assert short(read_votes(str(tmp_path / "v.csv"))) == [("a", "b", "left")]
    assert Path(read_votes(str(tmp_path / "v.csv")).source) == tmp_path / "v.csv"


def test_bytes_are_read_as_a_file_would_be(tmp_path):
    path = tmp_path / "v.csv"
    for content in (CONTENT.encode(), b"\xef\xbb\xbf" + CONTENT.encode(), gzip.compress(CONTENT.encode(), mtime=0)):
        path.write_bytes(content)
        assert list(read_votes(content)) == list(read_votes(path))
    with pytest.raises(InvalidInput, match="the votes"):
        read_votes(b"left,right,winner\na,b,perhaps\n")
    with pytest.raises(InvalidInput):
        read_votes(b"")
