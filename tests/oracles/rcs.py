"""RCS: Algorithm 1 with the whole matrix of samples."""

from .draws import pick
from .dts import bounds, sample


def chooser(state, t, alpha, fallback, unplayed):
    W, crowned = state.wins.copy(), state.crowned.tolist()
    K = len(W)
    u, _ = bounds(W, t, alpha, unplayed)

    def choose(rng):
        theta = sample(W, rng)
        champions = [c for c in range(K) if all(theta[c, j] > 0.5 for j in range(K) if j != c)]
        if fallback == "crowned":
            rest = [i for i in range(K) if crowned[i] == min(crowned)]
        else:
            rest = [c for c in range(K) if all(u[c, j] >= 0.5 for j in range(K))] or range(K)
        c = pick(champions or rest, rng)
        return c, pick([j for j in range(K) if u[j, c] == max(u[:, c])], rng)

    return choose
