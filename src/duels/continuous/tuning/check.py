"""Whether the log of a tuning study is what was written, and its questions are those of its policy."""

import json
import warnings
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import DamagedStudy, InvalidInput, format_count
from ...storage.storage import Event
from ...study.state.live import LiveState
from ..policies import load_policy
from ..policies.context import Memory
from ..spaces import Setting, Space
from .choose import AskedSettings, choose_duel, code, collect_known

if TYPE_CHECKING:
    from .log import TuningLog

TOLERANCE = 1e-3  # of a side of the cube, in which a question may differ from the one that the policy asks


class _Ask(NamedTuple):
    seq: int
    number: int
    time: float
    swapped: int
    note: dict[str, Any]


def check(log: "TuningLog") -> int:
    """Replay a log and all choices, see `TuningStudy.check`."""
    last = log.history().seq
    asks, waiting = list[_Ask](), defaultdict[int, list[_Ask]](list)
    for event in log.read_log(last):
        if event.kind == "create":
            _check_space(log, event)
        if event.kind == "ask":
            one = _ask_of(log, event, len(asks))
            asks.append(one)
            if "imported" not in one.note:
                waiting[one.note["after"]].append(one)
    replay = _Replay(log, asks)
    differing = 0
    for event in log.read_log(last):
        replay.history.apply([event])
        for one in waiting.pop(event.seq, ()):
            differing += not replay.agrees(one)
    if differing:
        warnings.warn(
            f"{format_count(differing, 'question')} of study {log.name!r} differ from what policy {log.row.policy} "
            "asks here: another version chose them, or another processor, whose last digits differ. The log is "
            "complete, but whether they are the policy's own was not checked",
            stacklevel=4,
        )
    return replay.history.seq


def _check_space(log: "TuningLog", event: Event) -> None:
    if json.loads(event.note or "{}").get("space") != log.row.settings["space"]:
        raise DamagedStudy(f"the space of study {log.name!r} is not what was written: it was tampered with")


def _ask_of(log: "TuningLog", event: Event, number: int) -> _Ask:
    note = json.loads(event.note or "{}")
    try:
        for side in ("left", "right"):
            log.space.check(note.get(side))
    except InvalidInput as error:
        raise DamagedStudy(f"event {event.seq} of study {log.name!r} asks about no settings: {error}") from None
    if event.duel != number or not ("imported" in note or 0 < note.get("after", 0) < event.seq):
        raise DamagedStudy(f"event {event.seq} of study {log.name!r} is not a question: it was tampered with")
    return _Ask(event.seq, number, event.time, event.swapped or 0, note)


class _Replay:
    """The log so far, and what the policy asks after it."""

    def __init__(self, log: "TuningLog", asks: list[_Ask]) -> None:
        self.log, self.asks = log, asks
        self.history, self._memory = LiveState(log.row), Memory()
        self._policy = load_policy(log.row.policy)
        self._asked = AskedSettings(log.space)
        self._asked.take([json.dumps(one.note) for one in asks])

    def agrees(self, one: _Ask) -> bool:
        """Whether a question is the policy's; raise if it is not, and digits cannot be the reason."""
        known, lease = collect_known(self.history, one.time), self.log.row.lease
        since = [number for number in range(known.number, one.number) if one.time - self.asks[number].time < lease]
        points = self._asked.points(known.answered, known.outcome, [*known.open, *since])
        space = self.log.space
        choice = choose_duel(self._policy, self.log.row.seed, space, points, one.number, self._memory)
        written = (one.note["left"], one.note["right"])
        same = choice.swapped == one.swapped and all(
            map(partial(is_close, space), (choice.left, choice.right), written)
        )
        if not same and one.note.get("by") == code():
            raise DamagedStudy(
                f"event {one.seq} of study {self.log.name!r} asks what policy {self.log.row.policy} would not: "
                "the log was tampered with"
            )
        return same


def is_close(space: Space, one: Setting, other: Setting) -> bool:
    """Return whether two settings are the same within `TOLERANCE` of each parameter's range; choices must be equal."""
    return bool(np.all(np.abs(space.encode(one) - space.encode(other)) <= TOLERANCE))
