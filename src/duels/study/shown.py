"""What a study shows: its arms, results and verdict."""

import html

import sqlalchemy as sa

from ..errors import format_count
from . import leaderboard as tables
from . import log
from .certainty import check_confidence
from .duels import Duel, DuelItem, duel_number, iso_time
from .exhausted import describe_power
from .goal import Goal
from .history import History
from .leaderboard import Leaderboard, RankRow, rank_rows
from .log import Log
from .look import Look, find_asked_arms, read_columns
from .moments import Moments
from .pace import measure_pace
from .standing import Standing
from .tally import LeaderboardRow, PairRow, Tally
from .verdict import Verdict


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
        """Return who is best, as far as that is certain. It stays valid however often you look.

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
        look = history.look(log.clock(), all_moments=False)
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

    def standing(self) -> Standing:
        """Estimate, before the verdict, how likely each arm is the best and how many more answers are needed.

        These are estimates under a model, see `duels.study.standing`; only the verdict is a promise.
        """
        look, pace = self.read(
            lambda connection, history: (self.look_in(connection, history), measure_pace(history, log.clock()))
        )
        return look.standing(pace.answers_an_hour)

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
