"""Where the tasks of an experiment are done: on this machine's threads, or on a Dask cluster.

A task is self-contained, so it gives the same rows wherever it is done, and may be done again if it is lost.
"""

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ..engine.progress import bar
from ..engine.threads import in_threads
from ..errors import DuelsError, InvalidInput, counted, needs_extra
from ..policies import Policy
from ..preference import PreferenceMatrix
from ..regrets import AUTO
from ..simulation import Simulation, machine, version

STEPS_A_TASK = 45_000_000  # about a second of work
PIECES = 8  # of a policy's runs at one horizon, at least, where there is enough to do
PATIENCE = "10s"  # for a scheduler to answer
Done = Callable[["Task", pl.DataFrame, dict[str, str]], None]  # told of every finished task, its rows, its machine


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
            f"shard is {shard!r}, but the work has only {counted(len(tasks), 'task')}: use at most that many shards"
        )
    return tasks[int(mine) - 1 :: int(count)]


def on_threads(tasks: Sequence[Task], done: Done, jobs: int, progress: bool | None, title: str) -> None:
    """Do the tasks on threads of this process, the longest first."""
    tasks = sorted(tasks, key=lambda task: -task.steps)
    for task in {(task.label, task.policy): task for task in tasks}.values():
        task.ready()  # compiled before the threads start
    entering, here = threading.Lock(), machine()

    def one(number: int, stop: threading.Event, share: Callable[[float], None]) -> None:
        frame = tasks[number].play(stop, share)
        if frame is not None:
            with entering:
                done(tasks[number], frame, here)

    if tasks:
        in_threads(one, len(tasks), jobs, progress, title, [task.steps for task in tasks])


def on_dask(tasks: Sequence[Task], done: Done, client: Any, progress: bool | None, title: str) -> None:
    """Do the tasks on a Dask cluster. The scheduler gives the tasks of a worker that dies to another one."""
    from distributed import CancelledError, as_completed

    tasks = sorted(tasks, key=lambda task: -task.steps)
    held: dict[int | None, Any] = {}
    futures: dict[Any, Task] = {}
    try:
        with bar(progress, title) as show:
            for task in tasks:
                sent, key = task, None
                if not isinstance(task.problem, PreferenceMatrix):
                    # An environment may be large: it is sent once, as a task, which is done again if its worker dies.
                    sent, key = replace(task, problem=None), id(task.problem)
                    held[key] = held.get(key) or client.submit(_held, task.problem, pure=False)
                # Neither the scheduler's memory of equal calls nor its keys matter: each task is done once.
                futures[client.submit(_on_worker, sent, held.get(key), version(), pure=False)] = task
            whole, finished = sum(task.steps for task in tasks), 0
            for future in as_completed(list(futures)):
                task = futures[future]
                frame, there = _result(future, task)
                done(task, frame, there)
                finished += task.steps
                show(finished / whole)
                future.release()
    except CancelledError:
        raise DuelsError("the Dask cluster dropped the tasks: is its scheduler still there?") from None
    except OSError as error:
        raise DuelsError(f"the Dask cluster cannot be reached ({error}): is its scheduler still there?") from None
    finally:
        with contextlib.suppress(Exception):  # there may be no scheduler to tell
            client.cancel([*futures, *held.values()])


def _result(future: Any, task: Task) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise DuelsError(
            f"the task {task} ended four workers, the last of them {error.last_worker}: look at its log; "
            "a task that needs more memory than a worker has does this"
        ) from None
    except OSError as error:
        if future.status != "error":
            raise
        raise DuelsError(f"the task {task} failed on its worker: {error}") from error


@contextlib.contextmanager
def dask_client(executor: Any) -> Iterator[Any]:
    """A Dask client as it is, or one connected to the address of a scheduler for as long as it is needed."""
    with needs_extra("dask", "running on a cluster"):
        from distributed import Client
    if isinstance(executor, Client):
        yield executor
        return
    if not isinstance(executor, str):
        raise InvalidInput(
            f"executor is {executor!r}: expected a dask.distributed.Client, its address or None for threads"
        )
    try:
        client = Client(executor, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(f"no Dask scheduler answers at {executor!r}: {said}") from None
    try:
        yield client
    finally:
        with _unlogged("distributed.client"), contextlib.suppress(Exception):  # there may be no scheduler to part from
            client.close()


@contextlib.contextmanager
def _unlogged(name: str) -> Iterator[None]:
    """Without that logger's messages: the error says what happened."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _held(problem: Any) -> Any:
    return problem


def _on_worker(task: Task, problem: Any, expected: str) -> tuple[pl.DataFrame | None, dict[str, str]]:
    if version() != expected:
        raise DuelsError(f"a Dask worker has duels {version()}, expected {expected} as here: install the same version")
    task = task if problem is None else replace(task, problem=problem)
    return task.play(threading.Event()), machine()
