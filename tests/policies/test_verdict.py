"""The asking rule: steps worked by hand, and what a study tells it."""

import math

import numpy as np
import pytest
from histories import choices, told

import duels
from duels.policies import evidence, verdict

VERDICT = duels.policies.load_policy(verdict)


CERTAIN = 14  # wins in a row: with three arms or more a pair is certain at M = 41


def test_how_many_wins_in_a_row_are_certain():
    for wins, ratio in ((12, 25.4), (13, 39.2), (14, 61.4)):
        # M = Γ(w+5) Γ(5) / Γ(w+10) · 630 · 2^w
        exact = math.factorial(wins + 4) * 24 * 630 * 2**wins / math.factorial(wins + 9)
        assert exact == pytest.approx(ratio, rel=0.01)
        _, state = told("verdict", 3, [(0, 1, 1.0)] * wins)
        assert state.sure[0, 1] == (exact >= 41)
        assert state.losses.tolist() == [0, int(exact >= 41), 0]


def test_a_champion_meets_the_arm_it_is_furthest_from_beating():
    # Arm 0 has beaten 1 for certain, 2 by 8 to 4, 3 by 20 to 10: leads 4/√22 = 0.85 and 10/√40 = 1.58. Arm 1 alone has
    # a certain loss. A self-duel of 0 becomes (0, 2).
    answers = [(0, 1, 1.0)] * CERTAIN + [(0, 2, 1.0)] * 8 + [(0, 2, 0.0)] * 4 + [(0, 3, 1.0)] * 20 + [(0, 3, 0.0)] * 10
    _, state = told("verdict", 4, answers)
    picked = [helpful(state, 0, 0, seed) for seed in range(300)]
    assert set(picked) == {(0, 2), (0, 3)}
    assert picked.count((0, 3)) < 30  # only by a draw, and seldom then
    assert instead(state, 0, 1) == {(0, 2), (0, 3), (0, 1)}  # one time in ten what was proposed
    assert instead(state, 0, 3) == {(0, 3)}  # it helps
    assert instead(state, 1, 2) == {(1, 2)}
    assert (1, 0) in instead(state, 1, 1)  # arm 1 may have lost to 0 by bad luck
    assert {c for c, _ in instead(state, 1, 1)} == {0, 1, 2, 3}


def test_arms_without_a_certain_loss_are_met_first():
    # 1 has lost to 3 for certain, and is ahead of 0; 2 has not lost, and is far behind 0. 3 has met 0 and lost a bit.
    answers = [(3, 1, 1.0)] * CERTAIN + [(1, 0, 1.0)] * 3 + [(0, 2, 1.0)] * 8 + [(0, 3, 1.0)] * 4
    _, state = told("verdict", 4, answers)
    picked = [helpful(state, 0, 0, seed) for seed in range(300)]
    assert picked.count((0, 3)) > 250  # the lead over 3 is 4/√14, over 2 8/√18
    assert 0 < picked.count((0, 1)) < 45  # only by a draw
    assert instead(state, 0, 1) == {(0, 1)}  # but if proposed, it helps


def test_a_level_pair_does_not_hide_the_arm_that_wins():
    """Arm 0 is a little behind 1, which is level with it, and ahead of 2 by luck: draws still lead to 2."""
    _, state = told("verdict", 3, [(0, 1, 1.0)] * 480 + [(0, 1, 0.0)] * 500 + [(0, 2, 1.0)] * 6 + [(0, 2, 0.0)] * 5)
    picked = [helpful(state, 0, 0, seed) for seed in range(400)]
    assert 5 < picked.count((0, 2)) < 100


def test_where_all_arms_lost_the_least_clear_loss_is_asked_about():
    # 0 beats 1 by 30 to 2, 1 beats 2 by 40 to 1, 2 beats 0 by 25 to 3: the last is the least clear.
    won = {(0, 1): (30, 2), (1, 2): (40, 1), (2, 0): (25, 3)}
    answers = [(i, j, one) for (i, j), (a, b) in won.items() for one in [1.0] * a + [0.0] * b]
    _, state = told("verdict", 3, answers)
    assert state.losses.tolist() == [1, 1, 1]
    assert instead(state, 1, 2) == {(0, 2), (1, 0)}  # (1, 0): the doubt about the loss of 1
    assert instead(state, 0, 0) == {(0, 2)}


def helpful(state, i, j, seed):
    rng = np.random.default_rng(seed)
    return verdict.helpful(state.wins, state.open, state.done, state.losses, i, j, rng)


def instead(state, i, j):
    return {helpful(state, i, j, seed) for seed in range(300)}


def test_pairs_are_proposed_as_by_self_sparring():
    """Before anything is certain, arms differ by wins and losses alone."""
    _, ours = told("verdict", 3, [(0, 1, 1.0), (1, 2, 0.0), (0, 2, 0.5)])
    assert (ours.won.tolist(), ours.lost.tolist()) == ([2, 1, 2], [1, 3, 1])
    other, state = told("self_sparring", 3, [(0, 1, 1.0), (1, 2, 0.0)])
    for seed in range(50):
        one, two = np.random.default_rng(seed), np.random.default_rng(seed)
        pair = other.module.select(state, other.params, 3, one)
        if pair[0] != pair[1]:
            assert verdict.select(ours, VERDICT.params, 3, two) == pair


def test_a_margin_ends_what_is_close():
    # Two arms that are level: no winner, but each is close to the other.
    level = [(0, 1, float(k % 2)) for k in range(2000)]
    _, state = told("verdict", 2, level)
    assert not state.done.any()
    chosen, state = told("verdict:margin=0.05", 2, level)
    assert state.done.tolist() == [[False, True], [True, False]]
    assert not state.sure.any()
    known = evidence.log_closeness(1000, 1000, 0, 0.05)
    assert known >= evidence.margin_level(0.05, 2) > evidence.log_closeness(1000, 1000, 0, 0.03)
    # Ties say that arms are close, not which is better.
    _, state = told("verdict:margin=0.05", 2, [(0, 1, 0.5)] * 2000)
    assert state.done[0, 1]
    assert (state.wins.sum(), state.ties[0, 1], state.ties[1, 0]) == (0, 2000, 2000)
    assert chosen.params.margin == 0.05


def test_unanswered_duels_spread_the_questions():
    _, state = told("verdict", 4, [])
    assert instead(state, 0, 0) == {(0, 1), (0, 2), (0, 3)}
    verdict.wait(state, VERDICT.params, 0, 1)
    verdict.wait(state, VERDICT.params, 3, 0)
    assert state.open[0].tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(state.open, state.open.T)
    verdict.wait(state, VERDICT.params, 2, 2)
    assert state.open.sum() == 4
    picked = [helpful(state, 0, 0, seed) for seed in range(300)]
    assert picked.count((0, 2)) > 250  # the others wait: 0.2/√11 against 0
    assert state.wins.sum() == 0


def test_bounds_leave_out_a_half_exactly_where_a_pair_is_certain():
    rng = np.random.default_rng(3)
    both = set()
    for chance in (0.5, 0.6, 0.75, 0.9, 1.0):
        chosen, state = told("verdict", 3, [])
        for t in range(1, 121):
            verdict.update(state, chosen.params, t, 0, 1, float(rng.random() < chance))
            lower, upper = verdict.bounds(state, chosen.params, t)
            assert (lower[0, 1] > 0.5) == state.sure[0, 1]
            assert (upper[0, 1] < 0.5) == state.sure[1, 0]
            assert lower[0, 1] <= state.wins[0, 1] / t <= upper[0, 1]
            both.add(bool(state.sure[0, 1]))
    assert both == {True, False}
    np.testing.assert_allclose(lower, 1 - upper.T)
    assert (lower[0, 2], upper[0, 2], lower[2, 2], upper[2, 2]) == (0, 1, 0.5, 0.5)


def test_bounds_are_where_the_evidence_reaches_the_level():
    _, state = told("verdict", 3, [(0, 1, 1.0)] * 30 + [(0, 1, 0.0)] * 18)
    lower, upper = verdict.bounds(state, VERDICT.params, 49)
    for p in (lower[0, 1], upper[0, 1]):
        known = evidence.evidence(30, 18) - 48 * math.log(2) - 30 * math.log(p) - 18 * math.log(1 - p)
        assert known == pytest.approx(math.log(41), abs=1e-9)


def test_the_winner_is_recommended_though_another_met_more():
    answers = [(0, 1, 1.0), (1, 0, 1.0)] * 50 + [(2, 0, 1.0)] * CERTAIN + [(2, 1, 1.0)] * CERTAIN
    _, state = told("verdict", 3, answers)
    assert {verdict.recommend(state, np.random.default_rng(seed)) for seed in range(9)} == {2}
    _, state = told("verdict", 3, [(0, 1, 1.0)])
    assert {verdict.recommend(state, np.random.default_rng(seed)) for seed in range(30)} == {0, 1}


def test_a_study_sets_its_goal():
    assert str(VERDICT.with_goal(0.9, 0.02)) == "verdict:confidence=0.9,margin=0.02"
    assert (
        str(duels.policies.load_policy("verdict:margin=0.1").with_goal(0.9, 0.02))
        == "verdict:confidence=0.9,margin=0.1"
    )
    assert VERDICT.with_goal(0.9, 0.02).asks_for(0.9, 0.02)
    assert not VERDICT.asks_for(0.9, 0.0)
    assert not duels.policies.load_policy("rucb").with_goal(0.95, 0.0).asks_for(0.95, 0.0)
    assert str(duels.policies.load_policy("rucb").with_goal(0.9, 0.02)) == "rucb"


def test_it_never_meets_itself():
    _, state = told("verdict", 2, [])
    assert all(i != j for i, j in choices(VERDICT, state, 1))
