"""Votes that depend on one another, such as those of one voter: clusters, of which each counts as one observation.

The covariance of ratings is estimated from the sums of slopes over the votes of each cluster, one sum per cluster
(Liang and Zeger 1986). Such estimates are too small for two reasons, and both matter if there are few clusters, or if a
few have most of the votes:

- A large cluster pulls the fit towards its own votes. Its sum of slopes is divided by the share of the other clusters'
  votes, arm by arm, as if the fit had left it out; this approximates the jackknife over clusters (Bell and McCaffrey
  2002 compare such corrections).
- The estimate is uncertain itself. Its quantiles are those of Student's t, whose degrees of freedom are the effective
  number of clusters minus 1: (Σ n)² / Σ n², where n are the votes of each cluster on an arm (Carter, Schnepel and
  Steigerwald 2017).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from ..votes.votes import Votes
from .counts import TIED, Cells, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VOTER = "voter"  # as a cluster: who voted, whatever the column is called
Codes = npt.NDArray[np.int32]
FEW = 10  # clusters: with fewer, how much they differ is hardly known
MOST_RECORDS = 1_000_000  # votes that are summed at once …
MOST_SUMS = 8_000_000  # … and the most sums
DENSE = 0.05  # from this share of entries that are not 0, products of dense matrices are quicker


class Clusters(NamedTuple):
    """The clusters of N rows of votes.

    Attributes:
        name: What a cluster is, such as voter.
        size: G, the number of clusters.
        cluster: (N,) int32: From 0.
        cell: (N,) int32: Where the votes are counted: indices of cells.
        outcome: (N,) int8: Whether the cell's first arm won, it lost, or neither.
        weight: (N,) float64: How many equal votes a row stands for; None if that is 1 for all.
    """

    name: str
    size: int
    cluster: Codes
    cell: Codes
    outcome: npt.NDArray[np.int8]
    weight: Floats | None

    @property
    def total(self) -> int:
        """How many votes there are."""
        return len(self.cell) if self.weight is None else int(self.weight.sum())


class Sums(NamedTuple):
    """What the clusters say about P parameters, of which the first are θ of K arms.

    Attributes:
        products: (P, P) float64: The sum over clusters of the products of their slopes, corrected.
        effective: (P,) float64: The effective number of clusters.
    """

    products: Floats
    effective: Floats


def cluster_codes(votes: Votes, cluster: str) -> tuple[Codes, int]:
    """Return (n,) the cluster of each row of votes, from 0, and how many clusters there are.

    A vote without a voter, or with an empty cell, is a cluster of its own.

    Args:
        votes: The votes.
        cluster: `voter`, or a column in `Votes.extra`.

    Raises:
        InvalidInput: If the votes do not say who voted, or the cells are lists or objects.
    """
    if cluster != VOTER:
        return _codes_of_column(votes, cluster)
    if votes.voters is None:
        raise InvalidInput(
            f"{votes.source} does not say who voted (columns: {votes.said}): expected a column such as voter, judge or "
            "annotator; say which: columns={'voter': '…'} (--column voter=…), or name another column as the cluster"
        )
    return _number(votes.voters.codes)


def _codes_of_column(votes: Votes, cluster: str) -> tuple[Codes, int]:
    import polars as pl

    column = votes.extra[cluster]
    if column.dtype.is_nested():
        raise InvalidInput(f"cluster {cluster!r} has cells such as {column[0]!r}: expected text, numbers or dates")
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical)
    codes = column.to_physical() if isinstance(column.dtype, pl.Categorical | pl.Enum) else column.rank("dense")
    return _number(codes.cast(pl.Int64).fill_null(-1).to_numpy())


def _number(codes: npt.NDArray[np.integer]) -> tuple[Codes, int]:
    """Number the codes that occur from 0; each that is negative by itself."""
    used = np.bincount(codes + 1)[1:] > 0
    size, alone = int(used.sum()), np.flatnonzero(codes < 0)
    number = np.append(np.cumsum(used) - 1, -1).astype(np.int32)[codes]
    number[alone] = size + np.arange(len(alone))
    return number, size + len(alone)


def clusters_of(votes: Votes, cells: Cells, cluster: str) -> Clusters:
    """Return the clusters of votes.

    Args:
        votes: The votes.
        cells: Their cells: one per row, or one per pair.
        cluster: As in `cluster_codes`.
    """
    codes, size = cluster_codes(votes, cluster)
    outcome = np.minimum(votes.winner, TIED)
    if cells.features.shape[1]:
        cell = np.arange(len(votes), dtype=np.int32)
    else:
        place = np.zeros((cells.arms, cells.arms), np.int32)
        place[cells.first, cells.second] = place[cells.second, cells.first] = np.arange(len(cells.first))
        cell = place[votes.left, votes.right]
        outcome = outcome ^ ((votes.left > votes.right) & (outcome < TIED))  # the first arm of a pair is the smaller
    weight = None if votes.count is None else votes.count.astype(np.float64)
    return Clusters(cluster, size, codes, cell, outcome.astype(np.int8), weight)


def effective_clusters(clusters: Clusters, cells: Cells) -> Floats:
    """Return (K,) float64: the effective number of clusters with votes on each arm; 0 for one without votes."""
    squares = np.zeros(cells.arms)
    for part in _parts(clusters, cells.arms):
        count = _counts(part)
        squares += _sum_by_cluster(part, cells, [count, count]).squares()
    return _effective(_votes_of_arms(clusters, cells), squares)


def sum_slopes(clusters: Clusters, cells: Cells, by_delta: Floats, by_extra: Floats) -> Sums:
    """Sum the slopes of each cluster's votes, and the products of these sums.

    Args:
        clusters: The clusters.
        cells: The cells that their votes are counted in; votes of other cells are left out.
        by_delta: (3, m): The slopes of a vote, see `Model.vote_slopes`.
        by_extra: (3, m, F): The same.
    """
    extra = by_extra.shape[2]
    width = cells.arms + extra
    votes = np.append(_votes_of_arms(clusters, cells), np.full(extra, clusters.total))
    products, squares = np.zeros((width, width)), np.zeros(width)
    for part in _parts(clusters, width):
        count = _counts(part)
        slope = by_delta[part.outcome, part.cell] * count
        further = (by_extra[part.outcome, part.cell] * count[:, None]).T
        sums = _sum_by_cluster(part, cells, [slope, -slope, *further])
        counts = _sum_by_cluster(part, cells, [count] * (2 + extra))
        rest = 1 - counts.values / np.maximum(votes, 1)[counts.columns]
        # A parameter that only this cluster knows fits its votes exactly: the slope is 0, but for rounding.
        np.divide(sums.values, rest, out=sums.values, where=rest > 0)
        sums.values[rest <= 0] = 0
        products += sums.products()
        squares += counts.squares()
    return Sums(products * (clusters.size - 1) / clusters.size, _effective(votes, squares))


def count_by_cluster(clusters: Clusters, cells: int) -> "csr_array":
    """Return (3 · cells, G): how many votes of each cluster each cell has, all that were won first, then lost, tied."""
    from scipy.sparse import coo_array

    row = clusters.outcome.astype(np.int32) * cells + clusters.cell
    return coo_array((_counts(clusters), (row, clusters.cluster)), shape=(3 * cells, clusters.size)).tocsr()


class _Table(NamedTuple):
    """A (G, P) matrix, sparse or dense."""

    matrix: "csr_array | Floats"

    @property
    def values(self) -> Floats:
        """Its entries; of a sparse one, those that are stored."""
        return self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.data

    @property
    def columns(self) -> "Ints | slice":
        """The columns of the entries."""
        return slice(None) if isinstance(self.matrix, np.ndarray) else self.matrix.indices

    def squares(self) -> Floats:
        """(P,): The sum of squares of each column."""
        if isinstance(self.matrix, np.ndarray):
            return np.asarray(np.einsum("gp,gp->p", self.matrix, self.matrix))
        return np.asarray(np.bincount(self.matrix.indices, self.matrix.data**2, self.matrix.shape[1]), np.float64)

    def products(self) -> Floats:
        """(P, P): The sums of products of columns."""
        found = self.matrix.T @ self.matrix
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray())


def _counts(part: Clusters) -> Floats:
    return np.ones(len(part.cell)) if part.weight is None else part.weight


def _parts(clusters: Clusters, width: int) -> Iterator[Clusters]:
    """The clusters in parts that fit into memory, each numbered from 0."""
    from scipy.sparse import csc_array

    n = len(clusters.cell)
    if n <= MOST_RECORDS and clusters.size * width <= MOST_SUMS:
        yield clusters
        return
    # Rows by cluster: a matrix with one entry per row of votes, stored by columns and then by rows, is a counting sort.
    entries = np.ones(n, np.int8), clusters.cluster, np.arange(n + 1, dtype=np.int32)
    sorted_rows = csc_array(entries, shape=(clusters.size, n)).tocsr()
    order, ends = sorted_rows.indices, sorted_rows.indptr[1:]
    first, begin, most = 0, 0, max(1, MOST_SUMS // width)
    while first < clusters.size:
        last = min(first + most, int(np.searchsorted(ends, begin + MOST_RECORDS, side="right")), clusters.size)
        last = max(last, first + 1)
        end = int(ends[last - 1])
        rows = order[begin:end]
        yield Clusters(
            clusters.name,
            last - first,
            clusters.cluster[rows] - np.int32(first),
            clusters.cell[rows],
            clusters.outcome[rows],
            None if clusters.weight is None else clusters.weight[rows],
        )
        first, begin = last, end


def _sum_by_cluster(part: Clusters, cells: Cells, values: Sequence[Floats]) -> _Table:
    """(G, K + F): the sums of values over each cluster's votes, of the first arms, the second ones, and the others."""
    from scipy.sparse import coo_array

    extra, n = len(values) - 2, len(part.cell)
    shape = part.size, cells.arms + extra
    columns = [side.astype(np.int32)[part.cell] for side in (cells.first, cells.second)]
    columns += [np.full(n, cells.arms + k, np.int32) for k in range(extra)]
    if n < DENSE * shape[0] * shape[1]:
        places = np.tile(part.cluster, len(values)), np.concatenate(columns)
        return _Table(coo_array((np.concatenate(values), places), shape=shape).tocsr())
    found = np.zeros(shape[0] * shape[1])
    row = part.cluster.astype(np.int64) * shape[1]
    for column, value in zip(columns, values):
        found += np.bincount(row + column, value, len(found))
    return _Table(found.reshape(shape))


def _votes_of_arms(clusters: Clusters, cells: Cells) -> Floats:
    per_cell = np.bincount(clusters.cell, clusters.weight, len(cells.first))
    both = np.append(cells.first, cells.second)
    return np.asarray(np.bincount(both, np.tile(per_cell, 2), cells.arms), np.float64)


def _effective(votes: Floats, squares: Floats) -> Floats:
    return np.divide(votes**2, squares, out=np.zeros(len(votes)), where=squares > 0)
