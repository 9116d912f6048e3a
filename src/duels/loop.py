"""The one loop that plays a policy, for every policy and every world, interpreted or compiled.

`play` calls its kernels by global names; `bind` puts one policy's kernels and one world's outcome in their places.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import compiling
from .errors import DuelsError, InvalidInput
from .policies import Policy
from .policies.kernels import FOREVER as FOREVER

LATEST = 10**15  # horizons up to here keep all arithmetic on times exact


# A policy's kernels and a world's outcome, in whose places `bind` puts them.
select: Any = None
update: Any = None
skip: Any = None
recommend: Any = None
outcome: Any = None


def play(state, params, world, tally, t, until, stride, budget, coin, luck, adviser):
    """Play steps t … until, at most `budget` of them one by one; the next time, and the arm recommended at the end.

    `tally[i, j]` counts the duels i won over j (a tie a half to both), `tally[i, i]` the duels of i with itself.
    """
    arms = len(tally)
    while t <= until and budget > 0:
        budget -= 1
        i, j = select(state, params, t, coin)
        if i < 0 or j < 0 or i >= arms or j >= arms:
            raise IndexError("select chose an arm that does not exist")
        later = t if i != j else skip(state, params, t)
        if later > t:  # a self-duel that teaches nothing, and the same one until `later`
            later = min(later, t + stride, until + 1)
            tally[i, i] += later - t
            t = later
            continue
        won = outcome(world, i, j, luck)
        update(state, params, t, i, j, won)
        if i == j:
            tally[i, i] += 1.0
        else:
            tally[i, j] += won
            tally[j, i] += 1.0 - won
        t += 1
    return t, recommend(state, adviser) if t > until else -1


def draw_from_matrix(world, i, j, luck):
    """The outcome kernel of a preference matrix: whether i beats j, by chance P[i, j]."""
    return 1.0 if luck.random() < world[i, j] else 0.0


def one_step(state, params, t):
    """The `skip` of a policy that has none."""
    return t + 1


def streams(seed: int, run: int) -> tuple[np.random.Generator, np.random.Generator]:
    """A run's two sources of chance: the policy's coin and the world's luck."""
    coin, luck = np.random.SeedSequence([seed, run]).spawn(2)
    return np.random.default_rng(coin), np.random.default_rng(luck)


def adviser(seed: int, run: int, t: int) -> np.random.Generator:
    """The chance that breaks ties in the recommendation at time t; the same whichever other times are looked at."""
    return np.random.default_rng(np.random.SeedSequence([seed, run], spawn_key=(2, t)))


def bind(
    policy: Policy,
    outcome: Callable = draw_from_matrix,
    kernels: dict[str, Callable] | None = None,
    *,
    compiled: bool = True,
    counted: bool = False,
) -> Callable:
    """`play` with this policy's kernels and this outcome in it, and the `kernels` that the outcome itself leaves open.

    A policy whose kernels make arrays must be `counted`.
    """
    return bind_to(play, policy, {"outcome": outcome, **(kernels or {})}, compiled=compiled, counted=counted)


def bind_to(
    function: Callable,
    policy: Policy,
    kernels: dict[str, Callable] | None = None,
    *,
    compiled: bool = True,
    counted: bool = False,
) -> Callable:
    """Any function that leaves a policy's kernels open, with them in their places."""
    places = _places(policy) | (kernels or {})
    if not compiled:
        return compiling.interpret_with(function, places)
    return compiling.compile_with(function, places, name=f"{function.__name__}_{policy.name}", counted=counted)


def code_of(policy: Policy) -> str:
    """A hash of the code that plays a policy: it changes when any of its kernels does."""
    played = compiling.fingerprint(play, _places(policy) | {"outcome": draw_from_matrix}, {})
    started = compiling.fingerprint(policy.module.init, {}, {})
    return played[:8] + started[:8]


def _places(policy: Policy) -> dict[str, Callable]:
    module = policy.module
    return {
        "select": module.select,
        "update": module.update,
        "recommend": module.recommend,
        "skip": policy.kernel("skip", one_step),
    }


def ready(
    policy: Policy,
    arms: int,
    horizon: int,
    world: Any,
    outcome: Callable = draw_from_matrix,
    kernels: dict[str, Callable] | None = None,
) -> Callable:
    """`bind`, with the compilation done: compiling must not happen in a thread, nor be measured as play."""
    coin, luck = streams(0, 0)
    state, tally = policy.start(arms, horizon), np.zeros((arms, arms))

    def trial(bound: Callable) -> None:
        bound(state, policy.params, world, tally, 1, 0, 1, 0, coin, luck, coin)

    return compiled_for(policy, play, trial, {"outcome": outcome, **(kernels or {})})


def compiled_for(
    policy: Policy, function: Callable, trial: Callable[[Callable], Any], kernels: dict[str, Callable] | None = None
) -> Callable:
    """The function with this policy's kernels in it, compiled by a trial call; counted if it cannot be without."""
    cause = Exception()
    for counted in (False, True):
        bound = bind_to(function, policy, kernels, counted=counted)
        try:
            with _interrupts_kept():
                trial(bound)
            return bound
        except DuelsError:
            raise
        except Exception as error:  # numba's own, and what its lowering raises
            cause = error
    raise InvalidInput(
        f"policy {policy.name!r} cannot be compiled by numba: {_complaint(cause)}; "
        "see docs/policies.md, or play it with compiled=False"
    ) from cause


def direct(bound: Any, *arguments: Any) -> Callable:
    """What is compiled for arguments of these very types, past numba's look at them at every call.

    That look takes longer than a short stretch of play.
    """
    if not hasattr(bound, "overloads"):
        return bound  # interpreted
    found = bound.overloads.get(tuple(bound.typeof_pyval(argument) for argument in arguments))
    return bound if found is None else found.entry_point


def _complaint(error: Exception) -> str:
    """What numba objects to, and where, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During:", "File", "<source", "- ", "^"))]
    places = [line for line in lines if line.startswith("File ") and f"{__name__.rpartition('.')[2]}.py" not in line]
    where = f" ({places[0].rstrip(':')})" if places else ""
    return f"{(telling or lines or [type(error).__name__])[0][:300]}{where}"


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Ctrl-C while numba compiles can get lost in a callback of its; it is raised again at the end."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield
        return
    seen = []

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if seen:
        raise KeyboardInterrupt
