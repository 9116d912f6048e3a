"""How likely random subsets of the arms meet the assumptions of policies: a Condorcet winner, a total order."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Unpack

import altair as alt
import numpy as np
import polars as pl

from ..errors import InvalidInput
from ..problems import as_matrix
from . import charts, legends
from .look import Look, style_of
from .selection import MatrixLike, ends

CONDORCET, ORDERED = "Condorcet winner", "total order"
SIZE, PROBABILITY = "size K of the subset", "probability"
EVERY_SIZE, SOME_SIZES = 64, 40  # up to so many arms every size of subset is shown, of more arms about so many
MARKS = 16  # at most, on a line
Z95 = 1.959963984540054  # the normal quantile of a 95% interval


def condorcet_probability(
    matrix: MatrixLike, *, sizes: Iterable[int] | None = None, samples: int = 20_000, **look: Unpack[Look]
) -> alt.LayerChart:
    """Draw the probability that a random subset of the arms has a Condorcet winner, and that it has a total order.

    Args:
        matrix: The preference matrix, its file or a problem's name.
        sizes: The sizes of subsets; by default all, or about 40 of them if there are more than 64 arms.
        samples: The number of random subsets per size where the exact probability of a total order takes too long.
        **look: How the figure looks: see `Look`. The `band` is `"ci"` or None.

    Raises:
        InvalidInput: If a size or an option is wrong.
    """
    style = style_of("condorcet_probability", look, bands=["ci"], band="ci", direct=True, axes="xy")
    matrix = as_matrix(matrix)
    points = condorcet_points(matrix, sizes=sizes, samples=samples)
    scale = alt.Scale(domain=style.x.range or ends(points["size"]))
    x = alt.X("size:Q", title=style.label(SIZE), axis=alt.Axis(tickMinStep=1), scale=scale)
    axis: charts.Options = {"title": style.label(PROBABILITY), "scale": alt.Scale(domain=style.y.range or (0, 1))}
    y: Callable[[str], alt.Y] = partial(alt.Y, **axis)
    names, usual = [CONDORCET, ORDERED], [charts.VERMILION, charts.BLUE]
    style = style.for_names([*names, SIZE, PROBABILITY], painted=names)
    key = legends.key_of(names, names, usual, style, [style.label(name) for name in names])
    estimated = points.filter(~pl.col("exact"))
    band = alt.Chart(charts.values(estimated)).mark_area(color=key.colors[1], opacity=0.2, clip=True)
    shades = [band.encode(x, y("lower:Q"), alt.Y2("upper"))] if style.band else []
    lines = legends.lines(points, x, y("probability:Q"), key, "assumption", style)
    least = points.filter(assumption=CONDORCET).sort("probability", "size").row(0, named=True)
    below = [f"K of {matrix.arms} arms · a winner is least likely at K = {least['size']}: {least['probability']:.4f}"]
    if len(estimated):
        below.append(
            f"total order, K = {charts.span(estimated['size'])}: {samples:,} subsets each"
            + ", shaded: 95%" * bool(style.band)
        )
    description = "Probability, by size, that a random subset of the arms has a Condorcet winner or a total order. "
    description += ". ".join(below)

    def draw(width: float) -> alt.LayerChart:
        height = charts.height_of(width, (charts.WIDTH, charts.HEIGHT), style)
        names = legends.names_at_ends(points, "probability", "assumption", key, axis, (width, height), style, "size")
        chart = charts.layer_charts(*shades, *lines, *names, key.layer(width, style), width=width, height=height)
        return charts.add_title(chart, f"Assumptions on random subsets of {matrix.name}", below, description, style)

    return charts.fit(draw, charts.WIDTH, style)


def condorcet_points(matrix: MatrixLike, *, sizes: Iterable[int] | None = None, samples: int = 20_000) -> pl.DataFrame:
    """Compute the probability that each assumption holds for a random subset of the arms, by its size.

    `lower` and `upper` are the ends of a 95% interval if the probability is estimated, otherwise the probability
    itself.
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
