"""A study's state: what happened in it, and what its policy makes of that.

The same log gives the same history, the same policy state and the same next question, on every machine.
"""

import hashlib
import io
import json
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..engine import loop
from ..errors import DuelsError
from ..policies import Policy
from ..policies import policy as find_policy
from ..storage.batches import Batch
from ..storage.storage import StudyRow
from .player import Player, rival, rival_alpha
from .record import COLUMNS, OPEN, Record

OUTCOME = np.array([1.0, 0.0, 0.5, 0.5])  # of the arm on the left, by answer
NONE = np.zeros(0, np.int64)
LARGE = 2**25  # bytes of a policy's state that is not worth keeping in a snapshot
SMALL = 32  # arms with which nobody notices that a policy is not compiled yet
FEW = 256  # answers that the policy's state takes in while others wait


class Catching(NamedTuple):
    """A policy's state that is out to take in answers, and these."""

    player: Player
    first: np.ndarray  # (n,) int64: the policy's first arms
    second: np.ndarray  # (n,) int64
    outcomes: np.ndarray  # (n,) float64: of the first arms
    upto: int  # how many answers of the history it then knows
    start: int  # how often the history had started again


class History(Record):
    """A record, the policy's state after its answers, and the next question."""

    def __init__(self, row: StudyRow, policy: Policy | None = None) -> None:
        super().__init__(row)
        self._policy = policy
        self.compiles = False  # whether a policy on many arms is compiled before it is first asked
        self._player: Player | None = None
        self._folded = 0  # how many of `told` the player knows
        self._starts = 0  # how often the player had to begin again
        self._lent = False  # whether the player is out to take in answers
        self._asked_last: tuple[int, int] | None = None  # places of the pair that the player's scratch copy awaits …
        self._asked_number = 0  # … and the number of that duel
        self._looked = 0.0  # when the scratch copy was made
        self._expiry = 0.0  # when the first lease of those in the scratch copy ends
        self._awaited = 0  # how many duels the scratch copy takes for ties …
        self._hoped: np.ndarray | None = None  # … and the wins with them, if a rival was looked for
        self._fresh: dict[int, None] = {}  # the open duels but for those that were seen to be past their lease
        self._stale = -math.inf  # the latest time at which one of those was asked
        self._places: dict[int, int] | None = None
        self._place: np.ndarray | None = None  # (K,) int64: the same, −1 for a retired arm

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

    def _ask(self, left: int, right: int, swapped: int, time: float) -> None:
        if self._asked_last is not None and self._pair_of(left, right, swapped) != self._asked_last:
            self._asked_last = None  # another process asked something else
        self._fresh[len(self.left)] = None
        super()._ask(left, right, swapped, time)

    def _pair_of(self, left: int, right: int, swapped: int) -> tuple[int, int] | None:
        """The places of the policy's first and second arm, if both are active."""
        first, second = (right, left) if swapped else (left, right)
        places = self.places
        return (places[first], places[second]) if first in places and second in places else None

    def _answer(self, duel: int, answer: int) -> None:
        self._asked_last = None
        self._fresh.pop(duel, None)
        super()._answer(duel, answer)

    def _import(self, batch: Batch, time: float) -> None:
        self._asked_last = None
        super()._import(batch, time)

    def _withdraw(self, duels: Sequence[int], becomes: int, blind: bool = False) -> None:
        self._asked_last = None
        if becomes == OPEN:
            self._fresh |= dict.fromkeys(duels)
        super()._withdraw(duels, becomes, blind)

    def _start_again(self) -> None:
        """The policy's state is computed from the beginning: over other arms, or without some answers."""
        self._player, self._folded = None, 0
        self._starts += 1
        self._asked_last, self._places, self._place = None, None, None

    @property
    def places(self) -> dict[int, int]:
        """The active arms, and the index under which the policy knows each."""
        if self._places is None:
            active = [arm for arm, active in enumerate(self.active) if active]
            self._places = {arm: place for place, arm in enumerate(active)}
        return self._places

    def player(self) -> Player:
        """The policy's state after all answers about active arms, which must be ready."""
        assert self.is_ready
        return self._entered()

    @property
    def is_ready(self) -> bool:
        """Whether the policy's state is up to date, or can be at once."""
        return not self._lent and self._is_quick(self._begun())

    def _entered(self) -> Player:
        player = self._begun()
        self._enter(player, *self._waiting())
        self._folded = len(self.told)
        return player

    def _begun(self) -> Player:
        if self._player is None:
            self._player = Player(self.policy, len(self.places), self.row.horizon, self.row.seed)
        return self._player

    def _is_quick(self, player: Player) -> bool:
        return len(self.told) - self._folded <= FEW and not player.wants_compiling(self._compiles_first(player))

    def _compiles_first(self, player: Player) -> bool:
        return self.compiles and player.arms > SMALL

    @property
    def is_uncompiled(self) -> bool:
        """Whether the next question waits for the compiler."""
        return self._begun().wants_compiling(self._compiles_first(self._begun()))

    def _waiting(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The answers that the policy's state does not have yet."""
        return self._outcomes(self.told[self._folded :]) if len(self.told) > self._folded else (NONE, NONE, NONE)

    def _enter(self, player: Player, first: np.ndarray, second: np.ndarray, outcomes: np.ndarray) -> None:
        if len(first):
            try:
                player.enter(first, second, outcomes)
            except BaseException:
                self._start_again()  # it may have taken in some of them
                raise

    def lend(self) -> Catching | None:
        """The policy's state and what it has to take in, for somebody who does that; None if it is up to date."""
        if self._lent or self._is_quick(self._begun()):
            return None
        self._lent = True
        return Catching(self._begun(), *self._waiting(), len(self.told), self._starts)

    def take_back(self, work: Catching, done: bool) -> None:
        """The policy's state again, after it took in the answers, or else failed."""
        self._lent = False
        if done and work.start == self._starts:
            self._folded = work.upto
        else:
            self._start_again()

    def catch_up(self) -> Player:
        """The policy's state after all answers, however long that takes."""
        work = self.lend()
        if work is not None:
            done = False
            try:
                work.player.catch_up(work.first, work.second, work.outcomes, self._compiles_first(work.player))
                done = True
            finally:
                self.take_back(work, done)
        return self.player()

    def _pairs(self, duels: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the duels in which both arms are active: the policy's first and second arms, and which duels they are."""
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

    def _outcomes(self, duels: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The policy's first and second arms of answered duels, and the outcomes of the first arms."""
        first, second, number = self._pairs(duels)
        if not len(number):
            return NONE, NONE, NONE
        outcome = OUTCOME[np.frombuffer(self.answer, np.int8)[number]]
        swapped = np.frombuffer(self.swapped, np.int8)[number] == 1
        return first, second, np.where(swapped, 1.0 - outcome, outcome)

    def question(self, now: float, allow_self: bool) -> tuple[int, int, int]:
        """The next duel, once `player` is ready: the arms on the left and on the right, and whether they are swapped.

        Open duels within their lease count as ties, so that many questions at once spread out.
        """
        places = self.places
        arms = list(places)
        player = self._entered()
        last = self._asked_last
        # The scratch copy is extended while the same duels are under way; a clock may have been put back.
        if last is not None and len(self.left) == self._asked_number + 1 and self._looked <= now < self._expiry:
            i, j = player.look_further(*last)
            self._awaited += 1
            if self._hoped is not None:
                _tie(self._hoped, *last)
        else:
            waiting = self._under_way(now)
            i, j = player.look_ahead(*self._pairs(waiting)[:2])
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
            for i, j in zip(*self._pairs(self._under_way(now))[:2]):
                _tie(self._hoped, i, j)
        return rival(self._hoped, champion, self._begun().t + self._awaited, rival_alpha(self.policy))

    def _side(self, duel: int) -> int:
        """A fair coin for each duel, the same at every replay."""
        return hashlib.blake2b(f"{self.row.seed}/{duel}".encode(), digest_size=1).digest()[0] & 1

    def snapshot(self) -> Callable[[], bytes]:
        """A copy of all of it; what is returned writes it down, to be read back at once. That may take a while."""
        plain: dict[str, Any] = {
            "seq": self.seq,
            "digest": self.digest,
            "names": self.names.copy(),
            "started_with": self.started_with,
            "withdrawn": self.withdrawn,
            "imported": self.imported,
            "retired": self.retired,
            "open": list(self.open),
            "forgotten": sorted(self.forgotten),
        }
        arrays = {name: np.array(getattr(self, name), kind) for name, kind in COLUMNS.items()}
        arrays |= {"active": np.array(self.active, bool), "wins": self.wins.copy(), "ties": self.ties.copy()}
        player = None if self._lent or self._folded < len(self.told) else self._player
        if player is not None and player.size <= LARGE:
            saved = player.saved()
            plain |= {"t": saved["t"], "coin": saved["coin"], "code": loop.code_of(self.policy)}
            arrays |= {name: array.copy() for name, array in saved["arrays"].items()}

        def written() -> bytes:
            file = io.BytesIO()
            columns: Any = arrays | {"plain": np.frombuffer(json.dumps(plain).encode(), np.uint8)}
            np.savez_compressed(file, **columns)
            return file.getvalue()

        return written

    def restore(self, content: bytes) -> None:
        """Go on from a snapshot."""
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        plain = json.loads(arrays.pop("plain").tobytes())
        self.seq, self.digest = plain["seq"], plain["digest"]
        self.names, self.started_with, self.withdrawn = plain["names"], plain["started_with"], plain["withdrawn"]
        self.active = arrays.pop("active").tolist()
        for name, kind in COLUMNS.items():
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, arrays.pop(name).astype(kind).tobytes()))
        self.wins, self.ties = (arrays.pop(name).astype(np.int32) for name in ("wins", "ties"))
        self.open = dict.fromkeys(plain["open"])
        self._fresh, self._stale = dict(self.open), -math.inf
        self.forgotten = set(plain["forgotten"])
        self.retired = plain.get("retired", False)
        self.imported = plain.get("imported", 0)
        self._start_again()
        try:
            same = "code" in plain and plain["code"] == loop.code_of(self.policy)
        except DuelsError:  # the policy cannot be found; whoever needs it will hear
            return
        if same:  # else the answers are folded again, by the code of today
            self._player = Player(self.policy, sum(self.active), self.row.horizon, self.row.seed)
            self._player.restore({"t": plain["t"], "coin": plain["coin"], "arrays": arrays})
            self._folded = len(self.told)

    @property
    def is_busy(self) -> bool:
        """Whether somebody brings the policy's state up to date."""
        return self._lent

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        columns = sum(getattr(self, name).itemsize for name in COLUMNS)
        player = 0 if self._player is None else self._player.size
        return self.wins.nbytes + self.ties.nbytes + len(self.left) * columns + 100 * len(self.open) + player


def _tie(wins: np.ndarray, i: int, j: int) -> None:
    wins[i, j] += 0.5
    wins[j, i] += 0.5
