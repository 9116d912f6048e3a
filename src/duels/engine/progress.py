"""Progress, on a terminal only: a bar with the time left, or what is being done."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


@contextmanager
def bar(progress: bool | None, title: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar while a block runs.

    Args:
        progress: Whether to show it; None means on a terminal only.
        title: The text before the bar.

    Yields:
        A function that sets the fraction of the work that is done.
    """
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda share: None
        return
    with _progress() as shown:
        task = shown.add_task(title, total=1.0)
        yield lambda share: shown.update(task, completed=share)


def compute_each(parts: Sequence[Callable[[], T]], title: str) -> Iterator[T]:
    """Call functions in order and yield what they return; a bar shows the progress, on a terminal only.

    The bar is hidden while the caller has a result, so that it can be printed.
    """
    if not sys.stderr.isatty():
        yield from (part() for part in parts)
        return
    shown = _progress()
    task = shown.add_task(title, total=len(parts))
    for part in parts:
        with shown:
            found = part()
        shown.advance(task)
        yield found


def _progress() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def show_working(words: str, shown: bool = True) -> Iterator[None]:
    """Show what is being done while a block runs, on a terminal only.

    Args:
        words: What is being done.
        shown: False if it is too quick to be worth showing.
    """
    if not (shown and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(words)):
        yield
