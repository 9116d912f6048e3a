"""RUCB: Zoghi et al., 2014, Algorithm 1."""

import math

import numpy as np

from .draws import History, duel, pick


def play(P, horizon, coin, luck, alpha, variant, unplayed):
    K = len(P)
    W = np.zeros((K, K))  # line 1
    history, B = History(), set()
    for t in range(1, horizon + 1):  # line 2
        n = W + W.T
        D = W.T - W
        L = alpha * math.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(D > 0, D * D / (4 * n), -1.0)
            u = np.where(n > 0, W / n + math.sqrt(L) * (1 / np.sqrt(n)), unplayed)  # line 3, x/0 := 1
        pool = {i for i in range(K) if not any(z[i, j] > L for j in range(K) if j != i)}  # line 5: u_ij ≥ ½ for all j
        if variant == "seed":
            c = pick(pool or range(K), coin)
        else:
            B = B & pool
            if not pool:
                c = pick(range(K), coin)
            elif len(pool) == 1:
                B = set(pool)
                (c,) = pool
            elif B and coin.random() < 0.5:
                (c,) = B
            else:
                c = pick(pool - B, coin)
        others = [j for j in range(K) if j != c]
        if all(z[j, c] > L for j in others):  # line 6 with u_cc = ½ (line 4): everyone else is below ½
            history.append((c, c, None))
            continue
        top = max(u[j, c] for j in others)
        d = pick([j for j in others if u[j, c] == top], coin)
        won = duel(P, c, d, luck)
        W[c, d] += won  # line 7
        W[d, c] += 1 - won
        history.append((c, d, won))
    return history
