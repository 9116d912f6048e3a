"""Votes with counts in a study: a row of many equal votes is as good as the votes one by one."""

import decimal
import itertools
import json
import subprocess
import sys
import time

import numpy as np
import pytest

from duels.errors import InvalidInput
from duels.policies import load_policy
from duels.server.pair_details import list_details
from duels.server.results_tab import glance, pair_history
from duels.storage import storage as registry
from duels.study import base
from duels.study.answers.past_votes import MOST_VOTES
from duels.study.create import create_study, list_studies, load_study
from duels.study.state import counts
from duels.study.state.live import _mix_rows
from duels.study.stats.tally import log_evidence
from duels.votes import read_votes, write_votes

ARMS = ["a", "b", "c", "d"]
WINNERS = ["left", "right", "tie", "both_bad"]


def reopened(url, name="study"):
    """The study as another process finds it."""
    for storage in registry._storages.values():
        storage.close()
    registry._storages.clear()
    return load_study(name, url)


def some_counts(seed, most=9, rows=20):
    dice = np.random.default_rng(seed)
    pairs = [dice.permutation(ARMS)[:2].tolist() for _ in range(rows)]
    voters = ["ann", "bob", None]
    return [
        {"left": i, "right": j, "winner": WINNERS[dice.integers(4)], "voter": voters[k % 3], "count": c}
        for k, ((i, j), c) in enumerate(zip(pairs, dice.integers(1, most + 1, rows).tolist()))
    ]


def one_by_one(rows):
    return [{key: row[key] for key in row if key != "count"} for row in rows for _ in range(row["count"])]


def assert_same_results(counted, single):
    for name in ("wins", "ties"):
        assert np.array_equal(getattr(counted.tally(), name), getattr(single.tally(), name))
    assert counted.verdict() == single.verdict()
    assert counted.leaderboard() == single.leaderboard()
    assert counted.preferences() == single.preferences()
    assert counted.ranking() == single.ranking()
    assert counted.votes().total == single.votes().total
    shown, other = list_details(counted), list_details(single)
    assert shown["pairs"] == other["pairs"]
    assert shown["over_time"][-1][1] == other["over_time"][-1][1] == counted._log.history().total
    assert glance(counted)["answers"] == glance(single)["answers"] == counted._log.history().total
    for pair in itertools.combinations(ARMS, 2):
        one, two = pair_history(counted, *pair), pair_history(single, *pair)
        assert [one[key] for key in ("wins", "losses", "ties")] == [two[key] for key in ("wins", "losses", "ties")]
        assert one["history"][-1:] == two["history"][-1:]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2))])
def test_counts_are_the_votes_one_by_one(url, seed):
    """Oracle: the same study, into which each vote was imported by itself."""
    rows = some_counts(seed)
    counted, single = (create_study(ARMS, name, url, seed=seed) for name in ("counted", "single"))
    for study, some in ((counted, rows), (single, one_by_one(rows))):
        study.tell(study.ask(), "left")
        assert study.import_votes(some) == sum(row["count"] for row in rows)
    assert_same_results(counted, single)
    assert len(counted._log.history().left) == 1 + len(rows)
    (entry,) = (entry for entry in counted.events() if entry.kind == "import")
    assert (entry.note["votes"], entry.note["rows"]) == (sum(row["count"] for row in rows), len(rows))
    assert counted.forget("ann") == single.forget("ann") == sum(row["count"] for row in rows if row["voter"] == "ann")
    assert_same_results(counted, single)
    assert counted.verdict().void == single.verdict().void
    assert_same_results(reopened(url, "counted"), load_study("single", url))
    assert [info.answers for info in list_studies(url)] == [counted._log.history().total] * 2
    assert load_study("counted", url).check() == 5


def test_the_policy_learns_the_counts_in_any_order(url):
    """Wins of each pair in RUCB's state are the counts, however they are mixed."""
    rows = some_counts(4)
    study = create_study(ARMS, "study", url, "rucb")
    study.import_votes(rows)
    state, tally = study._log.read(lambda _, history: history.catch_up()).state, study.tally()
    assert np.array_equal(state.wins, tally.wins)  # ties are not entered, see Goal.ties


def test_rows_are_mixed_evenly():
    # a has 2 votes at 1/4 and 3/4, b has 4 at 1/8, 3/8, 5/8, 7/8: b a b b a b. A single row or an import ends a run.
    assert _mix_rows(np.array([2, 4]), np.array([1, 1])).tolist() == [1, 0, 1, 1, 0, 1]
    assert _mix_rows(np.array([2, 4]), np.array([1, 2])).tolist() == [0, 0, 1, 1, 1, 1]
    assert _mix_rows(np.array([1, 2, 2, 1, 1, 3]), np.ones(6)).tolist() == [0, 1, 2, 1, 2, 3, 4, 5, 5, 5]
    assert _mix_rows(np.array([1, 1]), np.ones(2)).tolist() == [0, 1]


@pytest.mark.parametrize("most", [60, 10**5])
@pytest.mark.parametrize(
    "policy", ["winner_stays", *(pytest.param(one, marks=pytest.mark.deep) for one in ("dts", "verdict"))]
)
def test_the_state_does_not_depend_on_when_it_is_computed(url, now, policy, most, monkeypatch):
    """A study that is asked after each step and one that is replayed at the end ask the same."""
    monkeypatch.setattr(counts, "SAMPLE", most)
    study = create_study(ARMS, "study", url, policy, seed=3)
    for seed in range(4):
        for _ in range(3):
            study.tell(study.ask(), WINNERS[seed])
        for rows in (some_counts(seed, most=20, rows=5), some_counts(seed + 9, most=20, rows=5)):
            study.import_votes(rows)
            study.best_arm  # noqa: B018  # brings the policy's state up to date
        study.import_votes(one_by_one(some_counts(seed, rows=2)))
    asked = study.ask()
    assert study.check() == study._log.history().seq
    again = reopened(url)._log.history()
    assert again.is_sampled == (most == 60)
    states = [history.catch_up().state for history in (study._log.history(), again)]
    assert all(np.array_equal(one, other) for one, other in zip(*states))
    assert again.names[again.left[asked.id]] == asked.left


def test_the_sample_keeps_every_row_and_the_proportions(url, monkeypatch):
    monkeypatch.setattr(counts, "SAMPLE", 1000)
    study = create_study(["a", "b", "c"], "study", url, "rucb")
    rows = [("a", "b", 6_000_000), ("b", "a", 3_000_000), ("c", "a", 1)]
    study.import_votes([{"left": i, "right": j, "winner": "left", "count": n} for i, j, n in rows])
    wins = study._log.read(lambda _, history: history.catch_up()).state.wins
    assert (wins[0, 1], wins[1, 0], wins[2, 0]) == (1 + 667, 1 + 333, 1)  # 999,999 of 1,000 by thirds, and one each
    assert study.tally().wins[0, 1] == 6_000_000


def test_a_billion_votes_are_an_import_of_a_few_rows(url, tmp_path):
    """Of 20 arms, in each of 190 pairs the first wins 51 %: under a second, and it is known who is best."""
    names = [f"arm {k:02d}" for k in range(20)]
    rows = [
        {"left": i, "right": j, "wins_left": 2_700_000, "wins_right": 2_500_000, "ties": 70_000}
        for k, i in enumerate(names)
        for j in names[k + 1 :]
    ]
    study = create_study(names, "study", url)
    started = time.perf_counter()
    assert study.import_votes(rows) == 190 * 5_270_000 > 10**9
    found = study.verdict()
    took = time.perf_counter() - started
    assert (found.kind, found.winner) == ("winner", "arm 00")
    assert took < 1
    assert "1,001,300,000 answers" in study._repr_html_()
    assert sum(row.answers for row in study.leaderboard()) == 2 * 1_001_300_000
    assert study.ask(allow_self=False).id == 570
    assert (tmp_path / "duels.db").stat().st_size < 200_000
    write_votes(study.votes(), tmp_path / "out.csv")
    assert read_votes(tmp_path / "out.csv").total == 1_001_300_000


def test_counts_are_replayed_by_another_process(url):
    study = create_study(ARMS, "study", url, seed=2)
    study.import_votes(some_counts(5, most=2**33))
    study.tell(study.ask(), "tie")
    program = f"""
import json, duels
study = duels.load_study("study", {url!r})
tally = study.tally()
print(json.dumps([tally.wins.tolist(), tally.ties.tolist(), study.ask()[:3], study.check()]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=120, text=True)
    wins, ties, asked, events = json.loads(done.stdout)
    assert wins == study.tally().wins.tolist()
    assert ties == study.tally().ties.tolist()
    assert max(map(max, wins)) > 2**32
    assert (tuple(asked), events) == (study.duel(21)[:3], 5)


def test_a_snapshot_has_counts(url, monkeypatch):
    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 2)
    study = create_study(ARMS, "study", url)
    study.import_votes(some_counts(6, most=2**33))
    before, total = study.tally(), study._log.history().total
    again = reopened(url)
    assert again._log.history().snapshot_seq == 2
    assert np.array_equal(again.tally().wins, before.wins)
    assert (again._log.history().total, again.votes()) == (total, study.votes())
    again.tell(again.ask(), "left")
    assert again.forget("bob") > 0
    assert again._log.history().total == 1 + sum(vote.count for vote in again.votes() if vote.duel != "20")
    assert again.check() == 5


def test_later_counts_of_one_take_no_room(url):
    study = create_study(ARMS, "study", url)
    study.import_votes([{"left": "a", "right": "b", "winner": "left", "count": 5}])
    study.import_votes([("a", "c", "left")])
    study.undo(1)
    assert (len(study._log.history().count), study._log.history().total) == (1, 5)


def test_what_stands_for_many_votes_is_not_undone(url):
    study = create_study(ARMS, "study", url)
    study.import_votes([{"left": "a", "right": "b", "winner": "left", "count": 1000}])
    with pytest.raises(InvalidInput, match="duel 0 stands for 1,000 imported votes"):
        study.undo(0)
    assert study._log.history().total == 1000
    assert study.verdict().void is None


def test_more_votes_than_can_be_told_apart_are_refused(url):
    study = create_study(ARMS, "study", url)
    half = [{"left": "a", "right": "b", "winner": "left", "count": 6 * 10**11}]
    many = [{"left": "a", "right": "b", "winner": "left", "count": 2**52}] * 3000  # their sum is not an int64
    with pytest.raises(InvalidInput, match="more votes than the limit of 1,000,000,000,000"):
        study.import_votes(many)
    study.import_votes(half)
    with pytest.raises(InvalidInput, match="more votes than the limit of 1,000,000,000,000"):
        study.import_votes(half)
    assert study._log.history().total == 6 * 10**11


def test_the_evidence_of_the_most_votes_is_right():
    """Oracle: Stirling's series in 60 digits, whose next term is below 10⁻⁵⁰ here."""
    digits = decimal.Context(60)
    pi, half = decimal.Decimal("3.14159265358979323846264338327950288419716939937510582"), decimal.Decimal("0.5")

    def log_gamma(x):
        return (x - half) * x.ln() - x + (2 * pi).ln() / 2 + 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5)

    with decimal.localcontext(digits):
        for lead in (0, 10**6, 3 * 10**6, 5 * 10**6):
            wins, n = MOST_VOTES // 2 + lead, decimal.Decimal(MOST_VOTES)
            losses = MOST_VOTES - wins
            beta = log_gamma(wins + half) + log_gamma(losses + half) - log_gamma(n + 1)
            exact = beta - pi.ln() + n * decimal.Decimal(2).ln()
            assert float(log_evidence(wins, losses)) == pytest.approx(float(exact), abs=0.01)


@pytest.mark.parametrize("form", ["duels", "arena"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_counts_are_written_and_read(tmp_path, form, suffix):
    votes = read_votes(some_counts(7))
    write_votes(votes, tmp_path / f"votes.{suffix}", form)
    again = read_votes(tmp_path / f"votes.{suffix}")
    assert again == votes
    assert again.count.tolist() == votes.count.tolist()
    write_votes([("a", "b", "left")], tmp_path / f"plain.{suffix}", form)
    assert "count" not in (tmp_path / f"plain.{suffix}").read_text()


def test_with_a_sample_questions_are_about_what_all_votes_leave_open(url):
    """b is certainly worse by all votes; a policy that knows a sample of them alone would ask about it still."""
    study = create_study(["a", "b", "c"], "study", url)
    assert load_policy(study.policy).asks_for(0.95, 0.0)
    rows = [("a", "b", 10**9), ("b", "a", 10**9 - 10**6), ("a", "c", 10**9), ("c", "a", 10**9)]
    study.import_votes([{"left": i, "right": j, "winner": "left", "count": n} for i, j, n in rows])
    asked = [frozenset(study.ask(allow_self=False)[1:3]) for _ in range(100)]
    assert asked.count(frozenset("ac")) + asked.count(frozenset("bc")) > 80
