"""What else may have moved a vote, such as the lengths of the two outputs, as features of a model."""

from collections.abc import Sequence

import numpy as np

from ..errors import InvalidInput, format_count
from ..votes.votes import Votes
from .counts import Floats

Covariate = str | tuple[str, str]  # a column that favors left, or one of the left arm and one of the right arm


def covariate_columns(covariates: object) -> tuple[Covariate, ...]:
    """Return covariates, checked.

    Raises:
        InvalidInput: If they are not names of columns, or pairs of names.
    """
    if covariates is None:
        return ()
    listed = [covariates] if isinstance(covariates, str) else covariates
    if not isinstance(listed, Sequence):
        raise InvalidInput(f"covariates is {covariates!r}: expected a list of columns, or of pairs of columns")
    for one in listed:
        pair = isinstance(one, tuple | list) and len(one) == 2 and all(isinstance(name, str) for name in one)
        if not (isinstance(one, str) or pair):
            raise InvalidInput(
                f"covariate {one!r}: expected a column that is already left minus right, such as 'length_difference', "
                "or a pair of columns, such as ('length_left', 'length_right')"
            )
    return tuple(one if isinstance(one, str) else (one[0], one[1]) for one in listed)


def columns_of(covariates: Sequence[Covariate]) -> list[str]:
    """Return the names of all columns that covariates need."""
    return [name for one in covariates for name in ([one] if isinstance(one, str) else one)]


def features(votes: Votes, covariates: Sequence[Covariate]) -> Floats:
    """Return (n, F) float64: one column per covariate, each divided by the root of its mean square.

    A pair of columns a, b becomes (a − b) / (a + b + 1). Means are not subtracted: so nothing changes if left and right
    are swapped everywhere, and a column of ones is the advantage of the left side.

    Raises:
        InvalidInput: If a column is not numeric, or has empty cells.
    """
    columns = [_difference(votes, one) for one in covariates]
    table = np.stack(columns, axis=1) if columns else np.zeros((len(votes), 0))
    size = np.sqrt(np.average(table**2, axis=0, weights=votes.count)) if len(votes) else np.ones(table.shape[1])
    return np.asarray(table / np.where(size > 0, size, 1))


def _difference(votes: Votes, covariate: Covariate) -> Floats:
    if isinstance(covariate, str):
        return _numbers(votes, covariate)
    left, right = (_numbers(votes, name) for name in covariate)
    for name, column in zip(covariate, (left, right)):
        if (column < 0).any():
            raise InvalidInput(
                f"covariate {name!r} is {column.min():g} in a vote: expected 0 or more in pairs of columns, which "
                "become (a − b) / (a + b + 1); for other numbers give one column that is left minus right"
            )
    return (left - right) / (left + right + 1)


def _numbers(votes: Votes, name: str) -> Floats:
    column = votes.extra[name]
    if not (column.dtype.is_numeric() or column.dtype == bool):
        raise InvalidInput(f"covariate {name!r} has cells such as {column[0]!r}: expected numbers")
    numbers = column.cast(float).to_numpy()
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InvalidInput(
            f"covariate {name!r} is empty or not finite in {format_count(len(bad), 'vote')}, the first in row "
            f"{votes.lines[bad[0]]} of {votes.source}: expected a number in each; leave these votes out"
        )
    return np.asarray(numbers, dtype=np.float64)
