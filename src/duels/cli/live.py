"""`duels create-study`, `ask`, `tell`, … : live studies from the command line."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidInput
from .printing import Format, FormatOption, JobsOption, QuietOption, SeedOption, number, print_rows, print_table

StorageOption = Annotated[
    str, typer.Option(envvar="DUELS_STORAGE", help="The database: sqlite:///file.db or postgresql://user@host/name.")
]
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="The study's name.")]
VoterOption = Annotated[str | None, typer.Option(help="Who answers.")]
ConfidenceOption = Annotated[float, typer.Option(help="The chance that no verdict is ever wrong.")]
STORAGE = "sqlite:///duels.db"


def create_study(
    study: StudyArgument,
    arms: Annotated[list[str] | None, typer.Argument(metavar="ARM", help="The alternatives to compare.")] = None,
    arms_file: Annotated[Path | None, typer.Option(help="A file with an arm on each line, instead.")] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", help="What chooses the duels.")] = "rucb",
    horizon: Annotated[str | None, typer.Option(help="How many duels there will be, if the policy needs it.")] = None,
    seed: SeedOption = "0",
    lease: Annotated[float, typer.Option(help="Seconds until an unanswered duel stops counting as under way.")] = 600.0,
    exists_ok: Annotated[bool, typer.Option("--load-if-exists", help="Do nothing if there is such a study.")] = False,
    storage: StorageOption = STORAGE,
) -> None:
    """Begin a study: which of these is best?"""
    from ..study.catalogue import create_study as create

    names = list(arms or [])
    if arms_file is not None:
        try:
            lines = arms_file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{arms_file} cannot be read: {error}") from None
        names += [line.strip() for line in lines if line.strip()]
    steps = None if horizon is None else number("horizon", horizon)
    made = create(
        names,
        study,
        storage,
        policy,
        horizon=steps,
        seed=number("seed", seed),
        lease=lease,
        load_if_exists=exists_ok,
    )
    where = "" if storage == STORAGE else f" --storage {shlex.quote(storage)}"
    hint = f"Next: duels ask {shlex.quote(made.name)}{where}"
    print(f"study {made.name!r}: {len(made.arms)} arms, policy {made.policy}. {hint}")


def studies(storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """List the studies of a storage."""
    from ..study.catalogue import list_studies

    rows = [info._asdict() for info in list_studies(storage)]
    if rows or format is Format.json:
        print_rows(rows, format)
    else:
        print("no studies yet. Begin one: duels create-study NAME ARM ARM …", file=sys.stderr)


def ask(
    study: StudyArgument,
    n: Annotated[int, typer.Option("-n", help="How many duels.")] = 1,
    voter: VoterOption = None,
    no_self: Annotated[bool, typer.Option("--no-self", help="Never an arm against itself: for people.")] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Ask for the next duel."""
    from ..study.catalogue import load_study

    duels = load_study(study, storage).ask(n, voter=voter, allow_self=not no_self)
    listed = duels if isinstance(duels, list) else [duels]
    rows = [{"duel": duel.id, "left": duel.left, "right": duel.right} for duel in listed]
    print_rows(rows, format)


def tell(
    study: StudyArgument,
    duel: Annotated[int, typer.Argument(metavar="DUEL", help="The duel's number.")],
    winner: Annotated[str, typer.Argument(metavar="WINNER", help="left, right, tie, both_bad, skip or an arm's name.")],
    voter: VoterOption = None,
    storage: StorageOption = STORAGE,
) -> None:
    """Tell who won a duel."""
    from ..study.catalogue import load_study

    load_study(study, storage).tell(duel, winner, voter=voter)


def undo(
    study: StudyArgument,
    duel: Annotated[int, typer.Argument(metavar="DUEL", help="The duel's number.")],
    storage: StorageOption = STORAGE,
) -> None:
    """Take back the answer to a duel."""
    from ..study.catalogue import load_study

    load_study(study, storage).undo(duel)


def leaderboard(
    study: StudyArgument,
    confidence: ConfidenceOption = 0.95,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Show the arms, best first."""
    from ..study.catalogue import load_study

    rows = [row._asdict() for row in load_study(study, storage).leaderboard(confidence)]
    if format is Format.table:
        print_table([_leaderboard_row(row) for row in rows], ("ties", "losses", "wins", "certain losses"))
    else:
        print_rows(rows, format)


def verdict(
    study: StudyArgument,
    confidence: ConfidenceOption = 0.95,
    margin: Annotated[float, typer.Option(help="Arms closer than this count as practically tied.")] = 0.0,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Say who is best, as far as that is certain."""
    from ..study.catalogue import load_study

    found = load_study(study, storage).verdict(confidence, margin)
    if format is Format.json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    elif format is Format.csv:
        print_rows([found.as_dict()], format)
    else:
        print(found)


def import_votes(
    study: StudyArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Votes as CSV or JSONL, also .gz; - for standard input.")],
    create: Annotated[bool, typer.Option("--create", help="Begin the study with the arms of the votes.")] = False,
    column: Annotated[
        list[str] | None, typer.Option(help="Which column is what, e.g. left=system_x; repeatable.")
    ] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", help="What chooses the duels, with --create.")] = "rucb",
    storage: StorageOption = STORAGE,
) -> None:
    """Take past votes into a study: all of them, or after an error none."""
    from ..study.catalogue import create_study as begin
    from ..study.catalogue import load_study
    from ..study.votes import read_votes

    votes = read_votes(file, columns=_columns(column))
    one = begin(votes.names, study, storage, policy) if create else load_study(study, storage)
    taken = one.import_votes(votes)
    print(f"columns: {votes.said}", file=sys.stderr)
    print(f"{taken:,} vote{'s were' if taken != 1 else ' was'} taken into {study!r}")


def export(
    study: StudyArgument,
    out: Annotated[Path, typer.Option(help="The file to write: .csv or .jsonl, also .gz.")],
    form: Annotated[str, typer.Option("--form", help="duels (left, right), or arena (model_a, model_b).")] = "duels",
    storage: StorageOption = STORAGE,
) -> None:
    """Write the answers of a study to a file."""
    from ..study.catalogue import load_study
    from ..study.votes import write_votes

    votes = load_study(study, storage).votes()
    write_votes(votes, out, form)
    print(f"{len(votes):,} votes are in {out}", file=sys.stderr)


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


def _columns(given: list[str] | None) -> dict[str, str]:
    pairs = [one.partition("=") for one in given or []]
    for what, equals, name in pairs:
        if not (what and equals and name):
            raise InvalidInput(f"--column {what} is not of the form left=NAME: say what a column is for, and its name")
    return {what: name for what, _, name in pairs}


def _leaderboard_row(row: dict[str, Any]) -> dict[str, str]:
    return {
        "rank": str(row["rank"]) if row["active"] else "",
        "arm": row["arm"] + ("" if row["active"] else " (retired)"),
        "score": f"{row['score']:.3f}",
        "between": f"{row['lower']:.2f} – {row['upper']:.2f}",
        "duels": str(row["duels"]),
        "wins": str(row["wins"]),
        "losses": str(row["losses"]),
        "ties": str(row["ties"]),
        "leads": str(row["beats"]),
        "certain wins": str(row["certain_wins"]),
        "certain losses": str(row["certain_losses"]),
    }


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


COMMANDS: dict[str, Callable[..., None]] = {
    "create-study": create_study,
    "studies": studies,
    "ask": ask,
    "tell": tell,
    "undo": undo,
    "leaderboard": leaderboard,
    "verdict": verdict,
    "import": import_votes,
    "export": export,
    "plan": plan,
}
