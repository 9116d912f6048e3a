"""Theorems about RUCB: Zoghi, Whiteson, Munos & de Rijke, ICML 2014, sections 3 and 5, with errata.

Δ_i is `matrix.gaps[i]`; the paper's arm 1 is the Condorcet winner, whatever its index. Times and horizons may be
arrays; results then have their shape. Functions named `…_rate` omit a constant that the papers do not state.

All functions raise `InvalidInput` if an argument is out of range, and `NoCondorcetWinner` if the matrix has none.
"""

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from .errors import InvalidInput
from .preference import PreferenceMatrix

Numbers = float | np.ndarray  # a float if all arguments are numbers, else an array
Array = np.ndarray | Sequence[float]


class Interval(NamedTuple):
    """A confidence interval; floats, or arrays of one shape."""

    lower: Numbers
    upper: Numbers


class KlRemark(NamedTuple):
    """`lower ≤ kl ≤ upper`: 2Δ², kl(p, ½) and 4Δ²."""

    lower: Numbers
    kl: Numbers
    upper: Numbers


@overload
def log_c(delta: float, arms: int, alpha: float) -> float: ...
@overload
def log_c(delta: Array, arms: int, alpha: float) -> np.ndarray: ...
def log_c(delta: ArrayLike, arms: int, alpha: float) -> Numbers:
    """Compute ln C(δ) of Lemma 1, C(δ) = ((4α−1)K² / ((2α−1)δ))^(1/(2α−1)).

    From time C(δ) on, all confidence intervals hold with probability 1 − δ. At α = 0.51 the exponent is 50.

    Args:
        delta: δ, the probability of failure; above 0 and at most 1.
        arms: K, the number of arms.
        alpha: α, above ½.
    """
    delta = np.asarray(delta, dtype=np.float64)
    _check(_all(delta > 0) and _all(delta <= 1), "delta", delta, "above 0 and at most 1")
    return _plain(_log_base(arms, alpha) - np.log(delta) / (2 * alpha - 1))


@overload
def c(delta: float, arms: int, alpha: float) -> float: ...
@overload
def c(delta: Array, arms: int, alpha: float) -> np.ndarray: ...
def c(delta: ArrayLike, arms: int, alpha: float) -> Numbers:
    """Compute C(δ) of Lemma 1; infinity if a float cannot hold it, so prefer `log_c`."""
    with np.errstate(over="ignore"):
        return _plain(np.exp(log_c(np.asarray(delta), arms, alpha)))


def d(matrix: PreferenceMatrix, alpha: float) -> np.ndarray:
    """Compute D_ij of Theorem 2, as a (K, K) array.

    D_ij is 4α/min(Δ_i², Δ_j²), or 4α/Δ_j² for pairs with the winner (erratum 1); D_ii = 0.
    """
    _check_alpha(alpha)
    gaps = matrix.gaps.copy()
    gaps[matrix.condorcet_winner] = np.inf  # its Δ is 0; only the other arm's Δ counts
    d_ij: np.ndarray = 4 * alpha / np.minimum(gaps[:, None], gaps) ** 2
    np.fill_diagonal(d_ij, 0)
    return d_ij


def count_bound(matrix: PreferenceMatrix, t: ArrayLike, alpha: float, delta: float) -> np.ndarray:
    """Compute the bound of Theorem 2 on the number of duels of each pair, as a (…, K, K) array.

    With probability 1 − δ, for all t and all pairs, N_ij(t) ≤ max(C(δ), D_ij ln t) + 1. N_ij counts duels of i and j in
    either order. The + 1 is erratum 2: the proof bounds the count before the last duel. Self-duels of other arms than
    the winner end at time C(δ) and need no + 1. The winner's self-duels are not bounded: infinity.
    """
    log_t = _log_time(t)[..., None, None]
    counts: np.ndarray = np.maximum(c(delta, matrix.arms, alpha), d(matrix, alpha) * log_t)
    counts += 1 - np.eye(matrix.arms)
    counts[..., matrix.condorcet_winner, matrix.condorcet_winner] = np.inf
    return counts


@overload
def regret_bound(matrix: PreferenceMatrix, t: float, alpha: float, delta: float) -> float: ...
@overload
def regret_bound(matrix: PreferenceMatrix, t: Array, alpha: float, delta: ArrayLike) -> np.ndarray: ...
@overload
def regret_bound(matrix: PreferenceMatrix, t: float, alpha: float, delta: Array) -> np.ndarray: ...
def regret_bound(matrix: PreferenceMatrix, t: ArrayLike, alpha: float, delta: ArrayLike) -> Numbers:
    """Compute the regret bound of Theorem 2.

    With probability 1 − δ, for all t, R_t ≤ C(δ) Δ* + Σ_{i>j} D_ij Δ_ij ln t.
    """
    return _plain(
        c(np.asarray(delta), matrix.arms, alpha) * matrix.gaps.max() + _log_factor(matrix, alpha) * _log_time(t)
    )


@overload
def regret_quantile_bound(matrix: PreferenceMatrix, t: float, alpha: float, q: float) -> float: ...
@overload
def regret_quantile_bound(matrix: PreferenceMatrix, t: Array, alpha: float, q: ArrayLike) -> np.ndarray: ...
@overload
def regret_quantile_bound(matrix: PreferenceMatrix, t: float, alpha: float, q: Array) -> np.ndarray: ...
def regret_quantile_bound(matrix: PreferenceMatrix, t: ArrayLike, alpha: float, q: ArrayLike) -> Numbers:
    """Compute H_t(q) of Theorem 3's proof, a bound on the q-quantile of R_t: Theorem 2's with δ = 1 − q; 0 ≤ q < 1."""
    q = np.asarray(q, dtype=np.float64)
    _check(_all(q >= 0) and _all(q < 1), "q", q, "at least 0 and below 1")
    return regret_bound(matrix, np.asarray(t), alpha, 1 - q)


@overload
def expected_regret_bound(matrix: PreferenceMatrix, t: float, alpha: float) -> float: ...
@overload
def expected_regret_bound(matrix: PreferenceMatrix, t: Array, alpha: float) -> np.ndarray: ...
def expected_regret_bound(matrix: PreferenceMatrix, t: ArrayLike, alpha: float) -> Numbers:
    """Compute the bound of Theorem 3 on the expected regret; α > 1.

    E[R_t] ≤ Δ* C(1) (2α−1)/(2α−2) + Σ_{i>j} 2α (Δ_i+Δ_j)/min(Δ_i², Δ_j²) ln t.
    Pairs with the winner contribute 2α/Δ_j (erratum 1).
    """
    _check(1 < alpha < np.inf, "alpha", alpha, "above 1: at alpha ≤ 1 the expected bound is infinite")
    constant = matrix.gaps.max() * c(1, matrix.arms, alpha) * (2 * alpha - 1) / (2 * alpha - 2)
    return _plain(constant + _log_factor(matrix, alpha) * _log_time(t))


def interval(wins: ArrayLike, losses: ArrayLike, t: ArrayLike, alpha: float) -> Interval:
    """Compute the interval [l_ij(t), u_ij(t)] of Lemma 1 from w_ij and w_ji: mean ± sqrt(α ln t / n), with x/0 := 1.

    A pair that never met has [−1, 2]. For any algorithm, all intervals hold at all t > C(δ) with probability 1 − δ.
    """
    _check(0 < alpha < np.inf, "alpha", alpha, "above 0 and finite")
    wins, losses = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    _check(_all(wins >= 0), "wins", wins, "0 or more")
    _check(_all(losses >= 0), "losses", losses, "0 or more")
    return Interval(_plain(1 - _upper(losses, wins, t, alpha)), _plain(_upper(wins, losses, t, alpha)))


@overload
def kl(a: float, b: float) -> float: ...
@overload
def kl(a: Array, b: ArrayLike) -> np.ndarray: ...
@overload
def kl(a: float, b: Array) -> np.ndarray: ...
def kl(a: ArrayLike, b: ArrayLike) -> Numbers:
    """Compute the divergence a ln(a/b) + (1−a) ln((1−a)/(1−b)) of Bernoulli distributions, with 0 ln 0 = 0."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _check(_all(a >= 0) and _all(a <= 1), "a", a, "a probability")
    _check(_all(b >= 0) and _all(b <= 1), "b", b, "a probability")
    return _plain(np.maximum(_kl_term(a, b, a - b) + _kl_term(1 - a, 1 - b, b - a), 0))


def kl_remark(p: ArrayLike) -> KlRemark:
    """Compute the three terms of the remark 2Δ² ≤ kl(p, ½) ≤ 4Δ² with Δ = p − ½.

    Because of it, KL bounds cannot improve RUCB's leading constant by more than a factor of 2. It holds for every p;
    since kl(p, ½) ≤ 4 ln 2 Δ² (with equality at p = 0 and 1), the factor is in fact at most 2 ln 2 ≈ 1.39.
    """
    squared = (np.asarray(p, dtype=np.float64) - 0.5) ** 2
    return KlRemark(_plain(2 * squared), kl(np.asarray(p), 0.5), _plain(4 * squared))


@overload
def interleaved_filter_rate(matrix: PreferenceMatrix, horizon: float) -> float: ...
@overload
def interleaved_filter_rate(matrix: PreferenceMatrix, horizon: Array) -> np.ndarray: ...
def interleaved_filter_rate(matrix: PreferenceMatrix, horizon: ArrayLike) -> Numbers:
    """Compute K ln T / min Δ: Interleaved Filter's expected regret is at most an unstated constant times this."""
    return _plain(matrix.arms * _log_time(horizon) / _sort_gaps(matrix)[0])


@overload
def lower_bound_rate(matrix: PreferenceMatrix, horizon: float) -> float: ...
@overload
def lower_bound_rate(matrix: PreferenceMatrix, horizon: Array) -> np.ndarray: ...
def lower_bound_rate(matrix: PreferenceMatrix, horizon: ArrayLike) -> Numbers:
    """Compute K ln T / min Δ, the order of the lower bound that Interleaved Filter matches.

    See Yue et al. (2012), Theorem 4. It is a worst case over problems with K arms and that smallest gap, up to an
    unstated constant; it does not bound the regret on one matrix.
    """
    return interleaved_filter_rate(matrix, np.asarray(horizon))


@overload
def btm_rate(matrix: PreferenceMatrix, horizon: float, gamma: float | None = None) -> float: ...
@overload
def btm_rate(matrix: PreferenceMatrix, horizon: Array, gamma: float | None = None) -> np.ndarray: ...
def btm_rate(matrix: PreferenceMatrix, horizon: ArrayLike, gamma: float | None = None) -> Numbers:
    """Compute γ⁷ K ln T / min Δ: Beat the Mean's regret is, with high probability, at most a constant times this.

    Args:
        matrix: The preference matrix.
        horizon: T.
        gamma: γ; by default `matrix.gamma`, the smallest that relaxed transitivity allows.
    """
    gamma = matrix.gamma if gamma is None else gamma
    _check(1 <= gamma < np.inf, "gamma", gamma, "at least 1 and finite")
    return _plain(gamma**7 * interleaved_filter_rate(matrix, np.asarray(horizon)))


@overload
def savage_exploration_rate(matrix: PreferenceMatrix, horizon: float, delta: float) -> float: ...
@overload
def savage_exploration_rate(matrix: PreferenceMatrix, horizon: Array, delta: float) -> np.ndarray: ...
def savage_exploration_rate(matrix: PreferenceMatrix, horizon: ArrayLike, delta: float) -> Numbers:
    """Compute Σ_{j=1}^{K−1} j ln(KT/δ)/Δ_{j+1}² with Δ_2 ≤ … ≤ Δ_K (Urvoy et al. 2013, Theorem 3).

    With probability 1 − δ, Condorcet SAVAGE explores for at most an unstated constant times this many steps.
    """
    _check(0 < delta <= 1, "delta", delta, "above 0 and at most 1")
    factor = np.sum(np.arange(1, matrix.arms) / _sort_gaps(matrix) ** 2)
    return _plain(factor * (np.log(matrix.arms / delta) + _log_time(horizon)))


@overload
def savage_rate(matrix: PreferenceMatrix, horizon: float) -> float: ...
@overload
def savage_rate(matrix: PreferenceMatrix, horizon: Array) -> np.ndarray: ...
def savage_rate(matrix: PreferenceMatrix, horizon: ArrayLike) -> Numbers:
    """Compute Σ_{j=2}^K j ln(KT²)/Δ_j² with Δ_2 ≤ … ≤ Δ_K (Urvoy et al. 2013, appendix B.1).

    Condorcet SAVAGE's expected regret is at most an unstated constant times this, plus 1.
    """
    factor = np.sum(np.arange(2, matrix.arms + 1) / _sort_gaps(matrix) ** 2)
    return _plain(factor * (np.log(matrix.arms) + 2 * _log_time(horizon)))


def _log_base(arms: int, alpha: float) -> float:
    _check_alpha(alpha)
    _check(arms >= 1, "arms", arms, "1 or more")
    return float(np.log((4 * alpha - 1) / (2 * alpha - 1)) + 2 * np.log(arms)) / (2 * alpha - 1)


def _log_factor(matrix: PreferenceMatrix, alpha: float) -> float:
    """Σ_{i>j} D_ij Δ_ij with Δ_ij = (Δ_i + Δ_j)/2: the factor of ln t."""
    average = (matrix.gaps[:, None] + matrix.gaps) / 2
    return float(np.sum(np.tril(d(matrix, alpha) * average)))


def _upper(wins: np.ndarray, losses: np.ndarray, t: ArrayLike, alpha: float) -> np.ndarray:
    n = wins + losses
    met = np.where(n > 0, n, 1)
    return np.where(n > 0, wins / met + np.sqrt(alpha * _log_time(t) / met), 2.0)


def _kl_term(a: np.ndarray, b: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """a ln(a/b), from the difference a − b where they are close: there the two terms of kl nearly cancel."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_ratio = np.where(np.abs(difference) < b / 2, np.log1p(difference / b), np.log(a) - np.log(b))
        return np.where(a > 0, a * log_ratio, 0)


def _sort_gaps(matrix: PreferenceMatrix) -> np.ndarray:
    """Δ_2 ≤ … ≤ Δ_K: the gaps of all arms but the winner."""
    return np.sort(matrix.gaps)[1:]


def _log_time(t: ArrayLike) -> np.ndarray:
    times = np.asarray(t, dtype=np.float64)
    _check(_all(times >= 1) and _all(times < np.inf), "t", times, "a time of 1 or more")
    return np.asarray(np.log(times))


def _check_alpha(alpha: float) -> None:
    _check(0.5 < alpha < np.inf, "alpha", alpha, "above 1/2 and finite")


def _check(right: bool, name: str, value: object, expected: str) -> None:
    if not right:
        raise InvalidInput(f"{name} = {value}, expected {expected}")


def _all(condition: np.ndarray) -> bool:
    return bool(np.all(condition))


def _plain(value: Numbers) -> Numbers:
    """A float if the inputs were numbers, else the array."""
    return float(value) if np.ndim(value) == 0 else value
