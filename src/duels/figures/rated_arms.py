"""Ratings with their intervals, one line per arm."""

import math
from typing import Unpack

import altair as alt
import polars as pl

from ..errors import InvalidInput
from . import charts
from .look import Look, style_of

COLUMNS = ("arm", "rating", "lower", "upper", "rank")
STEP = 17  # points from arm to arm; 13 in a narrow figure
WIDTH = 420
NAME = 0.4  # of the figure's width, for the names of arms


def ratings(table: pl.DataFrame, *, most: int = 30, **look: Unpack[Look]) -> alt.LayerChart:
    """Draw the ratings of arms and their intervals, best first.

    A limit that the votes do not give is drawn as an arrow.

    Args:
        table: What `duels.ratings` returned, without `by` or filtered to one of its values.
        most: How many arms to show; the others are left out, and the subtitle says so.
        **look: How the figure looks: see `Look`. `colors` is a list of one color.

    Raises:
        InvalidInput: If the table is another one, or an option is wrong.
    """
    style = style_of("ratings", look)
    points = rating_points(table)
    if most < 1:
        raise InvalidInput(f"most is {most}: expected how many arms to show, from 1 on")
    shown = points.head(most)
    order, (color,) = shown["arm"].to_list(), style.pick_colors(["rating"], [charts.BLUE])
    style = style.for_names([*order, "rating"], painted=["rating"])
    ends = [*shown["from"], *shown["to"]]
    room = 0.04 * ((max(ends) - min(ends)) or 1)
    scale = alt.Scale(domain=[min(ends) - room, max(ends) + room], nice=False, zero=False)
    deep = max(len(style.wrap(style.label(arm), style.text, NAME * (style.width or 0))) for arm in order)
    step = STEP if style.width is None else max(13, (1.2 * deep + 0.4) * style.text)
    many = len(shown) < len(points)
    below = [f"the best {len(shown)} of {len(points)} arms" if many else charts.count(len(points), "arm")]
    if shown["open_below"].any() or shown["open_above"].any():
        below.append("arrow: the votes give no limit")

    first = "; ".join(f"{arm} {rating:,.3g}" for arm, rating in shown["arm", "rating"].head(5).iter_rows())
    said = f"Ratings of arms as points, their intervals as lines, best first: {first}. {'. '.join(below)}."

    def draw(width: float) -> alt.LayerChart:
        axis = charts.axis_of_arms(order, style, step, NAME)
        y = alt.Y("arm:N", title=None, scale=alt.Scale(domain=order), axis=alt.Axis(ticks=False, domain=False, **axis))
        chart = alt.Chart(charts.table(shown)).encode(y)
        x = alt.X(
            "from:Q",
            title=style.label("rating"),
            scale=scale,
            axis=alt.Axis(grid=True, tickCount=max(3, int(width / 60))),
        )
        tip = ["arm:N", "rating:Q", "lower:Q", "upper:Q"]
        layers: charts.Layered = [chart.mark_rule(color=color, strokeWidth=1.5).encode(x, x2="to:Q")]
        layers.append(chart.mark_point(color=color, filled=True, opacity=1, size=36).encode(x="rating:Q", tooltip=tip))
        for side, column, shape in (("open_below", "from", "triangle-left"), ("open_above", "to", "triangle-right")):
            if shown[side].any():
                arrows = alt.Chart(charts.table(shown.filter(side))).mark_point(color=color, filled=True, opacity=1)
                layers.append(arrows.encode(y, x=f"{column}:Q", shape=alt.value(shape), size=alt.value(28)))
        whole = charts.layer_charts(*layers, width=width, height=alt.Step(step))
        return charts.add_title(whole, "Ratings and their intervals", " · ".join(below), said, style)

    return charts.fit(draw, WIDTH, style)


def rating_points(table: pl.DataFrame) -> pl.DataFrame:
    """List what `ratings` draws: arm, rating, lower, upper, rank, and where the line of each arm begins and ends.

    Raises:
        InvalidInput: If the table is not one of `duels.ratings`, or has several rows for an arm.
    """
    if not isinstance(table, pl.DataFrame) or not {*COLUMNS} <= {*table.columns} or not len(table):
        raise InvalidInput("expected the table that duels.ratings returned, with arm, rating, lower, upper and rank")
    if table["arm"].n_unique() < len(table):
        by = next((name for name in table.columns if name not in (*COLUMNS, "best_rank", "worst_rank", "duels")), "by")
        raise InvalidInput(f"the table has several rows for an arm: filter it to one value of {by!r} first")
    found = table.select(COLUMNS).sort("rank", maintain_order=True)
    ends = [end for name in ("rating", "lower", "upper") for end in found[name] if math.isfinite(end)]
    low, high = min(ends), max(ends)
    reach = 0.05 * ((high - low) or 1)  # how far an arrow goes beyond all other ends
    below, above = ~pl.col("lower").is_finite(), ~pl.col("upper").is_finite()
    return found.with_columns(
        pl.when(below).then(low - reach).otherwise("lower").alias("from"),
        pl.when(above).then(high + reach).otherwise("upper").alias("to"),
        below.alias("open_below"),
        above.alias("open_above"),
    )
