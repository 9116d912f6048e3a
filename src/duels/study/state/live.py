"""A study's state: its record, the policy's state after its answers, and the next question.

The same log gives the same record, the same policy state and the same next question on every machine.
"""

import copy
import hashlib
import io
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...engine import loop
from ...errors import Conflict, DuelsError
from ...files import pack_arrays
from ...policies import Policy, load_policy
from ...storage.batches import Batch
from ...storage.storage import PolicyFiles, StudyRow
from ..stats.about import THESE_ANSWERS
from ..stats.goal import Goal
from .counts import COLUMNS, NONE, StudyCounts
from .item_schedule import ItemSchedule, ItemSet, Place, item_set_of
from .next_question import NextQuestion
from .people import NOBODY
from .policy_state import PolicyState, SavedState

OUTCOME = np.array([1.0, 0.0, 0.5, 0.5])  # of the arm on the left, by answer
LARGE = 2**25  # bytes: a larger policy state is not saved in snapshots
SMALL = 32  # arms: with fewer, a policy is fast enough without compiling
FEW = 256  # answers that the policy's state may take in while others wait


class CatchUp(NamedTuple):
    """A policy's state that was lent to a thread, and the answers that the thread must add to it."""

    player: PolicyState
    first: np.ndarray  # (n,) int64: the policy's first arms
    second: np.ndarray  # (n,) int64
    outcomes: np.ndarray  # (n,) float64: of the first arms
    upto: int  # how many answers of the study it includes afterwards
    start: int  # how often the history had restarted the policy when it was lent


class LiveState(StudyCounts):
    """A record, the policy's state after its answers, and the next question."""

    def __init__(self, row: StudyRow, policy: Policy | None = None) -> None:
        super().__init__(row)
        self._policy = policy
        self.policy_files: PolicyFiles = "all"  # which policies that are in Python files may run
        self.compiles = False  # whether a policy on many arms is compiled before its first question
        self._player: PolicyState | None = None
        self._folded = 0  # how many of `answered` the player includes
        self._starts = 0  # how often the player was restarted
        self._lent = False  # whether the player is lent to a thread, see `lend`
        # The player's scratch copy, in which the open duels ended in ties:
        self._asked_last: tuple[int, int] | None = None  # places of the pair that was asked last …
        self._asked_number = 0  # … and the number of that duel
        self._looked = 0.0  # when the copy was made
        self._expiry = 0.0  # when the first lease of the duels in it ends
        self._questions = NextQuestion(self)

    @property
    def policy(self) -> Policy:
        """What chooses the duels; loaded when first needed, since results do not need it.

        Raises:
            DuelsError: If it cannot be found.
        """
        if self._policy is None:
            source, parameters = self.row.settings.get("source"), self.row.policy.partition(":")[2]
            if source:
                self._check_file(source)
            self._policy = load_policy(f"{source}:{parameters}" if source and parameters else source or self.row.policy)
        return self._policy

    def _check_file(self, source: str) -> None:
        """Refuse a policy's file that may not run here; whoever can write to the database chooses which file it is."""
        if self.policy_files == "none":
            raise Conflict(
                f"study {self.row.name!r} is asked by a policy in a Python file, which this server does not run: start "
                "it with --policy-files, or create the study with a built-in policy"
            )
        if self.policy_files == "unchanged" and digest_of_file(source) != self.row.settings.get("source_digest"):
            raise Conflict(
                f"the Python file of the policy of study {self.row.name!r} is not the one that the study was created "
                "with: restore that file, or create another study"
            )

    def use(self, policy: Policy | None) -> None:
        """Set a policy that cannot be found by its name."""
        self._policy = self._policy or policy

    def _ask(self, left: int, right: int, swapped: int, time: float) -> None:
        if self._asked_last is not None and self._pair_of(left, right, swapped) != self._asked_last:
            self._asked_last = None  # another process asked something else
        super()._ask(left, right, swapped, time)

    def _pair_of(self, left: int, right: int, swapped: int) -> tuple[int, int] | None:
        """The places of the policy's first and second arm, if both are active."""
        first, second = (right, left) if swapped else (left, right)
        places = self.places
        return (places[first], places[second]) if first in places and second in places else None

    def _answer(self, duel: int, answer: int, is_late: bool = False) -> None:
        self._asked_last = None
        super()._answer(duel, answer, is_late)
        self._questions.take_answer(self.left[duel], self.right[duel])

    def _change_levels(self) -> None:
        super()._change_levels()
        self._questions.start_again()

    def _import(self, batch: Batch, time: float) -> None:
        self._asked_last = None
        super()._import(batch, time)
        self._questions.start_again()
        if batch.count is not None and self.is_sampled:  # shares of earlier counts are smaller now
            self._restart_policy()

    def _withdraw(self, duels: Sequence[int], becomes: int, time: float, blind: bool = False) -> None:
        self._asked_last = None
        super()._withdraw(duels, becomes, time, blind)

    def _set_goal(self, goal: Goal) -> None:
        self._asked_last = None
        super()._set_goal(goal)
        self._questions.start_again()

    def _start_again(self) -> None:
        """Recompute the policy's state from the first answer: arms changed, or answers were taken back."""
        self._restart_policy()
        super()._start_again()
        self._questions.start_again()

    def _restart_policy(self) -> None:
        self._player, self._folded = None, 0
        self._starts += 1
        self._asked_last = None

    def player(self) -> PolicyState:
        """Return the policy's state after all answers about active arms; `is_ready` must be true."""
        assert self.is_ready
        return self._enter_player()

    @property
    def is_ready(self) -> bool:
        """Whether the policy's state is up to date, or can be brought up to date quickly."""
        return not self._lent and self._is_quick(self._begin_player())

    def _enter_player(self) -> PolicyState:
        player = self._begin_player()
        self._enter(player, *self._waiting_answers())
        self._folded = len(self.answered)
        return player

    def _begin_player(self) -> PolicyState:
        if self._player is None:
            self._player = PolicyState(self.policy, len(self.places), self.row.horizon, self.row.seed)
        return self._player

    def _is_quick(self, player: PolicyState) -> bool:
        return self._is_small() and not player.wants_compiling(self._compiles_first(player))

    def _is_small(self) -> bool:
        """Whether few votes wait to be entered."""
        missing = len(self.answered) - self._folded
        if missing > FEW or not self.repeated:
            return missing <= FEW
        return int(self.shares(np.array(self.answered[self._folded :], np.int64)).sum()) <= FEW

    def _compiles_first(self, player: PolicyState) -> bool:
        return self.compiles and player.arms > SMALL

    @property
    def is_uncompiled(self) -> bool:
        """Whether the next question waits for the compiler."""
        return self._begin_player().wants_compiling(self._compiles_first(self._begin_player()))

    def _waiting_answers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The answers that the policy's state does not have yet."""
        missing = self.answered[self._folded :]
        return self._outcomes(missing) if missing else (NONE, NONE, NONE)

    def _enter(self, player: PolicyState, first: np.ndarray, second: np.ndarray, outcomes: np.ndarray) -> None:
        if len(first):
            try:
                player.enter(first, second, outcomes)
            except BaseException:
                self._start_again()  # it may include some of them
                raise

    def lend(self) -> CatchUp | None:
        """Lend the policy's state to a thread that adds the missing answers; None if it is up to date."""
        if self._lent or self._is_quick(self._begin_player()):
            return None
        self._lent = True
        return CatchUp(self._begin_player(), *self._waiting_answers(), len(self.answered), self._starts)

    def take_back(self, work: CatchUp, done: bool) -> None:
        """Take back what was lent.

        Args:
            work: What `lend` returned.
            done: Whether all answers were added.
        """
        self._lent = False
        if done and work.start == self._starts:
            self._folded = work.upto
        else:
            self._start_again()

    def catch_up(self) -> PolicyState:
        """Return the policy's state after all answers, however long that takes."""
        work = self.lend()
        if work is not None:
            done = False
            try:
                work.player.catch_up(work.first, work.second, work.outcomes, self._compiles_first(work.player))
                done = True
            finally:
                self.take_back(work, done)
        return self.player()

    def _outcomes(self, duels: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The policy's first and second arms of answered duels, and the outcomes of the first arms."""
        if len(duels) == 1 and not self.repeated:
            return self._outcome(duels[0])
        first, second, number = self.pairs(duels)
        if not len(number):
            return NONE, NONE, NONE
        outcome = OUTCOME[np.frombuffer(self.answer, np.int8)[number]]
        swapped = np.frombuffer(self.swapped, np.int8)[number] == 1
        outcome = np.where(swapped, 1.0 - outcome, outcome)
        if self.repeated:
            entered = _mix_rows(self.shares(number), np.searchsorted(self.counted, number, side="right"))
            first, second, outcome = first[entered], second[entered], outcome[entered]
        if self.goal.ties == "skipped":
            told = (outcome != 0.5) | (first == second)  # a self-duel is no tie: time goes on
            return first[told], second[told], outcome[told]
        return first, second, outcome

    def _outcome(self, duel: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `_outcomes` of one duel, which is what most questions wait for: in a quarter of the time."""
        pair = self._pair_of(self.left[duel], self.right[duel], self.swapped[duel])
        outcome = float(OUTCOME[self.answer[duel]])
        if pair is None or (outcome == 0.5 and self.goal.ties == "skipped" and pair[0] != pair[1]):
            return NONE, NONE, NONE
        won = 1.0 - outcome if self.swapped[duel] else outcome
        arms = np.array(pair, np.int64)
        return arms[:1], arms[1:], np.array([won])

    def question(
        self, now: float, allow_self: bool, person: int = NOBODY, shared: bool = False
    ) -> tuple[int, int, int]:
        """Return the next duel; `is_ready` must be true.

        The policy knows of open duels within their lease, so that many questions at once spread out.

        Args:
            now: The time, in seconds since 1970.
            allow_self: Whether an arm may duel itself.
            person: Who is asked, if it is a person who is known.
            shared: Whether it may be one that is open, see `NextQuestion.can_ask`.

        Returns:
            The arms on the left and on the right, and 1 if the policy's first arm is on the right.
        """
        if self.leaves_out(person):
            self._asked_last = None
            return self.next_swapped(*self._question_of(person, now, shared))
        player = self._enter_player()
        last = self._asked_last
        # The scratch copy is extended while the same duels are open; a clock may have been set back.
        if last is not None and len(self.left) == self._asked_number + 1 and self._looked <= now < self._expiry:
            i, j = player.look_further(*last)
            self._questions.look_further(*last)
        else:
            leased = self.list_leased(now)
            first, second, _ = self.pairs(leased)
            i, j = player.look_ahead(first, second)
            self._looked, self._expiry = now, min((self.asked[duel] for duel in leased), default=now) + self.row.lease
            self._questions.look_ahead(len(leased), first, second)
        self._expiry = min(self._expiry, now + self.row.lease, self._ahead - self.row.lease)
        i, j = self._questions.choose(i, j, now, allow_self, self.policy, player.t, person, shared)
        self._asked_last, self._asked_number = (i, j), len(self.left)
        return self.next_swapped(i, j)

    def leaves_out(self, person: int) -> bool:
        """Return whether the answers of a person are left out when the next question for that person is chosen.

        What people are asked should not depend on what they said: somebody who dislikes an arm, and is therefore asked
        about it again, would make others look good. Where one person gives most of the answers, there would be nothing
        left to choose by, and the verdict is about that person anyway. A count of final answers does not mind.
        """
        if person < 0 or self.goal.about == THESE_ANSWERS:
            return False
        mine = self.people.given[person]
        return 0 < mine <= self.people.by_people - mine

    def _question_of(self, person: int, now: float, shared: bool) -> tuple[int, int]:
        """The places of the next pair for a person whose own answers are left out."""
        others = copy.copy(self)
        others.wins, others.ties = self.wins.copy(), self.ties.copy()
        mine = np.array([duel for duel in self.duels_of(person) if self.counting[duel]], np.int64)
        left, right, answer = (
            np.frombuffer(column, column.typecode)[mine].astype(np.int64)
            for column in (self.left, self.right, self.answer)
        )
        others._count_all(left, right, answer, -self.votes_of(mine))
        questions = NextQuestion(others)
        leased = self.list_leased(now)
        questions.look_ahead(len(leased), *self.pairs(leased)[:2])
        return questions.choose_for(person, now, shared)

    @contextmanager
    def preview_items(self, found: ItemSet | None) -> Iterator[None]:
        """While a block runs, let questions be about these items: the event that says so is not written yet."""
        items = self.items
        if items is not None and found is not None and found.items:
            self.items = copy.deepcopy(items)
            self.items.fix(found)
        try:
            yield
        finally:
            self.items = items

    def next_swapped(self, i: int, j: int) -> tuple[int, int, int]:
        """Return the next duel, if it is of the active arms in these places, as `question` does."""
        arms = list(self.places)
        swapped = self._questions.side()
        return (arms[j], arms[i], 1) if swapped else (arms[i], arms[j], 0)

    def pair_among(self, may_meet: np.ndarray) -> tuple[int, int]:
        """Return the places of the pair, of those that may meet, that helps the verdict most."""
        return self._questions.pair_among(may_meet)

    def can_ask(self, now: float, person: int = NOBODY, shared: bool = False) -> bool:
        """Return whether there is a question, see `NextQuestion.can_ask`."""
        return self._questions.can_ask(now, person, shared)

    @property
    def has_outputs(self) -> bool:
        """Whether two active arms have outputs for all items; true in a study without items."""
        return self._questions.has_outputs

    def next_place(self, left: int, right: int, now: float, person: int = NOBODY, shared: bool = False) -> Place | None:
        """Return the item of the next duel and its place, if it is of these arms; None in a study without items."""
        return self._questions.next_place(left, right, now, person, shared)

    def snapshot(self) -> Callable[[], bytes]:
        """Copy the whole state.

        Returns:
            A function that serializes the copy, which may take a while; it needs no lock.
        """
        plain: dict[str, object] = {
            "seq": self.seq,
            "digest": self.digest,
            "names": self.names.copy(),
            "started_with": self.started_with,
            "withdrawn": self.withdrawn,
            "imported": self.imported,
            "retired": self.retired,
            "last_told": self.last_told,
            "after": self.goal.after,
            "open": list(self.open),
            "forgotten": sorted(self.forgotten),
        }
        arrays = {name: np.array(getattr(self, name), kind) for name, kind in COLUMNS.items()}
        arrays |= {"active": np.array(self.active, bool), "wins": self.wins.copy(), "ties": self.ties.copy()}
        arrays |= {"skips": self.skips.copy(), "lates": self.lates.copy()}
        plain |= {"margin": self.goal.margin, "about": self.goal.about, "contradictions": self.contradictions}
        plain |= {"imports": self.imports.copy(), "people": len(self.people.given)}
        plain |= {"asked_again": sorted(self.asked_again), "unknown": self.people.unknown}
        plain |= {"by_judges": self.people.by_judges, "first": self.people.first}
        if self.count:
            arrays |= {"count": np.array(self.count, np.int64), "counted": np.array(self.counted, np.int64)}
        if self.items is not None:
            plain |= {"sets": [(duels, found.as_note()) for duels, found in self.items.sets]}
            plain["closed"] = sorted(self.items.closed)
            arrays |= {"item": np.array(self.items.of, np.int32), "place": np.array(self.items.place, np.int32)}
        if self.notes is not None:
            plain["notes"] = self.notes.copy()
        player = None if self._lent or self._folded < len(self.answered) else self._player
        if player is not None and player.size <= LARGE:
            saved = player.save()
            plain |= {"t": saved.t, "coin": saved.coin, "code": loop.code_of(self.policy)}
            arrays |= {name: array.copy() for name, array in saved.arrays.items()}
        return partial(_serialize, plain, arrays)

    def restore(self, content: bytes) -> None:
        """Restore a snapshot.

        Args:
            content: What the function from `snapshot` returned.
        """
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        plain = json.loads(arrays.pop("plain").tobytes())
        self.seq, self.digest = plain["seq"], plain["digest"]
        self.names, self.started_with, self.withdrawn = plain["names"], plain["started_with"], plain["withdrawn"]
        self.active = arrays.pop("active").tolist()
        for name, kind in COLUMNS.items():
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, arrays.pop(name).astype(kind).tobytes()))
        self.count, self.counted = (array("q", arrays.pop(name, NONE).tobytes()) for name in ("count", "counted"))
        wide = np.int64 if self.count else np.int32
        self.wins, self.ties = (arrays.pop(name).astype(wide) for name in ("wins", "ties"))
        self.skips, self.lates = arrays.pop("skips"), arrays.pop("lates")
        self.repeated = int((self.votes_of(np.array(self.answered, np.int64)) - 1).sum())
        self.open = dict.fromkeys(plain["open"])
        self._see_all_open()
        self.forgotten = set(plain["forgotten"])
        self.retired, self.imported, self.notes = plain["retired"], plain["imported"], plain.get("notes")
        self.last_told = plain["last_told"]
        self.goal = self.goal._replace(**{name: plain[name] for name in ("after", "margin", "about")})
        self.contradictions, self.imports = plain["contradictions"], [tuple(span) for span in plain["imports"]]
        self.asked_again = set(plain["asked_again"])
        people = ("people", "unknown", "by_judges", "first")
        self.people.restore(self.person, self.counting, *(plain[name] for name in people))
        if self.items is not None:
            self.items = ItemSchedule(self.row.seed, self.goal.about)
            self.items.sets = [(duels, item_set_of(note)) for duels, note in plain["sets"]]
            self.items.closed = set(plain["closed"])
            self.items.of, self.items.place = (
                array("i", arrays.pop(name).astype(np.int32).tobytes()) for name in ("item", "place")
            )
            self.items.replay(self.left, self.right, self.answered)
        self._start_again()
        try:
            same = "code" in plain and plain["code"] == loop.code_of(self.policy)
        except DuelsError:  # the policy is unavailable; callers that need it will raise
            return
        if same:  # else the policy's state is recomputed from the answers by its present code
            self._player = PolicyState(self.policy, sum(self.active), self.row.horizon, self.row.seed)
            self._player.restore(SavedState(plain["t"], plain["coin"], arrays))
            self._folded = len(self.answered)

    @property
    def is_busy(self) -> bool:
        """Whether a thread is bringing the policy's state up to date."""
        return self._lent

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        columns = sum(np.dtype(kind).itemsize for kind in COLUMNS.values())
        player = 0 if self._player is None else self._player.size
        duels = len(self.left) * columns + 8 * len(self.count)
        notes = 0 if not self.notes else (100 + len(self.notes[0])) * len(self.notes)
        return self.wins.nbytes + self.ties.nbytes + duels + notes + 100 * len(self.open) + player


def _mix_rows(shares: np.ndarray, imports: np.ndarray) -> np.ndarray:
    """Rows, each as often as its share. Adjacent rows of an import with shares above 1 are mixed evenly.

    Args:
        shares: (n,) int64: At least 1.
        imports: (n,) int64: The import that each row is of.

    Returns:
        (sum of shares,) int64: Indices of rows.
    """
    row = np.repeat(np.arange(len(shares)), shares)
    within = np.arange(len(row)) - np.repeat(np.cumsum(shares) - shares, shares)
    single = shares == 1
    begins = single[1:] | single[:-1] | (imports[1:] != imports[:-1])
    run = np.cumsum(np.append(False, begins))  # a number for each run of rows that are mixed
    return np.asarray(row[np.lexsort((row, (within + 0.5) / shares[row], run[row]))])


def _serialize(plain: dict[str, object], arrays: dict[str, np.ndarray]) -> bytes:
    return pack_arrays(arrays | {"plain": np.frombuffer(json.dumps(plain).encode(), np.uint8)})


def digest_of_file(path: str) -> str | None:
    """Return the digest of a file; None if it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None
