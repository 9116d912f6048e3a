"""Heat maps of `duels.rating.win_rates`: predicted win rates, and how many votes each pair has."""

from typing import Unpack

import altair as alt
import polars as pl

from ..errors import InvalidInput
from . import charts
from .look import Look, style_of
from .selection import ends, unique

COLUMNS = ("arm", "opponent", "predicted", "duels")
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
    if not isinstance(table, pl.DataFrame) or not {*COLUMNS} <= {*table.columns} or not len(table):
        raise InvalidInput(f"expected the table that duels.rating.win_rates returned, with {', '.join(COLUMNS)}")
    if not 2 <= most <= MOST:
        raise InvalidInput(f"most is {most}: expected how many arms to show, from 2 to {MOST}")
    arms = unique(table, "arm")
    order = arms[:most]
    points = pl.DataFrame(table.filter(pl.col("arm").is_in(order) & pl.col("opponent").is_in(order)))
    below = charts.count(len(arms), "arm") if len(order) == len(arms) else f"the best {most} of {len(arms)} arms"
    return points.rename({"arm": "row", "opponent": "column"}), order, below
