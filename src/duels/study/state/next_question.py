"""Which question comes next: the pair that the policy chose, or one that helps the verdict more.

`LiveState` follows the log and asks the policy. What is decided here is computed from counts and its seed, so that
every replay asks the same.
"""

import hashlib
import math
import weakref
from functools import partial

import numpy as np

from ...policies import Policy
from ...policies.verdict import DOUBT, LAST, beta_of, lead_of
from ..stats.about import INDEPENDENT
from ..stats.certainty import CertaintyState, CertaintyTest
from ..stats.evidence import on_arrays
from ..stats.exhausted import possible_winners
from .counts import NONE, OPEN, StudyCounts
from .item_schedule import Pair, Place, pair_of
from .look import count_left
from .people import NOBODY
from .policy_state import rival_alpha

_lead_of = on_arrays(lead_of)

SHARED_AFTER = 60.0  # seconds after which a question that nobody has answered may be asked of somebody else too


class NextQuestion:
    """The rules that replace a policy's pair, on the counts of a record.

    Pairs are places among the active arms, the indices that the policy uses.
    """

    def __init__(self, record: StudyCounts) -> None:
        self._record: StudyCounts = weakref.proxy(record)  # a history owns its questions: no cycle of references
        self._settled: CertaintyState | None = None  # which pairs need no more answers, if that was needed
        self._order: CertaintyState | None = None  # which of the others have a certain rank, if that was needed
        self._may_redirect: bool | None = None  # whether questions that cannot help are replaced, if that was needed
        # Of the open duels that the policy knows of:
        self._awaited = 0  # how many there are …
        self._open = NONE, NONE  # … the pairs of active arms among them …
        self._further: list[tuple[int, int]] = []  # … those that came later …
        self._unanswered: np.ndarray | None = None  # … and how many each pair has, if a question was replaced

    def take_answer(self, left: int, right: int) -> None:
        """Take in an answer that the record already counts."""
        if left == right:
            return
        if self._settled is not None:
            self._settled.update(left, right, self._record.wins, self._record.ties)
        if self._order is not None:
            self._order.update(left, right, self._record.wins, self._record.ties)

    def start_again(self) -> None:
        """Forget what was computed from all answers."""
        self._settled, self._order, self._may_redirect = None, None, None

    def look_ahead(self, open_duels: int, first: np.ndarray, second: np.ndarray) -> None:
        """Take in how many duels are open, and the places of their arms where both are active."""
        self._awaited, self._open, self._further, self._unanswered = open_duels, (first, second), [], None

    def look_further(self, i: int, j: int) -> None:
        """Take in one more open duel, of the arms in these places."""
        self._awaited += 1
        if self._unanswered is None:
            self._further.append((i, j))
        else:
            self._unanswered[i, j] += 1.0
            self._unanswered[j, i] += 1.0

    def choose(
        self,
        i: int,
        j: int,
        now: float,
        allow_self: bool,
        policy: Policy,
        t: int,
        person: int = NOBODY,
        shared: bool = False,
    ) -> tuple[int, int]:
        """Return the places of the next pair.

        Args:
            i: The place of the policy's first arm.
            j: The place of its second arm.
            now: The time, in seconds since 1970.
            allow_self: Whether an arm may duel itself.
            policy: What chose them.
            t: The policy's time step, without open duels.
            person: Who is asked, if that is known.
            shared: Whether somebody else may be asked what is open, see `can_ask`.
        """
        if self._has_items:
            return self._with_an_item(i, j, now, person, shared)
        if allow_self:
            return i, j
        i, j = self._useful(i, j) if self._redirects(policy) else (i, j)
        return i, self._rival(i, policy, t) if i == j else j

    def choose_for(self, person: int, now: float, shared: bool = False) -> tuple[int, int]:
        """Return the places of the next pair for a person whose own answers the record leaves out.

        As the policy `verdict`: two arms proposed by Thompson sampling on their wins, or a pair that helps more.
        """
        arms = self._record.arms
        wins = self._record.wins[np.ix_(arms, arms)]
        luck = np.random.default_rng([self._record.row.seed, len(self._record.left), 1])
        draws = luck.beta(1 + wins.sum(axis=1), 1 + wins.sum(axis=0), (2, len(arms)))
        i, j = map(int, draws.argmax(axis=1))
        if self._has_items:
            return self._with_an_item(i, j, now, person, shared)
        i, j = self._useful(i, j)
        if i == j:
            leads = self._leads(arms[i], arms, self._count_unanswered()[i])
            leads[i] = np.inf
            j = int(leads.argmin())
        return i, j

    @property
    def _has_items(self) -> bool:
        return self._record.items is not None and self._record.items.size > 0

    def _redirects(self, policy: Policy) -> bool:
        """Whether questions that cannot help are replaced: not by a policy that does so itself, on the same arms."""
        if self._may_redirect is None:
            record, goal = self._record, self._record.goal
            same = all(record.active) and len(record.names) == record.started_with and not record.is_sampled
            same = same and record.strength == INDEPENDENT
            self._may_redirect = not (same and goal.after == "stop" and policy.asks_for(goal.confidence, goal.margin))
        return self._may_redirect

    def _useful(self, i: int, j: int, may_meet: np.ndarray | None = None) -> tuple[int, int]:
        """The places of a pair that helps the verdict, as `policies.verdict.helpful`, on the active arms.

        The kernel looks at all pairs one by one, which takes too long here with many arms, and draws from its coin as
        it goes; here each choice has a random number of its own, so that every replay asks the same. Where only some
        pairs may meet, the result may still be another one.
        """
        record, arms, settled = self._record, self._record.arms, self.settled
        winner = settled.winner(arms.tolist()) if record.goal.after == "rank" else None
        if winner is not None:
            return self._ranks(i, j, winner)
        first, second = int(arms[i]), int(arms[j])
        may_help = i != j and not (settled.needs_no_more(first, second) or settled.needs_no_more(second, first))
        if may_help and (settled.losses[first] == 0 or settled.losses[second] == 0):
            return i, j
        doubt, *chances = self._chances()
        lost = settled.losses[arms] > 0
        hopeful = np.flatnonzero(~lost)
        if doubt < DOUBT and lost[i]:
            return i, self._strongest(i, chances[1])
        if doubt < DOUBT and i != j:
            return i, j
        if not len(hopeful):
            leads = self._leads(arms[:, None], arms, self._count_unanswered())
            np.fill_diagonal(leads, -np.inf)
            c = _lowest(leads.max(axis=0), chances[0])
            return c, self._strongest(c, chances[1])
        c = next((place for place in (i, j) if not lost[place]), -1)
        c = int(hopeful[int(chances[0] * len(hopeful))]) if c < 0 else c
        done = settled.with_others(int(arms[c]))[arms]
        done[c] = True
        if may_meet is not None:
            done |= ~may_meet[c]
        if done.all():
            return i, j
        open = self._count_unanswered()[c]
        if chances[2] < DOUBT:
            draws = np.random.default_rng([record.row.seed, len(record.left)])
            leads = np.asarray(draws.beta(*beta_of(record.wins[arms[c], arms], record.wins[arms, arms[c]], open)))
        else:
            leads = self._leads(arms[c], arms, open)
            leads[lost] += LAST
        leads[done] = np.inf
        return c, _lowest(leads, chances[1])

    def _ranks(self, i: int, j: int, winner: int) -> tuple[int, int]:
        """As `_useful`, where the winner is known and the order of the others is to be found.

        Arms with a certain rank are out. Of the others, each with its wins among them, Thompson sampling proposes one
        without a certain loss to them.
        """
        arms = list(self._record.places)
        beats, rest = self.order.beats, self.order.find_unranked([arm for arm in arms if arm != winner])
        chance = self._chances()[0]
        if len(rest) < 2 or (i != j and chance < DOUBT):
            return i, j
        if i != j and {arms[i], arms[j]} <= set(rest) and not (beats[arms[i], arms[j]] or beats[arms[j], arms[i]]):
            return i, j
        among = np.ix_(rest, rest)
        lost = beats[among].any(axis=0)
        wins = self._record.wins[among]
        luck = np.random.default_rng(int(chance * 2**32))
        strength = luck.beta(1 + wins.sum(axis=1), 1 + wins.sum(axis=0))
        champion = rest[int(np.where(lost & ~lost.all(), -1.0, strength).argmax())]
        done = np.isin(arms, rest, invert=True) | beats[champion, arms] | beats[arms, champion]
        c = self._record.places[champion]
        leads = self._leads(champion, self._record.arms, self._count_unanswered()[c])
        leads[done], leads[c] = np.inf, np.inf
        d = int(leads.argmin())
        return (c, d) if leads[d] < np.inf else (i, j)

    def _strongest(self, c: int, chance: float) -> int:
        """The place of the arm with the largest lead over the one at c; a chance decides between equals."""
        arms = self._record.arms
        leads = -self._leads(arms, arms[c], self._count_unanswered()[:, c])
        leads[c] = np.inf
        return _lowest(leads, chance)

    def _leads(self, first: np.ndarray | int, second: np.ndarray | int, waiting: np.ndarray) -> np.ndarray:
        """How far the first arms are ahead of the second ones, see `policies.verdict.lead`; either may be one arm."""
        return _lead_of(self._record.wins[first, second], self._record.wins[second, first], waiting)

    def _count_unanswered(self) -> np.ndarray:
        """(K, K) float64: how many open duels each pair of active arms has."""
        if self._unanswered is None:
            self._unanswered = np.zeros((len(self._record.arms), len(self._record.arms)))
            later = np.array(self._further, np.int64).reshape(-1, 2).T
            first, second = (np.concatenate(pair) for pair in zip(self._open, later))
            np.add.at(self._unanswered, (first, second), 1.0)
            np.add.at(self._unanswered, (second, first), 1.0)
        return self._unanswered

    def _with_an_item(self, i: int, j: int, now: float, person: int, shared: bool) -> tuple[int, int]:
        """As `_useful`, in a study with items: a pair that has an item left, for this person if one is known.

        If the pair of `_useful` has none, it is the weakest lead of an arm without a certain loss, else of a pair that
        is not settled, else of any.
        """
        may_meet = self._pairs_with_items(now, person, shared)
        may_help = may_meet & self._pairs_that_help()
        may_meet = may_help if may_help.any() else may_meet
        i, j = self._useful(i, j, may_meet)
        return (i, j) if may_meet[i, j] else self.pair_among(may_meet)

    def _pairs_that_help(self) -> np.ndarray:
        """(K, K) bool: which pairs have an arm that can still win, if the items that are left limit the answers."""
        record = self._record
        every = np.ones((len(record.arms), len(record.arms)), bool)
        left = count_left(record)
        if left is None:
            return every
        tally = record.tally
        hopeful = possible_winners(tally, CertaintyTest(tally, record.goal.confidence), left)[record.arms]
        return np.asarray(hopeful[:, None] | hopeful) if hopeful.any() else every

    def pair_among(self, may_meet: np.ndarray) -> tuple[int, int]:
        """Return the places of the pair, of those that may meet, that helps the verdict most.

        Args:
            may_meet: (K, K) bool: Which active arms may meet; some must.
        """
        arms = self._record.arms
        lead = self._leads(arms[:, None], arms, self._count_unanswered())
        done = np.array([self.settled.with_others(arm)[arms] for arm in arms.tolist()])
        undefeated = self.settled.losses[arms] == 0
        for wanted in (undefeated[:, None] & ~done, ~done & ~done.T, ~np.eye(len(arms), dtype=bool)):
            if (wanted & may_meet).any():
                break
        i, j = divmod(int(np.where(wanted & may_meet, lead, np.inf).argmin()), len(arms))
        return i, j

    def _pairs_with_items(self, now: float, person: int, shared: bool = False) -> np.ndarray:
        """(K, K) bool: which active arms can be asked about an item now."""
        items, places = self._record.items, self._record.places
        assert items is not None
        found = ~np.eye(len(places), dtype=bool)
        for arm, place in places.items():
            if arm not in items.ready:  # outputs are missing
                found[place], found[:, place] = False, False
        is_free = partial(self._is_free, now=now, person=person, shared=shared)
        used_up = set(items.list_used_up(is_free)) | self._find_seen_up(person)
        for pair in used_up:
            i, j = (places.get(arm) for arm in pair)
            if i is not None and j is not None:
                found[i, j] = found[j, i] = False
        return found

    def _find_seen_up(self, person: int) -> set[Pair]:
        """The pairs about which a person was asked on every item."""
        items = self._record.items
        seen = self._record.items_seen(person)
        return {pair for pair, some in seen.items() if items is not None and some.issuperset(items.items)}

    def _is_free(self, duel: int, now: float, person: int, shared: bool) -> bool:
        """Whether what a duel asked may be asked again: nobody is expected to answer it, or not soon."""
        record = self._record
        if record.answer[duel] != OPEN:
            return True
        is_others = shared and record.person[duel] != person
        return abs(now - record.asked[duel]) >= (min(SHARED_AFTER, record.row.lease) if is_others else record.row.lease)

    def can_ask(self, now: float, person: int, shared: bool = False) -> bool:
        """Return whether there is a question: all may have been asked, of everybody or of this person.

        Args:
            now: The time, in seconds since 1970.
            person: Who is asked, if that is known.
            shared: Whether it may be one that somebody else was asked `SHARED_AFTER` seconds ago, and has not answered.
        """
        return not self._has_items or bool(self._pairs_with_items(now, person, shared).any())

    @property
    def has_outputs(self) -> bool:
        """Whether two active arms have outputs for all items; true in a study without items."""
        items = self._record.items
        return not self._has_items or items is None or len(items.ready & self._record.places.keys()) > 1

    def next_place(self, left: int, right: int, now: float, person: int, shared: bool = False) -> Place | None:
        """Return the item of the next duel and its place, if it is of these arms; None in a study without items."""
        if not self._has_items or self._record.items is None:
            return None
        seen = self._record.items_seen(person).get(pair_of(left, right), set())
        is_free = partial(self._is_free, now=now, person=person, shared=shared)
        return self._record.items.next(left, right, is_free, seen)

    @property
    def order(self) -> CertaintyState:
        """Which arms below the winner have a certain rank."""
        if self._order is None:
            self._order = CertaintyState(CertaintyTest.of_tables(self._record.tally, self._record.goal.confidence))
        return self._order

    @property
    def settled(self) -> CertaintyState:
        """Which pairs need no more answers for the verdict."""
        if self._settled is None:
            goal = self._record.goal
            self._settled = CertaintyState(CertaintyTest(self._record.tally, goal.confidence), goal.margin)
        return self._settled

    def _rival(self, champion: int, policy: Policy, t: int) -> int:
        """The arm that the champion meets instead of itself; open duels count as ties here too."""
        record, arms = self._record, self._record.arms
        one = arms[champion]
        ties = record.ties[one, arms] + self._count_unanswered()[champion]
        return rival_of(
            record.wins[arms, one] + 0.5 * ties,
            record.wins[one, arms] + 0.5 * ties,
            champion,
            t + self._awaited,
            rival_alpha(policy),
        )

    def side(self) -> int:
        """Return a fair coin toss for the next duel, the same in every replay: 1 if the first arm is on the right."""
        return self._digest("", 1)[0] & 1

    def _chances(self) -> list[float]:
        """Four random numbers from 0 to 1 for the next duel, the same in every replay."""
        digest = self._digest("/useful", 16)
        return [int.from_bytes(digest[k : k + 4], "big") / 2**32 for k in (0, 4, 8, 12)]

    def _digest(self, purpose: str, size: int) -> bytes:
        text = f"{self._record.row.seed}/{len(self._record.left)}{purpose}"
        return hashlib.blake2b(text.encode(), digest_size=size).digest()


def _lowest(values: np.ndarray, chance: float) -> int:
    """The place of the lowest value; a random number from 0 to 1 decides between equals."""
    places = np.flatnonzero(values == values.min())
    return int(places[int(chance * len(places))])


def rival_of(won: np.ndarray, lost: np.ndarray, champion: int, t: int, alpha: float) -> int:
    """As the kernel `rival`, by what each arm won and lost against the champion."""
    met = won + lost
    n = np.maximum(met, 0.5)
    upper = np.where(met > 0, won / n + np.sqrt(alpha * math.log(t) / n), 2.0)
    upper[champion] = -1.0
    return int(upper.argmax())
