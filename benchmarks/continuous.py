"""Seven policies on six functions with continuous parameters, the time of a step, and BoTorch's EUBO beside ours.

    python benchmarks/continuous.py --out FOLDER                 the tables of benchmarks/continuous.md
    python benchmarks/continuous.py --botorch VENV/bin/python --only-botorch
                                                                 beside BoTorch, which is installed there by hand
    python benchmarks/continuous.py --steps                      the time of a step only
    python benchmarks/continuous.py --blocks                     the default and random with five further seeds

BoTorch: python3 -m venv VENV; VENV/bin/pip install torch==2.13.0; VENV/bin/pip install botorch. It gets the same
initial duels and the same world as ours, and one core. Set OMP_NUM_THREADS=1, so that ours has one core too.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np
import polars as pl

import duels
from duels.continuous import History, Memory, load_policy
from duels.continuous.policies import BUILT_IN
from duels.continuous.simulation import make_world
from duels.engine import loop

FUNCTIONS = ("branin", "holder", "eggholder", "hartmann3", "ackley", "hartmann6")
SIDE_BY_SIDE = ("branin", "ackley")
BLOCKS = range(101, 106)  # seeds that neither the table nor the tests use
CHILD = Path(__file__).parent / "botorch_eubo.py"


def compared(functions, policies, duel_count, runs, seed, out, jobs):
    """All policies on all functions: a table of medians with the middle half of the runs, and ten points over time."""
    times = sorted({max(1, duel_count * tenth // 10) for tenth in range(1, 11)})
    parts = []
    for function in functions:
        for name in policies:
            start = time.perf_counter()
            results = duels.simulate(
                function, name, horizon=duel_count, runs=runs, seed=seed, checkpoints=times, jobs=jobs, progress=False
            )
            parts.append(results)
            shown(function, name, results.frame, time.perf_counter() - start)
    if out:
        from duels.results import combine

        combine(parts).save(out)


def blocks(duel_count, runs, jobs):
    """Medians of the default's and random's simple regret with each of five seeds, and of all their runs."""
    for function in SIDE_BY_SIDE:
        ours, chance = [], []
        for seed in BLOCKS:
            for name, found in (("eubo", ours), ("random", chance)):
                given = {"horizon": duel_count, "runs": runs, "seed": seed, "checkpoints": [], "jobs": jobs}
                found.append(duels.simulate(function, name, progress=False, **given).frame["simple_regret"])
            middle = ours[-1].median(), chance[-1].median()
            print(f"{function}, seed {seed}: eubo {middle[0]:.3f}, random {middle[1]:.3f}", flush=True)
        middle = pl.concat(ours).median(), pl.concat(chance).median()
        print(f"{function}, all: eubo {middle[0]:.3f}, random {middle[1]:.3f}, {middle[1] / middle[0]:.2f} times")


def shown(function, name, frame, seconds=0.0):
    last = frame.filter(pl.col("t") == pl.col("t").max())
    low, middle, high = (last["simple_regret"].quantile(q, "linear") for q in (0.25, 0.5, 0.75))
    least, usual, most = (last["regret"].quantile(q, "linear") for q in (0.25, 0.5, 0.75))
    simple, all_duels = f"{middle:.3f} ({low:.3f}–{high:.3f})", f"{usual:.1f} ({least:.1f}–{most:.1f})"
    print(
        f"| {function} | `{name}` | {simple} | {all_duels} | {len(last)} runs, {seconds:.0f} s |",
        flush=True,
    )


class Ours:
    def __init__(self, name="eubo"):
        self.policy, self.memory = load_policy(name), Memory()

    def ask(self, world, history, seed):
        start = time.perf_counter()
        left, right = self.policy.ask(world.space, history, seed=seed, memory=self.memory)
        return left, right, time.perf_counter() - start

    def recommend(self, world, history, seed):
        return self.policy.recommend(world.space, history, seed=seed, memory=self.memory)


class BoTorch:
    def __init__(self, python):
        self.child = subprocess.Popen(
            [python, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.initial = load_policy("eubo")

    def _answer(self, what, history, seed):
        data = {name: getattr(history, name).tolist() for name in history._fields}
        print(json.dumps({"what": what, "seed": seed[1] * 1000 + len(history.outcome), **data}), file=self.child.stdin)
        return json.loads(self.child.stdout.readline())

    def ask(self, world, history, seed):
        if len(history.outcome) < self.initial.initial(world.space):
            return *self.initial.ask(world.space, history, seed=seed), None
        found = self._answer("ask", history, seed)
        left, right = (world.space.decode(np.clip(point, 0, 1)) for point in found["points"])
        return left, right, found["seconds"]

    def recommend(self, world, history, seed):
        return world.space.decode(np.clip(self._answer("best", history, seed)["points"][0], 0, 1))


def played(player, world, duel_count, seed, run):
    """Simple regret after the last duel, and the seconds of each step after the initial duels."""
    space, history, seconds = world.space, History.of(world.space, []), []
    _, luck = loop.streams(seed, run)
    for number in range(duel_count):
        left, right, took = player.ask(world, history, (seed, run))
        if number >= load_policy("eubo").initial(space):
            seconds.append(took)
        outcome = world.answer(world.shortfall(left), world.shortfall(right), luck)
        history = history.with_duel(space.encode(left), space.encode(right), outcome)
    return world.shortfall(player.recommend(world, history, (seed, run))), seconds


def side_by_side(python, duel_count, runs, seed):
    for name in SIDE_BY_SIDE:
        world = make_world(name)
        theirs = BoTorch(python)
        regrets, seconds = {"eubo": [], "botorch": []}, {"eubo": [], "botorch": []}
        for run in range(runs):
            for label, player in (("eubo", Ours()), ("botorch", theirs)):
                regret, took = played(player, world, duel_count, seed, run)
                regrets[label].append(regret)
                seconds[label] += took
            low, median, high = np.quantile([*regrets.values()], (0.25, 0.5, 0.75), axis=1)
            median = {label: f"{median[k]:.3f} ({low[k]:.3f}–{high[k]:.3f})" for k, label in enumerate(regrets)}
            mean = {label: f"{np.mean(values):.4f}" for label, values in seconds.items()}
            print(
                f"{name}: {run + 1} runs of {duel_count} duels, median simple regret {median}, s per step {mean}",
                flush=True,
            )
        theirs.child.stdin.close()
        theirs.child.wait()


def steps(names=BUILT_IN, duel_count=100):
    """The time of a step at 100 duels in four dimensions, refits included, on one core."""
    world, player = make_world("ackley:d=4"), Ours()
    history = History.of(world.space, [])
    _, luck = loop.streams(0, 0)
    for _ in range(duel_count - 5):
        left, right, _ = player.ask(world, history, (0, 0))
        outcome = world.answer(world.shortfall(left), world.shortfall(right), luck)
        history = history.with_duel(world.space.encode(left), world.space.encode(right), outcome)
    for name in names:
        asked, took, here = Ours(name), [], history
        for _ in range(10):
            left, right, seconds = asked.ask(world, here, (0, 0))
            took.append(seconds)
            outcome = world.answer(world.shortfall(left), world.shortfall(right), luck)
            here = here.with_duel(world.space.encode(left), world.space.encode(right), outcome)
        print(f"{name}: {np.median(took):.4f} s per step (at most {max(took):.4f} s), 95 to 105 duels, d = 4, one core")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--botorch", help="the Python of an environment with BoTorch")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--only-botorch", action="store_true")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--policies", default=",".join(BUILT_IN))
    parser.add_argument("--duels", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--botorch-runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="a folder for the results of the table")
    parser.add_argument("--jobs", type=int, help="runs at once in the table; by default one per core")
    given = parser.parse_args()
    if given.blocks:
        blocks(given.duels, given.runs, given.jobs)
        raise SystemExit
    steps()
    if given.botorch:
        side_by_side(given.botorch, given.duels, given.botorch_runs, given.seed)
    if not given.steps and not given.only_botorch:
        functions, policies = given.functions.split(","), given.policies.split(",")
        compared(functions, policies, given.duels, given.runs, given.seed, given.out, given.jobs)
