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
from subprocess import PIPE
from typing import cast

from ..engine import compiling
from ..errors import DuelsError, InvalidInput
from ..policies import Policy
from ..policies import policy as find_policy
from ..storage.batches import Packed, pack
from ..votes.files import read_votes
from ..votes.names import imported_name
from .player import Player, is_built_in

LARGE = 300_000  # bytes of votes that are worth a process
AT_ONCE = 2  # processes
HORIZON = 1000  # for policies that need one; the compiled code does not depend on it
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_compiled: set[str] = set()
_at_once = threading.Semaphore(AT_ONCE)
_running: set[subprocess.Popen[bytes]] = set()


class ChildFailed(DuelsError):
    """A child process ended without an answer."""


def read_packed(content: bytes) -> Packed:
    """Read the votes of a file and pack them; a child process does it for large files.

    Raises:
        InvalidInput: If they cannot be read.
        ChildFailed: If the child process ended early.
    """
    return _votes(content) if len(content) <= LARGE else cast(Packed, _run("votes", content))


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


def _votes(content: bytes) -> Packed:
    return pack(read_votes(content), imported_name)


def _policy(content: bytes) -> None:
    policy = find_policy(content.decode())
    Player(policy, 3, HORIZON if policy.needs_horizon else None, 0).compile()


TASKS: dict[str, Callable[[bytes], object]] = {"votes": _votes, "policy": _policy}

if __name__ == "__main__":
    _main()
