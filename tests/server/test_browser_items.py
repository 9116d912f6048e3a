"""The Items tab in a real browser: search, tags, one item with all outputs, replacing and removing."""

import base64
import json

import pytest
from playwright.sync_api import expect

from duels.study.create import load_study

from .test_browser import DESKTOP, api, browser, live, make_study, no_reload, so_far, violations  # noqa: F401

ARMS = ("concise", "friendly", "thorough")
PHONE = {"width": 390, "height": 844}
PAGE = "<h1>Page</h1><script>document.body.append('ran')</script>"
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>'
PICTURE = f"data:image/svg+xml;base64,{base64.b64encode(DRAWING.encode()).decode()}"
COUNTS = "[...document.querySelectorAll('#listed td[data-label=Answers]')].map((one) => Number(one.textContent))"


def some_items():
    kinds = ["text", "markdown", "code"]
    found = [
        {
            "prompt": f"Question {k} about {'tea' if k % 3 else 'Coffee'}",
            "kind": kinds[k % 3],
            "outputs": {arm: f"{arm} says {k}" for arm in ARMS},
            "tags": ["drinks", "even"] if k % 2 == 0 else ["drinks"],
        }
        for k in range(1, 61)
    ]
    found[6]["outputs"] |= {
        "friendly": {"kind": "html", "content": PAGE},
        "thorough": {"kind": "image", "content": PICTURE},
    }
    return found


def vote(live, name, votes):  # noqa: F811
    study = load_study(name, live.storage)
    for k in range(votes):
        duel = study.ask(voter=f"v{k % 5}", allow_self=False)
        study.tell(duel, ("left", "right", "tie")[k % 3], voter=f"v{k % 5}", note="It is clear." if k % 4 else None)
    return study


def check(page, place, schemes):
    """No fault in these schemes, and nothing wider than the window."""
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert violations(page) == [], (place, scheme)
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= page.viewport_size["width"], place


@pytest.mark.parametrize(
    ("size", "schemes"),
    [
        pytest.param(PHONE, [], id="phone"),
        pytest.param(PHONE, ["dark", "light"], id="phone-both", marks=pytest.mark.deep),
        pytest.param(DESKTOP, ["dark", "light"], id="desktop", marks=pytest.mark.deep),
    ],
)
def test_browse_open_replace_and_remove(browser, live, api, size, schemes):  # noqa: F811
    make_study(api, "tea time", ARMS, some_items())
    study = vote(live, "tea time", 40)
    browser.expected += ["Blocked script execution"]  # scripts in outputs do not run
    page = browser.sign_in(live.token, "/studies/tea%20time/items", viewport=size)
    rows = page.locator("#listed tbody tr")
    expect(rows).to_have_count(50)
    expect(page.locator("#found")).to_have_text("60 items, page 1 of 2")
    check(page, "list", schemes)

    with no_reload(page):
        page.get_by_label("Search in prompts").fill("COFFEE")
        expect(page.locator("#found")).to_have_text("20 of 60 items")
        expect(rows).to_have_count(20)
        expect(page.get_by_label("Search in prompts")).to_be_focused()
        page.get_by_label("Tag", exact=True).select_option("even")
        expect(page.locator("#found")).to_have_text("10 of 60 items")
        page.get_by_label("Order by").select_option("answers")
        page.wait_for_url("**/items?search=COFFEE&tag=even&order=answers")
        page.wait_for_function(f"() => {COUNTS}.every((one, k, all) => !k || all[k - 1] >= one)")
        before = page.evaluate(f"() => {COUNTS}.reduce((sum, one) => sum + one, 0)")
        expect(page.locator("#live")).to_have_text("updates live")
        vote(live, "tea time", 60)  # the page follows
        page.wait_for_function(f"() => {COUNTS}.reduce((sum, one) => sum + one, 0) > {before}")
        page.get_by_label("Search in prompts").fill("milk")
        expect(page.locator("#listed")).to_contain_text("No item fits.")
    page.goto(f"{live.url}/studies/tea%20time/items?tag=even")
    expect(page.get_by_label("Tag", exact=True)).to_have_value("even")  # a link can be shared
    expect(page.locator("#found")).to_have_text("30 of 60 items")

    page.goto(f"{live.url}/studies/tea%20time/items/7")
    expect(page.locator(".output-card")).to_have_count(3)
    expect(page.locator(".item-prompt")).to_have_text("Question 7 about tea")
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_have_text("Page")
    assert "ran" not in frame.locator("body").inner_text()
    picture = page.get_by_role("img", name="Output of thorough")
    picture.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.output img').naturalWidth === 30")
    check(page, "item", schemes)
    page.get_by_role("link", name="Next item").click()
    expect(page.get_by_role("heading", name="Item 8")).to_be_visible()

    shown = {entry.note["item"] for entry in study.events() if "item" in entry.note}
    seen, unseen = min(shown), next((number for number in range(60, 0, -1) if number not in shown), None)
    replace(page, live, seen, 61, schemes)
    assert api.get("/api/studies/tea%20time/items/61").json()["tags"] == ["drinks, hot", "edited"]
    assert api.get(f"/api/studies/tea%20time/items/{seen}").status_code == 404
    if unseen is not None:
        replace(page, live, unseen, unseen, schemes)

    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Edit or replace").click()
        page.get_by_label("Or replace it by a file").click()
    file = {"name": "one.jsonl", "mimeType": "application/x-ndjson"}
    chooser.value.set_files([file | {"buffer": json.dumps({"prompt": "x", "outputs": {"concise": "1"}}).encode()}])
    page.get_by_role("button", name="Replace by this file").click()
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    browser.expected += ["status of 400"]
    expect(page.locator("#replace-said")).to_contain_text("1 output, expected those of at least two arms")

    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.wait_for_url("**/studies/tea%20time/items")
    expect(page.locator("#found")).to_contain_text("59 items")

    counts = api.get("/api/studies/tea%20time/item-results").json()["removed"]
    answers, items = (f"{counts[what]} {what[:-1]}{'s' * (counts[what] > 1)}" for what in ("answers", "items"))
    verb = " that were" if counts["items"] > 1 else " that was"
    about = f"{answers} {'are' if counts['answers'] > 1 else 'is'} about {items}{verb} removed or replaced."
    expect(page.locator("#removed-items")).to_have_text(about)
    browser.expected += ["status of 404"]
    page.goto(f"{live.url}/studies/tea%20time/items/{seen}")
    expect(page.get_by_role("heading", name=f"Item {seen} was removed or replaced")).to_be_visible()
    check(page, "removed item", schemes)
    page.get_by_role("link", name="All items").click()
    add_markdown(page, api)
    check(page, "after an upload", schemes)
    change_tags(page, live, api)


def add_markdown(page, api):  # noqa: F811
    marked = 'prompt,concise,friendly,thorough\nq,**a**,plain,\nr,no,yes,"```\ncode\n```"\n'
    file = {"name": "marked.csv", "mimeType": "text/csv", "buffer": marked.encode()}
    page.get_by_label("JSON lines or CSV").set_input_files(file)
    expect(page.get_by_label("Outputs are")).to_have_value("markdown")
    expect(page.locator("#items-kind-hint")).to_contain_text("These outputs look like Markdown")
    expect(page.locator("#items-found")).to_contain_text("Found: 3 arms; 2 items; 1 output missing.")
    page.get_by_role("button", name="Upload items").click()
    expect(page.locator("#items-said")).to_contain_text(
        "2 items added, 61 in total. 1 output is missing: 1 of thorough."
    )
    expect(page.locator("#missing-outputs")).to_contain_text("thorough has none for 1 of 61 items.")
    added = api.get("/api/studies/tea%20time/items?limit=500").json()["items"][-2:]
    assert {one["kind"] for item in added for one in item["outputs"].values()} == {"markdown"}


def change_tags(page, live, api):  # noqa: F811
    """An item whose lines end as on Windows, which a field of a page does not keep."""
    name, item = "/api/studies/tea%20time/items", {"prompt": "a\r\nb", "outputs": dict.fromkeys(ARMS, "c\r\nd")}
    assert api.post(name, content=json.dumps(item)).status_code == 201
    number = api.get(f"{name}?limit=500").json()["items"][-1]["number"]
    page.goto(f"{live.url}/studies/tea%20time/items/{number}")
    page.get_by_role("button", name="Edit or replace").click()
    page.locator("#edit-tags").fill("windows")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_contain_text("it keeps its number and its answers")
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(page.locator("#item-panel .chip")).to_have_text(["Tag windows"])
    found = api.get(f"{name}/{number}").json()
    assert (found["prompt"], found["outputs"]["concise"]["content"], found["tags"]) == ("a\r\nb", "c\r\nd", ["windows"])


def replace(page, live, number, becomes, schemes):  # noqa: F811
    page.goto(f"{live.url}/studies/tea%20time/items/{number}")
    page.get_by_role("button", name="Edit or replace").click()
    expect(page.get_by_label("Prompt", exact=True).and_(page.locator("textarea"))).to_be_focused()
    page.locator("#edit-tags").fill("drinks, hot\n edited \n")
    page.get_by_label("Output of concise").and_(page.locator("textarea")).fill("shorter")
    if becomes != number:
        check(page, "edit", schemes)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    page.wait_for_url(f"**/items/{becomes}")
    expect(page.locator(".output-card").filter(has_text="concise").first).to_contain_text("shorter")
    expect(page.locator("#item-panel .chip")).to_have_text(["Tag drinks, hot", "Tag edited"])


def test_an_arm_is_added_while_people_vote(browser, live, api):  # noqa: F811
    items = [{"prompt": f"Question {k}", "outputs": {arm: f"{arm} {k}" for arm in ARMS[:2]}} for k in range(4)]
    link = make_study(api, "tea time", ARMS[:2], items)
    voter = browser.open(link)
    voter.get_by_role("button", name="A is better").click()
    so_far(voter, "1 of 25")
    page = browser.sign_in(live.token, "/studies/tea%20time/settings")
    expect(page.locator("#arms-panel")).to_contain_text(
        "Voters are asked about a new arm when each item has its output"
    )
    page.get_by_label("New arm").fill("thorough")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#arms-lacking")).to_contain_text("Until then they compare the others.")
    for number in (2, 3):
        voter.get_by_role("button", name="A is better").click()
        so_far(voter, f"{number} of 25")

    page.goto(f"{live.url}/studies/tea%20time/items/1")
    page.get_by_role("button", name="Edit or replace").click()
    page.get_by_label("Output of thorough").and_(page.locator("textarea")).fill("thorough 0")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_contain_text("it keeps its number and its answers")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.locator(".output-card")).to_have_count(3)
    page.get_by_role("link", name="All items").click()
    expect(page.locator("#missing-outputs")).to_contain_text("thorough has none for 3 of 4 items.")
    rows = "".join(f"Question {k},thorough {k}\n" for k in range(4))
    file = {"name": "thorough.csv", "mimeType": "text/csv", "buffer": f"prompt,thorough\n{rows}".encode()}
    page.get_by_label("JSON lines or CSV").set_input_files(file)
    page.get_by_role("button", name="Upload items").click()
    expect(page.locator("#items-said")).to_have_text("3 outputs added to items that were there.")
    expect(page.locator("#found")).to_have_text("4 items")
    expect(page.locator("#missing-outputs")).to_have_count(0)
    study = load_study("tea time", live.storage)
    duel = study.ask(20, allow_self=False)
    assert any("thorough" in (one.left, one.right) for one in duel)


def chosen(page, name, content):
    page.get_by_label("File", exact=True).set_input_files({"name": name, "mimeType": "", "buffer": content.encode()})
    return page.locator("#file-found")


def test_what_is_in_a_file_is_shown_before_it_is_sent(browser, live, api):  # noqa: F811
    browser.expected += ["status of 400"]
    page = browser.sign_in(live.token)
    page.get_by_label("Name", exact=True).first.fill("files")
    rows = "".join(f'Question {k},a {k},"b, {k}",,{"chat; code" if k % 2 else "facts"}\n' for k in range(12))
    found = chosen(page, "four.csv", f"prompt,ant,bee,cat,tags\n{rows}")
    expect(found).to_contain_text("Found: 3 arms; 12 items; tags facts, chat, code; 12 outputs missing.")
    expect(found.locator("thead th")).to_have_text(["Prompt", "ant", "bee", "cat"])
    expect(found.locator("tbody tr")).to_have_count(3)
    expect(found.locator("tbody tr").first).to_have_text("Question 0a 0b, 0none")
    assert violations(page) == []
    found = chosen(page, "long.csv", "query,model,response\nq,ant,1\nq,bee,<b>2</b>\nr,ant,3\n")
    expect(found).to_contain_text("Found: 2 arms; 2 items; 1 output missing.")
    expect(found.locator("tbody tr").first).to_have_text("q1<b>2</b>")
    many = {f"arm {k}": {"kind": "image", "content": PICTURE} if k else "x" * 200 for k in range(6)}
    found = chosen(page, "many.jsonl", json.dumps({"prompt": "اكتب", "outputs": many, "tags": ["a"]}))
    expect(found).to_contain_text("Found: 6 arms; 1 item; tag a.")
    expect(found.locator("thead th").last).to_have_text("and 2 more arms")
    expect(found.locator("tbody td").nth(1)).to_have_text("a picture")
    assert len(found.locator("tbody td").first.inner_text()) == 90
    expect(chosen(page, "list.txt", "ant\nbee\n")).to_have_text("Found: 2 arms.")
    expect(page.locator("#file-found table")).to_have_count(0)

    words = (
        "rlhf.jsonl has objects with the fields prompt, chosen, rejected. Expected are the fields prompt and outputs"
    )
    expect(chosen(page, "rlhf.jsonl", '{"prompt": "q", "chosen": "a", "rejected": "b"}\n')).to_contain_text(words)
    page.get_by_role("button", name="Create the study").first.click()
    expect(page.locator("#create-said")).to_contain_text(words)
    messages = '{"messages": [{"role": "user", "content": "q"}]}\n'
    expect(chosen(page, "chat.jsonl", messages)).to_contain_text("chat.jsonl has objects with the fields messages.")
    expect(chosen(page, "votes.csv", "left,right\n")).to_contain_text("votes.csv: the columns are left, right.")
    expect(chosen(page, "half.jsonl", '{"prompt"')).to_contain_text("half.jsonl, line 1, is not JSON")
    pretty = json.dumps({"results": {"version": 3, "results": []}}, indent=1)
    expect(chosen(page, "promptfoo.json", pretty)).to_be_empty()
    page.get_by_role("button", name="Create the study").first.click()
    expect(page.locator("#create-said")).to_contain_text("promptfoo.json holds results of promptfoo: enter the arms")
    assert api.get("/api/studies").json() == {"studies": []}
    chosen(page, "long.csv", "query,model,response\nq,ant,1\nq,bee,2\n")
    page.get_by_role("button", name="Create the study").first.click()
    page.wait_for_url("**/studies/files")
    assert [one["name"] for one in api.get("/api/studies/files").json()["arms"]] == ["ant", "bee"]
    assert api.get("/api/studies/files").json()["items"] == 1
