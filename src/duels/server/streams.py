"""Streams of server-sent events: the state of a study, whenever it changes.

A stream sends the newest state, at most twice a second. A listener that reads slowly misses older states, does not
delay anybody, and costs the memory of one message.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import TypedDict

from ..errors import DamagedStudy, DuelsError
from ..storage.storage import Storage
from .keys import KeyId, is_in_force

logger = logging.getLogger("duels.server")
PULSE = 0.5  # seconds between two looks at the logs that have listeners
DAMAGED = 30.0  # seconds until a damaged study is read again: finding the damage reads its whole log
DELETED = -2  # the sequence number of a deleted study
NO_KEY = KeyId(0, "")  # of listeners where no sign-in is needed
KEEP_ALIVE = 15.0  # seconds of silence after which a stream sends a comment


class State(TypedDict):
    """What a stream says about a study."""

    seq: int
    answers: int
    open: int
    waiting: int  # open questions within their lease
    retired: bool


class Feed:
    """The newest message for the listeners of one study."""

    def __init__(self, state: Callable[[], State]) -> None:
        self.state = state  # blocks: reads the log
        self.seq = -1
        self.message = b""
        self.changed = asyncio.Event()
        self.listeners = 0
        self.lost = False  # whether the last look failed
        self.paused_until = 0.0

    def publish(self, seq: int, message: bytes) -> None:
        """Wake all listeners with a new message."""
        self.seq, self.message = seq, message
        self.changed.set()
        self.changed = asyncio.Event()


class Streams:
    """All streams of one application; it belongs to one event loop."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.feeds: dict[str, Feed] = {}
        self.closing = asyncio.Event()
        self._keys: Counter[KeyId] = Counter()  # the number of listeners by key
        self._revoked: set[KeyId] = set()  # keys of listeners that are no longer valid
        self._pulse: asyncio.Task[None] | None = None

    async def follow(self, name: str, state: Callable[[], State], key: KeyId = NO_KEY) -> AsyncIterator[bytes]:
        """Yield server-sent events: the state of a study now, and again whenever it has changed.

        Args:
            name: The study's name.
            state: Reads the state; it may block.
            key: The listener's key. The stream ends when it is revoked.
        """
        feed = self.feeds.setdefault(name, Feed(state))
        feed.listeners += 1
        self._keys[key] += 1
        if self._pulse is None or self._pulse.done():
            self._pulse = asyncio.create_task(self._look())
        seen = b""
        try:
            while not self.closing.is_set() and key not in self._revoked:
                if feed.message != seen:
                    seen = feed.message
                    yield seen
                    if feed.seq == DELETED:
                        return
                elif not await self._change(feed):
                    yield b": still here\n\n"
            yield b"event: bye\ndata: {}\n\n"
        finally:
            feed.listeners -= 1
            self._keys[key] -= 1
            if not feed.listeners and self.feeds.get(name) is feed:  # else the study was deleted and created again
                del self.feeds[name]

    def listeners(self, key: KeyId) -> int:
        """Return how many streams are open with a key."""
        return self._keys[key]

    async def _change(self, feed: Feed) -> bool:
        """Wait for the next message; return False if there is none for `KEEP_ALIVE` seconds."""
        try:
            await asyncio.wait_for(feed.changed.wait(), KEEP_ALIVE)
        except TimeoutError:
            return False
        return True

    async def _look(self) -> None:
        """While there are listeners, look for changes: any process may write to the logs, and leases end."""
        while self.feeds and not self.closing.is_set():
            for name, feed in list(self.feeds.items()):
                await self._look_at(name, feed)
            await self._look_at_keys()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), PULSE)

    async def _look_at(self, name: str, feed: Feed) -> None:
        if time.monotonic() < feed.paused_until:
            return
        try:
            state = await asyncio.to_thread(feed.state)
        except Exception as error:
            if getattr(error, "kind", "") != "study":
                feed.paused_until = time.monotonic() + (DAMAGED if isinstance(error, DamagedStudy) else 0)
                if not feed.lost:  # logged once, and tried again until the database is back
                    unexpected = not isinstance(error, DuelsError)
                    logger.warning("study %r cannot be followed now: %s", name, error, exc_info=unexpected)
                feed.lost = True
                return
            self.feeds.pop(name, None)
            feed.publish(DELETED, b"event: deleted\ndata: {}\n\n")
            return
        feed.lost = False
        data = json.dumps(state, ensure_ascii=False)
        message = f"event: change\nid: {state['seq']}\ndata: {data}\n\n".encode()
        if message != feed.message:
            feed.publish(state["seq"], message)

    async def _look_at_keys(self) -> None:
        """End the streams of listeners whose keys were revoked or have expired."""
        self._keys = +self._keys  # drops keys without listeners
        known = [key for key in self._keys if key != NO_KEY and key not in self._revoked]
        with contextlib.suppress(DuelsError):  # the database is unavailable: the next look tries again
            gone = await asyncio.to_thread(lambda: {key for key in known if not is_in_force(self.storage, key)})
            self._revoked = {key for key in self._revoked if key in self._keys} | gone
            for feed in self.feeds.values() if gone else ():
                feed.publish(feed.seq, feed.message)

    def close(self) -> None:
        """End every stream with a last event."""
        self.closing.set()
        for feed in self.feeds.values():
            feed.changed.set()
