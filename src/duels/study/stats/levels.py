"""How much evidence each pair needs: how the tests of a study share δ.

Which answers may depend on each other decides that, see `levels_of`. `docs/study/proofs.md` has the proofs. Levels are
logarithms of evidence.
"""

import math

import numpy as np

from ...policies.evidence import dependent_level, margin_level, no_winner_level, winner_level
from .about import A_PERSON, NEW_ITEMS
from .tally import Floats, Ints, Tally

LATER_SHARE, RARE_SHARE = 1 / 8, 1 / 32  # of δ: for arms added later, and for all pairs where arms have changed
# Of δ, where people are known by name: for answers that are independent, and on the comparisons made once people come
# back. One of the two may be used after the other.
INDEPENDENT_SHARE, COMPARISONS_SHARE = 1 / 4, 3 / 4


def share(delta: float, tally: Tally) -> Floats:
    """Return (K, K) float64: the δ′ of each pair, 0 on the diagonal.

    A pair of the K₀ arms at the start gets 2δ/K₀². A pair of a later arm, number m, with an earlier one gets
    δ/(m(m−1)²). However many arms are added, the sum over all pairs is at most δ.
    """
    arm = np.arange(len(tally.names))
    shares = share_of(delta, tally.started_with, arm[:, None], arm)
    np.fill_diagonal(shares, 0.0)
    return shares


def share_of(delta: float, started_with: int, first: Ints | int, second: Ints | int) -> Floats:
    """Return the δ′ of the pairs of two different arms with these indices, see `share`."""
    m = np.maximum(np.maximum(first, second) + 1, 2).astype(np.float64)
    return np.where(m <= started_with, 2 * delta / started_with**2, delta / (m * (m - 1) ** 2))


class Levels:
    """Where every answer is an independent draw, naming a winner needs no union over the arms."""

    def __init__(self, tally: Tally, confidence: float, part: float = 1.0) -> None:
        self._tally, self._whole, self._delta = tally, 1 - confidence, part * (1 - confidence)

    def winner(self, first: Ints, second: Ints) -> Floats:
        """Return what each of these pairs of a winner needs."""
        later = np.maximum(first, second) + 1.0 - self._tally.started_with
        return np.where(later > 0, np.log(0.5 + later * (later + 1) / (LATER_SHARE * self._delta)), self.start())

    def no_winner(self) -> float:
        """Return what a loss of each arm needs where no arm was added or retired."""
        return no_winner_level(self._delta, self._tally.started_with)

    def close(self, first: Ints, second: Ints) -> Floats:
        """Return what each of these pairs needs of an arm that is close to all others."""
        later = self.all_pairs(first, second)
        return np.where(np.maximum(first, second) < self._tally.started_with, self._margin(), later)

    def all_pairs(self, first: Ints, second: Ints) -> Floats:
        """Return what each of these pairs needs on its own."""
        level: Floats = -np.log(share_of(RARE_SHARE * self._delta, self._tally.started_with, first, second))
        return level

    def start(self) -> float:
        """Return what pairs of the arms at the start need, for a winner: the least of all."""
        tally = self._tally
        if tally.started_with == 2 and (tally.returning or tally.first == A_PERSON):
            # One test of the pair, before and after people come back: on each side M⁺ has half of ¾δ.
            return math.log(0.5 + 4 / (3 * self._whole))
        return winner_level(self._delta, tally.started_with)

    def _margin(self) -> float:
        """The same for an arm that is practically tied."""
        return margin_level(self._delta, self._tally.started_with)


class SharedItemLevels(Levels):
    """Where pairs share items, their answers may depend on each other: a union over the arms."""

    def no_winner(self) -> float:
        return self.start()

    def start(self) -> float:
        start = self._tally.started_with
        return super().start() if start == 2 else dependent_level(self._delta, start)


class ComparisonLevels(Levels):
    """Where people come back, nothing is assumed about who answers what.

    i beats j if its chance to win, averaged over the comparisons of the two that were made, is above ½. An adversary
    who chooses what each person is asked may make any pair look certain, so every pair counts alone: the levels are
    those of the tables, and stricter for arms that are added later. Two arms are a single pair, which needs no more
    than for independent answers.
    """

    def winner(self, first: Ints, second: Ints) -> Floats:
        is_later = np.maximum(first, second) >= self._tally.started_with
        if began_as_pair(self._tally):  # later arms have `LATER_SHARE`: each pair, on both sides, its part of all pairs
            alone = share_of(2 * LATER_SHARE * self._delta, self._tally.started_with, first, second)
            return np.where(is_later, np.log(0.5 + 1 / alone), self.start())
        alone = share_of(self._delta, self._tally.started_with, first, second)
        part = 2 * self._spare * self._tally.started_with  # of the δ/K₀ that `share` has for later arms
        levels: Floats = -np.log(np.where(is_later, part * alone, alone))
        return levels

    def no_winner(self) -> float:
        return self.start()

    def all_pairs(self, first: Ints, second: Ints) -> Floats:
        part = min(RARE_SHARE, self._spare)
        level: Floats = -np.log(share_of(part * self._delta, self._tally.started_with, first, second))
        return level

    def start(self) -> float:
        if began_as_pair(self._tally):
            return super().start()
        one = np.zeros(1, np.int64)
        return float(-np.log(share_of(self._delta, self._tally.started_with, one, one + 1)[0]))

    def _margin(self) -> float:
        arms = self._tally.started_with
        pairs = max(arms * (arms - 1), 1)  # any arm may be close to any other by mistake
        return math.log(pairs / (self._delta * (1 / 16 if began_as_pair(self._tally) else self._spare)))

    @property
    def _spare(self) -> float:
        """A quarter of the share of δ that the cells leave, which is at most 1/K₀: two for later arms, two for ties."""
        return 1 / (4 * max(self._tally.started_with + 1, 8))


class TableLevels(Levels):
    """The promise about all pairs, which tables make: a union over them."""

    def winner(self, first: Ints, second: Ints) -> Floats:
        return self.all_pairs(first, second)

    def no_winner(self) -> float:
        return self.start()

    def all_pairs(self, first: Ints, second: Ints) -> Floats:
        level: Floats = -np.log(share_of(self._delta, self._tally.started_with, first, second))
        return level

    def start(self) -> float:
        return math.log(self._tally.started_with**2 / (2 * self._delta))


def began_as_pair(tally: Tally) -> bool:
    """Return whether there were two arms at the start."""
    return tally.started_with == 2


def levels_of(tally: Tally, confidence: float) -> Levels:
    """Return what the verdict of a study needs: it depends on which answers may depend on each other.

    People who are known by name may come back at any time. So two tests share δ in a study whose first answer is from
    such a person: one as long as everybody has answered once, and one from then on.
    """
    if tally.is_finite:
        return Levels(tally, confidence)
    if tally.returning:
        return ComparisonLevels(tally, confidence, COMPARISONS_SHARE if tally.first == A_PERSON else 1.0)
    kind = SharedItemLevels if tally.about == NEW_ITEMS and tally.items else Levels
    return kind(tally, confidence, INDEPENDENT_SHARE if tally.first == A_PERSON else 1.0)
