"""Who answers a study: people who are known by a name or a voting link, judges, and others."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..stats.about import A_PERSON, PAST_VOTES, UNKNOWN, First
from ..stats.verdict import Answerers

NOBODY, JUDGE = -1, -2  # instead of a person's number: a name is not known, or a judge answered


class People:
    """How many answers that count each person gave. People have numbers, since names can be erased from a log.

    Attributes:
        given: How many answers each person gave.
        known: How many people gave any …
        returned: … and how many gave more than one.
        by_people: How many answers they gave.
        by_judges: How many answers judges gave.
        unknown: How many answers nobody's name is known of.
        first: Whom the first answer was from; None before it.
    """

    def __init__(self) -> None:
        self.first: First | None = None
        self._numbers: dict[str, int] = {}  # by name
        self.given: list[int] = []
        self.known = self.returned = self.by_people = self.by_judges = self.unknown = 0

    def find(self, name: str | None) -> int:
        """Return the number of a person by name; NOBODY if nothing was asked of that person."""
        return NOBODY if name is None else self._numbers.get(name, NOBODY)

    def admit(self, name: str) -> int:
        """Return the number of a person by name, who may be new."""
        if name not in self._numbers:
            self._numbers[name] = len(self.given)
            self.given.append(0)
        return self._numbers[name]

    def rename(self, numbers: Mapping[str, int]) -> None:
        """Set the names of people, after a snapshot was read, which has none."""
        self._numbers = dict(numbers)

    def forget(self, numbers: Collection[int]) -> None:
        """Forget the names of people with these numbers."""
        self._numbers = {name: who for name, who in self._numbers.items() if who not in numbers}

    def count(self, who: int, by: int) -> None:
        """Count so many more answers of a person, a judge, or nobody who is known."""
        self.first = self.first or (A_PERSON if who >= 0 else UNKNOWN)
        if who >= 0:
            before, after = self.given[who], self.given[who] + by
            self.given[who] = after
            self.known += (after > 0) - (before > 0)
            self.returned += (after > 1) - (before > 1)
            self.by_people += by
        elif who == JUDGE:
            self.by_judges += by
        else:
            self.unknown += by

    def count_past_votes(self, votes: int) -> None:
        """Count imported votes, whose voters are not looked at."""
        self.first = self.first or PAST_VOTES
        self.count(NOBODY, votes)

    def restore(
        self,
        person: Sequence[int],
        counting: Sequence[int],
        people: int,
        unknown: int,
        by_judges: int,
        first: First | None,
    ) -> None:
        """Count the answers of a snapshot.

        Args:
            person: Who answered each duel.
            counting: 1 where the answer counts.
            people: How many people there are.
            unknown: See `People`.
            by_judges: See `People`.
            first: See `People`.
        """
        self.first = first
        who = np.array(person, np.int64)[np.array(counting, np.int8) == 1]
        self.given = np.bincount(who[who >= 0], minlength=people).tolist()
        self.known, self.returned = (sum(given > least for given in self.given) for least in (0, 1))
        self.by_people, self.unknown, self.by_judges = sum(self.given), unknown, by_judges

    def as_answerers(self) -> Answerers:
        """Return the totals, for a verdict."""
        return Answerers(people=self.known, by_people=self.by_people, by_judges=self.by_judges, unknown=self.unknown)
