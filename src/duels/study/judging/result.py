"""After an alarm about a judge, what it answered in one order is asked of it in the other order too.

An `again` event whose note has `confirms` begins such a call. If both replies agree, a `repeat` event says so; if not,
the answer is undone, and a `tell` event has what both orders together say. The note of either has both `replies`.

What a run of judges found, and what it has cost.
"""

import html
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

import sqlalchemy as sa

from ...errors import format_count, percent
from ...votes.columns import ANSWERS
from ..answering import undo_answer, write_answer, write_note
from ..items import count_items
from ..state.live import LiveState
from ..stats.leaderboard import align_columns, format_rank, format_record, format_share
from ..stats.tally import LeaderboardRow
from ..stats.verdict import Verdict
from ..study import Study
from ..voters.agreement import Agreement
from ..voters.voter_tests import Position, Repeatability
from .ask_judge import Reply
from .ledger import Ledger, Spent


def find_unconfirmed(
    history: LiveState, ledger: Ledger, judges: Collection[str | None] | None = None
) -> dict[int, str | None]:
    """Return the duels of active arms that a judge with an alarm has answered in one order only, and that judge.

    Args:
        history: The study's state.
        ledger: What its judges have done.
        judges: Only these; all by default.
    """
    return {
        duel: judge
        for duel, judge in ledger.find_unconfirmed().items()
        if (judges is None or judge in judges)
        and duel not in history.forgotten
        and history.active[history.left[duel]]
        and history.active[history.right[duel]]
    }


def store_confirmation(
    connection: sa.Connection, study: Study, ledger: Ledger, reply: Reply, note: dict[str, object]
) -> None:
    """Write what a judge said in the other order; nobody chooses what becomes of its answer, so the undo is blind.

    Args:
        connection: The transaction's connection.
        study: The study.
        ledger: What its judges have done, up to now.
        reply: The reply.
        note: What the log keeps of it.
    """
    task, answer, history = reply.task, reply.answer.answer, study._log.current(connection)
    duel, judge, before = task.duel.id, task.judge, task.confirms
    waits = duel in find_unconfirmed(history, ledger) and ANSWERS[history.answer[duel]] == before
    note = note | ({"replies": [before, reply.second]} if waits else {})
    if waits and answer != before:
        undo_answer(connection, study._log, duel=duel, blind=True)
        write_answer(connection, study._log, duel=duel, winner=answer, voter=judge, more=note)
    else:  # they agree, or the answer was taken back or confirmed meanwhile
        write_note(connection, study._log, "repeat", duel=duel, answer=answer, voter=judge, note=note)


def one_order_text(count: int) -> str | None:
    """Return why a verdict promises nothing if some answers were given in one order only; None if there are none."""
    if not count:
        return None
    were = "were" if count > 1 else "was"
    return f"{format_count(count, 'answer')} of a judge that prefers a side {were} given in one order only"


Ended = Literal[
    "verdict", "max_duels", "max_calls", "max_cost", "exhausted", "all asked", "interrupted", "failed", "retired"
]
REASONS = {
    "verdict": "",
    "max_duels": "",
    "max_calls": "Stopped at max_calls: raise it to continue.",
    "max_cost": "Stopped at max_cost: raise it to continue.",
    "exhausted": "No question that is left can bring a verdict.",
    "all asked": "Every question there is has been asked.",
    "interrupted": "Interrupted: run it again to resume.",
    "failed": "Stopped, because the judge failed: {error} Run it again to resume.",
    "retired": "Stopped, because the study was retired.",
}
SHOWN = 10  # arms


class JudgeResult(NamedTuple):
    """What a run found; `str` gives it as text.

    Attributes:
        verdict: The verdict.
        leaderboard: One row per arm, best first.
        ended: Why the run ended: verdict, max_calls, max_cost, exhausted, all asked, interrupted, failed or retired.
        error: The last error of the judge, if it has failed at a question.
        spent: Calls, cost and failures of the study, over all runs.
        positions: How often each judge chose each side.
        agreements: How often the judges agree, if there are several.
        items: How many items the study has.
        study: The study.
        unconfirmed: How many answers of judges that prefer a side were given in one order only, where both are wanted.
            Until it is 0 there is no winner, and nothing is promised.
        unanswered: How many questions have no usable answer, and are asked again by the next run.
        orders: In how many orders a question is asked now.
        repeatability: How often each judge of whom a question was repeated gave the same answer.
    """

    verdict: Verdict
    leaderboard: list[LeaderboardRow]
    ended: Ended
    error: str | None
    spent: Spent
    positions: list[Position]
    agreements: list[Agreement]
    items: int
    study: Study
    unconfirmed: int = 0
    unanswered: int = 0
    orders: int = 1
    repeatability: Sequence[Repeatability] = ()

    @classmethod
    def of(
        cls,
        study: Study,
        ledger: Ledger,
        ended: Ended,
        error: str | None = None,
        unconfirmed: int = 0,
        unanswered: int = 0,
        orders: int = 1,
    ) -> "JudgeResult":
        """Return the result of a study as it is now."""
        verdict = study._log.look().verdict(void=one_order_text(unconfirmed))
        return cls(
            verdict,
            study.leaderboard(),
            ended,
            error,
            ledger.total(),
            ledger.positions(),
            ledger.agreements(),
            count_items(study),
            study,
            unconfirmed,
            unanswered,
            orders,
            ledger.repeatability(),
        )

    @property
    def winner(self) -> str | None:
        """The arm that beats all others, if that is certain, and does not hang on answers in one order only."""
        return None if self.unconfirmed else self.verdict.winner

    @property
    def all_pairs(self) -> int:
        """How many calls it takes to ask every pair about every item, in as many orders as this study asks."""
        return self.verdict.arms * (self.verdict.arms - 1) // 2 * self.items * self.orders

    @property
    def saved(self) -> float | None:
        """The share of these calls that the verdict did not need; None without a verdict, or without items."""
        return 1 - self.calls / self.all_pairs if self.ended == "verdict" and self.all_pairs else None

    @property
    def calls(self) -> int:
        """How many calls the study made, over all runs."""
        return self.spent.calls

    @property
    def cost(self) -> float:
        """What they cost."""
        return self.spent.cost

    def __str__(self) -> str:
        reason = REASONS[self.ended].format(error=end_with_stop(self.error or ""))
        parts = [str(self.verdict), self._power(), reason]
        if self.error is not None and self.ended not in ("failed", "verdict"):
            parts.append(f"The judge failed last with: {end_with_stop(self.error)}")
        parts += [*self._rows(), self._costs(), self._identical_text(), self._describe_unanswered()]
        parts += [*repeat_lines(self.repeatability), *self._warnings(), *(f"{one}." for one in self.agreements)]
        return "\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _power(self) -> str:
        """What so many prompts can show, if nothing was asked because that is too little."""
        if self.ended != "exhausted" or self.verdict.duels or not self.items:
            return ""
        return self.study._describe_power(self.items)

    def _rows(self) -> list[str]:
        """The leaderboard, with the names last: so it is aligned whatever they are."""
        if not self.verdict.duels:
            return []
        shown = self.leaderboard[:SHOWN]
        heads = ("rank", "wins", "won–lost–tied", "arm")
        rows = [(format_rank(row), format_share(row), format_record(row), _name(row)) for row in shown]
        more = len(self.leaderboard) - len(shown)
        return [*align_columns([heads, *rows], left=3), *([f"   …  {format_count(more, 'more arm')}"] if more else [])]

    def _costs(self) -> str:
        text, saved = costs_text(self.spent), self.saved or 0.0
        if saved >= 0.01:
            text += f" All pairs on all items take {format_count(self.all_pairs, 'call')}: {int(saved * 100)} % saved."
        return text

    def _identical_text(self) -> str:
        count = self.spent.identical
        what = "was a tie without a call" if count == 1 else "were ties without a call"
        return f"{format_count(count, 'question')} about identical outputs {what}." if count else ""

    def _describe_unanswered(self) -> str:
        """What a further run would ask again; a run that has failed says so itself."""
        if not self.unanswered or self.ended in ("verdict", "failed"):
            return ""
        them = "it" if self.unanswered == 1 else "them"
        count = format_count(self.unanswered, "question")
        return f"{count} without a usable answer: run it again to ask {them} once more."

    def _warnings(self) -> list[str]:
        return bias_lines(self.positions)


def costs_text(spent: Spent) -> str:
    """Return calls and cost as a sentence, with what went wrong."""
    notes = [
        f"{format_count(spent.unstored, 'call')} made but not stored" if spent.unstored else "",
        f"{format_count(spent.bad, 'reply', 'replies')} without a usable answer" if spent.bad else "",
        f"{format_count(spent.failed, 'question')} without a reply" if spent.failed else "",
        f"{format_count(spent.second_opinions, 'question')} asked of a second judge" if spent.second_opinions else "",
    ]
    repeats = f", {spent.repeats:,} of them {'a repeat' if spent.repeats == 1 else 'repeats'}" if spent.repeats else ""
    text = format_count(spent.calls, "call") + repeats + (f", {money(spent.cost)}" if spent.cost else "")
    return text + (f" ({'; '.join(filter(None, notes))})." if any(notes) else ".")


def bias_lines(positions: Sequence[Position]) -> list[str]:
    """Return a sentence about each judge that prefers a side."""
    return [f"{_sentence(alarm_line(one))}." for one in positions if one.biased]


def repeat_lines(found: Sequence[Repeatability]) -> list[str]:
    """Return a sentence about each judge of whom a question was repeated."""
    return [f"{_sentence(str(one)) if one.judge is None else one}." for one in found]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name(row: LeaderboardRow) -> str:
    return row.arm if row.active else f"{row.arm} (retired)"


def end_with_stop(text: str) -> str:
    """Return a sentence with one full stop at its end."""
    return text.rstrip(". ") + "."


def money(dollars: float) -> str:
    """Return an amount as text: in cents, or with two digits that matter if it is below ten cents.

    Example:
        >>> money(1234.5), money(0.0999), money(0.0000123)
        ('$1,234.50', '$0.10', '$0.000012')
    """
    return f"${dollars:,.2f}" if dollars >= 0.1 or dollars == 0 else f"${Decimal(f'{dollars:.1e}'):f}"


def alarm_line(found: Position, orders: str = "") -> str:
    """Return what is said when a judge turns out to prefer a side."""
    side = "left" if found.share > 0.5 else "right"
    name = "the judge" if found.judge is None else found.judge
    share = max(found.share, 1 - found.share)
    now = "; every question is now asked in both orders" if orders == "auto" else ""
    return f"position bias: {name} prefers the {side} side in {percent(share)} % of its decisive answers{now}"
