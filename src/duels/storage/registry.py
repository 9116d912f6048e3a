"""Storages by URL: one for each in a process."""

import atexit
import threading
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from .database import DEFAULT
from .storage import Storage

_opened: dict[str, Storage] = {}
_opening = threading.Lock()


@atexit.register
def _close_all() -> None:
    for storage in _opened.values():
        storage.close()


def open_storage(url: Any) -> Storage:
    """The storage at a URL; one for each in a process, so that all its threads share commits."""
    if isinstance(url, Storage):
        return url
    if not isinstance(url, str) or "://" not in url:
        raise InvalidInput(f"storage is {url!r}: expected a URL such as {DEFAULT} or postgresql://user@host/name")
    url = _absolute(url)
    with _opening:
        if url in _opened and _opened[url].is_gone:
            _opened.pop(url).close()
        if url not in _opened:
            _opened[url] = Storage(url)
        return _opened[url]


def existing_storage(url: Any) -> Storage | None:
    """The storage at a URL, unless that is a file which does not exist: looking must not make one."""
    if isinstance(url, str) and _absolute(url).startswith("sqlite:////"):
        path = Path(_absolute(url).removeprefix("sqlite:///"))
        if not path.exists():
            return None
    return open_storage(url)


def _absolute(url: str) -> str:
    """A relative file is the one of the folder one is in now, also after that has changed."""
    scheme, slashes, path = url.partition(":///")
    if not scheme.startswith("sqlite") or not slashes or path.startswith(("/", ":", "file:")) or not path:
        return url
    return f"{scheme}:///{Path.cwd() / path}"
