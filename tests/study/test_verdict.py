"""The verdict of new studies: by its definition, by hand, and in words."""

import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallies import assert_adds_up, empty, refused, table, tallies, verdict_of

import duels
from duels.policies.evidence import BETS, evidence
from duels.study.state.live import LiveState
from duels.study.stats.certainty import CertaintyTest, certainly_beats
from duels.study.stats.exhausted import Exhausted
from duels.study.stats.leaderboard import leaderboard, preferences
from duels.study.stats.reach import Reach
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import Answerers, Missing, Verdict, headline, verdict

EITHER = pytest.mark.parametrize("test", ["independent answers", "comparisons made"])


def literal(tally, delta, margin):
    """The definition in docs/study/verdict.md, pair by pair: kind, and the arms that may be named.

    Whether the arms have changed decides some levels; retired arms must have been beaten too, or the level is higher.
    On shared items, the arms at the start need a union over them.
    """
    names, start = tally.names, tally.started_with
    everyone = range(len(names))
    active = [k for k in everyone if tally.active[k]]
    unchanged = len(active) == len(names) == start
    shared = tally.about == "new-items" and tally.items is not None

    def winner_level(i, j):
        later = max(i, j) + 1 - start
        if later > 0:
            return 0.5 + 8 * later * (later + 1) / delta
        if shared and start != 2:
            return 0.5 + 2 * start / (3 * delta)
        return 4 / (3 * delta) if start == 2 else 1 + 2 / delta

    def none_level(i, j):
        if shared and unchanged:
            return winner_level(i, j)
        return 0.5 + (start - 1) * (1 / delta + 0.25) if unchanged else pairs_level(i, j)

    def pairs_level(i, j):
        m = max(i, j) + 1
        return 16 * start**2 / delta if m <= start else 32 * m * (m - 1) ** 2 / delta

    def close_level(i, j):
        if max(i, j) >= start:
            return pairs_level(i, j)
        return 16 / delta if start == 2 else 16 * start / delta

    def beats(i, j, level):
        w, l = int(tally.wins[i, j]), int(tally.wins[j, i])  # noqa: E741
        m = math.prod(2 * (5 + k) / (10 + k) for k in range(w)) * math.prod(
            2 * (5 + k) / (10 + w + k) for k in range(l)
        )
        return w > l and m >= level(i, j)

    def near(i, j, level):
        w, l, t = int(tally.wins[i, j]), int(tally.wins[j, i]), int(tally.ties[i, j])  # noqa: E741
        worst = 0.5 - margin
        fortunes = [(1 + s * (1 - worst)) ** w * (1 - s * worst) ** l * (1 + s * (0.5 - worst)) ** t for s in BETS]
        return np.mean(fortunes) >= level(i, j)

    def over_all(arm, says, level):
        for others, needed in ((everyone, level), (active, pairs_level)):
            if len(others) > 1 and all(says(arm, j, needed) for j in others if j != arm):
                return True
        return False

    for i in active:
        if over_all(i, beats, winner_level):
            return "winner", {names[i]}
    if len(active) > 1 and all(any(beats(j, i, none_level) for j in active if j != i) for i in active):
        return "no condorcet winner", {None}
    close = {names[i] for i in active if margin > 0 and len(active) > 1 and over_all(i, near, close_level)}
    return ("practically tied", close) if close else ("not yet", set(names))


@settings(deadline=None)
@given(
    tallies(),
    st.sampled_from([0.1, 0.5, 0.95]),
    st.sampled_from([0, 0.05, 0.2, 0.4]),
    st.sampled_from([("these-items", None), ("these-items", 50), ("new-items", None), ("new-items", 200)]),
)
def test_against_the_definition(tally, confidence, margin, subject):
    tally = tally._replace(about=subject[0], items=subject[1])
    found = verdict(tally, confidence=confidence, margin=margin)
    kind, named = literal(tally, 1 - confidence, margin)
    assert found.kind == kind
    assert kind == "not yet" or found.leader in named
    assert (found.winner is not None) == (kind == "winner")
    assert_adds_up(found, tally, CertaintyTest(tally, confidence), certainly_beats(tally, confidence))


@EITHER
@settings(deadline=None)
@given(tally=tallies(), random=st.randoms(use_true_random=False))
def test_names_do_not_matter(test, tally, random):
    order = list(range(len(tally.names)))
    random.shuffle(order)
    tally = tally._replace(started_with=len(order))
    moved = tally._replace(
        names=tuple(tally.names[k] for k in order),
        wins=tally.wins[np.ix_(order, order)],
        ties=tally.ties[np.ix_(order, order)],
        active=tally.active[order],
    )
    before, after = (verdict_of(one, confidence=0.6, strength=test) for one in (tally, moved))
    assert (before.kind, before.winner, before.duels) == (after.kind, after.winner, after.duels)
    sure = certainly_beats(tally, 0.6)
    assert np.array_equal(certainly_beats(moved, 0.6), sure[np.ix_(order, order)])
    assert not (sure & sure.T).any()


@settings(deadline=None)
@given(tallies(), st.floats(0.05, 0.9))
def test_more_confidence_never_says_more(tally, confidence):
    known = [verdict(tally, confidence=c).kind != "not yet" for c in (confidence, (1 + confidence) / 2)]
    assert known[0] or not known[1]


def test_ties_carry_no_sign():
    found = table("ab", {"ab": (13, 0)}, {"ab": 1000})
    assert verdict(found).winner == "a"
    assert verdict(found).duels == 1013


@EITHER
def test_a_winner_above_a_cycle(test):
    """A cycle below proves nothing: the arm above it wins."""
    cycle = {"bc": (90, 10), "cd": (90, 10), "db": (90, 10)}
    found = verdict_of(table("abcd", {**cycle, "ab": (70, 30), "ac": (70, 30), "ad": (70, 30)}), strength=test)
    assert (found.kind, found.winner, found.cycle, found.losses) == ("winner", "a", (), ())
    found = verdict_of(table("abcd", {**cycle, "ab": (70, 30), "ac": (70, 30), "ad": (3, 2)}), strength=test)
    assert (found.kind, found.leader, found.open_pairs) == ("not yet", "a", (("a", "d"),))


def test_a_winner_may_have_cells_that_are_not_certain():
    # 68 to 32 is M = 126, enough for the winner of ten; the tables ask for 1000 of each pair, and have 60.
    tally = table("abcdefghij", {f"a{x}": (68, 32) for x in "bcdefghij"})
    assert 41 < math.exp(evidence(68, 32)) < 1000
    assert verdict(tally).winner == "a"
    assert verdict_of(tally, strength="comparisons made").kind == "not yet"
    assert not any(row.certain for row in preferences(tally))
    assert leaderboard(tally).rows[0].certain_wins == 0


def test_no_winner_with_and_without_a_cycle():
    # 67 to 33 is M = 65, enough for no winner of three, 41; the tables have 29 of 90.
    results = dict.fromkeys(("ab", "bc", "ca"), (67, 33))
    found = verdict(table("abc", results))
    assert (found.kind, found.winner, found.leader) == ("no condorcet winner", None, None)
    assert (found.losses, found.cycle) == ((("a", "c"), ("b", "a"), ("c", "b")), ())
    assert str(found).startswith(
        "No arm beats all others: each of the 3 is clearly beaten by another one. 300 answers so far. 95 % confidence"
    )
    assert headline(found.as_dict()) == "No winner: no arm beats all others"
    found = verdict(table("abc", dict.fromkeys(results, (80, 20))))
    assert (found.losses, found.cycle) == ((("a", "c"), ("b", "a"), ("c", "b")), ("a", "b", "c"))
    assert verdict(table("abc", {**results, "ca": (11, 9)})).kind == "not yet"


def test_losses_are_what_shows_it():
    # No winner of four at δ = 0.1 takes M = 31; the tables take 80. b beat a 11 to 0: certain in the tables, 344, but
    # M = 17. c beat a 67 to 33: M = 65, but 29 in the tables. So that is the loss that shows that there is no winner.
    results = {"ba": (11, 0), "ca": (67, 33), "cb": (67, 33), "dc": (90, 10), "bd": (90, 10)}
    tally = table("abcd", results)
    assert certainly_beats(tally)[1, 0]
    found = verdict(tally, confidence=0.9)
    assert (found.kind, found.cycle) == ("no condorcet winner", ())
    assert dict(found.losses)["a"] == "c"
    assert all(CertaintyTest(tally, 0.9).losses["abcd".index(b), "abcd".index(a)] for a, b in found.losses)
    # Six arms: M = 102, in the tables 360. a, b and c are a cycle in the tables, 12 to 0 each, 660, but M = 25. What
    # shows that there is no winner is others: d, e and f beat each other 68 to 32, M = 126, and d beats a, b and c.
    results = dict.fromkeys(("ab", "bc", "ca"), (12, 0)) | dict.fromkeys(("de", "ef", "fd", "da", "db", "dc"), (68, 32))
    found = verdict(table("abcdef", results))
    assert (found.kind, found.cycle) == ("no condorcet winner", ())
    assert found.losses == (("a", "d"), ("b", "d"), ("c", "d"), ("d", "f"), ("e", "d"), ("f", "e"))


def test_no_winner_after_changes():
    # With a fourth arm that was retired, or one that came later, each loss needs the evidence of all pairs.
    cycle, arms = {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20)}, {"active": [True] * 3 + [False]}
    assert verdict(table("abc", cycle)).kind == "no condorcet winner"
    assert verdict(table("abcd", cycle, **arms)).kind == "no condorcet winner"
    close = dict.fromkeys(cycle, (72, 28))
    assert math.log(16 * 4**2 / 0.05) > evidence(72, 28) > math.log(0.5 + 3 * 20.25)
    assert verdict(table("abc", close)).kind == "no condorcet winner"
    assert verdict(table("abcd", close, **arms)).kind == "not yet"
    assert verdict(table("abc", close, started_with=2)).kind == "not yet"
    # Every arm is clearly beaten: then the first in the ranking is told about, without an estimate.
    found = verdict(table("abcd", close, **arms))
    assert (found.leader, found.level_with) == ("a", ("b", "c"))
    assert {arm for arm, _ in found.open_pairs} == {"a"}
    assert str(found).startswith("No verdict yet: a, b and c share the first rank, but a has yet to beat")


def test_retired_arms():
    results = {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20)}
    # a has lost to c, which is retired: its win over b needs 16·3²/δ = 2880, and has it.
    found = verdict(table("abc", results, active=[True, True, False]))
    assert (found.kind, found.winner, found.arms, found.duels) == ("winner", "a", 2, 300)
    assert math.log(41) < evidence(72, 28) < math.log(2880) < evidence(80, 20)
    assert verdict(table("abc", {**results, "ab": (72, 28)}, active=[True, True, False])).kind == "not yet"
    # If it has beaten c, the level is that of a winner.
    beaten = {"ab": (72, 28), "ac": (72, 28)}
    assert verdict(table("abc", beaten, active=[True, True, False])).winner == "a"
    # Retired arms are no winners, and their wins are no losses.
    found = verdict(table("abc", {"ab": (99, 1), "ac": (99, 1), "bc": (8, 7)}, active=[False, True, True]))
    assert (found.kind, found.leader, found.open_pairs) == ("not yet", "b", (("b", "c"),))


def test_the_only_arm_left():
    found = verdict(table("abc", {"ab": (14, 0), "ac": (14, 0)}, active=[True, False, False]))
    assert (found.kind, found.winner, headline(found.as_dict())) == ("winner", "a", "Only arm left: a")
    assert str(found).startswith("a is the only arm left. 28 answers so far.")
    found = verdict(table("abc", {"ab": (14, 0), "ac": (13, 0)}, active=[True, False, False]))
    assert (found.kind, found.winner, found.leader, found.open_pairs) == ("not yet", None, None, (("a", "c"),))
    assert headline(found.as_dict()) == "Not yet: a is the only arm left"
    assert headline(found.as_dict(), retired=True) == "No verdict: a was the only arm left"
    assert str(found).startswith(
        "No verdict yet: a is the only arm left, but it is not shown to beat c, which was retired. 27 answers so far."
    )
    found = verdict(table("abc", {"ab": (0, 5)}, active=[True, False, False]))
    assert "is the only arm left, but it is not shown to beat b and c, which were retired." in str(found)
    # Taken back, they need not be asked again: what was known is known.
    assert verdict(table("abc", {"ab": (14, 0), "ac": (14, 0)})).winner == "a"


def test_one_arm():
    found = verdict(empty(1))
    assert (found.kind, found.leader, found.open_pairs) == ("not yet", None, ())
    assert str(found).startswith("No verdict yet: there is only one arm. 0 answers so far.")
    assert headline(found.as_dict()) == "Not yet: there is only one arm"
    # It was there at the start; the second came later: ½ + 16/δ = 320.5, 18 wins in a row.
    assert verdict(table("ab", {"ab": (17, 0)}, started_with=1)).kind == "not yet"
    assert verdict(table("ab", {"ba": (18, 0)}, started_with=1)).winner == "b"
    with refused("every arm is retired: expected at least one active arm"):
        verdict(table("ab", {}, active=[False, False]))


def test_practically_tied():
    # Two arms at δ = 0.05 need 16/δ = 320.
    assert verdict(table("ab", {"ab": (500, 500)})).kind == "not yet"
    assert verdict(table("ab", {"ab": (500, 500)}), margin=0.05).kind == "not yet"
    found = verdict(table("ab", {"ab": (500, 500)}), margin=0.08)
    assert (found.kind, found.leader, found.tied_with, found.winner) == ("practically tied", "a", ("b",), None)
    assert (found.open_pairs, found.answers_to_go, found.margin) == ((), None, 0.08)
    # Ties alone: the mean over λ of (1 + 0.05 λ)^t. The largest stake, 1.6, gives 1.08^t/16 = 321 at t = 111; with the
    # others it is 322 at 109.
    kinds = [verdict(table("ab", {}, {"ab": t}), margin=0.05).kind for t in range(130)]
    assert kinds.count("practically tied") == 130 - 109
    assert kinds == sorted(kinds)


@EITHER
def test_practically_tied_is_against_every_other_arm(test):
    results = {"ab": (5100, 4900), "ac": (900, 100), "bc": (900, 100)}
    found = verdict_of(table("abc", results), margin=0.05, strength=test)
    assert (found.kind, found.leader, found.tied_with) == ("practically tied", "a", ("b",))
    assert (
        verdict_of(table("abc", {**results, "ac": (1, 0), "bc": (1, 0)}), margin=0.05, strength=test).kind == "not yet"
    )
    # Far from the margin on the wrong side is not within it.
    found = verdict_of(table("abc", {"ba": (100, 0), "ac": (100, 0), "bc": (1, 0)}), margin=0.05, strength=test)
    assert (found.kind, found.leader) == ("not yet", "b")
    # With enough evidence, a retired arm does not matter.
    found = verdict_of(table("abc", {"ab": (5000, 5000)}, active=[True, True, False]), margin=0.05, strength=test)
    assert (found.kind, found.tied_with) == ("practically tied", ("b",))


def test_a_retired_arm_that_is_not_close_raises_the_level():
    # It must be close too, or the level is that of all pairs: 2880 instead of 960.
    two = {"active": [True, True, False]}
    n = next(n for n in range(1, 2000) if verdict(table("abc", {"ab": (n, n), "ac": (n, 0)}), margin=0.1).tied_with)
    assert verdict(table("abc", {"ab": (n, n), "ac": (n, 0)}, **two), margin=0.1).kind == "practically tied"
    assert verdict(table("abc", {"ab": (n, n)}, **two), margin=0.1).kind == "not yet"
    assert verdict(table("abc", {"ab": (n, n), "ac": (n, 0)}, started_with=2), margin=0.1).kind == "practically tied"
    assert verdict(table("abc", {"ac": (n, n), "ab": (n, 0)}, started_with=2), margin=0.1).kind == "not yet"


@EITHER
def test_a_winner_or_none_comes_before_a_margin(test):
    assert verdict_of(table("ab", {"ab": (60_000, 50_000)}), margin=0.2, strength=test).kind == "winner"
    cycle = table("abc", {"ab": (60_000, 50_000), "bc": (60_000, 50_000), "ca": (60_000, 50_000)})
    assert verdict_of(cycle, margin=0.2, strength=test).kind == "no condorcet winner"


@EITHER
def test_before_any_duel(test):
    found = verdict_of(empty(3), strength=test)
    assert (found.kind, found.leader, found.answers_to_go, found.duels) == ("not yet", None, None, 0)
    assert found.open_pairs == (("arm 0", "arm 1"), ("arm 0", "arm 2"), ("arm 1", "arm 2"))


def test_an_arm_that_is_certainly_beaten_in_the_tables_is_not_told_about():
    # b beat a 10 to 0: certain in the tables (180 > 90), while M is 11 of 41. So b may still win, not a.
    found = verdict(table("abc", {"ba": (10, 0), "ac": (90, 10), "bc": (5, 6)}))
    assert leaderboard(table("abc", {"ba": (10, 0), "ac": (90, 10), "bc": (5, 6)})).rows[0].arm == "b"
    assert found.open_pairs == (("b", "c"), ("b", "a"))


def test_the_text_without_a_forecast():
    found = verdict(table("abc", {"ab": (27, 13), "ac": (24, 16)}))
    first = "No verdict yet: a ranks first, but has yet to beat c and b conclusively."
    likely = f"About {float(f'{found.answers_to_go:.2g}'):,.0f} more answers are likely needed."
    assert str(found) == found.text() == found.text(forecast=False).replace(first, f"{first} {likely}")
    known = verdict(table("ab", {"ab": (50, 0)}))
    assert known.text(forecast=False) == str(known)


PROMISE = "95 % confidence, valid at any time; each answer counts as a new person's."


@pytest.mark.parametrize(
    ("tally", "margin", "said"),
    [
        (
            table("abc", {"ab": (500, 100), "ac": (600, 0)}),
            0,
            "a is the winner: against each of the 2 others it wins more often than it loses. a wins 92 % of its "
            "comparisons with the others (89 to 94 %). 1,200 answers so far.",
        ),
        (table("ab", {"ab": (13, 0)}), 0, "a is the winner: against the other arm it wins more often than it loses."),
        (
            table("abc", {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20)}),
            0,
            "No arm beats all others: each of the 3 is clearly beaten by another one. "
            "There is a cycle: a beats b, b beats c, c beats a. 300 answers so far.",
        ),
        (
            table("ab", {"ab": (5000, 5000)}),
            0.025,
            "a is practically as good as any: no arm wins more than 52.5 % of its comparisons with it, "
            "a tie counted as a half. It is not shown to beat b. a wins 50 % of its comparisons with the other arm "
            "(48 to 52 %). 10,000 answers so far.",
        ),
        (
            table("abc", {"ab": (60, 40), "ac": (70, 30), "bc": (70, 30)}),
            0,
            "No verdict yet: a ranks first, but has yet to beat b conclusively. "
            "About 380 more answers are likely needed. a wins 65 % of its comparisons with the others so far "
            "(54 to 75 %). 300 answers so far.",
        ),
        (
            table("abc", {"ab": (1, 0), "ca": (0, 0)}, {"ac": 1}),
            0,
            "No verdict yet: a ranks first, but has yet to beat c and b conclusively. 2 answers so far.",
        ),
        (
            table("abc", {"ac": (3, 1), "bc": (3, 1)}),
            0,
            "No verdict yet: a and b share the first rank, but a has yet to beat b and c conclusively. "
            "8 answers so far.",
        ),
        (
            table("abcd", {"ab": (990, 10), "ac": (990, 10), "da": (20, 0), "bd": (30, 20)}),
            0,
            "No verdict yet: a ranks first, but it is clearly beaten by another arm. d may still win, but has yet "
            "to beat b and c conclusively.",
        ),
        (empty(2), 0, "No verdict yet: these arms have not met. 0 answers so far."),
    ],
)
def test_in_words(tally, margin, said):
    assert str(verdict(tally, margin=margin)).startswith(said)
    assert str(verdict(tally, margin=margin)).endswith(PROMISE)


def test_forecasts_are_told_roundly():
    found = verdict(table("ab", {"ab": (1100, 1000)}))
    assert 1000 < found.answers_to_go < 10_000
    assert f"About {round(found.answers_to_go, -2):,} more answers are likely needed." in str(found)


def test_many_names_are_cut_short():
    names = [f"arm {k}" for k in range(9)]
    wins = np.zeros((9, 9))
    wins[0, 1:] = 1
    said = str(verdict(as_tally(names, wins)))
    assert "beat arm 1, arm 2, arm 3, arm 4 and 4 others conclusively." in said
    assert "beat arm 1, arm 2, arm 3, arm 4 and arm 5 conclusively." in str(verdict(as_tally(names[:6], wins[:6, :6])))


def test_a_void_promise_is_not_made():
    found = verdict(table("ab", {"ab": (13, 0)}), void="3 answers were undone after results had been seen.")
    assert (found.kind, found.winner) == ("winner", "a")
    assert str(found).endswith(
        "13 answers so far. Nothing is promised about errors: 3 answers were undone after results had been seen."
    )
    assert "chance" not in str(found)


def test_the_risk_is_told():
    assert "99.9 % confidence, valid at any time" in str(verdict(table("ab", {"ab": (13, 0)}), confidence=0.999))


def test_as_data():
    found = verdict(table("abc", {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20)}), void="a reason")
    assert found.as_dict() == {
        "kind": "no condorcet winner",
        "arms": 3,
        "duels": 300,
        "confidence": 0.95,
        "risk": 0.05,
        "margin": 0.0,
        "winner": None,
        "leader": None,
        "level_with": [],
        "tied_with": [],
        "losses": [["a", "c"], ["b", "a"], ["c", "b"]],
        "cycle": ["a", "b", "c"],
        "open_pairs": [],
        "answers_to_go": None,
        "void": "a reason",
        "about": "these-items",
        "strength": "independent answers",
        "items": None,
        "final": False,
        "contradictions": 0,
        "answerers": None,
        "missing": None,
        "exhausted": None,
        "other_items": None,
        "other_people": None,
        "effect": None,
    }


def test_as_data_and_back():
    parts = {
        "answerers": Answerers(people=3, by_people=250, by_judges=40, unknown=10),
        "missing": Missing(skipped=2, expired=1, stands=True),
        "exhausted": Exhausted(arm="a", other="b", won=6, lost=4, tied=2, prompts=120, margin=0.2),
        "other_items": Reach(holds=False, clusters=12, prefer=7, split=1, needed=80),
    }
    for tally in (
        table("abc", {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20)}),
        table("abc", {"ab": (14, 6), "ac": (12, 8)}, items=20, about="new-items"),
    ):
        for found in (verdict(tally), verdict(tally, **parts)):
            plain = json.loads(json.dumps(found.as_dict()))
            assert Verdict.from_dict(plain | {"unknown": 1}) == found
            assert str(Verdict.from_dict(plain)) == str(found)


def test_clusters_that_prefer_neither_are_said():
    """Else a winner with "28 of 60 prefer it" reads as if most prefer another one."""
    tally = table("ab", {"ab": (80, 20)})
    for split, words in ((0, ""), (1, ", 1 is split"), (24, ", 24 are split")):
        reach = Reach(holds=False, clusters=60, prefer=28, split=split, needed=98)
        said = f"Other people like these: not known (28 of 60 prefer it{words}; about 98 would tell)."
        assert said in str(verdict(tally, other_people=reach))


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.1, math.nan, "much", None])
def test_confidence_is_checked(confidence):
    message = f"confidence is {confidence!r}: expected a number above 0 and below 1, such as 0.95"
    for asked in (verdict, leaderboard, preferences):
        with refused(message):
            asked(empty(2), confidence=confidence)


@pytest.mark.parametrize("margin", [-0.01, 0.5, 5, math.nan, "wide", None])
def test_margin_is_checked(margin):
    with refused(f"margin is {margin!r}: expected a number at least 0 and below 0.5, such as 0.02"):
        verdict(empty(2), margin=margin)


def test_speed():
    """The bars of the live page, on the slowest of the kinds; a thirtieth of them is usual."""
    rng = np.random.default_rng(0)
    for arms, bar in ((64, 0.02), (200, 0.2)):
        wins = rng.integers(0, 500, (arms, arms)) * (1 - np.eye(arms, dtype=int))
        tally = as_tally(map(str, range(arms)), wins)
        least = math.inf
        for _ in range(5):
            start = time.perf_counter()
            verdict(tally, margin=0.02)
            verdict(tally, confidence=1 - 1e-15, margin=0.02)
            least = min(least, time.perf_counter() - start)
        assert least < 2 * bar


def answer_as(study, voter, times=1):
    for _ in range(times):
        study.tell(study.ask(voter=voter, allow_self=False), "left", voter=voter)


def test_people_who_are_known_by_name_share_one_promise():
    study = duels.create_study(["a", "b", "c"], "study 0", storage="sqlite://")
    answer_as(study, "ann")
    assert study.tally().first == "a person"
    answer_as(study, None, 3)
    answer_as(study, "ann")
    found = study.verdict()
    assert (found.strength, found.risk) == ("these people", 0.05)
    assert "95 % confidence, valid at any time." in str(found)
    fresh = LiveState(study._log.row)
    fresh.restore(study._log.history().snapshot()())
    assert fresh.tally.first == "a person"


def test_people_who_come_back_to_a_study_that_somebody_unknown_began():
    study = duels.create_study(["a", "b", "c"], "study 1", storage="sqlite://", confidence=0.9)
    answer_as(study, None)
    answer_as(study, "ann")
    assert (study.verdict().risk, study.tally().first) == (0.1, "somebody unknown")
    answer_as(study, "ann")
    found = study.verdict()
    assert (found.strength, found.risk, found.confidence) == ("these people", 0.2, 0.9)
    assert str(found).endswith(
        "80 % confidence, valid at any time (10 % risk before people came back, and 10 % since)."
    )


PAST = [{"arm_a": "a", "arm_b": "b", "winner": "a"}] * 3


def test_past_votes_that_come_first_are_one_test():
    study = duels.create_study(["a", "b", "c"], "study 2", storage="sqlite://")
    study.import_votes(PAST)
    assert (study.verdict().strength, study.verdict().risk) == ("comparisons made", 0.05)
    study = duels.create_study(["a", "b", "c"], "study 3", storage="sqlite://")
    answer_as(study, None)
    study.import_votes(PAST)
    assert study.verdict().risk == 0.1
    assert "5 % risk before votes were imported or prompts added, and 5 % since" in str(study.verdict())
