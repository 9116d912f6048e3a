"""Who may do what: every route of the application, with every kind of wrong key."""

import asyncio
import hmac
import html
import json
import logging
import re
from types import SimpleNamespace
from urllib.parse import quote, unquote

import pytest
from routes import ARMS, Place, bearer, by_cookie, routes_of
from starlette.testclient import TestClient

from duels.errors import StorageError
from duels.server.app import LOOPBACK, create_app
from duels.server.http import limits
from duels.server.http.files import place as place_of_files
from duels.server.http.limits import Limits, Rate
from duels.server.http.middleware import POLICY
from duels.server.keys import csrf_token, digest_of, make_key, revoke_key
from duels.server.pages import vote
from duels.study.create import create_study

SAFE = {"GET", "HEAD"}
OPEN = {  # all that needs no sign-in; whatever is not here must
    *("/openapi.json", "/docs", "/help", "/healthz", "/favicon.ico", "/signin", "/signout"),
    "/static/{digest}/{name}",
    *("/vote/{link}", "/output/{ticket}", "/preview-output/{ticket}"),
    *("/results/{results}", "/api/results/{results}"),
    *(f"/api/results/{{results}}/{part}" for part in ("pair", "stream")),
    *("/api/vote/{link}", "/api/vote/{link}/ask", "/api/vote/{link}/tell", "/api/vote/{link}/undo"),
}
TABS = ("", "/items", "/items/{number}", "/voters", "/share", "/settings", "/preview", "/rendered")
PAGES = {"/", "/tokens", *(f"/studies/{{study}}{tab}" for tab in TABS)}  # these lead to where one signs in


def guarded(app):
    return [(method, path) for method, path in routes_of(app.fastapi) if path not in OPEN]


@pytest.fixture
def place(storage):
    return Place(storage)


@pytest.fixture
def session(anybody, place):
    """Somebody signed in: a client with the session's cookie, and its secret."""
    sent = anybody.post("/signin", data={"token": place.admin_token})
    assert (sent.status_code, sent.headers["location"]) == (303, "/")
    flags = sent.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=lax" in flags or "samesite=strict" in flags
    anybody.secret = anybody.cookies["duels_session"]
    return anybody


def refused(response, status, kind):
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"kind", "message"}
    assert body["error"]["kind"] == kind
    return response


def wrong_keys(storage, place):
    """Every way to come without a right: what it is called, and its headers."""
    session, good = make_key(storage, "session", parent_id=place.admin.id, lasts=1000)
    yield "nothing", {}
    yield "an empty token", bearer("")
    yield "garbage", bearer("garbage" * 5)
    yield "garbage as a session", by_cookie("garbage" * 5)
    yield "another scheme", {"Authorization": f"Basic {place.admin_token}"}
    yield "the digest of a token", bearer(digest_of(place.admin_token))
    yield "a link as a token", bearer(place.link_secret)
    yield "a link to results as a token", bearer(make_key(storage, "results", study_id=place.study._log.id)[1])
    yield "a link to results as a session", by_cookie(make_key(storage, "results", study_id=place.study._log.id)[1])
    yield "a link as a session", by_cookie(place.link_secret)
    yield "an admin's token as a session", by_cookie(place.admin_token)
    yield "an API token as a session", by_cookie(make_key(storage, "api")[1])
    yield "a session as a token", bearer(good)
    yield "an expired session", by_cookie(make_key(storage, "session", parent_id=place.admin.id, lasts=-1)[1])
    yield "an expired token", bearer(make_key(storage, "admin", lasts=-1)[1])
    revoked, secret = make_key(storage, "admin")
    _, child = make_key(storage, "session", parent_id=revoked.id, lasts=1000)
    revoke_key(storage, revoked.id, ("admin",))
    yield "a revoked token", bearer(secret)
    yield "a session of a revoked token", by_cookie(child)
    revoke_key(storage, session.id, ("session",))
    yield "a revoked session", by_cookie(good)


def test_every_route_is_guarded(app, anybody, storage, place):
    routes = guarded(app)
    assert len(routes) >= 35
    app.service.limits = Limits(token=Rate(1, 10_000))  # so that all are compared
    app.service.streams.closing.set()  # were a stream open to all, it would end, and this test fail rather than wait
    before = place.study._log.history().seq
    for name, headers in wrong_keys(storage, place):
        for method, path in routes:
            answer = place.send(anybody, method, path, headers=headers)
            if path in PAGES:
                assert answer.status_code == 303, (name, path)
                assert answer.headers["location"].partition("?")[0] == "/signin", (name, path)
            else:
                assert answer.status_code == 401, (name, method, path, answer.text)
                assert refused(answer, 401, "unauthorized").headers["www-authenticate"] == "Bearer"
    assert place.study._log.history().seq == before


def test_what_is_open_shows_nothing_of_a_study(app, anybody, storage, place):
    """Routes without sign-in never say the names of arms or studies; a link opens its own routes only."""
    create_study(["zebra one", "zebra two"], "zebra", storage)
    assert OPEN - {path for _, path in routes_of(app.fastapi)} == set()
    for method, path in routes_of(app.fastapi):
        if path in OPEN:
            assert "zebra" not in anybody.request(method, place.address(path)).text, path
    for part in ("results", "leaderboard", "verdict", "board", "events", "export", "items", "links", "stream"):
        refused(anybody.get(f"/api/vote/{place.link_secret}/{part}"), 404, "not_found")
    for path in (f"/studies/{place.link_secret}", f"/vote/{place.link_secret}/../../studies/search"):
        assert anybody.get(path, headers=by_cookie(place.link_secret)).headers["location"].startswith("/signin")


def test_a_link_to_results_opens_nothing_else(app, anybody, storage, place):
    """As a token, as a session and as a voting link, it is refused by every route and method."""
    key, secret = make_key(storage, "results", study_id=place.study._log.id)
    app.service.limits = Limits(token=Rate(1, 10_000))
    app.service.streams.closing.set()
    before = place.study._log.history().seq
    for headers in ({"Authorization": f"Bearer {secret}"}, {"Cookie": f"duels_session={secret}"}):
        for method, path in guarded(app):
            answer = place.send(anybody, method, path, headers=headers)
            assert answer.status_code in (401, 303), (method, path)
    for _, path in routes_of(app.fastapi):
        if "{link}" in path and not path.startswith("/api/studies"):
            for method in ("GET", "POST"):
                answer = anybody.request(method, path.replace("{link}", secret), json={"duel": 0, "winner": "a"})
                assert answer.status_code in (404, 405), (method, path)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in (f"/results/{secret}", f"/api/results/{secret}", f"/api/results/{secret}/pair"):
            assert anybody.request(method, path).status_code == 405
    assert anybody.post("/signin", data={"token": secret}).status_code == 401
    for wrong in (place.link_secret, place.admin_token, "made-up", key.digest):  # other keys show no results
        assert anybody.get(f"/api/results/{wrong}").status_code == 404
        assert anybody.get(f"/results/{wrong}").status_code == 404
    assert place.study._log.history().seq == before


def test_revoked_means_revoked_where_keys_are_remembered(anybody, storage, place):
    """The quick routes know keys from memory, and still look again before they write."""
    ask = "/api/studies/{study}/ask"
    _, secret = make_key(storage, "session", parent_id=place.admin.id, lasts=1000)
    for headers in (bearer(place.admin_token), by_cookie(secret)):
        assert place.send(anybody, "POST", ask, headers=headers).status_code == 200
    revoke_key(storage, place.admin.id, ("admin",))
    before = place.study._log.history().seq
    for headers in (bearer(place.admin_token), by_cookie(secret)):
        refused(place.send(anybody, "POST", ask, headers=headers), 401, "unauthorized")
    assert place.study._log.history().seq == before


def test_a_session_must_prove_that_its_page_asked(app, session, storage, place):
    """CSRF: without the page's token nothing is done on any unsafe route, with it everything."""
    unsafe = [(method, path) for method, path in guarded(app) if method not in SAFE]
    assert len(unsafe) >= 19
    before = place.study._log.history().seq
    for method, path in unsafe:
        for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": csrf_token("other")}):
            refused(place.send(session, method, path, headers=headers), 403, "forbidden")
        latin = {"X-CSRF-Token": "\xff".encode("latin-1")}
        refused(place.send(session, method, path, headers=latin), 403, "forbidden")
    assert place.study._log.history().seq == before
    for number, (method, path) in enumerate(unsafe):
        own = Place(storage, f"study {number}")
        headers = {"X-CSRF-Token": csrf_token(session.secret)}
        if path.endswith("/clicks"):
            assert own.send(session, "POST", path.replace("clicks", "interleave"), headers=headers).status_code == 200
        answer = own.send(session, method, path, headers=headers)
        assert answer.is_success, (method, path, answer.text)


def test_the_page_has_the_token_of_its_session(session):
    assert f'content="{csrf_token(session.secret)}"' in session.get("/").text
    assert session.get("/api/studies").status_code == 200  # reading needs none


def test_signing_out_ends_the_session(session, place):
    assert session.get("/").status_code == 200
    session.post("/signout")
    refused(session.get("/api/studies", headers={"Cookie": f"duels_session={session.secret}"}), 401, "unauthorized")


def test_only_admins_sign_in(anybody, storage, place):
    """An API token must not become a session, which may do everything; nor may a link or a session."""
    _, child = make_key(storage, "session", parent_id=place.admin.id, lasts=1000)
    for secret in (make_key(storage, "api")[1], place.link_secret, child, "garbage", ""):
        sent = anybody.post("/signin", data={"token": secret})
        assert sent.status_code == 401
        assert "set-cookie" not in sent.headers
    cross = anybody.post("/signin", data={"token": place.admin_token}, headers={"Sec-Fetch-Site": "cross-site"})
    assert cross.status_code == 403
    assert "set-cookie" not in cross.headers


def test_an_open_server_is_not_open_to_other_sites(storage, place):
    app = create_app(storage, open_to_all=True)
    with TestClient(app, "http://localhost") as client:
        unsafe = [(method, path) for method, path in guarded(app) if method not in SAFE]
        before = place.study._log.history().seq
        for method, path in unsafe:
            for site in ("cross-site", "same-site", "something"):
                refused(place.send(client, method, path, headers={"Sec-Fetch-Site": site}), 403, "forbidden")
        assert place.study._log.history().seq == before
        for site in ("same-origin", "none"):
            assert client.post("/api/studies/search/ask", json={}, headers={"Sec-Fetch-Site": site}).status_code == 200
        assert client.post("/api/studies/search/ask", json={}).status_code == 200  # a program
        assert client.get("/").status_code == 200


def test_other_names_of_this_machine_are_refused(storage, place):
    """A page of another site can have its name lead here; the Host it sends gives it away."""
    app = create_app(storage, hosts=LOOPBACK, open_to_all=True)
    with TestClient(app, "http://localhost") as client:
        for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.2", "", "localhost:x"):
            for method, path in routes_of(app.fastapi):
                answer = place.send(client, method, path, headers={"Host": host})
                assert answer.status_code == 400
                assert method == "HEAD" or refused(answer, 400, "invalid")
        for host in ("localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]", "[::1]:8080"):
            assert client.get("/healthz", headers={"Host": host}).status_code == 200
    public = create_app(storage, hosts=LOOPBACK, public_url="https://duels.example.org")
    with TestClient(public, "http://localhost") as client:
        assert client.get("/healthz", headers={"Host": "duels.example.org"}).status_code == 200
        refused(client.get("/healthz", headers={"Host": "example.org"}), 400, "invalid")


SMALL = Limits(body=1_000, upload=5_000)
SIZES = [
    *[(path, SMALL.body) for path in ("/api/studies", "/signin", "/api/studies/search/links", "/api/tokens")],
    *[(f"/api/studies/search/{path}", SMALL.body) for path in ("ask", "tell", "interleave", "clicks", "undo")],
    *[(f"/api/studies/search/{path}", SMALL.upload) for path in ("import", "items")],
]


async def post_in_pieces(app, path, headers, size, most=10_000):
    """A body of unknown length, through ASGI itself: the answer, and how many bytes were taken of it."""
    taken, sent = 0, []

    async def receive():
        nonlocal taken
        taken += size
        return {"type": "http.request", "body": b" " * size, "more_body": taken < most * size}

    async def send(message):
        sent.append(message)

    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"},
        **{"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""},
        **{"client": ("127.0.0.1", 1), "server": ("localhost", 80), "state": {}},
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent), taken


@pytest.mark.parametrize(("path", "most"), SIZES)
def test_bodies_are_limited(storage, place, path, most):
    app = create_app(storage, limits=SMALL)
    headers = {**bearer(place.admin_token), "Content-Type": "application/json"}
    with TestClient(app, "http://localhost", headers=headers) as client:
        refused(client.post(path, content=b" " * (most + 1)), 413, "too_large")
        assert client.post(path, content=b" " * most).status_code != 413
        refused(client.post(path, content=iter([b" " * most, b" "])), 413, "too_large")
        status, body, taken = asyncio.run(post_in_pieces(app, path, {"Host": "localhost", **headers}, 100))
    assert status == 413
    assert json.loads(body)["error"]["kind"] == "too_large"
    assert taken == most + 100  # nothing is read beyond what shows that it is too much


def test_voters_bodies_are_limited(storage, place):
    app = create_app(storage, limits=SMALL)
    with TestClient(app, "http://localhost") as client:
        for action in ("ask", "tell", "undo"):
            at = f"/api/vote/{place.link_secret}/{action}"
            refused(client.post(at, content=b" " * 1001), 413, "too_large")
            if action != "undo":  # it reads no body
                headers = {"Content-Type": "application/json"}
                refused(client.post(at, content=iter([b" " * 1001]), headers=headers), 413, "too_large")


class Clock(SimpleNamespace):
    """Takes the place of the module `time` in `limits`."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(limits, "time", clock)
    return clock


def test_a_voter_in_haste_is_asked_to_wait(storage, place, clock):
    """Two at once and one every four seconds: 429 on the third, and on again after four seconds."""
    app = create_app(storage, limits=Limits(voter=Rate(0.25, 2)))
    at = f"/api/vote/{place.link_secret}"
    with TestClient(app, "http://localhost") as hasty, TestClient(app, "http://localhost") as other:
        assert hasty.post(f"{at}/ask").status_code == 200  # comes without a cookie, and gets one
        for _ in range(3):
            assert [hasty.get(at).status_code for _ in range(2)] == [200, 200]
            for answer in (hasty.get(at), hasty.post(f"{at}/ask"), hasty.post(f"{at}/undo")):
                assert refused(answer, 429, "too_many").headers["retry-after"] == "4"
            assert hasty.post(f"{at}/tell", json={"duel": 0, "winner": "a"}).status_code == 429
            assert other.get(at).status_code == 200  # one's haste is not another's
            clock.now += 3.9
            assert hasty.get(at).headers["retry-after"] == "1"
            clock.now += 0.1
            assert hasty.get(at).status_code == 200
            clock.now += 1000


def test_forgetting_ones_cookie_does_not_help_for_long(storage, place, clock):
    app = create_app(storage, limits=Limits(address=Rate(0.5, 3)))
    at = f"/api/vote/{place.link_secret}"
    with TestClient(app, "http://localhost") as client:
        for status in (200, 200, 200, 429):
            client.cookies.clear()
            assert client.get(at).status_code == status
        clock.now += 2
        client.cookies.clear()
        assert client.get(at).status_code == 200


def test_failed_attempts_to_sign_in_are_limited(anybody, place, clock):
    """Ten at once, and one more every five seconds."""
    for _ in range(10):
        assert anybody.post("/signin", data={"token": "wrong"}).status_code == 401
    blocked = anybody.post("/signin", data={"token": "wrong"})
    assert (blocked.status_code, blocked.headers["retry-after"]) == (429, "5")
    clock.now += 5
    assert anybody.post("/signin", data={"token": "wrong"}).status_code == 401
    assert anybody.post("/signin", data={"token": "wrong"}).status_code == 429
    clock.now += 50
    assert anybody.post("/signin", data={"token": place.admin_token}).status_code == 303


def test_a_right_token_waits_like_a_wrong_one(app, anybody, place, clock, monkeypatch):
    """While an address has to wait nothing is compared, not even read: else guessing would go on at full speed."""
    for _ in range(3):  # signing in well costs nothing
        for _ in range(9):
            assert anybody.post("/signin", data={"token": "wrong"}).status_code == 401
        assert anybody.post("/signin", data={"token": place.admin_token}).status_code == 303
        clock.now += 50
    for _ in range(10):
        assert anybody.post("/signin", data={"token": "wrong"}).status_code == 401
    looked = []
    monkeypatch.setattr(app.service, "key", lambda secret: looked.append(secret))
    blocked = anybody.post("/signin", data={"token": place.admin_token})
    assert blocked.status_code == 429
    assert "set-cookie" not in blocked.headers
    assert looked == []


def test_a_large_form_is_not_read(app, anybody, place):
    """Parsing a million fields would hold up everybody, and anybody may send them."""
    headers = {"Host": "localhost", "Content-Type": "application/x-www-form-urlencoded"}
    for path in ("/signin", "/signout", f"/api/vote/{place.link_secret}/tell", "/nothing"):
        refused(anybody.post(path, content=b"a=1&" * 250_000, headers=headers), 413, "too_large")
    status, _, taken = asyncio.run(post_in_pieces(app, "/signin", headers, 100))
    assert (status, taken) == (413, app.service.limits.form + 100)


def test_much_is_parsed_only_for_those_with_a_key(app, anybody, place, monkeypatch):
    """A megabyte of JSON is not read, let alone parsed, before somebody has shown a key."""
    big = {"Host": "localhost", "Content-Type": "application/json", "Authorization": "Bearer wrong"}
    paths = ("/api/studies", "/api/tokens", "/api/studies/search/links", "/api/studies/search/interleave")
    for path in paths:
        refused(anybody.post(path, content=b"[" * 900_000, headers=big), 401, "unauthorized")
        for kind in ({"Content-Length": "900000"}, {"Transfer-Encoding": "chunked"}):
            status, _, taken = asyncio.run(post_in_pieces(app, path, big | kind, 1000))
            assert (status, taken) == (401, 0), (path, kind)
    assert anybody.post(
        "/api/studies", content=b"[" * 900_000, headers=big | bearer(place.admin_token)
    ).status_code in (
        400,
        422,
    )


def test_guessing_tokens_is_slow(storage, place, clock):
    """Wrong tokens of an address are counted, and while it has to wait none is compared, unless it used it before."""
    app = create_app(storage, limits=Limits(token=Rate(0.5, 3)))
    _, other = make_key(storage, "api")
    with TestClient(app, "http://localhost") as client:
        assert client.get("/api/studies", headers=bearer(place.admin_token)).status_code == 200
        for path in ("/api/studies", "/api/studies/search/verdict", "/metrics"):
            refused(client.get(path, headers=bearer("wrong" * 5)), 401, "unauthorized")
        waits = refused(client.get("/api/studies", headers=bearer("wrong" * 5)), 429, "too_many")
        assert waits.headers["retry-after"] == "2"
        refused(client.post("/api/studies/search/ask", json={}, headers=bearer("wrong" * 5)), 429, "too_many")
        refused(client.get("/api/studies", headers=bearer(other)), 429, "too_many")  # as good as a guess
        assert client.get("/api/studies", headers=bearer(place.admin_token)).status_code == 200
        assert client.post("/api/studies/search/ask", json={}, headers=bearer(place.admin_token)).status_code == 200
        clock.now += 2
        for _ in range(5):  # a right one costs nothing
            assert client.get("/api/studies", headers=bearer(other)).status_code == 200
        revoke_key(storage, place.admin.id, ("admin",))
        refused(client.get("/api/studies", headers=bearer(place.admin_token)), 401, "unauthorized")
        clock.now += 1000
        for status in (401, 401, 401, 429):  # what it used before is forgotten
            assert client.get("/api/studies", headers=bearer(place.admin_token)).status_code == status


def test_nobody_is_told_where_the_database_is(app, anybody, session, place, monkeypatch, caplog):
    """Its path, or its user and host, are in the log and nowhere else."""

    def broken(*_):
        raise StorageError("the database 'postgresql://duels@db.internal/duels' does not answer as expected: gone")

    monkeypatch.setattr(app.service, "key", broken)
    monkeypatch.setattr(app.service.storage, "connection", broken)
    at = f"/api/vote/{place.link_secret}"
    sent = [
        *(session.get(path, headers=bearer("x")) for path in ("/api/studies", "/metrics")),
        *(session.get(path) for path in ("/", "/studies/search", f"/vote/{place.link_secret}", at)),
        session.post(f"{at}/ask"),
        session.post("/api/studies/search/ask", json={}, headers=bearer("y")),
        session.post("/signin", data={"token": place.admin_token}),
        session.post("/signout"),
    ]
    for answer in sent:
        assert answer.status_code == 503, answer.url
        assert answer.headers["retry-after"]
        assert "db.internal" not in answer.text
        assert "he database is unavailable" in answer.text
    assert "db.internal" in caplog.text


def test_what_a_program_may_not_destroy(anybody, admin, storage, place):
    """An API token runs a study; what cannot be got back is for admins."""
    _, token = make_key(storage, "api", "engine")
    place.send(anybody, "POST", "/api/studies/{study}/items", headers=bearer(token))
    for path in ("", "/items", "/items/1", f"/links/{place.link.id}"):
        refused(anybody.delete(f"/api/studies/search{path}", headers=bearer(token)), 403, "forbidden")
    refused(place.send(anybody, "PUT", "/api/studies/{study}/items/{number}", headers=bearer(token)), 403, "forbidden")
    refused(anybody.delete(f"/api/tokens/{place.token.id}", headers=bearer(token)), 403, "forbidden")
    assert admin.get("/api/studies/search").json()["items"] == 1
    assert admin.delete("/api/studies/search/items").status_code == 204
    assert admin.get("/api/studies/search").json()["items"] == 0


def check_headers(response):
    found = response.headers
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert found["cross-origin-opener-policy"] == "same-origin"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in found
    assert len(found.get_list("content-security-policy")) == 1
    assert "server" not in found
    return found["content-security-policy"]


def test_the_policy_forbids_what_it_should():
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == rules["form-action"] == "'self'"
    assert rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    for frame in (vote.FRAME, vote.SCRIPTED, vote.IMAGE):
        assert frame.startswith("sandbox")
        assert "allow-same-origin" not in frame
        assert "default-src 'none'" in frame
    assert "script" not in vote.IMAGE + vote.FRAME


def test_headers_on_every_answer(app, anybody, storage, place, monkeypatch):
    for method, path in routes_of(app.fastapi):
        assert check_headers(place.send(anybody, method, path)) == POLICY, path
    files = [f"{place_of_files()}/results.js", "/static/x/ui.js", "/static/x/nothing", "/static/x/..%2fpages.py"]
    for path in [*files, "/nothing", "/api/nothing", "/favicon.ico"]:
        assert check_headers(anybody.get(path)) == POLICY
    assert check_headers(anybody.put("/api/studies")) == POLICY
    assert check_headers(anybody.post("/api/studies", content=b" " * 2_000_000)) == POLICY
    with TestClient(create_app(storage, hosts=LOOPBACK), "http://evil.example") as client:
        assert check_headers(client.get("/")) == POLICY
    with TestClient(create_app(storage, public_url="https://x.org"), "https://x.org") as client:
        assert client.get("/").headers["strict-transport-security"].startswith("max-age=")
        sent = client.post("/signin", data={"token": place.admin_token}, follow_redirects=False)
        assert "secure" in sent.headers["set-cookie"].lower()
        assert "secure" in client.post(f"/api/vote/{place.link_secret}/ask").headers["set-cookie"].lower()

    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(app.service, "key", broken)
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        for path in ("/api/studies", "/api/studies/search/events"):
            answer = refused(client.get(path, headers=bearer("x")), 500, "internal")
            assert "broken" not in answer.text
            assert check_headers(answer) == POLICY
        assert check_headers(client.post("/api/studies/search/ask", json={}, headers=bearer("y"))) == POLICY


def test_secrets_are_compared_in_constant_time(session, place, monkeypatch):
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    session.cookies.clear()
    assert session.get("/api/studies", headers=bearer(place.admin_token)).status_code == 200
    assert compared == [(digest_of(place.admin_token),) * 2]
    compared.clear()
    headers = {"Cookie": f"duels_session={session.secret}", "X-CSRF-Token": "wrong"}
    refused(session.post("/api/studies", json={}, headers=headers), 403, "forbidden")
    assert (b"wrong", csrf_token(session.secret).encode()) in compared
    compared.clear()
    assert session.get(f"/api/vote/{place.link_secret}").status_code == 200
    assert compared == [(digest_of(place.link_secret),) * 2]


def test_the_database_has_no_secrets(session, admin, storage, place, tmp_path):
    """Only digests are in the file and its log; and no secret is in what the API lists."""
    link = admin.post("/api/studies/search/links", json={}).json()
    token = admin.post("/api/tokens", json={"name": "x"}).json()
    chosen = "a-token-that-somebody-chose"
    make_key(storage, "admin", "chosen", secret=chosen)
    secrets = [session.secret, link["secret"], token["token"], place.admin_token, place.link_secret, chosen]
    files = sorted(tmp_path.glob("duels.db*"))
    assert any(file.name.endswith("-wal") for file in files)
    kept = b"".join(file.read_bytes() for file in files)
    for secret in secrets:
        assert digest_of(secret).encode() in kept  # so that the search would find it
        assert secret.encode() not in kept
        assert csrf_token(secret).encode() not in kept
    for path in ("/api/tokens", "/api/studies/search/links", "/api/studies/search/events", "/metrics"):
        text = admin.get(path).text
        assert not any(secret in text or digest_of(secret) in text for secret in secrets)


def test_secrets_are_not_in_the_log(session, admin, place, caplog):
    with caplog.at_level(logging.INFO):
        for address in (f"/vote/{place.link_secret}", f"/api/vote/{place.link_secret}"):
            assert session.get(address).status_code == 200
        session.get(f"/api/vote/{place.link_secret}x")
        session.post(f"/api/vote/{place.link_secret}/tell", json={"duel": 0, "winner": "a"})
        session.post("/signin", data={"token": "a wrong token"})
        admin.get("/api/studies")
    said = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records if "duels" in record.name)
    assert "/vote/{link}" in said
    for secret in (place.link_secret, session.secret, admin.token, place.admin_token, "a wrong token"):
        assert secret not in said


@pytest.mark.parametrize(
    ("next_", "goes"),
    [
        ("/studies/search", "/studies/search"),
        ("/", "/"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("evil", "/"),
    ],
)
def test_signing_in_leads_nowhere_else(anybody, place, next_, goes):
    sent = anybody.post("/signin", data={"token": place.admin_token, "next": next_})
    assert (sent.status_code, sent.headers["location"]) == (303, goes)
    assert "set-cookie" in sent.headers


@pytest.mark.parametrize("name", ["a b", "Größe", "200 % sure?", "a&b", "x;y+z"])
def test_signing_in_leads_back_to_any_study(anybody, place, storage, name):
    create_study(ARMS, name, storage)
    at = f"/studies/{quote(name, safe='')}/share"
    sent = anybody.get(f"{at}?a=b%20c")
    form = anybody.get(sent.headers["location"])
    (wanted,) = re.findall(r'name="next" value="([^"]*)"', form.text)
    after = anybody.post("/signin", data={"token": place.admin_token, "next": html.unescape(wanted)})
    assert unquote(after.headers["location"]) == unquote(f"{at}?a=b%20c")
    assert anybody.get(after.headers["location"]).status_code == 200


def test_revoking_says_who_cannot_sign_in_any_more(session, place, storage):
    def ends():
        return dict(re.findall(r'data-name="([^"]*)" data-ends="([^"]*)"', session.get("/tokens").text))

    assert ends() == {"boss": "you and everybody", "spare": ""}
    other, _ = make_key(storage, "admin", "second")
    assert ends() == {"boss": "you", "spare": "", "second": ""}
    revoke_key(storage, other.id, ("admin",))
    assert ends() == {"boss": "you and everybody", "spare": ""}


def test_a_setting_nested_too_deeply_is_refused(session, place):
    answer = session.get(f"/studies/{place.tuning.name}/rendered", params={"setting": "[" * 5_000})
    assert answer.status_code == 400
    assert "not JSON" in answer.text
