"""What the figures of results share: the rows they show, a panel for each problem, and titles that say what was run."""

from collections.abc import Callable
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from ..errors import InvalidInput, UnknownName
from ..results import Results, as_results, ordered
from . import charts

PANEL = (270, 220)  # width and height where there are several
Layers = Callable[[pl.DataFrame, alt.X, Callable[[str], alt.Y]], list[Any]]  # a problem's points, x, y of a column


def over_runs(results: Results, columns: list[str]) -> pl.DataFrame:
    """Those columns of the summary at the times that count (see `regret_points`), in the order of the results."""
    results = as_results(results)
    frame = results.frame
    if not len(frame):
        raise InvalidInput("the results have no rows: there is nothing to draw")
    horizon, t, fresh = pl.col("horizon"), pl.col("t"), pl.col("fresh")
    start = pl.when(fresh.any().over("problem")).then(horizon.min().over("problem")).otherwise(1)
    return (
        results.summarise()
        .with_columns(fresh=horizon.n_unique().over("problem", "policy") > 1)
        .filter(t >= start, ~fresh | (t == horizon))
        .with_columns(marked=fresh | (pl.len().over("problem", "policy") == 1))
        .sort(ordered(frame, "problem"), ordered(frame, "policy"), "t")
        .select("problem", "arms", "policy", "horizon", "t", "runs", *columns, "fresh", "marked")
    )


def key_of_policies(points: pl.DataFrame) -> charts.Key:
    return charts.key_of(unique(points, "policy"), unique(points.filter("marked"), "policy"))


def panels(points: pl.DataFrame, key: charts.Key, axis: dict[str, Any], layers: Layers) -> Any:
    """A panel for each problem, side by side with one legend."""
    problems = points.partition_by("problem", maintain_order=True)
    width, height = (charts.WIDTH, charts.HEIGHT) if len(problems) == 1 else PANEL
    legend = key.layer(width * min(len(problems), charts.COLUMNS))
    found = {}
    for place, here in enumerate(problems):
        x = alt.X("t:Q", **charts.log_axis("time t", *ends(here["t"])))
        shown = axis if place % charts.COLUMNS == 0 else {**axis, "title": None}
        panel = alt.layer(*layers(here, x, partial(alt.Y, **shown)), legend).properties(width=width, height=height)
        found[" · ".join([*named(here), f"K = {here['arms'][0]}"])] = panel
    return charts.side_by_side(found)


def named(points: pl.DataFrame) -> list[str]:
    """The problem's name, unless it says no more than K: `16 arms`."""
    name, arms = points.select("problem", "arms").row(0)
    return [] if name == f"{arms} arms" else [name]


def finished(points: pl.DataFrame, chart: Any, title: str, notes: list[str], said: str, pool: str) -> Any:
    """The chart with a title that says what was run, and of which pool the arms are if there is one."""
    horizons = charts.span(points["horizon"])
    below = f"{charts.count(charts.span(points['runs']), 'run')} · horizon{'s' if ' ' in horizons else ''} {horizons}"
    shown = "arms" if pool else ""
    if points["problem"].n_unique() == 1:
        shown = points["problem"][0]
        below = f"K = {points['arms'][0]} · {below}" if named(points) else below
    title += f" on {shown}" * bool(shown) + f" of {pool}" * bool(pool)
    return charts.titled(chart, title, [below, *notes], f"{title}: {below}. {said}")


def last(points: pl.DataFrame, column: str, style: str) -> str:
    """The last value of each line in words."""
    rows = points.drop_nulls(column).group_by("problem", "policy", maintain_order=True).last().to_dicts()
    said = [f"{row['policy']} on {row['problem']} {row[column]:{style}}" for row in rows]
    return f"At the end: {', '.join(said)}."


def only(frame: pl.DataFrame, column: str, name: str | None) -> pl.DataFrame:
    if name is not None and name not in unique(frame, column):
        raise UnknownName(column, name, unique(frame, column))
    return frame if name is None else frame.filter(pl.col(column) == name)


def unique(frame: pl.DataFrame, column: str) -> list[str]:
    return frame[column].unique(maintain_order=True).to_list()


def ends(numbers: pl.Series) -> tuple[float, float]:
    """The least and the largest number; nulls do not count."""
    in_order = numbers.drop_nulls().sort().to_list()
    return in_order[0], in_order[-1]
