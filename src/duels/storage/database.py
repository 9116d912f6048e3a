"""The databases behind a storage: how to connect to them, and how their tables are created."""

import contextlib
import os
import re
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection

from ..errors import InvalidInput, StorageError, needs_extra
from .database_errors import quote_url
from .tables import metadata

HEAD = "0001"  # the newest migration
OURS = re.compile(r"\d{4}")  # names of our migrations
DEFAULT = "sqlite:///duels.db"
LOCK_TIMEOUT = 60  # seconds to wait for other processes' locks
SETTLED = 1.0  # seconds without a write after which a file is taken to be complete


def engine_for(url: str) -> sa.Engine:
    """Return the SQLAlchemy engine for a URL.

    Raises:
        InvalidInput: If it is not the URL of a SQLite or PostgreSQL database, or a driver is missing.
    """
    try:
        parsed = sa.make_url(url)
        parsed.get_dialect()
    except (sa.exc.SQLAlchemyError, ValueError):
        expected = f"{DEFAULT} or postgresql://user@host/name"
        raise InvalidInput(f"storage is {quote_url(url)}: expected a URL such as {expected}") from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        if parsed.host or (parsed.query and not str(parsed.database).startswith("file:")):
            raise InvalidInput(f"storage is {quote_url(url)}: expected three slashes and a file, such as {DEFAULT}")
        path = sqlite_path(parsed)
        if path is not None and _cannot_change(path):
            parsed = parsed.set(database=f"file:{path}", query={"immutable": "1", "uri": "true"})
        engine = sa.create_engine(
            parsed,
            poolclass=sa.StaticPool if parsed.database in (None, "", ":memory:") else sa.NullPool,
            connect_args={"timeout": LOCK_TIMEOUT, "check_same_thread": False, "isolation_level": None},
        )
        sa.event.listen(engine, "connect", _set_up_sqlite)
        return engine
    if kind == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
        with needs_extra("postgres", "PostgreSQL"):
            engine = sa.create_engine(
                parsed,
                isolation_level="AUTOCOMMIT",
                pool_size=2,
                pool_pre_ping=True,
                connect_args={} if "connect_timeout" in parsed.query else {"connect_timeout": 10},
            )
        sa.event.listen(engine, "connect", _set_up_postgres)
        return engine
    raise InvalidInput(f"storage is {quote_url(url)}: expected sqlite:///file.db or postgresql://user@host/name")


def sqlite_path(url: sa.URL) -> Path | None:
    """Return the path of a SQLite database that is a plain file."""
    name = url.database
    plain = url.get_backend_name() == "sqlite" and name and name != ":memory:" and not name.startswith("file:")
    return Path(str(name)) if plain else None


def _cannot_change(path: Path) -> bool:
    """Whether this is a read-only medium, on which SQLite cannot create the files it needs beside the database."""
    here = path.exists() and not os.access(path, os.W_OK) and not os.access(path.parent, os.W_OK)
    return here and not Path(f"{path}-wal").exists()


GONE = (0, 0)  # what `file_at` returns if there is no file


def file_at(path: str | None) -> tuple[int, int] | None:
    """Return device and inode of a file, by which a replacement is noticed; None without a path."""
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return GONE
    return None if found is None else (found.st_dev, found.st_ino)


def check_returned(path: str, before: tuple[int, int] | None, old_wal: tuple[int, int] | None, left: float) -> None:
    """Refuse a file that cannot replace the one that was in use, or not yet.

    Args:
        path: Where the file is.
        before: The file that was in use (see `file_at`).
        old_wal: The WAL beside that file, which SQLite would apply to any file at this path.
        left: When the old file was released.

    Raises:
        StorageError: If the file is missing, incomplete or not a database of Duels.
    """
    words = f"the file of the database {path!r} was removed or replaced while it was in use"
    try:
        found, wal = os.stat(path), Path(f"{path}-wal")
        same = (found.st_dev, found.st_ino) == before and found.st_mtime <= left  # inodes are reused
        stale = not same and old_wal != GONE and file_at(str(wal)) == old_wal and wal.stat().st_size > 0
    except OSError:
        raise StorageError(words) from None
    if stale:
        raise StorageError(
            f"{words}, and {wal.name} belongs to the one that was there before: stop the server, remove {wal.name} and "
            f"{wal.name[:-4]}-shm, and start it again; nothing was written"
        )
    if not same and (not found.st_size or 0 <= time.time() - found.st_mtime < SETTLED):  # it may still be being copied
        raise StorageError(f"{words}, by one that was written just now: it is opened when it is complete")
    with contextlib.closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=1)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "alembic_version" not in tables:
        raise StorageError(f"{words}, by one that is not a database of Duels; nothing was changed")


def _set_up_sqlite(connection: DBAPIConnection, record: object) -> None:
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):  # a read-only study can still be looked at
            raise
    cursor.execute("PRAGMA synchronous=FULL")  # a commit returns after it is on disk
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _set_up_postgres(connection: DBAPIConnection, record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT:g}s'")  # another server may be frozen while it holds a lock
    cursor.close()
    connection.commit()


class Probe:
    """Tests whether a database can be read and written, on a separate connection; for one thread at a time.

    The write is a real one: it changes nothing, and is on disk when it returns.
    """

    def __init__(self, url: str, timeout: float) -> None:
        """Connect to nothing yet.

        Args:
            url: The database's URL.
            timeout: Seconds to wait for a lock.
        """
        path = sqlite_path(sa.make_url(url))
        if path is not None:  # do not create the file if it is missing
            url = f"sqlite:///file:{quote(str(path))}?mode=rw&uri=true"
        self.engine = engine_for(url)
        self._begin = ["BEGIN", f"SET LOCAL lock_timeout = '{timeout:g}s'"]
        if self.engine.dialect.name == "sqlite":
            self._begin = ["BEGIN IMMEDIATE"]
            sa.event.listen(self.engine, "do_connect", lambda *known: known[-1].update(timeout=timeout))

    def read(self) -> None:
        """Reads; raises errors of the driver or of SQLAlchemy."""
        self._do("SELECT version_num FROM alembic_version")

    def write(self) -> None:
        """Writes; raises errors of the driver or of SQLAlchemy."""
        self._do(*self._begin, "UPDATE alembic_version SET version_num = version_num", "COMMIT")

    def _do(self, *statements: str) -> None:
        with self.engine.connect() as connection:  # SQLite's is closed afterwards: its file may be replaced
            try:
                for statement in statements:
                    connection.exec_driver_sql(statement)
            except BaseException:
                connection.invalidate()
                raise


def prepare(engine: sa.Engine, url: str) -> None:
    """Create the tables, or upgrade them.

    Raises:
        StorageError: If the database belongs to another program or to a newer version of Duels.
    """
    with engine.connect() as connection:
        found = _revision(connection)
    if found == HEAD:
        return
    if found is None or not OURS.fullmatch(found):
        refuse_foreign(engine, url)
    elif found > HEAD:
        raise StorageError(
            f"the database {quote_url(url)} was written by a newer version of Duels (its schema is {found}, this "
            f"version knows up to {HEAD}): upgrade Duels; nothing was changed"
        )
    upgrade(engine)


def refuse_foreign(engine: sa.Engine, url: str) -> None:
    """Refuse a database of another program: a file with other tables, or one where ours would clash.

    Raises:
        StorageError: If it is one.
    """
    with engine.connect() as connection:
        found = set(sa.inspect(connection).get_table_names())
        if OURS.fullmatch(_revision(connection) or ""):  # another process has just created them
            return
    ours = {*metadata.tables, "alembic_version"}
    foreign = sorted(found if engine.dialect.name == "sqlite" else found & ours)
    if foreign:
        shortened = ", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else "")
        raise StorageError(
            f"the database {quote_url(url)} does not belong to Duels: it has the tables {shortened}; expected a new or "
            "empty one; nothing was changed"
        )


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def upgrade(engine: sa.Engine) -> None:
    """Migrate the tables to the newest schema."""
    import alembic.command
    import alembic.config

    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.connect() as connection:
        # Several processes may open a new database at once: one of them creates the tables.
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7310145)")
        try:
            if _revision(connection) != HEAD:
                config.attributes["connection"] = connection
                alembic.command.upgrade(config, "head")
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
