"""Lines with their marks, and their names: in a legend below the figure, or at the lines themselves.

A policy has the same color in every figure. Those that are drawn together most often have the colors of Okabe and
Ito, which color-blind people can tell apart; the marks on each line tell it apart without color too. Hollow marks are
at what was measured there, full ones anywhere along a line.
"""

import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from .charts import BLACK, BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, VERMILION, WIDTH, Layered, Options, values
from .look import PLAIN, Style

# The paper's red, blue and green for its three policies; its Beat the Mean has γ = own.
USUAL = {"rucb": VERMILION, "savage": BLUE, "btm": GREEN, "dts": ORANGE, "dts_plus": SKY, "rmed1": PURPLE}
USUAL |= {"verdict": BLACK, "random": "#882255", "merge_rucb": "#661100", "merge_dts": "#44AA99", "kl_rucb": "#999933"}
USUAL |= {"self_sparring": "#0000FF", "rcs": "#221199", "rmed2": "#99CC88", "rmed2fh": "#886633", "ccb": "#4411CC"}
USUAL |= {"winner_stays": "#884444", "sparring": "#0077FF", "scb": "#3344AA", "ecw_rmed": "#55CCDD", "rex3": "#DDBB66"}
USUAL |= {"borda_ucb": "#885588", "doubling": "#551166", "multisbm": "#BB0000", "versatile_db": "#889955"}
USUAL |= {"interleaved_filter": "#4499FF", "btm:gamma=own": GREEN}
# Policies on continuous spaces, which are not drawn together with those above.
USUAL |= {"eubo": VERMILION, "double_thompson": BLUE, "kernel_self_sparring": GREEN, "gp_rucb": PURPLE}
USUAL |= {"max_min_lcb": ORANGE, "dbgd": SKY}
SPARE = ("#BB55CC", "#44AA22", "#AA6655", "#7777AA", "#772266", "#006600", "#99CCAA", "#664422", "#224488", "#CC3377")
SHADES = ((0.3, 1.0), (0.25, 0.0), (0.45, 0.0))  # how much white or black is mixed into a color
UNLIKE = 18  # the least distance of two colors of a figure, in CIELAB
# Each mark as a path between −1 and 1, and the points where a line through it enters and leaves.
OUTLINES = {
    "circle": (
        "M.34,0C.34,.19,.19,.34,0,.34C-.19,.34,-.34,.19,-.34,0C-.34,-.19,-.19,-.34,0,-.34C.19,-.34,.34,-.19,.34,0Z",
        -0.34,
        0.34,
    ),
    "square": ("M-.3,-.3H.3V.3H-.3Z", -0.3, 0.3),
    "triangle-up": ("M0,-.36L.4,.33H-.4Z", -0.21, 0.21),
    "diamond": ("M0,-.42L.42,0L0,.42L-.42,0Z", -0.42, 0.42),
    "cross": ("M-.4,-.14H-.14V-.4H.14V-.14H.4V.14H.14V.4H-.14V.14H-.4Z", -0.4, 0.4),
    "triangle-down": ("M0,.36L.4,-.33H-.4Z", -0.21, 0.21),
    "triangle-right": ("M.36,0L-.33,.4V-.4Z", -0.33, 0.36),
    "triangle-left": ("M-.36,0L.33,.4V-.4Z", -0.36, 0.33),
    "hourglass": ("M-.36,-.4H.36L-.36,.4H.36Z", 0, 0),
    "star": ("M0,-.44L.13,-.13L.44,0L.13,.13L0,.44L-.13,.13L-.44,0L-.13,-.13Z", -0.44, 0.44),
    "bar": ("M-.13,-.46H.13V.46H-.13Z", -0.13, 0.13),
    "half": ("M-.4,.17C-.4,-.4,.4,-.4,.4,.17Z", -0.36, 0.36),
}
SHAPES = tuple(OUTLINES)
UNNAMED = ("hourglass", "star", "bar", "half")  # shapes without a name in Vega
SPARSE = 5  # full marks on a line
SHADE = 0.18  # the opacity of bands
CONTRAST = 4.5  # of names on white, the least that WCAG 2 asks for
GLYPH = 24  # the width of a piece of line in a legend, for its dashes
AXIS = 45  # points left of a panel, where a legend does not begin


def color_of(names: Iterable[str]) -> alt.Scale:
    """Choose a color for each policy, by its name, so that it is the same in every figure.

    A built-in policy with parameters has a shade of its color, a policy of the user one of the spare colors. Only if
    a figure shows a similar color already, the next one is taken.
    """
    domain = list(names)
    shapes = {name: place % len(SHAPES) for place, name in enumerate(domain)}
    chosen: dict[str, str] = {}
    for name in sorted(set(domain) & set(USUAL), key=lambda name: ":" in name):
        if USUAL[name] not in chosen.values():
            chosen[name] = USUAL[name]
    for name in sorted(set(domain) - set(chosen)):
        candidates = _colors_for(name)
        free = [color for color in candidates if all(distance(color, other) >= UNLIKE for other in chosen.values())]
        looks = {(chosen[other], shapes[other]) for other in chosen}
        free += [color for color in candidates if (color, shapes[name]) not in looks]
        chosen[name] = [*free, candidates[0]][0]
    return alt.Scale(domain=domain, range=[chosen[name] for name in domain])


def _colors_for(name: str) -> list[str]:
    """List the colors for a policy that has none of its own, the best one first."""
    first, base = zlib.crc32(name.encode()), name.partition(":")[0]
    shades = [mix(USUAL[base], *shade) for shade in SHADES] if base in USUAL else []
    return [*_rotate(shades, first), *_rotate(SPARE, first), *dict.fromkeys(USUAL.values())]


def _rotate(colors: Sequence[str], first: int) -> list[str]:
    place = first % max(len(colors), 1)
    return [*colors[place:], *colors[:place]]


def mix(color: str, share: float, gray: float) -> str:
    """Mix some white (1.0) or black (0.0) into a color."""
    return "#" + "".join(f"{round(255 * (part + share * (gray - part))):02X}" for part in _parts(color))


def distance(one: str, other: str) -> float:
    """Return how different two colors look: their distance in CIELAB."""
    return math.dist(_lab(one), _lab(other))


@cache
def _lab(color: str) -> tuple[float, float, float]:
    """The lightness and the two axes of hue of a color in CIELAB, for the white of a screen."""
    to_xyz = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0178, 0.1095, 0.8727]]  # relative to white
    light = np.dot(to_xyz, _linear(_parts(color)))
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in light)
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def _parts(color: str) -> list[float]:
    """Red, green and blue from 0 to 1."""
    return [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def shape_of(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[SHAPES[k % len(SHAPES)] for k in range(len(names))])


def line_glyph(shape: str = "", dash: Sequence[float] = (), full: bool = False) -> str:
    """Return the path of a legend's line: dashed, or with a hollow or filled mark of `SHAPES` in its middle."""
    if shape:
        outline, enter, leave = OUTLINES[shape]
        start = re.split("[A-Z]", outline)[1]
        closed = outline.replace("Z", f"L{start}")  # Vega closes only the last part of a path
        inside = "".join(_format_scale(closed, size) for size in (0.6, 0.22) if full)  # and a legend fills none
        return f"M-1,0H{enter:g}M{leave:g},0H1{inside}{outline}"
    path, x, k = "", -1.0, 0
    while x < 1:
        end = min(x + 2 * dash[k % len(dash)] / GLYPH, 1) if dash else 1.0
        path += f"M{x:.3g},0H{end:.3g}" if k % 2 == 0 else ""
        x, k = end, k + 1
    return path


def _format_scale(outline: str, size: float) -> str:
    return re.sub(r"-?\d*\.?\d+", lambda number: f"{size * float(number[0]):.3g}", outline)


class Key(NamedTuple):
    """A legend: a color and a glyph (`line_glyph`) for each label.

    A figure's layers take their color from `color`, and `layer` is the one that shows the legend, below the figure.
    Labels are the names in the data; the legend shows their `texts`. Those in `direct` are named at their lines.
    """

    labels: tuple[str, ...] = ()
    colors: tuple[str, ...] = ()
    glyphs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    direct: tuple[str, ...] = ()

    def with_entry(self, label: str, color: str, glyph: str, text: str = "") -> "Key":
        texts = (*(self.texts or self.labels), text or label)
        return Key((*self.labels, label), (*self.colors, color), (*self.glyphs, glyph), texts, self.direct)

    def label_texts(self, style: Style) -> dict[str, str]:
        """The text of each label."""
        return {label: style.labels.get(label, text) for label, text in zip(self.labels, self.texts or self.labels)}

    def legend_texts(self, style: Style = PLAIN) -> dict[str, str]:
        """The text of each label that the legend has."""
        return {label: text for label, text in self.label_texts(style).items() if label not in self.direct}

    def color(self, field: str) -> alt.Color:
        scale = alt.Scale(domain=self.labels, range=self.colors)
        return alt.Color(f"{field}:N", scale=scale, legend=alt.Undefined if self.legend_texts() else None)

    def layer(self, width: float = WIDTH, style: Style = PLAIN) -> alt.Chart:
        """Return an empty layer with the legend, for a figure whose panels have this width in all."""
        points = alt.Chart(values([{}])).mark_point(size=0, aria=False)
        if not self.legend_texts():
            return alt.Chart(values([{}]), mark=alt.MarkDef("point", size=0, aria=False))
        legend = alt.Legend(
            title=None,
            orient="bottom",
            columns=self.columns(width, style),
            symbolSize=style.glyph**2,
            symbolStrokeWidth=2 if style.width is None else 1.5,
            symbolOpacity=1,
            clipHeight=round(1.4 * style.text),  # of a row; as high as its glyph is wide otherwise
            columnPadding=16 if style.width is None else 8,
            offset=8,
            **self._texts(style),
        )
        shape = alt.Shape("label:N", scale=alt.Scale(domain=self.labels, range=self.glyphs), legend=legend)
        layer: alt.Chart = points.encode(self.color("label").legend(legend), shape)
        return layer

    def _texts(self, style: Style) -> Options:
        """The options of the legend that leave out labels, and show other texts."""
        shown = self.legend_texts(style)
        options: Options = {} if len(shown) == len(self.labels) else {"values": list(shown)}
        if any(label != text for label, text in shown.items()):
            options["labelExpr"] = f"{json.dumps(shown, ensure_ascii=False)}[datum.label]"
        return options

    def columns(self, width: float, style: Style = PLAIN) -> int:
        """Return how many columns of labels fit, including the space left of the y axis."""
        room = width + 60 if style.width is None else style.width - AXIS
        texts = self.legend_texts(style).values()
        wide = [5.5 * len(text) + 24 if style.width is None else style.extent(text, style.text) + 14 for text in texts]
        widths = [style.glyph + one for one in wide]
        return most_columns(widths, room)


def most_columns(widths: Sequence[float], room: float) -> int:
    """Return in how many columns entries of these widths fit; a column is as wide as its longest entry."""
    fits = [n for n in range(1, len(widths) + 1) if sum(max(widths[k::n]) for k in range(n)) <= room]
    return max(fits, default=1)


def key_of(
    names: Sequence[str],
    marked: Collection[str] = (),
    colors: Sequence[str] = (),
    style: Style = PLAIN,
    texts: Sequence[str] = (),
) -> Key:
    """Make a legend with one line per name, shown as its text; the marks of those in `marked` are hollow."""
    key = Key(direct=tuple(names) if style.legend == "direct" else ())
    painted = style.pick_colors(names, colors or color_of(names).range)
    for name, color, shape, text in zip(names, painted, shape_of(names).range, texts or names):
        key = key.with_entry(name, color, line_glyph(shape, full=name not in marked), text)
    return key


def with_marks(key: Key, text: str) -> Key:
    """Add an entry for hollow marks."""
    return key.with_entry(text, GRAY, mark_glyph("circle"))


def with_band(key: Key, text: str) -> Key:
    """Add an entry for the shaded bands around lines."""
    return key.with_entry(text, "#BBBBBB", "".join(f"M-1,{y:g}H1" for y in (-0.3, -0.15, 0, 0.15, 0.3)))


def mark_glyph(shape: str, full: bool = False) -> str:
    """Return the path of a legend's mark without a line."""
    return re.sub(r"^M-1,0H[^M]*M[^M]*", "", line_glyph(shape, full=full))


def lines(
    rows: pl.DataFrame, x: alt.X, y: alt.Y, key: Key, by: str, style: Style = PLAIN, interpolate: str = ""
) -> Layered:
    """Draw one line for each name in the key's column `by` and, on top of all lines, their marks.

    Hollow ones where the row is `marked`; a line without such rows has a few full ones, to tell it from others without
    color.
    """
    size = 50 if style.width is None else 26
    stroke: Options = {"strokeWidth": style.stroke} | ({"interpolate": interpolate} if interpolate else {})
    stroke |= {"clip": True} if style.is_cut else {}
    layers: Layered = [alt.Chart(values(rows)).mark_line(**stroke).encode(x, y, key.color(by))]
    looks = {name: {"mark": mark_path(shape)} for name, shape in zip(key.labels, shape_of(key.labels).range)}
    along, height = (str(axis.shorthand).partition(":")[0] for axis in (x, y))
    shape, seen = alt.Shape("mark:N", scale=None), style.inside(rows, along, height)
    if few := few_of_each(seen.drop_nulls(height), key.labels, by, along, is_linear(x)).to_dicts():
        inks = dict(zip(key.labels, key.colors))
        full = alt.Chart(values([{**row, **looks[row[by]], "ink": inks[row[by]]} for row in few]))
        full = full.mark_point(stroke="white", strokeWidth=0.8, opacity=1, size=1.2 * size)
        layers.append(full.encode(x, y, shape, alt.Fill("ink:N", scale=None)))  # a scale would fill the legend too
    if marked := seen.filter("marked").to_dicts():
        hollow = alt.Chart(values([{**row, **looks[row[by]]} for row in marked]))
        look: Options = {"fill": "white", "opacity": 1, "size": 1.2 * size, "strokeWidth": 0.8 * style.stroke}
        layers.append(hollow.mark_point(**look).encode(x, y, key.color(by), shape))
    return layers


def area(rows: pl.DataFrame, x: alt.X, low: alt.Y, high: str, key: Key, by: str, **shape: Any) -> alt.Chart:
    """Shade the space between two columns around each line, in its color."""
    inks = dict(zip(key.labels, key.colors))
    rows = rows.with_columns(ink=pl.col(by).replace_strict(inks, return_dtype=pl.String))
    shaded = alt.Chart(values(rows)).mark_area(opacity=SHADE, clip=True, **shape)
    # A color scale would make the legend as pale.
    drawn: alt.Chart = shaded.encode(x, low, alt.Y2(high), alt.Detail(f"{by}:N"), alt.Fill("ink:N", scale=None))
    return drawn


def names_at_ends(
    rows: pl.DataFrame,
    field: str,
    by: str,
    key: Key,
    axis: Options,
    size: tuple[float, float],
    style: Style,
    along: str = "t",
) -> Layered:
    """Name each line at its right end, in its color, with names that would overlap moved apart; none without `direct`.

    Args:
        rows: The rows of the lines, by time.
        field: Their column on the y axis.
        by: The column with the names.
        key: The key; it has the names that are `direct`, and their texts and colors.
        axis: The options of the y axis, whose scale has a domain.
        size: The width and height of the panel.
        style: The figure's style.
        along: The column on the x axis.
    """
    width, height = size
    named = style.around(rows.drop_nulls(field), along).filter(pl.col(by).is_in(key.direct))
    last = named.group_by(by, maintain_order=True).tail(2).group_by(by, maintain_order=True).agg(along, field)
    ends = {}
    for name, times, values_there in last.rows():
        heights = [pixel(axis, value, height) for value in values_there]
        edge = times[-1] if style.x.range is None else min(times[-1], style.x.range[1])  # where the line ends
        ends[name] = min(max(float(np.interp(edge, times, heights)), 0), height)
    if not ends:
        return []
    texts, inks = key.label_texts(style), dict(zip(key.labels, key.colors))
    names = sorted(ends, key=lambda name: ends[name])
    places = spread([ends[name] for name in names], 1.2 * style.text, height)
    layers: Layered = []
    for name, at in zip(names, places):
        base = alt.Chart(values([{"name": texts[name]}]))
        if abs(at - ends[name]) > 1:
            sides = {"x": width + 1, "x2": width + 6, "y": ends[name], "y2": at}
            rule = base.mark_rule(strokeWidth=0.7, color=inks[name], aria=False)
            layers.append(rule.encode(**{side: alt.value(place) for side, place in sides.items()}))
        text = base.mark_text(align="left", baseline="middle", fontSize=style.text, color=readable(inks[name]))
        layers.append(text.encode(x=alt.value(width + 8), y=alt.value(at), text="name:N"))
    return layers


def readable(color: str) -> str:
    """Return a color for small type on white: darkened to a contrast of 4.5. Names of colors stay as they are."""
    if not re.fullmatch("#[0-9a-fA-F]{6}", color):
        return color
    parts = _parts(color)
    shades = ([share * part for part in parts] for share in np.linspace(1, 0, 101))
    darkened = next(shade for shade in shades if 1.05 / (luminance(shade) + 0.05) >= CONTRAST)
    return "#" + "".join(f"{int(255 * part):02X}" for part in darkened)


def luminance(parts: Sequence[float]) -> float:
    """Return the relative luminance of red, green and blue, as WCAG 2 defines it."""
    return float(np.dot(_linear(parts), (0.2126, 0.7152, 0.0722)))


def _linear(parts: Sequence[float]) -> list[float]:
    """The amounts of light of red, green and blue as sRGB encodes them."""
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def pixel(axis: Options, value: float, height: float) -> float:
    """Return where a value stands on a y axis with a domain, in pixels from the top."""
    low, high = map(float, axis["scale"].domain)
    if axis["scale"].type == "log":
        low, high, value = math.log(low), math.log(high), math.log(value)
    return height * (high - value) / (high - low)


def spread(places: Sequence[float], gap: float, end: float) -> list[float]:
    """Move sorted places apart to a gap at least, as little as possible, inside 0 … end if there is space."""
    groups: list[list[float]] = []  # places that touch, each less the gaps before it: all move to their mean
    for k, place in enumerate(places):
        groups.append([place - k * gap])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            tail = groups.pop()
            groups[-1] += tail
    last = max(end - gap * (len(places) - 1), 0.0)
    firsts = [min(max(float(np.mean(group)), 0.0), last) for group in groups for _ in group]
    return [first + k * gap for k, first in enumerate(firsts)]


def is_linear(x: alt.X) -> bool:
    """Return whether an axis has a scale of its own that is not logarithmic."""
    scale = x["scale"]
    return isinstance(scale, alt.Scale) and scale.type is alt.Undefined


def few_of_each(rows: pl.DataFrame, names: Sequence[str], by: str, along: str, linear: bool = False) -> pl.DataFrame:
    """Choose about five rows for each name without `marked` rows, evenly spaced on a logarithmic or a linear axis.

    Each name begins a little further on than the one before, so that marks on lines that are close stay apart.
    """

    def places(table: pl.DataFrame) -> np.ndarray:
        numbers = table[along].to_numpy().astype(float)
        return numbers if linear else np.log(numbers)

    found = [rows.clear()]
    first, last = np.sort(places(rows))[[0, -1]] if len(rows) else (0.0, 0.0)
    for (name,), line in rows.group_by(by, maintain_order=True):
        start = (names.index(str(name)) + 0.5) / len(names)
        wanted = first + (np.arange(SPARSE) + start) / SPARSE * (last - first)
        nearest = np.abs(places(line)[:, None] - wanted).argmin(axis=0)
        if not line["marked"].any():
            found.append(line[np.unique(nearest)])
    return pl.concat(found)


def mark_path(shape: str) -> str:
    """Return a mark for Vega: its name, or its outline if Vega has no name for it."""
    return _format_scale(OUTLINES[shape][0], 2.4) if shape in UNNAMED else shape
