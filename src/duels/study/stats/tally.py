"""Who beat whom so far: the counts of a study, and the ranking by them, without any statement of certainty.

Confidence intervals that hold at all times: where the Beta mixture martingale of the verdict is small.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InvalidInput
from ...rating.connected import Rated, rate_connected
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

TOLD_APART = 1e-6  # points on the scale of Elo: ratings that differ by less are equal, but for rounding
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
            past votes. It decides how tests share δ if people come back later, see `levels_of`.
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
    """One arm.

    Attributes:
        rank: From 1, by rating, but an arm that the verdict names is first; equal arms share a rank. None for a retired
            arm, and for one that is not compared with the others, directly or through other arms.
        arm: Its name.
        rating: Its Bradley–Terry rating on the scale of Elo, as in `duels.rate`, rounded to tenths; None if it is
            not compared with the others.
        share: The share of comparisons with the other active arms that it is expected to win by that model, each arm
            counting alike and a tie being half a win; None without a rating.
        lower: The lower limit of the share; the 95 % interval holds, about, whenever you look. None if more than 300
            arms have ratings.
        upper: The upper limit of the share.
        answers: How many answers there are about it and another arm.
        wins: How many of them it won.
        losses: How many it lost.
        ties: How many were ties, "both bad" included.
        certain_wins: How many active arms it beats for certain.
        certain_losses: How many active arms beat it for certain.
        active: False for a retired arm.
    """

    rank: int | None
    arm: str
    rating: float | None
    share: float | None
    lower: float | None
    upper: float | None
    answers: int
    wins: int
    losses: int
    ties: int
    certain_wins: int
    certain_losses: int
    active: bool


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


def count_met(tally: Tally) -> Ints:
    """Return (K, K) int64: how often i and j have met, ties included."""
    return tally.wins + tally.wins.T + tally.ties


def estimates(tally: Tally) -> Floats:
    """Return (K, K) float64: the estimated probability that i beats j; a tie is half a win, no duel is ½."""
    n = count_met(tally)
    halves: Floats = np.full(n.shape, 0.5)
    np.divide(tally.wins + tally.ties / 2, n, out=halves, where=n > 0)
    return halves


class Ranking(NamedTuple):
    """The arms in the order of the leaderboard.

    Attributes:
        ranks: Rank and index of each arm, best first: those with a rank, then the other active arms, then the retired
            ones; the rank is None for these.
        leaders: The active arms that share the first rank; none before two active arms are compared. An arm that is
            said to lead or to rank first is one of these; the first one is the leaderboard's first row.
        rated: The ratings.
        overruled: The arm with the highest rating, where the verdict names another one; else None.
    """

    ranks: list[tuple[int | None, int]]
    leaders: list[int]
    rated: Rated
    overruled: int | None

    def describe(self, names: Sequence[str]) -> str:
        """Return by what the arms are ranked."""
        if self.overruled is None:
            return "ranked by Bradley–Terry rating"
        first, other = names[self.leaders[0]], names[self.overruled]
        return (
            f"{first} is first by the verdict, though {other} has a higher rating; the others by Bradley–Terry rating"
        )


def rank_arms(tally: Tally, named: str | None = None) -> Ranking:
    """Rank the active arms by their Bradley–Terry ratings.

    An arm that is not compared with the others, directly or through other arms, has no rank. Equal arms share one, in
    the order of their indices.

    Args:
        tally: The counts.
        named: The arm that the verdict names, which is first.
    """
    arms = len(tally.names)
    rated = rate_connected(tally.wins, tally.ties, tally.active)
    rating = (rated.ratings(arms) / TOLD_APART).round()
    compared = np.flatnonzero(~np.isnan(rating) & tally.active)
    if len(compared) < min(2, tally.active.sum()):  # only retired arms have met
        compared = np.zeros(0, np.int64)
    first = -1 if named is None else tally.names.index(named)
    order = compared[np.lexsort((compared, -rating[compared], compared != first))]
    ranks = _share_ranks(rating[order], order == first)
    leaders = order[ranks == 1].tolist()
    highest = int(compared[rating[compared].argmax()]) if len(compared) else -1
    overruled = highest if first in leaders and rating[highest] > rating[first] else None
    alone = np.isin(np.arange(arms), compared, invert=True)
    rest = np.flatnonzero(alone & tally.active).tolist() + np.flatnonzero(~tally.active).tolist()
    listed: list[tuple[int | None, int]] = list(zip(ranks.tolist(), order.tolist()))
    return Ranking(listed + [(None, arm) for arm in rest], leaders, rated, overruled)


def _share_ranks(rating: Floats, is_named: Bools) -> Ints:
    """(n,) int64: the rank of each of these arms, which are in order."""
    differs = np.append(True, (rating[1:] != rating[:-1]) | is_named[:-1])[: len(rating)]
    return np.maximum.accumulate(np.where(differs, np.arange(1, len(rating) + 1), 0))


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


LOG_PI = math.log(math.pi)  # B(½, ½) = π


def log_martingale(wins: npt.ArrayLike, losses: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Return ln M(p), of numbers or arrays; a tie may be counted as half a win and half a loss."""
    from scipy import special  # loaded when first used: it takes a tenth of a second

    wins, losses = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    mixed = special.betaln(wins + 0.5, losses + 0.5) - LOG_PI
    value: Floats = mixed - special.xlogy(wins, p) - special.xlog1py(losses, -np.asarray(p))
    return value


def log_evidence(wins: npt.ArrayLike, losses: npt.ArrayLike) -> Floats:
    """Return ln M(½), the evidence against an even match, of numbers or arrays."""
    return log_martingale(wins, losses, 0.5)


def interval(wins: npt.ArrayLike, losses: npt.ArrayLike, delta: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the limits of {p: M(p) < 1/δ}, of numbers or arrays.

    Args:
        wins: 0 or more; halves are allowed.
        losses: 0 or more; halves are allowed.
        delta: Above 0 and below 1.

    Returns:
        The lower and the upper limit; 0 and 1 for a pair that never met.

    Raises:
        InvalidInput: If an argument is out of range.
    """
    from scipy import special

    wins, losses, delta = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (wins, losses, delta)))
    if not np.all((wins >= 0) & (losses >= 0) & np.isfinite(wins + losses) & (delta > 0) & (delta < 1)):
        raise InvalidInput(
            "an interval needs wins and losses of 0 or more, all finite, and a delta above 0 and below 1"
        )
    return special.expit(_lower_logit(wins, losses, delta)), special.expit(-_lower_logit(losses, wins, delta))


def _lower_logit(wins: Floats, losses: Floats, delta: Floats) -> Floats:
    """ln(p/(1−p)) of the lower limit, −∞ without wins.

    In x = ln(p/(1−p)) the likelihood w ln p + l ln(1−p) is concave and increases up to ln(w/l). Newton's method from
    any point below the limit therefore approaches it from the left, and needs no bracket.
    """
    from scipy import special

    none = wins == 0
    w = np.where(none, 1.0, wins)
    target = special.betaln(w + 0.5, losses + 0.5) - LOG_PI + np.log(delta)
    top = special.xlogy(w, w / (w + losses)) + special.xlogy(losses, losses / (w + losses))
    x = np.log(w / (losses + 0.5)) - np.sqrt(2 * (top - target) * (1 / w + 1 / (losses + 0.5)))
    going = np.ones(np.shape(x), bool)
    for _ in range(60):
        likelihood = w * special.log_expit(x) + losses * special.log_expit(-x)
        step = (target - likelihood) / (w * special.expit(-x) - losses * special.expit(x))
        x = np.where(going, x + step, x)  # each pair stops by itself, so that it does not depend on the others
        going &= np.abs(step) > 1e-12 * np.maximum(np.abs(x), 1.0)
        if not going.any():
            break
    return np.where(none, -np.inf, x)


def distinct_intervals(wins: Floats, losses: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """As `interval`, but computed once for all pairs with the same counts: there are few different ones."""
    if not len(wins):
        return np.zeros(0), np.ones(0)
    kinds, code = np.unique(delta, return_inverse=True)
    for halves in (wins, losses):  # twice a count is a whole number
        code = code * (int(2 * halves.max()) + 1) + (2 * halves).astype(np.int64)
    if len(kinds) * (2.0 * wins.max() + 1) * (2.0 * losses.max() + 1) >= 2**63:  # the codes overflow
        return interval(wins, losses, delta)
    _, one, place = np.unique(code, return_index=True, return_inverse=True)
    lower, upper = interval(wins[one], losses[one], delta[one])
    return lower[place], upper[place]
