"""Live studies: people and systems answer the duels that a policy asks for.

A study is a log of events; everything else is computed from it. Many threads, processes and hosts may ask and tell at
once: whoever writes first takes in what others have written.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, InvalidInput, UnknownName
from ..storage.batches import Packed, forget_voter, note_of, pack, store, unpack
from ..storage.storage import Event, Write
from ..storage.tables import events, voters
from ..votes.columns import ANSWERS
from ..votes.files import Votes, read_votes
from ..votes.names import arm_names, composed, imported_name, link_voter, past_voter, place_of, voter_name
from . import log
from . import verdict as verdicts
from .duels import Duel, LogEntry, iso_time
from .history import History
from .log import Log, log_entry
from .record import OPEN, SKIP, made
from .tally import LeaderboardRow, PairRow, Tally
from .verdict import Verdict

About = Callable[[sa.Connection, Duel], dict[str, Any]]


class Study(Log):
    """A study that is under way: `ask` for a duel, `tell` who won, look at the `verdict`.

    Made by `create_study` and `load_study`. Objects of one study in many threads and processes see the same log.
    """

    @property
    def policy(self) -> str:
        return self._row.policy

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        history = self.history()
        return [name for name, active in zip(history.names, history.active) if active]

    @property
    def retired(self) -> bool:
        """Whether the study asks nothing more."""
        return self.history().retired

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.policy}, {len(self.arms)} arms)"

    def prepare(self) -> None:
        """Load the study and compile its policy now, rather than when the first question is asked."""
        self.read(lambda connection, history: self.player(history))

    def ask(self, n: int = 1, *, voter: str | None = None, allow_self: bool = True) -> Any:
        """The next duel, or a list of `n` if that is not 1. It is on disk when this returns.

        voter: who is asked, kept with the question.
        allow_self: False where people vote: an arm is then never shown against itself. What would be a self-duel
            becomes the champion against the arm with the largest upper confidence limit against it.
        """
        duels = self._storage.write(self.asking(n, voter=voter, allow_self=allow_self))
        return duels[0] if n == 1 else duels

    def asking(
        self, n: int = 1, *, voter: str | None = None, allow_self: bool = True, about: About | None = None
    ) -> Write:
        """What `ask` writes, for callers that wait in their own way; its value is a list of duels.

        about: called with each duel before it is written; what it gives is kept in the event's note.
        """
        n = check_int("n", n, 1, 10_000)
        asked = voter_name(voter)

        def operation(connection: sa.Connection) -> list[Duel]:
            history = self.current(connection)
            if history.retired:
                raise Conflict(f"study {self.name!r} was retired: it asks nothing any more, unless it is resumed")
            self.player(history)
            now, new, duels = log.clock(), [], []
            for _ in range(n):
                left, right, swapped = history.question(now, allow_self)
                number = len(history.left)
                duel = Duel(number, history.names[left], history.names[right], self.name, iso_time(now))
                note = ({} if allow_self else {"allow_self": False}) | (about(connection, duel) if about else {})
                event = made(
                    history,
                    "ask",
                    now,
                    duel=number,
                    attempt=0,
                    left_arm=left,
                    right_arm=right,
                    swapped=swapped,
                    voter=asked,
                    note=json.dumps(note, ensure_ascii=False) if note else None,
                )
                history.take(event)
                new.append(event)
                duels.append(duel)
            self._append(connection, history, new)
            return duels

        return Write(operation, self._row.id, last=True)

    def tell(self, duel: Duel | int, winner: str, *, voter: str | None = None) -> None:
        """The answer to a duel: `"left"`, `"right"`, `"tie"`, `"both_bad"`, `"skip"` or the name of one of its arms.

        It is on disk when this returns. Telling the same again is harmless, another answer is refused (see `undo`).
        """
        self._storage.write(self.telling(duel, winner, voter=voter))

    def telling(self, duel: Duel | int, winner: str, *, voter: str | None = None) -> Write:
        """What `tell` writes, for callers that wait in their own way; its value is the answer as it is kept."""
        number, told = self._number(duel), voter_name(voter)

        def operation(connection: sa.Connection) -> str:
            history = self.current(connection)
            self._known(history, number)
            answer = self._answer(history, number, winner)
            before = history.answer[number]
            if number in history.forgotten:
                raise Conflict(f"duel {number} was closed when its voter was forgotten: ask for another one")
            if before == answer:
                return ANSWERS[answer]
            if before != OPEN:
                raise Conflict(
                    f"duel {number} was answered {ANSWERS[before]!r} already, not {ANSWERS[answer]!r}: undo that first"
                )
            self._write(
                connection,
                history,
                "tell",
                duel=number,
                attempt=history.attempt[number],
                answer=ANSWERS[answer],
                voter=told,
            )
            return ANSWERS[answer]

        return Write(operation, self._row.id)

    def undo(self, duel: Duel | int, *, blind: bool = False) -> None:
        """Take back the answer to a duel, which is then open again. It voids the verdict's promise, unless blind.

        blind: it is taken back by a voter who sees no results, such as after a slip of the hand.
        """
        self._storage.write(self.undoing(duel, blind=blind))

    def undoing(self, duel: Duel | int, *, blind: bool = False) -> Write:
        """What `undo` writes, for callers that wait in their own way."""
        number = self._number(duel)

        def operation(connection: sa.Connection) -> None:
            history = self.current(connection)
            self._known(history, number)
            if history.answer[number] == OPEN or number in history.forgotten:
                raise InvalidInput(f"duel {number} has no answer to undo")
            note = '{"blind": true}' if blind else None
            self._write(connection, history, "undo", duel=number, attempt=history.attempt[number], note=note)

        return Write(operation, self._row.id)

    def forget(self, voter: str) -> int:
        """Take back all answers of a voter and erase their name from the log; how many answers there were.

        Somebody who voted through a link, such as "Voter 7", is a new voter when they come back.
        """
        name = past_voter(voter)
        if name is None:
            raise InvalidInput("voter is None: expected the name of the voter to forget")

        def operation(connection: sa.Connection) -> int:
            history = self.current(connection)
            self._storage.flush(connection)
            theirs = (events.c.study_id == self._row.id) & events.c.voter.in_({name, composed(name)})
            rows = connection.execute(sa.select(events.c.kind, events.c.duel, events.c.attempt).where(theirs)).all()
            imported = forget_voter(connection, self._row.id, history.seq, {name, composed(name)})
            if not rows and imported is None:
                raise InvalidInput(f"study {self.name!r} has no voter named {name!r}")
            told = [(duel, attempt) for kind, duel, attempt in rows if kind in ("tell", "vote")]
            told += [(duel, 0) for duel in imported or ()]
            duels, attempts = np.array(told, np.int64).reshape(-1, 2).T
            stands = np.array(history.attempt, np.int64)[duels] == attempts
            stands &= ~np.isin(np.array(history.answer, np.int64)[duels], (OPEN, SKIP))
            answered = np.unique(duels[stands]).tolist()
            if answered:
                self._write(connection, history, "forget", note=json.dumps({"duels": answered}))
            connection.execute(sa.update(events).where(theirs).values(voter=None))
            number = name.removeprefix("Voter ")
            if number.isdecimal() and name == link_voter(int(number)):
                one = (voters.c.study_id == self._row.id) & (voters.c.number == int(number))
                connection.execute(sa.update(voters).where(one).values(digest=None))  # the number is not given again
            return len(answered)

        return self._storage.write(Write(operation, self._row.id))

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs."""
        (arm,) = arm_names([name], fewest=1)

        def operation(connection: sa.Connection) -> None:
            history = self.current(connection)
            place = place_of(arm, history.names)
            if place is not None:
                state = "is there already" if history.active[place] else "was retired"
                raise Conflict(f"arm {arm!r} {state}: choose another name")
            history.policy.start(sum(history.active) + 1, self._row.horizon)
            self._write(connection, history, "add_arm", note=json.dumps({"arm": arm}, ensure_ascii=False))

        self._storage.write(Write(operation, self._row.id))

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race; its answers are kept, and no longer count for the others' verdict."""

        def operation(connection: sa.Connection) -> None:
            history = self.current(connection)
            arm = place_of(name, history.names)
            if arm is None:
                raise UnknownName("arm", name, history.names)
            if not history.active[arm]:
                raise Conflict(f"arm {name!r} was retired already")
            if sum(history.active) <= 2:
                raise InvalidInput(f"arm {name!r} cannot be retired: a study needs two active arms")
            self._write(connection, history, "retire_arm", left_arm=arm)

        self._storage.write(Write(operation, self._row.id))

    def retire(self) -> None:
        """Ask nothing more; late answers are still taken, and everything stays to be looked at."""
        self._set_retired(True)

    def resume(self) -> None:
        """Go on asking after `retire`."""
        self._set_retired(False)

    def _set_retired(self, retired: bool) -> None:
        def operation(connection: sa.Connection) -> None:
            history = self.current(connection)
            if history.retired != retired:
                self._write(connection, history, "retire" if retired else "resume")

        self._storage.write(Write(operation, self._row.id))

    def import_votes(self, votes: Any) -> int:
        """Take in past votes as if they had been asked and answered here: all of them or, after an error, none.

        The "Voter 7" of a file, who voted through a link elsewhere, is "Voter 7 (imported)" here.
        """
        return self.import_packed(pack(read_votes(votes), imported_name))

    def import_packed(self, packed: Packed) -> int:
        """As `import_votes`, with votes that are packed already."""
        return self._storage.write(self.importing(packed)) if packed.size else 0

    def importing(self, packed: Packed) -> Write:
        """What `import_packed` writes, for callers that wait in their own way; its value is the number of votes."""
        names = self.history().names  # an arm keeps its number
        exact = {name: number for number, name in enumerate(names)}
        arm = {name: exact[name] if name in exact else place_of(name, names) for name in packed.names}
        unknown = [name for name, number in arm.items() if number is None]
        if unknown:
            raise InvalidInput(
                f"the votes are about arms that study {self.name!r} does not have: {', '.join(unknown[:5])}"
                f"{', …' if len(unknown) > 5 else ''}; add them with add_arm first"
            )
        note = note_of(packed, list(arm.values()))
        batch = unpack(packed.content, note, "the votes")
        same = np.flatnonzero(batch.left == batch.right)
        if len(same):
            arm_name = names[batch.left[same[0]]]
            raise InvalidInput(
                f"vote {same[0] + 1} compares {arm_name!r} with itself, spelled differently: expected two arms"
            )

        def operation(connection: sa.Connection) -> int:
            history = self.current(connection)
            first, now = len(history.left), log.clock()
            event = made(history, "import", now, duel=first, attempt=0, note=json.dumps(note))
            history.take(event, batch)
            self._append(connection, history, [event])
            self._storage.flush(connection)
            store(connection, self._row.id, event.seq, packed)
            return packed.size

        return Write(operation, self._row.id)

    def votes(self) -> Votes:
        """The answers as votes, for export: without self-duels, skips and what was taken back."""

        def look(connection: sa.Connection, history: History) -> tuple[Any, ...]:
            columns = (history.left, history.right, history.attempt, history.told)
            return history.seq, history.names.copy(), *(np.array(column, np.int64) for column in columns)

        last, names, left, right, attempt, told = self.read(look)
        counts = np.zeros(len(left), bool)
        counts[told] = True
        counts &= left != right
        rows: dict[int, dict[str, Any]] = {}

        def add(duel: int, winner: str, voter: str | None, time: str | None) -> None:
            sides = {"left": names[left[duel]], "right": names[right[duel]]}
            rows[duel] = sides | {"winner": winner, "voter": voter, "time": time, "duel": str(duel)}

        for event in self._read(last):
            if event.kind == "import":
                for duel, vote in enumerate(self._imported(event), event.duel or 0):
                    if counts[duel] and attempt[duel] == 0:
                        add(duel, *vote)
            elif event.kind in ("tell", "vote") and counts[event.duel] and attempt[event.duel] == event.attempt:
                note = json.loads(event.note) if event.note else {}
                add(event.duel or 0, event.answer or "", event.voter, note.get("voted", iso_time(event.time)))
        return read_votes(list(rows.values()))

    def leaderboard(self, confidence: float = 0.95) -> list[LeaderboardRow]:
        """The arms, best first."""
        return verdicts.leaderboard(self.tally(), confidence)

    def preferences(self, confidence: float = 0.95) -> list[PairRow]:
        """Wins, counts, estimate and interval of every pair."""
        return verdicts.preferences(self.tally(), confidence)

    def verdict(self, confidence: float = 0.95, margin: float = 0.0) -> Verdict:
        """Who is best, as far as that can be said for certain; valid however often it is looked at."""
        tally, void = self.read(lambda connection, history: (history.tally, history.void))
        return verdicts.verdict(tally, confidence=confidence, margin=margin, void=void)

    def tally(self) -> Tally:
        """The answers, counted."""
        return self.read(lambda connection, history: history.tally)

    @property
    def best_arm(self) -> str:
        """The arm that the policy would name now; `verdict` says how certain that is."""

        def look(connection: sa.Connection, history: History) -> str:
            arms = list(history.places)
            return history.names[arms[self.player(history).recommend(self._row.seed)]]

        return self.read(look)

    def open_duels(self) -> list[Duel]:
        """The duels without an answer, oldest first."""
        return self.read(lambda connection, history: [self._duel(history, number) for number in history.open])

    def duel(self, number: int) -> Duel:
        """A duel by its id."""
        return self.read(lambda connection, history: self.duel_in(history, number))

    def events(self, after: int = 0, limit: int | None = None) -> list[LogEntry]:
        """The log, from the event after that sequence number on; at most `limit` events."""

        def look(connection: sa.Connection, history: History) -> list[LogEntry]:
            rows = self._storage.read_events(connection, self._row.id, after, limit)
            return [log_entry(history, Event(*row)) for row in rows]

        return self.read(look)
