"""Agreement between judges, on questions that several of them answered.

Sides are decided by a coin, so which arm of a question comes first means nothing. Every question is therefore counted
in both orders: then Cohen's κ and Krippendorff's α do not depend on the coin or on the order of the arms.
`docs/study/positions.md` has the formulas.

Who answered which question, and how: from votes that say who voted, and from studies.

`agreement`: how far the voters of a log agree, and which of them do not look at what is shown.
"""

import sys
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np
import numpy.typing as npt

from ...errors import InvalidInput, UnknownName, format_count
from ...votes.columns import QUESTIONS, TURN
from ...votes.readers import Reading, VoteSource, read_votes
from ...votes.votes import Votes
from ..base import EventLog
from ..duels import LogEntry
from .voter_tests import LEVEL, Compared, Favorites, compare, find_favorites, holm, is_at_random, side_p_values

UNDECIDED = ("tie", "both_bad")
FEW = 20  # below so many questions, luck moves the shares by more than twenty points either way
Answer = tuple[Hashable, str | None, str]  # the question, the judge, and the chosen arm, "tie", "both_bad" or "skip"


class Agreement(NamedTuple):
    """How often two judges gave the same answer.

    Attributes:
        first: One judge; None for answers without a voter.
        second: The other judge.
        questions: How many questions both answered; skips are left out.
        raw: The share of these that got the same answer from both.
        base: The share that judges who do not look would agree on, who answer tie and both bad as often as these two,
            and choose one of the arms by a coin otherwise.
        kappa: Cohen's κ, (raw − base) / (1 − base); None if base is 1: both answered all questions tie, or both bad.
    """

    first: str | None
    second: str | None
    questions: int
    raw: float
    base: float
    kappa: float | None

    def __str__(self) -> str:
        names = " and ".join("the unnamed judge" if one is None else one for one in (self.first, self.second))
        kappa = "κ is undefined" if self.kappa is None else f"κ = {self.kappa:.2f}"
        few = "; few questions, so a rough figure" if self.questions < FEW else ""
        return (
            f"{names} agree on {self.raw:.0%} of {format_count(self.questions, 'question')} "
            f"({self.base:.0%} by chance, {kappa}{few})"
        )


def compare_judges(answers: Iterable[Answer]) -> list[Agreement]:
    """Compare judges that answered the same questions.

    Args:
        answers: For each answer the question, such as (arm, arm, item) with the arms in a fixed order; the judge; and
            the chosen arm, or tie, both_bad or skip. Of several answers of one judge to one question the first counts;
            skips never do.

    Returns:
        One row per pair of judges with a question in common, in the order of their first answers.

    Example:
        >>> asked = [(1, "gpt", "terse"), (1, "claude", "terse"), (2, "gpt", "tie"), (2, "claude", "expert")]
        >>> compare_judges(asked)
        [Agreement(first='gpt', second='claude', questions=2, raw=0.5, base=0.25, kappa=0.3333333333333333)]
        >>> print(compare_judges(asked)[0])
        gpt and claude agree on 50% of 2 questions (25% by chance, κ = 0.33; few questions, so a rough figure)
    """
    by_question: dict[Hashable, dict[str | None, str]] = {}
    judges: dict[str | None, int] = {}
    for question, judge, choice in answers:
        if choice != "skip":
            judges.setdefault(judge, len(judges))
            by_question.setdefault(question, {}).setdefault(judge, choice)
    both: dict[tuple[str | None, str | None], Counter[tuple[str, str]]] = {}
    for given in by_question.values():
        for first, second in combinations(sorted(given, key=judges.__getitem__), 2):
            both.setdefault((first, second), Counter())[given[first], given[second]] += 1
    ordered = sorted(both, key=lambda pair: (judges[pair[0]], judges[pair[1]]))
    return [_agreement(*pair, both[pair]) for pair in ordered]


def _agreement(first: str | None, second: str | None, table: Counter[tuple[str, str]]) -> Agreement:
    n = table.total()
    same = sum(count for (one, other), count in table.items() if one == other)
    undecided = [[sum(count for pair, count in table.items() if pair[k] == word) for word in UNDECIDED] for k in (0, 1)]
    decided = [n - sum(counts) for counts in undecided]
    # In whole numbers, so that κ is undefined exactly if it is: of n² pairs of answers, twice as many agree by chance.
    doubled = 2 * sum(one * other for one, other in zip(*undecided)) + decided[0] * decided[1]
    base, raw = doubled / (2 * n * n), same / n
    kappa = None if doubled == 2 * n * n else (2 * n * same - doubled) / (2 * n * n - doubled)
    return Agreement(first, second, n, raw, base, kappa)


class Alpha(NamedTuple):
    """How often several judges gave the same answer.

    Attributes:
        raw: The share of pairs of answers to the same question that are equal; a question counts by its answers.
        base: The share of pairs of answers that would be equal if each was given to another question.
        alpha: Krippendorff's α, (raw − base) / (1 − base); None if base is 1: all answers are tie, or both bad.
    """

    raw: float
    base: float
    alpha: float | None


def krippendorff(table: npt.NDArray[np.int64]) -> Alpha:
    """Return Krippendorff's α of nominal answers, with every question in both orders.

    Two answers that chose an arm, of different questions, are for the same side in half of the orders. So they agree by
    chance in half of the cases, whatever was chosen.

    Args:
        table: (Q, 4) int64: How many judges chose each question's first arm, its second arm, tie and both bad. Every
            question has two answers or more.

    Example:
        >>> found = krippendorff(np.array([[2, 0, 0, 0], [0, 2, 0, 0], [0, 1, 1, 0]]))
        >>> [round(value, 3) for value in found]  # raw: (2 + 2) / 6; base: (5 · 4 / 2) / (6 · 5)
        [0.667, 0.333, 0.5]
    """
    size = table.sum(axis=1)
    total = int(size.sum())
    raw = float(((table * (table - 1)).sum(axis=1) / (size - 1)).sum() / total)
    first, second, *undecided = table.sum(axis=0).tolist()
    # In whole numbers, as above: of n (n − 1) pairs of answers, twice as many agree by chance.
    doubled = 2 * sum(n * (n - 1) for n in undecided) + (first + second) * (first + second - 1)
    pairs = total * (total - 1)
    base = doubled / (2 * pairs)
    return Alpha(raw, base, None if doubled == 2 * pairs else (raw - base) / (1 - base))


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
        >>> renumber(np.array([4, 0, 4, 2])).tolist()
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


MOST_PAIRED = 20  # voters whose pairs are compared: those with most answers
SHOWN = 5  # pairs that the text lists


class VoterRow(NamedTuple):
    """How one voter answered.

    Attributes:
        voter: The name.
        answers: How many votes the voter has.
        left: How many of them chose the left side, where a coin may have decided the sides.
        right: How many chose the right side.
        p_side: The p-value of left against right, if a coin decides the sides: exact, two-sided.
        compared: In how many questions the voter chose an arm, and another voter did too.
        share: The share of these others who chose the same arm, on average; a half is that of a coin. None if there
            are no such questions.
        expected: What the share is on average for a voter like these others.
        p_low: How likely a voter like the others has that share, or a smaller one.
        p_chance: How likely a coin has that share, or a larger one.
        one_sided: Whether the voter certainly prefers a side.
        at_random: Whether the voter certainly agrees less than the others do, and not clearly more than a coin does.
        favorite: The arm that the voter favors most, if there is a sign of it; else None.
        chosen: How many of the voter's votes are for that arm …
        of: … of those that chose an arm, on pairs that others voted on too …
        by_others: … and how many that would be by the shares of all voters.
        p_favor: How likely that is by chance and taste, adjusted for the number of voters and arms.
        favors_arm: Whether the voter certainly favors the arm.
    """

    voter: str
    answers: int
    left: int
    right: int
    p_side: float
    compared: int
    share: float | None
    expected: float | None
    p_low: float
    p_chance: float
    one_sided: bool
    at_random: bool
    favorite: str | None = None
    chosen: int = 0
    of: int = 0
    by_others: float = 0.0
    p_favor: float = 1.0
    favors_arm: bool = False


class VoterAgreement(NamedTuple):
    """How far voters agree; `str` gives it as text.

    Attributes:
        question: What a question is, as text.
        questions: How many questions were answered by two voters or more.
        answers: How many answers these have.
        raw: The share of pairs of answers to the same question that are equal; None if there are no such questions.
        base: The share that would be equal by chance.
        alpha: Krippendorff's α, (raw − base) / (1 − base); None if it is undefined.
        pairs: Cohen's κ of pairs of voters, those with most questions first; of the 20 voters with most answers.
        voters: One row per voter, those with most answers first.
        left_out: How many votes have no voter, or an empty cell where the question is.
        shuffled: Whether some two arms were shown in both orders. If none were, as in logs whose first arm is always
            the baseline, nothing is said about sides.
    """

    question: str
    questions: int
    answers: int
    raw: float | None
    base: float | None
    alpha: float | None
    pairs: list[Agreement]
    voters: list[VoterRow]
    left_out: int
    shuffled: bool = True
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return self._asdict() | {
            "pairs": [one._asdict() for one in self.pairs],
            "voters": [one._asdict() for one in self.voters],
            "notes": [*self.notes],
        }

    def __str__(self) -> str:
        voters = [self._sides(), *self._at_random(), *self._favorites()]
        return "\n".join([self._overall(), *self._pairs(), *voters, *self._describe_left_out(), *self.notes])

    def _overall(self) -> str:
        if self.raw is None or self.base is None:
            return (
                "No question was answered by two voters, so there is no agreement to measure. "
                f"A question is {self.question}: ask several voters some of the same ones."
            )
        alpha = "α is undefined" if self.alpha is None else f"Krippendorff's α = {self.alpha:.2f}"
        return (
            f"{format_count(len(self.voters), 'voter')}, {format_count(self.questions, 'question')} with several "
            f"answers, {self.answers:,} in all. A question is {self.question}.\n"
            f"Two answers to the same question agree in {self.raw:.0%} of cases ({self.base:.0%} by chance, {alpha})."
        )

    def _pairs(self) -> list[str]:
        more = len(self.pairs) - SHOWN
        last = [f"{format_count(more, 'more pair')} of voters with questions in common."] if more > 0 else []
        return [*(f"{one}." for one in self.pairs[:SHOWN]), *last]

    def _sides(self) -> str:
        if not any(one.left + one.right for one in self.voters):
            return "No test of sides: there is no answer for left or right whose side a coin can have decided."
        if not any(one.p_side < 1 or one.one_sided for one in self.voters) and not self.shuffled:
            return "No test of sides: no two arms were shown in both orders, so no coin decided them."
        return _list_voters(
            "prefer a side", (f"{v.voter} ({v.left} left, {v.right} right)" for v in self.voters if v.one_sided)
        )

    def _at_random(self) -> list[str]:
        if self.raw is None:
            return []
        found = (f"{v.voter} ({v.share:.0%}, expected {v.expected:.0%})" for v in self.voters if v.at_random)
        return [_list_voters("agree with the others no more than a coin does", found)]

    def _favorites(self) -> list[str]:
        if not self.voters:
            return []
        found = (
            f"{v.voter} ({v.favorite}: {v.chosen:,} of {v.of:,}, expected {v.by_others:,.0f})"
            for v in self.voters
            if v.favors_arm
        )
        return [_list_voters("favor an arm", found)]

    def _describe_left_out(self) -> list[str]:
        return [f"{format_count(self.left_out, 'vote')} left out: no voter, or no question."] if self.left_out else []


def measure_agreement(
    votes: VoteSource | HasEvents, *, question: str | Sequence[str] | None = None, **reading: Unpack[Reading]
) -> VoterAgreement:
    """Measure how far voters agree, and find those who do not look at what is shown.

    Voters are compared on questions that several of them answered; of several answers of one voter to one question the
    first counts. The tests take it that a coin decided the sides of each question, and that voters do not know what
    others answered. Then, if no voter prefers a side, any is listed as one-sided with a probability of 0.01 at most.
    If the voters are alike, any is listed as at random with a probability of 0.01 at most. So is any who favors an arm,
    if tastes are normal with the same variance for all voters and arms.

    Args:
        votes: Anything that `read_votes` reads and that says who voted, or a `Study`.
        question: The columns that say what was asked about the two arms. By default the first that exists of
            question_id, question, item, item_id, prompt_id, prompt and instruction; and turn, if it exists. Without
            such a column, or with `[]`, each pair of arms is one question.
        **reading: As in `read_votes`: columns, on_error and without.

    Returns:
        Raw agreement with its base rate and Krippendorff's α, Cohen's κ of pairs of voters, and one row per voter.

    Raises:
        InvalidInput: If the votes cannot be read, or do not say who voted.
        UnknownName: If there is no such column.

    Example:
        >>> votes = [("cat", "dog", "left", "ann"), ("dog", "cat", "right", "bob"), ("cat", "fox", "tie", "ann")]
        >>> print(measure_agreement(votes).pairs[0])
        ann and bob agree on 100% of 1 question (50% by chance, κ = 1.00; few questions, so a rough figure)
    """
    log: EventLog | None = getattr(votes, "_log", None)
    if log is not None and not log.repeats_questions:
        raise InvalidInput(
            f"{votes!r} asks each question once, so that voters cannot be compared: expected other votes"
        )
    if callable(getattr(votes, "events", None)):
        answers, item = votes_of_study(votes)  # type: ignore[arg-type]
        return agreement_of(read_votes(answers, **reading), item)
    return agreement_of(*read_questions(votes, question, **reading))  # type: ignore[arg-type]


def agreement_of(votes: Votes, question: Sequence[str]) -> VoterAgreement:
    """Return the agreement of votes, which have the columns that say what was asked.

    Raises:
        InvalidInput: If they do not say who voted.
    """
    every = answers_of(votes, question)
    once = every.first()
    shared = once.of_several()
    table = shared.table()
    overall = krippendorff(table) if len(table) else None
    sided = once if question else every
    shuffled = _is_shuffled(votes)
    return VoterAgreement(
        question=" and ".join(["a pair of arms", *question]),
        questions=len(table),
        answers=len(shared.voter),
        raw=overall and overall.raw,
        base=overall and overall.base,
        alpha=overall and overall.alpha,
        pairs=_pairs(shared),
        voters=_with_favorites(_voters(every, sided, shared, shuffled), sided, votes.names),
        left_out=votes.total - int(every.weight.sum()),
        shuffled=shuffled,
        notes=votes.notes,
    )


def _pairs(shared: Answers) -> list[Agreement]:
    often = np.bincount(shared.voter, minlength=len(shared.names))
    most = np.argsort(-often, kind="stable")[:MOST_PAIRED]
    some = shared.only(np.isin(shared.voter, most))
    rows = zip(some.question.tolist(), some.voter.tolist(), some.choice.tolist())
    found = compare_judges((question, shared.names[voter], CHOICES[choice]) for question, voter, choice in rows)
    return sorted(found, key=lambda one: -one.questions)


def _is_shuffled(votes: Votes) -> bool:
    """Whether some two arms were shown in both orders; a single vote says nothing."""
    arms = len(votes.names)
    pairs = np.unique(votes.left * arms + votes.right)
    turned = (pairs % arms) * arms + pairs // arms
    return len(votes) <= len(pairs) or bool(np.isin(pairs, turned).any())


def _voters(every: Answers, sided: Answers, shared: Answers, shuffled: bool) -> list[VoterRow]:
    often, left, right = every.per_voter(), sided.per_voter(0), sided.per_voter(1)
    p_side, compared = side_p_values(left, right), _compare_voters(shared, len(often))
    p_side = p_side if shuffled else np.ones(len(p_side))
    one_sided = holm(p_side) <= LEVEL
    p_low, p_chance = (np.array([getattr(one, name) for _, one in compared]) for name in ("p_low", "p_chance"))
    at_random = is_at_random(p_low, p_chance)
    counts = zip(every.names, often.tolist(), left.tolist(), right.tolist(), p_side.tolist())
    rows = [
        VoterRow(*count, number, *one, sided, random)
        for count, (number, one), sided, random in zip(counts, compared, one_sided.tolist(), at_random.tolist())
    ]
    return [rows[k] for k in np.argsort(-often, kind="stable")]


def favorites_of(answers: Answers) -> Favorites:
    """Return which arm each voter favors, by the answers that chose one; one entry per voter."""
    some = answers.only(answers.choice < NEITHER)
    first, second = some.pairs[:, some.question]
    return find_favorites(some.voter, first, second, some.choice == 1, some.weight, len(answers.names))


def _with_favorites(rows: list[VoterRow], answers: Answers, arms: Sequence[str]) -> list[VoterRow]:
    found = favorites_of(answers)
    number = {name: k for k, name in enumerate(answers.names)}
    return [_with_favorite(row, found, number[row.voter], arms) for row in rows]


def _with_favorite(row: VoterRow, found: Favorites, k: int, arms: Sequence[str]) -> VoterRow:
    if found.arm[k] < 0:
        return row
    return row._replace(
        favorite=arms[found.arm[k]],
        chosen=int(found.chosen[k]),
        of=int(found.of[k]),
        by_others=float(found.expected[k]),
        p_favor=float(found.p[k]),
        favors_arm=bool(found.p[k] <= LEVEL),
    )


def remark_on_voters(votes: Votes) -> str | None:
    """Return that some voters prefer a side or favor an arm, which their votes do not say; None if nobody does.

    Args:
        votes: The votes. Of those that were read without voters, the first ones are looked at.
    """
    looked_at = votes if votes.first is None else votes.first
    if looked_at.voters is None:
        return None
    every = answers_of(looked_at, ())
    left, right = every.per_voter(0), every.per_voter(1)
    sided = _is_shuffled(looked_at) & (holm(side_p_values(left, right)) <= LEVEL)
    favor = favorites_of(every).p <= LEVEL
    kinds = [
        f"{format_count(len(names), 'voter')} {verb if len(names) == 1 else plural} ({', '.join(names[:3])}"
        f"{', …' if len(names) > 3 else ''})"
        for found, verb, plural in (
            (sided, "prefers a side", "prefer a side"),
            (favor, "favors an arm", "favor an arm"),
        )
        if (names := [every.names[k] for k in np.flatnonzero(found)])
    ]
    if not kinds:
        return None
    among = f"Among the first {len(looked_at):,} votes, " if looked_at.total < votes.total else ""
    return (
        f"{among}{' and '.join(kinds)}. The verdict counts their votes: `duels votes agreement` lists such voters, and "
        "`without` (--without) leaves them out."
    )


def _compare_voters(shared: Answers, voters: int) -> list[tuple[int, Compared]]:
    """For each voter, in how many questions the voter and others chose an arm, and how these choices compare."""
    voter, same, other = choices_of(shared)
    order = np.argsort(voter, kind="stable")
    parts = np.split(order, np.searchsorted(voter[order], np.arange(1, voters)))
    return [(len(part), compare(same[part], other[part])) for part in parts]


def _list_voters(what: str, found: Iterable[str]) -> str:
    return f"Voters who {what}: {', '.join(found) or 'none'}."
