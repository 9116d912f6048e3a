"""One order: by rating, after the arm that the verdict names; and everything that is shown of it agrees."""

import copy
import csv
import dataclasses
import html
import io
import json
import pickle
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import duels_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tallies import tallies

import duels
from duels.rating.connected import rate_connected
from duels.server.app import create_app
from duels.study.create import list_studies
from duels.study.stats.leaderboard import leaderboard
from duels.study.stats.tally import as_tally, rank_arms
from duels.study.stats.verdict import describe_answers, headline, verdict

FEW = max(settings.default.max_examples // 50, 2)
CROWD = Path("/work/shared/data/votes/llmfao-crowd.csv.gz")


def chain(arms, *more, won=3, lost=1):
    """Each arm beats the next one; others do not meet, except as given: (winner, loser, how often)."""
    wins = np.zeros((arms, arms), dtype=np.int64)
    for arm in range(arms - 1):
        wins[arm, arm + 1], wins[arm + 1, arm] = won, lost
    for winner, loser, count in more:
        wins[winner, loser] += count
    return as_tally([f"arm {k}" for k in range(arms)], wins)


def order(tally, named=None):
    return [arm for _, arm in rank_arms(tally, named).ranks]


def ranks(tally, named=None):
    return {tally.names[arm]: rank for rank, arm in rank_arms(tally, named).ranks}


def test_a_chain_is_ranked_from_top_to_bottom():
    """Ratings fall by log 3 each, with few arms as with many."""
    for arms in (5, 12):
        tally = chain(arms)
        assert order(tally) == list(range(arms))
        found = leaderboard(tally)
        assert found.ranked == "ranked by Bradley–Terry rating"
        step = 400 * np.log10(3)
        np.testing.assert_allclose(np.diff([row.rating for row in found.rows]), -step, atol=0.11)


def test_an_arm_that_beats_all_others_by_little_is_not_first():
    """x beats y and z 6 to 4; y beats z 10 to 0, and has the higher rating."""
    assert ranks(as_tally(list("xyz"), [[0, 6, 6], [4, 0, 10], [4, 0, 0]])) == {"y": 1, "x": 2, "z": 3}


def test_few_duels_do_not_put_an_arm_above_others():
    """Two duels with an arm that lost much do not count for more than many with good ones."""
    wins = {"friendly": (161, 263), "vague": (9, 47)}
    tally = as_tally(["strong", *wins], [[0, 263, 47], [161, 0, 0], [9, 2, 0]])
    assert list(ranks(tally)) == ["strong", "friendly", "vague"]


def test_an_arm_that_the_verdict_names_is_first():
    tally = as_tally(list("xyz"), [[0, 6, 6], [4, 0, 10], [4, 0, 0]])
    assert order(tally) == [1, 0, 2]
    assert rank_arms(tally).overruled is None
    found = rank_arms(tally, "x")
    assert found.leaders == [0]
    assert found.ranks == [(1, 0), (2, 1), (3, 2)]
    assert found.describe(tally.names) == (
        "x is first by the verdict, though y has a higher rating; the others by Bradley–Terry rating"
    )
    assert rank_arms(tally, "y").describe(tally.names) == "ranked by Bradley–Terry rating"


def test_arms_that_are_not_compared_have_no_rank():
    """0 to 4 are a chain; 5 and 6 met each other only; 7 met nobody; 8 is retired."""
    wins = np.zeros((9, 9), dtype=np.int64)
    wins[:5, :5] = chain(5).wins
    wins[5, 6], wins[6, 5], wins[8, 0], wins[0, 8] = 9, 1, 1, 1
    tally = as_tally([f"arm {k}" for k in range(9)], wins, active=[True] * 8 + [False])
    found = rank_arms(tally)
    assert found.ranks == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (None, 5), (None, 6), (None, 7), (None, 8)]
    rows = leaderboard(tally).rows
    assert [row.rating is None for row in rows] == [False] * 5 + [True] * 3 + [False]
    assert [row.share is None for row in rows] == [False] * 5 + [True] * 3 + [False]
    # Of two parts with as many arms, the one with more votes is ranked; of equal ones, that with the first arm.
    pairs = as_tally(list("wxyz"), [[0, 1, 0, 0], [0] * 4, [0, 0, 0, 1], [0, 0, 1, 0]])
    assert ranks(pairs) == {"y": 1, "z": 1, "w": None, "x": None}
    assert ranks(as_tally(list("wxyz"), [[0, 1, 0, 0], [0] * 4, [0, 0, 0, 1], [0] * 4])) == {
        "w": 1,
        "x": 2,
        "y": None,
        "z": None,
    }


def test_retired_arms_connect_others_and_have_no_rank():
    wins = np.zeros((3, 3), dtype=np.int64)
    wins[0, 2], wins[2, 0], wins[1, 2], wins[2, 1] = 3, 1, 1, 3
    tally = as_tally(list("abr"), wins, active=[True, True, False])
    assert ranks(tally) == {"a": 1, "b": 2, "r": None}
    # Only one active arm has met another one: nothing compares the active arms.
    assert ranks(as_tally(list("abr"), [[0, 0, 3], [0] * 3, [0] * 3], active=[True, True, False])) == {
        "a": None,
        "b": None,
        "r": None,
    }
    assert rank_arms(tally._replace(wins=np.zeros((3, 3), np.int64))).leaders == []


def test_equal_arms_share_a_rank():
    wins = np.zeros((12, 12), dtype=np.int64)
    for k in range(12):
        wins[k, (k + 1) % 12] = 1
    found = rank_arms(as_tally([f"arm {k}" for k in range(12)], wins))
    assert {rank for rank, _ in found.ranks} == {1}
    assert found.leaders == list(range(12))
    # A cycle of three, and a fourth arm that all beat 3 to 0.
    wins = [[0, 0, 0, 0], [3, 0, 2, 1], [3, 1, 0, 2], [3, 2, 1, 0]]
    assert rank_arms(as_tally(list("wxyz"), wins)).ranks == [(1, 1), (1, 2), (1, 3), (4, 0)]
    # x and y did the same against p, q and r and never met.
    wins = np.zeros((5, 5))
    wins[:2, 2:], wins[2:, :2] = [8, 6, 5], [[7], [9], [10]]
    found = ranks(as_tally(list("xypqr"), wins))
    assert found["x"] == found["y"]


@settings(deadline=None)
@given(tallies(), st.randoms(use_true_random=False))
def test_names_do_not_matter(tally, random):
    arms = list(range(len(tally.names)))
    random.shuffle(arms)
    pairs = np.ix_(arms, arms)
    names = [tally.names[k] for k in arms]
    moved = as_tally(names, tally.wins[pairs], tally.ties[pairs], tally.active[arms])
    if len({rank for rank in ranks(tally).values() if rank}) == 1:  # of equal parts, the one with the first arm counts
        return
    parts = [arm for arm, rank in ranks(tally).items() if rank]
    if parts == [arm for arm, rank in ranks(moved).items() if rank]:
        assert ranks(moved) == ranks(tally)


@settings(deadline=None)
@given(tallies(), st.sampled_from([0.0, 0.1]))
def test_everything_agrees(tally, margin):
    """Headline, rank, rating, effect, verdict, table and text of random counts."""
    found = verdict(tally, confidence=0.8, margin=margin)
    table = leaderboard(tally, 0.8, found.named, found.winner)
    assert_agrees(found, table.rows, table.ranked)


def assert_agrees(found, rows, ranked):
    """What is said of the first arm is the same in the verdict and its texts, and in the rows of the leaderboard."""
    placed = [row for row in rows if row.rank is not None]
    assert rows[: len(placed)] == placed
    assert [row.rank for row in placed] == sorted(row.rank for row in placed)
    rest = placed[1:] if found.named else placed
    assert [row.rating for row in rest] == sorted((row.rating for row in rest), reverse=True)
    shares = [row.share for row in rest if len(placed) > 1]
    assert np.all(np.diff(shares) <= 1e-6)
    if found.leader is not None and placed:
        first = [row.arm for row in placed if row.rank == 1]
        assert found.leader == first[0]
        if found.kind == "not yet":
            assert [found.leader, *found.level_with] == first
    if found.named and placed and max(row.rating for row in placed) > placed[0].rating:
        assert ranked.startswith(f"{found.named} is first by the verdict, though")
    shown = headline(found.as_dict())
    if found.effect is not None:
        assert (found.effect.share, found.effect.lower, found.effect.upper) == pytest.approx(
            (placed[0].share, placed[0].lower, placed[0].upper), abs=1e-6
        )
        others = "the other arm" if found.arms == 2 else "the others"
        so_far = " so far" if found.kind == "not yet" else ""
        said = found.effect.describe(f"its comparisons with {others}{so_far}")
        assert f"{found.leader} wins {said}." in str(found)
        first = f"leads with {found.effect}" if so_far else f" wins {found.effect.describe('its comparisons')}"
        assert first in shown
    if found.leader is not None:
        assert found.leader in shown or found.kind == "no condorcet winner"


@pytest.mark.deep
def test_a_studys_verdict_names_the_same_leader():
    """Answer by answer, from sparse to dense."""
    rng = np.random.default_rng(1)
    study = duels.create_study([f"arm {k}" for k in range(11)], storage="sqlite://", policy="random")
    for _ in range(150):
        i, j = rng.permutation(11)[:2]
        study.import_votes([{"left": f"arm {i}", "right": f"arm {j}", "winner": "left"}])
        assert_agrees(study.verdict(), *study._log.look().leaderboard())


@pytest.mark.skipif(not CROWD.exists(), reason="the crowd's votes are not here")
def test_gpt_4_is_first_in_the_crowds_votes():
    found = duels.analyze(CROWD)
    assert found.leaderboard[0].arm == "GPT 4"
    assert found.verdict.leader == "GPT 4"
    assert "ranked by Bradley–Terry rating" in str(found)
    table = dict(duels.rate(CROWD)["arm", "rating"].rows())
    assert all(abs(row.rating - table[row.arm]) <= 0.051 for row in found.leaderboard)


def test_a_verdict_computes_the_ranking_only_when_it_is_looked_at(monkeypatch):
    """A study looks at the kind after every answer, and a rating of 200 arms takes many times as long as that."""
    fitted = []
    monkeypatch.setattr(
        "duels.study.stats.tally.rate_connected", lambda *counts: fitted.append(1) or rate_connected(*counts)
    )
    now = verdict(chain(12))
    assert now.kind == "not yet"
    assert now.arms == 12
    assert not fitted
    assert now.leader == "arm 0"
    assert now.open_pairs[0][0] == "arm 0"
    assert now.effect.share > 0.5
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


def text_of(page):
    return html.unescape(page).replace("\xa0", " ")


def assert_shown(study, client, url):
    """Whatever shows the study ranks the same arms in the same order, with the same numbers."""
    found, table = study.verdict(), study._log.look().leaderboard()
    assert_agrees(found, table.rows, table.ranked)
    rows, at = [row._asdict() for row in table.rows], f"/api/studies/{study.name}"
    assert [row[:2] for row in study.ranking()] == [(row.rank, row.arm) for row in table.rows if row.active]
    said, facts = headline(found.as_dict(), study.retired), describe_answers(found.as_dict())

    assert client.get(f"{at}/leaderboard").json() == {"leaderboard": rows, "ranked": table.ranked}
    assert client.get(f"{at}/verdict").json() == found.as_dict() | {"words": str(found)}
    ranked = [{name: row[name] for name in ("rank", "arm")} for row in rows if row["active"]]
    ranking = client.get(f"{at}/ranking").json()["ranking"]
    assert [{name: row[name] for name in ("rank", "arm")} for row in ranking] == ranked
    results = client.get(f"{at}/results").json()
    assert [{name: value for name, value in arm.items() if name != "certain"} for arm in results["arms"]] == rows
    assert results["map"]["arms"] == [row["arm"] for row in rows if row["active"]]
    assert [results["verdict"][name] for name in ("headline", "facts")] == [said, facts]
    assert_pages(client, study, table, said, facts, results)
    assert_commands(study, url, rows, found)
    assert_tables(study, table, found)


def assert_pages(client, study, table, said, facts, results):
    page = text_of(client.get(f"/studies/{study.name}").text)
    assert f'<h2 id="headline">{said}</h2>' in page
    assert f'id="evidence">{facts}</p>' in page
    assert f'<p id="words">{results["verdict"]["words"]}</p>' in page
    assert json.loads(re.search(r'id="glance">(.*?)</script>', page, re.DOTALL)[1])["arms"] == results["arms"]
    # One number says how sure it is, of the first arm only; where it is high, a sentence says why that is not enough.
    chances = re.findall(r"(\S.*?) is the best with a chance of (more than )?(\d+) %", results["verdict"]["words"])
    assert len(chances) <= 1
    for arm, _, chance in chances:
        assert arm == study.verdict().leader
        says_why = "A verdict takes more than such an estimate" in results["verdict"]["words"]
        assert (int(chance) > 90 and study.verdict().void is None) <= says_why
    listed = text_of(client.get("/").text)
    assert f">{said}</p>" in listed
    assert f"arms · {facts} · since" in listed


def assert_commands(study, url, rows, found):
    printed = {
        form: duels_command("study", "leaderboard", study.name, "--storage", url, "-f", form)
        for form in ("json", "csv", "table")
    }
    assert [done.returncode for done in printed.values()] == [0, 0, 0]
    assert json.loads(printed["json"].stdout) == rows
    assert [row["arm"] for row in csv.DictReader(io.StringIO(printed["csv"].stdout))] == [row["arm"] for row in rows]
    places = [printed["table"].stdout.index(f" {row['arm']} ") for row in rows]
    assert places == sorted(places)
    done = duels_command("study", "verdict", study.name, "--storage", url, "-f", "json")
    plain = json.loads(done.stdout)
    assert {name: plain[name] for name in found.as_dict()} == found.as_dict()


def assert_tables(study, table, found):
    """Ratings and an analysis of its votes; the latter has no verdict of the study's own."""
    if not any(row.rating is not None for row in table.rows):
        return
    rated = dict(duels.rate(study, cluster=None)["arm", "rating"].rows())
    compared = [row for row in table.rows if row.rating is not None]
    if len(rated) == len(compared):  # else it rates groups that have not met, too
        assert all(abs(rated[row.arm] - row.rating) < 0.051 for row in compared)
    if all(row.active for row in table.rows):
        votes = study.votes()
        analyzed = duels.analyze([(vote.left, vote.right, vote.winner) for vote in votes for _ in range(vote.count)])
        if analyzed.verdict.named == found.named:
            kept = {row.arm for row in analyzed.leaderboard}
            assert [row.rating for row in analyzed.leaderboard] == [row.rating for row in table.rows if row.arm in kept]


def simulate(url, client, seed, answers, arms=4, **settings):
    """A study with answers by somebody, arms that come and go, and a look after every tenth answer."""
    rng = np.random.default_rng(seed)
    names = [f"arm {k}" for k in range(arms)]
    study = duels.create_study(names, f"study-{seed}", storage=url, seed=seed, **settings)
    strength = dict(zip([*names, "late"], rng.normal(0, 0.8, arms + 1)))
    for number in range(answers):
        if number == answers // 2:
            study.add_arm("late")
            study.retire_arm(names[int(rng.integers(arms))])
        if number % 10 == 0:
            assert_shown(study, client, url)
        duel = study.ask(allow_self=False, voter=f"person {rng.integers(5)}" if seed % 2 else None)
        wins = rng.random() < 1 / (1 + np.exp(strength[duel.right] - strength[duel.left]))
        study.tell(duel, "tie" if rng.random() < 0.1 else "left" if wins else "right")
    study.retire()
    assert_shown(study, client, url)


@pytest.fixture
def client(tmp_path):
    url = f"sqlite:///{tmp_path}/duels.db"
    duels.create_study(["a", "b"], "first", storage=url)
    with TestClient(create_app(url, open_to_all=True), "http://localhost") as found:
        yield found, url


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_everything_that_shows_a_study_agrees(client):
    simulate(client[1], client[0], seed=1, answers=30, policy="random")


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", ["verdict", "rucb"])
def test_everything_agrees_in_many_studies(client, seed, policy):
    margin, confidence = [0.0, 0.1][seed // 2 % 2], [0.95, 0.6][seed // 4]
    more = {"margin": margin, "confidence": confidence, "policy": policy}
    simulate(client[1], client[0], seed, answers=200, arms=3 + seed % 4, **more)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=FEW, deadline=None, suppress_health_check=list(HealthCheck))
@given(tally=tallies(most=6))
def test_everything_that_shows_random_votes_agrees(client, tally):
    served, url = client
    name = f"study-{len(list_studies(url))}"
    study = duels.create_study(tally.names, name, storage=url)
    rows = votes_of(tally)
    i, j = np.nonzero(np.triu(tally.ties))
    rows += [
        {"left": tally.names[a], "right": tally.names[b], "wins_left": 0, "wins_right": 0, "ties": tally.ties[a, b]}
        for a, b in zip(i, j)
    ]
    if rows:
        study.import_votes(pl.DataFrame(rows).fill_null(0))
    for arm, active in zip(tally.names, tally.active):
        if not active and sum(study.tally().active) > 2:
            study.retire_arm(arm)
    assert_shown(study, served, url)
