"""D-TS: Algorithm 1 with two whole matrices of samples."""

import math

import numpy as np

from .draws import pick


def bounds(W, t, alpha, unplayed=2.0):
    """u and l, with x/0 := 1."""
    n = W + W.T
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.sqrt(alpha * math.log(t) / n)
        u = np.where(n > 0, W / n + width, unplayed)
        low = np.where(n > 0, W / n - width, 0.0)
    np.fill_diagonal(u, 0.5)
    np.fill_diagonal(low, 0.5)
    return u, low


def sample(W, rng):
    """θ, a matrix of samples of the posteriors."""
    theta, below = np.full(W.shape, 0.5), np.tril_indices(len(W), -1)
    theta[below] = rng.beta(W[below] + 1, W.T[below] + 1)
    theta.T[below] = 1 - theta[below]
    return theta


def list_candidates(u):
    """The arms that may beat the most others."""
    K = len(u)
    score = [sum(u[i, j] > 0.5 for j in range(K) if j != i) for i in range(K)]
    return [i for i in range(K) if score[i] == max(score)]


def choose_second(W, low, first, rng):
    again = sample(W, rng)
    uncertain = [i for i in range(len(W)) if low[i, first] <= 0.5]
    return max(uncertain, key=lambda i: again[i, first])


def chooser(state, t, alpha):
    W = state.wins.copy()
    u, low = bounds(W, t, alpha)
    C = list_candidates(u)

    def choose(rng):
        beaten = (sample(W, rng) > 0.5).sum(axis=1)
        first = pick([i for i in C if beaten[i] == max(beaten[C])], rng)
        return first, choose_second(W, low, first, rng)

    return choose
