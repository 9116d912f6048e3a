"""Votes that a study already has: same arms, answer, voter and time."""

import dataclasses
import json

import numpy as np
import sqlalchemy as sa

from ..storage.batches import Packed, digest_of
from ..storage.tables import events
from ..votes.names import name_imported
from ..votes.votes import NEVER, Votes
from .log import Log


def find_known_votes(given: Votes, there: Votes) -> np.ndarray:
    """Return (n,) int64: how many votes of each row are among others; the sides of the arms do not matter.

    Equal votes are counted one by one: of a vote that is given twice and there once, the first is known. Votes without
    a time are never known.

    Args:
        given: The votes to import, n rows.
        there: The votes of the study.
    """
    known = np.zeros(len(given), np.int64)
    if given.times is None or there.times is None or not len(there):
        return known
    times = given.times.microseconds[given.times.microseconds != NEVER]
    arms, voters = dict[str, int](), dict[str, int]()
    numbers = [_numbers(votes, arms, voters) for votes in (given, there)]
    parts = [
        _rows(votes, number, (len(arms), len(voters)), (int(times.min()), int(times.max())))
        for votes, number in zip((given, there), numbers)
    ]
    what, time, count, row = np.concatenate(parts, axis=1)
    order = np.lexsort((time, what))
    what, time = what[order], time[order]
    group = np.empty_like(order)  # equal votes have the same number
    group[order] = np.cumsum(np.append(False, (what[1:] != what[:-1]) | (time[1:] != time[:-1])))
    first = parts[0].shape[1]
    have = np.zeros(len(order) and int(group.max()) + 1, np.int64)
    np.add.at(have, group[first:], count[first:])
    by_group = np.argsort(group[:first], kind="stable")  # the rows that are given, equal ones together, in their order
    mine, size = group[:first][by_group], count[:first][by_group]
    before = np.cumsum(size) - size
    starts = np.append(True, mine[1:] != mine[:-1])
    before -= np.repeat(before[starts], np.diff(np.append(np.flatnonzero(starts), len(mine))))
    known[row[:first][by_group]] = np.clip(have[mine] - before, 0, size)
    return known


def without(votes: Votes, known: np.ndarray) -> Votes:
    """Return votes without those that are known.

    Args:
        votes: The votes.
        known: From `known_votes`.
    """
    counts = np.ones(len(votes), np.int64) if votes.count is None else votes.count
    kept = counts > known
    left = votes.only(kept)
    return left if votes.count is None else dataclasses.replace(left, count=(counts - known)[kept])


def was_imported(study: Log, packed: Packed) -> bool:
    """Return whether exactly these votes were imported into a study before; this also finds votes without a time."""
    kind = (events.c.study_id == study.id) & (events.c.kind == "import")
    with study.storage.read_connection() as connection:
        notes = connection.execute(sa.select(events.c.note).where(kind)).scalars().all()
    digest = digest_of(packed.content)
    return any(json.loads(note)["digest"] == digest for note in notes)


def _numbers(votes: Votes, arms: dict[str, int], voters: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers for the names of its arms, and of its voters with 0 at the end, for none."""
    known = [] if votes.voters is None else votes.voters.names
    arm = [arms.setdefault(name, len(arms)) for name in votes.names]
    return np.array(arm), np.array([*(voters.setdefault(name_imported(name), len(voters) + 1) for name in known), 0])


def _rows(
    votes: Votes, numbers: tuple[np.ndarray, np.ndarray], sizes: tuple[int, int], between: tuple[int, int]
) -> np.ndarray:
    """(4, n) int64: what each vote between two times says, as one number; its time; its count; and its row."""
    assert votes.times is not None
    time, (arm, voter), (arms, voters) = votes.times.microseconds, numbers, sizes
    chosen = np.flatnonzero((time >= between[0]) & (time <= between[1]))
    left, right, winner = arm[votes.left[chosen]], arm[votes.right[chosen]], votes.winner[chosen].astype(np.int64)
    winner = np.where((left > right) & (winner < 2), 1 - winner, winner)
    what = ((np.minimum(left, right) * arms + np.maximum(left, right)) * 4 + winner) * (voters + 1)
    what += 0 if votes.voters is None else voter[votes.voters.codes[chosen]]
    count = np.ones(len(chosen), np.int64) if votes.count is None else votes.count[chosen]
    return np.stack([what, time[chosen], count, chosen])
