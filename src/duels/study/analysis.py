"""What past votes show: leaderboard, preferences and verdict."""

from typing import NamedTuple, Unpack

import numpy as np

from ..errors import InvalidInput, format_count
from ..votes.readers import Reading, VoteSource, count_votes
from ..votes.votes import MOST_ARMS
from .stats.about import COMPARISONS
from .stats.leaderboard import (
    align_columns,
    format_rank,
    format_rating,
    format_record,
    format_share,
    leaderboard,
    preferences,
)
from .stats.paths import find_paths_in
from .stats.tally import LeaderboardRow, PairRow, Tally
from .stats.verdict import Verdict, verdict
from .voters.agreement import remark_on_voters


class Analysis(NamedTuple):
    """What votes show; `str` gives it as a table and text.

    Attributes:
        leaderboard: One row per arm, best first.
        preferences: One row per pair of arms.
        verdict: The winner, or what is still undecided.
        votes: How many votes there are.
        ties: How many of them are ties, both_bad included.
        said: Which column was taken for what.
        ranked: By what the leaderboard ranks.
        skipped: How many rows were left out because they are skips, such as errors of a judge.
        notes: What makes the verdict doubtful: votes that look like a sort or a bracket, voters who stand out, rows
            that repeat others, and rows that were left out because they cannot be read.
        left_out: How many votes of the voters in `without` were left out.
        voters: How many voters there are; None if the votes do not say, or if there are more than 50,000 in a table
            that is read by columns, such as Parquet.
    """

    leaderboard: list[LeaderboardRow]
    preferences: list[PairRow]
    verdict: Verdict
    votes: int
    ties: int
    said: str
    ranked: str
    skipped: int = 0
    notes: tuple[str, ...] = ()
    left_out: int = 0
    voters: int | None = None

    def counts(self) -> str:
        """Return how many votes, ties, voters and skips there are, as text."""
        voters = "" if self.voters is None else f", by {format_count(self.voters, 'voter')}"
        skipped = f"; {format_count(self.skipped, 'skip')} left out" if self.skipped else ""
        without = f"; {format_count(self.left_out, 'vote')} of excluded voters left out" if self.left_out else ""
        return f"{format_count(self.votes, 'vote')}, {self.ties:,} of them ties{voters}{skipped}{without}"

    def __str__(self) -> str:
        heads = ("rank", "arm", "wins", "rating", "won–lost–tied")
        rows = [
            (format_rank(row), row.arm, format_share(row), format_rating(row), format_record(row))
            for row in self.leaderboard
        ]
        head = f"{self.counts()} ({self.said})"
        table = align_columns([heads, *rows], left=1)
        return "\n".join([head, "", *table, self.ranked, "", str(self.verdict), *self.notes])


def tally_of(votes: VoteSource, **reading: Unpack[Reading]) -> Tally:
    """Count votes; both_bad counts as a tie, and every arm is active from the start.

    Args:
        votes: Anything that `read_votes` reads.
        **reading: As in `read_votes`: columns, on_error and without.

    Raises:
        InvalidInput: If they cannot be read, or have too few or too many arms.
    """
    votes = count_votes(votes, **reading)
    arms = len(votes.names)
    if not 2 <= arms <= MOST_ARMS:
        raise InvalidInput(
            f"{votes.source} has {format_count(arms, 'arm')}, expected 2 to {MOST_ARMS:,} (columns: {votes.said})"
        )
    return Tally(votes.names, *votes.pair_counts(), np.ones(arms, dtype=bool), arms, strength=COMPARISONS)


def analyze(
    source: VoteSource, *, confidence: float = 0.95, margin: float = 0.0, **reading: Unpack[Reading]
) -> Analysis:
    """Analyze past votes.

    Args:
        source: Anything that `read_votes` reads.
        confidence: As in `Study.verdict`.
        margin: As in `Study.verdict`.
        **reading: As in `read_votes`: columns, on_error and without.

    Returns:
        Leaderboard, preferences and verdict.

    Raises:
        InvalidInput: If the votes cannot be read.

    Example:
        >>> print(duels.analyze("votes.csv").verdict)  # doctest: +SKIP
    """
    votes = count_votes(source, **reading)
    tally = tally_of(votes)
    doubts = [find_paths_in(votes), remark_on_voters(votes)]
    found = verdict(tally, confidence=confidence, margin=margin)
    table = leaderboard(tally, confidence, found.named, found.winner)
    return Analysis(
        leaderboard=table.rows,
        preferences=preferences(tally, confidence),
        verdict=found,
        votes=votes.total,
        ties=int(tally.ties.sum()) // 2,
        said=votes.said,
        ranked=table.ranked,
        skipped=votes.skipped,
        notes=(*votes.notes, *(doubt for doubt in doubts if doubt is not None)),
        left_out=votes.left_out,
        voters=votes.voter_count,
    )
