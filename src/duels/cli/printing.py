"""What the command prints: tables for people, JSON and CSV for programs."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer

from ..errors import DuelsError, InvalidInput
from ..files import safe_cell


class Interrupted(DuelsError):
    """Ctrl-C, with what is to be said about it."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Keeps what Ctrl-C is noted with, which typer would lose: where finished work is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("; ".join(["interrupted", *getattr(error, "__notes__", ())])) from None


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]
ConfidenceOption = Annotated[float, typer.Option(help="The chance that no verdict is ever wrong.")]
SeedOption = Annotated[str, typer.Option(help="Where all randomness comes from.")]
JobsOption = Annotated[int | None, typer.Option(help="Threads; by default one per core.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def number(what: str, text: str) -> int:
    try:
        number = Decimal(text.replace(",", ""))
        if number.adjusted() > 40 or number != int(number):
            raise ValueError
        return int(number)
    except (ArithmeticError, ValueError):
        raise InvalidInput(f"{what} is {text[:40]!r}: expected a whole number such as 100000 or 1e6") from None


def print_rows(rows: Sequence[dict[str, Any]], format: Format) -> None:
    if format is Format.json:
        print(json.dumps(list(rows), indent=2, ensure_ascii=False))
    elif format is Format.csv:
        import csv

        writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: safe_cell(plain(value)) for key, value in row.items()} for row in rows)
    else:
        print_table([{key: plain(value) for key, value in row.items()} for row in rows])


def plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def print_table(rows: Iterable[dict[str, str]], spare: Sequence[str] = ()) -> None:
    """A table for people; where the terminal is too narrow, the `spare` columns go, first named first."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 240  # in a pipe nothing needs to fit
    rows = list(rows)
    empty = [key for key in rows[0] if not any(row[key] for row in rows)]
    left_out: set[str] = set()
    for key in [*empty, *spare]:
        widths = [max(len(key), *(len(row[key]) for row in rows)) + 3 for key in rows[0] if key not in left_out]
        if sum(widths) > console.width:
            left_out.add(key)
    rows = [{key: value for key, value in row.items() if key not in left_out} for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for key in rows[0]:
        number = all(row[key][:1].isdigit() or not row[key] for row in rows)
        wrap = max(len(row[key]) for row in rows) > 24
        table.add_column(
            key.replace("_", " "), justify="right" if number else "left", overflow="fold", no_wrap=not wrap
        )
    for row in rows:
        table.add_row(*row.values())
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines() if line.strip()))
