"""Statements that run directly on the database's driver, written with question marks for SQLite and PostgreSQL alike.

Every question and every vote needs a few of them. Through SQLAlchemy Core, a question about an item and its answer took
50 % more processor time on SQLite (550 µs instead of 370), though the statements were built once.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

Row = tuple[Any, ...]


def fetch_rows(connection: sa.Connection, text: str, values: Sequence[object]) -> list[Row]:
    """Return what a statement finds."""
    return list(execute(connection, text, values).fetchall())


def execute(connection: sa.Connection, text: str, values: Sequence[object]) -> DBAPICursor:
    """Run a statement."""
    cursor = connection.connection.cursor()
    cursor.execute(adapt_marks(text, connection.dialect.name == "sqlite"), values)
    return cursor


def execute_many(connection: sa.Connection, text: str, values: Sequence[Sequence[object]]) -> None:
    """Run a statement for each of these values."""
    connection.connection.cursor().executemany(adapt_marks(text, connection.dialect.name == "sqlite"), values)


def adapt_marks(text: str, is_sqlite: bool) -> str:
    """Return a statement with the marks for values that the database's driver expects."""
    return text if is_sqlite else text.replace("?", "%s")


def join_marks(values: Sequence[object]) -> str:
    """Return a question mark for each value."""
    return ", ".join("?" * len(values))
