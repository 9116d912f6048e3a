"""The command `duels`: one function per subcommand, with heavy imports inside."""

import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from ..errors import DuelsError
from . import live
from .continuous import run_continuous
from .judging import judge
from .matrices import matrix_app
from .planning import plan
from .printing import Format, FormatOption, Interrupted, column, print_rows
from .runs import check, merge, plot, race, report, reproduce, run
from .server import serve, token_app
from .tuning import best, create_tuning, template, tune
from .votes import agreement, analyze, rate


class Commands(typer.core.TyperGroup):
    """A group of commands whose help shows full descriptions, wrapped if necessary."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        rows = [(name, self.commands[name].get_short_help_str(10_000)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the best of K alternatives from pairwise comparisons.",
)
study_app = typer.Typer(help="Live studies: create them, ask, tell, and see the results.", no_args_is_help=True)
experiment_app = typer.Typer(help="Finished experiments, policies and problems.", no_args_is_help=True)
votes_app = typer.Typer(help="What a file of votes shows about its voters.", no_args_is_help=True)
everyday: tuple[Callable[..., None], ...] = (reproduce, run, race, judge, tune, plan, analyze, rate, serve)
for command in everyday:
    app.command()(command)
for name, live_command in live.COMMANDS.items():
    study_app.command(name)(live_command)
study_app.command("create-tuning")(create_tuning)
study_app.command()(template)
study_app.command()(best)
finished: tuple[Callable[..., None], ...] = (merge, plot, report, check)
for command in finished:
    experiment_app.command()(command)
experiment_app.command("run-continuous")(run_continuous)
votes_app.command()(agreement)
app.add_typer(study_app, name="study", cls=Commands)
app.add_typer(matrix_app, name="matrix", cls=Commands)
app.add_typer(experiment_app, name="experiment", cls=Commands)
app.add_typer(votes_app, name="votes", cls=Commands)
app.add_typer(token_app, name="token", cls=Commands)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from .. import __version__

        print(f"duels {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())


@experiment_app.command()
def policies(format: FormatOption = Format.table) -> None:
    """List the policies, their parameters and papers."""
    from ..policies import BUILT_IN, defaults, load_policy

    found = [load_policy(name) for name in BUILT_IN]
    rows = [
        {
            "name": one.name,
            "parameters": defaults(one.module),
            "needs_horizon": one.needs_horizon,
            "may_never_end": bool(one.live),
            "paper": one.paper,
        }
        for one in found
    ]
    paper = column("paper", spare=2, least=40)
    columns = (
        column("name"),
        column("parameters"),
        column("needs_horizon", spare=1),
        column("may_never_end", spare=1),
        paper,
    )
    print_rows(rows, format, columns)


@experiment_app.command()
def problems(format: FormatOption = Format.table) -> None:
    """List the named problems and generated families with their parameters."""
    from ..problems import list_problems

    summary, reference = column("summary", least=30), column("reference", spare=2, least=30)
    columns = (column("name"), column("parameters", spare=1), summary, reference)
    print_rows([info._asdict() for info in list_problems()], format, columns)


def main() -> None:
    """Run the command. An error prints one line and exits with code 2."""
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # for terminals that cannot print ±
    try:
        code = app(standalone_mode=False, prog_name="duels") or 0
        if code == 130:  # how typer reports Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except Interrupted as error:
        _fail(str(error), 130)
    except DuelsError as error:
        _fail("; ".join([str(error), *getattr(error, "__notes__", ())]), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except MemoryError:
        _fail("not enough memory: use fewer runs, checkpoints or arms", 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # such as a full disk behind standard output
        where = f" {error.filename}" if error.filename else ""
        _fail(f"cannot read or write{where}: {error.strerror or error}", 2)
    except Exception as error:
        if not hasattr(error, "format_message"):  # only errors of usage have it
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        message = error.format_message()
        message += "" if message.endswith((".", "?")) else "."
        _fail(f"{message} See: {_command_path(sys.argv[1:])} --help", 2)


def _command_path(arguments: list[str]) -> str:
    """Return the command that the arguments name; errors do not always have it."""
    path, command = "duels", typer.main.get_command(app)
    for word in arguments:
        known = getattr(command, "commands", {})
        if word in known:
            path, command = f"{path} {word}", known[word]
        elif not word.startswith("-"):
            break
    return path


def _fail(message: str, code: int) -> None:
    print(f"duels: {message}", file=sys.stderr)
    sys.exit(code)


def _warn(message: object, *where: object, **more: object) -> None:
    print(f"duels: warning: {message}", file=sys.stderr)
