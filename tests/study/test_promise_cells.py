"""A/A studies of benchmarks/promise.py: its kernels are the package's own tests, few winners are wrong, and broken
versions are found out.

A cell of n studies fails if more than `most_wrong(n)` of them are wrong. Where a winner is wrong in 3.2 % of studies,
as for two level arms and as many answers as one likes, that is a false alarm with a probability of at most 10⁻⁴. A
broken version must err in so many studies that 5 % is refuted at 99 %.
"""

import importlib
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import duels
from duels.study.state.item_schedule import ItemSchedule, ItemSet, draw_item
from duels.study.stats.about import (
    A_PERSON,
    COMPARISONS,
    INDEPENDENT,
    NEW_ITEMS,
    PAST_VOTES,
    THESE_ANSWERS,
    THESE_ITEMS,
    THESE_PEOPLE,
)
from duels.study.stats.certainty import CertaintyTest
from duels.study.stats.moments import LOST, UNANSWERED, WON, Answered, Moments
from duels.study.stats.reach import find_reach
from duels.study.stats.tally import Tally

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FEW = 300  # studies of a cell


@pytest.fixture(scope="module")
def promise():
    """The benchmark, as its own program imports it."""
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("promise")
    sys.path.remove(str(BENCHMARKS))
    for name in ("promise", "table"):
        sys.modules.pop(name, None)


def most_wrong(studies, rate=0.032):
    return int(stats.binom.isf(1e-4, studies, rate))


def run(study, studies=FEW, **options):
    return [study(np.random.default_rng([7, number]), **options) for number in range(studies)]


def count(found, field):
    return sum(getattr(one, field) > 0 for one in found)


def is_above_promise(promise, wrong, studies):
    """Whether a chance of 5 % is refuted at 99 %."""
    return promise.least_of(wrong, studies) > 0.05


def test_the_false_alarm_rate():
    assert stats.binom.sf(most_wrong(FEW), FEW, 0.032) <= 1e-4 < stats.binom.sf(most_wrong(FEW) - 1, FEW, 0.032)


# The kernels are the package's own tests


def tally_of(arms, about, strength, items, first=PAST_VOTES):
    names = tuple(f"arm {k}" for k in range(arms))
    wins, ties = np.zeros((2, arms, arms), np.int64)
    return Tally(names, wins, ties, np.ones(arms, bool), arms, items, about, strength, first)


@pytest.mark.parametrize("arms", [2, 3, 6])
@pytest.mark.parametrize(
    ("about", "strength", "items", "first"),
    [
        (THESE_ITEMS, INDEPENDENT, None, PAST_VOTES),
        (THESE_ITEMS, INDEPENDENT, 20, A_PERSON),
        (NEW_ITEMS, INDEPENDENT, 200, PAST_VOTES),
        (THESE_ITEMS, THESE_PEOPLE, 20, A_PERSON),
        (THESE_ITEMS, COMPARISONS, None, PAST_VOTES),
        (THESE_ANSWERS, INDEPENDENT, 60, PAST_VOTES),
    ],
)
def test_what_is_certain_is_what_the_package_says(promise, arms, about, strength, items, first):
    """Random logs in which some arm becomes certain and loses it again, looked at after every answer."""
    changes = 0
    for seed in range(3):
        rng, tally = np.random.default_rng(seed), tally_of(arms, about, strength, items, first)
        test = promise.new_test(promise.rule_of(arms, about, strength, items, first))(arms)
        best = rng.permutation(arms)
        for t in range(80 * arms):
            i, j = map(int, rng.permutation(arms)[:2])
            if items and about != THESE_ITEMS and (tally.wins + tally.wins.T + tally.ties)[i, j] >= items:
                continue
            better = (best[i] < best[j]) == (t < 60 * arms)
            outcome = 0.5 if rng.random() < 0.1 else float(rng.random() < (0.95 if better else 0.05))
            if outcome == 0.5:
                tally.ties[i, j] += 1
                tally.ties[j, i] += 1
            else:
                tally.wins[(i, j) if outcome else (j, i)] += 1
            before = test.sure.copy()
            named = promise.take_answer(test, i, j, outcome)
            beats = CertaintyTest(tally, 0.95).beats
            assert np.array_equal(test.sure, beats)
            assert np.array_equal(test.ahead, beats.sum(axis=1))
            winners = [k for k in (i, j) if beats[k].sum() == arms - 1]
            assert named == (winners[0] if winners else -1)
            changes += bool((test.sure != before).any())
    assert changes >= 3


def random_log(rng, arms, questions):
    left = rng.integers(arms, size=questions)
    right = (left + rng.integers(1, arms, size=questions)) % arms
    better = rng.permutation(arms)
    won = rng.random(questions) < np.where(better[left] < better[right], 0.85, 0.15)
    return left, right, won


@pytest.mark.parametrize("arms", [2, 3])
def test_late_answers_are_read_as_moments_reads_them(promise, arms):
    """Answers in random order. Whoever was ever named while they came is named by the one reading at the end."""
    was_named = was_not = late = 0
    for seed in range(40):
        rng = np.random.default_rng([arms, seed])
        questions = int(rng.integers(20, 20 + 80 * (arms - 1) ** 2))
        left, right, won = random_log(rng, arms, questions)
        arrival = np.arange(questions) + rng.exponential(30, questions)
        tally = tally_of(arms, THESE_ITEMS, INDEPENDENT, None)
        following, ever = Moments(tally, 0.95), False
        for now in [*range(20, questions, 20), questions]:
            asked = np.arange(questions) < now
            outcome = np.where(arrival <= now, np.where(won, WON, LOST), UNANSWERED)[asked]
            is_open = np.flatnonzero(outcome == UNANSWERED)
            closed = int(is_open[0]) if len(is_open) else len(outcome)
            ones, number = np.ones(now, np.int64), np.arange(now)
            everything = Answered(0, 0, left[asked], right[asked], outcome, ones, number)
            begin = following.read
            rest = Answered(begin, max(closed - begin, 0), *(column[begin:] for column in everything[2:]))
            followed = following.look(rest) is not None
            named = Moments(tally, 0.95).look(everything) is not None
            log = np.array([left[asked], right[asked], won[asked], outcome != UNANSWERED], float)
            log[2] = np.where(left[asked] < right[asked], log[2], 1 - log[2])
            log[:2] = np.sort(log[:2], axis=0)
            out = np.zeros(7, np.int64)
            promise.read_in_order(promise.new_test(promise.rule_of(arms, THESE_ITEMS))(arms), log, out)
            assert bool(out[0]) == named == followed
            assert named or not ever  # it is never taken back
            late += named and not ever and len(is_open) > 0
            ever = named
        was_named += ever
        was_not += not ever
    assert min(was_named, was_not, late) > 0


def test_the_other_line_is_what_reach_says(promise):
    """Random logs of clusters that prefer an arm; the largest evidence so far counts, so looks at the end suffice."""
    held = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        arms, clusters = int(rng.integers(2, 5)), int(rng.integers(2, 60))
        left, right, _ = random_log(rng, arms, 400)
        cluster = rng.integers(clusters, size=400)
        better = rng.choice([0.5, 0.8, 0.99])
        outcome = np.where(left < right, rng.random(400) < better, rng.random(400) > better).astype(float)
        outcome[rng.random(400) < 0.1] = 0.5
        line, ever = promise.new_line(arms, clusters), False
        for c, i, j, x in zip(cluster.tolist(), left.tolist(), right.tolist(), outcome.tolist()):
            ever |= promise.extend_line(line, c, i, j, x)
        answer = np.select([outcome == 1, outcome == 0], [0, 1], 2)
        known = {"active": np.ones(arms, bool), "started_with": arms}
        reaches = [find_reach(left, right, answer, cluster, winner=k, **known).holds for k in range(arms)]
        assert ever == any(reaches)
        assert [n == arms - 1 for n in line.beaten] == reaches
        held.add(ever)
    assert held == {False, True}


class Sequence:
    """Stands in for a random generator: the items of a pair's sequence, in order."""

    def __init__(self, seed, pair, items):
        self._seed, self._pair, self._items, self.number = seed, pair, items, 0

    def random(self):
        item = draw_item(self._seed, *self._pair, self.number, self._items)
        self.number += 1
        return (self._items.index(item) + 0.5) / len(self._items)


def test_people_get_the_items_that_asked_items_gives_them(promise):
    """Voters pass over what they have seen, and others come back to it.

    An item that voters passed over is one of those that each of them had seen; the share is that of the items which
    are then possible and which the next voter has not seen.
    """
    items, people, passed = tuple(range(1, 9)), 4, 0
    for seed in range(5):
        rng, asked = np.random.default_rng(seed), ItemSchedule(seed, THESE_ITEMS)
        asked.fix(ItemSet(items, frozenset({0, 1})))
        crowd, luck = promise.new_crowd(2, len(items), people), Sequence(seed, (0, 1), items)
        crowd.taste[:] = rng.random(crowd.taste.shape)
        may_be = {}  # of each place that is open: the items that it may be about
        reached = 0
        for duel in range(60):
            p = int(rng.integers(people))
            if crowd.seen[p, 0, 1].all():
                crowd.seen[p] = False  # somebody new
                crowd.taste[p] = rng.random(crowd.taste[p].shape)
            seen = set(np.flatnonzero(crowd.seen[p, 0, 1]).tolist())
            number, wanted = asked.next(0, 1, lambda _: False, {items[x] for x in seen})
            item, liked = promise.draw_place(crowd, p, 0, 1, luck)
            assert items[item] == wanted
            for place in range(reached + 1, number + 1):
                may_be[place] = set(range(len(items)))
            reached = max(reached, number)
            for place in may_be:
                if place < number:
                    may_be[place] &= seen
            possible = sorted(may_be.pop(number) - seen)
            assert liked == np.mean(crowd.taste[p, possible, 0] > crowd.taste[p, possible, 1])
            crowd.seen[p, 0, 1, item] = True
            asked.ask(0, 1, {"item": wanted, "place": number})
            asked.answer(duel, 0, 1)
            passed += len(may_be)
            assert len(may_be) == crowd.open[0, 1]
    assert passed > 0


def test_the_share_of_items_is_the_chance_given_who_was_asked(promise):
    """Of the answers of voters who come back, as many are as expected: within 4.5 standard errors, 7·10⁻⁶."""
    play, rng, wins, expected, answers = promise.kernel(promise.draw_place), np.random.default_rng(3), 0.0, 0.0, 0
    for _ in range(400):
        crowd = promise.new_crowd(2, 6, 3)
        crowd.taste[:] = rng.random(crowd.taste.shape)
        for _ in range(14):
            p = int(rng.integers(3))
            if not crowd.seen[p, 0, 1].all():
                item, liked = play(crowd, p, 0, 1, rng)
                crowd.seen[p, 0, 1, item] = True
                won = crowd.taste[p, item, 0] > crowd.taste[p, item, 1]
                # A bet on what the share says; if it were of all items, or of those seen too, this would lose.
                wins, expected, answers = wins + liked * won, expected + liked * liked, answers + 1
    assert abs(wins - expected) < 4.5 * np.sqrt(answers / 4)
    assert answers > 4000


# Few winners are wrong


def test_new_items(promise):
    draw = promise.draw_by(partial(promise.draw_chances, "repeats 80 %", 3, 20, has_reverses=False))
    found = run(partial(promise.study_items, NEW_ITEMS, draw, 3, promise.BY_POLICY, False))
    assert count(found, "wrong") <= most_wrong(FEW)
    # Broken: every answer is taken as final. Three candidates are judged 20 times each.
    assert is_above_promise(promise, count(found, "wrong_before"), FEW)
    assert max(one.answers for one in found) == 60


def test_these_items_and_other_items(promise):
    draw = promise.draw_by(partial(promise.draw_chances, "agree 100 %", 2, 20, has_reverses=False))
    found = run(partial(promise.study_items, THESE_ITEMS, draw, 2, promise.BY_CHANCE, True), 150)
    assert count(found, "wrong") <= most_wrong(150)
    assert count(found, "line") <= most_wrong(150)
    assert count(found, "named") > 75
    # Broken: items are asked again and again, and the winner is taken as one on all items.
    assert is_above_promise(promise, count(found, "wrong_before"), 150)


def test_level_items(promise):
    draw = promise.draw_by(partial(promise.draw_chances, "agree 60 %", 2, 20, has_reverses=True))
    found = run(partial(promise.study_items, THESE_ITEMS, draw, 2, promise.BY_CHANCE, False), 150)
    assert count(found, "wrong") <= most_wrong(150)
    for how in ("coin", "side 40 %", "agree 100 %"):
        chance = promise.draw_chances(how, 6, 60, np.random.default_rng(0), has_reverses=True).mean(axis=0)
        assert np.allclose(chance[~np.eye(6, dtype=bool)], 0.5)


def test_these_answers(promise):
    draw = partial(promise.draw_answers, 2, 60, 0.0, 0)
    found = run(partial(promise.study_items, THESE_ANSWERS, draw, 2, promise.BY_CHANCE, False))
    assert count(found, "wrong") <= most_wrong(FEW)
    one_more = partial(promise.draw_answers, 3, 20, 0.2, 1)
    assert promise.find_right(one_more(np.random.default_rng(0))).tolist() == [True, False, False]
    found = run(partial(promise.study_items, THESE_ANSWERS, one_more, 3, promise.BY_HUNTER, False), 50)
    assert count(found, "named") == 50
    assert count(found, "wrong") <= most_wrong(50)


def test_a_set_of_answers_is_not_drawn_again(promise, monkeypatch):
    """Broken: the test for each item once, with items drawn again and again."""
    draw = partial(promise.draw_answers, 2, 60, 0.0, 0)
    study = partial(promise.study_items, THESE_ITEMS, draw, 2, promise.BY_CHANCE, False)
    right_rule = promise.rule_of
    monkeypatch.setattr(promise, "rule_of", lambda arms, about, items=None: right_rule(arms, THESE_ANSWERS, items=60))
    monkeypatch.setattr(promise, "ANSWERS", 60)
    found = run(study, 150)
    assert is_above_promise(promise, count(found, "wrong"), 150)


def test_people_who_come_back(promise):
    found = run(partial(promise.study_voters, 2, 20, 20, promise.BY_CHANCE), 100)
    assert count(found, "wrong") <= most_wrong(100)
    assert count(found, "line") <= most_wrong(100)
    # Broken: each answer is taken as a draw from all people …
    assert is_above_promise(promise, count(found, "wrong_before"), 100)
    # … or a winner on the comparisons made stays one whatever comes later.
    assert is_above_promise(promise, count(found, "stale"), 100)


def test_a_winner_on_the_comparisons_made_is_one_of_all_of_them(promise):
    """After 20 wins and 28 losses, a does not win the comparisons made, though it did after 20."""
    assert not promise.keeps_winner()


def test_a_winner_does_not_wait_for_open_questions_to_be_answered():
    """As long as it is certain whatever they say: people who come back, and two questions that nobody answers."""
    study = duels.create_study(["a", "b"], storage="sqlite://")
    study.ask(2, voter="slow", allow_self=False)
    for n in range(40):
        study.tell(study.ask(voter=f"person {n % 4}", allow_self=False), "a", voter=f"person {n % 4}")
        assert study.verdict().winner in (None, "a")
    assert study.verdict().strength == THESE_PEOPLE
    assert study.verdict().winner == "a"


@pytest.mark.deep
def test_a_hunter_who_knows_all_tastes(promise):
    found = run(partial(promise.study_hunter, 6))
    assert count(found, "wrong") <= most_wrong(FEW)
    # Broken: the level of a winner whose answers are independent, which does not grow with the number of arms.
    assert is_above_promise(promise, count(found, "wrong_before"), FEW)


@pytest.mark.deep
def test_voters_on_paths(promise):
    """The loser of (b, c) meets a: a wins two of three comparisons, though nobody prefers it on average."""
    found = run(partial(promise.study_path, 3, promise.LOSER_MEETS), 100)
    assert count(found, "wrong") <= most_wrong(100)
    assert count(found, "wrong_before") == 100
    for path, arms in ((promise.WINNER_MEETS, 5), (promise.INSERTION, 6)):
        found = run(partial(promise.study_path, arms, path), 50)
        assert count(found, "wrong") <= most_wrong(50)


@pytest.mark.deep
def test_late_answers(promise):
    found = run(partial(promise.study_delays, 2, 30, 3.0, promise.BY_CHANCE))
    assert count(found, "wrong") <= most_wrong(FEW)
    # Broken: open questions are left out, although those that the first arm loses stay open for longer.
    assert is_above_promise(promise, count(found, "wrong_before"), FEW)


@pytest.mark.deep
def test_clicks(promise):
    found = run(partial(promise.study_clicks, "team draft", False))
    assert count(found, "wrong") <= most_wrong(FEW)
    # Broken: credit is shared by how likely each ranking was to contribute the document.
    assert is_above_promise(promise, count(found, "wrong_before"), FEW)


def test_an_answer_is_not_an_item(promise):
    """Broken: the line about other items counts answers, not items. Twenty items, which all people agree about."""
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        prefers, item = rng.random(20) < 0.5, rng.integers(20, size=2000)
        answer, number = np.where(prefers[item], 0, 1), np.arange(2000)
        known = {"active": [True, True], "started_with": 2}
        wrong += any(find_reach(0 * item, 0 * item + 1, answer, number, winner=k, **known).holds for k in range(2))
    assert is_above_promise(promise, wrong, 60)


def test_few_studies_through_the_api(promise):
    found = run(partial(promise.run_judge, NEW_ITEMS, 2, 20), 4)
    found += run(partial(promise.run_judge, THESE_ANSWERS, 3, 20, is_final=True), 2)
    found += run(partial(promise.run_people, 2, 20, 20, 0.0, answers=60), 2)
    assert count(found, "wrong") <= most_wrong(8)
    assert all(one.answers > 0 for one in found)


# The table


def test_every_question_has_its_cells(promise):
    cells = list(promise.list_cells())
    assert len({one.title for one in cells}) == len(cells)
    for question in (NEW_ITEMS, THESE_ITEMS, THESE_ANSWERS):
        found = {(one.arms, one.items) for one in cells if one.question == question and not one.studies}
        assert found >= {(arms, items) for arms in (2, 3, 6) for items in (20, 60, 200)}


def test_rows_and_the_exit_code(promise, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(promise, "OUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["promise", "one wins one item more K=2 N=20", "--studies", "100"])
    with pytest.raises(SystemExit) as left:
        promise.main()
    assert left.value.code == 0
    assert "WRONG" in capsys.readouterr().out
    assert (tmp_path / "promise.json").exists()
    cell = promise.Cell("these-items", "all are wrong", 2, 0, lambda rng: promise.Found(9, 9, 0, 0, 0, 0, 9))
    (row,) = promise.run_cells([cell], 10)  # and, since that is too many, 40 again
    assert (row.studies, row.named, row.wrong, row.median, row.is_met) == (40, 40, 40, 9.0, False)
    assert promise.bound_of(76, 2000) < 0.05 < promise.bound_of(77, 2000) + 0.0003
    # 0 of 100: 1 − 0.01^(1/100) = 4.5 %.
    assert promise.bound_of(0, 100) == pytest.approx(1 - 0.01**0.01)
    assert promise.least_of(0, 100) == 0.0


PARTS = [
    *((question, arms) for question in ("new-items", "these-items") for arms in (2, 3, 6)),
    ("", 2),
    ("", 3),
    ("", 6),
]


@pytest.mark.deep
@pytest.mark.parametrize(("question", "arms"), PARTS)  # each takes a minute or two
def test_all_cells(promise, question, arms):
    """False alarms have a probability of 10⁻⁴ per cell whose winners are wrong in 3.2 % of studies."""
    named = {question for question, _ in PARTS}
    cells = [
        one
        for one in promise.list_cells()
        if not one.studies
        and (one.question if one.question in named else "") == question
        and (one.arms if one.arms in (2, 3) else 6) == arms
    ]
    rows = promise.run_cells(cells, 400)
    assert not [promise.describe_row(row) for row in rows if row.wrong > most_wrong(row.studies)]
