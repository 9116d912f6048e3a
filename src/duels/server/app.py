"""The ASGI application."""

import functools
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from .. import __version__
from ..errors import InvalidInput, shorten
from ..storage.registry import open_storage
from ..storage.storage import Storage
from . import item_pages, pages, preview, results_link, study_pages, tuning_pages, voting
from .api import (
    duels,
    interleaving,
    invitations,
    item_results,
    items,
    links,
    results,
    settings,
    studies,
    tokens,
    tunings,
    voters,
)
from .background import Background
from .errors import RETRY_SECONDS, add_error_handlers, error_response, error_responses
from .fast_routes import FastRoutes
from .health import HealthCheck
from .large_requests import LimitLarge
from .limits import Limits, Rates
from .middleware import Metrics, Middleware
from .page_files import choose_packed, pack_file
from .schemas import Health
from .security import Caller, ServiceDep
from .service import Service
from .streams import Streams
from .turns import TakeTurns

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
        item_results,
        links,
        invitations,
        settings,
        voters,
        interleaving,
        tokens,
    )
    people = (voting, preview, results_link, pages, study_pages, item_pages, tuning_pages)
    for router in (*(part.router for part in (*api, *people)), preview.pages, results_link.pages):
        app.router.routes += router.routes  # `include_router` would build every route once more
    _add_health(app, metrics, health)
    _summarize(app)
    _add_description(app, service)
    pages.add_files(app)
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
