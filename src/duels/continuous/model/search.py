"""Search on the unit cube: Sobol' points, points near good ones, and local refinement with derivatives."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..spaces import Space

BITS = 30  # of a Sobol' coordinate
SPREAD = 8  # 2⁸ Sobol' points are the candidates of an ask
NEAR = (0.1, 0.03, 0.01)  # standard deviations of candidates around the best point, in sides of the cube
EACH = 24  # candidates at each of these distances
ITERATIONS = 40  # of a refinement

Valued = Callable[[np.ndarray], tuple[float, np.ndarray]]  # coordinates -> value and gradient


def sobol(dimensions: int, power: int, rng: np.random.Generator) -> np.ndarray:
    """Return 2^power points of a Sobol' sequence with a random digital shift, (2^power, d)."""
    shift = rng.integers(0, 2**BITS, dimensions)
    points: np.ndarray = ((_sequence(dimensions, power) ^ shift) + 0.5) / 2**BITS
    return points


@cache
def _sequence(dimensions: int, power: int) -> np.ndarray:
    from scipy.stats import qmc  # takes half a second to import

    points = qmc.Sobol(dimensions, scramble=False, bits=BITS).random_base2(power)
    whole: np.ndarray = np.rint(points * 2**BITS).astype(np.int64)
    return whole


def around(point: np.ndarray, space: Space, rng: np.random.Generator) -> np.ndarray:
    """Return random points around a point, at several distances; a category keeps its choice or gets a random one."""
    widths = np.repeat(NEAR, EACH)[:, None]
    near = np.clip(point + widths * rng.standard_normal((len(widths), len(point))), 0.0, 1.0)
    fresh = rng.random(near.shape)
    keep = rng.random(near.shape) < 1.0 - 1.0 / (1.0 + len(point))
    near = np.where(space.category == 0, near, np.where(keep, point, fresh))
    return space.snap(near)


def minimize(*arguments: Any, **options: Any) -> Any:
    """Call `scipy.optimize.minimize`, which takes half a second to import, and is loaded when it is first needed."""
    from scipy import optimize

    return optimize.minimize(*arguments, **options)


def refine(value: Valued, start: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, float]:
    """Climb from a start to a local maximum within the cube, by L-BFGS-B.

    Args:
        value: The function and its gradient.
        start: Where to begin.
        fixed: 1 for coordinates that must stay as they are: those of categories.

    Returns:
        The point and its value.
    """
    bounds = [(at, at) if still else (0.0, 1.0) for at, still in zip(start, fixed)]

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = value(x)
        return -found, -slope

    options = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "ftol": 1e-9}
    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.clip(found.x, 0.0, 1.0), -float(found.fun)


def refine_blindly(value: Callable[[np.ndarray], float], start: np.ndarray, space: Space) -> float:
    """Climb without derivatives, by Nelder & Mead's method; return the largest value that was found."""
    free = space.category == 0
    best = value(start)

    def negative(x: np.ndarray) -> float:
        nonlocal best
        point = start.copy()
        point[free] = x
        found = value(space.snap(np.clip(point, 0.0, 1.0)[None, :])[0])
        best = max(best, found)
        return -found

    if free.any():
        options = {"maxfev": 100 * len(start), "xatol": 1e-6, "fatol": 1e-12}
        minimize(negative, start[free], method="Nelder-Mead", bounds=[(0.0, 1.0)] * free.sum(), options=options)
    return best
