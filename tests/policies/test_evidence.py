"""The evidence of one pair: against scipy and numerical integration, and that it is fair under its null."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from duels.policies.evidence import (
    BETS,
    evidence,
    is_certain,
    log_closeness,
    margin_level,
    no_winner_level,
    winner_level,
)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (14, 0), (30, 18), (250, 260), (60_000, 59_000)])
def test_the_evidence_is_a_ratio_of_beta_functions(wins, losses):
    expected = special.betaln(wins + 5, losses + 5) - special.betaln(5, 5) + (wins + losses) * math.log(2)
    assert evidence(wins, losses) == pytest.approx(expected, abs=1e-9 * (wins + losses + 1))


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (3, 1), (12, 7), (20, 25)])
def test_it_is_the_mean_likelihood_ratio_over_the_prior(wins, losses):
    def ratio(p):
        return (2 * p) ** wins * (2 - 2 * p) ** losses * stats.beta.pdf(p, 5, 5)

    assert math.exp(evidence(wins, losses)) == pytest.approx(integrate.quad(ratio, 0, 1)[0], rel=1e-8)


def test_it_is_a_martingale_if_the_arms_are_level():
    for wins, losses in itertools.product(range(12), repeat=2):
        after = (math.exp(evidence(wins + 1, losses)) + math.exp(evidence(wins, losses + 1))) / 2
        assert after == pytest.approx(math.exp(evidence(wins, losses)), rel=1e-12)


def test_the_quick_check_of_certainty_leaves_nothing_out():
    seen = set()
    for level in (math.log(27), math.log(41), math.log(2000)):
        for wins, losses in itertools.product(range(90), range(60)):
            expected = wins > losses and evidence(wins, losses) >= level
            assert is_certain(wins, losses, level) == expected
            seen.add(expected)
    for n, level in itertools.product((300, 3000), (7.6, 15.0, 40.0)):  # leads that are small beside n
        for wins in range(n // 2, n):
            assert is_certain(wins, n - wins, level) == (2 * wins > n and evidence(wins, n - wins) >= level)
    assert seen == {True, False}


def test_closeness_is_the_mean_of_the_fortunes():
    for wins, losses, ties, margin in ((0, 0, 0, 0.05), (3, 4, 5, 0.1), (50, 45, 20, 0.02), (400, 420, 300, 0.2)):
        m = 0.5 - margin
        fortunes = [(1 + bet * (1 - m)) ** wins * (1 - bet * m) ** losses * (1 + bet * margin) ** ties for bet in BETS]
        assert log_closeness(wins, losses, ties, margin) == pytest.approx(math.log(np.mean(fortunes)), abs=1e-10)
    assert (BETS[0], BETS[-1], len(BETS)) == (pytest.approx(0.02), pytest.approx(1.6), 16)


def test_closeness_survives_many_answers():
    assert log_closeness(10**6, 10**6, 10**6, 0.05) > 1000
    assert log_closeness(0, 10**6, 0, 0.05) < -1000


@pytest.mark.parametrize("margin", [0.0, 0.01, 0.05, 0.2, 0.49])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_closeness_is_a_supermartingale_if_the_arm_is_worse(margin, share):
    """With ties in a share of answers and a score of ½ − margin or less, a bet never gains on average."""
    for score in (0.5 - margin, 0.9 * (0.5 - margin)):
        win = score - share / 2
        if win < 0:
            continue
        chances = (win, 1 - win - share, share)
        for counts in itertools.product(range(0, 13, 4), repeat=3):
            before = math.exp(log_closeness(*counts, margin))
            nexts = (tuple(n + (k == which) for k, n in enumerate(counts)) for which in range(3))
            after = sum(chance * math.exp(log_closeness(*one, margin)) for chance, one in zip(chances, nexts))
            assert after <= before * (1 + 1e-12)
            if score == 0.5 - margin:
                assert after == pytest.approx(before, rel=1e-9)


def test_closeness_grows_with_the_margin():
    for counts in ((3, 4, 5), (50, 45, 20), (5, 30, 0), (30, 5, 7)):
        values = [log_closeness(*counts, margin) for margin in np.linspace(0, 0.45, 19)]
        assert (np.diff(values) > 0).all()


def test_ties_are_evidence_of_closeness_but_wins_more_so():
    assert log_closeness(0, 0, 100, 0.05) > 0
    assert log_closeness(10, 0, 0, 0.05) > log_closeness(5, 0, 5, 0.05) > log_closeness(0, 0, 10, 0.05)


def test_levels():
    # At δ = 0.05: 1 + 2/δ = 41 with three arms or more, 4/(3δ) = 80/3 with two; a loss of each of ten arms
    # needs ½ + 9 (20 + ¼) = 182.75; closeness among ten 16 · 10/0.05.
    assert winner_level(0.05, 3) == winner_level(0.05, 500) == pytest.approx(math.log(41))
    assert winner_level(0.05, 2) == pytest.approx(math.log(80 / 3))
    assert no_winner_level(0.05, 10) == pytest.approx(math.log(182.75))
    assert margin_level(0.05, 10) == pytest.approx(math.log(160 / 0.05))
    for arms in range(2, 200):
        assert no_winner_level(0.05, arms) <= no_winner_level(0.05, arms + 1)
        assert margin_level(0.05, arms) <= margin_level(0.05, arms + 1)
