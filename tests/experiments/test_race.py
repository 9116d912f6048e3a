"""Races: who takes part, one table, one figure, and wrong policies told from slow ones."""

import json

import pytest
from commands import duels_command

import duels
from duels.errors import InvalidInput, UnknownName
from duels.experiments.race import Race, RaceRow, unsuitable
from duels.policies import BUILT_IN

CYCLE = [[0.5, 0.7, 0.3, 0.9], [0.3, 0.5, 0.7, 0.9], [0.7, 0.3, 0.5, 0.9], [0.1, 0.1, 0.1, 0.5]]

DEAF = """
from typing import NamedTuple
import numpy as np

class Params(NamedTuple):
    arm: int = 0

class State(NamedTuple):
    plays: np.ndarray  # (1,) int64

def init(arms, horizon, params):
    return State(np.zeros(1, np.int64))

def select(state, params, t, rng):
    return 0, 1

def update(state, params, t, i, j, outcome):
    state.plays[0] += 1

def recommend(state, rng):
    return 0
"""


def test_rows_are_those_of_simulate_in_the_order_of_regret():
    found = duels.experiments.run_race(
        "arxiv-6", ["random", "rucb", "savage"], horizon=20_000, runs=4, seed=3, check=False
    )
    assert [row.policy for row in found.rows] == ["rucb", "savage", "random"]
    for row in found.rows:
        last = duels.simulate("arxiv-6", row.policy, horizon=20_000, runs=4, seed=3).final().row(0, named=True)
        assert (row.regret, row.accuracy, row.least, row.most) == (
            *(last["regret"], last["accuracy"], last["regret_min"], last["regret_max"]),
        )
        assert row.nanoseconds > 0
        assert row.conforms == "not checked"
    assert found.regret == "condorcet"
    assert found.left_out == {}
    assert set(found.results.frame["policy"]) == {"random", "rucb", "savage"}
    assert found.plot().to_dict()["title"]["text"].startswith("Cumulative regret (Condorcet) on arxiv-6")


def test_a_figure_of_the_best_six_and_the_baseline():
    names = ["rucb", "savage", "btm", "dts", "rmed1", "rcs", "sparring", "random"]
    parts = [duels.simulate("cyclic-4", name, horizon=10, runs=2) for name in names]
    rows = [RaceRow(name, float(place), None, 0, 0, 1, 1, "yes") for place, name in enumerate(reversed(names[:-1]))]
    found = Race(
        [*rows, RaceRow("random", 99.0, None, 0, 0, 1, 1, "yes")], duels.results.combine(parts), "condorcet", {}
    )
    chart = found.plot().to_dict()
    texts = [layer for layer in chart["layer"] if layer["mark"]["type"] == "text"]
    shown = {layer["data"]["values"][0]["name"] for layer in texts}
    # rucb has the seventh place; random, the last one, is always there.
    assert shown == {"Sparring", "RCS", "RMED1", "D-TS", "Beat the Mean", "Condorcet SAVAGE", "Random"}
    assert chart["title"]["text"] == "Regret (Condorcet) on cyclic-4: the best 6 of 8 policies"
    assert found.plot(title="Mine", legend="bottom").to_dict()["title"]["text"] == "Mine"


def test_the_default_of_studies_takes_part_with_and_without_a_winner(monkeypatch):
    """Of four built-in policies, the rest left out to be quick; rucb needs a Condorcet winner."""
    monkeypatch.setattr("duels.experiments.race.BUILT_IN", ("verdict", "rucb", "dts", "random"))
    for problem, left_out in (("cyclic-4", set()), (CYCLE, {"rucb"})):
        found = duels.experiments.run_race(problem, horizon=300, runs=2, check=False)
        assert {row.policy for row in found.rows} == {"verdict", "rucb", "dts", "random"} - left_out
        assert set(found.left_out) == left_out


@pytest.mark.deep
def test_a_wrong_policy_is_told_from_a_slow_one(tmp_path):
    (tmp_path / "deaf.py").write_text(DEAF)
    found = duels.experiments.run_race("arxiv-6", ["random", str(tmp_path / "deaf.py")], horizon=1000, runs=2)
    said = {row.policy: row.conforms for row in found.rows}
    assert said["random"] == "yes"
    assert "deaf" in said["deaf"]
    assert said["deaf"] != "yes"


def test_who_is_not_suited_is_left_out_and_said():
    """The cycle has no Condorcet winner; arxiv-6 has one and no total order; arithmetic-8 has both."""
    matrices = {
        "cycle": duels.PreferenceMatrix(CYCLE),
        "arxiv-6": duels.load_problem("arxiv-6"),
        "arithmetic-8": duels.load_problem("arithmetic-8"),
    }
    suited = {
        name: {one for one in BUILT_IN if not unsuitable(duels.policies.load_policy(one), matrix)}
        for name, matrix in matrices.items()
    }
    ordered = {"btm", "interleaved_filter", "multisbm"}
    assert duels.load_problem("arxiv-6")[3, 5] == 0.5  # which scb would compare for ever
    assert suited["arithmetic-8"] == set(BUILT_IN)
    assert suited["arxiv-6"] == set(BUILT_IN) - ordered - {"scb"}
    assert suited["cycle"] == {"verdict", "dts", "dts_plus", "ccb", "scb", "ecw_rmed", "borda_ucb", "random"}
    assert unsuitable(duels.policies.load_policy("btm"), matrices["cycle"]) == "needs a Condorcet winner"
    assert unsuitable(duels.policies.load_policy("btm"), matrices["arxiv-6"]) == "needs a total order"


def test_every_policy_says_what_it_assumes():
    for name in BUILT_IN:
        said = getattr(duels.policies.load_policy(name).module, "ASSUMES", "no ASSUMES")
        assert said in ("nothing", "condorcet", "total order", "no even pair"), f"{name}: {said}"


def test_bad_arguments():
    with pytest.raises(InvalidInput, match="no policies to race"):
        duels.experiments.run_race("arxiv-6", [])
    with pytest.raises(UnknownName, match="Did you mean 'rucb'"):
        duels.experiments.run_race("arxiv-6", ["rucd"])
    with pytest.raises(UnknownName, match="notion of regret"):
        duels.experiments.run_race("arxiv-6", ["random"], regret="x", horizon=10, runs=1)


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    from typer.testing import CliRunner

    from duels.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "cycle.csv").write_text("\n".join(",".join(map(str, row)) for row in CYCLE))
    command = ["race", "cycle.csv", "-p", "random,rucb", "--horizon", "1e3", "--runs", "2", "--no-check", "-q"]
    done = CliRunner().invoke(app, [*command, "--out", "race.png", "-f", "json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["policy"] for row in rows} == {"random", "rucb"}
    assert "copeland regret at step 1,000, mean of 2 runs" in done.stderr
    assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")


def test_a_bad_file_name_is_refused_before_the_race(tmp_path, monkeypatch):
    from duels.experiments import race as module

    monkeypatch.setattr(module, "run_race", lambda *problem, **options: pytest.fail("the race was run"))
    done = duels_command("race", "cyclic-4", "--out", "race.xyz", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write a figure as 'race.xyz': expected a name ending in .png" in done.stderr
