"""The studies that a process has loaded, as far as memory allows."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from typing import Protocol

MEMORY = 256 * 2**20  # bytes of studies that stay loaded
OFTEN = 50  # so few studies are measured whenever one is added


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
        self._sizes: dict[int, int] = {}  # of each study when they were last measured
        self._total = self._added = 0  # the sum of these, and how many were added since
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
        self._added += 1
        # Studies grow after they were measured. A few are measured each time; thousands, loaded one by one, are not.
        if len(self) <= OFTEN or self._added > len(self) // 2:
            self._sizes, self._added = {key: one.size for key, one in self.items()}, 0
            self._total = sum(self._sizes.values())
        else:
            self._total += history.size - self._sizes.get(study, 0)
            self._sizes[study] = history.size
        if self._total > self.memory:
            self._drop(needed)

    def _drop(self, needed: Collection[int]) -> None:
        for key in list(self)[:-1]:
            if self._total <= self.memory:
                return
            if key not in needed and not self[key].is_busy:
                del self[key]
                self._total -= self._sizes.pop(key, 0)

    def lock_for(self, study: int) -> threading.Lock:
        """Return a study's lock for slow work, so that one thread does it while the others go on."""
        return self._preparing[study]
