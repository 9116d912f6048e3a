"""Exports: Parquet, the columns of LMArena, and pairs for preference tuning."""

import json

import polars as pl
import pytest

from duels.errors import InvalidInput
from duels.study.create import create_study
from duels.study.items import add_items, clear_items
from duels.votes import read_votes, write_votes
from duels.votes.writers import trl_pairs

ROWS = [
    {"left": "a,b", "right": "=1+1", "winner": "left", "voter": "v", "time": "2025-01-31T12:00:00.5Z", "duel": "7"},
    {"left": "=1+1", "right": 'c"', "winner": "both_bad", "voter": None, "time": None, "duel": None},
    {"left": "a,b", "right": 'c"', "winner": "right", "voter": "=w", "time": "1969-01-01T00:00:00.000001Z"},
    {"left": "a,b", "right": 'c"', "winner": "tie"},
]
COUNTED = [row | {"count": 10**k} for k, row in enumerate(ROWS)]


@pytest.mark.parametrize("rows", [ROWS, COUNTED, []])
@pytest.mark.parametrize("form", ["duels", "arena", "lmarena"])
@pytest.mark.parametrize("suffix", ["parquet", "pq", "csv", "tsv.gz", "jsonl"])
def test_every_kind_is_read_back(tmp_path, rows, form, suffix):
    votes = read_votes(rows)
    write_votes(votes, tmp_path / f"v.{suffix}", form)
    again = read_votes(tmp_path / f"v.{suffix}")
    ids = [vote.duel if form == "duels" else None for vote in votes]
    assert [vote._replace(line=0) for vote in again] == [
        vote._replace(line=0, duel=name) for vote, name in zip(votes, ids)
    ]
    assert again.names == votes.names


def test_parquet_has_real_types_and_plain_text(tmp_path):
    write_votes(COUNTED, tmp_path / "v.parquet", "lmarena")
    frame = pl.read_parquet(tmp_path / "v.parquet")
    assert frame.columns == ["id", "model_a", "model_b", "winner", "judge", "timestamp", "count"]
    assert frame.schema["timestamp"] == pl.Datetime("us", "UTC")
    assert frame["id"].to_list() == ["7", "2", "3", "4"]
    assert frame["model_b"][0] == "=1+1"  # no spreadsheet runs Parquet
    assert frame["winner"].to_list() == ["model_a", "both_bad", "model_b", "tie"]
    assert frame["count"].to_list() == [1, 10, 100, 1000]
    write_votes(ROWS, tmp_path / "a.parquet", "arena")
    assert pl.read_parquet(tmp_path / "a.parquet")["tstamp"].to_list()[:2] == [1738324800.5, None]


def test_standard_output_is_csv(capfdbinary, tmp_path):
    write_votes(ROWS, "-")
    write_votes(ROWS, tmp_path / "v.csv")
    assert capfdbinary.readouterr().out == (tmp_path / "v.csv").read_bytes()


@pytest.fixture
def study(tmp_path):
    """Two items; a wins the first and b the second, then a tie, and a vote from elsewhere."""
    study = create_study(["a", "b"], "study", f"sqlite:///{tmp_path}/duels.db")
    outputs = [{"a": f"=A{k}", "b": {"kind": "code", "content": f"B{k}"}} for k in (1, 2)]
    add_items(study, [{"prompt": f"prompt {k}", "outputs": one} for k, one in enumerate(outputs, 1)])
    for winner in ("a", "b", "tie"):
        study.tell(study.ask(allow_self=False), winner, voter="ann")
    study.import_votes([("a", "b", "left")])
    return study


def asked(study):
    return [study.duel(number).item for number in range(3)]


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.parquet", "pairs.csv"])
def test_pairs_for_preference_tuning(study, tmp_path, name):
    votes = study.votes(items=True)
    first, second = (item.prompt for item in asked(study)[:2])
    number = {"prompt 1": 1, "prompt 2": 2}
    expected = [
        {"prompt": first, "chosen": f"=A{number[first]}", "rejected": f"B{number[first]}"},
        {"prompt": second, "chosen": f"B{number[second]}", "rejected": f"=A{number[second]}"},
    ]
    write_votes(votes, tmp_path / name, "trl")
    if name.endswith("jsonl"):
        assert [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] == expected
    elif name.endswith("parquet"):
        assert pl.read_parquet(tmp_path / name).to_dicts() == expected
    else:
        assert f'"\'=A{number[first]}"' in (tmp_path / name).read_text()
    assert trl_pairs(votes).left_out == "1 tie and 1 vote without a prompt and two texts"


def test_conversations_of_items(study, tmp_path):
    votes = study.votes(items=True)
    item = asked(study)[0]
    for name in ("v.jsonl", "v.parquet"):
        write_votes(votes, tmp_path / name, "lmarena")
        assert read_votes(tmp_path / name).total == 4
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert rows[0]["conversation_a"] == [
        {"role": "user", "content": item.prompt},
        {"role": "assistant", "content": item.left.content},
    ]
    frame = pl.read_parquet(tmp_path / "v.parquet")
    assert frame["conversation_b"].to_list() == [row["conversation_b"] for row in rows]


def test_pairs_of_votes_from_elsewhere():
    rows = [("a", "b", "left", "p", "x", "y"), ("a", "b", "right", "p", "x", "y"), ("a", "b", "left", "p", "x", None)]
    names = ("left", "right", "winner", "prompt", "response_a", "response_b")
    votes = read_votes([dict(zip(names, row)) for row in rows], extra=names[3:])
    assert trl_pairs(votes).rows == [("p", "x", "y"), ("p", "y", "x")]
    assert trl_pairs(votes).left_out == "1 vote without a prompt and two texts"


def test_outputs_that_are_numbers_are_text():
    row = {"left": "a", "right": "b", "winner": "left", "prompt": "2 + 2?", "response_a": "4", "response_b": "5"}
    assert trl_pairs(read_votes([row], extra=["prompt", "response_a", "response_b"])).rows == [("2 + 2?", "4", "5")]


def test_pairs_need_items(study, tmp_path):
    for votes in (study.votes(), read_votes(ROWS)):
        with pytest.raises(InvalidInput, match="has no prompts and outputs, which pairs for preference tuning need"):
            write_votes(votes, tmp_path / "pairs.jsonl", "trl")
    assert not (tmp_path / "pairs.jsonl").exists()
    clear_items(study)
    assert trl_pairs(study.votes(items=True)).rows == []


def test_items_and_comments_of_a_study_are_columns_of_its_export(tmp_path):
    study = create_study(["a", "b"], storage="sqlite://")
    add_items(study, [{"prompt": "p", "outputs": {"a": "x", "b": "y"}}])
    first, second = study.ask(2, allow_self=False)
    study.tell(first, "left", note="=1+1\nand more")
    study.tell(second, "right", note="taken back")
    study.undo(second)
    study.tell(second, "tie")
    votes = study.votes()
    assert votes.extra["item"].to_list() == [1, 1]
    assert votes.extra["comment"].to_list() == ["=1+1\nand more", None]
    for name in ("votes.csv", "votes.jsonl", "votes.parquet"):
        write_votes(votes, tmp_path / name)
        again = read_votes(tmp_path / name, extra=["item", "comment"])
        assert [vote[:3] for vote in again] == [vote[:3] for vote in votes]
        assert again.extra["item"].to_list() == [1, 1]
        assert [one or None for one in again.extra["comment"].to_list()] == ["=1+1\nand more", None]
    assert "\"'=1+1" in (tmp_path / "votes.csv").read_text()  # for a spreadsheet it is text
    assert create_study(["a", "b"], "other", storage="sqlite://").votes().extra == {}
