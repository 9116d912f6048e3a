"""A study's state: its record, the policy's state after its answers, and the next question.

The same log gives the same record, the same policy state and the same next question on every machine.
"""

import hashlib
import io
import json
import math
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..engine import loop
from ..errors import DuelsError
from ..policies import Policy
from ..policies import policy as find_policy
from ..policies.verdict import DOUBT, LAST, PRIOR, WAITING
from ..storage.batches import Batch
from ..storage.storage import StudyRow
from .certainty import Order, Settled
from .finite import SettledOnItems
from .player import Player, SavedState, rival, rival_alpha
from .record import COLUMNS, OPEN, Record

OUTCOME = np.array([1.0, 0.0, 0.5, 0.5])  # of the arm on the left, by answer
NONE = np.zeros(0, np.int64)
LARGE = 2**25  # bytes: a larger policy state is not saved in snapshots
SMALL = 32  # arms: with fewer, a policy is fast enough without compiling
FEW = 256  # answers that the policy's state may take in while others wait
SAVED_AS = {"answered": "told"}  # columns with another name in snapshots


class CatchUp(NamedTuple):
    """A policy's state that was lent to a thread, and the answers that the thread must add to it."""

    player: Player
    first: np.ndarray  # (n,) int64: the policy's first arms
    second: np.ndarray  # (n,) int64
    outcomes: np.ndarray  # (n,) float64: of the first arms
    upto: int  # how many answers of the study it includes afterwards
    start: int  # how often the history had restarted the policy when it was lent


class History(Record):
    """A record, the policy's state after its answers, and the next question."""

    def __init__(self, row: StudyRow, policy: Policy | None = None) -> None:
        super().__init__(row)
        self._policy = policy
        self.compiles = False  # whether a policy on many arms is compiled before its first question
        self._player: Player | None = None
        self._folded = 0  # how many of `answered` the player includes
        self._starts = 0  # how often the player was restarted
        self._lent = False  # whether the player is lent to a thread, see `lend`
        # The player's scratch copy, in which the open duels ended in ties:
        self._asked_last: tuple[int, int] | None = None  # places of the pair that was asked last …
        self._asked_number = 0  # … and the number of that duel
        self._looked = 0.0  # when the copy was made
        self._expiry = 0.0  # when the first lease of the duels in it ends
        self._awaited = 0  # how many open duels it includes …
        self._with_ties: np.ndarray | None = None  # … the wins with them, if a rival was needed …
        self._unanswered: np.ndarray | None = None  # … and how many each pair has, if a question was replaced
        self._settled: Settled | None = None  # which pairs need no more answers, if that was needed
        self._order: Order | None = None  # which of the others have a certain rank, if that was needed
        self._fresh: dict[int, None] = {}  # the open duels, except those known to be past their lease
        self._stale = -math.inf  # when the latest of those was asked
        self._places: dict[int, int] | None = None
        self._place: np.ndarray | None = None  # (K,) int64: the same, −1 for a retired arm

    @property
    def policy(self) -> Policy:
        """What chooses the duels; loaded when first needed, since results do not need it.

        Raises:
            DuelsError: If it cannot be found.
        """
        if self._policy is None:
            source, parameters = self.row.settings.get("source"), self.row.policy.partition(":")[2]
            self._policy = find_policy(f"{source}:{parameters}" if source and parameters else source or self.row.policy)
        return self._policy

    def use(self, policy: Policy | None) -> None:
        """Set a policy that cannot be found by its name."""
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
        if self._settled is not None and self.left[duel] != self.right[duel]:
            self._settled.update(self.left[duel], self.right[duel], self.wins, self.ties)
        if self._order is not None and self.left[duel] != self.right[duel]:
            self._order.update(self.left[duel], self.right[duel], self.wins)

    def _import(self, batch: Batch, time: float) -> None:
        self._asked_last, self._settled, self._order = None, None, None
        super()._import(batch, time)

    def _withdraw(self, duels: Sequence[int], becomes: int, blind: bool = False) -> None:
        self._asked_last = None
        if becomes == OPEN:
            self._fresh |= dict.fromkeys(duels)
        super()._withdraw(duels, becomes, blind)

    def _start_again(self) -> None:
        """Recompute the policy's state from the first answer: arms changed, or answers were taken back."""
        self._player, self._folded = None, 0
        self._starts += 1
        self._asked_last, self._places, self._place = None, None, None
        self._settled, self._order = None, None

    @property
    def places(self) -> dict[int, int]:
        """The active arms, and the policy's index of each."""
        if self._places is None:
            active = [arm for arm, active in enumerate(self.active) if active]
            self._places = {arm: place for place, arm in enumerate(active)}
        return self._places

    def player(self) -> Player:
        """Return the policy's state after all answers about active arms; `is_ready` must be true."""
        assert self.is_ready
        return self._entered()

    @property
    def is_ready(self) -> bool:
        """Whether the policy's state is up to date, or can be brought up to date quickly."""
        return not self._lent and self._is_quick(self._begun())

    def _entered(self) -> Player:
        player = self._begun()
        self._enter(player, *self._waiting())
        self._folded = len(self.answered)
        return player

    def _begun(self) -> Player:
        if self._player is None:
            self._player = Player(self.policy, len(self.places), self.row.horizon, self.row.seed)
        return self._player

    def _is_quick(self, player: Player) -> bool:
        return len(self.answered) - self._folded <= FEW and not player.wants_compiling(self._compiles_first(player))

    def _compiles_first(self, player: Player) -> bool:
        return self.compiles and player.arms > SMALL

    @property
    def is_uncompiled(self) -> bool:
        """Whether the next question waits for the compiler."""
        return self._begun().wants_compiling(self._compiles_first(self._begun()))

    def _waiting(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The answers that the policy's state does not have yet."""
        missing = self.answered[self._folded :]
        return self._outcomes(missing) if missing else (NONE, NONE, NONE)

    def _enter(self, player: Player, first: np.ndarray, second: np.ndarray, outcomes: np.ndarray) -> None:
        if len(first):
            try:
                player.enter(first, second, outcomes)
            except BaseException:
                self._start_again()  # it may include some of them
                raise

    def lend(self) -> CatchUp | None:
        """Lend the policy's state to a thread that adds the missing answers; None if it is up to date."""
        if self._lent or self._is_quick(self._begun()):
            return None
        self._lent = True
        return CatchUp(self._begun(), *self._waiting(), len(self.answered), self._starts)

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

    def catch_up(self) -> Player:
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

    def _pairs(self, duels: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The policy's first and second arms of those duels in which both are active, and the duels' numbers."""
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
        outcome = np.where(swapped, 1.0 - outcome, outcome)
        if self.goal.ties == "skipped":
            told = (outcome != 0.5) | (first == second)  # a self-duel is no tie: time goes on
            return first[told], second[told], outcome[told]
        return first, second, outcome

    def question(self, now: float, allow_self: bool) -> tuple[int, int, int]:
        """Return the next duel; `is_ready` must be true.

        The policy knows of open duels within their lease, so that many questions at once spread out.

        Args:
            now: The time, in seconds since 1970.
            allow_self: Whether an arm may duel itself.

        Returns:
            The arms on the left and on the right, and 1 if the policy's first arm is on the right.
        """
        places = self.places
        arms = list(places)
        player = self._entered()
        last = self._asked_last
        # The scratch copy is extended while the same duels are open; a clock may have been set back.
        if last is not None and len(self.left) == self._asked_number + 1 and self._looked <= now < self._expiry:
            i, j = player.look_further(*last)
            self._awaited += 1
            if self._with_ties is not None:
                _tie(self._with_ties, *last)
            if self._unanswered is not None:
                _add_duel(self._unanswered, *last)
        else:
            leased = self._leased(now)
            i, j = player.look_ahead(*self._pairs(leased)[:2])
            self._looked, self._expiry = now, min((self.asked[duel] for duel in leased), default=now) + self.row.lease
            self._awaited, self._with_ties, self._unanswered = len(leased), None, None
        self._expiry = min(self._expiry, now + self.row.lease)
        if self.items is not None:
            i, j = self._with_an_item(i, j, now)
        elif not allow_self:
            i, j = self._useful(i, j, now) if self._redirects else (i, j)
            j = self._rival(i, now) if i == j else j
        first, second = arms[i], arms[j]
        self._asked_last, self._asked_number = (i, j), len(self.left)
        swapped = self._side(len(self.left))
        return (second, first, 1) if swapped else (first, second, 0)

    def _leased(self, now: float) -> list[int]:
        """The open duels within their lease, in the order they were asked. Those past it are not looked at again."""
        if now - self._stale < self.row.lease:  # a clock was set back
            self._fresh, self._stale = dict(self.open), -math.inf
        expired = [duel for duel in self._fresh if now - self.asked[duel] >= self.row.lease]
        for duel in expired:
            del self._fresh[duel]
            self._stale = max(self._stale, self.asked[duel])
        return list(self._fresh)

    @property
    def _redirects(self) -> bool:
        """Whether questions that cannot help are replaced: not by a policy that does so itself, on the same arms."""
        same = all(self.active) and len(self.names) == self.started_with
        asks = same and self.goal.after == "stop" and self.policy.asks_for(self.goal.confidence, self.goal.margin)
        return self.goal.redirects and not asks

    def _useful(self, i: int, j: int, now: float, may_meet: np.ndarray | None = None) -> tuple[int, int]:
        """The places of a pair that helps the verdict, as `policies.verdict.helpful`, on the active arms.

        Where only some pairs may meet, the result may still be another one.
        """
        arms, settled = list(self.places), self.settled
        winner = settled.winner(arms) if self.goal.after == "rank" else None
        if winner is not None:
            return self._ranks(i, j, now, winner)
        first, second = arms[i], arms[j]
        open = not (settled[first, second] or settled[second, first])
        if i != j and open and (settled.losses[first] == 0 or settled.losses[second] == 0):
            return i, j
        doubt, *chances = self._chances(len(self.left))
        unanswered = self._unanswered_duels(now)
        hopeful = [place for place, arm in enumerate(arms) if settled.losses[arm] == 0]
        if doubt < DOUBT and settled.losses[first] > 0:
            return i, self._strongest(i, chances[1])
        if doubt < DOUBT and i != j:
            return i, j
        if not hopeful:
            leads = self._leads(arms, arms, unanswered)
            np.fill_diagonal(leads, -np.inf)
            c = _lowest(leads.max(axis=0), chances[0])
            return c, self._strongest(c, chances[1])
        c = next((place for place in (i, j) if place in hopeful), -1)
        c = hopeful[int(chances[0] * len(hopeful))] if c < 0 else c
        leads = self._leads(arms[c : c + 1], arms, unanswered[c])[0]
        leads += np.where(settled.losses[arms] > 0, LAST, 0.0)
        if chances[2] < DOUBT:
            won, lost, half = self.wins[arms[c], arms], self.wins[arms, arms[c]], 0.5 * unanswered[c]
            draws = np.random.default_rng([self.row.seed, len(self.left)])
            leads = draws.beta(won + (1 + WAITING) * half + PRIOR / 2, lost + (1 - WAITING) * half + PRIOR / 2)
        leads[settled.with_others(arms[c])[arms]], leads[c] = np.inf, np.inf
        if may_meet is not None:
            leads[~may_meet[c]] = np.inf
        d = _lowest(leads, chances[1])
        return (c, d) if leads[d] < np.inf else (i, j)

    def _ranks(self, i: int, j: int, now: float, winner: int) -> tuple[int, int]:
        """As `_useful`, where the winner is known and the order of the others is to be found.

        Arms with a certain rank are out. Of the others, each with its wins among them, Thompson sampling proposes one
        without a certain loss to them.
        """
        arms = list(self.places)
        beats, rest = self.order.beats, self.order.rest([arm for arm in arms if arm != winner])
        chance = self._chances(len(self.left))[0]
        if len(rest) < 2 or (i != j and chance < DOUBT):
            return i, j
        if i != j and {arms[i], arms[j]} <= set(rest) and not (beats[arms[i], arms[j]] or beats[arms[j], arms[i]]):
            return i, j
        among = np.ix_(rest, rest)
        lost = beats[among].any(axis=0)
        wins = self.wins[among]
        luck = np.random.default_rng(int(chance * 2**32))
        strength = luck.beta(1 + wins.sum(axis=1), 1 + wins.sum(axis=0))
        champion = rest[int(np.where(lost & ~lost.all(), -1.0, strength).argmax())]
        done = np.isin(arms, rest, invert=True) | beats[champion, arms] | beats[arms, champion]
        c = self.places[champion]
        d = self._weakest_lead(c, done, now)
        return (i, j) if d is None else (c, d)

    def _weakest_lead(self, c: int, done: np.ndarray, now: float) -> int | None:
        """The place of the arm whose defeat by c is furthest from certain, except for those that are done."""
        lead = self._leads([list(self.places)[c]], list(self.places), self._unanswered_duels(now)[c])[0]
        lead[done], lead[c] = np.inf, np.inf
        d = int(lead.argmin())
        return d if lead[d] < np.inf else None

    def _strongest(self, c: int, chance: float) -> int:
        """The place of the arm with the largest lead over the one at c; a chance decides between equals."""
        assert self._unanswered is not None
        arms = list(self.places)
        leads = -self._leads(arms, arms[c : c + 1], self._unanswered[:, c : c + 1])[:, 0]
        leads[c] = np.inf
        return _lowest(leads, chance)

    def _leads(self, first: list[int], second: list[int], waiting: np.ndarray) -> np.ndarray:
        """How far the first arms are ahead of the second ones, see `policies.verdict.lead`."""
        won, lost = self.wins[np.ix_(first, second)], self.wins[np.ix_(second, first)].T
        leads: np.ndarray = (won - lost + WAITING * waiting) / np.sqrt(won + lost + waiting + PRIOR)
        return leads

    def _unanswered_duels(self, now: float) -> np.ndarray:
        """(K, K) float64: how many open duels each pair of active arms has."""
        if self._unanswered is None:
            self._unanswered = np.zeros((len(self.places), len(self.places)))
            for pair in zip(*self._pairs(self._leased(now))[:2]):
                _add_duel(self._unanswered, *pair)
        return self._unanswered

    def _with_an_item(self, i: int, j: int, now: float) -> tuple[int, int]:
        """As `_useful`, in a study on these items: a pair that has an item left.

        If the pair of `_useful` has none, it is the weakest lead of an arm without a certain loss, else of a pair that
        is not settled, else of any.
        """
        may_meet, arms = self._pairs_with_items(now), list(self.places)
        i, j = self._useful(i, j, now, may_meet)
        if may_meet[i, j]:
            return i, j
        lead = self._leads(arms, arms, self._unanswered_duels(now))
        done = np.array([self.settled.with_others(arm)[arms] for arm in arms])
        undefeated = self.settled.losses[arms] == 0
        for wanted in (undefeated[:, None] & ~done, ~done & ~done.T, ~np.eye(len(arms), dtype=bool)):
            if (wanted & may_meet).any():
                break
        i, j = divmod(int(np.where(wanted & may_meet, lead, np.inf).argmin()), len(arms))
        return i, j

    def _pairs_with_items(self, now: float) -> np.ndarray:
        """(K, K) bool: which active arms can be asked about an item now."""
        assert self.items is not None
        places = self.places
        found = ~np.eye(len(places), dtype=bool)
        for pair in self.items.used_up(partial(self._is_free, now=now)):
            i, j = (places.get(arm) for arm in pair)
            if i is not None and j is not None:
                found[i, j] = found[j, i] = False
        return found

    def _is_free(self, duel: int, now: float) -> bool:
        """Whether what a duel asked may be asked again: nobody is expected to answer it."""
        return self.answer[duel] != OPEN or now - self.asked[duel] >= self.row.lease

    def can_ask(self, now: float) -> bool:
        """Return whether there is a question: in a study on these items, all may have been asked."""
        return self.items is None or bool(self._pairs_with_items(now).any())

    def next_item(self, left: int, right: int, now: float) -> int | None:
        """Return the item of the next duel, if it is of these arms, in a study on these items; else None."""
        return None if self.items is None else self.items.next(left, right, partial(self._is_free, now=now))

    @property
    def order(self) -> Order:
        """Which arms below the winner have a certain rank."""
        if self._order is None:
            self._order = Order(self.tally, self.goal.confidence)
        return self._order

    @property
    def settled(self) -> Settled:
        """Which pairs need no more answers for the verdict."""
        if self._settled is None:
            kind = SettledOnItems if self.goal.on_these_items else Settled
            self._settled = kind(self.tally, self.goal.confidence, self.goal.margin)
        return self._settled

    def _rival(self, champion: int, now: float) -> int:
        """The arm that the champion meets instead of itself; open duels count as ties here too."""
        if self._with_ties is None:
            arms = list(self.places)
            self._with_ties = (self.wins + 0.5 * self.ties)[np.ix_(arms, arms)]
            for i, j in zip(*self._pairs(self._leased(now))[:2]):
                _tie(self._with_ties, i, j)
        return rival(self._with_ties, champion, self._begun().t + self._awaited, rival_alpha(self.policy))

    def _side(self, duel: int) -> int:
        """A fair coin toss for each duel, the same in every replay."""
        return hashlib.blake2b(f"{self.row.seed}/{duel}".encode(), digest_size=1).digest()[0] & 1

    def _chances(self, duel: int) -> list[float]:
        """Four random numbers from 0 to 1 for each duel, the same in every replay."""
        digest = hashlib.blake2b(f"{self.row.seed}/{duel}/useful".encode(), digest_size=16).digest()
        return [int.from_bytes(digest[k : k + 4], "big") / 2**32 for k in (0, 4, 8, 12)]

    def snapshot(self) -> Callable[[], bytes]:
        """Copy the whole state.

        Returns:
            A function that serialises the copy, which may take a while; it needs no lock.
        """
        plain: dict[str, object] = {
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
        arrays = {SAVED_AS.get(name, name): np.array(getattr(self, name), kind) for name, kind in COLUMNS.items()}
        arrays |= {"active": np.array(self.active, bool), "wins": self.wins.copy(), "ties": self.ties.copy()}
        if self.items is not None:
            plain |= {"items": [self.items.first, self.items.last], "closed": sorted(self.items.closed)}
            arrays["item"] = np.array(self.items.of, np.int32)
        player = None if self._lent or self._folded < len(self.answered) else self._player
        if player is not None and player.size <= LARGE:
            saved = player.saved()
            plain |= {"t": saved.t, "coin": saved.coin, "code": loop.code_of(self.policy)}
            arrays |= {name: array.copy() for name, array in saved.arrays.items()}
        return partial(_serialised, plain, arrays)

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
            saved = arrays.pop(SAVED_AS.get(name, name))
            setattr(self, name, array(column.typecode, saved.astype(kind).tobytes()))
        self.wins, self.ties = (arrays.pop(name).astype(np.int32) for name in ("wins", "ties"))
        self.open = dict.fromkeys(plain["open"])
        self._fresh, self._stale = dict(self.open), -math.inf
        self.forgotten = set(plain["forgotten"])
        self.retired = plain.get("retired", False)
        self.imported = plain.get("imported", 0)
        if self.items is not None:
            self.items.fix(*plain["items"])
            self.items.closed = set(plain.get("closed", ()))
            self.items.of = array("i", arrays.pop("item").astype(np.int32).tobytes())
            self.items.again(self.left, self.right, self.answered)
        self._start_again()
        try:
            same = "code" in plain and plain["code"] == loop.code_of(self.policy)
        except DuelsError:  # the policy is unavailable; callers that need it will raise
            return
        if same:  # else the policy's state is recomputed from the answers by its present code
            self._player = Player(self.policy, sum(self.active), self.row.horizon, self.row.seed)
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
        return self.wins.nbytes + self.ties.nbytes + len(self.left) * columns + 100 * len(self.open) + player


def _serialised(plain: dict[str, object], arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    columns: dict[str, Any] = arrays | {"plain": np.frombuffer(json.dumps(plain).encode(), np.uint8)}
    np.savez_compressed(file, **columns)
    return file.getvalue()


def _lowest(values: np.ndarray, chance: float) -> int:
    """The place of the lowest value; a random number from 0 to 1 decides between equals."""
    places = np.flatnonzero(values == values.min())
    return int(places[int(chance * len(places))])


def _add_duel(counts: np.ndarray, i: int, j: int) -> None:
    counts[i, j] += 1.0
    counts[j, i] += 1.0


def _tie(wins: np.ndarray, i: int, j: int) -> None:
    wins[i, j] += 0.5
    wins[j, i] += 0.5
