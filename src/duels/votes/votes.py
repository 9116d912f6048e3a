"""Past votes as data: by columns, each in little memory."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from ..errors import InvalidInput, UnknownName, format_count
from ..estimated import EstimatedPreferences
from .columns import WINNERS

if TYPE_CHECKING:
    import polars as pl

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MOST_ARMS = 10_000  # counts of their pairs already take 1.6 GB
NEVER = int(np.iinfo(np.int64).min)  # the time of a vote without one


class Vote(NamedTuple):
    """One vote, or several equal ones.

    Attributes:
        left: The arm on the left.
        right: The arm on the right.
        winner: left, right, tie or both_bad.
        voter: Who voted, if the source says so.
        time: When, in ISO 8601 and UTC, if the source says so.
        line: Where the vote starts in its source, counted from 1.
        duel: The id of the duel that a study asked, if the source says so.
        count: How many votes these are; more than one if the source has counts.
    """

    left: str
    right: str
    winner: str
    voter: str | None
    time: str | None
    line: int
    duel: str | None = None
    count: int = 1  # type: ignore[assignment]  # tuple.count, which nobody needs here


class RowList(NamedTuple):
    """Rows of a source that were noticed.

    Attributes:
        count: How many there are.
        first: Where the first of them are, and what was noticed there.
    """

    count: int = 0  # type: ignore[assignment]  # tuple.count
    first: tuple[str, ...] = ()


NO_ROWS = RowList()


class Column(Sequence[str | None]):
    """Text for each vote, or None; equal to any other sequence of the same."""

    def _cells(self, chosen: np.ndarray) -> list[str | None]:
        raise NotImplementedError

    def _all(self) -> np.ndarray:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> str | None: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str | None, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str | None, ...] | None:
        if isinstance(index, slice):
            return tuple(self._cells(self._all()[index]))
        return self._cells(self._all()[[index]])[0]

    def __iter__(self) -> Iterator[str | None]:
        every = self._all()
        for begin in range(0, len(every), 10_000):
            yield from self._cells(every[begin : begin + 10_000])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"({shown}{', …' if len(self) > 3 else ''})"


class Names(Column):
    """Who voted, for each vote.

    Attributes:
        names: The different names.
        codes: (n,) int32: Indices into `names`, −1 for None.
    """

    def __init__(self, names: Sequence[str], codes: np.ndarray) -> None:
        self.names, self.codes = names, codes

    def _all(self) -> np.ndarray:
        return self.codes

    def _cells(self, chosen: np.ndarray) -> list[str | None]:
        known: list[str | None] = [*self.names, None]
        return [known[code] for code in chosen.tolist()]


class Times(Column):
    """When, for each vote, in ISO 8601 and UTC.

    Attributes:
        microseconds: (n,) int64: Since 1970, or `NEVER`.
    """

    def __init__(self, microseconds: np.ndarray) -> None:
        self.microseconds = microseconds

    def _all(self) -> np.ndarray:
        return self.microseconds

    def _cells(self, chosen: np.ndarray) -> list[str | None]:
        return list(map(time_of, chosen.tolist()))


def time_of(microseconds: int) -> str | None:
    """Return the time of a vote as `Votes` has it: ISO 8601 in UTC."""
    if microseconds == NEVER:
        return None
    return f"{(EPOCH + int(microseconds) * MICROSECOND).isoformat()[:-6]}Z"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _some(rows: RowList) -> str:
    return "; ".join([*rows.first, *(["…"] if rows.count > len(rows.first) else [])])


def microseconds_of(moment: datetime) -> int:
    """Return the microseconds from 1970 to a moment, which has a time zone."""
    return (moment - EPOCH) // MICROSECOND


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Votes by columns, as `read_votes` returns them; iterate over it for single votes.

    If the source has counts, a row stands for several equal votes, see `count`. Two `Votes` are equal if all their rows
    are, whatever their lines and sources.

    Attributes:
        names: The K arms, in the order in which they first appear.
        left: (n,) int64: Indices into `names`.
        right: (n,) int64: Indices into `names`.
        winner: (n,) int8: 0 for left, 1 for right, 2 for tie, 3 for both_bad.
        lines: (n,) int64: Where each vote starts in the source.
        voters: Who voted, for each vote; None if no vote says so.
        times: When, in ISO 8601 and UTC, for each vote; None if no vote says so.
        duels: Ids of the duels that a study asked, for each vote; None if no vote says so.
        skipped: How many rows were left out because they are skips.
        said: Which column was taken for what.
        source: What the votes were read from.
        extra: Further columns that were asked for, by their names.
        count: (n,) int64: How many votes each row stands for; None if that is 1 for all.
        first: If `count_votes` left out the voters, the first votes with theirs; else None.
        unread: The rows that cannot be read, if they were left out with `on_error="skip"`.
        repeats: The rows that are equal to an earlier one in every cell, so that they may be the same votes again. They
            are kept, and counted. Looked for if the source says when each vote was given, or who gave it on what
            question.
        left_out: How many votes `without` left out.
    """

    names: tuple[str, ...]
    left: np.ndarray
    right: np.ndarray
    winner: np.ndarray
    lines: np.ndarray
    voters: Names | None
    times: Times | None
    duels: Sequence[str | None] | None
    skipped: int
    said: str
    source: str
    extra: "Mapping[str, pl.Series]" = field(default_factory=dict)
    count: np.ndarray | None = None
    first: "Votes | None" = None
    unread: RowList = NO_ROWS
    repeats: RowList = NO_ROWS
    left_out: int = 0

    @property
    def unread_notes(self) -> tuple[str, ...]:
        """A sentence on the rows that were left out because they cannot be read; none if there are none."""
        if not self.unread.count:
            return ()
        rows = format_count(self.unread.count, "row")
        return (f"{rows} cannot be read, and {_was(self.unread.count)} left out: {_some(self.unread)}.",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out because it cannot be read, and what was kept although it looks like the same votes again.

        Sentences; none if there is nothing to say.
        """
        count = self.repeats.count
        if not count:
            return self.unread_notes
        repeats = (
            f"{format_count(count, 'row')} repeat{'s' * (count == 1)} an earlier one in every cell, and {_was(count)} "
            f"counted again: {_some(self.repeats)}."
        )
        return (*self.unread_notes, repeats)

    @property
    def voter_count(self) -> int | None:
        """How many different voters there are; None if that is not known."""
        known = self if self.first is None or self.first.total < self.total else self.first
        return None if known.voters is None else len(known.voters.names)

    def without(self, voters: Iterable[str]) -> "Votes":
        """Return the votes without those of some voters; `left_out` counts what is missing.

        Args:
            voters: Their names.

        Raises:
            InvalidInput: If the votes do not say who voted.
            UnknownName: If there is no such voter.

        Example:
            >>> votes = duels.read_votes([("cat", "dog", "left", "ann"), ("cat", "dog", "right", "bot 7")])
            >>> votes.without(["bot 7"])
            Votes(1 on 2 arms from the list)
        """
        names = [voters] if isinstance(voters, str) else list(voters)
        if not names:
            return self
        if self.voters is None:
            raise InvalidInput(
                f"{self.source} does not say who voted (columns: {self.said}), so no voter can be left out: expected a "
                "column such as voter, judge or annotator; say which: columns={'voter': '…'} (--column voter=…)"
            )
        if unknown := sorted({*names} - {*self.voters.names}, key=str):
            raise UnknownName("voter", unknown[0], self.voters.names)
        codes = [code for code, name in enumerate(self.voters.names) if name in names]
        some = self._of_voters(np.isin(self.voters.codes, codes, invert=True))
        if self.first is None or self.first.voters is None:
            return some
        known = [name for name in names if name in self.first.voters.names]
        return replace(some, first=self.first.without(known))

    def _of_voters(self, kept: np.ndarray) -> "Votes":
        """The chosen rows, with those arms and voters that they are about."""
        some = self.only(kept)
        sides = np.stack([some.left, some.right])
        arms, codes = np.unique(sides, return_inverse=True)
        left, right = codes.reshape(sides.shape)
        assert some.voters is not None
        used, number = np.unique(some.voters.codes, return_inverse=True)
        voters = Names([some.voters.names[code] for code in used if code >= 0], number - int((used < 0).any()))
        voters.codes = voters.codes.astype(np.int32)
        return replace(
            some,
            names=tuple(self.names[arm] for arm in arms),
            left=left,
            right=right,
            voters=voters if len(voters.names) else None,
            left_out=self.left_out + self.total - some.total,
        )

    @property
    def total(self) -> int:
        """How many votes there are; `len` is the number of rows."""
        return len(self.winner) if self.count is None else int(self.count.sum())

    def only(self, kept: np.ndarray) -> "Votes":
        """Return the chosen rows; the names of the arms stay as they are.

        Args:
            kept: (n,) bool.
        """
        return replace(
            self,
            left=self.left[kept],
            right=self.right[kept],
            winner=self.winner[kept],
            lines=self.lines[kept],
            voters=None if self.voters is None else Names(self.voters.names, self.voters.codes[kept]),
            times=None if self.times is None else Times(self.times.microseconds[kept]),
            duels=None if self.duels is None else [duel for duel, one in zip(self.duels, kept) if one],
            extra={name: column.filter(kept) for name, column in self.extra.items()},
            count=None if self.count is None else self.count[kept],
            first=None,
        )

    def pair_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (K, K) int64 wins and ties, as in a `Tally`; both_bad counts as a tie."""
        arms = len(self.names)
        won = np.where(self.winner == 1, self.right, self.left)
        pair = won * arms + (self.left + self.right - won)
        wins, ties = (self._count_pairs(pair, self.winner // 2 == kind) for kind in (0, 1))
        return wins, ties + ties.T

    def _count_pairs(self, pair: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """(K, K): how many of the chosen votes are about each pair."""
        arms = len(self.names)
        if self.count is None:
            return np.bincount(pair[chosen], minlength=arms**2).reshape(arms, arms)
        found = np.zeros(arms**2, np.int64)
        np.add.at(found, pair[chosen], self.count[chosen])
        return found.reshape(arms, arms)

    def matrix(self, name: str = "") -> EstimatedPreferences:
        """Return the preference matrix that the votes show, with counts and standard errors.

        It works wherever a matrix does: `describe`, figures, `simulate`, `plan`. A tie is half a win each way, and a
        pair that never met is ½.

        Args:
            name: The name of the problem.

        Raises:
            InvalidInput: If there are fewer than two arms, or too many.

        Example:
            >>> votes = duels.read_votes([("cat", "dog", "left")] * 3 + [("cat", "dog", "right")])
            >>> matrix = votes.matrix()
            >>> float(matrix["cat", "dog"]), matrix.standard_errors.round(3).tolist()
            (0.75, [[0.0, 0.217], [0.217, 0.0]])
        """
        if not 2 <= len(self.names) <= MOST_ARMS:
            raise InvalidInput(f"{self.source} has {format_count(len(self.names), 'arm')}, expected 2 to {MOST_ARMS:,}")
        wins, ties = self.pair_counts()
        return EstimatedPreferences(np.stack([wins.T, ties, wins], axis=2), self.names, name)

    def __len__(self) -> int:
        return len(self.winner)

    def __iter__(self) -> Iterator[Vote]:
        left, right = (map(self.names.__getitem__, side.tolist()) for side in (self.left, self.right))
        winner = map(WINNERS.__getitem__, self.winner.tolist())
        voters, times, duels = (column or itertools.repeat(None) for column in (self.voters, self.times, self.duels))
        counts: Iterable[int] = itertools.repeat(1) if self.count is None else self.count.tolist()
        return map(Vote._make, zip(left, right, winner, voters, times, self.lines.tolist(), duels, counts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Votes) or len(self) != len(other):
            return False
        return all(a._replace(line=0) == b._replace(line=0) for a, b in zip(self, other))

    def __repr__(self) -> str:
        return f"Votes({self.total:,} on {len(self.names)} arms from {self.source})"
