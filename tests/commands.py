"""The command `duels` without a process of its own: starting Python takes longer than most commands."""

import contextlib
import fcntl
import functools
import io
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
import warnings
from typing import NamedTuple
from unittest import mock

import typer.main

from duels.cli import main
from duels.storage import storage

# Typer makes all commands anew at every call, which takes longer than most of them.
commands_made_once = functools.cache(typer.main.get_command)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def duels_command(*arguments, cwd=None, stdin="", environment=None, together=False, out=None):
    """What `duels …` prints and its exit code; `together` puts standard error in its place on standard output.

    out: a stream to print to instead.
    """
    out = out or io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = out if together else io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    given = {"COLUMNS": "80"} | (environment or {})
    opened = set(storage._storages)
    with (
        contextlib.chdir(cwd or os.getcwd()),
        mock.patch.object(typer.main, "get_command", commands_made_once),
        mock.patch.dict(os.environ, {key: value for key, value in given.items() if value is not None}),
        mock.patch.multiple(
            sys, argv=["duels", *map(str, arguments)], stdin=io.TextIOWrapper(io.BytesIO(stdin.encode()))
        ),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        for name in (name for name, value in given.items() if value is None):
            os.environ.pop(name, None)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        finally:  # as a process does when it ends
            for url in set(storage._storages) - opened:
                storage._storages.pop(url).close()
    return Done(code, _text(out), "" if together else _text(err))


def in_terminal(width, *arguments, **more):
    """What `duels …` shows if its standard output is a pseudo-terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    shown = bytearray()

    def read():
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := os.read(ours, 4096):
                shown.extend(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    environment = {"COLUMNS": None, "LINES": None} | more.pop("environment", {})
    try:
        with open(theirs, "w", encoding="utf-8") as out, mock.patch.object(sys, "__stdout__", out):
            done = duels_command(*arguments, out=out, environment=environment, **more)
    finally:
        reader.join(60)
        os.close(ours)
    return Done(done.returncode, shown.decode().replace("\r\n", "\n"), done.stderr)


def _text(stream):
    stream.flush()
    return stream.buffer.getvalue().decode() if isinstance(stream.buffer, io.BytesIO) else ""


class Person:
    """The other end of the terminal that `duels …` runs in."""

    def __init__(self, *arguments, width=80):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-m", "duels", *arguments]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}
        )
        os.close(theirs)
        self.seen = ""

    def until(self, text):
        """Read until this was shown; return what was shown since the last call."""
        end = time.monotonic() + 30
        while text not in self.seen:
            assert select.select([self.ours], [], [], max(end - time.monotonic(), 0))[0], f"no {text!r}: {self.seen!r}"
            self.seen += os.read(self.ours, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def press(self, key):
        os.write(self.ours, key.encode())

    def end(self):
        """All that is shown until the end, and the exit code."""
        try:
            while part := os.read(self.ours, 65536):
                self.seen += part.decode("utf-8", "replace").replace("\r\n", "\n")
        except OSError:  # EIO: the program has ended
            pass
        os.close(self.ours)
        return self.seen, self.process.wait(30)
