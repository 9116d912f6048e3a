"""What arms produced, as HTML that is safe to put into a page, or as bytes for a route of their own."""

import base64
import html
import re

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from ..errors import InvalidInput
from ..study.items import Output

MOST_MARKDOWN = 100_000  # characters, which take a fifth of a second; longer ones are shown as they were written
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS = {"p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a", "img"}
TAGS |= HEADINGS | TABLES
ATTRIBUTES: dict[str, set[str]] = {"*": set(), "a": {"href"}, "img": {"src", "alt"}, "ol": {"start"}}
INERT = {"link": 'rel="none"', "iframe": 'srcdoc=""', "a": 'target="_blank"', "area": 'target="_blank"'}
STILL = re.compile(rf"<({'|'.join(INERT)})(?=[\s/>])", re.IGNORECASE | re.ASCII)
ADDRESSES = {
    "href": re.compile(r"(?:https?|mailto):[^\s]+", re.IGNORECASE),
    "src": re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+"),
}


def html_of(output: Output) -> str:
    """Safe HTML of text, Markdown or code; images and HTML have a route of their own, see `bytes_of`."""
    if output.kind == "markdown" and len(output.content) <= MOST_MARKDOWN:
        return f'<div class="markdown">{_cleaned(_markdown.render(output.content))}</div>'
    if output.kind == "code":
        return f'<pre tabindex="0"><code>{html.escape(output.content)}</code></pre>'
    if output.kind in ("text", "markdown"):
        return f'<div class="text">{html.escape(output.content)}</div>'
    raise InvalidInput(f"an output of kind {output.kind} is no part of a page: expected text, markdown or code")


def bytes_of(output: Output, scripts: bool = False) -> tuple[str, bytes]:
    """The media type and the bytes of an image or of HTML.

    Neither is cleaned: the route that sends them forbids scripts in images, and sandboxes HTML. What no policy forbids
    is a page's wish to be connected to another host soon, `<link rel=preconnect>`; scripts could do the same.
    """
    if output.kind == "html":
        return "text/html; charset=utf-8", (output.content if scripts else _still(output.content)).encode()
    if output.kind == "image":
        head, _, data = output.content.partition(";base64,")
        return head.removeprefix("data:"), base64.b64decode(data)
    raise InvalidInput(f"an output of kind {output.kind} has no file: expected image or html")


def _still(page: str) -> str:
    """A page that connects to no other host: not by hints, not in inner pages, and not when a link is clicked.

    Of two attributes of one name the first counts. The sandbox forbids new tabs, so links for them do nothing.
    """
    return STILL.sub(lambda tag: f"{tag[0]} {INERT[tag[1].lower()]}", page)


def _cleaned(markup: str) -> str:
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
    """Links lead to other hosts, never into these pages; images are in the output itself."""
    wanted = ADDRESSES.get(attribute)
    return value if wanted is None or wanted.fullmatch(value) else None


def _link_images(state: StateCore) -> None:
    """Images of other hosts become links to them, or their text where there is a link already."""
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
