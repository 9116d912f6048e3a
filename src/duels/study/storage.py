"""Where studies live: an append-only log of events in SQLite or PostgreSQL, and how it is written.

Whatever waits is written in one commit, and each writer is answered only after that commit is on disk. The database
itself refuses two questions of one number and two answers to one question.
"""

import contextlib
import json
import math
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..errors import DamagedStudy, DuelsError, StorageError
from .database import GONE, check_returned, engine_for, file_at, prepare, sqlite_path
from .tables import EVENT_COLUMNS, studies
from .wording import PATIENCE, is_damage, reason, shown, trouble

WRITER = "duels-writer"  # the name of the thread that leads for those who do not wait


class StudyRow(NamedTuple):
    """A study as it was created."""

    id: int
    name: str
    created: float
    policy: str
    horizon: int | None
    seed: int
    lease: float
    settings: dict[str, Any]


class Event(NamedTuple):
    """One line of a study's log."""

    seq: int
    kind: str
    duel: int | None
    attempt: int | None
    left_arm: int | None
    right_arm: int | None
    swapped: int | None
    answer: str | None
    voter: str | None
    time: float
    note: str | None
    digest: str


class Write(NamedTuple):
    """Something to be written."""

    operation: Callable[[sa.Connection], Any]  # what it gives is the value of the write
    study: int | None = None  # the id of the one that it appends to
    last: bool = False  # behind the others of its commit: questions are cheaper after all answers than between them


class _Waiting:
    """Something to be written, and what came of it."""

    def __init__(self, write: Write, then: "Callable[[_Waiting], None] | None" = None) -> None:
        self.operation, self.study, self.last = write
        self.then = then  # called when it is done, in the thread that wrote it
        self.done = False
        self.woken = threading.Lock()
        self.woken.acquire()
        self.value: Any = None
        self.error: BaseException | None = None


class Storage:
    """A database of studies. Safe to use from many threads; many processes and hosts may use one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = engine_for(url)
        self.turn = threading.RLock()  # one thread at a time reads and writes, for itself and for all that wait
        self._waiting: list[_Waiting] = []
        self._queue = threading.Lock()
        self._led = False  # whether some thread is writing for those that wait
        self._held: sa.Connection | None = None
        self._driver: Any = None  # what it is a connection of
        self._waits = -1.0  # how long that waits for locks by itself, if known
        self._posting: ThreadPoolExecutor | None = None  # the thread that leads for those who do not wait
        self._process = os.getpid()
        self._patience = float(PATIENCE)
        self.followers: dict[int, Any] = {}  # study id → what this process knows of it
        self.current: set[int] = set()  # studies that are locked and up to date in the transaction under way
        self.checked: set[Any] = set()  # what callers have made sure of in the transaction under way
        self._unwritten: list[tuple] = []  # events of the transaction under way
        self._flushed = False  # whether it has written some
        names, mark = ("study_id", *EVENT_COLUMNS), "?" if self.is_sqlite else "%s"
        self._insert = f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"
        with self.explained():
            prepare(self.engine, url)
        path = sqlite_path(sa.make_url(url))
        self._path = None if path is None else str(path)
        self._file, self._missing = file_at(self._path), False
        self._left = 0.0  # when that file was let go of, if it is missing
        self._wal: tuple[int, int] | None = GONE  # the file beside it, as far as it is known to belong to it
        self.generation = 0  # how often another file took the place of the one that was in use
        self.write_failure: str | None = None  # why the last commit failed, if the database was the reason
        self.last_write = -math.inf  # when events were last written, by `time.monotonic`

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
        self.followers.clear()
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

    def write(self, write: Write) -> Any:
        """Do the operation in a transaction that holds the write lock; returns after it is on disk.

        Operations that wait while a commit is under way share the next one. An operation that raises a `DuelsError`
        must not have written anything; the others are not affected by it.
        """
        mine = _Waiting(write)
        with self._queue:
            self._waiting.append(mine)
            leads, self._led = not self._led, True
        if not leads:
            self._wait(mine)
        if not mine.done:
            self._lead()
        if mine.error is not None:
            raise mine.error
        return mine.value

    def post(self, write: Write, then: Callable[[Any, BaseException | None], None]) -> None:
        """As `write`, without waiting: `then` is called with the value or the error, in the thread that wrote it."""
        waiting = _Waiting(write, lambda one: then(one.value, one.error))
        with self._queue:
            self._waiting.append(waiting)
            leads, self._led = not self._led, True
        if leads:
            self._writer().submit(self._lead)

    def _writer(self) -> ThreadPoolExecutor:
        if self._posting is None:
            self._posting = ThreadPoolExecutor(1, WRITER)
        return self._posting

    def _wait(self, mine: _Waiting) -> None:
        """Until a leader has written it, or leaves the lead to this thread."""
        try:
            mine.woken.acquire()
        except BaseException:  # Ctrl-C: leave the queue, and the lead to another
            with self._queue:
                handed = mine in self._waiting and not mine.woken.locked()
                self._waiting = [one for one in self._waiting if one is not mine]
            if handed:
                self._lead()
            raise

    def _lead(self) -> None:
        """Write for all that wait, and leave the lead to the first of those who came meanwhile."""
        again = True
        while again:
            try:
                with self.turn:
                    self._write_waiting()
            finally:
                again = self._left_to_itself()

    def _left_to_itself(self) -> bool:
        """Hand the lead over; whether it stays with this thread, which writes for those who do not wait."""
        with self._queue:
            self._led = bool(self._waiting)
            heir = self._waiting[0] if self._led else None
        if heir is None:
            return False
        if heir.then is None:
            heir.woken.release()
            return False
        if threading.current_thread().name.startswith(WRITER):
            return True
        self._writer().submit(self._lead)
        return False

    def _write_waiting(self) -> None:
        with self._queue:
            batch, self._waiting = sorted(self._waiting, key=lambda one: one.last), []
        try:
            with self.explained(), self._transaction() as connection:
                for study in sorted({one.study for one in batch if one.study is not None}):
                    self._lock(connection, study)  # in one order everywhere, so that nobody waits in a circle
                for one in batch:
                    before = self._known(one.study)
                    try:
                        one.value = one.operation(connection)
                    except DuelsError as error:  # its own; what the database says comes as the driver's
                        one.error = error
                        if one.study is not None and self._known(one.study) != before:
                            self.followers.pop(one.study, None)  # it knows of events that will not be written
                            self.current.discard(one.study)
                self.flush(connection)
            self._note_written()
        except BaseException as error:
            self._note_failure(error)
            self.followers.clear()  # they may know of events that were not written after all
            for one in batch:
                one.error = one.error or error
            if not isinstance(error, Exception):  # Ctrl-C is for the thread that got it
                for one in batch:
                    one.error = StorageError("the commit was interrupted: look whether the answer is there")
                raise
        finally:
            self._unwritten.clear()
            self._flushed = False
            self.current.clear()
            self.checked.clear()
            for one in batch:
                one.done = True
                if one.then is None:
                    one.woken.release()
                else:
                    one.then(one)

    def _note_written(self) -> None:
        if self._flushed:  # a commit of nothing works on a full disk too
            self.write_failure, self.last_write = None, time.monotonic()
            if self._path is not None:
                self._wal = file_at(f"{self._path}-wal")

    def _note_failure(self, error: BaseException) -> None:
        refused = isinstance(error.__cause__, sa.exc.IntegrityError | self.engine.dialect.loaded_dbapi.IntegrityError)
        if isinstance(error, StorageError) and not refused:
            self.write_failure = str(error)

    def _known(self, study: int | None) -> int | None:
        follower = self.followers.get(study) if study is not None else None
        return None if follower is None else follower.seq

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

    def connection(self) -> sa.Connection:
        """The held connection, to read from; only whoever has the turn uses it."""
        held = self._connected()
        self._set_waiting(self._patience)
        return held

    def _connected(self) -> sa.Connection:
        if self._process != os.getpid():  # after a fork the parent's connection is not ours to use
            self._process, self._held = os.getpid(), None
            self.followers.clear()
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

    def close(self) -> None:
        if self._posting is not None:
            self._posting.shutdown()
            self._posting = None
        with self.turn:
            self.release()
            self.engine.dispose()

    def _lock(self, connection: sa.Connection, study_id: int) -> None:
        """Nobody else appends to this study until the transaction ends. (SQLite's write lock is for all studies.)"""
        if not self.is_sqlite:
            connection.exec_driver_sql("SELECT id FROM studies WHERE id = %s FOR UPDATE", (study_id,))

    def append(self, connection: sa.Connection, study_id: int, new: Sequence[Event]) -> None:
        """Add events to a study's log; they are written with the others of the commit."""
        self._unwritten += [(study_id, *event) for event in new]

    def flush(self, connection: sa.Connection) -> None:
        """Write the events of the transaction under way, for queries that must see them."""
        if self._unwritten:
            self._run(self._insert, self._unwritten)
            self._unwritten.clear()
            self._flushed = True

    def read_events(
        self, connection: sa.Connection, study_id: int, after: int, limit: int | None = None
    ) -> list[tuple]:
        """The events after a sequence number, in order, as plain tuples of `Event`'s fields."""
        mark = "?" if self.is_sqlite else "%s"
        text = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE study_id = {mark} AND seq > {mark} ORDER BY seq"
        text += "" if limit is None else f" LIMIT {int(limit)}"
        cursor = connection.connection.cursor()
        cursor.execute(text, (study_id, after))  # by the driver itself: a million rows in a second
        return list(cursor.fetchall())

    def find(self, connection: sa.Connection, name: str) -> StudyRow | None:
        row = connection.execute(sa.select(studies).where(studies.c.name == name)).first()
        return None if row is None else _study_row(row)

    def listed(self, connection: sa.Connection) -> list[StudyRow]:
        rows = connection.execute(sa.select(studies).order_by(studies.c.id))
        return [_study_row(row) for row in rows]


def _study_row(row: Any) -> StudyRow:
    try:
        settings = dict(json.loads(row.settings))
    except (ValueError, TypeError):  # the list of all studies must not fail for one of them
        settings = {"damaged": "its settings are not a JSON object"}
    return StudyRow(**(row._asdict() | {"settings": settings}))
