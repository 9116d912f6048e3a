"""What charts show: their data, texts and legends, read off the definition or the drawing; results to draw."""

import io
import re
import struct
import zlib

import polars as pl

from duels.figures import charts
from duels.results import SCHEMA, Results


def spec_of(chart):
    """The chart as Vega-Lite; that figures are valid is tested for each of them once, which takes long."""
    return chart.to_dict(validate=False)


def svg_of(chart):
    """The chart as drawn, without the font that a file brings along."""
    return charts.draw_svg(spec_of(chart))


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def symbols(svg):
    """The legend as drawn: label, color and path of each entry."""
    drawn = re.findall(r'role-legend-symbol"[^>]*><path([^>]*)/>', svg)
    labels = re.findall(r'role-legend-label"[^>]*><text[^>]*>([^<]*)</text>', svg)
    assert all('opacity="1"' in symbol for symbol in drawn)
    assert not any('fill="#' in symbol for symbol in drawn)  # marks are hollow
    found = [(re.search(r' stroke="([^"]*)"', symbol)[1], re.search(r' d="([^"]*)"', symbol)[1]) for symbol in drawn]
    return [(label, *look) for label, look in zip(labels, found, strict=True)]


def legend(chart):
    return symbols(svg_of(chart))


def pixels(path):
    """Width, height and how many different rows of pixels a PNG has."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    place, packed = 8, b""
    while place < len(data):
        (length,), kind = struct.unpack(">I", data[place : place + 4]), data[place + 4 : place + 8]
        packed += data[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += 12 + length
    raw = zlib.decompress(packed)
    stride = len(raw) // height
    return width, height, len({raw[k * stride : (k + 1) * stride] for k in range(height)})


def results_of(*rows, arms=2):
    """Results of (problem, policy, horizon, t, regrets, correct), a row for each run's regret."""
    columns = {name: [] for name in SCHEMA}
    for problem, policy, horizon, t, regrets, *correct in rows:
        for run, regret in enumerate(regrets):
            right = correct[0][run] if correct else True
            row = (problem, arms, policy, horizon, run, t, regret, 0.0, 0.0, t, 0, bool(right), None)
            for name, value in zip(SCHEMA, row, strict=True):
                columns[name].append(value)
    return Results(pl.DataFrame(columns, schema=SCHEMA))


ONE_HORIZON = results_of(
    ("m", "rucb", 100, 1, [0.0, 0.0]),
    ("m", "rucb", 100, 10, [0.0, 4.0]),
    ("m", "rucb", 100, 100, [3.0, 9.0]),
    ("m", "btm", 100, 1, [0.5, 0.5]),
    ("m", "btm", 100, 10, [1.0, 2.0]),
    ("m", "btm", 100, 100, [10.0, 30.0]),
)

# btm was run with horizons 10 and 100. Its runs of horizon 100 pass t = 10 with other regrets: these do not count.
HORIZONS = results_of(
    ("m", "rucb", 100, 1, [1.0, 1.0], [0, 0]),
    ("m", "rucb", 100, 10, [2.0, 4.0], [0, 1]),
    ("m", "rucb", 100, 50, [5.0, 6.0], [1, 0]),
    ("m", "rucb", 100, 100, [7.0, 9.0], [1, 1]),
    ("m", "btm", 10, 1, [0.1, 0.1], [0, 0]),
    ("m", "btm", 10, 10, [3.0, 5.0], [1, 0]),
    ("m", "btm", 100, 10, [99.0, 99.0], [1, 1]),
    ("m", "btm", 100, 100, [20.0, 40.0], [0, 0]),
)

SIMPLE = Results(HORIZONS.frame.with_columns(simple_regret="regret"))


walked = {}  # by id: each chart, so that its id stays its own, with its parts


def parts(chart):
    """Each layer of a chart as (mark, field on y, rows), panels one after the other."""

    def walk(spec, data=None):
        data = spec.get("data", data)  # layers of the same data share it
        for inner in (*spec.get("layer", ()), *spec.get("concat", ())):
            yield from walk(inner, data)
        if "mark" in spec:
            found = data["values"]
            rows = pl.read_csv(io.StringIO(found), infer_schema=False).to_dicts() if isinstance(found, str) else found
            yield spec["mark"], spec["encoding"].get("y", {}).get("field"), rows

    if id(chart) not in walked:
        walked[id(chart)] = chart, list(walk(spec_of(chart)))
    return walked[id(chart)][1]


def drawn(chart, field, mark="line"):
    """The rows of the layers with that mark and that field on y; a `point` is hollow, a `full` one is not."""
    return [row for kind, y, rows in parts(chart) if mark_of(kind) == mark and y == field for row in rows]


def mark_of(kind):
    return "full" if kind["type"] == "point" and kind.get("fill") != "white" else kind["type"]


def line_of(chart, field, policy, mark="line", problem="m"):
    rows = [row for row in drawn(chart, field, mark) if (row["policy"], row["problem"]) == (policy, problem)]
    return {row["t"]: row[field] for row in rows}


def domain(chart, axis):
    specs = [spec_of(chart)]
    while "encoding" not in specs[0] or axis not in specs[0]["encoding"]:
        specs = [*specs[0].get("concat", ()), *specs[0].get("layer", ()), *specs[1:]]
    return specs[0]["encoding"][axis]["scale"]["domain"]


def heading(chart):
    spec = spec_of(chart)
    return spec["title"]["text"], spec["title"]["subtitle"]
