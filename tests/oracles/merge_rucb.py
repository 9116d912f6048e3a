"""MergeRUCB with lists, testing all pairs of all batches at every step."""

import math

import numpy as np

from .draws import History, duel, pick, shuffle


def merge(batches, p, coin):
    """Smallest with largest, as long as a batch has at most 3p/2 arms; again while one has p/2 or fewer."""
    while True:
        batches = [list(batch) for batch in batches]
        rank = sorted(shuffle(len(batches), coin), key=lambda m: len(batches[m]))
        count = len(batches)
        while len(rank) > 1:
            small, large = rank[0], rank[-1]
            rank = rank[:-1]
            if 2 * (len(batches[small]) + len(batches[large])) <= 3 * p:
                batches[large] += batches[small]
                batches[small] = []
                rank = rank[1:]
        batches = [batch for batch in batches if batch]
        if len(batches) in (1, count) or 2 * min(map(len, batches)) > p:
            return batches


def play(P, horizon, coin, luck, alpha, delta, batch):
    K = len(P)
    W = np.zeros((K, K))
    log_C = math.log((4 * alpha - 1) * K**2 / ((2 * alpha - 1) * delta)) / (2 * alpha - 1)
    order = shuffle(K, coin)
    batches = [order[k : k + batch] for k in range(0, K, batch)]
    S, turn, history = 1, 0, History()

    def lost(i, j, L):
        n = W[i, j] + W[j, i]
        return n > 0 and W[i, j] < W[j, i] and (W[j, i] - W[i, j]) ** 2 / (4 * n) > L  # u_ij < ½

    for t in range(1, horizon + 1):
        L = alpha * np.logaddexp(math.log(t), log_C)
        before = sum(map(len, batches))
        batches = [[i for i in b if not any(lost(i, j, L) for j in b if j != i)] for b in batches]
        left = sum(map(len, batches))
        few = left <= K / 2**S or left == len(batches)
        if left < before and few and len(batches) > 1:
            batches = merge(batches, batch, coin)
            S, turn = S + 1, 0
            history.seen["merge"] += 1
        if left == 1:
            history.append((batches[0][0], batches[0][0], None))
            continue
        m = turn % len(batches)
        turn = m + 1
        if len(batches[m]) == 1:
            history.append((batches[m][0], batches[m][0], None))
            history.seen["batch of one"] += 1
            continue
        c = pick(batches[m], coin)
        u = {}
        for j in batches[m]:
            n = W[j, c] + W[c, j]
            if j != c:
                u[j] = W[j, c] / n + math.sqrt(L) / math.sqrt(n) if n else 2.0
        d = pick([j for j in u if u[j] == max(u.values())], coin)
        won = duel(P, c, d, luck)
        W[c, d] += won
        W[d, c] += 1 - won
        history.append((c, d, won))
    return history
