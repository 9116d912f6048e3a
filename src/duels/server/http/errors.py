"""How errors become HTTP responses. Every error has the same body: `{"error": {"kind": …, "message": …}}`.

`answer_to` is the only place that maps errors to statuses and messages. The API sends its answers as JSON, and the
pages show them as HTML.
"""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from ...errors import (
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
    shorten,
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
# The first class that matches decides.
STATUSES: tuple[tuple[type[DuelsError], int], ...] = (
    (DeletedStudy, 404),
    (NotFound, 404),
    (CapReached, 403),
    (Conflict, 409),
    (InvalidInput, 400),
    (DamagedStudy, 500),
    (StorageError, 503),
    (PolicyError, 500),
)
EXPECTED = (DuelsError, RequestValidationError, HTTPException)  # all others are bugs
RETRY_SECONDS = 2  # when to try again if the database is unavailable
MAX_MESSAGE = 2000  # characters; a message may quote user input
RESTORE = "Restore the database from a backup, or delete this study. The other studies are not affected"
NAMES_IN_URLS = ("study", "arm")  # an unknown name of these kinds is a 404
# Whoever has a link does not learn the name of the study, nor of an arm that a voter compares.
BEHIND_LINKS = ("/api/vote/", "/vote/", "/api/results/", "/results/", "/output/")
DAMAGED = "this study cannot be read: please tell the person who sent you the link"
GONE = "this is not there any more: ask the person who sent you the link for another one"
# Server errors do not reveal details such as the path of the database. Those are in the log.
HIDDEN = {
    500: "internal error: see the server's log",
    503: "the database is unavailable: try again later. The server's log has the reason",
}


class Refused(DuelsError):
    """A request that the server refuses.

    Args:
        status: The HTTP status.
        message: What was found, what was expected, what to do.
        retry: Seconds until the client may try again, for the header `Retry-After`.
    """

    def __init__(self, status: int, message: str, retry: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry = status, retry


class Answer(NamedTuple):
    """What a client is told about an error."""

    status: int
    message: str
    kind: str = ""  # by default that of the status
    headers: Mapping[str, str] = {}


def error_response(status: int, message: str, kind: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return the JSON response for an error."""
    text = message.encode("utf-8", "backslashreplace").decode()  # a quoted string may hold lone surrogates
    text = text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
    body = {"error": {"kind": kind or KINDS.get(status, "invalid"), "message": text}}
    challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(body, status, {**challenge, **(headers or {})})


def answer_to(request: Request, error: Exception) -> Answer:
    """Map any error to a status and a message, and log the server's own errors."""
    was_deleted = isinstance(error, DeletedStudy) or (isinstance(error, UnknownName) and error.kind == "study")
    if was_deleted and request.url.path.startswith(BEHIND_LINKS):
        return Answer(404, GONE)
    if isinstance(error, DamagedStudy):
        return _reply_damaged(request, error)
    if isinstance(error, DuelsError):
        return _domain_error(error)
    if isinstance(error, RequestValidationError):
        found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
        return Answer(422, "; ".join(found) + ". See /docs for what is expected")
    if isinstance(error, HTTPException):
        return _http_error(request, error)
    return Answer(500, HIDDEN[500])


def respond(request: Request, error: Exception) -> Response:
    """Return the JSON response to any error."""
    return error_response(*answer_to(request, error))


def invalid_body(error: ValidationError) -> RequestValidationError:
    """Convert a failed validation of a body into the error that FastAPI would raise."""
    return RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors()])


def _status_of(error: DuelsError) -> int:
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, UnknownName):
        return 404 if error.kind in NAMES_IN_URLS else 400
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def _domain_error(error: DuelsError) -> Answer:
    status = _status_of(error)
    if status >= 500:
        logger.error("%s", error, exc_info=error if status == 500 else None)
    retry = RETRY_SECONDS if status == 503 else getattr(error, "retry", None)
    headers = {} if retry is None else {"Retry-After": str(retry)}
    return Answer(status, HIDDEN.get(status) or str(error), "", headers)


def _reply_damaged(request: Request, error: DamagedStudy) -> Answer:
    """Trying again would not help."""
    logger.error("%s", error)
    return Answer(500, DAMAGED if request.url.path.startswith(BEHIND_LINKS) else f"{error}. {RESTORE}", "damaged")


def _http_error(request: Request, error: HTTPException) -> Answer:
    messages = {
        404: f"there is nothing at {shorten(request.url.path, 200)}: see /docs for the API",
        405: f"{request.method} is not allowed for {shorten(request.url.path, 200)}: see /docs for the API",
    }
    return Answer(error.status_code, messages.get(error.status_code, str(error.detail)), "", error.headers or {})


def add_error_handlers(app: FastAPI) -> None:
    """Make the application answer every error with `respond`."""

    for kind in (*EXPECTED, Exception):
        app.add_exception_handler(kind, respond)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI lists for these error statuses."""
    from ..api.schemas import Problem

    return {status: {"model": Problem, "description": KINDS[status].replace("_", " ")} for status in statuses}
