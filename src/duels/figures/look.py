"""Fonts: which ones the renderer of figures has, and the one that SVG files and reports bring along.

Text in a font that the renderer does not have would be missing in a figure.

The options that figures take: title, labels, colors, width, font, band, legend, ranges and scales of axes.
"""

import base64
import difflib
import html
import io
import math
import os
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import altair as alt
import polars as pl

from ..errors import InvalidInput, UnknownName, shorten
from ..policies import display_name

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


WIDTHS = {"column": 240.0, "page": 500.0}  # in points
NARROWEST, WIDEST = 160, 2000
UNBROKEN = re.compile(r"(?<![=≤≥]) (?![=≤≥·])")  # spaces at which a line may break
BLANK = 0.3  # the width of a space, in the size of its type
MARGIN = 10  # points around a figure, both sides together
PANEL = 160  # the least width of a panel beside others, with its axis
SCALES = ("log", "linear")
NAME_IN = "name in "  # the kind of an unknown name in `labels` or `colors`
BANDS = {
    "ci": "95% confidence interval",
    "quantiles": "middle half of the runs",
    "minmax": "best and worst run",
}


class Look(TypedDict, total=False):
    """How a figure looks. Every function that draws one takes these options.

    Attributes:
        title: The title; `""` leaves out title and subtitle, for figures whose caption says it.
        labels: Texts to show instead of the names of policies, arms and problems, the entries of a legend and the
            titles of axes, such as `{"rucb": "RUCB, α = 0.51", "time t": "rounds"}`. Policies have the names that
            papers print by default, and a problem's label is the heading of its panel.
        colors: Colors by name of policy or legend entry, as `labels`, or a list of colors in their order; of a heat
            map, the colors of its scale.
        width: The width of the whole figure in points, `"column"` (240) or `"page"` (500). Type is then 8 points or
            larger, and panels that do not fit side by side stand below one another.
        font: The name of an installed font.
        band: What is shown around a mean or a share: `"ci"` (95% confidence interval), `"quantiles"` (the middle half
            of the runs), `"minmax"` (the best and the worst run) or None.
        legend: `"bottom"`, or `"direct"` to name each line at its end. Without a width, the scale of a heat map is at
            its right by default.
        x_range: Where the x axes begin and end, such as `(1_000, 1_000_000)`.
        y_range: The same of the y axes.
        x_scale: `"log"` or `"linear"`.
        y_scale: The same of the y axes.
    """

    title: str | None
    labels: Mapping[str, str]
    colors: Mapping[str, str] | Sequence[str]
    width: float | Literal["column", "page"] | None
    font: str | None
    band: Literal["ci", "quantiles", "minmax"] | None
    legend: Literal["direct", "bottom"]
    x_range: tuple[float, float] | None
    y_range: tuple[float, float] | None
    x_scale: Literal["log", "linear"] | None
    y_scale: Literal["log", "linear"] | None


class AxisLook(NamedTuple):
    """What was chosen for an axis: nothing by default."""

    range: tuple[float, float] | None = None
    scale: str | None = None


USUAL_AXIS = AxisLook()


@dataclass(frozen=True)
class Style:
    """The checked options of a figure."""

    title: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    colors: Mapping[str, str] | Sequence[str] = ()
    width: float | None = None
    font: str = USUAL
    band: str | None = None
    legend: str = ""  # the figure's usual one
    x: AxisLook = USUAL_AXIS
    y: AxisLook = USUAL_AXIS
    name_of: Callable[[str], str] = display_name  # what a policy is called

    @property
    def text(self) -> float:
        """The size of the smallest type, in points."""
        return 11 if self.width is None else 8

    @property
    def large(self) -> float:
        """The size of the titles of axes and panels."""
        return 12 if self.width is None else 8.5

    @property
    def heading(self) -> float:
        """The size of the title."""
        return 14 if self.width is None else 10

    @property
    def stroke(self) -> float:
        """The width of a line."""
        return 2 if self.width is None else 1.4

    @property
    def glyph(self) -> float:
        """The width of a piece of line in a legend."""
        return 24 if self.width is None else 18

    def font_of(self, text: str) -> str:
        """The font of a text: the one that was chosen, otherwise one that has all of its characters."""
        return font_for(text, USUAL) if self.font == USUAL else self.font

    def for_names(self, names: Sequence[str], texts: Iterable[str] = (), painted: Sequence[str] = ()) -> "Style":
        """This style for a figure of certain names, with a font that has all of their characters.

        Args:
            names: The names that `labels` may be about: policies, arms and legend entries.
            texts: What else the figure shows.
            painted: The names that `colors` may be about; none if they are not by name.

        Raises:
            UnknownName: If the figure does not show a name in `labels` or `colors`.
        """
        for option, given, known in (("labels", self.labels, names), ("colors", self.colors, painted)):
            wrong = [name for name in given if name not in known] if known and isinstance(given, Mapping) else []
            if wrong:
                raise UnknownName(f"{NAME_IN}{option}", wrong[0], dict.fromkeys(known))
        return replace(self, font=self.font_of("".join([*names, *map(self.policy, names), *texts])))

    @property
    def is_cut(self) -> bool:
        """Whether something may be outside the ranges that were chosen for the axes."""
        return self.x.range is not None or self.y.range is not None

    def inside(self, rows: pl.DataFrame, x: str, y: str = "") -> pl.DataFrame:
        """Select the rows that are inside the ranges of the axes; null is inside."""
        for column, axis in ((x, self.x), (y, self.y)):
            if column and axis.range is not None:
                rows = rows.filter(pl.col(column).is_between(*axis.range) | pl.col(column).is_null())
        return rows

    def around(self, rows: pl.DataFrame, x: str) -> pl.DataFrame:
        """Select the rows inside the range of the x axis, and those next to it, to which lines are drawn."""
        if self.x.range is None:
            return rows
        low, high = self.x.range
        first = rows.filter(pl.col(x) <= low)[x].to_list()
        last = rows.filter(pl.col(x) >= high)[x].to_list()
        return rows.filter(pl.col(x).is_between(max(first, default=low), min(last, default=high)))

    def extent(self, text: str, size: float, bold: bool = False) -> float:
        """How wide a text is, in points."""
        return size * width_of(text, self.font_of(text), bold)

    def policy(self, name: str) -> str:
        """A policy's name as the figure shows it."""
        return self.labels.get(name) or self.name_of(name)

    def label(self, name: str) -> str:
        """The name of an arm or a problem, or the title of an axis, as the figure shows it."""
        return self.labels.get(name, name)

    def pick_colors(self, names: Sequence[str], usual: Sequence[str]) -> list[str]:
        """Return a color for each name: the given one, otherwise the usual one."""
        if isinstance(self.colors, Mapping):
            return [self.colors.get(name, color) for name, color in zip(names, usual)]
        return [*self.colors[: len(usual)], *usual[len(self.colors) :]]

    def columns(self, panels: int, most: int) -> int:
        """Return how many panels stand side by side."""
        fit = most if self.width is None else max(1, int(self.width // PANEL))
        return min(panels, most, fit)

    def wrap(self, text: str, size: float, within: float | None = None, bold: bool = False) -> list[str]:
        """Break a text into lines that fit the width of the figure, or another one; without a width it stays whole.

        Lines break between words, but neither in `K = 4` nor before a dot.
        """
        if self.width is None:
            return [text]
        lines, reach = [""], 0.0
        for part in UNBROKEN.split(text.strip()):
            wide = self.extent(part, size, bold) + BLANK * size
            if lines[-1] and reach + wide > (within or self.width - MARGIN):
                lines.append(part)
                reach = wide
            else:
                reach += wide
                lines[-1] = f"{lines[-1]} {part}".lstrip()
        return lines


PLAIN = Style()


def style_of(
    figure: str,
    look: Mapping[str, Any],
    *,
    bands: Sequence[str] = (),
    band: str | None = None,
    direct: bool = False,
    colored: bool = True,
    axes: str = "",
    scales: str = "",
) -> Style:
    """Check the options of a figure.

    Args:
        figure: Its name, for errors.
        look: The options.
        bands: The bands that it can show.
        band: The band that it shows by default.
        direct: Whether it has lines that can be labeled directly.
        colored: Whether its colors can be chosen.
        axes: The axes whose range can be chosen, such as `xy`.
        scales: The axes whose scale can be chosen.

    Raises:
        InvalidInput: If an option is unknown or wrong, or the figure has no such thing.
    """
    for name in look:
        if name not in Look.__annotations__:
            raise UnknownName(f"option of {figure}", name, Look.__annotations__)
    title, font = look.get("title"), look.get("font")
    for name, value in (("title", title), ("font", font)):
        if not isinstance(value, str | None):
            raise InvalidInput(f"{name} is {shorten(value)}: expected text")
    if font is not None:
        check_font(font)
    legend = look.get("legend", "")
    if legend not in ("direct", "bottom") and "legend" in look:
        raise InvalidInput(f"legend is {shorten(legend)}: expected 'direct' or 'bottom'")
    if legend == "direct" and not direct:
        raise InvalidInput(f"legend is 'direct', but {figure} has no lines to label: leave it out")
    return Style(
        title,
        _labels(look.get("labels")),
        _colors(figure, look.get("colors"), colored),
        _width(look.get("width")),
        USUAL if font is None else font,
        _band(figure, look.get("band", band), bands),
        legend,
        x=AxisLook(_range(figure, "x", look, axes), _scale(figure, "x", look, scales)),
        y=AxisLook(_range(figure, "y", look, axes), _scale(figure, "y", look, scales)),
    )


def _range(figure: str, axis: str, look: Mapping[str, Any], known: str) -> tuple[float, float] | None:
    """Check where an axis begins and ends."""
    name, found = f"{axis}_range", look.get(f"{axis}_range")
    if found is None:
        return None
    if axis not in known:
        raise InvalidInput(f"{name} was given, but {figure} has {_which('range', known)}: leave it out")
    try:
        low, high = map(float, found)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if isinstance(found, str) or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(
            f"{name} is {shorten(found)}: expected two numbers, the lower one first, such as (1000, 1e6)"
        )
    return low, high


def _scale(figure: str, axis: str, look: Mapping[str, Any], known: str) -> str | None:
    name, found = f"{axis}_scale", look.get(f"{axis}_scale")
    if found is None:
        return None
    if axis not in known:
        raise InvalidInput(f"{name} was given, but {figure} has {_which('scale', known)}: leave it out")
    if found not in SCALES:
        raise InvalidInput(f"{name} is {shorten(found)}: expected 'log' or 'linear'")
    return str(found)


def _which(kind: str, axes: str) -> str:
    return f"only {axes}_{kind}" if axes else f"no axis whose {kind} can be chosen"


def _labels(labels: object) -> Mapping[str, str]:
    if labels is None:
        return {}
    if not isinstance(labels, Mapping) or not all(isinstance(text, str) for pair in labels.items() for text in pair):
        raise InvalidInput(f"labels is {shorten(labels)}: expected a dict of texts by name, such as {{'rucb': 'RUCB'}}")
    return labels


def _colors(figure: str, colors: object, colored: bool) -> Mapping[str, str] | Sequence[str]:
    if colors is None:
        return ()
    if not colored:
        raise InvalidInput(f"colors was given, but those of {figure} have fixed meanings: leave it out")
    if isinstance(colors, str) or not isinstance(colors, Mapping | Sequence):
        raise InvalidInput(f"colors is {shorten(colors)}: expected a dict of colors by name, or a list of colors")
    for color in colors.values() if isinstance(colors, Mapping) else colors:
        if not isinstance(color, str) or not _is_color(color):
            raise InvalidInput(f"{shorten(color)} is not a color: expected one such as '#0072B2' or 'steelblue'")
    return colors


def _is_color(text: str) -> bool:
    return bool(re.fullmatch("#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})", text)) or text.lower() in _color_names()


@cache
def _color_names() -> frozenset[str]:
    return frozenset(alt.ColorName.resolve_references()["enum"])


def _width(width: object) -> float | None:
    if width is None:
        return None
    if isinstance(width, str) and width in WIDTHS:
        return WIDTHS[width]
    if isinstance(width, bool) or not isinstance(width, int | float) or not NARROWEST <= width <= WIDEST:
        expected = f"'column', 'page' or a number of points from {NARROWEST} to {WIDEST:,}"
        raise InvalidInput(f"width is {shorten(width)}: expected {expected}")
    return float(width)


def _band(figure: str, band: object, bands: Sequence[str]) -> str | None:
    if band is not None and band not in BANDS:
        raise InvalidInput(f"band is {shorten(band)}: expected {', '.join(map(repr, BANDS))} or None")
    if band is not None and band not in bands:
        expected = f"expected {' or '.join(map(repr, bands))}, or None" if bands else "leave it out"
        raise InvalidInput(f"{figure} has no band {band!r}: {expected}")
    return None if band is None else str(band)
