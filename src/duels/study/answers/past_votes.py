"""Past votes: into a study, and out of it.

Votes that a study already has: same arms, answer, voter and time.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from ...errors import InvalidInput
from ...storage.batches import Batch, Packed, digest_of, note_of, unpack
from ...storage.tables import events
from ...votes.columns import ANSWERS
from ...votes.names import name_imported, place_of
from ...votes.parse_rows import find_used_names, moment_of
from ...votes.votes import NEVER, Column, Times, Votes
from ..base import Imported
from ..duels import iso_time
from ..event_study import EventStudy
from ..items import Item, item_in, list_items
from ..state.live import LiveState

if TYPE_CHECKING:
    import polars as pl


LISTED = 50  # arms that an error names
MOST_VOTES = 10**12  # of a study: with more, rounding errors of the evidence are no longer small


class UnknownArms(InvalidInput):
    """Votes about arms that a study does not have.

    Attributes:
        arms: Their names.
    """

    arms: Sequence[str] = ()


class PastVotes(NamedTuple):
    """The votes of a file, to be imported."""

    packed: Packed
    note: str | None  # if the next pair of voters depends on their own answers, see `paths`


def export_votes(study: EventStudy, items: bool = False) -> Votes:
    """Return the answers of a study that count; self-duels are left out.

    The number of the item that a duel was about, and what the voter wrote, are the further columns item and comment, if
    any duel has them.

    Args:
        study: The study.
        items: Whether to add the prompts and outputs of the items too, as the further columns prompt, left_output and
            right_output.
    """
    exported, shown, said = study._log.read(_collect_exported), dict[int, int](), dict[int, str]()
    found = _Found(exported)
    for event in study._log.read_log(exported.seq):
        if event.kind == "ask" and event.note and (item := item_in(event.note)) is not None:
            shown[event.duel or 0] = item
        if event.kind == "import":
            found.add_import(event.duel or 0, study._log.read_imported(event.seq, event.note), iso_time(event.time))
        elif event.kind == "tell":
            note = json.loads(event.note) if event.note else {}
            answer = ANSWERS.index(event.answer)
            if found.add(event.duel or 0, event.attempt, answer, event.voter, iso_time(event.time)):
                said |= {event.duel or 0: note["note"]} if "note" in note else {}
    votes = found.votes(f"study {study.name!r}")
    return dataclasses.replace(votes, extra=_further(study, votes, shown, said, items)) if shown or said else votes


def _further(
    study: EventStudy, votes: Votes, shown: dict[int, int], said: dict[int, str], items: bool
) -> "dict[str, pl.Series]":
    import polars as pl

    duels = [int(duel or 0) for duel in votes.duels or ()]
    about = pl.Series("item", [shown.get(duel) for duel in duels], dtype=pl.Int64)
    words = pl.Series("comment", [said.get(duel) for duel in duels], dtype=pl.String)
    found = {column.name: column for column in (about, words) if column.null_count() < len(column)}
    return found | (_outputs(study, votes, shown) if items and shown else {})


def _outputs(study: EventStudy, votes: Votes, shown: dict[int, int]) -> "dict[str, pl.Series]":
    """Prompt and outputs of each vote; None where its item was removed, and for images."""
    import polars as pl

    known, last = dict[int, Item](), 0
    while page := list_items(study, last, 1000):
        known |= page
        last = page[-1][0]
    empty = Item("", {})
    about = [known.get(shown.get(int(duel or 0), -1), empty) for duel in votes.duels or ()]
    found: dict[str, list[str | None]] = {"prompt": [item.prompt if item is not empty else None for item in about]}
    for side, arms in (("left_output", votes.left), ("right_output", votes.right)):
        outputs = [item.outputs.get(votes.names[arm]) for item, arm in zip(about, arms.tolist())]
        found[side] = [None if one is None or one.kind == "image" else one.content for one in outputs]
    return {name: pl.Series(name, cells, dtype=pl.String) for name, cells in found.items()}


def check_batch(packed: Packed, study: str, names: Sequence[str]) -> tuple[dict[str, object], Batch]:
    """Return the note of an import's event, and the votes.

    Args:
        packed: The votes.
        study: The study's name.
        names: Its arms.

    Raises:
        InvalidInput: If they are about arms that the study does not have.
    """
    exact = {name: number for number, name in enumerate(names)}
    arm = {name: exact[name] if name in exact else place_of(name, names) for name in packed.names}
    unknown = [name for name, number in arm.items() if number is None]
    if unknown:
        shown = ", ".join(name[:200] for name in unknown[:LISTED])
        more = f" and {len(unknown) - LISTED:,} more" if len(unknown) > LISTED else ""
        error = UnknownArms(
            f"the votes are about arms that study {study!r} does not have: {shown}{more}; add them with add_arm first"
        )
        error.arms = unknown
        raise error
    note = note_of(packed, list(arm.values()))
    batch = unpack(packed.content, note, "the votes")
    if batch.count is not None and (batch.count < 1).any():
        raise InvalidInput(f"a count of votes is {batch.count.min():,}: expected 1 or more")
    if batch.count is not None and batch.count.sum(dtype=np.float64) > MOST_VOTES:
        raise too_many(study)
    same = np.flatnonzero(batch.left == batch.right)
    if len(same):
        raise InvalidInput(
            f"vote {same[0] + 1} compares {names[batch.left[same[0]]]!r} with itself, spelled differently: expected "
            "two arms"
        )
    return note, batch


def too_many(study: str) -> InvalidInput:
    """Return the error of an import after which a study would have too many votes."""
    return InvalidInput(f"study {study!r} would have more votes than the limit of {MOST_VOTES:,}")


class Ids(Column):
    """The ids of duels, as `Votes` has them."""

    def __init__(self, numbers: np.ndarray) -> None:
        self._numbers = numbers

    def _all(self) -> np.ndarray:
        return self._numbers

    def _cells(self, chosen: np.ndarray) -> list[str | None]:
        return list(map(str, chosen.tolist()))


class _Exported(NamedTuple):
    """What an export copies from a study's history, so that the log is read without holding the lock."""

    seq: int
    names: list[str]
    left: np.ndarray  # (duels,) int64
    right: np.ndarray  # (duels,) int64
    attempts: np.ndarray  # (duels,) int64: the attempt of the answer that counts, −1 if there is none
    votes: np.ndarray  # (duels,) int64: how many votes each duel stands for


class _Found:
    """The votes of an export so far, by columns: duel, winner, voter and time."""

    def __init__(self, exported: _Exported) -> None:
        self._exported = exported
        self._voters: dict[str, int] = {}
        self._imports = list[np.ndarray]()  # each (4, n) int64
        self._singles = list[tuple[int, int, int, int]]()  # since the last import

    def _voter(self, name: str | None) -> int:
        name = name and name.strip()
        return self._voters.setdefault(name, len(self._voters)) if name else -1

    def add(self, duel: int, attempt: int | None, winner: int, voter: str | None, time: str) -> bool:
        """Add an answer; returns whether it counts."""
        counts = bool(self._exported.attempts[duel] == attempt)
        if counts:
            self._singles.append((duel, winner, self._voter(voter), moment_of(time)))
        return counts

    def add_import(self, first: int, given: Imported, time: str) -> None:
        size = len(given.batch.answer)
        duels = np.arange(first, first + size)
        times = np.full(size, NEVER) if given.batch.times is None else given.batch.times
        voters = np.full(size, -1)
        if given.voters is not None:
            voters = np.array([*map(self._voter, given.voters.names), -1])[given.voters.given]
        times = np.where(times == NEVER, moment_of(time), times)
        self._end_singles()
        kept = self._exported.attempts[duels] == 0
        self._imports.append(np.stack([duels, given.batch.answer, voters, times])[:, kept])

    def _end_singles(self) -> None:
        self._imports.append(np.array(self._singles, np.int64).reshape(-1, 4).T)
        self._singles.clear()

    def votes(self, source: str) -> Votes:
        self._end_singles()
        duels, winner, voter, time = np.concatenate(self._imports, axis=1)
        left, right = self._exported.left[duels], self._exported.right[duels]
        shown = list(dict.fromkeys(np.stack([left, right], axis=1).ravel().tolist()))
        place = np.zeros(len(self._exported.names), np.int64)
        place[shown] = range(len(shown))
        count = self._exported.votes[duels]
        return Votes(
            tuple(self._exported.names[arm] for arm in shown),
            place[left],
            place[right],
            winner.astype(np.int8),
            np.arange(1, len(duels) + 1),
            find_used_names(list(self._voters), voter.astype(np.int32)),
            Times(time) if len(time) else None,
            Ids(duels) if len(duels) else None,
            0,
            "left, right, winner, voter, time, duel",
            source,
            count=None if (count == 1).all() else count,
        )


def _collect_exported(connection: sa.Connection, history: LiveState) -> _Exported:
    answers = history.answers
    left, right = np.array(history.left, np.int64), np.array(history.right, np.int64)
    attempts = np.full(len(left), -1, np.int64)
    attempts[answers.duels] = answers.attempts[answers.duels]
    attempts[left == right] = -1
    votes = history.votes_of(np.arange(len(left)))
    return _Exported(history.seq, history.names.copy(), left, right, attempts, votes)


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


def was_imported(study: EventStudy, packed: Packed) -> bool:
    """Return whether exactly these votes were imported into a study before; this also finds votes without a time."""
    kind = (events.c.study_id == study._log.id) & (events.c.kind == "import")
    with study._log.storage.read_connection() as connection:
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
