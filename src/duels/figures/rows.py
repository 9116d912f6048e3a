"""The rows of the results that a figure is about, and the numbers it says of them."""

from typing import Any

import polars as pl

from .. import specs
from ..errors import InvalidInput, UnknownName
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..provenance import digests
from ..results import Results


def matrix_of(results: Results, matrix: Any) -> PreferenceMatrix:
    """The matrix, if it is one that the results are of."""
    found = as_matrix(matrix)
    known = results.frame["problem"].unique(maintain_order=True).to_list()
    if found.name not in known:
        raise InvalidInput(f"the matrix is called {found.name!r}, the results are of {', '.join(known)}: expected one")
    for problem, digest in digests(results.provenance):
        if problem == found.name and digest != found.digest:
            raise InvalidInput(f"the results are of another matrix that is called {found.name!r}: expected that one")
    return found


def of_run(
    table: pl.DataFrame | None, missing: str, matrix: PreferenceMatrix, policy: str | None, run: int
) -> pl.DataFrame:
    """What was recorded of one run of one policy; an error that ends with `missing` if nothing was."""
    rows = None if table is None else table.filter(problem=matrix.name)
    if rows is None or not len(rows):
        raise InvalidInput(f"the results of {matrix.name} have no {missing}")
    rows = rows.filter(policy=one_policy(rows, policy))
    runs = rows["run"].unique().sort()
    if run not in runs:
        raise InvalidInput(f"nothing was recorded of run {run}: expected one from {runs[0]} to {runs[-1]}")
    return without_repeats(rows.filter(run=run), "t", "first", "second").sort("t", maintain_order=True)


def one_policy(rows: pl.DataFrame, policy: str | None) -> str:
    """The policy of that name, or the only one there is."""
    known = only(rows, "policy", policy)["policy"].unique(maintain_order=True).to_list()
    if len(known) != 1:
        raise InvalidInput(f"the results are of {', '.join(known)}: choose one with policy=…")
    return known[0]


def only(rows: pl.DataFrame, column: str, name: str | None) -> pl.DataFrame:
    """The rows with that name in the column; all if it is None."""
    known = rows[column].unique(maintain_order=True).to_list()
    if name is not None and name not in known:
        raise UnknownName(f"{column} for this figure", name, known)
    return rows if name is None else rows.filter(pl.col(column) == name)


def at(rows: pl.DataFrame, t: int | None) -> pl.DataFrame:
    """The rows of a checkpoint, by default the last."""
    times = rows["t"].unique().sort()
    if t is not None and t not in times:
        around = [times.filter(times < t).tail(1), times.filter(times > t).head(1)]
        nearest = " or ".join(f"{time[0]}" for time in around if len(time))
        raise InvalidInput(f"there is no checkpoint t = {t}: expected {nearest}, or simulate with checkpoints=[{t}]")
    return rows.filter(t=times[-1] if t is None else t)


def without_repeats(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Each row once: runs with several horizons begin alike if the policy needs none, and are refused if not."""
    rows = rows.select(pl.exclude("horizon")).unique(maintain_order=True)
    if rows.select(keys).is_duplicated().any():
        raise InvalidInput(f"there are runs of {rows['policy'][0]} with several horizons: expected results of one")
    return rows


def alpha_of(policy: str) -> float | None:
    """RUCB's α; None for other policies."""
    name, given = specs.split(policy, "policy")
    if name != "rucb":
        return None
    return float(specs.fill(name, given, find_policy(name).params._asdict(), "duels policies")["alpha"])


def rucb_alpha(policy: str) -> float:
    alpha = alpha_of(policy)
    if alpha is None:
        raise InvalidInput(f"this figure is about rucb: found {policy}, expected rucb or, say, rucb:alpha=1.5")
    return alpha


def called(name: str) -> str:
    """An arm's name in a sentence."""
    return f"arm {name}" if name.isdigit() else name


def power(exponent: float) -> str:
    """10 to that power: 1,234 as such, larger numbers as 10^17."""
    return f"{10**exponent:,.0f}" if exponent < 6 else f"10^{exponent:.0f}"


def span(numbers: pl.Series) -> str:
    least, most = number(numbers.min()), number(numbers.max())
    return f"{most:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"


def number(value: Any) -> float:
    """A number of polars, whose types say that it might be anything."""
    return float(value)
