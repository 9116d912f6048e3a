"""Work on threads: one task after another, with progress, and an end at the first error or Ctrl-C."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

import numpy as np

from .progress import bar


def cores() -> int:
    """How many threads make sense here."""
    return len(os.sched_getaffinity(0))


def in_threads(
    task: Callable[[int, threading.Event, Callable[[float], None]], None],
    count: int,
    jobs: int,
    progress: bool | None,
    title: str,
    weights: Sequence[float] | None = None,
) -> None:
    """Do tasks 0 … count − 1; each is told its number, an event that asks it to end, and how to say its share done.

    `weights` say how much of the whole each task is; by default all are alike.
    """
    stop = threading.Event()
    shares = np.zeros(count)
    weights = weights if weights is not None else [1.0] * count

    def one(number: int) -> None:
        task(number, stop, lambda share: shares.__setitem__(number, share))

    with bar(progress, title) as show, ThreadPoolExecutor(min(jobs, count)) as pool:
        waiting: set[Future] = {pool.submit(one, number) for number in range(count)}
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
