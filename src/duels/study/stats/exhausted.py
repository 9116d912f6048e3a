"""What a fixed number of prompts can show: before the first question, and when the questions run out."""

import math
from dataclasses import dataclass

import numpy as np

from ...errors import format_count
from ...theory import kl
from .certainty import CertaintyTest
from .tally import Bools, Ints, Tally, count_met, rank_arms

MARGINS = tuple(percent / 100 for percent in range(1, 26))  # that are suggested
MOST_PROMPTS = 1_000_000  # beyond, more prompts are no advice
COIN = 0.05  # a coin does as well if its chance to do so is above this


@dataclass(frozen=True, kw_only=True)
class Exhausted:
    """No question that is left can bring a verdict.

    Attributes:
        arm: The arm that came closest …
        other: … and the one that it could not be shown to beat.
        won: How many prompts it won against that one …
        lost: … lost …
        tied: … and tied.
        prompts: About how many more prompts would tell, if it goes on as it has; None if that is not in sight.
        margin: The smallest margin, in whole percent, at which there is a verdict now; None above 25 %.
    """

    arm: str
    other: str
    won: int
    lost: int
    tied: int
    prompts: int | None = None
    margin: float | None = None

    def __str__(self) -> str:
        asked = self.won + self.lost + self.tied
        ties = f" and tied {self.tied:,}" if self.tied else ""
        coin = "; a coin does that too" if _coin_does(self.won, self.lost) else ", which is not enough"
        advice = []
        if self.prompts is not None:
            advice.append(f"About {float(f'{self.prompts:.2g}'):,.0f} more prompts would tell")
        if self.margin is not None:
            advice.append(
                f"{'or' if advice else 'It ends with'} a margin of {100 * self.margin:g} %{' now' if advice else ''}"
            )
        told = f" {', '.join(advice)}." if advice else ""
        if self.tied == asked:
            every = "the only comparison" if asked == 1 else f"all {asked:,}"
            return f"{self.arm} and {self.other} tied {every}.{told}"
        return f"{self.arm} won {self.won:,} of {asked:,}{ties} against {self.other}{coin}.{told}"


def find_exhausted(tally: Tally, left: Ints, confidence: float, margin: float) -> Exhausted | None:
    """Return why no question that is left can bring a verdict; None if one can.

    Args:
        tally: The counts.
        left: (K, K) int64: How many questions about each pair are still to be answered.
        confidence: Of the verdict.
        margin: Of the verdict.
    """
    active = np.flatnonzero(tally.active)
    test = CertaintyTest(tally, confidence)
    if len(active) < 2 or _can_end(tally, test, left, margin):
        return None
    arm, other = _closest(tally, test, left)
    won, lost, tied = int(tally.wins[arm, other]), int(tally.wins[other, arm]), int(tally.ties[arm, other])
    prompts = _more_prompts(tally, test, arm, other)
    names, smallest = tally.names, _smallest_margin(tally, test, margin)
    return Exhausted(
        arm=names[arm], other=names[other], won=won, lost=lost, tied=tied, prompts=prompts, margin=smallest
    )


def _can_end(tally: Tally, test: CertaintyTest, left: Ints, margin: float) -> bool:
    """Whether there is a verdict if the questions left are answered as well as possible for it."""
    active = np.flatnonzero(tally.active)
    if possible_winners(tally, test, left)[active].any():
        return True
    first, second = (side.ravel() for side in np.meshgrid(active, active, indexing="ij"))
    size, itself = len(active), np.eye(len(active), dtype=bool)
    won, lost, tied = tally.wins[first, second], tally.wins[second, first], tally.ties[first, second]
    to_come = left[first, second]
    best = test.sampling.weigh(won + to_come, lost, tied)
    # A loss must be in sight: that an arm loses everything to one that it leads is possible, but not worth the calls.
    level = test.levels.no_winner() if tally.active.all() else test.levels.all_pairs(first, second)
    lost_to = ((best >= level) & (won + to_come > lost) & (won >= lost)).reshape(size, size)
    if (lost_to & ~itself).any(axis=0).all():
        return True
    complete = count_met(tally)[np.ix_(active, active)] + left[np.ix_(active, active)] >= (tally.items or 0)
    if tally.is_finite and complete[~itself].all():
        return True  # when everything is answered, the count decides
    if margin <= 0:
        return False
    near = test.sampling.weigh_closeness(won + to_come, lost, tied, margin) >= test.levels.close(first, second)
    return bool((near.reshape(size, size) | itself).all(axis=1).any())


def possible_winners(tally: Tally, test: CertaintyTest, left: Ints) -> Bools:
    """Return (K,) bool: which active arms are the winner if they win all questions that are left."""
    hopeful = _possible_wins(tally, test, left)[:, tally.active].all(axis=1) & tally.active
    return np.asarray(hopeful & ~test.wins.any(axis=0))


def _possible_wins(tally: Tally, test: CertaintyTest, left: Ints) -> Bools:
    """(K, K) bool: whether i beats j, as a winner must, if it wins all that is left to ask; true on the diagonal."""
    arms = len(tally.names)
    first, second = (side.ravel() for side in np.indices((arms, arms)))
    won, lost, tied = (
        tally.wins[first, second] + left[first, second],
        tally.wins[second, first],
        tally.ties[first, second],
    )
    known = np.full(len(won), -np.inf)
    ahead = won > lost
    if ahead.any():
        known[ahead] = test.sampling.weigh(won[ahead], lost[ahead], tied[ahead])
    itself = np.eye(arms, dtype=bool)
    beats = np.asarray((known >= test.levels.winner(first, second)).reshape(arms, arms) | itself)
    firm = np.asarray((known >= test.levels.all_pairs(first, second)).reshape(arms, arms) | itself)
    # An arm that does not beat the retired ones needs the evidence of all pairs.
    beats_retired: Bools = np.asarray(beats[:, ~tally.active].all(axis=1))
    return np.where(beats_retired[:, None], beats, firm)


def _closest(tally: Tally, test: CertaintyTest, left: Ints) -> tuple[int, int]:
    """The first arm that no other one clearly beats, and the arm over which its lead is the weakest.

    Of those that it cannot be shown to beat any more, if there are such.
    """
    order = [arm for _, arm in rank_arms(tally).ranks if tally.active[arm]]
    beaten = np.asarray(test.wins.any(axis=0))
    arm = next((one for one in order if not beaten[one]), order[0])
    others = [one for one in order if one != arm and not test.wins[arm, one]] or [one for one in order if one != arm]
    possible = _possible_wins(tally, test, left)[arm]
    others = [one for one in others if not possible[one]] or others
    lead = (tally.wins[arm] - tally.wins[:, arm]) / np.sqrt(np.maximum(tally.wins[arm] + tally.wins[:, arm], 1))
    return arm, min(others, key=lambda one: float(lead[one]))


def _more_prompts(tally: Tally, test: CertaintyTest, arm: int, other: int) -> int | None:
    """About how many more prompts the pair needs, if it goes on as it has."""
    won, lost = int(tally.wins[arm, other]), int(tally.wins[other, arm])
    asked = won + lost + int(tally.ties[arm, other])
    if won <= lost:
        return None
    share = (won + 0.5) / (won + lost + 1)
    growth = float(kl(share, 0.5)) * (won + lost) / asked
    needed = math.ceil(float(test.missing_evidence(arm)[other]) / growth)
    return max(needed, 1) if needed <= MOST_PROMPTS else None


def _smallest_margin(tally: Tally, test: CertaintyTest, margin: float) -> float | None:
    for larger in MARGINS:
        if larger > margin and test.close(larger)[np.ix_(tally.active, tally.active)].all(axis=1).any():
            return larger
    return None


def _coin_does(won: int, lost: int) -> bool:
    """Whether a fair coin leads by as much on either side with a chance above `COIN`."""
    from scipy import stats

    return won + lost == 0 or float(stats.binomtest(won, won + lost).pvalue) > COIN


def least_prompts(tally: Tally, confidence: float) -> int:
    """Return how many prompts a winner needs at least: that many straight wins over another arm."""
    test, wins = CertaintyTest(tally._replace(items=None) if tally.is_finite else tally, confidence), 1
    level = _find_level(tally, test)
    while float(test.sampling.weigh(np.array([wins]), np.array([0]), np.array([0]))[0]) < level:
        wins += 1
    return wins


def fewest_wins(tally: Tally, confidence: float) -> int | None:
    """Return of how many of the study's prompts an arm must win to be the winner; None if all are not enough."""
    items, test = tally.items or 0, CertaintyTest(tally, confidence)
    won = np.arange(items // 2 + 1, items + 1)
    if not len(won):
        return None
    known = test.sampling.weigh(won, items - won, np.zeros(len(won), np.int64))
    enough = won[known >= _find_level(tally, test)]
    return int(enough[0]) if len(enough) else None


def _find_level(tally: Tally, test: CertaintyTest) -> float:
    """The evidence that a pair of a winner needs; more where retired arms can no longer be beaten."""
    one = np.zeros(1, np.int64)
    level = test.levels.winner if tally.active.all() else test.levels.all_pairs
    return float(level(one, one + 1)[0])


def describe_power(tally: Tally, confidence: float) -> str:
    """Return what the prompts of a study on new items can show at all.

    Args:
        tally: The arms, and how many prompts there are.
        confidence: Of the verdict.
    """
    items, fewest = tally.items or 0, fewest_wins(tally, confidence)
    if fewest is None:
        least = least_prompts(tally, confidence)
        return f"With {format_count(items, 'prompt')} no winner can be shown: {least} at least."
    return f"{items:,} prompts can show a winner that wins {fewest:,} of them or more against each other arm."
