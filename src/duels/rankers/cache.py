"""A cache of collections on disk, keyed by the contents of the files they were read from.

Nothing here raises: a cache that is damaged, unwritable or full is ignored.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import InvalidInput
from ..files import atomic_write, cache_folder

if TYPE_CHECKING:
    from .collection import Collection

T = TypeVar("T")

FORMAT = "duels collection 1"  # change it whenever the stored data, or the way files are read, changes
ARRAYS = ("features", "grades", "offsets")
TEXTS = ("queries", "documents")


def path_for(files: list[Path]) -> Path | None:
    """Return where a collection of files with these contents is cached; None if the contents cannot be read twice."""
    key = hashlib.blake2b(FORMAT.encode(), digest_size=16)
    try:
        for file in files:
            if not file.is_file():  # a pipe can be read only once
                return None
            with file.open("rb") as source:
                key.update(hashlib.file_digest(source, "blake2b").digest())
        return cache_folder() / "collections" / f"{key.hexdigest()}.npz"
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def read(at: Path, name: str, make: Callable[..., T]) -> T | None:
    """Return the cached collection, made by `make`, or None if there is none."""
    with contextlib.suppress(Exception):  # numpy, zipfile and zlib raise a dozen kinds for damaged files
        with at.open("rb") as file, np.load(file, allow_pickle=False) as found:
            arrays = {key: found[key] for key in ARRAYS}
            texts = {key: tuple(found[key].tobytes().decode().split("\n")) if key in found else None for key in TEXTS}
        return make(name, **arrays, **texts)
    return None


def write(at: Path, collection: "Collection") -> None:
    """Write a collection to the cache, atomically."""
    members: dict[str, Any] = {key: getattr(collection, key) for key in ARRAYS}
    for key in TEXTS:
        if getattr(collection, key) is not None:
            members[key] = np.frombuffer("\n".join(getattr(collection, key)).encode(), np.uint8)
    with contextlib.suppress(OSError, InvalidInput):
        at.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(at) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **members)
