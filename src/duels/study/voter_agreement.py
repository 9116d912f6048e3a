"""`agreement`: how far the voters of a log agree, and which of them do not look at what is shown."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..errors import InvalidInput, format_count
from ..votes.files import Reading, VoteSource, read_votes
from ..votes.votes import Votes
from .agreement import Agreement, agreements, krippendorff
from .favorites import Favorites, find_favorites
from .positions import LEVEL, side_p_values
from .shared_questions import (
    CHOICES,
    NEITHER,
    Answers,
    HasEvents,
    answers_of,
    choices_of,
    read_questions,
    votes_of_study,
)
from .voter_tests import Compared, compare, holm, is_at_random

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


def agreement(
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
        >>> print(duels.agreement(votes).pairs[0])
        ann and bob agree on 100% of 1 question (50% by chance, κ = 1.00; few questions, so a rough figure)
    """
    if getattr(getattr(votes, "row", None), "is_tuning", False):
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
    found = agreements((question, shared.names[voter], CHOICES[choice]) for question, voter, choice in rows)
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
        f"{among}{' and '.join(kinds)}. The verdict counts their votes: `duels agreement` lists such voters, and "
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
