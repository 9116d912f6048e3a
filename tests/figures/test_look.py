"""The options of figures: title, labels, colours, width, font, band and legend, of every figure, and their errors."""

import re
import struct

import pytest
from test_charts import texts
from test_figures import HORIZONS, ONE_HORIZON, drawn, line_of, results_of
from test_illustrations import BORDA, named

import duels
from duels import figures
from duels.errors import InvalidInput, UnknownName
from duels.figures import charts, fonts, legends
from duels.figures.look import BANDS, WIDTHS, Look, style_of
from duels.results import Results

RUN = duels.simulate("cyclic-4", "rucb", horizon=60, runs=3, checkpoints=range(1, 61), record=["pairs", (0, 1)])
TOLD = duels.results.combine(
    [duels.simulate("cyclic-4", "savage", horizon=horizon, runs=3) for horizon in (50, 100)]
    + [duels.simulate("cyclic-4", "rucb", horizon=100, runs=3)]
)
VOTES = [("gpt", "llama", "left")] * 9 + [("llama", "gpt", "left"), ("llama", "a model of 70B", "tie")] * 4
VOTES += [("a model of 70B", "gpt", "left")] * 2
EVERY = {
    "regret": lambda **look: figures.regret(HORIZONS, **look),
    "accuracy": lambda **look: figures.accuracy(HORIZONS, **look),
    "condorcet_probability": lambda **look: figures.condorcet_probability("cyclic-4", **look),
    "preferences": lambda **look: figures.preferences("cyclic-4", **look),
    "pairs": lambda **look: figures.pairs(RUN, "cyclic-4", **look),
    "intervals": lambda **look: figures.intervals(RUN, "cyclic-4", **look),
    "state": lambda **look: figures.state(RUN, "cyclic-4", **look),
    "regret_quantiles": lambda **look: figures.regret_quantiles(RUN, "cyclic-4", **look),
    "gamma": lambda **look: figures.gamma(Results(named(2, [0, 0, 1])), BORDA, **look),
    "horizons": lambda **look: figures.horizons(TOLD, **look),
    "ratings": lambda **look: figures.ratings(duels.ratings(VOTES), **look),
}


def svg_of(chart, folder):
    return figures.save(chart, folder / "figure.svg").read_text()


def sizes(svg):
    """The sizes of all type in a figure."""
    return {float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)}


def test_every_figure_is_here():
    drawing = {name for name in figures.__all__ if not name.endswith("_points")} - {"Look", "save", "bounds_in_sight"}
    assert set(EVERY) == drawing


FEW = ("regret", "state")  # one of each kind of layout


@pytest.mark.parametrize("name", [pytest.param(one, marks=[] if one in FEW else pytest.mark.deep) for one in EVERY])
def test_every_figure_fits_a_column(name, tmp_path):
    chart = EVERY[name](width="column")
    width, height = charts.measure(chart)
    assert width <= WIDTHS["column"]
    assert width > WIDTHS["column"] - 3 or name in ("preferences", "pairs")  # cells of four arms are 44 points at most
    assert 100 < height < 700
    assert min(sizes(svg_of(chart, tmp_path))) >= 8


@pytest.mark.deep
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("width", [200, 400, "page"])
def test_every_figure_fits_other_widths(name, width):
    assert charts.measure(EVERY[name](width=width))[0] <= WIDTHS.get(width, width)


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_takes_a_title_and_a_font(name, tmp_path):
    chart = EVERY[name](title="Mine", font="monospace").to_dict(validate=False)
    assert chart["title"]["text"] == "Mine"
    assert chart["config"]["font"] == "monospace"
    bare = EVERY[name](title="").to_dict(validate=False)
    assert "title" not in bare  # nor a subtitle: a caption says it
    assert len(bare["description"]) > 20


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_refuses_what_it_cannot_show(name):
    for look, message in [
        ({"titel": "x"}, f"unknown option of {name} 'titel'. Did you mean 'title'?"),
        ({"title": 3}, "title is 3: expected text"),
        ({"labels": ["RUCB"]}, r"labels is ['RUCB']: expected a dict of texts by name"),
        ({"labels": {"rucb": 1}}, "expected a dict of texts by name"),
        ({"width": "wide"}, "width is 'wide': expected 'column', 'page' or a number of points from 160 to 2,000"),
        ({"width": 10}, "width is 10: expected"),
        ({"width": True}, "width is True: expected"),
        ({"band": "sd"}, "band is 'sd': expected 'ci', 'quantiles', 'minmax' or None"),
        ({"legend": "top"}, "legend is 'top': expected 'direct' or 'bottom'"),
        ({"font": "No Such Font"}, "the font 'No Such Font' is not installed: expected one that is, such as "),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            EVERY[name](**look)


def test_colours_that_are_none():
    for colors in ("#123456", 3, {"rucb": "redd"}, ["#12345"], [3]):
        with pytest.raises(InvalidInput, match=r"expected a dict of colours by name|is not a colour: expected one"):
            figures.regret(HORIZONS, colors=colors)
    with pytest.raises(InvalidInput, match="colors was given, but those of intervals have fixed meanings"):
        EVERY["intervals"](colors=["red"])
    for colors in ({"rucb": "red"}, ["red", "blue"]):
        with pytest.raises(InvalidInput, match="expected three colours, for the least, ½ and the most"):
            EVERY["preferences"](colors=colors)


def test_bands_and_legends_that_a_figure_does_not_have():
    with pytest.raises(InvalidInput, match="accuracy has no band 'quantiles': expected 'ci', or None"):
        figures.accuracy(HORIZONS, band="quantiles")
    with pytest.raises(InvalidInput, match="preferences has no band 'ci': leave it out"):
        EVERY["preferences"](band="ci")
    with pytest.raises(InvalidInput, match="legend is 'direct', but pairs has no lines to label"):
        EVERY["pairs"](legend="direct")


def test_names_of_policies(tmp_path):
    shown = texts(svg_of(figures.regret(HORIZONS), tmp_path))
    assert {"RUCB", "Beat the Mean"} <= set(shown)
    shown = texts(svg_of(figures.regret(HORIZONS, labels={"rucb": "Ours", "dts": "absent"}), tmp_path))
    assert "Ours" in shown
    assert not {"RUCB", "absent"} & set(shown)
    rows = drawn(figures.regret(HORIZONS, labels={"rucb": "Ours"}), "regret")
    assert {row["policy"] for row in rows} == {"rucb", "btm"}  # data keep their names


def test_names_of_arms(tmp_path):
    shown = texts(svg_of(figures.preferences("cyclic-4", labels={"0": "the best"}), tmp_path))
    assert shown.count("the best") == 2  # its row and its column
    assert "0" not in shown
    assert "► the best" in svg_of(figures.state(RUN, "cyclic-4", labels={"0": "the best"}), tmp_path)


def test_colours_by_name_and_in_order():
    names = ["rucb", "btm"]
    for colors, expected in [
        ({"btm": "navy"}, [charts.VERMILION, "navy"]),
        (["#111", "#222222", "red"], ["#111", "#222222"]),
        (["#111"], ["#111", charts.GREEN]),
    ]:
        scale = figures.regret(HORIZONS, colors=colors).to_dict()["layer"][0]["encoding"]["color"]["scale"]
        assert scale["domain"][:2] == names
        assert scale["range"][:2] == expected


def test_bands_by_hand(tmp_path):
    # Regrets of 3 and 9: their mean is 6, the quartiles 4.5 and 7.5. The interval of the mean is 6 ± 12.706 · 3.
    cases = {"quantiles": (4.5, 7.5), "ci": (None, 6 + 12.7062 * 3)}
    for band, (low, high) in cases.items():
        chart = figures.regret(ONE_HORIZON, band=band)
        edges = {"quantiles": ("regret_q25", "regret_q75"), "ci": ("regret_low", "regret_high")}[band]
        (row,) = [row for row in drawn(chart, edges[0], "area") if (row["policy"], row["t"]) == ("rucb", 100)]
        floor = chart.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"][0]
        assert row[edges[0]] == pytest.approx(floor if low is None else low)  # −32 has no place on the axis
        assert row[edges[1]] == pytest.approx(high, rel=1e-4)
        assert drawn(chart, "regret_min") == []
        assert BANDS[band] in texts(svg_of(chart, tmp_path))
    bare = figures.regret(ONE_HORIZON, band=None)
    assert drawn(bare, "regret_min") == []
    assert line_of(bare, "regret", "rucb") == {1: None, 10: 2.0, 100: 6.0}


def test_bands_of_horizons():
    for band, columns in {"minmax": ("least", "most"), "quantiles": ("q25", "q75"), "ci": ("low", "high")}.items():
        rows = drawn(figures.horizons(TOLD, band=band), columns[0], "area")
        assert {row["label"] for row in rows} == {"T = 50", "T = 100", "rucb"}
    points = figures.horizon_points(TOLD).filter(label="rucb", t=100).row(0, named=True)
    summary = TOLD.summarise().filter(policy="rucb", t=100).row(0, named=True)
    for mine, theirs in {"least": "min", "most": "max", "q25": "q25", "low": "low", "high": "high"}.items():
        assert points[mine] == pytest.approx(summary[f"regret_{theirs}"])


def test_names_at_the_ends_of_lines(tmp_path):
    chart = figures.regret(HORIZONS, legend="direct")
    svg = svg_of(chart, tmp_path)
    assert texts(svg).count("RUCB") == texts(svg).count("Beat the Mean") == 1
    listed = re.findall(r'role-legend-label"[^>]*><text[^>]*>([^<]*)</text>', svg)
    assert listed == ["hollow: runs with just this horizon", "filled: to tell lines apart", "best and worst run"]
    labels = [layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "text"]
    places = {layer["data"]["values"][0]["name"]: layer["encoding"]["y"]["value"] for layer in labels}
    low, high = chart.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"]
    for name, regret in {"RUCB": 8, "Beat the Mean": 30}.items():
        axis = charts.log_axis("regret", low, high)
        assert places[name] == pytest.approx(legends.pixel(axis, regret, charts.HEIGHT))
    assert {layer["mark"]["color"] for layer in labels} == {charts.VERMILION, charts.GREEN}
    alone = figures.regret(results_of(("m", "rucb", 10, 1, [1.0]), ("m", "rucb", 10, 10, [2.0])), legend="direct")
    assert "role-legend" not in svg_of(alone, tmp_path)


def test_where_a_value_stands():
    axis = charts.log_axis("t", 1, 100)
    assert [legends.pixel(axis, value, 200) for value in (100, 10, 1)] == pytest.approx([0, 100, 200])
    axis = {"scale": charts.alt.Scale(domain=[0, 1])}
    assert [legends.pixel(axis, value, 200) for value in (1, 0.25, 0)] == pytest.approx([0, 150, 200])


def test_names_are_moved_apart():
    assert legends.spread([10, 50, 90], 10, 100) == [10, 50, 90]
    assert legends.spread([50, 50], 10, 100) == [45, 55]  # as little as possible, both alike
    assert legends.spread([48, 52, 80], 10, 100) == [45, 55, 80]
    assert legends.spread([0, 0, 5], 10, 100) == [0, 10, 20]
    assert legends.spread([99, 100], 10, 100) == [90, 100]
    assert legends.spread([1, 2, 3], 10, 5) == [0, 10, 20]  # there is not enough space
    assert legends.spread([], 10, 5) == []


def test_long_titles_are_wrapped(tmp_path):
    title = "A title that is much too long for one line of a column in a paper"
    spec = figures.regret(HORIZONS, title=title, width="column").to_dict()
    assert " ".join(spec["title"]["text"]) == title
    assert len(spec["title"]["text"]) > 1
    assert figures.regret(HORIZONS, title=title).to_dict()["title"]["text"] == title


def test_panels_stand_below_one_another_in_a_column():
    rows = [(name, "rucb", 10, t, [1.0 * t, 2.0 * t]) for name in ("a", "b", "c", "d") for t in (1, 10)]
    assert figures.regret(results_of(*rows), width="column").to_dict()["columns"] == 1
    style = [style_of("regret", {"width": width}) for width in (240, 400, 500, None)]
    assert [one.columns(4, 3) for one in style] == [1, 2, 3, 3]


def test_a_figure_that_cannot_be_so_narrow():
    many = results_of(("m" * 20, "x" * 90, 10, 1, [1.0]), ("m" * 20, "x" * 90, 10, 10, [2.0]))
    with pytest.raises(InvalidInput, match="the figure does not fit into 160 points: expected a larger width"):
        figures.regret(many, width=160, legend="direct")


def test_fonts(monkeypatch):
    assert fonts.is_installed("sans-serif")
    assert fonts.is_installed("No Such Font, serif")
    assert not fonts.is_installed("No Such Font")
    assert not fonts.is_installed(" ,")
    assert "serif" in fonts.installed()
    monkeypatch.setattr(fonts, "installed", lambda: ("Times Ten", "Courier", "Timer", "Gill Sans"))
    monkeypatch.setattr(fonts, "NAMED", 2)
    with pytest.raises(InvalidInput, match=r"the font 'Tines' is not installed: .*, such as Timer, Times Ten"):
        fonts.check_font("Tines")


def test_families_of_a_font_file(tmp_path):
    name = "Möbius".encode("utf-16-be")
    entries = [(1, 0, 0, 1, 3, 0, b"Mac"), (3, 1, 0x409, 1, len(name), 3, name), (3, 1, 0x409, 2, 2, 0, b"")]
    records = b"".join(struct.pack(">HHHHHH", *entry[:6]) for entry in entries)
    table = struct.pack(">HHH", 0, 3, 6 + len(records)) + records + b"Mac" + name
    head = struct.pack(">IHHHH", 0x00010000, 1, 0, 0, 0)
    (tmp_path / "a.ttf").write_bytes(head + struct.pack(">4sIII", b"name", 0, 28, len(table)) + table)
    (tmp_path / "b.ttf").write_bytes(b"not a font")
    assert list(fonts._families(tmp_path / "a.ttf")) == ["Möbius"]
    assert list(fonts._families(tmp_path / "b.ttf")) == []
    assert list(fonts._families(tmp_path / "absent.ttf")) == []


def test_characters_that_the_usual_font_may_lack(monkeypatch):
    monkeypatch.setattr(fonts, "is_installed", lambda font: font == fonts.SPARE)
    assert fonts.font_for("10²¹¹", "Arial") == "Arial"
    assert fonts.font_for("10⁴", "Arial") == "DejaVu Sans, Arial"
    monkeypatch.setattr(fonts, "is_installed", lambda font: True)
    assert fonts.font_for("10⁴", "Arial") == "Arial"


def test_the_options_are_those_of_look():
    with pytest.raises(UnknownName):
        style_of("regret", {"size": 1})
    assert set(Look.__annotations__) == {"title", "labels", "colors", "width", "font", "band", "legend"}
    same = [figures.regret(ONE_HORIZON, **look).to_dict() for look in ({}, Look(), {"labels": {}, "width": None})]
    assert same[0] == same[1] == same[2]
