"""Before the verdict: how likely each arm is the best, and how many more answers the verdict is likely to need.

These are estimates under a model, not promises. The model is Bradley–Terry: arm i has a strength θ_i ~ N(0, σ²), and
beats arm j with probability 1 / (1 + exp(θ_j − θ_i)) where the answer is not a tie. σ is one of `SPREADS`, before the
first answer with a probability proportional to it, as if it were spread evenly. The posterior of the strengths is
approximated by a normal distribution for each σ (Laplace), and draws from it are weighted by the posterior itself. How
the duels were chosen does not matter.
"""

import hashlib
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...errors import format_count, percent
from ...rating import bradley_terry
from ...rating.counts import cells_of_pairs
from ...rating.fitting import information, maximize
from .about import NEW_ITEMS, THESE_ANSWERS
from .certainty import CertaintyTest, losses_of
from .evidence import log_closeness
from .tally import Bools, Floats, Ints, Tally, count_met, rank_arms

SPREADS = (0.1, 0.2, 0.4, 0.8, 1.6)
DRAWS = 2000  # of the strengths
WIDER = 0.5  # the draws are spread by 1 + this / √K times more than the normal approximation: its tails are too thin
MOST_WEIGHTED = 50  # arms: with more, draws are not weighted; that would take long, and a few would have all the weight
MOST_SHOWN = 50  # active arms: with more, estimates take too long to come with a verdict
MOST_ARMS = 300  # the best by the ranking; the others are taken to have no chance
MANY = 10**7  # answers: if more are needed, no verdict is in sight
MARGINS = (0.02, 0.05, 0.1)  # that are suggested where arms look equal
STRENGTHS, CHOICE, LUCK, ITEMS = range(4)  # seeds: the same counts have the same estimate
EQUAL = 20_000  # answers: if more are likely needed, the first arms look equal
HALVINGS = 18  # of the interval that holds the number of answers a pair needs
FUTURES = 400  # draws for which the number of answers is computed …
FEWER = 100  # … and for a hint
MOST_DRAWN = 4_000_000  # pairs whose items left are drawn, of all draws together
WITHOUT_A_WINNER = 0.6  # of the questions left on these items, until it is known that no arm wins: about right
FEW_EACH = 10  # answers per active arm: with fewer, how many more are needed cannot be told
VAGUE = 50  # times the median: if nine in ten studies may need more than that, it cannot be told either
REMEMBERED = 64  # studies whose estimate is kept: verdict, pages and `forecast` ask for the same one in turn
TOO_EARLY = "It is too early to say how many more answers are needed."
NOT_IN_SIGHT = "No verdict is in sight."
CANNOT_ASK = "No question can be asked now."


class Chance(NamedTuple):
    """One active arm.

    Attributes:
        arm: Its name.
        chance: The probability that it is the best, under the model.
    """

    arm: str
    chance: float


class Forecast(NamedTuple):
    """Where a study stands before its verdict; `str` gives it as text.

    Attributes:
        chances: One row per active arm, the likeliest first.
        answers_median: Half of the studies that look like this one need at most this many more answers; 0 if there is a
            verdict, None if nothing is forecast.
        answers_90: Nine in ten need at most this many; None if that is not in sight.
        answers_an_hour: How fast answers came lately; None before the second one, and where nobody answers any more.
        hours_median: How long the median takes at that rate.
        hint: What to change if no verdict is in sight; empty otherwise.
        reason: Why nothing is forecast: it is too early, no verdict is in sight, or no question can be asked; empty
            otherwise.
        margin: The margin that the hint names; None if it names none.
    """

    chances: tuple[Chance, ...]
    answers_median: int | None
    answers_90: int | None
    answers_an_hour: float | None
    hours_median: float | None
    hint: str
    reason: str = ""
    margin: float | None = None

    def __str__(self) -> str:
        first = ", ".join(f"{one.arm} {_format_chance(one.chance)}" for one in self.chances[:5] if one.chance >= 0.005)
        parts = [f"Chance to be the best: {first}."]
        if self.answers_median == 0:
            parts.append("The verdict is known.")
        elif self.answers_median is None:
            parts.append(self.reason)
        else:
            most = (
                "" if self.answers_90 is None else f", and fewer than {_format_rounded(self.answers_90)} in nine of ten"
            )
            rate = (
                "" if self.hours_median is None else f" At the present rate that takes {_duration(self.hours_median)}."
            )
            likely = "answer is" if self.answers_median == 1 else "answers are"
            parts.append(f"About {_format_rounded(self.answers_median)} more {likely} likely needed{most}.{rate}")
        return " ".join([*parts, self.hint]).strip()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as in JSON."""
        return self._asdict() | {"chances": [one._asdict() for one in self.chances]}


def make_forecast(
    tally: Tally,
    *,
    confidence: float,
    margin: float,
    left: Floats | None = None,
    known: bool | None = None,
    answers_an_hour: float | None = None,
) -> Forecast:
    """Estimate the chance of each active arm to be the best, and the number of answers until the verdict.

    Headlines, verdicts and pages say this number, and no other one.

    Args:
        tally: The counts.
        confidence: Of the verdict.
        margin: Of the verdict.
        left: (K, K) float64: How many questions about each pair can still be asked; infinite if there is no end of
            them. None where that follows from the number of items.
        known: Whether there is a verdict; None if the counts are all that is known.
        answers_an_hour: How fast answers come.
    """
    found = _estimate_remembered(_Counts(tally, left), confidence, margin) if len(tally.names) <= MOST_SHOWN else None
    found = found or _estimate(tally, confidence, margin, left)
    if known:
        found = found._replace(answers_median=0, answers_90=0, hint="", reason="", margin=None)
    elif found.answers_median == 0 and known is not None:
        found = found._replace(answers_median=1, answers_90=max(found.answers_90 or 1, 1))
    median = found.answers_median
    hours = None if median is None or not answers_an_hour else median / answers_an_hour
    return found._replace(answers_an_hour=answers_an_hour, hours_median=hours)


class _Counts:
    """Counts that are equal if all their numbers are."""

    def __init__(self, tally: Tally, left: Floats | None) -> None:
        self.tally, self.left = tally, left
        digest = hashlib.sha256()
        for value in (*tally, left):
            is_array = isinstance(value, np.ndarray)
            digest.update(np.ascontiguousarray(value).tobytes() if is_array else repr(value).encode())
        self._digest = digest.digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Counts) and self._digest == other._digest


@lru_cache(maxsize=REMEMBERED)
def _estimate_remembered(counts: _Counts, confidence: float, margin: float) -> Forecast:
    return _estimate(counts.tally, confidence, margin, counts.left)


def _estimate(tally: Tally, confidence: float, margin: float, left: Floats | None) -> Forecast:
    ranked = [arm for _, arm in rank_arms(tally).ranks if tally.active[arm]]
    arms = np.array(ranked[:MOST_ARMS])
    strengths = draw_strengths(tally.wins[np.ix_(arms, arms)].astype(np.float64), np.random.default_rng(STRENGTHS))
    share = np.bincount(strengths.argmax(axis=1), minlength=len(arms)) / len(strengths)
    chances = dict(zip(arms.tolist(), share.tolist()))
    rows = sorted((Chance(tally.names[arm], chances.get(arm, 0.0)) for arm in ranked), key=lambda one: -one.chance)
    left = count_questions_left(tally) if left is None else left
    if not left[np.ix_(arms, arms)].any():
        if tally.is_finite and len(arms) > 1:
            return Forecast(tuple(rows), 0, 0, None, None, "")
        return Forecast(tuple(rows), None, None, None, None, "", CANNOT_ASK)
    strengths = strengths[np.random.default_rng(CHOICE).permutation(len(strengths))[:FUTURES]]
    needed = answers_needed(tally, arms, strengths, confidence, margin, left)
    median, most, reason = _forecast(needed, tally, len(arms))
    equal = not tally.is_finite and float(np.median(needed)) > EQUAL
    hint, larger = _hint(tally, arms, strengths, confidence, margin, left) if equal else ("", None)
    return Forecast(tuple(rows), median, most, None, None, hint, reason, larger)


def _asks_once(tally: Tally) -> bool:
    return tally.about in (NEW_ITEMS, THESE_ANSWERS) and bool(tally.items)


def count_questions_left(tally: Tally) -> Floats:
    """(K, K) float64: how many questions about each pair can still be asked, as far as the number of items says it."""
    left = np.full(tally.wins.shape, np.inf)
    if _asks_once(tally):
        left = np.maximum((tally.items or 0) - count_met(tally), 0).astype(np.float64)
    np.fill_diagonal(left, 0)
    return left


def _forecast(needed: Floats, tally: Tally, arms: int) -> tuple[int | None, int | None, str]:
    """The median of how many answers are needed, what nine in ten need at most, and why nothing is said, if so.

    It is too early before the first answer, with fewer than ten answers per active arm, and if the number for nine in
    ten studies is more than fifty times the median, and more than the answers so far. Where each pair is asked about
    each item once, the items limit the answers, and the first answer is enough.
    """
    median, most = _find_quantile(needed, 0.5), _find_quantile(needed, 0.9)
    if median == 0:
        return 0, most, ""
    duels = _count_duels(tally)
    if duels == 0 or (duels < FEW_EACH * arms and not _asks_once(tally)):
        return None, None, TOO_EARLY
    if median is None:
        return None, None, NOT_IN_SIGHT
    if not _asks_once(tally) and (MANY if most is None else most) > max(VAGUE * median, duels):
        return None, None, TOO_EARLY
    return median, most, ""


def draw_strengths(wins: Floats, rng: np.random.Generator, draws: int = DRAWS) -> Floats:
    """Return (draws, K) float64: strengths from the posterior.

    Args:
        wins: (K, K): Wins without ties.
        rng: Where the draws come from.
        draws: How many.
    """
    fits = [_fit(wins, spread) for spread in SPREADS]
    evidence = np.array([fit.log_evidence for fit in fits]) + np.log(SPREADS)
    chances = np.exp(evidence - evidence.max())
    number = rng.multinomial(draws, chances / chances.sum())
    arms, weighted = len(wins), len(wins) <= MOST_WEIGHTED
    wider = 1 + WIDER / math.sqrt(arms) if weighted else 1.0
    normal = [rng.standard_normal((arms, n)) for n in number]
    drawn = np.concatenate([fit.mode + wider * np.linalg.solve(fit.root.T, z).T for fit, z in zip(fits, normal)])
    if not weighted:
        return drawn
    weight = np.exp(_log_weights(wins, drawn, fits, evidence, wider))
    place = np.searchsorted(np.cumsum(weight / weight.sum()), (np.arange(draws) + rng.random()) / draws)
    return np.asarray(drawn[np.minimum(place, draws - 1)])


def _log_weights(wins: Floats, drawn: Floats, fits: "list[_Fit]", evidence: Floats, wider: float) -> Floats:
    """(draws,): how much likelier each draw is under the posterior than where it was drawn from, up to a constant."""
    first, second = np.nonzero(np.triu(wins + wins.T))
    lead = drawn[:, first] - drawn[:, second]
    won, lost = wins[first, second], wins[second, first]
    likelihood = -((won + lost) * np.logaddexp(0, -lead) + lost * lead).sum(axis=1)
    squares = (drawn**2).sum(axis=1)
    prior = [(1 - wins.shape[0]) * math.log(spread) - squares / (2 * spread**2) for spread in SPREADS]
    proposal = [
        one + np.log(np.diag(fit.root)).sum() - ((drawn - fit.mode) @ fit.root / wider) ** 2 @ np.full(len(wins), 0.5)
        for fit, one in zip(fits, evidence)
    ]
    log_weights = likelihood + np.logaddexp.reduce(prior, axis=0) - np.logaddexp.reduce(proposal, axis=0)
    return np.asarray(log_weights - log_weights.max())


class _Fit(NamedTuple):
    """A normal approximation of the posterior."""

    mode: Floats  # (K,)
    root: Floats  # (K, K): the Cholesky factor L of the precision L Lᵀ
    log_evidence: float


def _fit(wins: Floats, spread: float) -> _Fit:
    arms, prior = len(wins), 1 / spread**2
    cells = cells_of_pairs(wins, np.zeros(wins.shape))
    strength = maximize(bradley_terry, cells, np.zeros(arms), prior)
    root = np.asarray(
        np.linalg.cholesky(information(bradley_terry, cells, strength) + prior * np.eye(arms)), np.float64
    )
    log_evidence = (
        bradley_terry.value(cells, strength)
        - 0.5 * float(strength @ strength) * prior
        - arms * math.log(spread)
        - float(np.log(np.diag(root)).sum())
    )
    return _Fit(strength, root, log_evidence)


def answers_needed(
    tally: Tally, arms: Ints, strengths: Floats, confidence: float, margin: float, left: Floats | None = None
) -> Floats:
    """Return (draws,) float64: for each draw of the strengths, how many more answers the verdict takes.

    It is assumed that the best arm meets each other one until the evidence is enough. How many answers that takes is
    random too: it is drawn from the inverse Gaussian distribution, which is that of the time at which a Brownian motion
    with drift first reaches a level. Where a pair cannot have so many, many are needed.

    On these answers, what is left of the items is drawn, so that the best arm is the one that wins most of them in the
    end, and answers come in their expected proportions.

    Args:
        tally: The counts.
        arms: (K,) int64: The arms that the strengths are of.
        strengths: (draws, K) float64.
        confidence: Of the verdict.
        margin: Of the verdict.
        left: As in `make_forecast`.
    """
    left = (count_questions_left(tally) if left is None else left)[np.ix_(arms, arms)]
    ties = float(tally.ties.sum() / max(tally.ties.sum() + 2 * tally.wins.sum(), 1))
    if tally.is_finite:
        return _count_needed_on_items(
            tally, arms, strengths[: max(MOST_DRAWN // len(arms) ** 2, 20)], confidence, margin, left, ties
        )
    best, rng = strengths.argmax(axis=1), np.random.default_rng(LUCK)
    chance = 1 / (1 + np.exp(strengths - strengths.max(axis=1)[:, None]))
    first, second = np.broadcast_arrays(arms[best][:, None], arms)
    pairs = _Pairs(
        tally.wins[first, second],
        losses_of(tally, first, second),
        tally.ties[first, second],
        (1 - ties) * chance,
        ties,
        np.minimum(left[best], MANY),
        rng.standard_normal(chance.shape) ** 2,
        rng.random(chance.shape),
    )
    test = CertaintyTest(tally, confidence)
    level, other = test.level_to_win(first, second), first != second
    close = test.level_to_be_close(first, second, margin) if margin > 0 else level

    def excess(won: Floats, lost: Floats, tied: Floats) -> Floats:
        return np.where(won > lost, test.sampling.weigh(won, lost, tied) - level, -np.inf)

    def excess_of_closeness(won: Floats, lost: Floats, tied: Floats) -> Floats:
        return log_closeness(won, lost, tied, margin) - close

    needed = np.where(other, _first_passage(pairs, excess), 0.0).sum(axis=1)
    if margin > 0:
        tied = _first_passage(pairs, excess_of_closeness)
        needed = np.minimum(needed, np.where(other, tied, 0.0).sum(axis=1))
    return np.asarray(np.minimum(needed, float(MANY)))


class _Pairs(NamedTuple):
    """The pairs of the best arm with each arm, for each draw of the strengths: all (draws, K)."""

    won: Ints
    lost: Ints
    tied: Ints
    win: Floats  # the chance that the best arm wins the next answer
    tie: float  # the chance of a tie
    most: Floats  # how many answers are possible
    normal: Floats  # luck: the square of a normal variable
    uniform: Floats  # luck


def _first_passage(pairs: _Pairs, excess: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
    """(draws, K): after how many more answers the excess of a pair's evidence over its level is first above 0.

    The mean is where it is 0 if answers come in their expected proportions. The variance is that of the evidence there
    over the square of its growth, both from what one more answer of each kind adds.
    """
    won, lost, tied, win, tie, most, normal, uniform = pairs
    lose = 1 - tie - win

    def after(more: Floats) -> tuple[Floats, Floats, Floats]:
        return won + win * more, lost + lose * more, tied + tie * more

    low, high = np.zeros(win.shape), np.full(win.shape, float(MANY))
    known, never = excess(*after(low)) >= 0, excess(*after(high)) < 0
    never |= excess(won + most, lost.astype(np.float64), tied.astype(np.float64)) < 0
    for _ in range(HALVINGS):  # evenly on the scale of square roots
        middle = ((np.sqrt(low) + np.sqrt(high)) / 2) ** 2
        reached = excess(*after(middle)) >= 0
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    with np.errstate(divide="ignore", invalid="ignore"):  # where it is never reached
        at = after(high)
        here = excess(*at)
        steps = [excess(at[0] + 1, at[1], at[2]) - here, excess(at[0], at[1] + 1, at[2]) - here]
        growth, square = win * steps[0] + lose * steps[1], win * steps[0] ** 2 + lose * steps[1] ** 2
        if tie > 0:
            step = excess(at[0], at[1], at[2] + 1) - here
            growth, square = growth + tie * step, square + tie * step**2
        needed = np.ceil(high * _inverse_gaussian((square - growth**2) / (high * growth**2), normal, uniform))
    never |= ~(growth > 0) | ~(needed <= most)
    return np.where(known, 0.0, np.where(never, float(MANY), needed))


def _inverse_gaussian(variance: Floats, normal: Floats, uniform: Floats) -> Floats:
    """Variables with the inverse Gaussian distribution of mean 1, from squares of normal variables and uniform ones.

    As Michael, Schucany and Haas (1976): the smaller root of x² − (2 + variance · normal) x + 1 = 0, or its inverse.
    """
    half = variance * normal / 2
    root = 1 / (1 + half + np.sqrt(half * (2 + half)))
    return np.where(uniform * (1 + root) <= 1, root, 1 / root)


def _count_needed_on_items(
    tally: Tally, arms: Ints, strengths: Floats, confidence: float, margin: float, left: Floats, ties: float
) -> Floats:
    best, chance, most, least = _items_left(tally, arms, strengths, left, ties)
    first, second = np.broadcast_arrays(arms[best][:, None], arms)
    won, lost, tied = tally.wins[first, second], losses_of(tally, first, second), tally.ties[first, second]
    test = CertaintyTest(tally, confidence)
    winner = test.level_to_win(first, second)
    close = test.level_to_be_close(first, second, margin) if margin > 0 else winner

    def enough(more: Floats) -> Bools:
        decided = (1 - ties) * more
        wins, losses, level = won + decided * chance, lost + decided * (1 - chance), tied + ties * more
        known = test.sampling.weigh(np.maximum(wins, losses), np.minimum(wins, losses), level) >= winner
        return np.asarray(known | (log_closeness(wins, losses, level, margin) >= close) if margin > 0 else known)

    low, high = np.zeros(chance.shape), most
    known = enough(low) | (most == 0) | (first == second)
    for _ in range(HALVINGS):
        middle = ((np.sqrt(low) + np.sqrt(high)) / 2) ** 2
        reached = enough(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(np.maximum(np.where(known, 0.0, high).sum(axis=1), least))


def _items_left(
    tally: Tally, arms: Ints, strengths: Floats, left: Floats, ties: float
) -> tuple[Ints, Floats, Floats, Floats]:
    """For each draw: the arm that beats most others in the end, its share of the items left, and how many these are.

    The last value is how many answers are needed at least: many if that arm does not beat all others.
    """
    among, rng = np.ix_(arms, arms), np.random.default_rng(ITEMS)
    decided = np.triu(np.rint((1 - ties) * left).astype(np.int64), 1)
    wins = rng.binomial(decided, 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None])))
    wins = wins + np.where(np.tri(len(arms), k=-1, dtype=bool), (decided - wins).transpose(0, 2, 1), 0)
    final = wins + tally.wins[among]
    beaten = (final > final.transpose(0, 2, 1)).sum(axis=2)
    best = np.asarray((beaten + 0.5 / (1 + np.exp(-strengths))).argmax(axis=1))
    draw, whole = np.arange(len(strengths)), (decided + decided.T)[best]
    chance = np.where(whole > 0, wins[draw, best] / np.maximum(whole, 1), 0.5)
    least = np.where(beaten.max(axis=1) < len(arms) - 1, WITHOUT_A_WINNER * left.sum() / 2, 0.0)
    return best, chance, left[best], least


def _hint(
    tally: Tally, arms: Ints, strengths: Floats, confidence: float, margin: float, left: Floats
) -> tuple[str, float | None]:
    """What to change where the first arms look equal, and which margin to set."""
    if _count_duels(tally) < FEW_EACH * len(arms) or not tally.wins.any():
        return "", None
    equal = "The first arms are close to equal."
    if _asks_once(tally):
        equal = ""  # the items are too few, which says nothing about how close the arms are
    elif margin == 0:
        equal = "The first arms are close to equal, and without a margin a study of equally good arms never ends."
    for larger in MARGINS:
        if larger > margin:
            median = float(np.median(answers_needed(tally, arms, strengths[:FEWER], confidence, larger, left)))
            if median <= EQUAL / 2:
                needs = (
                    f"it needs about {_format_rounded(int(median))} more answers" if median else "it has a verdict now"
                )
                hint = f"{equal} With a margin of {larger:g} {needs}: look at the verdict with margin={larger:g}."
                return hint.strip(), larger
    return equal, None


def _count_duels(tally: Tally) -> int:
    return int(tally.wins.sum() + tally.ties.sum() // 2)


def _find_quantile(needed: Floats, level: float) -> int | None:
    """How many answers suffice in this share of the futures; None if there is no verdict in sight in so many."""
    if np.quantile(needed, level, method="higher") >= MANY:  # else it might lie between a verdict and none
        return None
    return math.ceil(np.quantile(needed, level))


def _format_chance(chance: float) -> str:
    """An estimated chance is never quite 100 %."""
    return ">99 %" if chance > 0.99 else f"{percent(chance)} %"


def _format_rounded(number: int) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"


def _duration(hours: float) -> str:
    if hours < 1:
        return format_count(max(1, round(60 * hours)), "minute")
    return format_count(round(hours), "hour") if hours < 48 else format_count(round(hours / 24), "day")
