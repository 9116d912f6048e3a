"""`duels matrix`: describe, estimate and generate preference matrices."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput, format_count
from .printing import (
    Format,
    FormatOption,
    JobsOption,
    OnError,
    OnErrorOption,
    QuietOption,
    RolesOption,
    SeedOption,
    VotesArgument,
    WithoutOption,
    number,
    print_record,
    print_text,
    read_options,
)

if TYPE_CHECKING:
    from ..preference import PreferenceMatrix
    from ..rankers.collection import Collection

matrix_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Describe, estimate and generate preference matrices."
)


@matrix_app.command("describe")
def matrix_describe(
    problem: Annotated[str, typer.Argument(help="A matrix file or a problem's name.")],
    format: FormatOption = Format.table,
) -> None:
    """Describe a preference matrix: winners, gaps, cycles, transitivity, subsets."""
    from ..problems import as_matrix

    matrix = as_matrix(problem)
    _print_matrix(matrix, format, lambda: f"{'RUCB regret bound':<21} {_bounds_text(matrix)}")


def _print_matrix(matrix: "PreferenceMatrix", format: Format, *more: Callable[[], str]) -> None:
    from ..engine.progress import compute_each

    if format is Format.table:
        for line in compute_each([*matrix.describe_lines(), *more], f"describing {matrix.name}"):
            print_text(line)
            sys.stdout.flush()  # a pipe too has each line as soon as it is known
    elif format is Format.json:
        print(json.dumps(matrix.summary(), indent=2, ensure_ascii=False))
    else:
        print_record(matrix.summary(), format)


@matrix_app.command("estimate")
def matrix_estimate(
    out: Annotated[Path, typer.Option(help="Matrix file to write: .csv, .txt or .npz.")],
    letor: Annotated[
        list[str] | None,
        typer.Option(help="LETOR files or a fold's folder, whose features are the rankers; repeatable."),
    ] = None,
    synthetic: Annotated[bool, typer.Option(help="Generate a LETOR-like collection instead.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Save the generated collection in this file (.txt or .gz).")] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(help="A file of TREC runs or a folder of them, one ranker per run; repeatable. Needs --qrels."),
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="TREC relevance judgments for --run.")] = None,
    clicks: Annotated[
        str, typer.Option(help="perfect, navigational, informational or position-based.")
    ] = "navigational",
    interleave: Annotated[
        str, typer.Option(help="probabilistic, team-draft, balanced or optimized (slow).")
    ] = "probabilistic",
    comparisons: Annotated[str, typer.Option(help="Comparisons of each pair of rankers.")] = "4000",
    length: Annotated[int, typer.Option(help="Documents on an interleaved list.")] = 10,
    relevant_only: Annotated[bool, typer.Option(help="Omit queries without a relevant document.")] = False,
    seed: SeedOption = "0",
    jobs: JobsOption = None,
    format: FormatOption = Format.table,
    quiet: QuietOption = False,
) -> None:
    """Estimate which rankers beat which, by interleaving and simulated clicks."""
    from ..problems import check_matrix_path, save_matrix
    from ..rankers.estimate import estimate_preferences

    check_matrix_path(out)
    shown, start = False if quiet else None, number("seed", seed)
    collection = _collection(letor, synthetic, keep, run, qrels, start, shown)
    if without := collection.queries_without_relevant:
        done = "left out" if relevant_only else f"kept; --relevant-only leaves {'it' if without == 1 else 'them'} out"
        have = "has" if without == 1 else "have"
        print(f"{format_count(without, 'query', 'queries')} {have} no relevant document: {done}", file=sys.stderr)
    if relevant_only:
        collection = collection.keep_relevant()
    matrix = estimate_preferences(
        collection,
        clicks=clicks,
        interleave=interleave,
        comparisons=number("comparisons", comparisons),
        seed=start,
        length=length,
        jobs=jobs,
        progress=shown,
    )
    save_matrix(matrix, out)
    _print_matrix(matrix, format)
    print(f"saved in {out}", file=sys.stderr)


def _collection(
    letor: list[str] | None,
    synthetic: bool,
    keep: Path | None,
    runs: list[str] | None,
    qrels: str | None,
    seed: int,
    progress: bool | None,
) -> "Collection":
    chosen = [name for name, given in (("--letor", letor), ("--synthetic", synthetic), ("--run", runs)) if given]
    if keep is not None and not synthetic:
        raise InvalidInput("--keep is only for the file that --synthetic generates: use both")
    if qrels is not None and not runs:
        raise InvalidInput("--qrels needs --run")
    if len(chosen) != 1:
        raise InvalidInput(
            f"{' and '.join(chosen) or 'no collection'} given: expected one of --letor, --synthetic, --run"
        )
    if letor:
        from ..rankers.collection import load as load_collection

        return load_collection(letor if len(letor) > 1 else letor[0], progress=progress)
    if runs:
        from ..rankers.trec import load_runs

        if qrels is None:
            raise InvalidInput("--run needs --qrels: the relevance judgments of the runs' queries")
        read = load_runs(runs, qrels)
        if read.unjudged or read.not_judged or read.not_run:
            taken = f"{format_count(read.unjudged, 'document')} without a judgment, treated as not relevant"
            left = f"{format_count(len(read.not_judged), 'query', 'queries')} without judgments"
            print(f"{taken}; left out: {left}, {len(read.not_run):,} in no run", file=sys.stderr)
        return read.collection
    from ..rankers.collection import save as save_collection
    from ..rankers.synthetic import synthetic_collection

    collection = synthetic_collection(seed=seed)
    if keep is not None:
        save_collection(collection, keep)
    return collection


@matrix_app.command("count")
def matrix_count(
    file: VotesArgument,
    out: Annotated[Path | None, typer.Option(help="Matrix file to write: .csv, .txt or .npz.")] = None,
    roles: RolesOption = None,
    without: WithoutOption = None,
    on_error: OnErrorOption = OnError.stop,
    format: FormatOption = Format.table,
) -> None:
    """Count past votes: which arms beat which, and whether sampling error leaves the winner open."""
    from ..problems import check_matrix_path, save_matrix
    from ..votes.readers import count_votes

    if out is not None:
        check_matrix_path(out)
    votes = count_votes(file, **read_options(roles, on_error, without))
    matrix = votes.matrix()
    if out is not None:
        save_matrix(matrix, out)
    _print_matrix(matrix, format)
    for note in votes.notes:
        print(note, file=sys.stderr)
    if out is not None:
        print(f"saved in {out}", file=sys.stderr)


@matrix_app.command("generate")
def matrix_generate(
    problem: Annotated[str, typer.Argument(help="A problem, e.g. bradley-terry:arms=16,seed=3.")],
    out: Annotated[Path, typer.Option(help="Matrix file to write: .csv, .txt, .npy or .npz.")],
) -> None:
    """Write a named or generated problem to a matrix file."""
    from ..problems import load_problem, save_matrix

    save_matrix(load_problem(problem), out)
    print(f"saved in {out}", file=sys.stderr)


def _bounds_text(matrix: "PreferenceMatrix") -> str:
    """Return RUCB's regret bound for the matrix, in one line."""
    from .. import theory

    if matrix.condorcet_winner is None:
        return "none: there is no Condorcet winner"
    at = [theory.expected_regret_bound(matrix, t, 1.5) for t in (10**3, 10**6, 10**9)]
    return "E[R_t] ≤ " + ", ".join(f"{bound:,.0f}" for bound in at) + " at t = 10^3, 10^6, 10^9 (rucb:alpha=1.5)"
