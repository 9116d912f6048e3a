"""`duels experiment run-continuous`: policies on functions of continuous parameters."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from .printing import Column, Format, FormatOption, QuietOption, SeedOption, column, interruptible, number, print_rows
from .runs import with_error

if TYPE_CHECKING:
    from ..results import Results


def run_continuous(
    functions: Annotated[
        list[str],
        typer.Argument(metavar="FUNCTION", help="Functions by name, with parameters, e.g. branin or ackley:d=4."),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", "-p", help="A policy, e.g. gp_rucb:beta=3; repeatable.", show_default="eubo"),
    ] = None,
    duels: Annotated[str, typer.Option(help="Duels of each run, initial ones included.")] = "50",
    runs: Annotated[str, typer.Option(help="Independent runs.")] = "20",
    seed: SeedOption = "0",
    steepness: Annotated[
        float, typer.Option(help="Left wins with probability σ(steepness · difference/standard deviation).")
    ] = 8.0,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for finished runs and results; the same command resumes there.")
    ] = None,
    format: FormatOption = Format.table,
    quiet: QuietOption = False,
) -> None:
    """Play policies on functions of continuous parameters and compare their regret."""
    from ..continuous.functions import find_function
    from ..continuous.policies import DEFAULT, load_policy
    from ..continuous.simulation import simulate_continuous
    from ..results import combine

    named = list(dict.fromkeys(find_function(one).name for one in functions))
    chosen = list(dict.fromkeys(str(load_policy(one)) for one in policy or [DEFAULT]))
    pairs = [(function, one) for function in named for one in chosen]
    count, times, start = number("duels", duels), number("runs", runs), number("seed", seed)
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInput(f"{out} is a file: expected a folder, or a name for one")
    parts = []
    with interruptible():
        for function, one in pairs:
            folder = out if out is None or len(pairs) == 1 else out / re.sub(r"[^\w.=-]", "-", f"{function}-{one}")
            parts.append(
                simulate_continuous(
                    *(function, one),
                    duels=count,
                    runs=times,
                    seed=start,
                    steepness=steepness,
                    jobs=jobs,
                    out=folder,
                    progress=False if quiet else None,
                )
            )
    results = parts[0] if len(parts) == 1 else combine(parts)
    print_rows(_rows(results), format, COLUMNS)
    if out is not None:
        if len(parts) > 1:
            results.save(out)
        print(f"saved in {out}", file=sys.stderr)


def _rows(results: "Results") -> list[dict[str, object]]:
    """The end of each simulation: regret of all duels, and simple regret of the recommendation, over runs."""
    import polars as pl

    last = results.frame.filter(pl.col("t") == pl.col("horizon"))
    simple = pl.col("simple_regret")
    found = last.group_by("problem", "policy", maintain_order=True).agg(
        duels=pl.col("t").first(),
        runs=pl.len(),
        regret=pl.col("regret").mean(),
        standard_error=pl.col("regret").std() / pl.len().sqrt(),
        simple_regret=simple.median(),
        simple_regret_q25=simple.quantile(0.25, "linear"),
        simple_regret_q75=simple.quantile(0.75, "linear"),
    )
    return found.rename({"problem": "function"}).to_dicts()


COLUMNS = (
    column("function"),
    column("policy"),
    column("duels", show=",", spare=2),
    column("runs", show=",", spare=3),
    Column("regret", ("regret", "standard_error"), with_error, spare=1),
    column("simple_regret", "median simple regret", ".3f"),
    Column("middle half", ("simple_regret_q25", "simple_regret_q75"), lambda low, high: f"{low:.3f} – {high:.3f}"),
)
