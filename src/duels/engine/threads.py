"""Tasks on threads, with a progress bar; the first error or Ctrl-C ends them all."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

import numpy as np

from ..checks import check_int
from .progress import bar


def thread_count(jobs: int | None) -> int:
    """Return the number of threads to use: `jobs`, or one per available core if it is None.

    Raises:
        InvalidInput: If `jobs` is not a whole number of at least 1.
    """
    return len(os.sched_getaffinity(0)) if jobs is None else check_int("jobs", jobs, 1)


def in_threads(
    task: Callable[[int, threading.Event, Callable[[float], None]], None],
    count: int,
    jobs: int,
    progress: bool | None,
    title: str,
    weights: Sequence[float] | None = None,
) -> None:
    """Run tasks 0 … count − 1 on threads.

    Args:
        task: Called with the task's number, an event that is set when it should end early, and a function that takes
            the fraction of the task that is done.
        count: The number of tasks.
        jobs: The number of threads.
        progress: Whether to show a progress bar; None means on a terminal only.
        title: The title of the progress bar.
        weights: The relative size of each task, for the progress bar; by default all are equal.
    """
    stop = threading.Event()
    shares = np.zeros(count)
    weights = weights if weights is not None else [1.0] * count

    def one(number: int) -> None:
        task(number, stop, lambda share: shares.__setitem__(number, share))

    with bar(progress, title) as show, ThreadPoolExecutor(min(jobs, count)) as pool:
        waiting: set[Future[None]] = {pool.submit(one, number) for number in range(count)}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
                show(float(np.average(shares, weights=weights)))
                for future in done:
                    future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
