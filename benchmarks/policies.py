"""How fast the wider family is: a table, and benchmarks/out/policies.json. Exit code 1 if a bar is missed.

    python benchmarks/policies.py
    python benchmarks/policies.py --table                    # regret and time by the number of arms
    python benchmarks/policies.py --table dts merge_dts      # of these policies only

CPU time of one thread a step at K = 64 (samplers duel an arm with itself without being able to skip), horizon 10^6,
best of two; DTS and its variant on 500 arms, as multiples of RUCB's time there; and MergeRUCB on 1,000 arms to 10^8
steps on two cores. RUCB is there for a ratio. The 64 feature rankers
are read from $DUELS_DATA or ../shared/data; where they are absent a generated problem takes their place.

With --table, the table of regret and time in docs/policies.md and benchmarks/out/policies-table.json: mean regret ±
standard error after 100,000 steps, the accuracy in brackets if it is below 1, and CPU time of one thread a step. A
policy that needs much more than LIMIT seconds for a run is left out for that number of arms.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from table import OUT, report

import duels
from duels.experiments.race import unsuitable
from duels.policies import BUILT_IN

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DUELS_DATA") or ROOT.parent / "shared" / "data")
HORIZON = 1_000_000
BARS = {"rcs": 5000, "dts": 20_000, "rmed1": 1000, "ccb": 5000, "merge_rucb": 300, "merge_dts": 300, "sparring": 400}
RATIOS = {"dts": 120, "dts_plus": 180, "merge_dts": 3}  # times RUCB at K = 500

STEPS = 100_000
RUNS = {10: 40, 100: 10, 1000: 2}  # by the number of arms
LIMIT = 120  # seconds for one run
WARM = 500  # steps, after which the time for a run is foretold
FAMILIES = ("bradley-terry:arms={}", "random-condorcet:arms={},gap=0.05")
COMPARED = ("verdict", "self_sparring", "dts", "dts_plus", "merge_dts", "winner_stays:variant=strong", "versatile_db")
COMPARED += ("rex3", "rmed1", "rmed2", "ecw_rmed", "rcs:fallback=pool", "rucb", "ccb", "merge_rucb", "savage", "random")


def matrix():
    file = DATA / "matrices" / "feature-rankers-64.csv"
    return duels.load_matrix(file) if file.exists() else duels.load_problem("random-condorcet:arms=64,gap=0.02")


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
    problem = duels.load_problem("bradley-terry:arms=1000,spread=0.2")
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
    problem = duels.load_problem("bradley-terry:arms=500")
    base = nanoseconds(problem, "rucb", 20_000)
    for policy, bar in RATIOS.items():
        yield f"{policy}, K = 500, first 20,000 steps", nanoseconds(problem, policy, 20_000) / base, "x", bar
    seconds, accuracy = many_arms()
    yield f"merge_rucb, K = 1,000, 10^8 steps, 2 runs on 2 cores (accuracy {accuracy:g})", seconds, "s", 30


def measure(policy, family, arms):
    """Regret and CPU time of a policy on one problem; None if it does not suit it, or takes too long."""
    problem = duels.load_problem(family.format(arms))
    if unsuitable(duels.policies.load_policy(policy), problem):
        return None
    duels.simulate(problem, policy, horizon=10)  # compiled, or loaded
    started = time.process_time()
    duels.simulate(problem, policy, horizon=WARM, jobs=1, checkpoints=[])
    if (time.process_time() - started) * STEPS / WARM > 3 * LIMIT:  # the first steps can be the slowest
        return None
    started, runs = time.process_time(), RUNS[arms]
    last = duels.simulate(problem, policy, horizon=STEPS, runs=runs, jobs=1, checkpoints=[]).final().row(0, named=True)
    microseconds = 1e6 * (time.process_time() - started) / (runs * STEPS)
    return last["regret"], last["standard_error"], last["accuracy"], microseconds


def show_regret(found):
    if found is None:
        return "–"
    regret, error, accuracy, _ = found
    return f"{regret:,.0f} ± {error:,.0f}" + f" ({accuracy:.2g})" * (accuracy < 1)


def show_time(found):
    """The mean over the families, of two digits."""
    spent = [one[3] for one in found if one is not None]
    if not spent:
        return "–"
    mean = sum(spent) / len(spent)
    return f"{mean:,.0f}" if mean >= 10 else f"{mean:.2g}"


def table(policies) -> Iterator[str]:
    """The table as Markdown, a row as soon as it is measured; all of it as JSON in the end."""
    columns = [(arms, family) for arms in RUNS for family in FAMILIES]
    names = [f"K = {arms:,}, {family.partition(':')[0]}" for arms, family in columns]
    yield "| " + " | ".join(["policy", *names, *(f"µs a step, K = {arms:,}" for arms in RUNS)]) + " |"
    yield "| --- " * (1 + len(columns) + len(RUNS)) + "|"
    measured = {}
    for policy in policies:
        found = {column: measure(policy, column[1], column[0]) for column in columns}
        times = [show_time([found[arms, family] for family in FAMILIES]) for arms in RUNS]
        measured[policy] = {name: found[column] for name, column in zip(names, columns, strict=True)}
        yield "| " + " | ".join([f"`{policy}`", *map(show_regret, found.values()), *times]) + " |"
    OUT.mkdir(exist_ok=True)
    (OUT / "policies-table.json").write_text(json.dumps(measured, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        for line in table(sys.argv[2:] or COMPARED):
            print(line, flush=True)
    else:
        report("policies", rows())
