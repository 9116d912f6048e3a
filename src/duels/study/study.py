"""Live studies: people and systems answer the duels that a policy asks for.

A study is a log of events, see `base`; everything else is computed from it. Each method that changes something is one
operation of the log, which runs inside a transaction. A caller that waits in its own way, such as the server, writes
the same operation.
"""

import html
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ..errors import NothingToAsk, format_count
from ..storage.batches import pack
from ..votes.names import arm_names, name_imported, voter_name
from ..votes.readers import Reading, VoteSource, read_votes
from ..votes.votes import Votes
from ..votes.writers import write_votes
from . import base
from .allocation import Allocation, allocate
from .answers.past_votes import export_votes
from .arm_log import ArmLog
from .duels import Duel
from .event_study import EventStudy
from .impressions import Document, Impression, answer_by_clicks, show_list
from .items import count_items, with_items
from .state.look import Look, measure_pace
from .stats import leaderboard as tables
from .stats.about import check_about
from .stats.certainty import check_confidence, check_margin
from .stats.exhausted import describe_power
from .stats.forecast import Forecast
from .stats.goal import Goal, check_after
from .stats.leaderboard import RankRow, rank_rows
from .stats.moments import Moments
from .stats.paths import find_paths_in
from .stats.tally import LeaderboardRow, PairRow, Tally
from .stats.verdict import Verdict

if TYPE_CHECKING:
    from .judging.result import JudgeResult


Judging = Callable[..., object] | Mapping[str, Callable[..., object]]


class Study(EventStudy):
    """A live study: `ask` for a duel, `tell` who won, look at the `verdict`.

    Created by `create_study` and `load_study`. Objects of one study in many threads and processes see the same log.

    Example:
        >>> study = duels.create_study(["a", "b", "c"], storage="sqlite://")
        >>> study.tell(study.ask(), "left")
        >>> study.verdict().kind
        'not yet'
    """

    _log: ArmLog

    def __init__(self, log: ArmLog) -> None:
        super().__init__(log)

    @property
    def _chooses_pairs(self) -> bool:
        """Whether pairs were chosen by earlier answers; not if all votes were imported."""
        return self._log.read(lambda _, history: len(history.left) > history.imported)

    def _compared(self) -> dict[str, Any]:
        history = self._log.history()
        arms = [{"name": name, "active": active} for name, active in zip(history.names, history.active)]
        return {"arms": arms, "space": None, "items": count_items(self)}

    def _export(self, path: str) -> None:
        write_votes(self.votes(), path)

    @property
    def goal(self) -> Goal:
        """What the study is to find out, and by which rules."""
        return self._log.history().goal

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        history = self._log.history()
        return [name for name, active in zip(history.names, history.active) if active]

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.policy}, {len(self.arms)} arms)"

    def _repr_html_(self) -> str:
        tally, answers = self._log.read(lambda _, history: (history.tally, history.total))
        verdict = self.verdict()
        about = [self.policy, format_count(int(tally.active.sum()), "arm"), format_count(answers, "answer")]
        title = f"<strong>{html.escape(self.name)}</strong> · {html.escape(' · '.join(about))}"
        table = tables.leaderboard_html(self._log.look().leaderboard()) if answers else ""
        return f"<p>{title}</p>{verdict._repr_html_()}{table}"

    def leaderboard(self, confidence: float | None = None) -> list[LeaderboardRow]:
        """Return one row per arm, best first.

        Args:
            confidence: Of the intervals, one by one, and of certain wins, all together; by default the study's.
        """
        return self._log.look().leaderboard(confidence).rows

    def preferences(self, confidence: float | None = None) -> list[PairRow]:
        """Return one row per pair of arms: wins, counts, estimate and interval.

        Args:
            confidence: Of the intervals, which hold for all pairs together; by default the study's.
        """
        return tables.preferences(self.tally(), confidence or self.goal.confidence)

    def verdict(self, confidence: float | None = None, margin: float | None = None) -> Verdict:
        """Return the verdict: the winner, or what is still undecided. It is valid at any stopping time.

        Args:
            confidence: Another one than the study's own. What is chosen after looking is no promise, and it says so.
            margin: If above 0, an arm may be declared practically tied with the best: none beats it with a
                probability of more than ½ + margin. By default the study's own.
        """
        look = self._log.look()
        if confidence is None or check_confidence(confidence) == look.goal.confidence:
            return look.verdict(margin)
        goal = look.goal._replace(confidence=check_confidence(confidence))
        moments = Moments(look.tally, goal.confidence)
        void = f"a confidence of {confidence:g} was chosen afterwards, the study's own is {look.goal.confidence:g}"
        return look._replace(goal=goal, moments=moments).verdict(margin, void)

    def _is_exhausted(self, look: Look, verdict: Verdict) -> bool:
        """Return whether no question that is left can bring what the study is to find out.

        Args:
            look: A look at the study.
            verdict: Its verdict.
        """
        return verdict.exhausted is not None

    def _describe_power(self, items: int) -> str:
        """Return what so many items can show at all, where each pair is asked about each of them once."""
        return describe_power(self.tally()._replace(items=items), self.goal.confidence)

    def forecast(self) -> Forecast:
        """Estimate, before the verdict, how likely each arm is the best and how many more answers are needed.

        These are estimates under a model, see `duels.study.stats.forecast`; only the verdict is a promise.
        """
        look, pace = self._log.read(
            lambda connection, history: (self._log.look_in(connection, history), measure_pace(history, base.clock()))
        )
        return look.forecast(pace.answers_an_hour)

    def ranking(self) -> list[RankRow]:
        """Return the active arms in the order of the leaderboard, and which ranks are certain.

        A study with `after="rank"` asks on until all are. The first rank keeps the promise of the verdict, the others
        that about all pairs: each holds with the study's confidence, however often you look.
        """
        look = self._log.look()
        verdict = look.verdict()
        return rank_rows(look.tally._replace(open=None), verdict.named, verdict.winner, look.goal.confidence)

    def tally(self) -> Tally:
        """Return the answers that count, as wins and ties of each pair."""
        return self._log.read(lambda connection, history: history.tally)

    @property
    def best_arm(self) -> str:
        """The arm that the policy recommends now; `verdict` says how certain that is."""
        return self._log.read(self._log.recommend)

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, n: Literal[1] = 1, *, voter: str | None = None, allow_self: bool = True
    ) -> Duel: ...

    @overload
    def ask(self, n: int, *, voter: str | None = None, allow_self: bool = True) -> list[Duel]: ...

    def ask(self, n: int = 1, *, voter: str | None = None, allow_self: bool = True) -> Duel | list[Duel]:
        """Ask for the next duel. It is on disk when this returns.

        Args:
            n: How many duels to ask for, up to 10,000. More than 100 are written in several parts, so that nobody else
                waits for all of them.
            voter: Who is asked; stored with the question.
            allow_self: False where people vote, so that an arm never meets itself. A question that cannot help the
                verdict, such as one about a pair that is certain already, is then replaced by one that does.

        Returns:
            The duel, or a list of `n` duels if that is not 1.

        Raises:
            Conflict: If the study was retired.
        """
        parts, name, duels = self._log.parts_of(n), voter_name(voter), list[Duel]()
        for part in parts:
            try:
                duels += self._log.write(partial(self._log.ask, n=part, voter=name, allow_self=allow_self), last=True)
            except NothingToAsk:
                if not duels:
                    raise
                break
        if any(duel.item is not None for duel in duels):
            duels = with_items(self, duels)
        return duels[0] if n == 1 else duels

    def allocate(self, n: int) -> list[Allocation]:
        """Return how often to ask each pair, for systems that decide by the batch, such as on tomorrow's traffic.

        These are the pairs of the next questions of `ask`, without self-duels. Nothing is written, and no duel is open
        afterwards: bring the answers back as counts, with `import_votes`. The same log gives the same allocation.
        Each pair is divided evenly between both sides.

        Args:
            n: How many questions to divide, up to 10¹². Beyond 10,000, they are divided in the proportions of 10,000.

        Returns:
            The pairs, those that are asked most often first.

        Raises:
            Conflict: If the study was retired, or asks about each item once.
            NothingToAsk: If the study has found out what it wants to know: the verdict, and all ranks if they are
                wanted.

        Example:
            >>> study = duels.create_study(["a", "b"], storage="sqlite://")
            >>> sum(times for left, right, times in study.allocate(1000))
            1000
        """
        return allocate(self, n)

    def run(
        self,
        judge: Judging,
        *,
        max_calls: int | None = None,
        max_cost: float | None = None,
        concurrency: int = 8,
        orders: Literal["one", "both", "auto"] = "auto",
        progress: bool | None = None,
    ) -> "JudgeResult":
        """Let a judge answer until there is a verdict or a limit is reached. Call it again to resume.

        Args:
            judge: A function of `(prompt, left, right)`, or of `(left, right)`, that returns `"left"`, `"right"`,
                `"tie"`, `"both_bad"`, `"skip"`, the name of an arm, or a `duels.judges.Answer`; it may be async. Or
                a dict of such functions by name: each question goes to one of them, and every tenth to two.
            max_calls: How many calls the study may make, over all runs. By default any number; but about these items,
                where there is always a further question, as many as it takes to ask every pair about every item.
            max_cost: How much its calls may cost, over all runs.
            concurrency: How many questions are asked at the same time.
            orders: How often a question is asked: in `"one"` order, in `"both"`, where disagreement counts as a tie,
                or `"auto"`, which turns from one to both when the judge turns out to prefer a side. What it answered
                before is then asked in the other order too.
            progress: Whether to show progress; by default on a terminal only.

        Returns:
            The verdict, why the run ended, and what the study has cost.

        Raises:
            Conflict: If another judge has answered, or the one of this name was another one.
            InvalidInput: If the judge takes other arguments, or an argument is out of range.

        Example:
            >>> study = duels.create_study(["a", "bb"], storage="sqlite://")
            >>> study.run(lambda left, right: "left" if len(left) < len(right) else "right").winner
            'a'
        """
        from .judging.run import run

        how: dict[str, Any] = {"orders": orders, "progress": progress}
        return run(self, judge, max_calls=max_calls, max_cost=max_cost, concurrency=concurrency, **how)

    def interleave(
        self,
        rankings: Mapping[str, Sequence[Document]],
        duel: Duel | int | None = None,
        *,
        method: str = "team-draft",
        length: int = 10,
        missing: str = "last",
        voter: str | None = None,
    ) -> Impression:
        """Ask for a duel, and return the list to show: the interleaved rankings of its two arms.

        The list is on disk when this returns. Clicks that ignore relevance prefer neither arm: see
        `duels.rankers.interleave` for the methods of which that is true.

        Args:
            rankings: For each active arm its documents, text or whole numbers, best first; empty if it found none.
            duel: A duel that was asked before. Then only the rankings of its two arms are needed, and the same list is
                returned every time.
            method: As in `duels.rankers.interleave`.
            length: As in `duels.rankers.interleave`, up to 1,000.
            missing: As in `duels.rankers.interleave`.
            voter: Who sees the list.

        Returns:
            The list; for a self-duel, the ranking of its one arm.

        Raises:
            Conflict: If the study was retired.
            InvalidInput: If an arm has no ranking, or the rankings cannot be interleaved. Then nothing is asked.

        Example:
            >>> study = duels.create_study(["old", "new"], storage="sqlite://")
            >>> shown = study.interleave({"old": ["a", "b", "c"], "new": ["c", "a", "b"]})
            >>> study.clicks(shown, [])
            'tie'
        """
        number = None if duel is None else self._log.number_of(duel)
        return self._log.storage.write(
            show_list(self._log, rankings, number, method=method, length=length, missing=missing, voter=voter)
        )

    def clicks(self, impression: Impression | int, clicks: Iterable[Document], *, voter: str | None = None) -> str:
        """Answer a duel by the clicks on its list. The same clicks again are harmless.

        Args:
            impression: The list, or its id.
            clicks: All documents that were clicked.
            voter: Who clicked.

        Returns:
            Which side the clicks prefer: left, right or tie.

        Raises:
            Conflict: If the duel already has another answer.
            InvalidInput: If a clicked document is not on the list.
            NotFound: If there is no such list.
        """
        return self._log.storage.write(answer_by_clicks(self._log, impression, clicks, voter=voter))

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs.

        Raises:
            Conflict: If the study has, or had, an arm of that name.
            InvalidInput: If the name cannot be used.
        """
        (arm,) = arm_names([name], fewest=1)
        self._log.write(partial(self._log.add_arm, arm=arm))

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race. Its answers are kept, and no longer count for the verdict on the others.

        Raises:
            UnknownName: If there is no such arm.
            Conflict: If it was retired already.
            InvalidInput: If fewer than two arms would remain.
        """
        self._log.write(partial(self._log.retire_arm, name=name))

    def set_after(self, after: str) -> None:
        """Change what happens when the winner is known.

        The verdict is not affected: its promise holds however the next questions are chosen.

        Args:
            after: `"stop"`, or `"rank"` to continue until the order of the others is known too.

        Raises:
            InvalidInput: If it is neither.
        """
        self._log.write(partial(self._log.set_after, after=check_after(after)))

    def set_margin(self, margin: float) -> None:
        """Change the margin, which may be chosen at any time, even after looking: no answer is asked for again.

        Args:
            margin: See `create_study`.

        Raises:
            InvalidInput: If it is not at least 0 and below ½.
        """
        self._log.write(partial(self._log.set_margin, margin=check_margin(margin)))

    def set_about(self, about: str) -> None:
        """Change what the verdict is about, before the first question.

        Args:
            about: See `create_study`.

        Raises:
            Conflict: If a question was asked already: what is asked depends on it.
            InvalidInput: If it is none of the three.
        """
        self._log.write(partial(self._log.set_about, about=check_about(about)))

    def import_votes(self, votes: VoteSource, **reading: Unpack[Reading]) -> int:
        """Add past votes as if they had been asked and answered here: all of them or, after an error, none.

        Votes with counts, see `Votes.count`, stay counts: a billion votes on a few pairs are a few rows. The verdict
        and all tables use every vote; the policy, which chooses what is asked next, learns from a sample of 100,000.

        "Voter 7" in a file, who voted through a link of another study, becomes "Voter 7 (imported)" here.

        Warns if the next pair of voters depends on their own answers, as in a sort or a bracket: no verdict's promise
        holds for such votes. Also if rows were left out because they cannot be read.

        Args:
            votes: Anything that `read_votes` reads.
            **reading: As in `read_votes`: columns, on_error and without.

        Returns:
            How many votes were added.

        Raises:
            InvalidInput: If they cannot be read, or are about arms that the study does not have.
        """
        read = read_votes(votes, **reading)
        note = find_paths_in(read)
        for one in (*read.unread_notes, *([] if note is None else [note])):
            warnings.warn(one, stacklevel=2)
        return self._log.import_packed(pack(read, name_imported))

    def votes(self, items: bool = False) -> Votes:
        """Return the answers that count as votes, for `write_votes`; self-duels are left out.

        Args:
            items: Whether to add prompt, left_output and right_output to `Votes.extra`, which has the number of the
                item and the voter's comment anyway, if there are any.
        """
        return export_votes(self, items)

    def open_duels(self) -> list[Duel]:
        """Return the duels without an answer, oldest first."""
        log = self._log
        return with_items(self, log.read(lambda _, history: [log.duel_at(history, number) for number in history.open]))

    def duel(self, number: int) -> Duel:
        """Return a duel by its id.

        Raises:
            InvalidInput: If there is no such duel.
        """
        return with_items(self, [self._log.read(lambda _, history: self._log.find_duel(history, number))])[0]
