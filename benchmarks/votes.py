"""Votes by the million: a table, and benchmarks/out/votes.json. Exit code 1 if a bar is missed.

    python benchmarks/votes.py

How long it takes to analyze ten million votes in Parquet, and in how much memory; ratings beside evalica, where that is
installed; how long an import of a million votes takes, in how much memory, and how long other studies wait meanwhile;
and what batches of questions cost in duels until the verdict, against one question at a time.
"""

import importlib.util
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from table import report, seconds

import duels

BATCHES = (100, 10_000)
PROBLEMS = ((5, 0.1), (20, 0.1), (5, 0.02))  # arms, and by how much the best one beats each of the others
STUDIES = 40
VOTES, ARMS, VOTERS = 1_000_000, 200, 50_000
MANY, RATED, ROUNDS = 10_000_000, 100_000, 100  # votes to analyze, votes to rate, rounds of the bootstrap
ANALYSIS = """
import re, sys, time
started = time.perf_counter()
import duels
duels.analyze(sys.argv[1])
duels.rate(sys.argv[1])
taken = time.perf_counter() - started
print(taken, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def duels_in_batches(arms, gap, batch, seed):
    """Duels until the verdict, if each batch is allocated and answered as counts."""
    names = [f"arm {k}" for k in range(arms)]
    study = duels.create_study(names, f"{arms} {gap} {batch} {seed}", "sqlite://", seed=seed)
    best, dice, total = names[seed % arms], np.random.default_rng(seed), 0
    while study.verdict().kind == "not yet":
        rows = []
        for left, right, times in study.allocate(batch):
            won = int(dice.binomial(times, 0.5 + gap * ((left == best) - (right == best))))
            rows.append({"left": left, "right": right, "wins_left": won, "wins_right": times - won})
        total += study.import_votes(rows)
    return total


def batches():
    """What batches cost in duels."""
    for arms, gap in PROBLEMS:
        what = f"{arms} arms, the best wins {50 + 100 * gap:.0f} %: duels to the verdict, median,"
        (row,) = duels.estimate_votes(arms=arms, gap=gap, policies="verdict", studies=5 * STUDIES)
        yield f"{what} one at a time", row.answers_median, "", None
        for batch in BATCHES:
            found = [duels_in_batches(arms, gap, batch, seed) for seed in range(STUDIES)]
            yield f"{what} batches of {batch:,}", statistics.median(found), "", None


def some_votes(path, votes=VOTES):
    """Write votes of many voters, in the columns of an arena."""
    dice = np.random.default_rng(0)
    left = dice.integers(ARMS, size=votes)
    right = (left + dice.integers(1, ARMS, size=votes)) % ARMS
    names = np.array([f"model-{k:03d}" for k in range(ARMS)])
    words = np.array(["model_a", "model_b", "tie", "both_bad"])[dice.choice(4, votes, p=[0.4, 0.4, 0.15, 0.05])]
    voters = np.array([f"user {k}" for k in range(VOTERS)])[dice.integers(VOTERS, size=votes)]
    times = 1.7e9 + np.sort(dice.random(votes) * 1e7)
    frame = pl.DataFrame(
        {"model_a": names[left], "model_b": names[right], "winner": words, "judge": voters, "tstamp": times.round(4)}
    )
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)


def memory_of(process):
    """The most that a process has used so far, in MB."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:  # it has ended, or this is not Linux
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def imports():
    """How long the command takes to import a million votes, and how long another study of the file waits."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/duels.db"
        other = duels.create_study(["a", "b", "c"], "other", url)
        other._log.prepare()
        for suffix in ("parquet", "csv"):
            path = Path(folder) / f"votes.{suffix}"
            some_votes(path)
            command = [
                sys.executable,
                "-m",
                "duels",
                "study",
                "import",
                suffix,
                str(path),
                "--create",
                "--storage",
                url,
            ]
            started = time.perf_counter()
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            waits, peak = [], 0.0
            while child.poll() is None:
                before = time.perf_counter()
                duel = other.ask()
                between = time.perf_counter()
                other.tell(duel, "left")
                waits += [between - before, time.perf_counter() - between]
                peak = max(peak, memory_of(child.pid))
                time.sleep(0.01)
            what = f"import of a million votes, {suffix}:"
            yield f"{what} time", time.perf_counter() - started, "s", 5.0
            yield f"{what} memory", peak, "MB", 500.0
            yield f"{what} longest wait of another study", 1000 * max(waits), "ms", 250.0


def analysis():
    """Leaderboard, verdict, and ratings with intervals of ten million votes, by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.parquet"
        some_votes(path, MANY)
        done = subprocess.run([sys.executable, "-c", ANALYSIS, path], capture_output=True, text=True, check=True)
    taken, memory = map(float, done.stdout.split())
    yield "ten million votes in Parquet: analysis and ratings, time", taken, "s", 5.0
    yield "ten million votes in Parquet: memory", memory, "MB", 1024.0


def ratings():
    """Seconds of the processor, so that other work on the machine matters less: the best of three."""
    dice = np.random.default_rng(0)
    strength = dice.normal(size=ARMS)
    left = dice.integers(ARMS, size=RATED)
    right = (left + 1 + dice.integers(ARMS - 1, size=RATED)) % ARMS
    won = dice.random(RATED) < 1 / (1 + np.exp(strength[right] - strength[left]))
    winner = np.where(dice.random(RATED) < 0.1, 2, np.where(won, 0, 1))
    words = ("left", "right", "tie")
    votes = duels.read_votes([(f"arm {i}", f"arm {j}", words[w]) for i, j, w in zip(left, right, winner)])
    what = f"Bradley–Terry of {ARMS} arms,"
    yield f"{what} with intervals", seconds(lambda: duels.rate(votes), 3, time.process_time), "s", 0.5
    options = {"interval": "bootstrap", "rounds": ROUNDS}
    ours = seconds(lambda: duels.rate(votes, **options), 3, time.process_time)
    yield f"{what} {ROUNDS} rounds of the bootstrap", ours, "s", 2.0
    if importlib.util.find_spec("evalica"):
        import evalica

        theirs = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)
        given = left.tolist(), right.tolist(), [theirs[w] for w in winner]
        options = {"n_resamples": ROUNDS, "bootstrap_method": "percentile"}
        work = lambda: evalica.bootstrap(evalica.bradley_terry, *given, **options)  # noqa: E731
        yield f"{what} {ROUNDS} rounds, time over evalica's", ours / seconds(work, 1, time.process_time), "", 1.0


def main():
    yield from analysis()
    yield from ratings()
    yield from imports()
    yield from batches()


if __name__ == "__main__":
    report("votes", main())
