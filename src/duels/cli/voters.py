"""`duels agreement`: how far the voters of a file agree."""

import json
from typing import Annotated

import typer

from .printing import (
    Format,
    FormatOption,
    RolesOption,
    VotesArgument,
    column,
    column_roles,
    print_rows,
    print_text,
)


def agreement(
    file: VotesArgument,
    question: Annotated[
        list[str] | None,
        typer.Option(help="A column that says what was asked; repeatable.", show_default="question_id, prompt, …"),
    ] = None,
    roles: RolesOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Measure how far voters agree, and list those who prefer a side or answer at random."""
    from ..study.shared_questions import read_questions
    from ..study.voter_agreement import agreement_of

    found = agreement_of(*read_questions(file, question or None, column_roles(roles)))
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
