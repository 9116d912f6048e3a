"""While pairs are sparse, arms are ranked by rating: leads and scores say little about arms that met few others."""

import copy
import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest

import duels
from duels.rating.simple import simple_ratings
from duels.study.leaderboard import leaderboard
from duels.study.tally import RANKED, RANKED_BY_RATING, as_tally, is_sparse, leaders, met, ranked, ranked_words
from duels.study.verdict import verdict

CROWD = Path("/work/shared/data/votes/llmfao-crowd.csv.gz")


def chain(arms, *more, won=3, lost=1):
    """Each arm beats the next one; others do not meet, except as given: (winner, loser, how often)."""
    wins = np.zeros((arms, arms), dtype=np.int64)
    for arm in range(arms - 1):
        wins[arm, arm + 1], wins[arm + 1, arm] = won, lost
    for winner, loser, count in more:
        wins[winner, loser] += count
    return as_tally([f"arm {k}" for k in range(arms)], wins)


def order(tally):
    return [arm for _, arm in ranked(tally).ranks]


def test_the_rule():
    """12 arms have 66 pairs, of which three quarters are 49.5."""
    assert is_sparse(49, 12)
    assert not is_sparse(50, 12)
    assert not is_sparse(0, 9)
    assert is_sparse(0, 10)
    assert is_sparse(0, 300)
    assert not is_sparse(0, 301)


def test_a_chain_is_ranked_from_top_to_bottom():
    """All but the last lead one arm, and the scores of the middle are equal; ratings fall by log 3 each."""
    tally = chain(12)
    assert order(tally) == list(range(12))
    assert ranked_words(tally) == RANKED_BY_RATING
    rows = leaderboard(tally)
    assert [row.rating for row in rows] == sorted([row.rating for row in rows], reverse=True)
    step = 400 * np.log10(3)
    np.testing.assert_allclose(np.diff([row.rating for row in rows]), -step, atol=0.11)
    assert ranked_words(chain(9)) == RANKED


def test_an_arm_that_leads_all_is_first_whatever_its_rating():
    """Arm 3 leads all others, each by 1 win; arm 0 has many more wins over weak ones."""
    tally = chain(12, *((3, k, 4) for k in range(12) if k != 3), (0, 11, 500), won=40, lost=1)
    tally.wins[3, 2] += 40
    assert np.argmax(simple_ratings(tally.wins, tally.ties)) != 3
    assert ranked_words(tally) == RANKED_BY_RATING
    assert order(tally)[0] == 3


def test_arms_without_duels_come_last_and_retired_ones_after_them():
    wins = np.zeros((13, 13), dtype=np.int64)
    wins[:12, :12] = chain(12).wins
    wins[11], wins[:, 11] = 0, 0
    tally = as_tally([f"arm {k}" for k in range(13)], wins, active=[False] + [True] * 12)
    assert order(tally) == [*range(1, 13), 0]
    rows = leaderboard(tally)
    assert [row.rating for row in rows[-3:-1]] == [None, None]
    assert rows[-1].arm == "arm 0"
    assert rows[-1].rating is not None


def test_equal_arms_share_a_rank():
    wins = np.zeros((12, 12), dtype=np.int64)
    for k in range(12):
        wins[k, (k + 1) % 12] = 1
    tally = as_tally([f"arm {k}" for k in range(12)], wins)
    assert {rank for rank, _ in ranked(tally).ranks} == {1}
    assert leaders(tally) == list(range(12))


@pytest.mark.deep
def test_a_studys_verdict_names_the_same_leader():
    """Answer by answer, from sparse to dense."""
    rng = np.random.default_rng(1)
    study, words = duels.create_study([f"arm {k}" for k in range(11)], storage="sqlite://", policy="random"), set()
    for _ in range(150):
        i, j = rng.permutation(11)[:2]
        study.import_votes([{"left": f"arm {i}", "right": f"arm {j}", "winner": "left"}])
        tally = study.tally()
        found = study.verdict()
        assert (found.leader, found.level_with) == (tally.names[leaders(tally)[0]], named(tally, leaders(tally)[1:]))
        assert found.leader == leaderboard(tally)[0].arm
        words.add(ranked_words(tally))
    assert words == {RANKED, RANKED_BY_RATING}
    assert np.count_nonzero(met(tally)) > 0.75 * 110


def named(tally, arms):
    return tuple(tally.names[arm] for arm in arms)


@pytest.mark.skipif(not CROWD.exists(), reason="the crowd's votes are not here")
def test_gpt_4_is_first_in_the_crowds_votes():
    found = duels.analyse(CROWD)
    assert found.leaderboard[0].arm == "GPT 4"
    assert found.verdict.leader == "GPT 4"
    assert RANKED_BY_RATING in str(found)
    table = dict(duels.ratings(CROWD)["arm", "rating"].rows())
    assert all(abs(row.rating - table[row.arm]) <= 0.051 for row in found.leaderboard)


def test_a_verdict_computes_the_ranking_only_when_it_is_looked_at(monkeypatch):
    """A study looks at the kind after every answer, and a rating of 200 arms takes many times as long as that."""
    fitted = []
    monkeypatch.setattr("duels.study.tally.simple_ratings", lambda *counts: fitted.append(1) or simple_ratings(*counts))
    now = verdict(chain(12))
    assert now.kind == "not yet"
    assert now.arms == 12
    assert not fitted
    assert now.leader == "arm 0"
    assert now.open_pairs[0][0] == "arm 0"
    assert now.duels_to_go is not None
    assert len(fitted) == 1
    again = verdict(chain(12))
    assert pickle.loads(pickle.dumps(again)) == now == copy.copy(verdict(chain(12)))
    assert hash(verdict(chain(12))) == hash(now)
    assert repr(verdict(chain(12))) == repr(now)
    assert dataclasses.replace(verdict(chain(12)), void="undone").leader == "arm 0"


def test_a_look_is_of_the_counts_when_it_was_taken():
    """The ranking is computed when it is looked at, and by then there may be more answers."""
    study = duels.create_study([f"arm {k}" for k in range(40)], storage="sqlite://", policy="random")
    study.import_votes(votes_of(chain(40)))
    before, tally = study.verdict(), study.tally()
    wins = np.zeros((40, 40), np.int64)
    wins[39, :39] = 9
    study.import_votes(votes_of(as_tally(tally.names, wins)))
    after = study.verdict()
    assert before.leader == "arm 0"
    assert before == verdict(tally, answerers=before.answerers)
    assert after.leader == "arm 39"
    assert after == verdict(study.tally(), answerers=after.answerers)


def votes_of(tally):
    return [
        {"left": tally.names[i], "right": tally.names[j], "wins_left": int(tally.wins[i, j]), "wins_right": 0}
        for i, j in zip(*np.nonzero(tally.wins))
    ]
