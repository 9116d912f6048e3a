"""Tuning parameters in a real browser: from the form to votes on rendered settings, and the results for both ends."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from .test_browser import PHONE, api, browser, no_reload, so_far, to_tab  # noqa: F401
from .test_browser_share import accessible, schemes  # noqa: F401

TUTORIAL = (Path(__file__).parents[2] / "docs" / "continuous" / "tutorial.md").read_text()
(SPACE,) = re.findall(r"^```toml\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
PAGE, SOUND = re.findall(r"^```html\+jinja\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
EVIL = "<script>window.xss=1</script>"
WITH_EVIL = f'{SPACE}"{EVIL}" = ["<img src=x onerror=window.xss=1>", "b"]\n'
SCRIPT = "<script>document.querySelector('h1').textContent = 'changed by a script'</script>"
SIZE = "(one) => getComputedStyle(one.ownerDocument.body).fontSize"


@pytest.fixture
def live(serve):
    return serve(compiled=True)  # the model's kernels are slow otherwise


def test_tune_a_page_from_the_form_to_the_result(browser, live, api, tmp_path, schemes):  # noqa: F811
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
    form.get_by_label("Parameters").fill(WITH_EVIL)
    form.get_by_label("Template").set_input_files(file)
    accessible(board, schemes)
    form.get_by_role("button", name="Create the study").click()
    board.wait_for_url("**/studies/my%20page")
    expect(board.locator("#headline")).to_have_text("No answers yet")
    expect(board.locator("#live")).to_have_text("updates live")

    change_the_template(board, schemes)
    to_tab(board, "Share")
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
            expect(page.locator("#headline")).to_have_text("No preference found yet")
            expect(page.locator("#words")).to_contain_text("The best guess is hue ")
            expect(page.locator("#slices svg")).to_have_count(5)
            assert page.locator("#setting-values dt").all_inner_texts() == ["hue", "size", "leading", "font", EVIL]
            for which in ("setting", "runner_up"):
                heading = page.frame_locator(f"#{which}-frame iframe").locator("h1")
                expect(heading).to_have_text("A quiet place to read")  # its script did not run
                size = page.locator(f"#{which}-values dd").nth(1).inner_text()
                assert heading.evaluate(SIZE) == f"{size}px"
            assert page.evaluate("() => window.xss") is None
    assert 2 <= len(framed) <= 2 * 5  # a frame is loaded again only if its setting is another one
    accessible(viewer, schemes)
    expect(viewer.locator("main").get_by_role("link")).to_have_count(0)  # nothing leads from results into the study
    accessible(board, schemes or ["dark"])
    board.get_by_role("link", name="Voters").click()
    expect(board.locator("#voters tbody tr")).to_have_count(1)


def change_the_template(board, schemes):  # noqa: F811
    """The template is edited on the page, and shown as voters see it; scripts run only if that is chosen."""
    expect(board.locator("#steps")).to_contain_text("The template is there.")
    to_tab(board, "Settings")
    area, said = board.get_by_label("The page on which voters see a setting"), board.locator("#template-said")
    assert area.input_value() == PAGE
    area.fill("<p>{{ sise }}</p>")
    board.get_by_role("button", name="Save the template").click()
    expect(said).to_contain_text("Did you mean 'size'?")
    expect(board.locator("#template-unused")).to_contain_text(f"does not show {EVIL}: voters")
    board.get_by_label("Scripts in the template run").check()
    area.fill(f"{PAGE}{SCRIPT}{{{{ {EVIL} }}}}")
    board.get_by_role("button", name="Save the template").click()
    expect(board.locator("#template-saved")).to_contain_text("Saved")
    expect(board.locator("#template-unused")).to_be_empty()
    board.get_by_role("link", name="Preview what voters see").click()
    expect(board.frame_locator("#output-a iframe").locator("h1")).to_have_text("changed by a script")
    board.get_by_role("link", name="Back to Share").click()
    to_tab(board, "Settings")
    board.get_by_label("Scripts in the template run").uncheck()
    board.get_by_role("button", name="Save the template").click()
    expect(board.locator("#template-unused")).to_have_text(
        "The template has a script, which does not run: scripts are off."
    )
    accessible(board, schemes or ["dark"])


def vote_on_a_phone(browser, link, api):  # noqa: F811
    voter = browser.open(link, viewport=PHONE)
    so_far(voter, "0 of 4")
    duel = api.get("/api/studies/my page/duels/0").json()
    for letter, side in (("a", "left"), ("b", "right")):
        shown = voter.frame_locator(f"#output-{letter} iframe").locator("h1")
        expect(shown).to_have_text("A quiet place to read")
        assert shown.evaluate(SIZE) == f"{duel[side]['size']}px"
    voter.get_by_role("button", name="A is better").click()
    so_far(voter, "1 of 4")
    voter.get_by_role("button", name="Undo").click()
    so_far(voter, "0 of 4")
    again = voter.frame_locator("#output-a iframe").locator("h1")
    expect(again).to_be_visible()
    assert again.evaluate(SIZE) == f"{duel['left']['size']}px"
    for number in range(4):
        voter.get_by_role("button", name=("A is better", "B is better")[number % 2]).click()
        so_far(voter, f"{number + 1} of 4")
    expect(voter.get_by_role("heading", name="Thank you!")).to_be_visible()


def test_a_template_that_one_can_hear(browser, live, api):  # noqa: F811
    """The tutorial's second template: its script runs, makes a tone, and nothing is refused."""
    space = dict(re.findall(r"`(\w+) = (\[[^`]*\])`", TUTORIAL))
    text = "\n".join(f"{name} = {given}" for name, given in space.items())
    made = api.post("/api/tunings", json={"name": "tone", "space": text, "template": SOUND})
    assert made.status_code == 201, made.text
    api.post("/api/studies/tone/scripts", json={"scripts": True})
    board = browser.sign_in(live.token, "/studies/tone/preview")
    for letter in "ab":
        play = board.frame_locator(f"#output-{letter} iframe").get_by_role("button", name="Play")
        play.evaluate(
            "() => { window.made = []; const Own = AudioContext; "
            "AudioContext = class extends Own { constructor() { super(); made.push(this); } }; }"
        )
        play.click()
        board.wait_for_timeout(200)
        assert play.evaluate("() => made.map((audio) => audio.state)") == ["running"]
