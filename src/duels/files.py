"""Files that appear whole or not at all, and cells of CSV files that a spreadsheet does not run."""

import contextlib
import gzip
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import InvalidInput

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet may run, also behind apostrophes
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` once all is written; an error if it cannot be."""
    if not path.name or path.is_dir():
        raise InvalidInput(f"{path} is a folder: expected the name of a file to write")
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its place once all is written."""
    with whole_file(path) as unfinished, unfinished.open("wb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


def safe_cell(cell: str) -> str:
    """Text for a CSV file: with an apostrophe in front if a spreadsheet would run it as a formula.

    Numbers stay as they are. Text that begins with apostrophes and then such a character gets one more, so that
    `read_cell` gives back every text exactly.
    """
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell


def read_cell(cell: str) -> str:
    """What `safe_cell` was given, for a cell of a file that Duels or a spreadsheet wrote."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def cache_folder() -> Path:
    """Return the folder for cached files: `$DUELS_CACHE`, else `$XDG_CACHE_HOME/duels`, else `~/.cache/duels`.

    Raises:
        RuntimeError: If there is no home directory.
    """
    if own := os.environ.get("DUELS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duels"
