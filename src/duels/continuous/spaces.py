"""Parameter spaces: named numbers and choices, and their place in the unit cube.

A *setting* is a dict with a value for each parameter. The model works on the unit cube, which has one coordinate per
parameter: a number lies where it is between its bounds, on a logarithmic scale if it has one; whole numbers and choices
are at the middle of equal parts of the side.

Spaces in files: TOML or JSON, one entry per parameter.
"""

import json
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import check_int
from ..errors import InvalidInput, UnknownName, format_count, shorten

MOST_PARAMETERS, MOST_CHOICES, LONGEST_NAME = 50, 100, 100
MOST_WHOLE = 2**53  # whole numbers up to here are exact as floats
DIGITS = 6  # of a float setting, relative to its range: 0.731204, not 0.7312041385…
WORDS = ("log", "int", "float")
FIELDS = ("low", "high", "log", "int", "choices")
CONDITIONS = ("if", "when", "condition", "conditions", "only_if", "depends_on", "parent", "requires")
Choice = str | bool | int | float
Setting = dict[str, Any]  # a value for each parameter, by name


@dataclass(frozen=True)
class Number:
    """A parameter with a range of numbers.

    Attributes:
        low: The smallest value.
        high: The largest value.
        log: Whether it varies on a logarithmic scale.
        int: Whether only whole numbers are allowed.
    """

    low: float
    high: float
    log: bool = False
    int: bool = False

    def encode(self, value: float) -> float:
        """Return the coordinate of a value, in [0, 1]."""
        low, high = self._ends()
        return min(max((self._scale(value) - low) / (high - low), 0.0), 1.0)

    def decode(self, coordinate: float) -> float:
        """Return the value at a coordinate, whole or rounded to six digits of the range."""
        low, high = self._ends()
        at = low + coordinate * (high - low)
        value = math.exp(at) if self.log else at
        if self.int:
            return min(max(round(value), round(self.low)), round(self.high))
        places = DIGITS - 1 - math.floor(math.log10(value if self.log else self.high - self.low))
        return min(max(round(value, places), self.low), self.high)

    def check(self, name: str, value: object) -> float:
        """Return a value as a number of this parameter, or raise if it is not one."""
        if self.int:
            return check_int(name, value, round(self.low), round(self.high))
        number = as_number(name, value)
        if not self.low <= number <= self.high:
            raise InvalidInput(f"{name} is {number:g}: expected a number from {self.low:g} to {self.high:g}")
        return number

    def snap(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the nearest coordinates that a value has: those of whole numbers, for a whole number."""
        if not self.int:
            return coordinates
        low, high = self._ends()
        at = low + coordinates * (high - low)
        values = np.clip(np.rint(np.exp(at) if self.log else at), self.low, self.high)
        return ((np.log(values) if self.log else values) - low) / (high - low)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as plain data."""
        bounds = (
            {"low": round(self.low), "high": round(self.high)} if self.int else {"low": self.low, "high": self.high}
        )
        return bounds | ({"log": True} if self.log else {}) | ({"int": True} if self.int else {})

    def _ends(self) -> tuple[float, float]:
        half = 0.5 if self.int else 0.0  # the first and the last whole number have parts as large as the others'
        return self._scale(self.low - half), self._scale(self.high + half)

    def _scale(self, value: float) -> float:
        return math.log(value) if self.log else value


@dataclass(frozen=True)
class Category:
    """A parameter with choices that have no order.

    Attributes:
        choices: The choices: texts, numbers or truth values.
    """

    choices: tuple[Choice, ...]

    def encode(self, value: Choice) -> float:
        """Return the coordinate of a choice, in [0, 1]."""
        return (self.choices.index(value) + 0.5) / len(self.choices)

    def decode(self, coordinate: float) -> Choice:
        """Return the choice whose part of [0, 1] the coordinate is in."""
        return self.choices[min(max(int(coordinate * len(self.choices)), 0), len(self.choices) - 1)]

    def check(self, name: str, value: object) -> Choice:
        """Return a value if it is one of the choices, or raise."""
        for choice in self.choices:
            if type(choice) is type(value) and choice == value:
                return choice
        raise UnknownName(f"choice of {name}", value, map(str, self.choices))

    def snap(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the middle of the part that each coordinate is in."""
        count = len(self.choices)
        place: np.ndarray = (np.clip(np.floor(coordinates * count), 0, count - 1) + 0.5) / count
        return place

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as plain data."""
        return {"choices": list(self.choices)}


@dataclass(frozen=True, init=False)
class Space:
    """Named parameters that are to be tuned. Equal spaces have the same parameters in the same order.

    Args:
        parameters: For each name a range or a list of choices. A range is `(low, high)`, or `(low, high, words)` with
            the words `log`, `int` or `float`: `(1, 100, "log int")`. Choices are a list of texts. As plain data, for
            example from a TOML file, a range is `{"low": 1, "high": 100, "log": True, "int": True}`, and choices are
            `{"choices": ["terse", "warm"]}`, where they may be numbers too. A space is copied.

    Attributes:
        parameters: The parameters by name.

    Raises:
        InvalidInput: If a range or a list of choices cannot be used. Conditions between parameters are not supported.

    Example:
        >>> Space({"temperature": (0.0, 1.5), "top_k": (1, 100, "log int"), "style": ["terse", "warm"]}).names
        ('temperature', 'top_k', 'style')
    """

    parameters: dict[str, Number | Category]

    def __init__(self, parameters: "Mapping[str, object] | Space") -> None:
        found = parameters.parameters if isinstance(parameters, Space) else _read_parameters(parameters)
        object.__setattr__(self, "parameters", found)

    def __len__(self) -> int:
        return len(self.parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and list(self.parameters.items()) == list(other.parameters.items())

    def __hash__(self) -> int:
        return hash(tuple(self.parameters.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.parameters)

    @property
    def category(self) -> np.ndarray:
        """(d,) 1 for each parameter that is a category, 0 for numbers."""
        return np.array([isinstance(one, Category) for one in self.parameters.values()], np.int64)

    def check(self, setting: object) -> Setting:
        """Check a setting.

        Args:
            setting: A value for each parameter, by name.

        Returns:
            The setting with plain Python values, in the order of the space.

        Raises:
            InvalidInput: If a parameter is missing or unknown, or a value is not allowed.
        """
        if not isinstance(setting, Mapping):
            raise InvalidInput(
                f"{shorten(setting)} is not a setting: expected a value for each of {', '.join(self.names)}"
            )
        for name in setting:
            if name not in self.parameters:
                raise UnknownName("parameter", name, self.names)
        missing = [name for name in self.names if name not in setting]
        if missing:
            raise InvalidInput(f"the setting {shorten(dict(setting))} has no {missing[0]}: expected all parameters")
        return {name: one.check(name, setting[name]) for name, one in self.parameters.items()}

    def encode(self, setting: Mapping[str, object]) -> np.ndarray:
        """Return the point of a setting in the unit cube, (d,).

        Raises:
            InvalidInput: If it is not a setting of this space.
        """
        checked = self.check(setting)
        return np.array([one.encode(checked[name]) for name, one in self.parameters.items()])

    def decode(self, point: Sequence[float] | np.ndarray) -> Setting:
        """Return the setting at a point of the unit cube; whole numbers and choices are the nearest ones.

        Raises:
            InvalidInput: If it is not a point of the cube.
        """
        at = np.asarray(point, float)
        if at.shape != (len(self),) or not np.all((at >= 0) & (at <= 1)):
            raise InvalidInput(f"{shorten(point)} is not a point of the cube: expected {len(self)} numbers from 0 to 1")
        return {name: one.decode(float(u)) for (name, one), u in zip(self.parameters.items(), at)}

    def snap(self, points: np.ndarray) -> np.ndarray:
        """Return the nearest points that are those of settings; only whole numbers and choices move.

        Args:
            points: (q, d) points of the unit cube.
        """
        columns = [one.snap(points[:, k]) for k, one in enumerate(self.parameters.values())]
        return np.ascontiguousarray(np.stack(columns, axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain data for JSON or TOML, which `Space` reads."""
        return {name: one.to_dict() for name, one in self.parameters.items()}

    def __repr__(self) -> str:
        return f"Space({self.to_dict()})"


def _read_parameters(parameters: Mapping[str, object]) -> dict[str, Number | Category]:
    if not isinstance(parameters, Mapping) or not parameters:
        raise InvalidInput(
            f"{shorten(parameters)} is not a space: expected a range or choices for each name, such as "
            "{'temperature': (0.0, 1.5), 'style': ['terse', 'warm']}"
        )
    if len(parameters) > MOST_PARAMETERS:
        raise InvalidInput(f"the space has {len(parameters)} parameters: expected at most {MOST_PARAMETERS}")
    return {_name(name): _parameter(name, given) for name, given in parameters.items()}


def as_number(what: str, value: object) -> float:
    """Return a value as a finite float; raise if it is not a number."""
    number = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        number = float(value) if -1e308 < value < 1e308 else math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"{what} is {shorten(value)}: expected a finite number")
    return number


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidInput(
            f"a parameter is called {shorten(name)}: expected a name of 1 to {LONGEST_NAME} printable characters"
        )
    return name


def _parameter(name: str, given: object) -> Number | Category:
    if isinstance(given, Number | Category):
        given = given.to_dict()
    if isinstance(given, Mapping):
        return _from_data(name, given)
    if isinstance(given, tuple):
        return _range(name, given)
    if isinstance(given, list):
        if not all(isinstance(choice, str | bool) for choice in given):
            raise InvalidInput(
                f"{name} is {shorten(given)}: a list has choices, which are texts, or true and false. A range is (low, "
                "high) in Python and [low, high] in files; choices that are numbers are given by {'choices': […]}"
            )
        return _category(name, given)
    raise InvalidInput(f"{name} is {shorten(given)}: expected a range, from low to high, or a list of choices")


def _from_data(name: str, given: Mapping[str, object]) -> Number | Category:
    for key in given:
        if key in CONDITIONS:
            raise InvalidInput(
                f"{name} has {key!r}: conditions between parameters are not supported. Leave it out: every setting has "
                "all parameters, also where one has no effect"
            )
        if key not in FIELDS:
            raise UnknownName(f"field of {name}", key, FIELDS)
    if "choices" in given:
        if len(given) > 1:
            raise InvalidInput(f"{name} has choices and {', '.join(set(given) - {'choices'})}: expected choices alone")
        return _category(name, given["choices"])
    if not {"low", "high"} <= given.keys():
        raise InvalidInput(f"{name} is {shorten(dict(given))}: expected low and high, or choices")
    for key in ("log", "int"):
        if not isinstance(given.get(key, False), bool):
            raise InvalidInput(f"{key} of {name} is {shorten(given[key])}: expected true or false")
    return _number(name, given["low"], given["high"], given.get("log") is True, given.get("int") is True)


def _range(name: str, given: tuple[object, ...]) -> Number:
    if len(given) not in (2, 3) or (len(given) == 3 and not isinstance(given[2], str)):
        raise InvalidInput(
            f"{name} is {shorten(given)}: expected (low, high) or (low, high, words), as in (1, 9, 'log int')"
        )
    low, high = given[:2]
    words = str(given[2]).split() if len(given) == 3 else []
    for word in words:
        if word not in WORDS:
            raise UnknownName(f"word for {name}", word, WORDS)
    if {"int", "float"} <= set(words):
        raise InvalidInput(f"{name} is both int and float: keep one of them")
    found = _number(name, low, high, "log" in words, "int" in words)
    whole = all(isinstance(end, int | np.integer) and not isinstance(end, bool) for end in (low, high))
    if whole and not {"int", "float"} & set(words):
        also = "log " if "log" in words else ""
        raise InvalidInput(
            f"{name} goes from {low} to {high}: are these whole numbers only? End it with '{also}int' if they are, "
            f"with '{also}float' if not"
        )
    return found


def _number(name: str, low: object, high: object, log: bool, whole: bool) -> Number:
    ends: tuple[float, float]
    named = f"the lower bound of {name}", f"the upper bound of {name}"
    if whole:
        ends = (check_int(named[0], low, -MOST_WHOLE, MOST_WHOLE), check_int(named[1], high, -MOST_WHOLE, MOST_WHOLE))
    else:
        ends = as_number(named[0], low), as_number(named[1], high)
    if not ends[0] < ends[1]:
        raise InvalidInput(f"{name} has the bounds {ends[0]:g} and {ends[1]:g}: expected the first to be smaller")
    if not math.isfinite(ends[1] - ends[0]):
        raise InvalidInput(f"{name} has the bounds {ends[0]:g} and {ends[1]:g}: that range is too wide")
    if not whole and ends[1] - ends[0] < 1e-9 * max(abs(ends[0]), abs(ends[1])):
        raise InvalidInput(f"{name} has the bounds {ends[0]!r} and {ends[1]!r}: that range is too narrow")
    if log and ends[0] <= 0:
        raise InvalidInput(f"{name} is logarithmic and begins at {ends[0]:g}: expected a lower bound above 0")
    return Number(float(ends[0]), float(ends[1]), log, whole)


def _category(name: str, choices: object) -> Category:
    if not isinstance(choices, list | tuple):
        raise InvalidInput(f"the choices of {name} are {shorten(choices)}: expected a list")
    if not 2 <= len(choices) <= MOST_CHOICES:
        raise InvalidInput(f"{name} has {format_count(len(choices), 'choice')}: expected 2 to {MOST_CHOICES}")
    for place, choice in enumerate(choices):
        if not isinstance(choice, str | bool | int | float) or choice != choice or choice in (math.inf, -math.inf):
            raise InvalidInput(
                f"{shorten(choice)} cannot be a choice of {name}: expected a text, a number, true or false"
            )
        if choice in choices[:place]:
            raise InvalidInput(f"{name} has the choice {choice!r} twice: expected different choices")
    return Category(tuple(choices))


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
    return Space({name: _read_given(one) for name, one in found.items()} if isinstance(found, dict) else found)  # type: ignore[arg-type]


def _read_given(one: object) -> object:
    """What `Space` expects: files have no tuples, so that a list that begins with two numbers is a range."""
    if isinstance(one, list) and len(one) in (2, 3) and all(type(end) in (int, float) for end in one[:2]):
        return tuple(one) if len(one) == 2 or isinstance(one[2], str) else one
    return one
