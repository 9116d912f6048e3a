"""Searching items, in both kinds of databases; pages, orders and tags."""

import pytest

import duels
from duels.errors import NotFound
from duels.study.answers.item_results import (
    browse,
    count_missing_outputs,
    count_removed_items,
    find_items,
    get_item,
    items_with,
    neighbors,
    rows_of,
    tags_by_item,
    was_removed,
)
from duels.study.answers.table import AnswerLog
from duels.study.items import Item, Output, add_items, clear_items, list_items, remove_item

PROMPTS = [
    "100% sure?",
    "100 percent",
    "under_score",
    "under score",
    "Straße",
    "STRASSE",
    "ÄPFEL",
    "äpfel",
    "a\\b",
    "a'b",
]


def item(prompt, *tags):
    return Item(prompt, {"x": Output("text", "1"), "y": Output("code", "2")}, tags)


@pytest.fixture(params=["sqlite", "memory", "postgresql"])
def study(request, url):
    url = {"sqlite": url, "memory": "sqlite://"}.get(request.param) or request.getfixturevalue("postgres")
    return duels.create_study(["x", "y"], "browsed", url)


def test_a_search_finds_parts_of_prompts(study):
    add_items(study, [item(prompt) for prompt in PROMPTS])

    def found(search):
        return [PROMPTS[number - 1] for number in find_items(study, search)]

    assert found("") == PROMPTS
    assert found("100%") == ["100% sure?"]  # nothing stands for anything else
    assert found("_") == ["under_score"]
    assert found("UNDER") == ["under_score", "under score"]
    assert found("strasse") == ["STRASSE"]
    assert found("STRAß") == ["Straße"]
    assert found("äpFEL") == ["äpfel"]  # a to z in either case, other letters as they are
    assert found("Ä") == ["ÄPFEL"]
    assert found("\\") == ["a\\b"]
    assert found("a'B") == ["a'b"]
    assert found("nothing") == []


def test_a_tag_is_found_exactly(study):
    tags = [
        ("math",),
        ("Math", "hard"),
        ("maths", 'say "math"'),
        ("a, b",),
        ("a", "b"),
        ("a\\",),
        ("100%",),
        ("ä",),
        ('say "math',),
        (),
    ]
    add_items(study, [item(f"prompt {k}", *some) for k, some in enumerate(tags)])
    for tag in {tag for some in tags for tag in some} | {"mat", "%", "", "a_", '"', ", ", "hard"}:
        assert find_items(study, tag=tag) == [k for k, some in enumerate(tags, 1) if tag in some], tag
    assert find_items(study, "PROMPT 4", "b") == [5]
    assert tags_by_item(study) == {k: some for k, some in enumerate(tags, 1) if some}
    assert [one.tags for _, one in list_items(study)] == tags
    assert [one.tags for _, one in items_with(study, [5, 2, 99])] == [tags[1], tags[4]]


def vote(study, answers):
    """Answers by item: each is given about that item, whatever the study asks."""
    while any(answers.values()):
        duel = study.ask(allow_self=False)
        if left := answers.get(duel.item.number):  # others stay open: what is skipped is asked again first
            study.tell(duel, left.pop(0))


def test_pages_in_every_order(study):
    add_items(study, [item(f"prompt {k}", "even" if k % 2 else "odd") for k in range(7)])
    vote(study, {2: ["x", "y", "x", "y"], 3: ["x", "x", "x"], 5: ["x", "y"], 6: ["tie"]})
    table = AnswerLog().follow(study)

    def numbers(**asked):
        found = browse(study, table, **asked)
        return [row.number for row in found.items], found.total, found.page, found.pages

    assert numbers() == ([1, 2, 3, 4, 5, 6, 7], 7, 1, 1)
    assert numbers(limit=3, page=2) == ([4, 5, 6], 7, 2, 3)
    assert numbers(limit=3, page=99) == ([7], 7, 3, 3)
    assert numbers(order="answers") == ([2, 3, 5, 6, 1, 4, 7], 7, 1, 1)
    assert numbers(order="disagreement") == ([2, 5, 3, 1, 4, 6, 7], 7, 1, 1)
    assert numbers(order="answers", tag="odd") == ([3, 5, 1, 7], 4, 1, 1)
    assert numbers(search="PROMPT 4", order="disagreement") == ([5], 1, 1, 1)
    assert numbers(search="none", order="answers") == ([], 0, 1, 1)
    rows = {row.number: row for row in browse(study, table).items}
    assert rows[2][2:] == (("even",), 4, None, True, 4 / 6, 4, 6, 0)  # of 6 pairs, 2 · 2 contradict
    assert rows[3][2:] == (("odd",), 3, "x", False, 0.0, 0, 3, 0)
    assert rows[6][3:] == (1, None, True, None, 0, 0, 0)
    assert rows[1][3:] == (0, None, False, None, 0, 0, 0)


def test_without_answers_every_order_is_by_number(study):
    add_items(study, [item("a"), item("b")])
    table = AnswerLog().follow(study)
    for order in ("number", "answers", "disagreement", "comments"):
        assert [row.number for row in browse(study, table, order=order).items] == [1, 2]


def test_comments_are_counted_by_item(study):
    add_items(study, [item("a"), item("b"), item("c")])
    wanted = {1: 0, 2: 2, 3: 1}
    left = dict(wanted)
    taken_back = False
    while any(left.values()):
        duel = study.ask(allow_self=False)
        note = "why" if left[duel.item.number] else None
        study.tell(duel, "x", note=note)
        if note and not taken_back:
            study.undo(duel)  # its comment does not count
            taken_back = True
        elif note:
            left[duel.item.number] -= 1
    table = AnswerLog().follow(study)
    found = browse(study, table, order="comments").items
    assert [(row.number, row.comment_count) for row in found] == [(2, 2), (3, 1), (1, 0)]
    assert rows_of(study, table, [3])[0].comment_count == 1


def test_answers_about_items_that_are_gone(study):
    add_items(study, [item("a"), item("b"), item("c"), item("d")])
    vote(study, {1: ["x"], 2: ["x", "y"], 3: ["tie"] * 3})
    table = AnswerLog().follow(study)
    assert count_removed_items(study, table) == (0, 0)
    for number in (2, 3, 4):
        remove_item(study, number)
    assert count_removed_items(study, table) == (2, 5)  # the fourth has no answers
    assert [number for number in range(7) if was_removed(study, number)] == [2, 3, 4]
    clear_items(study)
    assert count_removed_items(study, table) == (3, 6)
    assert [number for number in range(7) if was_removed(study, number)] == [1, 2, 3, 4]


def test_outputs_that_are_missing(study):
    assert count_missing_outputs(study) == {}
    study.add_arm("z")
    study.add_arm("gone")
    study.retire_arm("gone")
    add_items(study, [item("a"), {"prompt": "b", "outputs": {"x": "1", "z": "2"}}, item("c")])
    assert count_missing_outputs(study) == {"y": 1, "z": 2}


def test_one_item_and_its_neighbors(study):
    add_items(study, [item("x" * 1000), item("b"), item("c")])
    remove_item(study, 2)
    assert neighbors(study, 1) == (None, 3)
    assert neighbors(study, 2) == (1, 3)
    assert neighbors(study, 3) == (1, None)
    assert get_item(study, 1) == item("x" * 1000)
    assert rows_of(study, AnswerLog().follow(study), [3, 2, 1])[1].prompt == "x" * 400
    with pytest.raises(NotFound, match="has no item 2: it may have been removed"):
        get_item(study, 2)
