"""Ask one judge one question, in one order or both, and collect the outcome."""

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from ...errors import Conflict, InvalidInput
from ...judges.questions import Answer, Image, Judge, Question, as_judge
from ...judges.retries import Attempted, answer_question
from ...storage.statements import fetch_rows
from ...votes.items import IMAGE
from ...votes.names import voter_name
from ..answering import write_answer
from ..base import EventLog
from ..duels import Duel

ATTEMPTS = 5  # at a question, while the judge fails
TURNED = {"left": "right", "right": "left"}


class Task(NamedTuple):
    """What a worker is to ask.

    Attributes:
        duel: The duel.
        judge: Who is asked.
        orders: How many calls that takes: one, or one for each order.
        second: Whether another judge has answered it already.
        begun: Whether the log says already that it is asked now.
        turned: Whether the sides are changed: a second judge has a coin of its own.
        confirms: What the judge answered before, if it is now asked in the other order.
        repeats: What the judge replied first, if it is now asked the same once more.
    """

    duel: Duel
    judge: str | None
    orders: int = 1
    second: bool = False
    begun: bool = False
    turned: bool = False
    confirms: str | None = None
    repeats: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the duel has no answer yet: this one counts."""
        return not self.second and self.confirms is None and self.repeats is None


class Reply(NamedTuple):
    """What became of a task.

    Attributes:
        task: The task.
        answer: The answer; a skip if the judge failed.
        calls: How many calls were made.
        error: Why the judge failed, if it did.
        final: Whether it will fail at every other question too.
        closed: Whether it will fail at this question every time.
        unusable: How many replies had no usable answer.
        first: With both orders, the answer to the first one.
        second: If an earlier answer was to be confirmed, the reply in the other order.
    """

    task: Task
    answer: Answer
    calls: int
    error: str | None = None
    final: bool = False
    closed: bool = False
    unusable: int = 0
    first: str | None = None
    second: str | None = None

    @property
    def further_calls(self) -> int:
        """How many of the calls were made because others had failed, or had no usable answer."""
        return self.calls - (1 if self.first == "skip" else self.task.orders)

    def note(self) -> dict[str, object]:
        """Return what the log keeps.

        What was skipped is closed: new questions are not about it. If that was not the judge's wish, see `Ledger`, the
        run asks the same question again.
        """
        answer, repeats = self.answer, self.task.repeats
        note: dict[str, object] = {"calls": self.calls}
        note |= {} if answer.note is None else {"note": answer.note}
        note |= {} if answer.cost is None else {"cost": answer.cost}
        note |= {} if self.first is None else {"first": self.first}
        note |= {} if self.error is None else {"failed": True}
        note |= {"bad": True} if answer.bad else {}
        note |= {"unusable": self.unusable} if self.unusable else {}
        note |= {"closed": True} if answer.answer == "skip" else {}
        if repeats is not None:
            note |= {"repeats": repeats} | ({"contradicts": True} if answer.answer not in ("skip", repeats) else {})
        return note


async def ask_judge(
    judge: Judge,
    task: Task,
    pause: Callable[[float], Awaitable[object]],
    allow_reply: Callable[[], bool] = lambda: True,
) -> Reply:
    """Ask a judge; with both orders one after the other, where disagreement is a tie, also with an earlier answer.

    Args:
        judge: Whom to ask.
        task: What to ask.
        pause: What waits between two attempts, see `answered`.
        allow_reply: Whether to ask again after a reply without a usable answer, see `answered`.

    Raises:
        Undo: If the judge takes back its last answer.
        KeyboardInterrupt: If the judge does.
    """
    asked = judge if task.repeats is None else judge.without_cache()
    ask = partial(answer_question, asked, attempts=ATTEMPTS, sleep=pause, allow_reply=allow_reply)
    question = _swap_sides(question_of(task.duel)) if task.turned else question_of(task.duel)
    found = await ask(question)
    word = found.answer.answer
    if task.turned:
        found = found._replace(answer=found.answer._replace(answer=TURNED.get(word, word)))
    reply = Reply(task, found.answer, found.calls, found.error, found.final, found.closed, found.unusable)
    if task.confirms is not None:
        both = found.answer._replace(answer=_joint(task.confirms, found.answer.answer))
        return reply._replace(answer=both, second=word)
    if task.orders == 1:
        return reply
    if word == "skip":
        return reply._replace(first="skip")
    return _join_orders(reply, await ask(_swap_sides(question)))


def _join_orders(reply: Reply, turned: Attempted) -> Reply:
    """The reply in one order together with that in the other one."""
    first, second = reply.answer, turned.answer
    answer = _joint(first.answer, TURNED.get(second.answer, second.answer))
    costs = [one.cost for one in (first, second) if one.cost is not None]
    notes = [one.note for one in (first, second) if one.note is not None]
    both = Answer(answer, "\n".join(notes) or None, sum(costs) if costs else None, second.bad)
    return Reply(
        reply.task,
        both,
        reply.calls + turned.calls,
        turned.error,
        turned.final,
        turned.closed,
        reply.unusable + turned.unusable,
        first.answer,
    )


def _joint(first: str, other: str) -> str:
    """What two answers to the same question say, given in the order of the first."""
    return "skip" if other == "skip" else first if first == other else "tie"


def question_of(duel: Duel) -> Question:
    """Return what a judge is asked about a duel."""
    item = duel.item
    if item is None or item.left is None or item.right is None:
        return Question(None, duel.left, duel.right, duel.left, duel.right)
    left, right = (Image(one.content) if one.kind == IMAGE else one.content for one in (item.left, item.right))
    return Question(item.prompt, left, right, duel.left, duel.right)


def refuse_images(connection: sa.Connection, study: EventLog, judges: Mapping[str | None, Judge]) -> None:
    """Raise an error if outputs are images and a judge cannot see them; before its first call.

    Raises:
        InvalidInput: If that is so.
    """
    blind = [one for one in judges.values() if not one.takes_images]
    if not blind:
        return
    first = "SELECT item, arm FROM outputs WHERE study_id = ? AND kind = ? ORDER BY item LIMIT 1"
    for item, arm in fetch_rows(connection, first, (study.id, IMAGE)):
        raise InvalidInput(
            f"the output of {arm!r} for prompt {item} is an image, and {blind[0].function!r} cannot be asked about "
            "images: expected a language model that sees them (duels.judges.openai, whose template has {left} and "
            "{right} in a message of the role user), or a function of (prompt, left, right)"
        )


def has_identical_outputs(connection: sa.Connection, study_id: int, duel: Duel) -> bool:
    """Return whether a duel's two outputs are the same text of the same kind; without an item they are not."""
    if duel.item is None:
        return False
    same = (
        "SELECT 1 FROM outputs one JOIN outputs other ON other.study_id = one.study_id AND other.item = one.item "
        "AND other.kind = one.kind AND other.content = one.content "
        "WHERE one.study_id = ? AND one.item = ? AND one.arm = ? AND other.arm = ?"
    )
    return bool(fetch_rows(connection, same, (study_id, duel.item.number, duel.left, duel.right)))


def note_calls(study: EventLog, orders: int, connection: sa.Connection, duel: Duel) -> dict[str, object]:
    """Return what the log keeps of a question to a judge: how many calls it takes."""
    return {"calls": 0 if has_identical_outputs(connection, study.id, duel) else orders}


def tell_identical(connection: sa.Connection, study: EventLog, duel: Duel, judge: str | None) -> bool:
    """Answer a question about identical outputs, which takes no call; returns whether it was one."""
    if not has_identical_outputs(connection, study.id, duel):
        return False
    write_answer(connection, study, duel=duel.id, winner="tie", voter=judge, more={"calls": 0, "identical": True})
    return True


def _swap_sides(question: Question) -> Question:
    return Question(question.prompt, question.right, question.left, question.right_name, question.left_name)


def judges_of(judge: Any, threads: Executor) -> dict[str | None, Judge]:
    """Return judges by name; the name of a single one is None.

    Args:
        judge: A function, or a dict of functions by name.
        threads: Where functions that are not async run.

    Raises:
        InvalidInput: If there is none, a name cannot be used, or a function takes other arguments.
    """
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


def refuse_others(study: str, known: Mapping[str | None, set[str]], given: Mapping[str | None, str]) -> None:
    """Refuse judges that are not those which have answered a study: their answers must not be mixed.

    Args:
        study: The study's name.
        known: The fingerprints of the judges that have answered, by name.
        given: Those of the judges that are to go on. A name that has not answered may join; a judge without a name
            may not, unless it is one that has.

    Raises:
        Conflict: If a judge has changed, or is another one.
    """
    for name, one in given.items():
        everybody = set().union(*known.values())
        before = known.get(name, set() if name is not None else everybody)
        if not before or one in before:
            continue
        if name is not None:
            raise Conflict(
                f"study {study!r}: the judge {name!r} was {_join_replies(before)} when it answered, and is {one} now: "
                "its code or settings have changed; give it another name, or choose another study_name (--study)"
            )
        raise Conflict(
            f"study {study!r} was answered by another judge, {_join_replies(before)}, and this one is {one}: choose "
            "another study_name (--study), or give judges by name to let both answer, as in judge={'name': function}"
        )


def _join_replies(found: set[str]) -> str:
    return " and ".join(sorted(found))
