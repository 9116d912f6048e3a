"""The databases behind a storage: how they are reached, and how their tables are made."""

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..errors import InvalidInput, StorageError
from .wording import PATIENCE, shown

HEAD = "0002"  # the newest migration
DEFAULT = "sqlite:///duels.db"


def engine_for(url: str) -> sa.Engine:
    """What makes connections to the database of a URL."""
    try:
        parsed = sa.make_url(url)
        parsed.get_dialect()
    except (sa.exc.SQLAlchemyError, ValueError):
        expected = f"{DEFAULT} or postgresql://user@host/name"
        raise InvalidInput(f"storage is {shown(url)}: expected a URL such as {expected}") from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        if parsed.host or (parsed.query and not str(parsed.database).startswith("file:")):
            raise InvalidInput(f"storage is {shown(url)}: expected three slashes and a file, such as {DEFAULT}")
        engine = sa.create_engine(
            parsed,
            poolclass=sa.StaticPool if parsed.database in (None, "", ":memory:") else sa.NullPool,
            connect_args={"timeout": PATIENCE, "check_same_thread": False, "isolation_level": None},
        )
        sa.event.listen(engine, "connect", _set_up_sqlite)
        return engine
    if kind == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
        try:
            engine = sa.create_engine(
                parsed,
                isolation_level="AUTOCOMMIT",
                pool_size=2,
                pool_pre_ping=True,
                connect_args={} if "connect_timeout" in parsed.query else {"connect_timeout": 10},
            )
        except ImportError:
            raise InvalidInput("PostgreSQL needs its driver: pip install 'duels[postgres]'") from None
        sa.event.listen(engine, "connect", _set_up_postgres)
        return engine
    raise InvalidInput(f"storage is {shown(url)}: expected sqlite:///file.db or postgresql://user@host/name")


def _set_up_sqlite(connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):  # a study may be looked at where it cannot be written
            raise
    cursor.execute("PRAGMA synchronous=FULL")  # a commit returns after it is on disk
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _set_up_postgres(connection: Any, record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{PATIENCE:g}s'")  # another server may have frozen with a lock
    connection.commit()


def prepare(engine: sa.Engine, url: str) -> None:
    """Make the tables, or find them; a database of a newer version is left alone."""
    with engine.connect() as connection:
        found = _revision(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise StorageError(
            f"the database {shown(url)} was written by a newer version of Duels (its schema is {found}, this "
            f"version knows up to {HEAD}): upgrade Duels; nothing was changed"
        )
    upgrade(engine)


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def upgrade(engine: sa.Engine, revision: str = "head") -> None:
    """Bring the tables to the newest schema."""
    import alembic.command
    import alembic.config

    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.connect() as connection:
        # Several processes may open a new database at once: one of them makes the tables.
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7310145)")
        try:
            if _revision(connection) != HEAD or revision != "head":
                config.attributes["connection"] = connection
                alembic.command.upgrade(config, revision)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
