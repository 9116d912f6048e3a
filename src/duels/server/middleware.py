"""What every request passes through: host, size, headers, metrics, and a line in the log."""

import logging
import time
import uuid
from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException

from ..errors import cut
from .errors import problem
from .limits import Limits

logger = logging.getLogger("duels.server.access")
KEYED = ("/api/studies", "/api/tokens")  # how addresses begin that need a key; what all others take is small
UPLOADS = ("/import", "/items")  # how those of them end that take files
FRAMING = (b"host", b"content-length", b"transfer-encoding")
DIGITS = 18  # of a Content-Length
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # addresses hold voting links
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]


class Metrics:
    """What `/metrics` says."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kinds = ("method", "route", "status")
        self.requests = Counter("duels_requests", "Requests answered.", kinds, registry=self.registry)
        self.seconds = Histogram(
            "duels_request_seconds",
            "Seconds from a request to the end of its answer, streams excluded.",
            ("route",),
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
        )
        self.streams = Gauge("duels_streams", "Open streams.", registry=self.registry)
        self.under_way = Gauge("duels_requests_under_way", "Requests not yet answered.", registry=self.registry)


class Gate:
    """The outermost layer; plain ASGI, since every vote passes through it."""

    def __init__(self, app: Any, limits: Limits, metrics: Metrics, hosts: Collection[str], secure: bool) -> None:
        self.app, self.limits, self.metrics, self.hosts = app, limits, metrics, hosts
        self.headers = [*HEADERS]
        if secure:
            self.headers.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, number = time.perf_counter(), 500, uuid.uuid4().hex[:16]
        method = scope["method"]
        inner = scope if method != "HEAD" else scope | {"method": "GET"}

        async def sending(message: Any) -> None:
            nonlocal status
            is_start = message["type"] == "http.response.start"
            if is_start:
                status = message["status"]
                self._dress(message, number)
            if method != "HEAD":
                await send(message)
            elif is_start:  # the headers of GET, and at once the end: a stream would have none
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        self.metrics.under_way.inc()
        try:
            refused = self._refused(scope)
            if refused is not None:
                await refused(inner, receive, sending)
            else:
                await self.app(inner, self._counted(inner, receive), sending)
        finally:
            self.metrics.under_way.dec()
            self._note(inner, method, status, time.perf_counter() - started, number)

    def _refused(self, scope: Any) -> Any:
        """The answer to a request that is not even looked at."""
        sent: dict[bytes, list[bytes]] = {name: [] for name in FRAMING}
        for name, value in scope["headers"]:
            if name in sent:
                sent[name].append(value)
        hosts, lengths, encodings = sent.values()
        if len(hosts) > 1 or (not hosts and scope.get("http_version") == "1.1"):
            return problem(400, f"the request has {len(hosts)} Host headers: expected one")
        host = hosts[0].decode("latin-1").lower() if hosts else ""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if self.hosts and name not in self.hosts:
            return problem(400, f"this server is not {cut(name, 100)}: see the option --public-url")
        if len(lengths) > 1 or (lengths and encodings):  # where the body ends must not be a matter of opinion
            return problem(400, "the request says the length of its body in two ways: expected one Content-Length")
        if lengths and not (lengths[0].isdigit() and len(lengths[0]) <= DIGITS):
            return problem(400, f"Content-Length is {cut(lengths[0].decode('latin-1'))}: expected a whole number")
        if lengths and int(lengths[0]) > self._most(scope):
            return problem(413, self._too_large(scope))
        return None

    def _most(self, scope: Any) -> int:
        """How many bytes a body may have, by its address alone: nothing is read of one that is larger."""
        if not scope["path"].startswith(KEYED):
            return min(self.limits.form, self.limits.body)
        return self.limits.upload if scope["path"].endswith(UPLOADS) else self.limits.body

    def _too_large(self, scope: Any) -> str:
        return f"the request is too large: expected at most {self._most(scope):,} bytes"

    def _counted(self, scope: Any, receive: Any) -> Any:
        """The request's body, cut off where it is longer than it may be, whatever it said of its length."""
        taken, most = 0, self._most(scope)
        whole = scope["method"] in ("GET", "HEAD")

        async def receiving() -> Any:
            nonlocal taken, whole
            message = await receive()
            if message["type"] == "http.disconnect" and not whole:
                raise HTTPException(400, "the request ended before its body did")
            whole = whole or not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, self._too_large(scope))
            return message

        return receiving

    def _dress(self, message: Any, number: str) -> None:
        names = {name.lower() for name, _ in message["headers"]}
        added = [*self.headers, (b"x-request-id", number.encode())]
        if b"content-security-policy" not in names:
            added += [(b"content-security-policy", POLICY.encode()), (b"x-frame-options", b"DENY")]
        message["headers"] = [*message["headers"], *added]

    def _note(self, scope: Any, method: str, status: int, seconds: float, number: str) -> None:
        """By the route's pattern, never by the address: addresses hold secrets."""
        route = getattr(scope.get("route"), "path", "none")
        self.metrics.requests.labels(method, route, status).inc()
        if not route.endswith("/stream"):
            self.metrics.seconds.labels(route).observe(seconds)
        if logger.isEnabledFor(logging.INFO):
            said = {"method": method, "route": route, "status": status, "request": number}
            logger.info("request", extra={"fields": said | {"ms": round(seconds * 1000, 2)}})
