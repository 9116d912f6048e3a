"""Beat the Mean: Yue & Joachims, 2011, with a list of all comparisons."""

import math

from .draws import History, duel, pick


def play(P, horizon, coin, luck, gamma):
    K = len(P)
    delta = 1 / (2 * horizon * K)
    remaining = set(range(K))
    compared = []  # (b, b', won by b) while both remain
    history = History()
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
