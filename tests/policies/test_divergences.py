"""The kernels on divergences against scipy, over a wide grid with its extremes."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from duels import theory
from duels.engine import compiling
from duels.policies import divergences
from duels.policies.divergences import evidence, kl, kl_lower, kl_upper

MEANS = [0, 1e-300, 1e-12, 1e-6, 0.001, 0.1, 0.3, 0.5, 0.5 + 1e-9, 0.7, 0.99, 1 - 1e-6, 1 - 1e-12, 1 - 2**-53, 1]
COUNTS = [1, 2, 10, 1e3, 1e6, 1e12]
BUDGETS = [0, 1e-18, 1e-9, 1e-3, 0.1, 1, 5, 20, 70, 1000]


def root(mean, d):
    """The largest q with kl(mean, q) ≤ d by bracketing."""
    top = math.nextafter(1, 0)
    if mean >= top or theory.kl(mean, top) <= d:
        return 1.0
    return brentq(lambda q: theory.kl(mean, q) - d, mean, top, xtol=1e-16, rtol=1e-15) if d > 0 else mean


def test_kl_is_scipys_and_theorys():
    rng = np.random.default_rng(0)
    p, q = rng.random((2, 5000))
    q[:2500] = np.clip(p[:2500] + rng.normal(0, 1e-4, 2500), 1e-9, 1 - 1e-9)
    ours = np.array([kl(a, b) for a, b in zip(p, q)])
    assert ours == pytest.approx(rel_entr(p, q) + rel_entr(1 - p, 1 - q), abs=1e-13)
    assert ours == pytest.approx(theory.kl(p, q), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("p", [0, 1e-300, 0.3, 1])
@pytest.mark.parametrize("q", [0, 1e-300, 0.3, 1 - 2**-53, 1])
def test_kl_at_the_ends(p, q):
    assert kl(p, q) == pytest.approx(theory.kl(p, q), rel=1e-12)


def test_kl_by_hand():
    assert kl(0, 0.5) == kl(1, 0.5) == pytest.approx(math.log(2), rel=1e-15)
    assert kl(0.25, 0.5) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5), rel=1e-15)  # 0.130812
    assert kl(0, 0) == kl(1, 1) == 0
    assert kl(0.5, 0) == kl(0.5, 1) == kl(0, 1) == math.inf


@pytest.mark.parametrize("mean", MEANS)
def test_upper_and_lower_are_the_roots(mean):
    for n in COUNTS:
        for budget in BUDGETS:
            upper, lower = kl_upper(mean, n, budget), kl_lower(mean, n, budget)
            assert mean <= upper <= 1
            assert 0 <= lower <= mean + 1e-16
            assert upper == pytest.approx(root(mean, budget / n), abs=1e-12)
            assert lower == pytest.approx(1 - root(1 - mean, budget / n), abs=1e-12)


def test_upper_by_hand():
    assert kl_upper(0, 2, 2 * math.log(4)) == pytest.approx(0.75)  # −ln(1 − q) = ln 4
    assert kl_upper(1, 5, 0.1) == 1
    assert kl_upper(0.3, 0, 1) == 1
    assert kl_lower(0.3, 0, 1) == 0
    assert kl_upper(0.5, 100, 0) == kl_lower(0.5, 100, 0) == 0.5


def test_upper_never_exceeds_pinskers_bound():
    for mean in MEANS:
        for d in (1e-6, 0.01, 0.3):
            assert kl_upper(mean, 1, d) <= mean + math.sqrt(d / 2) + 1e-15


def test_evidence():
    assert evidence(2.0, 0.0) == evidence(0.0, 2.0) == pytest.approx(2 * math.log(2), abs=2**-36)
    assert evidence(1.5, 1.5) == 0
    rng = np.random.default_rng(0)
    for won, lost in rng.integers(0, 10**6, (500, 2)):
        n = won + lost
        assert evidence(float(won), float(lost)) == pytest.approx(n * theory.kl(won / n, 0.5), abs=1e-9, rel=1e-12)


def test_sums_of_evidence_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    terms = [evidence(float(a), float(b)) for a, b in rng.integers(1, 2000, (64, 2))]
    assert len({sum(rng.permutation(terms)) for _ in range(50)}) == 1


def test_compiled_and_interpreted_agree():
    rng = np.random.default_rng(0)
    grid = [(m, n, b) for m in MEANS for n in COUNTS for b in BUDGETS]
    grid += [(m, float(n), b) for m, n, b in zip(rng.random(3000), rng.integers(1, 10**6, 3000), rng.random(3000) * 40)]
    for kernel in (kl_upper, kl_lower):
        compiled = compiling.compile_with(kernel)
        assert [compiled(float(m), float(n), float(b)) for m, n, b in grid] == [kernel(m, n, b) for m, n, b in grid]
    compiled = compiling.compile_with(evidence)
    for won, lost in rng.integers(0, 10**5, (3000, 2)).astype(float):
        assert compiled(won, lost) == divergences.evidence(won, lost)
