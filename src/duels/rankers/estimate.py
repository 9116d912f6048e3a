"""From rankers to preferences, by interleaving and simulated clicks: estimate a matrix, or let rankers duel directly.

A comparison draws a query, interleaves the two rankers' lists for it, lets the click model click, and asks the
interleaving method who won. Following Yue & Joachims (2011) and Zoghi et al. (2014), section 6.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_int
from ..engine import compiling
from ..engine.threads import in_threads, thread_count
from ..errors import InvalidInput, shorten
from ..estimated import EstimatedPreferences
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from .clicks import ClickModel, ClickTable, click_model, draw_clicks
from .collection import Collection
from .interleaving import LENGTH, Method, Workspace, clear, find_method, load, make_workspace
from .rankers import Rankers, Rankings, feature_rankers

UNBOUND: Any = None
arrange = judge = UNBOUND  # placeholders for an interleaving method's kernels


class World(NamedTuple):
    """What the outcome kernel reads, and its workspace; one per run."""

    rankings: Rankings
    grades: np.ndarray  # (D,) int64: how relevant each document is
    table: ClickTable
    workspace: Workspace


def compare(world: World, documents: int, start: int, rng: np.random.Generator) -> float:
    """Compare the two rankings in the workspace: 1 if the first wins, 0 if the second, ½ for a tie."""
    workspace = world.workspace
    length = len(workspace.shown)
    shown = arrange(workspace, documents, length, rng)
    for k in range(shown):
        workspace.grades[k] = world.grades[start + workspace.shown[k]]
    clicks = draw_clicks(world.table, workspace.grades, shown, workspace.clicked, rng)
    won = judge(workspace, shown) if clicks > 0 else 0.5
    clear(workspace, shown)
    return won


def outcome(world: World, a: int, b: int, luck: np.random.Generator) -> float:
    """The outcome kernel of dueling rankers: one comparison on a random query."""
    queries = len(world.rankings.offsets) - 1
    query = int(luck.random() * queries)
    documents = load(world.workspace, world.rankings, a, b, query)
    return compare(world, documents, world.rankings.offsets[query], luck)


def count_outcomes(
    world: World, a: int, b: int, comparisons: int, per_query: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> None:
    """Compare rankers a and b `comparisons` times, and add losses, ties and wins of a to `counts`.

    Queries are drawn first and then processed in order, so each pair of rankings is loaded once.
    """
    queries = len(per_query)
    per_query[:] = 0
    for _ in range(comparisons):
        per_query[int(rng.random() * queries)] += 1
    for query in range(queries):
        if per_query[query] > 0:
            documents = load(world.workspace, world.rankings, a, b, query)
            for _ in range(per_query[query]):
                won = compare(world, documents, world.rankings.offsets[query], rng)
                counts[int(2.0 * won)] += 1


def estimate_preferences(
    collection: Collection,
    rankers: Rankers | None = None,
    clicks: str | ClickModel = "navigational",
    interleave: str | Method = "probabilistic",
    comparisons: int = 4000,
    seed: int = 0,
    *,
    length: int = LENGTH,
    jobs: int | None = None,
    progress: bool | None = None,
    name: str = "",
) -> EstimatedPreferences:
    """Estimate the preference matrix of rankers from interleaved comparisons of each pair.

    Args:
        collection: The queries and documents.
        rankers: The rankers of this collection; by default one per feature.
        clicks: The click model, or its name.
        interleave: The interleaving method, or its name.
        comparisons: The number of comparisons per pair.
        seed: The seed. The result does not depend on the number of threads.
        length: The length of the interleaved lists.
        jobs: The number of threads; by default one per core.
        progress: Whether to show a progress bar; by default on a terminal only.
        name: The name of the problem; by default made from the collection, the click model and the method.

    Raises:
        InvalidInput: If an argument is wrong.
    """
    comparisons, seed = check_int("comparisons", comparisons, 1), check_int("seed", seed, 0)
    jobs = thread_count(jobs)
    environment = InterleavingEnvironment(collection, rankers, clicks, interleave, length=length)
    rankers = environment.rankers
    count = environment.counting_kernel(environment.world())
    first, second = np.triu_indices(len(rankers), 1)
    counts = np.zeros((len(rankers), len(rankers), 3), np.int64)

    def one_part(part: int, stop: threading.Event, share: Callable[[float], None]) -> None:
        world, per_query = environment.world(), np.zeros(collection.query_count, np.int64)
        mine = range(part, len(first), parts)
        for done, k in enumerate(mine):
            a, b = int(first[k]), int(second[k])
            rng = np.random.default_rng(np.random.SeedSequence([seed, a, b]))
            for start in range(0, comparisons, environment.chunk):
                if stop.is_set():
                    return
                some = min(environment.chunk, comparisons - start)
                count(world, a, b, some, per_query, counts[a, b], rng)
                share((done + (start + some) / comparisons) / len(mine))

    parts = min(4 * jobs, len(first))
    in_threads(one_part, parts, jobs, progress, f"{len(first)} pairs of rankers")
    counts[second, first] = counts[first, second, ::-1]  # the same comparisons from the other side
    return EstimatedPreferences(counts, rankers.names, name or environment.name)


class InterleavingEnvironment:
    """K rankers as the arms of a dueling bandit: each duel is one interleaved comparison on a random query.

    `duels.simulate` accepts it instead of a matrix.

    Args:
        collection: The queries and documents.
        rankers: The rankers of this collection; by default one per feature.
        clicks: The click model, or its name.
        interleave: The interleaving method, or its name.
        length: The length of the interleaved lists.
        matrix: The preference matrix by which regret is measured; by default it is estimated with 4,000 comparisons
            per pair when it is first needed.

    Raises:
        InvalidInput: If an argument is wrong.
    """

    def __init__(
        self,
        collection: Collection,
        rankers: Rankers | None = None,
        clicks: str | ClickModel = "navigational",
        interleave: str | Method = "probabilistic",
        *,
        length: int = LENGTH,
        matrix: PreferenceMatrix | None = None,
    ) -> None:
        if not isinstance(collection, Collection):
            raise InvalidInput(f"{shorten(collection)} is not a collection: read one with duels.rankers.load(path)")
        rankers = feature_rankers(collection) if rankers is None else rankers
        if not isinstance(rankers, Rankers):
            raise InvalidInput(
                f"{shorten(rankers)} is not Rankers: make them, e.g. with feature_rankers(collection, [39, 23])"
            )
        if rankers.collection is not collection:
            raise InvalidInput("the rankers belong to another collection: make them from this one")
        if len(rankers) < 2:
            raise InvalidInput(f"{len(rankers)} ranker was given: expected at least 2 to compare")
        length = check_int("length", length, 1)
        self.collection, self.rankers, self.method, self.length = collection, rankers, find_method(interleave), length
        self.clicks = click_model(clicks, collection.grade_count)
        self._table = self.clicks.table(length, collection.grade_count)
        self._matrix = None if matrix is None else self._check_matrix(as_matrix(matrix))

    def __repr__(self) -> str:
        return f"InterleavingEnvironment({len(self.rankers)} rankers, {self.name})"

    def _check_matrix(self, matrix: PreferenceMatrix) -> PreferenceMatrix:
        if matrix.arms != len(self.rankers):
            raise InvalidInput(f"the matrix has {matrix.arms} arms, but there are {len(self.rankers)} rankers")
        numbered = tuple(map(str, range(matrix.arms)))
        if matrix.names not in (self.rankers.names, numbered):
            raise InvalidInput(
                f"the matrix's arms are called {', '.join(matrix.names[:3])}, …, the rankers "
                f"{', '.join(self.rankers.names[:3])}, …: expected a matrix of these rankers in this order"
            )
        return matrix

    @property
    def name(self) -> str:
        """The name in results: collection, click model, and the method unless it is the default."""
        parts = [self.collection.name, self.clicks.name, self.method.name]
        return "-".join(parts[: 2 if self.method.name == "probabilistic" else 3])

    @property
    def chunk(self) -> int:
        """The number of comparisons between two checks for Ctrl-C: interpreted ones take milliseconds."""
        return 20 if self.method.name == "optimized" else 100_000

    @property
    def matrix(self) -> PreferenceMatrix:
        """The preference matrix by which regret is measured."""
        if self._matrix is None:
            self._matrix = estimate_preferences(
                self.collection, self.rankers, self.clicks, self.method, length=self.length
            )
        return self._matrix

    outcome = staticmethod(outcome)

    @property
    def description(self) -> dict[str, Any]:
        """What the provenance of results says about it."""
        return {
            "collection": self.collection.digest,
            "rankers": list(self.rankers.names),
            "interleave": self.method.name,
            "clicks": self.clicks.name,
            "length": self.length,
        }

    def check_compilable(self) -> None:
        """Raise InvalidInput if the interleaving method cannot be compiled."""
        if self.method.name == "optimized":
            raise InvalidInput(
                "optimized interleaving solves a linear program for each list and cannot be compiled: "
                "pass compiled=False, or choose another method"
            )

    @property
    def kernels(self) -> dict[str, compiling.Kernel]:
        """The kernels that replace `arrange` and `judge` in the outcome kernel."""
        return {"arrange": self.method.arrange, "judge": self.method.judge}

    def world(self) -> World:
        """Return the arrays that the outcome kernel reads, with a new workspace; each thread needs its own."""
        rankings = self.rankers.rankings
        most = int(np.diff(rankings.offsets).max())
        working = make_workspace(most, min(self.length, most), self.method.tau, rankings.order.dtype)
        return World(rankings, self.collection.grades.astype(np.int64), self._table, working)

    def counting_kernel(self, world: World) -> compiling.Kernel:
        """Return `count_outcomes` for this environment, interpreted if the method cannot be compiled."""
        if self.method.name == "optimized":
            return compiling.interpret_with(count_outcomes, self.kernels)
        count = compiling.compile_with(count_outcomes, self.kernels, name="count_" + self.method.arrange.__name__)
        nothing = np.zeros(len(world.rankings.offsets) - 1, np.int64)
        count(world, 0, 1, 0, nothing, np.zeros(3, np.int64), np.random.default_rng(0))
        return count
