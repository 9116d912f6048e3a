"""The health check: whether the database answers and can be written.

Anybody may call it, so the result is cached for a second, only one check runs at a time, and the answer does not reveal
where the database is. It has its own thread and connection, so it does not wait for requests.

The ASGI application.
"""

import asyncio
import functools
import json
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Collection
from concurrent.futures import Future
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import sqlalchemy as sa
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from .. import __version__
from ..errors import InvalidInput, shorten
from ..storage.database import Probe
from ..storage.database_errors import reason
from ..storage.storage import Storage, Write, open_storage
from .api import duels, interleaving, items, links, results, settings, studies, tokens, tunings, voters
from .api.schemas import Health
from .auth import Caller, ServiceDep
from .fast_routes import FastRoutes
from .http.errors import RETRY_SECONDS, add_error_handlers, error_response, error_responses
from .http.files import choose_packed, pack_file
from .http.large_requests import LimitLarge
from .http.limits import Limits, Rates
from .http.middleware import Metrics, Middleware
from .http.turns import TakeTurns
from .pages import base, preview, results_link, vote
from .pages import items as item_pages
from .pages import study as study_pages
from .state import Service
from .streams import Streams
from .writes import Background

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
        """Return what is wrong, as text without secrets; None if nothing is."""
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


LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ABOUT = """Which of K alternatives is best? Ask for a duel, tell who won, read the verdict.

Send a token as `Authorization: Bearer TOKEN`. Every error has the same body:
`{"error": {"kind": …, "message": …}}`. A change is on disk before its response is sent.
"""


class Application:
    """Three layers: the middleware, the fast routes, and FastAPI."""

    def __init__(self, fastapi: FastAPI, middleware: Middleware) -> None:
        self.fastapi, self.middleware = fastapi, middleware
        self.service: Service = fastapi.state.service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self.fastapi
        await self.middleware(scope, receive, send)


def create_app(
    storage: str | Storage,
    *,
    public_url: str = "",
    hosts: Collection[str] = (),
    limits: Limits | None = None,
    open_to_all: bool = False,
    signing: str = "",
) -> "Application":
    """Create the ASGI application for a storage.

    Args:
        storage: The storage or its URL, such as `sqlite:///duels.db`.
        public_url: The address that people use, if there is a proxy. Voting links begin with it.
        hosts: Allowed values of the header `Host`; by default any.
        limits: Sizes and rates of requests.
        open_to_all: Whether no sign-in is needed; only for a server that nobody else can reach.
        signing: What signs the addresses of outputs, the same for all processes; by default random.

    Raises:
        InvalidInput: If `public_url` is not an http or https address without a path.
        StorageError: If the database cannot be opened.
    """
    store = open_storage(storage)
    service = Service(
        store,
        Background(store),
        Streams(store),
        limits or Limits(),
        Rates(),
        public_url=_check_url(public_url),
        open_to_all=open_to_all,
    )
    service.signing = signing or service.signing
    health = HealthCheck(store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Duels",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # `_add_description` serves it without writing it again for each request
        lifespan=lifespan,
        separate_input_output_schemas=False,
    )
    metrics = Metrics()
    app.state.service, app.state.metrics = service, metrics
    add_error_handlers(app)
    api = (
        studies,
        tunings,
        duels,
        results,
        items,
        links,
        settings,
        voters,
        interleaving,
        tokens,
    )
    people = (vote, preview, results_link, base, study_pages, item_pages)
    for router in (*(part.router for part in (*api, *people)), preview.pages, results_link.pages):
        app.router.routes += router.routes  # `include_router` would build every route once more
    _add_health(app, metrics, health)
    _summarize(app)
    _add_description(app, service)
    base.add_files(app)
    names = {*hosts, urlsplit(public_url).hostname or ""} - {""} if hosts else ()
    secure = public_url.startswith("https:")
    layers = FastRoutes(LimitLarge(TakeTurns(app, service.turns), service), service)
    return Application(app, Middleware(layers, service.limits, metrics, names, secure))


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query):
        raise InvalidInput(f"public_url is {shorten(url, 100)}: expected something like https://duels.example.org")
    return url.rstrip("/")


def _summarize(app: FastAPI) -> None:
    """Use the first sentence of each docstring as the summary of its route in the API's description."""
    for route in app.routes:
        if isinstance(route, APIRoute) and route.description and route.summary is None:  # once, as apps share routes
            first, _, rest = route.description.partition("\n")
            sentence, stop, more = first.partition(". ")
            route.summary = f"{sentence}." if stop else first
            route.description = f"{more}\n{rest}".strip()


def _add_description(app: FastAPI, service: Service) -> None:
    write = functools.cache(lambda: pack_file(json.dumps(app.openapi()).encode(), "application/json"))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        found = write() if write.cache_info().currsize else await service.background.once("openapi", write)
        return choose_packed(request, *found, {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"})


def _add_health(app: FastAPI, metrics: Metrics, health: HealthCheck) -> None:
    @app.get("/healthz", response_model=Health, responses=error_responses(503), tags=["operations"])
    async def healthz() -> Response | dict[str, str]:
        """Check that the database answers and can be written."""
        trouble = await health.trouble()
        if trouble is not None:
            return error_response(503, trouble, headers={"Retry-After": str(RETRY_SECONDS)})
        return {"status": "ok", "version": __version__}

    @app.get("/metrics", response_class=Response, responses=error_responses(401, 429, 503), tags=["operations"])
    def prometheus(service: ServiceDep, key: Caller) -> Response:
        """Get metrics for Prometheus."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        metrics.streams.set(sum(feed.listeners for feed in service.streams.feeds.values()))
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
