"""Where studies are stored: an append-only log of events in SQLite or PostgreSQL, and how it is written.

All waiting writes share one commit, and each caller gets its answer only after that commit is on disk. The database
itself refuses two questions with one number and two answers to one question.

Open storages by URL: one of each per process.
"""

import atexit
import json
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

import sqlalchemy as sa

from ..errors import DuelsError, InvalidInput, StorageError
from .changes import note_of_write, write_note
from .connections import Connections
from .database import DEFAULT, file_at
from .histories import Histories, LoadedHistory
from .statements import Row, adapt_marks, fetch_rows, join_marks
from .tables import EVENT_COLUMNS, studies

if TYPE_CHECKING:
    from ..policies import Policy


PAUSE = 0.001  # seconds: yield, or a thread that re-acquires the lock immediately starves the others
WRITER = "duels-writer"  # the name of the thread that writes for callers of `post`
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
EventRow = Row  # the fields of an `Event`, as the database returns them


# Which policies run that are in Python files: all, those that are unchanged since the study was created, or none.
PolicyFiles = Literal["all", "unchanged", "none"]


Kind = Literal["arms", "settings"]  # what a study compares


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

    @property
    def kind(self) -> "Kind":
        """What the study compares: arms, or settings of the parameters of a space."""
        return "settings" if isinstance(self.settings.get("space"), dict) else "arms"


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


class Write(NamedTuple, Generic[T_co]):
    """Something to write.

    Attributes:
        operation: Called inside the transaction; what it returns is the value of the write.
        study: The id of the study it appends to, if it is about one.
        last: Whether it runs after the other writes of its commit. Questions do: after all answers the policy's state
            is updated once, instead of between any two of them.
    """

    operation: Callable[[sa.Connection], T_co]
    study: int | None = None
    last: bool = False


class NotReady(DuelsError):
    """Slow work must be done first. Call `prepare` without holding the lock, then try again."""

    def __init__(self, study: int, work: Callable[[], None] | None = None) -> None:
        super().__init__("the study is still being loaded: try again in a moment")
        self.study, self.work = study, work  # without work, it is enough to let other threads run

    def prepare(self) -> None:
        """Do the slow work, or let other threads run."""
        if self.work is not None:
            self.work()
        else:
            time.sleep(PAUSE)


class _Pending:
    """A write in the queue, and its outcome."""

    def __init__(self, write: Write[object], then: "Callable[[_Pending], None] | None" = None) -> None:
        self.operation, self.study, self.last = write
        self.note = note_of_write()
        self.then = then  # called when it is done, in the thread that wrote it
        self.done = False
        self.woken = threading.Lock()
        self.woken.acquire()
        self.value: object = None
        self.error: BaseException | None = None


@dataclass
class _TransactionState:
    """What is known about the transaction in progress."""

    unwritten: list[tuple[object, ...]] = field(default_factory=list)  # events that were appended
    flushed: bool = False  # whether it has written any
    current: set[int] = field(default_factory=set)  # studies that are locked and up to date
    known: dict[Hashable, object] = field(default_factory=dict)  # what was found once
    at_end: list[Callable[[sa.Connection], None]] = field(default_factory=list)  # what to do after all operations
    after_commit: list[Callable[[], None]] = field(default_factory=list)  # what to do once it is on disk


class Storage(Connections):
    """A database of studies. Many threads, processes and hosts may use one database."""

    _writer_pool: ThreadPoolExecutor | None = None  # the thread that writes for callers of `post`
    _background: ThreadPoolExecutor | None = None  # the thread for tasks after a commit

    def __init__(self, url: str) -> None:
        """Open a database, and create its tables if it is new.

        Args:
            url: Such as `sqlite:///duels.db` or `postgresql://user@host/name`.

        Raises:
            InvalidInput: If it is not the URL of a database.
            StorageError: If the database cannot be used.
        """
        super().__init__(url)
        self._pending: list[_Pending] = []
        self._queue_lock = threading.Lock()
        self._has_leader = False  # whether some thread is writing for those that wait
        self._state = _TransactionState()
        self.histories = Histories()
        self.compile: Callable[[Policy], None] | None = None  # compiles a policy before its first question, if set
        self.policy_files: PolicyFiles = "all"
        names = ("study_id", *EVENT_COLUMNS)
        insert = f"INSERT INTO events ({', '.join(names)}) VALUES ({join_marks(names)})"
        self._insert = adapt_marks(insert, self.is_sqlite)
        self.write_failure: str | None = None  # why the last commit failed, if the database was the reason
        self.failed_at = -math.inf  # when that was, by `time.monotonic` …
        self.last_write = -math.inf  # … and when events were last written

    def write(self, write: Write[T]) -> T:
        """Run an operation in a transaction that holds the write lock; returns after it is on disk.

        Operations that arrive while a commit is in progress share the next one. An operation that raises a
        `DuelsError` must not have written anything; the others are not affected by it.

        Args:
            write: The operation, and the study it appends to.

        Returns:
            What the operation returns.

        Raises:
            DuelsError: What the operation raises.
            StorageError: If the commit fails.
        """
        while True:
            mine = _Pending(write)
            with self._queue_lock:
                self._pending.append(mine)
                leads, self._has_leader = not self._has_leader, True
            if not leads:
                self._wait(mine)
            if not mine.done:
                self._lead()
            if mine.error is None:
                return cast(T, mine.value)
            if not isinstance(mine.error, NotReady):
                raise mine.error
            mine.error.prepare()

    def post(self, write: Write[T], then: Callable[[T, BaseException | None], None]) -> None:
        """As `write`, without waiting.

        Args:
            write: The operation, and the study it appends to.
            then: Called with the value, or None, and the error, if there is one, in the thread that wrote it.
        """
        pending = _Pending(write, lambda one: then(cast(T, one.value), one.error))
        with self._queue_lock:
            self._pending.append(pending)
            leads, self._has_leader = not self._has_leader, True
        if leads:
            self._writer().submit(self._lead)

    def _writer(self) -> ThreadPoolExecutor:
        if self._writer_pool is None:
            self._writer_pool = ThreadPoolExecutor(1, WRITER)
        return self._writer_pool

    def _wait(self, mine: _Pending) -> None:
        """Wait until a leader has written it, or hands the lead to this thread."""
        try:
            mine.woken.acquire()
        except BaseException:  # Ctrl-C: leave the queue, and hand over the lead if this thread has it
            with self._queue_lock:
                handed = mine in self._pending and not mine.woken.locked()
                self._pending = [one for one in self._pending if one is not mine]
            if handed:
                self._lead()
            raise

    def _lead(self) -> None:
        """Write for all that wait, then hand the lead to the first of those that arrived meanwhile."""
        again = True
        while again:
            try:
                with self.lock:
                    self._commit_pending()
            finally:
                again = self._keeps_lead()

    def _keeps_lead(self) -> bool:
        """Hand over the lead; returns whether this thread, the writer, must go on by itself."""
        with self._queue_lock:
            self._has_leader = bool(self._pending)
            heir = self._pending[0] if self._has_leader else None
        if heir is None:
            return False
        if heir.then is None:
            heir.woken.release()
            return False
        if threading.current_thread().name.startswith(WRITER):
            return True
        self._writer().submit(self._lead)
        return False

    def _commit_pending(self) -> None:
        """Run all pending operations in one transaction, and wake their callers once it is on disk."""
        with self._queue_lock:
            batch, self._pending = sorted(self._pending, key=lambda one: one.last), []
        try:
            with self.translate_errors(), self._transaction() as connection:
                for study in sorted({one.study for one in batch if one.study is not None}):
                    self._lock_study(connection, study)  # in one order everywhere, so that servers do not deadlock
                for one in batch:
                    self._run_operation(connection, one)
                for look in self._state.at_end:
                    look(connection)
                self.flush(connection)
            for task in self._state.after_commit:
                self._in_background(task)
            self._note_written()
        except BaseException as error:
            self._note_failure(error)
            self.histories.clear()  # they may include events that were not written
            for one in batch:
                one.error = one.error or error
            if not isinstance(error, Exception):  # Ctrl-C goes to the thread that got it
                for one in batch:
                    one.error = StorageError("the commit was interrupted: look whether the answer is there")
                raise
        finally:
            self._state = _TransactionState()
            for one in batch:
                one.done = True
                if one.then is None:
                    one.woken.release()
                else:
                    one.then(one)

    def _run_operation(self, connection: sa.Connection, one: _Pending) -> None:
        before = self._last_known(one.study)
        try:
            one.value = one.operation(connection)
            if one.note is not None:
                write_note(connection, one.note, time.time())
                one.note.is_written = True
        except NotReady as error:  # before it changed anything; what was loaded so far is kept
            one.error = error.with_traceback(None)  # its frames would keep the study in memory
        except DuelsError as error:  # its own: errors of the database arrive as the driver's
            one.error = error
            if one.study is not None and self._last_known(one.study) != before:
                self.histories.pop(one.study, None)  # it includes events that will not be written
                self._state.current.discard(one.study)

    def _note_written(self) -> None:
        if self._state.flushed:  # an empty commit succeeds even on a full disk
            self.write_failure, self.last_write = None, time.monotonic()
            if self._path is not None:
                self._wal = file_at(f"{self._path}-wal")

    def _note_failure(self, error: BaseException) -> None:
        refused = isinstance(error.__cause__, sa.exc.IntegrityError | self.engine.dialect.loaded_dbapi.IntegrityError)
        if isinstance(error, StorageError) and not refused:
            self.write_failure, self.failed_at = str(error), time.monotonic()

    def _database_changed(self) -> None:
        self.histories.clear()

    def _last_known(self, study: int | None) -> int | None:
        history = self.histories.get(study) if study is not None else None
        return None if history is None else history.seq

    def is_current(self, study: int) -> bool:
        """Return whether the transaction in progress has already brought a study up to date."""
        return study in self._state.current

    def set_current(self, study: int) -> None:
        """Note that a study is up to date; nobody else can append to it until the transaction ends."""
        self._state.current.add(study)

    def keep(self, study: int, history: LoadedHistory) -> None:
        """Keep a study's state in memory. Studies that the transaction in progress needs are not dropped for it."""
        self.histories.add(study, history, self._state.current)

    def once(self, what: Hashable, find: Callable[[], T]) -> T:
        """Return the result of a function, calling it at most once in the transaction in progress.

        If it raises, it is called again the next time.

        Args:
            what: Identifies what is found.
            find: The function.
        """
        known = self._state.known
        if what not in known:
            known[what] = find()
        return cast(T, known[what])

    def at_end(self, look: Callable[[sa.Connection], None]) -> None:
        """Call a function after the operations of the transaction in progress. It must not write, nor raise."""
        self._state.at_end.append(look)

    def after_commit(self, task: Callable[[], None]) -> None:
        """Run a task in the background once the transaction in progress is on disk; its errors are ignored."""
        self._state.after_commit.append(task)

    def _in_background(self, task: Callable[[], None]) -> None:
        if self._background is None:
            self._background = ThreadPoolExecutor(1, "duels-background")
        self._background.submit(task)

    def close(self) -> None:
        """Finish background tasks and close all connections."""
        if self._background is not None:
            self._background.shutdown()
            self._background = None
        if self._writer_pool is not None:
            self._writer_pool.shutdown()
            self._writer_pool = None
        with self.lock:
            self.release()
            self.engine.dispose()

    def _lock_study(self, connection: sa.Connection, study_id: int) -> None:
        """Keep others from appending to this study until the transaction ends. SQLite's lock covers all studies."""
        if not self.is_sqlite:
            connection.exec_driver_sql("SELECT id FROM studies WHERE id = %s FOR UPDATE", (study_id,))

    def append(self, study_id: int, new: Sequence[Event]) -> None:
        """Add events to a study's log; they are written together with the others of the commit."""
        self._state.unwritten += [(study_id, *event) for event in new]

    def flush(self, connection: sa.Connection) -> None:
        """Write the events of the transaction in progress, for queries that must see them."""
        if self._state.unwritten:
            self._run(self._insert, self._state.unwritten)
            self._state.unwritten.clear()
            self._state.flushed = True

    def read_events(
        self, connection: sa.Connection, study_id: int, after: int, limit: int | None = None
    ) -> list[EventRow]:
        """Return a study's events after a sequence number, in order, as plain tuples of `Event`'s fields."""
        text = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE study_id = ? AND seq > ? ORDER BY seq"
        text += "" if limit is None else f" LIMIT {int(limit)}"
        return fetch_rows(connection, text, (study_id, after))

    def last_seq(self, connection: sa.Connection, study_id: int) -> int:
        """Return the number of a study's last event; 0 if there is none."""
        return int(fetch_rows(connection, "SELECT max(seq) FROM events WHERE study_id = ?", (study_id,))[0][0] or 0)

    def find(self, connection: sa.Connection, name: str) -> StudyRow | None:
        """Return the study with exactly this name."""
        row = connection.execute(sa.select(studies).where(studies.c.name == name)).first()
        return None if row is None else _study_row(row)

    def list_studies(self, connection: sa.Connection) -> list[StudyRow]:
        """Return all studies, oldest first."""
        rows = connection.execute(sa.select(studies).order_by(studies.c.id))
        return [_study_row(row) for row in rows]


def _study_row(row: sa.Row[Any]) -> StudyRow:
    try:
        settings = dict(json.loads(row.settings))
    except (ValueError, TypeError):  # one damaged study must not break the list of all studies
        settings = {"damaged": "its settings are not a JSON object"}
    return StudyRow(**(row._asdict() | {"settings": settings}))


_storages: dict[str, Storage] = {}
_lock = threading.Lock()


@atexit.register
def _close_all() -> None:
    for storage in _storages.values():
        storage.close()


def open_storage(url: str | Storage) -> Storage:
    """Open the storage at a URL, or return the one that this process has open, so that its threads share commits.

    Args:
        url: A database's URL, such as `sqlite:///duels.db`. A storage is returned as it is.

    Raises:
        InvalidInput: If it is not the URL of a database.
        StorageError: If the database cannot be used.
    """
    if isinstance(url, Storage):
        return url
    if not isinstance(url, str) or "://" not in url:
        raise InvalidInput(f"storage is {url!r}: expected a URL such as {DEFAULT} or postgresql://user@host/name")
    url = _absolute(url)
    with _lock:
        if url in _storages and _storages[url].is_gone:
            _storages.pop(url).close()
        if url not in _storages:
            _storages[url] = Storage(url)
        return _storages[url]


def find_storage(url: str | Storage) -> Storage | None:
    """As `open_storage`, but returns None for a SQLite file that does not exist instead of creating it."""
    if isinstance(url, str) and _absolute(url).startswith("sqlite:////"):
        path = Path(_absolute(url).removeprefix("sqlite:///"))
        if not path.exists():
            return None
    return open_storage(url)


def _absolute(url: str) -> str:
    """A relative path refers to the current folder, even if the process changes it later."""
    scheme, slashes, path = url.partition(":///")
    if not scheme.startswith("sqlite") or not slashes or path.startswith(("/", ":", "file:")) or not path:
        return url
    return f"{scheme}:///{Path.cwd() / path}"
