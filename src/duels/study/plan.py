"""How many answers a verdict takes, by simulating studies that look at the verdict after every answer.

Simulated studies on N items, until a verdict or until everything was asked.
"""

import json
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_int
from ..engine import loop
from ..engine.threads import in_threads, thread_count
from ..errors import InvalidInput, PolicyError
from ..policies import Policy, State, load_policy
from ..preference import PreferenceMatrix
from ..problems import as_matrix
from ..storage.storage import StudyRow
from .state.counts import next_event
from .state.item_schedule import ItemSet
from .state.live import LiveState
from .state.policy_state import rival, rival_alpha
from .stats.about import NEW_ITEMS, THESE_ANSWERS, THESE_ITEMS, check_about
from .stats.certainty import check_confidence, check_margin
from .stats.goal import Goal, new_goal
from .stats.simulated_looks import (
    NO_WINNER,
    NOT_YET,
    TIED,
    Looks,
    draw_answer,
    find_verdict,
    new_item_looks,
    new_looks,
    take,
    useful,
    useful_on_items,
)
from .stats.tally import Bools, Floats, Ints

POLICIES = ("verdict", "rucb", "random")
LIMIT = 1_000_000
MOST_ITEMS = 100_000
PolicyLike = str | Policy | ModuleType

select: Any = None
update: Any = None


class PlanRow(NamedTuple):
    """What to expect from one policy until a verdict, or until the limit.

    Attributes:
        policy: The policy.
        answers_median: Half of the studies need at most this many answers; infinite if fewer than half end.
        answers_90: Nine in ten need at most this many.
        regret_median: The median of the regret; None if no arm beats all others, since it is not defined then.
        regret_90: Nine in ten have at most this regret; None as above.
        undecided: The share of studies without a verdict at the limit.
        wrong: The share of studies whose verdict is not true.
        within_budget: The share of studies with a verdict within the budget, if there is one.
        tied: The share of studies that end as practically tied.
    """

    policy: str
    answers_median: float
    answers_90: float
    regret_median: float | None
    regret_90: float | None
    undecided: float
    wrong: float
    within_budget: float | None = None
    tied: float = 0.0


def until_verdict(
    state: State,
    params: object,
    world: np.ndarray,
    ties: float,
    told: bool,
    redirects: bool,
    gaps: np.ndarray,
    looks: Looks,
    alpha: float,
    limit: int,
    coin: np.random.Generator,
    luck: np.random.Generator,
    doubt: np.random.Generator,
) -> tuple[int, float, int]:
    """Kernel: one study without self-duels, with a look after every answer; returns duels, regret and verdict."""
    regret, t = 0.0, 1
    for duel in range(1, limit + 1):
        i, j = select(state, params, t, coin)
        if i < 0 or j < 0 or i >= len(gaps) or j >= len(gaps):
            raise IndexError("select chose an arm that does not exist")
        if redirects:
            i, j = useful(looks, i, j, doubt)
        if i == j:
            j = rival(looks.wins, i, t, alpha)
        outcome = 1.0 if luck.random() < world[i, j] else 0.0
        if ties > 0.0 and luck.random() < ties:
            outcome = 0.5
        if told or outcome != 0.5:
            update(state, params, t, i, j, outcome)
            t += 1
        take(looks, i, j, outcome)
        regret += 0.5 * (gaps[i] + gaps[j])
        verdict = find_verdict(looks, i, j)
        if verdict != NOT_YET:
            return duel, regret, verdict
    return limit, regret, NOT_YET


def estimate_votes(
    problem: str | PreferenceMatrix | None = None,
    *,
    arms: int | None = None,
    gap: float | None = None,
    policies: PolicyLike | Sequence[PolicyLike] = POLICIES,
    confidence: float = 0.95,
    margin: float = 0.0,
    ties: float = 0.0,
    items: int | None = None,
    about: str | None = None,
    parallel: int = 1,
    budget: int | None = None,
    studies: int = 200,
    limit: int = LIMIT,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> list[PlanRow]:
    """Simulate how many answers and how much regret a study needs until its verdict.

    Give either a problem, or `arms` and `gap`.

    Args:
        problem: A preference matrix or a problem's name.
        arms: The number of arms, of which one beats each of the others with probability ½ + gap; the others are equal.
        gap: See `arms`. With 0 all arms are equal, and a margin says when that is known: they are practically tied.
        policies: One or several names, files or modules.
        confidence: Of the verdict.
        margin: Of the verdict, see `create_study`.
        ties: The share of answers that are ties. The probabilities of the problem are then those of the other answers.
        items: How many items there are, if each pair is asked about each of them once.
        about: What the verdict is about, see `create_study`: with items `"new-items"` by default, of which they are a
            sample, or `"these-answers"`, where the probabilities of the problem are shares of the items, rounded at
            random. Without items `"these-items"`, where it makes no difference how many there are.
        parallel: How many questions are open at any time, such as one for each of the people who vote.
        budget: How many answers there will be. Each row then says how likely a verdict is by then.
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
        >>> rows = duels.estimate_votes(arms=4, gap=0.2, policies="rucb", studies=20)  # doctest: +SKIP
    """
    matrix = _matrix(problem, arms, gap)
    if items is None and check_margin(margin) == 0:
        _refuse_endless(matrix, gap)
    plan = _Plan(
        matrix,
        confidence=check_confidence(confidence),
        margin=check_margin(margin),
        ties=_share_of_ties(ties),
        items=None if items is None else check_int("items", items, 1, MOST_ITEMS),
        about=_about(about, items),
        parallel=check_int("parallel", parallel, 1, 10_000),
        budget=None if budget is None else check_int("budget", budget, 1),
        studies=check_int("studies", studies, 1),
        limit=check_int("limit", limit, 1, 10**9),
        seed=check_int("seed", seed, 0),
    )
    jobs = thread_count(jobs)
    if not isinstance(policies, Sequence) or isinstance(policies, str | Policy):
        policies = [policies]
    chosen = [load_policy(one).with_goal(plan.confidence, plan.margin) for one in policies]
    if not chosen:
        raise InvalidInput("there are no policies: expected at least one, such as 'verdict'")
    return [_row(plan, one, jobs, progress) for one in chosen]


class _Plan(NamedTuple):
    matrix: PreferenceMatrix
    confidence: float
    margin: float
    ties: float
    items: int | None
    about: str
    parallel: int
    budget: int | None
    studies: int
    limit: int
    seed: int


def _about(about: str | None, items: int | None) -> str:
    found = check_about((THESE_ITEMS if items is None else NEW_ITEMS) if about is None else about)
    if (items is None) != (found == THESE_ITEMS):
        needs = "say how many items there are" if items is None else "leave items out: their number makes no difference"
        raise InvalidInput(f"about is {found!r}: {needs}")
    return found


def _share_of_ties(ties: float) -> float:
    if not (isinstance(ties, int | float) and 0 <= ties < 1):
        raise InvalidInput(f"ties is {ties!r}: expected the share of answers that are ties, at least 0 and below 1")
    return float(ties)


def _matrix(problem: str | PreferenceMatrix | None, arms: int | None, gap: float | None) -> PreferenceMatrix:
    if [thing is not None for thing in (problem, arms, gap)] not in ([True, False, False], [False, True, True]):
        raise InvalidInput("say arms and gap, such as arms=8 and gap=0.05, or a problem instead")
    if problem is not None:
        return as_matrix(problem)
    arms = check_int("arms", arms, 2, 1000)
    if not (isinstance(gap, int | float) and 0 <= gap <= 0.5):
        raise InvalidInput(f"gap is {gap!r}: expected how far above ½ the best arm wins, at least 0 and at most 0.5")
    array = np.full((arms, arms), 0.5)
    array[0, 1:], array[1:, 0] = 0.5 + gap, 0.5 - gap
    return PreferenceMatrix(array, name=f"{arms} arms, gap {gap:g}")


def _refuse_endless(matrix: PreferenceMatrix, gap: float | None) -> None:
    """Raise an error if no verdict without a margin is true of the matrix."""
    unbeaten = np.flatnonzero(~matrix.beats.any(axis=0))
    if matrix.condorcet_winner is None and len(unbeaten):
        arm = matrix.names[int(unbeaten[0])]
        found = "gap is 0" if gap is not None else f"no arm beats all others, and none beats {arm!r}"
        raise InvalidInput(f"{found}: such a study has no verdict without a margin; say one, such as margin=0.02")


def _gaps(matrix: PreferenceMatrix) -> np.ndarray:
    """(K,) float64: what the regret of a duel is computed from; 0 where regret is not defined."""
    return np.zeros(matrix.arms) if matrix.condorcet_winner is None else matrix.gaps


def _row(plan: _Plan, policy: Policy, jobs: int, progress: bool | None) -> PlanRow:
    duels, regret, verdicts = np.zeros(plan.studies), np.zeros(plan.studies), np.zeros(plan.studies, np.int64)
    study = _study_one_by_one if plan.items is None else _study_on_items
    play = (_study_at_once if plan.parallel > 1 else study)(plan, policy)

    def one(number: int, stop: threading.Event, share: Callable[[float], None]) -> None:
        if not stop.is_set():
            try:
                duels[number], regret[number], verdicts[number] = play(number)
            except Exception as error:
                raise PolicyError(
                    f"policy {policy} failed in study {number}: {type(error).__name__}: {error}"
                ) from error
            share(1.0)

    in_threads(one, plan.studies, jobs, progress, f"{policy} until a verdict")
    undecided, has_regret = verdicts == NOT_YET, plan.matrix.condorcet_winner is not None
    until = np.where(undecided, np.inf, duels)
    return PlanRow(
        str(policy),
        float(np.quantile(until, 0.5, method="higher")),
        float(np.quantile(until, 0.9, method="higher")),
        float(np.quantile(regret, 0.5)) if has_regret else None,
        float(np.quantile(regret, 0.9)) if has_regret else None,
        float(undecided.mean()),
        float(_is_wrong(plan, verdicts).mean()),
        None if plan.budget is None else float((until <= plan.budget).mean()),
        float((verdicts <= TIED).mean()),
    )


def _is_wrong(plan: _Plan, verdicts: Ints) -> Bools:
    """(studies,) bool: Whether the verdict is not true of the matrix, or of the items."""
    matrix = plan.matrix
    if plan.about == THESE_ANSWERS and plan.items is not None:
        wins = (_answers(plan, number)[0] for number in range(plan.studies))
        found = zip(verdicts.tolist(), wins)
        return np.array([not is_true(one, won, plan.items, plan.margin) for one, won in found])
    worst = np.min(np.where(np.eye(matrix.arms, dtype=bool), 0.5, matrix.array), axis=1)
    close = (1 - plan.ties) * (worst - 0.5) >= -plan.margin
    best = np.array([arm == matrix.condorcet_winner for arm in range(matrix.arms)])
    right = {NOT_YET: True, NO_WINNER: matrix.condorcet_winner is None}
    right |= {arm: bool(best[arm]) for arm in range(matrix.arms)}
    right |= {TIED - arm: bool(close[arm]) for arm in range(matrix.arms)}
    return np.array([not right[int(one)] for one in verdicts])


def _goal(plan: _Plan, policy: Policy) -> Goal:
    return new_goal(plan.confidence, plan.margin, "stop", plan.about, ties=policy.live_ties)


def _answers(plan: _Plan, number: int) -> tuple[Ints, Ints]:
    """The wins and ties of a study with items, before anything is asked."""
    rng = np.random.default_rng([plan.seed, number, plan.items or 0])
    draw = answers_on_items if plan.about == THESE_ANSWERS else sample_answers
    return draw(plan.matrix.array, plan.ties, plan.items or 0, rng)


def _item_looks(plan: _Plan, number: int) -> Looks:
    answers, items = _answers(plan, number), plan.items or 0
    return new_item_looks(*answers, items, 1 - plan.confidence, plan.margin, plan.about == NEW_ITEMS)


Result = tuple[int, float, int]  # duels, regret and verdict of a study


def _study_one_by_one(plan: _Plan, policy: Policy) -> Callable[[int], Result]:
    """Studies in which each question waits for the answer to the one before."""
    arms, gaps, delta = plan.matrix.arms, _gaps(plan.matrix), 1 - plan.confidence
    told, alpha = _goal(plan, policy).ties == "halves", rival_alpha(policy)
    redirects = not policy.asks_for(plan.confidence, plan.margin)

    def study(number: int, most: int, play: Callable[..., Result]) -> Result:
        state, (coin, luck) = policy.start(arms, plan.limit), loop.streams(plan.seed, number)
        doubt, looks = np.random.default_rng([plan.seed, number]), new_looks(arms, delta, plan.margin)
        world, rest = plan.matrix.array, (alpha, most, coin, luck, doubt)
        return play(state, policy.params, world, plan.ties, told, redirects, gaps, looks, *rest)

    compiled = loop.compile_for(policy, until_verdict, lambda call: study(0, 0, call))
    return lambda number: study(number, plan.limit, compiled)


def _study_on_items(plan: _Plan, policy: Policy) -> Callable[[int], Result]:
    """As `_study_one_by_one`, where each pair is asked about each item once."""
    told = _goal(plan, policy).ties == "halves"

    def study(number: int, most: int, play: Callable[..., Result]) -> Result:
        state, (coin, luck) = policy.start(plan.matrix.arms, plan.limit), loop.streams(plan.seed, number)
        known, doubt = _item_looks(plan, number), np.random.default_rng([plan.seed, number])
        return play(state, policy.params, known, told, _gaps(plan.matrix), most, coin, luck, doubt)

    compiled = loop.compile_for(policy, until_verdict_on_items, lambda call: study(0, 0, call))
    return lambda number: study(number, plan.limit, compiled)


class _World:
    """The answers to the questions of a study, and the looks at them."""

    def __init__(self, plan: _Plan, number: int) -> None:
        self._plan, self._luck = plan, np.random.default_rng([plan.seed, number])
        if plan.items is None:
            self._looks = new_looks(plan.matrix.arms, 1 - plan.confidence, plan.margin)
        else:
            self._looks = _item_looks(plan, number)

    def one_of(self, waiting: list[int]) -> int:
        """Take one of the open questions at random."""
        return waiting.pop(int(self._luck.integers(len(waiting))))

    def answer(self, left: int, right: int) -> float:
        """Return an answer: 1 if the left arm wins, 0 if it loses, ½ for a tie."""
        if self._plan.items is not None:
            return draw_answer(self._looks, left, right, self._luck)
        outcome = 1.0 if self._luck.random() < self._plan.matrix.array[left, right] else 0.0
        return 0.5 if self._luck.random() < self._plan.ties else outcome

    def verdict(self, history: LiveState, left: int, right: int, outcome: float) -> int:
        """Return the verdict after an answer, where questions that are open count as lost by who is to be named."""
        take(self._looks, left, right, outcome)
        look = history.look(0.0)
        named = look.moments.look(look.answered)
        if named is not None or find_verdict(self._looks, left, right) in (NOT_YET, *range(len(history.names))):
            return NOT_YET if named is None else named
        verdict = look.verdict()  # it is slow, and rarely needed
        if verdict.kind == "practically tied":
            return TIED - history.names.index(verdict.leader or "")
        return NO_WINNER if verdict.kind == "no condorcet winner" else NOT_YET


def _study_at_once(plan: _Plan, policy: Policy) -> Callable[[int], Result]:
    """Studies with several open questions, of which any is answered next, asked as in a live study."""
    gaps, goal = _gaps(plan.matrix), _goal(plan, policy)
    note = json.dumps({"arms": list(plan.matrix.names)})

    def study(number: int) -> Result:
        row = StudyRow(0, "plan", 0.0, str(policy), plan.limit, number, 600.0, {"goal": goal._asdict()})
        history, world, regret, waiting = LiveState(row, policy), _World(plan, number), 0.0, list[int]()
        history.take(next_event(history, "create", 0.0, note=note))
        history.player().compile()
        if history.items is not None and plan.items is not None:
            history.items.fix(ItemSet(tuple(range(1, plan.items + 1)), frozenset(range(plan.matrix.arms))))
        for answers in range(1, plan.limit + 1):
            while len(waiting) < plan.parallel and history.can_ask(0.0):
                waiting.append(_ask(history))
            if not waiting:  # everything was asked
                break
            duel = world.one_of(waiting)
            left, right = history.left[duel], history.right[duel]
            outcome = world.answer(left, right)
            answer = {1.0: "left", 0.0: "right", 0.5: "tie"}[outcome]
            history.take(next_event(history, "tell", 0.0, duel=duel, attempt=0, answer=answer))
            regret += 0.5 * (gaps[left] + gaps[right])
            verdict = world.verdict(history, left, right, outcome)
            if verdict != NOT_YET:
                return answers, regret, verdict
        return plan.limit, regret, NOT_YET

    return study


def _ask(history: LiveState) -> int:
    """Ask the next question; returns the number of the duel."""
    left, right, swapped = history.question(0.0, allow_self=False)
    shown: dict[str, Any] = {"left_arm": left, "right_arm": right, "swapped": swapped}
    if history.items is not None:
        place = history.next_place(left, right, 0.0)
        shown["note"] = None if place is None else json.dumps({"item": place[1]})
    number = len(history.left)
    history.take(next_event(history, "ask", 0.0, duel=number, attempt=0, **shown))
    return number


def until_verdict_on_items(
    state: State,
    params: object,
    known: Looks,
    told: bool,
    gaps: np.ndarray,
    limit: int,
    coin: np.random.Generator,
    luck: np.random.Generator,
    doubt: np.random.Generator,
) -> tuple[int, float, int]:
    """Kernel: one study with a look after every answer; returns duels, regret and verdict."""
    regret, t = 0.0, 1
    for duel in range(1, limit + 1):
        i, j = select(state, params, t, coin)
        if i < 0 or j < 0 or i >= len(gaps) or j >= len(gaps):
            raise IndexError("select chose an arm that does not exist")
        i, j = useful_on_items(known, i, j, doubt)
        if i < 0:  # everything was asked
            break
        outcome = draw_answer(known, i, j, luck)
        if told or outcome != 0.5:
            update(state, params, t, i, j, outcome)
            t += 1
        take(known, i, j, outcome)
        regret += 0.5 * (gaps[i] + gaps[j])
        verdict = find_verdict(known, i, j)
        if verdict != NOT_YET:
            return duel, regret, verdict
    return limit, regret, NOT_YET


def answers_on_items(matrix: Floats, ties: float, items: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return how many of the items each arm wins over each other one, and how many are ties: both (K, K) int64.

    They are the shares of the problem. What is not a whole number is rounded up or down at random, right on average.

    Args:
        matrix: (K, K): Probabilities of the answers that are not ties.
        ties: The share of ties.
        items: How many items there are.
        rng: What rounds.
    """
    arms = len(matrix)
    upper = np.triu(np.ones((arms, arms), dtype=bool), 1)
    tied = np.where(upper, np.floor(ties * items + rng.random((arms, arms))), 0.0)
    won = np.where(upper, np.floor((items - tied) * matrix + rng.random((arms, arms))), 0.0)
    lost = np.where(upper, items - tied - won, 0.0)
    return (won + lost.T).astype(np.int64), (tied + tied.T).astype(np.int64)


def sample_answers(matrix: Floats, ties: float, items: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """As `answers_on_items`, where the items are a sample: each answer is drawn with the chances of the problem."""
    arms = len(matrix)
    upper = np.triu(np.ones((arms, arms), dtype=bool), 1)
    tied = np.where(upper, rng.binomial(items, ties, (arms, arms)), 0)
    won = np.where(upper, rng.binomial(items - tied, matrix), 0)
    lost = np.where(upper, items - tied - won, 0)
    return (won + lost.T).astype(np.int64), (tied + tied.T).astype(np.int64)


def is_true(verdict: int, wins: Ints, items: int, margin: float) -> bool:
    """Return whether a verdict is true of the items.

    Args:
        verdict: As `looks.found` returns it.
        wins: (K, K) int64: How many of the items each arm wins over each other one.
        items: How many there are.
        margin: Of the verdict.
    """
    lead = wins - wins.T
    best = np.asarray((lead + np.eye(len(wins)) > 0).all(axis=1))
    if verdict >= 0:
        return bool(best[verdict])
    if verdict <= TIED:
        return bool((lead[TIED - verdict] >= -2 * items * margin - 1e-9).all())
    return verdict == NOT_YET or (verdict == NO_WINNER and not best.any())
