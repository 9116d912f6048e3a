"""`duels plan`: how many duels a verdict will need."""

from typing import Annotated

import typer

from .printing import (
    ConfidenceOption,
    Format,
    FormatOption,
    JobsOption,
    QuietOption,
    SeedOption,
    column,
    number,
    print_rows,
)


def plan(
    problem: Annotated[str | None, typer.Argument(help="A matrix or problem, instead of --arms and --gap.")] = None,
    arms: Annotated[int | None, typer.Option(help="How many alternatives.")] = None,
    gap: Annotated[
        float | None, typer.Option(help="How far the best one's win rate is above one half, e.g. 0.05.")
    ] = None,
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p", help="A policy; repeatable.")] = None,
    confidence: ConfidenceOption = 0.95,
    studies: Annotated[int, typer.Option(help="How many studies to simulate.")] = 200,
    limit: Annotated[str, typer.Option(help="Duels after which a simulated study stops.")] = "1e6",
    seed: SeedOption = "0",
    jobs: JobsOption = None,
    format: FormatOption = Format.table,
    quiet: QuietOption = False,
) -> None:
    """Estimate how many duels a verdict will need."""
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
    print_rows([{key: _finite(value) for key, value in row._asdict().items()} for row in rows], format, COLUMNS)


def _finite(value: object) -> object:
    return None if value == float("inf") else value


def _duels(value: float | None) -> str:
    return "beyond the limit" if value is None else f"{value:,.0f}"


COLUMNS = (
    column("policy"),
    column("duels_median", "duels (median)", _duels),
    column("duels_90", "duels (90%)", _duels),
    column("regret_median", "regret (median)", ",.0f", spare=2),
    column("regret_90", "regret (90%)", ",.0f", spare=3),
    column("undecided", "no verdict", ".1%", spare=1),
    column("wrong", "wrong verdict", ".1%", spare=1),
)
