"""How much may be asked of a server: sizes of requests, how slowly they may come, and how often somebody may act."""

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
    """So many actions a second in the long run, and so many at once."""

    per_second: float
    burst: int


class Limits(NamedTuple):
    """What one server takes. What is said of an address holds for a whole /64 network of IPv6, see `group_of`."""

    body: int = 1_000_000  # bytes of a request
    upload: int = 32_000_000  # bytes of votes or items
    form: int = 4_000  # bytes of what anybody may send without a key: signing in, voting
    anonymous: int = 16_000  # bytes of a request that are parsed before its key is known
    head: int = 32_000  # bytes of a request's first line and headers
    headers: int = 100
    head_seconds: float = 10.0  # until the headers of a request are there
    body_seconds: float = 20.0  # until its body is there, and longer for as long as it comes at the rate
    body_rate: int = 4_000  # bytes a second
    linger_seconds: float = 5.0  # that the rest of a body is read for after it was refused
    stuck_seconds: float = 60.0  # without any progress of an answer that nobody reads
    voter: Rate = Rate(5, 40)  # a vote is a question and an answer
    address: Rate = Rate(100, 400)  # of all voters at one address: an office behind one router
    signin: Rate = Rate(0.2, 10)  # failed attempts at one address
    token: Rate = Rate(1, 100)  # requests with wrong tokens at one address


@lru_cache(4096)
def group_of(address: str) -> str:
    """Whom the limits of an address count together: an IPv4 address, or a /64 network of IPv6, which is one customer's.

    What is not an address, as a proxy may say, is taken as it is.
    """
    bracketed, port = re.match(r"\[([^]]*)\]", address), re.fullmatch(r"([\d.]+):\d+", address)  # as some proxies say
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
    """Who has acted how often lately: a bucket for each, which fills up again with time."""

    MOST = 100_000  # buckets; the one that was used least lately is forgotten

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def spend(self, who: tuple[str, ...], rate: Rate) -> None:
        """Take one action out of the bucket, or refuse it and say when to come back.

        By the clock that only goes forward: a jump of the other one locks nobody out.
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
            raise Refused(429, f"too many requests: try again in {wait} s", retry=wait)

    def remember(self, what: tuple[str, ...]) -> None:
        """Something that happened, for as long as there is room."""
        with self._lock:
            self._buckets[what] = (0.0, 0.0)

    def remembers(self, what: tuple[str, ...]) -> bool:
        return what in self._buckets

    def forget(self, what: tuple[str, ...]) -> None:
        with self._lock:
            self._buckets.pop(what, None)

    def give_back(self, who: tuple[str, ...]) -> None:
        """What was spent on an attempt that turned out well."""
        with self._lock:
            if who in self._buckets:
                left, since = self._buckets[who]
                self._buckets[who] = (left + 1, since)  # `spend` never lets it grow beyond the burst
