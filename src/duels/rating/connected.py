"""Bradley–Terry ratings of the arms that were compared with one another, and the order that they give."""

from typing import NamedTuple

import numpy as np

from . import bradley_terry
from .counts import LOST, MEAN, POINTS, TIED, WON, Bools, Floats, Ints, cells_of_pairs, sigmoid
from .estimates import USUAL, Intervals, estimate, half_widths
from .fitting import Fit, fit, information, sandwich

MOST_WITH_LIMITS = 300  # arms: with more, intervals take too long
MOST_BY_LIKELIHOOD = 10  # arms: with more, intervals by the likelihood take too long
LINE = 41  # points at which that is computed for each arm


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
        """Return (K,) float64: the ratings of `duels.rate` on the scale of Elo; nan for arms that have none."""
        found = np.full(arms, np.nan)
        if self.fitted is not None:
            found[self.connected] = MEAN + POINTS * self.fitted.x
        return found

    def rating_limits(self, arms: int, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return (K,) float64 each: limits of the ratings, which hold at all times at once, about; see `half_widths`.

        They are nan for arms that have no ratings, and infinite where the votes give none.

        Args:
            arms: K.
            confidence: Of the limits of each arm.
        """
        lower, upper = np.full((2, arms), np.nan)
        if self.fitted is not None:
            intervals = Intervals("sandwich", confidence, 0, 0, always=True)
            found = estimate(bradley_terry, self.fitted.votes, None, intervals)
            lower[self.connected], upper[self.connected] = (MEAN + POINTS * end for end in (found.lower, found.upper))
        return lower, upper


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
    see `half_widths`. With more than ten arms they need the logit of the share to be about normal, so they are rough
    for arms with few votes.

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
    """(k,) each: limits of shares, by the likelihood if there are few arms, else by the errors of their logits.

    What the votes do not limit, the chance against an arm that has never beaten the other one, is anything up to 1. So
    the lower limit is of the share against the arms that an arm has reached, the upper one against those that have
    reached it.
    """
    try:
        spread = sandwich(fitted).covariance
    except np.linalg.LinAlgError:
        return np.zeros(len(share)), np.ones(len(share))
    few = len(share) <= MOST_BY_LIKELIHOOD
    limits = []
    for side, limited in ((-1, fitted.reach), (1, fitted.reach.T)):
        part = weight * limited
        whole = part.sum(axis=1)
        part = part / np.where(whole > 0, whole, 1)[:, None]
        of_part = np.sum(part * chance, axis=1)
        slope = -part * chance * (1 - chance)  # by θ of the others; by its own it is minus their sum
        np.fill_diagonal(slope, -slope.sum(axis=1) + np.diag(slope))
        slope = slope / np.maximum(of_part * (1 - of_part), 1e-300)[:, None]  # of the logit
        variance = np.einsum("ij,jk,ik->i", slope, spread, slope).clip(0)
        if few:
            found = _limit_by_likelihood(fitted, slope, part, variance, confidence, side)
        else:
            half = half_widths(variance, confidence, np.full(len(share), np.inf), always=True)
            with np.errstate(divide="ignore"):
                found = sigmoid(np.log(of_part) - np.log1p(-of_part) + side * half)
        limits.append(whole * found + (weight.sum(axis=1) - whole if side > 0 else 0))
    known = ~np.isnan(share)  # an arm without others has no share
    return np.where(known, limits[0], np.nan), np.where(known, limits[1], np.nan)


def _limit_by_likelihood(
    fitted: Fit, slope: Floats, weight: Floats, variance: Floats, confidence: float, side: int
) -> Floats:
    """(k,): the shares on one side that a mixture of likelihoods does not reject at any time (Robbins 1970).

    An arm's share is moved along one line through the ratings, on which it takes most votes to tell the difference. The
    mixture is normal, as wide as `USUAL`, about the point that is to be rejected. Where votes vary more than the model
    says, each counts for less. With two arms that is exact.

    Args:
        fitted: The fit.
        slope: (k, k): Of the logit of each arm's share, by θ.
        weight: (k, k): Of each other arm in the share of an arm.
        variance: (k,): Of the logits, by the sandwich.
        confidence: Of the limits of each arm.
        side: −1 for the lower limits, 1 for the upper ones.
    """
    arms, votes, whole = len(slope), fitted.votes, fitted.cells.arms
    matrix = information(fitted.model, fitted.cells, fitted.solution)[:whole, :whole]
    along = np.linalg.pinv(matrix, hermitian=True)[:arms, :arms] @ slope.T
    by_model = np.einsum("ij,ji->i", slope, along)
    scale = np.where(by_model > 0, by_model, 1)
    along = along / scale
    reach = half_widths(np.maximum(variance, by_model), confidence, np.full(arms, np.inf), always=True)
    steps = np.linspace(-1.5, 1.5, LINE) * reach[:, None]  # (k, LINE): of the logit
    theta = fitted.solution[:arms] + steps[..., None] * along.T[:, None, :]
    delta = theta[..., votes.first] - theta[..., votes.second]
    ties = votes.counts[TIED] / 2
    won, lost = votes.counts[WON] + ties, votes.counts[LOST] + ties
    value = -np.sum(won * np.logaddexp(0, -delta) + lost * np.logaddexp(0, delta), axis=-1)
    value = value / np.maximum(variance / scale, 1)[:, None]
    apart = (steps[:, :, None] - steps[:, None, :]) / USUAL
    width = np.maximum(np.diff(steps[:, :2], axis=1), 1e-300)[..., None] / (USUAL * np.sqrt(2 * np.pi))
    mixed = np.logaddexp.reduce(value[:, None, :] - apart**2 / 2 + np.log(width), axis=2)
    known = mixed - value + np.log(1 - confidence)  # above 0: rejected
    found = np.full(arms, float(side > 0))
    order = np.arange(LINE // 2, LINE) if side > 0 else np.arange(LINE // 2, -1, -1)
    for arm in range(arms):
        at = _first_crossing(known[arm, order], steps[arm, order])
        if np.isfinite(at):
            moved = fitted.solution[:arms] + at * along[:, arm]
            found[arm] = weight[arm] @ sigmoid(moved[arm] - moved)
    return found


def _first_crossing(value: Floats, at: Floats) -> float:
    """Where the line through these points first is above 0; infinite if nowhere."""
    above = np.flatnonzero(value > 0)
    if not len(above):
        return float("inf")
    k = int(above[0])
    if k == 0:
        return float(at[0])
    return float(at[k - 1] + (at[k] - at[k - 1]) * -value[k - 1] / (value[k] - value[k - 1]))
