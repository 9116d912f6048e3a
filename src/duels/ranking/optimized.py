"""Optimized interleaving: Radlinski & Craswell, WSDM 2013.

The allowed lists are those in which every prefix consists of the tops of both rankings. Of their distributions, the
method chooses one under which random clicks in any top k give both rankings the same expected credit, and which
distinguishes rankings best.
"""

from functools import lru_cache

import numpy as np

from ..errors import InvalidInput
from .interleaving import Workspace

MOST = 10  # longer lists have over a thousand arrangements


def arrange_optimized(workspace: Workspace, documents: int, length: int, rng: np.random.Generator) -> int:
    """Draw a list from the optimized distribution; each side's credit for a click is the inverse of its place."""
    length = min(length, documents)
    tops = [find_settled_top(workspace, side, length, rng) for side in (0, 1)]
    seen = list(dict.fromkeys([*tops[0], *tops[1]]))
    numbers = {document: k for k, document in enumerate(seen)}
    a, b = (tuple(numbers[document] for document in top) for top in tops)
    lists, chances = distribution(a, b)
    chosen = lists[int(np.searchsorted(np.cumsum(chances), rng.random() * chances.sum(), side="right"))]
    for slot, number in enumerate(chosen):
        workspace.shown[slot] = seen[number]
        workspace.worth[0, slot], workspace.worth[1, slot] = inverse_place(a, number), inverse_place(b, number)
    return length


def find_settled_top(workspace: Workspace, side: int, length: int, rng: np.random.Generator) -> list[int]:
    """The first documents of a ranking, ties in random order."""
    top: list[int] = []
    place = 0
    while len(top) < length:
        first, last = int(workspace.first[side, place]), int(workspace.last[side, place])
        group = workspace.documents[side, first:last].tolist()
        top += [group[k] for k in rng.permutation(len(group))]
        place = last
    return top[:length]


def inverse_place(ranking: tuple[int, ...], document: int) -> float:
    return 1.0 / (ranking.index(document) + 1) if document in ranking else 1.0 / (len(ranking) + 1)


@lru_cache(maxsize=100_000)
def distribution(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the allowed lists and their probabilities for two rankings of equal length."""
    if len(a) > MOST:
        raise InvalidInput(f"optimized interleaving of {len(a)} documents: expected lists of at most {MOST}")
    lists = list_allowed(a, b)
    credit = np.array([[inverse_place(a, d) - inverse_place(b, d) for d in one] for one in lists])
    return lists, _solve(credit)


def list_allowed(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List all lists in which each document is the best of a or of b that is not yet on the list."""
    lists: list[tuple[int, ...]] = [()]
    for _ in a:
        lists = [(*one, d) for one in lists for d in sorted({_best_left(a, one), _best_left(b, one)})]
    return lists


def _best_left(ranking: tuple[int, ...], taken: tuple[int, ...]) -> int:
    return next(document for document in ranking if document not in taken)


def _solve(credit: np.ndarray) -> np.ndarray:
    """Probabilities of the lists: unbiased for random clicks in any top k, with the highest sensitivity."""
    from scipy.optimize import linprog

    bias = np.cumsum(credit, axis=1).T  # row k: the total credit of one click at each place of the top k
    constraints = np.vstack([np.ones(len(credit)), bias])
    wanted = np.zeros(len(constraints))
    wanted[0] = 1.0
    found = linprog(-_sensitivity(credit), A_eq=constraints, b_eq=wanted, bounds=(0, None), method="highs")
    if not found.success:
        raise InvalidInput(f"no unbiased distribution over {len(credit)} lists was found: {found.message}")
    chances = np.clip(found.x, 0.0, None)
    return np.asarray(chances / chances.sum())


def _sensitivity(credit: np.ndarray) -> np.ndarray:
    """For one click, at place k with probability ∝ 1/k: the winner's entropy, times P(there is one)."""
    at = 1.0 / np.arange(1, credit.shape[1] + 1)
    at /= at.sum()
    wins, losses = ((credit > 1e-12) * at).sum(axis=1), ((credit < -1e-12) * at).sum(axis=1)
    decided = wins + losses
    share = np.divide(wins, decided, out=np.full_like(wins, 0.5), where=decided > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nan_to_num(share * np.log2(share)) - np.nan_to_num((1 - share) * np.log2(1 - share))
    return np.asarray(decided * entropy)
