"""Studies on exactly their items, as people vote on them: what is asked, what counts, and when it ends."""

import itertools
import json
import random
from collections import Counter

import pytest

import duels
from duels.errors import Conflict, DamagedStudy, InvalidInput, NothingToAsk
from duels.server.results_tab import glance
from duels.storage.storage import StudyRow
from duels.study import link_voting
from duels.study.create import create_study, load_study
from duels.study.items import add_items, clear_items, count_items, remove_item
from duels.study.state import item_schedule
from duels.study.state.counts import next_event
from duels.study.state.live import LiveState
from duels.study.state.next_question import SHARED_AFTER
from duels.study.stats.goal import new_goal
from duels.study.stats.verdict import headline
from duels.votes.items import Item, Output

ARMS = ["gpt", "llama", "qwen"]


def items(count, arms=ARMS):
    return [Item(f"prompt {k}", {arm: Output("text", f"{arm} {k}") for arm in arms}) for k in range(count)]


def new_study(url, count=10, arms=ARMS, **more):
    study = create_study(arms, "prompts", url, about="these-answers", **more)
    add_items(study, items(count, arms))
    return study


def ask(study, voter="ada"):
    return study._log.storage.write(link_voting.asking(study, None, voter))


def tell(study, ballot, winner, voter="ada"):
    return study._log.storage.write(link_voting.telling(study, voter, ballot.duel.id, winner))


def undo(study, voter="ada"):
    return study._log.storage.write(link_voting.undoing(study, voter))


def opinions(count, seed, shares=(0.7, 0.6, 0.5), ties=0.2, arms=ARMS):
    """A fixed answer for each pair and item: the winner, or tie."""
    draw, found = random.Random(seed), {}
    for (k, pair), item in itertools.product(enumerate(itertools.combinations(arms, 2)), range(1, count + 1)):
        first = draw.random() < shares[k % len(shares)]
        found[frozenset(pair), item] = "tie" if draw.random() < ties else pair[0] if first else pair[1]
    return found


def answer(opinion, ballot):
    said = opinion[frozenset((ballot.duel.left, ballot.duel.right)), ballot.item]
    return said if said == "tie" else "a" if said == ballot.duel.left else "b"


def vote(study, opinion, most=10_000, voters=("ada",), until_verdict=False):
    """Vote until nothing is left to ask, or there is a verdict; returns the ballots."""
    asked = []
    for voter in itertools.islice(itertools.cycle(voters), most):
        if link_voting.voter_progress(study, voter, 10_000, True).done and until_verdict:
            break
        try:
            ballot = ask(study, voter)
        except Conflict:
            break
        asked.append(ballot)
        tell(study, ballot, answer(opinion, ballot), voter)
    return asked


def pairs_and_items(asked):
    return Counter((frozenset((one.duel.left, one.duel.right)), one.item) for one in asked)


def counted(opinion, arms=ARMS):
    """The verdict that the opinions amount to: who has more wins than losses against whom."""
    wins = Counter()
    for (pair, _), said in opinion.items():
        if said != "tie":
            wins[said, next(iter(pair - {said}))] += 1
    return {(a, b): wins[a, b] - wins[b, a] for a, b in itertools.permutations(arms, 2)}


def final(opinion, arms=ARMS):
    lead = counted(opinion, arms)
    for arm in arms:
        if all(lead[arm, other] > 0 for other in arms if other != arm):
            return "winner"
    return (
        "practically tied" if any(all(lead[a, b] >= 0 for b in arms if b != a) for a in arms) else "no condorcet winner"
    )


def test_everything_is_asked_once_and_the_verdict_is_then_final(url):
    kinds = set()
    for seed in range(12):
        study = create_study(ARMS, f"study {seed}", url, about="these-answers", seed=seed)
        add_items(study, items(5))
        opinion = opinions(5, seed, shares=(0.6, 0.4, 0.6), ties=0.3)
        asked = vote(study, opinion)
        assert set(pairs_and_items(asked).values()) == {1}
        assert len(asked) == 15
        found = study.verdict()
        assert (found.final, found.items, found.duels) == (True, 5, 15)
        assert found.kind == final(opinion)
        assert study.check() == 1 + 2 * 15
        kinds.add(found.kind)
    assert len(kinds) == 3


def test_voting_ends_with_a_verdict_before_everything_was_asked(url):
    study = new_study(url, 60)
    asked = vote(study, opinions(60, 3, shares=(0.9, 0.9, 0.5), ties=0.1), until_verdict=True)
    assert len(asked) < 90
    assert set(pairs_and_items(asked).values()) == {1}
    found = study.verdict()
    assert (found.winner, found.items, found.final) == ("gpt", 60, False)
    assert str(found).startswith("By the answers given on these 60 prompts: gpt is the winner")
    assert link_voting.voter_progress(study, "ada", 10_000, True).done == "winner"


def test_each_pair_has_its_own_order_and_every_replay_the_same(url):
    study = new_study(url, 8, seed=5)
    asked = vote(study, opinions(8, 0))
    orders = {}
    for ballot in asked:
        orders.setdefault(frozenset((ballot.duel.left, ballot.duel.right)), []).append(ballot.item)
    assert len({tuple(order) for order in orders.values()}) == 3
    for (i, j), pair in zip(itertools.combinations(range(3), 2), itertools.combinations(ARMS, 2)):
        assert tuple(orders[frozenset(pair)]) == item_schedule.order_of(5, i, j, tuple(range(1, 9)))
    again = load_study("prompts", url)
    assert [again.duel(ballot.duel.id).item.number for ballot in asked] == [ballot.item for ballot in asked]


def test_orders_are_uniform():
    """Each of the six orders of three items, over seeds: χ² with five degrees of freedom, false alarm 1e-6."""
    found = Counter(item_schedule.order_of(seed, 0, 1, (1, 2, 3)) for seed in range(6000))
    assert len(found) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in found.values()) < 36.2
    # the orders of two pairs are independent
    both = Counter(
        (item_schedule.order_of(s, 0, 1, (1, 2)), item_schedule.order_of(s, 0, 2, (1, 2))) for s in range(4000)
    )
    assert sum((count - 1000) ** 2 / 1000 for count in both.values()) < 30.7  # three degrees of freedom, 1e-6


def test_many_voters_at_once_are_not_asked_the_same(url, now):
    study = new_study(url, 4)
    names = [f"voter {k}" for k in range(13)]
    asked = [ask(study, name) for name in names[:12]]
    assert len(pairs_and_items(asked)) == 12
    with pytest.raises(Conflict, match="every question has been asked"):
        ask(study, names[12])
    assert link_voting.voter_progress(study, names[12], 10, True).done == "asked"
    assert link_voting.voter_progress(study, names[0], 10, True).done is None  # it has an open question
    assert ask(study, names[0]) == asked[0]
    tell(study, asked[0], "a", names[0])
    now[0] += study._log.row.lease  # the others do not answer
    again = ask(study, names[12])
    assert pairs_and_items([again]).keys() <= pairs_and_items(asked[1:]).keys()
    study.check()


def test_the_first_answer_about_an_item_counts_and_late_ones_do_not(url, now):
    study = new_study(url, 1, arms=["a", "b"])
    first = ask(study, "ada")
    now[0] += study._log.row.lease
    second = ask(study, "bob")
    assert second.item == first.item
    assert second.duel.id != first.duel.id
    tell(study, second, "a" if second.duel.left == "a" else "b", "bob")
    assert study.verdict().winner == "a"
    tell(study, first, "a" if first.duel.left == "b" else "b", "ada")  # late: it is stored, and does not count
    found = study.verdict()
    assert (found.winner, found.duels, found.missing) == ("a", 1, None)
    undo(study, "ada")
    assert study.verdict().winner == "a"
    study.check()
    assert load_study("prompts", url).tally().wins.tolist() == [[0, 1], [0, 0]]


def test_what_nobody_answers_is_asked_of_somebody_else_when_nothing_else_is_left(url, now):
    study = new_study(url, 2, arms=["a", "b"])
    first, second = ask(study, "ada"), ask(study, "bob")
    now[0] += SHARED_AFTER - 1
    with pytest.raises(NothingToAsk):
        ask(study, "cid")
    assert link_voting.voter_progress(study, "cid", 10, True).done == "asked"
    now[0] += 1
    assert link_voting.voter_progress(study, "cid", 10, True).done is None
    third = ask(study, "cid")
    assert pairs_and_items([third]) == pairs_and_items([first])  # that was asked the longest ago
    assert pairs_and_items([ask(study, "dan")]) == pairs_and_items([second])
    with pytest.raises(NothingToAsk):  # each was asked again just now
        ask(study, "eve")
    with pytest.raises(NothingToAsk):  # programs are not asked what is open
        study.ask()
    assert study.verdict().duels == 0
    study.check()
    history, again = study._log.history(), load_study("prompts", url)._log.history()
    assert again.answer == history.answer


def give(study, ballot, arm, voter):
    tell(study, ballot, "a" if ballot.duel.left == arm else "b", voter)


@pytest.fixture
def shared(url, now):
    """A question that was asked of ada, and a minute later of bob too."""
    study = new_study(url, 1, arms=["a", "b"])
    first = ask(study, "ada")
    now[0] += SHARED_AFTER
    return study, first, ask(study, "bob")


def count_twice(study):
    """Wins of a and b: in the tables, and as the verdict reads them; and the questions that it reads as open."""
    wins, look = study.tally().wins, study._log.look()
    read = look.tally.wins
    return (wins[0, 1], wins[1, 0]), (read[0, 1], read[1, 0]), look.tally.open[0, 1], look.left[0, 1]


def test_of_two_who_are_asked_the_same_the_first_one_asked_counts(shared, now, url):
    """Whoever answers fast may prefer another arm: the first answer to come would not be a fair one."""
    study, first, second = shared
    assert count_twice(study) == ((0, 0), (0, 0), 1, 1)  # one question, though two were asked it
    give(study, second, "b", "bob")
    assert count_twice(study) == ((0, 1), (0, 0), 1, 1)  # it may still be ada's
    give(study, first, "a", "ada")
    assert count_twice(study) == ((1, 0), (1, 0), 0, 0)
    assert (study.verdict().duels, study._log.history().people.given) == (1, [1, 0])
    assert count_twice(load_study("prompts", url)) == count_twice(study)
    study.check()
    undo(study, "ada")
    assert study.verdict().duels == 0


def test_the_second_one_counts_when_the_lease_of_the_first_is_over(shared, now, url):
    study, first, second = shared
    give(study, second, "b", "bob")
    now[0] += study._log.row.lease - SHARED_AFTER
    assert count_twice(study) == ((0, 1), (0, 1), 0, 0)
    give(study, first, "a", "ada")  # late
    assert count_twice(study) == ((0, 1), (0, 1), 0, 0)
    assert study.verdict().missing is None
    restored = type(study._log.history())(study._log.row)
    restored.restore(study._log.history().snapshot()())
    assert restored.answered == study._log.history().answered
    study.check()


def test_the_second_one_counts_when_the_first_is_skipped(shared):
    study, first, second = shared
    give(study, second, "b", "bob")
    tell(study, first, "skip", "ada")
    assert count_twice(study) == ((0, 1), (0, 1), 0, 0)
    study.check()


def test_the_first_one_counts_at_once_and_the_second_is_not_waited_for(shared, now):
    study, first, second = shared
    give(study, first, "a", "ada")
    assert count_twice(study) == ((1, 0), (1, 0), 0, 0)
    tell(study, second, "skip", "bob")
    assert (study._log.look().skipped.sum(), study._log.look().expired.sum()) == (0, 0)
    now[0] += study._log.row.lease
    assert study._log.look().expired.sum() == 0


def test_a_skip_is_no_missing_answer_once_the_first_one_comes(shared):
    study, first, second = shared
    tell(study, second, "skip", "bob")
    give(study, first, "a", "ada")
    assert (study._log.look().skipped.sum(), study._log.look().expired.sum()) == (0, 0)
    study.withdraw("Voter 1")
    study.forget("Voter 2")
    assert (study._log.look().skipped.sum(), study._log.look().expired.sum()) == (0, 0)
    study.check()


def test_skips_and_undone_answers_are_asked_again_at_the_end(url, now):
    study, opinion = new_study(url, 3, arms=["a", "b"]), opinions(3, 1, arms=["a", "b"])
    skipped = ask(study)
    tell(study, skipped, "skip")
    rest = vote(study, opinion, most=2)
    assert {one.item for one in rest} | {skipped.item} == {1, 2, 3}
    assert not study.verdict().final
    again = ask(study)
    assert again.item == skipped.item
    tell(study, again, answer(opinion, again))
    assert study.verdict().final
    assert undo(study) == again
    assert not study.verdict().final
    assert ask(study) == again  # it is open again
    tell(study, again, answer(opinion, again))
    assert (study.verdict().final, study.verdict().void) == (True, None)
    study.check()


def test_what_is_asked_again_is_asked_of_one_voter_at_a_time(url, now):
    study = new_study(url, 1, arms=["a", "b"])
    tell(study, ask(study, "ada"), "skip", "ada")
    again = ask(study, "bob")
    with pytest.raises(Conflict, match="every question has been asked"):
        ask(study, "carl")
    now[0] += study._log.row.lease
    assert ask(study, "carl").item == again.item


def test_a_forgotten_voters_items_are_asked_again(url):
    study, opinion = new_study(url, 4), opinions(4, 2)
    asked = vote(study, opinion, voters=("ada", "bob"))
    assert study.verdict().final
    study.forget("Voter 1")
    assert not study.verdict().final
    again = vote(study, opinion, voters=("carl",))
    assert pairs_and_items(again).keys() == pairs_and_items(asked[::2]).keys()
    assert study.verdict().final
    assert study.verdict().kind == final(opinion)
    study.check()


def test_retired_arms_are_not_asked(url):
    study, opinion = new_study(url, 6), opinions(6, 4)
    vote(study, opinion, most=5)
    study.retire_arm("qwen")
    asked = vote(study, opinion)
    assert all("qwen" not in (one.duel.left, one.duel.right) for one in asked)
    found = study.verdict()
    assert found.final
    assert found.kind == final({key: said for key, said in opinion.items() if "qwen" not in key[0]}, ARMS[:2])
    study.check()


def test_arms_and_items_are_fixed_at_the_first_question(url):
    study = create_study(ARMS[:2], "prompts", url, about="these-answers")
    add_items(study, items(2, ARMS[:2]))
    study.add_arm("qwen")
    with pytest.raises(Conflict, match="item 1 of study 'prompts' has no output of arm 'qwen'"):
        study.ask()
    clear_items(study)
    add_items(study, items(3))
    add_items(study, items(6))  # three of them are there
    ballot = ask(study)
    with pytest.raises(Conflict, match="about the items that it had at its first question"):
        study.add_arm("mistral")
    with pytest.raises(Conflict, match="answers about exactly the 6 items that it had at its first question"):
        add_items(study, items(7))
    assert count_items(study) == 6
    tell(study, ballot, "a")
    vote(study, opinions(6, 1))
    assert (study.verdict().final, study.verdict().items) == (True, 6)
    assert study.check() == 2 + 2 * 18


def test_items_of_these_answers_cannot_be_removed_while_they_are_asked_about(url):
    study = new_study(url, 3)
    tell(study, ask(study), "a")
    with pytest.raises(Conflict, match="the item cannot be removed: study 'prompts' counts the answers about exactly"):
        remove_item(study, 1)
    clear_items(study)  # so that nobody can look at them any more
    assert study.verdict().void == "prompts were removed"
    with pytest.raises(Conflict, match="about exactly the 0 items"):
        add_items(study, items(3))


def test_past_votes_are_refused(url):
    study = new_study(url)
    with pytest.raises(Conflict, match="which item they are about"):
        study.import_votes([{"left": "gpt", "right": "llama", "winner": "left"}])


@pytest.mark.parametrize("database", ["url", "postgres"])
def test_programs_learn_the_item_and_get_fewer_duels_at_the_end(database, request):
    study = new_study(request.getfixturevalue(database), 3)
    duels = study.ask(7)
    assert all(duel.item.number in (1, 2, 3) and not duel.is_self for duel in duels)
    assert [duel.item for duel in study.open_duels()] == [duel.item for duel in duels]
    assert len(study.ask(7)) == 2
    with pytest.raises(Conflict, match="every pair about every item"):
        study.ask()
    for duel in study.open_duels():
        study.tell(duel, "tie")
    found = study.verdict()
    assert (found.kind, found.final, set(found.tied_with)) == ("practically tied", True, {"llama", "qwen"})
    study.check()


@pytest.mark.parametrize("policy", ["rucb", "self_sparring", "random", "scb"])
def test_any_policy(url, policy):
    study, opinion = new_study(url, 6, policy=policy), opinions(6, 7)
    vote(study, opinion)
    assert study.verdict().kind == final(opinion)
    study.check()


def test_snapshots_keep_what_was_asked(url, now):
    study, opinion = new_study(url, 6), opinions(6, 9)
    tell(study, ask(study), "skip")
    for _ in range(18):
        history = study._log.history()
        restored = LiveState(study._log.row)
        restored.restore(history.snapshot()())
        restored.name_people({"Voter 1": len(history.left) - 1} if history.left else {})
        assert (restored.tally.wins == history.tally.wins).all()
        assert (restored.tally.ties == history.tally.ties).all()
        assert restored.tally.items == (6 if history.left else None)
        who = restored.people.find("Voter 1")
        question = restored.question(now[0], False, who)
        item = restored.next_place(*question[:2], now[0], who)[1]
        (asked,) = vote(study, opinion, most=1)
        assert (ARMS[question[0]], ARMS[question[1]], item) == (asked.duel.left, asked.duel.right, asked.item)


def test_a_log_with_other_items_is_found(url, monkeypatch):
    study = new_study(url, 6)
    vote(study, opinions(6, 1), most=5)
    notes = [entry.note for entry in study.events() if entry.kind == "ask"]
    assert [note.get("items") for note in notes] == [[[1, 6]], None, None, None, None]
    right = item_schedule.order_of
    monkeypatch.setattr(item_schedule, "order_of", lambda *given: right(*given)[::-1])
    with pytest.raises(DamagedStudy, match="would not"):
        study.check()


def test_the_goal_is_kept_and_checked(url):
    assert new_study(url).goal.about == "these-answers"
    assert load_study("prompts", url).goal.about == "these-answers"
    assert create_study(["a", "b"], "other", url).goal.about == "these-items"
    with pytest.raises(InvalidInput, match="about is 'all': expected 'new-items', which arm is best on prompts like"):
        create_study(["a", "b"], "third", url, about="all")


def test_redirects_save_answers(url):
    """A clear winner of five arms on 40 items needs far fewer than all 400 answers."""
    arms = list("abcde")
    study = new_study(url, 40, arms=arms)
    opinion = opinions(40, 1, shares=(0.8, 0.8, 0.8, 0.8, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5), ties=0.1, arms=arms)
    asked = vote(study, opinion, until_verdict=True)
    assert study.verdict().winner == "a"
    assert len(asked) < 200


def test_the_page_of_a_study_on_items(url):
    study, opinion = new_study(url, 4), opinions(4, 1)
    for most in (0, 5, 100):
        vote(study, opinion, most=most)
        found = study.verdict()
        assert glance(study)["verdict"]["items"] == found.items == (4 if most else None)
        assert headline(found.as_dict()) in study._repr_html_()
    assert found.final


def test_on_new_items_no_pair_is_settled_because_few_items_are_left():
    """Of 12 items, eight wins in a row settle a pair on these answers; on new items, the next 100 may differ."""
    for about, settled in (("these-answers", True), ("new-items", False)):
        settings = {"goal": new_goal(ties="halves", about=about)._asdict()}
        history = LiveState(
            StudyRow(1, "study", 0.0, "random", None, 7, 600.0, settings), duels.policies.load_policy("random")
        )
        history.take(next_event(history, "create", 0.0, note=json.dumps({"arms": ["a", "b"]})))
        for number, item in enumerate(item_schedule.order_of(7, 0, 1, tuple(range(1, 13)))[:9]):
            note = {"item": item} | ({} if number else {"items": [[1, 12]], "ready": [0, 1]})
            shown = {"left_arm": 0, "right_arm": 1, "swapped": 0, "note": json.dumps(note)}
            history.take(next_event(history, "ask", 0.0, duel=number, attempt=0, **shown))
            history.take(next_event(history, "tell", 0.0, duel=number, attempt=0, answer="left"))
        assert (history.verdict(0.0).kind == "winner") == settled
        assert bool(history._questions.settled.losses[1]) == settled
