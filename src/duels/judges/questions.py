"""What a judge is asked, what it may answer, and how any function becomes a judge."""

import asyncio
import contextvars
import inspect
import math
import re
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple

from ..errors import DuelsError, InvalidInput, shorten

ANSWERS = ("left", "right", "tie", "both_bad", "skip")
NOTE = 2000  # characters of a note that are kept
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline
EXPECTED = "expected left, right, tie, both_bad, skip, the name of one of the two arms, or an Answer"


class Image(str):
    """An output that is an image: text such as `data:image/png;base64,…`, which a judge can tell from other text."""

    __slots__ = ()


class Question(NamedTuple):
    """Which of two outputs is better?

    Attributes:
        prompt: What the outputs answer; None if the study has no prompts.
        left: The output on the left, an `Image` if it is one; the arm's name if there are no outputs.
        right: The output on the right.
        left_name: The name of the arm on the left.
        right_name: The name of the arm on the right.
    """

    prompt: str | None
    left: str
    right: str
    left_name: str
    right_name: str


class Answer(NamedTuple):
    """What a judge answered.

    Attributes:
        answer: left, right, tie, both_bad or skip. A judge may also give the name of one of the two arms.
        note: Why; kept in the log, up to 2,000 characters.
        cost: What the answer cost, in dollars; None if it is not known.
        bad: Whether the judge's reply had no usable answer. It is then a skip, and the judge is asked again.

    Example:
        >>> Answer("left", note="The other one is off topic.", cost=0.002).answer
        'left'
    """

    answer: str
    note: str | None = None
    cost: float | None = None
    bad: bool = False


class JudgeError(DuelsError):
    """A judge could not answer. Raise it in a judge of your own to say when to try again, or that it is no use.

    Args:
        message: What went wrong.
        retry_after: Seconds to wait at least before the next attempt.
        can_retry: False if no further attempt can succeed, such as with a wrong key: the run then stops.
        this_question: With `can_retry=False`: only this question cannot be answered, such as one that is too long. It
            is skipped, and the run goes on.
        cost: What the failed attempt cost, in dollars, if that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        can_retry: bool = True,
        this_question: bool = False,
        cost: float | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after, self.cost = _nonnegative(retry_after), _nonnegative(cost)
        self.can_retry, self.this_question = can_retry, this_question


class Undo(Exception):
    """The judge takes back its last answer: the question of that answer is to be asked again, then this one."""


class Judge:
    """A function that answers questions, made by `as_judge`: `answer = await judge(question)`.

    Attributes:
        function: The function.
        most_at_once: How many questions it can answer at the same time; None if any number.
        takes_images: Whether it can be asked about outputs that are images. A function can, unless it has an attribute
            `takes_images` that says otherwise.
    """

    def __init__(self, function: Callable[..., Any], takes_prompt: bool, executor: Executor | None) -> None:
        self.function = function
        self.most_at_once: int | None = getattr(function, "most_at_once", None)
        self.takes_images: bool = getattr(function, "takes_images", True)
        self._takes_prompt, self._executor = takes_prompt, executor
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  # an object's method, not whether it has one
        )

    def __repr__(self) -> str:
        return f"Judge({getattr(self.function, '__qualname__', self.function)})"

    async def __call__(self, question: Question) -> Answer:
        """Ask the function, in a thread unless it is async, and check what it returns."""
        first = [question.prompt] if self._takes_prompt else []
        arguments = (*first, question.left, question.right)
        reply = self.function(*arguments) if self._is_async else await self._in_thread(arguments)
        if inspect.isawaitable(reply):
            reply = await reply
        return check_reply(reply, question)

    def without_cache(self) -> "Judge":
        """Return the judge without the cache of `functools` that its function may have."""
        if not hasattr(self.function, "cache_info"):
            return self
        inner, owner = inspect.unwrap(self.function), getattr(self.function, "__self__", None)
        return Judge(inner if owner is None else inner.__get__(owner), self._takes_prompt, self._executor)

    async def aclose(self) -> None:
        """Release what the function holds, such as connections, if it has an `aclose` of its own."""
        if close := getattr(self.function, "aclose", None):
            await close()

    async def _in_thread(self, arguments: tuple[str | None, ...]) -> object:
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, lambda: context.run(_call, self.function, arguments)
        )


def as_judge(function: Callable[..., Any], executor: Executor | None = None) -> Judge:
    """Make a judge of a function.

    Args:
        function: It takes `(prompt, left, right)` or `(left, right)`, and returns `"left"`, `"right"`, `"tie"`,
            `"both_bad"`, `"skip"`, the name of one of the two arms, or an `Answer`. It may be async. Further
            parameters must have defaults.
        executor: Where a function that is not async runs; by default the event loop's threads.

    Returns:
        The judge. Anything else that the function returns becomes a skip that is marked as bad.

    Raises:
        InvalidInput: If the function takes other arguments.

    Example:
        >>> as_judge(lambda prompt, left, right: "left" if len(left) < len(right) else "right")
        Judge(<lambda>)
    """
    if isinstance(function, Judge):
        return function
    expected = "expected a function of (prompt, left, right) or (left, right)"
    if not callable(function):
        raise InvalidInput(f"judge is {shorten(function)}: {expected}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise InvalidInput(f"judge is {shorten(function)}, whose arguments are not known: {expected}") from None
    names = list(signature.parameters)
    for order in (["prompt", "left", "right"], ["left", "right"]):
        if set(names[: len(order)]) == set(order) and names[: len(order)] != order:
            raise InvalidInput(f"judge takes {signature}: expected this order: ({', '.join(order)})")
    takes_prompt = _takes_prompt(signature)
    if takes_prompt is None:
        raise InvalidInput(f"judge takes {signature}: {expected}; other parameters need defaults")
    return Judge(function, takes_prompt, executor)


def check_reply(reply: object, question: Question) -> Answer:
    """Return what a judge returned as an `Answer`; a bad skip if it cannot be used.

    Example:
        >>> question = Question("2 + 2?", "4", "five", "terse", "wordy")
        >>> checked("terse", question)
        Answer(answer='left', note=None, cost=None, bad=False)
    """
    given = reply if isinstance(reply, Answer) else Answer(reply)  # type: ignore[arg-type]  # checked below
    word, cost = _word(given.answer, question), _nonnegative(given.cost)
    note = None if given.note is None else clean(str(given.note))
    if word is None or (cost is None and given.cost is not None):
        found = given.answer if word is None else given
        return Answer("skip", clean(f"the judge returned {shorten(found, 500)}: {EXPECTED}"), cost, bad=True)
    return Answer("skip" if given.bad else word, note, cost, bool(given.bad))


def clean(text: str, most: int = NOTE) -> str:
    """Return text that any database and terminal can take, cut to `most` characters; `…` marks a cut."""
    text = CONTROLS.sub("", text).encode("utf-8", "replace").decode()
    return text if len(text) <= most else text[: most - 1] + "…"


def _call(function: Callable[..., Any], arguments: tuple[str | None, ...]) -> object:
    try:
        return function(*arguments)
    except StopIteration as error:  # a future cannot hold it: whoever waits would wait forever
        raise RuntimeError("the judge raised StopIteration") from error


def _takes_prompt(signature: inspect.Signature) -> bool | None:
    """Whether a function takes the prompt before the outputs; None if it cannot take the outputs at all."""
    parameters = list(signature.parameters.values())
    if any(one.kind is one.KEYWORD_ONLY and one.default is one.empty for one in parameters):
        return None
    any_number = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    by_place = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = sum(one.default is one.empty for one in by_place)
    if any_number or (by_place and by_place[0].name == "prompt"):
        return True if needed <= 3 and (any_number or len(by_place) >= 3) else None
    return {2: False, 3: True}.get(needed)


def _word(answer: object, question: Question) -> str | None:
    if not isinstance(answer, str):
        return None
    if answer not in (question.left_name, question.right_name):
        word = answer.strip().lower()
        return word if word in ANSWERS else None
    if answer in ANSWERS:  # an arm that is called left
        return str(answer)
    if question.left_name == question.right_name:
        return "tie"
    return "left" if answer == question.left_name else "right"


def _nonnegative(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]  # any type that converts
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
