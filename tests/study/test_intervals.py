"""Intervals: the martingale by hand, by integration and by exact enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from tallies import ever, refused

from duels.study.stats.tally import interval, log_evidence, log_martingale

# M(½) after n wins in a row is the product of 2(k+½)/(k+1), k = 0 … n − 1:
# 1, 1.5, 2.5, 4.375, 7.875, 14.4375, 26.8125, 50.27, 94.96, 180.4, 344.5.
STREAK = [1, 1.5, 2.5, 4.375, 7.875, 14.4375, 26.8125, 50.2734375, 94.9609375, 180.42578125, 344.44921875]
counts = st.integers(0, 400)
deltas = st.floats(1e-12, 0.9)


def test_evidence_by_hand():
    # w = 1, l = 0: B(3/2, 1/2)/π · 2 = (π/2)/π · 2 = 1. w = l = 1: B(3/2, 3/2)/π · 4 = (π/8)/π · 4 = 1/2.
    assert math.exp(log_evidence(1, 0)) == pytest.approx(1)
    assert math.exp(log_evidence(1, 1)) == pytest.approx(0.5)
    assert log_evidence(0, 0) == pytest.approx(0)
    assert np.exp(log_evidence(np.arange(1, 12), 0)) == pytest.approx(STREAK)


@given(counts, counts)
def test_evidence_is_a_product_of_bets(wins, losses):
    """M(½) is the fortune of a gambler who at each duel stakes (w+½)/(n+1) of it on a win and the rest on a loss."""
    fortune, w = 0.0, 0
    for k in range(wins + losses):
        won = k < wins
        fortune += math.log(2 * ((w if won else k - w) + 0.5) / (k + 1))
        w += won
    assert log_evidence(wins, losses) == pytest.approx(fortune, abs=1e-9)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (3, 7), (12, 5), (2.5, 4.5), (0.5, 0.5)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.83])
def test_the_martingale_is_the_mixture_of_likelihood_ratios(wins, losses, p):
    def likelihood(q):
        return q**wins * (1 - q) ** losses

    # The weight of `quad` is q^(−½) (1−q)^(−½), the density of Beta(½, ½) times π.
    mixed, _ = integrate.quad(likelihood, 0, 1, weight="alg", wvar=(-0.5, -0.5))
    assert log_martingale(wins, losses, p) == pytest.approx(math.log(mixed / math.pi / likelihood(p)), abs=1e-7)


@pytest.mark.parametrize("p", [0.03, 0.5, 0.7])
@pytest.mark.parametrize("n", [1, 2, 10, 200])
def test_its_mean_is_one(n, p):
    w = np.arange(n + 1)
    log_chance = [math.log(math.comb(n, k)) + k * math.log(p) + (n - k) * math.log(1 - p) for k in w]
    assert np.sum(np.exp(log_martingale(w, n - w, p) + log_chance)) == pytest.approx(1)


@pytest.mark.parametrize("mean", [0.2, 0.5, 0.65])
def test_with_ties_as_halves_it_does_not_rise(mean):
    """From any state, whatever the share of ties, the mean of M after the next duel is at most M now."""
    for doubled_wins, doubled_losses in itertools.product(range(12), repeat=2):
        w, l = doubled_wins / 2, doubled_losses / 2  # noqa: E741
        now = math.exp(log_martingale(w, l, mean))
        won, lost, tied = np.exp(log_martingale([w + 1, w, w + 0.5], [l, l + 1, l + 0.5], mean))
        assert mean * won + (1 - mean) * lost == pytest.approx(now)
        for ties in (0.1, 2 * min(mean, 1 - mean)):
            assert (mean - ties / 2) * won + (1 - mean - ties / 2) * lost + ties * tied < now


@given(counts, counts, st.integers(1, 100))
def test_a_tie_as_a_half_only_weakens_the_evidence(wins, losses, ties):
    assert log_evidence(wins + ties / 2, losses + ties / 2) < log_evidence(wins, losses)


def test_evidence_of_many_duels():
    # Stirling: ln M(½) → n kl(w/n, ½) + ½ ln(2/(πn)) as n grows.
    for n in (10**6, 10**9):
        assert log_evidence(n / 2, n / 2) == pytest.approx(0.5 * math.log(2 / (math.pi * n)), abs=1e-5)
        lead = 20 * math.sqrt(n)  # n kl(½ + x, ½) = 2nx² + O(nx⁴), x = lead/2n
        expected = lead**2 / (2 * n) + lead**4 / (12 * n**3) + 0.5 * math.log(2 / (math.pi * n))
        assert log_evidence((n + lead) / 2, (n - lead) / 2) == pytest.approx(expected, abs=1e-3)
    # A streak: M(½) = B(n+½, ½)/π 2^n → 2^n/√(πn).
    assert log_evidence(10**9, 0) == pytest.approx(10**9 * math.log(2) - 0.5 * math.log(math.pi * 1e9), rel=1e-12)


@pytest.mark.parametrize("delta", [0.05, 0.00625])
def test_villes_inequality_exactly(delta):
    """No simulation: the chance that an even pair is ever called certain, within 80 duels."""

    def sure(w, l, t):  # noqa: E741
        return log_evidence(w, l) >= -math.log(delta)

    def apart(w, l, t):  # noqa: E741
        return np.abs(w - l) > 1.96 * np.sqrt(w + l)

    for tie in (0, 0.4):
        assert 0.4 * delta < ever((1 - tie) / 2, tie, sure, 80) < delta
    # The usual 95 % interval, looked at as often, is wrong in far more than 5 %.
    assert ever(0.5, 0, apart, 80) > 0.25


@pytest.mark.parametrize("tie", [0, 0.3, 0.6])
@pytest.mark.parametrize("p", [0.35, 0.5])
def test_intervals_with_ties_hold_exactly(tie, p):
    def missed(w, l, t):  # noqa: E741
        return log_martingale(w + t / 2, l + t / 2, p) >= -math.log(0.05)

    assert 0 < ever(p - tie / 2, tie, missed, 80) < 0.05


def test_intervals_by_hand():
    # w = 1, l = 0: M(p) = 1/(2p), so M(p) < 1/δ above δ/2. w = l = 1: M(p) = 1/(8p(1−p)): p(1−p) > δ/8.
    assert interval(0, 0, 0.05) == (0, 1)
    assert interval(1, 0, 0.05) == pytest.approx((0.025, 1), rel=1e-12)
    assert interval(0, 1, 0.05) == pytest.approx((0, 0.975), rel=1e-12)
    root = math.sqrt(1 - 0.05 / 2)
    assert interval(1, 1, 0.05) == pytest.approx(((1 - root) / 2, (1 + root) / 2), rel=1e-12)
    # l = 0: p^w = δ B(w+½, ½)/π, and B(w+½, ½)/π 2^w = M(½).
    for w, m in enumerate(STREAK, 1):
        assert interval(w, 0, 0.01)[0] == pytest.approx((0.01 * m / 2**w) ** (1 / w), rel=1e-12)


@pytest.mark.parametrize(("wins", "losses"), [(3, 7), (40, 2), (0, 9), (10.5, 10.5), (150, 90)])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-4])
def test_intervals_against_a_fine_grid(wins, losses, delta):
    p = np.linspace(0, 1, 200_001)[1:-1]
    inside = p[log_martingale(wins, losses, p) < -math.log(delta)]
    low, high = interval(wins, losses, delta)
    assert low == pytest.approx(inside[0], abs=1e-5)
    assert high == pytest.approx(inside[-1], abs=1e-5)


@given(counts, counts, deltas)
def test_the_ends_are_where_the_martingale_crosses(wins, losses, delta):
    low, high = interval(wins, losses, delta)
    assert low < high
    if wins + losses:
        assert low <= wins / (wins + losses) <= high
    assert (low == 0) == (wins == 0)
    assert high == 1 if losses == 0 else interval(losses, wins, delta)[0] > 0  # it may round to 1
    for end in (low, high):
        if 0 < end < 1 - 1e-6:  # nearer to 1 a float cannot say where it is
            assert log_martingale(wins, losses, end) == pytest.approx(-math.log(delta), abs=1e-6)


@given(counts, counts, deltas)
def test_certain_exactly_if_a_half_is_outside(wins, losses, delta):
    gap = log_evidence(wins, losses) + math.log(delta)
    low, high = interval(wins, losses, delta)
    if abs(gap) > 1e-9:
        assert (gap > 0) == (not low <= 0.5 <= high)
        assert (gap > 0 and wins > losses) == (low > 0.5)


@given(counts, counts, deltas)
def test_intervals_move_the_right_way(wins, losses, delta):
    low, high = interval(wins, losses, delta)
    more_low, more_high = interval(wins + 1, losses, delta)
    assert more_low > low
    assert more_high >= high
    wide_low, wide_high = interval(wins, losses, delta / 2)
    assert wide_low <= low
    assert wide_high >= high
    assert interval(losses, wins, delta) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize("delta", [0.9, 0.05, 1e-12])
def test_intervals_of_extreme_counts(delta):
    many = 1e9
    for w, l in itertools.product((0, 0.5, 1, 1000, many), repeat=2):  # noqa: E741
        low, high = interval(w, l, delta)
        assert 0 <= low <= high <= 1
        for end in (low, high):
            if 0 < end < 1 - 1e-6:
                assert log_martingale(w, l, end) == pytest.approx(-math.log(delta), abs=1e-4)
    # The normal approximation: n kl ≈ 2n x² = ln(1/δ) + ½ ln(πn/2).
    n = 2 * many
    x = math.sqrt((math.log(1 / delta) + 0.5 * math.log(math.pi * n / 2)) / (2 * n))
    assert interval(many, many, delta) == pytest.approx((0.5 - x, 0.5 + x), abs=1e-9)
    # Wins alone: −n ln p = ln(1/δ) + ½ ln(πn).
    assert 1 - interval(many, 0, delta)[0] == pytest.approx(
        (math.log(1 / delta) + 0.5 * math.log(math.pi * many)) / many, rel=1e-6
    )


def test_intervals_of_arrays():
    wins, losses, delta = np.array([[0], [3]]), np.array([1, 2, 5.5]), 0.05
    low, high = interval(wins, losses, delta)
    assert low.shape == high.shape == (2, 3)
    for (i, j), end in np.ndenumerate(low):
        assert (end, high[i, j]) == pytest.approx(interval(wins[i, 0], losses[j], delta), rel=1e-12)


@pytest.mark.parametrize(
    "bad", [(-1, 0, 0.1), (0, -0.5, 0.1), (math.inf, 1, 0.1), (math.nan, 1, 0.1), (1, 1, 0), (1, 1, 1)]
)
def test_intervals_that_are_refused(bad):
    with refused("an interval needs wins and losses of 0 or more, all finite, and a delta above 0 and below 1"):
        interval(*bad)
