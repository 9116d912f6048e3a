"""How sure a pair of arms is: the evidence that one beats the other, and how much of it a verdict needs.

The evidence of w wins and l losses is M = B(w+5, l+5) / B(5, 5) · 2^(w+l), a martingale if the arms are equal. Naming a
winner needs no union over the arms: `docs/study/proofs.md` has the proof and the constants. Ties are left out.

Where each pair is asked about each of N items once, suppose that i wins W of them, loses L and ties the others. Then
the probability of w wins and l losses so far, in the order in which they came, is (W)_w (L)_l / (W+L)_(w+l), where
(x)_k = x!/(x−k)!. The evidence against this W and L is the same mixture, over probabilities above ½, divided by that
probability: a martingale if the items come in random order. i is certain to win more of the items than it loses if the
evidence against every W ≤ L is large enough. When all items were asked, none is left.

These are kernels, of one pair. `study.stats.evidence` has the same formulas for arrays: it replaces the functions of
numbers that they call.
"""

import math
from math import ceil, inf, log1p

import numpy as np

LOG_2, LOG_630 = math.log(2.0), math.log(630.0)  # B(5, 5) = 1/630
BETS = np.geomspace(0.02, 1.6, 16)  # the stakes of `log_closeness`; below 2, so that no bet can lose more than it has
LOG_BETS = math.log(16.0)


def evidence(wins: float, losses: float) -> float:
    """ln M of one pair."""
    return log_mixture(wins, losses) + (wins + losses) * LOG_2


def log_mixture(wins: float, losses: float) -> float:
    """The chance of these answers in a given order, on average over probabilities drawn from Beta(5, 5)."""
    return log_beta(wins + 5.0, losses + 5.0) + LOG_630


def is_certain(wins: float, losses: float, log_level: float) -> bool:
    """Whether the first of a pair beats the second for certain: it leads, and ln M is at least log_level."""
    return may_be_certain(wins, losses, log_level) and evidence(wins, losses) >= log_level


def may_be_certain(wins: float, losses: float, log_level: float) -> bool:
    """Whether the first leads by enough to be certain: few do.

    M is below the likelihood ratio exp(n kl(w/n, ½)), which is at most exp(ln 2 · lead²/n).
    """
    lead = wins - losses
    return lead > 0 and LOG_2 * lead * lead >= log_level * (wins + losses)


def log_closeness(wins: float, losses: float, ties: float, margin: float) -> float:
    """The logarithm of the evidence that an arm scores more than ½ − margin against another; a tie is a half.

    It is the mean fortune of gamblers who bet on that with different stakes, which do not depend on the margin.
    """
    top, total = -inf, 0.0
    for stake in BETS:
        fortune = log_fortune(stake, wins, losses, ties, margin)
        if fortune > top:
            total = total * math.exp(top - fortune) + 1.0
            top = fortune
        else:
            total += math.exp(fortune - top)
    return top + math.log(total) - LOG_BETS


def log_fortune(stake: float, wins: float, losses: float, ties: float, margin: float) -> float:
    """What a gambler has who bets a stake on each answer, against a score of ½ − margin."""
    null = 0.5 - margin
    decided = wins * log1p(stake * (1.0 - null)) + losses * log1p(-stake * null)
    return decided + ties * log1p(stake * margin)


def evidence_on_items(won: float, lost: float, tied: float, items: float) -> float:
    """The logarithm of the evidence that the first of a pair wins more of the items than it loses.

    It is half of a martingale that starts at 1, and therefore needs the same levels as `evidence`. It is minus infinity
    where the first does not lead, and infinity where it wins more than it loses whatever is still to come.
    """
    if 2.0 * won > items - tied:
        return inf
    return evidence_while_open(won, lost, items - tied) if won > lost else -inf


def evidence_while_open(won: float, lost: float, most: float) -> float:
    """`evidence_on_items` where l < w ≤ most/2, and at most so many items are decided in the end.

    The likeliest W ≤ L with W + L ≤ most is to be excluded. Given W + L, it has the largest W. W = x, L = x + 1 is less
    likely than W = L = x, since l < w. From W = L = x − 1 to x the chance grows exactly if x (d − (w−l)²) < 2wl, where
    d = w + l, so that it has one peak.
    """
    slack = won + lost - (won - lost) ** 2
    peak = where(slack > 0.0, ceil(2.0 * won * lost / where(slack > 0.0, slack, 1.0)) - 1.0, inf)
    half = min(max(peak, won), most // 2.0)
    return log_mixture(won, lost) + log_above_half(won, lost) - log_chance(won, lost, half, half)


def closeness_on_items(won: float, lost: float, tied: float, items: float, margin: float) -> float:
    """The logarithm of the evidence that the first of a pair scores at least ½ − margin; a tie is a half.

    As `evidence_on_items`, but it is a martingale that starts at 1, and the mixture is over all probabilities. The sets
    to exclude are those with L − W > 2N · margin.
    """
    return evidence_against_gap(won, lost, tied, items, least_gap(items, margin))


def least_gap(items: float, margin: float) -> float:
    """The least L − W of the sets on which the first scores less than ½ − margin."""
    return math.floor(2.0 * items * margin + 1e-9) + 1.0


def evidence_against_gap(won: float, lost: float, tied: float, items: float, gap: float) -> float:
    """The evidence against all sets with L − W ≥ gap; minus infinity where there is none."""
    if lost - won >= gap:
        return -inf
    worst = -inf
    for decided in range(int(2.0 * won + gap), int(items - tied) + 1):
        wins = (decided - gap) // 2.0
        losses = decided - wins
        # If fewer wins are more likely than the most that are excluded, there is no evidence.
        if wins * lost > won * (losses + 1.0):
            return -inf
        worst = max(worst, log_chance(won, lost, wins, losses))
    return log_mixture(won, lost) - worst


def log_chance(won: float, lost: float, wins: float, losses: float) -> float:
    """ln (W)_w (L)_l / (W+L)_(w+l): the chance of these answers in a given order, if there are W and L in all."""
    return log_falling(wins, won) + log_falling(losses, lost) - log_falling(wins + losses, won + lost)


def log_falling(all: float, drawn: float) -> float:
    """ln (x)_k."""
    return log_gamma(all + 1.0) - log_gamma(all - drawn + 1.0)


def log_above_half(won: float, lost: float) -> float:
    """The logarithm of the probability that Beta(won + 5, lost + 5) is above ½, where won > lost.

    Below ½, it is that of at most lost + 4 heads of won + lost + 9 fair coins; the terms fall fast from the last one.
    """
    coins, heads = won + lost + 9.0, lost + 4.0
    log_term = math.lgamma(coins + 1.0) - math.lgamma(heads + 1.0) - math.lgamma(coins - heads + 1.0)
    term, below = math.exp(log_term - coins * LOG_2), 0.0
    while heads >= 0.0 and term > 1e-18:
        below += term
        term *= heads / (coins - heads + 1.0)
        heads -= 1.0
    return log1p(-below)


def log_beta(a: float, b: float) -> float:
    """The logarithm of the Beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_gamma(x: float) -> float:
    """The logarithm of the Gamma function."""
    return math.lgamma(x)


def where(condition: bool, yes: float, no: float) -> float:
    """The one or the other; both are computed, as by numpy's function of that name."""
    return yes if condition else no


def winner_level(delta: float, arms: int) -> float:
    """The ln M of each pair of the winner: three quarters of δ, however many arms there are."""
    return math.log(4.0 / (3.0 * delta)) if arms == 2 else math.log(1.0 + 2.0 / delta)


def no_winner_level(delta: float, arms: int) -> float:
    """The ln M that a loss of each arm needs to show that there is no winner. It shares the δ of `winner_level`."""
    return math.log(0.5 + (arms - 1) * (1.0 / delta + 0.25))


def dependent_level(delta: float, arms: int) -> float:
    """As `winner_level`, where answers about different pairs may depend on each other: a union over the arms.

    It is also the level of the losses that show that there is no winner: a wrong one is a win over the winner.
    """
    return math.log(4.0 / (3.0 * delta)) if arms == 2 else math.log(0.5 + 2.0 * arms / (3.0 * delta))


def margin_level(delta: float, arms: int) -> float:
    """The `log_closeness` of each pair of an arm that is practically tied with the best: a sixteenth of δ.

    Each arm may be named wrongly; of two arms, only the worse one.
    """
    fallible = 1 if arms == 2 else arms
    return math.log(16.0 * fallible / delta)
