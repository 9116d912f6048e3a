"""The health check: whether the database answers and can be written.

Anybody may call it, so the result is cached for a second, only one check runs at a time, and the answer does not reveal
where the database is. It has its own thread and connection, so it does not wait for requests.
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
CACHE_SECONDS = 1.0
TIMEOUT = 2.0  # seconds after which the database counts as silent
LOCK_TIMEOUT = 1.0  # seconds
RECENT_WRITE = 5.0  # seconds; after a successful write no test write is needed
RECENT_FAILURE = 5.0  # seconds for which a write that failed counts for more than a test write that succeeds
BUSY = ("locked", "lock timeout")  # messages of SQLite and PostgreSQL while another writer holds the lock
SILENT = "the database does not answer"
GONE = "the database file was removed or replaced"
UNWRITABLE = "the database cannot be written: the disk may be full, or the file read-only"


class HealthCheck:
    """The health check of one application. It may be called from any event loop."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._probe: Probe | None = None
        self._running: Future[str | None] | None = None
        self._began = -math.inf  # when the last check began …
        self._ended = -math.inf  # … and ended
        self._found: str | None = None  # what the last check found to be wrong
        self._wrote = -math.inf  # when the check last tried to write

    async def trouble(self) -> str | None:
        """Return what is wrong, in words without secrets; None if nothing is."""
        running = self._running
        if running is None and time.monotonic() - self._ended < CACHE_SECONDS:
            return self._found
        if running is None:
            self._running = running = Future()
            self._began = time.monotonic()
            threading.Thread(target=self._run, args=(running,), daemon=True).start()
        left = self._began + TIMEOUT - time.monotonic()
        if left <= 0:
            return SILENT
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), left)
        except TimeoutError:
            return SILENT

    def _run(self, running: "Future[str | None]") -> None:
        """Run the check. This is the target of a daemon thread, so shutdown does not wait for it."""
        try:
            found = self._check()
        except Exception:
            logger.exception("the health check failed")
            found = SILENT
        if found is None and self._found is not None:
            logger.warning("health: the database works again")
        self._running, self._ended, self._found = None, time.monotonic(), found
        running.set_result(found)

    def _check(self) -> str | None:
        storage = self.storage
        if isinstance(storage.engine.pool, sa.StaticPool):  # in memory, with only one connection
            return None if storage.write_failure is None else UNWRITABLE
        if storage.is_gone:
            # A write reopens the database if the file is back.
            storage.post(Write(lambda connection: None), lambda value, error: None)
            return GONE
        try:
            self._probe = self._probe or Probe(storage.url, LOCK_TIMEOUT)
            self._probe.read()
        except Exception as error:
            return self._because(error, SILENT)
        failure, now = storage.write_failure, time.monotonic()
        if failure is not None and now - storage.failed_at < RECENT_FAILURE:  # a small write may still succeed
            return UNWRITABLE
        failing = failure is not None or self._found is not None
        if failure is None and now - storage.last_write < RECENT_WRITE:
            return None
        if not failing and now - self._wrote < RECENT_WRITE:
            return None
        self._wrote = now
        try:
            self._probe.write()
        except Exception as error:
            busy = any(sign in reason(error) for sign in BUSY)
            if busy and not failing:  # another writer holds the lock, most likely this server
                return None
            return self._because(error, UNWRITABLE)
        if storage.write_failure is failure:
            storage.write_failure = None
        return None

    def _because(self, error: Exception, words: str) -> str:
        if words != self._found:
            logger.warning("health: %s (%s)", words, reason(error))
        return words
