"""Rankers: how each of them orders the documents of each query, ties and all.

Documents with equal scores are ordered at random, afresh for each comparison, by whoever reads `Rankings`; the order
in the file never counts. Measures are expectations over these random orders, as in McSherry & Najork (2008).
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..engine.compiling import compile_with
from ..errors import InvalidInput, UnknownName
from .collection import Collection


class Rankings(NamedTuple):
    """What kernels read, for R rankers and D documents in all; places and documents are numbered within their query.

    int16 where every query has at most 32,767 documents, else int32: 8 or 16 bytes for each ranker and document.
    """

    order: np.ndarray  # (R, D): order[r, offsets[q] + p] = the document at place p; equal scores by document number
    place: np.ndarray  # (R, D): place[r, offsets[q] + d] = the place of document d
    first: np.ndarray  # (R, D): first[r, offsets[q] + p] = the first place with the same score as place p
    last: np.ndarray  # (R, D): one past the last place with the same score
    offsets: np.ndarray  # (Q + 1,) int64


def sum_ndcg(rankings, gains, ideal, discounts, r):
    """The nDCG of ranker r, summed over queries; `ideal` is each query's best DCG, and 0 leaves the query out."""
    total, k = 0.0, len(discounts)
    for q in range(len(rankings.offsets) - 1):
        start, end = rankings.offsets[q], rankings.offsets[q + 1]
        dcg, p = 0.0, 0
        while p < min(k, end - start) and ideal[q] > 0.0:
            last = rankings.last[r, start + p]
            gain = 0.0
            for tied in range(p, last):
                gain += gains[start + rankings.order[r, start + tied]]
            for tied in range(p, min(last, k)):
                dcg += gain / (last - p) * discounts[tied]
            p = last
        if ideal[q] > 0.0:
            total += dcg / ideal[q]
    return total


def sum_reciprocal_ranks(rankings, grades, r):
    """The reciprocal rank of the first relevant document for ranker r, summed over queries."""
    total = 0.0
    for q in range(len(rankings.offsets) - 1):
        start, end = rankings.offsets[q], rankings.offsets[q + 1]
        p, relevant = 0, 0
        while p < end - start and relevant == 0:
            last = rankings.last[r, start + p]
            for tied in range(p, last):
                if grades[start + rankings.order[r, start + tied]] > 0:
                    relevant += 1
            if relevant > 0:
                total += _expected_reciprocal(p, last - p, relevant)
            p = last
    return total


def _expected_reciprocal(before, size, relevant):
    """Of the rank of the first of `relevant` documents among `size` in random order, after `before` others."""
    total, none_yet = 0.0, 1.0
    for k in range(size - relevant + 1):
        here = relevant / (size - k)
        total += none_yet * here / (before + k + 1)
        none_yet *= 1.0 - here
    return total


@dataclass(frozen=True, eq=False)
class Rankers:
    """Named rankers of one collection; immutable. `a + b` puts the rankers of the same collection together."""

    names: tuple[str, ...]
    collection: Collection
    rankings: Rankings

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise InvalidInput(f"two rankers are called {name!r}: names must be unique")
            seen.add(name)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Rankers({len(self)} of {self.collection.name!r}: {_listed(self.names)})"

    def index(self, ranker: int | str) -> int:
        """The index of a ranker given by index or by name."""
        if isinstance(ranker, str):
            if ranker not in self.names:
                raise UnknownName("ranker", ranker, self.names)
            return self.names.index(ranker)
        index = operator.index(ranker)
        if not 0 <= index < len(self):
            raise InvalidInput(f"ranker {index} does not exist: expected a name or an index from 0 to {len(self) - 1}")
        return index

    def subset(self, rankers: Iterable[int | str]) -> "Rankers":
        """The given rankers, by name or index, in the given order."""
        chosen = [self.index(ranker) for ranker in rankers]
        if not chosen:
            raise InvalidInput("no ranker was chosen: expected at least one")
        parts = [_frozen(array[chosen]) for array in self.rankings[:4]]
        names = tuple(self.names[r] for r in chosen)
        return Rankers(names, self.collection, Rankings._make([*parts, self.rankings.offsets]))

    def __add__(self, other: "Rankers") -> "Rankers":
        if not isinstance(other, Rankers):
            return NotImplemented
        if other.collection is not self.collection and other.collection.digest != self.collection.digest:
            raise InvalidInput(
                f"rankers of {self.collection.name!r} and of {other.collection.name!r} rank different documents: "
                "make both from one collection"
            )
        both = [_frozen(np.concatenate(pair)) for pair in zip(self.rankings[:4], other.rankings[:4])]
        return Rankers(self.names + other.names, self.collection, Rankings._make([*both, self.rankings.offsets]))

    def ndcg(self, k: int = 10) -> np.ndarray:
        """(R,) float64: nDCG@k with gains 2^grade − 1, the mean over queries with a relevant document.

        Ties count by their expectation over random orders: each tied document has the mean gain of all of them.
        """
        if operator.index(k) < 1:
            raise InvalidInput(f"k is {k}: expected at least 1 document to look at")
        collection = self.collection
        gains = np.exp2(collection.grades) - 1.0
        discounts = 1.0 / np.log2(np.arange(2, min(k, int(collection.sizes.max())) + 2))
        best = np.zeros(collection.query_count)
        for q in np.flatnonzero(collection.has_relevant).tolist():
            top = -np.sort(-gains[collection.rows(q)])[: len(discounts)]
            best[q] = top @ discounts[: len(top)]
        return self._mean(compile_with(sum_ndcg), gains, best, discounts)

    def mrr(self) -> np.ndarray:
        """(R,) float64: the mean reciprocal rank of the first relevant document, over queries that have one.

        Ties count by their expectation over random orders.
        """
        return self._mean(compile_with(sum_reciprocal_ranks), self.collection.grades)

    def _mean(self, total: Callable, *arguments: Any) -> np.ndarray:
        queries = int(self.collection.has_relevant.sum())
        if not queries:
            raise InvalidInput(f"no query of {self.collection.name} has a relevant document: nothing can be measured")
        return np.array([total(self.rankings, *arguments, r) for r in range(len(self))]) / queries

    def describe(self) -> str:
        """A table of the rankers with nDCG@10 and MRR, best first, for people."""
        ndcg, mrr = self.ndcg(), self.mrr()
        width = max(len(name) for name in ("ranker", *self.names))
        rows = [f"{'ranker':<{width}}  nDCG@10     MRR"]
        for r in np.lexsort((-mrr, -ndcg)).tolist():
            rows.append(f"{self.names[r]:<{width}}   {ndcg[r]:.4f}  {mrr[r]:.4f}")
        return "\n".join(rows)


def feature_rankers(
    collection: Collection,
    features: Iterable[int | str] | int | str | None = None,
    descending: bool | Mapping[int | str, bool] = True,
) -> Rankers:
    """A ranker for each feature, which orders documents by it alone.

    features: the features' numbers, from 1, or names; by default all of them.
    descending: highest first, or False for lowest first; a mapping says it for some features, others are highest first.
        Rankers that put the lowest first are called after their feature with `-ascending` at the end.
    """
    if isinstance(features, int | str):
        features = [features]
    columns = [_column(collection, f) for f in (collection.feature_ids if features is None else features)]
    lowest_first: set[int] = set()
    if isinstance(descending, Mapping):
        lowest_first = {_column(collection, feature) for feature, down in descending.items() if not down}
        for column in lowest_first - set(columns):
            unused = collection.feature_names[column]
            raise InvalidInput(f"descending names feature {unused!r}, which is not among the features chosen")
    elif not isinstance(descending, bool | np.bool_):
        raise InvalidInput(f"descending is {descending!r}: expected True, False or a mapping such as {{3: False}}")
    elif not descending:
        lowest_first = set(columns)
    signs = np.array([-1.0 if column in lowest_first else 1.0 for column in columns])
    called = [f"{collection.feature_names[c]}{'-ascending' if c in lowest_first else ''}" for c in columns]
    return _ranked(collection, called, lambda documents: documents[:, columns].T * signs[:, None])


def linear_rankers(collection: Collection, weights: Any, names: Iterable[str] | None = None) -> Rankers:
    """A ranker for each row of weights, which orders documents by the weighted sum of their features, highest first.

    weights: (R, F) numbers, or a mapping from names to vectors of F numbers.
    names: by default w1, w2, ….
    """
    if isinstance(weights, Mapping):
        names, weights = (weights if names is None else names), list(weights.values())
    try:
        table = np.array(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"weights are no table of numbers: {error}") from None
    if table.ndim != 2 or table.shape[1] != collection.feature_count:
        raise InvalidInput(f"weights have shape {table.shape}: expected a row of {collection.feature_count} per ranker")
    called = [f"w{r + 1}" for r in range(len(table))] if names is None else [str(name) for name in names]
    if len(called) != len(table):
        raise InvalidInput(f"{len(called)} names for {len(table)} rows of weights: expected one each")
    if not np.isfinite(table).all():
        r, column = map(int, np.argwhere(~np.isfinite(table))[0])
        raise InvalidInput(
            f"the weight of {collection.feature_names[column]} for ranker {called[r]!r} is {table[r, column]}: "
            "expected a finite number"
        )
    return _ranked(collection, called, lambda documents: _weighted(table, documents))


def _weighted(weights: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """(R, n) sums, feature by feature: unlike a matrix product's, they are equal for equal documents."""
    total = np.zeros((len(weights), len(documents)))
    with np.errstate(over="ignore", invalid="ignore"):
        for column in np.flatnonzero(weights.any(axis=0)):
            total += weights[:, column, None] * documents[:, column]
    if not np.isfinite(total).all():
        raise InvalidInput("a weighted sum of features is beyond what a float64 holds: use smaller weights")
    return total


def _ranked(collection: Collection, names: list[str], scores: Callable[[np.ndarray], np.ndarray]) -> Rankers:
    """Rankers by `scores`, which gives (R, n) numbers for a query's n documents."""
    if not names:
        raise InvalidInput("no ranker was asked for: expected at least one")
    kind = np.int16 if collection.sizes.max() <= np.iinfo(np.int16).max else np.int32
    shape = (len(names), collection.document_count)
    order, place, first, last = (np.empty(shape, kind) for _ in range(4))
    for start, end in zip(collection.offsets[:-1].tolist(), collection.offsets[1:].tolist()):
        found, here = -scores(collection.features[start:end]), slice(start, end)
        sequence, places = np.argsort(found, axis=1, kind="stable"), np.arange(end - start, dtype=kind)
        order[:, here] = sequence
        np.put_along_axis(place[:, here], sequence, places[None, :], axis=1)
        lowest = np.take_along_axis(found, sequence, axis=1)
        changes = lowest[:, 1:] != lowest[:, :-1]
        first[:, start] = 0
        first[:, start + 1 : end] = np.maximum.accumulate(np.where(changes, places[1:], 0), axis=1)
        last[:, end - 1] = end - start
        until = np.where(changes, places[1:], kind(end - start))
        last[:, start : end - 1] = np.minimum.accumulate(until[:, ::-1], axis=1)[:, ::-1]
    rankings = Rankings(_frozen(order), _frozen(place), _frozen(first), _frozen(last), collection.offsets)
    return Rankers(tuple(names), collection, rankings)


def _column(collection: Collection, feature: int | str) -> int:
    """The column of a feature given by its number in the files or by its name."""
    known: tuple = collection.feature_names if isinstance(feature, str) else collection.feature_ids
    if feature in known:
        return known.index(feature)
    if isinstance(feature, str):
        raise UnknownName("feature", feature, known)
    raise InvalidInput(f"feature {feature!r} does not exist: {collection.name} has {_listed(list(map(str, known)))}")


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _listed(names: Any, most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
