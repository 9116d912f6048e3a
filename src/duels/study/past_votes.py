"""Past votes: into a study, and out of it."""

import json
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np
import sqlalchemy as sa

from ..errors import InvalidInput
from ..storage.batches import Batch, Packed, note_of, unpack
from ..votes.files import read_votes
from ..votes.names import place_of
from ..votes.votes import Votes
from .duels import iso_time
from .history import History
from .log import Log


def exported_votes(study: Log) -> Votes:
    """Return the answers of a study that count; self-duels are left out."""
    exported = study.read(_exported)
    rows: dict[int, _VoteRow] = {}
    for event in study.read_log(exported.seq):
        if event.kind == "import":
            for duel, (winner, voter, time) in enumerate(study.imported_votes(event), event.duel or 0):
                if exported.counts(duel, 0):
                    rows[duel] = exported.row(duel, winner, voter, time)
        elif event.kind in ("tell", "vote"):
            duel = event.duel or 0
            if exported.counts(duel, event.attempt):
                note = json.loads(event.note) if event.note else {}
                time = note.get("voted", iso_time(event.time))
                rows[duel] = exported.row(duel, event.answer or "", event.voter, time)
    return read_votes(list(rows.values()))


def checked_batch(packed: Packed, study: str, names: Sequence[str]) -> tuple[dict[str, object], Batch]:
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
        raise InvalidInput(
            f"the votes are about arms that study {study!r} does not have: {', '.join(unknown[:5])}"
            f"{', …' if len(unknown) > 5 else ''}; add them with add_arm first"
        )
    note = note_of(packed, list(arm.values()))
    batch = unpack(packed.content, note, "the votes")
    same = np.flatnonzero(batch.left == batch.right)
    if len(same):
        raise InvalidInput(
            f"vote {same[0] + 1} compares {names[batch.left[same[0]]]!r} with itself, spelled differently: expected "
            "two arms"
        )
    return note, batch


class _VoteRow(TypedDict):
    left: str
    right: str
    winner: str
    voter: str | None
    time: str | None
    duel: str


class _Exported(NamedTuple):
    """What an export copies from a study's history, so that nobody waits while the log is read."""

    seq: int
    names: list[str]
    left: np.ndarray  # (duels,) int64
    right: np.ndarray  # (duels,) int64
    attempts: np.ndarray  # (duels,) int64: the attempt of the answer that counts, −1 if there is none

    def counts(self, duel: int, attempt: int | None) -> bool:
        return bool(self.attempts[duel] == attempt)

    def row(self, duel: int, winner: str, voter: str | None, time: str | None) -> _VoteRow:
        left, right = self.names[self.left[duel]], self.names[self.right[duel]]
        return {"left": left, "right": right, "winner": winner, "voter": voter, "time": time, "duel": str(duel)}


def _exported(connection: sa.Connection, history: History) -> _Exported:
    answers = history.answers
    left, right = np.array(history.left, np.int64), np.array(history.right, np.int64)
    attempts = np.full(len(left), -1, np.int64)
    attempts[answers.duels] = answers.attempts[answers.duels]
    attempts[left == right] = -1
    return _Exported(history.seq, history.names.copy(), left, right, attempts)
