"""`duels plan`: how many answers a verdict will need."""

from typing import Annotated

import typer

from ..errors import format_count
from .printing import (
    AboutOption,
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
    arms: Annotated[int | None, typer.Option(help="The number of arms.")] = None,
    gap: Annotated[
        float | None,
        typer.Option(help="How far the best arm's win rate is above one half, e.g. 0.05; 0 if all are equal."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", "-p", help="A policy; repeatable.", show_default="verdict, rucb, random"),
    ] = None,
    confidence: ConfidenceOption = 0.95,
    margin: Annotated[float, typer.Option(help="Arms closer than this count as practically tied.")] = 0.0,
    ties: Annotated[float, typer.Option(help="The share of answers that are ties, e.g. 0.2.")] = 0.0,
    items: Annotated[
        int | None, typer.Option(help="The number of items, if each pair is asked about each item once.")
    ] = None,
    about: AboutOption = None,
    parallel: Annotated[int, typer.Option(help="Questions open at any time, such as one per voter.")] = 1,
    budget: Annotated[
        int | None, typer.Option(help="The number of answers you can get; the table says how likely they suffice.")
    ] = None,
    studies: Annotated[int, typer.Option(help="Studies to simulate.")] = 200,
    limit: Annotated[str, typer.Option(help="Answers after which a simulated study stops.")] = "1e6",
    seed: SeedOption = "0",
    jobs: JobsOption = None,
    format: FormatOption = Format.table,
    quiet: QuietOption = False,
) -> None:
    """Estimate how many answers a verdict will need."""
    from ..study.plan import POLICIES, estimate_votes

    rows = estimate_votes(
        problem,
        arms=arms,
        gap=gap,
        policies=policy or POLICIES,
        confidence=confidence,
        margin=margin,
        ties=ties,
        items=items,
        about=None if about is None else about.value,
        parallel=parallel,
        budget=budget,
        studies=studies,
        limit=number("limit", limit),
        seed=number("seed", seed),
        jobs=jobs,
        progress=False if quiet else None,
    )
    found = [{key: _finite(value) for key, value in row._asdict().items()} for row in rows]
    if budget is None:
        found = [{key: value for key, value in row.items() if key != "within_budget"} for row in found]
    columns = [one for one in COLUMNS if rows[0].regret_median is not None or not one.fields[0].startswith("regret")]
    columns += [TIED] if any(row.tied for row in rows) else []
    columns += [] if budget is None else [WITHIN_BUDGET]
    print_rows(found, format, columns)
    if budget is not None and format is Format.table:
        for row in rows:
            known = f"{row.within_budget:.2f}"
            print(f"with {format_count(budget, 'answer')} you will know with probability {known} ({row.policy})")


def _finite(value: object) -> object:
    return None if value == float("inf") else value


def _answers(value: float | None) -> str:
    return "beyond the limit" if value is None else f"{value:,.0f}"


COLUMNS = (
    column("policy"),
    column("answers_median", "answers (median)", _answers),
    column("answers_90", "answers (90%)", _answers),
    column("regret_median", "regret (median)", ",.0f", spare=2),
    column("regret_90", "regret (90%)", ",.0f", spare=3),
    column("undecided", "no verdict", ".1%", spare=1),
    column("wrong", "wrong verdict", ".1%", spare=1),
)
TIED = column("tied", "practically tied", ".1%", spare=4)
WITHIN_BUDGET = column("within_budget", "within budget", ".1%")
