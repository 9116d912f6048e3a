"""Studies on a fixed set of N items, where each pair is asked about each item once: sampling without replacement."""

import numpy as np
import numpy.typing as npt

from ...policies.evidence import LOG_2
from .certainty import Certainty, Settled
from .evidence import closeness_on_items, evidence_on_items
from .tally import Bools, Floats, Ints, Tally, count_met


class OnTheseAnswers(Certainty):
    """The test of studies on these answers: levels as in `Certainty`, evidence as in `evidence_on_items`."""

    _least = -LOG_2

    def _find_leading(self) -> tuple[Ints, Ints]:
        first, second = np.nonzero(self._tally.wins > self._tally.wins.T)
        return first, second

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike) -> Floats:
        return evidence_on_items(won, lost, tied, self._tally.items or 0)

    def certain(self) -> Bools:
        return self.firm

    def excess(self) -> Floats:
        arm = np.arange(len(self._tally.names))
        pairs = np.broadcast_arrays(arm[:, None], arm)
        excess: Floats = self.evidence(*pairs) - self.all_pairs_level(*pairs)
        return excess

    def closeness_of(self, won: Ints, lost: Ints, tied: Ints, margin: float) -> Floats:
        """Without a margin, an arm that is not certain to win is close only when all items were asked."""
        items = self._tally.items or 0
        if margin == 0:
            level = (won >= lost) & (won + lost + tied >= items)
            return np.where(level, np.inf, self.weigh(won, lost, tied))
        counts = zip(won.tolist(), lost.tolist(), tied.tolist())
        return np.array([closeness_on_items(*three, items, margin) for three in counts])


class SettledOnAnswers(Settled):
    """As `Settled`, for a study on these answers: a pair that was asked about all of them is settled."""

    def __init__(self, tally: Tally, confidence: float, margin: float) -> None:
        super().__init__(tally, confidence, margin)
        self._items = tally.items or 0
        asked = np.asarray(count_met(tally) >= self._items)
        # Level: all items were asked, and i did not win more than it lost. Near: i is known not to be worse than j.
        self._level = np.asarray(asked & (tally.wins <= tally.wins.T))
        first, second = np.nonzero(count_met(tally))
        enough = (
            OnTheseAnswers(tally, confidence).closeness(first, second, margin)
            >= self._close_level[np.maximum(first, second)]
        )
        self._near = asked.copy()
        self._near[first, second] |= enough
        self._firm |= asked

    def _judge(self, i: int, j: int, wins: np.ndarray, ties: np.ndarray) -> None:
        won, lost, tied, last = int(wins[i, j]), int(wins[j, i]), int(ties[i, j]), max(i, j)
        known = float(evidence_on_items(won, lost, tied, self._items))
        asked = won + lost + tied >= self._items
        self._note(i, j, known >= self._sure_level[last], known >= self._firm_level[last])
        if self._margin > 0:
            known = closeness_on_items(won, lost, tied, self._items, self._margin)
            self._done[i, j], self._firm[i, j] = known >= self._close_level[last], known >= self._firm_level[last]
        self._level[i, j], self._near[i, j] = asked and won <= lost, asked or known >= self._close_level[last]
        self._firm[i, j] |= asked

    def with_others(self, arm: int) -> Bools:
        done: Bools = self._near[arm] if self._level[arm].any() else self._done[arm]
        return done if done[~self._tally.active].all() else self._firm[arm]
