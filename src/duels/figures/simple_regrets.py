"""The figure of simple regret over time: how good the recommendation is, as the median over runs."""

from dataclasses import replace
from typing import Unpack

import altair as alt
import polars as pl

from ..errors import InvalidInput
from ..results import Results, as_results
from . import charts, legends
from .charts import Layered, Options
from .look import BANDS, Look, Style, style_of
from .over_time import TIME, Chart, Row, YOf, at_times, key_of_policies, last, panels, time_axis, with_notion
from .selection import ends, only, unique

SIMPLE, DUELS = "simple regret", "duels"
SPREADS = {
    "quantiles": ("simple_regret_q25", "simple_regret_q75"),
    "minmax": ("simple_regret_min", "simple_regret_max"),
}
EDGES = [edge for edges in SPREADS.values() for edge in edges]


def simple_regret(results: Results, *, problem: str | None = None, pool: str = "", **look: Unpack[Look]) -> Chart:
    """Draw the median simple regret over runs against time, on a logarithmic axis, with the middle half as a band.

    Time is linear for continuous spaces, whose runs are short, and logarithmic otherwise.

    Args:
        results: The results, or their folder.
        problem: The problem to show; by default each has a panel.
        pool: The name of the matrix that the problems' arms were drawn from, for the title.
        **look: How the figure looks: see `Look`. The `band` is `"quantiles"`, `"minmax"` or None.

    Raises:
        UnknownName: If the results have no such problem.
        InvalidInput: If an option is wrong.

    Example:
        >>> results = duels.simulate("branin", "eubo", horizon=50, runs=20)
        >>> duels.figures.save(duels.figures.simple_regret(results, width="column"), "simple.pdf")
    """
    style = style_of("simple_regret", look, bands=list(SPREADS), band="quantiles", direct=True, axes="xy", scales="xy")
    results = as_results(results)
    style = replace(style, name_of=results.name_of)
    points = only(simple_regret_points(results), "problem", problem)
    several = bool(((points["runs"] > 1) & (points["fresh"] | ~points["marked"])).any())  # runs, and times to join
    if look.get("band") and not several:
        raise InvalidInput(f"band is {style.band!r}, but no policy has several runs over time: leave it out")
    band = style.band if several else None
    edges = SPREADS[band] if band else ()
    points = points.drop([edge for edge in EDGES if edge not in edges])
    none = pl.col("simple_regret").is_null().all().over("problem")
    zero = unique(points.filter(none), "problem")
    filled = none | (style.y.scale == "linear")
    points = points.with_columns(
        pl.when(filled).then(pl.col(name).fill_null(0)).otherwise(name) for name in ("simple_regret", *edges)
    )
    key = key_of_policies(points, style)
    if band:
        key = legends.with_band(key, BANDS[band])
    notes = [f"the median is always 0 on {', '.join(map(style.label, zero))}"] if zero else []
    notions = {name: results.notions_of(name) for name in unique(points, "problem")}
    titles = {name: with_notion(SIMPLE, found) for name, found in notions.items()}
    times = TIME if points["arms"].null_count() == 0 else DUELS

    def axis(here: pl.DataFrame) -> Options:
        """Functions differ in how near their maximum is, so each panel has its own axis."""
        seen = style.around(here, "t")
        numbers = pl.concat([seen[column] for column in ("simple_regret", *edges)]).drop_nulls()
        above = numbers.filter(numbers > 0)
        if (here["simple_regret"] > 0).any() and len(above):
            (least, largest), usual = ends(above), "log"
            room = max(largest / least, 10) ** 0.03  # so that marks stay inside
            least, largest = least / room, largest * room
        else:
            least, largest, usual = 0.0, max(*numbers, 0.0) or 1.0, "linear"
        return charts.axis_of("y", titles[here["problem"][0]], least, largest, style, usual)

    def layers(here: pl.DataFrame, x: alt.X, y: YOf, key: legends.Key) -> Layered:
        found: Layered = []
        if edges:
            low, high = edges
            floor = axis(here)["scale"].domain[0]  # a band that reaches down to 0 has no end on a logarithmic axis
            rows = here.drop_nulls(["simple_regret", high]).with_columns(pl.col(low).fill_null(floor))
            found.append(legends.area(rows, x, y(f"{low}:Q"), high, key, "policy"))
        return [*found, *legends.lines(here, x, y("simple_regret:Q"), key, "policy", style)]

    at_end = last(points.with_columns(pl.col("simple_regret").fill_null(0)), "simple_regret", ".3g", style)
    alike = len({*map(tuple, notions.values())}) == 1
    title = with_notion("Median simple regret", next(iter(notions.values()))) if alike else "Median simple regret"
    names = [*titles, *titles.values(), times]
    description = f"Median simple regret over runs against time. {at_end}"
    row = Row(points, "simple_regret", key, axis, layers, style, names, title, notes, description)
    return panels([row], pool, time_axis if times == TIME else _duels_axis)


def _duels_axis(here: pl.DataFrame, is_lowest: bool, style: Style) -> Options:
    """The options of a panel's x axis, by default linear from 0 to the last duel."""
    axis = charts.axis_of("x", DUELS, *ends(here["t"]), style, "linear")
    axis["axis"].grid = False
    return axis if is_lowest else axis | {"title": ""}


def simple_regret_points(results: Results) -> pl.DataFrame:
    """Compute the median simple regret over runs and its spread, by problem, policy and time.

    The spread is the quartiles (`simple_regret_q25`, `simple_regret_q75`) and the best and the worst run
    (`simple_regret_min`, `simple_regret_max`). The times are those of `regret_points`. A regret of 0 is null, because
    it has no logarithm.
    """
    results = as_results(results)
    simple = pl.col("simple_regret")
    summary = results.frame.group_by("problem", "arms", "policy", "horizon", "t", maintain_order=True).agg(
        simple.median(),
        runs=pl.len(),
        simple_regret_min=simple.min(),
        simple_regret_max=simple.max(),
        simple_regret_q25=simple.quantile(0.25, "linear"),
        simple_regret_q75=simple.quantile(0.75, "linear"),
    )
    columns = ["simple_regret", *EDGES]
    found = at_times(results.frame, summary, columns)
    return found.with_columns(pl.when(pl.col(column) > 0).then(column) for column in columns)
