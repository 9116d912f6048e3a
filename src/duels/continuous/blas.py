"""One BLAS thread at a time: the model's matrices are small, and threads that wait for each other take longer.

Digits then do not depend on how many threads there are, either.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

Threads = tuple[Callable[[], int], Callable[[int], object]]  # of a library: how many it uses, and how to change that

_counting = threading.Lock()
_inside = 0  # blocks that want one thread
_before: list[int] = []  # threads of each library before the first of them


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of the OpenBLAS of numpy and scipy in a block. Other libraries are left alone."""
    global _inside, _before
    with _counting:
        _inside += 1
        if _inside == 1:
            _before = [count() for count, _ in _libraries()]
            for _, change in _libraries():
                change(1)
    try:
        yield
    finally:
        with _counting:
            _inside -= 1
            if not _inside:
                for (_, change), number in zip(_libraries(), _before):
                    change(number)


@cache
def _libraries() -> list[Threads]:
    """The functions of each OpenBLAS that came with numpy and scipy."""
    import numpy as np
    import scipy

    found = list[Threads]()
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parent
        for place in (folder.parent / f"{folder.name}.libs", folder / ".dylibs"):
            for file in place.glob("*openblas*"):
                with contextlib.suppress(OSError):
                    found += _functions(ctypes.CDLL(str(file)))
    return found


def _functions(library: ctypes.CDLL) -> list[Threads]:
    for name in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads"):
        with contextlib.suppress(AttributeError):
            return [(getattr(library, name.format("get")), getattr(library, name.format("set")))]
    return []
