"""How every figure looks: colours, marks, axes, titles; and how it becomes a file.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; each policy also has a mark and a dash of
its own, so that a figure survives a black-and-white printer.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from .errors import InvalidInput
from .files import whole_file

VERMILION, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK, GREY = "#E69F00", "#56B4E9", "#F0E442", "#000000", "#767676"
USUAL = {"rucb": VERMILION, "savage": BLUE, "btm": GREEN}  # the paper's red, blue and green
SPARE = (PURPLE, ORANGE, SKY, BLACK, GREY, "#882255", "#44AA99", "#999933", "#6699CC", "#661100")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ([1, 0], [8, 3], [3, 2], [8, 3, 2, 3], [12, 4], [2, 4], [6, 2, 2, 2, 2, 2], [5, 5])
WIDTH, HEIGHT = 360, 260
ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")
# 0.1, 1, 10, 100, 1k, 10k, … at the powers of ten only. (The format "~s" alone would say 100m for 0.1.)
POWERS = (
    "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-9 ? "
    "(datum.value >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')) : ''"
)


def log_axis(title: str) -> dict[str, Any]:
    """The arguments of `alt.X` or `alt.Y` for a logarithmic axis with powers of ten on it."""
    return {
        "title": title,
        "scale": alt.Scale(type="log", nice=False),
        "axis": alt.Axis(labelExpr=POWERS, tickCount=8, labelOverlap=True),
    }


def colour_of(names: Iterable[str]) -> alt.Scale:
    """A colour for each policy: the paper's for its three, the next spare one for others."""
    domain = list(names)
    spare = iter(SPARE * (1 + len(domain) // len(SPARE)))
    taken: set[str] = set()
    colours = []
    for name in domain:
        usual = USUAL.get(name.partition(":")[0])
        colour = usual if usual is not None and usual not in taken else next(spare)
        taken.add(colour)
        colours.append(colour)
    return alt.Scale(domain=domain, range=colours)


def shape_of(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[SHAPES[k % len(SHAPES)] for k in range(len(names))])


def dash_of(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[DASHES[k % len(DASHES)] for k in range(len(names))])


def values(rows: Any) -> alt.Data:
    """Rows of a polars frame, or dicts, inside the chart; Altair's own limit of 5,000 rows does not apply."""
    return alt.Data(values=rows.to_dicts() if hasattr(rows, "to_dicts") else list(rows))


def titled(chart: Any, title: str, subtitle: str | Sequence[str] = "", description: str = "") -> Any:
    """The finished chart: title, what was run beneath it, a description for screen readers, and the common look."""
    below = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    heading = alt.TitleParams(title, subtitle=[line for line in below if line], anchor="start")
    said = description or ". ".join([title, *heading.subtitle])
    return (
        chart.properties(title=heading, description=said)
        .configure(font="Helvetica, Arial, sans-serif", background="white")
        .configure_title(fontSize=14, subtitleFontSize=11, subtitleColor="#444444", offset=12)
        .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#E6E6E6")
        .configure_legend(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", symbolSize=80, labelLimit=260)
        .configure_header(labelFontSize=12, titleFontSize=12, labelFontWeight="bold", titleFontWeight="normal")
        .configure_view(stroke="#CCCCCC")
    )


def save_chart(chart: Any, path: str | Path, *, scale: float = 2.0) -> Path:
    """Write a chart as PNG, SVG, PDF, HTML (opens offline) or Vega-Lite JSON, by the path's ending."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"cannot write a figure as {target.name!r}: expected a name ending in {', '.join(ENDINGS)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder {str(target.parent)!r}: {error.strerror or error}") from None
    kind = target.suffix.lower().removeprefix(".")
    options: dict[str, Any] = {"inline": True} if kind == "html" else {"scale_factor": scale} if kind == "png" else {}
    with whole_file(target) as unfinished:
        chart.save(str(unfinished), format=kind, **options)
    return target
