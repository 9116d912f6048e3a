"""Who beat whom so far: the counts of a study, and what they say before any question of certainty."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import InvalidInput

RANKED = "ranked by leads, the number of arms that an arm is ahead of, then by score"  # what `ranking` does


class Tally(NamedTuple):
    """The answers of a study, counted. Arms are known by index and by name; retired arms keep their counts.

    Nothing is checked here: `as_tally` does that for counts from elsewhere.
    """

    names: tuple[str, ...]
    wins: np.ndarray  # (K, K) int64: wins[i, j] = duels i won over j; ties are not counted
    ties: np.ndarray  # (K, K) int64: ties of i and j, "both bad" included; symmetric, diagonal 0
    active: np.ndarray  # (K,) bool: False for a retired arm
    started_with: int  # K₀: arms 0 … K₀ − 1 were there at the start; a later arm of index k is arm number m = k + 1


class LeaderboardRow(NamedTuple):
    """One arm. Its duels are counted against all arms; all that follows them is about the other active arms."""

    rank: int
    arm: str
    duels: int
    wins: int
    losses: int
    ties: int
    score: float  # estimated chance of beating an active arm drawn at random, ½ for a pair that never met
    lower: float  # the score is between these, at all times at once
    upper: float
    beats: int  # active arms it leads
    certain_wins: int
    certain_losses: int
    active: bool


class PairRow(NamedTuple):
    """One pair of arms; wins and losses are those of the first."""

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    duels: int
    estimate: float | None  # (wins + ties/2) / duels, None if they never met
    lower: float  # an interval for that, valid at all times at once
    upper: float
    certain: Literal["first", "second"] | None  # which beats the other for certain


def as_tally(
    names: Iterable[str], wins: Any, ties: Any = None, active: Any = None, started_with: int | None = None
) -> Tally:
    """A checked tally of counts from elsewhere; without more, no ties, no arm retired and none added later."""
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
    return Tally(listed, counted, tied, playing, start)


def met(tally: Tally) -> np.ndarray:
    """(K, K) int64: how often i and j have met, ties included."""
    return tally.wins + tally.wins.T + tally.ties


def leads(tally: Tally) -> np.ndarray:
    """(K, K) bool: whether i has won more of its duels with j than it lost."""
    return tally.wins > tally.wins.T


def estimates(tally: Tally) -> np.ndarray:
    """(K, K) float64: the estimated chance that i beats j, a tie counted as a half; ½ for a pair that never met."""
    n = met(tally)
    return np.divide(tally.wins + tally.ties / 2, n, out=np.full(n.shape, 0.5), where=n > 0)


def over_others(tally: Tally, pairs: np.ndarray) -> np.ndarray:
    """(K,) float64: each arm's mean entry over the active arms other than itself; ½ where there are none."""
    others = tally.active[None, :] & ~np.eye(len(tally.names), dtype=bool)
    count = others.sum(axis=1)
    return np.where(count > 0, np.sum(pairs, axis=1, where=others) / np.maximum(count, 1), 0.5)


def scores(tally: Tally) -> np.ndarray:
    """(K,) float64: each arm's estimated chance of beating an active arm drawn at random from the others (Borda)."""
    return over_others(tally, estimates(tally))


def beaten(tally: Tally) -> np.ndarray:
    """(K,) int64: how many active arms each arm leads (Copeland)."""
    return np.sum(leads(tally) & tally.active, axis=1)


def compared(tally: Tally) -> np.ndarray:
    """(K,) bool: whether an arm has met an active arm other than itself."""
    return np.sum(met(tally), axis=1, where=tally.active) > 0


def ranking(tally: Tally) -> list[tuple[int, int]]:
    """Rank and arm, best first: active arms before retired ones, by how many they lead, then by score.

    Leads come first so that an arm that leads all others is on top, which a score alone does not ensure. Equal arms
    share a rank and stand in the order of their indices; but an arm that was not compared ranks below its equals, so
    that it is never first where others have met.
    """
    keys = list(zip(~tally.active, -beaten(tally), -scores(tally).round(12), ~compared(tally)))
    ranked: list[tuple[int, int]] = []
    for place, arm in enumerate(sorted(range(len(keys)), key=keys.__getitem__), 1):
        shared = ranked and keys[ranked[-1][1]] == keys[arm]
        ranked.append((ranked[-1][0] if shared else place, arm))
    return ranked


def leaders(tally: Tally) -> list[int]:
    """The active arms that share the first rank, in the order of the leaderboard; none before two active arms met.

    Whoever is said to lead or to rank first is one of these. The first of them is the first row of the leaderboard.
    """
    if not (tally.active & compared(tally)).any():
        return []
    return [arm for rank, arm in ranking(tally) if rank == 1]


def _counts(what: str, given: Any, arms: int) -> np.ndarray:
    """(K, K) int64, if that is what was given."""
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
