"""Figure 3: the quantiles of RUCB's regret, and the bound on them whose area is Theorem 3's bound on the mean."""

import math
from dataclasses import replace
from typing import Unpack

import altair as alt
import numpy as np
import polars as pl

from .. import theory
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts, legends
from .charts import BLUE, SKY, VERMILION
from .legends import line_glyph
from .look import Look, style_of
from .selection import (
    MatrixLike,
    at,
    ends,
    matrix_of,
    one_policy,
    power,
    refuse_other_notions,
    rucb_alpha,
    without_repeats,
)

TOO_HIGH = 1e6  # a bound that is so many times above every regret is not drawn
DASHED = (6, 3)
QUANTILE, REGRET = "quantile q", "regret R"  # titles of axes
FOUND, MEAN, BOUND, EXPECTED = "quantiles of R", "mean of R", "Theorem 2's bound H(q)", "Theorem 3's bound on the mean"


def regret_quantiles(
    results: Results, matrix: MatrixLike, *, t: int | None = None, policy: str | None = None, **look: Unpack[Look]
) -> alt.LayerChart:
    """Draw the quantiles of RUCB's regret R_t over runs, and above them H_t(q), Theorem 2's bound with δ = 1 − q.

    The areas below the two curves are the mean regret and Theorem 3's bound. A bound far above every regret is not
    drawn.

    Args:
        results: The results, or their folder.
        matrix: The problem's matrix, its file or the problem's name.
        t: A checkpoint; by default the last one.
        policy: The RUCB to show; needed if there are several policies.
        **look: How the figure looks: see `Look`.

    Raises:
        InvalidInput: If the policy is not RUCB, the results are not of this matrix, or an option is wrong.
    """
    style = style_of("regret_quantiles", look)
    results = as_results(results)
    style = replace(style, name_of=results.name_of)
    refuse_other_notions(results)
    points = quantile_points(results, matrix, t=t, policy=policy)
    matrix, one = as_matrix(matrix), points.row(0, named=True)
    alpha, least, most = rucb_alpha(one["policy"]), *ends(points["regret"])
    curve = _compute_bound(matrix, one["t"], alpha, len(points), TOO_HIGH * most)
    levels = {MEAN: float(points["regret"].to_numpy().mean())}
    if alpha > 1:
        levels[EXPECTED] = float(theory.expected_regret_bound(matrix, one["t"], alpha))
    highest = max([most, *curve["bound"], *levels.values()]) * 1.5
    axis = charts.log_axis(style.label(REGRET), least / 1.5, highest)
    found, mean, bound, expected = style.pick_colors((FOUND, MEAN, BOUND, EXPECTED), (BLUE, BLUE, VERMILION, VERMILION))
    key = legends.Key((FOUND, MEAN), (found, mean), (line_glyph(), line_glyph(dash=DASHED)))
    if len(curve):
        key = key.with_entry(BOUND, bound, line_glyph())
    if alpha > 1:
        key = key.with_entry(EXPECTED, expected, line_glyph(dash=DASHED))
    x = alt.X("low:Q", title=style.label(QUANTILE), scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("regret:Q", **axis)
    steps = alt.Chart(charts.values([*points.to_dicts(), {"low": 1, "regret": most}]))
    rules = alt.Chart(charts.values([{"label": label, "level": level} for label, level in levels.items()]))
    below = f"{style.policy(one['policy'])}, K = {matrix.arms} · {len(points)} runs, t = {one['t']:,}"
    notes = [below, *_notes(matrix, alpha, curve)]
    names = [*key.labels, one["policy"], one["problem"], QUANTILE, REGRET]
    style = style.for_names(names, notes, painted=(FOUND, MEAN, BOUND, EXPECTED))

    def draw(width: float) -> alt.LayerChart:
        height = charts.height_of(width, (charts.WIDTH, charts.HEIGHT), style)
        areas = alt.Chart(charts.values(points)).mark_rect(color=SKY if found == BLUE else found, opacity=0.3)
        layers = [
            areas.encode(x, alt.X2("high"), y, alt.Y2Value(height)),
            steps.mark_line(interpolate="step-after", color=found).encode(x, y),
            alt.Chart(charts.values(curve)).mark_line(color=bound).encode(x, alt.Y("bound:Q", **axis)),
            rules.mark_rule(strokeDash=DASHED, strokeWidth=1.5).encode(alt.Y("level:Q", **axis), key.color("label")),
        ]
        chart = charts.layer_charts(*layers, key.layer(width, style), width=width, height=height)
        return charts.add_title(chart, f"Quantiles of the regret on {style.label(one['problem'])}", notes, style=style)

    return charts.fit(draw, charts.WIDTH, style)


def quantile_points(
    results: Results, matrix: MatrixLike, *, t: int | None = None, policy: str | None = None
) -> pl.DataFrame:
    """Sort the regrets of n runs at time t; the k-th is the q-quantile for `low` = (k − 1)/n < q ≤ `high` = k/n.

    `bound` is H_t(low), Theorem 2's least bound on these quantiles. It is infinite for α ≤ ½, where there is none.
    """
    results = as_results(results)
    matrix = matrix_of(results, matrix)
    rows = results.frame.filter(problem=matrix.name)
    rows = without_repeats(at(rows.filter(policy=one_policy(rows, policy)), t), "run")
    low = np.arange(len(rows)) / len(rows)
    bound = _quantile_bound(matrix, rows["t"][0], rucb_alpha(rows["policy"][0]), low)
    sides = [pl.Series("low", low), pl.Series("high", np.arange(1, len(rows) + 1) / len(rows))]
    columns = ["problem", "policy", "t", "run", *sides, "regret", pl.Series("bound", bound)]
    return rows.sort("regret", maintain_order=True).select(columns)


def _compute_bound(matrix: PreferenceMatrix, t: int, alpha: float, runs: int, highest: float) -> pl.DataFrame:
    """Compute H_t up to the highest value to draw, or a quarter of a run before q = 1, where it is infinite."""
    low = (1 - 0.25 / runs) * (1 - np.linspace(1, 0, 200) ** 3)
    curve = pl.DataFrame({"low": low, "bound": _quantile_bound(matrix, t, alpha, low)})
    return curve.filter(pl.col("bound") <= highest)


def _quantile_bound(matrix: PreferenceMatrix, t: int, alpha: float, q: np.ndarray) -> np.ndarray:
    return np.asarray(theory.regret_quantile_bound(matrix, t, alpha, q)) if alpha > 0.5 else np.full(len(q), math.inf)


def _notes(matrix: PreferenceMatrix, alpha: float, curve: pl.DataFrame) -> list[str]:
    """Explain which bounds are not drawn."""
    notes = []
    if alpha > 0.5 and not len(curve):
        least = float(theory.log_c(1, matrix.arms, alpha)) / math.log(10) + math.log10(matrix.gaps.max())
        notes.append(f"Theorem 2 allows more than {power(least)} at every q, too high to draw: look at α ≥ 1.5")
    if alpha <= 1:
        notes.append(f"at α = {alpha:g} there is no bound on the mean: Theorem 3 needs α > 1")
    if alpha <= 0.5:
        notes.append("nor on quantiles: Theorem 2 needs α > ½")
    return notes
