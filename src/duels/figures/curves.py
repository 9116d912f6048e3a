"""Figures of results and of matrices, as a paper prints them; they run nothing.

A figure is an Altair chart of the table that the function called `…_points` gives; `save` writes it.
Results may be given as their folder, matrices as a file or a problem's name.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from .. import specs, theory
from ..errors import InvalidInput
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts
from .panels import ends, finished, key_of_policies, last, only, over_runs, panels, unique

REGRET = "cumulative regret"
SPREAD, DOTTED = "best and worst run", (1.5, 2.5)
DELTA = 0.05  # of Theorem 2's bound
TOO_HIGH = 1e3  # a bound so many times above every regret is not drawn
DASHES = {3: (8, 3), 2: (8, 3, 2, 3)}
APART = 3, 16  # pixels between the bars of two policies, and the most between the first and the last
CONDORCET, ORDERED = "Condorcet winner", "total order"
EVERY_SIZE, SOME_SIZES = 64, 40  # up to so many arms every size of subset is shown, of more arms about so many
MARKS = 16  # the most marks on a line of sizes
Z95 = 1.959963984540054  # the normal quantile of a 95% interval

Bounds = PreferenceMatrix | Mapping[str, PreferenceMatrix]


def regret(results: Results, *, problem: str | None = None, bounds: Bounds | None = None, pool: str = "") -> Any:
    """Cumulative regret against time, both axes logarithmic: the mean over runs, dotted the best and the worst run.

    problem: the one to show; by default each has its panel.
    bounds: the problem's matrix, or matrices by problem: adds what Theorems 2 (δ = 0.05) and 3 promise of RUCB.
    pool: what the problems' arms were drawn from, for the title.
    """
    results = as_results(results)
    points = only(regret_points(results), "problem", problem)
    nothing = points["regret"].is_null().all()
    if nothing:
        points = points.with_columns(pl.col("regret", "regret_min", "regret_max").fill_null(0))
    for name in bounds if isinstance(bounds, Mapping) else ():
        only(results.frame, "problem", name)  # refuses a name that is not there
    promised = bound_points(points, {} if bounds is None else bounds)
    drawn = bounds_in_sight(points, promised)
    several = bool(((points["runs"] > 1) & (points["fresh"] | ~points["marked"])).any())  # runs, and times to join
    key = _key_of_regret(points, several, drawn)

    def layers(here: pl.DataFrame, x: alt.X, y: Callable[[str], alt.Y]) -> list[Any]:
        runs = alt.Chart(charts.values(here)).mark_line(strokeWidth=1.2, strokeDash=DOTTED)
        found = [runs.encode(x, y(f"{end}:Q"), key.colour("policy")) for end in ("regret_min", "regret_max") if several]
        for (theorem,), rows in drawn.filter(problem=here["problem"][0]).group_by("theorem", maintain_order=True):
            line = alt.Chart(charts.values(rows)).mark_line(strokeWidth=1.5, strokeDash=DASHES[theorem])
            found.append(line.encode(x, y("bound:Q"), key.colour("label")))
        return [*found, *charts.lines(here, x, y("regret:Q"), key, "policy")]

    notes = ["every regret is 0"] if nothing else []
    notes += [] if bounds is None else _notes(points, promised, drawn)
    axes = "on a logarithmic axis" if nothing else "both axes logarithmic"
    said = f"Mean cumulative regret against time, {axes}. " + last(points, "regret", ".4g")
    axis = {"title": REGRET, "scale": alt.Scale(domain=[0, 1])} if nothing else _axis_of_regret(points, drawn)
    chart = panels(points, key, axis, layers)
    title = "Cumulative regret" if results.notion == "condorcet" else f"Cumulative regret ({results.notion})"
    return finished(points, chart, title, notes, said, pool)


def regret_points(results: Results) -> pl.DataFrame:
    """The mean, least and largest cumulative regret over runs, by problem, policy and time.

    A policy run with several horizons counts at its horizons only, each in the runs that were told it (`fresh`); no
    policy then counts before the problem's smallest horizon. A regret of 0 is null: a logarithm has no place for it.
    """
    columns = ["regret", "regret_min", "regret_max"]
    return over_runs(results, columns).with_columns(pl.when(pl.col(column) > 0).then(column) for column in columns)


def bound_points(points: pl.DataFrame, bounds: Bounds) -> pl.DataFrame:
    """What Theorems 2 (δ = 0.05) and 3 promise of each RUCB among the points of `regret_points`.

    Theorem 2 needs α > ½ and Theorem 3 α > 1; else there are no rows of it. A single matrix is that of the only
    problem, or of the one that has its name.
    """
    matrices = _matrices(points, bounds)
    rows = []
    for name, policy, t in points.select("problem", "policy", "t").rows():
        alpha = _alpha(policy) if name in matrices else None
        if alpha is not None and alpha > 1:
            rows.append((name, policy, 3, t, theory.expected_regret_bound(matrices[name], t, alpha)))
        if alpha is not None and alpha > 0.5:
            rows.append((name, policy, 2, t, theory.regret_bound(matrices[name], t, alpha, DELTA)))
    schema = {"problem": pl.String, "policy": pl.String, "theorem": pl.Int64, "t": pl.Int64, "bound": pl.Float64}
    label = pl.format("Theorem {}, {}", "theorem", "policy")
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(label=label)


def bounds_in_sight(points: pl.DataFrame, promised: pl.DataFrame) -> pl.DataFrame:
    """The rows of `bound_points` that are drawn: bounds less than a thousand times above every regret."""
    highest = TOO_HIGH * (points["regret_max"].drop_nulls().to_numpy().max(initial=0))
    low = pl.col("bound").max().over("problem", "label") <= highest
    return promised.filter(low, pl.col("t") > 1)  # ln 1 = 0


def _matrices(points: pl.DataFrame, bounds: Bounds) -> Mapping[str, PreferenceMatrix]:
    if isinstance(bounds, PreferenceMatrix):
        shown = unique(points, "problem")
        bounds = {only(points, "problem", bounds.name if len(shown) > 1 else shown[0])["problem"][0]: bounds}
    for name, arms in points.select("problem", "arms").unique().rows():
        if name in bounds and bounds[name].arms != arms:
            raise InvalidInput(f"the matrix given for {name} has {bounds[name].arms} arms, its results have {arms}")
    if bounds and all(_alpha(policy) is None for policy in unique(points, "policy")):
        raise InvalidInput("the theorems are about rucb, of which the results have no runs: leave out bounds")
    return bounds


def _alpha(policy: str) -> float | None:
    """RUCB's α; None for other policies."""
    name, given = specs.split(policy, "policy")
    return specs.fill(name, given, find_policy(name).params._asdict(), "")["alpha"] if name == "rucb" else None


def _notes(points: pl.DataFrame, promised: pl.DataFrame, drawn: pl.DataFrame) -> list[str]:
    """What the legend cannot say of the bounds: Theorem 2's δ, and why some are not drawn."""
    notes = [f"Theorem 2: δ = {DELTA:g}"] if 2 in drawn["theorem"] else []
    missing = promised.join(drawn, on=["problem", "label"], how="anti")
    for (theorem, policy), rows in missing.group_by("theorem", "policy", maintain_order=True):
        power = math.floor(math.log10(min(ends(rows["bound"])[0], 1e308)))
        at = f" at δ = {DELTA:g}" if theorem == 2 else ""
        notes.append(f"Theorem {theorem}'s bound on {policy}{at} lies above 1e{power}")
    without = [policy for policy in unique(points, "policy") if (_alpha(policy) or math.inf) <= 1]
    return [*notes, f"Theorem 3 has no bound on {', '.join(without)}: it needs α > 1"] if without else notes


def _key_of_regret(points: pl.DataFrame, several: bool, drawn: pl.DataFrame) -> charts.Key:
    key = key_of_policies(points)
    if several:
        key = key.with_entry(SPREAD, charts.GREY, charts.line_glyph(dash=DOTTED))
    for label, policy, theorem in drawn.select("label", "policy", "theorem").unique(maintain_order=True).rows():
        colour = key.colours[key.labels.index(policy)]
        key = key.with_entry(label, colour, charts.line_glyph(dash=DASHES[theorem]))
    return key


def _axis_of_regret(points: pl.DataFrame, drawn: pl.DataFrame) -> dict[str, Any]:
    least, largest = ends(pl.concat([*points[["regret_min", "regret", "regret_max"]], drawn["bound"]]))
    room = max(largest / least, 10) ** 0.03  # so that marks stay inside
    return charts.log_axis(REGRET, least / room, largest * room)


def accuracy(results: Results, *, problem: str | None = None, pool: str = "") -> Any:
    """The share of runs that recommend the winner against time; marks have Wilson's 95% intervals as bars.

    problem: the one to show; by default each has its panel.
    pool: what the problems' arms were drawn from, for the title.
    """
    results = as_results(results)
    points = only(accuracy_points(results), "problem", problem)
    axis = {"title": "share of runs naming the winner", "scale": alt.Scale(domain=[0, 1])}
    key = key_of_policies(points)

    def layers(here: pl.DataFrame, x: alt.X, y: Callable[[str], alt.Y]) -> list[Any]:
        found, policies = [], unique(here.filter("marked"), "policy")
        step = min(APART[0], APART[1] / max(len(policies) - 1, 1))
        for place, policy in enumerate(policies):
            aside = step * (place - (len(policies) - 1) / 2)  # else one bar would hide the other
            bars = alt.Chart(charts.values(here.filter("marked", policy=policy)))
            bars = bars.mark_rule(strokeWidth=1, xOffset=aside)
            found.append(bars.encode(x, y("accuracy_low:Q"), alt.Y2("accuracy_high"), key.colour("policy")))
        return [*found, *charts.lines(here, x, y("accuracy:Q"), key, "policy")]

    _, widest = ends(points["accuracy_high"] - points["accuracy_low"])
    note = "bars: 95% intervals" if points["marked"].all() else f"95% intervals are up to {widest:.2f} wide"
    said = f"Share of runs that recommend {_winner(results.notion)} against time. " + last(points, "accuracy", ".2f")
    return finished(points, panels(points, key, axis, layers), "Accuracy", [note], said, pool)


def accuracy_points(results: Results) -> pl.DataFrame:
    """The share of runs that recommend the winner, with Wilson's 95% interval, by problem, policy and time.

    Times count as in `regret_points`; next to a policy with several horizons the others count at these times only, if
    they have checkpoints there.
    """
    points = over_runs(results, ["accuracy", "accuracy_low", "accuracy_high"])
    lines = []
    for (name, _), line in points.group_by("problem", "policy", maintain_order=True):
        horizons = points.filter("fresh", problem=name)["t"]
        times = set(horizons.filter(horizons <= line["t"].max()))
        if times and times <= set(line["t"]):
            line = line.filter(pl.col("t").is_in(times)).with_columns(marked=True)
        lines.append(line)
    return pl.concat(lines)


def _winner(notion: str) -> str:
    """Whom a run must name, by the notion of regret (`Results.notion`)."""
    if notion in ("copeland", "borda"):
        return f"a {notion.capitalize()} winner"
    return "the problem's winner" if "," in notion else "the Condorcet winner"


def condorcet_probability(
    matrix: PreferenceMatrix, *, sizes: Iterable[int] | None = None, samples: int = 20_000
) -> Any:
    """The probability that a random subset of the arms has a Condorcet winner, and that it has a total order.

    sizes: of the subsets; by default all, or about 40 of them if there are more than 64 arms.
    samples: the random subsets of a size that stand for all, where counting the ordered ones is too much work.
    """
    matrix = as_matrix(matrix)
    points = condorcet_points(matrix, sizes=sizes, samples=samples)
    scale = alt.Scale(domain=ends(points["size"]))
    x = alt.X("size:Q", title="size K of the subset", axis=alt.Axis(tickMinStep=1), scale=scale)
    y = partial(alt.Y, title="probability", scale=alt.Scale(domain=[0, 1]))
    key = charts.key_of([CONDORCET, ORDERED], [CONDORCET, ORDERED], [charts.VERMILION, charts.BLUE])
    estimated = points.filter(~pl.col("exact"))
    band = alt.Chart(charts.values(estimated)).mark_area(color=charts.BLUE, opacity=0.2)
    band = band.encode(x, y("lower:Q"), alt.Y2("upper"))
    lines = charts.lines(points, x, y("probability:Q"), key, "assumption")
    chart = alt.layer(band, *lines, key.layer()).properties(width=charts.WIDTH, height=charts.HEIGHT)
    least = points.filter(assumption=CONDORCET).sort("probability", "size").row(0, named=True)
    below = [f"K of {matrix.arms} arms · least P_K: {least['probability']:.4f}, at K = {least['size']}"]
    if len(estimated):
        below.append(f"total order, K = {charts.span(estimated['size'])}: {samples:,} subsets each, shaded: 95%")
    said = "Probability, by size, that a random subset of the arms has a Condorcet winner or a total order. "
    return charts.titled(chart, f"Assumptions on random subsets of {matrix.name}", below, said + ". ".join(below))


def condorcet_points(
    matrix: PreferenceMatrix, *, sizes: Iterable[int] | None = None, samples: int = 20_000
) -> pl.DataFrame:
    """The probability that either assumption holds for a random subset of the arms, by its size.

    `lower` and `upper` are the ends of a 95% interval where the probability is estimated, else the probability itself.
    """
    matrix = as_matrix(matrix)
    if sizes is None:
        count = matrix.arms if matrix.arms <= EVERY_SIZE else SOME_SIZES
        sizes = np.linspace(1, matrix.arms, count).round().astype(int).tolist()
    rows = []
    for place, size in enumerate(chosen := sorted(set(sizes))):
        marked = place % math.ceil(len(chosen) / MARKS) == 0
        rows.append((size, marked, CONDORCET, matrix.condorcet_probability(size), 0.0, True))
        rows.append((size, marked, ORDERED, *matrix.total_order_probability(size, samples=samples)))
    if not rows:
        raise InvalidInput("sizes is empty: expected at least one size of subset")
    schema = ["size", "marked", "assumption", "probability", "standard_error", "exact"]
    error, p = Z95 * pl.col("standard_error"), pl.col("probability")
    points = pl.DataFrame(rows, schema=schema, orient="row")
    return points.with_columns(lower=(p - error).clip(0, 1), upper=(p + error).clip(0, 1))
