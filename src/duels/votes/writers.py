"""Votes written to files."""

import csv
import io
import itertools
import json
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InvalidInput, UnknownName, format_count
from ..files import atomic_open, safe_cell
from .columns import WINNERS
from .parse_columns import PARQUET
from .readers import KINDS, VoteSource, read_votes
from .text_files import suffix_of
from .votes import NEVER, Vote, Votes

if TYPE_CHECKING:
    import polars as pl

WRITTEN = (",", "\t", "{")  # the kinds of text that `write_votes` writes
FORMATS = {  # the columns of a written file
    "duels": ("left", "right", "winner", "voter", "time", "duel"),
    "arena": ("model_a", "model_b", "winner", "judge", "tstamp"),
    "lmarena": ("id", "model_a", "model_b", "winner", "judge", "timestamp"),
    "trl": ("prompt", "chosen", "rejected"),
}
ARENA_WINNERS = ("model_a", "model_b", *WINNERS[2:])
TALKS = ("conversation_a", "conversation_b")
ROLES = {"model_a": "left", "model_b": "right", "judge": "voter", "tstamp": "time", "timestamp": "time", "id": "duel"}
FURTHER = ("item", "comment")  # columns that the votes of a study may have
OUTPUTS = (("left_output", "right_output"), ("response_a", "response_b"))  # names of further columns, see `trl_pairs`


def write_votes(votes: VoteSource, path: str | os.PathLike[str], format: str = "duels") -> None:
    """Write a CSV, TSV or JSON Lines file (.gz too) or Parquet, from which `read_votes` reads the same votes.

    The file appears only when it is complete. In CSV and TSV, names that a spreadsheet would run as a formula, such as
    `=x`, get an apostrophe in front. Counts are a column `count`, if there are any. What the votes of a study were
    about and what voters wrote are columns `item` and `comment` of the format duels, if there are any.

    Args:
        votes: Anything that `read_votes` reads.
        path: The file to write; its suffix decides what kind of file it is. `-` is standard output, as CSV, or as
            JSON Lines in the format trl.
        format: `duels`; `arena` for the columns model_a, model_b, winner, judge and tstamp, without ids of duels;
            `lmarena` for id, model_a, model_b, winner, judge and timestamp, and conversation_a and conversation_b if
            the votes have items; or `trl` for prompt, chosen and rejected, see `trl_pairs`, from which no votes are
            read.

    Raises:
        InvalidInput: If the file cannot be written, its suffix is unknown, or the format needs items that the votes do
            not have.
        UnknownName: If the format is unknown.
    """
    votes = read_votes(votes)
    if format not in FORMATS:
        raise UnknownName("format of votes", format, FORMATS)
    kind = _kind_of(path, format)
    columns, rows = _table(votes, format)
    if os.fspath(path) == "-":
        _write(sys.stdout.buffer, kind, columns, rows, votes, format)
        sys.stdout.buffer.flush()
    else:
        with atomic_open(Path(path)) as file:
            _write(file, kind, columns, rows, votes, format)


class Pairs(NamedTuple):
    """Pairs for preference tuning.

    Attributes:
        rows: Prompt, chosen and rejected output of each vote.
        left_out: What was left out and why, such as `3 ties`; empty if nothing was.
    """

    rows: list[tuple[str, str, str]]
    left_out: str


def trl_pairs(votes: Votes) -> Pairs:
    """Return which output each vote prefers, as the library TRL reads it: prompt, chosen and rejected.

    Ties, and votes without a prompt or without text on both sides, are left out.

    Args:
        votes: Votes with the columns `prompt`, `left_output` and `right_output` in `Votes.extra`, as `Study.votes` has
            them with `items=True`; or `prompt`, `response_a` and `response_b`.

    Raises:
        InvalidInput: If they do not have these columns, or have counts.
    """
    items = _items_of(votes)
    if items is None:
        raise InvalidInput(
            f"{votes!r} has no prompts and outputs, which pairs for preference tuning need: expected votes of a study "
            "with items, or the further columns prompt, response_a and response_b"
        )
    if votes.count is not None:
        raise InvalidInput(f"{votes!r} has counts: expected one row per vote, to write one pair for each")
    rows, ties, textless = list[tuple[str, str, str]](), 0, 0
    for winner, prompt, left, right in zip(votes.winner.tolist(), *items):
        if winner > 1:
            ties += 1
        elif isinstance(prompt, str) and isinstance(left, str) and isinstance(right, str):
            rows.append((prompt, left, right) if winner == 0 else (prompt, right, left))
        else:
            textless += 1
    left_out = [format_count(ties, "tie")] * bool(ties)
    left_out += [f"{format_count(textless, 'vote')} without a prompt and two texts"] * bool(textless)
    return Pairs(rows, " and ".join(left_out))


def _items_of(votes: Votes) -> tuple[list[object], list[object], list[object]] | None:
    """Prompt and outputs of each vote; None if the votes do not have them."""
    for names in (("prompt", *sides) for sides in OUTPUTS):
        if votes.extra.keys() >= {*names}:
            prompt, left, right = (_texts(votes.extra[name]) for name in names)
            return prompt, left, right
    return None


def _texts(column: "pl.Series") -> list[object]:
    """The cells of a column; numbers as text, since a column of answers such as 4 and 5 is read as numbers."""
    import polars as pl

    return (column.cast(pl.String) if column.dtype.is_numeric() else column).to_list()


def _kind_of(path: str | os.PathLike[str], format: str) -> str:
    name = os.fspath(path)
    if name == "-":
        return "{" if format == "trl" else ","
    if Path(name).suffix.lower() in PARQUET:
        return PARQUET[0]
    kind = KINDS.get(suffix_of(Path(name).name))
    if kind not in WRITTEN:
        known = ", ".join(suffix for suffix, kind in KINDS.items() if kind in WRITTEN)
        raise InvalidInput(
            f"{path}: unknown kind of file, expected one of {known}, with .gz if you like, or {PARQUET[0]}"
        )
    return kind


def _table(votes: Votes, format: str) -> tuple[tuple[str, ...], Iterable[tuple[object, ...]]]:
    """The columns of a file, and its rows, which may have more cells."""
    columns = FORMATS[format]
    if format == "trl":
        return columns, trl_pairs(votes).rows
    columns = columns if votes.total == len(votes) else (*columns, "count")
    row_of: dict[str, Callable[[Vote], tuple[object, ...]]] = {
        "duels": operator.attrgetter(*columns, "count"),
        "arena": lambda vote: _arena_row(vote),
        "lmarena": _lmarena_row,
    }
    rows: Iterable[tuple[object, ...]] = map(row_of[format], votes)
    if format == "lmarena" and (items := _items_of(votes)) is not None:
        talks = (tuple(_conversation(prompt, output) for output in outputs) for prompt, *outputs in zip(*items))
        rows = map(partial(_with_more, len(columns)), rows, talks)
        columns += TALKS
    further = [name for name in FURTHER if name in votes.extra] if format == "duels" else []
    if further:
        cells = zip(*(votes.extra[name].to_list() for name in further))
        rows = map(partial(_with_more, len(columns)), rows, cells)
        columns += tuple(further)
    return columns, rows


def _arena_row(vote: Vote) -> tuple[object, ...]:
    time = vote.time and datetime.fromisoformat(vote.time).timestamp()
    return vote.left, vote.right, ARENA_WINNERS[WINNERS.index(vote.winner)], vote.voter, time, vote.count


def _lmarena_row(vote: Vote) -> tuple[object, ...]:
    number = vote.duel or str(vote.line)
    return number, vote.left, vote.right, ARENA_WINNERS[WINNERS.index(vote.winner)], vote.voter, vote.time, vote.count


def _with_more(width: int, row: tuple[object, ...], more: tuple[object, ...]) -> tuple[object, ...]:
    return row[:width] + more


def _conversation(prompt: object, output: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": prompt}, {"role": "assistant", "content": output}]


def _write(
    file: IO[bytes], kind: str, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]], votes: Votes, format: str
) -> None:
    if kind == PARQUET[0]:
        _frame(columns, rows, votes, format).write_parquet(file)
        return
    text = io.TextIOWrapper(file, "utf-8", newline="")
    if kind == "{":
        text.writelines(json.dumps(dict(zip(columns, row)), ensure_ascii=False) + "\n" for row in rows)
    else:  # text is always quoted, since a bare carriage return in a name would end the row
        writer = csv.writer(text, delimiter=kind, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows(itertools.chain([columns], (_cells(row[: len(columns)]) for row in rows)))
    text.detach()


def _cells(row: tuple[object, ...]) -> Iterator[object]:
    for cell in row:
        if isinstance(cell, list):
            yield json.dumps(cell, ensure_ascii=False)
        else:
            yield safe_cell(cell) if isinstance(cell, str) else cell


def _frame(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]], votes: Votes, format: str) -> "pl.DataFrame":
    """The same table as a data frame, by columns."""
    import polars as pl

    if format == "trl":
        return pl.DataFrame(list(rows), schema=dict.fromkeys(columns, pl.String), orient="row")
    found = _by_columns(votes, format) | {name: votes.extra[name] for name in FURTHER if name in votes.extra}
    frame = pl.DataFrame({name: found[ROLES.get(name, name)] for name in columns if name not in TALKS})
    if TALKS[0] in columns:
        kind = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
        talks = zip(*(row[-2:] for row in rows)) if len(votes) else ((), ())
        frame = frame.with_columns(pl.Series(name, talk, dtype=kind) for name, talk in zip(TALKS, talks))
    return frame


def _by_columns(votes: Votes, format: str) -> "dict[str, pl.Series]":
    import polars as pl

    names, size = pl.Series(votes.names, dtype=pl.String), len(votes)
    words = pl.Series(WINNERS if format == "duels" else ARENA_WINNERS)
    micros = np.full(size, NEVER) if votes.times is None else votes.times.microseconds
    moments = pl.Series(micros).set(pl.Series(micros == NEVER), None)
    voters, codes = ([], np.full(size, -1)) if votes.voters is None else (votes.voters.names, votes.voters.codes)
    duels = list(votes.duels or itertools.repeat(None, size))
    if format == "lmarena":
        duels = [duel or str(line) for duel, line in zip(duels, votes.lines.tolist())]
    return {
        "left": names.gather(votes.left),
        "right": names.gather(votes.right),
        "winner": words.gather(votes.winner.astype(np.int64)),
        "voter": pl.Series([*voters, None], dtype=pl.String).gather(np.where(codes < 0, len(voters), codes)),
        "time": moments / 1e6 if format == "arena" else moments.cast(pl.Datetime("us", "UTC")),
        "duel": pl.Series(duels, dtype=pl.String),
        "count": pl.Series(np.ones(size, np.int64) if votes.count is None else votes.count),
    }
