"""How sure a pair of arms is: the evidence that one beats the other, and how much of it a verdict needs.

The evidence of w wins and l losses is M = B(w+5, l+5) / B(5, 5) · 2^(w+l), a martingale if the arms are equal. Naming a
winner needs no union over the arms: `docs/study/proofs.md` has the proof and the constants. Ties are left out.
"""

import math

import numpy as np

LOG_2, LOG_630 = math.log(2.0), math.log(630.0)  # B(5, 5) = 1/630
BETS = np.geomspace(0.02, 1.6, 16)  # the stakes of `log_closeness`; below 2, so that no bet can lose more than it has
LOG_BETS = math.log(16.0)


def evidence(wins: float, losses: float) -> float:
    """ln M of one pair."""
    n = wins + losses
    return math.lgamma(wins + 5.0) + math.lgamma(losses + 5.0) - math.lgamma(n + 10.0) + LOG_630 + n * LOG_2


def is_certain(wins: float, losses: float, log_level: float) -> bool:
    """Whether the first of a pair beats the second for certain: it leads, and ln M is at least log_level."""
    lead = wins - losses
    # M is below the likelihood ratio exp(n kl(w/n, ½)), which is at most exp(ln 2 · lead²/n): few pairs pass.
    if lead <= 0 or LOG_2 * lead * lead < log_level * (wins + losses):
        return False
    return evidence(wins, losses) >= log_level


def log_closeness(wins: float, losses: float, ties: float, margin: float) -> float:
    """The logarithm of the evidence that an arm scores more than ½ − margin against another; a tie is a half.

    It is the mean fortune of gamblers who bet on that with different stakes, which do not depend on the margin.
    """
    null = 0.5 - margin
    top, total = -math.inf, 0.0
    for stake in BETS:
        fortune = wins * math.log1p(stake * (1.0 - null)) + losses * math.log1p(-stake * null)
        fortune += ties * math.log1p(stake * margin)
        if fortune > top:
            total = total * math.exp(top - fortune) + 1.0
            top = fortune
        else:
            total += math.exp(fortune - top)
    return top + math.log(total) - LOG_BETS


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
