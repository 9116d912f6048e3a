"""Outputs of arms as HTML that is safe to put into a page, or as bytes for a route of their own."""

import base64
import html
import re

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from ..errors import InvalidInput
from ..study.items import Output

MAX_MARKDOWN = 100_000  # characters, which take 0.2 s to render; longer ones are shown as plain text
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS = {"p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a", "img"}
TAGS |= HEADINGS | TABLES
ATTRIBUTES: dict[str, set[str]] = {"*": set(), "a": {"href"}, "img": {"src", "alt"}, "ol": {"start"}}
INERT = {"link": 'rel="none"', "iframe": 'srcdoc=""', "a": 'target="_blank"', "area": 'target="_blank"'}
CONNECTING = re.compile(rf"<({'|'.join(INERT)})(?=[\s/>])", re.IGNORECASE | re.ASCII)
ADDRESSES = {
    "href": re.compile(r"(?:https?|mailto):[^\s]+", re.IGNORECASE),
    "src": re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+"),
}


def html_of(output: Output) -> str:
    """Return safe HTML for text, Markdown or code.

    Raises:
        InvalidInput: For images and HTML, which have a route of their own, see `bytes_of`.
    """
    if output.kind == "markdown" and len(output.content) <= MAX_MARKDOWN:
        return f'<div class="markdown">{_sanitised(_markdown.render(output.content))}</div>'
    if output.kind == "code":
        return f'<pre tabindex="0"><code>{html.escape(output.content)}</code></pre>'
    if output.kind in ("text", "markdown"):
        return f'<div class="text">{html.escape(output.content)}</div>'
    raise InvalidInput(f"an output of kind {output.kind} cannot be part of a page: expected text, markdown or code")


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
        attribute_filter=_address,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )


def _address(tag: str, attribute: str, value: str) -> str | None:
    """Keep only links to other hosts, never into these pages, and images that are part of the output."""
    wanted = ADDRESSES.get(attribute)
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


def _instead(image: Token, within_link: bool) -> list[Token]:
    address = str(image.attrs["src"])
    text = Token("text", "", 0, content=image.content or address)
    if within_link:
        return [text]
    return [Token("link_open", "a", 1, attrs={"href": address}), text, Token("link_close", "a", -1)]


_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_markdown.core.ruler.push("link_images", _link_images)
