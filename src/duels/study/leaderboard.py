"""Leaderboards and tables of pairs: counts, estimates, and intervals that hold for all pairs together."""

import html
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..rating.simple import simple_ratings
from .certainty import certainly_beats, checked_confidence, share_of
from .intervals import distinct_intervals, log_evidence
from .tally import (
    Bools,
    Floats,
    Ints,
    LeaderboardRow,
    PairRow,
    Tally,
    beaten,
    met,
    over_others,
    ranked_words,
    ranking,
    scores,
)

PAGES = 2**20  # more than the number of arms: a pair's number is first · PAGES + second
MOST_RATED = 1000  # arms: the fit takes the cube of their number
TABLE_ROWS = 10  # arms in a notebook's table


class RankRow(NamedTuple):
    """The place of one active arm.

    Attributes:
        rank: From 1; arms that are equal by the leaderboard share one.
        arm: Its name.
        certain: Whether every arm above certainly beats it, and it certainly beats every arm below. A rank that arms
            share is not certain.
    """

    rank: int
    arm: str
    certain: bool


def rank_rows(tally: Tally, winner: str | None, confidence: float = 0.95) -> list[RankRow]:
    """Return the active arms in the order of `ranking`, and which ranks are certain.

    With probability `confidence`, no rank below the first is ever marked as certain and wrong: this is the promise
    about all pairs. That the winner is first is the promise of the verdict.

    Args:
        tally: The counts.
        winner: The winner by the verdict, if there is one.
        confidence: Of the promise about all pairs.
    """
    ranked = [(rank, arm) for rank, arm in ranking(tally) if tally.active[arm]]
    certain = certain_ranks(tally, ranked, certainly_beats(tally, confidence), winner)
    return [RankRow(rank, tally.names[arm], sure) for (rank, arm), sure in zip(ranked, certain)]


def certain_ranks(tally: Tally, ranked: Sequence[tuple[int, int]], sure: Bools, winner: str | None) -> list[bool]:
    """Return which ranks are certain.

    Args:
        tally: The counts.
        ranked: (rank, arm) of the active arms, in the order of `ranking`.
        sure: (K, K): Who certainly beats whom, by `certainly_beats`.
        winner: As in `rank_rows`.
    """
    order = [arm for _, arm in ranked]
    beats = sure[np.ix_(order, order)]
    beats |= np.array([[tally.names[arm] == winner] for arm in order])
    place = np.arange(len(order))
    known = np.where(place[:, None] < place, beats, beats.T) | np.eye(len(order), dtype=bool)
    shared = Counter(rank for rank, _ in ranked)
    alone = [shared[rank] == 1 and (len(order) > 1 or winner is not None) for rank, _ in ranked]
    return [bool(row.all()) and only for row, only in zip(known, alone)]


def leaderboard(tally: Tally, confidence: float = 0.95) -> list[LeaderboardRow]:
    """Return one row per arm, best first, in the order of `ranking`; retired arms come last."""
    sure = certainly_beats(tally, confidence)
    lower, upper = _intervals(tally, confidence)
    columns = {
        "duels": met(tally).sum(axis=1),
        "wins": tally.wins.sum(axis=1),
        "losses": tally.wins.sum(axis=0),
        "ties": tally.ties.sum(axis=1),
        "score": scores(tally),
        "lower": over_others(tally, lower),
        "upper": over_others(tally, upper),
        "beats": beaten(tally),
        "certain_wins": np.sum(sure & tally.active, axis=1),
        "certain_losses": np.sum(sure & tally.active[:, None], axis=0),
        "active": tally.active,
    }
    plain = {key: values.tolist() for key, values in columns.items()} | {"rating": _ratings(tally)}
    return [
        LeaderboardRow(rank=rank, arm=tally.names[arm], **{key: values[arm] for key, values in plain.items()})
        for rank, arm in ranking(tally)
    ]


def _ratings(tally: Tally) -> list[float | None]:
    """Rounded ratings; None for arms without duels, and for all if too many have some."""
    if np.count_nonzero(met(tally).any(axis=1)) > MOST_RATED:
        return [None] * len(tally.names)
    found = simple_ratings(tally.wins, tally.ties)
    return [None if one != one else one for one in found.round(1).tolist()]


def rating_text(row: LeaderboardRow) -> str:
    """Return an arm's rating as it is shown to people."""
    return "–" if row.rating is None else f"{row.rating:,.0f}"


def leaderboard_html(tally: Tally, confidence: float = 0.95) -> str:
    """Return the first rows of a leaderboard as a table for notebooks, and by what it ranks."""
    rows = leaderboard(tally, confidence)
    cells = [
        f"<tr><td>{row.rank}</td><td style='text-align: left'>{html.escape(row.arm)}</td>"
        f"<td>{rating_text(row)}</td><td>{row.beats}</td>"
        f"<td>{row.score:.3f}</td><td>{row.duels:,}</td><td>{row.wins:,}</td><td>{row.losses:,}</td>"
        f"<td>{row.ties:,}</td></tr>"
        for row in rows[:TABLE_ROWS]
    ]
    names = ("rank", "arm", "rating", "leads", "score", "duels", "wins", "losses", "ties")
    head = "".join(f"<th>{name}</th>" for name in names)
    more = f"<p>… and {len(rows) - TABLE_ROWS:,} more arms</p>" if len(rows) > TABLE_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table>"
    return f"{table}{more}<p>{ranked_words(tally)}</p>"


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
    delta = share_of(1 - checked_confidence(confidence), tally, first, second)
    certain_now = log_evidence(wins, losses) >= -np.log(delta)
    better = np.where(wins > losses, "first", np.where(wins < losses, "second", nothing))
    certain_winner = np.where(certain_now, better, nothing)
    lower, upper = distinct_intervals(wins + ties / 2, losses + ties / 2, delta)
    names = ([tally.names[arm] for arm in arms] for arms in (first, second))
    columns = (wins, losses, ties, n, share_of_wins, lower, upper, certain_winner)
    return [PairRow(*row) for row in zip(*names, *(column.tolist() for column in columns))]


def _intervals(tally: Tally, confidence: float) -> tuple[Floats, Floats]:
    """(K, K) lower and upper limits of all pairs, a tie counted as a half; 0 and 1 on the diagonal."""
    lower, upper = np.zeros(tally.wins.shape), np.ones(tally.wins.shape)
    pair = np.nonzero(met(tally))  # the interval of a pair that never met is (0, 1)
    delta = share_of(1 - checked_confidence(confidence), tally, *pair)
    won, lost, tied = tally.wins[pair], tally.wins.T[pair], tally.ties[pair]
    lower[pair], upper[pair] = distinct_intervals(won + tied / 2, lost + tied / 2, delta)
    return lower, upper
