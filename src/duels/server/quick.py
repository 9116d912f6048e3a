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
from .problems import of_anything, of_duels, of_http, problem
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
        found = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = PATTERNS[found[2]]
        request = Request(scope, receive)
        try:
            response = await self._answer(request, found[1], found[2])
        except DuelsError as error:
            response = of_duels(request, error)
        except HTTPException as error:
            response = of_http(request, error)
        except ValidationError as error:
            said = [f"body.{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
            response = problem(422, "; ".join(said) + ". See /docs for what is expected")
        except Exception as error:
            logger.exception("%s failed", found[2])
            response = of_anything(request, error)
        await response(scope, receive, send)

    async def _answer(self, request: Request, study: str, action: str) -> Response:
        kind, act = ACTIONS[action]
        body = await request.body()
        key = await quick_caller(request)
        content = await act(self.service, key, study, kind.model_validate_json(body))
        return Response(json.dumps(content, ensure_ascii=False), media_type="application/json")
