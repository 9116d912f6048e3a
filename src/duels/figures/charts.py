"""What all figures share: colors, axes, heat maps, titles, sizes, and how a figure is saved."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import altair as alt
import numpy as np
import polars as pl

from ..errors import InvalidInput, hundredths, percent, shorten
from ..files import atomic_write
from .look import PLAIN, AxisLook, Style, with_font

Drawn = TypeVar("Drawn", bound=alt.TopLevelMixin)  # any kind of chart
Options = dict[str, Any]  # keyword arguments of Altair's classes
Layered = list[alt.Chart | alt.LayerChart]

VERMILION, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GRAY = "#E69F00", "#56B4E9", "#000000", "#767676"
WIDTH, HEIGHT = 360, 260
COLUMNS = 3  # panels in a row
NUMBERED = 60  # the most arms whose cells have names and numbers
SMALL = 8  # points: the type in small cells
AROUND = 3  # the space around a number in its cell
CELLS = 520  # the width of a large heat map
LOWEST, SQUAT = 105, 80  # the least heights of a panel, and of one that stands below others
PAGE, OTHERS, BETWEEN = 640, 140, 44  # heights of a page, of titles and legends, and of what is between two panels
NARROWEST = 20  # the least width of a panel
NAME = 0.25  # of a figure's width, for the name of an arm
TRIES, CLOSE = 8, 1.5  # attempts to fit a figure into its width, and how many points less is close enough
ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")
GRADIENT = 160  # the width of a color scale in a legend
IS_POWER = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-9"
# 0.1, 1, 10, 1k, 10M, 1e9. (The format "~s" alone would print 100m for 0.1 and 1G for 1e9.)
NUMBER = (
    "datum.value > 999999999 ? replace(format(datum.value, '.0e'), '+', '') : "
    "datum.value >= 999.5 ? format(datum.value, '~s') : format(datum.value, '~g')"
)
POWERS = f"{IS_POWER} ? ({NUMBER}) : ''"


def axis_of(name: str, title: str, low: float, high: float, style: Style, usual: str = "log") -> Options:
    """Return the arguments of `alt.X` or `alt.Y` for an axis, with the range and the scale that were chosen for it.

    Args:
        name: x or y.
        title: The title, which may have another label.
        low: The least number to show. A linear axis begins at 0 or below.
        high: The largest number to show.
        style: The figure's style.
        usual: The scale if none was chosen: log or linear.
    """
    look: AxisLook = getattr(style, name)
    scale = look.scale or usual
    low, high = look.range or (low if scale == "log" else min(low, 0), high)
    if scale == "linear":
        domain = alt.Scale(domain=[low, high if high > low else low + 1], nice=False)
        return {"title": style.label(title), "scale": domain, "axis": alt.Axis(tickCount=5, labelExpr=NUMBER)}
    if low <= 0:
        raise InvalidInput(
            f"{name}_range begins at {low:g}: expected a number above 0 for a logarithmic axis, "
            f"or {name}_scale='linear'"
        )
    return log_axis(style.label(title), low, high, exact=look.range is not None)


def log_axis(title: str, low: float | None = None, high: float | None = None, exact: bool = False) -> Options:
    """Return the arguments of `alt.X` or `alt.Y` for a logarithmic axis labeled at powers of ten.

    Give its ends where they may be less than two powers of ten apart: such an axis has 1, 2 and 5 times the powers and
    reaches up to the next of these, unless its ends are `exact`.
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
    if powers < 2 and exact:
        axis = {"labelExpr": NUMBER, "labelOverlap": True}
    elif powers < 2:
        around, alone = steps(low / 10, high * 10), low == high  # a single number gets space on both sides
        low = max(step for step in around if step < low or (step == low and not alone))
        high = min(step for step in around if step > high or (step == high and not alone))
        axis = {"labelExpr": NUMBER, "labelOverlap": True}
    ticks = steps(low, high, (1, 2, 5) if powers < 2 else range(1, 10) if powers < 8 else (1,))
    axis["values"] = ticks if len(ticks) > 1 else [low, high]
    return {"title": title, "scale": alt.Scale(domain=[low, high], **scale), "axis": alt.Axis(**axis)}


def steps(low: float, high: float, digits: Iterable[int] = (1, 2, 5)) -> list[float]:
    """Return the digits times powers of ten between two numbers, both included."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step for power in powers for digit in digits if low <= (step := float(f"{digit}e{power}")) <= high]


def short(number: float, digits: int = 3) -> str:
    """Format a number with three digits: 0.15, 12.5, 870, 2.41k, 1.3M; or with fewer."""
    size, unit = (1e6, "M") if number >= 999_500 else (1e3, "k") if number >= 999.5 else (1, "")
    scaled = number / size
    return f"{scaled:.0f}{unit}" if scaled >= 10**digits else f"{scaled:.{digits}g}{unit}"


def span(numbers: pl.Series) -> str:
    """`1,000`, or `10 to 1,000` if they differ."""
    least, most = (f"{end:,}" for end in np.sort(numbers.to_numpy())[[0, -1]])
    return most if least == most else f"{least} to {most}"


def count(number: int | str, noun: str) -> str:
    """`1 run`, `20 runs`, `5 to 20 runs`."""
    return f"{number} {noun}{'' if str(number) == '1' else 's'}"


class Cells(NamedTuple):
    """How the cells of a heat map show a number."""

    color: alt.Color
    text: Callable[[float], str]
    brief: Callable[[float], str]  # in small cells
    dark: Callable[[float], bool]  # whether the color is so dark that text on it must be white


def probabilities(column: str, reach: float, title: Sequence[str], style: Style = PLAIN) -> Cells:
    """Show probabilities up to `reach` from ½: blue above ½, white at ½, vermilion below."""
    ends = [0.5 - reach, 0.5, 0.5 + reach]
    usual = [VERMILION, "#F7F7F7", BLUE]
    if style.colors and (isinstance(style.colors, Mapping) or len(style.colors) != len(usual)):
        raise InvalidInput(f"colors is {shorten(style.colors)}: expected three colors, for the least, ½ and the most")
    scale = alt.Scale(domain=ends, range=list(style.colors) or usual, interpolate="lab")
    shown = list(title) if style.width is None and style.legend != "bottom" else " ".join(title)
    legend = alt.Legend(title=shown, values=ends, format=".2f", **_scale_legend(style))
    color = alt.Color(f"{column}:Q", scale=scale, legend=legend)
    return Cells(color, hundredths, lambda p: str(percent(p)), lambda p: abs(p - 0.5) > 0.65 * reach)


def _scale_legend(style: Style) -> Options:
    """The options of a color scale: at the right, or below a figure that has a width or shall have it there."""
    if style.width is None and style.legend != "bottom":
        return {"gradientLength": GRADIENT}
    place: Options = {"orient": "bottom", "offset": 8, "titleLimit": style.width or CELLS, "titlePadding": 3}
    return place | {"gradientLength": GRADIENT / 2, "gradientThickness": 8}


def amounts(column: str, low: float, high: float, style: Style = PLAIN) -> Cells:
    """Show amounts on a logarithmic scale of at least one power of ten, darker for more."""
    high = max(high, 10 * low)
    powers = steps(low, high, (1,))
    labeled = powers if len(powers) > 1 else steps(low, high)
    if style.colors and (isinstance(style.colors, Mapping) or len(style.colors) < 2):
        raise InvalidInput(f"colors is {shorten(style.colors)}: expected a list of two or more, from few duels to many")
    shades: Options = {"range": list(style.colors)} if style.colors else {"scheme": "viridis", "reverse": True}
    scale = alt.Scale(type="log", domain=[low, high], **shades)
    legend = alt.Legend(labelExpr=NUMBER, values=labeled, **_scale_legend(style))
    color = alt.Color(f"{column}:Q", scale=scale, legend=legend)
    return Cells(color, short, lambda amount: short(amount, digits=2), lambda amount: amount > math.sqrt(low * high))


class Grid(NamedTuple):
    """The cells of a heat map.

    Attributes:
        step: The width and height of a cell.
        texts: The text in each cell; none if they do not fit.
        size: The size of its type.
        is_brief: Whether it is the brief form of the number.
    """

    step: float
    texts: Sequence[str] = ()
    size: float = SMALL
    is_brief: bool = False


def grid_of(
    arms: int, numbers: Iterable[float], cells: Cells, style: Style, width: float = CELLS, grow: bool = True
) -> Grid:
    """Choose the size of cells and what is in them. Up to 60 arms have numbers, which are brief in small cells.

    Args:
        arms: The number of arms.
        numbers: The numbers in the cells.
        cells: How they are shown.
        style: The figure's style.
        width: The width of all cells of a row.
        grow: Whether cells may be wider for their numbers to fit, if the figure has no width.
    """
    numbers = list(numbers)
    least = 1 if style.width is not None else SMALL * 1.25 if arms <= NUMBERED else 4
    step = max(least, min(44, width / arms if style.width is not None else width // arms))
    if arms > NUMBERED:
        return Grid(step)
    brief = list(map(cells.brief, numbers))
    for texts, size in ((list(map(cells.text, numbers)), style.text), (brief, SMALL)):
        if _widest(texts, size, style) + AROUND <= step:
            return Grid(step, texts, size, texts is brief)
    if style.width is not None or not grow:
        return Grid(step)
    return Grid(math.ceil(_widest(brief, SMALL, style)) + AROUND, brief, SMALL, True)


def _widest(texts: Iterable[str], size: float, style: Style) -> float:
    """The width of the longest text; all digits are as wide as 0."""
    return max((style.extent(text, size) for text in {re.sub(r"\d", "0", text) for text in texts}), default=0.0)


def heat_map(
    rows: pl.DataFrame,
    order: Sequence[str],
    number: str,
    cells: Cells,
    best: str = "",
    style: Style = PLAIN,
    grid: Grid | None = None,
) -> alt.LayerChart:
    """Draw a column of numbers as cells at `row` and `column`, in the given order, with the best arm's row outlined.

    Where there are too many arms to read their names, only the best one's is there.
    """
    step, texts, size, _ = grid or grid_of(len(order), rows[number], cells, style, grow=False)
    names_size = style.text if step >= 1.15 * style.text else SMALL
    look: Options = {"ticks": False, "domain": False, "labelPadding": 5, "labelFontSize": names_size}
    readable = step >= 1.15 * names_size
    turned = -45 if max(len(style.label(name)) for name in order) * 0.55 * names_size > step else 0
    heads, _ = label_of(order, style, 0.7 * step if turned else step)
    names = axis_of_arms(order, style, step)
    if not readable:
        names["labelExpr"] = f"datum.value == {json.dumps(best)} ? {names['labelExpr']} : ''"
    scale = alt.Scale(domain=list(order))
    above = alt.Axis(orient="top", labelAngle=turned, labels=readable, labelExpr=heads, labelOverlap=False, **look)
    x = alt.X("column:N", title=None, scale=scale, axis=above)
    y = alt.Y("row:N", title=None, scale=scale, axis=alt.Axis(labelOverlap=False, **names, **look))
    if texts:
        inks = ["white" if cells.dark(value) else "black" for value in rows[number]]
        rows = rows.with_columns(pl.Series("text", texts, dtype=pl.String), pl.Series("ink", inks, dtype=pl.String))
    chart = alt.Chart(table(rows)).encode(x, y)
    layers = [chart.mark_rect().encode(color=cells.color, tooltip=["row:N", "column:N", f"{number}:Q"])]
    if texts:
        # The usual colors are known; of others Vega knows how dark they are.
        dark = f"luminance(scale('color', datum.{number})) < 0.18" if style.colors else "datum.ink == 'white'"
        ink = alt.condition(dark, alt.value("white"), alt.value("black"))
        layers.append(chart.mark_text(fontSize=size).encode(text="text:N", color=ink))
    if best:
        outline = alt.Chart(values([{"row": best}])).mark_rect(fill=None, stroke="black", strokeWidth=min(2, step / 6))
        layers.append(outline.encode(y, x=alt.value(0), x2=alt.value("width")))
    return layer_charts(*layers, width=alt.Step(step), height=alt.Step(step))


def axis_of_arms(names: Iterable[str], style: Style, room: float, share: float = NAME) -> Options:
    """Return the options of a y axis with the names of arms. The arguments are those of `label_of`."""
    label, wrapped = label_of(names, style, room, share)
    if not wrapped:
        return {"labelExpr": label}
    # Vega would put the first of two lines in the middle.
    middle = alt.condition(f"length({label}) > 1", alt.value("bottom"), alt.value("middle"))
    return {"labelExpr": label, "labelBaseline": middle}


def label_of(names: Iterable[str], style: Style, room: float, share: float = NAME) -> tuple[str, bool]:
    """Return the expression for the labels of arms, and whether some are wrapped. That needs a figure with a width.

    Args:
        names: The arms.
        style: The figure's style.
        room: The space for the lines of a label; if some label needs more lines, none is wrapped.
        share: Of the width of the figure, for a label.
    """
    texts = {name: style.label(name) for name in names}
    lines = {name: style.wrap(text, style.text, (style.width or 0) * share) for name, text in texts.items()}
    if 1 < max(map(len, lines.values())) <= room / (1.2 * style.text):
        return f"{json.dumps(lines, ensure_ascii=False)}[datum.label]", True
    same = all(name == text for name, text in texts.items())
    return "datum.label" if same else f"{json.dumps(texts, ensure_ascii=False)}[datum.label]", False


def layer_charts(*layers: alt.Chart | alt.LayerChart, **options: object) -> alt.LayerChart:
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


def side_by_side(
    panels: Iterable[tuple[str, alt.LayerChart]], style: Style = PLAIN, columns: int | None = None
) -> alt.LayerChart | alt.ConcatChart:
    """Arrange panels with their headings, by default up to three in a row, with one legend.

    A single panel gets no heading, and neither does a column of panels of one problem.
    """
    panels = list(panels)
    if len(panels) == 1:
        return panels[0][1]
    columns = columns or style.columns(len(panels), COLUMNS)
    named = len([heading for heading, _ in panels if heading]) > 1
    for heading, panel in panels if named else ():
        lines = style.wrap(heading, style.large, (style.width or 0) / columns - 20, bold=True)
        if heading:
            panel.title = alt.TitleParams(
                lines if len(lines) > 1 else heading, fontSize=style.large, anchor="middle", offset=8
            )
    spacing: Options = {} if style.width is None else {"spacing": 10}
    return alt.concat(*(panel for _, panel in panels), columns=columns, **spacing)  # they share colors and shapes


def fit(draw: Callable[[float], Drawn], usual: float, style: Style, columns: int = 1) -> Drawn:
    """Draw a figure whose panels have their usual width, or so that the whole figure has the width of its style.

    Args:
        draw: Draws the finished figure with panels of a width.
        usual: The width of a panel if the style has none.
        style: The figure's style.
        columns: How many panels stand side by side.

    Raises:
        InvalidInput: If the figure does not fit into the width.
    """
    if style.width is None:
        return draw(usual)
    panel = (style.width - 50 * columns) / columns
    fitting, width = None, 0.0
    for _ in range(TRIES):
        before, chart = width, draw(panel)
        width = measure(chart)[0]
        excess = width - style.width
        if excess <= 0:
            fitting = chart
        if -CLOSE <= excess <= 0 or (excess < 0 and width == before):  # the latter is as wide as it can be
            break
        panel -= (excess + CLOSE / 2) / columns
        if panel < NARROWEST:
            break
    if fitting is None:
        raise InvalidInput(
            f"the figure does not fit into {style.width:g} points: expected a larger width, or shorter labels"
        )
    return fitting


def height_of(width: float, usual: tuple[float, float], style: Style, rows: int = 1) -> float:
    """Return the height of a panel of this width: in the proportion of its usual size, or lower to fit on a page.

    Args:
        width: The width of the panel.
        usual: The usual width and height.
        style: The figure's style.
        rows: How many panels stand below one another.
    """
    if style.width is None:
        return usual[1]
    lowest, most = (LOWEST, usual[1]) if rows == 1 else (SQUAT, share_of_page(rows))
    return max(lowest, min(usual[1], most, round(width * usual[1] / usual[0])))


def share_of_page(rows: int) -> float:
    """Return the height of each of several panels below one another that fit on a page with their headings."""
    return (PAGE - OTHERS) / rows - BETWEEN


def measure(chart: alt.TopLevelMixin) -> tuple[float, float]:
    """Return the width and height of a chart in points, as it is drawn."""
    svg = draw_svg(chart.to_dict(validate=False))
    width, height = re.findall(r'\b(?:width|height)="([\d.]+)"', svg)[:2]
    return float(width), float(height)


def add_title(
    chart: Drawn, title: str, subtitle: str | Sequence[str] = "", description: str = "", style: Style = PLAIN
) -> Drawn:
    """Finish a chart: give it a title, subtitle, description for screen readers and the common style, and return it.

    Background and text have colors of their own, so that neither a theme nor a dark page makes the chart unreadable.
    """
    below = [line for line in ([subtitle] if isinstance(subtitle, str) else subtitle) if line]
    title = title if style.title is None else style.title
    said = description or ". ".join([title, *below])
    style = replace(style, font=style.font_of("".join([title, *below])))
    shown = style.wrap(title, style.heading, bold=True)
    lines = [part for line in below for part in style.wrap(line, style.text)]
    heading = alt.TitleParams(shown if len(shown) > 1 else title, subtitle=lines, anchor="start")
    parts: Options = {"title": heading if title else alt.Undefined, "description": said, "config": _config(style)}
    for name, value in parts.items():
        setattr(chart, name, value)  # `properties` and `configure` would copy the chart at each step
    return chart


def _config(style: Style) -> alt.Config:
    """The common style, with every color that a theme could change."""
    guide: Options = {"labelFontSize": style.text, "titleFontSize": style.large, "titleFontWeight": "normal"}
    guide |= {"labelColor": BLACK, "titleColor": BLACK}
    return alt.Config(
        font=style.font,
        background="white",
        title=alt.TitleConfig(
            fontSize=style.heading,
            color=BLACK,
            subtitleFontSize=style.text,
            subtitleColor="#444444",
            offset=12,
            frame="bounds",
        ),
        axis=alt.AxisConfig(
            gridColor="#E6E6E6", domainColor="#888888", tickColor="#888888", labelFlush=False, labelLimit=260, **guide
        ),
        legend=alt.LegendConfig(symbolSize=80, labelLimit=260, **guide),
        header=alt.HeaderConfig(**guide | {"labelFontSize": style.large, "labelFontWeight": "bold"}),
        view=alt.ViewConfig(stroke="#CCCCCC"),
    )


def save(chart: alt.TopLevelMixin, path: str | Path, *, scale: float = 2.0) -> Path:
    """Write a chart as PNG, SVG, PDF, HTML (opens offline) or Vega-Lite JSON, by the path's ending."""
    target = Path(path)
    if not hasattr(chart, "to_dict"):
        raise InvalidInput(
            f"{shorten(chart)} is not a chart: expected what a function of duels.figures returns, such as regret"
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
        if kind == "svg":
            unfinished.write_text(with_font(draw_svg(chart.to_dict(validate=False))), encoding="utf-8")
        else:
            chart.save(str(unfinished), format=kind, **options.get(kind, {}))  # type: ignore[arg-type]
    return target


def draw_svg(spec: Options) -> str:
    """Return a chart in Vega-Lite as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(as_json(spec)))


def as_json(spec: Options) -> str:
    """Return a chart in Vega-Lite as text, without infinite numbers and the control characters that XML cannot have."""
    finite = json.loads(json.dumps(spec), parse_constant=lambda _: None)
    return re.sub(r"\\u00[01][0-9a-f]", "\N{REPLACEMENT CHARACTER}", json.dumps(finite, ensure_ascii=False))


def check_ending(target: Path) -> None:
    """Raise unless the file name has an ending that figures can be saved with. Commands call it before they draw."""
    if target.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"cannot write a figure as {target.name!r}: expected a name ending in {', '.join(ENDINGS)}")
