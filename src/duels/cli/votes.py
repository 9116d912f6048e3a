"""`duels analyze`, `duels rate` and `duels votes agreement`: what a file of votes shows."""

import json
import math
import sys
import warnings
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput, percent
from .live import LEADERBOARD_COLUMNS
from .printing import (
    Column,
    ConfidenceOption,
    Format,
    FormatOption,
    OnError,
    OnErrorOption,
    RolesOption,
    VotesArgument,
    WithoutOption,
    column,
    print_rows,
    print_text,
    read_options,
)

if TYPE_CHECKING:
    import polars as pl


def analyze(
    file: VotesArgument,
    confidence: ConfidenceOption = 0.95,
    margin: Annotated[float, typer.Option(help="Arms closer than this count as practically tied.")] = 0.0,
    roles: RolesOption = None,
    without: WithoutOption = None,
    on_error: OnErrorOption = OnError.stop,
    format: FormatOption = Format.table,
) -> None:
    """Analyze past votes: the arms, best first, and the verdict."""
    from ..study.analysis import analyze

    found = analyze(file, confidence=confidence, margin=margin, **read_options(roles, on_error, without))
    rows = [row._asdict() for row in found.leaderboard]
    if format is Format.table:
        print_text(f"{found.counts()} ({found.said})\n")
        print_rows(rows, format, LEADERBOARD_COLUMNS, note=found.ranked)
        print_text("\n".join(["", str(found.verdict), *found.notes]))
    elif format is Format.json:
        facts: dict[str, object] = {"votes": found.votes, "ties": found.ties, "skipped": found.skipped}
        facts |= {"left_out": found.left_out, "voters": found.voters}
        facts |= {"columns": found.said, "ranked": found.ranked}
        facts |= {"leaderboard": rows, "verdict": found.verdict.as_dict(), "notes": list(found.notes)}
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print_rows(rows, format, LEADERBOARD_COLUMNS)
        for note in found.notes:
            print(note, file=sys.stderr)


def rate(
    file: VotesArgument,
    model: Annotated[str, typer.Option(help="bradley-terry or rao-kupper.")] = "bradley-terry",
    scale: Annotated[str, typer.Option(help="elo, logit or probability.")] = "elo",
    anchor: Annotated[str | None, typer.Option(help="An arm whose rating is fixed at 1000, or ARM=RATING.")] = None,
    confidence: Annotated[float, typer.Option(help="Confidence level of each interval.")] = 0.95,
    interval: Annotated[str | None, typer.Option(help="sandwich, or bootstrap.", show_default="sandwich")] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(help="What else affects the votes: a column, or two for left and right (LEFT,RIGHT); repeatable."),
    ] = None,
    by: Annotated[str | None, typer.Option(help="One table per value of this column.")] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="Show ranks instead, overall and per value of this column; repeatable."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="Show ratings over time instead: per day, week, month, quarter or year."),
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show predicted win rates and vote counts of all pairs instead.")
    ] = False,
    ranks: Annotated[
        str, typer.Option(help="How ranks are assigned: ratings, or lmarena for LMArena's rule.")
    ] = "ratings",
    out: Annotated[
        Path | None, typer.Option(help="Also draw the table: .png, .svg, .pdf, .html or .json.", show_default=False)
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            help="Whose votes are one observation in the intervals: voter, a column, or none; auto: voter, if voters "
            "are named."
        ),
    ] = "auto",
    roles: RolesOption = None,
    without: WithoutOption = None,
    on_error: OnErrorOption = OnError.stop,
    format: FormatOption = Format.table,
) -> None:
    """Rate the arms of past votes, with intervals for votes that are complete."""
    from ..rating.overviews import category_ranks, ratings_over_time, win_rates
    from ..rating.table import rate as rate_arms
    from ..rating.table import read_rated
    from ..votes.readers import read_votes

    chosen_tables = {"--by": by, "--category": category, "--every": every, "--pairs": pairs}
    if len(given := [option for option, value in chosen_tables.items() if value]) > 1:
        raise InvalidInput(f"{given[0]} and {given[1]} are two tables: expected one of them")
    if out is not None and (by or category):
        raise InvalidInput(f"--out draws one table: leave out {given[0]}")
    covariates = [tuple(one.split(",")) if "," in one else one for one in covariate or []]
    names = [name for one in covariates for name in ([one] if isinstance(one, str) else one)]
    single, chosen = bool(covariates), None if cluster == "none" else cluster
    extra = [*names, *(category or []), *([by] if by else [])]
    reading = read_options(roles, on_error, without)
    if every or pairs or category:
        further = [] if chosen in (None, "auto", "voter") else [chosen]
        votes = read_votes(file, extra=[*extra, *further], **reading)
    else:
        votes = read_rated(file, extra, chosen, single, **reading)
    options: dict[str, Any] = {"model": model, "scale": scale, "confidence": confidence, "interval": interval}
    options |= {"covariates": covariates, "cluster": chosen, "ranks": ranks}
    reference = _anchor(anchor, votes.names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are among the notes
        if pairs:
            table = win_rates(votes, covariates=options["covariates"])
        elif category:
            table = category_ranks(votes, category, anchor=reference, **options)
        elif every:
            table = ratings_over_time(votes, every, anchor=reference, **options)
        else:
            table = rate_arms(votes, anchor=reference, by=by, **options)
    if out is not None:
        _draw(table, out, "pairs" if pairs else "time" if every else "ratings")
    if format is Format.table:
        print(f"columns: {votes.said}", file=sys.stderr)
    show = ".3f" if scale in ("probability", "logit") else ",.0f"
    if pairs:
        columns = PAIR_COLUMNS
    elif category:
        columns = [column(name, name) for name in table.columns]
    else:
        columns = [*([_by(by)] if by else []), *([column("period")] if every else []), *_columns(show)]
    rows = [{name: _finite(value) for name, value in row.items()} for row in table.rows(named=True)]
    print_rows(rows, format, columns, note="\n".join(table.notes))
    if format is not Format.table:
        for note in table.notes:
            print(note, file=sys.stderr)


def _anchor(given: str | None, names: tuple[str, ...]) -> str | tuple[str, float] | None:
    """An arm, or an arm and its rating; an arm's name may have an = itself."""
    if given is None or given in names:
        return given
    arm, equals, worth = given.rpartition("=")
    try:
        return (arm, float(worth)) if equals else given
    except ValueError:
        if arm in names:
            raise InvalidInput(f"--anchor {given}: {worth!r} is not a number, expected the rating of {arm!r}") from None
        return given


def _finite(value: object) -> object:
    """None for a limit that the votes do not give: JSON has no infinity; and a date as text."""
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _draw(table: "pl.DataFrame", out: Path, kind: str) -> None:
    """Save the figure of a table; of pairs there are two, the other one beside it."""
    from .. import figures

    if kind == "pairs":
        figures.save(figures.win_rates(table), out)
        counts = figures.save(figures.duel_counts(table), out.with_stem(f"{out.stem}-counts"))
        print(f"saved in {out} and {counts}", file=sys.stderr)
        return
    figures.save(figures.ratings(table) if kind == "ratings" else figures.ratings_over_time(table), out)
    print(f"saved in {out}", file=sys.stderr)


def _by(name: str) -> Column:
    return column(name, name)


def _columns(show: str) -> list[Column]:
    def between(lower: float | None, upper: float | None) -> str:
        below, above = "−∞" if lower is None else f"{lower:{show}}", "∞" if upper is None else f"{upper:{show}}"
        return f"{below} – {above}"

    def ranks(best: int, worst: int) -> str:
        return str(best) if best == worst else f"{best} – {worst}"

    return [
        column("rank"),
        column("arm"),
        column("rating", show=show),
        Column("between", ("lower", "upper"), between),
        Column("ranks", ("best_rank", "worst_rank"), ranks, 1),
        column("duels", show=",", spare=2),
    ]


def agreement(
    file: VotesArgument,
    question: Annotated[
        list[str] | None,
        typer.Option(help="A column that identifies the question; repeatable.", show_default="question_id, prompt, …"),
    ] = None,
    roles: RolesOption = None,
    without: WithoutOption = None,
    on_error: OnErrorOption = OnError.stop,
    format: FormatOption = Format.table,
) -> None:
    """Measure inter-voter agreement; flag voters with position bias, random answers or a favorite arm."""
    from ..study.voters.agreement import measure_agreement

    found = measure_agreement(file, question=question or None, **read_options(roles, on_error, without))
    if format is Format.json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    elif format.is_rows:
        print_rows([one._asdict() for one in found.voters], format, VOTER_COLUMNS)
    else:
        print_text(str(found))


PAIR_COLUMNS = [
    column("arm"),
    column("opponent"),
    Column("predicted", ("predicted",), lambda predicted: f"{percent(predicted)} %"),
    Column("share", ("share",), lambda share: "–" if share is None else f"{percent(share)} %"),
    column("duels", show=","),
]
VOTER_COLUMNS = (
    column("voter"),
    column("answers", show=","),
    column("left", show=","),
    column("right", show=","),
    column("p_side", show=".2g"),
    column("compared", show=","),
    column("share", show=".2f"),
    column("expected", show=".2f"),
    column("p_low", show=".2g"),
    column("p_chance", show=".2g"),
    column("one_sided"),
    column("at_random"),
    Column("favorite", ("favorite",), lambda arm: arm or ""),
    column("chosen", show=","),
    column("of", show=","),
    column("by_others", show=",.1f"),
    column("p_favor", show=".2g"),
    column("favors_arm"),
)
