"""Confidence intervals that hold at all times: where the Beta mixture martingale of the verdict is small."""

import math

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from .tally import Floats

LOG_PI = math.log(math.pi)  # B(½, ½) = π


def log_martingale(wins: npt.ArrayLike, losses: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Return ln M(p), of numbers or arrays; a tie may be counted as half a win and half a loss."""
    from scipy import special  # loaded when first used: it takes a tenth of a second

    wins, losses = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    mixed = special.betaln(wins + 0.5, losses + 0.5) - LOG_PI
    value: Floats = mixed - special.xlogy(wins, p) - special.xlog1py(losses, -np.asarray(p))
    return value


def log_evidence(wins: npt.ArrayLike, losses: npt.ArrayLike) -> Floats:
    """Return ln M(½), the evidence against an even match, of numbers or arrays."""
    return log_martingale(wins, losses, 0.5)


def interval(wins: npt.ArrayLike, losses: npt.ArrayLike, delta: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the limits of {p: M(p) < 1/δ}, of numbers or arrays.

    Args:
        wins: 0 or more; halves are allowed.
        losses: 0 or more; halves are allowed.
        delta: Above 0 and below 1.

    Returns:
        The lower and the upper limit; 0 and 1 for a pair that never met.

    Raises:
        InvalidInput: If an argument is out of range.
    """
    from scipy import special

    wins, losses, delta = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (wins, losses, delta)))
    if not np.all((wins >= 0) & (losses >= 0) & np.isfinite(wins + losses) & (delta > 0) & (delta < 1)):
        raise InvalidInput(
            "an interval needs wins and losses of 0 or more, all finite, and a delta above 0 and below 1"
        )
    return special.expit(_lower_logit(wins, losses, delta)), special.expit(-_lower_logit(losses, wins, delta))


def _lower_logit(wins: Floats, losses: Floats, delta: Floats) -> Floats:
    """ln(p/(1−p)) of the lower limit, −∞ without wins.

    In x = ln(p/(1−p)) the likelihood w ln p + l ln(1−p) is concave and increases up to ln(w/l). Newton's method from
    any point below the limit therefore approaches it from the left, and needs no bracket.
    """
    from scipy import special

    none = wins == 0
    w = np.where(none, 1.0, wins)
    target = special.betaln(w + 0.5, losses + 0.5) - LOG_PI + np.log(delta)
    top = special.xlogy(w, w / (w + losses)) + special.xlogy(losses, losses / (w + losses))
    x = np.log(w / (losses + 0.5)) - np.sqrt(2 * (top - target) * (1 / w + 1 / (losses + 0.5)))
    going = np.ones(np.shape(x), bool)
    for _ in range(60):
        likelihood = w * special.log_expit(x) + losses * special.log_expit(-x)
        step = (target - likelihood) / (w * special.expit(-x) - losses * special.expit(x))
        x = np.where(going, x + step, x)  # each pair stops by itself, so that it does not depend on the others
        going &= np.abs(step) > 1e-12 * np.maximum(np.abs(x), 1.0)
        if not going.any():
            break
    return np.where(none, -np.inf, x)


def distinct_intervals(wins: Floats, losses: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """As `interval`, but computed once for all pairs with the same counts: there are few different ones."""
    if not len(wins):
        return np.zeros(0), np.ones(0)
    kinds, code = np.unique(delta, return_inverse=True)
    for halves in (wins, losses):  # twice a count is a whole number
        code = code * (int(2 * halves.max()) + 1) + (2 * halves).astype(np.int64)
    if len(kinds) * (2.0 * wins.max() + 1) * (2.0 * losses.max() + 1) >= 2**63:  # the codes overflow
        return interval(wins, losses, delta)
    _, one, place = np.unique(code, return_index=True, return_inverse=True)
    lower, upper = interval(wins[one], losses[one], delta[one])
    return lower[place], upper[place]
