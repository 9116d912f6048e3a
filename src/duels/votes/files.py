"""Past votes as data: read them from files and tables, write them, and say what they show.

A vote compares two different arms, `left` and `right`; its winner is left, right, tie or both_bad. `read_votes` is the
only door: it takes all of a source or nothing, and what it returns needs no further checks.
"""

import csv
import gzip
import io
import itertools
import json
import operator
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput, UnknownName, cut
from ..files import atomic_open, read_cell, safe_cell
from .columns import OTHER_WORDS, SKIP, WINNERS, WORDS, Table, columns_said, headed, plain, roles_of
from .names import is_text, past_voter

KINDS = {".csv": ",", ".tsv": "\t", ".jsonl": "{", ".ndjson": "{"}  # what separates cells; { for an object a line
FORMATS = {  # the columns that a file is written with
    "duels": ("left", "right", "winner", "voter", "time", "duel"),
    "arena": ("model_a", "model_b", "winner", "judge", "tstamp"),
}
SHOWN = 5  # bad rows that an error lists


class Vote(NamedTuple):
    """One vote; `time` is ISO 8601 in UTC, `line` where the vote begins in its source, counted from 1."""

    left: str
    right: str
    winner: str  # one of WINNERS
    voter: str | None
    time: str | None
    line: int
    duel: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Votes by columns, as `read_votes` makes them. Equal if vote by vote the same, lines and sources aside."""

    names: tuple[str, ...]  # (K,) the arms, in the order they first appear
    left: np.ndarray  # (n,) int64: index into names
    right: np.ndarray  # (n,) int64
    winner: np.ndarray  # (n,) int8: index into WINNERS
    lines: np.ndarray  # (n,) int64
    voters: tuple[str | None, ...] | None  # (n,), or None if no vote says
    times: tuple[str | None, ...] | None
    duels: tuple[str | None, ...] | None  # ids of the duels that a study asked
    skipped: int  # rows left out, since nobody judged them
    said: str  # which column was taken for what
    source: str

    def __len__(self) -> int:
        return len(self.winner)

    def __iter__(self) -> Iterator[Vote]:
        left, right = (map(self.names.__getitem__, side.tolist()) for side in (self.left, self.right))
        winner = map(WINNERS.__getitem__, self.winner.tolist())
        voters, times, duels = (column or itertools.repeat(None) for column in (self.voters, self.times, self.duels))
        return map(Vote._make, zip(left, right, winner, voters, times, self.lines.tolist(), duels))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Votes) and len(self) == len(other)
        return same and all(a[:5] + a[6:] == b[:5] + b[6:] for a, b in zip(self, other))  # type: ignore[call-overload]

    def __repr__(self) -> str:
        return f"Votes({len(self):,} on {len(self.names)} arms from {self.source})"


def read_votes(source: Any, *, columns: Mapping[str, Any] | None = None, format: str | None = None) -> Votes:
    """The votes of a CSV, TSV, JSON or JSON Lines file (.gz too), of a data frame, or of rows that are dicts or tuples.

    source: a path, `-` for standard input, `bytes` of such a file, a polars or pandas frame, or an iterable of rows.
    columns: which column is for what, `{"left": "model_x", "voter": None}`: its name, or its position from 0 if there
        is no header, or None for none. Others are found by their usual names; `Votes.said` tells.
    format: csv, tsv or jsonl; by default told from the file's name, else from how it begins.

    Any row that cannot be read is an error, and nothing is taken. Skips are left out and counted.
    """
    if isinstance(source, Votes):
        return source
    if format is not None and f".{format}" not in KINDS:
        raise UnknownName("format of votes", format, [suffix[1:] for suffix in KINDS])
    table = _opened(source, columns or {}, format)
    roles = roles_of(table, columns or {})
    found, faults = _judged(table, roles)
    if faults:
        listed = "".join(f"\n  {table.unit} {line}: {fault}" for line, fault in faults[:SHOWN])
        raise InvalidInput(
            f"{table.source}: {len(faults):,} of {len(found) + len(faults):,} rows cannot be read, so nothing was taken"
            f"{f'; the first {SHOWN}' if len(faults) > SHOWN else ''}:{listed}"
        )
    return _votes(found, columns_said(table.header, roles), table.source)


def write_votes(votes: Any, path: str | os.PathLike[str], format: str = "duels") -> None:
    """Write a CSV, TSV or JSON Lines file (.gz too), whole or not at all, which `read_votes` reads back as it was.

    In CSV and TSV, names that a spreadsheet would run as a formula, such as `=x`, have an apostrophe in front.

    format: `duels`, or `arena`: model_a, model_b, winner, judge and tstamp, but no ids of duels.
    """
    votes, path = read_votes(votes), Path(path)
    if format not in FORMATS:
        raise UnknownName("format of votes", format, FORMATS)
    kind = KINDS.get(_suffix(path.name))
    if kind is None:
        raise InvalidInput(f"{path}: unknown kind of file, expected one of {', '.join(KINDS)}, with .gz if you like")
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


def _arena_row(vote: Vote) -> tuple:
    winner = {"left": "model_a", "right": "model_b"}.get(vote.winner, vote.winner)
    return vote.left, vote.right, winner, vote.voter, vote.time and datetime.fromisoformat(vote.time).timestamp()


def _opened(source: Any, columns: Mapping[str, Any], format: str | None) -> Table:
    if isinstance(source, str | bytes | os.PathLike):
        called = "standard input" if source == "-" else "the votes" if isinstance(source, bytes) else str(source)
        text = _text_of(source, called)
        first = text[:10_000].lstrip().partition("\n")[0]
        begins = "{" if re.match(r"\{|\[\s*([\[{\"]|\]?\s*$)", first) else ","
        kind = KINDS.get(_suffix(called) if format is None else f".{format}", begins)
        if kind == ",":  # spreadsheets call it CSV with other marks too
            kind = max(",\t;", key=re.sub(r'"[^"]*"?', "", first).count)
        if kind != "{":
            return Table(called, "line", *headed(called, _csv_rows(text, kind), columns))
        if (array := _json_array(text, called)) is not None:
            return Table(called, "row", *_unpacked(list(enumerate(array, 1))))
        return Table(called, "line", *_unpacked(list(_json_rows(text))))
    called = f"the {type(source).__name__}"
    if hasattr(source, "to_dict") or hasattr(source, "to_dicts"):  # pandas, polars
        source = source.to_dicts() if hasattr(source, "to_dicts") else source.to_dict("records")
    if not isinstance(source, Iterable):
        raise InvalidInput(f"{source!r} holds no votes: expected a path, a data frame, or rows as dicts or tuples")
    named = (row._asdict() if hasattr(row, "_asdict") else row for row in source)
    return Table(called, "row", *_unpacked(list(enumerate(named, 1))))


def _text_of(source: str | bytes | os.PathLike[str], called: str) -> str:
    try:
        if not isinstance(source, bytes):
            source = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return (gzip.decompress(source) if source.startswith(b"\x1f\x8b") else source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{called} is not text in UTF-8: {error.reason} at byte {error.start}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{called} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _suffix(name: str) -> str:
    return Path(name[:-3] if name.lower().endswith(".gz") else name).suffix.lower()


def _csv_rows(text: str, delimiter: str) -> Iterator[tuple[int, Any]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1  # where the next row begins: a row may have line breaks in quotes
    escaped = "'" in text
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield line, list(map(read_cell, cells)) if escaped else cells
            line = reader.line_num + 1
    except csv.Error as error:
        yield line, ValueError(f"not a table from here on: {error}")


def _json_rows(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"not JSON: {str(error).partition(': line')[0]}")


def _json_array(text: str, called: str) -> list[Any] | None:
    """The rows of a file that is a single array of them, rather than one on each line."""
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # an array on each line
            return None
        raise InvalidInput(f"{called} is not JSON: {error}") from None
    except (ValueError, RecursionError):
        return None
    return rows if isinstance(rows, list) and (not rows or isinstance(rows[0], list | dict)) else None


def _unpacked(rows: list[tuple[int, Any]]) -> tuple[list[Any], Iterable]:
    """Header and rows of dicts, or of tuples, whose header is their positions."""
    keys = list(dict.fromkeys(key for _, row in rows if isinstance(row, Mapping) for key in row))
    width = next((len(row) for _, row in rows if isinstance(row, tuple | list | np.ndarray)), 0)
    header = keys or list(range(width)) or ["left", "right", "winner"]
    return header, ((line, _cells(row, keys)) for line, row in rows)


def _cells(row: Any, keys: list[Any]) -> list[Any] | Exception:
    if isinstance(row, Mapping):
        return [row.get(key) for key in keys]
    if isinstance(row, tuple | list | np.ndarray) and not keys:
        return list(row)
    return row if isinstance(row, Exception) else ValueError(f"found {cut(row, 40)}, expected a dict or a tuple")


def _judged(table: Table, roles: dict[str, int]) -> tuple[list[tuple], list[tuple[int, str]]]:
    """The rows as fields of a Vote, the winner as its code; and those that cannot be read."""
    width = len(table.header)
    pairs = {"left": roles["winner"], "right": roles["loser"], "winner": width} if "loser" in roles else {}
    sides = [table.header[roles[side]] for side in ("left", "right") if side in roles]
    words = WORDS | {plain(name): code for code, name in enumerate(sides) if isinstance(name, str)}
    pick = operator.itemgetter(*((roles | pairs).get(role, width + 1) for role in FORMATS["duels"]))
    judge = lru_cache(1 << 16, typed=True)(partial(_judge, words))  # few of many rows are different
    found, faults = list[tuple](), list[tuple[int, str]]()
    for line, row in table.rows:
        try:
            if isinstance(row, Exception):
                raise row
            if len(row) != width:
                raise ValueError(f"{len(row)} fields, expected {width}")
            # Two cells more: of winner and loser the left one has won, and what no column says is None.
            left, right, winner, voter, time, duel = pick([*row, "left", None])
            found.append((*judge(left, right, winner), _voter(voter), _utc(time), line, _text(duel)))
        except TypeError:  # what cannot be looked up
            faults.append((line, "found a list or an object, expected text"))
        except ValueError as error:
            faults.append((line, str(error)))
    return found, faults


def _judge(words: dict[str, int], *cells: Any) -> tuple[str, str, int]:
    left, right, winner = map(_text, cells)
    if not left or not right:
        raise ValueError(f"the {'second' if left else 'first'} arm is empty or no text, expected its name")
    if left == right:
        raise ValueError(f"{cut(left, 40)} is compared with itself, expected two different arms")
    named = {right: 1, left: 0}.get(winner or "", OTHER_WORDS.get(plain(winner)))
    code = words.get(plain(winner), named)
    if code is None:
        raise ValueError(f"winner is {cut(winner, 40)}, expected {', '.join(WINNERS)}, skip or one of the two names")
    return left, right, code


def _text(cell: Any) -> str | None:
    """What a cell says; None if it is empty, or neither text nor a number, or text that no file can hold."""
    if not isinstance(cell, str):
        number = cell is not None and isinstance(cell, int | float | np.number)
        return str(cell) if number and cell == cell else None
    text = cell.strip()
    return text if text and is_text(text) else None


def _voter(cell: Any) -> str | None:
    """A voter's name; one that a study could not forget is refused here, while its line is known."""
    return past_voter((cell.strip() or None) if isinstance(cell, str) else _text(cell))


def _utc(cell: Any) -> str | None:
    """Seconds since 1970, or a time in ISO 8601, which is in UTC if it does not say."""
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


def _votes(found: list[tuple], said: str, source: str) -> Votes:
    kept = [row for row in found if row[2] != SKIP]
    left, right, winner, voters, times, lines, duels = zip(*kept) if kept else ((),) * 7
    index = dict(zip(dict.fromkeys(itertools.chain.from_iterable(zip(left, right))), itertools.count()))
    first, second = (np.array([index[name] for name in side], np.int64) for side in (left, right))
    codes, places = np.array(winner, np.int8), np.array(lines, np.int64)
    voter, time, duel = (column if any(column) else None for column in (voters, times, duels))
    return Votes(tuple(index), first, second, codes, places, voter, time, duel, len(found) - len(kept), said, source)
