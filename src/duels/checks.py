"""Checks of arguments, with errors that name the argument."""

from .errors import InvalidInput


def check_int(what: str, value: object, least: int, most: int | None = None) -> int:
    """Check that a value is a whole number in a range.

    Args:
        what: The argument's name, for the error.
        value: A number of any type, such as `10`, `10.0` or `np.int64(10)`.
        least: The smallest allowed number.
        most: The largest allowed number; by default there is no limit.

    Returns:
        The value as an `int`.

    Raises:
        InvalidInput: If the value is not a whole number or is out of range.
    """
    try:
        number = int(value)  # type: ignore[call-overload]  # any type that converts
        if number != value or isinstance(value, bool):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{what} is {value!r}: expected a whole number") from None
    if number < least or (most is not None and number > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {_round_power(most)}"
        raise InvalidInput(f"{what} is {number}: expected {allowed}")
    return int(number)


def _round_power(number: int) -> str:
    digits = str(number)
    return f"1e{len(digits) - 1}" if len(digits) > 9 and digits.strip("0") == "1" else digits
