"""Ratings over time, one line per arm, relative to the same arm in every period."""

from typing import Unpack

import altair as alt
import polars as pl

from ..errors import InvalidInput
from . import charts
from .look import Look, style_of

COLUMNS = ("period", "arm", "rating", "lower", "upper")
SIZE = (460.0, 280.0)
COLORS = (
    charts.BLUE,
    charts.VERMILION,
    charts.GREEN,
    charts.PURPLE,
    charts.ORANGE,
    charts.SKY,
    charts.BLACK,
    charts.GRAY,
)


def ratings_over_time(table: pl.DataFrame, *, most: int = 8, **look: Unpack[Look]) -> alt.LayerChart:
    """Draw the ratings of arms over time as lines, with their intervals as bands.

    Args:
        table: What `duels.rating.ratings_over_time` returned.
        most: How many arms to show, up to 8: those with the best last rating.
        **look: How the figure looks: see `Look`. `colors` gives each arm its color, by name or in order.

    Raises:
        InvalidInput: If the table is another one, or an option is wrong.
    """
    style = style_of("ratings_over_time", look)
    if not isinstance(table, pl.DataFrame) or not {*COLUMNS} <= {*table.columns} or not len(table):
        names = ", ".join(COLUMNS)
        raise InvalidInput(f"expected the table that duels.rating.ratings_over_time returned, with {names}")
    if not 1 <= most <= len(COLORS):
        raise InvalidInput(f"most is {most}: expected how many arms to show, from 1 to {len(COLORS)}")
    last = table.sort("period").group_by("arm", maintain_order=True).last()
    order = last.sort("rating", "arm", descending=[True, False])["arm"].to_list()[:most]
    points = pl.DataFrame(table.filter(pl.col("arm").is_in(order)).select(COLUMNS)).sort("period")
    finite = points.with_columns(
        pl.when(pl.col(one).is_finite()).then(pl.col(one)).alias(one) for one in ("lower", "upper")
    )
    style = style.for_names([*order, "rating", "period"], painted=order)
    many = table["arm"].n_unique()
    below = charts.count(many, "arm") if len(order) == many else f"the best {len(order)} of {many} arms"
    said = f"Ratings over time as lines, their intervals as bands. {below}, at the end: {', '.join(order)}."
    colors = style.pick_colors(order, COLORS)

    def draw(width: float) -> alt.LayerChart:
        names = charts.label_of(order, style, style.text)[0]
        color = alt.Color(
            "arm:N",
            sort=order,
            scale=alt.Scale(domain=order, range=colors),
            legend=alt.Legend(title=None, labelExpr=names, orient="bottom", symbolOpacity=1),
        )
        rows = finite.with_columns(pl.col("period").cast(pl.String))
        base = alt.Chart(charts.table(rows)).encode(
            x=alt.X("period:T", title=style.label("period"), axis=alt.Axis(tickCount=max(3, int(width / 70)))),
            color=color,
        )
        axis: charts.Options = {"title": style.label("rating"), "scale": alt.Scale(zero=False)}
        band = base.mark_area(opacity=0.15).encode(y=alt.Y("lower:Q", **axis), y2="upper:Q")
        tip = ["arm:N", "period:T", "rating:Q", "lower:Q", "upper:Q"]
        line = base.mark_line(point=True).encode(y=alt.Y("rating:Q", **axis), tooltip=tip)
        chart = charts.layer_charts(band, line, width=width, height=charts.height_of(width, SIZE, style))
        return charts.add_title(chart, "Ratings over time", below, said, style)

    return charts.fit(draw, SIZE[0], style)
