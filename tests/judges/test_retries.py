"""Failed calls are repeated after pauses that grow, as often as is useful."""

import asyncio
import random

import pytest

from duels.errors import InvalidInput
from duels.judges.questions import Answer, JudgeError, Question, Undo, as_judge
from duels.judges.retries import Attempted, answer_question

QUESTION = Question("2 + 2?", "4", "five", "terse", "wordy")


def attempt(*outcomes, **more):
    """Ask a judge that raises or returns these, one after the other; return what became of it, and the pauses."""
    left, pauses = list(outcomes), []

    async def judge(prompt, left_output, right_output):
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def sleep(seconds):
        pauses.append(seconds)

    return asyncio.run(answer_question(as_judge(judge), QUESTION, sleep=sleep, **more)), pauses


def test_an_answer_takes_one_call():
    assert attempt("left") == (Attempted(Answer("left"), 1, None, False), [])


def test_failures_are_repeated():
    attempted, pauses = attempt(ValueError("odd"), TimeoutError(), JudgeError("busy"), "terse")
    assert attempted == Attempted(Answer("left"), 4)
    assert len(pauses) == 3


def test_a_bad_answer_is_asked_for_again_at_once_up_to_three_times_in_all():
    attempted, pauses = attempt(Answer("who knows", cost=0.5), ValueError(), Answer("terse", cost=0.25))
    assert (attempted, len(pauses)) == (Attempted(Answer("left", cost=0.75), 3, unusable=1), 1)
    attempted, pauses = attempt("who", "knows", "that")
    assert (attempted.answer.answer, attempted.answer.bad, attempted.calls, attempted.unusable) == ("skip", True, 3, 3)
    assert "'that'" in attempted.answer.note
    assert (attempted.error, pauses) == (None, [])


def test_a_skip_is_an_answer():
    assert attempt("skip")[0] == Attempted(Answer("skip"), 1)


def test_further_replies_may_be_forbidden():
    allowed = iter([True, False])
    attempted, _ = attempt("who", "knows", "left", allow_reply=lambda: next(allowed))
    assert (attempted.answer.bad, attempted.calls, attempted.unusable) == (True, 2, 2)


def test_a_failure_after_a_bad_answer():
    attempted, _ = attempt(Answer("who knows", cost=0.5), JudgeError("wrong key", can_retry=False))
    assert attempted == Attempted(Answer("skip", "wrong key", 0.5), 2, "wrong key", final=True, unusable=1)


def test_the_last_failure_is_a_skip_with_the_reason():
    attempted, pauses = attempt(*[ValueError(f"try {k}") for k in range(5)])
    assert attempted == Attempted(Answer("skip", "ValueError: try 4"), 5, "ValueError: try 4", False)
    assert len(pauses) == 4
    attempted, pauses = attempt(JudgeError("busy"), JudgeError("busy: full"), attempts=2)
    assert attempted == Attempted(Answer("skip", "busy: full"), 2, "busy: full", False)


def test_pauses_double_up_to_a_minute_less_at_most_half():
    """Each is uniform between half of 1, 2, 4, … 60 seconds and the whole of it: any generator stays within."""
    full = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    seen = []
    for seed in range(50):
        _, pauses = attempt(*[OSError()] * 10, attempts=10, rng=random.Random(seed))
        assert all(whole / 2 <= pause <= whole for pause, whole in zip(pauses, full, strict=True))
        seen.append(pauses[0])
    # Of 50 uniform numbers, all lie in the same quarter of the range with probability below 4 · 4⁻⁵⁰.
    assert max(seen) - min(seen) > 0.125


def test_the_generator_decides_the_pauses():
    again = [attempt(*[OSError()] * 5, rng=random.Random(7))[1] for _ in range(2)]
    assert again[0] == again[1]
    assert again[0] != attempt(*[OSError()] * 5, rng=random.Random(8))[1]


def test_retry_after_is_waited_for_at_least():
    for seed in range(20):
        _, pauses = attempt(JudgeError("", retry_after=30), "tie", rng=random.Random(seed))
        assert 30 <= pauses[0] <= 33
    _, pauses = attempt(JudgeError("", retry_after=0.01), "tie", rng=random.Random(1))
    assert 0.5 <= pauses[0] <= 1, "a shorter time than the back-off does not shorten it"


@pytest.mark.parametrize(
    "error",
    [
        JudgeError("wrong key", can_retry=False),
        JudgeError("tomorrow", retry_after=86_400),
        NameError("name 'clinet' is not defined"),
        ModuleNotFoundError("No module named 'openia'"),
    ],
)
def test_what_no_attempt_can_cure_ends_at_once(error):
    attempted, pauses = attempt(error)
    assert (attempted.calls, attempted.final, pauses) == (1, True, [])
    assert str(error) in attempted.error
    assert attempted.answer == Answer("skip", attempted.error)


def test_a_question_that_cannot_be_answered_is_no_reason_to_stop():
    attempted, pauses = attempt(JudgeError("too long", can_retry=False, this_question=True))
    assert (attempted, pauses) == (Attempted(Answer("skip", "too long"), 1, "too long", False, closed=True), [])


def test_costs_of_failed_attempts_are_added():
    attempted, _ = attempt(
        JudgeError("cut", cost=0.25), ValueError(), JudgeError("cut", cost=0.5), Answer("tie", cost=1.0)
    )
    assert attempted.answer == Answer("tie", cost=1.75)
    attempted, _ = attempt(JudgeError("cut", cost=0.25), "tie")
    assert attempted.answer == Answer("tie", cost=0.25)
    attempted, _ = attempt(JudgeError("cut", cost=0.25), JudgeError("busy"), attempts=2)
    assert attempted.answer == Answer("skip", "busy", 0.25)
    assert attempt(ValueError(), "tie")[0].answer.cost is None


@pytest.mark.parametrize("raised", [Undo(), asyncio.CancelledError(), SystemExit(2)])
def test_undo_and_the_end_of_the_program_go_through(raised):
    with pytest.raises(type(raised)):
        attempt(raised, "tie")


def test_keyboard_interrupt_goes_through_from_a_thread():
    def judge(left, right):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(answer_question(as_judge(judge), QUESTION))


def test_a_cancelled_pause_ends_the_attempts():
    calls = []

    async def judge(left, right):
        calls.append(left)
        raise OSError("no network")

    async def main():
        task = asyncio.create_task(answer_question(as_judge(judge), QUESTION))
        while not calls:
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert len(calls) == 1


def test_reasons_are_cut():
    attempted, _ = attempt(ValueError("x" * 10_000), attempts=1)
    assert len(attempted.error) == 500


@pytest.mark.parametrize("attempts", [0, -1, 1.5, "3"])
def test_attempts_are_checked(attempts):
    with pytest.raises(InvalidInput, match="attempts is"):
        attempt("tie", attempts=attempts)
