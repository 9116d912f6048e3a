"""The example study of `duels serve --demo`: answers to everyday questions, with simulated voters.

Its verdict comes within minutes. Voters prefer concise answers, but thorough ones about code; one of them always
chooses the left side.
"""

import heapq
import itertools
import json
import logging
import random
import threading
import time
from pathlib import Path
from typing import NamedTuple

from ..errors import DamagedStudy, DuelsError, NothingToAsk, UnknownName
from ..storage.storage import Storage
from ..study.create import create_study, list_studies, load_study
from ..study.duels import Duel
from ..study.items import add_items, read_items
from ..study.study import Study
from ..study.voter_settings import change_voter_settings
from .keys import make_key

logger = logging.getLogger("duels.server")
NAME = "demo"
STRENGTHS = {"concise": 12.0, "friendly": 1.3, "thorough": 1.2, "formal": 0.6, "vague": 0.25}
ON_CODE = {"concise": 2.9, "friendly": 0.7, "thorough": 3.2, "formal": 0.6, "vague": 0.1}
ITEMS = Path(__file__).with_name("demo.jsonl")
FIRST = 30  # answers that are there from the beginning
SLOWDOWN = 20  # factor of the pauses between answers once there is a winner
ALWAYS_LEFT = "Gus"
SECONDS = {  # per answer; each voter is asked the same only once, so a few could not decide it
    **{"Ada": 3.0, "Ben": 5.0, "Chen": 5.0, "Dina": 6.0, "Emre": 5.0, "Fay": 7.0, ALWAYS_LEFT: 3.0, "Hana": 6.0},
    **{"Ivo": 7.0, "Jun": 6.0, "Kim": 7.0, "Lea": 6.0, "Mia": 8.0, "Noa": 7.0, "Omar": 8.0, "Pia": 7.0},
}
COMMENTS = {
    "concise": ("Says it and stops.", "All I need.", "Short and right."),
    "friendly": ("Made me smile.", "Warm, and still useful."),
    "thorough": ("The only one with the edge cases.", "I could follow it step by step."),
    "formal": ("A bit stiff, but correct.",),
    "vague": ("The other one was even worse.",),
}
QUESTION = "Which answer would you rather get?"
INSTRUCTIONS = """Read both answers as if you had asked the question yourself.

- **Right** comes before pretty: a wrong answer loses.
- Length is fine if you would read all of it.
- If you cannot decide, say *tie*."""


class Turn(NamedTuple):
    """When a voter does something: asks for a question, or answers the one they have."""

    when: float
    voter: str
    duel: Duel | None


class Demo:
    """The example study and a thread that votes on it.

    A study whose verdict is known is left as it is, and another one begins: demo-2, demo-3, and so on.

    Args:
        storage: Where the study is.
        luck: What chooses answers and pauses.
    """

    def __init__(self, storage: Storage, luck: random.Random | None = None) -> None:
        self._luck = luck or random.Random()
        study = _find_unfinished(storage)
        self.link: str | None = None  # the secret of a voting link, if the study is new
        if study is None:
            study = _create_demo(storage, self._luck)
            _, self.link = make_key(storage, "vote", "Try it", study_id=study._log.id, settings={"votes": None})
        self.study = study
        lines = ITEMS.read_text(encoding="utf-8").splitlines()
        self._on_code = {item["prompt"] for item in map(json.loads, lines) if "code" in item["tags"]}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="duels-demo", daemon=True)

    def start(self) -> None:
        """Start voting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop voting, and wait for the thread to end."""
        self._end.set()
        self._thread.join(10)

    def _run(self) -> None:
        turns, start = first_turns(), time.monotonic()
        while not self._end.is_set():
            turn = heapq.heappop(turns)
            if self._end.wait(max(0.0, start + turn.when - time.monotonic())):
                return
            try:
                duel, pause = self.take(turn)
            except DuelsError as error:
                logger.warning("the voters of the demo pause: %s", error)
                duel, pause = None, 5.0
            heapq.heappush(turns, Turn(max(turn.when, time.monotonic() - start) + pause, turn.voter, duel))

    def take(self, turn: Turn) -> tuple[Duel | None, float]:
        """Ask or answer; returns the question that the voter has now, and how long until the next turn."""
        study, luck = self.study, self._luck
        thinking = SECONDS[turn.voter] * luck.lognormvariate(0.0, 0.4)
        if turn.duel is not None:
            answer, comment = self._answer(turn.voter, turn.duel)
            study.tell(turn.duel, answer, voter=turn.voter, note=comment)
            return None, 0.2 * thinking * (SLOWDOWN if study.verdict().kind != "not yet" else 1)
        if study.retired:
            return None, thinking
        try:
            duel = study.ask(voter=turn.voter, allow_self=False)
        except NothingToAsk:  # this voter has seen everything
            return None, SLOWDOWN * thinking
        return duel, thinking if study._log.history().total >= FIRST else 0.0

    def _answer(self, voter: str, duel: Duel) -> tuple[str, str | None]:
        luck = self._luck
        if voter == ALWAYS_LEFT:
            return "left", None
        strengths = ON_CODE if duel.item is not None and duel.item.prompt in self._on_code else STRENGTHS
        left, right = strengths.get(duel.left, 1.0), strengths.get(duel.right, 1.0)
        if max(left, right) < 1 and luck.random() < 0.2:
            return "both_bad", None
        if luck.random() < 0.08:
            return "tie", None
        answer = "left" if luck.random() < left / (left + right) else "right"
        said = COMMENTS.get(duel.left if answer == "left" else duel.right, ())
        return answer, luck.choice(said) if said and luck.random() < 0.1 else None


def first_turns() -> list[Turn]:
    """Return a heap in which each voter asks for a question at once."""
    return [Turn(0.0, voter, None) for voter in sorted(SECONDS)]


def _name(number: int) -> str:
    return NAME if number == 1 else f"{NAME}-{number}"


def _find_unfinished(storage: Storage) -> Study | None:
    """The first study of the demo that has no verdict yet; None if there is none."""
    for number in itertools.count(1):
        try:
            study = load_study(_name(number), storage)
        except UnknownName:
            break
        except DamagedStudy:
            continue
        if set(study.arms) == set(STRENGTHS) and not study.retired and study.verdict().kind == "not yet":
            return study
    return None


def _create_demo(storage: Storage, luck: random.Random) -> Study:
    taken = {study.name for study in list_studies(storage)}
    name = next(_name(number) for number in itertools.count(1) if _name(number) not in taken)
    study = create_study(list(STRENGTHS), name, storage, after="rank", margin=0.02, seed=luck.randrange(2**31))
    add_items(study, read_items(ITEMS))
    change_voter_settings(study, question=QUESTION, instructions=INSTRUCTIONS, comments=True)
    return study
