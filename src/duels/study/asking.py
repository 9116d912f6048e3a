"""One question to one judge: in one order or in both, with what became of it."""

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

from ..errors import Conflict, InvalidInput
from ..judges.questions import Answer, Judge, Question, as_judge
from ..judges.retries import Attempted, answered
from ..votes.names import voter_name
from .duels import Duel

ATTEMPTS = 5  # at a question
TURNED = {"left": "right", "right": "left"}


class Task(NamedTuple):
    """What a worker is to ask.

    Attributes:
        duel: The duel.
        judge: Who is asked.
        orders: How many calls that takes: one, or one for each order.
        repeat: Whether another judge has answered it already.
        begun: Whether the log says already that it is asked now.
        turned: Whether the sides are changed: a second judge has a coin of its own.
        confirms: What the judge answered before, if it is now asked in the other order.
    """

    duel: Duel
    judge: str | None
    orders: int = 1
    repeat: bool = False
    begun: bool = False
    turned: bool = False
    confirms: str | None = None


class Reply(NamedTuple):
    """What became of a task.

    Attributes:
        task: The task.
        answer: The answer; a skip if the judge failed.
        calls: How many calls were made.
        error: Why the judge failed, if it did.
        final: Whether it will fail at every other question too.
        first: With both orders, the answer to the first one.
        second: If an earlier answer was to be confirmed, the reply in the other order.
    """

    task: Task
    answer: Answer
    calls: int
    error: str | None = None
    final: bool = False
    first: str | None = None
    second: str | None = None

    @property
    def retries(self) -> int:
        """How many of the calls were made because others had failed."""
        return self.calls - (1 if self.first == "skip" else self.task.orders)

    def note(self) -> dict[str, object]:
        """Return what the log keeps. A question that was skipped is closed: this run does not ask it again."""
        answer = self.answer
        note: dict[str, object] = {"calls": self.calls}
        note |= {} if answer.note is None else {"note": answer.note}
        note |= {} if answer.cost is None else {"cost": answer.cost}
        note |= {} if self.first is None else {"first": self.first}
        note |= {} if self.error is None else {"failed": True}
        note |= {"bad": True} if answer.bad else {}
        return note | ({"closed": True} if answer.answer == "skip" else {})


async def asked(judge: Judge, task: Task, pause: Callable[[float], Awaitable[object]]) -> Reply:
    """Ask a judge; with both orders one after the other, where disagreement is a tie, also with an earlier answer.

    Args:
        judge: Whom to ask.
        task: What to ask.
        pause: What waits between two attempts, see `answered`.

    Raises:
        Undo: If the judge takes back its last answer.
        KeyboardInterrupt: If the judge does.
    """
    question = _turned(question_of(task.duel)) if task.turned else question_of(task.duel)
    found = await answered(judge, question, attempts=ATTEMPTS, sleep=pause)
    said = found.answer.answer
    if task.turned:
        answer = TURNED.get(said, said)
        found = found._replace(answer=found.answer._replace(answer=answer))
    if task.confirms is not None:
        both = found.answer._replace(answer=_joint(task.confirms, found.answer.answer))
        return Reply(task, both, found.calls, found.error, found.final, second=said)
    if task.orders == 1:
        return Reply(task, found.answer, found.calls, found.error, found.final)
    if found.answer.answer == "skip":
        return Reply(task, found.answer, found.calls, found.error, found.final, "skip")
    return _agreed(task, found, await answered(judge, _turned(question), attempts=ATTEMPTS, sleep=pause))


def _agreed(task: Task, found: Attempted, turned: Attempted) -> Reply:
    first, second = found.answer, turned.answer
    other = TURNED.get(second.answer, second.answer)
    answer = _joint(first.answer, other)
    costs = [one.cost for one in (first, second) if one.cost is not None]
    notes = [one.note for one in (first, second) if one.note is not None]
    joined = Answer(answer, "\n".join(notes) or None, sum(costs) if costs else None, first.bad or second.bad)
    return Reply(task, joined, found.calls + turned.calls, turned.error, turned.final, first.answer)


def _joint(first: str, other: str) -> str:
    """What two answers to the same question say, given in the order of the first."""
    return "skip" if other == "skip" else first if first == other else "tie"


def question_of(duel: Duel) -> Question:
    """Return what a judge is asked about a duel."""
    item = duel.item
    if item is None or item.left is None or item.right is None:
        return Question(None, duel.left, duel.right, duel.left, duel.right)
    return Question(item.prompt, item.left.content, item.right.content, duel.left, duel.right)


def _turned(question: Question) -> Question:
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
                f"study {study!r}: the judge {name!r} was {_listed(before)} when it answered, and is {one} now: its "
                "code or settings have changed; give it another name, or choose another study_name (--study)"
            )
        raise Conflict(
            f"study {study!r} was answered by another judge, {_listed(before)}, and this one is {one}: choose another "
            "study_name (--study), or give judges by name to let both answer, as in judge={'name': function}"
        )


def _listed(found: set[str]) -> str:
    return " and ".join(sorted(found))
