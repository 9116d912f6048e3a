"""Imported votes: one event of the log, and the votes themselves by columns beside it.

A million votes are a few megabytes, so an import is one short transaction. Names of voters are kept apart, since they
can be erased; the log's digests cover everything else.
"""

import hashlib
import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ..errors import DamagedStudy
from .tables import events, votes

if TYPE_CHECKING:
    from ..votes.files import Votes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NEVER = np.iinfo(np.int64).min  # the time of a vote that does not say
SMALLEST = (np.uint8, np.uint16, np.uint32)


class Packed(NamedTuple):
    """Votes ready to be stored."""

    names: tuple[str, ...]  # the arms, in the order of the numbers in `content`
    size: int
    content: bytes
    voters: bytes | None  # None if no vote says who gave it


class Batch(NamedTuple):
    """The votes of one import; arms are numbers of the study's."""

    left: np.ndarray  # (n,) int32
    right: np.ndarray  # (n,) int32
    answer: np.ndarray  # (n,) int8: index into ANSWERS
    times: np.ndarray | None  # (n,) int64: microseconds since 1970, NEVER where a vote does not say


class Voters(NamedTuple):
    """Who gave the votes of one import."""

    names: list[str]
    given: np.ndarray  # (n,) int32: index into names, −1 for nobody


def pack(given: "Votes", called: Callable[[str], str] = str) -> Packed:
    """Votes in the form in which they are stored; `called` says what a voter is called in the study."""
    smallest = next(kind for kind in SMALLEST if len(given.names) <= np.iinfo(kind).max)
    columns: dict[str, Any] = {
        "left": given.left.astype(smallest),
        "right": given.right.astype(smallest),
        "answer": given.winner,
    }
    if given.times is not None:
        columns["times"] = np.array([NEVER if time is None else _microseconds(time) for time in given.times], np.int64)
    voters = None
    if given.voters is not None:
        names = {voter: called(voter) for voter in dict.fromkeys(given.voters) if voter is not None}
        number = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}
        index = [-1 if voter is None else number[names[voter]] for voter in given.voters]
        voters = pack_voters(Voters(list(number), np.array(index, np.int32)))
    return Packed(given.names, len(given), _written(columns), voters)


def pack_voters(voters: Voters) -> bytes:
    names = np.frombuffer(json.dumps(voters.names).encode(), np.uint8)
    return _written({"names": names, "given": voters.given})


def note_of(packed: Packed, arms: Sequence[Any]) -> dict[str, Any]:
    """The note of the event: which of the study's arms the numbers stand for, and what the votes must be."""
    return {"votes": packed.size, "arms": list(arms), "digest": digest_of(packed.content)}


def digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def unpack(content: bytes | None, note: dict[str, Any], what: str) -> Batch:
    """The votes of an event with that note; refused unless they are what was written."""
    if content is None or digest_of(content) != note["digest"]:
        raise DamagedStudy(f"{what} are not what was written, or are missing: restore the database from a back-up")
    columns = _read(content)
    arms = np.array(note["arms"], np.int32)
    return Batch(arms[columns["left"]], arms[columns["right"]], columns["answer"], columns.get("times"))


def unpack_voters(content: bytes) -> Voters:
    columns = _read(content)
    return Voters(json.loads(columns["names"].tobytes()), columns["given"])


def store(connection: sa.Connection, study: int, seq: int, packed: Packed) -> None:
    """Keep the votes of an import event."""
    values = {"study_id": study, "seq": seq, "content": packed.content, "voters": packed.voters}
    connection.execute(sa.insert(votes).values(values))


def stored(connection: sa.Connection, study: int, seq: int) -> tuple[bytes | None, bytes | None]:
    """What was kept of an import event: the votes, and their voters."""
    chosen = sa.select(votes.c.content, votes.c.voters).where(votes.c.study_id == study, votes.c.seq == seq)
    row = connection.execute(chosen).first()
    return (None, None) if row is None else (row.content, row.voters)


def stored_voters(connection: sa.Connection, study: int, last: int) -> Iterator[tuple[Any, Voters]]:
    """The import events up to one (seq, duel, time) whose votes have voters, with these."""
    theirs = (votes.c.study_id == events.c.study_id) & (votes.c.seq == events.c.seq)
    chosen = sa.select(events.c.seq, events.c.duel, events.c.time, votes.c.voters).join(votes, theirs)
    chosen = chosen.where(events.c.study_id == study, events.c.seq <= last, votes.c.voters.is_not(None))
    for row in connection.execute(chosen).all():
        yield row, unpack_voters(row.voters)


def forget_voter(connection: sa.Connection, study: int, last: int, called: Collection[str]) -> list[int] | None:
    """Erase a voter's names from imported votes; the numbers of their duels, None if the names are nowhere."""
    duels: list[int] | None = None
    for event, voters in stored_voters(connection, study, last):
        kept = [number for number, name in enumerate(voters.names) if name not in called]
        if len(kept) == len(voters.names):
            continue
        renumbered = np.full(len(voters.names) + 1, -1, np.int32)  # the last one is nobody
        renumbered[kept] = range(len(kept))
        given = renumbered[voters.given]
        duels = (duels or []) + (event.duel + np.flatnonzero((voters.given >= 0) & (given < 0))).tolist()
        packed = pack_voters(Voters([voters.names[number] for number in kept], given))
        here = (votes.c.study_id == study) & (votes.c.seq == event.seq)
        connection.execute(sa.update(votes).where(here).values(voters=packed))
    return duels


def time_of(microseconds: int) -> str | None:
    """When a vote was given, as `Votes` has it."""
    if microseconds == NEVER:
        return None
    return f"{(EPOCH + int(microseconds) * MICROSECOND).isoformat()[:-6]}Z"


def _microseconds(time: str) -> int:
    return (datetime.fromisoformat(time) - EPOCH) // MICROSECOND


def _written(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **columns)
    return file.getvalue()


def _read(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
