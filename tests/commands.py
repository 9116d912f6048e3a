"""The command `duels` without a process of its own: starting Python takes longer than most commands."""

import contextlib
import io
import os
import sys
import traceback
import warnings
from typing import NamedTuple
from unittest import mock

from duels.cli import main
from duels.study import opening


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def duels_command(*arguments, cwd=None, stdin="", environment=None, together=False):
    """What `duels …` prints and its exit code; `together` puts standard error in its place on standard output."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = out if together else io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    given = {"COLUMNS": "80"} | (environment or {})
    opened = set(opening._opened)
    with (
        contextlib.chdir(cwd or os.getcwd()),
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
            for url in set(opening._opened) - opened:
                opening._opened.pop(url).close()
    return Done(code, _text(out), "" if together else _text(err))


def _text(stream):
    return stream.buffer.getvalue().decode()
