"""Vote files of known evaluations, whose rows say who won in ways of their own.

A file is recognized by its columns. MT-Bench: Zheng et al. 2023, "Judging LLM-as-a-Judge with MT-Bench and Chatbot
Arena". Arena-Hard: Li et al. 2024. AlpacaEval: Dubois et al. 2024. Other files, such as those of LMArena and FastChat,
have a column for the winner, and those of Kaggle's LMSYS competition one for each outcome: they need nothing special.

Past votes, read from files and tables.

A vote compares two different arms, `left` and `right`; its winner is left, right, tie or both_bad. Every vote comes
through `read_votes`, which reads a whole source or fails. What it returns needs no further checks.
"""

import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict, Unpack

import numpy as np

from ..errors import InvalidInput, UnknownName, shorten
from ..files import read_cell
from .columns import (
    COLUMNS,
    OPTIONAL,
    Columns,
    Rows,
    Table,
    check_extra,
    columns_said,
    place_of_field,
    plain,
    roles_of,
    split_header,
)
from .item_tables import results_of, scores_of
from .parse_columns import Kept, frame_table, is_parquet, scan, simple_csv, votes_of_frame
from .parse_rows import votes_of_rows
from .text_files import Row, csv_rows, first_line, json_rows, read_text, suffix_of
from .votes import Votes

ADDED = ("the left arm", "the right arm", "the winner")  # names of the columns that are added to a table
Pair = tuple[object, object, str]  # left, right and winner


class Format(NamedTuple):
    """One kind of file.

    Attributes:
        name: What it is called.
        needed: The columns by which it is recognized.
        said: Which column is taken for what.
        pairs: Returns the votes in a row. It raises ValueError if a cell is wrong.
    """

    name: str
    needed: tuple[str, ...]
    said: str
    pairs: Callable[[Mapping[str, object]], Iterable[Pair]]


def format_of(header: Sequence[object], columns: Columns) -> Format | None:
    """Return the format of a table with these columns; None if the caller says what the columns are for."""
    if any(role in columns for role in ("left", "right", "winner", "loser")):
        return None
    return next((one for one in FORMATS if set(one.needed) <= {*header}), None)


def reshape_table(table: Table, found: Format) -> Table:
    """Return a table with three more columns: left, right and winner of each vote; a row may become several."""
    return Table(table.source, table.unit, [*table.header, *ADDED], _rows(table, found))


def reshape_roles(columns: Columns) -> Columns:
    """Return what the columns of a reshaped table are for."""
    free = dict.fromkeys(("loser", "count", "duel"))
    return free | dict(columns) | dict(zip(("left", "right", "winner"), ADDED))


def columns_needed(found: Format, header: Sequence[object]) -> list[str]:
    """Return the columns of a table that its votes need."""
    optional = {*COLUMNS["voter"], *COLUMNS["time"]}
    return [str(name) for name in header if name in found.needed or plain(name) in optional]


def _rows(table: Table, found: Format) -> Rows:
    names = [str(name) for name in table.header]
    voters = {name for name in names if plain(name) in COLUMNS["voter"]}
    for line, row in table.rows:
        if isinstance(row, ValueError):
            yield line, row
            continue
        try:
            pairs = list(found.pairs(dict(zip(names, row))))
        except ValueError as error:
            yield line, error
            continue
        cells = [_voter(cell) if name in voters else cell for name, cell in zip(names, row)]
        yield from ((line, [*cells, *pair]) for pair in pairs)


def _voter(cell: object) -> object:
    """MT-Bench's judge is a list: a model and the name of its instructions."""
    return ", ".join(map(str, cell)) if isinstance(cell, list | tuple) else cell


def _mt_bench(row: Mapping[str, object]) -> Iterator[Pair]:
    """Both orders were judged; a judge who changes its mind means a tie."""
    words = {"model_1": "left", "model_2": "right", "tie": "tie", "error": "skip"}
    found = [words.get(str(row[name])) for name in ("g1_winner", "g2_winner")]
    if None in found:
        cells = " and ".join(shorten(row[name], 20) for name in ("g1_winner", "g2_winner"))
        raise ValueError(f"g1_winner and g2_winner are {cells}, expected model_1, model_2, tie or error")
    winner = "skip" if "skip" in found else found[0] if found[0] == found[1] else "tie"
    yield row["model_1"], row["model_2"], str(winner)


def _arena_hard(row: Mapping[str, object]) -> Iterator[Pair]:
    """Two games: in the first one A is the baseline, in the second one A is the model."""
    games, sides = row["games"], (row["baseline"], row["model"])
    if not isinstance(games, list) or not all(isinstance(game, Mapping) for game in games) or len(games) > 2:
        raise ValueError(f"games is {shorten(games, 40)}, expected a list of two games, each with a score")
    for game, (left, right) in zip(games, (sides, sides[::-1])):
        yield left, right, _read_grade(game.get("score"))


def _read_grade(score: object) -> str:
    """A score such as A>>B; a strong win is one win, as a weak one."""
    if score is None or score == "":
        return "skip"
    grades = {"A>>B": "left", "A>B": "left", "A=B": "tie", "B>A": "right", "B>>A": "right"}
    grades |= {"A<B": "right", "A<<B": "right", "B=A": "tie", "B<A": "left", "B<<A": "left"}
    if (word := grades.get(str(score).strip("[] ").upper())) is None:
        raise ValueError(f"the score of a game is {shorten(score, 20)}, expected A>>B, A>B, A=B, B>A or B>>A")
    return word


def _alpaca_eval(row: Mapping[str, object]) -> Iterator[Pair]:
    """A preference from 1, the first output, to 2, the second; 1.5 is a tie, and a missing one a skip."""
    cell = row["preference"]
    text = "" if cell is None else str(cell).strip()
    try:
        number = float(text or "nan")
    except ValueError:
        number = -1.0
    if number == number and not 1 <= number <= 2:
        raise ValueError(
            f"preference is {shorten(cell, 20)}, expected a number from 1, the first output, to 2, the second"
        )
    words = {True: "left", False: "right"}
    winner = "skip" if number != number else "tie" if number == 1.5 else words[number < 1.5]
    yield row["generator_1"], row["generator_2"], winner


FORMATS = (
    Format(
        "MT-Bench",
        ("model_1", "model_2", "g1_winner", "g2_winner"),
        "model_1 → left, model_2 → right, g1_winner and g2_winner → winner, a tie if they differ",
        _mt_bench,
    ),
    Format(
        "Arena-Hard",
        ("model", "baseline", "games"),
        "baseline and model → left and right, each once on either side, score of each game → winner",
        _arena_hard,
    ),
    Format(
        "AlpacaEval",
        ("generator_1", "generator_2", "preference"),
        "generator_1 → left, generator_2 → right, preference → winner",
        _alpaca_eval,
    ),
)


def pair_scores(outputs: Iterable[tuple[int, Mapping[str, tuple[float, bool]]]]) -> Iterator[tuple[int, list[object]]]:
    """Yield a row left, right and winner for each two outputs of a test: the one with the larger score wins.

    Args:
        outputs: For each test its place, and for each arm the score and whether it passed. Of two outputs with the same
            score that did not pass, both are bad.
    """
    for place, scores in outputs:
        for (left, (one, passed)), (right, (other, other_passed)) in itertools.combinations(scores.items(), 2):
            level = "tie" if passed or other_passed else "both_bad"
            yield place, [left, right, "left" if one > other else "right" if one < other else level]


KINDS = {".csv": ",", ".tsv": "\t", ".jsonl": "{", ".ndjson": "{"}  # the delimiter of cells; { for JSON Lines
MOST_COLUMNS = 1_000  # of rows as dicts, which may have keys of their own: the work is rows times columns
READ = (*(suffix[1:] for suffix in KINDS), "parquet")
ON_ERROR = ("raise", "skip")
VoteSource = Votes | str | bytes | os.PathLike[str] | Iterable[object]


class Reading(TypedDict, total=False):
    """How votes are read, wherever they are taken.

    Attributes:
        columns: What each column is for, such as `{"left": "model_x"}`, see `read_votes`.
        on_error: `skip` leaves out the rows that cannot be read; `Votes.unread` has their number, and the first ones.
        without: Names of voters whose votes are left out.
    """

    columns: Columns | None
    on_error: str
    without: Iterable[str]


def read_votes(
    source: VoteSource,
    *,
    format: str | None = None,
    extra: Iterable[str] = (),
    **reading: Unpack[Reading],
) -> Votes:
    """Read votes from a CSV, TSV, JSON or JSON Lines file (.gz too), Parquet files, a data frame, or rows.

    If any row cannot be read, nothing is, unless `on_error="skip"`. Skips are left out and counted.

    Args:
        source: A path, `-` for standard input, the `bytes` of a file, a polars or pandas data frame, or an iterable of
            dicts or tuples. A folder, or a pattern such as `votes/*.parquet`, is all Parquet files in it.
        format: csv, tsv, jsonl or parquet; by default it is told from the file's name, or else from its first line.
        extra: Further columns to keep in `Votes.extra`, such as `["language"]`; `a.b` is the field b of the objects in
            column a.
        **reading: How the votes are read, see `Reading`. `columns` says what each column is for, such as
            `{"left": "model_x", "voter": None}`: its name, its position from 0 if there is no header, or None for
            none. The others are found by their usual names; `Votes.said` says how. `on_error="skip"` leaves out the
            rows that cannot be read, see `Votes.unread`. `without=["ann"]` leaves out the votes of voters.

    Returns:
        The votes.

    Raises:
        InvalidInput: If a row cannot be read, or it is not clear what the columns are for.
        UnknownName: If the format, a key of `columns`, a name in `extra` or a voter is unknown.

    Example:
        >>> votes = duels.read_votes([("cat", "dog", "left"), ("dog", "fox", "tie")])
        >>> len(votes), votes.names
        (2, ('cat', 'dog', 'fox'))
    """
    return _read(source, format, extra, Kept.all, reading)


def count_votes(
    source: VoteSource,
    *,
    format: str | None = None,
    extra: Iterable[str] = (),
    voters: bool = False,
    **reading: Unpack[Reading],
) -> Votes:
    """Read votes as `read_votes` does, but without voters, times and ids, and equal ones as one row with a count.

    Many million votes in Parquet take little memory this way. Sources of other kinds may keep one row per vote.

    Args:
        source: As in `read_votes`.
        format: As in `read_votes`.
        extra: Further columns to keep; votes that differ in them are not equal.
        voters: Whether to keep who voted, and one row per vote, if the source says so.
        **reading: As in `read_votes`. With `without`, voters are kept.

    Returns:
        The votes, see `Votes.count`.

    Raises:
        InvalidInput: As in `read_votes`.
        UnknownName: As in `read_votes`.
    """
    return _read(source, format, extra, Kept.voters if voters else Kept.counts, reading)


def _read(source: VoteSource, format: str | None, extra: Iterable[str], wanted: Kept, reading: Reading) -> Votes:
    columns, on_error, without = _check_options(**reading)
    if without:
        wanted = Kept.voters if wanted is Kept.counts else wanted
        return _read(source, format, extra, wanted, {"columns": columns, "on_error": on_error}).without(without)
    kept = check_extra(extra)
    if isinstance(source, Votes):
        if columns:
            raise InvalidInput(f"columns with {source!r}, which are read already: give them to read_votes")
        if missing := [name for name in kept if name not in source.extra]:
            raise InvalidInput(f"{source!r} has no column {missing[0]!r}: read it with read_votes(…, extra={missing})")
        return source
    if format is not None and format not in READ:
        raise UnknownName("format of votes", format, READ)
    table = _table(source, columns, format)
    if (known := format_of(table.header, columns)) is not None:
        return _votes_in(known, table, columns, kept, on_error == "skip")
    roles = roles_of(table, columns)
    if table.frame is not None:
        return votes_of_frame(table, roles, kept, wanted, on_error == "skip")
    return votes_of_rows(table, roles, kept, on_error == "skip")


def _check_options(
    columns: Columns | None = None, on_error: str = "raise", without: Iterable[str] = ()
) -> tuple[Columns, str, tuple[str, ...]]:
    if on_error not in ON_ERROR:
        raise UnknownName("on_error", on_error, ON_ERROR)
    if isinstance(without, str) or not isinstance(without, Iterable):
        raise InvalidInput(f"without is {shorten(without)}: expected a list of voters, such as ['bot 7']")
    return columns or {}, on_error, tuple(without)


def _votes_in(known: Format, table: Table, columns: Columns, extra: tuple[str, ...], skip: bool) -> Votes:
    """The votes of a file of a known evaluation."""
    if table.frame is not None:
        needed = {*columns_needed(known, table.header), *(str(place_of_field(table, name)[0]) for name in extra)}
        table = frame_table(table.source, table.frame.select(*needed), table.unit, table.first)
    table = reshape_table(table, known)
    roles = roles_of(table, reshape_roles(columns))
    others = {role: at for role, at in roles.items() if role in OPTIONAL}
    said = f"{known.name}: {', '.join(filter(None, [known.said, columns_said(table.header, others)]))}"
    return replace(votes_of_rows(table, roles, extra, skip), said=said)


def _table(source: VoteSource, columns: Columns, format: str | None) -> Table:
    if isinstance(source, str | bytes | os.PathLike):
        return _file_table(source, columns, format)
    called = f"the {type(source).__name__}"
    if hasattr(source, "collect_schema"):  # of polars
        return frame_table(called, source.lazy())  # type: ignore[attr-defined]
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # of pandas
        names = list(source.columns)
        cells = zip(*(source[name].tolist() for name in names))  # type: ignore[index]
        return Table(called, "row", names, ((line, list(row)) for line, row in enumerate(cells, 1)))
    if not isinstance(source, Iterable):
        raise InvalidInput(f"{source!r} holds no votes: expected a path, a data frame, or rows as dicts or tuples")
    rows = (row._asdict() if hasattr(row, "_asdict") else row for row in source)
    return Table(called, "row", *_unpack(list(enumerate(rows, 1))))


def _file_table(source: str | bytes | os.PathLike[str], columns: Columns, format: str | None) -> Table:
    called = "standard input" if source == "-" else "the votes" if isinstance(source, bytes) else str(source)
    if source == "-":
        source = sys.stdin.buffer.read()
    if is_parquet(source, format):
        return frame_table(called, scan(source, called))
    text = read_text(source, called)
    first = first_line(text)
    looks_like = "{" if re.match(r"\{|\[\s*([\[{\"]|\]?\s*$)", first) else ","
    kind = KINDS.get(suffix_of(called) if format is None else f".{format}", looks_like)
    if kind == ",":  # spreadsheets use other delimiters in CSV files too
        kind = max(",\t;", key=re.sub(r'"[^"]*"?', "", first).count)
    if kind != "{":
        by_position = any(isinstance(column, int) for column in columns.values())
        if not by_position and (table := simple_csv(called, text, kind)) is not None:
            return table
        return split_header(called, _unescape(csv_rows(text, kind), "'" in text), columns)
    if (results := _promptfoo_results(text)) is not None:
        return _scores_table(called, results)
    if (array := _json_array(text, called)) is not None:
        return Table(called, "row", *_unpack(list(enumerate(array, 1))))
    return Table(called, "line", *_unpack(list(json_rows(text))))


def _promptfoo_results(text: str) -> list[object] | None:
    """The results in a file of promptfoo, which is one JSON object; None if it is another file."""
    if not text.lstrip().startswith("{") or '"results"' not in text:
        return None
    try:
        return results_of(json.loads(text))
    except (ValueError, RecursionError):  # one object per line, or no JSON
        return None


def _scores_table(called: str, results: list[object]) -> Table:
    faults = list[tuple[int, str]]()
    rows: Rows = list(pair_scores(scores_of(results, faults)))
    return Table(called, "result", ("left", "right", "winner"), [*rows, *((at, ValueError(why)) for at, why in faults)])


def _unescape(rows: Iterator[Row[list[str]]], escaped: bool) -> Iterator[Row[list[str]]]:
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


def _unpack(rows: list[tuple[int, object]]) -> tuple[Sequence[object], Rows]:
    """Header and rows of a list of dicts, or of tuples, whose header is their positions."""
    keys = list(dict.fromkeys(key for _, row in rows if isinstance(row, Mapping) for key in row))
    if len(keys) > MOST_COLUMNS:
        shown = ", ".join(shorten(key, 20) for key in keys[:5])
        raise InvalidInput(
            f"the rows have {len(keys):,} different keys ({shown}, …): expected at most {MOST_COLUMNS:,}, the same in "
            "each row"
        )
    width = next((len(row) for _, row in rows if isinstance(row, tuple | list | np.ndarray)), 0)
    header = keys or list(range(width)) or ["left", "right", "winner"]
    return header, ((line, _cells(row, keys)) for line, row in rows)


def _cells(row: object, keys: list[object]) -> list[object] | ValueError:
    if isinstance(row, Mapping):
        return [row.get(key) for key in keys]
    if isinstance(row, tuple | list | np.ndarray) and not keys:
        return list(row)
    return row if isinstance(row, ValueError) else ValueError(f"found {shorten(row, 40)}, expected a dict or a tuple")
