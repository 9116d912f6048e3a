"""`duels agreement`: how far the voters of a file agree."""

import json
from typing import Annotated

import typer

from .live import _columns
from .printing import Format, FormatOption, column, print_rows, print_text


def agreement(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Votes as CSV or JSONL, also .gz; - for standard input.")],
    question: Annotated[
        list[str] | None,
        typer.Option(help="A column that says what was asked; repeatable.", show_default="question_id, prompt, …"),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="The role of a column, e.g. voter=worker, or voter=3 without a header; repeatable."),
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Measure how far voters agree, and list those who prefer a side or answer at random."""
    from ..study.shared_questions import read_questions
    from ..study.voter_agreement import agreement_of

    found = agreement_of(*read_questions(file, question or None, _columns(column)))
    if format is Format.json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    elif format.is_rows:
        print_rows([one._asdict() for one in found.voters], format, VOTER_COLUMNS)
    else:
        print_text(str(found))


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
)
