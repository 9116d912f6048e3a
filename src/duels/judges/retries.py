"""Ask a judge again: when it fails, after a pause that grows; when its reply cannot be used, at once."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from ..checks import check_int
from .questions import Answer, Judge, JudgeError, Question, Undo, clean

FIRST, LONGEST = 1.0, 60.0  # seconds of the first pause, which doubles each time, and of the longest
PATIENCE = 600.0  # seconds that a judge may ask to wait: beyond, the run is better resumed later
HOPELESS = (NameError, ImportError, NotImplementedError)  # mistakes in the judge's code, which stay
REPLIES = 3  # to a question, until one can be used
REASON = 500  # characters of an error

_random = random.Random()


class Attempted(NamedTuple):
    """What became of a question.

    Attributes:
        answer: The answer. After the last failure it is a skip, with the reason as its note; the cost is that of all
            attempts, as far as it is known.
        calls: How many times the judge was called.
        error: Why the last attempt failed; None if there is a reply.
        final: Whether the judge will fail at every other question too, such as with a wrong key.
        closed: Whether it will fail at this question every time, such as one that is too long.
        unusable: How many replies had no usable answer.
    """

    answer: Answer
    calls: int
    error: str | None = None
    final: bool = False
    closed: bool = False
    unusable: int = 0


async def answer_question(
    judge: Judge,
    question: Question,
    *,
    attempts: int = 5,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    allow_reply: Callable[[], bool] = lambda: True,
    rng: random.Random | None = None,
) -> Attempted:
    """Ask a judge until it gives an answer that can be used.

    Args:
        judge: Whom to ask.
        question: What to ask.
        attempts: How often to ask at most while the judge fails.
        sleep: What waits between two attempts: 1 second, then 2, 4, … up to 60, each shortened by up to a half at
            random. A `JudgeError` with `retry_after` asks for that time at least. If it returns False, there is no
            further attempt.
        allow_reply: Called after a reply without a usable answer, before the judge is asked again; up to three replies
            are asked for in all. If it returns False, the judge is not asked again.
        rng: The generator of the random part.

    Returns:
        The answer, or a skip after the last attempt, or after an error that no further attempt can cure.

    Raises:
        Undo: If the judge takes back its last answer.
        InvalidInput: If `attempts` is not a positive whole number.
    """
    calls, unusable, cost = 0, 0, None
    while True:
        tried = await attempt_call(partial(judge, question), attempts=attempts, sleep=sleep, rng=rng)
        calls, cost = calls + tried.calls, _sum(cost, tried.cost)
        if tried.failure is not None:
            break
        answer: Answer = tried.value
        cost, unusable = _sum(cost, answer.cost), unusable + answer.bad
        if not answer.bad or unusable >= REPLIES or not allow_reply():
            return Attempted(answer._replace(cost=cost), calls, unusable=unusable)
    reason, hopeless = clean(str(tried.failure), REASON), not tried.may_work_later
    this_question = tried.failure.this_question
    final, closed = hopeless and not this_question, hopeless and this_question
    return Attempted(Answer("skip", reason, cost), calls, reason, final, closed, unusable)


class Tried(NamedTuple):
    """What became of a call: its value, or the last failure."""

    value: Any
    calls: int
    cost: float | None  # of the failed attempts, as far as it is known
    failure: JudgeError | None = None
    may_work_later: bool = True


async def attempt_call(
    call: Callable[[], Awaitable[object]],
    *,
    attempts: int = 5,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    rng: random.Random | None = None,
) -> Tried:
    """Make a call until it succeeds; the arguments are those of `answered`."""
    attempts, cost = check_int("attempts", attempts, 1), None
    for calls in itertools.count(1):
        try:
            return Tried(await call(), calls, cost)
        except Undo:
            raise
        except Exception as error:
            failure = _failure(error)
        cost, asked = _sum(cost, failure.cost), failure.retry_after or 0.0
        may_work_later = failure.can_retry and asked <= PATIENCE
        if not may_work_later or calls >= attempts:
            return Tried(None, calls, cost, failure, may_work_later)
        if await sleep(_pause(calls, asked, rng or _random)) is False:
            return Tried(None, calls, cost, failure)
    raise AssertionError("unreachable")


def _failure(error: Exception) -> JudgeError:
    if isinstance(error, JudgeError):
        return error
    return JudgeError(f"{type(error).__name__}: {error}", can_retry=not isinstance(error, HOPELESS))


def _pause(failed: int, asked: float, rng: random.Random) -> float:
    """Seconds until the next attempt. Those who were told to wait equally long do not all come back at once."""
    return max(min(FIRST * 2.0 ** min(failed - 1, 10), LONGEST) * rng.uniform(0.5, 1.0), asked * rng.uniform(1.0, 1.1))


def _sum(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else a + b
