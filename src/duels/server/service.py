"""What the routes of one application share: the storage, its studies, the keys that were seen, the limits."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa

from ..errors import DamagedStudy, UnknownName
from ..storage.storage import Storage, StudyRow, Write
from ..study.board import board, verdict_data
from ..study.catalogue import load_study
from ..study.duels import iso_time
from ..study.items import count_items
from ..study.study import Study
from . import keys
from .errors import Refused
from .keys import Key
from .limits import Limits, Rates
from .streams import DAMAGED, Hub

BOARDS = 16  # the most that are kept
T = TypeVar("T")


@dataclass
class Drawn:
    """A board, and its charts once somebody has looked."""

    board: dict[str, Any]
    charts: dict[str, Any] | None = None
    lock: Any = field(default_factory=threading.Lock)


@dataclass
class Service:
    """One application's parts; `app.state.service`."""

    storage: Storage
    hub: Hub
    limits: Limits
    rates: Rates
    public_url: str = ""
    shared_url: str = ""  # where others on the network reach it, if nothing stands in front
    open_to_all: bool = False  # no sign-in at all; only on loopback
    _boards: dict[Any, Drawn] = field(default_factory=dict)
    _drawing: defaultdict[int, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))  # by study
    _states: dict[int, dict[str, Any]] = field(default_factory=dict)  # what streams were told, by the study's id
    _keys: dict[str, Key] = field(default_factory=dict)
    _studies: dict[str, Study] = field(default_factory=dict)
    _verdicts: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)  # by the study's id
    _damaged: dict[Any, tuple[float, str]] = field(default_factory=dict)  # until when it is known, and what is wrong
    _generation: int = 0  # of the storage that all these are from

    def study(self, name: str) -> Study:
        """The study of that name, as it is now in the database. Blocks."""
        self._follow_storage()
        study = self._studies.get(name)
        if study is not None and self.exists(study):
            return study
        self._studies.pop(name, None)
        study = load_study(name, self.storage)
        self._studies[name] = study
        return study

    def _follow_storage(self) -> None:
        """Forget what was known of a database that was replaced."""
        if self._generation != self.storage.generation:
            self._generation = self.storage.generation
            for known in (self._boards, self._keys, self._studies, self._verdicts, self._damaged, self._states):
                known.clear()

    def exists(self, study: Study) -> bool:
        with self.storage.lock, self.storage.translate_errors():
            return _exists(self.storage, self.storage.connection(), study)

    def key(self, secret: str) -> Key | None:
        """Whose secret this is, as it is now in the database. Blocks."""
        self._follow_storage()
        found = keys.find_key(self.storage, secret)
        if found is None:
            self._keys.pop(keys.digest_of(secret), None)
        else:
            if len(self._keys) > 10_000:
                self._keys.clear()
            self._keys[found.digest] = found
        return found

    async def key_soon(self, secret: str) -> Key | None:
        """As `key`, from memory where it was seen before: what is written with it checks it again, see `write`."""
        found = self._keys.get(keys.digest_of(secret))
        return found if found is not None else await asyncio.to_thread(self.key, secret)

    async def study_soon(self, name: str) -> Study:
        """As `study`, from memory where it was seen before: what is written to it checks it again."""
        found = self._studies.get(name)
        return found if found is not None else await asyncio.to_thread(self.study, name)

    async def write(self, key: Key | None, name: str, write: Callable[[Study], Write[T]]) -> T:
        """Write to a study, if in that very transaction the key is in force and the study is there."""
        for _ in range(2):
            study = await self.study_soon(name)
            try:
                return await self.hub.write(self._checked(key, study, write(study)))
            except _Gone:
                self._studies.pop(name, None)  # deleted by another process, and perhaps created again
        raise UnknownName("study", name, ())

    def _checked(self, key: Key | None, study: Study, write: Write[T]) -> Write[T]:
        return Write(partial(self._check_and_run, key, study, write), write.study, write.last)

    def _check_and_run(self, key: Key | None, study: Study, write: Write[T], connection: sa.Connection) -> T:
        what = (None if key is None else (key.id, key.digest), study.row[:3])
        self.storage.check_once(what, partial(self._check, connection, key, study))
        return write.operation(connection)

    def _check(self, connection: sa.Connection, key: Key | None, study: Study) -> None:
        if key is not None and not keys.in_force(self.storage, connection, key):
            self._keys.pop(key.digest, None)
            raise Refused(401, "the token was revoked or has expired: ask for another one")
        if not _exists(self.storage, connection, study):
            raise _Gone("the study was deleted")

    def verdict(self, study: Study) -> dict[str, Any]:
        """A study's verdict as data, computed once for each state of its log. Blocks."""
        key = (self.storage.generation, study.history().seq)
        known, found = self._verdicts.get(study.id, (None, {}))
        if known != key:
            found = verdict_data(study.verdict())
            self._verdicts[study.id] = (key, found)
        return found

    def board(self, study: Study, confidence: float = 0.95) -> dict[str, Any]:
        """What the dashboard shows, made once for each state of the log however many look. Blocks."""
        with self._drawing[study.id]:
            key = (self.storage.generation, study.id, study.history().seq, confidence)
            drawn = self._boards.get(key)
            if drawn is None:
                drawn = Drawn(board(study, confidence))
                for old in list(self._boards)[: 1 - BOARDS]:
                    self._boards.pop(old, None)
                self._boards[key] = drawn
            return drawn.board

    def charts(self, shown: dict[str, Any]) -> dict[str, Any]:
        """The charts of a board, made once too. Blocks."""
        from ..study.board_charts import charts_of  # when first drawn: it takes half a second to load

        drawn = next((one for one in list(self._boards.values()) if one.board is shown), None) or Drawn(shown)
        with drawn.lock:
            if drawn.charts is None:
                drawn.charts = charts_of(shown)
            return drawn.charts

    def state(self, name: str) -> dict[str, Any]:
        """What a stream says of a study, which is loaded only if its log has grown. Blocks."""
        study = self.study(name)
        with self.storage.lock, self.storage.translate_errors():
            last = self.storage.last_seq(self.storage.connection(), study.id)
        known = self._states.get(study.id)
        if known is None or known["seq"] != last:
            history = study.history()
            known = {
                "seq": history.seq,
                "answers": len(history.answered),
                "open": len(history.open),
                "retired": history.retired,
            }
            self._states[study.id] = known
        return known

    def listed(self) -> list[dict[str, Any]]:
        """All studies as the API lists them, oldest first; one that cannot be read does not hide the others. Blocks."""
        with self.storage.lock, self.storage.translate_errors():
            rows = self.storage.listed(self.storage.connection())
        found = []
        for row in rows:
            try:
                found.append(self._described_or_damaged(row))
            except UnknownName:  # deleted by another process just now
                continue
        return found

    def _described_or_damaged(self, row: StudyRow) -> dict[str, Any]:
        until, words = self._damaged.get(row[:3], (0.0, ""))
        if time.monotonic() >= until:  # finding the damage reads all of the log
            try:
                return self.described(self.study(row.name)) | {"damaged": None}
            except DamagedStudy as error:
                words = str(error)
                self._damaged[row[:3]] = (time.monotonic() + DAMAGED, words)
        unknown = dict.fromkeys(("arms", "answers", "open", "items", "retired", "seq"))
        known = {"name": row.name, "policy": row.policy, "created": iso_time(row.created)}
        return known | unknown | {"damaged": words}

    def described(self, study: Study) -> dict[str, Any]:
        """A study as the API shows it. Blocks."""
        history = study.history()
        return {
            "name": study.name,
            "policy": study.policy,
            "arms": [{"name": name, "active": active} for name, active in zip(history.names, history.active)],
            "answers": len(history.answered),
            "open": len(history.open),
            "items": count_items(study),
            "retired": history.retired,
            "created": iso_time(study.row.created),
            "seq": history.seq,
        }


class _Gone(UnknownName):
    """The study that a write was meant for is not there any more."""

    def __init__(self, message: str) -> None:
        super().__init__("study", message, ())


def _exists(storage: Storage, connection: sa.Connection, study: Study) -> bool:
    """Whether it is there; in a database that was replaced, another study may have its id."""
    cursor = connection.connection.cursor()
    cursor.execute(f"SELECT name, created FROM studies WHERE id = {'?' if storage.is_sqlite else '%s'}", (study.id,))
    row = cursor.fetchone()
    return row is not None and tuple(row) == (study.row.name, study.row.created)
