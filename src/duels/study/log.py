"""A study's log: how its events are read, followed and appended to."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from ..engine import loop
from ..errors import DamagedStudy, DeletedStudy, InvalidInput, StorageError
from ..policies import Policy
from ..storage.batches import stored, time_of, unpack, unpack_voters
from ..storage.storage import Event, NotReady, Storage, StudyRow, Write
from ..storage.tables import snapshots, studies
from ..votes.columns import ANSWERS, OTHER_WORDS, WORDS, plain
from ..votes.names import place_of
from .duels import Duel, LogEntry, duel_number, iso_time
from .history import History
from .player import Player
from .record import TIE, chained, made

SNAPSHOT_EVERY = 20_000  # events, and a twenty-fifth of the log
PAGE = 4_000  # events to take in while others wait …
VOTES = 250_000  # … and imported votes, but for those of one import
CHANGED = ("dts", "dts_plus", "merge_dts", "merge_rucb", "rmed2", "rmed2fh", "scb")  # since version 0.1.0
T = TypeVar("T")
clock: Callable[[], float] = time.time


class Log:
    """What `Study` is built on: the events of one study in a storage, and the history they amount to."""

    def __init__(self, storage: Storage, row: StudyRow, policy: Policy | None = None) -> None:
        self._storage, self._row, self._policy = storage, row, policy

    @property
    def name(self) -> str:
        return self._row.name

    @property
    def id(self) -> int:
        """The study's number in its storage."""
        return self._row.id

    @property
    def row(self) -> StudyRow:
        """The study as it was created."""
        return self._row

    @property
    def storage(self) -> Storage:
        return self._storage

    def read(self, look: Callable[[sa.Connection, History], T]) -> T:
        """What `look` makes of the study as it is now. Nobody writes meanwhile, so it must be quick."""
        while True:
            try:
                with self._storage.turn, self._storage.explained():
                    connection = self._storage.connection()
                    return look(connection, self._caught_up(connection))
            except NotReady as slow:
                assert not self._storage.turn._is_owned()  # type: ignore[attr-defined]  # all others would wait
                slow.prepare()

    def history(self) -> History:
        """What the study amounts to now; not to be changed."""
        return self.read(lambda connection, history: history)

    def current(self, connection: sa.Connection) -> History:
        """What the study amounts to now, with nobody else appending to it; inside an operation that writes."""
        storage, key = self._storage, self._row.id
        if key in storage.current:  # by an operation before this one in the same commit
            return self._of_this_study(storage.followers[key])
        storage.flush(connection)
        history = self._caught_up(connection)
        storage.current.add(key)
        return history

    def player(self, history: History) -> Player:
        """The policy's state after all answers; `NotReady` if that takes long."""
        if not history.is_ready:
            raise NotReady(self._row.id, self._catch_up)
        return history.player()

    def _caught_up(self, connection: sa.Connection) -> History:
        """Takes in a page of events; `NotReady` if there are more, or a snapshot to begin with."""
        followers, key = self._storage.followers, self._row.id
        history: History | None = followers.get(key)
        if history is None:
            self._refuse_other_study(connection)
            if _has_snapshot(connection, key):
                raise NotReady(key, self._restore)
            history = self._begun()
        else:
            self._of_this_study(history)
            followers.move_to_end(key)
        history.use(self._policy)
        rows = self._storage.read_events(connection, key, history.seq, PAGE)
        page = rows[: _length(rows)]
        try:
            history.apply(page, lambda seq: stored(connection, key, seq)[0])
        except BaseException:
            followers.pop(key, None)
            raise
        if not history.seq:
            followers.pop(key, None)
            raise DamagedStudy(f"the log of study {self.name!r} has no events: it was deleted, or tampered with")
        if followers.get(key) is not history:
            self._storage.followers.add(key, history, self._storage.current)
        if len(rows) == PAGE or len(page) < len(rows):
            raise NotReady(key)
        assert history is not None
        return history

    def _begun(self) -> History:
        history = History(self._row, self._policy)
        history.compiles = self._storage.compile is not None
        return history

    def _restore(self) -> None:
        """Begin with the snapshot, without anybody waiting; with an empty history if there is none to be read."""
        with self._storage.followers.preparing(self._row.id):
            if self._row.id in self._storage.followers:
                return
            generation = self._storage.generation
            with self._storage.reading() as connection:
                history = self._from_snapshot(connection) or self._begun()
            history.note_snapshot()
            with self._storage.turn:
                replaced = self._storage.is_gone or self._storage.generation != generation
                if not replaced and self._row.id not in self._storage.followers:
                    self._storage.followers.add(self._row.id, history, self._storage.current)

    def _of_this_study(self, history: History) -> History:
        """The same history, if it is of this study: in a database that was replaced, another one may have its id."""
        if (history.row.name, history.row.created) != (self._row.name, self._row.created):
            raise self._replaced()
        return history

    def _refuse_other_study(self, connection: sa.Connection) -> None:
        chosen = sa.select(studies.c.name, studies.c.created).where(studies.c.id == self._row.id)
        found = connection.execute(chosen).first()
        if found is None:
            raise DeletedStudy(f"study {self.name!r} was deleted")
        if tuple(found) != (self._row.name, self._row.created):
            raise self._replaced()
        if "damaged" in self._row.settings:
            raise DamagedStudy(f"study {self.name!r} is not what was written: {self._row.settings['damaged']}")

    def _replaced(self) -> StorageError:
        return StorageError(
            f"study {self.name!r} is not there any more: its database was removed or replaced while it was in use; "
            "nothing was written; load the study again"
        )

    def _from_snapshot(self, connection: sa.Connection) -> History | None:
        """The history up to the snapshot, if there is one that can be read."""
        row = connection.execute(sa.select(snapshots).where(snapshots.c.study_id == self._row.id)).first()
        if row is None:
            return None
        last = self._storage.read_events(connection, self._row.id, row.seq - 1, 1)
        if not last or (last[0][0], last[0][-1]) != (row.seq, row.digest):
            raise DamagedStudy(
                f"event {row.seq} of study {self.name!r} is not what was written, or gone: it was tampered with"
            )
        history = self._begun()
        try:
            history.restore(row.content)
        except Exception:  # damaged, whatever its reader makes of that; the log says the same
            return None
        return history if (history.seq, history.digest) == (row.seq, row.digest) else None

    def _catch_up(self) -> None:
        """Have the policy's state take in all answers, compiled where that pays, without anybody waiting."""
        with self._storage.followers.preparing(self._row.id):
            with self._storage.turn:
                history = self._storage.followers.get(self._row.id)
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
                with self._storage.turn:
                    history.take_back(work, done)

    def _read(self, last: int) -> Iterator[Event]:
        """The log up to an event, every digest checked; nobody waits for it."""
        digest, done = "", 0
        while done < last:
            with self._storage.reading() as connection:
                page = self._storage.read_events(connection, self._row.id, done, min(PAGE, last - done))
            for row in page:
                event = Event(*row)
                done, digest = done + 1, chained(digest, event)
                if (event.seq, event.digest) != (done, digest):
                    raise DamagedStudy(
                        f"event {done} of study {self.name!r} is not what was written: it was tampered with"
                    )
                yield event
            if not page:
                raise StorageError(
                    f"the log of study {self.name!r} ends after event {done}: it was deleted, or cut off"
                )

    def _imported(self, event: Event) -> Iterator[tuple[str, str | None, str | None]]:
        """Winner, voter and time of each vote of an import."""
        with self._storage.reading() as connection:
            content, named = stored(connection, self._row.id, event.seq)
        batch = unpack(content, json.loads(event.note or "{}"), f"the votes of event {event.seq} of {self.name!r}")
        voters = None if named is None else unpack_voters(named)
        for number, answer in enumerate(batch.answer.tolist()):
            voter = None if voters is None else voters.given[number]
            given = None if batch.times is None else time_of(batch.times[number])
            name = None if voter is None or voter < 0 else voters.names[voter]  # type: ignore[union-attr]
            yield ANSWERS[answer], name, given or iso_time(event.time)

    def check(self) -> int:
        """Replay the whole log: every digest, and that each question is the one the policy asks. How many events.

        Questions that another version of the policy asked cannot be compared; a warning says so.
        """
        replayed, compare = History(self._row, self._policy), True

        def votes(seq: int) -> bytes | None:
            with self._storage.reading() as connection:
                return stored(connection, self._row.id, seq)[0]

        for event in self._read(self.history().seq):
            if event.kind == "ask" and compare:
                replayed.catch_up()
                note = json.loads(event.note) if event.note else {}
                asked = replayed.question(event.time, note.get("allow_self", True))
                compare = asked == (event.left_arm, event.right_arm, event.swapped)
                if not compare and self._is_of_this_code(replayed.policy):
                    raise DamagedStudy(
                        f"event {event.seq} of study {self.name!r} asks what policy {self._row.policy} would not: "
                        "the log was tampered with"
                    )
            replayed.apply([event], votes)
        if not compare:
            warnings.warn(
                f"the questions of study {self.name!r} were asked by another version of policy {self._row.policy}: the "
                "log is complete, but whether they are the policy's own was not checked",
                stacklevel=2,
            )
        return replayed.seq

    def _is_of_this_code(self, policy: Policy) -> bool:
        """Whether the study began with the code that the policy has now."""
        began_with = self._row.settings.get("code")
        if began_with is None:  # version 0.1.0 did not say
            return policy.name not in CHANGED
        return began_with == loop.code_of(policy)

    def _write(self, connection: sa.Connection, history: History, kind: str, **fields: Any) -> None:
        event = made(history, kind, clock(), **fields)
        history.take(event)
        self._append(connection, history, [event])

    def _append(self, connection: sa.Connection, history: History, new: Sequence[Event]) -> None:
        self._storage.append(connection, self._row.id, new)
        if history.since_snapshot >= max(SNAPSHOT_EVERY, history.weight // 25):
            history.note_snapshot()
            self._storage.after_commit(self._save)

    def _save(self) -> None:
        """Keep a snapshot, from which the study is loaded more quickly. Only copying it keeps others waiting."""
        key = self._row.id
        with self._storage.turn:
            history = self._storage.followers.get(key)
            if history is None:
                return
            seq, digest, snapshot = history.seq, history.digest, history.snapshot()
        content = snapshot()

        def operation(connection: sa.Connection) -> None:
            last = self._storage.read_events(connection, key, seq - 1, 1)
            if not last or (last[0][0], last[0][-1]) != (seq, digest):  # deleted, or the database was replaced
                return
            connection.execute(sa.delete(snapshots).where(snapshots.c.study_id == key))
            values = {"study_id": key, "seq": seq, "digest": digest, "content": content}
            connection.execute(sa.insert(snapshots).values(values))

        self._storage.write(Write(operation, key))

    def duel_in(self, history: History, duel: Any) -> Duel:
        """A duel by its id, with the history at hand."""
        number = duel_number(duel)
        self._known(history, number)
        return self._duel(history, number)

    def _duel(self, history: History, number: int) -> Duel:
        left, right = history.names[history.left[number]], history.names[history.right[number]]
        return Duel(number, left, right, self.name, iso_time(history.asked[number]))

    def _number(self, duel: Any) -> int:
        if isinstance(duel, Duel) and duel.study != self.name:
            raise InvalidInput(f"the duel is of study {duel.study!r}: expected one of study {self.name!r}")
        return duel_number(duel)

    def _known(self, history: History, number: int) -> None:
        if not 0 <= number < len(history.left):
            asked = f"0 to {len(history.left) - 1}" if history.left else "none so far"
            raise InvalidInput(f"study {self.name!r} has no duel {number}: expected one that was asked ({asked})")

    def _answer(self, history: History, number: int, winner: Any) -> int:
        left, right = history.names[history.left[number]], history.names[history.right[number]]
        if winner in ANSWERS:
            return ANSWERS.index(winner)
        side = place_of(winner, (left, right))
        if side is not None:
            return TIE if left == right else side
        if isinstance(winner, str) and place_of(winner, history.names) is None:  # else it is an arm of another duel
            code = (WORDS | OTHER_WORDS).get(plain(winner))
            if code is not None:
                return code
        raise InvalidInput(
            f"winner is {winner!r}: duel {number} is {left!r} against {right!r}; expected one of these, left, right, "
            "tie, both_bad or skip"
        )


def _length(rows: Sequence[Sequence[Any]]) -> int:
    """How many of these events to take in at once: an import may be a million votes."""
    votes = 0
    for place, row in enumerate(rows, 1):
        votes += json.loads(row[10])["votes"] if row[1] == "import" else 0
        if votes > VOTES:
            return place
    return len(rows)


def _has_snapshot(connection: sa.Connection, study: int) -> bool:
    return connection.execute(sa.select(snapshots.c.seq).where(snapshots.c.study_id == study)).first() is not None


def log_entry(history: History, event: Event) -> LogEntry:
    """An event with its arms by name."""

    def name(arm: int | None) -> str | None:
        return None if arm is None else history.names[arm]

    left, right = event.left_arm, event.right_arm
    if event.duel is not None and left is None and event.kind != "import":
        left, right = history.left[event.duel], history.right[event.duel]
    note = json.loads(event.note) if event.note else {}
    return LogEntry(
        event.seq,
        event.kind,
        event.duel,
        name(left),
        name(right),
        event.answer,
        event.voter,
        iso_time(event.time),
        note,
    )
