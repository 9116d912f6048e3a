"""The API as programs use it, on the application in this process."""

import itertools
import json
import re
import sys
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from duels.policies import load_policy
from duels.server.api import items
from duels.server.keys import make_key
from duels.server.pair_details import list_details
from duels.storage.tables import events
from duels.study import create
from duels.study.create import NO_MARGIN
from duels.votes import read_votes

ERROR = {"error"}


def refused(response, status, kind, *words):
    """One shape for every error; returns the message."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"kind", "message"}
    assert body["error"]["kind"] == kind
    for word in words:
        assert word in body["error"]["message"]
    return body["error"]["message"]


def ask(client, study, **body):
    response = client.post(f"{study}/ask", json=body)
    assert response.status_code == 200, response.text
    return response.json()["duels"]


def tell(client, study, duel, winner, **more):
    return client.post(f"{study}/tell", json={"duel": duel, "winner": winner, **more})


@pytest.mark.filterwarnings("ignore:study 's' may never end")
def test_a_new_study_says_what_may_keep_it_from_ending(admin):
    """Under the field that is the cause; once, and not on these items, where every study ends."""
    body = {"name": "s", "arms": ["a", "b"], "policy": "scb"}
    found = admin.post("/api/studies", json=body).json()["notices"]
    assert found == {
        "policy": f"study 's' may never end with the policy scb: {load_policy('scb').live}",
        "margin": NO_MARGIN,
    }
    again = admin.post("/api/studies", json=body | {"load_if_exists": True}).json()
    assert (again["seq"], again["notices"]) == (1, {})
    for more in ({"margin": 0.05}, {"about": "these-answers"}, {"about": "these-answers", "policy": "scb"}):
        other = {"name": str(more), "arms": ["a", "b"], **more}
        assert admin.post("/api/studies", json=other).json()["notices"] == {}
    assert "notices" not in admin.get("/api/studies/s").json()


def test_a_study_from_beginning_to_end(admin):
    made = admin.post("/api/studies", json={"name": "s", "arms": ["a", "b"], "policy": "rucb:alpha=0.6", "seed": 3})
    assert made.status_code == 201
    body = made.json()
    assert body.pop("created").startswith("20")
    assert body == {
        "name": "s",
        "policy": "rucb:alpha=0.6",
        "goal": {
            "confidence": 0.95,
            "margin": 0.0,
            "after": "stop",
            "about": "these-items",
        },
        "arms": [{"name": "a", "active": True}, {"name": "b", "active": True}],
        "space": None,
        "answers": 0,
        "open": 0,
        "items": 0,
        "retired": False,
        "seq": 1,
        "notices": {"margin": NO_MARGIN},
    }
    (duel,) = ask(admin, "/api/studies/s", voter="ann")
    assert duel["id"] == 0
    assert {duel["left"], duel["right"]} <= {"a", "b"}
    assert duel["is_self"] == (duel["left"] == duel["right"])
    assert admin.get("/api/studies/s").json()["open"] == 1
    assert admin.get("/api/studies/s/duels").json()["duels"] == [duel]
    assert admin.get("/api/studies/s/duels/0").json() == duel
    assert tell(admin, "/api/studies/s", 0, "left", voter="ann").json() == {"duel": 0, "answer": "left"}
    assert tell(admin, "/api/studies/s", 0, duel["left"]).json() == {"duel": 0, "answer": "left"}  # harmless
    refused(tell(admin, "/api/studies/s", 0, "tie"), 409, "conflict", "undo that first")
    assert admin.get("/api/studies").json()["studies"][0]["answers"] == 1
    assert admin.post("/api/studies/s/undo", json={"duel": 0}).json() == {"duel": 0}
    refused(admin.post("/api/studies/s/undo", json={"duel": 0}), 400, "invalid", "no answer to undo")
    assert tell(admin, "/api/studies/s", 0, "skip").json()["answer"] == "skip"
    assert [event["kind"] for event in admin.get("/api/studies/s/events").json()["events"]] == [
        *("create", "ask", "tell", "undo", "tell")
    ]
    assert admin.delete("/api/studies/s").status_code == 204
    refused(admin.get("/api/studies/s"), 404, "not_found", "unknown study 's'")


def test_the_api_is_the_study(admin, study, storage):
    """What the API says is what the library says of the same log."""
    local = create.load_study("search", storage)
    for k in range(60):
        (duel,) = ask(admin, study, allow_self=False, voter=f"v{k % 3}")
        best = "hybrid" if "hybrid" in (duel["left"], duel["right"]) else duel["left"]
        assert tell(admin, study, duel["id"], best if k % 7 else "tie", voter=f"v{k % 3}").status_code == 200
    plain = lambda rows: json.loads(json.dumps([row._asdict() for row in rows]))  # noqa: E731
    assert admin.get(f"{study}/leaderboard").json()["leaderboard"] == plain(local.leaderboard())
    assert admin.get(f"{study}/preferences?confidence=0.9").json()["preferences"] == plain(local.preferences(0.9))
    verdict = admin.get(f"{study}/verdict?confidence=0.8&margin=0.1").json()
    assert verdict.pop("words") == str(local.verdict(0.8, 0.1))
    assert verdict == local.verdict(0.8, 0.1).as_dict()
    assert admin.get(f"{study}/details").json() == json.loads(json.dumps(list_details(local)))
    assert local.check() == 121


def test_events_in_pages(admin, study):
    for _ in range(5):
        ask(admin, study)
    seen, after, pages = [], 0, 0
    while after is not None:
        page = admin.get(f"{study}/events?after={after}&limit=4").json()
        seen += [event["seq"] for event in page["events"]]
        after, pages = page["next"], pages + 1
    assert (seen, pages) == ([1, 2, 3, 4, 5, 6], 2)
    assert admin.get(f"{study}/events?after=6").json() == {"events": [], "next": None}
    exact = admin.get(f"{study}/events?after=2&limit=4").json()
    assert len(exact["events"]) == 4
    assert exact["next"] is None


def test_arms_come_and_go(admin, study):
    assert admin.post(f"{study}/arms", json={"name": "sparse"}).status_code == 201
    refused(admin.post(f"{study}/arms", json={"name": "sparse"}), 409, "conflict")
    body = admin.post(f"{study}/arms/bm25/retire").json()
    assert [arm["active"] for arm in body["arms"]] == [False, True, True, True]
    refused(admin.post(f"{study}/arms/nobody/retire"), 404, "not_found", "unknown arm 'nobody'")
    names = {name for duel in ask(admin, study, n=50) for name in (duel["left"], duel["right"])}
    assert "bm25" not in names


def test_an_arm_with_a_slash_in_its_name(admin):
    admin.post("/api/studies", json={"name": "s", "arms": ["meta/llama", "b/retire", "c"]})
    body = admin.post("/api/studies/s/arms/meta%2Fllama/retire").json()
    assert [arm["active"] for arm in body["arms"]] == [False, True, True]


def test_a_retired_study_asks_nothing_and_still_listens(admin, study):
    (duel,) = ask(admin, study)
    assert admin.post(f"{study}/retire").json()["retired"] is True
    assert admin.post(f"{study}/retire").json()["retired"] is True
    refused(admin.post(f"{study}/ask", json={}), 409, "conflict", "was retired")
    assert tell(admin, study, duel["id"], "tie").status_code == 200
    assert admin.post(f"{study}/resume").json()["retired"] is False
    assert len(ask(admin, study)) == 1


def test_import_and_export(admin, study):
    votes = b"left,right,winner,voter\nbm25,dense,left,ann\nhybrid,bm25,tie,bob\n"
    sent = admin.post(f"{study}/import", content=votes, headers={"Content-Type": "text/csv"})
    assert sent.json() == {"imported": 2, "note": None}
    for form, kind in (("csv", "text/csv"), ("jsonl", "application/x-ndjson")):
        out = admin.get(f"{study}/export?format={form}")
        assert out.headers["content-type"].startswith(kind)
        assert out.headers["content-disposition"] == f'attachment; filename="search-votes.{form}"'
        again = admin.post("/api/studies", json={"name": form, "arms": ["bm25", "dense", "hybrid"]})
        assert again.status_code == 201
        assert admin.post(f"/api/studies/{form}/import", content=out.content).json() == {"imported": 2, "note": None}
        assert admin.get(f"/api/studies/{form}/export?format={form}").content == out.content
    before = admin.get(study).json()
    bad = admin.post(f"{study}/import", content=b"left,right,winner\nbm25,dense,left\nbm25,dense,maybe\n")
    refused(bad, 400, "invalid", "line 3", "nothing was imported")
    refused(
        admin.post(f"{study}/import", content=b"left,right,winner\nbm25,x,left\n"), 400, "invalid", "does not have: x"
    )
    refused(admin.post(f"{study}/import", content=b""), 400, "invalid", "empty")
    for nothing in (b"[]", b"left,right,winner\n"):
        refused(admin.post(f"{study}/import", content=nothing), 400, "invalid", "holds no votes")
    refused(admin.post(f"{study}/import", content=b"\x1f\x8b\x08"), 400, "invalid", "gzipped")
    refused(admin.post(f"{study}/import", content=b"\xff\xfe,\n"), 400, "invalid", "UTF-8")
    assert admin.get(study).json() == before
    assert admin.post(f"{study}/forget", json={"voter": "ann"}).json() == {"answers": 1}
    assert b"ann" not in admin.get(f"{study}/export").content


def test_items_are_kept_and_paged(admin, study):
    lines = [{"prompt": f"q{k}", "outputs": {"bm25": "x", "dense": {"kind": "code", "content": "y"}}} for k in range(3)]
    sent = admin.post(f"{study}/items", content="\n".join(map(json.dumps, lines)))
    assert (sent.status_code, sent.json()) == (201, {"items": 3, "outputs": 0, "total": 3, "missing": {"hybrid": 3}})
    sent = admin.post(f"{study}/items", content=b"prompt,bm25,hybrid\nq3,u,v\n")
    assert sent.json() == {"items": 1, "outputs": 0, "total": 4, "missing": {"dense": 1, "hybrid": 3}}
    page = admin.get(f"{study}/items?limit=3").json()
    assert [item["prompt"] for item in page["items"]] == ["q0", "q1", "q2"]
    assert page["items"][0]["outputs"]["dense"] == {"kind": "code", "content": "y"}
    rest = admin.get(f"{study}/items?limit=3&after={page['next']}").json()
    assert [item["prompt"] for item in rest["items"]] == ["q3"]
    assert rest["next"] is None
    assert len(admin.get(f"{study}/items?limit=500").json()["items"]) == 4  # the most
    refused(admin.get(f"{study}/items?limit=501"), 422, "invalid", "limit")
    refused(admin.post(f"{study}/items", content=b"prompt,bm25,unknown\nq,u,v\n"), 400, "invalid", "unknown")
    assert admin.get(study).json()["items"] == 4
    assert admin.delete(f"{study}/items").status_code == 204
    assert admin.get(study).json()["items"] == 0


def test_pages_of_items_end_where_their_outputs_are_long(admin, study, monkeypatch):
    monkeypatch.setattr(items, "MOST_TEXT", 100)
    sizes = (40, 60, 1, 150, 99, 1)
    lines = [{"prompt": f"q{k}", "outputs": {"bm25": "x", "dense": "y" * (size - 1)}} for k, size in enumerate(sizes)]
    admin.post(f"{study}/items", content="\n".join(json.dumps(one) for one in lines))
    pages, after = [], 0
    while after is not None:
        page = admin.get(f"{study}/items?after={after}").json()
        pages.append([int(item["prompt"][1:]) for item in page["items"]])
        after = page["next"]
    assert pages == [[0, 1], [2], [3], [4, 5]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "x", "arms": ["a"]}, "arms"),
        ({"name": "x", "arms": ["a", "a"]}, "two arms are called 'a'"),
        ({"name": "", "arms": ["a", "b"]}, "name"),
        ({"name": "a/b", "arms": ["a", "b"]}, "without /"),
        ({"name": "..", "arms": ["a", "b"]}, "study_name"),
        ({"name": "x", "arms": ["a", "b"], "policy": "rucd"}, "rucb"),
        ({"name": "x", "arms": ["a", "b"], "policy": "/tmp/mine.py"}, "unknown policy"),
        ({"name": "x", "arms": ["a", "b"], "policy": "rucb:alpha=x"}, "alpha"),
        ({"name": "x", "arms": ["a", "b"], "policy": "savage"}, "horizon"),
        ({"name": "x", "arms": ["a", "b"], "wings": 1}, "wings"),
        ({"name": "x", "arms": ["a", "tie"]}, "'tie'"),
        ([], "body"),
    ],
)
def test_a_study_that_cannot_be(admin, body, words):
    response = admin.post("/api/studies", json=body)
    assert response.status_code in (400, 422)
    refused(response, response.status_code, "invalid", words)
    assert admin.get("/api/studies").json() == {"studies": []}


@pytest.mark.parametrize("path", ["ask", "tell"])
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"n": 0}', b'{"x": 1}', b'{"n": 1e400}', b"\xff", b'{"voter": 3}']
)
def test_bad_bodies_of_the_quick_requests(admin, study, path, body):
    refused(admin.post(f"{study}/{path}", content=body), 422, "invalid", "/docs")
    assert admin.get(study).json()["seq"] == 1


def test_quick_requests_are_the_routes_that_document_them(admin, study, app):
    """The fast routes answer as FastAPI's own routes would, headers and errors included."""
    from starlette.testclient import TestClient

    headers = {"Authorization": f"Bearer {admin.token}"}
    slow = TestClient(app.fastapi, "http://localhost", headers=headers)
    for body in ({"n": 2}, {"n": 0}, {"voter": "ann", "allow_self": False}, {"nonsense": 1}):
        answers = [client.post(f"{study}/ask", json=body) for client in (admin, slow)]
        assert answers[0].status_code == answers[1].status_code
        assert answers[0].headers["content-type"] == answers[1].headers["content-type"]
        assert answers[0].json().keys() == answers[1].json().keys()
    for duel, winner in ((0, "left"), (0, "right"), (77, "left"), (1, "nobody")):
        one, two = (client.post(f"{study}/tell", json={"duel": duel, "winner": winner}) for client in (admin, slow))
        assert (one.status_code, one.json()) == (two.status_code, two.json())


def test_names_with_every_kind_of_letter(admin):
    for name in ("größe", "a b", "x?y=1", "#1", "日本", "a+b", "'\"<>", "." * 3):
        made = admin.post("/api/studies", json={"name": name, "arms": ["ä", "b c"]})
        assert made.status_code == 201, made.text
        at = f"/api/studies/{quote(name, safe='')}"
        assert admin.get(at).json()["name"] == name
        assert len(ask(admin, at)) == 1
        assert admin.post(f"{at}/arms", json={"name": "c?"}).status_code == 201
        assert admin.post(f"{at}/arms/{quote('b c')}/retire").status_code == 200


def test_a_duel_that_was_never_asked(admin, study):
    refused(tell(admin, study, 0, "left"), 400, "invalid", "no duel 0")
    refused(admin.get(f"{study}/duels/5"), 404, "not_found", "no duel 5")
    refused(admin.get("/api/nothing"), 404, "not_found", "/docs")
    refused(admin.put(study), 405, "method_not_allowed", "PUT")


def test_many_at_once_are_asked_different_questions(admin):
    study = "/api/studies/spread"
    admin.post("/api/studies", json={"name": "spread", "arms": ["bm25", "dense", "hybrid"], "policy": "rucb"})
    duels = ask(admin, study, n=3)
    pairs = [frozenset((duel["left"], duel["right"])) for duel in duels]
    assert len(set(pairs)) == 3  # open duels count as ties, so that they spread out


def test_the_voter_is_kept_in_the_log(admin, study, storage):
    (duel,) = ask(admin, study, voter="ann")
    tell(admin, study, duel["id"], "tie", voter="ann")
    with storage.engine.connect() as connection:
        voters = connection.execute(sa.select(events.c.voter).order_by(events.c.seq)).scalars().all()
    assert voters == [None, "ann", "ann"]


def test_a_study_made_elsewhere_is_seen_and_a_deleted_one_is_gone(admin, study, storage):
    """Another process deletes a study and makes one of the same name: nothing of the old one is remembered."""
    ask(admin, study, n=2)
    create.delete_study("search", storage)
    refused(admin.post(f"{study}/ask", json={}), 404, "not_found")
    refused(admin.get(study), 404, "not_found")
    create.create_study(["x", "y"], "search", storage)
    (duel,) = ask(admin, study)
    assert {duel["left"], duel["right"]} <= {"x", "y"}
    assert duel["id"] == 0


def test_the_description_is_written_once(app, anybody, monkeypatch):
    written, write = [], app.fastapi.openapi
    monkeypatch.setattr(app.fastapi, "openapi", lambda: written.append(1) or write())
    plain, packed = (anybody.get("/openapi.json", headers={"Accept-Encoding": how}) for how in ("identity", "gzip"))
    assert plain.json() == packed.json() == write()
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 5
    assert written == [1]


def test_every_operation_says_what_it_needs(app):
    """Whatever is not for voters or health checks asks for a key, in the documentation too."""
    spec = app.fastapi.openapi()
    for path, operations in spec["paths"].items():
        for operation in operations.values():
            open_to_all = path.startswith(("/api/vote/", "/api/results/", "/output/", "/preview-output/", "/healthz"))
            assert bool(operation.get("security")) != open_to_all, path
            assert "422" not in operation["responses"] or "Problem" in json.dumps(operation["responses"]["422"])
            assert operation["summary"].endswith((".", "?")), path


def test_an_api_token_may_not_manage(admin, study, anybody, storage):
    _, token = make_key(storage, "api", "program")
    link = admin.post(f"{study}/links", json={}).json()
    anybody.headers["Authorization"] = f"Bearer {token}"
    assert anybody.post(f"{study}/ask", json={}).status_code == 200
    assert anybody.get(study).status_code == 200
    for method, path in (
        ("DELETE", study),
        ("POST", f"{study}/links"),
        ("DELETE", f"{study}/links/{link['id']}"),
        ("GET", "/api/tokens"),
        ("POST", "/api/tokens"),
        ("DELETE", "/api/tokens/1"),
    ):
        sent = anybody.request(method, path, json={"name": "x"} if method == "POST" else None)
        refused(sent, 403, "forbidden", "admin")


def test_tokens_are_made_listed_and_revoked(admin, anybody, study):
    made = admin.post("/api/tokens", json={"name": "ci", "kind": "api"}).json()
    assert set(made) == {"id", "kind", "name", "token"}
    listed = admin.get("/api/tokens").json()["tokens"]
    assert [(one["name"], one["kind"], one["revoked"]) for one in listed] == [
        ("test", "admin", None),
        ("ci", "api", None),
    ]
    assert made["token"] not in json.dumps(listed)
    anybody.headers["Authorization"] = f"Bearer {made['token']}"
    assert anybody.post(f"{study}/ask", json={}).status_code == 200
    assert anybody.get(study).status_code == 200
    assert admin.delete(f"/api/tokens/{made['id']}").status_code == 204
    for method, path in itertools.product(("GET",), (study, f"{study}/events", "/metrics", f"{study}/stream")):
        refused(anybody.request(method, path), 401, "unauthorized")
    for action in ("ask", "tell", "undo"):  # from memory too
        body = {} if action == "ask" else {"duel": 0} | ({"winner": "left"} if action == "tell" else {})
        refused(anybody.post(f"{study}/{action}", json=body), 401, "unauthorized")
    refused(admin.delete("/api/tokens/999"), 404, "not_found")


def test_links_lead_where_others_reach_the_server(admin, study, app):
    at = f"{study}/links"
    assert admin.post(at, json={}).json()["url"].startswith("http://localhost/vote/")
    app.service.shared_url = "http://10.1.2.3:8080"
    assert admin.post(at, json={}).json()["url"].startswith("http://10.1.2.3:8080/vote/")
    app.service.public_url = "https://duels.example.org"
    assert admin.post(at, json={}).json()["url"].startswith("https://duels.example.org/vote/")


def test_details_are_computed_once_for_each_state_of_the_log(admin, study, monkeypatch):
    made = []
    service = sys.modules["duels.server.state"]
    monkeypatch.setattr(service, "list_details", lambda *given: made.append(given) or list_details(*given))
    first = admin.get(f"{study}/details").json()
    assert (first["over_time"], first["pairs"], first["pairs_total"]) == ([], [], 3)
    assert admin.get(f"{study}/details").json() == first
    assert len(made) == 1
    (duel,) = ask(admin, study, allow_self=False)
    (question,) = admin.get(f"{study}/details").json()["open"]
    assert (question["id"], question["left"], question["waiting"]) == (duel["id"], duel["left"], True)
    tell(admin, study, duel["id"], "left")
    later = admin.get(f"{study}/details").json()
    assert [answers for _, answers in later["over_time"]] == [0, 1]
    assert (later["open"], later["pairs_met"]) == ([], 1)
    assert len(made) == 3


def test_summaries_are_sentences(app):
    for path, methods in app.fastapi.openapi()["paths"].items():
        for method, operation in methods.items():
            assert re.fullmatch(r"[A-Z][^\n]{8,}[.?]", operation["summary"]), (method, path, operation["summary"])
            assert not operation.get("description", "").startswith(operation["summary"])


def test_exports(admin, study):
    admin.post(f"{study}/import", content="left,right,winner\nbm25,dense,left\ndense,hybrid,tie\n")
    sent = admin.get(f"{study}/export", params={"format": "parquet"})
    assert sent.headers["content-type"] == "application/vnd.apache.parquet"
    assert [vote[:3] for vote in read_votes(sent.content)] == [("bm25", "dense", "left"), ("dense", "hybrid", "tie")]
