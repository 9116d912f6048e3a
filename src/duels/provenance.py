"""Provenance: what was run, when and where, as plain data that JSON can hold.

Simulations and experiments have one shape: `identity` describes what was run, a `Session` records when and where, and
`build` puts them together. `parts` and the functions below it are the only code that reads this shape. Combined results
keep the provenance of each part under the key `parts`.
"""

import json
import os
import platform
import secrets
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from . import specs
from .files import atomic_write
from .policies import BUILT_IN, Policy
from .preference import PreferenceMatrix
from .regrets import find_regret

Provenance = dict[str, Any]  # the keys of `identity` and of a session's record; `sessions`, `merged`, TOLD or `parts`
TOLD = "told_a_horizon"  # key in a shard's provenance: the policies that are run again for each horizon
SEVERAL = ("executor", "machine", "python", "numpy")  # keys with several values if sessions or workers differ


class SessionRecord(TypedDict, total=False):
    """When, for how long and where one process worked on an experiment."""

    started: str
    executor: str
    shard: str
    seconds: float
    tasks: int
    command: list[str]
    machine: str
    python: str
    numpy: str


def version() -> str:
    """Return the installed version of Duels."""
    from . import __version__

    return __version__


def machine() -> dict[str, str]:
    """Describe the machine that this process runs on."""
    return {
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def identity(
    matrices: Mapping[str, PreferenceMatrix],
    environments: Mapping[str, Mapping[str, object]],
    policies: Mapping[str, Mapping[str, Policy]],
    *,
    horizons: Sequence[int],
    runs: int | list[int],
    seed: int,
    regret: str,
) -> Provenance:
    """Describe all that a table of results depends on, so that equal descriptions mean equal tables.

    Args:
        matrices: The preference matrix of each problem, by the problem's name.
        environments: Descriptions of those problems that are environments, by the problem's name.
        policies: For each label the policy on each problem.
        horizons: The horizons, ascending.
        runs: The number of runs, or the first and the last run.
        seed: The seed of all runs.
        regret: The notion of regret that was asked for.

    Returns:
        The version and, by key, the problems, policies, horizons, runs and seed.
    """
    from .engine import loop  # imports the compiler, which is not needed to read results

    return {
        "duels": version(),
        "problems": {
            name: {"matrix": matrix.digest, "arms": matrix.arms, "regret": find_regret(matrix, regret).name}
            | ({"environment": environments[name]} if name in environments else {})
            for name, matrix in matrices.items()
        },
        "policies": {
            label: {
                "code": loop.code_of(next(iter(chosen.values()))),
                "parameters": {name: one.params._asdict() for name, one in chosen.items()},
                **_name_of(next(iter(chosen.values()))),
            }
            for label, chosen in policies.items()
        },
        "horizons": list(horizons),
        "runs": runs,
        "seed": seed,
    }


def _name_of(policy: Policy) -> dict[str, str]:
    """The `NAME` of a policy that is not built in: later, only the results are there to tell it."""
    name = getattr(policy.module, "NAME", None)
    return {"name": name} if isinstance(name, str) and policy.name not in BUILT_IN else {}


class Session:
    """One process that works on a simulation or an experiment, from its start to its last finished task.

    An experiment that was interrupted and resumed, or that runs in shards, has several sessions.

    Args:
        executor: Where the tasks run, such as `2 threads`.
        shard: The shard of the experiment, such as `2/5`.
    """

    def __init__(self, executor: str, shard: str | None = None) -> None:
        started = datetime.now(UTC)
        self.name = f"{started:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        self._start: SessionRecord = {"started": started.isoformat(timespec="seconds"), "executor": executor}
        if shard is not None:
            self._start["shard"] = shard
        self._clock, self._tasks = time.perf_counter(), 0
        self._machines: list[Mapping[str, str]] = []

    def count(self, machine: Mapping[str, str]) -> None:
        """Count a task that was finished on a machine."""
        self._tasks += 1
        if machine not in self._machines:
            self._machines.append(machine)

    @property
    def record(self) -> SessionRecord:
        """The session up to now, as plain data."""
        return {
            **self._start,
            "seconds": round(time.perf_counter() - self._clock, 3),
            "tasks": self._tasks,
            "command": sys.argv,
            **_distinct(self._machines),  # type: ignore[typeddict-item]
        }

    def save(self, folder: Path) -> None:
        """Write the record to a file of its own in the folder."""
        with atomic_write(folder / f"session-{self.name}.json") as unfinished:
            unfinished.write_text(json.dumps(self.record, ensure_ascii=False) + "\n", encoding="utf-8")


def read_sessions(folders: Iterable[Path]) -> list[SessionRecord]:
    """Read the records of all sessions that were saved in the folders, each once, the earliest first.

    A file that cannot be read is left out with a warning.
    """
    found: dict[str, SessionRecord] = {}
    for folder in folders:
        for file in folder.glob("session-*.json"):
            try:
                record: SessionRecord = json.loads(file.read_text(encoding="utf-8"))
                found[file.name] = {**record, "started": record["started"], "seconds": record["seconds"]}
            except (OSError, ValueError, LookupError, TypeError) as error:
                warnings.warn(f"{file} cannot be read ({error}): the provenance leaves that session out", stacklevel=3)
    return [found[name] for name in sorted(found)]


def build(what: Mapping[str, Any], sessions: Sequence[SessionRecord], merged: Sequence[str] = ()) -> Provenance:
    """Put together the provenance of results.

    Args:
        what: What was run, as `identity` describes it.
        sessions: The sessions in which it ran. Parts written by early versions have none.
        merged: The folders that were merged.

    Returns:
        What was run, the first start, the sum of the sessions' seconds (also if they overlapped), every machine, and
        each session.
    """
    found = {**what, "command": sys.argv, **({"merged": list(merged)} if merged else {})}
    if not sessions:
        return found
    return found | {
        "started": min(record["started"] for record in sessions),
        "seconds": round(sum(record["seconds"] for record in sessions), 3),
        **_distinct(sessions),
        "sessions": list(sessions),
    }


def _distinct(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """For each key of SEVERAL the distinct values, joined."""
    found: dict[str, dict[str, None]] = {key: {} for key in SEVERAL}
    for record in records:
        for key in SEVERAL:
            found[key] |= dict.fromkeys(record[key].split("; ") if key in record else ())
    return {key: "; ".join(values) for key, values in found.items() if values}


def parts(provenance: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the provenance of each simulation or experiment that results were combined from."""
    inner = provenance.get("parts")
    return [provenance] if inner is None else [leaf for part in inner for leaf in parts(part)]


def digests(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each problem's name with the digest of its matrix; a name may occur several times."""
    for part in parts(provenance):
        for name, facts in part.get("problems", {}).items():
            if "matrix" in facts:
                yield name, facts["matrix"]


def notions(provenance: Mapping[str, Any], problem: str | None = None) -> set[str]:
    """Return the notions of regret by which the results, or those of one problem, were measured."""
    found: set[str] = set()
    for part in parts(provenance):
        facts = part.get("problems", {})
        chosen = facts.values() if problem is None else [facts.get(problem, {})]
        found |= {one["regret"] for one in [part, *chosen] if "regret" in one}
    return found


def policy_names(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return the `NAME` of each policy that is not built in, by its name without parameters."""
    found = {}
    for part in parts(provenance):
        for label, facts in part.get("policies", {}).items():
            if "name" in facts:
                found[specs.split_spec(label, "policy")[0]] = facts["name"]
    return found


def parameters(provenance: Mapping[str, Any], policy: str) -> dict[str, Mapping[str, object]]:
    """Return a policy's parameters on each problem, by the problem's name."""
    found: dict[str, Mapping[str, object]] = {}
    for part in parts(provenance):
        found |= part.get("policies", {}).get(policy, {}).get("parameters", {})
    return found


def values(provenance: Mapping[str, Any], key: str) -> list[Any]:
    """Return the values that the parts have for a key."""
    return [part[key] for part in parts(provenance) if key in part]
