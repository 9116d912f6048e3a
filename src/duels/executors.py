"""Where the tasks of an experiment are done: on this machine's threads, or on a Dask cluster.

A task is self-contained, so it gives the same rows wherever it is done, and may be done again if it is lost.
"""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from .errors import DuelsError, InvalidInput
from .policies import Policy
from .progress import bar
from .regrets import AUTO
from .simulate import Simulation, version
from .threads import in_threads

STEPS_A_TASK = 45_000_000  # about a second of work
PIECES = 8  # of a policy's runs at one horizon, at least, where there is enough to do
PATIENCE = "10s"  # for a scheduler to answer
Done = Callable[["Task", pl.DataFrame], None]  # told of every finished task, as it finishes


@dataclass(frozen=True)
class Task:
    """Some runs of one policy on one problem with one horizon: about a second of work."""

    number: int  # its place in the experiment
    name: str  # what the problem is called there
    problem: Any  # a PreferenceMatrix, or an environment
    label: str  # what the policy is called there
    policy: Policy
    horizon: int
    runs: range
    seed: int
    times: tuple[int, ...]
    regret: str = AUTO

    def __str__(self) -> str:
        return f"{self.label} on {self.name}, horizon {self.horizon:,}, runs {self.runs[0]} to {self.runs[-1]}"

    @property
    def steps(self) -> int:
        return self.horizon * len(self.runs)

    def ready(self) -> Simulation:
        return Simulation(self.problem, self.policy, self.horizon, self.seed, self.times, regret=self.regret)

    def play(self, stop: threading.Event, share: Callable[[float], None] = lambda share: None) -> pl.DataFrame | None:
        """The rows of its runs; None if asked to stop."""
        simulation = self.ready()
        sheet = simulation.sheet(self.runs)
        for place, run in enumerate(self.runs):
            simulation.play(run, sheet, stop, lambda done: share((place + done) / len(self.runs)))  # noqa: B023
        if stop.is_set():
            return None
        return sheet.frame().with_columns(problem=pl.lit(self.name), policy=pl.lit(self.label))


def pieces(runs: int, horizon: int) -> list[range]:
    """Runs in pieces of about a second; neither so many that overhead shows nor so few that cores idle."""
    piece = runs
    if runs * horizon > 1_000_000:
        piece = max(1, min(STEPS_A_TASK // horizon, math.ceil(runs / PIECES)))
    return [range(start, min(start + piece, runs)) for start in range(0, runs, piece)]


def shard_of(tasks: list[Task], shard: str | None) -> list[Task]:
    """Every n-th task from the i-th on."""
    if shard is None:
        return tasks
    mine, slash, count = str(shard).partition("/")
    if not (slash and mine.isdecimal() and count.isdecimal() and 1 <= int(mine) <= int(count)):
        raise InvalidInput(f"shard is {shard!r}: expected i/n, such as 2/5 for the second of five")
    if int(count) > len(tasks):
        raise InvalidInput(
            f"shard is {shard!r}, but the work has only {len(tasks)} tasks: use at most that many shards"
        )
    return tasks[int(mine) - 1 :: int(count)]


def on_threads(tasks: Sequence[Task], done: Done, jobs: int, progress: bool | None, title: str) -> None:
    """Do the tasks on threads of this process, the longest first."""
    tasks = sorted(tasks, key=lambda task: -task.steps)
    for task in {(task.label, task.policy): task for task in tasks}.values():
        task.ready()  # compiled before the threads start
    entering = threading.Lock()

    def one(number: int, stop: threading.Event, share: Callable[[float], None]) -> None:
        frame = tasks[number].play(stop, share)
        if frame is not None:
            with entering:
                done(tasks[number], frame)

    if tasks:
        in_threads(one, len(tasks), jobs, progress, title, [task.steps for task in tasks])


def on_dask(tasks: Sequence[Task], done: Done, client: Any, progress: bool | None, title: str) -> None:
    """Do the tasks on a Dask cluster. The scheduler gives the tasks of a worker that dies to another one."""
    from distributed import CancelledError, KilledWorker, as_completed

    tasks = sorted(tasks, key=lambda task: -task.steps)
    futures = {}
    try:
        with bar(progress, title) as show:
            for task in tasks:
                # Neither the scheduler's memory of equal calls nor its keys matter: each task is done once.
                futures[client.submit(_on_worker, task, version(), pure=False)] = task
            whole, finished = sum(task.steps for task in tasks), 0
            for future in as_completed(list(futures)):
                task = futures[future]
                try:
                    done(task, future.result())
                except KilledWorker as error:
                    raise DuelsError(
                        f"the task {task} ended four workers, the last of them {error.last_worker}: look at its log; "
                        "a task that needs more memory than a worker has does this"
                    ) from None
                except CancelledError:
                    raise DuelsError("the Dask cluster dropped the tasks: is its scheduler still there?") from None
                finished += task.steps
                show(finished / whole)
                future.release()
    finally:
        client.cancel(list(futures))


def dask_client(executor: Any) -> Any:
    """A Dask client as it is, or one connected to the address of a scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput("Dask is not installed: pip install 'duels[dask]'") from None
    if isinstance(executor, Client):
        return executor
    if isinstance(executor, str):
        try:
            return Client(executor, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidInput(f"no Dask scheduler answers at {executor!r}: {said}") from None
    raise InvalidInput(f"executor is {executor!r}: expected a dask.distributed.Client, its address or None for threads")


def _on_worker(task: Task, expected: str) -> pl.DataFrame | None:
    if version() != expected:
        raise DuelsError(f"a Dask worker has duels {version()}, expected {expected} as here: install the same version")
    return task.play(threading.Event())
