"""A policy that is asked and told instead of played: the state after the answers so far, and the next question.

The answers are folded as the simulator's loop plays them, with the same source of chance: a study that answers one
question at a time goes through the very states of `simulate`'s run 0.
"""

import math
import time
from typing import Any, NamedTuple

import numpy as np

from ..engine import loop
from ..errors import DuelsError, InvalidInput, PolicyError
from ..policies import Policy

PATIENCE = {True: 0.5, False: 5.0}  # seconds in the interpreter before a built-in policy, or one's own, is compiled
MANY = 2000  # answers to fold at once that are worth compiling for
SMALL = 200  # arms with which the interpreter is quick enough
SLICE = 50  # answers to fold in the interpreter before looking at the clock

select: Any = None
update: Any = None
skip: Any = None


def fold(state, params, first, second, outcomes, t, coin):
    """Enter answered duels in order from time t on; the time after them. What `loop.play` does, with given outcomes."""
    for k in range(len(first)):
        i, j = first[k], second[k]
        c, d = select(state, params, t, coin)  # whatever the policy decides before its duel
        # A self-duel teaches nothing, unless the policy itself chooses it now and wants its outcome.
        if i != j or (c == i and d == j and skip(state, params, t) <= t):
            update(state, params, t, i, j, outcomes[k])
        t += 1
    return t


def choose_next(state, params, t, coin):
    """The pair that the policy would have duel at time t."""
    return select(state, params, t, coin)


def rival(wins, champion, t, alpha):
    """Kernel: whom a champion meets in place of itself: the arm with the largest upper limit against it (RUCB's u)."""
    bonus = alpha * math.log(t)
    best, top = -1, -1.0
    for j in range(len(wins)):
        n = wins[j, champion] + wins[champion, j]
        upper = wins[j, champion] / n + math.sqrt(bonus / n) if n > 0 else 2.0
        if j != champion and upper > top:
            best, top = j, upper
    return best


def rival_alpha(policy: Policy) -> float:
    """The α of `rival`: the policy's own if it has one, else RUCB's usual."""
    return float(getattr(policy.params, "alpha", 0.51))


def choose_after(state, params, c, d, i, j, t, coin):
    """After `select` chose (c, d) at time t and (i, j) was asked: enter that as a tie, and choose at t + 1."""
    if i != j or (c == i and d == j and skip(state, params, t) <= t):
        update(state, params, t, i, j, 0.5)
    return select(state, params, t + 1, coin)


class _Ahead(NamedTuple):
    """A scratch copy in which the open duels ended in ties, and what the policy chose after them."""

    state: Any
    t: int
    chosen: tuple[int, int]


class Player:
    """The state of one policy on K arms after some answers. Interpreted at first, compiled when that pays."""

    def __init__(self, policy: Policy, arms: int, horizon: int | None, seed: int) -> None:
        self.policy, self.arms = policy, arms
        self.state = _copied(policy.start(arms, horizon))  # in C order, whatever order `init` made its arrays in
        self.t = 1
        self.coin = loop.streams(seed, 0)[0]
        self._spare = np.random.default_rng(0)  # the coin of the scratch copy
        self._scratch: Any = None  # a state's arrays, to be written over
        self._ahead: _Ahead | None = None
        self._fold, self._choose, self._choose_after = _interpreted(policy)
        self.compiled, self._can_compile = False, True
        self._spent, self._patience = 0.0, PATIENCE[is_built_in(policy)]

    def wants_compiling(self, at_once: bool = False) -> bool:
        """Whether compiling, which takes seconds, pays: it has been slow for long, or has many arms."""
        slow = at_once or self._spent > self._patience or self.arms > SMALL
        return slow and not self.compiled and self._can_compile

    @property
    def size(self) -> int:
        """Bytes of its state, twice: the scratch copy is as large."""
        return 2 * sum(value.nbytes for value in self.state if isinstance(value, np.ndarray))

    def enter(self, first: Any, second: Any, outcomes: Any) -> None:
        """Fold answered duels in; outcomes are the first arm's, ties a half."""
        self._ahead = None
        self.t = self._timed(self._fold, self.state, first, second, outcomes, self.t, self.coin)

    def will_compile(self, answers: int, at_once: bool) -> bool:
        """Whether `catch_up` with so many answers begins with compiling."""
        return self.wants_compiling(at_once or answers > MANY)

    def catch_up(self, first: Any, second: Any, outcomes: Any, compiled: bool = False) -> None:
        """As `enter`, with many answers; compiles when that pays, or at once."""
        start = 0
        while True:
            if self.will_compile(len(first), compiled):
                self.compile()
            if start >= len(first):
                return
            end = len(first) if self.compiled else start + SLICE
            self.enter(first[start:end], second[start:end], outcomes[start:end])
            start = end

    def look_ahead(self, first: Any, second: Any) -> tuple[int, int]:
        """The next pair, if the given open duels ended in ties; nothing is changed."""
        state = self._scratch = _copied_to(self._scratch, self.state)
        self._spare.bit_generator.state = self.coin.bit_generator.state
        t = self.t
        if len(first):
            t = self._timed(self._fold, state, first, second, np.full(len(first), 0.5), t, self._spare)
        chosen = self._timed(self._choose, state, t, self._spare)
        return self._looked(state, t, chosen)

    def look_further(self, i: int, j: int) -> tuple[int, int]:
        """The pair after that, once (i, j) was asked: what `look_ahead` would say with it among the open duels."""
        assert self._ahead is not None
        state, t, (c, d) = self._ahead
        chosen = self._timed(self._choose_after, state, c, d, i, j, t, self._spare)
        return self._looked(state, t + 1, chosen)

    def _looked(self, state: Any, t: int, chosen: Any) -> tuple[int, int]:
        i, j = int(chosen[0]), int(chosen[1])
        if not (0 <= i < self.arms and 0 <= j < self.arms):
            raise PolicyError(f"policy {self.policy} chose arms {i} and {j} of {self.arms}: they do not exist")
        self._ahead = _Ahead(state, t, (i, j))
        return i, j

    def recommend(self, seed: int) -> int:
        """The arm that the policy would name now."""
        return int(self._heard(self.policy.module.recommend, _copied(self.state), loop.tie_break_rng(seed, 0, self.t)))

    def saved(self) -> dict[str, Any]:
        """All that `restore` needs: arrays, and plain values that survive JSON."""
        values = self.state._asdict()
        arrays = {f"state_{name}": value for name, value in values.items() if isinstance(value, np.ndarray)}
        return {"t": self.t, "coin": self.coin.bit_generator.state, "arrays": arrays}

    def restore(self, saved: dict[str, Any]) -> None:
        self.t = saved["t"]
        self.coin.bit_generator.state = saved["coin"]
        self.state = self.state._replace(
            **{name.removeprefix("state_"): np.ascontiguousarray(array) for name, array in saved["arrays"].items()}
        )

    def _timed(self, kernel: Any, state: Any, *arguments: Any) -> Any:
        started = time.perf_counter()
        answer = self._heard(kernel, state, self.policy.params, *arguments)
        self._spent += time.perf_counter() - started
        return answer

    def _heard(self, kernel: Any, *arguments: Any) -> Any:
        """What a kernel answers; an error of the policy's own is named as such."""
        try:
            return kernel(*arguments)
        except DuelsError:
            raise
        except Exception as error:
            raise PolicyError(f"policy {self.policy} failed: {type(error).__name__}: {error}") from error

    def compile(self) -> None:
        """Compile now, if numba can."""
        if not self.compiled and self._can_compile:
            try:
                self._fold, self._choose, self._choose_after = _compiled(self.policy, self.arms, self.state)
                self.compiled = True
            except InvalidInput:
                self._can_compile = False  # it works as it is, only more slowly


def is_built_in(policy: Policy) -> bool:
    return str(getattr(policy.module, "__name__", "")).startswith("duels.")


def _interpreted(policy: Policy) -> list[Any]:
    return [loop.bind_to(kernel, policy, compiled=False) for kernel in (fold, choose_next, choose_after)]


def _compiled(policy: Policy, arms: int, state: Any) -> list[Any]:
    coin = np.random.default_rng(0)
    none, outcomes = np.zeros(0, np.int64), np.zeros(0)
    arguments: dict[Any, tuple] = {
        fold: (none, none, outcomes, 1, coin),
        choose_next: (1, coin),
        choose_after: (0, 1, 0, 1, 1, coin),
    }
    return [_entry(policy, kernel, (_copied(state), policy.params, *given)) for kernel, given in arguments.items()]


def _entry(policy: Policy, kernel: Any, arguments: tuple) -> Any:
    """The compiled kernel for arguments of these types."""
    return loop.entry_point(loop.compiled_for(policy, kernel, lambda call: call(*arguments)), *arguments)


def _copied_to(scratch: Any, state: Any) -> Any:
    if scratch is None:
        return _copied(state)
    for old, new in zip(scratch, state):
        if isinstance(new, np.ndarray):
            old[...] = new
    return scratch


def _copied(state: Any) -> Any:
    return type(state)(*(value.copy("C") if isinstance(value, np.ndarray) else value for value in state))
