"""What a tuning study asks next: a pure function of its seed and its log.

A choice knows all answers up to some event, which its note names, and all duels that were asked before it. Those that
are open within their lease, and those whose answers came after that event, count as ties, so that many questions at
once spread out.
"""

import hashlib
import json
import platform
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...study.state.counts import SKIP
from ...study.state.live import OUTCOME, LiveState
from ..model.model import Answers
from ..policies import ASKING, Policy, decode_pair, generator
from ..policies.context import History, Memory, Situation
from ..spaces import Setting, Space

SIDES = 6  # spawn key of the coins that decide which setting is on the left; see `policies`
WEIGHTS = (1, 4, 16, 64)  # as how many ties open duels count, see `chosen` …
MOST_TIES = 256  # … together
NEAR = 0.02  # of each side of the cube: two duels that differ by less are almost the same
MOST_OPEN = 100  # open duels that a choice knows, the newest: with a crowd, each choice must stay quick
LOOKED_AT = 1000  # newest duels among which skipped ones are looked for
CONTRASTED = ("eubo",)  # policies that soon ask about good settings only
EVERY = 4  # until a preference is found, each such question of theirs is a contrast, see `ask`
MOST, FIRST, STEP = 400, 100, 40  # answers that the model learns from, the oldest among them, and see `modeled`


class Seen(NamedTuple):
    """What a choice may know of a study's log."""

    seq: int  # the last event
    number: int  # how many duels were asked
    answered: np.ndarray  # (n,) int64: the answered duels, in the order of the answers
    outcome: np.ndarray  # (n,) float64: of the setting on the left
    open: tuple[int, ...]  # those that were skipped and then the open duels, within their lease


class Choice(NamedTuple):
    """A duel that is about to be asked."""

    number: int
    left: Setting
    right: Setting
    swapped: int  # 1 where the policy's first setting is on the right
    after: int  # the event up to which answers were known
    time: float  # when that was, in seconds since 1970

    def note(self) -> dict[str, Any]:
        """Return what the log keeps."""
        return {"left": self.left, "right": self.right, "after": self.after, "by": code()}


def collect_known(history: LiveState, now: float) -> Seen:
    """Return what a choice at this time may know. The history must not change meanwhile."""
    answered = np.array(history.answered, np.int64)
    outcome = OUTCOME[np.frombuffer(history.answer, np.int8)[answered]] if len(answered) else np.empty(0)
    waiting = (*find_skipped(history, now), *history.list_leased(now))
    return Seen(history.seq, len(history.left), answered, outcome, waiting)


def find_skipped(history: LiveState, now: float) -> list[int]:
    """Return the duels that were skipped and are within their lease, of the newest ones.

    They count as open, so that somebody who has skipped a question is not asked the same one again.
    """
    newest = range(max(0, len(history.left) - LOOKED_AT), len(history.left))
    fresh = (duel for duel in newest if abs(now - history.asked[duel]) < history.row.lease)
    return [duel for duel in fresh if history.answer[duel] == SKIP and duel not in history.forgotten]


def choose_modeled(answers: int) -> np.ndarray:
    """Return which answers the model learns from: all, or the first ones and the newest if there are more than `MOST`.

    The newest begin at a multiple of `STEP`, so that the model's hyperparameters stay the same for a while.
    """
    dropped = -(-max(answers - MOST, 0) // STEP) * STEP
    return np.concatenate([np.arange(min(FIRST, answers)), np.arange(FIRST + dropped, answers)])


class AskedSettings:
    """The settings of a study's duels as points of the cube; each is decoded once.

    Args:
        space: The study's space.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.count = 0
        self._left = self._right = np.empty((0, len(space)))

    def take(self, notes: Sequence[str]) -> None:
        """Add the notes of further duels."""
        if not notes:
            return
        settings = [json.loads(note) for note in notes]
        while self.count + len(notes) > len(self._left):
            room = np.empty((max(len(self._left), 64), len(self.space)))
            self._left, self._right = np.vstack([self._left, room]), np.vstack([self._right, room])
        for side, points in (("left", self._left), ("right", self._right)):
            found = [self.space.encode(one[side]) for one in settings]
            points[self.count : self.count + len(notes)] = found
        self.count += len(notes)

    def answers(self, answered: np.ndarray, outcome: np.ndarray) -> Answers:
        """Return all answers, in the order in which they were given."""
        return Answers(self._left[answered], self._right[answered], outcome)

    def points(self, answered: np.ndarray, outcome: np.ndarray, open: Sequence[int] = ()) -> History:
        """Return duels as a policy sees them: the answered ones that are modeled, then the open ones."""
        kept = choose_modeled(len(answered))
        duels = np.concatenate([answered[kept], np.array(open, np.int64)])
        return History(self._left[duels], self._right[duels], np.append(outcome[kept], np.full(len(open), np.nan)))


def choices(
    policy: Policy, seed: int, asked: AskedSettings, known: Seen, memory: Memory, now: float
) -> Iterator[Choice]:
    """Choose the next duels, one after the other; each knows those before it as open.

    Args:
        policy: The policy.
        seed: The study's seed.
        asked: The settings of all duels so far.
        known: What may be known of the log.
        memory: Fits to reuse.
        now: The time at which `known` was seen.
    """
    points, space = asked.points(known.answered, known.outcome, known.open), asked.space
    for number in range(known.number, 2**31):
        choice = choose_duel(policy, seed, space, points, number, memory)._replace(after=known.seq, time=now)
        yield choice
        points = points.with_duel(space.encode(choice.left), space.encode(choice.right), np.nan)


def choose_duel(policy: Policy, seed: int, space: Space, points: History, number: int, memory: Memory) -> Choice:
    """Choose one duel; a coin decides which setting is on the left, so that sides mean nothing.

    Of the open duels, only the newest count.

    One more tie hardly changes what noisy answers say, and a policy may want the duel that is open already, or one very
    near. Open duels then count as more ties.
    """
    old = np.flatnonzero(np.isnan(points.outcome))[:-MOST_OPEN]
    points = History(*(np.delete(column, old, axis=0) for column in points)) if len(old) else points
    is_open = np.isnan(points.outcome)
    waiting = np.hstack([points.left[is_open], points.right[is_open]])
    for weight in WEIGHTS:
        if weight > 1 and weight * len(waiting) > MOST_TIES:
            break
        rows = np.append(np.arange(len(is_open)), np.repeat(np.flatnonzero(is_open), weight - 1))
        known = History(*(column[rows] for column in points))
        first, second = ask(policy, space, known, seed, number, memory)
        if not _is_near(space.encode(first), space.encode(second), waiting):
            break
    swapped = int(generator(seed, SIDES, number).integers(2))
    left, right = (second, first) if swapped else (first, second)
    return Choice(number, left, right, swapped, 0, 0.0)


def ask(
    policy: Policy, space: Space, known: History, seed: int, number: int, memory: Memory
) -> tuple[Setting, Setting]:
    """Ask the policy for two settings, or compare the best setting with one that should clearly lose.

    Answers about settings that are all good look like coin tosses, even if people have clear preferences. So until a
    preference is found, some questions are contrasts, whose answers are evidence. A simulation needs no evidence, and
    asks the policy alone.
    """
    count = len(known.outcome)
    if policy.name in CONTRASTED and count >= policy.initial(space) and not count % EVERY:
        rng = generator(seed, ASKING, number)
        situation = policy.situation(space, known, rng, memory)
        if not situation.is_found:
            return decode_pair(space, *find_contrast(situation), rng)
    return policy.ask(space, known, seed=seed, number=number, memory=memory)


def find_contrast(situation: Situation) -> tuple[np.ndarray, np.ndarray]:
    """Return the best point, and the candidate against which it is likeliest to win."""
    best, rivals = situation.best, situation.candidates
    difference, spread = situation.model.differences_to(rivals, best)
    share = difference / np.sqrt(1.0 + np.pi / 8.0 * spread**2)
    return best, rivals[int(share.argmin())]


def _is_near(first: np.ndarray, second: np.ndarray, waiting: np.ndarray) -> bool:
    """Whether a duel is almost one of those that wait for an answer, in either order."""
    orders = (np.concatenate(pair) for pair in ((first, second), (second, first)))
    return any(bool((np.abs(waiting - duel).max(axis=1) < NEAR).any()) for duel in orders) if len(waiting) else False


@cache
def code() -> str:
    """Return a digest of what the last digits of a choice depend on: this code, numpy, scipy, numba and the processor.

    Where it is the same, so are the choices.
    """
    found = hashlib.blake2b(digest_size=4)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        if file.parent.name in ("model", "policies") or file.stem in ("choose", "space"):
            found.update(file.read_bytes())
    found.update(" ".join([*map(version, ("numpy", "scipy", "numba")), platform.machine(), _processor()]).encode())
    return found.hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), platform.processor())


class Batch(NamedTuple):
    """Choices that are ready to be asked."""

    choices: tuple[Choice, ...] = ()
    done: float = 0.0  # when they were ready, by `time.monotonic`

    @property
    def age(self) -> float:
        """Seconds since they were ready."""
        return time.monotonic() - self.done
