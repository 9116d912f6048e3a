"""How fast the wider family is: a table, and benchmarks/out/policies.json. Exit code 1 if a bar is missed.

    python benchmarks/policies.py

CPU time of one thread a step at K = 64 (samplers duel an arm with itself without being able to skip), horizon 10^6,
best of two; DTS and its variant on 500 arms, as multiples of RUCB's time there; and MergeRUCB on 1,000 arms to 10^8
steps on two cores. RUCB is there for a ratio. The 64 feature rankers
are read from $DUELS_DATA or ../shared/data; where they are absent a generated problem takes their place.
"""

import os
import time
from pathlib import Path

from table import report

import duels
from duels.policies import BUILT_IN

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DUELS_DATA") or ROOT.parent / "shared" / "data")
HORIZON = 1_000_000
BARS = {"rcs": 5000, "dts": 20_000, "rmed1": 1000, "ccb": 5000, "merge_rucb": 300, "merge_dts": 300, "sparring": 400}
RATIOS = {"dts": 120, "dts_plus": 180, "merge_dts": 3}  # times RUCB at K = 500


def matrix():
    file = DATA / "matrices" / "feature-rankers-64.csv"
    return duels.load_matrix(file) if file.exists() else duels.problem("random-condorcet:arms=64,gap=0.02")


def nanoseconds(problem, policy, horizon=HORIZON):
    """CPU time a step, best of two."""
    duels.simulate(problem, policy, horizon=10)  # compiled, or loaded
    best = float("inf")
    for seed in range(2):
        started = time.process_time_ns()
        duels.simulate(problem, policy, horizon=horizon, seed=seed, jobs=1, checkpoints=[])
        best = min(best, time.process_time_ns() - started)
    return best / horizon


def many_arms():
    """Seconds for two runs, one on each core, of MergeRUCB on 1,000 arms to 10^8 steps."""
    problem = duels.problem("bradley-terry:arms=1000,spread=0.2")
    duels.simulate(problem, "merge_rucb", horizon=10)
    started = time.perf_counter()
    results = duels.simulate(problem, "merge_rucb", horizon=10**8, runs=2, jobs=2, checkpoints=[])
    return time.perf_counter() - started, results.final()["accuracy"][0]


def rows():
    problem = matrix()
    base = nanoseconds(problem, "rucb")
    yield "rucb", base, "ns", None
    for policy in BUILT_IN:
        if policy not in ("rucb", "random"):
            spent = nanoseconds(problem, policy)
            yield f"{policy} ({spent / base:.1f} x rucb)", spent, "ns", BARS.get(policy)
    problem = duels.problem("bradley-terry:arms=500")
    base = nanoseconds(problem, "rucb", 20_000)
    for policy, bar in RATIOS.items():
        yield f"{policy}, K = 500, first 20,000 steps", nanoseconds(problem, policy, 20_000) / base, "x", bar
    seconds, accuracy = many_arms()
    yield f"merge_rucb, K = 1,000, 10^8 steps, 2 runs on 2 cores (accuracy {accuracy:g})", seconds, "s", 30


if __name__ == "__main__":
    report("policies", rows())
