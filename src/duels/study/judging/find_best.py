"""Find the best of some candidates in one call: create the study, produce what is missing, and let a judge answer.

Whether a new version is as good as the old one within a margin: a study that ends when this is known.
"""

import asyncio
import hashlib
import inspect
import json
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Literal

import sqlalchemy as sa

from ...checks import check_int
from ...errors import Conflict, InvalidInput, StorageError, UnknownName, format_count, shorten
from ...judges.fingerprints import fingerprint, fingerprints
from ...judges.questions import JudgeError
from ...judges.retries import attempt_call
from ...judges.threads import Threads, in_thread
from ...storage.storage import Storage
from ...storage.tables import outputs as stored_outputs
from ...storage.tables import studies
from ...votes.items import Item, ItemSource, items_of, output_of, read_items
from ..create import create_study, load_study
from ..items import add_output, append_items, count_items, find_lacking, list_items, store_items
from ..state.look import Look
from ..stats.about import NEW_ITEMS, About, check_about
from ..stats.certainty import check_confidence, check_margin
from ..stats.evidence import closeness_on_items, log_closeness, log_shortfall, shortfall_on_items
from ..stats.goal import Goal
from ..stats.tally import Tally
from ..stats.verdict import Verdict
from ..study import Judging, Study
from .result import JudgeResult
from .run import run_async

Producer = Callable[[str], object]  # it may be async
Candidates = Mapping[str, Sequence[object] | Producer] | ItemSource | Iterable[str]
MANY = 1000  # items that are read at a time


def find_best(
    outputs: Candidates,
    judge: Judging,
    *,
    prompts: Iterable[str] | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    confidence: float = 0.95,
    margin: float = 0.0,
    orders: Literal["one", "both", "auto"] = "auto",
    about: About = NEW_ITEMS,
    storage: str | Storage | None = None,
    study_name: str | None = None,
    progress: bool | None = None,
) -> JudgeResult:
    """Find the best of some candidates by asking a judge. Call it again to resume.

    Args:
        outputs: The candidates: `{"terse": [...], "expert": [...]}` with one output per prompt; functions of a prompt,
            sync or async, in place of lists, which are called once per prompt; a file or frame of items, see
            `duels.votes.items`; or just names.
        judge: See `Study.run`.
        prompts: The prompts, if the outputs are given by candidate.
        max_calls: How many calls the study may make, over all runs; by default see `Study.run`.
        max_cost: How much its calls may cost, over all runs.
        concurrency: How many calls are made at the same time.
        confidence: The probability that no verdict of the study is ever wrong.
        margin: If above 0, a candidate may be declared practically tied with the best; see `create_study`. The same
            call with another margin keeps all answers, and asks more only if these do not suffice.
        orders: `"one"`, `"both"` or `"auto"`, see `Study.run`.
        about: What is to be found out: `"new-items"`, which candidate is best on prompts like these; `"these-items"`,
            which is best on exactly these, asked of a judge that may answer differently each time; or
            `"these-answers"`, which wins most of these by answers that are final, for a judge that always answers the
            same.
        storage: A database's URL, by default `sqlite:///duels.db`.
        study_name: The study's name; by default one that depends on the candidates, the prompts and the judge.
        progress: Whether to show progress; by default on a terminal only. If True and standard error is not a
            terminal, it gets one line at the end.

    Returns:
        The verdict, the leaderboard, calls and cost, and the study.

    Raises:
        Conflict: If the study has other candidates, prompts or outputs, or another judge has answered.
        InvalidInput: If an argument cannot be used.
        JudgeError: If a candidate's function fails again and again.

    Example:
        >>> outputs = {"terse": ["4", "9"], "wordy": ["It is 4.", "It is nine."]}
        >>> shorter = lambda prompt, left, right: "left" if len(left) < len(right) else "right"
        >>> result = duels.find_best(outputs, shorter, prompts=["2 + 2?", "3 · 3?"], storage="sqlite://")
        >>> result.winner
        'terse'
    """
    given = _Given(
        outputs, judge, prompts, max_calls, max_cost, concurrency, confidence, margin, orders, about, progress
    )
    study = given.study(storage, study_name)
    return in_thread(partial(given.run, study))


async def find_best_async(
    outputs: Candidates,
    judge: Judging,
    *,
    prompts: Iterable[str] | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    confidence: float = 0.95,
    margin: float = 0.0,
    orders: Literal["one", "both", "auto"] = "auto",
    about: About = NEW_ITEMS,
    storage: str | Storage | None = None,
    study_name: str | None = None,
    progress: bool | None = None,
) -> JudgeResult:
    """As `find_best`, in an event loop."""
    given = _Given(
        outputs, judge, prompts, max_calls, max_cost, concurrency, confidence, margin, orders, about, progress
    )
    study = await asyncio.to_thread(given.study, storage, study_name)
    return await given.run(study, threading.Event())


def assert_not_worse(
    new: Sequence[object] | Producer,
    old: Sequence[object] | Producer,
    judge: Judging,
    *,
    prompts: Iterable[str] | None = None,
    margin: float = 0.05,
    max_calls: int = 200,
    confidence: float = 0.95,
    about: About = NEW_ITEMS,
    storage: str | Storage | None = None,
) -> JudgeResult:
    """Fail a test if a new version is worse than the old one, or if it is not known whether it is.

    It asks until it is certain that the new version scores at least ½ − margin on prompts like these, and passes, or
    until it is certain that it does not, and fails. It also fails if the prompts, or `max_calls`, are too few to tell.
    If both versions have the same output for every prompt, it passes without a call.

    Args:
        new: The outputs of the new version, one per prompt, or a function of a prompt.
        old: Those of the old version.
        judge: See `Study.run`.
        prompts: The prompts.
        margin: How much worse the new version may be. Its score is the share of prompts that it wins, where a tie is a
            half; ½ − margin is enough.
        max_calls: How many calls may be made.
        confidence: The probability that the test is right.
        about: See `find_best`. With `"these-answers"`, once everything was asked, the prompts that have an answer
            decide.
        storage: Where the study is kept; by default in memory, for this test only. The same test then goes on there.

    Returns:
        The result, if the new version is as good within the margin. Its verdict may still be that the old one wins.

    Raises:
        AssertionError: If the new version is worse by more than the margin, or it is not known.
        JudgeError: If the judge fails.

    Example:
        >>> shorter = lambda prompt, left, right: "left" if len(left) < len(right) else "right"
        >>> prompts = [f"{k} + 1?" for k in range(40)]
        >>> new, old = [f"{k + 1}" for k in range(40)], [f"It is {k + 1}." for k in range(40)]
        >>> assert_not_worse(new, old, shorter, prompts=prompts).winner
        'new'
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    margin, max_calls = check_margin(margin), check_int("max_calls", max_calls, 1)
    given = _Given(
        {"new": new, "old": old}, judge, prompts, max_calls, confidence=confidence, about=about, progress=False
    )
    kept = Storage("sqlite://") if storage is None else storage
    study = NotWorse(given.study(kept, given.name("new against old")), margin)
    result = in_thread(partial(given.run, study))
    if result.ended == "interrupted":
        raise KeyboardInterrupt
    failure = study.failure(result)
    if failure is not None:
        raise AssertionError(failure)
    return result


class _Given:
    """The arguments of `find_best`, checked."""

    def __init__(
        self,
        outputs: Candidates,
        judge: Judging,
        prompts: Iterable[str] | None,
        max_calls: int | None,
        max_cost: float | None = None,
        concurrency: int = 8,
        confidence: float = 0.95,
        margin: float = 0.0,
        orders: Literal["one", "both", "auto"] = "auto",
        about: About = NEW_ITEMS,
        progress: bool | None = None,
    ) -> None:
        self.items, self.producers, self.arms = _read(outputs, prompts)
        self.functions = {arm: fingerprint(one) for arm, one in self.producers.items()}
        self.judges = fingerprints(judge)
        self.about = check_about(about)
        self.confidence, self.margin = check_confidence(confidence), check_margin(margin)
        self.concurrency = check_int("concurrency", concurrency, 1, 1000)
        self._run = partial(
            run_async,
            judge=judge,
            max_calls=max_calls,
            max_cost=max_cost,
            concurrency=self.concurrency,
            orders=orders,
            progress=progress,
        )

    def study(self, storage: str | Storage | None, name: str | None) -> Study:
        """Return the study, which is created unless it exists. It must have these candidates and prompts."""
        name = self.name(f"best of {len(self.arms)}") if name is None else name
        study = create_study(
            self.arms,
            name,
            storage,
            confidence=self._first_confidence(name, storage),
            margin=self.margin,
            about=self.about if self.items else None,
            load_if_exists=True,
        )
        if self.items and not store_items(study, self.items):
            known = _refuse_changes(study, self.items, may_grow=self.about == NEW_ITEMS)
            if known < len(self.items):
                append_items(study, self.items[known:])
        if self.functions:
            keep = partial(_keep_functions, study=study, functions=self.functions)
            study._log.write(keep)
        return study

    def _first_confidence(self, name: str, storage: str | Storage | None) -> float:
        """The confidence that was chosen first: another one after looking would be no promise."""
        try:
            first = load_study(name, storage).goal.confidence
        except (StorageError, UnknownName):
            return self.confidence
        if first != self.confidence:
            warnings.warn(
                f"study {name!r} has the confidence {first:g}, which was chosen before its first answer and stays",
                stacklevel=4,
            )
        return first

    def name(self, start: str) -> str:
        """Return a name for the study that depends on the candidates, prompts, judges and what it is about."""
        outputs = [(item.prompt, sorted(item.outputs.items())) for item in self.items]
        judges = sorted((str(name), one) for name, one in self.judges.items())
        text = repr((self.arms, outputs, self.about, self.functions, judges))
        return f"{start}, {hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"

    async def run(self, study: Study, stop: threading.Event) -> JudgeResult:
        """Produce what is missing, and let the judge answer."""
        if self.producers:
            await _produce(study, self.producers, self.concurrency, stop)
        return await self._run(study, stop=stop)


def _read(outputs: Candidates, prompts: Iterable[str] | None) -> tuple[list[Item], dict[str, Producer], list[str]]:
    """The items, the candidates that are functions, and the names of all candidates."""
    if isinstance(outputs, Mapping):
        if prompts is None:
            raise InvalidInput("prompts is missing: expected the list of prompts that the outputs are for")
        questions = list(prompts)
        producers = {name: one for name, one in outputs.items() if callable(one)}
        lists = {name: [None] * len(questions) if callable(one) else one for name, one in outputs.items()}
        return items_of(lists, questions, fewest=0), producers, list(outputs)
    if prompts is not None:
        raise InvalidInput("prompts is given, but the outputs are not by candidate: expected a dict of outputs")
    if isinstance(outputs, list | tuple) and outputs and all(isinstance(name, str) for name in outputs):
        return [], {}, [str(name) for name in outputs]
    items = read_items(outputs)
    return items, {}, list(dict.fromkeys(arm for item in items for arm in item.outputs))


def _refuse_changes(study: Study, items: list[Item], may_grow: bool) -> int:
    """Raise `Conflict` if the study has other prompts, or other outputs than were given.

    Args:
        study: The study.
        items: What was given.
        may_grow: Whether more prompts may have been added at the end.

    Returns:
        How many prompts the study has.
    """
    start, number = f"study {study.name!r} exists, but", 0
    while found := list_items(study, number, MANY):
        for number, stored in found:
            if number > len(items):
                break
            item = items[number - 1]
            if item.prompt != stored.prompt:
                raise Conflict(
                    f"{start} prompt {number} has changed: choose another study_name for {shorten(item.prompt)}"
                )
            for arm, output in item.outputs.items():
                if stored.outputs.get(arm) != output:
                    raise Conflict(
                        f"{start} the output of {arm!r} for prompt {number} has changed: choose another study_name"
                    )
        number = found[-1][0]
    if number > len(items) or (number < len(items) and not may_grow):
        raise Conflict(
            f"{start} it has {format_count(number, 'prompt')}, and {len(items)} were given: choose another study_name"
        )
    return number


def _keep_functions(connection: sa.Connection, *, study: Study, functions: Mapping[str, str]) -> None:
    """Store the fingerprints of candidates; raise `Conflict` if one has changed that has given outputs already."""
    this = studies.c.id == study._log.id
    settings = json.loads(connection.execute(sa.select(studies.c.settings).where(this)).scalar_one())
    before = settings.get("functions", {})
    of_study = sa.select(stored_outputs.c.item).where(stored_outputs.c.study_id == study._log.id).limit(1)
    for arm, function in functions.items():
        changed = before.get(arm, function) != function
        if changed and connection.execute(of_study.where(stored_outputs.c.arm == arm)).first():
            raise Conflict(
                f"study {study.name!r} exists, but the function of {arm!r} has changed: its outputs are from "
                f"{before[arm]}, and this is {function}; choose another study_name"
            )
    kept = json.dumps(settings | {"functions": before | dict(functions)})
    connection.execute(sa.update(studies).where(this).values(settings=kept))


async def _produce(study: Study, producers: Mapping[str, Producer], concurrency: int, stop: threading.Event) -> None:
    """Call each candidate's function for the prompts whose outputs the study does not have yet, until `stop`."""
    missing = [one for one in await asyncio.to_thread(find_lacking, study) if one.arm in producers]
    if not missing:
        return
    limit, failures = asyncio.Semaphore(concurrency), list[JudgeError]()
    with Threads(concurrency, "duels-outputs") as threads:

        async def one(number: int, arm: str, prompt: str) -> None:
            async with limit:
                if stop.is_set() or failures:
                    return
                tried = await attempt_call(partial(_call_producer, producers[arm], prompt, threads))
                if tried.failure is not None:  # what is in progress is kept
                    why = f"{arm!r} has no output for prompt {number}, {shorten(prompt)}: {tried.failure}"
                    failures.append(JudgeError(why))
                    return
                output = output_of(tried.value, f"the output of {arm!r} for prompt {number}")
                await asyncio.to_thread(add_output, study, number, arm, output)

        tasks = [asyncio.create_task(one(*each)) for each in missing]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
    if failures:
        raise failures[0]


async def _call_producer(function: Producer, prompt: str, threads: Executor) -> object:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        found = function(prompt)
    else:
        found = await asyncio.get_running_loop().run_in_executor(threads, function, prompt)
    return await found if inspect.isawaitable(found) else found


class NotWorse(Study):
    """A study of a new version, its first arm, and the old one.

    It is over when it is certain that the new version scores at least ½ − margin, or that it does not. One of the two
    is true, so that a study is wrong with a probability of at most 1 − confidence.

    Args:
        study: The study as it was created.
        margin: How much less than one half the new version may score.
    """

    def __init__(self, study: Study, margin: float) -> None:
        super().__init__(study._log)
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

    def _is_exhausted(self, look: Look, verdict: Verdict) -> bool:
        if look.left is None or look.tally.is_finite or self.is_certain(look.tally) is not None:
            return False  # on these answers those that there are decide in the end
        tally, left, level = look.tally, int(look.left[0, 1]), -math.log(1 - super().goal.confidence)
        wins, losses, ties = counts(tally)
        best = self._closeness(tally, wins + left, losses, ties)
        worst = self._shortfall(tally, wins, losses + left, ties)
        return max(best, worst) < level

    def _closeness(self, tally: Tally, wins: int, losses: int, ties: int) -> float:
        if tally.is_finite:
            return closeness_on_items(wins, losses, ties, tally.items or 0, self.margin)
        return float(log_closeness(wins, losses, ties, self.margin))

    def _shortfall(self, tally: Tally, wins: int, losses: int, ties: int) -> float:
        if tally.is_finite:
            return shortfall_on_items(wins, losses, ties, tally.items or 0, self.margin)
        return log_shortfall(wins, losses, ties, self.margin)

    def failure(self, result: JudgeResult) -> str | None:
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
        power = f" {self._describe_power(result.items)}" if certain is None else ""
        return f"the new version {what} the old one, with a margin of {self.margin:g}: {found}.{power}\n{result}"

    def _describe_power(self, items: int) -> str:
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
