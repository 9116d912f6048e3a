"""Questions by the batch: how often to ask each pair, without asking it yet."""

import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, NothingToAsk
from .state.live import LiveState
from .state.policy_state import PolicyState

if TYPE_CHECKING:
    from .study import Study

ASKED = 10_000  # questions that are looked at; a larger number is divided in the proportions of these
MOST = 10**12


class Allocation(NamedTuple):
    """How often to ask about two arms.

    Attributes:
        left: The arm to show on the left.
        right: The arm to show on the right.
        times: How often to ask.
    """

    left: str
    right: str
    times: int


def allocate(study: "Study", n: int) -> list[Allocation]:
    """Return how often to ask each pair, see `Study.allocate`."""
    n = check_int("n", n, 1, MOST)

    def copy_ahead(connection: sa.Connection, history: LiveState) -> _Ahead:
        if history.retired:
            raise Conflict(f"study {study.name!r} was retired: it asks no more questions, unless it is resumed")
        if history.goal.asks_once:
            raise Conflict(
                f"study {study.name!r} asks each pair about each item once, which counts of answers do not say: use ask"
            )
        return _Ahead(history, study._log.player(history))

    ahead = study._log.read(copy_ahead)
    verdict = study.verdict()
    if study.goal.is_reached(verdict, study.tally):
        more = "For another margin use set_margin"
        if verdict.kind == "winner" and study.goal.after == "stop":
            more += ", and for the order of the other arms set_after('rank')"
        raise NothingToAsk(f"study {study.name!r} has nothing left to ask: {verdict} {more}.")
    times = ahead.pairs_of_next(min(n, ASKED))
    for pair, share in zip(times, _divide(n, np.array(list(times.values()), np.int64)).tolist()):
        times[pair] = share
    rows = []
    for (left, right), share in sorted(times.items(), key=lambda one: -one[1]):
        names = ahead.names[left], ahead.names[right]
        rows += [Allocation(*names, share - share // 2), Allocation(*names[::-1], share // 2)]
    return [row for row in rows if row.times]


class _Ahead(LiveState):
    """A copy of what a study's next questions depend on. No question of the study counts as open in it."""

    def __init__(self, history: LiveState, player: PolicyState) -> None:
        super().__init__(history.row, history.policy)
        # What a verdict holds for, and needs, as it is now: that may have changed since the study was created.
        self.goal, self.contradictions = history.goal, history.contradictions
        self.imported, self.people = history.imported, copy.deepcopy(history.people)
        self.names, self.active, self.started_with = history.names.copy(), history.active.copy(), history.started_with
        self.wins, self.ties, self.repeated = history.wins.copy(), history.ties.copy(), history.repeated
        self._start_again()
        for column, size in ((self.left, 4), (self.right, 4), (self.swapped, 1)):
            column.frombytes(bytes(size * len(history.left)))  # sides and chances depend on how many there are
        self.asked.frombytes(bytes(8 * len(history.left)))
        self.items = None  # which items are asked about makes no difference
        self.compiles = False
        self._player = player.copy()

    def pairs_of_next(self, n: int) -> dict[tuple[int, int], int]:
        """Return how often the next n questions are about each pair, by its arms as the first of them shows it."""
        found: dict[tuple[int, int], int] = {}
        for _ in range(n):
            if self.is_uncompiled:
                self._begin_player().compile()
            left, right, swapped = self.question(0.0, allow_self=False)
            self._ask(left, right, swapped, 0.0)
            pair = (right, left) if (right, left) in found else (left, right)
            found[pair] = found.get(pair, 0) + 1
        return found


def _divide(n: int, counts: np.ndarray) -> np.ndarray:
    """n in the proportions of these counts, in whole numbers; the largest remainders are rounded up."""
    total = int(counts.sum())
    if n == total:
        return counts
    exact = [n * count for count in counts.tolist()]  # more than 64 bits
    parts = np.array([one // total for one in exact], np.int64)
    rest = np.array([one % total for one in exact])
    parts[np.argsort(-rest, kind="stable")[: n - int(parts.sum())]] += 1
    return parts
