"""Headlines agree with tables: verdict, leaderboard and page name the same arm as first, or nobody."""

import html
import itertools
import re

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tallies import verdict_of

from duels.policies.evidence import is_certain, winner_level
from duels.server.app import create_app
from duels.server.pages import base
from duels.storage.storage import Storage
from duels.study.create import create_study
from duels.study.stats.leaderboard import leaderboard, preferences
from duels.study.stats.tally import as_tally
from duels.study.stats.verdict import describe_answers

NAMES = tuple("abcdef")
FIRST = re.compile(r"(?:: |\. |^)([a-f](?:(?:, | and )[a-f])*) (ranks first|leads|led|shares? the first rank|shared)\b")


def claimed(text):
    """The arms that a text says are first."""
    return {arm for names, _ in FIRST.findall(text) for arm in re.split(", | and ", names)}


def expected(rows, pairs):
    """Who may be called first: the arms of rank 1, where these are compared with one another; not the only one."""
    ranked = {row["arm"] for row in rows if row["rank"] is not None}
    assert all(row["active"] for row in rows if row["arm"] in ranked)
    if ranked:
        part = compared_with(min(ranked), pairs)
        assert ranked == {row["arm"] for row in rows if row["active"] and row["arm"] in part}
        assert len(part) > 1
    active = sum(row["active"] for row in rows)
    return [row["arm"] for row in rows if row["rank"] == 1] if active > 1 else []


def compared_with(arm, pairs):
    """The arms that are compared with an arm, itself included, directly or through others."""
    found = {arm}
    met = [{pair["first"], pair["second"]} for pair in pairs if pair["duels"]]
    while more := [both for both in met if len(both & found) == 1]:
        found.update(*more)
    return found


def clearly_beaten(pairs, active, confidence):
    """The active arms that another one beats with the least evidence that the verdict uses, a bit less than 1 + 2/δ."""
    pairs = [pair for pair in pairs if {pair["first"], pair["second"]} <= active]
    both = [(pair["first"], pair["losses"], pair["wins"]) for pair in pairs]
    both += [(pair["second"], pair["wins"], pair["losses"]) for pair in pairs]
    return {arm for arm, won, lost in both if is_certain(won, lost, winner_level(1 - confidence, 2))}


def check(found, words, headline, rows, pairs):
    """A verdict as data, as a sentence and as a headline, against the leaderboard and the pairs."""
    first = expected(rows, pairs)
    only_one = sum(row["active"] for row in rows) == 1
    retired = {row["arm"] for row in rows if not row["active"]}
    assert first == [] or first[0] == rows[0]["arm"]
    assert found["leader"] not in retired
    assert claimed(words) | claimed(headline) <= set(first)
    if found["kind"] == "winner":
        assert found["leader"] == found["winner"] == rows[0]["arm"]
        assert only_one or first == [found["winner"]]
        assert found["winner"] in headline
    elif found["kind"] == "no condorcet winner":
        assert found["leader"] is None
        assert not claimed(words) | claimed(headline)
    elif found["kind"] == "practically tied":
        assert not claimed(words) | claimed(headline)
    else:
        assert found["leader"] == (first[0] if first else None)
        assert found["level_with"] == first[1:]
        if len(first) <= 5:  # longer lists are cut short
            assert claimed(words) == claimed(headline) == set(first)
        sure = {row["arm"]: row["certain_losses"] for row in rows if row["active"]}
        if only_one:
            assert headline.endswith(f": {rows[0]['arm']} is the only arm left")
            assert {mine for mine, _ in found["open_pairs"]} == {rows[0]["arm"]}
            assert {other for _, other in found["open_pairs"]} <= retired
            assert f"{rows[0]['arm']} is the only arm left, but it is not shown to beat " in words
        if first:
            (candidate,) = {mine for mine, _ in found["open_pairs"]}
            clear = clearly_beaten(pairs, set(sure), found["confidence"])
            assert sure[candidate] == 0 or all(arm in clear for arm in sure if sure[arm] == 0)
            said = "ranks first," if first == [candidate] else "" if candidate in first else "may still win,"
            assert re.search(rf"\b{candidate} {said}{' but ' if said else ''}has yet to beat", words)
            assert candidate in first or headline.endswith(f", {candidate} may still win")


@st.composite
def tallies(draw, most=40):
    """Few duels, many, or none, so that there are cycles, ties at the top, and arms that nobody compared."""
    arms = draw(st.integers(2, 6))
    wins, ties = np.zeros((2, arms, arms), int)
    for i, j in itertools.combinations(range(arms), 2):
        kind = draw(st.sampled_from(["unmet", "unmet", "won", "lost", "close", "tied"]))
        if kind in ("won", "lost"):
            a, b = (i, j) if kind == "won" else (j, i)
            wins[a, b] = draw(st.sampled_from([1, 3, most]))
        elif kind == "close":
            wins[i, j] = draw(st.integers(1, 3))
            wins[j, i] = draw(st.integers(1, 3))
        elif kind == "tied":
            ties[i, j] = ties[j, i] = draw(st.sampled_from([1, most]))
    active = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=arms, max_size=arms).filter(any))
    return as_tally(NAMES[:arms], wins, ties, active, draw(st.integers(1, arms)))


def plain(rows):
    return [row._asdict() for row in rows]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(
    tallies(),
    st.sampled_from([0, 0, 0.05, 0.3]),
    st.sampled_from(["independent answers", "comparisons made"]),
    st.booleans(),
)
def test_verdict_and_headline_name_the_arm_that_the_leaderboard_has_first(tally, margin, test, retired):
    found = verdict_of(tally, margin=margin, strength=test)
    rows = plain(leaderboard(tally, named=found.named).rows)
    pairs = plain(preferences(tally))
    check(found.as_dict(), str(found), base.headline(found.as_dict(), False), rows, pairs)
    if retired:
        first = expected(rows, pairs)
        said = base.headline(found.as_dict(), True)
        assert claimed(said) == (
            set(first) if found.kind == "not yet" and len(first) <= 5 else claimed(said) & set(first)
        )


@st.composite
def studies(draw):
    """A study in memory with such votes; at least two arms stay active, as the study itself demands."""
    tally = draw(tallies(most=12))
    study = create_study(tally.names, "zoo", Storage("sqlite://"))
    votes = []
    for i, j in itertools.permutations(range(len(tally.names)), 2):
        votes += [(tally.names[i], tally.names[j], "left")] * int(tally.wins[i, j])
        votes += [(tally.names[i], tally.names[j], "tie")] * int(tally.ties[i, j] if i < j else 0)
    study.import_votes(votes)
    for arm in [name for name, active in zip(tally.names, tally.active) if not active]:
        if sum(study.tally().active) > 2:
            study.retire_arm(arm)
    return study


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(studies())
def test_the_page_agrees(study):
    with TestClient(create_app(study._log.storage, open_to_all=True), "http://localhost") as client:
        listed = client.get("/").text.replace("\N{NO-BREAK SPACE}", " ")
        text = client.get("/studies/zoo").text.replace("\N{NO-BREAK SPACE}", " ")
        glance = client.get("/api/studies/zoo/results").json()
    found, rows, pairs = study.verdict(), plain(study.leaderboard()), plain(study.preferences())
    (headline,) = re.findall(r'<h2 id="headline">(.*?)</h2>', text)
    assert f">{headline}</p>" in listed
    (facts,) = re.findall(r'<p class="soft" id="evidence">(.*?)</p>', text)
    assert facts == describe_answers(found.as_dict()) == glance["verdict"]["facts"]
    check(found.as_dict(), str(found), headline, rows, pairs)
    first = expected(rows, pairs)
    assert glance["verdict"]["headline"] == html.unescape(headline)
    assert claimed(glance["verdict"]["words"]) <= set(first)
    if found := re.match(r"([a-f]) is the best with a chance of", glance["verdict"]["words"]):
        assert found[1] == first[0]
    assert [row["arm"] for row in glance["arms"]] == [row["arm"] for row in rows]
    assert [row["rank"] for row in glance["arms"]] == [row["rank"] for row in rows]


CYCLE = [("a", "b"), ("b", "c"), ("c", "a")] * 60


def test_an_arm_that_never_met_another_does_not_rank_first():
    """a beats b beats c beats a, and d never met anybody: the leaderboard has d last, and only d may still win."""
    study = create_study([*"abcd"], "zoo", Storage("sqlite://"))
    study.import_votes([(winner, loser, "left") for winner, loser in CYCLE])
    assert [(row.rank, row.arm) for row in study.leaderboard()] == [(1, "a"), (1, "b"), (1, "c"), (None, "d")]
    found = study.verdict()
    assert (found.kind, found.leader, found.level_with) == ("not yet", "a", ("b", "c"))
    assert found.open_pairs == (("d", "a"), ("d", "b"), ("d", "c"))
    assert str(found).startswith(
        "On the comparisons made: no verdict yet: a, b and c share the first rank, but each is clearly beaten by "
        "another arm. d may still win, but has yet to beat a, b and c conclusively. "
    )
    assert base.headline(found.as_dict()) == "Not yet: a, b and c share the first rank, d may still win"
