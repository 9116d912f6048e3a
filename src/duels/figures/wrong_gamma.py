"""Beat the Mean with a γ that is too small or too large (the paper's appendix)."""

import altair as alt
import polars as pl

from .. import specs
from ..errors import InvalidInput
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results
from . import charts
from .charts import BLUE, GREEN, ORANGE, PURPLE, Layered, Options, line_glyph
from .selection import MatrixLike, ends, matrix_of

WIDTH, HEIGHT = 290, 230
DOTTED = (2, 2)
CONDORCET, BORDA, REGRET = "names the Condorcet winner", "names the Borda winner", "mean regret"
INTERVAL = ["accuracy", "accuracy_low", "accuracy_high"]


def gamma(results: Results, matrix: MatrixLike) -> alt.LayerChart | alt.ConcatChart:
    """Draw which arm Beat the Mean recommends at the horizon, and its regret until then, against the γ it was given.

    Bars are Wilson's 95% intervals of the shares, and the regret of the best and the worst run.

    Args:
        results: Results of policies such as `btm:gamma=2`, with one horizon, or their folder.
        matrix: The problem's matrix, its file or the problem's name.

    Raises:
        InvalidInput: If there are no such results, or they are not of this matrix.
    """
    points = gamma_points(results, matrix)
    matrix, one = as_matrix(matrix), points.row(0, named=True)
    lines = {CONDORCET: (BLUE, "accuracy", "accuracy_low", "accuracy_high")}
    if matrix.condorcet_winner not in matrix.borda_winners:
        lines[BORDA] = (ORANGE, "borda", "borda_low", "borda_high")
    lines[REGRET] = (GREEN, "regret", "regret_min", "regret_max")
    rows = pl.concat(
        points.select("gamma", label=pl.lit(label), value=value, low=low, high=high, marked=pl.lit(True))
        for label, (_, value, low, high) in lines.items()
    )
    key = charts.key_of(list(lines), list(lines), [colour for colour, *_ in lines.values()])
    key = key.with_entry(f"true γ = {matrix.gamma:.3g}", PURPLE, line_glyph(dash=DOTTED))
    least, most = ends(points["regret_min"])[0], ends(points["regret_max"])[1]
    shares: Options = {"title": "share of runs", "scale": alt.Scale(domain=[-0.04, 1.04], nice=False)}
    costs = charts.log_axis("regret until the horizon", least / 1.5, most * 1.5)
    cost = pl.col("label") == REGRET
    panels = {
        "Whom it names": _panel(rows.filter(~cost), shares, matrix, key),
        "What it costs": _panel(rows.filter(cost), costs, matrix, key),
    }
    runs = f"{charts.span(points['runs'])} runs for each γ"
    below = f"{one['problem']}, K = {matrix.arms} · horizon {one['horizon']:,} · {runs}"
    bars = "bars: 95% intervals of the shares; best and worst run"
    return charts.titled(charts.side_by_side(panels), "Beat the Mean and its γ", [below, bars])


def gamma_points(results: Results, matrix: MatrixLike) -> pl.DataFrame:
    """Compute, for each γ, the shares of runs that recommend the Condorcet and the Borda winner, and the regret.

    All are measured at the horizon. The shares are `accuracy` and `borda`; `…_low` to `…_high` are Wilson's 95%
    intervals.
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


def _panel(rows: pl.DataFrame, axis: Options, matrix: PreferenceMatrix, key: charts.Key) -> alt.LayerChart:
    least, most = ends(rows["gamma"])
    sides = min(least, matrix.gamma) / 1.2, max(most, matrix.gamma) * 1.2
    x = alt.X("gamma:Q", **charts.log_axis("γ it is given", *sides))
    true = alt.Chart(charts.values([{"gamma": matrix.gamma}]))
    layers: Layered = [true.mark_rule(color=PURPLE, strokeDash=DOTTED, strokeWidth=2).encode(x)]
    for place, line in enumerate(rows.partition_by("label", maintain_order=True)):
        bars = alt.Chart(charts.values(line)).mark_rule(strokeWidth=1.5, xOffset=3 * place)  # next to each other
        layers.append(bars.encode(x, alt.Y("low:Q", **axis), alt.Y2("high"), key.colour("label")))
    layers += charts.lines(rows, x, alt.Y("value:Q", **axis), key, "label")
    return charts.layered(*layers, key.layer(2 * WIDTH), width=WIDTH, height=HEIGHT)
