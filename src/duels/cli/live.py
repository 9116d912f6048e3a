"""`duels study create`, `ask`, `tell`, …: live studies from the command line."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import Conflict, DuelsError, InvalidInput, StorageError, UnknownName, format_count, percent
from .printing import (
    AboutOption,
    Column,
    Format,
    FormatOption,
    OnError,
    OnErrorOption,
    RolesOption,
    SeedOption,
    VotesArgument,
    WithoutOption,
    column,
    number,
    print_record,
    print_rows,
    print_text,
    read_options,
)

if TYPE_CHECKING:
    from ..continuous.tuning.study import TuningStudy
    from ..study.study import Study
    from ..votes.votes import Votes

StorageOption = Annotated[
    str, typer.Option(envvar="DUELS_STORAGE", help="The database: sqlite:///file.db or postgresql://user@host/name.")
]
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="The study's name.")]
DuelArgument = Annotated[int, typer.Argument(metavar="DUEL", help="The duel's number.")]
ArmArgument = Annotated[str, typer.Argument(metavar="ARM", help="The arm's name.")]
VoterOption = Annotated[str | None, typer.Option(help="Who is asked, or answers.")]
OwnConfidenceOption = Annotated[
    float | None, typer.Option(help="Confidence level, valid at any stopping time.", show_default="the study's")
]
STORAGE = "sqlite:///duels.db"
LARGE, MANY = 5_000_000, 100_000  # bytes of a file, and rows of votes, that take long enough to show progress
NO_MARGIN = (
    "without a margin, a study of equally good arms never ends; --margin 0.05 accepts an arm that no other beats more "
    "than 55 % of the time"
)


class After(StrEnum):
    """What happens when the winner is known."""

    stop = "stop"
    rank = "rank"


def create_study(
    study: StudyArgument,
    arms: Annotated[list[str] | None, typer.Argument(metavar="ARM", help="The alternatives to compare.")] = None,
    arms_file: Annotated[Path | None, typer.Option(help="A file with one arm per line, instead.")] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help="The policy that chooses the duels.", show_default="verdict")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence level, valid at any stopping time.", show_default="0.95")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="Arms closer than this count as practically tied.", show_default="0.0")
    ] = None,
    after: Annotated[
        After | None, typer.Option(help="Once the winner is certain: stop, or rank the others.", show_default="stop")
    ] = None,
    about: AboutOption = None,
    horizon: Annotated[str | None, typer.Option(help="The number of duels, if the policy needs it, e.g. 1e4.")] = None,
    seed: SeedOption = "0",
    lease: Annotated[
        float, typer.Option(help="Seconds until an unanswered duel expires; later answers do not count.")
    ] = 3600.0,
    exists_ok: Annotated[
        bool, typer.Option("--load-if-exists", help="Accept an existing study with these arms, policy and goal.")
    ] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Create a study: which of these is best?"""
    from ..study.base import clock
    from ..study.create import create_study as create

    names = list(arms or [])
    if arms_file is not None:
        try:
            lines = arms_file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{arms_file} cannot be read: {error}") from None
        names += [line.strip() for line in lines if line.strip()]
    steps = None if horizon is None else number("horizon", horizon)
    luck, before = number("seed", seed), clock()
    made = create(
        names,
        study,
        storage,
        policy,
        confidence=confidence,
        margin=margin,
        after=None if after is None else after.value,
        about=None if about is None else about.value,
        horizon=steps,
        seed=luck,
        lease=lease,
        load_if_exists=exists_ok,
    )
    hint = f"Next: duels study ask {shlex.quote(made.name)}{where(storage)}"
    words = f"study {made.name!r}: {len(made.arms)} arms, policy {made.policy}. {hint}"
    say(format, words, study=made.name, policy=made.policy, arms=made.arms)
    may_never_end = made.goal.margin == 0 and not made.goal.asks_once
    if format is Format.table and may_never_end and made._log.row.created >= before:
        print(NO_MARGIN, file=sys.stderr)


def studies(storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """List the studies of a storage."""
    from ..study.create import list_studies

    rows = [info._asdict() for info in list_studies(storage)]
    some = [one for one in ("damaged", "parameters") if any(row[one] for row in rows)]
    columns = [one for one in STUDIES_COLUMNS if one.head not in ("damaged", "parameters") or one.head in some]
    print_rows(rows, format, columns, "no studies yet. Create one: duels study create NAME ARM ARM …")


def delete_study(
    study: StudyArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Delete a study with all its answers. This cannot be undone."""
    from ..study.create import delete_study as delete
    from ..study.create import list_studies

    found = {info.name: info for info in list_studies(storage)}
    if study in found and not yes:
        answers = found[study].answers
        held = "which is damaged" if answers is None else f"with its {format_count(answers, 'answer')}"
        print(f"Delete study {study!r} {held}? [y/N] ", end="", file=sys.stderr)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise InvalidInput(f"study {study!r} was not deleted: answer y to delete it, or use --yes")
    delete(study, storage)
    say(format, f"study {study!r} was deleted", study=study)


def add_arm(
    study: StudyArgument,
    arm: Annotated[list[str], typer.Argument(metavar="ARM...", help="The names of the arms.")],
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Add arms while the study runs."""
    from ..study.create import load_study

    one = load_study(study, storage)
    for name in arm:
        one.add_arm(name)
    say(format, "", study=study, arms=one.arms)


def retire_arm(
    study: StudyArgument, arm: ArmArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table
) -> None:
    """Retire an arm; its answers are kept."""
    from ..study.create import load_study

    one = load_study(study, storage)
    one.retire_arm(arm)
    say(format, "", study=study, arms=one.arms)


def ask(
    study: StudyArgument,
    n: Annotated[int, typer.Option("-n", help="How many duels.")] = 1,
    voter: VoterOption = None,
    no_self: Annotated[bool, typer.Option("--no-self", help="Never an arm against itself, for human voters.")] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Ask for the next duel."""
    from ..study.create import load_study

    if (tuning := _load_tuning(study, storage)) is not None:
        from .tuning import print_duels

        asked = tuning.ask(n, voter=voter)
        print_duels(asked if isinstance(asked, list) else [asked], format)
        return
    duels = load_study(study, storage).ask(n, voter=voter, allow_self=not no_self)
    listed = duels if isinstance(duels, list) else [duels]
    rows = [{"duel": duel.id, "left": duel.left, "right": duel.right} for duel in listed]
    print_rows(rows, format)


def allocate(
    study: StudyArgument,
    n: Annotated[str, typer.Option("-n", help="How many questions to divide among the pairs, also as 1e6.")],
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Show how often to ask each pair, for systems that decide by the batch."""
    from ..study.create import load_study

    rows = [row._asdict() for row in load_study(study, storage).allocate(number("n", n))]
    print_rows(rows, format, ALLOCATION_COLUMNS)


def open_duels(study: StudyArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """List the duels without an answer."""
    from ..study.create import load_study

    none = f"no duel of {study!r} is open. Ask for one: duels study ask {shlex.quote(study)}"
    if (tuning := _load_tuning(study, storage)) is not None:
        from .tuning import print_duels

        print_duels(tuning.open_duels(), format, with_times=True, none=none)
        return
    duels = load_study(study, storage).open_duels()
    rows = [{"duel": duel.id, "left": duel.left, "right": duel.right, "asked": duel.time} for duel in duels]
    print_rows(rows, format, OPEN_COLUMNS, none)


def tell(
    study: StudyArgument,
    duel: DuelArgument,
    winner: Annotated[
        str, typer.Argument(metavar="WINNER", help="left, right, tie, both_bad, skip (in any case), or an arm's name.")
    ],
    voter: VoterOption = None,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Tell who won a duel."""
    from .tuning import sides_of

    one = _load(study, storage)
    one.tell(duel, winner, voter=voter)
    say(format, "", study=study, duel=duel, **sides_of(one.duel(duel), format), winner=winner, voter=voter)


def undo(
    study: StudyArgument, duel: DuelArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table
) -> None:
    """Undo the answer to a duel."""
    from .tuning import sides_of

    one = _load(study, storage)
    one.undo(duel)
    say(format, "", study=study, duel=duel, **sides_of(one.duel(duel), format))


def forget(
    study: StudyArgument,
    voter: Annotated[str, typer.Argument(metavar="VOTER", help="The voter's name.")],
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Undo all answers of a voter and erase their name."""
    answers = _load(study, storage).forget(voter)
    say(format, f"{voter!r} is forgotten, with {format_count(answers, 'answer')}", study=study, answers=answers)


def leaderboard(
    study: StudyArgument,
    confidence: OwnConfidenceOption = None,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Show the arms, best first."""
    from ..study.create import load_study

    found = load_study(study, storage)._log.look().leaderboard(confidence)
    met = any(row.answers for row in found.rows)  # before the first answer there are no ranks
    print_rows(
        [row._asdict() for row in found.rows],
        format,
        LEADERBOARD_COLUMNS if met else LEADERBOARD_COLUMNS[1:],
        note=found.ranked if met else "",
    )


def verdict(
    study: StudyArgument,
    confidence: OwnConfidenceOption = None,
    margin: Annotated[
        float | None, typer.Option(help="Arms closer than this count as practically tied.", show_default="the study's")
    ] = None,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Print the verdict: the winner, or what is still undecided."""
    from ..study.create import load_study

    one = load_study(study, storage)
    found = one.verdict(confidence, margin)
    if format is Format.json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    elif format.is_rows:
        facts = found.as_dict()
        if format is Format.csv:
            facts = {key: _json_of(value) if isinstance(value, list) else value for key, value in facts.items()}
        print_record(facts, format)
    else:
        print_text(str(found))


def forecast(study: StudyArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """Estimate each arm's chance to be the best, and how many more answers are needed."""
    from ..study.create import load_study

    found = load_study(study, storage).forecast()
    if format is Format.json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    elif format.is_rows:
        print_rows([one._asdict() for one in found.chances], format)
    else:
        print_text(str(found))


def ranking(study: StudyArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """Show the order of the arms, and which ranks are certain."""
    from ..study.create import load_study

    rows = [row._asdict() for row in load_study(study, storage).ranking()]
    print_rows(rows, format, RANKING_COLUMNS)


def import_votes(
    study: StudyArgument,
    file: VotesArgument,
    create: Annotated[
        bool,
        typer.Option("--create", help="Create the study with the arms of the votes; after an error, none is created."),
    ] = False,
    roles: RolesOption = None,
    without: WithoutOption = None,
    on_error: OnErrorOption = OnError.stop,
    policy: Annotated[str | None, typer.Option("--policy", "-p", help="The policy, with --create.")] = None,
    horizon: Annotated[str | None, typer.Option(help="The number of duels, with --create.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also import votes that the study already has, which then count twice.")
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="Import only votes that the study does not have yet.")] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Import past votes into a study. If a row has an error, nothing is imported, unless such rows are skipped."""
    from ..engine.progress import show_working
    from ..study.stats.paths import find_paths_in
    from ..votes.readers import read_votes

    reading, steps = read_options(roles, on_error, without), None if horizon is None else number("horizon", horizon)
    if again and new and not create:
        raise InvalidInput("--again counts known votes twice, and --new leaves them out: use one of them")
    if not create and (tuning := _load_tuning(study, storage)) is not None:
        from .tuning import import_duels

        options = {"--column": roles, "--without": without, "--on-error": on_error is OnError.skip}
        if option := next((option for option, value in options.items() if value), None):
            raise InvalidInput(f"{option} is about votes on arms, and study {study!r} tunes parameters: leave it out")
        taken = import_duels(tuning, file, again, new)
        say(format, f"{format_count(taken, 'duel')} imported into {study!r}", study=study, duels=taken)
        return
    with show_working(f"reading {'standard input' if file == '-' else file}", _is_large(file)):
        votes = read_votes(file, **reading)
    with show_working(f"importing {format_count(votes.total, 'vote')} into {study!r}", len(votes) > MANY):
        if create:
            taken = _create_with(votes, study, storage, policy, steps)
        else:
            taken = _add_to(votes, study, storage, again, new)
    if format is Format.table:
        print(f"columns: {votes.said}", file=sys.stderr)
        if votes.skipped:
            print(f"{format_count(votes.skipped, 'skip')} left out", file=sys.stderr)
        if votes.left_out:
            print(f"{format_count(votes.left_out, 'vote')} of excluded voters left out", file=sys.stderr)
    for noticed in votes.notes:
        print(noticed, file=sys.stderr)
    if taken and (note := find_paths_in(votes)) is not None:
        print(note, file=sys.stderr)
    words = f"{taken:,} vote{'s were' if taken != 1 else ' was'} imported into {study!r}"
    say(format, words, study=study, votes=taken, skipped=votes.skipped, unread=votes.unread.count, columns=votes.said)


def export(
    study: StudyArgument,
    out: Annotated[
        str, typer.Option(help="The file to write: .csv, .tsv, .jsonl (also .gz) or .parquet; - for standard output.")
    ],
    form: Annotated[
        str, typer.Option("--form", help="The columns: duels, arena, lmarena, or trl for preference tuning.")
    ] = "duels",
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Write the answers of a study to a file."""
    from ..study.create import load_study
    from ..votes.writers import trl_pairs, write_votes

    left_out = ""
    if (tuning := _load_tuning(study, storage)) is not None:
        from .tuning import export_duels

        saved = export_duels(tuning, out, form)
    else:
        votes = load_study(study, storage).votes(items=form in ("lmarena", "trl"))
        write_votes(votes, out, form)
        saved = votes.total
        if form == "trl":
            pairs = trl_pairs(votes)
            saved, left_out = len(pairs.rows), pairs.left_out
    if format is Format.table:
        more = f"; {left_out} left out" if left_out else ""
        print(f"{format_count(saved, 'vote')} {'written' if out == '-' else f'saved in {out}'}{more}", file=sys.stderr)
    if out != "-":
        say(format, "", study=study, votes=saved, file=out)


def _load(study: str, storage: str) -> "Study | TuningStudy":
    """Load a study of any kind."""
    from ..study.create import load_study

    return _load_tuning(study, storage) or load_study(study, storage)


def _load_tuning(study: str, storage: str) -> "TuningStudy | None":
    """The study, if there is one of that name that tunes parameters."""
    from ..study.create import find_row

    try:
        store, row = find_row(study, storage)
    except (UnknownName, StorageError):
        return None
    if row.kind != "settings":
        return None
    from ..continuous.tuning.log import TuningLog  # these take a while to load
    from ..continuous.tuning.study import TuningStudy

    return TuningStudy(TuningLog(store, row))


def _is_large(file: str) -> bool:
    """Whether a file takes seconds to read: it is large, or a folder or a pattern of many."""
    return not os.path.isfile(file) or os.path.getsize(file) > LARGE


def say(format: Format, words: str, **facts: object) -> None:
    """Print what was done: as a sentence, if there is one, or as fields for programs."""
    if format is Format.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    elif format.is_rows:
        print_record(facts, format)
    elif words:
        print(words)


def _json_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def where(storage: str) -> str:
    """Return the option with which the next command finds the storage, without its password."""
    from ..storage.database_errors import without_password

    usual = os.environ.get("DUELS_STORAGE", STORAGE)
    return "" if storage == usual else f" --storage {shlex.quote(without_password(storage))}"


def _add_to(votes: "Votes", study: str, storage: str, again: bool, new: bool) -> int:
    """Import votes into an existing study; refuse votes that it already has, unless `again`, or leave them out."""
    from ..storage.batches import pack
    from ..study.answers.past_votes import UnknownArms, find_known_votes, was_imported, without
    from ..study.create import load_study
    from ..votes.names import name_imported

    try:
        one = load_study(study, storage)
    except UnknownName as error:
        error.add_note("use --create to create it with the arms of the votes")
        raise
    packed = pack(votes, name_imported)
    if not again and votes.times is None and was_imported(one, packed):
        if new:
            return 0
        raise InvalidInput(
            f"exactly these votes were imported into {study!r} before: use --again to count them twice; nothing was "
            "imported"
        )
    if not again and votes.times is not None:
        known = find_known_votes(votes, one.votes())
        number_known = int(known.sum())
        if number_known and not new:
            raise already_there(
                f"{number_known:,} of these {format_count(votes.total, 'vote')}", number_known, study, "arms"
            )
        if number_known:
            packed = pack(without(votes, known), name_imported)
    try:
        return one._log.import_packed(packed)
    except UnknownArms as error:
        error.add_note(f"here: duels study add-arm {shlex.quote(study)} {shlex.join(error.arms)}")
        raise


def already_there(some: str, known: int, study: str, sides: str) -> InvalidInput:
    """Return the error that a study has some of the votes that are to be imported.

    Args:
        some: How many of them, as text.
        known: How many of them.
        study: The study's name.
        sides: What was compared: arms or settings.
    """
    are, them = ("is", "it") if known == 1 else ("are", "them")
    return InvalidInput(
        f"{some} {are} in {study!r} already (same {sides}, answer, voter and time): use --new to import only the "
        f"others, or --again to count {them} twice; nothing was imported"
    )


def _create_with(votes: "Votes", study: str, storage: str, policy: str | None, horizon: int | None) -> int:
    """Create a study with the arms of the votes, and import them; after an error the study is deleted again."""
    from ..storage.batches import pack
    from ..study.create import create_study as create
    from ..study.create import delete_study as delete
    from ..votes.names import name_imported

    if not len(votes):
        header = "" if "json" in votes.source else "a header and "
        found = f"{format_count(votes.skipped, 'skip')} and " if votes.skipped else header
        raise InvalidInput(f"{votes.source} has {found}no votes: expected some, to create a study with their arms")
    try:
        one = create(votes.names, study, storage, policy, horizon=horizon)
    except Conflict:
        raise Conflict(
            f"there is a study {study!r} already: choose another name, or leave out --create to add the votes to it"
        ) from None
    try:
        return one._log.import_packed(pack(votes, name_imported))
    except BaseException as error:
        try:
            delete(study, storage)
        except DuelsError:
            error.add_note(f"study {study!r} was created without votes: duels study delete {shlex.quote(study)}")
        raise


def _format_limits(lower: float | None, upper: float | None) -> str:
    return "" if lower is None or upper is None else f"{percent(lower)} – {percent(upper)} %"


STUDIES_COLUMNS = (
    column("name"),
    column("policy", spare=2),
    Column("arms", ("arms",), lambda arms: "" if arms is None else f"{arms:,}"),
    Column("parameters", ("parameters",), lambda tuned: "" if tuned is None else f"{tuned:,}"),
    column("answers", show=","),
    column("open", show=",", spare=1),
    column("created", spare=3),
    column("damaged"),
)
OPEN_COLUMNS = (column("duel"), column("left"), column("right"), column("asked", spare=1))
ALLOCATION_COLUMNS = (column("left"), column("right"), column("times", show=","))
RANKING_COLUMNS = (column("rank"), column("arm"), column("certain"))
LEADERBOARD_COLUMNS = (
    Column("rank", ("rank",), lambda rank: "–" if rank is None else str(rank)),
    Column("arm", ("arm", "active"), lambda arm, active: arm if active else f"{arm} (retired)"),
    Column("wins", ("share",), lambda share: "–" if share is None else f"{percent(share)} %"),
    Column("between", ("lower", "upper"), _format_limits, 1),
    Column("rating", ("rating",), lambda rating: "–" if rating is None else f"{rating:,.0f}", 3),
    Column("won–lost–tied", ("wins", "losses", "ties"), lambda *counts: "–".join(f"{n:,}" for n in counts), 2),
    column("certain_wins", show=",", spare=4),
    column("certain_losses", show=",", spare=4),
)


COMMANDS: dict[str, Callable[..., None]] = {
    "create": create_study,
    "list": studies,
    "delete": delete_study,
    "add-arm": add_arm,
    "retire-arm": retire_arm,
    "ask": ask,
    "allocate": allocate,
    "open-duels": open_duels,
    "tell": tell,
    "undo": undo,
    "forget": forget,
    "leaderboard": leaderboard,
    "verdict": verdict,
    "forecast": forecast,
    "ranking": ranking,
    "import": import_votes,
    "export": export,
}
