"""Votes as counts per pair, and which ratings these counts leave without a finite value.

What else may have moved a vote, such as the lengths of the two outputs, as features of a model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput, format_count
from ..votes.votes import Votes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
FEW = 60  # arms: with more, sparse matrices are quicker
WON, LOST, TIED = range(3)  # outcomes of a cell: the first arm won, it lost, or neither
MEAN = 1000.0  # of the ratings on the scale of Elo, without an anchor
POINTS = 400 / np.log(10)  # Elo points per logit


class Cells(NamedTuple):
    """Votes on two arms, counted by outcome. One cell per pair; with features, one per vote.

    Attributes:
        arms: K, the number of arms.
        first: (m,) int64: The first arm of each cell.
        second: (m,) int64: The second arm of each cell.
        counts: (3, m) float64, or (3, m, rounds): How often the first arm won, lost and tied.
        features: (m, F) float64: What else may have moved the votes, in favor of the first arm; F is 0 for pairs.
    """

    arms: int
    first: Ints
    second: Ints
    counts: Floats
    features: Floats


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(−x))."""
    from scipy.special import expit

    return np.asarray(expit(x))


def cells_of_pairs(wins: Ints | Floats, ties: Ints | Floats) -> Cells:
    """Return one cell per pair that has met.

    Args:
        wins: (K, K): As in a `Tally`.
        ties: (K, K): As in a `Tally`.
    """
    first, second = np.nonzero(np.triu(wins + wins.T + ties, 1))
    counts = np.stack([wins[first, second], wins[second, first], ties[first, second]]).astype(np.float64)
    return Cells(len(wins), first, second, counts, np.zeros((len(first), 0)))


def cells_of_votes(votes: Votes, features: Floats) -> Cells:
    """Return one cell per row of votes; the first arm is the left one.

    Args:
        votes: n rows.
        features: (n, F).
    """
    outcome = np.minimum(votes.winner, TIED)
    counts = np.stack([outcome == kind for kind in (WON, LOST, TIED)]).astype(np.float64)
    if votes.count is not None:
        counts *= votes.count
    return Cells(len(votes.names), votes.left, votes.right, counts, features)


def with_average_arm(cells: Cells) -> Cells:
    """Return the cells with one more arm, the average one, against which every arm has half a win and half a loss."""
    arms = np.arange(cells.arms)
    halves = np.zeros((3, cells.arms))
    halves[[WON, LOST]] = 0.5
    return Cells(
        cells.arms + 1,
        np.append(cells.first, arms),
        np.append(cells.second, np.full(cells.arms, cells.arms)),
        np.concatenate([cells.counts, halves], axis=1),
        np.concatenate([cells.features, np.zeros((cells.arms, cells.features.shape[1]))]),
    )


def is_connected(cells: Cells) -> bool:
    """Return whether every arm has beaten or tied every other, itself or through a chain of arms."""
    return bool((groups(cells) == 0).all())


def groups(cells: Cells) -> Ints:
    """Return (K,) int64: the group of each arm, from 0. The arms of a group reach one another, see `reaches`."""
    if cells.arms <= FEW:
        found = _closure(cells)
        return np.unique((found & found.T).argmax(axis=1), return_inverse=True)[1]
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(_beats(cells), directed=True, connection="strong")[1], np.int64)


def reaches(cells: Cells) -> Bools:
    """Return (K, K) bool: whether i has beaten or tied j, itself or through a chain of arms.

    If i does not reach j, the likelihood grows forever as i gets worse compared with j: the votes have no lower limit
    for i's rating minus j's.
    """
    if cells.arms <= FEW:
        return _closure(cells)
    if is_connected(cells):
        return np.ones((cells.arms, cells.arms), dtype=bool)
    from scipy.sparse.csgraph import shortest_path

    return np.asarray(np.isfinite(shortest_path(_beats(cells), unweighted=True)))


def main_group(cells: Cells) -> Bools:
    """Return (K,) bool: the largest of the `groups`, the one with the first arm of several; all if each has one arm."""
    group = groups(cells)
    size = np.bincount(group)[group]
    return group == group[np.argmax(size)] if size.max() > 1 else np.ones(cells.arms, dtype=bool)


def _closure(cells: Cells) -> Bools:
    """As `reaches`, by squaring the matrix of who beat whom."""
    won, lost, tied = cells.counts > 0
    found = np.eye(cells.arms, dtype=bool)
    found[cells.first[won | tied], cells.second[won | tied]] = True
    found[cells.second[lost | tied], cells.first[lost | tied]] = True
    while not np.array_equal(further := found @ found, found):
        found = further
    return found


def _beats(cells: Cells) -> object:
    """A sparse (K, K) matrix with an entry where i has beaten or tied j."""
    from scipy.sparse import csr_array

    won, lost, tied = cells.counts > 0
    winners = np.append(cells.first[won | tied], cells.second[lost | tied])
    losers = np.append(cells.second[won | tied], cells.first[lost | tied])
    return csr_array((np.ones(len(winners)), (winners, losers)), shape=(cells.arms, cells.arms))


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
