"""Files that are written atomically, and cells of CSV files that a spreadsheet does not run as formulas."""

import contextlib
import gzip
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import InvalidInput

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # text that a spreadsheet may run, also after apostrophes
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write a file atomically: it appears complete or not at all.

    Args:
        path: The file to write. An existing file is replaced.

    Yields:
        A temporary path to write to. It is moved to `path` when the block ends without an error.

    Raises:
        InvalidInput: If the path is a folder or cannot be written.

    Example:
        >>> with atomic_write(Path("numbers.txt")) as unfinished:
        ...     unfinished.write_text("1 2 3")
    """
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
def atomic_open(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes atomically; a path that ends in .gz is compressed."""
    with atomic_write(path) as unfinished, unfinished.open("wb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


def safe_cell(cell: str) -> str:
    """Put an apostrophe before the text of a CSV cell if a spreadsheet would run it as a formula.

    Numbers are not changed. Text that already has such apostrophes gets one more, so that `read_cell` returns every
    text exactly.
    """
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell


def read_cell(cell: str) -> str:
    """Undo `safe_cell` for a cell of a file that Duels or a spreadsheet wrote."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def cache_folder() -> Path:
    """Return the folder for cached files: `$DUELS_CACHE`, else `$XDG_CACHE_HOME/duels`, else `~/.cache/duels`.

    Raises:
        RuntimeError: If there is no home directory.
    """
    if own := os.environ.get("DUELS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duels"
