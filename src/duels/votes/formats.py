"""Vote files of known evaluations, whose rows say who won in ways of their own.

A file is recognized by its columns. MT-Bench: Zheng et al. 2023, "Judging LLM-as-a-Judge with MT-Bench and Chatbot
Arena". Arena-Hard: Li et al. 2024. AlpacaEval: Dubois et al. 2024. Other files, such as those of LMArena and FastChat,
have a column for the winner, and those of Kaggle's LMSYS competition one for each outcome: they need nothing special.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..errors import shorten
from .columns import COLUMNS, Columns, Rows, Table, plain

ADDED = ("the left arm", "the right arm", "the winner")  # names of the columns that are added to a table
Pair = tuple[object, object, str]  # left, right and winner


class Format(NamedTuple):
    """One kind of file.

    Attributes:
        name: What it is called.
        needed: The columns by which it is recognized.
        said: Which column is taken for what.
        pairs: Returns the votes in a row. It raises ValueError if a cell is wrong.
    """

    name: str
    needed: tuple[str, ...]
    said: str
    pairs: Callable[[Mapping[str, object]], Iterable[Pair]]


def format_of(header: Sequence[object], columns: Columns) -> Format | None:
    """Return the format of a table with these columns; None if the caller says what the columns are for."""
    if any(role in columns for role in ("left", "right", "winner", "loser")):
        return None
    return next((one for one in FORMATS if set(one.needed) <= {*header}), None)


def reshape_table(table: Table, found: Format) -> Table:
    """Return a table with three more columns: left, right and winner of each vote; a row may become several."""
    return Table(table.source, table.unit, [*table.header, *ADDED], _rows(table, found))


def reshape_roles(columns: Columns) -> Columns:
    """Return what the columns of a reshaped table are for."""
    free = dict.fromkeys(("loser", "count", "duel"))
    return free | dict(columns) | dict(zip(("left", "right", "winner"), ADDED))


def columns_needed(found: Format, header: Sequence[object]) -> list[str]:
    """Return the columns of a table that its votes need."""
    optional = {*COLUMNS["voter"], *COLUMNS["time"]}
    return [str(name) for name in header if name in found.needed or plain(name) in optional]


def _rows(table: Table, found: Format) -> Rows:
    names = [str(name) for name in table.header]
    voters = {name for name in names if plain(name) in COLUMNS["voter"]}
    for line, row in table.rows:
        if isinstance(row, ValueError):
            yield line, row
            continue
        try:
            pairs = list(found.pairs(dict(zip(names, row))))
        except ValueError as error:
            yield line, error
            continue
        cells = [_voter(cell) if name in voters else cell for name, cell in zip(names, row)]
        yield from ((line, [*cells, *pair]) for pair in pairs)


def _voter(cell: object) -> object:
    """MT-Bench's judge is a list: a model and the name of its instructions."""
    return ", ".join(map(str, cell)) if isinstance(cell, list | tuple) else cell


def _mt_bench(row: Mapping[str, object]) -> Iterator[Pair]:
    """Both orders were judged; a judge who changes its mind means a tie."""
    words = {"model_1": "left", "model_2": "right", "tie": "tie", "error": "skip"}
    found = [words.get(str(row[name])) for name in ("g1_winner", "g2_winner")]
    if None in found:
        cells = " and ".join(shorten(row[name], 20) for name in ("g1_winner", "g2_winner"))
        raise ValueError(f"g1_winner and g2_winner are {cells}, expected model_1, model_2, tie or error")
    winner = "skip" if "skip" in found else found[0] if found[0] == found[1] else "tie"
    yield row["model_1"], row["model_2"], str(winner)


def _arena_hard(row: Mapping[str, object]) -> Iterator[Pair]:
    """Two games: in the first one A is the baseline, in the second one A is the model."""
    games, sides = row["games"], (row["baseline"], row["model"])
    if not isinstance(games, list) or not all(isinstance(game, Mapping) for game in games) or len(games) > 2:
        raise ValueError(f"games is {shorten(games, 40)}, expected a list of two games, each with a score")
    for game, (left, right) in zip(games, (sides, sides[::-1])):
        yield left, right, _read_grade(game.get("score"))


def _read_grade(score: object) -> str:
    """A score such as A>>B; a strong win is one win, as a weak one."""
    if score is None or score == "":
        return "skip"
    grades = {"A>>B": "left", "A>B": "left", "A=B": "tie", "B>A": "right", "B>>A": "right"}
    grades |= {"A<B": "right", "A<<B": "right", "B=A": "tie", "B<A": "left", "B<<A": "left"}
    if (word := grades.get(str(score).strip("[] ").upper())) is None:
        raise ValueError(f"the score of a game is {shorten(score, 20)}, expected A>>B, A>B, A=B, B>A or B>>A")
    return word


def _alpaca_eval(row: Mapping[str, object]) -> Iterator[Pair]:
    """A preference from 1, the first output, to 2, the second; 1.5 is a tie, and a missing one a skip."""
    cell = row["preference"]
    text = "" if cell is None else str(cell).strip()
    try:
        number = float(text or "nan")
    except ValueError:
        number = -1.0
    if number == number and not 1 <= number <= 2:
        raise ValueError(
            f"preference is {shorten(cell, 20)}, expected a number from 1, the first output, to 2, the second"
        )
    words = {True: "left", False: "right"}
    winner = "skip" if number != number else "tie" if number == 1.5 else words[number < 1.5]
    yield row["generator_1"], row["generator_2"], winner


FORMATS = (
    Format(
        "MT-Bench",
        ("model_1", "model_2", "g1_winner", "g2_winner"),
        "model_1 → left, model_2 → right, g1_winner and g2_winner → winner, a tie if they differ",
        _mt_bench,
    ),
    Format(
        "Arena-Hard",
        ("model", "baseline", "games"),
        "baseline and model → left and right, each once on either side, score of each game → winner",
        _arena_hard,
    ),
    Format(
        "AlpacaEval",
        ("generator_1", "generator_2", "preference"),
        "generator_1 → left, generator_2 → right, preference → winner",
        _alpaca_eval,
    ),
)


def pair_scores(outputs: Iterable[tuple[int, Mapping[str, tuple[float, bool]]]]) -> Iterator[tuple[int, list[object]]]:
    """Yield a row left, right and winner for each two outputs of a test: the one with the larger score wins.

    Args:
        outputs: For each test its place, and for each arm the score and whether it passed. Of two outputs with the same
            score that did not pass, both are bad.
    """
    for place, scores in outputs:
        for (left, (one, passed)), (right, (other, other_passed)) in itertools.combinations(scores.items(), 2):
            level = "tie" if passed or other_passed else "both_bad"
            yield place, [left, right, "left" if one > other else "right" if one < other else level]
