"""ECW-RMED with dense arrays and lists of sets of pairs."""

import itertools
import math

import numpy as np

from duels import theory

from .draws import History, Over, duel, shuffle


def information(W):
    n = W + W.T
    mu = np.where(n > 0, W / np.maximum(n, 1), 0.5)
    return np.floor(n * theory.kl(mu, 0.5) * 2**36 + 0.5) / 2**36


def constraints(W, i1):
    """Sets of pairs (superior, arm) whose information must add up to ln t for i1 to be certain to be a winner."""
    K = len(W)
    L = (W.T > W).sum(axis=1)
    for j in range(K):
        if W[i1, j] > W[j, i1]:
            yield [(i1, j)]
    for i2 in range(K):
        superiors = [j for j in range(K) if W[j, i2] > W[i2, j] and j != i1]
        if i2 != i1:
            for some in itertools.combinations(superiors, L[i2] - L[i1] + 1):
                yield [(j, i2) for j in some]


def regret(L, i, j):
    return (L[i] + L[j] - 2 * L.min()) / (2 * (len(L) - 1))


def cheapest_information(W, i1):
    """The plan for i1: {(superior, arm): part of ln t to be told}, and its price, arm by arm of the lower end."""
    K = len(W)
    L, told, n = (W.T > W).sum(axis=1), information(W), W + W.T
    parts, price = {}, 0.0
    for j in range(K):
        here = 0.0
        if W[i1, j] > W[j, i1]:
            parts[i1, j] = 1.0
            here += regret(L, i1, j) * n[i1, j] / told[i1, j]
        superiors = [k for k in range(K) if W[k, j] > W[j, k] and k != i1]
        needed = L[j] - L[i1] + 1
        if j != i1 and len(superiors) >= needed:
            cost = {k: regret(L, k, j) * n[k, j] / told[k, j] for k in superiors}
            superiors.sort(key=lambda k: cost[k])
            out = len(superiors) - needed
            sums = list(itertools.accumulate(cost[k] for k in superiors))
            h = min(range(out + 1, len(superiors) + 1), key=lambda h: sums[h - 1] / (h - out))
            parts |= {(k, j): 1 / (h - out) for k in superiors[:h]}
            here += sums[h - 1] / (h - out)
        price += here
    return parts, price


def play(P, horizon, coin, luck, alpha, beta):
    K = len(P)
    W = np.zeros((K, K))
    history = History()

    def draw(i, j):
        won = None
        if i != j:
            won = duel(P, i, j, luck)
            W[i, j] += won
            W[j, i] += 1 - won
        history.append((i, j, won))
        if len(history) == horizon:
            raise Over

    order = shuffle(K, coin)

    def few(i, j, t):
        return W[i, j] + W[j, i] < max(alpha * math.sqrt(math.log(t)), 1)

    def near(i, j, t):
        log_log = math.log(max(math.log(t), 1))
        return abs(W[i, j] - W[j, i]) / (2 * (W[i, j] + W[j, i])) < beta / max(log_log, 1)

    def explore():
        """A pass over pairs met too rarely until there is none, then any pair too near ½, and again."""
        while True:
            t = len(history) + 1
            pairs = [(order[a], order[b]) for a in range(K) for b in range(a + 1, K)]
            if any(few(i, j, t) for i, j in pairs):
                for i, j in pairs:
                    while few(i, j, len(history) + 1):
                        draw(i, j)
                continue
            close = [(i, j) for i in order for j in order if i != j and near(i, j, t)]
            if not close:
                return
            draw(*close[0])

    def candidates(t):
        """L_NC, in the order in which pairs are added."""
        L, told, n = (W.T > W).sum(axis=1), information(W), W + W.T
        cw = [i for i in order if L[i] == L.min()]
        strength = {i: min((sum(told[p] for p in c) for c in constraints(W, i)), default=math.inf) for i in cw}
        surest = max(cw, key=lambda i: strength[i])
        if strength[surest] >= math.log(t):
            return [(surest, surest)]
        plans = {i: cheapest_information(W, i) for i in cw}
        champion = min(cw, key=lambda i: plans[i][1])
        parts = plans[champion][0]
        lacking = {p for p in parts if parts[p] * n[p] / told[p] * math.log(t) > n[p]}
        return [p for j in order for p in parts if p[1] == j and p in lacking] + [(champion, champion)]

    L_C = L_R = [(min(order[a], order[b]), max(order[a], order[b])) for a in range(K) for b in range(a + 1, K)]
    try:
        while True:
            explore()
            L_N = []
            for pair in L_C:
                t = len(history) + 1
                draw(*pair)
                L_R = [p for p in L_R if p != pair]
                for i, j in candidates(t):
                    p = (min(i, j), max(i, j))
                    if p not in L_R and p not in L_N:
                        L_N.append(p)
            L_C = L_R = L_N
    except Over:
        return history
