"""What each column of a table of votes is for: by its usual name, or as the caller says.

Further columns of votes, such as a language or a length, which are kept if the caller asks for them.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InvalidInput, UnknownName
from .text_files import Row

if TYPE_CHECKING:
    import polars as pl


# What a column is for → its usual names, in lower case, with _ for everything but letters and digits.
COLUMNS = {
    "left": ("left", "model_a", "a", "arm_a", "item_a", "option_a", "player_a", "system_a", "first"),
    "right": ("right", "model_b", "b", "arm_b", "item_b", "option_b", "player_b", "system_b", "second"),
    "winner": ("winner", "outcome", "vote", "preference", "preferred", "choice", "better"),
    "loser": ("loser", "worse"),
    "voter": ("voter", "judge", "worker", "annotator", "rater", "user", "voter_id", "judge_id", "worker_id", "user_id"),
    "time": ("time", "tstamp", "timestamp", "datetime", "created_at", "voted_at"),
    "duel": ("duel", "duel_id"),
    "count": ("count",),
    "wins_left": ("wins_left", "left_wins", "wins_a", "a_wins", "wins_first", "wins", "winner_model_a"),
    "wins_right": ("wins_right", "right_wins", "wins_b", "b_wins", "wins_second", "losses", "winner_model_b"),
    "ties": ("ties", "tie", "draws", "winner_tie"),
    "both_bad": ("both_bad", "bothbad"),
}
# Columns of a table that has one row per pair: how often it ended in each way, and the word for that.
COUNTED = {"wins_left": "left", "wins_right": "right", "ties": "tie", "both_bad": "both_bad"}
# Usual names of columns that say what was asked; the first that a log has is used, and TURN if it has that.
QUESTIONS = ("question_id", "question", "item", "item_id", "prompt_id", "prompt", "instruction")
TURN = "turn"
PAIRS = {*COLUMNS["winner"], *COLUMNS["loser"]}
USUAL = {name for names in COLUMNS.values() for name in names}
OPTIONAL = ("voter", "time", "duel", "count")
WINNERS = ("left", "right", "tie", "both_bad")
ANSWERS = (*WINNERS, "skip")
SKIP = len(WINNERS)  # the code of a duel that was shown and not judged
# Words for a winner → its code: WORDS take precedence over the names of arms, OTHER_WORDS do not.
WORDS = {"left": 0, "model_a": 0, "right": 1, "model_b": 1, "tie": 2, "both_bad": 3, "bothbad": 3, "tie_bothbad": 3}
WORDS |= {"skip": SKIP, "skipped": SKIP}
OTHER_WORDS = {"a": 0, "first": 0, "b": 1, "second": 1, "draw": 2, "equal": 2, "same": 2, "neither": 3, "pass": SKIP}

Columns = Mapping[str, str | int | None]  # what a column is for → its name, its position, or None for none
Rows = Iterable[Row[list[object]]]


class Table(NamedTuple):
    """A table of votes before its cells are interpreted."""

    source: str
    unit: str  # what its rows are counted in: line or row
    header: Sequence[object]  # names; positions if it has none
    rows: Rows
    frame: "pl.LazyFrame | None" = None  # the same by columns, if it is a data frame
    first: int = 1  # the number of the first row of the frame


def split_header(source: str, rows: Iterator[Row[list[str]]], columns: Columns) -> Table:
    """Separate the header of a file from its rows.

    There is no header if columns are given by position, or if there are two columns and neither is called winner or
    loser: then each row is a winner and a loser.

    Args:
        source: What to call the file in errors.
        rows: Its rows.
        columns: What the caller says about them.

    Raises:
        InvalidInput: If the file is empty, or it is not clear whether it has a header.
    """
    line, first = next(rows, (1, ValueError("empty")))
    if isinstance(first, ValueError):
        raise InvalidInput(f"{source} is {first}: expected a header, such as left,right,winner, and one row per vote")
    if not columns and len(first) == 2 and PAIRS.isdisjoint(map(plain, first)):
        return _pairs(source, line, first, list(rows))
    if any(isinstance(column, int) for column in columns.values()):
        return Table(source, "line", range(len(first)), _widen(itertools.chain([(line, first)], rows)))
    return Table(source, "line", first, _widen(rows))


def _pairs(source: str, line: int, first: list[str], rest: list[Row[list[str]]]) -> Table:
    """A table of two columns without a header. The first row is a vote if one of its arms appears again."""
    later = {cell.strip() for _, cells in rest if isinstance(cells, list) for cell in cells}
    appears_again = not later.isdisjoint(map(str.strip, first))
    if not appears_again and not USUAL.isdisjoint(map(plain, first)):
        without = "; of pairs without a header, by --column winner=0 --column loser=1"
        raise _unclear(source, first, "no column is known to be winner", without)
    if rest and not appears_again:
        raise InvalidInput(
            f"{source}, line {line}: {', '.join(first)} may be a header or a vote, as neither appears again. Say "
            f"which: columns={{'winner': {first[0]!r}, 'loser': {first[1]!r}}}, or {{'winner': 0, 'loser': 1}} "
            f"(--column winner=… --column loser=…)"
        )
    return Table(source, "line", (0, 1), _widen([(line, first), *rest]))


def _widen(rows: Iterable[Row[list[str]]]) -> Rows:
    return rows  # type: ignore[return-value]  # cells of a file are text; those of other tables may be anything


def plain(name: object) -> str:
    """Return a name in lower case, with _ for everything but letters and digits."""
    text = str(name).strip().lower()
    return re.sub(r"\W+", "_", text).strip("_") or text if isinstance(name, str) else text


def roles_of(table: Table, columns: Columns) -> dict[str, int]:
    """Find out what the columns of a table are for.

    Args:
        table: The table.
        columns: What the caller says about them; the others are found by their usual names.

    Returns:
        What a column is for → its position.

    Raises:
        InvalidInput: If that is not clear.
        UnknownName: If the caller names something that a column cannot be for.
    """
    if isinstance(table.header[0], int) and not columns:
        order = ("winner", "loser") if len(table.header) == 2 else ("left", "right", "winner", "voter", "time")
        columns = {role: at for at, role in enumerate(order[: len(table.header)])}
    if unknown := [role for role in columns if role not in COLUMNS]:
        raise UnknownName("column of votes", unknown[0], COLUMNS)
    asked = {role: plain(name) for role, name in columns.items() if name is not None}
    found, roles = set(map(plain, table.header)), dict[str, int]()
    counted = is_counted(found, columns)
    others = {"winner", "loser", "count"} if counted else {*COUNTED}
    for role, usual in COLUMNS.items():
        if role in asked:
            roles[role] = _position(table, role, {asked[role]}, f"no column {columns[role]!r} for {role}")
        elif role not in (*columns, *others) and not found.isdisjoint(names := set(usual) - set(asked.values())):
            roles[role] = _position(table, role, names)
    pairs = "loser" in asked or ("loser" in roles and not {"left", "right"} <= roles.keys())
    outcome = ("wins_left", "wins_right") if counted else ("winner",)
    needed = ("winner", "loser") if pairs else ("left", "right", *outcome)
    if missing := [role for role in needed if role not in roles]:
        raise _unclear(table.source, table.header, f"no column is known to be {' or '.join(missing)}")
    return {role: at for role, at in roles.items() if role in (*needed, *OPTIONAL) or (counted and role in COUNTED)}


def tells_votes_apart(table: Table, roles: Mapping[str, int]) -> str:
    """Return what makes rows that are equal in every cell hardly different votes; empty if nothing does.

    That is when the vote was given, `time`; or the id of its duel, `duel`; or who gave it on what, `question`.

    Args:
        table: The table.
        roles: What its columns are for.
    """
    if "count" in roles or not COUNTED.keys().isdisjoint(roles):
        return ""
    if "time" in roles or "duel" in roles:
        return "time" if "time" in roles else "duel"
    on_what = "voter" in roles and not {*QUESTIONS}.isdisjoint(map(plain, table.header))
    return "question" if on_what else ""


def is_counted(found: set[str], columns: Columns) -> bool:
    """Return whether a table has one row per pair with counts of wins, rather than one row per vote.

    Args:
        found: The plain names of its columns.
        columns: What the caller says about them.
    """
    if any(columns.get(role) is not None for role in ("winner", "loser")):
        return False
    if any(columns.get(role) is not None for role in COUNTED):
        return True
    both = all(not found.isdisjoint(COLUMNS[role]) for role in ("wins_left", "wins_right"))
    return both and found.isdisjoint(COLUMNS["winner"])


def _position(table: Table, role: str, names: set[str], otherwise: str = "") -> int:
    """Where the one column with one of these names is."""
    found = [at for at, name in enumerate(table.header) if plain(name) in names]
    if len(found) != 1:
        these = " or ".join(str(table.header[at]) for at in found)
        raise _unclear(table.source, table.header, f"{role} may be {these}" if found else otherwise)
    return found[0]


def _unclear(source: str, header: Sequence[object], problem: str, more: str = "") -> InvalidInput:
    return InvalidInput(
        f"{source}: {problem}. Found {', '.join(map(str, header))}; expected left, right and winner, or "
        "winner and loser, or left, right, wins_left and wins_right. "
        "Say which is which: columns={'left': '…', 'right': '…', 'winner': '…'} (--column left=…), "
        f"by name, or by position from 0 if there is no header{more}"
    )


def columns_said(header: Sequence[object], roles: Mapping[str, int]) -> str:
    """Return which column was taken for what, such as `model_a → left, winner`."""
    names = {role: header[at] if isinstance(header[at], str) else f"column {at}" for role, at in roles.items()}
    return ", ".join(role if name == role else f"{name} → {role}" for role, name in names.items())


def check_extra(extra: object) -> tuple[str, ...]:
    """Return the names of further columns.

    Raises:
        InvalidInput: If they are not a list of names.
    """
    if isinstance(extra, str) or not isinstance(extra, Iterable):
        raise InvalidInput(f"extra is {extra!r}: expected a list of names of columns, such as ['language']")
    names = tuple(dict.fromkeys(extra))
    if wrong := [name for name in names if not isinstance(name, str) or not name]:
        raise InvalidInput(f"extra has {wrong[0]!r}: expected names of columns, such as 'language'")
    return names


def picker(table: Table, names: Sequence[str]) -> Callable[[Sequence[object]], tuple[object, ...]]:
    """Return a function that picks further columns from the cells of a row.

    Args:
        table: The table.
        names: Names of columns. If no column has a name with dots, it is a path: `a.b` is the field b of column a.

    Raises:
        UnknownName: If there is no such column.
    """
    header = list(table.header)
    places = [(header.index(column), path) for column, path in (place_of_field(table, name) for name in names)]
    return lambda row: tuple(_field(row[at], path) for at, path in places)


def series(name: str, cells: Sequence[object]) -> "pl.Series":
    """Return cells as a column: of numbers, if all that are not empty are numbers or text that reads like one."""
    import polars as pl

    return numbers_or_text(pl.Series(name, cells, strict=False))


def numbers_or_text(column: "pl.Series") -> "pl.Series":
    """Return a column; text that reads like numbers throughout as numbers, other text without blanks around it."""
    import polars as pl

    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
        for kind in (pl.Int64, pl.Float64):
            numbers = column.cast(kind, strict=False)
            if numbers.null_count() == column.null_count() < len(column):
                return numbers
    return column


def place_of_field(table: Table, name: str) -> tuple[object, list[str]]:
    """Return the column and, if the name is a path with dots, the fields below it.

    Raises:
        UnknownName: If there is no such column.
    """
    header = list(table.header)
    if name in header:
        return name, []
    column, *path = name.split(".")
    if column in header and path:
        return column, path
    raise UnknownName(f"column of {table.source}", name, [str(one) for one in header])


def _field(cell: object, path: list[str]) -> object:
    """The field of an object at a path; the name of a field may have dots itself, as in LMArena's `math_v0.1`."""
    if not path:
        return cell
    if not isinstance(cell, Mapping):
        return None
    key = next((key for key, _ in _first_keys(path) if key in cell), None)
    return None if key is None else _field(cell[key], path[key.count(".") + 1 :])


def _first_keys(path: list[str]) -> list[tuple[str, list[str]]]:
    """How a path may begin with the name of a field, and what follows: the longest name first."""
    return [(".".join(path[:k]), path[k:]) for k in range(len(path), 0, -1)]


def field_of(table: Table, name: str) -> "pl.Expr":
    """Return a further column of a data frame, as `picker` does for rows.

    Raises:
        UnknownName: If there is no such column or field.
    """
    import polars as pl

    assert table.frame is not None
    column, path = place_of_field(table, name)
    kind, found = table.frame.collect_schema()[str(column)], pl.col(str(column))
    while path:
        fields = {field.name: field.dtype for field in kind.fields} if isinstance(kind, pl.Struct) else {}
        step = next(((key, rest) for key, rest in _first_keys(path) if key in fields), None)
        if step is None:
            raise UnknownName(f"field of {table.source}", name, [f"{column}.{field}" for field in fields])
        (key, path), kind = step, fields[step[0]]  # type: ignore[assignment]
        found = found.struct.field(key)
    return found
