"""Where a study stands: chances against numerical integration, and their calibration by simulated studies."""

from functools import partial

import numpy as np
import pytest
from scipy import integrate, special, stats

from duels.engine import loop
from duels.policies import policy
from duels.study import standing as module
from duels.study.catalogue import create_study
from duels.study.certainty import log_mixture
from duels.study.looks import NOT_YET, new_looks
from duels.study.looks_on_items import new_item_looks
from duels.study.plan import until_verdict
from duels.study.plan_on_items import until_verdict_on_items
from duels.study.standing import SPREADS, draw_strengths, standing
from duels.study.tally import as_tally


def stand(wins, ties=None, confidence=0.95, margin=0.0, **more):
    tally = as_tally([f"arm {k}" for k in range(len(wins))], wins, ties)
    return standing(tally, confidence=confidence, margin=margin, **more)


def exact_chance(won, lost):
    """P(θ₀ > θ₁ | answers) by integration over the difference, which is N(0, 2σ²) before the first answer."""
    above = total = 0.0
    for spread in SPREADS:

        def density(x, spread=spread):
            likelihood = np.exp(won * special.log_expit(x) + lost * special.log_expit(-x) + (won + lost) * np.log(2))
            return likelihood * stats.norm.pdf(x, scale=spread * np.sqrt(2))

        above += integrate.quad(density, 0, 15, limit=200)[0]
        total += integrate.quad(density, -15, 15, limit=400, points=[0])[0]
    return above / total


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (3, 1), (8, 6), (30, 20), (12, 0)])
def test_the_chance_of_two_arms_by_integration(won, lost):
    """2,000 draws: one standard error is at most 0.011, and the normal approximation adds less than 0.02."""
    chances = {one.arm: one.chance for one in stand([[0, won], [lost, 0]]).chances}
    assert chances["arm 0"] == pytest.approx(exact_chance(won, lost), abs=0.06)
    assert sum(chances.values()) == pytest.approx(1)


def test_before_the_first_answer_all_are_alike():
    found = stand(np.zeros((4, 4), int))
    assert [one.chance for one in found.chances] == pytest.approx([0.25] * 4, abs=0.05)
    assert found.answers_an_hour is None
    assert found.hint == ""


def test_the_mode_is_where_the_gradient_is_zero():
    wins = np.random.default_rng(0).integers(0, 20, (5, 5)).astype(float)
    np.fill_diagonal(wins, 0)
    for spread in SPREADS:
        mode = module._fit(wins, spread).mode
        chance = special.expit(mode[:, None] - mode)
        gradient = (wins - (wins + wins.T) * chance).sum(axis=1) - mode / spread**2
        assert gradient == pytest.approx(np.zeros(5), abs=1e-6)


def test_the_evidence_of_a_spread_is_that_of_laplace():
    """ln p(wins, mode) + K/2 ln 2π − ½ ln det of minus its second derivatives, by finite differences."""
    wins = np.array([[0.0, 14.0, 20.0], [6.0, 0.0, 9.0], [1.0, 4.0, 0.0]])
    for spread in SPREADS:
        fit = module._fit(wins, spread)

        def log_joint(at, spread=spread):
            return np.sum(wins * special.log_expit(at[:, None] - at)) + stats.norm.logpdf(at, scale=spread).sum()

        def curve(a, b, joint=log_joint, mode=fit.mode):
            return (joint(mode + a + b) - joint(mode + a - b) - joint(mode - a + b) + joint(mode - a - b)) / 4e-6

        curves = [[curve(a, b) for b in 1e-3 * np.eye(3)] for a in 1e-3 * np.eye(3)]
        _, log_det = np.linalg.slogdet(-np.array(curves))
        assert fit.log_evidence == pytest.approx(log_joint(fit.mode) + 1.5 * np.log(2 * np.pi) - log_det / 2, abs=1e-3)


def test_answers_needed_by_a_walk():
    """Of two arms: the first number of answers in expected proportions that is enough, times 0.9."""
    tally, strengths = as_tally(["a", "b"], [[0, 12], [8, 0]]), np.array([[0.3, -0.2], [-0.1, 0.4]])
    needed = module.answers_needed(tally, np.array([0, 1]), strengths, 0.95, 0.0)
    share, n = special.expit(0.5), np.arange(2000)  # the winner of the draw is ahead by 0.5 in both
    for got, (won, lost) in zip(needed, ((12, 8), (8, 12))):
        first = np.argmax(log_mixture(won + n * share, lost + n * (1 - share)) >= np.log(4 / (3 * 0.05)))
        assert got == pytest.approx(0.9 * first, abs=1)


def test_a_streak_of_a_million_is_no_trouble():
    found = stand([[0, 10**6], [0, 0]])
    assert found.chances[0] == ("arm 0", 1.0)
    assert (found.answers_median, found.answers_90) == (0, 0)
    assert str(found) == "Chance to be the best: arm 0 100%. The verdict is known."


def test_more_answers_leave_fewer_to_come():
    medians = [stand([[0, 6 * n], [4 * n, 0]]).answers_median for n in (2, 5, 10)]
    assert medians == sorted(medians, reverse=True)


def test_ties_take_more_answers():
    wins, ties = [[0, 12], [8, 0]], [[0, 20], [20, 0]]
    assert stand(wins, ties).answers_median == pytest.approx(2 * stand(wins).answers_median, rel=0.1)


def on_items(items, wins, ties=None, margin=0.0):
    tally = as_tally([*"abcdefg"[: len(wins)]], wins, ties, items=items, about="these-answers")
    return standing(tally, confidence=0.95, margin=margin)


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_on_these_answers_no_more_is_needed_than_is_left(margin):
    """Of three arms, 30 questions are asked and 3N − 30 are left."""
    wins = [[0, 6, 5], [4, 0, 5], [5, 5, 0]]
    for items in (10, 11, 15, 40, 1000):
        found = on_items(items, wins, margin=margin)
        assert found.answers_median <= found.answers_90 <= 3 * items - 30
        assert found.hint == ""
    assert on_items(10, wins, margin=margin).answers_90 == 0  # all was asked
    assert on_items(40, wins, margin=margin).answers_median > 0


def test_on_these_answers_fewer_are_needed():
    """38 to 20 is enough on 60 items and on 100, and far from enough without items; many items are as good as none."""
    wins = [[0, 38], [20, 0]]
    assert on_items(60, wins).answers_median == 0
    assert on_items(100, wins).answers_median == 0
    like = stand(wins).answers_median
    medians = [on_items(items, wins).answers_median for items in (200, 500, 10**7)]
    assert 0 < medians[0] < medians[1] < like
    assert medians[2] == pytest.approx(like, rel=0.15)  # the evidence there is of one side, and somewhat larger


def test_equal_arms_are_said_to_look_equal():
    found = stand([[0, 5000, 900], [5000, 0, 900], [100, 100, 0]])
    never = "The first arms are close to equal, and equal arms never get a verdict without a margin."
    assert found.hint.startswith(f"{never} With a margin of 0.02 it needs about ")
    assert found.hint.endswith(" more answers: look at the verdict with margin=0.02.")
    ended = stand([[0, 50000, 900], [50000, 0, 900], [100, 100, 0]]).hint
    assert ended == f"{never} With a margin of 0.02 it has a verdict now: look at the verdict with margin=0.02."
    assert found.hint in str(found)
    assert stand([[0, 5000, 900], [5000, 0, 900], [100, 100, 0]], margin=0.05).answers_median == 0


def test_many_arms_are_quick_and_sum_to_one():
    rng = np.random.default_rng(0)
    wins = rng.integers(0, 2, (400, 400))
    np.fill_diagonal(wins, 0)
    found = stand(wins)
    assert len(found.chances) == 400
    assert sum(one.chance for one in found.chances) == pytest.approx(1)


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (0.001, "1 minute"),
        (0.5, "30 minutes"),
        (1.2, "1 hour"),
        (30, "30 hours"),
        (48, "2 days"),
        (24_000, "1,000 days"),
    ],
)
def test_durations_in_words(hours, said):
    assert module._duration(hours) == said


def test_a_study_knows_its_rate(tmp_path):
    study = create_study([*"abc"], storage=f"sqlite:///{tmp_path}/duels.db")
    assert study.standing().answers_an_hour is None
    for _ in range(40):
        duel = study.ask(allow_self=False)
        study.tell(duel, min(duel.left, duel.right))
    found = study.standing()
    assert found.chances[0].arm == "a"
    assert found.answers_an_hour > 1000
    assert found.hours_median == pytest.approx(found.answers_median / found.answers_an_hour)


def studies(number, seed):
    """Random problems of the model, played by `verdict` for a while: counts, strengths, and what plays the rest."""
    rng, chosen = np.random.default_rng(seed), policy("verdict")
    for study in range(number):
        arms = int(rng.integers(2, 8))
        strengths = rng.normal(size=arms) * rng.choice(SPREADS)
        chance = special.expit(strengths[:, None] - strengths)
        chance.flags.writeable = False
        looks, state = new_looks(arms, 0.05, 0.0), chosen.start(arms)
        random = (*loop.streams(seed, study), np.random.default_rng(study))
        fixed = (state, chosen.params, chance, 0.0, True, True, np.zeros(arms), looks, 0.51)
        play = loop.compiled_for(chosen, until_verdict, partial(call_with, arguments=(*fixed, 0, *random)))
        play(*fixed, int(10 ** rng.uniform(0.5, 3)), *random)
        yield looks, strengths, partial(play, *fixed, 10**6, *random)


def call_with(function, arguments):
    return function(*arguments)


@pytest.mark.parametrize("number", [250, pytest.param(4000, marks=pytest.mark.deep)])
def test_chances_are_right_in_the_stated_share_of_studies(number):
    """Stated chances fall into five classes; in each, the share of arms that are the best is the mean stated chance.

    A deviation of 4.5 standard errors is a false alarm in fewer than one of 10⁴ checks; 0.02 is for the approximation.
    """
    stated, true = [], []
    for looks, strengths, _ in studies(number, seed=1):
        draws = draw_strengths(looks.wins, np.random.default_rng(0))
        stated += (np.bincount(draws.argmax(axis=1), minlength=len(strengths)) / len(draws)).tolist()
        true += (np.arange(len(strengths)) == strengths.argmax()).tolist()
    assert calibrated(np.array(stated), np.array(true))
    overstated = np.array(stated) ** 0.5
    assert not calibrated(overstated, np.array(true))  # the check sees chances that are too large


def calibrated(stated, true):
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (stated >= low) & (stated < low + 0.2 + 1e-9)
        error = np.sqrt(np.mean(stated[inside] * (1 - stated[inside])) / inside.sum())
        if abs(stated[inside].mean() - true[inside].mean()) > 4.5 * error + 0.02:
            return False
    return True


@pytest.mark.deep
def test_half_of_the_studies_need_fewer_answers_than_the_median():
    """Of about 800 studies without a verdict yet; one standard error is 1.8 %, of the 90 % quantile 1.1 %."""
    below = []
    for looks, _, rest in studies(1000, seed=2):
        found = stand(looks.wins)
        if found.answers_median != 0:
            answers = rest()[0]
            below.append((answers <= (found.answers_median or np.inf), answers <= (found.answers_90 or np.inf)))
    half, most = np.mean(below, axis=0)
    assert 0.4 < half < 0.65
    assert 0.84 < most < 0.96


@pytest.mark.deep
@pytest.mark.parametrize(("items", "fewest"), [(40, 0.7), (200, 0.8), (1000, 0.8)])
def test_answers_on_these_items_are_about_right(items, fewest):
    """250 studies, of which more than 120 are open when they are looked at.

    The shares were 0.50, 0.53 and 0.54 for the median, with four standard errors of 0.18 at most, and 0.82, 0.90 and
    0.87. With the estimate for items like these, the first would be 0.85 to 0.99.
    """
    rng, chosen, suffices = np.random.default_rng(3), policy("verdict"), []
    play = loop.bind_to(until_verdict_on_items, chosen)
    for number in range(250):
        arms = int(rng.integers(2, 7))
        strengths = rng.normal(size=arms) * rng.choice(SPREADS)
        drawn = np.triu(rng.binomial(items, special.expit(strengths[:, None] - strengths)), 1)
        wins = drawn + np.tril(items - drawn.T, -1)
        known = new_item_looks(wins, np.zeros_like(wins), items, 0.05, 0.0)
        none, random = np.zeros(arms), (*loop.streams(1, number), np.random.default_rng(number))
        most = max(1, int(min(10 ** rng.uniform(0.5, 3), 0.4 * items * arms * (arms - 1))))
        fixed = (chosen.start(arms), chosen.params, known, True, none)
        if play(*fixed, most, *random)[2] != NOT_YET:
            continue
        tally = as_tally([str(arm) for arm in range(arms)], known.looks.wins.astype(int), items=items)
        found = standing(tally, confidence=0.95, margin=0.0)
        assert found.answers_90 <= (wins.sum() - known.looks.wins.sum())
        more = play(*fixed, 10**6, *random)[0]
        suffices.append((more <= found.answers_median, more <= found.answers_90))
    half, most = np.mean(suffices, axis=0)
    assert len(suffices) > 120
    assert 0.33 < half < 0.72
    assert fewest < most < 0.98


def test_more_answers_than_are_looked_at_is_not_a_number():
    """A million million answers may be needed here; the largest number that is looked at must not be printed."""
    wins = np.array([[0, 5_000_000], [4_999_900, 0]])
    found = standing(as_tally(["a", "b"], wins), confidence=0.95, margin=0.0)
    assert (found.answers_median, found.answers_90) == (None, None)
    assert "No verdict is in sight." in str(found)
