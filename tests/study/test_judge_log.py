"""The calls of judges, from the events that are about them alone: the same as from the whole log."""

import random

import pytest

import duels
from duels.judges import Answer
from duels.storage.storage import Storage
from duels.study.judging import ledger as judge_log
from duels.study.judging.ledger import Ledger, activity_of, follow

ARMS = ["terse", "wordy", "chatty"]


@pytest.fixture
def study():
    return duels.create_study(ARMS, "prompts", Storage("sqlite://"))


def from_the_whole_log(study):
    ledger = Ledger()
    for entry in study.events():
        ledger.take(entry)
    return activity_of(ledger)


def judge(seed):
    luck = random.Random(seed)

    def answer(left, right):
        word = luck.choice(["left", "left", "left", "right", "tie", "skip", "nonsense"])
        return Answer(word, note='it says "calls": 7', cost=luck.random())

    return answer


def test_looks_at_any_time_give_what_the_whole_log_gives(study):
    luck, ledger = random.Random(1), Ledger()
    judges = {"gpt": judge(2), "claude": judge(3)}
    for calls in range(6, 80, 6):
        study.run(judges, max_calls=calls, concurrency=1)
        for duel in study.ask(luck.randrange(2, 5)):
            study.tell(duel, luck.choice(["left", "right"]), voter="ann", note='"calls": 3')
        if luck.random() < 0.5:
            ledger = follow(study, ledger)
            assert activity_of(ledger) == from_the_whole_log(study)
    found = activity_of(follow(study, ledger))
    assert found == from_the_whole_log(study) == activity_of(follow(study, Ledger()))
    assert found.calls >= 72
    assert {one.judge for one in found.positions} == {"gpt", "claude"}
    assert found.agreements
    assert found.bad


def test_only_what_is_new_and_about_calls_is_read(study, monkeypatch):
    read, rows = [], judge_log._rows
    monkeypatch.setattr(judge_log, "_rows", lambda *of: read.append(rows(*of)) or read[-1])
    for duel in study.ask(5):
        study.tell(duel, "left")
    ledger = follow(study, Ledger())
    assert (read, activity_of(ledger).calls) == ([[]], 0)
    follow(study, ledger)
    assert read == [[]], "nothing has happened"
    study.run(lambda left, right: "left", max_calls=3, concurrency=1)
    follow(study, ledger)
    assert [len(one) for one in read] == [0, 0, 6]  # no voter forgotten; three questions and answers
    assert activity_of(ledger).calls == 3


def test_the_name_of_a_forgotten_judge_is_forgotten(study):
    study.run({"gpt": judge(2), "claude": judge(3)}, max_calls=20, concurrency=1)
    ledger = follow(study, Ledger())
    study.forget("claude")
    found = activity_of(follow(study, ledger))
    assert {one.judge for one in found.positions} == {"gpt", None}
    assert found == from_the_whole_log(study)
