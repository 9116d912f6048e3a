"""Simulation: regret from exact counts, determinism in every respect, late horizons, Ctrl-C, bad input."""

import contextlib
import math
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import duels
from duels.engine import loop
from duels.errors import ConformanceError, InvalidInput, NoCondorcetWinner, PolicyError
from duels.results import SCHEMA
from duels.simulation import Simulation, checkpoint_times
from duels.testing import check_policy

FAST = ["rucb", "savage", "btm:gamma=0.3", "interleaved_filter", "random"]


def test_the_frame():
    results = duels.simulate("arxiv-6", "rucb", horizon=1000, runs=3)
    assert dict(results.frame.schema) == SCHEMA
    assert results.frame["problem"].unique().to_list() == ["arxiv-6"]
    assert results.frame["policy"].unique().to_list() == ["rucb"]
    assert results.frame["arms"].unique().to_list() == [6]
    assert results.frame["run"].unique().sort().to_list() == [0, 1, 2]
    assert results.frame["t"].max() == 1000
    assert results.pairs is None
    assert results.intervals is None


@pytest.mark.parametrize("spec", FAST)
def test_regret_is_the_sum_over_steps(spec):
    """Against a step-by-step sum over the interpreted policy's choices: (Δ_i + Δ_j)/2, and the smaller one."""
    matrix, horizon, seed = duels.load_problem("random-condorcet:arms=5,gap=0.2,seed=4"), 800, 3
    chosen = duels.policies.load_policy(spec)
    play, state, tally = loop.bind(chosen, compiled=False), chosen.start(5, horizon), loop.new_tally(5)
    coin, luck = loop.streams(seed, 0)
    regret = weak = different = 0.0
    for t in range(1, horizon + 1):
        before = tally.wins.copy()
        play(state, chosen.params, matrix.array, tally, t, t, 1, 1, coin, luck, np.random.default_rng(0))
        i, j = np.argwhere(tally.wins != before)[0]
        regret += (matrix.gaps[i] + matrix.gaps[j]) / 2
        weak += min(matrix.gaps[i], matrix.gaps[j])
        different += i != j
    last = duels.simulate(matrix, spec, horizon=horizon, seed=seed).frame.tail(1).to_dicts()[0]
    assert last["regret"] == pytest.approx(regret, rel=1e-12)
    assert last["weak_regret"] == pytest.approx(weak, rel=1e-12)
    assert last["duels"] == different
    assert last["simple_regret"] == matrix.gaps[last["recommended"]]
    assert last["correct"] == (last["recommended"] == matrix.condorcet_winner)


@pytest.mark.parametrize("spec", ["random", "rucb"])
def test_checkpoints_of_many_arms_are_cheap(spec):
    """At 2,000 arms a checkpoint that read all pairs took 40 ms; from counts of arms it takes less than a tenth."""
    matrix = duels.load_problem("random-condorcet:arms=2000")
    simulation = Simulation(matrix, duels.policies.load_policy(spec), 1_000, checkpoints=range(1, 101))
    table, times = simulation.table(range(1)), []
    for checkpoints in (simulation.times, [1_000]):
        simulation.times = table.times = checkpoints
        begun = time.process_time()
        simulation.play(0, table, threading.Event(), lambda share: None)
        times.append(time.process_time() - begun)
    assert (times[0] - times[1]) / 100 < 0.005


@pytest.mark.parametrize("spec", FAST)
def test_determinism(spec):
    """Threads, the number of runs and the checkpoints change nothing that they do not name."""
    matrix = duels.load_problem("random-condorcet:arms=6,gap=0.2,seed=1")
    base = duels.simulate(matrix, spec, horizon=5000, runs=10, seed=7, jobs=1).frame
    assert_frame_equal(base, duels.simulate(matrix, spec, horizon=5000, runs=10, seed=7, jobs=4).frame)
    fewer = duels.simulate(matrix, spec, horizon=5000, runs=4, seed=7).frame
    assert_frame_equal(base.filter(pl.col("run") < 4), fewer)
    few = duels.simulate(matrix, spec, horizon=5000, runs=10, seed=7, checkpoints=[100, 5000]).frame
    assert_frame_equal(base.filter(pl.col("t").is_in([100, 5000])), few)
    other = duels.simulate(matrix, spec, horizon=5000, runs=10, seed=8).frame
    assert not base["regret"].equals(other["regret"])
    interpreted = duels.simulate(matrix, spec, horizon=300, runs=2, seed=7, compiled=False).frame
    assert_frame_equal(interpreted, duels.simulate(matrix, spec, horizon=300, runs=2, seed=7).frame)


def test_explored_is_null_until_one_arm_is_left():
    frame = duels.simulate("bradley-terry:arms=3,spread=3", "savage", horizon=3000, runs=5).frame
    for _, run in frame.group_by("run"):
        times = run["explored"].drop_nulls().unique().to_list()
        assert len(times) == 1
        assert (run["explored"].is_null() == (run["t"] < times[0])).all()
        done = run.filter(pl.col("t") >= times[0])["regret"]
        assert done.max() - done.min() < 1e-9  # the winner duels itself: nothing is regretted any more
    assert duels.simulate("arxiv-6", "rucb", horizon=100).frame["explored"].is_null().all()


def test_horizons_up_to_1e15():
    started = time.perf_counter()
    frame = duels.simulate("cyclic-4", "rucb", horizon=10**15, runs=4).frame
    assert time.perf_counter() - started < 60  # stepping would take a year
    last = frame.filter(pl.col("t") == 10**15)
    assert last["correct"].all()
    assert (last["duels"] < 10**6).all()
    # Regret grows like ln t: the last decade adds about as much as the one before, not ten times as much.
    mean = frame.group_by("t").agg(pl.col("regret").mean()).sort("t")
    at = dict(mean.iter_rows())
    added = [at[10**k] - at[10 ** (k - 1)] for k in (13, 14, 15)]
    assert max(added) < 2.5 * min(added)


def test_rucb_learns_and_random_does_not():
    rucb, random = (
        duels.simulate("arxiv-6", spec, horizon=100_000, runs=20).final().to_dicts()[0] for spec in ("rucb", "random")
    )
    assert rucb["regret"] < random["regret"] / 5
    assert rucb["accuracy"] == 1
    # A random pair of different arms costs the mean gap of an arm, 0.06: exact in expectation.
    mean_gap = duels.load_problem("arxiv-6").gaps.mean()
    assert random["regret"] == pytest.approx(100_000 * mean_gap, rel=0.01)


def test_record_pairs():
    results = duels.simulate("cyclic-4", "rucb", horizon=2000, runs=2, checkpoints=[10, 2000], record=["pairs"])
    pairs = results.pairs
    assert len(pairs) == 2 * 2 * 10
    played = pairs.group_by("run", "t").agg(pl.col("duels").sum()).sort("run", "t")
    assert played["duels"].to_list() == [10, 2000, 10, 2000]  # every step, self-duels included
    different = pairs.filter((pl.col("first") != pl.col("second")) & (pl.col("t") == 2000))
    counted = different.group_by("run").agg(pl.col("duels").sum()).sort("run")["duels"].to_list()
    assert counted == results.frame.filter(pl.col("t") == 2000)["duels"].to_list()
    assert (different["wins"] <= different["duels"]).all()
    assert pairs.filter(pl.col("first") == pl.col("second"))["wins"].is_null().all()


def test_record_intervals():
    results = duels.simulate(
        "cyclic-4", "rucb", horizon=500, checkpoints=[1, 500], record=[(0, 2), ("2", "0"), "pairs"]
    )
    there, back = (results.intervals.filter(pl.col("first") == arm) for arm in (0, 2))
    assert there["t"].to_list() == [1, 500]
    assert there["lower"].to_list() == pytest.approx((1 - back["upper"]).to_list())
    n, wins = there["duels"][1], there["wins"][1]
    assert there["upper"][1] == pytest.approx(wins / n + math.sqrt(0.51 * math.log(500) / n))
    assert (there["lower"][0], there["upper"][0]) == (-1.0, 2.0) or there["duels"][0] == 1
    pair = results.pairs.filter((pl.col("first") == 0) & (pl.col("second") == 2))
    assert pair["duels"].to_list() == there["duels"].to_list()
    assert pair["wins"].to_list() == there["wins"].to_list()


def test_default_checkpoints_are_log_spaced_and_end_at_the_horizon():
    assert checkpoint_times(None, 1) == [1]
    assert checkpoint_times(None, 7) == [1, 2, 3, 4, 5, 6, 7]
    times = checkpoint_times(None, 4_500_000)
    assert times[-1] == 4_500_000
    assert {1, 10, 100, 1000, 10**6} <= set(times)
    assert len(times) < 70
    assert checkpoint_times([5, 3, 5], 10) == [3, 5, 10]


def test_provenance():
    results = duels.simulate("arxiv-6", "rucb", horizon=50, runs=2, seed=9, alpha=0.7)
    said = results.provenance
    assert said["duels"] == duels.__version__
    arxiv = duels.load_problem("arxiv-6")
    assert said["policies"]["rucb:alpha=0.7"]["parameters"]["arxiv-6"] == {
        "alpha": 0.7,
        "variant": "seed",
        "unplayed": 2.0,
    }
    assert said["problems"] == {
        "arxiv-6": {"matrix": arxiv.digest, "arms": 6, "regret": "condorcet", "names": list(arxiv.names)}
    }
    assert (said["seed"], said["runs"], said["horizons"]) == (9, 2, [50])


@pytest.mark.parametrize("arms", [50, 200])
def test_memory_does_not_grow_with_the_horizon(arms):
    matrix = duels.load_problem(f"random-condorcet:arms={arms}")
    duels.simulate(matrix, "random", horizon=10, jobs=1)
    peaks = []
    for horizon in (1000, 1_000_000):
        tracemalloc.start()
        duels.simulate(matrix, "random", horizon=horizon, runs=4, jobs=1, checkpoints=[])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 200_000
    assert max(peaks) < 20 * 8 * arms**2 + 2_000_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon is 0: expected from 1 to 1e15"),
        ({"horizon": -5}, "horizon is -5"),
        ({"horizon": 2.5}, "horizon is 2.5: expected a whole number"),
        ({"horizon": math.nan}, "horizon is nan: expected a whole number"),
        ({"horizon": math.inf}, "horizon is inf: expected a whole number"),
        ({"horizon": None}, "horizon is None: expected a whole number"),
        ({"horizon": "many"}, "horizon is 'many': expected a whole number"),
        ({"horizon": 10**16}, "expected from 1 to 1e15"),
        ({"runs": -1}, "runs is -1: expected at least 1"),
        ({"runs": 0}, "runs is 0: expected at least 1"),
        ({"runs": True}, "runs is True: expected a whole number"),
        ({"seed": -1}, "seed is -1: expected at least 0"),
        ({"jobs": 0}, "jobs is 0: expected at least 1"),
        ({"checkpoints": [0]}, "a checkpoint is 0: expected from 1 to"),
        ({"checkpoints": [200]}, "a checkpoint is 200: expected from 1 to 100"),
        ({"checkpoints": 10}, "checkpoints is 10: expected a list of times"),
        ({"record": "all"}, "cannot record 'all'"),
        ({"run": 3}, "unknown parameter of rucb 'run'. Did you mean 'runs'?"),
        ({"alpha": True}, "alpha of rucb is True: expected a number"),
        ({"policy": ["rucb", "savage"]}, "is not a policy: expected one name such as 'rucb'"),
        ({"policy": "rucb,savage"}, "'rucb,savage' is not one policy: name them one by one"),
        ({"policy": "RUCB"}, "Did you mean 'rucb'?"),
        ({"record": ["everything"]}, "cannot record 'everything': expected 'pairs' or a pair of arms"),
        ({"record": [(0, 9)]}, "arm 9 does not exist"),
        ({"policy": "random", "record": [(0, 1)]}, "policy random has no confidence intervals"),
        ({"policy": "rucd"}, "Did you mean 'rucb'?"),
        ({"alpa": 1}, "unknown parameter of rucb 'alpa'. Did you mean 'alpha'?"),
        ({"alpha": "big"}, "alpha of rucb is 'big': expected a number"),
        ({"problem": "arxiv-7"}, "unknown problem 'arxiv-7'. Did you mean 'arxiv-6'?"),
        ({"problem": "nowhere.csv"}, "nowhere.csv cannot be read"),
        ({"problem": [[0.5, math.nan], [0.5, 0.5]]}, "P[0, 1] = nan, expected a finite probability"),
        ({"problem": [[0.5, 0.6], [0.5, 0.5]]}, "P[0, 1] + P[1, 0] = 0.6 + 0.5 = 1.1, expected 1"),
        ({"problem": [[0.5, 0.6, 0.1], [0.4, 0.5, 0.1]]}, "shape (2, 3), expected square"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"problem": "arxiv-6", "policy": "rucb", "horizon": 100} | changes
    with pytest.raises(InvalidInput) as caught:
        duels.simulate(arguments.pop("problem"), arguments.pop("policy"), **arguments)
    assert message in str(caught.value)


def test_no_condorcet_winner():
    cycle = [[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]]
    with pytest.raises(
        NoCondorcetWinner, match="Copeland winners 0, 1, 2, a Borda winner '0' and a Smith set of 3 arms"
    ):
        duels.simulate(cycle, "rucb", horizon=10, regret="condorcet")


def test_whole_floats_are_whole_numbers():
    assert duels.simulate("arxiv-6", "rucb", horizon=1e3).frame["t"].max() == 1000


SLOW = """
import duels, sys
matrix = duels.load_problem("bradley-terry:arms=64")
duels.simulate(matrix, "random", horizon=10)
print("ready", flush=True)
duels.simulate(matrix, "random", horizon=10**14, runs=4)
"""
IDLE = SLOW.rpartition("duels.simulate")[0] + "import time; time.sleep(1000)"  # ends as soon as Python can


def seconds_to_stop(code):
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ready\n"
    time.sleep(0.5)
    assert running.poll() is None
    sent = time.perf_counter()
    running.send_signal(signal.SIGINT)
    try:
        _, said = running.communicate(timeout=40)
    finally:
        running.kill()
    assert running.returncode != 0
    assert "KeyboardInterrupt" in said
    return time.perf_counter() - sent


def stops_quickly():
    """Within a second; on a machine so busy that even an idle process takes long to end, within three times as long."""
    seconds = seconds_to_stop(SLOW)
    return seconds < 1.0 or seconds < 3 * seconds_to_stop(IDLE)


def test_ctrl_c_ends_it_within_a_second():
    """The best of three: the machine may be busy, but a run that does not listen is never quick."""
    assert any(stops_quickly() for _ in range(3))


def test_an_error_in_a_run_ends_all_runs():
    from types import SimpleNamespace

    from duels.policies import random

    def select(state, params, t, rng):
        if t > 50:
            raise ValueError("broken on purpose")
        return 0, 1

    mine = SimpleNamespace(
        **{name: getattr(random, name) for name in ("Params", "init", "update", "recommend")}, select=select
    )
    for compiled in (True, False):
        with pytest.raises(PolicyError, match=r"failed in run \d+: ValueError: broken on purpose") as caught:
            duels.simulate("arxiv-6", mine, horizon=100, runs=50, compiled=compiled)
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("compiled", [True, False])
def test_arms_that_do_not_exist_are_refused(compiled):
    """Compiled code does not check its indices, so the loop does."""
    from types import SimpleNamespace

    from duels.policies import random

    def too_high(state, params, t, rng):
        return 0, len(state.wins)

    def negative(state, params, t, rng):
        return -1, 0

    parts = {name: getattr(random, name) for name in ("Params", "init", "update", "recommend", "select")}
    for select in (too_high, negative):
        with pytest.raises(PolicyError, match="select chose an arm that does not exist"):
            duels.simulate("arxiv-6", SimpleNamespace(**parts | {"select": select}), horizon=9, compiled=compiled)
    mine = SimpleNamespace(**parts | {"recommend": lambda state, rng: 6})
    with pytest.raises(PolicyError, match="recommends arm 6 of 6"):
        duels.simulate("arxiv-6", mine, horizon=9, compiled=compiled)


BRIEF = """
import duels
duels.simulate("arxiv-6", "random", horizon=20_000_000, runs=2)
"""


def test_progress_is_for_terminals():
    piped = subprocess.run([sys.executable, "-c", BRIEF], capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("", "")
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", BRIEF], stdout=theirs, stderr=theirs):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that its program has ended
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    text = shown.decode()
    assert "random on arxiv-6" in text
    assert "%" in text
    assert "0:00:0" in text  # the time left


def test_recommendation_at_a_checkpoint_is_independent_of_the_horizon():
    kw = {"runs": 200, "checkpoints": [2], "compiled": False}
    a, b = (
        duels.simulate("arxiv-6", "random", horizon=h, **kw).frame.filter(pl.col("t") == 2)["recommended"]
        for h in (2, 3)
    )
    assert a.equals(b)


def test_interval_of_a_self_pair_counts_each_duel_once():
    r = duels.simulate("cyclic-4", "rucb", horizon=2000, checkpoints=[], record=[(0, 0), "pairs"], compiled=False)
    own = r.pairs.filter((pl.col("first") == 0) & (pl.col("second") == 0))["duels"][0]
    assert own > 0
    assert r.intervals["duels"][0] == own


@pytest.mark.parametrize("wrong", [None, 3, 0.5, {"a": 1}, object()], ids=lambda wrong: type(wrong).__name__)
def test_what_is_not_a_problem_is_said_to_be_none(wrong):
    with pytest.raises(InvalidInput, match=r"is not a problem: expected a name such as 'arxiv-6', a matrix file or a"):
        duels.simulate(wrong, "rucb", horizon=10)


OWN = """
from typing import NamedTuple
import numpy as np

class Params(NamedTuple):
    c: float = 1.0

class State(NamedTuple):
    wins: np.ndarray

def init(arms, horizon, params):
    return State(np.zeros((arms, arms)))

def select(state, params, t, rng):
    i = 0
    {line}
    return i, 1

def update(state, params, t, i, j, outcome):
    state.wins[i, j] += outcome

def recommend(state, rng):
    return helper(state, 1)

def helper(state, value):
    {deep}
    return 0
"""
SELECT, HELPER = 16, 26  # the lines


@pytest.mark.parametrize(
    ("line", "deep", "place", "why"),
    [
        ("i = nonsense(t)", "pass", (SELECT, "select"), "name 'nonsense' is not defined"),
        ("pass", "value = open('x').read()", (HELPER, "helper"), "open"),
        *(
            pytest.param(*case, marks=pytest.mark.deep)
            for case in [
                (
                    "i = state.wins + 'a'",
                    "pass",
                    (SELECT, "select"),
                    r"add\(array\(float64, 2d, C\), Literal\[str\]\(a\)\)",
                ),
                ("i = state.losses[0]", "pass", (SELECT, "select"), "Unknown attribute 'losses'"),
                ("state.wins = state.wins + 1", "pass", (SELECT, "select"), "wins = array"),
                ("pass", "value = {0: 'a'}[value] + 1", (HELPER, "helper"), "No implementation of function .*add"),
            ]
        ),
    ],
)
def test_what_numba_refuses_is_named_by_file_line_and_kernel(tmp_path, line, deep, place, why):
    file = tmp_path / "mine.py"
    file.write_text(OWN.format(line=line, deep=deep))
    number, kernel = place
    said = rf"'mine' cannot be compiled by numba: .*mine\.py, line {number}, in {kernel}: .*{why}.*compiled=False"
    with pytest.raises(PolicyError, match=said) as caught:
        duels.simulate("cyclic-4", str(file), horizon=10)
    assert isinstance(caught.value, InvalidInput)
    assert str(file) in str(caught.value)


def test_what_numba_cannot_read_is_named_by_its_function(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN.format(line="pass", deep="with open('x') as opened: pass"))
    with pytest.raises(PolicyError, match=r"mine\.py, line 25, in helper: .*with.* is not supported"):
        duels.simulate("cyclic-4", str(file), horizon=10)


def test_a_choice_that_is_no_pair_is_named(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN.format(line="return 3", deep="pass"))
    with pytest.raises(PolicyError, match=rf"mine\.py, line {SELECT - 2}, in select: it returns 3, expected two arms"):
        duels.simulate("cyclic-4", str(file), horizon=10)
    with pytest.raises(PolicyError, match=r"mine failed in run 0: TypeError: .*mine\.py\)"):
        duels.simulate("cyclic-4", str(file), horizon=10, compiled=False)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("line", ["i = 0 * int(1.0 / state.wins[0, 0])", "i = 0 * (t // (t - 1))"])
def test_a_division_by_zero_is_an_error_in_a_policy_of_ones_own(tmp_path, compiled, line):
    file = tmp_path / "mine.py"
    file.write_text(OWN.format(line=line, deep="pass"))
    with pytest.raises(PolicyError, match=r"mine failed in run 0: .* \(.*mine\.py") as caught:
        duels.simulate("cyclic-4", str(file), horizon=10, compiled=compiled)
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert f"line {SELECT}, in select" in str(caught.value)
    with pytest.raises(ConformanceError, match=rf"check_choices: .*zero.*mine\.py, line {SELECT}, in select"):
        check_policy(str(file))
