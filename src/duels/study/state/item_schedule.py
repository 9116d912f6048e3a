"""Which item a question is about: the order of each pair, fixed by the study's seed before any answer.

On new items and on these answers, a pair goes through the items once, in a random order of its own. On these items, it
has an endless sequence of them, drawn uniformly and with replacement. Either way the pair is chosen before the item is
looked at, and no answer changes which item comes next. A place in a sequence whose question was skipped or expired, or
that a voter passed over, stays open for others.

When nothing else is left, somebody else may be asked the question at a place while it is open. Of the answers within
their leases, the one counts that was asked for first, not the one that came first: who is fast may prefer another arm.
"""

import hashlib
from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from ..stats.about import THESE_ITEMS

Pair = tuple[int, int]  # of arms, the smaller index first
Place = tuple[int, int]  # in a sequence: its number, or on once-only orders the item; and the item
Items = tuple[int, ...]
MOST_TRIES = 3  # times that the question at a place of an endless sequence is asked, if it is skipped or expires
MOST_PASSED = 100_000  # places that one question may pass over: more means that a voter has seen nearly everything


class ItemSet(NamedTuple):
    """The items that questions may be about, and the arms that have outputs for all of them."""

    items: Items  # numbers, ascending
    ready: frozenset[int]  # arms

    def as_note(self) -> dict[str, Any]:
        """Return it as an event's note has it: spans of numbers, and arms."""
        return {"items": _spans(self.items), "ready": sorted(self.ready)}


def item_set_of(note: Mapping[str, Any]) -> ItemSet:
    """Return the items that an event's note has."""
    numbers = tuple(number for first, last in note["items"] for number in range(first, last + 1))
    return ItemSet(numbers, frozenset(note["ready"]))


class ItemSchedule:
    """The items of a study, which of them its pairs were asked about, and which answers count.

    Attributes:
        items: The items that questions are drawn from; empty before the first question.
        ready: The arms that have outputs for all of them. Others are not asked about yet.
        was_extended: Whether items were added after the first question.
        was_reduced: Whether items were removed after the first question.
        of: The item of each duel; 0 if it has none.
        closed: Duels without an answer whose question is not asked again.
    """

    def __init__(self, seed: int, about: str) -> None:
        self._seed, self._repeats = seed, about == THESE_ITEMS
        self.sets: list[tuple[int, ItemSet]] = []  # how many duels there were when the items became these
        self.closed: set[int] = set()
        self.of = array("i")
        self.place = array("i")  # of each duel; see `Place`
        self._clear()

    def _clear(self) -> None:
        self.items: Items = ()
        self.ready: frozenset[int] = frozenset()
        self.was_extended = self.was_reduced = False
        self._known: frozenset[int] = frozenset()  # the items
        self._batches: list[Items] = []  # the items in the order in which they were added
        self._orders: dict[Pair, Items] = {}  # of pairs, if they go through the items once
        self._reached: dict[Pair, int] = {}  # how many places of its sequence a pair has come to
        self._waiting: dict[Pair, dict[Place, int]] = {}  # places without an answer, and the last duel of each
        self._passed: dict[Pair, dict[Place, None]] = {}  # places that were passed over
        self._tries: dict[tuple[Pair, int], int] = {}  # how often the question at a place was asked
        self._counting: dict[tuple[Pair, int], int] = {}  # the duel whose answer counts, for a pair and a place
        self._asking: dict[tuple[Pair, int], list[int]] = {}  # the duels at a place, where there are several

    @property
    def size(self) -> int:
        """How many items there are; 0 before the first question, and in a study without items."""
        return len(self.items)

    @property
    def spans(self) -> list[list[int]]:
        """The numbers of the items, as spans from a first to a last one."""
        return _spans(self.items)

    @property
    def asks_once(self) -> bool:
        """Whether a pair that was asked about an item is not asked about it again."""
        return self.size > 0 and not self._repeats

    def fix(self, found: ItemSet) -> None:
        """Set the items, at the first question or after some were added or removed."""
        self.sets.append((len(self.of), found))
        self._fix(len(self.of), found)

    def _fix(self, duels: int, found: ItemSet) -> None:
        now = frozenset(found.items)
        added = tuple(number for number in found.items if number not in self._known)
        if duels:
            self.was_extended |= bool(added)
            self.was_reduced |= bool(self._known - now)
        if added:
            self._batches.append(added)
            self._orders = {}
        self.items, self.ready, self._known = found.items, found.ready, now

    def ask(self, left: int, right: int, note: Mapping[str, Any]) -> int | None:
        """Take in a question with this note; a study's first one says which items there are.

        Returns:
            The duel that asked the same before, and has no answer that counts, if there is one.
        """
        if "items" in note:
            self.fix(item_set_of(note))
        item = note.get("item", 0)
        self.of.append(item)
        self.place.append(note.get("place", item))
        return self._ask(len(self.of) - 1, pair_of(left, right)) if item else None

    def skip_to(self, duels: int) -> None:
        """Take in duels about no item, such as past votes, up to this number."""
        missing = bytes(4 * (duels - len(self.of)))
        self.of.frombytes(missing)
        self.place.frombytes(missing)

    def _ask(self, duel: int, pair: Pair) -> int | None:
        place = self.place[duel], self.of[duel]
        passed = self._passed.get(pair, {})
        if place in passed:
            del passed[place]
        elif place not in self._waiting.get(pair, {}):
            self._pass_up_to(pair, place)
        waiting = self._waiting.setdefault(pair, {})
        before = waiting.pop(place, None)
        if before is not None:
            self._asking.setdefault((pair, place[0]), [before]).append(duel)
        waiting[place] = duel
        self._tries[pair, place[0]] = self._tries.get((pair, place[0]), 0) + 1
        return before

    def _pass_up_to(self, pair: Pair, place: Place) -> None:
        """Note that a pair has come to a place; those before it that nobody was asked about are passed over."""
        reached = self._reached.get(pair, 0)
        while (here := self._place_at(pair, reached)) is not None:
            reached += 1
            if here == place:
                break
            self._passed.setdefault(pair, {})[here] = None
            if self._repeats and here[0] > place[0]:
                break
        self._reached[pair] = reached

    def _place_at(self, pair: Pair, number: int) -> Place | None:
        """The place of this number in a pair's sequence; None after its end."""
        if self._repeats:
            return number + 1, draw_item(self._seed, *pair, number, self.items)
        order = self._order(pair)
        return (order[number], order[number]) if number < len(order) else None

    def _order(self, pair: Pair) -> Items:
        if pair not in self._orders:
            batches = (order_of(self._seed, *pair, batch) for batch in self._batches)
            self._orders[pair] = tuple(item for batch in batches for item in batch)
        return self._orders[pair]

    def answer(self, duel: int, left: int, right: int) -> bool:
        """Take in an answer that is not a skip; returns whether it counts: the first answer at each place does."""
        item, pair = self.of[duel], pair_of(left, right)
        if not item:
            return True
        place = self.place[duel]
        first = self._counting.setdefault((pair, place), duel)
        self._waiting[pair].pop((place, item), None)
        return first == duel

    def find_counting(self, duel: int, left: int, right: int) -> int | None:
        """Return the duel that asks the same as this one, and whose answer counts; None if there is none."""
        return self._counting.get((pair_of(left, right), self.place[duel])) if self.of[duel] else None

    def give_way(self, duel: int, left: int, right: int) -> None:
        """Take in that the answer of a duel does not count any more, since one that was asked before has come."""
        self._counting.pop((pair_of(left, right), self.place[duel]), None)

    def later(self, duel: int, left: int, right: int) -> list[int]:
        """Return the duels that ask the same as this one, and were asked after it."""
        same = self._asking.get((pair_of(left, right), self.place[duel]), []) if self.of[duel] else []
        return [other for other in same if other > duel]

    def close(self, duel: int, left: int, right: int) -> None:
        """Take in that what a duel asked is not to be asked again, though it has no answer."""
        self.closed.add(duel)
        if self.of[duel]:
            self._waiting[pair_of(left, right)].pop((self.place[duel], self.of[duel]), None)

    def take_back(self, duel: int, left: int, right: int) -> None:
        """Take in that the answer of a duel, or its skip, was taken back."""
        self.closed.discard(duel)
        item, pair = self.of[duel], pair_of(left, right)
        if not item:
            return
        place = self.place[duel]
        if self._counting.get((pair, place)) == duel:
            del self._counting[pair, place]
        if (pair, place) not in self._counting:
            self._waiting.setdefault(pair, {}).setdefault((place, item), duel)

    def replay(self, left: Sequence[int], right: Sequence[int], answered: Sequence[int]) -> None:
        """Take in all duels and the answers that count again, after a snapshot was read."""
        self._clear()
        sets = list(self.sets)
        for duel in range(len(self.of)):
            while sets and sets[0][0] <= duel:
                self._fix(*sets.pop(0))
            if self.of[duel]:
                self._ask(duel, pair_of(left[duel], right[duel]))
        for one in sets:
            self._fix(*one)
        for duel in self.closed:
            if self.of[duel]:
                self._waiting[pair_of(left[duel], right[duel])].pop((self.place[duel], self.of[duel]), None)
        for duel in answered:
            self.answer(duel, left[duel], right[duel])

    def next(self, left: int, right: int, is_free: Callable[[int], bool], seen: Container[int] = ()) -> Place | None:
        """Return the place in a pair's sequence that is asked about next; None if there is none now.

        Args:
            left: An arm.
            right: The other arm.
            is_free: Returns whether what a duel asked may be asked again if it has no answer.
            seen: Items that this voter was asked about with this pair.
        """
        pair, known = pair_of(left, right), self._known
        if not any(item not in seen for item in self.items):
            return None
        waiting = self._waiting.get(pair, {})
        again = [place for place, duel in waiting.items() if is_free(duel)]
        if self._repeats:  # else a place that everybody skips would be asked for ever
            again = [place for place in again if self._tries[pair, place[0]] < MOST_TRIES]
        open_places = [*self._passed.get(pair, {}), *again] if self._repeats else list(self._passed.get(pair, {}))
        for place in sorted(open_places):
            if place[1] in known and place[1] not in seen:
                return place
        start = self._reached.get(pair, 0)
        for number in range(start, start + MOST_PASSED):
            place_here = self._place_at(pair, number)
            if place_here is None:
                break
            if place_here[1] in known and place_here[1] not in seen:
                return place_here
        # Orders that end come back to what was skipped, or expired, after everything else.
        return next((place for place in again if place[1] in known and place[1] not in seen), None)

    def has_next(self, pair: Pair, is_free: Callable[[int], bool], seen: Container[int] = ()) -> bool:
        """Return whether a pair can be asked about an item now, see `next`."""
        if self._repeats:
            return any(item not in seen for item in self.items)
        return self.next(*pair, is_free, seen) is not None

    def list_used_up(self, is_free: Callable[[int], bool]) -> list[Pair]:
        """Return the pairs that cannot be asked anything now."""
        if self._repeats:
            return []
        full = [pair for pair, reached in self._reached.items() if reached >= len(self._order(pair))]
        return [pair for pair in full if not self.has_next(pair, is_free)]

    def count_left(self, left: int, right: int) -> int:
        """Return how many items a pair that goes through them once can still have an answer about."""
        pair = pair_of(left, right)
        unanswered = len(self._waiting.get(pair, {})) + len(self._passed.get(pair, {}))
        return len(self._order(pair)) - self._reached.get(pair, 0) + unanswered


def order_of(seed: int, i: int, j: int, items: Items) -> Items:
    """Return items in the random order of arms i < j, the same in every replay."""

    def key(item: int) -> bytes:
        return hashlib.blake2b(f"{seed}/{i}/{j}/{item}/order".encode(), digest_size=16).digest()

    return tuple(sorted(items, key=key))


def draw_item(seed: int, i: int, j: int, number: int, items: Items) -> int:
    """Return the item at a place in the endless sequence of arms i < j: each is equally likely."""
    digest = hashlib.blake2b(f"{seed}/{i}/{j}/{number}/draw".encode(), digest_size=16).digest()
    return items[int.from_bytes(digest, "big") % len(items)]


def pair_of(left: int, right: int) -> Pair:
    """Return two arms in the order of their indices."""
    return (left, right) if left < right else (right, left)


def _spans(numbers: Items) -> list[list[int]]:
    """Ascending numbers as spans, each from its first number to its last."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
