"""The pages in a real browser: everything that people do there, by mouse and by keyboard, and what attackers try."""

import base64
import io
import json
import re
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from duels.judges import Answer
from duels.study.create import load_study

XSS = "<script>window.xss=1</script>\"'><img src=x onerror=window.xss=1>"
PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
SMALL_TABLET, TABLET = {"width": 600, "height": 900}, {"width": 800, "height": 1000}
NOT_FOUND = "status of 404"


expect.set_options(timeout=30_000)  # a busy machine


class Browser:
    """Contexts of one test. Whatever went wrong in any of them is in `wrong`."""

    def __init__(self, chromium, url):
        self.chromium, self.url, self.wrong, self.contexts = chromium, url, [], []
        self.expected = []  # parts of messages that a test brings about itself

    def open(self, path="", **options):
        """A page of a new person: no cookies."""
        context = self.chromium.new_context(**{"viewport": DESKTOP, **options})
        context.set_default_timeout(30_000)
        self.contexts.append(context)
        context.on("request", self._requested)
        context.on("console", lambda message: self._said(message.type, message.text))
        context.on("weberror", lambda error: self._said("error", str(error.error)))
        context.on("dialog", self._asked)
        page = context.new_page()
        page.goto(self.url + path)
        return page

    def sign_in(self, token, path="/", **options):
        page = self.open(f"/signin#{token}", **options)
        page.wait_for_url(f"{self.url}/")
        if path != "/":
            page.goto(self.url + path)
        return page

    def _requested(self, request):
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc and not request.url.startswith("data:"):
            self.wrong.append(f"a request to another host: {request.url}")

    def _said(self, kind, text):
        if kind == "error":
            self.wrong.append(text)

    def _asked(self, dialog):
        self.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def close(self):
        for context in self.contexts:
            context.close()
        return [one for one in self.wrong if not any(part in one for part in self.expected)]


@pytest.fixture
def live(serve):
    return serve()


@pytest.fixture
def browser(chromium, live):
    """People with browsers; no console error, no dialog and no request to another host is allowed."""
    found = Browser(chromium, live.url)
    yield found
    assert found.close() == []


@pytest.fixture
def api(live):
    with live.client() as client:
        yield client


def make_study(api, name, arms=("concise", "friendly", "thorough"), items=(), votes=25, title="Which answer?"):
    """A study with a voting link; the link's path."""
    made = api.post("/api/studies", json={"name": name, "arms": list(arms)})
    assert made.status_code == 201, made.text
    at = f"/api/studies/{quote(name)}"
    if items:
        sent = api.post(f"{at}/items", content="\n".join(map(json.dumps, items)))
        assert sent.status_code == 201, sent.text
    return urlsplit(api.post(f"{at}/links", json={"name": title, "votes": votes}).json()["url"]).path


def answers(api, study):
    events = api.get(f"/api/studies/{quote(study)}/events").json()["events"]
    return [(one["kind"], one["answer"]) for one in events if one["kind"] in ("tell", "undo")]


def so_far(page, words):
    expect(page.locator("#progress-words")).to_have_text(words, timeout=15_000)


def to_tab(page, name):
    """Open a tab on which a study is managed, and wait until its script answers clicks."""
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_url(f"**/{name.lower()}")
    expect(page.locator("#live")).to_be_hidden()


@contextmanager
def no_reload(page):
    page.evaluate("() => { window.same = true; }")
    yield
    assert page.evaluate("() => window.same") is True


def test_create_by_pasting_vote_and_watch(browser, live, api):
    board = browser.sign_in(live.token, permissions=["clipboard-read", "clipboard-write"])
    board.get_by_label("Name", exact=True).first.fill("styles of answers?")
    board.get_by_role("button", name="Create the study").click()
    expect(board.locator("#create-said")).to_contain_text("at least two arms")
    board.get_by_label("Arms, one per line").fill(f"concise\n{'x' * 201}")
    expect(board.locator("#create-said")).to_be_empty()
    board.get_by_role("button", name="Create the study").click()
    expect(board.locator("#create-said")).to_contain_text("The name of an arm may have at most 200 characters")
    board.get_by_label("Name", exact=True).first.fill("A/B test")
    board.get_by_role("button", name="Create the study").click()
    expect(board.locator("#create-said")).to_contain_text("The name of a study cannot have a slash (/)")
    board.get_by_label("Name", exact=True).first.fill("styles of answers?")
    board.get_by_label("Arms, one per line").fill("concise\n friendly \n\nfriendly")
    board.get_by_role("button", name="Create the study").click()
    expect(board.locator("#create-said")).to_contain_text("Two arms are called “friendly”")
    board.get_by_label("Arms, one per line").fill("concise\n friendly \n\nthorough\n")
    board.get_by_role("button", name="Create the study").click()
    board.wait_for_url("**/studies/styles%20of%20answers%3F")
    expect(board.locator("#headline")).to_have_text("Not yet: no two arms have met")
    expect(board.locator("#live")).to_have_text("updates live")

    to_tab(board, "Share")
    board.get_by_label("Title that voters see").fill("Which style?")
    board.locator("#links-panel").get_by_label("Votes each").fill("3")
    board.get_by_role("button", name="Create a link").click()
    link = board.locator("#link-made .secret").inner_text()
    board.get_by_role("button", name="Copy").click()
    expect(board.get_by_role("button", name="Copied")).to_be_visible()
    assert board.evaluate("() => navigator.clipboard.readText()") == link
    assert link.startswith(f"{live.url}/vote/")
    expect(board.locator("#links tbody tr")).to_have_count(1)

    board.get_by_role("link", name="Results").click()
    with no_reload(board):
        expect(board.get_by_role("heading", name="Next steps")).to_be_visible()
        expect(board.locator("#map-none")).to_be_visible()
        votes = "left,right,winner\nconcise,friendly,left\n"
        assert api.post("/api/studies/styles%20of%20answers%3F/import", content=votes).status_code == 200
        expect(board.locator("#map-none")).to_be_hidden()
        expect(board.get_by_role("heading", name="Next steps")).to_be_hidden()
        board.get_by_role("button", name="concise wins 100 % of 1 against friendly, not certain").click()
        expect(board.locator("#pair")).to_contain_text("concise won 1, friendly won 0, and 0 were ties.")
        vote_by_mouse_and_keyboard(browser, link, api)
        expect(board.locator("#evidence")).to_contain_text("5 answers")
        expect(board.locator("#arms tbody tr")).to_have_count(3)
        expect(board.locator("#arms tbody .dot")).to_have_count(3)
        assert board.evaluate("() => document.activeElement.dataset.pair") is not None
    board.get_by_role("link", name="Voters").click()
    expect(board.locator("#voters tbody tr")).to_have_count(1)


def test_details_are_fetched_when_they_are_opened_and_follow_the_votes(browser, live, api):
    make_study(api, "race", ["ant", "bee", "<b>cat"])
    votes = "left,right,winner\n" + "ant,bee,left\n" * 3 + "ant,bee,right\nbee,<b>cat,right\n"
    assert api.post("/api/studies/race/import", content=votes).status_code == 200
    board = browser.sign_in(live.token, "/studies/race")
    asked = []
    board.on("request", lambda request: asked.append(request.url) if request.url.endswith("/details") else None)
    expect(board.locator("#map button")).not_to_have_count(0)
    expect(board.locator("#details")).to_be_hidden()
    with no_reload(board):
        assert asked == []
        board.locator("#details-card summary").click()
        expect(board.locator("#pairs tbody tr")).to_have_count(2)
        assert len(asked) == 1
        expect(board.locator("#pairs-note")).to_contain_text("2 of 3 pairs have met.")
        first, second = board.locator("#pairs tbody tr").all()
        expect(first).to_contain_text(re.compile(r"^antbee431075\s%, \d+ to 100\s%$"))
        # The arm that wins more comes first.
        expect(second).to_contain_text(re.compile(r"^<b>catbee1100100\s%, \d+ to 100\s%$"))
        expect(board.locator("#questions-note")).to_have_text("No question is open.")
        expect(board.locator("#over-time-note")).to_contain_text("From 0 to 5 answers, between ")
        expect(board.locator("#over-time svg")).to_have_attribute("aria-label", re.compile("From 0 to 5 answers"))
        (duel,) = api.post("/api/studies/race/ask", json={"allow_self": False}).json()["duels"]
        expect(board.locator("#questions tbody tr")).to_contain_text(f"{duel['left']}, {duel['right']}")
        assert api.post("/api/studies/race/tell", json={"duel": duel["id"], "winner": "left"}).status_code == 200
        expect(board.locator("#questions-note")).to_have_text("No question is open.")
        expect(board.locator("#over-time-note")).to_contain_text("From 0 to 6 answers, between ")
        board.locator("#details-card summary").click()
        until = len(asked)
        assert api.post("/api/studies/race/import", content=votes).status_code == 200
        expect(board.locator("#evidence")).to_contain_text("11 answers")
        assert len(asked) == until  # nobody looks at them
        board.locator("#map button").first.click()
        expect(board.locator("#pair")).to_contain_text(re.compile(r"wins between \d+ and \d+\s% of such comparisons"))


def vote_by_mouse_and_keyboard(browser, link, api):
    voter = browser.open(urlsplit(link).path)
    expect(voter.get_by_role("heading", level=1)).to_have_text("Which style?")
    expect(voter.locator("#prompt")).to_have_text("Which is better?")
    so_far(voter, "0 of 3")
    shown = [voter.locator(f"#output-{side}").inner_text() for side in "ab"]
    assert set(shown) < {"concise", "friendly", "thorough"}
    duel = api.get("/api/studies/styles%20of%20answers%3F/duels").json()["duels"][0]
    assert [duel["left"], duel["right"]] == shown
    voter.get_by_role("button", name="A is better").click()
    so_far(voter, "1 of 3")
    voter.keyboard.press("ArrowRight")
    so_far(voter, "2 of 3")
    asked = voter.locator("#output-a").inner_text(), voter.locator("#output-b").inner_text()
    voter.keyboard.press("t")
    so_far(voter, "3 of 3")
    expect(voter.get_by_role("heading", name="Thank you!")).to_be_visible()
    voter.get_by_role("button", name="Undo the last answer").click()
    so_far(voter, "2 of 3")
    assert asked == (voter.locator("#output-a").inner_text(), voter.locator("#output-b").inner_text())
    expect(voter.locator("#news")).to_contain_text("Your last answer was undone.")
    voter.keyboard.press("x")
    so_far(voter, "3 of 3")
    voter.get_by_role("button", name="Keep voting").click()
    expect(voter.locator("#question")).to_be_visible()
    voter.keyboard.press("s")
    voter.wait_for_function("() => document.querySelector('[data-winner]').getAttribute('aria-disabled') === 'false'")
    voter.keyboard.press("2")
    so_far(voter, "4 votes")
    voter.keyboard.press("?")
    expect(voter.get_by_role("dialog", name="Keys")).to_contain_text("Both bad")
    voter.keyboard.press("x")  # not an answer while this is open
    voter.get_by_label("Answer by keys").uncheck()
    voter.get_by_role("button", name="Close").click()
    voter.keyboard.press("a")  # now means nothing
    said = [("tell", "left"), ("tell", "right"), ("tell", "tie"), ("undo", None), ("tell", "both_bad")]
    said += [("tell", "skip"), ("tell", "right")]
    assert answers(api, "styles of answers?") == said


@pytest.mark.deep
def test_create_from_a_file_of_items(browser, live, api, tmp_path):
    page = browser.sign_in(live.token)
    browser.expected += ["status of 400"]
    bad = tmp_path / "bad.csv"
    bad.write_text("prompt,first,second\nq,one\n")
    page.get_by_label("Name", exact=True).first.fill("files")
    page.get_by_label("File").set_input_files(bad)
    page.get_by_role("button", name="Create the study").click()
    expect(page.locator("#create-said")).to_contain_text("line 2: 2 fields, expected 3")
    assert api.get("/api/studies").json() == {"studies": []}

    refused = {
        "european.csv": (b"prompt;first;second\nq;1;2\n", "separates cells by semicolons: save it with commas"),
        "empty.csv": (b"\n", "empty.csv is empty"),
        "photo.png": (b"\x89PNG\r\n", "is not UTF-8 text: save it as “CSV UTF-8”"),
        "script.py": (b"print(1)\n", "has an unknown type: expected a name that ends in .csv, .jsonl or .txt"),
        "twice.csv": (b"prompt,first,first\nq,1,2\n", "Two arms are called “first”"),
        "list.txt": (b"first\nfirst\n", "Two arms are called “first”"),
        "half.jsonl": (b'{"prompt": "q"', "half.jsonl, line 1, is not JSON"),
    }
    for file, (content, words) in refused.items():
        page.get_by_label("File").set_input_files({"name": file, "mimeType": "", "buffer": content})
        page.get_by_role("button", name="Create the study").click()
        expect(page.locator("#create-said")).to_contain_text(words)
    assert api.get("/api/studies").json() == {"studies": []}

    expect(page.locator("#kind-field")).to_be_visible()
    marked = b"prompt,first,second\nq,**1**,2\nr,1,# 2\n"
    page.get_by_label("File").set_input_files({"name": "marked.csv", "mimeType": "", "buffer": marked})
    expect(page.get_by_label("Outputs are")).to_have_value("markdown")
    page.get_by_label("File").set_input_files({"name": "list.txt", "mimeType": "", "buffer": b"- first\n- second\n"})
    expect(page.locator("#kind-field")).to_be_hidden()

    good = tmp_path / "good.csv"
    good.write_text('prompt,kind,"first, really",second\n"What is\n2 + 2?",markdown,**four**,five\n')
    page.get_by_label("File").set_input_files(good)
    expect(page.get_by_label("Outputs are")).to_have_value("text")  # the file says it
    page.get_by_text("More options").click()
    page.get_by_label("Policy").select_option("interleaved_filter")
    page.get_by_label("Number of duels").fill("500")
    page.get_by_role("button", name="Create the study").click()
    page.wait_for_url("**/studies/files")
    made = api.get("/api/studies/files").json()
    assert [arm["name"] for arm in made["arms"]] == ["first, really", "second"]
    assert (made["items"], made["policy"]) == (1, "interleaved_filter")

    page.get_by_role("link", name="Items", exact=True).click()
    european = {"name": "more.csv", "mimeType": "", "buffer": refused["european.csv"][0]}
    page.get_by_label("JSON lines or CSV").set_input_files(european)
    page.get_by_role("button", name="Upload items").click()
    expect(page.locator("#items-said")).to_contain_text("separates cells by semicolons")
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"prompt": "2 + 3?", "outputs": {"first, really": "five", "second": "six"}}))
    page.get_by_label("JSON lines or CSV").set_input_files(more)
    page.get_by_role("button", name="Upload items").click()
    expect(page.locator("#items-said")).to_have_text("1 item added, 2 in total.")
    to_tab(page, "Share")
    page.get_by_role("button", name="Create a link").click()
    voter = browser.open(urlsplit(page.locator("#link-made .secret").inner_text()).path)
    expect(voter.get_by_role("heading", level=1)).to_have_text("Which is better?")
    seen = set()
    for n in range(2):
        so_far(voter, f"{n} of 25")
        seen.add(voter.locator("#prompt").inner_text())
        voter.keyboard.press("b")
    assert seen == {"What is\n2 + 2?", "2 + 3?"}
    thanks = "You gave 2 votes. You have seen everything there is to compare."
    expect(voter.locator("#thanks-words")).to_have_text(thanks)
    expect(voter.get_by_role("button", name="Keep voting")).to_be_hidden()
    voter.get_by_role("button", name="Undo the last answer").click()
    so_far(voter, "1 of 25")
    expect(voter.locator("#question")).to_be_visible()

    page.get_by_role("link", name="Items", exact=True).click()
    page.get_by_role("button", name="Remove all 2").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("#items-said")).to_have_text("All items were removed.")
    assert api.get("/api/studies/files").json()["items"] == 0

    page.goto(live.url)
    page.get_by_text("New study").click()
    page.get_by_text("More options").click()
    page.get_by_label("Name", exact=True).first.fill("exactly these")
    page.get_by_label("File", exact=True).set_input_files(good)
    expect(page.locator("#live-hint")).to_be_hidden()
    page.get_by_label("Policy").select_option("scb")
    expect(page.locator("#live-hint")).to_contain_text("A study may never end with scb: it may stop asking")
    page.get_by_label("The verdict is about").select_option("these-answers")
    expect(page.locator("#live-hint")).to_be_hidden()  # when all was asked, it ends
    page.get_by_role("button", name="Create the study").click()
    page.wait_for_url("**/studies/exactly%20these")
    assert api.get("/api/studies/exactly%20these").json()["goal"]["about"] == "these-answers"
    to_tab(page, "Settings")
    expect(page.locator("[name=about]")).to_have_value("these-answers")


def test_a_verdict_is_seen_live_and_voters_are_thanked(browser, live, api):
    path = make_study(api, "race", ["ant", "bee", "cat"])
    board, voter = browser.sign_in(live.token, "/studies/race"), browser.open(path)
    expect(voter.locator("#question")).to_be_visible()
    expect(board.locator("#live")).to_have_text("updates live")
    with no_reload(board):
        votes = "left,right,winner\n" + "ant,bee,left\nant,cat,left\n" * 40
        assert api.post("/api/studies/race/import", content=votes).status_code == 200
        expect(board.locator("#headline")).to_contain_text("Winner: ant wins ")
        expect(board.locator("#news")).to_contain_text("Winner: ant wins ")
        expect(board.locator("#arms tbody td:first-child")).to_have_text(["1", "2?", "2?"])
        expect(board.locator("#ranks")).to_have_text("Only the first rank is certain.")
        voter.keyboard.press("a")
        expect(voter.locator("#thanks-words")).to_contain_text("The result is known")
        expect(voter.get_by_role("button", name="Keep voting")).to_be_hidden()
        late = browser.open(path)
        expect(late.locator("#thanks-title")).to_have_text("This comparison is over: the result is known.")
        expect(late.locator("#thanks-words")).to_have_text("No more votes are needed.")
        expect(late.locator("#so-far")).to_be_hidden()
    to_tab(board, "Settings")
    with no_reload(board):
        board.get_by_role("button", name="Retire the study").click()
        board.get_by_role("button", name="Retire", exact=True).click()
        expect(board.get_by_role("button", name="Resume the study")).to_be_focused()
        expect(board.locator("#state")).to_have_text("retired")
        expect(board.locator("#live")).to_be_hidden()
    voter.reload()
    expect(voter.locator("#thanks-words")).to_contain_text("This study has ended.")


@pytest.mark.deep  # it waits
def test_an_open_page_sees_that_a_lease_has_ended(browser, live, api):
    """A question that waits counts as lost until then, so the verdict may come without another answer."""
    assert api.post("/api/studies", json={"name": "race", "arms": ["ant", "bee"], "lease": 8.0}).status_code == 201
    waiting = api.post("/api/studies/race/ask", json={"voter": "somebody who leaves"}).json()["duels"]
    votes = [{"left": "ant", "right": "bee", "winner": "left", "voter": f"person {k}"} for k in range(14)]
    sent = api.post("/api/studies/race/import", content="\n".join(map(json.dumps, votes)))
    assert (len(waiting), sent.status_code) == (1, 200), sent.text
    board = browser.sign_in(live.token, "/studies/race")
    with no_reload(board):
        expect(board.locator("#headline")).to_contain_text("Not yet: ant leads")
        expect(board.locator("#headline")).to_contain_text("Winner: ant wins ")


@pytest.mark.deep
def test_times_are_the_reader_s_own_and_forecasts_have_a_date(browser, live, api):
    make_study(api, "race", ["ant", "bee"])
    votes = "left,right,winner\n" + "ant,bee,left\n" * 5 + "bee,ant,left\n" * 3
    assert api.post("/api/studies/race/import", content=votes).status_code == 200
    board = browser.sign_in(live.token, "/studies/race", timezone_id="Asia/Tokyo")
    expect(board.locator("#next-words")).to_have_text("Go on. It is too early to say how many more answers are needed.")
    expect(board.locator("#map button")).to_have_text([re.compile("^63"), re.compile("^37")])  # of 62.5 and 37.5
    sent = {}
    board.route("**/api/studies/race/results", lambda route: route.fulfill(json=sent))
    day = datetime.now(ZoneInfo("Asia/Tokyo")).replace(hour=23, minute=59, second=0)
    for until, shown in (
        (day, r"that is until\s11:59\sPM\.$"),
        (day + timedelta(days=1), rf"until\s{day + timedelta(days=1):%a},\s{day + timedelta(days=1):%b}\s"),
        (day + timedelta(days=400), rf"until\s{day + timedelta(days=400):%B}\s{(day + timedelta(days=400)).year}\.$"),
    ):
        sent |= api.get("/api/studies/race/results").json() | {"seq": 10**6}
        sent["next"]["until"] = until.isoformat()
        assert api.post("/api/studies/race/import", content="left,right,winner\nant,bee,tie\n").status_code == 200
        expect(board.locator("#next-until")).to_have_text(re.compile(shown))
    # Nothing is forecast for a time that has passed, and where nobody votes any more it says since when.
    ago = datetime.now(ZoneInfo("Asia/Tokyo"))
    for minutes, silence, shown in (
        (-1, 5, r"^$"),
        (60, 25, r"^Nobody has voted for 2[56]\sminutes\.$"),
        (60, 5 * 60, r"^Nobody has voted for 5\shours\.$"),
        (60, 3 * 24 * 60, r"^Nobody has voted for 3\sdays\.$"),
    ):
        sent |= api.get("/api/studies/race/results").json() | {"seq": 10**6}
        following = {"until": ago + timedelta(minutes=minutes), "last": ago - timedelta(minutes=silence)}
        sent["next"] |= {name: time.isoformat() for name, time in following.items()} | {"quiet": 600.0}
        assert api.post("/api/studies/race/import", content="left,right,winner\nant,bee,tie\n").status_code == 200
        expect(board.locator("#next-until")).to_have_text(re.compile(shown))
    assert api.post("/api/studies/race/arms", json={"name": "cat"}).status_code == 201
    assert api.post("/api/studies/race/results-links", json={}).status_code == 201
    for path, place in (("settings", "#changes time"), ("share", "main time")):
        board.goto(f"{live.url}/studies/race/{path}")
        shown = board.locator(place).first
        moment = datetime.fromisoformat(shown.get_attribute("datetime"))
        expect(shown).to_have_attribute("title", f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
        clock = f"{moment.astimezone(ZoneInfo('Asia/Tokyo')):%I:%M}"
        assert clock in shown.text_content(), path


@pytest.mark.deep
def test_the_page_comes_back_by_itself_when_the_server_does(browser, live, serve, api):
    make_study(api, "race", ["ant", "bee", "cat"])
    board = browser.sign_in(live.token, "/studies/race")
    expect(board.locator("#live")).to_have_text("updates live")
    browser.expected += ["net::ERR_"]
    with no_reload(board):
        assert live.stop() == 0
        expect(board.locator("#live")).to_have_text("reconnecting…")
        again = serve(live.storage, "--port", str(urlsplit(live.url).port))
        again.token = live.token
        with again.client() as client:
            client.post("/api/studies/race/import", content="left,right,winner\nant,bee,left\n")
        expect(board.locator("#evidence")).to_contain_text("1 answer", timeout=15_000)
        expect(board.locator("#live")).to_have_text("updates live")


def hostile_items(arms):
    image = (
        "data:image/svg+xml;base64,"
        + base64.b64encode(
            b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.xss=1"><script>window.xss=1</script></svg>'
        ).decode()
    )
    page = """<p id=found></p><script>
      const found = [];
      for (const [name, look] of Object.entries({
        origin: () => self.origin,
        cookie: () => document.cookie,
        storage: () => localStorage.length,
        parent: () => { parent.xss = 1; return parent.document.title; },
        top: () => { top.location.href; return top.document.body.innerHTML; },
      })) { try { found.push(name + ' ' + look()); } catch (error) { found.push(name + ' ' + error.name); } }
      document.getElementById('found').textContent = found.join(', ');
    </script>"""
    link = "[x](javascript:window.xss=1) ![x](javascript:window.xss=1)"
    outputs = {"text": XSS, "markdown": f"# {XSS}\n\n{XSS} {link}", "code": XSS, "image": image, "html": page}
    return [{"prompt": f"{XSS} {kind}", "kind": kind, "outputs": dict.fromkeys(arms, o)} for kind, o in outputs.items()]


def test_nothing_that_users_write_runs(browser, live, api):
    arms, name = [f"{XSS} {k}" for k in range(2)], XSS.replace("/", "|")
    path = make_study(api, name, arms, hostile_items(arms), votes=100, title=XSS)
    api.post(f"/api/studies/{quote(name)}/scripts", json={"scripts": True})
    for voter in (XSS, "other"):
        duel = api.post(f"/api/studies/{quote(name)}/ask", json={"voter": voter, "allow_self": False}).json()["duels"][
            0
        ]
        api.post(f"/api/studies/{quote(name)}/tell", json={"duel": duel["id"], "winner": "left", "voter": voter})
    assert api.post("/api/tokens", json={"name": XSS}).status_code == 201

    board = browser.sign_in(live.token)
    unharmed(board)
    board.goto(f"{live.url}/tokens")
    expect(board.locator("#token-list")).to_contain_text("window.xss", use_inner_text=False)
    unharmed(board)
    board.get_by_role("link", name="Studies").click()
    board.get_by_role("link", name="window.xss").click()
    board.locator("#map button").first.click()
    expect(board.locator("#pair svg")).to_be_visible()
    unharmed(board)
    board.locator("#details-card summary").click()
    expect(board.locator("#pairs")).to_contain_text("window.xss")
    unharmed(board)
    for tab in ("Items", "Voters", "Settings", "Share"):
        board.get_by_role("link", name=tab, exact=True).click()
        unharmed(board)
    board.locator("#links [data-revoke]").click()
    expect(board.locator("#confirm-title")).to_contain_text("window.xss")
    board.get_by_role("button", name="Cancel").click()
    unharmed(board)

    voter = browser.open(path)
    kinds = set()
    for n in range(60):
        so_far(voter, f"{n} of 100")
        assert XSS in voter.locator("#prompt").inner_text()
        kind = voter.locator("#prompt").inner_text().split()[-1]
        if kind not in kinds:
            kinds.add(kind)
            if kind == "html":
                frame_is_locked_up(voter)
            unharmed(voter)
        if len(kinds) == 5:
            break
        voter.keyboard.press("t")
    assert len(kinds) == 5


def unharmed(page):
    page.wait_for_timeout(50)
    assert page.evaluate("() => window.xss") is None
    assert page.locator("main script:not([type='application/json']), main [onerror], main [onload]").count() == 0


def frame_is_locked_up(voter):
    frame = voter.locator("#output-a iframe")
    assert frame.get_attribute("sandbox") == "allow-scripts"  # which the study's owner has turned on
    found = frame.content_frame.locator("#found")
    error = "SecurityError"
    expect(found).to_have_text(f"origin null, cookie {error}, storage {error}, parent {error}, top {error}")


def in_parquet(**columns):
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


VOTES_IN_PARQUET = in_parquet(left=["friendly"], right=["thorough"], winner=["left"])


def test_managing_a_study_to_its_end(browser, live, api):
    path = make_study(api, "short life")
    board, voter = browser.sign_in(live.token, "/studies/short%20life"), browser.open(path)
    browser.expected += [NOT_FOUND]
    to_tab(board, "Settings")
    board.get_by_label("New arm").fill("formal")
    board.get_by_role("button", name="Add").click()
    expect(board.locator("#arms tbody tr")).to_have_count(4)
    board.get_by_role("button", name="Retire concise").click()
    board.get_by_role("button", name="Retire", exact=True).click()
    expect(board.locator("#arms tr.off")).to_contain_text("concise")
    expect(voter.locator("#question")).to_be_visible()
    to_tab(board, "Share")
    board.get_by_role("button", name="Revoke Which answer?").click()
    board.get_by_role("button", name="Cancel").click()
    assert api.get("/api/studies/short%20life/links").json()["links"][0]["revoked"] is None
    board.get_by_role("button", name="Revoke Which answer?").click()
    board.get_by_role("button", name="Revoke", exact=True).click()
    expect(board.locator("#links tr.off")).to_contain_text("revoked")
    voter.keyboard.press("a")
    expect(voter.get_by_role("heading", level=1)).to_have_text("This link no longer works")
    with board.expect_download() as download:
        board.get_by_role("link", name="Export as CSV").click()
    assert download.value.suggested_filename == "short-life-votes.csv"
    with board.expect_download() as download:
        board.get_by_role("link", name="Export as Parquet").click()
    assert download.value.suggested_filename == "short-life-votes.parquet"
    board.get_by_label("Import past votes").set_input_files(
        {"name": "v.parquet", "mimeType": "", "buffer": VOTES_IN_PARQUET}
    )
    board.get_by_role("button", name="Import votes").click()
    expect(board.locator("#import-said")).to_have_text("1 vote imported.")
    to_tab(board, "Settings")
    board.get_by_role("button", name="Delete the study").click()
    board.get_by_label("Type short life to confirm").fill("short")
    expect(board.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    board.get_by_label("Type short life to confirm").fill("short life")
    board.get_by_role("button", name="Delete", exact=True).click()
    board.wait_for_url(f"{live.url}/")
    assert api.get("/api/studies").json() == {"studies": []}
    tokens_and_signing_out(browser, board, live)


def tokens_and_signing_out(browser, board, live):
    board.get_by_role("link", name="Tokens").click()
    board.locator("#token-name").fill("robot")
    board.get_by_role("button", name="Create a token").click()
    token = board.locator("#token-made .secret").inner_text()
    with live.client() as robot:
        robot.headers["Authorization"] = f"Bearer {token}"
        assert robot.get("/api/studies").status_code == 200
        board.get_by_role("button", name="Revoke robot").click()
        board.get_by_role("button", name="Revoke", exact=True).click()
        expect(board.locator("#token-list tr.off")).to_contain_text("robot")
        assert robot.get("/api/studies").status_code == 401
    board.get_by_role("button", name="Revoke first start").click()
    expect(board.get_by_role("dialog")).to_contain_text("you are signed out, and nobody can sign in any more")
    board.get_by_role("button", name="Cancel").click()
    expect(board.get_by_text("Created the api token “robot”.")).to_be_visible()
    board.get_by_role("button", name="Sign out").click()
    board.wait_for_url("**/signin")
    browser.expected += ["status of 401"]
    board.get_by_label("Token").fill(token)
    board.get_by_role("button", name="Sign in").click()
    expect(board.get_by_role("alert")).to_contain_text("cannot open the dashboard")


def test_trouble_on_the_way_loses_no_vote_and_counts_none_twice(browser, api):
    path = make_study(api, "tunnel")
    voter = browser.open(path)
    browser.expected += ["net::ERR_FAILED", "status of 429"]
    so_far(voter, "0 of 25")
    troubles = ["abort", "429", "lost"]

    def hinder(route):
        trouble = troubles.pop(0) if troubles else None
        if trouble == "abort":
            route.abort()
        elif trouble == "429":
            body = json.dumps({"error": {"kind": "too_many", "message": "too many requests"}})
            route.fulfill(status=429, headers={"Retry-After": "1"}, body=body, content_type="application/json")
        elif trouble == "lost":  # the server has it, but nobody is told
            route.fetch()
            route.abort()
        else:
            route.continue_()

    voter.route("**/tell", hinder)
    voter.evaluate(  # the message is there for a second at a time, and a busy machine may look too late
        """() => {
            window.messages = [];
            const place = document.getElementById("trouble");
            const note = () => window.messages.push(place.textContent);
            new MutationObserver(note).observe(place, { childList: true, characterData: true, subtree: true });
        }"""
    )
    voter.keyboard.press("a")
    voter.keyboard.press("b")  # while the first is under way: ignored
    so_far(voter, "1 of 25")
    assert any("Trying again" in message for message in voter.evaluate("window.messages"))
    expect(voter.locator("#trouble")).to_be_empty()
    assert troubles == []
    assert answers(api, "tunnel") == [("tell", "left")]


def until(true, patience=15):
    """Wait for something that a busy machine may need several movements for."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def leave(page, inside):
    """Move the pointer over something and away from it again."""
    inside.hover()
    page.mouse.move(5, 5)


@pytest.mark.deep
def test_a_question_answered_in_another_tab_and_outputs_that_are_still_missing(browser, api):
    def items(*arms):
        return json.dumps({"prompt": "q", "kind": "html", "outputs": dict.fromkeys(arms, "<p>hello</p>")})

    path = make_study(api, "tabs", ["ant", "bee"], votes=9)
    voter = browser.open(path)
    browser.expected += ["status of 409"]
    so_far(voter, "0 of 9")
    other = voter.context.new_page()
    other.goto(voter.url)
    so_far(other, "0 of 9")
    other.keyboard.press("a")
    so_far(other, "1 of 9")
    voter.keyboard.press("b")
    expect(voter.locator("#trouble")).to_have_text("You answered this question in another tab.")
    so_far(voter, "1 of 9")
    assert answers(api, "tabs") == [("tell", "left")]

    api.post("/api/studies/tabs/arms", json={"name": "cat"})
    api.post("/api/studies/tabs/arms", json={"name": "dog"})
    for arm in ("ant", "bee"):
        api.post(f"/api/studies/tabs/arms/{arm}/retire")
    api.post("/api/studies/tabs/items", content=items("ant", "bee"))
    voter.reload()
    expect(voter.get_by_role("heading", name="There is nothing to compare yet: more outputs")).to_be_visible()
    assert api.put("/api/studies/tabs/items/1", content=items("cat", "dog")).is_success
    voter.get_by_role("button", name="Try again").click()
    expect(voter.locator("#question")).to_be_visible()

    inside = voter.locator("#output-a iframe").content_frame.get_by_text("hello")
    focus = "() => document.activeElement.id || document.activeElement.tagName"
    inside.click()
    voter.wait_for_function("() => document.activeElement.tagName === 'IFRAME'")
    until(lambda: leave(voter, inside) or voter.evaluate(focus) == "main")
    with voter.context.expect_page() as opened:
        voter.get_by_role("link", name="Open full size").first.click()
    large = opened.value.locator("iframe")
    expect(large.content_frame.get_by_text("hello")).to_be_visible()
    assert large.get_attribute("sandbox") == ""
    assert large.bounding_box()["width"] == DESKTOP["width"]
    assert urlsplit(opened.value.url).path == path
    voter.bring_to_front()
    voter.mouse.move(5, 5)
    voter.keyboard.press("b")
    so_far(voter, "2 of 9")


def test_outputs_and_answers_share_the_window(browser, api):
    outputs = dict.fromkeys(["ant", "bee"], "words " * 2000)
    voter = browser.open(make_study(api, "long", ["ant", "bee"], [{"prompt": "clause " * 300, "outputs": outputs}]))
    expect(voter.locator("#question")).to_be_visible()
    box = "(one) => { const at = one.getBoundingClientRect(); return [at.top, at.bottom]; }"
    for width, height in ((360, 740), (375, 667), (667, 375), (1280, 720)):
        voter.set_viewport_size({"width": width, "height": height})
        top, bottom = voter.locator(".answers").evaluate(box)
        assert bottom == pytest.approx(height, abs=1)
        assert bottom - top <= {360: 120, 375: 120, 667: 60, 1280: 140}[width]
        start, end = voter.locator("#output-a").evaluate(box)
        if width > height:
            assert end <= top
            assert end - start >= {667: 0.5, 1280: 0.3}[width] * height
        start, end = voter.locator("#prompt").evaluate(box)
        assert end - start <= 0.36 * height
    assert voter.locator("#prompt").evaluate("(one) => getComputedStyle(one).fontWeight") == "400"


def violations(page):
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in Axe().run(page).response["violations"]]


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.deep)])
def test_all_pages_are_accessible_and_fit(browser, live, api, scheme):
    name, arms = "w" * 80, ["concise", "a" * 60, "thorough", "vague"]
    item = {"kind": "code", "outputs": dict.fromkeys(arms, "x" * 300)}
    path = make_study(api, name, arms, [item | {"prompt": f"{k} " * 40} for k in range(10)])
    votes = "left,right,winner\n" + f"concise,{arms[1]},left\nconcise,thorough,right\nvague,concise,right\n" * 14
    assert api.post(f"/api/studies/{name}/import", content=votes).status_code == 200
    assert api.post(f"/api/studies/{name}/arms/vague/retire").status_code == 200
    load_study(name, live.storage).run({"j" * 60: lambda left, right: Answer("left", cost=0.1)}, max_calls=20)
    browser.expected += [NOT_FOUND]
    page = browser.sign_in(live.token, color_scheme=scheme)
    ready = {
        "/": "#studies",
        "/tokens": "#token-list",
        f"/studies/{name}": "#map button",
        f"/studies/{name}/items": "#new-items",
        f"/studies/{name}/voters": "#voters",
        f"/studies/{name}/share": "#links table",
        f"/studies/{name}/settings": "#arms",
        path: "#question:not([hidden])",
        "/help": "#team",
        "/docs": ".opblock",
        "/signin": "#token",
        "/vote/gone": "h1",
        "/studies/none": "h1",
    }
    for address, sign in ready.items():
        page.set_viewport_size(DESKTOP)
        page.goto(live.url + address)
        page.wait_for_selector(sign)
        assert ("Position bias: jjj" in page.content()) == (address == f"/studies/{name}")
        page.evaluate("() => document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        if address == f"/studies/{name}":
            page.wait_for_selector("#over-time svg")
        if address == "/docs" and scheme == "light":  # it is large: both schemes are looked at where there is time
            page.emulate_media(color_scheme="dark", reduced_motion="reduce")
            assert violations(page) == [], (address, "dark")
        if address != "/docs" or scheme == "light":
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # colors change at once
            assert violations(page) == [], (address, scheme)
        assert page.evaluate(TORN) == [], address
        for size in (DESKTOP, TABLET, SMALL_TABLET, PHONE):
            page.set_viewport_size(size)
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= size["width"], (address, size)
            narrowest = page.evaluate(NARROWEST)
            assert narrowest is None or narrowest >= 250, (address, size)


# Numbers that a line's end may tear from their units; what people have written stays as it is.
TORN = """() => {
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const inside = texts.currentNode.parentElement;
    const ours = !inside.closest('script, textarea, .output, .prompt, #swagger, code, svg');
    const torn = /\\d (%|s|ms|min|h|[KMG]i?B)(?!\\w)/.test(texts.currentNode.data);
    if (ours && torn) found.push(texts.currentNode.data.trim());
  }
  return found;
}"""
# Of the tables and drawings that can be seen.
NARROWEST = """() => {
  const all = [...document.querySelectorAll('.scroll, .drawing svg')].filter((one) => one.checkVisibility());
  return all.length ? Math.min(...all.map((one) => one.getBoundingClientRect().width)) : null;
}"""


@pytest.mark.deep
def test_the_documentation_of_the_api_works_on_the_page(browser, live):
    page = browser.sign_in(live.token, "/docs")
    operation = page.locator("#operations-studies-studies_api_studies_get")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name=re.compile("Try it out")).click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_have_text("200")


def test_touch_leaves_no_trace_and_code_can_be_wrapped(browser, live, api):
    """On a phone the button that was touched last must not look chosen: it would bias the next answer."""
    arms = ["concise", "friendly"]
    item = {"kind": "code", "outputs": dict.fromkeys(arms, "const x = 1; // " + "long " * 60)}
    path = make_study(api, "touch", arms, [item | {"prompt": f"question {k}"} for k in range(3)])
    voter = browser.open(path, viewport=PHONE, has_touch=True, is_mobile=True)
    button = voter.get_by_role("button", name="A is better")
    look = (
        "(one) => [getComputedStyle(one).filter, getComputedStyle(one).backgroundColor, getComputedStyle(one).outline]"
    )
    before = button.evaluate(look)
    button.tap()
    so_far(voter, "1 of 25")
    assert button.evaluate(look) == before
    assert voter.evaluate("() => document.activeElement.tagName") != "BUTTON"
    expect(voter.locator("#output-a .kd")).to_have_text("const")
    wide = "(one) => one.scrollWidth > one.clientWidth"
    assert voter.locator("#output-a pre").evaluate(wide)
    voter.get_by_role("button", name="Wrap lines").tap()
    assert not voter.locator("#output-a pre").evaluate(wide)
    assert not voter.locator("#output-b pre").evaluate(wide)
    voter.reload()
    expect(voter.get_by_role("button", name="Wrap lines")).to_have_attribute("aria-pressed", "true")


def test_many_studies_are_found_and_ordered(browser, live, api):
    for k, name in enumerate(["apples", "pears", "plums", "figs", "dates", "grapes"]):
        make_study(api, name, ["x", "y"])
        votes = "x,y,left\n" * (90 if name == "figs" else k)
        api.post(f"/api/studies/{name}/import", content=f"left,right,winner\n{votes}")
    page = browser.sign_in(live.token)
    names = page.locator("#studies li:not([hidden]) h3 a")
    assert names.all_inner_texts() == ["grapes", "dates", "figs", "plums", "pears", "apples"]
    page.get_by_label("Search").fill("P")
    assert names.all_inner_texts() == ["grapes", "plums", "pears", "apples"]
    expect(page.locator("#found")).to_have_text("4 of 6 studies")
    page.get_by_label("Order").select_option("by name")
    assert names.all_inner_texts() == ["apples", "grapes", "pears", "plums"]
    page.get_by_label("Search").fill("")
    page.get_by_label("Order").select_option("most answers")
    assert names.all_inner_texts()[0] == "figs"
    page.get_by_label("Order").select_option("undecided first")
    assert names.all_inner_texts()[-1] == "figs"  # it has its winner
