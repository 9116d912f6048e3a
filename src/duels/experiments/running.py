"""Experiments: problems × policies × horizons × runs, on threads, on a Dask cluster or in shards.

An experiment is data. The same experiment gives the same table, bit for bit, wherever and in however many pieces it
is run.
"""

import contextlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from .. import specs
from ..checks import check_int
from ..engine import loop
from ..engine.threads import thread_count
from ..errors import InvalidInput, NoCondorcetWinner, UnknownName
from ..policies import Policy
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..provenance import TOLD, Provenance, Session, build, identity, read_sessions
from ..regrets import AUTO, find_regret
from ..results import Results
from ..simulation import Done, Task, checkpoint_times, on_threads
from .executors import dask_client, on_dask, pieces, shard_of
from .folder import Folder, folder_matrices, gather, refuse_other
from .subsets import draw_subset

KEYS = ("problems", "policies", "horizons", "runs", "seed", "checkpoints", "regret")


@dataclass(frozen=True)
class Experiment:
    """What to run. Make one with `experiment`, which checks everything first."""

    problems: dict[str, Any]  # name → PreferenceMatrix or environment
    policies: dict[str, dict[str, Policy]]  # label → problem → policy
    horizons: tuple[int, ...]
    runs: int
    seed: int
    times: tuple[int, ...]  # checkpoints
    told_times: tuple[int, ...]  # checkpoints of policies that are told a horizon: for each one those up to it
    regret: str = AUTO

    @cached_property
    def tasks(self) -> list[Task]:
        """The work in self-contained pieces, in the order of the results' rows.

        A policy that needs a horizon is run afresh for each one; another one once, to the longest.
        """
        tasks: list[Task] = []
        for name, problem in self.problems.items():
            for label, chosen in self.policies.items():
                told = chosen[name].needs_horizon
                for horizon in self.horizons if told else self.horizons[-1:]:
                    times = tuple(t for t in (self.told_times if told else self.times) if t <= horizon)
                    for runs in pieces(self.runs, horizon):
                        what = (len(tasks), name, problem, label, chosen[name], horizon, runs, self.seed, times)
                        tasks.append(Task(*what, self.regret))
        return tasks

    @property
    def told(self) -> list[str]:
        """The policies that are told a horizon, and so run afresh for each."""
        return [label for label, chosen in self.policies.items() if next(iter(chosen.values())).needs_horizon]

    @cached_property
    def matrices(self) -> dict[str, PreferenceMatrix]:
        return {name: _matrix(problem) for name, problem in self.problems.items()}

    @cached_property
    def identity(self) -> Provenance:
        """All that the results depend on, as plain data: experiments with equal descriptions give equal tables."""
        described = identity(
            self.matrices,
            {name: problem.description for name, problem in self.problems.items() if hasattr(problem, "description")},
            self.policies,
            horizons=self.horizons,
            runs=self.runs,
            seed=self.seed,
            regret=self.regret,
        )
        return described | {"checkpoints": [list(self.times), list(self.told_times)], "tasks": len(self.tasks)}

    def __str__(self) -> str:
        return f"{_count(self.policies, 'policy', 'policies')} on {_count(self.problems, 'problem', 'problems')}"


def experiment(
    problems: Any,
    policies: Any = None,
    horizons: Any = None,
    *,
    runs: int | None = None,
    seed: int | None = None,
    checkpoints: Iterable[int] | None = None,
    regret: str | None = None,
) -> Experiment:
    """The experiment of a TOML file, or of these problems, policies (`rucb`), horizons (100,000), runs (100), seed (0).

    problems: a mapping of names to problems, a list, or one; each anything that `simulate` takes.
    policies: anything `simulate` takes; `btm:gamma=own` gives Beat the Mean each problem's own γ.
    horizons: policies that need one are run afresh for each, others once, to the longest.
    checkpoints: the times to report; by default the horizons, and ten per decade where a policy is run only once.
    regret: the notion, as `simulate` takes it, for all problems.
    """
    given = {"policies": policies, "horizons": horizons, "runs": runs, "seed": seed, "checkpoints": checkpoints}
    given |= {"regret": regret}
    if isinstance(problems, Experiment) or (isinstance(problems, str | Path) and str(problems).endswith(".toml")):
        for name, value in given.items():
            if value is not None:
                raise InvalidInput(f"{name} is {value!r}, but the experiment says its own {name}: change it there")
        return problems if isinstance(problems, Experiment) else _from_file(Path(problems))
    return _checked(problems=problems, **given)


def run_experiment(
    problems: Any,
    policies: Any = None,
    horizons: Any = None,
    *,
    runs: int | None = None,
    seed: int | None = None,
    checkpoints: Iterable[int] | None = None,
    regret: str | None = None,
    executor: Any = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    shard: str | None = None,
    progress: bool | None = None,
) -> Results:
    """Run an experiment: an `Experiment`, a TOML file, or problems × policies × horizons as `experiment` takes them.

    executor: None for `jobs` threads here (by default one per core), a `dask.distributed.Client` or a scheduler's
        address for a cluster. The table is the same.
    out: a folder in which finished work is kept as it finishes. Run again after a kill, it goes on from there; run
        again when it is finished, it gives the results.
    shard: `"2/5"` does the second fifth of the work; `out` is then needed, and `merge` puts the shards together.
    """
    planned = experiment(problems, policies, horizons, runs=runs, seed=seed, checkpoints=checkpoints, regret=regret)
    jobs = thread_count(jobs)
    place = f"{jobs} threads" if executor is None else f"Dask at {executor}"
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
    with folder.locked(shard or ""):
        if folder.finished:
            return folder.results(planned.identity)
        session = Session(place, shard)

        def keep_in_folder(task: Task, played: Results, where: dict[str, str]) -> None:
            folder.keep(task.number, played.frame)
            session.count(where)
            session.save(folder.parts)

        waiting = [task for task in mine if folder.kept(task.number) is None]
        try:
            _play(planned, waiting, keep_in_folder, executor, jobs, progress)
        except BaseException as error:
            kept = sum(folder.part(task.number).exists() for task in mine)
            error.add_note(
                f"{kept} of {len(mine)} tasks are kept in {folder.path}: the same command goes on from there"
            )
            raise
        if shard is None:
            return _finish([folder], folder, planned.identity, [])
        own = [record for record in read_sessions([folder.parts]) if record.get("shard") == shard]
        table = gather([folder], [task.number for task in mine])
        return Results(table, build(planned.identity, own) | {TOLD: planned.told})


def merge(folders: Iterable[str | Path], out: str | Path | None = None) -> Results:
    """Put the shards of one experiment together; the results are written to `out`, by default the first folder."""
    sources = [Folder(path) for path in folders]
    if not sources:
        raise InvalidInput("there is nothing to merge: name the folders of the shards")
    identities: list[dict[str, Any]] = []
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
        held.enter_context(target.locked())
        for source in sources:
            if not source.path.samefile(target.path):
                held.enter_context(source.unchanging())
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


def _finish(sources: list[Folder], target: Folder, identity: Mapping[str, Any], merged: list[str]) -> Results:
    table = gather(sources, range(identity["tasks"]))
    sessions = read_sessions(source.parts for source in sources)
    results = Results(table, build(identity, sessions, merged))
    results.save(target.path)
    target.remove_parts()
    return results


def _checked(
    problems: Any, policies: Any, horizons: Any, runs: Any, seed: Any, checkpoints: Any, regret: Any
) -> Experiment:
    named = _problems(problems)
    several = isinstance(horizons, Iterable) and not isinstance(horizons, str)
    listed = [100_000] if horizons is None else horizons if several else [horizons]
    lengths = tuple(sorted({check_int("a horizon", horizon, 1, loop.LATEST) for horizon in listed}))
    if not lengths:
        raise InvalidInput("there are no horizons: expected at least one, such as 100000")
    runs = check_int("runs", 100 if runs is None else runs, 1)
    seed = check_int("seed", 0 if seed is None else seed, 0)
    times = tuple(sorted({*checkpoint_times(checkpoints, lengths[-1]), *lengths}))
    told = times if checkpoints is not None or len(lengths) == 1 else lengths
    for name, problem in named.items():
        try:
            find_regret(_matrix(problem), regret or AUTO)
        except NoCondorcetWinner as error:
            raise NoCondorcetWinner(f"problem {name!r}: {error}") from None
    chosen = _policies(policies, {name: _matrix(problem) for name, problem in named.items()})
    return Experiment(named, chosen, lengths, runs, seed, times, told, regret or AUTO)


def _problems(problems: Any) -> dict[str, Any]:
    if isinstance(problems, Mapping):
        named = {str(name): _named(_entry(problem, name), str(name)) for name, problem in problems.items()}
    else:
        several = isinstance(problems, list | tuple) and not _is_array(problems)
        listed = problems if several else [problems]
        found = [
            as_problem(problem) if isinstance(problem, str) or not several else _entry(problem, place)
            for place, problem in enumerate(listed, 1)
        ]
        named = {_matrix(problem).name: problem for problem in found}
        if len(named) < len(found):
            names = [_matrix(problem).name for problem in found]
            twin = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"two problems are called {twin!r}: give each a name, as {{'name': problem, …}}")
    if not named:
        raise InvalidInput("there are no problems: expected at least one, such as 'arxiv-6' or a matrix file")
    return named


def _entry(problem: Any, called: Any) -> Any:
    """One of several problems, whose name or place an error says."""
    try:
        return as_problem(problem)
    except InvalidInput as error:
        if called in KEYS:
            raise InvalidInput(
                f"{called} stands below [problems] and so is taken for a problem, which it is not: move it above "
                f"[problems] ({error})"
            ) from None
        raise InvalidInput(f"problem {called!r}: {error}") from error


def as_problem(problem: Any) -> Any:
    """A matrix or an environment; `{"matrix": "p.csv", "subset": 16, "seed": 0}` draws a subset with a winner."""
    if hasattr(problem, "outcome"):
        return problem
    if problem is None or isinstance(problem, int | float):
        raise InvalidInput(
            f"{problem!r} is not a problem: expected a name such as 'arxiv-6', a matrix file or a matrix"
        )
    if isinstance(problem, str | Path) and str(problem).endswith(".toml"):
        raise InvalidInput(f"{problem} is the file of an experiment, which is run alone: run one after the other")
    if not isinstance(problem, Mapping):
        return as_matrix(problem)
    for key in problem:
        if key not in ("matrix", "subset", "seed"):
            raise UnknownName("key of a problem", key, ("matrix", "subset", "seed"))
    if "matrix" not in problem or "subset" not in problem:
        raise InvalidInput(f"problem {dict(problem)} expected the keys matrix and subset, and seed if it is not 0")
    return draw_subset(as_matrix(problem["matrix"]), problem["subset"], problem.get("seed", 0)).matrix


def _policies(policies: Any, matrices: Mapping[str, PreferenceMatrix]) -> dict[str, dict[str, Policy]]:
    listed = ["rucb"] if policies is None else policies if isinstance(policies, list | tuple) else [policies]
    chosen: dict[str, dict[str, Policy]] = {}
    for spec in listed:
        if isinstance(spec, int | float):
            raise InvalidInput(f"{spec!r} is not a policy: expected a name such as 'rucb', a Python file or a module")
        if _has_own(spec):
            per_problem = {name: _policy_for(spec, matrix) for name, matrix in matrices.items()}
            label = f"{next(iter(per_problem.values())).name}:{spec.partition(':')[2]}"
        else:
            one = find_policy(spec)
            per_problem, label = dict.fromkeys(matrices, one), str(one)
        if label in chosen:
            raise InvalidInput(
                f"two policies are called {label!r}: name each once, and call different files differently"
            )
        chosen[label] = per_problem
    if not chosen:
        raise InvalidInput("there are no policies: expected at least one, such as 'rucb'")
    return chosen


def _has_own(spec: Any) -> bool:
    return isinstance(spec, str) and "own" in specs.split(spec, "policy")[1].values()


def _policy_for(spec: str, matrix: PreferenceMatrix) -> Policy:
    """The policy of a spec that says `gamma=own`, with γ the problem's own."""
    name, given = specs.split(spec, "policy")
    for key, value in given.items():
        if value == "own" and key != "gamma":
            raise InvalidInput(f"{key}=own in policy {spec!r}: a problem has a gamma of its own, no {key}")
    return find_policy(name, **{key: matrix.gamma if value == "own" else value for key, value in given.items()})


def _from_file(path: Path) -> Experiment:
    """The experiment of a TOML file; files it names are looked for beside it."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}") from None
    try:
        for key in said:
            if key not in KEYS:
                raise UnknownName("key", key, KEYS)
        if "problems" not in said:
            raise InvalidInput("there are no problems: expected problems = [...] or a table [problems]")
        values = {key: said.get(key) for key in KEYS}
        values["problems"] = _beside(path.parent, values["problems"])
        values["policies"] = _beside(path.parent, values["policies"])
        return _checked(**values)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _beside(folder: Path, value: Any) -> Any:
    """The value, with names of files that stand beside the TOML file made to find them."""
    if isinstance(value, dict):
        return {key: _beside(folder, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_beside(folder, inner) for inner in value]
    if isinstance(value, str):
        name = specs.split(value, "name")[0] if ".py" in value else value
        if not Path(name).is_absolute() and (folder / name).is_file():
            return str(folder / name) + value[len(name) :]
    return value


def _matrix(problem: Any) -> PreferenceMatrix:
    return problem if isinstance(problem, PreferenceMatrix) else problem.matrix


def _named(problem: Any, name: str) -> Any:
    return PreferenceMatrix(problem.array, problem.names, name) if isinstance(problem, PreferenceMatrix) else problem


def _is_array(problems: Any) -> bool:
    """A list of rows of numbers is one matrix."""
    return bool(problems) and all(isinstance(row, list | tuple) for row in problems)


def _count(things: Any, one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}"
