"""The loop that plays a policy: one for all policies and worlds, interpreted or compiled.

`play` calls kernels by global names that are None here; `bind` replaces them by the kernels of one policy and the
outcome of one world.
"""

import dis
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ..errors import CompileError, DuelsError, shorten
from ..policies import Policy, State
from ..policies.kernels import FOREVER as FOREVER
from . import compiling
from .compiling import Kernel, Kernels

LATEST = 10**15  # the largest horizon for which all arithmetic on times is exact
Play = Callable[..., tuple[int, int]]  # `play`, with kernels in it


class Tally(NamedTuple):
    """What a run has played so far: counts of pairs, and counts of arms that make regret quick to compute."""

    wins: np.ndarray  # (K, K) float64: duels i won over j, a tie a half to both; [i, i] = duels of i with itself
    played: np.ndarray  # (K,) float64: how often the arm was one of the two; twice for a duel with itself
    cheaper: np.ndarray  # (K,) float64: how often it was the one with the smaller cost; once per duel
    cost: np.ndarray  # (K,) float64: the cost of each arm


def new_tally(arms: int, cost: np.ndarray | None = None) -> Tally:
    """Return a tally without duels; by default all arms cost the same."""
    costs = np.zeros(arms) if cost is None else np.array(cost)  # a copy: numba has another type for read-only arrays
    return Tally(np.zeros((arms, arms)), np.zeros(arms), np.zeros(arms), costs)


UNBOUND: Any = None
select = update = skip = recommend = outcome = UNBOUND  # placeholders for a policy's kernels and a world's outcome


def play(
    state: State,
    params: object,
    world: object,
    tally: Tally,
    t: int,
    until: int,
    stride: int,
    budget: int,
    coin: np.random.Generator,
    luck: np.random.Generator,
    adviser: np.random.Generator,
) -> tuple[int, int]:
    """Play steps t … until, at most `budget` of them one by one; the next time, and the arm recommended at the end."""
    arms = len(tally.played)
    while t <= until and budget > 0:
        budget -= 1
        i, j = select(state, params, t, coin)
        if i < 0 or j < 0 or i >= arms or j >= arms:
            raise IndexError("select chose an arm that does not exist")
        later = t if i != j else skip(state, params, t)
        if later > t:  # a self-duel that teaches nothing, and the same one until `later`
            later = min(later, t + stride, until + 1)
            count_self_duels(tally, i, later - t)
            t = later
            continue
        won = outcome(world, i, j, luck)
        update(state, params, t, i, j, won)
        if i == j:
            count_self_duels(tally, i, 1)
        else:
            count_duel(tally, i, j, won)
        t += 1
    return t, recommend(state, adviser) if t > until else -1


def count_duel(tally: Tally, i: int, j: int, won: float) -> None:
    tally.wins[i, j] += won
    tally.wins[j, i] += 1.0 - won
    tally.played[i] += 1.0
    tally.played[j] += 1.0
    tally.cheaper[i if tally.cost[i] <= tally.cost[j] else j] += 1.0


def count_self_duels(tally: Tally, i: int, duels: int) -> None:
    tally.wins[i, i] += duels
    tally.played[i] += 2.0 * duels
    tally.cheaper[i] += duels


def draw_from_matrix(world: np.ndarray, i: int, j: int, luck: np.random.Generator) -> float:
    """The outcome kernel of a preference matrix: whether i beats j, by chance P[i, j]."""
    return 1.0 if luck.random() < world[i, j] else 0.0


def one_step(state: State, params: object, t: int) -> int:
    """The `skip` of a policy that has none."""
    return t + 1


def streams(seed: int, run: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return a run's two random generators: the policy's coin and the world's luck."""
    coin, luck = np.random.SeedSequence([seed, run]).spawn(2)
    return np.random.default_rng(coin), np.random.default_rng(luck)


def tie_break_rng(seed: int, run: int, t: int) -> np.random.Generator:
    """Return the generator that breaks ties in the recommendation at time t; it depends on no other time."""
    return np.random.default_rng(np.random.SeedSequence([seed, run], spawn_key=(2, t)))


def bind(
    policy: Policy,
    outcome: Kernel = draw_from_matrix,
    kernels: Kernels | None = None,
    *,
    compiled: bool = True,
    refcounted: bool = False,
) -> Play:
    """Return `play` with the kernels of a policy and the outcome of a world.

    Args:
        policy: The policy. In a policy of your own, a division by zero is an error.
        outcome: The outcome kernel.
        kernels: Kernels that the outcome kernel calls by global names that are None.
        compiled: False returns interpreted code.
        refcounted: Must be True for a policy whose kernels create arrays.
    """
    places = {"outcome": outcome, **(kernels or {})}
    bound = bind_to(play, policy, places, compiled=compiled, refcounted=refcounted, strict=not is_ours(policy))
    if compiled:
        return bound

    def call_interpreted(*arguments: object) -> tuple[int, int]:
        with strictly(policy):
            t, arm = bound(*arguments)
            return t, arm

    return call_interpreted


def bind_to(
    function: Kernel,
    policy: Policy,
    kernels: Kernels | None = None,
    *,
    compiled: bool = True,
    refcounted: bool = False,
    strict: bool = False,
) -> Kernel:
    """Return a function with the kernels of a policy, and other `kernels`, in place of the names that are None."""
    places = _places(policy) | dict(kernels or {})
    if not compiled:
        return compiling.interpret_with(function, places)
    name = f"{function.__name__}_{policy.name}"
    return compiling.compile_with(function, places, name=name, refcounted=refcounted, strict=strict)


def is_ours(policy: Policy) -> bool:
    """Return whether a policy is built in. These follow their papers' conventions for x/0, and are tested on them."""
    return compiling.is_ours(*_places(policy).values())


def strictly(policy: Policy) -> np.errstate:
    """Return a context in which numpy's division by zero is an error, unless the policy is built in."""
    return np.errstate() if is_ours(policy) else np.errstate(divide="raise", invalid="raise")


def code_of(policy: Policy) -> str:
    """Hash the code that plays a policy: the hash changes when any of its kernels does. Studies store it."""
    played = compiling.fingerprint(play, _places(policy) | {"outcome": draw_from_matrix}, {})
    started = compiling.fingerprint(policy.module.init, {}, {})
    return played[:8] + started[:8]


def _places(policy: Policy) -> dict[str, Kernel]:
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
    world: object,
    outcome: Kernel = draw_from_matrix,
    kernels: Kernels | None = None,
) -> Play:
    """Like `bind`, and compile at once: compiling must not happen in a thread, nor be timed as play."""
    coin, luck = streams(0, 0)
    state, tally = policy.start(arms, horizon), new_tally(arms)

    def trial(bound: Kernel) -> None:
        bound(state, policy.params, world, tally, 1, 0, 1, 0, coin, luck, coin)

    return compile_for(policy, play, trial, {"outcome": outcome, **(kernels or {})}, strict=not is_ours(policy))


def compile_for(
    policy: Policy,
    function: Kernel,
    trial: Callable[[Kernel], object],
    kernels: Kernels | None = None,
    *,
    strict: bool = False,
) -> Kernel:
    """Return a function with a policy's kernels, compiled by a trial call; with reference counts only if needed.

    Raises:
        CompileError: If numba cannot compile it.
    """
    causes: list[Exception] = []
    for refcounted in (False, True):
        bound = bind_to(function, policy, kernels, refcounted=refcounted, strict=strict)
        try:
            with _interrupts_kept():
                trial(bound)
            return bound
        except DuelsError:
            raise
        except Exception as error:  # numba's own, and what its lowering raises
            causes.append(error)
    raise CompileError(
        f"policy {policy.name!r} cannot be compiled by numba: {_complaint(policy, causes)}; "
        "see docs/policies.md, or play it with compiled=False"
    ) from causes[-1]


def entry_point(bound: Kernel, *arguments: object) -> Kernel:
    """Return the machine code for arguments of exactly these types, without numba's dispatch at every call.

    The dispatch takes longer than a short stretch of play.
    """
    if not hasattr(bound, "overloads"):
        return bound  # interpreted
    dispatcher: Any = bound
    found = dispatcher.overloads.get(tuple(dispatcher.typeof_pyval(argument) for argument in arguments))
    code: Kernel = bound if found is None else found.entry_point
    return code


def _complaint(policy: Policy, errors: list[Exception]) -> str:
    """The line at which numba stops and its reason, as one line."""
    functions = _functions(policy)
    if wrong := _not_a_pair(policy):
        return wrong
    places = [place for error in errors for place in _places_named(str(error), functions)]
    places += [place for error in errors if not places and (place := _guess(error, functions))]
    where = (places or [functions[0].__code__.co_filename])[0]
    lines = [line.strip() for line in str(errors[-1]).splitlines() if line.strip()]
    relevant = [line for line in lines if not line.startswith(("Failed in", "During:", "File", "<source", "- ", "^"))]
    reason = (relevant or lines or [type(errors[-1]).__name__])[0]
    if reason.endswith("signature:"):  # which is on the next line
        reason = " ".join([reason, *(line.removeprefix(">>> ") for line in relevant[1:2])])
    return f"{where}: {reason[:300]}"


def _not_a_pair(policy: Policy) -> str:
    """Where `select` returns something other than two arms; empty if it returns two, or fails."""
    select = policy.module.select
    try:
        found = select(policy.start(2, 100), policy.params, 1, np.random.default_rng(0))
    except Exception:
        return ""
    if isinstance(found, tuple) and len(found) == 2:
        return ""
    code = select.__code__
    place = f"{code.co_filename}, line {code.co_firstlineno}, in {select.__name__}"
    return f"{place}: it returns {shorten(found)}, expected two arms, such as (0, 1)"


def _functions(policy: Policy) -> list[Kernel]:
    """The functions that are compiled for a policy, its own before those of this package."""
    found = [one for kernel in _places(policy).values() for one in compiling.all_functions(kernel, {})]
    return sorted(dict.fromkeys(found), key=compiling.is_ours)


def place_of(policy: Policy, error: BaseException) -> str:
    """Return where in a policy of your own an error was raised: ` (mine.py, line 3, in select)`; empty if elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    functions = [one for one in _functions(policy) if not compiling.is_ours(one)]
    found = [_place(functions, frame.filename, frame.lineno or 0) for frame in frames]
    return next((f" ({place})" for place in reversed(found) if place), "")


def file_of(policy: Policy) -> str:
    """Return the file of a policy of your own: ` (mine.py)`; empty for a built-in one."""
    own = [one for one in _functions(policy) if not compiling.is_ours(one)]
    return f" ({own[0].__code__.co_filename})" if own else ""


def _places_named(text: str, functions: list[Kernel]) -> list[str]:
    """The lines of these functions that a numba error mentions, innermost first."""
    named = re.findall(r'File "([^"]+)", line (\d+)| at (\S[^\n]*?) \((\d+)\)', text)
    found = [_place(functions, file or at, int(line or number)) for file, line, at, number in named]
    return [place for place in found if place]


def _place(functions: list[Kernel], file: str, line: int) -> str:
    for function in functions:
        code = function.__code__
        lines = {at for *_, at in code.co_lines() if at}
        if min(lines) <= line <= max(lines) and Path(file).resolve() == Path(code.co_filename).resolve():
            return f"{code.co_filename}, line {line}, in {function.__name__}"
    return ""


def _guess(error: Exception, functions: list[Kernel]) -> str:
    """The function behind an error without a line: the one with the unknown name, or that numba cannot parse."""
    from numba.core.compiler import run_frontend

    unknown = re.search(r"name '(\w+)' is not defined", str(error))
    for function in functions:
        for step in dis.get_instructions(function):
            if unknown and step.argval == unknown[1] and step.positions and step.positions.lineno:
                return _place(functions, function.__code__.co_filename, step.positions.lineno)
    for function in () if unknown else functions:
        try:
            run_frontend(function)
        except Exception:
            return f"{function.__code__.co_filename}, line {function.__code__.co_firstlineno}, in {function.__name__}"
    return ""


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if Ctrl-C was lost in one of numba's callbacks."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield
        return
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if seen:
        raise KeyboardInterrupt
