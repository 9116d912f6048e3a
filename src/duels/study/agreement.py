"""Agreement between judges, on questions that several of them answered.

Sides are decided by a coin, so which arm of a question comes first means nothing. Every question is therefore counted
in both orders: then Cohen's κ and Krippendorff's α do not depend on the coin or on the order of the arms.
`docs/study/positions.md` has the formulas.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import format_count

UNDECIDED = ("tie", "both_bad")
FEW = 20  # below so many questions, luck moves the shares by more than twenty points either way
Answer = tuple[Hashable, str | None, str]  # the question, the judge, and the chosen arm, "tie", "both_bad" or "skip"


class Agreement(NamedTuple):
    """How often two judges gave the same answer.

    Attributes:
        first: One judge; None for answers without a voter.
        second: The other judge.
        questions: How many questions both answered; skips are left out.
        raw: The share of these that got the same answer from both.
        base: The share that judges who do not look would agree on, who answer tie and both bad as often as these two,
            and choose one of the arms by a coin otherwise.
        kappa: Cohen's κ, (raw − base) / (1 − base); None if base is 1: both answered all questions tie, or both bad.
    """

    first: str | None
    second: str | None
    questions: int
    raw: float
    base: float
    kappa: float | None

    def __str__(self) -> str:
        names = " and ".join("the unnamed judge" if one is None else one for one in (self.first, self.second))
        kappa = "κ is undefined" if self.kappa is None else f"κ = {self.kappa:.2f}"
        few = "; few questions, so a rough figure" if self.questions < FEW else ""
        return (
            f"{names} agree on {self.raw:.0%} of {format_count(self.questions, 'question')} "
            f"({self.base:.0%} by chance, {kappa}{few})"
        )


def agreements(answers: Iterable[Answer]) -> list[Agreement]:
    """Compare judges that answered the same questions.

    Args:
        answers: For each answer the question, such as (arm, arm, item) with the arms in a fixed order; the judge; and
            the chosen arm, or tie, both_bad or skip. Of several answers of one judge to one question the first counts;
            skips never do.

    Returns:
        One row per pair of judges with a question in common, in the order of their first answers.

    Example:
        >>> asked = [(1, "gpt", "terse"), (1, "claude", "terse"), (2, "gpt", "tie"), (2, "claude", "expert")]
        >>> agreements(asked)
        [Agreement(first='gpt', second='claude', questions=2, raw=0.5, base=0.25, kappa=0.3333333333333333)]
        >>> print(agreements(asked)[0])
        gpt and claude agree on 50% of 2 questions (25% by chance, κ = 0.33; few questions, so a rough figure)
    """
    by_question: dict[Hashable, dict[str | None, str]] = {}
    judges: dict[str | None, int] = {}
    for question, judge, choice in answers:
        if choice != "skip":
            judges.setdefault(judge, len(judges))
            by_question.setdefault(question, {}).setdefault(judge, choice)
    both: dict[tuple[str | None, str | None], Counter[tuple[str, str]]] = {}
    for given in by_question.values():
        for first, second in combinations(sorted(given, key=judges.__getitem__), 2):
            both.setdefault((first, second), Counter())[given[first], given[second]] += 1
    ordered = sorted(both, key=lambda pair: (judges[pair[0]], judges[pair[1]]))
    return [_agreement(*pair, both[pair]) for pair in ordered]


def _agreement(first: str | None, second: str | None, table: Counter[tuple[str, str]]) -> Agreement:
    n = table.total()
    same = sum(count for (one, other), count in table.items() if one == other)
    undecided = [[sum(count for pair, count in table.items() if pair[k] == word) for word in UNDECIDED] for k in (0, 1)]
    decided = [n - sum(counts) for counts in undecided]
    # In whole numbers, so that κ is undefined exactly if it is: of n² pairs of answers, twice as many agree by chance.
    doubled = 2 * sum(one * other for one, other in zip(*undecided)) + decided[0] * decided[1]
    base, raw = doubled / (2 * n * n), same / n
    kappa = None if doubled == 2 * n * n else (2 * n * same - doubled) / (2 * n * n - doubled)
    return Agreement(first, second, n, raw, base, kappa)


class Alpha(NamedTuple):
    """How often several judges gave the same answer.

    Attributes:
        raw: The share of pairs of answers to the same question that are equal; a question counts by its answers.
        base: The share of pairs of answers that would be equal if each was given to another question.
        alpha: Krippendorff's α, (raw − base) / (1 − base); None if base is 1: all answers are tie, or both bad.
    """

    raw: float
    base: float
    alpha: float | None


def krippendorff(table: npt.NDArray[np.int64]) -> Alpha:
    """Return Krippendorff's α of nominal answers, with every question in both orders.

    Two answers that chose an arm, of different questions, are for the same side in half of the orders. So they agree by
    chance in half of the cases, whatever was chosen.

    Args:
        table: (Q, 4) int64: How many judges chose each question's first arm, its second arm, tie and both bad. Every
            question has two answers or more.

    Example:
        >>> found = krippendorff(np.array([[2, 0, 0, 0], [0, 2, 0, 0], [0, 1, 1, 0]]))
        >>> [round(value, 3) for value in found]  # raw: (2 + 2) / 6; base: (5 · 4 / 2) / (6 · 5)
        [0.667, 0.333, 0.5]
    """
    size = table.sum(axis=1)
    total = int(size.sum())
    raw = float(((table * (table - 1)).sum(axis=1) / (size - 1)).sum() / total)
    first, second, *undecided = table.sum(axis=0).tolist()
    # In whole numbers, as above: of n (n − 1) pairs of answers, twice as many agree by chance.
    doubled = 2 * sum(n * (n - 1) for n in undecided) + (first + second) * (first + second - 1)
    pairs = total * (total - 1)
    base = doubled / (2 * pairs)
    return Alpha(raw, base, None if doubled == 2 * pairs else (raw - base) / (1 - base))
