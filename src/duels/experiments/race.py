"""A race: all policies whose assumptions a problem meets, compared in one table and one figure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Unpack

import polars as pl

from .. import testing
from ..checks import check_int
from ..engine import loop
from ..engine.threads import thread_count
from ..errors import DuelsError, InvalidInput
from ..policies import BUILT_IN, Policy, PolicyLike, load_policy
from ..preference import PreferenceMatrix
from ..regrets import AUTO
from ..results import Results, combine
from ..simulation import Environment, ProblemLike, simulate
from .running import as_problem, matrix_of

if TYPE_CHECKING:
    import altair as alt

    from ..figures import Look

HORIZON, RUNS = 100_000, 20
CONFORMS = "yes"
DRAWN = 6  # the best policies, which a figure shows


class RaceRow(NamedTuple):
    """One policy in a race, at the horizon."""

    policy: str
    regret: float  # the mean over runs
    standard_error: float | None
    least: float
    most: float
    accuracy: float
    nanoseconds: float  # per step per core
    conforms: str  # yes; what the policy breaks; or not checked


class Race(NamedTuple):
    """The results of a race: rows in the order of their regret, and why some policies were left out."""

    rows: list[RaceRow]
    results: Results
    regret: str  # the notion
    left_out: dict[str, str]

    def plot(self, **look: "Unpack[Look]") -> "alt.LayerChart | alt.ConcatChart":
        """Draw the regrets over time of the best six policies, and of baselines such as `random`.

        Args:
            **look: How the figure looks: see `duels.figures.Look`. By default each line is named at its end, and the
                band is the 95% interval of its mean.
        """
        from .. import figures  # takes long to import, and most races are not drawn

        names = [row.policy for row in self.rows]
        shown = [name for place, name in enumerate(names) if place < DRAWN or _is_baseline(name)]
        frame = self.results.frame.filter(pl.col("policy").is_in(shown))
        order = pl.col("policy").cast(pl.Enum(shown))  # colors are in the order of the table
        drawn = Results(frame.sort(order, maintain_order=True), provenance=self.results.provenance)
        usual: Look = {"legend": "direct", "band": "ci" if self.rows[0].standard_error is not None else None}
        if len(shown) < len(names):
            kind = figures.over_time.with_notion("Regret", [self.regret])
            usual["title"] = f"{kind} on {frame['problem'][0]}: the best {DRAWN} of {len(names)} policies"
        for option in ("labels", "colors"):  # may be about policies that are left out
            given = look.get(option)
            if isinstance(given, Mapping):
                left_out = set(names) - set(shown)
                look[option] = {name: text for name, text in given.items() if name not in left_out}
        return figures.regret(drawn, **(usual | look))


def _is_baseline(policy: str) -> bool:
    """Whether a figure always shows a policy, for comparison: its module says so."""
    name = policy.partition(":")[0]
    return name in BUILT_IN and bool(getattr(load_policy(name).module, "BASELINE", False))


def run_race(
    problem: ProblemLike | Environment,
    policies: Iterable[PolicyLike] | None = None,
    *,
    horizon: int = HORIZON,
    runs: int = RUNS,
    seed: int = 0,
    jobs: int | None = None,
    regret: str = AUTO,
    check: bool = True,
    progress: bool | None = None,
) -> Race:
    """Play policies on a problem and compare them: regret, accuracy, speed, and whether each one conforms.

    Args:
        problem: The problem, as `simulate` takes it.
        policies: The policies; by default all built-in ones whose assumptions the problem meets (see `unsuitable`).
        horizon: The number of steps.
        runs: The number of runs of each policy.
        seed: The seed of all runs.
        jobs: The number of threads; by default one per core.
        regret: The notion of regret, as `simulate` takes it.
        check: Whether to run the conformance checks too. The first time, they take some seconds per policy.
        progress: Whether to show progress bars; by default on a terminal only.

    Raises:
        InvalidInput: If an argument is wrong, or no policy suits the problem.

    Example:
        >>> found = run_race("arxiv-6", ["rucb", "savage"], horizon=10_000, runs=10)
        >>> [row.policy for row in found.rows]
        ['rucb', 'savage']
    """
    world = as_problem(problem)
    matrix = matrix_of(world)
    horizon, runs = check_int("horizon", horizon, 1, loop.LATEST), check_int("runs", runs, 1)
    jobs = thread_count(jobs)
    left_out: dict[str, str] = {}
    chosen = [load_policy(one) for one in (BUILT_IN if policies is None else policies)]
    if policies is None:
        reasons = {one.name: unsuitable(one, matrix) for one in chosen}
        left_out = {name: reason for name, reason in reasons.items() if reason}
        chosen = [one for one in chosen if one.name not in left_out]
    if not chosen:
        raise InvalidInput("there are no policies to race: name at least one")
    rows, parts, notion = [], [], ""
    for one in chosen:
        results = simulate(
            world, one, horizon=horizon, runs=runs, seed=seed, jobs=jobs, regret=regret, progress=progress
        )
        notion = results.notion
        parts.append(results)
        rows.append(_row(one, results, min(jobs, runs), check))
    ordered = sorted(rows, key=lambda row: row.regret)
    return Race(ordered, combine(parts), notion, left_out)


def unsuitable(policy: Policy, matrix: PreferenceMatrix) -> str:
    """Say why a policy does not suit a matrix; empty if it does. A module names what it needs as `ASSUMES`."""
    needs = getattr(policy.module, "ASSUMES", "")
    if needs in ("condorcet", "total order") and matrix.condorcet_winner is None:
        return "needs a Condorcet winner"
    if needs == "total order" and not matrix.is_total_order:
        return "needs a total order"
    if needs == "no even pair" and (matrix.beats | matrix.beats.T).sum() < matrix.arms * (matrix.arms - 1):
        return "needs that of every pair one beats the other"
    return ""


def conformance(policy: Policy) -> str:
    """Run the conformance checks; return `yes`, or what the policy breaks."""
    try:
        testing.check_policy(policy)
    except DuelsError as error:
        return str(error)
    return CONFORMS


def _row(policy: Policy, results: Results, threads: int, check: bool) -> RaceRow:
    last = results.final().row(0, named=True)
    steps = results.frame["run"].n_unique() * last["t"]
    return RaceRow(
        str(policy),
        last["regret"],
        last["standard_error"],
        last["regret_min"],
        last["regret_max"],
        last["accuracy"],
        1e9 * results.provenance["seconds"] * threads / steps,
        conformance(policy) if check else "not checked",
    )
