"""Which runs of judges have not ended, so that two at once do not pay for the same question.

A run has a token, which the log keeps with each question. It names the machine, by a digest, and the process.

Let judges answer a study's questions until it has its verdict, or a limit is reached.

Every call is in the log before it is made, and every answer before the next question. So a run that was killed goes on
where it ended: questions without an answer are asked again first, and their lost calls are counted. Then come those at
which the judge failed, or gave no usable answer. What fails in this run is asked once more when its pair has no other
questions left, or there are none at all.
"""

import asyncio
import hashlib
import os
import platform
import random
import secrets
import threading
import time
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal, TypeVar

import sqlalchemy as sa

from ...checks import check_int
from ...errors import InvalidInput, NothingToAsk, shorten
from ...judges.fingerprints import fingerprint
from ...judges.questions import Judge, Undo
from ...judges.terminal import TerminalJudge
from ...judges.threads import Threads, in_thread
from ...storage.storage import NotReady
from ...votes.columns import ANSWERS
from ..answering import undo_answer, write_answer, write_note
from ..base import clock
from ..duels import Duel
from ..items import find_item_set, with_items
from ..state.counts import OPEN, SKIP
from ..state.live import LiveState
from ..state.look import Look
from ..stats.about import NEW_ITEMS, THESE_ITEMS
from ..study import Study
from ..voters.voter_tests import Position, Sides, is_drawn
from .ask_judge import Reply, Task, ask_judge, judges_of, note_calls, refuse_images, refuse_others, tell_identical
from .ledger import Budget, Ledger, Limits, check_limits
from .progress import Shown, Shows, show_progress
from .result import Ended, JudgeResult, alarm_line, find_unconfirmed, store_confirmation

PATIENCE = 600.0  # seconds after which a run on another machine is taken for dead if a question has no answer
HERE = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
_running: set[str] = set()  # in this process


def new_token() -> str:
    """Return the token of a new run of this process."""
    return f"{HERE}-{os.getpid()}-{secrets.token_hex(4)}"


@contextmanager
def noted_as_running(token: str) -> Iterator[None]:
    """Note that a run of this process goes on while a block runs."""
    _running.add(token)
    try:
        yield
    finally:
        _running.discard(token)


def is_running(token: str, age: float, lease: float) -> bool:
    """Return whether a run may still store the answer to a question.

    Args:
        token: The run's.
        age: How many seconds ago it asked the question.
        lease: The study's: a process that is older may be another one with the same number.
    """
    host, process, _ = token.split("-")
    if host != HERE or os.name != "posix":
        return age < PATIENCE
    if int(process) == os.getpid():
        return token in _running
    try:
        os.kill(int(process), 0)  # sends nothing, and fails if there is no such process
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return age < lease


Orders = Literal["one", "both", "auto"]
Say = Callable[[str], None]
Waiting = tuple[Reply | None, asyncio.Future[Task | None]]  # what a worker brings, and waits for
InDatabase = Callable[[Callable[[], Any]], Awaitable[Any]]
T = TypeVar("T")
FAILURES = 10  # questions without a usable answer in a row, after which a run stops
IN_VAIN = 6  # further calls after unusable replies, without any that is usable, after which a run makes no more of them
# Reasons to stop asking; calls in flight may finish.
OUT = (None, "all asked", "exhausted", "max_duels", "max_calls", "max_cost")
NO_MORE = ("all asked", "max_duels")  # why there is no new question
TOGETHER = 100  # questions with identical outputs that are answered in one transaction
POLL = 0.5  # seconds between two looks at what another run asks
LOOK = 0.1  # seconds between two looks whether a pause is to end early
TWICE = 10  # with several judges, one question in so many is asked of two of them


class Run:
    """One run of a study: a pool of workers, and a thread that alone talks to the database."""

    # What is in flight may change these ends.
    uncertain: tuple[Ended | None, ...] = (None, "verdict", "exhausted", "all asked")
    is_repeated = True  # whether some questions are asked of the same judge twice

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
        self.budget = Budget(limits, self.ledger)
        self._fingerprints = {name: fingerprint(one) for name, one in judges.items()}
        self.ended: Ended | None = None
        self.error: str | None = None
        self._again: deque[Task] = deque()  # what an earlier run has left, and what a judge took back
        self._repeats: deque[Task] = deque()  # for the same judge or a second one
        self._tried_again: set[int] = set()  # duels without a usable answer that this run has asked again
        self._is_hopeless = False  # whether there are too few items to show anything
        self._has_more = False  # whether a transaction ended before there was a question for a judge
        self._unconfirmed: dict[int, str | None] = {}  # duels to ask in the other order before all else, and judges …
        self._confirming: set[int] = set()  # … and which of them this run is asking now
        self._held: dict[int, str | None] = {}  # open duels that another run asks now, and their judges
        self.token = new_token()
        self._alarms: deque[Position] = deque()  # to be shown
        self._begun = dict.fromkeys(judges, 0)  # questions of this run, by judge
        self._failures = self._answers = 0
        self._in_vain = 0  # further calls after unusable replies since the last usable one
        self._told: dict[str | None, list[int]] = {name: [] for name in judges}  # duels, newest last

    def start(self) -> None:
        """Read the log, and what an earlier run has left: open duels first, then those without a usable answer."""
        self._follow()
        refuse_others(self.study.name, self.ledger.fingerprints, self._fingerprints)
        self.study._log.read(lambda connection, _: refuse_images(connection, self.study._log, self.judges))
        open_duels = [duel for duel in self.study.open_duels() if duel.id in self.ledger.open]
        unanswered = self.unanswered
        self._tried_again.update(unanswered)
        for duel in open_duels + self._read_duels(unanswered):
            judge = (self.ledger.open | unanswered)[duel.id]
            judge = judge if judge in self.judges else next(iter(self.judges))
            if self._is_held(duel.id):
                self._held[duel.id] = judge
            else:
                self._again.append(Task(duel, judge))
        answered = self.ledger.replies.keys() - self.ledger.open.keys() - self.ledger.repeated
        self._queue_repeats(self._read_duels(sorted(filter(self._is_drawn, answered))))
        self._look_first()

    def _look_first(self) -> None:
        """Before the first question, say what so many items can show; ask nothing if they can show nothing.

        About these items there is always a further question, so a run without a limit ends when it has made as many
        calls as it takes to ask every pair about every item.
        """
        items = self.study._log.read(lambda connection, _: find_item_set(connection, self.study._log))
        look = self.study._log.look()
        if look.goal.about == THESE_ITEMS and items.items and self.limits == (None, None):
            arms = int(look.tally.active.sum())
            calls = arms * (arms - 1) // 2 * len(items.items) * (2 if self.orders == "both" else 1)
            self.limits = self.budget.limits = Limits(calls, None)
        if look.goal.about != NEW_ITEMS or not items.items or self.study._log.history().left:
            return
        self._say(self.study._describe_power(len(items.items)))
        look = look.before_first(len(items.items))
        self._is_hopeless = self.study._is_exhausted(look, look.verdict())

    def _is_held(self, duel: int, repeats: bool = False) -> bool:
        """Whether another run, which has not ended, asks a question now: this one must not pay for it again."""
        run, asked = self.ledger.holders.get((duel, repeats), (self.token, 0.0))
        return run != self.token and is_running(run, clock() - asked, self.study._log.row.lease)

    @property
    def waits_for_others(self) -> bool:
        """Whether there is nothing left to ask but what another run asks now; it may be killed before the answer."""
        return bool(self._held) and self.ended in (None, "all asked") and not self._stop.is_set()

    def _take_over(self, history: LiveState) -> None:
        """Queue what other runs were asking when they ended."""
        for duel, judge in list(self._held.items()):
            if duel not in self.ledger.open:
                del self._held[duel]
            elif not self._is_held(duel):
                del self._held[duel]
                self._again.append(Task(self.study._log.find_duel(history, duel), judge))

    @property
    def unanswered(self) -> dict[int, str | None]:
        """The duels that are to be asked again, since the judge failed or gave no usable answer, and that judge."""
        return self.ledger.failed | self.ledger.unusable

    def _read_duels(self, numbers: Iterable[int]) -> list[Duel]:
        def read(connection: sa.Connection, history: LiveState) -> list[Duel]:
            return [self.study._log.find_duel(history, number) for number in numbers]

        return with_items(self.study, self.study._log.read(read))

    def _is_drawn(self, duel: int) -> bool:
        """Whether an answered duel is to be repeated, by a judge of this run that is not a person."""
        if not self.is_repeated or not is_drawn(self.study._log.row.seed, duel):
            return False
        judge = self.judges.get(self.ledger.replies[duel][0])
        return judge is not None and not isinstance(judge.function, TerminalJudge)

    def _follow(self) -> None:
        """Take in what was written, here or by other processes."""
        for entry in self.study.events(self.ledger.seq):
            self.ledger.take(entry)

    def next(self, replies: Sequence[Reply | None]) -> list[Task | None]:
        """Store what workers bring, and return what each is to ask next; None if there is nothing for it.

        One transaction does both. Only if the policy must be prepared first, questions come in a second one.
        """
        given = [reply for reply in replies if reply is not None]
        tasks = self.study._log.write(partial(self._turn_in, replies=given, most=len(replies)))
        self._has_more = True
        while self.ended is None and not tasks and self._has_more:
            most = self.budget.reserve(len(replies), self._orders())
            tasks = self.study._log.write(partial(self._ask_more_in, most=most), last=True)
        self._follow()
        self.budget.settle()
        while self._alarms:
            self._say(alarm_line(self._alarms.popleft(), self.orders))
        duels = with_items(self.study, [task.duel for task in tasks])
        found = [task._replace(duel=duel) for task, duel in zip(tasks, duels)]
        return [*found, *[None] * (len(replies) - len(found))]

    def _turn_in(self, connection: sa.Connection, *, replies: list[Reply], most: int) -> list[Task]:
        self._follow_in(connection)  # first, since it may have to wait, and then all of this is done again
        ahead, answered = Sides(self.ledger.positions()), list[Duel]()
        for reply in replies:
            told = self._store_in(connection, ahead, reply)
            self._count(reply, told)
            answered += [reply.task.duel] if told else []
        self._follow_in(connection)
        self._queue_repeats(answered)
        self.budget.release(sum(reply.further_calls for reply in replies))
        if self.orders != "one":
            self._unconfirmed = find_unconfirmed(self.study._log.current(connection), self.ledger, self.judges)
        if self.ended in self.uncertain:
            self.ended = self._reason_to_end(self.study._log.current(connection))
        if self.ended is not None:
            return []
        most = self.budget.reserve(most, self._orders())
        tasks = self._begin_earlier(connection, most)
        with suppress(NotReady):
            tasks += self._ask_more_in(connection, most=most - len(tasks))
        return tasks

    def result(self) -> JudgeResult:
        """Return what was found."""
        finished = self.study.goal.is_reached(self.study.verdict(), self.study.tally)  # perhaps by the last replies
        found = (
            {}
            if self.orders == "one"
            else self.study._log.read(lambda _, history: find_unconfirmed(history, self.ledger))
        )
        ended = "verdict" if (finished and not found) or self.ended is None else self.ended
        if ended in OUT and self._failures and not self._answers:
            ended = "failed"  # at all that there was to ask
        left = self.study._log.read(
            lambda _, history: sum(self._can_ask_again(history, duel) for duel in self.unanswered)
        )
        return JudgeResult.of(self.study, self.ledger, ended, self.error, len(found), left, self._orders_of_questions())

    def interrupt(self) -> None:
        """Ask no more."""
        self._stop.set()
        self.ended = self.ended or "interrupted"

    async def pause(self, seconds: float) -> bool:
        """Wait before the next attempt; returns whether there is to be one: not if the run ends, or at its limit."""
        if not self.budget.claim():
            return False
        until = time.monotonic() + seconds
        while self.ended in OUT and not self._stop.is_set():
            left = until - time.monotonic()
            if left <= 0:
                return True
            await asyncio.sleep(min(left, LOOK))
        self.budget.unclaim()
        return False

    def allow_reply(self) -> bool:
        """Return whether a judge may be asked again at once after a reply without a usable answer.

        Not if the run ends, at its limit, or if that was of no use several times in a row.
        """
        if self._stop.is_set() or self.ended not in OUT or self._in_vain >= IN_VAIN or not self.budget.claim():
            return False
        self._in_vain += 1
        return True

    def undo(self, task: Task) -> Task:
        """Take back the last answer of a judge in this run and return its question, or the same task if it has none."""
        told = self._told[task.judge]
        before = self._begin(Task(self.study.duel(told.pop()), task.judge, task.orders), undo=True) if told else None
        if before is None:
            return task
        self._again.appendleft(task._replace(begun=True))
        return before

    def _store_in(self, connection: sa.Connection, ahead: Sides, reply: Reply) -> bool:
        """Write a reply; returns whether it counts."""
        history, task, answer = self.study._log.current(connection), reply.task, reply.answer.answer
        duel, judge, note = task.duel.id, task.judge, reply.note()
        note["judge"] = self._fingerprints[judge]
        if task.confirms is not None:
            self._confirming.discard(duel)
            store_confirmation(connection, self.study, self.ledger, reply, note)
            return False
        if not task.is_open or history.answer[duel] != OPEN or duel in history.forgotten:  # perhaps by another process
            write_note(connection, self.study._log, "repeat", duel=duel, answer=answer, voter=judge, note=note)
            return False
        if self.ledger.is_first(duel) and ahead.add(judge, reply.first or answer):
            alarm = next(one for one in ahead.positions() if one.judge == judge)
            note["position_bias"] = {"judge": judge, "share": round(alarm.share, 4)}
            self._alarms.append(alarm)
        write_answer(connection, self.study._log, duel=duel, winner=answer, voter=judge, more=note)
        return True

    def _count(self, reply: Reply, told: bool) -> None:
        duel, judge, cost = reply.task.duel, reply.task.judge, reply.answer.cost
        if reply.closed:  # asking again is of no use
            self._tried_again.add(duel.id)
        if reply.error is None and not reply.answer.bad:
            self._failures, self._answers, self._in_vain = 0, self._answers + 1, 0
            if not reply.task.second and reply.task.repeats is None:
                self._told[judge].append(duel.id)
            if told and len(self.judges) > 1 and duel.id % TWICE == 0:
                others = [name for name in self.judges if name != judge]
                other, turned = others[(duel.id // TWICE) % len(others)], bool(random.getrandbits(1))
                self._repeats.append(Task(duel, other, second=True, turned=turned))
        elif self.ended in OUT and not self._stop.is_set():
            self._failures += 1
            self.error = reply.error or f"its reply has no usable answer: {shorten(reply.answer.note, 200)}"
            if self._failures >= FAILURES or reply.final:
                self.ended = "failed"
        if self.limits.cost is not None and cost is None and reply.error is None and self._answers == 1:
            warnings.warn("the judge does not say what a call costs: max_cost cannot be kept", stacklevel=2)

    def _queue_repeats(self, duels: Iterable[Duel]) -> None:
        """Queue the repeats of those duels that are drawn, have a judge's answer, and were not repeated yet."""
        for duel in duels:
            if duel.id in self.ledger.replies and duel.id not in self.ledger.repeated and self._is_drawn(duel.id):
                judge, reply = self.ledger.replies[duel.id]
                self._repeats.append(Task(duel, judge, repeats=reply))

    def _reason_to_end(self, history: LiveState) -> Ended | None:
        if self._stop.is_set():
            return "interrupted"
        found = self._reason_in_answers(history)
        if found is not None:
            return found
        if history.retired:
            return "retired"
        return self.budget.limit_of(self._orders())

    def _reason_in_answers(self, history: LiveState) -> Ended | None:
        """Why the answers so far need no more of them."""
        if self._is_hopeless and not history.left:
            return "exhausted"
        look = self._with_unanswered(history, history.look(clock()))
        verdict = look.verdict()
        if not self._unconfirmed and self.study.goal.is_reached(verdict, lambda: look.tally):
            return "verdict"
        return "exhausted" if self.study._is_exhausted(look, verdict) else None

    def _with_unanswered(self, history: LiveState, look: Look) -> Look:
        """A look in which the questions that this run will ask again can still be answered."""
        if look.left is None:
            return look
        left, queued = look.left.copy(), {task.duel.id for task in self._again}
        for duel in self.unanswered:
            is_to_come = duel in queued or duel not in self._tried_again
            if is_to_come and self._can_ask_again(history, duel):
                left[history.left[duel], history.right[duel]] += 1
                left[history.right[duel], history.left[duel]] += 1
        return look._replace(left=left)

    def _orders(self) -> int:
        """How many calls the next question takes."""
        return 1 if self._unconfirmed else self._orders_of_questions()

    def _orders_of_questions(self) -> int:
        """In how many orders a question is asked."""
        biased = any(one.biased for one in self.ledger.positions())
        return 2 if self.orders == "both" or (self.orders == "auto" and biased) else 1

    def _begin_earlier(self, connection: sa.Connection, most: int) -> list[Task]:
        """Begin what comes before new questions: confirmations, what an earlier run has left, and repeats."""
        tasks = list[Task]()
        self._take_over(self.study._log.current(connection))
        if self._unconfirmed:
            while self._again and self._again[0].begun and len(tasks) < most:
                tasks.append(self._again.popleft())
            return tasks + self._confirmations(connection, most - len(tasks))
        while (self._again or self._repeats) and len(tasks) < most:
            task = self._again.popleft() if self._again else self._repeats.popleft()
            task = task._replace(orders=self._orders()) if task.is_open and not task.begun else task
            if task.begun or self._begin_in(connection, task=task, undo=False):
                tasks.append(task)
        if len(tasks) < most and not self._tried_again.issuperset(self.unanswered):
            tasks += self._ask_unanswered_in(connection, most - len(tasks), of_used_up_pairs=True)
        return tasks

    def _ask_unanswered_in(self, connection: sa.Connection, most: int, *, of_used_up_pairs: bool = False) -> list[Task]:
        """Ask again, once in this run, what it has left without a usable answer.

        Args:
            connection: The transaction's connection.
            most: How many questions may be asked.
            of_used_up_pairs: Only about pairs whose every item was asked about, in a study on its items.
        """
        history, tasks = self.study._log.current(connection), list[Task]()
        used_up = set(history.items.list_used_up(lambda duel: False)) if of_used_up_pairs and history.items else set()
        for duel, judge in self.unanswered.items():
            pair = tuple(sorted((history.left[duel], history.right[duel])))
            if len(tasks) == most:
                break
            if duel in self._tried_again or judge not in self.judges or not self._can_ask_again(history, duel):
                continue
            if of_used_up_pairs and pair not in used_up:
                continue
            self._tried_again.add(duel)
            task = Task(self.study._log.find_duel(history, duel), judge, self._orders())
            if self._begin_in(connection, task=task, undo=False):
                tasks.append(task)
        return tasks

    def _confirmations(self, connection: sa.Connection, most: int) -> list[Task]:
        """Begin to ask in the other order what was answered in one."""
        history, tasks = self.study._log.current(connection), list[Task]()
        for duel in [one for one in self._unconfirmed if one not in self._confirming][:most]:
            before = ANSWERS[history.answer[duel]]
            task = Task(self.study._log.find_duel(history, duel), self._unconfirmed[duel], turned=True, confirms=before)
            self._begin_in(connection, task=task, undo=False)
            self._confirming.add(duel)
            tasks.append(task)
        return tasks

    def _ask_more_in(self, connection: sa.Connection, *, most: int) -> list[Task]:
        """Ask new questions, and if there are too few, what this run has left without a usable answer."""
        self._has_more = False
        tasks = self._ask_in(connection, most=most)
        if self.ended in NO_MORE and len(tasks) < most:
            again = self._ask_unanswered_in(connection, most - len(tasks))
            self.ended = None if again else self.ended
            tasks += again
        return tasks

    def _ask_in(self, connection: sa.Connection, *, most: int) -> list[Task]:
        """Ask new questions; fewer, and the run ends, if there are not so many."""
        if self._unconfirmed:
            return []
        orders, tasks, ties = self._orders(), list[Task](), 0
        while len(tasks) < most and self.ended is None and ties < TOGETHER:
            judge = min(self.judges, key=self._begun.__getitem__)
            about = partial(self._note_calls, orders)
            try:
                (duel,) = self.study._log.ask(connection, voter=judge, allow_self=False, about=about, by_judge=True)
            except NotReady:
                if not tasks and not ties:
                    raise
                break  # what was written stays
            except NothingToAsk:
                self.ended = "all asked"
                break
            if tell_identical(connection, self.study._log, duel, judge):
                ties += 1
                self.ended = self._reason_to_end(self.study._log.current(connection))
            else:
                self._begun[judge] += 1
                tasks.append(Task(duel, judge, orders))
        self._has_more = ties > 0
        return tasks

    def _note_calls(self, orders: int, connection: sa.Connection, duel: Duel) -> dict[str, object]:
        """What the log keeps of a question: how many calls it takes, and which run makes them."""
        return note_calls(self.study._log, orders, connection, duel) | {"run": self.token}

    def _follow_in(self, connection: sa.Connection) -> None:
        for entry in self.study._log.new_entries(connection, self.ledger.seq):
            self.ledger.take(entry)

    def _begin(self, task: Task, undo: bool = False) -> Task | None:
        """Note that a duel is asked once more; None if that is no longer wanted."""
        wanted = self.study._log.write(partial(self._begin_in, task=task, undo=undo))
        self._follow()
        return task if wanted else None

    def _begin_in(self, connection: sa.Connection, *, task: Task, undo: bool) -> bool:
        wanted = True
        if task.confirms is None and not task.second and self._is_held(task.duel.id, task.repeats is not None):
            if task.repeats is None and task.duel.id in self.ledger.open:
                self._held[task.duel.id] = task.judge
            return False
        if task.second or task.repeats is not None:
            wanted = self._may_repeat(connection, task)
        elif task.confirms is None and (wanted := self._reopen_in(connection, task.duel.id, undo)):
            wanted = not tell_identical(connection, self.study._log, task.duel, task.judge)
        if not wanted:
            return False
        item = {} if task.duel.item is None else {"item": task.duel.item.number}
        note: dict[str, object] = {"calls": task.orders, "run": self.token, **item}
        note |= {} if task.confirms is None else {"confirms": task.confirms}
        note |= {} if task.repeats is None else {"repeats": task.repeats}
        write_note(connection, self.study._log, "again", duel=task.duel.id, voter=task.judge, note=note)
        return True

    def _may_repeat(self, connection: sa.Connection, task: Task) -> bool:
        """Whether the same judge, or a second one, may still be asked, and has not answered yet."""
        duel = task.duel
        if task.repeats is not None:
            history = self.study._log.current(connection)
            was_answered = history.answer[duel.id] not in (OPEN, SKIP)
            return was_answered and duel.id not in self.ledger.repeated and self._is_active(history, duel.id)
        if duel.item is None:
            return True
        return duel.item.number not in self.ledger.asked.get((task.judge, frozenset((duel.left, duel.right))), set())

    def _can_ask_again(self, history: LiveState, duel: int) -> bool:
        """Whether a duel without a usable answer may be asked again."""
        return history.answer[duel] == SKIP and self._is_active(history, duel)

    def _is_active(self, history: LiveState, duel: int) -> bool:
        """Whether a duel is about active arms, and its voter was not forgotten."""
        return (
            duel not in history.forgotten and history.active[history.left[duel]] and history.active[history.right[duel]]
        )

    def _reopen_in(self, connection: sa.Connection, duel: int, undo: bool) -> bool:
        """Whether a duel is open and about active arms, after a skip or, with `undo`, any answer was taken back."""
        history = self.study._log.current(connection)
        answer = history.answer[duel]
        if not self._is_active(history, duel):
            return False
        if answer == SKIP or (undo and answer != OPEN):
            undo_answer(connection, self.study._log, duel=duel, blind=True)
        return undo or answer in (OPEN, SKIP)


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
) -> JudgeResult:
    """As `Study.run`, in an event loop. See there for the arguments.

    Args:
        stop: When it is set, the run asks no more, and ends when the calls in progress have.
    """
    options: dict[str, Any] = {"max_calls": max_calls, "max_cost": max_cost, "concurrency": concurrency}
    result: JudgeResult = await conduct(
        partial(Run, study), judge, **options, orders=orders, progress=progress, stop=stop, shows=Shows()
    )
    return result


async def conduct(
    make: Callable[..., Run],
    judge: Any,
    *,
    max_calls: int | None,
    max_cost: float | None,
    concurrency: int,
    orders: Orders,
    progress: bool | None,
    stop: threading.Event | None,
    shows: Shows,
) -> Any:
    """Conduct a run of a study of any kind. See `Study.run` for the other arguments.

    Args:
        make: Called with the other arguments of `Run`; returns the run.
        shows: How its progress is shown.

    Returns:
        The result of the run.
    """
    concurrency = check_int("concurrency", concurrency, 1, 1000)
    limits = check_limits(max_calls, max_cost)
    if orders not in ("one", "both", "auto"):
        raise InvalidInput(f"orders is {orders!r}: expected 'one', 'both' or 'auto'")
    with Threads(concurrency, "duels-judge") as threads, ThreadPoolExecutor(1, "duels-database") as database:
        judges = judges_of(judge, threads)
        most = min((one.most_at_once for one in judges.values() if one.most_at_once), default=concurrency)
        loop = asyncio.get_running_loop()
        in_database = partial(_in, loop, database)
        with show_progress(progress, limits, judges.values(), shows) as show:
            run = make(judges, limits, orders, show.say, stop or threading.Event())
            try:
                with noted_as_running(run.token):
                    await in_database(run.start)
                    await _until_it_ends(run, in_database, min(concurrency, most), show)
            finally:
                for one in judges.values():
                    await one.aclose()
            result = await in_database(run.result)
            show.end(result)
    return result


async def _until_it_ends(run: Run, in_database: InDatabase, count: int, show: Shown) -> None:
    waiting: asyncio.Queue[Waiting] = asyncio.Queue()
    tasks = [asyncio.create_task(_work(run, in_database, waiting, show)) for _ in range(count)]
    serving = asyncio.create_task(_serve(run, in_database, waiting, count))
    try:
        await asyncio.gather(serving, *tasks)
    finally:
        for task in (serving, *tasks):
            task.cancel()
        await asyncio.gather(serving, *tasks, return_exceptions=True)


async def _serve(run: Run, in_database: InDatabase, waiting: asyncio.Queue[Waiting], count: int) -> None:
    """Give workers their tasks. Those without a task wait for the others.

    Up to a quarter of the workers share a transaction: if all of them did, all would wait for the work of all. It ends
    when no questions are in flight, here or in another run, and no more are to be asked.
    """
    idle, busy = list[Waiting](), count
    while busy or run.waits_for_others:
        if busy:
            batch = [*idle, await waiting.get()]
        else:
            await asyncio.sleep(POLL)
            batch = idle
        while not waiting.empty() and len(batch) - len(idle) < count // 4:
            batch.append(waiting.get_nowait())
        tasks = await in_database(partial(run.next, [reply for reply, _ in batch]))
        idle, busy = [], count - len(batch)
        for (_, future), task in zip(batch, tasks):
            if task is None:
                idle.append((None, future))
            elif not future.done():  # else the run was cancelled
                future.set_result(task)
                busy += 1
    for _, future in idle:
        future.set_result(None)


async def _work(run: Run, in_database: InDatabase, waiting: asyncio.Queue[Waiting], show: Shown) -> None:
    task = await _next(waiting, None)
    while task is not None:
        try:
            reply = await ask_judge(run.judges[task.judge], task, run.pause, run.allow_reply)
        except Undo:
            task = await in_database(partial(run.undo, task))
        except KeyboardInterrupt:
            run.interrupt()
            task = await _next(waiting, None)
        else:
            task = await _next(waiting, reply)
            show.update(run)


async def _next(waiting: asyncio.Queue[Waiting], reply: Reply | None) -> Task | None:
    future: asyncio.Future[Task | None] = asyncio.get_running_loop().create_future()
    waiting.put_nowait((reply, future))
    return await future


async def _in(loop: asyncio.AbstractEventLoop, pool: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    return await loop.run_in_executor(pool, function)


def run(study: Study, judge: Any, **options: Any) -> JudgeResult:
    """As `run_async`, in a thread with an event loop of its own, so that it works inside a notebook's too."""
    return in_thread(lambda stop: run_async(study, judge, stop=stop, **options))
