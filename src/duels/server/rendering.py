"""Outputs of arms as HTML that is safe to put into a page, or as bytes for a route of their own."""

import base64
import html
import re

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from ..errors import InvalidInput
from ..study.items import Output

MAX_CODE = 20_000  # characters, which take 50 ms to highlight; longer code has no colours
BEGINNING = 2_000  # characters that tell the language
MAX_MARKDOWN = 100_000  # characters, which take 0.2 s to render; longer ones are shown as plain text
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


def html_of(output: Output) -> str:
    """Return safe HTML for text, Markdown or code.

    Raises:
        InvalidInput: For images and HTML, which have a route of their own, see `bytes_of`.
    """
    if output.kind == "markdown" and len(output.content) <= MAX_MARKDOWN:
        return f'<div class="markdown">{_sanitised(_markdown.render(output.content))}</div>'
    if output.kind == "code":
        return f'<pre tabindex="0"><code>{_highlighted(output.content, "")}</code></pre>'
    if output.kind in ("text", "markdown"):
        return f'<div class="text">{html.escape(output.content)}</div>'
    raise InvalidInput(f"an output of kind {output.kind} cannot be part of a page: expected text, markdown or code")


def _highlighted(code: str, language: str) -> str:
    """Code as HTML, in colours if its language is given or can be told from it; the text is escaped.

    Args:
        code: The code.
        language: Such as `python`; empty if it is not known.
    """
    if len(code) > MAX_CODE:
        return html.escape(code)
    try:
        lexer = get_lexer_by_name(language or _language(code), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return html.escape(code)
    shown = str(highlight(code, lexer, HtmlFormatter(nowrap=True)))
    return shown if code.endswith("\n") else shown.removesuffix("\n")


def _language(code: str) -> str:
    """The language of code by what is typical of it; empty if nothing is. Pygments' own guess loads 500 languages."""
    return next((language for language, sign in SIGNS.items() if sign.search(code[:BEGINNING])), "")


def _fence(code: str, language: str, attributes: str) -> str:
    """Code in Markdown, by the language that its fence names."""
    return _highlighted(code, language) if language else html.escape(code)


def bytes_of(output: Output, scripts: bool = False) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image or of HTML.

    Neither is sanitised: the route that sends them forbids scripts in images and sandboxes HTML. A content security
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
    raise InvalidInput(f"an output of kind {output.kind} has no bytes of its own: expected image or html")


def _disable_connections(page: str) -> str:
    """Return a page that connects to no other host: not by hints, not in inner frames, not by clicked links.

    If an attribute occurs twice, browsers use the first. The sandbox forbids new tabs, so links to them do nothing.
    """
    return CONNECTING.sub(lambda tag: f"{tag[0]} {INERT[tag[1].lower()]}", page)


def _sanitised(markup: str) -> str:
    return nh3.clean(
        markup,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_allowed,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )


def _allowed(tag: str, attribute: str, value: str) -> str | None:
    """Keep only links to other hosts, never into these pages, images that are part of the output, colours of code."""
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


def _instead(image: Token, within_link: bool) -> list[Token]:
    address = str(image.attrs["src"])
    text = Token("text", "", 0, content=image.content or address)
    if within_link:
        return [text]
    return [Token("link_open", "a", 1, attrs={"href": address}), text, Token("link_close", "a", -1)]


_markdown = MarkdownIt("commonmark", {"html": False, "highlight": _fence}).enable(["table", "strikethrough"])
_markdown.core.ruler.push("link_images", _link_images)
_markdown.core.ruler.push("lower_headings", _lower_headings)
