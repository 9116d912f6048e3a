"""Text files as rows: what vote files and item files have in common.

A row is a line number and its cells, or a line number and the error of a line that cannot be read.
"""

import contextlib
import csv
import gzip
import io
import json
import os
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import InvalidInput

GZIP = b"\x1f\x8b"  # how compressed files start
T = TypeVar("T")
Row = tuple[int, T | ValueError]  # the line where it starts, and its content or what is wrong with it
_cell_limit = threading.Lock()


class TableEnds(ValueError):
    """From a line on, a file cannot be divided into rows."""


def read_text(source: str | bytes | os.PathLike[str], called: str, *, decompress_bytes: bool = True) -> str:
    """Return the text of a file in UTF-8, which may be compressed with gzip.

    Args:
        source: A path, `-` for standard input, or the content of a file.
        called: What to call it in errors.
        decompress_bytes: False for uploads: a small one may decompress to gigabytes.

    Raises:
        InvalidInput: If it cannot be read, or is not UTF-8.
    """
    try:
        if isinstance(source, bytes):
            content, may_decompress = source, decompress_bytes
        else:
            content, may_decompress = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes(), True
        if may_decompress and content.startswith(GZIP):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{called} is not text in UTF-8: {error.reason} at byte {error.start}") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise InvalidInput(f"{called} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name in lower case, such as `.csv`; that of `x.csv.gz` is `.csv` too."""
    return Path(name[:-3] if name.lower().endswith(".gz") else name).suffix.lower()


def first_line(text: str) -> str:
    """Return the first line that is not empty, which shows the format of a file."""
    return text[:10_000].lstrip().partition("\n")[0]


def csv_rows(text: str, delimiter: str) -> Iterator[Row[list[str]]]:
    """Yield the rows of a CSV file that are not empty; a row may span several lines in quotes."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1  # where the next row starts
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        yield line, TableEnds(f"not a table from here on: {error}")


@contextlib.contextmanager
def cells_up_to(length: int) -> Iterator[None]:
    """Allow longer cells in CSV files for a while. The limit is a setting of the whole process."""
    with _cell_limit:
        before = csv.field_size_limit(length)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def json_rows(
    text: str, object_hook: Callable[[list[tuple[str, object]]], object] | None = None
) -> Iterator[Row[object]]:
    """Yield the values of a JSON Lines file.

    Args:
        text: The file's text.
        object_hook: Makes an object from its pairs; by default a dict.
    """
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                yield number, json.loads(line, object_pairs_hook=object_hook)
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"not JSON: {str(error).partition(': line')[0]}")
