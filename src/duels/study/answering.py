"""How a study is answered: answers, corrections, and voters who are forgotten. Shared by studies of all kinds."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from ..errors import Conflict, InvalidInput
from ..storage.storage import Write
from ..storage.tables import events
from ..votes.columns import ANSWERS
from ..votes.names import compose, past_voter, voter_name
from .base import Log, answers_by, erase_name
from .duels import Asked, check_note
from .state.counts import OPEN
from .state.live import History
from .voters.links import forget_invited, refuse_invited


class Answering(Log):
    """The part of a study that writes answers, and takes them back.

    Studies of all kinds ask and show their duels by the same two methods, `ask_in` and `duel_in`.
    """

    def ask_in(
        self,
        connection: sa.Connection,
        *,
        n: int = 1,
        voter: str | None = None,
        allow_self: bool = True,
        about: Callable[[sa.Connection, Any], Mapping[str, object]] | None = None,
    ) -> list[Any]:
        """Ask for duels inside a transaction; see `Study.ask_in` and `TuningStudy.ask_in`."""
        raise NotImplementedError

    def duel_in(self, history: History, duel: object) -> Any:
        """Return a duel by its id, from the study's state."""
        raise NotImplementedError

    def tell(
        self,
        duel: Asked | int,
        winner: str,
        *,
        voter: str | None = None,
        note: str | None = None,
        cost: float | None = None,
    ) -> None:
        """Answer a duel. The answer is on disk when this returns; giving the same answer again is harmless.

        Args:
            duel: The duel, or its id.
            winner: `"left"`, `"right"`, `"tie"`, `"both_bad"`, `"skip"`, or the name of one of its arms.
            voter: Who answered.
            note: Why, kept in the log.
            cost: What the answer cost, kept in the log.

        Raises:
            Conflict: If the duel already has another answer (see `undo`).
            InvalidInput: If there is no such duel, or the winner is not one of these.
        """
        self._storage.write(self.telling(duel, winner, voter=voter, more=check_note(note, cost)))

    def telling(
        self, duel: Asked | int, winner: str, *, voter: str | None = None, more: Mapping[str, object] | None = None
    ) -> Write[str]:
        """Return what `tell` writes; its value is the answer as it is stored."""
        number, name = self._number(duel), voter_name(voter)
        return Write(partial(self.tell_in, duel=number, winner=winner, voter=name, more=more), self._row.id)

    def tell_in(
        self,
        connection: sa.Connection,
        *,
        duel: int,
        winner: str,
        voter: str | None = None,
        more: Mapping[str, object] | None = None,
    ) -> str:
        """Answer a duel inside a transaction.

        Args:
            connection: The transaction's connection.
            duel: The duel's id.
            winner: As in `tell`.
            voter: Who answered; the name was checked.
            more: What to keep in the event's note.

        Returns:
            The answer as it is stored: left, right, tie, both_bad or skip.

        Raises:
            Conflict: If the duel already has another answer.
            InvalidInput: If there is no such duel, or the winner is unknown.
        """
        history = self.current(connection)
        refuse_invited(self, connection, voter)
        self._check_duel(history, duel)
        answer = self._answer_code(history, duel, winner)
        before = history.answer[duel]
        if duel in history.forgotten:
            raise Conflict(f"duel {duel} was closed when its answer was withdrawn: ask for another one")
        if before == answer:
            return ANSWERS[answer]
        if before != OPEN:
            raise Conflict(
                f"duel {duel} was answered {ANSWERS[before]!r} already, not {ANSWERS[answer]!r}: undo that first"
            )
        attempt = history.attempt[duel]
        text = json.dumps(more, ensure_ascii=False) if more else None
        self._write(history, "tell", duel=duel, attempt=attempt, answer=ANSWERS[answer], voter=voter, note=text)
        return ANSWERS[answer]

    def note_in(
        self,
        connection: sa.Connection,
        kind: Literal["again", "repeat"],
        *,
        duel: int,
        voter: str | None,
        note: Mapping[str, object],
        answer: str | None = None,
    ) -> None:
        """Write an event about a duel that changes no counts, see `ledger`."""
        history = self.current(connection)
        self._storage.flush(connection)
        same = (events.c.study_id == self._row.id) & (events.c.duel == duel) & (events.c.kind == kind)
        attempt = connection.execute(sa.select(sa.func.count()).where(same)).scalar_one()  # so that they differ
        text = json.dumps(note, ensure_ascii=False)
        self._write(history, kind, duel=duel, attempt=attempt, answer=answer, voter=voter, note=text)

    def undo(self, duel: Asked | int, *, blind: bool = False) -> None:
        """Take back the answer to a duel, which is then open again. This voids the verdict's promise, unless blind.

        Args:
            duel: The duel, or its id.
            blind: Whether a voter who sees no results takes it back, such as after a slip of the hand.

        Raises:
            InvalidInput: If the duel has no answer.
        """
        self._storage.write(Write(partial(self.undo_in, duel=self._number(duel), blind=blind), self._row.id))

    def undo_in(self, connection: sa.Connection, *, duel: int, blind: bool = False) -> None:
        """Take back an answer inside a transaction, see `undo`."""
        history = self.current(connection)
        self._check_duel(history, duel)
        if history.answer[duel] == OPEN or duel in history.forgotten:
            raise InvalidInput(f"duel {duel} has no answer to undo")
        votes = int(history.votes_of(np.array([duel]))[0])
        if votes > 1:
            raise InvalidInput(
                f"duel {duel} stands for {votes:,} imported votes, which cannot be asked again one by one: forget "
                "their voter, if they have one, or import the other votes into a new study"
            )
        note = '{"blind": true}' if blind else None
        self._write(history, "undo", duel=duel, attempt=history.attempt[duel], note=note)

    def forget(self, voter: str) -> int:
        """Take back all answers of a voter and erase their name from the log.

        Somebody who voted through a link, such as "Voter 7", is a new voter when they come back. The link of somebody
        who was invited by name is revoked.

        Args:
            voter: The voter's name.

        Returns:
            How many answers were taken back.

        Raises:
            InvalidInput: If the study has no such voter.
        """
        name = past_voter(voter)
        if name is None:
            raise InvalidInput("voter is None: expected the name of the voter to forget")
        return self._storage.write(Write(partial(self._forget_in, name=name), self._row.id))

    def withdraw(self, voter: str) -> int:
        """Take back all answers of a voter, and keep the name: the log still says who gave them.

        What the voter answers after that counts. This voids the verdict's promise.

        Args:
            voter: The voter's name.

        Returns:
            How many answers were taken back.

        Raises:
            InvalidInput: If the study has no such voter, or the voter has no answers that count.
        """
        name = past_voter(voter)
        if name is None:
            raise InvalidInput("voter is None: expected the name of the voter whose answers are withdrawn")
        return self._storage.write(Write(partial(self._withdraw_in, name=name), self._row.id))

    def _withdraw_in(self, connection: sa.Connection, *, name: str) -> int:
        duels = self._answers_by(connection, name)
        if not len(duels):
            raise InvalidInput(f"voter {name!r} of study {self.name!r} has no answers that count: nothing to withdraw")
        return self._take_back(connection, duels)

    def _forget_in(self, connection: sa.Connection, *, name: str) -> int:
        was_invited = forget_invited(connection, self, {name, compose(name)})
        duels = self._answers_by(connection, name, was_invited)
        answers = self._take_back(connection, duels)  # even if there are none: others then forget the name too
        erase_name(connection, self._row.id, self.current(connection), name)
        return answers

    def _answers_by(self, connection: sa.Connection, name: str, is_known: bool = False) -> np.ndarray:
        history = self.current(connection)
        self._storage.flush(connection)
        return answers_by(connection, self._row.id, history, name, is_known)

    def _take_back(self, connection: sa.Connection, duels: np.ndarray) -> int:
        history = self.current(connection)
        self._write(history, "forget", note=json.dumps({"duels": duels.tolist()}))
        return int(history.votes_of(duels).sum())

    def retire(self) -> None:
        """Stop asking. Late answers are still accepted, and all results remain available."""
        self._storage.write(Write(partial(self._set_retired_in, retired=True), self._row.id))

    def resume(self) -> None:
        """Ask again after `retire`."""
        self._storage.write(Write(partial(self._set_retired_in, retired=False), self._row.id))

    def _set_retired_in(self, connection: sa.Connection, *, retired: bool) -> None:
        history = self.current(connection)
        if history.retired != retired:
            self._write(history, "retire" if retired else "resume")
