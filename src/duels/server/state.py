"""The state that the routes of one application share: storage, studies, keys, limits and caches.

Methods marked with "Blocks" read the database; coroutines call them in a thread.
"""

import asyncio
import math
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any, TypeVar, cast

import sqlalchemy as sa

from ..continuous.tuning.create import load_any
from ..continuous.tuning.result import summarize_tuning
from ..continuous.tuning.study import TuningStudy
from ..errors import DamagedStudy, UnknownName
from ..storage.statements import fetch_rows
from ..storage.storage import NotReady, Storage, StudyRow, Write
from ..study import base
from ..study.answers.item_results import ItemCounts, item_counts
from ..study.answers.table import AnswerLog, AnswerTable
from ..study.base import EventLog
from ..study.create import refuse_kind
from ..study.duels import iso_time
from ..study.event_study import EventStudy
from ..study.judging.ledger import Judges, Ledger, activity_of, follow
from ..study.link_voting import end_in
from ..study.state.counts import StudyCounts
from ..study.state.look import measure_pace
from ..study.stats.forecast import Forecast
from ..study.stats.goal import Goal, goal_of
from ..study.study import Study
from ..study.voters.report import Voters, voters_of
from . import keys
from .computed import Computed
from .http.errors import Refused
from .http.limits import Limits, Rates
from .http.turns import Turns
from .keys import Key
from .pair_details import list_details
from .results_tab import Given, Glance, as_of, describe_verdict, last_given, look_at, note_given
from .streams import DAMAGED, State, Streams
from .writes import Background

if TYPE_CHECKING:
    from .pages.vote import Link

MAX_KEYS = 10_000  # in the cache
MAX_STUDIES = 1_000  # in each cache of something small
QUICK = 0.005  # seconds for which all who vote may wait for a verdict …
FEW_MORE = 1_000  # … and how much a log grows until it may take longer
MAX_ANSWER_LOGS = 8  # in the cache: one of a million answers takes 20 MB
Json = dict[str, Any]
AnyStudy = Study | TuningStudy
Check = Callable[[sa.Connection, AnyStudy], bool]
T = TypeVar("T")


@dataclass
class Service:
    """What one application needs to answer requests; `app.state.service`."""

    storage: Storage
    background: Background
    streams: Streams
    limits: Limits
    rates: Rates
    public_url: str = ""
    shared_url: str = ""  # the address on the network, if there is no proxy
    open_to_all: bool = False  # no sign-in; only on loopback
    signing: str = field(default_factory=partial(secrets.token_hex, 32))  # signs addresses of outputs; never stored
    turns: Turns = field(default_factory=Turns)
    _counting: defaultdict[int, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _states: dict[int, tuple[float, State]] = field(default_factory=dict)  # until when; by the study's id
    _keys: dict[str, Key] = field(default_factory=dict)
    _studies: dict[str, AnyStudy] = field(default_factory=dict)
    _verdicts: Computed[Json] = field(default_factory=lambda: Computed(MAX_STUDIES))  # by the study's id, as all below
    _ends: Computed[str | None] = field(default_factory=lambda: Computed(MAX_STUDIES))
    _forecasts: Computed[Forecast] = field(default_factory=lambda: Computed(MAX_STUDIES))
    _glances: Computed[Json] = field(default_factory=lambda: Computed(MAX_STUDIES))
    _details: Computed[Json] = field(default_factory=lambda: Computed(MAX_ANSWER_LOGS))
    _voters: Computed[Voters] = field(default_factory=lambda: Computed(MAX_ANSWER_LOGS))
    _item_counts: Computed[ItemCounts] = field(default_factory=lambda: Computed(MAX_ANSWER_LOGS))
    _quick: dict[int, int] = field(default_factory=dict)  # see `_note_pace`
    _given: dict[int, Given | None] = field(default_factory=dict)
    links: "dict[str, Link]" = field(default_factory=dict)  # voting links that were valid, by the digest of the secret
    _ledgers: dict[int, Ledger] = field(default_factory=dict)
    _answers: dict[int, AnswerLog] = field(default_factory=dict)  # the last used at the end
    _damaged: dict[tuple[int, str, float], tuple[float, str]] = field(default_factory=dict)  # when to look again; why
    _generation: int = 0  # of the storage that the caches belong to

    def close(self) -> None:
        """End all streams and background work."""
        self.streams.close()
        self.background.close()

    def any_study(self, name: str) -> AnyStudy:
        """Return a study of any kind by its name, as it is now in the database. Blocks.

        Raises:
            UnknownName: If there is no such study.
            DamagedStudy: If its log cannot be read.
        """
        self.follow_storage()
        study = self._studies.get(name)
        if study is not None and self.exists(study):
            return study
        self._studies.pop(name, None)
        study = load_any(name, self.storage)
        self._studies[name] = study
        return study

    def study(self, name: str) -> Study:
        """Return a study that compares arms. Blocks.

        Raises:
            InvalidInput: If the study tunes parameters.
            UnknownName: If there is no such study.
            DamagedStudy: If its log cannot be read.
        """
        return check_comparing(self.any_study(name))

    def load_tuning(self, name: str) -> TuningStudy:
        """Return a study that tunes parameters. Blocks.

        Raises:
            InvalidInput: If the study compares arms.
            UnknownName: If there is no such study.
            DamagedStudy: If its log cannot be read.
        """
        found = self.any_study(name)
        refuse_kind(found._log.row, "settings")
        return cast(TuningStudy, found)

    def follow_storage(self) -> None:
        """Clear the caches if the database was replaced."""
        if self._generation != self.storage.generation:
            self._generation = self.storage.generation
            caches: tuple[dict[Any, Any] | Computed[Any], ...] = (
                *(self._keys, self._studies, self._damaged, self._states, self._given, self._ledgers, self._answers),
                *(self.links, self._quick),
                *(
                    self._details,
                    self._ends,
                    self._verdicts,
                    self._forecasts,
                    self._glances,
                    self._voters,
                    self._item_counts,
                ),
            )
            for one in caches:
                one.clear()

    def exists(self, study: AnyStudy) -> bool:
        """Return whether the study is still in the database. Blocks."""
        with self.storage.lock, self.storage.translate_errors():
            return _exists(self.storage.connection(), study)

    def key(self, secret: str) -> Key | None:
        """Return the valid key of a secret, as it is now in the database, or None. Blocks."""
        self.follow_storage()
        found = keys.find_key(self.storage, secret)
        if found is None:
            self._keys.pop(keys.digest_of(secret), None)
        else:
            if len(self._keys) >= MAX_KEYS:
                self._keys.clear()
            self._keys[found.digest] = found
        return found

    def get_cached(self, name: str) -> AnyStudy | None:
        """Return a study by its name if it was loaded, though it may have been deleted since."""
        return self._studies.get(name)

    async def get_key(self, secret: str) -> Key | None:
        """Like `key`, from the cache if possible. `write` checks the key again in its transaction."""
        found = self._keys.get(keys.digest_of(secret))
        return found if found is not None else await asyncio.to_thread(self.key, secret)

    async def get_study(self, name: str) -> AnyStudy:
        """Like `any_study`, from the cache if possible. `write` checks in its transaction that it still exists."""
        found = self._studies.get(name)
        return found if found is not None else await asyncio.to_thread(self.any_study, name)

    async def write_compared(self, key: Key | None, name: str, write: Callable[[Study], Write[T]]) -> T:
        """Like `write`, for studies that compare arms; others are refused."""
        return await self.write(key, name, lambda study: write(check_comparing(study)))

    async def write(
        self, key: Key | None, name: str, write: Callable[[AnyStudy], Write[T]], check: Check | None = None
    ) -> T:
        """Write to a study. The transaction also checks that the key is valid and the study exists.

        Args:
            key: The caller's key; None where no sign-in is needed.
            name: The study's name.
            write: Makes the write for the study.
            check: Called in the transaction instead; returns whether the study exists.

        Returns:
            The value of the write, after it is on disk.

        Raises:
            Refused: If the key was revoked or has expired.
            UnknownName: If there is no such study.
        """
        for _ in range(2):
            study = await self.get_study(name)
            try:
                return await self.background.write(self._check_write(key, study, write(study), check))
            except _Gone:
                self._studies.pop(name, None)  # deleted by another process, and perhaps created again
        raise UnknownName("study", name, ())

    def _check_write(self, key: Key | None, study: AnyStudy, write: Write[T], check: Check | None) -> Write[T]:
        return Write(partial(self._check_and_run, key, study, write, check), write.study, write.last)

    def _check_and_run(
        self, key: Key | None, study: AnyStudy, write: Write[T], check: Check | None, connection: sa.Connection
    ) -> T:
        if check is not None:
            if not check(connection, study):
                raise _Gone("the study was deleted")
            return write.operation(connection)
        what = (None if key is None else (key.id, key.digest), study._log.row[:3])
        self.storage.once(what, partial(self._check, connection, key, study))
        return write.operation(connection)

    def _check(self, connection: sa.Connection, key: Key | None, study: AnyStudy) -> None:
        if key is not None and not keys.in_force(connection, key):
            self._keys.pop(key.digest, None)
            raise Refused(401, "the token was revoked or has expired: ask an admin for another one")
        if not _exists(connection, study):
            raise _Gone("the study was deleted")

    def verdict(self, study: Study) -> Json:
        """Return a study's verdict as data, computed once for each of its states. Blocks."""
        return self._verdicts.get(
            study._log.id, lambda: describe_verdict(study.verdict()), lambda: self._state_of(study._log)
        )

    def forecast(self, study: Study) -> Forecast:
        """Return the estimates before a study's verdict, computed once for each state of the study. Blocks.

        They say nothing about a rate where nobody answers any more.
        """
        found = self._forecasts.get(study._log.id, study.forecast, lambda: self._state_of(study._log))
        if measure_pace(study._log.history(), base.clock()).answers_an_hour is None:
            return found._replace(answers_an_hour=None, hours_median=None)
        return found

    def judges(self, study: AnyStudy) -> Judges:
        """Return what the judges of a study have done; each event of its log is looked at once. Blocks."""
        with self._counting[study._log.id]:
            ledger = follow(study, self._ledgers.get(study._log.id) or Ledger())
            self._ledgers[study._log.id] = ledger
            return activity_of(ledger)

    def answers(self, study: AnyStudy) -> AnswerTable:
        """Return all answers that count, with who gave them; each event of its log is read once. Blocks."""
        with self._answer_log(study) as known:
            return known.follow(study)

    @contextmanager
    def _answer_log(self, study: AnyStudy) -> Iterator[AnswerLog]:
        """What is known of a study's log, for one thread at a time."""
        with self._counting[study._log.id]:
            known = self._answers.pop(study._log.id, None) or AnswerLog()
            yield known
            self._answers[study._log.id] = known
            for old in list(self._answers)[:-MAX_ANSWER_LOGS]:
                self._answers.pop(old, None)

    def item_counts(self, study: Study, table: AnswerTable) -> ItemCounts:
        """Return the answers and the disagreement of all items, computed once for each state of the log. Blocks."""
        return self._item_counts.get(study._log.id, lambda: item_counts(table), lambda: self._state_of_table(table))

    def voters(self, study: AnyStudy) -> Voters:
        """Return the voters of a study, computed once for each state of its log. Blocks."""
        table = self.answers(study)
        return self._voters.get(study._log.id, lambda: voters_of(table), lambda: self._state_of_table(table))

    def end_of(self, study: EventStudy) -> str | None:
        """Return why a study needs no more votes, computed once for each state of the study. Blocks."""
        return self._end_of(study._log)

    def _end_of(self, log: EventLog) -> str | None:
        if not log.has_verdict:
            return None

        def compute() -> str | None:
            weight, started = log.history().weight, time.perf_counter()
            end = log.find_end()
            self._note_pace(log, weight, time.perf_counter() - started)
            return end

        return self._ends.get(log.id, compute, lambda: self._state_of(log))

    def end_in(self, connection: sa.Connection, study: EventLog, arrived: float) -> str | None:
        """Return the same inside a transaction, where it is computed once: after the answers, before the questions.

        Args:
            connection: The transaction's connection.
            study: The study.
            arrived: When the request came, by `time.monotonic`.

        Raises:
            NotReady: If that takes too long while others wait, and has not been done since the request came.
        """
        if not study.has_verdict:
            return None
        found = self._ends.since(study.id, arrived)
        if found is not None:
            return found.value
        return self.storage.once(("end", study.id), partial(self._find_end_in, connection, study))

    def _find_end_in(self, connection: sa.Connection, study: EventLog) -> str | None:
        weight = study.current(connection).weight
        if weight > self._quick.get(study.id, -1):
            raise NotReady(study.id, partial(self._keep_end, study))
        started = time.perf_counter()
        try:
            end = end_in(connection, study)
        except Exception as error:  # it must not fail the votes of others
            raise NotReady(study.id, partial(self._keep_end, study)) from error
        self._note_pace(study, weight, time.perf_counter() - started)
        return end

    def _keep_end(self, study: EventLog) -> None:
        self._end_of(study)

    def _note_pace(self, study: EventLog, weight: int, seconds: float) -> None:
        """Note until which weight of its log the end of a study is found quickly."""
        self._quick[study.id] = weight + FEW_MORE if seconds < QUICK else -1

    def details(self, study: Study) -> Json:
        """Return what the page of results shows on request, computed once for each state of the study. Blocks."""

        def compute() -> Json:
            with self._answer_log(study) as known:
                return list_details(study, known)

        return self._details.get(study._log.id, compute, lambda: self._state_of(study._log))

    def glance(self, study: AnyStudy) -> Json:
        """Return what the page of results shows, computed once for each state of the study. Blocks."""

        def compute() -> Json:
            return _summarize(study, self)

        found = self._glances.get(study._log.id, compute, lambda: self._state_of(study._log))
        return _bring_up_to_date(study, found)

    def _state_of_table(self, table: AnswerTable) -> tuple[int, int]:
        return (self.storage.generation, table.seq)

    def _state_of(self, log: EventLog) -> tuple[int, int, int]:
        """What a verdict depends on: the log, and which open questions are within their lease."""
        found: tuple[int, int] = log.read(lambda _, history: (history.seq, len(history.list_leased(base.clock()))))
        return (self.storage.generation, *found)

    def _with_given(self, study: Study, found: Glance) -> Json:
        """Note a verdict that is shown for the first time; if the study is open again since, say so."""
        shown, verdict = found.shown, found.shown["verdict"]
        if study._log.id not in self._given:
            self._given[study._log.id] = last_given(study)
        before = self._given[study._log.id]
        if verdict["kind"] == "not yet":
            words = "" if before is None else f" {before.words(found.basis, found.void)}"
            return shown | {"verdict": verdict | {"words": verdict["words"] + words}}
        arm = verdict["leader"] if verdict["kind"] == "practically tied" else verdict["winner"]
        now = Given(verdict["kind"], arm, shown["answers"], found.basis)
        if before is None or before[:2] != now[:2]:
            self._given[study._log.id] = note_given(study, now)
        return shown

    def state(self, name: str) -> State:
        """Return what a stream says about a study. It is computed if the log has grown or a lease has ended. Blocks."""
        study = self.any_study(name)
        with self.storage.lock, self.storage.translate_errors():
            last = self.storage.last_seq(self.storage.connection(), study._log.id)
        until, known = self._states.get(study._log.id, (0.0, None))
        if known is None or known["seq"] != last or base.clock() >= until:
            until, known = study._log.read(lambda _, history: _read_state(history, base.clock()))
            self._states[study._log.id] = (until, known)
        return known

    def list_studies(self) -> list[Json]:
        """Return all studies as the API lists them, oldest first, damaged ones included. Blocks."""
        with self.storage.lock, self.storage.translate_errors():
            rows = self.storage.list_studies(self.storage.connection())
        found = []
        for row in rows:
            try:
                found.append(self._describe_or_damaged(row))
            except UnknownName:  # deleted by another process just now
                continue
        return found

    def _describe_or_damaged(self, row: StudyRow) -> Json:
        until, words = self._damaged.get(row[:3], (0.0, ""))
        if time.monotonic() >= until:  # finding the damage reads the whole log
            try:
                return self.describe(self.any_study(row.name)) | {"damaged": None}
            except DamagedStudy as error:
                words = str(error)
                self._damaged[row[:3]] = (time.monotonic() + DAMAGED, words)
        unknown = dict.fromkeys(("arms", "space", "answers", "open", "items", "retired", "seq"))
        known: Json = {"name": row.name, "policy": row.policy, "created": iso_time(row.created)}
        known["goal"] = _goal(goal_of(row.settings))
        return known | unknown | {"damaged": words}

    def describe(self, study: AnyStudy) -> Json:
        """Return a study as the API shows it. Blocks."""
        history = study._log.history()
        return {
            "name": study.name,
            "policy": study.policy,
            "goal": _goal(history.goal),
            **study._compared(),
            "answers": history.total,
            "open": len(history.open),
            "retired": history.retired,
            "created": iso_time(study._log.row.created),
            "seq": history.seq,
        }


def _read_state(history: StudyCounts, now: float) -> tuple[float, State]:
    """What a stream says about a study, and when the next lease ends, which changes it."""
    leased = history.list_leased(now)
    found: State = {
        "seq": history.seq,
        "answers": history.total,
        "open": len(history.open),
        "waiting": len(leased),
        "retired": history.retired,
    }
    return min((history.asked[duel] for duel in leased), default=math.inf) + history.row.lease, found


def check_comparing(study: AnyStudy) -> Study:
    """Return the same study, if it compares arms."""
    refuse_kind(study._log.row, "arms")
    return cast(Study, study)


def _goal(goal: Goal) -> Json:
    shown = ("confidence", "margin", "after", "about")
    return {name: getattr(goal, name) for name in shown}


@singledispatch
def _summarize(study: Any, service: Service) -> Json:
    """What the page of results shows."""
    return service._with_given(study, look_at(study))


@_summarize.register
def _summarize_settings(study: TuningStudy, service: Service) -> Json:
    return summarize_tuning(study)


@singledispatch
def _bring_up_to_date(study: Any, found: Json) -> Json:
    """The same, where time alone changes what it says."""
    return as_of(found, base.clock())


@_bring_up_to_date.register
def _keep_settings(study: TuningStudy, found: Json) -> Json:
    return found


class _Gone(UnknownName):
    """The study of a write was deleted meanwhile."""

    def __init__(self, message: str) -> None:
        super().__init__("study", message, ())


def _exists(connection: sa.Connection, study: AnyStudy) -> bool:
    """Compare name and time as well: in a database that was replaced, another study may have this id."""
    found = fetch_rows(connection, "SELECT name, created FROM studies WHERE id = ?", (study._log.id,))
    return [tuple(row) for row in found] == [(study._log.row.name, study._log.row.created)]
