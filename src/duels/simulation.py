"""Simulation: one policy on one preference matrix, many runs, on threads."""

import inspect
import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from .checks import check_int
from .engine import loop
from .engine.threads import in_threads, thread_count
from .errors import DuelsError, InvalidInput, PolicyError, UnknownName, format_count, shorten
from .policies import Policy, PolicyLike, State, defaults, load_policy
from .preference import Arm, PreferenceMatrix
from .problems import as_matrix
from .provenance import Session, build, identity, machine
from .regrets import AUTO, Regret, find_regret
from .results import SCHEMA, TABLES, Results
from .specs import Value

PER_DECADE = 10  # default checkpoints
PIECES = 8  # tasks per thread, of a simulation with enough runs
AGAIN = 100_000  # steps that are replayed, interpreted, to find the line of an error: a second or two
ProblemLike = PreferenceMatrix | ArrayLike | os.PathLike[str]  # a matrix, an array, a file or a name
Recorded = str | Sequence[str | tuple[Arm, Arm] | Arm]  # "pairs", a pair of arms, or a list of these


class Environment(Protocol):
    """A source of outcomes other than a preference matrix, such as `duels.rankers.InterleavingEnvironment`.

    It may also have:

    - `kernels`, a dictionary: functions that the outcome kernel calls by global names that are None.
    - `description`, a dictionary: what the provenance says about it.
    - `check_compilable()`, which raises if the outcome kernel cannot be compiled.
    - `changes` and `change(world, matrix)`, if preferences change over time: see `ChangingPreferences`.
    """

    outcome: Callable[..., float]  # the outcome kernel: (world, i, j, luck) → 1, ½ or 0

    @property
    def matrix(self) -> PreferenceMatrix:
        """The matrix that regret is measured by."""

    def world(self) -> Any:
        """What the outcome kernel reads and writes; a new one for each run."""


class ChangingPreferences:
    """An environment whose preference matrix changes at known steps; regret is measured by the matrix of each step.

    Args:
        matrices: Pairs of a step and the problem that holds from this step on. The first step is 1.
        name: The name in results; by default the first problem's, with `-changing`.

    Raises:
        InvalidInput: If the steps do not ascend from 1, or the problems have different arms.

    Example:
        >>> world = ChangingPreferences([(1, [[0.5, 0.7], [0.3, 0.5]]), (501, [[0.5, 0.2], [0.8, 0.5]])], name="flip")
        >>> simulate(world, "rucb", horizon=1000)
        Results(rucb on flip: 1 run, 31 rows)
    """

    outcome = staticmethod(loop.draw_from_matrix)

    def __init__(self, matrices: Sequence[tuple[int, ProblemLike]], name: str = "") -> None:
        pieces = [(check_int("the step of a change", start, 1), as_matrix(problem)) for start, problem in matrices]
        starts = [start for start, _ in pieces]
        if not starts or starts[0] != 1 or any(a >= b for a, b in itertools.pairwise(starts)):
            raise InvalidInput(f"the matrices hold from the steps {starts}: expected steps that ascend from 1")
        first = pieces[0][1]
        for start, matrix in pieces:
            if matrix.names != first.names:
                raise InvalidInput(f"the matrix from step {start} has other arms than the first: expected the same")
        self.matrix = PreferenceMatrix(first.array, first.names, name or f"{first.name}-changing")
        self.changes = pieces[1:]

    @property
    def description(self) -> dict[str, Any]:
        """What the provenance of results says about it."""
        return {"changes": [[start, matrix.digest] for start, matrix in self.changes]}

    def world(self) -> np.ndarray:
        """Return the first matrix, as an array that `change` can write to."""
        return np.array(self.matrix.array)

    def change(self, world: np.ndarray, matrix: PreferenceMatrix) -> None:
        """Let a matrix hold from now on."""
        world[...] = matrix.array


def simulate(
    problem: ProblemLike | Environment,
    policy: PolicyLike,
    *,
    horizon: int,
    runs: int | range = 1,
    seed: int = 0,
    jobs: int | None = None,
    checkpoints: Iterable[int] | None = None,
    record: Recorded = (),
    compiled: bool = True,
    regret: str = AUTO,
    progress: bool | None = None,
    **parameters: Value,
) -> Results:
    """Play a policy on a problem and report its regret and recommendation at the checkpoints.

    Args:
        problem: A `PreferenceMatrix`, an array, a matrix file or a named problem; or an environment: an
            `InterleavingEnvironment`, in which rankers duel directly, `ChangingPreferences`, or your own.
        policy: A name such as `"rucb"` or `"btm:gamma=2"`, a Python file or a module of your own.
        horizon: The number of steps to play, up to 10¹⁵. Policies that need a horizon get this one.
        runs: The number of independent runs, or a range of run numbers. Run r depends only on `seed` and r: not on
            threads, on other runs or on checkpoints.
        seed: The seed of all runs.
        jobs: The number of threads; by default one per core.
        checkpoints: The times to report; by default ten per decade. The horizon is always reported.
        record: `"pairs"` records the duels and wins of every pair at every checkpoint (`results.pairs`); a pair of
            arms such as `(0, 3)` records the policy's interval for it (`results.intervals`).
        compiled: False plays the policy in the Python interpreter, for breakpoints and prints; the results are the
            same.
        regret: `condorcet`, `copeland`, `borda`, `weak` or `strong` (see `duels.regrets`). By default it is
            `condorcet` if the problem has a Condorcet winner, else `copeland`; `results.notion` says which. A
            recommendation is correct if it is one of this notion's winners.
        progress: Whether to show a progress bar; by default on a terminal only.
        **parameters: Parameters of the policy.

    Returns:
        One row per run and checkpoint, with the provenance.

    Raises:
        InvalidInput: If an argument is wrong.
        PolicyError: If the policy fails while it plays.

    Example:
        >>> simulate("arxiv-6", "rucb", horizon=1000, runs=10, alpha=0.6)
    """
    chosen = _policy_with(policy, parameters)
    numbers = _run_numbers(runs)
    jobs = thread_count(jobs)
    ready = Simulation(problem, chosen, horizon, seed, checkpoints, compiled, regret)
    environment, name, label = ready.world.environment, ready.matrix.name, str(chosen)
    what = identity(
        {name: ready.matrix},
        {} if environment is None else {name: getattr(environment, "description", {})},
        {label: {name: chosen}},
        horizons=[ready.horizon],
        runs=runs if isinstance(runs, int) else [numbers[0], numbers[-1]],
        seed=ready.seed,
        regret=regret,
    )
    what["problems"][name]["names"] = list(ready.matrix.names)
    world, times = ready.matrix if environment is None else environment, tuple(ready.times)
    tasks = [
        Task(k, name, world, label, chosen, ready.horizon, some, ready.seed, times, regret, record, compiled)
        for k, some in enumerate(_pieces(numbers, jobs))
    ]
    session = Session(format_count(jobs, "thread"))
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
    problem: PreferenceMatrix | Environment | None  # None if it is sent separately
    label: str  # of the policy
    policy: Policy
    horizon: int
    runs: range
    seed: int
    times: tuple[int, ...]
    regret: str = AUTO
    record: Recorded = ()
    compiled: bool = True

    def __str__(self) -> str:
        return f"{self.label} on {self.name}, horizon {self.horizon:,}, runs {self.runs[0]} to {self.runs[-1]}"

    @property
    def steps(self) -> int:
        """The number of steps of all its runs."""
        return self.horizon * len(self.runs)

    def ready(self) -> "Simulation":
        """Check and compile what the runs share."""
        assert self.problem is not None
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
        table = simulation.table(self.runs, self.record)
        for place, run in enumerate(self.runs):
            simulation.play(run, table, stop, lambda done: show_share((place + done) / len(self.runs)))  # noqa: B023
            if stop.is_set():
                return None
        frame = table.frame().with_columns(problem=pl.lit(self.name), policy=pl.lit(self.label))
        recorded = table.recorder.frames()
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
    """One policy on one problem, compiled and checked; shared by all its runs."""

    def __init__(
        self,
        problem: ProblemLike | Environment,
        policy: Policy,
        horizon: int,
        seed: int = 0,
        checkpoints: Iterable[int] | None = None,
        compiled: bool = True,
        regret: str = AUTO,
    ) -> None:
        self.world = _World(problem)
        self.matrix, self.policy = self.world.matrix, policy
        self.horizon = check_int("horizon", horizon, 1, loop.LATEST)
        self.seed = check_int("seed", seed, 0)
        self.regret, *later = self.world.notions(regret)
        self.changes = [(start, matrix, notion) for (start, matrix), notion in zip(self.world.changes, later)]
        self.times = checkpoint_times(checkpoints, self.horizon)
        self._play = self.world.play(policy, self.horizon, compiled)

    def table(self, runs: range, record: Recorded = ()) -> "RunTable":
        """Make an empty table for some runs."""
        return RunTable(self.matrix, self.policy, self.horizon, self.times, runs, record)

    def play(self, run: int, table: "RunTable", stop: threading.Event, share: Callable[[float], None]) -> None:
        """Play one run from start to horizon and enter it in the table; `stop` ends it early, without the rest."""
        arms = self.matrix.arms
        state = self.policy.start(arms, self.horizon)
        tally = loop.new_tally(arms, self.regret.arm)
        coin, luck = loop.streams(self.seed, run)
        world = self.world.data()
        explored = self.policy.kernel("explored")
        play = loop.entry_point(self._play, state, self.policy.params, world, tally, 1, 1, 1, 1, coin, luck, coin)
        t, budget, costs = 1, 1000, _Costs(self.regret, tally)
        places, changes = {until: place for place, until in enumerate(self.times)}, self._changes_by_step()
        for until in sorted({*places, *(start - 1 for start in changes)}):
            rng = loop.tie_break_rng(self.seed, run, until)
            while t <= until:
                if stop.is_set():
                    return
                before = time.perf_counter()
                try:
                    t, arm = play(
                        state, self.policy.params, world, tally, t, until, loop.FOREVER, budget, coin, luck, rng
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
            if until in places:
                table.enter(run, places[until], costs, arm, explored(state) if explored else 0, state)
            if until + 1 in changes:
                matrix, notion = changes[until + 1]
                self.world.change(world, matrix)
                costs.change(notion)

    def _changes_by_step(self) -> dict[int, tuple[PreferenceMatrix, Regret]]:
        return {start: (matrix, notion) for start, matrix, notion in self.changes if start <= self.horizon}

    def _place_again(self, run: int) -> str:
        """The line at which a compiled run failed, found by replaying its first steps in the interpreter."""
        state, world = self.policy.start(self.matrix.arms, self.horizon), self.world.data()
        tally, (coin, luck) = loop.new_tally(self.matrix.arms), loop.streams(self.seed, run)
        play = self.world.play(self.policy, self.horizon, False)
        try:
            with loop.strictly(self.policy):
                play(state, self.policy.params, world, tally, 1, self.horizon, loop.FOREVER, AGAIN, coin, luck, coin)
        except Exception as error:
            return loop.place_of(self.policy, error) or loop.file_of(self.policy)
        return loop.file_of(self.policy)


class _Costs:
    """The cumulative regret of a run, by the notion that holds at each step."""

    def __init__(self, notion: Regret, tally: loop.Tally) -> None:
        self.notion, self.tally, self._before = notion, tally, (0.0, 0.0)

    def regret(self) -> tuple[float, float]:
        """Return the regret, and the weak regret."""
        # From exact counts, so neither checkpoints nor skipped self-duels change a digit.
        played, cheaper = self.tally.played, self.tally.cheaper
        weak = float((cheaper * self.notion.arm).sum())
        return self._before[0] + self.notion.of(played, cheaper), self._before[1] + weak

    def change(self, notion: Regret) -> None:
        """Measure all further duels by another notion."""
        self._before, self.notion = self.regret(), notion
        self.tally.played[:] = self.tally.cheaper[:] = 0.0
        self.tally.cost[:] = notion.arm


REQUIRED = ("outcome", "matrix", "world")


class _World:
    """Where outcomes come from: a matrix, or an environment, which has a matrix to measure regret by."""

    def __init__(self, problem: ProblemLike | Environment) -> None:
        self.environment: Environment | None = None
        self.changes: Sequence[tuple[int, PreferenceMatrix]] = []
        has = [hasattr(type(problem), name) or name in getattr(problem, "__dict__", {}) for name in REQUIRED]
        if any(has):
            for name in itertools.compress(REQUIRED, [not one for one in has]):
                raise InvalidInput(f"the environment {shorten(problem)} has no {name}: see docs/environments.md")
            self.environment = cast(Environment, problem)
            self.matrix, self.changes = self.environment.matrix, getattr(problem, "changes", [])
            return
        try:
            self.matrix = as_matrix(cast(ProblemLike, problem))
        except InvalidInput as error:
            if isinstance(problem, str | os.PathLike | list | tuple | np.ndarray):
                raise
            raise InvalidInput(f"{error}; for an environment of your own see docs/environments.md") from None

    def notions(self, regret: str) -> list[Regret]:
        """The notion of regret on the matrix, and on each one that it changes to; the same for all."""
        first = find_regret(self.matrix, regret)
        for start, matrix in self.changes:
            if start < 2 or matrix.arms != self.matrix.arms:
                raise InvalidInput(
                    f"preferences change to {matrix.arms} arms at step {start}: "
                    f"expected {self.matrix.arms} arms and a step from 2 on"
                )
        return [first, *(find_regret(matrix, first.name) for _, matrix in self.changes)]

    def change(self, world: Any, matrix: PreferenceMatrix) -> None:
        """Let another matrix hold from now on."""
        cast(Any, self.environment).change(world, matrix)

    def data(self) -> Any:
        """What the outcome kernel reads; a new object for each run if the kernel also writes to it."""
        return self.matrix.array if self.environment is None else self.environment.world()

    def play(self, policy: Policy, horizon: int, compiled: bool) -> loop.Play:
        outcome = loop.draw_from_matrix if self.environment is None else self.environment.outcome
        kernels = getattr(self.environment, "kernels", {})
        if not compiled:
            return loop.bind(policy, outcome, kernels, compiled=False)
        getattr(self.environment, "check_compilable", lambda: None)()
        return loop.ready(policy, self.matrix.arms, horizon, self.data(), outcome, kernels)


def _policy_with(policy: PolicyLike, parameters: dict[str, Value]) -> Policy:
    """The policy with its parameters; a mistyped argument of `simulate` gets a fitting suggestion."""
    chosen = load_policy(policy)
    for name in parameters:
        if name not in defaults(chosen.module):
            own = [
                key for key, kind in inspect.signature(simulate).parameters.items() if kind.kind is kind.KEYWORD_ONLY
            ]
            known = [*defaults(chosen.module), *own]
            raise UnknownName(f"parameter of {chosen.name}", name, known, "duels experiment policies")
    return load_policy(chosen, **parameters)


def _run_numbers(runs: int | range) -> range:
    if not isinstance(runs, range):
        return range(check_int("runs", runs, 1))
    if not runs or runs.step != 1 or runs.start < 0:
        raise InvalidInput(f"runs is {runs}: expected a count, or a range of run numbers such as range(10, 20)")
    return runs


def _next_budget(budget: int, seconds: float) -> int:
    """The number of steps until the next check for Ctrl-C: about a twentieth of a second."""
    if seconds < 0.025:
        return min(budget * 2, 1 << 40)
    return max(budget // 2, 100) if seconds > 0.1 else budget


def checkpoint_times(checkpoints: Iterable[int] | None, horizon: int) -> list[int]:
    """Return the times to report, including the horizon; by default ten per decade."""
    if checkpoints is None:
        count = int(np.log10(horizon) * PER_DECADE) + 1
        times = [min(round(10 ** (k / PER_DECADE)), horizon) for k in range(count)]
    elif isinstance(checkpoints, Iterable) and not isinstance(checkpoints, str):
        times = [check_int("a checkpoint", t, 1, horizon) for t in checkpoints]
    else:
        raise InvalidInput(f"checkpoints is {checkpoints!r}: expected a list of times")
    return sorted({*times, horizon})


class RunTable:
    """The numbers of the results frame: one row per run, one column per checkpoint, filled by many threads."""

    def __init__(
        self,
        matrix: PreferenceMatrix,
        policy: Policy,
        horizon: int,
        times: list[int],
        runs: range,
        record: Recorded = (),
    ) -> None:
        self.matrix, self.policy, self.horizon, self.times, self.runs = matrix, policy, horizon, times, runs
        self.recorder = _Recorder(matrix, policy, times, record)
        shape = (len(runs), len(times))
        self.regret, self.weak_regret, self.simple_regret = (np.zeros(shape) for _ in range(3))
        self.correct = np.zeros(shape, np.bool_)
        self.duels, self.recommended, self.explored = (np.zeros(shape, np.int64) for _ in range(3))

    def enter(self, run: int, place: int, costs: _Costs, arm: int, explored: int, state: State) -> None:
        """Enter one run at one checkpoint."""
        at, wins = (self.runs.index(run), place), costs.tally.wins
        self.regret[at], self.weak_regret[at] = costs.regret()
        self.simple_regret[at], self.correct[at] = costs.notion.arm[arm], arm in costs.notion.winners
        self.duels[at] = self.times[place] - round(float(wins.trace()))
        self.recommended[at] = arm
        self.explored[at] = explored
        self.recorder.enter(run, place, wins, state)

    def frame(self) -> pl.DataFrame:
        """Return the table with the columns of `SCHEMA`."""
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
            "simple_regret": self.simple_regret.ravel(),
            "duels": self.duels.ravel(),
            "recommended": recommended,
            "correct": self.correct.ravel(),
            "explored": self.explored.ravel(),
        }
        frame = pl.DataFrame(columns, schema=SCHEMA)
        return frame.with_columns(explored=pl.when(pl.col("explored") > 0).then("explored"))


class _Recorder:
    """What `record` requests beyond the results frame: pair counts, intervals of chosen pairs."""

    def __init__(self, matrix: PreferenceMatrix, policy: Policy, times: list[int], record: Recorded) -> None:
        self.matrix, self.policy, self.times = matrix, policy, times
        if isinstance(record, str) or (len(record) == 2 and all(isinstance(arm, int) for arm in record)):
            wanted: Sequence[object] = [record]
        else:
            wanted = record
        self.intervals = [self._pair(what) for what in wanted if what != "pairs"]
        if self.intervals and policy.kernel("bounds") is None:
            raise InvalidInput(
                f"policy {policy} has no confidence intervals: record pairs instead, or choose another policy"
            )
        self.tallies: dict[tuple[int, int], np.ndarray] | None = {} if "pairs" in wanted else None
        self.rows: dict[tuple[int, int], list[tuple[float | None, ...]]] = {}

    def _pair(self, what: object) -> tuple[int, int]:
        if isinstance(what, str) or not isinstance(what, Sequence) or len(what) != 2:
            raise InvalidInput(f"cannot record {what!r}: expected 'pairs' or a pair of arms such as (0, 1)")
        arms: Sequence[Arm] = what
        return self.matrix.index(arms[0]), self.matrix.index(arms[1])

    def enter(self, run: int, place: int, tally: np.ndarray, state: State) -> None:
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
        names = [pl.lit(self.matrix.name).alias("problem"), pl.lit(str(self.policy)).alias("policy")]
        frames = {}
        if self.tallies is not None:
            first, second = np.triu_indices(self.matrix.arms)
            parts = [
                pl.DataFrame(
                    {
                        "first": first,
                        "second": second,
                        "duels": _count_met(tally)[first, second],
                        "wins": tally[first, second],
                    }
                )
                .with_columns(wins=pl.when(pl.col("first") != pl.col("second")).then("wins"))
                .select(
                    *names,
                    pl.lit(run).cast(pl.Int64).alias("run"),
                    pl.lit(self.times[place]).cast(pl.Int64).alias("t"),
                    pl.all(),
                )
                for (run, place), tally in sorted(self.tallies.items())
            ]
            frames["pairs"] = pl.concat(parts)
        if self.intervals:
            columns = ["run", "t", "first", "second", "duels", "wins", "lower", "upper"]
            rows = [row for _, some in sorted(self.rows.items()) for row in some]
            kinds = [pl.Int64] * 4 + [pl.Float64] * 4
            table = pl.DataFrame(rows, schema=dict(zip(columns, kinds)), orient="row")
            frames["intervals"] = table.select(*names, pl.all())
        return frames


def _duels_and_wins(tally: np.ndarray, i: int, j: int) -> tuple[float, float | None]:
    if i == j:
        return float(tally[i, i]), None
    return float(tally[i, j] + tally[j, i]), float(tally[i, j])


def _count_met(tally: np.ndarray) -> np.ndarray:
    met: np.ndarray = tally + tally.T
    np.fill_diagonal(met, tally.diagonal())
    return met
