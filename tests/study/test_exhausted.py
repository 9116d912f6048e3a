"""When the questions run out: what is said to be impossible, against every way in which the rest can be answered."""

import itertools
import math

import numpy as np
import pytest
from tallies import table

from duels.policies.evidence import evidence
from duels.study.stats.certainty import CertaintyTest
from duels.study.stats.exhausted import (
    Exhausted,
    describe_power,
    fewest_wins,
    find_exhausted,
    least_prompts,
    possible_winners,
)
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import verdict

SUBJECTS = {  # of so many items, and the strength
    "new items": {"about": "new-items"},
    "these answers": {"about": "these-answers"},
    "people come back": {"about": "new-items", "strength": "these people"},
}


def continuations(tally, left):
    """The counts after every way to answer some or all of the questions that are left."""
    pairs = list(itertools.combinations(range(len(tally.names)), 2))
    ways = []
    for i, j in pairs:
        most = int(left[i, j])
        ways.append([(w, l, t) for w in range(most + 1) for l in range(most + 1 - w) for t in range(most + 1 - w - l)])  # noqa: E741
    for chosen in itertools.product(*ways):
        wins, ties = tally.wins.copy(), tally.ties.copy()
        for (i, j), (won, lost, tied) in zip(pairs, chosen):
            wins[i, j] += won
            wins[j, i] += lost
            ties[i, j] += tied
            ties[j, i] += tied
        yield tally._replace(wins=wins, ties=ties)


def random_tally(rng, arms, items, subject, most_left):
    """Most questions were asked; so many of each pair are left at most."""
    wins, ties, left = np.zeros((3, arms, arms), np.int64)
    for i, j in itertools.combinations(range(arms), 2):
        left[i, j] = left[j, i] = rng.integers(0, most_left + 1)
        share = rng.choice([0.05, 0.3, 0.5, 0.8, 1.0])
        asked = items - left[i, j]
        tied = rng.binomial(asked, 0.1)
        wins[i, j] = rng.binomial(asked - tied, share)
        wins[j, i] = asked - tied - wins[i, j]
        ties[i, j] = ties[j, i] = tied
    names = [*"abc"[:arms]]
    return as_tally(names, wins, ties, items=items, **subject), left


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(("arms", "items", "most_left", "studies"), [(2, 14, 6, 60), (3, 10, 2, 40)])
def test_what_is_exhausted_has_no_verdict_however_the_rest_is_answered(subject, arms, items, most_left, studies):
    """An arm that is certainly beaten is no hope: that it is named would take a wrong answer before."""
    rng, seen = np.random.default_rng(arms), set()
    for _ in range(studies):
        tally, left = random_tally(rng, arms, items, SUBJECTS[subject], most_left)
        confidence, margin = float(rng.choice([0.3, 0.6, 0.9])), float(rng.choice([0.0, 0.1, 0.3]))
        test = CertaintyTest(tally, confidence)
        if verdict(tally, confidence=confidence, margin=margin).kind != "not yet":
            continue
        found = find_exhausted(tally, left, confidence, margin)
        beaten = {name for name, lost in zip(tally.names, test.wins.any(axis=0)) if lost}
        verdicts = (verdict(one, confidence=confidence, margin=margin) for one in continuations(tally, left))
        said = {(one.kind, one.winner) for one in verdicts}  # all that is compared: effects take long to estimate
        winners = {winner for _, winner in said if winner is not None}
        hopes = {name for name, may in zip(tally.names, possible_winners(tally, test, left)) if may}
        assert hopes == winners - beaten  # exactly those that some continuation names
        if found is not None:
            assert not winners - beaten
            assert "practically tied" not in {kind for kind, _ in said}
        seen.add(found is None)
    assert seen == ({True} if subject == "these answers" else {True, False})


def test_a_winner_at_some_moment_is_a_winner_of_fewer_answers():
    """The rest may be answered in any order, and a winner at any moment stays one: so some may be left out above.

    13 to 0 is enough, M = 39, and 14 to 1 is not, M = 25.6: so one to three wins without a loss, and up to two ties.
    """
    tally = table("ab", {"ab": (12, 0)}, items=15, about="new-items")
    left = np.array([[0, 3], [3, 0]])
    kinds = [verdict(one).kind for one in continuations(tally, left)]
    assert (len(kinds), kinds.count("winner")) == (20, 6)


def test_the_text_and_the_advice_by_hand():
    # 26.7 for two arms: 8 to 4 with 3 ties is far from it, and one question is left.
    tally = table("ab", {"ab": (8, 4)}, {"ab": 3}, items=16, about="new-items")
    found = find_exhausted(tally, np.array([[0, 1], [1, 0]]), 0.95, 0.0)
    # q = 8.5/13, kl(q, ½) · 12/15 each; ln 26.7 less ln M of 8 to 4.
    q = 8.5 / 13
    growth = (q * math.log(2 * q) + (1 - q) * math.log(2 * (1 - q))) * 12 / 15
    needed = math.ceil((math.log(80 / 3) - evidence(8, 4)) / growth)
    assert (found.arm, found.other, found.won, found.lost, found.tied, found.prompts) == ("a", "b", 8, 4, 3, needed)
    assert str(found).startswith("a won 8 of 15 and tied 3 against b; a coin does that too. About ")
    smallest = (
        next(k for k in range(1, 26) if verdict(tally, margin=k / 100).kind != "not yet") if found.margin else None
    )
    assert found.margin == (None if smallest is None else smallest / 100)
    assert find_exhausted(tally, np.array([[0, 40], [40, 0]]), 0.95, 0.0) is None
    # 60 to 40 of 100: a coin does so in 5.7 % of cases, 61 to 39 in 3.5 %.
    for won, words in ((60, "; a coin does that too."), (61, ", which is not enough.")):
        one = Exhausted(arm="a", other="b", won=won, lost=100 - won, tied=0)
        assert str(one) == f"a won {won} of 100 against b{words}"
    both = Exhausted(arm="a", other="b", won=60, lost=40, tied=0, prompts=1234, margin=0.12)
    assert str(both).endswith(" About 1,200 more prompts would tell, or a margin of 12 % now.")
    assert str(both).count(".") == 2
    alone = Exhausted(arm="a", other="b", won=50, lost=50, tied=0, margin=0.2)
    assert str(alone).endswith("; a coin does that too. It ends with a margin of 20 %.")


def test_an_end_that_is_in_sight_is_not_exhausted():
    none = np.zeros((3, 3), np.int64)
    # a beats c, and nothing is left about it; b and c have one question left, which changes nothing.
    tally = table("abc", {"ab": (5, 5), "ac": (14, 0), "bc": (5, 4)}, items=14, about="new-items")
    left = none.copy()
    left[1, 2] = left[2, 1] = 1
    assert find_exhausted(tally, left, 0.95, 0.0).arm == "a"
    # On these answers the count decides when all is asked; while some is left, it is not known that nothing tells.
    level = table("ab", {"ab": (5, 5)}, items=12, about="these-answers")
    assert find_exhausted(level, np.array([[0, 2], [2, 0]]), 0.95, 0.0) is None
    # With a margin, the rest may show that they are close.
    close = table("ab", {"ab": (20, 20)}, items=60, about="new-items")
    assert find_exhausted(close, np.array([[0, 8], [8, 0]]), 0.95, 0.0) is not None
    assert verdict(close, margin=0.2).kind == "not yet"
    assert find_exhausted(close, np.array([[0, 8], [8, 0]]), 0.95, 0.2) is None
    assert find_exhausted(table("a", {}, items=3, about="new-items"), np.zeros((1, 1), np.int64), 0.95, 0.0) is None


def test_how_many_prompts_it_takes_at_least():
    # 4/(3δ) = 26.7 of two arms: 13 wins in a row. Of three, 0.5 + 2·3/(3δ) = 40.5: 14.
    def on_new(names, items):
        return table(names, {}, items=items, about="new-items")

    assert [least_prompts(on_new(names, 5), 0.95) for names in ("ab", "abc")] == [13, 14]
    assert [fewest_wins(on_new("ab", items), 0.95) for items in (12, 13, 14)] == [None, 13, 14]
    for items in (20, 50, 100):
        won = fewest_wins(on_new("ab", items), 0.95)
        kinds = [
            verdict(table("ab", {"ab": (w, items - w)}, items=items, about="new-items")).kind for w in (won - 1, won)
        ]
        assert kinds == ["not yet", "winner"]
    assert describe_power(on_new("ab", 12), 0.95) == "With 12 prompts no winner can be shown: 13 at least."
    assert describe_power(on_new("abc", 1), 0.95) == "With 1 prompt no winner can be shown: 14 at least."
    assert describe_power(on_new("ab", 50), 0.95) == (
        f"50 prompts can show a winner that wins {fewest_wins(on_new('ab', 50), 0.95)} of them or more against each "
        "other arm."
    )
