"""Sparring: two UCB1 players that see nothing but their own arms and wins."""

from .draws import History, choose_by_ucb, duel


def play(P, horizon, coin, luck, alpha):
    K = len(P)
    plays, wins = [[0] * K, [0] * K], [[0.0] * K, [0.0] * K]
    history = History()
    for t in range(1, horizon + 1):
        chosen = [choose_by_ucb(w, n, alpha, t, coin) for n, w in zip(plays, wins)]
        won = duel(P, *chosen, luck)
        for side, reward in ((0, won), (1, 1 - won)):
            plays[side][chosen[side]] += 1
            wins[side][chosen[side]] += reward
        history.append((*chosen, won))
    return history
