"""Slow work in child processes, so that it does not hold up the threads of a server.

Reading a million votes, compiling a policy or drawing a chart holds Python's global lock for seconds, and a file that
somebody made for it takes any time and memory. So a child process does it, with limits of both. It runs functions of
modules, and sends back what they return.
"""

import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Generic, TypeVar, cast

from ..engine import compiling
from ..errors import DuelsError, InvalidInput
from ..policies import Policy, load_policy
from ..storage.batches import pack
from ..study.answers.past_votes import PastVotes
from ..study.state.policy_state import PolicyState, is_built_in
from ..study.stats.paths import find_paths_in
from ..votes.names import name_imported
from ..votes.parse_columns import MAGIC, scan
from ..votes.readers import read_votes

LARGE = 300_000  # bytes of an upload that are worth a process …
LARGE_JSON = 100_000  # … and of JSON, where each row may have columns of its own
MOST_ROWS = 2_000_000  # of an uploaded Parquet file …
MOST_TEXT = 32_000_000  # … and characters of different names in it
MOST_MEMORY = 2 << 30  # bytes that a child process may take, beyond those at its start
PATIENCE = 10  # times its CPU seconds, after which a process that waits for the processor is ended too
IDLE = 60.0  # seconds that a process is kept for further work
HORIZON = 1000  # for policies that need one; the compiled code does not depend on it
T = TypeVar("T")
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_compiled: set[str] = set()
_running: set[subprocess.Popen[bytes]] = set()


class ChildFailed(DuelsError):
    """A child process ended without an answer: it reached a limit, or was stopped."""


class Children:
    """Child processes for one kind of work.

    Args:
        most: How many work at the same time; other work waits.
        seconds: CPU seconds that one piece of work may take.
        keeps: Whether a process is kept for further work, which saves the second that it takes to start.
    """

    def __init__(self, most: int, seconds: int, keeps: bool = False) -> None:
        self.seconds, self.keeps = seconds, keeps
        self.free = threading.Semaphore(most)
        self._idle: list[subprocess.Popen[bytes]] = []

    def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a function of a module in a child process; see `Work.run`."""
        return Work(self, function, *arguments).run()

    def take(self) -> tuple[subprocess.Popen[bytes], bool]:
        """Return a process, and whether it has worked before."""
        with suppress(IndexError):  # another thread was faster
            while self._idle:
                child = self._idle.pop()
                if child.poll() is None:
                    _running.add(child)
                    return child, True
                self.leave(child, works=False)  # it ended because nobody had needed it
        command = [sys.executable, "-P", "-m", __name__]
        child = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        _running.add(child)
        return child, False

    def leave(self, child: subprocess.Popen[bytes], works: bool) -> None:
        """Keep a process for further work, or end it."""
        _running.discard(child)
        if works and self.keeps:
            self._idle.append(child)
            return
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            with suppress(OSError):  # what it did not read any more
                stream.close()  # type: ignore[union-attr]

    def end_idle(self) -> None:
        """End the processes that are kept."""
        while self._idle:
            self.leave(self._idle.pop(), False)


class Work(Generic[T]):
    """A function that runs once in a child process, and may be stopped before its end by another thread."""

    def __init__(self, children: Children, function: Callable[..., T], *arguments: object) -> None:
        self._children, self._call = children, (function, arguments, children.seconds)
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> T:
        """Return what the function returns.

        Raises:
            InvalidInput: If the function raises it.
            ChildFailed: If the process ended early.
        """
        with self._children.free:
            for _ in range(2):
                child, worked_before = self._children.take()
                answer = self._ask(child)
                self._children.leave(child, answer is not None)
                if answer is not None or self._stopped or not worked_before or child.returncode:
                    break  # else it ended because nobody had needed it, just when this began
        if answer is None:
            raise ChildFailed(f"a child process ended early ({self._call[0].__name__}, exit code {child.returncode})")
        kind, value = answer
        if kind != "value":
            raise (InvalidInput if kind == "refused" else ChildFailed)(value)
        return cast(T, value)

    def stop(self) -> None:
        """End the process; `run` then raises `ChildFailed`."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child.kill()

    def _ask(self, child: subprocess.Popen[bytes]) -> tuple[str, Any] | None:
        """The answer of a process; None if it ended."""
        with self._lock:
            if self._stopped:
                return None
            self._child = child
        timer = threading.Timer(PATIENCE * self._children.seconds, child.kill)
        timer.daemon = True
        timer.start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            pickle.dump(self._call, child.stdin)
            child.stdin.flush()
            return cast(tuple[str, Any], pickle.load(child.stdout))
        except (OSError, EOFError, pickle.UnpicklingError):
            with suppress(subprocess.TimeoutExpired):
                child.wait(1)  # for its exit code
            return None
        finally:
            timer.cancel()
            with self._lock:
                self._child = None


UPLOADS = Children(2, 60)
POLICIES = Children(1, 600)
PAGES = Children(2, 1, keeps=True)


def is_large(content: bytes) -> bool:
    """Return whether an upload is read in a child process. A small Parquet file may hold billions of rows."""
    most = LARGE_JSON if content[:100].lstrip()[:1] in (b"{", b"[") else LARGE
    return content.startswith(MAGIC) or len(content) > most


def too_much(what: str) -> InvalidInput:
    """Return the error for an upload that cannot be read within the limits of a child process."""
    return InvalidInput(
        f"{what} take more than {MOST_MEMORY >> 30} GiB of memory or {UPLOADS.seconds} seconds to read: send fewer of "
        "them at once"
    )


def read_packed(content: bytes) -> PastVotes:
    """Read the votes of a file and pack them; a child process does it for large files, and for all Parquet files.

    Raises:
        InvalidInput: If they cannot be read, or not within the limits of a child process.
    """
    if not is_large(content):
        return pack_votes(content)
    try:
        return UPLOADS.run(pack_votes, content)
    except ChildFailed:
        raise too_much("the votes") from None


def compile_policy(policy: Policy) -> None:
    """Have a child process fill the cache on disk; once per policy and process.

    Raises:
        ChildFailed: If the child process ended early.
    """
    name = str(policy)
    if not compiling.is_possible() or not is_built_in(policy):  # code of users is never cached on disk
        return
    with _locks[name]:
        if name not in _compiled:
            _compiled.add(name)  # if this fails, the server itself compiles it the next time
            POLICIES.run(fill_cache, name)


def stop() -> None:
    """End the child processes, when the server ends."""
    for child in list(_running):
        child.kill()
    for children in (UPLOADS, POLICIES, PAGES):
        children.end_idle()


def pack_votes(content: bytes) -> PastVotes:
    """Read the votes of a file and pack them.

    Of Parquet, the number of rows and the length of names are limited: a few kilobytes may hold any number.
    """
    if content.startswith(MAGIC):
        _check_rows(content)
    votes = read_votes(content)
    if content.startswith(MAGIC):
        names = itertools.chain(votes.names, votes.voters.names if votes.voters is not None else ())
        if sum(map(len, names)) > MOST_TEXT:
            raise InvalidInput(
                f"the names in the votes have more than {MOST_TEXT:,} characters: send fewer votes at once"
            )
    return PastVotes(pack(votes, name_imported), find_paths_in(votes))


def _check_rows(content: bytes) -> None:
    import polars as pl

    frame = scan(content, "the votes")
    try:
        rows = int(frame.select(pl.len()).collect().item())  # from the file's end, without reading the rows
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"the votes cannot be read as Parquet: {str(error).partition(chr(10))[0]}") from None
    if rows > MOST_ROWS:
        raise InvalidInput(
            f"the votes have {rows:,} rows: expected at most {MOST_ROWS:,} in one upload of Parquet; send them in "
            "parts, or counts of wins"
        )


def fill_cache(name: str) -> None:
    """Compile a policy, which leaves it in numba's cache on disk."""
    policy = load_policy(name)
    PolicyState(policy, 3, HORIZON if policy.needs_horizon else None, 0).compile()


def _main() -> None:
    """Work as a child process until standard input ends, or nobody needs it for a while."""
    if hasattr(os, "nice"):
        os.nice(5)  # the server's own threads come first
    os.environ["POLARS_MAX_THREADS"] = "2"  # each has its own memory
    _limit_memory()
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # a library that prints must not end up in an answer
    while True:
        idle = threading.Timer(IDLE, os._exit, (0,))
        idle.daemon = True
        idle.start()
        try:
            function, arguments, seconds = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        idle.cancel()
        _limit_time(seconds)
        try:
            answer = "value", function(*arguments)
        except InvalidInput as error:
            answer = "refused", str(error)
        except MemoryError:
            os._exit(1)
        except Exception as error:
            answer = "failed", f"{function.__name__} failed in a child process: {error!r}"
        pickle.dump(answer, out)
        out.flush()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    pages = Path("/proc/self/statm")
    if pages.exists():  # not the address space, of which V8, which draws charts, reserves much that it never uses
        most = int(pages.read_text().split()[5]) * resource.getpagesize() + MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: int) -> None:
    """Let this process be ended when it has used so many more seconds of a processor."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    _main()
