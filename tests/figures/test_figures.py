"""Figures by their data: every number in a chart against hand-made tables, brute force and the theorems' formulas."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from chart_reader import (
    HORIZONS,
    ONE_HORIZON,
    domain,
    drawn,
    heading,
    legend,
    line_of,
    parts,
    results_of,
    spec_of,
    texts,
)
from hypothesis import given, settings
from test_preference import has_winner, is_ordered, matrices

import duels
from duels import figures
from duels.errors import InvalidInput, UnknownName
from duels.figures import charts, legends
from duels.figures.over_time import DOTTED
from duels.figures.selection import alpha_of
from duels.preference import PreferenceMatrix
from duels.results import SCHEMA, Results


def test_regret_of_one_horizon_by_hand():
    chart = figures.regret(ONE_HORIZON)
    assert line_of(chart, "regret", "rucb") == {1: None, 10: 2.0, 100: 6.0}  # a regret of 0 has no logarithm
    assert line_of(chart, "regret_min", "rucb") == {1: None, 10: None, 100: 3.0}
    assert line_of(chart, "regret_max", "rucb") == {1: None, 10: 4.0, 100: 9.0}
    assert line_of(chart, "regret", "btm") == {1: 0.5, 10: 1.5, 100: 20.0}
    assert line_of(chart, "regret_min", "btm") == {1: 0.5, 10: 1.0, 100: 10.0}
    assert line_of(chart, "regret_max", "btm") == {1: 0.5, 10: 2.0, 100: 30.0}
    assert drawn(chart, "regret", "point") == []  # a line over checkpoints has full marks only, to be told apart by
    assert line_of(chart, "regret", "rucb", "full") == {10: 2.0, 100: 6.0}
    marks = {(row["policy"], row["mark"], row["ink"]) for row in drawn(chart, "regret", "full")}
    assert marks == {("rucb", "circle", charts.VERMILION), ("btm", "square", charts.GREEN)}
    assert domain(chart, "x") == [1, 100]
    low, high = domain(chart, "y")
    assert 0.4 < low < 0.5
    assert 30 < high < 40
    assert heading(chart) == ("Cumulative regret on m", ["K = 2 · 2 runs · horizon 100"])


def test_the_mean_is_solid_and_the_extremes_are_dotted():
    chart = figures.regret(ONE_HORIZON)
    dashes = {field: kind.get("strokeDash") for kind, field, _ in parts(chart) if kind["type"] == "line"}
    assert dashes == {"regret": None, "regret_min": list(DOTTED), "regret_max": list(DOTTED)}
    entries = legend(chart)
    assert [label for label, _, _ in entries] == ["RUCB", "Beat the Mean", "best and worst run"]
    assert [color for _, color, _ in entries[:2]] == [charts.VERMILION, charts.GREEN]
    assert entries[0][2].startswith("M-12,0L-4.08,0M4.08,0L12,0M")  # 24 pixels; the circle's radius is 0.34 · 12
    assert [path.count("M") for _, _, path in entries[:2]] == [5, 5]  # lines with full marks
    assert entries[2][2].count("M") == 6  # dots of 1.5 pixels every 4 on 24


def test_a_single_run_has_no_extremes():
    chart = figures.regret(results_of(("m", "rucb", 10, 1, [1.0]), ("m", "rucb", 10, 10, [2.0])))
    assert drawn(chart, "regret_min") == []
    assert line_of(chart, "regret", "rucb") == {1: 1.0, 10: 2.0}
    assert [label for label, _, _ in legend(chart)] == ["RUCB"]
    assert heading(chart)[1] == ["K = 2 · 1 run · horizon 10"]


def test_several_horizons_count_in_their_own_runs():
    chart = figures.regret(HORIZONS)
    assert line_of(chart, "regret", "btm") == {10: 4.0, 100: 30.0}
    assert line_of(chart, "regret_min", "btm") == {10: 3.0, 100: 20.0}
    assert line_of(chart, "regret_max", "btm") == {10: 5.0, 100: 40.0}
    assert line_of(chart, "regret", "btm", "point") == {10: 4.0, 100: 30.0}
    # The policy of one horizon is a line over its checkpoints from the smallest horizon on, without marks.
    assert line_of(chart, "regret", "rucb") == {10: 3.0, 50: 5.5, 100: 8.0}
    assert line_of(chart, "regret", "rucb", "point") == {}
    assert domain(chart, "x") == [10, 100]
    assert heading(chart)[1] == ["K = 2 · 2 runs · horizons 10 to 100"]
    assert [(label, path.count("M")) for label, _, path in legend(chart)] == [
        *(("RUCB", 5), ("Beat the Mean", 3)),  # full, hollow
        ("separate runs for each horizon", 1),
        ("best and worst run", 6),  # dots
    ]


def test_points_say_which_runs_are_fresh():
    points = figures.regret_points(HORIZONS)
    assert points.select("policy", "horizon", "t", "runs", "fresh", "marked").rows() == [
        ("rucb", 100, 10, 2, False, False),
        ("rucb", 100, 50, 2, False, False),
        ("rucb", 100, 100, 2, False, False),
        ("btm", 10, 10, 2, True, True),
        ("btm", 100, 100, 2, True, True),
    ]


def test_a_problem_has_a_panel_and_a_start_of_its_own():
    other = results_of(
        ("a", "btm", 50, 1, [1.0]), ("a", "btm", 50, 50, [8.0]), ("a", "rucb", 50, 50, [2.0]), arms=5
    )  # a sorts before m, but comes after it
    both = Results(pl.concat([HORIZONS.frame, other.frame]))
    chart = figures.regret(both)
    panels = spec_of(chart)["concat"]
    assert [panel["title"]["text"] for panel in panels] == ["m · K = 2", "a · K = 5"]
    assert heading(chart) == ("Cumulative regret", ["1 to 2 runs · horizons 10 to 100"])
    assert line_of(chart, "regret", "btm", problem="a") == {1: 1.0, 50: 8.0}
    assert line_of(chart, "regret", "btm", "point", problem="a") == {}
    assert line_of(chart, "regret", "rucb", "point", problem="a") == {50: 2.0}  # a line of one point
    assert line_of(chart, "regret", "btm") == {10: 4.0, 100: 30.0}
    scales = [[layer["encoding"]["y"]["scale"] for layer in panel["layer"][:-1]] for panel in panels]
    assert all(scale == scales[0][0] for scale in itertools.chain(*scales))  # panels can be compared
    titles = [{layer["encoding"]["y"]["title"] for layer in panel["layer"][:-1]} for panel in panels]
    assert titles == [{"cumulative regret"}, {None}]
    alone = figures.regret(both, problem="a")
    assert heading(alone) == ("Cumulative regret on a", ["K = 5 · 1 run · horizon 50"])
    assert {row["problem"] for row in drawn(alone, "regret")} == {"a"}


def test_horizons_are_those_of_the_problem():
    other = results_of(
        *(("n", "btm", horizon, horizon, [1.0]) for horizon in (20, 200)),
        *(("n", "rucb", 200, t, [1.0]) for t in (10, 20, 100, 200)),
    )
    both = Results(pl.concat([HORIZONS.frame, other.frame]))
    chart = figures.regret(both)
    assert sorted(line_of(chart, "regret", "rucb", problem="n")) == [20, 100, 200]
    assert sorted(line_of(chart, "regret", "rucb", problem="m")) == [10, 50, 100]
    accuracy = figures.accuracy(both)
    assert sorted(line_of(accuracy, "accuracy", "rucb", problem="n")) == [20, 100, 200]
    assert sorted(line_of(accuracy, "accuracy", "rucb", problem="m")) == [10, 50, 100]


def test_a_line_of_one_point_is_a_mark():
    chart = figures.regret(results_of(("m", "rucb", 10, 10, [1.0, 3.0])))
    assert line_of(chart, "regret", "rucb", "point") == {10: 2.0}
    assert drawn(chart, "regret_min") == []  # a dotted line of one point cannot be seen
    assert domain(chart, "x") == [5, 20]


def test_regrets_of_real_runs():
    parts = [duels.simulate("cyclic-4", "rucb", horizon=1000, runs=5)]
    parts += [duels.simulate("cyclic-4", "savage", horizon=horizon, runs=5) for horizon in (100, 1000)]
    chart = figures.regret(duels.results.combine(parts))
    for result in parts[1:]:
        last = result.frame.filter(pl.col("t") == pl.col("horizon"))["regret"].to_list()
        t = result.frame["horizon"][0]
        assert line_of(chart, "regret", "savage", problem="cyclic-4")[t] == pytest.approx(math.fsum(last) / 5)
        assert line_of(chart, "regret_max", "savage", problem="cyclic-4")[t] == max(last)
    times = sorted(t for t in parts[0].frame["t"].unique() if t >= 100)
    assert sorted(line_of(chart, "regret", "rucb", problem="cyclic-4")) == times


def test_a_policy_without_regret_is_left_out_of_the_words():
    chart = figures.regret(results_of(("m", "rucb", 10, 10, [0.0]), ("m", "btm", 10, 10, [2.0])))
    assert line_of(chart, "regret", "rucb") == {10: None}
    assert spec_of(chart)["description"].endswith("At the end: Beat the Mean on m 2.")


def test_results_that_cannot_be_drawn():
    for plot in (figures.regret, figures.accuracy):
        with pytest.raises(InvalidInput, match="the results have no rows"):
            plot(Results(pl.DataFrame(schema=SCHEMA)))
        with pytest.raises(UnknownName, match=r"unknown problem 'M'\. Did you mean 'm'"):
            plot(HORIZONS, problem="M")


def test_regrets_that_are_all_0(tmp_path):
    nothing = results_of(("m", "rucb", 10, 1, [0.0, 0.0]), ("m", "rucb", 10, 10, [0.0, 0.0]))
    for bounds in (None, TWO):
        chart = figures.regret(nothing, bounds=bounds)
        assert line_of(chart, "regret", "rucb") == {1: 0.0, 10: 0.0}
        assert domain(chart, "y") == [0, 1]
        assert heading(chart)[1][1] == "every regret is 0"
        assert drawn(chart, "bound") == []
        assert figures.save(chart, tmp_path / "0.svg").exists()
    assert "both axes" not in spec_of(chart)["description"]


def test_the_pool_is_named_and_its_size_said_once():
    rows = [(f"{arms} arms", "rucb", 10, t, [1.0 * t, 2.0 * t]) for arms in (16, 32) for t in (1, 10)]
    both = Results(pl.concat(results_of(*part, arms=arms).frame for part, arms in ((rows[:2], 16), (rows[2:], 32))))
    for plot, title in ((figures.regret, "Cumulative regret"), (figures.accuracy, "Accuracy")):
        chart = plot(both, pool="mslr")
        assert heading(chart)[0] == f"{title} on arms of mslr"
        assert heading(chart)[1][0] == "2 runs · horizon 10"
        assert [panel["title"]["text"] for panel in spec_of(chart)["concat"]] == ["K = 16", "K = 32"]
        assert f"{title} on arms of mslr" in spec_of(chart)["description"]
        one = plot(both, problem="16 arms", pool="mslr")
        assert heading(one)[0] == f"{title} on 16 arms of mslr"
        assert heading(one)[1][0] == "2 runs · horizon 10"
        assert heading(plot(both))[0] == title
        assert heading(plot(both, problem="32 arms"))[0] == f"{title} on 32 arms"


TWO = PreferenceMatrix([[0.5, 0.6], [0.4, 0.5]], name="m")  # Δ = 0.1


def with_alpha(*policies, problem="m", most=50.0, arms=2):
    rows = [(problem, policy, 100, t, [most * t / 100]) for policy in policies for t in (1, 10, 100)]
    return results_of(*rows, arms=arms)


def test_bounds_by_hand():
    # K = 2, Δ = Δ* = 0.1, α = 2: C(δ) = (7 · 4 / (3 δ))^(1/3), D = 4 · 2 / 0.01 = 800, Δ_12 = 0.05.
    chart = figures.regret(with_alpha("rucb:alpha=2", "btm"), bounds=TWO)
    rows = drawn(chart, "bound")
    second = {row["t"]: row["bound"] for row in rows if row["theorem"] == 2}
    third = {row["t"]: row["bound"] for row in rows if row["theorem"] == 3}
    assert list(second) == list(third) == [10, 100]  # at t = 1, where ln t = 0, a line would start with a cliff
    for t in (10, 100):
        assert second[t] == pytest.approx(0.1 * (28 / 0.15) ** (1 / 3) + 40 * math.log(t))
        # Δ* C(1) (2α − 1)/(2α − 2) = 0.1 C(1) · 3/2
        assert third[t] == pytest.approx(0.15 * (28 / 3) ** (1 / 3) + 40 * math.log(t))
    assert {row["policy"] for row in rows} == {"rucb:alpha=2"}
    assert domain(chart, "y")[1] > second[100] > 50
    assert heading(chart)[1][1:] == ["Theorem 2: δ = 0.05"]


def test_bounds_in_the_legend():
    chart = figures.regret(with_alpha("btm", "rucb:alpha=2"), bounds=TWO)
    entries = legend(chart)
    (shade,) = legends.color_of(["rucb:alpha=2"]).range
    assert [(label, color) for label, color, _ in entries] == [
        ("Beat the Mean", charts.GREEN),
        ("RUCB (α = 2)", shade),
        ("Theorem 3, RUCB (α = 2)", shade),
        ("Theorem 2, RUCB (α = 2)", shade),
    ]
    assert len({path for _, _, path in entries[1:]}) == 3  # a line, dashes, dashes and dots
    dashes = {rows[0]["theorem"]: kind["strokeDash"] for kind, field, rows in parts(chart) if field == "bound"}
    assert dashes == {3: [8, 3], 2: [8, 3, 2, 3]}
    ends = [[float(x) for x in re.findall(r"[ML](-?[\d.]+),0", path)] for _, _, path in entries[2:]]
    assert ends[0] == pytest.approx([-12, -4, -1, 7, 10, 12], abs=0.01)  # 24 pixels: 8, 3, 8, 3, 2
    assert ends[1] == pytest.approx([-12, -4, -1, 1, 4, 12], abs=0.01)  # 8, 3, 2, 3, 8


def test_a_bound_far_above_is_said_and_not_drawn():
    chart = figures.regret(with_alpha("rucb"), bounds={"m": TWO})
    # α = 0.51: C(0.05)^(1/50) = 1.04 · 4 / (0.02 · 0.05) = 4160, times Δ* = 0.1; 4160^50 / 10 = 10^(179.95…).
    power = math.floor(50 * math.log10(4160) - 1)
    assert power == 179
    assert heading(chart)[1][1:] == [
        "Theorem 2's bound on RUCB at δ = 0.05 lies above 10¹⁷⁹",
        "Theorem 3 has no bound on RUCB: it needs α > 1",
    ]
    assert drawn(chart, "bound") == []
    assert domain(chart, "y")[1] < 100


def test_a_bound_too_large_for_a_float():
    # α = 0.501: the exponent is 500.
    chart = figures.regret(with_alpha("rucb:alpha=0.501"), bounds=TWO)
    assert heading(chart)[1][1] == "Theorem 2's bound on RUCB (α = 0.501) at δ = 0.05 lies above 10³⁰⁸"


def test_how_high_is_too_high():
    # Theorem 3 at t = 100 is 0.15 (28/3)^(1/3) + 40 ln 100 = 184.52: drawn while the largest regret is above 0.1845.
    for most, times in ((0.185, [10, 100]), (0.184, [])):
        chart = figures.regret(with_alpha("rucb:alpha=2", most=most), bounds=TWO)
        assert [row["t"] for row in drawn(chart, "bound") if row["theorem"] == 3] == times
    assert "Theorem 3's bound on RUCB (α = 2) lies above 0.1" in heading(chart)[1]  # 0.32 at t = 1


def test_alpha_decides_which_theorems_apply():
    policies = ["rucb:alpha=0.5", "rucb:alpha=0.9", "rucb:alpha=1", "rucb:alpha=1.01,variant=icml", "savage"]
    points = figures.regret_points(with_alpha(*policies))
    found = figures.bound_points(points, TWO).select("policy", "theorem").unique(maintain_order=True).rows()
    assert found == [
        ("rucb:alpha=0.9", 2),
        ("rucb:alpha=1", 2),
        ("rucb:alpha=1.01,variant=icml", 3),
        ("rucb:alpha=1.01,variant=icml", 2),
    ]
    notes = heading(figures.regret(with_alpha(*policies), bounds=TWO))[1]
    assert notes[-1] == "Theorem 3 has no bound on RUCB (α = 0.5), RUCB (α = 0.9), RUCB (α = 1): it needs α > 1"


def test_whose_matrix_it_is():
    wide = PreferenceMatrix([[0.5, 0.9], [0.1, 0.5]], name="w")
    both = Results(pl.concat([with_alpha("rucb:alpha=2", problem=name).frame for name in ("m", "w")]))

    def bounded(bounds, **options):
        return {row["problem"] for row in drawn(figures.regret(both, bounds=bounds, **options), "bound")}

    assert bounded(wide) == {"w"}
    assert bounded({"m": TWO, "w": wide}) == {"m", "w"}
    assert bounded({"w": wide}) == {"w"}
    assert bounded({"m": TWO, "w": wide}, problem="m") == {"m"}
    assert bounded(PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]]), problem="m") == {"m"}  # of whatever name
    steep = figures.bound_points(figures.regret_points(both), wide)
    # Δ = 0.4: D Δ_12 = 8/0.16 · 0.2 = 10.
    assert np.diff(steep.filter(theorem=3)["bound"]) == pytest.approx([10 * math.log(10)] * 2)


def test_the_policies_with_bounds():
    """A policy's module names the parameter that is α in the theorems, and figures ask for nothing else."""
    own = {name: alpha_of(name) for name in duels.policies.BUILT_IN}
    assert {name: alpha for name, alpha in own.items() if alpha is not None} == {"rucb": 0.51}
    assert alpha_of("rucb:alpha=0.4") == 0.4  # no warning
    assert alpha_of("btm:gamma=own") is None
    assert alpha_of("mine:alpha=2") is alpha_of("rucb.py:alpha=2") is None  # a user's


def test_bounds_that_cannot_be_drawn():
    runs = with_alpha("rucb:alpha=2")
    with pytest.raises(UnknownName, match="unknown problem 'n'"):
        figures.regret(runs, bounds={"n": TWO})
    three = PreferenceMatrix([[0.5, 0.6, 0.6], [0.4, 0.5, 0.6], [0.4, 0.4, 0.5]])
    for bounds in (three, {"m": three}):
        with pytest.raises(InvalidInput, match="the matrix given for m has 3 arms, its results have 2"):
            figures.regret(runs, bounds=bounds)
    with pytest.raises(InvalidInput, match="the theorems are about rucb"):
        figures.regret(with_alpha("btm"), bounds=TWO)
    both = Results(pl.concat([with_alpha("rucb:alpha=2", problem=name).frame for name in ("m", "w")]))
    with pytest.raises(UnknownName, match="unknown problem 'matrix-"):
        figures.regret(both, bounds=PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]]))


def test_accuracy_by_hand():
    results = results_of(
        ("m", "rucb", 10, 1, [1.0] * 4, [0, 0, 1, 0]),
        ("m", "rucb", 10, 10, [1.0] * 4, [1, 1, 1, 0]),
    )
    chart = figures.accuracy(results)
    assert line_of(chart, "accuracy", "rucb") == {1: 0.25, 10: 0.75}
    assert drawn(chart, "accuracy", "point") == []
    assert line_of(chart, "accuracy", "rucb", "full") == {1: 0.25, 10: 0.75}
    assert drawn(chart, "accuracy_low", "rule") == []
    steps = {kind["type"]: kind.get("interpolate") for kind, _, _ in parts(chart)}
    assert (steps["line"], steps["area"]) == ("step-after", "step-after")  # a share holds until the next checkpoint
    assert domain(chart, "y") == [0, 1]
    assert heading(chart) == ("Accuracy on m", ["K = 2 · 4 runs · horizon 10"])
    # Wilson's interval of 3 of 4 runs: |¾ − p| = z √(p (1 − p) / 4) at its ends.
    (band,) = [row for row in drawn(chart, "accuracy_low", "area") if row["t"] == 10]
    for end in (band["accuracy_low"], band["accuracy_high"]):
        assert abs(0.75 - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 4), rel=1e-5)
    assert [label for label, _, _ in legend(chart)] == ["RUCB", "95% confidence interval"]
    assert drawn(figures.accuracy(results, band=None), "accuracy_low", "area") == []


def test_the_interval_is_wilsons():
    results = results_of(("m", "rucb", 10, 10, [1.0] * 4, [1, 1, 1, 0]), ("m", "btm", 10, 10, [1.0] * 4, [1] * 4))
    bars = drawn(figures.accuracy(results), "accuracy_low", "rule")
    assert [row["policy"] for row in bars] == ["rucb", "btm"]
    # Its ends are where the observed share is 1.96 standard errors off: |share − p| = z √(p (1 − p) / n).
    for share, end in [(0.75, bars[0]["accuracy_low"]), (0.75, bars[0]["accuracy_high"]), (1, bars[1]["accuracy_low"])]:
        assert abs(share - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 4), rel=1e-5)
    assert bars[1]["accuracy_high"] == pytest.approx(1)
    assert bars[0]["accuracy_low"] < 0.75 < bars[0]["accuracy_high"]


def test_accuracy_at_the_horizons():
    chart = figures.accuracy(HORIZONS)
    assert line_of(chart, "accuracy", "btm") == {10: 0.5, 100: 0.0}  # of the runs told 10, and of those told 100
    assert line_of(chart, "accuracy", "rucb") == {10: 0.5, 50: 0.5, 100: 1.0}  # at its checkpoints
    assert line_of(chart, "accuracy", "btm", "point") == {10: 0.5, 100: 0.0}
    assert line_of(chart, "accuracy", "rucb", "point") == {}
    assert len(drawn(chart, "accuracy_low", "area")) == 5
    assert drawn(chart, "accuracy_low", "rule") == []
    assert [(label, path.count("M")) for label, _, path in legend(chart)] == [
        *(("RUCB", 5), ("Beat the Mean", 3)),  # full, and a line around a hollow mark
        ("separate runs for each horizon", 1),
        ("95% confidence interval", 5),
    ]


def test_bars_stand_side_by_side():
    for policies, aside in ((2, [-6, 6]), (3, [-12, 0, 12]), (11, [10 * place - 50 for place in range(11)])):
        rows = [("m", f"p{k}", 10, 10, [1.0] * 4, [1, 1, 1, 0]) for k in range(policies)]
        chart = figures.accuracy(results_of(*rows))
        assert [kind["xOffset"] for kind, _, _ in parts(chart) if kind["type"] == "rule"] == pytest.approx(aside)
        marks = [kind["xOffset"] for kind, y, _ in parts(chart) if kind["type"] == "point" and y == "accuracy"]
        assert marks == pytest.approx(aside)  # each on its bar
        assert heading(chart)[1][1] == "bars: 95% intervals"
        axis = spec_of(chart)["layer"][0]["encoding"]["x"]["axis"]
        assert axis["values"] == [10]  # so that no mark seems to be at another time


def test_bars_beside_a_line_stand_close_to_their_time():
    path = [("m", "path", 10, t, [1.0] * 4, [1, 1, 1, 0]) for t in (1, 10)]
    for policies, aside in ((2, [-1.5, 1.5]), (3, [-3, 0, 3]), (9, [2 * place - 8 for place in range(9)])):
        rows = [("m", f"p{k}", 10, 10, [1.0] * 4, [1, 1, 1, 0]) for k in range(policies)]
        chart = figures.accuracy(results_of(*path, *rows))
        assert [kind["xOffset"] for kind, _, _ in parts(chart) if kind["type"] == "rule"] == pytest.approx(aside)


@pytest.mark.parametrize(
    ("provenance", "winner"),
    [
        ({}, "the Condorcet winner"),
        ({"regret": "strong"}, "the Condorcet winner"),
        ({"regret": "copeland"}, "a Copeland winner"),
        ({"regret": "borda"}, "a Borda winner"),
        ({"problems": {"m": {"regret": "condorcet"}, "n": {"regret": "copeland"}}}, "the Condorcet winner"),
        ({"parts": [{"regret": "condorcet"}, {"regret": "copeland"}]}, "the problem's winner"),
    ],
)
def test_whom_a_run_must_name(provenance, winner):
    chart = figures.accuracy(Results(HORIZONS.frame, provenance=provenance))
    assert f"Share of runs that recommend {winner} against time" in spec_of(chart)["description"]


def test_accuracy_of_a_policy_without_those_times():
    more = results_of(
        ("m", "random", 200, 10, [1.0], [1]),
        ("m", "random", 200, 90, [1.0], [0]),
        ("m", "random", 200, 200, [1.0], [1]),
        ("m", "savage", 60, 10, [1.0], [1]),
        ("m", "savage", 60, 60, [1.0], [0]),
    )
    points = figures.accuracy_points(Results(pl.concat([HORIZONS.frame, more.frame])))
    times = {policy: rows["t"].to_list() for (policy,), rows in points.group_by("policy")}
    assert times == {"rucb": [10, 50, 100], "btm": [10, 100], "random": [10, 90, 200], "savage": [10, 60]}
    assert dict(points.select("policy", "marked").unique().rows()) == {
        **{"rucb": False, "btm": True, "random": False, "savage": False},
    }


@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(matrices(most=6))
def test_probabilities_by_enumeration(matrix):
    rows = drawn(figures.condorcet_probability(matrix), "probability")
    found = {(row["size"], row["assumption"]): row["probability"] for row in rows}
    for size in range(1, matrix.arms + 1):
        subsets = list(itertools.combinations(range(matrix.arms), size))
        winners = sum(has_winner(matrix, subset) for subset in subsets)
        ordered = sum(is_ordered(matrix, subset) for subset in subsets)
        assert found[size, "Condorcet winner"] == pytest.approx(winners / len(subsets))
        assert found[size, "total order"] == pytest.approx(ordered / len(subsets))
    assert len(rows) == 2 * matrix.arms


def test_the_figure_of_cyclic_4():
    chart = figures.condorcet_probability(duels.load_problem("cyclic-4"))
    # Of four subsets of three arms one is a cycle; all four arms have a winner, but no order.
    assert [(row["size"], row["probability"]) for row in drawn(chart, "probability")] == [
        *((1, 1), (1, 1), (2, 1), (2, 1), (3, 0.75), (3, 0.75), (4, 1), (4, 0)),
    ]
    assert drawn(chart, "lower", "area") == []
    assert heading(chart) == (
        "Assumptions on random subsets of cyclic-4",
        ["K of 4 arms · a winner is least likely at K = 3: 0.7500"],
    )
    entries = legend(chart)
    assert [(label, color) for label, color, _ in entries] == [
        *(("Condorcet winner", charts.VERMILION), ("total order", charts.BLUE)),
    ]
    assert all(path.count("M") == 3 for _, _, path in entries)  # a line with a mark
    assert (domain(chart, "x"), domain(chart, "y")) == ([1, 4], [0, 1])


def random_matrix(arms, seed):
    p = np.triu(np.random.default_rng(seed).uniform(0.1, 0.9, (arms, arms)), 1)
    return PreferenceMatrix(p + np.tril(1 - p.T, -1) + np.eye(arms) / 2)


def test_estimates_have_an_interval(monkeypatch):
    monkeypatch.setattr("duels.preference.count_ordered_subsets", lambda beats, size: None)
    monkeypatch.setattr("duels.preference.count_ordered_subsets_by_size", lambda beats: None)
    matrix = random_matrix(8, 0)
    chart = figures.condorcet_probability(matrix, sizes=[4, 1, 3, 4], samples=1000)
    rows = drawn(chart, "lower", "area")
    assert [row["size"] for row in rows] == [3, 4]
    for row in rows:
        known = matrix.total_order_probability(row["size"], samples=1000)
        assert (row["assumption"], row["exact"], row["probability"]) == ("total order", False, known.value)
        assert row["upper"] - row["probability"] == pytest.approx(1.959964 * known.standard_error, rel=1e-5)
        assert row["probability"] - row["lower"] == pytest.approx(1.959964 * known.standard_error, rel=1e-5)
    assert heading(chart)[1][1] == "total order, K = 3 to 4: 1,000 subsets each, shaded: 95%"
    assert [row["size"] for row in drawn(chart, "probability")] == [1, 1, 3, 3, 4, 4]


def test_which_sizes_are_shown():
    every = figures.condorcet_points(random_matrix(20, 1))
    assert every["size"].unique().sort().to_list() == list(range(1, 21))
    # 16 marks at most: one of two sizes.
    assert every.filter("marked")["size"].unique().sort().to_list() == list(range(1, 21, 2))
    assert all(figures.condorcet_points(random_matrix(16, 1))["marked"])
    arithmetic = PreferenceMatrix(duels.load_problem("arithmetic-8").array)
    some = figures.condorcet_points(_ordered(65))["size"].unique().sort().to_list()
    assert (some[0], some[-1], len(some)) == (1, 65, 40)
    assert max(np.diff(some)) == 2
    assert len(figures.condorcet_points(_ordered(64))) == 2 * 64
    for sizes, message in ([], "sizes is empty"), ([9], "size is 9"), ([0], "size is 0"):
        with pytest.raises(InvalidInput, match=message):
            figures.condorcet_probability(arithmetic, sizes=sizes)


def _ordered(arms):
    above = np.triu(np.full((arms, arms), 0.6), 1)
    return PreferenceMatrix(above + np.tril(1 - above.T, -1) + np.eye(arms) / 2)


def test_the_papers_claim_on_real_rankers(shared_data):
    """The paper: P_K is above 0.97 for every K, falls, and rises again; total orders soon are rare."""
    matrix = duels.load_matrix(shared_data("matrices/feature-rankers-64.csv"))
    points = figures.condorcet_points(matrix, sizes=[1, 2, 5, 10, 22, 40, 64])
    winners = points.filter(assumption="Condorcet winner")["probability"].to_list()
    assert min(winners) > 0.97
    assert winners[0] == winners[1] == winners[-1] == 1
    assert winners[4] < winners[5] < 1
    ordered = points.filter(assumption="total order")["probability"].to_list()
    assert ordered == sorted(ordered, reverse=True)
    assert ordered[3] == pytest.approx(0.5, abs=0.1)
    assert ordered[5] < 1e-6


def cells(chart, number):
    (rows,) = [rows for kind, _, rows in parts(chart) if kind["type"] == "rect" and len(rows) > 1]
    return {(row["row"], row["column"]): float(row[number]) for row in rows}


@settings(max_examples=settings.default.max_examples // 8, deadline=None)
@given(matrices())
def test_every_cell_and_the_order(matrix):
    chart = figures.preferences(matrix)
    found = cells(chart, "probability")
    assert found == {(i, j): matrix[i, j] for i in matrix.names for j in matrix.names}
    order = domain(chart, "y")
    assert order == domain(chart, "x")
    assert sorted(order) == sorted(matrix.names)
    scores = [(sum(matrix[i, j] > 0.5 for j in matrix.names), sum(matrix[i, j] for j in matrix.names)) for i in order]
    for above, below in itertools.pairwise(scores):
        assert above[0] > below[0] or (above[0] == below[0] and above[1] >= below[1] - 1e-9)
    low, middle, high = domain(chart, "color")
    assert middle == 0.5
    assert middle - low == pytest.approx(high - middle)
    assert high >= max(found.values())


def test_equal_copeland_scores_are_ordered_by_borda():
    # A cycle a > b > c > a with margins 0.1, 0.4 and 0.2: the row sums are 0.5 + 0.6 + 0.3, 0.5 + 0.4 + 0.9 and
    # 0.5 + 0.1 + 0.7, so b, a, c.
    matrix = PreferenceMatrix([[0.5, 0.6, 0.3], [0.4, 0.5, 0.9], [0.7, 0.1, 0.5]], ["a", "b", "c"], "cycle")
    chart = figures.preferences(matrix)
    assert domain(chart, "y") == ["b", "a", "c"]
    assert domain(chart, "color") == pytest.approx([0.1, 0.5, 0.9])
    assert heading(chart) == ("Preferences of cycle", ["K = 3 · no Condorcet winner · 1 three-cycle"])
    assert [kind["type"] for kind, _, _ in parts(chart)] == ["rect", "text"]  # nothing is outlined


def test_the_winner_is_named_and_outlined():
    names = ["a", "b", "c", "d", "e", "f"]
    chart = figures.preferences(duels.load_problem("arxiv-6"), names=names)
    assert heading(chart)[1] == ["K = 6 · Condorcet winner: a (outlined) · 0 three-cycles"]
    assert parts(chart)[-1][2] == [{"row": "a"}]
    assert parts(chart)[-1][0]["stroke"] == "black"
    assert cells(chart, "probability")["a", "f"] == 0.61
    with pytest.raises(InvalidInput, match="2 names were given for 6 arms"):
        figures.preferences(duels.load_problem("arxiv-6"), names=["a", "b"])
    with pytest.raises(InvalidInput, match="0 names were given"):
        figures.preferences(duels.load_problem("arxiv-6"), names=[])


def test_a_matrix_of_ties():
    chart = figures.preferences(PreferenceMatrix(np.full((3, 3), 0.5)))
    assert domain(chart, "color") == [0, 0.5, 1]


@pytest.mark.parametrize("name", ["feature-rankers-64", "mslr-navigational-136"])
def test_large_matrices(name, shared_data, tmp_path):
    matrix = duels.load_matrix(shared_data(f"matrices/{name}.csv"))
    chart = figures.preferences(matrix)
    found = cells(chart, "probability")
    assert len(found) == matrix.arms**2
    best = matrix.names[matrix.condorcet_winner]
    assert min(found[best, other] for other in matrix.names if other != best) > 0.5
    svg = figures.save(chart, tmp_path / "figure.svg").read_text()
    assert texts(svg).count(best) == 1  # the winner alone is named
    assert svg.count("<path") > matrix.arms**2


def pairs_of(*rows, problem="m"):
    """Pairs of (policy, run, t, {(first, second): duels})."""
    table = [
        (problem, policy, run, t, i, j, float(duels), None)
        for policy, run, t, met in rows
        for (i, j), duels in met.items()
    ]
    schema = ["problem", "policy", "run", "t", "first", "second", "duels", "wins"]
    return pl.DataFrame(table, schema=schema, orient="row", infer_schema_length=None)


def recorded(*rows, problem="m"):
    return Results(ONE_HORIZON.frame, pairs=pairs_of(*rows, problem=problem))


EARLY = {(0, 0): 1, (0, 1): 2, (1, 1): 3}
LATE = {(0, 0): 100, (0, 1): 20, (1, 1): 0}
LATER = {(0, 0): 300, (0, 1): 30, (1, 1): 0}


def test_pairs_by_hand():
    results = recorded(("rucb", 0, 5, EARLY), ("rucb", 0, 9, LATE), ("rucb", 1, 5, EARLY), ("rucb", 1, 9, LATER))
    chart = figures.pairs(results)
    # Means of 100 and 300, of 20 and 30; arm 1 never dueled itself, so its cell is blank.
    assert cells(chart, "duels") == {("0", "0"): 200, ("0", "1"): 25, ("1", "0"): 25}
    assert domain(chart, "color") == [20 + 5, 25 * 10]  # a power of ten at least
    assert (domain(chart, "x"), domain(chart, "y")) == (["0", "1"], ["0", "1"])
    title, below = heading(chart)
    assert (title, below) == ("Duels of each pair on m: RUCB, t = 9", ["K = 2 · mean over 2 runs · blank: never"])
    early = figures.pairs(results, t=5)
    assert cells(early, "duels") == {("0", "0"): 1, ("0", "1"): 2, ("1", "0"): 2, ("1", "1"): 3}
    assert heading(early)[0] == "Duels of each pair on m: RUCB, t = 5"


def test_pairs_in_the_order_of_the_matrix():
    # Arm 1, called y, is the winner.
    matrix = PreferenceMatrix([[0.5, 0.2], [0.8, 0.5]], ["x", "y"])
    chart = figures.pairs(recorded(("rucb", 0, 9, LATE)), matrix)
    assert domain(chart, "y") == ["y", "x"]
    assert cells(chart, "duels") == {("x", "x"): 100, ("x", "y"): 20, ("y", "x"): 20}
    assert parts(chart)[-1][2] == [{"row": "y"}]


def test_a_panel_for_each_policy():
    results = recorded(("rucb", 0, 5, EARLY), ("rucb", 0, 9, LATE), ("btm", 0, 7, LATER))
    chart = figures.pairs(results)
    panels = spec_of(chart)["concat"]
    assert [panel["title"]["text"] for panel in panels] == [
        "RUCB, t = 9",
        "Beat the Mean, t = 7",
    ]  # each one's last time
    scales = [panel["layer"][0]["encoding"]["color"]["scale"]["domain"] for panel in panels]
    assert scales == [[20, 300]] * 2
    rows = [{(row["row"], row["policy"]) for row in rows} for kind, _, rows in parts(chart) if kind["type"] == "rect"]
    assert rows == [{("0", "rucb"), ("1", "rucb")}, {("0", "btm"), ("1", "btm")}]
    assert heading(chart)[0] == "Duels of each pair on m"
    assert cells(figures.pairs(results, policy="btm"), "duels")["0", "0"] == 300


def test_pairs_of_real_runs_sum_to_the_time():
    matrix = duels.load_problem("arxiv-6")
    results = duels.simulate(matrix, "rucb", horizon=500, runs=3, record="pairs", checkpoints=[100])
    for t in (100, 500):
        found = cells(figures.pairs(results, matrix, t=t), "duels")
        once = [duels for (i, j), duels in found.items() if i <= j]
        assert sum(once) == pytest.approx(t)
        assert all(found[j, i] == duels for (i, j), duels in found.items())


def test_pairs_that_cannot_be_drawn():
    results = recorded(("rucb", 0, 5, EARLY), ("rucb", 0, 9, LATE))
    with pytest.raises(InvalidInput, match=re.escape('simulate(..., record="pairs")')):
        figures.pairs(ONE_HORIZON)
    with pytest.raises(InvalidInput, match="no pairs were recorded at t = 6: expected one of 5, 9"):
        figures.pairs(results, t=6)
    with pytest.raises(UnknownName, match="unknown policy 'rucd'"):
        figures.pairs(results, policy="rucd")
    with pytest.raises(UnknownName, match="unknown problem 'n'"):
        figures.pairs(results, problem="n")
    with pytest.raises(InvalidInput, match="the matrix has 6 arms, expected the 2 of the recorded pairs"):
        figures.pairs(results, duels.load_problem("arxiv-6"))
    two = Results(ONE_HORIZON.frame, pairs=pl.concat([results.pairs, pairs_of(("rucb", 0, 9, LATE), problem="n")]))
    with pytest.raises(InvalidInput, match="there are pairs of m, n: choose one"):
        figures.pairs(two)
    assert heading(figures.pairs(two, problem="n"))[0] == "Duels of each pair on n: RUCB, t = 9"
    twice = recorded(("btm", 0, 9, LATE), ("btm", 0, 9, LATER))  # runs told 9, and runs told more
    with pytest.raises(InvalidInput, match="pairs of several horizons"):
        figures.pairs(twice)


def test_every_figure_and_its_data_are_described():
    pages = Path(__file__).parents[2] / "docs" / "figures"
    text = "".join(page.read_text() for page in pages.glob("*.md"))
    assert [name for name in figures.__all__ if not re.search(rf"(`|figures\.){name}\b", text)] == []


def test_descriptions_say_where_lines_end():
    assert spec_of(figures.regret(HORIZONS))["description"] == (
        "Cumulative regret on m: K = 2 · 2 runs · horizons 10 to 100. Mean cumulative regret against time, both axes "
        "logarithmic. At the end: RUCB on m 8, Beat the Mean on m 30."
    )
    assert (
        figures.accuracy(HORIZONS)
        .to_dict()["description"]
        .endswith("At the end: RUCB on m 1.00, Beat the Mean on m 0.00.")
    )


def test_every_figure_takes_a_folder_and_says_what_it_takes(tmp_path):
    """Figures of results take a folder of them, figures of matrices a file or a name; all else is refused alike."""
    record = ["pairs", (0, 1)]
    recorded = duels.simulate("cyclic-4", "rucb", horizon=60, runs=3, checkpoints=range(1, 61), record=record)
    recorded.save(tmp_path / "rucb")
    charts = [
        (figures.regret, recorded, "rucb", []),
        (figures.accuracy, recorded, "rucb", []),
        (figures.pairs, recorded, "rucb", ["cyclic-4"]),
        (figures.intervals, recorded, "rucb", ["cyclic-4"]),
        (figures.state, recorded, "rucb", ["cyclic-4"]),
        (figures.regret_quantiles, recorded, "rucb", ["cyclic-4"]),
    ]
    for draw, results, folder, more in charts:
        expected = draw(results, *more).description  # it says the last value of each line
        for where in (tmp_path / folder, str(tmp_path / folder)):
            assert draw(where, *more).description == expected
        for wrong in (None, recorded.frame, 3):
            with pytest.raises(InvalidInput, match="is not results: expected what simulate, run_experiment or"):
                draw(wrong, *more)
        with pytest.raises(InvalidInput, match="is not a folder: expected one with results"):
            draw(tmp_path / "nowhere", *more)
    matrix = duels.load_problem("cyclic-4")
    for draw in (figures.preferences, figures.condorcet_probability):
        assert spec_of(draw("cyclic-4")) == spec_of(draw(matrix))
        with pytest.raises(InvalidInput, match="is not a problem: expected"):
            draw(None)
