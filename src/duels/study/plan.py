"""How many duels a verdict takes, by simulating studies that look at the verdict after every answer."""

import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_int
from ..engine import loop
from ..engine.threads import in_threads, thread_count
from ..errors import InvalidInput, PolicyError
from ..policies import Policy, State
from ..policies import policy as find_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from .player import rival, rival_alpha
from .tally import Tally
from .verdict import NOT_YET, Standing, log_thresholds, new_standing, note, settled

POLICIES = ("rucb", "dts_plus", "random")
LIMIT = 1_000_000
PolicyLike = str | Policy | ModuleType

select: Any = None
update: Any = None


class PlanRow(NamedTuple):
    """What to expect from one policy until a verdict, or until the limit.

    Attributes:
        policy: The policy.
        duels_median: Half of the studies need at most this many duels; infinite if fewer than half end.
        duels_90: Nine in ten need at most this many.
        regret_median: The median of the regret.
        regret_90: Nine in ten have at most this regret.
        undecided: The share of studies without a verdict at the limit.
        wrong: The share of studies that name an arm that is not the winner.
    """

    policy: str
    duels_median: float
    duels_90: float
    regret_median: float
    regret_90: float
    undecided: float
    wrong: float


def until_verdict(
    state: State,
    params: object,
    world: np.ndarray,
    gaps: np.ndarray,
    wins: np.ndarray,
    standing: Standing,
    thresholds: np.ndarray,
    alpha: float,
    limit: int,
    coin: np.random.Generator,
    luck: np.random.Generator,
) -> tuple[int, float, int]:
    """Kernel: one study without self-duels, with a look after every answer; returns duels, regret and verdict."""
    regret = 0.0
    for t in range(1, limit + 1):
        i, j = select(state, params, t, coin)
        if i < 0 or j < 0 or i >= len(wins) or j >= len(wins):
            raise IndexError("select chose an arm that does not exist")
        if i == j:
            j = rival(wins, i, t, alpha)
        won = 1.0 if luck.random() < world[i, j] else 0.0
        update(state, params, t, i, j, won)
        wins[i, j] += won
        wins[j, i] += 1.0 - won
        regret += 0.5 * (gaps[i] + gaps[j])
        note(standing, wins, i, j, thresholds[i, j])
        found = settled(standing)
        if found != NOT_YET:
            return t, regret, found
    return limit, regret, NOT_YET


def plan(
    problem: str | PreferenceMatrix | None = None,
    *,
    arms: int | None = None,
    gap: float | None = None,
    policies: PolicyLike | Sequence[PolicyLike] = POLICIES,
    confidence: float = 0.95,
    studies: int = 200,
    limit: int = LIMIT,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> list[PlanRow]:
    """Simulate how many duels and how much regret a study needs until its verdict.

    Give either a problem, or `arms` and `gap`.

    Args:
        problem: A preference matrix or a problem's name.
        arms: The number of arms, of which one beats each of the others with probability ½ + gap; the others are equal.
        gap: See `arms`.
        policies: One or several names, files or modules.
        confidence: Of the verdict.
        studies: How many studies to simulate for each policy.
        limit: Duels after which a study is given up. Policies that need a horizon get this one.
        seed: Of the simulation.
        jobs: How many threads to use; by default one per core.
        progress: Whether to show a progress bar; by default only in a terminal.

    Returns:
        One row per policy.

    Raises:
        InvalidInput: If an argument cannot be used.
        PolicyError: If a policy fails.

    Example:
        >>> rows = duels.plan(arms=4, gap=0.2, policies="rucb", studies=20)  # doctest: +SKIP
    """
    matrix = _matrix(problem, arms, gap)
    studies, limit = check_int("studies", studies, 1), check_int("limit", limit, 1, 10**9)
    jobs = thread_count(jobs)
    if not isinstance(policies, Sequence) or isinstance(policies, str | Policy):
        policies = [policies]
    chosen = [find_policy(one) for one in policies]
    if not chosen:
        raise InvalidInput("there are no policies: expected at least one, such as 'rucb'")
    return [_row(matrix, one, confidence, studies, limit, check_int("seed", seed, 0), jobs, progress) for one in chosen]


def _matrix(problem: str | PreferenceMatrix | None, arms: int | None, gap: float | None) -> PreferenceMatrix:
    if [thing is not None for thing in (problem, arms, gap)] not in ([True, False, False], [False, True, True]):
        raise InvalidInput("say arms and gap, such as arms=8 and gap=0.05, or a problem instead")
    if problem is not None:
        return as_matrix(problem)
    arms = check_int("arms", arms, 2, 1000)
    if not (isinstance(gap, int | float) and 0 < gap <= 0.5):
        raise InvalidInput(f"gap is {gap!r}: expected how far above ½ the best arm wins, above 0 and at most 0.5")
    array = np.full((arms, arms), 0.5)
    array[0, 1:], array[1:, 0] = 0.5 + gap, 0.5 - gap
    return PreferenceMatrix(array, name=f"{arms} arms, gap {gap:g}")


def _row(
    matrix: PreferenceMatrix,
    policy: Policy,
    confidence: float,
    studies: int,
    limit: int,
    seed: int,
    jobs: int,
    progress: bool | None,
) -> PlanRow:
    arms, gaps = matrix.arms, matrix.gaps
    none = np.zeros((arms, arms), np.int64)
    tally = Tally(matrix.names, none, none, np.ones(arms, bool), arms)
    thresholds = log_thresholds(tally, confidence)
    duels, regret, found = np.zeros(studies), np.zeros(studies), np.zeros(studies, np.int64)

    def study(number: int, most: int, play: Callable[..., Any]) -> tuple[int, float, int]:
        state, (coin, luck) = policy.start(arms, limit), loop.streams(seed, number)
        standing, wins, alpha = new_standing(arms), np.zeros((arms, arms)), rival_alpha(policy)
        duels, regret, found = play(
            state, policy.params, matrix.array, gaps, wins, standing, thresholds, alpha, most, coin, luck
        )
        return duels, regret, found

    play = loop.compiled_for(policy, until_verdict, lambda call: study(0, 0, call))

    def one(number: int, stop: threading.Event, share: Callable[[float], None]) -> None:
        if not stop.is_set():
            try:
                duels[number], regret[number], found[number] = study(number, limit, play)
            except Exception as error:
                raise PolicyError(
                    f"policy {policy} failed in study {number}: {type(error).__name__}: {error}"
                ) from error
            share(1.0)

    in_threads(one, studies, jobs, progress, f"{policy} until a verdict")
    undecided = found == NOT_YET
    until = np.where(undecided, np.inf, duels)
    return PlanRow(
        str(policy),
        float(np.quantile(until, 0.5, method="higher")),
        float(np.quantile(until, 0.9, method="higher")),
        float(np.quantile(regret, 0.5)),
        float(np.quantile(regret, 0.9)),
        float(undecided.mean()),
        float(((found != matrix.condorcet_winner) & ~undecided).mean()),
    )
