"""MergeDTS: Algorithm 1 with lists."""

import math

import numpy as np
from scipy import special

from .draws import History, duel, shuffle


class Batches:
    """The coin is used in the policy's order: one number a match, one Beta a second θ."""

    def __init__(self, K, alpha, M, C, coin, seen):
        self.W, self.alpha, self.M, self.C, self.K = np.zeros((K, K)), alpha, M, C, K
        self.coin, self.seen = coin, seen
        order = shuffle(K, coin)
        b = math.ceil(K / M)
        self.batches = [order[m::b] for m in range(b)]
        self.S = 1

    def select(self, t):
        W, coin = self.W, self.coin
        if len(self.batches) > 1 and sum(map(len, self.batches)) <= self.K / 2**self.S:
            self.regroup()
        m = t % len(self.batches)
        B = self.batches[m]
        while True:
            certain = [i for i in B if any(self.upper(i, j, t) < 0.5 for j in B if j != i)]
            if not certain:
                break
            B.remove(certain[0] if len(certain) == 1 else certain[int(coin.random() * len(certain))])
        if len(self.batches) > 1 and len(B) == 1:
            self.seen["join"] += 1
            del self.batches[m]
            m %= len(self.batches)
            self.batches[m] += B
            B = self.batches[m]
        if len(B) == 1:
            return B[0], B[0]
        score = dict.fromkeys(B, 0)
        for a, i in enumerate(B):
            for j in B[a + 1 :]:
                won = coin.random() < special.betaincc(W[i, j] + 1, W[j, i] + 1, 0.5)
                score[i if won else j] += 1
        best = [i for i in B if score[i] == max(score.values())]
        c = best[0] if len(best) == 1 else best[int(coin.random() * len(best))]
        theta = {j: coin.beta(W[j, c] + 1, W[c, j] + 1) for j in B if j != c}
        return c, min(theta, key=theta.get)

    def upper(self, i, j, t):
        n = self.W[i, j] + self.W[j, i]
        return self.W[i, j] / n + math.sqrt(self.alpha * math.log(t + self.C) / n) if n else 2.0

    def regroup(self):
        self.S += 1
        self.pair()
        if min(map(len, self.batches)) < self.M / 2:
            self.pair()

    def pair(self):
        """The largest batch takes in the smallest, the next the next smallest, where 3M/2 arms are enough for both."""
        waiting, done = sorted(self.batches, key=len, reverse=True), []
        while waiting:
            batch = waiting.pop(0)
            if waiting and len(batch) + len(waiting[-1]) <= 1.5 * self.M:
                batch += waiting.pop()
                self.seen["merge"] += 1
            done.append(batch)
        self.batches = done


def play(P, horizon, coin, luck, alpha, batch, c, delta, ties=0):
    """The outcome of every `ties`-th step is a tie."""
    history = History()
    oracle = Batches(len(P), alpha, batch, c, coin, history.seen)
    for t in range(1, horizon + 1):
        i, j = oracle.select(t)
        won = None
        if i != j:
            won = 0.5 if ties and t % ties == 0 else duel(P, i, j, luck)
            oracle.W[i, j] += won
            oracle.W[j, i] += 1 - won
        history.append((i, j, won))
    return history
