"""CCB: Algorithm 1, all of it anew at every step."""

import math

import numpy as np

from .draws import History, duel, pick


def play(P, horizon, coin, luck, alpha, unplayed):
    K = len(P)
    arms = range(K)
    W = np.zeros((K, K))  # line 1
    history = History()
    seen = history.seen

    def start():
        return set(arms), {i: set() for i in arms}, K  # lines 2 to 4

    best, beat, most = start()
    for t in range(1, horizon + 1):
        L = alpha * math.log(t)
        n, D = W + W.T, W.T - W
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(D > 0, D * D / (4 * n), -1.0)
            u = np.where(n > 0, W / n + math.sqrt(L) * (1 / np.sqrt(n)), unplayed)  # line 6
        below = z > L  # u_ij < ½, which is l_ji > ½
        upper = [sum(not below[i, k] for k in arms if k != i) for i in arms]  # line 7
        lower = [sum(bool(below[k, i]) for k in arms if k != i) for i in arms]
        top = {i for i in arms if upper[i] == max(upper)}  # line 8
        if any(below[j, i] for i in arms for j in beat[i]):  # line 9A
            best, beat, most = start()
            seen["disproven"] += 1
        for i in sorted(best):  # line 9B
            if any(upper[i] < lower[j] for j in arms):
                best.discard(i)
                seen["removed"] += 1
                if len(beat[i]) != most + 1:
                    beat[i] = {k for k in arms if below[i, k]}
        if not best:
            best, beat, most = start()
        for i in sorted(top):  # line 9C
            if upper[i] == lower[i]:
                best.add(i)
                beat[i] = set()
                most = K - 1 - upper[i]
                for j in arms:
                    if j != i and len(beat[j]) < most + 1:
                        beat[j] = set()
                    while j != i and len(beat[j]) > most + 1:
                        beat[j].discard(pick(beat[j], coin))
                        seen["thinned"] += 1
        unsure = [(i, j) for i in arms for j in sorted(beat[i]) if not below[i, j] and not below[j, i]]
        if unsure and coin.random() < 0.25:  # line 10
            c, d = pick(unsure, coin)
            seen["unsure"] += 1
        else:
            if best & top and not top <= best and coin.random() < 2 / 3:  # line 11
                top = best & top
                seen["narrowed"] += 1
            c = pick(top, coin)  # line 12
            among = {j for j in beat[c] if not below[c, j]}
            if among and coin.random() < 0.5:  # line 13
                seen["among B^c"] += 1
            else:
                among = {j for j in arms if not below[c, j]} - {c}
            among = {j for j in among if not below[j, c]}  # the others' u_jc are below u_cc = ½
            highest = max((u[j, c] for j in among), default=None)
            d = pick([j for j in among if u[j, c] == highest], coin) if among else c
        won = duel(P, c, d, luck) if c != d else None
        if won is not None:
            W[c, d] += won  # line 14
            W[d, c] += 1 - won
        history.append((c, d, won))
    return history
