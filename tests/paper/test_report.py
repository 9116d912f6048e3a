"""The report: one page that needs nothing else, says what the results say, and takes names for text."""

import json
import re
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import polars as pl
import pytest

import duels
from duels import figures
from duels.errors import InvalidInput
from duels.paper import report
from duels.paper.claims import Claim, paper_claims
from duels.paper.report import write_report
from duels.preference import PreferenceMatrix
from duels.results import Results, combine

ARXIV, CYCLIC = duels.load_problem("arxiv-6"), duels.load_problem("cyclic-4")
MATRICES = {"arxiv-6": ARXIV, "cyclic-4": CYCLIC}
VOID = {"meta", "link"}
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="2" height="1"></svg>'


class Page(HTMLParser):
    """The elements of a page in order, each with its attributes and all text inside it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.source = [], [], text
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data.replace("\N{NO-BREAK SPACE}", " ")

    def all(self, tag, **attributes):
        return [one for one in self.elements if one["tag"] == tag and attributes.items() <= one.items()]

    def texts(self, tag, **attributes):
        return [one["text"].strip() for one in self.all(tag, **attributes)]

    def inside(self, key):
        """The part of the source from the element with this id to the next figure or section."""
        return re.split(r"<(?:figure|section) ", self.source.split(f'id="{key}"', 1)[1])[0]


def cells(source):
    """The tables in a piece of source, as rows of texts."""
    rows = re.findall(r"<tr>(.*?)</tr>", source, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


def simulated(policies=("rucb", "savage", "btm"), horizons=(100, 1000), runs=3):
    """Policies told a horizon are run afresh for each, RUCB once, as the paper does."""
    parts = []
    for matrix in MATRICES.values():
        for policy in policies:
            for horizon in horizons[-1:] if policy.startswith("rucb") else horizons:
                given = {"horizon": horizon, "runs": runs, "checkpoints": [t for t in (50, *horizons) if t <= horizon]}
                parts.append(duels.simulate(matrix, policy, **given))
    return combine(parts)


@pytest.fixture(scope="module")
def results():
    return simulated()


@pytest.fixture(scope="module")
def path(results, tmp_path_factory):
    notes = ["A first note.", "K = 6 & more"]
    target = tmp_path_factory.mktemp("out") / "new" / "folder" / "report.html"
    return write_report(target, results, MATRICES, claims=paper_claims(results, MATRICES), notes=notes)


@pytest.fixture(scope="module")
def pictures(results):
    """The figures of these results, and their pictures by name."""
    drawn = report._figures(results, MATRICES, ARXIV)
    return drawn, {figure.name: report._picture(figure) for figure in drawn}


@pytest.fixture
def drawn_before(pictures, monkeypatch):
    """For tests of a page's words: its pictures are those of `results`, and are not drawn again."""
    drawn, by_name = pictures
    monkeypatch.setattr(report, "_figures", lambda *arguments: drawn)
    monkeypatch.setattr(report, "_picture", lambda figure: by_name[figure.name])


@pytest.fixture
def unrendered(monkeypatch):
    """For tests of a page's words: figures are drawn, and an empty picture stands for each."""
    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda spec: EMPTY)


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def test_nothing_comes_from_elsewhere(page):
    assert page.source.startswith("<!doctype html>")
    assert {one["tag"] for one in page.elements}.isdisjoint(
        {"script", "iframe", "img", "object", "embed", "base", "form"}
    )
    links = [value for one in page.elements for name, value in one.items() if name in ("href", "src", "xlink:href")]
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(
        r"@import|url\((?!#|data:font/woff;)", re.search("<style>(.*?)</style>", page.source, re.DOTALL)[1]
    )
    (policy,) = [one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy
    # The namespace of SVG is the only address of the web in sight; specifications name Vega-Lite's schema.
    visible = re.sub(r"href='data:[^']*'", "", page.source)
    assert set(re.findall(r"https?://[^\"'< ]+", visible)) == {"http://www.w3.org/2000/svg"}


def test_ids_are_unique_and_links_arrive(page):
    ids = [one["id"] for one in page.elements if "id" in one]
    assert len(ids) == len(set(ids))
    inner = [one["href"][1:] for one in page.all("a") if one["href"].startswith("#")]
    assert len(inner) == 5
    assert set(inner) <= set(ids)
    used = [value[5:-1] for one in page.elements for value in one.values() if value and value.startswith("url(#")]
    assert used
    assert set(used) <= set(ids)


def test_headings_and_title(page, results):
    assert page.texts("h2") == ["Claims of the paper", "Final numbers", "Figures", "What was run", "Notes"]
    (title,) = page.texts("h1")
    assert title == "rucb, savage, btm on arxiv-6, cyclic-4"
    assert page.texts("title") == [title]
    started = min(part["started"] for part in results.provenance["parts"])
    assert page.texts("p", **{"class": "subtitle"}) == [f"K = 6, 4 · 3 runs · up to 1,000 steps · {started[:10]}"]


def test_claims_are_those_of_the_results(page, results):
    claims = paper_claims(results, MATRICES)
    assert [text.split(" ", 1)[1] for text in page.texts("p", **{"class": "badge"})] == [one.verdict for one in claims]
    assert page.texts("blockquote") == [one.paper.replace("P_K", "PK") for one in claims]
    for claim in claims:
        assert claim.found.replace("P_K", "PK") in page.texts("p")
    assert page.texts("sub") == ["K", "K"]  # of P_K, in what the paper says and in what was found
    assert [one["class"] for one in page.all("li")] == [f"claim {one.verdict.replace(' ', '-')}" for one in claims]
    (link,) = [one for one in page.all("a") if one.get("download") == "claims.json"]
    assert json.loads(unquote(link["href"].split(",", 1)[1])) == json.loads(json.dumps([c._asdict() for c in claims]))


def test_own_claims_and_none(results, drawn_before, tmp_path):
    own = [Claim("k", "The moon < cheese.", "It is.", "fails", {}), Claim("l", "b", "c", "not decided", {})]
    page = Page(write_report(tmp_path / "own.html", results, MATRICES, claims=own).read_text())
    assert page.texts("p", **{"class": "badge"}) == ["✗ fails", "– not decided"]
    assert page.texts("blockquote") == ["The moon < cheese.", "b"]
    assert "(fails: 1, not decided: 1)" in page.source
    for none in ({}, {"claims": None}, {"claims": []}):
        without = Page(write_report(tmp_path / "none.html", results, MATRICES, **none).read_text())
        assert without.texts("h2") == ["Final numbers", "Figures", "What was run"]
        assert not re.search("the paper|Zoghi", without.source)


def test_final_numbers(page, results):
    """At every horizon, lowest regret first, problems in the order of the results."""
    head, *rows = cells(page.inside("final-numbers"))
    assert head[:4] == ["problem", "policy", "steps", "mean regret"]  # runs are alike, so they are in the sentence
    assert "At the end of each horizon, 3 runs." in page.source
    every = results.final()
    assert [(row[0], row[1], int(row[2].replace(",", ""))) for row in rows] == [
        (row["problem"], row["policy"], row["t"]) for row in every.to_dicts()
    ]
    assert every["t"].n_unique() > 1
    rows = [[*row[:2], *row[3:]] for row in rows if row[2] == "1,000"]
    assert [row[0] for row in rows] == ["arxiv-6"] * 3 + ["cyclic-4"] * 3
    final = {
        (row["problem"], row["policy"]): row for row in results.final().filter(pl.col("horizon") == 1000).to_dicts()
    }
    assert {(row[0], row[1]) for row in rows} == set(final)
    for row in rows:
        known = final[row[0], row[1]]
        numbers = ["regret", "standard_error", "regret_min", "regret_max", "accuracy", "duels"]
        assert [float(cell.replace(",", "")) for cell in row[2:8]] == pytest.approx(
            [known[n] for n in numbers], rel=1e-3
        )
        assert (row[8] == "–") == (known["explored"] is None)
    regrets = [float(row[2].replace(",", "")) for row in rows]
    assert regrets[:3] == sorted(regrets[:3])
    assert regrets[3:] == sorted(regrets[3:])


def test_steps_and_runs_that_differ_have_columns(tmp_path, unrendered):
    parts = [duels.simulate("cyclic-4", p, horizon=t, runs=n) for p, t, n in (("rucb", 2000, 2), ("random", 100, 3))]
    page = Page(write_report(tmp_path / "r.html", combine(parts), {"cyclic-4": CYCLIC}, claims=[]).read_text())
    head, *rows = cells(page.inside("final-numbers"))
    assert head[:4] == ["problem", "policy", "steps", "runs"]
    assert {tuple(row[1:4]) for row in rows} == {("rucb", "2,000", "2"), ("random", "100", "3")}
    assert "At the end of each horizon. Duels" in page.source


def test_of_many_horizons_the_longest_is_shown(tmp_path, unrendered):
    parts = [duels.simulate("cyclic-4", "savage", horizon=t, runs=2) for t in (10, 20, 30, 40, 50)]
    page = Page(write_report(tmp_path / "r.html", combine(parts), {"cyclic-4": CYCLIC}, claims=[]).read_text())
    assert "At the end of the longest horizon, 50 steps, 2 runs." in page.source
    assert len(cells(page.inside("final-numbers"))) == 2


def test_numbers_of_different_horizons_are_not_ranked_against_each_other(tmp_path, unrendered):
    """rucb is better after 5,000 steps than random after 2,000, and still not compared with it."""
    runs = (("random", 2000), ("winner_stays", 2000), ("savage", 5000), ("rucb", 5000))
    parts = [duels.simulate("cyclic-4", policy, horizon=t, runs=2) for policy, t in runs]
    page = Page(write_report(tmp_path / "r.html", combine(parts), {"cyclic-4": CYCLIC}, claims=[]).read_text())
    _, *rows = cells(page.inside("final-numbers"))
    assert [row[2] for row in rows] == ["2,000", "2,000", "5,000", "5,000"]
    regrets = [float(row[3].replace(",", "")) for row in rows]
    assert regrets[:2] == sorted(regrets[:2])
    assert regrets[2:] == sorted(regrets[2:])


def test_what_was_run(page, results):
    part = results.provenance["parts"][0]
    facts = dict(cells(page.inside("what-was-run"))[: len(page.inside("what-was-run").split('scope="row"')) - 1])
    assert facts["Duels"] == duels.__version__
    assert facts["Seed"] == "0"
    assert facts["Machine"] == part["machine"]
    assert facts["Started"] == min(one["started"] for one in results.provenance["parts"])
    total = sum(one["seconds"] for one in results.provenance["parts"])
    assert facts["Wall time"] == f"{total:,.1f} s"
    rows = {row[0]: row[1:] for row in cells(page.inside("what-was-run"))}
    assert rows["rucb"] == [
        "alpha\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.51; variant\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}seed; "
        "unplayed\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2",
        "1,000",
        "3",
    ]
    assert rows["btm"][1:] == ["100, 1,000", "3"]
    # arxiv-6: the winner is 0, γ = 1.25 and the smallest gap 0.04, to arm 3; there is no cycle.
    assert rows["arxiv-6"] == ["6", "0", "1.25", "0.04", str(ARXIV.three_cycles), ARXIV.digest]
    assert rows["cyclic-4"][-1] == CYCLIC.digest


@pytest.mark.deep
def test_problems_without_a_condorcet_winner(tmp_path, unrendered):
    """A cycle of three is played for Copeland regret: no winner, no γ, no gap, no claim of the paper's problems."""
    cycle = PreferenceMatrix([[0.5, 0.6, 0.2], [0.4, 0.5, 0.6], [0.8, 0.4, 0.5]], name="cycle")
    parts = [duels.simulate(cycle, policy, horizon=300, runs=2) for policy in ("rucb", "savage")]
    parts.append(duels.simulate("cyclic-4", "rucb:alpha=2", horizon=300, runs=2))
    both = {"cycle": cycle, "cyclic-4": CYCLIC}
    for claims in (paper_claims(combine(parts), both), []):
        page = Page(write_report(tmp_path / "r.html", combine(parts), both, claims=claims).read_text())
        rows = {row[0]: row[1:] for row in cells(page.inside("what-was-run"))}
        assert rows["cycle"] == ["3", "–", "–", "–", "1", cycle.digest]
        assert rows["cyclic-4"][1] == CYCLIC.names[0]
        kinds = {one["text"]: one.get("class") for one in page.all("td")}
        assert kinds[CYCLIC.names[0]] is None  # a name, to the left
    assert any("name a best arm (condorcet, copeland)" in one for one in page.texts("figcaption"))
    alone = combine(parts[:2])
    claims = paper_claims(alone, {"cycle": cycle})
    alone = Page(write_report(tmp_path / "r.html", alone, {"cycle": cycle}, claims=claims).read_text())
    assert alone.source.count('not-decided"') == 6
    assert "bounds" not in [one["id"] for one in alone.all("figure")]


def test_no_regret_at_all_leaves_its_figure_out(tmp_path):
    found = duels.simulate("cyclic-4", "rucb", horizon=50, runs=2)
    nothing = Results(found.frame.with_columns(regret=pl.lit(0.0)), found.provenance)
    page = Page(write_report(tmp_path / "r.html", nothing, {"cyclic-4": CYCLIC}).read_text())
    assert [one["id"] for one in page.all("figure")] == ["accuracy", "assumptions", "preferences-0"]


def test_facts_stand_with_what_was_run(tmp_path, results, drawn_before):
    told = {"Comparisons of each pair": "4,000", "Collection": f"a {EVIL}"}
    page = Page(write_report(tmp_path / "r.html", results, MATRICES, claims=[], facts=told).read_text())
    assert page_fact(page, "Comparisons of each pair") == "4,000"
    assert f"a {EVIL}" in page.texts("td")


def test_the_bar_goes_through_the_figures(tmp_path, results, drawn_before, monkeypatch):
    shares = []

    @contextmanager
    def bar(progress, title):
        yield lambda share: shares.append((progress, title, share))

    monkeypatch.setattr("duels.paper.report.bar", bar)
    write_report(tmp_path / "r.html", results, MATRICES, claims=[], progress=True)
    assert shares == [(True, "report", k / 5) for k in range(1, 6)]


def test_notes(page):
    assert page.inside("notes").count("<p>") == 2
    assert "K = 6 & more" in page.texts("p")


def test_figures_are_pictures_with_words_and_downloads(page):
    keys = [one["id"] for one in page.all("figure")]
    assert keys == ["regret", "accuracy", "assumptions", "preferences-0", "preferences-1"]
    # Two panels beside each other take a row; squarish figures share one.
    assert [one["class"] for one in page.all("figure")] == ["wide", "wide", "narrow", "narrow", "narrow"]
    pictures = page.all("svg")
    assert len(pictures) == len(keys)
    for one in pictures:
        assert one["role"] == "img"
        assert len(one["aria-label"]) > 40
    inner = [one for one in page.elements if one["tag"] in ("g", "path", "text", "rect")]
    assert not any(name in ("role", "class") or name.startswith("aria-") for one in inner for name in one)
    downloads = {one["download"]: one["href"] for one in page.all("a") if "download" in one}
    charts = {
        "regret": lambda: figures.regret(simulated()),
        "assumptions": lambda: figures.condorcet_probability(ARXIV),
        "preferences-1": lambda: figures.preferences(CYCLIC),
    }
    for key in keys:
        kind, _, svg = downloads[f"{key}.svg"].partition(",")
        assert kind == "data:image/svg+xml;charset=utf-8"
        alone = re.sub("<defs><style>@font-face.*?</style></defs>", "", unquote(svg))
        assert len(alone) < len(unquote(svg))  # a file by itself has its own font
        assert alone in page.inside(key)
        assert ElementTree.fromstring(unquote(svg)).tag == "{http://www.w3.org/2000/svg}svg"
        kind, _, spec = downloads[f"{key}.vl.json"].partition(",")
        assert kind == "data:application/json;charset=utf-8"
        if key in charts:
            assert json.loads(unquote(spec)) == charts[key]().to_dict()


def test_each_figure_has_its_data(page, results):
    head, *rows = cells(page.inside("regret"))
    assert head == ["problem", "policy", "t", "runs", "regret", "regret_min", "regret_max"]
    summary = {(r["problem"], r["policy"], r["horizon"], r["t"]): r for r in results.summarize().to_dicts()}
    seen = set()
    for problem, policy, t, runs, *regrets in rows:
        time = int(t.replace(",", ""))
        known = summary[problem, policy, 1000 if policy == "rucb" else time, time]
        assert int(runs) == 3
        assert [float(regret.replace(",", "")) for regret in regrets] == pytest.approx(
            [known[column] for column in ("regret", "regret_min", "regret_max")], rel=1e-3
        )
        seen.add((problem, policy, time))
    assert len(seen) == len(rows)
    assert seen == {
        (problem, policy, t) for problem in MATRICES for policy in ("rucb", "savage", "btm") for t in (100, 1000)
    }
    head, *rows = cells(page.inside("accuracy"))
    assert head[4:] == ["accuracy", "accuracy_low", "accuracy_high"]
    assert len(rows) == 12
    head, *rows = cells(page.inside("assumptions"))
    assert head == ["size", "assumption", "probability", "exact"]
    assert len(rows) == 12
    assert {row[3] for row in rows} == {"yes"}
    assert {float(row[2]) for row in rows if row[1] == "Condorcet winner"} == {
        float(f"{ARXIV.condorcet_probability(size):.4g}") for size in range(1, 7)
    }
    head, *rows = cells(page.inside("preferences-0"))
    table = {(row[0], name): float(cell) for row in rows for name, cell in zip(head[1:], row[1:])}
    assert table == {(i, j): pytest.approx(ARXIV[i, j], abs=5e-4) for i in ARXIV.names for j in ARXIV.names}


def test_numbers_stand_to_the_right_and_long_texts_may_break(page):
    kinds = {one["text"]: one.get("class") for one in page.all("td")}
    assert (kinds["rucb"], kinds["100"], kinds["–"]) == (None, "n", "n")
    assert all((len(text) > 40) == (kind == "long") for text, kind in kinds.items())
    heads = {one["text"]: one.get("class") for one in page.all("th", scope="col")}
    assert (heads["policy"], heads["mean regret"]) == (None, "n")


def page_fact(page, name):
    return next(row[1] for row in cells(page.inside("what-was-run")) if row[0] == name)


def test_captions_say_who_was_run_with_each_horizon(page, tmp_path, unrendered):
    captions = page.texts("figcaption")
    told = "Condorcet SAVAGE and Beat the Mean must know the horizon: each mark is for separate runs with that horizon."
    assert sum(told in one for one in captions) == 2
    once = Page(write_report(tmp_path / "r.html", simulated(horizons=(50,)), MATRICES).read_text())
    assert "must know the horizon" not in once.source


def test_bounds_are_drawn_where_they_are_in_sight(tmp_path, unrendered):
    for alpha, drawn in ((0.51, False), (2.0, True)):
        results = duels.simulate("arxiv-6", f"rucb:alpha={alpha}", horizon=1_000_000, runs=2, checkpoints=[100, 10_000])
        page = Page(write_report(tmp_path / "r.html", results, {"arxiv-6": ARXIV}, claims=[]).read_text())
        assert ("bounds" in [one["id"] for one in page.all("figure")]) == drawn
    head, *rows = cells(page.inside("bounds"))
    assert head == ["problem", "label", "t", "bound"]
    known = duels.theory.expected_regret_bound(ARXIV, 1_000_000, 2.0)
    last = [float(row[3].replace(",", "")) for row in rows if "Theorem 3" in row[1] and row[2] == "1,000,000"]
    assert last == [pytest.approx(known, rel=1e-3)]
    assert known > 10_000
    assert not any("e+" in cell for row in rows for cell in row)


def test_the_pool_is_shown_once(tmp_path, unrendered):
    results = duels.simulate("cyclic-4", "random", horizon=100, runs=2)
    pool = PreferenceMatrix(ARXIV.array, ARXIV.names, "the pool")
    page = Page(write_report(tmp_path / "r.html", results, {"cyclic-4": CYCLIC}, pool=pool, claims=[]).read_text())
    assert page.texts("h3")[-4:] == ["Preferences of cyclic-4", "Preferences of the pool", "Policies", "Problems"]
    assert "K arms drawn from the pool" in page.source
    twin = PreferenceMatrix(CYCLIC.array, CYCLIC.names, "the same by another name")
    again = Page(write_report(tmp_path / "s.html", results, {"cyclic-4": CYCLIC}, pool=twin, claims=[]).read_text())
    assert again.texts("h3")[-3:] == ["Preferences of cyclic-4", "Policies", "Problems"]


def test_huge_matrices_are_not_drawn(tmp_path, unrendered, monkeypatch):
    monkeypatch.setattr("duels.paper.report.LARGEST", 5)
    results = duels.simulate("cyclic-4", "random", horizon=100, runs=2)
    page = Page(write_report(tmp_path / "r.html", results, {"cyclic-4": CYCLIC}, pool=ARXIV, claims=[]).read_text())
    assert [one["id"] for one in page.all("figure")] == ["regret", "accuracy", "assumptions", "preferences-0"]


EVIL = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(2)> & \x07 %41 #"


def test_names_are_text(tmp_path):
    """Markup in every name a user can choose arrives as text, in tables, captions, figures and downloads alike."""
    matrix = PreferenceMatrix(CYCLIC.array, [EVIL, QUOTES, "c", "d"], f"p {EVIL}")
    found = duels.simulate(matrix, "rucb", horizon=200, runs=2)
    policies = {f"rucb {QUOTES}": {"parameters": {matrix.name: {EVIL: QUOTES}}}}
    told = found.provenance | {"policies": policies, "command": ["duels", EVIL]}
    results = Results(found.frame.with_columns(policy=pl.lit(f"rucb {QUOTES}")), told)
    path = write_report(
        tmp_path / "r.html", results, {matrix.name: matrix}, title=f"t {EVIL}", notes=[f"n {EVIL} {QUOTES}"]
    )
    page = Page(path.read_text(encoding="utf-8"))
    assert {one["tag"] for one in page.elements}.isdisjoint({"script", "img"})
    assert not any(name.startswith("on") for one in page.elements for name in one)
    assert page.texts("h1") == [f"t {EVIL}"]
    assert f"n {EVIL} {QUOTES}" in page.texts("p")
    assert f"Preferences of p {EVIL}" in page.texts("h3")
    assert EVIL in page.texts("text")  # an axis label of the matrix's picture
    assert any(EVIL in cell for cell in page.texts("td"))
    assert QUOTES in page.texts("th")
    downloads = [unquote(one["href"].split(",", 1)[1]) for one in page.all("a") if "download" in one]
    for content in downloads:
        assert json.loads(content) if content[0] in "[{" else ElementTree.fromstring(content) is not None
    assert any(EVIL in content for content in downloads)
    assert any("%41 #" in content for content in downloads)
    assert not any("#" in one["href"] for one in page.all("a") if "download" in one)  # it would end the data
    assert len(page.all("svg")) == len(page.all("figure")) == 4


def test_an_experiments_provenance(tmp_path, results, drawn_before):
    """One provenance for all, with parameters by problem; what it does not say is left out."""
    told = {
        "duels": "9.9",
        "problems": {name: {"matrix": matrix.digest} for name, matrix in MATRICES.items()},
        "policies": {
            "rucb": {"parameters": {name: {"alpha": 0.51} for name in MATRICES}},
            "btm": {"parameters": {"arxiv-6": {"gamma": 1.25}, "cyclic-4": {"gamma": 3.0}}},
        },
        "executor": "2 threads",
        "command": ["duels", "run", "a b", "x" * 40],
    }
    path = write_report(tmp_path / "r.html", Results(results.frame, told), MATRICES, claims=[])
    page = Page(path.read_text(encoding="utf-8"))
    text = page.inside("what-was-run").replace("\N{NO-BREAK SPACE}", " ")
    rows = {row[0]: row[1:] for row in cells(text)}
    assert rows["Duels"] == ["9.9"]
    assert rows["Command"] == [f"duels run &#x27;a b&#x27; {'x' * 40}"]
    assert [one["text"] for one in page.all("td", **{"class": "long"})] == [f"duels run 'a b' {'x' * 40}"]
    assert rows["Carried out by"] == ["2 threads"]
    assert not {"Seed", "Wall time", "Started", "Machine"} & set(rows)
    assert rows["rucb"][0] == "alpha = 0.51"
    assert rows["btm"][0] == "gamma = 1.25 on arxiv-6, 3 on cyclic-4"
    assert rows["savage"][0] == ""
    assert page.texts("p", **{"class": "subtitle"}) == ["K = 6, 4 · 3 runs · up to 1,000 steps"]
    swapped = {**told, "problems": {"arxiv-6": {"matrix": CYCLIC.digest}}}
    with pytest.raises(InvalidInput, match="'arxiv-6' has the digest"):
        write_report(tmp_path / "r.html", Results(results.frame, swapped), MATRICES)


def test_results_without_provenance(tmp_path, results, drawn_before):
    page = Page(write_report(tmp_path / "r.html", Results(results.frame), MATRICES, claims=[]).read_text())
    assert page.texts("h3")[-2:] == ["Policies", "Problems"]


def test_the_earliest_start_and_the_winner_by_name(tmp_path, unrendered):
    matrix = PreferenceMatrix(CYCLIC.array[::-1, ::-1], ["a", "b", "c", "best"], "reversed")
    found = duels.simulate(matrix, "random", horizon=100, runs=1)
    dates = ["2026-02-03T04:05:06+00:00", "2026-01-02T03:04:05+00:00", "2026-03-04T05:06:07+00:00"]
    results = Results(found.frame, {"parts": [{"parts": [{"started": date}]} for date in dates]})
    page = Page(write_report(tmp_path / "r.html", results, {"reversed": matrix}, notes=["lone \udcff"]).read_text())
    assert page_fact(page, "Started") == dates[1]
    assert page.texts("p", **{"class": "subtitle"}) == ["K = 4 · 1 run · up to 100 steps · 2026-01-02"]
    assert page_fact(page, "reversed") == "4"
    assert next(row[2] for row in cells(page.inside("what-was-run")) if row[0] == "reversed") == "best"
    assert page.texts("p")[-1] == "lone ?"


def test_the_same_results_give_the_same_page(tmp_path, results, path):
    notes = ["A first note.", "K = 6 & more"]
    claims = paper_claims(results, MATRICES)
    again = write_report(tmp_path / "again.html", results, MATRICES, claims=claims, notes=notes)
    assert again.read_bytes() == path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["again.html"]


def test_wrong_matrices_and_places_are_refused(tmp_path, results, drawn_before):
    with pytest.raises(InvalidInput, match="no matrix was given for problem 'cyclic-4'"):
        write_report(tmp_path / "r.html", results, {"arxiv-6": ARXIV}, claims=[])
    with pytest.raises(InvalidInput, match=f"'cyclic-4' has the digest {ARXIV.digest}, not {CYCLIC.digest}"):
        write_report(tmp_path / "r.html", results, {"arxiv-6": ARXIV, "cyclic-4": ARXIV})
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot make the folder"):
        write_report(tmp_path / "file" / "r.html", results, MATRICES)
    with pytest.raises(InvalidInput, match="is a folder"):
        write_report(tmp_path, results, MATRICES)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
