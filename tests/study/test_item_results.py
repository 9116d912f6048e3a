"""Who won on each item and tag, and where voters disagree: against plain loops over the answers."""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import duels
from duels.study.answers.item_results import (
    ArmCounts,
    arm_counts,
    comments_on,
    item_counts,
    leader_of,
    tag_results,
    wilson,
)
from duels.study.answers.table import NOBODY, AnswerLog, AnswerTable, SecondAnswers
from duels.study.items import add_items

LEFT, RIGHT, TIE, BOTH_BAD = range(4)


def table_of(rows, arms=3, voters=4):
    """Answers: item, left, right, answer, voter."""
    item, left, right, answer, voter = np.array(rows, np.int64).reshape(-1, 5).T
    n = len(item)
    return AnswerTable(
        1,
        [f"arm {k}" for k in range(arms)],
        np.ones(arms, bool),
        [f"v{k}" for k in range(voters)],
        np.arange(n),
        left.astype(np.int32),
        right.astype(np.int32),
        answer.astype(np.int8),
        np.ones(n, np.int64),
        item.astype(np.int32),
        voter.astype(np.int32),
        np.zeros(n),
        np.arange(n, dtype=float),
        np.zeros(n, bool),
        {},
        np.ones(n, bool),
        np.zeros(voters, np.int64),
        np.zeros(voters, np.int64),
        SecondAnswers(*(np.zeros(0, np.int64) for _ in SecondAnswers._fields)),
    )


def drawn(seed, n=400, arms=4, voters=3, items=6):
    luck = np.random.default_rng(seed)
    columns = [
        luck.choice([-1, *range(1, items)], n),
        luck.integers(arms, size=n),
        luck.integers(arms, size=n),
        luck.integers(4, size=n),
        luck.integers(-1, voters, size=n),
    ]
    return np.stack(columns, 1).tolist()


def winner(left, right, answer):
    return {LEFT: left, RIGHT: right}.get(answer)


def disagreement(rows, number):
    """By the definition, over all pairs of answers: how many contradict, of how many; and the people to compare."""
    about = [row for row in rows if row[0] == number and row[1] != row[2]]
    contradictions = compared = 0
    for (_, a, b, x, one), (_, c, d, y, other) in itertools.combinations(about, 2):
        if {a, b} != {c, d} or (one == other != NOBODY):
            continue
        compared += 1
        contradictions += None not in (winner(a, b, x), winner(c, d, y)) and winner(a, b, x) != winner(c, d, y)
    people = {}
    for place, (_, a, b, _, voter) in enumerate(about):
        people.setdefault(frozenset((a, b)), set()).add(f"answer {place}" if voter == NOBODY else voter)
    return contradictions, compared, sum(len(one) - 1 for one in people.values())


def lower_bound(contradictions, compared, people):
    """The order by disagreement, as the documentation has it."""
    if not compared:
        return -1.0
    share = min(contradictions / compared, 0.5)
    z = stats.norm.ppf(0.95)
    root = np.sqrt(share * (1 - share) / people + z**2 / (4 * people**2))
    return (share + z**2 / (2 * people) - z * root) / (1 + z**2 / people)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [7, 60, 400])
def test_disagreement_is_that_of_all_pairs_of_answers(seed, n):
    rows = drawn(seed, n)
    found = item_counts(table_of(rows, 4, 3))
    sizes = Counter(row[0] for row in rows if row[0] > 0 and row[1] != row[2])
    assert dict(zip(found.numbers.tolist(), found.answers.tolist())) == dict(sorted(sizes.items()))
    for at, number in enumerate(found.numbers.tolist()):
        expected = disagreement(rows, number)
        assert (found.contradictions[at], found.compared[at]) == expected[:2]
        assert found.bound[at] == pytest.approx(lower_bound(*expected), abs=1e-12)
        some = item_counts(table_of(rows, 4, 3), [number, 99])
        assert [one.tolist() for one in some] == [one[[at]].tolist() for one in found]
    assert item_counts(table_of(rows, 4, 3), [99]).place(99) is None


def test_disagreement_by_hand():
    rows = [
        *((1, 0, 1, LEFT, 0), (1, 1, 0, LEFT, 1), (1, 0, 1, TIE, 2)),  # 0 ≻ 1, 1 ≻ 0, tie: 1 of 3
        *((2, 0, 1, LEFT, 0), (2, 0, 1, RIGHT, 0)),  # one person changed their mind: nothing to compare
        *((3, 0, 1, LEFT, NOBODY), (3, 1, 0, RIGHT, NOBODY)),  # two people agree
        *((4, 0, 1, LEFT, 0), (4, 1, 2, LEFT, 1)),  # other pairs
        (5, 0, 0, TIE, 1),  # an arm against itself says nothing
    ]
    found = item_counts(table_of(rows))
    assert found.numbers.tolist() == [1, 2, 3, 4]
    assert found.contradictions.tolist() == [1, 0, 0, 0]
    assert found.compared.tolist() == [3, 0, 1, 0]
    assert found.bound[[1, 3]].tolist() == [-1, -1]
    assert found.bound[2] == 0


def test_many_split_answers_come_before_one_split():
    def split(item, first, second):
        rows = [(item, 0, 1, LEFT, NOBODY)] * first + [(item, 0, 1, RIGHT, NOBODY)] * second
        return rows

    rows = [*split(1, 1, 1), *split(2, 10, 10), *split(3, 9, 1), *split(4, 20, 0), *split(5, 2, 2)]
    found = item_counts(table_of(rows))
    assert found.numbers[np.argsort(-found.bound)].tolist() == [2, 5, 1, 3, 4]


def test_no_answers():
    for rows in ([], [(-1, 0, 1, LEFT, 0)]):
        table = table_of(rows)
        assert len(item_counts(table).numbers) == 0
        assert arm_counts(table, [3]) == {3: []}
        assert tag_results(table, {}) == []
        (one,) = tag_results(table, {3: ("t",)})
        assert one == ("t", 1, 0, None, False, [])
        assert comments_on(table, 3, 5) == []


@pytest.mark.parametrize("seed", range(3))
def test_arms_and_tags_are_counted_as_by_hand(seed, monkeypatch):
    rows = drawn(seed, 500)
    table = table_of(rows, 4, 3)
    tags = {1: ("a",), 2: ("a", "b"), 3: ("b",), 5: ("c", "a"), 77: ("d",)}
    counts = {}
    for item, left, right, answer, _ in rows:
        if item < 0 or left == right:
            continue
        for arm in (left, right):
            kind = (
                "ties"
                if winner(left, right, answer) is None
                else "wins"
                if winner(left, right, answer) == arm
                else "losses"
            )
            counts.setdefault((item, arm), Counter())[kind] += 1
    for number, found in arm_counts(table, [1, 3, 4, 50]).items():
        expected = [
            ArmCounts(f"arm {arm}", *(counts[number, arm][kind] for kind in ("wins", "losses", "ties")))
            for arm in range(4)
            if (number, arm) in counts
        ]
        assert found == expected
    by_array = tag_results(table, tags)
    monkeypatch.setattr("duels.study.answers.item_results.MOST_CELLS", 0)
    assert tag_results(table, tags) == by_array  # with a sparse matrix: the same
    assert [one.tag for one in by_array] == sorted(
        (one.tag for one in by_array), key=lambda t: -answers_of(rows, tags, t)
    )
    for one in by_array:
        assert one.items == sum(one.tag in found for found in tags.values())
        assert one.answers == answers_of(rows, tags, one.tag)
        for score in one.scores:
            total = Counter()
            for (item, arm), found in counts.items():
                if f"arm {arm}" == score.arm and one.tag in tags.get(item, ()):
                    total += found
            assert score.answers == total.total()
            assert score.score == pytest.approx((total["wins"] + total["ties"] / 2) / total.total())
        assert [-score.score for score in one.scores] == sorted(-score.score for score in one.scores)


def answers_of(rows, tags, tag):
    return sum(tag in tags.get(item, ()) and left != right for item, left, right, *_ in rows)


def test_intervals_are_wilsons():
    for wins, n in ((0, 5), (3, 7), (7, 7), (40, 100)):
        expected = stats.binomtest(wins, n).proportion_ci(0.95, "wilson")
        assert wilson(np.array(wins / n), np.array(float(n))) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_tag_has_a_winner_when_its_interval_is_above_all_others():
    def won(times):
        return table_of([(1, 0, 1, LEFT, NOBODY)] * times + [(1, 2, 1, LEFT, NOBODY)] * 2)

    # Of 2 wins out of 2, Wilson's interval is 0.34 to 1: arm 2 keeps arm 0 from winning however often that wins.
    assert tag_results(won(50), {1: ("t",)})[0].winner is None
    rows = [(1, 0, 1, LEFT, NOBODY)] * 12
    (found,) = tag_results(table_of(rows), {1: ("t",)})
    assert (found.winner, found.answers) == ("arm 0", 12)  # 0.757 to 1 against 0 to 0.243
    (found,) = tag_results(table_of(rows[:3]), {1: ("t",)})
    assert found.winner is None  # 0.438 to 1 against 0 to 0.562


def test_a_tag_is_close_if_its_two_best_arms_have_enough_answers():
    def close(*rows):
        (found,) = tag_results(table_of([row for row, times in rows for _ in range(times)]), {1: ("t",)})
        return found.winner, found.close

    first, second, third = (1, 0, 1, LEFT, NOBODY), (1, 1, 0, LEFT, NOBODY), (1, 2, 1, LEFT, NOBODY)
    assert close((first, 10), (second, 9)) == (None, False)
    assert close((first, 10), (second, 10)) == (None, True)
    assert close((first, 59), (second, 41)) == (None, True)  # 0.492 to 0.681 against 0.319 to 0.508
    assert close((first, 60), (second, 40)) == ("arm 0", False)  # 0.502 to 0.691 against 0.309 to 0.498
    assert close((first, 10), (second, 10), (third, 2)) == (None, False)  # arm 2 may be the best: it has two answers
    assert close((first, 30)) == ("arm 0", False)


def test_the_leader_of_an_item_has_the_most_wins_minus_losses():
    assert leader_of([]) == (None, False)
    assert leader_of([ArmCounts("a", 3, 7, 0), ArmCounts("b", 2, 0, 1), ArmCounts("c", 2, 1, 0)]) == ("b", False)
    assert leader_of([ArmCounts("a", 1, 0, 0), ArmCounts("b", 2, 1, 0)]) == (None, True)


def test_answers_of_a_real_study_and_its_comments():
    study = duels.create_study(["a", "b"], "real", "sqlite://", seed=1)
    add_items(study, [{"prompt": str(k), "outputs": {"a": "x", "b": "y"}} for k in range(3)])
    wins = Counter()
    for k in range(12):
        duel = study.ask(voter=f"ann {k}", allow_self=False)
        study.tell(duel, "a" if k % 2 else "b", voter=f"ann {k}", note=f"note {k}")
        wins[duel.item.number] += k % 2
    tie = study.ask(voter="bob", allow_self=False)
    study.tell(tie, "tie", voter="bob", note="equal")
    table = AnswerLog().follow(study)
    for number, found in arm_counts(table, [1, 2, 3]).items():
        assert found[0].wins == wins[number]
        said = comments_on(table, number, 100)
        assert len(said) == found[0].wins + found[0].losses + found[0].ties
        assert {(one.first, one.second) for one in said if int(one.comment[5:] or 0) % 2 and one.answer == "first"} <= {
            ("a", "b")
        }
        assert comments_on(table, number, 1) == said[:1]
    assert comments_on(table, tie.item.number, 1)[0].answer == "tie"
