"""Fits are those of other libraries, of closed forms, and of general optimizers on the likelihood as it is written."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rating.vote_tables import NAMES, THETA, VOTES, cells, five
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from scipy.special import expit, logit

import duels
from duels.rating import bradley_terry, fitting, rao_kupper
from duels.rating.counts import Cells, cells_of_pairs, main_group, reaches, with_average_arm
from duels.rating.fitting import bootstrap, conjugate_gradients, fit, gradient, information, sandwich
from duels.study.stats.tally import Tally

MODELS = [bradley_terry, rao_kupper]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__.rpartition(".")[2])


def probabilities(model, theta, extra, i, j):
    """Of i winning, losing and tying, as the models are defined; half a tie is half a win in Bradley–Terry."""
    eta = extra[0] if model is rao_kupper else 0.0
    win, loss = (np.exp(a) / (np.exp(a) + np.exp(eta + b)) for a, b in ((theta[i], theta[j]), (theta[j], theta[i])))
    return win, loss, (np.sqrt(win * loss) if model is bradley_terry else 1 - win - loss)


def log_likelihood(model, x, arms, table):
    """Literally: the sum of the logarithms of the probabilities of all votes."""
    total = 0.0
    for i, j, *counts in table:
        shares = probabilities(model, x[:arms], x[arms:], i, j)
        total += sum(count * np.log(share) for count, share in zip(counts, shares) if count)
    return total


def rows_of(given):
    return [(int(i), int(j), *counts) for i, j, counts in zip(given.first, given.second, given.counts.T)]


def centered(theta):
    return theta - theta.mean()


def test_bradley_terry_is_that_of_choix_and_evalica():
    fitted = fit(bradley_terry, five())
    assert not fitted.regularized
    assert_allclose(fitted.x, THETA, atol=1e-9)


@each_model
def test_the_likelihood_is_as_it_is_written(model):
    x = np.random.default_rng(1).normal(size=5 + (model is rao_kupper)) ** 2
    assert_allclose(model.value(five(), x), log_likelihood(model, x, 5, rows_of(five())), rtol=1e-12)


@each_model
def test_a_general_optimizer_finds_the_same(model):
    given = five()
    extra = int(model is rao_kupper)
    begin = np.append(np.zeros(5), [0.5] * extra)
    bounds = [(-5, 5)] * 5 + [(0.01, 5)] * extra
    options = {"ftol": 1e-15, "gtol": 1e-9}
    found = minimize(lambda x: -log_likelihood(model, x, 5, rows_of(given)), begin, bounds=bounds, options=options)
    fitted = fit(model, given)
    assert_allclose(fitted.x[:5], centered(found.x[:5]), atol=1e-5)
    assert_allclose(fitted.x[5:], found.x[5:], atol=1e-5)


def test_two_arms_in_closed_form():
    """σ(Δ) = share of points. With ties as an outcome, the model has as many parameters as there are shares."""
    pair = cells(2, (0, 1, 9, 4, 7))
    assert_allclose(np.diff(fit(bradley_terry, pair).x), [-logit((9 + 3.5) / 20)], atol=1e-9)
    x = fit(rao_kupper, pair).x
    assert_allclose(x[0] - x[1], (logit(9 / 20) - logit(4 / 20)) / 2, atol=1e-9)
    assert_allclose(x[2], -(logit(9 / 20) + logit(4 / 20)) / 2, atol=1e-9)


def test_rao_kupper_without_ties_is_bradley_terry():
    given = five()
    without = given._replace(counts=given.counts * [[1], [1], [0]])
    assert_allclose(fit(rao_kupper, without).x, fit(bradley_terry, without).x)


def with_features(rng, n=60, arms=4, kinds=2):
    first = rng.integers(arms, size=n)
    second = (first + rng.integers(1, arms, size=n)) % arms
    outcome = rng.integers(3, size=n)
    counts = (outcome == np.arange(3)[:, None]).astype(float)
    return Cells(arms, first, second, counts, rng.normal(size=(n, kinds)))


@pytest.mark.parametrize(
    ("model", "given"),
    [(bradley_terry, five()), (rao_kupper, five()), (bradley_terry, with_features(np.random.default_rng(2)))],
    ids=["bradley-terry", "rao-kupper", "features"],
)
def test_derivatives_are_those_of_differences(model, given):
    x = np.abs(model.start(given) + np.random.default_rng(3).normal(size=len(model.start(given))))
    slope = approx_fprime(x, lambda x: model.value(given, x), 1e-7)
    assert_allclose(gradient(model, given, x), slope, atol=2e-4)
    curve = approx_fprime(x, lambda x: gradient(model, given, x), 1e-7)
    assert_allclose(information(model, given, x), -curve, atol=2e-4)


def test_features_against_the_dense_likelihood():
    """One row per vote with 1, −1 for the two arms, and the features; half a squared effect is subtracted."""
    given = with_features(np.random.default_rng(4))
    design = np.zeros((60, 4))
    design[np.arange(60), given.first], design[np.arange(60), given.second] = 1, -1
    design = np.hstack([design, given.features])
    points = given.counts[0] + given.counts[2] / 2

    def loss(x):
        p = expit(design @ x)
        return -np.sum(points * np.log(p) + (1 - points) * np.log(1 - p)) + 0.5 * np.sum(x[4:] ** 2)

    found = minimize(loss, np.zeros(6), tol=1e-10).x
    assert_allclose(fit(bradley_terry, given).x, np.append(centered(found[:4]), found[4:]), atol=1e-5)


@each_model
def test_the_sandwich_vote_by_vote(model):
    """A⁻¹ (Σ s sᵀ) A⁻¹ with each vote's own score s by differences, in coordinates in which the first arm is 0."""
    given = five()
    fitted = fit(model, given)
    x = fitted.x
    spread = np.zeros((len(x), len(x)))
    for i, j, *counts in rows_of(given):
        for kind, count in enumerate(counts):
            one = [0, 0, 0]
            one[kind] = 1
            score = approx_fprime(x, lambda x, row=(i, j, *one): log_likelihood(model, x, 5, [row]), 1e-6)
            spread += count * np.outer(score, score)
    curve = approx_fprime(x, lambda x: gradient(model, given, x), 1e-6)
    bread = np.linalg.inv(-curve[1:, 1:])
    expected = bread @ spread[1:, 1:] @ bread  # of x minus x[0]
    back = np.hstack([-np.ones((len(x) - 1, 1)), np.eye(len(x) - 1)])
    back[4:, 0] = 0  # η is not relative to an arm
    assert_allclose(back @ sandwich(fitted).covariance @ back.T, expected, rtol=1e-3, atol=1e-5)


def test_the_sandwich_of_two_arms_by_hand():
    """12 wins, 4 losses, 4 ties: p = 0.7. Scores are 0.3, −0.7, −0.2: their squares sum to 3.2; A = 20 · 0.21 = 4.2."""
    spread = sandwich(fit(bradley_terry, cells(2, (0, 1, 12, 4, 4)))).covariance
    assert_allclose(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1], 3.2 / 4.2**2)


@each_model
def test_rounds_of_the_bootstrap_are_fits_of_their_own(model, monkeypatch):
    """All rounds together, and those that are fitted by themselves, end where a fit from the start does."""
    given = five()
    given = given._replace(counts=given.counts * 4)
    fitted = fit(model, given)
    drawn = []
    monkeypatch.setattr("duels.rating.fitting._draw_votes", lambda *args: drawn.append(draw(*args)) or drawn[-1])
    found = bootstrap(fitted, 30, np.random.default_rng(5))
    for k in range(30):
        alone = given._replace(counts=drawn[0][..., k])
        assert_allclose(found[:, k], fit(model, alone).x, atol=2e-5)


from duels.rating.fitting import _draw_votes as draw  # noqa: E402  # the original, for the test above


def test_draws_keep_zeros_and_the_average_arm():
    given = with_average_arm(cells(3, (0, 1, 40, 0, 9), (1, 2, 25, 16, 0)))
    drawn = draw(given, 3, 2000, np.random.default_rng(6))
    assert drawn.shape == (3, 5, 2000)
    assert (drawn[:, 2:] == given.counts[:, 2:, None]).all()
    assert (drawn[:, :2][given.counts[:, :2] == 0] == 0).all()
    # Means of 2,000 Poisson counts of mean c have the error √(c/2000); five of them are beyond 5 errors in one of 3e5.
    counts = given.counts[:, :2]
    assert (np.abs(drawn[:, :2].mean(axis=2) - counts) <= 5 * np.sqrt(counts / 2000)).all()


def test_the_bootstrap_spreads_like_the_sandwich():
    """Both estimate the same covariance. 1,000 rounds: the ratio of errors is within 10 % (4.5 standard errors)."""
    given = five()
    fitted = fit(bradley_terry, given._replace(counts=given.counts * 100))
    found = bootstrap(fitted, 1000, np.random.default_rng(7))
    assert_allclose(found.std(axis=1), np.sqrt(np.diag(sandwich(fitted).covariance)), rtol=0.1)


def small_cells():
    """All tables of three arms with each of three pairs: not met, won, lost, both, tied."""
    kinds = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (1, 1, 0), (0, 0, 1)]
    for counts in itertools.product(kinds, repeat=3):
        yield cells(3, *((*pair, *count) for pair, count in zip(itertools.combinations(range(3), 2), counts)))


def never_falls(given, d, h):
    """Whether the likelihood never falls as θ goes in direction d and η in direction h, from anywhere."""
    return all(
        (not won or d[i] - d[j] >= h) and (not lost or d[j] - d[i] >= h) and (not tied or abs(d[i] - d[j]) <= h)
        for i, j, won, lost, tied in rows_of(given)
    )


def free_directions(model, given):
    """Those of whole numbers from 0 to 3 in which it never falls, except that of adding the same to all θ."""
    etas = (0, 1) if model is rao_kupper else (0,)
    every = itertools.product(itertools.product(range(4), repeat=3), etas)
    return [(d, h) for d, h in every if (h or len(set(d)) > 1) and never_falls(given, d, h)]


def test_limits_by_enumeration():
    """The likelihood never falls in a direction d if d_i ≥ d_j wherever i beat or tied j. All such directions are sums
    of those of zeros and ones. i's lower limit relative to j is finite unless one of them has d_i < d_j."""
    for given in small_cells():
        free = [d for d in itertools.product((0, 1), repeat=3) if never_falls(given, d, 0)]
        expected = [[not any(d[i] < d[j] for d in free) for j in range(3)] for i in range(3)]
        assert reaches(given).tolist() == expected


@each_model
def test_every_small_table_has_a_finite_fit(model):
    for given in small_cells():
        if given.counts.any():
            fitted = fit(model, given)
            assert fitted.regularized == bool(free_directions(fitted.model, given))
            assert np.abs(fitted.x).max() < 20
            assert np.isfinite(sandwich(fitted).covariance).all()
            assert_allclose(gradient(fitted.model, fitted.cells, fitted.solution), 0, atol=1e-7)


def test_the_average_arm_by_hand():
    """a won once. With its half points against the average arm at 0: 1 − σ(2t) = σ(t) − ½, b at −t."""
    fitted = fit(bradley_terry, cells(2, (0, 1, 1, 0, 0)))
    t = fitted.x[0]
    assert fitted.regularized
    assert_allclose(fitted.x, [t, -t], atol=1e-9)
    assert_allclose(1 - expit(2 * t), expit(t) - 0.5, atol=1e-9)


def test_the_largest_group_is_the_reference():
    """0, 1 and 2 beat one another in a circle; 3 only lost to them; 4 and 5 met only each other."""
    circle = [(0, 1, 2, 0, 0), (1, 2, 2, 0, 0), (2, 0, 2, 0, 0)]
    given = cells(6, *circle, (0, 3, 5, 0, 0), (4, 5, 1, 1, 0))
    reach = reaches(given)
    assert main_group(given).tolist() == [True, True, True, False, False, False]
    assert reach[0, 3]
    assert not reach[3, 0]
    assert reach[4, 5]
    assert not reach[:4, 4:].any()
    assert_allclose(fit(bradley_terry, given).x[:3].sum(), 0, atol=1e-9)
    assert main_group(cells(3, (0, 1, 1, 0, 0))).all()


def test_an_anchor_is_zero():
    fitted = fit(bradley_terry, five(), anchor=3)
    assert_allclose(fitted.x, THETA - THETA[3], atol=1e-9)
    assert_allclose(sandwich(fitted).covariance[3], 0, atol=1e-12)


def test_strong_arms_are_found():
    """One loss in a million, and long chains: Newton's first steps would be too long."""
    chain = [(k, k + 1, 10**6, 1, 0) for k in range(8)]
    fitted = fit(bradley_terry, cells(9, *chain))
    assert_allclose(np.diff(fitted.x), -np.log(1e6), atol=1e-6)


@pytest.mark.deep
def test_choix_and_evalica_agree():
    """Random tables of up to 30 arms: θ to 1e-6."""
    choix, evalica = pytest.importorskip("choix"), pytest.importorskip("evalica")
    rng = np.random.default_rng(8)
    for arms in (2, 3, 10, 30):
        names, votes = range(arms), rng.integers(arms, size=(40 * arms, 2))
        votes = votes[votes[:, 0] != votes[:, 1]]
        winner = rng.integers(3, size=len(votes))
        data = [
            pair
            for (i, j), w in zip(votes.tolist(), winner)
            for pair in ([(i, j)] * 2, [(j, i)] * 2, [(i, j), (j, i)])[w]
        ]
        table = [(i, j, *(w == np.arange(3))) for (i, j), w in zip(votes, winner)]
        ours = fit(bradley_terry, cells(arms, *table)).x
        assert_allclose(ours, centered(choix.ilsr_pairwise(arms, data, alpha=0, tol=1e-12)), atol=1e-6)
        words = [(evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)[w] for w in winner]
        theirs = evalica.bradley_terry(
            votes[:, 0].tolist(), votes[:, 1].tolist(), words, tolerance=1e-13, limit=100_000
        ).scores
        assert_allclose(ours, centered(np.log(theirs[list(names)].to_numpy())), atol=1e-6)


def test_the_fixture_has_all_votes():
    assert len(VOTES) == five().counts.sum() == 47
    assert set(NAMES) == {side for left, right, _ in VOTES for side in (left, right)}


def chain(rng, arms):
    """Each arm meets the next only, and nearly always wins."""
    wins = np.diag(rng.integers(1, 1000, arms - 1), 1) + np.diag(rng.integers(1, 5, arms - 1), -1)
    return wins, np.zeros_like(wins)


def clusters(rng, arms):
    """Two groups that met in one pair, a million to one."""
    wins, half = np.zeros((arms, arms), np.int64), arms // 2
    wins[:half, :half], wins[half:, half:] = rng.integers(1, 100, (2, half, half))
    np.fill_diagonal(wins, 0)
    wins[0, half], wins[half, 0] = 10**6, 1
    return wins, np.zeros_like(wins)


def uneven(rng, arms, digits=7):
    """One vote in some pairs, a million in others, at random."""
    wins, ties = np.zeros((2, arms, arms), np.int64)
    for _ in range(4 * arms):
        i, j = rng.choice(arms, 2, replace=False)
        wins[i, j] += 10 ** rng.integers(0, digits)
    ties[0, 1] = ties[1, 0] = 1
    return wins, ties


@each_model
@pytest.mark.parametrize("table", [chain, clusters, uneven], ids=lambda table: table.__name__)
def test_conjugate_gradients_find_what_elimination_finds(model, table, monkeypatch):
    given = cells_of_pairs(*table(np.random.default_rng(3), 40))
    calls = []
    monkeypatch.setattr(
        fitting, "conjugate_gradients", lambda *args: calls.append(conjugate_gradients(*args)) or calls[-1]
    )
    monkeypatch.setattr(fitting, "FEW", 0)
    found = fit(model, given).x
    assert calls
    assert all(step is not None for step in calls)
    monkeypatch.setattr(fitting, "conjugate_gradients", lambda *args: None)
    assert_allclose(found, fit(model, given).x, atol=1e-9)


def test_conjugate_gradients_say_if_they_fail():
    def solve(matrix, right):
        return conjugate_gradients(csr_array(matrix), np.array(right))

    assert solve(np.diag([1.0, 0.0]), [1.0, 0.0]) is None
    assert solve(np.diag([1.0, -1.0]), [1.0, 1.0]) is None
    assert_allclose(solve(np.array([[2.0, -1.0], [-1.0, 2.0]]), [1.0, 0.0]), [2 / 3, 1 / 3])
    assert solve(np.eye(2), [0.0, 0.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("arms", [40, 80])
def test_counts_that_are_too_uneven_are_refused(arms):
    """From 1 to 10¹⁵, of which float64 keeps 16 digits."""
    wins, ties = uneven(np.random.default_rng(2), arms, digits=16)
    tally = Tally(tuple(map(str, range(arms))), wins, ties, np.ones(arms, dtype=bool), arms)
    with pytest.raises(duels.InvalidInput, match=r"counts of the.* pairs are so uneven"):
        duels.rate(tally)


@pytest.mark.parametrize("digits", [8, 10, 12, 14])
@pytest.mark.parametrize("ties", [0, 3])
def test_counts_that_lean_to_one_side_are_fitted(digits, ties):
    """A billion clicks for one arm, and a few single votes. Every reader of a study's results needs its ratings."""
    wins, tied = np.zeros((4, 4), np.int64), np.zeros((4, 4), np.int64)
    wins[0, 1], wins[1, 2] = 10**digits, 7
    tied[2, 3] = tied[3, 2] = ties
    tally = Tally(tuple("abcd"), wins, tied, np.ones(4, dtype=bool), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are few of some
        assert duels.rate(tally)["arm"][0] == "a"
        wins[1, 0], wins[2, 1], wins[3, 0], wins[0, 3] = 1, 2, 1, 1
        known = dict(duels.rate(tally._replace(wins=wins)).select("arm", "rating").iter_rows())
    # Without ties, no pairs form a ring, and the difference is that of the pair's own odds.
    assert known["a"] - known["b"] == pytest.approx(400 * digits, abs=150 if ties else 1e-5)
