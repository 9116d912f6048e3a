"""Where studies live: an append-only log of events in SQLite or PostgreSQL, and how it is written.

Whatever waits is written in one commit, and each writer is answered only after that commit is on disk. The database
itself refuses two questions of one number and two answers to one question.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..errors import DuelsError, StorageError
from .connections import Connections
from .database import file_at
from .loaded import Followers
from .tables import EVENT_COLUMNS, studies

PAUSE = 0.001  # seconds: whoever releases a lock and takes it again at once leaves nobody else in
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


class NotReady(DuelsError):
    """Something slow comes first, which nobody else should wait for: call `prepare` without the lock, and try again."""

    def __init__(self, study: int, work: Callable[[], None] | None = None) -> None:
        super().__init__("the study is still being loaded: try again in a moment")
        self.study, self.work = study, work  # without work it is only others' turn

    def prepare(self) -> None:
        self.work() if self.work is not None else time.sleep(PAUSE)


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


class Storage(Connections):
    """A database of studies. Safe to use from many threads; many processes and hosts may use one database."""

    _posting: ThreadPoolExecutor | None = None  # the thread that leads for those who do not wait
    _background: ThreadPoolExecutor | None = None  # the thread for what comes after a commit

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._waiting: list[_Waiting] = []
        self._queue = threading.Lock()
        self._led = False  # whether some thread is writing for those that wait
        self.followers = Followers()  # study id → what this process knows of it
        self.compile: Callable[[Any], None] | None = None  # how a policy is compiled before its first question, if so
        self._afterwards: list[Callable[[], None]] = []  # what the transaction under way leaves to be done
        self.current: set[int] = set()  # studies that are locked and up to date in the transaction under way
        self.checked: set[Any] = set()  # what callers have made sure of in the transaction under way
        self._unwritten: list[tuple] = []  # events of the transaction under way
        self._flushed = False  # whether it has written some
        names, mark = ("study_id", *EVENT_COLUMNS), "?" if self.is_sqlite else "%s"
        self._insert = f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"
        self.write_failure: str | None = None  # why the last commit failed, if the database was the reason
        self.last_write = -math.inf  # when events were last written, by `time.monotonic`

    def write(self, write: Write) -> Any:
        """Do the operation in a transaction that holds the write lock; returns after it is on disk.

        Operations that wait while a commit is under way share the next one. An operation that raises a `DuelsError`
        must not have written anything; the others are not affected by it.
        """
        while True:
            mine = _Waiting(write)
            with self._queue:
                self._waiting.append(mine)
                leads, self._led = not self._led, True
            if not leads:
                self._wait(mine)
            if not mine.done:
                self._lead()
            if mine.error is None:
                return mine.value
            if not isinstance(mine.error, NotReady):
                raise mine.error
            mine.error.prepare()

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
                    except NotReady as error:  # before it changed anything; what was loaded so far is kept
                        one.error = error.with_traceback(None)  # whose frames would keep the study in memory
                    except DuelsError as error:  # its own; what the database says comes as the driver's
                        one.error = error
                        if one.study is not None and self._known(one.study) != before:
                            self.followers.pop(one.study, None)  # it knows of events that will not be written
                            self.current.discard(one.study)
                self.flush(connection)
            for task in self._afterwards:
                self._later(task)
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
            self._afterwards.clear()
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

    def forget(self) -> None:
        self.followers.clear()

    def _known(self, study: int | None) -> int | None:
        follower = self.followers.get(study) if study is not None else None
        return None if follower is None else follower.seq

    def after_commit(self, task: Callable[[], None]) -> None:
        """Do something in the background once the transaction under way is on disk; errors are ignored."""
        self._afterwards.append(task)

    def _later(self, task: Callable[[], None]) -> None:
        if self._background is None:
            self._background = ThreadPoolExecutor(1, "duels-background")
        self._background.submit(task)

    def close(self) -> None:
        if self._background is not None:
            self._background.shutdown()
            self._background = None
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

    def last_seq(self, connection: sa.Connection, study_id: int) -> int:
        """The number of a study's last event; 0 if there is none."""
        cursor = connection.connection.cursor()
        cursor.execute(f"SELECT max(seq) FROM events WHERE study_id = {'?' if self.is_sqlite else '%s'}", (study_id,))
        row: Any = cursor.fetchone()
        return row[0] or 0

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
