"""Who answered which question, and how: from votes that say who voted, and from studies."""

import sys
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput, UnknownName
from ..votes.columns import QUESTIONS, TURN
from ..votes.files import Reading, VoteSource, read_votes
from ..votes.votes import Votes
from .duels import LogEntry

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COIN = "coin"  # a column of answers of a study: whether a coin decided the sides
CHOICES = ("first", "second", "tie", "both_bad")
NEITHER = 2  # as a side
NO_PAIRS = np.zeros((2, 0), np.int64)


class HasEvents(Protocol):
    """A `Study`."""

    def events(self) -> list[LogEntry]: ...
    def votes(self) -> Votes: ...


class Answers(NamedTuple):
    """The n answers of V named voters to known questions.

    Attributes:
        names: The voters, in the order of their first answers.
        voter: (n,): Indices into `names`.
        question: (n,): Numbers of questions, from 0.
        choice: (n,): Indices into CHOICES: which of the question's two arms, tie or both bad.
        side: (n,): 0 for left, 1 for right; NEITHER also if no coin can have decided the sides.
        weight: (n,): How many equal votes these are.
        pairs: (2, Q): The two arms of each question, the one with the smaller number first.
    """

    names: tuple[str, ...]
    voter: Ints
    question: Ints
    choice: Ints
    side: Ints
    weight: Ints
    pairs: Ints = NO_PAIRS

    def only(self, kept: Ints | Bools) -> "Answers":
        """Return some of the answers."""
        voter, question, choice, side, weight = (column[kept] for column in self[1:6])
        return Answers(self.names, voter, question, choice, side, weight, self.pairs)

    def first(self) -> "Answers":
        """Return the first answer of each voter to each question, each counted once."""
        places = first_places(self.question * len(self.names) + self.voter)
        return self.only(places)._replace(weight=np.ones(len(places), np.int64))

    def per_voter(self, side: int | None = None) -> Ints:
        """Return (V,): how many votes each voter has; those for a side, if it is given."""
        some = self if side is None else self.only(self.side == side)
        found = np.zeros(len(self.names), np.int64)
        np.add.at(found, some.voter, some.weight)
        return found

    def of_several(self) -> "Answers":
        """Return the answers to questions with two answers or more."""
        return self.only((np.bincount(self.question, minlength=1) > 1)[self.question])

    def table(self) -> Ints:
        """Return (Q, 4): how often each question got each answer."""
        numbers = renumber(self.question)
        return np.bincount(numbers * 4 + self.choice, minlength=4 * (int(numbers.max(initial=-1)) + 1)).reshape(-1, 4)


def choices_of(shared: Answers) -> tuple[Ints, Ints, Ints]:
    """Return the answers that chose an arm where another voter did too.

    Args:
        shared: One answer at most of each voter to each question.

    Returns:
        (n,): Their voters, how many others chose the same arm, and how many the other one.
    """
    chosen = shared.only(shared.choice < NEITHER).of_several()
    number = renumber(chosen.question)
    table = chosen.table()[:, :NEITHER]
    return chosen.voter, table[number, chosen.choice] - 1, table[number, 1 - chosen.choice]


def first_places(values: Ints) -> Ints:
    """Return where each different value of (n,) numbers from 0 is for the first time, in order.

    Example:
        >>> first_places(np.array([4, 0, 4, 2, 0])).tolist()
        [0, 1, 3]
    """
    if _are_sparse(values):
        return np.sort(np.unique(values, return_index=True)[1])
    place = np.full(int(values.max(initial=-1)) + 1, -1, np.int32)
    place[values[::-1]] = np.arange(len(values) - 1, -1, -1, dtype=np.int32)  # of equal indices the last one counts
    found = np.zeros(len(values), bool)
    found[place[place >= 0]] = True
    return np.flatnonzero(found)


def renumber(values: Ints) -> Ints:
    """Return the number of each value among the different ones, from 0; the values are numbers from 0.

    Example:
        >>> renumbered(np.array([4, 0, 4, 2])).tolist()
        [2, 0, 2, 1]
    """
    if _are_sparse(values):
        return np.unique(values, return_inverse=True)[1]
    seen = np.zeros(int(values.max(initial=-1)) + 1, bool)
    seen[values] = True
    return np.asarray((np.cumsum(seen) - 1)[values])


def _are_sparse(values: Ints) -> bool:
    """Whether sorting is better than a table with an entry for each possible value."""
    return int(values.max(initial=0)) > 20 * len(values) + 1000


def read_questions(
    votes: VoteSource, question: str | Sequence[str] | None = None, **reading: Unpack[Reading]
) -> tuple[Votes, tuple[str, ...]]:
    """Read votes with the columns that say what was asked.

    Args:
        votes: Anything that `read_votes` reads.
        question: As in `agreement`.
        **reading: As in `read_votes`.

    Returns:
        The votes, and the columns, which are in `Votes.extra`.
    """
    if question is not None:
        names = (question,) if isinstance(question, str) else tuple(question)
        return read_votes(votes, extra=names, **reading), names
    if isinstance(votes, Votes):
        return read_votes(votes, **reading), _usual(votes.extra)
    if isinstance(votes, str) and votes == "-":
        votes = sys.stdin.buffer.read()  # it may be read twice
    elif isinstance(votes, Iterator):
        votes = list(votes)
    names = (QUESTIONS[0], TURN)
    try:
        return read_votes(votes, extra=names, **reading), names
    except UnknownName as error:
        names = _usual(error.known)
        return read_votes(votes, extra=names, **reading), names


def answers_of(votes: Votes, question: Sequence[str]) -> Answers:
    """Return the answers in votes; those without a voter, or with an empty cell for the question, are left out.

    Args:
        votes: The votes.
        question: Columns of `Votes.extra`. A question is a pair of arms, with these.

    Raises:
        InvalidInput: If the votes do not say who voted.
    """
    if votes.voters is None:
        raise InvalidInput(
            f"{votes.source} does not say who voted (columns: {votes.said}): expected a column such as voter, judge or "
            "annotator; say which: columns={'voter': '…'} (--column voter=…)"
        )
    columns = [votes.extra[name] for name in question]
    kept = np.logical_and.reduce([votes.voters.codes >= 0, *(column.is_not_null().to_numpy() for column in columns)])
    left, right, winner = votes.left[kept], votes.right[kept], votes.winner[kept].astype(np.int64)
    names, voter = _number_values(votes.voters.codes[kept].tolist())
    first, second = np.minimum(left, right), np.maximum(left, right)
    cells = [map(str, column.filter(kept).to_list()) for column in columns]  # a cell may be a list
    keys, asked = _number_values(list(zip(first.tolist(), second.tolist(), *cells)))
    count = np.ones(len(kept), np.int64) if votes.count is None else votes.count
    choice = np.where(winner < NEITHER, np.where(winner == 0, left, right) == second, winner)
    side = np.where(_has_sides(votes)[kept], np.minimum(winner, NEITHER), NEITHER)
    voters = tuple(votes.voters.names[code] for code in names)
    pairs = np.array([key[:2] for key in keys], np.int64).reshape(-1, 2).T
    return Answers(voters, voter, asked, choice.astype(np.int64), side, count[kept], pairs)


def votes_of_study(study: HasEvents) -> tuple[Votes, tuple[str, ...]]:
    """Return the answers of a study, also of second judges, and the column of their items, if it has items."""
    items, both_orders, repeats = dict[int, object](), set[int](), list[LogEntry]()
    for entry in study.events():
        duel = entry.duel or 0
        if entry.kind == "ask":
            items[duel] = entry.note.get("item")
        if "first" in entry.note or "replies" in entry.note:
            both_orders.add(duel)
        if entry.kind == "repeat" and entry.answer != "skip":
            repeats.append(entry)
    rows: list[dict[str, object]] = []
    for vote in study.votes():
        duel = int(vote.duel or 0)
        rows.append(_row(vote.left, vote.right, vote.winner, vote.voter, items.get(duel)))
        rows[-1][COIN] = duel in items and duel not in both_orders
    rows += [_row(e.left, e.right, e.answer, e.voter, items.get(e.duel or 0)) for e in repeats]
    question = ("item",) if any(one is not None for one in items.values()) else ()
    return read_votes(rows, extra=(*question, COIN)), question


def _row(left: object, right: object, winner: object, voter: object, item: object) -> dict[str, object]:
    return {"left": left, "right": right, "winner": winner, "voter": voter, "item": item, COIN: False}


def _usual(header: Container[str]) -> tuple[str, ...]:
    """The columns of a header that usually say what was asked."""
    return (*[name for name in QUESTIONS if name in header][:1], *([TURN] if TURN in header else []))


def _number_values(values: list[Any]) -> tuple[list[Any], Ints]:
    """The different values, and the number of each."""
    number = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return list(number), np.array([number[value] for value in values], np.int64)


def _has_sides(votes: Votes) -> Bools:
    """(n,): whether a coin may have decided the sides. Tables of winners and losers have no sides."""
    if COIN in votes.extra:
        return np.asarray(votes.extra[COIN].to_numpy(), dtype=bool)
    of_pairs = any(part == "loser" or part.endswith("→ loser") for part in votes.said.split(", "))
    return np.full(len(votes), not of_pairs)
