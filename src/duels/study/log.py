"""A study's log: how its events are read, followed and appended to."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from ..errors import DamagedStudy, DuelsError, InvalidInput, StorageError
from ..policies import Policy
from .history import ANSWERS, TIE, History, made
from .names import Duel, duel_number, iso_time
from .storage import Event, Storage, StudyRow
from .tables import snapshots, studies

SNAPSHOT_EVERY = 20_000  # events, and a twenty-fifth of the log
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

    def current(self, connection: sa.Connection) -> History:
        """What the study amounts to now, with nobody else appending to it."""
        storage, key = self._storage, self._row.id
        if key in storage.current:  # by an operation before this one in the same commit
            return self._of_this_study(storage.followers[key])
        storage.flush(connection)
        history = self._caught_up(connection)
        storage.current.add(key)
        return history

    def _caught_up(self, connection: sa.Connection) -> History:
        followers, key = self._storage.followers, self._row.id
        history = followers.get(key)
        if history is not None:
            self._of_this_study(history)
        else:
            self._refuse_other_study(connection)
            history = self._from_snapshot(connection) or History(self._row, self._policy)
            history.snapshot_seq = history.seq
        history.use(self._policy)
        rows = self._storage.read_events(connection, key, history.seq)
        try:
            history.apply(rows)
        except BaseException:
            followers.pop(key, None)
            raise
        if not history.seq:
            raise DamagedStudy(f"the log of study {self.name!r} has no events: it was tampered with")
        followers[key] = history
        return history

    def _of_this_study(self, history: History) -> History:
        """The same history, if it is of this study: in a database that was replaced, another one may have its id."""
        if (history.row.name, history.row.created) != (self._row.name, self._row.created):
            raise self._replaced()
        return history

    def _refuse_other_study(self, connection: sa.Connection) -> None:
        chosen = sa.select(studies.c.name, studies.c.created).where(studies.c.id == self._row.id)
        found = connection.execute(chosen).first()
        if found is None:
            raise StorageError(f"study {self.name!r} was deleted")
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
        history = History(self._row, self._policy)
        try:
            history.restore(row.content)
        except Exception:  # damaged, whatever its reader makes of that; the log says the same
            return None
        return history if (history.seq, history.digest) == (row.seq, row.digest) else None

    def history(self) -> History:
        """What the study amounts to now; not to be changed."""
        with self._storage.turn, self._storage.explained():
            return self._caught_up(self._storage.connection())

    def _write(self, connection: sa.Connection, history: History, kind: str, **fields: Any) -> None:
        event = made(history, kind, clock(), **fields)
        history.take(event)
        self._append(connection, history, [event])

    def _append(self, connection: sa.Connection, history: History, new: Sequence[Event]) -> None:
        self._storage.append(connection, self._row.id, new)
        if history.seq - history.snapshot_seq >= max(SNAPSHOT_EVERY, history.seq // 25):
            history.snapshot_seq = history.seq
            try:
                content = history.snapshot()
            except DuelsError:  # the policy is not to be had, or fails: answers are taken all the same
                return
            connection.execute(sa.delete(snapshots).where(snapshots.c.study_id == self._row.id))
            values = {"study_id": self._row.id, "seq": history.seq, "digest": history.digest}
            connection.execute(sa.insert(snapshots).values(values | {"content": content}))

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
        if winner in (left, right):
            return TIE if left == right else (0 if winner == left else 1)
        if isinstance(winner, str) and winner.lower() in ANSWERS:
            return ANSWERS.index(winner.lower())
        raise InvalidInput(
            f"winner is {winner!r}: duel {number} is {left!r} against {right!r}; expected one of these, left, right, "
            "tie, both_bad or skip"
        )
