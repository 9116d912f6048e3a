"""One HTML page of a finished experiment: numbers, figures, what was run, and of a reproduction the paper's claims.

The page is one file that asks for nothing else and holds no scripts: figures are SVG, with their data in tables. All
text from outside (names of problems, arms and policies, notes) is escaped.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import polars as pl

from .. import figures, provenance
from ..engine.progress import bar
from ..errors import InvalidInput, counted
from ..files import atomic_write
from ..preference import PreferenceMatrix
from ..results import Results
from .claims import MARKS, Claim
from .report_page import PAPER, download, escaped, readable, table_of, whole_page

WIDE = 1.4  # times as wide as high; a narrower figure shares its row with another one
LARGEST = 100  # arms of a matrix that is drawn: its picture has a cell for each pair
FACTS = {"Duels": "duels", "Command": "command", "Seed": "seed", "Carried out by": "executor"}
FACTS |= {"Machine": "machine", "Python": "python", "numpy": "numpy"}  # of the provenance
FEW = 4  # horizons that are all in the table of final numbers
FINAL = {"problem": "problem", "policy": "policy", "steps": "t", "runs": "runs", "mean regret": "regret"}
FINAL |= {"± standard error": "standard_error", "best run": "regret_min", "worst run": "regret_max"}
FINAL |= {"accuracy": "accuracy", "duels": "duels", "explored": "explored"}  # of the summary
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
    more: Mapping[str, Any] | None = None,
    facts: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    progress: bool | None = None,
) -> Path:
    """Write the report of results to an HTML file, which opens offline.

    matrices: the preference matrix of every problem in the results, by the problem's name.
    pool: the matrix that the problems are subsets of; by default the largest of the matrices.
    claims: statements of the paper with verdicts, as `paper_claims` gives them; by default none, as the paper says
        nothing of experiments other than its own.
    more: further figures by name, each with a title, a caption and a chart.
    facts: what else to say of what was run, by its name.
    notes: paragraphs for the end of the page.
    progress: whether to show a bar; None means on a terminal only.
    """
    _check(results, matrices)
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder {str(target.parent)!r}: {error.strerror or error}") from None
    pool = max(matrices.values(), key=len) if pool is None else pool
    policies, problems = (", ".join(_unique(results.frame, column)) for column in ("policy", "problem"))
    played = {problem: matrices[problem] for problem in _unique(results.frame, "problem")}
    drawn = _drawings(results, played, pool)
    proofs = [Drawing(key, one.title, one.caption, one.chart.to_dict(), "") for key, one in (more or {}).items()]
    pictures = []
    with bar(progress, "report") as show:
        for drawing in [*drawn, *proofs]:
            pictures.append(_figure(drawing))
            show(len(pictures) / len([*drawn, *proofs]))
    sections = {
        "Claims of the paper": _claims(claims or ()),
        "Final numbers": _final(results),
        "Figures": "".join(pictures[: len(drawn)]),
        "Proofs and arguments": "".join(pictures[len(drawn) :]),
        "What was run": _run(results, played, facts or {}),
        "Notes": "".join(f"<p>{escaped(note)}</p>\n" for note in notes),
    }
    heading, below = title or f"{policies} on {problems}", _subtitle(results)
    page = whole_page(heading, below, {k: v for k, v in sections.items() if v}, PAPER if claims else "")
    with atomic_write(target) as unfinished:
        unfinished.write_text(page, encoding="utf-8", errors="replace")
    return target


class Drawing(NamedTuple):
    """A figure with what belongs to it."""

    key: str  # for links and the names of its files
    title: str
    caption: str
    spec: dict[str, Any]  # Vega-Lite
    table: str  # its data, as HTML


def _drawings(results: Results, matrices: Matrices, pool: PreferenceMatrix) -> list[Drawing]:
    afresh = _afresh(results.frame)
    drawn = []
    known = {matrix.digest for matrix in matrices.values()}
    origin = "" if len(matrices) == 1 or pool is max(matrices.values(), key=len) else pool.name

    def draw(key: str, title: str, caption: str, chart: Any, columns: Sequence[str]) -> None:
        spec = chart.to_dict()
        if table := _data(spec, columns):
            drawn.append(Drawing(key, title, caption, spec, table))

    caption = f"Mean over runs; dotted, the best and the worst run. {afresh}"
    columns = ["problem", "policy", "t", "runs", "regret", "regret_min", "regret_max"]
    seen = bool((results.frame["regret"] > 0).any())  # else a logarithmic axis has nothing to show
    if seen:
        draw("regret", "Regret over time", caption, figures.regret(results, pool=origin), columns)
    won = {name: matrix for name, matrix in matrices.items() if matrix.condorcet_winner is not None}
    if seen and won and any(policy.partition(":")[0] == "rucb" for policy in _unique(results.frame, "policy")):
        caption = "The same, with RUCB's bounds where in sight."
        bounded = figures.regret(results, bounds=won, pool=origin)
        draw("bounds", "Regret and its bounds", caption, bounded, ["problem", "label", "t", "bound"])
    best = "the Condorcet winner" if results.notion == "condorcet" else f"a best arm ({results.notion})"
    caption = f"The share of runs that name {best}. {afresh}"
    columns = ["problem", "policy", "t", "runs", "accuracy", "accuracy_low", "accuracy_high"]
    draw("accuracy", "Accuracy over time", caption, figures.accuracy(results, pool=origin), columns)
    caption = f"How likely it is that K arms drawn from {pool.name} have a Condorcet winner, and a total order."
    chances, columns = figures.condorcet_probability(pool), ["size", "assumption", "probability", "exact"]
    draw("assumptions", "Assumptions on subsets", caption, chances, columns)
    shown = {**matrices, **({} if pool.digest in known else {pool.name: pool})}
    for place, (name, matrix) in enumerate(shown.items()):
        if matrix.arms <= LARGEST:
            caption = f"{name}: how often the arm of the row beats that of the column. Arms that beat more come first."
            spec = figures.preferences(matrix).to_dict()
            drawn.append(Drawing(f"preferences-{place}", f"Preferences of {name}", caption, spec, _square(matrix)))
    return drawn


def _afresh(frame: pl.DataFrame) -> str:
    """Which policies were run anew for each horizon, in words."""
    horizons = frame.group_by("policy", maintain_order=True).agg(pl.col("horizon").n_unique())
    told = horizons.filter(pl.col("horizon") > 1)["policy"].to_list()
    return f"Run afresh for each horizon, which is where they count: {', '.join(told)}." if told else ""


def _figure(drawing: Drawing) -> str:
    import vl_convert

    key, title = drawing.key, escaped(drawing.title)
    spec = json.dumps(drawing.spec, ensure_ascii=False)
    spec = re.sub(r"\\u00[01][0-9a-f]", "\N{REPLACEMENT CHARACTER}", spec)  # XML has no control characters
    picture, width, height = _inline(vl_convert.vegalite_to_svg(spec), key, json.loads(spec)["description"])
    svg = download("SVG", f"{key}.svg", "image/svg+xml", picture)
    source = download("Vega-Lite", f"{key}.vl.json", "application/json", spec)
    return f"""<figure id="{key}" class="{"wide" if width > WIDE * height else "narrow"}" style="--natural: {width}px">
<h3>{title}</h3>
<div class="card scroll" tabindex="0" role="group" aria-label="{title}">{picture}</div>
<figcaption>{escaped(drawing.caption)} <span class="links">Download: {svg}, {source}</span></figcaption>
{drawing.table and f"<details><summary>The data of this figure</summary>{drawing.table}</details>"}
</figure>
"""


def _inline(svg: str, key: str, description: str) -> tuple[str, int, int]:
    """An SVG that can stand in a page with others, one image to screen readers; its width and height."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    ids: dict[str, str] = {}  # numbered anew: the renderer counts on from figure to figure
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


def _data(spec: dict[str, Any], columns: Sequence[str]) -> str:
    """The rows inside a figure that have all these columns, each once, as a table; nothing if there are none."""
    rows: dict[tuple, None] = {}

    def gather(node: Any) -> None:
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            if isinstance(inner, dict) and all(column in inner for column in columns):
                rows[tuple(inner[column] for column in columns)] = None
            else:
                gather(inner)

    gather(spec)
    return table_of(columns, list(rows))


def _square(matrix: PreferenceMatrix) -> str:
    """The matrix as a table, in the order of its picture."""
    names = figures.preference_points(matrix)["row"].unique(maintain_order=True).to_list()
    return table_of(["", *names], [(i, *(f"{matrix[i, j]:.3f}" for j in names)) for i in names], heads_of_rows=True)


def _claims(claims: Sequence[Claim]) -> str:
    if not claims:
        return ""
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in MARKS}
    said = ", ".join(f"{verdict}: {count}" for verdict, count in counts.items() if count)
    cards = [
        f"""<li class="claim {claim.verdict.replace(" ", "-")}">
<p class="badge"><span aria-hidden="true">{MARKS[claim.verdict]}</span> {claim.verdict}</p>
<blockquote>{escaped(claim.paper)}</blockquote>
<p>{escaped(claim.found)}</p>
</li>"""
        for claim in claims
    ]
    numbers = json.dumps([claim._asdict() for claim in claims], ensure_ascii=False, indent=1)
    return f"""<p>{len(claims)} statements of the paper, and what these results say of them ({said}).</p>
<ol class="claims">{"".join(cards)}</ol>
<p class="links">Download: {download("these findings as JSON", "claims.json", "application/json", numbers)}</p>"""


def _final(results: Results) -> str:
    """Each policy at every horizon if there are few, else at its longest; horizons are not ranked together."""
    last = results.final()
    when = "At the end of each horizon"
    if last["t"].n_unique() > FEW:
        last = last.filter(pl.col("t") == pl.col("t").max().over("problem", "policy"))
    if last["t"].n_unique() == 1:
        when = "At the end of the longest horizon"
    alike = [column for column in ("t", "runs") if last[column].n_unique() == 1]
    shown = {head: column for head, column in FINAL.items() if column not in alike}
    counts = [counted(last["t"][0], "step")] * ("t" in alike) + [counted(last["runs"][0], "run")] * ("runs" in alike)
    return f"""<p>{when}{"".join(f", {count}" for count in counts)}. Duels are comparisons of
two different arms; explored is the median time at which one arm was left, among the runs that got there.</p>
{table_of(list(shown), last.select(*shown.values()).rows())}"""


def _run(results: Results, matrices: Matrices, more: Mapping[str, str]) -> str:
    facts = [(name, "; ".join(_texts(results, key))) for name, key in FACTS.items()]
    facts.append(("Started", min(_texts(results, "started"), default="")))
    seconds = sum(provenance.values(results.provenance, "seconds"))
    facts.append(("Wall time", f"{seconds:,.1f} s" if seconds else ""))
    facts += more.items()
    run = table_of((), [fact for fact in facts if fact[1]], heads_of_rows=True)
    ends = results.final()
    policies = [
        (
            policy,
            _parameters(results, str(policy)),
            ", ".join(f"{t:,}" for t in ends.filter(pl.col("policy") == policy)["t"].unique().sort()),
            rows["run"].n_unique(),
        )
        for (policy,), rows in results.frame.group_by("policy", maintain_order=True)
    ]
    problems = [(name, p.arms, *_winner(p), p.three_cycles, p.digest) for name, p in matrices.items()]
    return f"""{run}
<h3>Policies</h3>{table_of(("policy", "parameters", "horizons", "runs"), policies)}
<h3>Problems</h3>{table_of(("problem", "K", "winner", "γ", "smallest gap", "three-cycles", "digest"), problems)}"""


def _winner(matrix: PreferenceMatrix) -> tuple[str, float | None, float | None]:
    """The Condorcet winner's name, γ and the smallest gap; nothing where nobody beats all others."""
    winner = matrix.condorcet_winner
    if winner is None:
        return "–", None, None
    return matrix.names[winner], matrix.gamma, float(sorted(matrix.gaps)[1])


def _check(results: Results, matrices: Matrices) -> None:
    """Refuse matrices that are missing or were not played on."""
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
    said = []
    for name in dict.fromkeys(name for given in by_problem.values() for name in given):
        values = {problem: readable(given[name]) for problem, given in by_problem.items() if name in given}
        alike = len(set(values.values())) == 1
        each = [value if alike else f"{value} on {problem}" for problem, value in values.items()]
        said.append(f"{name} = {', '.join(each[:1] if alike else each)}")
    return "; ".join(said)


def _subtitle(results: Results) -> str:
    """How many arms, runs and steps, and when."""
    frame = results.frame
    runs, steps = frame["run"].n_unique(), frame["horizon"].to_numpy().max()
    said = [f"K = {', '.join(map(str, _unique(frame, 'arms')))}", f"{runs:,} run{'s' * (runs != 1)}"]
    days = [started[:10] for started in sorted(_texts(results, "started"))[:1]]
    return " · ".join([*said, f"up to {steps:,} steps", *days])


def _unique(frame: pl.DataFrame, column: str) -> list[Any]:
    return frame[column].unique(maintain_order=True).to_list()
