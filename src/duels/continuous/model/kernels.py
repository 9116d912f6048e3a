"""Kernels of the preference model, compiled by numba: Matérn-5/2 on the unit cube, and its differences on duels.

A point has one coordinate per parameter, in [0, 1]. Each coordinate has its own lengthscale; `inverse` holds their
inverses. Two different choices of a category are at distance 1, whichever they are: choices have no order.
`category[k]` is 1 if coordinate k is one. `scale` is the variance of the process at a point.
"""

import math

import numpy as np

ROOT5 = math.sqrt(5.0)


def gap(x: np.ndarray, y: np.ndarray, k: int, category: np.ndarray) -> float:
    """The difference of two points in one coordinate."""
    if category[k]:
        return 0.0 if x[k] == y[k] else 1.0
    return float(x[k] - y[k])


def distance(x: np.ndarray, y: np.ndarray, inverse: np.ndarray, category: np.ndarray) -> float:
    """The distance of two points in lengthscales."""
    total = 0.0
    for k in range(len(x)):
        scaled = gap(x, y, k, category) * inverse[k]
        total += scaled * scaled
    return math.sqrt(total)


def matern(r: float) -> float:
    """The correlation at a distance."""
    return (1.0 + ROOT5 * r + 5.0 / 3.0 * r * r) * math.exp(-ROOT5 * r)


def steepness(r: float) -> float:
    """−matern′(r)/r, which is finite at 0; times a squared gap it is a derivative by a lengthscale."""
    return 5.0 / 3.0 * (1.0 + ROOT5 * r) * math.exp(-ROOT5 * r)


def fill_covariance(
    x: np.ndarray, y: np.ndarray, inverse: np.ndarray, category: np.ndarray, scale: float, out: np.ndarray
) -> None:
    """out[i, j] = k(x_i, y_j)."""
    for i in range(len(x)):
        for j in range(len(y)):
            out[i, j] = scale * matern(distance(x[i], y[j], inverse, category))


def fill_duels(
    left: np.ndarray, right: np.ndarray, inverse: np.ndarray, category: np.ndarray, scale: float, out: np.ndarray
) -> None:
    """out[i, j] = Cov(f(left_i) − f(right_i), f(left_j) − f(right_j)): the dueling kernel."""
    for i in range(len(left)):
        for j in range(i + 1):
            out[i, j] = scale * (
                matern(distance(left[i], left[j], inverse, category))
                + matern(distance(right[i], right[j], inverse, category))
                - matern(distance(left[i], right[j], inverse, category))
                - matern(distance(right[i], left[j], inverse, category))
            )
            out[j, i] = out[i, j]


def fill_cross(
    left: np.ndarray,
    right: np.ndarray,
    points: np.ndarray,
    inverse: np.ndarray,
    category: np.ndarray,
    scale: float,
    out: np.ndarray,
) -> None:
    """out[i, q] = Cov(f(left_i) − f(right_i), f(point_q))."""
    for i in range(len(left)):
        for q in range(len(points)):
            out[i, q] = scale * (
                matern(distance(left[i], points[q], inverse, category))
                - matern(distance(right[i], points[q], inverse, category))
            )


def add_slopes(
    x: np.ndarray, y: np.ndarray, weight: float, inverse: np.ndarray, category: np.ndarray, out: np.ndarray
) -> None:
    """Add weight · ∂ correlation(x, y)/∂ log lengthscale_k to out[k], and weight · correlation to the last entry."""
    r = distance(x, y, inverse, category)
    steep = weight * steepness(r)
    for k in range(len(x)):
        scaled = gap(x, y, k, category) * inverse[k]
        out[k] += steep * scaled * scaled
    out[len(x)] += weight * matern(r)


def fill_slopes(
    left: np.ndarray,
    right: np.ndarray,
    inverse: np.ndarray,
    category: np.ndarray,
    scale: float,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[k] = Σ_ij weights[i, j] ∂ K[i, j]/∂ log of the k-th lengthscale, last of the scale; weights symmetric."""
    out[:] = 0.0
    for i in range(len(left)):
        for j in range(i + 1):
            weight = weights[i, j] * scale * (1.0 if i == j else 2.0)
            add_slopes(left[i], left[j], weight, inverse, category, out)
            add_slopes(right[i], right[j], weight, inverse, category, out)
            add_slopes(left[i], right[j], -weight, inverse, category, out)
            add_slopes(right[i], left[j], -weight, inverse, category, out)


def pair_moments(
    left: np.ndarray,
    right: np.ndarray,
    pull: np.ndarray,
    reduction: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    inverse: np.ndarray,
    category: np.ndarray,
    scale: float,
    work: np.ndarray,
    out: np.ndarray,
) -> None:
    """The posterior means of f(x) and f(y), the variance of f(x) − f(y), and their derivatives.

    `pull` is the gradient of the log likelihood at the mode, `reduction` is W^½ B⁻¹ W^½. `work` is (2 + 2 + 2d, n):
    scratch. out[0] = mean of x, mean of y, variance; out[1 + k] = derivatives of these by x_k (the first and third) and
    by y_k: (mean x by x_k, mean y by y_k, variance by x_k, variance by y_k).
    """
    n, d = len(left), len(x)
    cross_x, cross_y, change, reduced = work[0], work[1], work[2], work[3]
    slopes_x, slopes_y = work[4 : 4 + d], work[4 + d : 4 + 2 * d]
    r = distance(x, y, inverse, category)
    steep = scale * steepness(r)
    mean_x = mean_y = 0.0
    for i in range(n):
        near, far = distance(left[i], x, inverse, category), distance(right[i], x, inverse, category)
        near_y, far_y = distance(left[i], y, inverse, category), distance(right[i], y, inverse, category)
        cross_x[i] = scale * (matern(near) - matern(far))
        cross_y[i] = scale * (matern(near_y) - matern(far_y))
        a, b = scale * steepness(near), scale * steepness(far)
        c, e = scale * steepness(near_y), scale * steepness(far_y)
        for k in range(d):
            if category[k]:
                slopes_x[k, i] = slopes_y[k, i] = 0.0
            else:
                square = inverse[k] * inverse[k]
                slopes_x[k, i] = (a * (left[i, k] - x[k]) - b * (right[i, k] - x[k])) * square
                slopes_y[k, i] = (c * (left[i, k] - y[k]) - e * (right[i, k] - y[k])) * square
        change[i] = cross_x[i] - cross_y[i]
        mean_x += cross_x[i] * pull[i]
        mean_y += cross_y[i] * pull[i]
    removed = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += reduction[i, j] * change[j]
        reduced[i] = total
        removed += total * change[i]
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = mean_x, mean_y, 2.0 * (scale - scale * matern(r)) - removed, 0.0
    for k in range(d):
        by_mean_x = by_mean_y = by_x = by_y = 0.0
        for i in range(n):
            by_mean_x += slopes_x[k, i] * pull[i]
            by_mean_y += slopes_y[k, i] * pull[i]
            by_x -= 2.0 * reduced[i] * slopes_x[k, i]
            by_y += 2.0 * reduced[i] * slopes_y[k, i]
        if not category[k]:
            apart = 2.0 * steep * (x[k] - y[k]) * inverse[k] * inverse[k]
            by_x += apart
            by_y -= apart
        out[1 + k, 0], out[1 + k, 1], out[1 + k, 2], out[1 + k, 3] = by_mean_x, by_mean_y, by_x, by_y
