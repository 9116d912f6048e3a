"""Figures of results over time: cumulative regret, with the theorems' bounds, and accuracy; and both in one figure.

Each problem has a panel. The titles say what was run, and the axes which regret is drawn.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Unpack

import altair as alt
import polars as pl

from .. import theory
from ..errors import InvalidInput
from ..preference import PreferenceMatrix
from ..results import Results, as_results, order_rows
from . import charts, legends
from .charts import GRAY, Layered, Options
from .look import BANDS, AxisLook, Look, Style, style_of
from .selection import alpha_of, ends, only, power, refuse_other_notions, unique

REGRET, ACCURACY, TIME = "cumulative regret", "share naming the winner", "time t"
PROPER = {name: name.capitalize() for name in ("condorcet", "copeland", "borda")}  # notions of regret named for people
DOTTED = (1.5, 2.5)
SPREADS = {
    "minmax": ("regret_min", "regret_max"),
    "ci": ("regret_low", "regret_high"),
    "quantiles": ("regret_q25", "regret_q75"),
}
EDGES = [edge for edges in SPREADS.values() for edge in edges]
AT_HORIZON = "separate runs for each horizon"
DELTA = 0.05  # of Theorem 2's bound
TOO_HIGH = 1e3  # a bound that is so many times above every regret is not drawn
DASHES = {3: (8, 3), 2: (8, 3, 2, 3)}
APART = 3, 16  # pixels between the bars of two policies, and at most between the first and the last
NEXT_TO = 12, 100  # the same in a panel without lines
PANEL = (270, 220)  # width and height of each panel if there are several

Bounds = PreferenceMatrix | Mapping[str, PreferenceMatrix]
YOf = Callable[[str], alt.Y]  # the y axis for a column
LayersOf = Callable[[pl.DataFrame, alt.X, YOf, legends.Key], Layered]  # the layers for the points of one problem
AxisOf = Callable[[pl.DataFrame], Options]  # the y axis of a problem
TimesOf = Callable[[pl.DataFrame, bool, Style], Options]  # the x axis of a problem; with a title if True
Chart = alt.LayerChart | alt.ConcatChart


class Row(NamedTuple):
    """A quantity over time, which is drawn in a panel for each problem, side by side.

    Attributes:
        points: A row per problem, policy and time, with `column`.
        column: The quantity.
        key: The entries of the legend.
        axis: The options of the y axis, by a problem's points.
        layers: Draws the points of a problem, with the colors of the figure's legend.
        style: The figure's style.
        names: What `labels` may be about, besides the entries of the legend.
        title: The title of a figure of just this quantity.
        notes: Further lines below the title.
        description: What is drawn, for screen readers.
    """

    points: pl.DataFrame
    column: str
    key: legends.Key
    axis: AxisOf
    layers: LayersOf
    style: Style
    names: list[str]
    title: str
    notes: list[str]
    description: str


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
        InvalidInput: If bounds are asked for and the results have no runs of RUCB or another notion of regret, or an
            option is wrong.

    Example:
        >>> results = duels.simulate("arxiv-6", "rucb", horizon=10_000, runs=10)
        >>> duels.figures.save(duels.figures.regret(results, width="column"), "regret.pdf")
    """
    style = style_of("regret", look, bands=list(SPREADS), band="minmax", direct=True, axes="xy", scales="xy")
    row = _row_of_regret(as_results(results), problem, bounds, style, look.get("band") is not None)
    return panels([row], pool)


def _row_of_regret(
    results: Results, problem: str | None, bounds: Bounds | None, style: Style, must_band: bool = False
) -> Row:
    """Prepare the panels of regret; with `must_band`, a band that cannot be shown is an error."""
    style = replace(style, name_of=results.name_of)
    edges = SPREADS[style.band] if style.band else ()
    points = only(regret_points(results), "problem", problem)
    points = points.drop([edge for edge in EDGES if edge not in edges and edge not in SPREADS["minmax"]])
    nothing = points["regret"].is_null().all()
    if nothing or style.y.scale == "linear":
        points = points.with_columns(pl.col("regret", "regret_min", "regret_max", *edges).fill_null(0))
    if bounds is not None:
        refuse_other_notions(results, problem)
    for name in bounds if isinstance(bounds, Mapping) else ():
        only(results.frame, "problem", name)  # refuses a name that is not there
    promised = bound_points(points, {} if bounds is None else bounds)
    drawn = bounds_in_sight(points, promised)
    several = bool(((points["runs"] > 1) & (points["fresh"] | ~points["marked"])).any())  # runs, and times to join
    if must_band and not several:
        raise InvalidInput(f"band is {style.band!r}, but no policy has several runs over time: leave it out")
    band = style.band if several else None
    notes = ["every regret is 0"] if nothing else []
    notes += [] if bounds is None else _notes(points, promised, drawn, style)
    key = _key_of_regret(points, band, drawn, style)
    notions = {name: results.notions_of(name) for name in unique(points, "problem")}
    titles = {name: with_notion(REGRET, found) for name, found in notions.items()}
    seen = style.around(points, "t")
    least, largest = (0.0, 1.0) if nothing else _ends_of_regret(seen, [*edges] if band else [], drawn)

    def axis(here: pl.DataFrame) -> Options:
        usual = "linear" if nothing else "log"
        return charts.axis_of("y", titles[here["problem"][0]], least, largest, style, usual)

    def layers(here: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key) -> Layered:
        found = _spread(here, x, y, key, band, axis(here), style)
        for (theorem,), rows in drawn.filter(problem=here["problem"][0]).group_by("theorem", maintain_order=True):
            line = alt.Chart(charts.values(rows)).mark_line(
                strokeWidth=1.5, strokeDash=DASHES[theorem], **clip_options(style)
            )
            found.append(line.encode(x, y("bound:Q"), key.color("label")))
        return [*found, *legends.lines(here, x, y("regret:Q"), key, "policy", style)]

    x, y = (one.scale or "log" for one in (style.x, style.y))
    axes = f"on a {'linear' if nothing else SCALES[y]} axis" if x != y or nothing else f"both axes {SCALES[x]}"
    description = f"Mean cumulative regret against time, {axes}. " + last(points, "regret", ".4g", style)
    alike = len({*map(tuple, notions.values())}) == 1
    title = with_notion("Cumulative regret", next(iter(notions.values()))) if alike else "Cumulative regret"
    names = [*titles, *titles.values(), TIME]
    return Row(points, "regret", key, axis, layers, style, names, title, notes, description)


SCALES = {"log": "logarithmic", "linear": "linear"}


def with_notion(text: str, notions: Sequence[str]) -> str:
    """Name the notion of regret behind a text: `cumulative regret (Copeland)`; nothing if it is not known."""
    return f"{text} ({', '.join(PROPER.get(notion, notion) for notion in notions)})" if notions else text


def clip_options(style: Style) -> Options:
    """The options of a mark that ends at the edges of the panel, if ranges of axes were chosen."""
    return {"clip": True} if style.is_cut else {}


def _spread(
    here: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key, band: str | None, axis: Options, style: Style
) -> Layered:
    """Draw the best and the worst run as dotted lines, or another band as an area."""
    if band is None:
        return []
    low, high = SPREADS[band]
    if band == "minmax":
        runs = alt.Chart(charts.values(here)).mark_line(strokeWidth=1.2, strokeDash=DOTTED, **clip_options(style))
        return [runs.encode(x, y(f"{edge}:Q"), key.color("policy")) for edge in (low, high)]
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
        key = key.with_entry(BANDS[band], GRAY, legends.line_glyph(dash=DOTTED))
    elif band is not None:
        key = legends.with_band(key, BANDS[band])
    for label, policy, theorem in drawn.select("label", "policy", "theorem").unique(maintain_order=True).rows():
        color = key.colors[key.labels.index(policy)]
        text = f"Theorem {theorem}, {style.policy(policy)}"
        key = key.with_entry(label, color, legends.line_glyph(dash=DASHES[theorem]), text)
    return key


def _ends_of_regret(points: pl.DataFrame, edges: list[str], drawn: pl.DataFrame) -> tuple[float, float]:
    """The least and the largest number on the axis, with some room so that marks stay inside."""
    numbers = pl.concat([*points[["regret", *edges]], drawn["bound"]])
    least, largest = ends(numbers.filter(numbers > 0))
    room = max(largest / least, 10) ** 0.03
    return least / room, largest * room


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
    style = style_of("accuracy", look, bands=["ci"], band="ci", direct=True, axes="xy", scales="x")
    return panels([_row_of_accuracy(as_results(results), problem, style)], pool)


def _row_of_accuracy(results: Results, problem: str | None, style: Style) -> Row:
    if results.frame["correct"].null_count():
        raise InvalidInput("accuracy is the share of runs that find the best arm, and continuous spaces have no arms")
    style = replace(style, name_of=results.name_of)
    points = only(accuracy_points(results), "problem", problem)
    key = key_of_policies(points, style)
    alone = pl.len().over("problem", "policy") == 1
    steps = points.filter(~alone)
    if len(steps) and style.band:
        key = legends.with_band(key, BANDS["ci"])
    problems = unique(points, "problem")

    def axis(_: pl.DataFrame) -> Options:
        return {"title": style.label(ACCURACY), "scale": alt.Scale(domain=style.y.range or (0, 1))}

    def layers(here: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key) -> Layered:
        lines, single = here.filter(~alone), style.inside(here.filter(alone), "t", "accuracy")
        found: Layered = []
        if style.band:
            low = y("accuracy_low:Q")
            found.append(legends.area(lines, x, low, "accuracy_high", key, "policy", interpolate="step-after"))
        found += legends.lines(lines, x, y("accuracy:Q"), key, "policy", style, "step-after")
        return [*found, *_bars(single, x, y, key, style, not len(lines) and single["t"].n_unique() == 1)]

    notes = ["bars: 95% intervals"] if style.band and not len(steps) else []
    winner = _winner({notion for name in problems for notion in results.notions_of(name)})
    description = f"Share of runs that recommend {winner} against time. " + last(points, "accuracy", ".2f", style)
    names = [*problems, ACCURACY, TIME]
    return Row(points, "accuracy", key, axis, layers, style, names, "Accuracy", notes, description)


def regret_and_accuracy(
    results: Results, *, problem: str | None = None, pool: str = "", **look: Unpack[Look]
) -> alt.ConcatChart:
    """Draw cumulative regret and, below it, accuracy, with a column for each problem: the paper's Figure 1.

    Args:
        results: The results, or their folder.
        problem: The problem to show; by default each has a column.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.
        **look: How the figure looks: see `Look`. The `band` is that of regret; accuracy has its 95% interval, or none
            if the band is None. `y_range` and `y_scale` are those of regret.

    Raises:
        UnknownName: If the results have no such problem.
        InvalidInput: If an option is wrong.
    """
    style = style_of(
        "regret_and_accuracy", look, bands=list(SPREADS), band="minmax", direct=True, axes="xy", scales="xy"
    )
    results = as_results(results)
    below = replace(style, band=style.band and "ci", y=AxisLook())
    rows = [
        _row_of_regret(results, problem, None, style, look.get("band") is not None),
        _row_of_accuracy(results, problem, below),
    ]
    chart = panels(rows, pool)
    assert isinstance(chart, alt.ConcatChart)
    return chart


def _bars(rows: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key, style: Style, alone: bool) -> Layered:
    """Draw policies that have one time as marks with bars, next to each other so that none hides another."""
    found: Layered = []
    near, far = NEXT_TO if alone else APART
    step = min(near, far / max(len(rows) - 1, 1))
    for place in range(len(rows)):
        row, aside = rows[place], step * (place - (len(rows) - 1) / 2)
        if style.band:
            bar = alt.Chart(charts.values(row)).mark_rule(strokeWidth=1, xOffset=aside)
            found.append(bar.encode(x, y("accuracy_low:Q"), alt.Y2("accuracy_high"), key.color("policy")))
        for layer in legends.lines(row, x, y("accuracy:Q"), key, "policy", style):
            layer.mark.xOffset = aside
            found.append(layer)
    return found


def accuracy_points(results: Results) -> pl.DataFrame:
    """Compute the share of runs that recommend the winner, with Wilson's 95% interval, by problem, policy and time.

    The times are those of `regret_points`: all checkpoints, and of a policy with several horizons these horizons.
    """
    return over_runs(results, ["accuracy", "accuracy_low", "accuracy_high"])


def _winner(notions: set[str]) -> str:
    """The arm that a run must recommend, by the notions of regret."""
    if notions in ({"copeland"}, {"borda"}):
        return f"a {PROPER[min(notions)]} winner"
    return "the problem's winner" if len(notions) > 1 else "the Condorcet winner"


def over_runs(results: Results, columns: list[str]) -> pl.DataFrame:
    """Select columns of the summary at the times that count (see `regret_points`), in the order of the results."""
    results = as_results(results)
    return at_times(results.frame, results.summarize(), columns)


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
        .sort(order_rows(frame, "problem"), order_rows(frame, "policy"), "t")
        .select("problem", "arms", "policy", "horizon", "t", "runs", *columns, "fresh", "marked")
    )


def key_of_policies(points: pl.DataFrame, style: Style) -> legends.Key:
    """Make the legend of the policies, and of their marks if some are hollow."""
    names, marked = unique(points, "policy"), unique(points.filter("marked"), "policy")
    key = legends.key_of(names, marked, style=style, texts=[style.policy(name) for name in names])
    if points["fresh"].any():
        key = legends.with_marks(key, AT_HORIZON)
    return key


def panels(rows: Sequence[Row], pool: str, times: TimesOf | None = None) -> Chart:
    """Draw a panel for each problem and quantity, with one legend, and finish the figure.

    Args:
        rows: The quantities, one below another.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.
        times: The x axis; by default that of `time_axis`.
    """
    points, key = rows[0].points, merge_legends([row.key for row in rows])
    known = [*key.labels, *(name for row in rows for name in row.names)]
    notes = [note for row in rows for note in row.notes]
    style = rows[0].style.for_names(known, notes, painted=unique(points, "policy"))
    problems = unique(points, "problem")
    usual = (charts.WIDTH, charts.HEIGHT) if len(problems) == 1 else PANEL
    columns = columns_of(len(problems), len(rows), style)
    if not len(style.inside(points, "t", rows[0].column)):
        first, end = ends(points["t"])
        raise InvalidInput(f"nothing is inside x_range and y_range: the times are {first:,} to {end:,}")

    def draw(width: float) -> Chart:
        height = charts.height_of(width, usual, style, len(rows) * math.ceil(len(problems) / columns))
        legend = key.layer(width * columns, style)
        found = []
        for level, row, place in order_of(rows, len(problems), columns):
            here = row.points.filter(problem=problems[place])
            is_lowest = level == len(rows) - 1 and place >= len(problems) - columns
            x = alt.X("t:Q", **(times or time_axis)(here, is_lowest, style))
            own = row.axis(here)
            lines = style.wrap(own["title"], style.large, height)
            own |= {"title": lines if len(lines) > 1 else own["title"]}
            left = row.axis(row.points.filter(problem=problems[place - place % columns]))["title"]
            alike = place % columns and left == row.axis(here)["title"]
            drawn = row.layers(here, x, partial(alt.Y, **(own | {"title": None} if alike else own)), key)
            drawn += legends.names_at_ends(here, row.column, "policy", key, own, (width, height), row.style)
            panel = charts.layer_charts(*drawn, legend, width=width, height=height)
            found.append((format_heading(here, style) if level == 0 else "", panel))
        return finish_chart(rows, charts.side_by_side(found, style, columns), notes, pool, style)

    return charts.fit(draw, usual[0], style, columns)


def merge_legends(keys: Sequence[legends.Key]) -> legends.Key:
    """One legend with the entries of several."""
    key = keys[0]
    for other in keys[1:]:
        for label, color, glyph, text in zip(other.labels, other.colors, other.glyphs, other.texts or other.labels):
            key = key if label in key.labels else key.with_entry(label, color, glyph, text)
    return key


def columns_of(problems: int, rows: int, style: Style) -> int:
    """How many panels stand side by side; with several quantities, so that each row is full."""
    most = style.columns(problems, charts.COLUMNS if rows == 1 else problems)
    return most if rows == 1 else max(count for count in range(1, most + 1) if problems % count == 0)


def order_of(rows: Sequence[Row], problems: int, columns: int) -> Iterator[tuple[int, Row, int]]:
    """Yield the panels from left to right and from top to bottom: quantities below one another, problem by problem."""
    for start in range(0, problems, columns):
        for level, row in enumerate(rows):
            for place in range(start, min(start + columns, problems)):
                yield level, row, place


def time_axis(here: pl.DataFrame, is_lowest: bool, style: Style) -> Options:
    """The options of a panel's x axis; only the lowest one of each column has a title."""
    first, last = ends(here["t"])
    axis = charts.axis_of("x", TIME, first, last, style)
    if first == last and style.x.range is None:  # marks stand next to each other there
        axis["axis"].values = [first]
    return axis if is_lowest else axis | {"title": ""}


def format_heading(points: pl.DataFrame, style: Style) -> str:
    """The heading of a problem's panel."""
    name = points["problem"][0]
    return style.labels.get(name) or " · ".join([*problem_name(points), *size(points)])


def problem_name(points: pl.DataFrame) -> list[str]:
    """The problem's name, unless it only repeats the number of arms, as `16 arms` does."""
    name, arms = points.select("problem", "arms").row(0)
    return [] if name == f"{arms} arms" else [name]


def size(points: pl.DataFrame) -> list[str]:
    """The number of arms, if there are arms: continuous spaces have none."""
    arms = points["arms"][0]
    return [] if arms is None else [f"K = {arms}"]


def finish_chart(rows: Sequence[Row], chart: Chart, notes: list[str], pool: str, style: Style) -> Chart:
    """Add a title that says what was run, and from which pool the arms were drawn."""
    points = rows[0].points
    horizons = charts.span(points["horizon"])
    below = f"{charts.count(charts.span(points['runs']), 'run')} · horizon{'s' if ' ' in horizons else ''} {horizons}"
    shown = "arms" if pool else ""
    if points["problem"].n_unique() == 1:
        shown = style.label(points["problem"][0])
        below = " · ".join([*size(points), below]) if problem_name(points) else below
    first, *others = [row.title for row in rows]
    title = " and ".join([first, *map(str.lower, others)])
    title += f" on {shown}" * bool(shown) + f" of {pool}" * bool(pool)
    said = " ".join(row.description for row in rows)
    return charts.add_title(chart, title, [below, *notes], f"{title}: {below}. {said}", style)


def last(points: pl.DataFrame, column: str, digits: str, style: Style) -> str:
    """Describe the last value of each line as text."""
    rows = points.drop_nulls(column).group_by("problem", "policy", maintain_order=True).last().to_dicts()
    values = [f"{style.policy(row['policy'])} on {style.label(row['problem'])} {row[column]:{digits}}" for row in rows]
    return f"At the end: {', '.join(values)}."
