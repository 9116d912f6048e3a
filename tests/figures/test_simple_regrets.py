"""The figure of simple regret: medians and bands by hand, its axes, and what it refuses."""

import polars as pl
import pytest
from chart_reader import HORIZONS, domain, drawn, heading, legend, line_of, spec_of

import duels
from duels import figures
from duels.errors import InvalidInput
from duels.results import SCHEMA, Results

RUNS = {10: [0.4, 0.1, 0.2, 0.9], 20: [0.3, 0.1, 0.05, 0.2], 30: [0.0, 0.0, 0.1, 0.3]}


def simple_results(by_time, problem="m", policy="rucb", arms=2):
    rows = [
        {"problem": problem, "arms": arms, "policy": policy, "horizon": max(by_time), "run": run, "t": t}
        | {"regret": 1.0, "simple_regret": value}
        for t, values in by_time.items()
        for run, value in enumerate(values)
    ]
    return Results(pl.DataFrame(rows, schema=SCHEMA))


def test_medians_and_quartiles_by_hand():
    """Sorted, the runs at t = 10 are 0.1 0.2 0.4 0.9: the median is between the inner two, quartiles at ¾ of a step."""
    points = figures.simple_regret_points(simple_results(RUNS)).to_dicts()
    assert [(row["t"], row["runs"], row["fresh"]) for row in points] == [(10, 4, False), (20, 4, False), (30, 4, False)]
    first, second, third = points
    assert first["simple_regret"] == pytest.approx(0.3)
    assert first["simple_regret_q25"] == pytest.approx(0.175)  # 0.1 + ¾ · 0.1
    assert first["simple_regret_q75"] == pytest.approx(0.525)  # 0.4 + ¼ · 0.5
    assert (first["simple_regret_min"], first["simple_regret_max"]) == (0.1, 0.9)
    assert second["simple_regret"] == pytest.approx(0.15)
    assert third["simple_regret"] == pytest.approx(0.05)
    assert third["simple_regret_q25"] is None  # 0 has no logarithm
    assert third["simple_regret_min"] is None


def test_the_line_is_the_median_in_a_band():
    chart = figures.simple_regret(simple_results(RUNS))
    assert line_of(chart, "simple_regret", "rucb") == pytest.approx({10: 0.3, 20: 0.15, 30: 0.05})
    band = line_of(chart, "simple_regret_q25", "rucb", "area")
    assert band == pytest.approx({10: 0.175, 20: 0.0875, 30: 0.02})  # down to the end of the axis, for 0
    assert drawn(chart, "simple_regret_q25", "area")[0]["simple_regret_q75"] == pytest.approx(0.525)
    assert domain(chart, "y") == [0.02, 1]
    assert domain(chart, "x") == [10, 50]
    assert [label for label, _, _ in legend(chart)] == ["RUCB", "middle half of the runs"]
    assert heading(chart) == ("Median simple regret on m", ["K = 2 · 4 runs · horizon 30"])
    assert spec_of(chart)["description"].endswith("At the end: RUCB on m 0.05.")


def test_bands():
    results = simple_results(RUNS)
    widest = figures.simple_regret(results, band="minmax")
    assert line_of(widest, "simple_regret_min", "rucb", "area")[20] == 0.05
    assert [label for label, _, _ in legend(widest)] == ["RUCB", "best and worst run"]
    bare = figures.simple_regret(results, band=None)
    assert drawn(bare, "simple_regret_q25", "area") == []
    assert [label for label, _, _ in legend(bare)] == ["RUCB"]
    with pytest.raises(InvalidInput, match="simple_regret has no band 'ci': expected 'quantiles' or 'minmax', or None"):
        figures.simple_regret(results, band="ci")
    single = simple_results({10: [0.4], 20: [0.2]})
    assert [label for label, _, _ in legend(figures.simple_regret(single))] == ["RUCB"]
    with pytest.raises(InvalidInput, match="no policy has several runs over time"):
        figures.simple_regret(single, band="quantiles")


def test_continuous_spaces_have_panels_with_axes_of_their_own():
    """Time is linear from 0; a function's regrets set the y axis of its panel, and of no other."""
    scaled = {t: [100 * value for value in values] for t, values in RUNS.items()}
    parts = [simple_results(RUNS, "near", arms=None), simple_results(scaled, "far", arms=None)]
    spec = spec_of(figures.simple_regret(duels.results.combine(parts)))
    near, far = (panel["layer"][0]["encoding"] for panel in spec["concat"])
    assert near["x"]["scale"] == {"domain": [0, 30], "nice": False}
    assert near["x"]["title"] == far["x"]["title"] == "duels"
    assert near["y"]["scale"]["type"] == "log"
    assert near["y"]["scale"]["domain"][1] <= 1 < far["y"]["scale"]["domain"][0]
    assert [panel["title"]["text"] for panel in spec["concat"]] == ["near", "far"]


def test_a_median_of_zero():
    """The line ends where the median is 0, and the description says so; a panel of zeros is linear."""
    chart = figures.simple_regret(simple_results({10: [0.2, 0.4], 20: [0.0, 0.0]}))
    assert line_of(chart, "simple_regret", "rucb") == pytest.approx({10: 0.3, 20: None})
    assert spec_of(chart)["description"].endswith("At the end: RUCB on m 0.")
    found = figures.simple_regret(simple_results({10: [0.0, 0.0, 0.8], 20: [0.0, 0.0, 0.0]}))
    assert domain(found, "y") == [0, 0.4]  # the upper quartile of 0, 0 and 0.8
    assert line_of(found, "simple_regret", "rucb") == {10: 0, 20: 0}
    assert heading(found)[1][1] == "the median is always 0 on m"


def test_a_policy_with_several_horizons_counts_at_these():
    results = Results(HORIZONS.frame.with_columns(simple_regret="regret"))
    chosen, usual = figures.simple_regret_points(results), figures.regret_points(results)
    assert chosen.select("policy", "t", "fresh", "marked").equals(usual.select("policy", "t", "fresh", "marked"))
    assert chosen.filter(policy="btm").select("t", "horizon").rows() == [(10, 10), (100, 100)]
    with pytest.raises(InvalidInput, match="the results have no rows"):
        figures.simple_regret(Results(HORIZONS.frame.clear()))
