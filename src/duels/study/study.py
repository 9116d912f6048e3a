"""What a study shows: its arms, results and verdict.

Live studies: people and systems answer the duels that a policy asks for.

A study is a log of events; everything else is computed from it. Many threads, processes and hosts may ask and tell at
once: each write first applies what others have written.

Each change has up to three methods: `tell` writes and waits, `telling` returns the write for callers that wait in
their own way, and `tell_in` does the work inside a transaction.
"""

import html
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, InvalidInput, LackingOutputs, NothingToAsk, UnknownName, format_count
from ..storage.batches import Batch, Packed, pack, store
from ..storage.storage import Event, Write
from ..votes.names import LinkVoter, arm_names, name_imported, place_of, voter_name
from ..votes.readers import Reading, VoteSource, read_votes
from ..votes.votes import Votes
from . import base
from .allocation import Allocation, allocate
from .answering import Answering
from .answers.past_votes import MOST_VOTES, check_batch, export_votes, too_many
from .base import Log
from .duels import Duel, DuelItem, duel_number, iso_time
from .impressions import Document, Impression, answer_by_clicks, show_list
from .items import find_item_set, with_items
from .state.counts import next_event
from .state.item_schedule import ItemSet
from .state.live import History
from .state.look import Look, find_asked_arms, measure_pace, read_columns
from .state.people import NOBODY
from .stats import leaderboard as tables
from .stats.about import THESE_ANSWERS, check_about
from .stats.certainty import check_confidence, check_margin
from .stats.exhausted import describe_power
from .stats.forecast import Forecast
from .stats.goal import Goal, check_after
from .stats.leaderboard import Leaderboard, RankRow, rank_rows
from .stats.moments import Moments
from .stats.paths import find_paths_in
from .stats.tally import LeaderboardRow, PairRow, Tally
from .stats.verdict import Verdict
from .voters.links import refuse_imported, refuse_invited

if TYPE_CHECKING:
    from .judging.result import JudgeResult


class Shown(Log):
    """The part of `Study` that only looks at the log."""

    @property
    def policy(self) -> str:
        """The policy's name and parameters, such as `rucb:alpha=0.6`."""
        return self._row.policy

    @property
    def goal(self) -> Goal:
        """What the study is to find out, and by which rules."""
        return self.history().goal

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        history = self.history()
        return [name for name, active in zip(history.names, history.active) if active]

    @property
    def retired(self) -> bool:
        """Whether the study was retired, and asks no more questions."""
        return self.history().retired

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.policy}, {len(self.arms)} arms)"

    def _repr_html_(self) -> str:
        tally, answers = self.read(lambda _, history: (history.tally, history.total))
        verdict = self.verdict()
        about = [self.policy, format_count(int(tally.active.sum()), "arm"), format_count(answers, "answer")]
        title = f"<strong>{html.escape(self.name)}</strong> · {html.escape(' · '.join(about))}"
        table = tables.leaderboard_html(self.ranked_leaderboard()) if answers else ""
        return f"<p>{title}</p>{verdict._repr_html_()}{table}"

    def leaderboard(self, confidence: float | None = None) -> list[LeaderboardRow]:
        """Return one row per arm, best first.

        Args:
            confidence: Of the intervals, one by one, and of certain wins, all together; by default the study's.
        """
        return self.ranked_leaderboard(confidence).rows

    def ranked_leaderboard(self, confidence: float | None = None) -> Leaderboard:
        """As `leaderboard`, and by what the arms are ranked."""
        look = self.look()
        tally = look.tally._replace(open=None)
        verdict = look.verdict()
        return tables.leaderboard(tally, confidence or look.goal.confidence, verdict.named, verdict.winner)

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
        look = self.look()
        if confidence is None or check_confidence(confidence) == look.goal.confidence:
            return look.verdict(margin)
        goal = look.goal._replace(confidence=check_confidence(confidence))
        moments = Moments(look.tally, goal.confidence)
        void = f"a confidence of {confidence:g} was chosen afterwards, the study's own is {look.goal.confidence:g}"
        return look._replace(goal=goal, moments=moments).verdict(margin, void)

    def look(self) -> Look:
        """Copy what the verdict depends on now."""
        return self.read(self.look_in)

    def look_in(self, connection: sa.Connection, history: History) -> Look:
        """As `look`, while nobody can write."""
        look = history.look(base.clock(), all_moments=False)
        return look._replace(
            answers=lambda: self.read(lambda _, history: read_columns(history)), asked=find_asked_arms(history)
        )

    def is_exhausted(self, look: Look, verdict: Verdict) -> bool:
        """Return whether no question that is left can bring what the study is to find out.

        Args:
            look: A look at the study.
            verdict: Its verdict.
        """
        return verdict.exhausted is not None

    def describe_power(self, items: int) -> str:
        """Return what so many items can show at all, where each pair is asked about each of them once."""
        return describe_power(self.tally()._replace(items=items), self.goal.confidence)

    def forecast(self) -> Forecast:
        """Estimate, before the verdict, how likely each arm is the best and how many more answers are needed.

        These are estimates under a model, see `duels.study.stats.forecast`; only the verdict is a promise.
        """
        look, pace = self.read(
            lambda connection, history: (self.look_in(connection, history), measure_pace(history, base.clock()))
        )
        return look.forecast(pace.answers_an_hour)

    def ranking(self) -> list[RankRow]:
        """Return the active arms in the order of the leaderboard, and which ranks are certain.

        A study with `after="rank"` asks on until all are. The first rank keeps the promise of the verdict, the others
        that about all pairs: each holds with the study's confidence, however often you look.
        """
        look = self.look()
        verdict = look.verdict()
        return rank_rows(look.tally._replace(open=None), verdict.named, verdict.winner, look.goal.confidence)

    def tally(self) -> Tally:
        """Return the answers that count, as wins and ties of each pair."""
        return self.read(lambda connection, history: history.tally)

    @property
    def best_arm(self) -> str:
        """The arm that the policy recommends now; `verdict` says how certain that is."""
        return self.read(self._recommend)

    def _recommend(self, connection: sa.Connection, history: History) -> str:
        arms = list(history.places)
        return history.names[arms[self.player(history).recommend(self._row.seed)]]

    def duel_in(self, history: History, duel: object) -> Duel:
        """Return a duel by its id.

        Args:
            history: The study's state.
            duel: The duel's id.

        Raises:
            InvalidInput: If there is no such duel.
        """
        number = duel_number(duel)
        self._check_duel(history, number)
        return self._duel(history, number)

    def _duel(self, history: History, number: int) -> Duel:
        left, right = history.names[history.left[number]], history.names[history.right[number]]
        about = 0 if history.items is None else history.items.of[number]
        item = DuelItem(about) if about else None
        return Duel(number, left, right, self.name, iso_time(history.asked[number]), item)


Judging = Callable[..., object] | Mapping[str, Callable[..., object]]
About = Callable[[sa.Connection, Duel], Mapping[str, object]]

TOGETHER = 100  # questions that are written at once, while others wait


def parts_of(n: int) -> list[int]:
    """Return the sizes of the parts in which n questions are asked, each in a write of its own."""
    n = check_int("n", n, 1, 10_000)
    return [min(TOGETHER, n - done) for done in range(0, n, TOGETHER)]


class Study(Shown, Answering):
    """A live study: `ask` for a duel, `tell` who won, look at the `verdict`.

    Created by `create_study` and `load_study`. Objects of one study in many threads and processes see the same log.

    Example:
        >>> study = duels.create_study(["a", "b", "c"], storage="sqlite://")
        >>> study.tell(study.ask(), "left")
        >>> study.verdict().kind
        'not yet'
    """

    @property
    def chooses_pairs(self) -> bool:
        """Whether pairs were chosen by earlier answers; not if all votes were imported."""
        return self.read(lambda connection, history: len(history.left) > history.imported)

    def prepare(self) -> None:
        """Load the study and compile its policy now, rather than when the first question is asked."""
        self.read(lambda connection, history: self.player(history))

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
        duels = list[Duel]()
        for part in parts_of(n):
            try:
                duels += self._storage.write(self.asking(part, voter=voter, allow_self=allow_self))
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

    def asking(
        self, n: int = 1, *, voter: str | None = None, allow_self: bool = True, about: About | None = None
    ) -> Write[list[Duel]]:
        """Return what `ask` writes; its value is a list of duels. See `ask_in` for the arguments."""
        n, name = check_int("n", n, 1, 10_000), voter_name(voter)
        return Write(partial(self.ask_in, n=n, voter=name, allow_self=allow_self, about=about), self._row.id, last=True)

    def ask_in(
        self,
        connection: sa.Connection,
        *,
        n: int = 1,
        voter: str | None = None,
        allow_self: bool = True,
        about: About | None = None,
        by_judge: bool = False,
    ) -> list[Duel]:
        """Ask for duels inside a transaction.

        Args:
            connection: The transaction's connection.
            n: How many duels to ask for.
            voter: Who is asked; the name was checked.
            allow_self: Whether an arm may meet itself.
            about: Called with each duel before it is written; what it returns is stored in the event's note.
            by_judge: Whether a judge is asked, who may be asked about an item again.

        Returns:
            The duels. Fewer than n, but at least one, if there are no more to ask.

        Raises:
            Conflict: If the study was retired.
            NothingToAsk: If there is nothing left to ask.
            NotReady: If the policy's state must be updated first.
        """
        history = self.current(connection)
        refuse_invited(self, connection, voter)
        if history.retired:
            raise Conflict(f"study {self.name!r} was retired: it asks no more questions, unless it is resumed")
        self.player(history)
        now, new, duels = base.clock(), list[Event](), list[Duel]()
        for _ in range(n):
            person = NOBODY if by_judge else history.people.find(voter)
            with history.preview_items(None if history.left else find_item_set(connection, self)):
                shared = not history.can_ask(now, person)
                if shared and not (isinstance(voter, LinkVoter) and history.can_ask(now, person, shared)):
                    break
                event, duel = self._next_question(connection, history, now, voter, person, allow_self, about, shared)
            history.take(event)
            new.append(event)
            duels.append(duel)
        if not duels:
            raise self._refuse_to_ask(history, voter)
        self._append(history, new)
        return duels

    def _next_question(
        self,
        connection: sa.Connection,
        history: History,
        now: float,
        voter: str | None,
        person: int,
        allow_self: bool,
        about: About | None,
        shared: bool,
    ) -> tuple[Event, Duel]:
        """The next question as an event, which is not written yet, and as a duel."""
        assert history.items is not None
        has_items, number = history.items.size > 0, len(history.left)
        left, right, swapped = history.question(now, allow_self and not has_items, person, shared)
        place = history.next_place(left, right, now, person, shared)
        item = None if place is None else DuelItem(place[1])
        duel = Duel(number, history.names[left], history.names[right], self.name, iso_time(now), item)
        note: dict[str, object] = {} if allow_self else {"allow_self": False}
        note |= {"person": True} if person >= 0 else {}
        note |= {"shared": True} if shared else {}
        if place is not None:
            note |= {"item": place[1]} | ({} if place[0] == place[1] else {"place": place[0]})
        if not number and has_items:
            note |= ItemSet(history.items.items, history.items.ready).as_note()
        note |= about(connection, duel) if about else {}
        event = next_event(
            history,
            "ask",
            now,
            duel=number,
            attempt=0,
            left_arm=left,
            right_arm=right,
            swapped=swapped,
            voter=voter,
            note=json.dumps(note, ensure_ascii=False) if note else None,
        )
        return event, duel

    def _refuse_to_ask(self, history: History, voter: str | None) -> Conflict:
        if not history.has_outputs:
            return LackingOutputs(
                f"fewer than two arms of study {self.name!r} have outputs for all items: add those that are missing"
            )
        if voter is not None and history.can_ask(base.clock()):
            return NothingToAsk(f"{voter!r} was asked every pair about every item of study {self.name!r}")
        return NothingToAsk(
            f"study {self.name!r} has asked every pair about every item: nothing is left to ask, unless a question "
            "stays without an answer"
        )

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
        number = None if duel is None else self._number(duel)
        return self._storage.write(
            show_list(self, rankings, number, method=method, length=length, missing=missing, voter=voter)
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
        return self._storage.write(answer_by_clicks(self, impression, clicks, voter=voter))

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs.

        Raises:
            Conflict: If the study has, or had, an arm of that name.
            InvalidInput: If the name cannot be used.
        """
        (arm,) = arm_names([name], fewest=1)
        self._storage.write(Write(partial(self._add_arm_in, arm=arm), self._row.id))

    def _add_arm_in(self, connection: sa.Connection, *, arm: str) -> None:
        history = self.current(connection)
        place = place_of(arm, history.names)
        if place is not None:
            state = "exists already" if history.active[place] else "was retired"
            raise Conflict(f"arm {arm!r} {state}: choose another name")
        if history.goal.about == THESE_ANSWERS and history.left:
            raise Conflict(
                f"arm {arm!r} cannot be added: study {self.name!r} counts the answers about the items that it had at "
                "its first question, and they have no outputs of it; create another study"
            )
        history.policy.start(sum(history.active) + 1, self._row.horizon)  # the policy may refuse so many arms
        self._write(history, "add_arm", note=json.dumps({"arm": arm}, ensure_ascii=False))

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race. Its answers are kept, and no longer count for the verdict on the others.

        Raises:
            UnknownName: If there is no such arm.
            Conflict: If it was retired already.
            InvalidInput: If fewer than two arms would remain.
        """
        self._storage.write(Write(partial(self._retire_arm_in, name=name), self._row.id))

    def _retire_arm_in(self, connection: sa.Connection, *, name: str) -> None:
        history = self.current(connection)
        arm = place_of(name, history.names)
        if arm is None:
            raise UnknownName("arm", name, history.names)
        if not history.active[arm]:
            raise Conflict(f"arm {name!r} was retired already")
        if sum(history.active) <= 2:
            raise InvalidInput(f"arm {name!r} cannot be retired: a study needs two active arms")
        self._write(history, "retire_arm", left_arm=arm)

    def set_after(self, after: str) -> None:
        """Change what happens when the winner is known.

        The verdict is not affected: its promise holds however the next questions are chosen.

        Args:
            after: `"stop"`, or `"rank"` to continue until the order of the others is known too.

        Raises:
            InvalidInput: If it is neither.
        """
        self._storage.write(Write(partial(self._set_after_in, after=check_after(after)), self._row.id))

    def _set_after_in(self, connection: sa.Connection, *, after: str) -> None:
        history = self.current(connection)
        if history.goal.after != after:
            self._write(history, "goal", note=json.dumps({"after": after}))

    def set_margin(self, margin: float) -> None:
        """Change the margin, which may be chosen at any time, even after looking: no answer is asked for again.

        Args:
            margin: See `create_study`.

        Raises:
            InvalidInput: If it is not at least 0 and below ½.
        """
        self._storage.write(Write(partial(self._set_margin_in, margin=check_margin(margin)), self._row.id))

    def _set_margin_in(self, connection: sa.Connection, *, margin: float) -> None:
        history = self.current(connection)
        if history.goal.margin != margin:
            self._write(history, "goal", note=json.dumps({"margin": margin}))

    def set_about(self, about: str) -> None:
        """Change what the verdict is about, before the first question.

        Args:
            about: See `create_study`.

        Raises:
            Conflict: If a question was asked already: what is asked depends on it.
            InvalidInput: If it is none of the three.
        """
        self._storage.write(Write(partial(self._set_about_in, about=check_about(about)), self._row.id))

    def _set_about_in(self, connection: sa.Connection, *, about: str) -> None:
        history = self.current(connection)
        if history.goal.about == about:
            return
        if history.left:
            raise Conflict(
                f"study {self.name!r} is about {history.goal.about} and has asked questions: which ones depends on "
                f"that; create another study about {about}"
            )
        self._write(history, "goal", note=json.dumps({"about": about}))

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
        return self.import_packed(pack(read, name_imported))

    def import_packed(self, packed: Packed) -> int:
        """As `import_votes`, with packed votes."""
        return self._storage.write(self.importing(packed)) if packed.size else 0

    def importing(self, packed: Packed) -> Write[int]:
        """Return what `import_packed` writes; its value is the number of votes."""
        note, batch = check_batch(packed, self.name, self.history().names)  # an arm keeps its index
        return Write(partial(self._import_in, packed=packed, batch=batch, note=json.dumps(note)), self._row.id)

    def _import_in(self, connection: sa.Connection, *, packed: Packed, batch: Batch, note: str) -> int:
        history = self.current(connection)
        if history.goal.asks_once:
            raise Conflict(
                f"study {self.name!r} asks each pair about each item once, and past votes do not say which item they "
                "are about: import them into a study about these-items"
            )
        refuse_imported(self, connection, packed)
        if history.total + packed.total > MOST_VOTES:
            raise too_many(self.name)
        event = next_event(history, "import", base.clock(), duel=len(history.left), attempt=0, note=note)
        history.take(event, batch)
        self._append(history, [event])
        self._storage.flush(connection)
        store(connection, self._row.id, event.seq, packed)
        return packed.total

    def votes(self, items: bool = False) -> Votes:
        """Return the answers that count as votes, for `write_votes`; self-duels are left out.

        Args:
            items: Whether to add prompt, left_output and right_output to `Votes.extra`, which has the number of the
                item and the voter's comment anyway, if there are any.
        """
        return export_votes(self, items)

    def open_duels(self) -> list[Duel]:
        """Return the duels without an answer, oldest first."""
        return with_items(
            self, self.read(lambda connection, history: [self._duel(history, number) for number in history.open])
        )

    def duel(self, number: int) -> Duel:
        """Return a duel by its id.

        Raises:
            InvalidInput: If there is no such duel.
        """
        return with_items(self, [self.read(lambda connection, history: self.duel_in(history, number))])[0]
