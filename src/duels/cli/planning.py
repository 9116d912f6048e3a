"""`duels plan`: how many duels a verdict will take."""

from typing import Annotated, Any

import typer

from .printing import (
    ConfidenceOption,
    Format,
    FormatOption,
    JobsOption,
    QuietOption,
    SeedOption,
    number,
    print_rows,
    print_table,
)


def plan(
    problem: Annotated[str | None, typer.Argument(help="A matrix or problem, instead of --arms and --gap.")] = None,
    arms: Annotated[int | None, typer.Option(help="How many alternatives.")] = None,
    gap: Annotated[float | None, typer.Option(help="How far above one half the best one wins, e.g. 0.05.")] = None,
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p", help="A policy; repeatable.")] = None,
    confidence: ConfidenceOption = 0.95,
    studies: Annotated[int, typer.Option(help="How many studies to simulate.")] = 200,
    limit: Annotated[str, typer.Option(help="Duels after which a study is given up.")] = "1e6",
    seed: SeedOption = "0",
    jobs: JobsOption = None,
    format: FormatOption = Format.table,
    quiet: QuietOption = False,
) -> None:
    """Say how many duels a verdict will take."""
    from ..study.plan import POLICIES
    from ..study.plan import plan as simulate

    rows = simulate(
        problem,
        arms=arms,
        gap=gap,
        policies=policy or POLICIES,
        confidence=confidence,
        studies=studies,
        limit=number("limit", limit),
        seed=number("seed", seed),
        jobs=jobs,
        progress=False if quiet else None,
    )
    if format is Format.table:
        print_table([_plan_row(row._asdict()) for row in rows])
    else:
        print_rows([{key: _finite(value) for key, value in row._asdict().items()} for row in rows], format)


def _plan_row(row: dict[str, Any]) -> dict[str, str]:
    def shown(value: float) -> str:
        return f"{value:,.0f}" if value != float("inf") else "beyond the limit"

    return {
        "policy": row["policy"],
        "duels, half of the studies": shown(row["duels_median"]),
        "nine in ten": shown(row["duels_90"]),
        "regret, half": f"{row['regret_median']:,.0f}",
        "nine in ten ": f"{row['regret_90']:,.0f}",
        "no verdict": f"{row['undecided']:.1%}",
        "wrong verdict": f"{row['wrong']:.1%}",
    }


def _finite(value: Any) -> Any:
    return None if value == float("inf") else value
