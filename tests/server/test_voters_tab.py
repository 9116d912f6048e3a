"""The Voters tab and its routes: who may see it, pages, and answers that are withdrawn; then in a real browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from starlette.testclient import TestClient

from duels.server.keys import make_key
from duels.study.create import create_study

from .test_browser import DESKTOP, XSS, Browser, api, browser, live, make_study  # noqa: F401

AT = "/api/studies/zoo"
PHONE = {"width": 390, "height": 800}


@pytest.fixture
def zoo(storage):
    study = create_study(["ape", "bat"], "zoo", storage)
    for voter, winner in (("ann", "ape"), ("ann", "ape"), ("bob", "ape"), ("cem", "bat"), (None, "ape")):
        study.tell(study.ask(voter=voter, allow_self=False), winner, voter=voter)
    return study


def test_voters_are_listed_in_pages(zoo, admin):
    found = admin.get(f"{AT}/voters").json()
    assert [(one["voter"], one["answers"]) for one in found["voters"]] == [("ann", 2), ("bob", 1), ("cem", 1)]
    assert (found["total"], found["found"], found["unnamed"], found["next"]) == (3, 3, 1, None)
    assert found["raw"] == pytest.approx(1 / 3)  # ann and bob, of three pairs
    page = admin.get(f"{AT}/voters", params={"limit": 2, "sort": "voter", "reverse": True}).json()
    assert ([one["voter"] for one in page["voters"]], page["next"]) == (["cem", "bob"], 2)
    page = admin.get(f"{AT}/voters", params={"limit": 2, "sort": "voter", "reverse": True, "after": 2}).json()
    assert ([one["voter"] for one in page["voters"]], page["next"]) == (["ann"], None)
    page = admin.get(f"{AT}/voters", params={"search": "B"}).json()
    assert ([one["voter"] for one in page["voters"]], page["found"], page["total"]) == (["bob"], 1, 3)
    assert admin.get(f"{AT}/voters", params={"after": 10**6}).json()["voters"] == []
    for wrong in ({"sort": "shoe size"}, {"limit": 0}, {"limit": 1001}, {"after": -1}, {"search": "x" * 201}):
        assert admin.get(f"{AT}/voters", params=wrong).status_code == 422


def test_answers_are_withdrawn_by_admins_only_and_that_is_noted(zoo, app, admin, storage):
    _, token = make_key(storage, "api", "program")
    before = zoo._log.history().seq
    for secret, status in ((token, 403), ("wrong", 401), ("", 401)):
        with TestClient(app, "http://localhost", headers={"Authorization": f"Bearer {secret}"}) as client:
            assert client.get(f"{AT}/voters").status_code == status
            assert client.post(f"{AT}/voters/withdraw", json={"voter": "ann"}).status_code == status
    for wrong, status in (
        ({"voter": "zoe"}, 400),
        ({"voter": ""}, 422),
        ({"voter": None}, 422),
        ({"voter": "x" * 201}, 422),
        ({"voter": "ann", "more": 1}, 422),
        ({"voter": "a\x00"}, 400),
    ):
        assert admin.post(f"{AT}/voters/withdraw", json=wrong).status_code == status, wrong
    assert zoo._log.history().seq == before
    assert admin.get(f"{AT}/changes").json()["changes"] == []
    taken = admin.post(f"{AT}/voters/withdraw", json={"voter": "ann"}).json()
    assert taken == {"answers": 2, "void": "2 answers were taken back"}
    assert admin.post(f"{AT}/voters/withdraw", json={"voter": "ann"}).status_code == 400  # nothing left
    (note,) = admin.get(f"{AT}/changes").json()["changes"]
    assert (note["who"], note["what"]) == ("test", "Withdrew the answers of “ann”.")
    row = next(one for one in admin.get(f"{AT}/voters").json()["voters"] if one["voter"] == "ann")
    assert (row["answers"], row["withdrawn"]) == (0, 2)
    assert admin.get(f"{AT}/verdict").json()["void"] == "2 answers were taken back"
    admin.post(f"{AT}/forget", json={"voter": "ann"})  # the name is erased here too
    assert "ann" not in str(admin.get(f"{AT}/changes").json()) + str(admin.get(f"{AT}/voters").json())


def test_what_viewers_of_results_get_names_nobody(zoo, admin):
    for part in ("results", "verdict", "forecast"):
        assert "cem" not in admin.get(f"{AT}/{part}").text


def crowd(api):  # noqa: F811
    """Sixty voters; one prefers the left, and one has a name that would like to be a script."""
    make_study(api, "crowd", ["ape", "bat"])
    at = "/api/studies/crowd"
    rows = [
        {"left": "ape", "right": "bat", "winner": "ape" if n % 4 else "bat", "voter": f"person {n:02}"}
        for n in range(58)
        for _ in range(n % 3 + 1)
    ]
    lines = "\n".join(",".join(row.values()) for row in rows)
    assert api.post(f"{at}/import", content=f"left,right,winner,voter\n{lines}\n").is_success
    for _ in range(25):
        tell(api, at, "lefty", "left")
    tell(api, at, XSS, "ape")
    return at


def tell(api, at, voter, winner):  # noqa: F811
    duel = api.post(f"{at}/ask", json={"allow_self": False, "voter": voter}).json()["duels"][0]
    assert api.post(f"{at}/tell", json={"duel": duel["id"], "winner": winner, "voter": voter}).is_success


def look_at_voters(browser, live, api, size):  # noqa: F811
    at = crowd(api)
    page = browser.sign_in(live.token, "/studies/crowd/voters", viewport=size)
    rows = page.locator("#voters tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("lefty")
    expect(rows.first).to_contain_text("prefers a side")
    expect(page.locator("#outliers")).to_contain_text("lefty chose the left side in 25 of 25 answers")
    expect(page.get_by_text("1–50 of 60 voters")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(rows).to_have_count(10)
    page.get_by_role("link", name="Voter (sort: by name)").click()
    expect(rows.first).to_contain_text("<script>")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Voter")
    page.get_by_role("link", name="Voter (sort: by name, reversed)").click()
    expect(rows.first).to_contain_text("person 57")
    page.get_by_label("Search").fill("LEFT")
    expect(rows).to_have_count(1)
    tell(api, at, "lefty", "left")  # the page follows
    expect(rows.first).to_contain_text("26 of 26")
    page.get_by_role("button", name="Withdraw the answers of lefty").click()
    dialog = page.get_by_role("dialog", name="Withdraw the answers of lefty?")
    expect(dialog).to_contain_text("26 answers of lefty will no longer count. This cannot be undone.")
    expect(dialog).to_contain_text("nothing is promised about errors of the verdict")
    dialog.get_by_role("button", name="Cancel").click()
    assert api.get(f"{at}/voters").json()["voters"][0]["answers"] == 26
    page.get_by_role("button", name="Withdraw the answers of lefty").click()
    dialog.get_by_role("button", name="Withdraw").click()
    expect(page.locator("#voters-done")).to_have_text("26 answers of lefty were withdrawn.")
    expect(rows.first).to_contain_text("26 withdrawn")
    expect(page.locator("#voters-words")).to_contain_text("26 answers were taken back.")
    expect(page.locator("#outliers")).to_contain_text("Nobody.")
    assert page.evaluate("() => document.activeElement.id") == "voters-scroll"
    page.get_by_label("Search").fill("no such person")
    page.keyboard.press("Enter")
    expect(page.locator("#voters")).to_contain_text("No voter has “no such person” in the name.")
    page.goto(f"{live.url}/studies/crowd/voters")
    page.get_by_text("How this is decided").click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # colors change at once
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= size["width"]
    assert page.evaluate("() => window.xss") is None


@pytest.mark.deep
def test_a_lead_looks_at_voters_and_withdraws_one(browser, live, api):  # noqa: F811
    look_at_voters(browser, live, api, DESKTOP)


@pytest.mark.deep
def test_the_same_on_a_phone(browser, live, api):  # noqa: F811
    look_at_voters(browser, live, api, PHONE)
