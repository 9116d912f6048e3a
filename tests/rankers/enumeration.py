"""Interleaving and clicking by exact enumeration on short lists: every outcome with its probability, nothing drawn.

Rankings are tuples of documents, best first. Written from the papers' definitions, without a look at the kernels.
"""

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np


def probabilistic(a, b, length, tau=3.0):
    """{(list, who put each slot, worth of each slot to a): probability}. Exact: tau is a whole number."""
    found = defaultdict(Fraction)

    def shares(ranking, placed):
        weights = {d: Fraction(1, ranking.index(d) + 1) ** int(tau) for d in ranking if d not in placed}
        total = sum(weights.values())
        return {d: w / total for d, w in weights.items()}

    def extend(placed, sides, worth, probability):
        if len(placed) == min(length, len(a)):
            found[placed, sides, worth] += probability
            return
        p_a, p_b = shares(a, placed), shares(b, placed)
        for side, p in ((0, p_a), (1, p_b)):
            for d, chance in p.items():
                credit = round(float(p_a[d] / (p_a[d] + p_b[d])), 9)
                extend((*placed, d), (*sides, side), (*worth, credit), probability * chance / 2)

    extend((), (), (), Fraction(1))
    return dict(found)


def team_draft(a, b, length):
    """{(list, worth of each slot to a): probability}, exact."""
    found = defaultdict(Fraction)

    def extend(placed, worth, probability):
        if len(placed) == min(length, len(a)):
            found[placed, worth] += probability
            return
        picks_a = sum(worth)
        picks_b = len(worth) - picks_a
        turns = [1] if picks_a < picks_b else [0] if picks_b < picks_a else [1, 0]
        for for_a in turns:
            d = next(d for d in (a if for_a else b) if d not in placed)
            extend((*placed, d), (*worth, for_a), probability / len(turns))

    extend((), (), Fraction(1))
    return dict(found)


def balanced(a, b, length):
    """{list: probability}, the two lists of Joachims' merge."""
    found = defaultdict(float)
    for a_first in (True, False):
        placed, i, j = [], 0, 0
        while len(placed) < min(length, len(a)):
            if i < j or (i == j and a_first):
                if a[i] not in placed:
                    placed.append(a[i])
                i += 1
            else:
                if b[j] not in placed:
                    placed.append(b[j])
                j += 1
        found[tuple(placed)] += 0.5
    return dict(found)


def judge_balanced(a, b, shown, clicked):
    """1, 0 or ½: who has more clicked documents in the top k, k the smaller place of the lowest click."""
    if not clicked:
        return 0.5
    lowest = max(clicked, key=shown.index)
    k = min(a.index(lowest), b.index(lowest))
    hits_a, hits_b = (sum(ranking.index(d) <= k for d in clicked) for ranking in (a, b))
    return 0.5 if hits_a == hits_b else float(hits_a > hits_b)


def mean_by_places(lists, clicked):
    """The mean outcome for the first ranking if these places are clicked, whatever is there.

    lists is {(shown, worth to a): probability} with worths adding to 1.
    """
    mean = Fraction(0)
    for (_, worth), chance in lists.items():
        lead = sum(2 * worth[k] - 1 for k in clicked)
        mean += chance * (Fraction(1, 2) if abs(lead) < 1e-7 else int(lead > 0))
    return mean


def cascade(grades, click, stop):
    """{which places are clicked: probability} for a user who reads from the top."""
    found = defaultdict(float)

    def read(k, clicked, probability):
        if k == len(grades):
            found[clicked] += probability
            return
        p, s = click[grades[k]], stop[grades[k]]
        read(k + 1, clicked, probability * (1 - p))
        found[(*clicked, k)] += probability * p * s
        read(k + 1, (*clicked, k), probability * p * (1 - s))

    read(0, (), 1.0)
    return {clicked: chance for clicked, chance in found.items() if chance > 0}


def orders(groups):
    """Every ranking that random tie-breaking can make of groups of equals, best group first; all equally likely."""
    return [tuple(itertools.chain(*parts)) for parts in itertools.product(*(itertools.permutations(g) for g in groups))]


def expected_outcome(lists, grades, click, stop):
    """The mean outcome for the first ranking; lists is {(shown, worth to a): probability} with worths adding to 1."""
    mean = 0.0
    for (shown, worth), chance in lists.items():
        for clicked, p in cascade([grades[d] for d in shown], click, stop).items():
            lead = sum(2 * worth[k] - 1 for k in clicked)
            mean += chance * p * (0.5 if abs(lead) < 1e-7 else float(lead > 0))
    return mean


def literal_comparison(a, b, grades, click, stop, length, rng, tau=3.0):
    """One probabilistic comparison as the paper words it, with arrays over all documents in every slot."""
    weights = []
    for ranking in (a, b):
        weight = np.zeros(len(a))
        weight[list(ranking)] = 1.0 / np.arange(1, len(a) + 1) ** tau
        weights.append(weight)
    shown, credit = [], []
    for _ in range(min(length, len(a))):
        shares = [weight / weight.sum() for weight in weights]
        document = rng.choice(len(a), p=shares[int(rng.random() < 0.5)])
        credit.append(shares[0][document] / (shares[0][document] + shares[1][document]))
        shown.append(document)
        for weight in weights:
            weight[document] = 0.0
    lead = 0.0
    for document, worth in zip(shown, credit):
        if rng.random() < click[grades[document]]:
            lead += 2 * worth - 1
            if rng.random() < stop[grades[document]]:
                break
    return 0.5 if abs(lead) < 1e-9 else float(lead > 0)
