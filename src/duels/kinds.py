"""Functions for both kinds of alternatives: arms, and settings of parameters.

They look at what is given and call the function of that kind: `simulation` and `study` know arms only, `continuous`
knows settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from .errors import InvalidInput
from .regrets import AUTO

if TYPE_CHECKING:  # each function loads what it calls: studies and simulations, of arms and of settings
    from .continuous.spaces import Setting, Space
    from .continuous.tuning.study import TuningStudy
    from .policies import Policy, PolicyLike
    from .results import Results
    from .simulation import Environment, ProblemLike, Recorded
    from .specs import Value
    from .storage.storage import Storage
    from .study.stats.about import About
    from .study.study import Study

LEASE = 3600.0  # seconds, of both kinds of studies


@overload
def create_study(
    arms: Iterable[str],
    study_name: str = "study",
    storage: str | Storage | None = None,
    policy: str | Policy | ModuleType | None = None,
    *,
    confidence: float | None = None,
    margin: float | None = None,
    after: Literal["stop", "rank"] | None = None,
    about: About | None = None,
    horizon: int | None = None,
    seed: int = 0,
    lease: float = LEASE,
    load_if_exists: bool = False,
) -> Study: ...


@overload
def create_study(
    arms: None = None,
    study_name: str = "study",
    storage: str | Storage | None = None,
    policy: str | None = None,
    *,
    space: Space | Mapping[str, object],
    confidence: float | None = None,
    seed: int = 0,
    lease: float = LEASE,
    load_if_exists: bool = False,
) -> TuningStudy: ...


def create_study(
    arms: Iterable[str] | None = None,
    study_name: str = "study",
    storage: str | Storage | None = None,
    policy: Any = None,
    *,
    space: Space | Mapping[str, object] | None = None,
    confidence: float | None = None,
    margin: float | None = None,
    after: Literal["stop", "rank"] | None = None,
    about: About | None = None,
    horizon: int | None = None,
    seed: int = 0,
    lease: float = LEASE,
    load_if_exists: bool = False,
) -> Study | TuningStudy:
    """Create a study: which of some arms is best, or, with a space, which setting of its parameters?

    Args:
        arms: The names of the arms, at least two; left out with a space.
        study_name: The study's name, unique in its storage.
        storage: A database's URL, by default `sqlite:///duels.db`; PostgreSQL as `postgresql://user@host/name`.
        policy: What chooses the duels: a name such as `"rucb:alpha=0.6"`, a Python file, or a module of yours. By
            default `verdict`, which needs the fewest answers. With a space, a name such as `"gp_rucb:beta=3"`; by
            default `eubo`.
        space: The parameters of settings, see `duels.Space`. The study is then a `TuningStudy`.
        confidence: The probability that no verdict of the study is ever wrong; by default 0.95. With a space, the level
            of the intervals that are shown.
        margin: If above 0, an arm may be declared practically tied with the best: none beats it with a probability of
            more than ½ + margin. By default 0, where arms that are equally good never get a verdict: set a margin such
            as 0.05 if they may be.
        after: What to do when the winner is known: `"stop"` asking people and judges (the default), or `"rank"` the
            others too.
        about: What the verdict is about, if the study has items. By default `"these-items"`: they are fixed, people
            vary, and each pair is asked about items drawn at random. `"new-items"`: they are a sample of the items that
            matter, and each pair is asked about each of them once. `"these-answers"`: the same, and every answer is
            final, so that the verdict says who wins more of them.
        horizon: How many duels there will be, for policies that need to know.
        seed: Of the policy's random choices, and of the orders in which pairs are asked about these items.
        lease: Seconds after which a duel without an answer no longer counts as open. An answer that comes later is
            stored and shown, but does not count; with a space it does.
        load_if_exists: Load the study of that name if there is one; it must have these arms or this space, and this
            policy and goal if they are given. Another margin is set, since it may be chosen at any time.

    Returns:
        The study.

    Raises:
        Conflict: If there is a study of that name already, or, with `load_if_exists`, a different one.
        InvalidInput: If an argument cannot be used.
        StorageError: If the database cannot be used.

    Example:
        >>> study = duels.create_study(["prompt-1", "prompt-2"], "prompts", "sqlite://")
        >>> duels.create_study(space={"temperature": (0.0, 1.5)}, study_name="voice", storage="sqlite://").space.names
        ('temperature',)
    """
    shared: dict[str, Any] = {"confidence": confidence, "seed": seed, "lease": lease, "load_if_exists": load_if_exists}
    goal = {"margin": margin, "after": after, "about": about, "horizon": horizon}
    if space is None:
        from .study.create import create_study as create_arm_study

        if arms is None:
            raise InvalidInput("a study has nothing to compare: expected arms, or a space of parameters to tune")
        return create_arm_study(arms, study_name, storage, policy, **shared, **goal)  # type: ignore[arg-type]
    given = ["arms"] if arms is not None else [name for name, value in goal.items() if value is not None]
    if given:
        raise InvalidInput(f"{given[0]} is for studies that compare arms: leave it out, or leave out space")
    from .continuous.tuning.create import create_tuning

    return create_tuning(space, study_name, storage, policy, **shared)


def load_study(
    study_name: str, storage: str | Storage | None = None, policy: str | Policy | ModuleType | None = None
) -> Any:
    """Load a study: a `Study` if it compares arms, a `TuningStudy` if it tunes parameters.

    Args:
        study_name: The study's name.
        storage: As in `create_study`.
        policy: Needed only if it was a module of your own rather than a name or a file.

    Returns:
        The study.

    Raises:
        UnknownName: If there is no such study.
        StorageError: If the database does not exist, or cannot be used.
        InvalidInput: If the study has another policy.
    """
    from .study.create import find_row
    from .study.create import load_study as load_arm_study

    store, row = find_row(study_name, storage)
    if policy is not None or row.kind == "arms":
        return load_arm_study(study_name, store, policy)
    from .continuous.tuning.create import load_tuning

    return load_tuning(study_name, store)


def simulate(
    problem: ProblemLike | Environment | Callable[[Setting], float],
    policy: PolicyLike | None = None,
    *,
    horizon: int,
    runs: int | range = 1,
    seed: int = 0,
    jobs: int | None = None,
    checkpoints: Iterable[int] | None = None,
    record: Recorded = (),
    compiled: bool = True,
    regret: str = AUTO,
    space: Space | Mapping[str, object] | None = None,
    maximum: float | None = None,
    steepness: float | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
    **parameters: Value,
) -> Results:
    """Play a policy on a problem and report its regret and recommendation at the checkpoints.

    Args:
        problem: A `PreferenceMatrix`, an array, a matrix file or a named problem; or an environment: an
            `InterleavingEnvironment`, in which rankers duel directly, `ChangingPreferences`, or your own; or a function
            of continuous parameters: a name such as `"branin"` or `"ackley:d=4"`, or your own, which takes a setting (a
            dict by parameter name) and returns its utility.
        policy: A name such as `"rucb"` or `"btm:gamma=2"`, a Python file or a module of your own; by default `rucb`.
            On functions, a name such as `"gp_rucb:beta=3"`; by default `eubo`.
        horizon: The number of steps to play, up to 10¹⁵; of duels on functions, up to 10,000. Policies that need a
            horizon get this one.
        runs: The number of independent runs, or a range of run numbers. Run r depends only on `seed` and r: not on
            threads, on other runs or on checkpoints.
        seed: The seed of all runs.
        jobs: The number of threads; by default one per core. Named functions run in processes.
        checkpoints: The times to report; by default ten per decade, and all on functions. The horizon is always
            reported.
        record: `"pairs"` records the duels and wins of every pair at every checkpoint (`results.pairs`); a pair of
            arms such as `(0, 3)` records the policy's interval for it (`results.intervals`).
        compiled: False plays the policy in the Python interpreter, for breakpoints and prints; the results are the
            same.
        regret: `condorcet`, `copeland`, `borda`, `weak` or `strong` (see `duels.regrets`). By default it is
            `condorcet` if the problem has a Condorcet winner, else `copeland`; `results.notion` says which. A
            recommendation is correct if it is one of this notion's winners.
        space: The space of a function of your own, as `duels.Space` takes it.
        maximum: The largest value of a function of your own; by default it is searched for.
        steepness: On functions, left wins with probability σ(steepness · (f(left) − f(right))/sd); by default 8.
        out: On functions, a folder to keep finished runs in. The same call resumes an interrupted simulation.
        progress: Whether to show a progress bar; by default on a terminal only.
        **parameters: Parameters of the policy.

    Returns:
        One row per run and checkpoint, with the provenance. Of a function there are no arms: `arms`, `recommended`,
        `correct` and `explored` are null, and a column `recommendation` has the recommended setting as JSON.

    Raises:
        InvalidInput: If an argument is wrong.
        PolicyError: If the policy fails while it plays.

    Example:
        >>> simulate("arxiv-6", "rucb", horizon=1000, runs=10, alpha=0.6)
        >>> simulate("branin", "eubo", horizon=50, runs=20)
    """
    shared: dict[str, Any] = {"seed": seed, "jobs": jobs, "checkpoints": checkpoints, "progress": progress}
    of_functions = {"space": space, "maximum": maximum, "steepness": steepness, "out": out}
    given = {name: value for name, value in of_functions.items() if value is not None}
    if not is_function(problem):
        from .simulation import simulate as simulate_arms

        if given:
            raise InvalidInput(f"{min(given)} is for functions of continuous parameters: leave it out")
        more: dict[str, Any] = {"record": record, "compiled": compiled, "regret": regret, **parameters}
        return simulate_arms(cast(Any, problem), policy or "rucb", horizon=horizon, runs=runs, **shared, **more)
    of_arms = {"record": record != (), "compiled": not compiled, "regret": regret != AUTO}
    if refused := [name for name, value in of_arms.items() if value]:
        raise InvalidInput(f"{refused[0]} is for problems with arms: leave it out")
    from .continuous.policies import DEFAULT
    from .continuous.simulation import simulate_continuous

    played: dict[str, Any] = {"duels": horizon, "runs": runs, **shared, **given, **parameters}
    return simulate_continuous(cast(Any, problem), cast(Any, policy) or DEFAULT, **played)


def is_function(problem: object) -> bool:
    """Return whether a problem is a function of continuous parameters: one of your own, or the name of one."""
    if not isinstance(problem, str):
        return callable(problem) and not hasattr(problem, "matrix")
    from .continuous.functions import list_functions
    from .problems import list_problems

    name = problem.partition(":")[0]
    known = name in list_functions() and name not in {info.name for info in list_problems()}
    return known and not Path(problem).exists()
