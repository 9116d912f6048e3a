"""Let judges answer a tuning study's questions until a limit is reached; and all of it in one call."""

import asyncio
import hashlib
import html
import json
import sys
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from ...checks import check_int
from ...errors import format_count
from ...judges.fingerprints import fingerprints
from ...judges.openai import OpenAIJudge
from ...judges.questions import Answer, Judge, Question
from ...judges.terminal import TerminalJudge
from ...judges.threads import in_thread
from ...storage.storage import Storage
from ...study.judging.ask_judge import Task
from ...study.judging.ledger import Spent
from ...study.judging.progress import Line, Shown, Shows, format_spent
from ...study.judging.result import REASONS, Ended, bias_lines, costs_text, end_with_stop
from ...study.judging.run import OUT, Run, conduct
from ...study.state.live import LiveState
from ...study.study import Judging
from ...study.voters.agreement import Agreement
from ...study.voters.voter_tests import Position
from ..policies import Policy
from ..spaces import Space
from .create import create_tuning
from .result import Best, setting_text
from .study import TuningStudy

DUELS = 50  # of a study without a limit
STOPPED = {"max_duels": "{duels} asked, as many as wanted: raise max_duels (--max-duels) to continue."}


class TuningResult(NamedTuple):
    """What a run of judges found in a tuning study; `str` gives it as text.

    Attributes:
        best: The best setting, and how sure that is.
        ended: Why the run ended: max_duels, max_calls, max_cost, interrupted, failed or retired.
        error: The last error of the judge, if it has failed at a question.
        spent: Calls, cost and failures of the study, over all runs.
        positions: How often each judge chose each side.
        agreements: How often the judges agree, if there are several.
        study: The study.
        duels: How many duels it has asked.
    """

    best: Best
    ended: Ended
    error: str | None
    spent: Spent
    positions: list[Position]
    agreements: list[Agreement]
    study: TuningStudy
    duels: int

    @property
    def calls(self) -> int:
        """How many calls the study made, over all runs."""
        return self.spent.calls

    @property
    def cost(self) -> float:
        """What they cost."""
        return self.spent.cost

    def __str__(self) -> str:
        reason = (REASONS | STOPPED)[self.ended].format(
            error=end_with_stop(self.error or ""), duels=format_count(self.duels, "duel")
        )
        parts = [str(self.best), reason, costs_text(self.spent), *bias_lines(self.positions)]
        return "\n".join(part for part in [*parts, *(f"{one}." for one in self.agreements)] if part)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class TuningRun(Run):
    """One run of a tuning study: as `Run`, without a verdict that could end it.

    Args:
        study: The study.
        max_duels: How many duels it may ask, over all runs; None for any number.
        judges: As for `Run`, as the other arguments.
    """

    uncertain = (None, "max_duels")
    is_repeated = False  # a model takes its answers as noisy
    study: Any  # a `TuningStudy`, of which `Run` uses what it shares with `Study`

    def __init__(
        self, study: TuningStudy, max_duels: int | None, judges: Mapping[str | None, Judge], *others: Any
    ) -> None:
        given: Any = study
        super().__init__(given, {name: _make_reader(one) for name, one in judges.items()}, *others)
        self.max_duels = max_duels

    @property
    def unanswered(self) -> dict[int, str | None]:
        """The duels at which the judge failed. One whose reply cannot be used is replaced by another duel."""
        return self.ledger.failed

    def _reason_in_answers(self, history: LiveState) -> None:
        return None

    def _look_first(self) -> None:
        """There are no items."""

    def _ask_in(self, connection: sa.Connection, *, most: int) -> list[Task]:
        """Ask new questions, if so many are ready; fewer, and the run ends, if there are to be no more."""
        if self._unconfirmed or most < 1:
            return []
        log = self.study._log
        asked = len(log.current(connection).left) - len(self.ledger.unusable)  # those without an answer are free
        count = most if self.max_duels is None else min(most, self.max_duels - asked)
        if count < 1:
            self.ended = "max_duels"
            return []
        log.refuse_unready(connection, count)
        orders, tasks = self._orders(), list[Task]()
        for _ in range(count):
            judge = min(self.judges, key=self._begun.__getitem__)
            (duel,) = log.ask(connection, voter=judge, about=lambda *_: {"calls": orders, "run": self.token})
            self._begun[judge] += 1
            tasks.append(Task(duel, judge, orders))
        return tasks

    def result(self) -> Any:
        """Return what was found."""
        ended: Ended = self.ended or "max_duels"
        if ended in OUT and self._failures and not self._answers:
            ended = "failed"  # at all that there was to ask
        study, ledger = self.study, self.ledger
        about = (self.error, ledger.total(), ledger.positions(), ledger.agreements())
        return TuningResult(study.best, ended, *about, study, len(study._log.history().left))


def _make_reader(judge: Judge) -> Judge:
    """A judge that gets settings as it can read them: as dicts, or as text for people and language models."""
    return _ReadsText(judge) if isinstance(judge.function, TerminalJudge | OpenAIJudge) else judge


class _ReadsText(Judge):
    def __init__(self, judge: Judge) -> None:
        self.__dict__.update(judge.__dict__)

    async def __call__(self, question: Question) -> Answer:
        left, right = (setting_text(_setting(side), "\n") for side in (question.left, question.right))
        return await super().__call__(question._replace(left=left, right=right))


def _setting(side: Any) -> dict[str, object]:
    return dict(side)


class _Line(Line):
    """One line on a terminal: calls, cost and duels."""

    def _text(self, run: Any, rate: float) -> Any:
        from rich.text import Text

        duels = len(run.study._log.history().left)
        of = "" if run.max_duels is None else f" of {run.max_duels:,}"
        return Text(f"{format_spent(run.ledger.spent())} · {duels:,}{of} {'duel' if duels == 1 else 'duels'} asked")


class _LastLine(Shown):
    def end(self, result: TuningResult) -> None:
        best = setting_text(result.best.setting)
        print(f"{format_spent(result.spent)}: the best setting is {best} ({result.ended})", file=sys.stderr)


def run(
    study: TuningStudy,
    judge: Any,
    *,
    max_duels: int | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    orders: Literal["one", "both", "auto"] = "auto",
    progress: bool | None = None,
) -> TuningResult:
    """As `TuningStudy.run`."""
    options: dict[str, Any] = {"max_duels": max_duels, "max_calls": max_calls, "max_cost": max_cost}
    options |= {"concurrency": concurrency, "orders": orders, "progress": progress}
    return in_thread(lambda stop: run_async(study, judge, **options, stop=stop))


async def run_async(
    study: TuningStudy,
    judge: Any,
    *,
    max_duels: int | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    orders: Literal["one", "both", "auto"] = "auto",
    progress: bool | None = None,
    stop: threading.Event | None = None,
) -> TuningResult:
    """As `TuningStudy.run`, in an event loop. See there for the arguments.

    Args:
        stop: When it is set, the run asks no more, and ends when the calls in progress have.
    """
    if max_duels is None and max_calls is None and max_cost is None:
        max_duels = DUELS
    most = None if max_duels is None else check_int("max_duels", max_duels, 1)
    options: dict[str, Any] = {"max_calls": max_calls, "max_cost": max_cost, "concurrency": concurrency}
    options |= {"orders": orders, "progress": progress, "shows": Shows(_Line, _LastLine)}
    result: TuningResult = await conduct(partial(TuningRun, study, most), judge, stop=stop, **options)
    return result


def tune(
    space: Space | Mapping[str, object],
    judge: Judging,
    *,
    max_duels: int | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    orders: Literal["one", "both", "auto"] = "auto",
    policy: str | Policy | None = None,
    seed: int = 0,
    storage: str | Storage | None = None,
    study_name: str | None = None,
    progress: bool | None = None,
) -> TuningResult:
    """Find a good setting by asking a judge. Call it again to resume.

    Args:
        space: The parameters, see `duels.Space`.
        judge: See `TuningStudy.run`.
        max_duels: How many duels the study is to ask, over all runs; by default 50 if no other limit is given.
        max_calls: How many calls the study may make, over all runs.
        max_cost: How much its calls may cost, over all runs.
        concurrency: How many questions are asked at the same time.
        orders: `"one"`, `"both"` or `"auto"`, see `Study.run`.
        policy: What chooses the duels, see `create_tuning`.
        seed: Of the policy's random choices.
        storage: A database's URL, by default `sqlite:///duels.db`.
        study_name: The study's name; by default one that depends on the space, the policy, the seed and the judge.
        progress: Whether to show progress; by default on a terminal only.

    Returns:
        The best setting, how sure that is, calls and cost, and the study.

    Raises:
        Conflict: If the study has another space, or another judge has answered.
        InvalidInput: If an argument cannot be used.

    Example:
        >>> closer = lambda left, right: "left" if abs(left["x"] - 0.3) < abs(right["x"] - 0.3) else "right"
        >>> result = duels.tune({"x": (0.0, 1.0)}, closer, max_duels=15, storage="sqlite://")
        >>> abs(result.best.setting["x"] - 0.3) < 0.1
        True
    """
    study = _study(space, judge, policy, seed, storage, study_name)
    options: dict[str, Any] = {"max_duels": max_duels, "max_calls": max_calls, "max_cost": max_cost}
    return run(study, judge, **options, concurrency=concurrency, orders=orders, progress=progress)


async def tune_async(
    space: Space | Mapping[str, object],
    judge: Judging,
    *,
    max_duels: int | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    orders: Literal["one", "both", "auto"] = "auto",
    policy: str | Policy | None = None,
    seed: int = 0,
    storage: str | Storage | None = None,
    study_name: str | None = None,
    progress: bool | None = None,
) -> TuningResult:
    """As `tune`, in an event loop.

    Example:
        >>> import asyncio
        >>> async def closer(left, right):
        ...     return "left" if abs(left["x"] - 0.3) < abs(right["x"] - 0.3) else "right"
        >>> async def main():
        ...     return await duels.continuous.tune_async({"x": (0.0, 1.0)}, closer, max_duels=15, storage="sqlite://")
        >>> result = asyncio.run(main())
        >>> abs(result.best.setting["x"] - 0.3) < 0.1
        True
    """
    study = await asyncio.to_thread(_study, space, judge, policy, seed, storage, study_name)
    options: dict[str, Any] = {"max_duels": max_duels, "max_calls": max_calls, "max_cost": max_cost}
    return await run_async(study, judge, **options, concurrency=concurrency, orders=orders, progress=progress)


def _study(
    space: Space | Mapping[str, object],
    judge: Judging,
    policy: str | Policy | None,
    seed: int,
    storage: str | Storage | None,
    study_name: str | None,
) -> TuningStudy:
    """The study that `tune` creates, or goes on with."""
    found = Space(space)
    name = tuning_name(found, judge, policy, seed) if study_name is None else study_name
    return create_tuning(found, name, storage, policy, seed=seed, load_if_exists=True)


def tuning_name(space: Space, judge: Any, policy: str | Policy | None, seed: int) -> str:
    """Return a name for a study that depends on the space, the judge, the policy and the seed."""
    judges = sorted((str(name), one) for name, one in fingerprints(judge).items())
    text = json.dumps([space.to_dict(), judges, None if policy is None else str(policy), seed])
    return f"tuning, {hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
