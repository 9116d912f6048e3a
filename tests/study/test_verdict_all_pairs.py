"""The verdict where answers may depend on who was asked: by the promise about all pairs."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallies import assert_adds_up, refused, table, tallies, verdict_of

from duels.policies.evidence import BETS, winner_level
from duels.study.stats.about import A_PERSON, COMPARISONS, INDEPENDENT, PAST_VOTES, UNKNOWN
from duels.study.stats.certainty import CertaintyTest, certainly_beats
from duels.study.stats.leaderboard import leaderboard, preferences
from duels.study.stats.tally import Tally, as_tally, interval

FIRST = (A_PERSON, UNKNOWN, PAST_VOTES)
verdict = functools.partial(verdict_of, strength="comparisons made")


def test_two_arms_are_one_pair_and_take_no_more_than_for_independent_answers():
    # ½ + 4/(3δ) = 27.2, and M is 25.4 after 12 wins in a row, 39.2 after 13.
    assert verdict(table("ab", {"ab": (12, 0)})).kind == "not yet"
    found = verdict(table("ab", {"ab": (13, 0)}))
    assert (found.kind, found.winner, found.leader, found.arms, found.duels) == ("winner", "a", "a", 2, 13)
    assert verdict(table("ab", {"ab": (0, 13)})).winner == "b"
    # A third arm, though it was retired, makes them a pair of three: 1/δ′ = 90 after 9 wins, if the third was beaten.
    two = {"active": [True, True, False]}
    assert verdict(table("abc", {"ab": (8, 0), "ac": (9, 0)}, **two)).kind == "not yet"
    assert verdict(table("abc", {"ab": (9, 0), "ac": (9, 0)}, **two)).winner == "a"


def test_a_winner_of_three_takes_nine_in_a_row():
    # δ′ = 2·0.05/3² = 1/90; M(½) is 50.3 after 8 wins in a row, 94.96 after 9.
    assert verdict(table("abc", {"ab": (9, 0), "ac": (8, 0)})).open_pairs == (("a", "c"),)
    assert verdict(table("abc", {"ab": (9, 0), "ac": (9, 0)})).winner == "a"


def test_a_later_arm_takes_longer():
    # Arm number 3 after K₀ = 2: M ≥ ½ + 4·3·2²/0.05 = 960.5; it is 672.2 after 19 wins in a row, 1,112.5 after 20.
    # The first pair keeps its 27.2.
    assert verdict(table("abc", {"ab": (13, 0), "ac": (19, 0)}, started_with=2)).kind == "not yet"
    assert verdict(table("abc", {"ab": (13, 0), "ac": (20, 0)}, started_with=2)).winner == "a"
    assert verdict(table("abc", {"ca": (20, 0), "cb": (20, 0)}, started_with=2)).winner == "c"
    # Arm number 4 after K₀ = 3: δ′ = 2·3/(4·8) · 0.05/(4·3²) = 1/3,840; M(½) is 2,448.5 after 14, 4,733.8 after 15.
    three = {"ab": (9, 0), "ac": (9, 0)}
    assert verdict(table("abcd", three | {"ad": (14, 0)}, started_with=3)).kind == "not yet"
    assert verdict(table("abcd", three | {"ad": (15, 0)}, started_with=3)).winner == "a"


def chance(level, pairs, sides=2):
    """The most with which one of so many pairs, alike, ever is above a level of M by mistake, as in proofs.md."""
    return pairs * sides / (2 * level - 1)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("start", [2, 3, 4, 7, 8, 9, 20, 100])
def test_all_that_may_be_wrong_is_within_delta(start, confidence):
    """One and both tests, with 30 later arms: winners and no winner, and ties, where each may be wrong."""
    delta, later = 1 - confidence, np.arange(start + 1, start + 31)
    none, active = np.zeros((start + 30, start + 30), np.int64), np.ones(start + 30, bool)
    names = tuple(f"arm {k}" for k in range(start + 30))
    given = {first: Tally(names, none, none, active, start, strength=COMPARISONS, first=first) for first in FIRST}
    levels = {}
    for first, tally in given.items():
        found = CertaintyTest(tally, confidence)
        zero = np.zeros(len(later), np.int64)
        pair = math.exp(found.levels.winner(zero[:1], zero[:1] + 1)[0])
        added = np.exp(found.levels.winner(zero, later - 1))
        tied = math.exp(found.levels.close(zero[:1], zero[:1] + 1)[0])
        tied_later = np.exp(found.levels.close(zero, later - 1))
        levels[first] = pair
        apart = start * (start - 1) / 2
        cells = chance(pair, apart)
        more = sum(chance(added, later - 1)) + 2 * apart / tied + sum((later - 1) / tied_later)
        if first != A_PERSON:
            assert 0.75 * delta <= cells + more <= delta * (1 + 1e-12)
            continue
        # The test of independent answers has a quarter, and the one pair of two arms is the same in both.
        once = CertaintyTest(tally._replace(strength=INDEPENDENT), confidence)
        level = once.levels.winner(zero[:1], zero[:1] + 1)[0]
        assert level == pytest.approx(math.log(0.5 + 4 / (3 * delta)) if start == 2 else winner_level(delta / 4, start))
        assert cells + more <= (delta if start == 2 else 0.75 * delta) * (1 + 1e-12)
        assert once.levels.winner(zero, later - 1) == pytest.approx(
            np.log(0.5 + 8 * (later - start) * (later - start + 1) / (delta / 4))
        )
        if start == 2:
            assert cells + more + delta / 4 * (1 / 8 + 1 / 16 + 1 / 32 + 1 / 32) <= delta
    assert levels[UNKNOWN] == levels[PAST_VOTES]


def test_less_confidence_takes_less():
    # δ′ = 2·0.5/3² = 1/9: M(½) is 7.9 after 5 wins in a row, 14.4 after 6.
    assert verdict(table("abc", {"ab": (5, 0), "ac": (6, 0)}), confidence=0.5).kind == "not yet"
    assert verdict(table("abc", {"ab": (6, 0), "ac": (6, 0)}), confidence=0.5).winner == "a"


def test_ties_carry_no_sign():
    found = table("abc", {"ab": (9, 0), "ac": (9, 0)}, {"ab": 1000})
    assert verdict(found).winner == "a"
    assert verdict(found).duels == 1018
    row = preferences(found)[0]
    assert (row.certain, row.ties, row.duels, row.estimate) == ("first", 1000, 1009, 509 / 1009)
    assert row.lower < 0.5 < row.upper  # the interval shown counts them as halves


def test_no_condorcet_winner():
    # a beats b beats c beats a, and d loses to all of them.
    results = {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20), "ad": (90, 10), "bd": (95, 5), "cd": (90, 10)}
    found = verdict(table("abcd", results))
    assert (found.kind, found.winner, found.leader) == ("no condorcet winner", None, None)
    assert found.losses == (("a", "c"), ("b", "a"), ("c", "b"), ("d", "b"))
    wins = set(zip(found.cycle, found.cycle[1:] + found.cycle[:1]))
    assert wins == {("a", "b"), ("b", "c"), ("c", "a")}
    # With one loss less than certain there may be a winner yet.
    assert verdict(table("abcd", {**results, "ca": (11, 9)})).kind == "not yet"


def test_the_shortest_cycle_is_told():
    # The most certain losses make a cycle of four, a → b → c → d → a; d beats b too, so that b, c, d are one of three.
    results = {"ab": (99, 1), "bc": (99, 1), "cd": (99, 1), "da": (99, 1), "db": (80, 20), "ca": (1, 0)}
    found = verdict(table("abcd", results))
    assert found.kind == "no condorcet winner"
    assert len(found.cycle) == 3
    assert all((b, a) in found.losses for a, b in zip(found.cycle, found.cycle[1:] + found.cycle[:1]))
    assert sorted(loser for loser, _ in found.losses) == list("abcd")


@pytest.mark.parametrize("seed", range(20))
def test_cycles_in_random_tournaments(seed):
    """Every loss told is certain, and no cycle through the first arm of the one told is shorter."""
    rng = np.random.default_rng(seed)
    arms = 9
    wins = np.triu(rng.choice([0, 25, 50], (arms, arms), p=[0.35, 0.3, 0.35]), 1)
    wins += np.tril(50 - wins.T, -1)
    sure = wins == 50
    found = verdict(as_tally([str(k) for k in range(arms)], wins))
    if not sure.any(axis=0).all():
        assert found.kind != "no condorcet winner"
        return
    assert all(sure[int(winner), int(loser)] for loser, winner in found.losses)
    assert all((b, a) in found.losses for a, b in zip(found.cycle, found.cycle[1:] + found.cycle[:1]))
    walks, start = np.eye(arms, dtype=int), int(found.cycle[0])
    for _ in found.cycle[1:]:
        walks = walks @ sure.astype(int)
        assert walks[start, start] == 0


def test_practically_tied():
    # Two arms 5,000 to 5,000: the lower end is about ½ − √((ln 40 + ½ ln(π·5,000))/20,000) = 0.479.
    level = table("ab", {"ab": (5000, 5000)})
    assert interval(5000, 5000, 0.025)[0] == pytest.approx(0.479, abs=1e-3)
    assert verdict(level).kind == "not yet"
    assert verdict(level, margin=0.02).kind == "not yet"
    found = verdict(level, margin=0.022)
    assert (found.kind, found.leader, found.tied_with, found.winner) == ("practically tied", "a", ("b",), None)
    assert (found.open_pairs, found.answers_to_go, found.margin) == ((), None, 0.022)


def test_many_ties_are_practically_a_tie():
    assert verdict(table("ab", {}, {"ab": 1000}), margin=0.1).kind == "practically tied"
    assert verdict(table("ab", {"ab": (40, 60)}, {"ab": 10_000}), margin=0.03).kind == "practically tied"
    assert verdict(table("ab", {"ab": (40, 60)}), margin=0.03).kind == "not yet"


def test_a_certain_win_counts_as_within_the_margin():
    # With ties as halves a's lower end against c is below ½ − ε; but a beats c for certain.
    tally = table("abc", {"ab": (5000, 5000), "ac": (30, 5), "bc": (1, 1)}, {"ac": 60})
    assert certainly_beats(tally)[0, 2]
    assert preferences(tally)[1].lower < 0.47
    assert verdict(tally, margin=0.03).kind == "practically tied"


def test_an_arm_without_a_certain_loss_goes_first_among_the_tied():
    # b is a bit, but for certain, worse than a. a is not yet known to be close to c, so only b is practically tied.
    results = {"ab": (510_000, 490_000), "ac": (1, 0), "bc": (900, 100)}
    found = verdict(table("abc", results), margin=0.05)
    assert (found.kind, found.leader, found.tied_with) == ("practically tied", "b", ("a",))
    # The leads of r over c, c over s and s over r go round; r is rated highest, but only s has no certain loss.
    results = {"rc": (5700, 4300), "cs": (5010, 4990), "sr": (5300, 4700)}
    assert leaderboard(table("rcs", results)).rows[0].arm == "r"
    found = verdict(table("rcs", results), margin=0.1)
    assert (found.kind, found.leader, found.tied_with) == ("practically tied", "s", ("c",))


def test_open_pairs_are_those_of_the_first_arm_without_a_certain_loss():
    # a beats two arms by far and ranks first, but lost to d for certain; d lost to b too, which lost to a.
    results = {"ab": (990, 10), "ac": (990, 10), "da": (20, 0), "bd": (30, 20)}
    found = verdict(table("abcd", results))
    assert [row.arm for row in leaderboard(table("abcd", results)).rows][:2] == ["a", "d"]
    assert (found.leader, found.level_with, found.open_pairs) == ("a", (), (("d", "b"), ("d", "c")))
    assert str(found).startswith(
        "On the comparisons made: no verdict yet: a ranks first, but it is clearly beaten by another arm. d may still "
        "win, but has yet to beat b and c conclusively. "
    )


def test_open_pairs_least_certain_first():
    # Leads in standard errors: b 20/√100 = 2, c 1/√17 = 0.24, d −5/√115 = −0.47, f, never met, 0, g 30/√400 = 1.5.
    # That e beat d often puts d below a.
    results = {"ab": (60, 40), "ac": (9, 8), "ad": (55, 60), "ae": (100, 0), "ag": (215, 185), "ed": (90, 10)}
    found = verdict(table("abcdefg", results))
    assert found.leader == "a"
    assert [other for _, other in found.open_pairs] == list("dfcgb")


def test_retired_arms_do_not_count():
    results = {"ab": (80, 20), "bc": (80, 20), "ca": (80, 20)}
    assert verdict(table("abc", results)).kind == "no condorcet winner"
    found = verdict(table("abc", results, active=[True, True, False]))
    assert (found.kind, found.winner, found.arms, found.duels) == ("winner", "a", 2, 300)
    # A retired arm that beats all is no winner, and its wins are no losses.
    found = verdict(table("abc", {"ab": (99, 1), "ac": (99, 1), "bc": (8, 7)}, active=[False, True, True]))
    assert (found.kind, found.leader, found.open_pairs) == ("not yet", "b", (("b", "c"),))
    found = verdict(table("abc", {"ab": (0, 0), "ac": (99, 1), "bc": (99, 1)}, active=[True, True, False]), margin=0.1)
    assert (found.kind, found.leader, found.level_with) == ("not yet", "a", ("b",))  # c compares them
    assert found.open_pairs == (("a", "b"),)


def test_retiring_does_not_change_the_shares():
    # δ′ stays 1/90 of three arms: eight in a row are not enough for the two that are left.
    results = {"ab": (8, 0), "ac": (20, 0), "bc": (20, 0)}
    assert verdict(table("abc", results, active=[True, True, False])).kind == "not yet"


def test_the_only_arm_left():
    found = verdict(table("ab", {"ab": (13, 0)}, active=[True, False]))
    assert (found.kind, found.winner) == ("winner", "a")
    assert str(found).startswith("On the comparisons made: a is the only arm left. 13 answers so far.")
    found = verdict(table("ab", {"ab": (0, 5)}, active=[True, False]))
    assert (found.kind, found.winner, found.open_pairs) == ("not yet", None, (("a", "b"),))
    with refused("every arm is retired: expected at least one active arm"):
        verdict(table("ab", {}, active=[False, False]))


def literal(tally, delta, margin):
    """The definition, pair by pair in plain Python: kind, and the arms that may be named as what the kind is about.

    Retired arms must have been beaten too, or the pairs with the others need more. A study of two arms has the test of
    a single pair.
    """
    names, start = tally.names, tally.started_with
    everyone = range(len(names))
    active = [k for k in everyone if tally.active[k]]
    unchanged = len(active) == len(names) == start
    from_two = start == 2
    spare = 1 / (4 * max(start + 1, 8))

    def winner_level(i, j):
        m = max(i, j) + 1
        if from_two:
            return math.log(0.5 + 4 / (3 * delta) if m <= 2 else 0.5 + 4 * m * (m - 1) ** 2 / delta)
        return -math.log(2 * delta / start**2 if m <= start else 2 * spare * start * delta / (m * (m - 1) ** 2))

    def pairs_level(i, j):
        m, share = max(i, j) + 1, min(1 / 32, spare)
        return -math.log(share * (2 * delta / start**2 if m <= start else delta / (m * (m - 1) ** 2)))

    def close_level(i, j):
        share = 1 / 16 if from_two else spare
        return math.log(max(start * (start - 1), 1) / (share * delta)) if max(i, j) < start else pairs_level(i, j)

    def beats(i, j, level):
        w, l = int(tally.wins[i, j]), int(tally.wins[j, i])  # noqa: E741
        prior, log_prior = (5, math.log(630)) if from_two else (0.5, -math.log(math.pi))
        log_m = math.lgamma(w + prior) + math.lgamma(l + prior) - math.lgamma(w + l + 2 * prior) + log_prior
        return w > l and log_m + (w + l) * math.log(2) >= level(i, j)

    def near(i, j, level):
        w, l, t = int(tally.wins[i, j]), int(tally.wins[j, i]), int(tally.ties[i, j])  # noqa: E741
        worst = 0.5 - margin
        fortunes = [(1 + s * (1 - worst)) ** w * (1 - s * worst) ** l * (1 + s * (0.5 - worst)) ** t for s in BETS]
        return math.log(np.mean(fortunes)) >= level(i, j)

    def over_all(arm, says, level):
        for others, needed in ((everyone, level), (active, pairs_level)):
            if len(others) > 1 and all(says(arm, j, needed) for j in others if j != arm):
                return True
        return False

    for i in active:
        if over_all(i, beats, winner_level):
            return "winner", {names[i]}
    none_level = winner_level if unchanged else pairs_level
    if len(active) > 1 and all(any(beats(j, i, none_level) for j in active if j != i) for i in active):
        return "no condorcet winner", {None}
    close = {names[i] for i in active if margin > 0 and len(active) > 1 and over_all(i, near, close_level)}
    return ("practically tied", close) if close else ("not yet", set(names))


@settings(deadline=None)
@given(tallies(), st.sampled_from([0.1, 0.5, 0.95]), st.sampled_from([0, 0.05, 0.2, 0.4]))
def test_against_the_definition(tally, confidence, margin):
    found = verdict(tally, confidence=confidence, margin=margin)
    kind, named = literal(tally, 1 - confidence, margin)
    assert found.kind == kind
    assert kind == "not yet" or found.leader in named
    assert (found.winner is not None) == (kind == "winner")
    assert bool(found.cycle) == (kind == "no condorcet winner")
    test = CertaintyTest(tally._replace(strength=COMPARISONS), confidence)
    assert_adds_up(found, tally, test, certainly_beats(tally, confidence))
