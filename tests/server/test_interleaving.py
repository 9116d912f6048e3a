"""Rankers in production: lists of two arms, and clicks that are answers."""

import json

import numpy as np
import pytest
import sqlalchemy as sa

from duels.rankers import infer
from duels.storage.tables import impressions
from duels.study.create import load_study

DOCUMENTS = [f"d{k}" for k in range(12)]
RANKINGS = {"bm25": DOCUMENTS, "dense": DOCUMENTS[::-1], "hybrid": DOCUMENTS[6:] + DOCUMENTS[:6]}
METHODS = ["probabilistic", "probabilistic:tau=1,credit=assigned", "team-draft"]


def refused(response, status, *words):
    assert response.status_code == status, response.text
    for word in words:
        assert word in response.json()["error"]["message"]


def show(client, study, rankings=RANKINGS, **more):
    response = client.post(f"{study}/interleave", json={"rankings": rankings, **more})
    assert response.status_code == 200, response.text
    return response.json()


def click(client, study, impression, clicks, **more):
    return client.post(f"{study}/clicks", json={"impression": impression, "clicks": clicks, **more})


def ask(client, study, **more):
    return client.post(f"{study}/ask", json=more).json()["duels"][0]


def events(client, study):
    return client.get(f"{study}/events").json()["events"]


def records(storage):
    """What is kept of the lists, by duel."""
    with storage.lock:
        rows = storage.connection().execute(sa.select(impressions.c.duel, impressions.c.record)).all()
    return {duel: json.loads(record) for duel, record in rows}


@pytest.fixture
def settled(admin):
    """A study of two arms whose policy has found its champion: from now on it mostly asks self-duels."""
    admin.post("/api/studies", json={"name": "settled", "arms": ["good", "bad"], "policy": "rucb:alpha=0.51"})
    lines = "left,right,winner\n" + "good,bad,left\n" * 400
    assert admin.post("/api/studies/settled/import", content=lines).json() == {"imported": 400, "note": None}
    return "/api/studies/settled"


@pytest.mark.parametrize("method", METHODS)
def test_a_ranking_for_each_arm(admin, study, storage, method):
    shown = show(admin, study, method=method, length=5, voter="ann")
    local = load_study("search", storage)
    duel = local.duel(shown["duel"])
    assert shown["impression"] == shown["duel"] == duel.id
    assert (shown["left"], shown["right"], shown["is_self"]) == (duel.left, duel.right, duel.is_self)
    assert len(shown["documents"]) == len(set(shown["documents"])) == 5
    assert set(shown["documents"]) <= set(DOCUMENTS)
    asked = events(admin, study)[-1]
    assert (asked["kind"], asked["duel"], asked["voter"]) == ("ask", duel.id, "ann")
    record = records(storage)[duel.id]
    assert record["documents"] == shown["documents"]
    told = click(admin, study, shown["impression"], shown["documents"][:2], voter="ann")
    expected = infer(record, shown["documents"][:2])
    assert told.json() == {"duel": duel.id, "answer": expected}
    last = events(admin, study)[-1]
    assert (last["kind"], last["duel"], last["answer"], last["voter"]) == ("tell", duel.id, expected, "ann")


@pytest.mark.parametrize("method", METHODS)
def test_the_answer_is_what_infer_says(admin, study, storage, method):
    """On lists with clicks drawn at random, some for either side: six in ten lists decide, as measured, so that a
    side is without any once in 40,000 times."""
    rng, seen = np.random.default_rng(1), set()
    for _ in range(30):
        shown = show(admin, study, method=method, length=6)
        clicks = [document for document in shown["documents"] if rng.random() < 0.3]
        answer = click(admin, study, shown["impression"], clicks).json()["answer"]
        record = records(storage)[shown["duel"]]
        assert answer == ("tie" if shown["is_self"] else infer(record, clicks))
        assert not clicks or record["documents"] == shown["documents"]
        seen.add(answer)
    assert {"left", "right"} <= seen
    assert load_study("search", storage).check() == len(events(admin, study))


def test_team_draft_is_the_default(admin, study, storage):
    """And a duel between two arms is credited document by document to one of them."""
    for _ in range(4):
        show(admin, study)
    found = [record for record in records(storage).values() if "method" in record]
    assert {record["method"] for record in found} == {"team-draft"}
    assert all({*pair} == {0, 1} for record in found for pair in zip(record["left"], record["right"]))


@pytest.mark.parametrize("method", ["balanced", "optimized", "probabilistic:credit=marginal"])
def test_biased_methods_are_refused(admin, study, storage, method):
    response = admin.post(f"{study}/interleave", json={"rankings": RANKINGS, "method": method})
    refused(response, 400, "not for live traffic", "its mean outcome is not 1/2", "Use 'team-draft'")
    assert records(storage) == {}


def test_left_is_the_first_ranking(admin, study):
    """Worked by hand: by team draft the first two slots are one pick of each side, and rankings share no document
    near the top, so whoever's document is clicked has won."""
    rankings = {"bm25": [1, 2, 3, 4, 5, 6], "dense": [6, 5, 4, 3, 2, 1], "hybrid": [3, 4, 1, 2, 6, 5]}
    for k in range(8):
        duel = ask(admin, study, allow_self=False)
        two = {arm: rankings[arm] for arm in (duel["left"], duel["right"])}
        shown = show(admin, study, two, duel=duel["id"], method="team-draft", length=2)
        tops = {rankings[duel[side]][0]: side for side in ("left", "right")}
        assert set(shown["documents"]) == set(tops)
        clicked = rankings[duel["right" if k % 2 else "left"]][0]
        assert click(admin, study, duel["id"], [clicked]).json()["answer"] == tops[clicked]


def test_a_pair_that_was_asked(admin, study, storage):
    duel = ask(admin, study, allow_self=False, voter="ann")
    two = {arm: RANKINGS[arm] for arm in (duel["left"], duel["right"])}
    before = events(admin, study)
    shown = show(admin, study, two, duel=duel["id"])
    assert shown["duel"] == duel["id"]
    assert (shown["left"], shown["right"]) == (duel["left"], duel["right"])
    assert events(admin, study) == before
    again = [show(admin, study, two, duel=duel["id"]) for _ in range(5)]
    assert again == [shown] * 5  # the page may be reloaded
    other = {arm: RANKINGS[arm] for arm in set(RANKINGS) - {duel["left"]}}
    fresh = ask(admin, study, allow_self=False)
    lacking = {arm: ranking for arm, ranking in RANKINGS.items() if arm != fresh["left"]}
    response = admin.post(f"{study}/interleave", json={"rankings": lacking, "duel": fresh["id"]})
    refused(response, 400, fresh["left"], "no ranking")
    assert set(records(storage)) == {duel["id"]}
    refused(admin.post(f"{study}/interleave", json={"rankings": other, "duel": 99}), 400, "no duel 99")
    answer = click(admin, study, duel["id"], shown["documents"][:1]).json()["answer"]
    assert answer == infer(records(storage)[duel["id"]], shown["documents"][:1])


def test_a_self_duel_shows_the_champions_own_list(admin, settled, storage):
    rankings = {"good": DOCUMENTS, "bad": DOCUMENTS[::-1]}
    shown = show(admin, settled, rankings, length=7)
    assert shown["is_self"]
    assert shown["left"] == shown["right"] == "good"
    assert shown["documents"] == DOCUMENTS[:7]
    before = load_study("settled", storage).tally()
    refused(click(admin, settled, shown["impression"], ["d11"]), 400, "'d11' was clicked but is not on the list of 7")
    assert click(admin, settled, shown["impression"], ["d0", "d3"]).json()["answer"] == "tie"
    assert click(admin, settled, shown["impression"], []).json()["answer"] == "tie"
    assert np.array_equal(load_study("settled", storage).tally().wins, before.wins)
    own = show(admin, settled, {"good": DOCUMENTS}, duel=ask(admin, settled)["id"])
    assert own["documents"] == DOCUMENTS[:10]


def test_clicks_may_be_sent_again(admin, study):
    shown = show(admin, study, method="team-draft")
    first = click(admin, study, shown["impression"], shown["documents"][:1])
    assert first.status_code == 200
    log = events(admin, study)
    for _ in range(2):
        again = click(admin, study, shown["impression"], shown["documents"][:1] * 2)  # a second click adds nothing
        assert (again.status_code, again.json()) == (200, first.json())
    assert first.json()["answer"] in ("left", "right") or shown["is_self"]
    if not shown["is_self"]:
        refused(click(admin, study, shown["impression"], []), 409, "undo that first")
    assert events(admin, study) == log


def test_what_is_refused(admin, study, storage):
    shown = show(admin, study)
    log = events(admin, study)
    refused(click(admin, study, shown["impression"], ["elsewhere"]), 400, "'elsewhere' was clicked but is not on")
    refused(click(admin, study, shown["impression"], [7]), 400, "not on")
    refused(click(admin, study, 99, []), 404, "has no impression 99")
    assert click(admin, study, -1, []).status_code == 422
    assert click(admin, study, shown["impression"], "d1").status_code == 422
    asked = ask(admin, study)
    refused(click(admin, study, asked["id"], []), 404, "interleave first")
    assert [event["kind"] for event in events(admin, study)[len(log) :]] == ["ask"]
    refused(admin.post("/api/studies/none/interleave", json={"rankings": RANKINGS}), 404)
    refused(click(admin, "/api/studies/none", 0, []), 404)


def test_a_query_without_results_and_different_results_are_normal(admin, study):
    """By default an arm may find nothing, or other documents; all may find nothing."""
    shown = show(admin, study, {"bm25": ["a", "b"], "dense": ["b", "c"], "hybrid": []})
    assert set(shown["documents"]) <= {"a", "b", "c"}
    assert click(admin, study, shown["impression"], shown["documents"][:1]).status_code == 200
    nothing = show(admin, study, {key: [] for key in RANKINGS})
    assert nothing["documents"] == []
    assert click(admin, study, nothing["impression"], []).json()["answer"] == "tie"


WRONG = {
    # whether or not it is one of the two that would be asked
    **{f"{arm} without ranking": {"rankings": {one: ["a"] for one in RANKINGS if one != arm}} for arm in RANKINGS},
    "different documents": {
        "rankings": {"bm25": ["a", "b"], "dense": ["a", "c"], "hybrid": ["d"]},
        "missing": "refuse",
    },
    "a document twice": {"rankings": {arm: ["a", "a"] for arm in RANKINGS}},
    "an unknown method": {"rankings": RANKINGS, "method": "alphabetical"},
    "an unknown parameter": {"rankings": RANKINGS, "method": "team-draft:tau=3"},
    "an empty ranking": {"rankings": {"bm25": ["a"], "dense": [], "hybrid": ["b"]}, "missing": "refuse"},
    "no length": {"rankings": RANKINGS, "length": 0},
    "no such word": {"rankings": RANKINGS, "missing": "first"},
    "documents that are none": {"rankings": {arm: [["a"]] for arm in RANKINGS}},
    "a field too many": {"rankings": RANKINGS, "clicks": []},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_nothing_is_asked_for_a_list_that_cannot_be_made(admin, study, storage, wrong):
    before = events(admin, study)
    for _ in range(3):
        assert admin.post(f"{study}/interleave", json=WRONG[wrong]).status_code in (400, 422)
    assert events(admin, study) == before
    assert records(storage) == {}
    assert show(admin, study)["duel"] == 0  # and the study goes on as if nothing had been
    assert load_study("search", storage).check() == 2


def test_a_retired_arm_needs_no_ranking(admin, study):
    admin.post(f"{study}/arms/hybrid/retire")
    shown = show(admin, study, {"bm25": DOCUMENTS, "dense": DOCUMENTS})
    assert {shown["left"], shown["right"]} <= {"bm25", "dense"}


def test_different_documents_may_stand_last(admin, study, storage):
    rankings = {"bm25": ["a", "b", "x"], "dense": ["b", "y", "a"], "hybrid": ["z", "a"]}
    for _ in range(6):
        shown = show(admin, study, rankings, missing="last", length=10)
        two = rankings[shown["left"]], rankings[shown["right"]]
        assert sorted(shown["documents"]) == sorted({*two[0], *two[1]})
        told = click(admin, study, shown["impression"], shown["documents"][-1:]).json()["answer"]
        if not shown["is_self"]:
            assert told == infer(records(storage)[shown["duel"]], shown["documents"][-1:])


def test_numbers_and_texts_are_different_documents(admin, study):
    shown = show(admin, study, {arm: [1, "1", 2] for arm in RANKINGS})
    assert sorted(map(str, shown["documents"])) == ["1", "1", "2"]
    assert click(admin, study, shown["impression"], ["2"]).status_code == 400
    assert click(admin, study, shown["impression"], [1, 2]).status_code == 200


def test_a_retired_study_shows_nothing(admin, study):
    shown = show(admin, study)
    admin.post(f"{study}/retire")
    refused(admin.post(f"{study}/interleave", json={"rankings": RANKINGS}), 409, "retired")
    assert click(admin, study, shown["impression"], []).status_code == 200  # late clicks are taken


def test_a_token_is_needed(anybody, study):
    assert anybody.post(f"{study}/interleave", json={"rankings": RANKINGS}).status_code == 401
    assert click(anybody, study, 0, []).status_code == 401


def test_the_arm_whose_documents_are_clicked_wins(admin, study):
    """A user who clicks d0 wherever it is, and nothing else. bm25 has it on top, the others far down, so bm25 wins
    whenever its list and another's differ in worth. By team draft with three slots bm25's first pick is d0, always its
    own: it wins every duel, which is certain after 12 a pair. No chance is left but in who meets whom."""
    rankings = {"bm25": DOCUMENTS, "dense": DOCUMENTS[::-1], "hybrid": DOCUMENTS[1:] + DOCUMENTS[:1]}
    for _ in range(200):
        shown = show(admin, study, rankings, method="team-draft", length=3)
        clicks = [document for document in shown["documents"] if document == "d0"]
        answer = click(admin, study, shown["impression"], clicks).json()["answer"]
        sides = [side for side in ("left", "right") if shown[side] == "bm25"]
        assert answer == (sides[0] if len(sides) == 1 else "tie")
        if admin.get(f"{study}/verdict").json()["kind"] == "winner":
            break
    assert admin.get(f"{study}/verdict").json()["winner"] == "bm25"
    best = admin.get(f"{study}/leaderboard").json()["leaderboard"][0]
    assert (best["arm"], best["losses"]) == ("bm25", 0)
