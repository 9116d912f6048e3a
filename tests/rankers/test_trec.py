"""TREC runs and judgments as a collection."""

import gzip
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from duels.errors import InvalidInput
from duels.rankers.rankers import feature_rankers
from duels.rankers.trec import load_runs

BM25 = """\
q1 Q0 a 1 9.5 bm25
q1 Q0 b 2 7 bm25
q1 Q0 c 3 7 bm25
q2 Q0 x 1 -1 bm25
q9 Q0 x 1 1 bm25
"""
DENSE = """\
q1 Q0 d 1 0.5 dense
q1 Q0 a 7 0.75 dense
"""
QRELS = """\
q1 0 a 0
q1 0 b 2
q1 0 never-returned 1
q2 0 x -2

q3 0 x 1
"""


@pytest.fixture
def files(tmp_path):
    for name, text in {"input.bm25": BM25, "dense.run": DENSE, "qrels.txt": QRELS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def refused(message):
    return pytest.raises(InvalidInput, match=re.escape(message))


def test_runs_become_columns(files):
    runs = load_runs([files / "input.bm25", files / "dense.run"], files / "qrels.txt")
    found = runs.collection
    assert (found.name, found.feature_names) == ("qrels", ("input.bm25", "dense"))
    assert found.queries == ("q1", "q2")
    assert found.documents == ("a", "b", "c", "d", "x")
    assert found.grades.tolist() == [0, 2, 0, 0, 0]
    assert (runs.unjudged, runs.not_judged, runs.not_run) == (2, ("q9",), ("q3",))
    assert found.features[:4, 0].tolist() == [9.5, 7, 7, np.nextafter(7, 0)]
    assert found.features[:4, 1].tolist() == [0.75, *[np.nextafter(0.5, 0)] * 2, 0.5]
    assert "2 documents, taken as not relevant" in runs.describe()
    assert "1 query without judgments, 1 in no run" in runs.describe()


def test_a_folder_of_runs_and_a_file_with_several(files):
    alone = load_runs([files / "dense.run", files / "input.bm25"], files / "qrels.txt").collection
    folder = load_runs(files, files / "qrels.txt").collection  # the judgments in it are no run
    assert (folder.feature_names, folder.features.tolist()) == (("dense", "input.bm25"), alone.features.tolist())
    (files / "both.run").write_text(DENSE + BM25)
    both = load_runs(files / "both.run", files / "qrels.txt").collection
    assert (both.feature_names, both.features.tolist()) == (("dense", "bm25"), alone.features.tolist())
    named = load_runs(files / "both.run", files / "qrels.txt", names=["one", "two"]).collection
    assert named.feature_names == ("one", "two")
    with refused("the 2 runs are called one: pass a different name for each"):
        load_runs(files / "both.run", files / "qrels.txt", names=["one"])
    (files / "both.run").write_text(DENSE + DENSE)
    with refused("both.run, line 3: document 'd' appears twice for query 'q1'"):
        load_runs(files / "both.run", files / "qrels.txt")
    (files / "empty").mkdir()
    with refused("has no run files: expected at least one"):
        load_runs(files / "empty", files / "qrels.txt")


def test_rankers_of_runs(files):
    rankers = feature_rankers(load_runs([files / "input.bm25", files / "dense.run"], files / "qrels.txt").collection)
    assert rankers.names == ("input.bm25", "dense")
    order, first, last = (array[:, :4].tolist() for array in (rankers.rankings[k] for k in (0, 2, 3)))
    assert order == [[0, 1, 2, 3], [0, 3, 1, 2]]  # by score, whatever the ranks say; what was not returned is last
    assert first == [[0, 1, 1, 3], [0, 1, 2, 2]]
    assert last == [[1, 3, 3, 4], [1, 2, 4, 4]]
    # q1 alone counts. BM25: b (relevant) is second or third; dense: third or fourth.
    assert rankers.mrr().tolist() == pytest.approx([(1 / 2 + 1 / 3) / 2, (1 / 3 + 1 / 4) / 2])


def test_one_run_gzipped_with_a_name(files):
    (files / "a.run.gz").write_bytes(gzip.compress(BM25.encode()))
    runs = load_runs(files / "a.run.gz", files / "qrels.txt", name="trec")
    assert (runs.collection.name, runs.collection.feature_names) == ("trec", ("a",))
    runs = load_runs([files / "a.run.gz", files / "a.run.gz"], files / "qrels.txt", names=["one", "two"])
    assert runs.collection.feature_names == ("one", "two")
    with refused("the 2 runs are called a, a: pass a different name for each"):
        load_runs([files / "a.run.gz", files / "a.run.gz"], files / "qrels.txt")


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ("", QRELS, "run.txt is empty: expected lines such as query Q0 document rank score tag"),
        ("q1 Q0 a 1", QRELS, "run.txt, line 1: 4 words, expected 6: query Q0 document rank score tag"),
        ("q1 Q0 a 1 0.5\nq1 Q0 b 1 0.5 t", QRELS, "run.txt, line 2: 6 words, expected 5: query Q0 document rank score"),
        ("q1 a 1 0.5 tag", QRELS, "run.txt, line 1: the score 'tag' is not a number"),
        ("\nq1 Q0 a 1 high t", QRELS, "run.txt, line 2: the score 'high' is not a number, or too large"),
        ("q1 Q0 a 1 nan t", QRELS, "run.txt, line 1: the score 'nan' is not a number"),
        ("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t", QRELS, "run.txt, line 2: document 'a' appears twice for query 'q1'"),
        (BM25, "", "qrels.txt is empty: expected lines such as query 0 document grade"),
        (BM25, "q1 0 a 1.5", "qrels.txt, line 1: the grade '1.5' is not a whole number up to 1000"),
        (BM25, "q1 0 a", "qrels.txt, line 1: 3 words, expected 4: query 0 document grade"),
        (BM25, "q1 0 a 1\nq1 0 a 1", "qrels.txt, line 2: document 'a' appears twice for query 'q1'"),
        (BM25, "q7 0 a 1", "no query of the runs is judged in"),
    ],
)
def test_what_is_refused(tmp_path, run, qrels, message):
    (tmp_path / "run.txt").write_text(run)
    (tmp_path / "qrels.txt").write_text(qrels)
    with refused(message):
        load_runs([tmp_path / "run.txt"], tmp_path / "qrels.txt")


def test_missing_files(files):
    with refused("none.run cannot be read: No such file or directory"):
        load_runs(files / "none.run", files / "qrels.txt")
    with refused("no run was given"):
        load_runs([], files / "qrels.txt")


def test_lines_without_a_tag(files):
    (files / "bare.run").write_text("".join(line.rpartition(" ")[0] + "\n" for line in BM25.splitlines()))
    found = load_runs(files / "bare.run", files / "qrels.txt").collection
    assert found.feature_names == ("bare",)
    assert found.digest == load_runs(files / "input.bm25", files / "qrels.txt", names=["bare"]).collection.digest


RUN1 = {"q1": {"a": 9.5, "b": 7, "c": 7}, "q2": {"x": -1.0}, "q9": {"x": 1}, "q3": {}}
RUN2 = {"q1": {"d": 0.5, "a": 0.75}}
JUDGED = {"q1": {"a": 0, "b": 2, "never-returned": 1}, "q2": {"x": -2}, "q3": {"x": 1}}


class Run:
    """Like ranx's."""

    def __init__(self, run):
        self.run = run

    def to_dict(self):
        return self.run


def frame(table, columns, library):
    rows = [(query, document, value) for query, values in table.items() for document, value in values.items()]
    return library.DataFrame({name: list(column) for name, column in zip(columns, zip(*rows))})


PYTERRIER, RANX = ("qid", "docno", "score"), ("q_id", "doc_id", "score")
FORMS = {
    "dictionaries": ([RUN1, RUN2], JUDGED),
    "objects": ([Run(RUN1), Run(RUN2)], Run(JUDGED)),
    "pandas": ([frame(one, PYTERRIER, pd) for one in (RUN1, RUN2)], frame(JUDGED, ("qid", "docno", "label"), pd)),
    "polars": ([frame(one, RANX, pl) for one in (RUN1, RUN2)], frame(JUDGED, ("query_id", "doc_id", "relevance"), pl)),
}


@pytest.mark.parametrize("form", FORMS)
def test_runs_in_memory_are_those_of_files(files, form):
    runs, qrels = FORMS[form]
    expected = load_runs([files / "input.bm25", files / "dense.run"], files / "qrels.txt", names=["one", "two"])
    for found in (load_runs(runs, qrels, names=["one", "two"]), load_runs(dict(zip(("one", "two"), runs)), qrels)):
        assert found.collection.digest == expected.collection.digest
        assert found.collection.feature_names == ("one", "two")
        assert found[1:] == expected[1:]
    assert load_runs(runs, files / "qrels.txt").collection.feature_names == ("run1", "run2")
    single = load_runs(runs[0], qrels)
    assert (single.collection.name, single.collection.feature_names) == ("runs", ("run1",))
    mixed = load_runs({"one": files / "input.bm25", "two": runs[1]}, qrels)
    assert mixed.collection.digest == expected.collection.digest


@pytest.mark.parametrize(
    ("runs", "qrels", "message"),
    [
        (RUN1, {"q1": {"a": 0.5}}, "qrels has 0.5 for document 'a' of query 'q1': expected a whole number up to 1000"),
        ({"q1": {"a": "high"}}, JUDGED, "run 'run1' has 'high' for document 'a' of query 'q1': expected a finite"),
        ({"q1": {"a": float("nan")}}, JUDGED, "expected a finite number"),
        ({"q1": {1: 1.0, "1": 2.0}}, JUDGED, "run 'run1' has document '1' twice for query 'q1'"),
        ({"bm25": 3}, JUDGED, "run 'bm25' is 3: expected a file, a dictionary {query: {document: score}}, or a data"),
        (pd.DataFrame({"query": ["q1"], "id": ["a"]}), JUDGED, "the columns 'query, id': expected one called docno or"),
        (RUN1, 7, "qrels is 7: expected a file, a dictionary {query: {document: label}}"),
        (7, JUDGED, "runs is 7: expected files, dictionaries or data frames"),
        ([], JUDGED, "no run was given"),
        ({"q8": {"a": 1}}, JUDGED, "no query of the runs is judged in qrels"),
    ],
)
def test_what_is_refused_in_memory(runs, qrels, message):
    with refused(message):
        load_runs(runs, qrels)
