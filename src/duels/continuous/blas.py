"""One BLAS thread at a time: the model's matrices are small, and threads that wait for each other take longer.

Digits then do not depend on how many threads there are, either.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_counting = threading.Lock()
_inside = 0  # blocks that want one thread
_restore: Callable[[], None]  # sets the number of threads as it was before the first of them


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of BLAS in a block."""
    # The number of threads belongs to the process. Blocks of several threads overlap, so only the first one changes it
    # and only the last one restores it.
    global _inside, _restore
    with _counting:
        if not _inside:
            _restore = _limit_threads()
        _inside += 1
    try:
        yield
    finally:
        with _counting:
            _inside -= 1
            if not _inside:
                _take_control()
                _restore()
                _take_control()


def _limit_threads() -> Callable[[], None]:
    libraries = _find_libraries()
    _take_control()
    restore: Callable[[], None] = libraries.limit(limits=1, user_api="blas").restore_original_limits
    return restore


def _take_control() -> None:
    """Let this thread change OpenBLAS: after one thread has, threadpoolctl ignores all others until that is cleared."""
    from threadpoolctl import OpenBLASController

    OpenBLASController.clear_controlling_thread(force=True)


@cache
def _find_libraries() -> "ThreadpoolController":
    """Find the BLAS libraries of this process, once: looking through all its libraries takes a millisecond."""
    import scipy.linalg  # noqa: F401  # scipy brings its own BLAS, which is found only once it is loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
