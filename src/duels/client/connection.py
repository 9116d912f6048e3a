"""The connection to a server: requests, what is repeated when they fail, and the stream of changes.

Nothing must count twice, so a failed request is repeated only if that is safe, see `Again`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

from ..errors import Conflict, DamagedStudy, DuelsError, InvalidInput, StorageError, UnknownName

if TYPE_CHECKING:
    import httpx2

PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0)  # seconds before each repetition of a request; then it has failed
LONGEST = 10.0  # seconds that a server may ask to wait
IDLE = 3.0  # seconds that an idle connection is kept: less than the server's 5
SILENCE = 60.0  # seconds of silence after which a stream is considered broken; a server sends something every 15
TAKEN = "it may have arrived, so look before you send it again"
Row = TypeVar("Row", bound=tuple[Any, ...])
Json = Any  # what a response says


class Again(IntEnum):
    """When a request may be repeated. Each includes those before it."""

    UNSENT = 0  # if it did not reach a server, or was refused by a rate limit
    REFUSED = 1  # and if the server's database failed: at worst, an `ask` leaves a duel open until its lease ends
    ALWAYS = 2  # and if the connection broke: for reads, and for writes that have no further effect the second time


class Change(NamedTuple):
    """The state of a study after a change.

    Attributes:
        seq: The number of its last event.
        answers: How many answers count.
        open: How many duels have no answer.
        retired: Whether it was retired.
    """

    seq: int
    answers: int
    open: int
    retired: bool


KINDS: dict[str, Callable[[str], DuelsError]] = {"conflict": Conflict, "not_found": UnknownName.from_message}
KINDS |= {"storage": StorageError, "too_many": DuelsError, "internal": DuelsError, "damaged": DamagedStudy}
ADVICE = {
    "unauthorized": ". In Python: duels.connect(url, token); make one with `duels token create NAME`",
    "forbidden": ". Make one with `duels token create NAME --kind admin`",
}


class Connection:
    """A connection to a server."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        import httpx2  # takes a tenth of a second

        if not re.fullmatch(r"https?://[^\s/?#@\\]+/?", str(url)):  # not shown: it may contain a secret
            raise InvalidInput("url is not a server's: expected such as https://duels.example.org, without a path")
        if token is not None and not re.fullmatch(r"[!-~]+", str(token)):
            raise InvalidInput("the token has characters that no token has: copy it again, without blanks")
        self.url, self._httpx = url.rstrip("/"), httpx2
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        limits = httpx2.Limits(max_connections=100, keepalive_expiry=IDLE)
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=timeout, limits=limits)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _send(
        self,
        method: str,
        path: str,
        body: object = None,
        again: Again = Again.ALWAYS,
        *,
        query: Mapping[str, str | float] | None = None,
    ) -> "httpx2.Response":
        """The server's response, if it is successful. Bytes are sent as JSON Lines, everything else as JSON."""
        kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        content = body if body is None or isinstance(body, bytes) else as_json(body)
        headers = {} if body is None else {"Content-Type": kind}
        request = self._http.build_request(method, path, content=content, params=dict(query or {}), headers=headers)
        pauses = iter(PAUSES)
        while True:
            result = self._try(request, again)
            if not isinstance(result, _Failure):
                return result
            pause = next(pauses, None)
            if pause is None or result.wait is None:
                raise result.error
            sleep(max(pause, result.wait))

    def _try(self, request: "httpx2.Request", again: Again) -> "httpx2.Response | _Failure":
        httpx = self._httpx
        try:
            response = self._http.send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return _Failure(StorageError(f"there is no server at {self.url} ({error}): is it running?"), 0.0)
        except httpx.TimeoutException:  # not repeated: the caller has waited long enough to decide
            words = f"the server at {self.url} did not answer in time: see `timeout`; {TAKEN}"
            return _Failure(StorageError(words), None)
        except httpx.TransportError as error:
            words = f"the connection to {self.url} broke ({error}): {TAKEN}"
            return _Failure(StorageError(words), 0.0 if again == Again.ALWAYS else None)
        if response.is_success:
            return response
        least = {429: Again.UNSENT, 503: Again.REFUSED, 502: Again.ALWAYS, 504: Again.ALWAYS}.get(response.status_code)
        asked = response.headers.get("retry-after", "")
        wait = min(float(asked), LONGEST) if asked.isdecimal() else 0.0
        return _Failure(_error_of(response, self.url), None if least is None or again < least else wait)

    def _changes(self, path: str) -> Iterator[Change]:
        """The states of a stream's study, until the study is deleted; a stream that breaks is opened again."""
        seen, failed = -1, 0
        while True:
            try:
                for kind, data in self._messages(path):
                    if kind == "deleted":
                        return
                    if kind == "change" and (change := row_of(Change, json.loads(data))).seq != seen:
                        seen, failed = change.seq, 0
                        yield change
            except StorageError:
                if failed >= len(PAUSES):
                    raise
            sleep(PAUSES[min(failed, len(PAUSES) - 1)])
            failed += 1

    def _messages(self, path: str) -> Iterator[tuple[str, str]]:
        """Kind and data of each message from the server, until the connection ends."""
        url, kind = self.url, ""
        try:
            with self._http.stream("GET", path, timeout=SILENCE) as response:
                if not response.is_success:
                    response.read()
                    raise _error_of(response, url)
                for line in response.iter_lines():
                    field, _, value = line.partition(": ")
                    if field == "data":
                        yield kind, value
                    kind = value if field == "event" else kind
        except self._httpx.TransportError as error:
            raise StorageError(f"the stream from {url} broke: {error}") from None


class _Failure(NamedTuple):
    """Why a request failed, and how many seconds to wait before it is repeated; None if it must not be."""

    error: DuelsError
    wait: float | None


def _error_of(response: "httpx2.Response", url: str) -> DuelsError:
    """The error that a local study would raise."""
    try:
        error = response.json()["error"]
        kind, message = str(error["kind"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return StorageError(f"{url} answered {response.status_code}, but not as Duels does: is it a Duels server?")
    return KINDS.get(kind, InvalidInput)(message + ADVICE.get(kind, ""))


def quote_path(name: str) -> str:
    if name in ("", ".", ".."):  # it would be part of another address
        raise InvalidInput(f"{name!r} cannot be used here: expected another name, or see the server's own pages")
    return quote(str(name), safe="", errors="replace")


def as_json(value: object) -> bytes:
    """As JSON, including numpy's arrays and numbers; any collection becomes a list."""
    try:
        return json.dumps(value, default=lambda one: one.tolist() if hasattr(one, "tolist") else list(one)).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be sent: {error}") from None


def row_of(kind: type[Row], values: Mapping[str, Json]) -> Row:
    """The NamedTuple of that kind; fields that only a newer server has are left out."""
    return kind(**{name: values[name] for name in kind._fields if name in values})  # type: ignore[attr-defined]
