"""Outputs of arms as HTML that is safe to put into a page, or as bytes for a separate route.

Anybody may have written an output, also to slow the server down. So a long one is rendered in a child process, which
has a second for it, and is shown as plain text if that does not suffice.
"""

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_all_lexers, get_lexer_by_name

from ..errors import InvalidInput
from ..study.items import Output
from . import child_process
from .computed import Computed

MAX_CODE = 2_000  # characters; longer code has no colors …
MAX_COLORED = 20_000  # … nor has code after so many characters of other code in one output
MAX_MARKDOWN = 100_000  # characters, which take 0.2 s to render; longer ones are shown as plain text
MAX_MISSING = 2_000  # cells of tables that are missing in rows shorter than the first
SHORT = 2_000  # characters that are rendered at once: they take at most 0.05 s
KEPT = 32_000_000  # characters of HTML
# Many of Pygments' lexers take time that grows with the square of the length, or faster. These do not …
LINEAR = {"bash", "css", "diff", "go", "html", "javascript", "json", "kotlin", "php", "python", "ruby", "rust", "sql"}
LINEAR |= {"swift", "toml", "xml", "yaml"}
# … and of these languages, whose own lexers do, it knows the words, numbers, strings and comments.
LIKE_JAVASCRIPT = {"c", "cpp", "csharp", "java", "objective-c", "scala", "typescript"}
AS_TEXT = '<div class="text">'
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS = {"p", "br", "span", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a", "img"}
TAGS |= HEADINGS | TABLES
ATTRIBUTES: dict[str, set[str]] = {"*": set(), "a": {"href"}, "img": {"src", "alt"}, "ol": {"start"}, "span": {"class"}}
INERT = {"link": 'rel="none"', "iframe": 'srcdoc=""', "a": 'target="_blank"', "area": 'target="_blank"'}
CONNECTING = re.compile(rf"<({'|'.join(INERT)})(?=[\s/>])", re.IGNORECASE | re.ASCII)
ADDRESSES = {
    "href": re.compile(r"(?:https?|mailto):[^\s]+", re.IGNORECASE),
    "src": re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+"),
}
ALLOWED = ADDRESSES | {"class": re.compile(r"[a-z]{1,2}[a-z0-9]?")}  # the classes of Pygments
SIGNS = {
    language: re.compile(sign, re.MULTILINE)
    for language, sign in {
        "bash": r"^#!.*\b(ba|z)?sh\b",
        "c++": r"^\s*#include\s*<\w+>",
        "html": r"<!doctype html|<(html|body|div)\b",
        "json": r"\A\s*[\[{]\s*(\"[^\"]*\"\s*:|\[|\{)",
        "sql": r"(?i)^\s*(select\b[^;]*\bfrom|insert\s+into|create\s+table)\b",
        "rust": r"^\s*(pub\s+)?fn\s+\w+|\blet\s+mut\b",
        "go": r"^package\s+\w+|^func\s+(\(|\w+\()",
        "java": r"\b(public|private)\s+(static\s+)?(class|void|int|String)\b",
        "typescript": r"^\s*(interface\s+\w+\s*\{|type\s+\w+\s*=)",
        "javascript": r"\b(const|let|var)\s+\w+\s*=|\bfunction\b|=>|\bconsole\.log\(",
        "python": r"^\s*(def\s+\w+\(|class\s+\w+.*:|import\s+\w+|from\s+\w+\s+import)|\bprint\(",
    }.items()
}


class Renderer:
    """Renders outputs for one application, and keeps what was shown last."""

    def __init__(self) -> None:
        self._kept: Computed[str] = Computed(KEPT, len)

    def quick(self, output: Output) -> str | None:
        """Return safe HTML of an output, if that takes no time: it is plain, short, or was rendered before."""
        if output.kind == "text" or len(output.content) > MAX_MARKDOWN:
            return html_of(output)
        return self._kept.get_known(_key_of(output))

    def html(self, output: Output) -> str:
        """Return safe HTML of an output: see `html_of`. Blocks."""
        found = self.quick(output)
        return self._kept.get(_key_of(output), lambda: _render(output)) if found is None else found


def _key_of(output: Output) -> bytes:
    content = output.content.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16, person=output.kind.encode()).digest()


def _render(output: Output) -> str:
    if len(output.content) <= SHORT or output.kind not in ("markdown", "code"):
        return html_of(output)
    try:
        return child_process.PAGES.run(html_of, output)
    except child_process.ChildFailed:
        return as_text(output)


def show_alike(rendered: Mapping[Output, str]) -> dict[Output, str]:
    """Return the HTML of outputs that are compared: if some Markdown is shown as it was written, all of it is."""
    marked = [output for output in rendered if output.kind == "markdown"]
    if not any(rendered[output].startswith(AS_TEXT) for output in marked):
        return dict(rendered)
    return {**rendered, **{output: as_text(output) for output in marked}}


def as_text(output: Output) -> str:
    """Return HTML of an output as it was written."""
    if output.kind == "code":
        return _code(html.escape(output.content))
    return f"{AS_TEXT}{html.escape(output.content)}</div>"


def html_of(output: Output) -> str:
    """Return safe HTML for text, Markdown or code. Up to 100,000 characters of Markdown may take a second.

    Raises:
        InvalidInput: For images and HTML, which have a separate route, see `bytes_of`.
    """
    if output.kind == "markdown" and len(output.content) <= MAX_MARKDOWN:
        return f'<div class="markdown">{_sanitize(_markdown.render(output.content))}</div>'
    if output.kind == "code":
        return _code(_highlight(output.content, _language(output.content)))
    if output.kind in ("text", "markdown"):
        return as_text(output)
    raise InvalidInput(f"an output of kind {output.kind} cannot be part of a page: expected text, markdown or code")


def _code(inside: str) -> str:
    return f'<pre tabindex="0"><code>{inside}</code></pre>'


def _highlight(code: str, language: str) -> str:
    """Code as HTML, in colors if it is short and its language is one that is known here; the text is escaped."""
    lexer = _lexers().get(language.lower())
    if lexer is None or len(code) > MAX_CODE:
        return html.escape(code)
    shown = str(highlight(code, get_lexer_by_name(lexer, stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)))
    return shown if code.endswith("\n") else shown.removesuffix("\n")


@cache
def _lexers() -> dict[str, str]:
    """The lexer of each language, by all of its names."""
    found: dict[str, str] = {}
    for _, names, _, _ in get_all_lexers(plugins=False):
        for name in LINEAR.intersection(names):
            found |= dict.fromkeys(names, name)
        if LIKE_JAVASCRIPT.intersection(names):
            found |= dict.fromkeys(names, "javascript")
    return found


def _language(code: str) -> str:
    """The language of code by what is typical of it; empty if nothing is. Pygments' own guess loads 500 languages."""
    return next((language for language, sign in SIGNS.items() if sign.search(code[:MAX_CODE])), "")


def _fence(code: str, language: str, attributes: str) -> str:
    """Code in Markdown, by the language that its fence names."""
    return _highlight(code, language) if language else html.escape(code)


def bytes_of(output: Output, scripts: bool = False) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image or of HTML.

    Neither is sanitized: the route that sends them forbids scripts in images and sandboxes HTML. A content security
    policy cannot forbid `<link rel=preconnect>`, so without `scripts` such elements are disabled.

    Raises:
        InvalidInput: For other kinds of outputs.
    """
    if output.kind == "html":
        page = output.content if scripts else _disable_connections(output.content)
        return "text/html; charset=utf-8", page.encode()
    if output.kind == "image":
        head, _, data = output.content.partition(";base64,")
        return head.removeprefix("data:"), base64.b64decode(data)
    raise InvalidInput(f"an output of kind {output.kind} has no bytes: expected image or html")


def _disable_connections(page: str) -> str:
    """Return a page that connects to no other host: not by hints, not in inner frames, not by clicked links.

    If an attribute occurs twice, browsers use the first. The sandbox forbids new tabs, so links to them do nothing.
    """
    return CONNECTING.sub(lambda tag: f"{tag[0]} {INERT[tag[1].lower()]}", page)


def _sanitize(markup: str) -> str:
    return nh3.clean(
        markup,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_allow_address,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )


def _allow_address(tag: str, attribute: str, value: str) -> str | None:
    """Keep only links to other hosts, never into these pages, images that are part of the output, colors of code."""
    wanted = ALLOWED.get(attribute)
    return value if wanted is None or wanted.fullmatch(value) else None


def _link_images(state: StateCore) -> None:
    """Replace images of other hosts by links to them, or by their text inside a link."""
    for block in state.tokens:
        shown, within = list[Token](), 0
        for token in block.children or ():
            within += (token.type == "link_open") - (token.type == "link_close")
            if token.type != "image" or ADDRESSES["src"].fullmatch(str(token.attrs["src"])):
                shown.append(token)
            else:
                shown += _instead(token, bool(within))
        block.children = shown if block.children is not None else None


def _lower_headings(state: StateCore) -> None:
    """Begin with the third level of headings: the page has the first, and the title of an output is the second."""
    for block in state.tokens:
        if block.type in ("heading_open", "heading_close"):
            block.tag = f"h{min(6, int(block.tag[1]) + 2)}"


def _limit_colors(state: StateCore) -> None:
    """Leave code without colors after much other code."""
    left = MAX_COLORED
    for block in state.tokens:
        if block.type == "fence" and len(block.content) <= MAX_CODE:
            left -= len(block.content)
            block.info = block.info if left >= 0 else ""


def _instead(image: Token, within_link: bool) -> list[Token]:
    address = str(image.attrs["src"])
    text = Token("text", "", 0, content=image.content or address)
    if within_link:
        return [text]
    return [Token("link_open", "a", 1, attrs={"href": address}), text, Token("link_close", "a", -1)]


_markdown = MarkdownIt("commonmark", {"html": False, "highlight": _fence}).enable(["table", "strikethrough"])
_markdown.core.ruler.push("link_images", _link_images)
_markdown.core.ruler.push("lower_headings", _lower_headings)
_markdown.core.ruler.push("limit_colors", _limit_colors)
# The package has a function of the module's name. By default, 2 kB of empty rows become 0.5 MB, in two seconds.
vars(import_module("markdown_it.rules_block.table"))["MAX_AUTOCOMPLETED_CELLS"] = MAX_MISSING
