"""RMED1, RMED2 and RMED2FH: Algorithms 1 to 3, every sum recomputed at every step."""

import contextlib
import math

import numpy as np

from duels import theory

from .draws import History, Over, duel, pick, shuffle


class Run:
    def __init__(self, P, horizon, coin, luck, version, alpha=None, *, scale, power):
        self.P, self.T, self.coin, self.luck, self.version, self.alpha = P, horizon, coin, luck, version, alpha
        self.K = len(P)
        self.f = scale * self.K**power
        self.W = np.zeros(P.shape)
        self.history = History()
        with contextlib.suppress(Over):
            self.play()

    @property
    def t(self):
        return len(self.history) + 1

    def draw(self, i, j):
        won = None if i == j else duel(self.P, i, j, self.luck)
        if i != j:
            self.W[i, j] += won
            self.W[j, i] += 1 - won
        self.history.append((i, j, won))
        if len(self.history) == self.T:
            raise Over

    def mu(self, i, j):
        return 0.5 if i == j else self.W[i, j] / (self.W[i, j] + self.W[j, i])

    def N(self, i, j):
        return 0 if i == j else self.W[i, j] + self.W[j, i]

    def divergences(self):
        terms = np.zeros((self.K, self.K))
        for i in range(self.K):
            for j in range(self.K):
                if i != j and self.mu(i, j) <= 0.5:
                    terms[i, j] = np.floor(self.N(i, j) * theory.kl(self.mu(i, j), 0.5) * 2**36 + 0.5) / 2**36
        return terms.sum(axis=1)

    def best(self):
        divergences = self.divergences()
        return pick(np.flatnonzero(divergences == divergences.min()).tolist(), self.coin)

    def draw_all(self, times):
        while any(self.N(i, j) < times() for i in range(self.K) for j in range(i)):
            for a in range(self.K):
                for b in range(a + 1, self.K):
                    while self.N(self.order[a], self.order[b]) < times():
                        self.draw(self.order[a], self.order[b])

    def play(self):
        self.order = shuffle(self.K, self.coin)  # the "arbitrarily fixed order"
        L = max(math.ceil(self.alpha * math.log(math.log(self.T))), 1) if self.version == "2FH" else 1  # line 2
        self.draw_all(lambda: L)  # line 3
        if self.version == "2FH":  # line 4
            best = self.best()
            self.fixed = [self.b_star(i, best) for i in range(self.K)]
        L_C = L_R = set(range(self.K))  # line 5
        while True:  # line 6
            if self.version == 2:  # lines 7 to 9
                self.draw_all(lambda: self.alpha * math.log(max(math.log(self.t), 1)))
            L_N = set()
            for arm in [i for i in self.order if i in L_C]:  # line 10
                m = self.opponent(arm)  # line 11
                t = self.t
                self.draw(arm, m)  # line 12
                L_R = L_R - {arm}  # line 13
                I = self.divergences()  # noqa: E741
                L_N |= {j for j in range(self.K) if j not in L_R and I[j] - I.min() <= math.log(t) + self.f}  # 14
            L_C = L_R = L_N  # line 17

    def opponent(self, arm):
        best = self.best()
        if self.version == 1:
            return self.algorithm_2(arm, best)
        b = self.b_star(arm, best) if self.version == 2 else self.fixed[arm]
        log_log = math.log(max(math.log(self.t if self.version == 2 else self.T), 1))
        ahead = b is not None and self.mu(arm, b) <= 0.5
        if ahead and (arm == best or self.N(arm, best) * log_log >= self.N(arm, b)):  # Algorithm 3
            return b
        return self.algorithm_2(arm, best)

    def algorithm_2(self, arm, best):
        ahead = [j for j in range(self.K) if j != arm and self.mu(arm, j) <= 0.5]
        if best in ahead or not ahead:
            return best
        lowest = min(self.mu(arm, j) for j in ahead)
        return pick([j for j in ahead if self.mu(arm, j) == lowest], self.coin)

    def b_star(self, i, best):
        """Equation (6) with d⁺: only arms ahead of i have a finite ratio."""
        ratio = {}
        for j in range(self.K):
            if j != i and self.mu(i, j) < 0.5:
                d = np.floor(self.N(i, j) * theory.kl(self.mu(i, j), 0.5) * 2**36 + 0.5) / 2**36
                ratio[j] = (self.mu(best, i) - 0.5 + (self.mu(best, j) - 0.5)) * self.N(i, j) / d
        return pick([j for j in ratio if ratio[j] == min(ratio.values())], self.coin) if ratio else None


def play(P, horizon, coin, luck, version, **params):
    """Algorithm 1; `version` is 1, 2 or "2FH"."""
    return Run(P, horizon, coin, luck, version, **params).history
