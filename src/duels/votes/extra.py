"""Further columns of votes, such as a language or a length, which are kept if the caller asks for them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidInput, UnknownName
from .columns import Table

if TYPE_CHECKING:
    import polars as pl


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
