"""Dask: a real cluster of processes gives the same table, also when a worker is killed in the middle."""

import os
import signal
import sys

import distributed
import pytest

import duels
from duels import executors
from duels.errors import DuelsError, InvalidInput
from duels.folder import Folder

PLANNED = {"policies": ["rucb", "savage"], "horizons": [1000, 100_000], "runs": 40, "seed": 3}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
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
    results = duels.run_experiment("arxiv-6", **PLANNED, executor=client.scheduler.address)
    assert results.frame.equals(undisturbed.frame)


def test_a_worker_killed_in_the_middle_changes_nothing(client, tmp_path, monkeypatch):
    planned = duels.experiment("arxiv-6", ["random", "rucb"], 5_000_000, runs=24)
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


def test_a_task_that_ends_its_workers_is_named(client, tmp_path):
    policy = tmp_path / "deadly.py"
    policy.write_text(DEADLY)
    with pytest.raises(DuelsError, match=r"the task deadly on arxiv-6, horizon 1,000, runs 0 to 0 ended four workers"):
        duels.run_experiment("arxiv-6", ["rucb", str(policy)], 1000, runs=1, executor=client, out=tmp_path / "out")
    client.wait_for_workers(2, timeout=60)


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
    with pytest.raises(InvalidInput, match=r"pip install 'duels\[dask\]'"):
        duels.run_experiment("arxiv-6", "rucb", 100, runs=1, executor="tcp://127.0.0.1:9")
