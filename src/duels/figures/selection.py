"""Which rows of the results a figure shows, and the numbers and names in its titles."""

import os
from functools import cache

import polars as pl
from numpy.typing import ArrayLike

from .. import specs
from ..errors import InvalidInput, UnknownName
from ..policies import BUILT_IN, load_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..provenance import digests
from ..results import Results

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MatrixLike = PreferenceMatrix | ArrayLike | os.PathLike[str]  # a matrix, an array, a file or a problem's name


def matrix_of(results: Results, matrix: MatrixLike) -> PreferenceMatrix:
    """Return the matrix.

    Raises:
        InvalidInput: If the results are not of this matrix.
    """
    found = as_matrix(matrix)
    known = unique(results.frame, "problem")
    if found.name not in known:
        raise InvalidInput(f"the matrix is called {found.name!r}, the results are of {', '.join(known)}: expected one")
    for problem, digest in digests(results.provenance):
        if problem == found.name and digest != found.digest:
            raise InvalidInput(f"the results are of another matrix that is called {found.name!r}: expected that one")
    return found


def of_run(
    table: pl.DataFrame | None, missing: str, matrix: PreferenceMatrix, policy: str | None, run: int
) -> pl.DataFrame:
    """Select what was recorded in one run of one policy; if there is nothing, raise an error that ends in `missing`."""
    rows = None if table is None else table.filter(problem=matrix.name)
    if rows is None or not len(rows):
        raise InvalidInput(f"the results of {matrix.name} have no {missing}")
    rows = rows.filter(policy=one_policy(rows, policy))
    runs = rows["run"].unique().sort()
    if run not in runs:
        raise InvalidInput(f"nothing was recorded of run {run}: expected one from {runs[0]} to {runs[-1]}")
    return without_repeats(rows.filter(run=run), "t", "first", "second").sort("t", maintain_order=True)


def one_policy(rows: pl.DataFrame, policy: str | None) -> str:
    """Return the policy with that name, or the only one."""
    known = unique(only(rows, "policy", policy), "policy")
    if len(known) != 1:
        raise InvalidInput(f"the results are of {', '.join(known)}: choose one with policy=…")
    return known[0]


def only(rows: pl.DataFrame, column: str, name: str | None) -> pl.DataFrame:
    """Select the rows with a name in a column; None selects all."""
    known = unique(rows, column)
    if name is not None and name not in known:
        raise UnknownName(column, name, known)
    return rows if name is None else rows.filter(pl.col(column) == name)


def at(rows: pl.DataFrame, t: int | None) -> pl.DataFrame:
    """Select the rows of a checkpoint, by default the last one."""
    times = rows["t"].unique().sort()
    if t is not None and t not in times:
        around = [times.filter(times < t).tail(1), times.filter(times > t).head(1)]
        nearest = " or ".join(f"{time[0]}" for time in around if len(time))
        raise InvalidInput(f"there is no checkpoint t = {t}: expected {nearest}, or simulate with checkpoints=[{t}]")
    return rows.filter(t=times[-1] if t is None else t)


def without_repeats(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Drop duplicate rows: runs with several horizons are equal unless the policy needs a horizon.

    Raises:
        InvalidInput: If rows with the same keys differ.
    """
    rows = rows.select(pl.exclude("horizon")).unique(maintain_order=True)
    if rows.select(keys).is_duplicated().any():
        raise InvalidInput(f"there are runs of {rows['policy'][0]} with several horizons: expected results of one")
    return rows


@cache
def alpha_of(policy: str) -> float | None:
    """Return the α of a policy for which the bounds of `theory` hold; None for other policies."""
    name, given = specs.split_spec(policy, "policy")
    if name not in BUILT_IN:
        return None  # results have only the name of a user's policy
    chosen = load_policy(name)
    parameter = getattr(chosen.module, "THEORY_ALPHA", None)
    if parameter is None:
        return None
    return float(specs.fill(name, given, chosen.params._asdict(), "duels experiment policies")[parameter])


def rucb_alpha(policy: str) -> float:
    """Return the α of RUCB; raise an error for policies without its bounds."""
    alpha = alpha_of(policy)
    if alpha is None:
        raise InvalidInput(f"this figure is about rucb: found {policy}, expected rucb or, say, rucb:alpha=1.5")
    return alpha


def format_arm(name: str) -> str:
    """Write an arm's name as in a sentence."""
    return f"arm {name}" if name.isdigit() else name


def refuse_other_notions(results: Results, problem: str | None = None) -> None:
    """Raise if the regret is not the one that the paper's theorems are about.

    Args:
        results: The results.
        problem: The problem that is shown; by default all.
    """
    for name in unique(only(results.frame, "problem", problem), "problem"):
        others = [notion for notion in results.notions_of(name) if notion != "condorcet"]
        if others:
            raise InvalidInput(f"the theorems bound Condorcet regret, and that on {name} is {', '.join(others)} regret")


def power(exponent: float) -> str:
    """Write 10 to a power: numbers from 0.001 to a million in full, others as 10¹⁷."""
    if -3 <= exponent < 6:
        return f"{10**exponent:,.0f}" if exponent >= 0 else f"{10**exponent:g}"
    return "10" + f"{exponent:.0f}".translate(SUPERSCRIPTS)


def unique(frame: pl.DataFrame, column: str) -> list[str]:
    """List the distinct names in a column, in the order of the rows."""
    return frame[column].unique(maintain_order=True).to_list()


def ends(numbers: pl.Series) -> tuple[float, float]:
    """Return the least and the largest number; nulls do not count."""
    in_order = numbers.drop_nulls().sort().to_list()
    return in_order[0], in_order[-1]
