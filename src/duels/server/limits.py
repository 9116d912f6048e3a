"""How much may be asked of a server: sizes of requests, and how often a voter may act."""

import math
import time
from collections import OrderedDict
from typing import NamedTuple

from .problems import Refused


class Rate(NamedTuple):
    """So many actions a second in the long run, and so many at once."""

    per_second: float
    burst: int


class Limits(NamedTuple):
    """What one server takes."""

    body: int = 1_000_000  # bytes of a request
    upload: int = 32_000_000  # bytes of votes or items
    voter: Rate = Rate(5, 40)  # a vote is a question and an answer
    address: Rate = Rate(100, 400)  # of all voters at one address: an office behind one router
    signin: Rate = Rate(0.2, 10)  # failed attempts at one address


class Rates:
    """Who has acted how often lately: a bucket for each, which fills up again with time."""

    MOST = 100_000  # buckets; the one that was used least lately is forgotten

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()

    def spend(self, who: tuple[str, ...], rate: Rate) -> None:
        """Take one action out of the bucket, or refuse it and say when to come back.

        By the clock that only goes forward: a jump of the other one locks nobody out.
        """
        now = time.monotonic()
        left, since = self._buckets.pop(who, (float(rate.burst), now))
        left = min(float(rate.burst), left + (now - since) * rate.per_second)
        self._buckets[who] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._buckets) > self.MOST:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / rate.per_second))
            raise Refused(429, f"too many requests: try again in {wait} s", retry=wait)
