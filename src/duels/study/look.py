"""A look at a study: what its verdict depends on at one moment, copied so that nobody waits while it is computed."""

from typing import Any, NamedTuple

import numpy as np

from .certainty import certainty_of
from .exhausted import find_exhausted
from .goal import Goal
from .moments import Answered, Moments
from .tally import Ints, Tally
from .verdict import Answerers, Missing, Verdict


class Look(NamedTuple):
    """A study at one moment.

    Attributes:
        goal: What it is to find out.
        tally: The answers that count, and the questions that are open.
        moments: Which arm was certain at some moment.
        answered: The questions that it has not read yet.
        void: Why nothing is promised, if so.
        answerers: Who gave the answers.
        skipped: (K, K) int64: Questions that were skipped.
        expired: (K, K) int64: Questions without an answer within the lease.
        left: (K, K) int64: Questions that can still be answered; None if there is no end of them.
        contradictions: How often a judge whose answers were to be final contradicted itself.
    """

    goal: Goal
    tally: Tally
    moments: Moments
    answered: Answered
    void: str | None
    answerers: Answerers
    skipped: Ints
    expired: Ints
    left: Ints | None
    contradictions: int = 0

    def verdict(self, margin: float | None = None, void: str | None = None) -> Verdict:
        """Return the verdict.

        Args:
            margin: By default the goal's.
            void: A further reason why nothing is promised.
        """
        tally = self.tally
        # The comparisons made change with every answer: what was true of those up to an earlier moment may be false of
        # all of them. So only this moment counts, with all open questions as lost.
        named = None if tally.returning else self.moments.look(self.answered)
        reasons = " and ".join(filter(None, (self.void, void))) or None
        known: dict[str, Any] = {"void": reasons, "answerers": self.answerers}
        found = self.goal.verdict(tally, margin, named=None if named is None else tally.names[named], **known)
        if found.kind == "not yet" and not tally.returning and tally.open is not None and tally.open.any():
            # What was certain before the first open question was asked is certain now.
            wins, ties = self.moments.counts()
            before = tally._replace(wins=wins, ties=ties, open=None)
            earlier = self.goal.verdict(before, margin, duels=found.duels, **known)
            found = earlier if earlier.kind != "not yet" else found
        if found.kind == "winner":
            return _with(found, missing=self._missing(tally.names.index(found.winner or "")))
        if found.kind == "not yet" and self.left is not None:
            margin = self.goal.margin if margin is None else margin
            return _with(found, exhausted=find_exhausted(tally, self.left, self.goal.confidence, margin))
        return found

    def _missing(self, winner: int) -> Missing | None:
        """The questions about the winner without an answer that counts, and whether it would win without them."""
        skipped, expired = self.skipped[winner], self.expired[winner]
        if not (skipped.any() or expired.any()):
            return None
        more = np.zeros(self.tally.wins.shape, np.int64)
        more[winner] = skipped + expired
        waiting = more if self.tally.open is None else more + self.tally.open
        test = certainty_of(self.tally._replace(open=waiting), self.goal.confidence)
        others = np.arange(len(self.tally.names)) != winner
        return Missing(
            skipped=int(skipped.sum()), expired=int(expired.sum()), stands=bool(test.beats[winner, others].all())
        )


def _with(verdict: Verdict, **more: Any) -> Verdict:
    """The same verdict with further fields; what is computed when it is looked at stays so."""
    verdict.__dict__.update({name: value for name, value in more.items() if value is not None})
    return verdict
