"""Checks of arguments, with errors that name the argument."""

from typing import Any

from .errors import InvalidInput


def check_int(what: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number in a span, whatever type it comes in; an error that names it otherwise."""
    try:
        number = int(value)
        if number != value or isinstance(value, bool):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{what} is {value!r}: expected a whole number") from None
    if number < least or (most is not None and number > most):
        span = f"at least {least}" if most is None else f"from {least} to {_round_power(most)}"
        raise InvalidInput(f"{what} is {number}: expected {span}")
    return number


def _round_power(number: int) -> str:
    digits = str(number)
    return f"1e{len(digits) - 1}" if len(digits) > 9 and digits.strip("0") == "1" else digits
