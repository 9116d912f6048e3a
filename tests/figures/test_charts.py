"""The common look: ticks and labels of logarithmic axes, colors, legends, heat maps, and every ending of a file."""

import json
import math
import re

import altair as alt
import polars as pl
import pytest
from chart_reader import pixels, spec_of, svg_of, texts

from duels import policies
from duels.continuous import policies as continuous
from duels.errors import InvalidInput
from duels.figures import charts, legends


def axis_of(low, high):
    parts = charts.log_axis("t", low, high)
    return parts["scale"].to_dict(), parts["axis"].to_dict()


def line(low=1, high=100, **properties):
    rows = charts.values([{"x": low, "y": 1}, {"x": high, "y": 2}])
    x = alt.X("x:Q", **charts.log_axis("time", low, high))
    return alt.Chart(rows, **properties).mark_line().encode(x=x, y="y:Q")


def test_steps_by_hand():
    assert charts.steps(1, 100) == [1, 2, 5, 10, 20, 50, 100]
    assert charts.steps(0.03, 0.6) == [0.05, 0.1, 0.2, 0.5]
    assert charts.steps(3, 4) == []
    assert charts.steps(99, 1001, (1,)) == [100, 1000]
    assert charts.steps(8, 12, range(1, 10)) == [8, 9, 10]


def test_a_long_axis_has_ticks_between_its_powers_of_ten():
    scale, axis = axis_of(3, 200)
    assert scale == {"type": "log", "nice": False, "domain": [3, 200]}
    assert axis["values"] == [3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200]
    # Eight powers of ten would have 72 such ticks.
    assert axis_of(1, 1e7)[1]["values"] == [10.0**k for k in range(8)]
    assert len(axis_of(1, 1e6)[1]["values"]) == 6 * 9 + 1


@pytest.mark.parametrize(
    ("low", "high", "domain", "ticks"),
    [
        (21, 44, [20, 50], [20, 50]),
        (20, 60, [20, 100], [20, 50, 100]),
        (1.3, 4.9, [1, 5], [1, 2, 5]),
        (0.03, 0.2, [0.02, 0.2], [0.02, 0.05, 0.1, 0.2]),  # one power of ten inside is not enough
        (5000, 5000, [2000, 10000], [2000, 5000, 10000]),
        (7, 7, [5, 10], [5, 10]),
        (1, 1, [0.5, 2], [0.5, 1, 2]),
    ],
)
def test_a_short_axis_reaches_to_the_next_step(low, high, domain, ticks):
    scale, axis = axis_of(low, high)
    assert (scale["domain"], axis["values"]) == (domain, ticks)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (2, 1), (1, math.inf), (math.nan, 1)])
def test_ends_that_no_logarithmic_axis_has(low, high):
    with pytest.raises(InvalidInput, match="expected ends above 0"):
        charts.log_axis("t", low, high)


def test_labels_of_an_axis_as_drawn():
    shown = texts(svg_of(line(0.01, 1e9)))
    assert shown[:12] == ["0.01", "0.1", "1", "10", "100", "1k", "10k", "100k", "1M", "10M", "100M", "1e9"]
    assert texts(svg_of(line(150, 3000)))[:6] == ["100", "200", "500", "1k", "2k", "5k"]
    shown = texts(svg_of(line(0.02, 0.3)))
    assert shown[:5] == ["0.02", "0.05", "0.1", "0.2", "0.5"]


def test_a_label_stands_below_its_tick_at_the_ends_too():
    svg = svg_of(charts.add_title(line(1, 1000), "t"))
    labels = re.search(r'role-axis-label".*?</g>', svg)[0]
    assert re.findall(r'text-anchor="(\w+)"', labels) == ["middle"] * labels.count("<text")


def test_grid_lines_stand_at_powers_of_ten():
    svg = svg_of(line(1, 1000))
    grid = re.search(r'role-axis-grid".*?</g>', svg)[0]
    lines = re.findall(r"<line[^>]*>", grid)
    assert len(lines) == 28  # at 1, 2, …, 9, 10, 20, …, 1000
    assert sum('opacity="0"' not in one for one in lines) == 4


def test_an_axis_without_ends_labels_powers_of_ten():
    rows = charts.values([{"x": 1, "y": 1}, {"x": 3000, "y": 2}])
    chart = alt.Chart(rows).mark_line().encode(alt.X("x:Q", **charts.log_axis("time")), y="y:Q")
    shown = [text for text in texts(svg_of(chart)) if text]
    assert shown[:4] == ["1", "10", "100", "1k"]


def test_numbers_in_words():
    numbers = [0.05, 9.444, 12.51, 870, 999.4, 999.5, 2412, 999_499, 999_500, 1_300_000]
    assert [charts.short(n) for n in numbers] == [
        *("0.05", "9.44", "12.5", "870", "999", "1k", "2.41k", "999k", "1M", "1.3M"),
    ]
    assert charts.span(pl.Series([1000, 1000])) == "1,000"
    assert charts.span(pl.Series([1000, 10, 200])) == "10 to 1,000"
    assert [charts.count(n, "run") for n in (0, 1, "1", 2, "5 to 20")] == [
        *("0 runs", "1 run", "1 run", "2 runs", "5 to 20 runs"),
    ]


def test_the_papers_colors():
    names = ["random", "rucb:alpha=2", "btm:gamma=2", "rucb", "savage", "rucb:alpha=3"]
    scale = legends.color_of(names)
    found = dict(zip(scale.domain, scale.range))
    assert list(found) == names
    assert (found["rucb"], found["savage"]) == (charts.VERMILION, charts.BLUE)
    for paper in (["rucb", "savage", "btm"], ["rucb", "savage", "btm:gamma=own"]):
        assert legends.color_of(paper).range == [charts.VERMILION, charts.BLUE, charts.GREEN]
    assert legends.color_of(["btm:gamma=own", "btm"]).range[1] == charts.GREEN
    # Policies with parameters have shades of their policy's color.
    shades = [legends.mix(charts.GREEN, *shade) for shade in legends.SHADES]
    assert found["btm:gamma=2"] in shades


def test_a_policy_has_one_color_in_every_figure():
    built_in = [*policies.BUILT_IN]
    assert set(built_in) <= set(legends.USUAL)
    assert set(continuous.BUILT_IN) <= set(legends.USUAL)
    assert len(set(legends.color_of(built_in).range)) == len(built_in)
    assert len(set(legends.color_of(continuous.BUILT_IN).range)) == len(continuous.BUILT_IN)
    known = dict(zip(built_in, legends.color_of(built_in).range))
    for names in (["rmed1", "dts"], ["mine", "random", "rmed1"], ["rucb:alpha=2", "rmed1", "mine"], ["mine"]):
        for name, color in zip(names, legends.color_of(names).range):
            assert known.setdefault(name, color) == color
    assert not {known["mine"], known["rucb:alpha=2"]} & {known[name] for name in built_in}


def test_policies_of_the_user_differ_from_the_others_of_the_figure():
    one, *same = [f"policy {k}" for k in range(40)]
    wish = legends.color_of([one]).range[0]
    twin = next(name for name in same if legends.color_of([name]).range == [wish])
    first, second = legends.color_of([one, twin]).range
    assert legends.distance(first, second) >= legends.UNLIKE
    assert legends.color_of([twin, one]).range == [second, first]  # in any order
    assert legends.distance("#000000", "#FFFFFF") == pytest.approx(100, abs=0.1)  # the lightness
    assert legends._lab("#D55E00") == pytest.approx((54.2, 43.3, 63.2), abs=0.1)


def test_as_many_colors_as_names():
    names = [f"policy {k}" for k in range(25)]
    assert len(set(legends.color_of(names).range)) == 25
    assert legends.shape_of(names).range[12:14] == list(legends.SHAPES[:2])
    # Colors come again at last, and shapes after twelve names: no two of 60 lines look alike.
    many = [f"policy {k}" for k in range(60)]
    assert len(set(zip(legends.color_of(many).range, legends.shape_of(many).range))) == 60
    assert len(set(legends.color_of(["rucb", "savage", "btm", *names[:10]]).range)) == 13


def test_glyphs():
    assert legends.line_glyph() == "M-1,0H1"
    # 24 pixels are 2 units: six on are half a unit, three off a quarter.
    assert legends.line_glyph(dash=(6, 3)) == "M-1,0H-0.5M-0.25,0H0.25M0.5,0H1"
    for shape in legends.SHAPES:
        path = legends.line_glyph(shape)
        numbers = [float(number) for number in re.findall(r"-?\d*\.\d+|-?\d+", path)]
        assert path.startswith("M-1,0H")
        assert all(-1 <= number <= 1 for number in numbers)
        full = legends.line_glyph(shape, full=True)
        assert full.endswith(legends.OUTLINES[shape][0])
        assert full.count("M") == path.count("M") + 2  # the outline twice more, smaller
        assert full.count("Z") == 1  # Vega closes only the last part of a path


def test_columns_of_a_legend():
    key = legends.Key()
    for label in ("a" * 10, "b" * 10, "c" * 10, "d" * 40):
        key = key.with_entry(label, "#000000", "M-1,0H1")
    # A label takes 48 pixels and 5.5 a letter: 103, 103, 103, 268; 60 pixels left of the axis count.
    assert key.columns(103 * 3 + 268 - 60) == 4
    assert key.columns(103 * 3 + 268 - 61) == 3
    assert key.columns(103 + 268 - 60) == 2
    assert key.columns(103 + 268 - 61) == 1
    assert key.columns(10) == 1


LATE_TIMES = [*range(100, 1000, 10), *range(1000, 10_001, 100)]


def test_a_single_panel_is_left_alone():
    panel = line()
    assert charts.side_by_side([("only", panel)]) is panel


def test_marks_of_two_lines_stand_apart():
    # Five marks on four decades: the j-th is (j + ¼)/5 or (j + ¾)/5 of the way.
    rows = [
        {"policy": name, "t": t, "marked": False} for name in ("a", "b") for t in sorted({*range(1, 100), *LATE_TIMES})
    ]
    few = legends.few_of_each(pl.DataFrame(rows), ["a", "b"], "policy", "t")
    for name, start in (("a", 0.25), ("b", 0.75)):
        wanted = [10 ** (4 * (place + start) / 5) for place in range(5)]
        assert few.filter(policy=name)["t"].to_list() == pytest.approx(wanted, rel=0.3)
    assert not set(few.filter(policy="a")["t"]) & set(few.filter(policy="b")["t"])


def test_marks_are_spaced_evenly_on_a_linear_axis():
    rows = pl.DataFrame([{"policy": name, "t": t, "marked": False} for name in "ab" for t in range(101)])
    few = legends.few_of_each(rows, ["a", "b"], "policy", "t", linear=True)
    assert few.filter(policy="a")["t"].to_list() == [5, 25, 45, 65, 85]
    assert few.filter(policy="b")["t"].to_list() == [15, 35, 55, 75, 95]
    assert legends.is_linear(alt.X("t:Q", scale=alt.Scale(domain=[0, 5])))
    assert not legends.is_linear(alt.X("t:Q", **charts.log_axis("t", 1, 10)))
    assert not legends.is_linear(alt.X("t:Q"))


def test_marks_that_vega_has_no_name_for():
    assert [legends.mark_path(shape) for shape in legends.SHAPES[:8]] == list(legends.SHAPES[:8])
    for shape in legends.SHAPES[8:]:
        numbers = [abs(float(number)) for number in re.findall(r"-?\d*\.?\d+", legends.mark_path(shape))]
        assert 0.9 < max(numbers) < 1.2  # about as large as a circle


def square(arms):
    names = [f"arm {k}" for k in range(arms)]
    rows = [(i, j, 0.5 + 0.1 * ((i < j) - (i > j))) for i in names for j in names]
    return names, pl.DataFrame(rows, schema=["row", "column", "p"], orient="row")


@pytest.mark.parametrize(("arms", "numbered"), [(43, True), (60, False)])
def test_numbers_give_way_to_size(arms, numbered):
    names, rows = square(arms)
    layers = spec_of(charts.heat_map(rows, names, "p", charts.probabilities("p", 0.1, ["p"]), "arm 7"))["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["rect", *["text"] * numbered, "rect"]


def test_long_names_are_turned():
    for name, angle in (("short", 0), ("much longer", -45)):  # 6 pixels a letter, cells of 44
        rows = pl.DataFrame({"row": [name], "column": [name], "p": [0.5]})
        chart = charts.heat_map(rows, [name], "p", charts.probabilities("p", 0.1, ["p"]))
        assert spec_of(chart)["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] == angle


def test_names_that_a_page_could_mistake():
    names = ['a"b', "c,d", "it's", "0"]
    rows = pl.DataFrame([(i, j, 0.5) for i in names for j in names], schema=["row", "column", "p"], orient="row")
    cells = charts.probabilities("p", 0.1, ["p"])
    shown = texts(svg_of(charts.heat_map(rows, names, "p", cells, 'a"b')))
    assert {'a"b', "c,d", "it's", "0"} <= {text.replace("&quot;", '"').replace("&#39;", "'") for text in shown}
    assert shown.count("0.50") == 16 + 1  # every cell has its row and column
    many = [*names, *(f"x{k}" for k in range(50))]
    rows = pl.DataFrame([(i, many[0], 0.5) for i in many], schema=["row", "column", "p"], orient="row")
    svg = svg_of(charts.heat_map(rows, many, "p", cells, 'a"b'))
    assert 'a"b' in {text.replace("&quot;", '"') for text in texts(svg)}


def test_amounts_have_labeled_colors():
    def legend(low, high):
        color = charts.amounts("n", low, high).color.to_dict()
        return color["scale"]["domain"], color["legend"]["values"]

    assert legend(7, 450) == ([7, 450], [10, 100])
    assert legend(3, 3) == ([3, 30], [5, 10, 20])  # one power of ten: 1, 2 and 5 times it
    assert legend(0.5, 12) == ([0.5, 12], [1, 10])
    cells = charts.amounts("n", 1, 100)
    assert [cells.dark(n) for n in (1, 9.9, 10.1, 100)] == [False, False, True, True]  # √(1 · 100) = 10
    assert cells.text(2345) == "2.35k"


def test_a_title_and_a_description():
    spec = spec_of(charts.add_title(line(), "Regret", ["K = 6", "", "20 runs"]))
    assert spec["title"]["text"] == "Regret"
    assert spec["title"]["subtitle"] == ["K = 6", "20 runs"]
    assert spec["description"] == "Regret. K = 6. 20 runs"
    spec = spec_of(charts.add_title(line(), "Regret", "K = 6", "what a blind reader hears"))
    assert (spec["title"]["subtitle"], spec["description"]) == (["K = 6"], "what a blind reader hears")


def test_every_ending(tmp_path):
    chart = charts.add_title(line(1, 1000, width=200, height=100), "A line")
    saved = {ending: charts.save(chart, tmp_path / "deep" / f"figure{ending}") for ending in charts.ENDINGS}
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == sorted(path.name for path in saved.values())
    width, height, rows = pixels(saved[".png"])
    assert width > 400  # twice the pixels of the chart
    assert height > 200
    assert rows > 50
    assert "A line" in texts(saved[".svg"].read_text())
    assert saved[".pdf"].read_bytes().startswith(b"%PDF")
    html = saved[".html"].read_text()
    assert "A line" in html
    assert not re.search(r"<script[^>]* src=", html)  # nothing to load: it opens offline
    assert '"renderer": "svg"' in html
    assert json.loads(saved[".json"].read_text()) == spec_of(chart)


def test_a_finer_png(tmp_path):
    chart = line(width=100, height=50)
    once, thrice = (pixels(charts.save(chart, tmp_path / f"{k}.PNG", scale=k)) for k in (1, 3))
    assert abs(thrice[0] - 3 * once[0]) <= 3


def test_names_that_no_figure_can_have(tmp_path):
    for name in ("figure.gif", "figure"):
        with pytest.raises(InvalidInput, match=r"expected a name ending in \.png, \.svg"):
            charts.save(line(), tmp_path / name)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidInput, match="cannot make the folder"):
        charts.save(line(), tmp_path / "file" / "figure.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        charts.save(line(), tmp_path / "folder.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.png"]


def test_more_rows_than_altair_would_take():
    rows = pl.DataFrame({"x": range(6000), "y": range(6000)})
    for data in (charts.values(rows), charts.table(rows)):
        spec = spec_of(alt.Chart(data).mark_point().encode(x="x:Q", y="y:Q"))
        assert len(json.dumps(spec)) > 6000
    assert spec_of(charts.values([{"x": 1}])) == {"values": [{"x": 1}]}
    assert spec_of(charts.table(rows.head(2))) == {"values": "x,y\n0,0\n1,1\n", "format": {"type": "csv"}}


def test_bad_charts_and_scales_are_refused(tmp_path):
    chart = charts.add_title(alt.Chart(charts.values([{"x": 1}])).mark_point().encode(x="x:Q"), "one")
    for scale in (0, -1, 1000, "large"):
        with pytest.raises(InvalidInput, match="scale is"):
            charts.save(chart, tmp_path / "a.png", scale=scale)
    with pytest.raises(InvalidInput, match="is not a chart"):
        charts.save("nope", tmp_path / "a.png")
