"""Vote files that people have: one small file of each kind, written by hand from its documented structure."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import duels
from duels.errors import InvalidInput, UnknownName
from duels.study.analysis import tally_of
from duels.votes import read_votes


def votes_in(found):
    return [(vote.left, vote.right, vote.winner, vote.voter) for vote in found]


def said(text):
    """One message of a conversation of LMArena."""
    return [{"role": "user", "content": [{"type": "text", "text": text, "image": None, "mimeType": None}]}]


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lmarena(tmp_path):
    rows = [
        {
            "id": f"b-{k}",
            "model_a": left,
            "model_b": right,
            "winner": winner,
            "evaluation_session_id": f"s-{k}",
            "evaluation_order": 1,
            "conversation_a": said("hello"),
            "conversation_b": said("hello"),
            "full_conversation": said("hello"),
            "conv_metadata": {"sum_assistant_a_tokens": 10 * k, "sum_assistant_b_tokens": 5, "turns": 1},
            "category_tag": {"math_v0.1": {"math": k == 1}},
            "language": "en",
            "is_code": False,
            "timestamp": f"2025-04-01 12:00:0{k}",
        }
        for k, (left, right, winner) in enumerate(
            [("gpt", "llama", "model_a"), ("llama", "qwen", "both_bad"), ("qwen", "gpt", "tie")]
        )
    ]
    frame = pl.DataFrame(rows).with_columns(pl.col("timestamp").str.to_datetime())
    frame.write_parquet(tmp_path / "train.parquet")
    extra = ["language", "conv_metadata.sum_assistant_a_tokens", "category_tag.math_v0.1.math"]
    found = read_votes(tmp_path / "train.parquet", extra=extra)
    assert votes_in(found) == [
        ("gpt", "llama", "left", None),
        ("llama", "qwen", "both_bad", None),
        ("qwen", "gpt", "tie", None),
    ]
    assert found.times == ("2025-04-01T12:00:00Z", "2025-04-01T12:00:01Z", "2025-04-01T12:00:02Z")
    assert found.said == "model_a → left, model_b → right, winner, timestamp → time"
    assert found.extra["conv_metadata.sum_assistant_a_tokens"].to_list() == [0, 10, 20]
    lines(tmp_path / "train.jsonl", *rows)
    again = read_votes(tmp_path / "train.jsonl", extra=extra)
    assert again == found
    for name in extra:
        assert again.extra[name].equals(found.extra[name])
    assert found.extra["category_tag.math_v0.1.math"].to_list() == [False, True, False]
    with pytest.raises(UnknownName, match=r"category_tag.maths"):
        read_votes(tmp_path / "train.parquet", extra=["category_tag.maths"])


def test_fastchat(tmp_path):
    battle = {"question_id": "q1", "judge": "arena_user_3", "conversation_a": [], "conversation_b": [], "turn": 1}
    battle |= {"anony": True, "language": "English", "tstamp": 1682351591.1322}
    path = lines(
        tmp_path / "battles.json",
        battle | {"model_a": "koala", "model_b": "alpaca", "winner": "model_b"},
        battle | {"model_a": "alpaca", "model_b": "koala", "winner": "tie (bothbad)"},
    )
    found = read_votes(path)
    assert votes_in(found) == [
        ("koala", "alpaca", "right", "arena_user_3"),
        ("alpaca", "koala", "both_bad", "arena_user_3"),
    ]
    assert found.times[0] == "2023-04-24T15:53:11.132200Z"


def test_mt_bench(tmp_path):
    """Both orders were judged: a judge that changes its mind says tie, and an error is no vote."""
    pair = {"question_id": 81, "model_1": "llama", "model_2": "vicuna", "judge": ["gpt-4", "pair-v2"], "turn": 1}
    orders = [
        ("model_1", "model_1"),
        ("model_2", "model_1"),
        ("tie", "tie"),
        ("error", "model_1"),
        ("model_2", "model_2"),
    ]
    rows = [pair | {"g1_winner": one, "g2_winner": other, "tstamp": 1687222841} for one, other in orders]
    found = read_votes(lines(tmp_path / "gpt-4_pair.jsonl", *rows), extra=["question_id"])
    assert votes_in(found) == [("llama", "vicuna", word, "gpt-4, pair-v2") for word in ("left", "tie", "tie", "right")]
    assert found.skipped == 1
    assert found.extra["question_id"].to_list() == [81] * 4
    assert found.said == (
        "MT-Bench: model_1 → left, model_2 → right, g1_winner and g2_winner → winner, a tie if they differ, "
        "judge → voter, tstamp → time"
    )
    with pytest.raises(
        InvalidInput, match=r"line 1: g1_winner and g2_winner are 'model_3' and 'tie', expected model_1,"
    ):
        read_votes(lines(tmp_path / "bad.jsonl", pair | {"g1_winner": "model_3", "g2_winner": "tie"}))
    pl.DataFrame(rows).write_parquet(tmp_path / "pairs.parquet")
    assert read_votes(tmp_path / "pairs.parquet") == found


def test_arena_hard(tmp_path):
    """In the first game A is the baseline, in the second one A is the model."""
    row = {"uid": "u1", "category": "hard_prompt", "judge": "gpt-4.1", "model": "qwen", "baseline": "o3"}

    def games(*scores):
        return row | {"games": [{"score": score, "judgment": {"answer": "…"}, "prompt": []} for score in scores]}

    path = lines(tmp_path / "qwen.jsonl", games("A>>B", "B>A"), games("A=B", None), games("B>A", "A>B"))
    found = read_votes(path)
    assert votes_in(found) == [
        ("o3", "qwen", "left", "gpt-4.1"),
        ("qwen", "o3", "right", "gpt-4.1"),
        ("o3", "qwen", "tie", "gpt-4.1"),
        ("o3", "qwen", "right", "gpt-4.1"),
        ("qwen", "o3", "left", "gpt-4.1"),
    ]
    assert found.skipped == 1
    assert found.lines.tolist() == [1, 1, 2, 3, 3]
    with pytest.raises(InvalidInput, match="the score of a game is 'A wins', expected A>>B, A>B, A=B, B>A or B>>A"):
        read_votes(lines(tmp_path / "bad.jsonl", games("A wins", "A>B")))
    with pytest.raises(InvalidInput, match="games is 'A>B', expected a list of two games, each with a score"):
        read_votes(lines(tmp_path / "bad.jsonl", row | {"games": "A>B"}))


def test_alpaca_eval(tmp_path):
    row = {"instruction": "Say hello.", "output_1": "Hello", "generator_1": "text_davinci_003", "output_2": "Hi"}
    row |= {"generator_2": "vicuna", "annotator": "weighted_alpaca_eval_gpt4_turbo"}
    given = [1, 2, 1.5, 1.0003, 1.99, None]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([row | {"preference": one} for one in given], indent=1))
    found = read_votes(path)
    assert [vote.winner for vote in found] == ["left", "right", "tie", "left", "right"]
    assert {vote[:2] + vote[3:4] for vote in found} == {
        ("text_davinci_003", "vicuna", "weighted_alpaca_eval_gpt4_turbo")
    }
    assert found.skipped == 1
    path.write_text(json.dumps([row | {"preference": 3}]))
    with pytest.raises(InvalidInput, match="row 1: preference is 3, expected a number from 1, the first output, to 2"):
        read_votes(path)


def test_kaggle(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
        '1,gpt,llama,"[""hi""]","[""a""]","[""b""]",1,0,0\n'
        '2,llama,gpt,"[""hi""]","[""a""]","[""b""]",0,1,0\n'
        '3,gpt,llama,"[""hi""]","[""a""]","[""b""]",0,0,1\n'
    )
    found = read_votes(path)
    assert [vote.winner for vote in found] == ["left", "right", "tie"]
    assert found.count is None
    assert found.said == (
        "model_a → left, model_b → right, winner_model_a → wins_left, winner_model_b → wins_right, winner_tie → ties"
    )


def test_promptfoo(tmp_path):
    """Of two outputs of a test, the one with the larger score wins; both bad if neither passes."""

    def result(test, provider, score, success):
        return {
            "promptIdx": 0,
            "testIdx": test,
            "vars": {"q": f"question {test}"},
            "provider": {"id": provider, "label": ""},
            "prompt": {"raw": "{{q}}", "label": "plain"},
            "response": {"output": "x"},
            "success": success,
            "score": score,
        }

    results = [
        *(result(0, "gpt", 1, True), result(0, "llama", 0.5, True), result(0, "qwen", 1, True)),
        *(result(1, "gpt", 0, False), result(1, "llama", 0, False)),
    ]
    path = tmp_path / "results.json"
    whole = {"version": 3, "timestamp": "2025-01-01", "results": results, "prompts": [], "stats": {}}
    for content in (whole, {"evalId": "e", "results": whole}):
        path.write_text(json.dumps(content, indent=2))
        assert [vote[:3] for vote in read_votes(path)] == [
            ("gpt", "llama", "left"),
            ("gpt", "qwen", "tie"),
            ("llama", "qwen", "right"),
            ("gpt", "llama", "both_bad"),
        ]
    path.write_text(json.dumps(whole | {"results": [*results, result(2, "gpt", None, True)]}, indent=2))
    with pytest.raises(InvalidInput, match="result 6: its score is None, expected a number"):
        read_votes(path)


def test_a_caller_who_names_the_columns_is_believed(tmp_path):
    row = {"model_1": "x", "model_2": "y", "g1_winner": "model_1", "g2_winner": "tie"}
    path = lines(tmp_path / "pairs.jsonl", row)
    found = read_votes(path, columns={"left": "model_1", "right": "model_2", "winner": "g1_winner"})
    assert [vote[:3] for vote in found] == [("x", "y", "left")]


def test_counts_per_pair(tmp_path):
    """As SQL writes them, and as `duels preferences -f csv` does."""
    path = tmp_path / "counts.csv"
    path.write_text("left,right,wins_left,wins_right,ties\na,b,3000000000,2000000000,7\nb,c,2,0,0\nc,a,,1,0\n")
    found = read_votes(path)
    assert [(vote[:3], vote.count) for vote in found] == [
        (("a", "b", "left"), 3_000_000_000),
        (("a", "b", "right"), 2_000_000_000),
        (("a", "b", "tie"), 7),
        (("b", "c", "left"), 2),
        (("c", "a", "right"), 1),
    ]
    assert (len(found), found.total) == (5, 5_000_000_010)
    assert repr(found) == f"Votes(5,000,000,010 on 3 arms from {path})"
    wins, ties = tally_of(path)[1:3]
    assert wins.tolist() == [[0, 3_000_000_000, 1], [2_000_000_000, 0, 2], [0, 0, 0]]
    assert ties.tolist() == [[0, 7, 0], [7, 0, 0], [0, 0, 0]]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("first,second,wins,losses,ties,duels\na,b,3,2,1,6\n")
    assert [(vote.winner, vote.count) for vote in read_votes(pairs)] == [("left", 3), ("right", 2), ("tie", 1)]


def test_a_column_of_counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("left,right,winner,count\na,b,left,5\na,b,tie,1\nb,a,skip,4\nb,a,left,0\n")
    found = read_votes(path)
    assert [(vote[:3], vote.count) for vote in found] == [(("a", "b", "left"), 5), (("a", "b", "tie"), 1)]
    assert found.skipped == 4
    single = [("a", "b", "left")] * 5 + [("a", "b", "tie")]
    assert duels.rate(path).equals(duels.rate(single))
    assert str(duels.analyze(path)).replace("count", "").splitlines()[2:] == str(duels.analyze(single)).splitlines()[2:]


@pytest.mark.parametrize("bad", ["-1", "1.5", "many", "inf", "1e300"])
def test_counts_that_are_none(tmp_path, bad):
    path = tmp_path / "counts.csv"
    path.write_text(f"left,right,wins_left,wins_right\na,b,1,2\na,c,{bad},2\n")
    with pytest.raises(InvalidInput, match=rf"line 3: the count of left is '{bad}', expected a whole number"):
        read_votes(path)


def test_the_query_in_the_documentation(tmp_path, monkeypatch):
    """The one for DuckDB, run: its counts are the votes. Those for BigQuery and Spark differ in names only."""
    import duckdb

    page = (Path(__file__).parents[2] / "docs" / "votes" / "votes.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    words = ["model_a", "model_b", "tie", "both_bad", "tie (bothbad)"]
    rows = [f"{'ab'[k % 2]},{'cd'[k % 3 // 2]},{words[k % 5]}" for k in range(60)]
    (tmp_path / "votes.csv").write_text("\n".join(["model_a,model_b,winner", *rows]))
    duckdb.sql(queries[0]).write_parquet(str(tmp_path / "counts.parquet"))
    wins, ties = (read_votes(tmp_path / name).matrix() for name in ("counts.parquet", "votes.csv"))
    order = [wins.names.index(name) for name in ties.names]
    assert (wins.counts[order][:, order] == ties.counts).all()
    plain = {re.sub(r"--.*\n|\"|`|FROM.*? GROUP", "", query) for query in queries}
    same = {
        re.sub(r"count\(\*\) FILTER \(WHERE (.*?)\) AS|count_?if\((.*?)\) AS", r"[\1\2] AS", text, flags=re.I)
        for text in plain
    }
    assert len(queries) == 3
    assert len(same) == 1
