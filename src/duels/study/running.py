"""Which runs of judges have not ended, so that two at once do not pay for the same question.

A run has a token, which the log keeps with each question. It names the machine, by a digest, and the process.
"""

import hashlib
import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 600.0  # seconds after which a run on another machine is taken for dead if a question has no answer
HERE = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
_running: set[str] = set()  # in this process


def new_token() -> str:
    """Return the token of a new run of this process."""
    return f"{HERE}-{os.getpid()}-{secrets.token_hex(4)}"


@contextmanager
def noted_as_running(token: str) -> Iterator[None]:
    """Note that a run of this process goes on while a block runs."""
    _running.add(token)
    try:
        yield
    finally:
        _running.discard(token)


def is_running(token: str, age: float, lease: float) -> bool:
    """Return whether a run may still store the answer to a question.

    Args:
        token: The run's.
        age: How many seconds ago it asked the question.
        lease: The study's: a process that is older may be another one with the same number.
    """
    host, process, _ = token.split("-")
    if host != HERE or os.name != "posix":
        return age < PATIENCE
    if int(process) == os.getpid():
        return token in _running
    try:
        os.kill(int(process), 0)  # sends nothing, and fails if there is no such process
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return age < lease
