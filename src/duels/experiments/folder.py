"""The folder of an experiment: what it is, the tasks that are finished, and at the end its results.

Each finished task is a Parquet file that appears whole or not at all, with its checksum beside it. An experiment that
was killed goes on from there; shards of one experiment are put together from there.
"""

import contextlib
import fcntl
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import DuelsError, InvalidInput
from ..files import atomic_write
from ..preference import PreferenceMatrix
from ..problems import load_matrix, save_matrix
from ..results import SCHEMA, Results, load_results, look_below, prepare_folder, read_parquet, write_parquet

IDENTITY, PARTS, MATRICES = "experiment.json", "parts", "matrices"


class Folder:
    """One experiment's folder, which refuses to hold another one's."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def identity(self) -> dict[str, Any] | None:
        """What the experiment is, as `claim` wrote it; None if the folder holds no experiment."""
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
            raise InvalidInput(f"{file} does not say what an experiment is: expected what `duels run` writes there")
        return found

    @property
    def finished(self) -> bool:
        return (self.path / "provenance.json").exists()

    def results(self, identity: Mapping[str, Any]) -> Results:
        """The results of a finished experiment; those of anything else, written there later, are refused."""
        try:
            found = load_results(self.path)
        except InvalidInput as error:
            raise InvalidInput(f"{error}; remove the folder {str(self.path)!r} to run it again") from None
        if not identity.keys() <= found.provenance.keys():
            raise InvalidInput(
                f"the folder {str(self.path)!r} holds results of something else than its experiment: choose another "
                "folder, or move them"
            )
        said = {key: found.provenance[key] for key in identity}
        refuse_other(said, identity, f"the table in the folder {str(self.path)!r}")
        return found

    def claim(self, identity: Mapping[str, Any], matrices: Mapping[str, PreferenceMatrix]) -> None:
        """Make the folder this experiment's, or find that it already is."""
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
    def locked(self, shard: str = "") -> Iterator[None]:
        """One process at a time works on the whole, or on a shard; shards are worked on beside each other.

        The system lifts the lock of a process that died.
        """
        with contextlib.ExitStack() as held:
            self._hold(held, ".lock", fcntl.LOCK_SH if shard else fcntl.LOCK_EX)
            if shard:
                self._hold(held, f".lock{shard.replace('/', '-of-')}", fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def unchanging(self) -> Iterator[None]:
        """Read while nobody works on the whole; nothing is written, so that another's folder can be read."""
        with contextlib.ExitStack() as held:
            if (self.path / ".lock").exists():
                self._hold(held, ".lock", fcntl.LOCK_SH, "r")
            yield

    def _hold(self, held: contextlib.ExitStack, name: str, how: int, mode: str = "a+") -> None:
        try:
            file = held.enter_context((self.path / name).open(mode))
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"another process is running the experiment in {str(self.path)!r}: "
                "wait for it, or choose another folder"
            ) from None
        except OSError as error:  # some file systems have no locks
            warnings.warn(
                f"{self.path / name} cannot be locked ({error.strerror or error}): see to it that no other process "
                "works in that folder",
                stacklevel=4,
            )

    def part(self, number: int) -> Path:
        return self.path / PARTS / f"{number:05d}.parquet"

    def keep(self, number: int, frame: pl.DataFrame) -> None:
        """Keep the rows of a finished task."""
        part = prepare_folder(self.path / PARTS) / self.part(number).name
        digest = write_parquet(frame, part)
        with atomic_write(_checksum(part)) as unfinished:
            unfinished.write_text(f"{digest}  {part.name}\n", encoding="utf-8")  # as `sha256sum --check` reads it

    def read(self, number: int) -> pl.DataFrame:
        """The rows of a finished task, or an error if its file is damaged."""
        part = self.part(number)
        try:
            digest = _checksum(part).read_text(encoding="utf-8").partition(" ")[0]
        except FileNotFoundError:
            digest = None  # an older part
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{_checksum(part)} cannot be read: {error}") from None
        return read_parquet(part, SCHEMA, digest)

    def kept(self, number: int) -> pl.DataFrame | None:
        """The rows of a task, if it is finished; a damaged file counts as not finished, aloud."""
        if not self.part(number).exists():
            return None
        try:
            return self.read(number)
        except InvalidInput as error:
            warnings.warn(f"{error}; its task is done again", stacklevel=2)
            return None

    def note(self, session: str, record: Mapping[str, Any]) -> None:
        """Keep what is known of a session so far."""
        with atomic_write(self.path / PARTS / f"session-{session}.json") as unfinished:
            unfinished.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")

    def forget_parts(self) -> None:
        """The results hold everything now."""
        shutil.rmtree(self.path / PARTS, ignore_errors=True)


def folder_matrices(path: str | Path) -> dict[str, PreferenceMatrix]:
    """The matrices of an experiment's folder by problem name."""
    folder = Folder(path)
    identity = folder.identity
    if identity is None:
        raise InvalidInput(
            f"{str(folder.path)!r} is not an experiment's folder: it has no {IDENTITY}{look_below(folder.path)}"
        )
    found = {}
    for place, name in enumerate(identity["problems"]):
        matrix = load_matrix(folder.path / MATRICES / f"{place}.csv")
        found[name] = PreferenceMatrix(matrix.array, matrix.names, name)
    return found


def refuse_other(
    found: Mapping[str, Any],
    expected: Mapping[str, Any],
    holder: str,
    remedy: str = "Choose another folder, or remove that one",
) -> None:
    """An error that names the first thing in which two experiments differ."""
    for key in [*expected, *found]:
        one, other = found.get(key), expected.get(key)
        if one != other:
            if isinstance(one, dict) and isinstance(other, dict):
                key, one, other = _first_difference(key, one, other)
            raise InvalidInput(
                f"{holder} was written by another experiment: its {key} {'are' if key.endswith('s') else 'is'} "
                f"{_short(one)}, expected {_short(other)}. {remedy}"
            )


def _first_difference(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, Any, Any]:
    if list(one) != list(other):
        return key, list(one), list(other)
    name = next(name for name in one if one[name] != other[name])
    return f"{key} {name}", one[name], other[name]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def gather(folders: Sequence[Folder], numbers: Sequence[int]) -> pl.DataFrame:
    """The rows of these tasks, wherever they are kept; an error that says which are missing."""
    frames, missing = [], []
    for number in numbers:
        holder = next((folder for folder in folders if folder.part(number).exists()), None)
        if holder is None:
            missing.append(number)
            continue
        try:
            frames.append(holder.read(number).select(*SCHEMA))
        except InvalidInput as error:
            raise InvalidInput(f"{error}: remove it and run that shard again, with the same command") from None
    if missing:
        raise DuelsError(
            f"{len(missing)} of {len(numbers)} tasks are not finished ({_which(folders, missing)}): run those "
            "with the same command, and merge again"
        )
    return pl.concat(frames)


def _which(folders: Sequence[Folder], missing: Sequence[int]) -> str:
    """The shards that tasks belong to, if all sessions had the same number of them; else the tasks' numbers."""
    counts = {str(record.get("shard", "")).partition("/")[2] for record in sessions(folders)}
    count = counts.pop() if len(counts) == 1 else ""
    shards = sorted({number % int(count) + 1 for number in missing}) if count.isdecimal() else []
    listed = [f"{shard}/{count}" for shard in shards] or list(map(str, missing))
    return ("shard " if shards else "numbers ") + ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")


def sessions(folders: Sequence[Folder]) -> list[dict[str, Any]]:
    """What is known of the sessions in which the folders' parts were made, each once, the earliest first."""
    found: dict[str, dict[str, Any]] = {}
    for folder in folders:
        for file in folder.path.glob(f"{PARTS}/session-*.json"):
            try:
                record = json.loads(file.read_text(encoding="utf-8"))
                found[file.name] = {"started": record["started"], "seconds": record["seconds"], **record}
            except (OSError, ValueError, LookupError, TypeError) as error:
                warnings.warn(f"{file} cannot be read ({error}): the provenance leaves that session out", stacklevel=3)
    return [found[name] for name in sorted(found)]


def _checksum(part: Path) -> Path:
    return part.with_name(f"{part.name}.sha256")
