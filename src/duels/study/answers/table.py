"""All answers of a study by columns: who gave them, when, about which item, and what they wrote.

A history knows which answers count, but not who gave them. A page about items or voters needs both after every vote, so
the log is read once, and from then on only what is new in it.
"""

import json
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ...errors import StorageError
from ...storage.tables import events
from ...votes.columns import ANSWERS
from ...votes.votes import NEVER
from ..base import Imported
from ..state.counts import SKIP
from ..state.live import LiveState

if TYPE_CHECKING:
    from ..event_study import EventStudy

NOBODY = -1  # the voter of an answer that names none
NO_ITEM = -1
PAGE = 20_000  # events to read at once
Row = tuple[Any, ...]  # of the database: seq, kind, duel, answer, voter, time and note of an event
READ = ("ask", "tell", "import", "again", "repeat")  # kinds of events that say something about answers


class SecondAnswers(NamedTuple):
    """Answers of second judges to duels that have one already. They count for agreement only."""

    duel: np.ndarray  # (m,) int64
    left: np.ndarray  # (m,) int32: arms
    right: np.ndarray  # (m,) int32
    answer: np.ndarray  # (m,) int8: as in `AnswerTable`
    item: np.ndarray  # (m,) int32
    voter: np.ndarray  # (m,) int32


class AnswerTable(NamedTuple):
    """The answers of a study that count, at one moment; one entry per answer, in the order of the answers."""

    seq: int  # the last event that it includes
    names: list[str]  # the arms
    active: np.ndarray  # (arms,) bool
    voters: list[str]  # in the order of their first answers; those whose answers were taken back are in it too
    duel: np.ndarray  # (n,) int64
    left: np.ndarray  # (n,) int32: arms
    right: np.ndarray  # (n,) int32
    answer: np.ndarray  # (n,) int8: LEFT, RIGHT, TIE or BOTH_BAD of `record`
    votes: np.ndarray  # (n,) int64: how many votes it stands for; more than 1 only for imported counts
    item: np.ndarray  # (n,) int32: the item's number, or NO_ITEM; in a tuning study each duel is a question of its own
    voter: np.ndarray  # (n,) int32: an index of `voters`, or NOBODY
    asked: np.ndarray  # (n,) float64: when it was asked, in seconds since 1970
    time: np.ndarray  # (n,) float64: when it was given
    imported: np.ndarray  # (n,) bool: whether it is a past vote
    comments: dict[int, str]  # by duel: what voters wrote
    coin: np.ndarray  # (n,) bool: whether a coin of its own decided the sides, and it was asked in one order only
    skips: np.ndarray  # (voters,) int64: how many questions each voter skipped
    withdrawn: np.ndarray  # (voters,) int64: how many answers of each voter were withdrawn, see `Study.withdraw`
    seconds: SecondAnswers
    repeats_questions: bool = True  # whether several people are asked the same


class Counted(NamedTuple):
    """What a table needs of a study's history, copied at one moment."""

    seq: int
    names: list[str]
    active: np.ndarray
    left: np.ndarray
    right: np.ndarray
    answer: np.ndarray
    asked: np.ndarray
    answered: np.ndarray
    votes: np.ndarray
    skipped: np.ndarray
    withdrawn: np.ndarray
    withdrawn_votes: np.ndarray


def copy_counted(history: LiveState) -> Counted:
    """Copy which answers count, and what they are about."""
    answered, answer = np.array(history.answered, np.int64), np.array(history.answer, np.int8)
    withdrawn = np.array(sorted(history.forgotten), np.int64)
    return Counted(
        history.seq,
        history.names.copy(),
        np.array(history.active, bool),
        np.array(history.left, np.int32),
        np.array(history.right, np.int32),
        answer,
        np.array(history.asked, np.float64),
        answered,
        history.votes_of(answered),
        np.setdiff1d(np.flatnonzero(answer == SKIP), withdrawn),
        withdrawn,
        history.votes_of(withdrawn),
    )


class AnswerLog:
    """What the log says about answers, by duel; `follow` brings it up to date.

    Attributes:
        seq: The last event that it includes.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.seq = 0
        self._voters: dict[str, int] = {}
        self._comments: dict[int, str] = {}
        self._item, self._voter, self._time, self._imported = array("i"), array("i"), array("d"), array("b")
        self._coin = array("b")
        self._seconds: list[tuple[int, int, int]] = []  # duel, answer, voter

    def follow(self, study: "EventStudy", known: Counted | None = None) -> AnswerTable:
        """Return the answers that count now. Nobody waits for it, but two threads must not call it at the same time.

        Args:
            study: Always the same one.
            known: Which answers count, from `counted`, for a table of that moment; by default of now.
        """
        known = known or study._log.read(lambda _, history: copy_counted(history))
        if known.seq < self.seq or self._somebody_was_forgotten(study, known.seq):
            self._clear()
        while self.seq < known.seq:
            page = _events(study, self.seq, known.seq)
            self._take(study, page)
            self.seq = page[-1][0] if len(page) == PAGE else known.seq
        if len(self._item) < len(known.left):
            self._clear()
            raise StorageError(f"study {study.name!r} was deleted")
        return self._table(known)._replace(repeats_questions=study._log.repeats_questions)

    def _somebody_was_forgotten(self, study: "EventStudy", last: int) -> bool:
        """Whether a name that was read before has been erased since."""
        new = sa.and_(events.c.study_id == study._log.id, events.c.seq > self.seq, events.c.seq <= last)
        chosen = sa.select(events.c.seq).where(new, events.c.kind == "forget").limit(1)
        with study._log.storage.read_connection() as connection:
            return self.seq > 0 and connection.execute(chosen).first() is not None

    def _take(self, study: "EventStudy", page: Sequence[Row]) -> None:
        item, voter, times = self._item, self._voter, self._time
        repeats = study._log.repeats_questions
        for seq, kind, duel, answer, name, time, note in page:
            if kind == "import":
                self._take_import(study._log.read_imported(seq, note), time)
                continue
            if kind == "ask":
                past = not repeats and json.loads(note).get("imported", False)
                item.append(len(item) if not repeats else _item_in(note) if note else NO_ITEM)
                voter.append(NOBODY)
                times.append(time)
                self._imported.append(past)
                self._coin.append(not past)
            if kind == "tell":
                voter[duel], times[duel] = self._code(name), time
                self._comments.pop(duel, None)  # of an answer that was taken back
            if kind == "repeat" and answer not in (None, "skip"):
                self._seconds.append((duel, ANSWERS.index(answer), self._code(name)))
            if note and kind != "ask":
                self._take_note(duel, kind, json.loads(note))

    def _take_note(self, duel: int, kind: str, note: dict[str, Any]) -> None:
        if "first" in note or "replies" in note:
            self._coin[duel] = False
        if kind != "tell":
            return
        if isinstance(note.get("note"), str):
            self._comments[duel] = note["note"]

    def _take_import(self, given: Imported, time: float) -> None:
        size = len(given.batch.answer)
        voters = np.full(size, NOBODY)
        if given.voters is not None:
            voters = np.array([*map(self._code, given.voters.names), NOBODY])[given.voters.given]
        times = np.full(size, time)
        if given.batch.times is not None:
            times = np.where(given.batch.times == NEVER, time, given.batch.times / 1e6)
        for column, values, kind in (
            (self._item, np.full(size, NO_ITEM), np.int32),
            (self._voter, voters, np.int32),
            (self._time, times, np.float64),
            (self._imported, np.ones(size), np.int8),
            (self._coin, np.zeros(size), np.int8),
        ):
            column.frombytes(values.astype(kind).tobytes())

    def _code(self, name: str | None) -> int:
        return NOBODY if name is None else self._voters.setdefault(name, len(self._voters))

    def _table(self, known: Counted) -> AnswerTable:
        duels = known.answered
        columns = [np.array(one)[duels] for one in (self._item, self._voter, self._time, self._imported, self._coin)]
        item, voter, time, imported, coin = columns
        said = np.array(list(self._comments), np.int64)
        counting = set(said[np.isin(said, duels)].tolist()) if len(said) else set()
        return AnswerTable(
            known.seq,
            known.names,
            known.active,
            list(self._voters),
            duels,
            known.left[duels],
            known.right[duels],
            known.answer[duels],
            known.votes,
            item,
            voter,
            known.asked[duels],
            time,
            imported.astype(bool),
            {duel: words for duel, words in self._comments.items() if duel in counting},
            coin.astype(bool),
            self._per_voter(known.skipped),
            self._per_voter(known.withdrawn, known.withdrawn_votes),
            self._second_answers(known),
        )

    def _per_voter(self, duels: np.ndarray, votes: np.ndarray | None = None) -> np.ndarray:
        """How many of these duels each voter answered; or how many votes these stand for."""
        voter = np.frombuffer(self._voter, np.int32)[duels] if len(duels) else np.zeros(0, np.int32)
        named = voter != NOBODY
        weights = None if votes is None else votes[named]
        return np.bincount(voter[named], weights, minlength=len(self._voters)).astype(np.int64)

    def _second_answers(self, known: Counted) -> SecondAnswers:
        duel, answer, voter = np.array(self._seconds, np.int64).reshape(-1, 3).T
        item = np.array(self._item, np.int32)[duel] if len(duel) else np.zeros(0, np.int32)
        left, right = known.left[duel], known.right[duel]
        return SecondAnswers(duel, left, right, answer.astype(np.int8), item, voter.astype(np.int32))


@lru_cache(10_000)
def _item_in(note: str) -> int:
    """The item of a question; there are many more questions than items."""
    return int(json.loads(note).get("item", NO_ITEM))


def _events(study: "EventStudy", after: int, last: int) -> Sequence[Row]:
    """The next events, by the driver itself, since there may be millions."""
    new = sa.and_(
        events.c.study_id == study._log.id, events.c.seq > after, events.c.seq <= last, events.c.kind.in_(READ)
    )
    columns = (events.c[name] for name in ("seq", "kind", "duel", "answer", "voter", "time", "note"))
    chosen = sa.select(*columns).where(new).order_by(events.c.seq).limit(PAGE)
    with study._log.storage.read_connection() as connection:
        return list(connection.execute(chosen).cursor.fetchall())
