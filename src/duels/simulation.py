"""Simulation: one policy on one preference matrix, many runs, on threads."""

import inspect
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from .checks import check_int
from .engine import loop
from .engine.threads import cores, in_threads
from .errors import DuelsError, InvalidInput, PolicyError, UnknownName
from .policies import Policy, defaults
from .policies import policy as find_policy
from .preference import Arm, PreferenceMatrix
from .problems import as_matrix
from .provenance import Session, build, identity, machine
from .regrets import AUTO, Regret, find_regret
from .results import SCHEMA, TABLES, Results

PER_DECADE = 10  # default checkpoints
PIECES = 8  # tasks per thread, of a simulation with enough runs
AGAIN = 100_000  # steps played again, interpreted, to find the line of an error: a second or two


def simulate(
    problem: Any,
    policy: Any,
    *,
    horizon: int,
    runs: int | range = 1,
    seed: int = 0,
    jobs: int | None = None,
    checkpoints: Iterable[int] | None = None,
    record: Sequence[Any] = (),
    compiled: bool = True,
    regret: str = AUTO,
    progress: bool | None = None,
    **parameters: Any,
) -> Results:
    """Play a policy on a problem and report its regret and recommendation at the checkpoints.

    problem: a `PreferenceMatrix`, an array, a matrix file or a named problem; or an `InterleavingEnvironment`, whose
        rankers then duel directly.
    policy: a name such as `"rucb"` or `"btm:gamma=2"`, a Python file or a module of your own; `parameters` are its.
    horizon: how many steps to play, up to 10¹⁵; policies that need a horizon are told it.
    runs: independent repetitions, or the numbers of some as a range. Run r depends on `seed` and r alone: not on
        threads, on `runs` or on checkpoints.
    jobs: threads; by default one per core.
    checkpoints: the times to report; by default ten per decade. The horizon is always reported.
    record: `"pairs"` adds the duels and wins of every pair at every checkpoint (`results.pairs`), a pair of arms such
        as `(0, 3)` the policy's interval for it (`results.intervals`).
    compiled: False plays the policy in the Python interpreter, for breakpoints and prints; the results are the same.
    regret: `condorcet`, `copeland`, `borda`, `weak` or `strong` (see `regrets`); by default `condorcet` if the problem
        has a Condorcet winner, else `copeland`. `results.notion` says which it was, and the accuracy is that of naming
        one of its winners.
    progress: show a progress bar; by default on a terminal only.
    """
    chosen = _policy_with(policy, parameters)
    numbers = _run_numbers(runs)
    jobs = check_int("jobs", jobs, 1) if jobs is not None else cores()
    ready = Simulation(problem, chosen, horizon, seed, checkpoints, compiled, regret)
    arena, name, label = ready.arena, ready.matrix.name, str(chosen)
    what = identity(
        {name: ready.matrix},
        {name: arena.said["environment"]} if arena.said else {},
        {label: {name: chosen}},
        horizons=[ready.horizon],
        runs=runs if isinstance(runs, int) else [numbers[0], numbers[-1]],
        seed=ready.seed,
        regret=regret,
    )
    what["problems"][name]["names"] = list(ready.matrix.names)
    world, times = ready.matrix if arena.environment is None else arena.environment, tuple(ready.times)
    tasks = [
        Task(k, name, world, label, chosen, ready.horizon, some, ready.seed, times, regret, record, compiled)
        for k, some in enumerate(_pieces(numbers, jobs))
    ]
    session = Session(f"{jobs} threads")
    found: dict[int, Results] = {}

    def keep(task: Task, played: Results, where: dict[str, str]) -> None:
        found[task.number] = played
        session.count(where)

    on_threads(tasks, keep, jobs, progress, f"{chosen} on {name}")
    tables = {
        table: pl.concat([getattr(found[k], table) for k in sorted(found)])
        for table in TABLES
        if getattr(found[0], table) is not None
    }
    return Results(provenance=build(what, [session.record]), **tables)


def _pieces(runs: range, jobs: int) -> list[range]:
    """Split runs into pieces, several per thread so that the threads finish together."""
    size = math.ceil(len(runs) / (PIECES * jobs))
    return [runs[start : start + size] for start in range(0, len(runs), size)]


@dataclass(frozen=True)
class Task:
    """Some runs of one policy on one problem with one horizon: the unit of work of simulations and experiments.

    A task is self-contained. It returns the same table on every thread and machine, so a lost task can be repeated.
    """

    number: int  # its position in the simulation or the experiment
    name: str  # of the problem
    problem: Any  # a PreferenceMatrix or an environment
    label: str  # of the policy
    policy: Policy
    horizon: int
    runs: range
    seed: int
    times: tuple[int, ...]
    regret: str = AUTO
    record: Sequence[Any] = ()
    compiled: bool = True

    def __str__(self) -> str:
        return f"{self.label} on {self.name}, horizon {self.horizon:,}, runs {self.runs[0]} to {self.runs[-1]}"

    @property
    def steps(self) -> int:
        """The number of steps of all its runs."""
        return self.horizon * len(self.runs)

    def ready(self) -> "Simulation":
        """Check and compile what the runs share."""
        return Simulation(self.problem, self.policy, self.horizon, self.seed, self.times, self.compiled, self.regret)

    def play(self, stop: threading.Event, show_share: Callable[[float], None] = lambda share: None) -> Results | None:
        """Play the runs, one after another.

        Args:
            stop: Ends the work early when it is set.
            show_share: Called with the share of the work that is done.

        Returns:
            The tables of the runs, without provenance; None if the work ended early.
        """
        simulation = self.ready()
        sheet = simulation.sheet(self.runs, self.record)
        for place, run in enumerate(self.runs):
            simulation.play(run, sheet, stop, lambda done: show_share((place + done) / len(self.runs)))  # noqa: B023
            if stop.is_set():
                return None
        frame = sheet.frame().with_columns(problem=pl.lit(self.name), policy=pl.lit(self.label))
        recorded = sheet.recorder.frames()
        return Results(frame, pairs=recorded.get("pairs"), intervals=recorded.get("intervals"))


Done = Callable[[Task, Results, dict[str, str]], None]  # called with each finished task, its tables and its machine


def on_threads(tasks: Sequence[Task], done: Done, jobs: int, progress: bool | None, title: str) -> None:
    """Play tasks on threads of this process, the longest first.

    Args:
        tasks: The work. If there is none, nothing happens.
        done: Called with each finished task, never by two threads at once.
        jobs: The number of threads.
        progress: Whether to show a bar; None means on a terminal only.
        title: The bar's title.
    """
    tasks = sorted(tasks, key=lambda task: -task.steps)
    for task in {id(task.policy): task for task in tasks}.values():
        task.ready()  # compiled before the threads start
    lock, here = threading.Lock(), machine()

    def one(number: int, stop: threading.Event, show_share: Callable[[float], None]) -> None:
        played = tasks[number].play(stop, show_share)
        if played is not None:
            with lock:
                done(tasks[number], played, here)

    if tasks:
        in_threads(one, len(tasks), jobs, progress, title, [task.steps for task in tasks])


class Simulation:
    """One policy on one problem, compiled and checked: what all its runs share."""

    def __init__(
        self,
        problem: Any,
        policy: Policy,
        horizon: int,
        seed: int = 0,
        checkpoints: Iterable[int] | None = None,
        compiled: bool = True,
        regret: str = AUTO,
    ) -> None:
        self.arena = _Arena(problem)
        self.matrix, self.policy = self.arena.matrix, policy
        self.horizon = check_int("horizon", horizon, 1, loop.LATEST)
        self.seed = check_int("seed", seed, 0)
        self.regret = find_regret(self.matrix, regret)
        self.times = checkpoint_times(checkpoints, self.horizon)
        self._play = self.arena.play(policy, self.horizon, compiled)

    def sheet(self, runs: range, record: Sequence[Any] = ()) -> "Sheet":
        """Where the given runs are entered."""
        return Sheet(self.matrix, self.policy, self.horizon, self.times, runs, record, self.regret)

    def play(self, run: int, sheet: "Sheet", stop: threading.Event, share: Callable[[float], None]) -> None:
        """Play one run from start to horizon; ends early, with nothing entered from there on, if asked to stop."""
        arms = self.matrix.arms
        state = self.policy.start(arms, self.horizon)
        tally = np.zeros((arms, arms))
        coin, luck = loop.streams(self.seed, run)
        world = self.arena.world()
        explored = self.policy.kernel("explored")
        play = loop.direct(self._play, state, self.policy.params, world, tally, 1, 1, 1, 1, coin, luck, coin)
        t, budget = 1, 1000
        for place, until in enumerate(self.times):
            adviser = loop.adviser(self.seed, run, until)
            while t <= until:
                if stop.is_set():
                    return
                before = time.perf_counter()
                try:
                    t, arm = play(
                        state, self.policy.params, world, tally, t, until, loop.FOREVER, budget, coin, luck, adviser
                    )
                except DuelsError:
                    raise
                except Exception as error:
                    where = loop.place_of(self.policy, error) or self._place_again(run)
                    raise PolicyError(
                        f"policy {self.policy} failed in run {run}: {type(error).__name__}: {error}{where}"
                    ) from error
                budget = _next_budget(budget, time.perf_counter() - before)
                share((t - 1) / self.horizon)
            if not 0 <= arm < arms:
                raise PolicyError(f"policy {self.policy} recommends arm {arm} of {arms} at step {until}")
            sheet.enter(run, place, tally, arm, explored(state) if explored else 0, state)

    def _place_again(self, run: int) -> str:
        """Where a run fails that failed in compiled code, which does not say: its first steps in the interpreter."""
        state, world = self.policy.start(self.matrix.arms, self.horizon), self.arena.world()
        tally, (coin, luck) = np.zeros((self.matrix.arms, self.matrix.arms)), loop.streams(self.seed, run)
        play = self.arena.play(self.policy, self.horizon, False)
        try:
            with loop.strictly(self.policy):
                play(state, self.policy.params, world, tally, 1, self.horizon, loop.FOREVER, AGAIN, coin, luck, coin)
        except Exception as error:
            return loop.place_of(self.policy, error) or loop.file_of(self.policy)
        return loop.file_of(self.policy)


class _Arena:
    """Where the duels take place: a matrix, or an environment, which has a matrix to measure regret by."""

    def __init__(self, problem: Any) -> None:
        self.environment = problem if hasattr(problem, "outcome") else None
        self.matrix = as_matrix(problem) if self.environment is None else self.environment.matrix
        self.said = {} if self.environment is None else {"environment": self.environment.said}

    def world(self) -> Any:
        """What the outcome kernel reads; a run's own where it is also written to."""
        return self.matrix.array if self.environment is None else self.environment.world()

    def play(self, policy: Policy, horizon: int, compiled: bool) -> Callable:
        outcome = loop.draw_from_matrix if self.environment is None else self.environment.outcome
        kernels = {} if self.environment is None else self.environment.kernels
        if not compiled:
            return loop.bind(policy, outcome, kernels, compiled=False)
        if self.environment is not None:
            self.environment.check_compilable()
        return loop.ready(policy, self.matrix.arms, horizon, self.world(), outcome, kernels)


def _policy_with(policy: Any, parameters: dict[str, Any]) -> Policy:
    """The policy; a mistyped argument of `simulate` is not mistaken for one of its parameters."""
    chosen = find_policy(policy)
    for name in parameters:
        if name not in defaults(chosen.module):
            own = [
                key for key, kind in inspect.signature(simulate).parameters.items() if kind.kind is kind.KEYWORD_ONLY
            ]
            known = [*defaults(chosen.module), *own]
            raise UnknownName(f"parameter of {chosen.name}", name, known, "duels policies")
    return find_policy(chosen, **parameters)


def _run_numbers(runs: Any) -> range:
    if not isinstance(runs, range):
        return range(check_int("runs", runs, 1))
    if not runs or runs.step != 1 or runs.start < 0:
        raise InvalidInput(f"runs is {runs}: expected a count, or a range of run numbers such as range(10, 20)")
    return runs


def _next_budget(budget: int, seconds: float) -> int:
    """How many steps to play before looking up again: about a twentieth of a second, so that Ctrl-C is heard."""
    if seconds < 0.025:
        return min(budget * 2, 1 << 40)
    return max(budget // 2, 100) if seconds > 0.1 else budget


def checkpoint_times(checkpoints: Iterable[int] | None, horizon: int) -> list[int]:
    """The times to report, the horizon among them; by default ten per decade."""
    if checkpoints is None:
        count = int(np.log10(horizon) * PER_DECADE) + 1
        times = [min(round(10 ** (k / PER_DECADE)), horizon) for k in range(count)]
    elif isinstance(checkpoints, Iterable) and not isinstance(checkpoints, str):
        times = [check_int("a checkpoint", t, 1, horizon) for t in checkpoints]
    else:
        raise InvalidInput(f"checkpoints is {checkpoints!r}: expected a list of times")
    return sorted({*times, horizon})


class Sheet:
    """The numbers of the results frame, a row per run and a column per checkpoint, written by many threads."""

    def __init__(
        self,
        matrix: PreferenceMatrix,
        policy: Policy,
        horizon: int,
        times: list[int],
        runs: range,
        record: Sequence[Any] = (),
        regret: Regret | None = None,
    ) -> None:
        self.matrix, self.policy, self.horizon, self.times, self.runs = matrix, policy, horizon, times, runs
        self.notion = regret or find_regret(matrix)
        self.recorder = _Recorder(matrix, policy, times, record)
        self.smaller = np.minimum.outer(self.notion.arm, self.notion.arm)
        shape = (len(runs), len(times))
        self.regret, self.weak_regret = np.zeros(shape), np.zeros(shape)
        self.duels, self.recommended, self.explored = (np.zeros(shape, np.int64) for _ in range(3))

    def enter(self, run: int, place: int, tally: np.ndarray, arm: int, explored: int, state: Any) -> None:
        at = self.runs.index(run), place
        met = tally + tally.T  # twice the self-duels on the diagonal, so that each step counts two arms
        # From exact counts, so that neither checkpoints nor fast-forwarding change a digit.
        self.regret[at] = self.notion.of(met)
        self.weak_regret[at] = 0.5 * float((met * self.smaller).sum())
        self.duels[at] = round(float(tally.sum() - tally.trace()))
        self.recommended[at] = arm
        self.explored[at] = explored
        self.recorder.enter(run, place, tally, state)

    def frame(self) -> pl.DataFrame:
        recommended = self.recommended.ravel()
        rows = recommended.size
        columns = {
            "problem": [self.matrix.name] * rows,
            "arms": np.full(rows, self.matrix.arms),
            "policy": [str(self.policy)] * rows,
            "horizon": np.full(rows, self.horizon),
            "run": np.repeat(np.arange(self.runs.start, self.runs.stop), len(self.times)),
            "t": np.tile(np.array(self.times, np.int64), len(self.runs)),
            "regret": self.regret.ravel(),
            "weak_regret": self.weak_regret.ravel(),
            "simple_regret": self.notion.arm[recommended],
            "duels": self.duels.ravel(),
            "recommended": recommended,
            "correct": np.isin(recommended, self.notion.winners),
            "explored": self.explored.ravel(),
        }
        frame = pl.DataFrame(columns, schema=SCHEMA)
        return frame.with_columns(explored=pl.when(pl.col("explored") > 0).then("explored"))


class _Recorder:
    """What `record` asks for beyond the results frame: pair counts, intervals of chosen pairs."""

    def __init__(self, matrix: PreferenceMatrix, policy: Policy, times: list[int], record: Sequence[Any]) -> None:
        self.matrix, self.policy, self.times = matrix, policy, times
        if isinstance(record, str) or (len(record) == 2 and all(isinstance(arm, int) for arm in record)):
            record = [record]
        self.intervals = [self._pair(what) for what in record if what != "pairs"]
        if self.intervals and policy.kernel("bounds") is None:
            raise InvalidInput(f"policy {policy} holds no intervals: record pairs instead, or choose another policy")
        self.tallies: dict[tuple[int, int], np.ndarray] | None = {} if "pairs" in record else None
        self.rows: dict[tuple[int, int], list[tuple]] = {}

    def _pair(self, what: Any) -> tuple[int, int]:
        if isinstance(what, str) or not isinstance(what, Sequence) or len(what) != 2:
            raise InvalidInput(f"cannot record {what!r}: expected 'pairs' or a pair of arms such as (0, 1)")
        arms: Sequence[Arm] = what
        return self.matrix.index(arms[0]), self.matrix.index(arms[1])

    def enter(self, run: int, place: int, tally: np.ndarray, state: Any) -> None:
        if self.tallies is not None:
            self.tallies[run, place] = tally.copy()
        if self.intervals:
            t = self.times[place]
            lower, upper = self.policy.kernel("bounds")(state, self.policy.params, t)
            self.rows[run, place] = [
                (run, t, i, j, *_duels_and_wins(tally, i, j), float(lower[i, j]), float(upper[i, j]))
                for i, j in self.intervals
            ]

    def frames(self) -> dict[str, pl.DataFrame]:
        said = [pl.lit(self.matrix.name).alias("problem"), pl.lit(str(self.policy)).alias("policy")]
        frames = {}
        if self.tallies is not None:
            first, second = np.triu_indices(self.matrix.arms)
            parts = [
                pl.DataFrame(
                    {
                        "first": first,
                        "second": second,
                        "duels": _met(tally)[first, second],
                        "wins": tally[first, second],
                    }
                )
                .with_columns(wins=pl.when(pl.col("first") != pl.col("second")).then("wins"))
                .select(
                    *said,
                    pl.lit(run).cast(pl.Int64).alias("run"),
                    pl.lit(self.times[place]).cast(pl.Int64).alias("t"),
                    pl.all(),
                )
                for (run, place), tally in sorted(self.tallies.items())
            ]
            frames["pairs"] = pl.concat(parts)
        if self.intervals:
            names = ["run", "t", "first", "second", "duels", "wins", "lower", "upper"]
            rows = [row for _, some in sorted(self.rows.items()) for row in some]
            kinds = [pl.Int64] * 4 + [pl.Float64] * 4
            table = pl.DataFrame(rows, schema=dict(zip(names, kinds)), orient="row")
            frames["intervals"] = table.select(*said, pl.all())
        return frames


def _duels_and_wins(tally: np.ndarray, i: int, j: int) -> tuple[float, float | None]:
    if i == j:
        return float(tally[i, i]), None
    return float(tally[i, j] + tally[j, i]), float(tally[i, j])


def _met(tally: np.ndarray) -> np.ndarray:
    met = tally + tally.T
    np.fill_diagonal(met, tally.diagonal())
    return met
