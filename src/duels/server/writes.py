"""Work that must not block the event loop: writes, votes, slow loads and compilations, uploads, rendering.

All waiting writes share a commit (see `Storage.post`). Everything else has a thread pool for each kind of work, so that
votes never wait for slow work.
"""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

from starlette.requests import Request

from ..continuous.tuning.create import newest_tuning
from ..continuous.tuning.study import TuningStudy
from ..errors import DuelsError
from ..storage.storage import PAUSE, NotReady, Storage, Write
from ..study.create import list_policies
from ..study.items import Output
from ..study.study import Study
from . import child_process
from .keys import Key
from .rendering import Renderer, as_text

SLOW_THREADS = 8  # studies that are loaded or compiled at the same time
UPLOAD_THREADS = 4
VOTE_THREADS = 4  # nothing that they do takes long
PAGE_THREADS = 2
RENDERING = 3.0  # seconds until an output is shown as plain text instead, because others are being rendered
T = TypeVar("T")


class Background:
    """The background work of one application; its coroutines belong to one event loop."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._written: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        self._settling = threading.Lock()
        self._slow = ThreadPoolExecutor(SLOW_THREADS, "duels-slow")
        self._uploads = ThreadPoolExecutor(UPLOAD_THREADS, "duels-upload")
        self._votes = ThreadPoolExecutor(VOTE_THREADS, "duels-vote")
        self._pages = ThreadPoolExecutor(PAGE_THREADS, "duels-page")
        self.renderer = Renderer()
        self._reading: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)  # by the key's id
        self._running: dict[Hashable, asyncio.Future[Any]] = {}  # work that several requests wait for

    async def write(self, write: Write[T]) -> T:
        """Write without blocking the loop; returns the value of the write after it is on disk.

        A question that arrives while others wait for one waits behind them.
        """
        while True:
            before = self._running.get(("prepare", write.study)) if write.last else None
            if before is not None:
                await asyncio.shield(before)
            try:
                return await self._post(write)
            except NotReady as slow:
                await self._prepare(slow.study, slow.work)

    async def once(self, what: Hashable, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        """Return the result of slow work that is done once for all requests that wait for it, in one thread.

        Args:
            what: Identifies the work while it is under way.
            work: The work.
            threads: Where it is done; by default where studies are loaded.
        """
        if what not in self._running:
            future = asyncio.get_running_loop().run_in_executor(threads or self._slow, work)
            self._running[what] = future
            future.add_done_callback(lambda done: self._running.pop(what, None))
        return cast(T, await asyncio.shield(self._running[what]))

    async def read(
        self, request: Request, key: Key, what: str, function: Callable[..., T], content: bytes, *more: object
    ) -> T:
        """Read an upload: a large one in a child process, which ends when the client is gone.

        Each token has one such process at a time; its other uploads wait.

        Args:
            request: The request, whose body was read.
            key: The caller's.
            what: What the upload holds.
            function: A function of a module.
            content: Its first argument, the upload.
            *more: Its other arguments.

        Raises:
            InvalidInput: If it cannot be read, or not within the limits of a child process.
        """
        if not child_process.is_large(content):
            return await self.upload(partial(function, content, *more))
        work = child_process.Work(child_process.UPLOADS, function, content, *more)
        gone = asyncio.create_task(_stop_when_gone(request, work))
        try:
            async with self._reading[key.id]:
                return await self.upload(work.run)
        except child_process.ChildFailed:
            raise child_process.too_much(what) from None
        finally:
            gone.cancel()

    async def vote(self, work: Callable[..., T], *arguments: object) -> T:
        """Do a part of a vote in a thread, where nothing else is done."""
        return await asyncio.get_running_loop().run_in_executor(self._votes, work, *arguments)

    async def render(self, output: Output) -> str:
        """Return safe HTML of an output; plain text if it has to wait for long."""
        found = self.renderer.quick(output)
        if found is not None:
            return found
        work = self.once(output, partial(self.renderer.html, output), self._pages)
        try:
            return await asyncio.wait_for(work, RENDERING)
        except TimeoutError:
            return as_text(output)

    async def upload(self, work: Callable[[], T]) -> T:
        """Process an upload, which may take long, in a separate thread."""
        return await asyncio.get_running_loop().run_in_executor(self._uploads, work)

    def prepare(self, study: Study | TuningStudy) -> None:
        """Load a study and compile its policy before anybody asks."""
        self._slow.submit(study._log.prepare_for_asking)

    def prepare_all(self) -> None:
        """Compile the policies of all studies."""
        if self.storage.compile is not None:
            self._slow.submit(self._compile_all)

    def close(self) -> None:
        """Stop all work that has not started."""
        child_process.stop()
        for pool in (self._slow, self._uploads):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _post(self, write: Write[T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def then(value: Any, error: BaseException | None) -> None:
            with self._settling:
                self._written.append((future, value, error))
                first = len(self._written) == 1
            if first:  # wakes the loop once for all writes of a commit
                with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody is waiting
                    loop.call_soon_threadsafe(self._settle)

        self.storage.post(write, then)
        return await future

    def _settle(self) -> None:
        with self._settling:
            written, self._written = self._written, []
        for future, value, error in written:
            if future.done():  # the client has disconnected
                continue
            future.set_exception(error) if error is not None else future.set_result(value)

    async def _prepare(self, study: int, work: Callable[[], None] | None) -> None:
        """Do the slow work of a study once for all writes that wait for it, in one thread."""
        if work is None:
            await asyncio.sleep(PAUSE)
            return
        await self.once(("prepare", study), work)

    def _compile_all(self) -> None:
        with contextlib.suppress(DuelsError):  # such as a damaged study
            tuned = newest_tuning(self.storage)
            if tuned is not None:  # it loads what all tuning studies need
                tuned._log.prepare()
        for policy in list_policies(self.storage):
            assert self.storage.compile is not None
            self.storage.compile(policy)


async def _stop_when_gone(request: Request, work: child_process.Work[Any]) -> None:
    """Stop work when the client of a request, whose body was read, disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    work.stop()
