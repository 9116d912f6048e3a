"""A study's state: a pure fold over its events.

The same log gives the same history, the same policy state and the same next question, on every machine.
"""

import hashlib
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import loop
from ..errors import DamagedStudy, DuelsError
from ..policies import Policy
from ..policies import policy as find_policy
from .player import Player, rival, rival_alpha
from .storage import Event, StudyRow
from .tally import Tally

ANSWERS = ("left", "right", "tie", "both_bad", "skip")
LEFT, RIGHT, TIE, BOTH_BAD, SKIP = range(5)
OPEN = -1
OUTCOME = (1.0, 0.0, 0.5, 0.5)  # of the arm on the left, by answer
EVENT_FIELDS = Event._fields[2:-1]
NONE = np.zeros(0, np.int64)
MANY = 2000  # answers to fold at once that are worth compiling for


class History:
    """What a study's events amount to: arms, duels, answers, and the policy's state after them."""

    def __init__(self, row: StudyRow, policy: Policy | None = None) -> None:
        self.row, self._policy = row, policy
        self.seq, self.digest = 0, ""
        self.names: list[str] = []
        self.active: list[bool] = []
        self.started_with = 0
        # Of each duel, by its number:
        self.left: list[int] = []
        self.right: list[int] = []
        self.swapped: list[int] = []  # 1 where the policy's first arm was shown on the right
        self.answer: list[int] = []
        self.attempt: list[int] = []  # how often its answer was undone
        self.asked: list[float] = []
        self.told: list[int] = []  # numbers of the duels with an outcome, in the order of their answers
        self.open: dict[int, None] = {}  # numbers of the duels without an answer, in the order they were asked
        self.retired = False  # whether it asks nothing more
        self.withdrawn = 0  # answers undone or forgotten, by somebody who may have seen results
        self.forgotten: set[int] = set()  # numbers of the duels whose voter was forgotten; they stay closed
        self.wins = np.zeros((0, 0), np.int64)
        self.ties = np.zeros((0, 0), np.int64)
        self.snapshot_seq = 0  # the last event that a snapshot has
        self._player: Player | None = None
        self._folded = 0  # how many of `told` the player knows
        self._asked_last: tuple[int, int] | None = None  # places of the pair that the player's scratch copy awaits …
        self._asked_number = 0  # … and the number of that duel
        self._looked = 0.0  # when the scratch copy was made
        self._expiry = 0.0  # when the first lease of those in the scratch copy ends
        self._awaited = 0  # how many duels the scratch copy takes for ties …
        self._hoped: np.ndarray | None = None  # … and the wins with them, if a rival was looked for
        self._fresh: dict[int, None] = {}  # the open duels but for those that were seen to be past their lease
        self._stale = -math.inf  # the latest time at which one of those was asked
        self._places: dict[int, int] | None = None

    @property
    def policy(self) -> Policy:
        """What chooses the duels; looked for when it is needed, since results can be had without."""
        if self._policy is None:
            source, parameters = self.row.settings.get("source"), self.row.policy.partition(":")[2]
            self._policy = find_policy(f"{source}:{parameters}" if source and parameters else source or self.row.policy)
        return self._policy

    def use(self, policy: Policy | None) -> None:
        """Have a policy that cannot be found by its name."""
        self._policy = self._policy or policy

    def apply(self, events: Iterable[Sequence[Any]]) -> None:
        """Take in events, which must follow the last one; what does not fit is refused."""
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
            self.take(event)

    def take(self, event: Sequence[Any]) -> None:
        """Take in an event that is known to follow the last one, such as one just `made`."""
        seq, kind, duel, _, left, right, swapped, answer, _, time, _, digest = event
        self.seq, self.digest = seq, digest
        if kind == "ask":
            self._ask(left, right, swapped, time)
        elif kind == "tell":
            self._answer(duel, ANSWERS.index(answer))
        else:
            _KINDS[kind](self, event)

    def _ask(self, left: int, right: int, swapped: int, time: float) -> None:
        if self._asked_last is not None and self._pair_of(left, right, swapped) != self._asked_last:
            self._asked_last = None  # another process asked something else
        self.open[len(self.left)] = self._fresh[len(self.left)] = None
        self.left.append(left)
        self.right.append(right)
        self.swapped.append(swapped)
        self.answer.append(OPEN)
        self.attempt.append(0)
        self.asked.append(time)

    def _pair_of(self, left: int, right: int, swapped: int) -> tuple[int, int] | None:
        """The places of the policy's first and second arm, if both are active."""
        first, second = (right, left) if swapped else (left, right)
        places = self.places
        return (places[first], places[second]) if first in places and second in places else None

    def _answer(self, duel: int, answer: int) -> None:
        self._asked_last = None
        self.answer[duel] = answer
        self.open.pop(duel, None)
        self._fresh.pop(duel, None)
        if answer != SKIP:
            self.told.append(duel)
            self._count(duel, answer, 1)

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
        self._asked_last = None
        counted = {duel for duel in duels if self.answer[duel] != SKIP}
        for duel in duels:
            answer, self.answer[duel] = self.answer[duel], becomes
            self.attempt[duel] += 1
            if becomes == OPEN:
                self.open[duel] = self._fresh[duel] = None
            if answer != SKIP:
                self._count(duel, answer, -1)
        if counted:
            self.told = [duel for duel in self.told if duel not in counted]
            self.withdrawn += 0 if blind else sum(self.left[duel] != self.right[duel] for duel in counted)
            self._start_again()

    def _create(self, event: Sequence[Any]) -> None:
        self._add(json.loads(event[10])["arms"])
        self.started_with = len(self.names)

    def _add_arm(self, event: Sequence[Any]) -> None:
        self._add([json.loads(event[10])["arm"]])

    def _add(self, names: list[str]) -> None:
        more = (0, len(names))
        self.names += names
        self.active += [True] * len(names)
        self.wins, self.ties = (np.pad(counts, (more, more)) for counts in (self.wins, self.ties))
        self._start_again()

    def _retire_arm(self, event: Sequence[Any]) -> None:
        self.active[event[4]] = False
        self._start_again()

    def _vote(self, event: Sequence[Any]) -> None:
        self._ask(event[4], event[5], event[6], event[9])
        self._answer(event[2], ANSWERS.index(event[7]))

    def _undo(self, event: Sequence[Any]) -> None:
        self._withdraw([event[2]], OPEN, blind=event[10] is not None)

    def _forget(self, event: Sequence[Any]) -> None:
        duels = json.loads(event[10])["duels"]
        self._withdraw(duels, SKIP)
        self.forgotten.update(duels)

    def _retire(self, event: Sequence[Any]) -> None:
        self.retired = event[1] == "retire"

    def _start_again(self) -> None:
        """The policy's state is folded anew: over other arms, or without some answers."""
        self._player, self._folded = None, 0
        self._asked_last, self._places = None, None

    @property
    def void(self) -> str | None:
        """Why the verdict's promise does not hold, if it does not."""
        count = self.withdrawn
        return f"{count} answer{'s were' if count > 1 else ' was'} taken back" if count else None

    @property
    def tally(self) -> Tally:
        counts = self.wins.copy(), self.ties.copy()
        return Tally(tuple(self.names), *counts, np.array(self.active, bool), self.started_with)

    @property
    def places(self) -> dict[int, int]:
        """The active arms, and the index under which the policy knows each."""
        if self._places is None:
            active = [arm for arm, active in enumerate(self.active) if active]
            self._places = {arm: place for place, arm in enumerate(active)}
        return self._places

    def player(self) -> Player:
        """The policy's state after all answers about active arms."""
        places = self.places
        if self._player is None:
            self._player = Player(self.policy, len(places), self.row.horizon, self.row.seed)
        waiting = self.told[self._folded :]
        if waiting:
            if len(waiting) > MANY:
                self._player.compile()
            try:
                self._player.enter(*self._pairs(waiting, places), self._outcomes(waiting, places))
            except BaseException:
                self._start_again()  # it may have taken in some of them
                raise
            self._folded = len(self.told)
        return self._player

    def _counted(self, duels: Iterable[int], places: dict[int, int]) -> list[int]:
        return [duel for duel in duels if self.left[duel] in places and self.right[duel] in places]

    def _pairs(self, duels: Sequence[int], places: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """The policy's first and second arms of the duels in which both arms are active."""
        if not duels:
            return NONE, NONE
        pairs = [
            (self.right[duel], self.left[duel]) if self.swapped[duel] else (self.left[duel], self.right[duel])
            for duel in self._counted(duels, places)
        ]
        both = np.array([(places[i], places[j]) for i, j in pairs], np.int64).reshape(-1, 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def _outcomes(self, duels: Iterable[int], places: dict[int, int]) -> np.ndarray:
        found = [
            1.0 - OUTCOME[self.answer[duel]] if self.swapped[duel] else OUTCOME[self.answer[duel]]
            for duel in self._counted(duels, places)
        ]
        return np.array(found, np.float64)

    def question(self, now: float, allow_self: bool) -> tuple[int, int, int]:
        """The next duel: the arms on the left and on the right, and whether they are swapped.

        Open duels within their lease count as ties, so that many questions at once spread out.
        """
        places = self.places
        arms = list(places)
        player = self.player()
        last = self._asked_last
        # A scratch copy is gone on from while the same duels are under way; a clock may have been put back.
        if last is not None and len(self.left) == self._asked_number + 1 and self._looked <= now < self._expiry:
            i, j = player.look_further(*last)
            self._awaited += 1
            if self._hoped is not None:
                _tie(self._hoped, *last)
        else:
            waiting = self._under_way(now)
            i, j = player.look_ahead(*self._pairs(waiting, places))
            self._looked, self._expiry = now, min((self.asked[duel] for duel in waiting), default=now) + self.row.lease
            self._awaited, self._hoped = len(waiting), None
        self._expiry = min(self._expiry, now + self.row.lease)
        first, second = arms[i], arms[j]
        if first == second and not allow_self:
            second = arms[self._rival(i, now)]
        self._asked_last, self._asked_number = (i, places[second]), len(self.left)
        swapped = self._side(len(self.left))
        return (second, first, 1) if swapped else (first, second, 0)

    def _under_way(self, now: float) -> list[int]:
        """The open duels within their lease, in the order they were asked. Those past it are not looked at again."""
        if now - self._stale < self.row.lease:  # a clock was put back
            self._fresh, self._stale = dict(self.open), -math.inf
        expired = [duel for duel in self._fresh if now - self.asked[duel] >= self.row.lease]
        for duel in expired:
            del self._fresh[duel]
            self._stale = max(self._stale, self.asked[duel])
        return list(self._fresh)

    def _rival(self, champion: int, now: float) -> int:
        """Whom the champion meets in place of itself; open duels count as ties here too."""
        if self._hoped is None:
            arms = list(self.places)
            self._hoped = (self.wins + 0.5 * self.ties)[np.ix_(arms, arms)]
            for i, j in zip(*self._pairs(self._under_way(now), self.places)):
                _tie(self._hoped, i, j)
        return rival(self._hoped, champion, self.player().t + self._awaited, rival_alpha(self.policy))

    def _side(self, duel: int) -> int:
        """A fair coin for each duel, the same at every replay."""
        return hashlib.blake2b(f"{self.row.seed}/{duel}".encode(), digest_size=1).digest()[0] & 1

    def snapshot(self) -> bytes:
        """All of it, to be read back at once."""
        player = self.player()
        saved = player.saved()
        plain = {
            "seq": self.seq,
            "digest": self.digest,
            "names": self.names,
            "started_with": self.started_with,
            "withdrawn": self.withdrawn,
            "retired": self.retired,
            "open": list(self.open),
            "forgotten": sorted(self.forgotten),
            "t": saved["t"],
            "coin": saved["coin"],
            "code": loop.code_of(self.policy),
        }
        file = io.BytesIO()
        np.savez(
            file,
            plain=np.frombuffer(json.dumps(plain).encode(), np.uint8),
            active=np.array(self.active, bool),
            left=np.array(self.left, np.int32),
            right=np.array(self.right, np.int32),
            swapped=np.array(self.swapped, np.int8),
            answer=np.array(self.answer, np.int8),
            attempt=np.array(self.attempt, np.int32),
            asked=np.array(self.asked, np.float64),
            told=np.array(self.told, np.int64),
            wins=self.wins,
            ties=self.ties,
            **saved["arrays"],
        )
        return file.getvalue()

    def restore(self, content: bytes) -> None:
        """Go on from a snapshot."""
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        plain = json.loads(arrays.pop("plain").tobytes())
        self.seq, self.digest = plain["seq"], plain["digest"]
        self.names, self.started_with, self.withdrawn = plain["names"], plain["started_with"], plain["withdrawn"]
        for name in ("active", "left", "right", "swapped", "answer", "attempt", "asked", "told"):
            setattr(self, name, arrays.pop(name).tolist())
        self.wins, self.ties = arrays.pop("wins"), arrays.pop("ties")
        self.open = dict.fromkeys(plain["open"])
        self._fresh, self._stale = dict(self.open), -math.inf
        self.forgotten = set(plain["forgotten"])
        self.retired = plain.get("retired", False)
        self._start_again()
        try:
            code = loop.code_of(self.policy)
        except DuelsError:  # it is not to be had; whoever needs it will hear
            return
        if plain["code"] == code:  # else the answers are folded anew, by the code of today
            self._player = Player(self.policy, sum(self.active), self.row.horizon, self.row.seed)
            self._player.restore({"t": plain["t"], "coin": plain["coin"], "arrays": arrays})
            self._folded = len(self.told)


_KINDS = {
    "create": History._create,
    "add_arm": History._add_arm,
    "retire_arm": History._retire_arm,
    "retire": History._retire,
    "resume": History._retire,
    "vote": History._vote,
    "undo": History._undo,
    "forget": History._forget,
}


def _tie(wins: np.ndarray, i: int, j: int) -> None:
    wins[i, j] += 0.5
    wins[j, i] += 0.5


def chained(before: str, event: Sequence[Any]) -> str:
    """The digest of an event and, through the one before it, of the whole log so far; names of voters do not count."""
    seq, kind, duel, attempt, left, right, swapped, answer, _, time, note, _ = event
    text = f"{before}|{seq}|{kind}|{duel}|{attempt}|{left}|{right}|{swapped}|{answer}|{time!r}|{note}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def made(history: History, kind: str, now: float, **fields: Any) -> Event:
    """The next event of a history, with its digest."""
    values = [fields.pop(name, None) for name in EVENT_FIELDS]
    values[7] = now
    event = (history.seq + 1, kind, *values, "")
    return Event._make((*event[:-1], chained(history.digest, event)))
