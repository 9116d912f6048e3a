"""Answers after the lease are kept and do not count; what people said does not choose what they are asked."""

import json
import random

import pytest

import duels
from duels.server.results_tab import glance
from duels.storage.storage import StudyRow
from duels.study.items import add_items
from duels.study.state.counts import next_event
from duels.study.state.item_schedule import ItemSet
from duels.study.state.live import LiveState
from duels.study.stats.goal import new_goal

LEASE = 60.0


def new_study(arms="ab", items=0, policy="random", seed=0, **more):
    study = duels.create_study([*arms], "late", "sqlite://", policy, lease=LEASE, seed=seed, **more)
    if items:
        add_items(study, [{"prompt": str(k), "outputs": dict.fromkeys(arms, "text")} for k in range(items)])
    return study


def ask(study, **more):
    return study.ask(allow_self=False, **more)


@pytest.mark.parametrize("items", [0, 5])
def test_an_answer_counts_until_the_lease_ends(items, now):
    study = new_study(items=items)
    for seconds, counted in ((0, 1), (LEASE - 0.001, 2), (LEASE, 2), (LEASE + 1000, 2)):
        duel = ask(study)
        now[0] += seconds
        study.tell(duel, "a")
        assert study.verdict().duels == study.tally().wins.sum() == len(study.votes()) == counted
        assert study._log.history().answers.duels.tolist() == list(range(counted))
    assert len([entry for entry in study.events() if entry.kind == "tell"]) == 4  # all of them are kept
    assert study.open_duels() == []
    assert glance(study)["answers"] == 2
    again = duels.load_study("late", study._log.storage)
    assert again.tally().wins.tolist() == study.tally().wins.tolist()
    study.check()


def test_undo_begins_the_lease_again(now):
    study = new_study()
    duel = ask(study)
    now[0] += LEASE + 1
    study.tell(duel, "a")
    assert study.verdict().duels == 0
    study.undo(duel)
    assert study.verdict().void is None  # nothing that counted was taken back
    now[0] += LEASE - 1
    study.tell(duel, "b")
    assert (study.verdict().duels, study.tally().wins[1, 0]) == (1, 1)
    study.check()


def test_a_winner_says_what_the_missing_questions_would_have_changed(now):
    study = new_study()
    for _ in range(20):
        study.tell(ask(study), "a")
    assert study.verdict().missing is None
    late = ask(study)
    skipped = ask(study)
    study.tell(skipped, "skip")
    unanswered = ask(study)
    now[0] += LEASE
    study.tell(late, "b")
    found = study.verdict()
    assert (found.winner, found.missing.skipped, found.missing.expired, found.missing.stands) == ("a", 1, 2, True)
    assert "3 questions have no answer that counts: the verdict would stand had all of them gone the other" in str(
        found
    )
    for _ in range(5):
        study.tell(ask(study), "skip")
    found = study.verdict()
    # 20 to 8 would be M = 4.3 of 26.7: had all eight gone to b.
    assert (found.winner, found.missing.skipped, found.missing.expired, found.missing.stands) == ("a", 6, 2, False)
    assert "the verdict would not stand" in str(found)
    study.tell(unanswered, "a")  # late too: it is shown, and does not count
    assert study.verdict().missing == found.missing
    study.undo(late)  # it is open, and counts as lost while its lease runs
    assert study.verdict().missing.expired == 1
    study.tell(late, "a")
    assert (study.verdict().missing.expired, study.verdict().duels) == (1, 21)
    study.check()


def test_on_items_what_a_late_answer_was_about_is_asked_again(now):
    study = new_study(items=1)
    first = ask(study, voter="ada")
    now[0] += LEASE
    study.tell(first, "a", voter="ada")
    assert (study.verdict().duels, study.verdict().answerers.people) == (0, 0)
    again = ask(study, voter="bob")
    assert study.events()[-1].note.get("place", 1) == study.events()[1].note.get("place", 1)
    study.tell(again, "b", voter="bob")
    assert (study.verdict().duels, study.tally().wins[1, 0]) == (1, 1)
    study.undo(first)  # ada's answer comes after bob's now
    study.tell(first, "a", voter="ada")
    assert (study.verdict().duels, study.tally().wins[1, 0]) == (1, 1)
    study.check()


def test_an_open_question_counts_as_lost_until_its_lease_ends(now):
    """13 wins in a row are enough, and 14 to 1 are not: so neither are 14 wins with an open question before them."""
    study = new_study()
    first = ask(study)
    for _ in range(14):
        study.tell(ask(study), "a")
    found = study.verdict()
    assert (found.kind, found.duels) == ("not yet", 14)
    now[0] += LEASE
    assert study.verdict().winner == "a"
    study.tell(first, "b")  # late
    assert study.verdict().winner == "a"
    assert study.tally().wins[1, 0] == 0
    # Asked later, it changes nothing: a was certain before.
    ask(study)
    ask(study)
    assert study.verdict().winner == "a"


def test_whose_answers_are_left_out():
    study = new_study("abc")
    history = study._log.history()
    assert not history.leaves_out(history.people.find("ada"))  # nobody has asked for her
    for voter in ("ada", "bob"):
        duel = ask(study, voter=voter)
        history = study._log.history()
        assert not history.leaves_out(history.people.find(voter))  # no answer is hers
        study.tell(duel, "left", voter=voter)
    history = study._log.history()
    ada, bob = map(history.people.find, ("ada", "bob"))
    assert (history.leaves_out(ada), history.leaves_out(bob), history.leaves_out(-1)) == (True, True, False)
    study.tell(ask(study, voter="ada"), "left", voter="ada")
    history = study._log.history()
    assert (history.leaves_out(ada), history.leaves_out(bob)) == (False, True)  # 2 of 3 are ada's
    study.tell(ask(study), "left")  # of nobody who is known: it does not count as somebody else's
    assert not study._log.history().leaves_out(ada)


def test_a_count_of_answers_leaves_nobody_out():
    study = new_study("abc", items=9, about="these-answers")
    for voter in ("ada", "bob", "ada", "bob"):
        study.tell(ask(study, voter=voter), "left", voter=voter)
    history = study._log.history()
    assert not any(history.leaves_out(history.people.find(voter)) for voter in ("ada", "bob"))


def answered(policy, items, given):
    """A history of 60 answers of three people about random pairs; ada always answers the same."""
    settings = {"goal": new_goal(ties="halves")._asdict()}
    history = LiveState(StudyRow(1, "study", 0.0, policy, None, 7, 600.0, settings), duels.policies.load_policy(policy))
    history.take(next_event(history, "create", 0.0, note=json.dumps({"arms": [*"abcd"]})))
    if items:
        history.items.fix(ItemSet(tuple(range(1, items + 1)), frozenset(range(4))))
    luck = random.Random(5)
    for number in range(60):
        voter, (left, right) = ("ada", "bob", "cem")[number % 3], luck.sample(range(4), 2)
        place = history.next_place(left, right, 0.0, history.people.find(voter))
        note = {"person": True} | ({} if place is None else {"place": place[0], "item": place[1]})
        shown = {"left_arm": left, "right_arm": right, "swapped": 0, "voter": voter, "note": json.dumps(note)}
        history.take(next_event(history, "ask", 0.0, duel=number, attempt=0, **shown))
        said = luck.choice(["left", "left", "right", "tie"])
        if voter == "ada":
            said = given if given in ("left", "right", "tie") else "left" if "abcd"[left] == given else "right"
        history.take(next_event(history, "tell", 0.0, duel=number, attempt=0, answer=said, voter=voter))
    history.catch_up()
    return history


@pytest.mark.parametrize("items", [0, 40])
@pytest.mark.parametrize("policy", ["verdict", "rucb", "self_sparring"])
def test_what_a_person_said_does_not_choose_what_that_person_is_asked(policy, items):
    """The next question of each voter, in studies that differ only in what one of them has answered."""
    asked = {"ada": set(), "bob": set(), None: set()}
    for given in ("left", "right", "tie", "a", "b", "d"):
        history = answered(policy, items, given)
        for voter, found in asked.items():
            person = history.people.find(voter)
            assert history.leaves_out(person) == (voter is not None)
            question = history.question(0.0, False, person)
            found.add((question, history.next_place(*question[:2], 0.0, person)))
    assert len(asked["ada"]) == 1
    assert len(asked["bob"]) > 1  # others are asked what her answers suggest
    assert len(asked[None]) > 1


def test_a_time_to_come_is_not_within_the_lease(now):
    """A clock was ahead and is right again: the item can be asked, and a later look at that time changes nothing."""
    items = [{"prompt": "p", "outputs": {"a": "x", "b": "y"}}]
    study = duels.create_study(["a", "b"], "late", "sqlite://", lease=LEASE, about="these-answers")
    add_items(study, items)
    right = now[0]
    now[0] += 8 * 366 * 24 * 3600
    study.ask()
    now[0] = right
    assert study._log.history().list_leased(right) == []
    again = study.ask()
    assert again.item.number == 1
    assert study._log.history().list_leased(right) == [1]
    for late in (right + 0.5 * LEASE, right + 10 * LEASE):
        known = LiveState(study._log.row)
        known.apply(study._log.storage.read_events(study._log.storage.connection(), study._log.id, 0))
        assert study._log.history().list_leased(late) == known.list_leased(late)
    ahead = right + 8 * 366 * 24 * 3600 - LEASE / 2
    assert study._log.history().list_leased(ahead) == known.list_leased(ahead) == [0]
    study.check()


def test_the_duels_of_a_person_are_known_whatever_happens():
    """Asked, answered, taken back, forgotten, imported, and from a snapshot."""
    study, luck = new_study("abc", seed=5), random.Random(5)
    for turn in range(120):
        history = study._log.history()
        voters = [f"v{luck.randrange(5)}" for _ in range(2)]
        action = luck.random()
        if action < 0.5 or not history.open:
            ask(study, voter=luck.choice([None, *voters]))
        elif action < 0.9:
            duel = luck.choice(list(history.open))
            study.tell(duel, luck.choice(["left", "right", "skip"]), voter=luck.choice([None, *voters]))
        elif action < 0.95 and history.answered:
            study.undo(luck.choice(list(history.answered)))
        elif action < 0.97 and history.people.given:
            study.import_votes([("a", "b", "left")])
        if turn == 80 and "v0" in history.people._numbers:
            study.forget("v0")
        restored = LiveState(study._log.row)
        if turn % 20 == 0:
            restored.restore(study._log.history().snapshot()())
            study._log.history()._theirs = None
        for known in (study._log.history(), restored) if turn % 20 == 0 else (study._log.history(),):
            for person in range(-1, 6):
                expected = [duel for duel, who in enumerate(known.person) if who == person >= 0]
                assert sorted(known.duels_of(person)) == expected
