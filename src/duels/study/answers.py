"""All answers of a study by columns: who gave them, when, about which item, and what they wrote.

A history knows which answers count, but not who gave them. A page about items or voters needs both after every vote, so
the log is read once, and from then on only what is new in it.
"""

import json
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..storage.storage import Event
from ..storage.tables import EVENT_COLUMNS, events
from ..votes.columns import ANSWERS
from ..votes.rows import moment_of
from ..votes.votes import NEVER
from .history import History
from .log import PAGE, Log
from .record import SKIP

NOBODY = -1  # the voter of an answer that names none
NO_ITEM = -1
READ = ("ask", "tell", "vote", "import", "again", "repeat")  # kinds of events that say something about answers


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
    item: np.ndarray  # (n,) int32: the item's number, or NO_ITEM
    voter: np.ndarray  # (n,) int32: an index of `voters`, or NOBODY
    asked: np.ndarray  # (n,) float64: when it was asked, in seconds since 1970
    time: np.ndarray  # (n,) float64: when it was given
    imported: np.ndarray  # (n,) bool: whether it is a past vote
    comments: dict[int, str]  # by duel: what voters wrote
    coin: np.ndarray  # (n,) bool: whether a coin of its own decided the sides, and it was asked in one order only
    skips: np.ndarray  # (voters,) int64: how many questions each voter skipped
    withdrawn: np.ndarray  # (voters,) int64: how many answers of each voter were withdrawn, see `Study.withdraw`
    seconds: SecondAnswers


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

    def follow(self, study: Log) -> AnswerTable:
        """Return the answers that count now. Nobody waits for it, but two threads must not call it at the same time.

        Args:
            study: Always the same one.
        """
        known = study.read(_copied)
        if known.seq < self.seq or self._somebody_was_forgotten(study, known.seq):
            self._clear()
        while self.seq < known.seq:
            page = _events(study, self.seq, known.seq)
            for event in page:
                self._take(study, event)
            self.seq = page[-1].seq if len(page) == PAGE else known.seq
        return self._table(known)

    def _somebody_was_forgotten(self, study: Log, last: int) -> bool:
        """Whether a name that was read before has been erased since."""
        new = sa.and_(events.c.study_id == study.id, events.c.seq > self.seq, events.c.seq <= last)
        chosen = sa.select(events.c.seq).where(new, events.c.kind == "forget").limit(1)
        with study.storage.reading() as connection:
            return self.seq > 0 and connection.execute(chosen).first() is not None

    def _take(self, study: Log, event: Event) -> None:
        duel = event.duel or 0
        if event.kind == "import":
            self._take_import(study, event, duel)
            return
        note: dict[str, Any] = json.loads(event.note) if event.note else {}
        if event.kind in ("ask", "vote"):
            self._add([note.get("item", NO_ITEM)], [NOBODY], [event.time], event.kind == "vote")
        if "first" in note or "replies" in note:
            self._coin[duel] = False
        if event.kind == "repeat" and event.answer not in (None, "skip"):
            self._seconds.append((duel, ANSWERS.index(event.answer), self._code(event.voter)))
        if event.kind in ("tell", "vote"):
            self._voter[duel] = self._code(event.voter)
            self._time[duel] = moment_of(note["voted"]) / 1e6 if "voted" in note else event.time
            self._comments.pop(duel, None)  # of an answer that was taken back
            if "note" in note and isinstance(note["note"], str):
                self._comments[duel] = note["note"]

    def _take_import(self, study: Log, event: Event, first: int) -> None:
        given = study.imported(event)
        size = len(given.batch.answer)
        voters = np.full(size, NOBODY)
        if given.voters is not None:
            voters = np.array([*map(self._code, given.voters.names), NOBODY])[given.voters.given]
        times = np.full(size, event.time)
        if given.batch.times is not None:
            times = np.where(given.batch.times == NEVER, event.time, given.batch.times / 1e6)
        assert first == len(self._item)
        self._add(np.full(size, NO_ITEM), voters, times, True)

    def _add(self, items: Any, voters: Any, times: Any, imported: bool) -> None:
        for column, values, kind in (
            (self._item, items, np.int32),
            (self._voter, voters, np.int32),
            (self._time, times, np.float64),
            (self._imported, np.full(len(times), imported), np.int8),
            (self._coin, np.full(len(times), not imported), np.int8),
        ):
            column.frombytes(np.asarray(values, kind).tobytes())

    def _code(self, name: str | None) -> int:
        return NOBODY if name is None else self._voters.setdefault(name, len(self._voters))

    def _table(self, known: "_Copied") -> AnswerTable:
        duels = known.answered
        columns = [np.array(one)[duels] for one in (self._item, self._voter, self._time, self._imported, self._coin)]
        item, voter, time, imported, coin = columns
        counting = set(duels.tolist()) if self._comments else set()
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

    def _second_answers(self, known: "_Copied") -> SecondAnswers:
        duel, answer, voter = np.array(self._seconds, np.int64).reshape(-1, 3).T
        item = np.array(self._item, np.int32)[duel] if len(duel) else np.zeros(0, np.int32)
        left, right = known.left[duel], known.right[duel]
        return SecondAnswers(duel, left, right, answer.astype(np.int8), item, voter.astype(np.int32))


class _Copied(NamedTuple):
    """What a table copies from a study's history."""

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


def _copied(connection: sa.Connection, history: History) -> _Copied:
    answered, answer = np.array(history.answered, np.int64), np.array(history.answer, np.int8)
    withdrawn = np.array(sorted(history.forgotten), np.int64)
    return _Copied(
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


def _events(study: Log, after: int, last: int) -> Sequence[Event]:
    new = sa.and_(events.c.study_id == study.id, events.c.seq > after, events.c.seq <= last, events.c.kind.in_(READ))
    chosen = sa.select(*(events.c[name] for name in EVENT_COLUMNS)).where(new).order_by(events.c.seq).limit(PAGE)
    with study.storage.reading() as connection:
        return [Event(*row) for row in connection.execute(chosen)]
