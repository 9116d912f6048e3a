"""Kernels that several policies share: the draw rules and the majority recommendation.

Kernels are plain Python without types or checks; `duels.engine.loop` compiles them with numba.
"""

import math

FOREVER = 1 << 62  # a time beyond every horizon: what `skip` returns if nothing will change any more


def choose(m, rng):
    """The index of a choice among m equals: one draw, none if there is nothing to choose."""
    if m == 1:
        return 0
    return int(rng.random() * m)


def nth_pair(k, m):
    """The k-th of the pairs (0, 1), (0, 2), …, (m − 2, m − 1)."""
    last = m * (m - 1) // 2 - 1 - k  # counted from the end, row lengths are 1, 2, 3, …
    row = int((math.sqrt(8.0 * last + 1.0) - 1.0) * 0.5)
    return m - 2 - row, m - 1 - (last - row * (row + 1) // 2)


def record(wins, i, j, outcome):
    """Enter a duel into the (K, K) table of wins; a tie adds a half to both."""
    wins[i, j] += outcome
    wins[j, i] += 1.0 - outcome


def record_lead(wins, ahead, i, j, outcome):
    """Like `record`; `ahead[i]` counts the arms that i beats by observed majority."""
    won, lost = wins[i, j], wins[j, i]
    record(wins, i, j, outcome)
    ahead[i] += int(wins[i, j] > wins[j, i]) - int(won > lost)
    ahead[j] += int(wins[j, i] > wins[i, j]) - int(lost > won)


def remove(members, size, member):
    """Take one out of the first `size` members, keeping their order; the new size."""
    kept = 0
    for k in range(size):  # without branches: the place of the member is unpredictable
        here = members[k]
        members[kept] = here
        kept += here != member
    return kept


def choose_largest(values, rng):
    """The place of the largest value, ties at random."""
    most, ties = values[0], 0
    for k in range(len(values)):
        if values[k] > most:
            most, ties = values[k], 0
        ties += values[k] == most
    n = choose(ties, rng)
    for k in range(len(values)):
        if values[k] == most:
            if n == 0:
                break
            n -= 1
    return k


def choose_majority(wins, members, size, rng):
    """One of the first `size` members that beats the most of them by observed majority, ties at random.

    Pairs that never met, or are level, do not count.
    """
    most, ties = -1, 0
    for a in range(size):
        beaten = majorities(wins, members, size, members[a])
        if beaten > most:
            most, ties = beaten, 0
        ties += beaten == most
    n = choose(ties, rng)
    for a in range(size):
        if majorities(wins, members, size, members[a]) == most:
            if n == 0:
                break
            n -= 1
    return members[a]


def majorities(wins, members, size, i):
    beaten = 0
    for b in range(size):
        beaten += wins[i, members[b]] > wins[members[b], i]
    return beaten
