"""The asking rule: lines as in `policies.verdict`."""

import math

import numpy as np

from .draws import History, duel, pick


def helpful(W, T, i, j, coin, confidence=0.95, margin=0.0, by=None):
    """The pair to ask where (i, j) is proposed, by wins W and ties T: lines 2 to 9 of `policies.verdict`.

    `by` has other rules for which arms are beaten for certain, and which need not meet.
    """
    K, delta = len(W), 1 - confidence
    everyone = range(K)

    def beats(i, j):  # for certain
        a, b = W[i, j] + 5, W[j, i] + 5
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        log_m = log_beta - math.log(1 / 630) + (a + b - 10) * math.log(2)
        return a > b and log_m >= math.log(4 / (3 * delta) if K == 2 else 1 + 2 / delta)

    def need_not_meet(i, j):
        if margin == 0:
            return beats(i, j)
        m = 0.5 - margin
        fortune = 0.0
        for k in range(16):
            stake = 0.02 * 80 ** (k / 15)
            bets = W[i, j] * math.log(1 + stake * (1 - m)) + W[j, i] * math.log(1 - stake * m)
            fortune += math.exp(bets + T[i, j] * math.log(1 + stake * margin)) / 16
        return fortune >= 16 * (1 if K == 2 else K) / delta

    beats, need_not_meet = by or (beats, need_not_meet)

    def lead(i, j):
        return (W[i, j] - W[j, i]) / math.sqrt(W[i, j] + W[j, i] + 10)

    def clearest(c):
        most = max(lead(d, c) for d in everyone if d != c)
        return pick([d for d in everyone if d != c and lead(d, c) == most], coin)

    lost = [any(beats(k, c) for k in everyone) for c in everyone]
    if i != j and not (need_not_meet(i, j) or need_not_meet(j, i)) and not (lost[i] and lost[j]):  # line 2
        return i, j
    if (i != j or lost[i]) and coin.random() < 0.1:  # line 3
        return (i, clearest(i)) if lost[i] else (i, j)
    unbeaten = [k for k in everyone if not lost[k]]
    if not unbeaten:  # line 7
        weakest = min(max(lead(d, c) for d in everyone if d != c) for c in everyone)
        c = pick([c for c in everyone if max(lead(d, c) for d in everyone if d != c) == weakest], coin)  # line 8
        return c, clearest(c)  # line 9
    c = i if not lost[i] else j if not lost[j] else pick(unbeaten, coin)  # line 5
    open = [k for k in everyone if k != c and not need_not_meet(c, k)]
    if coin.random() < 0.1:  # line 6
        thetas = {k: coin.beta(W[c, k] + 5, W[k, c] + 5) for k in open}
        return (c, min(thetas, key=thetas.get)) if open else (i, j)
    first = [k for k in open if not lost[k]] or open
    least = min((lead(c, k) for k in first), default=0)
    return (c, pick([k for k in first if lead(c, k) == least], coin)) if open else (i, j)


def largest_draw(won, lost, coin):
    """The arm with the largest draw; arms that exceed the largest so far with a chance below e⁻⁴⁰ are not drawn."""
    n = won + lost
    means, drawn = won / n, {}
    first = int(np.argmax(means))
    for k in [first, *(k for k in range(len(won)) if k != first)]:
        needed = max(drawn.values(), default=0.0) - means[k]
        if k == first or needed <= 0 or 2 * (n[k] + 1) * needed**2 < 40:
            drawn[k] = coin.beta(won[k], lost[k])
    return max(drawn, key=drawn.get)


def play(P, horizon, coin, luck, confidence, margin):
    K = len(P)
    W, T = np.zeros((K, K)), np.zeros((K, K))
    history = History()
    for _ in range(horizon):
        i, j = (largest_draw(W.sum(1) + 1, W.sum(0) + 1, coin) for _ in range(2))  # line 1
        i, j = helpful(W, T, i, j, coin, confidence, margin)
        if i == j:
            history.append((i, i, None))
            continue
        won = duel(P, i, j, luck)
        W[i, j] += won
        W[j, i] += 1 - won
        history.append((i, j, won))
    return history
