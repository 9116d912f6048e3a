"""From rankers to preferences: estimate who beats whom, or duel rankers directly, by interleaving and simulated clicks.

A comparison draws a query, interleaves the two rankers' lists for it, lets the click model click, and asks the
interleaving method who won. Following Yue & Joachims (2011) and Zoghi et al. (2014), section 6.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_int
from ..engine import compiling
from ..engine.threads import in_threads, thread_count
from ..errors import InvalidInput, cut
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from .clicks import ClickModel, ClickTable, click_model, draw_clicks
from .collection import Collection
from .interleaving import LENGTH, Desk, Method, clear, desk, find_method, load
from .rankers import Rankers, Rankings, feature_rankers

# An interleaving method's kernels, in whose places `compiling.compile_with` puts them.
arrange: Any = None
judge: Any = None


class World(NamedTuple):
    """What the outcome kernel reads, and the desk it works on: one for each run."""

    rankings: Rankings
    grades: np.ndarray  # (D,) int64: how relevant each document is
    table: ClickTable
    desk: Desk


def compare(world, documents, start, rng):
    """One comparison of the two rankings on the desk: 1 the first won, 0 the second, ½ neither."""
    desk = world.desk
    length = len(desk.shown)
    shown = arrange(desk, documents, length, rng)
    for k in range(shown):
        desk.grades[k] = world.grades[start + desk.shown[k]]
    clicks = draw_clicks(world.table, desk.grades, shown, desk.clicked, rng)
    won = judge(desk, shown) if clicks > 0 else 0.5
    clear(desk, shown)
    return won


def outcome(world, a, b, luck):
    """The outcome kernel of dueling rankers: a random query, one comparison."""
    queries = len(world.rankings.offsets) - 1
    query = int(luck.random() * queries)
    documents = load(world.desk, world.rankings, a, b, query)
    return compare(world, documents, world.rankings.offsets[query], luck)


def count_outcomes(world, a, b, comparisons, per_query, counts, rng):
    """`comparisons` comparisons of rankers a and b; counts becomes losses, ties and wins of a.

    Queries are drawn first and then taken one after another, so that each pair of rankings is loaded once.
    """
    queries = len(per_query)
    per_query[:] = 0
    for _ in range(comparisons):
        per_query[int(rng.random() * queries)] += 1
    for query in range(queries):
        if per_query[query] > 0:
            documents = load(world.desk, world.rankings, a, b, query)
            for _ in range(per_query[query]):
                won = compare(world, documents, world.rankings.offsets[query], rng)
                counts[int(2.0 * won)] += 1


class EstimatedPreferences(PreferenceMatrix):
    """A preference matrix with the counts it was estimated from; a tie counts ½."""

    def __init__(self, counts: np.ndarray, names: Any, name: str = "") -> None:
        """counts: (K, K, 3) int64, losses, ties and wins of i against j."""
        self.counts = _frozen(counts.copy())
        comparisons = counts.sum(axis=2)
        np.fill_diagonal(comparisons, 1)
        share = (counts[:, :, 2] + 0.5 * counts[:, :, 1]) / comparisons
        upper = np.triu(share, 1)
        super().__init__(upper + np.tril(1 - upper.T, -1) + np.eye(len(share)) / 2, names, name)
        square = (counts[:, :, 2] + 0.25 * counts[:, :, 1]) / comparisons
        spread = np.sqrt(np.maximum(square - share**2, 0.0) / comparisons)
        np.fill_diagonal(spread, 0.0)
        np.fill_diagonal(comparisons, 0)
        self.comparisons, self.standard_errors = _frozen(comparisons), _frozen(spread)

    def describe(self) -> str:
        """What the matrix is like, and how sure its winner is."""
        text = super().describe()
        least = int(self.comparisons[~np.eye(self.arms, dtype=bool)].min())
        said = f"{least:,} comparisons a pair"
        winner = self.condorcet_winner
        if winner is not None:
            gaps, errors = (np.delete(row, winner) for row in (self.gaps, self.standard_errors[winner]))
            ahead = np.divide(gaps, errors, out=np.full(len(gaps), np.inf), where=errors > 0)
            said += f"; the winner is at least {ahead.min():.1f} standard errors ahead"
        return f"{text}\n{'estimated from':<21} {said}"

    def __reduce__(self) -> tuple[Any, ...]:
        return EstimatedPreferences, (self.counts, self.names, self._name)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


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
    """The matrix of who beats whom, from `comparisons` interleaved comparisons of each pair of rankers.

    Rankers are by default one for each feature. The same for a seed, whatever the number of threads.
    """
    comparisons, seed = check_int("comparisons", comparisons, 1), check_int("seed", seed, 0)
    jobs = thread_count(jobs)
    environment = InterleavingEnvironment(collection, rankers, clicks, interleave, length=length)
    rankers = environment.rankers
    count = environment.counting(environment.world())
    first, second = np.triu_indices(len(rankers), 1)
    counts = np.zeros((len(rankers), len(rankers), 3), np.int64)

    def one_part(part: int, stop: Any, share: Callable[[float], None]) -> None:
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
    counts[second, first] = counts[first, second, ::-1]  # the same duels seen from the other side
    return EstimatedPreferences(counts, rankers.names, name or environment.name)


class InterleavingEnvironment:
    """K rankers as the arms of a dueling bandit: each duel is one interleaved comparison on a random query.

    `duels.simulate` takes it in the place of a matrix. Regret is measured by `matrix`, an estimate of who beats whom
    (by default one of 4,000 comparisons a pair, made when it is first needed).
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
            raise InvalidInput(f"{cut(collection)} is no collection: read one with duels.ranking.load(path)")
        rankers = feature_rankers(collection) if rankers is None else rankers
        if not isinstance(rankers, Rankers):
            raise InvalidInput(f"{cut(rankers)} are no rankers: make them, e.g. feature_rankers(collection, [39, 23])")
        if rankers.collection is not collection:
            raise InvalidInput("the rankers rank the documents of another collection: make them from this one")
        if len(rankers) < 2:
            raise InvalidInput(f"{len(rankers)} ranker was given: expected at least 2 to compare")
        length = check_int("length", length, 1)
        self.collection, self.rankers, self.method, self.length = collection, rankers, find_method(interleave), length
        self.clicks = click_model(clicks, collection.grade_count)
        self._table = self.clicks.table(length, collection.grade_count)
        self._matrix = None if matrix is None else self._checked(as_matrix(matrix))

    def __repr__(self) -> str:
        return f"InterleavingEnvironment({len(self.rankers)} rankers, {self.name})"

    def _checked(self, matrix: PreferenceMatrix) -> PreferenceMatrix:
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
        """What results call it: collection, click model, and the method unless it is the usual one."""
        parts = [self.collection.name, self.clicks.name, self.method.name]
        return "-".join(parts[: 2 if self.method.name == "probabilistic" else 3])

    @property
    def chunk(self) -> int:
        """Comparisons between two looks at the clock: interpreted ones take milliseconds."""
        return 20 if self.method.name == "optimised" else 100_000

    @property
    def matrix(self) -> PreferenceMatrix:
        if self._matrix is None:
            self._matrix = estimate_preferences(
                self.collection, self.rankers, self.clicks, self.method, length=self.length
            )
        return self._matrix

    outcome = staticmethod(outcome)

    @property
    def said(self) -> dict[str, Any]:
        """What it is, for the provenance of results."""
        return {
            "collection": self.collection.digest,
            "rankers": list(self.rankers.names),
            "interleave": self.method.name,
            "clicks": self.clicks.name,
            "length": self.length,
        }

    def check_compilable(self) -> None:
        if self.method.name == "optimised":
            raise InvalidInput(
                "optimised interleaving solves a linear programme for each list and cannot be compiled: "
                "pass compiled=False, or choose another method"
            )

    @property
    def kernels(self) -> dict[str, Callable]:
        """What stands for `arrange` and `judge` in the outcome kernel."""
        return {"arrange": self.method.arrange, "judge": self.method.judge}

    def world(self) -> World:
        """The arrays that the outcome kernel reads, with a desk of their own: one for each thread."""
        rankings = self.rankers.rankings
        most = int(np.diff(rankings.offsets).max())
        working = desk(most, min(self.length, most), self.method.tau, rankings.order.dtype)
        return World(rankings, self.collection.grades.astype(np.int64), self._table, working)

    def counting(self, world: World) -> Callable:
        """`count_outcomes` compiled for this environment; interpreted where the method cannot be compiled."""
        if self.method.name == "optimised":
            return compiling.interpret_with(count_outcomes, self.kernels)
        count = compiling.compile_with(count_outcomes, self.kernels, name="count_" + self.method.arrange.__name__)
        nothing = np.zeros(len(world.rankings.offsets) - 1, np.int64)
        count(world, 0, 1, 0, nothing, np.zeros(3, np.int64), np.random.default_rng(0))
        return count
