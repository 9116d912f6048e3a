"""The progress of a run: a line on a terminal, or one at the end."""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import format_count
from ...judges.questions import Judge
from ...judges.terminal import TerminalJudge
from .ledger import Limits, Spent
from .result import JudgeResult, money

if TYPE_CHECKING:
    from .run import Run

EVERY = 1.0  # seconds between two looks
BUSY = 0.1  # share of the time that looking may take
NAME = 8  # columns that the leader's name has at least


class Shown:
    """Shows nothing."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def update(self, run: "Run") -> None:
        """Show how far a run is."""

    def end(self, result: Any) -> None:
        """Show that it has ended."""


class LastLine(Shown):
    """Shows one line at the end."""

    def end(self, result: JudgeResult) -> None:
        found = result.winner
        what = "no winner yet" if found is None else f"{found} is the winner"
        print(f"{format_spent(result.spent)}: {what} ({result.ended})", file=sys.stderr)


class Line(Shown):
    """One line on a terminal: calls, cost, who leads, how sure that is, and what is left."""

    def __init__(self, status: Any, limits: Limits) -> None:
        self._status, self._limits = status, limits
        self._begun, self._before = time.monotonic(), -1
        self._next = self._begun + EVERY

    def say(self, line: str) -> None:
        self._status.console.print(line, markup=False, highlight=False)

    def update(self, run: "Run") -> None:
        now = time.monotonic()
        if self._before < 0:
            self._before = run.ledger.calls - 1  # those of earlier runs
        if now < self._next:
            return
        rate = (run.ledger.calls - self._before) / max(now - self._begun, 1e-9)
        self._status.update(self._text(run, rate))
        ended = time.monotonic()
        self._next = ended + max(EVERY, (ended - now) / BUSY)

    def _text(self, run: "Run", rate: float) -> Any:
        from rich.text import Text

        spent, forecast, verdict = run.ledger.total(), run.study.forecast(), run.study.verdict()
        chances, left = (
            {one.arm: one.chance for one in forecast.chances},
            self._calls_left(run, forecast.answers_median),
        )
        name = verdict.leader or forecast.chances[0].arm
        chance = ">99%" if chances.get(name, 0.0) > 0.99 else f"{chances.get(name, 0.0):.0%}"
        sure, after = f" leads ({chance} sure)", [""]
        if left:
            each = spent.cost / max(spent.calls - spent.unstored, 1)  # those in progress have not said their cost
            cost = f"{money(each * left)}, " if spent.cost else ""
            rest = f"{cost}{_duration(left / max(rate, 1e-9))} left"
            after = [f" · about {format_count(left, 'call')}, {rest}", f" · about {rest}"]
        return Text(_fit_line(f"{format_spent(spent)} · ", name, sure, after, self._status.console.width - 3))

    def _calls_left(self, run: "Run", answers: int | None) -> int | None:
        """How many calls are left, likely until the verdict and at most until a limit."""
        tally, ledger = run.study.tally(), run.ledger
        asked = int(tally.wins.sum() + tally.ties.sum() // 2)
        bounds = [] if answers is None else [float(answers)]
        if tally.items is not None:
            arms = int(tally.active.sum())
            bounds.append(arms * (arms - 1) // 2 * tally.items - asked)
        spent = ledger.total()
        each = max(spent.calls - spent.unstored, 1) / max(asked, 1)  # more than 1 with both orders, retries or skips
        bounds = [bound * each for bound in bounds]
        if self._limits.calls is not None:
            bounds.append(self._limits.calls - ledger.calls)
        if self._limits.cost is not None:
            bounds.append(ledger.calls_in(self._limits.cost - ledger.cost))
        least = min(bounds, default=math.inf)
        return None if least == math.inf else max(round(least), 0)


def _fit_line(before: str, name: str, sure: str, after: Sequence[str], width: int) -> str:
    """The first of some endings with which a line fits; otherwise the last one, and a shorter name."""
    from rich.cells import cell_len

    for end in after:
        if cell_len(text := f"{before}{name}{sure}{end}") <= width:
            return text
    room = max(width - cell_len(f"{before}{sure}{after[-1]}"), NAME)
    return _cut_text(f"{before}{_cut_text(name, room)}{sure}{after[-1]}", width)


def _cut_text(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def format_spent(spent: Spent) -> str:
    """Return calls and cost as text."""
    return format_count(spent.calls, "call") + (f" · {money(spent.cost)}" if spent.cost else "")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Shows(NamedTuple):
    """How the progress of a run is shown."""

    line: "type[Line]" = Line  # on a terminal
    last: type[Shown] = LastLine  # elsewhere, at the end


@contextmanager
def show_progress(
    progress: bool | None, limits: Limits, judges: Iterable[Judge] = (), shows: Shows | None = None
) -> Iterator[Shown]:
    """Show the progress of a run while a block runs.

    Args:
        progress: Whether to show it; None means on a terminal only. Elsewhere there is one line, at the end.
        limits: Of the run.
        judges: Of the run. If one is a person at this terminal, nothing may be written over the questions.
        shows: How it is shown.
    """
    shows = shows or Shows()
    asks_here = any(isinstance(one.function, TerminalJudge) for one in judges)
    if asks_here or not sys.stderr.isatty() or progress is False:
        yield shows.last() if progress and not asks_here else Shown()
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield shows.line(status, limits)
