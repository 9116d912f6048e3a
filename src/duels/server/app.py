"""The application: its parts put together."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Response

from .. import __version__
from ..errors import InvalidInput, cut
from ..storage.registry import open_storage
from ..storage.storage import Storage
from . import pages, voting
from .api import duels, interleaving, results, studies, tokens
from .api import items_and_links as arena
from .errors import RETRY, explain, problem, shape
from .fast_path import Quick
from .health import HealthCheck
from .limits import Limits, Rates
from .middleware import Gate, Metrics
from .schemas import Health
from .security import Caller, Here
from .service import Service
from .streams import Hub

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ABOUT = """Which of K alternatives is best? Ask for a duel, tell who won, look at the verdict.

Send a token as `Authorization: Bearer TOKEN`. Everything that goes wrong has one shape:
`{"error": {"kind": …, "message": …}}`. What was answered is on disk.
"""


class Application:
    """What a server serves: the gate, behind it the quick requests, behind them FastAPI."""

    def __init__(self, fastapi: FastAPI, gate: Gate) -> None:
        self.fastapi, self.gate = fastapi, gate
        self.service: Service = fastapi.state.service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope["app"] = self.fastapi
        await self.gate(scope, receive, send)


def create_app(
    storage: str | Storage,
    *,
    public_url: str = "",
    hosts: Collection[str] = (),
    limits: Limits | None = None,
    open_to_all: bool = False,
) -> "Application":
    """The ASGI application on a storage.

    public_url: where people reach it, if a proxy stands in front; links begin with it.
    hosts: names that a request's Host may have; by default any.
    open_to_all: no sign-in is needed; only for a server that nobody else can reach.
    """
    store = open_storage(storage)
    service = Service(
        store, Hub(store), limits or Limits(), Rates(), public_url=_checked(public_url), open_to_all=open_to_all
    )

    health = HealthCheck(store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.hub.close()

    app = FastAPI(
        title="Duels",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        separate_input_output_schemas=False,
    )
    metrics = Metrics()
    app.state.service, app.state.metrics = service, metrics
    explain(app)
    for part in (studies, duels, results, arena, interleaving, tokens, voting, pages):
        app.include_router(part.router)
    _add_health(app, metrics, health)
    pages.add_files(app)
    names = {*hosts, urlsplit(public_url).hostname or ""} - {""} if hosts else ()
    secure = public_url.startswith("https:")
    return Application(app, Gate(Quick(app, service), service.limits, metrics, names, secure))


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query):
        raise InvalidInput(f"public_url is {cut(url, 100)}: expected something like https://duels.example.org")
    return url.rstrip("/")


def _add_health(app: FastAPI, metrics: Metrics, health: HealthCheck) -> None:
    @app.get("/healthz", response_model=Health, responses=shape(503), tags=["operations"])
    async def healthz() -> Any:
        """Whether the server and its database answer, and the database can be written."""
        trouble = await health.trouble()
        return {"status": "ok", "version": __version__} if trouble is None else problem(503, trouble, RETRY)

    @app.get("/metrics", response_class=Response, responses=shape(401, 429, 503), tags=["operations"])
    def prometheus(service: Here, key: Caller) -> Response:
        """Counters for Prometheus."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        metrics.streams.set(sum(feed.listeners for feed in service.hub.feeds.values()))
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
