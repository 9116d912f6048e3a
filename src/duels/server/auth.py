"""Authentication of callers: tokens, sessions, CSRF protection."""

import hmac
from contextlib import AbstractContextManager
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from ..storage.changes import note_change
from ..study.event_study import EventStudy
from .http.errors import Refused
from .http.limits import group_of
from .keys import LINKS, Key, csrf_token, digest_of
from .state import Service

SESSION, VOTER = "duels_session", "duels_ballot"
SESSION_LASTS = 30 * 24 * 3600.0
SAFE = ("GET", "HEAD", "OPTIONS")
NOBODY = Key(0, "admin", "", "", None, None, 0.0, None, None, {})  # the caller where no sign-in is needed

bearer = HTTPBearer(auto_error=False, description="A token from `duels token create NAME` or from the dashboard.")
cookie = APIKeyCookie(name=SESSION, auto_error=False, description="The dashboard's session.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
Cookie = Annotated[str | None, Depends(cookie)]


async def service_of(request: Request) -> Service:  # async, so that FastAPI does not start a thread for it
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(service_of)]


def secret_of(request: Request) -> tuple[str, bool]:
    """Return the secret of a request, and whether it came as a cookie."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip(), False
    return request.cookies.get(SESSION, ""), True


def address_of(request: Request) -> str:
    """Return the client's address as rate limits count it. Behind a trusted proxy it is the visitor's address."""
    return group_of(request.client.host) if request.client else ""


class Attempt:
    """One use of a token, for rate limits: an address that sends many wrong tokens has to wait.

    A token that this address has used before does not count, so programs keep working while a neighbor guesses.
    Session cookies do not count either: they are random and cannot be guessed.
    """

    def __init__(self, request: Request, service: Service, secret: str, by_cookie: bool) -> None:
        address = address_of(request)
        self.rates, self.who = service.rates, ("token", address)
        self.use = ("used", address, digest_of(secret))
        self.counts = not by_cookie and not self.rates.remembers(self.use)
        if self.counts:
            self.rates.spend(self.who, service.limits.token)

    def settle(self, good: bool) -> None:
        """Note whether the token was right."""
        if not good:
            self.rates.forget(self.use)
        elif self.counts:
            self.rates.give_back(self.who)
            self.rates.remember(self.use)


def _authorise(request: Request, key: Key | None, secret: str, by_cookie: bool) -> Key:
    """Return the key if it may be used in this way, and if the request has a CSRF token where it needs one."""
    if key is None or key.kind in LINKS or (key.kind == "session") != by_cookie:
        raise Refused(401, "this needs a valid token: send it as 'Authorization: Bearer TOKEN', or sign in")
    if by_cookie and request.method not in SAFE:
        sent = request.headers.get("x-csrf-token", "")
        if not hmac.compare_digest(sent.encode(), csrf_token(secret).encode()):
            raise Refused(403, "the page's CSRF token is missing or old: reload the page")
    return key


def caller(request: Request, service: ServiceDep, token: Bearer, session: Cookie) -> Key:
    """Return the key of the caller; refuse callers without a valid key."""
    if service.open_to_all:
        return _open(request)
    secret, by_cookie = secret_of(request)
    attempt = Attempt(request, service, secret, by_cookie)
    key = service.key(secret) if secret else None
    attempt.settle(key is not None)
    return _authorise(request, key, secret, by_cookie)


async def fast_caller(request: Request) -> Key | None:
    """Like `caller`, from the cache: for routes whose write checks the key again in its transaction."""
    service: Service = request.app.state.service
    if service.open_to_all:
        _open(request)
        return None
    secret, by_cookie = secret_of(request)
    attempt = Attempt(request, service, secret, by_cookie)
    key = await service.get_key(secret) if secret else None
    attempt.settle(key is not None)
    return _authorise(request, key, secret, by_cookie)


async def fast_dependency(request: Request, token: Bearer, session: Cookie) -> Key | None:
    """`fast_caller` as a dependency, with the parameters that the API documentation shows."""
    return await fast_caller(request)


def _open(request: Request) -> Key:
    """Refuse requests that pages of other sites make. Browsers send the header `Sec-Fetch-Site`."""
    if request.method not in SAFE:
        came_from = request.headers.get("sec-fetch-site", "none")
        if came_from not in ("none", "same-origin"):
            raise Refused(403, f"this request comes from another site ({came_from}) and is refused")
    return NOBODY


def admin(key: Annotated[Key, Depends(caller)]) -> Key:
    """Return the key of the caller; refuse callers who are not admins."""
    if key.kind == "api":
        raise Refused(403, "this needs an admin's token; yours is for the API only")
    return key


Caller = Annotated[Key, Depends(caller)]
FastCaller = Annotated[Key | None, Depends(fast_dependency)]
Admin = Annotated[Key, Depends(admin)]


def record_change(
    study: EventStudy | None, key: Key, what: str, of_server: str | None = None
) -> AbstractContextManager[None]:
    """Note a change of a study, with who made it; see `storage.changes`.

    Args:
        study: The study; None for a change of the server.
        key: The caller's.
        what: What the change is, as a sentence. Names of voters do not belong there.
        of_server: What the list of the server says, if the change belongs there too.
    """
    who = key.name if key is not NOBODY else "somebody on this computer"
    return note_change(None if study is None else study._log.id, who, what, of_server)
