"""Replies without a usable answer, and calls that fail, are asked for again, and cost no winner."""

import itertools
import random
import statistics
import threading
from collections import Counter
from typing import NamedTuple

import pytest

import duels
from duels.judges import Answer, JudgeError
from duels.storage.storage import Storage

ARMS = [f"arm {k}" for k in range(6)]
PROMPTS = [f"prompt {n}" for n in range(60)]
OUTPUTS = {arm: [f"{arm} on {prompt}" for prompt in PROMPTS] for arm in ARMS}


pytestmark = pytest.mark.usefixtures("short_pauses")


class Judge:
    """Always gives the same answer to a question, but a share of its replies cannot be used.

    Args:
        top: On how many of the 60 prompts the best arm wins against the second. It wins as many, and at least 40,
            against each other arm, and these win 34 against worse ones.
        unusable: The share of replies that cannot be used, at random.
        seed: Decides which arm is which, and who wins on which prompt.
    """

    def __init__(self, top, unusable, seed):
        draw, self._luck = random.Random(seed), random.Random(f"{seed} unusable")
        self._unusable, self._lock, self.calls, self.unusable = unusable, threading.Lock(), 0, 0
        ranked = draw.sample(ARMS, len(ARMS))
        self.best, self._winner = ranked[0], {}
        for (i, one), (j, other) in itertools.combinations(enumerate(ranked), 2):
            wins = top if (i, j) == (0, 1) else 34 if i else max(top, 40)
            winners = [one] * wins + [other] * (60 - wins)
            draw.shuffle(winners)
            self._winner |= {(prompt, frozenset((one, other))): arm for prompt, arm in zip(PROMPTS, winners)}

    def __call__(self, prompt, left, right):
        first, second = left.split(" on ")[0], right.split(" on ")[0]
        with self._lock:
            self.calls += 1
            if self._luck.random() < self._unusable:
                self.unusable += 1
                return "I cannot say"
        return "left" if self._winner[prompt, frozenset((first, second))] == first else "right"


class Found(NamedTuple):
    """What studies have found."""

    winners: int  # how many named the best arm
    calls: float  # the mean


def studies(top, unusable, count, **options):
    """Find the best with so many seeds; nobody but the best arm may win."""
    calls, winners, more = [], 0, {"about": "these-answers"} | options
    for seed in range(count):
        judge = Judge(top, unusable, seed)
        result = duels.find_best(OUTPUTS, judge, prompts=PROMPTS, storage=Storage("sqlite://"), **more)
        assert result.winner in (judge.best, None)
        assert (result.calls, result.spent.bad) == (judge.calls, judge.unusable)
        calls.append(result.calls)
        winners += result.winner == judge.best
    return Found(winners, statistics.mean(calls))


def check_shares(about, top, count, shares):
    """With unusable replies there is a winner as often as without, after at most 1.2 times the calls."""
    clean = studies(top, 0.0, count, about=about)
    assert clean.winners == count
    for share in shares:
        found = studies(top, share, count, about=about)
        assert found.winners == count
        assert found.calls <= 1.2 * clean.calls


# On prompts like these 60, it takes 44 wins where everything must be asked.
@pytest.mark.parametrize(("about", "top"), [("these-answers", 31), ("new-items", 45)])
def test_a_winner_is_found_as_often_with_unusable_replies(about, top):
    check_shares(about, top, 3, [0.05])


@pytest.mark.deep
@pytest.mark.parametrize(
    ("about", "top"),
    [("these-answers", 31), ("these-answers", 33), ("these-answers", 36), ("new-items", 44), ("new-items", 45)],
)
def test_a_winner_is_found_as_often_with_unusable_replies_in_many_studies(about, top):
    check_shares(about, top, 20, [0.01, 0.02, 0.05])


FEW = {arm: [f"{arm} {n:02}" for n in range(6)] for arm in ("a", "bb", "ccc")}
ASKED = [f"p{n}" for n in range(6)]


class Scripted:
    """Calls a function with the prompt, and how often the same question was asked; keeps what was asked in order."""

    def __init__(self, answer):
        self.answer, self.asked, self.lock = answer, [], threading.Lock()

    def __call__(self, prompt, left, right):
        question = prompt, frozenset((left, right))
        with self.lock:
            self.asked.append(question)
            times = self.asked.count(question)
        return self.answer(prompt, times)


def best(judge, storage=None, outputs=FEW, **options):
    given = {"prompts": ASKED, "study_name": "s", "concurrency": 1, "storage": storage or Storage("sqlite://")}
    given["about"] = "these-answers"
    return duels.find_best(outputs, judge, **given | options)


def test_an_unusable_reply_is_asked_for_again_at_once(no_repeats):
    judge = Scripted(lambda prompt, times: Answer("?" if times < 3 else "tie", cost=0.5))
    result = best(judge)
    assert [judge.asked.count(one) for one in judge.asked] == [3] * result.calls
    assert judge.asked[0] == judge.asked[1] == judge.asked[2]
    told = [entry for entry in result.study.events() if entry.kind == "tell"]
    assert {(one.answer, one.note["calls"], one.note["unusable"], one.note["cost"]) for one in told} == {
        ("tie", 3, 2, 1.5)
    }
    assert not any("bad" in entry.note for entry in told)
    assert (result.spent.bad, result.unanswered, result.ended) == (2 * len(told), 0, "verdict")


@pytest.mark.parametrize("kind", ["unusable", "failed"])
def test_what_has_no_answer_is_asked_again_when_its_pair_has_no_other_question(no_repeats, kind):
    """Once in a run, and before the run gives up or asks about other pairs than these."""

    def answer(prompt, times):
        if prompt == "p0" and times <= (3 if kind == "unusable" else 5):
            if kind == "unusable":
                return "?"
            raise JudgeError("busy")
        return "tie"

    judge = Scripted(answer)
    result = best(judge)
    assert (result.ended, result.verdict.kind, result.unanswered) == ("verdict", "practically tied", 0)
    asked, again = ([entry for entry in result.study.events() if entry.kind == kind] for kind in ("ask", "again"))
    first = sum(entry.note["item"] == 1 for entry in asked)
    assert [entry.note["item"] for entry in again] == [1] * len(again)
    assert 1 < len(again) <= first
    for entry in again:
        earlier = [
            one
            for one in result.study.events(limit=entry.seq)
            if one.kind == "ask" and {one.left, one.right} == {entry.left, entry.right}
        ]
        assert len(earlier) == 6
    attempts = 3 if kind == "unusable" else 5
    assert result.calls == len(judge.asked) == len(asked) - first + attempts * first + len(again)
    result.study.check()


def test_what_is_left_is_asked_first_by_the_next_run_and_once_in_a_run(no_repeats):
    """A first arm has 4 ties of 6 and a question without an answer with each other one: it cannot win any more."""
    storage, judge = Storage("sqlite://"), Scripted(lambda prompt, times: "?" if prompt == "p0" else "tie")
    first = best(judge, storage)
    assert (first.ended, first.unanswered, first.verdict.answers_to_go) == ("exhausted", 2, None)
    assert first.spent.bad == 2 * 6
    text = str(first)
    assert "\nNo question that is left can bring a verdict.\n" in text
    assert "\n2 questions without a usable answer: run it again to ask them once more." in text
    assert "more answer" not in text
    second = best(judge, storage)
    assert (second.calls, second.unanswered) == (first.calls + 2 * 3, 2)
    events = second.study.events()
    unusable = dict.fromkeys(entry.duel for entry in events if entry.kind == "tell" and "bad" in entry.note)
    assert [entry.duel for entry in events if entry.kind == "again"] == [*unusable, *unusable]
    judge.answer = lambda prompt, times: "tie"
    third = best(judge, storage)
    new = [entry for entry in third.study.events(len(events)) if entry.kind == "ask"]
    assert [entry.duel for entry in third.study.events(len(events)) if entry.kind == "again"] == [*unusable]
    assert (third.calls, third.unanswered) == (second.calls + 2 + len(new), 0)
    assert (third.ended, third.verdict.kind) == ("verdict", "practically tied")
    asked = Counter(
        (entry.note["item"], frozenset((entry.left, entry.right))) for entry in events + new if entry.kind == "ask"
    )
    assert set(asked.values()) == {1}
    third.study.check()


def test_a_skip_that_the_judge_wants_is_not_asked_again(no_repeats):
    storage, judge = Storage("sqlite://"), Scripted(lambda prompt, times: "skip" if prompt == "p0" else "tie")
    for _ in range(2):
        result = best(judge, storage)
        assert (result.ended, result.calls, result.unanswered, result.spent.bad) == ("exhausted", 14, 0, 0)
        assert result.verdict.answers_to_go is None
        assert "without a usable answer" not in str(result)


def test_a_question_that_the_judge_can_never_answer_waits_for_the_next_run(no_repeats):
    def answer(prompt, times):
        if prompt == "p0":
            raise JudgeError("too long", can_retry=False, this_question=True)
        return "tie"

    storage, judge = Storage("sqlite://"), Scripted(answer)
    assert (best(judge, storage).calls, best(judge, storage).calls) == (14, 16)


@pytest.mark.parametrize("orders", ["one", "both"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_limits_are_exact(orders, concurrency):
    """Every third reply can be used; whatever else is asked again, no call is made beyond the limit."""
    storage, count, lock = Storage("sqlite://"), itertools.count(1), threading.Lock()
    made = Counter()

    def judge(prompt, left, right):
        with lock:
            number = next(count)
            made["calls"] += 1
        return Answer("tie" if number % 3 == 0 else "?", cost=0.25)

    for limit in range(2, 40, 3):
        result = best(judge, storage, orders=orders, concurrency=concurrency, max_calls=limit)
        assert result.calls == made["calls"] <= limit
        assert result.cost == pytest.approx(0.25 * made["calls"])
    for cost in (10.5, 11.0, 12.5):
        result = best(judge, storage, orders=orders, concurrency=concurrency, max_cost=cost)
        assert result.calls == made["calls"]
        assert result.cost <= cost
    result = best(judge, storage, orders=orders, concurrency=concurrency)
    assert (result.calls, result.spent.unstored) == (made["calls"], 0)
    result.study.check()


def test_a_tuning_study_replaces_a_duel_without_an_answer():
    calls = itertools.count(1)
    asked = []

    def judge(left, right):
        asked.append((left["x"], right["x"]))
        return "?" if next(calls) <= 4 else "left"

    study = duels.create_study(space={"x": (0.0, 1.0)}, storage=Storage("sqlite://"))
    for _ in range(2):
        result = study.run(judge, max_duels=6, concurrency=1)
        assert (result.duels, result.spent.bad, result.calls, len(asked)) == (7, 4, 10, 10)
    assert asked[0] == asked[1] == asked[2]
    assert asked[3] == asked[4] != asked[2]
