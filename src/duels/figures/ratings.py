"""Ratings with their intervals, one line per arm.

Heat maps of `duels.rating.win_rates`: predicted win rates, and how many votes each pair has.

Ratings over time, one line per arm, relative to the same arm in every period.
"""

import math
from typing import Unpack

import altair as alt
import polars as pl

from ..errors import InvalidInput
from . import charts
from .look import Look, style_of
from .selection import ends, unique

ARM_COLUMNS = ("arm", "rating", "lower", "upper", "rank")
STEP = 17  # points from arm to arm; 13 in a narrow figure
WIDTH = 420
NAME = 0.4  # of the figure's width, for the names of arms


def ratings(table: pl.DataFrame, *, most: int = 30, **look: Unpack[Look]) -> alt.LayerChart:
    """Draw the ratings of arms and their intervals, best first.

    A limit that the votes do not give is drawn as an arrow.

    Args:
        table: What `duels.rate` returned, without `by` or filtered to one of its values.
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
        InvalidInput: If the table is not one of `duels.rate`, or has several rows for an arm.
    """
    if not isinstance(table, pl.DataFrame) or not {*ARM_COLUMNS} <= {*table.columns} or not len(table):
        raise InvalidInput("expected the table that duels.rate returned, with arm, rating, lower, upper and rank")
    if table["arm"].n_unique() < len(table):
        by = next(
            (name for name in table.columns if name not in (*ARM_COLUMNS, "best_rank", "worst_rank", "duels")), "by"
        )
        raise InvalidInput(f"the table has several rows for an arm: filter it to one value of {by!r} first")
    found = table.select(ARM_COLUMNS).sort("rank", maintain_order=True)
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


PAIR_COLUMNS = ("arm", "opponent", "predicted", "duels")
MOST = 60


def win_rates(table: pl.DataFrame, *, most: int = 30, **look: Unpack[Look]) -> alt.LayerChart:
    """Draw how often the arm of each row is predicted to beat that of each column, best arms first.

    Args:
        table: What `duels.rating.win_rates` returned.
        most: How many arms to show; the others are left out, and the subtitle says so.
        **look: How the figure looks: see `Look`.

    Raises:
        InvalidInput: If the table is another one, or an option is wrong.
    """
    style = style_of("win_rates", look)
    points, order, below = _select_arms(table, most)
    style = style.for_names(order)
    _, reach = ends((points["predicted"] - 0.5).abs())
    cells = charts.probabilities("predicted", reach or 0.5, ["row beats", "column"], style)
    said = f"Heat map of the predicted probability that the arm of the row beats that of the column. {below}."

    def draw(width: float) -> alt.LayerChart:
        grid = charts.grid_of(len(order), points["predicted"], cells, style, width)
        chart = charts.heat_map(points, order, "predicted", cells, "", style, grid)
        notes = below + " · numbers in percent" * grid.is_brief
        return charts.add_title(chart, "Predicted win rates", notes, said, style)

    return charts.fit(draw, charts.CELLS, style)


def duel_counts(table: pl.DataFrame, *, most: int = 30, **look: Unpack[Look]) -> alt.LayerChart:
    """Draw how many votes each pair of arms has, best arms first; cells of pairs without any are blank.

    Args:
        table: What `duels.rating.win_rates` returned.
        most: How many arms to show; the others are left out, and the subtitle says so.
        **look: How the figure looks: see `Look`.

    Raises:
        InvalidInput: If the table is another one, has no votes, or an option is wrong.
    """
    style = style_of("duel_counts", look)
    points, order, below = _select_arms(table, most)
    style = style.for_names(order)
    met = points.filter(pl.col("duels") > 0)
    if not len(met):
        raise InvalidInput("no pair of these arms has a vote: expected some")
    cells = charts.amounts("duels", *ends(met["duels"]), style=style)
    below = f"{below} · {charts.count(int(met['duels'].sum()) // 2, 'vote')} · blank: never compared"
    said = f"Heat map of how many votes each pair of arms has. {below}."

    def draw(width: float) -> alt.LayerChart:
        grid = charts.grid_of(len(order), met["duels"], cells, style, width)
        chart = charts.heat_map(met, order, "duels", cells, "", style, grid)
        return charts.add_title(chart, "Votes on each pair", below, said, style)

    return charts.fit(draw, charts.CELLS, style)


def _select_arms(table: pl.DataFrame, most: int) -> tuple[pl.DataFrame, list[str], str]:
    """The cells of the best arms, these arms, and how many they are."""
    if not isinstance(table, pl.DataFrame) or not {*PAIR_COLUMNS} <= {*table.columns} or not len(table):
        raise InvalidInput(f"expected the table that duels.rating.win_rates returned, with {', '.join(PAIR_COLUMNS)}")
    if not 2 <= most <= MOST:
        raise InvalidInput(f"most is {most}: expected how many arms to show, from 2 to {MOST}")
    arms = unique(table, "arm")
    order = arms[:most]
    points = pl.DataFrame(table.filter(pl.col("arm").is_in(order) & pl.col("opponent").is_in(order)))
    below = charts.count(len(arms), "arm") if len(order) == len(arms) else f"the best {most} of {len(arms)} arms"
    return points.rename({"arm": "row", "opponent": "column"}), order, below


PERIOD_COLUMNS = ("period", "arm", "rating", "lower", "upper")
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
    if not isinstance(table, pl.DataFrame) or not {*PERIOD_COLUMNS} <= {*table.columns} or not len(table):
        names = ", ".join(PERIOD_COLUMNS)
        raise InvalidInput(f"expected the table that duels.rating.ratings_over_time returned, with {names}")
    if not 1 <= most <= len(COLORS):
        raise InvalidInput(f"most is {most}: expected how many arms to show, from 1 to {len(COLORS)}")
    last = table.sort("period").group_by("arm", maintain_order=True).last()
    order = last.sort("rating", "arm", descending=[True, False])["arm"].to_list()[:most]
    points = pl.DataFrame(table.filter(pl.col("arm").is_in(order)).select(PERIOD_COLUMNS)).sort("period")
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
