"""What happened in a study: arms, duels and answers, counted by a pure fold over its events.

Which answers count is decided here and nowhere else, see `Answers`.
"""

import hashlib
import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import DamagedStudy
from ...storage.batches import Batch, unpack
from ...storage.storage import Event, EventRow, StudyRow
from ...votes.columns import ANSWERS
from ...votes.names import LinkVoter
from ..stats.about import (
    COMPARISONS,
    INDEPENDENT,
    NEW_ITEMS,
    PAST_VOTES,
    THESE_ANSWERS,
    THESE_ITEMS,
    THESE_PEOPLE,
    About,
    First,
    Strength,
)
from ..stats.goal import Goal, goal_of
from ..stats.moments import Moments
from ..stats.tally import Tally
from ..stats.verdict import Verdict
from .item_schedule import ItemSchedule, Pair, item_set_of, pair_of
from .look import Look, count_left, count_questions, find_doubles, find_expired, read_questions, without_early
from .people import JUDGE, NOBODY, People

LEFT, RIGHT, TIE, BOTH_BAD, SKIP = range(5)
OPEN = -1
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
    "person": np.int32,
    "counting": np.int8,
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


class StudyCounts:
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
        self.asked = array("d")  # when it was asked, or opened again
        self.person = array("i")  # who was asked or answered: a number, NOBODY or JUDGE
        self.counting = array("b")  # 1 where an answer counts: no skip, not late, and the first asked for of the same
        self.answered = array("q")  # numbers of the duels whose answer counts, in the order of the answers
        self.count = array("q")  # how many votes a duel stands for; up to the last import with counts, 1 after it
        self.counted = array("q")  # the numbers of the first duels of imports with counts
        self.repeated = 0  # votes in addition to one per entry of `answered`
        self.open: dict[int, None] = {}  # numbers of the duels without an answer, in the order they were asked
        self.fresh: dict[int, None] = {}  # the open duels, except those known to be past their lease
        self._stale = -math.inf  # when the latest of those was asked …
        self._ahead = math.inf  # … and the earliest of those that were asked in a time to come
        self.last_told: float | None = None  # when the last answer came that is no skip
        self.retired = False  # whether it asks no more questions
        self.withdrawn = 0  # answers undone or forgotten by somebody who may have seen results
        self.forgotten: set[int] = set()  # numbers of the duels whose voter was forgotten; they stay closed
        self.wins = np.zeros((0, 0), np.int32)
        self.ties = np.zeros((0, 0), np.int32)
        self.imported = 0  # rows of votes
        self.imports: list[tuple[int, int]] = []  # their first duels, and those after their last ones
        # Whether who was asked and who answered is part of the state; else the log is read.
        self.knows_people = compares_arms = row.kind == "arms"
        self.items = ItemSchedule(row.seed, self.goal.about) if compares_arms else None
        self.contradictions = 0  # questions that a judge answered in another way when it was asked again
        self.people = People()
        self.voters: dict[str, LinkVoter] = {}  # some that `voters` has in the database, by their digests
        self.skips = np.zeros((0, 0), np.int32)  # questions that were skipped, and not asked again …
        self.lates = np.zeros((0, 0), np.int32)  # … or answered after their lease
        self.asked_again: set[int] = set()  # duels whose question another duel asks or has answered
        self.notes: list[str] | None = None if compares_arms else []  # of each duel, what was asked: its settings
        self._theirs: dict[int, array[int]] | None = None  # by person, see `duels_of`
        self._places: dict[int, int] | None = None  # see `places` …
        self._arms: np.ndarray | None = None  # … `arms` …
        self._place: np.ndarray | None = None  # … (K,) int64: the same, −1 for a retired arm
        self._moments: Moments | None = None  # if a verdict was looked at
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
            if chain_digest(self.digest, event) != digest:
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
            note = json.loads(event[10]) if event[10] else {}
            if self.items is not None:
                self._supersede(self.items.ask(left, right, note))
            if self.notes is not None:
                self.notes.append(event[10])
            self._ask(left, right, swapped, time)
            self.person[-1] = self._answerer(event[8], note)
            self._note_person(len(self.person) - 1)
        elif kind == "tell":
            note = json.loads(event[10]) if event[10] else {}
            who = self._answerer(event[8], note)
            if who not in (NOBODY, self.person[duel]):
                self.person[duel] = who
                self._note_person(duel)
            self.last_told = self.last_told if answer == "skip" else time
            self._answer(duel, ANSWERS.index(answer), time - self.asked[duel] >= self.row.lease)
            if self.items is not None and answer == "skip" and note.get("closed"):
                self.items.close(duel, self.left[duel], self.right[duel])
        elif batch is not None:
            self._import(batch, time)
        else:
            _KINDS[kind](self, event)

    def _ask(self, left: int, right: int, swapped: int, time: float) -> None:
        self.open[len(self.left)] = self.fresh[len(self.left)] = None
        self.left.append(left)
        self.right.append(right)
        self.swapped.append(swapped)
        self.answer.append(OPEN)
        self.attempt.append(0)
        self.asked.append(time)
        self.person.append(NOBODY)
        self.counting.append(0)

    def _answer(self, duel: int, answer: int, is_late: bool = False) -> None:
        left, right = self.left[duel], self.right[duel]
        self.answer[duel] = answer
        self.open.pop(duel, None)
        self.fresh.pop(duel, None)
        if self._moments is not None and duel < self._moments.read:  # its lease had ended, and it was opened again
            self._moments = None
        if self.items is not None and (answer == SKIP or is_late):
            if duel not in self.asked_again:
                self._count_missing(self.skips if answer == SKIP else self.lates, duel, 1)
            return
        if answer == SKIP:
            return
        if self.items is not None:
            self._take_precedence(duel)
            if not self.items.answer(duel, left, right):
                return
        self.answered.append(duel)
        self.counting[duel] = 1
        self._count(duel, answer, 1)
        self._count_person(duel, 1)

    def _take_precedence(self, duel: int) -> None:
        """Let the answer of a duel count rather than those of duels that asked the same later."""
        assert self.items is not None
        left, right = self.left[duel], self.right[duel]
        other = self.items.find_counting(duel, left, right)
        if other is not None and other in self.later(duel):
            self.items.give_way(other, left, right)
            self.counting[other] = 0
            self._count(other, self.answer[other], -1)
            self._count_person(other, -1)
            self.answered.remove(other)
            self._start_again()
        for later in self.later(duel):
            if later not in self.asked_again:
                self.asked_again.add(later)  # what it asks has an answer
                if self.answer[later] == SKIP:
                    self._count_missing(self.skips, later, -1)

    def later(self, duel: int) -> list[int]:
        """Return the duels that ask the same as this one, and were asked after it, or after it was opened again."""
        if self.items is None:
            return []
        same = self.items.later(duel, self.left[duel], self.right[duel])
        return [other for other in same if self.asked[other] > self.asked[duel]]

    def _supersede(self, before: int | None) -> None:
        """Another duel asks what one without an answer has asked."""
        if before is None or before in self.asked_again:
            return
        self.asked_again.add(before)
        if self.answer[before] != OPEN:
            self._count_missing(self.skips if self.answer[before] == SKIP else self.lates, before, -1)

    def _count_missing(self, table: np.ndarray, duel: int, by: int) -> None:
        left, right = self.left[duel], self.right[duel]
        if left != right:
            table[left, right] += by
            table[right, left] += by

    def _answerer(self, name: str | None, note: Mapping[str, Any]) -> int:
        """The number of whoever is asked or answers, who may be new."""
        if "calls" in note or "identical" in note:
            return JUDGE
        if name is None or not self.knows_people:
            return NOBODY
        return self.people.admit(name)

    def name_people(self, duels: Mapping[str, int]) -> None:
        """Take in the names of people, each with a duel that was asked of them, after a snapshot was read."""
        self.people.rename({name: self.person[duel] for name, duel in duels.items() if self.person[duel] >= 0})

    def _count_person(self, duel: int, by: int) -> None:
        before = self._sharing
        self.people.count(self.person[duel], by)
        if self._sharing != before:
            self._change_levels()

    @property
    def _sharing(self) -> tuple[Strength, First | None]:
        """What decides how much evidence a verdict needs, and answers can change."""
        return self.strength, self.people.first

    def _change_levels(self) -> None:
        """Called when a verdict needs more or less evidence than before."""
        self._moments = None

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

    def _withdraw(self, duels: Sequence[int], becomes: int, time: float, blind: bool = False) -> None:
        number = np.array(duels, np.int64)
        answers, attempts = np.frombuffer(self.answer, np.int8), np.frombuffer(self.attempt, np.int32)
        before, counted = answers[number], np.frombuffer(self.counting, np.int8)[number] == 1
        if self.items is not None:
            for duel, answer, counts in zip(duels, before.tolist(), counted.tolist()):
                if not counts and duel not in self.asked_again:
                    self._count_missing(self.skips if answer == SKIP else self.lates, duel, -1)
                self.items.take_back(duel, self.left[duel], self.right[duel])
        answers[number] = becomes
        attempts[number] += 1
        if becomes == OPEN:
            self.open |= dict.fromkeys(duels)
            self._reopen(duels, time)
        for duel in number[counted].tolist():
            self._count_person(duel, -int(self.votes_of(np.array([duel]))[0]))
        number, before = number[counted], before[counted]
        self._moments = None
        if not len(number):
            return
        np.frombuffer(self.counting, np.int8)[number] = 0
        left, right = (np.frombuffer(side, np.int32)[number] for side in (self.left, self.right))
        votes = self.votes_of(number)
        self._count_all(left, right, before, -votes)
        self.repeated -= int((votes - 1).sum())
        answered = np.frombuffer(self.answered, np.int64)
        self.answered = array("q", answered[~np.isin(answered, number)].tobytes())
        self.withdrawn += 0 if blind else int(votes[left != right].sum())
        self._start_again()

    def _reopen(self, duels: Sequence[int], time: float) -> None:
        """Begin the lease of open duels again."""
        for duel in duels:
            self.asked[duel] = time
            self.fresh.pop(duel, None)
            self.fresh[duel] = None

    def _create(self, event: EventRow) -> None:
        self._add(json.loads(event[10])["arms"])
        self.started_with = len(self.names)

    def _add_arm(self, event: EventRow) -> None:
        self._add([json.loads(event[10])["arm"]])

    def _add(self, names: list[str]) -> None:
        more = (0, len(names))
        self.names += names
        self.active += [True] * len(names)
        self.wins, self.ties, self.skips, self.lates = (
            np.pad(counts, (more, more)) for counts in (self.wins, self.ties, self.skips, self.lates)
        )
        self._start_again()

    def _retire_arm(self, event: EventRow) -> None:
        self.active[event[4]] = False
        self._start_again()

    def _import(self, batch: Batch, time: float) -> None:
        first, count = len(self.left), len(batch.answer)
        for column, values in (
            (self.left, batch.left),
            (self.right, batch.right),
            (self.swapped, np.zeros(count, np.int8)),
            (self.answer, batch.answer),
            (self.attempt, np.zeros(count, np.int32)),
            (self.asked, np.full(count, time)),
            (self.person, np.full(count, NOBODY, np.int32)),
            (self.counting, np.ones(count, np.int8)),
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
        before = self._sharing
        self.people.count_past_votes(int(np.sum(votes) if batch.count is not None else count))
        self.imported += count
        self.imports.append((first, first + count))
        if self.items is not None:
            self.items.skip_to(len(self.left))
        if self._sharing != before:
            self._change_levels()

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
        self._withdraw([event[2]], OPEN, event[9], blind=event[10] is not None)

    def _forget(self, event: EventRow) -> None:
        duels = json.loads(event[10])["duels"]
        self._withdraw(duels, SKIP, event[9])
        self.forgotten.update(duels)
        self.people.forget({self.person[duel] for duel in duels})
        self.voters.clear()  # one of them may have been forgotten

    def _ask_again(self, event: EventRow) -> None:
        """A judge is asked once more: an open question then has a lease of its own."""
        duel = event[2]
        if self.answer[duel] == OPEN:
            self._reopen([duel], event[9])

    def _repeat(self, event: EventRow) -> None:
        """What is noted for costs and agreement changes no answers, but may show that they are not final."""
        note = json.loads(event[10]) if event[10] else {}
        if note.get("contradicts"):
            self.contradictions += 1
            if self.contradictions == 1 and self.goal.about == THESE_ANSWERS:
                self._change_levels()

    def _change_items(self, event: EventRow) -> None:
        if self.items is not None:
            self.items.fix(item_set_of(json.loads(event[10])))
            self._change_levels()

    def _retire(self, event: EventRow) -> None:
        self.retired = event[1] == "retire"

    def _change_goal(self, event: EventRow) -> None:
        changed = json.loads(event[10])
        self._set_goal(self.goal._replace(**changed))
        if "about" in changed:
            self.items = ItemSchedule(self.row.seed, self.goal.about)
            self._change_levels()

    def _set_goal(self, goal: Goal) -> None:
        self.goal = goal

    def _start_again(self) -> None:
        """Called when arms or past answers change, so that what was computed from all answers must be recomputed."""
        self._places, self._place, self._arms, self._moments = None, None, None, None

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

    def list_leased(self, now: float) -> list[int]:
        """Return the open duels within their lease, in the order they were asked.

        A duel that was asked in a time to come, by a clock that was set back since, is not within its lease either.
        """
        if now - self._stale < self.row.lease or self._ahead - now < self.row.lease:  # a clock was set
            self._see_all_open()
        expired = [duel for duel in self.fresh if abs(now - self.asked[duel]) >= self.row.lease]
        for duel in expired:
            del self.fresh[duel]
            if self.asked[duel] > now:
                self._ahead = min(self._ahead, self.asked[duel])
            else:
                self._stale = max(self._stale, self.asked[duel])
        return list(self.fresh)

    def _see_all_open(self) -> None:
        self.fresh, self._stale, self._ahead = dict(self.open), -math.inf, math.inf

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
        taken = f"{count:,} answer{'s were' if count > 1 else ' was'} taken back" if count else ""
        removed = "prompts were removed" if self.items is not None and self.items.was_reduced else ""
        return " and ".join(filter(None, (taken, removed))) or None

    @property
    def about(self) -> About:
        """What a verdict is about. Answers of a judge that contradicts itself are not final."""
        is_final = self.goal.about == THESE_ANSWERS and not self.contradictions
        return THESE_ANSWERS if is_final else NEW_ITEMS if self.goal.about == THESE_ANSWERS else self.goal.about

    @property
    def strength(self) -> Strength:
        """What a verdict holds for, see `Verdict`."""
        extended = self.items is not None and self.items.was_extended and self.goal.about == THESE_ITEMS
        if self.imported or extended:
            return COMPARISONS
        return THESE_PEOPLE if self.people.returned else INDEPENDENT

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

    def verdict(self, now: float) -> Verdict:
        """Return the verdict by the study's goal."""
        return self.look(now).verdict()

    def look(self, now: float, all_moments: bool = True) -> Look:
        """Copy what a verdict at this time depends on, so that it is computed without holding the lock.

        Args:
            now: The time, in seconds since 1970.
            all_moments: Whether to copy the questions also where a verdict does not depend on earlier moments.
        """
        leased = self.list_leased(now)
        doubles = find_doubles(self)
        waiting = [duel for duel in leased if duel not in doubles]
        tally = self.tally._replace(open=count_questions(self, waiting))
        tally, left = without_early(self, tally, count_left(self), doubles)
        if self._moments is None:
            self._moments = Moments(tally, self.goal.confidence)
        moments = self._moments
        begin = moments.read if all_moments or not tally.returning else len(self.left)
        return Look(
            goal=self.goal,
            tally=tally,
            moments=moments,
            answered=read_questions(self, begin, min(leased, default=len(self.left)), doubles),
            void=self.void,
            answerers=self.people.as_answerers(),
            skipped=self.skips.astype(np.int64),
            expired=self.lates + count_questions(self, find_expired(self, leased)),
            left=left,
            contradictions=self.contradictions if self.goal.about == THESE_ANSWERS else 0,
        )

    def duels_of(self, person: int) -> list[int]:
        """Return the duels that a person was asked, or has answered, in the order in which that began."""
        if person < 0:
            return []
        if self._theirs is None:
            who = np.array(self.person)
            order = np.argsort(who, kind="stable")
            order = order[np.searchsorted(who[order], 0) :]
            people, begins = np.unique(who[order], return_index=True)
            parts = np.split(order.astype(np.int32), begins[1:])
            self._theirs = {one: array("i", part.tobytes()) for one, part in zip(people.tolist(), parts)}
        return [duel for duel in self._theirs.get(person, ()) if self.person[duel] == person]

    def _note_person(self, duel: int) -> None:
        if self._theirs is not None and self.person[duel] >= 0:
            self._theirs.setdefault(self.person[duel], array("i")).append(duel)

    def items_seen(self, person: int) -> dict[Pair, set[int]]:
        """Return the items that a person was asked about, for each pair of arms, and is not asked about again."""
        found: dict[Pair, set[int]] = {}
        if person >= 0 and self.items is not None and not self.items.asks_once:
            for duel in self.duels_of(person):
                if self.items.of[duel]:
                    found.setdefault(pair_of(self.left[duel], self.right[duel]), set()).add(self.items.of[duel])
        return found

    @property
    def tally(self) -> Tally:
        """The answers that count, as wins and ties of each pair."""
        return Tally(
            tuple(self.names),
            self.wins.astype(np.int64),
            self.ties.astype(np.int64),
            np.array(self.active, bool),
            self.started_with,
            None if self.items is None else self.items.size or None,
            self.about,
            self.strength,
            self.people.first or PAST_VOTES,
        )


_KINDS = {
    "create": StudyCounts._create,
    "add_arm": StudyCounts._add_arm,
    "retire_arm": StudyCounts._retire_arm,
    "retire": StudyCounts._retire,
    "resume": StudyCounts._retire,
    "goal": StudyCounts._change_goal,
    "undo": StudyCounts._undo,
    "forget": StudyCounts._forget,
    "again": StudyCounts._ask_again,
    "repeat": StudyCounts._repeat,
    "items": StudyCounts._change_items,
}


def chain_digest(before: str, event: EventRow) -> str:
    """Return the digest of an event and all events before it. Names of voters are left out: they can be erased.

    Args:
        before: The digest of the event before it, empty for the first.
        event: The event; its own digest is not looked at.
    """
    seq, kind, duel, attempt, left, right, swapped, answer, _, time, note, _ = event
    text = f"{before}|{seq}|{kind}|{duel}|{attempt}|{left}|{right}|{swapped}|{answer}|{time!r}|{note}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def next_event(history: StudyCounts, kind: str, now: float, **fields: int | str | None) -> Event:
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
    return Event._make((*event[:-1], chain_digest(history.digest, event)))
