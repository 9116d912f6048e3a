"""The benchmarks run: what they use of the package is there, as they use it. Their figures are not looked at."""

import importlib
import json
import sys
from pathlib import Path

import pytest

import duels

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """Import a benchmark, as its own program would."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    names = {path.stem for path in BENCHMARKS.glob("*.py")}
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_it_can_be_imported(benchmark, name):
    assert benchmark(name).__doc__


def test_the_plan_of_a_problem(benchmark):
    verdict = benchmark("verdict")
    plan = verdict.planned(verdict.Problem(duels.load_problem("cyclic-4"), ties=0.2), at_once=10)
    assert (plan.confidence, plan.ties, plan.parallel, plan.seed) == (0.95, 0.2, 10, 0)


@pytest.mark.deep
def test_verdicts_on_one_small_problem(benchmark, monkeypatch):
    verdict = benchmark("verdict")
    few = verdict.Problem(duels.PreferenceMatrix(verdict.hard(3, 0.3)), studies=4)
    monkeypatch.setattr(verdict, "problems", lambda: [("hard-3", few)])
    found = {said: value for said, value, _, _ in verdict.rows()}
    assert found["hard-3: oracle, mean"] < found["hard-3: RUCB, mean"]
    assert found["wrong verdicts of the default, of 4 studies"] == 0
    spent, kind = verdict.new_study(few, at_once=10)(0)
    assert spent > 0
    assert kind == 0


def test_a_long_study_grows(benchmark, tmp_path):
    study = benchmark("study")
    grown = duels.create_study(study.ARMS, "grown", f"sqlite:///{tmp_path}/duels.db")
    study.grow(grown, 30)
    assert len(grown.events()) == 61
    assert grown.tally().wins.sum() == 30


def test_the_table_of_regret_and_time(benchmark, monkeypatch, tmp_path):
    """One row per policy, with a dash where a policy does not suit the problem; the same as JSON."""
    policies = benchmark("policies")
    monkeypatch.setattr(policies, "STEPS", 300)
    monkeypatch.setattr(policies, "RUNS", {4: 2, 5: 2})
    monkeypatch.setattr(policies, "OUT", tmp_path)
    monkeypatch.setattr(policies, "FAMILIES", ("linear:arms={}", "cycle-with-winner:arms={}"))
    head, rule, *rows = policies.table(["rucb", "btm"])
    assert head.count("|") == rule.count("|") == rows[0].count("|") == 8
    assert head.startswith("| policy | K = 4, linear | K = 4, cycle-with-winner | K = 5, linear |")
    found = json.loads((tmp_path / "policies-table.json").read_text())
    regret, error, accuracy, microseconds = found["rucb"]["K = 5, linear"]
    last = duels.simulate("linear:arms=5", "rucb", horizon=300, runs=2).final().row(0, named=True)
    assert (regret, error, accuracy) == (last["regret"], last["standard_error"], last["accuracy"])
    assert microseconds > 0
    assert found["btm"]["K = 5, cycle-with-winner"] is None
    assert rows[1].split(" | ")[4] == "–"
