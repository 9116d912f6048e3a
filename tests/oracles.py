"""The papers' listings, transcribed literally with dense arrays and no thought of speed.

Each plays `horizon` steps on a matrix with the two generators of a run and returns its (first, second, outcome)s,
outcome None where a self-duel is not drawn. The draw rules are those of docs/concepts.md: one draw for a choice among
several equals in ascending order, one draw for an outcome.
"""

import math

import numpy as np


def pick(candidates, rng):
    candidates = sorted(candidates)
    return candidates[0] if len(candidates) == 1 else candidates[int(rng.random() * len(candidates))]


def duel(P, i, j, luck):
    return 1.0 if luck.random() < P[i, j] else 0.0


def rucb(P, horizon, coin, luck, alpha=0.51, variant="seed", unplayed=2.0):
    K = len(P)
    W = np.zeros((K, K))  # line 1
    history, B = [], set()
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


def savage(P, horizon, coin, luck, delta=0.0, sampling="uniform"):
    K = len(P)
    delta = delta or 1 / horizon
    W = np.zeros((K, K))
    remaining = set(range(K))
    history = []
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


def btm(P, horizon, coin, luck, gamma=1.0):
    K = len(P)
    delta = 1 / (2 * horizon * K)
    remaining = set(range(K))
    compared = []  # (b, b', won by b) while both remain
    history = []
    for _ in range(horizon):
        if len(remaining) == 1:
            (b,) = remaining
            history.append((b, b, None))
            continue
        count = {b: sum(1 for x, _, _ in compared if x == b) for b in remaining}
        b = pick([b for b in remaining if count[b] == min(count.values())], coin)
        other = pick(remaining, coin)
        won = duel(P, b, other, luck)
        history.append((b, other, won))
        compared.append((b, other, won))
        n = {b: sum(1 for x, _, _ in compared if x == b) for b in remaining}
        w = {b: sum(won for x, _, won in compared if x == b) for b in remaining}
        mean = {b: w[b] / n[b] if n[b] else 0.5 for b in remaining}
        fewest = min(n.values())
        c = 3 * gamma * gamma * math.sqrt(math.log(1 / delta) / fewest) if fewest else 1.0
        if min(mean.values()) + c <= max(mean.values()) - c:
            worst = pick([b for b in remaining if mean[b] == min(mean.values())], coin)
            remaining.discard(worst)
            compared = [x for x in compared if worst not in x[:2]]
    return history


def interleaved_filter(P, horizon, coin, luck):
    K = len(P)
    delta = 1 / (horizon * K * K)
    history = []
    incumbent = pick(range(K), coin)
    W = set(range(K)) - {incumbent}

    def interval(b):
        mean = won[b] / total[b]
        radius = math.sqrt(4 * math.log(1 / delta) / total[b])
        return mean - radius, mean, mean + radius

    won, total = dict.fromkeys(W, 0.0), dict.fromkeys(W, 0)
    while W:
        waiting = set(W)
        while waiting:
            if len(history) == horizon:
                return history
            b = pick(waiting, coin)
            waiting.discard(b)
            x = duel(P, incumbent, b, luck)
            won[b] += x
            total[b] += 1
            history.append((incumbent, b, x))
        for b in sorted(W):
            if interval(b)[0] > 0.5:
                W.discard(b)
        challengers = [b for b in W if interval(b)[2] < 0.5]
        if challengers:
            W = {b for b in W if interval(b)[1] <= 0.5}
            incumbent = pick(challengers, coin)
            W.discard(incumbent)
            won, total = dict.fromkeys(W, 0.0), dict.fromkeys(W, 0)
    while len(history) < horizon:
        history.append((incumbent, incumbent, None))
    return history


def random(P, horizon, coin, luck):
    K = len(P)
    history = []
    for _ in range(horizon):
        i, j = pick([(i, j) for i in range(K) for j in range(i + 1, K)], coin)
        history.append((i, j, duel(P, i, j, luck)))
    return history


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


def verdict(P, horizon, coin, luck, confidence=0.95, margin=0.0):
    K = len(P)
    W, T = np.zeros((K, K)), np.zeros((K, K))
    history = []
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


ORACLES = {
    "rucb": rucb,
    "savage": savage,
    "btm": btm,
    "interleaved_filter": interleaved_filter,
    "random": random,
    "verdict": verdict,
}
