"""Voting links: their ends, switches, caps and use; their QR codes; and the preview of what voters see."""

import json
import re
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
import segno
import sqlalchemy as sa
from starlette.testclient import TestClient

from duels.server.api import links
from duels.server.app import create_app
from duels.server.http.limits import Limits, Rate
from duels.server.keys import make_key, revoke_key
from duels.storage.storage import open_storage
from duels.study import base
from duels.study.create import load_study

FAST = Limits(address=Rate(10_000, 10_000), voter=Rate(10_000, 10_000))
NEVER = "this voting link does not work or was revoked: ask for a new one"


@pytest.fixture
def app(storage):
    return create_app(storage, limits=FAST)


@pytest.fixture
def clock(monkeypatch):
    """Time that a test moves; links look at it."""
    now = [base.clock()]
    monkeypatch.setattr(base, "clock", lambda: now[0])
    return now


def make(admin, study, **wanted):
    made = admin.post(f"{study}/links", json=wanted)
    assert made.status_code == 201, made.text
    return made.json()


def listed(admin, study, number=0):
    return admin.get(f"{study}/links").json()["links"][number]


def voter_of(app, link, address="192.0.2.1"):
    client = TestClient(app, "http://localhost", client=(address, 1))
    client.at = f"/api/vote/{link['secret']}"
    return client


def vote(client, winner="a"):
    """The status of a vote; 0 if there is nothing to vote on."""
    asked = client.post(f"{client.at}/ask", json={"more": True})
    if not asked.is_success or asked.json()["duel"] is None:
        return asked.status_code if not asked.is_success else 0
    return client.post(f"{client.at}/tell", json={"duel": asked.json()["duel"], "winner": winner}).status_code


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def modules_of(svg):
    """The dark modules of a QR code as it is drawn, by row and column: its last path is made of horizontal lines."""
    drawn, x, y = set(), 0.0, 0.0
    for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", svg.rpartition('d="')[2].split('"')[0]):
        given = [float(one) for one in re.findall(r"-?[\d.]+", numbers)]
        if command == "h":
            drawn |= {(int(y), int(x) + k) for k in range(int(given[0]))}
            x += given[0]
        else:
            x, y = given if command == "M" else (x + given[0], y + given[1])
    return drawn


def test_the_qr_code_is_that_of_the_address(admin, study):
    made = make(admin, study)
    assert made["url"].endswith(f"/vote/{made['secret']}")
    expected = segno.make_qr(made["url"], error="m").matrix
    dark = {(i + 4, j + 4) for i, row in enumerate(expected) for j, module in enumerate(row) if module & 1}
    assert modules_of(made["qr"]) == dark
    assert "style=" not in made["qr"]
    assert "<script" not in made["qr"]
    assert links.qr_code("http://localhost/vote/other") != made["qr"]


def test_what_is_shown_once_is_not_stored_or_cached(admin, study, storage):
    sent = admin.post(
        f"{study}/links", json={"name": "Which?", "expires": in_days(2)}, headers={"Accept-Encoding": "gzip"}
    )
    assert sent.headers["cache-control"] == "no-store"
    assert "content-encoding" not in sent.headers
    secret = sent.json()["secret"]
    everything = admin.get(f"{study}/links").text + admin.get(f"{study}/changes").text
    assert secret not in everything
    assert "Created the voting link “Which?”." in everything
    with storage.lock:
        assert secret not in str(storage.connection().execute(sa.text("SELECT * FROM keys")).all())


def test_votes_voters_and_last_use_are_counted(app, admin, study):
    first, second = make(admin, study, name="one"), make(admin, study, name="two")
    assert [listed(admin, study)[name] for name in ("answers", "voters", "last_used")] == [0, 0, None]
    ann, bob, cy = voter_of(app, first), voter_of(app, first), voter_of(app, second)
    assert [vote(ann), vote(ann), vote(bob), vote(bob, "skip"), vote(cy)] == [200] * 5
    before = listed(admin, study)["last_used"]
    assert [(one["answers"], one["voters"]) for one in admin.get(f"{study}/links").json()["links"]] == [(3, 2), (1, 1)]
    assert datetime.now(UTC) - datetime.fromisoformat(before) < timedelta(seconds=20)
    assert bob.post(f"{bob.at}/undo").status_code == 200  # the skip
    assert bob.post(f"{bob.at}/undo").status_code == 200
    assert [listed(admin, study)[name] for name in ("answers", "voters")] == [2, 1]
    admin.post(f"{study}/import", content="left,right,winner,voter\nbm25,dense,left,Voter 1\n")
    assert listed(admin, study)["answers"] == 2  # Voter 1 of a file is somebody else
    assert admin.post(f"{study}/forget", json={"voter": "Voter 1"}).json() == {"answers": 2}
    assert [listed(admin, study)[name] for name in ("answers", "voters", "last_used")] == [0, 0, None]


def test_an_expired_link_takes_no_votes_and_says_so(app, admin, study, clock, anybody):
    made = make(admin, study, expires=datetime.fromtimestamp(clock[0] + 60, UTC).isoformat())
    ann = voter_of(app, made)
    assert vote(ann) == 200
    duel = ann.post(f"{ann.at}/ask", json={}).json()["duel"]
    clock[0] += 61
    late = ann.post(f"{ann.at}/tell", json={"duel": duel, "winner": "a"})
    assert (late.status_code, late.json()["error"]["message"]) == (
        404,
        "voting through this link has ended: ask the person who sent it for another one",
    )
    assert listed(admin, study)["state"] == "expired"
    assert admin.get(study).json()["answers"] == 1
    page = anybody.get(f"/vote/{made['secret']}")
    assert page.status_code == 404
    assert "your votes are kept" in page.text
    made_up = anybody.get("/vote/made-up")
    assert made_up.status_code == 404
    assert "votes" not in made_up.text.split("<main")[1]
    link = f"{study}/links/{made['id']}"
    assert admin.patch(link, json={"on": False}).status_code == 204
    assert "has ended" in anybody.get(f"/vote/{made['secret']}").text  # not paused: switched on, it would not work
    assert admin.patch(link, json={"on": True}).status_code == 204
    longer = datetime.fromtimestamp(clock[0] + 60, UTC).isoformat()
    assert admin.patch(link, json={"expires": longer}).status_code == 204
    assert ann.post(f"{ann.at}/tell", json={"duel": duel, "winner": "a"}).status_code == 200
    assert admin.patch(link, json={"expires": None}).status_code == 204
    assert [listed(admin, study)[name] for name in ("state", "expires")] == ["active", None]


@pytest.mark.parametrize(
    "wrong", ["", "tomorrow", "2030-01-01", "2030-01-01T00:00:00", "2001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"]
)
def test_ends_are_times_to_come_with_their_zone(admin, study, wrong):
    sent = admin.post(f"{study}/links", json={"expires": wrong})
    assert (sent.status_code, sent.json()["error"]["message"][:11]) == (400, "expires is ")
    made = make(admin, study)
    assert admin.patch(f"{study}/links/{made['id']}", json={"name": "x", "expires": wrong}).status_code == 400
    assert listed(admin, study)["name"] == ""


def test_a_link_is_switched_off_and_on_again(app, admin, study, anybody):
    made = make(admin, study, name="Which?")
    link, ann = f"{study}/links/{made['id']}", voter_of(app, made)
    assert vote(ann) == 200
    for _ in range(2):
        assert admin.patch(link, json={"on": False}).status_code == 204
        assert vote(ann) == 404
        assert listed(admin, study)["state"] == "off"
    paused = anybody.get(f"/vote/{made['secret']}").text
    for words in ("Voting is paused", "try again later", "your votes are kept", ">Try again</a>"):
        assert words in paused
    for words in ("no longer works", "has ended"):
        assert words not in paused
    assert admin.patch(link, json={"on": True, "name": "Better?"}).status_code == 204
    assert vote(ann) == 200
    assert ann.get(ann.at).json()["title"] == "Better?"
    assert [listed(admin, study)[name] for name in ("state", "answers", "revoked")] == ["active", 2, None]
    assert admin.patch(link, json={"on": False}).status_code == 204
    assert admin.delete(link).status_code == 204
    refused = admin.patch(link, json={"on": True})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict")
    assert listed(admin, study)["state"] == "revoked"
    assert ann.get(ann.at).json()["error"]["message"] == NEVER  # as if it had never been there
    assert "votes" not in anybody.get(f"/vote/{made['secret']}").text.split("<main")[1]
    said = [one["what"] for one in admin.get(f"{study}/changes").json()["changes"]]
    assert said == [
        "Revoked the voting link “Better?”.",
        "Switched the voting link “Better?” off.",
        "Switched the voting link “Which?” on. Renamed it to “Better?”.",
        "Switched the voting link “Which?” off.",  # once: the second time it was off already
        "Created the voting link “Which?”.",
        "Created the study with 3 arms.",
    ]


def test_only_what_changed_is_noted(admin, study):
    made = make(admin, study, votes=7, max_votes=100)
    link, number = f"{study}/links/{made['id']}", made["id"]
    same = {"name": "", "votes": 7, "max_votes": 100, "max_votes_per_voter": None, "expires": None, "on": True}
    for wanted in (
        same,
        same | {"votes": None},
        same | {"votes": None, "expires": "2090-01-31T18:00:00Z", "max_votes": 50, "max_votes_per_voter": 1000},
        {"name": "Which?", "expires": None},
        {"name": "", "max_votes": None},
    ):
        assert admin.patch(link, json=wanted).status_code == 204
    shown = admin.post(f"{study}/results-links", json={}).json()["id"]
    assert admin.patch(f"{study}/links/{shown}", json={"on": False}).status_code == 204
    assert admin.delete(f"{study}/links/{number}").status_code == 204
    assert [one["what"] for one in admin.get(f"{study}/changes").json()["changes"]][-2::-1] == [
        "Created a voting link without a title.",
        f"The voting link without a title ({number}) asks for as many votes each as Settings says.",
        f"The voting link without a title ({number}) ends at 2090-01-31T18:00 UTC. "
        "It accepts at most 50 votes in total. It accepts at most 1,000 votes per voter.",
        f"Renamed the voting link without a title ({number}) to “Which?”. It never ends.",
        "Took away the title of the voting link “Which?”. It accepts any number of votes in total.",
        "Created a link to the results without a title.",
        f"Switched the link to the results without a title ({shown}) off.",
        f"Revoked the voting link without a title ({number}).",
    ]


def test_a_link_without_a_number_follows_the_settings(app, admin, study):
    """Its voters see a change at their next question; a link with a number of its own keeps it."""
    usual, own = make(admin, study), make(admin, study, votes=25)
    (person,) = admin.post(f"{study}/invitations", json={"voters": ["Ann"]}).json()["invitations"]
    voters = [voter_of(app, link) for link in (usual, own, person)]
    assert [one.post(f"{one.at}/ask", json={}).json()["goal"] for one in voters] == [25, 25, 25]
    assert admin.patch(f"{study}/settings", json={"votes": 4}).status_code == 200
    assert [one.post(f"{one.at}/ask", json={}).json()["goal"] for one in voters] == [4, 25, 4]
    assert (usual["votes"], own["votes"]) == (None, 25)
    assert [one["votes"] for one in admin.get(f"{study}/links").json()["links"]] == [None, 25]
    assert admin.get(f"{study}/invitations").json()["invitations"][0]["votes"] is None
    assert admin.patch(f"{study}/links/{usual['id']}", json={"votes": 3}).status_code == 204
    assert admin.patch(f"{study}/links/{own['id']}", json={"votes": None}).status_code == 204
    assert [one.get(one.at).json()["goal"] for one in voters] == [3, 4, 4]


def test_a_link_accepts_from_a_voter_what_it_asks_for(app, admin, study, storage):
    for wanted in ({"votes": 10, "max_votes_per_voter": 9}, {"max_votes_per_voter": 24}):
        for path, more in (("links", {}), ("invitations", {"voters": ["Ann"]})):
            sent = admin.post(f"{study}/{path}", json=wanted | more)
            assert (sent.status_code, sent.json()["error"]["kind"]) == (400, "invalid")
            assert "max_votes_per_voter is" in sent.json()["error"]["message"]
    assert admin.get(f"{study}/links").json() == {"links": []}
    made = make(admin, study, max_votes_per_voter=25)
    link = f"{study}/links/{made['id']}"
    for wrong in ({"votes": 26}, {"max_votes_per_voter": 24}, {"votes": 5, "max_votes_per_voter": 4}):
        assert admin.patch(link, json=wrong).status_code == 400, wrong
    assert admin.patch(link, json={"votes": 5, "max_votes_per_voter": 5}).status_code == 204
    assert admin.patch(link, json={"votes": None}).status_code == 400
    old, _ = make_key(
        storage,
        "vote",
        "",
        study_id=load_study("search", storage)._log.id,
        settings={"votes": 9, "max_votes_per_voter": 2},
    )
    assert admin.patch(f"{study}/links/{old.id}", json={"name": "From before", "votes": 9}).status_code == 204


def test_a_link_is_changed_by_admins_of_its_own_study_only(app, admin, study, anybody, storage):
    made = make(admin, study)
    admin.post("/api/studies", json={"name": "other", "arms": ["a", "b"]})
    other = f"/api/studies/other/links/{made['id']}"
    assert admin.patch(other, json={"on": False}).status_code == 404
    assert admin.delete(other).status_code == 404
    token, _ = make_key(storage, "api", "program")
    _, secret = make_key(storage, "api", "program")
    for method in ("PATCH", "DELETE"):
        sent = anybody.request(
            method, f"{study}/links/{made['id']}", json={"on": False}, headers={"Authorization": f"Bearer {secret}"}
        )
        assert sent.status_code == 403
    assert admin.patch(f"{study}/links/{token.id}", json={"on": False}).status_code == 404  # a token is not a link
    assert admin.get("/api/tokens").json()["tokens"][1]["revoked"] is None
    assert listed(admin, study)["state"] == "active"


def test_a_voter_gives_no_more_votes_than_the_cap(app, admin, study):
    made = make(admin, study, votes=2, max_votes_per_voter=2)
    ann, bob = voter_of(app, made), voter_of(app, made)
    assert ann.get(ann.at).json()["goal"] == 2
    assert [vote(ann), vote(ann, "skip"), vote(ann), vote(ann)] == [200, 200, 200, 0]
    assert ann.get(ann.at).json()["done"] == "full"
    assert vote(bob) == 200
    assert ann.post(f"{ann.at}/undo").status_code == 200
    assert [vote(ann), vote(ann)] == [200, 0]
    assert admin.patch(f"{study}/links/{made['id']}", json={"max_votes_per_voter": 3}).status_code == 204
    assert [vote(ann), vote(ann)] == [200, 0]


def test_votes_of_one_voter_at_the_same_time_do_not_slip_through(storage, admin):
    """Six questions of one voter are open, since each was left unanswered; they are answered at once by two servers."""
    admin.post("/api/studies", json={"name": "quick", "arms": ["a", "b"], "lease": 0.001})
    made = make(admin, "/api/studies/quick", votes=2, max_votes_per_voter=2)
    at, statuses, barrier = f"/api/vote/{made['secret']}", [], threading.Barrier(6)
    with ExitStack() as stack:
        apps = [create_app(open_storage(storage.url), limits=FAST) for _ in range(2)]
        clients = [stack.enter_context(TestClient(app, "http://localhost")) for app in apps]
        duels = [clients[0].post(f"{at}/ask", json={}).json()["duel"]]
        cookie = {"Cookie": f"duels_ballot={clients[0].cookies['duels_ballot']}"}
        duels += [clients[0].post(f"{at}/ask", json={}).json()["duel"] for _ in range(5)]
        assert len({*duels}) == 6

        def answer(client, duel):
            barrier.wait(20)
            statuses.append(client.post(f"{at}/tell", json={"duel": duel, "winner": "a"}, headers=cookie).status_code)

        threads = [threading.Thread(target=answer, args=(clients[k % 2], duel)) for k, duel in enumerate(duels)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(statuses) == [200] * 2 + [403] * 4
    load_study("quick", storage).check()


def test_a_cap_that_is_set_later_counts_earlier_votes(app, admin, study):
    made = make(admin, study)
    link, ann, bob = f"{study}/links/{made['id']}", voter_of(app, made), voter_of(app, made)
    assert [vote(ann), vote(ann), vote(bob), vote(bob, "skip")] == [200] * 4
    assert admin.patch(link, json={"max_votes": 4}).status_code == 204
    assert listed(admin, study)["votes_taken"] == 3
    assert [vote(ann), vote(bob)] == [200, 0]
    assert listed(admin, study)["state"] == "full"
    assert admin.patch(link, json={"max_votes": None}).status_code == 204
    assert ann.post(f"{ann.at}/undo").status_code == 200  # not counted while there is no cap
    assert admin.patch(link, json={"max_votes": 4}).status_code == 204
    assert listed(admin, study)["votes_taken"] == 3
    assert [vote(bob), vote(bob)] == [200, 0]


def test_changes_are_checked(admin, study):
    made = make(admin, study, name="Which?", votes=7)
    at = f"{study}/links/{made['id']}"
    for wrong in ({"votes": 0}, {"max_votes": 0}, {"on": "no"}, {"name": None}, {"name": "x" * 201}, {"other": 1}):
        assert admin.patch(at, json=wrong).status_code == 422, wrong
    assert admin.patch(at, json={"name": "a\u200bb"}).status_code == 400
    assert admin.patch(f"{study}/links/999", json={"on": False}).status_code == 404
    assert admin.patch(at, json={}).status_code == 204
    assert [listed(admin, study)[name] for name in ("name", "votes", "state")] == ["Which?", 7, "active"]


PNG = "data:image/png;base64,iVBORw0KGgo="


def test_a_preview_shows_real_items_and_writes_nothing(app, admin, study, anybody, storage):
    items = [
        {"prompt": f"q{k}", "outputs": {arm: {"kind": kind, "content": content} for arm in ("bm25", "dense")}}
        for k, (kind, content) in enumerate((("text", "words"), ("image", PNG), ("html", "<p>page</p>")))
    ]
    assert admin.post(f"{study}/items", content="\n".join(map(json.dumps, items))).status_code == 201
    before, seen = admin.get(f"{study}/events").json(), {}
    for number in range(12):
        question = admin.post(f"{study}/preview/ask", json={"number": number}).json()
        assert (question["duel"], question["answered"]) == (number, number)
        seen[question["prompt"]] = question["a"]
        told = admin.post(f"{study}/preview/tell", json={"duel": number, "winner": "a"}).json()
        assert told["answered"] == number + 1
        assert admin.post(f"{study}/preview/undo", json={"number": number + 1}).json()["prompt"] == question["prompt"]
    assert set(seen) == {"q0", "q1", "q2"}
    assert seen["q0"]["html"] == "<p>words</p>" or "words" in seen["q0"]["html"]
    picture, page = (admin.get(seen[prompt]["src"]) for prompt in ("q1", "q2"))
    _, other = make_key(storage, "admin", "somebody else")
    for headers in ({}, {"Authorization": f"Bearer {other}"}):  # an output may read its address, and pass it on
        assert anybody.get(seen["q1"]["src"], headers=headers).status_code == 404
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "search" not in seen["q1"]["src"]
    for wrong in ("x", seen["q1"]["src"].rpartition("/")[2][:-4] + "AAAA"):
        assert anybody.get(f"/preview-output/{wrong}").status_code == 404
    assert anybody.get(seen["q1"]["src"].replace("/preview-output/", "/output/")).status_code == 404
    assert admin.get(f"{study}/events").json() == before
    end = admin.post(f"{study}/preview/ask", json={"number": 25}).json()
    assert (end["done"], end["duel"]) == ("goal", None)


def test_a_preview_is_for_admins(admin, study, anybody, storage):
    assert anybody.get("/studies/search/preview").headers["location"].startswith("/signin")
    key, secret = make_key(storage, "api", "program")
    for action, body in (("ask", {}), ("tell", {"duel": 0, "winner": "a"}), ("undo", {})):
        at = f"{study}/preview/{action}"
        assert anybody.post(at, json=body).status_code == 401
        assert anybody.post(at, json=body, headers={"Authorization": f"Bearer {secret}"}).status_code == 403
    assert revoke_key(storage, key.id, ("api",))
    assert admin.post(f"{study}/preview/ask", json={}).json()["a"]["kind"] == "name"
