"""The one loop that plays a policy, for every policy and every world, interpreted or compiled.

`play` calls its kernels by global names. `bind` gives a copy of its code a namespace in which those names are one
policy's kernels and one world's outcome, and compiles that with numba. Compiled loops are kept on disk under a name
that carries a hash of all the code they were made from, so that editing any kernel in any file makes a new one.
"""

import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .errors import InvalidInput
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
    while t <= until and budget > 0:
        budget -= 1
        i, j = select(state, params, t, coin)
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
    policy: Policy, outcome: Callable = draw_from_matrix, compiled: bool = True, counted: bool = False
) -> Callable:
    """`play` with this policy's kernels and this outcome in it; kernels that make arrays must be `counted`."""
    module = policy.module
    kernels = {
        "select": module.select,
        "update": module.update,
        "recommend": module.recommend,
        "skip": policy.kernel("skip", one_step),
        "outcome": outcome,
    }
    if not compiled:
        return types.FunctionType(play.__code__, globals() | kernels)
    key = (policy.name, counted, *kernels.values())
    if key not in _bound:
        _bound[key] = _compile(policy, kernels, counted)
    return _bound[key]


def ready(policy: Policy, arms: int, horizon: int, world: Any, outcome: Callable = draw_from_matrix) -> Callable:
    """`bind`, with the compilation done: compiling must not happen in a thread, nor be measured as play."""
    import numba

    coin, luck = streams(0, 0)
    try:
        for counted in (False, True):
            bound = bind(policy, outcome, counted=counted)
            try:
                state = policy.start(arms, horizon)
                bound(state, policy.params, world, np.zeros((arms, arms)), 1, 0, 1, 0, coin, luck, coin)
                break
            except numba.core.errors.NumbaError:
                if counted:
                    raise
    except numba.core.errors.NumbaError as error:
        raise InvalidInput(
            f"policy {policy.name!r} cannot be compiled by numba; run it with compiled=False, or mend this:\n"
            + "\n".join(line for line in str(error).splitlines() if line.strip())[:2000]
        ) from None
    return bound


_bound: dict[tuple, Callable] = {}


def _compile(policy: Policy, kernels: dict[str, Callable], counted: bool) -> Callable:
    import numba

    # Inlined, and without reference counts on the state's arrays, a step is four times as fast.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": counted}
    made: dict[Callable, Any] = {}

    def compiled(function):
        if function not in made:
            namespace = dict(function.__globals__)
            made[function] = numba.njit(**options)(_rebound(function, namespace, function.__name__))
            for name, used in _functions_used(function):
                namespace[name] = compiled(used)
        return made[function]

    namespace = globals() | {name: compiled(kernel) for name, kernel in kernels.items()}
    loop = _rebound(play, namespace, f"play_{policy.name}_{_fingerprint(kernels, options)}")
    built_in = all(kernel.__module__.startswith("duels.") for kernel in kernels.values())
    try:
        return numba.njit(cache=built_in, **options)(loop)
    except RuntimeError:  # nowhere to keep it: neither beside the package nor in the user's cache directory
        return numba.njit(**options)(loop)


def _rebound(function: Callable, namespace: dict[str, Any], name: str) -> Callable:
    code = function.__code__.replace(co_name=name, co_qualname=name)
    return types.FunctionType(code, namespace, name, function.__defaults__, function.__closure__)


def _functions_used(function: Callable) -> Iterator[tuple[str, Callable]]:
    """The plain functions that a function calls by global name."""
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if isinstance(used, types.FunctionType):
            yield name, used


def _fingerprint(kernels: dict[str, Callable], options: dict[str, Any]) -> str:
    """A hash of all that the compiled code depends on: code, constants and the fields of tuples."""
    seen: dict[Callable, None] = {}

    def walk(function):
        if function not in seen:
            seen[function] = None
            for _, used in _functions_used(function):
                walk(used)

    for function in (play, *kernels.values()):
        walk(function)
    text = [str(options)]
    text += [f"{name}={kernel.__module__}.{kernel.__qualname__}" for name, kernel in kernels.items()]
    for function in seen:
        text.append(
            f"{function.__module__}.{function.__qualname__}{_code_text(function.__code__)}{function.__defaults__}"
        )
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, bool | int | float | str | tuple):
                text.append(f"{name}={value!r}")
    for space in {function.__module__: function.__globals__ for function in seen}.values():
        text += [f"{name}{value._fields}" for name, value in space.items() if hasattr(value, "_fields")]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def _code_text(code: types.CodeType) -> str:
    constants = [_code_text(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}{code.co_freevars}"
