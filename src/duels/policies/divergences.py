"""Kernels on the divergence kl(p, q) = p ln(p/q) + (1−p) ln((1−p)/(1−q)) of Bernoulli distributions.

Like all kernels, they are plain Python without checks: p and q are probabilities, counts and budgets are not negative.
"""

import math

QUANTUM = 2.0**-36  # sums of its multiples are exact up to 2¹⁷, in any order


def kl(p, q):
    """The divergence, with 0 ln 0 = 0; infinite where q is 0 or 1 and p is not."""
    if p == q:
        return 0.0
    if q <= 0.0 or q >= 1.0:
        return math.inf
    return max(term(p, q, p - q) + term(1.0 - p, 1.0 - q, q - p), 0.0)


def term(p, q, difference):
    """p ln(p/q), from the difference p − q where they are near: the two terms of kl all but cancel there."""
    if p <= 0.0:
        return 0.0
    if abs(difference) < q / 2.0:
        return p * math.log1p(difference / q)
    return p * (math.log(p) - math.log(q))


def kl_upper(mean, n, budget):
    """max{q ≥ mean: n·kl(mean, q) ≤ budget}, to 1e-12; 1 where n is 0."""
    if mean >= 1.0 or n <= 0.0:
        return 1.0
    d = budget / n
    if mean <= 0.0:
        return -math.expm1(-d)
    q = above(mean, d)
    # The divergence is convex in q: from above, Newton's steps descend to the root and never pass it.
    for _ in range(100):
        if q >= 1.0:
            break
        excess = kl(mean, q) - d
        lower = q - excess * q * (1.0 - q) / (q - mean) if q > mean else mean
        if excess <= 0.0 or lower >= q or lower <= mean:
            break
        near = q - lower < 1e-15
        q = lower
        if near:
            break
    return q


def above(mean, d):
    """A q with kl(mean, q) ≥ d, where Newton's method starts: the lesser of two bounds."""
    pinsker = mean + math.sqrt(0.5 * d)
    entropy = -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
    return min(pinsker, -math.expm1(-(d + entropy) / (1.0 - mean)))


def kl_lower(mean, n, budget):
    """min{q ≤ mean: n·kl(mean, q) ≤ budget}, to 1e-12; 0 where n is 0."""
    return 1.0 - kl_upper(1.0 - mean, n, budget)


def evidence(won, lost):
    """n·kl(w/n, ½): what won and lost duels tell against the two arms being equal; to the nearest multiple of 2⁻³⁶.

    Rounded so that arms with the same record have equal sums, wherever the others stand.
    """
    n = won + lost
    return math.floor(n * kl(min(won, lost) / n, 0.5) / QUANTUM + 0.5) * QUANTUM
