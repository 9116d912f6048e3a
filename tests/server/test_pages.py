"""The pages as the server sends them: who sees them, their headers, and nothing in them that users wrote as markup."""

import json
import re
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from duels.policies import BUILT_IN
from duels.server.app import create_app
from duels.server.http.files import place
from duels.server.http.middleware import POLICY
from duels.server.keys import csrf_token, make_key
from duels.server.pages import base
from duels.server.pages.base import progress_of
from duels.study import base as log
from duels.study.create import create_study
from duels.study.duels import iso_time
from duels.study.stats.forecast import MOST_SHOWN
from duels.study.study import Study

HERE = base.HERE
XSS = "<script>window.xss=1</script>\"'><img src=x onerror=window.xss=1>"
TABS = ["", "/items", "/voters", "/share", "/settings"]
ON_PAGES = ["/", "/tokens", *(f"/studies/search{tab}" for tab in TABS), "/docs"]


class Page(HTMLParser):
    """The elements of a page as (tag, attributes), the text of its scripts and styles, and its other text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.code, self.words, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside = dict(attributes).get("type", tag)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data):
        if self._inside is None:
            self.words.append(data)
        elif data.strip():
            self.code.append((self._inside, data))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def people(app, admin, study):
    """A browser that has signed in; `page` parses what it gets."""
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        response = client.post("/signin", data={"token": admin.token})
        assert (response.status_code, response.headers["location"]) == (303, "/")
        client.page = lambda path: Page(client.get(path).text)
        yield client


def csrf(client):
    (meta,) = [one for one in client.page("/").all("meta") if one.get("name") == "csrf-token"]
    return meta["content"]


def test_addresses_that_lead_nowhere_are_a_page_for_people_and_one_shape_for_programs(anybody):
    page = anybody.get("/studiesX", headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Page not found" in page.text
    for path, accept in (("/studiesX", "*/*"), ("/api/x", "text/html")):
        plain = anybody.get(path, headers={"Accept": accept})
        assert (plain.status_code, plain.json()["error"]["kind"]) == (404, "not_found")


def test_of_the_files_of_fastapi_offline_only_swagger_ui_is_served(anybody):
    for name in ("swagger-ui.css", "swagger-ui-bundle.js"):
        assert anybody.get(f"{place()}/{name}").status_code == 200
    outside = ("..%2fpages.py", "%2e%2e%2fpages.py", "..%5cpages.py", "/etc/passwd", "ui.js%00", "UI.js")
    for name in (
        "redoc.standalone.js",
        "favicon.png",
        "",
        ".",
        "../static/redoc.standalone.js",
        "%2e/favicon.png",
        *outside,
    ):
        assert anybody.get(f"{place()}/{name}").status_code == 404, name


def test_files_are_compressed_and_cached_by_their_digest(anybody):
    for name in ("results.js", "study.css", "details.js", "swagger-ui-bundle.js", "icon.svg"):
        plain = anybody.get(f"{place()}/{name}", headers={"Accept-Encoding": "identity"})
        packed = anybody.get(f"{place()}/{name}", headers={"Accept-Encoding": "br;q=1, gzip;q=0.5"})
        assert packed.content == plain.content
        assert "content-encoding" not in plain.headers
        for answer in (plain, packed):
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["vary"] == "Accept-Encoding"
        if name != "icon.svg":
            assert packed.headers["content-encoding"] == "gzip"
            assert int(packed.headers["content-length"]) < 0.5 * len(plain.content)
    old = anybody.get("/static/0123456789abcdef/results.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert old.headers["cache-control"] == "no-store"  # of another version of the server: do not mix
    assert "content-encoding" not in old.headers


def test_nothing_with_a_secret_is_compressed(people, admin, study):
    """Whoever sees the length of a compressed answer, and can put text into it, can guess its secret."""
    gzip = {"Accept-Encoding": "gzip"}
    link = admin.post(f"{study}/links", json={"name": "x"})
    for path in [*ON_PAGES, "/signin", f"/vote/{link.json()['secret']}"]:
        assert "content-encoding" not in people.get(path, headers=gzip).headers, path
    assert "content-encoding" not in link.headers
    assert "content-encoding" not in admin.post("/api/tokens", json={"name": "x"}, headers=gzip).headers
    many = [f"arm {k}" for k in range(40)]
    admin.post("/api/studies", json={"name": "many", "arms": many})
    answer = admin.get("/api/studies/many/results", headers=gzip)
    assert answer.headers["content-encoding"] == "gzip"
    assert [row["arm"] for row in answer.json()["arms"]] == many


@pytest.mark.parametrize("path", ["/", "/studies/search"])
def test_who_has_not_signed_in_is_sent_to_do_so(anybody, study, path):
    response = anybody.get(path)
    assert response.status_code == 303
    assert response.headers["location"] == ("/signin" if path == "/" else "/signin?next=%2Fstudies%2Fsearch")


def test_the_session_cookie_is_for_the_server_only(app, admin):
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        cookie = client.post("/signin", data={"token": admin.token}).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert re.search(r"samesite=(lax|strict)", cookie)
    assert "path=/" in cookie
    assert "secure" not in cookie  # this server is reached by http


def test_behind_https_the_session_cookie_is_never_sent_without(storage):
    _, token = make_key(storage, "admin", "test")
    with TestClient(create_app(storage, public_url="https://duels.test"), "https://duels.test") as client:
        response = client.post("/signin", data={"token": token}, follow_redirects=False)
    assert "secure" in response.headers["set-cookie"].lower()


@pytest.mark.parametrize("kind", ["api", "vote", "none"])
def test_only_an_admin_signs_in(app, storage, anybody, study, kind):
    token = "nobody's token at all" if kind == "none" else make_key(storage, kind, "x")[1]
    response = anybody.post("/signin", data={"token": token})
    assert response.status_code == 401
    assert "cannot open the dashboard" in Page(response.text).text
    assert "set-cookie" not in response.headers
    assert token not in response.text


def test_signing_in_from_another_sites_page_is_refused_on_a_page(app, admin, anybody):
    response = anybody.post("/signin", data={"token": admin.token}, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403
    assert response.headers["content-type"].startswith("text/html")
    assert "set-cookie" not in response.headers


def test_guessing_tokens_is_slowed_down(anybody):
    statuses = [anybody.post("/signin", data={"token": f"guess {n}"}).status_code for n in range(15)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert int(anybody.post("/signin", data={"token": "again"}).headers["retry-after"]) >= 1


def test_a_session_changes_something_only_with_the_pages_csrf_token(people):
    arm = {"name": "splade"}
    assert people.post("/api/studies/search/arms", json=arm).status_code == 403
    assert people.post("/api/studies/search/arms", json=arm, headers={"X-CSRF-Token": "0" * 64}).status_code == 403
    assert people.post("/api/studies/search/arms", json=arm, headers={"X-CSRF-Token": csrf(people)}).status_code == 201


def test_the_csrf_token_is_that_of_the_session(people):
    assert csrf(people) == csrf_token(people.cookies["duels_session"])


def test_after_signing_out_the_session_is_over_also_for_who_kept_the_cookie(people):
    kept = people.cookies["duels_session"]
    assert people.post("/signout").headers["location"] == "/signin"
    people.cookies.set("duels_session", kept)
    assert people.get("/").status_code == 303
    assert people.get("/api/studies").status_code == 401


@pytest.mark.parametrize("path", [*ON_PAGES, "/signin", "/vote/nothing", "/studies/none"])
def test_every_page_has_the_strict_policy(people, path):
    headers = people.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_study_that_is_not_there_is_a_page(people):
    response = people.get("/studies/<i>none")
    assert (response.status_code, response.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<i>none" in Page(response.text).text
    assert "<i>" not in response.text


def test_a_link_that_is_not_there_or_was_revoked_is_gone(people, admin):
    made = admin.post("/api/studies/search/links", json={"votes": 3}).json()
    path = f"/vote/{made['secret']}"
    assert people.get(path).status_code == 200
    assert admin.delete(f"/api/studies/search/links/{made['id']}").status_code == 204
    for gone in (path, "/vote/nothing"):
        response = people.get(gone)
        assert response.status_code == 404
        assert "This link no longer works" in Page(response.text).text


def test_without_sign_in_the_pages_have_no_sign_out(storage):
    with TestClient(create_app(storage, open_to_all=True), "http://localhost") as client:
        text = Page(client.get("/signin").text).text  # which leads on
    assert "New study" in text
    assert "Sign out" not in text


def paths_of(people, admin):
    link = admin.post("/api/studies/search/links", json={"name": "hello"}).json()["secret"]
    return [*ON_PAGES, "/signin", f"/vote/{link}", "/vote/nothing", "/studies/none"]


def test_pages_have_no_code_in_line_and_load_nothing_from_elsewhere(people, admin):
    for path in paths_of(people, admin):
        page = people.page(path)
        assert {kind for kind, _ in page.code} <= {"application/json"}, path
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (path, tag)
            for name in ("src", "href", "action", "srcset", "poster", "data"):
                value = attributes.get(name) or ""
                assert not re.match(r"(\w+:|//)", value), (path, tag, value)


def test_templates_and_scripts_speak_of_no_other_host():
    files = [*HERE.glob("templates/*"), *HERE.glob("static/*")]
    assert len(files) > 20
    for file in files:
        found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", file.read_text())
        assert [one for one in found if not one.startswith("http://www.w3.org/")] == [], file


def test_our_files_and_those_of_libraries_are_served(people):
    wanted = set()
    for path in [*ON_PAGES, "/signin"]:
        page = people.page(path)
        wanted |= {one["src"] for one in [*page.all("script"), *page.all("img")] if "src" in one}
        wanted |= {one["href"] for one in page.all("link")}
    assert {f"{place()}/{name}" for name in ("results.js", "swagger-ui-bundle.js", "duels.css")} <= wanted
    for path in wanted:
        assert people.get(path).status_code == 200, path


@pytest.fixture
def hostile(admin):
    """A study in which everything that somebody can write is an attack."""
    name, arms = XSS.replace("/", "|"), [f"{XSS} {k}" for k in range(3)]
    made = admin.post("/api/studies", json={"name": name, "arms": arms})
    assert made.status_code == 201, made.text
    study = admin.get("/api/studies").json()["studies"][-1]["name"]
    at = f"/api/studies/{study}"
    for k in range(6):
        duel = admin.post(f"{at}/ask", json={"allow_self": False}).json()["duels"][0]
        told = {"duel": duel["id"], "winner": "left", "voter": f"{XSS} {k}"}
        assert admin.post(f"{at}/tell", json=told).status_code == 200
    link = admin.post(f"{at}/links", json={"name": XSS}).json()["secret"]
    assert admin.post("/api/tokens", json={"name": XSS}).status_code == 201
    return study, link


def test_what_users_wrote_is_text_on_every_page(people, hostile):
    study, link = hostile
    expected = {
        "/": 1,
        "/tokens": 1,
        f"/studies/{study}": 4,
        f"/studies/{study}/voters": 8,
    }
    expected |= {f"/studies/{study}/settings": 5, f"/studies/{study}/share": 3, f"/vote/{link}": 1}
    for path, times in expected.items():
        response = people.get(path)
        assert response.status_code == 200
        page = Page(response.text)
        assert page.text.count("<script>window.xss=1<") >= times, path
        assert "<script>window.xss" not in response.text
        assert {one["src"] for one in page.all("img")} <= {f"{place()}/icon.svg"}
        assert {kind for kind, _ in page.code} <= {"application/json"}


def test_the_results_of_a_hostile_study_are_still_data(people, hostile):
    ((_, data),) = people.page(f"/studies/{hostile[0]}").code
    assert {row["arm"] for row in json.loads(data)["arms"]} == {f"{XSS} {k}" for k in range(3)}


def test_the_voters_page_says_who_answered(people, admin, study):
    for voter in ("ann", "ben", "ann"):
        duel = admin.post(f"{study}/ask", json={"allow_self": False}).json()["duels"][0]
        admin.post(f"{study}/tell", json={"duel": duel["id"], "winner": "left", "voter": voter})
    text = people.page("/studies/search/voters").text
    assert re.search(r"\bann 2 ", text), text[-2500:]
    assert "ben 1 " in text


def test_every_input_has_a_label_and_every_table_a_caption(people, admin):
    for path in paths_of(people, admin):
        page = people.page(path)
        labeled = {one.get("for") for one in page.all("label")} | {"keys"}  # that one stands in its label
        inputs = [one for tag in ("input", "select", "textarea") for one in page.all(tag)]
        inputs = [one for one in inputs if one.get("type") != "hidden"]
        assert {one["id"] for one in inputs} - {"confirm-typed"} <= labeled, path
        assert len(page.all("caption")) == len(page.all("table")), path
        assert all("scope" in one for one in page.all("th")), path
        assert len(page.all("main")) == len(page.all("h1")) == 1, path
        ids = [one["id"] for _, one in page.elements if "id" in one]
        assert len(ids) == len(set(ids)), path


NOT_YET = {"kind": "not yet", "leader": "a", "level_with": [], "arms": 4, "duels": 9, "answers_to_go": None}
NOT_YET |= {"open_pairs": [["a", "b"]], "effect": None}
EFFECT = {"effect": {"share": 0.74, "lower": 0.68, "upper": 0.79}}


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ({"kind": "winner", "leader": "a"}, "Winner: a"),
        ({"kind": "winner", "leader": "a"} | EFFECT, "Winner: a wins 74 % of its comparisons (68 to 79 %)"),
        ({"kind": "winner", "leader": "a", "arms": 1}, "Only arm left: a"),
        ({"kind": "no condorcet winner", "leader": None}, "No winner: no arm beats all others"),
        (
            {"kind": "practically tied", "leader": "a", "margin": 0.1, "tied_with": ["b"]},
            "Practically as good as any: a",
        ),
        ({"leader": None, "duels": 0}, "Not yet: no two arms have met"),
        ({"leader": None}, "Not yet: no two active arms have met"),
        ({}, "Not yet: a leads"),
        (EFFECT, "Not yet: a leads with 74 % (68 to 79 %)"),
        ({"effect": {"share": 0.74, "lower": None, "upper": None}}, "Not yet: a leads with 74 %"),
        ({"answers_to_go": 1280}, "Not yet: a leads, about 1,300 answers to go"),
        ({"level_with": ["b"], "answers_to_go": 9}, "Not yet: a and b share the first rank, about 9 answers to go"),
        ({"open_pairs": [["d", "a"]]}, "Not yet: a leads, d may still win"),
    ],
)
def test_headlines(verdict, words):
    assert base.headline(NOT_YET | verdict) == words


def test_a_retired_study_does_not_look_ahead(people, admin, study):
    votes = ["bm25,dense,left", "bm25,hybrid,left"]
    content = "left,right,winner\n" + "\n".join(votes * 14 + ["dense,bm25,left", "hybrid,bm25,left"] * 4)
    early = admin.post(f"{study}/import", content="left,right,winner\n" + "\n".join(votes * 2))
    assert early.status_code == 200
    for path in ("", "/studies/search"):
        assert "answers to go" not in people.page(path or "/").text
        assert "Not yet: bm25 leads" in people.page(path or "/").text
    assert "It is too early to say how many more answers are needed." in people.page("/studies/search").text
    assert admin.post(f"{study}/import", content=content).status_code == 200
    text, answers = people.page("/studies/search").text, admin.get(f"{study}/forecast").json()["answers_median"]
    assert re.search(rf"Not yet: bm25 leads with [^,]*, about {float(f'{answers:.2g}'):,.0f} answers to go", text)
    assert admin.get(f"{study}/verdict").json()["answers_to_go"] == answers
    admin.post(f"{study}/retire")
    text = people.page("/studies/search").text
    assert "No verdict: bm25 led" in text
    assert "The study is retired: it asks nothing more. Open questions can still be answered." in text
    assert "answers to go" not in text + people.page("/").text
    nobody = NOT_YET | {"leader": None, "duels": 0}
    assert base.headline(nobody, retired=True) == "No verdict: no two arms have met"
    level = NOT_YET | {"level_with": ["b"]}
    assert base.headline(level, retired=True) == "No verdict: a and b shared the first rank"


def test_a_study_without_answers_says_what_comes_next(people, admin, study):
    page = people.page("/studies/search")
    assert "Next steps Upload the outputs of each arm , or skip this to compare names." in page.text
    ids = {one["id"] for _, one in page.elements if "id" in one}
    assert {one["href"][1:] for one in page.all("a") if one["href"].startswith("#")} <= ids
    admin.post(f"{study}/import", content="left,right,winner\nbm25,dense,left\n")
    assert "Next steps" not in people.page("/studies/search").text


def test_a_study_can_be_looked_at_again_and_again(people, admin, study):
    admin.post(f"{study}/import", content="left,right,winner\nbm25,dense,left\n")
    first, again = (people.get("/studies/search") for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert Page(first.text).code == Page(again.text).code


def test_the_page_says_where_a_study_stands_before_the_verdict(people, admin, study):
    page = people.page("/studies/search")
    assert {row["share"] for row in json.loads(page.code[0][1])["arms"]} == {None}  # nothing is known yet
    assert "Nobody has voted yet. Create a voting link under Share" in page.text
    assert "After the winner stop" in page.text
    send = {"headers": {"Content-Type": "text/csv"}}
    admin.post(f"{study}/import", content="left,right,winner\n" + "bm25,dense,left\nbm25,hybrid,left\n" * 5, **send)
    found = admin.get(f"{study}/forecast").json()
    assert found["chances"][0]["arm"] == "bm25"
    page = people.page("/studies/search")
    chance = f"{found['chances'][0]['chance']:.0%}".replace("%", " %")
    assert f"bm25 is the best with a chance of {chance}, as far as these answers can tell." in page.text
    assert "A verdict takes more than such an estimate: it holds however often you look." in page.text
    assert re.search(r"Not yet: bm25 leads with \d+ % \(\d+ to \d+ %\) 10 answers bm25 is the best", page.text)
    assert "Go on. It is too early to say how many more answers are needed." in page.text  # 10 answers for 3 arms
    shown = {row["arm"]: row["share"] for row in json.loads(page.code[0][1])["arms"]}
    assert shown == {row["arm"]: row["share"] for row in admin.get(f"{study}/leaderboard").json()["leaderboard"]}
    admin.post(f"{study}/import", content="left,right,winner\n" + "bm25,dense,left\nbm25,hybrid,left\n" * 9, **send)
    text = people.page("/studies/search").text
    assert "Winner: bm25" in text
    assert "You can stop: the winner is known." in text
    # Past votes may come from people who came back, so that each pair of a winner is certain on its own.
    pairs = admin.get(f"{study}/details").json()["pairs"]
    assert [row["certain"] for row in pairs if "bm25" in row.values()] == ["first", "first"]


def test_the_page_says_how_far_the_ranking_is(people, admin):
    admin.post("/api/studies", json={"name": "order", "arms": ["x", "y", "z"], "after": "rank"})
    votes, send = "left,right,winner\n" + "x,y,left\nx,z,left\n" * 20, {"headers": {"Content-Type": "text/csv"}}
    admin.post("/api/studies/order/import", content=votes, **send)
    text = people.page("/studies/order").text
    assert "After the winner rank the others" in text
    assert "Go on until all ranks are certain: 1 of 3 ranks is certain." in text
    admin.post("/api/studies/order/import", content="left,right,winner\n" + "y,z,left\n" * 20, **send)
    assert "You can stop: 3 of 3 ranks are certain." in people.page("/studies/order").text


def test_the_page_says_what_the_verdict_is_about(people, admin, study):
    assert "Verdict about" not in people.page("/studies/search").text  # without prompts there is nothing to tell apart
    admin.post("/api/studies", json={"name": "exact", "arms": ["x", "y"], "about": "these-answers"})
    admin.post("/api/studies/exact/items", content="prompt,x,y\nq,1,2\nr,1,2\n", headers={"Content-Type": "text/csv"})
    assert admin.post("/api/studies/exact/ask", json={}).json()["duels"][0]["item"]["number"] in (1, 2)
    assert "Verdict about the answers given on these 2 prompts" in people.page("/studies/exact").text


def test_many_arms_are_not_estimated_on_the_page(people, admin):
    arms = [f"arm {k}" for k in range(MOST_SHOWN + 1)]
    admin.post("/api/studies", json={"name": "many", "arms": arms, "policy": "random"})
    votes = "left,right,winner\narm 0,arm 1,left\n"
    admin.post("/api/studies/many/import", content=votes, headers={"Content-Type": "text/csv"})
    page = people.page("/studies/many")
    assert "is the best with a chance of" not in page.text
    assert "Not yet: arm 0 leads 1 answer arm 0 ranks first so far, but that may still change." in page.text
    assert "How many is not estimated for more than 50 arms." in page.text


def test_a_standing_is_computed_once_for_each_state(admin, study, monkeypatch):
    calls, compute = [], Study.forecast
    monkeypatch.setattr(Study, "forecast", lambda self: calls.append(1) or compute(self))
    for _ in range(3):
        admin.get(f"{study}/forecast")
    assert len(calls) == 1
    admin.post(f"{study}/ask", json={})
    admin.get(f"{study}/forecast")
    assert len(calls) == 2


def test_the_form_says_what_policies_are_for(people):
    text = people.page("/").text
    assert "verdict — the fewest answers until a verdict rucb — low regret while it runs kl_rucb rcs dts — if" in text
    assert set(base.ABOUT) <= set(BUILT_IN)


def test_a_winner_and_a_retired_study_are_marked_in_the_list(people, admin, study):
    votes = "left,right,winner\n" + "bm25,dense,left\nbm25,hybrid,left\n" * 40
    sent = admin.post(f"{study}/import", content=votes, headers={"Content-Type": "text/csv"})
    assert sent.json() == {"imported": 80, "note": None}
    admin.post(f"{study}/retire")
    text = people.page("/").text
    assert re.search(
        r"search retired Winner: bm25 wins \d+ % of its comparisons \(\d+ to 100 %\) 3 arms · 80 answers ·", text
    )
    assert "Winner: bm25" in people.page("/studies/search").text


def test_progress_is_the_share_of_the_answers_that_are_likely_needed():
    def progress(kind="not yet", median=300, answers=100):
        return progress_of({"kind": kind, "answers_to_go": median}, {"answers": answers})

    assert progress() == 25  # 100 of 400
    assert progress(answers=10**6, median=1) == 99  # not before the verdict
    assert progress("winner", None) == 100
    assert progress(median=None) is None  # nothing is forecast


def test_what_time_alone_changes_is_seen(people, admin, storage, monkeypatch):
    """An open question counts as lost until its lease has ended: then there may be a winner without another answer."""
    now = [log.clock()]
    monkeypatch.setattr(log, "clock", lambda: now[0])
    study = create_study(["x", "y"], "waits", storage)
    study.ask(voter="somebody who leaves", allow_self=False)
    for k in range(13):
        now[0] += 60
        duel = study.ask(voter=f"person {k}", allow_self=False)
        study.tell(duel, "left" if duel.left == "x" else "right", voter=f"person {k}")
    seq = admin.get("/api/studies/waits").json()["seq"]

    def kinds():
        shown = admin.get("/api/studies/waits/results").json()["verdict"]["kind"]
        return [shown, re.search(r'data-kind="([^"]*)"', people.get("/").text)[1]]

    assert set(kinds()) == {"not yet"}
    now[0] += 3600
    assert set(kinds()) == {"winner"}
    assert admin.get("/api/studies/waits").json()["seq"] == seq


def test_a_rate_that_is_over_is_not_shown(people, admin, storage, monkeypatch):
    now = [log.clock()]
    monkeypatch.setattr(log, "clock", lambda: now[0])
    study = create_study(["x", "y", "z"], "idle", storage)
    study.import_votes([*(("x", other) for other in "yz"), ("y", "z"), ("y", "x"), ("z", "y")] * 8)
    study.import_votes([("x", "y")] * 20)
    for k in range(6):
        now[0] += 60
        study.tell(study.ask(voter=f"person {k}", allow_self=False), "tie", voter=f"person {k}")
    result = admin.get("/api/studies/idle/results").json()["next"]
    assert (result["until"] > iso_time(now[0]), result["last"], result["quiet"]) == (True, iso_time(now[0]), 600)
    assert "At the present rate that takes" in admin.get("/api/studies/idle/forecast").json()["words"]
    now[0] += 20 * 60
    later = admin.get("/api/studies/idle/results").json()["next"]
    assert later == result | {"until": None}
    assert "present rate" not in admin.get("/api/studies/idle/forecast").json()["words"]
    assert admin.get("/api/studies/idle/forecast").json()["answers_an_hour"] is None


def test_the_list_says_how_the_newest_studies_stand(people, app, storage, monkeypatch):
    """Verdicts of thousands of studies took a minute."""
    monkeypatch.setattr(base, "ESTIMATED", 2)
    for name in ("one", "two", "three"):
        create_study(["a", "b"], name, storage)
    asked, verdict = [], app.service.verdict
    monkeypatch.setattr(app.service, "verdict", lambda study: asked.append(study.name) or verdict(study))
    shown = people.get("/").text
    assert asked == ["three", "two"]
    assert shown.count("Open it to see how it stands") == 2
