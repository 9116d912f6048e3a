"""What experiments cost: a table, and benchmarks/out/experiment.json. Exit code 1 if a bar is missed.

    python benchmarks/experiment.py [--quick]

`duels reproduce` in full and with --quick (warm), the experiment alone, its memory; Dask against threads in one run;
and time against K, T, runs and threads. --quick leaves out the full reproduction.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time

from table import report

import duels

CORES = len(os.sched_getaffinity(0))
QUICK = "--quick" in sys.argv


def reproduction(*arguments):
    """Seconds in all and in the experiment, and the most memory in GiB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from duels.cli import main; main()", "reproduce", "--out", folder, *arguments]
        started = time.perf_counter()
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        whole = time.perf_counter() - started
    experiment = float(re.search(r"experiment ([\d.]+) s", said).group(1))
    return whole, experiment, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def dask_overhead():
    """Wall time on a LocalCluster of processes over that on threads, for tasks of about a second."""
    from distributed import Client, LocalCluster

    steps = 60_000_000  # a second of the policy `random`
    planned = duels.experiments.plan_experiment("arxiv-6", "random", steps, runs=12 * CORES)
    settings = {"n_workers": CORES, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        duels.run_experiment("arxiv-6", "random", 1000, runs=8, executor=client)  # compiled everywhere
        best = {"threads": 1e9, "dask": 1e9}
        for _ in range(2):
            for name, executor in (("threads", None), ("dask", client)):
                started = time.perf_counter()
                duels.run_experiment(planned, executor=executor)
                best[name] = min(best[name], time.perf_counter() - started)
    return best["dask"] / best["threads"], best["threads"] / (len(planned.tasks) / CORES)


def cost(arms, horizon, runs, jobs, policy):
    matrix = duels.load_problem(f"random-condorcet:arms={arms},gap=0.02")
    duels.simulate(matrix, policy, horizon=10, runs=1)
    started = time.perf_counter()
    duels.run_experiment(matrix, policy, horizon, runs=runs, jobs=jobs)
    return time.perf_counter() - started


def rows():
    reproduction("--quick")  # compiles what the next one finds
    whole, _, _ = reproduction("--quick")
    yield "duels reproduce --quick, warm", whole, "s", 35
    if not QUICK:
        whole, experiment, memory = reproduction()
        yield "duels reproduce, warm", whole, "s", 300
        yield "  its experiment: 3 policies, K = 16, 32, 64, 100 runs, 12 horizons to 4.5 million", experiment, "s", 120
        yield "  its memory", memory, "GiB", 2
    ratio, task = dask_overhead()
    yield f"Dask over threads, tasks of {task:.1f} s", ratio, "x", 1.1
    for policy in ("rucb", "savage", "btm"):
        for arms, horizon, runs, jobs in (
            (16, 10**6, 100, CORES),
            (64, 10**6, 100, CORES),
            (256, 10**6, 100, CORES),
            (64, 10**5, 100, CORES),
            (64, 10**7, 100, CORES),
            (64, 10**6, 10, CORES),
            (64, 10**6, 100, 1),
        ):
            yield (
                f"{policy}, K = {arms}, T = {horizon:,}, {runs} runs, {jobs} threads",
                cost(arms, horizon, runs, jobs, policy),
                "s",
                None,
            )


if __name__ == "__main__":
    report("experiment", rows())
