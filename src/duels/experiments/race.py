"""A race: every policy that suits a problem, on that problem, in one table and one figure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import testing
from ..checks import check_int
from ..engine import loop
from ..engine.threads import thread_count
from ..errors import DuelsError, InvalidInput
from ..policies import BUILT_IN, Policy
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..regrets import AUTO
from ..results import Results, combine
from ..simulation import simulate

HORIZON, RUNS = 100_000, 20
CONFORMS = "yes"


class RaceRow(NamedTuple):
    """One policy in a race, at the horizon."""

    policy: str
    regret: float  # the mean over runs
    standard_error: float | None
    least: float
    most: float
    accuracy: float
    nanoseconds: float  # a step and core
    conforms: str  # yes; what is broken; or that it was not looked at


class Race(NamedTuple):
    """What a race found: rows in the order of their regret, and why some policies did not take part."""

    rows: list[RaceRow]
    results: Results
    regret: str  # the notion
    left_out: dict[str, str]

    def plot(self) -> Any:
        """The regrets over time."""
        from .. import figures  # slow to load, and most races are not drawn

        return figures.regret(self.results)


def race(
    problem: Any,
    policies: Iterable[Any] | None = None,
    *,
    horizon: int = HORIZON,
    runs: int = RUNS,
    seed: int = 0,
    jobs: int | None = None,
    regret: str = AUTO,
    check: bool = True,
    progress: bool | None = None,
) -> Race:
    """Play policies on a problem and compare them: regret, accuracy, speed, and whether each keeps its promises.

    policies: by default all built-in ones whose assumptions the problem meets (see `unsuitable`).
    check: put each policy to the conformance checks too, so that a slow one can be told from a wrong one. It takes some
        seconds a policy, the first time.
    """
    matrix = as_matrix(problem) if not hasattr(problem, "outcome") else problem.matrix
    horizon, runs = check_int("horizon", horizon, 1, loop.LATEST), check_int("runs", runs, 1)
    jobs = thread_count(jobs)
    left_out: dict[str, str] = {}
    chosen = [find_policy(one) for one in (BUILT_IN if policies is None else policies)]
    if policies is None:
        reasons = {one.name: unsuitable(one, matrix) for one in chosen}
        left_out = {name: reason for name, reason in reasons.items() if reason}
        chosen = [one for one in chosen if one.name not in left_out]
    if not chosen:
        raise InvalidInput("there are no policies to race: name at least one")
    rows, parts, notion = [], [], ""
    for one in chosen:
        results = simulate(
            problem, one, horizon=horizon, runs=runs, seed=seed, jobs=jobs, regret=regret, progress=progress
        )
        notion = results.notion
        parts.append(results)
        rows.append(_row(one, results, min(jobs, runs), check))
    ordered = sorted(rows, key=lambda row: row.regret)
    return Race(ordered, combine(parts), notion, left_out)


def unsuitable(policy: Policy, matrix: PreferenceMatrix) -> str:
    """Why a policy is not made for a matrix; empty if it is. A module says what it needs as `ASSUMES`."""
    needs = getattr(policy.module, "ASSUMES", "")
    if needs in ("condorcet", "total order") and matrix.condorcet_winner is None:
        return "needs a Condorcet winner"
    if needs == "total order" and not matrix.is_total_order:
        return "needs a total order"
    if needs == "no even pair" and (matrix.beats | matrix.beats.T).sum() < matrix.arms * (matrix.arms - 1):
        return "needs that of every pair one beats the other"
    return ""


def conformance(policy: Policy) -> str:
    """`yes`, or what the policy breaks."""
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
