"""RUCB's intervals of all pairs at one time (the paper's Figure 2)."""

import json
import math
from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from .. import theory
from ..preference import Arm, PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts
from .charts import BLACK, BLUE, GREY, SKY, VERMILION, Options
from .selection import MatrixLike, at, matrix_of, of_run, rucb_alpha

SHOWN = 8  # arms that fit
SIZE = 560  # pixels for all blocks
NAME = 9  # characters that fit above a block
AHEAD, OPEN, BEHIND = "row is ahead", "open", "row is behind"
COLOURS = {AHEAD: BLUE, OPEN: GREY, BEHIND: VERMILION}


def state(
    results: Results,
    matrix: MatrixLike,
    *,
    run: int = 0,
    t: int | None = None,
    policy: str | None = None,
    arms: Sequence[Arm] | None = None,
) -> alt.FacetChart:
    """Draw the state of RUCB at time t: in each block the interval of the row's arm against the column's, a dot at p.

    Rows of potential champions, with u ≥ ½ against every arm, are shaded and have an arrow.

    Args:
        results: Results that recorded pairs (`simulate(..., record="pairs")`), or their folder.
        matrix: The problem's matrix, its file or the problem's name.
        run: The run to show.
        t: A checkpoint; by default the last one.
        policy: The RUCB to show; needed if several policies were recorded.
        arms: The arms to show; by default all, or the eight with the best Copeland scores.

    Raises:
        InvalidInput: If nothing was recorded, or the policy is not RUCB.
    """
    points = state_points(results, matrix, run=run, t=t, policy=policy, arms=arms)
    one, total = points.row(0, named=True), as_matrix(matrix).arms
    names = points["row"].unique(maintain_order=True).to_list()
    champions = points.filter("champion")["row"].unique(maintain_order=True).to_list()
    marked = f"indexof({json.dumps(champions)}, datum.value) < 0 ? datum.value : '► ' + datum.value"
    rows = alt.Row(
        "row:N", sort=names, header=alt.Header(title=None, labelAngle=0, labelAlign="left", labelExpr=marked)
    )
    width = max(34, min(84, SIZE // len(names)))
    small: Options = {"labelFontSize": 9, "labelLimit": width} if max(map(len, names)) > NAME else {}
    columns = alt.Column("column:N", sort=names, header=alt.Header(title=None, **small))
    chart = _block(points, width).facet(row=rows, column=columns, spacing=3)
    chosen = f"{len(names)} of {total} arms" + (", the best by Copeland score" if arms is None else "")
    notes = [
        f"{one['policy']} on {one['problem']}, run {run}, t = {one['t']:,} · "
        + (f"K = {total}" if len(names) == total else chosen),
        "dot: true p · bar: interval of the row against the column · dotted: ½ · a block goes from 0 to 1",
        f"► potential champion: u ≥ ½ against each of the {total} arms",
    ]
    return charts.titled(chart, "What RUCB holds of each pair", notes)


def state_points(
    results: Results,
    matrix: MatrixLike,
    *,
    run: int = 0,
    t: int | None = None,
    policy: str | None = None,
    arms: Sequence[Arm] | None = None,
) -> pl.DataFrame:
    """Compute RUCB's interval and the true p of every arm `row` against every arm `column`, itself included, at time t.

    The `verdict` is that the row is ahead (l > ½), behind (u < ½), or open. A `champion` is behind no arm, shown or
    not.
    """
    results = as_results(results)
    matrix = matrix_of(results, matrix)
    rows = of_run(results.pairs, 'pairs: record them with simulate(..., record="pairs")', matrix, policy, run)
    rows, alpha = at(rows, t), rucb_alpha(rows["policy"][0])
    labels = {column: pl.lit(rows[column][0]) for column in ("problem", "policy", "run", "t")}
    t, wins = rows["t"][0], _wins(rows, matrix.arms)
    met, lead = wins + wins.T, wins - wins.T
    # This is the comparison that RUCB makes; u < ½ itself rounds differently at late times.
    behind = (lead < 0) & (lead * lead / np.maximum(4 * met, 1) > alpha * math.log(t))
    bounds = theory.interval(wins, wins.T, t, alpha)
    lower, upper = (np.where(np.eye(matrix.arms) > 0, 0.5, bound) for bound in bounds)
    order = _best(matrix) if arms is None else [matrix.index(arm) for arm in arms]
    i, j = np.repeat(order, len(order)), np.tile(order, len(order))
    columns = {
        "row": [matrix.names[arm] for arm in i],
        "column": [matrix.names[arm] for arm in j],
        "p": matrix.array[i, j],
        "duels": met[i, j],
        "lower": lower[i, j],
        "upper": upper[i, j],
        "verdict": np.select([behind[j, i], behind[i, j]], [AHEAD, BEHIND], OPEN),
        "champion": ~behind.any(axis=1)[i],
    }
    return pl.DataFrame(columns).select(pl.all(), **labels)


def _wins(rows: pl.DataFrame, arms: int) -> np.ndarray:
    """(K, K) float64: wins[i, j] = duels i won over j."""
    rows = rows.filter(pl.col("first") != pl.col("second"))
    i, j, duels, won = (rows[column].to_numpy() for column in ("first", "second", "duels", "wins"))
    wins = np.zeros((arms, arms))
    wins[i, j], wins[j, i] = won, duels - won
    return wins


def _best(matrix: PreferenceMatrix) -> list[int]:
    if matrix.arms <= SHOWN:
        return list(range(matrix.arms))
    return [int(arm) for arm in np.argsort(-matrix.copeland_scores, kind="stable")[:SHOWN]]


def _block(points: pl.DataFrame, side: int) -> alt.LayerChart:
    axis: Options = {
        "axis": alt.Axis(values=[0.5], labelExpr="'½'", grid=False, title=None),
        "scale": alt.Scale(domain=[0, 1]),
    }
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolStrokeWidth=4)
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=legend)
    base, middle = alt.Chart(), alt.value(side / 2)
    across = {"x": alt.value(0), "x2": alt.value(side)}
    bars = base.transform_filter("datum.row !== datum.column").mark_rule(strokeWidth=6, clip=True)
    return charts.layered(
        base.transform_filter("datum.champion").mark_rect(color=SKY, opacity=0.25).encode(**across),
        base.mark_rule(strokeDash=(2, 2), color=GREY).encode(**across, y=alt.datum(0.5, **axis)),
        bars.encode(alt.Y("lower:Q", **axis), alt.Y2("upper"), colour, x=middle),
        base.mark_point(filled=True, color=BLACK, opacity=1, size=16).encode(alt.Y("p:Q", **axis), x=middle),
        data=charts.values(points),
        width=side,
        height=side,
    )
