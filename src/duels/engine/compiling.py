"""Compiling plain Python kernels with numba, kept on disk and never stale.

A kernel calls other functions by global names. `compile_with` gives a copy of its code a namespace in which all of
these are compiled too, and puts kernels in the places of global names that are None. What is compiled from this
package's code alone is kept on disk, under a name that carries a hash of all the code and constants it was made from:
editing any kernel in any file makes a new one. (numba's own cache watches only the file of the function it compiled.)
"""

import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

_made: dict[tuple, Callable] = {}


def compile_with(
    function: Callable,
    kernels: dict[str, Callable] | None = None,
    *,
    name: str = "",
    counted: bool = False,
    strict: bool = False,
) -> Callable:
    """The function compiled, with `kernels` in their places in it and in all it calls.

    `counted` keeps reference counts, which kernels that make arrays need. `strict` raises ZeroDivisionError where
    Python does; else x/0 is infinite or NaN. The compiled code releases the GIL.
    """
    kernels = kernels or {}
    key = (function, name, counted, strict, *kernels.items())
    if key not in _made:
        _made[key] = _compiled(function, kernels, name or function.__name__, counted, strict)
    return _made[key]


def interpret_with(function: Callable, kernels: dict[str, Callable]) -> Callable:
    """The same, in the interpreter."""
    return _copied(function, kernels, lambda copy: copy, {})


def _compiled(function: Callable, kernels: dict[str, Callable], name: str, counted: bool, strict: bool) -> Callable:
    import numba

    # Inlined, and without reference counts on the arrays passed about, a step of a policy is four times as fast.
    options: dict[str, Any] = {"nogil": True, "error_model": "python" if strict else "numpy"}
    options |= {"forceinline": True, "_nrt": counted}
    name = f"{name}_{fingerprint(function, kernels, options | {'entry': 'counted'})}"
    # Only the entry is called from Python. Without the others' wrappers compiling takes two thirds of the time.
    inner = options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    entry = _entry(name, function, _copied(function, kernels, numba.njit(**inner), {}))
    options["_nrt"] = True  # without reference counts in the entry, every call would leak the generators it is given
    try:
        return numba.njit(cache=is_ours(function, *kernels.values()), **options)(entry)
    except RuntimeError:  # nowhere to keep it: neither beside the package nor in the user's cache directory
        return numba.njit(**options)(entry)


def _entry(name: str, function: Callable, compiled: Callable) -> Callable:
    """A function of that name with the arguments and the file of `function`, which calls `compiled`.

    What is compiled without reference counts must return numbers, not arrays.
    """
    code = function.__code__
    arguments = ", ".join(code.co_varnames[: code.co_argcount])
    namespace: dict[str, Any] = {"__name__": function.__module__, "compiled": compiled}
    exec(compile(f"def {name}({arguments}):\n    return compiled({arguments})\n", code.co_filename, "exec"), namespace)
    return namespace[name]


def is_ours(*functions: Callable) -> bool:
    """Whether all of these are this package's."""
    return all(one.__module__.startswith("duels.") for one in functions)


def _copied(function: Callable, kernels: dict[str, Callable], wrap: Callable, done: dict[Callable, Any]) -> Any:
    """A copy of a function in whose namespace kernels are in their places and the functions it calls are copies too."""
    if function not in done:
        namespace = dict(function.__globals__)
        copy = types.FunctionType(
            function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
        )
        done[function] = wrap(copy)
        for name, used in _functions_used(function, kernels):
            namespace[name] = _copied(used, kernels, wrap, done)
    return done[function]


def _functions_used(function: Callable, kernels: dict[str, Callable]) -> Iterator[tuple[str, Callable]]:
    """The plain functions that a function calls by global name, kernels in the places of those that are None."""
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if used is None and name in kernels:
            yield name, kernels[name]
        elif isinstance(used, types.FunctionType) and used.__module__.partition(".")[0] not in ("numpy", "numba"):
            yield name, used


def all_functions(function: Callable, kernels: dict[str, Callable]) -> list[Callable]:
    """The function and all that it calls, directly or not, in the order of the calls."""
    seen: dict[Callable, None] = {}

    def walk(used: Callable) -> None:
        if used not in seen:
            seen[used] = None
            for _, deeper in _functions_used(used, kernels):
                walk(deeper)

    walk(function)
    return list(seen)


def fingerprint(function: Callable, kernels: dict[str, Callable], options: dict[str, Any]) -> str:
    """A hash of all that the compiled code depends on: code, constants and the fields of tuples."""
    seen = all_functions(function, kernels)
    text = [str(options)]
    text += [f"{name}={kernel.__module__}.{kernel.__qualname__}" for name, kernel in kernels.items()]
    for one in seen:
        text.append(f"{one.__module__}.{one.__qualname__}{_code_text(one.__code__)}{one.__defaults__}")
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, bool | int | float | str | tuple):
                text.append(f"{name}={value!r}")
    for space in {one.__module__: one.__globals__ for one in seen}.values():
        text += [f"{name}{value._fields}" for name, value in space.items() if hasattr(value, "_fields")]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def _code_text(code: types.CodeType) -> str:
    constants = [_code_text(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}{code.co_freevars}"
