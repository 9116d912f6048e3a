"""Condorcet SAVAGE: Urvoy et al., 2013, testing all pairs after every duel."""

import math

import numpy as np

from .draws import History, duel, pick


def play(P, horizon, coin, luck, delta, sampling):
    K = len(P)
    delta = delta or 1 / horizon
    W = np.zeros((K, K))
    remaining = set(range(K))
    history = History()
    for _ in range(horizon):
        if len(remaining) == 1:
            (i,) = remaining
            history.append((i, i, None))
            continue
        pairs = [(i, j) for i in remaining for j in remaining if i < j]
        if sampling == "least":
            fewest = min(W[i, j] + W[j, i] for i, j in pairs)
            pairs = [(i, j) for i, j in pairs if W[i, j] + W[j, i] == fewest]
        i, j = pick(pairs, coin)
        won = duel(P, i, j, luck)
        W[i, j] += won
        W[j, i] += 1 - won
        history.append((i, j, won))
        for a in sorted(remaining):
            for b in sorted(remaining - {a}):
                n = W[a, b] + W[b, a]
                if n and W[a, b] / n + math.sqrt(math.log(K * (K - 1) * horizon / delta) / (2 * n)) < 0.5:
                    remaining.discard(a)
    return history
