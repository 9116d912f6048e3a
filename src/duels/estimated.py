"""Preference matrices that were estimated from counts, and what sampling error leaves open about them."""

from collections.abc import Callable, Iterable

import numpy as np

from .errors import format_count
from .preference import PreferenceMatrix, frozen

SHOWN = 8  # arms that `describe` lists
CONFIDENCE = 0.95  # of what `describe` says about sampling error


class EstimatedPreferences(PreferenceMatrix):
    """A preference matrix with the counts it was estimated from; a tie counts ½, and a pair that never met is ½.

    Args:
        counts: (K, K, 3) int64: losses, ties and wins of i against j.
        names: The names of the arms.
        name: The name of the problem.

    Attributes:
        counts: (K, K, 3) int64: The counts.
        comparisons: (K, K) int64: How often i and j met; 0 on the diagonal.
        standard_errors: (K, K) float64: Of the entries; 0 on the diagonal, and infinite for a pair that never met.
    """

    def __init__(self, counts: np.ndarray, names: Iterable[str] | None, name: str = "") -> None:
        self.counts = frozen(counts.copy())
        comparisons = counts.sum(axis=2)
        met = np.maximum(comparisons, 1)
        share = np.where(comparisons > 0, (counts[:, :, 2] + 0.5 * counts[:, :, 1]) / met, 0.5)
        upper = np.triu(share, 1)
        super().__init__(upper + np.tril(1 - upper.T, -1) + np.eye(len(share)) / 2, names, name)
        square = (counts[:, :, 2] + 0.25 * counts[:, :, 1]) / met
        spread = np.sqrt(np.maximum(square - share**2, 0.0) / met)
        spread[comparisons == 0] = np.inf
        np.fill_diagonal(spread, 0.0)
        self.comparisons, self.standard_errors = frozen(comparisons), frozen(spread)

    def possible_winners(self, confidence: float = CONFIDENCE) -> tuple[int, ...]:
        """Return the arms that may be the Condorcet winner within sampling error.

        An arm is left out if it loses to another one by the exact sign test of their decided comparisons, at the level
        (1 − confidence) / (K − 1). A true winner is left out with a probability of at most 1 − confidence, if the
        comparisons were independent and their number was fixed beforehand.

        Args:
            confidence: Above 0 and below 1.
        """
        from scipy.special import bdtr

        wins, decided = self.counts[:, :, 2], self.counts[:, :, 2] + self.counts[:, :, 0]
        chance = np.where(decided > 0, bdtr(wins, np.maximum(decided, 1), 0.5), 1.0)  # of so few wins, if equal
        loses = (chance <= (1 - confidence) / max(self.arms - 1, 1)).any(axis=1)
        return tuple(np.flatnonzero(~loses).tolist())

    def describe_lines(self) -> list[Callable[[], str]]:
        """Return functions that compute the lines of `describe`, and of how certain the winner is."""
        return [
            *super().describe_lines(),
            lambda: f"{'estimated from':<21} {self._source()}",
            lambda: f"{'sampling error':<21} {self._certainty()}",
        ]

    def _source(self) -> str:
        pairs = self.comparisons[np.triu_indices(self.arms, 1)]
        least, most, total = int(pairs.min()), int(pairs.max()), int(pairs.sum())
        source = (
            f"{total:,} comparisons, at most {most:,} per pair" if least < most else f"{most:,} comparisons per pair"
        )
        if never := int((pairs == 0).sum()):
            are = "is" if never == 1 else "are"
            source += f"; {format_count(never, 'pair')} of {len(pairs):,} never met and {are} set to ½"
        return source

    def _certainty(self) -> str:
        possible, winner = self.possible_winners(), self.condorcet_winner
        listed = ", ".join(self.names[arm] for arm in possible)
        some = listed if len(possible) <= SHOWN else f"{len(possible):,} of the {self.arms:,} arms"
        may = f"{some} may be the Condorcet winner"
        if winner is None:
            missing = "that there is no Condorcet winner"
            loses = f"every arm loses to another one ({CONFIDENCE:.0%} sure)"
            return f"may explain {missing}: {may}" if possible else f"does not explain {missing}: {loses}"
        gaps, errors = (np.delete(row, winner) for row in (self.gaps, self.standard_errors[winner]))
        ahead = np.divide(gaps, errors, out=np.full(len(gaps), np.inf), where=errors > 0).min()
        others = may if possible != (winner,) else f"every other arm loses to some arm ({CONFIDENCE:.0%} sure)"
        return f"the winner is at least {ahead:.1f} standard errors ahead; {others}"

    def __reduce__(self) -> tuple[type["EstimatedPreferences"], tuple[np.ndarray, tuple[str, ...], str]]:
        return EstimatedPreferences, (self.counts, self.names, self._name)
