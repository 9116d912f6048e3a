"""What a study is to find out, and by which rules: chosen when it is created.

Only `after` and `margin` can be changed later, and `about` before the first question.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...errors import InvalidInput
from .about import NEW_ITEMS, THESE_ANSWERS, THESE_ITEMS, About, check_about
from .certainty import check_confidence, check_margin
from .leaderboard import RankRow, rank_rows
from .tally import Tally
from .verdict import Verdict, verdict

AFTER = ("stop", "rank")


class Goal(NamedTuple):
    """What a study is to find out.

    Attributes:
        confidence: The probability that no verdict of the study is ever wrong.
        margin: If above 0, an arm may be declared practically tied with the best: none beats it with a probability of
            more than ½ + margin.
        after: What happens when the winner is known: `stop`, or `rank` to find the order of the others too.
        ties: How the policy learns of ties: they are `skipped`, or entered as `halves`.
        about: What the verdict is about, see `about`.
    """

    confidence: float = 0.95
    margin: float = 0.0
    after: str = "stop"
    ties: str = "halves"
    about: About = THESE_ITEMS

    @property
    def asks_once(self) -> bool:
        """Whether a pair that was asked about an item is not asked about it again."""
        return self.about in (NEW_ITEMS, THESE_ANSWERS)

    def verdict(self, tally: Tally, margin: float | None = None, **known: Any) -> Verdict:
        """Return the verdict on counts.

        Args:
            tally: The counts.
            margin: By default the goal's.
            **known: Further arguments of `verdict.verdict`.
        """
        margin = self.margin if margin is None else margin
        return verdict(tally, confidence=self.confidence, margin=margin, **known)

    def ranking(self, tally: Tally) -> list[RankRow]:
        """Return the ranking by these counts."""
        verdict = self.verdict(tally)
        return rank_rows(tally, verdict.named, verdict.winner, self.confidence)

    def is_reached(self, verdict: Verdict, tally: Callable[[], Tally]) -> bool:
        """Return whether nothing is left to find out: the verdict, and the ranking if that is wanted.

        Args:
            verdict: The verdict now.
            tally: Returns the counts now.
        """
        if verdict.kind == "winner":
            return self.after == "stop" or all(
                row.certain for row in rank_rows(tally(), verdict.named, verdict.winner, self.confidence)
            )
        return verdict.kind != "not yet"


def new_goal(
    confidence: float = 0.95,
    margin: float = 0.0,
    after: str = "stop",
    about: str = THESE_ITEMS,
    *,
    ties: str,
) -> Goal:
    """Return the goal of a new study. With a margin ties are never skipped: they show which arms are close.

    Raises:
        InvalidInput: If an argument is out of range.
    """
    after, about = check_after(after), check_about(about)
    confidence, margin = check_confidence(confidence), check_margin(margin)
    return Goal(confidence, margin, after, "halves" if margin > 0 else ties, about)


def check_after(after: str) -> str:
    """Return what happens when the winner is known, if it is one of `AFTER`.

    Raises:
        InvalidInput: If it is not.
    """
    if after not in AFTER:
        raise InvalidInput(f"after is {after!r}: expected 'stop' or 'rank', what to do when the winner is known")
    return after


def goal_of(settings: Mapping[str, Any]) -> Goal:
    """Return the goal that is stored in a study's settings."""
    return Goal(**settings["goal"]) if "goal" in settings else Goal()
