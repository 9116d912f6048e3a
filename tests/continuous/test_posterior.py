"""What people read of a tuning study: expectation propagation and the weights of hypotheses, against other ways."""

import math

import numpy as np
import pytest
from scipy.special import expit, logsumexp, ndtri

from duels.continuous import History, Memory, Situation, load_policy
from duels.continuous.model.laplace import find_mode
from duels.continuous.model.model import (
    LENGTH_MEDIAN,
    LENGTH_SPREAD,
    SCALE_MEDIAN,
    SCALE_SPREAD,
    Answers,
    Hyperparameters,
    Model,
    dueling_covariance,
)
from duels.continuous.model.posterior import (
    FLAT,
    Differences,
    Posterior,
    average_answer,
    find_sites,
    posterior,
    propose,
)
from duels.continuous.spaces import Space
from duels.continuous.tuning.result import advice

LINE = Space({"x": (0.0, 1.0)})


@pytest.mark.parametrize("outcome", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("mean", [-12.0, -3.0, 0.0, 2.0])
@pytest.mark.parametrize("variance", [1e-4, 0.3, 5.0, 80.0])
def test_averages_of_the_likelihood(outcome, mean, variance):
    """Of a normal g, on a fine grid: the average, and the mean and variance of g given the answer."""
    g = mean + math.sqrt(variance) * np.linspace(-11, 11, 20_001)
    weight = np.exp(-0.5 * (g - mean) ** 2 / variance) * expit(g) ** outcome * expit(-g) ** (1 - outcome)
    normal = np.exp(-0.5 * (g - mean) ** 2 / variance).sum()
    center = weight @ g / weight.sum()
    spread = weight @ (g - center) ** 2 / weight.sum()
    value, slope, bend = average_answer(outcome, mean, variance)
    assert value == pytest.approx(math.log(weight.sum() / normal), abs=1e-3)
    assert mean + variance * slope == pytest.approx(center, abs=2e-3 * math.sqrt(variance))
    assert variance - variance**2 * bend == pytest.approx(spread, rel=2e-3)


def draw_by_slices(covariance, outcome, chains=150, steps=200, seed=0):
    """Draws of the differences by elliptical slice sampling (Murray, Adams & MacKay 2010), many chains at once."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def log_likelihood(g):
        return ((outcome - 1.0)[:, None] * g - np.logaddexp(0.0, -g)).sum(axis=0)

    g, kept = root @ rng.standard_normal((len(outcome), chains)), []
    for step in range(steps):
        other = root @ rng.standard_normal(g.shape)
        least = log_likelihood(g) + np.log(rng.random(chains))
        angle = rng.uniform(0, 2 * math.pi, chains)
        low, high = angle - 2 * math.pi, angle.copy()
        new = g * np.cos(angle) + other * np.sin(angle)
        while (bad := log_likelihood(new) < least).any():
            low, high = np.where(bad & (angle < 0), angle, low), np.where(bad & (angle >= 0), angle, high)
            angle = np.where(bad, rng.uniform(low, high), angle)
            new = g * np.cos(angle) + other * np.sin(angle)
        g = new
        if step >= steps // 2:
            kept.append(g)
    return np.hstack(kept)


def test_propagation_against_sampling_where_the_scale_is_large():
    """Laplace's method is off by half a standard deviation there."""
    rng = np.random.default_rng(3)
    left, right = rng.random((2, 20, 1))
    outcome = (np.abs(left - 0.4) < np.abs(right - 0.4))[:, 0].astype(float)
    covariance = dueling_covariance(left, right, np.array([4.0]), np.zeros(1, np.int64), 30.0)
    drawn = draw_by_slices(covariance, outcome)
    mean, spread = drawn.mean(axis=1), drawn.std(axis=1)
    errors = [np.abs((mode(covariance, outcome).difference - mean) / spread).max() for mode in (find_sites, find_mode)]
    assert errors[0] < 0.15
    assert errors[1] > 0.4
    found = Model(
        Answers(left, right, outcome), np.zeros(1, np.int64), Hyperparameters(np.array([0.25]), 30.0), find_sites
    )
    spreads = [found.differences_to(one[None, :], other)[1][0] for one, other in zip(left, right)]
    assert spreads == pytest.approx(spread, rel=0.12)


def test_quantiles_of_a_mixture_with_nothing_in_it():
    means, spreads = np.array([[1.0, -2.0], [0.0, 3.0]]), np.array([[1.0, 0.5], [2.0, 1.0]])
    found = Differences(means, spreads, np.array([0.5, 0.3]), 0.2)
    rng = np.random.default_rng(0)
    for q in range(2):
        drawn = np.concatenate(
            [rng.normal(means[k, q], spreads[k, q], n) for k, n in enumerate((500_000, 300_000))] + [np.zeros(200_000)]
        )
        for level in (0.025, 0.25, 0.5, 0.75, 0.975):
            assert found.quantile(level)[q] == pytest.approx(np.quantile(drawn, level), abs=0.02)
        assert found.positive[q] == pytest.approx((drawn > 0).mean(), abs=0.003)
        assert found.share[q] == pytest.approx(expit(drawn).mean(), abs=0.02)


@pytest.mark.parametrize("count", [8, 40])
def test_weights_against_a_fine_grid_of_hyperparameters(count):
    """Means, spreads and the weight of the flat hypothesis, from 600 hyperparameters of equal prior probability."""
    rng = np.random.default_rng(count)
    left, right = rng.random((2, count, 1))
    outcome = (rng.random(count) < expit(12 * ((right - 0.4) ** 2 - (left - 0.4) ** 2)[:, 0])).astype(float)
    answers, category = Answers(left, right, outcome), np.zeros(1, np.int64)
    memory = Memory()
    found = posterior(answers, category, propose(answers, category, memory.hyperparameters(answers, category)))
    normal = ndtri((np.arange(25) + 0.5) / 25)
    models = [
        Model(
            answers,
            category,
            Hyperparameters(
                np.array([LENGTH_MEDIAN * math.exp(LENGTH_SPREAD * a)]), SCALE_MEDIAN * math.exp(SCALE_SPREAD * b)
            ),
            find_sites,
        )
        for a in normal
        for b in normal
    ]
    logs = np.array([model.mode.evidence for model in models])
    likelihood = (1 - FLAT) * math.exp(logsumexp(logs) - math.log(len(logs)) + count * math.log(2))
    assert found.flat == pytest.approx(FLAT / (FLAT + likelihood), abs=0.05)
    assert found.weights.sum() + found.flat == pytest.approx(1)
    weights = np.exp(logs - logsumexp(logs)) * (1 - FLAT / (FLAT + likelihood))
    fine = Posterior(models, weights, FLAT / (FLAT + likelihood))
    points, here = np.linspace(0, 1, 6)[:, None], np.array([0.42])
    ours, theirs = found.differences_to(points, here), fine.differences_to(points, here)
    width = theirs.quantile(0.975) - theirs.quantile(0.025)
    for level in (0.025, 0.5, 0.975):
        assert (np.abs(ours.quantile(level) - theirs.quantile(level)) < 0.12 * width).all()
    assert ours.positive == pytest.approx(theirs.positive, abs=0.05)


def test_the_flat_hypothesis_has_its_prior_weight_without_answers():
    nothing = History(np.full((1, 1), 0.5), np.full((1, 1), 0.5), np.full(1, 0.5))  # a setting against itself
    known = Situation(LINE, nothing, np.random.default_rng(0)).posterior
    assert known.flat == pytest.approx(FLAT, abs=0.02)


@pytest.mark.deep
def test_bands_and_chances_are_calibrated_over_the_prior():
    """Truths from the model's own prior, hyperparameters included, one in five flat; random pairs, 20 answers.

    300 studies. Pointwise coverage is within 93 to 97 percent up to 2.6 standard errors, and the mean chance within
    0.05 of the share that is better, so it fails by chance in about 1 of 100 if the bars are just met.
    """
    covered, chances, better, eubo = [], [], [], load_policy("eubo")
    for seed in range(300):
        rng = np.random.default_rng(seed)
        length = LENGTH_MEDIAN * math.exp(LENGTH_SPREAD * rng.standard_normal())
        scale = 0.0 if rng.random() < FLAT else SCALE_MEDIAN * math.exp(SCALE_SPREAD * rng.standard_normal())
        grid = np.round(np.linspace(0, 1, 201), 6)
        r = math.sqrt(5) * np.abs(grid[:, None] - grid) / length
        values, vectors = np.linalg.eigh(scale * (1 + r + r * r / 3) * np.exp(-r))
        truth = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(201))
        one, other = rng.integers(0, 201, (2, 20))
        outcome = (rng.random(20) < expit(truth[one] - truth[other])).astype(float)
        answers = Answers(grid[one][:, None], grid[other][:, None], outcome)
        found = advice(eubo, LINE, History(*answers), seed, Memory(), 0.95, answers)
        at = np.interp
        here, there = found.best.setting["x"], found.best.runner_up["x"]
        (part,) = found.slices["parameters"]
        values = np.array(part["values"])
        ahead = at(values, grid, truth) - at(here, grid, truth)
        inside = (ahead >= np.array(part["lower"]) - 1e-9) & (ahead <= np.array(part["upper"]) + 1e-9)
        covered.append(inside[values != here].mean())
        chances.append(found.chance)
        better.append(at(here, grid, truth) > at(there, grid, truth) + 1e-12)
    error = np.std(covered) / math.sqrt(len(covered))
    assert 0.93 - 2.6 * error < np.mean(covered) < 0.97 + 2.6 * error
    gap = np.array(chances) - better
    assert abs(gap.mean()) < 0.05 + 2.6 * gap.std() / math.sqrt(len(gap))
