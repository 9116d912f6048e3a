"""Slow work in a child process, so that it does not hold up the threads of a server.

Reading a million votes or compiling a policy holds Python's global lock for seconds. A child process does it instead:
it returns the votes packed, or leaves the compiled policy in numba's cache on disk.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import cast

from ..engine import compiling
from ..errors import DuelsError, InvalidInput
from ..policies import Policy
from ..policies import policy as find_policy
from ..storage.batches import pack
from ..votes.files import read_votes
from ..votes.frames import MAGIC, scan
from ..votes.names import imported_name
from ..votes.votes import Votes
from .past_votes import PastVotes
from .paths import find_paths_in
from .player import Player, is_built_in

LARGE = 300_000  # bytes of votes that are worth a process
AT_ONCE = 2  # processes
MOST_ROWS = 2_000_000  # of an uploaded Parquet file …
MOST_TEXT = 32_000_000  # … characters of different names in it …
MOST_MEMORY = 2 << 30  # … bytes to read it in …
MOST_SECONDS = 60  # … and CPU seconds
HORIZON = 1000  # for policies that need one; the compiled code does not depend on it
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_compiled: set[str] = set()
_at_once = threading.Semaphore(AT_ONCE)
_running: set[subprocess.Popen[bytes]] = set()


class ChildFailed(DuelsError):
    """A child process ended without an answer."""


def read_packed(content: bytes) -> PastVotes:
    """Read the votes of a file and pack them; a child process does it for large files, and for all Parquet files.

    A small Parquet file may hold billions of rows, or gigabytes of text. Its number of rows, and the memory and time of
    the child process, are therefore limited.

    Raises:
        InvalidInput: If they cannot be read.
        ChildFailed: If the child process ended early.
    """
    if content.startswith(MAGIC):
        try:
            return cast(PastVotes, _run("parquet", content))
        except ChildFailed:
            raise InvalidInput(
                f"the votes take more than {MOST_MEMORY >> 30} GiB of memory or {MOST_SECONDS} seconds to read: send "
                "fewer of them, or counts of wins"
            ) from None
    return _votes(content) if len(content) <= LARGE else cast(PastVotes, _run("votes", content))


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
            _run("policy", name.encode())


def stop() -> None:
    """End the child processes, when the server ends."""
    for child in list(_running):
        child.kill()


def _run(task: str, content: bytes) -> object:
    with _at_once:
        child = subprocess.Popen([sys.executable, "-P", "-m", __name__, task], stdin=PIPE, stdout=PIPE, stderr=PIPE)
        _running.add(child)
        try:
            out, errors = child.communicate(content)
        finally:
            _running.discard(child)
    if child.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        raise ChildFailed(f"a child process ended early ({task}, exit code {child.returncode}): {''.join(last)}")
    refused, value = pickle.loads(out)
    if refused:
        raise InvalidInput(value)
    return cast(object, value)


def _main() -> None:
    if hasattr(os, "nice"):
        os.nice(5)  # the server's own threads come first
    content = sys.stdin.buffer.read()
    try:
        answer: tuple[bool, object] = False, TASKS[sys.argv[1]](content)
    except InvalidInput as error:
        answer = True, str(error)
    sys.stdout.buffer.write(pickle.dumps(answer))


def _votes(content: bytes) -> PastVotes:
    return _pack(read_votes(content))


def _pack(votes: Votes) -> PastVotes:
    return PastVotes(pack(votes, imported_name), find_paths_in(votes))


def _parquet(content: bytes) -> PastVotes:
    _limit_resources()
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
    votes = read_votes(content)
    names = [*votes.names, *(votes.voters.names if votes.voters is not None else ())]
    if sum(map(len, names)) > MOST_TEXT:
        raise InvalidInput(f"the names in the votes have more than {MOST_TEXT:,} characters: send fewer votes at once")
    return _pack(votes)


def _limit_resources() -> None:
    """Limit memory and time of this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    os.environ["POLARS_MAX_THREADS"] = "2"  # each has its own memory
    pages = Path("/proc/self/statm")
    if pages.exists():
        most = int(pages.read_text().split()[0]) * resource.getpagesize() + MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _policy(content: bytes) -> None:
    policy = find_policy(content.decode())
    Player(policy, 3, HORIZON if policy.needs_horizon else None, 0).compile()


TASKS: dict[str, Callable[[bytes], object]] = {"votes": _votes, "parquet": _parquet, "policy": _policy}

if __name__ == "__main__":
    _main()
