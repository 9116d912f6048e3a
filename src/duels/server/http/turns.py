"""How many requests about one study are worked on at the same time: the others wait without a thread."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..computed import ARRIVED
from .errors import Refused, error_response

AT_ONCE = 4  # of the 40 threads that answer requests
WAITING = 200  # further requests that may wait
ABOUT = re.compile(r"(?:/api)?(/studies/[^/]+|/results/[^/]+|/item-output/[^/]+|/studies$|/$)")


class Turns:
    """The turns of requests, by what they are about."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[asyncio.Semaphore, list[int]]] = {}  # with how many have or await a turn

    @asynccontextmanager
    async def turn(self, what: Hashable) -> AsyncIterator[None]:
        """Wait for a turn, and have it while a block runs.

        Raises:
            Refused: If too many wait.
        """
        places, users = self._known.setdefault(what, (asyncio.Semaphore(AT_ONCE), [0]))
        if users[0] >= AT_ONCE + WAITING:
            raise Refused(429, "too many requests about the same wait for their answers: try again later", retry=5)
        users[0] += 1
        try:
            async with places:
                yield
        finally:
            users[0] -= 1
            if not users[0]:
                del self._known[what]


class TakeTurns:
    """Lets requests that read about one study take turns, until their responses begin.

    Requests with a body do not: they would have their turns for as long as it takes to arrive.

    Args:
        app: The next layer.
        turns: Where they wait.
    """

    def __init__(self, app: ASGIApp, turns: Turns) -> None:
        self.app, self.turns = app, turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope["type"] == "http" and scope["method"] == "GET"
        about = ABOUT.match(scope["path"]) if reads else None
        if about is None:
            await self.app(scope, receive, send)
            return
        ARRIVED.set(time.monotonic())
        turn = self.turns.turn(about[1])
        try:
            await turn.__aenter__()
        except Refused as error:
            await error_response(error.status, str(error), headers={"Retry-After": str(error.retry)})(
                scope, receive, send
            )
            return
        has_turn = True

        async def leave() -> None:
            nonlocal has_turn
            if has_turn:
                has_turn = False
                await turn.__aexit__(None, None, None)

        async def send_and_leave(message: Message) -> None:
            await leave()
            await send(message)

        try:
            await self.app(scope, receive, send_and_leave)
        finally:
            await leave()
