"""A study's log: how its events are read, checked and appended to.

Everything a study shows is computed from its log. Many threads, processes and hosts may append to one log: each write
first applies what others have written.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import sqlalchemy as sa

from ..engine import loop
from ..errors import DamagedStudy, DeletedStudy, InvalidInput, StorageError
from ..policies import Policy
from ..storage.batches import Batch, Voters, read_stored, unpack, unpack_voters
from ..storage.storage import Event, EventRow, NotReady, Storage, StudyRow, Write
from ..storage.tables import events, snapshots, studies
from ..votes.columns import ANSWERS, OTHER_WORDS, WORDS, plain
from ..votes.names import place_of
from .duels import Asked, LogEntry, duel_number, iso_time
from .state.counts import TIE, chain_digest, next_event
from .state.item_schedule import item_set_of
from .state.live import LiveState
from .state.people import NOBODY
from .state.policy_state import PolicyState

SNAPSHOT_EVERY = 20_000  # events, and a twenty-fifth of the log
PAGE = 4_000  # events to apply while others wait …
VOTES = 250_000  # … and imported votes, but at least one import
T = TypeVar("T")
About = Callable[[sa.Connection, Any], Mapping[str, object]]  # what to keep in the note of a question
clock: Callable[[], float] = time.time


class Imported(NamedTuple):
    """The votes of an import, and who gave them, if that is known."""

    batch: Batch
    voters: Voters | None


class EventLog:
    """The events of one study, and the state that follows from them. What a user calls is in `Study`.

    Methods that take a connection are called inside a transaction, see `write`.
    """

    has_verdict = False  # whether answers can end the study
    repeats_questions = True  # whether several people are asked the same
    pages = "HTML outputs"  # what may have scripts

    def __init__(self, storage: Storage, row: StudyRow, policy: Policy | None = None) -> None:
        self._storage, self._row, self._policy = storage, row, policy

    @property
    def name(self) -> str:
        """The study's name."""
        return self._row.name

    @property
    def id(self) -> int:
        """The study's id in its storage."""
        return self._row.id

    @property
    def row(self) -> StudyRow:
        """The study as it was created."""
        return self._row

    @property
    def storage(self) -> Storage:
        """Where the study is stored."""
        return self._storage

    def write(self, operation: Callable[[sa.Connection], T], last: bool = False) -> T:
        """Write, and return the operation's value once it is on disk; see `writing` for the arguments."""
        return self._storage.write(self.make_write(operation, last))

    def make_write(self, operation: Callable[[sa.Connection], T], last: bool = False) -> Write[T]:
        """Return a write to this log, for callers that wait in their own way.

        Args:
            operation: Called inside the transaction.
            last: Whether it runs after the other writes of its commit, as questions do.
        """
        return Write(operation, self._row.id, last)

    def read(self, look: Callable[[sa.Connection, LiveState], T]) -> T:
        """Call a function with the study as it is now.

        Args:
            look: Called with the held connection and the history. Nobody can write meanwhile, so it must be fast.

        Returns:
            What `look` returns.
        """
        while True:
            try:
                with self._storage.lock, self._storage.translate_errors():
                    connection = self._storage.connection()
                    return look(connection, self._caught_up(connection))
            except NotReady as slow:
                assert not self._storage.lock._is_owned()  # type: ignore[attr-defined]  # everybody else would wait
                slow.prepare()

    def history(self) -> LiveState:
        """Return the study's state now; do not change it."""
        return self.read(lambda connection, history: history)

    def current(self, connection: sa.Connection) -> LiveState:
        """Return the study's state inside a transaction: up to date, and nobody else can append to the study.

        Args:
            connection: The transaction's connection.

        Raises:
            NotReady: If the study must be loaded first.
        """
        storage, key = self._storage, self._row.id
        history = self._get_loaded() if storage.is_current(key) else None  # by an earlier operation of this commit
        if history is not None:
            return self._of_this_study(history)
        storage.flush(connection)
        history = self._caught_up(connection)
        storage.set_current(key)
        return history

    def player(self, history: LiveState) -> PolicyState:
        """Return the policy's state after all answers.

        Raises:
            NotReady: If answers must be added to it first, or it must be compiled, which takes long.
        """
        if not history.is_ready:
            raise NotReady(self._row.id, self._catch_up)
        return history.player()

    def ask(
        self,
        connection: sa.Connection,
        *,
        n: int = 1,
        voter: str | None = None,
        allow_self: bool = True,
        about: About | None = None,
        by_judge: bool = False,
    ) -> list[Any]:
        """Ask for duels; see `ArmLog.ask` and `TuningLog.ask`."""
        raise NotImplementedError

    def parts_of(self, n: int) -> list[int]:
        """Return the sizes of the parts in which n questions are asked, each in a write of its own."""
        raise NotImplementedError

    def find_duel(self, history: LiveState, duel: object) -> Any:
        """Return a duel by its id, from the study's state.

        Raises:
            InvalidInput: If there is no such duel.
        """
        raise NotImplementedError

    def find_end(self, connection: sa.Connection | None = None) -> str | None:
        """Return why the study needs no more votes, by its verdict; None if it does, or has no verdict.

        Args:
            connection: That of a transaction, while others wait; without one, this blocks.
        """
        return None

    def can_show(self, connection: sa.Connection, duel: Any, item: int | None) -> bool:
        """Return whether a question can be shown as it was asked."""
        return True

    def prepare(self) -> None:
        """Load the study, and compile what questions need, now rather than when the first one is asked."""
        raise NotImplementedError

    def prepare_for_asking(self) -> None:
        """As `prepare`, before anybody asks: only what pays then."""
        self.prepare()

    def _get_loaded(self) -> LiveState | None:
        return cast("LiveState | None", self._storage.histories.get(self._row.id))

    def _caught_up(self, connection: sa.Connection) -> LiveState:
        """Apply a page of events; `NotReady` if there are more, or a snapshot to start from."""
        histories, key = self._storage.histories, self._row.id
        history = self._get_loaded()
        if history is None:
            self._refuse_other_study(connection)
            if _has_snapshot(connection, key):
                raise NotReady(key, self._restore)
            history = self._begin_history()
        else:
            self._of_this_study(history)
            histories.move_to_end(key)
        history.use(self._policy)
        rows = self._storage.read_events(connection, key, history.seq, PAGE)
        page = rows[: _length(rows)]
        try:
            history.apply(page, lambda seq: read_stored(connection, key, seq)[0])
        except BaseException:
            histories.pop(key, None)
            raise
        if not history.seq:
            histories.pop(key, None)
            raise DamagedStudy(f"the log of study {self.name!r} has no events: it was deleted, or tampered with")
        if histories.get(key) is not history:
            self._storage.keep(key, history)
        if len(rows) == PAGE or len(page) < len(rows):
            raise NotReady(key)
        return history

    def _begin_history(self) -> LiveState:
        history = LiveState(self._row, self._policy)
        history.compiles = self._storage.compile is not None
        history.policy_files = self._storage.policy_files
        return history

    def _restore(self) -> None:
        """Load the snapshot without holding the lock; start with an empty history if no snapshot can be read."""
        with self._storage.histories.lock_for(self._row.id):
            if self._row.id in self._storage.histories:
                return
            generation = self._storage.generation
            with self._storage.read_connection() as connection:
                history = self._from_snapshot(connection) or self._begin_history()
            history.note_snapshot()
            with self._storage.lock:
                replaced = self._storage.is_gone or self._storage.generation != generation
                if not replaced and self._row.id not in self._storage.histories:
                    self._storage.keep(self._row.id, history)

    def _of_this_study(self, history: LiveState) -> LiveState:
        """The same history, if it is this study's: in a database that was replaced, another study may have its id."""
        if (history.row.name, history.row.created) != (self._row.name, self._row.created):
            raise self._refuse_replaced()
        return history

    def _refuse_other_study(self, connection: sa.Connection) -> None:
        chosen = sa.select(studies.c.name, studies.c.created).where(studies.c.id == self._row.id)
        found = connection.execute(chosen).first()
        if found is None:
            raise DeletedStudy(f"study {self.name!r} was deleted")
        if tuple(found) != (self._row.name, self._row.created):
            raise self._refuse_replaced()
        if "damaged" in self._row.settings:
            raise DamagedStudy(f"study {self.name!r} is not what was written: {self._row.settings['damaged']}")

    def _refuse_replaced(self) -> StorageError:
        return StorageError(
            f"study {self.name!r} no longer exists: its database was removed or replaced while it was in use; "
            "nothing was written; load the study again"
        )

    def _from_snapshot(self, connection: sa.Connection) -> LiveState | None:
        """The history up to the snapshot; None if there is none, or it cannot be read."""
        row = connection.execute(sa.select(snapshots).where(snapshots.c.study_id == self._row.id)).first()
        if row is None:
            return None
        last = self._storage.read_events(connection, self._row.id, row.seq - 1, 1)
        if not last or (last[0][0], last[0][-1]) != (row.seq, row.digest):
            raise DamagedStudy(
                f"event {row.seq} of study {self.name!r} is not what was written, or gone: it was tampered with"
            )
        history = self._begin_history()
        try:
            history.restore(row.content)
        except Exception:  # damaged; the log has everything
            return None
        if (history.seq, history.digest) != (row.seq, row.digest):
            return None
        history.name_people(self._names_of_people(connection, row.seq))
        return history

    def _names_of_people(self, connection: sa.Connection, last: int) -> dict[str, int]:
        """The last duel that each person has answered or, without answers, was asked."""
        found: dict[str, int] = {}
        for kind in ("ask", "tell"):
            chosen = sa.select(events.c.voter, sa.func.max(events.c.duel)).where(
                events.c.study_id == self._row.id,
                events.c.voter.is_not(None),
                events.c.kind == kind,
                events.c.seq <= last,
            )
            found |= {row[0]: row[1] for row in connection.execute(chosen.group_by(events.c.voter))}
        return found

    def _catch_up(self) -> None:
        """Bring the policy's state up to date without holding the lock; compile it where that pays."""
        with self._storage.histories.lock_for(self._row.id):
            with self._storage.lock:
                history = self._get_loaded()
                work = None if history is None else history.lend()
            if history is None or work is None:
                return
            done = False
            try:
                if self._storage.compile is not None and work.player.will_compile(len(work.first), history.compiles):
                    self._storage.compile(history.policy)
                work.player.catch_up(work.first, work.second, work.outcomes, history.compiles)
                done = True
            finally:
                with self._storage.lock:
                    history.take_back(work, done)

    def read_log(self, last: int) -> Iterator[Event]:
        """The log up to an event; every digest is checked, without holding the lock."""
        digest, done = "", 0
        while done < last:
            with self._storage.read_connection() as connection:
                page = self._storage.read_events(connection, self._row.id, done, min(PAGE, last - done))
            for row in page:
                event = Event(*row)
                done, digest = done + 1, chain_digest(digest, event)
                if (event.seq, event.digest) != (done, digest):
                    raise DamagedStudy(
                        f"event {done} of study {self.name!r} is not what was written: it was tampered with"
                    )
                yield event
            if not page:
                raise StorageError(
                    f"the log of study {self.name!r} ends after event {done}: it was deleted, or cut off"
                )

    def read_imported(self, seq: int, note: str | None) -> Imported:
        """Return the votes of an import event, and who gave them.

        Args:
            seq: The event's number.
            note: Its note.
        """
        with self._storage.read_connection() as connection:
            content, named = read_stored(connection, self._row.id, seq)
        batch = unpack(content, json.loads(note or "{}"), f"the votes of event {seq} of {self.name!r}")
        return Imported(batch, None if named is None else unpack_voters(named))

    def _read_stored_votes(self, seq: int) -> bytes | None:
        with self._storage.read_connection() as connection:
            return read_stored(connection, self._row.id, seq)[0]

    def check(self) -> int:
        """Replay the whole log, see `Study.check`."""
        replayed, compare = LiveState(self._row, self._policy), True
        replayed.policy_files = self._storage.policy_files

        for event in self.read_log(self.history().seq):
            if event.kind == "ask" and compare:
                replayed.catch_up()
                note = json.loads(event.note) if event.note else {}
                # Who was asked may have been forgotten since; then what that person was asked cannot be compared.
                if event.voter is not None or not note.get("person"):
                    with replayed.preview_items(item_set_of(note) if "items" in note else None):
                        compare = _asks_the_same(replayed, event, note)
                if not compare and self._is_of_this_code(replayed.policy):
                    raise DamagedStudy(
                        f"event {event.seq} of study {self.name!r} asks what policy {self._row.policy} would not: "
                        "the log was tampered with"
                    )
            replayed.apply([event], self._read_stored_votes)
        if not compare:
            warnings.warn(
                f"the questions of study {self.name!r} were asked by another version of policy {self._row.policy}: the "
                "log is complete, but whether they are the policy's own was not checked",
                stacklevel=3,
            )
        return replayed.seq

    def _is_of_this_code(self, policy: Policy) -> bool:
        """Whether the study was created with the policy's present code."""
        return bool(self._row.settings.get("code") == loop.code_of(policy))

    def append_event(self, history: LiveState, kind: str, **fields: int | str | None) -> None:
        """Append one event."""
        event = next_event(history, kind, clock(), **fields)
        history.take(event)
        self.append(history, [event])

    def append(self, history: LiveState, new: Sequence[Event]) -> None:
        """Append events that the state includes already."""
        self._storage.append(self._row.id, new)
        if history.since_snapshot >= max(SNAPSHOT_EVERY, history.weight // 25):
            history.note_snapshot()
            self._storage.after_commit(self._save)

    def _save(self) -> None:
        """Store a snapshot, from which the study loads faster. Others wait only while the state is copied."""
        with self._storage.lock:
            history = self._get_loaded()
            if history is None:
                return
            seq, digest, serialize = history.seq, history.digest, history.snapshot()
        store = partial(self._store_snapshot, seq=seq, digest=digest, content=serialize())
        self._storage.write(Write(store, self._row.id))

    def _store_snapshot(self, connection: sa.Connection, seq: int, digest: str, content: bytes) -> None:
        key = self._row.id
        last = self._storage.read_events(connection, key, seq - 1, 1)
        if not last or (last[0][0], last[0][-1]) != (seq, digest):  # deleted, or the database was replaced
            return
        connection.execute(sa.delete(snapshots).where(snapshots.c.study_id == key))
        values = {"study_id": key, "seq": seq, "digest": digest, "content": content}
        connection.execute(sa.insert(snapshots).values(values))

    def entries(self, after: int = 0, limit: int | None = None) -> list[LogEntry]:
        """Return the events after a sequence number, at most so many, as users see them."""
        return self.read(partial(self._entries, after=after, limit=limit))

    def new_entries(self, connection: sa.Connection, after: int = 0) -> list[LogEntry]:
        """As `entries`, inside a transaction."""
        history = self.current(connection)
        self._storage.flush(connection)
        return self._entries(connection, history, after=after, limit=None)

    def _entries(
        self, connection: sa.Connection, history: LiveState, *, after: int, limit: int | None
    ) -> list[LogEntry]:
        rows = self._storage.read_events(connection, self._row.id, after, limit)
        return [log_entry(history, Event(*row)) for row in rows]

    def number_of(self, duel: Asked | int | str) -> int:
        """Return the id of a duel, which may be given itself."""
        if isinstance(duel, Asked) and duel.study != self.name:
            raise InvalidInput(f"the duel belongs to study {duel.study!r}: expected one of study {self.name!r}")
        return duel_number(duel)

    def check_duel(self, history: LiveState, number: int) -> None:
        """Raise `InvalidInput` if there is no such duel."""
        if not 0 <= number < len(history.left):
            asked = f"0 to {len(history.left) - 1}" if history.left else "none so far"
            raise InvalidInput(f"study {self.name!r} has no duel {number}: expected one that was asked ({asked})")

    def code_of(self, history: LiveState, number: int, winner: object) -> int:
        """Return the place of an answer in `ANSWERS`.

        Raises:
            InvalidInput: If the winner is neither an answer nor an arm of this duel.
        """
        left, right = history.names[history.left[number]], history.names[history.right[number]]
        if winner in ANSWERS:
            return ANSWERS.index(winner)
        side = place_of(winner, (left, right))
        if side is not None:
            return TIE if left == right else side
        if isinstance(winner, str) and place_of(winner, history.names) is None:  # not an arm of another duel
            code = (WORDS | OTHER_WORDS).get(plain(winner))
            if code is not None:
                return code
        raise InvalidInput(
            f"winner is {winner!r}: duel {number} is {left!r} against {right!r}; expected one of these, left, right, "
            "tie, both_bad or skip"
        )


def _asks_the_same(history: LiveState, event: Event, note: Mapping[str, Any]) -> bool:
    """Whether a question is the one that follows from what was before it."""
    person = NOBODY if "calls" in note else history.people.find(event.voter)
    shared = note.get("shared", False)
    asked = history.question(event.time, note.get("allow_self", True), person, shared)
    if asked != (event.left_arm, event.right_arm, event.swapped):
        return False
    place = history.next_place(*asked[:2], event.time, person, shared)
    return place is None or place == (note.get("place", note["item"]), note["item"])


def _length(rows: Sequence[EventRow]) -> int:
    """How many of these events to apply at once: an import may have a million votes."""
    votes = 0
    for place, row in enumerate(rows, 1):
        note = json.loads(row[10]) if row[1] == "import" else {}
        votes += note.get("rows", note.get("votes", 0))
        if votes > VOTES:
            return place
    return len(rows)


def _has_snapshot(connection: sa.Connection, study: int) -> bool:
    return connection.execute(sa.select(snapshots.c.seq).where(snapshots.c.study_id == study)).first() is not None


def log_entry(history: LiveState, event: Event) -> LogEntry:
    """Return an event with the names of its arms."""
    left, right = event.left_arm, event.right_arm
    if event.duel is not None and left is None and event.kind != "import":
        left, right = history.left[event.duel], history.right[event.duel]
    return LogEntry(
        seq=event.seq,
        kind=event.kind,
        duel=event.duel,
        left=None if left is None else history.names[left],
        right=None if right is None else history.names[right],
        answer=event.answer,
        voter=event.voter,
        time=iso_time(event.time),
        note=json.loads(event.note) if event.note else {},
    )
