"""Heat maps of pairs of arms: their preferences, and how often they duelled."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import altair as alt
import polars as pl

from ..errors import InvalidInput
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..results import Results, as_results, order_rows
from . import charts
from .look import Look, style_of
from .selection import MatrixLike, ends, only, unique


def preferences(matrix: MatrixLike, *, names: Sequence[str] | None = None, **look: Unpack[Look]) -> alt.LayerChart:
    """Draw how often the arm of each row beats the arm of each column, best Copeland score first.

    Args:
        matrix: The preference matrix, its file or a problem's name.
        names: Names for the arms, in the matrix's order; by default its own.
        **look: How the figure looks: see `Look`.

    Raises:
        InvalidInput: If an option is wrong.
    """
    style = style_of("preferences", look)
    matrix = as_matrix(matrix)
    called = PreferenceMatrix(matrix.array, matrix.names if names is None else names)
    style = style.for_names([*called.names, matrix.name])
    points = preference_points(called)
    _, reach = ends((points["probability"] - 0.5).abs())
    cells = charts.probabilities("probability", reach or 0.5, ["row beats", "column"], style)
    winner = _winner(called)
    best = f"Condorcet winner: {style.label(winner)} (outlined)" if winner else "no Condorcet winner"
    below = f"K = {matrix.arms} · {best} · {charts.count(called.three_cycles, 'three-cycle')}"
    description = f"Heat map of the probability that the arm of the row beats that of the column. {below}."

    def draw(width: float) -> alt.LayerChart:
        grid = charts.grid_of(matrix.arms, points["probability"], cells, style, width)
        chart = charts.heat_map(points, unique(points, "row"), "probability", cells, winner, style, grid)
        notes = below + " · numbers in percent" * grid.is_brief
        return charts.add_title(chart, f"Preferences of {style.label(matrix.name)}", notes, description, style)

    return charts.fit(draw, charts.CELLS, style)


def preference_points(matrix: MatrixLike) -> pl.DataFrame:
    """List the probability that the arm `row` beats the arm `column`, for all pairs, best Copeland score first."""
    matrix = as_matrix(matrix)
    order = _copeland_order(matrix)
    rows = [(matrix.names[i], matrix.names[j], float(matrix.array[i, j])) for i in order for j in order]
    return pl.DataFrame(rows, schema=["row", "column", "probability"], orient="row")


def pairs(
    results: Results,
    matrix: MatrixLike | None = None,
    *,
    problem: str | None = None,
    policy: str | None = None,
    t: int | None = None,
    **look: Unpack[Look],
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how often each pair duelled up to time t, as the mean over runs, with a panel for each policy.

    Args:
        results: Results that recorded pairs (`simulate(..., record="pairs")`), or their folder.
        matrix: The problem's matrix, its file or name; it names the arms and orders them by Copeland score.
        problem: The problem to show; needed if there are several.
        policy: The policy to show; by default each has a panel.
        t: A checkpoint; by default each policy's last one.
        **look: How the figure looks: see `Look`.

    Raises:
        UnknownName: If the results have no such policy or problem.
        InvalidInput: If no pairs were recorded at that time, the matrix has another number of arms, or an option is
            wrong.
    """
    style = style_of("pairs", look)
    results = as_results(results)
    style = replace(style, name_of=results.name_of)
    known = None if matrix is None else as_matrix(matrix)
    points = pair_points(results, known, problem=problem, policy=policy, t=t)
    met = points.filter(pl.col("duels") > 0)
    order, cells = unique(points, "row"), charts.amounts("duels", *ends(met["duels"]), style=style)
    shown = points.select("policy", "t").unique(maintain_order=True).rows()
    headings = {name: f"{style.policy(name)}, t = {time:,}" for name, time in shown}
    problem = points["problem"][0]
    style = style.for_names([*headings, *unique(points, "policy"), *order, problem])
    title = f"Duels of each pair on {style.label(problem)}"
    title += f": {headings[shown[0][0]]}" if len(shown) == 1 else ""
    below = f"K = {len(order)} · mean over {charts.count(charts.span(points['runs']), 'run')} · blank: never"
    description = f"Heat map of how often each pair of arms duelled: {'; '.join(headings.values())}. {below}."

    columns = style.columns(len(headings), charts.COLUMNS)
    rows = -(-len(headings) // columns)

    def draw(width: float) -> alt.LayerChart | alt.ConcatChart:
        width = width if style.width is None or rows == 1 else min(width, charts.share_of_page(rows))
        panels = {}
        for name, heading in headings.items():
            here = met.filter(policy=name)
            grid = charts.grid_of(len(order), here["duels"], cells, style, width, grow=len(headings) == 1)
            panels[heading] = charts.heat_map(here, order, "duels", cells, _winner(known), style, grid)
        return charts.add_title(charts.side_by_side(panels.items(), style), title, below, description, style)

    return charts.fit(draw, charts.CELLS, style, columns)


def pair_points(
    results: Results,
    matrix: MatrixLike | None = None,
    *,
    problem: str | None = None,
    policy: str | None = None,
    t: int | None = None,
) -> pl.DataFrame:
    """Compute the mean number of duels of each pair of arms up to time t, in both orders, by policy."""
    results, known = as_results(results), None if matrix is None else as_matrix(matrix)
    if results.pairs is None:
        raise InvalidInput('the results have no pairs: record them with simulate(..., record="pairs")')
    pairs = only(only(results.pairs, "problem", problem), "policy", policy)
    if len(unique(pairs, "problem")) > 1:
        raise InvalidInput(f"there are pairs of {', '.join(unique(pairs, 'problem'))}: choose one with problem=…")
    times = pairs["t"].unique().sort()
    pairs = pairs.filter(pl.col("t") == (pl.col("t").max().over("policy") if t is None else t))
    if not len(pairs):
        raise InvalidInput(f"no pairs were recorded at t = {t}: expected one of {', '.join(map(str, times))}")
    if pairs.select("policy", "run", "first", "second").is_duplicated().any():
        raise InvalidInput("there are pairs of several horizons at that time: expected results of one horizon")
    arms = pairs["second"].n_unique()
    if known is not None and known.arms != arms:
        raise InvalidInput(f"the matrix has {known.arms} arms, expected the {arms} of the recorded pairs")
    names = [str(arm) for arm in range(arms)] if known is None else list(known.names)
    order = pl.Enum(names if known is None else [names[arm] for arm in _copeland_order(known)])
    mirrored = pairs.filter(pl.col("first") != pl.col("second")).with_columns(first="second", second="first")
    row, column = (pl.col(arm).replace_strict(range(arms), names).cast(order) for arm in ("first", "second"))
    return (
        pl.concat([pairs, mirrored])
        .with_columns(row=row, column=column)
        .group_by("problem", "policy", "t", "row", "column")
        .agg(runs=pl.len(), duels=pl.col("duels").mean())
        .sort(order_rows(pairs, "policy"), "row", "column")
        .with_columns(pl.col("row", "column").cast(pl.String))
    )


def _winner(matrix: PreferenceMatrix | None) -> str:
    """The Condorcet winner's name; empty if there is none."""
    return "" if matrix is None or matrix.condorcet_winner is None else matrix.names[matrix.condorcet_winner]


def _copeland_order(matrix: PreferenceMatrix) -> list[int]:
    """The arms by Copeland score, equals by Borda score, best first."""
    return sorted(range(matrix.arms), key=lambda arm: (-matrix.copeland_scores[arm], -matrix.borda_scores[arm]))
