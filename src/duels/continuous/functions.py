"""Functions to test tuning on, by name: `branin`, `ackley:d=4`. All are maximized.

Most are minimized in the literature; here they have the opposite sign.
"""

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import specs
from ..errors import InvalidInput, UnknownName
from .spaces import Number, Space

Vectorized = Callable[[np.ndarray], Any]  # (q, d) parameters -> (q,) values


class Function(NamedTuple):
    """A function with its space."""

    name: str
    space: Space
    values: Vectorized  # of (q, d) parameters, not of points of the cube
    maximum: float
    modes: bool  # whether it has several local maxima


Build = Callable[..., tuple[list[tuple[float, float]], Vectorized, float]]
_families: dict[str, tuple[Build, bool]] = {}


def find_function(spec: str) -> Function:
    """Find a function by name.

    Args:
        spec: A name, with or without parameters, such as `"ackley:d=4"`.

    Raises:
        UnknownName: If there is no such function or parameter.
        InvalidInput: If a parameter has a wrong value.
    """
    name, given = specs.split_spec(spec, "function")
    if name not in _families:
        raise UnknownName("function", name, _families)
    build, modes = _families[name]
    defaults = {key: one.default for key, one in inspect.signature(build).parameters.items()}
    values = specs.fill(name, given, defaults, "the page of functions in the documentation")
    if not 1 <= values.get("d", 1) <= 20:
        raise InvalidInput(f"d of {name} is {values['d']}: expected 1 to 20 dimensions")
    bounds, function, maximum = build(**values)
    space = Space({f"x{k + 1}": Number(low, high) for k, (low, high) in enumerate(bounds)})
    return Function(specs.join(name, values, defaults), space, function, maximum, modes)


def list_functions() -> list[str]:
    """Return the names of all functions."""
    return list(_families)


def _family(name: str, modes: bool = True) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        _families[name] = build, modes
        return build

    return register


@_family("branin")
def _branin() -> tuple[list[tuple[float, float]], Vectorized, float]:
    def values(x: np.ndarray) -> Any:
        a, b = x[:, 0], x[:, 1]
        bend = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
        return -(bend**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(a) + 10)

    return [(-5.0, 10.0), (0.0, 15.0)], values, -10 / (8 * math.pi)


@_family("ackley")
def _ackley(d: int = 4, bound: float = 5.0) -> tuple[list[tuple[float, float]], Vectorized, float]:
    if not 1 <= bound <= 100:
        raise InvalidInput(f"bound of ackley is {bound:g}: expected 1 to 100; the literature has 5 and 32.768")

    def values(x: np.ndarray) -> Any:
        far = np.exp(-0.2 * np.sqrt((x**2).mean(axis=1)))
        return 20 * far + np.exp(np.cos(2 * math.pi * x).mean(axis=1)) - 20 - math.e

    return [(-bound, bound)] * d, values, 0.0


@_family("eggholder")
def _eggholder() -> tuple[list[tuple[float, float]], Vectorized, float]:
    def values(x: np.ndarray) -> Any:
        a, b = x[:, 0], x[:, 1] + 47
        return b * np.sin(np.sqrt(np.abs(b + a / 2))) + a * np.sin(np.sqrt(np.abs(a - b)))

    return [(-512.0, 512.0)] * 2, values, 959.6406627208506


@_family("holder")
def _holder() -> tuple[list[tuple[float, float]], Vectorized, float]:
    def values(x: np.ndarray) -> Any:
        away = np.abs(1 - np.sqrt((x**2).sum(axis=1)) / math.pi)
        return np.abs(np.sin(x[:, 0]) * np.cos(x[:, 1]) * np.exp(away))

    return [(-10.0, 10.0)] * 2, values, 19.208502567886746


@_family("michalewicz")
def _michalewicz(d: int = 2) -> tuple[list[tuple[float, float]], Vectorized, float]:
    order = np.arange(1, d + 1)

    def values(x: np.ndarray) -> Any:
        total = (np.sin(x) * np.sin(order * x**2 / math.pi) ** 20).sum(axis=1)
        return total

    return [(0.0, math.pi)] * d, values, sum(map(_michalewicz_peak, range(1, d + 1)))


@cache
def _michalewicz_peak(order: int) -> float:
    """The largest value of one coordinate's term: the terms are independent."""
    x = np.linspace(0.0, math.pi, 100_001)
    for _ in range(3):  # each time closer around the best
        term = np.sin(x) * np.sin(order * x**2 / math.pi) ** 20
        best, step = x[term.argmax()], x[1] - x[0]
        x = np.linspace(max(best - step, 0.0), min(best + step, math.pi), 1001)
    return float(term.max())


@_family("rosenbrock", modes=False)
def _rosenbrock(d: int = 2) -> tuple[list[tuple[float, float]], Vectorized, float]:
    if d < 2:
        raise InvalidInput(f"d of rosenbrock is {d}: expected 2 or more")

    def values(x: np.ndarray) -> Any:
        total = -(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)
        return total

    return [(-5.0, 10.0)] * d, values, 0.0


@_family("hartmann3")
def _hartmann3() -> tuple[list[tuple[float, float]], Vectorized, float]:
    widths = [[3.0, 10.0, 30.0], [0.1, 10.0, 35.0]] * 2
    centers = [[0.3689, 0.1170, 0.2673], [0.4699, 0.4387, 0.7470], [0.1091, 0.8732, 0.5547], [0.0381, 0.5743, 0.8828]]
    return [(0.0, 1.0)] * 3, _bumps(widths, centers), 3.8627797873326624


@_family("hartmann6")
def _hartmann6() -> tuple[list[tuple[float, float]], Vectorized, float]:
    widths = [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17.0, 8, 0.05, 10, 0.1, 14],
    ]
    centers = [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
    return [(0.0, 1.0)] * 6, _bumps(widths, centers), 3.322368011415515


def _bumps(widths: list[list[float]], centers: list[list[float]]) -> Vectorized:
    heights, wide, center = np.array([1.0, 1.2, 3.0, 3.2]), np.array(widths), np.array(centers)

    def values(x: np.ndarray) -> Any:
        away = (wide * (x[:, None, :] - center) ** 2).sum(axis=2)
        total = np.exp(-away) @ heights
        return total

    return values


@_family("camel")
def _camel() -> tuple[list[tuple[float, float]], Vectorized, float]:
    def values(x: np.ndarray) -> Any:
        a, b = x[:, 0] ** 2, x[:, 1] ** 2
        return -((4 - 2.1 * a + a**2 / 3) * a + x[:, 0] * x[:, 1] + (-4 + 4 * b) * b)

    return [(-3.0, 3.0), (-2.0, 2.0)], values, 1.031628453489877
