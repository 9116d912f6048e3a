"""`duels analyze`, `duels rate` and `duels matrix count`: files of votes from the command line."""

import json

import polars as pl
import pytest
from commands import duels_command

import duels

ROWS = [("ada", "bob", "model_a")] * 30 + [("bob", "ada", "model_a")] * 10 + [("bob", "cy", "tie")] * 6
ROWS += [("cy", "bob", "model_b"), ("cy", "ada", "model_b")] * 12 + [("cy", "ada", "model_a")] * 3


@pytest.fixture
def folder(tmp_path):
    frame = pl.DataFrame(ROWS, schema=["model_a", "model_b", "winner"], orient="row")
    frame = frame.with_columns(tokens_a=100 + pl.int_range(pl.len()) % 7, tokens_b=pl.lit(103))
    frame.with_columns(language=pl.Series(["en", "pl"] * (len(ROWS) // 2) + ["en"])[: len(ROWS)]).write_parquet(
        tmp_path / "votes.parquet"
    )
    return tmp_path


def output(folder, *arguments, code=0):
    done = duels_command(*arguments, cwd=folder, environment={"COLUMNS": "120"})
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_analyze(folder):
    found = duels.analyze(folder / "votes.parquet")
    text = output(folder, "analyze", "votes.parquet")
    assert text.startswith("73 votes, 6 of them ties (model_a → left, model_b → right, winner)\n")
    assert str(found.verdict) in text
    assert found.ranked in text
    data = json.loads(output(folder, "analyze", "votes.parquet", "-f", "json"))
    assert data["votes"] == 73
    assert data["verdict"] == found.verdict.as_dict()
    assert [row["arm"] for row in data["leaderboard"]] == [row.arm for row in found.leaderboard]
    rows = output(folder, "analyze", "votes.parquet", "-f", "csv").splitlines()
    assert len(rows) == 4
    assert rows[0].startswith("rank,arm,rating,share,lower,upper,answers,wins")
    assert "\\begin{tabular}" in output(folder, "analyze", "votes.parquet", "-f", "latex")
    certain = json.loads(
        output(folder, "analyze", "votes.parquet", "--confidence", "0.5", "--margin", "0.4", "-f", "json")
    )
    assert (certain["verdict"]["confidence"], certain["verdict"]["margin"]) == (0.5, 0.4)


def test_analyze_maps_columns_and_refuses_in_words(folder):
    (folder / "odd.csv").write_text("x,y,who\na,b,a\n")
    said = output(folder, "analyze", "odd.csv", code=2)
    assert said.startswith("duels: odd.csv: no column is known to be left or right or winner. Found x, y, who;")
    assert "1 vote, 0" in output(
        folder, "analyze", "odd.csv", "--column", "left=x", "--column", "right=y", "--column", "winner=who"
    )


def test_ratings(folder):
    expected = duels.rate(folder / "votes.parquet")
    rows = json.loads(output(folder, "rate", "votes.parquet", "-f", "json"))
    assert [row["arm"] for row in rows] == expected["arm"].to_list()
    assert [row["rating"] for row in rows] == pytest.approx(expected["rating"].to_list())
    options = ["--scale", "logit", "--anchor", "bob", "--confidence", "0.9", "--interval", "bootstrap"]
    rows = json.loads(output(folder, "rate", "votes.parquet", *options, "-f", "json"))
    expected = duels.rate(folder / "votes.parquet", scale="logit", anchor="bob", confidence=0.9, interval="bootstrap")
    assert [row["lower"] for row in rows] == pytest.approx(expected["lower"].to_list())
    anchored = json.loads(output(folder, "rate", "votes.parquet", "--anchor", "bob=1200", "-f", "json"))
    assert {row["arm"]: row["rating"] for row in anchored}["bob"] == 1200
    rows = json.loads(output(folder, "rate", "votes.parquet", "--model", "rao-kupper", "-f", "json"))
    assert [row["rating"] for row in rows] == pytest.approx(
        duels.rate(folder / "votes.parquet", model="rao-kupper")["rating"].to_list()
    )


def test_ratings_by_a_column_and_with_covariates(folder):
    rows = json.loads(output(folder, "rate", "votes.parquet", "--by", "language", "-f", "json"))
    assert {row["language"] for row in rows} == {"en", "pl"}
    text = output(folder, "rate", "votes.parquet", "--by", "language")
    assert text.split()[:2] == ["language", "rank"]
    rows = json.loads(output(folder, "rate", "votes.parquet", "--covariate", "tokens_a,tokens_b", "-f", "json"))
    expected = duels.rate(folder / "votes.parquet", covariates=[("tokens_a", "tokens_b")])
    assert [row["rating"] for row in rows] == pytest.approx(expected["rating"].to_list())
    said = output(folder, "rate", "votes.parquet", "--covariate", "tokens", code=2)
    assert "unknown column of votes.parquet 'tokens'" in said


def test_limits_that_the_votes_do_not_give(folder):
    """Empty in JSON and CSV, infinite in tables, with the reason below or on standard error."""
    (folder / "few.csv").write_text("left,right,winner\na,b,left\n")
    text = output(folder, "rate", "few.csv")
    assert "∞" in text
    assert "every arm was given half a win and half a loss" in " ".join(text.split())
    rows = json.loads(output(folder, "rate", "few.csv", "-f", "json"))
    assert [row["upper"] for row in rows] == [None, rows[1]["upper"]]
    assert "$\\infty$" in output(folder, "rate", "few.csv", "-f", "latex")


def test_matrix_count(folder):
    text = output(folder, "matrix", "count", "votes.parquet", "--out", "m.csv")
    matrix = duels.read_votes(folder / "votes.parquet").matrix()
    assert text.strip() == matrix.describe()
    assert duels.load_matrix(folder / "m.csv").array.tolist() == matrix.array.tolist()
    assert output(folder, "matrix", "count", "votes.parquet").strip() == matrix.describe()
    assert "expected" in output(folder, "matrix", "count", "votes.parquet", "--out", "m.doc", code=2)


def test_skips_are_said(folder):
    row = {"model_1": "x", "model_2": "y", "g2_winner": "model_1"}
    rows = [row | {"g1_winner": winner} for winner in ("model_1", "error")]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert output(folder, "analyze", "pairs.jsonl").startswith("1 vote, 0 of them ties; 1 skip left out (MT-Bench: ")
    assert json.loads(output(folder, "analyze", "pairs.jsonl", "-f", "json"))["skipped"] == 1


def test_an_anchor_whose_rating_is_no_number(folder):
    said = output(folder, "rate", "votes.parquet", "--anchor", "ada=much", code=2)
    assert said.strip() == "duels: --anchor ada=much: 'much' is not a number, expected the rating of 'ada'"


def test_only_new_votes_of_a_growing_log(folder):
    rows = [f"ada,bob,left,ann,2025-01-01T00:00:{k:02}Z" for k in range(60)]
    head = "left,right,winner,voter,time"
    (folder / "log.csv").write_text("\n".join([head, *rows[:40]]))
    output(folder, "study", "import", "log", "log.csv", "--create")
    (folder / "log.csv").write_text("\n".join([head, *rows]))
    said = output(folder, "study", "import", "log", "log.csv", code=2)
    assert "40 of these 60 votes are in 'log' already" in said
    assert "use --new to import only the others, or --again to count them twice; nothing was imported" in said
    assert "20 votes were imported into 'log'" in output(folder, "study", "import", "log", "log.csv", "--new")
    assert "0 votes were imported into 'log'" in output(folder, "study", "import", "log", "log.csv", "--new")
    assert "use one of them" in output(folder, "study", "import", "log", "log.csv", "--new", "--again", code=2)


def test_the_same_counts_are_not_imported_twice(folder):
    (folder / "counts.csv").write_text("left,right,wins_left,wins_right\nada,bob,3000000,2000000\n")
    output(folder, "study", "import", "counted", "counts.csv", "--create")
    said = output(folder, "study", "import", "counted", "counts.csv", code=2)
    assert said.startswith("duels: exactly these votes were imported into 'counted' before: use --again")
    assert "0 votes were imported" in output(folder, "study", "import", "counted", "counts.csv", "--new")
    assert "5,000,000 votes were imported" in output(folder, "study", "import", "counted", "counts.csv", "--again")
    (folder / "counts.csv").write_text("left,right,wins_left,wins_right\nada,bob,3000000,2000001\n")
    assert "5,000,001 votes were imported" in output(folder, "study", "import", "counted", "counts.csv")


def test_rows_and_voters_are_left_out(folder):
    rows = ["left,right,winner,voter,time", "a,b,left,ann,1700000000", "a,a,left,ann,1700000001"]
    rows += ["b,a,left,bot,1700000002", "a,b,left,ann,1700000000"]
    (folder / "faulty.csv").write_text("\n".join(rows))
    notes = [
        "1 row cannot be read, and was left out: line 3: 'a' is compared with itself, expected two different arms.",
        "1 row repeats an earlier one in every cell, and was counted again: line 5 as line 2.",
    ]
    said = output(folder, "analyze", "faulty.csv", code=2)
    assert "1 of 4 rows cannot be read, so nothing was imported" in said
    assert said.endswith('; to leave such rows out: on_error="skip" (--on-error skip)\n')
    options = ["--on-error", "skip", "--without", "bot"]
    assert output(folder, "analyze", "faulty.csv", *options).startswith(
        "2 votes, 0 of them ties, by 1 voter; 1 vote of excluded voters left out"
    )
    for command in ("analyze", "rate", "votes agreement"):
        words = (*command.split(), "faulty.csv", *options)
        text = output(folder, *words[: -len(options)], *options[:2])
        assert all(note in " ".join(text.split()) for note in notes), command
        assert "unknown voter 'bott'" in output(
            folder, *command.split(), "faulty.csv", *options, "--without", "bott", code=2
        )
    assert json.loads(output(folder, "analyze", "faulty.csv", *options, "-f", "json"))["left_out"] == 1
    done = duels_command("study", "import", "faulty", "faulty.csv", "--create", *options, cwd=folder)
    assert done.stdout == "2 votes were imported into 'faulty'\n"
    assert done.stderr.splitlines()[1:] == ["1 vote of excluded voters left out", *notes]
    done = duels_command("matrix", "count", "faulty.csv", *options, cwd=folder)
    assert done.stderr.splitlines() == notes


def test_ratings_are_those_of_python_with_voters(folder):
    frame = pl.DataFrame(ROWS * 3, schema=["left", "right", "winner"], orient="row")
    frame.with_columns(voter="v" + (pl.int_range(pl.len()) % 15).cast(pl.String)).write_csv(folder / "crowd.csv")
    expected = duels.rate(folder / "crowd.csv")
    assert expected.notes[0].startswith("Each voter counts as one observation")
    rows = json.loads(output(folder, "rate", "crowd.csv", "-f", "json"))
    assert [row["lower"] for row in rows] == pytest.approx(expected["lower"].to_list())
    assert expected.notes[0][:60] in output(folder, "rate", "crowd.csv")
    alone = json.loads(output(folder, "rate", "crowd.csv", "--cluster", "none", "-f", "json"))
    expected = duels.rate(folder / "crowd.csv", cluster=None)
    assert [row["lower"] for row in alone] == pytest.approx(expected["lower"].to_list())
