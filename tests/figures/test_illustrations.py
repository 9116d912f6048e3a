"""Explanatory figures: their tables by hand, against Algorithm 1's transcription and integrals; what they say."""

import math

import numpy as np
import polars as pl
import pytest
from chart_reader import spec_of, svg_of
from oracles import ORACLES
from scipy import integrate

import duels
from duels import figures
from duels.engine import loop
from duels.errors import InvalidInput, UnknownName
from duels.figures import interval_points, quantile_points, state_points, tail_points
from duels.paper import gallery
from duels.results import SCHEMA, Results

THREE = duels.PreferenceMatrix([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]], ["a", "b", "c"], name="three")


def frame(rows, **said):
    """A results frame of dicts, with the columns that do not matter filled in."""
    usual = {"problem": "three", "arms": 3, "policy": "rucb", "horizon": 10, "run": 0, "t": 10, "weak_regret": 0.0}
    usual |= {"simple_regret": 0.0, "duels": 1, "recommended": 0, "correct": True, "explored": None, **said}
    return pl.DataFrame([usual | row for row in rows], schema=SCHEMA)


def recorded(rows, policy="rucb", run=0, pair=(0, 1)):
    """Intervals of (t, duels, wins, lower, upper)."""
    names = ["t", "duels", "wins", "lower", "upper"]
    said = {"problem": "three", "policy": policy, "run": run, "first": pair[0], "second": pair[1]}
    intervals = pl.DataFrame(rows, schema=names, orient="row").select(
        pl.all(), **{k: pl.lit(v) for k, v in said.items()}
    )
    return Results(frame([{"regret": 1.0}], policy=policy), intervals=intervals)


# p_ab = 0.7. Inside at 1 (never met), outside at 2, inside at 4, outside at 8 (too high), inside from 16 on.
BY_HAND = [(1, 0.0, 0.0, -1.0, 2.0), (2, 1.0, 0.0, -0.6, 0.6), (4, 1.0, 0.0, -0.84, 0.84), (8, 3.0, 3.0, 0.71, 1.29)]
BY_HAND += [(16, 4.0, 3.0, 0.2, 1.3), (32, 4.0, 3.0, 0.1, 1.4)]


def words(chart):
    """The subtitle."""
    return " | ".join(spec_of(chart)["title"]["subtitle"])


def played(matrix, horizon, seed=0, **parameters):
    """Wins after each step of Algorithm 1 as transcribed: (horizon + 1, K, K)."""
    parameters = duels.policies.load_policy("rucb", **parameters).params._asdict()
    wins = np.zeros((horizon + 1, matrix.arms, matrix.arms))
    history = ORACLES["rucb"](matrix.array, horizon, *loop.streams(seed, 0), **parameters)
    for t, (i, j, outcome) in enumerate(history, 1):
        wins[t] = wins[t - 1]
        if i != j:
            wins[t, i, j] += outcome
            wins[t, j, i] += 1 - outcome
    return wins


def interval_of(wins, i, j, t, alpha):
    """Line 3 of Algorithm 1 and l_ij = 1 − u_ji, for one pair."""
    n = wins[i, j] + wins[j, i]
    if n == 0:
        return -1.0, 2.0
    width = math.sqrt(alpha * math.log(t) / n)
    return 1 - (wins[j, i] / n + width), wins[i, j] / n + width


# Figure 1


def test_intervals_by_hand():
    points = interval_points(recorded(BY_HAND), THREE)
    assert points["t"].to_list() == [1, 2, 4, 8, 16, 32]
    assert points["mean"].to_list() == [None, 0.0, 0.0, 1.0, 0.75, 0.75]
    assert points["holds"].to_list() == [True, False, True, False, True, True]
    assert points["settled"].to_list() == [False, False, False, False, True, True]
    assert points["compared"].to_list() == [False, True, False, True, True, False]
    assert points.select("first", "second", "p").unique().row(0) == ("a", "b", 0.7)


def test_an_interval_may_end_at_p():
    points = interval_points(recorded([(2, 1.0, 1.0, 0.7, 1.3), (3, 1.0, 1.0, 0.1, 0.7)]), THREE)
    assert points["holds"].all()
    assert points["compared"].to_list() == [True, False]  # the first recorded time may be after the first duel


def test_a_pair_in_the_other_order_is_the_mirror_image():
    points = interval_points(recorded(BY_HAND), THREE, pair=("b", "a"))
    assert points["wins"].to_list() == [0, 1, 1, 0, 1, 1]
    assert points["lower"].to_list() == pytest.approx([-1, 0.4, 0.16, -0.29, -0.3, -0.4])
    assert points["upper"].to_list() == pytest.approx([2, 1.6, 1.84, 0.29, 0.8, 0.9])
    assert points["mean"][3] == 0
    assert points["holds"].to_list() == [True, False, True, False, True, True]
    assert points.select("first", "second", "p").row(0) == ("b", "a", pytest.approx(0.3))


def test_the_first_recorded_pair_is_the_default():
    pairs = [(2, 1), (0, 1)]
    results = Results(
        frame([{"regret": 1.0}]), intervals=pl.concat(recorded(BY_HAND, pair=pair).intervals for pair in pairs)
    )
    assert interval_points(results, THREE).row(0, named=True)["first"] == "c"
    assert interval_points(results, THREE, pair=(0, 1)).row(0, named=True)["first"] == "a"


def test_intervals_against_the_listing():
    matrix, horizon = duels.load_problem("cyclic-4"), 400
    results = duels.simulate(
        matrix, "rucb:alpha=0.6", horizon=horizon, checkpoints=range(1, horizon + 1), record=[(1, 3)]
    )
    points = interval_points(results, matrix)
    wins = played(matrix, horizon, alpha=0.6)
    expected = [interval_of(wins[t], 1, 3, t, 0.6) for t in range(1, horizon + 1)]
    assert points["lower"].to_list() == pytest.approx([low for low, _ in expected])
    assert points["upper"].to_list() == pytest.approx([high for _, high in expected])
    inside = [low <= matrix[1, 3] <= high for low, high in expected]
    assert points["holds"].to_list() == inside
    assert points["settled"].to_list() == [all(inside[k:]) for k in range(horizon)]
    met = [wins[t, 1, 3] + wins[t, 3, 1] for t in range(horizon + 1)]
    assert points["compared"].to_list() == [met[t] > met[t - 1] for t in range(1, horizon + 1)]


def test_what_figure_1_says():
    # C(0.05) for K = 3, α = 0.51: (1.04·9/(0.02·0.05))^50 = 9360^50, 50·log10(9360) = 198.56.
    chart = figures.intervals(recorded(BY_HAND), THREE)
    assert "p is inside at every recorded time from T = 16 on" in words(chart)
    assert "with probability 0.95, T ≤ C(0.05) = 10¹⁹⁹ (α = 0.51, K = 3)" in words(chart)
    drawn = svg_of(chart)
    for text in ("The interval of a against b", "probability that a beats b", "p is outside", "T = 16", "compared"):
        assert text in drawn
    # (5·9/(2·0.05))^(1/2) = √450 = 21.2
    assert "C(0.05) = 21 (α = 1.5, K = 3)" in words(figures.intervals(recorded(BY_HAND, "rucb:alpha=1.5"), THREE))
    low = words(figures.intervals(recorded(BY_HAND, "rucb:alpha=0.5"), THREE))
    assert "Lemma 1 says nothing of α = 0.5" in low
    assert "Lemma" not in words(figures.intervals(recorded(BY_HAND, "savage"), THREE))


def test_figure_1_without_a_T_and_with_one_at_once():
    never = figures.intervals(recorded(BY_HAND[:2]), THREE)
    assert "at the last recorded time, t = 2, p is outside" in words(never)
    assert "T =" not in svg_of(never)
    always = figures.intervals(recorded(BY_HAND[4:]), THREE)
    assert "p is inside at every recorded time; T = 16 is the first of them" in words(always)
    assert "p is outside" not in svg_of(always)
    assert "T = 16<" not in svg_of(always)  # a line of T would stand on the axis


def test_figure_1_begins_at_the_first_duel():
    drawn = spec_of(figures.intervals(recorded(BY_HAND), THREE))["layer"]
    assert drawn[0]["encoding"]["x"]["scale"]["domain"][0] == 2
    assert "\n1," not in drawn[0]["data"]["values"]
    apart = figures.intervals(recorded(BY_HAND[:1]), THREE)  # never met
    assert "\n1," in spec_of(apart)["layer"][0]["data"]["values"]


def test_the_tails_have_the_area_of_the_bound():
    # n = 9 duels at t = 20 with α = 0.6: ε² = 0.6 ln 20/9, the bound 2·20^(−1.2).
    width = math.sqrt(0.6 * math.log(20) / 9)
    points = interval_points(recorded([(20, 9.0, 6.0, 2 / 3 - width, 2 / 3 + width)], "rucb:alpha=0.6"), THREE)
    tails = tail_points(points)
    assert tails["area"].to_list() == pytest.approx([2 * 20**-1.2] * len(tails))
    assert tails["t"].unique().to_list() == [20]

    def f(x):
        return 4 * 9 * abs(x - 2 / 3) * math.exp(-2 * 9 * (x - 2 / 3) ** 2)

    assert tails["f"].to_list() == pytest.approx([f(x) for x in tails["x"]])
    below, above = integrate.quad(f, -np.inf, 2 / 3 - width)[0], integrate.quad(f, 2 / 3 + width, np.inf)[0]
    assert below + above == pytest.approx(2 * 20**-1.2)
    x = tails["x"].to_numpy()
    assert (np.diff(x) >= 0).all()
    lower, upper = (tails.filter(outside=side)["x"] for side in ("below", "above"))
    assert lower.max() == pytest.approx(2 / 3 - width)
    assert upper.min() == pytest.approx(2 / 3 + width)
    inside = tails.filter(pl.col("outside").is_null())["x"]
    assert (inside.min(), inside.max()) == pytest.approx((2 / 3 - width, 2 / 3 + width))
    drawn = np.trapezoid(tails.filter(outside="above")["f"], upper)
    assert drawn == pytest.approx(above * (1 - math.exp(-3)), rel=0.01)


def test_when_tails_are_drawn():
    rows = [(t, float(t), t / 2, 0.4, 0.6) for t in range(1, 1001)]
    points = interval_points(recorded(rows), THREE)
    # From the fourth duel on, 4·250^(k/5): 4, 12.07, 36.41, 109.9, 331.4; 1000 itself would have no room.
    assert tail_points(points)["t"].unique().sort().to_list() == [4, 12, 36, 110, 331]
    assert tail_points(points, [2, 900])["t"].unique().sort().to_list() == [2, 900]
    with pytest.raises(InvalidInput, match="expected t = 2000 to be a checkpoint after a duel"):
        tail_points(points, [4, 2000])
    with pytest.raises(InvalidInput, match="expected t = 1 to be a checkpoint after a duel"):
        tail_points(interval_points(recorded(BY_HAND), THREE), [1])
    with pytest.raises(InvalidInput, match="expected 4 duels or more"):
        tail_points(points.head(3))


def test_figure_1_with_tails():
    chart = figures.intervals(recorded([*BY_HAND, (128, 9.0, 6.0, 0.4, 0.9)]), THREE, tails=[16, 32])
    drawn = svg_of(chart)
    # At 16 and 32 n = 4 and ε = 1.3 − 0.75, 1.4 − 0.75: 2 exp(−8·0.3025) = 0.178, 2 exp(−8·0.4225) = 0.068.
    for text in (">0.18<", ">0.068<", "Chernoff and Hoeffding"):
        assert text in drawn
    reach = max(tail_points(interval_points(recorded(BY_HAND), THREE), [16, 32])["x"])
    domains = [layer["encoding"]["y"]["scale"]["domain"] for layer in spec_of(chart)["layer"][:3]]
    assert domains[0] == [pytest.approx(1.5 - reach), pytest.approx(reach)]  # around the mean 0.75
    widest = [max(row["right"] for row in rows) for rows in graphs_of(chart)]
    # Each takes 0.8 of the least room that there is, that from 16 to 32; from 32 to 128 there is more.
    assert widest == pytest.approx([16 * 2**0.8, 32 * 2**0.8])
    assert "×" not in drawn


def test_small_tails_are_drawn_wider():
    # n = 9 at t = 20 and 40: ε = 0.45 and 0.6 give 2 exp(−18·0.2025) = 0.0522 and 2 exp(−18·0.36) = 0.00307.
    rows = [(20, 9.0, 4.5, 0.05, 0.95), (40, 9.0, 4.5, -0.1, 1.1), (200, 9.0, 4.5, -0.1, 1.1)]
    chart = figures.intervals(recorded(rows), THREE, tails=[20, 40])
    drawn = svg_of(chart)
    for text in (">0.052<", ">0.0031 (×10)<", "×10: drawn ten times as wide"):
        assert text in drawn
    tails = [row for rows in data_of(chart) for row in rows if row.get("outside")]
    for t, times in ((20, 1), (40, 10)):
        for row in (row for row in tails if row["t"] == t):
            assert math.log(row["tail"] / t) == pytest.approx(times * math.log(row["right"] / t))


def graphs_of(chart):
    found = next(
        rows for rows in data_of(chart) if rows and "right" in rows[0] and any(not row["outside"] for row in rows)
    )
    return [[row for row in found if row["t"] == t] for t in (16, 32)]


def data_of(chart):
    said = chart if isinstance(chart, dict) else spec_of(chart)
    return [
        layer["data"]["values"]
        for layer in said["layer"]
        if "data" in layer and isinstance(layer["data"].get("values"), list)
    ]


def test_one_recorded_time_is_enough():
    one = recorded(BY_HAND[4:5])
    assert "T = 16" in words(figures.intervals(one, THREE))
    svg_of(figures.intervals(one, THREE, tails=True))


def test_intervals_that_are_not_there():
    nothing = Results(frame([{"regret": 1.0}]))
    with pytest.raises(InvalidInput, match=r"results of three have no intervals: record some.*record=\[\(i, j\)\]"):
        figures.intervals(nothing, THREE)
    results = recorded(BY_HAND)
    for pair in ((0, 2), ("a", "a")):
        with pytest.raises(InvalidInput, match=r"was recorded: expected one of \(0, 1\)"):
            interval_points(results, THREE, pair=pair)
    with pytest.raises(UnknownName, match="unknown arm 'd'"):
        interval_points(results, THREE, pair=("a", "d"))
    with pytest.raises(InvalidInput, match="nothing was recorded of run 3: expected one from 0 to 0"):
        interval_points(results, THREE, run=3)
    with pytest.raises(UnknownName, match=r"unknown policy 'rucd'\. Did you mean 'rucb'"):
        interval_points(results, THREE, policy="rucd")


def test_one_policy_must_be_chosen():
    two = [recorded(BY_HAND, policy) for policy in ("rucb", "rucb:alpha=1.5")]
    results = Results(frame([{"regret": 1.0}]), intervals=pl.concat(part.intervals for part in two))
    with pytest.raises(InvalidInput, match=r"the results are of rucb, rucb:alpha=1\.5: choose one with policy=…"):
        interval_points(results, THREE)
    assert interval_points(results, THREE, policy="rucb:alpha=1.5")["policy"].unique().to_list() == ["rucb:alpha=1.5"]


def test_a_run_and_a_problem_are_chosen():
    later = [(t, duels + 1, wins, lower, upper) for t, duels, wins, lower, upper in BY_HAND]
    other = recorded(later).intervals.with_columns(problem=pl.lit("other"))
    runs = [recorded(BY_HAND).intervals, recorded(later, run=1).intervals, other]
    results = Results(frame([{"regret": 1.0}]), intervals=pl.concat(runs))
    assert interval_points(results, THREE)["duels"].to_list() == [0, 1, 1, 3, 4, 4]
    assert interval_points(results, THREE, run=1)["duels"].to_list() == [1, 2, 2, 4, 5, 5]


def test_arms_without_names_are_called_arms():
    results = duels.simulate("cyclic-4", "rucb", horizon=20, record=[(0, 1)])
    assert figures.intervals(results, "cyclic-4").title.text == "The interval of arm 0 against arm 1"


def test_the_matrix_must_be_that_of_the_results():
    results = duels.simulate("cyclic-4", "rucb", horizon=20, record=["pairs", (0, 1)])
    with pytest.raises(InvalidInput, match="the matrix is called 'arxiv-6', the results are of cyclic-4"):
        interval_points(results, "arxiv-6")
    other = duels.PreferenceMatrix(duels.load_problem("cyclic-4").array * 0.5 + 0.25, name="cyclic-4")
    for said in (results, duels.results.combine([duels.results.combine([results])])):
        with pytest.raises(InvalidInput, match="another matrix that is called 'cyclic-4'"):
            state_points(said, other)
        state_points(said, "cyclic-4")
    experiment = duels.run_experiment(problems=["cyclic-4"], policies=["rucb"], horizons=[20], runs=2)
    assert len(quantile_points(experiment, "cyclic-4")) == 2
    with pytest.raises(InvalidInput, match="another matrix that is called 'cyclic-4'"):
        quantile_points(experiment, other)


def test_runs_of_several_horizons():
    # RUCB's begin alike, so that it does not matter; SAVAGE's do not.
    both = [
        duels.simulate("cyclic-4", policy, horizon=horizon, checkpoints=times, record=["pairs", (0, 1)])
        for policy in ("rucb", "savage")
        for horizon, times in ((1_000, [10, 100]), (100, [10, 50]))
    ]
    results = duels.results.combine(both)
    points = interval_points(results, "cyclic-4", policy="rucb")
    assert points["t"].to_list() == [10, 50, 100, 1_000]
    assert len(state_points(results, "cyclic-4", policy="rucb", t=100)) == 16
    assert len(quantile_points(results, "cyclic-4", policy="rucb", t=100)) == 1
    with pytest.raises(InvalidInput, match="runs of savage with several horizons: expected results of one"):
        interval_points(results, "cyclic-4", policy="savage")


# Figure 2


def pairs_of(rows, t=16, policy="rucb"):
    """Recorded pairs of (first, second, duels, wins)."""
    table = pl.DataFrame(rows, schema=["first", "second", "duels", "wins"], orient="row")
    said = {"problem": "three", "policy": policy, "run": 0, "t": t}
    return Results(
        frame([{"regret": 1.0}], policy=policy), pairs=table.select(pl.all(), **{k: pl.lit(v) for k, v in said.items()})
    )


# a won 9 of 10 against b; a and c never met; b and c are level. Self-duels have no wins.
STATE = [(0, 0, 5.0, None), (0, 1, 10.0, 9.0), (0, 2, 0.0, 0.0), (1, 1, 0.0, None), (1, 2, 4.0, 2.0), (2, 2, 0.0, None)]


def test_a_state_by_hand():
    # 0.51 ln 16 = 1.41402. a, b: 0.9 ± √0.141402 = 0.9 ± 0.376035, wholly above ½. b, c: 0.5 ± √0.353505.
    points = state_points(pairs_of(STATE), THREE)
    assert points.select("row", "column").rows() == [(i, j) for i in "abc" for j in "abc"]
    lower = [0.5, 0.523965, -1, -0.276035, 0.5, -0.094563, -1, -0.094563, 0.5]
    upper = [0.5, 1.276035, 2, 0.476035, 0.5, 1.094563, 2, 1.094563, 0.5]
    assert points["lower"].to_list() == pytest.approx(lower, abs=1e-6)
    assert points["upper"].to_list() == pytest.approx(upper, abs=1e-6)
    assert points["duels"].to_list() == [0, 10, 0, 10, 0, 4, 0, 4, 0]
    assert points["p"].to_list() == THREE.array.ravel().tolist()
    ahead, level, behind = "row is ahead", "open", "row is behind"
    assert points["verdict"].to_list() == [level, ahead, level, behind, level, level, level, level, level]
    assert points["champion"].to_list() == [True] * 3 + [False] * 3 + [True] * 3
    assert points.select("policy", "run", "t").row(0) == ("rucb", 0, 16)


def test_arms_that_are_not_shown_count():
    points = state_points(pairs_of(STATE), THREE, arms=["c", 1])
    assert points.select("row", "column").rows() == [("c", "c"), ("c", "b"), ("b", "c"), ("b", "b")]
    assert points["champion"].to_list() == [True, True, False, False]
    assert points["p"].to_list() == [0.5, 0.4, 0.6, 0.5]


def test_states_against_the_listing():
    matrix, horizon, alpha = duels.load_problem("arxiv-6"), 3_000, 0.6
    times = [1, 5, 300, 3_000]
    results = duels.simulate(matrix, f"rucb:alpha={alpha}", horizon=horizon, checkpoints=times, record="pairs")
    wins = played(matrix, horizon, alpha=alpha)
    out = 0
    for t in times:
        points = state_points(results, matrix, t=t)
        both = [[interval_of(wins[t], i, j, t, alpha) if i != j else (0.5, 0.5) for j in range(6)] for i in range(6)]
        assert points["lower"].to_list() == pytest.approx([low for row in both for low, _ in row])
        assert points["upper"].to_list() == pytest.approx([high for row in both for _, high in row])
        champions = [min(high for _, high in row) >= 0.5 for row in both]
        assert points["champion"].to_list() == [champions[i] for i in range(6) for _ in range(6)]
        out += champions.count(False)
    assert out > 0


def test_of_many_arms_the_best_are_shown():
    matrix = duels.load_problem("bradley-terry:arms=10,spread=0.5").shuffle(1)
    results = duels.simulate(matrix, "rucb", horizon=500, checkpoints=[], record="pairs")
    shown = state_points(results, matrix)["row"].unique(maintain_order=True).to_list()
    best = sorted(range(10), key=lambda arm: -np.sum(matrix.array[arm] > 0.5))[:8]
    assert shown == [matrix.names[arm] for arm in best]
    chart = figures.state(results, matrix)
    assert "8 of 10 arms, the best by Copeland score" in words(chart)
    chosen = words(figures.state(results, matrix, arms=[0, 1, 2]))
    assert "3 of 10 arms" in chosen
    assert "Copeland" not in chosen
    assert "none of the 10 arms" in chosen


def test_what_figure_2_shows():
    chart = figures.state(pairs_of(STATE), THREE)
    assert "RUCB on three, run 0, t = 16 · K = 3" in words(chart)
    drawn = svg_of(chart)
    for text in ("► a", ">b<", "► c", "row is ahead", "row is behind", "open"):
        assert text in drawn
    assert "► b" not in drawn


def test_states_that_are_not_there():
    with pytest.raises(InvalidInput, match=r'have no pairs: record them with simulate\(\.\.\., record="pairs"\)'):
        figures.state(Results(frame([{"regret": 1.0}])), THREE)
    with pytest.raises(InvalidInput, match=r"no checkpoint t = 20: expected 16, or simulate with checkpoints=\[20\]"):
        state_points(pairs_of(STATE), THREE, t=20)
    with pytest.raises(InvalidInput, match="this figure is about rucb: found savage"):
        state_points(pairs_of(STATE, policy="savage"), THREE)
    results = duels.simulate("cyclic-4", "rucb", horizon=100, checkpoints=[10, 30], record="pairs")
    with pytest.raises(InvalidInput, match="no checkpoint t = 20: expected 10 or 30"):
        state_points(results, "cyclic-4", t=20)
    assert state_points(results, "cyclic-4")["t"].unique().to_list() == [100]


# Figure 3

TWO = duels.PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]], name="two")


def regrets(values, policy="rucb:alpha=1.5", t=100, **said):
    rows = [{"regret": value, "run": run} for run, value in enumerate(values)]
    return Results(frame(rows, problem="two", arms=2, policy=policy, horizon=t, t=t, **said))


def test_quantiles_by_hand():
    # K = 2, Δ = 0.2, α = 1.5: C(δ) = √(5·4/(2δ)), D = 6/0.04 = 150, so H(q) = 0.2 √(10/(1 − q)) + 150·0.1 ln 100.
    points = quantile_points(regrets([4.0, 1.0, 2.0]), TWO)
    assert points["regret"].to_list() == [1, 2, 4]
    assert points["run"].to_list() == [1, 2, 0]
    assert points["low"].to_list() == pytest.approx([0, 1 / 3, 2 / 3])
    assert points["high"].to_list() == pytest.approx([1 / 3, 2 / 3, 1])
    expected = [0.2 * math.sqrt(10 / (1 - q)) + 15 * math.log(100) for q in (0, 1 / 3, 2 / 3)]
    assert points["bound"].to_list() == pytest.approx(expected)


def test_the_bound_holds_of_what_was_simulated():
    results = duels.simulate(TWO, "rucb:alpha=1.5", horizon=3_000, runs=50, checkpoints=[100])
    for t in (100, 3_000):
        points = quantile_points(results, TWO, t=t)
        assert (points["regret"] < points["bound"]).all()
        assert sorted(results.frame.filter(t=t)["regret"]) == points["regret"].to_list()
    assert quantile_points(results, TWO)["t"][0] == 3_000


def test_what_figure_3_shows():
    chart = figures.regret_quantiles(regrets([4.0, 1.0, 3.0]), TWO)
    assert words(chart) == "RUCB (α = 1.5), K = 2 · 3 runs, t = 100"
    drawn = svg_of(chart)
    for text in (
        "quantiles of R",
        "mean of R",
        "Theorem 2's bound H(q)",
        "Theorem 3's bound on the mean",
        "quantile q",
    ):
        assert text in drawn
    levels = next(rows for rows in data_of(chart) if rows and "level" in rows[0])
    # Theorem 3: 0.2 √10 · 2/1 + 15 ln 100
    bound = 0.4 * math.sqrt(10) + 15 * math.log(100)
    assert [row["level"] for row in levels] == pytest.approx([8 / 3, bound])
    curve = next(rows for rows in data_of(chart) if rows and "bound" in rows[0] and "regret" not in rows[0])
    assert curve[0]["low"] == 0
    assert curve[-1]["low"] == pytest.approx(1 - 1 / 12)
    for row in curve:
        assert row["bound"] == pytest.approx(0.2 * math.sqrt(10 / (1 - row["low"])) + 15 * math.log(100))


@pytest.mark.parametrize(
    ("alpha", "said"),
    [
        # C(1)Δ = 0.2·(1.04·4/0.02)^50 = 0.2·208^50: 50·2.318063 − 0.69897 = 115.2
        (0.51, "more than 10¹¹⁵ at every q, too high to draw: look at α ≥ 1.5 | at α = 0.51 there is no bound"),
        (
            0.5,
            "at α = 0.5 there is no bound on the mean: Theorem 3 needs α > 1 | nor on quantiles: Theorem 2 needs α > ½",
        ),
        (1, "at α = 1 there is no bound on the mean: Theorem 3 needs α > 1"),
    ],
)
def test_bounds_that_say_nothing(alpha, said):
    chart = figures.regret_quantiles(regrets([4.0, 1.0, 3.0], f"rucb:alpha={alpha}"), TWO)
    assert said in words(chart)
    drawn = svg_of(chart)
    assert "Theorem 3's bound" not in drawn
    assert ("Theorem 2's bound" in drawn) == (alpha == 1)
    if alpha < 1:
        assert max(axis_of(chart)) <= 10  # the axis is that of the regrets
    assert np.isinf(quantile_points(regrets([4.0], "rucb:alpha=0.5"), TWO)["bound"][0])


def axis_of(chart):
    return next(
        layer["encoding"]["y"]["scale"]["domain"] for layer in spec_of(chart)["layer"] if "y" in layer["encoding"]
    )


def test_quantiles_that_are_not_there():
    with pytest.raises(InvalidInput, match="this figure is about rucb: found btm"):
        quantile_points(regrets([1.0], "btm"), TWO)
    with pytest.raises(InvalidInput, match="no checkpoint t = 7: expected 100"):
        quantile_points(regrets([1.0]), TWO, t=7)
    both = Results(pl.concat([regrets([1.0], policy).frame for policy in ("rucb", "btm")]))
    with pytest.raises(InvalidInput, match="the results are of rucb, btm: choose one with policy"):
        quantile_points(both, TWO)


@pytest.fixture(scope="module")
def reproduced():
    """An experiment on two problems, its proof figures of single runs, and the γ that were tried."""
    pool = duels.load_problem("bradley-terry:arms=9")
    problems = {"4 arms": pool.subset(range(4)), "8 arms": pool.subset(range(8))}
    results = duels.run_experiment(problems, ["rucb", "savage"], [100, 1_000], runs=3, progress=False)
    matrices = {name: duels.PreferenceMatrix(one.array, one.names, name) for name, one in problems.items()}
    drawn = gallery.experiment_figures(results, matrices, pool)
    proofs = gallery.proof_figures(results, matrices, runs=1, seed=0, jobs=None, pool=pool)
    return pool, {figure.name: figure for figure in drawn}, {figure.name: figure for figure in proofs}


@pytest.mark.deep
def test_lemma_1_is_drawn_of_a_run_in_which_something_happens(reproduced):
    _, _, proofs = reproduced
    assert "p is inside at every recorded time from T = 115 on" in words(proofs["lemma-1"].chart)
    tails = [row for data in data_of(proofs["lemma-1-tails"].chart) for row in data if row.get("outside")]
    for t in {row["t"] for row in tails}:  # each is seen: at least a fifteenth of its graph wide
        here = [row for row in data_of(proofs["lemma-1-tails"].chart)[1] if row["t"] == t]
        widest = max(math.log(row["right"] / t) for row in here)
        assert max(math.log(row["tail"] / t) for row in tails if row["t"] == t) > widest / 15


def test_bounds_are_drawn(reproduced):
    _, pictures, proofs = reproduced
    rows = [row for data in data_of(proofs["bounds"].chart) for row in data if "bound" in row]
    assert {row["theorem"] for row in rows} == {2, 3}
    assert "bounds" not in pictures  # with α = 0.51 there is none to draw


def test_figures_name_the_pool(reproduced):
    pool, pictures, proofs = reproduced
    for picture in ("regret", "accuracy", "assumptions", "preferences"):
        assert pool.name in pictures[picture].chart.title.text
    assert pool.name in words(proofs["theorem-2"].chart)
