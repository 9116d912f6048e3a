"""Calls, costs, sides and agreement, folded from logs that were worked out by hand."""

import itertools
import math

import pytest

import duels
from duels.judges import Answer
from duels.study.duels import LogEntry
from duels.study.judging.ledger import Ledger, Spent
from duels.study.voters.voter_tests import Repeatability

NOTHING = (0, 0, 0.0, 0, 0, 0, 0, 0)


def entry(seq, kind, duel=0, answer=None, voter=None, **note):
    return LogEntry(seq, kind, duel, "a", "b", answer, voter, "2026-01-01T00:00:00.000+00:00", note)


def fold(*events):
    """The ledger after events, each given as (kind, duel, answer or None, voter, note)."""
    ledger = Ledger()
    for seq, (kind, duel, answer, voter, note) in enumerate(events, 1):
        ledger.take(entry(seq, kind, duel, answer, voter, **note))
    return ledger


def ask(duel, voter=None, calls=1, **note):
    return "ask", duel, None, voter, {"calls": calls, **note}


def again(duel, voter=None, calls=1, **note):
    return "again", duel, None, voter, {"calls": calls, **note}


def tell(duel, answer, voter=None, calls=1, **note):
    return "tell", duel, answer, voter, {"calls": calls, **note}


def repeat(duel, answer, voter=None, calls=1, **note):
    return "repeat", duel, answer, voter, {"calls": calls, **note}


def undo(duel):
    return "undo", duel, None, None, {"blind": True}


def test_an_empty_log():
    ledger = Ledger()
    assert ledger.total() == Spent(*NOTHING)
    assert (ledger.open, ledger.failed) == ({}, {})
    assert ledger.calls_in(1.0) == math.inf


def test_questions_and_answers():
    ledger = fold(ask(0), ask(1), tell(1, "left", cost=0.25), tell(0, "tie", cost=0.5))
    assert ledger.total() == Spent(*NOTHING)._replace(calls=2, unstored=0, cost=0.75)
    assert ledger.seq == 4
    assert ledger.calls_in(3.0) == 8.0  # 2 calls for 0.75


def test_a_question_counts_before_its_answer():
    ledger = fold(ask(0, "gpt"), ask(1, "gpt", calls=2))
    assert ledger.total().calls == ledger.total().unstored == 3
    assert ledger.open == {0: "gpt", 1: "gpt"}


def test_retries_count():
    # Three attempts: one was counted with the question, two with the answer.
    assert fold(ask(0), tell(0, "left", calls=3)).total()[:2] == (3, 0)
    # In both orders, five in all: two were counted before.
    assert fold(ask(0, calls=2), tell(0, "left", calls=5, first="left")).total()[:2] == (5, 0)
    # The first order was skipped, and the second never asked.
    assert fold(ask(0, calls=2), tell(0, "skip", calls=1, first="skip", bad=True)).total()[:2] == (1, 0)


def test_a_crash_loses_a_call():
    ledger = fold(ask(0), again(0), tell(0, "right"))
    assert ledger.total()[:2] == (2, 1)
    assert ledger.open == {}
    # After two crashes, with both orders in between and two retries at the end: 1 + 2 + 1 + 2 calls, 3 of them lost.
    assert fold(ask(0), again(0, calls=2), again(0), tell(0, "left", calls=3)).total()[:2] == (6, 3)


def test_two_processes_answer_the_same_question():
    """Neither calls nor costs are lost, and it is not a second judge's opinion."""
    ledger = fold(ask(0), again(0), tell(0, "left", calls=3, cost=1.0), repeat(0, "left", calls=2, cost=1.0))
    assert ledger.total() == Spent(*NOTHING)._replace(calls=5, unstored=0, cost=2.0)
    assert ledger.agreements() == []


def test_bad_replies_and_failures():
    ledger = fold(
        ask(0), ask(1), ask(2), tell(0, "skip", bad=True, unusable=1), tell(1, "skip", "gpt", calls=5, failed=True)
    )
    assert ledger.total()[3:5] == (1, 1)
    assert ledger.open == {2: None}
    assert (ledger.failed, ledger.unusable) == ({1: "gpt"}, {0: None})
    for event in (undo(1), again(1, "gpt")):
        ledger.take(entry(ledger.seq + 1, *event[:4], **event[4]))
    assert (ledger.failed, ledger.open) == ({}, {1: "gpt", 2: None})
    ledger.take(entry(ledger.seq + 1, "tell", 1, "left", "gpt", calls=1))
    assert (ledger.failed, ledger.open) == ({}, {2: None})
    assert ledger.total()[:2] == (1 + 5 + 1 + 1, 1)


def test_unusable_replies_are_counted_and_a_question_without_an_answer_is_kept():
    ledger = fold(ask(0), tell(0, "left", calls=3, unusable=2), ask(1), tell(1, "skip", calls=3, bad=True, unusable=3))
    assert ledger.total() == Spent(*NOTHING)._replace(calls=6, bad=5)
    assert ledger.unusable == {1: None}
    for event in (undo(1), again(1)):
        ledger.take(entry(ledger.seq + 1, *event[:4], **event[4]))
    assert (ledger.unusable, ledger.open) == ({}, {1: None})
    ledger.take(entry(ledger.seq + 1, "tell", 1, "skip", calls=1))  # as the judge wishes
    assert (ledger.unusable, ledger.failed, ledger.open) == ({}, {}, {})


def test_undo_opens_a_question_even_if_the_program_ends_then():
    ledger = fold(ask(0, "me"), tell(0, "left", "me"), ask(1, "me"), undo(0))
    assert ledger.open == {1: "me", 0: "me"}
    assert ledger.total()[:2] == (2, 1)


def test_only_the_first_answer_to_a_duel_counts_for_sides():
    ledger = fold(ask(0), tell(0, "left"), undo(0), again(0), tell(0, "right"), ask(1), tell(1, "left"))
    assert [one[:3] for one in ledger.positions()] == [(None, 2, 0)]
    # In both orders, what was said to the first one: the coin decided that.
    ledger = fold(ask(0, calls=2), tell(0, "tie", calls=2, first="right"), ask(1, calls=2), tell(1, "tie", calls=2))
    assert [one[:3] for one in ledger.positions()] == [(None, 0, 1)]


def test_second_opinions_are_for_agreement_only():
    ledger = fold(
        ask(0, "gpt"),
        tell(0, "left", "gpt", cost=1.0),
        again(0, "claude"),
        repeat(0, "left", "claude", cost=2.0),
        ask(10, "claude"),
        tell(10, "right", "claude"),
        again(10, "gpt"),
        repeat(10, "tie", "gpt"),
    )
    assert ledger.total() == Spent(*NOTHING)._replace(calls=4, cost=3.0, second_opinions=2)
    (found,) = ledger.agreements()
    assert (found.first, found.second, found.questions, found.raw) == ("gpt", "claude", 2, 0.5)
    assert {one.judge: one.left + one.right for one in ledger.positions()} == {"gpt": 1, "claude": 1}
    assert ledger.open == {}


def test_a_second_opinion_in_flight_does_not_open_a_duel():
    ledger = fold(ask(0, "gpt"), tell(0, "left", "gpt"), again(0, "claude"))
    assert ledger.open == {}
    assert ledger.total()[:2] == (2, 1)


def test_repeats_are_for_repeatability_only():
    """Judge gpt repeats its answer once, at the second attempt, contradicts itself once, and once says nothing."""
    first = ((ask(n, "gpt"), tell(n, "left", "gpt", cost=1.0)) for n in range(3))
    ledger = fold(
        *itertools.chain.from_iterable(first),
        again(0, "gpt", repeats="left"),
        repeat(0, "left", "gpt", calls=2, cost=2.0, repeats="left"),
        again(1, "gpt", repeats="left"),
        repeat(1, "tie", "gpt", cost=1.0, repeats="left", contradicts=True),
        again(2, "gpt", repeats="left"),
        repeat(2, "skip", "gpt", calls=3, repeats="left", bad=True, unusable=3),
        ask(3, "claude"),
        tell(3, "right", "claude"),
        again(3, "claude", repeats="right"),
    )
    # 3 questions; repeats with 2, 1 and 3 calls; then another question, and a repeat that is not stored yet.
    assert ledger.total() == Spent(11, 1, 6.0, bad=3, failed=0, repeats=7, second_opinions=0, identical=0)
    assert ledger.repeatability() == [Repeatability("gpt", repeats=2, same=1)]
    assert ledger.contradictions == 1
    assert ledger.repeated == {0, 1}
    assert ledger.agreements() == []
    assert {one.judge: one.left + one.right for one in ledger.positions()} == {"gpt": 3, "claude": 1}
    assert (ledger.open, ledger.unusable) == ({}, {})


def test_a_repeat_is_of_the_first_reply():
    """In both orders that to the first one; after an alarm the one from before it; after an undo the new one."""
    ledger = fold(ask(0, calls=2), tell(0, "tie", calls=2, first="right"), *lefts(1, start=1), undo(1))
    ledger.take(entry(9, "tell", 1, "tie", calls=1, replies=["left", "left"]))
    assert ledger.replies == {0: (None, "right"), 1: (None, "left")}
    for event in (undo(0), tell(0, "left")):
        ledger.take(entry(ledger.seq + 1, *event[:4], **event[4]))
    assert ledger.replies[0] == (None, "left")


def test_questions_about_identical_outputs_take_no_call():
    ledger = fold(ask(0, "gpt", calls=0), tell(0, "tie", "gpt", calls=0, identical=True), ask(1, "gpt"))
    assert ledger.total() == Spent(*NOTHING)._replace(calls=1, unstored=1, identical=1)
    assert (ledger.open, ledger.replies, ledger.positions()) == ({1: "gpt"}, {}, [])
    assert ledger.fingerprints == {}


def test_people_who_vote_meanwhile_are_not_calls():
    ledger = fold(("ask", 0, None, "Ann", {}), ("tell", 0, "left", "Ann", {}), ("import", None, None, None, {}))
    assert ledger.total() == Spent(*NOTHING)
    ledger = fold(ask(0), ("tell", 0, "left", "Ann", {}), repeat(0, "right"))  # Ann was faster
    assert ledger.open == {}
    assert ledger.total()[:2] == (1, 0)


def test_asked_items_by_judge_and_pair():
    ledger = fold(ask(0, "gpt", item=3), ask(1, "gpt", item=4), ask(2, "claude", item=3))
    pair = frozenset("ab")
    assert ledger.asked == {("gpt", pair): {3, 4}, ("claude", pair): {3}}


def test_the_alarm_is_raised_by_the_17th_of_the_same_side():
    ledger = fold(*itertools.chain.from_iterable((ask(n), tell(n, "left")) for n in range(16)))
    assert not ledger.positions()[0].biased
    assert ledger.is_first(16)
    assert not ledger.is_first(3)
    ledger.take(entry(99, "tell", 16, "left", calls=1))
    assert ledger.positions()[0].biased


@pytest.mark.parametrize("orders", ["one", "both"])
def test_calls_are_what_the_judge_saw(url, orders, monkeypatch):
    """A judge that fails at every seventh call and answers nonsense at every fifth, counted by itself."""
    seen = itertools.count(1)
    last = 0

    def judge(prompt, left, right):
        nonlocal last
        last = next(seen)
        if last % 7 == 0:
            raise RuntimeError("busy")
        return "what?" if last % 5 == 0 else Answer("left" if left < right else "right", cost=0.5)

    monkeypatch.setattr("duels.judges.retries.FIRST", 0.0)
    outputs = {arm: [f"{arm}{n}" for n in range(30)] for arm in "abcd"}
    prompts = [f"p{n}" for n in range(30)]
    options = {"prompts": prompts, "storage": url, "orders": orders, "concurrency": 1}
    result = duels.find_best(outputs, judge, max_calls=60, **options)
    assert result.calls == last
    assert result.spent.unstored == 0
    answered = sum(1 for n in range(1, last + 1) if n % 7 and n % 5)
    assert result.cost == pytest.approx(0.5 * answered)
    assert result.spent.bad == sum(1 for n in range(1, last + 1) if n % 7 and not n % 5)


def lefts(count, voter=None, start=0):
    return itertools.chain.from_iterable((ask(n, voter), tell(n, "left", voter)) for n in range(start, start + count))


def confirm(duel, voter=None):
    return "again", duel, None, voter, {"calls": 1, "confirms": "left"}


def test_what_is_to_be_confirmed_after_an_alarm():
    assert fold(*lefts(16)).find_unconfirmed() == {}
    # Ties, skips and what both orders gave need nothing; nor does another judge.
    others = [
        ask(20),
        tell(20, "tie"),
        ask(21),
        tell(21, "skip"),
        ask(22, calls=2),
        tell(22, "left", calls=2, first="left"),
    ]
    ledger = fold(*lefts(17), *others, ask(30, "gpt"), tell(30, "left", "gpt"))
    assert ledger.find_unconfirmed() == dict.fromkeys(range(17))
    # 17 + 1 + 1 + 2 + 1 calls. What is being asked comes last, and is lost if the program ends now.
    for event in (confirm(0), confirm(1), confirm(2)):
        ledger.take(entry(ledger.seq + 1, *event[:4], **event[4]))
    assert list(ledger.find_unconfirmed()) == [*range(3, 17), 0, 1, 2]
    assert (ledger.confirming, ledger.total()[:2]) == ({0, 1, 2}, (25, 3))
    # They agree about 0, after two retries, and disagree about 1; 2 is taken back.
    agree = repeat(0, "left", calls=3, cost=1.0, replies=["left", "right"])
    tie = tell(1, "tie", cost=1.0, replies=["left", "left"])
    for event in (agree, undo(1), tie, undo(2)):
        ledger.take(entry(ledger.seq + 1, *event[:4], **event[4]))
    assert ledger.find_unconfirmed() == dict.fromkeys(range(3, 17))
    assert (ledger.confirming, ledger.open) == (set(), {2: None})
    assert ledger.total() == Spent(*NOTHING)._replace(calls=27, unstored=1, cost=2.0)
    assert ledger.positions()[0][:3] == (None, 18, 0)  # the other order has no coin of its own


def test_a_reply_that_came_too_late_confirms_nothing():
    """Another program was faster, or the answer was taken back and given again: its note has no `replies`."""
    ledger = fold(*lefts(17), confirm(0), undo(0), again(0), tell(0, "left"), repeat(0, "left"))
    assert set(ledger.find_unconfirmed()) == set(range(17))
    assert ledger.total()[:2] == (19, 0)


def test_without_undos_the_figures_are_the_same():
    """The server reads the events of calls only."""
    events = [*lefts(17), confirm(0), undo(0), tell(0, "tie", replies=["left", "left"])]
    calls = [event for event in events if "calls" in event[4]]
    assert fold(*events).total() == fold(*calls).total()
    assert fold(*events).find_unconfirmed() == fold(*calls).find_unconfirmed()
