"""The requests that make up nearly all traffic: plain Starlette routes in front of FastAPI.

They call the handlers that document these routes in FastAPI, with the same authentication, validation and errors.
Through FastAPI's own routes the server answers 38 % fewer votes per second (`benchmarks/server.py`).
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from .api.duels import ask, tell
from .api.interleaving import clicks, interleave
from .api.schemas import Ask, Clicks, Interleave, MoreVotes, RequestBody, Tell, Vote
from .auth import fast_caller
from .http.errors import EXPECTED, invalid_body, respond
from .pages import vote
from .state import Service

Endpoint = Callable[[Request], Awaitable[Response]]
Body = TypeVar("Body", bound=RequestBody)


class FastRoutes:
    """Answers the requests of its routes and passes all others on.

    Args:
        app: The next layer.
        service: What the handlers need.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        endpoints = {
            "/api/studies/{study}/ask": _answer_program(service, Ask, ask),
            "/api/studies/{study}/tell": _answer_program(service, Tell, tell),
            "/api/studies/{study}/interleave": _answer_program(service, Interleave, interleave),
            "/api/studies/{study}/clicks": _answer_program(service, Clicks, clicks),
            "/api/vote/{link}/ask": _answer_voter(service, MoreVotes, vote.ask),
            "/api/vote/{link}/tell": _answer_voter(service, Vote, vote.tell),
        }
        routes = [Route(path, endpoint, methods=["POST"]) for path, endpoint in endpoints.items()]
        router = Router(routes, redirect_slashes=False, default=app)
        # Starlette's own layers, with async handlers, as it would start a thread for others.
        self.app, self.fast = (
            app,
            ServerErrorMiddleware(ExceptionMiddleware(router, dict.fromkeys(EXPECTED, _respond)), handler=_respond),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"  # else it is FastAPI's start or end
        await (self.fast if is_http else self.app)(scope, receive, send)


async def _respond(request: Request, error: Exception) -> Response:
    return respond(request, error)


def _answer_program(service: Service, body: type[Body], handle: Callable[..., Awaitable[Any]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        key = await fast_caller(request)
        sent = _read(body, await request.body())
        answer = await handle(request.path_params["study"], sent, service, key)
        return Response(json.dumps(answer, ensure_ascii=False), media_type="application/json")

    return endpoint


def _answer_voter(service: Service, body: type[Body], handle: Callable[..., Awaitable[Response]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        voter = await vote.find_remembered_voter(request, request.path_params["link"], service)
        content = await request.body()
        return await handle(voter, _read(body, content) if content or body is Vote else None)

    return endpoint


def _read(body: type[Body], content: bytes) -> Body:
    try:
        return body.model_validate_json(content)
    except ValidationError as error:
        raise invalid_body(error) from None
