"""Verdicts that were shown, and what is said when a study is open again."""

import json
import re

import pytest

import duels
from duels.server.app import create_app
from duels.server.results_tab import Basis, Given, last_given, note_given
from duels.storage.storage import open_storage


@pytest.fixture
def storage(tmp_path):
    return open_storage(f"sqlite:///{tmp_path}/d.db")


def won_by(study, best, count, voter="person {}"):
    """Let somebody new answer each of so many questions: the best arm wins, of the others the first in the alphabet."""
    for k in range(count):
        answer(study, voter.format(k), best)


def answer(study, voter, best, wins=True):
    duel = study.ask(voter=voter, allow_self=False)
    first = best if best in (duel.left, duel.right) else min(duel.left, duel.right)
    study.tell(duel, "left" if (duel.left == first) == wins else "right", voter=voter)


def texts(study):
    """The verdict's kind and what the page says, from a server that has just been started."""
    verdict = create_app(study._log.storage).service.glance(study)["verdict"]
    return verdict["kind"], verdict["words"]


@pytest.fixture
def known(storage, now):
    study = duels.create_study(["a", "b"], "back", storage)
    won_by(study, "a", 13)
    assert texts(study)[0] == "winner"
    assert last_given(study)[:3] == ("winner", "a", 13)
    return study


def test_answers_never_take_a_winner_back(known):
    won_by(known, "b", 30, voter="later {}")
    kind, words = texts(known)
    assert (kind, "open again" in words) == ("winner", False)
    assert last_given(known)[:3] == ("winner", "a", 13)  # the same as before


def test_answers_taken_back_are_why_a_study_is_open_again(known):
    for k in range(3):
        known.withdraw(f"person {k}")
    kind, words = texts(known)
    assert kind == "not yet"
    assert words.endswith(
        "Nothing is promised about errors: 3 answers were taken back. After 13 answers a was the winner. "
        "Since then answers were taken back: it is open again."
    )
    assert not re.search("Answers since then|by chance now and then|the promise covers", words)
    won_by(known, "a", 5, voter="later {}")
    assert texts(known)[0] == "winner"
    assert last_given(known)[:3] == ("winner", "a", 13)


def test_a_voter_who_undoes_an_answer_voids_nothing(known):
    service = create_app(known._log.storage).service
    known.undo(12, blind=True)
    verdict = service.glance(known)["verdict"]
    assert verdict["kind"] == "not yet"
    assert verdict["words"].endswith("a was the winner. Since then answers were taken back: it is open again.")
    assert "Nothing is promised" not in verdict["words"]


def test_a_new_arm_is_named(known):
    known.add_arm("c")
    kind, words = texts(known)
    assert kind == "not yet"
    assert words.endswith("After 13 answers a was the winner. Since then c was added: it is open again.")


def test_a_retired_winner_is_named(storage, now):
    study = duels.create_study(["a", "b", "c"], "three", storage)
    won_by(study, "a", 60)
    assert texts(study)[0] == "winner"
    study.retire_arm("a")
    kind, words = texts(study)
    assert kind == "not yet"
    assert words.endswith("Since then a was retired: it is open again.")


def test_people_who_come_back_are_a_reason(storage, now):
    study = duels.create_study(list("abcdef"), "six", storage)
    answers = 0
    while study.verdict().kind == "not yet":
        answer(study, f"person {answers}", "a", wins=answers % 4 != 3)
        answers += 1
    assert texts(study)[0] == "winner"
    answer(study, "person 0", "a")
    kind, words = texts(study)
    assert kind == "not yet"
    assert words.endswith(
        f"After {answers} answers a was the winner. Since then people came back, so that more evidence is needed: "
        "it is open again."
    )


def test_a_smaller_margin_is_a_reason(storage, now):
    study = duels.create_study(["a", "b"], "close", storage, margin=0.2)
    for k in range(120):
        study.tell(study.ask(allow_self=False), "left" if k % 2 else "tie")
    assert texts(study)[0] == "practically tied"
    study.set_margin(0.0)
    kind, words = texts(study)
    assert kind == "not yet"
    assert re.search(r"[ab] was as good as any\. Since then the margin was changed: it is open again\.$", words)


def test_what_changed_is_listed():
    then = Basis(0, ("a", "b"), ((1, 4),), "these-items", "independent answers", 0, 0.0)
    assert then.changes(then) == []
    changed = Basis(1, ("b", "c", "d"), ((2, 6),), "new-items", "comparisons made", 7, 0.1)
    assert then.changes(changed) == [
        "answers were taken back",
        "c and d were added",
        "a was retired",
        "prompts were removed",
        "prompts were added",
        "the margin was changed",
        "past votes were imported",
        "the judge contradicted itself",
    ]
    assert then.changes(then._replace(strength="these people")) == ["people came back, so that more evidence is needed"]
    assert then.changes(then._replace(strength="comparisons made")) == []  # the prompts that were added are listed


def test_other_verdicts_may_lapse_by_chance():
    none = Given("no condorcet winner", None, 50)
    chance = "It is open again. This happens by chance now and then; the promise covers it."
    assert none.words(Basis()) == f"After 50 answers there was no winner. {chance}"
    assert none.words(Basis(), void=True) == "After 50 answers there was no winner. It is open again."
    returned = Basis(strength="these people")  # its winner rests on all comparisons made, and may lapse
    assert Given("winner", "a", 30, returned).words(returned) == f"After 30 answers a was the winner. {chance}"
    assert Given("winner", "a", 1200).words(Basis()) == "After 1,200 answers a was the winner. It is open again."


def test_only_a_different_verdict_is_noted(tmp_path):
    study = duels.create_study(["a", "b"], "notes", f"sqlite:///{tmp_path}/d.db")
    assert last_given(study) is None
    basis = Basis(2, ("a", "b"), ((1, 3), (5, 9)), "these-items", "these people", 4, 0.02)
    first, later = Given("winner", "a", 10, basis), Given("winner", "a", 12)
    assert note_given(study, first) == first
    assert note_given(study, later) == first
    assert last_given(study) == first
    assert json.loads(json.dumps(first)) == [*first[:3], json.loads(json.dumps(basis))]
    other = Given("no condorcet winner", None, 50)
    assert note_given(study, other) == other == last_given(study)
