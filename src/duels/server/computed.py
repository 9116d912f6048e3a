"""What takes long to compute and is asked for again and again."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

ARRIVED: ContextVar[float | None] = ContextVar("ARRIVED", default=None)  # when the request came, by `time.monotonic`
T = TypeVar("T")


class Known(NamedTuple, Generic[T]):
    """A value, with the state that it was computed in, and when that began."""

    state: Hashable
    begun: float
    value: T


class Computed(Generic[T]):
    """Values by key, each computed by one thread, once for each state of what it depends on.

    Requests that wait while others come, and while the state changes, all get the next value: what was computed after
    they arrived is new enough for them.

    Args:
        most: The size of all that are kept; those that were used last are.
        size: Returns the size of a value; by default each is one.
    """

    def __init__(self, most: int, size: Callable[[T], int] = lambda value: 1) -> None:
        self._most, self._size_of, self._size = most, size, 0
        self._known: OrderedDict[Hashable, Known[T]] = OrderedDict()
        self._lock = threading.Lock()
        self._turns: dict[Hashable, tuple[threading.Lock, list[int]]] = {}  # by key, with how many hold or await it

    def get(self, key: Hashable, compute: Callable[[], T], state: Callable[[], Hashable] = lambda: None) -> T:
        """Return a value, computed now unless the one that is kept was computed in the same state. Blocks.

        Args:
            key: Identifies the value.
            compute: Returns it.
            state: Returns the state that it depends on; called when this thread's turn has come.
        """
        arrived = ARRIVED.get() or time.monotonic()
        with self._turn(key):
            begun, now = time.monotonic(), state()
            with self._lock:
                found = self._known.get(key)
                if found is not None and (found.state == now or found.begun > arrived):
                    self._known[key] = found if found.state != now else found._replace(begun=begun)
                    self._known.move_to_end(key)
                    return found.value
            value = compute()
            self._put(key, Known(now, begun, value))
            return value

    def since(self, key: Hashable, moment: float) -> Known[T] | None:
        """Return what was computed for a key after a moment, by `time.monotonic`; None if nothing was."""
        found = self._known.get(key)
        return found if found is not None and found.begun > moment else None

    def get_known(self, key: Hashable) -> T | None:
        """Return the value that is kept for a key, whatever its state; None if there is none."""
        found = self._known.get(key)
        return None if found is None else found.value

    def values(self) -> list[T]:
        """Return all values that are kept."""
        with self._lock:
            return [found.value for found in self._known.values()]

    def _put(self, key: Hashable, new: Known[T]) -> None:
        with self._lock:
            before = self._known.pop(key, None)
            self._size += self._size_of(new.value) - (0 if before is None else self._size_of(before.value))
            self._known[key] = new
            while self._size > self._most and len(self._known) > 1:
                _, dropped = self._known.popitem(last=False)
                self._size -= self._size_of(dropped.value)

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._known.clear()
            self._size = 0

    @contextmanager
    def _turn(self, key: Hashable) -> Iterator[None]:
        with self._lock:
            turn, holders = self._turns.setdefault(key, (threading.Lock(), [0]))
            holders[0] += 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                holders[0] -= 1
                if not holders[0]:
                    del self._turns[key]
