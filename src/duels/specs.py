"""Names with parameters, written the same everywhere: `rucb`, `rucb:alpha=0.6`, `bradley-terry:arms=16,seed=3`."""

import re
from collections.abc import Mapping
from typing import Any

from .errors import InvalidInput, UnknownName


def split(spec: str, kind: str) -> tuple[str, dict[str, str]]:
    """`"rucb:alpha=0.6"` as `("rucb", {"alpha": "0.6"})`; a path such as `./mine.py` may stand for the name."""
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


def fill(owner: str, given: Mapping[str, Any], defaults: Mapping[str, Any], see: str) -> dict[str, Any]:
    """The defaults with the given values in their place, each of its default's type."""
    filled = dict(defaults)
    for key, value in given.items():
        if key not in defaults:
            raise UnknownName(f"parameter of {owner}", key, defaults, see)
        filled[key] = _of_type(owner, key, value, type(defaults[key]))
    return filled


def join(name: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The shortest spec: parameters at their defaults are left out."""
    changed = [f"{key}={_shown(value)}" for key, value in values.items() if value != defaults[key]]
    return name + (":" + ",".join(changed) if changed else "")


def _shown(value: Any) -> str:
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
