"""D-TS⁺: Algorithm 1 with ties broken by R_i = Σ_j r_ij / KL(θ_ij, ½), r_ij = ζ* − (ζ_i + ζ_j)/2."""

import math

from .draws import pick
from .dts import bounds, choose_second, list_candidates, sample


def chooser(state, t, alpha):
    W = state.wins.copy()
    K = len(W)
    u, low = bounds(W, t, alpha)
    C = list_candidates(u)

    def choose(rng):
        theta = sample(W, rng)
        score = (theta > 0.5).sum(axis=1) / (K - 1)
        tied = [i for i in C if score[i] == max(score[C])]

        def regret(i):
            total = 0.0
            for j in range(K):
                if j != i:
                    p = theta[i, j]
                    kl = math.log(2) + p * math.log(p) + (1 - p) * math.log(1 - p)
                    total += (max(score) - (score[i] + score[j]) / 2) / kl
            return total

        regrets = {i: regret(i) for i in tied}
        first = pick([i for i in tied if regrets[i] <= min(regrets.values()) + 1e-12], rng)
        return first, choose_second(W, low, first, rng)

    return choose
