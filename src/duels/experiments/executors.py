"""Where the tasks of an experiment run: on threads of this process (`simulation.on_threads`) or on a Dask cluster."""

import contextlib
import logging
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..engine.progress import bar
from ..errors import DuelsError, InvalidInput, format_count, needs_extra
from ..preference import PreferenceMatrix
from ..provenance import machine, version
from ..results import Results
from ..simulation import Done, Environment, Task

if TYPE_CHECKING:
    from distributed import Client, Future

STEPS_PER_TASK = 45_000_000  # about a second of work
WHOLE = 1_000_000  # steps that are not worth splitting
PIECES = 8  # tasks per policy, problem and horizon, at least, if there is enough work
PATIENCE = "10s"  # how long a scheduler may take to answer


def pieces(runs: int, horizon: int) -> list[range]:
    """Split runs into tasks of about a second: few enough to keep overhead low, enough to keep all cores busy."""
    piece = runs
    if runs * horizon > WHOLE:
        piece = max(1, min(STEPS_PER_TASK // horizon, math.ceil(runs / PIECES)))
    return [range(start, min(start + piece, runs)) for start in range(0, runs, piece)]


def shard_of(tasks: list[Task], shard: str | None) -> list[Task]:
    """Return the tasks of a shard.

    Args:
        tasks: All tasks of the experiment.
        shard: `i/n` for every n-th task, starting with the i-th; None for all tasks.

    Raises:
        InvalidInput: If the shard is not of this form, or there are more shards than tasks.
    """
    if shard is None:
        return tasks
    mine, slash, count = str(shard).partition("/")
    if not (slash and mine.isdecimal() and count.isdecimal() and 1 <= int(mine) <= int(count)):
        raise InvalidInput(f"shard is {shard!r}: expected i/n, such as 2/5 for the second of five")
    if int(count) > len(tasks):
        raise InvalidInput(
            f"shard is {shard!r}, but the work has only {format_count(len(tasks), 'task')}: "
            "use at most that many shards"
        )
    return tasks[int(mine) - 1 :: int(count)]


def on_dask(tasks: Sequence[Task], done: Done, client: "Client", progress: bool | None, title: str) -> None:
    """Run tasks on a Dask cluster, the longest first. The scheduler moves the tasks of a lost worker to another one.

    Args:
        tasks: The work.
        done: Called with each finished task, its tables and the worker's machine.
        client: A client of the cluster.
        progress: Whether to show a bar; None means on a terminal only.
        title: The bar's title.

    Raises:
        DuelsError: If a task fails, ends its workers, or the scheduler is lost.
    """
    from distributed import CancelledError, as_completed

    tasks = sorted(tasks, key=lambda task: -task.steps)
    environments: dict[int | None, Future[Environment | None]] = {}
    futures: dict[Future[tuple[Results, dict[str, str]]], Task] = {}
    try:
        with bar(progress, title) as show:
            for task in tasks:
                sent, key = task, None
                if not isinstance(task.problem, PreferenceMatrix):
                    # An environment may be large: it is sent once, as a task, which is repeated if its worker dies.
                    sent, key = replace(task, problem=None), id(task.problem)
                    environments[key] = environments.get(key) or client.submit(_same, task.problem, pure=False)
                # pure=False: the scheduler must not look for equal calls, each task runs once.
                futures[client.submit(_on_worker, sent, environments.get(key), version(), pure=False)] = task
            total, finished = sum(task.steps for task in tasks), 0
            for future in as_completed(list(futures)):
                task = futures[future]
                played, there = _result(future, task)
                done(task, played, there)
                finished += task.steps
                show(finished / total)
                future.release()
    except CancelledError:
        raise DuelsError("the Dask cluster dropped the tasks: is its scheduler still there?") from None
    except OSError as error:
        raise DuelsError(f"the Dask cluster cannot be reached ({error}): is its scheduler still there?") from None
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.cancel([*futures, *environments.values()])


def _result(future: "Future[tuple[Results, dict[str, str]]]", task: Task) -> tuple[Results, dict[str, str]]:
    from distributed import KilledWorker

    try:
        result: tuple[Results, dict[str, str]] = future.result()
        return result
    except KilledWorker as error:
        raise DuelsError(
            f"the task {task} ended {format_count(error.allowed_failures + 1, 'worker')}, the last of them "
            f"{error.last_worker}: look at its log; "
            "a task that needs more memory than a worker has does this"
        ) from None
    except OSError as error:
        if future.status != "error":
            raise
        raise DuelsError(f"the task {task} failed on its worker: {error}") from error


@contextlib.contextmanager
def dask_client(executor: object) -> Iterator["Client"]:
    """Yield a Dask client: the given one, or one that is connected to the given address and closed at the end.

    Args:
        executor: A `dask.distributed.Client` or the address of a scheduler.

    Raises:
        MissingExtra: If Dask is not installed.
        InvalidInput: If no scheduler answers.
    """
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
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(f"no Dask scheduler answers at {executor!r}: {reason}") from None
    try:
        yield client
    finally:
        with _silence_logs("distributed.client"), contextlib.suppress(Exception):  # the scheduler may be gone
            client.close()


@contextlib.contextmanager
def _silence_logs(name: str) -> Iterator[None]:
    """Silence a logger whose messages would repeat the error."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _same(problem: Environment | None) -> Environment | None:
    return problem


def _on_worker(task: Task, problem: Environment | None, expected: str) -> tuple[Results, dict[str, str]]:
    if version() != expected:
        raise DuelsError(f"a Dask worker has duels {version()}, expected {expected} as here: install the same version")
    task = task if problem is None else replace(task, problem=problem)
    played = task.play(threading.Event())
    assert played is not None  # nothing stops it
    return played, machine()
