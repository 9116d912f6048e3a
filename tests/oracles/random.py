"""All pairs alike."""

from .draws import History, duel, pick


def play(P, horizon, coin, luck):
    K = len(P)
    history = History()
    for _ in range(horizon):
        i, j = pick([(i, j) for i in range(K) for j in range(i + 1, K)], coin)
        history.append((i, j, duel(P, i, j, luck)))
    return history
