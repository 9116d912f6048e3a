"""The figures of `duels reproduce`: those of its results, and those that explain the paper's proofs.

The latter need short simulations: RUCB on a small problem, where its bounds are close enough to be drawn, and one run
of it on the experiment's smallest problem.
"""

from collections.abc import Mapping

from .. import figures
from ..figures.listing import FIGURES, Figure, Subject, results_figures
from ..preference import PreferenceMatrix
from ..problems import load_problem
from ..results import Results
from ..simulation import simulate

UNLUCKY = 224  # the seed of a run on cyclic-4 in which p leaves the interval and comes back
CAUTIOUS = "rucb:alpha=1.01"


def experiment_figures(
    results: Results, matrices: Mapping[str, PreferenceMatrix], pool: PreferenceMatrix
) -> list[Figure]:
    """Draw the figures of an experiment's results and of the pool of its arms.

    Args:
        results: The results.
        matrices: The preference matrix of every problem, by the problem's name.
        pool: The matrix that the problems were drawn from.
    """
    subject = Subject(results, matrices, pool)
    (preferences,) = FIGURES["preferences"](Subject(None, {pool.name: pool}))
    both = FIGURES["regret_and_accuracy"](subject)
    return [*results_figures(subject), *both, *FIGURES["subsets"](subject), preferences._replace(name="preferences")]


def proof_figures(
    results: Results,
    matrices: Mapping[str, PreferenceMatrix],
    *,
    runs: int,
    seed: int,
    jobs: int | None,
    pool: PreferenceMatrix | None = None,
) -> list[Figure]:
    """Draw the figures that explain the proofs of Lemma 1 and Theorems 2 and 3.

    Args:
        results: The results of the experiment.
        matrices: The preference matrix of every problem, by the problem's name.
        runs: The number of runs of the simulations for these figures.
        seed: Their seed.
        jobs: The number of threads; by default one per core.
        pool: The matrix that the problems were drawn from, for titles.
    """
    origin = "" if pool is None else pool.name
    drawn = [*_lemma_figures(), *_theorem_figures(matrices, origin, runs, seed, jobs)]
    if _has_bounds(results, matrices):  # then the results have such a figure of their own
        drawn = [figure for figure in drawn if figure.name != "bounds"]
    return drawn


def _lemma_figures() -> list[Figure]:
    times = [*range(1, 300), *range(300, 2_001, 10)]  # late steps change little, and each one takes time to draw
    one = simulate("cyclic-4", "rucb", horizon=2_000, seed=UNLUCKY, checkpoints=times, record=[(0, 1)], progress=False)
    return [
        Figure(
            "lemma-1",
            "The interval of one pair",
            "The paper's illustration of Lemma 1, in a run chosen for its bad luck: in most runs p is always inside.",
            figures.intervals(one, "cyclic-4"),
        ),
        Figure(
            "lemma-1-tails",
            "The same with its tails",
            "The appendix's form: Chernoff and Hoeffding's bound as the shaded areas.",
            figures.intervals(one, "cyclic-4", tails=True),
        ),
    ]


def _theorem_figures(
    matrices: Mapping[str, PreferenceMatrix], origin: str, runs: int, seed: int, jobs: int | None
) -> list[Figure]:
    smallest = min(matrices.values(), key=len)
    smallest = PreferenceMatrix(smallest.array, smallest.names, smallest.name + f" of {origin}" * bool(origin))
    one = simulate(
        smallest, "rucb", horizon=100_000, seed=seed, jobs=jobs, checkpoints=[], record="pairs", progress=False
    )
    small = load_problem("cyclic-4")  # its bounds are close enough to be drawn
    cautious = simulate(small, CAUTIOUS, horizon=100_000, runs=runs, seed=seed, jobs=jobs, progress=False)
    return [
        Figure(
            "theorem-2", "RUCB's state", "The paper's illustration of Theorem 2's proof.", figures.state(one, smallest)
        ),
        Figure(
            "theorem-3",
            "Quantiles of regret and their bound",
            "The paper's illustration of Theorem 3's proof, with α = 1.01 on four arms.",
            figures.regret_quantiles(cautious, small),
        ),
        Figure(
            "bounds",
            "Regret and its bounds",
            "With α = 1.01 on four arms. The paper's experiments have α = 0.51, whose bounds are beyond any run.",
            figures.regret(cautious, bounds=small),
        ),
    ]


def _has_bounds(results: Results, matrices: Mapping[str, PreferenceMatrix]) -> bool:
    """Whether any bound on the results is close enough to be drawn; at the paper's α = 0.51 none is."""
    points = figures.regret_points(results)
    return len(figures.bounds_in_sight(points, figures.bound_points(points, matrices))) > 0
