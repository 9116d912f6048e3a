"""Between requests and the storage: writes that do not block the loop, and streams of what has changed.

All waiting writes share a commit (see `Storage.post`). A stream is told the present state of its study, at most twice
a second and only the newest: a listener that does not read holds up nobody and costs one message.
"""

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..errors import DamagedStudy, DuelsError
from ..storage.storage import PAUSE, NotReady, Storage, Write
from ..study import worker
from ..study.catalogue import list_policies
from ..study.study import Study
from .keys import KeyId, is_in_force

logger = logging.getLogger("duels.server")
PULSE = 0.5  # seconds between two looks at the logs that somebody follows
DAMAGED = 30.0  # seconds until a study that is damaged is looked at again: that reads all of its log
DELETED = -2  # the sequence number of a study that is gone
SLOW = 8  # studies that are loaded or compiled at once
UPLOADS = 4  # at once
T = TypeVar("T")
NO_KEY = KeyId(0, "")  # of listeners where no sign-in is needed
KEEP_ALIVE = 15.0  # seconds after which a silent stream says that it is there


class Feed:
    """What the listeners of one study wait for."""

    def __init__(self, state: Callable[[], dict[str, Any]]) -> None:
        self.state = state  # blocks: reads the log
        self.seq = -1
        self.message = b""
        self.changed = asyncio.Event()
        self.listeners = 0
        self.lost = False  # whether the last look failed
        self.rest = 0.0  # until when it is not looked at


class Hub:
    """Belongs to the event loop of one application."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.feeds: dict[str, Feed] = {}
        self.closing = asyncio.Event()
        self._written: list[tuple[asyncio.Future, Any, BaseException | None]] = []
        self._settling = threading.Lock()
        self._keys: Counter[KeyId] = Counter()  # how many listeners came with each key
        self._revoked: set[KeyId] = set()  # those of them that are not in force any more
        self._pulse: asyncio.Task | None = None
        self._slow = ThreadPoolExecutor(SLOW, "duels-slow")  # loads and compiles
        self._uploads = ThreadPoolExecutor(UPLOADS, "duels-upload")
        self._preparing: dict[int, asyncio.Future] = {}  # by the study's id

    async def write(self, write: Write[T]) -> T:
        """As `Storage.write`: returns after it is on disk."""
        while True:
            try:
                return await self._write(write)
            except NotReady as slow:
                await self._prepare(slow.study, slow.work)

    async def _prepare(self, study: int, work: Callable[[], None] | None) -> None:
        """Do what is slow for a study once for all that wait, who must not take the threads of other studies."""
        if work is None:
            await asyncio.sleep(PAUSE)
            return
        if study not in self._preparing:
            future = asyncio.get_running_loop().run_in_executor(self._slow, work)
            self._preparing[study] = future
            future.add_done_callback(lambda done: self._preparing.pop(study, None))
        await asyncio.shield(self._preparing[study])

    async def upload(self, work: Callable[[], T]) -> T:
        """Take in what somebody has sent, which may take long."""
        return await asyncio.get_running_loop().run_in_executor(self._uploads, work)

    def prepare(self, study: Study) -> None:
        """Load a study and compile its policy in the background, before anybody asks."""
        if self.storage.compile is not None:
            self._slow.submit(self._compile_for, study)

    def prepare_all(self) -> None:
        """Compile the policies of all studies in the background."""
        if self.storage.compile is not None:
            self._slow.submit(self._compile_all)

    def _compile_for(self, study: Study) -> None:
        assert self.storage.compile is not None
        self.storage.compile(study.history().policy)
        study.prepare()

    def _compile_all(self) -> None:
        for policy in list_policies(self.storage):
            assert self.storage.compile is not None
            self.storage.compile(policy)

    async def _write(self, write: Write[T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def then(value: T, error: BaseException | None) -> None:
            with self._settling:
                self._written.append((future, value, error))
                first = len(self._written) == 1
            if first:  # of a commit, for all of which it wakes the loop
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(self._settle)

        self.storage.post(write, then)
        return await future

    def _settle(self) -> None:
        with self._settling:
            written, self._written = self._written, []
        for future, value, error in written:
            if future.done():  # whoever asked has gone away
                continue
            future.set_exception(error) if error is not None else future.set_result(value)

    async def follow(self, name: str, state: Callable[[], dict[str, Any]], key: KeyId = NO_KEY) -> AsyncIterator[bytes]:
        """Server-sent events of a study: its state now, and again whenever its log has grown.

        key: the listener's, with which the stream ends too.
        """
        feed = self.feeds.setdefault(name, Feed(state))
        feed.listeners += 1
        self._keys[key] += 1
        if self._pulse is None or self._pulse.done():
            self._pulse = asyncio.create_task(self._look())
        seen = -1
        try:
            while not self.closing.is_set() and key not in self._revoked:
                if feed.seq != seen:
                    seen = feed.seq
                    yield feed.message
                    if seen == DELETED:
                        return
                elif not await self._change(feed):
                    yield b": still here\n\n"
            yield b"event: bye\ndata: {}\n\n"
        finally:
            feed.listeners -= 1
            self._keys[key] -= 1
            if not feed.listeners and self.feeds.get(name) is feed:  # else it is of a study that was created again
                del self.feeds[name]

    async def _change(self, feed: Feed) -> bool:
        """Wait until there is something to say; False if there is not for long."""
        try:
            await asyncio.wait_for(feed.changed.wait(), KEEP_ALIVE)
        except TimeoutError:
            return False
        return True

    async def _look(self) -> None:
        """While anybody follows a study, look whether its log has grown, whoever wrote it."""
        while self.feeds and not self.closing.is_set():
            for name, feed in list(self.feeds.items()):
                await self._look_at(name, feed)
            await self._look_at_keys()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), PULSE)

    async def _look_at(self, name: str, feed: Feed) -> None:
        if time.monotonic() < feed.rest:
            return
        try:
            state = await asyncio.to_thread(feed.state)
        except Exception as error:
            if getattr(error, "kind", "") != "study":
                feed.rest = time.monotonic() + (DAMAGED if isinstance(error, DamagedStudy) else 0)
                if not feed.lost:  # it is said once, and looked for until the database is back
                    strange = not isinstance(error, DuelsError)
                    logger.warning("study %r cannot be followed now: %s", name, error, exc_info=strange)
                feed.lost = True
                return
            self.feeds.pop(name, None)
            _tell(feed, DELETED, b"event: deleted\ndata: {}\n\n")
            return
        feed.lost = False
        if state["seq"] != feed.seq:
            data = json.dumps(state, ensure_ascii=False)
            _tell(feed, state["seq"], f"event: change\nid: {state['seq']}\ndata: {data}\n\n".encode())

    async def _look_at_keys(self) -> None:
        """End the streams of those whose keys were revoked or have expired."""
        self._keys = +self._keys  # without those that nobody listens with
        asked = [key for key in self._keys if key != NO_KEY and key not in self._revoked]
        with contextlib.suppress(DuelsError):  # the database is away: it is looked at again
            gone = await asyncio.to_thread(lambda: {key for key in asked if not is_in_force(self.storage, key)})
            self._revoked = {key for key in self._revoked if key in self._keys} | gone
            for feed in self.feeds.values() if gone else ():
                _tell(feed, feed.seq, feed.message)

    def close(self) -> None:
        """Let every stream say goodbye."""
        self.closing.set()
        for feed in self.feeds.values():
            feed.changed.set()
        worker.stop()
        for pool in (self._slow, self._uploads):
            pool.shutdown(wait=False, cancel_futures=True)


def _tell(feed: Feed, seq: int, message: bytes) -> None:
    feed.seq, feed.message = seq, message
    feed.changed.set()
    feed.changed = asyncio.Event()
