"""Threads for calls that may take long, and a coroutine that Ctrl-C can end."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Threads(Executor):
    """As `ThreadPoolExecutor`, but nobody waits for calls in progress: not its end, and not that of the program.

    Args:
        count: How many calls run at the same time.
        name: What the threads' names start with.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Future[T]:
        """Call a function in a thread."""
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                value = function(*args, **options)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(value)

        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after the calls that were submitted."""
        for _ in self._threads:
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def in_thread(make: Callable[[threading.Event], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a separate thread. The first Ctrl-C asks it to stop, the second ends it at once.

    Args:
        make: Called with an event that is set by the first Ctrl-C; returns the coroutine.

    Returns:
        What the coroutine returns.

    Raises:
        KeyboardInterrupt: After the second Ctrl-C.
    """
    stop, done, outcome = threading.Event(), threading.Event(), dict[str, Any]()  # its value or error
    loop = asyncio.new_event_loop()
    task = loop.create_task(make(stop))

    def work() -> None:
        try:
            outcome["value"] = loop.run_until_complete(task)
        except BaseException as error:
            outcome["error"] = error
        finally:
            loop.close()
            done.set()

    threading.Thread(target=work, name="duels-run", daemon=True).start()
    try:
        done.wait()  # after a Ctrl-C in `join`, a thread may seem to have ended
    except KeyboardInterrupt:
        stop.set()
        _wait_or_leave(done, lambda: loop.call_soon_threadsafe(task.cancel))
    if "error" in outcome:
        raise outcome["error"]
    value: T = outcome["value"]
    return value


def _wait_or_leave(done: threading.Event, cancel: Callable[[], object]) -> None:
    try:
        print("stopping when the calls in progress have ended; Ctrl-C again to leave them", file=sys.stderr, flush=True)
        done.wait()
    except KeyboardInterrupt:
        if not done.is_set():
            cancel()
            done.wait()
        raise
