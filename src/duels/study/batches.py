"""Imported votes: one event of the log, and the votes themselves by columns beside it.

A million votes are a few megabytes, so an import is one short transaction. Names of voters are kept apart, since they
can be erased; the log's digests cover everything else.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import StorageError

if TYPE_CHECKING:
    from .votes import Votes

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


def pack(votes: "Votes") -> Packed:
    """Votes in the form in which they are stored."""
    smallest = next(kind for kind in SMALLEST if len(votes.names) <= np.iinfo(kind).max)
    columns: dict[str, Any] = {
        "left": votes.left.astype(smallest),
        "right": votes.right.astype(smallest),
        "answer": votes.winner,
    }
    if votes.times is not None:
        columns["times"] = np.array([NEVER if time is None else _microseconds(time) for time in votes.times], np.int64)
    voters = None
    if votes.voters is not None:
        number: dict[str | None, int] = {None: -1}
        index = [number.setdefault(voter, len(number) - 1) for voter in votes.voters]
        voters = pack_voters(Voters([name for name in number if name is not None], np.array(index, np.int32)))
    return Packed(votes.names, len(votes), _written(columns), voters)


def pack_voters(voters: Voters) -> bytes:
    names = np.frombuffer(json.dumps(voters.names).encode(), np.uint8)
    return _written({"names": names, "given": voters.given})


def note_of(packed: Packed, arms: Sequence[int]) -> dict[str, Any]:
    """The note of the event: which of the study's arms the numbers stand for, and what the votes must be."""
    return {"votes": packed.size, "arms": list(arms), "digest": digest_of(packed.content)}


def digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def unpack(content: bytes | None, note: dict[str, Any], what: str) -> Batch:
    """The votes of an event with that note; refused unless they are what was written."""
    if content is None or digest_of(content) != note["digest"]:
        raise StorageError(f"{what} are not what was written, or are missing: restore the database from a back-up")
    columns = _read(content)
    arms = np.array(note["arms"], np.int32)
    return Batch(arms[columns["left"]], arms[columns["right"]], columns["answer"], columns.get("times"))


def unpack_voters(content: bytes) -> Voters:
    columns = _read(content)
    return Voters(json.loads(columns["names"].tobytes()), columns["given"])


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
