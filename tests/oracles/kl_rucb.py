"""KL-RUCB: RUCB's Algorithm 1 with other bounds, each computed at every step."""

import math

import numpy as np

from duels import theory
from duels.policies.divergences import kl_upper

from .draws import History, duel, pick


def play(P, horizon, coin, luck, alpha):
    """RUCB's Algorithm 1 with other bounds, each computed at every step."""
    K = len(P)
    W = np.zeros((K, K))
    history = History()
    for t in range(1, horizon + 1):
        n = W + W.T
        L = 2 * alpha * math.log(t)

        def below_half(i, j, n=n, L=L):
            return W[i, j] < W[j, i] and n[i, j] * theory.kl(W[i, j] / n[i, j], 0.5) > L

        pool = [i for i in range(K) if not any(below_half(i, j) for j in range(K))]
        c = pick(pool or range(K), coin)
        if all(below_half(j, c) for j in range(K) if j != c):
            history.append((c, c, None))
            continue
        u = {j: kl_upper(W[j, c] / n[j, c], n[j, c], L) if n[j, c] else 2.0 for j in range(K) if j != c}
        d = pick([j for j in u if u[j] == max(u.values())], coin)
        won = duel(P, c, d, luck)
        W[c, d] += won
        W[d, c] += 1 - won
        history.append((c, d, won))
    return history
