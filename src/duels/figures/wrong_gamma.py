"""Beat the Mean with a γ that is too small or too large (the paper's appendix)."""

from typing import Unpack

import altair as alt
import polars as pl

from .. import specs
from ..errors import InvalidInput
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts, legends
from .charts import BLUE, GREY, ORANGE, VERMILION, Layered, Options
from .look import Look, Style, style_of
from .over_time import with_notion
from .selection import MatrixLike, ends, matrix_of

WIDTH, HEIGHT = 290, 230
CONDORCET, BORDA, OTHER = "names the Condorcet winner", "names the Borda winner", "names another arm"
REGRET, SPREAD = "mean regret", "best and worst run"
GIVEN, SHARE, COST = "γ it is given", "share of runs", "regret until the horizon"  # titles of axes
USUAL = {CONDORCET: BLUE, BORDA: ORANGE, OTHER: "#BBBBBB", REGRET: VERMILION, SPREAD: GREY}
BLOCK = "".join(f"M-.6,{y:g}H.6" for y in (-0.3, -0.15, 0, 0.15, 0.3))  # a filled square of a legend
INTERVAL = ["accuracy", "accuracy_low", "accuracy_high"]


def gamma(results: Results, matrix: MatrixLike, **look: Unpack[Look]) -> alt.LayerChart | alt.ConcatChart:
    """Draw which arm Beat the Mean recommends at the horizon, and its regret until then, for each γ it was given.

    The left panel has the shares of runs that name each arm, the right one the mean regret with the best and the worst
    run. The number of runs is above each γ.

    Args:
        results: Results of policies such as `btm:gamma=2`, with one horizon, or their folder.
        matrix: The problem's matrix, its file or the problem's name.
        **look: How the figure looks: see `Look`. The `band` is `"minmax"` or None.

    Raises:
        InvalidInput: If there are no such results, they are not of this matrix, or an option is wrong.
    """
    style = style_of("gamma", look, bands=["minmax"], band="minmax")
    points = gamma_points(results, matrix)
    matrix, one = as_matrix(matrix), points.row(0, named=True)
    shares = share_rows(points, matrix.condorcet_winner not in matrix.borda_winners)
    named = [label for label in USUAL if label in shares["label"]]
    labels = [*named, REGRET, *([SPREAD] if style.band else [])]
    results = as_results(results)
    axes = [GIVEN, SHARE, with_notion(COST, results.notions_of(one["problem"]))]
    style = style.showing([*labels, *axes, one["problem"]], painted=labels)
    glyphs = [*[BLOCK] * len(named), legends.mark_glyph("circle", full=True), "M0,-.35V.35"][: len(labels)]
    colours = style.painted(labels, [USUAL[label] for label in labels])
    key = legends.Key(tuple(labels), tuple(colours), tuple(glyphs), tuple(style.label(label) for label in labels))
    columns = style.columns(2, 2)
    below = [
        f"{style.label(one['problem'])}, K = {matrix.arms}, true γ = {matrix.gamma:.3g} · horizon {one['horizon']:,}"
    ]
    below.append("above each γ: how many runs")

    def draw(width: float) -> alt.LayerChart | alt.ConcatChart:
        size = width, charts.height_of(width, (WIDTH, HEIGHT), style, 2 // columns)
        legend = key.layer(columns * width, style)
        panels = {
            "Whom it names": charts.layered(*_shares(shares, points, matrix, key, style), legend),
            "What it costs": charts.layered(*_costs(points, matrix, key, style, axes[-1]), legend),
        }
        for panel in panels.values():
            panel.width, panel.height = size
        return charts.titled(charts.side_by_side(panels.items(), style), "Beat the Mean and its γ", below, style=style)

    return charts.fit(draw, WIDTH, style, columns)


def gamma_points(results: Results, matrix: MatrixLike) -> pl.DataFrame:
    """Compute, for each γ, the shares of runs that recommend the Condorcet and the Borda winner, and the regret.

    All are measured at the horizon. The shares are `accuracy` and `borda`; `…_low` to `…_high` are Wilson's 95%
    intervals. If the Condorcet winner is a Borda winner too, both shares count it.
    """
    results = as_results(results)
    matrix = matrix_of(results, matrix)
    at_horizon = results.frame.filter(pl.col("t") == pl.col("horizon"), problem=matrix.name)
    last = at_horizon.filter(pl.col("policy").str.extract("^([^:]*)") == "btm")
    horizons = last["horizon"].unique().sort().to_list()
    if len(horizons) != 1:
        found = f"with the horizons {', '.join(map(str, horizons))}" if horizons else "absent"
        raise InvalidInput(f"runs of btm on {matrix.name} are {found}: expected btm:gamma=… for each γ, one horizon")
    borda = last.with_columns(correct=pl.col("recommended").is_in(matrix.borda_winners))
    shares = {column.replace("accuracy", "borda"): column for column in INTERVAL}
    named = Results(borda).summarise().select("policy", **shares)
    return (
        Results(last)
        .summarise()
        .join(named, on="policy")
        .with_columns(gamma=pl.col("policy").map_elements(_gamma, return_dtype=pl.Float64))
        .sort("gamma")
        .select(
            ["problem", "policy", "horizon", "runs", "gamma", *INTERVAL, *shares, "regret", "regret_min", "regret_max"]
        )
    )


def _gamma(policy: str) -> float:
    name, given = specs.split(policy, "policy")
    return float(specs.fill(name, given, find_policy(name).params._asdict(), "duels policies")["gamma"])


def share_rows(points: pl.DataFrame, differ: bool) -> pl.DataFrame:
    """Stack the shares of each γ: the Condorcet winner's, the Borda winner's if they `differ`, and all others'."""
    borda = pl.col("borda") if differ else pl.lit(0.0)
    shares = {CONDORCET: pl.col("accuracy"), BORDA: borda, OTHER: (1 - pl.col("accuracy") - borda).clip(0, 1)}
    rows = pl.concat(points.select("gamma", label=pl.lit(label), share=share) for label, share in shares.items())
    rows = rows.with_columns(high=pl.col("share").cum_sum().over("gamma"))
    rows = rows.with_columns(low=pl.col("high") - pl.col("share"))
    return rows.filter(pl.col("share") > 1e-9)


def _x(points: pl.DataFrame, matrix: PreferenceMatrix, style: Style) -> alt.X:
    """The γs, evenly spaced, and the true one, which is marked."""
    known = sorted({*points["gamma"], *([] if _is_given(points, matrix) else [matrix.gamma])})
    true = min(known, key=lambda value: abs(value - matrix.gamma))
    expression = (
        f"abs(datum.value - {true!r}) < 1e-12 ? [format(datum.value, '.3~g'), 'true'] : format(datum.value, '.3~g')"
    )
    axis = alt.Axis(labelExpr=expression, labelAngle=0, ticks=False, labelOverlap=False)
    return alt.X("gamma:O", title=style.label(GIVEN), scale=alt.Scale(domain=known), axis=axis)


def _is_given(points: pl.DataFrame, matrix: PreferenceMatrix) -> bool:
    return any(abs(value - matrix.gamma) < 1e-6 * matrix.gamma for value in points["gamma"])


def _shares(
    shares: pl.DataFrame, points: pl.DataFrame, matrix: PreferenceMatrix, key: legends.Key, style: Style
) -> Layered:
    x, axis = _x(points, matrix, style), alt.Scale(domain=[0, 1])
    y: Options = {"title": style.label(SHARE), "scale": axis}
    bars = alt.Chart(charts.values(shares)).mark_bar()
    return [bars.encode(x, alt.Y("low:Q", **y), alt.Y2("high"), key.colour("label")), _counts(points, x, style)]


def _counts(points: pl.DataFrame, x: alt.X, style: Style) -> alt.Chart:
    """The number of runs of each γ, above the panel."""
    text = alt.Chart(charts.values(points)).mark_text(fontSize=style.text, dy=-6, color="#444444")
    drawn: alt.Chart = text.encode(x, y=alt.value(0), text="runs:Q")
    return drawn


def _costs(points: pl.DataFrame, matrix: PreferenceMatrix, key: legends.Key, style: Style, cost: str) -> Layered:
    x, inks = _x(points, matrix, style), dict(zip(key.labels, key.colours))
    least, most = ends(points["regret_min"])[0], ends(points["regret_max"])[1]
    axis = charts.log_axis(style.label(cost), least / 1.5, most * 1.5)
    base = alt.Chart(charts.values(points))
    spread = base.mark_rule(strokeWidth=2, color=inks.get(SPREAD, GREY))
    return [
        *([spread.encode(x, alt.Y("regret_min:Q", **axis), alt.Y2("regret_max"))] if style.band else []),
        base.mark_point(filled=True, opacity=1, size=60, color=inks[REGRET]).encode(x, alt.Y("regret:Q", **axis)),
        _counts(points, x, style),
    ]
