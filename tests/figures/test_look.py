"""The options of figures: title, labels, colors, width, font, band and legend, of every figure, and their errors."""

import functools
import re
import struct
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert
from chart_reader import (
    HORIZONS,
    ONE_HORIZON,
    SIMPLE,
    drawn,
    line_of,
    parts,
    pixels,
    results_of,
    spec_of,
    svg_of,
    texts,
)

import duels
from duels import figures
from duels.errors import InvalidInput, UnknownName
from duels.figures import charts, legends
from duels.figures import look as fonts
from duels.figures.listing import FIGURES
from duels.figures.look import BANDS, WIDTHS, Look, style_of
from duels.results import Results


@functools.cache
def run():
    return duels.simulate("cyclic-4", "rucb", horizon=60, runs=3, checkpoints=range(1, 61), record=["pairs", (0, 1)])


@functools.cache
def two_policies():
    played = [duels.simulate("cyclic-4", policy, horizon=20, record="pairs") for policy in ("rucb", "dts_plus")]
    return duels.results.combine(played)


VOTES = [("gpt", "llama", "left")] * 9 + [("llama", "gpt", "left"), ("llama", "a model of 70B", "tie")] * 4
VOTES += [("a model of 70B", "gpt", "left")] * 2
RATES = duels.rating.win_rates([("ada", "bob", "left")] * 3 + [("bob", "ada", "left"), ("bob", "cy", "tie")])
DATED = [{"left": "ada", "right": "bob", "winner": w, "time": t} for w in ("left", "right") for t in (1.70e9, 1.71e9)]
IN_TIME = duels.rating.ratings_over_time(DATED)
HEAT_MAPS = ("preferences", "pairs", "win_rates", "duel_counts")


EVERY = {
    "win_rates": lambda **look: figures.win_rates(RATES, **look),
    "duel_counts": lambda **look: figures.duel_counts(RATES, **look),
    "ratings_over_time": lambda **look: figures.ratings_over_time(IN_TIME, **look),
    "regret": lambda **look: figures.regret(HORIZONS, **look),
    "accuracy": lambda **look: figures.accuracy(HORIZONS, **look),
    "regret_and_accuracy": lambda **look: figures.regret_and_accuracy(HORIZONS, **look),
    "simple_regret": lambda **look: figures.simple_regret(SIMPLE, **look),
    "condorcet_probability": lambda **look: figures.condorcet_probability("cyclic-4", **look),
    "preferences": lambda **look: figures.preferences("cyclic-4", **look),
    "pairs": lambda **look: figures.pairs(run(), "cyclic-4", **look),
    "intervals": lambda **look: figures.intervals(run(), "cyclic-4", **look),
    "state": lambda **look: figures.state(run(), "cyclic-4", **look),
    "regret_quantiles": lambda **look: figures.regret_quantiles(run(), "cyclic-4", **look),
    "ratings": lambda **look: figures.ratings(duels.rate(VOTES), **look),
}


def sizes(svg):
    """The sizes of all type in a figure."""
    return {float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)}


def test_every_figure_is_here():
    drawing = {name for name in figures.__all__ if not name.endswith("_points")} - {"Look", "save", "bounds_in_sight"}
    assert set(EVERY) == drawing
    assert {*FIGURES} - {"bounds", "subsets"} <= set(EVERY)  # these two are ways of drawing others


BOUNDED = results_of(*(("m", policy, 100, t, [t / 2.0]) for policy in ("rucb:alpha=2", "rucb") for t in (1, 10, 100)))
MORE = {  # definitions that differ in kind from those of EVERY
    "bounds": lambda: figures.regret(BOUNDED, bounds=duels.PreferenceMatrix([[0.5, 0.6], [0.4, 0.5]])),
    "panels": lambda: figures.regret(measured(**NOTIONS)),
    "names at lines": lambda: figures.regret(HORIZONS, legend="direct", band="quantiles", width="column"),
    "tails": lambda: figures.intervals(run(), "cyclic-4", tails=True),
    "several heat maps": lambda: figures.pairs(two_policies(), "cyclic-4"),
}


@pytest.mark.parametrize("name", [*EVERY, *MORE])
def test_every_figure_is_valid_describes_itself_and_is_written(name, tmp_path):
    chart = (EVERY | MORE)[name]()
    spec = chart.to_dict()
    assert len(spec["description"]) > 60
    for text in (spec["title"]["text"], *spec["title"]["subtitle"], spec["description"]):
        assert not re.search(r"nan|None|null|\{|\}", text)
    path = figures.save(chart, tmp_path / "figure.png")
    assert path.stat().st_size > 1000
    width, height, rows = pixels(path)
    assert (width > 300, height > (100 if name == "ratings" else 300), rows > 50) == (True, True, True)
    assert figures.save(chart, tmp_path / "figure.pdf").stat().st_size > 1000


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_fits_a_column(name):
    chart = EVERY[name](width="column")
    width, height = charts.measure(chart)
    assert width <= WIDTHS["column"]
    assert width > WIDTHS["column"] - 3 or name in HEAT_MAPS  # cells of four arms are 44 points at most
    assert 100 < height < 700
    assert min(sizes(svg_of(chart))) >= 8


@pytest.mark.deep
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("width", [200, 400, "page"])
def test_every_figure_fits_other_widths(name, width):
    chart = EVERY[name](width=width)
    assert charts.measure(chart)[0] <= WIDTHS.get(width, width)
    assert min(sizes(svg_of(chart))) >= 8


MANY = results_of(*[("m", f"policy-{k}-{'x' * k}", 10, t, [1.0 * t, 2.0 * t]) for k in range(9) for t in (1, 10)])


@pytest.mark.parametrize("look", [{}, {"font": "monospace"}, {"labels": {"policy-0-": "MMMMMMMMMMMM⁺"}}])
def test_a_long_legend_fits_too(look):
    assert charts.measure(figures.regret(MANY, width="page", **look))[0] <= WIDTHS["page"]


@pytest.mark.parametrize("name", EVERY)
def test_no_theme_makes_a_figure_unreadable(name):
    """In the theme `dark` text is white. A figure has its own background, and so must its text."""
    usual = EVERY[name]()
    with alt.theme.enable("dark"):
        themed = spec_of(usual)
    config = themed["config"]
    assert config["background"] == "white"
    colors = [config["title"]["color"], config["title"]["subtitleColor"]]
    colors += [config[part][text] for part in ("axis", "legend", "header") for text in ("labelColor", "titleColor")]
    assert all(contrast(color) > 4.5 for color in colors)
    if name == "regret_and_accuracy":  # titles, headings of panels, axes, a legend and numbers
        drawn = [vl_convert.vegalite_to_svg(spec).count("#fff") for spec in (themed, spec_of(usual))]
        assert drawn[0] == drawn[1]


def contrast(color):
    """The contrast of a color with white, from 1 to 21 (WCAG 2)."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_names_at_lines_are_readable():
    assert contrast("#FFFFFF") == pytest.approx(1)
    assert contrast("#000000") == pytest.approx(21)
    for color in (*legends.USUAL.values(), *legends.SPARE, "#FFFF00", "#FFFFFF"):
        assert 4.5 <= contrast(legends.readable(color)) <= max(4.8, contrast(color))
    assert legends.readable("#000000") == "#000000"
    assert legends.readable("#0072B2") == "#0072B2"  # 5.2: dark enough
    assert legends.readable("gold") == "gold"


def test_one_font_has_every_character_of_a_figure(monkeypatch):
    """A heading in which one character is missing would be drawn in another font than the rest."""
    monkeypatch.setattr(fonts, "is_installed", lambda font: font == fonts.SPARE)
    chart = figures.pairs(two_policies(), "cyclic-4")
    families = set(re.findall(r'font-family="([^"]*)"', svg_of(chart)))
    assert len(families) == 1
    assert families.pop().startswith("DejaVu Sans")


def test_lines_break_where_a_reader_would():
    style = style_of("regret", {"width": 240})
    text = "Lemma 1: with probability 0.95, T ≤ C(0.05) (α = 0.51, K = 4) · and a little more of it · the end"
    lines = style.wrap(text, 8)
    assert " ".join(lines) == text
    assert len(lines) > 1
    assert all(style.extent(line, 8) <= 240 for line in lines)
    assert not any(line.startswith(("=", "≤", "·")) or line.endswith(("=", "≤")) for line in lines)
    assert style_of("regret", {}).wrap(text, 8) == [text]
    assert style.wrap("", 8) == [""]


def test_the_width_of_a_text():
    style = style_of("regret", {"width": 240, "font": "monospace"})
    assert style.extent("mmmmmmmmmm", 8) == pytest.approx(style.extent("iiiiiiiiii", 8), rel=0.01)
    usual = style_of("regret", {"width": 240})
    assert usual.extent("mmmmmmmmmm", 8) > 3 * usual.extent("iiiiiiiiii", 8)
    assert usual.extent("RUCB", 16) == 2 * usual.extent("RUCB", 8)
    assert usual.extent("RUCB", 8, bold=True) > usual.extent("RUCB", 8)


def test_long_names_of_arms_are_wrapped_or_turned():
    names = {str(arm): f"the arm with number {arm} of four" for arm in range(4)}
    wrapped = spec_of(figures.preferences("cyclic-4", width="column", labels=names))["layer"][0]["encoding"]
    assert '["the arm with", "number 0 of", "four"]' in wrapped["y"]["axis"]["labelExpr"]
    column = spec_of(figures.state(run(), "cyclic-4", labels=names))["facet"]["column"]["header"]
    assert column["labelAngle"] == -90
    assert "labelLimit" not in column  # nothing is cut
    short = spec_of(figures.state(run(), "cyclic-4"))["facet"]["column"]["header"]
    assert "labelAngle" not in short


def test_numbers_that_do_not_fit_into_cells_are_left_out():
    numbers = [texts(svg_of(figures.pairs(run(), "cyclic-4", width=width))) for width in (240, 160)]
    assert all(any(re.fullmatch(r"\d+(\.\d+)?", text) and len(text) > 1 for text in found) for found in numbers)
    eight = duels.simulate("arithmetic-8", "rucb", horizon=20_000, record="pairs", checkpoints=[])
    crowded = texts(svg_of(figures.pairs(eight, "arithmetic-8", width=160)))
    assert not any("k" in text and text[0].isdigit() and "." in text for text in crowded)


def test_panels_below_one_another_fit_on_a_page():
    rows = [(name, "rucb", 10, t, [1.0 * t, 2.0 * t]) for name in ("a", "b", "c", "d") for t in (1, 10)]
    chart = figures.regret(results_of(*rows), width="column")
    assert spec_of(chart)["columns"] == 1
    assert charts.measure(chart)[1] <= 650
    titles = [panel["layer"][0]["encoding"]["x"]["title"] for panel in spec_of(chart)["concat"]]
    assert titles == ["", "", "", "time t"]


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_takes_a_title_and_a_font(name):
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


def test_colors_that_are_none():
    for colors in ("#123456", 3, {"rucb": "redd"}, ["#12345"], [3]):
        with pytest.raises(InvalidInput, match=r"expected a dict of colors by name|is not a color: expected one"):
            figures.regret(HORIZONS, colors=colors)
    with pytest.raises(InvalidInput, match="colors was given, but those of intervals have fixed meanings"):
        EVERY["intervals"](colors=["red"])
    for colors in ({"rucb": "red"}, ["red", "blue"]):
        with pytest.raises(InvalidInput, match="expected three colors, for the least, ½ and the most"):
            EVERY["preferences"](colors=colors)


def test_bands_and_legends_that_a_figure_does_not_have():
    with pytest.raises(InvalidInput, match="accuracy has no band 'quantiles': expected 'ci', or None"):
        figures.accuracy(HORIZONS, band="quantiles")
    with pytest.raises(InvalidInput, match="preferences has no band 'ci': leave it out"):
        EVERY["preferences"](band="ci")
    with pytest.raises(InvalidInput, match="legend is 'direct', but pairs has no lines to label"):
        EVERY["pairs"](legend="direct")


SHOWN = {  # a name that `labels` and `colors` may be about, of each figure
    **{"regret": "rucb", "accuracy": "btm", "condorcet_probability": "total order", "preferences": "2", "pairs": "3"},
    **{"intervals": "mean μ", "state": "open", "regret_quantiles": "mean of R"},
    **{"ratings": "rating", "simple_regret": "rucb", "regret_and_accuracy": "btm"},
    **{"win_rates": "ada", "duel_counts": "ada", "ratings_over_time": "ada"},
}
USUAL = {"regret": "minmax", "accuracy": "ci", "condorcet_probability": "ci"}  # bands
USUAL |= {"simple_regret": "quantiles", "regret_and_accuracy": "minmax"}
TRIED = [("title", "Mine"), ("font", "serif"), ("labels", "Mine"), ("colors", "dict")]
TRIED += [("colors", "list"), *(("band", band) for band in (*BANDS, None)), ("legend", "bottom"), ("legend", "direct")]


FEW = ("accuracy", "preferences")  # with lines and without


@pytest.mark.parametrize("name", [pytest.param(one, marks=[] if one in FEW else pytest.mark.deep) for one in EVERY])
def test_no_option_is_ignored(name):
    """An option changes the figure or is refused, unless it is what the figure has anyway."""
    usual = EVERY[name]().to_dict(validate=False)
    heat_map = name in HEAT_MAPS
    for option, value in TRIED:
        given = {"Mine": {SHOWN[name]: "Mine"}, "dict": {SHOWN[name]: "#123456"}, "list": ["#123456", "red", "#abc"]}
        look = {option: value if option == "title" else given.get(value, value)}
        same = (option == "band" and value == USUAL.get(name)) or (value == "bottom" and not heat_map)
        found = refusal = None
        try:
            found = EVERY[name](**look).to_dict(validate=False)
        except InvalidInput as error:
            refusal = str(error)
        if refusal:
            assert not same
            assert option in ("band", "colors", "legend")
            assert re.search("has no (band|lines)|fixed meanings|expected three colors|expected a list of", refusal)
            continue
        assert (found == usual) == same, look


def test_names_that_a_figure_does_not_show():
    for name, draw in EVERY.items():
        for option in ("labels", "colors"):
            if option == "labels" or name not in (*HEAT_MAPS, "intervals"):
                with pytest.raises(UnknownName, match=rf"unknown name in {option} 'elsewhere'\. Known: ") as refused:
                    draw(**{option: {"elsewhere": "red"}})
                assert refused.value.kind == f"name in {option}"
    with pytest.raises(UnknownName, match=r"unknown name in labels 'rcub'\. Did you mean 'rucb'\?"):
        figures.regret(HORIZONS, labels={"rcub": "Ours"})
    with pytest.raises(UnknownName, match="unknown name in labels 'rcub'"):  # also beside one that is right
        figures.regret(HORIZONS, labels={"rcub": "Ours", "btm": "BTM"})
    with pytest.raises(UnknownName, match="unknown name in colors 'rcub'"):
        figures.regret(HORIZONS, colors={"btm": "red", "rcub": "blue"})


def test_a_band_needs_runs():
    one = duels.simulate("cyclic-4", "savage", horizon=50)
    with pytest.raises(InvalidInput, match="band is 'ci', but no policy has several runs"):
        figures.regret(one, band="ci")
    figures.regret(one, band=None)
    figures.regret(one)  # has none by default then


def test_every_entry_of_a_legend_has_another_name():
    labels = {"best and worst run": "meilleur et pire", "separate runs for each horizon": "creux", "rucb": "Ours"}
    shown = texts(svg_of(figures.regret(HORIZONS, labels=labels)))
    assert set(labels.values()) <= set(shown)
    assert not {*labels, "RUCB"} & set(shown)
    assert {"RUCB", "Beat the Mean"} <= set(texts(svg_of(figures.regret(HORIZONS))))
    rows = drawn(figures.regret(HORIZONS, labels=labels), "regret")
    assert {row["policy"] for row in rows} == {"rucb", "btm"}  # data keep their names
    shown = texts(svg_of(figures.state(run(), "cyclic-4", labels={"open": "ouvert"})))
    assert "ouvert" in shown
    assert "open" not in shown


@pytest.mark.parametrize(
    ("colors", "high", "low"),
    [
        (None, "white", "white"),
        (["#FFFFFF", "#999999", "#000000"], "white", "black"),
        (["black", "gray", "white"], "black", "white"),
    ],
)
def test_numbers_are_readable_on_every_color(colors, high, low):
    svg = svg_of(figures.preferences("cyclic-4", **({"colors": colors} if colors else {})))
    # In cyclic-4 the largest and the smallest probability are 0.9 and 0.1, with the last and the first color.
    inks = {text: ink for ink, text in re.findall(r'<text[^>]*fill="(\w+)"[^>]*>(0\.[159]0)</text>', svg)}
    assert inks == {"0.90": high, "0.10": low, "0.50": "black"}


def test_names_of_arms():
    shown = texts(svg_of(figures.preferences("cyclic-4", labels={"0": "the best"})))
    assert shown.count("the best") == 2  # its row and its column
    assert "0" not in shown
    assert "► the best" in svg_of(figures.state(run(), "cyclic-4", labels={"0": "the best"}))


def test_colors_by_name_and_in_order():
    names = ["rucb", "btm"]
    for colors, expected in [
        ({"btm": "navy"}, [charts.VERMILION, "navy"]),
        (["#111", "#222222", "red"], ["#111", "#222222"]),
        (["#111"], ["#111", charts.GREEN]),
    ]:
        scale = spec_of(figures.regret(HORIZONS, colors=colors))["layer"][0]["encoding"]["color"]["scale"]
        assert scale["domain"][:2] == names
        assert scale["range"][:2] == expected


def test_bands_by_hand():
    # Regrets of 3 and 9: their mean is 6, the quartiles 4.5 and 7.5. The interval of the mean is 6 ± 12.706 · 3.
    cases = {"quantiles": (4.5, 7.5), "ci": (None, 6 + 12.7062 * 3)}
    for band, (low, high) in cases.items():
        chart = figures.regret(ONE_HORIZON, band=band)
        edges = {"quantiles": ("regret_q25", "regret_q75"), "ci": ("regret_low", "regret_high")}[band]
        (row,) = [row for row in drawn(chart, edges[0], "area") if (row["policy"], row["t"]) == ("rucb", 100)]
        floor = spec_of(chart)["layer"][0]["encoding"]["y"]["scale"]["domain"][0]
        assert row[edges[0]] == pytest.approx(floor if low is None else low)  # −32 has no place on the axis
        assert row[edges[1]] == pytest.approx(high, rel=1e-4)
        assert drawn(chart, "regret_min") == []
        assert BANDS[band] in texts(svg_of(chart))
    bare = figures.regret(ONE_HORIZON, band=None)
    assert drawn(bare, "regret_min") == []
    assert line_of(bare, "regret", "rucb") == {1: None, 10: 2.0, 100: 6.0}


def test_names_at_the_ends_of_lines():
    chart = figures.regret(HORIZONS, legend="direct")
    svg = svg_of(chart)
    assert texts(svg).count("RUCB") == texts(svg).count("Beat the Mean") == 1
    listed = re.findall(r'role-legend-label"[^>]*><text[^>]*>([^<]*)</text>', svg)
    assert listed == ["separate runs for each horizon", "best and worst run"]
    labels = [layer for layer in spec_of(chart)["layer"] if layer["mark"]["type"] == "text"]
    places = {layer["data"]["values"][0]["name"]: layer["encoding"]["y"]["value"] for layer in labels}
    low, high = spec_of(chart)["layer"][0]["encoding"]["y"]["scale"]["domain"]
    for name, regret in {"RUCB": 8, "Beat the Mean": 30}.items():
        axis = charts.log_axis("regret", low, high)
        assert places[name] == pytest.approx(legends.pixel(axis, regret, charts.HEIGHT))
    darker = {legends.readable(color) for color in (charts.VERMILION, charts.GREEN)}
    assert {layer["mark"]["color"] for layer in labels} == darker
    alone = figures.regret(results_of(("m", "rucb", 10, 1, [1.0]), ("m", "rucb", 10, 10, [2.0])), legend="direct")
    assert "role-legend" not in svg_of(alone)


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


def test_long_titles_are_wrapped():
    title = "A title that is much too long for one line of a column in a paper"
    spec = spec_of(figures.regret(HORIZONS, title=title, width="column"))
    assert " ".join(spec["title"]["text"]) == title
    assert len(spec["title"]["text"]) > 1
    assert spec_of(figures.regret(HORIZONS, title=title))["title"]["text"] == title


def test_how_many_panels_stand_side_by_side():
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
    assert "serif" in fonts.list_installed()
    monkeypatch.setattr(fonts, "list_installed", lambda: ("Times Ten", "Courier", "Timer", "Gill Sans"))
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
    axes = {"x_range", "y_range", "x_scale", "y_scale"}
    assert set(Look.__annotations__) == {"title", "labels", "colors", "width", "font", "band", "legend", *axes}
    same = [spec_of(figures.regret(ONE_HORIZON, **look)) for look in ({}, Look(), {"labels": {}, "width": None})]
    assert same[0] == same[1] == same[2]


NOTIONS = {"m": "condorcet", "n": "copeland"}


def measured(**notions):
    """Results of two policies on problems with these notions of regret."""
    frame = pl.concat([HORIZONS.frame.with_columns(problem=pl.lit(name)) for name in notions])
    problems = {name: {"regret": notion} for name, notion in notions.items()}
    return Results(frame.with_columns(simple_regret="regret"), provenance={"problems": problems})


def y_titles(chart):
    spec = spec_of(chart)
    return [panel["layer"][0]["encoding"]["y"].get("title") for panel in spec.get("concat", [spec])]


def test_titles_and_axes_name_the_regret_that_is_drawn():
    both = measured(**NOTIONS)
    assert both.notions_of("n") == ["copeland"]
    chart = figures.regret(both, problem="n")
    assert chart.title.text == "Cumulative regret (Copeland) on n"
    assert y_titles(chart) == ["cumulative regret (Copeland)"]
    chart = figures.regret(both)
    assert chart.title.text == "Cumulative regret"
    assert y_titles(chart) == ["cumulative regret (Condorcet)", "cumulative regret (Copeland)"]
    alike = figures.regret(measured(m="weak", n="weak"), title="")
    assert y_titles(alike) == ["cumulative regret (weak)", None]  # once for a row of panels
    assert y_titles(figures.simple_regret(both)) == ["simple regret (Condorcet)", "simple regret (Copeland)"]
    assert figures.simple_regret(both, problem="n").title.text == "Median simple regret (Copeland) on n"
    assert y_titles(figures.regret(HORIZONS)) == ["cumulative regret"]  # nothing is known
    assert "a Copeland winner" in figures.accuracy(both, problem="n").description


def test_theorems_are_not_drawn_beside_another_regret():
    matrix = duels.load_problem("cyclic-4")
    other = duels.simulate(matrix, "rucb:alpha=2", horizon=50, runs=2, regret="borda")
    for draw in (lambda: figures.regret(other, bounds=matrix), lambda: figures.regret_quantiles(other, matrix)):
        with pytest.raises(InvalidInput, match="the theorems bound Condorcet regret, and that on cyclic-4 is borda"):
            draw()


def test_panels_and_titles_of_axes_take_labels():
    both = measured(m="condorcet", n="condorcet")
    labels = {"m": "100 arms", "time t": "rounds", "cumulative regret (Condorcet)": "regret"}
    shown = texts(svg_of(figures.regret(both, labels=labels)))
    assert {"100 arms", "rounds", "regret", "n · K = 2"} <= set(shown)
    assert not {"m · K = 2", "time t"} & set(shown)
    assert figures.regret(both, problem="m", labels={"m": "100 arms"}).title.text.endswith(" on 100 arms")
    with pytest.raises(UnknownName, match="unknown name in labels 'time'"):
        figures.regret(both, labels={"time": "rounds"})
    for name, title in (
        ("condorcet_probability", "probability"),
        ("intervals", "time t"),
    ):
        assert "Mine" in texts(svg_of(EVERY[name](labels={title: "Mine"})))
    assert "Mine" in texts(svg_of(EVERY["regret_quantiles"](labels={"quantile q": "Mine"})))


@functools.cache
def long_run():
    return duels.simulate("cyclic-4", "rucb", horizon=10_000, runs=3)


def scales(spec):
    encoding = spec["layer"][0]["encoding"]
    return [(encoding[axis]["scale"].get("type", "linear"), encoding[axis]["scale"]["domain"]) for axis in "xy"]


def scales_of(chart):
    return scales(spec_of(chart))


def test_ranges_and_scales_of_axes():
    usual = figures.regret(long_run())
    assert scales_of(usual)[0] == ("log", [1, 10_000])
    chart = figures.regret(long_run(), x_range=(150, 9_000), y_range=(10, 200))
    assert scales_of(chart) == [("log", [150, 9_000]), ("log", [10, 200])]
    lines = [layer for layer in spec_of(chart)["layer"] if layer["mark"]["type"] == "line"]
    assert len(lines) == 3
    assert all(layer["mark"]["clip"] for layer in lines)  # nothing is drawn outside
    (marks,) = [rows for kind, field, rows in parts(chart) if kind["type"] == "point" and field == "regret"]
    assert marks
    assert all(150 <= row["t"] <= 9_000 and 10 <= row["regret"] <= 200 for row in marks)
    linear = figures.regret(long_run(), x_scale="linear", y_scale="linear")
    (x, (begin, end)), (y, (low, high)) = scales_of(linear)
    assert (x, begin, end, y, low) == ("linear", 0, 10_000, "linear", 0)
    most = figures.regret_points(long_run())["regret"].max()
    assert most <= high < 1.5 * most
    # The y axis is for what is seen.
    assert scales_of(figures.regret(long_run(), x_range=(1, 10)))[1][1][1] < scales_of(usual)[1][1][1] / 5
    assert scales_of(figures.accuracy(long_run(), y_range=(0.5, 1)))[1] == ("linear", [0.5, 1])
    assert scales_of(EVERY["condorcet_probability"](y_range=(0.9, 1)))[1] == ("linear", [0.9, 1])
    named = texts(svg_of(figures.regret(long_run(), x_range=(10, 333), legend="direct")))
    assert "RUCB" in named


def test_a_regret_of_0_is_seen_on_a_linear_axis():
    zero = results_of(("m", "rucb", 10, 1, [0.0]), ("m", "rucb", 10, 10, [2.0]))
    assert line_of(figures.regret(zero), "regret", "rucb") == {1: None, 10: 2.0}
    assert line_of(figures.regret(zero, y_scale="linear"), "regret", "rucb") == {1: 0.0, 10: 2.0}


def test_ranges_and_scales_that_cannot_be():
    for look, message in [
        (
            {"x_range": (0, 10)},
            "x_range begins at 0: expected a number above 0 for a logarithmic axis, or x_scale='lin",
        ),
        ({"x_range": (10, 1)}, "x_range is (10, 1): expected two numbers, the lower one first"),
        ({"x_range": "1,10"}, "x_range is '1,10': expected two numbers"),
        ({"x_range": (1, 2, 3)}, "x_range is (1, 2, 3): expected two numbers"),
        ({"y_range": (1, float("inf"))}, "expected two numbers"),
        ({"x_scale": "sqrt"}, "x_scale is 'sqrt': expected 'log' or 'linear'"),
        ({"x_range": (1e6, 1e7)}, "nothing is inside x_range and y_range: the times are 1 to 10,000"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            figures.regret(long_run(), **look)
    with pytest.raises(InvalidInput, match="y_scale was given, but accuracy has only x_scale: leave it out"):
        figures.accuracy(long_run(), y_scale="log")
    with pytest.raises(InvalidInput, match="x_range was given, but preferences has no axis whose range can be chosen"):
        EVERY["preferences"](x_range=(1, 2))


def test_regret_above_accuracy():
    three = measured(m="condorcet", n="condorcet", o="condorcet")
    chart = figures.regret_and_accuracy(three)
    spec = spec_of(chart)
    assert (len(spec["concat"]), spec["columns"]) == (6, 3)
    assert chart.title.text == "Cumulative regret (Condorcet) and accuracy"
    assert y_titles(chart) == ["cumulative regret (Condorcet)", None, None, "share naming the winner", None, None]
    assert [panel.get("title", {}).get("text") for panel in spec["concat"]] == [
        *("m · K = 2", "n · K = 2", "o · K = 2", None, None, None),
    ]
    assert [panel["layer"][0]["encoding"]["x"]["title"] for panel in spec["concat"]] == ["", "", "", *["time t"] * 3]
    shown = texts(svg_of(chart))
    for entry in ("RUCB", "Beat the Mean", "best and worst run", "95% confidence interval"):
        assert shown.count(entry) == 1  # one legend
    column = figures.regret_and_accuracy(three, width="column")
    assert (spec_of(column)["columns"], charts.measure(column)[0]) == (1, pytest.approx(239, abs=1.6))
    one = figures.regret_and_accuracy(three, problem="m", band=None, y_range=(5, 50))
    assert scales(spec_of(one)["concat"][0])[1] == ("log", [5, 50])
    assert scales(spec_of(one)["concat"][1])[1] == ("linear", [0, 1])
    assert "95% confidence interval" not in texts(svg_of(one))


def test_the_name_of_a_policy_of_the_user(tmp_path):
    source = (Path(duels.__file__).parent / "policies" / "random.py").read_text()
    source = source.replace("from .", "from duels.policies.")
    (tmp_path / "mine.py").write_text(re.sub("NAME = .*", 'NAME = "Beat the World"', source))
    mine = str(tmp_path / "mine.py")
    results = duels.run_experiment("cyclic-4", [mine, "rucb"], 50, runs=2, out=tmp_path / "out")
    assert results.name_of("mine") == "Beat the World"
    for found in (results, duels.load_results(tmp_path / "out"), duels.results.combine([results])):
        assert {"Beat the World", "RUCB"} <= set(texts(svg_of(figures.regret(found))))
        assert "Beat the World" in found.to_latex()
        assert "Beat the World" in figures.accuracy(found, problem="cyclic-4").description
    # Another name is the same experiment, and is taken.
    (tmp_path / "mine.py").write_text(re.sub("NAME = .*", 'NAME = "BtW"', source))
    again = duels.run_experiment("cyclic-4", [mine, "rucb"], 50, runs=2, out=tmp_path / "out")
    assert again.name_of("mine") == "BtW"
    assert (
        duels.experiments.run_race("cyclic-4", [mine], horizon=50, runs=2, check=False).results.name_of("mine") == "BtW"
    )


def test_names_of_policies_on_continuous_spaces():
    found = duels.simulate("branin", "random", horizon=6, runs=2)
    assert found.name_of("random") == "Random"
    assert "Random" in texts(svg_of(figures.simple_regret(found)))


def test_labels_of_policies_that_a_race_leaves_out():
    names = ["rucb", "savage", "random", "rcs", "dts", "rmed1", "sparring", "btm"]
    found = duels.experiments.run_race("cyclic-4", names, horizon=100, runs=2, check=False)
    last = found.rows[-2].policy
    found.plot(labels={name: f"my {name}" for name in names}, colors={last: "red"})
    with pytest.raises(UnknownName, match="unknown name in labels 'rcub'"):
        found.plot(labels={"rcub": "Ours"})


def square(arms):
    above = np.triu(np.full((arms, arms), 0.75), 1)
    names = [f"model-{k:02d}" for k in range(arms)]
    return duels.PreferenceMatrix(above + np.tril(1 - above.T, -1) + np.eye(arms) / 2, names, "square")


@pytest.mark.parametrize("arms", [13, pytest.param(60, marks=pytest.mark.deep)])
def test_heat_maps_have_numbers_and_names_up_to_60_arms(arms):
    shown = texts(svg_of(figures.preferences(square(arms))))
    assert all(shown.count(f"model-{k:02d}") == 2 for k in range(arms))
    for number in ("0.75", "0.25") if arms < 20 else ("75", "25"):
        assert shown.count(number) >= arms * (arms - 1) / 2
    assert ("numbers in percent" in " ".join(shown)) == (arms > 20)
    rows = [(i, j) for i in range(arms) for j in range(i, arms)]
    pairs = pl.DataFrame(
        [("square", "rucb", 0, 9, i, j, 1234.0 + i, None) for i, j in rows],
        schema=["problem", "policy", "run", "t", "first", "second", "duels", "wins"],
        orient="row",
        schema_overrides={"wins": pl.Float64},
    )
    shown = texts(svg_of(figures.pairs(Results(ONE_HORIZON.frame, pairs=pairs), square(arms))))
    assert all(shown.count(f"model-{k:02d}") == 2 for k in range(arms))
    assert sum(bool(re.fullmatch(r"1\.\d+k", text)) for text in shown) >= arms * (arms - 1)


def test_larger_heat_maps_have_only_colors_and_the_winners_name():
    shown = texts(svg_of(figures.preferences(square(61))))
    assert [text for text in shown if text.startswith("model-")] == ["model-00"]
    assert "75" not in shown
