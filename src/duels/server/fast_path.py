"""The requests that make up nearly all traffic, answered without the framework.

FastAPI takes longer to route and validate such a request than the study takes to answer it. The fast path calls the
same handlers that document these routes, with the same authentication, validation and errors.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from . import voting
from .api.duels import ask, tell
from .api.interleaving import clicks, interleaved
from .errors import EXPECTED, Refused, invalid_body, respond
from .keys import Key
from .middleware import KEYED
from .schemas import Ask, Clicks, Interleave, MoreVotes, RequestBody, Tell, Vote
from .security import fast_caller
from .service import Service

logger = logging.getLogger("duels.server")
LARGE_AT_ONCE = 4  # of one key
URL = re.compile(r"/api/studies/([^/]{1,200})/(ask|tell|interleave|clicks)|/api/vote/([^/]{1,100})/(ask|tell)")


class Route(NamedTuple):
    """One of the routes; logs and metrics read `path`."""

    path: str
    body: type[RequestBody]
    handle: Callable[..., Awaitable[Any]]


ROUTES = {
    "ask": Route("/api/studies/{study}/ask", Ask, ask),
    "tell": Route("/api/studies/{study}/tell", Tell, tell),
    "interleave": Route("/api/studies/{study}/interleave", Interleave, interleaved),
    "clicks": Route("/api/studies/{study}/clicks", Clicks, clicks),
}


VOTES = {
    "ask": Route("/api/vote/{link}/ask", MoreVotes, voting.ask),
    "tell": Route("/api/vote/{link}/tell", Vote, voting.tell),
}


class FastPath:
    """Answers the requests of `ROUTES` and passes all others on.

    Args:
        app: The next layer, which is FastAPI.
        service: What the handlers need.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self._large = Counter[int]()  # large requests under way, by the key's id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found = URL.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        route = None if found is None else VOTES[found[4]] if found[3] else ROUTES[found[2]]
        if route is not None:
            scope["route"] = route
        request = Request(scope, receive)
        response = None
        with ExitStack() as places:
            try:
                if route is not None and found is not None and found[3]:
                    response = await self._answer_voter(request, found[3], route)
                elif route is not None and found is not None:
                    response = await self._answer(request, found[1], route)
                elif self._is_large(request):  # FastAPI parses a body before it checks the key
                    places.enter_context(self._hold_place(await fast_caller(request)))
            except EXPECTED as error:
                response = respond(request, error)
            except Exception as error:
                logger.exception("%s failed", "a request" if route is None else route.path)
                response = respond(request, error)
            await (self.app if response is None else response)(scope, receive, send)

    def _is_large(self, request: Request) -> bool:
        """Whether a request that needs a key has a body too large to parse for anybody without one."""
        if not request.scope["path"].startswith(KEYED):
            return False
        length = request.headers.get("content-length", "0")
        return int(length) > self.service.limits.anonymous or "transfer-encoding" in request.headers

    @contextmanager
    def _hold_place(self, key: Key | None) -> Iterator[None]:
        """Count a large request of a key until it is answered: its body takes memory, however slowly it arrives."""
        number = 0 if key is None else key.id
        if self._large[number] >= LARGE_AT_ONCE:
            words = f"this token has {LARGE_AT_ONCE} large requests under way: wait for one of them to end"
            raise Refused(429, words, retry=5)
        self._large[number] += 1
        try:
            yield
        finally:
            self._large[number] -= 1

    async def _answer(self, request: Request, study: str, route: Route) -> Response:
        key = await fast_caller(request)
        body = _read(route, await request.body())
        answer = await route.handle(study, body, self.service, key)
        return Response(json.dumps(answer, ensure_ascii=False), media_type="application/json")

    async def _answer_voter(self, request: Request, link: str, route: Route) -> Response:
        voter, content = await voting.remembered_voter(request, link, self.service), await request.body()
        body = _read(route, content) if content or route.body is Vote else None
        answer: Response = await route.handle(voter, body)
        return answer


def _read(route: Route, content: bytes) -> RequestBody:
    try:
        return route.body.model_validate_json(content)
    except ValidationError as error:
        raise invalid_body(error) from None
