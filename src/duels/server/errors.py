"""One shape for everything that goes wrong: `{"error": {"kind": …, "message": …}}`."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from ..errors import (
    CapReached,
    Conflict,
    DamagedStudy,
    DeletedStudy,
    DuelsError,
    InvalidInput,
    NotFound,
    PolicyError,
    StorageError,
    UnknownName,
    cut,
)

logger = logging.getLogger("duels.server")
KINDS = {
    400: "invalid",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "invalid",
    422: "invalid",
    429: "too_many",
    431: "too_large",
    500: "internal",
    503: "storage",
}
RETRY = 2  # seconds after which to try again when the database cannot be used
MOST = 2000  # characters of a message: what somebody sent may be quoted in it
RESTORE = "Restore the database from a back-up, or delete this study; the other studies are not affected"
ELSEWHERE = ("study", "arm")  # unknown names that stand in an address
# What a fault of the server says to whoever asks: details, such as where the database is, are in the log only.
HIDDEN = {
    500: "something went wrong here that should not: it is in the server's log",
    503: "the database cannot be used at the moment: try again later. The server's log says why",
}


class Refused(DuelsError):
    """A request that is not served, with its HTTP status."""

    def __init__(self, status: int, message: str, retry: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry = status, retry


def problem(status: int, message: str, retry: int | None = None, kind: str = "") -> Response:
    said = message.encode("utf-8", "backslashreplace").decode()  # what it quotes may be half a character
    said = said if len(said) <= MOST else f"{said[:MOST]}…"
    body = {"error": {"kind": kind or KINDS.get(status, "invalid"), "message": said}}
    headers = {} if retry is None else {"Retry-After": str(retry)}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body, status, headers)


def status_of(error: DuelsError) -> int:
    """The HTTP status that says what an error of ours means."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, DeletedStudy | NotFound) or (isinstance(error, UnknownName) and error.kind in ELSEWHERE):
        return 404
    if isinstance(error, CapReached):
        return 403
    known = ((Conflict, 409), (InvalidInput, 400), (DamagedStudy, 500), (StorageError, 503), (PolicyError, 500))
    for kind, status in known:
        if isinstance(error, kind):
            return status
    return 500


def message_of(error: DuelsError) -> str:
    """What an error of ours says to whoever asks."""
    return HIDDEN.get(status_of(error)) or str(error)


def of_damaged(request: Request, error: DamagedStudy) -> Response:
    """One study cannot be read; trying again would not help. Voters are not told what it is called."""
    logger.error("%s", error)
    words = f"{error}. {RESTORE}"
    if request.url.path.startswith(("/api/vote/", "/vote/")):
        words = "this study cannot be read: tell whoever sent you the link"
    return problem(500, words, kind="damaged")


def of_duels(request: Request, error: Exception) -> Response:
    assert isinstance(error, DuelsError)
    if isinstance(error, DamagedStudy):
        return of_damaged(request, error)
    status = status_of(error)
    if status >= 500:
        logger.error("%s", error, exc_info=error if status == 500 else None)
    retry = getattr(error, "retry", None)
    return problem(status, message_of(error), RETRY if status == 503 else retry)


def of_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    said = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
    return problem(422, "; ".join(said) + ". See /docs for what is expected")


def of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {
        404: f"there is nothing at {cut(request.url.path, 200)}: see /docs for the API",
        405: f"{request.method} is not for {cut(request.url.path, 200)}: see /docs for the API",
    }
    response = problem(error.status_code, words.get(error.status_code, str(error.detail)))
    response.headers.update(error.headers or {})
    return response


def of_anything(request: Request, error: Exception) -> Response:
    return problem(500, HIDDEN[500])


def explain(app: FastAPI) -> None:
    """Every error of the application in the one shape."""
    app.add_exception_handler(DuelsError, of_duels)
    app.add_exception_handler(RequestValidationError, of_request)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, of_anything)


def shape(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of these statuses."""
    from .schemas import Problem

    return {status: {"model": Problem, "description": KINDS[status].replace("_", " ")} for status in statuses}
