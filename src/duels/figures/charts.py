"""What all figures share: colours, marks, axes, titles, and how a figure is saved.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; the marks on each line tell it apart
without colour too. Hollow marks are at what was measured there, full ones anywhere along a line.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import altair as alt
import numpy as np
import polars as pl

from ..errors import InvalidInput, cut
from ..files import atomic_write

Drawn = TypeVar("Drawn", bound=alt.TopLevelMixin)  # any kind of chart
Options = dict[str, Any]  # keyword arguments of Altair's classes
Layered = list[alt.Chart | alt.LayerChart]

VERMILION, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#767676"
USUAL = {"rucb": VERMILION, "savage": BLUE, "btm": GREEN}  # the paper's red, blue and green
SPARE = (PURPLE, ORANGE, SKY, BLACK, GREY, "#882255", "#44AA99", "#999933", "#6699CC", "#661100")
WIDTH, HEIGHT = 360, 260
COLUMNS = 3  # panels in a row
NUMBERED = 12  # the most arms whose cells have numbers
ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")
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
GLYPH, GRADIENT = 24, 160  # widths in a legend, in pixels: a piece of line, a colour scale
IS_POWER = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-9"
# 0.1, 1, 10, 1k, 10M, 1e9. (The format "~s" alone would print 100m for 0.1 and 1G for 1e9.)
NUMBER = (
    "datum.value > 999999999 ? replace(format(datum.value, '.0e'), '+', '') : "
    "datum.value >= 999.5 ? format(datum.value, '~s') : format(datum.value, '~g')"
)
POWERS = f"{IS_POWER} ? ({NUMBER}) : ''"


def log_axis(title: str, low: float | None = None, high: float | None = None) -> Options:
    """Return the arguments of `alt.X` or `alt.Y` for a logarithmic axis labelled at powers of ten.

    Give its ends where they may be less than two powers of ten apart: such an axis has 1, 2 and 5 times the powers and
    reaches up to the next of these.
    """
    scale: Options = {"type": "log", "nice": False}
    axis: Options = {
        "labelExpr": POWERS,
        "labelOverlap": True,
        "gridOpacity": alt.condition(IS_POWER, alt.value(1), alt.value(0)),
        "tickSize": alt.condition(IS_POWER, alt.value(5), alt.value(3)),
    }
    if low is None or high is None:
        return {"title": title, "scale": alt.Scale(**scale), "axis": alt.Axis(tickCount=8, **axis)}
    if not 0 < low <= high < math.inf:
        raise InvalidInput(f"a logarithmic axis from {low} to {high}: expected ends above 0, the lower one first")
    powers = len(steps(low, high, (1,)))
    if powers < 2:
        around, alone = steps(low / 10, high * 10), low == high  # a single number gets space on both sides
        low = max(step for step in around if step < low or (step == low and not alone))
        high = min(step for step in around if step > high or (step == high and not alone))
        axis = {"labelExpr": NUMBER, "labelOverlap": True}
    axis["values"] = steps(low, high, (1, 2, 5) if powers < 2 else range(1, 10) if powers < 8 else (1,))
    return {"title": title, "scale": alt.Scale(domain=[low, high], **scale), "axis": alt.Axis(**axis)}


def steps(low: float, high: float, digits: Iterable[int] = (1, 2, 5)) -> list[float]:
    """Return the digits times powers of ten between two numbers, both included."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step for power in powers for digit in digits if low <= (step := float(f"{digit}e{power}")) <= high]


def colour_of(names: Iterable[str]) -> alt.Scale:
    """Choose a colour for each policy: the paper's for its three policies, spare ones for the others."""
    domain = list(names)
    owners: dict[str, str] = {}
    for name in sorted(domain, key=lambda name: ":" in name):
        owners.setdefault(name.partition(":")[0], name)
    usual = {owners[base]: colour for base, colour in USUAL.items() if base in owners}
    spare = itertools.cycle(SPARE)
    return alt.Scale(domain=domain, range=[usual[name] if name in usual else next(spare) for name in domain])


def shape_of(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[SHAPES[k % len(SHAPES)] for k in range(len(names))])


def short(number: float) -> str:
    """Format a number with three digits: 0.15, 12.5, 870, 2.41k, 1.3M."""
    size, unit = (1e6, "M") if number >= 999_500 else (1e3, "k") if number >= 999.5 else (1, "")
    return f"{number / size:.3g}{unit}"


def span(numbers: pl.Series) -> str:
    """`1,000`, or `10 to 1,000` if they differ."""
    least, most = (f"{end:,}" for end in np.sort(numbers.to_numpy())[[0, -1]])
    return most if least == most else f"{least} to {most}"


def count(number: int | str, noun: str) -> str:
    """`1 run`, `20 runs`, `5 to 20 runs`."""
    return f"{number} {noun}{'' if str(number) == '1' else 's'}"


def line_glyph(shape: str = "", dash: Sequence[float] = (), full: bool = False) -> str:
    """Return the path of a legend's line: dashed, or with a hollow or filled mark of `SHAPES` in its middle."""
    if shape:
        outline, enter, leave = OUTLINES[shape]
        start = re.split("[A-Z]", outline)[1]
        closed = outline.replace("Z", f"L{start}")  # Vega closes only the last part of a path
        inside = "".join(_scaled(closed, size) for size in (0.67, 0.33) if full)  # and a legend fills none
        return f"M-1,0H{enter:g}M{leave:g},0H1{inside}{outline}"
    path, x, k = "", -1.0, 0
    while x < 1:
        end = min(x + 2 * dash[k % len(dash)] / GLYPH, 1) if dash else 1.0
        path += f"M{x:.3g},0H{end:.3g}" if k % 2 == 0 else ""
        x, k = end, k + 1
    return path


def _scaled(outline: str, size: float) -> str:
    return re.sub(r"-?\d*\.?\d+", lambda number: f"{size * float(number[0]):.3g}", outline)


class Key(NamedTuple):
    """A legend: a colour and a glyph (`line_glyph`) for each label.

    A figure's layers take their colour from `colour`, and `layer` is the one that shows the legend, below the figure.
    """

    labels: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    glyphs: tuple[str, ...] = ()

    def with_entry(self, label: str, colour: str, glyph: str) -> "Key":
        return Key((*self.labels, label), (*self.colours, colour), (*self.glyphs, glyph))

    def colour(self, field: str) -> alt.Color:
        return alt.Color(f"{field}:N", scale=alt.Scale(domain=self.labels, range=self.colours))

    def layer(self, width: float = WIDTH) -> alt.Chart:
        """Return an empty layer with the legend, for a figure of this width."""
        legend = alt.Legend(
            title=None,
            orient="bottom",
            columns=self.columns(width),
            symbolSize=GLYPH**2,
            symbolStrokeWidth=2,
            symbolOpacity=1,
            rowPadding=-6,
            columnPadding=16,
            offset=8,
        )
        shape = alt.Shape("label:N", scale=alt.Scale(domain=self.labels, range=self.glyphs), legend=legend)
        points = alt.Chart(values([{}])).mark_point(size=0, aria=False)
        layer: alt.Chart = points.encode(self.colour("label").legend(legend), shape)
        return layer

    def columns(self, width: float) -> int:
        """Return how many columns of labels fit, including the space left of the y axis."""
        widths = [GLYPH + 24 + 5.5 * len(label) for label in self.labels]  # a column is as wide as its longest label
        fits = [n for n in range(1, len(widths) + 1) if sum(max(widths[k::n]) for k in range(n)) <= width + 60]
        return max(fits, default=1)


def key_of(names: Sequence[str], marked: Collection[str] = (), colours: Sequence[str] = ()) -> Key:
    """Make a legend with one line per name; the marks of those in `marked` are hollow."""
    key = Key()
    for name, colour, shape in zip(names, colours or colour_of(names).range, shape_of(names).range):
        key = key.with_entry(name, colour, line_glyph(shape, full=name not in marked))
    return key


def lines(rows: pl.DataFrame, x: alt.X, y: alt.Y, key: Key, by: str) -> Layered:
    """Draw one line for each name in the key's column `by` and, on top of all lines, their marks.

    Hollow ones where the row is `marked`; a line without such rows has a few full ones.
    """
    layers: Layered = [alt.Chart(values(rows)).mark_line(strokeWidth=2).encode(x, y, key.colour(by))]
    looks = {name: {"mark": mark_path(shape)} for name, shape in zip(key.labels, shape_of(key.labels).range)}
    along, height = (str(axis.shorthand).partition(":")[0] for axis in (x, y))
    shape = alt.Shape("mark:N", scale=None)
    if few := few_of_each(rows.drop_nulls(height), key.labels, by, along).to_dicts():
        inks = dict(zip(key.labels, key.colours))
        full = alt.Chart(values([{**row, **looks[row[by]], "ink": inks[row[by]]} for row in few]))
        full = full.mark_point(stroke="white", strokeWidth=0.8, opacity=1, size=60)
        layers.append(full.encode(x, y, shape, alt.Fill("ink:N", scale=None)))  # a scale would fill the legend too
    if marked := rows.filter("marked").to_dicts():
        hollow = alt.Chart(values([{**row, **looks[row[by]]} for row in marked]))
        layers.append(hollow.mark_point(fill="white", opacity=1, size=50).encode(x, y, key.colour(by), shape))
    return layers


def few_of_each(rows: pl.DataFrame, names: Sequence[str], by: str, along: str) -> pl.DataFrame:
    """Choose about five rows for each name without `marked` rows, evenly spaced on a logarithmic axis.

    Each name begins a little further on than the one before, so that marks on lines that are close stay apart.
    """
    found = [rows.clear()]
    ends = [math.log(end) for end in np.sort(rows[along].to_numpy())[[0, -1]]] if len(rows) else [0.0, 0.0]
    for (name,), line in rows.group_by(by, maintain_order=True):
        start = (names.index(str(name)) + 0.5) / len(names)
        wanted = ends[0] + (np.arange(SPARSE) + start) / SPARSE * (ends[1] - ends[0])
        places = np.abs(np.log(line[along].to_numpy())[:, None] - wanted).argmin(axis=0)
        if not line["marked"].any():
            found.append(line[np.unique(places)])
    return pl.concat(found)


def mark_path(shape: str) -> str:
    """Return a mark for Vega: its name, or its outline if Vega has no name for it."""
    return _scaled(OUTLINES[shape][0], 2.4) if shape in UNNAMED else shape


class Cells(NamedTuple):
    """How the cells of a heat map show a number."""

    colour: alt.Color
    text: Callable[[float], str]
    dark: Callable[[float], bool]  # whether the colour is so dark that text on it must be white


def probabilities(column: str, reach: float, title: Sequence[str]) -> Cells:
    """Show probabilities up to `reach` from ½: blue above ½, white at ½, vermilion below."""
    ends = [0.5 - reach, 0.5, 0.5 + reach]
    scale = alt.Scale(domain=ends, range=[VERMILION, "#F7F7F7", BLUE], interpolate="lab")
    legend = alt.Legend(title=list(title), values=ends, format=".2f", gradientLength=GRADIENT)
    colour = alt.Color(f"{column}:Q", scale=scale, legend=legend)
    return Cells(colour, "{:.2f}".format, lambda p: abs(p - 0.5) > 0.65 * reach)


def amounts(column: str, low: float, high: float) -> Cells:
    """Show amounts on a logarithmic scale of at least one power of ten, darker for more."""
    high = max(high, 10 * low)
    powers = steps(low, high, (1,))
    labelled = powers if len(powers) > 1 else steps(low, high)
    scale = alt.Scale(type="log", scheme="viridis", reverse=True, domain=[low, high])
    legend = alt.Legend(labelExpr=NUMBER, values=labelled, gradientLength=GRADIENT)
    colour = alt.Color(f"{column}:Q", scale=scale, legend=legend)
    return Cells(colour, short, lambda amount: amount > math.sqrt(low * high))


def heat_map(rows: pl.DataFrame, order: Sequence[str], number: str, cells: Cells, best: str = "") -> alt.LayerChart:
    """Draw a column of numbers as cells at `row` and `column`, in the given order, with the best arm's row outlined.

    Up to a dozen arms have their numbers on them. Where there are too many arms to read their names, only the best
    one's is there.
    """
    step = max(4, min(44, 520 // len(order)))
    look: Options = {"ticks": False, "domain": False, "labelPadding": 5, "labelFontSize": 11}
    readable, numbered = step >= 13, len(order) <= NUMBERED
    shown = "datum.label" if readable else f"datum.value == {json.dumps(best)} ? datum.label : ''"
    turned = -45 if max(map(len, order)) * 6 > step else 0
    scale = alt.Scale(domain=list(order))
    above = alt.Axis(orient="top", labelAngle=turned, labels=readable, **look)
    x = alt.X("column:N", title=None, scale=scale, axis=above)
    y = alt.Y("row:N", title=None, scale=scale, axis=alt.Axis(labelExpr=shown, **look))
    if numbered:
        text = pl.Series("text", map(cells.text, rows[number]), dtype=pl.String)
        rows = rows.with_columns(text, ink=pl.Series("white" if cells.dark(n) else "black" for n in rows[number]))
    chart = alt.Chart(table(rows)).encode(x, y)
    layers = [chart.mark_rect().encode(cells.colour, tooltip=["row:N", "column:N", f"{number}:Q"])]
    if numbered:
        ink = alt.condition("datum.ink == 'white'", alt.value("white"), alt.value("black"))
        layers.append(chart.mark_text(fontSize=11).encode(text="text:N", color=ink))
    if best:
        outline = alt.Chart(values([{"row": best}])).mark_rect(fill=None, stroke="black", strokeWidth=min(2, step / 6))
        layers.append(outline.encode(y, x=alt.value(0), x2=alt.value("width")))
    return layered(*layers, width=alt.Step(step), height=alt.Step(step))


def layered(*layers: alt.Chart | alt.LayerChart, **options: object) -> alt.LayerChart:
    """Draw layers on top of one another; none of them may have facets."""
    chart = alt.layer(*layers, **options)
    assert isinstance(chart, alt.LayerChart)
    return chart


class Rows(alt.Data):
    """Rows that all copies of a chart share: Altair copies a chart at every step of building it, row by row."""

    _class_is_valid_at_instantiation = False  # they are validated with the chart

    def __deepcopy__(self, memo: object) -> "Rows":
        return self


def values(rows: pl.DataFrame | Iterable[Mapping[str, object]]) -> alt.Data:
    """Embed rows in the chart. Altair's limit of 5,000 rows does not apply."""
    rows = rows.to_dicts() if isinstance(rows, pl.DataFrame) else list(rows)
    return Rows(values=rows)  # type: ignore[no-untyped-call]


def table(rows: pl.DataFrame) -> alt.Data:
    """Embed the rows of a frame as text, because Altair validates `values` one by one, which is slow."""
    return alt.Data(values=rows.write_csv(), format=alt.CsvDataFormat(type="csv"))


def side_by_side(panels: Mapping[str, alt.LayerChart]) -> alt.LayerChart | alt.ConcatChart:
    """Arrange panels with their headings, three in a row, with one legend. A single panel gets no heading."""
    if len(panels) == 1:
        return next(iter(panels.values()))
    for heading, panel in panels.items():
        panel.title = alt.TitleParams(heading, fontSize=12, anchor="middle", offset=8)
    return alt.concat(*panels.values(), columns=COLUMNS)  # colours and shapes are shared, axes are not


def titled(chart: Drawn, title: str, subtitle: str | Sequence[str] = "", description: str = "") -> Drawn:
    """Finish a chart: give it a title, subtitle, description for screen readers and the common style, and return it."""
    below = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    heading = alt.TitleParams(title, subtitle=[line for line in below if line], anchor="start")
    said = description or ". ".join([title, *heading.subtitle])
    config = alt.Config(
        font="Helvetica, Arial, sans-serif",
        background="white",
        title=alt.TitleConfig(fontSize=14, subtitleFontSize=11, subtitleColor="#444444", offset=12),
        axis=alt.AxisConfig(
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#E6E6E6", labelFlush=False
        ),
        legend=alt.LegendConfig(
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", symbolSize=80, labelLimit=260
        ),
        header=alt.HeaderConfig(labelFontSize=12, titleFontSize=12, labelFontWeight="bold", titleFontWeight="normal"),
        view=alt.ViewConfig(stroke="#CCCCCC"),
    )
    for name, value in {"title": heading, "description": said, "config": config}.items():
        setattr(chart, name, value)  # `properties` and `configure` would copy the chart at each step
    return chart


def save(chart: alt.TopLevelMixin, path: str | Path, *, scale: float = 2.0) -> Path:
    """Write a chart as PNG, SVG, PDF, HTML (opens offline) or Vega-Lite JSON, by the path's ending."""
    target = Path(path)
    if not hasattr(chart, "to_dict"):
        raise InvalidInput(
            f"{cut(chart)} is not a chart: expected what a function of duels.figures returns, such as regret"
        )
    if not (isinstance(scale, int | float) and 0 < scale <= 20):
        raise InvalidInput(f"scale is {scale!r}: expected a number above 0 and up to 20 (2 is sharp on paper)")
    check_ending(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder {str(target.parent)!r}: {error.strerror or error}") from None
    kind = target.suffix.lower().removeprefix(".")
    options: dict[str, Options] = {
        "html": {"inline": True, "embed_options": {"renderer": "svg"}},  # a canvas says nothing to screen readers
        "png": {"scale_factor": scale},
    }
    with atomic_write(target) as unfinished:
        chart.save(str(unfinished), format=kind, **options.get(kind, {}))  # type: ignore[arg-type]
    return target


def check_ending(target: Path) -> None:
    """Raise unless the file name has an ending that figures can be saved with. Commands call it before they draw."""
    if target.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"cannot write a figure as {target.name!r}: expected a name ending in {', '.join(ENDINGS)}")
