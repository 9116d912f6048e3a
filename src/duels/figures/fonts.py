"""Fonts: which ones the renderer of figures has, and the one that SVG files and reports bring along.

Text in a font that the renderer does not have would be missing in a figure.
"""

import base64
import difflib
import html
import io
import os
import re
import struct
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from ..errors import InvalidInput

# Arimo is as wide as Helvetica and Arial, letter by letter, so a figure that the renderer laid out for these fits it.
FAMILY, PACKAGE, FILE = "Arimo", "fontpkg_arimo", "files/Arimo[wght].ttf"
USUAL = f"{FAMILY}, Helvetica, Arial, sans-serif"
GENERIC = ("serif", "sans-serif", "monospace")
BUNDLED = ("Liberation Sans", "Liberation Serif", "Liberation Mono")  # those that some versions of the renderer have
FOLDERS = {
    "darwin": ("/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts"),
    "win32": (r"%WINDIR%\Fonts", r"%LOCALAPPDATA%\Microsoft\Windows\Fonts"),
}
UNIX = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts")
NAMED = 5  # fonts in an error
RARE = set("⁰⁴⁵⁶⁷⁸⁹⁻⁺")  # not in the font that stands in for Helvetica and Arial where these are not installed
SPARE = "DejaVu Sans"


def with_font(svg: str) -> str:
    """Return an SVG file with the letters of its font in it, so that it looks the same where that is not installed.

    A figure in a font that the user chose stays as it is.
    """
    if f"{FAMILY}," not in svg:
        return svg
    style = f"<defs><style>{font_face(svg)}</style></defs>"
    return re.sub(r"(<svg\b[^>]*>)", lambda opening: opening[1] + style, svg, count=1)


def font_face(svgs: str) -> str:
    """Return the CSS rule with the letters that the texts of figures need, in regular and bold.

    Args:
        svgs: One or more SVG files, one after another.
    """
    shown = html.unescape("".join(re.findall(r">([^<>]+)<", svgs)))
    data = base64.b64encode(_subset("".join(sorted({*shown})))).decode()
    return f'@font-face{{font-family:"{FAMILY}";font-weight:400 700;src:url(data:font/woff;base64,{data})}}'


@lru_cache(maxsize=64)
def _subset(characters: str) -> bytes:
    """Return a font file in the format WOFF with these characters, as far as the font has them."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    options = subset.Options(
        flavor="woff", hinting=False, layout_features=["kern"], name_IDs=[0, 13, 14]
    )  # its license
    with files(PACKAGE).joinpath(FILE).open("rb") as file, TTFont(file, lazy=True) as font:
        chosen = subset.Subsetter(options)
        chosen.populate(text=characters)
        chosen.subset(font)
        written = io.BytesIO()
        subset.save_font(font, written, options)
    return written.getvalue()


def check_font(font: str) -> None:
    """Raise unless the renderer can draw text in a font, or in one of several separated by commas."""
    if not is_installed(font):
        close = sorted(list_installed(), key=lambda one: -_likeness(font, one))[:NAMED]
        raise InvalidInput(f"the font {font!r} is not installed: expected one that is, such as {', '.join(close)}")


def font_for(text: str, usual: str) -> str:
    """Return the usual font, or a similar one for a text that has characters which the usual one may lack."""
    lacks = bool(RARE & set(text)) and not is_installed("Helvetica") and not is_installed("Arial")
    return f"{SPARE}, {usual}" if lacks and is_installed(SPARE) else usual


@cache
def is_installed(font: str) -> bool:
    """Return whether a picture with text in this font differs from one without text."""
    import vl_convert

    page = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">{}</svg>'
    text = f'<text x="2" y="15" font-family="{html.escape(font)}">Ab0</text>'
    return bool(font.strip(" ,")) and vl_convert.svg_to_png(page.format(text)) != vl_convert.svg_to_png(page.format(""))


@lru_cache(maxsize=4096)
def width_of(text: str, font: str, bold: bool = False) -> float:
    """Return how wide a text is in a font of size 1, as the renderer draws it."""
    import vl_convert

    looks = {"text": text, "font": font, "fontSize": 100, "fontWeight": "bold" if bold else "normal"}
    encoding = {"enter": {name: {"value": value} for name, value in looks.items()}}
    svg = vl_convert.vega_to_svg({"padding": 0, "marks": [{"type": "text", "encode": encoding}]})
    width = re.search(r'\bwidth="([\d.]+)"', svg)
    return float(width[1]) / 100 if width else 0.0


@cache
def list_installed() -> tuple[str, ...]:
    """List the fonts on this computer that the renderer has, and the generic names."""
    found: set[str] = set(BUNDLED)
    for folder in FOLDERS.get(sys.platform, UNIX):
        for path in Path(os.path.expandvars(folder)).expanduser().rglob("*"):
            if path.suffix.lower() in (".ttf", ".otf"):
                found |= set(_families(path))
    return (*sorted(font for font in found if is_installed(font)), *GENERIC)


def _likeness(wanted: str, font: str) -> float:
    return difflib.SequenceMatcher(None, wanted.lower(), font.lower()).ratio()


def _families(path: Path) -> Iterator[str]:
    """Yield the family names of a font file: entries 1 of its table `name`, in UTF-16."""
    try:
        data = path.read_bytes()
        (tables,) = struct.unpack_from(">H", data, 4)
        for place in range(12, 12 + 16 * tables, 16):
            tag, _, start, _ = struct.unpack_from(">4sIII", data, place)
            if tag != b"name":
                continue
            _, count, texts = struct.unpack_from(">HHH", data, start)
            for entry in range(start + 6, start + 6 + 12 * count, 12):
                platform, _, _, kind, length, offset = struct.unpack_from(">HHHHHH", data, entry)
                if platform == 3 and kind == 1:  # Windows, family
                    begin = start + texts + offset
                    yield data[begin : begin + length].decode("utf-16-be")
    except (OSError, ValueError, struct.error):
        return
