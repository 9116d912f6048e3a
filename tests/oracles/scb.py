"""SCB: Algorithm 3 with 2 and 4."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import rel_entr

from .draws import History, duel, pick


def kl(p, q):
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def ends(p, limit):
    """The interval of all q with d(p, q) ≤ limit."""
    low, high = 1e-300, 1 - 1e-16
    return (
        0.0 if kl(p, low) <= limit else brentq(lambda q: kl(p, q) - limit, low, p),
        1.0 if kl(p, high) <= limit else brentq(lambda q: kl(p, q) - limit, p, high),
    )


def play(P, horizon, coin, luck, factor, first, test):
    history = History()

    def query(i, j):
        won = duel(P, i, j, luck) if i != j else None
        history.append((i, j, won))
        return won

    def is_certain(won, n, K, delta, t):
        if test == "hoeffding":
            return abs(won / n - 0.5) > math.sqrt(factor * math.log(2 * K * K * n * (n + 1) / delta) / (2 * n))
        log_log = math.log(math.log(t)) if t > 15 else 1.0  # e^e = 15.15: at least 1
        return n * kl(won / n, 0.5) > factor * (math.log(4 * t * K) + 2 * log_log)

    def solve(T, K):
        """Yields after each duel, where a round may end."""
        delta, start = math.log(T) / T, len(history)
        W, known = np.zeros((K, K)), {}
        rewards, remaining, n = dict.fromkeys(range(K), 0), list(range(K)), 0
        while True:
            n += 1
            waiting = {i: pick(set(range(K)) - {i}, coin) for i in remaining}
            place = int(coin.random() * len(remaining)) if len(remaining) > 1 else 0
            while waiting:
                place = (place + 1) % len(remaining)
                i = remaining[place]
                if i not in waiting:
                    continue
                j = waiting[i]
                if (i, j) in known:
                    rewards[i] += known[i, j]
                    del waiting[i]
                    continue
                won = query(i, j)
                W[i, j] += won
                W[j, i] += 1 - won
                m = W[i, j] + W[j, i]
                if is_certain(W[i, j], m, K, delta, len(history) - start):
                    known[i, j], known[j, i] = W[i, j] > W[j, i], W[j, i] > W[i, j]
                yield
            if all((i, j) in known for i in remaining for j in range(K) if i != j):
                rewards = {i: sum(known[i, j] for j in range(K) if i != j) for i in remaining}
                remaining = [i for i in remaining if rewards[i] == max(rewards.values())]
                break
            if n == 1:
                continue
            limit = factor * (math.log(4 * n * K / delta) + 2 * math.log(math.log(n))) / n
            interval = {i: ends(rewards[i] / n, limit) for i in remaining}
            top = max(low for low, _ in interval.values())
            remaining = [i for i in remaining if interval[i][1] >= top]
            if len(remaining) == 1 or max(high for _, high in interval.values()) - top < 1 / (K - 1):
                break
        return pick([i for i in remaining if rewards[i] == max(rewards[i] for i in remaining)], coin)

    for r in range(9):
        history.seen.clear()  # whether the last round has found a winner
        T = first**2**r
        end = len(history) + T
        solver = solve(T, len(P))
        while len(history) < min(end, horizon):
            try:
                next(solver)
            except StopIteration as found:
                history.seen["winner"] += 1
                while len(history) < min(end, horizon):
                    query(found.value, found.value)
        if len(history) == horizon:
            return history
    raise AssertionError
