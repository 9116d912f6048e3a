"""Does a voter's next pair depend on that voter's last answer, as in a sort or a bracket?

The promise of the verdict assumes that it does not, see `docs/study/proofs.md`. Four tests look for the traces of such
paths. Each compares the winner of a pair with something about the same voter's later questions, among answers to the
same pair, so that arms that win more, or are asked about more, raise no alarm:

1. which of the two arms the voter meets again first, without the other;
2. the same, of arms that are in the very next pair;
3. the next pair itself, by what followed each winner for the other half of the voters;
4. whether the next opponent is one that the voter prefers to the last one. A sort leaves out pairs that earlier answers
   decide, so it asks about the better ones after a win only. Here answers are compared among those to pairs whose arm
   that is not asked again had as many wins and losses of this voter.

A test adds up (feature − mean) · (won − mean) over each voter's answers, with means within a pair. Voters are
independent, and if the next pair is too, each sum has mean 0. If they are also symmetric, the total is more than
`LARGE` times the root of the sum of their squares with a probability of at most 2 exp(−LARGE²/2), however the answers
of one voter depend on one another. That takes 33 voters or more, and 65 in the third test.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import format_count
from ...votes.votes import NEVER, Votes
from .tally import Floats, Ints

FALSE_ALARM = 1e-6  # of all four tests together
LARGE = math.sqrt(2 * math.log(4 * 2 / FALSE_ALARM))
LEAST = 0.1  # correlation: less does little harm, and in a long log anything is certain
LEAST_LEFT_OUT = 0.5  # the same of the fourth test, whose feature is not quite independent of the answer
MOST = 50_000  # votes to look at: a correlation of `LEAST` is certain in far fewer
MEANS = (
    "Verdict and intervals then hold for the comparisons made, but not for what people prefer on average: arms that "
    "are equally good can look far apart. Keep only the first vote of each voter, or ask pairs that do not depend on "
    "the voter's own answers"
)


class _Steps(NamedTuple):
    """Votes in the order of each voter; one entry per vote."""

    voter: Ints  # from 0 without gaps
    low: Ints  # the arm with the smaller index
    high: Ints
    decided: npt.NDArray[np.bool_]  # no tie
    won: npt.NDArray[np.bool_]  # whether `low` won
    goes_on: npt.NDArray[np.bool_]  # whether the next entry is the same voter's


class _Trace(NamedTuple):
    """What a test found."""

    size: float  # how many times the root of the sum of squares; negative if the loser comes where the winner might
    correlation: float  # within pairs
    answers: int  # how many it compares
    agree: int  # in how many of them the feature is the winner, for features that are an arm


def find_paths(voter: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike, winner: npt.ArrayLike) -> str | None:
    """Test whether the next pair of voters depends on their last answer.

    Args:
        voter: (n,) int: Who voted, in the order of the votes of each voter; negative for nobody known.
        left: (n,) int: Arms.
        right: (n,) int: Arms.
        winner: (n,) int: 0 for left, 1 for right, others for ties.

    Returns:
        What was found, what it means and what to do. None if there is no sign of it: if there is nothing to find, in
        all but one of 10⁶ logs.
    """
    steps = _steps_of(np.asarray(voter), np.asarray(left), np.asarray(right), np.asarray(winner))
    if steps is None:
        return None
    found = [
        (abs(trace.correlation), words(trace, format_count(int(steps.voter[-1]) + 1, "voter")))
        for trace, words, least, is_signed in (
            (_meets_again(steps), _again_words, LEAST, True),
            (_stays(steps), _stays_words, LEAST, True),
            (_next_pair(steps), _next_words, LEAST, False),
            (_find_left_out(steps), _describe_left_out, LEAST_LEFT_OUT, False),
        )
        if (abs(trace.size) if is_signed else trace.size) > LARGE and abs(trace.correlation) >= least
    ]
    if not found:
        return None
    return f"The pair a voter gets seems to depend on that voter's last answer: {max(found)[1]}. {MEANS}."


def find_paths_in(votes: Votes) -> str | None:
    """As `find_paths`, of votes as they were read, in the order of their times if each has one.

    Votes with counts have no order, and are not tested.
    """
    votes = votes if votes.first is None else votes.first
    if votes.voters is None or votes.count is not None:
        return None
    columns = [votes.voters.codes, votes.left, votes.right, votes.winner]
    if votes.times is not None:
        when = votes.times.microseconds
        if (when != NEVER).all() and (when[1:] < when[:-1]).any():
            order = np.argsort(when, kind="stable")
            columns = [one[order] for one in columns]
    return find_paths(*columns)


def _again_words(trace: _Trace, people: str) -> str:
    return f"{_which(trace)} comes back first {_times(trace)}, {people})"


def _stays_words(trace: _Trace, people: str) -> str:
    return f"{_which(trace)} is in the next pair too {_times(trace)}, {people})"


def _which(trace: _Trace) -> str:
    return "the winner, rather than the loser," if trace.size > 0 else "the loser, rather than the winner,"


def _times(trace: _Trace) -> str:
    number = trace.agree if trace.size > 0 else trace.answers - trace.agree
    share = f"{number:,} of {trace.answers:,} times"
    return f"{share} (correlation {abs(trace.correlation):.2f} among votes on the same pair"


def _next_words(trace: _Trace, people: str) -> str:
    return (
        f"the next pair says who won (correlation {trace.correlation:.2f} among votes on the same pair, "
        f"{trace.answers:,} votes, {people})"
    )


def _describe_left_out(trace: _Trace, people: str) -> str:
    return f"pairs that earlier answers decide are left out, as in a sort ({trace.answers:,} votes, {people})"


def _steps_of(voter: np.ndarray, left: np.ndarray, right: np.ndarray, winner: np.ndarray) -> _Steps | None:
    kept = np.flatnonzero((voter >= 0) & (left != right))[:MOST]
    if not len(kept):
        return None
    order = kept[np.argsort(voter[kept], kind="stable")]
    code, one, other, said = (column[order].astype(np.int64) for column in (voter, left, right, winner))
    goes_on = np.append(code[1:] == code[:-1], False)
    low = np.minimum(one, other)
    numbers = np.concatenate([[0], np.cumsum(~goes_on)[:-1]])
    return _Steps(numbers, low, np.maximum(one, other), said < 2, np.where(said == 0, one, other) == low, goes_on)


def _compare(steps: _Steps, chosen: Ints, feature: Floats, stratum: Ints, won: np.ndarray | None = None) -> _Trace:
    """Test whether a feature of what comes after the chosen votes depends on who won, within strata."""
    outcome = (steps.won if won is None else won)[chosen].astype(np.float64)
    number = np.unique(stratum, return_inverse=True)[1]
    size = np.bincount(number)
    off = feature - (np.bincount(number, feature) / size)[number]
    ahead = outcome - (np.bincount(number, outcome) / size)[number]
    by_voter = np.bincount(steps.voter[chosen], off * ahead)
    spread, most = math.sqrt((by_voter**2).sum()), math.sqrt((off**2).sum() * (ahead**2).sum())
    if spread < 1e-9 or most < 1e-9:  # rounding errors of what is constant
        return _Trace(0.0, 0.0, len(chosen), 0)
    total = float(by_voter.sum())
    return _Trace(total / spread, total / most, len(chosen), int((feature == outcome).sum()))


def _pairs(steps: _Steps) -> Ints:
    return steps.low * (int(steps.high.max()) + 1) + steps.high


def _meets_again(steps: _Steps) -> _Trace:
    n, arms = len(steps.voter), int(steps.high.max()) + 1
    arm, row = np.concatenate([steps.low, steps.high]), np.tile(np.arange(n), 2)
    key = np.tile(steps.voter, 2) * arms + arm
    order = np.lexsort((row, key))
    later = np.full(2 * n, n)  # when the voter meets an arm again
    same = key[order][1:] == key[order][:-1]
    later[order[:-1][same]] = row[order][1:][same]
    low, high = later[:n], later[n:]
    chosen = np.flatnonzero(steps.decided & (low != high))
    return _compare(steps, chosen, (low < high)[chosen].astype(np.float64), _pairs(steps)[chosen])


def _find_shared_arm(steps: _Steps) -> tuple[np.ndarray, np.ndarray]:
    """(n,) bool each: whether the next pair has the arms `low` and `high`, for votes that another one follows."""
    low, high = np.roll(steps.low, -1), np.roll(steps.high, -1)
    has_low, has_high = ((arm == low) | (arm == high) for arm in (steps.low, steps.high))
    return has_low & steps.goes_on, has_high & steps.goes_on


def _stays(steps: _Steps) -> _Trace:
    has_low, has_high = _find_shared_arm(steps)
    chosen = np.flatnonzero(steps.decided & (has_low != has_high))
    return _compare(steps, chosen, has_low[chosen].astype(np.float64), _pairs(steps)[chosen])


def _next_pair(steps: _Steps) -> _Trace:
    pair = np.unique(_pairs(steps), return_inverse=True)[1]
    chosen = np.flatnonzero(steps.decided & steps.goes_on)
    here, after, half = pair[chosen], np.roll(pair, -1)[chosen], steps.voter[chosen] % 2
    cell = np.unique(here * (int(pair.max()) + 1) + after, return_inverse=True)[1]
    outcome, feature = steps.won[chosen].astype(np.float64), np.zeros(len(chosen))
    for side in (0, 1):
        learn, use = half == side, half != side
        if not learn.any() or not use.any():
            continue
        here_learnt, cell_learnt = here[learn], cell[learn]
        times = np.maximum(np.bincount(here_learnt, minlength=len(pair)), 1)
        mean = np.bincount(here_learnt, outcome[learn], minlength=len(pair)) / times
        more = np.bincount(cell_learnt, outcome[learn] - mean[here_learnt], minlength=len(chosen))
        feature[use] = (more / (np.bincount(cell_learnt, minlength=len(chosen)) + 1))[cell[use]]
    trace = _compare(steps, chosen, feature, here * 2 + half)
    # Both halves may be large for the same reason. If the total is this large, so is one half of it by itself: for
    # totals a, b and roots r, s of half of the voters each, (a + b) / √(r² + s²) ≤ √2 max(a/r, b/s).
    return trace._replace(size=trace.size / math.sqrt(2))


def _find_left_out(steps: _Steps) -> _Trace:
    n, arms = len(steps.voter), int(steps.high.max()) + 1
    has_low, has_high = _find_shared_arm(steps)
    chosen = np.flatnonzero(steps.decided & (has_low != has_high))
    stays = np.where(has_low, steps.low, steps.high)[chosen]
    beaten = (steps.low + steps.high)[chosen] - stays  # or not: the arm that does not stay
    opponent = np.roll(steps.low + steps.high, -1)[chosen] - stays
    low, high = np.minimum(beaten, opponent), np.maximum(beaten, opponent)
    voter = steps.voter[chosen]

    def last_before(keys: Ints, rows: Ints, wanted: Ints) -> Ints:
        """The place of the last of the sorted keys and rows that is wanted and before the chosen rows; or −1."""
        known, code = np.unique(np.concatenate([keys, wanted]), return_inverse=True)
        place = np.searchsorted(code[: len(keys)] * n + rows, code[len(keys) :] * n + chosen) - 1
        same = (place >= 0) & (len(known) > 0)
        same[same] = keys[place[same]] == wanted[same]
        return np.where(same, place, -1)

    told = np.flatnonzero(steps.decided)
    key = (steps.voter * arms + steps.low) * arms + steps.high
    told = told[np.argsort(key[told], kind="stable")]
    met = last_before(key[told], told, (voter * arms + low) * arms + high)
    better = np.where(opponent == low, steps.won[told[met]], ~steps.won[told[met]])

    # The wins and losses of the arm that does not stay, in the votes of this voter before.
    row, won = np.tile(told, 2), np.concatenate([steps.won[told], ~steps.won[told]])
    arm_key = steps.voter[row] * arms + np.concatenate([steps.low[told], steps.high[told]])
    order = np.lexsort((row, arm_key))
    arm_key, row, won = arm_key[order], row[order], won[order]
    begin = np.flatnonzero(np.append(True, arm_key[1:] != arm_key[:-1]))
    first = np.repeat(begin, np.diff(np.append(begin, len(row))))
    gained = np.cumsum(won)
    wins = gained - (gained - won)[first]
    place = last_before(arm_key, row, voter * arms + beaten)
    record = wins[place] * (n + 1) + (place - first[place])

    kept = (met >= 0) & (place >= 0)
    stayed_won = np.where(has_low, steps.won, ~steps.won)
    return _compare(steps, chosen[kept], better[kept].astype(np.float64), record[kept], stayed_won)
