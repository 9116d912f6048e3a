"""Ask a judge again when it fails, after a pause that grows."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ..checks import check_int
from .questions import Answer, Judge, JudgeError, Question, Undo, clean

FIRST, LONGEST = 1.0, 60.0  # seconds of the first pause, which doubles each time, and of the longest
PATIENCE = 600.0  # seconds that a judge may ask to wait: beyond, the run is better resumed later
HOPELESS = (NameError, ImportError, NotImplementedError)  # mistakes in the judge's code, which stay
REASON = 500  # characters of an error

_random = random.Random()


class Attempted(NamedTuple):
    """What became of a question.

    Attributes:
        answer: The answer. After the last failure it is a skip, with the reason as its note; the cost is that of all
            attempts, as far as it is known.
        calls: How many times the judge was called.
        error: Why the last attempt failed; None if there is an answer.
        final: Whether the judge will fail at every other question too, such as with a wrong key.
    """

    answer: Answer
    calls: int
    error: str | None = None
    final: bool = False


async def answered(
    judge: Judge,
    question: Question,
    *,
    attempts: int = 5,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    rng: random.Random | None = None,
) -> Attempted:
    """Ask a judge until it answers.

    Args:
        judge: Whom to ask.
        question: What to ask.
        attempts: How often to ask at most.
        sleep: What waits between two attempts: 1 second, then 2, 4, … up to 60, each shortened by up to a half at
            random. A `JudgeError` with `retry_after` asks for that time at least.
        rng: The generator of the random part.

    Returns:
        The answer, or a skip after the last attempt, or after an error that no further attempt can cure.

    Raises:
        Undo: If the judge takes back its last answer.
        InvalidInput: If `attempts` is not a positive whole number.
    """
    attempts, cost = check_int("attempts", attempts, 1), None
    for call in itertools.count(1):
        try:
            answer = await judge(question)
            return Attempted(answer._replace(cost=_sum(cost, answer.cost)), call)
        except Undo:
            raise
        except Exception as error:
            failure = _failure(error)
        cost, asked = _sum(cost, failure.cost), failure.retry_after or 0.0
        useless = not failure.can_retry or asked > PATIENCE
        if useless or call >= attempts:
            reason = clean(str(failure), REASON)
            return Attempted(Answer("skip", reason, cost), call, reason, useless and not failure.this_question)
        await sleep(_pause(call, asked, rng or _random))
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
