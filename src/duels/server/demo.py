"""The example study of `duels serve --demo`: answers to everyday questions, with simulated voters."""

import logging
import random
import threading
from pathlib import Path

from ..errors import DuelsError
from ..storage.storage import Storage
from ..study.catalogue import create_study
from ..study.items import add_items, count_items, read_items

logger = logging.getLogger("duels.server")
NAME = "demo"
STRENGTHS = {"concise": 3.0, "friendly": 1.1, "thorough": 1.0, "formal": 0.7, "vague": 0.4}
SLOWDOWN = 10  # factor of the pause once there is a winner
ITEMS = Path(__file__).with_name("demo.jsonl")


class Demo:
    """The example study and a thread that votes on it, as people would who prefer one style.

    Args:
        storage: Where the study is.
        pause: Seconds between two votes, on average.
    """

    def __init__(self, storage: Storage, pause: float = 0.4) -> None:
        self.study = create_study(list(STRENGTHS), NAME, storage, load_if_exists=True)
        if not count_items(self.study):
            add_items(self.study, read_items(ITEMS))
        self.pause = pause
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._vote, name="duels-demo", daemon=True)

    def start(self) -> None:
        """Start voting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop voting, and wait for the thread to end."""
        self._end.set()
        self._thread.join(10)

    def _vote(self) -> None:
        luck = random.Random()
        pause = self.pause
        while not self._end.wait(pause * luck.uniform(0.5, 1.5)):
            try:
                if self.study.retired:
                    continue
                decided = self.study.verdict().kind == "winner"
                pause = self.pause * (SLOWDOWN if decided else 1)
                voter = f"demo voter {luck.randint(1, 8)}"
                duel = self.study.ask(voter=voter, allow_self=False)
                left, right = STRENGTHS.get(duel.left, 1.0), STRENGTHS.get(duel.right, 1.0)
                winner = "tie" if luck.random() < 0.1 else "left" if luck.random() < left / (left + right) else "right"
                self.study.tell(duel, winner, voter=voter)
            except DuelsError as error:
                logger.warning("the voters of the demo pause: %s", error)
                self._end.wait(5)
