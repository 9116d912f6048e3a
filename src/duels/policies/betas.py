"""Beta posteriors: the probability that a pair's θ_ij ~ Beta(w_ij + 1, w_ji + 1) exceeds ½, and draws from it.

Whether θ_ij exceeds ½ is a coin toss whose chance changes only when i and j duel: a sampled tournament needs one
`rng.random()` per pair and no Beta draws. Counts may be halves (ties), so a and b are real numbers of at least 1.
"""

import math

REFRESH = 256  # a pair's chance is recomputed after this many duels, before rounding errors add up


def chance_above_half(a, b):
    """P(Beta(a, b) > ½), to 10⁻¹⁰ of its value; a, b ≥ 1."""
    return 1.0 - smaller_tail(b, a) if a > b else smaller_tail(a, b)


def smaller_tail(a, b):
    """P(Beta(a, b) > ½) = I_½(b, a) for a ≤ b, by its continued fraction (DLMF 8.17.22)."""
    lead = a * half_mass(a, b)
    if lead == 0.0:
        return 0.0
    n = a + b
    c, d = 1.0, 1.0 - n * 0.5 / (b + 1.0)
    d = 1.0 / d
    fraction, factor, m = d, 0.0, 0
    while abs(factor - 1.0) > 1e-15:
        m += 1
        two = b + 2.0 * m
        step = m * (a - m) * 0.5 / ((two - 1.0) * two)
        d = 1.0 / (1.0 + step * d)
        c = 1.0 + step / c
        fraction *= d * c
        step = -(b + m) * (n + m) * 0.5 / (two * (two + 1.0))
        d = 1.0 / (1.0 + step * d)
        c = 1.0 + step / c
        factor = d * c
        fraction *= factor
    return lead * fraction


def half_mass(a, b):
    """Γ(a + b) / (Γ(a + 1) Γ(b + 1) 2^(a+b)): by b times this, P(Beta > ½) grows from (a, b) to (a + 1, b).

    By Stirling's formula with its error terms apart: differences of log Γ would lose the digits of large a and b.
    """
    n = a + b
    log_mass = stirling_error(n) - stirling_error(a) - stirling_error(b) - n * distance_from_half((a - b) / n)
    return math.exp(log_mass) / math.sqrt(2.0 * math.pi * n * a * b)


def distance_from_half(e):
    """The Kullback-Leibler divergence of a coin with chance (1 + e)/2 from a fair one, |e| < 1."""
    return 0.5 * (math.log1p(-e * e) + e * (math.log1p(e) - math.log1p(-e)))


def stirling_error(x):
    """ln Γ(x + 1) − (x + ½) ln x + x − ½ ln 2π."""
    error = 0.0
    while x < 16.0:
        error += (x + 0.5) * math.log1p(1.0 / x) - 1.0
        x += 1.0
    y = 1.0 / (x * x)
    return error + (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - y / 1188) * y) * y) * y) / x


def learn(wins, chance, mass, i, j, outcome):
    """Bring chance[i, j] = P(θ_ij > ½) up to date after a duel that `wins` already holds.

    mass[i, j] is `half_mass`, by which a duel moves the chance in a few operations; a tie needs the whole formula.
    """
    a, b = wins[i, j] + 1.0, wins[j, i] + 1.0
    if outcome == 0.5 or (a + b) % REFRESH == 0.0:
        above, now = chance_above_half(a, b), half_mass(a, b)
    else:
        before, n = mass[i, j], a + b - 1.0
        above = chance[i, j] + (before * b if outcome == 1.0 else -before * a)
        now = before * n * 0.5 / (a if outcome == 1.0 else b)
    chance[i, j], chance[j, i] = above, 1.0 - above
    mass[i, j] = mass[j, i] = now


def draw_above_half(a, b, rng):
    """A draw of Beta(a, b) given that it exceeds ½; a, b ≥ 1."""
    gap = b - a
    if gap * gap < a + b or gap < 0.0:
        theta = rng.beta(a, b)
        while theta <= 0.5:
            theta = rng.beta(a, b)
        return theta
    # With θ = (1 + s)/2 the density is (1 − s)^gap (1 − s²)^(a−1): draw s from the first, accept with the second.
    while True:
        s = 1.0 - math.exp(math.log(1.0 - rng.random()) / (gap + 1.0))
        if math.log(1.0 - rng.random()) <= (a - 1.0) * math.log(1.0 - s * s):
            return 0.5 + 0.5 * s


def argmax_beta(a, b, rng):
    """The index of the largest of independent draws of Beta(a[k], b[k])."""
    best, most = 0, -1.0
    for k in range(len(a)):
        theta = rng.beta(a[k], b[k])
        if theta > most:
            best, most = k, theta
    return best


def argmax_beta_pruned(a, b, rng):
    """As `argmax_beta`, without the draws that could change its value with a chance of at most e⁻⁴⁰ each.

    Beta(a, b) exceeds its mean by x with a chance of at most exp(−2 (a + b + 1) x²) (Marchal and Arbel, 2017).
    """
    first, highest = 0, -1.0
    for k in range(len(a)):
        mean = a[k] / (a[k] + b[k])
        if mean > highest:
            first, highest = k, mean
    best, most = first, rng.beta(a[first], b[first])
    for k in range(len(a)):
        n = a[k] + b[k]
        gap = most - a[k] / n
        if k != first and (gap <= 0.0 or (n + 1.0) * gap * gap < 20.0):
            theta = rng.beta(a[k], b[k])
            if theta > most:
                best, most = k, theta
    return best
