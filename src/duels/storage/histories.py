"""The studies that a process has loaded, as far as memory allows."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from typing import Protocol

MEMORY = 256 * 2**20  # bytes of studies that stay loaded


class LoadedHistory(Protocol):
    """What the storage needs to know about the state of a loaded study."""

    seq: int  # the last event it includes

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""

    @property
    def is_busy(self) -> bool:
        """Whether a thread is updating it outside the lock."""


class Histories(OrderedDict[int, LoadedHistory]):
    """The state of each loaded study by its id, most recently used last. Change it only under the storage's lock."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = MEMORY
        self._preparing: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def add(self, study: int, history: LoadedHistory, needed: Collection[int]) -> None:
        """Keep a study, and drop the least recently used ones if memory runs out.

        Args:
            study: The study's id.
            history: Its state.
            needed: Ids of studies that must stay.
        """
        self[study] = history
        self.move_to_end(study)
        total = sum(one.size for one in self.values())
        for key in list(self)[:-1]:
            if total <= self.memory:
                return
            if key not in needed and not self[key].is_busy:
                total -= self.pop(key).size

    def preparing(self, study: int) -> threading.Lock:
        """Return a study's lock for slow work, so that one thread does it while the others go on."""
        return self._preparing[study]
