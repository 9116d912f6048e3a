"""Votes row by row: what each row says, and what is wrong with those that cannot be read."""

import operator
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache, partial

import numpy as np

from ..errors import InvalidInput, format_count, shorten
from .columns import (
    COUNTED,
    OTHER_WORDS,
    SKIP,
    WINNERS,
    WORDS,
    Table,
    columns_said,
    picker,
    plain,
    series,
    tells_votes_apart,
)
from .names import is_text, past_voter
from .text_files import TableEnds
from .votes import NEVER, Names, RowList, Times, Votes, microseconds_of

SHOWN = 5  # bad rows that an error lists
MOST_FAULTS = 10_000  # bad rows after which the others are not read
MOST = 2**53  # votes that one count may stand for
EMPTY = ("", "None", "nan", "NaN", "NaT", "<NA>")  # cells without a number or a time
FIELDS = ("left", "right", "winner", "voter", "time", "duel")
Fault = tuple[int, str]  # the line, and what is wrong with it
Judge = Callable[[object, object, object], tuple[str, str, int]]


def votes_of_rows(table: Table, roles: dict[str, int], extra: Sequence[str], skip: bool = False) -> Votes:
    """Read the votes of a table.

    Args:
        table: The table.
        roles: What its columns are for, from `roles_of`.
        extra: Names of further columns to keep.
        skip: Whether to leave out rows that cannot be read.

    Raises:
        InvalidInput: If any row cannot be read; with `skip`, if none can.
    """
    width = len(table.header)
    pairs = {"left": roles["winner"], "right": roles["loser"], "winner": width} if "loser" in roles else {}
    pick = operator.itemgetter(*((roles | pairs).get(role, width + 1) for role in FIELDS))
    outcomes = _outcomes(roles)
    further = picker(table, extra) if extra else None
    judge = lru_cache(1 << 16, typed=True)(judge_of(table, roles))  # most rows are repetitions of a few
    found, faults, rows = _Found(tells_votes_apart(table, roles)), _Faults(skip), 0
    for line, row in table.rows:
        if faults.are_too_many:
            break
        rows += 1
        try:
            if isinstance(row, ValueError):
                faults.is_fatal |= isinstance(row, TableEnds)
                raise row
            if len(row) != width:
                raise ValueError(f"{format_count(len(row), 'field')}, expected {width}")
            # Two more cells: if the columns are winner and loser, left has won; and None for missing columns.
            left, right, winner, voter, time, duel = pick([*row, "left", None])
            further_cells = further(row) if further else None
            found.row = row
            for word, count in ((winner, 1),) if outcomes is None else outcomes(row, winner):
                told = judge(left, right, word)
                found.add(told, found.voter(voter), moment_of(time), line, text_of(duel), further_cells, count)
        except TypeError:  # not hashable
            faults.add(line, "found a list or an object, expected text")
        except ValueError as error:
            faults.add(line, str(error))
    unread = unread_rows(
        table.source, table.unit, faults.first, faults.count, rows, skip and not faults.is_fatal, faults.are_too_many
    )
    votes = found.votes(columns_said(table.header, roles), table.source, extra)
    return replace(votes, unread=unread, repeats=found.repeats(votes.lines, table.unit))


class _Faults:
    """What is wrong with rows: all of the first ones, and how many there are."""

    def __init__(self, skip: bool) -> None:
        self._skip, self.first, self.count, self.is_fatal = skip, list[Fault](), 0, False

    @property
    def are_too_many(self) -> bool:
        """Whether the other rows need not be read."""
        return self.count == MOST_FAULTS and not self._skip

    def add(self, line: int, fault: str) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append((line, fault))


def unread_rows(
    source: str,
    unit: str,
    faults: Sequence[Fault],
    count: int,
    rows: int,
    skip: bool = False,
    has_more: bool = False,
) -> RowList:
    """Return the rows that cannot be read, or raise an error if there are any that must not be left out.

    Args:
        source: What to call the table.
        unit: What its rows are counted in.
        faults: The first of them, at least `SHOWN` if there are so many.
        count: How many there are.
        rows: How many rows there are in all.
        skip: Whether to leave them out, if there are others.
        has_more: Whether there are further rows, which were not read.
    """
    first = [f"{unit} {line}: {fault}" for line, fault in faults[:SHOWN]]
    if not count or (skip and count < rows):
        return RowList(count, tuple(first))
    listed = "".join(f"\n  {one}" for one in first)
    error = InvalidInput(
        f"{source}: {count:,} of {'the first ' * has_more}{rows:,} rows cannot be read, so nothing was imported"
        f"{f'; the first {SHOWN}' if count > SHOWN else ''}:{listed}"
    )
    if not skip:
        error.add_note('to leave such rows out: on_error="skip" (--on-error skip)')
    raise error


def judge_of(table: Table, roles: dict[str, int]) -> Judge:
    """Return a function from the cells left, right and winner to both names and the winner's code."""
    sides = [table.header[roles[side]] for side in ("left", "right") if side in roles]
    words = WORDS | {plain(name): code for code, name in enumerate(sides) if isinstance(name, str)}
    return partial(_judge, words, lru_cache(1 << 14, typed=True)(text_of))


def _judge(words: dict[str, int], text: Callable[[object], str | None], *cells: object) -> tuple[str, str, int]:
    left, right, winner = map(text, cells)
    if not left or not right:
        raise ValueError(f"the {'second' if left else 'first'} arm is empty or not text, expected its name")
    if left == right:
        raise ValueError(f"{shorten(left, 40)} is compared with itself, expected two different arms")
    word = _word(winner)
    code = words.get(word)
    if code is None:
        code = 0 if winner == left else 1 if winner == right else OTHER_WORDS.get(word)
    if code is None:
        raise ValueError(
            f"winner is {shorten(winner, 40)}, expected {', '.join(WINNERS)}, skip or one of the two names"
        )
    return left, right, code


_word = lru_cache(1 << 12)(plain)


def _outcomes(roles: dict[str, int]) -> Callable[[Sequence[object], object], list[tuple[object, int]]] | None:
    """How a row with counts is read: as outcomes, each with how often it came; None if the table has no counts."""
    if "count" in roles:
        at = roles["count"]
        return lambda row, winner: [(winner, count)] if (count := _count("count", row[at])) else []
    places = {word: roles[role] for role, word in COUNTED.items() if role in roles}
    if not places:
        return None
    return lambda row, _: [(word, count) for word, at in places.items() if (count := _count(word, row[at]))]


def _count(what: str, cell: object) -> int:
    """A count: a whole number; nothing is 0."""
    text = str(cell).strip()
    try:
        number = 0.0 if text in EMPTY else float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < MOST or number != int(number):
        raise ValueError(f"the count of {what} is {shorten(text, 40)}, expected a whole number from 0 to 9e15")
    return int(number)


def text_of(cell: object) -> str | None:
    """Return the text of a cell; None if it is empty, neither text nor a number, or text that UTF-8 cannot encode."""
    if not isinstance(cell, str):
        number = cell is not None and isinstance(cell, int | float | np.number)
        return str(cell) if number and cell == cell else None
    text = cell.strip()
    return text if text and is_text(text) else None


def voter_of(cell: object) -> str | None:
    """Return a voter's name; one that a study could not forget is refused here, while its line is known."""
    return past_voter((cell.strip() or None) if isinstance(cell, str) else text_of(cell))


def moment_of(cell: object) -> int:
    """Return a time in microseconds since 1970, from seconds or ISO 8601, in UTC unless it has a time zone."""
    text = str(cell).strip()
    if text in EMPTY:
        return NEVER
    try:
        moment = datetime.fromisoformat(text) if text[4:5] == "-" else datetime.fromtimestamp(float(text), UTC)
        return microseconds_of(moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"time is {shorten(text, 40)}, expected seconds since 1970 or such as 2025-01-31T12:00:00Z"
        ) from None


class _Found:
    """The votes so far, in arrays.

    Args:
        apart: See `tells_votes_apart`.
    """

    def __init__(self, apart: str) -> None:
        self._apart, self._mark = apart, array("q")  # hashes of rows; 0 for those that are not compared
        self.row: Sequence[object] = ()  # the cells of the votes that are added next
        self._names: dict[str, int] = {}
        self._voters: dict[str, int] = {}
        self._known: dict[object, int] = {None: -1}  # cells of voters
        self._left, self._right, self._winner = array("q"), array("q"), array("b")
        self._voter, self._time, self._line, self._count = array("i"), array("q"), array("q"), array("q")
        self._duels = list[str | None]()
        self._extra = list[tuple[object, ...]]()
        self._skipped = 0

    def voter(self, cell: object) -> int:
        """Return the number of a voter."""
        if not isinstance(cell, str | None):
            name = voter_of(cell)
            return -1 if name is None else self._voters.setdefault(name, len(self._voters))
        if cell not in self._known:
            name = voter_of(cell)
            self._known[cell] = -1 if name is None else self._voters.setdefault(name, len(self._voters))
        return self._known[cell]

    def add(
        self,
        told: tuple[str, str, int],
        voter: int,
        time: int,
        line: int,
        duel: str | None,
        extra: tuple[object, ...] | None,
        count: int,
    ) -> None:
        left, right, winner = told
        if winner == SKIP:
            self._skipped += count
            return
        names = self._names
        self._left.append(names[left] if left in names else names.setdefault(left, len(names)))
        self._right.append(names[right] if right in names else names.setdefault(right, len(names)))
        self._winner.append(winner)
        self._voter.append(voter)
        self._time.append(time)
        self._line.append(line)
        if self._apart:
            is_known = time != NEVER if self._apart == "time" else duel is not None or self._apart == "question"
            self._mark.append(_mark_of(self.row) if is_known else 0)
        if duel is not None or self._duels:
            self._duels += [None] * (len(self._winner) - 1 - len(self._duels))
            self._duels.append(duel)
        if extra is not None:
            self._extra.append(extra)
        if count != 1 or self._count:
            self._count.extend([1] * (len(self._winner) - 1 - len(self._count)))
            self._count.append(count)

    def repeats(self, lines: np.ndarray, unit: str) -> RowList:
        """Return the rows that are equal to an earlier one; rows are compared by a hash of 64 bits."""
        marks = _whole(self._mark)
        _, first, number = np.unique(marks, return_index=True, return_inverse=True)
        earlier = first[number]
        again = np.flatnonzero((earlier < np.arange(len(earlier))) & (marks != 0))
        return find_repeated_rows(lines[again].tolist(), lines[earlier[again[:SHOWN]]].tolist(), unit)

    def votes(self, said: str, source: str, extra: Sequence[str]) -> Votes:
        left, right, time, line = (_whole(column) for column in (self._left, self._right, self._time, self._line))
        voter = np.frombuffer(self._voter, np.int32) if self._voter else np.zeros(0, np.int32)
        winner = np.frombuffer(self._winner, np.int8) if self._winner else np.zeros(0, np.int8)
        further = {name: series(name, [row[k] for row in self._extra]) for k, name in enumerate(extra)}
        return Votes(
            tuple(self._names),
            left,
            right,
            winner,
            line,
            find_used_names(list(self._voters), voter),
            Times(time) if (time != NEVER).any() else None,
            tuple(self._duels) or None,
            self._skipped,
            said,
            source,
            further,
            _whole(self._count) if self._count else None,
        )


def _mark_of(row: Sequence[object]) -> int:
    try:
        return hash(tuple(row))
    except TypeError:  # lists and objects
        return hash(repr(row))


def find_repeated_rows(again: Sequence[int], earlier: Sequence[int], unit: str) -> RowList:
    """Return rows that are equal to an earlier one.

    Args:
        again: Their lines.
        earlier: The lines of the earlier ones, of the first few at least.
        unit: What rows are counted in.
    """
    return RowList(len(again), tuple(f"{unit} {one} as {unit} {other}" for one, other in zip(again[:SHOWN], earlier)))


def _whole(column: "array[int]") -> np.ndarray:
    return np.frombuffer(column, np.int64) if column else np.zeros(0, np.int64)


def find_used_names(names: list[str], codes: np.ndarray) -> Names | None:
    """Return voters without those who only skipped; None if nobody is left."""
    first = first_rows(np.where(codes < 0, len(names), codes), len(names) + 1)[:-1]
    used = np.flatnonzero(first < len(codes))
    used = used[np.argsort(first[used])]  # in the order of their first votes
    if used.tolist() != list(range(len(names))):
        renumbered = np.full(len(names) + 1, -1, np.int32)  # the last entry is for votes without a voter
        renumbered[used] = np.arange(len(used))
        names, codes = [names[k] for k in used], renumbered[codes]
    return Names(names, codes) if names else None


def first_rows(codes: np.ndarray, size: int) -> np.ndarray:
    """Return (size,) int64: the first row with each code; for a code that does not occur, the number of rows.

    Args:
        codes: (n,) int: From 0 to size − 1.
        size: How many codes there may be.
    """
    first = np.full(size, len(codes))
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of equal indices the last one counts
    return first
