"""Before the verdict: how likely each arm is the best, and how many more answers the verdict is likely to need.

These are estimates under a model, not promises. The model is Bradley–Terry: arm i has a strength θ_i ~ N(0, σ²), and
beats arm j with probability 1 / (1 + exp(θ_j − θ_i)) where the answer is not a tie. σ is one of `SPREADS`, each as
likely as the others before the first answer. The posterior of the strengths is approximated by a normal distribution
for each σ (Laplace), and weighted by its evidence. How the duels were chosen does not matter.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import counted
from .about import NEW_ITEMS
from .certainty import certainty_of, log_closeness
from .tally import Bools, Floats, Ints, Tally, met, ranking

SPREADS = (0.1, 0.2, 0.4, 0.8, 1.6)
DRAWS = 2000  # of the strengths
MOST_SHOWN = 50  # active arms: with more, estimates take too long to come with a verdict
MOST_ARMS = 300  # the best by the ranking; the others are taken to have no chance
STEPS = 50  # of Newton's method
MANY = 10**7  # answers: if more are needed, no verdict is in sight
MARGINS = (0.02, 0.05, 0.1)  # that are suggested where arms look equal
EQUAL = 20_000  # answers: if more are likely needed, the first arms look equal
HALVINGS = 20  # of the interval that holds the number of answers a pair needs
FUTURES = 400  # draws for which the number of answers is computed …
FEWER = 100  # … and for a hint
MOST_DRAWN = 4_000_000  # pairs whose items left are drawn, of all draws together
WITHOUT_A_WINNER = 0.6  # of the questions left on these items, until it is known that no arm wins: about right as well
FEW_EACH = 10  # answers per active arm: with fewer, how many more are needed cannot be told
VAGUE = 10  # times the median: if nine in ten studies may need more than that, it cannot be told either
TOO_EARLY = "It is too early to say how many more answers are needed."
CALIBRATED = 0.9  # what estimates are multiplied by, found by simulation, so that half of the studies need fewer


class Chance(NamedTuple):
    """One active arm.

    Attributes:
        arm: Its name.
        chance: The probability that it is the best, under the model.
    """

    arm: str
    chance: float


class Standing(NamedTuple):
    """Where a study stands before its verdict; `str` gives it as text.

    Attributes:
        chances: One row per active arm, the likeliest first.
        answers_median: Half of the studies that look like this one need at most this many more answers; None if more
            than ten million.
        answers_90: Nine in ten need at most this many.
        answers_an_hour: How fast answers came lately; None before the second one, and where nobody answers any more.
        hours_median: How long the median takes at that rate.
        hint: What to change if no verdict is in sight; empty otherwise.
    """

    chances: tuple[Chance, ...]
    answers_median: int | None
    answers_90: int | None
    answers_an_hour: float | None
    hours_median: float | None
    hint: str

    def __str__(self) -> str:
        return self.words()

    def words(self, too_early: bool = False) -> str:
        """Return it as text.

        Args:
            too_early: Whether to leave out how many answers are needed, see `is_too_early`.
        """
        first = ", ".join(f"{one.arm} {one.chance:.0%}" for one in self.chances[:5] if one.chance >= 0.005)
        parts = [f"Chance to be the best: {first}."]
        if self.answers_median == 0:
            parts.append("The verdict is known.")
        elif too_early:
            return " ".join([*parts, TOO_EARLY])
        elif self.answers_median is None:
            parts.append("No verdict is in sight.")
        else:
            most = "" if self.answers_90 is None else f", and fewer than {_rounded(self.answers_90)} in nine of ten"
            rate = (
                "" if self.hours_median is None else f" At the present rate that takes {_duration(self.hours_median)}."
            )
            parts.append(f"About {_rounded(self.answers_median)} more answers are likely needed{most}.{rate}")
        return " ".join([*parts, self.hint]).strip()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as in JSON."""
        return self._asdict() | {"chances": [one._asdict() for one in self.chances]}


def standing(
    tally: Tally,
    *,
    confidence: float,
    margin: float,
    answers_an_hour: float | None = None,
    seed: int = 0,
) -> Standing:
    """Estimate the chance of each active arm to be the best, and the number of answers until the verdict.

    Args:
        tally: The counts.
        confidence: Of the verdict.
        margin: Of the verdict.
        answers_an_hour: How fast answers come.
        seed: Of the draws.
    """
    ranked = [arm for _, arm in ranking(tally) if tally.active[arm]]
    arms = np.array(ranked[:MOST_ARMS])
    strengths = draw_strengths(tally.wins[np.ix_(arms, arms)].astype(np.float64), np.random.default_rng(seed))
    best = strengths.argmax(axis=1)
    share = np.bincount(best, minlength=len(arms)) / len(best)
    chances = dict(zip(arms.tolist(), share.tolist()))
    rows = sorted((Chance(tally.names[arm], chances.get(arm, 0.0)) for arm in ranked), key=lambda one: -one.chance)
    strengths = strengths[np.random.default_rng(seed).permutation(len(strengths))[:FUTURES]]
    needed = answers_needed(tally, arms, strengths, confidence, margin)
    median, most = (_whole(np.quantile(needed, level)) for level in (0.5, 0.9))
    hours = None if median is None or not answers_an_hour else median / answers_an_hour
    soon = tally.is_finite or (median is not None and median <= EQUAL)  # on these answers every study ends
    hint = "" if soon else _hint(tally, arms, strengths, confidence, margin)
    return Standing(tuple(rows), median, most, answers_an_hour, hours, hint)


def is_too_early(found: Standing, duels: int, arms: int, items: int | None = None) -> bool:
    """Return whether it is too early to say how many more answers are needed.

    That is so with fewer than ten answers per active arm, unless the verdict is on these items, whose number limits the
    answers. It is also so if the number for nine in ten studies is more than ten times the median, and more than the
    answers so far.

    Args:
        found: The estimates.
        duels: How many answers there are.
        arms: How many active arms there are.
        items: How many items limit the answers, if each pair is asked about each of them once.
    """
    if found.answers_median == 0:
        return False
    if items is None and duels < FEW_EACH * arms:
        return True
    most = MANY if found.answers_90 is None else found.answers_90
    return found.answers_median is not None and most > max(VAGUE * found.answers_median, duels)


def draw_strengths(wins: Floats, rng: np.random.Generator, draws: int = DRAWS) -> Floats:
    """Return (draws, K) float64: strengths from the posterior.

    Args:
        wins: (K, K): Wins without ties.
        rng: Where the draws come from.
        draws: How many.
    """
    fits = [_fit(wins, spread) for spread in SPREADS]
    evidence = np.array([fit.log_evidence for fit in fits])
    weights = np.exp(evidence - evidence.max())
    number = rng.multinomial(draws, weights / weights.sum())
    parts = [
        fit.mode + np.linalg.solve(fit.root.T, rng.standard_normal((len(wins), n))).T for fit, n in zip(fits, number)
    ]
    return np.concatenate(parts)


class _Fit(NamedTuple):
    """A normal approximation of the posterior."""

    mode: Floats  # (K,)
    root: Floats  # (K, K): the Cholesky factor L of the precision L Lᵀ
    log_evidence: float


def _fit(wins: Floats, spread: float) -> _Fit:
    arms, n = len(wins), wins + wins.T
    strength, prior = np.zeros(arms), np.eye(arms) / spread**2
    for _ in range(STEPS):
        chance = _chances(strength)
        gradient = (wins - n * chance).sum(axis=1) - strength / spread**2
        weight = n * chance * (1 - chance)
        precision = np.diag(weight.sum(axis=1)) - weight + prior
        step = np.linalg.solve(precision, gradient)
        size = np.abs(step).max()
        strength = strength + step * min(1.0, 2.0 / max(size, 1e-12))
        if size < 1e-8:
            break
    chance = _chances(strength)
    likelihood = float(np.sum(wins * np.log(chance)))
    root: Floats = np.linalg.cholesky(precision).astype(np.float64)
    log_evidence = (
        likelihood
        - 0.5 * float(strength @ strength) / spread**2
        - arms * math.log(spread)
        - float(np.log(np.diag(root)).sum())
    )
    return _Fit(strength, root, log_evidence)


def _chances(strength: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
    return chances


def answers_needed(tally: Tally, arms: np.ndarray, strengths: Floats, confidence: float, margin: float) -> Floats:
    """Return (draws,) float64: for each draw of the strengths, how many more answers the verdict takes.

    It is assumed that the best arm meets each other one until the evidence is enough, and that answers come in their
    expected proportions. On these answers, what is left of the items is drawn, so that the best arm is the one that
    wins most of them in the end. On new items a pair has no more answers than there are items; if that is not enough,
    many are needed.

    Args:
        tally: The counts.
        arms: (K,) int64: The arms that the strengths are of.
        strengths: (draws, K) float64.
        confidence: Of the verdict.
        margin: Of the verdict.
    """
    ties = float(tally.ties.sum() / max(tally.ties.sum() + 2 * tally.wins.sum(), 1))
    if not tally.is_finite:
        best = strengths.argmax(axis=1)
        chance = 1 / (1 + np.exp(strengths - strengths.max(axis=1)[:, None]))
        most, least = np.full(chance.shape, float(MANY)), np.zeros(len(chance))
    else:
        best, chance, most, least = _items_left(tally, arms, strengths[: max(MOST_DRAWN // len(arms) ** 2, 20)], ties)
    first, second = np.broadcast_arrays(arms[best][:, None], arms)
    won, lost, tied = tally.wins[first, second], tally.wins[second, first], tally.ties[first, second]
    if tally.about == NEW_ITEMS and tally.items is not None:
        most = np.maximum(tally.items - met(tally)[first, second], 0).astype(np.float64)
    is_known = _test(tally, first, second, confidence, margin)

    def enough(more: Floats) -> Bools:
        decided = (1 - ties) * more
        return is_known(won + decided * chance, lost + decided * (1 - chance), tied + ties * more)

    low, high = np.zeros(chance.shape), most
    known = np.asarray(enough(low) | (tally.is_finite & (most == 0)) | (first == second))
    never = ~known & ~enough(high) & (not tally.is_finite)
    for _ in range(HALVINGS):  # evenly on the scale of square roots
        middle = ((np.sqrt(low) + np.sqrt(high)) / 2) ** 2
        reached = enough(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    whole = np.where(known, 0.0, np.where(never, float(MANY), high)).sum(axis=1)
    needed = np.where(whole >= MANY, float(MANY), (1.0 if tally.is_finite else CALIBRATED) * whole)
    return np.asarray(np.maximum(needed, least))


def _items_left(tally: Tally, arms: np.ndarray, strengths: Floats, ties: float) -> tuple[Ints, Floats, Floats, Floats]:
    """For each draw: the arm that beats most others in the end, its share of the items left, and how many these are.

    The last value is how many answers are needed at least: many if that arm does not beat all others.
    """
    among, rng = np.ix_(arms, arms), np.random.default_rng(0)
    left = np.maximum((tally.items or 0) - met(tally)[among], 0)
    np.fill_diagonal(left, 0)
    decided = np.triu(np.rint((1 - ties) * left).astype(np.int64), 1)
    wins = rng.binomial(decided, 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None])))
    wins = wins + np.where(np.tri(len(arms), k=-1, dtype=bool), (decided - wins).transpose(0, 2, 1), 0)
    final = wins + tally.wins[among]
    beaten = (final > final.transpose(0, 2, 1)).sum(axis=2)
    best = np.asarray((beaten + 0.5 / (1 + np.exp(-strengths))).argmax(axis=1))
    draw, whole = np.arange(len(strengths)), (decided + decided.T)[best]
    chance = np.where(whole > 0, wins[draw, best] / np.maximum(whole, 1), 0.5)
    least = np.where(beaten.max(axis=1) < len(arms) - 1, WITHOUT_A_WINNER * left.sum() / 2, 0.0)
    return best, chance, left[best].astype(np.float64), least


def _test(
    tally: Tally, first: Ints, second: Ints, confidence: float, margin: float
) -> Callable[[Floats, Floats, Floats], Bools]:
    """Whether wins, losses and ties of these pairs are enough for the verdict."""
    test = certainty_of(tally, confidence)
    winner, close = test.winner_level(first, second), test.close_level(first, second)

    def is_known(won: Floats, lost: Floats, tied: Floats) -> Bools:
        if tally.is_finite:
            evidence = test.weigh(np.maximum(won, lost), np.minimum(won, lost), tied)
            near = log_closeness(won, lost, tied, margin) >= close if margin > 0 else False
            return np.asarray((evidence >= winner) | near)
        if margin > 0:
            return np.asarray(log_closeness(won, lost, tied, margin) >= close)
        return np.asarray((won > lost) & (test.weigh(won, lost, tied) >= winner))

    return is_known


def _hint(tally: Tally, arms: np.ndarray, strengths: Floats, confidence: float, margin: float) -> str:
    """Which margin to set where the first arms look equal."""
    if not tally.wins.any():
        return ""
    equal = "The first arms are close to equal."
    if margin == 0:
        equal = "The first arms are close to equal, and equal arms never get a verdict without a margin."
    for larger in MARGINS:
        if larger > margin:
            median = float(np.median(answers_needed(tally, arms, strengths[:FEWER], confidence, larger)))
            if median <= EQUAL / 2:
                needs = f"it needs about {_rounded(int(median))} more answers" if median else "it has a verdict now"
                return f"{equal} With a margin of {larger:g} {needs}: look at the verdict with margin={larger:g}."
    return equal


def _whole(number: float) -> int | None:
    return None if number >= MANY else math.ceil(number)


def _rounded(number: int) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"


def _duration(hours: float) -> str:
    if hours < 1:
        return counted(max(1, round(60 * hours)), "minute")
    return counted(round(hours), "hour") if hours < 48 else counted(round(hours / 24), "day")
