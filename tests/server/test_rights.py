"""A table of all routes: who may use each, and which tables of the database it changes."""

import json

import pytest
from routes import BODIES, ITEM, Place, bearer, by_cookie, routes_of
from starlette.testclient import TestClient

from duels.continuous.tuning.create import create_tuning
from duels.server.http.limits import Limits, Rate
from duels.server.keys import make_key
from duels.storage.tables import metadata
from duels.study.invitations import list_invited_names

# Who may: anyone; a program with an API token, and admins; admins only; people who have signed in. Then the tables that
# change. S stands for /api/studies/{study}. A route that is not here makes the test fail.
TABLE = """
GET    /openapi.json                         anyone
GET    /docs                                 anyone
GET    /healthz                              anyone
GET    /favicon.ico                          anyone
GET    /help                                 anyone
GET    /static/{digest}/{name}               anyone
GET    /signin                               anyone
POST   /signin                               anyone   keys
POST   /signout                              anyone   keys
GET    /vote/{link}                          anyone
GET    /api/vote/{link}                      anyone
POST   /api/vote/{link}/ask                  anyone   events voters
POST   /api/vote/{link}/tell                 anyone   events
POST   /api/vote/{link}/undo                 anyone   events
GET    /output/{ticket}                      anyone
GET    /preview-output/{ticket}              anyone
GET    /results/{results}                    anyone
GET    /api/results/{results}                anyone
GET    /api/results/{results}/pair           anyone
GET    /api/results/{results}/stream         anyone
GET    /                                     people
GET    /tokens                               people
GET    /studies/{study}                      people
GET    /studies/{study}/voters               people
GET    /studies/{study}/share                people
GET    /studies/{study}/settings             people
GET    /studies/{study}/items                people
GET    /studies/{study}/items/{number}       people
GET    /studies/{study}/preview              people
GET    /studies/{study}/rendered             people
GET    /metrics                              program
GET    /api/studies                          program
POST   /api/studies                          program  studies events changes
POST   /api/tunings                          program  studies events changes
GET    S                                     program
DELETE S                                     admin    studies events items outputs keys invitations changes
POST   S/retire                              program  events changes
POST   S/resume                              program  changes
POST   S/arms                                program  events changes
POST   S/arms/{arm:path}/retire              program  events changes
POST   S/ask                                 program  events
POST   S/tell                                program  events
POST   S/undo                                program  events changes
POST   S/forget                              program  events changes
POST   S/import                              program  events votes changes
POST   S/interleave                          program  events impressions
POST   S/clicks                              program  events
GET    S/duels                               program
GET    S/duels/{duel}                        program
GET    S/allocation                          program
GET    S/leaderboard                         program
GET    S/preferences                         program
GET    S/verdict                             program
GET    S/results                             program
GET    S/pair                                program
GET    S/forecast                            program
GET    S/ranking                             program
GET    S/recommendation                      program
GET    S/check                               admin
GET    S/judges                              program
GET    S/events                              program
GET    S/export                              program
GET    S/details                             program
GET    S/stream                              program
GET    S/best                                program
GET    S/slices                              program
GET    S/template                            program
PUT    S/template                            admin    templates changes
GET    S/items                               program
POST   S/items                               program  items outputs events changes
DELETE S/items                               admin    items outputs events studies changes
GET    S/items/{number}                      program
PUT    S/items/{number}                      admin    outputs changes
DELETE S/items/{number}                      admin    items outputs events studies changes
GET    S/item-results                        program
GET    S/tag-results                         program
GET    /item-output/{number_of_study}/{number}/{place} admin
GET    S/scripts                             program
POST   S/scripts                             admin    studies changes
GET    S/links                               program
POST   S/links                               admin    keys changes
PATCH  S/links/{link}                        admin    keys changes
DELETE S/links/{link}                        admin    keys changes
GET    S/results-links                       program
POST   S/results-links                       admin    keys changes
GET    S/invitations                         program
POST   S/invitations                         admin    keys invitations changes
POST   S/invitations/{link}/renew            admin    keys invitations changes
GET    S/settings                            program
PATCH  S/settings                            admin    studies changes
GET    S/changes                             admin
GET    S/voters                              admin
POST   S/voters/withdraw                     admin    events changes
POST   S/preview/ask                         admin
POST   S/preview/tell                        admin
POST   S/preview/undo                        admin
GET    /api/tokens                           admin
POST   /api/tokens                           admin    keys changes
DELETE /api/tokens/{token}                   admin    keys changes
GET    /api/changes                          admin
"""
CHANGED = {"prompt": "q", "outputs": ITEM["outputs"] | {"bm25": "what bm25 says now"}}


def rights():
    for line in TABLE.strip().splitlines():
        method, path, right, *tables = line.split()
        at = "/api/studies/{study}"
        yield (method, at + path[1:] if path[0] == "S" else path), (right, set(tables))


RIGHTS = dict(rights())


@pytest.fixture
def client(app, monkeypatch):
    fast = Rate(1e6, 10**6)
    app.service.limits = Limits(token=fast, voter=fast, address=fast, signin=fast)
    app.service.streams.closing.set()
    monkeypatch.setitem(BODIES, "/api/studies/{study}/items", json.dumps(ITEM | {"prompt": "another"}))
    monkeypatch.setitem(BODIES, "/api/studies/{study}/items/{number}", json.dumps(CHANGED))
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        yield client


def contents(storage):
    with storage.lock:
        connection = storage.connection()
        return {name: set(connection.exec_driver_sql(f"SELECT * FROM {name}")) for name in metadata.tables}


def send(client, place, method, path, prepared, headers):
    """Return what sends a request, after what it needs was done with other headers."""
    vote = f"/api/vote/{place.link_secret}"
    if path == "/signin" and method == "POST":
        return lambda: client.post(path, data={"token": place.admin_token})
    if path.endswith("/clicks") and prepared:
        place.send(client, "POST", "/api/studies/{study}/interleave", headers=prepared)
    if path.startswith("/api/vote/{link}/") and not path.endswith("ask"):
        duel = client.post(f"{vote}/ask", json={}).json()["duel"]
        if path.endswith("tell"):
            return lambda: client.post(f"{vote}/tell", json={"duel": duel, "winner": "a"})
        client.post(f"{vote}/tell", json={"duel": duel, "winner": "a"})
    return lambda: place.send(client, method, path, headers=headers)


def test_every_route_has_its_right_and_its_side_effects(app, client, storage):
    routes = {(method, path) for method, path in routes_of(app.fastapi) if method != "HEAD"}
    assert routes == set(RIGHTS), "each route needs a row in TABLE, and each row a route"
    unchanged = Place(storage)
    _, program = make_key(storage, "api", "engine")
    for number, ((method, path), (right, tables)) in enumerate(RIGHTS.items()):
        place = Place(storage, f"study {number}") if tables else unchanged
        _, session = make_key(storage, "session", "boss", parent_id=place.admin.id, lasts=1000)
        cases = {"nobody": {}, "program": bearer(program), "admin": by_cookie(session)}
        allowed = {"anyone": list(cases), "program": ["program", "admin"]}.get(right, ["admin"])
        strict = "admin" if path == "/signout" else allowed[0]
        for who, headers in cases.items():
            client.cookies.clear()
            request = send(client, place, method, path, headers if who in allowed else {}, headers)
            before = contents(storage)
            answer = request()
            changed = {name for name, rows in contents(storage).items() if rows != before[name]}
            what = (method, path, who, answer.status_code, changed, answer.text[:200])
            if who not in allowed:
                assert answer.status_code == (303 if right == "people" else 401 if who == "nobody" else 403), what
            assert changed == (tables if who == strict else tables & changed if who in allowed else set()), what


def test_an_invited_person_is_forgotten_by_admins_only(client, admin, storage):
    place = Place(storage)
    _, program = make_key(storage, "api", "engine")
    at = "/api/studies/search/forget"
    refused = client.post(at, json={"voter": "Ursula"}, headers=bearer(program))
    assert (refused.status_code, "invited" in refused.json()["error"]["message"]) == (403, True)
    with storage.lock:
        assert list_invited_names(storage.connection(), place.study._log.id) == {place.invited: "Ursula"}
    assert client.post(at, json={"voter": "ann"}, headers=bearer(program)).status_code == 200
    assert admin.post(at, json={"voter": "Ursula"}).status_code == 200
    with storage.lock:
        assert list_invited_names(storage.connection(), place.study._log.id) == {}


def test_a_program_sets_no_template_of_a_study_that_exists(client, admin, storage):
    create_tuning({"x": (0.0, 1.0)}, "look", storage)
    _, program = make_key(storage, "api", "engine")
    body = {"name": "look", "space": {"x": {"low": 0, "high": 1}}, "load_if_exists": True}
    body["space"] = admin.get("/api/studies/look").json()["space"]
    with_template = body | {"template": "<script>1</script>{{ x }}"}
    assert client.post("/api/tunings", json=with_template, headers=bearer(program)).status_code == 403
    assert admin.get("/api/studies/look/template").json()["html"] is None
    assert client.post("/api/tunings", json=body, headers=bearer(program)).status_code == 201
    new = with_template | {"name": "new"}
    assert client.post("/api/tunings", json=new, headers=bearer(program)).status_code == 201
    assert admin.post("/api/tunings", json=with_template).status_code == 201
    assert "x" in admin.get("/api/studies/look/template").json()["html"]


@pytest.mark.parametrize("kind", ["link", "invitation", "tuning"])
def test_a_program_answers_no_question_of_somebody_with_a_link(client, admin, storage, kind):
    name = "search tuned" if kind == "tuning" else "search"
    Place(storage)
    at = f"/api/studies/{name}"
    _, program = make_key(storage, "api", "engine")
    if kind == "invitation":
        secret = admin.post(f"{at}/invitations", json={"voters": ["Ann Lee"]}).json()["invitations"][0]["secret"]
    else:
        secret = admin.post(f"{at}/links", json={}).json()["secret"]
    duel = client.post(f"/api/vote/{secret}/ask", json={}).json()["duel"]
    body = {"duel": duel, "winner": "left"}
    for more in ({}, {"voter": "ann"}):
        refused = client.post(f"{at}/tell", json=body | more, headers=bearer(program))
        assert refused.status_code == 409, refused.text
        assert "votes through a link" in refused.json()["error"]["message"]
    if kind == "link":
        shown = client.post(
            f"{at}/interleave",
            json={"duel": duel, "rankings": {arm: [1, 2] for arm in ("bm25", "dense", "hybrid")}},
            headers=bearer(program),
        )
        clicked = {"impression": shown.json()["impression"], "clicks": [1]}
        assert client.post(f"{at}/clicks", json=clicked, headers=bearer(program)).status_code == 409
    own = client.post(f"/api/vote/{secret}/tell", json={"duel": duel, "winner": "a"})
    assert (own.status_code, own.json()["answered"]) == (200, 1)
    asked = client.post(f"{at}/ask", json={"voter": "bob"}, headers=bearer(program)).json()["duels"][0]["id"]
    told = client.post(f"{at}/tell", json={"duel": asked, "winner": "left"}, headers=bearer(program))
    assert told.status_code == 200


def test_the_server_lists_what_cannot_be_got_back(client, admin, storage):
    """Who deleted studies, erased voters, and made or revoked tokens; names of voters are not there."""
    Place(storage)
    made = admin.post("/api/tokens", json={"name": "engine"}).json()
    headers = bearer(made["token"])
    assert client.post("/api/studies/search/forget", json={"voter": "ann"}, headers=headers).status_code == 200
    assert admin.delete(f"/api/tokens/{made['id']}").status_code == 204
    assert admin.delete("/api/studies/search").status_code == 204
    assert admin.delete(f"/api/tokens/{2**31 - 1}").status_code == 404
    found = admin.get("/api/changes").json()
    assert [(one["who"], one["what"]) for one in found["changes"]] == [
        ("test", "Deleted the study “search”."),
        ("test", "Revoked the api token “engine”."),
        ("engine", "Erased a voter of the study “search”, with all answers."),
        ("test", "Created the api token “engine”."),
    ]
    assert "ann" not in json.dumps(found)
    assert len(admin.get(f"/api/changes?before={found['changes'][1]['id']}&limit=1").json()["changes"]) == 1


def test_the_page_of_tokens_shows_the_changes_of_the_server(client, admin):
    admin.post("/api/tokens", json={"name": "<b>engine</b>"})
    client.post("/signin", data={"token": admin.token})
    page = client.get("/tokens").text
    assert "Created the api token “&lt;b&gt;engine&lt;/b&gt;”." in page
    assert "<b>engine" not in page
