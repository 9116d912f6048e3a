"""What this process keeps of a tuning study, for all objects of it: fits, points, and choices that are ready."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable

from ..storage.storage import Storage, StudyRow
from .advice import Advice
from .choices import AskedSettings, Batch
from .situation import Memory
from .spaces import Space

MOST_KEPT = 16  # studies per storage; each takes a few megabytes
_kept: "weakref.WeakKeyDictionary[Storage, OrderedDict[Hashable, Workspace]]" = weakref.WeakKeyDictionary()
_keeping = threading.Lock()


class Workspace:
    """What is kept of one study. Hold `lock` for all but `batch` and `waiting`; it may be held for seconds.

    Args:
        space: The study's space.
    """

    def __init__(self, space: Space) -> None:
        self.lock = threading.Lock()
        self.memory = Memory()
        self.asked = AskedSettings(space)
        self.batch = Batch()
        self.waiting = 0  # duels that were asked for since the last choice, and must be chosen first
        self.advice: tuple[bytes, Advice] | None = None  # with the answers that it is about


def workspace_of(storage: Storage, row: StudyRow, space: Space) -> Workspace:
    """Return the workspace of a study; the least recently used ones are dropped."""
    with _keeping:
        kept = _kept.setdefault(storage, OrderedDict())
        key = (storage.generation, row.id, row.created)
        found = kept.pop(key, None) or Workspace(space)
        kept[key] = found
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
    return found
