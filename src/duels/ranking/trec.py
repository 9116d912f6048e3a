"""TREC runs as a collection: each run is one ranker, and its scores are a column of features.

The lines of a run are `query Q0 document rank score tag`; those of the judgments (qrels) are
`query 0 document grade`.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput, counted
from .collection import AnyPath, Collection, stem
from .letor import MOST_GRADE, NUMBER, PAGE, pages, shown

MOST_SCORE = 1e300
Table = dict[str, dict[str, float]]  # query -> document -> score or grade


class Runs(NamedTuple):
    """A collection made from runs, and what was left out.

    Attributes:
        collection: The collection, with one feature per run.
        unjudged: The number of documents without a judgment, taken as not relevant.
        not_judged: Queries in runs without any judgment; left out.
        not_run: Judged queries that no run has; left out.
    """

    collection: Collection
    unjudged: int
    not_judged: tuple[str, ...]
    not_run: tuple[str, ...]

    def describe(self) -> str:
        """Return the collection's properties and what was left out as text."""
        not_judged = counted(len(self.not_judged), "query", "queries")
        rows = [
            ("unjudged", f"{counted(self.unjudged, 'document')}, taken as not relevant"),
            ("left out", f"{not_judged} without judgments, {len(self.not_run):,} in no run"),
        ]
        return "\n".join([self.collection.describe(), *(f"{label:<9}  {text}" for label, text in rows)])


def load_runs(
    run_paths: AnyPath | Iterable[AnyPath],
    qrels_path: AnyPath,
    *,
    names: Sequence[str] | None = None,
    name: str | None = None,
) -> Runs:
    """Read TREC runs and the judgments of their documents.

    A file is one run if all tags in its last column are equal, else one run per tag. The documents of a query are those
    of all runs. A run orders them by score, highest first; the rank column is ignored. Equal scores are ties, and
    documents that a run did not return are tied behind those that it did. Documents without a judgment, or with a
    grade below 0, are not relevant.

    Args:
        run_paths: Run files, plain or gzipped, or folders of them.
        qrels_path: The file with the judgments.
        names: The names of the rankers; by default those of the run files without suffixes, or the tags if a file has
            several.
        name: The name of the collection; by default that of the judgments' file.

    Raises:
        InvalidInput: If a file is malformed, names are not unique, or no query is judged.
    """
    single = isinstance(run_paths, str | os.PathLike)
    given = [Path(run_paths)] if single else [Path(path) for path in run_paths]  # type: ignore[arg-type, union-attr]
    if not given:
        raise InvalidInput("no run was given: expected at least one run file")
    paths = [file for path in given for file in _run_files(path, Path(qrels_path))]
    found = [(tag, run) for path in paths for tag, run in _read_runs(path).items()]
    runs = [run for _, run in found]
    called = [tag for tag, _ in found] if names is None else list(names)
    if len(called) != len(runs) or len(set(called)) < len(called):
        many = counted(len(runs), "run is", "runs are")
        raise InvalidInput(f"the {many} called {', '.join(called)}: pass a different name for each")
    grades = _read_qrels(Path(qrels_path))
    asked = {query: None for run in runs for query in run}
    queries = [query for query in asked if query in grades]
    if not queries:
        raise InvalidInput(f"no query of the runs is judged in {qrels_path}: are these the judgments for these runs?")
    pools = [list({document: None for run in runs for document in run.get(query, ())}) for query in queries]
    features = np.concatenate([_scores(query, pool, runs) for query, pool in zip(queries, pools)])
    judged = [grades[query].get(document) for query, pool in zip(queries, pools) for document in pool]
    collection = Collection(
        name or stem(Path(qrels_path)),
        features,
        np.array([max(int(grade or 0), 0) for grade in judged], np.int64),
        np.cumsum([0, *map(len, pools)]),
        tuple(queries),
        tuple(document for pool in pools for document in pool),
        feature_names=tuple(called),
    )
    not_judged, not_run = (tuple(sorted(left)) for left in (asked.keys() - grades.keys(), grades.keys() - asked.keys()))
    return Runs(collection, judged.count(None), not_judged, not_run)


def _scores(query: str, pool: list[str], runs: list[Table]) -> np.ndarray:
    """One row per document, one column per run; just below a run's lowest score for documents it did not return."""
    columns = []
    for run in runs:
        scores = run.get(query, {})
        behind = math.nextafter(min(scores.values(), default=0.0), -math.inf)
        columns.append([scores.get(document, behind) for document in pool])
    return np.array(columns).T


def _run_files(path: Path, qrels: Path) -> list[Path]:
    """The file, or the files of a folder except hidden ones and the judgments."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    runs = [file for file in files if not (qrels.exists() and file.samefile(qrels))]
    if not runs:
        raise InvalidInput(f"the folder {path} has no run files: expected at least one")
    return runs


def _read_runs(path: Path) -> dict[str, Table]:
    """The runs of a file by tag; a single run is named after the file."""
    tables: dict[bytes, Table] = {}
    for number, words in _words(path, 6, "query Q0 document rank score tag"):
        score = float(words[4]) if NUMBER.fullmatch(words[4]) else math.nan
        if not abs(score) < MOST_SCORE:
            raise InvalidInput(f"{path}, line {number}: the score {shown(words[4])} is not a number, or too large")
        _enter(tables.setdefault(words[5], {}), path, number, words, score)
    if len(tables) == 1:
        return {stem(path): table for table in tables.values()}
    return {tag.decode("utf-8", "backslashreplace"): table for tag, table in tables.items()}


def _read_qrels(path: Path) -> Table:
    table: Table = {}
    for number, words in _words(path, 4, "query 0 document grade"):
        digits = words[3].removeprefix(b"-")
        if not digits.isdigit() or int(digits) > MOST_GRADE:
            raise InvalidInput(
                f"{path}, line {number}: the grade {shown(words[3])} is not a whole number up to {MOST_GRADE}"
            )
        _enter(table, path, number, words, int(words[3]))
    return table


def _enter(table: Table, path: Path, number: int, words: list[bytes], value: float) -> None:
    query, document = (words[k].decode("utf-8", "backslashreplace") for k in (0, 2))
    values = table.setdefault(query, {})
    if document in values:
        raise InvalidInput(f"{path}, line {number}: document {document!r} appears twice for query {query!r}")
    values[document] = value


def _words(path: Path, count: int, form: str) -> Iterator[tuple[int, list[bytes]]]:
    """The number and words of each line; a line must have `count` words."""
    number = found = 0
    for text in pages(path, PAGE, lambda at: None):
        for line in text[:-1].split(b"\n"):
            number += 1
            words = line.split()
            if not words:
                continue
            if len(words) != count:
                raise InvalidInput(f"{path}, line {number}: {len(words)} words, expected {count}: {form}")
            found += 1
            yield number, words
    if not found:
        raise InvalidInput(f"{path} is empty: expected lines such as {form}")
