"""UCB on the Borda scores: UCB1, where pulling i means a duel with another arm drawn uniformly."""

from .draws import History, choose_by_ucb, duel, pick


def play(P, horizon, coin, luck, alpha):
    K = len(P)
    plays, wins, history = [0] * K, [0.0] * K, History()
    for t in range(1, horizon + 1):
        i = choose_by_ucb(wins, plays, alpha, t, coin)
        j = pick([k for k in range(K) if k != i], coin)
        won = duel(P, i, j, luck)
        plays[i] += 1
        wins[i] += won
        history.append((i, j, won))
    return history
