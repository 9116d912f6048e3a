"""The connections to a database of studies: one that is held, and one's own for whoever only reads.

SQLite's file may be moved away, or replaced by a back-up: that is noticed, and the file that is there then is opened.
"""

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from ..errors import DamagedStudy, StorageError
from .database import GONE, check_returned, engine_for, file_at, prepare, sqlite_path
from .database_errors import PATIENCE, is_damage, reason, shown, trouble


class Connections:
    """What `Storage` is built on: the ways to reach its database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = engine_for(url)
        self.turn = threading.RLock()  # one thread at a time uses the held connection, for itself and all that wait
        self._held: sa.Connection | None = None
        self._driver: Any = None  # what it is a connection of
        self._waits = -1.0  # how long that waits for locks by itself, if known
        self._process = os.getpid()
        self._patience = float(PATIENCE)
        with self.explained():
            prepare(self.engine, url)
        path = sqlite_path(sa.make_url(url))
        self._path = None if path is None else str(path)
        self._file, self._missing = file_at(self._path), False
        self._left = 0.0  # when that file was let go of, if it is missing
        self._wal: tuple[int, int] | None = GONE  # the file beside it, as far as it is known to belong to it
        self.generation = 0  # how often another file took the place of the one that was in use

    def forget(self) -> None:
        """Drop what was read from a database that is not in use any more."""

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @property
    def is_gone(self) -> bool:
        """Whether SQLite's file was removed, or another one is in its place that was not opened yet."""
        return self._missing or file_at(self._path) != self._file

    def _follow_file(self) -> None:
        """Go on with the file that is now at the path, if the one in use was moved away or replaced."""
        if not self.is_gone or (self._held is not None and self._driver.in_transaction):
            return
        found = file_at(self._path)
        if not self._missing:
            self._let_go_of_file()
        if found == GONE:
            raise StorageError(
                f"the file of the database {shown(self.url)} was removed or replaced while it was in use: nothing was "
                "written; put it back, or load the study again"
            )
        check_returned(str(self._path), self._file, self._wal, self._left)
        prepare(self.engine, self.url)
        self._file, self._missing, self._wal = found, False, GONE
        self.generation += 1

    def _let_go_of_file(self) -> None:
        """Complete the file that was moved away with what was written last, and forget all that is known from it.

        That is still in the file beside it, which SQLite would take for a part of whatever takes its place.
        """
        if self._held is not None:
            with contextlib.suppress(sqlite3.Error):
                self._run("PRAGMA wal_checkpoint(TRUNCATE)")
        self.release()
        self.forget()
        self._missing, self._left = True, time.time()

    def set_patience(self, seconds: float) -> None:
        """Wait no longer than this for SQLite's lock from now on, while another process writes."""
        self._patience = seconds
        if self.is_sqlite:
            sa.event.listen(self.engine, "do_connect", lambda *known: known[-1].update(timeout=seconds))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turns what the database says into words for people."""
        try:
            yield
        except (sa.exc.IntegrityError, self.engine.dialect.loaded_dbapi.IntegrityError) as error:
            why = reason(error)
            gone = "foreign key" in why.lower()
            said = "the study was deleted meanwhile" if gone else f"the database refused to store this twice: {why}"
            raise StorageError(said) from error
        except (sa.exc.SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error) as error:
            self.release()
            if is_damage(reason(error)):
                raise DamagedStudy(f"the database {trouble(reason(error))}") from error
            raise StorageError(f"the database {shown(self.url)} {trouble(reason(error))}") from error

    def connection(self) -> sa.Connection:
        """The held connection, to read from; only whoever has the turn uses it."""
        held = self._connected()
        self._set_waiting(self._patience)
        return held

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection of one's own: the log is only ever added to, so nobody has to wait for those who read it."""
        if isinstance(self.engine.pool, sa.StaticPool):  # in memory there is only one
            with self.turn, self.explained():
                yield self.connection()
            return
        if self.is_gone:  # SQLite would make another file
            raise StorageError(f"the file of the database {shown(self.url)} was removed or replaced")
        try:
            with self.engine.connect() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise StorageError(f"the database {shown(self.url)} {trouble(reason(error))}") from error

    def _connected(self) -> sa.Connection:
        if self._process != os.getpid():  # after a fork the parent's connection is not ours to use
            self._process, self._held = os.getpid(), None
            self.forget()
            self.engine.dispose(close=False)
        self._follow_file()
        if self._held is None:
            self._held = self.engine.connect()
            self._driver, self._waits = self._held.connection.driver_connection, -1.0
        return self._held

    def release(self) -> None:
        """Let go of the connection, so that the next use makes another one."""
        held, self._held = self._held, None
        if held is not None:
            try:
                held.invalidate()
                held.close()
            except sa.exc.SQLAlchemyError:
                pass

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        connection = self._connected()
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
        # Left to itself SQLite looks for the lock ever more rarely, and those who wait long wait longest.
        self._set_waiting(0)
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._run("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.0005, 0.002))

    def _set_waiting(self, seconds: float) -> None:
        """How long SQLite itself waits for locks on the held connection."""
        if self.is_sqlite and seconds != self._waits:
            self._run(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
            self._waits = seconds

    def _run(self, text: str, rows: list[tuple] | None = None) -> Any:
        """A statement by the driver itself on the held connection: the few that every answer needs."""
        cursor = self._driver.cursor()
        return cursor.execute(text) if rows is None else cursor.executemany(text, rows)
