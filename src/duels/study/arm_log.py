"""The log of a study that compares arms: what it asks, and what may be changed while it runs.

The methods of `ArmLog` that take a connection are called inside a transaction.
"""

import json
from collections.abc import Callable
from functools import partial

import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, InvalidInput, LackingOutputs, NothingToAsk, UnknownName
from ..storage.batches import Batch, Packed, store
from ..storage.storage import Event, Write
from ..votes.names import LinkVoter, place_of
from . import base
from .answers.past_votes import MOST_VOTES, check_batch, too_many
from .base import About, EventLog
from .duels import Duel, DuelItem, duel_number, iso_time
from .invitations import refuse_imported, refuse_invited
from .items import can_show, find_item_set
from .state.counts import next_event
from .state.item_schedule import ItemSet
from .state.live import LiveState
from .state.look import Look, find_asked_arms, read_columns
from .state.people import NOBODY
from .stats.about import THESE_ANSWERS
from .stats.tally import Tally

TOGETHER = 100  # questions that are written at once, while others wait


class ArmLog(EventLog):
    """The events of a study that compares arms."""

    has_verdict = True

    def prepare(self) -> None:
        """Load the study and compile its policy now, rather than when the first question is asked."""
        self.read(lambda connection, history: self.player(history))

    def prepare_for_asking(self) -> None:
        """Load the study and compile its policy in the process that compiles, if there is one."""
        if self.storage.compile is not None:
            self.storage.compile(self.history().policy)
            self.prepare()

    def look(self) -> Look:
        """Copy what the verdict depends on now."""
        return self.read(self.look_in)

    def look_in(self, connection: sa.Connection, history: LiveState) -> Look:
        """As `look`, while nobody can write."""
        look = history.look(base.clock(), all_moments=False)
        return look._replace(
            answers=lambda: self.read(lambda _, history: read_columns(history)), asked=find_asked_arms(history)
        )

    def find_end(self, connection: sa.Connection | None = None) -> str | None:
        """Return why the study needs no more votes, by its verdict; None if it does."""
        if connection is None:
            return _find_end(self.look(), lambda: self.read(lambda _, history: history.tally))
        history = self.current(connection)
        return _find_end(self.look_in(connection, history), lambda: history.tally)

    def can_show(self, connection: sa.Connection, duel: Duel, item: int | None) -> bool:
        """Return whether a question can be shown as it was asked: only studies without items show names of arms."""
        return can_show(connection, self.id, duel.left, duel.right, item)

    def recommend(self, connection: sa.Connection, history: LiveState) -> str:
        """Return the arm that the policy recommends now."""
        arms = list(history.places)
        return history.names[arms[self.player(history).recommend(self._row.seed)]]

    def parts_of(self, n: int) -> list[int]:
        """Return the sizes of the parts in which n questions are asked, so that nobody else waits for all of them."""
        n = check_int("n", n, 1, 10_000)
        return [min(TOGETHER, n - done) for done in range(0, n, TOGETHER)]

    def find_duel(self, history: LiveState, duel: object) -> Duel:
        """Return a duel by its id.

        Args:
            history: The study's state.
            duel: The duel's id.

        Raises:
            InvalidInput: If there is no such duel.
        """
        number = duel_number(duel)
        self.check_duel(history, number)
        return self.duel_at(history, number)

    def duel_at(self, history: LiveState, number: int) -> Duel:
        """Return a duel by its number, which was checked."""
        left, right = history.names[history.left[number]], history.names[history.right[number]]
        about = 0 if history.items is None else history.items.of[number]
        item = DuelItem(about) if about else None
        return Duel(number, left, right, self.name, iso_time(history.asked[number]), item)

    def ask(
        self,
        connection: sa.Connection,
        *,
        n: int = 1,
        voter: str | None = None,
        allow_self: bool = True,
        about: About | None = None,
        by_judge: bool = False,
    ) -> list[Duel]:
        """Ask for duels inside a transaction.

        Args:
            connection: The transaction's connection.
            n: How many duels to ask for.
            voter: Who is asked; the name was checked.
            allow_self: Whether an arm may meet itself.
            about: Called with each duel before it is written; what it returns is stored in the event's note.
            by_judge: Whether a judge is asked, who may be asked about an item again.

        Returns:
            The duels. Fewer than n, but at least one, if there are no more to ask.

        Raises:
            Conflict: If the study was retired.
            NothingToAsk: If there is nothing left to ask.
            NotReady: If the policy's state must be updated first.
        """
        history = self.current(connection)
        refuse_invited(connection, self, voter)
        if history.retired:
            raise Conflict(f"study {self.name!r} was retired: it asks no more questions, unless it is resumed")
        self.player(history)
        now, new, duels = base.clock(), list[Event](), list[Duel]()
        for _ in range(n):
            person = NOBODY if by_judge else history.people.find(voter)
            with history.preview_items(None if history.left else find_item_set(connection, self)):
                shared = not history.can_ask(now, person)
                if shared and not (isinstance(voter, LinkVoter) and history.can_ask(now, person, shared)):
                    break
                event, duel = self._next_question(connection, history, now, voter, person, allow_self, about, shared)
            history.take(event)
            new.append(event)
            duels.append(duel)
        if not duels:
            raise self._refuse_to_ask(history, voter)
        self.append(history, new)
        return duels

    def _next_question(
        self,
        connection: sa.Connection,
        history: LiveState,
        now: float,
        voter: str | None,
        person: int,
        allow_self: bool,
        about: About | None,
        shared: bool,
    ) -> tuple[Event, Duel]:
        """The next question as an event, which is not written yet, and as a duel."""
        assert history.items is not None
        has_items, number = history.items.size > 0, len(history.left)
        left, right, swapped = history.question(now, allow_self and not has_items, person, shared)
        place = history.next_place(left, right, now, person, shared)
        item = None if place is None else DuelItem(place[1])
        duel = Duel(number, history.names[left], history.names[right], self.name, iso_time(now), item)
        note: dict[str, object] = {} if allow_self else {"allow_self": False}
        note |= {"person": True} if person >= 0 else {}
        note |= {"shared": True} if shared else {}
        if place is not None:
            note |= {"item": place[1]} | ({} if place[0] == place[1] else {"place": place[0]})
        if not number and has_items:
            note |= ItemSet(history.items.items, history.items.ready).as_note()
        note |= about(connection, duel) if about else {}
        event = next_event(
            history,
            "ask",
            now,
            duel=number,
            attempt=0,
            left_arm=left,
            right_arm=right,
            swapped=swapped,
            voter=voter,
            note=json.dumps(note, ensure_ascii=False) if note else None,
        )
        return event, duel

    def _refuse_to_ask(self, history: LiveState, voter: str | None) -> Conflict:
        if not history.has_outputs:
            return LackingOutputs(
                f"fewer than two arms of study {self.name!r} have outputs for all items: add those that are missing"
            )
        if voter is not None and history.can_ask(base.clock()):
            return NothingToAsk(f"{voter!r} was asked every pair about every item of study {self.name!r}")
        return NothingToAsk(
            f"study {self.name!r} has asked every pair about every item: nothing is left to ask, unless a question "
            "stays without an answer"
        )

    def add_arm(self, connection: sa.Connection, *, arm: str) -> None:
        """Add an arm, see `Study.add_arm`; the name was checked."""
        history = self.current(connection)
        place = place_of(arm, history.names)
        if place is not None:
            state = "exists already" if history.active[place] else "was retired"
            raise Conflict(f"arm {arm!r} {state}: choose another name")
        if history.goal.about == THESE_ANSWERS and history.left:
            raise Conflict(
                f"arm {arm!r} cannot be added: study {self.name!r} counts the answers about the items that it had at "
                "its first question, and they have no outputs of it; create another study"
            )
        history.policy.start(sum(history.active) + 1, self._row.horizon)  # the policy may refuse so many arms
        self.append_event(history, "add_arm", note=json.dumps({"arm": arm}, ensure_ascii=False))

    def retire_arm(self, connection: sa.Connection, *, name: str) -> None:
        """Take an arm out of the race, see `Study.retire_arm`."""
        history = self.current(connection)
        arm = place_of(name, history.names)
        if arm is None:
            raise UnknownName("arm", name, history.names)
        if not history.active[arm]:
            raise Conflict(f"arm {name!r} was retired already")
        if sum(history.active) <= 2:
            raise InvalidInput(f"arm {name!r} cannot be retired: a study needs two active arms")
        self.append_event(history, "retire_arm", left_arm=arm)

    def set_after(self, connection: sa.Connection, *, after: str) -> None:
        """Change what happens when the winner is known, see `Study.set_after`."""
        history = self.current(connection)
        if history.goal.after != after:
            self.append_event(history, "goal", note=json.dumps({"after": after}))

    def set_margin(self, connection: sa.Connection, *, margin: float) -> None:
        """Change the margin, see `Study.set_margin`."""
        history = self.current(connection)
        if history.goal.margin != margin:
            self.append_event(history, "goal", note=json.dumps({"margin": margin}))

    def set_about(self, connection: sa.Connection, *, about: str) -> None:
        """Change what the verdict is about, see `Study.set_about`."""
        history = self.current(connection)
        if history.goal.about == about:
            return
        if history.left:
            raise Conflict(
                f"study {self.name!r} is about {history.goal.about} and has asked questions: which ones depends on "
                f"that; create another study about {about}"
            )
        self.append_event(history, "goal", note=json.dumps({"about": about}))

    def import_batch(self, connection: sa.Connection, *, packed: Packed, batch: Batch, note: str) -> int:
        """Add packed votes, see `Study.import_votes`; returns how many."""
        history = self.current(connection)
        if history.goal.asks_once:
            raise Conflict(
                f"study {self.name!r} asks each pair about each item once, and past votes do not say which item they "
                "are about: import them into a study about these-items"
            )
        refuse_imported(connection, self, packed)
        if history.total + packed.total > MOST_VOTES:
            raise too_many(self.name)
        event = next_event(history, "import", base.clock(), duel=len(history.left), attempt=0, note=note)
        history.take(event, batch)
        self.append(history, [event])
        self._storage.flush(connection)
        store(connection, self._row.id, event.seq, packed)
        return packed.total

    def import_packed(self, packed: Packed) -> int:
        """Add packed votes; returns how many."""
        return self.storage.write(self.importing(packed)) if packed.size else 0

    def importing(self, packed: Packed) -> Write[int]:
        """Return what `import_packed` writes, which was checked."""
        note, batch = check_batch(packed, self.name, self.history().names)  # an arm keeps its index
        return self.make_write(partial(self.import_batch, packed=packed, batch=batch, note=json.dumps(note)))


def _find_end(look: Look, tally: Callable[[], Tally]) -> str | None:
    verdict = look.verdict()
    if verdict.kind == "no condorcet winner":
        return "retired"
    return "winner" if look.goal.is_reached(verdict, tally) else None
