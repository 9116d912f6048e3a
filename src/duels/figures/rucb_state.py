"""RUCB's intervals of all pairs at one time (the paper's Figure 2)."""

import json
import math
from collections.abc import Sequence
from typing import Unpack

import altair as alt
import numpy as np
import polars as pl

from .. import theory
from ..preference import Arm, PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts
from .charts import BLACK, BLUE, GRAY, VERMILION, Options
from .legends import most_columns
from .look import Look, Style, style_of
from .selection import MatrixLike, at, matrix_of, of_run, rucb_alpha

SHOWN = 8  # arms that fit
SIZE = 560  # pixels for all blocks
ENTRY, BESIDE = 24, 44  # points of a legend's entry beside its text, and of a figure beside its blocks and names
SPACING = 3  # points between blocks
AHEAD, OPEN, BEHIND = "row is ahead", "open", "row is behind"
COLORS = {AHEAD: BLUE, OPEN: GRAY, BEHIND: VERMILION}
TINTS = {AHEAD: 0.16, OPEN: 0.06, BEHIND: 0.16}  # of a block in its color


def state(
    results: Results,
    matrix: MatrixLike,
    *,
    run: int = 0,
    t: int | None = None,
    policy: str | None = None,
    arms: Sequence[Arm] | None = None,
    **look: Unpack[Look],
) -> alt.FacetChart:
    """Draw the state of RUCB at time t: in each block the interval of the row's arm against the column's, a dot at p.

    A block has the color of its verdict: the row is ahead, behind, or it is open. An arm with a block in which it is
    behind is out; the others are potential champions and have an arrow. Blocks are centered on ½, and reach as far as
    the probabilities and half of the intervals do.

    Args:
        results: Results that recorded pairs (`simulate(..., record="pairs")`), or their folder.
        matrix: The problem's matrix, its file or the problem's name.
        run: The run to show.
        t: A checkpoint; by default the last one.
        policy: The RUCB to show; needed if several policies were recorded.
        arms: The arms to show; by default all, or the eight with the best Copeland scores.
        **look: How the figure looks: see `Look`.

    Raises:
        InvalidInput: If nothing was recorded, the policy is not RUCB, or an option is wrong.
    """
    style = style_of("state", look)
    points = state_points(results, matrix, run=run, t=t, policy=policy, arms=arms)
    one, total = points.row(0, named=True), as_matrix(matrix).arms
    names = points["row"].unique(maintain_order=True).to_list()
    reach = _reach(points)
    chosen = f"{len(names)} of {total} arms" + (", the best by Copeland score" if arms is None else "")
    notes = [
        f"{style.policy(one['policy'])} on {one['problem']}, run {run}, t = {one['t']:,} · "
        + (f"K = {total}" if len(names) == total else chosen),
        "bar: interval of the row against the column · dot: true p · line: ½ · "
        + f"a block goes from {0.5 - reach:.3g} to {0.5 + reach:.3g}",
        f"► potential champion: behind none of the {total} arms, u ≥ ½",
    ]

    style = style.for_names([*names, one["policy"], *COLORS], notes, painted=[*COLORS])

    def draw(width: float) -> alt.FacetChart:
        side = max(34, min(84, SIZE // len(names))) if style.width is None else max(12.0, width / len(names))
        rows, columns = _headers(points, names, side, style)
        chart = _block(points, side, reach, style).facet(row=rows, column=columns, spacing=SPACING)
        return charts.add_title(chart, "What RUCB holds of each pair", notes, style=style)

    return charts.fit(draw, SIZE, style)


def _headers(points: pl.DataFrame, names: Sequence[str], side: float, style: Style) -> tuple[alt.Row, alt.Column]:
    """The names of rows, with an arrow at potential champions, and of columns."""
    champions = set(points.filter("champion")["row"])
    texts = {name: style.label(name) for name in names}
    marked = {name: f"► {text}" if name in champions else text for name, text in texts.items()}
    wide = max(style.extent(text, 1, bold=True) for text in texts.values())
    size = min(9, style.large) if wide * style.large > side + SPACING else style.large
    upright: Options = {"labelAngle": -90, "labelAlign": "right", "labelBaseline": "middle"}
    turned = upright if wide * size > side + SPACING else {"labelFontSize": size}
    shown = [f"{json.dumps(one, ensure_ascii=False)}[datum.value]" for one in (marked, texts)]
    row = alt.Header(title=None, labelAngle=0, labelAlign="left", labelExpr=shown[0])
    column = alt.Header(title=None, labelExpr=shown[1], **turned)
    return alt.Row("row:N", sort=names, header=row), alt.Column("column:N", sort=names, header=column)


def _reach(points: pl.DataFrame) -> float:
    """How far blocks reach from ½: as far as every p and half of the intervals, and a little more."""
    pairs = points.filter(pl.col("row") != pl.col("column"))
    if not len(pairs):
        return 0.5
    furthest = np.abs(pairs.select("lower", "upper").to_numpy() - 0.5).max(axis=1)
    wanted = max(float(np.abs(pairs["p"].to_numpy() - 0.5).max()), float(np.median(furthest)))
    return min(0.5, math.ceil(1.1 * wanted * 20) / 20)


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


def _block(points: pl.DataFrame, side: float, reach: float, style: Style) -> alt.LayerChart:
    ends = [0.5 - reach, 0.5 + reach]
    axis: Options = {
        "axis": alt.Axis(values=[0.5], labelExpr="'½'", grid=False, title=None),
        "scale": alt.Scale(domain=ends, nice=False),
    }
    columns = len(COLORS)
    if style.width is not None:
        texts = [style.extent(style.label(verdict), style.text) for verdict in COLORS]
        names = [style.extent(f"► {style.label(name)}", style.large, bold=True) for name in points["row"].unique()]
        columns = most_columns([ENTRY + text for text in texts], style.width - BESIDE - max(names))
    said = json.dumps({verdict: style.label(verdict) for verdict in COLORS}, ensure_ascii=False)
    shown: Options = {"labelExpr": f"{said}[datum.label]"} if set(COLORS) & set(style.labels) else {}
    legend = alt.Legend(title=None, orient="bottom", columns=columns, symbolType="stroke", symbolStrokeWidth=4, **shown)
    painted = style.pick_colors(list(COLORS), list(COLORS.values()))
    color = alt.Color("verdict:N", scale=alt.Scale(domain=list(COLORS), range=painted), legend=legend)
    base, middle = alt.Chart(), alt.value(side / 2)
    across = {"x": alt.value(0), "x2": alt.value(side)}
    different = base.transform_filter("datum.row !== datum.column")
    tints = different.mark_rect(aria=False).encode(
        color, **across, y=alt.value(0), y2=alt.value(side), opacity=alt.Opacity("tint:Q", scale=None)
    )
    bars = different.mark_rule(strokeWidth=max(3, side / 9), clip=True)
    dots = different.mark_point(filled=True, color=BLACK, opacity=1, size=max(8, side / 3), clip=True)
    return charts.layer_charts(
        tints,
        base.mark_rule(strokeDash=(2, 2), color=GRAY).encode(**across, y=alt.datum(0.5, **axis)),
        bars.encode(alt.Y("lower:Q", **axis), alt.Y2("upper"), color, x=middle),
        dots.encode(alt.Y("p:Q", **axis), x=middle),
        data=charts.values(points.with_columns(tint=pl.col("verdict").replace_strict(TINTS))),
        width=side,
        height=side,
    )
