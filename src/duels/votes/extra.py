"""Further columns of votes, such as a language or a length, which are kept if the caller asks for them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidInput, UnknownName
from .columns import Table

if TYPE_CHECKING:
    import polars as pl


def checked_extra(extra: object) -> tuple[str, ...]:
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
        names: Names of columns. What follows the name of a column is a path: `a.b` is the field b of column a.

    Raises:
        UnknownName: If there is no such column.
    """
    places = [_place(table, name) for name in names]
    return lambda row: tuple(_field(row[at], path) for at, path in places)


def series(name: str, cells: Sequence[object]) -> "pl.Series":
    """Return cells as a column: of numbers, if all that are not empty are numbers or text that reads like one."""
    import polars as pl

    values = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in cells]
    column = pl.Series(name, values, strict=False)
    if column.dtype == pl.String:
        for kind in (pl.Int64, pl.Float64):
            numbers = column.cast(kind, strict=False)
            if numbers.null_count() == column.null_count() < len(column):
                return numbers
    return column


def _place(table: Table, name: str) -> tuple[int, list[str]]:
    header, parts = list(table.header), name.split(".")
    for end in range(len(parts), 0, -1):
        if (column := ".".join(parts[:end])) in header:
            return header.index(column), parts[end:]
    raise UnknownName(f"column of {table.source}", name, [str(one) for one in header])


def _field(cell: object, path: list[str]) -> object:
    """A field of an object in a cell. The names of fields may have dots too: the longest that fits is meant."""
    if not path:
        return cell
    if isinstance(cell, Mapping):
        for end in range(len(path), 0, -1):
            if (key := ".".join(path[:end])) in cell:
                return _field(cell[key], path[end:])
    return None
