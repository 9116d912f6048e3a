"""Bradley–Terry ratings of the arms that were compared with one another, and the order that they give."""

from typing import NamedTuple

import numpy as np

from . import bradley_terry
from .counts import Bools, Floats, Ints, cells_of_pairs
from .elo import FIRST, POINTS
from .estimates import half_widths
from .fitting import Fit, fit, sandwich

MOST_WITH_LIMITS = 300  # arms: with more, intervals take too long


class Rated(NamedTuple):
    """The ratings of some of K arms.

    Attributes:
        connected: (k,) int64: The arms that have ratings, in their order: they are compared with one another, directly
            or through others.
        fitted: The fit to their votes; None if no two arms were compared.
    """

    connected: Ints
    fitted: Fit | None

    def ratings(self, arms: int) -> Floats:
        """Return (K,) float64: the ratings of `duels.ratings` on the scale of Elo; nan for arms that have none."""
        found = np.full(arms, np.nan)
        if self.fitted is not None:
            found[self.connected] = FIRST + POINTS * self.fitted.x
        return found


class Shares(NamedTuple):
    """What share of its comparisons with all of some arms each arm is expected to win, a tie being half a win.

    Attributes:
        share: (K,) float64: Against each of these arms alike; nan for arms without ratings.
        lower: (K,) float64: The lower limits; nan where there are none.
        upper: (K,) float64: The upper limits.
    """

    share: Floats
    lower: Floats
    upper: Floats


def rate_connected(wins: Ints, ties: Ints, active: Bools) -> Rated:
    """Rate the largest set of arms that are compared with one another, directly or through other arms.

    If several are as large, it is the one with most votes, and else the one with the first arm.

    Args:
        wins: (K, K): As in a `Tally`.
        ties: (K, K): As in a `Tally`.
        active: (K,): Which arms count for the size of a set; the others are rated too.
    """
    n = wins + wins.T + ties
    part = _find_parts(n)
    if not len(part):
        return Rated(np.zeros(0, np.int64), None)
    # By active arms, then by votes; of equal ones the part with the first arm has the smaller number.
    sizes = np.bincount(part, active & n.any(axis=1)), np.bincount(part, n.sum(axis=1).astype(np.float64))
    largest = np.lexsort((-np.arange(len(sizes[0])), *sizes[::-1]))[-1]
    those = np.flatnonzero(part == largest)
    if len(those) < 2:
        return Rated(np.zeros(0, np.int64), None)
    pairs = np.ix_(those, those)
    return Rated(those, fit(bradley_terry, cells_of_pairs(wins[pairs], ties[pairs])))


def _find_parts(n: Ints) -> Ints:
    """(K,) int64: the part of each arm, numbered by their first arms; the arms of a part are connected by votes."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(csr_array(n), directed=False)[1], np.int64)


def expected_shares(rated: Rated, active: Bools, confidence: float = 0.95) -> Shares:
    """Return what share of its comparisons with the active arms that have ratings each arm is expected to win.

    The limits of one arm hold at all times at once, about, while votes come in on pairs that earlier ones have chosen,
    see `half_widths`. They need the logit of the share to be about normal, so they are rough for arms with few votes.

    Args:
        rated: The ratings.
        active: (K,): Which arms are active.
        confidence: Of the limits of each arm.
    """
    shares = Shares(*np.full((3, len(active)), np.nan))
    if rated.fitted is None:
        return shares
    others = active[rated.connected] & ~np.eye(len(rated.connected), dtype=bool)
    count = others.sum(axis=1)
    chance = rated.fitted.model.chance(rated.fitted.x[:, None] - rated.fitted.x, rated.fitted.solution, 0)
    weight = others / np.maximum(count, 1)[:, None]
    share = np.where(count > 0, np.sum(weight * chance, axis=1), np.nan)
    shares.share[rated.connected] = share
    if len(rated.connected) <= MOST_WITH_LIMITS:
        lower, upper = _limits(rated.fitted, share, chance, weight, confidence)
        shares.lower[rated.connected], shares.upper[rated.connected] = lower, upper
    return shares


def _limits(fitted: Fit, share: Floats, chance: Floats, weight: Floats, confidence: float) -> tuple[Floats, Floats]:
    """(k,) each: limits of shares, by the errors of the logits of their means (delta method).

    What the votes do not limit, the chance against an arm that has never beaten the other one, is anything up to 1.
    """
    try:
        spread = sandwich(fitted).covariance
    except np.linalg.LinAlgError:
        return np.zeros(len(share)), np.ones(len(share))
    slope = -weight * chance * (1 - chance)  # of the share, by θ of the others; by its own it is minus their sum
    np.fill_diagonal(slope, -slope.sum(axis=1) + np.diag(slope))
    variance = np.einsum("ij,jk,ik->i", slope, spread, slope).clip(0) / np.maximum(share * (1 - share), 1e-300) ** 2
    half = half_widths(variance, confidence, np.full(len(share), np.inf), always=True)
    with np.errstate(divide="ignore"):
        logit = np.log(share) - np.log1p(-share)
    lower, upper = (1 / (1 + np.exp(-(logit + side * half))) for side in (-1, 1))
    lower = lower - np.sum(weight * chance * ~fitted.reach, axis=1)
    upper = upper + np.sum(weight * (1 - chance) * ~fitted.reach.T, axis=1)
    return lower.clip(0), upper.clip(max=1)
