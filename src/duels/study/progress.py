"""The progress of a run, on a terminal only."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .outcome import RunResult, money

if TYPE_CHECKING:
    from .run import Limits, Run

EVERY = 1.0  # seconds between two looks


class Shown:
    """Shows nothing but, at the end, one line."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def update(self, run: "Run") -> None:
        """Show how far a run is."""

    def end(self, result: RunResult) -> None:
        """Show that it has ended."""


class Line(Shown):
    """One line on a terminal: calls, cost, who leads, how sure that is, and what is left."""

    def __init__(self, status: Any, limits: "Limits") -> None:
        self._status, self._limits = status, limits
        self._begun, self._looked, self._before = time.monotonic(), 0.0, 0

    def say(self, line: str) -> None:
        self._status.console.print(line, markup=False, highlight=False)

    def update(self, run: "Run") -> None:
        now = time.monotonic()
        if now - self._looked < EVERY:
            return
        if not self._looked:
            self._before = run.ledger.calls - 1
        self._looked = now
        self._status.update(self._text(run, (run.ledger.calls - self._before) / max(now - self._begun, 1e-9)))

    def _text(self, run: "Run", rate: float) -> Any:
        from rich.text import Text

        spent, standing = run.ledger.spent(), run.study.standing()
        best = standing.chances[0]
        parts = [f"{spent.calls:,} calls", money(spent.cost) if spent.cost else ""]
        parts += [f"{best.arm} leads, {best.chance:.0%} likely the best"]
        left = standing.answers_median
        if self._limits.calls is not None:
            left = self._limits.calls - spent.calls if left is None else min(left, self._limits.calls - spent.calls)
        if left:
            cost = f", {money(spent.cost / max(spent.calls, 1) * left)}" if spent.cost else ""
            parts.append(f"about {left:,} calls{cost}, {_duration(left / max(rate, 1e-9))} left")
        return Text(" · ".join(part for part in parts if part))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def shown(progress: bool | None, limits: "Limits") -> Iterator[Shown]:
    """Show the progress of a run while a block runs.

    Args:
        progress: Whether to show it; None means on a terminal only.
        limits: Of the run.
    """
    if not (sys.stderr.isatty() if progress is None else progress):
        yield Shown()
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield Line(status, limits)
