"""How fast ranker evaluation is: a table, and benchmarks/out/ranking.json. Exit code 1 if a bar is missed.

    python benchmarks/ranking.py

The literal comparison of tests/rankers/enumeration.py runs in the same process for a ratio. NP2004 is read from
$DUELS_DATA or ../shared/data and left out where it is absent.
"""

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from table import report, seconds

from duels.engine.threads import thread_count
from duels.rankers.clicks import click_model
from duels.rankers.collection import Collection
from duels.rankers.collection import load as load_collection
from duels.rankers.estimate import estimate_preferences
from duels.rankers.rankers import feature_rankers

CORES = thread_count(None)
ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DUELS_DATA") or ROOT.parent / "shared" / "data")
sys.path.insert(0, str(ROOT / "tests" / "rankers"))


METHODS = {"probabilistic": 2.0, "probabilistic:credit=assigned": None, "team-draft": 1.0, "balanced": None}


def made_up(queries=75, documents=1000, features=64, seed=0):
    """Features of all qualities with half their values tied at zero; one relevant document a query."""
    rng = np.random.default_rng(seed)
    grades = np.zeros((queries, documents), np.int64)
    grades[:, 0] = 1
    scores = rng.normal(size=(queries, documents, features)) + grades[:, :, None] * np.linspace(0, 3, features)
    return Collection(
        name="made-up",
        features=np.maximum(scores, 0.0).reshape(-1, features),
        grades=grades.ravel(),
        offsets=np.arange(queries + 1) * documents,
        queries=tuple(f"q{k}" for k in range(queries)),
    )


def literal_seconds(collection, comparisons=200):
    """The literal comparison of the first and the last ranker, on average."""
    import enumeration

    model, rng = click_model("navigational", 2), np.random.default_rng(0)
    documents = int(collection.offsets[1])
    scores = collection.features[:documents]
    a, b = (tuple(np.argsort(-scores[:, k], kind="stable").tolist()) for k in (0, scores.shape[1] - 1))
    grades = collection.grades[:documents]
    started = time.perf_counter()
    for _ in range(comparisons):
        enumeration.literal_comparison(a, b, grades, model.click, model.stop, 10, rng)
    return (time.perf_counter() - started) / comparisons


def rows():
    collection = made_up()
    rankers = feature_rankers(collection)
    pairs = len(rankers) * (len(rankers) - 1) // 2
    yield "64 feature rankers x 75 queries x 1,000 documents", seconds(lambda: feature_rankers(collection)), "s", None
    for method, bar in METHODS.items():
        estimate_preferences(collection, rankers, interleave=method, comparisons=1)  # compiled, or loaded
        took = seconds(partial(estimate_preferences, collection, rankers, interleave=method))
        each = took / (pairs * 4000) * CORES
        if method == "probabilistic":
            yield f"{pairs * 4000:,} comparisons of 64 rankers on {CORES} cores", took, "s", 15 * 2 / min(2, CORES)
            yield "probabilistic, against the literal comparison", literal_seconds(collection) / each, "x", None
        yield f"{method}, a comparison and core", each * 1e6, "us", bar
    files = [DATA / "letor" / "NP2004-Fold1" / name for name in ("test.txt.gz", "vali.txt.gz")]
    if files[0].exists():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DUELS_CACHE"] = folder
            yield "reading NP2004's 29,181 documents", seconds(lambda: load_collection(files, cache=False)), "s", 3.0
            load_collection(files)
            yield "reading them from the cache", seconds(lambda: load_collection(files)), "s", 0.2


if __name__ == "__main__":
    report("ranking", rows())
