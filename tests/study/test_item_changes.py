"""Removing and replacing single items: what stays, what is refused, and that no number is used twice."""

import threading

import pytest

import duels
from duels.errors import Conflict, InvalidInput, NotFound
from duels.study import items
from duels.study.answers.table import AnswerLog
from duels.study.items import (
    Item,
    Output,
    add_items,
    clear_items,
    count_items,
    item_of,
    list_items,
    remove_item,
    replace_item,
)


def item(prompt, *tags):
    return Item(prompt, {"x": Output("text", "1"), "y": Output("text", "2")}, tags)


@pytest.fixture(params=["sqlite", "postgresql"])
def study(request, url):
    url = url if request.param == "sqlite" else request.getfixturevalue("postgres")
    found = duels.create_study(["x", "y"], "changed", url)
    add_items(found, [item("a"), item("b"), item("c")])
    return found


def numbers(study):
    return [number for number, _ in list_items(study)]


def answered(study):
    return sorted(AnswerLog().follow(study).item.tolist())


def ask_about(study, number):
    """A question about an item; others stay open."""
    while True:
        duel = study.ask(allow_self=False)
        if duel.item.number == number:
            return duel


def test_answers_stay_when_their_item_goes(study):
    study.tell(ask_about(study, 2), "x")
    remove_item(study, 2)
    assert numbers(study) == [1, 3]
    assert answered(study) == [2]
    assert (study._log.history().total, study.verdict().duels) == (1, 1)
    study.check()
    asked = {study.ask(allow_self=False).item.number for _ in range(30)}
    assert asked == {1, 3}
    with pytest.raises(NotFound, match="study 'changed' has no item 2: it may have been removed"):
        remove_item(study, 2)
    for wrong in (0, -1, 2**31, "1", True):
        with pytest.raises(InvalidInput, match="number"):
            remove_item(study, wrong)


def test_a_number_is_never_used_again(study):
    remove_item(study, 3)
    assert add_items(study, [item("d")]) == (1, 0)
    assert numbers(study) == [1, 2, 4]
    for number in (1, 2, 4):
        remove_item(study, number)
    assert count_items(study) == 0
    add_items(study, [item("e")])
    assert numbers(study) == [5]
    study.ask()
    clear_items(study)
    add_items(study, [item("f")])
    assert numbers(study) == [6]


def shown(study):
    return {entry.note["item"] for entry in study.events() if "item" in entry.note}


def test_an_item_that_nobody_saw_keeps_its_number(study):
    add_items(study, [item(str(k)) for k in range(20)])
    study.tell(study.ask(), "x")
    unseen = max(set(numbers(study)) - shown(study))
    assert replace_item(study, unseen, {"prompt": "new", "outputs": {"x": "7", "y": "8"}, "tags": ["t"]}) == unseen
    assert item_of(study, unseen) == Item("new", {"x": Output("text", "7"), "y": Output("text", "8")}, ("t",))
    assert numbers(study) == list(range(1, 24))


def test_the_replacement_of_an_item_that_was_shown_has_its_own_number(study):
    ask_about(study, 2)  # it is enough that somebody looks at it
    assert replace_item(study, 2, item("b, but better")) == 4
    assert numbers(study) == [1, 3, 4]
    assert item_of(study, 4).prompt == "b, but better"
    ask_about(study, 4)
    assert replace_item(study, 4, b"prompt,x,y\nfrom a file,1,2\n") == 5
    study.check()


def test_new_tags_keep_the_number_and_the_answers(study):
    study.tell(ask_about(study, 2), "x")
    assert replace_item(study, 2, item("b", "math", "hard")) == 2
    assert item_of(study, 2) == item("b", "math", "hard")
    assert replace_item(study, 2, b"prompt,x,y\nb,1,2\n") == 2
    assert item_of(study, 2) == item("b")
    assert (numbers(study), answered(study)) == ([1, 2, 3], [2])
    kinds = Item("B", {"x": Output("text", "1"), "y": Output("code", "2")})
    words = Item("B", {"x": Output("text", "9"), "y": Output("code", "2")})
    more = Item("B", words.outputs | {"z": Output("text", "3")})
    number = 2
    for other in (item("B"), kinds, words):  # voters would see something else
        ask_about(study, number)
        new = replace_item(study, number, other)
        assert new == max(4, number + 1)
        number = new
    ask_about(study, number)
    study.add_arm("z")
    assert replace_item(study, number, more) == number  # what voters saw of it is as it was
    assert item_of(study, number) == more
    fewer = Item("B", {arm: more.outputs[arm] for arm in "xz"})
    assert replace_item(study, number, fewer) == number + 1
    study.check()


def test_a_question_that_is_asked_meanwhile_is_noticed(study, monkeypatch):
    shown_before = items._shown

    def shown_and_asked(*given):
        found = shown_before(*given)
        ask_about(study, 2)
        return found

    monkeypatch.setattr(items, "_shown", shown_and_asked)
    assert replace_item(study, 2, item("b, but better")) == 4


def test_numbers_that_begin_alike_are_not_confused(study):
    add_items(study, [item(str(k)) for k in range(20)])
    ask_about(study, 12)
    seen = shown(study)
    for number in (1, 2, 12):
        assert (replace_item(study, number, item("new")) == number) == (number not in seen)


def test_bad_replacements_change_nothing(study):
    ask_about(study, 2)
    before = list_items(study)
    with pytest.raises(InvalidInput, match="found 2 items, expected one: it replaces item 2"):
        replace_item(study, 2, [item("a"), item("b")])
    with pytest.raises(InvalidInput, match="outputs of arms that study 'changed' does not have: z"):
        replace_item(study, 2, {"prompt": "a", "outputs": {"x": "1", "z": "2"}})
    with pytest.raises(InvalidInput, match="1 output, expected those of at least two arms"):
        replace_item(study, 2, {"prompt": "a", "outputs": {"x": "1"}})
    with pytest.raises(NotFound, match="has no item 9"):
        replace_item(study, 9, item("a"))
    assert list_items(study) == before
    add_items(study, [item("d")])
    assert numbers(study)[-1] == 4


def test_a_study_on_these_items_keeps_them_after_its_first_question(url):
    study = duels.create_study(["x", "y"], "these", url, about="these-answers")
    add_items(study, [item(str(k)) for k in range(4)])
    assert replace_item(study, 2, item("another")) == 2
    remove_item(study, 1)
    remove_item(study, 4)
    add_items(study, [item("e")])
    assert numbers(study) == [2, 3, 5]
    with pytest.raises(NotFound, match="has no item 4"):
        remove_item(study, 4)
    asked = study.ask(2)  # numbers need not be consecutive
    with pytest.raises(Conflict, match="cannot be removed: study 'these' counts the answers about exactly the 3 items"):
        remove_item(study, 3)
    with pytest.raises(Conflict, match="cannot be replaced: study 'these' counts the answers about exactly the 3 item"):
        replace_item(study, 3, item("z"))
    with pytest.raises(Conflict, match="cannot be added: study 'these' counts the answers about exactly the 3 items"):
        add_items(study, [item("z")])
    assert replace_item(study, 3, item_of(study, 3)._replace(tags=("late",))) == 3
    assert item_of(study, 3).tags == ("late",)
    for duel in [*asked, study.ask()]:
        study.tell(duel, "x")
    assert numbers(study) == [2, 3, 5]
    found = study.verdict()
    assert (found.winner, found.items, found.final, found.void) == ("x", 3, True, None)
    study.check()


def test_what_changes_after_the_first_question_is_in_the_log_and_in_the_verdict(study):
    """Items that are added make the answers those of the comparisons made; that some are removed voids the promise."""
    study.ask()
    add_items(study, [item("d")])
    assert (study.verdict().strength, study.verdict().void) == ("comparisons made", None)
    assert str(study.verdict()).startswith("On the comparisons made: no verdict yet")
    remove_item(study, 2)
    assert study.verdict().void == "prompts were removed"
    assert [entry.note["items"] for entry in study.events() if "items" in entry.note] == [
        [[1, 3]],
        [[1, 4]],
        [[1, 1], [3, 4]],
    ]
    again = duels.load_study("changed", study._log.storage)
    assert (again.verdict().strength, again.verdict().void) == ("comparisons made", "prompts were removed")
    study.check()


def test_many_remove_and_replace_at_once(study):
    add_items(study, [item(str(k)) for k in range(21)])
    errors = []

    def work(start):
        try:
            for number in range(start, start + 6):
                replace_item(study, number, item("r")) if number % 2 else remove_item(study, number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in (1, 7, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert numbers(study) == [1, 3, 5, 7, 9, 11, 13, 15, 17, *range(19, 25)]
