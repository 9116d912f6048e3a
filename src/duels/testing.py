"""Conformance checks for policies, both built-in ones and your own.

    from duels.testing import check_policy
    check_policy("./my_policy.py")      # returns the names of the checks that passed, or raises ConformanceError

With pytest, `@pytest.mark.parametrize("check", duels.testing.CHECKS)` makes one test per check. The statistical checks
are seeded, so their results never change between calls; each docstring gives the false-alarm rate.
"""

import math
from collections.abc import Callable
from copy import deepcopy

import numpy as np

from .engine import loop
from .errors import ConformanceError, InvalidInput
from .policies import Policy, PolicyLike, State, load_policy
from .specs import Value

HORIZON = 4000
RUNS = 3000  # of `check_relabeling`, at each of its horizons


def check_policy(policy: PolicyLike, **parameters: Value) -> list[str]:
    """Run all checks on a policy.

    Args:
        policy: A name, a Python file, a module or a `Policy`.
        **parameters: Parameters of the policy.

    Returns:
        The names of the checks that passed.

    Raises:
        ConformanceError: If the policy fails a check; it says which and why.
        InvalidInput: If this is not a policy.
    """
    chosen = load_policy(policy, **parameters)
    return [run_check(check, chosen) for check in CHECKS]


def run_check(check: Callable[[Policy], None], policy: Policy) -> str:
    """Run one of the checks, and return its name.

    Raises:
        ConformanceError: If the policy fails it; it says why.
    """
    try:
        check(policy)
    except (ConformanceError, InvalidInput):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}{loop.place_of(policy, error)}"
        raise ConformanceError(f"{policy} fails in {check.__name__}: {reason}") from error
    return check.__name__.removeprefix("check_")


def check_choices(policy: Policy) -> None:
    """`select` and `recommend` return existing arms, from the first step on, also with only two arms."""
    for arms in (2, 3, 7):
        game = _Game(policy, _ladder(arms), seed=arms)
        game.recommendation()
        for _ in range(300):
            game.step()
            game.recommendation()


def check_outcomes_read(policy: Policy) -> None:
    """The arm that beats all others is recommended in the end.

    The winner beats each arm with probability 0.9. A policy that uses the outcomes fails in fewer than one run in a
    thousand, and the check fails after 3 errors in 20 runs: one false alarm in 10⁶.
    """
    wrong = 0
    for run in range(20):
        winner = run % 4
        matrix = _star(4, winner)
        play = loop.ready(policy, 4, HORIZON * 4, matrix)
        _, _, arm = _play(play, policy, matrix, HORIZON * 4, seed=run)
        wrong += arm != winner
    if wrong >= 3:
        raise ConformanceError(
            f"{policy} recommends the wrong arm in {wrong} of 20 runs although the best one wins 90 % of its duels: "
            "does `update` read the outcome, and `recommend` what it learned?"
        )


def check_relabeling(policy: Policy) -> None:
    """Arms are treated equally: if all are equal, each is played and recommended equally often.

    Each arm's mean count over 3000 runs may differ from the average by 5.5 standard errors; a fair policy exceeds that
    in fewer than one of 10⁶ checks. Favoring low indices in ties, the usual mistake, differs by dozens.
    """
    arms, runs = 5, RUNS
    matrix = _frozen(np.full((arms, arms), 0.5))
    for horizon in (arms, 12 * arms):
        play = loop.ready(policy, arms, horizon, matrix)
        plays, recommended = np.zeros((runs, arms)), np.zeros((runs, arms))
        for run in range(runs):
            _, tally, arm = _play(play, policy, matrix, horizon, seed=run)
            plays[run] = tally.played
            recommended[run, arm] = 1
        for what, counts in (("played", plays), ("recommended", recommended)):
            excess = counts - counts.mean(axis=1, keepdims=True)
            error = excess.std(axis=0) / math.sqrt(runs) + 1e-12
            worst = int(np.argmax(np.abs(excess.mean(axis=0)) / error))
            if abs(excess[:, worst].mean()) > 5.5 * error[worst]:
                raise ConformanceError(
                    f"{policy} does not treat arms equally: among {arms} equal arms, arm {worst} is {what} "
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
    """Skipping self-duels gives the same results as playing them one by one."""
    for arms in (2, 3, 5):
        matrix = _star(arms, arms - 1)
        play = loop.ready(policy, arms, HORIZON, matrix)
        for seed in range(10):
            a = _trace(play, policy, matrix, HORIZON, seed, loop.FOREVER)
            b = _trace(play, policy, matrix, HORIZON, seed, 1)
            _must_agree(policy, a, b, f"skipping and stepping differ on {arms} arms: `skip` must not pass a change")


def check_pure(policy: Policy) -> None:
    """The state depends only on the coin and the outcomes; `recommend` and `bounds` do not change it."""
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
            raise ConformanceError(
                f"{policy} chooses a different pair at step {t} after the same outcomes: expected {i}, {j} again"
            )
        second.tell(i, j, won)
    _must_agree(policy, first.state, second.state, "the same outcomes lead to a different state")


def check_late_answers(policy: Policy) -> None:
    """`update` and `wait` accept any pair at any time, also ties and eliminated arms; the winner is still found.

    A correct policy fails in fewer than one run in a thousand, as in `check_outcomes_read`, and the check fails after 3
    errors in 6 runs: one false alarm in 10⁷.
    """
    wrong = 0
    for seed in range(6):
        game = _Game(policy, _star(4, seed % 4), seed)
        for t in range(HORIZON):
            game.step()
            i, j = game.luck.integers(4), game.luck.integers(4)
            if t % 100 == 0:
                game.wait(int(i), int(j))
            if t % 3 == 0:
                game.answer(int(i), int(j), 0.5 if t % 2 and i == j else game.outcome(int(i), int(j)))
        wrong += game.recommendation() != seed % 4
    if wrong > 2:
        raise ConformanceError(
            f"{policy} recommends the wrong arm in {wrong} of 6 runs when answers arrive out of order"
        )


def check_parameters(policy: Policy) -> None:
    """Parameters that are NaN, infinite or meaningless raise InvalidInput."""
    for name, default in policy.module.Params._field_defaults.items():
        for bad in (math.nan, math.inf, -math.inf) if isinstance(default, float) else ():
            _must_refuse(policy, name, bad)
        if isinstance(default, str):
            _must_refuse(policy, name, "no such thing")


CHECKS: tuple[Callable[[Policy], None], ...] = (
    check_choices,
    check_outcomes_read,
    check_relabeling,
    check_compiled,
    check_skip,
    check_pure,
    check_late_answers,
    check_parameters,
)


class _Game:
    """A policy that is played step by step in the interpreter, with room for checks between steps."""

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
            raise ConformanceError(f"{self.policy}: `skip` returns {later} at step {self.t}, a time in the past")
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
                f"{self.policy} fails on an answer about arms {i} and {j} at step {self.t}: "
                f"{type(error).__name__}: {error}{loop.place_of(self.policy, error)}{hint}"
            ) from error

    def wait(self, i: int, j: int) -> None:
        """Ask a duel that stays unanswered: the policy is told in a copy of its state, and selects from that."""
        waits = self.policy.kernel("wait")
        if waits is not None:
            kept, coin = self.state, deepcopy(self.coin)
            self.state = deepcopy(kept)
            waits(self.state, self.policy.params, i, j)
            self.choice()
            self.state, self.coin = kept, coin

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
                raise ConformanceError(f"{self.policy}: `bounds` must return two (K, K) arrays, the lower one first")


def _play(
    play: loop.Play, policy: Policy, matrix: np.ndarray, horizon: int, seed: int, stride: int = loop.FOREVER
) -> tuple[tuple[State, np.random.Generator, np.random.Generator], loop.Tally, int]:
    state, tally = policy.start(len(matrix), horizon), loop.new_tally(len(matrix))
    coin, luck = loop.streams(seed, 0)
    rng = loop.tie_break_rng(seed, 0, horizon)
    _, arm = play(state, policy.params, matrix, tally, 1, horizon, stride, loop.FOREVER, coin, luck, rng)
    return (state, coin, luck), tally, arm


def _trace(
    play: loop.Play, policy: Policy, matrix: np.ndarray, horizon: int, seed: int, stride: int
) -> tuple[object, ...]:
    """Everything that a run leaves behind: state, tally, recommendation, and the states of both generators."""
    (state, coin, luck), tally, arm = _play(play, policy, matrix, horizon, seed, stride)
    return state, tally, arm, coin.bit_generator.state, luck.bit_generator.state


def _must_agree(policy: Policy, a: object, b: object, complaint: str) -> None:
    try:
        np.testing.assert_equal(a, b)
    except AssertionError:
        raise ConformanceError(f"{policy}: {complaint}") from None


def _must_refuse(policy: Policy, name: str, bad: Value) -> None:
    try:
        load_policy(policy, **{name: bad})
    except InvalidInput:
        return
    raise ConformanceError(f"{policy} accepts {name}={bad}: `check(params)` must raise InvalidInput")


def _ladder(arms: int) -> np.ndarray:
    """Each arm beats all later ones, its neighbors by little; the best arm has a middle index."""
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
