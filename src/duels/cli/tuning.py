"""`duels tune` and `duels best`: which setting of some parameters is preferred; tuning studies in other commands."""

import json
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DuelsError, InvalidInput, counted
from .live import STORAGE, StorageOption, StudyArgument, where
from .printing import Format, FormatOption, Interrupted, SeedOption, number, print_record, print_rows, print_text

if TYPE_CHECKING:
    from ..continuous.advice import Best
    from ..continuous.judged import TuningResult
    from ..continuous.tuning import Tuning, TuningDuel


def tune(
    space: Annotated[str, typer.Argument(metavar="SPACE", help="The parameters: a .toml or .json file.")],
    command: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="Ask a program: two settings as JSON on standard input, left, right, tie, both_bad or skip on "
            "standard output.",
        ),
    ] = None,
    criteria: Annotated[str | None, typer.Option(metavar="TEXT", help="What makes a setting better.")] = None,
    max_duels: Annotated[
        int, typer.Option(metavar="N", help="Stop after so many duels, those of earlier runs included.")
    ] = 50,
    concurrency: Annotated[int, typer.Option(metavar="N", help="How many programs run at the same time.")] = 1,
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help="The policy that chooses the duels.", show_default="eubo")
    ] = None,
    seed: SeedOption = "0",
    study: Annotated[
        str | None,
        typer.Option("--study", "--name", metavar="NAME", help="The study's name.", show_default="one for each task"),
    ] = None,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Find the setting of some parameters that is preferred, with --command, or yourself at this terminal.

    The same command continues a study that has stopped.
    """
    from ..continuous.judged import tune as run
    from ..continuous.judged import tuning_name
    from ..continuous.space_files import read_space
    from ..judges import command as program
    from ..judges import terminal

    found, luck = read_space(space), number("seed", seed)
    if command is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("there is no judge, and no terminal to ask you: add --command LINE")
    asked: Any = program(command, criteria=criteria) if command is not None else terminal(criteria)
    chosen = tuning_name(found, asked, policy, luck) if study is None else study
    result = run(
        found,
        asked,
        max_duels=max_duels,
        concurrency=concurrency,
        policy=policy,
        seed=luck,
        storage=storage,
        study_name=chosen,
    )
    _print(result, format)
    if result.ended == "failed":
        raise DuelsError(f"the judge failed: {result.error}; the same command continues")
    if result.ended == "interrupted":
        answers = counted(result.best.answers, "answer")
        raise Interrupted(
            f"interrupted; study {chosen!r} keeps its {answers}: the same command continues, and duels best "
            f"{shlex.quote(chosen)}{where(storage)} shows the best setting"
        )


def best(study: StudyArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """Show the best setting of a study that tunes parameters."""
    from ..continuous.catalogue import load_tuning

    _print_best(load_tuning(study, storage).best, format)


def _print(result: "TuningResult", format: Format) -> None:
    if format is Format.table:
        print_text(str(result))
    elif format is Format.json:
        facts = {"study": result.study.name, **result.best.as_dict(), "duels": result.duels, "ended": result.ended}
        facts |= {"error": result.error, "calls": result.calls, "cost": result.cost}
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _print_best(result.best, format)


def _print_best(found: "Best", format: Format) -> None:
    if format is Format.table:
        print_text(str(found))
    elif format is Format.json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    else:
        print_record({key: _shown(value, format) for key, value in found.as_dict().items()}, format)


def _shown(value: object, format: Format) -> object:
    """A setting as a format has it: as JSON in CSV, as text in tables; in papers, numbers have three digits."""
    from ..continuous.advice import setting_text

    if not isinstance(value, dict):
        return round(value, 3) if isinstance(value, float) and format.is_paper else value
    if format is Format.csv:
        return json.dumps(value, ensure_ascii=False)
    if format is Format.json:
        return value
    return setting_text(value, digits=3 if format.is_paper else 6)


def print_duels(duels: "list[TuningDuel]", format: Format, with_times: bool = False, none: str = "") -> None:
    """Print the duels of a tuning study."""
    rows = [{"duel": duel.id, **sides_of(duel, format)} for duel in duels]
    if with_times:
        rows = [row | {"asked": duel.time} for row, duel in zip(rows, duels)]
    print_rows(rows, format, none=none)


def sides_of(duel: Any, format: Format) -> dict[str, object]:
    """Return the two sides of a duel of any study, as they are printed."""
    return {"left": _shown(duel.left, format), "right": _shown(duel.right, format)}


def export_duels(study: "Tuning", out: str, form: str) -> int:
    """Write the answers of a tuning study to a file; returns how many there are."""
    from ..continuous.past_duels import write_duels

    if form != "duels":
        raise InvalidInput(f"--form is {form!r}, and study {study.name!r} tunes parameters: leave --form out")
    return write_duels(study, out)


def import_duels(study: "Tuning", file: str) -> int:
    """Add the past duels of a file, as `export_duels` writes it; returns how many there were."""
    from ..continuous.past_duels import read_duels

    return study.import_duels(read_duels(study.space, file))
