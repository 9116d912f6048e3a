"""What listings share: their draws, and the history that they return."""

import math
from collections import Counter


class History(list):
    """A run's (first, second, outcome)s; the outcome of a self-duel that is not drawn is None.

    `seen` counts how often the listing came to each of its corners; `left` has fields of the policy's state as the
    listing leaves them.
    """

    def __init__(self):
        self.seen, self.left = Counter(), {}


class Over(Exception):
    """The horizon is reached."""


def pick(candidates, rng):
    candidates = sorted(candidates)
    return candidates[0] if len(candidates) == 1 else candidates[int(rng.random() * len(candidates))]


def duel(P, i, j, luck):
    return 1.0 if luck.random() < P[i, j] else 0.0


def shuffle(m, coin):
    """The numbers below m in random order: each new one changes places with one of those before it, or stays."""
    order = []
    for k in range(m):
        place = pick(range(k + 1), coin)
        order.append(k)
        order[place], order[k] = k, order[place]
    return order


def choose_by_ucb(wins, plays, alpha, t, coin):
    """UCB1's arm."""
    radius = math.sqrt(alpha * math.log(t))
    index = [w / n + radius * (1 / math.sqrt(n)) if n else math.inf for w, n in zip(wins, plays)]
    return pick([k for k in range(len(index)) if index[k] == max(index)], coin)
