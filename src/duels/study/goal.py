"""What a study is to find out, and by which rules: chosen when it is created. Only `after` can be changed."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import InvalidInput
from .certainty import checked_confidence, checked_margin
from .leaderboard import RankRow, rank_rows
from .tally import Tally
from .verdict import Verdict, verdict

AFTER = ("stop", "rank")
ABOUT = ("items like these", "these items")


class Goal(NamedTuple):
    """What a study is to find out.

    Attributes:
        confidence: The probability that no verdict of the study is ever wrong.
        margin: If above 0, an arm may be declared practically tied with the best: none beats it with a probability of
            more than ½ + margin.
        after: What happens when the winner is known: `stop`, or `rank` to find the order of the others too.
        test: Which test gives the verdict: `winner`, or `all pairs` in studies that version 0.1.0 created.
        ties: How the policy learns of ties: they are `skipped`, or entered as `halves`.
        redirects: Whether questions that cannot help the verdict are replaced, if an arm may not meet itself.
        about: What the verdict is about: `items like these`, of which the questions are examples, or exactly
            `these items`, so that each pair is asked about each of them once.
        once: Whether each pair is asked about each item at most once even so: a judge that always answers the same
            question alike teaches nothing new when it is asked again.
    """

    confidence: float = 0.95
    margin: float = 0.0
    after: str = "stop"
    test: str = "winner"
    ties: str = "halves"
    redirects: bool = True
    about: str = "items like these"
    once: bool = False

    @property
    def on_these_items(self) -> bool:
        """Whether the verdict is about exactly the items of the study."""
        return self.about == "these items"

    @property
    def asks_once(self) -> bool:
        """Whether a pair that was asked about an item is not asked about it again."""
        return self.once or self.on_these_items

    def verdict(
        self, tally: Tally, confidence: float | None = None, margin: float | None = None, void: str | None = None
    ) -> Verdict:
        """Return the verdict on counts by the study's test.

        Args:
            tally: The counts.
            confidence: By default the goal's.
            margin: By default the goal's.
            void: Why nothing is promised, if so.
        """
        confidence = self.confidence if confidence is None else confidence
        margin = self.margin if margin is None else margin
        return verdict(tally, confidence=confidence, margin=margin, test=self.test, void=void)

    def ranking(self, tally: Tally) -> list[RankRow]:
        """Return the ranking by these counts."""
        return rank_rows(tally, self.verdict(tally).winner, self.confidence)

    def is_reached(self, verdict: Verdict, tally: Callable[[], Tally]) -> bool:
        """Return whether nothing is left to find out: the verdict, and the ranking if that is wanted.

        Args:
            verdict: The verdict now.
            tally: Returns the counts now.
        """
        if verdict.kind == "winner":
            return self.after == "stop" or all(row.certain for row in self.ranking(tally()))
        return verdict.kind != "not yet"


OLD = Goal(test="all pairs", redirects=False)  # of studies that version 0.1.0 created


def new_goal(
    confidence: float = 0.95,
    margin: float = 0.0,
    after: str = "stop",
    about: str = "items like these",
    *,
    ties: str,
    once: bool = False,
) -> Goal:
    """Return the goal of a new study. With a margin ties are never skipped: they show which arms are close.

    Raises:
        InvalidInput: If an argument is out of range.
    """
    after = checked_after(after)
    if about not in ABOUT:
        raise InvalidInput(
            f"about is {about!r}: expected 'items like these' or 'these items', what the verdict is about"
        )
    confidence, margin = checked_confidence(confidence), checked_margin(margin)
    return Goal(confidence, margin, after, ties="halves" if margin > 0 else ties, about=about, once=once)


def checked_after(after: str) -> str:
    """Return what happens when the winner is known, if it is one of `AFTER`.

    Raises:
        InvalidInput: If it is not.
    """
    if after not in AFTER:
        raise InvalidInput(f"after is {after!r}: expected 'stop' or 'rank', what to do when the winner is known")
    return after


def goal_of(settings: Mapping[str, Any]) -> Goal:
    """Return the goal that is stored in a study's settings."""
    return Goal(**settings["goal"]) if "goal" in settings else OLD
