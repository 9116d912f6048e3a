"""Tuning studies on a server: the API, templates, voting links, links to results, and the pages."""

import asyncio
import contextlib
import json
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import quote

import httpx2 as httpx
import polars as pl
import pytest
from starlette.testclient import TestClient

import duels
from duels.continuous.tuning.files import check_duels as parsed
from duels.continuous.tuning.files import find_known_duels
from duels.server.keys import make_key
from duels.server.pages.vote import FRAME, SCRIPTED, output_address
from duels.server.writes import Background
from duels.study import base as log
from duels.study.answering import write_answer

SPACE = {"gap": [4.0, 40.0], "size": [10, 30, "int"], "font": ["serif", "<b>bold</b>"]}
PAGE = "<style>p { margin: {{ gap }}px; font-size: {{size}}px }</style><p>{{ font }}</p>"
AT = "/api/studies/page"


def asking(study, voter):
    return study._log.make_write(partial(study._log.ask, voter=voter), last=True)


def answering(study, duel, voter):
    return study._log.make_write(partial(write_answer, log=study._log, duel=duel.id, winner="left", voter=voter))


@pytest.fixture
def page(admin):
    """A study with a template, by its address."""
    made = admin.post(
        "/api/tunings", json={"name": "page", "space": SPACE, "template": PAGE, "policy": "eubo:initial=3"}
    )
    assert made.status_code == 201, made.text
    return AT


def ask(client, at=AT, **sent):
    answer = client.post(f"{at}/ask", json=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()["duels"]


def answered(client, count, at=AT, voter="ann"):
    """Answer some questions: the larger gap is better."""
    for _ in range(count):
        (duel,) = ask(client, at, voter=voter)
        winner = "left" if duel["left"]["gap"] > duel["right"]["gap"] else "right"
        assert client.post(f"{at}/tell", json={"duel": duel["id"], "winner": winner, "voter": voter}).status_code == 200


def link_of(admin, **wanted):
    return admin.post(f"{AT}/links", json=wanted).json()["secret"]


def test_a_tuning_study_from_beginning_to_end(admin, page):
    described = admin.get(page).json()
    assert described["space"] == {
        "gap": {"low": 4.0, "high": 40.0},
        "size": {"low": 10, "high": 30, "int": True},
        "font": {"choices": ["serif", "<b>bold</b>"]},
    }
    assert (described["arms"], described["items"], described["policy"]) == ([], 0, "eubo:initial=3")
    (duel,) = ask(admin, voter="ann")
    assert (duel["id"], duel["study"], duel["item"], duel["is_self"]) == (0, "page", None, False)
    for side in ("left", "right"):
        assert list(duel[side]) == ["gap", "size", "font"]
        assert type(duel[side]["size"]) is int
    assert admin.get(f"{page}/duels").json()["duels"] == [duel]
    assert admin.get(f"{page}/duels/0").json() == duel
    told = admin.post(f"{page}/tell", json={"duel": 0, "winner": "right", "voter": "ann", "note": "why", "cost": 0.5})
    assert told.json() == {"duel": 0, "answer": "right"}
    assert admin.post(f"{page}/tell", json={"duel": 0, "winner": "left"}).status_code == 409
    assert admin.post(f"{page}/undo", json={"duel": 0}).status_code == 200
    assert admin.post(f"{page}/tell", json={"duel": 0, "winner": "tie", "voter": "ann"}).status_code == 200
    answered(admin, 8)
    best = admin.get(f"{page}/best").json()
    assert best["answers"] == 9
    assert best["setting"]["gap"] > best["runner_up"]["gap"] or best["setting"]["gap"] > 30
    assert best["lower"] < best["share"] < best["upper"]
    assert best["words"].startswith("No preference found after 9 answers: ")
    assert best["sure"] is None
    slices = admin.get(f"{page}/slices").json()
    assert [one["name"] for one in slices["parameters"]] == ["gap", "size", "font"]
    assert slices["best"] == best["setting"]
    shown = admin.get(f"{page}/results").json()
    assert (shown["best"] | {"words": best["words"]}, shown["parameters"]) == (best, slices["parameters"])
    kinds = [one["kind"] for one in admin.get(f"{page}/events").json()["events"]]
    assert kinds[:6] == ["create", "ask", "tell", "undo", "tell", "ask"]
    assert admin.post(f"{page}/retire").json()["retired"] is True
    assert admin.post(f"{page}/ask", json={}).status_code == 409
    assert admin.post(f"{page}/resume").json()["retired"] is False
    assert [one["name"] for one in admin.get("/api/studies").json()["studies"]] == ["page"]
    assert admin.delete(page).status_code == 204
    assert admin.get(page).status_code == 404


def test_spaces_as_json_and_as_toml(admin):
    text = 'gap = [4.0, 40.0]\nsize = [10, 30, "int"]\nfont = ["serif", "<b>bold</b>"]\n'
    one = admin.post("/api/tunings", json={"name": "one", "space": SPACE}).json()
    two = admin.post("/api/tunings", json={"name": "two", "space": text}).json()
    assert one["space"] == two["space"]
    again = admin.post("/api/tunings", json={"name": "two", "space": text, "load_if_exists": True})
    assert (again.status_code, again.json()["seq"]) == (201, 1)
    for template, stored in (("<p>{{ gap }}</p>", "<p>{{ gap }}</p>"), ("{{ size }}", "<p>{{ gap }}</p>")):
        wanted = {"name": "two", "space": text, "load_if_exists": True, "template": template}
        assert admin.post("/api/tunings", json=wanted).status_code == 201
        assert admin.get("/api/studies/two/template").json()["html"] == stored  # given once, it is kept
    for wanted, words in (
        ({"space": {"gap": [40.0, 4.0]}}, "gap"),
        ({"space": "gap = "}, "the parameters cannot be read"),
        ({"space": {}}, "is not a space"),
        ({"space": {"x": {"low": 0, "high": 1, "if": "y"}}}, "condition"),
        ({"space": SPACE, "policy": "rucb"}, "unknown policy for continuous spaces"),
        ({"space": SPACE, "policy": "/tmp/evil.py"}, "unknown policy for continuous spaces"),
        ({"space": SPACE, "template": "<p>{{ gapp }}</p>"}, "Did you mean 'gap'?"),
        ({"space": SPACE, "template": "<p>nothing</p>"}, "all settings look alike"),
        ({"space": {"y": [0.0, 1.0]}, "name": "one", "load_if_exists": True}, "exists with another space"),
    ):
        answer = admin.post("/api/tunings", json={"name": "three", **wanted})
        assert answer.status_code in (400, 409), (wanted, answer.text)
        assert words in answer.json()["error"]["message"]
    assert len(admin.get("/api/studies").json()["studies"]) == 2  # nothing was made of what was refused


def test_what_is_about_arms_refuses_a_tuning_study(admin, page, study):
    for part in ("leaderboard", "preferences", "verdict", "forecast", "ranking", "details", "allocation?n=5", "items"):
        answer = admin.get(f"{page}/{part}")
        assert (answer.status_code, "tunes 3 parameters and has no arms" in answer.text) == (400, True), part
    for part, body in (
        ("interleave", {"rankings": {"left": [1], "right": [2]}}),
        ("clicks", {"impression": 0, "clicks": []}),
        ("arms", {"name": "another"}),
    ):
        assert admin.post(f"{page}/{part}", json=body).status_code == 400, part
    assert (
        admin.post(f"{page}/items", content='{"prompt": "q", "outputs": {"left": "x", "right": "y"}}').status_code
        == 400
    )
    assert admin.patch(f"{page}/settings", json={"after": "rank"}).status_code == 400
    assert admin.post(f"{page}/ask", json={"n": 101}).status_code == 400
    for part in ("best", "slices", "template"):
        answer = admin.get(f"{study}/{part}")
        assert (answer.status_code, "compares arms and tunes no parameters" in answer.text) == (400, True)
    assert admin.get(page).json()["seq"] == 1


def test_many_questions_at_once_spread_out(admin, page):
    duels_ = ask(admin, n=6)
    assert [one["id"] for one in duels_] == list(range(6))
    assert len({json.dumps(one["left"]) + json.dumps(one["right"]) for one in duels_}) == 6
    assert admin.get(page).json()["open"] == 6


def test_files_of_answers_go_out_and_in(admin, page, tmp_path):
    answered(admin, 3)
    out = {kind: admin.get(f"{page}/export?format={kind}").content for kind in ("csv", "jsonl", "parquet")}
    (tmp_path / "votes.parquet").write_bytes(out["parquet"])
    votes = pl.read_parquet(tmp_path / "votes.parquet")
    assert votes.columns[:7] == [f"{side}.{name}" for side in ("left", "right") for name in SPACE] + ["winner"]
    for number, (kind, content) in enumerate(out.items()):
        name = f"copy {number}"
        assert admin.post("/api/tunings", json={"name": name, "space": SPACE}).status_code == 201
        sent = admin.post(f"/api/studies/{name}/import", content=content)
        assert (sent.status_code, sent.json()) == (200, {"imported": 3, "note": None}), (kind, sent.text)
        again = pl.read_ndjson(admin.get(f"/api/studies/{name}/export?format=jsonl").content)
        assert again.drop("time", "comment").equals(pl.read_ndjson(out["jsonl"]).drop("time", "comment"))
    for wrong in (b"left,right,winner\na,b,left\n", out["csv"].replace(b"serif", b"gothic"), b"PAR1 and nothing", b"{"):
        answer = admin.post(f"{page}/import", content=wrong)
        assert answer.status_code == 400, wrong
        assert str(tmp_path.parent.parent) not in answer.text  # nor any other path of this machine
        assert "/tmp" not in answer.text
    assert admin.get(page).json()["answers"] == 3


def test_templates_are_checked_and_shown(admin, page):
    plain = {"has_script": False, "scripts": False}
    assert admin.get(f"{page}/template").json() == {"html": PAGE, "unused": [], **plain}
    put = admin.put(f"{page}/template", json={"html": "<p>{{ gap }}</p>"})
    assert put.json() == {"html": "<p>{{ gap }}</p>", "unused": ["size", "font"], **plain}
    for html, words in (
        ("", "expected an HTML page"),
        ("<p>{{ color }}</p>", "unknown parameter in the template: 'color'"),
        ("<p>no places</p>", "all settings look alike"),
        ("{{ gap }}\x00", "expected an HTML page"),
    ):
        answer = admin.put(f"{page}/template", json={"html": html})
        assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True), answer.text
    assert admin.put(f"{page}/template", json={"html": "{{ gap }}" + "x" * (1 << 20)}).status_code in (413, 422)
    assert admin.get(f"{page}/template").json()["html"] == "<p>{{ gap }}</p>"
    for _ in range(2):
        assert admin.put(f"{page}/template", json={"html": None}).json() == {"html": None, "unused": [], **plain}
    for on in (False, True, True):
        assert admin.post(f"{page}/scripts", json={"scripts": on}).json() == {"scripts": on}
    changes = [one["what"] for one in admin.get(f"{page}/changes").json()["changes"]]
    assert changes == [
        "Turned scripts in the template on.",
        "Removed the template.",
        "Changed the template.",
        "Created the study, which tunes 3 parameters.",
    ]  # what changes nothing is not in the list


def test_only_admins_change_templates(app, page, storage):
    _, token = make_key(storage, "api", "program")
    program = TestClient(app, "http://localhost", headers={"Authorization": f"Bearer {token}"})
    assert program.put(f"{page}/template", json={"html": "<p>{{ gap }}</p>"}).status_code == 403
    assert program.get(f"{page}/template").json()["html"] == PAGE
    assert program.get(f"{page}/voters").status_code == 403


def page_of(setting):
    font = setting["font"].replace("<", "&lt;").replace(">", "&gt;")
    return f"<style>p {{ margin: {setting['gap']}px; font-size: {setting['size']}px }}</style><p>{font}</p>"


def test_people_vote_on_rendered_settings(admin, anybody, page):
    """Who votes through a link sees two pages of the template; undo brings the same question back."""
    secret = link_of(admin, votes=2)
    base = f"/api/vote/{secret}"
    question = anybody.post(f"{base}/ask", json={}).json()
    assert (question["duel"], question["prompt"], question["a"]["kind"], question["a"]["html"]) == (
        0,
        None,
        "html",
        None,
    )
    duel = admin.get(f"{page}/duels/0").json()
    for letter, side in (("a", "left"), ("b", "right")):
        shown = anybody.get(question[letter]["src"])
        assert shown.text == page_of(duel[side])
        assert shown.headers["content-security-policy"] == FRAME
        assert secret not in question[letter]["src"]
    assert anybody.post(f"{base}/ask", json={}).json()["duel"] == 0  # the open question, not another one
    told = anybody.post(f"{base}/tell", json={"duel": 0, "winner": "b"}).json()
    assert (told["answered"], told["total"], told["done"]) == (1, 1, None)
    assert anybody.post(f"{base}/undo").json()["duel"] == 0
    assert anybody.post(f"{base}/tell", json={"duel": 0, "winner": "a"}).status_code == 200
    assert anybody.post(f"{base}/ask", json={}).json()["duel"] == 1
    assert anybody.post(f"{base}/tell", json={"duel": 1, "winner": "tie"}).json()["done"] == "goal"
    assert anybody.post(f"{base}/ask", json={}).json()["duel"] is None
    assert anybody.post(f"{base}/ask", json={"more": True}).json()["duel"] == 2
    votes = pl.read_ndjson(admin.get(f"{page}/export?format=jsonl").content)
    assert votes["winner"].to_list() == ["left", "tie"]
    assert votes["voter"].unique().to_list() == ["Voter 1"]
    admin.post(f"{page}/retire")
    assert anybody.post(f"{base}/ask", json={"more": True}).json()["done"] == "retired"


def test_without_a_template_voters_see_values(admin, anybody, page):
    admin.put(f"{page}/template", json={"html": None})
    question = anybody.post(f"/api/vote/{link_of(admin)}/ask", json={}).json()
    duel = admin.get(f"{page}/duels/0").json()
    assert (question["a"]["kind"], question["a"]["src"]) == ("text", None)
    assert f"size {duel['left']['size']}" in question["a"]["html"]
    assert "<b>" not in question["a"]["html"] + question["b"]["html"]  # choices are text, never markup


def test_scripts_run_only_if_they_are_turned_on(admin, anybody, page):
    admin.put(f"{page}/template", json={"html": "<script>const font = {{ font | json }}</script>{{ gap }} {{ size }}"})
    secret = link_of(admin)
    before = anybody.post(f"/api/vote/{secret}/ask", json={}).json()["a"]["src"]
    assert anybody.get(before).headers["content-security-policy"] == FRAME
    assert admin.post(f"{page}/scripts", json={"scripts": True}).status_code == 200
    after = anybody.post(f"/api/vote/{secret}/ask", json={}).json()["a"]["src"]
    shown = anybody.get(after)
    assert shown.headers["content-security-policy"] == SCRIPTED
    font = admin.get(f"{page}/duels/0").json()["left"]["font"]
    safe = json.dumps(font).replace("<", r"\u003c").replace(">", r"\u003e")
    assert f"const font = {safe}<" in shown.text


def test_caps_and_invitations_hold(app, admin, page, storage):
    secret = link_of(admin, max_votes=2)
    invited = admin.post(f"{page}/invitations", json={"voters": ["Ursula"]}).json()["invitations"][0]["secret"]
    for one, expected in ((secret, ("Voter 1", 2)), (invited, ("Ursula", 3))):
        person = TestClient(app, "http://localhost")
        for _ in range(3):
            question = person.post(f"/api/vote/{one}/ask", json={}).json()
            if question["duel"] is not None:
                person.post(f"/api/vote/{one}/tell", json={"duel": question["duel"], "winner": "a"})
        names = pl.read_ndjson(admin.get(f"{page}/export?format=jsonl").content)["voter"].to_list()
        assert names.count(expected[0]) == expected[1]
    links = admin.get(f"{page}/links").json()["links"]
    assert (links[0]["state"], links[0]["answers"]) == ("full", 2)
    assert admin.post(f"{page}/ask", json={"voter": "Ursula"}).status_code == 409  # programs cannot use the name,
    votes = admin.get(f"{page}/export?format=jsonl").content
    study = duels.load_study("page", storage)
    assert all(find_known_duels(study, parsed(study.space, study.votes())))  # votes through links are recognized
    assert admin.post(f"{page}/import", content=votes).status_code == 409  # and neither can files
    assert admin.post("/api/tunings", json={"name": "copy", "space": SPACE}).status_code == 201
    assert admin.post("/api/studies/copy/import", content=votes).json() == {"imported": 5, "note": None}
    names = {one["voter"] for one in admin.get("/api/studies/copy/voters").json()["voters"]}
    assert names == {"Voter 1 (imported)", "Ursula"}  # Voter 1 of another study is somebody else


def test_voters_are_counted_but_not_compared(admin, page):
    """Each question has settings of its own: there is nothing on which two people could agree."""
    answered(admin, 3, voter="ann")
    answered(admin, 2, voter="ben")
    rows = [{"left": {"gap": 5, "size": 12, "font": "serif"}, "right": {"gap": 9, "size": 12, "font": "serif"}}]
    flat = {f"{side}.{name}": value for row in rows for side in row for name, value in row[side].items()}
    sent = admin.post(f"{page}/import", content=json.dumps(flat | {"winner": "left", "voter": "cleo"}))
    assert sent.json() == {"imported": 1, "note": None}, sent.text
    found = admin.get(f"{page}/voters").json()
    facts = {one["voter"]: (one["answers"], one["compared"], one["left"] + one["right"]) for one in found["voters"]}
    assert facts == {"ann": (3, 0, 3), "ben": (2, 0, 2), "cleo": (1, 0, 0)}  # no coin decided the sides of a past duel
    assert (found["questions"], found["raw"]) == (0, None)
    assert admin.post(f"{page}/voters/withdraw", json={"voter": "ann"}).json()["answers"] == 3
    assert admin.post(f"{page}/forget", json={"voter": "ben"}).json() == {"answers": 2}
    assert admin.get(f"{page}/best").json()["answers"] == 1
    assert "ben" not in admin.get(f"{page}/events").text


def test_a_link_to_results_shows_them_and_nothing_else(app, admin, anybody, page):
    answered(admin, 5, voter="Zelda")
    ask(admin)
    made = admin.post(f"{page}/results-links", json={"name": "Our page"}).json()
    secret = made["secret"]
    shown = anybody.get(f"/api/results/{secret}").json()
    assert shown["best"] == admin.get(f"{page}/results").json()["best"]
    assert not {"open", "next"} & set(shown)  # how many people vote is not said
    for which, src in shown["frames"].items():
        frame = anybody.get(src)
        assert frame.text == page_of(shown["best"][which])
        assert frame.headers["content-security-policy"] == FRAME
        assert frame.headers["cache-control"] == "no-store"  # the same address shows another setting after a vote
        assert secret not in src  # a script in the page can read its own address
    html = anybody.get(f"/results/{secret}")
    assert "Our page" in html.text
    assert "Zelda" not in html.text + json.dumps(shown)
    assert anybody.get(f"/api/results/{secret}/pair?first=left&second=right").status_code == 400
    src = shown["frames"]["setting"]
    admin.delete(f"{page}/links/{made['id']}")
    assert anybody.get(src).status_code == 404
    assert anybody.get(f"/api/results/{secret}").status_code == 404


def test_frames_of_results_expire(admin, anybody, page, monkeypatch):
    answered(admin, 4)
    secret = admin.post(f"{page}/results-links", json={}).json()["secret"]
    src = anybody.get(f"/api/results/{secret}").json()["frames"]["runner_up"]
    assert anybody.get(src).status_code == 200
    now = log.clock()
    monkeypatch.setattr(log, "clock", lambda: now + 601)
    assert anybody.get(src).status_code == 404


def test_a_ticket_of_a_results_link_opens_no_study_of_arms(admin, anybody, study, app):
    """Even if such a ticket were signed, it shows nothing of a study of arms."""
    made = admin.post(f"{study}/results-links", json={}).json()
    key = app.service.key(made["secret"])
    assert anybody.get(output_address(app.service, key, 0, 0)).status_code == 404


def test_tickets_are_for_links_only(admin, anybody, page, app):
    """Nothing signs a ticket for a token; if it did, the ticket would open nothing."""
    ask(admin)
    key = app.service.key(admin.token)
    assert anybody.get(output_address(app.service, key, 0, 0)).status_code == 404


def test_a_preview_writes_nothing(admin, page):
    seen = []
    for number in (0, 1, 0):
        question = admin.post(f"{page}/preview/ask", json={"number": number}).json()
        assert question["duel"] == number
        seen.append((question["a"]["src"], question["b"]["src"]))
    assert seen[0] == seen[2] != seen[1]
    assert seen[0][0] != seen[0][1]
    assert admin.post(f"{page}/preview/tell", json={"duel": 0, "winner": "a"}).json()["answered"] == 1
    assert admin.get(page).json()["seq"] == 1


def signed_in(app, token):
    client = TestClient(app, "http://localhost", follow_redirects=False)
    assert client.post("/signin", data={"token": token}).status_code == 303
    return client


def test_the_pages_of_a_tuning_study(app, admin, page):
    owner = signed_in(app, admin.token)
    steps = owner.get("/studies/page").text
    assert ("Next steps" in steps, "The template is there" in steps) == (True, True)
    answered(admin, 4)
    for tab in ("", "/voters", "/share", "/settings", "/preview"):
        shown = owner.get(f"/studies/page{tab}")
        assert shown.status_code == 200, tab
        assert "/items" not in re.sub(r"/static/\S+", "", shown.text) or tab == "/share"
    assert "Tunes gap · size · font" in owner.get("/").text
    assert "{{ gap }}" in owner.get("/studies/page/settings").text
    assert "The template does not show" not in owner.get("/studies/page/settings").text
    setting = {"gap": 7.5, "size": 12, "font": "<b>bold</b>"}
    shown = owner.get(f"/studies/page/rendered?setting={quote(json.dumps(setting))}")
    assert (shown.text, shown.headers["content-security-policy"]) == (page_of(setting), FRAME)
    for wrong in ("", "{", "[]", '{"gap": 7}', '{"gap": 7, "size": 12, "font": "<script>"}'):
        assert owner.get(f"/studies/page/rendered?setting={quote(wrong)}").status_code == 400, wrong
    admin.put(f"{page}/template", json={"html": None})
    assert owner.get(f"/studies/page/rendered?setting={quote(json.dumps(setting))}").status_code == 404
    assert owner.get("/api/studies/page/results").json()["frames"] is None


def test_the_results_follow_the_template_and_the_answers(admin, page):
    """They are cached by the log's last event, which a new template does not change."""
    answered(admin, 4)
    assert admin.get(f"{page}/results").json()["frames"] is not None
    admin.put(f"{page}/template", json={"html": None})
    assert admin.get(f"{page}/results").json()["frames"] is None
    before = admin.get(f"{page}/results").json()
    answered(admin, 1)
    after = admin.get(f"{page}/results").json()
    assert (after["answers"], after["seq"]) == (5, before["seq"] + 2)


def test_a_server_s_writes_ask_and_tell(storage):
    """As the queue of a server does it: the loop goes on while a duel is chosen."""
    study = duels.create_study(space={"x": (0.0, 1.0)}, study_name="voice", storage=storage, policy="eubo:initial=2")
    background = Background(storage)

    async def one():
        (duel,) = await background.write(asking(study, "ann"))
        return await background.write(answering(study, duel, "ann"))

    async def many():
        return await asyncio.gather(*(one() for _ in range(6)))

    try:
        assert asyncio.run(many()) == ["left"] * 6
    finally:
        background.close()
    assert (study.answers, study.check()) == (6, 13)


def test_who_comes_later_waits_behind_those_who_wait(storage, monkeypatch):
    """A question that arrives while one is chosen is not tried in vain before it is its turn."""
    study = duels.create_study(space={"x": (0.0, 1.0)}, study_name="voice", storage=storage, policy="eubo:initial=2")
    background, posts, started, go = Background(storage), [], threading.Event(), threading.Event()
    post, choose = background._post, type(study._log)._choose

    async def count(write):
        posts.append(write)
        return await post(write)

    def slowly(self, n):
        started.set()
        assert go.wait(30)
        choose(self, n)

    monkeypatch.setattr(background, "_post", count)
    monkeypatch.setattr(type(study._log), "_choose", slowly)

    async def both():
        first = asyncio.create_task(background.write(asking(study, "ann")))
        await asyncio.to_thread(started.wait, 30)
        second = asyncio.create_task(background.write(asking(study, "ben")))
        await asyncio.sleep(0.05)
        assert len(posts) == 1
        go.set()
        return [(await one)[0].id for one in (first, second)]

    try:
        assert asyncio.run(both()) == [0, 1]
    finally:
        go.set()
        background.close()


def test_killed_while_people_answer(serve):
    """What a server has acknowledged is there after a kill, whatever it was choosing then."""
    live = serve(compiled=True)
    with live.client() as client:
        made = client.post("/api/tunings", json={"name": "page", "space": SPACE, "policy": "eubo:initial=6"})
        assert made.status_code == 201, made.text
    acknowledged = {}

    def vote():
        with live.client() as client, contextlib.suppress(httpx.TransportError):
            while True:
                (duel,) = ask(client)
                winner = "left" if duel["left"]["gap"] > duel["right"]["gap"] else "right"
                assert client.post(f"{AT}/tell", json={"duel": duel["id"], "winner": winner}).status_code == 200
                acknowledged[duel["id"]] = (duel["left"], duel["right"], winner)

    with ThreadPoolExecutor(4) as pool:
        people = [pool.submit(vote) for _ in range(4)]
        end = time.monotonic() + 60
        while len(acknowledged) < 10 and time.monotonic() < end:
            time.sleep(0.01)
        assert live.stop(signal.SIGKILL) == -signal.SIGKILL
    for person in people:
        person.result()
    assert len(acknowledged) >= 10
    study = duels.load_study("page", live.storage)
    assert study.check() == len(study.events())
    votes = {row["duel"]: row["winner"] for row in study.votes().iter_rows(named=True)}
    for number, (left, right, winner) in acknowledged.items():
        duel = study.duel(number)
        assert (duel.left, duel.right, votes[number]) == (left, right, winner)
