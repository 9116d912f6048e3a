"""How many large requests of one key are under way: their bodies take memory, however slowly they arrive."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ..auth import fast_caller
from ..keys import Key
from ..state import Service
from .errors import EXPECTED, Refused, respond
from .middleware import KEYED

LARGE_AT_ONCE = 4  # of one key


class LimitLarge:
    """Checks the key of a large request before its body is read: FastAPI parses the body first.

    Args:
        app: The next layer, which is FastAPI.
        service: Where keys are looked up.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self._large = Counter[int]()  # large requests under way, by the key's id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(KEYED):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        if not self._is_large(request):
            await self.app(scope, receive, send)
            return
        with ExitStack() as places:
            try:
                places.enter_context(self._hold_place(await fast_caller(request)))
            except EXPECTED as error:
                await respond(request, error)(scope, receive, send)
                return
            await self.app(scope, receive, send)

    def _is_large(self, request: Request) -> bool:
        """Whether the body is too large to parse for anybody without a key."""
        length = request.headers.get("content-length", "0")
        return int(length) > self.service.limits.anonymous or "transfer-encoding" in request.headers

    @contextmanager
    def _hold_place(self, key: Key | None) -> Iterator[None]:
        number = 0 if key is None else key.id
        if self._large[number] >= LARGE_AT_ONCE:
            words = f"this token has {LARGE_AT_ONCE} large requests under way: wait for one of them to end"
            raise Refused(429, words, retry=5)
        self._large[number] += 1
        try:
            yield
        finally:
            self._large[number] -= 1
