"""Tuning parameters in a real browser: from the form to votes on rendered settings, and the results for both ends."""

from urllib.parse import urlsplit

from playwright.sync_api import expect

from .test_browser import PHONE, api, browser, live, no_reload, so_far  # noqa: F401
from .test_browser_share import accessible

SPACE = 'gap = [4, 40, "int"]\n"line height" = [1.0, 2.0]\nfont = ["serif", "<script>window.xss=1</script>"]\n'
PAGE = """<!doctype html><title>A page</title>
<style>p { margin: {{ gap }}px; font: 16px/{{ line height }} {{ font }} }</style>
<p>Gap {{ gap }}</p><script>document.querySelector("p").textContent = "changed by a script"</script>"""


def test_tune_a_page_from_the_form_to_the_result(browser, live, api, tmp_path):  # noqa: F811
    file = tmp_path / "page.html"
    file.write_text(PAGE)
    board = browser.sign_in(live.token)
    board.get_by_text("Tune parameters").click()
    form = board.locator("#create-tuning")
    form.get_by_label("Name").fill("my page")
    said = board.locator("#create-tuning-said")
    for space, words in (
        ("", "Enter at least one parameter"),
        ("gap = [4, 40]", "are these whole numbers only?"),
        ("gap is 4", "cannot be read"),
    ):
        form.get_by_label("Parameters").fill(space)
        form.get_by_role("button", name="Create the study").click()
        expect(said).to_contain_text(words)
    browser.expected += ["status of 400", "Blocked script execution"]
    form.get_by_label("Parameters").fill(SPACE)
    form.get_by_label("Template").set_input_files(file)
    accessible(board)
    form.get_by_role("button", name="Create the study").click()
    board.wait_for_url("**/studies/my%20page")
    expect(board.locator("#headline")).to_have_text("No answers yet")
    expect(board.locator("#live")).to_have_text("updates live")

    change_the_template(board)
    board.get_by_role("link", name="Share").click()
    board.locator("#links-panel").get_by_label("Votes each").fill("4")
    board.get_by_role("button", name="Create a link").click()
    link = urlsplit(board.locator("#link-made .secret").inner_text()).path
    board.get_by_role("button", name="Create a results link").click()
    results = urlsplit(board.locator("#results-made .secret").inner_text()).path
    board.get_by_role("link", name="Results", exact=True).click()
    viewer = browser.open(results, viewport=PHONE)
    expect(viewer.locator("#headline")).to_have_text("No answers yet")
    framed = []
    viewer.on("request", lambda request: framed.append(request.url) if "/output/" in request.url else None)
    with no_reload(board), no_reload(viewer):
        vote_on_a_phone(browser, link, api)
        for page in (board, viewer):
            expect(page.locator("#answers")).to_have_text("4")
            expect(page.locator("#headline")).to_contain_text("Best so far: gap ")
            expect(page.locator("#slices svg")).to_have_count(3)
            best = page.locator("#setting-values dd").first.inner_text()
            expect(page.frame_locator("#setting-frame iframe").locator("p")).to_have_text(f"Gap {best}")
            expect(page.frame_locator("#runner_up-frame iframe").locator("p")).to_contain_text("Gap ")
            assert page.locator("#setting-values dt").all_inner_texts() == ["gap", "line height", "font"]
            assert page.evaluate("() => window.xss") is None
    assert 2 <= len(framed) <= 2 * 5  # a frame is loaded again only if its setting is another one
    accessible(viewer)
    expect(viewer.locator("main").get_by_role("link")).to_have_count(0)  # nothing leads from results into the study
    accessible(board)
    board.get_by_role("link", name="Voters").click()
    expect(board.locator("#voters tbody tr")).to_have_count(1)


def change_the_template(board):
    """The template is edited on the page, and shown as voters see it; scripts run only if that is chosen."""
    board.get_by_role("link", name="Set the template").click()
    area, said = board.get_by_label("The page on which voters see a setting"), board.locator("#template-said")
    assert area.input_value() == PAGE
    area.fill("<p>{{ gapp }}</p>")
    board.get_by_role("button", name="Save the template").click()
    expect(said).to_contain_text("Did you mean 'gap'?")
    area.fill("<p>{{ gap }}</p>")
    board.get_by_role("button", name="Save the template").click()
    expect(board.locator("#template-unused")).to_have_text(
        "The template does not show line height, font: voters cannot see a difference."
    )
    board.get_by_label("Scripts in the template run").check()
    area.fill(PAGE)
    board.get_by_role("button", name="Save the template").click()
    expect(board.locator("#template-saved")).to_contain_text("Saved")
    expect(board.locator("#template-unused")).to_be_empty()
    board.get_by_role("link", name="Preview what voters see").click()
    expect(board.frame_locator("#output-a iframe").locator("p")).to_have_text("changed by a script")
    board.get_by_role("link", name="Back to Share").click()
    board.get_by_role("link", name="Settings").click()
    board.get_by_label("Scripts in the template run").uncheck()
    board.get_by_role("button", name="Save the template").click()
    expect(board.locator("#template-saved")).to_contain_text("Saved")
    accessible(board)


def vote_on_a_phone(browser, link, api):  # noqa: F811
    voter = browser.open(link, viewport=PHONE)
    so_far(voter, "0 of 4")
    duel = api.get("/api/studies/my page/duels/0").json()
    for letter, side in (("a", "left"), ("b", "right")):
        shown = voter.frame_locator(f"#output-{letter} iframe").locator("p")
        expect(shown).to_have_text(f"Gap {duel[side]['gap']}")  # as the template has it: its script did not run
        assert shown.evaluate("(p) => getComputedStyle(p).marginTop") == f"{duel[side]['gap']}px"
    voter.get_by_role("button", name="A is better").click()
    so_far(voter, "1 of 4")
    voter.get_by_role("button", name="Undo").click()
    so_far(voter, "0 of 4")
    expect(voter.frame_locator("#output-a iframe").locator("p")).to_have_text(f"Gap {duel['left']['gap']}")
    for number in range(4):
        voter.get_by_role("button", name=("A is better", "B is better")[number % 2]).click()
        so_far(voter, f"{number + 1} of 4")
    expect(voter.get_by_role("heading", name="Thank you!")).to_be_visible()
