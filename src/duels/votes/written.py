"""Votes written to files."""

import csv
import io
import itertools
import json
import operator
import os
from datetime import datetime
from pathlib import Path

from ..errors import InvalidInput, UnknownName
from ..files import atomic_open, safe_cell
from .files import KINDS, VoteSource, read_votes
from .text_files import suffix_of
from .votes import Vote

WRITTEN = (",", "\t", "{")  # the kinds that `write_votes` writes
FORMATS = {  # the columns of a written file
    "duels": ("left", "right", "winner", "voter", "time", "duel"),
    "arena": ("model_a", "model_b", "winner", "judge", "tstamp"),
}


def write_votes(votes: VoteSource, path: str | os.PathLike[str], format: str = "duels") -> None:
    """Write a CSV, TSV or JSON Lines file (.gz too), from which `read_votes` reads the same votes.

    The file appears only when it is complete. In CSV and TSV, names that a spreadsheet would run as a formula, such as
    `=x`, get an apostrophe in front.

    Args:
        votes: Anything that `read_votes` reads.
        path: The file to write; its suffix decides what kind of file it is.
        format: `duels`, or `arena` for the columns model_a, model_b, winner, judge and tstamp, without ids of duels.

    Raises:
        InvalidInput: If the file cannot be written, or its suffix is unknown.
        UnknownName: If the format is unknown.
    """
    votes, path = read_votes(votes), Path(path)
    if format not in FORMATS:
        raise UnknownName("format of votes", format, FORMATS)
    kind = KINDS.get(suffix_of(path.name))
    if kind not in WRITTEN:
        known = ", ".join(suffix for suffix, kind in KINDS.items() if kind in WRITTEN)
        raise InvalidInput(f"{path}: unknown kind of file, expected one of {known}, with .gz if you like")
    columns = FORMATS[format] if votes.total == len(votes) else (*FORMATS[format], "count")
    rows = map(_arena_row if format == "arena" else operator.attrgetter(*FORMATS[format], "count"), votes)
    with atomic_open(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        if kind == "{":
            text.writelines(json.dumps(dict(zip(columns, row)), ensure_ascii=False) + "\n" for row in rows)
        else:  # text is always quoted, since a bare carriage return in a name would end the row
            writer = csv.writer(text, delimiter=kind, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
            safe = ([safe_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
            writer.writerows(itertools.chain([columns], (row[: len(columns)] for row in safe)))
        text.detach()


def _arena_row(vote: Vote) -> tuple[object, ...]:
    winner = {"left": "model_a", "right": "model_b"}.get(vote.winner, vote.winner)
    time = vote.time and datetime.fromisoformat(vote.time).timestamp()
    return vote.left, vote.right, winner, vote.voter, time, vote.count
