"""Repeatability: does a judge give the same answer when it is asked the same question again?

One question in ten is repeated. The study's seed and the question's number decide which, before it is answered, so that
neither the answer nor the verdict has a say. The same judge is asked the same question in the same order, and the reply
counts for nothing but this.
"""

import hashlib
from typing import NamedTuple

from ..errors import format_count

EVERY = 10  # one question in so many is repeated


class Repeatability(NamedTuple):
    """How often a judge repeated its answer.

    Attributes:
        judge: The judge's name; None for a single one.
        repeats: How many of its answers it was asked for again; replies without an answer are left out.
        same: How often it gave the same answer again.
    """

    judge: str | None
    repeats: int
    same: int

    def __str__(self) -> str:
        name = "the judge" if self.judge is None else self.judge
        return f"{name} gave the same answer in {self.same} of {format_count(self.repeats, 'repeated question')}"


def is_drawn(seed: int, duel: int) -> bool:
    """Return whether a question is to be repeated.

    Args:
        seed: The study's seed.
        duel: The question's number in the study.

    Example:
        >>> [duel for duel in range(50) if is_drawn(0, duel)]
        [5, 10, 13, 17, 19, 35, 37, 44, 46]
    """
    digest = hashlib.blake2b(f"{seed}/{duel}/repeat".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % EVERY == 0
