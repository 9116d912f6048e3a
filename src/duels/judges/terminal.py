"""A person at this terminal as a judge."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from .arguments import check_criteria
from .questions import CONTROLS, JudgeError, Undo

if TYPE_CHECKING:
    from rich.console import Console

# As on the voting page.
KEYS = {"\x1b[D": "left", "\x1bOD": "left", "a": "left", "1": "left"}
KEYS |= {"\x1b[C": "right", "\x1bOC": "right", "b": "right", "2": "right"}
KEYS |= {"\x1b[B": "tie", "\x1bOB": "tie", "t": "tie", "x": "both_bad", "s": "skip"}
KEYS |= {"u": "undo", "\x7f": "undo", "\x08": "undo", "q": "quit", "\x03": "quit", "\x04": "quit"}
KEY = re.compile(r"\x1b[\[O][0-9;]*.|\x1b?.", re.DOTALL)
UNFINISHED = re.compile(r"\x1b([\[O][0-9;]*)?")
HINT = "← A is better   → B is better   T tie   X both bad   S skip   U undo   Q quit"
SHOWN = {"left": "A is better", "right": "B is better", "tie": "Tie", "both_bad": "Both bad", "skip": "Skipped"}
SHOWN |= {"undo": "Undo", "quit": "Quit"}
INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")  # they may reorder what is shown
NARROW = 60  # columns; on narrower terminals B is below A


def terminal(criteria: str | None = None) -> "TerminalJudge":
    """Make a judge of the person at this terminal.

    The prompt and both outputs are shown, side by side if there is room. The keys are those of the voting page: left
    arrow, `a` or `1`; right arrow, `b` or `2`; down arrow or `t` for a tie; `x` for both bad; `s` to skip; `u` or
    backspace to take back the last answer; `q` or Ctrl-C to stop.

    Args:
        criteria: What makes an output better; shown above each question.

    Returns:
        An async function of `(prompt, left, right)`. Its `most_at_once` is 1. It raises `Undo` if the last answer is to
        be taken back, and `KeyboardInterrupt` to stop.

    Raises:
        InvalidInput: If standard input and output are not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            "standard input or output is not a terminal: run this in one, or use another judge, such as "
            "duels.judges.openai or duels.judges.command"
        )
    return TerminalJudge(check_criteria(criteria))


class TerminalJudge:
    """A judge made by `terminal`."""

    most_at_once = 1
    takes_images = False

    def __init__(self, criteria: str | None) -> None:
        self._criteria = criteria

    def __repr__(self) -> str:
        return "terminal()"

    @property
    def identity(self) -> str:
        """The criteria; who sits there is not known."""
        return repr(("terminal", self._criteria))

    async def __call__(self, prompt: str | None, left: str, right: str) -> str:
        """Show a question, and wait for a key that answers it."""
        from rich.console import Console

        console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
        descriptor = sys.stdin.fileno()
        with _keys_at_once(descriptor):  # before it is shown: keys that were pressed earlier are not for this question
            _show(console, self._criteria, prompt, left, right)
            action = await _action(descriptor)
        console.print(_safe(console, SHOWN[action]), style="dim")
        if action == "undo":
            raise Undo
        if action == "quit":
            raise KeyboardInterrupt
        return action


def _show(console: "Console", criteria: str | None, prompt: str | None, left: str, right: str) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print()
    if criteria is not None:
        console.print(Text(_safe(console, criteria), style="dim", overflow="fold"))
    console.print(Text(_safe(console, "Which is better?" if prompt is None else prompt), style="bold", overflow="fold"))
    outputs = [Text(_safe(console, output)) for output in (left, right)]
    table = Table(expand=True)
    if console.width >= NARROW:
        for letter in "AB":
            table.add_column(letter, ratio=1, overflow="fold")
        table.add_row(*outputs)
        console.print(table)
    else:
        for letter, output in zip("AB", outputs):
            table = Table(expand=True)
            table.add_column(letter, overflow="fold")
            table.add_row(output)
            console.print(table)
    console.print(Text(_safe(console, HINT), style="dim", overflow="fold"))


def _safe(console: "Console", text: str) -> str:
    """Text that cannot move the cursor, change colors or reorder what is shown, in the terminal's encoding."""
    text = INVISIBLE.sub("", CONTROLS.sub("", text.replace("\r\n", "\n"))).expandtabs(4)
    return text.encode(console.encoding, "replace").decode(console.encoding, "replace")


@contextlib.contextmanager
def _keys_at_once(descriptor: int) -> Iterator[None]:
    """Keys arrive without Enter and are not shown; Ctrl-C is a key. Keys that were pressed before are dropped."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    now = termios.tcgetattr(descriptor)
    now[3] &= ~termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSANOW, now)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def _action(descriptor: int) -> str:
    """Wait for a key that means something. Further keys that arrive with it, as of a paste, are dropped."""
    typed = ""
    while True:
        typed += await _read_key(descriptor)
        if UNFINISHED.fullmatch(typed):
            continue
        for key in KEY.findall(typed):
            if action := KEYS.get(key) or KEYS.get(key.lower()):
                return action
        typed = ""


async def _read_key(descriptor: int) -> str:
    """What was typed since the last call, at least one character."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    with contextlib.suppress(OSError):  # EIO: the terminal is gone
        if typed := os.read(descriptor, 1024):
            return typed.decode("utf-8", "replace")
    raise JudgeError("the terminal was closed", can_retry=False)
