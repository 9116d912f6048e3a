"""How many calls a run may still make, so that its limits are never exceeded."""

import math
import threading
from typing import Literal, NamedTuple

from ..checks import check_int
from ..errors import InvalidInput
from .ledger import Ledger


class Limits(NamedTuple):
    """How much a study may spend, over all its runs."""

    calls: int | None
    cost: float | None


def check_limits(max_calls: object, max_cost: object) -> Limits:
    """Return the limits of a run.

    Raises:
        InvalidInput: If one of them is not a positive number.
    """
    calls = None if max_calls is None else check_int("max_calls", max_calls, 1)
    if max_cost is not None and (
        isinstance(max_cost, bool) or not isinstance(max_cost, int | float) or not 0 < max_cost < math.inf
    ):
        raise InvalidInput(f"max_cost is {max_cost!r}: expected a positive number")
    return Limits(calls, max_cost)


class Budget:
    """The calls that a run may still make.

    The ledger has the calls that the log says were begun. Two kinds are not there yet: those of questions that are just
    being asked, which the thread of the database reserves, and further calls of questions in flight, which the event
    loop claims when a call has failed, or its reply has no usable answer.

    Args:
        limits: What the study may spend.
        ledger: What it has spent.
    """

    def __init__(self, limits: Limits, ledger: Ledger) -> None:
        self.limits, self._ledger = limits, ledger
        self._lock = threading.Lock()
        self._claimed = self._released = 0  # further calls, counted by the event loop and by the database's thread
        self._reserved = 0

    def limit_of(self, calls: int) -> Literal["max_calls", "max_cost"] | None:
        """Return the limit that so many calls more would exceed; None if there is none."""
        needed = self._count_begun() + calls
        by_calls, by_cost = self._most_calls()
        return "max_calls" if needed > by_calls else "max_cost" if needed > by_cost else None

    def reserve(self, most: int, orders: int) -> int:
        """Reserve the calls of up to so many questions, instead of those before; returns how many may be asked.

        Args:
            most: How many questions are wanted.
            orders: How many calls each takes.
        """
        with self._lock:
            allowed = int(min(most, (min(self._most_calls()) - self._count_begun()) / orders))
            self._reserved = allowed * orders
        return allowed

    def settle(self) -> None:
        """The ledger has what was reserved."""
        self._reserved = 0

    def claim(self) -> bool:
        """Claim a further call for a question in flight; returns whether the limits allow it."""
        with self._lock:
            if self._count_begun() + self._reserved >= min(self._most_calls()):
                return False
            self._claimed += 1
        return True

    def unclaim(self) -> None:
        """A further call that was claimed is not made."""
        with self._lock:
            self._claimed -= 1

    def release(self, calls: int) -> None:
        """The ledger has so many of the calls that were claimed."""
        self._released += calls

    def _count_begun(self) -> int:
        return self._ledger.calls + self._claimed - self._released

    def _most_calls(self) -> tuple[float, float]:
        """How many calls the study may make by either limit; lost calls cost as much as others."""
        calls = math.inf if self.limits.calls is None else self.limits.calls
        return calls, math.inf if self.limits.cost is None else self._ledger.calls_in(self.limits.cost)
