"""Links to results: they show who is best, and neither voters, comments nor items; and they open nothing else."""

import json
import re

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from duels.server.app import create_app
from duels.server.http.limits import Limits, Rate
from duels.server.keys import make_key
from duels.server.pages import results_link
from duels.study import base as log
from duels.study.create import load_study

ARMS = ["bm25", "dense", "hybrid"]
ITEMS = 137
PRIVATE = ("Zelda", "Voter 1", "zebra comment", "zebra prompt", "zebra output", "token of zoe", "Ursula")


@pytest.fixture
def private(app, admin, storage):
    """A study on exactly its items, with everything that viewers must not see, up to its verdict."""
    at = "/api/studies/search"
    wanted = {"name": "search", "arms": ARMS, "about": "these-answers"}
    assert admin.post("/api/studies", json=wanted).status_code == 201
    outputs = [{arm: f"zebra output {k} {arm}" for arm in ARMS} for k in range(ITEMS)]
    items = [{"prompt": f"zebra prompt {k}", "outputs": one} for k, one in enumerate(outputs)]
    assert admin.post(f"{at}/items", content="\n".join(map(json.dumps, items))).status_code == 201
    assert admin.patch(f"{at}/settings", json={"comments": True}).status_code == 200
    admin.post("/api/tokens", json={"name": "token of zoe"})
    invited = admin.post(f"{at}/invitations", json={"voters": ["Ursula"]}).json()["invitations"][0]["secret"]
    shared = admin.post(f"{at}/links", json={}).json()["secret"]
    for secret in (invited, shared):
        with TestClient(app, "http://localhost") as voter:
            for _ in range(3):
                duel = voter.post(f"/api/vote/{secret}/ask", json={}).json()["duel"]
                body = {"duel": duel, "winner": "a", "comment": "zebra comment"}
                assert voter.post(f"/api/vote/{secret}/tell", json=body).status_code == 200
    done = load_study("search", storage).run({"Zelda": lambda left, right: "left" if left[-4:] == "bm25" else "right"})
    assert done.winner is not None
    return at


def make(admin, at, **wanted):
    made = admin.post(f"{at}/results-links", json=wanted)
    assert made.status_code == 201, made.text
    assert made.headers["cache-control"] == "no-store"
    return made.json()


def reachable(client, secret):
    """Everything that a link opens, by its address."""
    base = f"/api/results/{secret}"
    paths = [f"/results/{secret}", base, f"{base}/pair?first=bm25&second=dense", f"{base}/stream"]
    return {path: client.get(path) for path in paths}


def test_all_that_a_link_opens_shows_only_results(app, admin, private, anybody):
    made = make(admin, private, name="For the board")
    with_items = admin.get(f"{private}/results").json()
    assert f"these {ITEMS} prompts" in with_items["verdict"]["words"]
    app.service.streams.closing.set()  # ends the stream after its first message
    for path, answer in reachable(anybody, made["secret"]).items():
        assert answer.status_code == 200, path
        assert answer.headers["cache-control"] == "no-store", path
        assert "noindex" in answer.headers["x-robots-tag"], path
        assert answer.headers["referrer-policy"] == "no-referrer", path
        assert "set-cookie" not in answer.headers
        for word in PRIVATE:
            assert word not in re.sub(r"/static/\w+", "", answer.text), (path, word)
    glance = anybody.get(f"/api/results/{made['secret']}").json()
    assert set(glance) == {
        *("seq", "answers", "retired", "verdict", "next", "arms", "arms_total", "ranked", "ranks", "map")
    }
    assert set(glance["verdict"]) == {"kind", "winner", "leader", "headline", "facts", "words"}
    assert glance["verdict"]["words"] == with_items["verdict"]["words"]  # how many prompts there are may be shown
    assert glance["answers"] > 6
    assert [arm["arm"] for arm in glance["arms"]] == [arm["arm"] for arm in with_items["arms"]]
    assert "For the board" in anybody.get(f"/results/{made['secret']}").text


def test_viewers_read_that_answers_were_taken_back(admin, study, anybody, storage):
    made, known = make(admin, study), load_study("search", storage)
    for voter in ("ann", "bob"):
        known.tell(known.ask(voter=voter, allow_self=False), "left", voter=voter)
    assert "Nothing is promised" not in anybody.get(f"/results/{made['secret']}").text
    known.withdraw("ann")
    for path in (f"/results/{made['secret']}", f"/api/results/{made['secret']}"):
        assert "Nothing is promised about errors: 1 answer was taken back." in anybody.get(path).text


def test_it_ends_when_it_is_revoked_switched_off_or_expired(app, admin, study, anybody, monkeypatch):
    made, now = make(admin, study), log.clock()
    page, api, link = f"/results/{made['secret']}", f"/api/results/{made['secret']}", f"{study}/links/{made['id']}"
    assert anybody.get(api).json()["next"]["words"] == "Nobody has voted yet."
    for change, back, message, words in (
        ({"on": False}, {"on": True}, results_link.OFF, "These results are not shown at the moment"),
        ({"expires": "2099-01-01T00:00:00Z"}, {"expires": None}, results_link.ENDED, "It has ended."),
    ):
        assert admin.patch(link, json=change).status_code == 204
        with monkeypatch.context() as patch:
            patch.setattr(log, "clock", lambda: now + 80 * 366 * 24 * 3600)
            assert anybody.get(api).json()["error"]["message"] == message
            assert words in anybody.get(page).text
            assert anybody.get(f"{api}/stream").status_code == 404
        assert admin.patch(link, json=back).status_code == 204
        assert anybody.get(page).status_code == 200
    assert admin.patch(link, json={"max_votes": 3}).status_code == 400
    assert admin.patch(link, json={"name": "Other"}).status_code == 204
    (listed,) = admin.get(f"{study}/results-links").json()["links"]
    assert (listed["name"], listed["state"]) == ("Other", "active")
    assert made["secret"] not in admin.get(f"{study}/results-links").text + admin.get(f"{study}/changes").text
    assert admin.delete(link).status_code == 204
    assert anybody.get(api).json()["error"]["message"] == results_link.DEAD
    assert anybody.get("/api/results/made-up").json()["error"]["message"] == results_link.DEAD
    assert "It has ended." not in anybody.get(page).text


def test_only_admins_create_links_to_results(admin, study, anybody, storage):
    _, token = make_key(storage, "api", "program")
    sent = anybody.post(f"{study}/results-links", json={}, headers={"Authorization": f"Bearer {token}"})
    assert sent.status_code == 403
    assert admin.post(f"{study}/results-links", json={"votes": 3}).status_code == 422
    assert admin.get(f"{study}/results-links").json() == {"links": []}


def test_requests_are_limited_by_address(storage, study, admin):
    made = make(admin, study)
    app = create_app(storage, limits=Limits(address=Rate(0.01, 5)))
    with TestClient(app, "http://localhost", client=("192.0.2.1", 1)) as viewer:
        path = f"/api/results/{made['secret']}"
        assert [viewer.get(path).status_code for _ in range(6)] == [200] * 5 + [429]
        assert viewer.get(f"/results/{made['secret']}").status_code == 429
    with TestClient(app, "http://localhost", client=("192.0.2.2", 1)) as other:
        assert other.get(path).status_code == 200


def test_streams_of_a_link_are_limited(app, admin, study, anybody, monkeypatch):
    made = make(admin, study)
    monkeypatch.setattr(results_link, "MOST_STREAMS", 0)
    assert anybody.get(f"/api/results/{made['secret']}/stream").status_code == 429


def test_revoking_ends_open_streams(serve):
    live = serve()
    with live.client() as api:
        api.post("/api/studies", json={"name": "search", "arms": ARMS})
        made = api.post("/api/studies/search/results-links", json={}).json()
        with TestStream(live, made["secret"]) as lines:
            first = next(line for line in lines if line.startswith("data:"))
            assert first == "data: {}"
            assert api.delete(f"/api/studies/search/links/{made['id']}").status_code == 204
            assert "event: bye" in list(lines)


class TestStream:
    """An open stream of a link to results; its lines."""

    __test__ = False

    def __init__(self, live, secret):
        self.client = live.client()
        self.client.headers.pop("Authorization")
        self.stream = self.client.stream("GET", f"/api/results/{secret}/stream")

    def __enter__(self):
        return self.stream.__enter__().iter_lines()

    def __exit__(self, *error):
        self.stream.__exit__(*error)
        self.client.close()


def test_errors_do_not_name_the_study(app, admin, storage, anybody):
    """Not of a study that is damaged, or tunes parameters; nor does the page lead to those of the owner."""
    for name in ("hush-1", "hush-2"):
        assert admin.post("/api/studies", json={"name": name, "arms": ARMS}).status_code == 201
    space = {"size": {"low": 0, "high": 1}}
    assert admin.post("/api/tunings", json={"name": "hush-3", "space": space}).status_code == 201
    links = [make(admin, f"/api/studies/hush-{number}", name="Results")["secret"] for number in (1, 2, 3)]
    secrets = [admin.post(f"/api/studies/hush-{number}/links", json={}).json()["secret"] for number in (1, 3)]
    with storage.lock:
        connection = storage.connection()
        connection.execute(sa.text("UPDATE events SET note = 'x' WHERE study_id = 1"))
        connection.commit()
        app.service._studies.clear()
        storage.histories.clear()
    assert admin.delete("/api/studies/hush-2").status_code == 204
    for secret in links:
        at = f"/api/results/{secret}"
        for path in (f"/results/{secret}", f"{at}/pair?first=a&second=b", at):
            answer = anybody.get(path)
            assert (path in (at, f"/results/{secret}") and secret == links[2]) or answer.status_code in (400, 404, 500)
            assert "hush" not in answer.text
            assert "/tokens" not in answer.text
    for path in (f"/vote/{secrets[0]}", f"/api/vote/{secrets[0]}", f"/vote/{secrets[1]}"):
        assert "hush" not in anybody.get(path).text
