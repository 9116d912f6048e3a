"""Experiments: the same table on one thread, on many, on a cluster, in shards, and after a kill."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import duels
from duels.errors import DuelsError, InvalidInput, NoCondorcetWinner, UnknownName
from duels.experiments import executors
from duels.experiments.executors import pieces as pieces_of
from duels.experiments.folder import Folder, folder_matrices

SMALL = {"policies": ["rucb", "savage", "btm:gamma=own"], "horizons": [1000, 3000], "runs": 40, "seed": 3}


@pytest.fixture(autouse=True)
def many_small_tasks(monkeypatch):
    """Work is split from 100,000 steps on, so that small experiments have as many tasks as large ones."""
    monkeypatch.setattr(executors, "WHOLE", 100_000)


@pytest.fixture(scope="module")
def problems():
    return {"six": "arxiv-6", "eight": duels.load_problem("arithmetic-8")}


@pytest.fixture(scope="module")
def undisturbed(problems):
    return duels.run_experiment(problems, **SMALL, jobs=1)


@pytest.fixture(scope="module")
def finished(problems, tmp_path_factory):
    """The folder of a finished experiment; no test may change it."""
    folder = tmp_path_factory.mktemp("finished")
    duels.run_experiment(problems, **SMALL, out=folder)
    return folder


def test_the_table_is_that_of_one_simulation_after_another(problems, undisturbed):
    planned = duels.experiments.plan_experiment(problems, **SMALL)
    parts = []
    for name, problem in problems.items():
        matrix = duels.PreferenceMatrix(*_array_and_names(problem), name)
        for label, horizons in (("rucb", [3000]), ("savage", [1000, 3000]), ("btm:gamma=own", [1000, 3000])):
            policy = label if label != "btm:gamma=own" else duels.policies.load_policy("btm", gamma=matrix.gamma)
            for horizon in horizons:
                times = planned.times if label == "rucb" else planned.horizons
                checkpoints = [t for t in times if t <= horizon]
                alone = duels.simulate(matrix, policy, horizon=horizon, runs=40, seed=3, checkpoints=checkpoints)
                parts.append(alone.frame.with_columns(policy=pl.lit(label)))
    assert undisturbed.frame.equals(pl.concat(parts))


def _array_and_names(problem):
    matrix = duels.load_problem(problem) if isinstance(problem, str) else problem
    return matrix.array, matrix.names


def test_policies_with_a_horizon_start_afresh_for_each_one(undisturbed):
    horizons = undisturbed.frame.group_by("policy").agg(pl.col("horizon").unique().sort())
    found = dict(horizons.iter_rows())
    assert found == {"rucb": [3000], "savage": [1000, 3000], "btm:gamma=own": [1000, 3000]}
    rucb = undisturbed.frame.filter(policy="rucb", problem="six", run=0)
    assert {1000, 3000} <= set(rucb["t"])  # at the same times, without starting again


def test_checkpoints_are_ten_a_decade_and_the_horizons():
    planned = duels.experiments.plan_experiment("arxiv-6", ["rucb", "savage"], [15, 100, 10])
    assert planned.horizons == (10, 15, 100)
    per_decade = [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100]
    assert planned.times == tuple(sorted([*per_decade, 15]))
    assert [task.times for task in planned.tasks] == [planned.times, (10,), (10, 15), (10, 15, 100)]
    alone = duels.experiments.plan_experiment("arxiv-6", ["rucb", "savage"], 100)
    assert [task.times for task in alone.tasks] == [tuple(per_decade)] * 2
    chosen = duels.experiments.plan_experiment("arxiv-6", ["rucb", "savage"], [10, 100], checkpoints=[7, 50])
    assert [task.times for task in chosen.tasks] == [(7, 10, 50, 100), (7, 10), (7, 10, 50, 100)]


def test_many_threads_and_shards_give_the_same_table(problems, undisturbed, tmp_path):
    assert duels.run_experiment(problems, **SMALL, jobs=3).frame.equals(undisturbed.frame)
    for shard in ("1/3", "2/3", "3/3"):
        duels.run_experiment(problems, **SMALL, jobs=1, shard=shard, out=tmp_path / shard[0])
    merged = duels.experiments.merge([tmp_path / "2", tmp_path / "3", tmp_path / "1"], tmp_path / "all")
    assert merged.frame.equals(undisturbed.frame)
    assert duels.load_results(tmp_path / "all").frame.equals(undisturbed.frame)


def test_shards_in_one_folder(problems, undisturbed, tmp_path):
    for shard in ("1/2", "2/2"):
        part = duels.run_experiment(problems, **SMALL, shard=shard, out=tmp_path)
        assert 0 < len(part.frame) < len(undisturbed.frame)
    assert duels.experiments.merge([tmp_path]).frame.equals(undisturbed.frame)
    assert duels.run_experiment(problems, **SMALL, out=tmp_path).frame.equals(undisturbed.frame)


def test_a_missing_shard_is_named(problems, tmp_path):
    duels.run_experiment(problems, **SMALL, shard="1/2", out=tmp_path)
    with pytest.raises(InvalidInput, match=r"holds an experiment that is not finished: .* `duels experiment merge`"):
        duels.load_results(tmp_path)
    with pytest.raises(DuelsError, match=r"of \d+ tasks are not finished \(shard 2/2\): run those"):
        duels.experiments.merge([tmp_path])
    for record in tmp_path.glob("parts/session-*.json"):
        record.unlink()
    with pytest.raises(DuelsError, match=r"of \d+ tasks are not finished \(numbers 1, 3, 5, "):
        duels.experiments.merge([tmp_path])
    assert not (tmp_path / "frame.parquet").exists()


def test_shards_of_different_experiments_are_not_merged(problems, tmp_path):
    duels.run_experiment(problems, **SMALL, shard="1/2", out=tmp_path / "a")
    duels.run_experiment(problems, **SMALL | {"seed": 4}, shard="2/2", out=tmp_path / "b")
    with pytest.raises(
        InvalidInput, match=r"b' was written by another experiment: its seed is 4, expected 3\. Leave it out"
    ):
        duels.experiments.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 4}, "its seed is 3, expected 4"),
        ({"runs": 41}, "its runs are 40, expected 41"),
        ({"horizons": [1000, 4000]}, r"its horizons are \[1000, 3000\], expected \[1000, 4000\]"),
        ({"policies": ["rucb:alpha=0.6", "savage", "btm:gamma=own"]}, "its policies are"),
        ({"policies": ["rucb", "savage", "btm:gamma=2"]}, "its policies are"),
    ],
)
def test_a_folder_keeps_to_its_experiment(problems, finished, changed, said):
    before = (finished / "frame.parquet").read_bytes()
    with pytest.raises(InvalidInput, match=f"was written by another experiment: {said}"):
        duels.run_experiment(problems, **SMALL | changed, out=finished)
    assert (finished / "frame.parquet").read_bytes() == before


def test_a_folder_of_other_results_is_left_alone(tmp_path):
    duels.simulate("arxiv-6", "rucb", horizon=100).save(tmp_path)
    with pytest.raises(InvalidInput, match="holds results of something else"):
        duels.run_experiment("arxiv-6", "rucb", 100, out=tmp_path)


def test_a_matrix_with_other_numbers_is_another_experiment(tmp_path):
    one = duels.load_problem("bradley-terry:arms=4,seed=1")
    duels.run_experiment({"m": one}, "rucb", 100, runs=2, out=tmp_path)
    other = duels.load_problem("bradley-terry:arms=4,seed=2")
    with pytest.raises(InvalidInput, match="its problems m is"):
        duels.run_experiment({"m": other}, "rucb", 100, runs=2, out=tmp_path)


MINE = """
from typing import NamedTuple

class Params(NamedTuple):
    arm: int = 0

class State(NamedTuple):
    arms: int

def init(arms, horizon, params):
    return State(arms)

def select(state, params, t, rng):
    return params.arm, t % state.arms

def update(state, params, t, i, j, outcome):
    pass

def recommend(state, rng):
    return 0
"""


def test_a_policy_whose_code_changed_is_another_experiment(tmp_path):
    source = MINE
    mine = tmp_path / "mine.py"
    mine.write_text(source)
    duels.run_experiment("arxiv-6", str(mine), 100, runs=2, out=tmp_path / "out")
    mine.write_text(source.replace("def select(", "EXTRA = 1\n\n\ndef select("))  # nothing that is played
    duels.run_experiment("arxiv-6", str(mine), 100, runs=2, out=tmp_path / "out")
    mine.write_text(source.replace("def recommend(state, rng):", "def recommend(state, rng):\n    rng.random()"))
    assert mine.read_text() != source
    with pytest.raises(InvalidInput, match="its policies mine is"):
        duels.run_experiment("arxiv-6", str(mine), 100, runs=2, out=tmp_path / "out")


DRIVER = """
import sys, duels
from duels.experiments import executors
doing = executors.Task.play
def slowly(self, stop, share=lambda share: None):
    import time
    time.sleep(0.05)
    return doing(self, stop, share)
executors.Task.play = slowly
executors.WHOLE = 100_000
duels.run_experiment({"six": "arxiv-6", "eight": "arithmetic-8"}, ["rucb", "savage", "btm:gamma=own"],
                     [1000, 3000], runs=40, seed=3, jobs=2, out=sys.argv[1])
"""


def test_a_killed_experiment_goes_on_and_ends_with_the_same_table(problems, undisturbed, tmp_path):
    out = tmp_path / "out"
    for parts in (2, 9):
        driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(out)])
        deadline = time.monotonic() + 120
        while len(list(out.glob("parts/*.parquet"))) < parts and time.monotonic() < deadline:
            assert driver.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)
        driver.wait(60)
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("parts/*.parquet")}
    assert 9 <= len(kept) < len(duels.experiments.plan_experiment(problems, **SMALL).tasks)
    (out / "parts" / ".00000.parquet.abcd.tmp").write_bytes(b"half a fi")  # what a kill may leave
    done = []
    keep = Folder.keep

    def noted(self, number, frame):
        done.append(number)
        keep(self, number, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "keep", noted)
        resumed = duels.run_experiment(problems, **SMALL, out=out)
    assert resumed.frame.equals(undisturbed.frame)
    assert len(done) == len(duels.experiments.plan_experiment(problems, **SMALL).tasks) - len(
        kept
    )  # the rest alone was done
    assert not (out / "parts").exists()


def test_a_finished_experiment_is_not_run_again(problems, undisturbed, tmp_path, monkeypatch):
    first = duels.run_experiment(problems, **SMALL, out=tmp_path)
    monkeypatch.setattr(sys.modules["duels.experiments.running"], "on_threads", None)
    again = duels.run_experiment(problems, **SMALL, out=tmp_path)
    assert again.frame.equals(undisturbed.frame)
    assert again.provenance == first.provenance


def test_damaged_parts_are_done_again_aloud(problems, undisturbed, tmp_path):
    duels.run_experiment(problems, **SMALL, shard="1/2", out=tmp_path)
    part = tmp_path / "parts" / "00002.parquet"
    part.write_bytes(part.read_bytes()[:100])
    duels.run_experiment(problems, **SMALL, shard="2/2", out=tmp_path)
    with pytest.raises(InvalidInput, match=r"00002.parquet is damaged: .*run that shard again"):
        duels.experiments.merge([tmp_path])
    with pytest.warns(UserWarning, match=r"00002.parquet is damaged: .*is repeated"):
        resumed = duels.run_experiment(problems, **SMALL, out=tmp_path)
    assert resumed.frame.equals(undisturbed.frame)


def test_one_process_at_a_time(tmp_path):
    duels.run_experiment("arxiv-6", "rucb", 10, runs=1, out=tmp_path)
    with Folder(tmp_path).lock(""), pytest.raises(InvalidInput, match="another process is running the experiment in"):
        duels.run_experiment("arxiv-6", "rucb", 10, runs=1, out=tmp_path)


def test_a_full_disk_loses_nothing(problems, undisturbed, tmp_path):
    """A file-size limit stands for the disk: the system refuses the write in the same way."""
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "import duels, sys\n"
        "from duels.errors import InvalidInput\n"
        "from duels.experiments import executors\n"
        "executors.WHOLE = 100_000\n"
        "try:\n"
        "    duels.run_experiment({'six': 'arxiv-6', 'eight': 'arithmetic-8'}, ['rucb', 'savage', 'btm:gamma=own'],\n"
        "                         [1000, 3000], runs=40, seed=3, jobs=1, out=sys.argv[1])\n"
        "except InvalidInput as error:\n"
        "    print(error, *error.__notes__)\n"
    )
    out = tmp_path / "out"
    duels.run_experiment(problems, **SMALL, shard="1/2", out=out)
    kept = len(list(out.glob("parts/*.parquet")))
    done = subprocess.run([sys.executable, "-c", limited, str(out)], capture_output=True, text=True, timeout=120)
    assert "cannot be written: File too large" in done.stdout, done.stderr
    assert "tasks are kept in" in done.stdout
    assert "the same command resumes the experiment" in done.stdout
    assert len(list(out.glob("parts/*.parquet"))) >= kept
    assert duels.run_experiment(problems, **SMALL, out=out).frame.equals(undisturbed.frame)


def test_what_was_run_is_said(problems, undisturbed):
    said = undisturbed.provenance
    assert said["duels"] == duels.__version__
    assert said["command"] == sys.argv
    assert (said["seed"], said["runs"], said["horizons"]) == (3, 40, [1000, 3000])
    assert said["problems"]["six"]["matrix"] == duels.load_problem("arxiv-6").digest
    gamma = duels.load_problem("arithmetic-8").gamma
    assert said["policies"]["btm:gamma=own"]["parameters"]["eight"] == {"gamma": gamma}
    assert said["executor"] == "1 thread"
    assert said["seconds"] > 0
    assert "cores" in said["machine"]
    json.dumps(said)


def test_matrices_are_in_the_folder(problems, tmp_path):
    duels.run_experiment(problems, "rucb", 10, runs=1, out=tmp_path)
    kept = folder_matrices(tmp_path)
    assert [matrix.name for matrix in kept.values()] == ["six", "eight"]
    assert np.array_equal(kept["six"].array, duels.load_problem("arxiv-6").array)
    with pytest.raises(InvalidInput, match="not an experiment's folder"):
        folder_matrices(tmp_path / "matrices")


TOML = """
policies = ["rucb:alpha=0.6", "./mine.py"]
horizons = [1e3, 5_000]
runs = 7
seed = 2

[problems]
six = "arxiv-6"
mine = "p.csv"
drawn = { matrix = "p.csv", subset = 4, seed = 5 }
"""


def test_an_experiment_is_a_file(tmp_path):
    matrix = duels.load_problem("bradley-terry:arms=6")
    duels.problems.save_matrix(matrix, tmp_path / "p.csv")
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "e.toml").write_text(TOML)
    planned = duels.experiments.plan_experiment(tmp_path / "e.toml")
    assert list(planned.problems) == ["six", "mine", "drawn"]
    assert np.array_equal(planned.problems["mine"].array, matrix.array)
    assert planned.problems["drawn"].arms == 4
    assert list(planned.policies) == ["rucb:alpha=0.6", "mine"]
    assert (planned.horizons, planned.runs, planned.seed) == ((1000, 5000), 7, 2)
    results = duels.run_experiment(planned)
    assert results.frame["problem"].unique(maintain_order=True).to_list() == ["six", "mine", "drawn"]
    assert duels.experiments.plan_experiment(str(tmp_path / "e.toml")).identity == planned.identity
    with pytest.raises(InvalidInput, match="runs is 3, but the experiment has its own runs"):
        duels.run_experiment(planned, runs=3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('problems = ["arxiv-6"]\npolicies = ["rucd"]', "e.toml: unknown policy 'rucd'. Did you mean 'rucb'?"),
        ('problems = ["arxiv-7"]', "e.toml: unknown problem 'arxiv-7'. Did you mean 'arxiv-6'?"),
        ('problem = ["arxiv-6"]', "e.toml: unknown key 'problem'. Did you mean 'problems'?"),
        ("runs = 3", "e.toml: there are no problems"),
        ("problems = [", "e.toml is not TOML: "),
        ('problems = ["arxiv-6"]\nhorizons = [0]', "e.toml: a horizon is 0: expected from 1 to"),
        ('problems = ["arxiv-6"]\nhorizons = []', "e.toml: there are no horizons"),
        ('problems = ["arxiv-6"]\nruns = "many"', "e.toml: runs is 'many': expected a whole number"),
        ('problems = ["arxiv-6"]\npolicies = []', "e.toml: there are no policies"),
        ("problems = []", "e.toml: there are no problems"),
        ('[problems]\na = {matrix = "arxiv-6"}', "expected the keys matrix and subset"),
        ('[problems]\na = {matrix = "arxiv-6", size = 3}', "e.toml: problem 'a': unknown key of a problem 'size'"),
        ('problems = ["arxiv-6", "arxiv-6"]', "e.toml: two problems are called 'arxiv-6'"),
        ('problems = ["arxiv-6"]\npolicies = ["rucb", "rucb:alpha=0.51"]', "two policies are called 'rucb'"),
        ('problems = ["arxiv-6"]\npolicies = ["rucb:alpha=own"]', "no alpha"),
        (
            '[problems]\nsix = "arxiv-6"\nhorizons = 100',
            "e.toml: horizons is below [problems] and so is read as a problem",
        ),
        ('[problems]\nsix = "arxiv-6"\npolicies = ["rucb"]', "move it above [problems]"),
        ('[problems]\nsix = "arxiv-6"\nregret = "weak"', "move it above [problems]"),
        ('[problems]\nsix = "arxiv-6"\nbad = 3', "e.toml: problem 'bad': 3 is not a problem: expected a name such as"),
        ('[problems]\nsix = "arxiv-6"\nbad = [[1, 2]]', "e.toml: problem 'bad': the matrix has shape (1, 2)"),
        ("problems = 3", "e.toml: 3 is not a problem: expected a name such as 'arxiv-6'"),
        ('problems = ["arxiv-6", true]', "e.toml: problem 2: True is not a problem"),
        ('problems = ["arxiv-6"]\npolicies = 5', "e.toml: 5 is not a policy: expected a name such as 'rucb'"),
    ],
)
def test_bad_files_are_refused_in_words(tmp_path, text, said):
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        duels.run_experiment(tmp_path / "e.toml", out=tmp_path / "out")
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"e.toml cannot be read: No such file"):
        duels.experiments.plan_experiment(tmp_path / "e.toml")
    with pytest.raises(NoCondorcetWinner, match="problem 'cyclic': gaps and regret need an arm that beats every other"):
        duels.experiments.plan_experiment(
            {"cyclic": [[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]]}, regret="weak"
        )
    for shard in ("0/2", "3/2", "2", "a/b", "1/999"):
        with pytest.raises(InvalidInput, match="shard is"):
            duels.run_experiment("arxiv-6", "rucb", 10, runs=1, shard=shard, out=tmp_path / "x")
    with pytest.raises(InvalidInput, match="shard 1/1 needs a folder"):
        duels.run_experiment("arxiv-6", "rucb", 10, runs=1, shard="1/1")
    with pytest.raises(InvalidInput, match="expected a dask"):
        duels.run_experiment("arxiv-6", "rucb", 10, runs=1, executor=3)
    with pytest.raises(InvalidInput, match="nothing to merge"):
        duels.experiments.merge([])
    with pytest.raises(InvalidInput, match="is not an experiment's folder"):
        duels.experiments.merge([tmp_path])
    with pytest.raises(UnknownName, match="unknown policy"):
        duels.experiments.plan_experiment("arxiv-6", "rucd")
    with pytest.raises(InvalidInput, match=r"a\.toml describes a whole experiment"):
        duels.experiments.plan_experiment(["a.toml", "b.toml"])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("runs", [1, 7, 8, 100])
@pytest.mark.parametrize("horizon", [1, 10_000, 4_500_000, 10**9])
def test_pieces_cover_every_run_once(runs, horizon, monkeypatch):
    monkeypatch.undo()
    pieces = pieces_of(runs, horizon)
    assert [run for piece in pieces for run in piece] == list(range(runs))
    assert all(len(piece) == 1 or len(piece) * horizon <= 45_000_000 for piece in pieces)
    if runs * horizon > 1_000_000:
        assert len(pieces) >= min(runs, 8) - 1  # enough for several cores


def test_environments_are_problems(tmp_path):
    from duels.rankers.rankers import feature_rankers
    from duels.rankers.synthetic import synthetic_letor

    collection = synthetic_letor(tmp_path / "s.txt", queries=5, documents=20, seed=1)
    three = feature_rankers(collection, [1, 5, 9])
    known = duels.rankers.estimate_preferences(collection, three, comparisons=200, seed=0)
    assert known.condorcet_winner is not None, "choose rankers of which one beats the others"
    environment = duels.rankers.InterleavingEnvironment(collection, three, matrix=known)
    results = duels.run_experiment({"live": environment}, "rucb", 200, runs=3)
    alone = duels.simulate(environment, "rucb", horizon=200, runs=3)
    assert results.frame["regret"].to_list() == alone.frame["regret"].to_list()
    assert results.frame["problem"].unique().to_list() == ["live"]
