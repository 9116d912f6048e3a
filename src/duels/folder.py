"""The folder of an experiment: what it is, the tasks that are finished, and at the end its results.

Each finished task is a Parquet file that appears whole or not at all. An experiment that was killed goes on from
there; shards of one experiment are put together from there.
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

from .errors import DuelsError, InvalidInput
from .files import whole_file
from .preference import PreferenceMatrix
from .problems import load_matrix, save_matrix
from .results import prepare_folder, read_parquet, write_parquet

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
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}") from None

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
        with whole_file(self.path / IDENTITY) as unfinished:
            unfinished.write_text(json.dumps(identity, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @contextlib.contextmanager
    def locked(self, shard: str) -> Iterator[None]:
        """One process at a time works on a shard; the system lifts the lock of one that died."""
        with (self.path / f".lock{shard.replace('/', '-of-')}").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidInput(
                    f"another process is running the experiment in {str(self.path)!r}: "
                    "wait for it, or choose another folder"
                ) from None
            yield

    def part(self, number: int) -> Path:
        return self.path / PARTS / f"{number:05d}.parquet"

    def keep(self, number: int, frame: pl.DataFrame) -> None:
        """Keep the rows of a finished task."""
        (self.path / PARTS).mkdir(exist_ok=True)
        write_parquet(frame, self.part(number))

    def kept(self, number: int) -> pl.DataFrame | None:
        """The rows of a task, if it is finished; a damaged file counts as not finished, aloud."""
        if not self.part(number).exists():
            return None
        try:
            return read_parquet(self.part(number))
        except InvalidInput as error:
            warnings.warn(f"{error}; its task is done again", stacklevel=2)
            return None

    def forget_parts(self) -> None:
        """The results hold everything now."""
        shutil.rmtree(self.path / PARTS, ignore_errors=True)


def folder_matrices(path: str | Path) -> dict[str, PreferenceMatrix]:
    """The matrices of an experiment's folder by problem name."""
    folder = Folder(path)
    identity = folder.identity
    if identity is None:
        raise InvalidInput(f"{str(folder.path)!r} is not an experiment's folder: it has no {IDENTITY}")
    found = {}
    for place, name in enumerate(identity["problems"]):
        matrix = load_matrix(folder.path / MATRICES / f"{place}.csv")
        found[name] = PreferenceMatrix(matrix.array, matrix.names, name)
    return found


def refuse_other(found: Mapping[str, Any], expected: Mapping[str, Any], holder: str) -> None:
    """An error that names the first thing in which two experiments differ."""
    for key in [*expected, *found]:
        one, other = found.get(key), expected.get(key)
        if one != other:
            if isinstance(one, dict) and isinstance(other, dict):
                key, one, other = _first_difference(key, one, other)
            raise InvalidInput(
                f"{holder} was written by another experiment: its {key} is {_short(one)}, "
                f"expected {_short(other)}. Choose another folder, or remove that one"
            )


def _first_difference(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, Any, Any]:
    if list(one) != list(other):
        return key, list(one), list(other)
    name = next(name for name in one if one[name] != other[name])
    return f"{key} {name}", one[name], other[name]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def gather(folders: Sequence[Folder], count: int) -> list[pl.DataFrame]:
    """The rows of all tasks, wherever they are kept; an error that says which are missing."""
    frames, missing = [], []
    for number in range(count):
        holder = next((folder for folder in folders if folder.part(number).exists()), None)
        if holder is None:
            missing.append(number)
            continue
        try:
            frames.append(read_parquet(holder.part(number)))
        except InvalidInput as error:
            raise InvalidInput(f"{error}: remove it and run that shard again, with the same command") from None
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        raise DuelsError(
            f"{len(missing)} of {count} tasks are not finished (numbers {shown}): run the shards they belong to, with "
            "the same command, and merge again"
        )
    return frames
