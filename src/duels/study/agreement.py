"""Agreement between judges, on questions that two of them answered.

Sides are decided by a coin, so which arm of a question comes first means nothing. Every question is therefore counted
in both orders: then Cohen's κ does not depend on the coin or on the order of the arms. `docs/study/positions.md` has
the formulas.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import NamedTuple

from ..errors import counted

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
            f"{names} agree on {self.raw:.0%} of {counted(self.questions, 'question')} "
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
