"""Interleaved Filter: Yue et al., 2012."""

import math

from .draws import History, duel, pick


def play(P, horizon, coin, luck):
    K = len(P)
    delta = 1 / (horizon * K * K)
    history = History()
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
            history.seen["succession"] += 1
            W.discard(incumbent)
            won, total = dict.fromkeys(W, 0.0), dict.fromkeys(W, 0)
    while len(history) < horizon:
        history.append((incumbent, incumbent, None))
    return history
