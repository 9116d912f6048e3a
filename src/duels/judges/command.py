"""A program as a judge: a question on standard input, a word on standard output."""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal

from ..errors import InvalidInput, shorten
from .arguments import check_criteria, check_timeout
from .questions import ANSWERS, Answer, JudgeError, clean

KEPT = 65536  # bytes of a program's output that are kept: the last ones
MESSAGE = 300  # characters of its error
GRACE = 5.0  # seconds for a killed program's pipes to close


def command(line: str, *, criteria: str | None = None, timeout: float = 120.0) -> "CommandJudge":
    """Make a judge of a program, which is started for each question.

    Args:
        line: The program and its arguments, such as `python judge.py`; quotes work as in a shell, but no shell runs.
            For each question it reads one line of JSON with `prompt`, `left`, `right` and `criteria` from standard
            input. The last line that it prints is its answer: left, right, tie, both_bad, skip, or the name of one of
            the two arms. What it prints before that is kept as a note. An exit code other than 0 is a failure.
        criteria: What makes an output better; passed on to the program.
        timeout: Seconds after which the program, and all that it started, is killed. That is a failure.

    Returns:
        A function of `(prompt, left, right)` that returns an `Answer`.

    Raises:
        InvalidInput: If there is no such program, or another argument cannot be used.

    Example:
        >>> judge = command("python judge.py --strict", criteria="The shorter output is better.")
        >>> judge
        command('python judge.py --strict')
    """
    try:
        words = shlex.split(line) if isinstance(line, str) else []
    except ValueError as error:
        raise InvalidInput(f"command is {shorten(line)}, which cannot be split into words: {error}") from None
    if not words:
        raise InvalidInput(
            f"command is {shorten(line)}: expected a program and its arguments, such as 'python judge.py'"
        )
    if shutil.which(words[0]) is None:
        raise InvalidInput(f"there is no program {shorten(words[0])}: check the name, and that it may be run")
    return CommandJudge(words, check_criteria(criteria), check_timeout(timeout))


class CommandJudge:
    """A judge made by `command`."""

    takes_images = False  # its input is text

    def __init__(self, words: list[str], criteria: str | None, timeout: float) -> None:
        self._words, self._criteria, self._timeout = words, criteria, timeout

    def __repr__(self) -> str:
        return f"command({shlex.join(self._words)!r})"

    @property
    def identity(self) -> str:
        """The command and the criteria."""
        return repr((self._words, self._criteria))

    async def __call__(self, prompt: str | None, left: str, right: str) -> Answer:
        """Run the program."""
        question = {"prompt": prompt, "left": left, "right": right, "criteria": self._criteria}
        code, out, err = await self._run(json.dumps(question).encode() + b"\n")
        if code != 0:
            ended = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
            raise JudgeError(f"{self._words[0]} {ended}: {err.strip()[-MESSAGE:] or 'it says nothing about it'}")
        before, _, last = out.strip().rpartition("\n")
        word = last.strip()
        return Answer(word.lower() if word.lower() in ANSWERS else word, before.strip() or None)

    async def _run(self, data: bytes) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        process = await self._start()
        try:
            async with asyncio.timeout(self._timeout):
                out, err, _ = await asyncio.gather(_tail(process.stdout), _tail(process.stderr), _feed(process, data))
                return await process.wait(), clean(out, KEPT), clean(err, KEPT)
        except TimeoutError:
            raise JudgeError(
                f"{self._words[0]} did not answer within {self._timeout:g} seconds, and was killed"
            ) from None
        finally:
            await _kill(process)

    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        start = asyncio.ensure_future(
            asyncio.create_subprocess_exec(*self._words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        )
        try:
            return await asyncio.shield(start)
        except asyncio.CancelledError:  # a program that has half started cannot be ended
            with contextlib.suppress(OSError):
                await _kill(await start)
            raise
        except OSError as error:
            gone = isinstance(error, FileNotFoundError | PermissionError)
            raise JudgeError(f"{self._words[0]} cannot be started: {error.strerror}", can_retry=not gone) from None


async def _tail(stream: asyncio.StreamReader | None) -> str:
    """Read all, keep the end."""
    kept = b""
    while stream is not None and (part := await stream.read(KEPT)):
        kept = (kept + part)[-KEPT:]
    return kept.decode("utf-8", "replace")


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a program need not read
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End a program that still runs, and all that it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await process.wait()
