"""Policies with a horizon that is too short or too long (the paper's section 2)."""

from dataclasses import replace
from typing import Unpack

import altair as alt
import numpy as np
import polars as pl

from .. import specs
from ..errors import InvalidInput
from ..policies import BUILT_IN
from ..policies import policy as find_policy
from ..results import Results, as_results
from . import charts, legends
from .charts import GREY, Layered
from .legends import line_glyph
from .look import BANDS, Look, style_of
from .over_time import TIME, cut, with_notion
from .selection import ends, only, unique

# Viridis without its yellow; shorter horizons are darker.
COLOURS = ("#440154", "#472D7B", "#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EC962", "#ADDC30")
DASHED = (6, 3)
SPREADS = {"ci": ("low", "high"), "quantiles": ("q25", "q75"), "minmax": ("least", "most")}
AT_T, AFTER = "at T", "after T: plays the arm it names"
REGRET = "mean cumulative regret"
LATER = 40  # points of a line after T
MOST = 6  # horizons whose colours can be told apart


def horizons(
    results: Results, *, policy: str | None = None, problem: str | None = None, pool: str = "", **look: Unpack[Look]
) -> alt.LayerChart | alt.ConcatChart:
    """Draw mean regret against time for each horizon T that a policy was run with, both axes logarithmic.

    The mark on each line is at T. After T, where the line is dashed, the policy plays the arm that it recommends.
    Policies in the results that need no horizon are shown for comparison. Time begins at a tenth of the shortest
    horizon. At most six horizons are shown.

    Args:
        results: The results, or their folder.
        policy: The policy to show; by default each one that needs a horizon has a panel.
        problem: The problem to show; by default each has a panel.
        pool: The name of the matrix that the problems' arms were drawn from, for the subtitle.
        **look: How the figure looks: see `Look`.

    Raises:
        UnknownName: If the results have no such policy or problem.
        InvalidInput: If no policy needs a horizon, every regret is 0, or an option is wrong.
    """
    style = style_of("horizons", look, bands=list(SPREADS), direct=True, axes="xy", scales="xy")
    results = as_results(results)
    style = replace(style, name_of=results.name_of)
    points = horizon_points(results, policy=policy, problem=problem).filter(pl.col("regret") > 0)
    if not len(points):
        raise InvalidInput("every regret is 0: there is nothing to draw on a logarithmic axis")
    if style.band and points["runs"].max() == 1:
        raise InvalidInput(f"band is {style.band!r}, but no policy has several runs: leave it out")
    points = points.filter(pl.col("t") >= pl.col("horizon").min() / 10)  # earlier, the lines are equal
    known = points["horizon"].drop_nulls().unique().sort().to_list()
    horizons = [known[round(place)] for place in np.linspace(0, len(known) - 1, min(len(known), MOST))]
    points = points.filter(pl.col("horizon").is_null() | pl.col("horizon").is_in(horizons))
    others = points.filter(pl.col("horizon").is_null())["label"].unique(maintain_order=True).to_list()
    shades = [COLOURS[round(place)] for place in np.linspace(0, len(COLOURS) - 1, len(horizons))]
    told = [_label(horizon) for horizon in horizons]
    texts = [*told, *(style.policy(name) for name in others)]
    key = legends.key_of([*told, *others], told, [*shades, *legends.colour_of(others).range], style, texts)
    key = legends.with_marks(key, AT_T)
    if style.band:
        key = legends.with_band(key, BANDS[style.band])
    if points["after"].any():
        key = key.with_entry(AFTER, GREY, line_glyph(dash=DASHED))
    problems = unique(points, "problem")
    titles = {name: with_notion(REGRET, results.notions_of(name)) for name in problems}
    shown = [*key.labels, *points["policy"].unique(), *problems, *titles.values(), TIME]
    style = style.showing(shown, painted=[*told, *others])
    start, end = ends(points["t"])
    x = alt.X("t:Q", **charts.axis_of("x", TIME, start, 1.15 * end, style))
    least, most = ends(style.around(points, "t")["regret"])
    groups = points.partition_by("problem", "policy", maintain_order=True)
    usual = (charts.WIDTH * 1.3, charts.HEIGHT * 1.2) if len(groups) == 1 else (270.0, 220.0)
    columns, arms = style.columns(len(groups), charts.COLUMNS), points["arms"][0]

    def panel(rows: pl.DataFrame, width: float) -> alt.LayerChart:
        height = charts.height_of(width, usual, style, -(-len(groups) // columns))
        axis = charts.axis_of("y", titles[rows["problem"][0]], least / 1.2, most * 1.2, style)
        y = alt.Y("regret:Q", **axis)
        now, dashed = rows.filter(~pl.col("after")), {"strokeDash": DASHED, "strokeWidth": style.stroke, **cut(style)}
        later = alt.Chart(charts.values(rows.filter("after"))).mark_line(**dashed)
        layers: Layered = [later.encode(x, y, key.colour("label")), *legends.lines(now, x, y, key, "label", style)]
        if style.band:
            low, high = SPREADS[style.band]
            shaded = now.with_columns(pl.col(low).clip(least / 1.2)).drop_nulls([low, high])
            layers.insert(0, legends.area(shaded, x, alt.Y(f"{low}:Q", **axis), high, key, "label"))
        layers += legends.names_at_ends(rows, "regret", "label", key, axis, (width, height), style)
        return charts.layered(*layers, key.layer(width * columns, style), width=width, height=height)

    headings = [f"{style.policy(rows['policy'][0])} on {style.label(rows['problem'][0])}" for rows in groups]
    sizes = "" if len(groups) > 1 or points["problem"][0] == f"{arms} arms" else f"K = {arms} · "
    title = f"{headings[0]}, told different horizons" if len(groups) == 1 else "Different horizons"
    below = [f"{sizes}mean of {charts.span(points['runs'])} runs", f"arms of {pool}" if pool else ""]
    if len(known) > len(horizons):
        below[0] += f" · {len(horizons)} of {len(known)} horizons"

    def draw(width: float) -> alt.LayerChart | alt.ConcatChart:
        panels = {heading: panel(rows, width) for heading, rows in zip(headings, groups)}
        return charts.titled(charts.side_by_side(panels.items(), style), title, below, style=style)

    return charts.fit(draw, usual[0], style, columns)


def horizon_points(results: Results, *, policy: str | None = None, problem: str | None = None) -> pl.DataFrame:
    """Compute mean regret by problem, policy, horizon T and time, up to the policy's longest horizon.

    The row at T is `marked`. In rows `after` T, the regret of each run is that at T plus (t − T)Δ for the arm that it
    recommends at T. Beside each policy there are those that need no horizon: their horizon is null and their `label`
    is their name.
    """
    results = as_results(results)
    frame = only(results.frame, "problem", problem)
    free = [name for name in frame["policy"].unique(maintain_order=True) if not _needs_horizon(name)]
    told = only(frame.filter(~pl.col("policy").is_in(free)), "policy", policy)
    if not len(told):
        raise InvalidInput(f"the results are of {', '.join(free)}, which need no horizon: expected, say, savage")
    parts = []
    for (place, name), rows in told.group_by("problem", "policy", maintain_order=True):
        longest = int(ends(rows["horizon"])[1])
        for (horizon,), runs in rows.sort("horizon").group_by("horizon", maintain_order=True):
            parts.append(_mean(runs, name, _label(horizon), horizon))
            if horizon < longest:
                parts.append(_mean(_played_on(runs.filter(t=horizon), longest), name, _label(horizon), horizon, True))
        for other in free:
            rows = frame.filter(pl.col("t") <= longest, problem=place, policy=other)
            parts.append(_mean(rows.filter(pl.col("horizon") == pl.col("horizon").max()), name, other, None))
    return pl.concat(parts)


def _needs_horizon(policy: str) -> bool:
    """Whether a policy needs a horizon; one that is not built in may."""
    name = specs.split(policy, "policy")[0]
    return name not in BUILT_IN or find_policy(name).needs_horizon


def _label(horizon: int) -> str:
    return f"T = {horizon:,}"


def _played_on(last: pl.DataFrame, longest: int) -> pl.DataFrame:
    """Continue each run after its last row with the arm that it recommends duelling itself."""
    times = np.unique(np.geomspace(last["t"][0], longest, LATER).round().astype(np.int64))
    later = last.join(pl.DataFrame({"later": times}), how="cross")
    gone = pl.col("later") - pl.col("t")
    return later.with_columns(regret=pl.col("regret") + pl.col("simple_regret") * gone, t="later")


def _mean(rows: pl.DataFrame, policy: str, label: str, horizon: int | None, after: bool = False) -> pl.DataFrame:
    regret = pl.col("regret")
    at_horizon = pl.col("t").eq_missing(pl.lit(horizon, pl.Int64))
    return (
        rows.group_by("problem", "arms", "t")
        .agg(
            runs=pl.len(),
            regret=regret.mean(),
            least=regret.min(),
            q25=regret.quantile(0.25, "linear"),
            q75=regret.quantile(0.75, "linear"),
            most=regret.max(),
            error=regret.std() / pl.len().sqrt(),  # null for a single run
        )
        .with_columns(width=pl.col("error") * _student(rows["run"].n_unique()))
        .with_columns(low=pl.col("regret") - pl.col("width"), high=pl.col("regret") + pl.col("width"))
        .drop("error", "width")
        .with_columns(
            policy=pl.lit(policy), label=pl.lit(label), horizon=pl.lit(horizon, pl.Int64), after=pl.lit(after)
        )
        .with_columns(marked=at_horizon & ~pl.col("after"))
        .sort("t")
    )


def _student(runs: int) -> float:
    """The factor of the standard error in a 95% interval of the mean."""
    from scipy import special  # imported on first use: it takes a tenth of a second

    return float(special.stdtrit(max(runs - 1, 1), 0.975))
