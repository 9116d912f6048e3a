"""Other people's implementations on the same work: a table, and benchmarks/out/peers.json.

    python3 -m venv peers && peers/bin/pip install duelpy 'numpy<1.24' 'scipy<1.12'
    python benchmarks/peers.py peers/bin/python

duelpy is the one Python library with RUCB. It runs in an environment of its own, since it needs an old numpy. Steps a
second at K = 64 on one core, ours and its in turns.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from table import report

import duels

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DUELS_DATA") or ROOT.parent / "shared" / "data")
PEER = """
import sys, time
import numpy as np
from duelpy.algorithms import RelativeUCB
from duelpy.feedback import MatrixFeedback

rng = np.random.RandomState(0)
feedback = MatrixFeedback(np.loadtxt(sys.argv[1]), random_state=rng)
policy = RelativeUCB(feedback_mechanism=feedback, time_horizon=10**9, random_state=rng)
started, steps = time.perf_counter(), 0
while time.perf_counter() - started < 5:
    policy.step()
    steps += 1
print(steps / (time.perf_counter() - started))
"""


def matrix():
    file = DATA / "matrices" / "feature-rankers-64.csv"
    return duels.load_matrix(file) if file.exists() else duels.load_problem("random-condorcet:arms=64,gap=0.02")


def ours(problem, horizon=4_500_000, runs=8):
    duels.simulate(problem, "rucb", horizon=10)
    started = time.perf_counter()
    results = duels.simulate(problem, "rucb", horizon=horizon, runs=runs, jobs=1, checkpoints=[])
    seconds = time.perf_counter() - started
    return horizon * runs / seconds, results.frame["duels"].sum() / seconds


def theirs(problem):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        np.savetxt(file.name, problem.array)
        command = [sys.argv[1], "-W", "ignore", "-c", PEER, file.name]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def rows():
    problem = matrix()
    steps, informative = ours(problem)
    peer = theirs(problem)
    yield "Duels, RUCB, K = 64: steps a second to 4.5 million, one core", steps, "/s", None
    yield "  informative duels a second", informative, "/s", None
    yield "duelpy, RUCB, K = 64: steps a second at the start, one core", peer, "/s", None
    yield "  Duels' informative duels over its steps", informative / peer, "x", None
    yield "  days for 100 runs of 4.5 million steps at that rate", 450e6 / peer / 86400, "days", None


if __name__ == "__main__":
    report("peers", rows())
