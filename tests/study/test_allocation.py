"""Questions by the batch: the pairs that `ask` would ask about, as counts."""

from collections import Counter

import numpy as np
import pytest

from duels.errors import Conflict, InvalidInput, NothingToAsk
from duels.study import arm_log
from duels.study.allocation import _divide, allocate
from duels.study.create import create_study, load_study

ARMS = ["a", "b", "c", "d"]


def answered(url, name="study", policy=None, answers=40):
    study = create_study(ARMS, name, url, policy, seed=5)
    for _ in range(answers):
        duel = study.ask()
        study.tell(duel, min(duel.left, duel.right))
    return study


def pairs(rows):
    found = Counter()
    for left, right, times in rows:
        found[frozenset((left, right))] += times
    return found


@pytest.mark.parametrize("policy", [None, "rucb", "dts"])
def test_it_is_what_the_study_asks_next(url, now, policy):
    """Oracle: the same number of questions, asked."""
    study = answered(url, policy=policy)
    events = study._log.history().seq
    rows = study.allocate(300)
    assert study.allocate(300) == rows
    assert (study._log.history().seq, study.open_duels()) == (events, [])
    asked = study.ask(300, allow_self=False)
    assert pairs(rows) == Counter(frozenset((duel.left, duel.right)) for duel in asked)
    assert [row.times for row in rows[::2]] == sorted([row.times for row in rows[::2]], reverse=True)


def test_open_duels_do_not_matter(url):
    study = answered(url)
    study.retire_arm("d")
    before = study.allocate(50)
    assert {name for row in before for name in row[:2]} == {"a", "b", "c"}
    study.ask(3)
    study.retire_arm("c")
    assert pairs(study.allocate(7)) == {frozenset("ab"): 7}
    assert load_study("study", url).allocate(7) == study.allocate(7)


def test_each_arm_is_shown_on_both_sides(url):
    study = answered(url)
    times = {(left, right): count for left, right, count in study.allocate(1001)}
    for (left, right), count in times.items():
        assert abs(count - times.get((right, left), 0)) <= 1
    assert len(study.allocate(1)) == 1


def test_more_than_are_looked_at_are_divided_in_proportion(url, monkeypatch):
    monkeypatch.setattr("duels.study.allocation.ASKED", 100)
    study = answered(url)
    some, many = pairs(study.allocate(100)), pairs(study.allocate(10**12))
    assert many.total() == 10**12
    assert many == {pair: times * 10**10 for pair, times in some.items()}
    assert pairs(study.allocate(1234)).total() == 1234


def test_shares_are_rounded_by_the_largest_remainder():
    # 10 of 3, 3, 1: 4.28, 4.28, 1.42 → 4, 4, 1 and one more for the largest remainder.
    assert _divide(10, np.array([3, 3, 1])).tolist() == [4, 4, 2]
    assert _divide(7, np.array([3, 3, 1])).tolist() == [3, 3, 1]
    assert _divide(2, np.array([1, 1, 1])).tolist() == [1, 1, 0]


def test_batches_of_counts_find_the_winner(url):
    """Arms win 80 % of their duels with later ones, so a few batches are enough; the seed is fixed."""
    study = create_study(ARMS, "study", url)
    dice = np.random.default_rng(1)
    for _ in range(16):
        rows = []
        for left, right, times in study.allocate(100):
            p = 0.8 if left < right else 0.2
            won = int(dice.binomial(times, p))
            rows.append({"left": left, "right": right, "wins_left": won, "wins_right": times - won})
        assert study.import_votes(rows) == 100
        if study.verdict().kind == "winner":
            break
    assert study.verdict().winner == "a"
    assert study.check() == study._log.history().seq


@pytest.mark.parametrize("n", [0, -1, 10**12 + 1, 2.5, "many"])
def test_numbers_out_of_range_are_refused(url, n):
    with pytest.raises(InvalidInput, match=r"^n is"):
        allocate(create_study(ARMS, "study", url), n)


def test_a_study_that_asks_nothing_allocates_nothing(url):
    study = create_study(ARMS, "study", url)
    study.retire()
    with pytest.raises(Conflict, match="was retired"):
        study.allocate(10)
    items = create_study(ARMS, "items", url, about="these-answers")
    with pytest.raises(Conflict, match="each item once"):
        items.allocate(10)


def test_many_questions_are_asked_in_parts_and_are_the_same(url, now, monkeypatch):
    whole, parts = (create_study(ARMS, name, url, seed=5) for name in ("whole", "parts"))
    monkeypatch.setattr(arm_log, "TOGETHER", 10_000)
    one = whole.ask(250)
    monkeypatch.setattr(arm_log, "TOGETHER", 7)
    writes = []
    monkeypatch.setattr(
        parts._log.storage, "write", lambda write, real=parts._log.storage.write: writes.append(1) or real(write)
    )
    assert [duel[:3] for duel in parts.ask(250)] == [duel[:3] for duel in one]
    assert len(writes) == 36
    assert parts.check() == 251


def decided(url, after="stop"):
    study = create_study(ARMS, "decided", url, after=after, seed=5)
    study.import_votes([{"left": "a", "right": arm, "wins_left": 900, "wins_right": 100} for arm in "bcd"])
    study.import_votes([{"left": "b", "right": "c", "wins_left": 70, "wins_right": 60}])
    return study


def test_it_follows_the_goal_as_it_is_now(url):
    """The winner is known, and then the order of the others is wanted: as if it had been from the beginning."""
    study = decided(url)
    assert study.verdict().kind == "winner"
    study.set_after("rank")
    found = pairs(study.allocate(100))
    assert found == Counter(frozenset((duel.left, duel.right)) for duel in study.ask(100, allow_self=False))
    assert not any("a" in pair for pair in found)
    assert found == pairs(decided("sqlite://", after="rank").allocate(100))


def test_it_follows_the_margin_as_it_is_now(url):
    study = decided(url)
    study.set_margin(0.02)
    study.retire_arm("a")
    found = pairs(study.allocate(200))
    assert found == Counter(frozenset((duel.left, duel.right)) for duel in study.ask(200, allow_self=False))


def test_it_says_when_nothing_is_left_to_ask(url):
    study = decided(url)
    with pytest.raises(NothingToAsk, match=r"'decided' has nothing left to ask: .*a is the winner") as error:
        study.allocate(100)
    assert "set_after('rank')" in str(error.value)
    study.set_after("rank")
    for first, second in ("bc", "bd", "cd"):
        study.import_votes([{"left": first, "right": second, "wins_left": 9000, "wins_right": 1000}])
    with pytest.raises(NothingToAsk) as error:
        study.allocate(100)
    assert "set_after" not in str(error.value)
