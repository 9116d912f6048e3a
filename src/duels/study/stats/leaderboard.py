"""Leaderboards and tables of pairs: counts, estimates, and intervals that hold for all pairs together."""

import html
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import percent
from ...rating.connected import Shares, expected_shares
from .certainty import certainly_beats, check_confidence
from .levels import share_of
from .tally import (
    Bools,
    Ints,
    LeaderboardRow,
    PairRow,
    Ranking,
    Tally,
    count_met,
    distinct_intervals,
    log_evidence,
    rank_arms,
)

if TYPE_CHECKING:
    pass

PAGES = 2**20  # more than the number of arms: a pair's number is first · PAGES + second
TABLE_ROWS = 10  # arms in a notebook's table


class RankRow(NamedTuple):
    """The place of one active arm.

    Attributes:
        rank: From 1; equal arms share one. None for an arm that is not compared with the others.
        arm: Its name.
        certain: Whether every arm above certainly beats it, and it certainly beats every arm below. A rank that arms
            share is not certain.
    """

    rank: int | None
    arm: str
    certain: bool


def rank_rows(tally: Tally, named: str | None, winner: str | None, confidence: float = 0.95) -> list[RankRow]:
    """Return the active arms in the order of the leaderboard, and which ranks are certain.

    With probability `confidence`, no rank below the first is ever marked as certain and wrong: this is the promise
    about all pairs. That the winner is first is the promise of the verdict.

    Args:
        tally: The counts.
        named: The arm that the verdict names, see `rank_arms`.
        winner: The same, if it is a winner.
        confidence: Of the promise about all pairs.
    """
    ranked = [(rank, arm) for rank, arm in rank_arms(tally, named).ranks if tally.active[arm]]
    certain = certain_ranks(tally, ranked, certainly_beats(tally, confidence), winner)
    return [RankRow(rank, tally.names[arm], sure) for (rank, arm), sure in zip(ranked, certain)]


def certain_ranks(
    tally: Tally, ranked: Sequence[tuple[int | None, int]], sure: Bools, winner: str | None
) -> list[bool]:
    """Return which ranks are certain.

    Args:
        tally: The counts.
        ranked: (rank, arm) of the active arms, in the order of `rank_arms`.
        sure: (K, K): Who certainly beats whom, by `certainly_beats`.
        winner: As in `rank_rows`.
    """
    order = [arm for _, arm in ranked]
    beats = sure[np.ix_(order, order)]
    beats |= np.array([[tally.names[arm] == winner] for arm in order])
    place = np.arange(len(order))
    known = np.where(place[:, None] < place, beats, beats.T) | np.eye(len(order), dtype=bool)
    shared = Counter(rank for rank, _ in ranked)
    alone = [rank is not None and shared[rank] == 1 and (len(order) > 1 or winner is not None) for rank, _ in ranked]
    return [bool(row.all()) and only for row, only in zip(known, alone)]


class Leaderboard(NamedTuple):
    """The arms of a study, best first.

    Attributes:
        rows: One row per arm; those without a rank after the others, and retired ones last.
        ranked: By what they are ranked, as text.
    """

    rows: list[LeaderboardRow]
    ranked: str


def leaderboard(
    tally: Tally, confidence: float = 0.95, named: str | None = None, winner: str | None = None
) -> Leaderboard:
    """Return the arms in the order of `rank_arms`.

    Args:
        tally: The counts.
        confidence: Of the certain wins and losses, for all pairs together, and of each share's interval.
        named: The arm that the verdict names, which is first.
        winner: The same, if it is a winner.
    """
    ranking = rank_arms(tally, named)
    rows = _rows(tally, ranking, check_confidence(confidence), winner)
    return Leaderboard(rows, ranking.describe(tally.names))


def _rows(tally: Tally, ranking: Ranking, confidence: float, winner: str | None) -> list[LeaderboardRow]:
    sure = certainly_beats(tally, confidence)
    shares = find_shares(tally, ranking, confidence, winner)
    columns = {
        "rating": ranking.rated.ratings(len(tally.names)).round(1),
        "share": shares.share,
        "lower": shares.lower,
        "upper": shares.upper,
        "answers": count_met(tally).sum(axis=1),
        "wins": tally.wins.sum(axis=1),
        "losses": tally.wins.sum(axis=0),
        "ties": tally.ties.sum(axis=1),
        "certain_wins": np.sum(sure & tally.active, axis=1),
        "certain_losses": np.sum(sure & tally.active[:, None], axis=0),
        "active": tally.active,
    }
    plain: dict[str, list[Any]] = {
        key: [None if one != one else one for one in values.tolist()] for key, values in columns.items()
    }
    return [
        LeaderboardRow(rank=rank, arm=tally.names[arm], **{key: values[arm] for key, values in plain.items()})
        for rank, arm in ranking.ranks
    ]


def find_shares(tally: Tally, ranking: Ranking, confidence: float = 0.95, winner: str | None = None) -> Shares:
    """Return what share of its comparisons with the others each arm is expected to win, see `LeaderboardRow.share`.

    Args:
        tally: The counts.
        ranking: Of its arms.
        confidence: Of each interval.
        winner: The winner by the verdict. It wins more often than it loses, so its interval does not go below ½.
    """
    shares = expected_shares(ranking.rated, tally.active, confidence)
    arm = -1 if winner is None else tally.names.index(winner)
    if arm >= 0 and shares.share[arm] >= 0.5:
        shares.lower[arm] = np.maximum(shares.lower[arm], 0.5)
        if tally.active.sum() == 2:
            other = int(np.flatnonzero(tally.active & (np.arange(len(tally.names)) != arm))[0])
            shares.upper[other] = np.minimum(shares.upper[other], 0.5)
    return shares


def format_rank(row: LeaderboardRow) -> str:
    """Return an arm's rank as it is shown to people."""
    return "–" if row.rank is None else f"{row.rank:,}"


def format_rating(row: LeaderboardRow) -> str:
    """Return an arm's rating as it is shown to people."""
    return "–" if row.rating is None else f"{row.rating:,.0f}"


def format_share(row: LeaderboardRow) -> str:
    """Return the share that an arm is expected to win as it is shown to people, such as `74 % (68–79)`."""
    if row.share is None:
        return "–"
    between = "" if row.lower is None or row.upper is None else f" ({percent(row.lower)}–{percent(row.upper)})"
    return f"{percent(row.share)} %{between}"


def format_record(row: LeaderboardRow) -> str:
    """Return what an arm won, lost and tied as it is shown to people, such as `32–57–3`."""
    return f"{row.wins:,}–{row.losses:,}–{row.ties:,}"


def align_columns(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return the rows of a table as lines of text.

    Args:
        rows: Their cells, as text.
        left: Which column is aligned to the left; the others are to the right.
    """
    wide = [max(map(len, column)) for column in zip(*rows)]
    wide[-1] *= left != len(wide) - 1  # nothing follows it
    return [
        "  ".join(f"{cell:{'<' if k == left else '>'}{size}}" for k, (cell, size) in enumerate(zip(row, wide)))
        for row in rows
    ]


def leaderboard_html(found: Leaderboard) -> str:
    """Return the first rows of a leaderboard as a table for notebooks, and by what it ranks."""
    cells = [
        f"<tr><td>{format_rank(row)}</td><td style='text-align: left'>{html.escape(row.arm)}</td>"
        f"<td>{format_share(row)}</td><td>{format_rating(row)}</td><td>{format_record(row)}</td></tr>"
        for row in found.rows[:TABLE_ROWS]
    ]
    names = ("rank", "arm", "wins of comparisons", "rating", "won–lost–tied")
    head = "".join(f"<th>{name}</th>" for name in names)
    left = len(found.rows) - TABLE_ROWS
    more = f"<p>… and {left:,} more arms</p>" if left > 0 else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table>"
    return f"{table}{more}<p>{found.ranked}</p>"


def preferences(tally: Tally, confidence: float = 0.95) -> list[PairRow]:
    """Return one row per pair of arms, including retired ones, in the order of their indices."""
    return pair_rows(tally, *np.triu_indices(len(tally.names), 1), confidence)


def preferences_page(
    tally: Tally, confidence: float = 0.95, after: int = 0, limit: int = 10_000
) -> tuple[list[PairRow], int | None]:
    """Return a page of `preferences`.

    Args:
        tally: The counts.
        confidence: Of the intervals.
        after: Where the page starts: 0, or what the previous page returned. It stands for a pair of arms, so that no
            pair appears twice if arms are added meanwhile.
        limit: How many rows to return.

    Returns:
        The rows, and `after` for the next page; None at the end.
    """
    arms = len(tally.names)
    i, j = divmod(after, PAGES)
    begins = np.append(0, np.cumsum(np.arange(arms - 1, 0, -1)))  # where the pairs of each first arm start
    begin = begins[-1] if i >= arms else begins[i] + min(max(j - i, 0), arms - 1 - i)
    number = np.arange(begin, min(begin + limit, begins[-1]))
    first = np.searchsorted(begins, number, side="right") - 1
    second = number - begins[first] + first + 1
    more = len(number) > 0 and number[-1] + 1 < begins[-1]
    return pair_rows(tally, first, second, confidence), int(first[-1]) * PAGES + int(second[-1]) if more else None


def pair_rows(tally: Tally, first: Ints, second: Ints, confidence: float = 0.95) -> list[PairRow]:
    """Return the rows of the pairs with these indices; nothing is computed for the others."""
    wins, losses, ties = tally.wins[first, second], tally.wins[second, first], tally.ties[first, second]
    n, nothing = wins + losses + ties, np.array(None)
    share_of_wins = np.where(n > 0, (wins + ties / 2) / np.maximum(n, 1), nothing)
    delta = share_of(1 - check_confidence(confidence), tally.started_with, first, second)
    certain_now = log_evidence(wins, losses) >= -np.log(delta)
    better = np.where(wins > losses, "first", np.where(wins < losses, "second", nothing))
    certain_winner = np.where(certain_now, better, nothing)
    lower, upper = distinct_intervals(wins + ties / 2, losses + ties / 2, delta)
    names = ([tally.names[arm] for arm in arms] for arms in (first, second))
    columns = (wins, losses, ties, n, share_of_wins, lower, upper, certain_winner)
    return [PairRow(*row) for row in zip(*names, *(column.tolist() for column in columns))]
