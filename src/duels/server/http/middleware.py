"""The outermost layer of the application: checks of host and size, headers, metrics and the access log."""

import logging
import time
import uuid
from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import shorten
from .errors import error_response
from .limits import Limits

logger = logging.getLogger("duels.server.access")
KEYED = ("/api/studies", "/api/tokens")  # paths that need a key; bodies for all other paths are small
UPLOADS = ("/import", "/items")  # suffixes of the paths that take files
FRAMING = (b"host", b"content-length", b"transfer-encoding")
MAX_DIGITS = 18  # of a Content-Length
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # URLs contain voting links
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]


class Metrics:
    """The counters of `/metrics`."""

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


class Middleware:
    """The outermost layer. It is plain ASGI for speed, since every vote passes through it.

    Args:
        app: The next layer.
        limits: Sizes of bodies.
        metrics: Where requests are counted.
        hosts: Allowed names in the header `Host`; empty for any.
        secure: Whether people use HTTPS; adds `Strict-Transport-Security`.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, hosts: Collection[str], secure: bool) -> None:
        self.app, self.limits, self.metrics, self.hosts = app, limits, metrics, hosts
        self.headers = [*HEADERS]
        if secure:
            self.headers.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, number = time.perf_counter(), 500, uuid.uuid4().hex[:16]
        method = scope["method"]
        inner = scope if method != "HEAD" else {**scope, "method": "GET"}

        async def send_checked(message: Message) -> None:
            nonlocal status
            is_start = message["type"] == "http.response.start"
            if is_start:
                status = message["status"]
                self._add_headers(message, number)
            if method != "HEAD":
                await send(message)
            elif is_start:  # the headers of GET and an empty body, also for a stream that would never end
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        self.metrics.under_way.inc()
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(inner, receive, send_checked)
            else:
                await self.app(inner, self._limit_body(inner, receive), send_checked)
        finally:
            self.metrics.under_way.dec()
            self._log(inner, method, status, time.perf_counter() - started, number)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return an error if the framing of the request or its host is not acceptable."""
        sent: dict[bytes, list[bytes]] = {name: [] for name in FRAMING}
        for name, value in scope["headers"]:
            if name in sent:
                sent[name].append(value)
        hosts, lengths, encodings = sent.values()
        if len(hosts) > 1 or (not hosts and scope.get("http_version") == "1.1"):
            return error_response(400, f"the request has {len(hosts)} Host headers: expected one")
        host = hosts[0].decode("latin-1").lower() if hosts else ""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if self.hosts and name not in self.hosts:
            return error_response(
                400, f"unexpected Host header {shorten(name, 100)}: set --public-url to the address people use"
            )
        if len(lengths) > 1 or (lengths and encodings):  # ambiguous framing allows request smuggling
            return error_response(400, "the request gives the length of its body twice: expected one Content-Length")
        if lengths and not (lengths[0].isdigit() and len(lengths[0]) <= MAX_DIGITS):
            return error_response(
                400, f"Content-Length is {shorten(lengths[0].decode('latin-1'))}: expected a whole number"
            )
        if lengths and int(lengths[0]) > self._max_body(scope):
            return error_response(413, self._too_large(scope))
        return None

    def _max_body(self, scope: Scope) -> int:
        """Return the largest allowed body in bytes. It depends on the path only, so larger ones are never read."""
        if not scope["path"].startswith(KEYED):
            return min(self.limits.form, self.limits.body)
        path, _, last = scope["path"].rpartition("/")
        takes_files = scope["path"].endswith(UPLOADS) or (path.endswith("/items") and last.isdecimal())
        return self.limits.upload if takes_files else self.limits.body

    def _too_large(self, scope: Scope) -> str:
        return f"the request is too large: expected at most {self._max_body(scope):,} bytes"

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        """Wrap `receive` so that it raises when the body is too large, whatever its Content-Length."""
        size, most = 0, self._max_body(scope)
        complete = scope["method"] in ("GET", "HEAD")

        async def receive_counted() -> Message:
            nonlocal size, complete
            message = await receive()
            if message["type"] == "http.disconnect" and not complete:
                raise HTTPException(400, "the connection closed before the end of the body")
            complete = complete or not message.get("more_body", False)
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, self._too_large(scope))
            return message

        return receive_counted

    def _add_headers(self, message: Message, number: str) -> None:
        names = {name.lower() for name, _ in message["headers"]}
        added = [*self.headers, (b"x-request-id", number.encode())]
        if b"content-security-policy" not in names:
            added += [(b"content-security-policy", POLICY.encode()), (b"x-frame-options", b"DENY")]
        message["headers"] = [*message["headers"], *added]

    def _log(self, scope: Scope, method: str, status: int, seconds: float, number: str) -> None:
        """Count and log a request by the pattern of its route. The path itself may contain a secret."""
        route = getattr(scope.get("route"), "path", "none")
        self.metrics.requests.labels(method, route, status).inc()
        if not route.endswith("/stream"):
            self.metrics.seconds.labels(route).observe(seconds)
        if logger.isEnabledFor(logging.INFO):
            fields = {"method": method, "route": route, "status": status, "request": number}
            logger.info("request", extra={"fields": fields | {"ms": round(seconds * 1000, 2)}})
