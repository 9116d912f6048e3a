"""The databases behind a storage: how they are reached, and how their tables are made."""

import contextlib
import logging
import os
import re
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from ..errors import InvalidInput, StorageError, needs_extra
from .database_errors import PATIENCE, shown
from .tables import metadata

HEAD = "0006"  # the newest migration
SCRUBBED = "0004"  # the migration that erases what was stored before
LEFTOVERS = 1  # SQLite's user_version while the unused space of its file has not been erased
OURS = re.compile(r"\d{4}")  # what migrations are called
DEFAULT = "sqlite:///duels.db"
SETTLED = 1.0  # seconds after which a file that nobody has written to is taken to be complete
logger = logging.getLogger("duels")


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
        path = sqlite_path(parsed)
        if path is not None and _cannot_change(path):
            parsed = parsed.set(database=f"file:{path}", query={"immutable": "1", "uri": "true"})
        engine = sa.create_engine(
            parsed,
            poolclass=sa.StaticPool if parsed.database in (None, "", ":memory:") else sa.NullPool,
            connect_args={"timeout": PATIENCE, "check_same_thread": False, "isolation_level": None},
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
    raise InvalidInput(f"storage is {shown(url)}: expected sqlite:///file.db or postgresql://user@host/name")


def sqlite_path(url: sa.URL) -> Path | None:
    """SQLite's file, if it is a plain one."""
    name = url.database
    plain = url.get_backend_name() == "sqlite" and name and name != ":memory:" and not name.startswith("file:")
    return Path(str(name)) if plain else None


def _cannot_change(path: Path) -> bool:
    """Whether nobody can write there, as on a medium: SQLite would look for its side files in vain."""
    here = path.exists() and not os.access(path, os.W_OK) and not os.access(path.parent, os.W_OK)
    return here and not Path(f"{path}-wal").exists()


GONE = (0, 0)  # what `file_at` gives where there is no file


def file_at(path: str | None) -> tuple[int, int] | None:
    """Which file SQLite's is, so that another one in its place is noticed."""
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return GONE
    return None if found is None else (found.st_dev, found.st_ino)


def check_returned(path: str, before: tuple[int, int] | None, old_wal: tuple[int, int] | None, left: float) -> None:
    """Refuse a file that cannot take the place of the one that was in use until the time `left`, or not yet.

    before, old_wal: that one and the file beside it, which SQLite would take for a part of whatever is there now.
    """
    words = f"the file of the database {path!r} was removed or replaced while it was in use"
    try:
        found, wal = os.stat(path), Path(f"{path}-wal")
        same = (found.st_dev, found.st_ino) == before and found.st_mtime <= left  # numbers are used again
        stale = not same and old_wal != GONE and file_at(str(wal)) == old_wal and wal.stat().st_size > 0
    except OSError:
        raise StorageError(words) from None
    if stale:
        raise StorageError(
            f"{words}, and {wal.name} belongs to the one that was there before: stop the server, remove {wal.name} and "
            f"{wal.name[:-4]}-shm, and start it again; nothing was written"
        )
    if not same and (not found.st_size or 0 <= time.time() - found.st_mtime < SETTLED):  # somebody may be copying it
        raise StorageError(f"{words}, by one that was written just now: it is opened when it is complete")
    with contextlib.closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=1)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "alembic_version" not in tables:
        raise StorageError(f"{words}, by one that is not a database of Duels; nothing was changed")


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


class Probe:
    """Looks whether a database can be read and written, on a connection of its own; for one thread at a time.

    The write is a real one: it changes nothing, and is on disk when it returns.
    """

    def __init__(self, url: str, patience: float) -> None:
        path = sqlite_path(sa.make_url(url))
        if path is not None:  # without making the file if it is not there
            url = f"sqlite:///file:{quote(str(path))}?mode=rw&uri=true"
        self.engine = engine_for(url)
        self._begin = ["BEGIN", f"SET LOCAL lock_timeout = '{patience:g}s'"]
        if self.engine.dialect.name == "sqlite":
            self._begin = ["BEGIN IMMEDIATE"]
            sa.event.listen(self.engine, "do_connect", lambda *known: known[-1].update(timeout=patience))

    def read(self) -> None:
        """Raises what the driver or SQLAlchemy says."""
        self._do("SELECT version_num FROM alembic_version")

    def write(self) -> None:
        """Raises what the driver or SQLAlchemy says."""
        self._do(*self._begin, "UPDATE alembic_version SET version_num = version_num", "COMMIT")

    def _do(self, *statements: str) -> None:
        with self.engine.connect() as connection:  # SQLite's is closed afterwards: its file may be another one then
            try:
                for statement in statements:
                    connection.exec_driver_sql(statement)
            except BaseException:
                connection.invalidate()
                raise


def prepare(engine: sa.Engine, url: str) -> None:
    """Make the tables, or find them; a database of a newer version is left alone."""
    with engine.connect() as connection:
        found = _revision(connection)
    if found == HEAD:
        _erase_leftovers(engine)
        return
    if found is None or not OURS.fullmatch(found):
        refuse_foreign(engine, url)
    elif found > HEAD:
        raise StorageError(
            f"the database {shown(url)} was written by a newer version of Duels (its schema is {found}, this "
            f"version knows up to {HEAD}): upgrade Duels; nothing was changed"
        )
    upgrade(engine)


def refuse_foreign(engine: sa.Engine, url: str) -> None:
    """Nothing is made in a database of somebody else's: in a file with other tables, or where ours would clash."""
    with engine.connect() as connection:
        found = set(sa.inspect(connection).get_table_names())
        if OURS.fullmatch(_revision(connection) or ""):  # another process made them meanwhile
            return
    ours = {*metadata.tables, "alembic_version"}
    foreign = sorted(found if engine.dialect.name == "sqlite" else found & ours)
    if foreign:
        shortened = ", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else "")
        raise StorageError(
            f"the database {shown(url)} is not one of Duels': it has the tables {shortened}; expected a new or empty "
            "one; nothing was changed"
        )


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
            found = _revision(connection)
            if found != HEAD or revision != "head":
                config.attributes["connection"] = connection
                alembic.command.upgrade(config, revision)
                if engine.dialect.name == "sqlite" and found is not None and found < SCRUBBED:
                    connection.exec_driver_sql(f"PRAGMA user_version = {LEFTOVERS}")
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
    _erase_leftovers(engine)


def _erase_leftovers(engine: sa.Engine) -> None:
    """Write SQLite's file again after an upgrade that erased something: its unused space still has it.

    Until that has worked, which takes as much space again and a moment without other users, every opening tries it.
    """
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        if connection.exec_driver_sql("PRAGMA user_version").scalar() != LEFTOVERS:
            return
        connection.exec_driver_sql("PRAGMA busy_timeout = 2000")  # the next opening tries again
        try:
            connection.exec_driver_sql("VACUUM")
            (blocked, *_) = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            if not blocked:
                connection.exec_driver_sql("PRAGMA user_version = 0")
            why = "another program has it open" if blocked else ""
        except sa.exc.OperationalError as error:
            why = str(error.orig)
    if why:
        logger.warning("unused space of the database's file still has names that were erased: %s", why)
