"""How fast the core is: a table, and benchmarks/out/core.json. Exit code 1 if a bar is missed.

    python benchmarks/core.py [--quick]

The literal listings of tests/oracles run in the same process for a ratio. Figures are the best of two: the machine
may be shared. The 64 feature rankers are read from $DUELS_DATA or ../shared/data and left out where they are absent.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from table import report, seconds

import duels
from duels.engine import loop

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DUELS_DATA") or ROOT.parent / "shared" / "data")
HORIZON, CORES = 4_500_000, len(os.sched_getaffinity(0))
QUICK = "--quick" in sys.argv
sys.path.insert(0, str(ROOT / "tests"))


def problems():
    file = DATA / "matrices" / "feature-rankers-64.csv"
    if file.exists():
        yield duels.load_matrix(file)
    yield duels.load_problem("random-condorcet:arms=64,gap=0.02")


def timed(matrix, policy, horizon, runs):
    """Seconds and duels played; BTM's self-duels count while several arms remain, the others' are skipped."""
    best = np.inf
    for _ in range(2):
        started = time.perf_counter()
        results = duels.simulate(matrix, policy, horizon=horizon, runs=runs, checkpoints=[])
        best = min(best, time.perf_counter() - started)
    frame = results.frame
    return best, (frame["explored"].fill_null(horizon) if policy == "btm" else frame["duels"]).sum()


def oracle_rate(matrix, policy, horizon):
    """Steps a second of the literal listing."""
    import oracles

    chosen = duels.policies.load_policy(policy)
    started = time.perf_counter()
    oracles.ORACLES[chosen.name](matrix.array, horizon, *loop.streams(0, 0), **chosen.params._asdict())
    return horizon / (time.perf_counter() - started)


def seconds_of(code):
    """The best of seven fresh processes; what Python itself takes is included."""
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True), 7)


def rows():
    runs = 10 if QUICK else 100
    for matrix in problems():
        duels.simulate(matrix, "rucb", horizon=10)  # compiled, or loaded
        seconds, different = timed(matrix, "rucb", HORIZON, runs)
        share = runs / 100 * 2 / min(2, CORES)
        yield f"{matrix.name}: rucb, {runs} runs x {HORIZON:,} steps on {CORES} cores", seconds, "s", 15 * share
        ns = seconds * 1e9 * min(CORES, runs) / different
        yield f"{matrix.name}: rucb, per informative duel and core", ns, "ns", 180
        longer, _ = timed(matrix, "rucb", 10**9, runs)
        yield f"{matrix.name}: rucb, horizon 10^9 against {HORIZON:,}", longer / seconds, "x", 1.5
        literal = oracle_rate(matrix, "rucb", 1000)
        yield (
            f"{matrix.name}: rucb, steps a second against the literal listing",
            runs * HORIZON / seconds / literal,
            "x",
            None,
        )
        for policy, bar in (("savage", 25), ("btm", 40), ("interleaved_filter", None), ("random", None)):
            duels.simulate(matrix, policy, horizon=10)
            seconds, played = timed(matrix, policy, HORIZON, runs // 2)
            yield f"{matrix.name}: {policy}, per duel and core", seconds * 1e9 * CORES / played, "ns", bar
    yield "peak memory of this process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB", None
    yield "import duels", seconds_of("import duels"), "s", 0.2
    yield (
        "duels --help",
        seconds_of("import sys; sys.argv = ['duels', '-h']; from duels.cli import main; main()"),
        "s",
        0.3,
    )
    small = "['duels', 'run', 'arxiv-6', '--horizon', '1000', '--runs', '2']"
    yield (
        "duels run on a small problem, warm",
        seconds_of(f"import sys; sys.argv = {small}; from duels.cli import main; main()"),
        "s",
        1.5,
    )


if __name__ == "__main__":
    report("core", rows())
