"""uvicorn's HTTP protocol with limits that it lacks: the size of headers, and timeouts for slow clients.

A request that arrives in one piece, as nearly all do, sets no timer.

The alternatives without a subclass of a class that is not public leave the server open (uvicorn 0.54, Granian 2.8).
Plain uvicorn never ends slow headers, bodies and readers, takes a header of 44 MB, and 20 connections that pipeline
requests cost it 1.2 GB in ten seconds. Granian limits headers, but it keeps a connection whose body stops, or whose
client does not read, for good.
"""

import asyncio
import ipaddress
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from .errors import error_response
from .limits import Limits

GRACE = 0.1  # seconds to read what arrived while the process was busy, before a connection counts as too slow
WAITING = 16  # requests that may wait behind the one that is being answered; browsers and libraries send none
FRAMING = 8  # allowed bytes of framing per byte of a chunked body; chunks of one byte need five


class Protocol(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, config: Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.limits: Limits = config.app.service.limits  # type: ignore[union-attr]
        self.messages = 0  # requests that have started
        self.in_head, self.in_body = False, False  # which part of the current request is incomplete
        self.since = 0.0  # when the wait for that part began
        self.body_size = 0  # bytes of the body so far
        self.arriving = 0  # bytes of the data that is being parsed
        self.extra = 0  # bytes other than the body: headers, chunk framing, trailers
        self.ended = False  # whether to ignore further data
        self.refusal: tuple[int, str] | None = None
        self.slow: asyncio.TimerHandle | None = None
        self.stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            self.client = (_unmap_address(self.client[0]), self.client[1])
        self._await_more()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_slow()
        self._unset_stuck()

    # Sizes

    def data_received(self, data: bytes) -> None:
        if self.ended:
            return
        self.arriving = len(data)
        messages, was_reading, body_size = self.messages, self.in_head or self.in_body, self.body_size
        super().data_received(data)
        if self.ended or self.transport.is_closing():
            self._unset_slow()
            return
        if self.messages != messages and not (self.in_head or self.in_body):  # complete requests, as nearly always
            self._unset_slow()
            return
        if self.messages - messages + was_reading <= 1:  # else part of the data belongs to the previous request
            new = self.body_size - body_size if was_reading else self.body_size
            self.extra = max(0, self.extra + len(data) - new - FRAMING * new)
            if self.extra > self.limits.head:
                self._refuse(431, self._too_large())
                return
        if not self._is_awaiting():
            self._unset_slow()
        elif self.slow is None:
            self._await_more()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if len(self.pipeline) >= WAITING:
            self.refusal = (429, f"more than {WAITING} requests wait for their responses: read those first")
            raise ValueError  # stops the parser; uvicorn then calls `send_400_response`
        self.messages += 1
        self.in_head, self.in_body, self.body_size, self.extra = True, False, 0, 0
        if self.slow is not None:
            self.since = self.loop.time()

    def on_headers_complete(self) -> None:
        if len(self.headers) > self.limits.headers or self._head_size() > self.limits.head:
            self.refusal = (431, self._too_large())
            raise ValueError  # stops the parser; uvicorn then calls `send_400_response`
        self.in_head, self.in_body, self.extra = False, True, 0
        if self.slow is not None:
            self.since = self.loop.time()
        super().on_headers_complete()
        self.headers = []  # trailers are read, but not treated as headers

    def _head_size(self) -> int:
        if self.extra + self.arriving <= self.limits.head:
            return 0  # small enough; the exact size does not matter
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        self.body_size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.in_body = False
        super().on_message_complete()

    def _too_large(self) -> str:
        return f"the headers are too large: expected at most {self.limits.headers} of {self.limits.head:,} bytes in all"

    def send_400_response(self, msg: str) -> None:
        """Answer data that is not HTTP; uvicorn calls this."""
        status, message = self.refusal or (400, "this is not a valid HTTP request")
        self._refuse(status, message)

    def _refuse(self, status: int, message: str) -> None:
        """Send an error after the responses to earlier requests, and close; if this response has begun, only close."""
        cycle, in_body = self.cycle, self.in_body
        is_open = cycle is not None and not cycle.response_complete
        self.in_head, self.in_body, self.ended = False, False, True
        if is_open and not in_body:
            cycle.keep_alive = False
            return
        if not is_open or not (cycle.response_started or self.pipeline):
            response = error_response(status, message)
            lines = [STATUS_LINE[status], *(b"%s: %s\r\n" % pair for pair in response.raw_headers)]
            self.transport.write(b"".join([*lines, b"connection: close\r\n\r\n", bytes(response.body)]))
        if is_open:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    # Slowness

    def _is_awaiting(self) -> bool:
        """Whether the client has to send a request or the rest of one."""
        return self.in_head or self.in_body or self.cycle is None or self.cycle.response_complete

    def _await_more(self) -> None:
        self.since = self.loop.time()
        self.slow = self.loop.call_at(self._deadline(), self._look)

    def _unset_slow(self) -> None:
        if self.slow is not None:
            self.slow.cancel()
            self.slow = None

    def _deadline(self) -> float:
        """Return the time at which the missing part must have arrived."""
        if not self.in_body:
            return self.since + self.limits.head_seconds
        if self.cycle.response_complete:
            return self.since + self.limits.linger_seconds
        return self.since + self.limits.body_seconds + self.body_size / self.limits.body_rate

    def _look(self) -> None:
        if not self._is_awaiting():
            self.slow = None
        elif self.flow.read_paused:  # the server itself has paused reading
            self._await_more()
        elif self.loop.time() < self._deadline():
            self.slow = self.loop.call_at(self._deadline(), self._look)
        else:
            self.slow = self.loop.call_later(GRACE, self._end)

    def _end(self) -> None:
        self.slow = None
        if not self._is_awaiting() or self.flow.read_paused or self.loop.time() < self._deadline():
            self._look()
        elif self.in_head or (self.in_body and not self.cycle.response_complete):
            self._refuse(408, "the request arrived too slowly and was dropped")
        else:  # it has sent nothing, or has its response
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline:  # uvicorn would read on after each response, and parse all that has arrived
            self.flow.pause_reading()
        if self.in_body and not self.transport.is_closing():  # refused before the end of its body
            self._unset_slow()
            self._await_more()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.stuck is None:
            self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unset_stuck()

    def _unset_stuck(self) -> None:
        if self.stuck is not None:
            self.stuck.cancel()
            self.stuck = None

    def _await_reader(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self.stuck = self.loop.call_later(self.limits.stuck_seconds, self._look_at_reader, waiting)

    def _look_at_reader(self, waiting: int) -> None:
        if self.transport.get_write_buffer_size() >= waiting:
            self.transport.abort()
        else:
            self._await_reader()


def _unmap_address(host: str) -> str:
    """Return the IPv4 address of an IPv4-mapped IPv6 address, and any other address unchanged."""
    if not host.startswith("::ffff:"):
        return host
    return str(ipaddress.IPv6Address(host).ipv4_mapped or host)
