"""Names with parameters, written the same everywhere: `rucb`, `rucb:alpha=0.6`, `bradley-terry:arms=16,seed=3`."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from .errors import InvalidInput, UnknownName

Value = bool | int | float | str  # of a parameter
V = TypeVar("V", bound=Value)


def split_spec(spec: str, kind: str) -> tuple[str, dict[str, str]]:
    """Split a spec into its name and its parameters.

    Args:
        spec: Such as `"rucb:alpha=0.6"`. The name may be the path of a Python file.
        kind: What the spec names, for errors.

    Returns:
        The name and the parameters, such as `("rucb", {"alpha": "0.6"})`.

    Raises:
        InvalidInput: If a parameter is malformed or given twice.
    """
    file = re.match(r"(.*?\.py)(?=:[^/]*$|$)", spec)
    start = file.end() if file else 0
    name, colon, rest = spec[start:].partition(":")
    given: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not (equals and key.strip() and value.strip()):
            raise InvalidInput(
                f"{part!r} in {kind} {spec!r} is not a parameter: expected name=value, separated by commas"
            )
        if key.strip() in given:
            raise InvalidInput(f"{kind} {spec!r} sets {key.strip()} twice: keep one of them")
        given[key.strip()] = value.strip()
    return (spec[:start] + name).strip(), given


def fill(owner: str, given: Mapping[str, object], defaults: Mapping[str, V], see: str) -> dict[str, V]:
    """Merge given parameters into the defaults, each converted to the type of its default.

    Args:
        owner: The policy or problem, for errors.
        given: The parameters that were given, as text or as values.
        defaults: All parameters and their defaults.
        see: A command that lists the parameters, for errors.

    Raises:
        UnknownName: If there is no such parameter.
        InvalidInput: If a value cannot be converted.
    """
    filled = dict(defaults)
    for key, value in given.items():
        if key not in defaults:
            raise UnknownName(f"parameter of {owner}", key, defaults, see)
        filled[key] = _of_type(owner, key, value, type(defaults[key]))
    return filled


def join(name: str, values: Mapping[str, Value], defaults: Mapping[str, Value]) -> str:
    """Write a spec; parameters that have their default are left out."""
    changed = [f"{key}={_format_value(value)}" for key, value in values.items() if value != defaults[key]]
    return name + (":" + ",".join(changed) if changed else "")


def _format_value(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _of_type(owner: str, key: str, value: Any, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if kind is int:
            number = int(value) if isinstance(value, str) else value
            if number != int(number):
                raise ValueError
            return int(number)
        if isinstance(value, bool) and kind is float:
            raise ValueError
        return kind(value)
    except (KeyError, OverflowError, TypeError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "text")
        raise InvalidInput(f"{key} of {owner} is {value!r}: expected {wanted}") from None
