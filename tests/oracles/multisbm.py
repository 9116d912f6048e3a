"""MultiSBM: a singleton bandit machine, UCB1 with a clock of its own, for each left arm."""

from .draws import History, choose_by_ucb, duel, pick


class Machine:
    def __init__(self, arms, alpha):
        self.plays, self.wins, self.alpha, self.t = [0] * arms, [0.0] * arms, alpha, 0

    def advance(self, coin):
        self.t += 1
        return choose_by_ucb(self.wins, self.plays, self.alpha, self.t, coin)

    def feedback(self, arm, reward):
        self.plays[arm] += 1
        self.wins[arm] += reward


def play(P, horizon, coin, luck, alpha):
    machines = [Machine(len(P), alpha) for _ in P]
    y = pick(range(len(P)), coin)
    history = History()
    for _ in range(horizon):
        x, machine = y, machines[y]
        y = machine.advance(coin)
        won = duel(P, x, y, luck)
        machine.feedback(y, 1 - won)
        history.append((x, y, won))
    return history
