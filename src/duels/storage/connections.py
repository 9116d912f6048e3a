"""The connections to a database of studies: one that is held for writing, and a separate one for each long read.

SQLite's file may be moved away, or replaced by a back-up. That is noticed, and the file now at that path is opened.
"""

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection

from ..errors import DamagedStudy, StorageError
from .database import GONE, LOCK_TIMEOUT, check_returned, engine_for, file_at, prepare, sqlite_path
from .database_errors import is_damage, quote_url, reason, trouble


class Connections:
    """The part of `Storage` that reaches its database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = engine_for(url)
        self.lock = threading.RLock()  # held by the thread that uses the held connection
        self._held: sa.Connection | None = None
        self._driver: DBAPIConnection | None = None  # the driver's connection under it
        self._busy_timeout = -1.0  # SQLite's own, of the held connection; negative if not set yet
        self._process = os.getpid()
        self._lock_timeout = float(LOCK_TIMEOUT)
        with self.translate_errors():
            prepare(self.engine, url)
        path = sqlite_path(sa.make_url(url))
        self._path = None if path is None else str(path)
        self._file, self._missing = file_at(self._path), False
        self._released_at = 0.0  # when the file was released, if it is missing
        self._wal: tuple[int, int] | None = GONE  # the file beside it, as far as it is known to belong to it
        self.generation = 0  # how often another file has replaced the one in use

    def _database_changed(self) -> None:
        """Called when what was read so far may not be in the database in use."""

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite; else it is PostgreSQL."""
        return self.engine.dialect.name == "sqlite"

    @property
    def is_gone(self) -> bool:
        """Whether SQLite's file was removed, or replaced by one that has not been opened yet."""
        return self._missing or file_at(self._path) != self._file

    def _follow_file(self) -> None:
        """Switch to the file that is now at the path, if the one in use was moved away or replaced."""
        if not self.is_gone or (self._held is not None and self._in_transaction()):
            return
        found = file_at(self._path)
        if not self._missing:
            self._release_file()
        if found == GONE:
            raise StorageError(
                f"the file of the database {quote_url(self.url)} was removed or replaced while it was in use: nothing "
                "was written; put it back, or load the study again"
            )
        check_returned(str(self._path), self._file, self._wal, self._released_at)
        prepare(self.engine, self.url)
        self._file, self._missing, self._wal = found, False, GONE
        self.generation += 1

    def _in_transaction(self) -> bool:
        return isinstance(self._driver, sqlite3.Connection) and self._driver.in_transaction

    def _release_file(self) -> None:
        """Release a file that was moved away, after the last commits were copied into it from the WAL beside it.

        SQLite would otherwise apply that WAL to whichever file takes its place.
        """
        if self._held is not None:
            with contextlib.suppress(sqlite3.Error):
                self._run("PRAGMA wal_checkpoint(TRUNCATE)")
        self.release()
        self._database_changed()
        self._missing, self._released_at = True, time.time()

    def set_lock_timeout(self, seconds: float) -> None:
        """Set how long to wait for SQLite's lock while another process writes.

        Args:
            seconds: The longest wait from now on.
        """
        self._lock_timeout = seconds
        if self.is_sqlite:
            sa.event.listen(self.engine, "do_connect", lambda *known: known[-1].update(timeout=seconds))

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn errors of the database into errors of Duels.

        Raises:
            StorageError: If the database cannot be used.
            DamagedStudy: If some of it cannot be read.
        """
        try:
            yield
        except (sa.exc.IntegrityError, self.engine.dialect.loaded_dbapi.IntegrityError) as error:
            why = reason(error)
            if "foreign key" in why.lower():
                raise StorageError("the study was deleted meanwhile") from error
            raise StorageError(f"the database refused to store this twice: {why}") from error
        except (sa.exc.SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error) as error:
            self.release()
            if is_damage(reason(error)):
                raise DamagedStudy(f"the database {trouble(reason(error))}") from error
            raise StorageError(f"the database {quote_url(self.url)} {trouble(reason(error))}") from error

    def connection(self) -> sa.Connection:
        """Return the held connection, for reading. The caller must have `lock`."""
        held = self._connect()
        self._set_busy_timeout(self._lock_timeout)
        return held

    @contextmanager
    def read_connection(self) -> Iterator[sa.Connection]:
        """Yield a connection for one reader. It blocks nobody: events are appended, and never changed.

        Raises:
            StorageError: If the database cannot be read.
        """
        if isinstance(self.engine.pool, sa.StaticPool):  # a database in memory has only one connection
            with self.lock, self.translate_errors():
                yield self.connection()
            return
        if self.is_gone:  # SQLite would create a new file
            raise StorageError(f"the file of the database {quote_url(self.url)} was removed or replaced")
        try:
            with self.engine.connect() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise StorageError(f"the database {quote_url(self.url)} {trouble(reason(error))}") from error

    def _connect(self) -> sa.Connection:
        if self._process != os.getpid():  # after a fork, the parent's connection must not be used
            self._process, self._held = os.getpid(), None
            self._database_changed()
            self.engine.dispose(close=False)
        self._follow_file()
        if self._held is None:
            self._held = self.engine.connect()
            self._driver, self._busy_timeout = self._held.connection.driver_connection, -1.0
        return self._held

    def release(self) -> None:
        """Release the held connection; the next use makes a new one."""
        held, self._held = self._held, None
        if held is not None:
            try:
                held.invalidate()
                held.close()
            except sa.exc.SQLAlchemyError:
                pass

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        connection = self._connect()
        self._begin()
        try:
            yield connection
            self._run("COMMIT")
        except BaseException:
            try:
                self._run("ROLLBACK")
            except (sa.exc.SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error):
                self.release()
            raise

    def _begin(self) -> None:
        if not self.is_sqlite:
            self._run("BEGIN")
            return
        # SQLite's own waiting polls more and more rarely, so the process that waited longest waits longer still.
        self._set_busy_timeout(0)
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                self._run("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.0005, 0.002))

    def _set_busy_timeout(self, seconds: float) -> None:
        """How long SQLite itself waits for locks on the held connection."""
        if self.is_sqlite and seconds != self._busy_timeout:
            self._run(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
            self._busy_timeout = seconds

    def _run(self, text: str, rows: Sequence[Sequence[object]] | None = None) -> None:
        """Run a statement directly on the driver, which is faster: every vote needs a few of these."""
        assert self._driver is not None
        cursor = self._driver.cursor()
        if rows is None:
            cursor.execute(text)
        else:
            cursor.executemany(text, rows)
