"""A policy's state in a live study: updated by answers instead of simulated outcomes.

Answers are entered exactly as the simulator's loop plays them, with the same random streams. A study that answers one
question at a time therefore goes through the same states as run 0 of `simulate`.
"""

import copy
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...engine import compiling, loop
from ...engine.compiling import Kernel
from ...errors import DuelsError, InvalidInput, PolicyError
from ...policies import Policy, State

INTERPRETED = {True: 0.5, False: 5.0}  # seconds in the interpreter before a built-in policy, or a user's, is compiled
MANY = 2000  # answers: with more to enter at once, compiling pays
SMALL = 200  # arms: with more, compiling pays
SLICE = 50  # answers to enter in the interpreter before looking at the clock

TIE = np.array([0.5])

UNBOUND: Any = None
select: Callable[..., tuple[int, int]] = UNBOUND  # placeholders for a policy's kernels
update = skip = wait = UNBOUND


def play_on(
    state: State,
    params: object,
    first: np.ndarray,
    second: np.ndarray,
    outcomes: np.ndarray,
    t: int,
    coin: np.random.Generator,
    waiting: bool,
    selected: bool,
    c: int,
    d: int,
    choose: bool,
) -> tuple[int, int, int]:
    """Kernel: enter duels in order from time t on, as `loop.play` does, and then select a pair if `choose`.

    It is one kernel because each kernel that calls a policy's functions compiles them again.

    Args:
        state: The policy's state.
        params: Its parameters.
        first: (n,) int64: The first arms of the duels.
        second: (n,) int64: The second ones.
        outcomes: (n,) float64: Of the first arms.
        t: The time of the first duel.
        coin: The policy's random stream.
        waiting: Whether they have no answers yet, and the policy wants to know of such duels. It selects nothing
            before them, and the outcomes do not matter.
        selected: Whether the policy has selected (c, d) at time t already.
        c: Its first arm.
        d: Its second arm.
        choose: Whether it is to select a pair after them.

    Returns:
        The time after the duels, and the pair that was selected last.
    """
    for k in range(len(first) + choose):
        if not selected and (k == len(first) or not waiting):
            c, d = select(state, params, t, coin)  # the policy may change its state when it selects
        if k == len(first):
            break
        i, j = first[k], second[k]
        # A self-duel teaches nothing, unless the policy itself selects it now and wants its outcome.
        if waiting:
            wait(state, params, i, j)
        elif i != j or (c == i and d == j and skip(state, params, t) <= t):
            update(state, params, t, i, j, outcomes[k])
        t += 1
        selected = False
    return t, c, d


def no_wait(state: State, params: object, i: int, j: int) -> None:
    """Kernel: what a policy does about an unanswered duel that does not want to know of them."""


def rival(wins: np.ndarray, champion: int, t: int, alpha: float) -> int:
    """Kernel: the arm that a champion meets instead of itself: the one with the largest upper limit against it."""
    bonus = alpha * math.log(t)
    best, top = -1, -1.0
    for j in range(len(wins)):
        n = wins[j, champion] + wins[champion, j]
        upper = wins[j, champion] / n + math.sqrt(bonus / n) if n > 0 else 2.0
        if j != champion and upper > top:
            best, top = j, upper
    return best


def rival_alpha(policy: Policy) -> float:
    """Return the α of `rival`: the policy's own if it has one, else RUCB's default."""
    return float(getattr(policy.params, "alpha", 0.51))


class _Ahead(NamedTuple):
    """A scratch copy in which the open duels ended in ties, and what the policy selected after them."""

    state: State
    t: int
    chosen: tuple[int, int]


class SavedState(NamedTuple):
    """All that `PolicyState.restore` needs."""

    t: int
    coin: Mapping[str, object]  # the state of the random stream; survives JSON
    arrays: dict[str, np.ndarray]  # `state_` and a field's name → its array


class PolicyState:
    """The state of one policy on K arms after some answers. Interpreted at first, compiled when that pays."""

    def __init__(self, policy: Policy, arms: int, horizon: int | None, seed: int) -> None:
        """Start the policy.

        Args:
            policy: The policy.
            arms: How many arms it has.
            horizon: For policies that need one.
            seed: Of the policy's random stream.
        """
        self.policy, self.arms = policy, arms
        self.state: State = _copy(policy.start(arms, horizon))  # in C order, whatever `init` used
        self.t = 1
        self.coin = loop.streams(seed, 0)[0]
        self._spare = np.random.default_rng(0)  # the coin of the scratch copy
        self._steps: Any = self._spare.bit_generator  # it can go ahead, which its type does not say
        self._scratch: State = None  # a state whose arrays are overwritten
        self._ahead: _Ahead | None = None
        self._waits = policy.kernel("wait") is not None
        self._play = loop.bind_to(play_on, policy, _places(policy), compiled=False)
        self.compiled, self._can_compile = False, compiling.is_possible()
        self._spent, self._most_spent = 0.0, INTERPRETED[is_built_in(policy)]  # seconds in the interpreter

    def copy(self) -> "PolicyState":
        """Return a copy, which shares what was compiled."""
        twin = copy.copy(self)
        twin.state, twin.coin = _copy(self.state), copy.deepcopy(self.coin)
        twin._spare = np.random.default_rng(0)
        twin._steps = twin._spare.bit_generator
        twin._scratch, twin._ahead = None, None
        return twin

    def wants_compiling(self, at_once: bool = False) -> bool:
        """Return whether compiling, which takes seconds, pays: it has used much time, or has many arms."""
        slow = at_once or self._spent > self._most_spent or self.arms > SMALL
        return slow and not self.compiled and self._can_compile

    @property
    def size(self) -> int:
        """Bytes of its state, counted twice: the scratch copy is as large."""
        return 2 * sum(value.nbytes for value in self.state if isinstance(value, np.ndarray))

    def enter(self, first: np.ndarray, second: np.ndarray, outcomes: np.ndarray) -> None:
        """Enter answered duels.

        Args:
            first: (n,) int64: The policy's first arms.
            second: (n,) int64: Its second arms.
            outcomes: (n,) float64: 1 where the first arm won, 0 where it lost, ½ for ties.

        Raises:
            PolicyError: If the policy fails.
        """
        self._ahead = None
        self.t = self._time_call(self.state, first, second, outcomes, self.t, self.coin, False, False, 0, 0, False)[0]

    def will_compile(self, answers: int, at_once: bool) -> bool:
        """Return whether `catch_up` with this many answers starts with compiling."""
        return self.wants_compiling(at_once or answers > MANY)

    def catch_up(self, first: np.ndarray, second: np.ndarray, outcomes: np.ndarray, compiled: bool = False) -> None:
        """As `enter`, for many answers; compiles when that pays, or at once if `compiled`."""
        start = 0
        while True:
            if self.will_compile(len(first), compiled):
                self.compile()
            if start >= len(first):
                return
            end = len(first) if self.compiled else start + SLICE
            self.enter(first[start:end], second[start:end], outcomes[start:end])
            start = end

    def look_ahead(self, first: np.ndarray, second: np.ndarray) -> tuple[int, int]:
        """Return the pair that the policy would select while these duels are open; its state stays as it is.

        A policy without `wait` is told that they ended in ties.
        """
        state = self._scratch = _copy_to(self._scratch, self.state)
        self._toss(len(first))
        ties = np.full(len(first), 0.5)
        return self._look(state, first, second, ties, self.t, self._spare, self._waits, False, 0, 0, True)

    def look_further(self, i: int, j: int) -> tuple[int, int]:
        """Return the pair after that, once (i, j) was asked: as `look_ahead` with (i, j) as one more open duel."""
        assert self._ahead is not None
        state, t, (c, d) = self._ahead
        first, second = np.array([[i], [j]], np.int64)
        if self._waits:
            self._toss(t + 1 - self.t)
        return self._look(state, first, second, TIE, t, self._spare, self._waits, not self._waits, c, d, True)

    def _toss(self, open_duels: int) -> None:
        """Set the random numbers of a look ahead: the policy's own or, if it waits for open duels, unused ones."""
        self._steps.state = self.coin.bit_generator.state
        if self._waits:
            self._steps.advance(open_duels << 64)

    def _look(self, state: State, *duels: object) -> tuple[int, int]:
        t, i, j = map(int, self._time_call(state, *duels))
        if not (0 <= i < self.arms and 0 <= j < self.arms):
            raise PolicyError(f"policy {self.policy} chose arms {i} and {j} of {self.arms}: they do not exist")
        self._ahead = _Ahead(state, t, (i, j))
        return i, j

    def recommend(self, seed: int) -> int:
        """Return the arm that the policy recommends now."""
        return int(self._call(self.policy.module.recommend, _copy(self.state), loop.tie_break_rng(seed, 0, self.t)))

    def save(self) -> SavedState:
        """Return the state for a snapshot; its arrays are not copied."""
        values = self.state._asdict()
        arrays = {f"state_{name}": value for name, value in values.items() if isinstance(value, np.ndarray)}
        return SavedState(self.t, self.coin.bit_generator.state, arrays)

    def restore(self, saved: SavedState) -> None:
        """Restore what `saved` returned."""
        self.t = saved.t
        self.coin.bit_generator.state = saved.coin
        self.state = self.state._replace(
            **{name.removeprefix("state_"): np.ascontiguousarray(array) for name, array in saved.arrays.items()}
        )

    def _time_call(self, state: State, *arguments: object) -> Any:
        started = time.perf_counter()
        value = self._call(self._play, state, self.policy.params, *arguments)
        self._spent += time.perf_counter() - started
        return value

    def _call(self, kernel: Kernel, *arguments: object) -> Any:
        """Call a kernel; its errors become a PolicyError."""
        try:
            return kernel(*arguments)
        except DuelsError:
            raise
        except Exception as error:
            raise PolicyError(f"policy {self.policy} failed: {type(error).__name__}: {error}") from error

    def compile(self) -> None:
        """Compile the policy now, if numba can."""
        if not self.compiled and self._can_compile:
            try:
                self._play = _compile(self.policy, self.state)
                self.compiled = True
            except InvalidInput:
                self._can_compile = False  # it still works, only more slowly


def is_built_in(policy: Policy) -> bool:
    """Return whether a policy is one of this package."""
    return str(getattr(policy.module, "__name__", "")).startswith("duels.")


def _places(policy: Policy) -> dict[str, Kernel]:
    return {"wait": policy.kernel("wait", no_wait)}


def _compile(policy: Policy, state: State) -> Kernel:
    """The kernel, compiled for arguments of these types."""
    none, coin = np.zeros(0, np.int64), np.random.default_rng(0)
    duels = (_copy(state), policy.params, none, none, np.zeros(0), 1, coin, False, False, 0, 0, False)
    bound = loop.compile_for(policy, play_on, lambda call: call(*duels), _places(policy))
    return loop.entry_point(bound, *duels)


def _copy_to(scratch: State, state: State) -> State:
    if scratch is None:
        return _copy(state)
    for old, new in zip(scratch, state):
        if isinstance(new, np.ndarray):
            old[...] = new
    return scratch


def _copy(state: State) -> State:
    return type(state)(*(value.copy("C") if isinstance(value, np.ndarray) else value for value in state))
