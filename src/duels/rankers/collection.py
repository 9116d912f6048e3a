"""Collections of judged documents: queries, and the features and grades of their documents.

They are read from LETOR files (`load`) or TREC runs (`duels.rankers.trec`), or made from arrays.
"""

import hashlib
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..engine.progress import bar
from ..errors import InvalidInput, UnknownName, format_count
from ..files import atomic_open
from ..preference import frozen
from . import cache as disk
from .letor import MOST_GRADE, read_files

AnyPath = str | os.PathLike[str]
SUFFIXES = (".gz", ".txt", ".dat", ".letor", ".svm", ".svmlight", ".run", ".res", ".trec", ".tsv", ".qrels")
FOLD = (("train", "trainingset"), ("vali", "validationset"), ("test", "testset"))  # LETOR 4.0's names and 3.0's


@dataclass(frozen=True, eq=False)
class Collection:
    """Judged documents of many queries; immutable.

    Documents are numbered within their query from 0: document d of query q is row `offsets[q] + d`.

    Attributes:
        name: The name in results.
        features: (D, F) float64, finite; read-only, not copied.
        grades: (D,) int64; 0 is not relevant.
        offsets: (Q + 1,) int64; the documents of query q are rows `offsets[q]` to `offsets[q + 1] − 1`.
        queries: (Q,) ids, any text without spaces.
        documents: (D,) ids, or None if they are unknown.
        feature_ids: (F,) the numbers of the columns in the files, from 1; by default 1 … F.
        feature_names: (F,) the names of rankers by these columns; by default f1, f2, ….

    Raises:
        InvalidInput: If the arrays do not fit together.
    """

    name: str
    features: np.ndarray
    grades: np.ndarray
    offsets: np.ndarray
    queries: tuple[str, ...]
    documents: tuple[str, ...] | None = None
    feature_ids: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        features = _readonly(self.features, np.float64)
        if features.ndim != 2 or 0 in features.shape:
            raise InvalidInput(f"features have shape {features.shape}: expected (documents, features)")
        if not (np.isfinite(features.min()) and np.isfinite(features.max())):
            row, column = map(int, np.argwhere(~np.isfinite(features))[0])
            raise InvalidInput(f"features[{row}, {column}] = {features[row, column]}: expected a finite number")
        count, width = features.shape
        ids = tuple(map(operator.index, self.feature_ids)) or tuple(range(1, width + 1))
        if min(ids) < 1:
            raise InvalidInput(f"feature id {min(ids)}: features are numbered from 1")
        self._set(
            features=features,
            grades=_check_grades(self.grades, count),
            offsets=_check_offsets(self.offsets, count),
            queries=tuple(map(str, self.queries)),
            documents=None if self.documents is None else tuple(map(str, self.documents)),
            feature_ids=ids,
            feature_names=tuple(map(str, self.feature_names)) or tuple(f"f{number}" for number in ids),
        )
        _one_each("query id", self.queries, len(self.offsets) - 1, "query")
        _one_each("feature id", self.feature_ids, width, "column of features")
        _one_each("feature name", self.feature_names, width, "column of features")
        if self.documents is not None and len(self.documents) != count:
            raise InvalidInput(f"{len(self.documents)} document ids for {count} documents: expected one each")

    def _set(self, **values: object) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return len(self.queries)

    @property
    def document_count(self) -> int:
        """The number of documents."""
        return len(self.features)

    @property
    def feature_count(self) -> int:
        """The number of features."""
        return int(self.features.shape[1])

    @property
    def sizes(self) -> np.ndarray:
        """(Q,) int64: the number of documents of each query."""
        return np.diff(self.offsets)

    @cached_property
    def grade_count(self) -> int:
        """The largest grade plus one: the length of a table by grade."""
        return int(self.grades.max()) + 1

    @cached_property
    def has_relevant(self) -> np.ndarray:
        """(Q,) bool: whether the query has a document of grade 1 or more."""
        relevant: np.ndarray = np.maximum.reduceat(self.grades, self.offsets[:-1]) > 0
        return relevant

    @property
    def queries_without_relevant(self) -> int:
        """The number of queries without a relevant document."""
        return int((~self.has_relevant).sum())

    @cached_property
    def ties(self) -> np.ndarray:
        """(F,) float64: the fraction of documents that share their value with another document of the same query."""
        tied = np.zeros(self.feature_count)
        for start, end in zip(self.offsets[:-1], self.offsets[1:]):
            values = np.sort(self.features[start:end].T, axis=1)
            same = np.zeros((self.feature_count, end - start + 1), np.bool_)
            same[:, 1:-1] = values[:, 1:] == values[:, :-1]
            tied += (same[:, 1:] | same[:, :-1]).sum(axis=1)
        return tied / self.document_count

    @cached_property
    def digest(self) -> str:
        """A hash of features, grades and queries' sizes, the same on every machine; it does not depend on names."""
        content = hashlib.sha256()
        for array, kind in ((self.features, "<f8"), (self.grades, "<i8"), (self.offsets, "<i8")):
            content.update(str(array.shape).encode())
            content.update(np.ascontiguousarray(array, kind).data)
        return content.hexdigest()[:16]

    def __repr__(self) -> str:
        return (
            f"Collection({self.name!r}: {format_count(self.query_count, 'query', 'queries')}, "
            f"{format_count(self.document_count, 'document')}, {format_count(self.feature_count, 'feature')})"
        )

    def rows(self, query: int | str) -> slice:
        """Return the rows of a query, by number (from 0) or by id."""
        q = self._index(query)
        return slice(int(self.offsets[q]), int(self.offsets[q + 1]))

    def _index(self, query: int | str) -> int:
        if isinstance(query, str):
            if query not in self._positions:
                raise UnknownName("query", query, self.queries)
            return self._positions[query]
        q = operator.index(query)
        if not 0 <= q < self.query_count:
            raise InvalidInput(f"query {q} does not exist: expected an id or a number from 0 to {self.query_count - 1}")
        return q

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {query: q for q, query in enumerate(self.queries)}

    def subset(self, queries: Iterable[int | str]) -> "Collection":
        """Return the collection of some queries, by number or id, in the given order."""
        chosen = [self._index(query) for query in queries]
        if not chosen:
            raise InvalidInput("no query was chosen: a collection needs at least one")
        rows = np.concatenate([np.arange(self.offsets[q], self.offsets[q + 1]) for q in chosen])
        return replace(
            self,
            features=self.features[rows],
            grades=self.grades[rows],
            offsets=np.concatenate([[0], self.sizes[chosen].cumsum()]),
            queries=tuple(self.queries[q] for q in chosen),
            documents=None if self.documents is None else tuple(self.documents[row] for row in rows.tolist()),
        )

    def keep_relevant(self) -> "Collection":
        """Return the collection without the queries that have no relevant document.

        Raises:
            InvalidInput: If no query would be left.
        """
        if self.has_relevant.all():
            return self
        if not self.has_relevant.any():
            raise InvalidInput(f"no query of {self.name} has a relevant document: nothing would be left")
        return self.subset(np.flatnonzero(self.has_relevant).tolist())

    def describe(self) -> str:
        """Return the collection's properties as a few lines of text."""
        sizes, ties = self.sizes, self.ties
        counts = np.bincount(self.grades)
        starts = self.offsets[:-1]
        spread = np.maximum.reduceat(self.features, starts) - np.minimum.reduceat(self.features, starts)
        most = int(ties.argmax())
        top = f"{ties[most]:.1%} ({self.feature_names[most]})"
        rows = [
            ("queries", f"{self.query_count:,}, {self.queries_without_relevant:,} of them without a relevant document"),
            ("documents", f"{self.document_count:,}"),
            (
                "a query",
                f"{sizes.min():,} to {format_count(int(sizes.max()), 'document')}, median {np.median(sizes):,.0f}",
            ),
            ("grades", ", ".join(f"{count:,} of grade {grade}" for grade, count in enumerate(counts) if count)),
            ("features", f"{self.feature_count}, {(~spread.any(axis=0)).sum()} of them constant within every query"),
            ("ties", f"{np.median(ties):.1%} of the values of the median feature, at most {top}"),
        ]
        return "\n".join(f"{label:<9}  {text}" for label, text in rows)


def _readonly(array: ArrayLike, kind: type) -> np.ndarray:
    try:
        view: np.ndarray = np.ascontiguousarray(array, dtype=kind).view()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a collection needs arrays of numbers: {error}") from None
    return frozen(view)


def _check_grades(given: ArrayLike, count: int) -> np.ndarray:
    found = np.asarray(given)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise InvalidInput(
            f"grades are {found.dtype} of shape {found.shape}: expected a whole number for each of {count} documents"
        )
    if found.min() < 0 or found.max() > MOST_GRADE:
        row = int(np.flatnonzero((found < 0) | (found > MOST_GRADE))[0])
        raise InvalidInput(f"grades[{row}] = {found[row]}: expected a whole number from 0 to {MOST_GRADE}")
    return _readonly(found, np.int64)


def _check_offsets(given: ArrayLike, count: int) -> np.ndarray:
    offsets = _readonly(given, np.int64)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != count or np.diff(offsets).min() < 1:
        raise InvalidInput(
            f"offsets {np.array2string(offsets, threshold=8)} do not split {count} documents into queries: "
            f"expected 0, the start of each further query, and {count}; each query has a document"
        )
    return offsets


def _one_each(what: str, names: Sequence[int | str], count: int, of: str) -> None:
    if len(names) != count:
        raise InvalidInput(f"{len(names)} {what}s for {count}: expected one per {of}")
    seen: set[int | str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"the {what} {name!r} appears twice: each {of} needs its own")
        seen.add(name)


def load(
    paths: AnyPath | Iterable[AnyPath],
    *,
    relevant_only: bool = False,
    cache: bool = True,
    progress: bool | None = None,
    name: str | None = None,
) -> Collection:
    """Read LETOR files, plain or gzipped, dense or sparse: lines `grade qid:query 1:value 2:value … # comment`.

    Args:
        paths: A file, several files in the order to read, or a fold's directory with train, vali and test files.
        relevant_only: Leave out queries without a relevant document.
        cache: Cache the collection on disk, keyed by the contents of the files.
        progress: Whether to show a progress bar; by default on a terminal only.
        name: The name of the collection; by default that of the file or directory.

    Raises:
        InvalidInput: If a file is missing or malformed; the error names the line.

    Example:
        >>> collection = load("MQ2008/Fold1", relevant_only=True)
    """
    if not isinstance(paths, str | os.PathLike | Iterable):
        raise InvalidInput(f"{paths!r} is not a file: expected the path of a LETOR file or of a fold's directory")
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    files = [file for path in given for file in _files(path)]
    for file in files:
        if files.count(file) > 1:
            raise InvalidInput(f"{file} was given twice: its documents would count twice")
    if not files:
        raise InvalidInput("no file was given: expected LETOR files or a fold's directory")
    called = name or _name_query(given)
    place = disk.path_for(files) if cache else None
    collection = disk.read(place, called, Collection) if place else None
    if collection is None:
        with bar(progress, f"reading {called}") as show:
            collection = Collection(called, **read_files(files, show)._asdict())
        if place and disk.path_for(files) == place:  # the files have not changed in the meantime
            disk.write(place, collection)
    return collection.keep_relevant() if relevant_only else collection


def _files(path: Path) -> list[Path]:
    """The file, or a fold's files in the order train, vali, test."""
    if not path.is_dir():
        if not path.exists():
            raise InvalidInput(f"{path} does not exist: expected a LETOR file or a fold's directory")
        return [path]
    found = []
    for names in FOLD:
        candidates = [path / f"{name}.txt{suffix}" for name in names for suffix in ("", ".gz")]
        there = [file for file in candidates if file.is_file()]
        if len(there) > 1:
            raise InvalidInput(f"{path} has both {there[0].name} and {there[1].name}: name the files to read instead")
        found += there
    if found:
        return found
    folds = sorted(inner.name for inner in path.iterdir() if inner.is_dir() and inner.name.lower().startswith("fold"))
    if folds:
        raise InvalidInput(f"{path} has the folds {', '.join(folds)}: choose one, such as {path / folds[0]}")
    raise InvalidInput(f"{path} has no train.txt, vali.txt or test.txt (or .txt.gz): name the files instead")


def _name_query(paths: list[Path]) -> str:
    parents = {path.resolve().parent for path in paths}
    return parents.pop().name if len(paths) > 1 and len(parents) == 1 else stem(paths[0].resolve())


def stem(path: Path) -> str:
    """Return a file's name without the suffixes of known file types."""
    name = path.name
    while not path.is_dir() and Path(name).suffix.lower() in SUFFIXES:
        name = Path(name).stem
    return name


def save(collection: Collection, path: AnyPath, decimals: int | None = None) -> None:
    """Write a LETOR file atomically.

    Args:
        collection: The collection.
        path: The file; it is gzipped if its name ends in .gz.
        decimals: The number of decimals; by default values are written so that they are read back exactly.

    Raises:
        InvalidInput: If the file cannot be written, or an id contains spaces.
    """
    path = Path(path)
    if decimals is not None and not 0 <= decimals <= 99:
        raise InvalidInput(f"decimals is {decimals}: expected a whole number from 0 to 99")
    for what, names in (("query", collection.queries), ("document", filter(None, collection.documents or ()))):
        for name in names:
            if name.encode().split() != [name.encode()]:
                raise InvalidInput(f"the {what} id {name!r} cannot be written: expected text without spaces")
    with atomic_open(path) as file:
        file.writelines(_lines(collection, decimals))


def _lines(collection: Collection, decimals: int | None) -> Iterator[bytes]:
    value = "%r" if decimals is None else f"%.{decimals}f"
    form = " ".join(f"{number}:{value}" for number in collection.feature_ids)
    for query, start, end in zip(collection.queries, collection.offsets[:-1], collection.offsets[1:]):
        ids = collection.documents[start:end] if collection.documents else [""] * (end - start)
        rows = zip(collection.grades[start:end].tolist(), collection.features[start:end].tolist(), ids)
        for grade, values, document in rows:
            comment = f" #docid = {document}" if document else ""
            yield f"{grade} qid:{query} {form % tuple(values)}{comment}\n".encode()
