"""The confidence interval of one pair over time (the paper's illustration of Lemma 1), also as in the appendix."""

import math
from collections.abc import Callable, Sequence
from typing import Unpack

import altair as alt
import numpy as np
import polars as pl

from .. import theory
from ..errors import InvalidInput
from ..preference import Arm
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts
from .charts import BLACK, BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, VERMILION, Layered
from .legends import Key, line_glyph
from .look import Look, Style, style_of
from .over_time import TIME
from .selection import MatrixLike, alpha_of, format_arm, matrix_of, of_run, power

DELTA = 0.05  # of C(δ)
TAILS, FEWEST = 5, 4  # graphs in the appendix's form, and duels at the first of them
TALL = 0.8  # the share of the space until the next graph that a graph takes
NARROW = (400, 300)  # points; a narrower figure has two lines of areas, and one below the other limit three
VISIBLE = 0.03  # smaller areas are drawn ten times as wide, or a hundred times, …
DASHED, DOTTED, UPRIGHT, TICK = (6, 3), (2, 2), "M0,-.4V.4", "M0,.05V.35"
Y = Callable[[str], alt.Y]  # the y axis for a column


def intervals(
    results: Results,
    matrix: MatrixLike,
    *,
    pair: tuple[Arm, Arm] | None = None,
    run: int = 0,
    policy: str | None = None,
    tails: bool | Sequence[int] = False,
    **look: Unpack[Look],
) -> alt.LayerChart:
    """Draw the interval of one pair over time, its mean, the true p, and the time T from which p stays inside.

    Time begins at the first duel; before that the interval is [−1, 2].

    Args:
        results: Results that recorded the pair (`simulate(..., record=[(i, j)])`), or their folder.
        matrix: The problem's matrix, its file or the problem's name.
        pair: One of the recorded pairs, in either order; by default the first.
        run: The run to show.
        policy: The policy to show; needed if several were recorded.
        tails: Whether to add the appendix's graphs (`tail_points`) at five times, or the times to add them at.
        **look: How the figure looks: see `Look`.

    Raises:
        InvalidInput: If the pair was not recorded, the results are not of this matrix, or an option is wrong.
    """
    style = style_of("intervals", look, colored=False)
    points = interval_points(results, matrix, pair=pair, run=run, policy=policy)
    one, arms = points.row(0, named=True), as_matrix(matrix).arms
    i, j = format_arm(style.label(one["first"])), format_arm(style.label(one["second"]))
    graphs = None if tails is False else tail_points(points, () if tails is True else tails)
    drawn = points.filter(pl.col("duels") > 0) if points["duels"].max() else points
    usual = (charts.WIDTH * 1.5, charts.HEIGHT) if graphs is None else (charts.WIDTH * 2, charts.HEIGHT * 1.4)
    reach = [0.0, 1.0] if graphs is None else [*graphs["x"], 0.0, 1.0]
    axis = charts.log_axis(style.label(TIME), drawn["t"][0], points["t"][-1])
    x = alt.X("t:Q", **axis)
    scale = alt.Scale(domain=[min(reach), max(reach)], nice=False)

    probability = f"probability that {i} beats {j}"
    beside = style.wrap(style.label(probability), style.large, max(charts.LOWEST, 0.4 * (style.width or 0)))

    def y(column: str) -> alt.Y:
        return alt.Y(f"{column}:Q", title=beside, scale=scale)

    notes = [
        f"{style.policy(one['policy'])} on {style.label(one['problem'])}, run {run} · p = {one['p']:.4g}",
        _describe_settling(points),
    ]
    layers = _layers(drawn, _find_settled(points), x, y, style)
    if graphs is not None:
        layers += _upright(graphs, x, alt.X("right:Q", **axis), y, points["t"][-1], style)
        notes.append("above each graph its green area: Chernoff and Hoeffding's bound on the chance that p is outside")
        notes.append("×10: drawn ten times as wide" if (graphs["area"] < VISIBLE).any() else "")
    notes.append(_lemma(one["policy"], arms))
    key = _key(points)
    names = [one["first"], one["second"], one["policy"], one["problem"], *key.labels, TIME, probability]
    style = style.for_names(names, notes)

    def draw(width: float) -> alt.LayerChart:
        height = charts.height_of(width, usual, style)
        chart = charts.layer_charts(*layers, key.layer(width, style), width=width, height=height)
        return charts.add_title(chart, f"The interval of {i} against {j}", notes, style=style)

    return charts.fit(draw, usual[0], style)


def interval_points(
    results: Results,
    matrix: MatrixLike,
    *,
    pair: tuple[Arm, Arm] | None = None,
    run: int = 0,
    policy: str | None = None,
) -> pl.DataFrame:
    """Compute a pair's duels, mean and interval at each recorded time, and the true p.

    `holds` is whether the interval contains p, `settled` whether it does from this time on, and `compared` whether
    the pair has duelled since the previous recorded time.
    """
    results = as_results(results)
    matrix = matrix_of(results, matrix)
    rows = of_run(results.intervals, "intervals: record some with simulate(..., record=[(i, j)])", matrix, policy, run)
    pairs = rows.select("first", "second").unique(maintain_order=True).rows()
    i, j = pairs[0] if pair is None else (matrix.index(pair[0]), matrix.index(pair[1]))
    if i == j or not {(i, j), (j, i)} & set(pairs):
        found = ", ".join(map(str, pairs))
        raise InvalidInput(f"no interval of two arms ({i}, {j}) was recorded: expected one of {found}")
    wins, lower, upper = pl.col("wins"), pl.col("lower"), pl.col("upper")
    if (i, j) in pairs:
        rows = rows.filter(first=i, second=j)
    else:  # the mirror image of what was recorded
        rows = rows.filter(first=j, second=i)
        rows = rows.with_columns(wins=pl.col("duels") - wins, lower=1 - upper, upper=1 - lower)
    return rows.with_columns(
        first=pl.lit(matrix.names[i]),
        second=pl.lit(matrix.names[j]),
        p=pl.lit(matrix[i, j]),
        mean=pl.when(pl.col("duels") > 0).then(wins / pl.col("duels")),
        holds=(lower <= matrix[i, j]) & (upper >= matrix[i, j]),
        compared=pl.col("duels").diff().fill_null(pl.col("duels")) > 0,
    ).with_columns(settled=pl.col("holds").cum_min(reverse=True))


def tail_points(points: pl.DataFrame, times: Sequence[int] = ()) -> pl.DataFrame:
    """Compute the appendix's graphs f(x) = 4n|x − μ| exp(−2n(x − μ)²), for n duels of a pair, at some times.

    The parts `outside` [l, u] have the `area` 2 exp(−2nε²) with ε = u − μ: the bound of Chernoff and Hoeffding on the
    probability that |μ − p| > ε.

    Args:
        points: The points of `interval_points`.
        times: Checkpoints; by default five, evenly spaced on a logarithmic axis from the fourth duel on.

    Raises:
        InvalidInput: If there was no duel until one of the times.
    """
    met = points.filter(pl.col("duels") >= (1 if times else FEWEST))
    if not times and len(met):
        spaced = np.geomspace(met["t"][0], met["t"][-1], TAILS + 1)[:-1]
        times = sorted({met.filter(pl.col("t") >= round(t))["t"][0] for t in spaced})
    absent = [t for t in times if t not in met["t"]]
    if absent or not times:
        expected = f"t = {absent[0]} to be a checkpoint after a duel" if absent else f"{FEWEST} duels or more"
        raise InvalidInput(f"the tails of this pair cannot be drawn: expected {expected}")
    chosen = met.filter(pl.col("t").is_in(times)).select("t", "duels", "mean", "upper")
    return pl.concat([_graph(*row) for row in chosen.rows()])


def _graph(t: int, n: float, mean: float, upper: float) -> pl.DataFrame:
    width = upper - mean
    beyond = np.linspace(width, math.sqrt(width**2 + 1.5 / n), 30)  # all but e⁻³ of a tail
    away = np.concatenate([-beyond[::-1], np.linspace(-width, width, 81), beyond])
    columns = {
        "x": mean + away,
        "f": 4 * n * np.abs(away) * np.exp(-2 * n * away**2),
        "outside": [*["below"] * 30, *[None] * 81, *["above"] * 30],
    }
    labels = {"t": pl.lit(t), "duels": pl.lit(n), "area": pl.lit(2 * math.exp(-2 * n * width**2))}
    return pl.DataFrame(columns).select(pl.all(), **labels)


def _key(points: pl.DataFrame) -> Key:
    key = Key().with_entry("interval [l, u]", BLUE, line_glyph()).with_entry("mean μ", ORANGE, line_glyph())
    key = key.with_entry("true p", BLACK, line_glyph(dash=DASHED)).with_entry("compared", GRAY, TICK)
    if not points["holds"].all():
        key = key.with_entry("p is outside", VERMILION, UPRIGHT)
    for t in _find_settled(points)["t"]:
        key = key.with_entry(f"T = {t:,}", PURPLE, line_glyph(dash=DOTTED))
    return key


def _find_settled(points: pl.DataFrame) -> pl.DataFrame:
    """Select the row of T; none if p was never outside."""
    return points.filter("settled").head(0 if points["holds"].all() else 1)


def _layers(points: pl.DataFrame, settled: pl.DataFrame, x: alt.X, y: Y, style: Style) -> Layered:
    base, met, compared = _chart(points), _chart(points.drop_nulls("mean")), _chart(points.filter("compared"))
    missed, start = _chart(points.filter(~pl.col("holds"))), _chart(settled)
    edge = base.mark_line(color=BLUE, strokeWidth=0.6 * style.stroke, clip=True)
    return [
        base.mark_area(color=SKY, opacity=0.3, clip=True).encode(x, y("lower"), alt.Y2("upper")),
        missed.mark_rule(color=VERMILION, strokeWidth=1, clip=True).encode(x, y("lower"), alt.Y2("upper")),
        edge.encode(x, y("lower")),
        edge.encode(x, y("upper")),
        met.mark_line(color=ORANGE, interpolate="step-after", strokeWidth=style.stroke).encode(x, y("mean")),
        base.mark_line(color=BLACK, strokeDash=DASHED, strokeWidth=0.6 * style.stroke).encode(x, y("p")),
        compared.mark_tick(color=GRAY, height=8, thickness=0.7, yOffset=-5).encode(x, y=alt.value("height")),
        start.mark_rule(color=PURPLE, strokeDash=DOTTED, strokeWidth=style.stroke).encode(x),
    ]


def _chart(rows: pl.DataFrame) -> alt.Chart:
    return alt.Chart(charts.table(rows.select("t", "lower", "upper", "mean", "p")))


def _upright(graphs: pl.DataFrame, x: alt.X, right: alt.X, y: Y, end: float, style: Style) -> Layered:
    """Draw the graphs turned by 90 degrees, each to the right of its time, equally wide; small tails are magnified."""
    times = (VISIBLE / pl.col("area")).log10().ceil().clip(0)
    graphs = graphs.with_columns(times=10**times)
    feet = graphs.select("t", text=pl.struct("area", "times").map_elements(_area, return_dtype=pl.String)).unique(
        maintain_order=True
    )
    room = np.diff(np.log(sorted([*feet["t"], end])))  # until the next graph begins or the figure ends
    wide = TALL * min(room[room > 0], default=1.0)
    up = wide * pl.col("f") / pl.col("f").max().over("t")
    graphs = graphs.with_columns(right=pl.col("t") * up.exp(), tail=pl.col("t") * (pl.col("times") * up).exp())
    base, shaded = (alt.Chart(charts.values(rows)) for rows in (graphs, graphs.drop_nulls("outside")))
    labels = alt.Chart(charts.values(feet))
    tails = shaded.mark_area(orient="horizontal", color=GREEN, clip=True)
    return [
        tails.encode(x, alt.X2("tail"), y("x"), alt.Detail(["t:Q", "outside:N"])),
        base.mark_line(color=BLACK, strokeWidth=1, clip=True).encode(
            right, y("x"), alt.Detail("t:Q"), alt.Order("x:Q")
        ),
        labels.mark_rule(color=BLACK, strokeWidth=0.5).encode(x),
        *_areas(feet, x, style),
    ]


def _areas(feet: pl.DataFrame, x: alt.X, style: Style) -> Layered:
    """Print the areas above their graphs; in a narrow figure on several lines, so that none overlap."""
    rows = 1 if style.width is None else 1 + sum(style.width < limit for limit in NARROW)
    found: Layered = []
    for row in range(rows):
        text = alt.Chart(charts.values(feet.gather_every(rows, row))).mark_text(align="left", fontSize=style.text)
        found.append(text.encode(x, y=alt.value(-7 - 1.2 * style.text * row), text="text:N"))
    return found


def _area(graph: dict[str, float]) -> str:
    """Write the area, with `(×10)` if it is drawn ten times as wide."""
    return f"{graph['area']:.2g}" + (f" (×{graph['times']:,.0f})" if graph["times"] > 1 else "")


def _describe_settling(points: pl.DataFrame) -> str:
    held = points.filter("settled")["t"]
    if not len(held):
        return f"at the last recorded time, t = {points['t'][-1]:,}, p is outside"
    if len(held) == len(points):
        return f"p is inside at every recorded time; T = {held[0]:,} is the first of them"
    return f"p is inside at every recorded time from T = {held[0]:,} on"


def _lemma(policy: str, arms: int) -> str:
    alpha = alpha_of(policy)
    if alpha is None:
        return ""
    if alpha <= 0.5:
        return f"Lemma 1 says nothing of α = {alpha:g}: it needs α > ½"
    bound = power(float(theory.log_c(DELTA, arms, alpha)) / math.log(10))
    return f"Lemma 1: with probability {1 - DELTA:g}, T ≤ C({DELTA:g}) = {bound} (α = {alpha:g}, K = {arms})"
