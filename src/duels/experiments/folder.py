"""The folder of an experiment: its description, the tables of finished tasks, and at the end its results.

The table of each finished task is a Parquet file with its checksum beside it, both written atomically. From them an
interrupted experiment is resumed and shards are merged.
"""

import contextlib
import fcntl
import json
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ..errors import DuelsError, InvalidInput
from ..files import atomic_write
from ..preference import PreferenceMatrix
from ..problems import load_matrix, save_matrix
from ..provenance import Provenance, read_sessions
from ..results import SCHEMA, Results, load_results, look_below, prepare_folder, read_parquet, write_parquet

IDENTITY, PARTS, MATRICES = "experiment.json", "parts", "matrices"


class Folder:
    """The folder of one experiment. It refuses to hold another one.

    Args:
        path: Where it is, or where `claim` creates it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def identity(self) -> Provenance | None:
        """The experiment's description, as `claim` wrote it; None if the folder holds no experiment."""
        file = self.path / IDENTITY
        if not file.exists():
            return None
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}") from None
        if not (
            isinstance(found, dict) and isinstance(found.get("problems"), dict) and type(found.get("tasks")) is int
        ):
            raise InvalidInput(f"{file} does not describe an experiment: expected what `duels run` writes there")
        return found

    @property
    def finished(self) -> bool:
        """Whether the folder holds the results of the whole experiment."""
        return (self.path / "provenance.json").exists()

    def results(self, identity: Provenance) -> Results:
        """Read the results of a finished experiment.

        Raises:
            InvalidInput: If they are damaged, or were replaced by results of something else.
        """
        try:
            found = load_results(self.path)
        except InvalidInput as error:
            raise InvalidInput(f"{error}; remove the folder {str(self.path)!r} to run it again") from None
        if not identity.keys() <= found.provenance.keys():
            raise InvalidInput(
                f"the folder {str(self.path)!r} holds results of something else than its experiment: choose another "
                "folder, or move them"
            )
        own = {key: found.provenance[key] for key in identity}
        refuse_other(own, identity, f"the table in the folder {str(self.path)!r}")
        return replace(found, provenance=found.provenance | {"policies": identity["policies"]})  # with today's names

    def claim(self, identity: Provenance, matrices: Mapping[str, PreferenceMatrix]) -> None:
        """Write the experiment's description and matrices to the folder, or check that it already holds them.

        Args:
            identity: The experiment's description (see `Experiment.identity`).
            matrices: The preference matrix of each problem, by the problem's name.

        Raises:
            InvalidInput: If the folder holds something else or cannot be written.
        """
        prepare_folder(self.path)
        found = self.identity
        if found is not None:
            refuse_other(found, identity, f"the folder {str(self.path)!r}")
            return
        if (self.path / "frame.parquet").exists():
            raise InvalidInput(
                f"the folder {str(self.path)!r} holds results of something else: choose another folder, or move them"
            )
        prepare_folder(self.path / MATRICES)
        for place, matrix in enumerate(matrices.values()):
            save_matrix(matrix, self.path / MATRICES / f"{place}.csv")
        with atomic_write(self.path / IDENTITY) as unfinished:
            unfinished.write_text(json.dumps(identity, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @contextlib.contextmanager
    def lock(self, shard: str = "") -> Iterator[None]:
        """Lock the whole experiment, or one shard of it: different shards may run at the same time.

        The operating system releases the lock of a process that died.

        Raises:
            InvalidInput: If another process holds the lock.
        """
        with contextlib.ExitStack() as held:
            self._hold(held, ".lock", fcntl.LOCK_SH if shard else fcntl.LOCK_EX)
            if shard:
                self._hold(held, f".lock{shard.replace('/', '-of-')}", fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def hold_unchanged(self) -> Iterator[None]:
        """Keep other processes from working on the whole experiment, without writing to the folder."""
        with contextlib.ExitStack() as held:
            if (self.path / ".lock").exists():
                self._hold(held, ".lock", fcntl.LOCK_SH, "r")
            yield

    def _hold(self, held: contextlib.ExitStack, name: str, kind: int, mode: str = "a+") -> None:
        try:
            file = held.enter_context((self.path / name).open(mode))
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"another process is running the experiment in {str(self.path)!r}: "
                "wait for it, or choose another folder"
            ) from None
        except OSError as error:  # some file systems have no locks
            warnings.warn(
                f"{self.path / name} cannot be locked ({error.strerror or error}): make sure that no other process "
                "works in that folder",
                stacklevel=4,
            )

    def part(self, number: int) -> Path:
        """The file for the table of a task."""
        return self.parts / f"{number:05d}.parquet"

    def keep(self, number: int, frame: pl.DataFrame) -> None:
        """Write the table of a finished task."""
        part = prepare_folder(self.parts) / self.part(number).name
        digest = write_parquet(frame, part)
        with atomic_write(_checksum(part)) as unfinished:
            unfinished.write_text(f"{digest}  {part.name}\n", encoding="utf-8")  # as `sha256sum --check` reads it

    def has(self, number: int) -> bool:
        """Return whether a task is finished. Its checksum is written last."""
        return self.part(number).exists() and _checksum(self.part(number)).exists()

    def read(self, number: int) -> pl.DataFrame:
        """Read the table of a finished task.

        Raises:
            InvalidInput: If its file is damaged.
        """
        part = self.part(number)
        try:
            digest = _checksum(part).read_text(encoding="utf-8").partition(" ")[0]
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{_checksum(part)} cannot be read: {error}") from None
        return read_parquet(part, SCHEMA, digest)

    def read_finished(self, number: int) -> pl.DataFrame | None:
        """Read the table of a task; None if it is not finished, or with a warning if its file is damaged."""
        if not self.has(number):
            return None
        try:
            return self.read(number)
        except InvalidInput as error:
            warnings.warn(f"{error}; its task is repeated", stacklevel=2)
            return None

    @property
    def parts(self) -> Path:
        """The folder of the finished tasks' tables and the records of sessions, until the experiment is finished."""
        return self.path / PARTS

    def remove_parts(self) -> None:
        """Remove the tables of single tasks, once the results hold everything."""
        shutil.rmtree(self.parts, ignore_errors=True)


def folder_matrices(path: str | Path) -> dict[str, PreferenceMatrix]:
    """Read the matrices of an experiment's folder.

    Returns:
        The preference matrices by the names of their problems; functions of continuous parameters have none.

    Raises:
        InvalidInput: If it is not the folder of an experiment.
    """
    folder = Folder(path)
    identity = folder.identity
    if identity is None:
        raise InvalidInput(
            f"{str(folder.path)!r} is not an experiment's folder: it has no {IDENTITY}{look_below(folder.path)}"
        )
    found = {}
    for place, (name, facts) in enumerate(identity["problems"].items()):
        if "matrix" not in facts:
            continue
        matrix = load_matrix(folder.path / MATRICES / f"{place}.csv")
        found[name] = PreferenceMatrix(matrix.array, matrix.names, name)
    return found


def refuse_other(
    found: Mapping[str, object],
    expected: Mapping[str, object],
    holder: str,
    remedy: str = "Choose another folder, or remove that one",
) -> None:
    """Raise an error that names the first difference between two experiments, if there is one.

    Args:
        found: The description of the experiment that was found.
        expected: The description of the experiment that was expected.
        holder: What holds the first one, for the message.
        remedy: What to do, for the message.
    """
    for key in [*expected, *found]:
        one, other = (
            _without_names(side.get(key)) if key == "policies" else side.get(key) for side in (found, expected)
        )
        if one != other:
            if isinstance(one, dict) and isinstance(other, dict):
                key, one, other = _first_difference(key, one, other)
            raise InvalidInput(
                f"{holder} was written by another experiment: its {key} {'are' if key.endswith('s') else 'is'} "
                f"{_short(one)}, expected {_short(other)}. {remedy}"
            )


def _without_names(policies: object) -> object:
    """The policies without what figures call them, on which no number depends."""
    if not isinstance(policies, Mapping):
        return policies
    return {
        label: {key: value for key, value in facts.items() if key != "name"} if isinstance(facts, Mapping) else facts
        for label, facts in policies.items()
    }


def _first_difference(key: str, one: Mapping[str, object], other: Mapping[str, object]) -> tuple[str, object, object]:
    if list(one) != list(other):
        return key, list(one), list(other)
    name = next(name for name in one if one[name] != other[name])
    return f"{key} {name}", one[name], other[name]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def gather(folders: Sequence[Folder], numbers: Sequence[int], columns: Iterable[str] = tuple(SCHEMA)) -> pl.DataFrame:
    """Read the tables of tasks, each from the first folder that has it, as one table.

    Args:
        folders: Where to look, in this order.
        numbers: The tasks.
        columns: The columns of the table.

    Raises:
        InvalidInput: If a file is damaged.
        DuelsError: If tasks are missing.
    """
    frames, missing = [], []
    for number in numbers:
        holder = next((folder for folder in folders if folder.has(number)), None)
        if holder is None:
            missing.append(number)
            continue
        try:
            frames.append(holder.read(number).select(*columns))
        except InvalidInput as error:
            raise InvalidInput(f"{error}: remove it and run that shard again with the same command") from None
    if missing:
        raise DuelsError(
            f"{len(missing)} of {len(numbers)} tasks are not finished ({_which(folders, missing)}): run those "
            "with the same command, and merge again"
        )
    return pl.concat(frames)


def _which(folders: Sequence[Folder], missing: Sequence[int]) -> str:
    """Name the shards of missing tasks if all sessions had the same number of shards, otherwise the tasks."""
    sessions = read_sessions(folder.parts for folder in folders)
    counts = {record.get("shard", "").partition("/")[2] for record in sessions}
    count = counts.pop() if len(counts) == 1 else ""
    shards = sorted({number % int(count) + 1 for number in missing}) if count.isdecimal() else []
    listed = [f"{shard}/{count}" for shard in shards] or list(map(str, missing))
    return ("shard " if shards else "numbers ") + ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")


def _checksum(part: Path) -> Path:
    return part.with_name(f"{part.name}.sha256")
