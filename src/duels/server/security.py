"""Who is asking, and whether they may."""

import hmac
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer

from .errors import Refused
from .keys import Key, csrf_token, digest_of
from .limits import group_of
from .service import Service

SESSION, VOTER = "duels_session", "duels_ballot"
SESSION_LASTS = 30 * 24 * 3600.0
SAFE = ("GET", "HEAD", "OPTIONS")
NOBODY = Key(0, "admin", "", "", None, None, 0.0, None, None, {})  # where no sign-in is needed

bearer = HTTPBearer(auto_error=False, description="A token: `duels token create NAME`, or the tokens of the dashboard.")
cookie = APIKeyCookie(name=SESSION, auto_error=False, description="The dashboard's session.")
Bearer = Annotated[Any, Depends(bearer)]
Cookie = Annotated[str | None, Depends(cookie)]


async def service_of(request: Request) -> Service:  # not in a thread: it is nothing to wait for
    return request.app.state.service


Here = Annotated[Service, Depends(service_of)]


def secret_of(request: Request) -> tuple[str, bool]:
    """The secret that came with a request, and whether the browser added it by itself."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip(), False
    return request.cookies.get(SESSION, ""), True


def address_of(request: Request) -> str:
    """Where a request comes from, as limits count it. Behind a proxy that is trusted it is the visitor's, not its own:
    see `--trusted-proxy`."""
    return group_of(request.client.host) if request.client else ""


class Attempt:
    """A token that came with a request. An address that sends many wrong ones has to wait before more are compared.

    A token that this address has used before does not count, so that programs go on while a neighbour guesses. Nor do
    sessions, which are random: nobody guesses them.
    """

    def __init__(self, request: Request, service: Service, secret: str, by_cookie: bool) -> None:
        address = address_of(request)
        self.rates, self.who = service.rates, ("token", address)
        self.use = ("used", address, digest_of(secret))
        self.counts = not by_cookie and not self.rates.remembers(self.use)
        if self.counts:
            self.rates.spend(self.who, service.limits.token)

    def settle(self, good: bool) -> None:
        if not good:
            self.rates.forget(self.use)
        elif self.counts:
            self.rates.give_back(self.who)
            self.rates.remember(self.use)


def _may(request: Request, key: Key | None, secret: str, by_cookie: bool) -> Key:
    if key is None or key.kind == "vote" or (key.kind == "session") != by_cookie:
        raise Refused(401, "a token is needed that is in force: send it as 'Authorization: Bearer TOKEN', or sign in")
    if by_cookie and request.method not in SAFE:
        sent = request.headers.get("x-csrf-token", "")
        if not hmac.compare_digest(sent.encode(), csrf_token(secret).encode()):
            raise Refused(403, "the page's CSRF token is missing or old: reload the page")
    return key


def caller(request: Request, service: Here, token: Bearer, session: Cookie) -> Key:
    """Who is asking; refuses those without a key that is in force at this moment."""
    if service.open_to_all:
        return _open(request)
    secret, by_cookie = secret_of(request)
    attempt = Attempt(request, service, secret, by_cookie)
    key = service.key(secret) if secret else None
    attempt.settle(key is not None)
    return _may(request, key, secret, by_cookie)


async def quick_caller(request: Request) -> Key | None:
    """As `caller`, from memory: for routes whose write checks the key again in its transaction."""
    service: Service = request.app.state.service
    if service.open_to_all:
        return _open(request) and None
    secret, by_cookie = secret_of(request)
    attempt = Attempt(request, service, secret, by_cookie)
    key = await service.key_soon(secret) if secret else None
    attempt.settle(key is not None)
    return _may(request, key, secret, by_cookie)


async def quick_route(request: Request, token: Bearer, session: Cookie) -> Key | None:
    """`quick_caller` as a route's dependency, with what the documentation says of it."""
    return await quick_caller(request)


def _open(request: Request) -> Key:
    """Without sign-in a page of another site must still be kept from acting: browsers say where a request is from."""
    if request.method not in SAFE:
        came_from = request.headers.get("sec-fetch-site", "none")
        if came_from not in ("none", "same-origin"):
            raise Refused(403, f"this request comes from another site ({came_from}): it is not taken")
    return NOBODY


def admin(key: Annotated[Key, Depends(caller)]) -> Key:
    """Who is asking; refuses those who may not manage keys and delete studies."""
    if key.kind == "api":
        raise Refused(403, "this takes an admin's token, and yours is for the API only")
    return key


Caller = Annotated[Key, Depends(caller)]
QuickCaller = Annotated[Key | None, Depends(quick_route)]
Admin = Annotated[Key, Depends(admin)]
