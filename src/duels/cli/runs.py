"""`duels reproduce`, `run`, `race`, `merge`, `plot` and `report`: experiments, their figures and reports."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput, UnknownName, format_count
from .printing import (
    Column,
    Format,
    FormatOption,
    JobsOption,
    QuietOption,
    SeedOption,
    column,
    interruptible,
    number,
    print_rows,
    print_text,
)

if TYPE_CHECKING:
    import polars as pl

    from ..figures.listing import Drawing, Figure, Subject
    from ..results import Results

DaskOption = Annotated[
    str | None, typer.Option("--dask", help="Address of a Dask scheduler to run on, e.g. tcp://10.0.0.1:8786.")
]


LabelOption = Annotated[
    list[str] | None,
    typer.Option(help="With -f latex or markdown: a name for a policy or problem, e.g. rucb=RUCB; repeatable."),
]


def reproduce(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to; by default reproduction, with --quick reproduction-quick."),
    ] = None,
    letor: Annotated[
        list[str] | None, typer.Option(help="LETOR files or a fold's folder instead of generated ones; repeatable.")
    ] = None,
    matrix: Annotated[
        str | None, typer.Option(help="A preference matrix (file or problem) instead of an estimated one.")
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policies", "-p", help="A further policy, e.g. ./mine.py; repeatable, or separated by commas."),
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="1,000 comparisons per pair, 20 runs, at most 500,000 steps: half a minute.")
    ] = False,
    runs: Annotated[
        str | None, typer.Option(help="Runs of each policy.", show_default="100, or 20 with --quick")
    ] = None,
    seed: SeedOption = "0",
    jobs: JobsOption = None,
    dask: DaskOption = None,
    quiet: QuietOption = False,
) -> None:
    """Reproduce the paper: estimate the matrix, run the races, draw the figures, check each claim."""
    from ..paper.reproduction import reproduce as redo

    with interruptible():
        redo(
            out or Path("reproduction-quick" if quick else "reproduction"),
            letor=letor,
            matrix=matrix,
            policies=_split_list(policies),
            quick=quick,
            runs=None if runs is None else number("runs", runs),
            seed=number("seed", seed),
            jobs=jobs,
            executor=dask,
            progress=False if quiet else None,
            say=print_text,
        )


def run(
    problems: Annotated[
        list[str], typer.Argument(metavar="PROBLEM", help="Problem names, matrix files, or one experiment's TOML file.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", help="A policy, e.g. rucb:alpha=0.6 or ./mine.py; repeatable.", show_default="rucb"
        ),
    ] = None,
    horizon: Annotated[
        list[str] | None, typer.Option(help="Steps to play, e.g. 4500000 or 1e9; repeatable.", show_default="100000")
    ] = None,
    runs: Annotated[str | None, typer.Option(help="Independent runs.", show_default="100")] = None,
    seed: Annotated[str | None, typer.Option(help="The seed of all random numbers.", show_default="0")] = None,
    jobs: JobsOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for finished work and results; the same command resumes there.")
    ] = None,
    regret: Annotated[
        str | None,
        typer.Option(
            help="condorcet, copeland, borda, weak or strong; by default condorcet, or copeland without such a winner."
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(help="Run one part of an experiment, e.g. 2/5; combine the parts with duels experiment merge."),
    ] = None,
    dask: DaskOption = None,
    format: FormatOption = Format.table,
    label: LabelOption = None,
    quiet: QuietOption = False,
) -> None:
    """Play policies on problems and compare their regret."""
    from ..experiments.race import unsuitable
    from ..experiments.running import plan_experiment, run_experiment

    _refuse_functions(problems)
    labels = _table_labels(label, format)
    planned = plan_experiment(
        problems[0] if len(problems) == 1 else problems,
        policy,
        None if horizon is None else [number("horizon", one) for one in horizon],
        runs=None if runs is None else number("runs", runs),
        seed=None if seed is None else number("seed", seed),
        regret=regret,
    )
    for name in labels:  # before hours of work
        if name not in (known := [*planned.policies, *planned.matrices]):
            raise UnknownName("name in labels", name, known)
    shown = False if quiet else None
    with interruptible():
        results = run_experiment(planned, jobs=jobs, out=out, shard=shard, executor=dask, progress=shown)
    _print_final(results, format, labels)
    for name, facts in planned.identity["problems"].items():
        if facts["regret"] != "condorcet":
            print(f"regret on {name} is {facts['regret']}'s" + _why(regret), file=sys.stderr)
    for policy_name, chosen in planned.policies.items():
        for name, one in chosen.items():
            if reason := unsuitable(one, planned.matrices[name]):
                print(f"{policy_name} is not made for {name}: it {reason}", file=sys.stderr)
    if out is not None:
        said = f"part {shard} is kept" if shard else "saved"
        print(f"{said} in {out}", file=sys.stderr)


def _refuse_functions(problems: list[str]) -> None:
    """Raise if a problem is a function of continuous parameters, which has a command of its own."""
    from ..continuous.functions import list_functions
    from ..problems import list_problems

    known = {info.name for info in list_problems()}
    for one in problems:
        name = one.partition(":")[0]
        if name in list_functions() and name not in known and not Path(one).exists():
            raise InvalidInput(
                f"{name} is a function of continuous parameters: use duels experiment run-continuous {one}"
            )


def _why(asked: str | None) -> str:
    return "" if asked not in (None, "auto") else ": no arm beats every other one"


def race(
    problem: Annotated[str, typer.Argument(help="A problem's name or a matrix file.")],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="A policy; repeatable.", show_default="all that suit")
    ] = None,
    horizon: Annotated[str, typer.Option(help="Steps to play.")] = "100000",
    runs: Annotated[str, typer.Option(help="Independent runs.")] = "20",
    seed: SeedOption = "0",
    jobs: JobsOption = None,
    regret: Annotated[str, typer.Option(help="auto, condorcet, copeland, borda, weak or strong.")] = "auto",
    check: Annotated[bool, typer.Option(help="Run the conformance checks too.")] = True,
    out: Annotated[Path | None, typer.Option(help="File for the figure: .png, .svg, .pdf or .html.")] = None,
    format: FormatOption = Format.table,
    quiet: QuietOption = False,
) -> None:
    """Race all policies that suit a problem: regret, accuracy, speed, conformance."""
    from ..experiments.race import run_race

    if out is not None:
        from ..figures.charts import check_ending, save

        check_ending(out)
    with interruptible():
        found = run_race(
            problem,
            _split_list(policy) or None,
            horizon=number("horizon", horizon),
            runs=number("runs", runs),
            seed=number("seed", seed),
            jobs=jobs,
            regret=regret,
            check=check,
            progress=False if quiet else None,
        )
    print_rows([row._asdict() for row in found.rows], format, RACE_COLUMNS, name_of=found.results.name_of)
    over = format_count(number("runs", runs), "run")
    print(f"{found.regret} regret at step {number('horizon', horizon):,}, mean of {over}", file=sys.stderr)
    for name, reason in found.left_out.items():
        print(f"left out: {name} ({reason})", file=sys.stderr)
    if out is not None:
        print(f"saved in {save(found.plot(), out)}", file=sys.stderr)


def check(
    policy: Annotated[str, typer.Argument(help="A policy, with parameters after a colon, or a Python file.")],
) -> None:
    """Run the conformance checks on a policy, such as a file of yours."""
    from ..engine.progress import compute_each
    from ..policies import load_policy
    from ..testing import CHECKS, run_check

    chosen = load_policy(policy)
    with interruptible():
        for name in compute_each([partial(run_check, one, chosen) for one in CHECKS], f"checking {chosen}"):
            print(f"{name:<13}  passed", flush=True)


def with_error(mean: float, error: float | None) -> str:
    """Format a mean with its standard error, if it has one."""
    return f"{mean:,.1f}" if error is None else f"{mean:,.1f} ± {error:,.1f}"


RACE_COLUMNS = (
    column("policy"),
    Column("regret", ("regret", "standard_error"), with_error),
    column("least", show=",.1f", spare=4),
    column("most", show=",.1f", spare=4),
    column("accuracy", show=".2f", spare=2),
    column("nanoseconds", "ns per step", ",.0f", spare=3),
    column("conforms", spare=1),
)


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="The folders of the shards.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the merged experiment; by default the first one.")
    ] = None,
    format: FormatOption = Format.table,
    label: LabelOption = None,
) -> None:
    """Merge the shards of an experiment."""
    from ..experiments.running import merge as put_together

    labels = _table_labels(label, format)
    _print_final(put_together(folders, out), format, labels)
    print(f"saved in {out or folders[0]}", file=sys.stderr)


def plot(
    source: Annotated[str, typer.Argument(help="A folder of results, a matrix file or a problem's name.")],
    figure: Annotated[
        list[str] | None,
        typer.Option(
            "--figure",
            help="Of results: regret, bounds, accuracy, regret_and_accuracy, simple_regret. "
            "Of a matrix or an experiment: preferences, subsets.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A file (.png, .svg, .pdf, .html, .json) or a folder; by default that of the results, or this one."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="The file format in a folder: png, svg, pdf, html or json.", show_default="png"
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title; '' leaves out title and subtitle.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="A text to show for a policy, arm, panel (problem) or axis title, e.g. rucb=RUCB or 'time t=rounds'; "
            "repeatable."
        ),
    ] = None,
    color: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy's color, e.g. rucb=#0072B2; without a name, the next color of the figure or of its scale; "
            "repeatable."
        ),
    ] = None,
    width: Annotated[
        str | None, typer.Option(help="Width of the figure: column (240 points), page (500) or a number of points.")
    ] = None,
    font: Annotated[str | None, typer.Option(help="The font; it must be installed.")] = None,
    band: Annotated[
        str | None, typer.Option(help="The band around means: ci (95%), quantiles (middle half), minmax or none.")
    ] = None,
    legend: Annotated[str | None, typer.Option(help="bottom, or direct for names at the ends of lines.")] = None,
    x_range: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Where the x axes begin and end, e.g. 1e3,1e6.")
    ] = None,
    y_range: Annotated[str | None, typer.Option(metavar="LOW,HIGH", help="The same for the y axes.")] = None,
    x_scale: Annotated[str | None, typer.Option(help="The scale of the x axes: log or linear.")] = None,
    y_scale: Annotated[str | None, typer.Option(help="The same for the y axes.")] = None,
) -> None:
    """Draw the figures of an experiment's folder or of a preference matrix."""
    from ..figures.charts import ENDINGS, save

    ending = None if kind is None else f".{kind.lower().removeprefix('.')}"
    if ending is not None and ending not in ENDINGS:
        raise InvalidInput(f"unknown format {kind!r}: expected png, svg, pdf, html or json")
    file = out if out is not None and out.suffix and not out.is_dir() else None
    if file is not None and file.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"cannot write a figure as {str(file)!r}: expected a folder, or one of {', '.join(ENDINGS)}")
    if file is not None and ending not in (None, file.suffix.lower()):
        raise InvalidInput(f"{file} is not a {ending} file: rename it, or leave out --format")
    look: dict[str, Any] = {
        "title": title,
        "labels": _pairs("label", label),
        "colors": color if color and not any("=" in one for one in color) else _pairs("color", color),
        "font": font,
    }
    look |= {"width": _points(width), "band": band, "legend": legend, "x_scale": x_scale, "y_scale": y_scale}
    look |= {"x_range": _ends("x-range", x_range), "y_range": _ends("y-range", y_range)}
    chosen = {name: value for name, value in look.items() if value not in (None, {})}
    drawn = _figures(source, figure, chosen | ({"band": None} if band == "none" else {}))
    if file is not None and len(drawn) > 1:
        remedy = f"a folder (--out {file.stem} --format {file.suffix[1:]})"
        raise InvalidInput(f"{file} is one file, but there are {len(drawn)} figures: name {remedy}, or one --figure")
    folder = out or (Path(source) if Path(source).is_dir() else Path())
    for name, one in drawn.items():
        path = file or folder / f"{name}{ending or '.png'}"
        print(f"saved in {save(one.chart, path)}", file=sys.stderr)


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished experiment (`duels run --out`).")],
    out: Annotated[Path | None, typer.Option(help="The page to write; by default report.html in the folder.")] = None,
) -> None:
    """Write a self-contained HTML report of a finished experiment."""
    from ..experiments.folder import IDENTITY, folder_matrices
    from ..paper.report import write_report
    from ..paper.reproduction import find_report_options
    from ..results import load_results

    if (folder / "results" / IDENTITY).exists() and not (folder / IDENTITY).exists():
        raise InvalidInput(f"{folder} is a reproduction: its experiment is {folder / 'results'}, name that one")
    results, matrices = load_results(folder), folder_matrices(folder)
    if has_no_arms(results):
        raise InvalidInput(
            f"{folder} has continuous arms, for which there is no report: use `duels experiment plot {folder}`"
        )
    path = write_report(
        out or folder / "report.html", results, matrices, **find_report_options(folder, results, matrices)
    )
    print(f"saved in {path}", file=sys.stderr)


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Split `rucb=RUCB` at the last equals sign: a policy's parameters have some too."""
    found = {}
    for text in texts or ():
        name, equals, value = text.rpartition("=")
        if not (name and equals):
            raise InvalidInput(f"--{option} is {text!r}: expected NAME=VALUE, such as rucb=RUCB")
        found[name] = value
    return found


def _table_labels(texts: list[str] | None, format: Format) -> dict[str, str]:
    """The labels of a table for a paper."""
    if texts and not format.is_paper:
        raise InvalidInput("--label is for tables of papers: add -f latex or -f markdown, or leave it out")
    return _pairs("label", texts)


def _ends(option: str, text: str | None) -> tuple[float, ...] | None:
    """Split `1e3,1e6`."""
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError:
        raise InvalidInput(f"--{option} is {text!r}: expected two numbers, such as 1000,1e6") from None


def _points(width: str | None) -> float | str | None:
    try:
        return None if width is None else float(width)
    except ValueError:
        return width


def _figures(source: str, wanted: list[str] | None, look: Any) -> dict[str, "Figure"]:
    """Draw figures, by the names of their files; figures of several matrices are numbered."""
    from ..experiments.folder import IDENTITY, folder_matrices
    from ..figures.listing import FIGURES, OF_MATRICES, OF_RESULTS, Subject
    from ..problems import as_matrix
    from ..results import load_results

    if Path(source).is_dir():
        is_experiment = (Path(source) / IDENTITY).exists()
        subject = Subject(load_results(source), folder_matrices(source) if is_experiment else {}, look=look)
        known = [*FIGURES] if is_experiment else [name for name in OF_RESULTS if name != "bounds"]
        usual = ["regret", "simple_regret"] if has_no_arms(subject.results) else ["regret", "accuracy"]
    else:
        subject = Subject(None, {source: as_matrix(source)}, look=look)
        known = usual = [*OF_MATRICES]
    drawn: dict[str, Figure] = {}
    refused: list[UnknownName] = []
    names = _split_list(wanted) or usual
    for name in names:
        if name not in known:
            raise UnknownName("figure", name, known)
        figures, without = _with_names(FIGURES[name], subject)
        drawn |= {name if len(figures) == 1 else f"{name}-{k}": figure for k, figure in enumerate(figures)}
        refused += without
    for error in refused:
        if sum((one.kind, one.name) == (error.kind, error.name) for one in refused) == len(names):
            raise error  # no figure has that name
    return drawn


def _with_names(draw: "Drawing", subject: "Subject") -> tuple[list["Figure"], list[UnknownName]]:
    """Draw with the labels and colors whose names the figure has; also return an error for each of the others."""
    from ..figures.look import NAME_IN

    refused: list[UnknownName] = []
    while True:
        try:
            return list(draw(subject)), refused
        except UnknownName as error:
            if not error.kind.startswith(NAME_IN):
                raise
            refused.append(error)
            look: Any = dict(subject.look)
            option = error.kind.removeprefix(NAME_IN)
            look[option] = {name: text for name, text in look[option].items() if name != error.name}
            subject = subject._replace(look=look)


def has_no_arms(results: "Results | None") -> bool:
    """Return whether results are those of continuous spaces."""
    return results is not None and results.frame["arms"].null_count() > 0


def _split_list(texts: list[str] | None) -> list[str]:
    """Split names at commas, but not at the commas between a policy's parameters."""
    names: list[str] = []
    for text in texts or []:
        for part in text.split(","):
            if "=" in part and ":" not in part and names:
                names[-1] += f",{part}"
            else:
                names.append(part.strip())
    return [name for name in names if name]


def _print_final(results: "Results", format: Format, labels: dict[str, str]) -> None:
    if format.is_paper:
        print((results.to_latex if format is Format.latex else results.to_markdown)(labels))
        return
    print_rows(_in_order(results).to_dicts(), format, FINAL_COLUMNS)


def _in_order(results: "Results") -> "pl.DataFrame":
    """Sort the final numbers by problem, horizon and policy, in the order of the experiment."""
    import polars as pl

    order = {name: list(dict.fromkeys(results.frame[name])) for name in ("problem", "policy")}
    problem, policy = (
        pl.col(name).replace_strict(known, range(len(known)), return_dtype=pl.Int64) for name, known in order.items()
    )
    return results.final().sort(problem, "t", policy)


FINAL_COLUMNS = (
    column("problem"),
    column("arms", spare=4),
    column("policy"),
    column("t", "steps", ","),
    column("runs", show=",", spare=5),
    Column("regret", ("regret", "standard_error"), with_error),
    column("regret_min", "least", ",.1f", spare=6),
    column("regret_max", "most", ",.1f", spare=6),
    column("accuracy", show=".2f", spare=1),
    column("duels", show=",.0f", spare=2),
    column("explored", show=",.0f", spare=3),
)
