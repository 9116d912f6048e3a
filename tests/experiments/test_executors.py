"""Dask: a real cluster of processes gives the same table, also when a worker is killed in the middle."""

import json
import logging
import os
import signal
import subprocess
import sys
import time

import distributed
import pytest
from distributed.comm import CommClosedError

import duels
from duels.errors import DuelsError, InvalidInput, MissingExtra
from duels.experiments import executors
from duels.experiments.folder import Folder
from duels.provenance import machine

PLANNED = {"policies": ["rucb", "savage"], "horizons": [1000, 40_000], "runs": 40, "seed": 3}


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each started again when it is killed."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def undisturbed():
    return duels.run_experiment("arxiv-6", **PLANNED)


def test_a_cluster_gives_the_same_table(client, undisturbed, tmp_path):
    results = duels.run_experiment("arxiv-6", **PLANNED, executor=client, out=tmp_path)
    assert results.frame.equals(undisturbed.frame)
    assert "Dask at" in results.provenance["executor"]


def test_the_address_of_a_scheduler_will_do(client, undisturbed):
    before = on_scheduler(client, "clients")
    results = duels.run_experiment("arxiv-6", **PLANNED, executor=client.scheduler.address)
    assert results.frame.equals(undisturbed.frame)
    assert until(lambda: on_scheduler(client, "clients") == before)  # ours is closed


def on_scheduler(client, what):
    return client.run_on_scheduler(lambda dask_scheduler: len(getattr(dask_scheduler, what)))


def until(true, seconds=5):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


def test_the_machine_is_that_of_the_workers(client, monkeypatch):
    monkeypatch.setattr(executors, "machine", lambda: {"machine": "the client's"})  # here, not on the workers
    said = duels.run_experiment("arxiv-6", "rucb", 1000, runs=2, executor=client).provenance
    assert {key: said[key] for key in machine()} == machine()


@pytest.mark.deep
def test_an_environment_is_sent_once(client, tmp_path, monkeypatch):
    from duels.rankers.rankers import feature_rankers
    from duels.rankers.synthetic import synthetic_letor

    collection = synthetic_letor(tmp_path / "s.txt", queries=5, documents=20, seed=1)
    two = feature_rankers(collection, [1, 5])
    known = duels.rankers.estimate_preferences(collection, two, comparisons=200, seed=0)
    environment = duels.rankers.InterleavingEnvironment(collection, two, matrix=known)
    planned = duels.experiments.plan_experiment({"live": environment, "matrix": known}, ["random"], 200_000, runs=8)
    assert len(planned.tasks) == 16
    sent = []
    monkeypatch.setattr(
        duels.rankers.InterleavingEnvironment,
        "__getstate__",
        lambda self: sent.append(1) or self.__dict__,
        raising=False,
    )
    results = duels.run_experiment(planned, executor=client)
    assert 1 <= len(sent) <= 2
    assert results.frame.equals(duels.run_experiment(planned).frame)


def test_after_an_error_nothing_goes_on(client, tmp_path, monkeypatch):
    """The work would take the two workers about half a minute."""

    def full(folder, number, frame):
        raise InvalidInput("the disk is full")

    monkeypatch.setattr(Folder, "keep", full)
    with pytest.raises(InvalidInput, match="the disk is full") as caught:
        duels.run_experiment("arxiv-6", "random", 40_000_000, runs=60, executor=client, out=tmp_path)
    assert until(lambda: on_scheduler(client, "tasks") == 0)
    assert caught.traceback  # which holds the futures: their end alone would drop the tasks too


class Unreachable:
    """A client whose scheduler has gone."""

    def submit(self, *what, **how):
        raise CommClosedError("in <TCP>: Stream is closed")

    def cancel(self, futures):
        raise CommClosedError("in <TCP>: Stream is closed")


def test_a_lost_connection_is_said_in_words():
    tasks = duels.experiments.plan_experiment("arxiv-6", "rucb", 100, runs=1).tasks
    with pytest.raises(DuelsError, match=r"cluster cannot be reached \(in <TCP>: Stream is closed\): is its scheduler"):
        executors.on_dask(tasks, print, Unreachable(), False, "")


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler of its own process with one worker: the process, and its address."""
    file = tmp_path / "scheduler.json"
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    main = subprocess.Popen([*start, "--no-dashboard", "--scheduler-file", str(file)], **quiet)
    assert until(lambda: file.exists() and file.read_text().endswith("}"), 60)
    address = json.loads(file.read_text())["address"]
    start = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    worker = subprocess.Popen([*start, "--no-dashboard", "--no-nanny"], cwd=tmp_path, **quiet)
    yield main, address
    for process in (worker, main):
        process.kill()
        process.wait(60)


@pytest.mark.deep
def test_a_scheduler_that_dies_in_the_middle(scheduler, tmp_path, monkeypatch, caplog):
    main, address = scheduler
    keep = Folder.keep

    def last_one(folder, number, frame):
        keep(folder, number, frame)
        main.kill()

    monkeypatch.setattr(Folder, "keep", last_one)
    logging.getLogger("distributed.client").addHandler(caplog.handler)
    try:
        with pytest.raises(DuelsError, match="is its scheduler still there") as caught:
            duels.run_experiment("arxiv-6", "random", 5_000_000, runs=24, executor=address, out=tmp_path / "out")
    finally:
        logging.getLogger("distributed.client").removeHandler(caplog.handler)
    assert "tasks are kept in" in caught.value.__notes__[0]
    assert caplog.records == []


@pytest.mark.deep
def test_a_worker_killed_in_the_middle_changes_nothing(client, tmp_path, monkeypatch):
    planned = duels.experiments.plan_experiment("arxiv-6", ["random", "rucb"], 5_000_000, runs=8)
    victim = next(iter(client.run(os.getpid).values()))
    done = []
    keep = Folder.keep

    def kill_early(folder, number, frame):
        if not done:
            os.kill(victim, signal.SIGKILL)
        done.append(number)
        keep(folder, number, frame)

    monkeypatch.setattr(Folder, "keep", kill_early)
    results = duels.run_experiment(planned, executor=client, out=tmp_path)
    assert sorted(done) == [task.number for task in planned.tasks]  # each once, and many of them after the kill
    assert victim not in client.run(os.getpid).values()
    assert results.frame.equals(duels.run_experiment(planned).frame)


DEADLY = """
import os
from duels.policies.random import *  # all but one kernel
def init(arms, horizon, params):
    os._exit(1)
"""


@pytest.fixture
def impatient(client):
    """A client of a cluster that gives a task up when it has ended two workers; by default it is four."""

    def allow(failures):
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures))

    before = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures)
    allow(1)
    yield client
    allow(before)


@pytest.mark.deep
def test_a_task_that_ends_its_workers_is_named(impatient, tmp_path):
    policy = tmp_path / "deadly.py"
    policy.write_text(DEADLY)
    with pytest.raises(DuelsError, match=r"the task deadly on arxiv-6, horizon 1,000, runs 0 to 0 ended 2 workers"):
        duels.run_experiment("arxiv-6", ["rucb", str(policy)], 1000, runs=1, executor=impatient, out=tmp_path / "out")


@pytest.mark.deep
def test_an_error_of_a_task_arrives(client, tmp_path):
    policy = tmp_path / "wrong.py"
    policy.write_text("from duels.policies.random import *\ndef recommend(state, rng):\n    return 99\n")
    with pytest.raises(DuelsError, match="policy wrong recommends arm 99 of 6"):
        duels.run_experiment("arxiv-6", str(policy), 1000, runs=1, executor=client)


def test_another_version_on_a_worker_is_refused(client, monkeypatch):
    monkeypatch.setattr(executors, "version", lambda: "9.9.9")
    with pytest.raises(DuelsError, match=r"a Dask worker has duels .*, expected 9\.9\.9 as here"):
        duels.run_experiment("arxiv-6", "rucb", 100, runs=1, executor=client)


def test_no_scheduler_there(monkeypatch):
    monkeypatch.setattr(executors, "PATIENCE", "1s")
    with pytest.raises(InvalidInput, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        duels.run_experiment("arxiv-6", "rucb", 100, runs=1, executor="tcp://127.0.0.1:9")


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"needs distributed: pip install 'duels\[dask\]'"):
        duels.run_experiment("arxiv-6", "rucb", 100, runs=1, executor="tcp://127.0.0.1:9")
