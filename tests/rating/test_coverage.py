"""Intervals hold as often as they promise, also where the model is wrong.

Each test draws RUNS tables. The number in which an interval holds is binomial; with the promised probability 0.95 its
error is √(0.95 · 0.05 / RUNS). A test fails beyond 4 errors, plus a point for the approximation of a finite table:
false alarms are rarer than one in 10,000 for each interval.
"""

import numpy as np
import pytest
from scipy.special import expit

from duels.rating import bradley_terry, fitting, rao_kupper
from duels.rating.counts import cells_of_pairs
from duels.rating.estimates import Intervals, estimate
from duels.rating.fitting import _slope_products as right_products
from duels.rating.fitting import fit

THETA = np.array([0.6, 0.3, 0.1, -0.2, -0.8])
EACH = 80  # votes per pair
FIRST, SECOND = np.triu_indices(5, 1)


def shares(eta, wrong=0.0):
    """(pairs, 3) probabilities of win, loss and tie, by Rao and Kupper; `wrong` adds a circle, which no model has."""
    circle = wrong * np.where((FIRST + SECOND) % 2, 1, -1)
    delta = THETA[FIRST] - THETA[SECOND] + circle
    win, loss = expit(delta - eta), expit(-delta - eta)
    return np.stack([win, loss, (1 - win - loss).clip(0)], axis=1)


def table(rng, chances, each=EACH):
    counts = rng.multinomial(each, chances)
    wins, ties = np.zeros((2, 5, 5), dtype=np.int64)
    wins[FIRST, SECOND], wins[SECOND, FIRST], ties[FIRST, SECOND] = counts.T
    return cells_of_pairs(wins, ties + ties.T)


def truth(model, chances):
    """The strengths that endless votes would give."""
    wins, ties = np.zeros((2, 5, 5))
    wins[FIRST, SECOND], wins[SECOND, FIRST], ties[FIRST, SECOND] = 1e6 * chances.T
    return fit(model, cells_of_pairs(wins, ties + ties.T)).x[:5]


def held(model, chances, kind, runs, seed):
    """The shares of runs in which each arm's interval holds its strength, and in which its ranks hold its rank."""
    rng, strength = np.random.default_rng(seed), truth(model, chances)
    ranks = 1 + (strength[:, None] < strength).sum(axis=1)
    inside, ranked = np.zeros((2, 5))
    for run in range(runs):
        found = estimate(model, table(rng, chances), None, Intervals(kind, 0.95, 200, run))
        inside += (found.lower <= strength) & (strength <= found.upper)
        best, worst = 1 + found.above.sum(axis=0), 5 - found.above.sum(axis=1)
        ranked += (best <= ranks) & (ranks <= worst)
    return inside / runs, ranked / runs


CASES = {
    "bradley-terry, no ties": (bradley_terry, 0.0, 0.0),
    "bradley-terry, many ties": (bradley_terry, 1.0, 0.0),
    "bradley-terry, not transitive": (bradley_terry, 0.3, 0.5),
    "rao-kupper": (rao_kupper, 0.5, 0.0),
    "rao-kupper, not transitive": (rao_kupper, 0.5, 0.5),
}


def check(case, kind, runs, seed):
    model, eta, wrong = CASES[case]
    inside, ranked = held(model, shares(eta, wrong), kind, runs, seed)
    slack = 4 * np.sqrt(0.95 * 0.05 / runs) + 0.01
    assert (np.abs(inside - 0.95) <= slack).all(), inside
    assert (ranked >= 0.95 - slack).all(), ranked


@pytest.mark.parametrize("case", ["bradley-terry, many ties", "rao-kupper"])
def test_the_sandwich_covers(case):
    check(case, "sandwich", 300, 1)


def half(fitted, clusters):
    found = right_products(fitted, clusters)
    return found._replace(products=found.products / 2)


def curvature(fitted, clusters):
    found = right_products(fitted, clusters)
    return found._replace(products=fitting.information(fitted.model, fitted.cells, fitted.solution))


WRONG = [pytest.param(half, 300, 1), pytest.param(curvature, 4000, 2, marks=pytest.mark.deep)]


@pytest.mark.parametrize(("products", "runs", "seed"), WRONG)
def test_wrong_errors_would_fail(products, runs, seed, monkeypatch):
    """Half of the variance covers in 83 % of the runs. With many ties, the information alone is far too wide."""
    monkeypatch.setattr(fitting, "_slope_products", products)
    with pytest.raises(AssertionError):
        check("bradley-terry, many ties", "sandwich", runs, seed)


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES)
def test_the_sandwich_covers_in_many_runs(case):
    check(case, "sandwich", 4000, 2)


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES)
def test_the_bootstrap_covers(case):
    check(case, "bootstrap", 1000, 3)
