"""`duels judge`: which column of a file is best, by a language model, a program or the person at this terminal."""

import json
import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DuelsError, InvalidInput
from .live import LEADERBOARD_COLUMNS, STORAGE, StorageOption
from .printing import About, ConfidenceOption, Format, FormatOption, print_rows, print_text

if TYPE_CHECKING:
    from ..study.judging.result import JudgeResult

NO_WINNER = 3  # exit code


class Orders(StrEnum):
    """In which orders two outputs are shown."""

    auto = "auto"
    one = "one"
    both = "both"


def judge(
    outputs: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUTS",
            help="Prompts and outputs as CSV or JSON: a column per candidate; the columns prompt, arm and output; or "
            "the results of promptfoo.",
        ),
    ],
    openai: Annotated[
        str | None,
        typer.Option(
            "--openai", metavar="URL", help="Ask a model with an OpenAI-style API at this address, up to /v1."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model, with --openai.")] = None,
    price: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="IN OUT", help="Dollars per million tokens of input and output, with --openai."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The environment variable with the API key, which is sent to that address only.",
            show_default="OPENAI_API_KEY",
        ),
    ] = None,
    temperature: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="The model's temperature, with --openai; none sends none, for models that accept only their default.",
            show_default="0",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="Ask a program, which reads a question as JSON and prints left, right, tie, both_bad or skip.",
        ),
    ] = None,
    criteria: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What makes an output better; the judge sees it.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(metavar="N", help="Stop after this many calls, earlier runs included.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(metavar="DOLLARS", help="Stop at this cost, earlier runs included; needs --price.")
    ] = None,
    concurrency: Annotated[int, typer.Option(metavar="N", help="Calls made at the same time.")] = 8,
    orders: Annotated[
        Orders,
        typer.Option(
            help="Ask each question in one order or in both; auto switches to both if the judge prefers a side."
        ),
    ] = Orders.auto,
    confidence: ConfidenceOption = 0.95,
    margin: Annotated[float, typer.Option(help="Candidates closer than this count as practically tied.")] = 0.0,
    about: Annotated[
        About,
        typer.Option(
            help="What the verdict is about: new-items, prompts like these; these-items, these prompts by a judge that "
            "may answer differently each time; or these-answers, each of which is final."
        ),
    ] = About.new_items,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The study's name.", show_default="one for each file, judge and question"),
    ] = None,
    storage: StorageOption = STORAGE,
    format: FormatOption = Format.table,
) -> None:
    """Find the best of some candidates with a judge: --openai, --command, or yourself at this terminal.

    The same command continues a study that has stopped. The exit code is 0 if there is a winner, or if candidates are
    practically tied at the margin that was asked for, and 3 if not.
    """
    _check(openai, model, price, api_key_env, temperature, command, max_cost)
    from ..judges import command as program
    from ..judges import openai as language_model
    from ..judges import terminal
    from ..study.judging.find_best import find_best

    asked: Any
    if openai is not None:
        asked = language_model(
            openai,
            model or "",
            api_key_env=api_key_env or "OPENAI_API_KEY",
            criteria=criteria,
            price=price or (0.0, 0.0),
            temperature=_temperature(temperature),
        )
    else:
        asked = program(command, criteria=criteria) if command is not None else terminal(criteria)
    result = find_best(
        outputs,
        asked,
        max_calls=max_calls,
        max_cost=max_cost,
        concurrency=concurrency,
        orders=orders.value,
        confidence=confidence,
        margin=margin,
        about=about.value,
        study_name=study,
        storage=storage,
    )
    _print(result, format)
    if result.ended == "failed":
        raise DuelsError(f"the judge failed: {result.error}")
    if result.ended == "interrupted":
        raise KeyboardInterrupt
    is_tied = result.verdict.kind == "practically tied" and margin > 0 and not result.unconfirmed
    if result.winner is None and not is_tied:
        raise typer.Exit(NO_WINNER)


def _check(
    openai: str | None,
    model: str | None,
    price: tuple[float, float] | None,
    api_key_env: str | None,
    temperature: str | None,
    command: str | None,
    max_cost: float | None,
) -> None:
    """Refuse options that do not fit together. A key that was given by mistake is not shown."""
    if openai is not None and command is not None:
        raise InvalidInput("--openai and --command are two judges: expected one of them")
    if openai is not None and model is None:
        raise InvalidInput("--openai needs the name of a model: add --model NAME")
    extra = {"--model": model, "--price": price, "--api-key-env": api_key_env, "--temperature": temperature}
    if openai is None and (given := [name for name, value in extra.items() if value is not None]):
        raise InvalidInput(f"{given[0]} is about a language model: add --openai URL, or leave it out")
    if api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", api_key_env):
        raise InvalidInput(
            "--api-key-env is not the name of an environment variable: expected a name such as OPENAI_API_KEY, and the "
            "key in that variable"
        )
    if max_cost is not None and price is None:
        add = "--price IN OUT" if openai is not None else "--openai and --price"
        raise InvalidInput(f"--max-cost needs to know what a call costs: add {add}, or use --max-calls")
    if openai is None and command is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            "there is no judge, and no terminal to ask you: add --openai URL --model NAME, or --command LINE"
        )


def _temperature(given: str | None) -> float | None:
    if given is not None and given.lower() == "none":
        return None
    try:
        return 0.0 if given is None else float(given)
    except ValueError:
        raise InvalidInput(f"--temperature is {given!r}: expected a number, or none") from None


def _print(result: "JudgeResult", format: Format) -> None:
    rows = [row._asdict() for row in result.leaderboard]
    if format.is_rows:
        print_rows(rows, format, LEADERBOARD_COLUMNS if format.is_paper else None)
    elif format is Format.table:
        print_text(str(result))
    else:
        facts = {
            "study": result.study.name,
            "winner": result.winner,
            "verdict": result.verdict.as_dict(),
            "words": str(result.verdict),
            "leaderboard": rows,
            "ended": result.ended,
            "error": result.error,
            "calls": result.calls,
            "cost": result.cost,
            "failed": result.spent.failed,
            "bad": result.spent.bad,
            "repeats": result.spent.repeats,
            "identical": result.spent.identical,
            "saved": result.saved,
            "unconfirmed": result.unconfirmed,
            "unanswered": result.unanswered,
            "positions": [one._asdict() for one in result.positions],
            "repeatability": [one._asdict() for one in result.repeatability],
            "agreements": [one._asdict() for one in result.agreements],
        }
        print(json.dumps(facts, indent=2, ensure_ascii=False))
