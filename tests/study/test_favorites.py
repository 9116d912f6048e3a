"""Voters who favor an arm: p-values by enumeration, false alarms among honest voters, and a ring that is found."""

import gzip
import io
import itertools
import os
from math import comb
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import duels
from duels.study.voters import voter_tests
from duels.study.voters.voter_tests import LEVEL, find_favorites

REAL = Path(os.environ.get("DUELS_DATA", Path(__file__).parents[3] / "shared" / "data")) / "votes"


def test_p_values_by_enumeration():
    """Three pairs: who gave which vote is drawn without replacement, so all choices count alike."""
    n, all_won, total = np.array([2, 1, 3]), np.array([3, 1, 4]), np.array([5, 4, 6])
    ways = {}
    for counts in itertools.product(*(range(k + 1) for k in n)):
        chances = [comb(g, x) * comb(t - g, k - x) / comb(t, k) for x, k, g, t in zip(counts, n, all_won, total)]
        ways[sum(counts)] = ways.get(sum(counts), 0) + np.prod(chances)
    for won in range(7):
        found = voter_tests._at_least(n, np.array([won, 0, 0]), all_won, total, 0.0, 1.0)
        assert found == pytest.approx(max(sum(p for k, p in ways.items() if k >= won), 1e-12))


@pytest.mark.parametrize("deviation", [0.3, 1.2])
def test_tastes_are_integrated_over(deviation):
    """With many votes of others a vote is for the arm with σ(l + taste): by sampling, with 4 standard errors."""
    rng = np.random.default_rng(1)
    share, n = np.array([0.3, 0.6]), np.array([4, 3])
    logit = np.log(share / (1 - share))
    taste = rng.normal(0, deviation, 200_000)
    chosen = sum(rng.binomial(k, 1 / (1 + np.exp(-(each + taste)))) for k, each in zip(n, logit))
    for won in (3, 5, 7):
        p = (chosen >= won).mean()
        found = voter_tests._at_least(
            n, np.array([won, 0]), (share * 10**7).astype(int), np.full(2, 10**7), deviation**2, 1.5
        )
        assert found == pytest.approx(p, abs=4 * (p * (1 - p) / len(taste)) ** 0.5)


def honest(rng, arms, votes_of, taste):
    """Votes of voters on random pairs: strengths, and a normal taste of each voter for each arm."""
    voter = np.repeat(np.arange(len(votes_of)), votes_of)
    one = rng.integers(arms, size=len(voter))
    other = (one + rng.integers(1, arms, size=len(voter))) % arms
    low, high = np.minimum(one, other), np.maximum(one, other)
    worth = rng.normal(0, 0.5, arms) + rng.normal(0, taste, (len(votes_of), arms))
    chance = 1 / (1 + np.exp(worth[voter, low] - worth[voter, high]))
    return voter, low, high, rng.random(len(voter)) < chance, np.ones(len(voter), np.int64)


CROWDS = [
    (4, [40] * 30, 0.0),  # arms, votes of each voter, standard deviation of taste
    (4, [40] * 30, 0.6),
    (10, [5] * 500 + [300] * 10, 0.6),  # most have a few votes, some very many
    (6, [10] * 200 + [300] * 10, 1.0),
]


def alarms(arms, votes_of, taste, logs, seed=2):
    rng = np.random.default_rng(seed)
    return sum(bool((find_favorites(*honest(rng, arms, votes_of, taste)).p <= LEVEL).any()) for _ in range(logs))


@pytest.mark.parametrize(("arms", "votes_of", "taste"), CROWDS)
def test_honest_voters_with_tastes_of_their_own_are_not_listed(arms, votes_of, taste):
    """An alarm in 1 % of 25 logs at most: more than 3 of them less than once in 10⁴ times."""
    assert alarms(arms, votes_of, taste, 25) <= 3


@pytest.mark.deep
@pytest.mark.parametrize(("arms", "votes_of", "taste"), CROWDS)
def test_honest_voters_in_many_logs(arms, votes_of, taste):
    """An alarm in 1 % of 400 logs at most: more than 13 of them less than once in 10⁴ times."""
    assert alarms(arms, votes_of, taste, 400, seed=3) <= 13


def test_without_tastes_honest_voters_would_be_listed(monkeypatch):
    monkeypatch.setattr(voter_tests, "_taste", lambda cells: 0.0)
    assert alarms(*CROWDS[3], 5) == 5


def with_ring(votes, arms, ring, each, target, rng):
    """The votes and those of a ring, whose votes on random pairs are for the target wherever it is shown."""
    voter, low, high, second, _ = votes
    one = rng.integers(arms, size=ring * each)
    other = (one + rng.integers(1, arms, size=len(one))) % arms
    new_low, new_high = np.minimum(one, other), np.maximum(one, other)
    chosen = np.where(new_low == target, False, np.where(new_high == target, True, rng.random(len(one)) < 0.5))
    who = voter.max() + 1 + np.repeat(np.arange(ring), each)
    columns = [np.append(a, b) for a, b in ((voter, who), (low, new_low), (high, new_high), (second, chosen))]
    return (*columns, np.ones(len(columns[0]), np.int64))


def check_ring(arms, voters, votes, ring, each, target, taste):
    rng = np.random.default_rng(4)
    rate = rng.gamma(0.3, 1, voters)
    crowd = honest(rng, arms, rng.multinomial(votes, rate / rate.sum()), taste)
    given = with_ring(crowd, arms, ring, each, target, rng)
    found = find_favorites(*given)
    listed = np.flatnonzero(found.p <= LEVEL)
    first = given[0].max() + 1 - ring
    assert (listed >= first).all()
    assert (found.arm[listed] == target).all()
    return len(listed)


def test_a_ring_of_thirty_is_found():
    """Thirty of three thousand voters, with about forty votes on their arm, and nobody else."""
    assert check_ring(arms=20, voters=3_000, votes=60_000, ring=30, each=400, target=7, taste=0.3) >= 29


@pytest.mark.deep
@pytest.mark.parametrize("taste", [0.0, 0.3, 0.6])
def test_a_ring_of_thirty_among_57_000_is_found(taste):
    """A million votes on sixty models; each of the ring has about fifty or ninety votes on its own."""
    for each, least in ((1500, 25), (2700, 30)):
        assert check_ring(60, 57_000, 1_000_000, 30, each, 7, taste) >= least


def test_agreement_lists_them_and_the_verdict_points_there():
    rng = np.random.default_rng(5)
    crowd = honest(rng, 5, [30] * 60, 0.2)
    voter, low, high, second, _ = with_ring(crowd, 5, 3, 150, 2, rng)
    rows = [
        {
            "left": f"m{a}",
            "right": f"m{b}",
            "winner": "right" if won else "left",
            "voter": f"v{k}",
            "question_id": place,
        }
        for place, (k, a, b, won) in enumerate(zip(voter.tolist(), low.tolist(), high.tolist(), second.tolist()))
    ]
    found = duels.measure_agreement(rows)
    listed = {row.voter for row in found.voters if row.favors_arm}
    assert listed == {"v60", "v61", "v62"}
    one = next(row for row in found.voters if row.voter == "v60")
    assert (one.favorite, one.chosen == one.of) == ("m2", True)
    assert one.by_others < one.of
    assert f"v60 (m2: {one.chosen} of {one.of}, expected {one.by_others:.0f})" in str(found)
    (note,) = duels.analyze(rows).notes
    assert note.startswith(
        "3 voters favor an arm (v60, v61, v62). The verdict counts their votes: `duels votes agreement`"
    )
    assert duels.analyze(rows, without=listed).notes == ()
    many = duels.analyze(pl.DataFrame(rows)).notes  # by columns, where voters are read for the first votes only
    assert many == (note,)


def test_small_and_odd_logs():
    nobody = find_favorites(*(np.zeros(0, np.int64) for _ in range(5)))
    assert len(nobody.p) == 0
    alone = [{"left": "a", "right": "b", "winner": "left", "voter": "ann"}] * 500  # nobody else voted on the pair
    row = duels.measure_agreement(alone).voters[0]
    assert (row.favorite, row.p_favor, row.favors_arm) == (None, 1.0, False)
    ties = [{"left": "a", "right": "b", "winner": "tie", "voter": name} for name in ("ann", "bob")]
    assert str(duels.measure_agreement(ties)).endswith("Voters who favor an arm: none.")


def real_votes(name, **columns):
    """Votes of real people, as a frame of left, right, winner and what else is asked for."""
    frame = pl.read_csv(io.BytesIO(gzip.decompress((REAL / name).read_bytes())), infer_schema=False)
    return frame.select(**{role: pl.col(column) for role, column in columns.items()})


@pytest.mark.skipif(not REAL.exists(), reason=f"there are no votes in {REAL}")
def test_nobody_of_124_people_favors_a_model():
    names = {"left": "left", "right": "right", "winner": "winner", "voter": "worker", "prompt": "prompt"}
    assert not any(row.favors_arm for row in duels.measure_agreement(real_votes("llmfao-crowd.csv.gz", **names)).voters)


@pytest.mark.skipif(not REAL.exists(), reason=f"there are no votes in {REAL}")
def test_a_ring_of_thirty_among_real_votes():
    """300,000 votes drawn from 18,907 real ones on twenty models; thirty of 5,030 voters always vote for a weak one."""
    names = {"left": "model_a", "right": "model_b", "winner": "human"}
    real = real_votes("judges-and-people/votes.csv.gz", **names).filter(pl.col("winner").is_in(["model_a", "model_b"]))
    models = real["left"].append(real["right"]).unique().sort().to_list()
    number = {name: k for k, name in enumerate(models)}
    rng = np.random.default_rng(6)
    drawn = real[rng.integers(len(real), size=300_000)]
    left, right = (drawn[side].replace_strict(number).to_numpy() for side in ("left", "right"))
    won = np.where((drawn["winner"] == "model_a").to_numpy(), left, right)
    low, high = np.minimum(left, right), np.maximum(left, right)
    crowd = rng.integers(5_000, size=len(drawn)), low, high, won == high, np.ones(len(drawn), np.int64)
    assert not (find_favorites(*crowd).p <= LEVEL).any()
    target = number["koala-13b"]
    found = find_favorites(*with_ring(crowd, 20, 30, 500, target, rng))
    listed = np.flatnonzero(found.p <= LEVEL)
    assert listed.tolist() == list(range(5_000, 5_030))
    assert (found.arm[listed] == target).all()
