"""TREC runs as a collection: each run is one ranker, and its scores are a column of features.

The lines of a run are `query Q0 document rank score tag`, of which the tag may be left out; those of the judgments
(qrels) are `query 0 document grade`. Runs and judgments may also be dictionaries or data frames.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput, format_count, shorten
from .collection import AnyPath, Collection, stem
from .letor import MOST_GRADE, NUMBER, PAGE, pages, quote_word

MOST_SCORE = 1e300
Table = dict[str, dict[str, float]]  # query -> document -> score or grade
InMemory = Mapping[str, Any] | Any  # a table, or a data frame
# The columns of data frames of PyTerrier, ranx, ir_measures and pytrec_eval's users.
QUERY = ("qid", "q_id", "query_id", "query")
DOCUMENT = ("docno", "doc_id", "docid", "document_id", "document")
SCORE = ("score",)
GRADE = ("label", "relevance", "rel", "grade", "score")


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
        not_judged = format_count(len(self.not_judged), "query", "queries")
        rows = [
            ("unjudged", f"{format_count(self.unjudged, 'document')}, taken as not relevant"),
            ("left out", f"{not_judged} without judgments, {len(self.not_run):,} in no run"),
        ]
        return "\n".join([self.collection.describe(), *(f"{label:<9}  {text}" for label, text in rows)])


def load_runs(
    runs: AnyPath | InMemory | Iterable[AnyPath | InMemory],
    qrels: AnyPath | InMemory,
    *,
    names: Sequence[str] | None = None,
    name: str | None = None,
) -> Runs:
    """Read TREC runs and the judgments of their documents, from files or from memory.

    A file is one run if all tags in its last column are equal or left out, else one run per tag. The documents of a
    query are those of all runs. A run orders them by score, highest first; the rank column is ignored. Equal scores are
    ties, and documents that a run did not return are tied behind those that it did. Documents without a judgment, or
    with a grade below 0, are not relevant.

    Args:
        runs: Run files, plain or gzipped, or folders of them. In memory a run is a dictionary
            `{query: {document: score}}`, as of ranx and pytrec_eval, or a pandas or polars data frame with columns for
            query, document and score, as of PyTerrier and ir_measures. Pass one run, a list, or a dictionary from names
            to runs.
        qrels: The judgments: a file, a dictionary `{query: {document: grade}}`, or a data frame.
        names: The names of the rankers; by default those of the run files without suffixes, or the tags if a file has
            several, or run1, run2, … in memory.
        name: The name of the collection; by default that of the judgments' file.

    Raises:
        InvalidInput: If a run is malformed, names are not unique, or no query is judged.
    """
    if isinstance(qrels, str | os.PathLike):
        judgments, called_so = Path(qrels), stem(Path(qrels))
        found = _name_runs(runs, judgments)
        grades, where = _read_qrels(judgments), str(qrels)
    else:
        found = _name_runs(runs, None)
        grades, where, called_so = _table_of(qrels, "qrels", GRADE, _grade), "qrels", "runs"
    tables = [run for _, run in found]
    called = [tag for tag, _ in found] if names is None else list(names)
    if len(called) != len(tables) or len(set(called)) < len(called):
        many = format_count(len(tables), "run is", "runs are")
        raise InvalidInput(f"the {many} called {', '.join(called)}: pass a different name for each")
    asked = {query: None for run in tables for query, documents in run.items() if documents}
    queries = [query for query in asked if query in grades]
    if not queries:
        raise InvalidInput(f"no query of the runs is judged in {where}: are these the judgments for these runs?")
    pools = [list({document: None for run in tables for document in run.get(query, ())}) for query in queries]
    features = np.concatenate([_scores(query, pool, tables) for query, pool in zip(queries, pools)])
    judged = [grades[query].get(document) for query, pool in zip(queries, pools) for document in pool]
    collection = Collection(
        name or called_so,
        features,
        np.array([max(int(grade or 0), 0) for grade in judged], np.int64),
        np.cumsum([0, *map(len, pools)]),
        tuple(queries),
        tuple(document for pool in pools for document in pool),
        feature_names=tuple(called),
    )
    not_judged, not_run = (tuple(sorted(left)) for left in (asked.keys() - grades.keys(), grades.keys() - asked.keys()))
    return Runs(collection, judged.count(None), not_judged, not_run)


def _name_runs(runs: object, qrels: Path | None) -> list[tuple[str, Table]]:
    """The runs and their names, whichever way they are given."""
    given: list[tuple[str, object]]
    runs = _as_plain(runs)
    if isinstance(runs, str | os.PathLike):
        given = [("", runs)]
    elif _is_frame(runs) or (isinstance(runs, Mapping) and _is_table(runs)):
        given = [("run1", runs)]
    elif isinstance(runs, Mapping):
        given = [(str(name), run) for name, run in runs.items()]
    elif isinstance(runs, Iterable):
        given = [(f"run{k}", run) for k, run in enumerate(runs, 1)]
    else:
        raise InvalidInput(f"runs is {shorten(runs)}: expected files, dictionaries or data frames")
    if not given:
        raise InvalidInput("no run was given: expected at least one run file")
    found: list[tuple[str, Table]] = []
    for name, run in given:
        if not isinstance(run, str | os.PathLike):
            found.append((name, _table_of(run, f"run {name!r}", SCORE, _score)))
            continue
        in_files = [pair for file in _run_files(Path(run), qrels) for pair in _read_runs(file).items()]
        found += [(name, table) for _, table in in_files] if isinstance(runs, Mapping) else in_files
    return found


def _as_plain(given: Any) -> Any:
    """A dictionary for ranx's Run and Qrels; anything else as it is."""
    return given.to_dict() if hasattr(given, "to_dict") and not _is_frame(given) else given


def _is_frame(table: object) -> bool:
    return hasattr(table, "columns") and hasattr(table, "__getitem__")


def _is_table(runs: Mapping[Any, Any]) -> bool:
    """Whether a dictionary is a run, from queries to scores of documents, rather than one from names to runs."""
    for value in runs.values():
        if not isinstance(value, Mapping):
            return False
        if value:
            return not any(isinstance(inner, Mapping) or _is_frame(inner) for inner in value.values())
    return True


def _table_of(given: Any, what: str, columns: tuple[str, ...], read: Callable[[object], float]) -> Table:
    """A run or judgments from a dictionary or a data frame."""
    given = _as_plain(given)
    rows: Iterable[tuple[Any, ...]]
    if _is_frame(given):
        rows = zip(*(_column_of(given, what, names) for names in (QUERY, DOCUMENT, columns)), strict=True)
    elif isinstance(given, Mapping) and _is_table(given):
        rows = ((query, document, value) for query, values in given.items() for document, value in values.items())
    else:
        raise InvalidInput(
            f"{what} is {shorten(given)}: expected a file, a dictionary {{query: {{document: {columns[0]}}}}}, "
            f"or a data frame with columns such as {QUERY[0]}, {DOCUMENT[0]} and {columns[0]}"
        )
    table: Table = {str(query): {} for query in given} if isinstance(given, Mapping) else {}
    for query, document, value in rows:
        try:
            number = read(value)
        except (TypeError, ValueError, OverflowError):
            kind = "a finite number" if read is _score else f"a whole number up to {MOST_GRADE}"
            place = f"document {document!r} of query {query!r}"
            raise InvalidInput(f"{what} has {shorten(value)} for {place}: expected {kind}") from None
        values = table.setdefault(str(query), {})
        if str(document) in values:
            raise InvalidInput(f"{what} has document {document!r} twice for query {query!r}")
        values[str(document)] = number
    return table


def _column_of(frame: Any, what: str, names: tuple[str, ...]) -> list[Any]:
    for name in names:
        if name in frame.columns:
            values: list[Any] = frame[name].to_list()
            return values
    raise InvalidInput(
        f"{what} has the columns {shorten(', '.join(map(str, frame.columns)))}: "
        f"expected one called {' or '.join(names)}"
    )


def _score(value: Any) -> float:
    score = float(value)
    if not abs(score) < MOST_SCORE:
        raise ValueError
    return score


def _grade(value: Any) -> float:
    grade = float(value)
    if grade != int(grade) or grade > MOST_GRADE:
        raise ValueError
    return grade


def _scores(query: str, pool: list[str], runs: list[Table]) -> np.ndarray:
    """One row per document, one column per run; just below a run's lowest score for documents it did not return."""
    columns = []
    for run in runs:
        scores = run.get(query, {})
        behind = math.nextafter(min(scores.values(), default=0.0), -math.inf)
        columns.append([scores.get(document, behind) for document in pool])
    return np.array(columns).T


def _run_files(path: Path, qrels: Path | None) -> list[Path]:
    """The file, or the files of a folder except hidden ones and the judgments."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    runs = [file for file in files if not (qrels and qrels.exists() and file.samefile(qrels))]
    if not runs:
        raise InvalidInput(f"the folder {path} has no run files: expected at least one")
    return runs


def _read_runs(path: Path) -> dict[str, Table]:
    """The runs of a file by tag; a single run is named after the file."""
    tables: dict[bytes, Table] = {}
    for number, words in _words(path, (6, 5), "query Q0 document rank score tag"):
        score = float(words[4]) if NUMBER.fullmatch(words[4]) else math.nan
        if not abs(score) < MOST_SCORE:
            raise InvalidInput(f"{path}, line {number}: the score {quote_word(words[4])} is not a number, or too large")
        _enter(tables.setdefault(words[5] if len(words) == 6 else b"", {}), path, number, words, score)
    if len(tables) == 1:
        return {stem(path): table for table in tables.values()}
    return {tag.decode("utf-8", "backslashreplace"): table for tag, table in tables.items()}


def _read_qrels(path: Path) -> Table:
    table: Table = {}
    for number, words in _words(path, (4,), "query 0 document grade"):
        digits = words[3].removeprefix(b"-")
        if not digits.isdigit() or int(digits) > MOST_GRADE:
            raise InvalidInput(
                f"{path}, line {number}: the grade {quote_word(words[3])} is not a whole number up to {MOST_GRADE}"
            )
        _enter(table, path, number, words, int(words[3]))
    return table


def _enter(table: Table, path: Path, number: int, words: list[bytes], value: float) -> None:
    query, document = (words[k].decode("utf-8", "backslashreplace") for k in (0, 2))
    values = table.setdefault(query, {})
    if document in values:
        raise InvalidInput(f"{path}, line {number}: document {document!r} appears twice for query {query!r}")
    values[document] = value


def _words(path: Path, counts: tuple[int, ...], form: str) -> Iterator[tuple[int, list[bytes]]]:
    """The number and words of each line; the first line must have one of the counts of words, and the others its."""
    number = found = 0
    for text in pages(path, PAGE, lambda at: None):
        for line in text[:-1].split(b"\n"):
            number += 1
            words = line.split()
            if not words:
                continue
            if len(words) not in counts:
                raise InvalidInput(f"{path}, line {number}: {len(words)} words, expected {counts[0]}: {form}")
            counts = (len(words),)
            found += 1
            yield number, words
    if not found:
        raise InvalidInput(f"{path} is empty: expected lines such as {form}")
