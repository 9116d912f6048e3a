"""The font that SVG files and reports bring along: its letters, its widths, and how Chromium draws with it."""

import base64
import io
import re
import shutil

import pytest
from chart_reader import HORIZONS
from fontTools.ttLib import TTFont

import duels
from duels import figures
from duels.figures import look


def embedded(text):
    """The font in an SVG file or a page."""
    return TTFont(io.BytesIO(base64.b64decode(re.search(r"url\(data:font/woff;base64,([^)]+)\)", text)[1])))


def svg_of(text):
    return f'<svg xmlns="http://www.w3.org/2000/svg"><text y="9" font-family="{look.USUAL}">{text}</text></svg>'


def test_an_svg_file_has_the_letters_of_its_texts(tmp_path):
    svg = figures.save(figures.regret(HORIZONS), tmp_path / "regret.svg").read_text()
    font = embedded(svg)
    shown = set("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)))
    assert {"R", "0"} <= shown
    assert shown <= set(map(chr, font.getBestCmap()))
    assert (font["fvar"].axes[0].minValue, font["fvar"].axes[0].maxValue) == (400, 700)  # titles are bold
    assert len(svg) < 60_000
    assert "Arimo" in str(font["name"].getDebugName(0))  # the copyright comes along
    chosen = figures.save(figures.regret(HORIZONS, font="DejaVu Sans"), tmp_path / "own.svg").read_text()
    assert "@font-face" not in chosen


def test_the_renderer_lays_figures_out_as_wide_as_that_font():
    """Letters of another width would be cut or collide."""
    for text in (
        "Cumulative regret on synthetic-navigational",
        "separate runs for each horizon",
        "10k RUCB (α = 2)",
    ):
        font = embedded(look.with_font(svg_of(text)))
        cmap, advances = font.getBestCmap(), font["hmtx"]
        width = sum(advances[cmap[ord(letter)]][0] for letter in text) / font["head"].unitsPerEm
        assert look.width_of(text, look.USUAL) == pytest.approx(width, rel=0.02)


def test_texts_that_look_like_markup():
    svg = look.with_font(svg_of("a &lt; b &amp; &#39;c&#39;"))
    assert {"<", "&", "'"} <= set(map(chr, embedded(svg).getBestCmap()))
    assert look.with_font(svg_of("漢字 abc")).count("@font-face") == 1  # what the font lacks, another one has to draw


@pytest.fixture(scope="module")
def page():
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser.new_page()
        browser.close()


BOXES = """() => document.fonts.ready.then(() => {
  const edge = document.querySelector('svg').getBoundingClientRect();
  const texts = [...document.querySelectorAll('text')].filter(text => text.textContent);
  return {loaded: document.fonts.check('12px Arimo', 'R'), outside: texts.filter(text => {
    const box = text.getBoundingClientRect();
    return box.right > edge.right + 1 || box.left < edge.left - 1;
  }).map(text => text.textContent), widths: texts.map(text => [text.textContent, text.getComputedTextLength(),
    parseFloat(getComputedStyle(text).fontSize), parseInt(getComputedStyle(text).fontWeight) >= 600])};
})"""


def test_chromium_draws_a_figure_as_it_was_laid_out(page, tmp_path):
    """Whatever fonts are installed, each text is as wide as the renderer took it for, so that nothing is cut."""
    chart = figures.condorcet_probability("cyclic-4", sizes=[1, 2, 3, 4])
    path = figures.save(chart, tmp_path / "figure.svg")
    page.goto(path.as_uri())
    found = page.evaluate(BOXES)
    assert found["loaded"]
    assert found["outside"] == []
    assert len(found["widths"]) > 15
    for text, width, size, bold in found["widths"]:
        assert width == pytest.approx(size * look.width_of(text, look.USUAL, bold), rel=0.03, abs=0.5), text


def test_chromium_draws_a_report_so_too(page, tmp_path):
    from duels.paper.report import write_report

    matrix = duels.load_problem("cyclic-4")
    results = duels.simulate(matrix, "rucb", horizon=1_000, runs=2)
    page.goto(write_report(tmp_path / "report.html", results, {"cyclic-4": matrix}).as_uri())
    found = page.evaluate(BOXES)
    assert found["loaded"]
    wide = [(width, size * look.width_of(text, look.USUAL, bold)) for text, width, size, bold in found["widths"]]
    assert len(wide) > 50
    assert [one for one in wide if one[0] != pytest.approx(one[1], rel=0.03, abs=0.5)] == []
