"""A policy's state in a live study: updated by answers instead of simulated outcomes.

Answers are entered exactly as the simulator's loop plays them, with the same random streams. A study that answers one
question at a time therefore goes through the same states as run 0 of `simulate`.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..engine import compiling, loop
from ..engine.compiling import Kernel
from ..errors import DuelsError, InvalidInput, PolicyError
from ..policies import Policy, State

INTERPRETED = {True: 0.5, False: 5.0}  # seconds in the interpreter before a built-in policy, or a user's, is compiled
MANY = 2000  # answers: with more to enter at once, compiling pays
SMALL = 200  # arms: with more, compiling pays
SLICE = 50  # answers to enter in the interpreter before looking at the clock

UNBOUND: Any = None
select: Callable[..., tuple[int, int]] = UNBOUND  # placeholders for a policy's kernels
update = skip = wait = UNBOUND


def fold(
    state: State,
    params: object,
    first: np.ndarray,
    second: np.ndarray,
    outcomes: np.ndarray,
    t: int,
    coin: np.random.Generator,
) -> int:
    """Kernel: enter answered duels in order from time t on, as `loop.play` does; returns the time after them."""
    for k in range(len(first)):
        i, j = first[k], second[k]
        c, d = select(state, params, t, coin)  # the policy may change its state when it selects
        # A self-duel teaches nothing, unless the policy itself selects it now and wants its outcome.
        if i != j or (c == i and d == j and skip(state, params, t) <= t):
            update(state, params, t, i, j, outcomes[k])
        t += 1
    return t


def choose_next(state: State, params: object, t: int, coin: np.random.Generator) -> tuple[int, int]:
    """Kernel: the pair that the policy selects at time t."""
    return select(state, params, t, coin)


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


def choose_after(
    state: State, params: object, c: int, d: int, i: int, j: int, t: int, coin: np.random.Generator
) -> tuple[int, int]:
    """Kernel: enter a tie of (i, j), asked at time t where the policy selected (c, d), and select at t + 1."""
    if i != j or (c == i and d == j and skip(state, params, t) <= t):
        update(state, params, t, i, j, 0.5)
    return select(state, params, t + 1, coin)


def wait_for(
    state: State,
    params: object,
    first: np.ndarray,
    second: np.ndarray,
    outcomes: np.ndarray,
    t: int,
    coin: np.random.Generator,
) -> int:
    """Kernel: as `fold`, for unanswered duels of a policy that wants to know of them; the outcomes do not matter."""
    for k in range(len(first)):
        select(state, params, t, coin)
        wait(state, params, first[k], second[k])
        t += 1
    return t


def choose_while_waiting(
    state: State, params: object, c: int, d: int, i: int, j: int, t: int, coin: np.random.Generator
) -> tuple[int, int]:
    """Kernel: as `choose_after`, for a policy that wants to know of unanswered duels."""
    wait(state, params, i, j)
    return select(state, params, t + 1, coin)


class _Ahead(NamedTuple):
    """A scratch copy in which the open duels ended in ties, and what the policy selected after them."""

    state: State
    t: int
    chosen: tuple[int, int]


class SavedState(NamedTuple):
    """All that `Player.restore` needs."""

    t: int
    coin: Mapping[str, object]  # the state of the random stream; survives JSON
    arrays: dict[str, np.ndarray]  # `state_` and a field's name → its array


class Player:
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
        self.state: State = _copied(policy.start(arms, horizon))  # in C order, whatever `init` used
        self.t = 1
        self.coin = loop.streams(seed, 0)[0]
        self._spare = np.random.default_rng(0)  # the coin of the scratch copy
        self._scratch: State = None  # a state whose arrays are overwritten
        self._ahead: _Ahead | None = None
        self._fold, self._choose, self._wait, self._choose_after = _interpreted(policy)
        self.compiled, self._can_compile = False, compiling.is_possible()
        self._spent, self._most_spent = 0.0, INTERPRETED[is_built_in(policy)]  # seconds in the interpreter

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
        self.t = self._timed(self._fold, self.state, first, second, outcomes, self.t, self.coin)

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
        state = self._scratch = _copied_to(self._scratch, self.state)
        self._spare.bit_generator.state = self.coin.bit_generator.state
        t = self.t
        if len(first):
            t = self._timed(self._wait, state, first, second, np.full(len(first), 0.5), t, self._spare)
        chosen = self._timed(self._choose, state, t, self._spare)
        return self._looked(state, t, chosen)

    def look_further(self, i: int, j: int) -> tuple[int, int]:
        """Return the pair after that, once (i, j) was asked: as `look_ahead` with (i, j) as one more open duel."""
        assert self._ahead is not None
        state, t, (c, d) = self._ahead
        chosen = self._timed(self._choose_after, state, c, d, i, j, t, self._spare)
        return self._looked(state, t + 1, chosen)

    def _looked(self, state: State, t: int, chosen: Sequence[int]) -> tuple[int, int]:
        i, j = int(chosen[0]), int(chosen[1])
        if not (0 <= i < self.arms and 0 <= j < self.arms):
            raise PolicyError(f"policy {self.policy} chose arms {i} and {j} of {self.arms}: they do not exist")
        self._ahead = _Ahead(state, t, (i, j))
        return i, j

    def recommend(self, seed: int) -> int:
        """Return the arm that the policy recommends now."""
        return int(self._call(self.policy.module.recommend, _copied(self.state), loop.tie_break_rng(seed, 0, self.t)))

    def saved(self) -> SavedState:
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

    def _timed(self, kernel: Kernel, state: State, *arguments: object) -> Any:
        started = time.perf_counter()
        value = self._call(kernel, state, self.policy.params, *arguments)
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
                self._fold, self._choose, self._wait, self._choose_after = _compiled(self.policy, self.state)
                self.compiled = True
            except InvalidInput:
                self._can_compile = False  # it still works, only more slowly


def is_built_in(policy: Policy) -> bool:
    """Return whether a policy is one of this package."""
    return str(getattr(policy.module, "__name__", "")).startswith("duels.")


def _kernels(policy: Policy) -> tuple[Kernel, Kernel, Kernel, Kernel]:
    """The kernels that enter answers, choose a pair, enter unanswered duels, and enter one of them and choose."""
    if policy.kernel("wait") is None:
        return fold, choose_next, fold, choose_after
    return fold, choose_next, wait_for, choose_while_waiting


def _places(policy: Policy) -> dict[str, Kernel]:
    waiting = policy.kernel("wait")
    return {} if waiting is None else {"wait": waiting}


def _interpreted(policy: Policy) -> list[Kernel]:
    return [loop.bind_to(kernel, policy, _places(policy), compiled=False) for kernel in _kernels(policy)]


def _compiled(policy: Policy, state: State) -> list[Kernel]:
    coin = np.random.default_rng(0)
    none, outcomes = np.zeros(0, np.int64), np.zeros(0)
    duels, pair = (none, none, outcomes, 1, coin), (0, 1, 0, 1, 1, coin)
    arguments: list[tuple[object, ...]] = [duels, (1, coin), duels, pair]
    compiled: dict[Kernel, Kernel] = {}
    for kernel, given in zip(_kernels(policy), arguments):
        if kernel not in compiled:
            compiled[kernel] = _entry(policy, kernel, (_copied(state), policy.params, *given))
    return [compiled[kernel] for kernel in _kernels(policy)]


def _entry(policy: Policy, kernel: Kernel, arguments: tuple[object, ...]) -> Kernel:
    """The kernel, compiled for arguments of these types."""
    bound = loop.compiled_for(policy, kernel, lambda call: call(*arguments), _places(policy))
    return loop.entry_point(bound, *arguments)


def _copied_to(scratch: State, state: State) -> State:
    if scratch is None:
        return _copied(state)
    for old, new in zip(scratch, state):
        if isinstance(new, np.ndarray):
            old[...] = new
    return scratch


def _copied(state: State) -> State:
    return type(state)(*(value.copy("C") if isinstance(value, np.ndarray) else value for value in state))
