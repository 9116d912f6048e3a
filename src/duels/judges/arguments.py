"""Checks of arguments that several judges take."""

import math
from typing import TypeGuard

from ..errors import InvalidInput, shorten


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number, at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def check_timeout(timeout: object) -> float:
    """Check that a time limit is a positive number of seconds.

    Raises:
        InvalidInput: If it is not.
    """
    if not is_number(timeout) or timeout == 0:
        raise InvalidInput(f"timeout is {shorten(timeout)}: expected a positive number of seconds")
    return float(timeout)


def check_criteria(criteria: object) -> str | None:
    """Check that criteria are text, or None.

    Raises:
        InvalidInput: If they are empty, or something else.
    """
    if criteria is None or (isinstance(criteria, str) and criteria.strip()):
        return criteria
    raise InvalidInput(f"criteria is {shorten(criteria)}: expected text, such as 'The shorter answer is better.'")
