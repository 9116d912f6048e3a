"""Votes by columns: tables of many million rows, in Parquet files and data frames.

What a row says is decided by `rows`, as for every other source; but once for each different combination of cells, of
which there are few.
"""

import glob
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InvalidInput
from .columns import SKIP, Table, columns_said, field_of, numbers_or_text, place_of_field, tells_votes_apart
from .parse_rows import (
    EMPTY,
    SHOWN,
    Fault,
    Judge,
    find_repeated_rows,
    find_used_names,
    first_rows,
    judge_of,
    moment_of,
    unread_rows,
    voter_of,
    votes_of_rows,
)
from .votes import NEVER, Names, RowList, Times, Votes

if TYPE_CHECKING:
    import polars as pl

PARQUET = (".parquet", ".pq")
MAGIC = b"PAR1"  # how Parquet files start
KEYS = ("left", "right", "winner")
FIRST, ROWS = "first row", "rows"  # columns of the table of combinations
SECONDS_FROM, SECONDS_TO = -62_135_596_800, 253_402_300_800  # the years 1 to 9999
BATCH = 10_000  # rows that are Python objects at once
WITH_VOTERS = 50_000  # votes that keep their voters where equal ones become one row


def is_parquet(source: str | bytes | os.PathLike[str], format: str | None) -> bool:
    """Return whether a source is Parquet: by the name of a file or a pattern, as a folder, or by its first bytes."""
    if format is not None:
        return format == "parquet"
    if isinstance(source, bytes):
        return source.startswith(MAGIC)
    path = os.fspath(source)
    return Path(path).suffix.lower() in PARQUET or Path(path).is_dir()


def scan(source: str | bytes | os.PathLike[str], called: str) -> "pl.LazyFrame":
    """Open Parquet.

    Args:
        source: A file, a folder, a pattern, or the content of a file.
        called: What to call it in errors.

    Raises:
        InvalidInput: If there is none, or it cannot be read.
    """
    import polars as pl

    try:
        if isinstance(source, bytes):
            return _open_parquet(io.BytesIO(source))
        files = _files(os.fspath(source))
        for file in files if len(files) > 1 else ():
            called = str(file)  # which of them is wrong
            _open_parquet(file)
        return _open_parquet(files)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(f"{called} cannot be read as Parquet: {_first_line(error)}") from None


def _open_parquet(source: "io.BytesIO | Path | list[Path]") -> "pl.LazyFrame":
    import polars as pl

    frame = pl.scan_parquet(source, extra_columns="ignore")
    frame.collect_schema()
    return frame


def _files(path: str) -> list[Path]:
    """The files of a path, a folder with all below it, or a pattern, in the order of their names."""
    if Path(path).is_dir():
        found = sorted(one for kind in PARQUET for one in Path(path).rglob(f"*{kind}"))
    elif Path(path).exists() or not glob.has_magic(path):
        return [Path(path)]
    else:
        found = sorted(map(Path, glob.glob(path, recursive=True)))
    if not found:
        raise InvalidInput(f"{path}: no Parquet files were found there, expected names that end in .parquet")
    return found


def frame_table(called: str, frame: "pl.LazyFrame", unit: str = "row", first: int = 1) -> Table:
    """Return a data frame as a table; its rows are read when they are needed."""
    return Table(called, unit, frame.collect_schema().names(), _rows(frame, first), frame, first)


def _rows(frame: "pl.LazyFrame", first: int) -> "Iterator[tuple[int, list[object]]]":
    for line, row in enumerate(frame.collect().iter_rows(buffer_size=BATCH), first):
        yield line, list(row)


def simple_csv(called: str, text: str, delimiter: str) -> Table | None:
    """Return a CSV file as a table by columns, if it is so simple that nothing about its rows can be disputed.

    Then it has a header, every line has as many cells, and no cell is in quotes or has an apostrophe in front.

    Args:
        called: What to call the file in errors.
        text: Its content.
        delimiter: Between cells.
    """
    import polars as pl

    header = text[: text.find("\n")].rstrip("\r").split(delimiter)
    lines = text.count("\n") + (not text.endswith("\n"))
    if len(header) < 3 or len({*header}) < len(header) or not all(map(str.strip, header)) or lines < 2:
        return None
    if '"' in text or text.count("\r") != text.count("\r\n") or text.count(delimiter) != lines * (len(header) - 1):
        return None
    if "'" in text and any(f"{before}'" in text for before in ("\n", delimiter)):
        return None
    try:
        frame = pl.read_csv(text.encode(), separator=delimiter, quote_char=None, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.columns != header or len(frame) != lines - 1:
        return None
    return frame_table(called, frame.lazy(), "line", 2)


class Kept(Enum):
    """What is kept of votes, beyond arms, winner and further columns."""

    all = "voters, times and duels"
    voters = "voters"
    counts = "how many equal votes there are"


def votes_of_frame(
    table: Table, roles: dict[str, int], extra: Sequence[str], kept: Kept = Kept.all, skip: bool = False
) -> Votes:
    """Read the votes of a data frame.

    Args:
        table: From `frame_table`.
        roles: What its columns are for.
        extra: Names of further columns to keep.
        kept: What else to keep. With counts, equal votes become one row; so they do if there are no voters to keep and
            no further columns.
        skip: Whether to leave out rows that cannot be read.

    Raises:
        InvalidInput: If any row cannot be read, or the file is damaged; with `skip`, if none can be read.
    """
    import polars as pl

    try:
        votes = _read_kept(table, roles, extra, kept, skip)
        if votes is None:
            return replace(_by_rows(table, roles, extra, skip), repeats=_repeats(table, roles))
        return replace(votes, repeats=_repeats(table, roles))
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"{table.source} cannot be read: {_first_line(error)}") from None


def _by_rows(table: Table, roles: dict[str, int], extra: Sequence[str], skip: bool) -> Votes:
    """As `rows` reads them, without the columns that are not needed."""
    assert table.frame is not None
    named = {role: str(table.header[at]) for role, at in roles.items()}
    needed = list(dict.fromkeys([*named.values(), *(str(place_of_field(table, name)[0]) for name in extra)]))
    narrow = frame_table(table.source, table.frame.select(needed), table.unit, table.first)
    return votes_of_rows(narrow, {role: needed.index(name) for role, name in named.items()}, extra, skip)


class _Combinations(NamedTuple):
    """The different combinations of cells, in the order of their first rows."""

    frame: "pl.DataFrame"
    left: np.ndarray  # (m,) int64: indices into `names`
    right: np.ndarray
    winner: np.ndarray  # (m,) int8
    names: tuple[str, ...]
    faults: list[str]  # (m,): what is wrong with each, empty if nothing
    unread: RowList = RowList()  # the rows with faults

    @property
    def kept(self) -> np.ndarray:
        """(m,) bool: Which are votes."""
        return np.asarray(self.winner != SKIP)

    @property
    def skips(self) -> int:
        """How many rows are skips."""
        return int(self.frame[ROWS].to_numpy()[~self.kept].sum()) - self.unread.count


def _read_kept(table: Table, roles: dict[str, int], extra: Sequence[str], kept: Kept, skip: bool) -> Votes | None:
    """The votes; None if they must be read row by row."""
    if kept is not Kept.voters:
        return _read(table, roles, extra, kept is Kept.counts, skip)
    if "voter" not in roles and not extra:
        return _read(table, roles, extra, grouped=True, skip=skip)
    fewer = {role: at for role, at in roles.items() if role not in ("time", "duel")}
    votes = _read(table, fewer, extra, grouped=False, skip=skip)
    if votes is None or "voter" not in roles or votes.count is not None:
        return votes
    return replace(votes, said=columns_said(table.header, roles), first=_first(table, roles, skip))


def _read(table: Table, roles: dict[str, int], extra: Sequence[str], grouped: bool, skip: bool) -> Votes | None:
    """As `_read_kept`: equal votes together, or with all columns that have a role."""
    import polars as pl

    frame = _select_columns(table, roles, extra)
    if frame is None or ("count" in roles and not _are_positive(frame)):
        return None
    further = [f"extra {k}" for k in range(len(extra))]
    keys = [*KEYS, *further] if grouped else list(KEYS)
    count = pl.col("count").sum() if "count" in roles else pl.len()
    if not grouped:
        texts = [name for name in (*KEYS, "voter") if frame.collect_schema().get(name) == pl.String]
        frame = frame.with_columns(pl.col(texts).cast(pl.Categorical)).collect().lazy()
    numbered = None if grouped else _number_combinations(frame.collect())
    if numbered is not None:
        counted, number = numbered
    else:
        number = None
        counted = (
            frame.with_row_index(FIRST)
            .group_by(keys)
            .agg(pl.col(FIRST).min(), pl.len().alias(ROWS), count.cast(pl.Int64).alias("count"))
            .sort(FIRST)
            .collect(engine="streaming" if grouped else "auto")
        )
    found = _judge_votes(counted, judge_of(table, roles))
    found = found._replace(unread=_unread(table, frame, found, skip))
    said = columns_said(table.header, roles)
    if grouped:
        votes = _group_votes(table, found, said, dict(zip(further, extra)))
        return replace(votes, first=_first(table, roles, skip)) if "voter" in roles and "count" not in roles else votes
    return _whole(table, frame.collect(), found, number, said, dict(zip(further, extra)))


def _number_combinations(frame: "pl.DataFrame") -> "tuple[pl.DataFrame, np.ndarray] | None":
    """The different combinations of cells, and (n,) which of them each row has; None if a join is needed for that."""
    import polars as pl

    size, number, n = 1, np.zeros(len(frame), np.int64), len(frame)
    for key in KEYS:
        column = frame[key]
        if column.dtype != pl.Categorical or column.null_count() or not n:
            return None
        codes = column.to_physical().to_numpy()
        used = np.flatnonzero(np.bincount(codes))
        place = np.zeros(int(used[-1]) + 1, np.int64)
        place[used] = np.arange(len(used))
        size *= len(used)
        if size > n + 1_000_000:  # most of them do not occur
            return None
        number *= len(used)
        number += place[codes]
    first = first_rows(number, size)
    rows = np.bincount(number, minlength=size)
    order = np.argsort(first)[: np.count_nonzero(rows)]
    place = np.zeros(size, np.int32)
    place[order] = np.arange(len(order))
    counts = pl.DataFrame({FIRST: first[order], ROWS: rows[order]})
    return pl.concat([frame.select(KEYS)[first[order]], counts], how="horizontal"), place[number]


def _first(table: Table, roles: dict[str, int], skip: bool) -> Votes | None:
    """The first votes of a table that was read, with their voters and times."""
    assert table.frame is not None
    try:
        return _read(table._replace(frame=table.frame.head(WITH_VOTERS)), roles, (), grouped=False, skip=skip)
    except InvalidInput:  # none of the first rows can be read, but others can
        return None


def _are_positive(frame: "pl.LazyFrame") -> bool:
    """Whether all counts are there, and above 0."""
    import polars as pl

    least, missing = frame.select(pl.col("count").min(), pl.col("count").null_count().alias("missing")).collect().row(0)
    return missing == 0 and least is not None and least > 0


def _select_columns(table: Table, roles: dict[str, int], extra: Sequence[str]) -> "pl.LazyFrame | None":
    """The columns that are needed, by their roles; None if a column is of a kind that only `rows` reads."""
    import polars as pl

    assert table.frame is not None
    if "winner" not in roles:
        return None
    schema = table.frame.collect_schema()
    given = {role: str(table.header[at]) for role, at in roles.items()}
    if "loser" in given:
        given |= {"left": given["winner"], "right": given.pop("loser")}
    kinds = [schema[given[key]] for key in KEYS]
    if any(not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum)) for kind in kinds):
        return None
    if "count" in given and not schema[given["count"]].is_integer():
        return None
    chosen = [pl.col(name).alias(role) for role, name in given.items() if role not in KEYS]
    chosen += [pl.col(given[key]).alias(key) for key in ("left", "right")]
    chosen += [pl.lit("left").alias("winner") if "loser" in roles else pl.col(given["winner"]).alias("winner")]
    chosen += [field_of(table, name).alias(f"extra {k}") for k, name in enumerate(extra)]
    return table.frame.select(chosen)


def _judge_votes(counted: "pl.DataFrame", judge: Judge) -> _Combinations:
    names: dict[str, int] = {}
    left, right, winner, faults = [], [], [], []
    for cells in counted.select(KEYS).iter_rows():
        try:
            one, other, code = judge(*cells)
            faults.append("")
        except ValueError as error:
            one, other, code = "", "", SKIP
            faults.append(str(error))
        kept = code != SKIP
        left.append(names.setdefault(one, len(names)) if kept else 0)
        right.append(names.setdefault(other, len(names)) if kept else 0)
        winner.append(code)
    return _Combinations(
        counted, np.array(left, np.int64), np.array(right, np.int64), np.array(winner, np.int8), tuple(names), faults
    )


def _unread(table: Table, frame: "pl.LazyFrame", found: _Combinations, skip: bool) -> RowList:
    """The rows that cannot be read, if they may be left out."""
    import polars as pl

    wrong = [k for k, fault in enumerate(found.faults) if fault]
    if not wrong:
        return RowList()
    bad = found.frame[wrong].select(*KEYS, ROWS).with_columns(pl.Series("fault", [found.faults[k] for k in wrong]))
    rows = frame.select(KEYS).with_row_index(FIRST).join(bad.lazy(), on=KEYS, nulls_equal=True)
    shown = rows.sort(FIRST).head(SHOWN).select(FIRST, "fault").collect()
    faults: list[Fault] = [(line + table.first, fault) for line, fault in shown.iter_rows()]
    of = int(found.frame[ROWS].sum())
    return unread_rows(table.source, table.unit, faults, int(bad[ROWS].sum()), of, skip)


def _repeats(table: Table, roles: dict[str, int]) -> RowList:
    """The rows that are equal to an earlier one in every cell; cells with lists or objects are not compared."""
    import polars as pl

    if table.frame is None or not (apart := tells_votes_apart(table, roles)):
        return RowList()
    named = {role: str(table.header[at]) for role, at in roles.items()}
    plain_columns = [name for name, kind in table.frame.collect_schema().items() if not kind.is_nested()]
    known = [name for name in dict.fromkeys(named.values()) if name in plain_columns]
    steps, equal = [known], None
    if apart in named:
        cells = table.frame.select(named[apart]).collect().to_series()
        same = _same_as_another(cells)
        equal = pl.DataFrame({FIRST: same, "hash": cells.gather(same).hash()})
        steps = [
            [name] for name in known if name != named[apart]
        ]  # mostly, one or two tell the few that are left apart
    for columns in (*steps, [name for name in plain_columns if name not in known]):
        if equal is not None and not len(equal):
            return RowList()
        equal = _still_equal(table.frame, columns, equal) if columns else equal
    assert equal is not None
    earlier = equal.select(FIRST, earlier=pl.col(FIRST).min().over("hash"))
    again = earlier.filter(pl.col(FIRST) > pl.col("earlier")) + table.first
    return find_repeated_rows(again[FIRST].to_list(), again["earlier"].to_list(), table.unit)


def _still_equal(frame: "pl.LazyFrame", columns: list[str], before: "pl.DataFrame | None") -> "pl.DataFrame":
    """The rows that another one is equal to in these columns too, in order: their places, and hashes of their cells.

    Args:
        frame: The table.
        columns: Which are compared.
        before: The rows that are equal in others; None before the first ones are compared.
    """
    import polars as pl

    rows = frame.select(pl.col(name).alias(f"{k}") for k, name in enumerate(columns)).with_row_index(FIRST)
    if before is not None:
        rows = rows.filter(pl.col(FIRST).is_in(before[FIRST].implode()))
    found = rows.select(FIRST, hash=pl.struct(pl.exclude(FIRST)).hash()).collect()
    if before is not None:
        found = found.with_columns(hash=pl.struct("hash", before["hash"].alias("before")).hash())
    return found.filter(pl.col("hash").is_duplicated())


def _same_as_another(column: "pl.Series") -> "pl.Series":
    """The places of cells that another one is equal to; empty cells are not."""
    import polars as pl

    if column.dtype == pl.String:
        column = column.replace(dict.fromkeys(EMPTY))
    if column.is_sorted():  # as logs are
        same = column == column.shift(1)
        found = same | same.shift(-1)
    else:
        found = column.is_duplicated() & column.is_not_null()
    return found.fill_null(False).arg_true().cast(pl.get_index_type()).alias(FIRST)


def _group_votes(table: Table, found: _Combinations, said: str, extra: dict[str, str]) -> Votes:
    kept, count = found.kept, found.frame["count"].to_numpy()
    return Votes(
        found.names,
        found.left[kept],
        found.right[kept],
        found.winner[kept],
        found.frame[FIRST].to_numpy()[kept].astype(np.int64) + table.first,
        None,
        None,
        None,
        found.skips,
        said,
        table.source,
        {name: numbers_or_text(found.frame[column].filter(kept).alias(name)) for column, name in extra.items()},
        count[kept],
        unread=found.unread,
    )


def _whole(
    table: Table,
    frame: "pl.DataFrame",
    found: _Combinations,
    number: np.ndarray | None,
    said: str,
    extra: dict[str, str],
) -> Votes | None:
    """One row per row of the table; None if voters or times must be read row by row."""
    import polars as pl

    if number is None:
        numbered = found.frame.select(KEYS).with_row_index("combination")
        which = frame.select(KEYS).join(numbered, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
        number = which["combination"].to_numpy()
    rows, shown = np.arange(table.first, table.first + len(frame)), frame
    kept = found.kept[number]
    if not kept.all():
        number, rows, shown = number[kept], rows[kept], frame.filter(kept)
    voters = _voters(shown["voter"]) if "voter" in shown.columns else None
    times = _times(shown["time"]) if "time" in shown.columns else None
    if isinstance(voters, bool) or isinstance(times, bool):
        return None
    count = shown["count"].cast(pl.Int64).to_numpy() if "count" in shown.columns else None
    duels = shown["duel"].cast(pl.String).str.strip_chars().replace("", None) if "duel" in shown.columns else None
    return Votes(
        found.names,
        found.left[number],
        found.right[number],
        found.winner[number],
        rows,
        voters,
        times,
        tuple(duels) if duels is not None and duels.null_count() < len(duels) else None,
        found.skips,
        said,
        table.source,
        {name: numbers_or_text(shown[column].alias(name)) for column, name in extra.items()},
        None if count is None or (count == 1).all() else count,
        unread=found.unread,
    )


def _voters(column: "pl.Series") -> "Names | bool | None":
    """The voters; None if there are none, False if a name cannot be one."""
    import polars as pl

    different = column.unique(maintain_order=True)
    try:
        known = {cell: voter_of(cell) for cell in different.to_list()}
    except (ValueError, TypeError):
        return False
    names = list(dict.fromkeys(name for name in known.values() if name is not None))
    number = {name: k for k, name in enumerate(names)}
    if column.dtype == pl.Categorical:
        code = np.array([-1 if (name := known[cell]) is None else number[name] for cell in different.to_list()])
        cells = different.to_physical().fill_null(0).to_numpy()
        codes_of = np.full(int(cells.max(initial=0)) + 1, -1, np.int32)
        codes_of[cells[different.is_not_null().to_numpy()]] = code[different.is_not_null().to_numpy()]
        given_codes = codes_of[column.to_physical().fill_null(0).to_numpy()]
        if column.null_count():
            given_codes[column.is_null().to_numpy()] = -1
        return find_used_names(names, given_codes)
    codes = pl.DataFrame(
        {"cell": different, "code": [-1 if (name := known[cell]) is None else number[name] for cell in different]},
        schema_overrides={"code": pl.Int32},
    )
    given = column.alias("cell").to_frame().join(codes, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return find_used_names(names, given["code"].to_numpy())


def _times(column: "pl.Series") -> "Times | bool | None":
    """The times; None if there are none, False if a cell is no time."""
    import polars as pl

    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if isinstance(column.dtype, pl.Datetime):
        found = column.dt.cast_time_unit("us").to_physical().fill_null(NEVER).to_numpy()
    elif column.dtype.is_numeric():
        seconds = column.cast(pl.Float64).fill_nan(None)
        if not seconds.drop_nulls().is_between(SECONDS_FROM, SECONDS_TO, closed="left").all():
            return False
        part, whole = np.modf(seconds.fill_null(0).to_numpy())  # as datetime.fromtimestamp rounds
        moments = whole.astype(np.int64) * 10**6 + np.rint(part * 1e6).astype(np.int64)
        found = np.where(seconds.is_null().to_numpy(), NEVER, moments)
    else:
        try:
            found = np.fromiter(map(moment_of, column), np.int64, len(column))
        except ValueError:
            return False
    return Times(found) if (found != NEVER).any() else None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
