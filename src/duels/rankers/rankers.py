"""Rankers: how each of them orders the documents of each query, with ties.

`Rankings` keeps ties. Code that reads it orders tied documents at random for each comparison; the order in the file
never matters. Measures are expectations over these random orders, as in McSherry & Najork (2008).
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..engine.compiling import Kernel, compile_with
from ..errors import InvalidInput, UnknownName, shorten
from ..preference import frozen
from .collection import Collection

Score = Callable[[np.ndarray], ArrayLike]  # (n, F) features of a query's documents → n scores


class Rankings(NamedTuple):
    """The orders of D documents by R rankers, for kernels; places and documents are numbered within their query.

    int16 if every query has at most 32,767 documents, else int32: 8 or 16 bytes per ranker and document.
    """

    order: np.ndarray  # (R, D): order[r, offsets[q] + p] = the document at place p; equal scores by document number
    place: np.ndarray  # (R, D): place[r, offsets[q] + d] = the place of document d
    first: np.ndarray  # (R, D): first[r, offsets[q] + p] = the first place with the same score as place p
    last: np.ndarray  # (R, D): one past the last place with the same score
    offsets: np.ndarray  # (Q + 1,) int64


def sum_ndcg(rankings: Rankings, gains: np.ndarray, ideal: np.ndarray, discounts: np.ndarray, r: int) -> float:
    """Sum the nDCG of ranker r over queries; `ideal` is each query's best DCG, and queries with 0 are left out."""
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


def sum_reciprocal_ranks(rankings: Rankings, grades: np.ndarray, r: int) -> float:
    """Sum the reciprocal rank of ranker r's first relevant document over queries."""
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


def _expected_reciprocal(before: int, size: int, relevant: int) -> float:
    """The expected 1/rank of the first of `relevant` among `size` documents in random order, after `before` others."""
    total, none_yet = 0.0, 1.0
    for k in range(size - relevant + 1):
        here = relevant / (size - k)
        total += none_yet * here / (before + k + 1)
        none_yet *= 1.0 - here
    return total


@dataclass(frozen=True, eq=False)
class Rankers:
    """Named rankers of one collection; immutable. `a + b` combines rankers of the same collection.

    Attributes:
        names: The names of the rankers.
        collection: The collection.
        rankings: The order of every query's documents by every ranker.
    """

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
        return f"Rankers({len(self)} of {self.collection.name!r}: {_join_names(self.names)})"

    def index(self, ranker: int | str) -> int:
        """Return the index of a ranker that is given by index or by name."""
        if isinstance(ranker, str):
            if ranker not in self.names:
                raise UnknownName("ranker", ranker, self.names)
            return self.names.index(ranker)
        index = operator.index(ranker)
        if not 0 <= index < len(self):
            raise InvalidInput(f"ranker {index} does not exist: expected a name or an index from 0 to {len(self) - 1}")
        return index

    def subset(self, rankers: Iterable[int | str]) -> "Rankers":
        """Return some rankers, by name or index, in the given order."""
        chosen = [self.index(ranker) for ranker in rankers]
        if not chosen:
            raise InvalidInput("no ranker was chosen: expected at least one")
        parts = [frozen(array[chosen]) for array in self.rankings[:4]]
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
        both = [frozen(np.concatenate(pair)) for pair in zip(self.rankings[:4], other.rankings[:4])]
        return Rankers(self.names + other.names, self.collection, Rankings._make([*both, self.rankings.offsets]))

    def ndcg(self, k: int = 10) -> np.ndarray:
        """Compute nDCG@k with gains 2^grade − 1, the mean over queries with a relevant document.

        It is the expectation over random orders of ties: each tied document has their mean gain.

        Args:
            k: The number of documents to look at.

        Returns:
            (R,) float64.

        Raises:
            InvalidInput: If k is below 1, or no query has a relevant document.
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
        """Compute the mean reciprocal rank of the first relevant document, over queries that have one.

        It is the expectation over random orders of ties.

        Returns:
            (R,) float64.

        Raises:
            InvalidInput: If no query has a relevant document.
        """
        return self._mean(compile_with(sum_reciprocal_ranks), self.collection.grades)

    def _mean(self, total: Kernel, *arguments: np.ndarray) -> np.ndarray:
        queries = int(self.collection.has_relevant.sum())
        if not queries:
            raise InvalidInput(f"no query of {self.collection.name} has a relevant document: nothing can be measured")
        mean: np.ndarray = np.array([total(self.rankings, *arguments, r) for r in range(len(self))]) / queries
        return mean

    def describe(self) -> str:
        """Return a table of the rankers with nDCG@10 and MRR, best first, as text."""
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
    """Make one ranker per feature, which orders documents by that feature.

    Args:
        collection: The collection.
        features: Numbers (from 1) or names of features; by default all.
        descending: True ranks the highest value first, False the lowest. A mapping sets it for some features; the
            others are descending. The name of an ascending ranker ends in `-ascending`.

    Raises:
        InvalidInput: If a feature does not exist.
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
    return _make_rankers(collection, called, lambda documents: documents[:, columns].T * signs[:, None])


def linear_rankers(
    collection: Collection, weights: ArrayLike | Mapping[str, ArrayLike], names: Iterable[str] | None = None
) -> Rankers:
    """Make one ranker per row of weights, which orders documents by the weighted sum of their features, highest first.

    Args:
        collection: The collection.
        weights: (R, F) numbers, or a mapping from names to vectors of F numbers.
        names: The names of the rankers; by default w1, w2, ….

    Raises:
        InvalidInput: If the weights do not fit the collection.
    """
    rows: object = weights
    if isinstance(weights, Mapping):
        names, rows = (weights if names is None else names), list(weights.values())
    if any(map(callable, rows if isinstance(rows, list | tuple) else [rows])):
        raise InvalidInput("a ranker is a function, not weights: use score_rankers(collection, {'name': function})")
    try:
        table: np.ndarray = np.array(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"weights are not a table of numbers: {error}") from None
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
    return _make_rankers(collection, called, lambda documents: _weigh_documents(table, documents))


def score_rankers(collection: Collection, scores: Mapping[str, Score]) -> Rankers:
    """Make rankers of functions, such as a model's `predict`; each orders documents by its scores, highest first.

    Args:
        collection: The collection.
        scores: A mapping from names to functions. A function gets the features of one query's documents, (n, F)
            float64, and returns n scores; equal scores are ties.

    Raises:
        InvalidInput: If a function does not return a finite number per document.

    Example:
        >>> score_rankers(collection, {"product": lambda documents: documents[:, 0] * documents[:, 1]})
    """
    if not isinstance(scores, Mapping):
        raise InvalidInput(f"scores is {shorten(scores)}: expected a dictionary of functions, such as {{'mine': f}}")
    for name, score in scores.items():
        if not callable(score):
            raise InvalidInput(f"ranker {name!r} is {shorten(score)}: expected a function from features to scores")
    return _make_rankers(
        collection, [str(name) for name in scores], lambda documents: _score_documents(scores, documents)
    )


def _score_documents(scores: Mapping[str, Score], documents: np.ndarray) -> np.ndarray:
    """(R, n): the scores of a query's documents."""
    rows = []
    for name, score in scores.items():
        try:
            row = np.array(score(documents), np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"ranker {name!r} failed on a query of {len(documents)} documents: {error}") from error
        if row.shape != (len(documents),) or not np.isfinite(row).all():
            found = f"an array of shape {row.shape}" if np.isfinite(row).all() else f"the score {_not_finite(row)}"
            expected = f"one finite number for each of a query's {len(documents)} documents"
            raise InvalidInput(f"ranker {name!r} returned {found}: expected {expected}")
        rows.append(row)
    return np.array(rows)


def _not_finite(row: np.ndarray) -> float:
    return float(row[~np.isfinite(row)][0])


def _weigh_documents(weights: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """(R, n) sums, feature by feature: unlike with a matrix product, equal documents get exactly equal sums."""
    total = np.zeros((len(weights), len(documents)))
    with np.errstate(over="ignore", invalid="ignore"):
        for column in np.flatnonzero(weights.any(axis=0)):
            total += weights[:, column, None] * documents[:, column]
    if not np.isfinite(total).all():
        raise InvalidInput("a weighted sum of features is too large for a float64: use smaller weights")
    return total


def _make_rankers(collection: Collection, names: list[str], scores: Callable[[np.ndarray], np.ndarray]) -> Rankers:
    """Rankers by `scores`, which returns (R, n) numbers for a query's n documents."""
    if not names:
        raise InvalidInput("there are no rankers: expected at least one")
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
    rankings = Rankings(frozen(order), frozen(place), frozen(first), frozen(last), collection.offsets)
    return Rankers(tuple(names), collection, rankings)


def _column(collection: Collection, feature: int | str) -> int:
    """The column of a feature, by its number in the files or its name."""
    known: tuple[int | str, ...] = collection.feature_names if isinstance(feature, str) else collection.feature_ids
    if feature in known:
        return known.index(feature)
    if isinstance(feature, str):
        raise UnknownName("feature", feature, collection.feature_names)
    use = "; for a function use score_rankers" if callable(feature) else ""
    raise InvalidInput(
        f"feature {feature!r} does not exist: {collection.name} has {_join_names(list(map(str, known)))}{use}"
    )


def _join_names(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
