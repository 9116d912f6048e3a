"""`duels votes agreement` in every format."""

import csv
import io
import json

import pytest
from commands import duels_command

ROWS = ["model_a,model_b,winner,person,task", "x,y,x,ann,1", "y,x,x,bob,1", "x,y,tie,ann,2", "x,y,tie,bob,2"]


@pytest.fixture
def say(tmp_path):
    (tmp_path / "votes.csv").write_text("\n".join(ROWS))

    def run(*words, stdin=""):
        return duels_command("votes", "agreement", *words, cwd=tmp_path, stdin=stdin)

    return run


COLUMNS = ("--column", "voter=person", "--question", "task")


def test_words_and_rows(say):
    # By chance: two ties, 2 · 1, and two decided answers, 2 · 1 / 2, of 4 · 3 ordered pairs.
    assert "Two answers to the same question agree in 100% of cases (25% by chance" in say("votes.csv", *COLUMNS).stdout
    found = json.loads(say("votes.csv", *COLUMNS, "-f", "json").stdout)
    assert (found["question"], found["questions"], found["raw"], found["alpha"]) == ("a pair of arms and task", 2, 1, 1)
    assert found["pairs"][0]["kappa"] == 1
    rows = list(csv.DictReader(io.StringIO(say("votes.csv", *COLUMNS, "-f", "csv").stdout)))
    assert [(row["voter"], row["answers"], row["compared"], row["at_random"]) for row in rows] == [
        ("ann", "2", "1", "no"),
        ("bob", "2", "1", "no"),
    ]
    assert list(rows[0]) == list(found["voters"][0])
    assert say("votes.csv", *COLUMNS, "-f", "markdown").stdout.startswith("| voter | answers | left |")
    assert r"\toprule" in say("votes.csv", *COLUMNS, "-f", "latex").stdout


def test_standard_input_and_mistakes(say):
    assert "100% of cases" in say("-", *COLUMNS[:2], stdin="\n".join(ROWS)).stdout
    nobody = say("votes.csv")
    assert nobody.returncode == 2
    assert "votes.csv does not say who voted" in nobody.stderr
    assert "unknown column of votes.csv 'x'" in say("votes.csv", "--question", "x").stderr
