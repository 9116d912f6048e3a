"""What past votes show: leaderboard, preferences and verdict."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput, counted
from ..votes.files import read_votes
from .tally import RANKED, LeaderboardRow, PairRow, Tally
from .verdict import Verdict, leaderboard, preferences, verdict

MOST_ARMS = 10_000  # a tally of this size already fills 1.6 GB


class Analysis(NamedTuple):
    """What votes show; `str` gives it as a table and as text."""

    leaderboard: list[LeaderboardRow]
    preferences: list[PairRow]
    verdict: Verdict
    votes: int
    ties: int  # both_bad included
    said: str

    def __str__(self) -> str:
        heads = ("rank", "arm", "leads", "score", "duels", "wins", "losses", "ties")
        rows = [
            (r.rank, r.arm, r.beats, f"{r.score:.3f}", *(f"{n:,}" for n in (r.duels, r.wins, r.losses, r.ties)))
            for r in self.leaderboard
        ]
        form = f"{{:>4}}  {{:<{max(3, *(len(row.arm) for row in self.leaderboard))}}}" + " {:>6}" * 6
        head = f"{self.votes:,} votes, {self.ties:,} of them ties ({self.said})"
        return "\n".join([head, "", *(form.format(*row) for row in [heads, *rows]), RANKED, "", str(self.verdict)])


def tally_of(votes: Any) -> Tally:
    """Who beat whom how often, both_bad counted as a tie; every arm is active, and was there from the start."""
    votes = read_votes(votes)
    arms = len(votes.names)
    if not 2 <= arms <= MOST_ARMS:
        raise InvalidInput(
            f"{votes.source} has {counted(arms, 'arm')}, expected 2 to {MOST_ARMS:,} (columns: {votes.said})"
        )
    won = np.where(votes.winner == 1, votes.right, votes.left)
    pair = won * arms + (votes.left + votes.right - won)
    wins, ties = (np.bincount(pair[votes.winner // 2 == k], minlength=arms**2).reshape(arms, arms) for k in (0, 1))
    return Tally(votes.names, wins, ties + ties.T, np.ones(arms, dtype=bool), arms)


def analyse(source: Any, *, confidence: float = 0.95, margin: float = 0.0) -> Analysis:
    """Leaderboard, preferences and verdict of past votes, from anything that `read_votes` takes."""
    votes = read_votes(source)
    tally = tally_of(votes)
    rows = leaderboard(tally, confidence), preferences(tally, confidence)
    said = verdict(tally, confidence=confidence, margin=margin)
    return Analysis(*rows, said, len(votes), int(tally.ties.sum()) // 2, votes.said)
