"""Collections kept on disk in binary, found again by the contents of the files they were read from.

A cache that is damaged, unwritable or full is as good as none: nothing here raises.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..files import cache_folder, whole_file

FORMAT = "duels collection 1"  # to be changed with anything that is kept, or with how files are read
ARRAYS = ("features", "grades", "offsets")
TEXTS = ("queries", "documents")


def place(files: list[Path]) -> Path | None:
    """Where a collection of files with these contents is kept; None if that cannot be said."""
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


def kept(at: Path, name: str, make: Callable) -> Any:
    """The collection that was kept there, or None."""
    with contextlib.suppress(Exception):  # numpy, zipfile and zlib raise a dozen kinds for damaged files
        with at.open("rb") as file, np.load(file, allow_pickle=False) as found:
            arrays = {key: found[key] for key in ARRAYS}
            texts = {key: tuple(found[key].tobytes().decode().split("\n")) if key in found else None for key in TEXTS}
        return make(name, **arrays, **texts)
    return None


def keep(at: Path, collection: Any) -> None:
    """Keep a collection there, whole or not at all."""
    members: dict[str, Any] = {key: getattr(collection, key) for key in ARRAYS}
    for key in TEXTS:
        if getattr(collection, key) is not None:
            members[key] = np.frombuffer("\n".join(getattr(collection, key)).encode(), np.uint8)
    with contextlib.suppress(OSError, InvalidInput):
        at.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(at) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **members)
