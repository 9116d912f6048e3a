"""Work in a process of its own, so that the threads of a server never wait for it.

Reading a million votes and compiling a policy keep Python's lock for seconds. A child process does them: it reads the
votes and gives them back packed, or leaves the compiled policy in numba's cache on disk.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import defaultdict
from subprocess import PIPE
from typing import Any

from ..errors import DuelsError, InvalidInput
from ..policies import Policy
from ..policies import policy as find_policy
from ..storage.batches import Packed, pack
from ..votes.files import read_votes
from ..votes.names import imported_name
from .player import Player, is_built_in

LARGE = 300_000  # bytes of votes that are worth a process
AT_ONCE = 2  # processes
HORIZON = 1000  # for policies that need one; what is compiled does not depend on it
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_compiled: set[str] = set()
_at_once = threading.Semaphore(AT_ONCE)
_running: set[subprocess.Popen] = set()


class ChildFailed(DuelsError):
    """A child process ended without an answer."""


def read_packed(content: bytes) -> Packed:
    """The votes of a file, packed; large files are read by a child process."""
    return pack(read_votes(content), imported_name) if len(content) <= LARGE else _child("votes", content)


def compile_policy(policy: Policy) -> None:
    """Have a child process fill the cache on disk; one per policy, and once while this process lives."""
    name = str(policy)
    if not is_built_in(policy):  # what is compiled from somebody's own code is never kept on disk
        return
    with _locks[name]:
        if name not in _compiled:
            _compiled.add(name)  # if that fails, the server compiles it by itself the next time
            _child("policy", name.encode())


def stop() -> None:
    """End the child processes: the server ends."""
    for child in list(_running):
        child.kill()


def _child(task: str, content: bytes) -> Any:
    with _at_once:
        child = subprocess.Popen([sys.executable, "-P", "-m", __name__, task], stdin=PIPE, stdout=PIPE, stderr=PIPE)
        _running.add(child)
        try:
            out, said = child.communicate(content)
        finally:
            _running.discard(child)
    if child.returncode:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        raise ChildFailed(f"a child process ended early ({task}, exit code {child.returncode}): {''.join(last)}")
    refused, value = pickle.loads(out)
    if refused:
        raise InvalidInput(value)
    return value


def _main() -> None:
    if hasattr(os, "nice"):
        os.nice(5)  # the server's own threads come first
    content = sys.stdin.buffer.read()
    try:
        answer: tuple[bool, Any] = False, TASKS[sys.argv[1]](content)
    except InvalidInput as error:
        answer = True, str(error)
    sys.stdout.buffer.write(pickle.dumps(answer))


def _votes(content: bytes) -> Packed:
    return pack(read_votes(content), imported_name)


def _policy(content: bytes) -> None:
    policy = find_policy(content.decode())
    Player(policy, 3, HORIZON if policy.needs_horizon else None, 0).compile()


TASKS = {"votes": _votes, "policy": _policy}

if __name__ == "__main__":
    _main()
