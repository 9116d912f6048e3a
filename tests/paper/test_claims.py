"""The paper's statements: verdicts on made-up results by hand, intervals by their coverage, subsets by brute force."""

import itertools
import json
import math

import numpy as np
import polars as pl
import pytest

import duels
from duels.errors import InvalidInput
from duels.paper.claims import LEVELS, MARKS, PAPER, claims_text, combine_kinds, combine_parts, paper_claims
from duels.paper.claims import judge as judge_interval
from duels.paper.estimates import Accuracy, arrival, median_interval, ratio_of_means, share_of_time
from duels.preference import PreferenceMatrix
from duels.results import SCHEMA, Results

ARXIV = duels.load_problem("arxiv-6")


def rows(policy, t, regrets, right=1.0, *, horizon=None, problem="p"):
    """One checkpoint of some runs, of which the first `right` are correct."""
    count = len(regrets)
    columns = {
        "problem": [problem] * count,
        "arms": [6] * count,
        "policy": [policy] * count,
        "horizon": [horizon or t] * count,
        "run": list(range(count)),
        "t": [t] * count,
        "regret": [float(regret) for regret in regrets],
        "weak_regret": [0.0] * count,
        "simple_regret": [0.0] * count,
        "duels": [t] * count,
        "recommended": [0] * count,
        "correct": [run < right * count for run in range(count)],
        "explored": [None] * count,
    }
    return pl.DataFrame(columns, schema=SCHEMA)


def judge(*frames, matrices=None, pool=None, draws=None):
    """The claims by key."""
    results = Results(pl.concat(frames))
    problems = results.frame["problem"].unique().to_list()
    found = paper_claims(results, matrices or dict.fromkeys(problems, ARXIV), pool, draws)
    return {claim.key: claim for claim in found}


def about(mean, spread=0.01):
    return [mean * (1 - spread), mean * (1 + spread)]


def compared(savage, btm=None, *, rucb=100.0, problem="p", t=1000):
    """Two runs of RUCB, of SAVAGE and, if given, of BTM with these mean regrets.

    The two differ by a hundredth to either side, so each mean has the share 2·0.01²/2 = 10⁻⁴ of the variance, at two
    degrees of freedom (t₀.₉₇₅ = 4.3027): a ratio's interval reaches a factor exp(4.3027·√(2·10⁻⁴)) = 1.063 each way.
    """
    regrets = {"rucb": rucb, "savage": savage} | ({} if btm is None else {"btm": btm})
    return pl.concat([rows(policy, t, about(mean), problem=problem) for policy, mean in regrets.items()])


def curve(policy, accuracies, *, problem="p", fresh=True):
    """Twenty runs at times 100, 200, 400, …, with these accuracies; each time of its own horizon if fresh."""
    times = [100 * 2**k for k in range(len(accuracies))]
    return pl.concat(
        [
            rows(policy, t, [1.0] * 20, right, horizon=t if fresh else times[-1], problem=problem)
            for t, right in zip(times, accuracies)
        ]
    )


def test_the_interval_by_hand():
    # Means 10 and 1, variances 8 and 0.08: each share of the variance is var/(n·mean²) = 8/200 = 0.08/2 = 0.04, so the
    # logarithm has standard error √0.08 and (0.08)²/(0.04²/1 + 0.04²/1) = 2 degrees of freedom, with the quantile
    # t₀.₉₇₅ = 4.302653 of any table.
    found = ratio_of_means([8.0, 12.0], [0.8, 1.2])
    reach = math.exp(4.302653 * math.sqrt(0.08))
    assert found == pytest.approx((10, 10 / reach, 10 * reach), rel=1e-6)
    assert [type(number) for number in found] == [float] * 3
    # Unequal: shares 2/(2·4) = 0.25 over one degree of freedom, and for 1, 1, 4 the variance 3 over n·mean² = 12, so
    # 0.25 over two; 0.5²/(0.0625 + 0.03125) = 8/3 degrees of freedom. The tables' neighbors: t₂ = 4.3027, t₃ = 3.1824.
    uneven = ratio_of_means([1.0, 3.0], [1.0, 1.0, 4.0])
    assert uneven.ratio == 1
    assert math.exp(3.1824 * math.sqrt(0.5)) < uneven.high < math.exp(4.3027 * math.sqrt(0.5))
    assert uneven.low == pytest.approx(1 / uneven.high)


def test_equal_runs_have_a_point_for_an_interval():
    assert ratio_of_means([6.0, 6.0], [2.0, 2.0, 2.0]) == (3, 3, 3)


@pytest.mark.parametrize(("runs", "lower", "upper"), [(100, 0.9375, 0.9575), (20, 0.933, 0.953), (5, 0.933, 0.953)])
def test_the_interval_covers_as_often_as_it_says(runs, lower, upper):
    """20,000 pairs of lognormal samples of σ = 0.3 and 0.5, more skewed than regrets are.

    A share of 20,000 near 95 % has a standard deviation of 0.0016. The coverages, from 400,000 pairs, are 0.9475, 0.943
    and 0.943; the bands reach 0.01 to either side, six deviations, so a false alarm is below 1e-8. A normal quantile
    instead of Student's covers 0.893 at five runs.
    """
    rng = np.random.default_rng(1)
    top = rng.lognormal(2.0, 0.3, (20_000, runs))
    bottom = rng.lognormal(0.0, 0.5, (20_000, runs))
    truth = math.exp(2 + 0.3**2 / 2 - 0.5**2 / 2)
    found = ratio_of_means(top, bottom)
    assert lower < np.mean((found.low <= truth) & (truth <= found.high)) < upper
    # Neither side misses for both: 1.7 to 4.1 % each, at seven deviations from these limits or more.
    assert 0.01 < np.mean(found.low > truth) < 0.05
    assert 0.01 < np.mean(found.high < truth) < 0.05


@pytest.mark.parametrize(
    ("interval", "at_least", "at_most"),
    [
        ([5.0, 7.0], "holds", "not decided"),
        ([5.1, 7.0], "holds", "fails"),
        ([4.9, 7.0], "not decided", "not decided"),
        ([3.0, 4.9], "fails", "holds"),
        ([3.0, 5.0], "not decided", "holds"),
        ([5.5, 5.5], "holds", "fails"),
        ([5.1, None], "holds", "fails"),
        ([None, 4.9], "fails", "holds"),
        ([None, 5.1], "not decided", "not decided"),
        ([None, None], "not decided", "not decided"),
    ],
)
def test_a_verdict_takes_the_whole_interval(interval, at_least, at_most):
    """By the same rule whether a claim is that a number is 5 or more, or 5 or less: neither side is favored."""
    assert judge_interval(interval, lambda number: number >= 5) == at_least
    assert judge_interval(interval, lambda number: number <= 5) == at_most


H, F, U = "holds", "fails", "not decided"


@pytest.mark.parametrize(
    ("verdicts", "parts", "kinds"),
    [
        ([H], H, H),
        ([F], F, F),
        ([U], U, U),
        ([H, H], H, H),
        ([F, F], F, F),
        ([H, F], F, "holds in part"),
        ([H, U], U, U),
        ([F, U], F, U),
        ([H, F, U], F, "holds in part"),
    ],
)
def test_verdicts_are_combined(verdicts, parts, kinds):
    """A claim with parts needs all of them. In part means that it was shown to be true here and untrue there."""
    assert combine_parts(verdicts) == parts
    assert combine_kinds(verdicts) == kinds


def test_the_interval_of_a_median_by_hand():
    """Of 2ⁿ tosses of n coins 1, n, n(n−1)/2 … have 0, 1, 2 … heads; both tails together may hold one in 20.

    5: 2·1/32 is more. 6: 2·1/64 is less. 10: 2·(1 + 10)/1024 = 2.1 % is less, 2·(1 + 10 + 45)/1024 = 10.9 % is more.
    12: 2·(1 + 12 + 66)/4096 = 3.9 %, and 2·(79 + 220)/4096 = 14.6 %.
    """
    values = [float(k) for k in (7, 2, 9, 4, 11, 6, 1, 8, 3, 10, 5, 12)]
    expected = {5: None, 6: (2, 11), 10: (2, 10), 12: (3, 10)}
    assert {n: median_interval(values[:n], values[:n]) for n in expected} == expected
    highs = [value + 0.5 for value in values]
    assert median_interval(values, highs) == (3, 10.5)
    assert median_interval([0.0] * 6, [math.inf] * 6) == (0, math.inf)


@pytest.mark.parametrize(("draws", "chance"), [(6, 1 - 2 / 64), (10, 1 - 22 / 1024), (12, 1 - 158 / 4096)])
def test_the_interval_of_a_median_covers_as_often_as_it_says(draws, chance):
    """4,000 samples of a lognormal, whose median is 1: a share near 96 % has a standard deviation of 0.003.

    The band reaches six of them to either side: a false alarm is below 1e-8. One rank further in covers 0.78 to 0.89.
    """
    rng = np.random.default_rng(3)
    found = [median_interval(sample, sample) for sample in rng.lognormal(0, 1, (4000, draws)).tolist()]
    assert abs(np.mean([low <= 1 <= high for low, high in found]) - chance) < 0.018


def ten_draws(ratios, spread=0.01):
    """Draws of one kind, on each two runs of RUCB, SAVAGE and BTM, whose regret is 1.5 times SAVAGE's."""
    regrets = [{"rucb": 1.0, "savage": ratio, "btm": 1.5 * ratio} for ratio in ratios]
    frames = [
        rows(policy, 100_000, about(mean, spread), problem=f"draw {place}")
        for place, means in enumerate(regrets)
        for policy, mean in means.items()
    ]
    return frames, {"some arms": [f"draw {place}" for place in range(len(ratios))]}


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([9, 4, 5.1, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7, 5.8], "holds"),  # the second smallest of ten is 5.1
        ([9, 4, 4.9, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7, 5.8], "not decided"),
        ([9, 4, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 4.9], "fails"),  # the second largest is 4.9
        ([9, 4, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 5.1], "not decided"),
        ([9, 8, 7, 6, 6], "not decided"),  # too few
    ],
)
def test_draws_are_judged_by_the_interval_between_them(ratios, verdict):
    """The runs on each draw are nearly equal: an interval between runs would be within 7 % of one draw's ratio."""
    for spread in (0.01, 0.2):
        frames, draws = ten_draws(ratios, spread)
        claim = judge(*frames, draws=draws)["regret-savage"]
        (row,) = claim.numbers["problems"].values()
        assert claim.verdict == row["verdict"] == verdict
        assert row["savage"]["ratio"] == pytest.approx(np.median(ratios))
        assert row["savage"]["range"] == pytest.approx([min(ratios), max(ratios)])
        expected = sorted(ratios)[1::7] if len(ratios) == 10 else [None, None]
        assert row["savage"]["interval"] == pytest.approx(expected)
        assert [one["savage"]["ratio"] for one in row["draws"].values()] == pytest.approx(ratios)
        assert ("These draws do not tell on some arms." in claim.found) == (verdict == "not decided")
        assert ("too few draws for an interval" in claim.found) == (len(ratios) == 5)
    assert f"(95 % intervals for the median of {len(ratios)} draws on some arms)" in claim.found
    low, high = min(ratios), max(ratios)
    assert f"The draws go from {low:.3g} to {high:.3g} on some arms." in claim.found


def test_one_draw_of_all_arms_stands_beside_several_of_some():
    frames, draws = ten_draws([6.0 + k / 10 for k in range(10)])
    single = compared(300, 900, problem="all arms", t=100_000)
    found = judge(*frames, single, draws=draws)
    claim = found["regret-savage"]
    assert claim.verdict == "holds in part"
    assert (
        "(95 % intervals for the median of 10 draws on some arms, between 2 runs of one draw on all arms)"
        in claim.found
    )
    assert claim.found.endswith("It holds on some arms. It fails on all arms.")
    assert list(found["regret-btm"].numbers["problems"]) == ["some arms", "all arms"]


def test_btm_over_draws():
    """It has 1.5 times SAVAGE's regret on each; γ = 6 lets no arm leave: such a draw may have any smaller ratio.

    With one of them the second smallest ratio is another one's, with two it is nothing.
    """
    ratios = [6.0 + k / 10 for k in range(10)]
    for idle, verdict in ((0, "holds"), (1, "holds"), (2, "not decided")):
        frames, draws = ten_draws(ratios)
        for place in range(idle):
            frames[3 * place + 2] = rows("btm:gamma=6", 100_000, about(9), problem=f"draw {place}")
        claim = judge(*frames, draws=draws)["regret-btm"]
        assert claim.verdict == verdict
        assert (f"On {idle} of 10 draws of some arms BTM's γ lets no arm leave" in claim.found) == (idle > 0)


def test_times_and_accuracies_over_draws():
    """RUCB has an eighth of SAVAGE's time (within a quarter) on nine draws or eight, and as much time on the others."""
    for slow, verdict in ((1, "holds"), (2, "not decided"), (9, "fails")):
        frames = [
            curve(policy, accuracies, problem=f"draw {place}")
            for place in range(10)
            for policy, accuracies in zip(("rucb", "savage"), LATER if place < slow else QUICK)
        ]
        draws = {"some arms": [f"draw {place}" for place in range(10)]}
        found = judge(*frames, draws=draws)
        assert found["time-to-accuracy"].verdict == verdict
        level = found["time-to-accuracy"].numbers["problems"]["some arms"]["levels"][LEVELS.index(0.95)]
        spans = sorted([[0.5 * 2, 4.0]] * slow + [[0.0625, 0.25]] * (10 - slow))
        assert level["interval"] == [spans[1][0], sorted(high for _, high in spans)[-2]]
        assert " of Condorcet SAVAGE's time (median of 10 draws; within " in found["time-to-accuracy"].found
        assert found["accuracy-final"].verdict == "holds"
        assert found["accuracy-final"].numbers["problems"]["some arms"]["savage"]["interval"] == [1, 1]
        assert found["gamma"].numbers["problems"]["some arms"]["interval"] == pytest.approx([1.25, 1.25])


def test_draws_in_which_a_policy_never_arrives_have_an_open_end():
    never = ([0, 1, 1, 1, 1], [0, 0, 0, 0, 0])  # SAVAGE's time is beyond 1600: RUCB's share is below 200/1600
    frames = [
        curve(policy, accuracies, problem=f"draw {place}")
        for place in range(10)
        for policy, accuracies in zip(("rucb", "savage"), never if place < 3 else QUICK)
    ]
    found = judge(*frames, draws={"some arms": [f"draw {place}" for place in range(10)]})["time-to-accuracy"]
    level = found.numbers["problems"]["some arms"]["levels"][LEVELS.index(0.95)]
    assert (level["share"], level["interval"], level["arrived"]) == (None, [0.0, 0.25], {"rucb": 10, "savage": 7})
    assert "it is reached by Condorcet SAVAGE in 7 of 10 draws" in found.found
    assert json.dumps(found.numbers, allow_nan=False)


def test_a_draw_that_was_not_run_is_refused():
    with pytest.raises(InvalidInput, match="draw 'x' is not in the results"):
        judge(compared(700), draws={"some": ["p", "x"]})


def test_five_times_less_regret_holds():
    claim = judge(compared(535, problem="a"), compared(1200, problem="b"))["regret-savage"]  # 5.35/1.063 = 5.03
    assert claim.verdict == "holds"
    assert claim.numbers["problems"]["a"]["savage"]["ratio"] == pytest.approx(5.35)
    assert claim.numbers["problems"]["b"]["rucb"] == {"policy": "rucb", "regret": 100.0}
    assert "5.35 (" in claim.found
    assert "above 10 on b" in claim.found
    assert "below" not in claim.found
    assert "at t = 1,000 (95 % intervals between 2 runs)" in claim.found


@pytest.mark.parametrize(
    ("frames", "verdict", "said"),
    [
        # 4.6·1.063 = 4.89 is below 5, 4.9·1.063 = 5.2 is not, and neither is 5.1/1.063 = 4.8.
        ([compared(460)], "fails", ""),
        ([compared(490)], "not decided", "These runs do not tell on p."),
        ([compared(510)], "not decided", "These runs do not tell on p."),
        ([compared(110)], "fails", ""),
        ([compared(80)], "fails", ""),
        ([compared(286, problem="a"), compared(246, problem="b"), compared(170, problem="c")], "fails", ""),
        ([compared(900, problem="a"), compared(300, problem="b")], "holds in part", "It holds on a. It fails on b."),
        ([compared(900, problem="a"), compared(80, problem="b")], "holds in part", "It holds on a. It fails on b."),
        ([compared(900, problem="a"), compared(490, problem="b")], "not decided", "It holds on a. These runs do not"),
        (
            [compared(490, problem="a"), compared(300, problem="b")],
            "not decided",
            "It fails on b. These runs do not tell on a.",
        ),
        (
            [compared(900, problem="a"), compared(490, problem="b"), compared(300, problem="c")],
            "holds in part",
            "It holds on a. It fails on c. These runs do not tell on b.",
        ),
        # Means 600 and 100, but the two runs differ wildly: with 200 and 1000 the interval reaches below 1.
        (
            [rows("rucb", 10, about(100)), rows("savage", 10, [200, 1000])],
            "not decided",
            "These runs do not tell on p.",
        ),
        (
            [rows("rucb", 10, about(100)), rows("savage", 10, [100, 500])],
            "not decided",
            "These runs do not tell on p.",
        ),
    ],
)
def test_less_regret_in_part_or_not(frames, verdict, said):
    claim = judge(*frames)["regret-savage"]
    assert (claim.verdict, said in claim.found) == (verdict, True), claim.found
    verdicts = [row["verdict"] for row in claim.numbers["problems"].values()]
    assert ("It holds on" in claim.found, "It fails on" in claim.found) == (
        len(set(verdicts)) > 1 and "holds" in verdicts,
        len(set(verdicts)) > 1 and "fails" in verdicts,
    )


def test_a_regret_is_read_where_all_have_the_last_time():
    """RUCB ran once to 1,000 with checkpoints, SAVAGE afresh for 10 and 100: the last time they share is 100."""
    rucb = [rows("rucb", t, about(regret), horizon=1000) for t, regret in ((10, 1), (100, 10), (1000, 20))]
    savage = [rows("savage", t, about(regret)) for t, regret in ((10, 3), (100, 60))]
    row = judge(*rucb, *savage)["regret-savage"].numbers["problems"]["p"]
    assert (row["t"], row["savage"]["ratio"]) == (100, pytest.approx(6))


def test_checkpoints_before_a_fresh_horizon_do_not_count():
    """At time 10 SAVAGE has runs of horizon 10 and checkpoints of horizon 100, which would spoil mean and accuracy."""
    savage = [
        rows("savage", 10, [30.0] * 20, 1.0),
        rows("savage", 10, [3000.0] * 20, 0.0, horizon=100),
        rows("savage", 50, [3000.0] * 20, 0.0, horizon=100),
        rows("savage", 100, [40.0] * 20, 1.0),
    ]
    rucb = [rows("rucb", t, [regret] * 20, horizon=50) for t, regret in ((10, 3.0), (50, 4.0))]
    found = judge(*rucb, *savage)
    row = found["regret-savage"].numbers["problems"]["p"]
    assert (row["t"], row["runs"], row["savage"]["ratio"]) == (10, 20, pytest.approx(10))
    assert found["time-to-accuracy"].numbers["problems"]["p"]["t"] == 10
    assert found["accuracy-final"].numbers["problems"]["p"]["savage"]["accuracy"] == 1


def test_times_and_runs_that_differ_are_said():
    frames = [rows("rucb", 100, [1, 1, 1], problem="a"), rows("savage", 100, [999, 1001], problem="a")]
    frames += [rows("rucb", 2000, [1, 1, 1], problem="b"), rows("savage", 2000, [9, 11, 9, 11], problem="b")]
    found = judge(*frames)["regret-savage"].found
    assert "is 1,000 (" in found
    assert "at t = 100 and 2,000 (95 % intervals between 2 runs)" in found


def test_the_first_policy_of_a_name_counts():
    frames = [rows("rucb:alpha=0.51", 10, about(10)), rows("rucb", 10, about(1)), rows("savage", 10, about(60))]
    row = judge(*frames)["regret-savage"].numbers["problems"]["p"]
    assert (row["rucb"]["policy"], row["savage"]["ratio"]) == ("rucb:alpha=0.51", pytest.approx(6))


@pytest.mark.parametrize(
    ("regrets", "verdicts", "verdict"),
    [
        # SAVAGE's regret and BTM's on each problem; RUCB's is 100.
        ([(600, 700), (800, 900)], ["holds", "holds"], "holds"),
        ([(600, 700), (800, 810)], ["holds", "not decided"], "not decided"),  # 810/800 is within 1.063 of 1
        ([(600, 700), (800, 600)], ["holds", "fails"], "holds in part"),
        ([(600, 500), (800, 750)], ["fails", "fails"], "fails"),  # 750·1.063 = 797
        ([(600, 600), (800, 800)], ["not decided", "not decided"], "not decided"),
        ([(600, 600), (800, 600)], ["not decided", "fails"], "not decided"),
        ([(50, 60)], ["fails"], "fails"),  # more than SAVAGE's, and less than RUCB's
        ([(50, 102)], ["not decided"], "not decided"),
        ([(90, 110)], ["holds"], "holds"),
    ],
)
def test_an_even_starker_contrast(regrets, verdicts, verdict):
    frames = [compared(*both, problem=name, t=100_000) for name, both in zip("ab", regrets)]
    claim = judge(*frames)["regret-btm"]
    assert claim.verdict == verdict
    found = claim.numbers["problems"]
    assert [row["verdict"] for row in found.values()] == verdicts
    savage, btm = regrets[0]
    assert found["a"]["btm"]["ratio"] == pytest.approx(btm / 100)
    over = found["a"]["btm"]["over_savage"]
    assert (over["ratio"], *over["interval"]) == pytest.approx(
        [btm / savage * k for k in (1, 1 / 1.0627, 1.0627)], 1e-3
    )
    assert "; over Condorcet SAVAGE's it is " in claim.found


def test_btm_that_differs_wildly_shows_nothing():
    """Means 100, 50 and 505, but BTM's two runs are 1,000 and 10: the interval goes from 0.003 to 10,000."""
    frames = [compared(50, t=100_000), rows("btm", 100_000, [1000, 10])]
    assert judge(*frames)["regret-btm"].verdict == "not decided"


def test_random_play_of_btm_shows_no_starker_contrast():
    """γ = 4.85 lets no arm leave within two million steps (below); where BTM has less regret than RUCB, it fails."""
    for btm, verdict in ((9000, "not decided"), (60, "fails")):
        spec = rows("btm:gamma=4.85", 2_000_000, about(btm))
        claim = judge(compared(700, t=2_000_000), spec)["regret-btm"]
        assert (claim.verdict, "that of random play" in claim.found) == (verdict, True)


@pytest.mark.parametrize(
    ("gamma", "expected"), [("gamma=4.85", 4.85), ("gamma=own", 1.25), ("", 1.0), ("gamma=odd", None)]
)
def test_when_arms_can_leave_beat_the_mean(gamma, expected):
    """36 γ⁴ ln(2TK) comparisons of each of K = 6 arms, at T = 4,500,000; γ is 1.25 in arxiv-6.

    That is 36·6·ln(54,000,000) = 216·17.8045 = 3,845.8 steps with γ = 1, 9,389 with 1.25 and 2,127,889 with 4.85.
    """
    spec = f"btm:{gamma}" if gamma else "btm"
    found = {}
    for end in (4_500_000, 2_000_000):
        frames = [rows(policy, end, about(100)) for policy in ("rucb", "savage", spec)]
        found[end] = judge(*frames)["regret-btm"]
    departure = found[4_500_000].numbers["problems"]["p"]["btm"]["first_departure"]
    assert departure == (None if expected is None else pytest.approx(3845.8 * expected**4, rel=1e-4))
    assert "random play" not in found[4_500_000].found
    assert ("lets no arm leave" in found[2_000_000].found) == (expected == 4.85)


def test_arrival_by_hand():
    """After 100, where it was short for the last time, and by 1,000; before the first time, and never."""
    times, accuracy = np.array([10, 100, 1000, 10_000]), np.array([0.9, 0.4, 0.95, 1.0])
    expected = {0.4: (0, 10), 0.5: (100, 1000), 0.95: (100, 1000), 0.96: (1000, 10_000), 1.0: (1000, 10_000)}
    assert {level: arrival(times, accuracy, level) for level in expected} == expected
    assert arrival(times[:2], np.array([1.0, 0.9]), 0.95) == (100, math.inf)
    several = arrival(times[:2], np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), 0.5)
    assert np.array(several).tolist() == [[0, 10, 100], [10, 100, math.inf]]


def test_runs_that_are_alike_leave_the_gaps_only():
    times = np.array([100, 200, 400, 800, 1600])
    first, second = (Accuracy(times, np.tile(times >= since, (5, 1))) for since in (200, 1600))
    found = share_of_time(first, second, 0.95)
    assert (found.rucb, found.savage, found.share) == (200, 1600, 0.125)
    assert found.between == found.interval == [0.0625, 0.25]
    assert share_of_time(second, first, 0.95).between == [4, 16]


@pytest.mark.deep
def test_the_interval_of_a_share_of_times_covers():
    """100 runs that are right from lognormal times on, SAVAGE's four times RUCB's, looked at thirty times a decade.

    The share of the times at which 90 % are right is 1/4, whatever the spread. The interval, which has the gaps to
    spare, covers it in 989 of 1,000 trials, so fewer than 52 of 60 have a chance under 1e-7. Without the scatter of
    the runs it covers 434, so 45 of 60 or more have a chance under 1e-6.
    """
    rng = np.random.default_rng(5)
    times = 10 ** np.arange(1, 5, 1 / 30)
    covered, bare = 0, 0
    for _ in range(60):
        first, second = (Accuracy(times, rng.lognormal(np.log(scale), 0.5, (100, 1)) <= times) for scale in (100, 400))
        found = share_of_time(first, second, 0.9)
        covered += found.interval[0] <= 0.25 <= found.interval[1]
        bare += found.between[0] <= 0.25 <= found.between[1]
    assert covered >= 52
    assert bare < 45


# Accuracies of RUCB and SAVAGE at t = 100, 200, 400, 800, 1600; then RUCB's and SAVAGE's time to 0.95, the share, the
# span between the earliest and the latest it may be, and the verdict.
TIMES = [
    # 200/1600; RUCB came after 100, SAVAGE after 800: between 100/1600 and 200/800.
    ([0, 1, 1, 1, 1], [0, 0, 0.5, 0.5, 1], 200, 1600, 0.125, [0.0625, 0.25], "holds"),
    # The same, but of 20 runs of which two are late, 20 drawn anew have one of them or none in 39 %: SAVAGE at 800.
    ([0, 1, 1, 1, 1], [0, 0, 0.5, 0.9, 1], 200, 1600, 0.125, [0.0625, 0.25], "not decided"),
    # A quarter, or a half at the most: that is open, and so is whether a half is a quarter.
    ([0, 1, 1, 1, 1], [0, 0, 0, 1, 1], 200, 800, 0.25, [0.125, 0.5], "not decided"),
    ([0, 0, 1, 1, 1], [0, 0, 0, 1, 1], 400, 800, 0.5, [0.25, 1.0], "not decided"),
    # A relapse at 400 puts RUCB off to 800.
    ([0, 1, 0.9, 1, 1], [0, 0, 0, 0, 1], 800, 1600, 0.5, [0.25, 1.0], "not decided"),
    ([0, 0, 1, 1, 1], [0, 0, 1, 1, 1], 400, 400, 1.0, [0.5, 2.0], "fails"),
    ([0, 0, 0, 0, 1], [0, 1, 1, 1, 1], 1600, 200, 8.0, [4.0, 16.0], "fails"),
    # RUCB was there at the first time, so the span starts at 0; SAVAGE was, so it has no end.
    ([1, 1, 1, 1, 1], [0, 0, 1, 1, 1], 100, 400, 0.25, [0.0, 0.5], "not decided"),
    ([0, 1, 1, 1, 1], [1, 1, 1, 1, 1], 200, 100, 2.0, [1.0, None], "fails"),
    ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1], 100, 100, 1.0, [0.0, None], "not decided"),
    # SAVAGE never gets there: its time is beyond 1600.
    ([0, 1, 1, 1, 1], [0, 0, 0, 0, 0.9], 200, None, None, [0.0, 0.125], "holds"),
    ([0, 0, 0, 0, 1], [0, 0, 0, 0, 0.9], 1600, None, None, [0.0, 1.0], "not decided"),
    ([0, 0, 0, 0, 0.9], [0, 0, 0, 1, 1], None, 800, None, [2.0, None], "fails"),
    ([0, 0, 0, 0, 0.9], [0, 1, 1, 1, 0.9], None, None, None, [0.0, None], "not decided"),
]


@pytest.mark.parametrize(("rucb", "savage", "first", "second", "share", "between", "verdict"), TIMES)
@pytest.mark.parametrize("fresh", [True, False])
def test_time_to_accuracy(rucb, savage, first, second, share, between, verdict, fresh):
    claim = judge(curve("rucb", rucb, fresh=False), curve("savage", savage, fresh=fresh))["time-to-accuracy"]
    row = claim.numbers["problems"]["p"]
    at = row["levels"][LEVELS.index(claim.numbers["level"])]
    assert (at["level"], at["rucb"], at["savage"]) == (0.95, first, second)
    assert (at["share"], at["between"], claim.verdict) == (share, between, verdict)
    assert ("none up to 1,600 with Condorcet SAVAGE" in claim.found) == (second is None)
    assert [one["level"] for one in row["levels"]] == [0.5, 0.75, 0.9, 0.95, 1.0]


@pytest.mark.parametrize(
    ("rucb", "savage", "certain", "shaky"),
    [
        ([0, 1, 1, 1, 1], [0, 0, 0, 0, 1], "holds", "not decided"),
        ([0, 0, 0, 1, 1], [0, 1, 1, 1, 1], "fails", "not decided"),
    ],
)
def test_a_time_that_hangs_on_one_run_is_left_open(rucb, savage, certain, shaky):
    """If one of 20 runs is wrong all the time, the first to arrive just is at 0.95.

    Of 20 runs drawn anew it has that one twice or more with a chance of 1 − 0.95²⁰ − 20·0.05·0.95¹⁹ = 26 %, and then it
    never arrives.
    """
    claims = []
    for most in (1, 0.95):
        first, second = (
            ([min(one, most) for one in rucb], savage) if rucb[1] else (rucb, [min(x, most) for x in savage])
        )
        claims.append(judge(curve("rucb", first), curve("savage", second))["time-to-accuracy"])
    assert [claim.verdict for claim in claims] == [certain, shaky]
    spans = [claim.numbers["problems"]["p"]["levels"][LEVELS.index(0.95)]["between"] for claim in claims]
    assert spans[0] == spans[1]


QUICK = ([0, 1, 1, 1, 1], [0, 0, 0, 0, 1])  # under a quarter
OPEN = ([0, 0, 1, 1, 1], [0, 0, 0, 1, 1])  # a quarter to all of the time
LATER = ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
UNKNOWN = ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (QUICK, QUICK, "holds"),
        (QUICK, UNKNOWN, "not decided"),
        (QUICK, OPEN, "not decided"),
        (QUICK, LATER, "holds in part"),
        (OPEN, LATER, "not decided"),
        (LATER, LATER, "fails"),
        (OPEN, UNKNOWN, "not decided"),
    ],
)
def test_time_to_accuracy_on_two_problems(first, second, verdict):
    frames = [
        curve(policy, accuracies, problem=problem)
        for problem, both in (("a", first), ("b", second))
        for policy, accuracies in zip(("rucb", "savage"), both)
    ]
    assert judge(*frames)["time-to-accuracy"].verdict == verdict


@pytest.mark.parametrize(
    ("rucb", "said", "verdict"),
    [
        (4, "0.4 %, within 0.2 % to 0.7 %", "holds"),
        (200, "20 %, within 0.4 % to 33 %", "holds"),  # 200/600 is a third, at the most
        (201, "20 %, within 20 % to 34 %", "not decided"),
        (340, "34 %, within 20 % to 57 %", "not decided"),
        (600, "60 %, within 34 % to 100 %", "fails"),
        (1000, "100 %, within 60 % to 167 %", "fails"),
    ],
)
def test_shares_between_powers_of_two(rucb, said, verdict):
    """RUCB is right from t on, SAVAGE from 1,000; the one before is 600."""
    frames = [
        rows(policy, t, [1.0] * 20, float(t >= since), horizon=1000)
        for t in (2, 4, 200, 201, 340, 600, 1000)
        for policy, since in (("rucb", rucb), ("savage", 1000))
    ]
    claim = judge(*frames)["time-to-accuracy"]
    assert claim.verdict == verdict
    assert f"{rucb:,} with RUCB, 1,000 with Condorcet SAVAGE ({said}; 95 % interval" in claim.found


def test_each_policy_has_its_own_times():
    """RUCB is looked at between SAVAGE's 400 and 800 as well: (500, 600] of (800, 1600] is 31 to 75 %, not 25 to 100.

    What RUCB does after SAVAGE's last time does not count.
    """
    savage = curve("savage", [0, 0, 0, 0, 1])
    times = {100: 0, 200: 0, 400: 0, 500: 0, 600: 1, 800: 1, 1600: 1, 2000: 0}
    rucb = pl.concat([rows("rucb", t, [1.0] * 20, right, horizon=2000) for t, right in times.items()])
    row = judge(rucb, savage)["time-to-accuracy"].numbers["problems"]["p"]
    assert row["t"] == 1600
    at = row["levels"][LEVELS.index(0.95)]
    assert (at["rucb"], at["savage"], at["share"]) == (600, 1600, 0.375)
    assert at["between"] == [500 / 1600, 600 / 800]


@pytest.mark.parametrize(("runs", "quick"), [(20, "holds"), (19, "not decided")])
def test_few_runs_show_no_accuracy(runs, quick):
    """RUCB is right at 100, SAVAGE at 800; with one run that would be a share under a quarter, for certain."""
    frames = [
        rows(policy, t, [1.0] * (runs if t == 100 else 30), float(t >= since), horizon=800)
        for t in (100, 200, 400, 800)
        for policy, since in (("rucb", 100), ("savage", 800))
    ]
    claim = judge(*frames)["time-to-accuracy"]
    assert claim.verdict == quick
    assert ("To tell takes 20 runs, not 19." in claim.found) == (runs == 19)


@pytest.mark.parametrize(
    ("runs", "right", "verdict"), [(71, 71, "not decided"), (72, 72, "holds"), (72, 71, "not decided"), (3, 0, "fails")]
)
def test_accuracy_one_takes_runs_to_show(runs, right, verdict):
    """The interval from n of n runs starts at 0.025^(1/n): 0.9494 for 71, 0.9501 for 72; from 0 of 3 it ends at 0.7."""
    frames = [rows("rucb", 10, [1.0] * runs), rows("savage", 10, [1.0] * runs, right / runs)]
    claim = judge(*frames)["accuracy-final"]
    assert claim.verdict == verdict
    low, high = claim.numbers["problems"]["p"]["savage"]["interval"]
    if right == runs:
        assert (low, high) == (pytest.approx(0.025 ** (1 / runs)), 1)
    if right == 0:
        assert (low, high) == (0, pytest.approx(1 - 0.025 ** (1 / runs)))


def test_times_too_far_apart_to_tell():
    """Both get there between 100 and 1,000: RUCB may have taken a tenth of the time, or ten times as long."""
    frames = [
        rows(policy, t, [1.0] * 20, float(t == 1000), horizon=1000)
        for t in (100, 1000)
        for policy in ("rucb", "savage")
    ]
    claim = judge(*frames)["time-to-accuracy"]
    assert (claim.verdict, "(100 %, within 10 % to 1,000 %; 95 % interval 10 % to 1,000 %)" in claim.found) == (
        "not decided",
        True,
    )


def test_time_to_accuracy_in_words():
    # By level: RUCB is at 0.5 from 100, at 0.75 to 0.95 from 200, at 1 never; SAVAGE from 200, 400, 400, 800 and never.
    claim = judge(curve("rucb", [0.5, 0.95, 0.95, 0.95]), curve("savage", [0, 0.5, 0.9, 0.95]))["time-to-accuracy"]
    assert "on p 200 with RUCB, 800 with Condorcet SAVAGE (25 %, within 12 % to 50 %; 95 % interval" in claim.found
    assert "Shares at 50 %, 75 %, 90 %, 95 %, 100 % of the runs: 50 %, 50 %, 50 %, 25 %, neither on p." in claim.found
    never = judge(curve("rucb", [0, 0.95, 1.0]), curve("savage", [0, 0, 0.9]))["time-to-accuracy"]
    assert "400 % of" not in never.found
    assert "50 %, 50 %, 50 %, under 50 %, under 100 % on p" in never.found
    late = judge(curve("rucb", [0, 0.9]), curve("savage", [1, 1]))["time-to-accuracy"]
    assert "none up to 200 with RUCB, 100 with Condorcet SAVAGE (RUCB never; 95 % interval" in late.found


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        ([1, 1, 1, 1], "not decided"),  # the interval from 20 of 20 runs starts at 0.025^(1/20) = 0.83
        ([1, 0.95, 1, 1], "not decided"),
        ([0.5, 0.95, 0.9, 0.5], "fails"),  # from 10 of 20 it ends at 0.73
    ],
)
def test_accuracy_in_the_end(accuracies, verdict):
    """Of RUCB and SAVAGE on a, then on b; both were wrong at first."""
    frames = []
    for place, end in enumerate(accuracies):
        frames.append(curve(("rucb", "savage")[place % 2], [0, end], problem="ab"[place // 2]))
    claim = judge(*frames)["accuracy-final"]
    assert claim.verdict == verdict
    row = claim.numbers["problems"]["a"]
    ends = [row[base]["accuracy"] for base in ("rucb", "savage")]
    assert (row["t"], row["runs"], *ends) == (200, 20, *accuracies[:2])


FEW = ["regret-btm", "time-to-accuracy", "accuracy-final"]  # two runs


@pytest.mark.parametrize(
    ("frames", "unmeasured", "said"),
    [
        (
            [rows("rucb", 10, about(1)), rows("btm", 10, about(9))],
            ["regret-savage", "regret-btm", "time-to-accuracy", "accuracy-final"],
            "Condorcet SAVAGE was not run.",
        ),
        ([compared(700)], FEW, "BTM was not run."),
        (
            [rows("random", 10, about(9))],
            ["regret-savage", "regret-btm", "time-to-accuracy", "accuracy-final"],
            "RUCB and Condorcet SAVAGE were not run.",
        ),
        ([rows("rucb", 10, [1]), rows("savage", 10, [9])], ["regret-savage", *FEW], "two runs or more"),
        ([rows("rucb", 10, [0, 0]), rows("savage", 10, [9, 9])], ["regret-savage", *FEW], "and some regret"),
        (
            [rows("rucb", 10, about(1)), rows("savage", 20, about(9))],
            ["regret-savage", "regret-btm", "time-to-accuracy", "accuracy-final"],
            "No problem has",
        ),
    ],
)
def test_what_was_not_run_is_not_measured(frames, unmeasured, said):
    found = judge(*frames)
    assert [key for key in list(found)[:4] if found[key].verdict == "not decided"] == unmeasured
    assert said in found[unmeasured[0]].found


def test_a_problem_without_a_policy_is_named():
    found = judge(compared(700, problem="a"), rows("rucb", 1000, about(1), problem="b"))
    for key in ("regret-savage", "time-to-accuracy", "accuracy-final"):
        assert found[key].found.endswith("Not measured on b.")
    assert list(found["regret-savage"].numbers["problems"]) == ["a"]
    assert found["regret-savage"].verdict == "not decided"


CYCLE = PreferenceMatrix([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]], name="cycle")


def test_problems_without_a_winner_are_not_measured():
    """Of their own, all claims but those of the pool; beside others, a problem that keeps a claim from holding."""
    found = judge(compared(700), matrices={"p": CYCLE})
    assert [claim.verdict for claim in found.values()] == ["not decided"] * 4 + ["fails"] + ["not decided"] * 2
    assert "No problem has a Condorcet winner" in found["regret-savage"].found
    assert "No problem has a Condorcet winner" in found["gamma"].found
    both = judge(compared(700, problem="a"), compared(700, problem="b"), matrices={"a": ARXIV, "b": CYCLE})
    for key in ("regret-savage", "gamma"):
        assert (both[key].verdict, list(both[key].numbers["problems"])) == ("not decided", ["a"])
        assert both[key].found.endswith("Not measured on b.")


def test_another_notion_of_regret_is_not_the_paper_s():
    results = Results(pl.concat([compared(700, 900, t=100_000)]), {"regret": "borda"})
    found = {claim.key: claim for claim in paper_claims(results, {"p": ARXIV})}
    assert [found[key].verdict for key in ("regret-savage", "regret-btm")] == ["not decided"] * 2
    assert "The regret is borda's" in found["regret-savage"].found
    assert found["gamma"].verdict == "holds"


def random_matrix(arms, seed):
    """An arm that beats all others, and coin flips among these."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.choice([0.3, 0.7], (arms, arms)), 1)
    upper[0, 1:] = 0.9
    return PreferenceMatrix(upper + np.tril(1 - upper.T, -1) + np.diag([0.5] * arms), name="flips")


def share_of_subsets(matrix, size, condition):
    subsets = [matrix.subset(arms) for arms in itertools.combinations(range(matrix.arms), size)]
    return np.mean([condition(subset) for subset in subsets])


def test_condorcet_probability_by_brute_force():
    pool = random_matrix(9, seed=3)
    values = [1.0] + [share_of_subsets(pool, k, lambda s: s.condorcet_winner is not None) for k in range(2, 10)]
    claim = judge(compared(700), pool=pool)["condorcet-probability"]
    assert claim.verdict == "fails"
    assert claim.numbers["least"] == pytest.approx(min(values))
    assert claim.numbers["size"] == int(np.argmin(values)) + 1
    assert f"flips is {min(values):.4f}, at K = {claim.numbers['size']} of 9" in claim.found
    assert (
        judge(compared(700))["condorcet-probability"].verdict == "fails"
    )  # arxiv-6: a tie leaves pairs without a winner


def test_a_pool_without_a_winner():
    assert judge(compared(700), pool=CYCLE)["condorcet-probability"].numbers["size"] == 3


def test_total_order_by_brute_force():
    pool = random_matrix(9, seed=3)
    four, eight = (share_of_subsets(pool, size, lambda s: s.is_total_order) for size in (4, 8))
    claim = judge(compared(700), pool=pool)["total-order"]
    assert [(one["size"], one["value"]) for one in claim.numbers["sizes"]] == [(4, pytest.approx(four)), (8, eight)]
    assert claim.verdict == "holds"
    assert eight < 0.05 < four


def chain(arms, broken=0):
    """A total order, but for `broken` three-cycles of arms of their own."""
    p = np.full((arms, arms), 0.6)
    for k in range(broken):
        p[3 * k, 3 * k + 2] = 0.4
    p = np.triu(p, 1)
    return PreferenceMatrix(p + np.tril(1 - p.T, -1) + np.diag([0.5] * arms))


def test_a_total_order_that_hardly_falls_or_falls_by_half():
    assert judge(compared(700), pool=chain(9))["total-order"].verdict == "fails"
    assert judge(compared(700), pool=chain(9))["condorcet-probability"].verdict == "holds"
    # Of the C(20, 16) subsets with one cycle among 20 arms, those without one of its three arms are
    # 1 − C(17, 13)/C(20, 16) = 1 − 2380/4845 = 0.51 (fails); with two cycles 1 − 2·2380/4845 + C(14, 10)/4845 = 0.22.
    one, two = (judge(compared(700), pool=chain(20, broken))["total-order"] for broken in (1, 2))
    assert [one.numbers["sizes"][-1]["value"], two.numbers["sizes"][-1]["value"]] == pytest.approx(
        [1 - 2380 / 4845, 1 - 4760 / 4845 + 1001 / 4845]
    )
    assert (one.verdict, two.verdict) == ("fails", "holds in part")
    assert "0.94 at K = 4" not in two.found
    assert "0.22 at K = 16" in two.found


def test_too_few_arms_for_subsets():
    claim = judge(compared(700), pool=chain(4))["total-order"]
    assert (claim.verdict, claim.numbers["sizes"]) == ("not decided", [])
    assert "4 arms: too few" in claim.found


def test_a_tiny_probability_is_not_written_as_a_power():
    pool = chain(33, broken=11)
    found = judge(compared(700), pool=pool)["total-order"].found
    assert "0 at K = 32" in found  # any 32 of the 33 arms hold ten whole cycles
    # 32 of 40 arms without a whole one of eight cycles leave out one arm of each: 3⁸ = 6,561 of C(40, 8) = 76,904,685.
    rare = judge(compared(700), pool=chain(40, broken=8))["total-order"]
    assert rare.numbers["sizes"][-1]["value"] == pytest.approx(6561 / 76904685)
    assert "under 0.0001 at K = 32" in rare.found


def test_gamma_is_listed():
    """1.25 in arxiv-6 (its errata page works it out); 1 in a chain of equal gaps."""
    frames = [compared(700, problem="a"), compared(700, problem="b")]
    both = judge(*frames, matrices={"a": ARXIV, "b": chain(6)})["gamma"]
    assert both.found == (
        "γ is 1.25 on a and 1 on b. The paper's is at least 4.85, which is 3.88 and 4.85 times as large: "
        "these data are far milder. It holds on a. It fails on b."
    )
    assert [row["gamma"] for row in both.numbers["problems"].values()] == pytest.approx([1.25, 1])
    assert both.verdict == "holds in part"
    assert judge(frames[0])["gamma"].verdict == "holds"
    assert judge(frames[0], matrices={"a": chain(6)})["gamma"].verdict == "fails"


def with_gamma(arms, gamma):
    """The winner is ahead of all by 0.3 / γ, and arm 1 of the last by 0.3, which is γ times as much."""
    above = np.full((arms, arms), 0.5)
    above[0, 1:] = 0.5 + 0.3 / gamma
    above[1, -1] = 0.8
    return PreferenceMatrix(np.triu(above) + np.tril(1 - above.T, -1))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (
            {16: 1.375, 32: 1.306, 64: 1.386},
            "With as many arms the paper's is 4.85, 11.6 and 47.3, which is 3.53, 8.88 and 34.1 times as large: "
            "these data are far milder.",
        ),
        (
            {16: 5, 32: 11},
            "the paper's is 4.85 and 11.6, which is 0.97 and 1.05 times as large: these data are about as harsh.",
        ),
        (
            {16: 4, 32: 24},
            "which is 1.21 and 0.483 times as large: these data are milder on 16 arms and harsher on 32 arms.",
        ),
        ({8: 6}, "The paper's is at least 4.85, which is 0.808 times as large: these data are about as harsh."),
        ({8: 60}, "these data are harsher."),
        (
            {8: 2, 16: 4.7},
            "The paper's is at least 4.85 and 4.85, which is 2.42 and 1.03 times as large: these data are far milder "
            "on 8 arms and about as harsh on 16 arms.",
        ),
    ],
)
def test_gamma_says_how_far_it_is_from_the_paper_s(sizes, said):
    matrices = {f"{arms} arms": with_gamma(arms, gamma) for arms, gamma in sizes.items()}
    found = judge(*(compared(700, problem=name) for name in matrices), matrices=matrices)["gamma"]
    assert [row["gamma"] for row in found.numbers["problems"].values()] == pytest.approx(list(sizes.values()))
    assert said in found.found
    assert found.verdict == "holds"


def test_the_largest_matrix_is_the_pool():
    found = judge(
        compared(700, problem="a"),
        compared(700, problem="b"),
        matrices={"a": random_matrix(9, 0), "b": ARXIV, "unused": duels.load_problem("cyclic-4")},
    )
    assert found["condorcet-probability"].numbers["pool"] == "flips"
    assert list(found["gamma"].numbers["problems"]) == ["a", "b"]


def test_missing_matrices_and_empty_results_are_refused():
    with pytest.raises(InvalidInput, match="no matrix was given for problem 'p'"):
        judge(compared(700), matrices={"q": ARXIV})
    with pytest.raises(InvalidInput, match="the results are empty"):
        judge(rows("rucb", 1, []), matrices={"q": ARXIV})


def test_real_results_as_plain_data():
    """From simulations: nothing but plain data, in the order of the paper, each key once."""
    results = duels.results.combine(
        [
            duels.simulate("arxiv-6", policy, horizon=t, runs=3)
            for policy in ("rucb", "savage", "btm")
            for t in (100, 1000)
        ]
    )
    claims = paper_claims(results, {"arxiv-6": ARXIV})
    assert [claim.key for claim in claims] == list(PAPER)
    assert all(claim.verdict in MARKS for claim in claims)
    assert json.loads(json.dumps([claim._asdict() for claim in claims], allow_nan=False))[0]["key"] == "regret-savage"
    final = {row["policy"]: row["regret"] for row in results.final().filter(pl.col("t") == 1000).to_dicts()}
    row = claims[1].numbers["problems"]["arxiv-6"]
    assert [row[base]["ratio"] for base in ("savage", "btm")] == pytest.approx(
        [final[base] / final["rucb"] for base in ("savage", "btm")]
    )


def test_the_text_has_marks_and_words_and_fits():
    claims = list(judge(compared(300, 9000, t=100_000), pool=random_matrix(9, 3)).values())
    text = claims_text(claims, width=60)
    assert max(map(len, text.splitlines())) <= 60
    heads = [line for line in text.splitlines() if line and line[0] != " "]
    assert heads == [
        "✗ fails: regret-savage",
        "✓ holds: regret-btm",
        "– not decided: time-to-accuracy",
        "– not decided: accuracy-final",
        "✗ fails: condorcet-probability",
        "✓ holds: total-order",
        "✓ holds: gamma",
    ]
    joined = " ".join(text.split())
    assert all(claim.paper in joined and claim.found in joined for claim in claims)
    assert "\N{NO-BREAK SPACE}" not in text


def test_no_line_breaks_inside_a_number_or_a_name():
    frames = [rows(policy, 1000, about(100), problem="a-name-with-hyphens") for policy in ("rucb", "savage")]
    claims = list(judge(*frames).values())
    for width in range(40, 80):
        lines = [line.strip() for line in claims_text(claims, width).splitlines()]
        assert not any(line.startswith(("%", "=")) or line.endswith(("=", "-")) for line in lines)
