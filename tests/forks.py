"""`duels` as a process of its own that starts at once: forked from one process that has imported everything.

Importing the server takes a second, and the tests start dozens. Each is still a process with its own descriptors,
environment, folder and exit code. Only the start is not that of `python -m duels`, which other tests check.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

MODULES = (
    *("alembic.command", "alembic.config", "duels.cli", "duels.server.serving", "duels.storage.database"),
    *("sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql", "uvicorn.loops.auto", "uvicorn.lifespan.on"),
    "anyio._backends._asyncio",
)
LARGEST = 200_000  # bytes of a message


class Forks:
    """The process that forks; it ends with the one that made it."""

    def __init__(self):
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._lock, self._ended = threading.RLock(), {}

    def start(self, *arguments, environment):
        """Run `duels` with these arguments and this environment in the current folder."""
        readers, writers = zip(os.pipe(), os.pipe())
        sent = json.dumps({"arguments": arguments, "environment": environment, "folder": os.getcwd()}).encode()
        assert len(sent) < LARGEST
        with self._lock:
            socket.send_fds(self._channel, [sent], writers)
            for one in writers:
                os.close(one)
            while (pid := self._receive()) is None:
                pass
        return Fork(self, pid, *(os.fdopen(one, encoding="utf-8") for one in readers))

    def status(self, pid, patience=0.0):
        """The exit code of a process, or None if it is still running after so many seconds."""
        end = time.monotonic() + patience
        with self._lock:
            while pid not in self._ended:
                if not select.select([self._channel], [], [], max(0.0, end - time.monotonic()))[0]:
                    return None
                self._receive()
            return self._ended[pid]

    def _receive(self):
        """The next process that was started, or None where one has ended instead."""
        message = json.loads(self._channel.recv(LARGEST))
        if "ended" in message:
            self._ended[message["ended"]] = os.waitstatus_to_exitcode(message["status"])
        return message.get("started")

    def close(self):
        self._channel.close()
        self._process.wait(30)


class Fork:
    """What tests use of `subprocess.Popen`."""

    def __init__(self, forks, pid, stdout, stderr):
        self.pid, self.stdout, self.stderr, self.returncode, self._forks = pid, stdout, stderr, None, forks

    def poll(self):
        if self.returncode is None:
            self.returncode = self._forks.status(self.pid)
        return self.returncode

    def wait(self, timeout=600.0):
        if self.returncode is None:
            self.returncode = self._forks.status(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("duels", timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _fork_on_demand(channel):
    """Fork for each message; returns in the new processes."""

    def note(*_):
        with contextlib.suppress(ChildProcessError, OSError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                channel.send(json.dumps({"ended": ended[0], "status": ended[1]}).encode())

    signal.signal(signal.SIGCHLD, note)
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, LARGEST, 2)
        if not message:
            os._exit(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where libraries have threads
            pid = os.fork()
        if pid == 0:
            break
        for one in descriptors:
            os.close(one)
        channel.send(json.dumps({"started": pid}).encode())
    channel.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, one in enumerate(descriptors, 1):
        os.dup2(one, number)
        os.close(one)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    wanted = json.loads(message)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    sys.argv[1:] = wanted["arguments"]


if __name__ == "__main__":
    for _name in MODULES:
        __import__(_name)
    from duels.cli import main

    gc.collect()
    gc.freeze()
    _fork_on_demand(socket.socket(fileno=int(sys.argv[1])))
    main()
