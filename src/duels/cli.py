"""The command `duels`: one function per subcommand; heavy imports inside."""

import json
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import DuelsError, InvalidInput

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the best of K alternatives from pairwise comparisons.",
)
matrix_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Describe, estimate and generate preference matrices."
)
app.add_typer(matrix_app, name="matrix")


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from . import __version__

        print(f"duels {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def run(
    problems: Annotated[list[str], typer.Argument(metavar="PROBLEM", help="Problem names or matrix files.")],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="A policy, e.g. rucb:alpha=0.6 or ./mine.py; repeatable.")
    ] = None,
    horizon: Annotated[str, typer.Option(help="Steps to play, e.g. 4500000 or 1e9.")] = "100000",
    runs: Annotated[str, typer.Option(help="Independent runs.")] = "100",
    seed: Annotated[str, typer.Option(help="Where all randomness comes from.")] = "0",
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one per core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to save the results in (Parquet and JSON).")] = None,
    format: FormatOption = Format.table,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Play policies on problems and compare their regret."""
    from .policies import policy as find_policy
    from .problems import as_matrix
    from .results import combine, prepare_folder
    from .simulate import simulate

    steps, repeats, start = _number("horizon", horizon), _number("runs", runs), _number("seed", seed)
    matrices = [as_matrix(problem) for problem in problems]
    policies = [find_policy(name) for name in policy or ["rucb"]]
    _refuse_twins("problem", [matrix.name for matrix in matrices])
    _refuse_twins("policy", [str(chosen) for chosen in policies])
    if out is not None:
        prepare_folder(out)
    shown = False if quiet else None
    results = combine(
        [
            simulate(matrix, chosen, horizon=steps, runs=repeats, seed=start, jobs=jobs, progress=shown)
            for matrix in matrices
            for chosen in policies
        ]
    )
    final = results.final()
    if format is Format.table:
        spare = ("least", "most", "runs", "arms", "explored", "duels")
        _print_table([_final_row(row) for row in final.iter_rows(named=True)], spare)
    else:
        _print(final.to_dicts(), format)
    if out is not None:
        results.save(out)
        print(f"saved in {out}", file=sys.stderr)


def _refuse_twins(kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                f"two are called {kind} {name!r}: name each once, and give different files different names"
            )


def _final_row(row: dict[str, Any]) -> dict[str, str]:
    explored = "" if row["explored"] is None else f"{row['explored']:,.0f}"
    spread = "" if row["standard_error"] is None else f" ± {row['standard_error']:,.1f}"
    return {
        "problem": row["problem"],
        "arms": str(row["arms"]),
        "policy": row["policy"],
        "steps": f"{row['t']:,}",
        "runs": str(row["runs"]),
        "regret": f"{row['regret']:,.1f}{spread}",
        "least": f"{row['regret_min']:,.1f}",
        "most": f"{row['regret_max']:,.1f}",
        "accuracy": f"{row['accuracy']:.2f}",
        "duels": f"{row['duels']:,.0f}",
        "explored": explored,
    }


@app.command()
def policies(format: FormatOption = Format.table) -> None:
    """List the policies, their parameters and papers."""
    from .policies import BUILT_IN, defaults
    from .policies import policy as find_policy

    found = [find_policy(name) for name in BUILT_IN]
    rows = [
        {"name": one.name, "parameters": defaults(one.module), "needs_horizon": one.needs_horizon, "paper": one.paper}
        for one in found
    ]
    _print(rows, format)


@app.command()
def problems(format: FormatOption = Format.table) -> None:
    """List the named problems and generated families with their parameters."""
    from .problems import list_problems

    _print([info._asdict() for info in list_problems()], format)


@matrix_app.command("describe")
def matrix_describe(
    problem: Annotated[str, typer.Argument(help="A matrix file or a problem's name.")],
    format: FormatOption = Format.table,
) -> None:
    """Say what a preference matrix is like: winners, gaps, cycles, transitivity, subsets."""
    from .problems import as_matrix

    matrix = as_matrix(problem)
    if format is Format.table:
        print(matrix.describe())
        print(f"{'RUCB regret bound':<21} {_bounds_text(matrix)}")
    elif format is Format.json:
        print(json.dumps(matrix.summary(), indent=2, ensure_ascii=False))
    else:
        _print([matrix.summary()], format)


@matrix_app.command("estimate")
def matrix_estimate(
    out: Annotated[Path, typer.Option(help="Matrix file to write: .csv, .txt or .npz.")],
    letor: Annotated[list[str] | None, typer.Option(help="LETOR files or a fold's folder; repeatable.")] = None,
    synthetic: Annotated[bool, typer.Option(help="Generate a LETOR-like collection instead.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep the generated LETOR file here (.txt or .gz).")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="A TREC run, one ranker each; repeatable. Needs --qrels.")
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="TREC relevance judgements for --run.")] = None,
    clicks: Annotated[str, typer.Option(help="perfect, navigational or informational.")] = "navigational",
    interleave: Annotated[
        str, typer.Option(help="probabilistic, team-draft, balanced or optimised (slow).")
    ] = "probabilistic",
    comparisons: Annotated[str, typer.Option(help="Comparisons of each pair of rankers.")] = "4000",
    length: Annotated[int, typer.Option(help="Documents on an interleaved list.")] = 10,
    relevant_only: Annotated[bool, typer.Option(help="Leave out queries without a relevant document.")] = False,
    seed: Annotated[str, typer.Option(help="Where all randomness comes from.")] = "0",
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one per core.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Estimate who beats whom among rankers, by interleaving and simulated clicks."""
    from .problems import check_matrix_path, save_matrix
    from .ranking.estimate import estimate_preferences

    check_matrix_path(out)
    shown, start = False if quiet else None, _number("seed", seed)
    collection = _collection(letor, synthetic, keep, run, qrels, start, shown)
    if collection.queries_without_relevant:
        done = "left out" if relevant_only else "kept; --relevant-only leaves them out"
        print(f"{collection.queries_without_relevant} queries have no relevant document: {done}", file=sys.stderr)
    if relevant_only:
        collection = collection.keep_relevant()
    matrix = estimate_preferences(
        collection,
        clicks=clicks,
        interleave=interleave,
        comparisons=_number("comparisons", comparisons),
        seed=start,
        length=length,
        jobs=jobs,
        progress=shown,
    )
    save_matrix(matrix, out)
    print(matrix.describe())
    print(f"saved in {out}", file=sys.stderr)


def _collection(
    letor: list[str] | None,
    synthetic: bool,
    keep: Path | None,
    runs: list[str] | None,
    qrels: str | None,
    seed: int,
    progress: Any,
) -> Any:
    chosen = [name for name, given in (("--letor", letor), ("--synthetic", synthetic), ("--run", runs)) if given]
    if keep is not None and not synthetic:
        raise InvalidInput("--keep is for the file that --synthetic generates")
    if qrels is not None and not runs:
        raise InvalidInput("--qrels goes with --run")
    if len(chosen) != 1:
        raise InvalidInput(
            f"{' and '.join(chosen) or 'no collection'} given: expected one of --letor, --synthetic, --run"
        )
    if letor:
        from .ranking.collection import load_collection

        return load_collection(letor if len(letor) > 1 else letor[0], progress=progress)
    if runs:
        from .ranking.trec import load_runs

        if qrels is None:
            raise InvalidInput("--run needs --qrels: the relevance judgements of the runs' queries")
        read = load_runs(runs, qrels)
        if read.unjudged or read.not_judged or read.not_run:
            left = f"left out: {len(read.not_judged)} queries without judgements, {len(read.not_run)} in no run"
            print(f"{read.unjudged} documents are unjudged, taken as not relevant; {left}", file=sys.stderr)
        return read.collection
    from .ranking.synthetic import synthetic_letor

    with tempfile.TemporaryDirectory() as folder:
        return synthetic_letor(keep or Path(folder) / "synthetic.txt", seed=seed)


@matrix_app.command("generate")
def matrix_generate(
    problem: Annotated[str, typer.Argument(help="A problem, e.g. bradley-terry:arms=16,seed=3.")],
    out: Annotated[Path, typer.Option(help="Matrix file to write: .csv, .txt, .npy or .npz.")],
) -> None:
    """Write a named or generated problem to a matrix file."""
    from .problems import problem as make
    from .problems import save_matrix

    save_matrix(make(problem), out)
    print(f"saved in {out}", file=sys.stderr)


def _bounds_text(matrix: Any) -> str:
    """What RUCB's theory says of the matrix, in a line."""
    from . import theory

    if matrix.condorcet_winner is None:
        return "none: there is no Condorcet winner"
    at = [theory.expected_regret_bound(matrix, t, 1.5) for t in (10**3, 10**6, 10**9)]
    return "E[R_t] ≤ " + ", ".join(f"{bound:,.0f}" for bound in at) + " at t = 10^3, 10^6, 10^9 (rucb:alpha=1.5)"


def _number(what: str, text: str) -> int:
    try:
        number = Decimal(text.replace(",", ""))
        if number.adjusted() > 40 or number != int(number):
            raise ValueError
        return int(number)
    except (ArithmeticError, ValueError):
        raise InvalidInput(f"{what} is {text[:40]!r}: expected a whole number such as 100000 or 1e6") from None


def _print(rows: Sequence[dict[str, Any]], format: Format) -> None:
    if format is Format.json:
        print(json.dumps(list(rows), indent=2, ensure_ascii=False))
    elif format is Format.csv:
        import csv

        writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)
    else:
        _print_table([{key: _plain(value) for key, value in row.items()} for row in rows])


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _print_table(rows: Iterable[dict[str, str]], spare: Sequence[str] = ()) -> None:
    """A table for people; where the terminal is too narrow, the `spare` columns go, first named first."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 240  # in a pipe nothing needs to fit
    rows = list(rows)
    empty = [key for key in rows[0] if not any(row[key] for row in rows)]
    left_out: set[str] = set()
    for key in [*empty, *spare]:
        widths = [max(len(key), *(len(row[key]) for row in rows)) + 3 for key in rows[0] if key not in left_out]
        if sum(widths) > console.width:
            left_out.add(key)
    rows = [{key: value for key, value in row.items() if key not in left_out} for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for key in rows[0]:
        number = all(row[key][:1].isdigit() or not row[key] for row in rows)
        wrap = max(len(row[key]) for row in rows) > 24
        table.add_column(
            key.replace("_", " "), justify="right" if number else "left", overflow="fold", no_wrap=not wrap
        )
    for row in rows:
        table.add_row(*row.values())
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines() if line.strip()))


def main() -> None:
    """Run the command; an error is one line, and exit code 2."""
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± still gets its table
    try:
        code = app(standalone_mode=False, prog_name="duels") or 0
        if code == 130:  # how typer reports Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except DuelsError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except MemoryError:
        _fail("there is not enough memory: ask for fewer runs, checkpoints or arms", 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if not hasattr(error, "format_message"):  # the mark of an error in how the command was written
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        _fail(f"{error.format_message()} See: duels --help", 2)


def _fail(message: str, code: int) -> None:
    print(f"duels: {message}", file=sys.stderr)
    sys.exit(code)


def _warn(message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None) -> None:
    print(f"duels: warning: {message}", file=sys.stderr)
