"""Studies on a fixed set of N items, where each pair is asked about each item once: sampling without replacement.

i beats j on the items if it wins more of them than it loses. Suppose it wins W, loses L and ties the others. Then the
probability of w wins and l losses so far, in the order in which they came, is (W)_w (L)_l / (W+L)_(w+l), where
(x)_k = x!/(x−k)!. The evidence against this W and L is the mixture of `policies.evidence` over probabilities above ½,
divided by that probability: a martingale if the items come in random order. i is certain to beat j if the evidence
against every W ≤ L is large enough. When all items were asked, none is left. `docs/study/proofs.md` has the proofs.
"""

import math

import numpy as np
import numpy.typing as npt

from ...policies.evidence import LOG_2, LOG_630
from .certainty import Certainty, Settled
from .tally import Bools, Floats, Ints, Tally, count_met


def log_evidence_on_items(wins: npt.ArrayLike, losses: npt.ArrayLike, ties: npt.ArrayLike, items: int) -> Floats:
    """Return the logarithm of the evidence that the first of a pair wins more of the items than it loses.

    It is half of a martingale that starts at 1, and therefore needs the same levels as `policies.evidence.evidence`.

    Args:
        wins: How many items it has won so far.
        losses: How many it has lost so far.
        ties: How many were ties so far.
        items: How many items there are.

    Returns:
        Minus infinity where it does not lead, infinity where it wins more than it loses whatever is still to come.
    """
    from scipy import special

    won, lost, tied = np.broadcast_arrays(*(np.asarray(counts, dtype=np.float64) for counts in (wins, losses, ties)))
    most = items - tied  # how many items are decided if no other one is a tie
    value: Floats = np.where(2 * won > most, np.inf, -np.inf)
    undecided = (won > lost) & (2 * won <= most)
    if undecided.any():
        won, lost, most = won[undecided], lost[undecided], most[undecided]
        upper = special.betainc(lost + 5.0, won + 5.0, 0.5)
        mixture = special.betaln(won + 5.0, lost + 5.0) + LOG_630 + np.log(upper)
        value[undecided] = mixture - _log_chance_without_a_win(won, lost, most)
    return value


def _log_chance_without_a_win(won: Floats, lost: Floats, most: Floats) -> Floats:
    """The largest ln (W)_w (L)_l / (W+L)_(w+l) over all w ≤ W ≤ L with W + L ≤ most, where l < w ≤ most/2.

    Given W + L, it is largest where W is. W = x, L = x + 1 is worse than W = L = x, since l < w. From W = L = x − 1 to
    x it grows exactly if x (d − (w−l)²) < 2wl, where d = w + l, so that it has one peak.
    """
    slack = won + lost - (won - lost) ** 2
    peak = np.where(slack > 0, np.ceil(2 * won * lost / np.where(slack > 0, slack, 1.0)) - 1, np.inf)
    half = np.clip(peak, won, most // 2)
    return _log_chance(won, lost, half, half)


def log_closeness_on_items(wins: int, losses: int, ties: int, items: int, margin: float) -> float:
    """Return the logarithm of the evidence that the first of a pair scores at least ½ − margin; a tie is a half.

    As `log_evidence_on_items`, but it is a martingale that starts at 1, and the mixture is over all probabilities. The
    sets to exclude are those with L − W > 2N · margin.
    """
    return _log_excluding(wins, losses, ties, items, _least_gap(items, margin))


def log_shortfall_on_items(wins: int, losses: int, ties: int, items: int, margin: float) -> float:
    """Return the logarithm of the evidence that the first of a pair scores less than ½ − margin; a tie is a half.

    As `log_closeness_on_items`, but the sets to exclude are the others: those with L − W ≤ 2N · margin.
    """
    return _log_excluding(losses, wins, ties, items, 1 - _least_gap(items, margin))


def _least_gap(items: int, margin: float) -> int:
    """The least L − W of the sets on which the first scores less than ½ − margin."""
    return math.floor(2 * items * margin + 1e-9) + 1


def _log_excluding(wins: int, losses: int, ties: int, items: int, gap: int) -> float:
    """The evidence against all sets with L − W ≥ gap; minus infinity where there is none."""
    from scipy import special

    if losses - wins >= gap:
        return -math.inf
    decided = np.arange(2 * wins + gap, items - ties + 1, dtype=np.float64)  # W + L of the sets to exclude
    if not len(decided):
        return math.inf
    won = (decided - gap) // 2
    lost = decided - won
    # If fewer wins are more likely than the most that are excluded, there is no evidence.
    if (won * losses > wins * (lost + 1)).any():
        return -math.inf
    mixture = special.betaln(wins + 5.0, losses + 5.0) + LOG_630
    return float(mixture - _log_chance(float(wins), float(losses), won, lost).max())


def _log_chance(wins: Floats | float, losses: Floats | float, won: Floats, lost: Floats) -> Floats:
    """ln (W)_w (L)_l / (W+L)_(w+l): the chance of w wins and l losses in a given order."""
    from scipy import special

    def log_falling(all: Floats, drawn: Floats | float) -> Floats:
        value: Floats = special.gammaln(all + 1) - special.gammaln(all - drawn + 1)
        return value

    return log_falling(won, wins) + log_falling(lost, losses) - log_falling(won + lost, wins + losses)


class OnTheseAnswers(Certainty):
    """The test of studies on these answers: levels as in `Certainty`, evidence as in `log_evidence_on_items`."""

    _least = -LOG_2

    def _find_leading(self) -> tuple[Ints, Ints]:
        first, second = np.nonzero(self._tally.wins > self._tally.wins.T)
        return first, second

    def weigh(self, won: npt.ArrayLike, lost: npt.ArrayLike, tied: npt.ArrayLike) -> Floats:
        return log_evidence_on_items(won, lost, tied, self._tally.items or 0)

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
        return np.array([log_closeness_on_items(*three, items, margin) for three in counts])


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
        known = float(log_evidence_on_items(won, lost, tied, self._items))
        asked = won + lost + tied >= self._items
        self._note(i, j, known >= self._sure_level[last], known >= self._firm_level[last])
        if self._margin > 0:
            known = log_closeness_on_items(won, lost, tied, self._items, self._margin)
            self._done[i, j], self._firm[i, j] = known >= self._close_level[last], known >= self._firm_level[last]
        self._level[i, j], self._near[i, j] = asked and won <= lost, asked or known >= self._close_level[last]
        self._firm[i, j] |= asked

    def with_others(self, arm: int) -> Bools:
        done: Bools = self._near[arm] if self._level[arm].any() else self._done[arm]
        return done if done[~self._tally.active].all() else self._firm[arm]
