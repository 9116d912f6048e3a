"""Which column of a table of votes is for what: by its usual name, or as whoever reads the table says."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import InvalidInput, UnknownName

# What a column is for -> the names it goes by, in lower case, with _ for all but letters and digits.
COLUMNS = {
    "left": ("left", "model_a", "a", "arm_a", "item_a", "option_a", "player_a", "system_a", "first"),
    "right": ("right", "model_b", "b", "arm_b", "item_b", "option_b", "player_b", "system_b", "second"),
    "winner": ("winner", "outcome", "vote", "preference", "preferred", "choice", "better"),
    "loser": ("loser", "worse"),
    "voter": ("voter", "judge", "worker", "annotator", "rater", "user", "voter_id", "judge_id", "worker_id", "user_id"),
    "time": ("time", "tstamp", "timestamp", "datetime", "created_at", "voted_at"),
    "duel": ("duel", "duel_id"),
}
PAIRS = {*COLUMNS["winner"], *COLUMNS["loser"]}
WINNERS = ("left", "right", "tie", "both_bad")
ANSWERS = (*WINNERS, "skip")
SKIP = len(WINNERS)  # the code of a duel that was shown and not judged
# What a winner is called -> its code: words that come before the arms' names, and words that come after them.
WORDS = {"left": 0, "model_a": 0, "right": 1, "model_b": 1, "tie": 2, "both_bad": 3, "bothbad": 3, "tie_bothbad": 3}
WORDS |= {"skip": SKIP, "skipped": SKIP}
OTHER_WORDS = {"a": 0, "first": 0, "b": 1, "second": 1, "draw": 2, "equal": 2, "same": 2, "neither": 3, "pass": SKIP}


class Table(NamedTuple):
    """A source, before its cells are understood."""

    source: str
    unit: str  # what its rows are counted in: line or row
    header: list[Any]  # names; positions if there are none
    rows: Iterable[tuple[int, Any]]  # where a row begins, and the list of its cells, or an error if it has none


def headed(called: str, rows: Iterator[tuple[int, Any]], columns: Mapping[str, Any]) -> tuple[list[Any], Iterable]:
    """Header and rows. There is no header if columns are positions, or if two columns are neither winner nor loser.

    Arms may be called as a side is, such as a and b: that is a vote if one of them comes again.
    """
    line, first = next(rows, (1, "empty"))
    if not isinstance(first, list):
        raise InvalidInput(f"{called} is {first}: expected a header, such as left,right,winner, and a row a vote")
    known = {name for names in COLUMNS.values() for name in names}
    if not columns and len(first) == 2 and PAIRS.isdisjoint(map(plain, first)):
        rest = list(rows)
        later = {cell.strip() for _, cells in rest if isinstance(cells, list) for cell in cells}
        again = not later.isdisjoint(map(str.strip, first))
        if not again and not known.isdisjoint(map(plain, first)):
            without = "; of pairs without a header, by --column winner=0 --column loser=1"
            raise _unclear(Table(called, "line", first, rest), "no column is known to be winner", without)
        if rest and not again:
            raise InvalidInput(
                f"{called}, line {line}: {', '.join(first)} may be a header or a vote, as neither appears again. Say "
                f"which: columns={{'winner': {first[0]!r}, 'loser': {first[1]!r}}}, or {{'winner': 0, 'loser': 1}} "
                f"(--column winner=… --column loser=…)"
            )
        return [0, 1], [(line, first), *rest]
    if any(isinstance(column, int) for column in columns.values()):
        return list(range(len(first))), itertools.chain([(line, first)], rows)
    return first, rows


def plain(name: Any) -> str:
    text = str(name).strip().lower()
    return re.sub(r"\W+", "_", text).strip("_") or text if isinstance(name, str) else text


def roles_of(table: Table, columns: Mapping[str, Any]) -> dict[str, int]:
    """What the columns in use are for -> their positions: as asked for, else by their usual names."""
    if isinstance(table.header[0], int) and not columns:
        order = ("winner", "loser") if len(table.header) == 2 else ("left", "right", "winner", "voter", "time")
        columns = dict(zip(order, table.header))
    if unknown := [role for role in columns if role not in COLUMNS]:
        raise UnknownName("column of votes", unknown[0], COLUMNS)
    asked = {role: plain(name) for role, name in columns.items() if name is not None}
    roles: dict[str, int] = {}
    for role in [role for role in COLUMNS if role in asked or role not in columns]:
        names = {asked[role]} if role in asked else set(COLUMNS[role]) - set(asked.values())
        found = [at for at, name in enumerate(table.header) if plain(name) in names]
        if len(found) > 1 or (role in asked and not found):
            these = " or ".join(str(table.header[at]) for at in found)
            raise _unclear(table, f"{role} may be {these}" if found else f"no column {columns[role]!r} for {role}")
        roles |= dict(zip([role], found))
    pairs = "loser" in asked or ("loser" in roles and not {"left", "right"} <= roles.keys())
    needed = ("winner", "loser") if pairs else ("left", "right", "winner")
    if missing := [role for role in needed if role not in roles]:
        raise _unclear(table, f"no column is known to be {' or '.join(missing)}")
    return {role: at for role, at in roles.items() if role in (*needed, "voter", "time", "duel")}


def _unclear(table: Table, problem: str, more: str = "") -> InvalidInput:
    return InvalidInput(
        f"{table.source}: {problem}. Found {', '.join(map(str, table.header))}; expected left, right and winner, or "
        "winner and loser. Say which is which: columns={'left': '…', 'right': '…', 'winner': '…'} (--column left=…), "
        f"by name, or by position from 0 if there is no header{more}"
    )


def columns_said(header: list[Any], roles: dict[str, int]) -> str:
    names = {role: header[at] if isinstance(header[at], str) else f"column {at}" for role, at in roles.items()}
    return ", ".join(role if name == role else f"{name} → {role}" for role, name in names.items())
