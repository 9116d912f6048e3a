"""The Items tab over HTTP: results by item and tag, removing and replacing; its pages, and who may see them."""

import json
import re

import pytest

from duels.server.http.limits import Limits
from duels.server.keys import csrf_token, make_key
from duels.study.create import create_study
from duels.study.items import add_items

from .test_voting import Visitor, browser, patient, refused  # noqa: F401

AT = "/api/studies/zoo"
ARMS = ["ape", "bat", "cat"]
PNG = "data:image/png;base64,iVBORw0KGgo="
XSS = "<script>window.xss=1</script>\"'><img src=x onerror=window.xss=1>"


def item(prompt, *tags, **outputs):
    return {"prompt": prompt, "outputs": dict.fromkeys(ARMS, "hm") | outputs, "tags": list(tags)}


@pytest.fixture
def zoo(storage, patient):  # noqa: F811
    study = create_study(ARMS, "zoo", storage)
    add_items(study, [item("Say 1 %.", "short"), item("Sing!", "music", "loud"), item("Shout!", "loud"), item("Be.")])
    return study


@pytest.fixture
def signed_in(admin, anybody):
    assert anybody.post("/signin", data={"token": admin.token}).status_code == 303
    return anybody


def vote(study, times=60):
    """The ape wins on all items but the third, where people disagree."""
    for k in range(times):
        duel = study.ask(voter=f"v{k % 7}", allow_self=False)
        likes = "ape" if duel.item.number != 3 or k % 2 else "cat"
        winner = next((one for one in (likes, "bat") if one in (duel.left, duel.right)), "tie")
        study.tell(duel, winner, voter=f"v{k % 7}", note=f"because {k}" if k % 3 == 0 else None)


def whats(admin):
    return [one["what"] for one in admin.get(f"{AT}/changes").json()["changes"]]


def test_items_are_listed_searched_and_filtered(zoo, admin):
    def found(**asked):
        body = admin.get(f"{AT}/items", params=asked).json()
        return [one["number"] for one in body["items"]], body["next"], body["total"]

    assert found() == ([1, 2, 3, 4], None, 4)
    assert found(limit=2) == ([1, 2], 2, 4)
    assert found(limit=2, after=2) == ([3, 4], None, 4)
    assert found(search="s", limit=1, after=1) == ([2], 2, 3)
    assert found(search="%") == ([1], None, 1)
    assert found(tag="loud") == ([2, 3], None, 2)
    assert found(tag="lou") == ([], None, 0)
    assert admin.get(f"{AT}/items").json()["items"][1]["tags"] == ["music", "loud"]
    for wrong in ({"search": "x" * 201}, {"tag": "x" * 61}, {"limit": 501}, {"after": -1}):
        refused(admin.get(f"{AT}/items", params=wrong), 422, "invalid")


def test_results_of_items_and_tags(zoo, admin):
    vote(zoo)
    body = admin.get(f"{AT}/item-results", params={"order": "disagreement", "limit": 3}).json()
    assert (body["total"], body["page"], body["pages"], len(body["items"])) == (4, 1, 2, 3)
    first = body["items"][0]
    assert first["number"] == 3
    assert first["disagreement"] == pytest.approx(first["contradictions"] / first["compared"])
    rows = admin.get(f"{AT}/item-results").json()["items"]
    assert sum(row["answers"] for row in rows) == 60
    assert [row["leader"] for row in rows if row["number"] in (1, 2, 4)] == ["ape"] * 3
    tags = {row["tag"]: row for row in admin.get(f"{AT}/tag-results").json()["tags"]}
    assert set(tags) == {"short", "music", "loud"}
    answers = {row["number"]: row["answers"] for row in rows}
    assert tags["loud"]["answers"] == answers[2] + answers[3]
    assert (tags["loud"]["items"], tags["music"]["items"]) == (2, 1)
    for wrong in ({"order": "luck"}, {"page": 0}, {"limit": 0}):
        refused(admin.get(f"{AT}/item-results", params=wrong), 422, "invalid")


def test_one_item_has_everything_but_who_said_it(zoo, admin):
    vote(zoo)
    sent = admin.get(f"{AT}/items/2")
    body = sent.json()
    assert (body["prompt"], body["tags"], set(body["outputs"])) == ("Sing!", ["music", "loud"], set(ARMS))
    assert sum(one["wins"] + one["losses"] + one["ties"] for one in body["arms"]) == 2 * body["answers"]
    assert body["comments"]
    assert set(body["comments"][0]) == {"first", "second", "answer", "comment"}
    assert not re.search(r'"v\d"', sent.text)
    assert (body["previous"], body["next"]) == (1, 3)
    refused(admin.get(f"{AT}/items/9"), 404, "not_found", "has no item 9")
    refused(admin.get(f"{AT}/items/0"), 422, "invalid")


def test_an_item_is_removed_for_good(zoo, admin):
    vote(zoo, 20)
    seen = admin.get(AT).json()["answers"]
    assert admin.delete(f"{AT}/items/4").status_code == 204
    refused(admin.delete(f"{AT}/items/4"), 404, "not_found", "may have been removed")
    assert (admin.get(AT).json()["items"], admin.get(AT).json()["answers"]) == (3, seen)
    added = admin.post(f"{AT}/items", content=json.dumps(item("New."))).json()
    assert added == {"items": 1, "outputs": 0, "total": 4, "missing": {}}
    assert [one["number"] for one in admin.get(f"{AT}/items").json()["items"]] == [1, 2, 3, 5]
    assert whats(admin) == ["Uploaded 1 item.", "Removed item 4."]


def test_an_item_is_replaced(zoo, admin):
    sent = admin.put(f"{AT}/items/4", content=json.dumps(item("Be!", "short", ape="I am.")))
    assert (sent.status_code, sent.json()) == (200, {"number": 4})
    assert admin.get(f"{AT}/items/4").json()["outputs"]["ape"] == {"kind": "text", "content": "I am."}
    vote(zoo, 40)  # all items are shown
    csv = "prompt,ape,bat,tags\nTable,1,2,\n"
    assert admin.put(f"{AT}/items/4", content=csv, headers={"Content-Type": "text/csv"}).json() == {"number": 5}
    assert [one["number"] for one in admin.get(f"{AT}/items").json()["items"]] == [1, 2, 3, 5]
    assert whats(admin) == ["Replaced item 4."] * 2
    before = admin.get(f"{AT}/items").json()
    refused(admin.put(f"{AT}/items/4", content=csv), 404, "not_found", "has no item 4")
    refused(admin.put(f"{AT}/items/1", content=csv + "b,1,2,\n"), 400, "invalid", "found 2 items, expected one")
    refused(admin.put(f"{AT}/items/1", content="prompt,ape,dog\nx,1,2\n"), 400, "invalid", "does not have: dog")
    refused(admin.put(f"{AT}/items/1", content=""), 400, "invalid", "empty")
    refused(admin.put(f"{AT}/items/1", content=b"\x1f\x8bxx"), 400, "invalid", "gzipped")
    assert admin.get(f"{AT}/items").json() == before
    assert len(whats(admin)) == 2


def test_only_tags_change(zoo, admin):
    vote(zoo, 40)
    before = admin.get(f"{AT}/items/2").json()
    sent = admin.put(f"{AT}/items/2", content=json.dumps(item("Sing!", "quiet")))
    assert (sent.status_code, sent.json()) == (200, {"number": 2})
    assert admin.get(f"{AT}/items/2").json() == before | {"tags": ["quiet"]}
    assert before["answers"] > 0
    assert whats(admin) == ["Changed the tags of item 2."]
    assert {row["tag"] for row in admin.get(f"{AT}/tag-results").json()["tags"]} == {"short", "quiet", "loud"}


def test_a_kind_for_outputs_that_state_none(zoo, admin):
    lines = [item("a", bat={"kind": "code", "content": "b"}), {**item("b"), "kind": "html"}]
    assert admin.post(f"{AT}/items?kind=markdown", content="\n".join(map(json.dumps, lines))).status_code == 201
    kinds = [
        [item["outputs"][arm]["kind"] for arm in ARMS] for item in admin.get(f"{AT}/items?after=4").json()["items"]
    ]
    assert kinds == [["markdown", "code", "markdown"], ["html"] * 3]
    refused(admin.post(f"{AT}/items?kind=music", content=json.dumps(lines[0])), 422, "invalid")
    assert admin.get(AT).json()["items"] == 6


def test_removed_items_are_said(zoo, admin, signed_in):
    vote(zoo)
    rows = {row["number"]: row for row in admin.get(f"{AT}/item-results").json()["items"]}
    comments = {number: len(admin.get(f"{AT}/items/{number}").json()["comments"]) for number in rows}
    assert {number: row["comment_count"] for number, row in rows.items()} == comments
    assert sum(comments.values()) == 20
    by_comments = admin.get(f"{AT}/item-results", params={"order": "comments"}).json()
    assert [row["number"] for row in by_comments["items"]] == sorted(rows, key=lambda number: -comments[number])
    assert by_comments["removed"] == {"items": 0, "answers": 0}
    assert "removed or replaced" not in signed_in.get("/studies/zoo/items").text
    assert f'{comments[2]}<span class="unseen"> comments on item 2' in signed_in.get("/studies/zoo/items").text

    admin.delete(f"{AT}/items/2")
    assert admin.put(f"{AT}/items/3", content=json.dumps(item("Shout louder!"))).json() == {"number": 5}
    gone = rows[2]["answers"] + rows[3]["answers"]
    assert admin.get(f"{AT}/item-results").json()["removed"] == {"items": 2, "answers": gone}
    page = " ".join(signed_in.get("/studies/zoo/items").text.split())
    assert f"{gone} answers are about 2 items that were removed or replaced." in page
    sent = signed_in.get("/studies/zoo/items/2")
    assert (sent.status_code, "Item 2 was removed or replaced" in sent.text) == (404, True)
    assert f"{rows[2]['answers']} answers are about it. They are kept, and count." in sent.text
    assert sent.text.count("comment-words") == comments[2]
    never = signed_in.get("/studies/zoo/items/6")
    assert (never.status_code, "was removed or replaced" in never.text) == (404, False)


def test_missing_outputs_are_said(zoo, admin, signed_in):
    assert "Outputs are missing" not in signed_in.get("/studies/zoo/items").text
    assert "No item has an output" not in signed_in.get("/studies/zoo/settings").text
    csv = "prompt,ape,bat,cat\na,1,2,\nb,1,,3\nc,1,2,\n"
    assert admin.post(f"{AT}/items", content=csv).json()["missing"] == {"bat": 1, "cat": 2}
    admin.post(f"{AT}/arms", json={"name": "<dog>"})
    page = " ".join(re.sub("</?bdi>", "", signed_in.get("/studies/zoo/items").text).split())
    assert "bat has none for 1 of 7 items, cat has none for 2 of 7 items, &lt;dog&gt; has none for any item." in page
    page = signed_in.get("/studies/zoo/settings").text
    assert "No item has an output of &lt;dog&gt; yet" in page
    assert 'href="/studies/zoo/items#items-panel">Upload its outputs</a>, or retire it.' in page
    assert "Until then they compare the others." not in page  # fewer than two have all outputs
    admin.post(f"{AT}/arms/<dog>/retire")
    assert "No item has an output" not in signed_in.get("/studies/zoo/settings").text


def test_a_tag_is_too_close_or_has_too_few_answers(storage, signed_in, patient):  # noqa: F811
    study = create_study(["x", "y"], "close", storage)
    add_items(study, [{"prompt": "a", "outputs": {"x": "1", "y": "2"}, "tags": ["t"]}])

    def winner_after(answers):
        while len(study.votes()) < answers:
            study.tell(study.ask(allow_self=False), ["x", "y"][len(study.votes()) % 2])
        page = signed_in.get("/studies/close/items").text
        return re.search(r'data-label="Winner"><span class="soft">([^<]*)', page)[1]

    assert [winner_after(answers) for answers in (0, 2, 19, 20)] == [
        *("no answers", "too few answers", "too few answers", "too close")
    ]


def test_items_are_as_large_as_uploads_may_be(zoo, admin, app):
    big = json.dumps(item("Big", **dict.fromkeys(ARMS, "x" * 900000)))
    assert admin.put(f"{AT}/items/1", content=big).status_code == 200
    app.middleware.limits = Limits(upload=1_000_000)
    refused(admin.put(f"{AT}/items/1", content=big), 413, "too_large")
    refused(admin.put(f"{AT}/items/x", content=big), 413, "too_large")


def test_a_study_on_these_items_keeps_them(storage, admin):
    study = create_study(["ape", "bat"], "zoo", storage, about="these-answers")
    add_items(study, b"prompt,ape,bat\na,1,2\nb,1,2\n")
    study.ask()
    refused(admin.delete(f"{AT}/items/2"), 409, "conflict", "about exactly the 2 items")
    refused(admin.put(f"{AT}/items/2", content="prompt,ape,bat\nc,1,2\n"), 409, "conflict", "about exactly the 2 items")
    assert whats(admin) == []
    tags = "prompt,ape,bat,tags\nb,1,2,new\n"
    assert admin.put(f"{AT}/items/2", content=tags).json() == {"number": 2}  # the verdict is not about tags
    assert admin.get(f"{AT}/items/2").json()["tags"] == ["new"]


def test_changing_items_needs_an_admin_and_a_page(zoo, admin, signed_in, app, storage, browser):  # noqa: F811
    body = json.dumps(item("x"))
    program = {"Authorization": f"Bearer {make_key(storage, 'api', 'engine')[1]}"}
    stranger = browser()
    for headers, status, kind in (({}, 401, "unauthorized"), (program, 403, "forbidden")):
        refused(stranger.delete(f"{AT}/items/1", headers=headers), status, kind)
        refused(stranger.put(f"{AT}/items/1", content=body, headers=headers), status, kind)
    assert stranger.get(f"{AT}/items/1", headers=program).status_code == 200
    refused(signed_in.delete(f"{AT}/items/1"), 403, "forbidden", "CSRF")
    refused(signed_in.put(f"{AT}/items/1", content=body), 403, "forbidden", "CSRF")
    assert admin.get(AT).json()["items"] == 4
    proof = {"X-CSRF-Token": csrf_token(signed_in.cookies["duels_session"])}
    assert signed_in.delete(f"{AT}/items/1", headers=proof).status_code == 204


def test_a_voter_with_a_removed_item_gets_another_question(zoo, admin, storage, browser):  # noqa: F811
    key, secret = make_key(storage, "vote", "", study_id=zoo._log.id, settings={"votes": None})
    ann = Visitor(browser(), secret, key)
    question = ann.ask()
    number = next(entry.note["item"] for entry in zoo.events() if entry.duel == question["duel"])
    assert admin.delete(f"{AT}/items/{number}").status_code == 204
    later = ann.ask()
    assert later["duel"] != question["duel"]
    assert later["prompt"] != question["prompt"]
    assert later["a"]["kind"] == "text"


def test_the_pages_keep_what_was_looked_for(zoo, signed_in):
    vote(zoo)
    page = signed_in.get("/studies/zoo/items?tag=loud&order=disagreement").text
    assert 'href="/studies/zoo/items/2"' in page
    assert 'href="/studies/zoo/items/1"' not in page
    assert "2 of 4 items" in page
    assert "<option selected>loud</option>" in page
    for strange in ("?page=999", "?page=x", "?order=luck", "?search=%00", "?tag=none", "?page=99999999999999999999"):
        assert signed_in.get(f"/studies/zoo/items{strange}").status_code == 200, strange
    for gone in ("9", "0", "x", "-1", "99999999999"):
        assert signed_in.get(f"/studies/zoo/items/{gone}").status_code == 404, gone
    page = signed_in.get("/studies/zoo/items/2").text
    assert "Sing!" in page
    assert "because" in page
    assert 'href="/studies/zoo/items/3"' in page


def test_many_items_and_arms_are_shown_in_pages(storage, signed_in, patient):  # noqa: F811
    arms = [f"model {k:03}" for k in range(200)]
    study = create_study(arms, "many", storage)
    add_items(
        study,
        [{"prompt": f"prompt {k}", "outputs": dict.fromkeys(arms[: 200 if k == 0 else 2], "x")} for k in range(120)],
    )
    page = signed_in.get("/studies/many/items").text
    assert page.count('id="item-') == 50
    assert 'href="?page=2"' in page
    assert signed_in.get("/studies/many/items?page=3").text.count('id="item-') == 20
    page = signed_in.get("/studies/many/items/1").text
    assert page.count("<article") == 12
    assert "200 outputs" in page
    found = signed_in.get("/studies/many/items/1?arms=MODEL 19").text
    assert re.findall(r"<h3[^>]*><bdi>([^<]*)", found) == [f"model {k}" for k in range(190, 200)]


def test_hostile_items_are_only_text(storage, signed_in, patient):  # noqa: F811
    arms = [XSS, "other"]
    study = create_study(arms, "hostile", storage)
    html = "<script>top.xss=1</script><link rel=preconnect href=//evil.example>"
    add_items(
        study,
        [
            {"prompt": XSS, "tags": [XSS[:60]], "outputs": {arm: {"kind": kind, "content": content} for arm in arms}}
            for kind, content in (("text", XSS), ("markdown", XSS), ("code", XSS), ("html", html), ("image", PNG))
        ],
    )
    for _ in range(5):
        duel = study.ask(allow_self=False)
        study.tell(duel, "left", note=XSS)
    pages = [signed_in.get(f"/studies/hostile/items{tail}").text for tail in ("", *(f"/{n}" for n in range(1, 6)))]
    for page in pages:
        assert "<script>window" not in page
        assert "<img src=x" not in page
        assert "top.xss" not in page
    number = study._log.id
    page, picture = (signed_in.get(f"/item-output/{number}/{item}/0") for item in (4, 5))
    assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert 'rel="none"' in page.text
    assert (picture.headers["content-type"], picture.content) == ("image/png", b"\x89PNG\r\n\x1a\n")
    assert picture.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    for address in (f"{number}/1/0", f"{number}/4/2", f"{number}/9/0", f"{number + 7}/4/0"):
        refused(signed_in.get(f"/item-output/{address}"), 404, "not_found")
    signed_in.cookies.clear()
    refused(signed_in.get(f"/item-output/{number}/4/0"), 401, "unauthorized")
    sent = signed_in.get("/studies/hostile/items?tag=loud")
    assert (sent.status_code, sent.headers["location"]) == (
        303,
        "/signin?next=%2Fstudies%2Fhostile%2Fitems%3Ftag%3Dloud",
    )
