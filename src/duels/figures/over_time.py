"""Figures of results over time: cumulative regret, with the theorems' bounds, and accuracy.

Each problem has a panel. The titles say what was run.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Unpack

import altair as alt
import polars as pl

from .. import theory
from ..errors import InvalidInput
from ..preference import PreferenceMatrix
from ..results import Results, as_results, ordered
from . import charts, legends
from .charts import GREY, Layered, Options
from .look import BANDS, Look, Style, style_of
from .selection import alpha_of, ends, only, power, unique

REGRET = "cumulative regret"
DOTTED = (1.5, 2.5)
SPREADS = {
    "minmax": ("regret_min", "regret_max"),
    "ci": ("regret_low", "regret_high"),
    "quantiles": ("regret_q25", "regret_q75"),
}
EDGES = [edge for edges in SPREADS.values() for edge in edges]
AT_HORIZON, ALONG = "hollow: runs with just this horizon", "filled: to tell lines apart"
DELTA = 0.05  # of Theorem 2's bound
TOO_HIGH = 1e3  # a bound that is so many times above every regret is not drawn
DASHES = {3: (8, 3), 2: (8, 3, 2, 3)}
APART = 3, 16  # pixels between the bars of two policies, and at most between the first and the last
NEXT_TO = 12, 100  # the same in a panel without lines
PANEL = (270, 220)  # width and height of each panel if there are several

Bounds = PreferenceMatrix | Mapping[str, PreferenceMatrix]
YOf = Callable[[str], alt.Y]  # the y axis for a column
LayersOf = Callable[[pl.DataFrame, alt.X, YOf], Layered]  # the layers for the points of one problem
AxisOf = Callable[[pl.DataFrame], Options]  # the y axis of a problem, if each has its own
TimesOf = Callable[[pl.DataFrame, bool], Options]  # the x axis of a problem; with a title if True
Chart = alt.LayerChart | alt.ConcatChart


def regret(
    results: Results,
    *,
    problem: str | None = None,
    bounds: Bounds | None = None,
    pool: str = "",
    **look: Unpack[Look],
) -> Chart:
    """Draw cumulative regret against time, both on logarithmic axes.

    Lines are means over runs; dotted lines are the best and the worst run, or a `band` is shaded.

    Args:
        results: The results, or their folder.
        problem: The problem to show; by default each has a panel.
        bounds: The matrix of the problem, or matrices by problem. Adds the bounds of Theorems 2 (δ = 0.05) and 3 on
            RUCB's regret.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.
        **look: How the figure looks: see `Look`.

    Raises:
        UnknownName: If the results have no such problem.
        InvalidInput: If bounds are asked for and the results have no runs of RUCB, or an option is wrong.

    Example:
        >>> results = duels.simulate("arxiv-6", "rucb", horizon=10_000, runs=10)
        >>> duels.figures.save(duels.figures.regret(results, width="column"), "regret.pdf")
    """
    style = style_of("regret", look, bands=list(SPREADS), band="minmax", direct=True)
    results = as_results(results)
    edges = SPREADS[style.band] if style.band else ()
    points = only(regret_points(results), "problem", problem)
    points = points.drop([edge for edge in EDGES if edge not in edges and edge not in SPREADS["minmax"]])
    nothing = points["regret"].is_null().all()
    if nothing:
        points = points.with_columns(pl.col("regret", "regret_min", "regret_max", *edges).fill_null(0))
    for name in bounds if isinstance(bounds, Mapping) else ():
        only(results.frame, "problem", name)  # refuses a name that is not there
    promised = bound_points(points, {} if bounds is None else bounds)
    drawn = bounds_in_sight(points, promised)
    several = bool(((points["runs"] > 1) & (points["fresh"] | ~points["marked"])).any())  # runs, and times to join
    if look.get("band") and not several:
        raise InvalidInput(f"band is {style.band!r}, but no policy has several runs over time: leave it out")
    band = style.band if several else None
    notes = ["every regret is 0"] if nothing else []
    notes += [] if bounds is None else _notes(points, promised, drawn, style)
    key = _key_of_regret(points, band, drawn, style)
    style = style.showing(key.labels, notes, painted=unique(points, "policy"))
    axis = NOTHING if nothing else _axis_of_regret(points, [*edges] if band else [], drawn)

    def layers(here: pl.DataFrame, x: alt.X, y: YOf) -> Layered:
        found = _spread(here, x, y, key, band, axis)
        for (theorem,), rows in drawn.filter(problem=here["problem"][0]).group_by("theorem", maintain_order=True):
            line = alt.Chart(charts.values(rows)).mark_line(strokeWidth=1.5, strokeDash=DASHES[theorem])
            found.append(line.encode(x, y("bound:Q"), key.colour("label")))
        return [*found, *legends.lines(here, x, y("regret:Q"), key, "policy", style)]

    axes = "on a logarithmic axis" if nothing else "both axes logarithmic"
    description = f"Mean cumulative regret against time, {axes}. " + last(points, "regret", ".4g", style)
    title = "Cumulative regret" if results.notion == "condorcet" else f"Cumulative regret ({results.notion})"
    finish = partial(finished, points, title=title, notes=notes, description=description, pool=pool, style=style)
    return panels(points, "regret", key, axis, layers, finish, style)


NOTHING: Options = {"title": REGRET, "scale": alt.Scale(domain=[0, 1])}  # the axis if every regret is 0


def _spread(here: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key, band: str | None, axis: Options) -> Layered:
    """Draw the best and the worst run as dotted lines, or another band as an area."""
    if band is None:
        return []
    low, high = SPREADS[band]
    if band == "minmax":
        runs = alt.Chart(charts.values(here)).mark_line(strokeWidth=1.2, strokeDash=DOTTED)
        return [runs.encode(x, y(f"{edge}:Q"), key.colour("policy")) for edge in (low, high)]
    floor = axis["scale"].domain[0]  # an interval that reaches down to 0 has no end on a logarithmic axis
    rows = here.drop_nulls(["regret", high]).with_columns(pl.col(low).fill_null(floor))
    return [legends.area(rows, x, y(f"{low}:Q"), high, key, "policy")]


def regret_points(results: Results) -> pl.DataFrame:
    """Compute the mean cumulative regret over runs and its spread, by problem, policy and time.

    The spread is the best and the worst run (`regret_min`, `regret_max`), the 95% interval of the mean (`regret_low`,
    `regret_high`) and the quartiles (`regret_q25`, `regret_q75`).

    A policy that was run with several horizons counts only at its horizons, each time with the runs of that horizon
    (`fresh`). No policy then counts before the problem's smallest horizon. A regret of 0 is null, because it has no
    logarithm.
    """
    columns = ["regret", *EDGES]
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


def _notes(points: pl.DataFrame, promised: pl.DataFrame, drawn: pl.DataFrame, style: Style) -> list[str]:
    """Say what the legend cannot: the δ of Theorem 2, and why some bounds are not drawn."""
    notes = [f"Theorem 2: δ = {DELTA:g}"] if 2 in drawn["theorem"] else []
    missing = promised.join(drawn, on=["problem", "label"], how="anti")
    for (theorem, policy), rows in missing.group_by("theorem", "policy", maintain_order=True):
        least = power(math.floor(math.log10(min(ends(rows["bound"])[0], 1e308))))
        at = f" at δ = {DELTA:g}" if theorem == 2 else ""
        notes.append(f"Theorem {theorem}'s bound on {style.policy(str(policy))}{at} lies above {least}")
    without = [style.policy(one) for one in unique(points, "policy") if (alpha_of(one) or math.inf) <= 1]
    return [*notes, f"Theorem 3 has no bound on {', '.join(without)}: it needs α > 1"] if without else notes


def _key_of_regret(points: pl.DataFrame, band: str | None, drawn: pl.DataFrame, style: Style) -> legends.Key:
    key = key_of_policies(points, style)
    if band == "minmax":
        key = key.with_entry(BANDS[band], GREY, legends.line_glyph(dash=DOTTED))
    elif band is not None:
        key = legends.with_band(key, BANDS[band])
    for label, policy, theorem in drawn.select("label", "policy", "theorem").unique(maintain_order=True).rows():
        colour = key.colours[key.labels.index(policy)]
        text = f"Theorem {theorem}, {style.policy(policy)}"
        key = key.with_entry(label, colour, legends.line_glyph(dash=DASHES[theorem]), text)
    return key


def _axis_of_regret(points: pl.DataFrame, edges: list[str], drawn: pl.DataFrame) -> Options:
    least, largest = ends(pl.concat([*points[["regret", *edges]], drawn["bound"]]))
    room = max(largest / least, 10) ** 0.03  # so that marks stay inside
    return charts.log_axis(REGRET, least / room, largest * room)


def accuracy(results: Results, *, problem: str | None = None, pool: str = "", **look: Unpack[Look]) -> Chart:
    """Draw the share of runs that recommend the winner against time, as steps with Wilson's 95% interval as a band.

    Args:
        results: The results, or their folder.
        problem: The problem to show; by default each has a panel.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.
        **look: How the figure looks: see `Look`. The `band` is `"ci"` or None.

    Raises:
        UnknownName: If the results have no such problem.
        InvalidInput: If an option is wrong.
    """
    style = style_of("accuracy", look, bands=["ci"], band="ci", direct=True)
    results = as_results(results)
    if results.frame["correct"].null_count():
        raise InvalidInput("accuracy is the share of runs that find the best arm, and continuous spaces have no arms")
    points = only(accuracy_points(results), "problem", problem)
    axis: Options = {"title": "share naming the winner", "scale": alt.Scale(domain=[0, 1])}
    key = key_of_policies(points, style)
    alone = pl.len().over("problem", "policy") == 1
    steps = points.filter(~alone)
    if len(steps) and style.band:
        key = legends.with_band(key, BANDS["ci"])
    style = style.showing(key.labels, painted=unique(points, "policy"))

    def layers(here: pl.DataFrame, x: alt.X, y: YOf) -> Layered:
        lines, single = here.filter(~alone), here.filter(alone)
        found: Layered = []
        if style.band:
            low = y("accuracy_low:Q")
            found.append(legends.area(lines, x, low, "accuracy_high", key, "policy", interpolate="step-after"))
        found += legends.lines(lines, x, y("accuracy:Q"), key, "policy", style, "step-after")
        return [*found, *_bars(single, x, y, key, style, not len(lines) and single["t"].n_unique() == 1)]

    notes = ["bars: 95% intervals"] if style.band and not len(steps) else []
    winner = _winner(results.notion)
    description = f"Share of runs that recommend {winner} against time. " + last(points, "accuracy", ".2f", style)
    finish = partial(finished, points, title="Accuracy", notes=notes, description=description, pool=pool, style=style)
    return panels(points, "accuracy", key, axis, layers, finish, style)


def _bars(rows: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key, style: Style, alone: bool) -> Layered:
    """Draw policies that have one time as marks with bars, next to each other so that none hides another."""
    found: Layered = []
    near, far = NEXT_TO if alone else APART
    step = min(near, far / max(len(rows) - 1, 1))
    for place in range(len(rows)):
        row, aside = rows[place], step * (place - (len(rows) - 1) / 2)
        if style.band:
            bar = alt.Chart(charts.values(row)).mark_rule(strokeWidth=1, xOffset=aside)
            found.append(bar.encode(x, y("accuracy_low:Q"), alt.Y2("accuracy_high"), key.colour("policy")))
        for layer in legends.lines(row, x, y("accuracy:Q"), key, "policy", style):
            layer.mark.xOffset = aside
            found.append(layer)
    return found


def accuracy_points(results: Results) -> pl.DataFrame:
    """Compute the share of runs that recommend the winner, with Wilson's 95% interval, by problem, policy and time.

    The times are those of `regret_points`: all checkpoints, and of a policy with several horizons these horizons.
    """
    return over_runs(results, ["accuracy", "accuracy_low", "accuracy_high"])


def _winner(notion: str) -> str:
    """The arm that a run must recommend, by the notion of regret (`Results.notion`)."""
    if notion in ("copeland", "borda"):
        return f"a {notion.capitalize()} winner"
    return "the problem's winner" if "," in notion else "the Condorcet winner"


def over_runs(results: Results, columns: list[str]) -> pl.DataFrame:
    """Select columns of the summary at the times that count (see `regret_points`), in the order of the results."""
    results = as_results(results)
    return at_times(results.frame, results.summarise(), columns)


def at_times(frame: pl.DataFrame, summary: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Select columns of a summary over runs of these rows, as `over_runs` does."""
    if not len(frame):
        raise InvalidInput("the results have no rows: there is nothing to draw")
    horizon, t, fresh = pl.col("horizon"), pl.col("t"), pl.col("fresh")
    start = pl.when(fresh.any().over("problem")).then(horizon.min().over("problem")).otherwise(1)
    return (
        summary.with_columns(fresh=horizon.n_unique().over("problem", "policy") > 1)
        .filter(t >= start, ~fresh | (t == horizon))
        .with_columns(marked=fresh | (pl.len().over("problem", "policy") == 1))
        .sort(ordered(frame, "problem"), ordered(frame, "policy"), "t")
        .select("problem", "arms", "policy", "horizon", "t", "runs", *columns, "fresh", "marked")
    )


def key_of_policies(points: pl.DataFrame, style: Style) -> legends.Key:
    """Make the legend of the policies, and of their marks if some are hollow."""
    names, marked = unique(points, "policy"), unique(points.filter("marked"), "policy")
    key = legends.key_of(names, marked, style=style, texts=[style.policy(name) for name in names])
    if points["fresh"].any():
        key = legends.explain_marks(key, AT_HORIZON, ALONG if len(marked) < len(names) else "")
    return key


def panels(
    points: pl.DataFrame,
    column: str,
    key: legends.Key,
    axis: Options | AxisOf,
    layers: LayersOf,
    finish: Callable[[Chart], Chart],
    style: Style,
    times: TimesOf | None = None,
) -> Chart:
    """Draw a panel for each problem, side by side with one legend, and finish the figure."""
    problems = points.partition_by("problem", maintain_order=True)
    usual = (charts.WIDTH, charts.HEIGHT) if len(problems) == 1 else PANEL
    columns = style.columns(len(problems), charts.COLUMNS)

    def draw(width: float) -> Chart:
        height = charts.height_of(width, usual, style, math.ceil(len(problems) / columns))
        legend = key.layer(width * columns, style)
        found = {}
        for place, here in enumerate(problems):
            x = alt.X("t:Q", **(times or time_axis)(here, place >= len(problems) - columns))
            own = axis(here) if callable(axis) else axis
            shown = own if place % columns == 0 else {**own, "title": None}
            drawn = layers(here, x, partial(alt.Y, **shown))
            drawn += legends.names_at_ends(here, column, "policy", key, own, (width, height), style)
            panel = charts.layered(*drawn, legend, width=width, height=height)
            found[" · ".join([*named(here), *size(here)])] = panel
        return finish(charts.side_by_side(found, style))

    return charts.fit(draw, usual[0], style, columns)


def time_axis(here: pl.DataFrame, is_lowest: bool) -> Options:
    """The options of a panel's x axis; only the lowest one of each column has a title."""
    first, last = ends(here["t"])
    axis = charts.log_axis("time t" if is_lowest else "", first, last)
    if first == last:  # marks stand next to each other there
        axis["axis"].values = [first]
    return axis


def named(points: pl.DataFrame) -> list[str]:
    """The problem's name, unless it only repeats the number of arms, as `16 arms` does."""
    name, arms = points.select("problem", "arms").row(0)
    return [] if name == f"{arms} arms" else [name]


def size(points: pl.DataFrame) -> list[str]:
    """The number of arms, if there are arms: continuous spaces have none."""
    arms = points["arms"][0]
    return [] if arms is None else [f"K = {arms}"]


def finished(
    points: pl.DataFrame, chart: Chart, title: str, notes: list[str], description: str, pool: str, style: Style
) -> Chart:
    """Add a title that says what was run, and from which pool the arms were drawn."""
    horizons = charts.span(points["horizon"])
    below = f"{charts.count(charts.span(points['runs']), 'run')} · horizon{'s' if ' ' in horizons else ''} {horizons}"
    shown = "arms" if pool else ""
    if points["problem"].n_unique() == 1:
        shown = points["problem"][0]
        below = " · ".join([*size(points), below]) if named(points) else below
    title += f" on {shown}" * bool(shown) + f" of {pool}" * bool(pool)
    return charts.titled(chart, title, [below, *notes], f"{title}: {below}. {description}", style)


def last(points: pl.DataFrame, column: str, digits: str, style: Style) -> str:
    """Describe the last value of each line in words."""
    rows = points.drop_nulls(column).group_by("problem", "policy", maintain_order=True).last().to_dicts()
    values = [f"{style.policy(row['policy'])} on {row['problem']} {row[column]:{digits}}" for row in rows]
    return f"At the end: {', '.join(values)}."
