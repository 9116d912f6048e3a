"""The paper's figures for one experiment: those of its results, and those that explain its proofs and arguments.

The latter need a little to be simulated: RUCB on a small problem, where its bounds are in sight, one run of it on the
experiment's smallest problem, and Beat the Mean with several γ.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from .. import figures
from ..preference import PreferenceMatrix
from ..problems import problem
from ..results import Results, combine
from ..simulation import simulate

GAMMAS = (0.15, 0.2, 0.3, 0.5, 1, 3, 4, 6)  # for `misleading_problem`, whose own is 3
LONG = 20_000_000  # steps in which γ = 4 still comes to an end, and γ = 6 does not
UNLUCKY = 224  # the seed of a run on cyclic-4 in which p leaves the interval and comes back
CAUTIOUS = "rucb:alpha=1.01"


class Picture(NamedTuple):
    """A figure with its title and what it shows."""

    title: str
    caption: str
    chart: Any


def misleading_problem() -> PreferenceMatrix:
    """The winner beats arm 1 by 0.03 and the rest by 0.15; arm 1, the Borda winner, beats the rest by 0.45."""
    above = np.full((8, 8), 0.5)
    above[0, 1:], above[0, 1], above[1, 2:] = 0.65, 0.53, 0.95
    return PreferenceMatrix(np.triu(above) + np.tril(1 - above.T, -1), name="misleading")


def results_pictures(
    results: Results, matrices: Mapping[str, PreferenceMatrix], pool: PreferenceMatrix
) -> dict[str, Picture]:
    """The figures of an experiment's results and matrices, by the name of their files."""
    regret = figures.regret(results, pool=pool.name)
    accuracy = figures.accuracy(results, pool=pool.name)
    pictures = {
        "regret": Picture("Cumulative regret", "The paper's Figure 1, top row.", regret),
        "accuracy": Picture("Accuracy", "The paper's Figure 1, bottom row.", accuracy),
        "assumptions": Picture(
            "Assumptions on subsets", "The appendix's first figure.", figures.condorcet_probability(pool)
        ),
        "preferences": Picture("Preferences", "Who beats whom.", figures.preferences(pool)),
    }
    if _has_bounds(results, matrices):
        bounded = figures.regret(results, bounds=matrices, pool=pool.name)
        pictures["bounds"] = Picture("Regret and its bounds", "", bounded)
    return pictures


def proof_pictures(
    results: Results,
    matrices: Mapping[str, PreferenceMatrix],
    *,
    runs: int,
    seed: int,
    jobs: int | None,
    pool: PreferenceMatrix | None = None,
) -> dict[str, Picture]:
    """The figures that explain the proofs of Lemma 1 and Theorems 2 and 3, and the arguments about γ and horizons.

    pool: the matrix that the problems were drawn from, to be named in titles.
    """
    origin = "" if pool is None else pool.name
    pictures = _lemma_pictures() | _theorem_pictures(matrices, origin, runs, seed, jobs)
    if _has_bounds(results, matrices):
        del pictures["bounds"]  # the results have a figure of their own
    misleading = misleading_problem()
    guessed = [
        simulate(
            misleading,
            f"btm:gamma={gamma:g}",
            horizon=LONG,
            runs=min(runs, 100 if gamma < 1 else 2),  # from 1 on, runs are long and alike
            checkpoints=[],
            seed=seed,
            jobs=jobs,
            progress=False,
        )
        for gamma in GAMMAS
    ]
    pictures["gamma"] = Picture(
        "Beat the Mean with a wrong γ",
        "Far too small a γ loses the winner, mostly to the Borda winner. The larger γ, the longer until arms leave. "
        "Up to 4 the right arm is named, at a price that grows; at 6 none has left at the horizon, and the Borda "
        "winner is named again. Less than the true γ can be enough, as here, but what is proved needs that.",
        figures.gamma(combine(guessed), misleading),
    )
    told = results.frame.group_by("policy", maintain_order=True).agg(pl.col("horizon").n_unique())
    afresh = [policy for policy, horizons in told.iter_rows() if horizons > 1]
    if afresh:
        largest = max(matrices, key=lambda name: matrices[name].arms)
        pictures["horizons"] = Picture(
            "Horizons too short and too long",
            "What a policy that is told a horizon costs if that is not the time it is used for.",
            figures.horizons(results, policy=afresh[0], problem=largest, pool=origin),
        )
    return pictures


def _lemma_pictures() -> dict[str, Picture]:
    times = [*range(1, 300), *range(300, 2_001, 10)]  # each step costs, and late ones are alike
    one = simulate("cyclic-4", "rucb", horizon=2_000, seed=UNLUCKY, checkpoints=times, record=[(0, 1)], progress=False)
    return {
        "lemma-1": Picture(
            "The interval of one pair",
            "The paper's illustration of Lemma 1, in a run chosen for its bad luck: in most runs p is always inside.",
            figures.intervals(one, "cyclic-4"),
        ),
        "lemma-1-tails": Picture(
            "The same with its tails",
            "The appendix's form: Chernoff and Hoeffding's bound as the shaded areas.",
            figures.intervals(one, "cyclic-4", tails=True),
        ),
    }


def _theorem_pictures(
    matrices: Mapping[str, PreferenceMatrix], origin: str, runs: int, seed: int, jobs: int | None
) -> dict[str, Picture]:
    smallest = min(matrices.values(), key=len)
    smallest = PreferenceMatrix(smallest.array, smallest.names, smallest.name + f" of {origin}" * bool(origin))
    one = simulate(
        smallest, "rucb", horizon=100_000, seed=seed, jobs=jobs, checkpoints=[], record="pairs", progress=False
    )
    small = problem("cyclic-4")  # where the bounds are near enough to be seen
    cautious = simulate(small, CAUTIOUS, horizon=100_000, runs=runs, seed=seed, jobs=jobs, progress=False)
    return {
        "theorem-2": Picture(
            "RUCB's state", "The paper's illustration of Theorem 2's proof.", figures.state(one, smallest)
        ),
        "theorem-3": Picture(
            "Quantiles of regret and their bound",
            "The paper's illustration of Theorem 3's proof, with α = 1.01 on four arms.",
            figures.regret_quantiles(cautious, small),
        ),
        "bounds": Picture(
            "Regret and its bounds",
            "With α = 1.01 on four arms. The paper's experiments have α = 0.51, whose bounds are beyond any run.",
            figures.regret(cautious, bounds=small),
        ),
    }


def _has_bounds(results: Results, matrices: Mapping[str, PreferenceMatrix]) -> bool:
    """Whether any bound on the results is near enough to be drawn; at the paper's α = 0.51 none is."""
    points = figures.regret_points(results)
    return len(figures.bounds_in_sight(points, figures.bound_points(points, matrices))) > 0
