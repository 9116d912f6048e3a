"""The intervals of pairs that hold at all times: where the Beta mixture martingale of the verdict is small."""

import math
from typing import Any

import numpy as np

from ..errors import InvalidInput

LOG_PI = math.log(math.pi)  # B(½, ½) = π


def log_martingale(wins: Any, losses: Any, p: Any) -> Any:
    """ln M(p), of numbers or arrays; halves are allowed, so that a tie may be half a win and half a loss."""
    from scipy import special  # loaded when first used: it takes a tenth of a second

    wins, losses = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    mixed = special.betaln(wins + 0.5, losses + 0.5) - LOG_PI
    return mixed - special.xlogy(wins, p) - special.xlog1py(losses, -np.asarray(p))


def log_evidence(wins: Any, losses: Any) -> Any:
    """ln M(½): how strongly the wins and losses of a pair speak against an even match, of numbers or arrays."""
    return log_martingale(wins, losses, 0.5)


def interval(wins: Any, losses: Any, delta: Any) -> tuple[Any, Any]:
    """The ends of {p: M(p) < 1/δ}, of numbers or arrays; the interval of a pair that never met is (0, 1)."""
    from scipy import special

    wins, losses, delta = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (wins, losses, delta)))
    if not np.all((wins >= 0) & (losses >= 0) & np.isfinite(wins + losses) & (delta > 0) & (delta < 1)):
        raise InvalidInput(
            "an interval needs wins and losses of 0 or more, all finite, and a delta above 0 and below 1"
        )
    return special.expit(_lower_logit(wins, losses, delta)), special.expit(-_lower_logit(losses, wins, delta))


def _lower_logit(wins: np.ndarray, losses: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """ln(p/(1−p)) of the lower end, −∞ without wins.

    In x = ln(p/(1−p)) the likelihood w ln p + l ln(1−p) is concave and rises up to ln(w/l), so that Newton's steps from
    anywhere below that approach the end from the left, and need no bracket.
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
        x = np.where(going, x + step, x)  # each stops for itself: no pair's interval depends on the others beside it
        going &= np.abs(step) > 1e-12 * np.maximum(np.abs(x), 1.0)
        if not going.any():
            break
    return np.where(none, -np.inf, x)


def distinct_intervals(wins: np.ndarray, losses: np.ndarray, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `interval`, computed once for pairs with the same counts: of millions of pairs few are different."""
    if not len(wins):
        return np.zeros(0), np.ones(0)
    kinds, code = np.unique(delta, return_inverse=True)
    for halves in (wins, losses):  # counts of halves are whole numbers
        code = code * (int(2 * halves.max()) + 1) + (2 * halves).astype(np.int64)
    if len(kinds) * (2.0 * wins.max() + 1) * (2.0 * losses.max() + 1) >= 2**63:  # one code may stand for two kinds
        return interval(wins, losses, delta)
    _, one, place = np.unique(code, return_index=True, return_inverse=True)
    lower, upper = interval(wins[one], losses[one], delta[one])
    return lower[place], upper[place]
