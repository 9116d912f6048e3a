"""What a run of judges found, and what it has cost."""

import html
from typing import Literal, NamedTuple

from ..errors import counted
from .agreement import Agreement
from .items import count_items
from .ledger import Ledger, Spent
from .positions import Position
from .study import Study
from .tally import LeaderboardRow
from .verdict import Verdict

Ended = Literal["verdict", "max_calls", "max_cost", "all asked", "interrupted", "failed", "retired"]
REASONS = {
    "verdict": "",
    "max_calls": "Stopped at max_calls: raise it to go on.",
    "max_cost": "Stopped at max_cost: raise it to go on.",
    "all asked": "Every question there is has been asked.",
    "interrupted": "Interrupted: the same call goes on from here.",
    "failed": "Stopped, because the judge failed: {error}. The same call goes on from here.",
    "retired": "Stopped, because the study was retired.",
}
SHOWN = 10  # arms


class RunResult(NamedTuple):
    """What a run found; `str` gives it as text.

    Attributes:
        verdict: The verdict.
        leaderboard: One row per arm, best first.
        ended: Why the run ended: verdict, max_calls, max_cost, all asked, interrupted, failed or retired.
        error: The last error of the judge, if it failed.
        spent: Calls, cost and failures of the study, over all runs.
        positions: How often each judge chose each side.
        agreements: How often the judges agree, if there are several.
        all_pairs: How many calls it takes to ask every pair about every item; None without items.
        study: The study.
    """

    verdict: Verdict
    leaderboard: list[LeaderboardRow]
    ended: Ended
    error: str | None
    spent: Spent
    positions: list[Position]
    agreements: list[Agreement]
    all_pairs: int | None
    study: Study

    @classmethod
    def of(cls, study: Study, ledger: Ledger, ended: Ended, error: str | None = None) -> "RunResult":
        """Return the result of a study as it is now."""
        tally, void = study.read(lambda _, history: (history.tally, history.void))
        arms, items = int(tally.active.sum()), count_items(study)
        return cls(
            study.goal.verdict(tally, void=void),
            study.leaderboard(),
            ended,
            error,
            ledger.spent(),
            ledger.positions(),
            ledger.agreements(),
            arms * (arms - 1) // 2 * items or None,
            study,
        )

    @property
    def winner(self) -> str | None:
        """The arm that beats all others, if that is certain."""
        return self.verdict.winner

    @property
    def calls(self) -> int:
        """How many calls the study made, over all runs."""
        return self.spent.calls

    @property
    def cost(self) -> float:
        """What they cost."""
        return self.spent.cost

    def __str__(self) -> str:
        parts = [str(self.verdict), REASONS[self.ended].format(error=self.error)]
        rows = [f"{row.rank:>3}. {row.arm}  {row.score:.0%}" for row in self.leaderboard[:SHOWN]]
        more = len(self.leaderboard) - len(rows)
        parts += ["\n".join(rows + ([f"     … and {counted(more, 'more arm')}"] if more > 0 else []))]
        parts += [self._costs(), *self._warnings(), *map(str, self.agreements)]
        return "\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _costs(self) -> str:
        spent = self.spent
        text = counted(spent.calls, "call") + (f", {money(spent.cost)}" if spent.cost else "")
        if self.all_pairs:
            saved = 1 - spent.calls / self.all_pairs
            text += f"; all pairs on all items: {self.all_pairs:,} calls" + (
                f", {saved:.0%} saved" if saved > 0 else ""
            )
        notes = []
        if spent.unstored:
            notes.append(f"{counted(spent.unstored, 'call')} made but not stored")
        if spent.bad:
            notes.append(f"{counted(spent.bad, 'reply')} without a usable answer")
        if spent.failed:
            notes.append(f"{counted(spent.failed, 'question')} without a reply")
        if spent.repeats:
            notes.append(f"{counted(spent.repeats, 'question')} asked of a second judge")
        return text + (f" ({', '.join(notes)})" if notes else "") + "."

    def _warnings(self) -> list[str]:
        return [f"{alarm_line(one).capitalize()}." for one in self.positions if one.biased]


def money(dollars: float) -> str:
    """Return an amount as text, with at least two digits that matter."""
    return f"${dollars:,.2f}" if dollars >= 0.1 or dollars == 0 else f"${dollars:.2g}"


def alarm_line(found: Position, orders: str = "") -> str:
    """Return what is said when a judge turns out to prefer a side."""
    side = "left" if found.share > 0.5 else "right"
    name = "the judge" if found.judge is None else found.judge
    share = max(found.share, 1 - found.share)
    now = "; every question is now asked in both orders" if orders == "auto" else ""
    return f"position bias: {name} prefers the {side} side in {share:.0%} of its decisive answers{now}"
