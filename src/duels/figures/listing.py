"""The list of figures: what `duels experiment plot`, the report and `duels reproduce` can draw, by name.

A new figure is a function in `OF_RESULTS` or in `OF_MATRICES`. It returns `Figure`s: a chart with its name, title,
caption and data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import altair as alt
import polars as pl

from ..preference import PreferenceMatrix
from ..results import Results
from .heat_maps import preference_points, preferences
from .look import Look
from .over_time import accuracy, regret, regret_and_accuracy
from .selection import alpha_of, unique
from .simple_regrets import simple_regret
from .subset_assumptions import condorcet_probability


class Table(NamedTuple):
    """The data of a figure."""

    heads: Sequence[str] = ()
    rows: Sequence[tuple[object, ...]] = ()
    row_heads: bool = False  # whether the first column names the rows


class Figure(NamedTuple):
    """A chart with everything that belongs to it."""

    name: str  # of its files and links
    title: str
    caption: str
    chart: alt.LayerChart | alt.ConcatChart | alt.FacetChart
    table: Table = Table()


class Subject(NamedTuple):
    """What figures are drawn of: results, matrices, or both."""

    results: Results | None
    matrices: Mapping[str, PreferenceMatrix]  # by problem
    pool: PreferenceMatrix | None = None  # the matrix that the problems' arms were drawn from
    look: Look = Look()

    @property
    def origin(self) -> str:
        """The pool's name, for titles; empty if the pool is itself a problem."""
        names = {matrix.name for matrix in self.matrices.values()}
        return "" if self.pool is None or self.pool.name in names else self.pool.name


def results_figures(subject: Subject) -> list[Figure]:
    """Draw the usual figures of results, leaving out those without any data.

    Args:
        subject: Results with the matrices of their problems.

    Returns:
        Regret, its bounds if they are near enough to be drawn, and accuracy.
    """
    frame = _results(subject).frame
    names = []
    if (frame["regret"] > 0).any():  # a logarithmic axis cannot show 0
        names.append("regret")
        condorcet = set(_results(subject).notion.split(", ")) == {"condorcet"}
        if (
            condorcet
            and _with_winner(subject)
            and any(alpha_of(policy) is not None for policy in unique(frame, "policy"))
        ):
            names.append("bounds")
    return [figure for name in [*names, "accuracy"] for figure in FIGURES[name](subject) if figure.table.rows]


def _regret(subject: Subject) -> Iterator[Figure]:
    results = _results(subject)
    caption = f"Mean over runs; dotted lines: the best and the worst run. {_describe_horizons(results)}"
    columns = ("problem", "policy", "t", "runs", "regret", "regret_min", "regret_max")
    chart = regret(results, pool=subject.origin, **subject.look)
    yield Figure("regret", "Regret over time", caption, chart, _data(chart, columns))


def _bounds(subject: Subject) -> Iterator[Figure]:
    chart = regret(
        _results(subject), bounds=_with_winner(subject) or subject.matrices, pool=subject.origin, **subject.look
    )
    caption = "Regret, and the theorems' bounds on RUCB's regret where they are low enough to be drawn."
    yield Figure("bounds", "Regret and its bounds", caption, chart, _data(chart, ("problem", "label", "t", "bound")))


def _accuracy(subject: Subject) -> Iterator[Figure]:
    results = _results(subject)
    best = "the Condorcet winner" if results.notion == "condorcet" else f"a best arm ({results.notion})"
    caption = f"The share of runs that name {best}, with 95% intervals. {_describe_horizons(results)}"
    columns = ("problem", "policy", "t", "runs", "accuracy", "accuracy_low", "accuracy_high")
    chart = accuracy(results, pool=subject.origin, **subject.look)
    yield Figure("accuracy", "Accuracy over time", caption, chart, _data(chart, columns))


def _both(subject: Subject) -> Iterator[Figure]:
    results = _results(subject)
    chart = regret_and_accuracy(results, pool=subject.origin, **subject.look)
    caption = (
        f"Top: mean regret; dotted lines: the best and the worst run. Bottom: accuracy. {_describe_horizons(results)}"
    )
    yield Figure("regret_and_accuracy", "Regret and accuracy over time", caption, chart)


def _simple_regret(subject: Subject) -> Iterator[Figure]:
    results = _results(subject)
    caption = f"Simple regret of the recommendation: the median over runs. {_describe_horizons(results)}"
    chart = simple_regret(results, pool=subject.origin, **subject.look)
    columns = ("problem", "policy", "t", "runs", "simple_regret")
    yield Figure("simple_regret", "Simple regret over time", caption, chart, _data(chart, columns))


def _subsets(subject: Subject) -> Iterator[Figure]:
    """Of the pool; without one, of each matrix."""
    shown = subject.matrices if subject.pool is None else {subject.pool.name: subject.pool}
    for place, (name, matrix) in enumerate(shown.items()):
        caption = f"How likely it is that K arms drawn from {name} have a Condorcet winner, and a total order."
        chart = condorcet_probability(matrix, **subject.look)
        data = _data(chart, ("size", "assumption", "probability", "exact"))
        key = "assumptions" if len(shown) == 1 else f"assumptions-{place}"
        yield Figure(key, "Assumptions on subsets", caption, chart, data)


def _preferences(subject: Subject) -> Iterator[Figure]:
    """Of each matrix, and of the pool if it is another one."""
    shown, pool = dict(subject.matrices), subject.pool
    if pool is not None and pool.digest not in {matrix.digest for matrix in shown.values()}:
        shown[pool.name] = pool
    for place, (name, matrix) in enumerate(shown.items()):
        caption = f"{name}: how often the arm of the row beats that of the column. Arms that beat more come first."
        chart = preferences(matrix, **subject.look)
        yield Figure(f"preferences-{place}", f"Preferences of {name}", caption, chart, _square(matrix))


Drawing = Callable[[Subject], Iterator[Figure]]
OF_RESULTS: dict[str, Drawing] = {
    "regret": _regret,
    "bounds": _bounds,  # needs the matrices too
    "accuracy": _accuracy,
    "regret_and_accuracy": _both,
    "simple_regret": _simple_regret,
}
OF_MATRICES: dict[str, Drawing] = {
    "preferences": _preferences,
    "subsets": _subsets,
}
FIGURES = OF_RESULTS | OF_MATRICES


def _results(subject: Subject) -> Results:
    assert subject.results is not None
    return subject.results


def _with_winner(subject: Subject) -> dict[str, PreferenceMatrix]:
    return {name: matrix for name, matrix in subject.matrices.items() if matrix.condorcet_winner is not None}


def _describe_horizons(results: Results) -> str:
    """Say which policies were run with several horizons."""
    counts = results.frame.group_by("policy", maintain_order=True).agg(pl.col("horizon").n_unique())
    policies = [results.name_of(name) for name in counts.filter(pl.col("horizon") > 1)["policy"]]
    if not policies:
        return ""
    names = " and ".join([", ".join(policies[:-1]), policies[-1]][len(policies) == 1 :])
    return f"{names} must know the horizon: each mark is for separate runs with that horizon."


def _data(chart: alt.LayerChart | alt.ConcatChart, columns: Sequence[str]) -> Table:
    """Collect the rows inside a chart that have all these columns, each once."""
    rows: dict[tuple[object, ...], None] = {}

    def gather(node: object) -> None:
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            if isinstance(inner, dict) and all(column in inner for column in columns):
                rows[tuple(inner[column] for column in columns)] = None
            else:
                gather(inner)

    gather(chart.to_dict(validate=False))
    return Table(columns, list(rows))


def _square(matrix: PreferenceMatrix) -> Table:
    """The matrix in the order of its figure."""
    names = unique(preference_points(matrix), "row")
    return Table(["", *names], [(i, *(f"{matrix[i, j]:.3f}" for j in names)) for i in names], row_heads=True)
