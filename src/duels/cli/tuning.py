"""`duels tune`, and of studies `create-tuning`, `template` and `best`: which setting of some parameters is preferred?

Here is also what other commands do with tuning studies."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DuelsError, InvalidInput, format_count
from .live import STORAGE, StorageOption, StudyArgument, already_there, say, where
from .printing import Format, FormatOption, Interrupted, SeedOption, number, print_record, print_rows, print_text

if TYPE_CHECKING:
    from ..continuous.tuning.judged import TuningResult
    from ..continuous.tuning.log import TuningDuel
    from ..continuous.tuning.result import Best
    from ..continuous.tuning.study import TuningStudy


SpaceArgument = Annotated[str, typer.Argument(metavar="SPACE", help="The parameters: a .toml or .json file.")]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", "-p", help="The policy that chooses the duels.", show_default="eubo")
]


def tune(
    space: SpaceArgument,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="Ask a program, which reads two settings as JSON and prints left, right, tie, both_bad or skip.",
        ),
    ] = None,
    criteria: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What makes a setting better; the judge sees it.")
    ] = None,
    max_duels: Annotated[
        int, typer.Option(metavar="N", help="Stop after this many duels, earlier runs included.")
    ] = 50,
    concurrency: Annotated[int, typer.Option(metavar="N", help="Programs that run at the same time.")] = 1,
    policy: PolicyOption = None,
    seed: SeedOption = "0",
    study: Annotated[
        str | None,
        typer.Option("--study", "--name", metavar="NAME", help="The study's name.", show_default="one for each task"),
    ] = None,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Find the preferred parameter setting, judged by a program (--command) or by you.

    The same command continues a study that has stopped.
    """
    from ..continuous.spaces import read_space
    from ..continuous.tuning.judged import tune as run
    from ..continuous.tuning.judged import tuning_name
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
        answers = format_count(result.best.answers, "answer")
        raise Interrupted(
            f"interrupted; study {chosen!r} keeps its {answers}: the same command continues, and duels study best "
            f"{shlex.quote(chosen)}{where(storage)} shows the best setting"
        )


def create_tuning(
    study: StudyArgument,
    space: SpaceArgument,
    template: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="An HTML page for voters, with {{ name }} for the values of parameters."),
    ] = None,
    scripts: Annotated[bool, typer.Option("--scripts", help="Run scripts of the page.")] = False,
    policy: PolicyOption = None,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence level of the intervals.", show_default="0.95")
    ] = None,
    seed: SeedOption = "0",
    lease: Annotated[float, typer.Option(help="Seconds until an unanswered duel expires.")] = 600.0,
    exists_ok: Annotated[
        bool, typer.Option("--load-if-exists", help="Accept an existing study with this space; its page stays.")
    ] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Create a tuning study: which parameter setting do people prefer?"""
    from ..continuous.spaces import read_space
    from ..continuous.tuning.create import create_tuning as create
    from ..continuous.tuning.templates import check_template, find_unused, has_script
    from ..study.base import clock

    found, luck, before = read_space(space), number("seed", seed), clock()
    if scripts and template is None:
        raise InvalidInput("--scripts is about the page of --template: add --template PAGE, or leave it out")
    page = None if template is None else check_template(_page(template), found)  # before the study is created
    options: dict[str, Any] = {"confidence": confidence, "seed": luck, "lease": lease, "load_if_exists": exists_ok}
    made = create(found, study, storage, policy, **options)
    if page is not None and made._log.row.created >= before:
        made.set_template(page, scripts=scripts)
    named, elsewhere = shlex.quote(made.name), where(storage)
    serve = f"duels serve{elsewhere.replace(' --storage', '')}"
    words = (
        f"study {made.name!r}: {format_count(len(made.space), 'parameter')}, policy {made.policy}. Next: {serve} for "
        f"people who vote in a browser, or duels study ask {named}{elsewhere}"
    )
    say(format, words, study=made.name, policy=made.policy, parameters=list(made.space.names))
    if page is not None and format is Format.table:
        _warn_of(find_unused(page, found))
        if has_script(page) and not scripts:
            print(
                f"the page has a script, which does not run: duels study template {named} --scripts{elsewhere}",
                file=sys.stderr,
            )


def template(
    study: StudyArgument,
    page: Annotated[
        Path | None, typer.Argument(metavar="PAGE", help="An HTML page with {{ name }} for the values of parameters.")
    ] = None,
    scripts: Annotated[
        bool | None, typer.Option("--scripts/--no-scripts", help="Whether scripts of the page run.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the page, so that voters see the values.")] = False,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Show or set the HTML page on which voters of a tuning study see a setting."""
    from ..continuous.tuning.create import load_tuning
    from ..continuous.tuning.templates import find_unused
    from ..study.items import allow_scripts, scripts_allowed

    one = load_tuning(study, storage)
    if remove and page is not None:
        raise InvalidInput(f"{page} is to be set, and --remove removes the page: use one of them")
    if remove and scripts is not None:
        raise InvalidInput("without a page there are no scripts: leave out --scripts and --no-scripts, or --remove")
    if remove or page is not None:
        one.set_template(None if page is None else _page(page), scripts=scripts)
    elif scripts is not None:
        allow_scripts(one, scripts)
    html = one.template
    left_out = [] if html is None else find_unused(html, one.space)
    if format is not Format.table:
        facts = {"study": one.name, "template": html, "scripts": scripts_allowed(one), "unused": left_out}
        say(format, "", **facts)
    elif page is None and scripts is None and not remove:
        print(f"study {one.name!r} has no template: voters see the values" if html is None else html)
    else:
        done = "voters see the values" if html is None else f"voters see {page or 'the page'} with the values"
        run = "" if html is None else f"; its scripts {'run' if scripts_allowed(one) else 'do not run'}"
        print(f"study {one.name!r}: {done}{run}")
        _warn_of(left_out)


def _warn_of(unused: list[str]) -> None:
    """Name the parameters that a page does not show."""
    if unused:
        print(f"the page has no place for {', '.join(unused)}", file=sys.stderr)


def _page(file: Path) -> str:
    """The text of a file with a page."""
    from ..continuous.tuning.templates import MOST

    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(MOST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def best(study: StudyArgument, storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """Show the best setting of a tuning study so far."""
    from ..continuous.tuning.create import load_tuning

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
        print_record({key: _format_value(value, format) for key, value in found.as_dict().items()}, format)


def _format_value(value: object, format: Format) -> object:
    """A setting as a format has it: as JSON in CSV, as text in tables; in papers, numbers have three digits."""
    from ..continuous.tuning.result import setting_text

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
    return {"left": _format_value(duel.left, format), "right": _format_value(duel.right, format)}


def export_duels(study: "TuningStudy", out: str, form: str) -> int:
    """Write the answers of a tuning study to a file; returns how many there are."""
    from ..continuous.tuning.files import write_duels

    if form != "duels":
        raise InvalidInput(f"--form is {form!r}, and study {study.name!r} tunes parameters: leave --form out")
    return write_duels(study, out)


def import_duels(study: "TuningStudy", file: str, again: bool, new: bool) -> int:
    """Add the past duels of a file, as `export_duels` writes it; returns how many were added.

    Duels that the study already has are refused, counted twice if `again`, or left out if `new`.
    """
    from ..continuous.tuning.files import check_duels, find_known_duels, parse_duels, read_duels

    if file == "-":
        found = parse_duels(sys.stdin.buffer.read(), study.space, "standard input")
    else:
        found = read_duels(study.space, file)
    past = check_duels(study.space, found)
    known = [False] * len(past) if again else find_known_duels(study, past)
    if any(known) and not new:
        if all(one.time is None for one in past):  # then all are known
            raise InvalidInput(
                f"exactly these duels were imported into {study.name!r} before: use --again to count them twice; "
                "nothing was imported"
            )
        raise already_there(
            f"{sum(known):,} of these {format_count(len(past), 'duel')}", sum(known), study.name, "settings"
        )
    return study.import_duels([one for one, there in zip(past, known) if not there])
