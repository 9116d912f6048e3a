"""What the command prints: tables for people, JSON and CSV for programs.

A table fits its terminal without cutting anything. Where it is too wide, headings and text go over several lines, then
spare columns are left out and named below the table, and at last each row becomes a block with one line per column.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

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


def plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


class Column(NamedTuple):
    """A column of a table for people: its heading, and how the fields of a row that it shows are written."""

    head: str
    fields: tuple[str, ...]
    show: Callable[..., str] = plain
    spare: int = 0  # in a narrow terminal the highest are left out first; 0 stays
    least: int = 20  # text may be wrapped to so many columns


def column(
    field: str, head: str = "", show: Callable[..., str] | str = plain, spare: int = 0, least: int = 20
) -> Column:
    """The column of one field; `show` is a function or a format such as `,.1f`, which leaves a missing value empty."""
    written = show if callable(show) else lambda value: "" if value is None else format(value, show)
    return Column(head or field.replace("_", " "), (field,), written, spare, least)


def print_rows(
    rows: Sequence[dict[str, Any]],
    format: Format,
    columns: Sequence[Column] | None = None,
    none: str = "",
    note: str = "",
) -> None:
    """Print rows in the format asked for. JSON and CSV have all fields, a table has the `columns`.

    none: what to say on standard error if there are no rows.
    note: a sentence below a table.
    """
    if format is Format.json:
        print(json.dumps(list(rows), indent=2, ensure_ascii=False))
    elif not rows:
        print(none, file=sys.stderr)
    elif format is Format.csv:
        import csv

        writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: safe_cell(plain(value)) for key, value in row.items()} for row in rows)
    else:
        chosen = columns or [column(key) for key in rows[0]]
        cells = [[one.show(*(row[field] for field in one.fields)) for one in chosen] for row in rows]
        print("\n".join(table_lines(chosen, cells, terminal_width(), note)))


def print_text(text: str) -> None:
    """Print sentences, or lines of a label and a text, which goes on below itself where the terminal is narrow."""
    width = terminal_width()
    if width is None:
        print(text)
        return
    for line in re.sub(r"\n {4,}", " ", text).split("\n"):  # deeply indented lines continue the one before
        label = re.match(r" *\S+(?: \S+)* {2,}| *", line)
        indent = label.end() if label and label.end() <= width - 16 else 0
        for place, part in enumerate(wrapped(line[indent:], width - indent)):
            print((line[:indent] if place == 0 else " " * indent) + part)


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None for a file or a pipe, where nothing needs to fit."""
    if not sys.stdout.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    try:
        known = int(asked) if asked.isdecimal() else 0
        return known or os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


GAP = 3  # spaces between columns; one stands before the first
NUMBER = re.compile(r"[-+±]?\d[\d.,]*(e[-+]?\d+)?%?( [±–] [-+]?\d[\d.,]*%?)?|\d{4}-\d\d-\d\dT[\d:.+Z-]+")
# Where a word may be broken if a line is too short for it: after punctuation, but not within a number.
JOINTS = re.compile(r"(?<=[_/:=])|(?<=[-,;.])(?![\d])")


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, note: str = ""
) -> list[str]:
    """The lines of a table no wider than `width`, a note, and last which columns are left out."""
    noted = wrapped(note, width) if note else []
    shown = list(range(len(columns)))
    widths = _most(columns, rows, shown)
    if width is not None and _taken(widths) > width:
        for leave in _spare(columns, rows):
            if _taken(_least(columns, rows, shown)) > width:
                shown = [k for k in shown if k not in leave]
        least = _least(columns, rows, shown)
        if _taken(least) > width:
            least = _least(columns, rows, shown, 12)
        if _taken(least) > width:
            return [*_blocks(columns, rows, width), *noted]
        widths = _spread(least, _most(columns, rows, shown), width)
    heads = [wrapped(columns[k].head, wide) for k, wide in zip(shown, widths)]
    bodies = [[wrapped(row[k], wide) for k, wide in zip(shown, widths)] for row in rows]
    right = [all(NUMBER.fullmatch(row[k]) or not row[k] for row in rows) for k in shown]
    lines = [*_side_by_side(heads, widths, right), " " + "─" * (_taken(widths) - 1)]
    folded = any(len(cell) > 1 for body in bodies for cell in body)
    apart = folded and any(len(body[0]) > 1 or body[0] == [""] for body in bodies)  # else the first column tells
    for place, body in enumerate(bodies):
        lines += [""] * (apart and place > 0)
        lines += _side_by_side(body, widths, right)
    lines += noted
    left_out = [one.head for k, one in enumerate(columns) if k not in shown]
    if left_out:
        them = "it" if len(left_out) == 1 else "them"
        said = f"Not shown: {', '.join(left_out)}. To see {them}: -f\xa0csv"
        lines += ["", *(line.replace("\xa0", " ") for line in wrapped(said, width))]
    return lines


def _spare(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[set[int]]:
    """What to leave out, first to last: empty columns, then those that are spare, the equally spare ones together."""
    spare = {k: one.spare for k, one in enumerate(columns) if one.spare}
    empty = {k for k in spare if not any(row[k] for row in rows)}
    return [empty, *({k for k in spare if spare[k] == level} for level in sorted(set(spare.values()), reverse=True))]


def _most(columns: Sequence[Column], rows: Sequence[Sequence[str]], shown: list[int]) -> list[int]:
    """The widths at which nothing goes over several lines."""
    return [max(cells(columns[k].head), *(cells(row[k]) for row in rows)) for k in shown]


def _least(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], shown: list[int], text: int | None = None
) -> list[int]:
    """The widths at which no heading breaks within a word, no number breaks, and text is still easy to read."""

    def narrowest(cell: str, least: int) -> int:
        return cells(cell) if NUMBER.fullmatch(cell) else min(cells(cell), text or least)

    return [
        max(*map(cells, columns[k].head.split()), *(narrowest(row[k], columns[k].least) for row in rows)) for k in shown
    ]


def _taken(widths: Sequence[int]) -> int:
    return 1 + sum(widths) + GAP * (len(widths) - 1)


def _spread(least: list[int], most: list[int], width: int) -> list[int]:
    """Gives what is left of the width to the columns whose text would go over the most lines."""
    widths = list(least)
    for _ in range(width - _taken(least)):
        needy = max(range(len(widths)), key=lambda k: most[k] / widths[k])
        widths[needy] += most[needy] > widths[needy]
    return widths


def _side_by_side(parts: Sequence[list[str]], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    for line in range(max(map(len, parts))):
        padded = []
        for part, wide, to_right in zip(parts, widths, right):
            text = part[line] if line < len(part) else ""
            space = " " * (wide - cells(text))
            padded.append(space + text if to_right else text + space)
        yield (" " + (" " * GAP).join(padded)).rstrip()


def _blocks(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Each row as a block of lines with a heading and a value, for terminals in which no table fits."""
    indent = max(cells(one.head) for one in columns) + 3
    longest = max((cells(cell) for row in rows for cell in row if NUMBER.fullmatch(cell)), default=0)
    below = indent + max(longest, 12) > width  # values get lines of their own
    lines: list[str] = []
    for place, row in enumerate(rows):
        lines += [""] * (place > 0)
        for one, cell in zip(columns, row):
            if not cell:
                continue
            if below:
                lines += [f" {one.head}", *(f"   {part}" for part in wrapped(cell, max(width - 3, 1)))]
            else:
                first, *more = wrapped(cell, width - indent)
                lines += [f" {one.head:<{indent - 2}} {first}", *(" " * indent + part for part in more)]
    return lines


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(text: str, width: int | None) -> list[str]:
    """The text in lines that fit: broken between words; a word that is too long after punctuation, or anywhere."""
    if width is None or cells(text) <= width:
        return [text]
    lines = [""]
    for word in re.findall(r"[^ ]+ *", text):
        if cells(lines[-1] + word.rstrip(" ")) <= width:
            lines[-1] += word
            continue
        if cells(word.rstrip(" ")) <= width:
            lines.append(word)
            continue
        for piece in JOINTS.split(word):
            if cells(lines[-1] + piece.rstrip(" ")) > width:
                lines.append("")
            for letter in piece:
                if letter != " " and cells(lines[-1] + letter) > width:
                    lines.append("")
                lines[-1] += letter
    return [line.rstrip(" ") for line in lines if line.strip(" ")]
