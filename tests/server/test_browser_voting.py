"""The voting page and the Settings tab in a real browser: what the person who asks sets, and what voters see of it."""

import base64

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from .test_browser import DESKTOP, PHONE, api, browser, live, make_study, so_far  # noqa: F401

LONG = "\n\n".join(
    f"Paragraph {number}. " + "The quick brown fox jumps over the lazy dog. " * 6 for number in range(15)
)
# Nobody is asked about the same prompt twice, so there are a few that look alike.
ITEMS = [{"prompt": "Explain foxes.", "outputs": {"long": LONG, "short": "A fox is a small wild dog."}}] * 3
ZOOMED = {"width": 320, "height": 256}  # 1280 × 1024 at 400 %


def picture(color):
    shape = f'<rect width="1600" height="900" fill="{color}"/>'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="1600" height="900">{shape}</svg>'
    return {"kind": "image", "content": f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"}


PICTURES = [{"prompt": "Which logo?", "outputs": {"long": picture("red"), "short": picture("blue")}}]


def in_view(page, selector):
    """Whether an element is in the window, and the topmost thing at its middle."""
    return page.evaluate(
        """(selector) => {
          const one = document.querySelector(selector);
          one.scrollIntoView({ block: "center" });
          const { left, top, width, height } = one.getBoundingClientRect();
          return one.contains(document.elementFromPoint(left + width / 2, top + Math.min(height, innerHeight) / 2));
        }""",
        selector,
    )


def set_and_vote(browser, live, api, size):  # noqa: F811
    """The settings of a study, from the page on which they are made to the page on which people vote."""
    link = make_study(api, "foxes", ["long", "short"], ITEMS, title="")
    board = browser.sign_in(live.token, "/studies/foxes/settings", viewport=size)
    board.get_by_label("Question").fill("Which would you rather read?")
    board.get_by_label("Instructions").fill("# How to judge\n\nPrefer what is **right**.")
    board.get_by_label("Tie: both are equally good").uncheck()
    board.get_by_label("A comment, if people want to say why").check()
    board.get_by_label("When the winner is known").select_option("rank")
    board.get_by_role("button", name="Save").click()
    expect(board.locator("#voting-saved")).to_have_text("Saved. Voters see it at their next question.")
    expect(board.locator("#changes")).to_contain_text("Voters can no longer answer that both are equally good.")
    assert api.get("/api/studies/foxes/settings").json()["after"] == "rank"

    voter = browser.open(link, viewport=size)
    expect(voter.get_by_role("heading", level=1)).to_have_text("Which would you rather read?")
    expect(voter.get_by_text("Prefer what is right.")).to_be_visible()
    expect(voter.get_by_role("button", name="Tie")).to_be_hidden()
    expect(voter.get_by_role("button", name="Both bad")).to_be_visible()
    voter.keyboard.press("t")  # a key for an answer that is not possible
    so_far(voter, "0 of 25")
    voter.get_by_role("button", name="Show all of both").click()
    whole = "(all) => all.every((one) => one.scrollHeight <= one.clientHeight + 1)"
    assert voter.locator(".sides .output").evaluate_all(whole)
    voter.get_by_role("button", name="Show less of both").click()
    assert not voter.locator(".sides .output").evaluate_all(whole)
    voter.get_by_role("button", name="Comment").click()
    voter.get_by_label("Why? If you like, say it in a few words.").fill("Says a lot: <b>all</b> of it")
    so_far(voter, "0 of 25")  # the letters of a comment are not keys
    voter.get_by_role("button", name="A is better").click()
    so_far(voter, "1 of 25")
    expect(voter.get_by_text("Prefer what is right.")).to_be_hidden()  # read
    expect(voter.get_by_label("Why?")).to_have_value("")
    told = [one for one in api.get("/api/studies/foxes/events").json()["events"] if one["kind"] == "tell"]
    assert [one["note"] for one in told] == [{"note": "Says a lot: <b>all</b> of it"}]
    comment = voter.get_by_label("Why?")
    voter.keyboard.press("c")
    expect(comment).to_be_focused()
    voter.keyboard.type("about the next")
    voter.keyboard.press("Escape")
    voter.keyboard.press("u")
    so_far(voter, "0 of 25")
    expect(comment).to_have_value("Says a lot: <b>all</b> of it")  # of the answer that was undone
    voter.keyboard.press("a")
    so_far(voter, "1 of 25")
    expect(comment).to_have_value("about the next")  # what was typed about this question
    voter.reload()
    so_far(voter, "1 of 25")
    voter.keyboard.press("u")
    expect(comment).to_have_value("Says a lot: <b>all</b> of it")  # the server knows it
    expect(comment).not_to_be_focused()
    voter.keyboard.press("?")
    expect(voter.locator("#keys-help")).to_contain_text("Write a comment; Esc leaves it")
    voter.keyboard.press("Escape")
    voter.keyboard.press("c")
    comment.fill("")
    voter.keyboard.press("Escape")
    expect(comment).to_be_hidden()
    voter.keyboard.press("b")
    so_far(voter, "1 of 25")

    board.get_by_label("Instructions").fill("Prefer what is *short*.")
    board.get_by_label("A comment, if people want to say why").uncheck()
    board.get_by_role("button", name="Save").click()
    expect(board.locator("#changes")).to_contain_text("Changed the instructions for voters.")
    voter.get_by_role("button", name="B is better").click()
    expect(voter.get_by_text("Prefer what is short.")).to_be_visible()
    expect(voter.get_by_role("button", name="Comment")).to_be_hidden()
    so_far(voter, "2 of 25")
    return board, voter


def test_what_is_set_is_what_voters_see(browser, live, api):  # noqa: F811
    _, voter = set_and_vote(browser, live, api, DESKTOP)
    tree = voter.locator("body").aria_snapshot()
    for line in (
        '- heading "Which would you rather read?" [level=1]',
        '- progressbar "2 of 25"',
        '- region "Prompt": Explain foxes.',
        '- heading "A" [level=2]',
        '- group "Your answer":',
        '- button "A is better"',
        '- button "B is better"',
        '- button "Show all of both"',
    ):
        assert line in tree, tree
    assert voter.locator("[role=status][aria-live=polite]#news").inner_text().startswith("Question 3.")
    assert voter.locator("[role=alert]#trouble").count() == 1


@pytest.mark.deep
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_same_on_a_phone_and_by_axe(browser, live, api, scheme):  # noqa: F811
    board, voter = set_and_vote(browser, live, api, PHONE)
    for page in (board, voter):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


@pytest.mark.deep
def test_pictures_are_enlarged_and_compared_at_the_same_place(browser, live, api):  # noqa: F811
    link = make_study(api, "logos", ["long", "short"], PICTURES)
    for size in (DESKTOP, PHONE, ZOOMED):
        page = browser.open(link, viewport=size)
        page.get_by_role("button", name="Zoom output a").click()
        zoom = page.get_by_role("dialog", name="Output A")
        expect(zoom.get_by_role("status")).to_have_text("100 %")
        page.keyboard.press("+")
        zoom.get_by_role("button", name="Larger").click()
        expect(zoom.get_by_role("status")).to_have_text("200 %")
        view, place = page.locator("#zoom-view"), "(view) => [view.scrollLeft, view.scrollWidth]"
        view.evaluate("(view) => view.scrollTo(33, 0)")
        before = view.evaluate(place)
        assert before[1] > size["width"]
        page.keyboard.press("o")
        expect(page.get_by_role("dialog", name="Output B")).to_be_visible()
        assert view.evaluate(place) == before
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert Axe().run(page).violations_count == 0
        page.keyboard.press("t")  # no answer while a picture is looked at
        page.keyboard.press("Escape")
        so_far(page, "0 of 25")
        page.context.close()


@pytest.mark.deep
def test_at_four_times_the_size_nothing_hides_the_outputs(browser, live, api):  # noqa: F811
    link = make_study(api, "foxes", ["long", "short"], ITEMS)
    api.patch("/api/studies/foxes/settings", json={"instructions": "Read both.", "comments": True})
    page = browser.open(link, viewport=ZOOMED)
    so_far(page, "0 of 25")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= ZOOMED["width"]
    for part in ("#output-a", "#output-b", "#prompt", "#fold", ".choices .a", ".choices .b", "#comment-button"):
        assert in_view(page, part), part
    page.get_by_role("button", name="B is better").click()
    so_far(page, "1 of 25")


@pytest.mark.deep
def test_voting_by_the_accessibility_tree_alone(browser, live, api):  # noqa: F811
    """What a screen reader works with: roles and names, by the keyboard, and what is announced after each answer."""
    link = make_study(api, "foxes", ["long", "short"], ITEMS, votes=2)
    page = browser.open(link)
    so_far(page, "0 of 2")
    expect(page.locator("#news")).to_have_text("Question 1. Explain foxes.")
    page.keyboard.press("Tab")
    named = []
    for _ in range(16):
        named.append(page.evaluate("() => document.activeElement.ariaLabel || document.activeElement.innerText.trim()"))
        page.keyboard.press("Tab")
    for name in ("Skip to the question", "Prompt", "Output A", "Output B"):
        assert name in named, named
    assert [one[:11] for one in named if "is better" in one][:2] == ["A is better", "B is better"]
    page.get_by_role("button", name="Both bad").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#news")).to_contain_text("Question 2.")
    page.get_by_role("button", name="A is better").focus()
    page.keyboard.press("Space")
    expect(page.locator("#news")).to_contain_text("Thank you! You gave 2 votes.")
    expect(page.get_by_role("heading", name="Thank you!")).to_be_visible()


def spoken(page):
    """What the browser tells a screen reader: role, name, level of headings, and how changes are announced."""
    session = page.context.new_cdp_session(page)
    found = []
    for node in session.send("Accessibility.getFullAXTree")["nodes"]:
        if not node.get("ignored"):
            more = {one["name"]: one["value"].get("value") for one in node.get("properties", ())}
            name = node.get("name", {}).get("value", "")
            found.append((node["role"]["value"], name, more.get("level"), more.get("live")))
    session.detach()
    return found


def test_zoomed_by_keyboard_with_the_accessibility_tree(browser, live, api):  # noqa: F811
    """At 400 %, without a mouse: what has which role and name, what is announced, where the focus goes."""
    item = {"prompt": "Which logo?", "outputs": {"long": picture("red"), "short": {"kind": "text", "content": LONG}}}
    link = make_study(api, "foxes", ["long", "short"], [item] * 3, title="")
    api.patch("/api/studies/foxes/settings", json={"instructions": "Read **both**.", "comments": True})
    page = browser.open(link, viewport=ZOOMED, reduced_motion="reduce", forced_colors="active")
    so_far(page, "0 of 25")
    tree = spoken(page)
    for part in (
        ("heading", "Which is better?", 1, None),
        ("progressbar", "0 of 25", None, None),
        ("status", "", None, "polite"),
        ("alert", "", None, "assertive"),
        ("region", "Instructions", None, None),
        ("region", "Prompt", None, None),
        ("heading", "A", 2, None),
        ("heading", "B", 2, None),
        ("region", "Output A", None, None),
        ("region", "Output B", None, None),
        ("group", "Your answer", None, None),
    ):
        assert part in tree, (part, tree)
    buttons = [name for role, name, _, _ in tree if role == "button"]
    for name in (
        "A is better",
        "Tie",
        "Both bad",
        "B is better",
        "Skip",
        "Undo",
        "Comment",
        "Keys",
        "Show all of both",
    ):
        assert name in buttons, buttons
    focused = "() => document.activeElement.ariaLabel || document.activeElement.innerText.trim()"
    inside = """() => {
      const { top, bottom } = document.activeElement.getBoundingClientRect();
      return top < innerHeight && bottom > 0;
    }"""
    seen = []
    while len(seen) < 30 and "Keys" not in seen:  # everything is reached, and is in the window when it has the focus
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
        assert page.evaluate(inside), seen
    letter = next(one[-1] for one in seen if one.startswith("Zoom output"))
    assert set(seen) >= {"Instructions", "Prompt", "Output A", "Output B", "A is better", "B is better", "Keys"}, seen

    page.get_by_role("button", name="Keys").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.get_by_text("←")).to_be_visible()  # at the top, with the keys
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "Keys"
    page.get_by_role("button", name=f"Zoom output {letter}").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=f"Output {letter}")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == f"Zoom output {letter}"

    page.get_by_role("button", name="B is better").focus()
    page.keyboard.press("Enter")
    so_far(page, "1 of 25")
    assert page.evaluate(focused) == "B is better"  # the next answer is one key away
    expect(page.locator("#news")).to_have_text("Question 2. Which logo?")
    assert 0 <= page.locator("#prompt").bounding_box()["y"] < ZOOMED["height"]  # and the question is in the window
    assert page.evaluate("() => document.documentElement.scrollWidth") <= ZOOMED["width"]


COVERED = """() => [...document.querySelectorAll("#question button, .bar h1")].filter((one) => {
  const { left, top, right, bottom, width, height } = one.getBoundingClientRect();
  const places = [[0.5, 0.5], [0.03, 0.2], [0.97, 0.2], [0.03, 0.8], [0.97, 0.8]];
  return width && top >= 0 && bottom <= innerHeight && places.some(([x, y]) => {
    const found = document.elementFromPoint(left + x * width, top + y * height);
    return found !== one && !one.contains(found);
  }) && one.id !== "fold";
}).map((one) => one.textContent.trim())"""
FITS = """() => [...document.querySelectorAll(".sides .output")].every((one) => {
  const fold = document.querySelector("#fold").getBoundingClientRect();
  return !fold.height || fold.top >= one.closest(".side").getBoundingClientRect().bottom;
})"""


@pytest.mark.parametrize(
    "size",
    [
        pytest.param({"width": 390, "height": 844}, id="phone"),
        *(
            pytest.param(size, id=name, marks=pytest.mark.deep)
            for name, size in {
                "small": {"width": 320, "height": 640},
                "zoomed": ZOOMED,
                "landscape": {"width": 844, "height": 390},
                "desktop": DESKTOP,
            }.items()
        ),
    ],
)
def test_no_button_covers_another_or_an_output(browser, live, api, size):  # noqa: F811
    voter = browser.open(make_study(api, "foxes", ["long", "short"], ITEMS), viewport=size)
    expect(voter.get_by_role("button", name="Show all of both")).to_be_visible()
    height = voter.evaluate("() => document.documentElement.scrollHeight")
    for top in range(0, height, 90):
        voter.evaluate("(top) => scrollTo(0, top)", top)
        assert voter.evaluate(COVERED) == []
        assert voter.evaluate(FITS)
    fold = voter.get_by_role("button", name="Show all of both")
    fold.scroll_into_view_if_needed()
    fold.click()
    expect(voter.get_by_role("button", name="Show less of both")).to_be_visible()
    assert voter.evaluate(COVERED) == []


def test_what_is_written_from_right_to_left_is_shown_so(browser, live, api):  # noqa: F811
    arabic = "القهوة مشروب. نعم!"
    outputs = {"long": arabic, "short": {"kind": "markdown", "content": f"- {arabic}\n\n```\nx = 1\n```"}}
    item = {"prompt": "اكتب قصة.", "outputs": outputs, "tags": ["قهوة"]}
    link = make_study(api, "foxes", ["long", "short"], [item], title="دراسة")
    assert api.patch("/api/studies/foxes/settings", json={"comments": True}).status_code == 200
    voter = browser.open(link)
    expect(voter.locator("#prompt")).to_be_visible()
    style = "(one) => [getComputedStyle(one).direction, getComputedStyle(one).textAlign]"
    for place in ("#title", "#prompt", "#output-a", "#output-b", ".output .markdown li"):
        assert voter.locator(place).evaluate(style) == ["rtl", "start"], place
    assert voter.locator(".output pre").evaluate(style) == ["ltr", "left"]
    voter.get_by_role("button", name="Comment").click()
    voter.get_by_label("Why?").fill(arabic)
    assert voter.get_by_label("Why?").evaluate(style)[0] == "rtl"
    voter.get_by_role("button", name="A is better").click()
    expect(voter.get_by_role("heading", name="Thank you!")).to_be_visible()

    board = browser.sign_in(live.token, "/studies/foxes/items/1")
    for place in (".item-prompt", ".output-card .output >> nth=0", ".output-card .output >> nth=1", ".comment-words"):
        assert board.locator(place).evaluate(style) == ["rtl", "start"], place
    board.get_by_role("button", name="Edit or replace").click()
    for place in ("#edit-prompt", "#edit-output-0"):
        expect(board.locator(place)).to_have_css("direction", "rtl")  # once the text has arrived
    assert board.locator("h1").evaluate(style)[0] == "ltr"  # foxes


def test_trouble_is_said_next_to_the_buttons(browser, live, api):  # noqa: F811
    voter = browser.open(make_study(api, "foxes", ["long", "short"], ITEMS), viewport=PHONE)
    browser.expected += ["ERR_INTERNET_DISCONNECTED"]
    voter.evaluate("() => scrollTo(0, document.documentElement.scrollHeight)")
    voter.context.set_offline(True)
    voter.get_by_role("button", name="B is better").click()
    expect(voter.get_by_role("alert")).to_contain_text("The server cannot be reached. Trying again in")
    expect(voter.get_by_role("alert")).to_be_in_viewport(ratio=1)
    expect(voter.locator("#sending")).to_have_text("One moment: the network is slow.")
    voter.context.set_offline(False)
    so_far(voter, "1 of 25")
    expect(voter.get_by_role("alert")).to_be_empty()
    expect(voter.locator("#sending")).to_be_empty()
