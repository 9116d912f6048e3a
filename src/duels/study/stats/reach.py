"""Would the winner also win on other items, or with other people? A test that counts items or voters, not answers.

A cluster is an item or a voter. Its answers are not independent of each other, so each cluster counts once: by the mean
outcome of a pair's first m answers in it. m is fixed in advance. With the mean of all answers so far, whoever asks
could ask again where the mean is low, and stop where it is high. `docs/study/proofs.md` has the proof.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...votes.columns import ANSWERS
from .levels import LATER_SHARE, RARE_SHARE, share_of
from .tally import Bools, Floats, Ints

SIZES = (1, 4, 16)  # the m: how many answers of a pair a cluster counts with
# Clusters are few, and each stake costs a share of the evidence, so the stakes are few too. They are below 2, so that
# no bet can lose more than it has; the smallest one finds a mean of 52 %.
STAKES = np.geomspace(0.1, 1.8, 6)
POOLED = 10  # clusters: how much the other pairs count in the forecast of one
START_SHARE = 1 - LATER_SHARE - RARE_SHARE  # of δ, for the arms that were there at the start
IN_SIGHT = 100  # times as many clusters as there are: a forecast beyond that says nothing
LEFT, RIGHT = ANSWERS.index("left"), ANSWERS.index("right")


@dataclass(frozen=True)
class Reach:
    """How far a winner goes: beyond these items, or beyond these voters.

    Attributes:
        holds: Whether the winner also beats every other arm on other items like these, or with other people like these,
            each of them counted alike. Over all looks, it is ever wrong about any arm with probability at most δ.
        clusters: How many items, or voters, have compared the winner with another arm.
        prefer: In how many of them the winner's mean outcome is above ½, over all its answers there.
        split: In how many of them it is exactly ½.
        needed: About how many clusters in all would do if it goes on as it has; None if it holds, if the winner does
            not lead every other arm, or if that is more than `IN_SIGHT` times as many as there are.
    """

    holds: bool
    clusters: int
    prefer: int
    split: int
    needed: int | None


class _Groups(NamedTuple):
    """The winner's answers by opponent and cluster, in the order of their keys; one entry per group unless said."""

    opponent: Ints
    size: Ints  # how many answers it has
    begin: Ints  # where they begin in `time` and `total`
    time: Ints  # (answers,): the place of each answer in the log
    total: Ints  # (answers + 1,): twice the sum of the outcomes before it


class _Evidence(NamedTuple):
    """What the clusters say about each arm as an opponent, with one of the `SIZES`."""

    most: Floats  # (K,): the largest logarithm of the evidence so far; 0 before the first cluster
    clusters: Ints  # (K,): how many clusters it comes from
    fortunes: Floats  # (K, stakes): the logarithm of each gambler's fortune now


def find_reach(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    answer: npt.ArrayLike,
    cluster: npt.ArrayLike,
    *,
    winner: int,
    active: npt.ArrayLike,
    started_with: int,
    delta: float = 0.05,
) -> Reach:
    """Find out whether an arm also wins beyond the clusters that were asked.

    The promise covers all arms at all times, so `winner` may be any arm, chosen after looking.

    Args:
        left: (n,) int: Arms, of the answers that count and of open questions, in the order in which they were asked.
        right: (n,) int: Arms.
        answer: (n,) int: LEFT, RIGHT, TIE or BOTH_BAD of `record`, where both kinds of ties are half a win; negative
            for an open question, which counts as lost: how late answers come may depend on who wins.
        cluster: (n,) int: The number of the item, or of the voter; negative for none, which leaves the answer out.
        winner: The index of the arm.
        active: (K,) bool: False for a retired arm.
        started_with: How many arms there were at the start.
        delta: The probability that `Reach.holds` is ever wrong.

    Returns:
        What is known.
    """
    playing = np.asarray(active, bool)
    columns = np.asarray(left), np.asarray(right), np.asarray(answer), np.asarray(cluster)
    groups, clusters, prefer, split = _group(*columns, winner)
    found = [_weigh(groups, size, len(playing)) for size in SIZES]
    most = np.max([one.most for one in found], axis=0)
    others = np.arange(len(playing)) != winner
    levels = winner_levels(winner, len(playing), started_with, delta)
    if not (most >= levels)[others & ~playing].all():
        others &= playing
        levels = firm_levels(winner, len(playing), started_with, delta)
    holds = bool(others.any() and (most >= levels)[others].all())
    needed = None if holds else _forecast(found, np.flatnonzero(others), levels, clusters)
    return Reach(holds, clusters, prefer, split, needed)


def winner_levels(winner: int, arms: int, started_with: int, delta: float) -> Floats:
    """Return (K,) float64: the evidence that a winner needs against each arm, as a logarithm.

    Of each arm that is not the best, one pair is wrong; each later arm adds two pairs. Each pair has a chance for each
    of the `SIZES`.
    """
    later = np.maximum(winner, np.arange(arms)) + 1.0 - started_with
    pairs = np.where(later > 0, 2 * later * (later + 1) / LATER_SHARE, started_with / START_SHARE)
    return np.log(len(SIZES) * pairs / delta)


def firm_levels(winner: int, arms: int, started_with: int, delta: float) -> Floats:
    """Return (K,) float64: as `winner_levels`, for a winner that has not beaten the retired arms.

    It is a union over all pairs and both sides of each, with the shares of `levels.share`.
    """
    alone = share_of(RARE_SHARE * delta, started_with, winner, np.arange(arms))
    return np.asarray(np.log(2 * len(SIZES) / alone))


def _group(
    left: np.ndarray, right: np.ndarray, answer: np.ndarray, cluster: np.ndarray, winner: int
) -> tuple[_Groups, int, int, int]:
    """The winner's answers in groups, the number of clusters, and in how many it is preferred, or neither side is."""
    chosen = np.flatnonzero(((left == winner) | (right == winner)) & (left != right) & (cluster >= 0))
    first, said = left[chosen] == winner, answer[chosen]
    opponent = np.where(first, right[chosen], left[chosen]).astype(np.int64)
    twice = np.where(said == LEFT, 2 * first, np.where(said == RIGHT, 2 * ~first, 1)).astype(np.int64)
    answered = said >= 0
    twice[~answered] = 0
    # Clusters are few or many and their numbers may have gaps, so they are renumbered.
    code = cluster[chosen].astype(np.int64)
    seen = np.bincount(code) > 0 if len(code) else np.zeros(0, bool)
    code = (np.cumsum(seen) - 1)[code] if len(code) else code
    clusters = int(seen.sum())
    compared = np.bincount(code[answered], minlength=clusters) > 0
    lead = np.bincount(code[answered], twice[answered] - 1, minlength=clusters)

    key = opponent * clusters + code
    order = np.argsort(key, kind="stable")
    key = key[order]
    begin = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else key
    size = np.diff(np.append(begin, len(key)))
    total = np.concatenate([[0], np.cumsum(twice[order])])
    groups = _Groups(key[begin] // max(clusters, 1), size, begin, order, total)
    return groups, int(compared.sum()), int((lead > 0).sum()), int((compared & (lead == 0)).sum())


def _weigh(groups: _Groups, m: int, arms: int) -> _Evidence:
    """The evidence from clusters with at least m answers of a pair, in the order in which they reach m."""
    kept = groups.size >= m
    opponent, last = groups.opponent[kept], groups.begin[kept] + m
    twice = groups.total[last] - groups.total[last - m]  # 2m times the mean outcome
    order = np.lexsort((groups.time[last - 1], opponent))
    opponent, twice = opponent[order], twice[order]
    number = np.bincount(opponent, minlength=arms)
    most, fortunes = np.zeros(arms), np.zeros((arms, len(STAKES)))
    if not len(opponent):
        return _Evidence(most, number, fortunes)
    mean = np.arange(2 * m + 1) / (2 * m)
    steps = np.log1p(STAKES[:, None] * (mean - 0.5))
    met = np.flatnonzero(number)
    begin = np.cumsum(number)[met] - number[met]

    def fortune(step: Floats) -> Floats:
        gained = np.cumsum(step[twice])
        before = np.append(0.0, gained)[begin]
        return np.asarray(gained - np.repeat(before, number[met]))

    # Twice through the stakes, since all fortunes at once would take a number per cluster and stake.
    top = np.full(len(twice), -np.inf)
    for k, step in enumerate(steps):
        one = fortune(step)
        np.maximum(top, one, out=top)
        fortunes[met, k] = one[begin + number[met] - 1]
    total = np.zeros(len(twice))
    for step in steps:
        total += np.exp(fortune(step) - top)
    evidence = top + np.log(total) - math.log(len(STAKES))
    most[met] = np.maximum(np.maximum.reduceat(evidence, begin), 0.0)
    return _Evidence(most, number, fortunes)


def _forecast(found: list[_Evidence], others: Ints, levels: Floats, clusters: int) -> int | None:
    """How many clusters in all would do, for the slowest of the pairs that are still open."""
    fewest = np.full(len(others), np.inf)
    for one in found:
        n, fortunes = one.clusters[others], one.fortunes[others]
        more = _clusters_to_go(fortunes, n, levels[others], IN_SIGHT * clusters)
        # Not every cluster has m answers of this pair; of those to come, as many will as so far.
        with np.errstate(divide="ignore", invalid="ignore"):
            fewest = np.fmin(fewest, np.where(one.most[others] >= levels[others], 0.0, clusters * (n + more) / n))
    slowest = float(fewest.max(initial=0.0))
    return math.ceil(slowest) if 0 < slowest <= IN_SIGHT * clusters else None


def _clusters_to_go(fortunes: Floats, n: Ints, levels: Floats, most: float) -> Floats:
    """(pairs,): how many more clusters the evidence needs to reach its level; infinite beyond `most`.

    Each gambler's fortune grows as it has. Few clusters say little about that, and the slowest of several pairs looks
    slower than it is, so `POOLED` more clusters are like those of all pairs together, and one more is for the winner
    and against it in equal parts.
    """
    even = np.log1p(STAKES / 2) / 2 + np.log1p(-STAKES / 2) / 2
    pooled = fortunes.sum(axis=0) / max(int(n.sum()), 1)
    growth = (fortunes + POOLED * pooled + even) / (n[:, None] + POOLED + 1)

    def is_reached(more: Floats) -> Bools:
        return np.asarray(_log_mean(fortunes + more[:, None] * growth) >= levels)

    low, high = np.zeros(len(n)), np.full(len(n), float(most))
    possible = (
        is_reached(high) & (fortunes.max(axis=1, initial=-np.inf) > 0) & (growth.max(axis=1, initial=-np.inf) > 0)
    )
    for _ in range(40):
        middle = (low + high) / 2
        enough = is_reached(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(possible, high, np.inf)


def _log_mean(logarithms: Floats) -> Floats:
    top = logarithms.max(axis=1)
    return np.asarray(top + np.log(np.exp(logarithms - top[:, None]).sum(axis=1)) - math.log(len(STAKES)))
