"""Limits of a server: sizes of requests, timeouts, and rates."""

import ipaddress
import math
import re
import threading
import time
from collections import OrderedDict
from functools import lru_cache
from typing import NamedTuple

from .errors import Refused


class Rate(NamedTuple):
    """A sustained rate, and the number of actions allowed at once."""

    per_second: float
    burst: int


class Limits(NamedTuple):
    """The limits of one server. Limits per address count a /64 network of IPv6 as one address, see `group_of`."""

    body: int = 1_000_000  # bytes of a request
    upload: int = 32_000_000  # bytes of votes or items
    form: int = 16_000  # bytes of a request that needs no key: signing in, voting
    anonymous: int = 16_000  # bytes of a request that are parsed before its key is checked
    head: int = 32_000  # bytes of the request line and headers
    headers: int = 100
    head_seconds: float = 10.0  # until the headers must have arrived
    body_seconds: float = 20.0  # until the body must have arrived, plus the time that its size takes at `body_rate`
    body_rate: int = 20_000  # bytes per second
    linger_seconds: float = 5.0  # to read the rest of a body after it was refused
    stuck_seconds: float = 60.0  # without progress while the client does not read the response
    voter: Rate = Rate(5, 40)  # a vote is two requests
    address: Rate = Rate(100, 400)  # all voters at one address, such as an office behind one router
    new_voters: Rate = Rate(1, 100)  # of one link, at one address: a lecture hall may share one
    signin: Rate = Rate(0.2, 10)  # failed attempts from one address
    token: Rate = Rate(1, 100)  # requests with wrong tokens from one address


@lru_cache(4096)
def group_of(address: str) -> str:
    """Return what limits count as one address: an IPv4 address, or a /64 network of IPv6, which one customer has.

    Text that is not an address, which a proxy may send, is returned unchanged.
    """
    bracketed, port = (
        re.match(r"\[([^]]*)\]", address),
        re.fullmatch(r"([\d.]+):\d+", address),
    )  # some proxies write it like this
    address = bracketed[1] if bracketed else port[1] if port else address
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


class Rates:
    """Rate limits: one token bucket per client and kind of action."""

    MOST = 100_000  # buckets; the least recently used one is dropped

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def spend(self, who: tuple[str, ...], rate: Rate, found: str = "too many requests") -> None:
        """Count one action.

        It uses the monotonic clock, so a jump of the system clock locks nobody out.

        Raises:
            Refused: With status 429 if the bucket is empty.
        """
        with self._lock:
            now = time.monotonic()
            left, since = self._buckets.pop(who, (float(rate.burst), now))
            left = min(float(rate.burst), left + (now - since) * rate.per_second)
            self._buckets[who] = (max(left - 1, 0.0) if left >= 1 else left, now)
            if len(self._buckets) > self.MOST:
                self._buckets.popitem(last=False)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / rate.per_second))
            raise Refused(429, f"{found}: try again in {wait} s", retry=wait)

    def remember(self, what: tuple[str, ...]) -> None:
        """Remember an event for as long as there is room."""
        with self._lock:
            self._buckets[what] = (0.0, 0.0)

    def remembers(self, what: tuple[str, ...]) -> bool:
        """Return whether an event is remembered."""
        return what in self._buckets

    def forget(self, what: tuple[str, ...]) -> None:
        """Forget an event."""
        with self._lock:
            self._buckets.pop(what, None)

    def give_back(self, who: tuple[str, ...]) -> None:
        """Return an action to the bucket, after an attempt that succeeded."""
        with self._lock:
            if who in self._buckets:
                left, since = self._buckets[who]
                self._buckets[who] = (left + 1, since)  # `spend` caps it at the burst
