"""Estimates with 95 % intervals: ratios of regrets and of times to an accuracy, shares of runs, medians of draws."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

RESAMPLED = 1000  # bootstrap samples for the interval of a ratio of times


class Ratio(NamedTuple):
    """A ratio of means and its confidence interval; floats, or arrays of one shape."""

    ratio: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray


class Accuracy(NamedTuple):
    """Which runs were right at which times."""

    times: np.ndarray  # (T,), ascending
    right: np.ndarray  # (runs, T) bool


class Share(NamedTuple):
    """RUCB's time to an accuracy over SAVAGE's; None if a policy did not reach it or an end is unbounded."""

    level: float
    rucb: int | None
    savage: int | None
    share: float | None
    between: list[float | None]  # allows for the gaps between checkpoints
    interval: list[float | None]  # also allows for the spread of the runs


def ratio_of_means(top: ArrayLike, bottom: ArrayLike) -> Ratio:
    """Compute mean(top) / mean(bottom) over the last axis, with its 95 % confidence interval.

    The logarithm of the ratio is nearly normal with variance Σ var/(n·mean²) (delta method). Student's quantile at
    Welch's degrees of freedom allows for few runs.

    Args:
        top: A sample of at least two positive numbers.
        bottom: An independent sample of the same kind.
    """
    from scipy.special import stdtrit

    samples = [np.asarray(sample, dtype=np.float64) for sample in (top, bottom)]
    ratio = samples[0].mean(axis=-1) / samples[1].mean(axis=-1)
    shares = [s.var(axis=-1, ddof=1) / (s.shape[-1] * s.mean(axis=-1) ** 2) for s in samples]
    variance = shares[0] + shares[1]
    slack = sum(share**2 / (s.shape[-1] - 1) for share, s in zip(shares, samples))
    spread = variance > 0  # else all runs are alike, and the interval is a point
    freedom = np.where(spread, variance**2, 1) / np.where(spread, slack, 1)
    reach = np.exp(stdtrit(freedom, 0.975) * np.sqrt(variance))
    return Ratio(*(one.tolist() if one.ndim == 0 else one for one in (ratio, ratio / reach, ratio * reach)))


def median_interval(lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float] | None:
    """Find the 95 % confidence interval for the median of the population that draws come from; None below six draws.

    It goes from the k-th smallest value to the k-th largest, for the largest k for which that is right in 95 % of all
    samples of any continuous distribution: the median is below the k-th smallest of n draws with the chance that fewer
    than k of n coins show heads.

    Args:
        lows: The least value that each draw may have.
        highs: The largest value that each draw may have; the same where a draw's value is known.
    """
    draws, k = len(lows), 0
    missed = 1  # times 2^draws: the chance that fewer than k + 1 coins show heads
    while 40 * missed <= 2**draws:
        k += 1
        missed += math.comb(draws, k)
    return (sorted(lows)[k - 1], sorted(highs)[-k]) if k else None


def share_interval(right: int, runs: int) -> tuple[float, float]:
    """Find the 95 % confidence interval of Clopper and Pearson for a chance, from how many runs were right."""
    from scipy.special import betaincinv

    low = 0.0 if right == 0 else float(betaincinv(right, runs - right + 1, 0.025))
    high = 1.0 if right == runs else float(betaincinv(right + 1, runs - right, 0.975))
    return low, high


def arrival(times: np.ndarray, accuracy: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Find when accuracies reached a level and stayed there.

    Args:
        times: The times, of shape (T,).
        accuracy: The accuracies, of shape (…, T).
        level: The level.

    Returns:
        The last time before and the first time after it was reached; the latter is infinite if it never was.
    """
    short = accuracy < level
    behind = np.where(short.any(axis=-1), len(times) - 1 - short[..., ::-1].argmax(axis=-1), -1)
    edges = np.array([0.0, *times, np.inf])
    return edges[behind + 1], edges[behind + 2]


def share_of_time(rucb: Accuracy, savage: Accuracy, level: float) -> Share:
    """Compute RUCB's time to an accuracy over SAVAGE's; the interval is a bootstrap interval over runs."""
    rng = np.random.default_rng(0)
    came = [arrival(one.times, one.right.mean(axis=0), level) for one in (rucb, savage)]
    drawn = [arrival(one.times, _resample(one.right, rng), level) for one in (rucb, savage)]
    between, spans = _span(*came), _span(*drawn)
    interval = np.quantile(spans[0], 0.025, method="lower"), np.quantile(spans[1], 0.975, method="higher")
    first, second = (_finite_or_none(by) for _, by in came)
    return Share(
        level,
        None if first is None else int(first),
        None if second is None else int(second),
        None if first is None or second is None else first / second,
        [_finite_or_none(end) for end in between],
        [_finite_or_none(end) for end in interval],
    )


def _resample(right: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Accuracies (RESAMPLED, T) of as many runs, drawn with replacement."""
    runs = len(right)
    counts = rng.multinomial(runs, np.full(runs, 1 / runs), RESAMPLED)
    return counts.astype(np.float64) @ right.astype(np.float64) / runs  # products of floats are fast, and exact here


def _span(rucb: tuple[np.ndarray, np.ndarray], savage: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest ratio of two times that are each known to lie between two bounds."""
    with np.errstate(divide="ignore"):
        return rucb[0] / savage[1], rucb[1] / savage[0]


def _finite_or_none(number: float | np.ndarray) -> float | None:
    return float(number) if np.isfinite(number) else None
