"""Votes that a study already has: same arms, answer, voter and time."""

import numpy as np

from ..votes.names import imported_name
from ..votes.votes import NEVER, Votes


def count_known(given: Votes, there: Votes) -> int:
    """Return how many of the given votes are among others; the sides of the arms do not matter.

    Equal votes are counted one by one: of a vote that is given twice and there once, one is known. Votes without a
    time are never known.

    Args:
        given: The votes to import.
        there: The votes of the study.
    """
    if given.times is None or there.times is None:
        return 0
    times = given.times.microseconds[given.times.microseconds != NEVER]
    arms, voters = dict[str, int](), dict[str, int]()
    numbers = [_numbers(votes, arms, voters) for votes in (given, there)]
    parts = [
        _rows(votes, number, (len(arms), len(voters)), (int(times.min()), int(times.max())))
        for votes, number in zip((given, there), numbers)
    ]
    what, time, count = np.concatenate(parts, axis=1)
    order = np.lexsort((time, what))
    what, time = what[order], time[order]
    group = np.empty_like(order)  # equal votes have the same number
    group[order] = np.cumsum(np.append(False, (what[1:] != what[:-1]) | (time[1:] != time[:-1])))
    size, first = len(order) and int(group.max()) + 1, parts[0].shape[1]
    counts = np.zeros((2, size), np.int64)
    np.add.at(counts[0], group[:first], count[:first])
    np.add.at(counts[1], group[first:], count[first:])
    return int(counts.min(axis=0).sum())


def _numbers(votes: Votes, arms: dict[str, int], voters: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers for the names of its arms, and of its voters with 0 at the end, for none."""
    known = [] if votes.voters is None else votes.voters.names
    arm = [arms.setdefault(name, len(arms)) for name in votes.names]
    return np.array(arm), np.array([*(voters.setdefault(imported_name(name), len(voters) + 1) for name in known), 0])


def _rows(
    votes: Votes, numbers: tuple[np.ndarray, np.ndarray], sizes: tuple[int, int], between: tuple[int, int]
) -> np.ndarray:
    """(3, n) int64: what each vote between two times says, as one number; its time; and its count."""
    assert votes.times is not None
    time, (arm, voter), (arms, voters) = votes.times.microseconds, numbers, sizes
    chosen = np.flatnonzero((time >= between[0]) & (time <= between[1]))
    left, right, winner = arm[votes.left[chosen]], arm[votes.right[chosen]], votes.winner[chosen].astype(np.int64)
    winner = np.where((left > right) & (winner < 2), 1 - winner, winner)
    what = ((np.minimum(left, right) * arms + np.maximum(left, right)) * 4 + winner) * (voters + 1)
    what += 0 if votes.voters is None else voter[votes.voters.codes[chosen]]
    count = np.ones(len(chosen), np.int64) if votes.count is None else votes.count[chosen]
    return np.stack([what, time[chosen], count])
