"""Which of five rankers do users prefer? Found out in production, with two HTTP calls a query.

    python examples/search_online.py                                    # starts a server of its own
    python examples/search_online.py --url https://duels.example.org --token TOKEN

The search engine sends what each ranker would show; the server asks RUCB which two should duel and gives one list to
show; the engine sends the clicks back. Queries, documents and users are simulated: a synthetic collection and the
navigational click model. The users know nothing of the rankers, RUCB knows nothing but their clicks. Only to measure
regret, all pairs of rankers are compared offline, a few thousand times each.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np

import duels
from duels.client import RemoteStudy
from duels.preference import PreferenceMatrix
from duels.rankers.clicks import click_model, draw_clicks
from duels.rankers.collection import Collection
from duels.rankers.estimate import estimate_preferences
from duels.rankers.rankers import feature_rankers
from duels.rankers.synthetic import synthetic_collection

RANKERS = ("bm25-whole", "bm25-anchor", "bm25-body", "bm25-title", "pagerank")
LENGTH = 10  # documents of a list
USERS = 4  # who search at the same time


class Shown(NamedTuple):
    """One query: the rankers whose lists were shown as one."""

    duel: int
    left: str
    right: str


@contextmanager
def own_server() -> Iterator[tuple[str, str]]:
    """`duels serve` on a new database, until the end; its URL and a token."""
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "duels", "serve", f"sqlite:///{folder}/duels.db", "--port", "0"]
        server = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"DUELS_TOKEN": token},
        )
        try:
            assert server.stdout is not None
            found = re.search(r"Duels is at (\S+)", server.stdout.readline())
            if found is None:
                sys.exit("the server did not start: try `duels serve` by hand")
            yield found[1], token
        finally:
            server.terminate()
            server.communicate()


def rank(collection: Collection, query: int, column: int, rng: np.random.Generator) -> np.ndarray:
    """The documents of a query by one feature, best first; equal ones in any order."""
    scores = collection.features[collection.offsets[query] : collection.offsets[query + 1], column]
    shuffled = rng.permutation(len(scores))
    return shuffled[np.argsort(-scores[shuffled], kind="stable")]


def serve_query(study: RemoteStudy, collection: Collection, columns: dict[str, int], seed: tuple[int, int]) -> Shown:
    """What a search engine does: rank, interleave, show, and send the clicks."""
    rng = np.random.default_rng(seed)
    query = int(rng.integers(collection.query_count))
    rankings = {name: rank(collection, query, column, rng) for name, column in columns.items()}
    shown = study.interleave(rankings, length=LENGTH)
    study.clicks(shown, look(collection, query, shown.documents, rng))
    return Shown(shown.duel, shown.left, shown.right)


def look(collection: Collection, query: int, documents: list[int], rng: np.random.Generator) -> list[int]:
    """What a user does: look through the list from the top, and click."""
    table = click_model("navigational", collection.grade_count).table(len(documents), collection.grade_count)
    grades = collection.grades[collection.offsets[query] + np.array(documents)]
    clicked = np.zeros(len(documents), dtype=bool)
    draw_clicks(table, grades, len(documents), clicked, rng)
    return [document for document, mark in zip(documents, clicked) if mark]


def regret_of(shown: Shown, truth: PreferenceMatrix) -> float:
    """How much worse than the best ranker the two were that were shown, on average."""
    gaps = dict(zip(truth.names, truth.gaps))
    return float(gaps[shown.left] + gaps[shown.right]) / 2


def print_table(served: list[Shown], truth: PreferenceMatrix, every: int) -> list[float]:
    """A line for each block of queries; the regret of each."""
    best = truth.names[truth.condorcet_winner]
    print(f"{'queries':>15}  {f'share of {best}':>22}  {f'regret of {every}':>14}  {'regret in all':>13}")
    total, blocks = 0.0, []
    for start in range(0, len(served), every):
        block = served[start : start + every]
        share = sum((one.left == best) + (one.right == best) for one in block) / (2 * len(block))
        blocks.append(sum(regret_of(one, truth) for one in block) * every / len(block))
        total += blocks[-1] * len(block) / every
        span = f"{start + 1:,}–{start + len(block):,}"
        print(f"{span:>15}  {share:>22.0%}  {blocks[-1]:>14.1f}  {total:>13.1f}")
    return blocks


def main() -> None:
    options = argparse.ArgumentParser(description="Five rankers in production, compared by their users' clicks.")
    options.add_argument("--url", help="a server that is running; by default one is started")
    options.add_argument("--token", default=os.environ.get("DUELS_TOKEN"), help="by default $DUELS_TOKEN")
    options.add_argument("--study", default="search-online", help="what the study is called")
    options.add_argument("--queries", type=int, default=3000, help="how many users search")
    options.add_argument("--every", type=int, default=500, help="queries of one line of the table")
    options.add_argument("--comparisons", type=int, default=4000, help="of each pair, to know the truth")
    options.add_argument("--seed", type=int, default=0)
    said = options.parse_args()

    collection = synthetic_collection(queries=40, documents=50, seed=1)
    rankers = feature_rankers(collection, RANKERS)
    truth = estimate_preferences(collection, rankers, "navigational", comparisons=said.comparisons, progress=False)
    columns = {name: collection.feature_names.index(name) for name in RANKERS}
    print("How often the best ranker wins, offline:")
    for name, gap in zip(truth.names, truth.gaps):
        print(f"  against {name:<12} {0.5 + gap:.2f}")

    with ExitStack() as stack:
        url, token = (said.url, said.token) if said.url else stack.enter_context(own_server())
        client = stack.enter_context(duels.connect(url, token))
        study = client.create_study(RANKERS, said.study, "rucb:alpha=0.51", seed=said.seed)
        with ThreadPoolExecutor(USERS) as users:
            seeds = [(said.seed, number) for number in range(said.queries)]
            served = list(users.map(lambda seed: serve_query(study, collection, columns, seed), seeds))
        print(f"\nOnline, study {study.name!r} at {url}:")
        print_table(sorted(served), truth, said.every)
        print(f"\n{study.verdict()}")


if __name__ == "__main__":
    main()
