"""The log of a tuning study: which settings it asks about.

A tuning study is a log of events like any other study, with the same durability. Its two arms are the sides; the note
of each question has the settings that were on them. Choosing a question takes up to a second, so it is never done in a
transaction: `TuningLog.ask` raises `NotReady` until the choice is there, and whoever writes prepares it first.

What this process keeps of a study, for all objects of it: fits, points, and choices that are ready.
"""

import json
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from ...errors import Conflict, DamagedStudy, InvalidInput, shorten
from ...storage.storage import Event, NotReady, Storage, StudyRow, Write
from ...study import base
from ...study.base import About, EventLog
from ...study.duels import LogEntry, duel_number, iso_time
from ...study.invitations import refuse_invited
from ...study.state.counts import next_event
from ...study.state.live import LiveState
from ...study.stats.goal import goal_of
from ..blas import one_thread
from ..policies import Policy, load_policy
from ..policies.context import Memory
from ..spaces import Setting, Space
from .choose import AskedSettings, Batch, Choice, Seen, choices, collect_known
from .result import Advice, advice

if TYPE_CHECKING:
    import polars as pl

    from .files import PastDuel


MOST_KEPT = 16  # studies per storage; each takes a few megabytes
_kept: "weakref.WeakKeyDictionary[Storage, OrderedDict[Hashable, Workspace]]" = weakref.WeakKeyDictionary()
_keeping = threading.Lock()


class Workspace:
    """What is kept of one study. Hold `lock` for all but `batch` and `waiting`; it may be held for seconds.

    Args:
        space: The study's space.
    """

    def __init__(self, space: Space) -> None:
        self.lock = threading.Lock()
        self.memory = Memory()
        self.asked = AskedSettings(space)
        self.batch = Batch()
        self.waiting = 0  # duels that were asked for since the last choice, and must be chosen first
        self.advice: tuple[bytes, Advice] | None = None  # with the answers that it is about


def workspace_of(storage: Storage, row: StudyRow, space: Space) -> Workspace:
    """Return the workspace of a study; the least recently used ones are dropped."""
    with _keeping:
        kept = _kept.setdefault(storage, OrderedDict())
        key = (storage.generation, row.id, row.created)
        found = kept.pop(key, None) or Workspace(space)
        kept[key] = found
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
    return found


ARMS = ("left", "right")  # of every tuning study: the sides
TOGETHER = 16  # duels that are chosen at once, if so many people wait for one
MOST = 100  # duels that are asked for at once through the server
FRESH = 5.0  # seconds that a choice may be asked although further answers have arrived


class TuningDuel(NamedTuple):
    """A question: which of two settings is better?

    Attributes:
        id: Its number in the study, from 0.
        left: The setting on the left: a value for each parameter, by name.
        right: The setting on the right.
        study: The study's name.
        time: When it was asked, in ISO 8601.
    """

    id: int
    left: Setting
    right: Setting
    study: str
    time: str

    @property
    def item(self) -> None:
        """Tuning studies have no items."""
        return None

    @property
    def is_self(self) -> bool:
        """Two settings always differ."""
        return False


class TuningLog(EventLog):
    """The events of a study that tunes parameters."""

    repeats_questions = False  # each has settings of its own
    pages = "the template"

    @cached_property
    def space(self) -> Space:
        """The parameters."""
        try:
            return Space(self._row.settings["space"])
        except InvalidInput as error:
            raise DamagedStudy(f"the space of study {self.name!r} is not what was written: {error}") from None

    @cached_property
    def chooser(self) -> Policy:
        """What chooses the questions."""
        return load_policy(self._row.policy)

    def prepare(self) -> None:
        """Choose the next duel now, and compile what that needs, rather than when it is asked for."""
        self._choose(1)

    def ask(
        self,
        connection: sa.Connection,
        *,
        n: int = 1,
        voter: str | None = None,
        allow_self: bool = False,
        about: About | None = None,
        by_judge: bool = False,
    ) -> list[TuningDuel]:
        """Ask for duels inside a transaction.

        Args:
            connection: The transaction's connection.
            n: How many duels to ask for.
            voter: Who is asked; the name was checked.
            allow_self: As in `ArmLog.ask`, for those who ask studies of any kind; two settings always differ.
            about: Called with each duel before it is written; what it returns is stored in the event's note.
            by_judge: As in `ArmLog.ask`; every question has settings of its own.

        Raises:
            Conflict: If the study was retired.
            NotReady: If the duels must be chosen first; nothing was written then.
        """
        history = self.current(connection)
        refuse_invited(connection, self, voter)
        if history.retired:
            raise Conflict(f"study {self.name!r} was retired: it asks no more questions, unless it is resumed")
        new, duels = list[Event](), list[TuningDuel]()
        try:
            ready = self._ready(history, n)
        except NotReady:
            self._workspace.waiting += n
            raise
        for choice in ready:
            duel = TuningDuel(choice.number, choice.left, choice.right, self.name, iso_time(choice.time))
            note = choice.note() | dict(about(connection, duel) if about else {})
            fields = {"duel": choice.number, "attempt": 0, "left_arm": 0, "right_arm": 1, "swapped": choice.swapped}
            text = json.dumps(note, ensure_ascii=False)
            event = next_event(history, "ask", choice.time, **fields, voter=voter, note=text)
            history.take(event)
            new.append(event)
            duels.append(duel)
        self.append(history, new)
        return duels

    def refuse_unready(self, connection: sa.Connection, n: int) -> None:
        """Raise `NotReady` unless so many duels can be asked at once in this transaction."""
        self._ready(self.current(connection), n)

    def _ready(self, history: LiveState, n: int) -> list[Choice]:
        """The next choices, if they were made, and are still right."""
        batch, number = self._workspace.batch, len(history.left)
        wanted = [one for one in batch.choices if number <= one.number < number + n]
        if len(wanted) < n or not _follows(history, batch):
            raise NotReady(self._row.id, partial(self._choose, n))
        return wanted

    def _choose(self, n: int) -> None:
        """Choose the next duels without holding the storage's lock."""
        work = self._workspace
        with work.lock, one_thread():
            now = base.clock()
            looked = self.read(partial(self._to_choose, now=now, n=n))
            if looked is None:
                return
            known, notes = looked
            work.asked.take(notes)
            n, work.waiting = max(n, min(work.waiting, TOGETHER)), 0
            made = choices(self.chooser, self._row.seed, work.asked, known, work.memory, now)
            work.batch = Batch(tuple(islice(made, n)), time.monotonic())

    def _to_choose(
        self, connection: sa.Connection, history: LiveState, *, now: float, n: int
    ) -> tuple[Seen, list[str]] | None:
        """What the next choices may know, and the notes that the workspace does not have; None if they are there."""
        try:
            self._ready(history, n)
        except NotReady:
            return self._collect_known(history, now)
        return None  # another thread has made them meanwhile

    def _collect_known(self, history: LiveState, now: float) -> tuple[Seen, list[str]]:
        return collect_known(history, now), notes_of(history)[self._workspace.asked.count :]

    @property
    def _workspace(self) -> Workspace:
        return workspace_of(self._storage, self._row, self.space)

    def advice(self) -> Advice:
        """Return the best setting and the slices, computed once for each state of the answers."""
        work = self._workspace
        with work.lock, one_thread():
            known, notes = self.read(lambda _, history: self._collect_known(history, base.clock()))
            key = known.answered.tobytes() + known.outcome.tobytes()
            if work.advice is None or work.advice[0] != key:
                work.asked.take(notes)
                points = work.asked.points(known.answered, known.outcome)
                given = work.asked.answers(known.answered, known.outcome)
                about = (self._row.seed, work.memory, goal_of(self._row.settings).confidence, given)
                work.advice = key, advice(self.chooser, self.space, points, *about)
            return work.advice[1]

    def parts_of(self, n: int) -> list[int]:
        """Return the sizes of the parts in which n questions are asked: one at a time, since each takes a moment."""
        if n > MOST:
            raise InvalidInput(f"n is {n}: expected at most {MOST} in a study that tunes parameters")
        return [1] * n

    def find_duel(self, history: LiveState, duel: object) -> TuningDuel:
        """Return a duel by its id, from the study's state."""
        number = duel_number(duel)
        self.check_duel(history, number)
        note = json.loads(notes_of(history)[number])
        return TuningDuel(number, note["left"], note["right"], self.name, iso_time(history.asked[number]))

    def _entries(
        self, connection: sa.Connection, history: LiveState, *, after: int, limit: int | None
    ) -> list[LogEntry]:
        """The log. Left and right are the settings, as JSON."""
        entries, notes = super()._entries(connection, history, after=after, limit=limit), notes_of(history)
        shown = []
        for entry in entries:
            if entry.duel is not None:
                note = json.loads(notes[entry.duel])
                left, right = (json.dumps(note[side], ensure_ascii=False) for side in ARMS)
                entry = entry._replace(left=left, right=right)
            shown.append(entry)
        return shown

    def code_of(self, history: LiveState, number: int, winner: object) -> int:
        try:
            return super().code_of(history, number, winner)
        except InvalidInput:  # it speaks of arms
            raise InvalidInput(f"winner is {shorten(winner)}: expected left, right, tie, both_bad or skip") from None

    def check(self) -> int:
        """Replay the whole log, see `TuningStudy.check`."""
        from .check import check

        with one_thread():
            return check(self)

    def importing(self, duels: "Iterable[PastDuel] | pl.DataFrame") -> Write[int]:
        """Return what `TuningStudy.import_duels` writes, which was checked; its value is how many were added."""
        from .files import check_duels, import_in

        return self.make_write(partial(import_in, log=self, duels=check_duels(self.space, duels)))


def notes_of(history: LiveState) -> list[str]:
    """Return the notes of all duels of a tuning study."""
    assert history.notes is not None
    return history.notes


def _follows(history: LiveState, batch: Batch) -> bool:
    """Whether choices may be asked now: other duels were not asked meanwhile, and few answers were given."""
    for choice in batch.choices:
        if choice.number < len(history.left):
            note = json.loads(notes_of(history)[choice.number])
            if (note["left"], note["right"]) != (choice.left, choice.right):
                return False
    first = batch.choices[0]
    only_asked = history.seq - first.after == len(history.left) - first.number
    return only_asked or batch.age < FRESH
