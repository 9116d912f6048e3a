"""The studies that a process has loaded, as far as memory allows."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from typing import Any

MEMORY = 256 * 2**20  # bytes of studies that stay loaded


class Followers(OrderedDict[int, Any]):
    """What is known of each study, by its id, the last used last. Whoever has the storage's turn may change it."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = MEMORY
        self._preparing: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def add(self, study: int, history: Any, needed: Collection[int]) -> None:
        """Keep a study; those that were not used for longest leave when there is too much, but for those needed."""
        self[study] = history
        self.move_to_end(study)
        total = sum(one.size for one in self.values())
        for key in list(self)[:-1]:
            if total <= self.memory:
                return
            if key not in needed and not self[key].is_busy:
                total -= self.pop(key).size

    def preparing(self, study: int) -> threading.Lock:
        """Held by the one thread that does what is slow for a study, while all others go on."""
        return self._preparing[study]
