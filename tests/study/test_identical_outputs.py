"""Questions about identical outputs are ties that no judge is asked about."""

import threading
from collections import Counter
from functools import partial

import pytest

import duels
from duels.judges.questions import as_judge
from duels.storage.storage import Storage, Write
from duels.study import add_items
from duels.study.judging.ledger import Limits
from duels.study.judging.run import TOGETHER, Run

ARMS = ("a", "bb", "ccc")
N = 24


class Judge:
    """Prefers the shorter output, and refuses identical ones."""

    def __init__(self, answer=None):
        self.answer, self.asked, self.lock = answer, Counter(), threading.Lock()

    def __call__(self, prompt, left, right):
        assert left != right
        with self.lock:
            self.asked[prompt, left, right] += 1
        return self.answer or ("left" if len(left) < len(right) else "right")


def outputs_of(same, arms=ARMS, prompts=N):
    """Outputs that are identical for the first prompts."""
    return {arm: [f"same {n}" if n < same else f"{arm} {n:02}" for n in range(prompts)] for arm in arms}


def best(judge, same, storage=None, prompts=N, arms=ARMS, **options):
    given = {
        "prompts": [f"p{n}" for n in range(prompts)],
        "about": "these-answers",
        "study_name": "s",
        "storage": storage or Storage("sqlite://"),
    }
    return duels.find_best(outputs_of(same, arms, prompts), judge, **given | options)


def ties_of(result):
    return [entry for entry in result.study.events() if entry.note.get("identical")]


def check(result, same, *judges):
    """Every identical pair that was asked about is a tie without a call; the judges saw all others."""
    asked = {entry.duel: entry.note for entry in result.study.events() if entry.kind == "ask"}
    identical = [duel for duel, note in asked.items() if note["item"] <= same]
    ties = ties_of(result)
    assert [entry.duel for entry in ties] == identical
    for entry in ties:
        assert (entry.kind, entry.answer, entry.note) == ("tell", "tie", {"calls": 0, "identical": True})
        assert asked[entry.duel]["calls"] == 0
    assert result.spent.identical == len(ties)
    assert result.calls == sum(judge.asked.total() for judge in judges)
    assert result.spent.unstored == 0
    assert not any(entry.duel in identical for entry in result.study.events() if entry.kind in ("again", "repeat"))
    assert result.study.check() == len(result.study.events())


@pytest.mark.parametrize("orders", ["one", "both", "auto"])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_they_take_no_call(orders, concurrency):
    judge = Judge()
    result = best(judge, 8, orders=orders, concurrency=concurrency)
    check(result, 8, judge)
    assert result.winner == "a"
    count = result.spent.identical
    assert count > 0
    assert f"\n{count} questions about identical outputs were ties without a call.\n" in str(result)
    assert result.positions[0].left + result.positions[0].right == result.verdict.duels - count


def test_if_all_are_identical_it_ends_at_once():
    """Without a call, whatever the limit; more questions than fit into one transaction."""
    judge = Judge()
    for arms, prompts in ((ARMS[:2], 5), ("abcd", TOGETHER)):
        result = best(judge, prompts, prompts=prompts, arms=arms, max_calls=1)
        check(result, prompts, judge)
        assert (result.ended, result.calls, result.verdict.kind) == ("verdict", 0, "practically tied")
    assert result.spent.identical > 2 * TOGETHER
    assert str(result).endswith(
        "\n0 calls. All pairs on all items take 600 calls: 100 % saved.\n"
        f"{result.spent.identical} questions about identical outputs were ties without a call."
    )
    assert result.repeatability == []


def test_with_several_judges():
    judges = {"x": Judge(), "y": Judge()}
    result = best(judges, 12, concurrency=3)
    check(result, 12, *judges.values())
    assert {entry.voter for entry in ties_of(result)} <= {"x", "y"}


def test_limits_count_calls_only():
    storage, judge = Storage("sqlite://"), Judge("tie")
    for limit in range(1, 20):
        result = best(judge, 12, storage, max_calls=limit, concurrency=2)
        assert (result.ended, result.calls, judge.asked.total()) == ("max_calls", limit, limit)
        check(result, 12, judge)


def test_after_a_kill_nothing_is_missing():
    storage, judge = Storage("sqlite://"), Judge()
    study = best(judge, 12, storage, max_calls=3).study
    killed = Run(study, {None: as_judge(judge)}, Limits(None, None), "one", print, threading.Event())
    killed.start()
    lost = killed.next([None] * 4)
    result = best(judge, 12, storage)
    assert (result.winner, result.spent.unstored, len(lost)) == ("a", 4, 4)
    assert result.calls == judge.asked.total() + 4
    assert len(ties_of(result)) == result.spent.identical > 0


def test_a_question_that_was_open_is_a_tie_too():
    """As an older version has left it: its call was begun, and lost."""
    study = duels.create_study(["a", "b"], "s", Storage("sqlite://"), about="these-answers")
    add_items(study, [{"prompt": "p", "outputs": {"a": "same", "b": "same"}}])
    ask = partial(study._log.ask, allow_self=False, about=lambda connection, duel: {"calls": 1})
    study._log.storage.write(Write(ask, study._log.id))
    judge = Judge()
    result = study.run(judge)
    assert (result.verdict.kind, result.spent.identical, judge.asked.total()) == ("practically tied", 1, 0)
    assert (result.spent.calls, result.spent.unstored, study.open_duels()) == (1, 1, [])
    assert "\n1 question about identical outputs was a tie without a call." in str(result)
    study.check()


def test_another_kind_of_the_same_text_is_asked_about():
    study = duels.create_study(["a", "b"], "s", Storage("sqlite://"), about="these-answers")
    add_items(study, [{"prompt": "p", "outputs": {"a": "same", "b": {"kind": "markdown", "content": "same"}}}])
    asked = []
    result = study.run(lambda prompt, left, right: (asked.append(prompt), "tie")[1])
    assert (result.calls, result.spent.identical, asked) == (1, 0, ["p"])


def test_names_are_not_outputs():
    """In a study without items, arms are compared by their names, which differ."""
    assert duels.find_best(["a", "bb"], lambda a, b: min(a, b, key=len), storage="sqlite://").spent.identical == 0
