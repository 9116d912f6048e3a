"""The preference model against brute force: numerical integration, finite differences, and cases worked by hand."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from duels.continuous.model.laplace import evidence_weights, find_mode
from duels.continuous.model.model import (
    Answers,
    Hyperparameters,
    Model,
    Objective,
    dueling_covariance,
    fit_hyperparameters,
    prior_hyperparameters,
    square_root,
)
from duels.continuous.model.posterior import find_sites


def duels_of(count, dimensions, seed=0, category=()):
    rng = np.random.default_rng(seed)
    left, right = rng.random((2, count, dimensions))
    for k in category:
        left[:, k], right[:, k] = (rng.integers(0, 3, (2, count)) + 0.5) / 3
    outcome = rng.choice([0.0, 0.5, 1.0], count)
    return Answers(left, right, outcome), np.array([int(k in category) for k in range(dimensions)])


def literal_kernel(x, y, lengths, scale, category):
    """Matérn-5/2 with a lengthscale per coordinate, as the textbook has it; choices that differ are at distance 1."""
    gaps = [float(a != b) if c else a - b for a, b, c in zip(x, y, category)]
    r = math.sqrt(sum((gap / length) ** 2 for gap, length in zip(gaps, lengths)))
    return scale * (1 + math.sqrt(5) * r + 5 * r**2 / 3) * math.exp(-math.sqrt(5) * r)


def exact(answers, category, parameters, points):
    """Evidence, and mean and variance of f at the points, by Gauss–Hermite integration over the duels' differences."""
    kernel = lambda x, y: literal_kernel(x, y, parameters.lengthscales, parameters.scale, category)  # noqa: E731
    duel = list(zip(answers.left, answers.right))
    between = np.array([[kernel(a, c) + kernel(b, d) - kernel(a, d) - kernel(b, c) for c, d in duel] for a, b in duel])
    cross = np.array([[kernel(a, x) - kernel(b, x) for x in points] for a, b in duel])
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    lower = np.linalg.cholesky(between + 1e-12 * np.eye(len(between)))
    z = np.array(list(itertools.product(nodes, repeat=len(duel))))
    prior = np.prod(list(itertools.product(weights / math.sqrt(2 * math.pi), repeat=len(duel))), axis=1)
    g = z @ lower.T
    likelihood = np.prod(expit(g) ** answers.outcome * expit(-g) ** (1 - answers.outcome), axis=1)
    evidence = float(prior @ likelihood)
    weight = prior * likelihood / evidence
    given_g = g @ np.linalg.solve(between + 1e-12 * np.eye(len(between)), cross)  # E[f | g]
    mean = weight @ given_g
    residual = parameters.scale - np.einsum("iq,iq->q", cross, np.linalg.solve(between, cross))
    return math.log(evidence), mean, weight @ (given_g - mean) ** 2 + residual


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("scale", [5.0, 60.0])
def test_propagation_against_integration(count, scale):
    answers, category = duels_of(count, 2, seed=count)
    parameters, points = Hyperparameters(np.array([0.4, 0.2]), scale), np.random.default_rng(1).random((4, 2))
    evidence, mean, variance = exact(answers, category, parameters, points)
    model = Model(answers, category, parameters, find_sites)
    found_mean, found_variance = model.mean_and_variance(points)
    assert model.mode.evidence == pytest.approx(evidence, abs=0.05)
    assert found_mean == pytest.approx(mean, abs=0.03 * math.sqrt(scale))
    assert found_variance == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_against_the_exact_posterior(count, scale):
    """Laplace's method is exact for small scales; at a scale of 1 its errors are a few percent of it.

    Measured errors are at most 0.031 (evidence), 0.036 (mean) and 0.017 (variance) at a scale of 1, and at most
    0.0007, 0.0002 and 0.0001 at 0.1.
    """
    answers, category = duels_of(count, 2, seed=count, category=[1])
    answers = answers._replace(outcome=np.array([1.0, 0.0, 0.5])[:count])
    parameters = Hyperparameters(np.array([0.4, 0.7]), scale)
    points = np.array([[0.2, 1 / 6], [0.9, 5 / 6], *answers.left])
    evidence, mean, variance = exact(answers, category, parameters, points)
    model = Model(answers, category, parameters)
    found_mean, found_variance = model.mean_and_variance(points)
    tolerance = 0.04 * scale**1.7
    assert model.mode.evidence == pytest.approx(evidence, abs=tolerance)
    assert found_mean == pytest.approx(mean, abs=tolerance)
    assert found_variance == pytest.approx(variance, abs=tolerance)


def test_the_covariance_is_the_textbook_s():
    answers, category = duels_of(6, 3, category=[1])
    lengths, scale = np.array([0.3, 0.8, 1.5]), 2.5
    found = dueling_covariance(answers.left, answers.right, 1 / lengths, category, scale)
    for i, j in itertools.product(range(6), repeat=2):
        signs = itertools.product(
            [(1, answers.left[i]), (-1, answers.right[i])], [(1, answers.left[j]), (-1, answers.right[j])]
        )
        total = sum(s * t * literal_kernel(x, y, lengths, scale, category) for (s, x), (t, y) in signs)
        assert found[i, j] == pytest.approx(total, abs=1e-12)


def test_the_mode_is_the_maximum():
    answers, category = duels_of(5, 2)
    covariance = dueling_covariance(answers.left, answers.right, np.array([2.0, 3.0]), category, 4.0)
    mode = find_mode(covariance, answers.outcome)
    inverse = np.linalg.inv(covariance)

    def negative(g):
        y = answers.outcome
        return 0.5 * g @ inverse @ g - np.sum(y * np.log(expit(g)) + (1 - y) * np.log(expit(-g)))

    found = optimize.minimize(negative, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    assert mode.difference == pytest.approx(found, abs=1e-6)
    assert mode.dual == pytest.approx(mode.pull, abs=1e-6)


def test_one_duel_by_hand():
    """Two points without correlation, left won: g = 2s (1 − σ(g)), f(left) = g/2 = −f(right)."""
    s = 3.0
    answers = Answers(np.array([[0.0]]), np.array([[1.0]]), np.array([1.0]))
    model = Model(answers, np.array([0]), Hyperparameters(np.array([0.01]), s))
    g = optimize.brentq(lambda g: g - 2 * s * (1 - expit(g)), 0, 2 * s)
    mean, variance = model.mean_and_variance(np.array([[0.0], [1.0], [0.5]]))
    assert mean == pytest.approx([g / 2, -g / 2, 0.0], abs=1e-9)
    w = expit(g) * expit(-g)
    assert variance == pytest.approx([s - s**2 * w / (1 + 2 * s * w)] * 2 + [s])
    assert model.mode.evidence == pytest.approx(math.log(expit(g)) - g**2 / (2 * 2 * s) - 0.5 * math.log(1 + 2 * s * w))


def test_a_tie_by_hand():
    """A tie moves nothing, W = ¼: Var(f(left) − f(right)) = 2s/(1 + 2s/4)."""
    s = 3.0
    answers = Answers(np.array([[0.0]]), np.array([[1.0]]), np.array([0.5]))
    model = Model(answers, np.array([0]), Hyperparameters(np.array([0.01]), s))
    difference, spread = model.differences(np.array([[0.0], [1.0]]))
    assert difference == pytest.approx(np.zeros((2, 2)), abs=1e-12)
    assert spread[0, 1] ** 2 == pytest.approx(2 * s / (1 + 2 * s / 4))
    assert model.win_probability(np.array([0.0]), np.array([1.0])) == pytest.approx(0.5)


def test_the_evidence_s_gradient():
    answers, category = duels_of(25, 3, category=[2])
    objective = Objective(answers, category)
    for logs in (np.log([0.3, 0.6, 1.0, 4.0]), np.log([0.1, 2.0, 0.5, 50.0])):
        for function in (objective, objective.evidence):
            _, slope = function(logs)
            step = 1e-5 * np.eye(4)
            measured = [(function(logs + e)[0] - function(logs - e)[0]) / 2e-5 for e in step]
            assert slope == pytest.approx(measured, abs=1e-4, rel=1e-4)


def test_the_evidence_s_weights():
    """They hold for any change of the covariance, not only for changes of hyperparameters."""
    answers, category = duels_of(6, 2)
    covariance = dueling_covariance(answers.left, answers.right, np.array([2.0, 2.0]), category, 4.0)
    weights = evidence_weights(covariance, find_mode(covariance, answers.outcome))
    change = np.random.default_rng(0).standard_normal((6, 6))
    change = change @ change.T
    up, down = (find_mode(covariance + e * change, answers.outcome).evidence for e in (1e-5, -1e-5))
    assert (weights * change).sum() == pytest.approx((up - down) / 2e-5, rel=1e-4)


def test_the_moments_of_a_pair_and_their_gradients():
    answers, category = duels_of(12, 3, category=[1])
    model = Model(answers, category, Hyperparameters(np.array([0.4, 0.9, 0.7]), 6.0))
    rng = np.random.default_rng(1)
    x, y = rng.random(3), rng.random(3)
    x[1], y[1] = 1 / 6, 0.5
    found = model.pair(x, y).copy()
    mean, covariance = model.mean_and_covariance(np.stack([x, y]))
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert found[0, :3] == pytest.approx([*mean, variance])
    assert model.differences_to(x[None, :], y)[1] ** 2 == pytest.approx([variance])
    assert model.differences_to(x[None, :], y)[0] == pytest.approx([mean[0] - mean[1]])
    for k in (0, 2):
        e = 1e-6 * np.eye(3)[k]
        by_x = (model.pair(x + e, y)[0].copy() - model.pair(x - e, y)[0]) / 2e-6
        by_y = (model.pair(x, y + e)[0].copy() - model.pair(x, y - e)[0]) / 2e-6
        assert found[1 + k] == pytest.approx([by_x[0], by_y[1], by_x[2], by_y[2]], abs=1e-5)
    assert not found[2].any()  # a category has no derivative


def test_repeated_and_contradicting_duels():
    """300 duels of four points, most of them of one pair, with contradicting answers, and points that almost agree."""
    rng = np.random.default_rng(0)
    points = np.array([[0.1, 0.2], [0.1, 0.2 + 1e-9], [0.8, 0.9], [0.1, 0.2]])
    sides = rng.choice(4, (300, 2), p=[0.4, 0.1, 0.4, 0.1])
    outcome = (rng.random(300) < np.where(sides[:, 0] == 2, 0.7, 0.4)).astype(float)
    answers = Answers(points[sides[:, 0]], points[sides[:, 1]], outcome)
    for parameters in (fit_hyperparameters(answers, np.zeros(2)), Hyperparameters(np.array([20.0, 0.02]), 5000.0)):
        model = Model(answers, np.zeros(2), parameters)
        assert model.mode.dual == pytest.approx(model.mode.pull, abs=1e-4)
        mean, covariance = model.mean_and_covariance(np.vstack([points, points]))
        assert np.isfinite(covariance).all()
        assert mean[2] > mean[0] == pytest.approx(mean[1], abs=1e-4)
        assert np.isfinite(model.sample(np.vstack([points, points]), 3, rng)).all()


def test_a_pair_that_is_always_won():
    """No answer ever contradicts: the likelihood alone has no maximum, the posterior has."""
    answers = Answers(np.full((400, 1), 0.1), np.full((400, 1), 0.9), np.ones(400))
    model = Model(answers, np.zeros(1), fit_hyperparameters(answers, np.zeros(1)))
    assert 4 < model.mode.difference[0] < 100
    assert model.win_probability(np.array([0.1]), np.array([0.9])) > 0.98


def test_a_category_is_learned():
    """Choice 2 always wins; whatever the numbers are."""
    rng = np.random.default_rng(0)
    left, right = rng.random((2, 60, 2))
    left[:, 1], right[:, 1] = (rng.integers(0, 3, (2, 60)) + 0.5) / 3
    best = left[:, 1] - right[:, 1]
    answers = Answers(left, right, np.where(best > 0, 1.0, np.where(best < 0, 0.0, 0.5)))
    model = Model(answers, np.array([0, 1]), fit_hyperparameters(answers, np.array([0, 1])))
    grid = np.array([[u, c] for u in (0.1, 0.5, 0.9) for c in (1 / 6, 0.5, 5 / 6)])
    mean = model.mean(grid).reshape(3, 3)
    assert mean[:, 2].min() > mean[:, 1].max()
    assert mean[:, 1].min() > mean[:, 0].max()
    lengths = model.hyperparameters.lengthscales
    assert lengths[0] > lengths[1] / 2  # the number has no effect


def test_samples_have_the_posterior_s_moments():
    """20,000 draws; each bound is more than five standard errors, so a false alarm is rarer than once in 10⁵."""
    answers, category = duels_of(8, 2)
    model = Model(answers, category, prior_hyperparameters(2))
    points = np.random.default_rng(3).random((5, 2))
    mean, covariance = model.mean_and_covariance(points)
    drawn = model.sample(points, 20_000, np.random.default_rng(4))
    spread = np.sqrt(np.diagonal(covariance))
    assert (np.abs(drawn.mean(axis=0) - mean) < 5.5 * spread / math.sqrt(20_000)).all()
    limit = 5.5 * math.sqrt(2 / 20_000) * np.outer(spread, spread)
    assert (np.abs(np.cov(drawn.T) - covariance) < limit).all()


def test_square_roots_of_singular_covariances():
    for covariance in (np.ones((4, 4)), np.zeros((3, 3)), np.diag([1.0, 0.0, -1e-9])):
        root = square_root(covariance)
        assert root @ root.T == pytest.approx(covariance, abs=1e-3)


def test_hyperparameters_without_answers_are_the_prior_s():
    nothing = Answers(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))
    found = fit_hyperparameters(nothing, np.zeros(2))
    assert found.scale == prior_hyperparameters(2).scale
    assert found.lengthscales.tolist() == prior_hyperparameters(2).lengthscales.tolist()


def test_hyperparameters_find_what_matters():
    """150 answers depend on the first of three parameters alone: its lengthscale is by far the shortest."""
    rng = np.random.default_rng(0)
    left, right = rng.random((2, 150, 3))
    utility = lambda x: 6 * np.sin(6 * x[:, 0])  # noqa: E731
    outcome = (rng.random(150) < expit(utility(left) - utility(right))).astype(float)
    found = fit_hyperparameters(Answers(left, right, outcome), np.zeros(3))
    assert found.lengthscales[0] < 0.5 * found.lengthscales[1:].min()
