"""Sessions: each go at an experiment, and what the provenance says of all of them.

An experiment may be killed and go on, or be done in shards on many machines: each of these is a session.
"""

import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from .executors import Done, Task
from .folder import Folder

SPREAD = ("executor", "machine", "python", "numpy")  # of which sessions, and a cluster's workers, may have several


class Session:
    """One go at an experiment, from its start to its last finished task."""

    def __init__(self, executor: Any, jobs: int, shard: str | None = None) -> None:
        started = datetime.now(UTC)
        self.name = f"{started:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        where = f"{jobs} threads" if executor is None else f"Dask at {executor}"
        self.said: dict[str, Any] = {"started": started.isoformat(timespec="seconds"), "executor": where}
        if shard is not None:
            self.said["shard"] = shard
        self.clock, self.tasks = time.perf_counter(), 0
        self.machines: list[Mapping[str, str]] = []

    def entering(self, frames: dict[int, pl.DataFrame]) -> Done:
        """What enters finished tasks in a dictionary."""

        def enter(task: Task, frame: pl.DataFrame, there: dict[str, str]) -> None:
            frames[task.number] = frame
            self._count(there)

        return enter

    def keeping(self, folder: Folder) -> Done:
        """What keeps finished tasks in a folder, and with each what is known of the session."""

        def keep(task: Task, frame: pl.DataFrame, there: dict[str, str]) -> None:
            folder.keep(task.number, frame)
            self._count(there)
            folder.note(self.name, self.record)

        return keep

    def _count(self, machine: dict[str, str]) -> None:
        self.tasks += 1
        if machine not in self.machines:
            self.machines.append(machine)

    @property
    def record(self) -> dict[str, Any]:
        """Plain data: when, for how long, how many tasks, by what command, where."""
        return {
            **self.said,
            "seconds": round(time.perf_counter() - self.clock, 3),
            "tasks": self.tasks,
            "command": sys.argv,
            **_each_once(self.machines),
        }


def provenance(
    identity: Mapping[str, Any], records: Sequence[Mapping[str, Any]], merged: Sequence[str] = ()
) -> dict[str, Any]:
    """What an experiment was, and of its sessions the first start, the sum of their seconds, every machine, each one.

    Shards that ran at the same time count one after the other.
    """
    said = {**identity, "command": sys.argv, **({"merged": list(merged)} if merged else {})}
    if not records:  # parts of older versions have none
        return said
    return said | {
        "started": min(record["started"] for record in records),
        "seconds": round(sum(record["seconds"] for record in records), 3),
        **_each_once(records),
        "sessions": list(records),
    }


def _each_once(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The things of which there may be several, each value once."""
    found: dict[str, dict[str, None]] = {key: {} for key in SPREAD}
    for record in records:
        for key in SPREAD:
            found[key] |= dict.fromkeys(record[key].split("; ") if key in record else ())
    return {key: "; ".join(values) for key, values in found.items() if values}
