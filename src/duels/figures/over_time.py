"""Figures of results over time: cumulative regret, with the theorems' bounds, and accuracy.

Each problem has a panel. The titles say what was run.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import altair as alt
import polars as pl

from .. import theory
from ..errors import InvalidInput
from ..preference import PreferenceMatrix
from ..results import Results, as_results, ordered
from . import charts
from .charts import Layered, Options
from .selection import alpha_of, ends, only, unique

REGRET = "cumulative regret"
SPREAD, DOTTED = "best and worst run", (1.5, 2.5)
DELTA = 0.05  # of Theorem 2's bound
TOO_HIGH = 1e3  # a bound that is so many times above every regret is not drawn
DASHES = {3: (8, 3), 2: (8, 3, 2, 3)}
APART = 3, 16  # pixels between the bars of two policies, and at most between the first and the last
PANEL = (270, 220)  # width and height of each panel if there are several

Bounds = PreferenceMatrix | Mapping[str, PreferenceMatrix]
YOf = Callable[[str], alt.Y]  # the y axis for a column
LayersOf = Callable[[pl.DataFrame, alt.X, YOf], Layered]  # the layers for the points of one problem


def regret(
    results: Results, *, problem: str | None = None, bounds: Bounds | None = None, pool: str = ""
) -> alt.LayerChart | alt.ConcatChart:
    """Draw cumulative regret against time, both on logarithmic axes.

    Lines are means over runs; dotted lines are the best and the worst run.

    Args:
        results: The results, or their folder.
        problem: The problem to show; by default each has a panel.
        bounds: The matrix of the problem, or matrices by problem. Adds the bounds of Theorems 2 (δ = 0.05) and 3 on
            RUCB's regret.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.

    Raises:
        UnknownName: If the results have no such problem.
        InvalidInput: If bounds are asked for and the results have no runs of RUCB.

    Example:
        >>> results = duels.simulate("arxiv-6", "rucb", horizon=10_000, runs=10)
        >>> duels.figures.save(duels.figures.regret(results), "regret.png")
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

    def layers(here: pl.DataFrame, x: alt.X, y: YOf) -> Layered:
        runs = alt.Chart(charts.values(here)).mark_line(strokeWidth=1.2, strokeDash=DOTTED)
        found: Layered = [
            runs.encode(x, y(f"{end}:Q"), key.colour("policy")) for end in ("regret_min", "regret_max") if several
        ]
        for (theorem,), rows in drawn.filter(problem=here["problem"][0]).group_by("theorem", maintain_order=True):
            line = alt.Chart(charts.values(rows)).mark_line(strokeWidth=1.5, strokeDash=DASHES[theorem])
            found.append(line.encode(x, y("bound:Q"), key.colour("label")))
        return [*found, *charts.lines(here, x, y("regret:Q"), key, "policy")]

    notes = ["every regret is 0"] if nothing else []
    notes += [] if bounds is None else _notes(points, promised, drawn)
    axes = "on a logarithmic axis" if nothing else "both axes logarithmic"
    description = f"Mean cumulative regret against time, {axes}. " + last(points, "regret", ".4g")
    axis: Options = {"title": REGRET, "scale": alt.Scale(domain=[0, 1])} if nothing else _axis_of_regret(points, drawn)
    chart = panels(points, key, axis, layers)
    title = "Cumulative regret" if results.notion == "condorcet" else f"Cumulative regret ({results.notion})"
    return finished(points, chart, title, notes, description, pool)


def regret_points(results: Results) -> pl.DataFrame:
    """Compute the mean, least and largest cumulative regret over runs, by problem, policy and time.

    A policy that was run with several horizons counts only at its horizons, each time with the runs of that horizon
    (`fresh`). No policy then counts before the problem's smallest horizon. A regret of 0 is null, because it has no
    logarithm.
    """
    columns = ["regret", "regret_min", "regret_max"]
    return over_runs(results, columns).with_columns(pl.when(pl.col(column) > 0).then(column) for column in columns)


def bound_points(points: pl.DataFrame, bounds: Bounds) -> pl.DataFrame:
    """Compute the bounds of Theorems 2 (δ = 0.05) and 3 on each RUCB.

    Theorem 2 needs α > ½ and Theorem 3 needs α > 1; otherwise there are no rows for it.

    Args:
        points: The points of `regret_points`.
        bounds: Matrices by problem. A single matrix belongs to the only problem, or to the one with its name.

    Raises:
        InvalidInput: If a matrix has another number of arms, or there are no runs of RUCB.
    """
    matrices = _matrices(points, bounds)
    rows = []
    for name, policy, t in points.select("problem", "policy", "t").rows():
        alpha = alpha_of(policy) if name in matrices else None
        if alpha is not None and alpha > 1:
            rows.append((name, policy, 3, t, theory.expected_regret_bound(matrices[name], t, alpha)))
        if alpha is not None and alpha > 0.5:
            rows.append((name, policy, 2, t, theory.regret_bound(matrices[name], t, alpha, DELTA)))
    schema = {"problem": pl.String, "policy": pl.String, "theorem": pl.Int64, "t": pl.Int64, "bound": pl.Float64}
    label = pl.format("Theorem {}, {}", "theorem", "policy")
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(label=label)


def bounds_in_sight(points: pl.DataFrame, promised: pl.DataFrame) -> pl.DataFrame:
    """Keep the bounds of `bound_points` that are drawn: those less than a thousand times above every regret."""
    highest = TOO_HIGH * (points["regret_max"].drop_nulls().to_numpy().max(initial=0))
    low = pl.col("bound").max().over("problem", "label") <= highest
    return promised.filter(low, pl.col("t") > 1)  # ln 1 = 0


def _matrices(points: pl.DataFrame, bounds: Bounds) -> Mapping[str, PreferenceMatrix]:
    if isinstance(bounds, PreferenceMatrix):
        shown = unique(points, "problem")
        bounds = {only(points, "problem", bounds.name if len(shown) > 1 else shown[0])["problem"][0]: bounds}
    for name, arms in points.select("problem", "arms").unique(maintain_order=True).rows():
        if name in bounds and bounds[name].arms != arms:
            raise InvalidInput(f"the matrix given for {name} has {bounds[name].arms} arms, its results have {arms}")
    if bounds and all(alpha_of(policy) is None for policy in unique(points, "policy")):
        raise InvalidInput("the theorems are about rucb, of which the results have no runs: leave out bounds")
    return bounds


def _notes(points: pl.DataFrame, promised: pl.DataFrame, drawn: pl.DataFrame) -> list[str]:
    """Say what the legend cannot: the δ of Theorem 2, and why some bounds are not drawn."""
    notes = [f"Theorem 2: δ = {DELTA:g}"] if 2 in drawn["theorem"] else []
    missing = promised.join(drawn, on=["problem", "label"], how="anti")
    for (theorem, policy), rows in missing.group_by("theorem", "policy", maintain_order=True):
        power = math.floor(math.log10(min(ends(rows["bound"])[0], 1e308)))
        at = f" at δ = {DELTA:g}" if theorem == 2 else ""
        notes.append(f"Theorem {theorem}'s bound on {policy}{at} lies above 1e{power}")
    without = [policy for policy in unique(points, "policy") if (alpha_of(policy) or math.inf) <= 1]
    return [*notes, f"Theorem 3 has no bound on {', '.join(without)}: it needs α > 1"] if without else notes


def _key_of_regret(points: pl.DataFrame, several: bool, drawn: pl.DataFrame) -> charts.Key:
    key = key_of_policies(points)
    if several:
        key = key.with_entry(SPREAD, charts.GREY, charts.line_glyph(dash=DOTTED))
    for label, policy, theorem in drawn.select("label", "policy", "theorem").unique(maintain_order=True).rows():
        colour = key.colours[key.labels.index(policy)]
        key = key.with_entry(label, colour, charts.line_glyph(dash=DASHES[theorem]))
    return key


def _axis_of_regret(points: pl.DataFrame, drawn: pl.DataFrame) -> Options:
    least, largest = ends(pl.concat([*points[["regret_min", "regret", "regret_max"]], drawn["bound"]]))
    room = max(largest / least, 10) ** 0.03  # so that marks stay inside
    return charts.log_axis(REGRET, least / room, largest * room)


def accuracy(results: Results, *, problem: str | None = None, pool: str = "") -> alt.LayerChart | alt.ConcatChart:
    """Draw the share of runs that recommend the winner against time; bars are Wilson's 95% intervals.

    Args:
        results: The results, or their folder.
        problem: The problem to show; by default each has a panel.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.

    Raises:
        UnknownName: If the results have no such problem.
    """
    results = as_results(results)
    points = only(accuracy_points(results), "problem", problem)
    axis: Options = {"title": "share of runs naming the winner", "scale": alt.Scale(domain=[0, 1])}
    key = key_of_policies(points)

    def layers(here: pl.DataFrame, x: alt.X, y: YOf) -> Layered:
        found: Layered = []
        policies = unique(here.filter("marked"), "policy")
        step = min(APART[0], APART[1] / max(len(policies) - 1, 1))
        for place, policy in enumerate(policies):
            aside = step * (place - (len(policies) - 1) / 2)  # otherwise one bar would hide another
            bars = alt.Chart(charts.values(here.filter("marked", policy=policy)))
            bars = bars.mark_rule(strokeWidth=1, xOffset=aside)
            found.append(bars.encode(x, y("accuracy_low:Q"), alt.Y2("accuracy_high"), key.colour("policy")))
        return [*found, *charts.lines(here, x, y("accuracy:Q"), key, "policy")]

    _, widest = ends(points["accuracy_high"] - points["accuracy_low"])
    note = "bars: 95% intervals" if points["marked"].all() else f"95% intervals are up to {widest:.2f} wide"
    description = f"Share of runs that recommend {_winner(results.notion)} against time. " + last(
        points, "accuracy", ".2f"
    )
    return finished(points, panels(points, key, axis, layers), "Accuracy", [note], description, pool)


def accuracy_points(results: Results) -> pl.DataFrame:
    """Compute the share of runs that recommend the winner, with Wilson's 95% interval, by problem, policy and time.

    The times are those of `regret_points`. Beside a policy with several horizons, the others count only at these
    horizons if they have checkpoints there.
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
    """The arm that a run must recommend, by the notion of regret (`Results.notion`)."""
    if notion in ("copeland", "borda"):
        return f"a {notion.capitalize()} winner"
    return "the problem's winner" if "," in notion else "the Condorcet winner"


def over_runs(results: Results, columns: list[str]) -> pl.DataFrame:
    """Select columns of the summary at the times that count (see `regret_points`), in the order of the results."""
    results = as_results(results)
    frame = results.frame
    if not len(frame):
        raise InvalidInput("the results have no rows: there is nothing to draw")
    horizon, t, fresh = pl.col("horizon"), pl.col("t"), pl.col("fresh")
    start = pl.when(fresh.any().over("problem")).then(horizon.min().over("problem")).otherwise(1)
    return (
        results.summarise()
        .with_columns(fresh=horizon.n_unique().over("problem", "policy") > 1)
        .filter(t >= start, ~fresh | (t == horizon))
        .with_columns(marked=fresh | (pl.len().over("problem", "policy") == 1))
        .sort(ordered(frame, "problem"), ordered(frame, "policy"), "t")
        .select("problem", "arms", "policy", "horizon", "t", "runs", *columns, "fresh", "marked")
    )


def key_of_policies(points: pl.DataFrame) -> charts.Key:
    return charts.key_of(unique(points, "policy"), unique(points.filter("marked"), "policy"))


def panels(points: pl.DataFrame, key: charts.Key, axis: Options, layers: LayersOf) -> alt.LayerChart | alt.ConcatChart:
    """Draw a panel for each problem, side by side with one legend."""
    problems = points.partition_by("problem", maintain_order=True)
    width, height = (charts.WIDTH, charts.HEIGHT) if len(problems) == 1 else PANEL
    legend = key.layer(width * min(len(problems), charts.COLUMNS))
    found = {}
    for place, here in enumerate(problems):
        x = alt.X("t:Q", **charts.log_axis("time t", *ends(here["t"])))
        shown = axis if place % charts.COLUMNS == 0 else {**axis, "title": None}
        panel = charts.layered(*layers(here, x, partial(alt.Y, **shown)), legend, width=width, height=height)
        found[" · ".join([*named(here), f"K = {here['arms'][0]}"])] = panel
    return charts.side_by_side(found)


def named(points: pl.DataFrame) -> list[str]:
    """The problem's name, unless it only repeats the number of arms, as `16 arms` does."""
    name, arms = points.select("problem", "arms").row(0)
    return [] if name == f"{arms} arms" else [name]


def finished(
    points: pl.DataFrame,
    chart: alt.LayerChart | alt.ConcatChart,
    title: str,
    notes: list[str],
    description: str,
    pool: str,
) -> alt.LayerChart | alt.ConcatChart:
    """Add a title that says what was run, and from which pool the arms were drawn."""
    horizons = charts.span(points["horizon"])
    below = f"{charts.count(charts.span(points['runs']), 'run')} · horizon{'s' if ' ' in horizons else ''} {horizons}"
    shown = "arms" if pool else ""
    if points["problem"].n_unique() == 1:
        shown = points["problem"][0]
        below = f"K = {points['arms'][0]} · {below}" if named(points) else below
    title += f" on {shown}" * bool(shown) + f" of {pool}" * bool(pool)
    return charts.titled(chart, title, [below, *notes], f"{title}: {below}. {description}")


def last(points: pl.DataFrame, column: str, style: str) -> str:
    """Describe the last value of each line in words."""
    rows = points.drop_nulls(column).group_by("problem", "policy", maintain_order=True).last().to_dicts()
    values = [f"{row['policy']} on {row['problem']} {row[column]:{style}}" for row in rows]
    return f"At the end: {', '.join(values)}."
