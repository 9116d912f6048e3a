"""The model of Rao and Kupper (1967), in which a tie is a third outcome.

i beats j with probability σ(Δ − η), j beats i with probability σ(−Δ − η), Δ = θ_i − θ_j, and they tie with the rest,
(exp(2η) − 1) σ(Δ − η) σ(−Δ − η). Ties are more likely with a larger η > 0.
"""

import numpy as np

from .counts import LOST, TIED, WON, Cells, Floats, is_connected, sigmoid


def has_maximum(cells: Cells) -> bool:
    """Whether the likelihood has a finite maximum.

    Otherwise it never falls in some direction: with η fixed, as in Bradley–Terry, or with a growing η. Then θ_i − θ_j
    grows at least as fast as η where i has beaten j, and at most as fast where they tied. Such θ exist unless a cycle
    of arms has more wins than ties.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import NegativeCycleError, bellman_ford

    if not is_connected(cells):
        return False
    won, lost, tied = cells.counts > 0
    if (won & lost).any():
        return True
    ends = [cells.first[tied], cells.second[tied], cells.first[won], cells.second[lost]]
    others = [cells.second[tied], cells.first[tied], cells.second[won], cells.first[lost]]
    pairs, last = np.unique(np.concatenate(ends)[::-1] * cells.arms + np.concatenate(others)[::-1], return_index=True)
    weight = np.concatenate([np.full(2 * tied.sum(), 1.0), np.full(won.sum() + lost.sum(), -1.0)])[::-1][last]
    try:
        bellman_ford(csr_array((weight, np.divmod(pairs, cells.arms)), shape=(cells.arms, cells.arms)), indices=0)
    except NegativeCycleError:
        return True
    return False


def start(cells: Cells) -> Floats:
    """(K + 1,): Where to start: equal arms, and the η of their share of ties."""
    share = cells.counts[TIED].sum() / cells.counts.sum()
    return np.append(np.zeros(cells.arms), np.log((1 + share) / (1 - share)))


def value(cells: Cells, x: Floats) -> float:
    """The logarithm of the likelihood; −∞ unless η > 0."""
    if x[-1] <= 0:
        return -np.inf
    delta, eta = _deltas(cells, x)
    won, lost, tied = cells.counts
    wins = (won + tied) * np.logaddexp(0, eta - delta) + (lost + tied) * np.logaddexp(0, eta + delta)
    return float(tied.sum() * (2 * eta + np.log1p(-np.exp(-2 * eta))) - wins.sum())


def slopes(cells: Cells, x: Floats) -> tuple[Floats, Floats]:
    """(m,) by Δ and (1,) by η: the derivatives of `value`. Rounds, if any, are the last axis of all."""
    delta, eta = _deltas(cells, x)
    up = (cells.counts[WON] + cells.counts[TIED]) * sigmoid(eta - delta)
    down = (cells.counts[LOST] + cells.counts[TIED]) * sigmoid(eta + delta)
    by_eta = cells.counts[TIED].sum(axis=0) * _tie_slope(eta) - up.sum(axis=0) - down.sum(axis=0)
    return up - down, np.asarray(by_eta)[None]


def curvature(cells: Cells, x: Floats) -> tuple[Floats, Floats, Floats]:
    """(m,), (m, 1) and (1, 1): minus the second derivatives, by Δ twice, by both, and by η twice."""
    delta, eta = _deltas(cells, x)
    win, loss = (sigmoid(edge) * sigmoid(-edge) for edge in (delta - eta, -delta - eta))
    up = (cells.counts[WON] + cells.counts[TIED]) * win
    down = (cells.counts[LOST] + cells.counts[TIED]) * loss
    of_ties = cells.counts[TIED].sum() * np.exp(-2 * eta) * _tie_slope(eta) ** 2
    return up + down, (down - up)[:, None], np.array([[(up + down).sum() + of_ties]])


def vote_slopes(cells: Cells, x: Floats) -> tuple[Floats, Floats]:
    """(3, m) by Δ and (3, m, 1) by η: the slopes of a single vote of each cell that was won, lost or tied."""
    delta, eta = _deltas(cells, x)
    up, down = sigmoid(eta - delta), sigmoid(eta + delta)
    return np.stack([up, -down, up - down]), np.stack([-up, -down, _tie_slope(eta) - up - down])[..., None]


def chance(delta: Floats, x: Floats, arms: int) -> Floats:
    """The probability of beating an arm that is weaker by delta, plus half of that of a tie."""
    eta = x[arms:].sum()
    return np.asarray(0.5 + (sigmoid(delta - eta) - sigmoid(-delta - eta)) / 2)


def _deltas(cells: Cells, x: Floats) -> tuple[Floats, Floats]:
    return x[cells.first] - x[cells.second], x[-1]


def _tie_slope(eta: Floats) -> Floats:
    """The derivative of log(exp(2η) − 1)."""
    return np.asarray(-2 / np.expm1(-2 * eta))
