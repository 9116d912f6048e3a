"""Self-Sparring with independent posteriors and m = 2, arm against arm and position against position."""

import numpy as np

from .draws import History, duel


def play(P, horizon, coin, luck, eta):
    K = len(P)
    S, F = np.zeros(K), np.zeros(K)
    history = History()
    for _ in range(horizon):
        arms = []
        for _ in range(2):
            theta = [coin.beta(S[i] + 1, F[i] + 1) for i in range(K)]
            arms.append(int(np.argmax(theta)))
        won = duel(P, *arms, luck)
        r = {(0, 1): won, (1, 0): 1 - won}
        for (j, _), result in r.items():
            if result == 1:
                S[arms[j]] += eta
            else:
                F[arms[j]] += eta
        history.append((*arms, won))
    history.left = {"won": S + 1, "lost": F + 1}
    return history
