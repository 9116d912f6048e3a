"""Outputs in pages: what Markdown becomes, and that nothing anybody writes can run or load anything."""

import asyncio
import base64
import html
import re
import threading
import time
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duels.errors import InvalidInput
from duels.server import child_process, rendering, writes
from duels.server.rendering import MAX_MARKDOWN, Renderer, bytes_of, html_of
from duels.study.create import create_study
from duels.study.items import Output, add_items, read_items

REL = "noopener noreferrer nofollow"
PNG = "data:image/png;base64,iVBORw0KGgo="
HARMLESS = {"div", "p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a", "img"}
HARMLESS |= {"span", "table", "thead", "tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6"}


class Page(HTMLParser):
    """The elements, with their attributes, and the text of some HTML."""

    def __init__(self, markup):
        super().__init__()
        self.elements, self.open, self.text = [], [], ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    handle_decl = handle_pi = unknown_decl = handle_comment


def assert_harmless(markup):
    page = Page(markup)
    assert page.open == []
    for tag, attributes in page.elements:
        assert tag in HARMLESS
        allowed = {"a": {"href", "rel", "target"}, "img": {"src", "alt"}, "ol": {"start"}, "pre": {"tabindex"}}
        allowed["span"] = {"class"}
        assert tag != "span" or re.fullmatch(r"[a-z]{1,2}[a-z0-9]?", attributes["class"])
        assert attributes.keys() <= allowed.get(tag, set()) | ({"class"} if tag == "div" else set())
        assert re.match(r"https?:|mailto:", attributes.get("href", "https:"), re.IGNORECASE)
        assert attributes.get("src", "data:image/").startswith("data:image/")
        if tag == "a":
            assert (attributes["rel"], attributes["target"]) == (REL, "_blank")
        if tag == "div":
            assert attributes["class"] in ("text", "markdown")
    assert [tag for tag, _ in page.elements].count("div") == 1
    assert "<script" not in markup.lower()
    return page


def markdown(text):
    inside = html_of(Output("markdown", text))
    assert inside.startswith('<div class="markdown">')
    assert inside.endswith("</div>")
    return inside[len('<div class="markdown">') : -len("</div>")].strip()


def test_text_and_code_are_shown_as_they_are():
    text = ' <b onclick="x">&amp;</b>\n\n\ttab\'s\r\n'
    said = html.escape(text)
    assert html_of(Output("text", text)) == f'<div class="text">{said}</div>'
    assert html_of(Output("code", text)) == f'<pre tabindex="0"><code>{said}</code></pre>'
    assert Page(html_of(Output("code", "\n\nx"))).text == "\n\nx"


LINK = f'target="_blank" rel="{REL}"'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("*a* **b** ~~c~~ `d<e`", "<p><em>a</em> <strong>b</strong> <s>c</s> <code>d&lt;e</code></p>"),
        ("# a\n\n---\n> b", "<h3>a</h3>\n<hr>\n<blockquote>\n<p>b</p>\n</blockquote>"),
        ("3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("```\na < b\n```", '<pre tabindex="0"><code>a &lt; b\n</code></pre>'),
        ("```python\na\n```", '<pre tabindex="0"><code><span class="n">a</span>\n</code></pre>'),
        (
            "|a|b|\n|-|-:|\n|1|2|",
            "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n"
            "<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>",
        ),
        ('[a](https://b.org "title")', f'<p><a href="https://b.org" {LINK}>a</a></p>'),
        ("<https://b.org>", f'<p><a href="https://b.org" {LINK}>https://b.org</a></p>'),
        (f"![a *b*]({PNG})", f'<p><img src="{PNG}" alt="a b"></p>'),
        ("![a](https://b.org/c.png)", f'<p><a href="https://b.org/c.png" {LINK}>a</a></p>'),
        ("![](https://b.org/c.png)", f'<p><a href="https://b.org/c.png" {LINK}>https://b.org/c.png</a></p>'),
        ("[![a](https://b.org/c.png) d](https://e.org)", f'<p><a href="https://e.org" {LINK}>a d</a></p>'),
        ("<b>a</b>", "<p>&lt;b&gt;a&lt;/b&gt;</p>"),
    ],
)
def test_markdown(text, wanted):
    assert markdown(text) == wanted


@pytest.mark.parametrize("address", ["/studies/a", "//example.org", "signin?token=x", "#a", "ftp://a.b/c", PNG])
def test_links_lead_only_to_other_sites(address):
    page = assert_harmless(html_of(Output("markdown", f"[a]({address}) ![b]({address.replace(PNG, '/x.png')})")))
    assert [attributes.get("href") for tag, attributes in page.elements if tag == "a"] == [None, None]
    assert page.text.strip() == "a b"


ATTACKS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example></sCrIpT>",
    "<script",
    "<<script>script>alert(1)<</script>/script>",
    "<img src=x onerror=alert(1)>",
    '<img src="x` `<script>alert(1)</script>"` `>',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href='javascript:alert(1)'>x</a>",
    "<form action=javascript:alert(1)><button>x",
    "<style>@import '//evil.example'</style>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example>",
    "<!-- --!><img src=x onerror=alert(1)> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "</div></div><script>alert(1)</script>",
    "</code></pre><script>alert(1)</script>",
    "</textarea></title><img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](java&#10;script:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](%6Aavascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "[x](data:image/png,<script>alert(1)</script>)",
    "<javascript:alert(1)>",
    "<data:text/html,<script>alert(1)</script>>",
    "[x]: javascript:alert(1)\n\n[x]",
    '[x](https://a.b "onmouseover=alert(1)")',
    '[x](https://a.b" onmouseover="alert(1))',
    "[x](https://a.b' onmouseover='alert(1))",
    "![x](javascript:alert(1))",
    '![x" onerror="alert(1)](data:image/png;base64,AAAA)',
    '![x](data:image/png;base64,AAAA"onerror="alert(1))',
    "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "![x](https://evil.example/pixel.png)",
    "![![x](javascript:alert(1))](javascript:alert(2))",
    "[![x](https://a.b/c.png)](javascript:alert(1))",
    "[a [b](https://c.d) <img src=x onerror=alert(1)>](javascript:alert(1))",
    '```"><script>alert(1)</script>\nx\n```',
    "``` onclick=alert(1)\nx\n```",
    "`<script>alert(1)</script>`",
    "|<script>|\n|-|\n|<img src=x onerror=alert(1)>|",
    "> <img src=x\n> onerror=alert(1)>",
    "* <div onclick=alert(1)\n  >x",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script>alert(1)</script>",
    '<a href="https://a.b" onclick=alert(1)',
    "<div id=csrf class=button style=position:fixed>",
    "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>",
    "[x](https://a.b/<script>)",
    '<https://a.b/"onclick=alert(1)>',
    "\u2028<script>\u2029alert(1)</script>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_harmless(attack):
    for text in (attack, f"> 1. {attack}", f"**{attack}**", f"[{attack}](https://a.b)", f"|{attack}|\n|-|\n|{attack}|"):
        assert_harmless(html_of(Output("markdown", text)))
    page = Page(html_of(Output("text", attack)))
    assert (page.elements, page.text) == ([("div", {"class": "text"})], attack)
    page = Page(html_of(Output("code", attack)))
    colors = [attributes for tag, attributes in page.elements if tag == "span"]
    assert all(set(one) == {"class"} and re.fullmatch(r"[a-z]{1,2}[a-z0-9]?", one["class"]) for one in colors)
    others = [element for element in page.elements if element[0] != "span"]
    assert (others, page.text) == ([("pre", {"tabindex": "0"}), ("code", {})], attack)


def test_the_check_sees_what_harms():
    for markup in (
        '<div class="text"><script>x</script></div>',
        '<div class="text"><p onclick="x">y</p></div>',
        f'<div class="text"><a href="javascript:x" {LINK}>y</a></div>',
        '<div class="text"><a href="https://a.b">y</a></div>',
        '<div class="text"><img src="https://a.b"></div>',
        '<div class="text"></div></div>',
        '<div class="text"><!-- x --></div>',
    ):
        with pytest.raises((AssertionError, IndexError, KeyError)):
            assert_harmless(markup)


PARTS = [
    "[x](",
    "![",
    "](",
    ")",
    "<",
    ">",
    '"',
    "'",
    "javascript:",
    "data:",
    "https://a",
    "\n",
    "`",
    "```",
    "|",
    "-",
    "*",
]
PARTS += [
    "&#106;",
    "&lt;",
    "onerror=",
    "<script",
    "</script>",
    "<img src=",
    "<!--",
    "-->",
    "\\",
    " ",
    "~~",
    "[a]: ",
    "x",
]


WRITTEN = st.lists(st.sampled_from(PARTS) | st.sampled_from(ATTACKS) | st.text(max_size=3), max_size=25).map("".join)


@given(WRITTEN)
@settings(max_examples=3 * settings.default.max_examples // 2, deadline=None)
@example("[x](javascript:alert(1))")
def test_whatever_is_written_is_harmless(text):
    assert_harmless(html_of(Output("markdown", text)))


@pytest.mark.deep
@given(WRITTEN)
@settings(max_examples=2000, deadline=None)
def test_whatever_is_written_at_length_is_harmless(text):
    assert_harmless(html_of(Output("markdown", text)))


def test_long_markdown_is_shown_as_it_was_written():
    text = "*a* " * (MAX_MARKDOWN // 4)
    assert html_of(Output("markdown", text)).startswith('<div class="markdown"><p><em>')
    assert html_of(Output("markdown", text + "<")) == f'<div class="text">{text}&lt;</div>'


DEEP = [pytest.param(part, marks=pytest.mark.deep) for part in ("![", "[a](", "- ")]  # much as the others


TABLE = f"{'|a' * 50}\n{'|-' * 50}\n"
FENCES = "".join(f"```{name}\n{900 * part}\n```\n" for name, part in (("csharp", "a\n"), ("c", "\n"), ("java", "\n")))


@pytest.mark.parametrize("part", ["[", ">", "*a _b ", "`a", "<", "&", "|a", FENCES, *DEEP])
def test_nothing_takes_long(part):
    """Work that grows with the square of the length would take minutes here."""
    assert seconds_for("markdown", part * (MAX_MARKDOWN // len(part))) < 15


def seconds_for(kind, text):
    begin = time.process_time()
    html_of(Output(kind, text))
    return time.process_time() - begin


@pytest.mark.parametrize(
    ("language", "part"), [("csharp", "a\n"), ("gherkin", " \n"), ("mcschema", "<!--"), ("c", "\n")]
)
def test_no_language_takes_long(language, part):
    """These took a minute or more."""
    for size in (1_990, 19_900):
        assert seconds_for("markdown", f"```{language}\n{part * (size // len(part))}\n```") < 2


def test_tables_of_empty_rows_stay_small():
    for row in ("|\n", "a\n", "| |\n"):
        assert len(html_of(Output("markdown", TABLE + row * 1000))) < 150_000


def spin(output):
    while True:
        pass


def test_what_takes_too_long_to_render_is_shown_as_plain_text(monkeypatch):
    """In a child process that is given up, once."""
    monkeypatch.setattr(child_process, "PAGES", child_process.Children(1, 1))
    monkeypatch.setattr(rendering, "html_of", spin)
    renderer, calls = Renderer(), []
    long = Output("markdown", "*a* <b>" * 1000)
    monkeypatch.setattr(
        child_process.PAGES,
        "run",
        lambda *task: calls.append(task) or child_process.Work(child_process.PAGES, *task).run(),
    )
    for _ in range(2):
        assert renderer.html(long) == f'<div class="text">{"*a* &lt;b&gt;" * 1000}</div>'
    assert len(calls) == 1


def test_long_outputs_are_rendered_in_a_child_as_short_ones_are():
    renderer = Renderer()
    for kind in ("markdown", "code"):
        long = Output(kind, "*a* <b> `c`\n\n" * 300)
        assert renderer.html(long) == html_of(long)
        assert renderer.quick(long) == html_of(long)
    child_process.PAGES.end_idle()


def test_a_question_waits_for_others_that_are_rendered_but_not_for_long(monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(writes, "RENDERING", 0.05)
    here = writes.Background(None)
    monkeypatch.setattr(here.renderer, "html", lambda output: ended.wait(20) and "late")
    outputs = [Output("markdown", f"*{number}*") for number in range(5)]

    async def render():
        shown = await asyncio.gather(*map(here.render, outputs))
        ended.set()
        return shown

    assert asyncio.run(render()) == [f'<div class="text">*{number}*</div>' for number in range(5)]
    here.close()


def test_files_of_images_and_html():
    image = bytes(range(256))
    for kind in ("png", "jpeg", "gif", "webp", "svg+xml"):
        url = f"data:image/{kind};base64,{base64.b64encode(image).decode()}"
        (item,) = read_items([{"prompt": "a", "outputs": {"x": url, "y": url}, "kind": "image"}])
        assert bytes_of(item.outputs["x"]) == (f"image/{kind}", image)
    assert bytes_of(Output("html", "<p>é")) == ("text/html; charset=utf-8", b"<p>\xc3\xa9")


def test_each_kind_has_one_way():
    for kind in ("image", "html"):
        with pytest.raises(InvalidInput, match=f"kind {kind} cannot be part of a page"):
            html_of(Output(kind, PNG))
    for kind in ("text", "markdown", "code"):
        with pytest.raises(InvalidInput, match=f"an output of kind {kind} has no bytes"):
            bytes_of(Output(kind, "a"))


@pytest.mark.parametrize(
    ("page", "still"),
    [
        ("<l\u0131nk rel=preconnect>", "<l\u0131nk rel=preconnect>"),  # not a tag, though ı is an i in capitals
        ("<link rel=preconnect href=//x>", '<link rel="none" rel=preconnect href=//x>'),
        ("<LINK\n/rel=preconnect>", '<LINK rel="none"\n/rel=preconnect>'),
        ("<iframe srcdoc='&lt;link'>", "<iframe srcdoc=\"\" srcdoc='&lt;link'>"),
        ("<a href=//x><area/>", '<a target="_blank" href=//x><area target="_blank"/>'),
        ("<article><abbr>links</abbr> <b>a</b>", "<article><abbr>links</abbr> <b>a</b>"),
    ],
)
def test_a_page_without_scripts_connects_to_nobody(page, still):
    """Of two attributes of one name a browser takes the first."""
    assert bytes_of(Output("html", page))[1] == still.encode()
    assert bytes_of(Output("html", page), scripts=True)[1] == page.encode()


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("def f(x):\n    return x\n", "k"),
        ("const x = 3;\n", "kd"),
        ("SELECT a FROM b;", "k"),
        ('{"a": [1, 2]}', "nt"),
        ("#include <map>\nint main() {}", "kr"),
        ("fn main() { let mut x = 1; }", "k"),
    ],
)
def test_code_is_colored_by_what_it_looks_like(code, language):
    page = Page(html_of(Output("code", code)))
    assert page.text == code
    assert {"class": language} in [attributes for tag, attributes in page.elements if tag == "span"]


@pytest.mark.parametrize("text", ["just words", "a = b < c", "def " * 9000, "<script>alert(1)</script>" * 1000])
def test_other_code_is_text(text):
    assert html_of(Output("code", text)) == f'<pre tabindex="0"><code>{html.escape(text)}</code></pre>'


def test_fences_name_their_language():
    page = Page(html_of(Output("markdown", "```sql\nselect 1\n```\n\n```no such language\n<b>\n```")))
    assert {"class": "k"} in [attributes for tag, attributes in page.elements if tag == "span"]
    assert "<b>" in page.text


def test_the_sides_of_a_question_are_shown_alike(admin, anybody, storage):
    """Markdown that is too long is shown as it was written; then so is the other side, wherever both are shown."""
    study = create_study(["ant", "bee", "cat"], "alike", storage)
    long = "# Long\n" + "x" * rendering.MAX_MARKDOWN
    outputs = {"ant": long, "bee": "# Short", "cat": {"kind": "code", "content": "x = 1"}}
    add_items(study, [{"prompt": str(k), "kind": "markdown", "outputs": outputs} for k in range(3)])
    link = admin.post("/api/studies/alike/links", json={}).json()["url"].rpartition("/")[2]
    seen = set()
    for _ in range(9):
        question = admin.post(f"/api/vote/{link}/ask").json()
        sides = {side["kind"]: side["html"] for side in (question["a"], question["b"])}
        kinds = sorted([question["a"]["kind"], question["b"]["kind"]])
        shown = [side["html"] for side in (question["a"], question["b"]) if side["kind"] == "markdown"]
        assert len({html[:15] for html in shown}) == 1, "one side is raw, and the other is not"
        seen.add((*kinds, "# Short" in "".join(shown)))
        assert sides.get("code", '<pre tabindex="0"').startswith('<pre tabindex="0"')
        admin.post(f"/api/vote/{link}/tell", json={"duel": question["duel"], "winner": "a"})
    assert ("markdown", "markdown", True) in seen
    assert ("code", "markdown", False) in seen  # with code there is nothing to be like
    assert anybody.post("/signin", data={"token": admin.token}).status_code == 303
    page = anybody.get("/studies/alike/items/1").text
    assert '<div class="text"># Short</div>' in page
