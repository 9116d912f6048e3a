"""Who beat whom so far: the counts of a study, and the ranking by them, without any statement of certainty."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from ..rating.simple import simple_ratings
from .about import (
    COMPARISONS,
    INDEPENDENT,
    PAST_VOTES,
    THESE_ANSWERS,
    THESE_ITEMS,
    THESE_PEOPLE,
    UNKNOWN,
    About,
    First,
    Strength,
    check_about,
)

# What `ranked` does.
RANKED = "ranked by leads, the number of arms that an arm is ahead of, then by score"
RANKED_BY_RATING = "ranked by rating, since many pairs of arms have not met"
SPARSE = 0.75  # pairs are sparse if fewer than this share of them have met,
SPARSE_ARMS = range(10, 301)  # and there are so many arms: leads of fewer say enough, and more take long to rate
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Tally(NamedTuple):
    """The answers of a study, counted. Retired arms keep their counts.

    Nothing is checked here; use `as_tally` for your own counts.

    Attributes:
        names: The names of the K arms.
        wins: (K, K) int64: `wins[i, j]` duels of i and j were won by i; ties are not counted.
        ties: (K, K) int64: Ties of i and j, "both bad" included; symmetric, with 0 on the diagonal.
        active: (K,) bool: False for a retired arm.
        started_with: How many arms there were at the start; arms with larger indices were added later.
        items: How many items there are; None without items.
        about: What a verdict on these counts is about.
        strength: What a verdict on these counts holds for, see `Verdict`.
        first: Whom the first answer is from: a person who is known by name, somebody unknown (a judge included), or
            past votes. It decides how tests share δ if people come back later, see `certainty_of`.
        open: (K, K) int64: Questions about i and j that wait for an answer. Whoever is to be certain counts them as
            lost. None if there are none.
    """

    names: tuple[str, ...]
    wins: Ints
    ties: Ints
    active: Bools
    started_with: int
    items: int | None = None
    about: About = "these-items"
    strength: Strength = INDEPENDENT
    first: First = PAST_VOTES
    open: Ints | None = None

    @property
    def is_finite(self) -> bool:
        """Whether every pair has one final answer about each of so many items, and no other answers exist."""
        return self.about == THESE_ANSWERS and bool(self.items)

    @property
    def returning(self) -> bool:
        """Whether answers may depend on who was asked what, so that a verdict holds on the comparisons made only."""
        return self.strength in (THESE_PEOPLE, COMPARISONS)

    @property
    def has_two_tests(self) -> bool:
        """Whether two tests with all of δ each were used: people came back to a study that somebody unknown began."""
        return self.returning and self.first == UNKNOWN and not self.is_finite


class LeaderboardRow(NamedTuple):
    """One arm. Its duels are counted against all arms; the fields after `ties` are about the other active arms.

    Attributes:
        rank: From 1; equal arms share a rank.
        arm: Its name.
        duels: How many duels it had.
        wins: How many it won.
        losses: How many it lost.
        ties: How many were ties, "both bad" included.
        score: Estimated probability of beating an active arm drawn at random; a pair that never met counts as ½.
        lower: The lower limit of the score; the interval holds at all times at once.
        upper: The upper limit of the score.
        beats: How many active arms it leads.
        certain_wins: How many active arms it beats for certain.
        certain_losses: How many active arms beat it for certain.
        active: False for a retired arm.
        rating: Its Bradley–Terry rating on the scale of Elo, as in `duels.ratings`, rounded to tenths; None if it had
            no duels, or if more than 1,000 arms had some.
    """

    rank: int
    arm: str
    duels: int
    wins: int
    losses: int
    ties: int
    score: float
    lower: float
    upper: float
    beats: int
    certain_wins: int
    certain_losses: int
    active: bool
    rating: float | None = None


class PairRow(NamedTuple):
    """One pair of arms.

    Attributes:
        first: The first arm.
        second: The second arm.
        wins: Duels that the first won.
        losses: Duels that the first lost.
        ties: Ties, "both bad" included.
        duels: How often they met.
        estimate: (wins + ties/2) / duels; None if they never met.
        lower: The lower limit of that; the interval holds at all times at once.
        upper: The upper limit of that.
        certain: Which of them beats the other for certain, if that is known.
    """

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    duels: int
    estimate: float | None
    lower: float
    upper: float
    certain: Literal["first", "second"] | None


def as_tally(
    names: Iterable[str],
    wins: npt.ArrayLike,
    ties: npt.ArrayLike | None = None,
    active: npt.ArrayLike | None = None,
    started_with: int | None = None,
    items: int | None = None,
    about: str = THESE_ITEMS,
    strength: Strength = INDEPENDENT,
) -> Tally:
    """Check counts and return them as a tally.

    Args:
        names: The names of the arms.
        wins: (K, K): See `Tally`.
        ties: (K, K): None for no ties.
        active: (K,): None if no arm was retired.
        started_with: None if no arm was added later.
        items: How many items the answers are about; None without items.
        about: What a verdict is about, see `create_study`.
        strength: What a verdict holds for, see `Verdict`.

    Raises:
        InvalidInput: If they do not fit together.
    """
    if isinstance(names, str):
        raise InvalidInput(f"names is the text {names!r}: expected a list of names")
    listed = tuple(map(str, names))
    arms = len(listed)
    if arms < 1 or len(set(listed)) < arms or "" in listed:
        raise InvalidInput(f"the arms are called {list(listed)}: expected at least one name, all different, none empty")
    counted = _counts("wins", wins, arms)
    tied = _counts("ties", np.zeros((arms, arms)) if ties is None else ties, arms)
    if not np.array_equal(tied, tied.T):
        i, j = map(int, np.argwhere(tied != tied.T)[0])
        raise InvalidInput(f"ties[{i}, {j}] = {tied[i, j]} but ties[{j}, {i}] = {tied[j, i]}: expected the same")
    playing = np.ones(arms, dtype=bool) if active is None else np.array(active, dtype=bool)
    if playing.shape != (arms,):
        raise InvalidInput(f"active has shape {playing.shape}, expected {(arms,)}: one entry per arm")
    start = arms if started_with is None else int(started_with)
    if not 1 <= start <= arms:
        raise InvalidInput(f"started_with is {start}: expected a number of arms from 1 to {arms}")
    scope, most = check_about(about), int((counted + counted.T + tied).max())
    if items is not None and (items < 1 or (most > items and scope != THESE_ITEMS)):
        raise InvalidInput(f"items is {items}, but a pair has {most} answers: expected one answer per item at most")
    return Tally(listed, counted, tied, playing, start, items, scope, strength)


def met(tally: Tally) -> Ints:
    """Return (K, K) int64: how often i and j have met, ties included."""
    return tally.wins + tally.wins.T + tally.ties


def leads(tally: Tally) -> Bools:
    """Return (K, K) bool: whether i has won more of its duels with j than it lost."""
    return np.greater(tally.wins, tally.wins.T)


def estimates(tally: Tally) -> Floats:
    """Return (K, K) float64: the estimated probability that i beats j; a tie is half a win, no duel is ½."""
    n = met(tally)
    halves: Floats = np.full(n.shape, 0.5)
    np.divide(tally.wins + tally.ties / 2, n, out=halves, where=n > 0)
    return halves


def over_others(tally: Tally, pairs: Floats) -> Floats:
    """Return (K,) float64: each arm's mean entry over the active arms other than itself; ½ if there are none."""
    others = tally.active[None, :] & ~np.eye(len(tally.names), dtype=bool)
    count = others.sum(axis=1)
    return np.where(count > 0, np.sum(pairs, axis=1, where=others) / np.maximum(count, 1), 0.5)


def scores(tally: Tally) -> Floats:
    """Return (K,) float64: each arm's estimated probability of beating another active arm drawn at random (Borda)."""
    return over_others(tally, estimates(tally))


def beaten(tally: Tally) -> Ints:
    """Return (K,) int64: how many active arms each arm leads (Copeland)."""
    return np.asarray(np.sum(leads(tally) & tally.active, axis=1))


def compared(n: Ints, active: Bools) -> Bools:
    """Return (K,) bool: whether an arm has met an active arm other than itself.

    Args:
        n: (K, K) int64: How often they have met.
        active: (K,) bool.
    """
    return np.asarray(_over_active(n, active) > 0)


def _over_active(pairs: np.ndarray, active: Bools) -> np.ndarray:
    """The sum of each row over the active arms. A product of matrices would wait for threads on a busy machine."""
    return np.asarray((pairs if active.all() else pairs[:, active]).sum(axis=1))


class Ranking(NamedTuple):
    """The arms in the order of the leaderboard.

    Attributes:
        ranks: Rank and index of each arm, best first.
        leaders: The active arms that share the first rank; none before two active arms have met. An arm that is said to
            lead or to rank first is one of these; the first one is the leaderboard's first row.
    """

    ranks: list[tuple[int, int]]
    leaders: list[int]


def ranked(tally: Tally) -> Ranking:
    """Rank the arms: active arms before retired ones, by how many they lead, then by score.

    Leads come first so that an arm that leads all others is on top, which a score alone does not ensure. If pairs are
    sparse, see `is_sparse`, the order is by rating instead, after an arm that leads all others. Equal arms share a
    rank, in the order of their indices; but an arm that was not compared ranks below its equals, so that it is never
    first where others have met.
    """
    n, lead = met(tally), tally.wins - tally.wins.T
    if _sparse(n, tally.active):
        leads_all = _over_active(lead > 0, tally.active) == tally.active.sum() - 1
        rating = np.nan_to_num(simple_ratings(tally.wins, tally.ties), nan=-np.inf)
        return ranked_by(rating.round(6), leads_all.astype(np.int64), compared(n, tally.active), tally.active)
    # As `scores`: a share is ½ + lead/2n, so that pairs that never met need no mask. Dividing integers is slow.
    share = lead.astype(np.float64) / np.maximum(n, 1).astype(np.float64)
    score = 0.5 + _over_active(share, tally.active) / (2 * np.maximum(tally.active.sum() - tally.active, 1))
    return ranked_by(score, _over_active(lead > 0, tally.active), compared(n, tally.active), tally.active)


def is_sparse(pairs: int, arms: int) -> bool:
    """Return whether so few pairs have met that leads and scores mislead.

    Args:
        pairs: How many pairs of active arms have met.
        arms: How many arms are active.
    """
    return arms in SPARSE_ARMS and pairs < SPARSE * arms * (arms - 1) / 2


def ranked_words(tally: Tally) -> str:
    """Return by what `ranked` ranks the arms."""
    return RANKED_BY_RATING if is_ranked_by_rating(tally) else RANKED


def is_ranked_by_rating(tally: Tally) -> bool:
    """Return whether `ranked` ranks by rating, which takes longer than leads."""
    return _sparse(met(tally), tally.active)


def _sparse(n: Ints, active: Bools) -> bool:
    among = n if active.all() else n[np.ix_(active, active)]
    return len(among) in SPARSE_ARMS and is_sparse(int(np.count_nonzero(among)) // 2, len(among))


def ranked_by(score: Floats, led: Ints, is_compared: Bools, active: Bools) -> Ranking:
    """Rank the arms by what `ranked` computes from the counts.

    Args:
        score: (K,) float64: See `scores`.
        led: (K,) int64: See `beaten`.
        is_compared: (K,) bool: See `compared`.
        active: (K,) bool.
    """
    keys = np.stack([~is_compared, -score.round(12), -led, ~active])
    order = np.lexsort(keys)  # by the last key first, and by index where all are equal
    differs = np.append(True, (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0))
    rank = np.maximum.accumulate(np.where(differs, np.arange(1, len(order) + 1), 0))
    first = order[rank == 1].tolist() if (active & is_compared).any() else []
    return Ranking(list(zip(rank.tolist(), order.tolist())), first)


def ranking(tally: Tally) -> list[tuple[int, int]]:
    """Return rank and index of each arm, best first, see `ranked`."""
    return ranked(tally).ranks


def leaders(tally: Tally) -> list[int]:
    """Return the active arms that share the first rank, see `ranked`."""
    return ranked(tally).leaders


def _counts(what: str, given: npt.ArrayLike, arms: int) -> Ints:
    """The counts as (K, K) int64."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be a square table of counts: {error}") from None
    if numbers.shape != (arms, arms):
        raise InvalidInput(f"{what} has shape {numbers.shape}, expected {(arms, arms)}: one row and one column per arm")
    bad = ~(np.isfinite(numbers) & (numbers >= 0) & (numbers == np.floor(numbers)))
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        raise InvalidInput(
            f"{what}[{i}, {j}] = {numbers[i, j]:g}, expected a count of duels: 0 or a whole number above"
        )
    if np.diag(numbers).any():
        i = int(np.flatnonzero(np.diag(numbers))[0])
        raise InvalidInput(
            f"{what}[{i}, {i}] = {numbers[i, i]:g}, expected 0: a duel of an arm with itself says nothing"
        )
    return numbers.astype(np.int64)
