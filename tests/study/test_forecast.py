"""Where a study stands: chances against numerical integration, and their calibration by simulated studies."""

import re

import numpy as np
import pytest
from forecasts import CLEAR, KINDS, forecast, forecasts, live_forecasts, played, played_on_items, studies, suffices
from scipy import integrate, special, stats

from duels.policies.evidence import margin_level, winner_level
from duels.server.results_tab import glance
from duels.study.create import create_study
from duels.study.stats import forecast as module
from duels.study.stats import verdict as verdicts
from duels.study.stats.evidence import evidence, log_closeness
from duels.study.stats.forecast import SPREADS, draw_strengths, make_forecast
from duels.study.stats.tally import as_tally


def stand(wins, ties=None, confidence=0.95, margin=0.0, **more):
    tally = as_tally([f"arm {k}" for k in range(len(wins))], wins, ties)
    return make_forecast(tally, confidence=confidence, margin=margin, **more)


def exact_chance(won, lost):
    """P(θ₀ > θ₁ | answers) by integration over the difference: N(0, 2σ²) before the first answer, σ with weight σ."""
    above = total = 0.0
    for spread in SPREADS:

        def density(x, spread=spread):
            likelihood = np.exp(won * special.log_expit(x) + lost * special.log_expit(-x) + (won + lost) * np.log(2))
            return likelihood * stats.norm.pdf(x, scale=spread * np.sqrt(2))

        above += spread * integrate.quad(density, 0, 15, limit=200)[0]
        total += spread * integrate.quad(density, -15, 15, limit=400, points=[0])[0]
    return above / total


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (3, 1), (8, 6), (30, 20), (12, 0)])
def test_the_chance_of_two_arms_by_integration(won, lost):
    """2,000 draws, of which the weights leave at least half: one standard error is at most 0.016."""
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


def first_passage(won, lost, share, most, margin):
    """(most + 1,): the exact chance that a pair has enough evidence for its first arm after so many more answers.

    The lead is a Markov chain that ends where the evidence is enough: to win, or with a margin to be close.
    """
    chance, ended = np.zeros(2 * most + 1), np.zeros(most + 1)
    chance[most] = 1.0
    for n in range(1, most + 1):
        chance[1:-1] = share * chance[:-2] + (1 - share) * chance[2:]
        more = np.arange(n + 1)
        wins, losses = won + more, lost + n - more
        over = (evidence(wins, losses) >= winner_level(0.05, 2)) & (wins > losses)
        if margin > 0:
            over |= log_closeness(wins, losses, np.zeros(n + 1), margin) >= margin_level(0.05, 2)
        places = most + 2 * more[over] - n
        ended[n] = ended[n - 1] + chance[places].sum()
        chance[places] = 0.0
    return ended


@pytest.mark.parametrize(
    ("won", "lost", "lead", "margin"), [(10, 10, 0.4, 0.0), (20, 30, 0.4, 0.0), (10, 10, 1.0, 0.0), (10, 10, 0.2, 0.1)]
)
def test_answers_needed_against_the_exact_distribution(won, lost, lead, margin):
    """Of two arms with known strengths: the inverse Gaussian distribution is right within four points of a percentage.

    2,000 draws add 4.5 standard errors of at most 1.2 points. Without its luck, the number would be the same each time.
    """
    tally, strengths = as_tally(["a", "b"], [[0, won], [lost, 0]]), np.tile([lead, 0.0], (2000, 1))
    needed = module.answers_needed(tally, np.array([0, 1]), strengths, 0.95, margin)
    exact = first_passage(won, lost, special.expit(lead), 1500, margin)
    for level in (0.25, 0.5, 0.75, 0.9):
        error = 0.04 + 4.5 * np.sqrt(level * (1 - level) / 2000)
        assert exact[int(np.quantile(needed, level))] == pytest.approx(level, abs=error)


def test_a_streak_of_a_million_is_no_trouble():
    found = stand([[0, 10**6], [0, 0]])
    assert found.chances[0] == ("arm 0", 1.0)
    assert (found.answers_median, found.answers_90) == (0, 0)
    assert str(found) == "Chance to be the best: arm 0 >99 %. The verdict is known."


def test_more_answers_leave_fewer_to_come():
    medians = [stand([[0, 7 * n], [3 * n, 0]]).answers_median for n in (2, 3, 4)]
    assert medians == sorted(medians, reverse=True)
    assert medians[0] > medians[2] > 0


def test_ties_take_more_answers():
    wins, ties = [[0, 14], [6, 0]], [[0, 20], [20, 0]]
    assert stand(wins, ties).answers_median == pytest.approx(2 * stand(wins).answers_median, rel=0.15)


def test_nothing_is_forecast_before_there_is_something_to_go_on():
    early = ("It is too early to say how many more answers are needed.", None, None, "")
    for wins in (np.zeros((2, 2), int), [[0, 8], [1, 0]], [[0, 15], [4, 0]]):  # ten for each arm are 20
        found = stand(wins, answers_an_hour=60.0)
        assert (found.reason, found.answers_median, found.answers_90, found.hint) == early
        assert found.hours_median is None
        assert str(found).endswith(early[0])
    assert stand([[0, 15], [4, 0]], [[0, 1], [1, 0]]).answers_median > 0
    assert on_items(40, [[0, 5], [2, 0]]).answers_median > 0  # the items limit the answers
    assert on_items(40, [[0, 0], [0, 0]]).reason == early[0]


def test_a_forecast_that_says_nothing_is_left_out(monkeypatch):
    """Nine in ten may need more than fifty times the median, and more than there are."""
    tally = as_tally(["a", "b"], [[0, 60], [40, 0]])
    assert module._forecast(np.array([10.0] * 5 + [500.0] * 5), tally, 2) == (255, 500, "")
    assert module._forecast(np.array([10.0] * 6 + [501.0] * 4), tally, 2) == (None, None, module.TOO_EARLY)
    assert module._forecast(np.array([1.0] * 6 + [99.0] * 4), tally, 2) == (1, 99, "")  # soon over
    assert module._forecast(np.array([10.0] * 4 + [1e7] * 6), tally, 2) == (None, None, module.NOT_IN_SIGHT)
    assert module._forecast(np.array([0.0] * 6 + [1e7] * 4), tally, 2)[0] == 0


def test_nothing_is_forecast_that_cannot_be_asked():
    """About new items: 30 to 20 of 60 cannot become certain, and 32 to 18 of 1,000 items may, with at most 950 more."""

    def about_new_items(items, left=None, wins=((0, 30), (20, 0))):
        tally = as_tally(["a", "b"], wins, items=items, about="new-items")
        return make_forecast(tally, confidence=0.95, margin=0.0, left=left)

    for items, reason in ((50, "No question can be asked now."), (60, "No verdict is in sight.")):
        found = about_new_items(items)
        assert (found.answers_median, found.answers_90, found.reason) == (None, None, reason)
        assert str(found).endswith(reason)
    enough = about_new_items(1000, wins=((0, 32), (18, 0)))
    assert 0 < enough.answers_median <= 950
    assert enough.answers_90 is None or enough.answers_90 <= 950
    assert about_new_items(1000, np.zeros((2, 2))).reason == "No question can be asked now."
    retired = as_tally(["a", "b"], [[0, 30], [20, 0]], active=[True, False])
    assert make_forecast(retired, confidence=0.95, margin=0.0).reason == "No question can be asked now."


def test_a_study_forecasts_only_what_it_asks(tmp_path):
    study = create_study([*"abc"], storage=f"sqlite:///{tmp_path}/duels.db")
    study.import_votes([("a", "b", "left"), ("a", "c", "left"), ("b", "c", "left")] * 9)
    study.import_votes([("a", "b", "right"), ("a", "c", "right"), ("b", "c", "right")] * 4)
    found = study.forecast()
    assert found.answers_median > 0
    study.retire()
    assert (study.forecast().answers_median, study.forecast().reason) == (None, "No question can be asked now.")
    assert study.verdict().answers_to_go is None
    assert "likely needed" not in str(study.verdict()) + str(study.forecast())


def test_headline_verdict_page_and_standing_say_the_same_number(tmp_path):
    study = create_study([*"abc"], storage=f"sqlite:///{tmp_path}/duels.db")
    study.import_votes([("a", "b", "left"), ("a", "c", "left"), ("b", "c", "left")] * 9)
    study.import_votes([("a", "b", "right"), ("a", "c", "right"), ("b", "c", "right")] * 4)
    answers, shown = study.forecast().answers_median, glance(study)
    rounded = f"{float(f'{answers:.2g}'):,.0f}"
    assert study.verdict().answers_to_go == study.verdict().as_dict()["answers_to_go"] == answers > 0
    assert f"About {rounded} more answers are likely needed." in str(study.verdict())
    assert f"About {rounded} more answers are likely needed, and fewer than" in str(study.forecast())
    assert re.fullmatch(f"Not yet: a leads .*, about {rounded} answers to go", shown["verdict"]["headline"])
    assert shown["next"]["answers"] == answers


def test_a_verdict_forecasts_nothing_until_it_is_asked(monkeypatch):
    """After every answer a study looks at its verdict, which must not take long."""
    calls = []
    forecast = verdicts.make_forecast
    monkeypatch.setattr(verdicts, "make_forecast", lambda *counts, **more: calls.append(1) or forecast(*counts, **more))
    found = verdicts.verdict(as_tally([*"ab"], [[0, 14], [6, 0]]))
    assert (found.kind, found.leader, found.open_pairs) == ("not yet", "a", (("a", "b"),))
    assert found == verdicts.verdict(as_tally([*"ab"], [[0, 14], [6, 0]]))
    assert "likely needed" not in found.text(forecast=False)
    assert not calls
    assert found.answers_to_go > 0
    assert f"About {found.answers_to_go} more answers are likely needed." in str(found)
    assert len(calls) == 1
    many = verdicts.verdict(as_tally(map(str, range(51)), np.triu(np.full((51, 51), 3), 1)))
    assert (many.kind, many.answers_to_go) == ("not yet", None)  # of so many arms it takes too long


def on_items(items, wins, ties=None, margin=0.0):
    tally = as_tally([*"abcdefg"[: len(wins)]], wins, ties, items=items, about="these-answers")
    return make_forecast(tally, confidence=0.95, margin=margin)


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
    assert like is not None
    medians = [on_items(items, wins).answers_median for items in (200, 500, 10**7)]
    assert 0 < medians[0] < medians[1] < like
    assert medians[2] == pytest.approx(like, rel=0.35)  # there answers come in their expected proportions


def test_equal_arms_are_said_to_look_equal():
    found = stand([[0, 5000, 900], [5000, 0, 900], [100, 100, 0]])
    never = "The first arms are close to equal, and without a margin a study of equally good arms never ends."
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
    assert study.forecast().answers_an_hour is None
    for _ in range(40):
        duel = study.ask(allow_self=False)
        study.tell(duel, min(duel.left, duel.right))
    found = study.forecast()
    assert found.chances[0].arm == "a"
    assert found.answers_an_hour > 1000
    assert found.hours_median == pytest.approx(found.answers_median / found.answers_an_hour)


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


@pytest.mark.parametrize("number", [160, pytest.param(2600, marks=pytest.mark.deep)])
def test_half_of_the_studies_need_fewer_answers_than_the_median(number):
    """Truths drawn from the prior; three in four of the studies have no verdict yet.

    If the median is right, the share is that of heads of a coin: of 110 studies 4.5 standard errors are a false alarm
    in fewer than one of 10⁵ runs. The deep test has about 1,900, of which 0.45 and 0.55 are 4.4 standard errors away,
    and of the 90 % figure 0.87 and 0.96 more than 4.3: a false alarm in fewer than one of 10⁴ runs.
    """
    rows = forecasts(studies(number, seed=2))
    half, most = suffices(rows)
    error = 4.5 / np.sqrt(len(rows))
    low, high = (0.45, 0.55) if number > 1000 else (0.5 - 0.5 * error, 0.5 + 0.5 * error)
    assert low <= half <= high
    assert (0.87 if number > 1000 else 0.9 - 0.3 * error) <= most <= (0.96 if number > 1000 else 1.0)
    for factor in (4, 1 / 4):  # the check sees forecasts that are so much too long or too short
        half, _ = suffices([row._replace(median=factor * row.median) for row in rows])
        assert not (low <= half <= high)


def ratio(rows):
    """How many times the median of the actual answers the median of the forecasts is."""
    return np.median([row.median for row in rows]) / np.median([row.actual for row in rows])


def test_no_number_lies_between_a_verdict_and_none():
    """Where nearly one future in ten has no verdict, nine in ten did not need a million answers, of few questions."""
    tally = as_tally(["a", "b"], [[0, 30], [10, 0]], items=60, about="new-items")
    for none, most in ((9, 40), (10, None), (11, None)):
        needed = np.array([12.0] * 60 + [40.0] * (40 - none) + [float(module.MANY)] * none)
        assert module._forecast(needed, tally, 2) == (12, most, "")


@pytest.mark.deep
@pytest.mark.parametrize("truth", CLEAR)
def test_a_clear_winner_is_not_forecast_far_too_long(truth):
    """At least 400 studies each. The ratio of the medians was 1.3 to 3.8, and the 90 % figure sufficed in 97 to 99 %.

    If it sufficed in 90 %, the share in 400 studies were below 0.85 in fewer than one of 10³ runs.
    """
    strengths, answers = CLEAR[truth]
    rows = forecasts(played(strengths, answers, range(500), 7))
    assert len(rows) >= 400
    assert suffices(rows)[1] >= 0.85
    assert ratio(rows) < 5


@pytest.mark.deep
@pytest.mark.parametrize("items", [40, 200, 1000])
@pytest.mark.parametrize("about", ["new-items", "these-answers"])
def test_forecasts_on_items_are_about_right(about, items):
    """Of new items no verdict may be in sight; then nothing is forecast, and no figure is compared.

    If the figures are right, 4.5 standard errors are a false alarm in fewer than one of 10⁵ runs; 0.04 is for the
    approximation, which leaves out some luck. With the estimate for independent answers, the median would suffice in
    0.85 to 0.99 on these answers.
    """
    rows = forecasts(played_on_items(items, about, 400, 3), items=items, about=about)
    for level, share, known in zip((0.5, 0.9), suffices(rows), zip(*[(row.median, row.most) for row in rows])):
        error = 0.04 + 4.5 * np.sqrt(level * (1 - level) / np.isfinite(known).sum())
        assert share == pytest.approx(level, abs=error)
    left = items * 21  # questions about all pairs of seven arms
    assert all(row.median <= left and row.most <= left for row in rows if np.isfinite(row.most))
    if about == "new-items":  # where no verdict is in sight, most studies have none
        assert np.mean([np.isfinite(row.actual) for row in rows if not np.isfinite(row.median)]) < 0.5


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_of_live_studies_suffice(kind):
    """Asked and told as live studies: with the levels of people who come back, and of arms that come and go.

    If the 90 % figure sufficed in 90 %, the share in 100 studies were below 0.77 in fewer than one of 10⁴ runs.
    """
    rows = live_forecasts(kind, [CLEAR["3 arms, 70 %, after 60"]] * 130, 1)
    assert len(rows) > 80
    assert suffices(rows)[1] >= 0.77
    assert ratio(rows) < 6


def test_an_arm_that_has_not_beaten_a_retired_one_needs_more():
    """Each of its pairs must then be certain on its own, by a union over all pairs: as much as δ/32 against 2δ/K²."""

    def needed(wins_over_retired):
        wins = [[0, 12, wins_over_retired], [8, 0, 0], [0, 0, 0]]
        tally = as_tally([*"abc"], wins, active=[True, True, False])
        strengths = np.tile([1.0, 0.0], (500, 1))
        return np.median(module.answers_needed(tally, np.array([0, 1]), strengths, 0.95, 0.0))

    assert needed(0) > 1.5 * needed(40)


def test_the_forecasts_that_are_compared_are_those_of_standing():
    for looks, _, _ in list(played(*CLEAR["3 arms, 70 %, after 60"], range(5), 7)):
        tally = as_tally([*"abc"], looks.wins.astype(int))
        said = make_forecast(tally, confidence=0.95, margin=0.0, known=False)
        assert forecast(tally) == (said.answers_median, said.answers_90, True)


def test_a_live_study_forecasts_what_it_needs():
    """As the deep tests, quicker: after 60 answers about three arms, of which people give several each.

    If the 90 % figure suffices in 90 % of the studies, at most half of 20 happen in fewer than one of 10⁵ runs.
    """
    rows = live_forecasts("people come back", [CLEAR["3 arms, 70 %, after 60"]] * 20, 1)
    assert suffices(rows)[1] > 0.5
    assert suffices([row._replace(most=row.most / 10) for row in rows])[1] < 0.5  # the check sees what is too short


def test_more_answers_than_are_looked_at_is_not_a_number():
    """A million million answers may be needed here; the largest number that is looked at must not be printed."""
    wins = np.array([[0, 5_000_000], [4_999_900, 0]])
    found = make_forecast(as_tally(["a", "b"], wins), confidence=0.95, margin=0.0)
    assert (found.answers_median, found.answers_90) == (None, None)
    assert "No verdict is in sight." in str(found)
