"""The paper's figures for one experiment: those of its results, and those that explain its proofs and arguments.

The latter need a little to be simulated: one run of RUCB on the smallest problem, and Beat the Mean with several γ.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from . import figures, illustrations
from .experiment import run_experiment
from .preference import PreferenceMatrix
from .problems import problem
from .results import Results
from .simulate import simulate

GAMMAS = (0.2, 0.3, 0.5, 1, 2, 3)  # for `misleading_problem`, whose own is 3


class Picture(NamedTuple):
    """A figure with its title and what it shows."""

    title: str
    caption: str
    chart: Any


def misleading_problem() -> PreferenceMatrix:
    """The winner beats arm 1 by 0.03 and the rest by 0.15; arm 1, the Borda winner, beats the rest by 0.45."""
    above = np.full((16, 16), 0.5)
    above[0, 1:], above[0, 1], above[1, 2:] = 0.65, 0.53, 0.95
    return PreferenceMatrix(np.triu(above) + np.tril(1 - above.T, -1), name="misleading")


def results_pictures(
    results: Results, matrices: Mapping[str, PreferenceMatrix], pool: PreferenceMatrix
) -> dict[str, Picture]:
    """The figures of an experiment's results and matrices, by the name of their files."""
    return {
        "regret": Picture("Cumulative regret", "The paper's Figure 1, top row.", figures.plot_regret(results)),
        "accuracy": Picture("Accuracy", "The paper's Figure 1, bottom row.", figures.plot_accuracy(results)),
        "bounds": Picture("Regret and its bounds", "", figures.plot_regret(results, bounds=dict(matrices))),
        "assumptions": Picture(
            "Assumptions on subsets", "The appendix's first figure.", figures.plot_condorcet_probability(pool)
        ),
        "preferences": Picture("Preferences", "Who beats whom.", figures.plot_preferences(pool)),
    }


def proof_pictures(
    results: Results, matrices: Mapping[str, PreferenceMatrix], *, runs: int, seed: int, jobs: int | None
) -> dict[str, Picture]:
    """The figures that explain the proofs of Lemma 1 and Theorems 2 and 3, and the arguments about γ and horizons."""
    smallest = min(matrices.values(), key=len)
    winner = int(smallest.gaps.argmin())
    rival = int(smallest.gaps.argsort()[1])
    one = simulate(
        smallest,
        "rucb",
        horizon=100_000,
        seed=seed,
        jobs=jobs,
        checkpoints=[round(10 ** (k / 40)) for k in range(201)],
        record=["pairs", (winner, rival)],
        progress=False,
    )
    small = problem("cyclic-4")  # where H is near enough to be seen
    cautious = simulate(small, "rucb:alpha=1.05", horizon=100_000, runs=runs, seed=seed, jobs=jobs, progress=False)
    misleading = misleading_problem()
    guessed = run_experiment(
        misleading,
        [f"btm:gamma={gamma:g}" for gamma in GAMMAS],
        1_000_000,
        runs=min(runs, 40),
        checkpoints=[],
        seed=seed,
        jobs=jobs,
        progress=False,
    )
    pictures = {
        "lemma-1": Picture(
            "The interval of one pair",
            "The paper's illustration of Lemma 1: the winner and its closest rival.",
            illustrations.plot_intervals(one, smallest, pair=(winner, rival)),
        ),
        "lemma-1-tails": Picture(
            "The same with its tails",
            "The appendix's form: Chernoff and Hoeffding's bound as the shaded areas.",
            illustrations.plot_intervals(one, smallest, pair=(winner, rival), tails=True),
        ),
        "theorem-2": Picture(
            "RUCB's state", "The paper's illustration of Theorem 2's proof.", illustrations.plot_state(one, smallest)
        ),
        "theorem-3": Picture(
            "Quantiles of regret and their bound",
            "The paper's illustration of Theorem 3's proof, with α = 1.05 on four arms.",
            illustrations.plot_regret_quantiles(cautious, small),
        ),
        "gamma": Picture(
            "Beat the Mean with a wrong γ",
            "Too small a γ loses the winner to the Borda winner. The larger γ, the longer until arms can leave: regret "
            "grows, and where none has left at the horizon the Borda winner is named again.",
            illustrations.plot_gamma(guessed, misleading),
        ),
    }
    told = results.frame.group_by("policy", maintain_order=True).agg(pl.col("horizon").n_unique())
    afresh = [policy for policy, horizons in told.iter_rows() if horizons > 1]
    if afresh:
        largest = max(matrices, key=lambda name: matrices[name].arms)
        pictures["horizons"] = Picture(
            "Horizons too short and too long",
            "What a policy that is told a horizon costs if that is not the time it is used for.",
            illustrations.plot_horizons(results, policy=afresh[0], problem=largest),
        )
    return pictures
