"""What a user calls on studies of all kinds: answers, corrections, and the log."""

from functools import partial
from typing import Any

from ..errors import InvalidInput
from ..votes.names import past_voter, voter_name
from .answering import forget_answers, set_retired, undo_answer, withdraw_answers, write_answer
from .base import EventLog
from .duels import Asked, LogEntry, check_note


class EventStudy:
    """A study of any kind. Its events, and the state that follows from them, are in its `_log`."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    @property
    def name(self) -> str:
        """The study's name."""
        return self._log.name

    @property
    def policy(self) -> str:
        """The policy's name and parameters, such as `rucb:alpha=0.6`."""
        return self._log.row.policy

    @property
    def retired(self) -> bool:
        """Whether the study was retired, and asks no more questions."""
        return self._log.history().retired

    def _compared(self) -> dict[str, Any]:
        """What the study compares, as plain data: `arms`, `space` and how many `items`."""
        raise NotImplementedError

    def _export(self, path: str) -> None:
        """Write the answers that count to a file that an import reads."""
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
        number, name, more = self._log.number_of(duel), voter_name(voter), check_note(note, cost)
        self._log.write(partial(write_answer, log=self._log, duel=number, winner=winner, voter=name, more=more))

    def undo(self, duel: Asked | int, *, blind: bool = False) -> None:
        """Take back the answer to a duel, which is then open again. This voids the verdict's promise, unless blind.

        Args:
            duel: The duel, or its id.
            blind: Whether a voter who sees no results takes it back, such as after a slip of the hand.

        Raises:
            InvalidInput: If the duel has no answer.
        """
        self._log.write(partial(undo_answer, log=self._log, duel=self._log.number_of(duel), blind=blind))

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
        return self._log.write(partial(forget_answers, log=self._log, name=name))

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
        return self._log.write(partial(withdraw_answers, log=self._log, name=name))

    def retire(self) -> None:
        """Stop asking. Late answers are still accepted, and all results remain available."""
        self._log.write(partial(set_retired, log=self._log, retired=True))

    def resume(self) -> None:
        """Ask again after `retire`."""
        self._log.write(partial(set_retired, log=self._log, retired=False))

    def events(self, after: int = 0, limit: int | None = None) -> list[LogEntry]:
        """Return the log.

        Args:
            after: Start with the event after this sequence number.
            limit: Return at most this many events.
        """
        return self._log.entries(after, limit)

    def check(self) -> int:
        """Replay the whole log, and check every digest and that each question is the one the policy asks.

        Questions that another version of the policy asked cannot be compared; a warning says so.

        Returns:
            How many events there are.

        Raises:
            DamagedStudy: If the log is not what was written.
        """
        return self._log.check()
