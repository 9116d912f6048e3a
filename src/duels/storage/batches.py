"""Imported votes: one event in the log, and a compressed table of the votes beside it.

A million votes take a few megabytes, so an import is one short transaction. Names of voters are stored separately,
because they can be erased; the log's digests cover everything else.
"""

import hashlib
import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..errors import DamagedStudy
from ..files import pack_arrays
from .tables import events, votes

if TYPE_CHECKING:
    from ..votes.votes import Votes

SMALLEST = (np.uint8, np.uint16, np.uint32)


class Packed(NamedTuple):
    """Votes in the form in which they are stored."""

    names: tuple[str, ...]  # the arms, in the order of the numbers in `content`
    size: int  # rows
    total: int  # votes; more than rows if there are counts
    content: bytes
    voters: bytes | None  # None if no vote names its voter


class Batch(NamedTuple):
    """The votes of one import; arms are indices of the study's arms."""

    left: np.ndarray  # (n,) int32
    right: np.ndarray  # (n,) int32
    answer: np.ndarray  # (n,) int8: index into ANSWERS
    times: np.ndarray | None  # (n,) int64: microseconds since 1970, or NEVER
    count: np.ndarray | None = None  # type: ignore[assignment]  # (n,) int64: votes per row; None if that is 1


class Voters(NamedTuple):
    """The voters of one import."""

    names: list[str]
    given: np.ndarray  # (n,) int32: for each vote the index of its voter, −1 if it names none


class VotersEvent(NamedTuple):
    """The import event that voters belong to."""

    seq: int
    duel: int  # the number of its first vote
    time: float


def pack(given: "Votes", called: Callable[[str], str] = str) -> Packed:
    """Pack votes for storing.

    Args:
        given: The votes.
        called: Returns what a voter is called in the study.
    """
    smallest = next(kind for kind in SMALLEST if len(given.names) <= np.iinfo(kind).max)
    columns: dict[str, np.ndarray] = {
        "left": given.left.astype(smallest),
        "right": given.right.astype(smallest),
        "answer": given.winner,
    }
    if given.times is not None:
        columns["times"] = given.times.microseconds
    if given.count is not None:
        columns["count"] = given.count
    voters = None
    if given.voters is not None:
        names = list(map(called, given.voters.names))
        number = {name: place for place, name in enumerate(dict.fromkeys(names))}
        place = np.array([*(number[name] for name in names), -1], np.int32)
        voters = pack_voters(Voters(list(number), place[given.voters.codes]))
    return Packed(given.names, len(given), given.total, pack_arrays(columns), voters)


def pack_voters(voters: Voters) -> bytes:
    """Pack voters for storing."""
    names = np.frombuffer(json.dumps(voters.names).encode(), np.uint8)
    return pack_arrays({"names": names, "given": voters.given})


def note_of(packed: Packed, arms: Sequence[int | None]) -> dict[str, Any]:
    """Return the note of an import event: the study's index of each arm, and the digest of the votes."""
    rows = {} if packed.size == packed.total else {"rows": packed.size}
    return {"votes": packed.total, **rows, "arms": list(arms), "digest": digest_of(packed.content)}


def digest_of(content: bytes) -> str:
    """Return the digest by which packed votes are checked."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def unpack(content: bytes | None, note: dict[str, Any], what: str) -> Batch:
    """Unpack the votes of an import event.

    Args:
        content: The packed votes.
        note: The event's note.
        what: What to call the votes in an error.

    Raises:
        DamagedStudy: If they are not what was written.
    """
    if content is None or digest_of(content) != note["digest"]:
        raise DamagedStudy(f"{what} are not what was written, or are missing: restore the database from a back-up")
    columns = _read(content)
    arms = np.array(note["arms"], np.int32)
    left, right = arms[columns["left"]], arms[columns["right"]]
    return Batch(left, right, columns["answer"], columns.get("times"), columns.get("count"))


def unpack_voters(content: bytes) -> Voters:
    """Unpack the voters of an import event."""
    columns = _read(content)
    return Voters(json.loads(columns["names"].tobytes()), columns["given"])


def store(connection: sa.Connection, study: int, seq: int, packed: Packed) -> None:
    """Store the votes of an import event."""
    values = {"study_id": study, "seq": seq, "content": packed.content, "voters": packed.voters}
    connection.execute(sa.insert(votes).values(values))


def read_stored(connection: sa.Connection, study: int, seq: int) -> tuple[bytes | None, bytes | None]:
    """Return what was stored for an import event: the packed votes, and their packed voters."""
    chosen = sa.select(votes.c.content, votes.c.voters).where(votes.c.study_id == study, votes.c.seq == seq)
    row = connection.execute(chosen).first()
    return (None, None) if row is None else (row.content, row.voters)


def read_stored_voters(connection: sa.Connection, study: int, last: int) -> Iterator[tuple[VotersEvent, Voters]]:
    """Yield the voters of each import event up to the event `last`, if its votes name any."""
    theirs = (votes.c.study_id == events.c.study_id) & (votes.c.seq == events.c.seq)
    chosen = sa.select(events.c.seq, events.c.duel, events.c.time, votes.c.voters).join(votes, theirs)
    chosen = chosen.where(events.c.study_id == study, events.c.seq <= last, votes.c.voters.is_not(None))
    for row in connection.execute(chosen).all():
        yield VotersEvent(row.seq, row.duel, row.time), unpack_voters(row.voters)


def forget_voter(connection: sa.Connection, study: int, last: int, called: Collection[str]) -> list[int] | None:
    """Erase a voter from imported votes.

    Args:
        connection: The transaction's connection.
        study: The study's id.
        last: The last event to look at.
        called: The forms of the voter's name.

    Returns:
        The numbers of the voter's duels; None if no import has that name.
    """
    duels: list[int] | None = None
    for event, voters in read_stored_voters(connection, study, last):
        kept = [number for number, name in enumerate(voters.names) if name not in called]
        if len(kept) == len(voters.names):
            continue
        renumbered = np.full(len(voters.names) + 1, -1, np.int32)  # the last entry is for votes without a voter
        renumbered[kept] = range(len(kept))
        given = renumbered[voters.given]
        duels = (duels or []) + (event.duel + np.flatnonzero((voters.given >= 0) & (given < 0))).tolist()
        packed = pack_voters(Voters([voters.names[number] for number in kept], given))
        here = (votes.c.study_id == study) & (votes.c.seq == event.seq)
        connection.execute(sa.update(votes).where(here).values(voters=packed))
    return duels


def _read(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
