"""HTTP on a connection, by uvicorn, with what it leaves open: how large headers may be, and how slowly things may come.

A request that is there in one piece, as nearly all are, costs no timer.
"""

import asyncio
import ipaddress
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from .errors import problem
from .limits import Limits

AGAIN = 0.1  # seconds in which what has arrived while the process was busy is read, before a connection is too slow
FRAMES = 8  # bytes around each byte of a body: five for those who send it in pieces of one byte


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, config: Any, *more: Any, **known: Any) -> None:
        super().__init__(config, *more, **known)
        self.limits: Limits = config.app.service.limits
        self.messages = 0  # requests that have begun
        self.in_head, self.in_body = False, False  # what is awaited of the request that is being read
        self.since = 0.0  # when that was first awaited
        self.body_size = 0  # bytes of the body so far
        self.arriving = 0  # bytes that are being parsed
        self.extra = 0  # bytes that came besides it: headers, the frames of pieces, trailers
        self.ended = False  # nothing more is read
        self.refusal: tuple[int, str] | None = None
        self.slow: asyncio.TimerHandle | None = None
        self.stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.client is not None:
            self.client = (_unmapped(self.client[0]), self.client[1])
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
        if self.messages != messages and not (self.in_head or self.in_body):  # whole requests, as nearly always
            self._unset_slow()
            return
        if self.messages - messages + was_reading <= 1:  # else a part of the data belongs to the request before
            new = self.body_size - body_size if was_reading else self.body_size
            self.extra = max(0, self.extra + len(data) - new - FRAMES * new)
            if self.extra > self.limits.head:
                self._refuse(431, self._too_large())
                return
        if not self._is_awaiting():
            self._unset_slow()
        elif self.slow is None:
            self._await_more()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.messages += 1
        self.in_head, self.in_body, self.body_size, self.extra = True, False, 0, 0
        if self.slow is not None:
            self.since = self.loop.time()

    def on_headers_complete(self) -> None:
        if len(self.headers) > self.limits.headers or self._head_size() > self.limits.head:
            self.refusal = (431, self._too_large())
            raise ValueError  # ends the parser, which asks for a response: see below
        self.in_head, self.in_body, self.extra = False, True, 0
        if self.slow is not None:
            self.since = self.loop.time()
        super().on_headers_complete()
        self.headers = []  # trailers are read, and not taken for headers

    def _head_size(self) -> int:
        if self.extra + self.arriving <= self.limits.head:
            return 0  # or more: it is not too large
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
        """uvicorn asks for it after what is not HTTP."""
        status, message = self.refusal or (400, "this is not a valid HTTP request")
        self._refuse(status, message)

    def _refuse(self, status: int, message: str) -> None:
        """Say so and end the connection: after the answers to earlier requests, silently if this one's has begun."""
        cycle, in_body = self.cycle, self.in_body
        is_open = cycle is not None and not cycle.response_complete
        self.in_head, self.in_body, self.ended = False, False, True
        if is_open and not in_body:
            cycle.keep_alive = False
            return
        if not is_open or not (cycle.response_started or self.pipeline):
            response = problem(status, message)
            lines = [STATUS_LINE[status], *(b"%s: %s\r\n" % pair for pair in response.raw_headers)]
            self.transport.write(b"".join([*lines, b"connection: close\r\n\r\n", bytes(response.body)]))
        if is_open:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    # Slowness

    def _is_awaiting(self) -> bool:
        """Whether it is the other side's turn: it must send a request, or the rest of one."""
        return self.in_head or self.in_body or self.cycle is None or self.cycle.response_complete

    def _await_more(self) -> None:
        self.since = self.loop.time()
        self.slow = self.loop.call_at(self._deadline(), self._look)

    def _unset_slow(self) -> None:
        if self.slow is not None:
            self.slow.cancel()
            self.slow = None

    def _deadline(self) -> float:
        """When what is awaited must be there."""
        if not self.in_body:
            return self.since + self.limits.head_seconds
        if self.cycle.response_complete:
            return self.since + self.limits.linger_seconds
        return self.since + self.limits.body_seconds + self.body_size / self.limits.body_rate

    def _look(self) -> None:
        if not self._is_awaiting():
            self.slow = None
        elif self.flow.read_paused:  # it is the server that does not read
            self._await_more()
        elif self.loop.time() < self._deadline():
            self.slow = self.loop.call_at(self._deadline(), self._look)
        else:
            self.slow = self.loop.call_later(AGAIN, self._end)

    def _end(self) -> None:
        self.slow = None
        if not self._is_awaiting() or self.flow.read_paused or self.loop.time() < self._deadline():
            self._look()
        elif self.in_head or (self.in_body and not self.cycle.response_complete):
            self._refuse(408, "the request came too slowly: it was not taken")
        else:  # it has sent nothing, or was answered
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.in_body and not self.transport.is_closing():  # refused before all of it was read
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


def _unmapped(host: str) -> str:
    """An IPv4 address that an IPv6 socket shows as one of IPv6."""
    if not host.startswith("::ffff:"):
        return host
    return str(ipaddress.IPv6Address(host).ipv4_mapped or host)
