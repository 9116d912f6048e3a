"""The tab Share in a real browser: links, invitations, results for others, files; from both ends."""

import base64
import re
from itertools import combinations
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from duels.server.api.links import qr_code

from .test_browser import DESKTOP, NOT_FOUND, PHONE, api, browser, live, make_study, so_far  # noqa: F401

SIZES = pytest.mark.parametrize(
    "size", [pytest.param(DESKTOP, id="desktop"), pytest.param(PHONE, id="phone", marks=pytest.mark.deep)]
)


@pytest.fixture
def schemes(request):
    """Of flows through pages. By default none: one test looks at all pages once."""
    return [] if request.config.option.markexpr == "not deep" else ["dark", "light"]


def accessible(page, schemes):
    """No violations in these schemes, of which a small window has the last; and nothing wider than the window."""
    page.evaluate("() => document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    for scheme in schemes[-1:] if page.viewport_size == PHONE else schemes:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def row(page, panel, name):
    return page.locator(f"#{panel} tbody tr", has_text=name)


def reloaded(page):
    page.reload()
    return page


@SIZES
def test_a_link_from_its_creation_to_its_end(browser, live, api, size, schemes):  # noqa: F811
    plain = make_study(api, "answers", title="")
    browser.expected += [NOT_FOUND]
    board = browser.sign_in(live.token, "/studies/answers/share", viewport=size)
    panel = board.locator("#links-panel")
    panel.get_by_label("Title that voters see").fill("Which helps?")
    panel.get_by_label("Ends").select_option("at a date…")
    board.get_by_role("button", name="Create a link").click()
    expect(board.locator("#link-said")).to_contain_text("Choose a date and a time.")
    panel.get_by_label("Date and time").fill("2020-05-06T07:08")
    expect(board.locator("#link-said")).to_be_empty()  # an error goes when its field is corrected
    board.get_by_role("button", name="Create a link").click()
    expect(board.locator("#link-said")).to_have_text("Ends: choose a time to come. This one is over.")
    panel.get_by_label("Date and time").fill("2031-05-06T07:08")
    panel.get_by_text("Limits", exact=True).first.click()
    panel.get_by_label("Max. per voter").fill("2")
    board.get_by_role("button", name="Create a link").click()
    expect(board.locator("#link-said")).to_contain_text("less than the 25 votes each (from Settings)")
    panel.get_by_label("Votes each").fill("2")
    board.get_by_role("button", name="Create a link").click()
    link = board.locator("#link-made .secret").inner_text()
    code = board.get_by_role("img", name="QR code of the link")
    expect(code).to_be_visible()
    expect(board.locator("#link-made .reach")).to_contain_text("Only this computer can open it")
    assert code.evaluate("(one) => one.complete && one.naturalWidth > 100")
    assert unquote(code.get_attribute("src").partition(",")[2]) == qr_code(link)
    with board.expect_download() as download:
        board.get_by_role("link", name="Save the QR code").click()
    assert download.value.suggested_filename == "qr-code.svg"
    expect(row(board, "links", "Which helps?")).to_contain_text("May 6, 2031, 7:08 AM")
    expect(row(board, "links", "Which helps?")).to_contain_text("not yet")
    accessible(board, schemes)

    voter = browser.open(link.removeprefix(live.url), viewport=size)
    so_far(voter, "0 of 2")
    voter.get_by_role("button", name="A is better").click()
    so_far(voter, "1 of 2")
    cells = row(reloaded(board), "links", "Which helps?").locator("td")
    expect(cells.nth(1)).to_have_text("1")
    expect(cells.nth(2)).to_have_text("1")
    expect(cells.nth(3).locator("time")).to_be_visible()
    voter.get_by_role("button", name="A is better").click()
    expect(voter.locator("#thanks-words")).to_contain_text("This link accepts no more votes.")

    row(board, "links", "Which helps?").get_by_role("button", name="Change").click()
    dialog = board.get_by_role("dialog")
    assert dialog.get_by_label("Max. per voter").input_value() == "2"
    dialog.get_by_label("Title").fill("Which is right?")
    dialog.get_by_label("Max. per voter").fill("")
    dialog.get_by_label("Votes each").fill("")
    dialog.get_by_label("Ends").fill("")
    accessible(board, schemes)
    dialog.get_by_role("button", name="Save").click()
    expect(row(board, "links", "Which is right?")).to_contain_text("never")
    expect(row(board, "links", "Which is right?")).to_contain_text("25 (from Settings)")
    api.patch("/api/studies/answers/settings", json={"votes": 20, "question": "Which one?"})
    voter.reload()
    so_far(voter, "2 of 20")
    expect(voter.get_by_role("heading", level=1)).to_have_text("Which is right?")
    expect(voter.locator("#prompt")).to_have_text("Which one?")  # a title of its own, and the question below it
    api.patch("/api/studies/answers/settings", json={"votes": 25})
    voter.reload()
    so_far(voter, "2 of 25")
    row(board, "links", "Which is right?").get_by_role("button", name="Switch off").click()
    expect(row(board, "links", "Which is right?")).to_contain_text("switched off")
    voter.get_by_role("button", name="B is better").click()
    expect(voter.get_by_role("heading", level=1)).to_have_text("Voting is paused")
    expect(voter.get_by_text("your votes are kept")).to_be_visible()
    voter.get_by_role("link", name="Try again").click()
    expect(voter.get_by_role("heading", level=1)).to_have_text("Voting is paused")
    accessible(voter, schemes)
    row(board, "links", "Which is right?").get_by_role("button", name="Switch on").click()
    expect(row(board, "links", "Which is right?")).to_contain_text("active")
    voter.get_by_role("link", name="Try again").click()
    so_far(voter, "2 of 25")

    board.get_by_role("link", name="Preview what voters see").click()
    expect(board.get_by_text("Preview: answers are not counted.")).to_be_visible()
    so_far(board, "0 of 25")
    untitled = browser.open(plain, viewport=size)
    for page in (board, untitled):  # a preview shows what voters of a link without a title see
        expect(page.get_by_role("heading", level=1)).to_have_text("Which one?")
        for part in ("#asked", "#prompt"):  # which would say it a second time
            expect(page.locator(part)).to_be_hidden()
    accessible(board, schemes)
    board.get_by_role("button", name="A is better").click()
    so_far(board, "1 of 25")
    board.get_by_role("button", name="Undo").click()
    so_far(board, "0 of 25")
    board.get_by_role("link", name="Back to Share").click()
    expect(row(board, "links", "Which is right?").locator("td").nth(1)).to_have_text("2")
    assert api.get("/api/studies/answers").json()["answers"] == 2


@SIZES
@pytest.mark.deep
def test_people_are_invited_and_others_watch(browser, live, api, size, schemes):  # noqa: F811
    make_study(api, "answers")
    browser.expected += [NOT_FOUND, "status of 400"]
    board = browser.sign_in(
        live.token, "/studies/answers/share", viewport=size, permissions=["clipboard-read", "clipboard-write"]
    )
    panel = board.locator("#invitations-panel")
    panel.get_by_label("Names, one per line").fill("Ann Lee\nVoter 7\n")
    board.get_by_role("button", name="Invite", exact=True).click()
    expect(board.locator("#invite-said")).to_contain_text("choose another one")
    panel.get_by_label("Names, one per line").fill("x" * 201)
    expect(board.locator("#invite-said")).to_be_empty()
    board.get_by_role("button", name="Invite", exact=True).click()
    expect(board.locator("#invite-said")).to_contain_text("A name may have at most 200 characters")
    panel.get_by_label("Names, one per line").fill("Ann Lee\n\n =Bob\n")
    board.get_by_role("button", name="Invite", exact=True).click()
    expect(board.locator("#invite-made tbody tr")).to_have_count(2)
    expect(board.locator("#invite-made .reach")).to_be_visible()
    links = board.locator("#invite-made .secret").all_inner_texts()
    board.get_by_role("button", name="Copy all").click()
    expect(board.get_by_role("button", name="Copied")).to_be_visible()
    copied = board.evaluate("() => navigator.clipboard.readText()")
    assert copied == f"Ann Lee\t{links[0]}\n=Bob\t{links[1]}"
    with board.expect_download() as download:
        board.get_by_role("link", name="Save as CSV").click()
    saved = download.value.path().read_text()
    assert saved.splitlines() == ['"name","link"', f'"Ann Lee","{links[0]}"', f'"\'=Bob","{links[1]}"']
    accessible(board, schemes)

    results = board.locator("#results-panel")
    results.get_by_label("Title of the page").fill("For the board")
    board.get_by_role("button", name="Create a results link").click()
    shown = board.locator("#results-made .secret").inner_text()
    viewer = browser.open(shown.removeprefix(live.url), viewport=size)
    expect(viewer.get_by_role("heading", level=1)).to_have_text("For the board")
    expect(viewer.locator("#live")).to_have_text("updates live")
    expect(viewer.locator("#map-none")).to_be_visible()

    ann = browser.open(links[0].removeprefix(live.url), viewport=size)
    so_far(ann, "0 of 25")
    expect(ann.locator("#voter")).to_have_text("You vote as Ann Lee. Your votes have your name.")
    ann.get_by_role("button", name="A is better").click()
    so_far(ann, "1 of 25")
    expect(viewer.locator("#evidence")).to_contain_text("1 answer")  # without loading the page again
    viewer.locator("#map button").first.click()
    expect(viewer.locator("#pair svg")).to_be_visible()
    other = browser.open(links[0].removeprefix(live.url), viewport=size)  # another device
    so_far(other, "1 of 25")
    assert "Ann" not in viewer.content()
    viewer.reload()
    accessible(viewer, schemes)
    reloaded(board)
    assert links[0] not in board.content()
    expect(row(board, "invitations", "Ann Lee").locator("td").nth(1)).to_have_text("1")
    with board.expect_download() as download:
        board.get_by_role("link", name="Results as JSON").click()
    assert download.value.suggested_filename == "answers-results.json"
    row(board, "invitations", "Ann Lee").get_by_role("button", name="New link").click()
    board.locator("#confirm").get_by_role("button", name="New link").click()
    expect(board.locator("#invite-made tbody tr")).to_have_count(1)
    assert board.locator("#invite-made .secret").inner_text() not in links
    other.reload()
    expect(other.get_by_role("heading", level=1)).to_have_text("This link no longer works")
    row(board, "results-links", "For the board").get_by_role("button", name="Revoke").click()
    board.locator("#confirm").get_by_role("button", name="Revoke").click()
    expect(viewer.get_by_role("heading", level=1)).to_have_text("This link no longer works")
    board.get_by_role("link", name="Voters", exact=True).click()
    expect(board.locator("#voters")).to_contain_text("Ann Lee")


API_SAYS = [  # a status, what the API says, and what a page makes of it
    (400, "expires is '2020-01-01T00:00:00Z': expected a time to come, at most 100 years from now", "The end must be"),
    (422, "body.arms.0: String should have at most 200 characters. See /docs for what is expected", "at most 200 char"),
    (422, "body.votes: Input should be greater than or equal to 1. See /docs for what is expected", "at least 1"),
    (422, "body.voters: List should have at most 200 items after validation, not 201. See /docs for…", "at most 200"),
    (422, "body.other: Extra inputs are not permitted. See /docs for what is expected", "What you entered cannot be"),
    (409, "there is a study 'x' already: choose another name, or say load_if_exists=True (--load-if-exists) to load it",
     "There is a study 'x' already: choose another name."),
    (400, "study_name is 'a/b': expected up to 200 characters without /, and not . or ..", "none of them a slash"),
    (400, "the votes are about arms that study 'x' does not have: y; add them with add_arm first", "tab Settings"),
    (400, "max_votes_per_voter is 2, but each voter is asked for 25 votes: …", "Max. per voter is"),
]  # fmt: skip


def test_what_the_api_says_is_put_into_plain_words(browser, live):  # noqa: F811
    page = browser.sign_in(live.token, "/")
    folder = page.locator("link[rel=icon]").get_attribute("href").rpartition("/")[0]
    said = page.evaluate(
        """async ([folder, all]) => {
          const { ApiError } = await import(`${folder}/api.js`);
          const { plainly, Told } = await import(`${folder}/words.js`);
          const ours = [new Told("x.csv is empty."), new Error("a bug")];
          return [...all.map(([status, words]) => new ApiError(status, words, null)), ...ours].map(plainly);
        }""",
        [folder, API_SAYS],
    )
    assert said[-2:] == ["x.csv is empty.", "Something went wrong: a bug."]
    for found, (_, message, words) in zip(said, API_SAYS):
        assert words in found, message
        assert found[0].isupper()
        assert found[-1] in ".…"
        for code in ("_", "body", "/docs", "--", "expires"):
            assert code not in found, found


LOOKS = """(selectors) => Object.fromEntries(selectors.map((one) => {
  const style = getComputedStyle(document.querySelector(one));
  return [one, [style.display, style.backgroundColor, style.color, style.printColorAdjust]];
}))"""
CONTRAST = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const light = (color) => {
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((one) => {
      const part = one / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Math.min(...[...document.querySelectorAll(".map button")].map((one) => {
    const style = getComputedStyle(one);
    const [dark, bright] = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  }));
}"""


def results_of(api, name, arms, votes):  # noqa: F811
    """The path of a results link."""
    make_study(api, name, arms)
    assert api.post(f"/api/studies/{name}/import", content=f"left,right,winner\n{votes}").status_code == 200
    return urlsplit(api.post(f"/api/studies/{name}/results-links", json={"name": name}).json()["url"]).path


@pytest.mark.parametrize("arms", [20, *(pytest.param(arms, marks=pytest.mark.deep) for arms in (2, 5, 8, 12))])
def test_results_are_one_printed_page(browser, api, arms):  # noqa: F811
    names = [f"arm {k} with a {'long ' * 5}name" for k in range(arms)]
    votes = "".join(f"{a},{b},left\n" * (k % 7) for k, (a, b) in enumerate(combinations(names, 2)))
    page = browser.open(results_of(api, "wide", names, votes + f"{names[0]},{names[1]},left\n"), color_scheme="dark")
    expect(page.locator("#map button")).not_to_have_count(0)
    for paper in ("A4", "Letter"):
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format=paper))) == 1, paper
    expect(page.locator("#as-of")).to_contain_text("As of ")
    expect(page.locator("#as-of")).to_be_hidden()
    page.emulate_media(media="print")
    found = page.evaluate(LOOKS, ["body", ".track .dot", "#map button", ".top", "#live"])
    assert found["body"][1:3] == ["rgb(255, 255, 255)", "rgb(29, 35, 39)"]  # light, though the screen is dark
    assert [found[one][3] for one in (".track .dot", "#map button")] == ["exact", "exact"]
    assert [found[one][0] for one in (".top", "#live")] == ["none"] * 2
    shown = "(all) => all.filter((one) => one.checkVisibility()).length"
    assert page.locator("button:not(.map button), input, select").evaluate_all(shown) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_of_the_map_can_be_read(browser, api, scheme):  # noqa: F811
    names, votes = [f"arm {k}" for k in range(6)], ""
    for k, (a, b) in enumerate(combinations(names, 2)):
        votes += f"{a},{b},left\n" * (k * 4) + f"{a},{b},right\n" * max(1, 40 - k * 3)
    page = browser.open(results_of(api, "map", names, votes), color_scheme=scheme)
    expect(page.locator("#map button")).to_have_count(30)
    assert page.locator("#map .sure").count() > 5
    assert page.evaluate(CONTRAST) >= 4.5
    figure, count = (page.locator(f"#map tbody button >> nth=0 >> {part}") for part in ("xpath=.", "small"))
    assert count.bounding_box()["y"] > figure.bounding_box()["y"] + figure.bounding_box()["height"] / 2


SQUARE = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"/>'


def test_a_preview_shows_pages_and_images_in_its_session(browser, live, api):  # noqa: F811
    """Their addresses need the session's cookie, which a browser sends for frames too."""
    outputs = {
        "one": {"kind": "html", "content": "<p>page of one</p>"},
        "two": {"kind": "image", "content": f"data:image/svg+xml;base64,{base64.b64encode(SQUARE).decode()}"},
    }
    make_study(api, "mixed", ["one", "two"], [{"prompt": "p", "outputs": outputs}])
    page = browser.sign_in(live.token, "/studies/mixed/preview")
    expect(page.frame_locator("iframe").get_by_text("page of one")).to_be_visible()
    page.wait_for_function("() => [...document.images].some((one) => one.naturalWidth === 90)")
