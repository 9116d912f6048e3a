"""Which functions can be judges, and what their answers become."""

import asyncio
import contextvars
import functools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from duels.errors import InvalidInput
from duels.judges.questions import ANSWERS, Answer, Judge, JudgeError, Question, as_judge, check_reply

QUESTION = Question("2 + 2?", "4", "five", "terse", "wordy")


def ask(function, question=QUESTION, **more):
    return asyncio.run(as_judge(function, **more)(question))


def three(prompt, left, right):
    return Answer("left", f"{prompt}|{left}|{right}")


def two(left, right):
    return Answer("left", f"{left}|{right}")


class Sync:
    def __call__(self, prompt, left, right, *, model="m"):
        return three(prompt, left, right)


class Async:
    async def __call__(self, prompt, left, right):
        await asyncio.sleep(0)
        return three(prompt, left, right)

    def method(self, left, right):
        return two(left, right)


async def three_async(prompt, left, right):
    return three(prompt, left, right)


ALL, OUTPUTS = "2 + 2?|4|five", "4|five"


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (three, ALL),
        (two, OUTPUTS),
        (three_async, ALL),
        (Sync(), ALL),
        (Async(), ALL),
        (Async().method, OUTPUTS),
        (lambda *given: three(*given), ALL),
        (lambda a, *b: three(a, *b), ALL),
        (lambda a, b: two(a, b), OUTPUTS),
        (lambda a, b, model="m": two(a, b), OUTPUTS),
        (lambda prompt, left="", right="": three(prompt, left, right), ALL),
        (lambda prompt, a, b, **settings: three(prompt, a, b), ALL),
        (lambda prompt, a, b: three_async(prompt, a, b), ALL),  # a coroutine from a function that is not async
        (functools.partial(three_async, "2 + 2?"), OUTPUTS),
        (functools.partial(lambda model, prompt, a, b: three(prompt, a, b), "m"), ALL),
        (functools.partial(lambda prompt, a, b, model: three(prompt, a, b), model="m"), ALL),
    ],
)
def test_functions_of_three_or_two_arguments(function, got):
    assert ask(function).note.endswith(got)
    assert ask(function).answer == "left"


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda: "left", "judge takes (): expected a function of (prompt, left, right) or (left, right)"),
        (lambda question: "left", "judge takes (question)"),
        (lambda a, b, c, d: "left", "judge takes (a, b, c, d)"),
        (lambda prompt, output: "left", "judge takes (prompt, output)"),
        (lambda a, b, c, d, *more: "left", "judge takes (a, b, c, d, *more)"),
        (lambda prompt, left, right, *, model: "left", "judge takes (prompt, left, right, *, model)"),
        ("gpt-4", "judge is 'gpt-4'"),
        (None, "judge is None"),
        (max, "judge is <built-in function max>, whose arguments are not known"),
    ],
)
def test_other_functions_are_refused_before_the_first_call(function, found):
    with pytest.raises(InvalidInput) as error:
        as_judge(function)
    assert str(error.value).startswith(found)
    assert "expected a function of (prompt, left, right) or (left, right)" in str(error.value)


def test_a_judge_is_a_judge():
    judge = as_judge(three)
    assert as_judge(judge) is judge
    assert isinstance(judge, Judge)
    assert repr(judge) == "Judge(three)"
    assert repr(as_judge(Async())).startswith("Judge(<")


@pytest.mark.parametrize("word", ANSWERS)
def test_words(word):
    assert check_reply(word, QUESTION) == Answer(word)
    swapped = Question(None, "x", "y", "right", "skip")
    assert check_reply(word, swapped) == Answer(word), "words win over names"


def test_words_in_other_letters():
    assert check_reply(" Left\n", QUESTION) == Answer("left")
    assert check_reply("BOTH_BAD", QUESTION) == Answer("both_bad")
    named = Question(None, "x", "y", "Left", "other")
    assert check_reply("Left", named) == Answer("left"), "a name, as it is written"
    named = Question(None, "x", "y", "other", "Left")
    assert check_reply("Left", named) == Answer("right")


@pytest.mark.parametrize(
    ("judge", "order"),
    [
        (lambda left, right, prompt: "left", r"\(prompt, left, right\)"),
        (lambda prompt, right, left, more=1: "left", r"\(prompt, left, right\)"),
        (lambda right, left: "left", r"\(left, right\)"),
    ],
)
def test_parameters_in_another_order_are_refused(judge, order):
    with pytest.raises(InvalidInput, match=f"expected this order: {order}"):
        as_judge(judge)


def test_names():
    assert check_reply("terse", QUESTION) == Answer("left")
    assert check_reply("wordy", QUESTION) == Answer("right")
    assert check_reply(Answer("wordy", "because", 0.5), QUESTION) == Answer("right", "because", 0.5)
    itself = Question(None, "x", "x", "one", "one")
    assert check_reply("one", itself) == Answer("tie"), "as Study.tell"


@pytest.mark.parametrize("reply", ["terse ", "A", "left.", "", None, True, 1, ("left", "why"), ["left"], b"left"])
def test_anything_else_is_a_bad_skip(reply):
    answer = check_reply(reply, QUESTION)
    assert (answer.answer, answer.cost, answer.bad) == ("skip", None, True)
    assert f"the judge returned {reply!r}: expected left, right, tie" in answer.note


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1, "much", 1j])
def test_a_cost_that_cannot_be_added_up_is_bad(cost):
    answer = check_reply(Answer("left", cost=cost), QUESTION)
    assert (answer.answer, answer.cost, answer.bad) == ("skip", None, True)
    assert repr(cost) in answer.note


def test_costs_and_notes_are_made_plain():
    answer = check_reply(
        Answer("tie", note=ValueError("o\x1b\x9bd\rd\0\ud800\n"), cost=Decimal("0.25"), bad=0), QUESTION
    )
    assert answer == Answer("tie", "odd?\n", 0.25, False)
    assert type(answer.cost) is float
    assert check_reply(Answer("nonsense", cost=0.1), QUESTION)[::2] == ("skip", 0.1), "a bad answer costs too"
    long = check_reply(Answer("tie", "x" * 3000), QUESTION).note
    assert (len(long), long[-2:]) == (2000, "x…")


def test_functions_run_in_threads_of_the_executor_with_the_context():
    user = contextvars.ContextVar("user")

    def where(left, right):
        return Answer("tie", f"{threading.current_thread().name} {user.get()}")

    async def main():
        user.set("ann")
        with ThreadPoolExecutor(thread_name_prefix="own") as executor:
            return await as_judge(where, executor)(QUESTION), await as_judge(where)(QUESTION)

    own, default = asyncio.run(main())
    assert own.note.startswith("own")
    assert default.note.startswith("asyncio")
    assert own.note.endswith("ann")
    assert default.note.endswith("ann")


def test_functions_run_at_the_same_time():
    together = threading.Barrier(3, timeout=20)

    def judge(left, right):
        together.wait()
        return "tie"

    async def main():
        return await asyncio.gather(*(as_judge(judge)(QUESTION) for _ in range(3)))

    assert asyncio.run(main()) == [Answer("tie")] * 3


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("no"), ValueError),
        (JudgeError("busy", retry_after=2.0), JudgeError),
        (StopIteration(), RuntimeError),
    ],
)
def test_errors_of_threads_arrive(raised, expected):
    """A StopIteration, as of `next` on an empty iterator, would leave whoever waits waiting forever."""

    def judge(left, right):
        raise raised

    with pytest.raises(expected):
        asyncio.run(asyncio.wait_for(as_judge(judge)(QUESTION), 20))


def test_a_judge_has_the_limits_and_the_end_of_its_function():
    class Kept(Async):
        most_at_once = 1
        closed = 0

        async def aclose(self):
            self.closed += 1

    kept = Kept()
    assert as_judge(kept).most_at_once == 1
    assert as_judge(three).most_at_once is None
    asyncio.run(as_judge(kept).aclose())
    asyncio.run(as_judge(three).aclose())
    assert kept.closed == 1


def test_judge_error_says_what_to_do_next():
    error = JudgeError("busy")
    assert (str(error), error.retry_after, error.can_retry, error.cost) == ("busy", None, True, None)
    odd = JudgeError("busy", retry_after=math.nan, cost=-1)
    assert (odd.retry_after, odd.cost) == (None, None)


def test_an_answer_that_is_marked_as_bad_is_a_skip():
    question = Question(None, "4", "five", "terse", "wordy")
    assert check_reply(Answer("left", "cut off", 0.5, bad=True), question) == Answer("skip", "cut off", 0.5, bad=True)
