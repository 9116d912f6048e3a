"""Experiments: problems × policies × horizons × runs, on threads, on a Dask cluster or in shards.

An experiment is data. It gives the same table, bit for bit, on any machine and in any number of pieces.
"""

import contextlib
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast

import polars as pl

from .. import specs
from ..checks import check_int
from ..engine import loop
from ..engine.threads import thread_count
from ..errors import InvalidInput, NoCondorcetWinner, UnknownName, format_count
from ..policies import Policy, PolicyLike, load_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..provenance import TOLD, Provenance, Session, build, identity, read_sessions
from ..regrets import AUTO, find_regret
from ..results import Results
from ..simulation import Done, Environment, ProblemLike, Task, checkpoint_times, on_threads
from .executors import dask_client, on_dask, pieces, shard_of
from .folder import Folder, folder_matrices, gather, refuse_other
from .subsets import draw_subset

if TYPE_CHECKING:
    from distributed import Client

Problem = PreferenceMatrix | Environment
Entry = ProblemLike | Environment | Mapping[str, object]  # a mapping describes a subset: see `as_problem`
Problems = Entry | Sequence[Entry] | Mapping[str, Entry]
KEYS = ("problems", "policies", "horizons", "runs", "seed", "checkpoints", "regret")


@dataclass(frozen=True)
class Experiment:
    """What to run. Make one with `experiment`, which checks everything first."""

    problems: dict[str, Problem]  # by name
    policies: dict[str, dict[str, Policy]]  # by label and problem
    horizons: tuple[int, ...]
    runs: int
    seed: int
    times: tuple[int, ...]  # checkpoints
    told_times: tuple[int, ...]  # checkpoints of policies that need a horizon, of which each takes those up to it
    regret: str = AUTO

    @cached_property
    def tasks(self) -> list[Task]:
        """The work in self-contained pieces, in the order of the results' rows.

        A policy that needs a horizon is run separately for each one, any other once, to the longest.
        """
        tasks: list[Task] = []
        for name, problem in self.problems.items():
            for label, chosen in self.policies.items():
                needed = chosen[name].needs_horizon
                for horizon in self.horizons if needed else self.horizons[-1:]:
                    times = tuple(t for t in (self.told_times if needed else self.times) if t <= horizon)
                    for runs in pieces(self.runs, horizon):
                        one = chosen[name]
                        tasks.append(
                            Task(len(tasks), name, problem, label, one, horizon, runs, self.seed, times, self.regret)
                        )
        return tasks

    @property
    def told(self) -> list[str]:
        """The policies that need a horizon, and so are run separately for each."""
        return [label for label, chosen in self.policies.items() if next(iter(chosen.values())).needs_horizon]

    @cached_property
    def matrices(self) -> dict[str, PreferenceMatrix]:
        """The matrix of each problem, by name."""
        return {name: matrix_of(problem) for name, problem in self.problems.items()}

    @cached_property
    def identity(self) -> Provenance:
        """All that the results depend on, as plain data: experiments with equal descriptions give equal tables."""
        described = identity(
            self.matrices,
            {
                name: getattr(problem, "description", {})
                for name, problem in self.problems.items()
                if _is_environment(problem)
            },
            self.policies,
            horizons=self.horizons,
            runs=self.runs,
            seed=self.seed,
            regret=self.regret,
        )
        return described | {"checkpoints": [list(self.times), list(self.told_times)], "tasks": len(self.tasks)}

    def __str__(self) -> str:
        return f"{_count(self.policies, 'policy', 'policies')} on {_count(self.problems, 'problem', 'problems')}"


def plan_experiment(
    problems: Problems | Experiment,
    policies: PolicyLike | Sequence[PolicyLike] | None = None,
    horizons: int | Iterable[int] | None = None,
    *,
    runs: int | None = None,
    seed: int | None = None,
    checkpoints: Iterable[int] | None = None,
    regret: str | None = None,
) -> Experiment:
    """Check what to run, and describe it as an `Experiment`.

    Args:
        problems: A mapping of names to problems, a list of problems, or one, each as `simulate` takes it; or a TOML
            file that describes the whole experiment.
        policies: One policy or several, each as `simulate` takes it; by default `rucb`. `btm:gamma=own` gives Beat
            the Mean each problem's own γ.
        horizons: One horizon or several; by default 100,000. Policies that need a horizon are run separately for
            each, others once, to the longest.
        runs: The number of runs; by default 100.
        seed: The seed of all runs; by default 0.
        checkpoints: The times to report; by default the horizons, and ten per decade for policies that are run once.
        regret: The notion of regret for all problems, as `simulate` takes it.

    Raises:
        InvalidInput: If an argument is wrong.

    Example:
        >>> planned = plan_experiment(["arxiv-6", "cyclic-4"], ["rucb", "savage"], [1_000, 10_000], runs=20)
        >>> len(planned.tasks)
        6
    """
    given = {"policies": policies, "horizons": horizons, "runs": runs, "seed": seed, "checkpoints": checkpoints}
    given |= {"regret": regret}
    if isinstance(problems, Experiment) or (isinstance(problems, str | Path) and str(problems).endswith(".toml")):
        for name, value in given.items():
            if value is not None:
                raise InvalidInput(f"{name} is {value!r}, but the experiment has its own {name}: change it there")
        return problems if isinstance(problems, Experiment) else _from_file(Path(problems))
    return _check_experiment(problems=problems, **given)


def run_experiment(
    problems: Problems | Experiment,
    policies: PolicyLike | Sequence[PolicyLike] | None = None,
    horizons: int | Iterable[int] | None = None,
    *,
    runs: int | None = None,
    seed: int | None = None,
    checkpoints: Iterable[int] | None = None,
    regret: str | None = None,
    executor: "Client | str | None" = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    shard: str | None = None,
    progress: bool | None = None,
) -> Results:
    """Run an experiment on threads or on a Dask cluster.

    Args:
        problems: An `Experiment`, a TOML file, or problems as `experiment` takes them.
        policies: As for `experiment`.
        horizons: As for `experiment`.
        runs: As for `experiment`.
        seed: As for `experiment`.
        checkpoints: As for `experiment`.
        regret: As for `experiment`.
        executor: A `dask.distributed.Client` or the address of a scheduler; by default threads of this process. The
            table is the same.
        jobs: The number of threads; by default one per core.
        out: A folder to keep finished work in. If the experiment is interrupted, running it again resumes it; if it
            is finished, running it again returns the results.
        shard: A part of the work, such as `"2/5"` for the second fifth. It needs `out`; `merge` combines the shards.
        progress: Whether to show a progress bar; by default on a terminal only.

    Returns:
        The results, or those of the shard.

    Raises:
        InvalidInput: If an argument is wrong, or the folder holds something else.
        DuelsError: If the cluster fails.

    Example:
        >>> results = run_experiment("arxiv-6", ["rucb", "savage"], 10_000, runs=20, out="out")
    """
    planned = plan_experiment(
        problems, policies, horizons, runs=runs, seed=seed, checkpoints=checkpoints, regret=regret
    )
    jobs = thread_count(jobs)
    place = format_count(jobs, "thread") if executor is None else f"Dask at {executor}"
    mine = shard_of(planned.tasks, shard)
    if out is None:
        if shard is not None:
            raise InvalidInput(
                f"shard {shard} needs a folder to keep its part in: say out (on the command line, --out)"
            )
        frames: dict[int, pl.DataFrame] = {}
        session = Session(place)

        def keep_in_memory(task: Task, played: Results, where: dict[str, str]) -> None:
            frames[task.number] = played.frame
            session.count(where)

        _play(planned, mine, keep_in_memory, executor, jobs, progress)
        table = pl.concat([frames[task.number] for task in mine])
        return Results(table, build(planned.identity, [session.record]))
    folder = Folder(out)
    folder.claim(planned.identity, planned.matrices)
    with folder.lock(shard or ""):
        if folder.finished:
            return folder.results(planned.identity)
        session = Session(place, shard)

        def keep_in_folder(task: Task, played: Results, where: dict[str, str]) -> None:
            folder.keep(task.number, played.frame)
            session.count(where)
            session.save(folder.parts)

        waiting = [task for task in mine if folder.read_finished(task.number) is None]
        try:
            _play(planned, waiting, keep_in_folder, executor, jobs, progress)
        except BaseException as error:
            kept = sum(folder.has(task.number) for task in mine)
            error.add_note(
                f"{kept} of {len(mine)} tasks are kept in {folder.path}: the same command resumes the experiment"
            )
            raise
        if shard is None:
            return _finish([folder], folder, planned.identity, [])
        own = [record for record in read_sessions([folder.parts]) if record.get("shard") == shard]
        table = gather([folder], [task.number for task in mine])
        return Results(table, build(planned.identity, own) | {TOLD: planned.told})


def merge(folders: Iterable[str | Path], out: str | Path | None = None) -> Results:
    """Combine the shards of one experiment.

    Args:
        folders: The folders of the shards.
        out: Where to write the results; by default to the first folder.

    Returns:
        The results of the whole experiment.

    Raises:
        InvalidInput: If a folder holds another experiment, or a file is damaged.
        DuelsError: If tasks are missing.
    """
    sources = [Folder(path) for path in folders]
    if not sources:
        raise InvalidInput("there is nothing to merge: name the folders of the shards")
    identities: list[Provenance] = []
    for source in sources:
        identity = source.identity
        if identity is None:
            raise InvalidInput(f"{str(source.path)!r} is not an experiment's folder: it has no experiment.json")
        if identities:
            refuse_other(identity, identities[0], f"the folder {str(source.path)!r}", "Leave it out")
        identities.append(identity)
    target = Folder(sources[0].path if out is None else out)
    target.claim(identities[0], folder_matrices(sources[0].path))
    with contextlib.ExitStack() as held:
        held.enter_context(target.lock())
        for source in sources:
            if not source.path.samefile(target.path):
                held.enter_context(source.hold_unchanged())
        for source in sources:
            if source.finished:
                results = source.results(identities[0])
                results.save(target.path)
                target.remove_parts()
                return results
        return _finish(sources, target, identities[0], [str(source.path) for source in sources])


def _play(
    planned: Experiment, tasks: list[Task], done: Done, executor: object, jobs: int, progress: bool | None
) -> None:
    if not tasks:
        return
    if executor is None:
        on_threads(tasks, done, jobs, progress, str(planned))
        return
    with dask_client(executor) as client:
        on_dask(tasks, done, client, progress, str(planned))


def _finish(sources: list[Folder], target: Folder, identity: Provenance, merged: list[str]) -> Results:
    table = gather(sources, range(identity["tasks"]))
    sessions = read_sessions(source.parts for source in sources)
    results = Results(table, build(identity, sessions, merged))
    results.save(target.path)
    target.remove_parts()
    return results


def _check_experiment(
    problems: object,
    policies: object,
    horizons: object,
    runs: object,
    seed: object,
    checkpoints: object,
    regret: object,
) -> Experiment:
    named, notion = _problems(problems), cast(str, regret or AUTO)
    several = isinstance(horizons, Iterable) and not isinstance(horizons, str)
    listed = [100_000] if horizons is None else cast(Iterable[object], horizons) if several else [horizons]
    lengths = tuple(sorted({check_int("a horizon", horizon, 1, loop.LATEST) for horizon in listed}))
    if not lengths:
        raise InvalidInput("there are no horizons: expected at least one, such as 100000")
    count = check_int("runs", 100 if runs is None else runs, 1)
    start = check_int("seed", 0 if seed is None else seed, 0)
    times = tuple(sorted({*checkpoint_times(cast("Iterable[int] | None", checkpoints), lengths[-1]), *lengths}))
    at_horizons = times if checkpoints is not None or len(lengths) == 1 else lengths
    for name, problem in named.items():
        try:
            find_regret(matrix_of(problem), notion)
        except NoCondorcetWinner as error:
            raise NoCondorcetWinner(f"problem {name!r}: {error}") from None
    chosen = _policies(policies, {name: matrix_of(problem) for name, problem in named.items()})
    return Experiment(named, chosen, lengths, count, start, times, at_horizons, notion)


def _problems(problems: object) -> dict[str, Problem]:
    if isinstance(problems, Mapping):
        named = {str(name): _name_problem(_entry(problem, name), str(name)) for name, problem in problems.items()}
    else:
        several = isinstance(problems, list | tuple) and not _is_array(problems)
        listed = cast(Sequence[object], problems) if several else [problems]
        found = [
            as_problem(problem) if isinstance(problem, str) or not several else _entry(problem, place)
            for place, problem in enumerate(listed, 1)
        ]
        named = {matrix_of(problem).name: problem for problem in found}
        if len(named) < len(found):
            names = [matrix_of(problem).name for problem in found]
            twin = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"two problems are called {twin!r}: give each a name, as {{'name': problem, …}}")
    if not named:
        raise InvalidInput("there are no problems: expected at least one, such as 'arxiv-6' or a matrix file")
    return named


def _entry(problem: object, called: object) -> Problem:
    """Read one of several problems; errors say its name or place."""
    try:
        return as_problem(problem)
    except InvalidInput as error:
        if called in KEYS:
            raise InvalidInput(
                f"{called} is below [problems] and so is read as a problem, which it is not: move it above "
                f"[problems] ({error})"
            ) from None
        raise InvalidInput(f"problem {called!r}: {error}") from error


def as_problem(problem: object) -> Problem:
    """Read a problem: a matrix or an environment.

    Args:
        problem: Anything that `simulate` takes, or a mapping such as `{"matrix": "p.csv", "subset": 16, "seed": 0}`,
            which draws a subset of the arms that has a Condorcet winner.

    Raises:
        InvalidInput: If it is not a problem.
    """
    if _is_environment(problem):
        return problem
    if problem is None or isinstance(problem, int | float):
        raise InvalidInput(
            f"{problem!r} is not a problem: expected a name such as 'arxiv-6', a matrix file or a matrix"
        )
    if isinstance(problem, str | Path) and str(problem).endswith(".toml"):
        raise InvalidInput(f"{problem} describes a whole experiment: run one experiment at a time")
    if not isinstance(problem, Mapping):
        return as_matrix(cast(ProblemLike, problem))
    for key in problem:
        if key not in ("matrix", "subset", "seed"):
            raise UnknownName("key of a problem", key, ("matrix", "subset", "seed"))
    if "matrix" not in problem or "subset" not in problem:
        raise InvalidInput(f"problem {dict(problem)} expected the keys matrix and subset, and seed if it is not 0")
    return draw_subset(as_matrix(problem["matrix"]), problem["subset"], problem.get("seed", 0)).matrix


def _policies(policies: object, matrices: Mapping[str, PreferenceMatrix]) -> dict[str, dict[str, Policy]]:
    listed = ["rucb"] if policies is None else policies if isinstance(policies, list | tuple) else [policies]
    chosen: dict[str, dict[str, Policy]] = {}
    for spec in listed:
        if isinstance(spec, int | float):
            raise InvalidInput(f"{spec!r} is not a policy: expected a name such as 'rucb', a Python file or a module")
        if _has_own(spec):
            per_problem = {name: _policy_for(spec, matrix) for name, matrix in matrices.items()}
            label = f"{next(iter(per_problem.values())).name}:{spec.partition(':')[2]}"
        else:
            one = load_policy(cast(PolicyLike, spec))
            per_problem, label = dict.fromkeys(matrices, one), str(one)
        if label in chosen:
            raise InvalidInput(
                f"two policies are called {label!r}: list each policy once, and give files different names"
            )
        chosen[label] = per_problem
    if not chosen:
        raise InvalidInput("there are no policies: expected at least one, such as 'rucb'")
    return chosen


def _has_own(spec: object) -> TypeGuard[str]:
    return isinstance(spec, str) and "own" in specs.split_spec(spec, "policy")[1].values()


def _policy_for(spec: str, matrix: PreferenceMatrix) -> Policy:
    """The policy of a spec with `gamma=own`: its γ is that of the problem."""
    name, given = specs.split_spec(spec, "policy")
    for key, value in given.items():
        if value == "own" and key != "gamma":
            raise InvalidInput(f"{key}=own in policy {spec!r}: a problem has its own gamma, but no {key}")
    return load_policy(name, **{key: matrix.gamma if value == "own" else value for key, value in given.items()})


def _from_file(path: Path) -> Experiment:
    """Read the experiment of a TOML file; file names are relative to it."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}") from None
    try:
        for key in given:
            if key not in KEYS:
                raise UnknownName("key", key, KEYS)
        if "problems" not in given:
            raise InvalidInput("there are no problems: expected problems = [...] or a table [problems]")
        values = {key: given.get(key) for key in KEYS}
        values["problems"] = _beside(path.parent, values["problems"])
        values["policies"] = _beside(path.parent, values["policies"])
        return _check_experiment(**values)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _beside(folder: Path, value: object) -> object:
    """Replace the names of files in the folder by their paths."""
    if isinstance(value, dict):
        return {key: _beside(folder, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_beside(folder, inner) for inner in value]
    if isinstance(value, str):
        name = specs.split_spec(value, "name")[0] if ".py" in value else value
        if not Path(name).is_absolute() and (folder / name).is_file():
            return str(folder / name) + value[len(name) :]
    return value


def _is_environment(problem: object) -> TypeGuard[Environment]:
    return hasattr(problem, "outcome")


def matrix_of(problem: Problem) -> PreferenceMatrix:
    """Return the matrix of a problem, by which its regret is measured."""
    return problem if isinstance(problem, PreferenceMatrix) else problem.matrix


def _name_problem(problem: Problem, name: str) -> Problem:
    return PreferenceMatrix(problem.array, problem.names, name) if isinstance(problem, PreferenceMatrix) else problem


def _is_array(problems: Sequence[object]) -> bool:
    """Whether a list holds rows of numbers, and so is one matrix."""
    return bool(problems) and all(isinstance(row, list | tuple) for row in problems)


def _count(things: Collection[object], one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}"
