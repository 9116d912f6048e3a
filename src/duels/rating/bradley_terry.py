"""The Bradley–Terry model: i beats j with probability σ(Δ), Δ = θ_i − θ_j + z·γ; a tie is half a win each way.

The features z of a cell have effects γ, with the penalty RIDGE·|γ|². Without features there is no penalty.
"""

import numpy as np

from .counts import LOST, TIED, WON, Cells, Floats, is_connected, sigmoid

RIDGE = 0.5


def has_maximum(cells: Cells) -> bool:
    """Whether the likelihood has a finite maximum."""
    return is_connected(cells)


def start(cells: Cells) -> Floats:
    """(K + F,): Where to start."""
    return np.zeros(cells.arms + cells.features.shape[1])


def value(cells: Cells, x: Floats) -> float:
    """The logarithm of the likelihood, minus the penalty."""
    logit = _logits(cells, x)
    won, lost = _points(cells)
    penalty = RIDGE * np.sum(x[cells.arms :] ** 2)
    return float(-np.sum(won * np.logaddexp(0, -logit) + lost * np.logaddexp(0, logit)) - penalty)


def slopes(cells: Cells, x: Floats) -> tuple[Floats, Floats]:
    """(m,) by Δ and (F,) by γ: the derivatives of `value`. Rounds, if any, are the last axis of all."""
    won, lost = _points(cells)
    delta = _logits(cells, x)
    slope = won * sigmoid(-delta) - lost * sigmoid(delta)  # without differences, so that small counts are not rounded
    return slope, cells.features.T @ slope - 2 * RIDGE * x[cells.arms :]


def curvature(cells: Cells, x: Floats) -> tuple[Floats, Floats, Floats]:
    """(m,), (m, F) and (F, F): minus the second derivatives, by Δ twice, by both, and by γ twice."""
    delta, z = _logits(cells, x), cells.features
    curve = cells.counts.sum(axis=0) * sigmoid(delta) * sigmoid(-delta)
    return curve, curve[:, None] * z, z.T @ (curve[:, None] * z) + 2 * RIDGE * np.eye(z.shape[1])


def vote_slopes(cells: Cells, x: Floats) -> tuple[Floats, Floats]:
    """(3, m) by Δ and (3, m, F) by γ: the slopes of a single vote of each cell that was won, lost or tied."""
    delta = _logits(cells, x)
    won, lost = sigmoid(-delta), -sigmoid(delta)
    by_delta = np.stack([won, lost, (won + lost) / 2])
    return by_delta, by_delta[..., None] * cells.features


def chance(delta: Floats, x: Floats, arms: int) -> Floats:
    """The probability of beating an arm that is weaker by delta, with equal features."""
    return sigmoid(delta)


def _logits(cells: Cells, x: Floats) -> Floats:
    delta: Floats = x[cells.first] - x[cells.second]
    return delta + cells.features @ x[cells.arms :] if cells.features.shape[1] else delta


def _points(cells: Cells) -> tuple[Floats, Floats]:
    half = cells.counts[TIED] / 2
    return cells.counts[WON] + half, cells.counts[LOST] + half
