"""Conformance checks for policies, the built-in ones and yours.

    from duels.testing import check_policy
    check_policy("./my_policy.py")      # raises ConformanceError, or returns the names of the checks passed

Under pytest, `@pytest.mark.parametrize("check", duels.testing.CHECKS)` gives a test per promise. The statistical checks
are seeded, so an answer never changes from one call to the next; their false-alarm rate is said in each.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from .engine import loop
from .errors import ConformanceError, InvalidInput
from .policies import Policy
from .policies import policy as find_policy

HORIZON = 4000
RUNS = 3000  # of `check_relabelling`, at each of its horizons


def check_policy(policy: Any, **parameters: Any) -> list[str]:
    """Put a policy to all checks; the names of those that apply, or a ConformanceError that says what is broken."""
    chosen = find_policy(policy, **parameters)
    for check in CHECKS:
        try:
            check(chosen)
        except (ConformanceError, InvalidInput):
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}{loop.place_of(chosen, error)}"
            raise ConformanceError(f"{chosen} fails in {check.__name__}: {said}") from error
    return [check.__name__.removeprefix("check_") for check in CHECKS]


def check_choices(policy: Policy) -> None:
    """`select` and `recommend` name arms that exist, from the first step on and with two arms."""
    for arms in (2, 3, 7):
        game = _Game(policy, _ladder(arms), seed=arms)
        game.recommendation()
        for _ in range(300):
            game.step()
            game.recommendation()


def check_outcomes_read(policy: Policy) -> None:
    """Whichever arm beats all others is recommended in the end.

    The winner beats each arm with probability 0.9; a policy that reads the outcomes errs in fewer than one run in a
    thousand, and 3 errors in 20 runs are needed to fail: a false alarm in 10⁶.
    """
    wrong = 0
    for run in range(20):
        winner = run % 4
        matrix = _star(4, winner)
        play = loop.ready(policy, 4, HORIZON * 4, matrix)
        _, _, arm = _played(play, policy, matrix, HORIZON * 4, seed=run)
        wrong += arm != winner
    if wrong >= 3:
        raise ConformanceError(
            f"{policy} recommends the wrong arm in {wrong} of 20 runs although the best one wins 90 % of its duels: "
            "does `update` read the outcome, and `recommend` what it learned?"
        )


def check_relabelling(policy: Policy) -> None:
    """Arms are treated alike: where all are equal, each is played and recommended equally often.

    Every arm's mean count over 3000 runs may differ from the others' by 5.5 standard errors, which happens to a fair
    policy in fewer than one of 10⁶ checks. Favouring low indices in ties, the usual mistake, differs by dozens.
    """
    arms, runs = 5, RUNS
    matrix = _frozen(np.full((arms, arms), 0.5))
    for horizon in (arms, 12 * arms):
        play = loop.ready(policy, arms, horizon, matrix)
        plays, recommended = np.zeros((runs, arms)), np.zeros((runs, arms))
        for run in range(runs):
            _, tally, arm = _played(play, policy, matrix, horizon, seed=run)
            plays[run] = (tally + tally.T).sum(axis=1)
            recommended[run, arm] = 1
        for what, counts in (("played", plays), ("recommended", recommended)):
            excess = counts - counts.mean(axis=1, keepdims=True)
            error = excess.std(axis=0) / math.sqrt(runs) + 1e-12
            worst = int(np.argmax(np.abs(excess.mean(axis=0)) / error))
            if abs(excess[:, worst].mean()) > 5.5 * error[worst]:
                raise ConformanceError(
                    f"{policy} does not treat arms alike: among {arms} equal arms, arm {worst} is {what} "
                    f"{counts[:, worst].mean():.3g} times in {horizon} steps, the average arm {counts.mean():.3g}: "
                    "are ties broken by index?"
                )


def check_compiled(policy: Policy) -> None:
    """Compiled and interpreted, the policy makes the same choices, draw for draw."""
    for arms, horizon in ((2, 200), (3, 300), (8, 600)):
        matrix = _ladder(arms)
        compiled = loop.ready(policy, arms, horizon, matrix)
        interpreted = loop.bind(policy, compiled=False)
        for seed in range(3):
            a = _trace(compiled, policy, matrix, horizon, seed, loop.FOREVER)
            b = _trace(interpreted, policy, matrix, horizon, seed, loop.FOREVER)
            _must_agree(policy, a, b, f"compiled and interpreted play differ on {arms} arms")


def check_skip(policy: Policy) -> None:
    """Fast-forwarding over self-duels changes nothing that stepping through them would not."""
    for arms in (2, 3, 5):
        matrix = _star(arms, arms - 1)
        play = loop.ready(policy, arms, HORIZON, matrix)
        for seed in range(10):
            a = _trace(play, policy, matrix, HORIZON, seed, loop.FOREVER)
            b = _trace(play, policy, matrix, HORIZON, seed, 1)
            _must_agree(policy, a, b, f"skipping and stepping differ on {arms} arms: `skip` must not pass a change")


def check_pure(policy: Policy) -> None:
    """The state depends on the coin and the outcomes alone, and looking at it changes nothing."""
    matrix = _ladder(4)
    first, second = _Game(policy, matrix, seed=1), _Game(policy, matrix, seed=1)
    for _ in range(400):
        first.step()
        seen = deepcopy(first.state)
        first.recommendation()
        first.bounds()
        _must_agree(policy, seen, first.state, "`recommend` or `bounds` changes the state")
    for t, i, j, won in first.history:
        if second.choice() != (i, j):
            raise ConformanceError(f"{policy} told the same outcomes chooses another pair at step {t}: {i}, {j} before")
        second.tell(i, j, won)
    _must_agree(policy, first.state, second.state, "the same outcomes lead to another state")


def check_late_answers(policy: Policy) -> None:
    """`update` takes any pair at any time, ties and arms long given up included, and the winner is still found.

    Wrong once in a thousand runs or less, as in `check_outcomes_read`; 3 errors in 6 runs are needed to fail: a false
    alarm in 10⁷.
    """
    wrong = 0
    for seed in range(6):
        game = _Game(policy, _star(4, seed % 4), seed)
        for t in range(HORIZON):
            game.step()
            i, j = game.luck.integers(4), game.luck.integers(4)
            if t % 3 == 0:
                game.answer(int(i), int(j), 0.5 if t % 2 and i == j else game.outcome(int(i), int(j)))
        wrong += game.recommendation() != seed % 4
    if wrong > 2:
        raise ConformanceError(f"{policy} recommends the wrong arm in {wrong} of 6 runs once answers come out of turn")


def check_parameters(policy: Policy) -> None:
    """NaN, infinity and nonsense are refused as parameters."""
    for name, default in policy.module.Params._field_defaults.items():
        for bad in (math.nan, math.inf, -math.inf) if isinstance(default, float) else ():
            _must_refuse(policy, name, bad)
        if isinstance(default, str):
            _must_refuse(policy, name, "no such thing")


CHECKS: tuple[Callable[[Policy], None], ...] = (
    check_choices,
    check_outcomes_read,
    check_relabelling,
    check_compiled,
    check_skip,
    check_pure,
    check_late_answers,
    check_parameters,
)


class _Game:
    """A policy played step by step in the interpreter, so that anything can be done between steps."""

    def __init__(self, policy: Policy, matrix: np.ndarray, seed: int) -> None:
        self.policy, self.matrix, self.module = policy, matrix, policy.module
        self.state = policy.start(len(matrix), HORIZON)
        self.coin, self.luck = loop.streams(seed, 0)
        self.t = 1
        self.history: list[tuple[int, int, int, float]] = []

    def choice(self) -> tuple[int, int]:
        with loop.strictly(self.policy):
            i, j = self.module.select(self.state, self.policy.params, self.t, self.coin)
        if not (0 <= i < len(self.matrix) and 0 <= j < len(self.matrix)):
            raise ConformanceError(f"{self.policy} selects arms {i} and {j} of {len(self.matrix)} at step {self.t}")
        return int(i), int(j)

    def outcome(self, i: int, j: int) -> float:
        return float(self.luck.random() < self.matrix[i, j])

    def step(self) -> None:
        i, j = self.choice()
        self.tell(i, j, self.outcome(i, j))

    def tell(self, i: int, j: int, won: float) -> None:
        skip = self.policy.kernel("skip", loop.one_step)
        later = self.t if i != j else skip(self.state, self.policy.params, self.t)
        if later < self.t:
            raise ConformanceError(f"{self.policy}: `skip` answers {later} at step {self.t}, a time that has passed")
        if later == self.t:
            self.answer(i, j, won, "")
        self.history.append((self.t, i, j, won))
        self.t += 1

    def answer(self, i: int, j: int, won: float, hint: str = "; `update` must accept any pair at any time") -> None:
        try:
            with loop.strictly(self.policy):
                self.module.update(self.state, self.policy.params, self.t, i, j, won)
        except Exception as error:
            raise ConformanceError(
                f"{self.policy} breaks on an answer about arms {i} and {j} at step {self.t}: "
                f"{type(error).__name__}: {error}{loop.place_of(self.policy, error)}{hint}"
            ) from error

    def recommendation(self) -> int:
        with loop.strictly(self.policy):
            arm = self.module.recommend(self.state, np.random.default_rng(self.t))
        if not 0 <= arm < len(self.matrix):
            raise ConformanceError(f"{self.policy} recommends arm {arm} of {len(self.matrix)} at step {self.t}")
        return int(arm)

    def bounds(self) -> None:
        bounds = self.policy.kernel("bounds")
        if bounds is not None:
            lower, upper = bounds(self.state, self.policy.params, self.t)
            if not (lower.shape == upper.shape == self.matrix.shape and (lower <= upper + 1e-12).all()):
                raise ConformanceError(f"{self.policy}: `bounds` must give two (K, K) arrays, the lower one first")


def _played(
    play: Callable, policy: Policy, matrix: np.ndarray, horizon: int, seed: int, stride: int = loop.FOREVER
) -> Any:
    state, tally = policy.start(len(matrix), horizon), np.zeros(matrix.shape)
    coin, luck = loop.streams(seed, 0)
    adviser = loop.adviser(seed, 0, horizon)
    _, arm = play(state, policy.params, matrix, tally, 1, horizon, stride, loop.FOREVER, coin, luck, adviser)
    return (state, coin, luck), tally, arm


def _trace(play: Callable, policy: Policy, matrix: np.ndarray, horizon: int, seed: int, stride: int) -> Any:
    """All that a run leaves behind: state, tally, recommendation, and where both generators stand."""
    (state, coin, luck), tally, arm = _played(play, policy, matrix, horizon, seed, stride)
    return state, tally, arm, coin.bit_generator.state, luck.bit_generator.state


def _must_agree(policy: Policy, a: Any, b: Any, complaint: str) -> None:
    try:
        np.testing.assert_equal(a, b)
    except AssertionError:
        raise ConformanceError(f"{policy}: {complaint}") from None


def _must_refuse(policy: Policy, name: str, bad: Any) -> None:
    try:
        find_policy(policy, **{name: bad})
    except InvalidInput:
        return
    raise ConformanceError(f"{policy} accepts {name}={bad}: `check(params)` must raise InvalidInput")


def _ladder(arms: int) -> np.ndarray:
    """Each arm beats the ones after it, neighbours by little; the best is in the middle of the indices."""
    rank = np.roll(np.arange(arms), arms // 2)
    return _frozen(0.5 + 0.35 * (rank[None, :] - rank[:, None]) / arms)


def _star(arms: int, winner: int) -> np.ndarray:
    """One arm beats every other with probability 0.9; the others are equal."""
    matrix = np.full((arms, arms), 0.5)
    matrix[winner, :], matrix[:, winner] = 0.9, 0.1
    matrix[winner, winner] = 0.5
    return _frozen(matrix)


def _frozen(matrix: np.ndarray) -> np.ndarray:
    """Read-only, as a PreferenceMatrix's: numba would compile a policy once more for an array that can be written."""
    matrix.flags.writeable = False
    return matrix
