"""Winner Stays, weak and strong."""

from .draws import History, duel, pick


def play(P, horizon, coin, luck, variant, beta):
    N = len(P)
    C = [0.0] * N
    history, last, round_number = History(), (), 1
    while len(history) < horizon:
        best = max(C)
        first = next((a for a in last if C[a] == best), None)
        if first is None:
            first = pick([i for i in range(N) if C[i] == best], coin)
        second_best = max(C[i] for i in range(N) if i != first)
        second = next((a for a in last if a != first and C[a] == second_best), None)
        if second is None:
            second = pick([i for i in range(N) if i != first and C[i] == second_best], coin)
        last = (first, second)
        won = duel(P, first, second, luck)
        C[first] += 2 * won - 1
        C[second] -= 2 * won - 1
        history.append((first, second, won))
        # Round ℓ is over when its winner is at (N − 1)ℓ and all others at −ℓ.
        if variant == "strong" and sorted(C) == [-round_number] * (N - 1) + [(N - 1) * round_number]:
            winner = C.index(max(C))
            history += [(winner, winner, None)] * int(beta**round_number)
            round_number += 1
    del history[horizon:]
    return history
