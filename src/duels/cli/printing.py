"""Output of the commands: tables for people, JSON and CSV for programs, LaTeX and Markdown for papers.

A table fits its terminal and never truncates a cell. If it is too wide, headings and text are wrapped; then spare
columns are left out, and a line below the table names them; at last each row becomes a block with one line per column.

`rich.table` can neither leave columns out nor break a long name after punctuation, and takes over twenty times as long:
5 s for 2,000 rows of eight columns, where this takes 0.2 s.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..errors import DuelsError, InvalidInput
from ..files import latex_table, markdown_table, safe_cell
from ..policies import display_name

if TYPE_CHECKING:
    from ..votes.readers import Reading


class Interrupted(DuelsError):
    """Ctrl-C, with a message."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Keep the notes of a KeyboardInterrupt, such as where finished work is saved; typer would drop them."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("; ".join(["interrupted", *getattr(error, "__notes__", ())])) from None


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"
    latex = "latex"
    markdown = "markdown"

    @property
    def is_paper(self) -> bool:
        """Whether it is a table for a paper."""
        return self in (Format.latex, Format.markdown)

    @property
    def is_rows(self) -> bool:
        """Whether everything is printed as rows of a table, rather than as sentences or JSON."""
        return self is Format.csv or self.is_paper


WRITERS = {Format.latex: latex_table, Format.markdown: markdown_table}
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="table, json, csv, latex or markdown.")]


class About(StrEnum):
    """What a verdict is about."""

    new_items = "new-items"
    these_items = "these-items"
    these_answers = "these-answers"


AboutOption = Annotated[
    About | None,
    typer.Option(
        help="What the verdict is about: new-items, of which these are a sample; these-items, by whoever answers; or "
        "these-answers, each of which is final.",
        show_default="these-items",
    ),
]
ConfidenceOption = Annotated[float, typer.Option(help="Confidence level, valid at any stopping time.")]
SeedOption = Annotated[str, typer.Option(help="The seed of all random numbers.")]
JobsOption = Annotated[int | None, typer.Option(help="Threads; by default one per core.")]
VotesArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Votes: a Parquet, CSV or JSON Lines file, a folder of Parquet files, or - for standard input.",
    ),
]
RolesOption = Annotated[
    list[str] | None,
    typer.Option("--column", help="The role of a column, e.g. left=system_x, or left=0 without a header; repeatable."),
]


class OnError(StrEnum):
    """What happens if a row of votes cannot be read."""

    stop = "raise"
    skip = "skip"


OnErrorOption = Annotated[
    OnError,
    typer.Option(help="Rows that cannot be read: raise imports nothing, skip leaves them out and reports how many."),
]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", metavar="VOTER", help="Leave out this voter's votes; repeatable.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def number(what: str, text: str) -> int:
    """Parse a whole number such as 100000, 100,000 or 1e6; `what` names it in errors."""
    try:
        number = Decimal(text.replace(",", ""))
        if number.adjusted() > 40 or number != int(number):
            raise ValueError
        return int(number)
    except (ArithmeticError, ValueError):
        raise InvalidInput(f"{what} is {text[:40]!r}: expected a whole number such as 100000 or 1e6") from None


def column_roles(given: list[str] | None) -> dict[str, str | int]:
    """Return what columns are for, from options such as `left=system_x`."""
    pairs = [one.partition("=") for one in given or []]
    for what, equals, name in pairs:
        if not (what and equals and name):
            raise InvalidInput(
                f"--column {what} is not of the form left=NAME: expected the role of a column, and its name"
            )
    return {what: int(name) if name.isdecimal() else name for what, _, name in pairs}


def read_options(roles: list[str] | None, on_error: OnError, without: list[str] | None) -> "Reading":
    """Return how votes are read, from the options of a command."""
    return {"columns": column_roles(roles), "on_error": on_error.value, "without": without or ()}


def plain(value: object) -> str:
    """Return the text of a value for tables and CSV."""
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def round_numbers(value: object) -> str:
    """Return the text of a value for people: numbers to four digits, and lists and fields with commas."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {round_numbers(item)}".replace("_", " ") for key, item in value.items())
    if isinstance(value, list | tuple):
        return ("; " if value and isinstance(value[0], dict) else ", ").join(map(round_numbers, value))
    return plain(value)


class Column(NamedTuple):
    """A column of a table for people.

    Attributes:
        head: The heading.
        fields: The fields of a row that it shows.
        show: Formats the values of the fields.
        spare: In a narrow terminal, columns with the highest number are left out first; 0 is never left out.
        least: Text may be wrapped to this width.
    """

    head: str
    fields: tuple[str, ...]
    show: Callable[..., str] = plain
    spare: int = 0
    least: int = 20


def column(
    field: str, head: str = "", show: Callable[..., str] | str = plain, spare: int = 0, least: int = 20
) -> Column:
    """Return the column of one field.

    Args:
        field: The field of the rows.
        head: The heading; by default the field with spaces.
        show: A function or a format such as `,.1f`, which shows a missing value as empty.
        spare: See `Column`.
        least: See `Column`.
    """
    written = show if callable(show) else lambda value: "" if value is None else format(value, show)
    return Column(head or field.replace("_", " "), (field,), written, spare, least)


def print_rows(
    rows: Sequence[Mapping[str, object]],
    format: Format,
    columns: Sequence[Column] | None = None,
    none: str = "",
    note: str = "",
    name_of: Callable[[str], str] = display_name,
) -> None:
    """Print rows. JSON and CSV have all fields, a table, also in LaTeX or Markdown, has the `columns`.

    Args:
        rows: The rows, all with the same fields.
        format: How to print them.
        columns: The columns of a table; by default all fields.
        none: A message for standard error if there are no rows.
        note: A sentence below a table.
        name_of: What a policy is called in a table for a paper.
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
        chosen = columns or [column(key, show=round_numbers if format.is_paper else plain) for key in rows[0]]
        cells = [[one.show(*(row[field] for field in one.fields)) for one in chosen] for row in rows]
        if format is Format.table:
            print("\n".join(table_lines(chosen, cells, terminal_width(), note)))
        else:
            print(_for_papers(chosen, cells, format, name_of))


def print_record(record: Mapping[str, object], format: Format) -> None:
    """Print the fields of one thing as JSON or CSV, or as a table with one row per field."""
    if not format.is_paper:
        print_rows([record], format)
        return
    shown = {
        key: display_name(str(value)) if key == "policy" else round_numbers(value) for key, value in record.items()
    }
    rows = [[key.replace("_", " "), text] for key, text in shown.items() if text]
    print(WRITERS[format](["", "value"], rows, _right(rows, [1])))


def _for_papers(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], format: Format, name_of: Callable[[str], str]
) -> str:
    """Return a table as LaTeX or Markdown: without empty columns, and with the names of policies that papers print."""
    kept = [k for k in range(len(columns)) if any(row[k] for row in rows)]
    named = [columns[k].fields == ("policy",) for k in kept]
    shown = [[name_of(row[k]) if policy else row[k] for k, policy in zip(kept, named)] for row in rows]
    right = [place for place, k in enumerate(kept) if k in _right(rows, kept)]
    return WRITERS[format]([columns[k].head for k in kept], shown, right)


def _right(rows: Sequence[Sequence[str]], columns: Iterable[int]) -> list[int]:
    """Return the columns that have only numbers."""
    return [k for k in columns if all(NUMBER.fullmatch(row[k]) or not row[k] for row in rows)]


def print_text(text: str) -> None:
    """Print sentences, or lines of a label and a text; text is wrapped and indented in a narrow terminal."""
    width = terminal_width()
    if width is None:
        print(text)
        return
    for line in re.sub(r"\n {4,}", " ", text).split("\n"):  # deeply indented lines continue the one before
        label = re.match(r" *[\d–]+ +\d+%  | *\S+(?: \S+)* {2,}| *", line)
        indent = label.end() if label and label.end() <= width - 16 else 0
        longest = max(map(cells, line[indent:].split()), default=0)
        if width - indent < longest <= width:  # the label has a line of its own, so that no word is broken
            print(line[:indent].rstrip())
            line, indent = " " * (width - longest) + line[indent:], width - longest
        for place, part in enumerate(wrap_text(line[indent:], width - indent)):
            print((line[:indent] if place == 0 else " " * indent) + part)


def terminal_width() -> int | None:
    """Return the width of the terminal; None if standard output is a file or a pipe."""
    if not sys.stdout.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    try:
        known = int(asked) if asked.isdecimal() else 0
        return known or os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


GAP = 3  # spaces between columns; there is one before the first
NUMBER = re.compile(r"[-+±]?\d[\d.,]*(e[-+]?\d+)?%?( [±–] [-+]?\d[\d.,]*%?)?|\d{4}-\d\d-\d\dT[\d:.+Z-]+")
# Where a long word may be broken: after punctuation, but not within a number.
JOINTS = re.compile(r"(?<=[_/:=])|(?<=[-,;.])(?![\d])")


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, note: str = ""
) -> list[str]:
    """Return the lines of a table no wider than `width`, the note, and which columns are left out."""
    noted = wrap_text(note, width) if note else []
    layout = _layout(columns, rows, width)
    if layout is None:
        return [*_blocks(columns, rows, width or 80), *noted]
    shown, widths = layout
    left_out = [one.head for k, one in enumerate(columns) if k not in shown]
    return [*_grid(columns, rows, shown, widths), *noted, *_not_shown(left_out, width)]


def _layout(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None
) -> tuple[list[int], list[int]] | None:
    """Choose the columns that are shown, and their widths; None if no table fits."""
    shown = list(range(len(columns)))
    widths = _most(columns, rows, shown)
    if width is None or _width_taken(widths) <= width:
        return shown, widths
    for leave in _spare(columns, rows):
        if _width_taken(_least(columns, rows, shown)) > width:
            shown = [k for k in shown if k not in leave]
    for text in (None, 12):
        least = _least(columns, rows, shown, text)
        if _width_taken(least) <= width:
            return shown, _spread(least, _most(columns, rows, shown), width)
    return None


def _grid(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], shown: Sequence[int], widths: Sequence[int]
) -> list[str]:
    heads = [wrap_text(columns[k].head, wide) for k, wide in zip(shown, widths)]
    bodies = [[wrap_text(row[k], wide) for k, wide in zip(shown, widths)] for row in rows]
    numbers = _right(rows, shown)
    right = [k in numbers for k in shown]
    lines = [*_side_by_side(heads, widths, right), " " + "─" * (_width_taken(widths) - 1)]
    apart = _needs_blank_lines(bodies)
    for place, body in enumerate(bodies):
        lines += [""] * (apart and place > 0)
        lines += _side_by_side(body, widths, right)
    return lines


def _needs_blank_lines(bodies: Sequence[Sequence[list[str]]]) -> bool:
    """Whether wrapped rows run together: the first column does not show where each begins."""
    is_wrapped = any(len(cell) > 1 for body in bodies for cell in body)
    return is_wrapped and any(len(body[0]) > 1 or body[0] == [""] for body in bodies)


def _not_shown(heads: Sequence[str], width: int | None) -> list[str]:
    if not heads:
        return []
    them = "it" if len(heads) == 1 else "them"
    text = f"Not shown: {', '.join(heads)}. To see {them}: -f\xa0csv"
    return ["", *(line.replace("\xa0", " ") for line in wrap_text(text, width))]


def _spare(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[set[int]]:
    """Return groups of columns to leave out, in order: empty ones, then those that are most spare."""
    spare = {k: one.spare for k, one in enumerate(columns) if one.spare}
    empty = {k for k in spare if not any(row[k] for row in rows)}
    return [empty, *({k for k in spare if spare[k] == level} for level in sorted(set(spare.values()), reverse=True))]


def _most(columns: Sequence[Column], rows: Sequence[Sequence[str]], shown: list[int]) -> list[int]:
    """Return the widths at which nothing is wrapped."""
    return [max(cells(columns[k].head), *(cells(row[k]) for row in rows)) for k in shown]


def _least(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], shown: list[int], text: int | None = None
) -> list[int]:
    """Return the least widths at which no word of a heading and no number breaks, and text is easy to read."""

    def narrowest(cell: str, least: int) -> int:
        return cells(cell) if NUMBER.fullmatch(cell) else min(cells(cell), text or least)

    return [
        max(*map(cells, columns[k].head.split()), *(narrowest(row[k], columns[k].least) for row in rows)) for k in shown
    ]


def _width_taken(widths: Sequence[int]) -> int:
    return 1 + sum(widths) + GAP * (len(widths) - 1)


def _spread(least: list[int], most: list[int], width: int) -> list[int]:
    """Give the rest of the width to the columns whose text would need the most lines."""
    widths = list(least)
    for _ in range(width - _width_taken(least)):
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
    """Return each row as a block of lines with a heading and a value, for terminals in which no table fits."""
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
                lines += [f" {one.head}", *(f"   {part}" for part in wrap_text(cell, max(width - 3, 1)))]
            else:
                first, *more = wrap_text(cell, width - indent)
                lines += [f" {one.head:<{indent - 2}} {first}", *(" " * indent + part for part in more)]
    return lines


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap_text(text: str, width: int | None) -> list[str]:
    """Wrap a text between words; a word that is too long breaks after punctuation, or anywhere."""
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
