"""Whether the server can do its work: its database answers, and what is written gets onto the disk.

Anybody may ask, so the answer is kept for a second, there is only one look at a time, and it says nothing of where the
database is. It waits for nothing that requests wait for: it has a thread and a connection of its own.
"""

import asyncio
import logging
import math
import threading
import time
from concurrent.futures import Future

import sqlalchemy as sa

from ..storage.database import Probe
from ..storage.database_errors import reason
from ..storage.storage import Storage, Write

logger = logging.getLogger("duels.server")
KEPT = 1.0  # seconds for which an answer is kept
LIMIT = 2.0  # seconds after which the database does not answer
PATIENCE = 1.0  # seconds to wait for a lock
WRITES = 5.0  # seconds after a write for which it shows that writing works
BUSY = ("locked", "lock timeout")  # what SQLite and PostgreSQL say while somebody else holds the lock
SILENT = "the database does not answer"
GONE = "the file of the database was removed or replaced"
UNWRITABLE = "the database cannot be written: is the disk full, or the file read-only?"


class HealthCheck:
    """One application's; it may be asked from any event loop."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._probe: Probe | None = None
        self._looking: Future[str | None] | None = None
        self._began = -math.inf  # when the last look began …
        self._ended = -math.inf  # … and ended
        self._found: str | None = None  # what is wrong, by the last look
        self._wrote = -math.inf  # when a write was last tried here

    async def trouble(self) -> str | None:
        """What is wrong, in words for anybody; None if nothing is."""
        looking = self._looking
        if looking is None and time.monotonic() - self._ended < KEPT:
            return self._found
        if looking is None:
            self._looking = looking = Future()
            self._began = time.monotonic()
            threading.Thread(target=self._look_and_note, args=(looking,), daemon=True).start()
        left = self._began + LIMIT - time.monotonic()
        if left <= 0:
            return SILENT
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(looking)), left)
        except TimeoutError:
            return SILENT

    def _look_and_note(self, looking: "Future[str | None]") -> None:
        """In a thread of its own, for which nobody waits at the end."""
        try:
            found = self._look()
        except Exception:
            logger.exception("the health check failed")
            found = SILENT
        if found is None and self._found is not None:
            logger.warning("health: the database answers and can be written again")
        self._looking, self._ended, self._found = None, time.monotonic(), found
        looking.set_result(found)

    def _look(self) -> str | None:
        storage = self.storage
        if isinstance(storage.engine.pool, sa.StaticPool):  # in memory: there is only one connection
            return None if storage.write_failure is None else UNWRITABLE
        if storage.is_gone:
            storage.post(Write(lambda connection: None), lambda value, error: None)  # opens it if it came back
            return GONE
        try:
            self._probe = self._probe or Probe(storage.url, PATIENCE)
            self._probe.read()
        except Exception as error:
            return self._because(error, SILENT)
        failure, now = storage.write_failure, time.monotonic()
        failing = failure is not None or self._found is not None
        if not failing and now - max(storage.last_write, self._wrote) < WRITES:
            return None
        self._wrote = now
        try:
            self._probe.write()
        except Exception as error:
            busy = any(sign in reason(error) for sign in BUSY)
            if busy and not failing:  # somebody is writing, most likely this server
                return None
            return self._because(error, UNWRITABLE)
        if storage.write_failure is failure:
            storage.write_failure = None
        return None

    def _because(self, error: Exception, words: str) -> str:
        if words != self._found:
            logger.warning("health: %s (%s)", words, reason(error))
        return words
