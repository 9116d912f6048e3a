"""Count the subsets of the arms that are totally ordered, exactly or among random ones.

`beats` is a (K, K) bool array: whether i beats j more often than not.
"""

import numpy as np


def count_ordered_subsets(beats: np.ndarray, size: int, most_work: int = 1_000_000) -> int | None:
    """Count the subsets of `size` arms that are totally ordered; None if that is too much work.

    An ordered subset is its best arm followed by an ordered subset of the arms that it beats. Sets of arms are
    bits of an integer, so equal sets are counted once.
    """
    beaten = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in beats]
    known: dict[tuple[int, int], int] = {}
    work = 0

    def count(candidates: int, left: int) -> int:
        nonlocal work
        if left == 1:
            return candidates.bit_count()
        if candidates.bit_count() < left:
            return 0
        key = (candidates, left)
        if key not in known:
            work += candidates.bit_count()
            if work > most_work:
                raise OverflowError
            total, rest = 0, candidates
            while rest:
                best = (rest & -rest).bit_length() - 1
                rest &= rest - 1
                total += count(candidates & beaten[best], left - 1)
            known[key] = total
        return known[key]

    try:
        return count((1 << len(beats)) - 1, size)
    except (OverflowError, RecursionError):
        return None


def count_ordered_subsets_by_size(
    beats: np.ndarray, most_work: int = 1_000_000, most_additions: int = 50_000_000
) -> tuple[int, ...] | None:
    """Count the totally ordered subsets of 0, 1, …, K arms in one pass; None if that is too much work."""
    beaten = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in beats]
    known: dict[int, tuple[int, ...]] = {0: (1,)}
    work = additions = 0

    def counts(candidates: int) -> tuple[int, ...]:
        nonlocal work, additions
        if candidates not in known:
            work += candidates.bit_count()
            if work > most_work:
                raise OverflowError
            total, rest = [1] + [0] * candidates.bit_count(), candidates
            while rest:
                best = (rest & -rest).bit_length() - 1
                rest &= rest - 1
                smaller = counts(candidates & beaten[best])
                additions += len(smaller)
                if additions > most_additions:
                    raise OverflowError
                for size, found in enumerate(smaller, 1):
                    total[size] += found
            known[candidates] = tuple(total)
        return known[candidates]

    try:
        return counts((1 << len(beats)) - 1)
    except (OverflowError, RecursionError):
        return None


def count_ordered_among_random(beats: np.ndarray, size: int, samples: int, rng: np.random.Generator) -> int:
    """Count the totally ordered subsets among `samples` random ones."""
    ordered = 0
    batch = max(1, min(samples, 4_000_000 // len(beats)))
    for start in range(0, samples, batch):
        chosen = np.empty((min(batch, samples - start), 0), np.int64)
        # A subset can only be ordered if its first few arms are, so most are never drawn completely.
        while len(chosen) and chosen.shape[1] < size:
            chosen = _extend_rows(chosen, min(max(3, chosen.shape[1]), size - chosen.shape[1]), len(beats), rng)
            chosen = chosen[_all_ordered(beats, chosen)]
        ordered += len(chosen)
    return ordered


def _extend_rows(chosen: np.ndarray, more: int, arms: int, rng: np.random.Generator) -> np.ndarray:
    """Extend each row of distinct arms by `more` others, drawn uniformly from the rest."""
    rows, had = chosen.shape
    if (had + more) ** 2 > arms:
        keys = rng.random((rows, arms))
        np.put_along_axis(keys, chosen, 2.0, axis=1)
        return np.hstack([chosen, keys.argpartition(more - 1, axis=1)[:, :more]])
    drawn = np.hstack([chosen, np.zeros((rows, more), np.int64)])
    again = np.arange(rows)
    while len(again):  # rows with a repeated arm are drawn again
        drawn[again, had:] = rng.integers(arms, size=(len(again), more))
        ascending = np.sort(drawn[again], axis=1)
        again = again[(ascending[:, 1:] == ascending[:, :-1]).any(axis=1)]
    return drawn


def _all_ordered(beats: np.ndarray, subsets: np.ndarray) -> np.ndarray:
    """(rows,) bool: whether each row of arms is totally ordered, that is, has the scores 0 … size − 1."""
    arms, size = len(beats), subsets.shape[1]
    pairwise = 16 * size < arms  # looking up pairs is faster than a matrix product only for small subsets
    weights = beats.T if pairwise else beats.T.astype(np.float32)
    ordered = np.empty(len(subsets), dtype=bool)
    rows = 4_000_000 // (size**2 if pairwise else arms) + 1
    for start in range(0, len(subsets), rows):
        part = subsets[start : start + rows]
        if pairwise:
            wins = beats[part[:, :, None], part[:, None, :]].sum(axis=2)
        else:
            members = np.zeros((len(part), arms), dtype=np.float32)
            np.put_along_axis(members, part, 1.0, axis=1)
            wins = np.take_along_axis(members @ weights, part, axis=1)
        ordered[start : start + rows] = (np.sort(wins, axis=1) == np.arange(size)).all(axis=1)
    return ordered
