"""The requests that come by the thousand, past the framework: it takes longer over each than the answer does."""

import json
import logging
import re
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..errors import DuelsError
from .api.duels import asked, told
from .api.interleaving import clicked, shown
from .errors import of_anything, of_duels, of_http, problem
from .middleware import KEYED
from .schemas import Ask, Clicks, Interleave, Tell
from .security import quick_caller
from .service import Service

logger = logging.getLogger("duels.server")
ADDRESS = re.compile(r"/api/studies/([^/]{1,200})/(ask|tell|interleave|clicks)")
ACTIONS: dict[str, tuple[Any, Any]] = {
    "ask": (Ask, asked),
    "tell": (Tell, told),
    "interleave": (Interleave, shown),
    "clicks": (Clicks, clicked),
}


class Pattern(NamedTuple):
    """A route, as logs and metrics name it."""

    path: str


PATTERNS = {name: Pattern(f"/api/studies/{{study}}/{name}") for name in ACTIONS}


class Quick:
    """Answers its requests by the same functions as the routes that document them; all others go on."""

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found = ADDRESS.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        if found is not None:
            scope["route"] = PATTERNS[found[2]]
        request = Request(scope, receive)
        response = None
        try:
            if found is not None:
                response = await self._answer(request, found[1], found[2])
            elif self._is_large(request):
                await quick_caller(request)  # the framework parses a body before it looks for a key
        except DuelsError as error:
            response = of_duels(request, error)
        except HTTPException as error:
            response = of_http(request, error)
        except ValidationError as error:
            said = [f"body.{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
            response = problem(422, "; ".join(said) + ". See /docs for what is expected")
        except Exception as error:
            logger.exception("%s failed", "a request" if found is None else found[2])
            response = of_anything(request, error)
        await (self.app if response is None else response)(scope, receive, send)

    def _is_large(self, request: Request) -> bool:
        """Whether a request for those with a key may have more to parse than anybody is allowed."""
        if not request.scope["path"].startswith(KEYED):
            return False
        length = request.headers.get("content-length", "0")
        return int(length) > self.service.limits.anonymous or "transfer-encoding" in request.headers

    async def _answer(self, request: Request, study: str, action: str) -> Response:
        kind, act = ACTIONS[action]
        key = await quick_caller(request)
        body = await request.body()
        content = await act(self.service, key, study, kind.model_validate_json(body))
        return Response(json.dumps(content, ensure_ascii=False), media_type="application/json")
