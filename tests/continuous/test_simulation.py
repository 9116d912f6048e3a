"""Simulation on continuous spaces: its numbers, its seeds, resuming, and the bars of the default policy."""

import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from scipy import optimize

import duels
from duels.continuous import Situation, find_function, list_functions, load_policy, simulation
from duels.continuous.policies import BUILT_IN, eubo
from duels.continuous.simulation import COLUMNS, make_world, play_run, simulate_continuous
from duels.errors import DuelsError, InvalidInput, UnknownName
from duels.results import SCHEMA, combine

MULTIMODAL = ("branin", "holder", "eggholder", "michalewicz", "hartmann3", "ackley", "hartmann6")
SHORT = {"duels": 6, "runs": 3, "initial": 4}


def parabola(setting):
    return -((setting["x"] - 0.7) ** 2)


@pytest.mark.parametrize("name", [*list_functions(), "ackley:d=2,bound=32.768", "rosenbrock:d=4"])
def test_the_maxima_of_functions(name):
    """No point of 20,000 exceeds the maximum, and climbs from the best of them, or from the optimum, reach it."""
    function = find_function(name)
    bounds = np.array([(one.low, one.high) for one in function.space.parameters.values()])
    rng = np.random.default_rng(0)
    points = bounds[:, 0] + rng.random((20_000, len(bounds))) * (bounds[:, 1] - bounds[:, 0])
    values = function.values(points)
    assert values.max() <= function.maximum + 1e-9
    known = {"ackley": 0.0, "rosenbrock": 1.0}.get(name.partition(":")[0])
    starts = points[np.argsort(-values)[:25]] if known is None else np.full((1, len(bounds)), known)
    climbed = [
        optimize.minimize(lambda x: -function.values(x[None, :])[0], start, method="L-BFGS-B", bounds=bounds).fun
        for start in starts
    ]
    assert -min(climbed) == pytest.approx(function.maximum, abs=1e-5 * max(1, abs(function.maximum)))


def test_published_maxima():
    """As the literature has them; the opposite sign where it minimizes."""
    published = {"branin": -0.397887, "eggholder": 959.6407, "holder": 19.2085, "michalewicz": 1.8013}
    published |= {"michalewicz:d=5": 4.687658, "hartmann3": 3.86278, "hartmann6": 3.32237, "camel": 1.0316}
    for name, value in published.items():
        assert find_function(name).maximum == pytest.approx(value, abs=1e-4)
    branin = find_function("branin")
    three = np.array([[-math.pi, 12.275], [math.pi, 2.275], [9.42478, 2.475]])
    assert branin.values(three) == pytest.approx([branin.maximum] * 3, abs=1e-5)


def test_the_table():
    results = simulate_continuous("branin", "eubo", checkpoints=[2, 5], jobs=2, seed=1, **SHORT)
    frame = results.frame
    assert dict(frame.schema) == COLUMNS
    assert list(COLUMNS)[: len(SCHEMA)] == list(SCHEMA)
    assert frame.select("run", "t").rows() == [(run, t) for run in range(3) for t in (2, 5, 6)]
    assert frame["problem"].unique().to_list() == ["branin"]
    assert frame["policy"].unique().to_list() == ["eubo:initial=4"]
    assert frame["duels"].to_list() == frame["t"].to_list()
    assert frame["arms"].null_count() == len(frame)
    assert (frame["regret"] >= frame["weak_regret"]).all()
    assert results.notion == "utility"
    world = make_world("branin")
    for row in frame.iter_rows(named=True):
        assert world.shortfall(json.loads(row["recommendation"])) == pytest.approx(row["simple_regret"])
    assert results.final()["accuracy"].to_list() == [None]
    assert "branin" in results._repr_html_()


def test_regrets_by_hand():
    """Replayed: the mean and the smaller of both shortfalls in standard deviations, summed over the duels."""
    world = make_world(parabola, {"x": (0.0, 1.0)}, maximum=0.0)
    x = (np.arange(200_000) + 0.5) / 200_000
    assert world.sd == pytest.approx((-((x - 0.7) ** 2)).std(), rel=0.01)
    results = simulate_continuous(parabola, "random", duels=5, space={"x": (0.0, 1.0)}, maximum=0.0, seed=4)
    chosen, played, regret, weak = load_policy("random"), [], 0.0, 0.0
    luck = np.random.default_rng(np.random.SeedSequence([4, 0]).spawn(2)[1])
    for t in range(5):
        left, right = chosen.ask(world.space, played, seed=(4, 0))
        short = [(one["x"] - 0.7) ** 2 / world.sd for one in (left, right)]
        chance = 1 / (1 + math.exp(-8 * (short[1] - short[0])))
        played.append((left, right, float(luck.random() < chance)))
        regret, weak = regret + sum(short) / 2, weak + min(short)
        row = results.frame.row(t, named=True)
        assert (row["regret"], row["weak_regret"]) == pytest.approx((regret, weak))


def test_a_simulation_asks_the_policy_alone(monkeypatch):
    """It never looks whether a preference was found, and asks no contrasts: those are for tuning studies."""
    asked, choose = [], eubo.choose
    monkeypatch.setattr(eubo, "choose", lambda *given: asked.append(len(given[0].history.outcome)) or choose(*given))
    monkeypatch.setattr(Situation, "is_found", property(lambda situation: pytest.fail("the evidence was looked at")))
    simulate_continuous("branin", "eubo:initial=4", duels=9, jobs=1, checkpoints=[])
    assert asked == [4, 5, 6, 7, 8]


def test_answers_have_the_chances_they_should():
    """10,000 answers; the bound is five standard errors: a false alarm once in 10⁶."""
    world = make_world("branin", steepness=3.0)
    luck = np.random.default_rng(0)
    won = sum(world.answer(0.2, 0.5, luck) for _ in range(10_000)) / 10_000
    chance = 1 / (1 + math.exp(-3 * 0.3))
    assert abs(won - chance) < 5 * math.sqrt(chance * (1 - chance) / 10_000)


def test_the_same_table_for_any_number_of_jobs(monkeypatch):
    """Also run by run: a run depends on the seed and its number only; in this process too."""
    monkeypatch.setattr(simulation, "FEW", 0)  # in processes
    two = simulate_continuous("camel", "gp_rucb", jobs=2, seed=2, **SHORT).frame
    one = simulate_continuous("camel", "gp_rucb", jobs=1, seed=2, **{**SHORT, "runs": 2}).frame
    assert two.filter(pl.col("run") < 2).equals(one)
    here = play_run(make_world("camel"), load_policy("gp_rucb:initial=4"), 6, 2, 1, range(1, 7))
    assert here.drop("recommendation").equals(one.filter(run=1).drop("recommendation"))
    other = simulate_continuous("camel", "gp_rucb", jobs=1, seed=3, **{**SHORT, "runs": 1}).frame
    assert not other["regret"].equals(one.filter(run=0)["regret"])


def test_resuming(tmp_path):
    """Runs that are kept are not played again, damaged ones are; the table is that of one sitting."""
    given = {"jobs": 1, "seed": 5, **SHORT}
    whole = simulate_continuous("camel", "random", **given)
    first = simulate_continuous("camel", "random", out=tmp_path / "a", **given)
    assert first.frame.equals(whole.frame)
    again = simulate_continuous("camel", "random", out=tmp_path / "a", **given)
    assert again.frame.equals(whole.frame)
    assert duels.load_results(tmp_path / "a").frame.equals(whole.frame)
    with pytest.raises(InvalidInput, match="was written by another experiment: its seed is 5, expected 6"):
        simulate_continuous("camel", "random", out=tmp_path / "a", **{**given, "seed": 6})

    calls = []

    def interrupted(setting):
        calls.append(setting)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return parabola(setting)

    own = {"space": {"x": (0.0, 1.0)}, "maximum": 0.0, "out": tmp_path / "b", **given}
    stop = 1024 + 2 * 6 + 6 + 5  # in the second run: each has 12 settings of duels and 6 recommendations
    with pytest.raises(KeyboardInterrupt) as error:
        simulate_continuous(interrupted, "random", **own)
    assert "1 of 3 runs are kept" in error.value.__notes__[0]
    calls.clear()
    stop = -1
    resumed = simulate_continuous(interrupted, "random", **own)
    assert len(calls) == 1024 + 2 * 18
    fresh = simulate_continuous(interrupted, "random", **{**own, "out": None})
    assert resumed.frame.equals(fresh.frame)


def test_a_function_of_your_own():
    """With a category and whole numbers; its maximum is found: 0 at n = 12, style b."""

    def utility(setting):
        return -abs(setting["n"] - 12) / 10 - (setting["style"] != "b")

    space = {"n": (1, 40, "int"), "style": ["a", "b", "c"]}
    results = simulate_continuous(utility, "eubo", space=space, duels=25, runs=2, seed=0, checkpoints=[])
    assert results.provenance["problems"]["utility"]["maximum"] == 0.0
    best = [json.loads(text) for text in results.frame["recommendation"]]
    assert [one["style"] for one in best] == ["b", "b"]
    assert all(abs(one["n"] - 12) <= 6 for one in best)


def test_simulate_takes_functions_as_it_takes_problems():
    results = duels.simulate("branin", "random", horizon=5, runs=2)
    assert results.frame.equals(simulate_continuous("branin", "random", duels=5, runs=2).frame)
    for problem, given, word in (("branin", {"record": "pairs"}, "record"), ("cyclic-4", {"space": {}}, "space")):
        with pytest.raises(InvalidInput, match=f"{word} is for "):
            duels.simulate(problem, "random", horizon=5, **given)


def test_wrong_arguments():
    simulate = simulate_continuous
    with pytest.raises(UnknownName, match="Did you mean 'branin'"):
        simulate("brannin")
    with pytest.raises(UnknownName, match="Did you mean 'beta'"):
        simulate("branin", "gp_rucb", bta=2)
    for message, given in {
        "duels is 0": {"duels": 0},
        "runs is 0": {"runs": 0},
        "steepness is 0": {"steepness": 0},
        "a checkpoint is 9": {"duels": 5, "checkpoints": [9]},
        "has its own space": {"space": {"x": (0.0, 1.0)}},
        "checkpoints is 'all'": {"checkpoints": "all"},
    }.items():
        with pytest.raises(InvalidInput, match=message):
            simulate("branin", **given)
    with pytest.raises(InvalidInput, match="needs a space"):
        simulate(parabola)
    with pytest.raises(InvalidInput, match="is not a function"):
        simulate(3, space={"x": (0.0, 1.0)})
    with pytest.raises(InvalidInput, match="same value everywhere"):
        simulate(lambda setting: 1.0, space={"x": (0.0, 1.0)})
    with pytest.raises(InvalidInput, match="expected a finite number"):
        simulate(lambda setting: math.nan, space={"x": (0.0, 1.0)})
    with pytest.raises(DuelsError, match=r"failed at .*KeyError: 'y'"):
        simulate(lambda setting: setting["y"], space={"x": (0.0, 1.0)})
    with pytest.raises(InvalidInput, match="maximum is -1"):
        simulate(parabola, space={"x": (0.0, 1.0)}, maximum=-1)
    with pytest.raises(InvalidInput, match="d of ackley is 30"):
        simulate("ackley:d=30")


def test_ctrl_c_ends_the_workers(tmp_path):
    """The process ends at once and leaves none of its own behind."""
    script = "import duels; duels.simulate('branin', horizon=5000, runs=4, jobs=2)"
    running = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, start_new_session=True)
    children = f"/proc/{running.pid}/task/{running.pid}/children"
    deadline = time.monotonic() + 60
    workers = []
    while len(workers) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        workers = [pid for task in _tasks(running.pid) for pid in task]
    assert len(workers) == 2, children
    running.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in running.communicate(timeout=60)[1]
    assert not [pid for pid in workers if _is_running(pid)]


def _tasks(pid):
    from pathlib import Path

    return [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]


def _is_running(pid):
    from pathlib import Path

    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.deep
def test_figures_of_continuous_arms(tmp_path):
    parts = [simulate_continuous("camel", name, **SHORT) for name in ("random", "eubo")]
    results = combine(parts)
    chart = duels.figures.regret(results).to_dict()
    assert "K = " not in json.dumps(chart)
    assert "Cumulative regret (utility)" in json.dumps(chart)
    assert len(duels.figures.regret_points(results)) == 12
    with pytest.raises(InvalidInput, match="no arms"):
        duels.figures.accuracy(results)


def test_the_default_finds_branin_s_maximum():
    """Five runs of 50 duels: the median simple regret is at most 0.08, and random pays at least twice our regret.

    The median of 200 runs was 0.03, and mean regrets 13.2 against 52.7. Of these runs 10 % were above 0.08, so with
    other seeds the first is a false alarm once in 120, and the second less than once in 10⁴.
    """
    ours, chance = (_last("branin", name, runs=5) for name in ("eubo", "random"))
    assert ours["simple_regret"].median() <= 0.08
    assert chance["regret"].mean() >= 2 * ours["regret"].mean()


def _last(function, name, runs, seed=11):
    found = simulate_continuous(function, name, duels=50, runs=runs, seed=seed, checkpoints=[])
    return found.frame


@pytest.mark.deep
@pytest.mark.parametrize(
    ("function", "bar", "runs", "of_random"), [("branin", 0.08, 200, 1000), ("ackley", 0.8, 20, 60)]
)
def test_the_bars_of_the_default(function, bar, runs, of_random):
    """The median of 20 runs, and random's median, which is at least twice the default's.

    On Branin random's is 2.6 times the default's, and medians of 20 runs vary so much that they miss twice in one case
    of four. Hence more runs. With other seeds, the bar gives a false alarm less than once in 10⁴ on Branin and once in
    3,000 on Ackley, and the comparison once in 5,000 and less than once in 10⁴: by resampling the runs of this test,
    and of 60 of the default on Ackley.
    """
    ours = _last(function, "eubo", runs)["simple_regret"]
    assert ours.head(20).median() <= bar
    assert _last(function, "random", of_random)["simple_regret"].median() >= 2 * ours.median()


def slope(results):
    """The exponent of regret's growth over the second half, by least squares of logarithms, and its standard error.

    Cumulative regret that grows as t^b has the slope b. Each run gives one; the mean over runs is compared with 0.9.
    """
    found = []
    for _, run in results.frame.group_by("run"):
        half = run.filter(pl.col("t") >= pl.col("t").max() // 2)
        found.append(np.polyfit(np.log(half["t"]), np.log(half["regret"]), 1)[0])
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(len(found)))


@pytest.mark.deep
@pytest.mark.parametrize("function", ["branin", "hartmann3"])
def test_gp_rucb_s_regret_is_sublinear(function):
    """The slope is below 0.9 by three standard errors; that of random, which is linear, is not.

    With other seeds, the first is a false alarm once in 500 on Hartmann-3, where slopes are 0.60 with a standard
    deviation of 0.28, and less than once in 10⁶ on Branin; the second once in 180 (Student's t, 29 degrees of freedom).
    """
    given = {"duels": 120, "runs": 30, "seed": 12, "checkpoints": range(10, 121, 5)}
    mean, error = slope(simulate_continuous(function, "gp_rucb", **given))
    assert mean + 3 * error < 0.9
    mean, error = slope(simulate_continuous(function, "random", **given))
    assert mean - 3 * error < 1 < mean + 3 * error
    assert mean + 3 * error > 0.9


@pytest.mark.deep
@pytest.mark.parametrize("function", MULTIMODAL)
def test_dbgd_is_beaten(function):
    """By the default, in the regret of all duels: the difference of means is above two standard errors.

    In 20 runs it was 3.4 standard errors on Hartmann-3, 3.6 on Branin, and at least 4.8 on Hölder's table, Eggholder
    and Ackley. Of 40 it is about 4.8 on Hartmann-3: a false alarm, with other seeds, once in 400, and elsewhere less.
    The camel is left out: 40 runs do not tell the two apart there, see benchmarks/continuous.md.
    """
    ours, theirs = (
        simulate_continuous(function, name, duels=50, runs=40, seed=13, checkpoints=[]).frame["regret"].to_numpy()
        for name in ("eubo", "dbgd")
    )
    assert theirs.mean() - ours.mean() > 2 * math.sqrt((theirs.var(ddof=1) + ours.var(ddof=1)) / 40)


@pytest.mark.deep
def test_every_policy_improves():
    """On Hartmann-3 every policy recommends better after 40 duels than after 6, in the median of ten runs.

    With other seeds, a false alarm once in 25, by resampling 20 runs: nearly always of random, which improves least.
    """
    for name in BUILT_IN:
        found = simulate_continuous("hartmann3", name, duels=40, runs=10, seed=14, checkpoints=[6]).frame
        assert found.filter(t=40)["simple_regret"].median() < found.filter(t=6)["simple_regret"].median(), name
