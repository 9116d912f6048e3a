"""One HTML page of a finished experiment: numbers, figures, what was run, and the paper's claims if they are given.

The page is one file without scripts that loads nothing: figures are SVG, with their data in tables. It is the template
`templates/report.html`; all text is escaped.
"""

import html
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

import polars as pl

from .. import provenance
from ..engine.progress import bar
from ..errors import InvalidInput, format_count, needs_extra
from ..figures.charts import as_json, draw_svg
from ..figures.listing import FIGURES, Figure, Subject, Table, results_figures
from ..figures.look import font_face, with_font
from ..files import atomic_write
from ..preference import PreferenceMatrix
from ..results import Results
from .claims import MARKS, Claim, unbroken

with needs_extra("plots", "writing a report"):
    import jinja2
    from markupsafe import Markup

WIDE = 1.4  # width over height; a figure with a smaller ratio shares its row with another one
LARGEST = 100  # arms of a matrix that is drawn: its figure has a cell for each pair
LONG = 40  # characters; a longer text may break in a table
FACTS = {"Duels": "duels", "Command": "command", "Seed": "seed", "Carried out by": "executor"}
FACTS |= {"Machine": "machine", "Python": "python", "numpy": "numpy"}  # keys of the provenance
FEW = 4  # up to so many horizons are all in the table of final numbers
FINAL = {"problem": "problem", "policy": "policy", "steps": "t", "runs": "runs", "mean regret": "regret"}
FINAL |= {"± standard error": "standard_error", "best run": "regret_min", "worst run": "regret_max"}
FINAL |= {"accuracy": "accuracy", "duels": "duels", "explored": "explored"}  # columns of the summary
SVG = "http://www.w3.org/2000/svg"
Matrices = Mapping[str, PreferenceMatrix]


def write_report(
    path: str | Path,
    results: Results,
    matrices: Matrices,
    *,
    pool: PreferenceMatrix | None = None,
    claims: Sequence[Claim] | None = None,
    title: str | None = None,
    more: Iterable[Figure] = (),
    facts: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    progress: bool | None = None,
) -> Path:
    """Write the report of results to an HTML file, which opens offline.

    Args:
        path: The file.
        results: The results of an experiment or of simulations.
        matrices: The preference matrix of every problem in the results, by the problem's name.
        pool: The matrix that the problems are subsets of; by default the largest of the matrices.
        claims: Statements of the paper with verdicts, as `paper_claims` returns them; by default none, because the
            paper is only about its own experiments.
        title: The heading; by default the policies and the problems.
        more: Further figures.
        facts: More facts about what was run, by name.
        notes: Paragraphs for the end of the page.
        progress: Whether to show a progress bar; by default on a terminal only.

    Returns:
        The path of the file.

    Raises:
        InvalidInput: If a matrix is missing or is not the one that was played on, or the file cannot be written.
    """
    _check(results, matrices)
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder {str(target.parent)!r}: {error.strerror or error}") from None
    played = {problem: matrices[problem] for problem in _unique(results.frame, "problem")}
    drawn = _figures(results, played, max(matrices.values(), key=len) if pool is None else pool)
    proofs, pictures = list(more), []
    with bar(progress, "report") as show:
        for figure in [*drawn, *proofs]:
            pictures.append(_picture(figure))
            show(len(pictures) / (len(drawn) + len(proofs)))
    when, final = _final(results)
    sections = {
        "Claims of the paper": claims,
        "Final numbers": True,
        "Figures": drawn,
        "Proofs and arguments": proofs,
        "What was run": True,
        "Notes": (written := list(notes)),
    }
    page = _environment().get_template("report.html")
    text = page.render(
        title=title or " on ".join(", ".join(_unique(results.frame, column)) for column in ("policy", "problem")),
        subtitle=_subtitle(results),
        headings=[heading for heading, content in sections.items() if content],
        claims=claims or (),
        counts=_counts(claims or ()),
        findings=_findings(claims or ()),
        when=when,
        final=final,
        font=Markup(font_face("".join(picture.svg for picture in pictures))),
        figures=pictures[: len(drawn)],
        proofs=pictures[len(drawn) :],
        facts=_facts(results, facts or {}),
        policies=_policies(results),
        problems=_problems(played),
        notes=written,
    )
    with atomic_write(target) as unfinished:
        unfinished.write_text(text, encoding="utf-8", errors="replace")
    return target


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("duels.paper"),
        autoescape=True,
        finalize=_escape,
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"readable": _readable, "typeset": _typeset}
    environment.globals |= {"MARKS": MARKS, "LONG": LONG}
    return environment


def _escape(value: object) -> Markup:
    """Escape text, and keep it from breaking inside `95 %` and `K = 8`; what is markup already stays as it is."""
    return value if isinstance(value, Markup) else Markup(html.escape(unbroken(str(value))))


def _typeset(text: str) -> Markup:
    """Escape a claim, with the K of P_K as a subscript."""
    return Markup(re.sub(r"\bP_K\b", "P<sub>K</sub>", _escape(text)))


def _readable(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _download(label: str, name: str, kind: str, content: str) -> Markup:
    address = quote(content, safe=' "!$()*+,-./:;=?@[]^_`{|}~')  # all but what ends an attribute or an address
    return Markup(f"<a download=\"{name}\" href='data:{kind};charset=utf-8,{address}'>{label}</a>")


class _Picture(NamedTuple):
    """A figure as the template shows it."""

    name: str
    title: str
    caption: str
    table: Table
    svg: Markup
    width: str  # wide or narrow
    pixels: int  # its natural width
    downloads: tuple[Markup, Markup]


def _figures(results: Results, matrices: Matrices, pool: PreferenceMatrix) -> list[Figure]:
    subject = Subject(results, matrices, pool)
    small = {name: matrix for name, matrix in matrices.items() if matrix.arms <= LARGEST}
    drawable = Subject(results, small, pool if pool.arms <= LARGEST else None)
    return [*results_figures(subject), *FIGURES["subsets"](subject), *FIGURES["preferences"](drawable)]


def _picture(figure: Figure) -> _Picture:
    name, spec = figure.name, json.loads(as_json(figure.chart.to_dict()))
    svg, width, height = _inline(draw_svg(spec), name, spec["description"])
    downloads = (
        _download("SVG", f"{name}.svg", "image/svg+xml", with_font(svg)),
        _download("Vega-Lite", f"{name}.vl.json", "application/json", as_json(spec)),
    )
    kind = "wide" if width > WIDE * height else "narrow"
    return _Picture(name, figure.title, figure.caption, figure.table, Markup(svg), kind, width, downloads)


def _inline(svg: str, key: str, description: str) -> tuple[str, int, int]:
    """Prepare an SVG to stand in a page with others, as one image to screen readers; return its width and height too.

    Identifiers are renumbered, because the renderer counts on from figure to figure.
    """
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    ids: dict[str, str] = {}
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name in ("class", "role", "pointer-events") or name.startswith("aria-"):
                del element.attrib[name]
            elif name == "id":
                element.set(name, ids.setdefault(value, f"{key}-{len(ids)}"))
            elif value.startswith("url(#"):
                element.set(name, f"url(#{ids.setdefault(value[5:-1], f'{key}-{len(ids)}')})")
    root.set("role", "img")
    root.set("aria-label", description)
    width, height = (round(float(root.attrib[side])) for side in ("width", "height"))
    return ElementTree.tostring(root, encoding="unicode"), width, height


def _counts(claims: Sequence[Claim]) -> list[str]:
    """How many claims have each verdict."""
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in MARKS}
    return [f"{verdict}: {count}" for verdict, count in counts.items() if count]


def _findings(claims: Sequence[Claim]) -> Markup:
    numbers = json.dumps([claim._asdict() for claim in claims], ensure_ascii=False, indent=1)
    return _download("these findings as JSON", "claims.json", "application/json", numbers)


def _final(results: Results) -> tuple[str, Table]:
    """Each policy at every horizon if there are few, otherwise at its longest, and a heading that says which."""
    last = results.final()
    when = "At the end of each horizon"
    if last["t"].n_unique() > FEW:
        last = last.filter(pl.col("t") == pl.col("t").max().over("problem", "policy"))
    if last["t"].n_unique() == 1:
        when = "At the end of the longest horizon"
    alike = [column for column in ("t", "runs") if last[column].n_unique() == 1]
    shown = {head: column for head, column in FINAL.items() if column not in alike}
    counts = [format_count(last["t"][0], "step")] * ("t" in alike) + [format_count(last["runs"][0], "run")] * (
        "runs" in alike
    )
    return ", ".join([when, *counts]), Table(list(shown), last.select(*shown.values()).rows())


def _facts(results: Results, more: Mapping[str, str]) -> Table:
    facts = [(name, "; ".join(_texts(results, key))) for name, key in FACTS.items()]
    facts.append(("Started", min(_texts(results, "started"), default="")))
    seconds = sum(provenance.values(results.provenance, "seconds"))
    facts.append(("Wall time", f"{seconds:,.1f} s" if seconds else ""))
    return Table((), [fact for fact in [*facts, *more.items()] if fact[1]], row_heads=True)


def _policies(results: Results) -> Table:
    ends = results.final()
    rows = [
        (
            policy,
            _parameters(results, str(policy)),
            ", ".join(f"{t:,}" for t in ends.filter(pl.col("policy") == policy)["t"].unique().sort()),
            of_policy["run"].n_unique(),
        )
        for (policy,), of_policy in results.frame.group_by("policy", maintain_order=True)
    ]
    return Table(("policy", "parameters", "horizons", "runs"), rows)


def _problems(matrices: Matrices) -> Table:
    rows = [(name, p.arms, *_winner(p), p.three_cycles, p.digest) for name, p in matrices.items()]
    return Table(("problem", "K", "winner", "γ", "smallest gap", "three-cycles", "digest"), rows)


def _winner(matrix: PreferenceMatrix) -> tuple[str, float | None, float | None]:
    """The Condorcet winner's name, γ and the smallest gap, if there is a Condorcet winner."""
    winner = matrix.condorcet_winner
    if winner is None:
        return "–", None, None
    return matrix.names[winner], matrix.gamma, float(sorted(matrix.gaps)[1])


def _check(results: Results, matrices: Matrices) -> None:
    """Raise if a matrix is missing, or is not the one that was played on."""
    digests = dict(provenance.digests(results.provenance))
    for problem in _unique(results.frame, "problem"):
        if problem not in matrices:
            raise InvalidInput(f"no matrix was given for problem {problem!r}: expected one by that name")
        if digests.get(problem) not in (None, matrices[problem].digest):
            found = f"{matrices[problem].digest}, not {digests[problem]} as in the results"
            raise InvalidInput(f"the matrix given for {problem!r} has the digest {found}: give the one played on")


def _texts(results: Results, key: str) -> list[str]:
    """The distinct values in the provenance as texts; commands as they were typed."""
    found = provenance.values(results.provenance, key)
    return list(dict.fromkeys(shlex.join(value) if isinstance(value, list) else str(value) for value in found))


def _parameters(results: Results, policy: str) -> str:
    """`gamma = 2 on a, 3 on b`: the policy's parameters, by problem where they differ."""
    by_problem = provenance.parameters(results.provenance, policy)
    texts = []
    for name in dict.fromkeys(name for given in by_problem.values() for name in given):
        values = {problem: _readable(given[name]) for problem, given in by_problem.items() if name in given}
        alike = len(set(values.values())) == 1
        each = [value if alike else f"{value} on {problem}" for problem, value in values.items()]
        texts.append(f"{name} = {', '.join(each[:1] if alike else each)}")
    return "; ".join(texts)


def _subtitle(results: Results) -> str:
    """How many arms, runs and steps, and when."""
    frame = results.frame
    runs, steps = frame["run"].n_unique(), frame["horizon"].to_numpy().max()
    counts = [f"K = {', '.join(map(str, _unique(frame, 'arms')))}", f"{runs:,} run{'s' * (runs != 1)}"]
    days = [started[:10] for started in sorted(_texts(results, "started"))[:1]]
    return " · ".join([*counts, f"up to {steps:,} steps", *days])


def _unique(frame: pl.DataFrame, column: str) -> list[str]:
    return frame[column].unique(maintain_order=True).to_list()
