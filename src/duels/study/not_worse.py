"""Whether a new version is as good as the old one within a margin: a study that ends when this is known."""

import math
from collections.abc import Callable

from ..errors import format_count
from ..judges.questions import JudgeError
from .certainty import log_closeness, log_shortfall
from .finite import log_closeness_on_items, log_shortfall_on_items
from .goal import Goal
from .items import count_items, list_items
from .look import Look
from .outcome import RunResult
from .study import Study
from .tally import Tally
from .verdict import Verdict


class NotWorse(Study):
    """A study of a new version, its first arm, and the old one.

    It is over when it is certain that the new version scores at least ½ − margin, or that it does not. One of the two
    is true, so that a study is wrong with a probability of at most 1 − confidence.

    Args:
        study: The study as it was created.
        margin: How much less than one half the new version may score.
    """

    def __init__(self, study: Study, margin: float) -> None:
        super().__init__(study.storage, study.row)
        self.margin = margin

    @property
    def goal(self) -> Goal:
        """The goal of the study; only when it is reached is different."""
        goal = _Goal(*super().goal)
        goal.known = self.is_certain
        return goal

    def is_certain(self, tally: Tally) -> bool | None:
        """Return whether the new version is as good within the margin; None if that is not certain."""
        level = -math.log(1 - super().goal.confidence)
        wins, losses, ties = counts(tally)
        waiting = 0 if tally.open is None else int(tally.open[0, 1])  # each counts against what is to be shown
        if self._closeness(tally, wins, losses + waiting, ties) >= level:
            return True
        return False if self._shortfall(tally, wins + waiting, losses, ties) >= level else None

    def is_exhausted(self, look: Look, verdict: Verdict) -> bool:
        if look.left is None or look.tally.is_finite or self.is_certain(look.tally) is not None:
            return False  # on these answers those that there are decide in the end
        tally, left, level = look.tally, int(look.left[0, 1]), -math.log(1 - super().goal.confidence)
        wins, losses, ties = counts(tally)
        best = self._closeness(tally, wins + left, losses, ties)
        worst = self._shortfall(tally, wins, losses + left, ties)
        return max(best, worst) < level

    def _closeness(self, tally: Tally, wins: int, losses: int, ties: int) -> float:
        if tally.is_finite:
            return log_closeness_on_items(wins, losses, ties, tally.items or 0, self.margin)
        return float(log_closeness(wins, losses, ties, self.margin))

    def _shortfall(self, tally: Tally, wins: int, losses: int, ties: int) -> float:
        if tally.is_finite:
            return log_shortfall_on_items(wins, losses, ties, tally.items or 0, self.margin)
        return log_shortfall(wins, losses, ties, self.margin)

    def failure(self, result: RunResult) -> str | None:
        """Return why the new version has not passed; None if it has.

        On these answers, if everything was asked, the prompts that have an answer decide.

        Raises:
            JudgeError: If the judge could not be asked.
        """
        __tracebackhide__ = True
        tally = self.tally()
        wins, losses, ties = three = counts(tally)
        answered, certain = sum(three), None if result.unconfirmed else self.is_certain(tally)
        if result.ended == "failed" or (not answered and (result.spent.failed or result.spent.bad)):
            why = result.error or self._last_note()
            raise JudgeError(f"the judge failed, so that the new version was not compared: {why}", can_retry=False)
        if certain is None and wins + losses == 0 and self._are_the_same():
            return None
        if certain is None and tally.is_finite and result.ended == "all asked" and answered and not result.unconfirmed:
            certain = losses - wins <= 2 * answered * self.margin + 1e-9
        if certain:
            return None
        score = f"{(wins + ties / 2) / answered:.3g} on " if answered else ""
        on = f"{answered} of {format_count(result.items, 'prompt')}"
        found = f"it scores {score}{on}" if answered else f"it has answers for {on}"
        found += (
            f" ({format_count(wins, 'win')}, {format_count(losses, 'loss', 'losses')}, {format_count(ties, 'tie')})"
        )
        what = "is not known to be as good as" if certain is None else "is worse than"
        power = f" {self.describe_power(result.items)}" if certain is None else ""
        return f"the new version {what} the old one, with a margin of {self.margin:g}: {found}.{power}\n{result}"

    def describe_power(self, items: int) -> str:
        """Return how many of the prompts the new version must win to pass, if none is a tie."""
        tally, level = self.tally()._replace(items=items), -math.log(1 - super().goal.confidence)
        enough = (won for won in range(items + 1) if self._closeness(tally, won, items - won, 0) >= level)
        fewest = next(enough, None)
        if fewest is None:
            return f"{format_count(items, 'prompt')} cannot show it: add prompts, or choose a larger margin."
        wins = format_count(fewest, "win")
        return f"{format_count(items, 'prompt')} can show it from {wins} on: more prompts tell more."

    def _are_the_same(self) -> bool:
        """Whether both versions have the same output for every prompt."""
        number = 0
        if not count_items(self):
            return False
        while found := list_items(self, number):
            if any(len(set(item.outputs.values())) > 1 for _, item in found):
                return False
            number = found[-1][0]
        return True

    def _last_note(self) -> str:
        notes = [str(entry.note["note"]) for entry in self.events() if "note" in entry.note]
        return notes[-1] if notes else "it gave no answer"


class _Goal(Goal):
    known: Callable[[Tally], bool | None]

    def is_reached(self, verdict: Verdict, tally: Callable[[], Tally]) -> bool:
        return self.known(tally()) is not None


def counts(tally: Tally) -> tuple[int, int, int]:
    """Return how often the first arm has won and lost against the second one, and ties."""
    return int(tally.wins[0, 1]), int(tally.wins[1, 0]), int(tally.ties[0, 1])
