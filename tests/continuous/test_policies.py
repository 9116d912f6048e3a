"""Policies on continuous spaces: each against a literal transcription of its rule, and the contract that all keep."""

import itertools
import math
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

import duels
from duels.continuous import History, Memory, Situation, load_policy
from duels.continuous.model.search import sobol
from duels.continuous.policies import BUILT_IN, dbgd, double_thompson, eubo, gp_rucb, kernel_self_sparring, max_min_lcb
from duels.continuous.policies.context import count_fitted
from duels.continuous.policies.eubo import expected_best
from duels.continuous.policies.kernel_self_sparring import regression
from duels.errors import InvalidInput, UnknownName

MIXED = duels.Space({"x": (0.0, 1.0), "n": (1, 40, "log int"), "style": ["a", "b", "c"]})
NUMBERS = duels.Space({"x": (0.0, 1.0), "y": (1e-3, 1.0, "log")})
GRID = duels.Space({"x": (1, 4, "int"), "y": (1, 3, "int")})
SAMPLING = ("double_thompson", "kernel_self_sparring")
EVERYWHERE = [{"x": x, "y": y} for x in range(1, 5) for y in range(1, 4)]


def some_duels(space, count, seed=0):
    """Random duels, whose answers favor large first parameters."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        left, right = (space.decode(point) for point in space.snap(rng.random((2, len(space)))))
        if left != right:
            better = float(space.encode(left)[0] > space.encode(right)[0])
            found.append((left, right, better if rng.random() < 0.8 else 0.5))
    return found


def grid_situation(seed=0, count=14):
    """A situation on twelve settings, which are all among the candidates."""
    found = Situation(GRID, History.of(GRID, some_duels(GRID, count, seed)), np.random.default_rng(seed))
    assert len(np.unique(found.candidates, axis=0)) == len(EVERYWHERE)
    return found


def settings(points):
    return tuple(GRID.decode(point) for point in points)


def test_eubo_chooses_the_best_of_all_pairs():
    """Whatever the number of answers, and whether or not a preference was found: it is the paper's rule."""
    for seed, count in enumerate((4, 5, 8, 12, 14, 14, 14, 15, 16)):
        now = grid_situation(seed, count)
        points = np.stack([GRID.encode(setting) for setting in EVERYWHERE])
        mean, covariance = now.model.mean_and_covariance(points)
        worth = {}
        for i, j in itertools.combinations(range(12), 2):
            s = math.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
            z = (mean[i] - mean[j]) / s
            worth[i, j] = mean[j] + (mean[i] - mean[j]) * stats.norm.cdf(z) + s * stats.norm.pdf(z)
        i, j = max(worth, key=worth.get)
        chosen = settings(eubo.choose(now, eubo.Params()))
        assert sorted(map(str, chosen)) == sorted(map(str, (EVERYWHERE[i], EVERYWHERE[j])))


def test_the_expected_best_is_an_integral():
    """E max(f₁, f₂) = ∫ max(z, 0) of f₁ − f₂, above μ₂."""
    for second, difference, spread in [(0.3, 1.2, 0.7), (-1.0, -2.0, 1.5), (0.0, 0.0, 2.0)]:
        weighted = partial(lambda density, z: z * density(z), stats.norm(difference, spread).pdf)
        integral, _ = integrate.quad(weighted, 0, difference + 12 * spread)
        assert expected_best(second, difference, spread) == pytest.approx(second + integral)
    assert expected_best(np.array(1.0), np.array(-0.5), np.array(0.0)) == pytest.approx(1.0)


def bounds_of(now, beta):
    """Δ and s of all pairs of the twelve settings, and who may be the best, one by one."""
    points = np.stack([GRID.encode(setting) for setting in EVERYWHERE])
    mean, covariance = now.model.mean_and_covariance(points)
    difference = np.subtract.outer(mean, mean)
    spread = np.array(
        [
            [math.sqrt(max(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j], 0)) for j in range(12)]
            for i in range(12)
        ]
    )
    may = [i for i in range(12) if all(difference[i, j] + beta * spread[i, j] >= 0 for j in range(12))]
    return difference, spread, may


@pytest.mark.parametrize("beta", [0.3, 2.0])
def test_gp_rucb_is_the_listing(beta):
    """Line 5: a champion that no upper bound rules out; line 6: the rival with the largest upper bound against it."""
    champions = set()
    for seed in range(25):
        now = grid_situation(seed % 5)
        now.rng = np.random.default_rng(seed)
        difference, spread, may = bounds_of(now, beta)
        champion, rival = settings(gp_rucb.choose(now, gp_rucb.Params(beta)))
        c = EVERYWHERE.index(champion)
        assert c in may
        assert EVERYWHERE.index(rival) == int((difference[:, c] + beta * spread[:, c]).argmax())
        champions.add((seed % 5, c))
    assert len(champions) > 5 or beta < 1  # any of them, not always the same one


@pytest.mark.parametrize("beta", [0.3, 2.0])
def test_max_min_lcb_plays_the_paper_s_game(beta):
    """The leader has the largest least lower bound among those that may be the best, the follower attains it.

    The bounds are on the difference of utility, not on the chance to win.
    """
    for seed in range(8):
        now = grid_situation(seed)
        difference, spread, may = bounds_of(now, beta)
        least = {i: min(difference[i, j] - beta * spread[i, j] for j in may) for i in may}
        leader = max(may, key=least.get)
        found, other = (EVERYWHERE.index(one) for one in settings(max_min_lcb.choose(now, max_min_lcb.Params(beta))))
        assert found == leader
        assert difference[found, other] - beta * spread[found, other] <= least[leader] + 1e-9


def test_double_thompson_is_the_best_of_two_samples():
    """Left is best as often as in 4,000 joint samples. Chi-square; a false alarm once in 10⁶."""
    now = grid_situation(1, count=6)
    points = np.stack([GRID.encode(setting) for setting in EVERYWHERE])
    best = now.model.sample(points, 4000, np.random.default_rng(0)).argmax(axis=1)
    expected = np.bincount(best, minlength=12) / 4000
    counts, second = np.zeros(12), np.zeros(12)
    for seed in range(400):
        now.rng = np.random.default_rng(seed)
        left, right = (EVERYWHERE.index(one) for one in settings(double_thompson.choose(now, double_thompson.Params())))
        assert left != right or expected.max() > 0.9
        counts[left] += 1
        second[right] += 1
    frequent = expected > 0.01
    statistic = ((counts - 400 * expected)[frequent] ** 2 / (400 * expected[frequent])).sum()
    assert statistic < stats.chi2.ppf(1 - 1e-6, frequent.sum()) * 1.2  # `expected` is a sample too
    assert (second > 0).sum() > 1


def test_kernel_self_sparring_regresses_on_wins():
    """The regression's mean and covariance, as the textbook has them: 1 for the winner, 0 for the loser."""
    now = grid_situation(2, count=8)
    model, noise = now.model, 0.3
    seen = np.vstack([now.history.left, now.history.right])
    won = np.concatenate([now.history.outcome, 1 - now.history.outcome])

    def kernel(x, y):
        r = np.sqrt((((x[:, None] - y) * model.inverse) ** 2).sum(axis=2))
        return 0.25 * (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r)

    points = np.stack([GRID.encode(setting) for setting in EVERYWHERE])
    inverse = np.linalg.inv(kernel(seen, seen) + noise * np.eye(len(seen)))
    mean = 0.5 + kernel(points, seen) @ inverse @ (won - 0.5)
    covariance = kernel(points, points) - kernel(points, seen) @ inverse @ kernel(seen, points)
    found_mean, found_covariance = regression(model, now.history, points, noise)
    assert found_mean + 0.5 == pytest.approx(mean)
    assert found_covariance == pytest.approx(covariance)
    left, right = kernel_self_sparring.choose(now, kernel_self_sparring.Params())
    assert GRID.decode(left) != GRID.decode(right)


def test_dbgd_is_the_listing():
    """w ← P(w + γu) if w′ = P(w + δu) wins, else w stays; P clips to the cube."""
    delta, gamma = 0.3, 0.1
    params = dbgd.Params(delta, gamma)
    history, w, answers = History.of(NUMBERS, []), None, np.random.default_rng(1)
    for step in range(60):
        rng = np.random.default_rng(step)
        left, right = dbgd.choose(Situation(NUMBERS, history, rng), params)
        again = np.random.default_rng(step)
        w = again.random(2) if w is None else w
        u = again.standard_normal(2)
        u /= np.linalg.norm(u)
        assert left == pytest.approx(w)
        assert right == pytest.approx(np.clip(w + delta * u, 0, 1))
        outcome = float(answers.random() < 0.5)
        history = history.with_duel(left, right, outcome)
        if outcome == 0.0:
            inside = ((w + delta * u >= 0) & (w + delta * u <= 1)).all()
            expected = np.clip(w + gamma * u, 0, 1) if inside else w + gamma / delta * (right - w)
            w = expected
    assert dbgd.recommend(Situation(NUMBERS, history, rng), params) == pytest.approx(w)
    with pytest.raises(InvalidInput, match="choices of style have none"):
        load_policy("dbgd").ask(MIXED, [], seed=0)


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_ask_is_a_pure_function(name):
    """Of the space, the duels, the seed and the number: also with a memory that has seen other things."""
    space = NUMBERS if name == "dbgd" else MIXED
    chosen, played, memory = load_policy(name), some_duels(space, 16), Memory()
    first = chosen.ask(space, played, seed=3, number=20)
    chosen.ask(space, played[:12], seed=3, memory=memory)
    chosen.recommend(space, played, seed=3, memory=memory)
    for _ in range(2):
        assert chosen.ask(space, played, seed=3, number=20, memory=memory) == first
    assert chosen.ask(space, History.of(space, played), seed=3, number=20) == first
    assert chosen.recommend(space, played, seed=3) == chosen.recommend(space, played, seed=3, memory=memory)
    assert first[0] != first[1]
    assert [space.check(one) for one in first] == list(first)
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    if name not in ("eubo", "max_min_lcb", "gp_rucb"):  # these may come to the same pair
        assert chosen.ask(space, played, seed=4, number=20) != first


@pytest.mark.parametrize("name", BUILT_IN)
def test_open_duels_spread(name):
    """Five duels are asked before one is answered, and all differ, during the initial duels and after them.

    Policies that sample may choose one of them twice by chance.
    """
    space, chosen = NUMBERS, load_policy(name)
    for count in (0, 16):
        played = some_duels(space, count)
        for _ in range(5):
            played.append((*chosen.ask(space, played, seed=1), None))
        assert len({str(sorted(map(str, duel[:2]))) for duel in played[count:]}) >= (4 if name in SAMPLING else 5)


def test_open_duels_are_ties():
    """An ask with an open duel is that with a tie, but for the hyperparameters, which no open duel moves."""
    played = some_duels(NUMBERS, 10)
    asked = {"x": 0.2, "y": 0.1}, {"x": 0.9, "y": 0.01}
    open_one = Situation(NUMBERS, History.of(NUMBERS, [*played, (*asked, None)]), np.random.default_rng(0))
    without = Situation(NUMBERS, History.of(NUMBERS, played), np.random.default_rng(0))
    assert open_one.model.hyperparameters.scale == without.model.hyperparameters.scale
    tied = History.of(NUMBERS, [*played, (*asked, 0.5)])
    assert open_one.history.with_ties.outcome.tolist() == tied.outcome.tolist()
    x, y = (NUMBERS.encode(one) for one in asked)
    assert open_one.model.pair(x, y)[0, 2] < without.model.pair(x, y)[0, 2]


def test_a_skipped_duel_is_not_asked_again():
    for count in (0, 16):
        played = some_duels(NUMBERS, count)
        asked = [load_policy("double_thompson").ask(NUMBERS, played, seed=0, number=count + k) for k in range(3)]
        assert len({str(one) for one in asked}) == 3


def test_the_initial_duels():
    """Four per parameter, at most twenty, of one Sobol' sequence, whatever the policy; `initial` sets their number."""
    assert [load_policy("eubo").initial(space) for space in (NUMBERS, MIXED)] == [8, 12]
    assert load_policy("eubo").initial(duels.Space({f"p{k}": (0.0, 1.0) for k in range(9)})) == 20
    assert load_policy("eubo:initial=3").initial(MIXED) == 3
    assert load_policy("dbgd").initial(NUMBERS) == 0
    played = []
    for _ in range(8):
        duel = load_policy("eubo").ask(NUMBERS, played, seed=5)
        assert duel == load_policy("gp_rucb").ask(NUMBERS, played, seed=5)
        played.append((*duel, None))
    points = History.of(NUMBERS, played)
    cells = np.floor(np.vstack([points.left, points.right]) * 4).astype(int)
    assert np.unique(cells @ [4, 1], return_counts=True)[1].tolist() == [1] * 16  # a net: one point in each cell


def test_sobol_points_fill_the_cube():
    points = sobol(3, 9, np.random.default_rng(0))
    assert points.shape == (512, 3)
    for k in range(3):
        assert np.bincount((points[:, k] * 512).astype(int)).tolist() == [1] * 512
    assert not np.array_equal(points, sobol(3, 9, np.random.default_rng(1)))


def test_the_recommendation_is_the_largest_mean():
    """On a fine grid of the whole space no mean is larger; without answers it is the middle."""
    played = some_duels(NUMBERS, 20)
    now = load_policy("eubo").situation(NUMBERS, History.of(NUMBERS, played), np.random.default_rng(0), None)
    best = NUMBERS.encode(
        load_policy("eubo").recommend(NUMBERS, [*played, ({"x": 0.1, "y": 0.1}, {"x": 0.3, "y": 0.1}, None)], seed=0)
    )
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1).reshape(-1, 2)
    assert now.model.mean(best[None, :])[0] >= now.model.mean(grid).max() - 1e-3
    assert load_policy("eubo").recommend(NUMBERS, [], seed=0) == NUMBERS.decode([0.5, 0.5])


def test_the_smallest_space():
    """Two settings: every ask is of both, and the better one is recommended."""
    space = duels.Space({"style": ["a", "b"]})
    for name in BUILT_IN:
        if name == "dbgd":
            continue
        played = []
        for _ in range(8):
            left, right = load_policy(name).ask(space, played, seed=0)
            assert {left["style"], right["style"]} == {"a", "b"}
            played.append((left, right, float(left["style"] == "b")))
        assert load_policy(name).recommend(space, played, seed=0) == {"style": "b"}


def test_hyperparameters_are_fitted_on_a_schedule():
    """After every answer up to 47, later after every second, third, …; never on fewer than 23/24 of the answers."""
    assert [count_fitted(n) for n in (1, 47, 48, 49, 50, 100, 103, 500)] == [1, 47, 48, 48, 50, 100, 100, 500]
    assert all(count_fitted(n) > n * 23 / 24 for n in range(1, 2000))


def test_unknown_names_and_wrong_parameters():
    with pytest.raises(UnknownName, match="Did you mean 'gp_rucb'"):
        load_policy("gp_rucd")
    with pytest.raises(UnknownName, match="Did you mean 'beta'"):
        load_policy("gp_rucb:bet=2")
    for wrong in (
        "gp_rucb:beta=0",
        "max_min_lcb:beta=nan",
        "eubo:initial=-1",
        "kernel_self_sparring:noise=0",
        "dbgd:delta=-1",
    ):
        with pytest.raises(InvalidInput):
            load_policy(wrong)
    with pytest.raises(InvalidInput, match="is not a policy"):
        load_policy(3)
    assert str(load_policy("gp_rucb", beta=3)) == "gp_rucb:beta=3"
    assert str(load_policy(load_policy("gp_rucb:beta=2"))) == "gp_rucb"
    with pytest.raises(InvalidInput, match="an outcome is 2"):
        load_policy("eubo").ask(NUMBERS, [({"x": 0.1, "y": 0.1}, {"x": 0.2, "y": 0.1}, 2)], seed=0)
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        load_policy("eubo").ask(NUMBERS, [({"x": 3.0, "y": 0.1}, {"x": 0.2, "y": 0.1}, 1)], seed=0)


def test_every_policy_says_what_it_is():
    for name in BUILT_IN:
        chosen = load_policy(name)
        assert chosen.module.NAME
        assert chosen.paper
        assert "initial" in chosen.params._fields
