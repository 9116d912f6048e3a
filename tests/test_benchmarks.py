"""The benchmarks run: what they use of the package is there, as they use it. Their figures are not looked at."""

import importlib
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
    plan = verdict.planned(verdict.Problem(duels.problem("cyclic-4"), ties=0.2), at_once=10)
    assert (plan.confidence, plan.ties, plan.parallel, plan.seed) == (0.95, 0.2, 10, 0)


@pytest.mark.deep
def test_verdicts_on_one_small_problem(benchmark, monkeypatch):
    verdict = benchmark("verdict")
    few = verdict.Problem(duels.PreferenceMatrix(verdict.hard(3, 0.3)), studies=4)
    monkeypatch.setattr(verdict, "problems", lambda: [("hard-3", few)])
    found = {said: value for said, value, _, _ in verdict.rows()}
    assert found["hard-3: oracle, mean"] < found["hard-3: 0.1.0, mean"]
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
