"""Spaces in files: TOML or JSON, one entry per parameter."""

import json
import os
import tomllib
from pathlib import Path

from ..errors import InvalidInput
from .spaces import Space, space

MOST_BYTES = 1_000_000


def read_space(path: str | os.PathLike[str]) -> Space:
    """Read a space from a TOML or JSON file.

    Each parameter is an entry: a range as `[low, high]` or `[low, high, words]`, where the words are `log`, `int` and
    `float`; choices as a list of texts; or either as a table with `low`, `high`, `log` and `int`, or with `choices`.

    Args:
        path: The file; its suffix is .toml or .json.

    Raises:
        InvalidInput: If it cannot be read, or a parameter is wrong; the message names the parameter.

    Example:
        >>> _ = open("space.toml", "w").write('temperature = [0.0, 1.5]\\nstyle = ["terse", "warm"]\\n')
        >>> read_space("space.toml").names
        ('temperature', 'style')
    """
    file = Path(path)
    if file.suffix.lower() not in (".toml", ".json"):
        raise InvalidInput(f"{file} is not a space: expected a .toml or .json file")
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InvalidInput(f"{file} has more than {MOST_BYTES:,} bytes: expected a file of parameters")
        text = content.decode("utf-8")
        found = tomllib.loads(text) if file.suffix.lower() == ".toml" else json.loads(text)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:  # of the text, or of either format
        raise InvalidInput(f"{file} cannot be read: {error}") from None
    try:
        return plain_space(found)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_space(text: str) -> Space:
    """Return the space of a TOML text, see `read_space`.

    Raises:
        InvalidInput: If it is not TOML, or a parameter is wrong.
    """
    try:
        return plain_space(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            f'the parameters cannot be read: {error}; expected lines such as gap = [4, 40, "int"] and font = ["serif", '
            '"sans-serif"]; a name with a blank is in quotes, as in "line height" = [1.0, 2.0]'
        ) from None


def plain_space(found: object) -> Space:
    """Return the space of plain data, such as that of a JSON file, see `read_space`.

    Raises:
        InvalidInput: If a parameter is wrong.
    """
    return space({name: _read_given(one) for name, one in found.items()} if isinstance(found, dict) else found)  # type: ignore[arg-type]


def _read_given(one: object) -> object:
    """What `space` expects: files have no tuples, so that a list that begins with two numbers is a range."""
    if isinstance(one, list) and len(one) in (2, 3) and all(type(end) in (int, float) for end in one[:2]):
        return tuple(one) if len(one) == 2 or isinstance(one[2], str) else one
    return one
