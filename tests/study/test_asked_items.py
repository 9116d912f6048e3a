"""Which item a question is about: sequences fixed by the seed, that no answer changes."""

import itertools
import random
from collections import Counter

import pytest

from duels.errors import Conflict, NothingToAsk
from duels.study.create import create_study, load_study
from duels.study.items import add_items, clear_items, remove_item, replace_item
from duels.study.state.item_schedule import ItemSchedule, ItemSet, draw_item, item_set_of
from duels.votes.items import Item, Output

ARMS = ["a", "b", "c"]


def item(number, arms=ARMS, more=""):
    return Item(f"prompt {number}", {arm: Output("text", f"{arm} {number}{more}") for arm in arms})


def new_study(url, count=6, about="these-items", **more):
    study = create_study(ARMS, "s", url, about=about, **more)
    add_items(study, [item(number) for number in range(1, count + 1)])
    return study


def places(study):
    """For each pair, the (place, item) of its questions in the order in which they were asked."""
    found = {}
    for entry in study.events():
        if entry.kind == "ask":
            number = entry.note["item"]
            found.setdefault(frozenset((entry.left, entry.right)), []).append((entry.note.get("place", number), number))
    return found


def test_draws_are_uniform_and_pairs_are_independent():
    """χ² with nine degrees of freedom exceeds 45.1, with 24 it exceeds 75, once in a million times."""
    items = tuple(range(1, 11))
    counts = Counter(draw_item(3, 0, 1, number, items) for number in range(5000))
    assert sum((counts[one] - 500) ** 2 / 500 for one in items) < 45.1
    five = items[:5]
    both = Counter((draw_item(seed, 0, 1, 0, five), draw_item(seed, 0, 2, 0, five)) for seed in range(5000))
    assert sum((both[pair] - 200) ** 2 / 200 for pair in itertools.product(five, five)) < 75
    after = Counter((draw_item(7, 0, 1, k, five), draw_item(7, 0, 1, k + 1, five)) for k in range(5000))
    assert sum((after[pair] - 200) ** 2 / 200 for pair in itertools.product(five, five)) < 75


def test_answers_do_not_change_which_item_comes_next(url):
    """Two studies with one seed and opposite answers: each pair goes through the same sequence."""
    found = []
    for name, answer in (("one", "left"), ("other", "right")):
        study = create_study(ARMS, name, url, seed=4, about="these-items")
        add_items(study, [item(number) for number in range(1, 7)])
        for _ in range(60):
            study.tell(study.ask(), answer)
        study.check()
        found.append(places(study))
    for pair, one in found[0].items():
        other = found[1][pair]
        shared = min(len(one), len(other))
        assert one[:shared] == other[:shared]
        assert [place for place, _ in one] == list(range(1, len(one) + 1))


def test_what_a_voter_passes_over_is_asked_of_others(url):
    study, luck = new_study(url, 3, seed=1), random.Random(2)
    voters = [f"v{k % 5}" for k in range(40)]
    seen = {}
    for voter in voters:
        duel = study.ask(voter=voter)
        key = voter, frozenset((duel.left, duel.right))
        assert duel.item.number not in seen.setdefault(key, set())
        seen[key].add(duel.item.number)
        study.tell(duel, luck.choice(["left", "right", "tie"]), voter=voter)
    for asked in places(study).values():
        numbers = [place for place, _ in asked]
        assert len(set(numbers)) == len(numbers)  # nobody answers what somebody else has answered
        assert any(later < earlier for earlier, later in itertools.pairwise(numbers)) or len(numbers) < 4
    assert study.check() == 1 + 2 * len(voters)
    again = load_study("s", url)
    assert [again.duel(number).item.number for number in range(40)] == [
        one for _, one in sorted((entry.duel, entry.note["item"]) for entry in study.events() if entry.kind == "ask")
    ]


def test_a_skipped_place_is_asked_of_somebody_else(url, now):
    study = new_study(url, 4)
    first = study.ask(voter="ann")
    study.tell(first, "skip", voter="ann")
    pair = frozenset((first.left, first.right))
    asked = [study.ask(voter=f"v{k}") for k in range(8)]
    again = next(duel for duel in asked if frozenset((duel.left, duel.right)) == pair)
    assert again.item.number == first.item.number
    assert study._log.history().items.place[again.id] == study._log.history().items.place[first.id]
    for duel in asked:
        study.tell(duel, "left")
    assert study._log.look().skipped.sum() == 0  # the question has an answer now


def test_what_everybody_skips_is_asked_three_times(url):
    """Without an end, a question that nobody can answer must not stop its pair."""
    study = create_study(["a", "b"], "s", url)
    add_items(study, [item(number, ["a", "b"]) for number in range(1, 7)])
    asked = []
    for _ in range(12):
        duel = study.ask()
        asked.append(study._log.history().items.place[duel.id])
        study.tell(duel, "skip")
    assert asked == [place for place in (1, 2, 3, 4) for _ in range(3)]
    assert study._log.look().skipped[0, 1] == 4
    study.check()


@pytest.mark.parametrize("about", ["new-items", "these-items", "these-answers"])
def test_every_replay_and_snapshot_agree(url, about):
    study, luck = new_study(url, 8, about, seed=3), random.Random(5)
    for k in range(24 if about != "these-items" else 50):
        duel = study.ask(voter=f"v{k % 3}" if about == "these-items" else None)
        study.tell(duel, luck.choice(["left", "right", "tie", "skip"]))
        if k % 7 == 6:
            study.undo(duel, blind=True)
            study.tell(duel, "left")
    study.check()
    history = study._log.history()
    restored = type(history)(study._log.row)
    restored.restore(history.snapshot()())
    for name in ("items", "of", "place", "sets", "_reached", "_waiting", "_passed", "_counting"):
        assert getattr(restored.items, name) == getattr(history.items, name), name
    assert (restored.tally.wins == history.tally.wins).all()


def test_new_items_grow_and_keep_their_promise(url):
    study = new_study(url, 4, "new-items")
    for _ in range(12):
        study.tell(study.ask(), "left")
    with pytest.raises(NothingToAsk):
        study.ask()
    add_items(study, [item(5), item(6)])
    asked = study.ask(6)
    assert {duel.item.number for duel in asked} == {5, 6}
    assert (study.verdict().strength, study.verdict().void, study.verdict().items) == ("independent answers", None, 6)
    study.check()


def test_more_of_these_items_leave_the_comparisons_made(url):
    study = new_study(url, 4)
    study.tell(study.ask(), "left")
    add_items(study, [item(5)])
    found = study.verdict()
    assert (found.strength, found.void, found.items) == ("comparisons made", None, 5)
    assert str(found).startswith("On the comparisons made: ")
    assert {duel.item.number for duel in study.ask(60)} == {1, 2, 3, 4, 5}
    study.check()


@pytest.mark.parametrize("about", ["new-items", "these-items"])
def test_removing_items_after_looking_voids_the_promise(url, about):
    study = new_study(url, 4, about)
    remove_item(study, 4)  # before the first question
    study.tell(study.ask(), "left")
    assert study.verdict().void is None
    remove_item(study, 2)
    found = study.verdict()
    assert found.void == "prompts were removed"
    assert "Nothing is promised about errors: prompts were removed." in str(found)
    asked = study.ask(4)
    assert {duel.item.number for duel in asked} <= {1, 3}
    replaced = replace_item(study, 1, item(1, more="!"))
    assert replaced == 5
    assert load_study("s", url).verdict().void == "prompts were removed"
    study.check()
    clear_items(study)
    assert study.verdict().items is None


def test_about_can_be_changed_until_the_first_question(url):
    study = new_study(url, 4)
    study.set_about("new-items")
    assert load_study("s", url).goal.about == "new-items"
    study.tell(study.ask(), "left")
    study.set_about("new-items")
    with pytest.raises(
        Conflict, match=r"is about new-items and has asked questions: .* create another study about the"
    ):
        study.set_about("these-items")
    with pytest.raises(Conflict, match="exists with about new-items, not these-answers"):
        create_study(ARMS, "s", url, about="these-answers", load_if_exists=True)
    study.check()


def test_item_sets_survive_json():
    found = ItemSet((1, 2, 3, 7, 9, 10), frozenset({0, 2}))
    assert found.as_note() == {"items": [[1, 3], [7, 7], [9, 10]], "ready": [0, 2]}
    assert item_set_of(found.as_note()) == found
    assert item_set_of(ItemSet((), frozenset()).as_note()) == ItemSet((), frozenset())


def test_orders_of_new_items_come_after_those_before():
    asked = ItemSchedule(5, "new-items")
    asked.fix(ItemSet((1, 2, 3), frozenset({0, 1})))
    before = asked._order((0, 1))
    asked.fix(ItemSet((1, 2, 3, 4, 5), frozenset({0, 1})))
    assert asked._order((0, 1))[:3] == before
    assert set(asked._order((0, 1))[3:]) == {4, 5}
