"""Past votes: read them from files and tables, and write them.

A vote compares two different arms, `left` and `right`; its winner is left, right, tie or both_bad. Every vote comes
through `read_votes`, which reads a whole source or fails. What it returns needs no further checks.
"""

import csv
import io
import itertools
import json
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InvalidInput, UnknownName, cut
from ..files import atomic_open, read_cell, safe_cell
from .columns import (
    OTHER_WORDS,
    SKIP,
    WINNERS,
    WORDS,
    Columns,
    Rows,
    Table,
    columns_said,
    plain,
    roles_of,
    split_header,
)
from .extra import checked_extra, picker, series
from .names import is_text, past_voter
from .text_files import Row, csv_rows, first_line, json_rows, read_text, suffix_of

if TYPE_CHECKING:
    import polars as pl

KINDS = {".csv": ",", ".tsv": "\t", ".jsonl": "{", ".ndjson": "{"}  # the delimiter of cells; { for JSON Lines
WRITTEN = (",", "\t", "{")  # the kinds that `write_votes` writes
FORMATS = {  # the columns of a written file
    "duels": ("left", "right", "winner", "voter", "time", "duel"),
    "arena": ("model_a", "model_b", "winner", "judge", "tstamp"),
}
SHOWN = 5  # bad rows that an error lists


class Vote(NamedTuple):
    """One vote.

    Attributes:
        left: The arm on the left.
        right: The arm on the right.
        winner: left, right, tie or both_bad.
        voter: Who voted, if the source says so.
        time: When, in ISO 8601 and UTC, if the source says so.
        line: Where the vote starts in its source, counted from 1.
        duel: The id of the duel that a study asked, if the source says so.
    """

    left: str
    right: str
    winner: str
    voter: str | None
    time: str | None
    line: int
    duel: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Votes by columns, as `read_votes` returns them; iterate over it for single votes.

    Two of them are equal if all their votes are, whatever their lines and sources.

    Attributes:
        names: The K arms, in the order in which they first appear.
        left: (n,) int64: Indices into `names`.
        right: (n,) int64: Indices into `names`.
        winner: (n,) int8: 0 for left, 1 for right, 2 for tie, 3 for both_bad.
        lines: (n,) int64: Where each vote starts in the source.
        voters: Who voted, for each vote; None if no vote says so.
        times: When, in ISO 8601 and UTC, for each vote; None if no vote says so.
        duels: Ids of the duels that a study asked, for each vote; None if no vote says so.
        skipped: How many rows were left out because they are skips.
        said: Which column was taken for what.
        source: What the votes were read from.
        extra: Further columns that were asked for, by their names.
    """

    names: tuple[str, ...]
    left: np.ndarray
    right: np.ndarray
    winner: np.ndarray
    lines: np.ndarray
    voters: tuple[str | None, ...] | None
    times: tuple[str | None, ...] | None
    duels: tuple[str | None, ...] | None
    skipped: int
    said: str
    source: str
    extra: "Mapping[str, pl.Series]" = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.winner)

    def __iter__(self) -> Iterator[Vote]:
        left, right = (map(self.names.__getitem__, side.tolist()) for side in (self.left, self.right))
        winner = map(WINNERS.__getitem__, self.winner.tolist())
        voters, times, duels = (column or itertools.repeat(None) for column in (self.voters, self.times, self.duels))
        return map(Vote._make, zip(left, right, winner, voters, times, self.lines.tolist(), duels))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Votes) or len(self) != len(other):
            return False
        return all(a._replace(line=0) == b._replace(line=0) for a, b in zip(self, other))

    def __repr__(self) -> str:
        return f"Votes({len(self):,} on {len(self.names)} arms from {self.source})"


VoteSource = Votes | str | bytes | os.PathLike[str] | Iterable[object]
# Fields of a Vote, the winner as its code; then the cells of further columns.
Judged = tuple[str, str, int, str | None, str | None, int, str | None, tuple[object, ...]]


def read_votes(
    source: VoteSource, *, columns: Columns | None = None, format: str | None = None, extra: Iterable[str] = ()
) -> Votes:
    """Read votes from a CSV, TSV, JSON or JSON Lines file (.gz too), a data frame, or rows.

    If any row cannot be read, nothing is. Skips are left out and counted.

    Args:
        source: A path, `-` for standard input, the `bytes` of a file, a polars or pandas data frame, or an iterable of
            dicts or tuples.
        columns: What each column is for, such as `{"left": "model_x", "voter": None}`: its name, its position from 0
            if there is no header, or None for none. The others are found by their usual names; `Votes.said` says how.
        format: csv, tsv or jsonl; by default it is told from the file's name, or else from its first line.
        extra: Further columns to keep in `Votes.extra`, such as `["language"]`; `a.b` is the field b of the objects in
            column a.

    Returns:
        The votes.

    Raises:
        InvalidInput: If a row cannot be read, or it is not clear what the columns are for.
        UnknownName: If the format, a key of `columns` or a name in `extra` is unknown.

    Example:
        >>> votes = duels.read_votes([("cat", "dog", "left"), ("dog", "fox", "tie")])
        >>> len(votes), votes.names
        (2, ('cat', 'dog', 'fox'))
    """
    kept = checked_extra(extra)
    if isinstance(source, Votes):
        if missing := [name for name in kept if name not in source.extra]:
            raise InvalidInput(f"{source!r} has no column {missing[0]!r}: read it with read_votes(…, extra={missing})")
        return source
    if format is not None and f".{format}" not in KINDS:
        raise UnknownName("format of votes", format, [suffix[1:] for suffix in KINDS])
    table = _table(source, columns or {}, format)
    roles = roles_of(table, columns or {})
    found, faults = _judged(table, roles, kept)
    if faults:
        listed = "".join(f"\n  {table.unit} {line}: {fault}" for line, fault in faults[:SHOWN])
        raise InvalidInput(
            f"{table.source}: {len(faults):,} of {len(found) + len(faults):,} rows cannot be read, so nothing was taken"
            f"{f'; the first {SHOWN}' if len(faults) > SHOWN else ''}:{listed}"
        )
    return _votes(found, columns_said(table.header, roles), table.source, kept)


def write_votes(votes: VoteSource, path: str | os.PathLike[str], format: str = "duels") -> None:
    """Write a CSV, TSV or JSON Lines file (.gz too), from which `read_votes` reads the same votes.

    The file appears only when it is complete. In CSV and TSV, names that a spreadsheet would run as a formula, such as
    `=x`, get an apostrophe in front.

    Args:
        votes: Anything that `read_votes` reads.
        path: The file to write; its suffix decides what kind of file it is.
        format: `duels`, or `arena` for the columns model_a, model_b, winner, judge and tstamp, without ids of duels.

    Raises:
        InvalidInput: If the file cannot be written, or its suffix is unknown.
        UnknownName: If the format is unknown.
    """
    votes, path = read_votes(votes), Path(path)
    if format not in FORMATS:
        raise UnknownName("format of votes", format, FORMATS)
    kind = KINDS.get(suffix_of(path.name))
    if kind not in WRITTEN:
        known = ", ".join(suffix for suffix, kind in KINDS.items() if kind in WRITTEN)
        raise InvalidInput(f"{path}: unknown kind of file, expected one of {known}, with .gz if you like")
    rows = map(_arena_row if format == "arena" else operator.attrgetter(*FORMATS[format]), votes)
    with atomic_open(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        if kind == "{":
            text.writelines(json.dumps(dict(zip(FORMATS[format], row)), ensure_ascii=False) + "\n" for row in rows)
        else:  # text is always quoted, since a bare carriage return in a name would end the row
            writer = csv.writer(text, delimiter=kind, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
            safe = ([safe_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
            writer.writerows(itertools.chain([FORMATS[format]], safe))
        text.detach()


def _arena_row(vote: Vote) -> tuple[object, ...]:
    winner = {"left": "model_a", "right": "model_b"}.get(vote.winner, vote.winner)
    return vote.left, vote.right, winner, vote.voter, vote.time and datetime.fromisoformat(vote.time).timestamp()


def _table(source: VoteSource, columns: Columns, format: str | None) -> Table:
    if isinstance(source, str | bytes | os.PathLike):
        return _file_table(source, columns, format)
    called = f"the {type(source).__name__}"
    for method, arguments in (("to_dicts", ()), ("to_dict", ("records",))):  # polars, pandas
        if hasattr(source, method):
            source = getattr(source, method)(*arguments)
            break
    if not isinstance(source, Iterable):
        raise InvalidInput(f"{source!r} holds no votes: expected a path, a data frame, or rows as dicts or tuples")
    rows = (row._asdict() if hasattr(row, "_asdict") else row for row in source)
    return Table(called, "row", *_unpacked(list(enumerate(rows, 1))))


def _file_table(source: str | bytes | os.PathLike[str], columns: Columns, format: str | None) -> Table:
    called = "standard input" if source == "-" else "the votes" if isinstance(source, bytes) else str(source)
    text = read_text(source, called)
    first = first_line(text)
    looks_like = "{" if re.match(r"\{|\[\s*([\[{\"]|\]?\s*$)", first) else ","
    kind = KINDS.get(suffix_of(called) if format is None else f".{format}", looks_like)
    if kind == ",":  # spreadsheets use other delimiters in CSV files too
        kind = max(",\t;", key=re.sub(r'"[^"]*"?', "", first).count)
    if kind != "{":
        return split_header(called, _unescaped(csv_rows(text, kind), "'" in text), columns)
    if (array := _json_array(text, called)) is not None:
        return Table(called, "row", *_unpacked(list(enumerate(array, 1))))
    return Table(called, "line", *_unpacked(list(json_rows(text))))


def _unescaped(rows: Iterator[Row[list[str]]], escaped: bool) -> Iterator[Row[list[str]]]:
    """Without the apostrophes that `write_votes` puts in front of formulas."""
    if not escaped:
        return rows
    return ((line, list(map(read_cell, cells)) if isinstance(cells, list) else cells) for line, cells in rows)


def _json_array(text: str, called: str) -> list[object] | None:
    """The rows of a file that is one JSON array, rather than one value per line."""
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one array per line
            return None
        raise InvalidInput(f"{called} is not JSON: {error}") from None
    except (ValueError, RecursionError):
        return None
    return rows if isinstance(rows, list) and (not rows or isinstance(rows[0], list | dict)) else None


def _unpacked(rows: list[tuple[int, object]]) -> tuple[Sequence[object], Rows]:
    """Header and rows of a list of dicts, or of tuples, whose header is their positions."""
    keys = list(dict.fromkeys(key for _, row in rows if isinstance(row, Mapping) for key in row))
    width = next((len(row) for _, row in rows if isinstance(row, tuple | list | np.ndarray)), 0)
    header = keys or list(range(width)) or ["left", "right", "winner"]
    return header, ((line, _cells(row, keys)) for line, row in rows)


def _cells(row: object, keys: list[object]) -> list[object] | ValueError:
    if isinstance(row, Mapping):
        return [row.get(key) for key in keys]
    if isinstance(row, tuple | list | np.ndarray) and not keys:
        return list(row)
    return row if isinstance(row, ValueError) else ValueError(f"found {cut(row, 40)}, expected a dict or a tuple")


def _judged(table: Table, roles: dict[str, int], extra: Sequence[str]) -> tuple[list[Judged], list[tuple[int, str]]]:
    """The votes of a table, and the lines that cannot be read with what is wrong with them."""
    width = len(table.header)
    pairs = {"left": roles["winner"], "right": roles["loser"], "winner": width} if "loser" in roles else {}
    sides = [table.header[roles[side]] for side in ("left", "right") if side in roles]
    words = WORDS | {plain(name): code for code, name in enumerate(sides) if isinstance(name, str)}
    pick = operator.itemgetter(*((roles | pairs).get(role, width + 1) for role in FORMATS["duels"]))
    further = picker(table, extra)
    judge = lru_cache(1 << 16, typed=True)(partial(_judge, words))  # most rows are repetitions of a few
    found, faults = list[Judged](), list[tuple[int, str]]()
    for line, row in table.rows:
        try:
            if isinstance(row, ValueError):
                raise row
            if len(row) != width:
                raise ValueError(f"{len(row)} fields, expected {width}")
            # Two more cells: if the columns are winner and loser, left has won; and None for missing columns.
            left, right, winner, voter, time, duel = pick([*row, "left", None])
            found.append((*judge(left, right, winner), _voter(voter), _utc(time), line, _text(duel), further(row)))
        except TypeError:  # not hashable
            faults.append((line, "found a list or an object, expected text"))
        except ValueError as error:
            faults.append((line, str(error)))
    return found, faults


def _judge(words: dict[str, int], *cells: object) -> tuple[str, str, int]:
    left, right, winner = map(_text, cells)
    if not left or not right:
        raise ValueError(f"the {'second' if left else 'first'} arm is empty or not text, expected its name")
    if left == right:
        raise ValueError(f"{cut(left, 40)} is compared with itself, expected two different arms")
    named = {right: 1, left: 0}.get(winner or "", OTHER_WORDS.get(plain(winner)))
    code = words.get(plain(winner), named)
    if code is None:
        raise ValueError(f"winner is {cut(winner, 40)}, expected {', '.join(WINNERS)}, skip or one of the two names")
    return left, right, code


def _text(cell: object) -> str | None:
    """The text of a cell; None if it is empty, neither text nor a number, or text that UTF-8 cannot encode."""
    if not isinstance(cell, str):
        number = cell is not None and isinstance(cell, int | float | np.number)
        return str(cell) if number and cell == cell else None
    text = cell.strip()
    return text if text and is_text(text) else None


def _voter(cell: object) -> str | None:
    """A voter's name; one that a study could not forget is refused here, while its line is known."""
    return past_voter((cell.strip() or None) if isinstance(cell, str) else _text(cell))


def _utc(cell: object) -> str | None:
    """A time in ISO 8601 and UTC, from seconds since 1970 or ISO 8601, in UTC unless it has a time zone."""
    text = "" if cell is None else str(cell).strip()
    if text in ("", "nan", "NaT", "<NA>"):
        return None
    try:
        moment = datetime.fromisoformat(text) if text[4:5] == "-" else datetime.fromtimestamp(float(text), UTC)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        return f"{moment.isoformat()[:-6]}Z"
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"time is {cut(text, 40)}, expected seconds since 1970 or such as 2025-01-31T12:00:00Z"
        ) from None


def _votes(found: list[Judged], said: str, source: str, extra: Sequence[str]) -> Votes:
    kept = [row for row in found if row[2] != SKIP]
    left, right, winner, voters, times, lines, duels, cells = zip(*kept) if kept else ((),) * 8
    index = dict(zip(dict.fromkeys(itertools.chain.from_iterable(zip(left, right))), itertools.count()))
    first, second = (np.array([index[name] for name in side], np.int64) for side in (left, right))
    codes, places = np.array(winner, np.int8), np.array(lines, np.int64)
    voter, time, duel = (column if any(column) else None for column in (voters, times, duels))
    further = {name: series(name, [row[k] for row in cells]) for k, name in enumerate(extra)}
    skipped = len(found) - len(kept)
    return Votes(tuple(index), first, second, codes, places, voter, time, duel, skipped, said, source, further)
