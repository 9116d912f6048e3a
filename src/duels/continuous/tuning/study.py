"""What this process keeps of a tuning study, for all objects of it: fits, points, and choices that are ready.

Tuning studies: which setting of some parameters do people prefer? Two settings are compared at a time.

A tuning study is a log of events like any other study, with the same durability. Its two arms are the sides; the note
of each question has the settings that were on them. Choosing a question takes up to a second, so it is never done in a
transaction: `ask_in` raises `NotReady` until the choice is there, and whoever writes prepares it first.
"""

import json
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import sqlalchemy as sa

from ...checks import check_int
from ...errors import Conflict, DamagedStudy, InvalidInput, shorten
from ...storage.storage import Event, NotReady, Storage, StudyRow, Write
from ...study import base
from ...study.answering import Answering
from ...study.duels import LogEntry, duel_number, iso_time
from ...study.items import allow_scripts
from ...study.state.counts import next_event
from ...study.state.live import History
from ...study.stats.goal import goal_of
from ...study.study import Judging
from ...study.voters.links import refuse_invited
from ...votes.names import voter_name
from ..blas import one_thread
from ..policies import Policy, load_policy
from ..policies.context import Memory
from ..spaces import Setting, Space
from .choose import AskedSettings, Batch, Choice, Seen, choices, collect_known
from .result import Advice, Best, advice
from .templates import check_template, load_template, render, store_template

if TYPE_CHECKING:
    import polars as pl

    from .files import PastDuel
    from .judged import TuningResult


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
FRESH = 5.0  # seconds that a choice may be asked although further answers have arrived
About = Callable[[sa.Connection, "TuningDuel"], Mapping[str, object]]


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


class TuningStudy(Answering):
    """A study that tunes parameters: `ask` for two settings, `tell` which is better, look at the `best` one.

    Created by `create_tuning` and `load_tuning`. Objects of one study in many threads and processes see the same log.

    Example:
        >>> space = duels.Space({"temperature": (0.0, 1.5), "style": ["terse", "warm"]})
        >>> study = duels.create_tuning(space, "voice", "sqlite://")
        >>> duel = study.ask()
        >>> sorted(duel.left)
        ['style', 'temperature']
        >>> study.tell(duel, "left")
        >>> study.best.answers
        1
    """

    @cached_property
    def space(self) -> Space:
        """The parameters."""
        try:
            return Space(self._row.settings["space"])
        except InvalidInput as error:
            raise DamagedStudy(f"the space of study {self.name!r} is not what was written: {error}") from None

    @cached_property
    def _chooser(self) -> Policy:
        return load_policy(self._row.policy)

    @property
    def policy(self) -> str:
        """The policy's name and parameters, such as `gp_rucb:beta=3`."""
        return self._row.policy

    @property
    def confidence(self) -> float:
        """The level of the intervals."""
        return goal_of(self._row.settings).confidence

    @property
    def answers(self) -> int:
        """How many answers count: no skips, and nothing that was taken back."""
        return self.history().total

    @property
    def initial(self) -> int:
        """How many questions are spread over all settings before the policy chooses them."""
        return self._chooser.initial(self.space)

    @property
    def retired(self) -> bool:
        """Whether the study was retired, and asks no more questions."""
        return self.history().retired

    @property
    def template(self) -> str | None:
        """The page on which voters see a setting, see `set_template`; None if they see its values."""
        return load_template(self)

    def set_template(self, template: str | None, *, scripts: bool | None = None) -> None:
        """Set the page on which people who vote through a link of the server see each of the two settings.

        Args:
            template: An HTML page, with `{{ name }}` wherever the value of a parameter belongs; in a script,
                `{{ name | json }}`. The page can load nothing, so its styles and pictures are part of it. None shows
                the values themselves.
            scripts: Whether scripts of the page run; by default they do not, or as it was set before.

        Raises:
            InvalidInput: If a parameter does not exist, none is used, or the page has more than a million characters.

        Example:
            >>> study = duels.create_tuning({"gap": (4, 40, "int")}, "page", "sqlite://")
            >>> study.set_template("<p style='margin: {{ gap }}px'>Which margin?</p>")
        """
        checked = None if template is None else check_template(template, self.space)
        if scripts is not None:
            allow_scripts(self, bool(scripts))
        store_template(self, checked)

    def render(self, setting: Mapping[str, object]) -> str | None:
        """Return the page of a setting; None if the study has no template.

        Raises:
            InvalidInput: If it is not a setting of the space.
        """
        template, checked = self.template, self.space.check(setting)
        return None if template is None else render(template, checked)

    def __repr__(self) -> str:
        return f"TuningStudy({self.name!r}, {self.policy}, {', '.join(self.space.names)})"

    @overload
    def ask(self, n: Literal[1] = 1, *, voter: str | None = None) -> TuningDuel: ...  # type: ignore[overload-overlap]

    @overload
    def ask(self, n: int, *, voter: str | None = None) -> list[TuningDuel]: ...

    def ask(self, n: int = 1, *, voter: str | None = None) -> TuningDuel | list[TuningDuel]:
        """Ask for the next duel. It is on disk when this returns.

        The policy knows of open duels within their lease, so that many questions at once spread out.

        Args:
            n: How many duels to ask for, up to 1,000.
            voter: Who is asked; stored with the question.

        Returns:
            The duel, or a list of `n` duels if that is not 1.

        Raises:
            Conflict: If the study was retired.
        """
        n = check_int("n", n, 1, 1000)
        duels = [self._storage.write(self.asking(voter=voter))[0] for _ in range(n)]
        return duels[0] if n == 1 else duels

    def asking(self, n: int = 1, *, voter: str | None = None, about: About | None = None) -> Write[list[TuningDuel]]:
        """Return what `ask` writes; its value is a list of duels. See `ask_in` for the arguments."""
        n, name = check_int("n", n, 1, 1000), voter_name(voter)
        return Write(partial(self.ask_in, n=n, voter=name, about=about), self._row.id, last=True)

    def prepare(self) -> None:
        """Choose the next duel now, and compile what that needs, rather than when it is asked for."""
        self._choose(1)

    def ask_in(
        self,
        connection: sa.Connection,
        *,
        n: int = 1,
        voter: str | None = None,
        allow_self: bool = False,
        about: About | None = None,
    ) -> list[TuningDuel]:
        """Ask for duels inside a transaction.

        Args:
            connection: The transaction's connection.
            n: How many duels to ask for.
            voter: Who is asked; the name was checked.
            allow_self: As in `Study.ask_in`, for those who ask studies of any kind; two settings always differ.
            about: Called with each duel before it is written; what it returns is stored in the event's note.

        Raises:
            Conflict: If the study was retired.
            NotReady: If the duels must be chosen first; nothing was written then.
        """
        history = self.current(connection)
        refuse_invited(self, connection, voter)
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
        self._append(history, new)
        return duels

    def ready_in(self, connection: sa.Connection, n: int) -> None:
        """Raise `NotReady` unless so many duels can be asked at once in this transaction."""
        self._ready(self.current(connection), n)

    def _ready(self, history: History, n: int) -> list[Choice]:
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
            made = choices(self._chooser, self._row.seed, work.asked, known, work.memory, now)
            work.batch = Batch(tuple(islice(made, n)), time.monotonic())

    def _to_choose(
        self, connection: sa.Connection, history: History, *, now: float, n: int
    ) -> tuple[Seen, list[str]] | None:
        """What the next choices may know, and the notes that the workspace does not have; None if they are there."""
        try:
            self._ready(history, n)
        except NotReady:
            return self._collect_known(history, now)
        return None  # another thread has made them meanwhile

    def _collect_known(self, history: History, now: float) -> tuple[Seen, list[str]]:
        return collect_known(history, now), notes_of(history)[self._workspace.asked.count :]

    @property
    def _workspace(self) -> Workspace:
        return workspace_of(self._storage, self._row, self.space)

    @property
    def best(self) -> Best:
        """The best setting so far, its predicted share of wins against the runner-up, and how sure that is."""
        return self.advice().best

    def slices(self) -> dict[str, Any]:
        """Return slices of the model through the best setting, as plain data for JSON.

        Returns:
            `best`, `confidence`, `answers`, and `parameters`: for each parameter its `name`, its `kind` (number or
            choice), its bounds or choices, its value in the best setting as `best`, and lists of equal length:
            `values` of the parameter, and for the best setting with that value `mean`, `lower` and `upper` of its
            utility minus that of the best setting, and `share`, `share_lower` and `share_upper` of its predicted share
            of wins against the best setting; `half_lower` and `half_upper` are the interval that has that share with a
            probability of one half.
        """
        return self.advice().slices

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
                about = (self._row.seed, work.memory, self.confidence, given)
                work.advice = key, advice(self._chooser, self.space, points, *about)
            return work.advice[1]

    def check(self) -> int:
        """Replay the whole log, and check every digest and that each question is the one the policy asks.

        Settings are compared with a tolerance of a thousandth of each parameter's range. Questions that were chosen by
        other code, or on a machine whose last digits may differ, are compared too; if they differ, a warning says how
        many. This takes about as long as asking all questions again.

        Returns:
            How many events there are.

        Raises:
            DamagedStudy: If the log is not what was written.
        """
        from .check import check

        with one_thread():
            return check(self)

    def open_duels(self) -> list[TuningDuel]:
        """Return the duels without an answer, oldest first."""
        return self.read(lambda connection, history: [self.duel_in(history, number) for number in history.open])

    def duel(self, number: int) -> TuningDuel:
        """Return a duel by its id.

        Raises:
            InvalidInput: If there is no such duel.
        """
        return self.read(lambda connection, history: self.duel_in(history, number))

    def duel_in(self, history: History, duel: object) -> TuningDuel:
        """Return a duel by its id, from the study's state."""
        number = duel_number(duel)
        self._check_duel(history, number)
        note = json.loads(notes_of(history)[number])
        return TuningDuel(number, note["left"], note["right"], self.name, iso_time(history.asked[number]))

    def _entries(self, connection: sa.Connection, history: History, *, after: int, limit: int | None) -> list[LogEntry]:
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

    def _answer_code(self, history: History, number: int, winner: object) -> int:
        try:
            return super()._answer_code(history, number, winner)
        except InvalidInput:  # it speaks of arms
            raise InvalidInput(f"winner is {shorten(winner)}: expected left, right, tie, both_bad or skip") from None

    def votes(self) -> "pl.DataFrame":
        """Return the answers that count as a data frame, in the order in which they were given.

        Returns:
            One row per answer: for each parameter `left.NAME` and `right.NAME`, then `winner` (left, right, tie or
            both_bad), `voter`, `time` (of past duels the one that they came with), `duel` and `comment`.
        """
        from .files import export_duels

        return export_duels(self)

    def import_duels(self, duels: "Iterable[PastDuel] | pl.DataFrame") -> int:
        """Add past duels as if they had been asked and answered here: all of them or, after an error, none.

        Args:
            duels: `(left, right, winner)` for each, with two settings and left, right, tie or both_bad, or
                `(left, right, winner, voter, time)`; or a data frame as `votes` returns it. At most 10,000 at once.

        Returns:
            How many were added.

        Raises:
            InvalidInput: If a setting does not belong to the space, or a winner is something else.
        """
        return self._storage.write(self.importing(duels))

    def importing(self, duels: "Iterable[PastDuel] | pl.DataFrame") -> Write[int]:
        """Return what `import_duels` writes; its value is how many were added."""
        from .files import check_duels, import_in

        return Write(partial(import_in, study=self, duels=check_duels(self.space, duels)), self._row.id)

    def append_in(self, history: History, new: Sequence[Event]) -> None:
        """Append events that the history includes already, inside a transaction."""
        self._append(history, new)

    def run(
        self,
        judge: Judging,
        *,
        max_duels: int | None = None,
        max_calls: int | None = None,
        max_cost: float | None = None,
        concurrency: int = 8,
        orders: Literal["one", "both", "auto"] = "auto",
        progress: bool | None = None,
    ) -> "TuningResult":
        """Let a judge answer until a limit is reached. Call it again to resume.

        Args:
            judge: A function of `(left, right)`, two settings, that returns `"left"`, `"right"`, `"tie"`, `"both_bad"`,
                `"skip"` or a `duels.judges.Answer`; it may be async. Or a dict of such functions by name. A function
                of `(prompt, left, right)` gets None as the prompt. Judges of `duels.judges` may be used too.
            max_duels: How many duels the study is to ask, over all runs, those included that are skipped, but not those
                to which a judge gave no usable answer; by default 50 if no other limit is given.
            max_calls: How many calls the study may make, over all runs.
            max_cost: How much its calls may cost, over all runs.
            concurrency: How many questions are asked at the same time.
            orders: How often a question is asked, see `Study.run`.
            progress: Whether to show progress; by default on a terminal only.

        Returns:
            The best setting, why the run ended, and what the study has cost.

        Raises:
            Conflict: If another judge has answered, or the one of this name was another one.
            InvalidInput: If the judge takes other arguments, or an argument is out of range.

        Example:
            >>> study = duels.create_tuning({"x": (0.0, 1.0)}, storage="sqlite://")
            >>> closer = lambda left, right: "left" if abs(left["x"] - 0.3) < abs(right["x"] - 0.3) else "right"
            >>> result = study.run(closer, max_duels=12)
            >>> result.ended
            'max_duels'
        """
        from .judged import run

        how: dict[str, Any] = {"orders": orders, "progress": progress, "max_duels": max_duels}
        return run(self, judge, max_calls=max_calls, max_cost=max_cost, concurrency=concurrency, **how)


def notes_of(history: History) -> list[str]:
    """Return the notes of all duels of a tuning study."""
    assert history.notes is not None
    return history.notes


def _follows(history: History, batch: Batch) -> bool:
    """Whether choices may be asked now: other duels were not asked meanwhile, and few answers were given."""
    for choice in batch.choices:
        if choice.number < len(history.left):
            note = json.loads(notes_of(history)[choice.number])
            if (note["left"], note["right"]) != (choice.left, choice.right):
                return False
    first = batch.choices[0]
    only_asked = history.seq - first.after == len(history.left) - first.number
    return only_asked or batch.age < FRESH
