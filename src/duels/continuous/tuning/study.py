"""Tuning studies: which setting of some parameters do people prefer? Two settings are compared at a time."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from ...checks import check_int
from ...study.event_study import EventStudy
from ...study.items import allow_scripts
from ...study.stats.goal import goal_of
from ...study.study import Judging
from ...votes.names import voter_name
from ..spaces import Space
from .log import TuningDuel, TuningLog
from .result import Best
from .templates import check_template, load_template, render, store_template

if TYPE_CHECKING:
    import polars as pl

    from .files import PastDuel
    from .judged import TuningResult


class TuningStudy(EventStudy):
    """A study that tunes parameters: `ask` for two settings, `tell` which is better, look at the `best` one.

    Created by `duels.create_study(space=…)`, and loaded by `duels.load_study`.
    Objects of one study in many threads and processes see the same log.

    Example:
        >>> space = duels.Space({"temperature": (0.0, 1.5), "style": ["terse", "warm"]})
        >>> study = duels.create_study(space=space, study_name="voice", storage="sqlite://")
        >>> duel = study.ask()
        >>> sorted(duel.left)
        ['style', 'temperature']
        >>> study.tell(duel, "left")
        >>> study.best.answers
        1
    """

    _log: TuningLog

    def __init__(self, log: TuningLog) -> None:
        super().__init__(log)

    def _compared(self) -> dict[str, Any]:
        return {"arms": [], "space": self.space.to_dict(), "items": 0}

    def _export(self, path: str) -> None:
        from .files import write_duels

        write_duels(self, path)

    @property
    def space(self) -> Space:
        """The parameters."""
        return self._log.space

    @property
    def confidence(self) -> float:
        """The level of the intervals."""
        return goal_of(self._log.row.settings).confidence

    @property
    def answers(self) -> int:
        """How many answers count: no skips, and nothing that was taken back."""
        return self._log.history().total

    @property
    def initial(self) -> int:
        """How many questions are spread over all settings before the policy chooses them."""
        return self._log.chooser.initial(self.space)

    @property
    def template(self) -> str | None:
        """The page on which voters see a setting, see `set_template`; None if they see its values."""
        return load_template(self)

    def set_template(self, template: str | None, *, scripts: bool | None = None) -> None:
        """Set the page on which people who vote through a link of the server see each of the two settings.

        Args:
            template: An HTML page, with `{{ name }}` wherever the value of a parameter belongs; in a script,
                `{{ name | json }}`. The page can load nothing, so its styles and pictures are part of it. None shows
                the values themselves.
            scripts: Whether scripts of the page run; by default they do not, or as it was set before.

        Raises:
            InvalidInput: If a parameter does not exist, none is used, or the page has more than a million characters.

        Example:
            >>> study = duels.create_study(space={"gap": (4, 40, "int")}, study_name="page", storage="sqlite://")
            >>> study.set_template("<p style='margin: {{ gap }}px'>Which margin?</p>")
        """
        checked = None if template is None else check_template(template, self.space)
        if scripts is not None:
            allow_scripts(self, bool(scripts))
        store_template(self, checked)

    def render(self, setting: Mapping[str, object]) -> str | None:
        """Return the page of a setting; None if the study has no template.

        Raises:
            InvalidInput: If it is not a setting of the space.
        """
        template, checked = self.template, self.space.check(setting)
        return None if template is None else render(template, checked)

    def __repr__(self) -> str:
        return f"TuningStudy({self.name!r}, {self.policy}, {', '.join(self.space.names)})"

    @overload
    def ask(self, n: Literal[1] = 1, *, voter: str | None = None) -> TuningDuel: ...  # type: ignore[overload-overlap]

    @overload
    def ask(self, n: int, *, voter: str | None = None) -> list[TuningDuel]: ...

    def ask(self, n: int = 1, *, voter: str | None = None) -> TuningDuel | list[TuningDuel]:
        """Ask for the next duel. It is on disk when this returns.

        The policy knows of open duels within their lease, so that many questions at once spread out.

        Args:
            n: How many duels to ask for, up to 1,000.
            voter: Who is asked; stored with the question.

        Returns:
            The duel, or a list of `n` duels if that is not 1.

        Raises:
            Conflict: If the study was retired.
        """
        n = check_int("n", n, 1, 1000)
        asking = partial(self._log.ask, voter=voter_name(voter))
        duels = [self._log.write(asking, last=True)[0] for _ in range(n)]
        return duels[0] if n == 1 else duels

    @property
    def best(self) -> Best:
        """The best setting so far, its predicted share of wins against the runner-up, and how sure that is."""
        return self._log.advice().best

    def slices(self) -> dict[str, Any]:
        """Return slices of the model through the best setting, as plain data for JSON.

        Returns:
            `best`, `confidence`, `answers`, and `parameters`: for each parameter its `name`, its `kind` (number or
            choice), its bounds or choices, its value in the best setting as `best`, and lists of equal length:
            `values` of the parameter, and for the best setting with that value `mean`, `lower` and `upper` of its
            utility minus that of the best setting, and `share`, `share_lower` and `share_upper` of its predicted share
            of wins against the best setting; `half_lower` and `half_upper` are the interval that has that share with a
            probability of one half.
        """
        return self._log.advice().slices

    def check(self) -> int:
        """Replay the whole log, and check every digest and that each question is the one the policy asks.

        Settings are compared with a tolerance of a thousandth of each parameter's range. Questions that were chosen by
        other code, or on a machine whose last digits may differ, are compared too; if they differ, a warning says how
        many. This takes about as long as asking all questions again.

        Returns:
            How many events there are.

        Raises:
            DamagedStudy: If the log is not what was written.
        """
        return self._log.check()

    def open_duels(self) -> list[TuningDuel]:
        """Return the duels without an answer, oldest first."""
        return self._log.read(lambda _, history: [self._log.find_duel(history, number) for number in history.open])

    def duel(self, number: int) -> TuningDuel:
        """Return a duel by its id.

        Raises:
            InvalidInput: If there is no such duel.
        """
        return self._log.read(lambda _, history: self._log.find_duel(history, number))

    def votes(self) -> "pl.DataFrame":
        """Return the answers that count as a data frame, in the order in which they were given.

        Returns:
            One row per answer: for each parameter `left.NAME` and `right.NAME`, then `winner` (left, right, tie or
            both_bad), `voter`, `time` (of past duels the one that they came with), `duel` and `comment`.
        """
        from .files import export_duels

        return export_duels(self)

    def import_duels(self, duels: "Iterable[PastDuel] | pl.DataFrame") -> int:
        """Add past duels as if they had been asked and answered here: all of them or, after an error, none.

        Args:
            duels: `(left, right, winner)` for each, with two settings and left, right, tie or both_bad, or
                `(left, right, winner, voter, time)`; or a data frame as `votes` returns it. At most 10,000 at once.

        Returns:
            How many were added.

        Raises:
            InvalidInput: If a setting does not belong to the space, or a winner is something else.
        """
        return self._log.storage.write(self._log.importing(duels))

    def run(
        self,
        judge: Judging,
        *,
        max_duels: int | None = None,
        max_calls: int | None = None,
        max_cost: float | None = None,
        concurrency: int = 8,
        orders: Literal["one", "both", "auto"] = "auto",
        progress: bool | None = None,
    ) -> "TuningResult":
        """Let a judge answer until a limit is reached. Call it again to resume.

        Args:
            judge: A function of `(left, right)`, two settings, that returns `"left"`, `"right"`, `"tie"`, `"both_bad"`,
                `"skip"` or a `duels.judges.Answer`; it may be async. Or a dict of such functions by name. A function
                of `(prompt, left, right)` gets None as the prompt. Judges of `duels.judges` may be used too.
            max_duels: How many duels the study is to ask, over all runs, those included that are skipped, but not those
                to which a judge gave no usable answer; by default 50 if no other limit is given.
            max_calls: How many calls the study may make, over all runs.
            max_cost: How much its calls may cost, over all runs.
            concurrency: How many questions are asked at the same time.
            orders: How often a question is asked, see `Study.run`.
            progress: Whether to show progress; by default on a terminal only.

        Returns:
            The best setting, why the run ended, and what the study has cost.

        Raises:
            Conflict: If another judge has answered, or the one of this name was another one.
            InvalidInput: If the judge takes other arguments, or an argument is out of range.

        Example:
            >>> study = duels.create_study(space={"x": (0.0, 1.0)}, storage="sqlite://")
            >>> closer = lambda left, right: "left" if abs(left["x"] - 0.3) < abs(right["x"] - 0.3) else "right"
            >>> result = study.run(closer, max_duels=12)
            >>> result.ended
            'max_duels'
        """
        from .judged import run

        how: dict[str, Any] = {"orders": orders, "progress": progress, "max_duels": max_duels}
        return run(self, judge, max_calls=max_calls, max_cost=max_cost, concurrency=concurrency, **how)
