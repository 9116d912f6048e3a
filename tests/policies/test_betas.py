"""Beta posteriors: the chance of exceeding ½ against scipy, its bookkeeping, draws above ½."""

import math

import numpy as np
import pytest
from scipy import special, stats

from duels.engine import compiling
from duels.policies import betas

COUNTS = [1, 1.5, 2, 2.5, 3, 7, 10.5, 30, 100, 333.5, 1000, 1e4, 1e5 + 0.5, 1e6, 1e7]


def grid():
    pairs = [(a, b) for a in COUNTS for b in COUNTS]
    for n in (10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 2e7):  # where the chance is neither 0 nor 1: within 36 deviations
        for z in np.linspace(-36, 36, 37):
            lead = round(z * math.sqrt(n))
            if abs(lead) <= n - 2:
                pairs.append(((n + lead) / 2, (n - lead) / 2))
    return pairs


def test_the_chance_above_half_agrees_with_scipy():
    seen = 0
    for a, b in grid():
        ours, theirs = betas.chance_above_half(a, b), special.betaincc(a, b, 0.5)
        if theirs > 1e-290:
            assert ours == pytest.approx(theirs, rel=1e-10), (a, b)
            seen += theirs < 1e-3
        else:
            assert ours < 1e-280, (a, b)
    assert seen > 50  # small chances are in the grid


def test_by_hand():
    # P(Beta(5, 1) > ½) = 1 − (½)⁵; P(Beta(1, 3) > ½) = (½)³; P(Beta(2, 3) > ½) = P(≤ 1 success in 4 tosses) = 5/16.
    assert betas.chance_above_half(5, 1) == pytest.approx(31 / 32, rel=1e-14)
    assert betas.chance_above_half(1, 3) == pytest.approx(1 / 8, rel=1e-14)
    assert betas.chance_above_half(2, 3) == pytest.approx(5 / 16, rel=1e-14)
    # Γ(2)/(Γ(2)Γ(2)·4) = ¼; Γ(5)/(Γ(3)Γ(4)·32) = 24/384.
    assert betas.half_mass(1, 1) == pytest.approx(1 / 4, rel=1e-14)
    assert betas.half_mass(2, 3) == pytest.approx(1 / 16, rel=1e-14)
    # KL(0.9, ½) = ln 2 + 0.9 ln 0.9 + 0.1 ln 0.1
    expected = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    assert betas.distance_from_half(0.8) == pytest.approx(expected, rel=1e-13)


def test_compiled_is_interpreted():
    compiled = compiling.compile_with(betas.chance_above_half)
    for a, b in grid()[::3]:
        assert compiled(float(a), float(b)) == betas.chance_above_half(float(a), float(b))


@pytest.mark.parametrize(("chance_of_win", "tie"), [(0.5, 0.0), (0.5, 0.05), (0.58, 0.0), (0.02, 0.01)])
def test_learning_duel_by_duel_keeps_the_chance(chance_of_win, tie):
    learn = compiling.compile_with(betas.learn)
    rng = np.random.default_rng(1)
    wins, chance, mass = np.zeros((2, 2)), np.full((2, 2), 0.5), np.full((2, 2), 0.25)
    for n in range(20_000):
        outcome = 0.5 if rng.random() < tie else float(rng.random() < chance_of_win)
        i = n % 2
        wins[i, 1 - i] += outcome if i == 0 else 1 - outcome
        wins[1 - i, i] += 1 - outcome if i == 0 else outcome
        learn(wins, chance, mass, i, 1 - i, outcome if i == 0 else 1 - outcome)
        if n < 300 or n % 97 == 0:
            assert chance[0, 1] == pytest.approx(special.betaincc(wins[0, 1] + 1, wins[1, 0] + 1, 0.5), abs=1e-12)
            assert chance[0, 1] + chance[1, 0] == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, 1), (1, 1.5), (1, 6), (4, 2), (3, 12.5), (40, 55), (60, 100), (900, 1000), (200, 700), (5e5, 503e3)],
)
def test_draws_above_half(a, b):
    """Kolmogorov-Smirnov against the truncated distribution; ten pairs, each with a false alarm in 10⁷."""
    rng = np.random.default_rng(3)
    draw = compiling.compile_with(betas.draw_above_half)
    sample = np.array([draw(float(a), float(b), rng) for _ in range(20_000)])
    above = stats.beta.sf(0.5, a, b)
    assert sample.min() > 0.5
    assert stats.kstest(sample, lambda x: 1 - stats.beta.sf(x, a, b) / above).pvalue > 1e-7


def test_the_largest_of_several_draws():
    # Beta(2, 1), Beta(1, 2) and Beta(1, 1): worked in test_self_sparring.py, 0.6, 0.1 and 0.3 of the time.
    rng = np.random.default_rng(4)
    a, b = np.array([2.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0])
    counts = np.bincount([betas.argmax_beta(a, b, rng) for _ in range(20_000)])
    assert stats.chisquare(counts, [12_000, 2_000, 6_000]).pvalue > 1e-6


def test_the_largest_draw_without_the_hopeless_ones():
    """As above; and against exact chances where draws are left out, both with a false alarm in 10⁶."""
    rng = np.random.default_rng(5)
    a, b = np.array([2.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0])
    counts = np.bincount([betas.argmax_beta_pruned(a, b, rng) for _ in range(20_000)])
    assert stats.chisquare(counts, [12_000, 2_000, 6_000]).pvalue > 1e-6
    a, b = np.array([30.0, 300.0, 33.0, 2.0]), np.array([300.0, 30.0, 3.0, 1.0])  # the first is never the largest
    largest = compiling.compile_with(betas.argmax_beta_pruned)
    counts = np.bincount([largest(a, b, rng) for _ in range(20_000)], minlength=4)
    x = np.linspace(0, 1, 20_001)
    below, density = stats.beta.cdf(x[:, None], a, b), stats.beta.pdf(x[:, None], a, b)
    chances = [np.trapezoid(density[:, k] * np.delete(below, k, axis=1).prod(axis=1), x) for k in range(4)]
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], np.array(chances[1:]) / sum(chances[1:]) * 20_000).pvalue > 1e-6


def test_hopeless_draws_are_left_out():
    """Whatever the order: the arm with the highest mean comes first, and only those near its draw follow."""

    class Counting:
        def __init__(self):
            self.drawn, self.rng = [], np.random.default_rng(6)

        def beta(self, a, b):
            self.drawn.append((a, b))
            return self.rng.beta(a, b)

    a, b = np.array([300.0, 900.0, 890.0, 1.0]), np.array([700.0, 100.0, 110.0, 1.0])
    coin = Counting()
    assert betas.argmax_beta_pruned(a, b, coin) in (1, 2, 3)
    assert coin.drawn == [(900.0, 100.0), (890.0, 110.0), (1.0, 1.0)]
