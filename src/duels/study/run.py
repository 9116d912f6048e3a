"""Let judges answer a study's questions until it has its verdict, or a limit is reached.

Every call is in the log before it is made, and every answer before the next question. So a run that was killed goes on
where it ended: questions without an answer are asked again first, and their lost calls are counted.
"""

import asyncio
import random
import sys
import threading
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import sqlalchemy as sa

from ..checks import check_int
from ..errors import Conflict, InvalidInput
from ..judges.questions import Answer, Judge, Question, Undo, as_judge
from ..judges.retries import Attempted, answered
from ..storage.storage import Write
from ..votes.names import voter_name
from .duels import Duel
from .history import History
from .items import unasked_item, with_items
from .ledger import Ledger
from .outcome import Ended, RunResult, alarm_line
from .positions import Position, Sides
from .progress import Shown, shown
from .study import Study

Orders = Literal["one", "both", "auto"]
Say = Callable[[str], None]
InDatabase = Callable[[Callable[[], Any]], Awaitable[Any]]
T = TypeVar("T")
FAILURES = 10  # in a row, after which a run stops
ATTEMPTS = 5  # at a question
TWICE = 10  # with several judges, one question in so many is asked of two of them


class Limits(NamedTuple):
    """How much a study may spend, over all its runs."""

    calls: int | None
    cost: float | None


class Task(NamedTuple):
    """What a worker is to ask."""

    duel: Duel
    judge: str | None
    orders: int  # how many calls: one, or one for each order
    repeat: bool = False  # whether another judge has answered it already
    turned: bool = False  # whether the sides are changed: a second judge gets a coin of its own


class Reply(NamedTuple):
    """What became of a task."""

    task: Task
    answer: Answer
    calls: int
    error: str | None = None
    final: bool = False  # whether the judge will fail at every other question too …
    closed: bool = False  # … or at this one every time
    first: str | None = None  # with both orders, the answer to the first one


class Run:
    """One run of a study: a pool of workers, and a thread that alone talks to the database."""

    def __init__(
        self,
        study: Study,
        judges: Mapping[str | None, Judge],
        limits: Limits,
        orders: Orders,
        say: Say,
        stop: threading.Event,
    ) -> None:
        self.study, self.judges, self.limits, self.orders = study, judges, limits, orders
        self.ledger, self._say, self._stop = Ledger(), say, stop
        self.ended: Ended | None = None
        self.error: str | None = None
        self._again: deque[Task] = deque()  # open duels of an earlier run, and those that a judge took back
        self._repeats: deque[Task] = deque()
        self._begun = dict.fromkeys(judges, 0)  # questions of this run, by judge
        self._flying = 0  # questions that are being answered
        self._failures = self._answers = 0
        self._told: dict[str | None, list[Duel]] = {name: [] for name in judges}  # newest last

    def start(self) -> None:
        """Read the log, and what an earlier run has left open."""
        self._follow()
        for duel in self.study.open_duels():
            if duel.id in self.ledger.open:
                calls, judge = self.ledger.open[duel.id]
                judge = judge if judge in self.judges else next(iter(self.judges))
                self._again.append(Task(duel, judge, min(calls, 2)))

    def _follow(self) -> None:
        """Take in what was written, here or by other processes."""
        for entry in self.study.events(self.ledger.seq):
            self.ledger.take(entry)

    def next(self, reply: Reply | None) -> Task | None:
        """Store a reply, if there is one, and return what to ask next; None if nothing more is to be asked."""
        if reply is not None:
            self._flying -= 1
            self._store(reply)
        if self.ended is None:
            self.ended = self._reason_to_end()
        task = None if self.ended is not None else self._task()
        self._flying += task is not None
        return task

    def result(self) -> RunResult:
        """Return what was found."""
        finished = self.study.read(self._is_finished)  # perhaps by the last replies
        ended = "verdict" if finished or self.ended is None else self.ended
        return RunResult.of(self.study, self.ledger, ended, self.error)

    def undo(self, task: Task) -> Task | None:
        """Take back the last answer of a judge, which is asked again; None if there is none in this run."""
        told = self._told[task.judge]
        if not told:
            return None
        duel = told.pop()
        self.study.undo(duel, blind=True)
        self._again.appendleft(task)
        return self._begin(Task(self.study.duel(duel.id), task.judge, task.orders))

    def _store(self, reply: Reply) -> None:
        task, answer = reply.task, reply.answer
        note: dict[str, object] = {"calls": reply.calls}
        note |= {} if answer.note is None else {"note": answer.note}
        note |= {} if answer.cost is None else {"cost": answer.cost}
        note |= {} if reply.first is None else {"first": reply.first}
        if reply.error is not None:
            note |= {"failed": True}
        note |= {"bad": True} if answer.bad else {}
        note |= {"closed": True} if answer.bad or reply.closed else {}
        counted_before = task.repeat or self.ledger.was_answered(task.duel.id)
        alarm = None if counted_before else self._alarm(task.judge, reply.first or answer.answer)
        note |= {} if alarm is None else {"position_bias": {"judge": task.judge, "share": round(alarm.share, 4)}}
        kind = "repeat" if task.repeat else "tell"
        try:
            self.study.storage.write(Write(partial(self._store_in, kind=kind, reply=reply, note=note), self.study.id))
        except Conflict:  # another process has answered it meanwhile
            self.study.storage.write(
                Write(partial(self._store_in, kind="repeat", reply=reply, note=note), self.study.id)
            )
        self._follow()
        self._count(reply, task)
        if alarm is not None:
            self._say(alarm_line(alarm, self.orders))
        if not task.repeat and len(self.judges) > 1 and reply.error is None and task.duel.id % TWICE == 0:
            others = [name for name in self.judges if name != task.judge]
            judge, turned = others[(task.duel.id // TWICE) % len(others)], bool(random.getrandbits(1))
            self._repeats.append(Task(task.duel, judge, 1, repeat=True, turned=turned))

    def _store_in(self, connection: sa.Connection, *, kind: str, reply: Reply, note: dict[str, object]) -> None:
        duel, answer, judge = reply.task.duel.id, reply.answer.answer, reply.task.judge
        if kind == "tell":
            self.study.tell_in(connection, duel=duel, winner=answer, voter=judge, more=note)
        else:
            self.study.note_in(connection, "repeat", duel=duel, answer=answer, voter=judge, note=note)

    def _count(self, reply: Reply, task: Task) -> None:
        if reply.error is None:
            self._failures, self._answers = 0, self._answers + 1
            if not task.repeat:
                self._told[task.judge].append(task.duel)
        else:
            self._failures += 1
            self.error = reply.error
            if self._failures >= FAILURES or reply.final:
                self.ended = "failed"
        if self.limits.cost is not None and self.ledger.last_cost is False and self._answers == 1:
            warnings.warn("the judge does not say what a call costs: max_cost cannot be kept", stacklevel=2)

    def _alarm(self, judge: str | None, answer: str) -> Position | None:
        """The judge's position if this answer raises the alarm of position bias."""
        ahead = Sides(self.ledger.positions())
        fires = ahead.add(judge, answer)
        return next(one for one in ahead.positions() if one.judge == judge) if fires else None

    def _reason_to_end(self) -> Ended | None:
        if self._stop.is_set():
            return "interrupted"
        if self.study.read(self._is_finished):
            return "verdict"
        if self.study.retired:
            return "retired"
        if self.limits.calls is not None and self.ledger.calls + self._orders() > self.limits.calls:
            return "max_calls"
        if self.limits.cost is not None:
            left = self.ledger.calls_in(self.limits.cost - self.ledger.cost)
            if left < self._orders() * (self._flying + 1):
                return "max_cost"
        return None

    def _is_finished(self, connection: sa.Connection, history: History) -> bool:
        return self.study.is_finished(history)

    def _orders(self) -> int:
        biased = any(one.biased for one in self.ledger.positions())
        return 2 if self.orders == "both" or (self.orders == "auto" and biased) else 1

    def _task(self) -> Task | None:
        if self._again:
            return self._begin(self._again.popleft())
        if self._repeats:
            return self._begin(self._repeats.popleft())
        judge = min(self.judges, key=self._begun.__getitem__)
        orders = self._orders()
        try:
            (duel,) = self.study.storage.write(
                self.study.asking(voter=judge, allow_self=False, about=partial(self._about, judge, orders))
            )
        except Conflict as error:
            self.ended = "retired" if self.study.retired else "all asked"
            self.error = str(error)
            return None
        self._begun[judge] += 1
        self._follow()
        return Task(with_items(self.study, [duel])[0], judge, orders)

    def _about(self, judge: str | None, orders: int, connection: sa.Connection, duel: Duel) -> dict[str, object]:
        if duel.item is not None:
            return {"calls": orders}
        before = self.ledger.asked.get((judge, frozenset((duel.left, duel.right))), set())
        return {"calls": orders, **unasked_item(connection, self.study, duel, before)}

    def _begin(self, task: Task) -> Task:
        """Note that a duel is asked once more."""
        write = partial(
            self.study.note_in, kind="again", duel=task.duel.id, voter=task.judge, note={"calls": task.orders}
        )
        self.study.storage.write(Write(write, self.study.id))
        self._follow()
        return task


async def run_async(
    study: Study,
    judge: Any,
    *,
    max_calls: int | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    orders: Orders = "auto",
    progress: bool | None = None,
    stop: threading.Event | None = None,
) -> RunResult:
    """As `Study.run`, in an event loop. See there for the arguments.

    Args:
        stop: When it is set, the run asks no more, and ends when the calls in progress have.
    """
    concurrency = check_int("concurrency", concurrency, 1, 1000)
    limits = _checked_limits(max_calls, max_cost)
    if orders not in ("one", "both", "auto"):
        raise InvalidInput(f"orders is {orders!r}: expected 'one', 'both' or 'auto'")
    with ThreadPoolExecutor(concurrency, "duels-judge") as threads, ThreadPoolExecutor(1, "duels-run") as database:
        judges = _judges(judge, threads)
        most = min((one.most_at_once for one in judges.values() if one.most_at_once), default=concurrency)
        loop = asyncio.get_running_loop()
        in_database = partial(_in, loop, database)
        with shown(progress, limits, judges.values()) as show:
            run = Run(study, judges, limits, orders, show.say, stop or threading.Event())
            await in_database(run.start)
            workers = [asyncio.create_task(_work(run, in_database, show)) for _ in range(min(concurrency, most))]
            try:
                await asyncio.gather(*workers)
            except BaseException:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                raise
            finally:
                for one in judges.values():
                    await one.aclose()
            result: RunResult = await in_database(run.result)
            show.end(result)
    return result


async def _work(run: Run, in_database: InDatabase, show: Shown) -> None:
    reply: Reply | None = None
    task = await in_database(partial(run.next, None))
    while task is not None:
        try:
            reply = await _asked(run.judges[task.judge], task)
        except Undo:
            undone = await in_database(partial(run.undo, task))
            task = undone or task
            continue
        except KeyboardInterrupt:
            run._stop.set()
            run.ended = "interrupted"
            return
        task = await in_database(partial(run.next, reply))
        show.update(run)


async def _asked(judge: Judge, task: Task) -> Reply:
    """Ask a judge, in both orders if need be: disagreement is a tie."""
    question = question_of(task.duel)
    if task.orders == 1:
        found = await answered(judge, _turned(question) if task.turned else question, attempts=ATTEMPTS)
        if task.turned:
            found = found._replace(answer=found.answer._replace(answer=_other(found.answer.answer)))
        return Reply(task, *found)
    both = await asyncio.gather(*(answered(judge, one, attempts=ATTEMPTS) for one in (question, _turned(question))))
    return _agreed(task, both[0], both[1])


def _agreed(task: Task, found: Attempted, turned: Attempted) -> Reply:
    first, second = found.answer, turned.answer
    other = _other(second.answer)
    costs = [one.cost for one in (first, second) if one.cost is not None]
    notes = [one.note for one in (first, second) if one.note is not None]
    answer = first.answer if first.answer == other else "tie"
    answer = "skip" if "skip" in (first.answer, other) else answer
    joined = Answer(answer, "\n".join(notes) or None, sum(costs) if costs else None, first.bad or second.bad)
    closed, final = found.closed or turned.closed, found.final or turned.final
    return Reply(task, joined, found.calls + turned.calls, found.error or turned.error, final, closed, first.answer)


def _other(answer: str) -> str:
    """The answer when the sides are changed."""
    return {"left": "right", "right": "left"}.get(answer, answer)


def question_of(duel: Duel) -> Question:
    """Return what a judge is asked about a duel."""
    item = duel.item
    if item is None or item.left is None or item.right is None:
        return Question(None, duel.left, duel.right, duel.left, duel.right)
    return Question(item.prompt, item.left.content, item.right.content, duel.left, duel.right)


def _turned(question: Question) -> Question:
    return Question(question.prompt, question.right, question.left, question.right_name, question.left_name)


def _judges(judge: Any, threads: ThreadPoolExecutor) -> dict[str | None, Judge]:
    if not isinstance(judge, Mapping):
        return {None: as_judge(judge, threads)}
    if not judge:
        raise InvalidInput("judge is an empty dict: expected at least one judge")
    found: dict[str | None, Judge] = {}
    for name, one in judge.items():
        checked = voter_name(name)
        if checked is None:
            raise InvalidInput("a judge has no name: expected a dict from names to functions")
        found[checked] = as_judge(one, threads)
    return found


def _checked_limits(max_calls: int | None, max_cost: float | None) -> Limits:
    calls = None if max_calls is None else check_int("max_calls", max_calls, 1)
    if max_cost is not None and (
        isinstance(max_cost, bool) or not isinstance(max_cost, int | float) or not 0 < max_cost < float("inf")
    ):
        raise InvalidInput(f"max_cost is {max_cost!r}: expected a positive number")
    return Limits(calls, max_cost)


async def _in(loop: asyncio.AbstractEventLoop, pool: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    return await loop.run_in_executor(pool, function)


def run(study: Study, judge: Any, **options: Any) -> RunResult:
    """As `run_async`, in a thread with an event loop of its own, so that it works inside a notebook's too."""
    return in_thread(lambda stop: run_async(study, judge, stop=stop, **options))


def in_thread(make: Callable[[threading.Event], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a thread of its own. The first Ctrl-C asks it to stop, the second ends it at once.

    Args:
        make: Called with an event that is set by the first Ctrl-C; returns the coroutine.
    """
    stop, ended = threading.Event(), threading.Event()
    outcome: dict[str, Any] = {}  # the task, and its value or error
    loop = asyncio.new_event_loop()

    def work() -> None:
        try:
            task = loop.create_task(make(stop))
            outcome["task"] = task
            outcome["value"] = loop.run_until_complete(task)
        except BaseException as error:
            outcome["error"] = error
        finally:
            loop.close()
            ended.set()

    thread = threading.Thread(target=work, name="duels-run")
    thread.start()
    while not ended.is_set():
        try:
            ended.wait()  # not join: up to Python 3.12, an interrupted join takes the thread for ended
        except KeyboardInterrupt:
            if stop.is_set():
                loop.call_soon_threadsafe(outcome["task"].cancel)
                ended.wait()
                raise
            stop.set()
            print("stopping when the calls in progress have ended; Ctrl-C again to leave them", file=sys.stderr)
    if "error" in outcome:
        raise outcome["error"]
    value: T = outcome["value"]
    return value
