"""Open storages by URL: one of each per process."""

import atexit
import threading
from pathlib import Path

from ..errors import InvalidInput
from .database import DEFAULT
from .storage import Storage

_storages: dict[str, Storage] = {}
_lock = threading.Lock()


@atexit.register
def _close_all() -> None:
    for storage in _storages.values():
        storage.close()


def open_storage(url: str | Storage) -> Storage:
    """Open the storage at a URL, or return the one that this process has open, so that its threads share commits.

    Args:
        url: A database's URL, such as `sqlite:///duels.db`. A storage is returned as it is.

    Raises:
        InvalidInput: If it is not the URL of a database.
        StorageError: If the database cannot be used.
    """
    if isinstance(url, Storage):
        return url
    if not isinstance(url, str) or "://" not in url:
        raise InvalidInput(f"storage is {url!r}: expected a URL such as {DEFAULT} or postgresql://user@host/name")
    url = _absolute(url)
    with _lock:
        if url in _storages and _storages[url].is_gone:
            _storages.pop(url).close()
        if url not in _storages:
            _storages[url] = Storage(url)
        return _storages[url]


def find_storage(url: str | Storage) -> Storage | None:
    """As `open_storage`, but returns None for a SQLite file that does not exist instead of creating it."""
    if isinstance(url, str) and _absolute(url).startswith("sqlite:////"):
        path = Path(_absolute(url).removeprefix("sqlite:///"))
        if not path.exists():
            return None
    return open_storage(url)


def _absolute(url: str) -> str:
    """A relative path refers to the current folder, even if the process changes it later."""
    scheme, slashes, path = url.partition(":///")
    if not scheme.startswith("sqlite") or not slashes or path.startswith(("/", ":", "file:")) or not path:
        return url
    return f"{scheme}:///{Path.cwd() / path}"
