"""What happened in a study: arms, duels and answers, counted by a pure fold over its events.

Which answers count is decided here and nowhere else, see `Answers`.
"""

import hashlib
import json
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import DamagedStudy
from ..storage.batches import Batch, unpack
from ..storage.storage import Event, EventRow, StudyRow
from ..votes.columns import ANSWERS
from .finite import AskedItems
from .goal import Goal, goal_of
from .tally import Tally
from .verdict import FollowedVerdict, Verdict

LEFT, RIGHT, TIE, BOTH_BAD, SKIP = range(5)
OPEN = -1
MANY, TOO_MANY = 32, 500  # arms: with fewer or more, a verdict is computed from the counts, without the lock
LATELY = 100  # answers that tell how fast they come
SAMPLE = 100_000  # votes of counts that the policy's state takes in, in addition to one per row
NONE = np.zeros(0, np.int64)
EVENT_FIELDS = Event._fields[2:-1]
COLUMNS = {  # arrays of a record: one entry per duel, but `answered` one per answer
    "left": np.int32,
    "right": np.int32,
    "swapped": np.int8,
    "answer": np.int8,
    "attempt": np.int32,
    "asked": np.float64,
    "answered": np.int64,
}


class Answers(NamedTuple):
    """The answers of a study that count: no skips, and none that were undone or whose voter was forgotten."""

    duels: np.ndarray  # (answers,) int64: the answered duels, in the order of their answers
    attempts: np.ndarray  # (duels,) int64: of each duel, how often its answer was taken back

    def include(self, duels: np.ndarray, attempts: np.ndarray | int) -> np.ndarray:
        """Return which answers in the log count.

        Args:
            duels: (n,) int64: The duels they answer.
            attempts: (n,) int64: Their events' attempts, or one for all of them.

        Returns:
            (n,) bool.
        """
        counts = np.zeros(len(self.attempts), bool)
        counts[self.duels] = True
        return np.asarray(counts[duels] & (self.attempts[duels] == attempts))


class Record:
    """The arms, duels and answers of a study after some of its events."""

    def __init__(self, row: StudyRow) -> None:
        self.row = row
        self.goal = goal_of(row.settings)
        self.seq, self.digest = 0, ""
        self.names: list[str] = []
        self.active: list[bool] = []
        self.started_with = 0
        # One entry per duel, by its number:
        self.left = array("i")
        self.right = array("i")
        self.swapped = array("b")  # 1 where the policy's first arm was shown on the right
        self.answer = array("b")
        self.attempt = array("i")  # how often its answer was undone
        self.asked = array("d")
        self.answered = array("q")  # numbers of the duels whose answer counts, in the order of the answers
        self.count = array("q")  # how many votes a duel stands for; up to the last import with counts, 1 after it
        self.counted = array("q")  # the numbers of the first duels of imports with counts
        self.repeated = 0  # votes in addition to one per entry of `answered`
        self.open: dict[int, None] = {}  # numbers of the duels without an answer, in the order they were asked
        self._fresh: dict[int, None] = {}  # the open duels, except those known to be past their lease
        self._stale = -math.inf  # when the latest of those was asked
        self.retired = False  # whether it asks no more questions
        self.withdrawn = 0  # answers undone or forgotten by somebody who may have seen results
        self.forgotten: set[int] = set()  # numbers of the duels whose voter was forgotten; they stay closed
        self.wins = np.zeros((0, 0), np.int32)
        self.ties = np.zeros((0, 0), np.int32)
        self.imported = 0  # rows of votes
        self.items = AskedItems(row.seed) if self.goal.asks_once else None
        self.notes: list[str] | None = [] if row.is_tuning else None  # of each duel, what was asked: its settings
        self._places: dict[int, int] | None = None  # see `places` …
        self._arms: np.ndarray | None = None  # … `arms` …
        self._place: np.ndarray | None = None  # … (K,) int64: the same, −1 for a retired arm
        self._verdict: FollowedVerdict | None = None  # with many arms, if it was looked at
        self.snapshot_seq = 0  # the last event in the newest snapshot …
        self._snapshot_weight = 0  # … and the weight of the record then

    def apply(self, events: Iterable[EventRow], votes: Callable[[int], bytes | None] = lambda seq: None) -> None:
        """Apply events that follow the last one.

        Args:
            events: The events, in order.
            votes: Returns what was stored beside the import event of that number.

        Raises:
            DamagedStudy: If an event is missing, or is not what was written.
        """
        for event in events:
            seq, digest = event[0], event[-1]
            if seq != self.seq + 1:
                raise DamagedStudy(
                    f"the log of study {self.row.name!r} has no event {self.seq + 1}: it was tampered with"
                )
            if chained(self.digest, event) != digest:
                raise DamagedStudy(
                    f"event {seq} of study {self.row.name!r} is not what was written: it was tampered with"
                )
            batch = None
            if event[1] == "import":
                what = f"the votes of event {seq} of study {self.row.name!r}"
                batch = unpack(votes(seq), json.loads(event[10]), what)
            self.take(event, batch)

    def take(self, event: EventRow, batch: Batch | None = None) -> None:
        """Apply an event that is known to follow the last one, such as one from `next_event`.

        Args:
            event: The event.
            batch: The votes of an import event.
        """
        seq, kind, duel, _, left, right, swapped, answer, _, time, _, digest = event
        self.seq, self.digest = seq, digest
        if kind == "ask":
            if self.items is not None:
                self.items.ask(left, right, json.loads(event[10]))
            if self.notes is not None:
                self.notes.append(event[10])
            self._ask(left, right, swapped, time)
        elif kind == "tell":
            self._answer(duel, ANSWERS.index(answer))
            if self.items is not None and answer == "skip" and event[10] is not None:
                self._close(duel, json.loads(event[10]))
        elif batch is not None:
            self._import(batch, time)
        else:
            _KINDS[kind](self, event)

    def _ask(self, left: int, right: int, swapped: int, time: float) -> None:
        self.open[len(self.left)] = self._fresh[len(self.left)] = None
        self.left.append(left)
        self.right.append(right)
        self.swapped.append(swapped)
        self.answer.append(OPEN)
        self.attempt.append(0)
        self.asked.append(time)

    def _answer(self, duel: int, answer: int) -> None:
        self.answer[duel] = answer
        self.open.pop(duel, None)
        self._fresh.pop(duel, None)
        if answer != SKIP:
            self.answered.append(duel)
            if self.items is not None:
                before = self.items.answer(duel, self.left[duel], self.right[duel])
                if before is not None:
                    self._count(before, self.answer[before], -1)
            self._count(duel, answer, 1)
            if self._verdict is not None and self.left[duel] != self.right[duel]:
                self._verdict.note(self.left[duel], self.right[duel])

    def _close(self, duel: int, note: dict[str, object]) -> None:
        """After a skip that says so, the pair is not asked about that item again."""
        if self.items is not None and note.get("closed"):
            self.items.close(duel, self.left[duel], self.right[duel])

    def _count(self, duel: int, answer: int, by: int) -> None:
        left, right = self.left[duel], self.right[duel]
        if left == right:
            return
        if answer == LEFT:
            self.wins[left, right] += by
        elif answer == RIGHT:
            self.wins[right, left] += by
        else:
            self.ties[left, right] += by
            self.ties[right, left] += by

    def _withdraw(self, duels: Sequence[int], becomes: int, blind: bool = False) -> None:
        number = np.array(duels, np.int64)
        answers, attempts = np.frombuffer(self.answer, np.int8), np.frombuffer(self.attempt, np.int32)
        before = answers[number]
        answers[number] = becomes
        attempts[number] += 1
        if becomes == OPEN:
            self.open |= dict.fromkeys(duels)
            if self.items is not None:
                for duel in duels:
                    self.items.reopen(duel, self.left[duel], self.right[duel])
            self._fresh |= dict.fromkeys(duels)
        number, before = number[before != SKIP], before[before != SKIP]
        if not len(number):
            return
        left, right = (np.frombuffer(side, np.int32)[number] for side in (self.left, self.right))
        votes = self.votes_of(number)
        self._count_all(left, right, before, -votes)
        self.repeated -= int((votes - 1).sum())
        self._verdict = None
        answered = np.frombuffer(self.answered, np.int64)
        self.answered = array("q", answered[~np.isin(answered, number)].tobytes())
        self.withdrawn += 0 if blind else int(votes[left != right].sum())
        if self.items is not None:
            self._count_items_again(self.items)
        self._start_again()

    def _count_items_again(self, items: AskedItems) -> None:
        self.wins[...], self.ties[...] = 0, 0
        for duel in items.again(self.left, self.right, self.answered):
            self._count(duel, self.answer[duel], 1)

    def _create(self, event: EventRow) -> None:
        self._add(json.loads(event[10])["arms"])
        self.started_with = len(self.names)

    def _add_arm(self, event: EventRow) -> None:
        self._add([json.loads(event[10])["arm"]])

    def _add(self, names: list[str]) -> None:
        more = (0, len(names))
        self.names += names
        self.active += [True] * len(names)
        self._verdict = None
        self.wins, self.ties = (np.pad(counts, (more, more)) for counts in (self.wins, self.ties))
        self._start_again()

    def _retire_arm(self, event: EventRow) -> None:
        self.active[event[4]] = False
        self._verdict = None
        self._start_again()

    def _vote(self, event: EventRow) -> None:
        self._ask(event[4], event[5], event[6], event[9])
        self._answer(event[2], ANSWERS.index(event[7]))

    def _import(self, batch: Batch, time: float) -> None:
        first, count = len(self.left), len(batch.answer)
        for column, values in (
            (self.left, batch.left),
            (self.right, batch.right),
            (self.swapped, np.zeros(count, np.int8)),
            (self.answer, batch.answer),
            (self.attempt, np.zeros(count, np.int32)),
            (self.asked, np.full(count, time)),
            (self.answered, np.arange(first, first + count)),
        ):
            column.frombytes(values.tobytes())
        votes: np.ndarray | int = 1
        if batch.count is not None:
            self.wins, self.ties = self.wins.astype(np.int64), self.ties.astype(np.int64)
            self.count.frombytes(np.ones(first - len(self.count), np.int64).tobytes())
            self.count.frombytes(batch.count.tobytes())
            self.counted.append(first)
            self.repeated += int((batch.count - 1).sum())
            votes = batch.count
        self._count_all(batch.left, batch.right, batch.answer, votes)
        self._verdict = None
        self.imported += count

    def _count_all(self, left: np.ndarray, right: np.ndarray, answer: np.ndarray, votes: np.ndarray | int) -> None:
        different = left != right
        by = np.broadcast_to(np.asarray(votes, self.wins.dtype), left.shape)[different]
        left, right, answer = left[different], right[different], answer[different]
        winner, loser = np.where(answer == RIGHT, right, left), np.where(answer == RIGHT, left, right)
        decided = answer < TIE
        np.add.at(self.wins, (winner[decided], loser[decided]), by[decided])
        for i, j in ((winner, loser), (loser, winner)):
            np.add.at(self.ties, (i[~decided], j[~decided]), by[~decided])

    def _undo(self, event: EventRow) -> None:
        self._withdraw([event[2]], OPEN, blind=event[10] is not None)

    def _forget(self, event: EventRow) -> None:
        duels = json.loads(event[10])["duels"]
        self._withdraw(duels, SKIP)
        self.forgotten.update(duels)

    def _nothing(self, event: EventRow) -> None:
        """What is only noted in the log, for costs and agreement, changes no answers."""

    def _retire(self, event: EventRow) -> None:
        self.retired = event[1] == "retire"

    def _change_goal(self, event: EventRow) -> None:
        self._set_goal(self.goal._replace(**json.loads(event[10])))

    def _set_goal(self, goal: Goal) -> None:
        self.goal = goal

    def _start_again(self) -> None:
        """Called when arms or past answers change, so that what was computed from all answers must be recomputed."""
        self._places, self._place, self._arms = None, None, None

    @property
    def places(self) -> dict[int, int]:
        """The active arms, and the policy's index of each."""
        if self._places is None:
            active = [arm for arm, active in enumerate(self.active) if active]
            self._places = {arm: place for place, arm in enumerate(active)}
        return self._places

    @property
    def arms(self) -> np.ndarray:
        """(K,) int64: the active arms, by the policy's indices."""
        if self._arms is None:
            self._arms = np.array(list(self.places), np.int64)
        return self._arms

    def pairs(self, duels: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the policy's first and second arms of those duels in which both are active, and the duels' numbers."""
        if not duels:
            return NONE, NONE, NONE
        if self._place is None:
            self._place = np.full(len(self.names), -1, np.int64)
            self._place[list(self.places)] = range(len(self.places))
        number = np.array(duels, np.int64)
        shown = [self._place[np.frombuffer(side, np.int32)[number]] for side in (self.left, self.right)]
        swapped = np.frombuffer(self.swapped, np.int8)[number] == 1
        first, second = np.where(swapped, shown[1], shown[0]), np.where(swapped, shown[0], shown[1])
        counted = (first >= 0) & (second >= 0)
        return first[counted], second[counted], number[counted]

    def leased(self, now: float) -> list[int]:
        """Return the open duels within their lease, in the order they were asked."""
        if now - self._stale < self.row.lease:  # a clock was set back
            self._see_all_open()
        expired = [duel for duel in self._fresh if now - self.asked[duel] >= self.row.lease]
        for duel in expired:
            del self._fresh[duel]
            self._stale = max(self._stale, self.asked[duel])
        return list(self._fresh)

    def _see_all_open(self) -> None:
        self._fresh, self._stale = dict(self.open), -math.inf

    @property
    def weight(self) -> int:
        """How much there is to read when the study is loaded: events and imported votes."""
        return self.seq + self.imported

    @property
    def since_snapshot(self) -> int:
        """How much of that is newer than the last snapshot."""
        return self.weight - self._snapshot_weight

    def note_snapshot(self) -> None:
        """Note that a snapshot now includes everything."""
        self.snapshot_seq, self._snapshot_weight = self.seq, self.weight

    @property
    def void(self) -> str | None:
        """Why the verdict's promise does not hold, if it does not."""
        count = self.withdrawn
        return f"{count} answer{'s were' if count > 1 else ' was'} taken back" if count else None

    def counts(self, duel: int, attempt: int, skips: bool = False) -> bool:
        """Return whether an answer in the log counts, as `Answers.include` does for many.

        Args:
            duel: The duel that it answers.
            attempt: Its event's attempt.
            skips: Whether skips count too.
        """
        return self.attempt[duel] == attempt and self.answer[duel] not in ((OPEN,) if skips else (OPEN, SKIP))

    @property
    def total(self) -> int:
        """How many votes count: one for each answer, or as many as an imported row stands for."""
        return len(self.answered) + self.repeated

    @property
    def is_sampled(self) -> bool:
        """Whether the policy's state has only a sample of the votes."""
        return self.repeated > SAMPLE

    def votes_of(self, duels: np.ndarray) -> np.ndarray:
        """Return (n,) int64: how many votes each of these duels stands for."""
        votes = np.ones(len(duels), np.int64)
        if self.count:
            known = duels < len(self.count)
            votes[known] = np.frombuffer(self.count, np.int64)[duels[known]]
        return votes

    def shares(self, duels: np.ndarray) -> np.ndarray:
        """Return (n,) int64: how often each of these duels is entered into the policy's state.

        Once, and in addition as often as its count says, or if there are too many votes, its share of a sample.
        """
        further = self.votes_of(duels) - 1
        return 1 + (np.rint(further * (SAMPLE / self.repeated)).astype(np.int64) if self.is_sampled else further)

    @property
    def answers(self) -> Answers:
        """A copy of which answers count."""
        return Answers(np.array(self.answered, np.int64), np.array(self.attempt, np.int64))

    def verdict(self) -> Verdict:
        """Return the verdict by the study's goal."""
        return self.followed_verdict() or self.goal.verdict(self.tally, void=self.void)

    def followed_verdict(self) -> Verdict | None:
        """Return the verdict, if it is kept up to date so that a look is quick; None if it must be computed."""
        goal = self.goal
        if not MANY <= len(self.names) <= TOO_MANY:
            return None
        if self._verdict is None and FollowedVerdict.fits(tally := self.tally, goal.test, goal.margin):
            self._verdict = FollowedVerdict(tally, goal.confidence)
        return None if self._verdict is None else self._verdict.verdict(self.wins, self.ties, self.void)

    @property
    def answers_an_hour(self) -> float | None:
        """How fast the last answered duels were asked; None before two of them."""
        lately = [self.asked[duel] for duel in self.answered[-LATELY:]]
        seconds = max(lately) - min(lately) if len(lately) > 1 else 0.0
        return 3600 * (len(lately) - 1) / seconds if seconds > 0 else None

    @property
    def tally(self) -> Tally:
        """The answers that count, as wins and ties of each pair."""
        counts = self.wins.astype(np.int64), self.ties.astype(np.int64)
        items = self.items.size or None if self.items is not None and self.goal.on_these_items else None
        return Tally(tuple(self.names), *counts, np.array(self.active, bool), self.started_with, items)


_KINDS = {
    "create": Record._create,
    "add_arm": Record._add_arm,
    "retire_arm": Record._retire_arm,
    "retire": Record._retire,
    "resume": Record._retire,
    "goal": Record._change_goal,
    "vote": Record._vote,
    "undo": Record._undo,
    "forget": Record._forget,
    "again": Record._nothing,
    "repeat": Record._nothing,
}


def chained(before: str, event: EventRow) -> str:
    """Return the digest of an event and all events before it. Names of voters are left out: they can be erased.

    Args:
        before: The digest of the event before it, empty for the first.
        event: The event; its own digest is not looked at.
    """
    seq, kind, duel, attempt, left, right, swapped, answer, _, time, note, _ = event
    text = f"{before}|{seq}|{kind}|{duel}|{attempt}|{left}|{right}|{swapped}|{answer}|{time!r}|{note}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def next_event(history: Record, kind: str, now: float, **fields: int | str | None) -> Event:
    """Return the next event of a study's log, with its digest.

    Args:
        history: The study so far.
        kind: The event's kind, such as `ask`.
        now: Its time, in seconds since 1970.
        **fields: Other fields of `Event`.
    """
    values: list[int | float | str | None] = [fields.pop(name, None) for name in EVENT_FIELDS]
    values[7] = now
    event = (history.seq + 1, kind, *values, "")
    return Event._make((*event[:-1], chained(history.digest, event)))
