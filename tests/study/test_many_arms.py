"""Studies of thousands of arms: what is skipped, shared or cut for speed makes no number wrong."""

import itertools
import time

import numpy as np
import pytest

from duels.server.pair_details import MOST_PAIRS, list_details
from duels.server.results_tab import MOST_OPEN_PAIRS, describe_verdict
from duels.study.create import create_study
from duels.study.stats import leaderboard as tables
from duels.study.stats.certainty import certainly_beats, log_thresholds
from duels.study.stats.levels import share
from duels.study.stats.tally import Tally, distinct_intervals, interval, log_evidence
from duels.study.stats.verdict import verdict


def many_arms(arms=120, duels=4000, seed=0):
    """A tally of many arms few of which have met; some were added later, some are retired."""
    rng = np.random.default_rng(seed)
    wins, ties = np.zeros((2, arms, arms), np.int64)
    first, second = rng.integers(0, arms, (2, duels)) // rng.integers(1, 12, (2, duels))
    np.add.at(wins, (np.minimum(first, second), np.maximum(first, second)), 1)
    np.add.at(wins, (first[:1500], second[:1500]), 1)
    np.add.at(ties, (first[:500], second[:500]), 1)
    for counts in (wins, ties):
        np.fill_diagonal(counts, 0)
    active = rng.random(arms) < 0.9
    return Tally(tuple(f"arm {k}" for k in range(arms)), wins, ties + ties.T, active, max(2, arms - 7))


def test_intervals_and_certainty_are_those_of_pairs_computed_one_by_one():
    tally = many_arms(duels=40_000)
    delta, halves = share(0.05, tally), tally.wins + tally.ties / 2
    evident = log_evidence(tally.wins, tally.wins.T) >= log_thresholds(tally)
    sure = (tally.wins > tally.wins.T) & evident
    assert 10 < sure.sum() < 1000
    assert np.array_equal(certainly_beats(tally), sure)
    rows = {(row.first, row.second): row for row in tables.preferences(tally)}
    for i, j in itertools.combinations(range(len(tally.names)), 2):
        row = rows.pop((tally.names[i], tally.names[j]))
        low, high = interval(halves[i, j], halves[j, i], delta[i, j])
        assert abs(row.lower - low) + abs(row.upper - high) < 1e-12
        assert row[2:6] == (tally.wins[i, j], tally.wins[j, i], tally.ties[i, j], halves[i, j] + halves[j, i])
        assert row.estimate == (halves[i, j] / row.duels if row.duels else None)
        assert row.certain == ("first" if sure[i, j] else "second" if sure[j, i] else None)
    assert not rows


def test_counts_too_large_to_share_intervals():
    wins, losses, delta = np.array([2.0**40, 3.0]), np.array([2.0**40, 2.5]), np.array([0.01, 0.02])
    assert np.array_equal(distinct_intervals(wins, losses, delta), interval(wins, losses, delta))


@pytest.mark.parametrize("limit", [1, 7, 118, 119, 120, 7139, 7140, 10_000])
def test_pages_of_preferences_are_all_of_them(limit):
    tally, rows, after, pages = many_arms(), [], 0, 0
    while after is not None and pages < 130:
        page, after = tables.preferences_page(tally, 0.95, after, limit)
        assert len(page) == limit or after is None
        rows, pages = rows + page, pages + 1
    everything = tables.preferences(tally)
    assert rows == everything[: len(rows)]
    assert len(rows) == min(len(everything), 130 * limit)


def test_an_arm_that_is_added_makes_no_pair_come_twice():
    before, after = many_arms(6), many_arms(7)
    first, following = tables.preferences_page(before, 0.95, 0, 7)
    rest, end = tables.preferences_page(after, 0.95, following, 100)
    assert end is None
    pairs = [(row.first, row.second) for row in first + rest]
    assert len(set(pairs)) == len(pairs)
    assert {(row.first, row.second) for row in tables.preferences(before)} <= set(pairs)


@pytest.mark.parametrize("after", [2**20 * 6 + 7, 2**20 * 119 + 500, 2**53, 2**20 * 5 + 5])
def test_a_page_behind_the_last_pair_is_empty(after):
    assert tables.preferences_page(many_arms(6), 0.95, after, 10) == ([], None)


def test_a_page_of_two_thousand_arms_is_quick():
    tally = many_arms(2000, 20_000)
    began = time.process_time()
    page, after = tables.preferences_page(tally, 0.95, 1_000_000, 10_000)
    assert time.process_time() - began < 1.0
    assert len(page) == 10_000
    assert after is not None
    began = time.process_time()
    tables.leaderboard(tally)
    verdict(tally)
    assert time.process_time() - began < 5.0  # 30 s if every pair is computed


def test_details_of_many_arms_have_the_pairs_that_met_most_often(tmp_path):
    names = [f"arm {k:03d}" for k in range(150)]
    study = create_study(names, "many", f"sqlite:///{tmp_path}/duels.db", policy="random")
    rng = np.random.default_rng(1)
    pairs = [tuple(sorted(rng.choice(150, 2, replace=False))) for _ in range(900)]
    study.import_votes([{"left": names[i], "right": names[j], "winner": "left"} for i, j in pairs])
    found = list_details(study)
    everything = {(row.first, row.second): row._asdict() for row in study.preferences()}
    assert all(everything[row["first"], row["second"]] == row for row in found["pairs"])
    assert found["pairs_total"] == 150 * 149 // 2 == len(everything)
    assert found["pairs_met"] == sum(row["duels"] > 0 for row in everything.values())
    most = sorted((row["duels"] for row in everything.values()), reverse=True)
    assert [row["duels"] for row in found["pairs"]] == most[:MOST_PAIRS]


def test_the_verdict_before_the_first_duel_is_short(tmp_path):
    names = [f"arm {k:03d}" for k in range(200)]
    study = create_study(names, "many", f"sqlite:///{tmp_path}/duels.db", policy="random")
    assert len(study.verdict().open_pairs) == 199 * 100
    assert len(describe_verdict(study.verdict())["open_pairs"]) == MOST_OPEN_PAIRS
